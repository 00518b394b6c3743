//! Decisions of the interaction policy, stored until the answer to the agent is sent.

use std::collections::HashMap;

/// Decisions that wait for their answers; more are not remembered.
const MOST: usize = 100_000;

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The policy.
    pub policy: String,
    /// The rule of it that matched.
    pub rule: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Decisions by the agent's id of its request.
#[derive(Debug, Default)]
pub struct Decisions(HashMap<String, Decision>);

impl Decisions {
    /// The policy decided; the answer follows.
    pub fn put(&mut self, id: String, decision: Decision) {
        if self.0.len() < MOST {
            self.0.insert(id, decision);
        }
    }

    /// The answer goes by: policy, rule and reason.
    pub fn take(&mut self, id: &str) -> (Option<String>, Option<String>, Option<String>) {
        match self.0.remove(id) {
            Some(Decision { policy, rule, reason }) => (Some(policy), rule, reason),
            None => (None, None, None),
        }
    }
}
