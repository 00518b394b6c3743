//! `budget`: limits on the figures of a trial. Limits are inclusive: only a value above the limit exceeds it.

use std::collections::HashMap;
use std::fmt;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::checks::Checks;
use crate::reason_text;
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};
use crate::yaml::lists::not_null;
use async_trait::async_trait;

use super::{Evidence, Findings, GraderSpec, Needs, Observer};
use crate::grade::Grade;
use crate::judgement::tolerance;
use crate::trace::amount::Amount;
use crate::trace::{Body as EventBody, Event, Lost, NoticeCode, Role};
use crate::values::{Fraction, Time};

/// A limit: a number, or a ramp from a full score to none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit<T> {
    /// A value above this exceeds the limit.
    Hard(T),
    /// A ramp: up to `full` the score is 1, from `none` on it is 0, and in between it decreases linearly.
    Ramp {
        /// The highest value with a full score.
        full: T,
        /// The lowest value with a score of 0.
        none: T,
    },
}

impl<T: Copy> Limit<T> {
    /// Returns the highest value with a full score.
    fn full(self) -> T {
        match self {
            Limit::Hard(limit) => limit,
            Limit::Ramp { full, .. } => full,
        }
    }

    /// Returns the score for a value above the full score.
    fn share_above(self, figure: f64, number: impl Fn(T) -> f64) -> Fraction {
        let (full, none) = match self {
            Limit::Hard(limit) => (number(limit), number(limit)),
            Limit::Ramp { full, none } => (number(full), number(none)),
        };
        let left = (none - figure) / (none - full);
        // A value near the full score must not be rounded to it.
        Fraction::new(left.clamp(0.0, tolerance::below_one())).unwrap_or(Fraction::ZERO)
    }

    fn map<U>(self, of: impl Fn(T) -> U) -> Limit<U> {
        match self {
            Limit::Hard(limit) => Limit::Hard(of(limit)),
            Limit::Ramp { full, none } => Limit::Ramp { full: of(full), none: of(none) },
        }
    }
}

impl Limit<u64> {
    /// Returns the score for a count. Counts are exact.
    fn share_of_count(self, count: u64) -> Fraction {
        if count <= self.full() { Fraction::ONE } else { self.share_above(count as f64, |limit| limit as f64) }
    }
}

impl Limit<f64> {
    /// Returns the score for an amount of money. Sums of prices are not exact: three times 0.10 is not above
    /// 0.30.
    fn share_of_money(self, money: f64) -> Fraction {
        if tolerance::exceeds(money, self.full()) { self.share_above(money, |limit| limit) } else { Fraction::ONE }
    }
}

impl Limit<Time> {
    /// Returns the score for a duration.
    fn share_of_time(self, ms: u64) -> Fraction {
        let limit_ms = |limit: Time| limit.0.as_millis();
        if u128::from(ms) <= limit_ms(self.full()) {
            return Fraction::ONE;
        }
        self.share_above(ms as f64, |limit| limit_ms(limit) as f64)
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Hard(limit) => write!(f, "{limit}"),
            Limit::Ramp { full, none } => write!(f, "{full} (score 0 from {none})"),
        }
    }
}

impl<'de, T: Deserialize<'de>> Forms<'de> for Limit<T> {
    const EXPECTED: &'static str = "a limit, or a ramp such as `{full: 10, none: 20}`";

    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        let limit = match number {
            ParsedNumber::Unsigned(number) => T::deserialize(number.into_deserializer()),
            ParsedNumber::Signed(number) => T::deserialize(number.into_deserializer()),
            ParsedNumber::Float(number) => T::deserialize(number.into_deserializer()),
        };
        limit.map(Limit::Hard)
    }

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        T::deserialize(text.into_deserializer()).map(Limit::Hard)
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Ramp<T> {
            full: T,
            none: T,
        }
        let Ramp { full, none } = Ramp::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Limit::Ramp { full, none })
    }
}

deserialize_forms!([T: Deserialize<'de>] Limit<T>, deserialize_any);

impl<T: Serialize> Serialize for Limit<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Limit::Hard(limit) => limit.serialize(serializer),
            Limit::Ramp { full, none } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("full", full)?;
                map.serialize_entry("none", none)?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
impl<T: JsonSchema> JsonSchema for Limit<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("LimitOf{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({"anyOf": [one, {
            "type": "object",
            "properties": {"full": one, "none": one},
            "required": ["full", "none"],
            "additionalProperties": false
        }]})
    }
}

/// The maximum that a trial may spend.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{cost-usd: 1}`")]
pub struct Budget {
    /// Cost in US dollars.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Limit<f64>>,
    /// All tokens, including cached ones.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Limit<u64>>,
    /// Input tokens, without cached ones.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Limit<u64>>,
    /// Output tokens, including thoughts.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Limit<u64>>,
    /// Tool calls, including failed ones and those of sub-agents.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Limit<u64>>,
    /// Steps: rounds of tool calls.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub steps: Option<Limit<u64>>,
    /// Prompts of the user.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub turns: Option<Limit<u64>>,
    /// Time from the first prompt to the answer.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub time: Option<Limit<Time>>,
    /// The minimum value that passes. The value is the mean over the limits. Default: 1.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
}

impl GraderSpec for Budget {
    fn needs() -> Needs {
        Needs::NONE
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn depends_on_loss(&self, lost: Lost) -> bool {
        match lost {
            Lost::Line => true,
            Lost::Call => self.tool_calls.is_some() || self.steps.is_some(),
            // How calls ended, and what was said, costs nothing more.
            Lost::Outcome | Lost::Text | Lost::Speaker => false,
            // The steps of each speaker count on their own.
            Lost::Caller => self.steps.is_some(),
        }
    }

    fn refusal(&self) -> Option<String> {
        let Self { cost_usd, tokens, input_tokens, output_tokens, tool_calls, steps, turns, time, min } = self;
        let money = |limit: &Limit<f64>| limit.map(|cost| cost.is_finite() && cost >= 0.0);
        if cost_usd.as_ref().map(money).is_some_and(|fine| {
            matches!(fine, Limit::Hard(false) | Limit::Ramp { full: false, .. } | Limit::Ramp { none: false, .. })
        }) {
            return Some("has a `cost-usd` that is not an amount of money; write a number from 0".to_owned());
        }
        let counts = [tokens, input_tokens, output_tokens, tool_calls, steps, turns];
        let numbers = counts.iter().filter_map(|limit| limit.map(|limit| limit.map(|count| count as f64)));
        let seconds = time.map(|limit| limit.map(|time| time.0.as_secs_f64()));
        let mut all = numbers.chain(*cost_usd).chain(seconds).peekable();
        if all.peek().is_none() {
            return Some("checks nothing; set a limit, for example `cost-usd: 0.50`".to_owned());
        }
        if all.any(|limit| matches!(limit, Limit::Ramp { full, none } if none <= full)) {
            return Some("contradicts itself: in a ramp, `none` must be above `full`".to_owned());
        }
        (*min == Some(Fraction::ZERO)).then(|| "checks nothing: with `min: 0` it always passes".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(BudgetObserver { limits: self.clone(), ..BudgetObserver::default() })
    }
}

#[derive(Default)]
struct BudgetObserver {
    limits: Budget,
    calls: Counter,
    steps: Counter,
    turns: Counter,
    /// The current step of the main agent and of each sub-agent.
    in_step: HashMap<Option<String>, u64>,
    usage_at: Option<u64>,
    stop_at: Option<u64>,
}

/// Counts events, and remembers the first one above the limit.
#[derive(Default)]
struct Counter {
    count: u64,
    exceeded_at: Option<u64>,
}

impl Counter {
    fn add(&mut self, limit: Option<u64>, seq: u64) {
        self.count += 1;
        if limit.is_some_and(|limit| self.count > limit) {
            self.exceeded_at.get_or_insert(seq);
        }
    }
}

#[async_trait]
impl Observer for BudgetObserver {
    fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::ToolCall(call) => {
                self.calls.add(self.limits.tool_calls.map(Limit::full), event.seq);
                // The steps of one agent never decrease, so a new number is a new step.
                if self.in_step.insert(event.parent.clone(), call.step) != Some(call.step) {
                    self.steps.add(self.limits.steps.map(Limit::full), event.seq);
                }
            }
            EventBody::Message(message) if message.role == Role::User && event.parent.is_none() => {
                self.turns.add(self.limits.turns.map(Limit::full), event.seq);
            }
            EventBody::Notice { code: NoticeCode::SilentTurn, .. } => {
                self.turns.add(self.limits.turns.map(Limit::full), event.seq);
            }
            EventBody::Usage(_) => self.usage_at = Some(event.seq),
            EventBody::Stop(_) => self.stop_at = Some(event.seq),
            _ => {}
        }
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl BudgetObserver {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let Self { limits, calls, steps, turns, usage_at, stop_at, .. } = self;
        let usage = evidence.usage;
        let mut checks = Checks::default();
        if let Some(limit) = limits.cost_usd {
            match usage.cost_usd() {
                None => checks.unknown("the agent did not report its cost (`cost-usd`)"),
                Some(cost) => {
                    let by = match usage.cost_source() {
                        Some(source) => format!(" ({source})"),
                        None => String::new(),
                    };
                    let share = limit.share_of_money(cost.value());
                    let money = reason_text::money_beside(cost.value(), limit.full());
                    let money = if cost.is_exact() { money } else { format!(">= {money}") };
                    let reason = format!("it cost {money} USD{by}, {} {limit}", word(share));
                    hold(&mut checks, cost.is_exact(), share, reason, usage_at);
                }
            }
        }
        let tokens = [
            ("tokens", limits.tokens, usage.tokens()),
            ("input-tokens", limits.input_tokens, usage.input_tokens()),
            ("output-tokens", limits.output_tokens, usage.output_tokens()),
        ];
        for (key, limit, figure) in tokens {
            let Some(limit) = limit else { continue };
            match figure {
                None => checks.unknown(format!("the agent did not report its {} (`{key}`)", key.replace('-', " "))),
                Some(figure) => within(&mut checks, key, figure, limit, usage_at),
            }
        }
        let traced = evidence.header.capabilities.tracing;
        for (key, limit, counter) in [("tool-calls", limits.tool_calls, &calls), ("steps", limits.steps, &steps)] {
            match limit {
                Some(_) if !traced => checks.unknown(format!("the harness shows no tool calls (`{key}`)")),
                Some(limit) => within(&mut checks, key, Amount::Exact(counter.count), limit, counter.exceeded_at),
                None => {}
            }
        }
        match limits.turns {
            // Some recordings do not contain the prompts, and every session has at least one.
            Some(_) if turns.count == 0 => checks.unknown("the trace shows no prompt of the user (`turns`)"),
            Some(limit) => within(&mut checks, "turns", Amount::Exact(turns.count), limit, turns.exceeded_at),
            None => {}
        }
        if let Some(limit) = limits.time {
            match evidence.duration_ms.filter(|_| evidence.header.is_timed()) {
                None => checks.unknown("the duration was not measured (`time`)"),
                Some(ms) => {
                    let stopped_ms = evidence.header.stopped_ms.unwrap_or_default();
                    let (share, best) = (limit.share_of_time(ms), limit.share_of_time(ms.saturating_sub(stopped_ms)));
                    let [duration, stopped] = [ms, stopped_ms].map(|ms| Time(std::time::Duration::from_millis(ms)));
                    let doubt = || {
                        format!(
                            "it took {duration}, limit {limit}, but evals itself was stopped for {stopped} of this time, in \
                             which the agent may have worked (`time`)"
                        )
                    };
                    if best == share {
                        checks.partly(share, format!("it took {duration}, {} {limit}", word(share)), stop_at);
                    } else if best == Fraction::ONE {
                        checks.unknown(doubt());
                    } else {
                        checks.at_most(best, doubt(), stop_at);
                    }
                }
            }
        }
        checks.grade_at_least(limits.min)
    }
}

fn within(checks: &mut Checks, key: &str, figure: Amount<u64>, limit: Limit<u64>, exceeded_at: Option<u64>) {
    let share = limit.share_of_count(figure.value());
    let exceeded_at = exceeded_at.filter(|_| share < Fraction::ONE);
    hold(checks, figure.is_exact(), share, format!("{key} {figure}, {} {limit}", word(share)), exceeded_at);
}

/// Records the score of a limit. A lower bound can exceed a limit, but never shows that the limit was kept.
fn hold(checks: &mut Checks, is_exact: bool, share: Fraction, reason: String, at: Option<u64>) {
    if is_exact {
        checks.partly(share, reason, at);
    } else if share == Fraction::ONE {
        checks.unknown(format!("{reason} so far, but not all of it was reported"));
    } else {
        checks.at_most(share, reason, at);
    }
}

fn word(share: Fraction) -> &'static str {
    if share == Fraction::ONE { "within" } else { "above" }
}
