//! Decisions of the interaction policy, stored until the answer to the agent is sent.

use std::collections::HashMap;

use crate::trace::recorder::DecidedBy;

/// The maximum number of decisions that wait for their answers; further ones are dropped.
const MOST: usize = 100_000;

/// Decisions by the id of the agent's request.
#[derive(Debug, Default)]
pub struct Decisions(HashMap<String, DecidedBy>);

impl Decisions {
    /// Stores a decision of the policy until its answer is sent.
    pub fn put(&mut self, id: String, by: DecidedBy) {
        if self.0.len() < MOST {
            self.0.insert(id, by);
        }
    }

    /// Takes the decision for an answer that is sent.
    pub fn take(&mut self, id: &str) -> DecidedBy {
        self.0.remove(id).unwrap_or_default()
    }
}
