//! Compares the calls that were made with the expected ones. Pure: its input is only which call matches which
//! expected call, and the steps.
//!
//! The calls of a step have no order among them, and neither have those of an expected step. If order counts, a
//! comparison holds if it holds for some order of the calls within their steps. If several speakers made the calls, the
//! order of two calls may be unknown.

use std::ops::Range;

use super::assign::{Want, assign};
use super::speakers::Span;
use crate::judgement::Judgement;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MadeCall {
    pub seq: u64,
    pub step: u64,
    /// The speaker, and the part of the trace from the announcement to the result.
    pub span: Span,
    /// The numbers of the expected calls that it matches.
    pub fits: Vec<usize>,
}

impl MadeCall {
    /// Returns whether this call is in a later step than another one.
    pub fn is_later_than(&self, other: &MadeCall) -> Judgement {
        other.span.is_before(self.span, self.step > other.step)
    }
}

/// The maximum number of calls that are compared in pairs.
const MAX_COMPARED_CALLS: usize = 2000;
/// The maximum number of calls that are tried while a chain of calls is searched.
const MAX_TRIED_CALLS: u32 = 200_000;

/// Returns true if more than one speaker made the calls.
pub fn has_several_speakers(made: &[MadeCall]) -> bool {
    made.iter().skip(1).zip(made).any(|(one, other)| one.span.speaker != other.span.speaker)
}

/// Returns true if the order of two of the calls is unknown.
pub fn has_unknown_order(made: &[MadeCall]) -> bool {
    let are_unknown = |n: usize, one: &MadeCall| {
        made.iter()
            .skip(n + 1)
            .any(|other| one.is_later_than(other).is_unknown() || other.is_later_than(one).is_unknown())
    };
    made.len() > MAX_COMPARED_CALLS || made.iter().enumerate().any(|(n, one)| are_unknown(n, one))
}

/// Follows a list of expected calls through those of several speakers.
#[derive(Debug, Default)]
pub struct Chain {
    /// The calls that match or may match, each with the expected ones that it matches for certain.
    calls: Vec<(MadeCall, Vec<usize>)>,
    is_full: bool,
}

impl Chain {
    /// Handles the next call that may match, with the expected calls that it matches for certain.
    pub fn call(&mut self, call: MadeCall, surely: Vec<usize>) {
        match self.calls.len() < MAX_COMPARED_CALLS {
            true => self.calls.push((call, surely)),
            false => self.is_full = true,
        }
    }

    /// Returns true if more than one speaker made the calls.
    pub fn has_several_speakers(&self) -> bool {
        self.calls.iter().skip(1).zip(&self.calls).any(|(one, other)| one.0.span.speaker != other.0.span.speaker)
    }

    /// Returns calls that match the expected ones, and that were made in this order for certain.
    pub fn found(&self, expected: usize) -> Option<Vec<u64>> {
        let (mut chain, mut tries) = (Vec::new(), MAX_TRIED_CALLS);
        self.continue_chain(expected, &mut chain, &mut tries)?;
        Some(chain.iter().filter_map(|n| self.calls.get(*n)).map(|(call, _)| call.seq).collect())
    }

    fn continue_chain(&self, expected: usize, chain: &mut Vec<usize>, tries: &mut u32) -> Option<()> {
        let next = chain.len();
        if next == expected {
            return Some(());
        }
        for (n, (call, surely)) in self.calls.iter().enumerate() {
            *tries = tries.checked_sub(1)?;
            let follows = |before: &usize| {
                let before = self.calls.get(*before).map(|(call, _)| call);
                *tries > 0 && before.is_some_and(|before| before.is_later_than(call) == Judgement::False)
            };
            if surely.contains(&next) && !chain.contains(&n) && chain.iter().all(follows) {
                chain.push(n);
                if self.continue_chain(expected, chain, tries).is_some() {
                    return Some(());
                }
                chain.pop();
            }
        }
        None
    }

    /// Returns true if calls that may match the expected ones may have been made in this order.
    pub fn may_be_found(&self, expected: usize) -> bool {
        let mut ends: Vec<&MadeCall> = Vec::new();
        for next in 0..expected {
            let follows = |call: &MadeCall| {
                next == 0 || ends.iter().any(|end| end.seq != call.seq && !end.is_later_than(call).is_true())
            };
            ends = self
                .calls
                .iter()
                .map(|(call, _)| call)
                .filter(|call| call.fits.contains(&next) && follows(call))
                .collect();
        }
        self.is_full || expected == 0 || !ends.is_empty()
    }
}

/// Calls that were made, and expected items: each item is one call, or one step of several calls.
#[derive(Debug)]
pub struct Compared<'a> {
    made: &'a [MadeCall],
    /// The calls of each step that was made.
    steps: Vec<Range<usize>>,
    /// The expected calls of each item.
    items: &'a [Range<usize>],
    /// The number of expected calls.
    expected: usize,
}

impl<'a> Compared<'a> {
    /// Makes a comparison; the calls must be in the order of their steps.
    pub fn new(made: &'a [MadeCall], items: &'a [Range<usize>]) -> Self {
        let mut steps: Vec<Range<usize>> = Vec::new();
        for (n, call) in made.iter().enumerate() {
            match steps.last_mut() {
                Some(last) if made.get(last.start).is_some_and(|first| first.step == call.step) => last.end = n + 1,
                _ => steps.push(n..n + 1),
            }
        }
        Self { made, steps, items, expected: items.last().map_or(0, |item| item.end) }
    }

    /// Assigns as many expected calls as possible to a different call each. Returns the call of each expected
    /// one.
    pub fn matching(&self) -> Vec<Option<usize>> {
        self.matching_where(0..self.expected, |_, _| true)
    }

    fn matching_where(&self, expected: Range<usize>, may: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
        let first = expected.start;
        let mut candidates: Vec<Vec<u64>> = vec![Vec::new(); expected.len()];
        for (n, call) in self.made.iter().enumerate() {
            for fit in call.fits.iter().copied().filter(|fit| expected.contains(fit) && may(*fit, n)) {
                if let Some(list) = candidates.get_mut(fit - first) {
                    list.push(n as u64);
                }
            }
        }
        given(&candidates)
    }

    /// Returns how many expected calls of a range can each be assigned a different one of these calls.
    fn matched_within(&self, expected: Range<usize>, calls: &Range<usize>) -> usize {
        let first = expected.start;
        let mut candidates: Vec<Vec<u64>> = vec![Vec::new(); expected.len()];
        for n in calls.clone() {
            for fit in self.made.get(n).into_iter().flat_map(|call| &call.fits).filter(|fit| expected.contains(fit)) {
                if let Some(list) = candidates.get_mut(fit - first) {
                    list.push(n as u64);
                }
            }
        }
        given(&candidates).iter().flatten().count()
    }

    fn expected_of(&self, items: Range<usize>) -> Range<usize> {
        match self.items.get(items).unwrap_or_default() {
            [first, .., last] => first.start..last.end,
            [one] => one.clone(),
            [] => 0..0,
        }
    }

    /// Returns true if the calls are the expected ones, position by position.
    pub fn exact(&self) -> bool {
        if self.made.len() != self.expected {
            return false;
        }
        let step_of = |call: usize| self.steps.partition_point(|step| step.end <= call);
        let item_of = |wanted: usize| self.items.partition_point(|item| item.end <= wanted);
        // The calls of an expected step must have been made in one step.
        let is_split = |item: &Range<usize>| item.len() > 1 && step_of(item.start) != step_of(item.end - 1);
        if self.items.iter().any(is_split) {
            return false;
        }
        // A call can be at any position of its step, and an expected call at any position of its item.
        let overlap = |one: &Range<usize>, other: &Range<usize>| one.start < other.end && other.start < one.end;
        let may = |wanted: usize, call: usize| match (self.items.get(item_of(wanted)), self.steps.get(step_of(call))) {
            (Some(item), Some(step)) => overlap(item, step),
            _ => false,
        };
        self.matching_where(0..self.expected, may).iter().all(Option::is_some)
    }

    /// Returns true if the steps are the expected ones, one by one, each with exactly its calls.
    pub fn strict(&self) -> bool {
        self.steps.len() == self.items.len()
            && self
                .steps
                .iter()
                .zip(self.items)
                .all(|(step, item)| step.len() == item.len() && self.matched_within(item.clone(), step) == item.len())
    }

    /// Returns how many items, from the first on, were made in this order, with any calls between them.
    pub fn in_order(&self) -> usize {
        // Each step takes as many items as possible, which leaves the most steps for the items that follow.
        let mut done = 0;
        for step in &self.steps {
            let before = done;
            while done < self.items.len() {
                let expected = self.expected_of(before..done + 1);
                if expected.len() > step.len() || self.matched_within(expected.clone(), step) < expected.len() {
                    break;
                }
                done += 1;
            }
        }
        done
    }

    /// Returns the length of the longest common subsequence, in calls.
    pub fn common(&self) -> usize {
        // `best[j]`: the maximum number of calls that match the first j items, in the steps so far.
        let mut best = vec![0; self.items.len() + 1];
        for step in &self.steps {
            let before = best.clone();
            if let [call] = self.made.get(step.clone()).unwrap_or_default() {
                // A single call adds at most one matched item.
                for (j, item) in self.items.iter().enumerate() {
                    if call.fits.iter().any(|fit| item.contains(fit)) {
                        best[j + 1] = best[j + 1].max(before[j] + 1);
                    }
                }
                for j in 1..best.len() {
                    best[j] = best[j].max(best[j - 1]);
                }
                continue;
            }
            for start in 0..self.items.len() {
                let Some(base) = before.get(start).copied() else { continue };
                for end in start + 1..=self.items.len() {
                    let expected = self.expected_of(start..end);
                    let more = self.matched_within(expected, step);
                    if let Some(best) = best.get_mut(end) {
                        *best = (*best).max(base + more);
                    }
                    // A step cannot match more items than it has calls.
                    if more == step.len() {
                        break;
                    }
                }
            }
            for j in 1..best.len() {
                best[j] = best[j].max(best[j - 1]);
            }
        }
        best.last().copied().unwrap_or(0)
    }
}

/// Follows a list of expected calls as calls arrive: each must be made after the one before it, or in the same
/// step.
#[derive(Debug, Default)]
pub struct Follow {
    expected: usize,
    /// `seq` of the calls that were made in order so far.
    found: Vec<u64>,
    /// The calls of the current step, which have no order.
    open: Vec<MadeCall>,
}

impl Follow {
    /// Starts with this number of expected calls.
    pub fn new(expected: usize) -> Self {
        Self { expected, ..Self::default() }
    }

    /// Handles the next call that matches at least one expected call.
    pub fn call(&mut self, call: MadeCall) {
        if self.open.first().is_some_and(|first| first.step < call.step) {
            self.close();
        }
        // More equal calls than expected ones never help.
        let alike = self.open.iter().filter(|known| known.fits == call.fits).count();
        if alike < self.expected {
            self.open.push(call);
        }
    }

    /// Returns the calls that match the first expected ones in order, after the last call.
    pub fn finish(mut self) -> Vec<u64> {
        self.close();
        self.found
    }

    fn close(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        let before = self.found.len();
        for call in &mut open {
            // Sub-agents alternate within their steps.
            call.step = 0;
            call.fits = call.fits.iter().filter_map(|fit| fit.checked_sub(before)).collect();
        }
        let items: Vec<Range<usize>> = (0..self.expected.saturating_sub(before)).map(|n| n..n + 1).collect();
        let more = Compared::new(&open, &items).in_order();
        let items = items.get(..more).unwrap_or_default();
        let given = Compared::new(&open, items).matching();
        self.found.extend(given.into_iter().flatten().filter_map(|n| open.get(n)).map(|call| call.seq));
    }
}

fn given(candidates: &[Vec<u64>]) -> Vec<Option<usize>> {
    let wants: Vec<Want<'_>> = candidates.iter().map(|candidates| Want { demand: 1, candidates }).collect();
    assign(&wants).into_iter().map(|calls| calls.and_then(|calls| calls.first().map(|n| *n as usize))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permutations(n: usize) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = vec![Vec::new()];
        for k in 0..n {
            all = all
                .into_iter()
                .flat_map(|some| {
                    (0..=k).map(move |at| {
                        let mut next = some.clone();
                        next.insert(at, k);
                        next
                    })
                })
                .collect();
        }
        all
    }

    /// Returns every order of the calls that keeps the order of the steps.
    fn orders(made: &[MadeCall]) -> Vec<Vec<MadeCall>> {
        permutations(made.len())
            .into_iter()
            .map(|order| order.into_iter().map(|n| made[n].clone()).collect::<Vec<MadeCall>>())
            .filter(|order| order.windows(2).all(|pair| pair[0].step <= pair[1].step))
            .collect()
    }

    fn subsequence(order: &[MadeCall], expected: usize) -> bool {
        let mut wanted = 0;
        for call in order {
            if wanted < expected && call.fits.contains(&wanted) {
                wanted += 1;
            }
        }
        wanted == expected
    }

    fn common(order: &[MadeCall], expected: usize) -> usize {
        let mut table = vec![vec![0; expected + 1]; order.len() + 1];
        for (i, call) in order.iter().enumerate() {
            for j in 0..expected {
                let matched = if call.fits.contains(&j) { table[i][j] + 1 } else { 0 };
                table[i + 1][j + 1] = table[i][j + 1].max(table[i + 1][j]).max(matched);
            }
        }
        table[order.len()][expected]
    }

    fn singles(n: usize) -> Vec<Range<usize>> {
        (0..n).map(|n| n..n + 1).collect()
    }

    /// Generates calls in steps, each with the expected ones that it matches.
    fn calls() -> impl Strategy<Value = (Vec<MadeCall>, usize)> {
        (1_usize..5).prop_flat_map(|expected| {
            let call = (any::<bool>(), proptest::collection::vec(any::<bool>(), expected));
            proptest::collection::vec(call, 0..6).prop_map(move |calls| {
                let mut step = 0;
                let made = calls.into_iter().enumerate().map(|(n, (starts, fits))| {
                    step += u64::from(starts);
                    let fits = fits.iter().enumerate().filter(|(_, fits)| **fits).map(|(n, _)| n).collect();
                    MadeCall { seq: n as u64, step, fits, ..MadeCall::default() }
                });
                (made.collect(), expected)
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn some_order_within_the_steps_decides((made, expected) in calls()) {
            let items = singles(expected);
            let compared = Compared::new(&made, &items);
            let orders = orders(&made);
            let exact = |order: &Vec<MadeCall>| order.len() == expected && order.iter().enumerate().all(|(n, call)| call.fits.contains(&n));
            prop_assert_eq!(compared.exact(), orders.iter().any(exact));
            prop_assert_eq!(compared.in_order() == expected, orders.iter().any(|order| subsequence(order, expected)));
            prop_assert_eq!(compared.common(), orders.iter().map(|order| common(order, expected)).max().unwrap());
        }

        #[test]
        fn what_follows_calls_that_go_by_finds_as_many_as_one_who_sees_all((made, expected) in calls()) {
            let mut follow = Follow::new(expected);
            made.iter().filter(|call| !call.fits.is_empty()).for_each(|call| follow.call(call.clone()));
            let found = follow.finish();
            prop_assert_eq!(found.len(), Compared::new(&made, &singles(expected)).in_order());
            for (wanted, seq) in found.iter().enumerate() {
                prop_assert!(made[*seq as usize].fits.contains(&wanted));
            }
        }

        #[test]
        fn one_way_to_compare_follows_from_another((made, expected) in calls(), cut in any::<u8>()) {
            // Some neighbouring expected calls form a step.
            let mut items: Vec<Range<usize>> = Vec::new();
            for n in 0..expected {
                match items.last_mut() {
                    Some(last) if cut & (1 << n) != 0 => last.end = n + 1,
                    _ => items.push(n..n + 1),
                }
            }
            let compared = Compared::new(&made, &items);
            let matched = compared.matching().iter().flatten().count();
            let in_order = compared.in_order() == items.len();
            prop_assert!(!compared.strict() || compared.exact());
            prop_assert!(!compared.exact() || in_order);
            prop_assert!(!in_order || matched == expected);
            prop_assert!(!in_order || compared.common() == expected);
            prop_assert!(compared.common() <= matched);
        }

        #[test]
        fn the_order_within_a_step_says_nothing((made, expected) in calls()) {
            let items = singles(expected);
            let outcome = |made: &[MadeCall]| {
                let compared = Compared::new(made, &items);
                let matched = compared.matching().iter().flatten().count();
                (compared.exact(), compared.strict(), compared.in_order(), compared.common(), matched)
            };
            let first = outcome(&made);
            for order in orders(&made) {
                prop_assert_eq!(outcome(&order), first);
            }
        }
    }
}
