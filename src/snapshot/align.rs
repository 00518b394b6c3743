//! Aligns two lists at minimum cost: items in both, and items in only one. Pure.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use similar::DiffOp;

use super::{Body, Call, Item};
use crate::difference;

/// The cost of removing or adding a call. Changing a call into another of the same tool costs at most
/// [`MAX_CHANGE_COST`].
const CALL: u32 = 100;
/// The maximum cost of changing a call. It is less than the cost of removing one call and adding another (200). Two
/// changes can cost more than that (300), so that an alignment with an equal call is preferred.
const MAX_CHANGE_COST: u32 = 150;
/// The cost of an item that is not a step.
const OTHER: u32 = 60;
/// The maximum number of table cells for the search. Above it, only equal items are matched.
const MAX_TABLE_CELLS: usize = 1 << 20;
/// The maximum number of comparisons of calls for the search: two steps are compared call by call.
const MAX_COMPARISONS: usize = 1 << 22;
/// The maximum number of calls of a step that are compared with each call of another step. Calls that are equal are paired before,
/// and do not count.
const MAX_STEP_CALLS: usize = 300;

/// Two positions that belong together, or one that has no counterpart.
pub type Pair = (Option<usize>, Option<usize>);

/// Aligns the items of two shapes. Each position of either shape occurs once, in order.
pub fn items(old: &[Item], new: &[Item]) -> Vec<Pair> {
    aligned(old, new, weight, item_cost)
}

/// Aligns the calls of two steps, which have no order. Each position of either step occurs once.
pub fn calls(old: &[Call], new: &[Call]) -> Vec<Pair> {
    match (old, new) {
        ([one], [other]) if call_cost(one, other).is_some() => vec![(Some(0), Some(0))],
        _ => calls_of_several(old, new),
    }
}

fn calls_of_several(old: &[Call], new: &[Call]) -> Vec<Pair> {
    let mut of_old = equal_calls(old, new, |one, other| one == other);
    let mut taken = vec![false; new.len()];
    of_old.iter().flatten().for_each(|same| taken[*same] = true);
    let mut open: Vec<(u32, usize, usize)> = Vec::new();
    for (n, call) in old.iter().enumerate().filter(|(n, _)| of_old[*n].is_none()).take(MAX_STEP_CALLS) {
        let others = new.iter().enumerate().filter(|(m, _)| !is(&taken, *m)).take(MAX_STEP_CALLS);
        open.extend(others.filter_map(|(m, other)| Some((call_cost(call, other)?, n, m))));
    }
    open.sort_unstable();
    for (_, n, m) in open {
        if of_old[n].is_none() && !taken[m] {
            (of_old[n], taken[m]) = (Some(m), true);
        }
    }
    let both = of_old.iter().enumerate().map(|(n, m)| (Some(n), *m));
    let added = taken.iter().enumerate().filter(|(_, taken)| !**taken).map(|(m, _)| (None, Some(m)));
    both.chain(added).collect()
}

/// Returns for each call of `old` its equal in `new`, each used once. Calls are looked up by their arguments, so that the
/// number of comparisons grows with the number of calls and not with its square.
fn equal_calls(old: &[Call], new: &[Call], is_same: impl Fn(&Call, &Call) -> bool) -> Vec<Option<usize>> {
    let key = |call: &Call| {
        let mut hasher = DefaultHasher::new();
        (call.kind, &call.name, &call.details).hash(&mut hasher);
        hasher.finish()
    };
    let mut unmatched: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for (m, call) in new.iter().enumerate() {
        unmatched.entry(key(call)).or_default().push_back(m);
    }
    let mut take = |call: &Call| {
        let alike = unmatched.get_mut(&key(call))?;
        let at = alike.iter().position(|m| new.get(*m).is_some_and(|other| is_same(call, other)))?;
        alike.remove(at)
    };
    old.iter().map(&mut take).collect()
}

fn is(flags: &[bool], at: usize) -> bool {
    flags.get(at).copied().unwrap_or_default()
}

fn weight(item: &Item) -> u32 {
    match &item.body {
        Body::Step(calls) => CALL * u32::try_from(calls.len().max(1)).unwrap_or(1).min(10_000),
        _ => OTHER,
    }
}

/// Returns the cost of changing one item into another, or `None` if they have nothing in common.
fn item_cost(old: &Item, new: &Item) -> Option<u32> {
    if old.body == new.body {
        return Some(0);
    }
    match (&old.body, &new.body) {
        (Body::Step(a), Body::Step(b)) => {
            let mut cost = 0;
            let mut shared = false;
            for (n, m) in calls(a, b) {
                match (n.and_then(|n| a.get(n)), m.and_then(|m| b.get(m))) {
                    (Some(one), Some(other)) => {
                        shared = true;
                        cost += call_cost(one, other).unwrap_or(CALL);
                    }
                    _ => cost += CALL,
                }
            }
            shared.then_some(cost)
        }
        (Body::User(_), Body::User(_))
        | (Body::Says(_), Body::Says(_))
        | (Body::Thinks(_), Body::Thinks(_))
        | (Body::Plan(_), Body::Plan(_))
        | (Body::Stop(..), Body::Stop(..)) => Some(OTHER - 10),
        _ => None,
    }
}

/// Returns the cost of changing a call into another of the same tool: it grows with the number of different details.
fn call_cost(old: &Call, new: &Call) -> Option<u32> {
    if old == new {
        return Some(0);
    }
    if !old.is_of_the_tool_of(new) {
        return None;
    }
    let all = old.details.len().max(new.details.len()).max(1) as u32;
    let same = old.details.iter().filter(|detail| new.details.contains(detail)).count() as u32;
    let inner = if old.inner == new.inner { 0 } else { 10 };
    Some(10 + (MAX_CHANGE_COST - 20) * (all - same.min(all)) / all + inner)
}

fn aligned(
    old: &[Item],
    new: &[Item],
    gap: impl Fn(&Item) -> u32,
    pair: impl Fn(&Item, &Item) -> Option<u32>,
) -> Vec<Pair> {
    // The common beginning and the common end of two lists are matched first; they are the largest part of most
    // lists.
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let old_rest = &old_rest[..old_rest.len() - tail];
    let new_rest = &new_rest[..new_rest.len() - tail];
    let mut pairs: Vec<Pair> = (0..head).map(|n| (Some(n), Some(n))).collect();
    let is_large = old_rest.len().saturating_mul(new_rest.len()) > MAX_TABLE_CELLS
        || compared_calls(old_rest).saturating_mul(compared_calls(new_rest)) > MAX_COMPARISONS;
    let middle = if is_large { equal_alone(old_rest, new_rest) } else { least(old_rest, new_rest, gap, pair) };
    pairs.extend(middle.into_iter().map(|(n, m)| (n.map(|n| n + head), m.map(|m| m + head))));
    let (old_tail, new_tail) = (old.len() - tail, new.len() - tail);
    pairs.extend((0..tail).map(|n| (Some(old_tail + n), Some(new_tail + n))));
    pairs
}

/// Returns the number of calls in the steps of a list that are compared with those of another step.
fn compared_calls(items: &[Item]) -> usize {
    let calls = items.iter().map(|item| match &item.body {
        Body::Step(calls) => calls.len().min(MAX_STEP_CALLS),
        _ => 0,
    });
    calls.fold(0, usize::saturating_add)
}

/// Returns the alignment of least cost, from a table of the costs of everything that follows.
fn least(
    old: &[Item],
    new: &[Item],
    gap: impl Fn(&Item) -> u32,
    pair: impl Fn(&Item, &Item) -> Option<u32>,
) -> Vec<Pair> {
    let width = new.len() + 1;
    let mut costs = vec![0_u64; (old.len() + 1) * width];
    let mut pairing: Vec<Option<u32>> = vec![None; old.len() * new.len()];
    for n in (0..=old.len()).rev() {
        for m in (0..=new.len()).rev() {
            let cost = match (old.get(n), new.get(m)) {
                (None, None) => 0,
                (Some(item), None) => costs[(n + 1) * width + m].saturating_add(u64::from(gap(item))),
                (None, Some(item)) => costs[n * width + m + 1].saturating_add(u64::from(gap(item))),
                (Some(one), Some(other)) => {
                    let both = pair(one, other);
                    pairing[n * new.len() + m] = both;
                    let both =
                        both.map_or(u64::MAX, |cost| costs[(n + 1) * width + m + 1].saturating_add(u64::from(cost)));
                    let left_out = costs[(n + 1) * width + m].saturating_add(u64::from(gap(one)));
                    both.min(left_out).min(costs[n * width + m + 1].saturating_add(u64::from(gap(other))))
                }
            };
            costs[n * width + m] = cost;
        }
    }
    let (mut n, mut m) = (0, 0);
    let mut pairs = Vec::new();
    while n < old.len() || m < new.len() {
        let cost = costs[n * width + m];
        let both = (n < old.len() && m < new.len()).then(|| pairing[n * new.len() + m]).flatten();
        if both.is_some_and(|both| costs[(n + 1) * width + m + 1].saturating_add(u64::from(both)) == cost) {
            pairs.push((Some(n), Some(m)));
            (n, m) = (n + 1, m + 1);
        } else if old.get(n).is_some_and(|item| costs[(n + 1) * width + m].saturating_add(u64::from(gap(item))) == cost)
        {
            pairs.push((Some(n), None));
            n += 1;
        } else {
            pairs.push((None, Some(m)));
            m += 1;
        }
    }
    pairs
}

/// Aligns only equal items, for lists that are too long to look for similar ones.
fn equal_alone(old: &[Item], new: &[Item]) -> Vec<Pair> {
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut number = |item: &Item| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let mut text = String::new();
        for call in match &item.body {
            Body::Step(calls) => calls.as_slice(),
            _ => &[],
        } {
            text.push_str(&format!("{:?} {:?} {:?} {:?}\n", call.kind, call.name, call.details, call.inner.len()));
        }
        if text.is_empty() {
            text = format!("{:?}", item.body);
        }
        *numbers.entry(text).or_insert(next)
    };
    let old: Vec<u32> = old.iter().map(&mut number).collect();
    let new: Vec<u32> = new.iter().map(&mut number).collect();
    in_both(&old, &new)
}

/// Aligns equal numbers. Numbers that occur in only one list are left out of the search, because its time grows with their
/// count times the length of the lists.
fn in_both(old: &[u32], new: &[u32]) -> Vec<Pair> {
    let of = |numbers: &[u32]| numbers.iter().copied().collect::<HashSet<u32>>();
    let (of_old, of_new) = (of(old), of(new));
    let shared = |numbers: &[u32], other: &HashSet<u32>| {
        let kept = numbers.iter().enumerate().filter(|(_, number)| other.contains(number));
        kept.map(|(at, number)| (at, *number)).unzip::<usize, u32, Vec<_>, Vec<_>>()
    };
    let ((old_at, old_kept), (new_at, new_kept)) = (shared(old, &of_new), shared(new, &of_old));
    let mut pairs = Vec::new();
    let (mut n, mut m) = (0, 0);
    let mut up_to = |to: (usize, usize)| {
        pairs.extend((n..to.0).map(|n| (Some(n), None)));
        pairs.extend((m..to.1).map(|m| (None, Some(m))));
        (n, m) = to;
        if to.0 < old.len() && to.1 < new.len() {
            pairs.push((Some(n), Some(m)));
            (n, m) = (n + 1, m + 1);
        }
    };
    for op in difference::between(&old_kept, &new_kept, None) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            let at = |k: usize| Some((*old_at.get(old_index + k)?, *new_at.get(new_index + k)?));
            (0..len).filter_map(at).for_each(&mut up_to);
        }
    }
    up_to((old.len(), new.len()));
    pairs
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::trace::ToolKind;

    fn call(text: usize) -> Call {
        let details = vec![("command".to_owned(), text.to_string())];
        Call { kind: ToolKind::Execute, name: None, details, inner: Vec::new(), events: Vec::new() }
    }

    #[test]
    fn the_calls_of_a_step_are_compared_about_once_each() {
        const CALLS: usize = 2_000;
        let forward: Vec<Call> = (0..CALLS).map(call).collect();
        let backward: Vec<Call> = (0..CALLS).rev().map(call).collect();
        let equal: Vec<Call> = (0..CALLS).map(|_| call(1)).collect();
        for (old, new) in [(&forward, &forward), (&forward, &backward), (&equal, &equal), (&forward, &equal)] {
            let comparisons = Cell::new(0);
            let found = equal_calls(old, new, |one, other| {
                comparisons.set(comparisons.get() + 1);
                one == other
            });
            assert!(comparisons.get() <= CALLS, "{} comparisons", comparisons.get());
            for (n, m) in found.iter().enumerate().filter_map(|(n, m)| Some((n, (*m)?))) {
                assert!(old[n] == new[m]);
            }
        }
    }

    #[test]
    fn long_steps_are_not_compared_with_each_other_if_there_are_many() {
        let step = |of: usize, calls: usize| Item {
            body: Body::Step((0..calls).map(|n| call(of * calls + n)).collect()),
            events: Vec::new(),
        };
        for (steps, calls, compares) in [(1, 3_000, true), (50, 40, true), (250, 40, false)] {
            let old: Vec<Item> = (0..steps).map(|of| step(of, calls)).collect();
            let new: Vec<Item> = (steps..2 * steps).map(|of| step(of, calls)).collect();
            let compared = Cell::new(0);
            let pairs = aligned(&old, &new, weight, |_, _| {
                compared.set(compared.get() + 1);
                None
            });
            assert_eq!((compared.get() > 0, pairs.len()), (compares, 2 * steps), "{steps} steps of {calls} calls");
        }
    }

    #[test]
    fn a_call_alone_is_aligned_as_one_of_several() {
        let other_tool = Call { kind: ToolKind::Read, ..call(1) };
        for (one, other) in [(call(1), call(1)), (call(1), call(2)), (call(1), other_tool.clone())] {
            let (one, other) = ([one], [other]);
            assert_eq!(calls(&one, &other), calls_of_several(&one, &other));
        }
        assert_eq!(calls(&[call(1)], &[other_tool]), [(Some(0), None), (None, Some(0))]);
    }

    proptest! {
        #[test]
        fn numbers_of_one_list_alone_do_not_change_the_alignment(
            old in prop::collection::vec(0_u32..12, 0..60),
            new in prop::collection::vec(6_u32..18, 0..60),
        ) {
            let pairs = in_both(&old, &new);
            let (of_old, of_new): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            prop_assert_eq!(of_old.into_iter().flatten().collect::<Vec<_>>(), (0..old.len()).collect::<Vec<_>>());
            prop_assert_eq!(of_new.into_iter().flatten().collect::<Vec<_>>(), (0..new.len()).collect::<Vec<_>>());
            let same = pairs.iter().filter_map(|(n, m)| Some((old[(*n)?], new[(*m)?])));
            prop_assert!(same.clone().all(|(one, other)| one == other));
            let whole = difference::between(&old, &new, None);
            let most: usize = whole.iter().map(|op| if let DiffOp::Equal { len, .. } = op { *len } else { 0 }).sum();
            prop_assert_eq!(same.count(), most, "as many as the search over everything finds");
        }
    }
}
