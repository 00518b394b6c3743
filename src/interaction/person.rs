//! The policy `manual`: the trait for asking a person.

use std::sync::atomic::AtomicBool;

use crate::interaction::{Answer, Request};

/// A person who can be asked. Questions of several trials come one at a time.
pub trait Person: std::fmt::Debug + Send + Sync {
    /// Asks about a request in this trial (case, harness, arm and number), and waits for the answer. Returns `None`
    /// if the person is gone or the question is withdrawn. May block.
    fn ask(&self, trial: &str, request: &Request, withdrawn: &AtomicBool) -> Option<Answer>;
}
