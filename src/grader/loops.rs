//! `loops`: how often an agent does the same again at once. What it keeps is a few calls for each speaker.

use std::collections::{HashMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::{Body, Evidence, Judge, Subject, words};
use crate::grade::Grade;

/// Calls of a block, at most.
const LONGEST: usize = 4;
/// Events that the grade points at, at most.
const POINTED_AT: usize = 40;

/// How often the same may follow itself at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Loops {
    /// A block of 1 to 4 calls, each of the same kind, name and input, stands at most so often in a row.
    #[schemars(range(min = 1))]
    pub max: u64,
}

impl Body for Loops {
    fn refusal(&self) -> Option<String> {
        (self.max == 0).then(|| {
            "contradicts itself: a call counts itself, so `max: 0` allows none; write `max: 1` or more".to_owned()
        })
    }

    fn sees_calls(&self) -> bool {
        true
    }

    fn judge(&self) -> Option<Box<dyn Judge>> {
        Some(Box::new(LoopsJudge { max: self.max, speakers: HashMap::new(), worst: None }))
    }
}

/// A call as loops see it.
#[derive(Clone)]
struct Done {
    seq: u64,
    same: blake3::Hash,
    label: String,
}

/// What one speaker did last.
#[derive(Default)]
struct Speaker {
    /// The calls of the step that goes on. They have no order among them, so they are put into one.
    step: Option<u64>,
    open: Vec<Done>,
    /// The last calls before it.
    last: VecDeque<Done>,
    /// For blocks of 1, 2, 3 and 4 calls: the run of calls that are each the one a block before.
    runs: [Run; LONGEST],
}

/// Calls that are each the same as the one a block before.
#[derive(Default)]
struct Run {
    length: u64,
    /// The first calls of it, with the block before it.
    events: Vec<u64>,
}

/// A block that stands in a row.
struct Worst {
    times: u64,
    block: Vec<String>,
    events: Vec<u64>,
}

struct LoopsJudge {
    max: u64,
    speakers: HashMap<Option<String>, Speaker>,
    worst: Option<Worst>,
}

impl Judge for LoopsJudge {
    fn call(&mut self, call: &Subject<'_>) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(call.call.kind.word().as_bytes());
        for part in [call.call.name.as_deref(), call.input()] {
            // What is absent is not the same as what is empty.
            hasher.update(&[u8::from(part.is_some())]);
            let part = part.unwrap_or_default();
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let done = Done { seq: call.seq, same: hasher.finalize(), label: call.label() };
        let speaker = self.speakers.entry(call.parent.map(str::to_owned)).or_default();
        if speaker.step != Some(call.call.step) {
            speaker.step = Some(call.call.step);
            close(speaker, &mut self.worst);
        }
        speaker.open.push(done);
    }

    fn finish(mut self: Box<Self>, evidence: &Evidence<'_>) -> Grade {
        if let Some(ungraded) = evidence.without_tracing() {
            return ungraded;
        }
        for speaker in self.speakers.values_mut() {
            close(speaker, &mut self.worst);
        }
        let max = self.max;
        let mut checks = Checks::default();
        match self.worst {
            None => checks.held("there were no calls", []),
            Some(Worst { times, .. }) if times <= max => {
                let most = if times == 1 {
                    "nothing was done twice in a row".to_owned()
                } else {
                    format!("the same was done at most {times} times in a row")
                };
                checks.held(format!("{most}, {max} allowed"), []);
            }
            Some(Worst { times, block, events }) => {
                let what = block.join(", then ");
                let calls = words::count(block.len() as u64, "call");
                let reason = format!(
                    "a block of {calls} follows itself at once {times} times, at most {max} allowed: {what} (from event {})",
                    events.first().copied().unwrap_or_default()
                );
                checks.violated(reason, events);
            }
        }
        checks.grade()
    }
}

/// Ends a speaker's step: its calls follow those before it.
fn close(speaker: &mut Speaker, worst: &mut Option<Worst>) {
    let mut calls = std::mem::take(&mut speaker.open);
    calls.sort_by_key(|call| (*call.same.as_bytes(), call.seq));
    for call in calls {
        for (n, run) in speaker.runs.iter_mut().enumerate() {
            let block = n + 1;
            let before = speaker.last.len().checked_sub(block).and_then(|at| speaker.last.get(at));
            if before.is_some_and(|before| before.same == call.same) {
                if run.length == 0 {
                    run.events = speaker.last.iter().rev().take(block).rev().map(|call| call.seq).collect();
                }
                run.length += 1;
                if run.events.len() < POINTED_AT {
                    run.events.push(call.seq);
                }
            } else {
                *run = Run::default();
            }
            let times = run.length / block as u64 + 1;
            // Of blocks that stand equally often the shortest says it best: it comes first.
            if worst.as_ref().is_none_or(|worst| times > worst.times) {
                let others = speaker.last.iter().rev().take(block - 1).rev();
                let labels = others.map(|call| call.label.clone()).chain([call.label.clone()]).collect();
                *worst = Some(Worst { times, block: labels, events: run.events.clone() });
            } else if let Some(worst) =
                worst.as_mut().filter(|worst| worst.times == times && worst.block.len() == block)
            {
                // The same row goes on by a part of the block.
                if worst.events.first() == run.events.first() && worst.events.len() < POINTED_AT {
                    worst.events.clone_from(&run.events);
                }
            }
        }
        speaker.last.push_back(call);
        if speaker.last.len() > LONGEST {
            speaker.last.pop_front();
        }
    }
}
