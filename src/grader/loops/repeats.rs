//! Runs of calls, or of steps, that each equal the one a fixed distance before.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{ComparedCall, Equality, MAX_BLOCK_CALLS, POINTED_AT};

/// The most frequent repetition of a block.
#[derive(Debug, Clone)]
pub struct Worst {
    pub times: u64,
    /// The labels of the block's calls.
    pub block: Vec<String>,
    /// The first calls of the repetition.
    pub events: Vec<u64>,
}

/// Calls, or steps, that each equal the one a block before.
#[derive(Clone, Default)]
pub struct Run {
    pub length: u64,
    /// The first calls of the run, with the block before it.
    pub events: Arc<Vec<u64>>,
}

impl Run {
    /// Adds a call that equals the one a block before, or ends the run.
    pub fn add(&mut self, is_same: bool, before: impl FnOnce() -> Vec<u64>, events: impl Iterator<Item = u64>) {
        if !is_same {
            *self = Self::default();
            return;
        }
        if self.length == 0 {
            self.events = Arc::new(before());
        }
        self.length += 1;
        if self.events.len() < POINTED_AT {
            Arc::make_mut(&mut self.events).extend(events);
        }
    }

    /// Returns how often the block follows itself, itself counted.
    pub fn times(&self, block: usize) -> u64 {
        self.length / block as u64 + 1
    }

    /// Replaces `worst` by this repetition if its block occurs more often. If this repetition continues the worst one, adds
    /// its events to it. Among equally frequent blocks, the shortest stays: it describes the loop best, and is tried first.
    pub fn is_worst_of(&self, worst: &mut Option<Arc<Worst>>, block: usize, labels: impl FnOnce() -> Vec<String>) {
        let times = self.times(block);
        match worst {
            Some(known) if times < known.times => {}
            Some(known) if times == known.times => {
                let is_same_run = known.events.first() == self.events.first() && known.events.len() < POINTED_AT;
                if is_same_run && known.block.len() == block && known.events.len() < self.events.len() {
                    *worst = Some(Arc::new(Worst { events: self.events.to_vec(), ..(**known).clone() }));
                }
            }
            _ => *worst = Some(Arc::new(Worst { times, block: labels(), events: self.events.to_vec() })),
        }
    }
}

/// The runs of steps. A step equals another one if its calls are the same, in any order.
#[derive(Clone, Default)]
pub struct StepRuns {
    /// The last steps. A step with more calls than a block has is empty.
    last: VecDeque<Vec<Arc<ComparedCall>>>,
    runs: [Run; MAX_BLOCK_CALLS],
    worst: Option<Arc<Worst>>,
}

impl StepRuns {
    /// Adds the next step.
    pub fn step(&mut self, calls: &[Arc<ComparedCall>], equality: Equality) {
        let calls = if calls.len() > MAX_BLOCK_CALLS { &[] } else { calls };
        for (n, run) in self.runs.iter_mut().enumerate() {
            let steps = n + 1;
            let from = self.last.len().checked_sub(steps);
            let before = from.and_then(|at| self.last.get(at));
            let is_same = before.is_some_and(|before| !calls.is_empty() && are_equal(before, calls, equality));
            let block = || self.last.iter().skip(from.unwrap_or_default()).flatten();
            run.add(is_same, || block().map(|call| call.seq).collect(), calls.iter().map(|call| call.seq));
            let size = block().count();
            if is_same && size <= MAX_BLOCK_CALLS && run.times(steps) > 1 {
                let labels = || block().map(|call| call.label.clone()).collect();
                let times = run.times(steps);
                if self.worst.as_ref().is_none_or(|worst| times > worst.times) {
                    let events = run.events.to_vec();
                    self.worst = Some(Arc::new(Worst { times, block: labels(), events }));
                }
            }
        }
        self.last.push_back(calls.to_vec());
        if self.last.len() > MAX_BLOCK_CALLS {
            self.last.pop_front();
        }
    }

    /// Ends every run: something unknown comes before the next step.
    pub fn separate(&mut self) {
        self.last.clear();
        self.runs = <[Run; MAX_BLOCK_CALLS]>::default();
    }

    /// Returns the most frequent repetition of steps, if any step was repeated.
    pub fn worst(&self) -> Option<&Worst> {
        self.worst.as_deref()
    }
}

/// Returns true if each call of a step equals another call of the other step.
fn are_equal(one: &[Arc<ComparedCall>], other: &[Arc<ComparedCall>], equality: Equality) -> bool {
    let Some((first, rest)) = one.split_first() else { return other.is_empty() };
    one.len() == other.len()
        && (0..other.len()).any(|n| {
            let fits = other.get(n).is_some_and(|call| equality.holds(first, call));
            fits && {
                let mut left = other.to_vec();
                left.remove(n);
                are_equal(rest, &left, equality)
            }
        })
}
