//! What is kept of the events that a matcher found: where they stand, and no more of them than a rule can need.

/// Events that are kept from each end where a rule needs only the ends.
const KEPT: usize = 40;

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Twice the number of its step, and two more: what stands between two steps has the odd number between theirs.
    pub rank: u64,
    /// Events between the same steps have an order, calls of one step have none.
    pub order: u64,
}

impl Place {
    /// The place of a call, and of what is about it.
    pub fn in_step(step: u64) -> Self {
        Self { rank: step.saturating_add(1).saturating_mul(2), order: 0 }
    }

    /// The place of what stands after so many steps.
    pub fn after_steps(steps: u64, seq: u64) -> Self {
        Self { rank: steps.saturating_mul(2).saturating_add(1), order: seq }
    }

    /// How many steps lie from here to there.
    pub fn steps_to(self, other: Place) -> u64 {
        (other.rank / 2).saturating_sub(self.rank / 2)
    }
}

/// An event that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Where it stands.
    pub place: Place,
    /// Its `seq`.
    pub seq: u64,
    /// When it happened.
    pub at_ms: u64,
}

/// The events that a matcher found, and those that it may have found: too little of them was shown.
#[derive(Debug, Clone)]
pub struct Found {
    /// The events that fit.
    pub surely: Hits,
    /// The events that may fit.
    pub perhaps: Hits,
}

impl Found {
    /// For a rule that needs the ends only, or looks at each.
    pub fn new(looks_at_each: bool) -> Self {
        let hits = || if looks_at_each { Hits::all() } else { Hits::ends() };
        Self { surely: hits(), perhaps: hits() }
    }
}

/// Events in order, as many as a rule needs.
#[derive(Debug, Clone)]
pub struct Hits {
    /// How many there were.
    pub count: u64,
    first: Vec<Hit>,
    last: Vec<Hit>,
    /// All of them, where a rule looks at each.
    all: Option<Vec<Hit>>,
}

impl Hits {
    /// For a rule that needs the ends only.
    pub fn ends() -> Self {
        Self { count: 0, first: Vec::new(), last: Vec::new(), all: None }
    }

    /// For a rule that looks at each.
    pub fn all() -> Self {
        Self { all: Some(Vec::new()), ..Self::ends() }
    }

    /// Takes one more.
    pub fn add(&mut self, hit: Hit) {
        self.count += 1;
        if let Some(all) = &mut self.all {
            all.push(hit);
            return;
        }
        // They come almost in order: speakers take turns within their steps.
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

    /// Those that are kept, in order: from the beginning and from the end, each once.
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
