//! The usage of the models that the engine itself called: judge models, and models that answer for the policy
//! `llm`. It is not part of the figures of agents.

use schemars::JsonSchema;
use serde::Serialize;

use super::text::{money, plural};
use crate::result::TrialResult;

/// The usage of models that were called for one purpose, over the results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct PurposeUsage {
    /// Requests to models, including requests answered from the cache.
    pub requests: u64,
    /// Reported tokens; a lower bound if `unknown` is above 0.
    pub tokens: u64,
    /// Known cost in US dollars; a lower bound if `unknown` is above 0.
    pub cost_usd: f64,
    /// Records whose tokens or cost are unknown.
    pub unknown: u64,
}

/// The models that the engine called in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AskedModels {
    /// Judge models, for graders. Absent if no grader called a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judges: Option<PurposeUsage>,
    /// Models that answered permission requests for the policy `llm`. Absent if none was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PurposeUsage>,
}

impl AskedModels {
    /// Adds the usage in a result.
    pub(super) fn add(&mut self, result: &TrialResult) {
        for judge in result.grades.iter().filter_map(|grade| grade.judge.as_ref()) {
            add(&mut self.judges, judge.requests, judge.tokens, judge.cost_usd);
        }
        if let Some(used) = &result.policy_model {
            add(&mut self.policy, used.requests, used.tokens, used.cost_usd);
        }
    }

    /// Returns true if no model was called.
    pub fn is_empty(&self) -> bool {
        self.judges.is_none() && self.policy.is_none()
    }

    /// Returns the note for reports.
    pub fn note(&self) -> Option<String> {
        let told =
            [("judges", &self.judges), ("the policy `llm`", &self.policy)].into_iter().filter_map(|(who, asked)| {
                let asked = asked.as_ref()?;
                let requests = plural(usize::try_from(asked.requests).unwrap_or(usize::MAX), "request");
                let cost = match asked {
                    PurposeUsage { unknown: 0, cost_usd, .. } => money(*cost_usd),
                    PurposeUsage { cost_usd, .. } if *cost_usd > 0.0 => format!("≥{}", money(*cost_usd)),
                    PurposeUsage { .. } => "an unknown amount".to_owned(),
                };
                Some(format!("{who} {cost} in {requests}"))
            });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| {
            format!("cost of the models that evals called, not included in that of the agents: {}", told.join(", "))
        })
    }
}

fn add(to: &mut Option<PurposeUsage>, requests: u32, tokens: Option<u64>, cost_usd: Option<f64>) {
    if requests == 0 {
        return;
    }
    let asked = to.get_or_insert_default();
    asked.requests += u64::from(requests);
    asked.tokens = asked.tokens.saturating_add(tokens.unwrap_or_default());
    asked.cost_usd += cost_usd.unwrap_or_default();
    asked.unknown += u64::from(tokens.is_none() || cost_usd.is_none());
}
