//! What stands in a grade about the judges who gave it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::Finding;

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
    pub criteria: Vec<Finding>,
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
    pub verdicts: Vec<super::criteria::Said>,
    /// What it says of a pair in each order, of what the agent came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<super::pair::Outcome>,
}
