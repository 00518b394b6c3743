//! The events that a matcher found: their positions, and no more events than a rule can need.

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
    /// The time.
    pub at_ms: u64,
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

/// Events in order, limited to the number that a rule needs.
#[derive(Debug, Clone)]
pub struct Hits {
    /// The number of events.
    pub count: u64,
    first: Vec<Hit>,
    last: Vec<Hit>,
    /// All events, if a rule needs each.
    all: Option<Vec<Hit>>,
}

impl Hits {
    /// Makes hits for a rule that needs only the ends.
    pub fn ends() -> Self {
        Self { count: 0, first: Vec::new(), last: Vec::new(), all: None }
    }

    /// Makes hits for a rule that needs each event.
    pub fn all() -> Self {
        Self { all: Some(Vec::new()), ..Self::ends() }
    }

    /// Adds an event.
    pub fn add(&mut self, hit: Hit) {
        self.count += 1;
        if let Some(all) = &mut self.all {
            all.push(hit);
            return;
        }
        // Events arrive almost in order: sub-agents alternate within their steps.
        if self.first.len() < KEPT || self.first.last().is_some_and(|last| hit < *last) {
            let at = self.first.partition_point(|known| *known <= hit);
            self.first.insert(at, hit);
            self.first.truncate(KEPT);
        }
        let at = self.last.partition_point(|known| *known <= hit);
        if self.last.len() < KEPT || at > 0 {
            self.last.insert(at, hit);
            if self.last.len() > KEPT {
                self.last.remove(0);
            }
        }
    }

    /// Returns the kept events in order: from the beginning and from the end, each once.
    pub fn sorted(&self) -> Vec<Hit> {
        let mut hits = match &self.all {
            Some(all) => all.clone(),
            None => self.first.iter().chain(&self.last).copied().collect(),
        };
        hits.sort_unstable();
        hits.dedup();
        hits
    }
}
