//! Decides whether a rule holds, given the positions of the events that its matchers found. Pure.
//!
//! An event that was not shown completely may match, or not. Each choice is a world; a rule holds if it holds in every
//! world, and is broken if it is broken in every world. If the choices of several matchers depend on each other, some of
//! the examined worlds are impossible: a rule may stay unknown then, but is never decided wrongly.

use std::collections::BTreeSet;

use super::hits::{FoundEvents, Hit};
use super::spec::{Bounds, Rule, Vacuous};

/// The finding about one rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// The rule holds; these events show it.
    Holds(Vec<u64>),
    /// The rule is broken by these events; empty if no event can be named.
    Broken(Vec<u64>),
    /// The premise never occurred.
    Vacuous,
    /// The result is unknown, for this reason.
    Unknown(&'static str),
}

/// The reason of an unknown rule that depends on the order of events of different agents.
pub const NO_ORDER: &str =
    "the order of events of different agents decides, and their steps and results do not agree about it";

/// The maximum number of combinations of events that are compared if several agents spoke.
const MAX_COMBINATIONS: usize = 20_000_000;

/// The reason for an unknown rule if events were not shown completely.
pub const NOT_SHOWN: &str = "the agent did not show the deciding details";

/// The reason for an unknown rule if the time for which the engine was stopped decides.
const STOPPED: &str = "evals itself was stopped, and the agent may have worked meanwhile, so seconds are unknown";

/// The facts about a session that rules use besides the found events.
pub struct SessionFacts<'a> {
    /// The ranks of the steps that have calls.
    pub steps: &'a BTreeSet<u64>,
    /// True if the trace has times.
    pub is_timed: bool,
    /// The time for which the engine itself was stopped, in milliseconds. The agent may have worked meanwhile, and what it did is
    /// in the trace only from then on.
    pub stopped_ms: u64,
}

/// The findings of a matcher, in order.
struct List {
    /// The events that match.
    surely: Vec<Hit>,
    /// The events that match or may match.
    possibly: Vec<Hit>,
    /// The number of events that match, and the number of those that match or may match.
    counts: (u64, u64),
}

impl List {
    fn of(found: &FoundEvents) -> Self {
        let surely = found.surely.sorted();
        let mut possibly: Vec<Hit> = surely.iter().copied().chain(found.perhaps.sorted()).collect();
        possibly.sort_unstable();
        possibly.dedup();
        Self { surely, possibly, counts: (found.surely.count, found.surely.count + found.perhaps.count) }
    }
}

/// The findings that occur in some world.
#[derive(Debug, Default, PartialEq)]
pub struct Worlds {
    /// The events that show that the rule holds, if it holds in some world.
    holds: Option<Vec<u64>>,
    /// The events that break the rule, if it is broken in some world.
    broken: Option<Vec<u64>>,
    /// True if the premise does not occur in some world.
    vacuous: bool,
    /// True if times would decide, but are missing.
    untimed: bool,
    /// True if times decide that are unknown because the engine was stopped.
    stopped: bool,
}

impl Worlds {
    /// Returns true if the premise occurs in no world.
    pub fn is_vacuous(&self) -> bool {
        self.vacuous && self.holds.is_none() && self.broken.is_none()
    }

    /// Returns true if the rule has the same results in some world as it has in some of other worlds.
    fn is_like(&self, other: &Self) -> bool {
        let results = |of: &Self| (of.holds.is_some(), of.broken.is_some(), of.vacuous);
        results(self) == results(other)
    }

    /// Returns the finding that all worlds share; `vacuous` is the setting of the rule for a missing premise.
    pub fn agree(self, vacuous: Option<Vacuous>) -> Finding {
        let Self { holds, broken, vacuous: is_vacuous, untimed, stopped } = self;
        let as_held = is_vacuous && vacuous == Some(Vacuous::Pass);
        let as_broken = is_vacuous && vacuous == Some(Vacuous::Fail);
        let is_open = is_vacuous && vacuous.is_none();
        match (holds, broken) {
            (None, None) if is_vacuous => match vacuous {
                None => Finding::Vacuous,
                Some(Vacuous::Pass) => Finding::Holds(Vec::new()),
                Some(Vacuous::Fail) => Finding::Broken(Vec::new()),
            },
            _ if untimed => Finding::Unknown("the recording has no times, so seconds are unknown"),
            _ if stopped => Finding::Unknown(STOPPED),
            (Some(events), None) if !as_broken && !is_open => Finding::Holds(events),
            (None, Some(events)) if !as_held && !is_open => Finding::Broken(events),
            _ => Finding::Unknown(NOT_SHOWN),
        }
    }
}

/// Decides whether a rule holds. The findings are those of its matchers, in the order of [`Rule::matchers`].
pub fn decide(rule: &Rule, found: &[FoundEvents], session: &SessionFacts<'_>) -> Worlds {
    let worlds = decide_with(rule, found, session, 0.0);
    // Between two events there may have been less time than the trace shows, or more.
    let stopped = session.stopped_ms as f64;
    let differs = |longer: f64| !worlds.is_like(&decide_with(rule, found, session, longer));
    let stopped = stopped > 0.0 && matches!(rule, Rule::Within(_)) && [-stopped, stopped].into_iter().any(differs);
    Worlds { stopped, ..worlds }
}

/// Decides whether a rule holds if the limit of its time is longer by some milliseconds.
fn decide_with(rule: &Rule, found: &[FoundEvents], session: &SessionFacts<'_>, longer: f64) -> Worlds {
    let none = List { surely: Vec::new(), possibly: Vec::new(), counts: (0, 0) };
    let lists: Vec<List> = found.iter().map(List::of).collect();
    let list = |n: usize| lists.get(n).unwrap_or(&none);
    let mut speakers = lists.iter().flat_map(|list| &list.possibly).map(|hit| hit.span.speaker);
    let first = speakers.next();
    if rule.is_about_order() && speakers.any(|speaker| Some(speaker) != first) {
        return decide_several(rule, [list(0), list(1), list(2)], session, longer);
    }
    match rule {
        Rule::Eventually(_) => {
            let List { surely, possibly, .. } = list(0);
            Worlds {
                holds: surely.first().or(possibly.first()).map(|first| vec![first.seq]),
                broken: surely.is_empty().then(Vec::new),
                ..Worlds::default()
            }
        }
        Rule::Never(_) => {
            let List { surely, possibly, .. } = list(0);
            Worlds {
                holds: surely.is_empty().then(Vec::new),
                broken: some(seqs(if surely.is_empty() { possibly } else { surely })),
                ..Worlds::default()
            }
        }
        Rule::Count(wanted) => counted(wanted, list(0), list(1)),
        Rule::Before(_) => {
            premised(list(1), list(0), |then, first, _| first.first().is_some_and(|it| it.place < then.place))
        }
        Rule::Response(_) => {
            premised(list(0), list(1), |after, then, _| then.last().is_some_and(|it| it.place > after.place))
        }
        Rule::NeverAfter(_) => {
            let (after, never) = (list(0), list(1));
            let breaks = |after: &[Hit], never: &[Hit]| -> Vec<u64> {
                let Some(first) = after.first() else { return Vec::new() };
                never.iter().filter(|hit| hit.place > first.place).map(|hit| hit.seq).collect()
            };
            // Further events can only break the rule.
            let surely = breaks(&after.surely, &never.surely);
            let holds = surely.is_empty().then(|| after.surely.first().into_iter().map(|hit| hit.seq).collect());
            let broken = if surely.is_empty() { breaks(&after.possibly, &never.possibly) } else { surely };
            Worlds { holds, broken: some(broken), ..Worlds::default() }
        }
        Rule::Immediately(_) => premised(list(0), list(1), |after, then, _| {
            let until = session.steps.range(after.place.rank + 1..).next().copied().unwrap_or(u64::MAX);
            let next = then.get(then.partition_point(|then| then.place <= after.place));
            next.is_some_and(|next| next.place.rank <= until)
        }),
        Rule::Within(wanted) => within(wanted.bounds().longer_by(longer), list(0), list(1), session.is_timed),
        Rule::AbsentBetween(_) => between(list(0), list(1), list(2)),
    }
}

fn seqs(hits: &[Hit]) -> Vec<u64> {
    hits.iter().map(|hit| hit.seq).collect()
}

fn some(events: Vec<u64>) -> Option<Vec<u64>> {
    (!events.is_empty()).then_some(events)
}

/// Decides a rule about each event of a premise: vacuous without any, broken by premise events that no wanted event
/// satisfies. A further wanted event can only satisfy more. `meets` gets whether the event has to be satisfied for certain.
fn premised(premise: &List, wanted: &List, meets: impl Fn(&Hit, &[Hit], bool) -> bool) -> Worlds {
    let lack = |premise: &[Hit], wanted: &[Hit], surely: bool| -> Vec<u64> {
        premise.iter().filter(|hit| !meets(hit, wanted, surely)).map(|hit| hit.seq).collect()
    };
    let shown = || wanted.surely.first().or(wanted.possibly.first()).into_iter().map(|hit| hit.seq).collect();
    // Certain violations are reported; else possible ones.
    let surely = lack(&premise.surely, &wanted.possibly, false);
    let may_hold = match premise.surely.is_empty() {
        true => premise.possibly.iter().any(|hit| meets(hit, &wanted.possibly, false)),
        false => surely.is_empty(),
    };
    let broken = if surely.is_empty() { lack(&premise.possibly, &wanted.surely, true) } else { surely };
    let vacuous = premise.surely.is_empty();
    Worlds { holds: may_hold.then(shown), broken: some(broken), vacuous, ..Worlds::default() }
}

fn counted(wanted: &Bounds, done: &List, tried: &List) -> Worlds {
    let ((done_at_least, done_at_most), (least, most)) = (done.counts, tried.counts);
    let min = wanted.min.unwrap_or(0);
    let max = wanted.max.unwrap_or(u64::MAX);
    let may_hold = done_at_most >= min && least <= max;
    let may_break = done_at_least < min || most > max;
    let broken = if most > max && (least > max || done_at_least >= min) {
        // If there are many events, only the ends are kept; the last ones are above the maximum in any case.
        let hits = if least > max { &tried.surely } else { &tried.possibly };
        let count = if least > max { least } else { most };
        let excess = usize::try_from(count - max).unwrap_or(usize::MAX).min(hits.len());
        hits.iter().rev().take(excess).rev().map(|hit| hit.seq).collect()
    } else {
        seqs(&done.surely)
    };
    Worlds { holds: may_hold.then(|| seqs(&done.surely)), broken: may_break.then_some(broken), ..Worlds::default() }
}

/// The maximum distance of an event.
#[derive(Debug, Clone, Copy)]
pub enum Near {
    /// This number of steps.
    Steps(u64),
    /// This number of milliseconds.
    Milliseconds(f64),
}

impl Near {
    /// Returns the distance with a time that is longer by some milliseconds. A number of steps stays.
    fn longer_by(self, ms: f64) -> Self {
        match self {
            Near::Steps(steps) => Near::Steps(steps),
            Near::Milliseconds(limit) => Near::Milliseconds(limit + ms),
        }
    }
}

fn within(near: Near, after: &List, then: &List, is_timed: bool) -> Worlds {
    let (surely, possibly) = (Later::of(&then.surely), Later::of(&then.possibly));
    let meets = |hit: &Hit, wanted: &[Hit], _: bool| {
        // If the lists have the same length, they are equal: one contains the other.
        let later = if wanted.len() == then.surely.len() { &surely } else { &possibly };
        let at = wanted.partition_point(|then| then.place <= hit.place);
        match (near, wanted.get(at), later.0.get(at)) {
            (Near::Steps(steps), Some(next), _) => hit.place.steps_to(next.place) <= steps,
            (Near::Milliseconds(_), Some(_), Some(_)) if !is_timed => true,
            (Near::Milliseconds(limit), Some(_), Some(time)) => time.saturating_sub(hit.at_ms) as f64 <= limit,
            _ => false,
        }
    };
    untimed_if(near, is_timed, premised(after, then, meets))
}

fn untimed_if(near: Near, is_timed: bool, worlds: Worlds) -> Worlds {
    let seconds = matches!(near, Near::Milliseconds(_)) && !is_timed;
    // A premise event without a following event breaks the rule even if the times are unknown.
    let untimed = seconds && worlds.holds.is_some();
    Worlds { untimed, ..worlds }
}

/// Decides a rule about the order of events of several speakers. Which of two such events is later may be unknown; a world
/// also chooses these orders.
fn decide_several(rule: &Rule, lists: [&List; 3], session: &SessionFacts<'_>, longer: f64) -> Worlds {
    let [one, other, third] = lists;
    let product = lists.iter().map(|list| list.possibly.len().max(1)).fold(1, usize::saturating_mul);
    if product > MAX_COMBINATIONS {
        return Worlds { holds: Some(Vec::new()), broken: Some(Vec::new()), ..Worlds::default() };
    }
    let is_later = |hit: &Hit, than: &Hit, surely: bool| match surely {
        true => hit.is_later_than(than).is_true(),
        false => hit.is_later_than(than).may_be_true(),
    };
    match rule {
        Rule::Before(_) => {
            premised(other, one, |then, first, surely| first.iter().any(|it| is_later(then, it, surely)))
        }
        Rule::Response(_) => {
            premised(one, other, |after, then, surely| then.iter().any(|it| is_later(it, after, surely)))
        }
        Rule::Immediately(_) => premised(one, other, |after, then, surely| {
            let until = session.steps.range(after.place.rank + 1..).next().copied().unwrap_or(u64::MAX);
            then.iter().any(|it| it.place.rank <= until && is_later(it, after, surely))
        }),
        Rule::Within(wanted) => {
            let near = wanted.bounds().longer_by(longer);
            let is_near = |after: &Hit, then: &Hit| match near {
                Near::Steps(steps) => after.place.steps_to(then.place) <= steps,
                Near::Milliseconds(_) if !session.is_timed => true,
                Near::Milliseconds(limit) => then.at_ms.saturating_sub(after.at_ms) as f64 <= limit,
            };
            let worlds = premised(one, other, |after, then, surely| {
                then.iter().any(|it| is_near(after, it) && is_later(it, after, surely))
            });
            untimed_if(near, session.is_timed, worlds)
        }
        Rule::NeverAfter(_) => {
            let breaks = |after: &[Hit], never: &[Hit], surely: bool| -> Vec<u64> {
                let is_after = |hit: &&Hit| after.iter().any(|first| is_later(hit, first, surely));
                never.iter().filter(is_after).map(|hit| hit.seq).collect()
            };
            let surely = breaks(&one.surely, &other.surely, true);
            let holds = surely.is_empty().then(|| one.surely.first().into_iter().map(|hit| hit.seq).collect());
            let broken = if surely.is_empty() { breaks(&one.possibly, &other.possibly, false) } else { surely };
            Worlds { holds, broken: some(broken), ..Worlds::default() }
        }
        Rule::AbsentBetween(_) => between_several(one, other, third, is_later),
        Rule::Eventually(_) | Rule::Never(_) | Rule::Count(_) => Worlds::default(),
    }
}

/// Decides whether no forbidden event is between events of several speakers.
fn between_several(from: &List, to: &List, never: &List, is_later: impl Fn(&Hit, &Hit, bool) -> bool) -> Worlds {
    let mut worlds = Worlds { vacuous: true, ..Worlds::default() };
    let (mut surely, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
    let mut pairs = false;
    for end in &to.possibly {
        let before = |hits: &[Hit], surely: bool| -> Vec<Hit> {
            hits.iter().filter(|start| is_later(end, start, surely)).copied().collect()
        };
        let (known, possible) = (before(&from.surely, true), before(&from.possibly, false));
        if possible.is_empty() {
            continue;
        }
        pairs = true;
        let is_sure = to.surely.binary_search(end).is_ok() && !known.is_empty();
        worlds.vacuous &= !is_sure;
        for hit in &never.possibly {
            let follows = |starts: &[Hit], surely: bool| starts.iter().all(|start| is_later(hit, start, surely));
            // The span begins at the last start, so an event in it follows every start that is known to be before its end.
            let follows_one = possible.iter().any(|start| is_later(hit, start, false));
            if is_later(end, hit, false) && follows_one && follows(&known, false) {
                perhaps.insert(hit.seq);
            }
            let is_found = never.surely.binary_search(hit).is_ok();
            if is_sure && is_found && is_later(end, hit, true) && follows(&possible, true) {
                surely.insert(hit.seq);
            }
        }
    }
    if pairs {
        worlds.holds = surely.is_empty().then(Vec::new);
        let events = if surely.is_empty() { perhaps } else { surely };
        worlds.broken = some(events.into_iter().take(100).collect());
    }
    worlds
}

/// For each event of a list, the earliest time of the events from there on.
struct Later(Vec<u64>);

impl Later {
    fn of(hits: &[Hit]) -> Self {
        let mut earliest: Vec<u64> = hits.iter().map(|hit| hit.at_ms).collect();
        for n in (1..earliest.len()).rev() {
            earliest[n - 1] = earliest[n - 1].min(earliest[n]);
        }
        Self(earliest)
    }
}

/// Returns the last event before a position.
fn last_before<'a>(hits: &'a [Hit], end: &Hit) -> Option<&'a Hit> {
    hits.get(..hits.partition_point(|hit| hit.place < end.place)).and_then(<[Hit]>::last)
}

fn between(from: &List, to: &List, never: &List) -> Worlds {
    let inside = |never: &[Hit], start: &Hit, end: &Hit| -> Vec<u64> {
        let inside = never.iter().skip(never.partition_point(|hit| hit.place <= start.place));
        inside.take_while(|hit| hit.place < end.place).take(100).map(|hit| hit.seq).collect()
    };
    let mut worlds = Worlds { vacuous: true, ..Worlds::default() };
    let (mut surely, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
    let mut pairs = false;
    for end in &to.possibly {
        let known = last_before(&from.surely, end);
        // The widest possible span: a certain pair can only become narrower.
        let widest = known.or_else(|| from.possibly.first().filter(|first| first.place < end.place));
        let Some(widest) = widest else { continue };
        pairs = true;
        perhaps.extend(inside(&never.possibly, widest, end));
        let is_sure = to.surely.binary_search(end).is_ok() && known.is_some();
        if is_sure {
            worlds.vacuous = false;
            // The narrowest span, with the events that are certainly in it.
            if let Some(narrowest) = last_before(&from.possibly, end) {
                surely.extend(inside(&never.surely, narrowest, end));
            }
        }
    }
    if pairs {
        worlds.holds = surely.is_empty().then(Vec::new);
        let events = if surely.is_empty() { perhaps } else { surely };
        worlds.broken = some(events.into_iter().take(100).collect());
    }
    worlds
}

#[cfg(test)]
mod tests;
