//! The usage of the models that the engine itself called: judge models, and models that answer for the policy
//! `llm`. It is not part of the figures of agents.

use serde::Serialize;

use super::text::{money, plural};
use crate::grade::judge_record::{AskedFigures, EarlierUsage};
use crate::result::{EarlierAttempts, TrialResult};

/// The usage of models that were called for one purpose, over the results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PurposeUsage {
    /// Requests to models, including requests answered from the cache.
    pub requests: u64,
    /// Known tokens; a lower bound if `tokens_unknown` is above 0. Absent if none are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Trials whose tokens are unknown, at least in part.
    pub tokens_unknown: u64,
    /// Known cost in US dollars; a lower bound if `cost_unknown` is above 0. Absent if nothing of it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Trials whose cost is unknown, at least in part.
    pub cost_unknown: u64,
}

/// The models that the engine called in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
        let earlier = result.earlier_attempts.unwrap_or_default();
        let (judges, policy) = (earlier.judges.map(|it| it.used()), earlier.policy.map(|it| it.used()));
        add(&mut self.judges, result.used_by_judges().chain(judges));
        add(&mut self.policy, result.used_by_policy().into_iter().chain(policy));
    }

    /// Adds the usage in attempts of a trial that no result includes.
    pub(super) fn add_unfinished(&mut self, attempts: &EarlierAttempts) {
        add(&mut self.judges, attempts.judges.iter().map(EarlierUsage::used));
        add(&mut self.policy, attempts.policy.iter().map(EarlierUsage::used));
    }

    /// Returns true if no model was called.
    pub fn is_empty(&self) -> bool {
        self.judges.is_none() && self.policy.is_none()
    }

    /// Returns the note for reports.
    pub fn note(&self) -> Option<String> {
        let costs =
            [("judges", &self.judges), ("the policy `llm`", &self.policy)].into_iter().filter_map(|(who, asked)| {
                let asked = asked.as_ref()?;
                let cost = match (asked.cost_usd, asked.cost_unknown) {
                    (Some(cost), 0) => money(cost),
                    (Some(cost), _) => format!("≥{}", money(cost)),
                    (None, _) => "an unknown amount".to_owned(),
                };
                Some(match asked.requests {
                    // Of an interrupted attempt, not even the number of requests is known.
                    0 => format!("{who} {cost}"),
                    requests => format!("{who} {cost} in {}", plural(requests, "request")),
                })
            });
        let costs: Vec<String> = costs.collect();
        (!costs.is_empty()).then(|| {
            format!("cost of the models that evals called, not included in that of the agents: {}", costs.join(", "))
        })
    }
}

/// Adds the usage in one trial: several graders may have called models, and the trial counts once.
fn add(to: &mut Option<PurposeUsage>, of_trial: impl Iterator<Item = AskedFigures>) {
    let of_trial: Vec<AskedFigures> = of_trial.filter(|used| !used.is_nothing()).collect();
    if of_trial.is_empty() {
        return;
    }
    let asked = to.get_or_insert_default();
    for used in &of_trial {
        asked.requests += u64::from(used.requests);
        if let Some(tokens) = used.tokens {
            asked.tokens = Some(asked.tokens.unwrap_or(0).saturating_add(tokens));
        }
        if let Some(cost) = used.cost_usd {
            *asked.cost_usd.get_or_insert(0.0) += cost;
        }
    }
    asked.tokens_unknown += u64::from(of_trial.iter().any(|used| !used.tokens().is_exact()));
    asked.cost_unknown += u64::from(of_trial.iter().any(|used| !used.cost().is_exact()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_counts_once_however_many_of_its_figures_are_unknown() {
        let used = |cost_usd| AskedFigures { requests: 1, tokens: Some(10), cost_usd, ..AskedFigures::default() };
        let mut usage = None;
        add(&mut usage, [used(None), used(None), used(Some(0.5))].into_iter());
        add(&mut usage, [used(None), AskedFigures::default()].into_iter());
        add(&mut usage, [used(Some(0.25)), used(Some(0.25))].into_iter());
        let usage = usage.unwrap();
        assert_eq!((usage.requests, usage.tokens, usage.cost_usd), (6, Some(60), Some(1.0)));
        assert_eq!((usage.cost_unknown, usage.tokens_unknown), (2, 0));
        let mut none = None;
        add(&mut none, std::iter::once(AskedFigures::default()));
        assert_eq!(none, None);
    }
}
