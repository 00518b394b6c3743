//! What the models used that the engine itself asked: judges, and those that answer for the policy `llm`. No part of it is
//! in the figures of agents.

use schemars::JsonSchema;
use serde::Serialize;

use super::text::{money, plural};
use crate::result::TrialResult;

/// What models used that were asked for one purpose, over the results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Asked {
    /// Requests to services, those that were answered from the cache included.
    pub requests: u64,
    /// Tokens that were reported; a lower bound if `unknown` is above 0.
    pub tokens: u64,
    /// US dollars that are known; a lower bound if `unknown` is above 0.
    pub cost_usd: f64,
    /// Records of which tokens or cost are unknown.
    pub unknown: u64,
}

/// The models that the engine asked in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct AskedModels {
    /// Judges, for graders. Absent if no grader asked a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judges: Option<Asked>,
    /// Models that answered permission requests for the policy `llm`. Absent if none was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Asked>,
}

impl AskedModels {
    /// Adds up what results tell.
    pub fn of(results: &[TrialResult]) -> Self {
        let mut all = Self::default();
        for result in results {
            for judge in result.grades.iter().filter_map(|grade| grade.judge.as_ref()) {
                add(&mut all.judges, judge.requests, judge.tokens, judge.cost_usd);
            }
            if let Some(used) = &result.policy_model {
                add(&mut all.policy, used.requests, used.tokens, used.cost_usd);
            }
        }
        all
    }

    /// Returns true if no model was asked.
    pub fn is_empty(&self) -> bool {
        self.judges.is_none() && self.policy.is_none()
    }

    /// For people.
    pub fn note(&self) -> Option<String> {
        let told =
            [("judges", &self.judges), ("the policy `llm`", &self.policy)].into_iter().filter_map(|(who, asked)| {
                let asked = asked.as_ref()?;
                let requests = plural(usize::try_from(asked.requests).unwrap_or(usize::MAX), "request");
                let cost = match asked {
                    Asked { unknown: 0, cost_usd, .. } => money(*cost_usd),
                    Asked { cost_usd, .. } if *cost_usd > 0.0 => format!("≥{}", money(*cost_usd)),
                    Asked { .. } => "an unknown amount".to_owned(),
                };
                Some(format!("{who} {cost} in {requests}"))
            });
        let told: Vec<String> = told.collect();
        (!told.is_empty())
            .then(|| format!("models that evals itself asked cost, beside the agents: {}", told.join(", ")))
    }
}

fn add(to: &mut Option<Asked>, requests: u32, tokens: Option<u64>, cost_usd: Option<f64>) {
    if requests == 0 {
        return;
    }
    let asked = to.get_or_insert_default();
    asked.requests += u64::from(requests);
    asked.tokens = asked.tokens.saturating_add(tokens.unwrap_or_default());
    asked.cost_usd += cost_usd.unwrap_or_default();
    asked.unknown += u64::from(tokens.is_none() || cost_usd.is_none());
}
