//! Gaps in the final answer: the places in it where a call or a line is missing, so that the text before may be no part of it.

use super::{OpenText, Recorder, Speaker, Voice};
use crate::trace::{AnswerGap, NoticeCode};

/// The maximum number of gaps that are kept of one text.
const MAX_GAPS: usize = 100;

/// A place in the texts of the main agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The event of the text that can still grow. Without one, the next event.
    event: u64,
    /// The length of the event's text at this place.
    length: usize,
}

/// A place in a text behind which something is missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    /// The length of the text before the gap.
    pub(super) at: usize,
    /// The number of the notice about it.
    notice: u64,
}

/// The last event of the final answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LastPart {
    event: u64,
    /// The length of the answer's text in earlier events.
    before: usize,
    /// The length of the text of this event before the answer.
    answer_at: usize,
}

impl Recorder {
    /// Returns the place of what is recorded now: that of the line which a notice is about, or the end of the text so far.
    pub(super) fn place(&self) -> Place {
        if let Some(place) = self.place {
            return place;
        }
        match self.open_answer() {
            Some(open) => Place { event: open.slot, length: self.text_of(open.slot).len() },
            None => Place { event: self.first + self.slots.len() as u64, length: 0 },
        }
    }

    /// Notes that something is missing at a place, if the final answer so far has text before it.
    pub(super) fn mark_gap(&mut self, place: Place, notice: u64) {
        let (from, first, last) = (self.answer_from, self.first, self.last_part);
        let main = Speaker::of(Voice::Agent, None);
        match self.text.as_mut().filter(|open| open.speaker == main && open.slot >= first) {
            Some(open) if place.event == open.slot => add(&mut open.gaps, place.length, notice),
            Some(open) if (from..open.slot).contains(&place.event) => {
                let at = open.before.len();
                add(&mut open.before_gaps, at, notice);
            }
            Some(_) => {}
            None if self.answer.is_empty() || place.event < from => {}
            None if place.event > last.event => add(&mut self.answer_gaps, self.answer.len(), notice),
            // Where an earlier event of the answer has the place is not kept.
            None if place.event < last.event => add(&mut self.answer_gaps, last.before, notice),
            None => {
                if let Some(at) = place.length.checked_sub(last.answer_at) {
                    add(&mut self.answer_gaps, last.before + at, notice);
                }
            }
        }
    }

    /// Returns the gaps of the final answer so far.
    pub(super) fn gaps_of_answer(&self) -> Vec<Gap> {
        self.open_answer().map_or_else(|| self.answer_gaps.clone(), OpenText::whole_gaps)
    }

    fn open_answer(&self) -> Option<&OpenText> {
        let main = Speaker::of(Voice::Agent, None);
        self.text.as_ref().filter(|open| open.speaker == main && open.slot >= self.first)
    }
}

impl OpenText {
    /// Returns the gaps of the answer that ends with this text.
    pub(super) fn whole_gaps(&self) -> Vec<Gap> {
        let of_event = self.gaps.iter().filter_map(|gap| {
            let at = gap.at.checked_sub(self.answer_at)?;
            Some(Gap { at: self.before.len() + at, ..*gap })
        });
        self.before_gaps.iter().copied().chain(of_event).collect()
    }

    pub(super) fn as_last_part(&self) -> LastPart {
        LastPart { event: self.slot, before: self.before.len(), answer_at: self.answer_at }
    }
}

fn add(gaps: &mut Vec<Gap>, at: usize, notice: u64) {
    if gaps.len() < MAX_GAPS && gaps.iter().all(|gap| gap.at != at) {
        gaps.push(Gap { at, notice });
    }
}

/// Returns the gaps with text of the answer both before and behind them.
pub(super) fn gap_within(answer: &str, gaps: &[Gap]) -> Option<AnswerGap> {
    let has_text = |part: Option<&str>| part.is_some_and(|part| !part.trim().is_empty());
    let is_within = |gap: &&Gap| has_text(answer.get(..gap.at)) && has_text(answer.get(gap.at..));
    let within = || gaps.iter().filter(is_within);
    let (first, last) = within().min_by_key(|gap| gap.at).zip(within().max_by_key(|gap| gap.at))?;
    Some(AnswerGap { event: first.notice, at: last.at as u64 })
}

/// Returns false for the codes of notices about a known call, about a sub-agent, about a part of a message, and of those that come
/// when a call or the turn ends, after what they report. After an unshown action that an adapter finds between two messages, it
/// begins another answer.
pub(super) fn stands_in_its_place(code: &NoticeCode) -> bool {
    use NoticeCode::{
        BackgroundCut, ChangedCommand, ChangedInput, ChangedKind, ChangedPath, FollowedLinks, ForeignSession,
        HiddenSubAgent, LateUpdate, LetGo, RepeatedResult, SubAgentLeftOut, ToolContent, UnknownContent, UnknownStatus,
        UnknownSubAgent, UnseenSearch, UnshownAction,
    };
    !matches!(
        code,
        BackgroundCut
            | ChangedCommand
            | ChangedInput
            | ChangedKind
            | ChangedPath
            | FollowedLinks
            | ForeignSession
            | HiddenSubAgent
            | LateUpdate
            | LetGo
            | RepeatedResult
            | SubAgentLeftOut
            | ToolContent
            | UnknownContent
            | UnknownStatus
            | UnknownSubAgent
            | UnseenSearch
            | UnshownAction
    )
}
