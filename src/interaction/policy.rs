//! A policy at work in one trial: it remembers what it was asked before, and chooses among what the agent offers.

use super::{Asked, Counters, Interaction, choose, decide};
use crate::trace::PermissionOption;

/// A policy with its memory.
#[derive(Debug, Clone)]
pub struct Policy {
    interaction: Interaction,
    counters: Counters,
}

/// What is answered, and what is recorded of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The option's id; without one the request is answered `cancelled`.
    pub option: Option<String>,
    /// The policy's word.
    pub policy: String,
    /// The rule that matched.
    pub rule: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What the trace should note.
    pub notice: Option<String>,
}

impl Policy {
    /// A policy that was asked nothing yet.
    pub fn new(interaction: Interaction) -> Self {
        Self { interaction, counters: Counters::default() }
    }

    /// Answers a request.
    pub fn decide(&mut self, asked: &Asked, options: &[PermissionOption]) -> Reply {
        let decision = decide(&self.interaction, asked, &mut self.counters);
        let chosen = choose(decision.answer, options);
        Reply {
            option: chosen.option,
            policy: decision.policy.to_owned(),
            rule: decision.rule,
            reason: Some(decision.reason),
            notice: chosen.notice,
        }
    }
}
