//! The limits of a trial: time, steps, tool calls, tokens and money.

use serde::de::Error;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::values::Time;
use crate::word::word;
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};

/// The limits of a trial. A limit that is not set does not apply, except `time`, whose default is 30 minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{time: 5m}`")]
pub struct Limits {
    /// Time from the start of the agent. Default: `30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Time without any output from the agent, from a prompt to its answer, and while no tool call is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Time>,
    /// The maximum number of steps. A step is one round of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The maximum number of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Tokens of all kinds, including cached ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// The consequence of an exceeded limit. Default: `fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
}

impl Limits {
    /// The names of the limits, as used in cases and in `--limit`.
    pub const KEYS: [&str; 7] = ["time", "idle", "steps", "tool-calls", "tokens", "cost-usd", "on-limit"];

    /// Sets one limit from text, as for `--limit KEY=VALUE`.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, or the value is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let whole = || value.parse().map_err(|_| format!("`{value}` is not a whole number, which `{key}` requires"));
        let time = || match value.parse::<Time>()? {
            time if time.0.is_zero() => Err(format!("`{key}` must be more than 0")),
            time => Ok(time),
        };
        match key {
            "time" => self.time = Some(time()?),
            "idle" => self.idle = Some(time()?),
            "steps" => self.steps = Some(whole()?),
            "tool-calls" => self.tool_calls = Some(whole()?),
            "tokens" => self.tokens = Some(whole()?),
            "cost-usd" => {
                let number = value.parse().map_err(|_| format!("`{value}` is not a number, which `{key}` requires"))?;
                self.cost_usd = Some(Dollars::new(number)?);
            }
            "on-limit" => {
                self.on_limit = Some(match value {
                    "fail" => OnLimit::Fail,
                    "grade" => OnLimit::Grade,
                    other => return Err(format!("`{other}` is not a value of `on-limit`; known: `fail`, `grade`")),
                });
            }
            other => {
                let help = crate::yaml::words::known_words(other, &Self::KEYS, "limits");
                return Err(format!("`{other}` is not a limit; {help}"));
            }
        }
        Ok(())
    }

    /// Lays other limits over these: a limit that is set there overrides.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        Self {
            time: over.time.or(self.time),
            idle: over.idle.or(self.idle),
            steps: over.steps.or(self.steps),
            tool_calls: over.tool_calls.or(self.tool_calls),
            tokens: over.tokens.or(self.tokens),
            cost_usd: over.cost_usd.or(self.cost_usd),
            on_limit: over.on_limit.or(self.on_limit),
        }
    }

    /// Returns the consequence of an exceeded limit.
    pub fn on_limit(&self) -> OnLimit {
        self.on_limit.unwrap_or_default()
    }
}

/// A limit that ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub enum LimitKey {
    Time,
    Idle,
    Steps,
    ToolCalls,
    Tokens,
    CostUsd,
}

word!(LimitKey);

/// The consequence of an exceeded limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnLimit {
    /// The trial fails.
    #[default]
    Fail,
    /// The graders grade the work so far.
    Grade,
}

/// An amount of US dollars: a finite number, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Dollars(#[cfg_attr(test, schemars(range(min = 0)))] f64);

impl Dollars {
    /// Makes an amount of US dollars.
    ///
    /// # Errors
    /// Returns an error if the amount is negative or not a number.
    pub fn new(amount: f64) -> Result<Self, String> {
        if amount.is_finite() && amount >= 0.0 {
            Ok(Self(amount))
        } else {
            Err(format!("`{amount}` is not an amount of money; write a number from 0"))
        }
    }

    /// Returns the amount.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Forms<'_> for Dollars {
    const EXPECTED: &'static str = "a number from 0";

    fn from_number<E: Error>(amount: ParsedNumber) -> Result<Self, E> {
        Dollars::new(amount.as_f64()).map_err(E::custom)
    }
}

deserialize_forms!(Dollars, deserialize_any);
