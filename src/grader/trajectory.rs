//! `trajectory`: compares the tool calls of a trial with the expected ones, in one of several modes.

use std::marker::PhantomData;
use std::ops::Range;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize};

use super::sequence::{Chain, Compared, MadeCall, has_several_speakers, has_unknown_order};
use super::speakers::Span;
use crate::matcher::arguments::MatchArgs;
use crate::matcher::{Matcher, Speaker};
use crate::reason_text;
use crate::text::plural;
use crate::yaml::forms::{self, AnyForm, Forms, deserialize_forms};
use crate::yaml::lists::not_null;
use async_trait::async_trait;

use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::{Bounds, Grade, Score};
use crate::judgement::Judgement;
use crate::trace::{FollowedLink, Lost, ToolKind, UnseenAction};
use crate::values::{Fraction, NameGlob};

/// The maximum number of calls whose labels are kept for a reason.
const LABELS: usize = 200;
/// The maximum number of calls in a reason.
const SHOWN: usize = 5;

/// The expected tool calls, and how they are compared with those that were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a map such as `{mode: subset, expected: [{kind: edit}]}`"
)]
pub struct Trajectory {
    /// The mode of the comparison.
    #[serde(default)]
    pub mode: Mode,
    /// The expected calls in their order; a list within the list is one step of parallel calls.
    #[serde(deserialize_with = "expected")]
    pub expected: Vec<Item>,
    /// The comparison of arguments, for calls that do not set `match-args`.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub match_args: Option<MatchArgs>,
    /// The share that is enough to pass, for modes that give one.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
    /// The agent whose calls are compared.
    #[serde(default = "main_agent")]
    pub agent: Speaker,
}

fn main_agent() -> Speaker {
    Speaker::Main
}

/// A mode of comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The calls equal the expected ones, position by position.
    Exact,
    /// The steps equal the expected steps in number and order, and each step has exactly its expected calls.
    Strict,
    /// The expected calls were made in this order; others may come between.
    #[default]
    InOrder,
    /// Each expected call was made, by a different call each.
    AnyOrder,
    /// Equivalent to `any-order`.
    Superset,
    /// Each call that was made matches a different expected call.
    Subset,
    /// `superset` and `subset` together: the same calls, in any order.
    Unordered,
    /// The share of the calls that were expected.
    Precision,
    /// The share of the expected calls that were made.
    Recall,
    /// The harmonic mean of `precision` and `recall`.
    F1,
    /// As `f1`, but only calls in the expected order count.
    OrderedF1,
}

impl Mode {
    /// Returns true if calls besides the expected ones change the result.
    fn counts_more(self) -> bool {
        !matches!(self, Mode::InOrder | Mode::AnyOrder | Mode::Superset | Mode::Recall)
    }

    /// Returns true if a call that matches nothing fails the grader, whatever other calls there are.
    fn refuses_more(self) -> bool {
        matches!(self, Mode::Exact | Mode::Strict | Mode::Subset | Mode::Unordered)
    }

    /// Returns true if the order of the calls changes the result.
    fn has_order(self) -> bool {
        matches!(self, Mode::Exact | Mode::Strict | Mode::InOrder | Mode::OrderedF1)
    }

    fn gives_a_share(self) -> bool {
        matches!(self, Mode::Precision | Mode::Recall | Mode::F1 | Mode::OrderedF1)
    }
}

/// An expected item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Item {
    Call(Box<Matcher>),
    /// The calls of one step.
    Step(Vec<Matcher>),
}

impl Item {
    fn calls(&self) -> &[Matcher] {
        match self {
            Item::Call(matcher) => std::slice::from_ref(matcher),
            Item::Step(matchers) => matchers,
        }
    }
}

/// A matcher, or the name of a tool.
struct Named(Matcher);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Item::deserialize(deserializer)? {
            Item::Call(matcher) => Ok(Named(*matcher)),
            Item::Step(_) => Err(D::Error::custom("a step holds calls, and no further steps")),
        }
    }
}

impl<'de> Forms<'de> for Item {
    const EXPECTED: &'static str =
        "a call such as `{kind: edit, path: \"src/**\"}`, the name of a tool, or a list of calls";

    fn from_text<E: Error>(name: &str) -> Result<Self, E> {
        let name: NameGlob = name.parse().map_err(E::custom)?;
        Ok(Item::Call(Box::new(Matcher { name: Some(name), ..Matcher::default() })))
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Matcher::deserialize(MapAccessDeserializer::new(map)).map(|matcher| Item::Call(Box::new(matcher)))
    }

    fn from_list<A: SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        let calls = Vec::<Named>::deserialize(SeqAccessDeserializer::new(seq))?;
        if calls.is_empty() {
            return Err(A::Error::custom("this step is empty: it would expect nothing"));
        }
        Ok(Item::Step(calls.into_iter().map(|named| named.0).collect()))
    }
}

deserialize_forms!(Item, deserialize_any);

/// Reads the expected calls. An empty list is refused, because its meaning would differ from mode to mode.
fn expected<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Item>, D::Error> {
    deserializer.deserialize_seq(AnyForm::<Expected>(PhantomData)).map(|expected| expected.0)
}

struct Expected(Vec<Item>);

impl<'de> Forms<'de> for Expected {
    const EXPECTED: &'static str = "a list of calls";

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        let items: Vec<Item> = forms::list(list)?;
        if items.is_empty() {
            return Err(A::Error::custom(
                "nothing is expected here, so nothing would be checked; if no call is allowed, write `tool-calls: \
                 {none: true}`",
            ));
        }
        Ok(Expected(items))
    }
}

#[cfg(test)]
impl JsonSchema for Item {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExpectedCall".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let call = generator.subschema_for::<Matcher>();
        json_schema!({
            "description": "a call, the name of a tool, or a list of calls that are one step",
            "anyOf": [
                {"type": "string"},
                call,
                {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}, call]}}
            ]
        })
    }
}

impl Trajectory {
    /// Returns the expected calls in order, each with its setting for arguments.
    fn calls(&self) -> Vec<Matcher> {
        let calls = self.expected.iter().flat_map(Item::calls);
        calls.map(|matcher| matcher.clone().comparing(self.match_args.as_ref())).collect()
    }
}

impl GraderSpec for Trajectory {
    fn depends_on_loss(&self, lost: Lost) -> bool {
        match lost {
            Lost::Line | Lost::Call | Lost::Outcome => true,
            // Two calls of one speaker are in the order of their steps.
            Lost::Caller => {
                let names_speaker = self.expected.iter().flat_map(Item::calls).any(Matcher::names_speaker);
                self.agent != Speaker::Any || self.mode.has_order() || names_speaker
            }
            Lost::Text | Lost::Speaker => false,
        }
    }

    fn only_finds(&self) -> bool {
        !self.mode.counts_more()
    }

    fn depends_on_action(&self, action: &UnseenAction, workspace: Option<&str>) -> bool {
        let is_about_files = |matcher: &Matcher| matcher.kind.is_some() || matcher.path.is_some();
        let calls = self.calls();
        // One more call is also one that was not expected.
        calls.iter().any(|matcher| matcher.may_be(action, workspace))
            || (self.mode.counts_more() && calls.iter().any(is_about_files))
    }

    fn depends_on_tool(&self, tool: &str, kind: ToolKind) -> bool {
        self.calls().iter().any(|matcher| matcher.asks_for(tool, kind))
    }

    fn depends_on_path_name(&self, link: &FollowedLink, workspace: Option<&str>) -> bool {
        self.calls().iter().any(|matcher| matcher.distinguishes(link, workspace))
    }

    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        let refused = self.calls().iter().zip(1..).find_map(|(matcher, n)| {
            Some(format!("checks nothing: entry {n} of `expected` {}", matcher.refusal_as_expected()?))
        });
        let min = self.min.map(Fraction::get);
        if refused.is_some() {
            refused
        } else if self.expected.is_empty() {
            Some("checks nothing: `expected` is empty".to_owned())
        } else if min == Some(0.0) {
            Some("checks nothing: with `min: 0` it always passes".to_owned())
        } else if min.is_some_and(|min| min < 1.0) && !self.mode.gives_a_share() {
            Some("has a `min`, which only the modes precision, recall, f1 and ordered-f1 take".to_owned())
        } else {
            None
        }
    }

    fn watch(&self) -> Box<dyn Observer> {
        let expected = self.calls();
        Box::new(TrajectoryObserver {
            surely: AssumedCalls::new(expected.len()),
            perhaps: None,
            unsure: None,
            is_count_unsure: false,
            expected,
            wanted: self.clone(),
            labels: Vec::new(),
            count: 0,
        })
    }
}

/// The calls, under one assumption about the values that the agent did not show.
#[derive(Clone)]
struct AssumedCalls {
    /// For each expected call, how many matching calls are kept.
    candidates: Vec<usize>,
    made: Vec<MadeCall>,
    /// The first calls that match nothing.
    extra: Vec<u64>,
}

impl AssumedCalls {
    fn new(expected: usize) -> Self {
        Self { candidates: vec![0; expected], made: Vec::new(), extra: Vec::new() }
    }

    fn take(&mut self, mode: Mode, call: &Subject<'_>, fits: Vec<usize>) {
        if fits.is_empty() && self.extra.len() < LABELS {
            self.extra.push(call.seq);
        }
        if self.keeps(mode, &fits) {
            for fit in &fits {
                self.candidates[*fit] += 1;
            }
            let span = Span::of_call(call);
            self.made.push(MadeCall { seq: call.seq, step: call.call.step, span, fits });
        }
    }

    /// Returns true if a call can still affect the result. Results that depend on counts alone need no calls.
    fn keeps(&self, mode: Mode, fits: &[usize]) -> bool {
        let expected = self.candidates.len();
        match mode {
            // A single call more than expected decides the result.
            Mode::Exact | Mode::Strict | Mode::Subset | Mode::Unordered => self.made.len() <= expected,
            // More calls with the same matches than expected calls never help.
            Mode::AnyOrder | Mode::Superset | Mode::Precision | Mode::Recall | Mode::F1 => {
                fits.iter().any(|fit| self.candidates.get(*fit).is_some_and(|kept| *kept < expected))
            }
            Mode::InOrder | Mode::OrderedF1 => !fits.is_empty(),
        }
    }

    fn unmatched(&self, matching: &[Option<usize>]) -> Vec<u64> {
        let mut events = self.extra.clone();
        let used: Vec<usize> = matching.iter().flatten().copied().collect();
        let left = self.made.iter().enumerate().filter(|(n, call)| !call.fits.is_empty() && !used.contains(n));
        events.extend(left.map(|(_, call)| call.seq).take(LABELS));
        events.sort_unstable();
        events
    }
}

struct TrajectoryObserver {
    wanted: Trajectory,
    expected: Vec<Matcher>,
    /// The calls with their certain matches.
    surely: AssumedCalls,
    /// The calls with their possible matches. Absent while they are the certain ones.
    perhaps: Option<AssumedCalls>,
    /// The first call that was not shown completely.
    unsure: Option<String>,
    /// True if some call counts or does not count depending on values that the agent did not show.
    is_count_unsure: bool,
    /// Short descriptions of the first calls, by their `seq`.
    labels: Vec<(u64, String)>,
    count: u64,
}

#[async_trait]
impl Observer for TrajectoryObserver {
    fn call(&mut self, call: &Subject<'_>) {
        let is_whose = match self.wanted.agent {
            Speaker::Main => call.parent.is_none(),
            Speaker::Sub => call.parent.is_some(),
            Speaker::Any => true,
        };
        if !is_whose {
            return;
        }
        let fits: Vec<Judgement> = self.expected.iter().map(|matcher| matcher.finds(call)).collect();
        let which = |takes: fn(Judgement) -> bool| -> Vec<usize> {
            fits.iter().enumerate().filter(|(_, fits)| takes(**fits)).map(|(n, _)| n).collect()
        };
        let (surely, perhaps) = (which(Judgement::is_true), which(Judgement::may_be_true));
        // A refused call does not count, unless it is expected.
        if !call.carried_out().may_be_true() && perhaps.is_empty() {
            return;
        }
        let counts = call.carried_out().is_true() || !surely.is_empty();
        self.is_count_unsure |= !counts;
        if surely != perhaps || call.carried_out().is_unknown() {
            self.unsure.get_or_insert_with(|| format!("{} (event {})", call.label(), call.seq));
            self.perhaps.get_or_insert_with(|| self.surely.clone());
        }
        self.count += u64::from(counts);
        if self.labels.len() < LABELS {
            self.labels.push((call.seq, call.label()));
        }
        let mode = self.wanted.mode;
        if let Some(side) = &mut self.perhaps {
            side.take(mode, call, perhaps);
        }
        if counts {
            self.surely.take(mode, call, surely);
        }
    }

    async fn finish(self: Box<Self>, _: &Evidence<'_>) -> Findings {
        self.grade().into()
    }
}

impl TrajectoryObserver {
    fn grade(mut self) -> Grade {
        // Sub-agents alternate within their steps.
        for side in [Some(&mut self.surely), self.perhaps.as_mut()].into_iter().flatten() {
            side.made.sort_by_key(|call| (call.step, call.seq));
        }
        let items = self.items();
        let min = self.wanted.min.unwrap_or(Fraction::ONE);
        let compared = Compared::new(&self.surely.made, &items);
        let matching = compared.matching();
        let value = self.value(&compared, &matching);
        let passed = value >= min;
        if [Some(&self.surely), self.perhaps.as_ref()].into_iter().flatten().any(|side| self.has_no_order(side, min)) {
            return Grade::ungraded(format!(
                "whether the calls are the expected ones, {}, is unknown: the order of calls of different agents decides, and \
                 their steps and results do not agree about it",
                mode_word(self.wanted.mode)
            ));
        }
        let mut bounds = None;
        if let Some(label) = &self.unsure {
            let best = self.perhaps.as_ref().map_or(value, |side| {
                let compared = Compared::new(&side.made, &items);
                self.value(&compared, &compared.matching())
            });
            let is_open =
                passed != (best >= min) || self.is_count_unsure && (self.wanted.mode.counts_more() || self.count == 0);
            if is_open {
                return Grade::ungraded(format!(
                    "whether the calls are the expected ones, {}, is unknown: the agent did not show enough of {label}",
                    mode_word(self.wanted.mode)
                ));
            }
            // A call that may not count changes the value in either direction.
            let (low, high) = match self.is_count_unsure {
                true => (Fraction::ZERO, Fraction::ONE),
                false if best < value => (best, value),
                false => (value, best),
            };
            bounds = Some(Bounds { low, high }).filter(|_| !passed && low != high);
        }
        let reason = self.reason(&compared, &matching, value, passed);
        let matched = matching.iter().flatten().filter_map(|n| self.surely.made.get(*n)).map(|call| call.seq);
        let events: Vec<u64> = if passed { matched.collect() } else { self.surely.unmatched(&matching) };
        let lacks = !passed && (!self.wanted.mode.refuses_more() || self.surely.extra.is_empty());
        Grade::Scored(Score { lacks, bounds, ..Score::new(value, passed, reason) })
            .pointing_at(events.into_iter().take(100))
    }
}

impl TrajectoryObserver {
    fn items(&self) -> Vec<Range<usize>> {
        let mut next = 0;
        let items = self.wanted.expected.iter().map(|item| {
            let start = next;
            next += item.calls().len();
            start..next
        });
        items.collect()
    }

    /// Returns true if the result depends on the order of calls of different agents, and this order is unknown.
    fn has_no_order(&self, side: &AssumedCalls, min: Fraction) -> bool {
        let mode = self.wanted.mode;
        if !mode.has_order() || !has_several_speakers(&side.made) || !has_unknown_order(&side.made) {
            return false;
        }
        let items = self.items();
        let passes = |made: &[MadeCall]| {
            let compared = Compared::new(made, &items);
            self.value(&compared, &compared.matching()) >= min
        };
        // The calls in the order of their events: the calls of a step stay together while nothing is between them.
        let mut by_events = side.made.clone();
        by_events.sort_by_key(|call| call.seq);
        let (mut step, mut last) = (0, None);
        for call in &mut by_events {
            let of = Some((call.span.speaker, call.step));
            step += u64::from(last.is_some() && last != of);
            (last, call.step) = (of, step);
        }
        match (passes(&side.made), passes(&by_events)) {
            (true, true) => false,
            (false, false) => self.may_pass_in_some_order(side, min),
            _ => true,
        }
    }

    /// Returns true if some order of the calls may pass, as far as their order is unknown.
    fn may_pass_in_some_order(&self, side: &AssumedCalls, min: Fraction) -> bool {
        let expected = self.expected.len();
        let matched = Compared::new(&side.made, &self.items()).matching().iter().flatten().count();
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        match self.wanted.mode {
            Mode::InOrder => {
                let mut chain = Chain::default();
                side.made.iter().for_each(|call| chain.call(call.clone(), Vec::new()));
                chain.may_be_found(expected)
            }
            Mode::OrderedF1 => Fraction::of(2 * matched, count.saturating_add(expected)) >= min,
            _ => matched == expected && count == expected,
        }
    }

    fn value(&self, compared: &Compared<'_>, matching: &[Option<usize>]) -> Fraction {
        let matched = matching.iter().flatten().count();
        let (expected, count) = (self.expected.len(), usize::try_from(self.count).unwrap_or(usize::MAX));
        let yes = |holds: bool| if holds { Fraction::ONE } else { Fraction::ZERO };
        let share = |part: usize, whole: usize| if count == 0 { Fraction::ZERO } else { Fraction::of(part, whole) };
        match self.wanted.mode {
            Mode::Exact => yes(count == expected && compared.exact()),
            Mode::Strict => yes(count == expected && compared.strict()),
            Mode::InOrder => yes(compared.in_order() == self.wanted.expected.len()),
            Mode::AnyOrder | Mode::Superset => yes(matched == expected),
            Mode::Subset => yes(matched == count),
            Mode::Unordered => yes(matched == expected && matched == count),
            Mode::Precision => share(matched, count),
            Mode::Recall => share(matched, expected),
            // 2PR/(P+R) with P = m/count and R = m/expected.
            Mode::F1 => share(2 * matched, count.saturating_add(expected)),
            Mode::OrderedF1 => share(2 * compared.common(), count.saturating_add(expected)),
        }
    }

    fn label(&self, seq: u64) -> String {
        match self.labels.iter().find(|(known, _)| *known == seq) {
            Some((_, label)) => format!("{label} (event {seq})"),
            None => format!("event {seq}"),
        }
    }

    fn reason(&self, compared: &Compared<'_>, matching: &[Option<usize>], value: Fraction, passed: bool) -> String {
        let matched = matching.iter().flatten().count();
        let (expected, count) = (self.expected.len(), self.count);
        let mode = mode_word(self.wanted.mode);
        let shares = format!("{matched} of {} expected, {} made", plural(expected as u64, "call"), count);
        let head = if self.wanted.mode.gives_a_share() {
            let min = self.wanted.min.unwrap_or(Fraction::ONE);
            let value = (value.get() * 1e6).round() / 1e6;
            format!("{mode} is {value}{} {min} ({shares})", if passed { ", at least" } else { ", below" })
        } else if passed {
            return format!("the calls are the expected ones, {mode} ({shares})");
        } else {
            format!("the calls are not the expected ones, {mode} ({shares})")
        };
        if passed {
            return head;
        }
        let missing: Vec<String> = self
            .expected
            .iter()
            .zip(matching)
            .filter(|(_, call)| call.is_none())
            .map(|(matcher, _)| format!("{matcher} has no call of its own"))
            .collect();
        let extra: Vec<String> = self.surely.unmatched(matching).iter().map(|seq| self.label(*seq)).collect();
        let mut parts = vec![head];
        if !matches!(self.wanted.mode, Mode::Subset | Mode::Precision) && !missing.is_empty() {
            parts.push(reason_text::first_few_long(&missing, SHOWN));
        }
        let allows_more = !self.wanted.mode.counts_more();
        if !allows_more && !extra.is_empty() {
            parts.push(format!("not expected: {}", reason_text::first_few(&extra, SHOWN)));
        }
        if missing.is_empty() && (allows_more || extra.is_empty()) {
            parts.extend(self.wrong_order(compared));
        }
        if !missing.is_empty() && allows_more {
            let made: Vec<String> = self.labels.iter().map(|(seq, _)| self.label(*seq)).collect();
            let none = || "there were no calls".to_owned();
            parts.push(if made.is_empty() {
                none()
            } else {
                format!("the calls were: {}", reason_text::first_few(&made, 8))
            });
        }
        parts.join("; ")
    }

    /// Returns the place where the order differs, if nothing else differs.
    fn wrong_order(&self, compared: &Compared<'_>) -> Option<String> {
        let items = self.items();
        let done = compared.in_order();
        if let Some(item) = items.get(done) {
            let wanted = self.expected.get(item.start)?;
            return Some(match done {
                0 => format!("{wanted} was not called at the beginning, where it is expected"),
                _ => format!("{wanted} was not called after the {} before it", plural(done as u64, "expected item")),
            });
        }
        let steps: Vec<String> = {
            let mut steps: Vec<(u64, usize)> = Vec::new();
            for call in &self.surely.made {
                match steps.last_mut() {
                    Some((step, calls)) if *step == call.step => *calls += 1,
                    _ => steps.push((call.step, 1)),
                }
            }
            steps.iter().map(|(_, calls)| calls.to_string()).collect()
        };
        let wanted: Vec<String> = items.iter().map(|item| item.len().to_string()).collect();
        Some(format!(
            "the steps hold {} calls, {} expected",
            reason_text::first_few(&steps, 20),
            reason_text::first_few(&wanted, 20)
        ))
    }
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Exact => "position by position",
        Mode::Strict => "step by step",
        Mode::InOrder => "in order",
        Mode::AnyOrder | Mode::Superset => "in any order",
        Mode::Subset => "without other calls",
        Mode::Unordered => "in any order and without other calls",
        Mode::Precision => "precision",
        Mode::Recall => "recall",
        Mode::F1 => "f1",
        Mode::OrderedF1 => "ordered-f1",
    }
}
