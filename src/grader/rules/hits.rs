//! The events that a matcher found: their positions, and no more events than a rule can need.

use std::collections::BTreeMap;

use crate::grader::speakers::Span;
use crate::judgement::Judgement;

/// The number of events kept from each end if a rule needs only the ends.
const KEPT: usize = 40;

/// The position of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPlace {
    /// Twice the number of the event's step, plus two. Events between two steps have the odd number between the ranks
    /// of these steps.
    pub rank: u64,
    /// The order of events between the same two steps. Calls of one step have no order.
    pub order: u64,
}

impl EventPlace {
    /// Returns the position of a call, and of events about it.
    pub fn in_step(step: u64) -> Self {
        Self { rank: step.saturating_add(1).saturating_mul(2), order: 0 }
    }

    /// Returns the position of an event after a number of steps.
    pub fn after_steps(steps: u64, seq: u64) -> Self {
        Self { rank: steps.saturating_mul(2).saturating_add(1), order: seq }
    }

    /// Returns the number of steps between two positions.
    pub fn steps_to(self, other: EventPlace) -> u64 {
        (other.rank / 2).saturating_sub(self.rank / 2)
    }
}

/// A found event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// The position.
    pub place: EventPlace,
    /// `seq` of the event.
    pub seq: u64,
    /// The time since the beginning of the session, in milliseconds.
    pub at_ms: u64,
    /// The speaker, and the part of the trace that the event takes up.
    pub span: Span,
}

impl Hit {
    /// Returns whether this event is later than another one.
    pub fn is_later_than(&self, other: &Hit) -> Judgement {
        other.span.is_before(self.span, self.place > other.place)
    }
}

/// The events that a matcher found, and incompletely shown events that may match.
#[derive(Debug, Clone)]
pub struct FoundEvents {
    /// The events that match.
    pub surely: Hits,
    /// The events that may match.
    pub perhaps: Hits,
}

impl FoundEvents {
    /// Makes empty findings, for a rule that needs all events or only the ends.
    pub fn new(looks_at_each: bool) -> Self {
        let hits = || if looks_at_each { Hits::all() } else { Hits::ends() };
        Self { surely: hits(), perhaps: hits() }
    }
}

/// Events in order, limited to the number that a rule needs of each speaker.
#[derive(Debug, Clone)]
pub struct Hits {
    /// The number of events.
    pub count: u64,
    looks_at_each: bool,
    speakers: BTreeMap<Option<u64>, SpeakerHits>,
}

/// The events of one speaker.
#[derive(Debug, Clone, Default)]
struct SpeakerHits {
    first: Vec<Hit>,
    last: Vec<Hit>,
    /// All events, if a rule needs each.
    all: Vec<Hit>,
}

impl Hits {
    /// Makes hits for a rule that needs only the ends.
    pub fn ends() -> Self {
        Self { count: 0, looks_at_each: false, speakers: BTreeMap::new() }
    }

    /// Makes hits for a rule that needs each event.
    pub fn all() -> Self {
        Self { looks_at_each: true, ..Self::ends() }
    }

    /// Adds an event.
    pub fn add(&mut self, hit: Hit) {
        self.count += 1;
        let SpeakerHits { first, last, all } = self.speakers.entry(hit.span.speaker).or_default();
        if self.looks_at_each {
            all.push(hit);
            return;
        }
        // Events arrive almost in order: messages come before the call that is still open.
        if first.len() < KEPT || first.last().is_some_and(|last| hit < *last) {
            let at = first.partition_point(|known| *known <= hit);
            first.insert(at, hit);
            first.truncate(KEPT);
        }
        let at = last.partition_point(|known| *known <= hit);
        if last.len() < KEPT || at > 0 {
            last.insert(at, hit);
            if last.len() > KEPT {
                last.remove(0);
            }
        }
    }

    /// Returns the kept events in order: of each speaker those from the beginning and from the end, each once.
    pub fn sorted(&self) -> Vec<Hit> {
        let kept = self.speakers.values().flat_map(|of| of.first.iter().chain(&of.last).chain(&of.all));
        let mut hits: Vec<Hit> = kept.copied().collect();
        hits.sort_unstable();
        hits.dedup();
        hits
    }
}
