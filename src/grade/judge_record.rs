//! The judge models of a grade: their answers, their calibration and their cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The judges of a grade, what they were told, and what they cost. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeRecord {
    /// Who judged, as `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`; several with ` + ` between them.
    pub model: String,
    /// Digest of what a judge is told, whatever the session.
    pub prompt_digest: String,
    /// Each judge.
    #[serde(default)]
    pub judges: Vec<OneJudge>,
    /// What they came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionFinding>,
    /// The share of pairs of judges that said the same; absent with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// Whether they were measured against labels of people, and are as good as the rubric asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<bool>,
    /// Why they are not calibrated, or what they were measured at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<String>,
    /// Requests for this trial; the canaries are asked once for a whole run, and are not among them.
    #[serde(default)]
    pub requests: u32,
    /// Those that were answered from the cache, for nothing.
    #[serde(default)]
    pub cached: u32,
    /// Tokens of the requests: all that were sent, cached by the service or not, and all that came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars, by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What of the session was not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// `seq` of events that speak to whoever judges them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicious: Vec<u64>,
}

/// What the model used that answered permission requests of a trial for the policy `llm`. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRecord {
    /// Who was asked, as `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`.
    pub model: String,
    /// Requests to the service.
    pub requests: u32,
    /// Those that were answered from the cache, for nothing.
    #[serde(default)]
    pub cached: u32,
    /// Tokens of the requests: all that were sent, cached by the service or not, and all that came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars, by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// One judge of several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneJudge {
    /// Its name.
    pub judge: String,
    /// The model that it says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why nothing it said counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
    /// Its verdicts, in the order of the criteria.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<CriterionVerdict>,
    /// What it says of a pair in each order, of what the agent came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<PairOutcome>,
}

/// What a judge says of one criterion, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct CriterionFinding {
    /// The criterion.
    pub criterion: String,
    /// What holds of it; unknown where what the judge said cannot be believed.
    pub verdict: CriterionVerdict,
    /// Its points, or its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// `seq` of the events it rests on.
    #[serde(default)]
    pub evidence: Vec<u64>,
    /// What stands in one of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quote: String,
    /// Why.
    pub reason: String,
    /// Why what the judge said is not believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub void: Option<String>,
}

/// What is said of a criterion. Unknown is neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CriterionVerdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// Nobody can tell.
    Unknown,
}

impl CriterionVerdict {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            CriterionVerdict::Pass => "pass",
            CriterionVerdict::Fail => "fail",
            CriterionVerdict::Unknown => "unknown",
        }
    }
}

/// What one order, or both together, came to, from the candidate's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    /// It is better than the reference.
    Better,
    /// It is worse.
    Worse,
    /// One is as good as the other.
    Tie,
    /// Nobody can tell.
    Unknown,
}
