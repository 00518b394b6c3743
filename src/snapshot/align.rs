//! Aligns two lists at minimum cost: items in both, and items in only one. Pure.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{Body, Call, Item};

/// The cost of removing or adding a call. Changing a call into another of the same tool costs at most
/// [`MOST_CHANGED`].
const CALL: u32 = 100;
/// The maximum cost of a change: less than removing one call and adding another, but more for two calls, so that an
/// equal call is preferred.
const MOST_CHANGED: u32 = 150;
/// The cost of an item that is not a step.
const OTHER: u32 = 60;
/// The maximum number of table cells for the search. Above it, only equal items are matched.
const LARGEST: usize = 1 << 20;

/// Two positions that belong together, or one that has no counterpart.
pub type Pair = (Option<usize>, Option<usize>);

/// Aligns the items of two shapes. Each position of either shape occurs once, in order.
pub fn items(old: &[Item], new: &[Item]) -> Vec<Pair> {
    aligned(old, new, weight, item_cost)
}

/// Aligns the calls of two steps, which have no order. Each position of either step occurs once.
pub fn calls(old: &[Call], new: &[Call]) -> Vec<Pair> {
    let mut taken = vec![false; new.len()];
    let mut of_old: Vec<Option<usize>> = vec![None; old.len()];
    let mut open: Vec<(u32, usize, usize)> = Vec::new();
    for (n, call) in old.iter().enumerate() {
        if let Some(same) = new.iter().enumerate().position(|(m, other)| !is(&taken, m) && call == other) {
            (of_old[n], taken[same]) = (Some(same), true);
        }
    }
    for (n, call) in old.iter().enumerate().filter(|(n, _)| of_old[*n].is_none()).take(300) {
        let others = new.iter().enumerate().filter(|(m, _)| !is(&taken, *m)).take(300);
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
    Some(10 + (MOST_CHANGED - 20) * (all - same.min(all)) / all + inner)
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
    let middle = if old_rest.len().saturating_mul(new_rest.len()) > LARGEST {
        equal_alone(old_rest, new_rest)
    } else {
        least(old_rest, new_rest, gap, pair)
    };
    pairs.extend(middle.into_iter().map(|(n, m)| (n.map(|n| n + head), m.map(|m| m + head))));
    let (old_tail, new_tail) = (old.len() - tail, new.len() - tail);
    pairs.extend((0..tail).map(|n| (Some(old_tail + n), Some(new_tail + n))));
    pairs
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
    let mut pairs = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            pairs.extend((0..len).map(|n| (Some(old_index + n), Some(new_index + n))));
        } else {
            pairs.extend(op.old_range().map(|n| (Some(n), None)));
            pairs.extend(op.new_range().map(|m| (None, Some(m))));
        }
    }
    pairs
}
