//! The engine's lines about the model of an agent, as the gateway saw: the model did not answer, gave an answer that looks
//! like an error, reached its output limit, was stopped by a content filter, or broke off and was asked again.

use crate::adapter::errors;
use crate::gateway::exchange::FailureKind;
use crate::gateway::refused::Refused;
use crate::gateway::totals::Totals;
use crate::harness::Manifest;
use crate::trace::{ErrorCategory, NoticeCode};
use crate::wire::EngineLine;

/// Returns the line for a session whose model answered no request, or not the one that the agent needed to go on.
pub(super) fn line_for(totals: &Totals) -> Option<EngineLine> {
    let (refused, message) = totals.refusals.decisive()?;
    let (category, closed) = (category_of(refused), refused.is_closed());
    Some(EngineLine::Refused { category, message, closed, unanswered: totals.refusals.are_all() && !closed })
}

/// Returns the line about a last answer that looks like an error of the agent, but is its model's. Returns `None` for a case
/// with several prompts: an answer that looked like an error ended the session before the last one.
pub(super) fn answer_line(totals: &Totals, manifest: &Manifest, prompts: usize) -> Option<EngineLine> {
    let text = totals.refusals.last_answer().filter(|_| prompts == 1)?;
    let looks_like_error = manifest.error_text.iter().any(|pattern| pattern.is_match(text));
    looks_like_error.then(|| EngineLine::Answered { text: text.to_owned() })
}

/// Returns the line for a session whose last answer the output limit of the model ended. Some agents report such an answer
/// as complete.
pub(super) fn limit_line(totals: &Totals) -> Option<EngineLine> {
    totals.refusals.ended_at_limit().then_some(EngineLine::OutputLimit)
}

/// Returns the line for a session whose last answer a content filter of the model's service ended. Some agents report such an
/// answer as complete.
pub(super) fn filter_line(totals: &Totals) -> Option<EngineLine> {
    totals.refusals.ended_by_filter().then_some(EngineLine::Filtered)
}

/// Returns the line about a final answer of the agent that has a text of its model which broke off, before the answer to the
/// repeated request. Some agents show both as one text.
pub(super) fn broken_line(totals: &Totals, answer: &str) -> Option<EngineLine> {
    let text = "the gateway: an answer of the model broke off and was requested again, and the final answer has the text of \
                both";
    let line = || EngineLine::Notice { code: NoticeCode::DiscardedMessage, text: text.to_owned() };
    totals.refusals.is_broken_text_in(answer).then(line)
}

/// Returns the category of the error that ended the session.
fn category_of(refused: &Refused) -> ErrorCategory {
    match (refused.kind, refused.status) {
        (Some(FailureKind::Key), _) => ErrorCategory::Auth,
        (Some(FailureKind::Service) | None, Some(status)) => match status {
            // Services refuse keys with these too, and send errors within answers: the message says more.
            200..300 | 400 | 413 | 422 => by_message(refused.message.as_deref().unwrap_or_default()),
            _ => errors::by_status(status.into()).unwrap_or(ErrorCategory::Provider),
        },
        _ => ErrorCategory::Provider,
    }
}

fn by_message(message: &str) -> ErrorCategory {
    match errors::by_text(message) {
        category @ (ErrorCategory::Auth | ErrorCategory::RateLimit) => category,
        _ => ErrorCategory::Provider,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_decides_and_the_message_where_the_status_says_little() {
        let service = Some(FailureKind::Service);
        for (kind, status, message, category) in [
            (service, Some(429), "", ErrorCategory::RateLimit),
            (service, Some(529), "", ErrorCategory::RateLimit),
            (service, Some(403), "", ErrorCategory::Auth),
            (service, Some(500), "rate limit reached", ErrorCategory::Provider),
            (service, Some(400), "API key not valid. Please pass a valid API key.", ErrorCategory::Auth),
            (service, Some(400), "no such field", ErrorCategory::Provider),
            (service, Some(422), "You exceeded your current quota.", ErrorCategory::RateLimit),
            (service, Some(200), "Overloaded", ErrorCategory::RateLimit),
            (None, Some(302), "", ErrorCategory::Provider),
            (Some(FailureKind::Key), Some(401), "no key for this service", ErrorCategory::Auth),
            (Some(FailureKind::Unreachable), Some(502), "", ErrorCategory::Provider),
            (Some(FailureKind::Cut), Some(200), "401", ErrorCategory::Provider),
            (Some(FailureKind::Closed), None, "", ErrorCategory::Provider),
        ] {
            let refused = Refused { kind, status, message: Some(message.to_owned()) };
            assert_eq!(category_of(&refused), category, "{refused:?}");
        }
    }
}
