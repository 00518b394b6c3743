//! The trials that wait to be started, in their order. The next one is found without a search through the trials of
//! harnesses that have no room.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::TrialRecord;

/// A waiting trial, with the number of its next attempt.
pub(super) type Next<'a> = (&'a TrialRecord, u32);

/// The waiting trials.
pub(super) struct Queue<'a> {
    /// The trials of each harness, each with its place in the order of all.
    of_harness: BTreeMap<&'a str, VecDeque<(i64, Next<'a>)>>,
    /// The place of the first trial.
    first: i64,
    length: usize,
}

impl<'a> Queue<'a> {
    /// Makes a queue of trials in their order.
    pub(super) fn new(trials: Vec<Next<'a>>) -> Self {
        let length = trials.len();
        let mut of_harness: BTreeMap<&str, VecDeque<_>> = BTreeMap::new();
        for (place, next) in (0..).zip(trials) {
            of_harness.entry(next.0.harness.as_str()).or_default().push_back((place, next));
        }
        Self { of_harness, first: 0, length }
    }

    /// Returns the number of waiting trials.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns the waiting trials, in no particular order.
    pub(super) fn trials(&self) -> impl Iterator<Item = &'a TrialRecord> {
        self.of_harness.values().flatten().map(|(_, (trial, _))| *trial)
    }

    /// Puts a trial before all others.
    pub(super) fn push_front(&mut self, next: Next<'a>) {
        self.first -= 1;
        self.length += 1;
        self.of_harness.entry(next.0.harness.as_str()).or_default().push_front((self.first, next));
    }

    /// Takes the first trial whose harness has room for another one.
    pub(super) fn take(&mut self, has_room: impl Fn(&str) -> bool) -> Option<Next<'a>> {
        let waiting = self.of_harness.iter_mut().filter(|(harness, _)| has_room(harness));
        let first = waiting.filter_map(|(_, trials)| Some((trials.front()?.0, trials))).min_by_key(|(place, _)| *place);
        let (_, next) = first?.1.pop_front()?;
        self.length -= 1;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_trial_with_room_is_next_and_a_retry_goes_first() {
        let trials = [
            TrialRecord::for_test("a", 1),
            TrialRecord::for_test("a", 2),
            TrialRecord::for_test("b", 1),
            TrialRecord::for_test("a", 3),
            TrialRecord::for_test("b", 2),
        ];
        let mut queue = Queue::new(trials.iter().map(|trial| (trial, 1)).collect());
        let mut take = |full: &str| {
            let taken = queue.take(|harness| harness != full);
            taken.map(|(trial, attempt)| (trial.harness.clone(), trial.trial, attempt))
        };
        let next = |harness: &str, trial, attempt| Some((harness.to_owned(), trial, attempt));
        assert_eq!(take(""), next("a", 1, 1));
        assert_eq!(take("a"), next("b", 1, 1));
        assert_eq!(take(""), next("a", 2, 1));
        queue.push_front((&trials[2], 2));
        assert_eq!(queue.len(), 3);
        let mut take =
            |full: &str| queue.take(|harness| harness != full).map(|(trial, attempt)| (trial.trial, attempt));
        assert_eq!([take("b"), take(""), take(""), take("")], [Some((3, 1)), Some((1, 2)), Some((2, 1)), None]);
        assert_eq!(queue.len(), 0);
    }
}
