//! Calls that share an id: a block that is repeated is one call, and a call of another speaker or another message is
//! another one.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Translator;
use crate::trace::NoticeCode;
use crate::trace::recorder::{CallReport, QuotedLine, Recorder, is_empty};

/// The maximum number of open calls whose origin is remembered.
const MAX_KNOWN: usize = 100_000;

/// The maximum number of earlier open calls with one id that can still get a result. Further calls end as unfinished.
const MAX_ASIDE: usize = 100;

/// The announced calls by their ids, to tell a repeated block from a further call with the same id.
#[derive(Default)]
pub(super) struct Repeated {
    /// The speaker and the message of the last call of each id.
    origins: HashMap<String, Origin>,
    /// The earlier open calls of an id: their names in the recorder, with their speakers.
    aside: BTreeMap<String, VecDeque<(String, Option<String>)>>,
    /// Calls that another message repeated, unchanged, while they were open, each with the line.
    again: BTreeMap<String, (CallReport, QuotedLine)>,
    /// Ids that two open calls of one speaker shared until one of them ended. It is unknown which one.
    undecided: BTreeMap<String, bool>,
}

struct Origin {
    parent: Option<String>,
    message: Option<String>,
}

impl Translator {
    /// Prepares the recorder for a call whose id an open call may have: the open one is put aside if this is another call.
    pub(super) fn meet(&mut self, id: &str, report: &CallReport, recorder: &mut Recorder) {
        let repeated = &mut self.repeated;
        if recorder.is_open(id)
            && let Some(first) = repeated.origins.get(id)
        {
            let other_speaker = first.parent != report.parent;
            let other_message = first.message.is_some() && report.group.is_some() && first.message != report.group;
            if other_speaker || (other_message && differs(id, report, recorder)) {
                let speaker = first.parent.clone();
                if let Some(aside) = recorder.put_aside(id) {
                    if !other_speaker {
                        repeated.undecided.insert(id.to_owned(), false);
                    }
                    let aside_calls = repeated.aside.entry(id.to_owned()).or_default();
                    if aside_calls.len() < MAX_ASIDE {
                        aside_calls.push_back((aside, speaker));
                    }
                }
            } else if other_message {
                repeated.again.entry(id.to_owned()).or_insert_with(|| (report.clone(), recorder.this_line()));
                return;
            } else {
                return;
            }
        }
        if repeated.origins.len() < MAX_KNOWN {
            repeated
                .origins
                .insert(id.to_owned(), Origin { parent: report.parent.clone(), message: report.group.clone() });
        }
    }

    /// Returns the name in the recorder of the call that a result ends: the first open call of this id and this speaker.
    pub(super) fn ending(&mut self, id: &str, parent: &Option<String>, recorder: &mut Recorder) -> String {
        let repeated = &mut self.repeated;
        let is_last_ones = repeated.origins.get(id).is_some_and(|last| last.parent == *parent);
        if let Some(aside) = repeated.aside.get_mut(id) {
            aside.retain(|(name, _)| recorder.is_open(name));
            let of_speaker = aside.iter().position(|(_, speaker)| speaker == parent);
            let found = of_speaker.or((!is_last_ones && !aside.is_empty()).then_some(0));
            if let Some((name, _)) = found.and_then(|at| aside.remove(at)) {
                if let Some(ended) = repeated.undecided.get_mut(id) {
                    *ended = true;
                }
                return name;
            }
        }
        // A second result of a call that another message repeated: the repetition was another call.
        if !recorder.is_open(id)
            && let Some((report, _)) = repeated.again.remove(id)
        {
            recorder.call(id, report);
        } else if !repeated.again.contains_key(id) {
            repeated.origins.remove(id);
        }
        id.to_owned()
    }

    /// Reports, at the end of a turn, the calls of which it is unknown whether they are one or two, or which one ended.
    pub(super) fn settle_repeated(&mut self, recorder: &mut Recorder) {
        for (id, (_, line)) in std::mem::take(&mut self.repeated.again) {
            let text = format!("another message repeats the call {id}, which may be another call");
            recorder.about(line, |recorder| recorder.did_unseen(NoticeCode::RepeatedCall, text));
        }
        for (id, ended) in std::mem::take(&mut self.repeated.undecided) {
            if ended && recorder.is_open(&id) {
                recorder.unclear_outcome(&id);
            }
        }
    }
}

/// Returns true if an announced call differs from the open call of this id: in its name, or in an input that both show.
fn differs(id: &str, report: &CallReport, recorder: &Recorder) -> bool {
    let Some((open, _)) = recorder.open_call(id) else { return false };
    let other_name = open.name.as_ref().zip(report.name.as_ref()).is_some_and(|(one, other)| one != other);
    let input = report.input.as_ref().filter(|input| !is_empty(input));
    other_name || open.input.as_ref().zip(input).is_some_and(|(one, other)| one != other)
}
