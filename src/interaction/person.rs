//! A person who answers permission requests: what `manual` asks, and of whom.

use std::sync::atomic::AtomicBool;

use crate::interaction::{Answer, Asked};
use crate::trace::{FileDiff, PermissionOption};

/// A request, as a person is shown it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Whose trial it is: case, harness, arm and number.
    pub trial: String,
    /// What the call does.
    pub asked: Asked,
    /// What it would change, where the agent shows that.
    pub diffs: Vec<FileDiff>,
    /// What may be answered.
    pub options: Vec<PermissionOption>,
}

/// Someone who can be asked. Questions of several trials come one at a time.
pub trait Person: std::fmt::Debug + Send + Sync {
    /// Asks, and waits for the answer; nothing where nobody is there any more, or once the question is withdrawn.
    /// May block.
    fn ask(&self, question: &Question, withdrawn: &AtomicBool) -> Option<Answer>;
}
