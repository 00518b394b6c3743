//! Tells errors apart by what agents say: login, rate limit, the model's service, or the protocol.

use std::sync::LazyLock;

use regex::Regex;

use crate::trace::ErrorCategory;

/// The category of an error by its HTTP status, where it has one.
pub fn by_status(status: u64) -> Option<ErrorCategory> {
    match status {
        401 | 403 => Some(ErrorCategory::Auth),
        429 | 529 => Some(ErrorCategory::RateLimit),
        400..=599 => Some(ErrorCategory::Provider),
        _ => None,
    }
}

/// The category of an error by its text. Whatever names a model API, an HTTP status or an API error object is
/// the provider's; what remains is the protocol's.
pub fn by_text(text: &str) -> ErrorCategory {
    if let Some(category) = auth_in(text) {
        return category;
    }
    if let Some(category) = status_in(text).and_then(by_status) {
        return category;
    }
    if RATE_LIMIT.is_match(text) {
        return ErrorCategory::RateLimit;
    }
    if PROVIDER.is_match(text) { ErrorCategory::Provider } else { ErrorCategory::Protocol }
}

/// `auth` where the text says that a login or a key is missing or was refused.
pub fn auth_in(text: &str) -> Option<ErrorCategory> {
    AUTH.is_match(text).then_some(ErrorCategory::Auth)
}

/// An HTTP status that the text names as one.
fn status_in(text: &str) -> Option<u64> {
    let found = STATUS.captures(text)?;
    (1..found.len()).find_map(|n| found.get(n)).and_then(|group| group.as_str().parse().ok())
}

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static AUTH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        \b(?:not|must\ be|please)\s+(?:logged|log|sign|signed|authenticated|authenticate|login)\b
        | \brun\s+[`'"/]?[^\s`'"]*\s?[^\s`'"]*/?(?:log|sign)[\ -]?in\b
        | \b(?:authentication|authorization)[\s_-]+(?:required|failed|error)\b
        | \b(?:auth|login)[\s_]+required\b
        | \b(?:authentication_error|permission_error|unauthorized|unauthenticated)\b
        | \b(?:invalid|incorrect|missing|expired|no)\s+(?:\S+\s+)?(?:api[\s_-]?key|access\s+token|auth\s+token|credentials?)\b
        | \bapi[\s_-]?key\b[^\n]{0,30}\b(?:invalid|incorrect|missing|expired|not\s+(?:found|set|valid)|required)\b
        "#,
    )
    .unwrap()
});

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static RATE_LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\brate[\s_-]?limit|\btoo many requests\b|\boverloaded(_error)?\b|\bquota\b[^\n]{0,20}\bexceeded\b|\bexceeded\b[^\n]{0,30}\bquota\b|\bRESOURCE_EXHAUSTED\b")
        .unwrap()
});

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static PROVIDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        \bAPI[\s_]?Error\b | \bmodel\s+(?:api|service|provider)\b | \bprovider\b
        | "error"\s*:\s*\{ | \b(?:invalid_request|api|server|not_found|service_unavailable|billing)_error\b
        | \b(?:internal\s+server\s+error|bad\s+gateway|service\s+unavailable|gateway\s+timeout)\b
        | \b(?:anthropic|openai|gemini|mistral|openrouter|bedrock|vertex)\b[^\n]{0,40}\b(?:api|error)\b
        "#,
    )
    .unwrap()
});

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xim)
        \bAPI[\s_]?Error[:\s(]+([45]\d\d)\b
        | \b(?:http|status|status\s+code|code|statusCode)["':=\s]{1,4}([45]\d\d)\b
        | (?:^\s*(?:Error:)?|"\w+"\s*:\s*")\s*([45]\d\d)\s+[A-Za-z{]
        | \b(?:client|server)\s+error\s+'([45]\d\d)\b
        | \(([45]\d\d)\)
        "#,
    )
    .unwrap()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_follow_what_real_agents_say() {
        for (text, category) in [
            ("API Error: 400 mock: prompt is malformed", ErrorCategory::Provider),
            ("Internal error: API Error: 429 slow down", ErrorCategory::RateLimit),
            ("API Error: 529 overloaded", ErrorCategory::RateLimit),
            (r#"{"error":{"code":400,"message":"bad","status":"invalid_request_error"}}"#, ErrorCategory::Provider),
            ("Invalid API key · Please run /login", ErrorCategory::Auth),
            ("Not logged in · Please run /login", ErrorCategory::Auth),
            ("Authentication required", ErrorCategory::Auth),
            ("unexpected status 401 Unauthorized", ErrorCategory::Auth),
            ("rate limit reached", ErrorCategory::RateLimit),
            ("You exceeded your current quota, please check your plan", ErrorCategory::RateLimit),
            ("[RESOURCE_EXHAUSTED] try again later", ErrorCategory::RateLimit),
            ("503 Service Unavailable", ErrorCategory::Provider),
            ("Error: 400 the request is refused", ErrorCategory::Provider),
            ("Internal error\n{\"details\":\"400 bad\"}\n400 bad request", ErrorCategory::Provider),
            ("Internal error\n{\"details\":\"400 not like this\"}", ErrorCategory::Provider),
            ("method not found: session/prompt", ErrorCategory::Protocol),
            ("cannot read properties of undefined", ErrorCategory::Protocol),
            ("line 404 of the file is wrong", ErrorCategory::Protocol),
        ] {
            assert_eq!(by_text(text), category, "{text}");
        }
    }
}
