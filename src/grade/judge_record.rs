//! The judge models of a grade: their answers, their calibration and their cost.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::trace::amount::Amount;
use crate::word::word;

/// The judge models of a grade, their instructions, and their cost. Unknown figures are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgeRecord {
    /// The judges, as `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`; several are separated by ` + `.
    pub model: String,
    /// Digest of the instructions to a judge, which are independent of the session.
    pub prompt_digest: String,
    /// The answers of each judge.
    #[serde(default)]
    pub judges: Vec<OneJudge>,
    /// The combined finding of all judges for each criterion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionFinding>,
    /// The share of pairs of judges that gave the same answer. Absent with one judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// True if the judges have a calibration against labels by people that reaches the rubric's floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<bool>,
    /// The reason why the judges are not calibrated, or their measured agreement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// The number of requests for this trial. The requests for canaries are counted in the trial that caused them.
    #[serde(default)]
    pub requests: u32,
    /// The number of requests answered from the cache, without cost.
    #[serde(default)]
    pub cached: u32,
    /// Tokens of the requests: all input tokens, cached by the service or not, and all output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost in US dollars, as reported or by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The figures above that are lower bounds, because they are unknown for some requests. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<AskedFigure>,
    /// The parts of the session that were not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// `seq` of events that address the judges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicious: Vec<u64>,
}

/// The usage of the model that answered permission requests of a trial for the policy `llm`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyRecord {
    /// The model, as `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`.
    pub model: String,
    /// The number of requests.
    #[serde(default)]
    pub requests: u32,
    /// The number of requests answered from the cache, without cost.
    #[serde(default)]
    pub cached: u32,
    /// Tokens of the requests: all input tokens, cached by the service or not, and all output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost in US dollars, as reported or by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The figures above that are lower bounds, because they are unknown for some requests. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<AskedFigure>,
}

/// The usage of models that the engine itself called. Unknown figures are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AskedFigures {
    /// The number of requests.
    pub requests: u32,
    /// The number of requests answered from the cache, without cost.
    pub cached: u32,
    /// The sum of the known tokens. Absent if the tokens of no request are known.
    pub tokens: Option<u64>,
    /// The sum of the known costs in US dollars. Absent if the cost of no request is known.
    pub cost_usd: Option<f64>,
    /// The figures that are only lower bounds, because some requests did not report them.
    pub lower_bounds: Vec<AskedFigure>,
}

impl JudgeRecord {
    /// Returns the usage of all judges.
    pub fn used(&self) -> AskedFigures {
        let Self { requests, cached, tokens, cost_usd, lower_bounds, .. } = self;
        let (requests, cached, tokens, cost_usd) = (*requests, *cached, *tokens, *cost_usd);
        AskedFigures { requests, cached, tokens, cost_usd, lower_bounds: lower_bounds.clone() }
    }

    /// Records the usage of all judges.
    pub fn record_used(&mut self, used: AskedFigures) {
        (self.requests, self.cached, self.tokens, self.cost_usd) =
            (used.requests, used.cached, used.tokens, used.cost_usd);
        self.lower_bounds = used.lower_bounds;
    }
}

impl PolicyRecord {
    /// Makes the record of a model with its usage.
    pub fn new(model: &str, used: AskedFigures) -> Self {
        let AskedFigures { requests, cached, tokens, cost_usd, lower_bounds } = used;
        Self { model: model.to_owned(), requests, cached, tokens, cost_usd, lower_bounds }
    }

    /// Returns the usage of the model.
    pub fn used(&self) -> AskedFigures {
        let Self { requests, cached, tokens, cost_usd, lower_bounds, .. } = self;
        let (requests, cached, tokens, cost_usd) = (*requests, *cached, *tokens, *cost_usd);
        AskedFigures { requests, cached, tokens, cost_usd, lower_bounds: lower_bounds.clone() }
    }
}

/// The usage of models that the engine itself called in the earlier attempts of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EarlierUsage {
    /// The known number of requests, including requests answered from the cache.
    pub requests: u32,
    /// Known tokens. Absent if none are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Known cost in US dollars. Absent if nothing of it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// True if the tokens are unknown, at least in part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_unknown: bool,
    /// True if the cost is unknown, at least in part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
}

impl EarlierUsage {
    /// Adds the usage of an attempt. Another program may have written the figures: a negative cost is ignored.
    pub fn add_to(sum: &mut Option<Self>, used: &AskedFigures) {
        if used.is_nothing() {
            return;
        }
        let sum = sum.get_or_insert_default();
        sum.requests = sum.requests.saturating_add(used.requests);
        if let Some(tokens) = used.tokens {
            sum.tokens = Some(sum.tokens.unwrap_or(0).saturating_add(tokens));
        }
        if let Some(cost) = used.cost_usd {
            sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + cost.max(0.0)).filter(|sum| sum.is_finite());
        }
        sum.tokens_unknown |= !used.tokens().is_exact();
        sum.cost_unknown |= !used.cost().is_exact() || sum.cost_usd.is_none();
    }

    /// Adds an attempt whose usage is unknown.
    pub fn add_unknown_to(sum: &mut Option<Self>) {
        let sum = sum.get_or_insert_default();
        (sum.tokens_unknown, sum.cost_unknown) = (true, true);
    }

    /// Returns the usage of all attempts.
    pub fn used(&self) -> AskedFigures {
        let partly = [(AskedFigure::Tokens, self.tokens_unknown), (AskedFigure::CostUsd, self.cost_unknown)];
        AskedFigures {
            requests: self.requests,
            cached: 0,
            tokens: self.tokens,
            cost_usd: self.cost_usd,
            lower_bounds: partly.into_iter().filter_map(|(figure, is)| is.then_some(figure)).collect(),
        }
    }
}

/// A figure of the usage of models that the engine itself called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskedFigure {
    /// All tokens.
    Tokens,
    /// Cost in US dollars.
    CostUsd,
}

impl AskedFigures {
    /// Returns the tokens of all requests.
    pub fn tokens(&self) -> Amount<u64> {
        self.amount(AskedFigure::Tokens, self.tokens, 0)
    }

    /// Returns the cost of all requests in US dollars.
    pub fn cost(&self) -> Amount<f64> {
        self.amount(AskedFigure::CostUsd, self.cost_usd, 0.0)
    }

    /// Returns true if no model was called.
    pub fn is_nothing(&self) -> bool {
        self.requests == 0 && self.lower_bounds.is_empty()
    }

    /// Returns a figure. No request costs nothing; of an unknown figure, nothing is known to have been used.
    fn amount<T: Copy>(&self, figure: AskedFigure, known: Option<T>, nothing: T) -> Amount<T> {
        let is_whole = self.is_nothing() || (known.is_some() && !self.lower_bounds.contains(&figure));
        Amount::new(known.unwrap_or(nothing), is_whole)
    }
}

/// The answers of one judge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OneJudge {
    /// The judge, as `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`.
    pub judge: String,
    /// The model that answered, as it reported itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reason why none of the judge's answers counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// The judge's verdicts, in the order of the criteria.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<CriterionVerdict>,
    /// For a comparison: the outcome of each order, from the agent's side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<PairOutcome>,
}

/// The finding about one criterion, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Finding"))]
pub struct CriterionFinding {
    /// The id of the criterion.
    pub criterion: String,
    /// The verdict; unknown if the judge's answer is not trusted.
    pub verdict: CriterionVerdict,
    /// The points of a criterion with `scale`, or the number of one with `number`. Absent for others, and if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// `seq` of the events that the finding is based on.
    #[serde(default)]
    pub evidence: Vec<u64>,
    /// A quote from one of these events.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// The judge's reason for the verdict.
    pub reason: String,
    /// The reason why the judge's answer is not trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
}

/// The verdict on a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CriterionVerdict {
    /// The criterion holds.
    Pass,
    /// The criterion does not hold.
    Fail,
    /// The result of the criterion is unknown.
    Unknown,
}

word!(CriterionVerdict);

/// The outcome of one order, or of both together, from the agent's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    /// The agent's work is better than the reference.
    Better,
    /// The agent's work is worse than the reference.
    Worse,
    /// Both are equally good.
    Tie,
    /// The judge does not say which is better, its quote is not in the work, or it answers otherwise in the other order.
    Unknown,
}
