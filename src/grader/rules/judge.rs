//! Whether a rule holds, given where the events that its matchers found stand. Pure.

use std::collections::BTreeSet;

use super::hits::{Hit, Hits};
use super::written::{Bounds, Rule, Vacuous};

/// What is known of one rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// It holds; these events show it.
    Holds(Vec<u64>),
    /// These events break it, or nothing does that could be pointed at.
    Broken(Vec<u64>),
    /// Its premise never occurred.
    Vacuous,
    /// Something is not known: what.
    Unknown(&'static str),
}

/// What rules need to know beside the events that were found.
pub struct Session<'a> {
    /// The ranks of the steps that have calls.
    pub steps: &'a BTreeSet<u64>,
    /// Whether seconds can be told.
    pub is_timed: bool,
}

/// Judges a rule. The hits are those of its matchers, in the order of [`Rule::matchers`].
pub fn judge(rule: &Rule, hits: &[Hits], session: &Session<'_>) -> Finding {
    let sorted: Vec<Vec<Hit>> = hits.iter().map(Hits::sorted).collect();
    let list = |n: usize| sorted.get(n).map(Vec::as_slice).unwrap_or_default();
    let count = |n: usize| hits.get(n).map_or(0, |hits| hits.count);
    match rule {
        Rule::Eventually(_) => match list(0).first() {
            Some(first) => Finding::Holds(vec![first.seq]),
            None => Finding::Broken(Vec::new()),
        },
        Rule::Never(_) => broken_by(list(0).iter().copied(), Vec::new),
        Rule::Count(wanted) => counted(wanted, count(0), count(1), list(0), list(1)),
        Rule::Before(_) => {
            let (first, then) = (list(0), list(1));
            let missing = |hit: &Hit| first.first().is_none_or(|first| first.place >= hit.place);
            premised(then, missing, || first.first().into_iter().map(|hit| hit.seq).collect())
        }
        Rule::Response(_) => {
            let (after, then) = (list(0), list(1));
            let missing = |hit: &Hit| then.last().is_none_or(|last| last.place <= hit.place);
            premised(after, missing, || then.last().into_iter().map(|hit| hit.seq).collect())
        }
        Rule::NeverAfter(_) => match list(0).first() {
            None => Finding::Holds(Vec::new()),
            Some(first) => broken_by(list(1).iter().copied().filter(|hit| hit.place > first.place), || vec![first.seq]),
        },
        Rule::Immediately(_) => {
            let (after, then) = (list(0), list(1));
            let missing = |hit: &Hit| {
                let until = session.steps.range(hit.place.rank + 1..).next().copied().unwrap_or(u64::MAX);
                let next = then.get(then.partition_point(|then| then.place <= hit.place));
                next.is_none_or(|next| next.place.rank > until)
            };
            premised(after, missing, || then.first().into_iter().map(|hit| hit.seq).collect())
        }
        Rule::Within(wanted) => within(wanted.bounds(), list(0), list(1), session.is_timed),
        Rule::AbsentBetween(_) => between(list(0), list(1), list(2)),
    }
}

/// Broken by these events; without any it holds.
fn broken_by(events: impl Iterator<Item = Hit>, shown: impl FnOnce() -> Vec<u64>) -> Finding {
    let events: Vec<u64> = events.map(|hit| hit.seq).collect();
    if events.is_empty() { Finding::Holds(shown()) } else { Finding::Broken(events) }
}

/// A rule about each event of a premise: vacuous without any, broken by those that lack something.
fn premised(premise: &[Hit], lacks: impl Fn(&Hit) -> bool, shown: impl FnOnce() -> Vec<u64>) -> Finding {
    if premise.is_empty() {
        return Finding::Vacuous;
    }
    broken_by(premise.iter().copied().filter(|hit| lacks(hit)), shown)
}

fn counted(wanted: &Bounds, carried_out: u64, attempts: u64, found: &[Hit], tried: &[Hit]) -> Finding {
    if let Some(max) = wanted.max
        && attempts > max
    {
        // Of many only the ends are kept; the last ones are too many in any case.
        let over = usize::try_from(attempts - max).unwrap_or(usize::MAX).min(tried.len());
        return Finding::Broken(tried.iter().rev().take(over).rev().map(|hit| hit.seq).collect());
    }
    let shown = found.iter().map(|hit| hit.seq).collect();
    if wanted.min.is_some_and(|min| carried_out < min) { Finding::Broken(shown) } else { Finding::Holds(shown) }
}

/// How near something has to be.
#[derive(Debug, Clone, Copy)]
pub enum Near {
    /// So many steps.
    Steps(u64),
    /// So many milliseconds.
    Milliseconds(f64),
}

fn within(near: Near, after: &[Hit], then: &[Hit], is_timed: bool) -> Finding {
    if after.is_empty() {
        return Finding::Vacuous;
    }
    // The earliest time of what stands here or later.
    let mut earliest: Vec<u64> = then.iter().map(|hit| hit.at_ms).collect();
    for n in (1..earliest.len()).rev() {
        earliest[n - 1] = earliest[n - 1].min(earliest[n]);
    }
    let mut broken = Vec::new();
    let mut untold = false;
    for hit in after {
        let later = then.partition_point(|then| then.place <= hit.place);
        let (next, time) = (then.get(later), earliest.get(later));
        let holds = match (near, next, time) {
            (Near::Steps(steps), Some(next), _) => hit.place.steps_to(next.place) <= steps,
            (Near::Milliseconds(_), Some(_), Some(_)) if !is_timed => {
                untold = true;
                true
            }
            (Near::Milliseconds(limit), Some(_), Some(time)) => time.saturating_sub(hit.at_ms) as f64 <= limit,
            _ => false,
        };
        if !holds {
            broken.push(hit.seq);
        }
    }
    match broken.is_empty() {
        false => Finding::Broken(broken),
        true if untold => Finding::Unknown("the recording has no times, so seconds cannot be told"),
        true => Finding::Holds(then.first().into_iter().map(|hit| hit.seq).collect()),
    }
}

fn between(from: &[Hit], to: &[Hit], never: &[Hit]) -> Finding {
    let mut pairs = 0;
    let mut broken = BTreeSet::new();
    for end in to {
        let Some(start) = from.get(..from.partition_point(|from| from.place < end.place)).and_then(<[Hit]>::last)
        else {
            continue;
        };
        pairs += 1;
        let inside = never.iter().skip(never.partition_point(|hit| hit.place <= start.place));
        broken.extend(inside.take_while(|hit| hit.place < end.place).take(100).map(|hit| hit.seq));
    }
    match pairs {
        0 => Finding::Vacuous,
        _ if broken.is_empty() => Finding::Holds(Vec::new()),
        _ => Finding::Broken(broken.into_iter().take(100).collect()),
    }
}

/// What becomes of a rule whose premise never occurred.
pub fn of_vacuous(vacuous: Option<Vacuous>) -> Finding {
    match vacuous {
        None => Finding::Vacuous,
        Some(Vacuous::Pass) => Finding::Holds(Vec::new()),
        Some(Vacuous::Fail) => Finding::Broken(Vec::new()),
    }
}
