//! `tool-calls`: checks which calls the agent made, and which it must not make.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::assign::{Want, assign};
use super::checks::Checks;
use super::sequence::{Chain, Follow, MadeCall};
use super::shared_keys::{SharedKeys, Split};
use super::speakers::Span;
use crate::matcher::Matcher;
use crate::matcher::refusal::refuse_list;
use crate::matcher::subject::CUT;
use crate::reason_text;
use crate::text::{and_more, plural};
use crate::yaml::lists::{filled, not_null};
use async_trait::async_trait;

use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::Grade;
use crate::judgement::Judgement;
use crate::trace::{FollowedLink, Lost, ToolKind, UnseenAction};

/// The maximum number of calls in a reason.
const SHOWN: usize = 8;
/// The maximum number of calls in the evidence of a check, each with its result.
const POINTED_AT: usize = 20;

/// The required and forbidden tool calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    default,
    expecting = "a map such as `{require: [{kind: edit}]}`"
)]
pub struct ToolCalls {
    /// Calls that must have been executed; different entries need different calls.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<RequiredCall>,
    /// Calls that must not have been attempted.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<Matcher>,
    /// Calls that must have been executed in this order; others may come between.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Matcher>,
    /// The minimum number of executed calls.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The maximum number of attempted calls.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The maximum number of attempted calls of each kind.
    #[serde(deserialize_with = "filled_by_kind", skip_serializing_if = "BTreeMap::is_empty")]
    pub max_by_kind: BTreeMap<ToolKind, u64>,
    /// If `true`, no call may be attempted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub none: bool,
}

fn filled_by_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<ToolKind, u64>, D::Error> {
    let map = BTreeMap::<ToolKind, u64>::deserialize(deserializer)?;
    if map.is_empty() { Err(serde::de::Error::custom("this map is empty: it would check nothing")) } else { Ok(map) }
}

/// A required call, and how many of them.
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredCall {
    pub matcher: Matcher,
    /// The number of calls. Default: one or more.
    pub count: Option<Count>,
}

/// A number of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Count {
    /// The minimum.
    #[serde(default = "one")]
    pub min: u64,
    /// The maximum.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

fn one() -> u64 {
    1
}

impl RequiredCall {
    fn min(&self) -> u64 {
        self.count.map_or(1, |count| count.min)
    }

    fn max(&self) -> Option<u64> {
        self.count.and_then(|count| count.max)
    }
}

impl SharedKeys for Option<Count> {
    const KEYS: &'static [&'static str] = &["count"];

    fn read<'de, A: MapAccess<'de>>(&mut self, _: &'static str, map: &mut A) -> Result<(), A::Error> {
        *self = Some(map.next_value()?);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for RequiredCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut count = None;
        let matcher = Matcher::deserialize(Split { inner: deserializer, beside: &mut count })?;
        Ok(Self { matcher, count })
    }
}

impl Serialize for RequiredCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut matcher = serde_json::to_value(&self.matcher).map_err(S::Error::custom)?;
        if let (Value::Object(map), Some(count)) = (&mut matcher, self.count) {
            map.insert("count".to_owned(), serde_json::to_value(count).map_err(S::Error::custom)?);
        }
        matcher.serialize(serializer)
    }
}

#[cfg(test)]
impl JsonSchema for RequiredCall {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Wanted".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let count = generator.subschema_for::<Count>();
        let mut schema = Matcher::json_schema(generator);
        crate::grader::entry::add_properties(&mut schema, &serde_json::json!({"count": count}));
        schema
    }
}

impl GraderSpec for ToolCalls {
    fn depends_on_loss(&self, lost: Lost) -> bool {
        match lost {
            Lost::Line | Lost::Call => true,
            // Attempts count whatever came of them; executed calls do not.
            Lost::Outcome => {
                let wants_executed = !self.require.is_empty() || !self.order.is_empty() || self.min.unwrap_or(0) > 0;
                wants_executed || self.fails_by_outcome()
            }
            Lost::Caller => {
                let required = self.require.iter().map(|wanted| &wanted.matcher);
                !self.order.is_empty() || required.chain(&self.forbid).any(Matcher::names_speaker)
            }
            Lost::Text | Lost::Speaker => false,
        }
    }

    fn only_finds(&self) -> bool {
        let at_most = |wanted: &RequiredCall| wanted.count.is_some_and(|count| count.max.is_some());
        self.forbid.is_empty()
            && self.max.is_none()
            && self.max_by_kind.is_empty()
            && !self.none
            && !self.require.iter().any(at_most)
    }

    fn fails_by_outcome(&self) -> bool {
        let at_most = self.require.iter().any(|wanted| wanted.max().is_some());
        at_most || self.forbid.iter().any(|matcher| matcher.status.is_some())
    }

    fn depends_on_action(&self, action: &UnseenAction, workspace: Option<&str>) -> bool {
        let required = self.require.iter().map(|wanted| &wanted.matcher);
        required.chain(&self.forbid).chain(&self.order).any(|matcher| matcher.may_be(action, workspace))
            || self.max_by_kind.contains_key(&action.kind)
    }

    fn depends_on_tool(&self, tool: &str, kind: ToolKind) -> bool {
        let required = self.require.iter().map(|wanted| &wanted.matcher);
        required.chain(&self.forbid).chain(&self.order).any(|matcher| matcher.asks_for(tool, kind))
            || self.max_by_kind.contains_key(&kind)
    }

    fn depends_on_path_name(&self, link: &FollowedLink, workspace: Option<&str>) -> bool {
        let required = self.require.iter().map(|wanted| &wanted.matcher);
        required.chain(&self.forbid).chain(&self.order).any(|matcher| matcher.distinguishes(link, workspace))
    }

    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        let Self { require, forbid, order, min, max, max_by_kind, none } = self;
        let lists = refuse_list("require", require.iter().map(|wanted| &wanted.matcher))
            .or_else(|| refuse_list("forbid", forbid))
            .or_else(|| refuse_list("order", order));
        if lists.is_some() {
            return lists;
        }
        for (wanted, n) in require.iter().zip(1..) {
            match (wanted.min(), wanted.max()) {
                (0, None) => return Some(format!("checks nothing: entry {n} of `require` accepts 0 calls or more")),
                (min, Some(max)) if min > max => {
                    return Some(format!(
                        "contradicts itself: entry {n} of `require` needs at least {min} and at most {max} calls"
                    ));
                }
                _ => {}
            }
        }
        let wants = !require.is_empty() || !order.is_empty() || max.is_some() || !max_by_kind.is_empty() || *none;
        match (min, max) {
            _ if *none
                && (min.unwrap_or(0) > 0 || !order.is_empty() || require.iter().any(|wanted| wanted.min() > 0)) =>
            {
                Some("contradicts itself: with `none` no call is allowed, so none can be required".to_owned())
            }
            (Some(min), Some(max)) if min > max => {
                Some(format!("contradicts itself: it needs at least {min} and at most {max} calls"))
            }
            (None | Some(0), _) if !wants && forbid.is_empty() => {
                Some("checks nothing; say which calls, for example `require: [{kind: edit}]`".to_owned())
            }
            _ => None,
        }
    }

    fn watch(&self) -> Box<dyn Observer> {
        // More candidates than all entries together demand never help: one of the first is always free.
        let demand = self.require.iter().map(RequiredCall::min).fold(0, u64::saturating_add);
        Box::new(CallsObserver {
            require: self.require.iter().map(|_| MatchingCalls::default()).collect(),
            forbid: self.forbid.iter().map(|_| MatchingCalls::default()).collect(),
            kept: usize::try_from(demand).unwrap_or(usize::MAX),
            wanted: self.clone(),
            order: Order::new(self.order.len()),
            attempts: MatchingCalls::default(),
            carried_out: 0,
            perhaps_carried_out: 0,
            by_kind: BTreeMap::new(),
            unknown_kinds: 0,
            labels: Vec::new(),
        })
    }
}

/// The matching calls: their number, and the first of them.
#[derive(Default)]
struct MatchingCalls {
    count: u64,
    first: Vec<u64>,
    /// The events of calls above the maximum: each call and its result.
    excess: Vec<[u64; 2]>,
    /// The label of the first call.
    label: Option<String>,
    /// The number of calls that match but were not executed.
    refused: u64,
    refused_at: Option<u64>,
    /// The calls that may match: the agent did not show the deciding part.
    perhaps: Perhaps,
}

/// Calls that may match: their number, and the first of them and of the matching ones.
#[derive(Default)]
struct Perhaps {
    count: u64,
    /// The first calls that match or may match.
    first: Vec<u64>,
    /// The label of the first call that may match.
    label: Option<String>,
    /// True if the line of such a call is shown, and does not name each program that it runs.
    is_of_programs: bool,
}

impl MatchingCalls {
    /// Adds a call, and remembers it if it is above the limit.
    fn add(&mut self, call: &Subject<'_>, limit: Option<u64>) {
        self.count += 1;
        if limit.is_some_and(|limit| self.count > limit) && self.excess.len() < POINTED_AT {
            self.label.get_or_insert_with(|| call.label());
            self.excess.push([call.seq, call.result_seq]);
        }
    }

    /// Adds a call that may match.
    fn perhaps(&mut self, call: &Subject<'_>, matcher: &Matcher) {
        self.perhaps.count += 1;
        self.perhaps.is_of_programs |= matcher.runs.is_some() && call.command().seen().is_some();
        self.perhaps.label.get_or_insert_with(|| format!("{} (event {})", call.label(), call.seq));
    }

    /// Returns the maximum number of calls that may match.
    fn most(&self) -> u64 {
        self.count.saturating_add(self.perhaps.count)
    }

    /// Returns the events of calls above the maximum, without their results.
    fn excess_calls(&self) -> Vec<u64> {
        self.excess.iter().map(|[call, _]| *call).collect()
    }

    /// Returns the events of calls above the maximum, with their results.
    fn excess_with_results(&self) -> impl Iterator<Item = u64> {
        self.excess.iter().flatten().copied()
    }

    /// Returns why it is unknown whether a matcher matches.
    fn hangs_on(&self) -> String {
        let more = match self.perhaps.count.saturating_sub(1) {
            0 => String::new(),
            more => format!(" and of {}", plural(more, "more call")),
        };
        let label = self.perhaps.label.as_deref().unwrap_or("a call");
        match self.perhaps.is_of_programs {
            true => format!("not every program that {label}{more} runs is known by its name"),
            false => format!("the agent did not show enough of {label}{more}"),
        }
    }
}

/// Follows the calls in order: certain matches, and certain and possible matches together.
struct Order {
    expected: usize,
    surely: Follow,
    perhaps: Follow,
    /// The calls of several speakers, whose order may be unknown.
    of_several: Chain,
}

/// The calls that were made in order.
struct InOrder {
    /// The calls that match the first expected ones.
    surely: Vec<u64>,
    /// The calls that match or may match the first expected ones.
    perhaps: Vec<u64>,
    /// True if the order of calls of different agents decides, and is unknown.
    has_no_order: bool,
}

impl Order {
    fn new(expected: usize) -> Self {
        let (surely, perhaps) = (Follow::new(expected), Follow::new(expected));
        Self { expected, surely, perhaps, of_several: Chain::default() }
    }

    fn call(&mut self, call: &Subject<'_>, fits: &[Judgement]) {
        let which = |takes: fn(Judgement) -> bool| -> Vec<usize> {
            fits.iter().enumerate().filter(|(_, fits)| takes(**fits)).map(|(n, _)| n).collect()
        };
        let (surely, perhaps) = (which(Judgement::is_true), which(Judgement::may_be_true));
        let made = |fits: Vec<usize>| MadeCall { seq: call.seq, step: call.call.step, span: Span::of_call(call), fits };
        if !surely.is_empty() {
            self.surely.call(made(surely.clone()));
        }
        if !perhaps.is_empty() {
            self.perhaps.call(made(perhaps.clone()));
            self.of_several.call(made(perhaps), surely);
        }
    }

    fn finish(self) -> InOrder {
        let Self { expected, surely, perhaps, of_several } = self;
        let (surely, perhaps) = (surely.finish(), perhaps.finish());
        if !of_several.has_several_speakers() {
            return InOrder { surely, perhaps, has_no_order: false };
        }
        match of_several.found(expected) {
            Some(chain) => InOrder { surely: chain.clone(), perhaps: chain, has_no_order: false },
            None => InOrder { has_no_order: of_several.may_be_found(expected), surely, perhaps },
        }
    }
}

struct CallsObserver {
    wanted: ToolCalls,
    kept: usize,
    require: Vec<MatchingCalls>,
    forbid: Vec<MatchingCalls>,
    order: Order,
    attempts: MatchingCalls,
    carried_out: u64,
    /// The number of calls of which it is unknown whether they were executed.
    perhaps_carried_out: u64,
    by_kind: BTreeMap<ToolKind, MatchingCalls>,
    /// The number of calls of unknown kinds.
    unknown_kinds: u64,
    labels: Vec<String>,
}

#[async_trait]
impl Observer for CallsObserver {
    fn call(&mut self, call: &Subject<'_>) {
        if self.labels.len() < SHOWN {
            self.labels.push(call.label());
        }
        let none = self.wanted.none.then_some(0);
        self.attempts.add(call, self.wanted.max.into_iter().chain(none).min());
        self.carried_out += u64::from(call.carried_out().is_true());
        self.perhaps_carried_out += u64::from(call.carried_out().is_unknown());
        self.unknown_kinds += u64::from(call.call.unknown_kind);
        let kind = call.call.kind;
        if let Some(limit) = self.wanted.max_by_kind.get(&kind).filter(|_| !call.call.unknown_kind) {
            self.by_kind.entry(kind).or_default().add(call, Some(*limit));
        }
        for (wanted, found) in self.wanted.require.iter().zip(&mut self.require) {
            let finds = wanted.matcher.finds(call);
            match finds {
                Judgement::True => {
                    found.add(call, wanted.max());
                    if found.first.len() < self.kept {
                        found.first.push(call.seq);
                    }
                }
                Judgement::Unknown => found.perhaps(call, &wanted.matcher),
                Judgement::False => {
                    if wanted.matcher.status.is_none() && wanted.matcher.fits(call).is_true() {
                        found.refused += 1;
                        found.refused_at.get_or_insert(call.seq);
                    }
                }
            }
            if finds.may_be_true() && found.perhaps.first.len() < self.kept {
                found.perhaps.first.push(call.seq);
            }
        }
        for (matcher, found) in self.wanted.forbid.iter().zip(&mut self.forbid) {
            match matcher.fits(call) {
                Judgement::True => found.add(call, Some(0)),
                Judgement::Unknown => found.perhaps(call, matcher),
                Judgement::False => {}
            }
        }
        if !self.wanted.order.is_empty() {
            let fits: Vec<Judgement> = self.wanted.order.iter().map(|matcher| matcher.finds(call)).collect();
            self.order.call(call, &fits);
        }
    }

    async fn finish(self: Box<Self>, _: &Evidence<'_>) -> Findings {
        self.grade().into()
    }
}

impl CallsObserver {
    fn grade(mut self) -> Grade {
        let order = std::mem::replace(&mut self.order, Order::new(0));
        let mut checks = Checks::default();
        self.check_required(&mut checks);
        for (matcher, found) in self.wanted.forbid.iter().zip(&self.forbid) {
            match &found.label {
                Some(label) => checks.violated(
                    format!("{matcher} is forbidden and was called {}: {label}", times(found)),
                    found.excess_with_results(),
                ),
                None if found.perhaps.count > 0 => {
                    checks.unknown(format!("whether {matcher} was called is unknown: {}", found.hangs_on()));
                }
                None => checks.held(format!("{matcher} was never called"), []),
            }
        }
        self.check_order(&order.finish(), &mut checks);
        self.check_counts(&mut checks);
        checks.grade()
    }
}

impl CallsObserver {
    fn check_required(&self, checks: &mut Checks) {
        let demands = |candidates: fn(&MatchingCalls) -> &[u64]| {
            let wants = self.wanted.require.iter().zip(&self.require).map(|(wanted, found)| Want {
                demand: usize::try_from(wanted.min()).unwrap_or(usize::MAX),
                candidates: candidates(found),
            });
            assign(&wants.collect::<Vec<Want<'_>>>())
        };
        let surely = demands(|found| &found.first);
        let perhaps = demands(|found| &found.perhaps.first);
        let entries = self.wanted.require.iter().zip(&self.require);
        for ((wanted, found), (surely, perhaps)) in entries.zip(surely.into_iter().zip(perhaps)) {
            let matcher = &wanted.matcher;
            let (count, min, max) = (found.count, wanted.min(), wanted.max());
            if let Some(max) = max.filter(|max| count > *max) {
                let reason = format!(
                    "{matcher} was called {count} times, at most {max} allowed ({})",
                    reason_text::events(&found.excess_calls())
                );
                checks.violated(reason, found.excess_with_results());
                continue;
            }
            match (surely, perhaps) {
                // If no assumption about the unknown assigns a call to an entry, the entry has none.
                (_, None) if found.most() >= min => {
                    let at = reason_text::events(&found.perhaps.first);
                    let reason = format!(
                        "{matcher} has no call of its own: the matching calls ({at}) are needed by other \
                            entries too"
                    );
                    checks.violated(reason, []);
                }
                (_, None) => checks.violated(self.missing(wanted, found), []),
                (Some(given), Some(_)) if max.is_none_or(|max| found.most() <= max) => {
                    checks.held(format!("{matcher} was called ({})", plural(count, "time")), given);
                }
                (_, Some(_)) => {
                    let reason = format!("how often {matcher} was called is unknown: {}", found.hangs_on());
                    checks.unknown(reason);
                }
            }
        }
    }

    fn missing(&self, wanted: &RequiredCall, found: &MatchingCalls) -> String {
        let how_often = match found.most() {
            0 => "was never called".to_owned(),
            count => format!("was called {count} of {}", plural(wanted.min(), "time")),
        };
        let refused = match (found.refused, found.refused_at) {
            (refused, Some(at)) if refused > 0 => {
                format!(", and {} was refused or cancelled (event {at})", plural(refused, "attempt"))
            }
            _ => String::new(),
        };
        format!("{} {how_often}{refused}; {}", wanted.matcher, self.calls_listed())
    }

    fn check_order(&self, made: &InOrder, checks: &mut Checks) {
        let order = &self.wanted.order;
        let InOrder { surely: found, perhaps, has_no_order } = made;
        match order.get(found.len()) {
            _ if order.is_empty() => {}
            _ if *has_no_order => checks.unknown(
                "whether the calls were made in order is unknown: the order of calls of different agents decides, and their \
                 steps and results do not agree about it, or the agent did not show enough of a call"
                    .to_owned(),
            ),
            None => {
                checks.held(format!("the calls were made in order ({})", reason_text::events(found)), found.iter().copied());
            }
            Some(_) if perhaps.len() >= order.len() => checks.unknown(format!(
                "whether the calls were made in order is unknown: the agent did not show enough of the calls at {}",
                reason_text::events(perhaps)
            )),
            Some(missing) => {
                let after = match (found.last(), order.get(found.len().wrapping_sub(1))) {
                    (Some(seq), Some(before)) => format!("after event {seq}, where {before} was called, "),
                    _ => String::new(),
                };
                let reason = format!("the order is broken: {after}{missing} was not called; {}", self.calls_listed());
                checks.lacking(reason, found.iter().copied());
            }
        }
    }

    fn check_counts(&self, checks: &mut Checks) {
        let attempts = &self.attempts;
        if let Some(min) = self.wanted.min {
            let reason = format!("{} carried out, at least {min} required", plural(self.carried_out, "call"));
            let at_most = self.carried_out + self.perhaps_carried_out;
            if self.carried_out < min && at_most >= min {
                let unknown = plural(self.perhaps_carried_out, "call");
                checks.unknown(format!("{reason}; whether {unknown} more were is unknown: {CUT}"));
            } else {
                checks.either(self.carried_out >= min, reason, []);
            }
        }
        if let Some(max) = self.wanted.max {
            let reason = format!("{} made, at most {max} allowed", plural(attempts.count, "call"));
            checks.either(attempts.count <= max, reason, attempts.excess_with_results());
        }
        for (kind, max) in &self.wanted.max_by_kind {
            let found = self.by_kind.get(kind);
            let count = found.map_or(0, |found| found.count);
            let reason = format!("{} of kind {kind} made, at most {max} allowed", plural(count, "call"));
            if count <= *max && count + self.unknown_kinds > *max {
                let unknown = plural(self.unknown_kinds, "call");
                checks.unknown(format!("{reason}, and the kind of {unknown} is unknown"));
                continue;
            }
            checks.either(count <= *max, reason, found.into_iter().flat_map(MatchingCalls::excess_with_results));
        }
        if self.wanted.none {
            let reason = match attempts.count {
                0 => "no call was made".to_owned(),
                count => format!("no call is allowed, and {} made; {}", was_were(count), self.calls_listed()),
            };
            checks.either(attempts.count == 0, reason, attempts.excess_with_results());
        }
    }

    fn calls_listed(&self) -> String {
        let more = self.attempts.count.saturating_sub(self.labels.len() as u64);
        match (self.labels.as_slice(), more) {
            ([], _) => "there were no calls".to_owned(),
            (labels, more) => format!("the calls were: {}", and_more(labels.join(", "), more as usize)),
        }
    }
}

fn was_were(count: u64) -> String {
    if count == 1 { "1 call was".to_owned() } else { format!("{count} calls were") }
}

fn times(found: &MatchingCalls) -> String {
    let at = reason_text::events(&found.excess_calls());
    match found.count {
        1 => format!("once ({at})"),
        count => format!("{count} times ({at})"),
    }
}
