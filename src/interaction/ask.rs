//! Asks a person or a model on another thread, and waits for the answer: the only part of a policy with a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The reason why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The timeout passed.
    Timeout,
    /// The question ended with a bug of evals.
    Bug(String),
}

/// Asks a question, which may block and gets a flag that becomes true when the question is withdrawn: after the timeout, or if
/// the future is dropped.
///
/// # Errors
/// Returns an error if there is no answer.
pub(super) async fn ask<T: Send + 'static>(
    timeout: Duration,
    question: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    let withdrawn = Arc::new(AtomicBool::new(false));
    let _waiting = Waiting(withdrawn.clone());
    let asking = tokio::task::spawn_blocking(move || question(&withdrawn));
    match tokio::time::timeout(timeout, asking).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(NoAnswer::Bug(error.to_string())),
        Err(_) => Err(NoAnswer::Timeout),
    }
}

/// Waits for an answer; when dropped, the question is withdrawn.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
