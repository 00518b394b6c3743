//! The policy `manual`: its question, and the trait for asking a person.

use std::sync::atomic::AtomicBool;

use crate::interaction::{Answer, Asked};
use crate::trace::{FileDiff, PermissionOption};

/// A request, as a person is shown it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The trial: case, harness, arm and number.
    pub trial: String,
    /// The call.
    pub asked: Asked,
    /// The changes that it would make, if the agent shows them.
    pub diffs: Vec<FileDiff>,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
}

/// A person who can be asked. Questions of several trials come one at a time.
pub trait Person: std::fmt::Debug + Send + Sync {
    /// Asks, and waits for the answer; `None` if the person is gone, or once the question is withdrawn. May
    /// block.
    fn ask(&self, question: &Question, withdrawn: &AtomicBool) -> Option<Answer>;
}
