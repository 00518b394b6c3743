//! The order of events of several speakers: known only if the numbers of their steps and the places of their events agree.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Subject;
use crate::judgement::Judgement;

/// The part of a trace that an event takes up: a call lasts from its announcement to its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The speaker: the hash of the call that started the sub-agent, or `None` for the main agent.
    pub speaker: Option<u64>,
    /// The hash of the call, if this is a call.
    call: Option<u64>,
    first: u64,
    last: u64,
}

impl Span {
    pub fn of_call(call: &Subject<'_>) -> Self {
        let (first, last) = (call.seq, call.result_seq);
        Self { speaker: call.parent.map(hash), call: Some(hash(&call.call.call)), first, last }
    }

    /// Returns the span of a single event.
    pub fn of_event(parent: Option<&str>, seq: u64) -> Self {
        Self { speaker: parent.map(hash), call: None, first: seq, last: seq }
    }

    /// Returns whether this event comes before another one, given whether it does by the numbers of their steps.
    ///
    /// The steps of one speaker are in order. Those of different speakers count on their own, so their numbers have to agree
    /// with the events: one call has its result before the other is announced, or starts the sub-agent that makes the other.
    pub fn is_before(self, other: Span, by_steps: bool) -> Judgement {
        let starts = self.call.is_some() && self.call == other.speaker && self.first < other.first;
        let by_events = starts || self.last < other.first;
        if self.speaker == other.speaker || by_steps == by_events { by_steps.into() } else { Judgement::Unknown }
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
