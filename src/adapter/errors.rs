//! Classifies errors by the agents' messages: login, rate limit, the model's service, or the protocol. Recognises
//! messages that are not errors, because the model answered and its answer ended at a limit or as a refusal.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::trace::{ErrorCategory, StopReason};

/// Returns the category of an error by its HTTP status, if the status has one.
pub fn by_status(status: u64) -> Option<ErrorCategory> {
    match status {
        401 | 403 => Some(ErrorCategory::Auth),
        429 | 529 => Some(ErrorCategory::RateLimit),
        400..=599 => Some(ErrorCategory::Provider),
        _ => None,
    }
}

/// Returns the category of an error by its text. A text that names a model API, an HTTP status or an API error object
/// is the provider's error; any other is the protocol's.
pub fn by_text(text: &str) -> ErrorCategory {
    if let Some(category) = auth_in(text) {
        return category;
    }
    if let Some(category) = by_status_in(text) {
        return category;
    }
    if RATE_LIMIT.is_match(text) {
        return ErrorCategory::RateLimit;
    }
    let provider = PROVIDER.is_match(text) || CONNECTION.is_match(text);
    if provider { ErrorCategory::Provider } else { ErrorCategory::Protocol }
}

/// Returns the end of the model's answer, if the text of an error states that the model reached its output limit or
/// that a content filter stopped it. Programs report both as errors, although the model answered.
pub fn ended_in(text: &str) -> Option<StopReason> {
    if !END.is_match(text) {
        return None;
    }
    if OUTPUT_LIMIT.is_match(text) {
        return Some(StopReason::MaxTokens);
    }
    CONTENT_FILTER.is_match(text).then_some(StopReason::Refusal)
}

/// Returns true if a service's refusal of a request is about the account of the user: a key, a quota or a bill. A status, a login
/// or a rate limit in its text does not show it: services quote other servers and the conversation.
pub fn is_of_account(text: &str) -> bool {
    ACCOUNT.is_match(text) && !CONTENT.is_match(text) && !names_server(text)
}

/// Returns true if the text names an MCP server.
pub fn names_server(text: &str) -> bool {
    SERVER.is_match(text)
}

/// Returns `auth` if the text states that a login or a key is missing or was refused.
pub fn auth_in(text: &str) -> Option<ErrorCategory> {
    (AUTH.is_match(text) || TOKEN.is_match(text)).then_some(ErrorCategory::Auth)
}

/// Returns `auth` if the last words of an agent state that a login or a key is missing or was refused. Warnings and notes do not
/// count. A program may go on without the token of an environment variable, so this is no reason unless it is the last line, or
/// the line is worded as an error.
pub fn auth_in_last_words(text: &str) -> Option<ErrorCategory> {
    let lines = last_words(text);
    let ends_by_token =
        |(at, line): (usize, &&str)| TOKEN.is_match(line) && (at + 1 == lines.len() || SAYS_ERROR.is_match(line));
    let is_auth = AUTH.is_match(&lines.join("\n")) || lines.iter().enumerate().any(ends_by_token);
    is_auth.then_some(ErrorCategory::Auth)
}

/// Returns `auth` or `rate_limit` if the last words of an agent state that a login or a key was refused, or that the agent's
/// requests were limited.
pub fn refused_in(text: &str) -> Option<ErrorCategory> {
    let is_limited = || LIMITED.is_match(&last_words(text).join("\n")).then_some(ErrorCategory::RateLimit);
    auth_in_last_words(text).or_else(is_limited)
}

/// Returns the lines of a text that are no warnings and no notes.
fn last_words(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim().is_empty() && !SAYS_WARNING.is_match(line)).collect()
}

/// Returns the category of an error by an HTTP status that its text names, if there is one.
pub fn by_status_in(text: &str) -> Option<ErrorCategory> {
    status_in(text).and_then(by_status)
}

/// Returns the first number that the text calls an HTTP status, as in `status 429`.
fn status_in(text: &str) -> Option<u64> {
    // The codes of other things than requests: `exit_code`, `opCode`.
    let is_of_request = |found: &Captures<'_>| {
        let of = found.name("of").or_else(|| found.name("camel"));
        of.map(|of| of.as_str().to_ascii_lowercase()).is_none_or(|of| !of.contains("exit") && of != "op")
    };
    let mut found = STATUS.captures_iter(text).filter(is_of_request);
    found.find_map(|found| (1..found.len()).find_map(|n| found.get(n)?.as_str().parse().ok()))
}

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static SERVER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?i)\bMCP[\s_-]?(?:server|client|error)").unwrap());

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static AUTH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        \b(?:not|must\ be|please)\s+(?:authenticated?|login)\b
        # `not logged` and `must be signed` alone are about log files and commits.
        | \b(?:not|must\ be|please)\s+(?:logged|log|signed|sign)[\s-]+
          (?:out\s+and\s+(?:(?:log|sign)\s+)?)?(?:back\s+)?(?:in|on|into)\b
        | \brun\s+[`'"/]?[^\s`'"]*\s?[^\s`'"]*/?(?:log|sign)[\ -]?in\b
        | \b(?:authentication|authorization)[\s_-]+(?:required|failed|error)\b
        | \b(?:auth|login)[\s_]+required\b
        | (?:^|["'\[(:=])\s*(?:\d{1,2}\s+)?(?-i:PERMISSION_DENIED)\b
        | \b(?:authentication_error|permission_error|unauthenticated)\b | \b401\s+unauthorized\b | \b403\s+forbidden\b
        # As the whole of a clause: `unauthorized import of module` is about something else.
        | \bunauthorized\s*(?:$|[.,:;!)\]}"'`\n])
        | \bno\s+authentication\s+information\b
        | \bmissing\s+environment\s+variable:?\s*[`'"]?\w*(?:KEY|TOKEN|SECRET)\w*
        | \binvalid_api_key\b | \boauth\s+token\b[^\n]{0,30}\b(?:revoked|expired|invalid)\b
        | \b(?:invalid|incorrect|missing|expired|no)\s+(?:\S+\s+)?(?:(?:x-)?api[\s_-]?key|access\s+token|auth\s+token|credentials?)\b
        | (?:\b|_)api[\s_-]?key\b[^\n]{0,30}\b(?:invalid|incorrect|missing|expired|unset|not\s+(?:found|set|valid|provided)|required)\b
        | \b(?:missing|(?:must|please|to)\s+set)\s+(?:the\s+)?(?:environment\s+variable\s+)?[`'"$]?\w+_api_key\b
        # At the beginning of a line: a program also reports sessions, tokens and credentials that it works on.
        | (?m:^)\W*(?:\w*error:\s*)?(?:(?:your|the|auth|access|oauth|refresh|api|login)\s+){0,3}
          (?:(?:token|session)\s+(?:has\s+|is\s+)?expired
            |credentials?\s+(?:(?:were|was|are|is|have|has)\s+)?(?:not\s+found|missing|expired)
            |(?:login|sign-?in)\s+failed)\b
        "#,
    )
    .unwrap()
});

/// Matches statements that a variable with a token is missing. A token of a language has no such name.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[A-Z][A-Z0-9_]*_TOKEN\b[^\n]{0,30}\b(?i:missing|unset|not\s+(?:found|set|provided)|required)\b")
        .unwrap()
});

/// Matches lines that begin as a warning or a note, also behind a time.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static SAYS_WARNING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:\W*\d[\dTZ:.,+-]*)*\W*(?:npm\s+|node:\d+\)\s+)?(?:warn|warning|note|info)\b").unwrap()
});

/// Matches lines that begin as an error.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static SAYS_ERROR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)^\W*(?:\w*error|fatal|panic|failed|failure|\w*exception)\b").unwrap());

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static RATE_LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\brate[\s_-]?limit|\btoo many requests\b|\boverloaded(_error)?\b|\bquota\b[^\n]{0,20}\bexceeded\b|\bexceeded\b[^\n]{0,30}\bquota\b|\bRESOURCE_EXHAUSTED\b|\binsufficient[_\s]quota\b|\b(?:hit|reached|exceeded)\b[^\n]{0,20}\b(?:usage|spend(?:ing)?)[\s_](?:limit|cap)s?\b|\busage[\s_]limit[\s_](?:has\s+been\s+)?(?:reached|exceeded|hit)\b|\bhit your (?:\S+ ){0,2}limit\b|\bout of credits\b|\bto use codex with your chatgpt plan\b")
        .unwrap()
});

/// Matches statements that a request was refused because there were too many. The word `rate` alone is not enough.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static LIMITED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b429\s+too\s+many\s+requests\b|\brate[\s_-]?limit(?:ed)?[\s_-]+(?:error|exceeded|reached)\b|\bRESOURCE_EXHAUSTED\b",
    )
    .unwrap()
});

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static PROVIDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        \bAPI[\s_]?Error\b | \bmodel\s+(?:api|service|provider)\b | \bprovider\b
        | \b(?:context_length_exceeded|model_not_found|billing_hard_limit_reached|request_too_large)\b
        | \bcredit\s+balance\s+is\s+too\s+low\b | \bprompt\s+is\s+too\s+long\b | \bissue\s+with\s+the\s+selected\s+model\b
        | \bexperiencing\s+high\s+demand\b | \bexceeded\s+retry\s+limit\b | \bran\s+out\s+of\s+room\s+in\s+the\s+model's\s+context\s+window\b
        # The whole body of a refused request.
        | ^\s*\{\s*"detail"\s*:\s*"
        | "error"\s*:\s*\{ | \b(?:invalid_request|api|server|not_found|service_unavailable|billing)_error\b
        # The status of gRPC, as a value.
        | (?:^|["'\[(:=])\s*(?:\d{1,2}\s+)?(?-i:UNAVAILABLE|DEADLINE_EXCEEDED|FAILED_PRECONDITION|INVALID_ARGUMENT|DATA_LOSS)\b
        | \b(?:internal\s+server\s+error|bad\s+gateway|service\s+unavailable|gateway\s+timeout)\b
        | \b(?:anthropic|openai|gemini|mistral|openrouter|bedrock|vertex)\b[^\n]{0,40}\b(?:api|error)\b
        "#,
    )
    .unwrap()
});

/// Matches codes and statements about the user's account: its key, its quota or its bill.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static ACCOUNT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?xi)
        # Codes.
        \b(?:authentication_error|permission_error|invalid_api_key|api_key_invalid|insufficient_(?:user_)?quota|billing_\w+
          |account_deactivated|arrearage|rate_limit_(?:error|exceeded)|usage_limit_(?:reached|exceeded)
          |unsupported_country_region_territory)\b
        | \b(?-i:UNAUTHENTICATED|PERMISSION_DENIED|RESOURCE_EXHAUSTED)\b
        # The key.
        | \b(?:invalid|incorrect|missing|expired|no)\s+(?:\S+\s+)?(?:x-)?api[\s_-]?key\b
        | (?:\b|_)api[\s_-]?key\b[^\n]{0,30}
          \b(?:invalid|incorrect|missing|expired|revoked|disabled|unset|not\s+(?:found|set|valid|provided)|required)\b
        | \boauth\s+token\b[^\n]{0,30}\b(?:revoked|expired|invalid)\b
        # The quota.
        | \bexceeded\s+your\s+(?:\w+\s+){0,3}quota\b | \byour\s+(?:\w+\s+){0,3}quota\b[^\n]{0,20}\b(?:exceeded|exhausted)\b
        | \b(?:you|account|organization|workspace|project|team|user)\b[^\n]{0,20}\b(?:hit|reached|exceeded)\b[^\n]{0,30}
          \b(?:usage|spend(?:ing)?)[\s_](?:limit|cap)s?\b
        | \busage\s+limit\s+(?:has\s+been\s+)?(?:reached|exceeded|hit)\b
        # The bill.
        | \bbilling\s+hard\s+limit\b | \bcredit\s+balance\s+is\s+too\s+low\b
        | \b(?:insufficient|not\s+enough)[\s_]+(?:account[\s_]+)?(?:credits?|balance|funds)\b
        | \bout\s+of\s+credits\b | \brequires\s+more\s+credits\b | \bpayment[\s_]+required\b
        | \bcheck\s+your\s+(?:plan\s+and\s+)?billing\b
        # The state of the account.
        | \b(?:organization|account|workspace|project|consumer)\s+(?:has\s+been|is)\s+
          (?:disabled|deactivated|suspended|not\s+active)\b
        | \baccount\s+is\s+(?:not\s+)?in\s+good\s+standing\b
        | \b(?:user\s+location|country(?:,\s+region,?\s+or\s+territory)?)\s+(?:is\s+)?not\s+supported\b
        ",
    )
    .unwrap()
});

/// Matches the codes of refusals that are about the content of the request, whatever their texts quote.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static CONTENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?xi)\b(?:invalid_image\w*|invalid_prompt|context_length_exceeded|content_filter|content_policy_violation
          |http_error|external_connector_error)\b",
    )
    .unwrap()
});

/// The words for a failed or broken connection to the model's service.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static CONNECTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        \b(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPIPE|UND_ERR_\w+)\b
        | \bstream\s+disconnected\b | \berror\s+sending\s+request\b | \berror\s+decoding\s+response\s+body\b
        | \bfetch\s+failed\b | \bfailed\s+to\s+fetch\b | \bsocket\s+hang\s+up\b | \bpremature\s+close\b
        | \b(?:socket\s+)?connection\s+(?:was\s+)?(?:error|refused|reset|closed|aborted|lost|timed\s+out|failed)\b
        | \b(?:unable|failed|cannot|could\s+not)\s+(?:to\s+)?connect\b | \ball\s+connection\s+attempts\s+failed\b
        | \b(?:network|transport)\s+error\b | \brequest\s+timed\s+out\b
        | \bpeer\s+closed\s+connection\b | \bincomplete\s+chunked\s+read\b | \bresponse\s+was\s+interrupted\b
        | \berror\s+while\s+reading\s+the\s+server\s+response\b | ^\s*reconnecting\b
        | \bat\s+capacity\b | \bfailed\s+to\s+get\s+(?:a\s+)?response\s+from\s+the\s+(?:ai\s+)?model\b
        | ^\s*(?:TypeError:\s*)?terminated\s*$
        "#,
    )
    .unwrap()
});

/// Matches the texts that [`OUTPUT_LIMIT`] or [`CONTENT_FILTER`] may match: each of their alternatives has one of these words. Most
/// texts have none, and these two patterns take longer to compile than a small run.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static END: LazyLock<Regex> = LazyLock::new(|| Regex::new("(?i)reason|output|content|safety").unwrap());

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static OUTPUT_LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        \breason:\s*max_(?:output_)?tokens\b
        | \b(?:finish|stop)[_\s]?reason["'`]?\s*(?:is|was|[:=])?\s*["'`]?(?:length|max_(?:output_)?tokens)\b
        | \bexceeded\s+the\s+[\d,.]+\s+output\s+token\s+(?:maximum|limit)\b
        | ^\W*(?:error:?\s*)?(?:[a-z0-9_]+\s+){0,6}(?:hit|reached|exceeded)\s+(?:the|its)\s+(?:maximum\s+)?output[\s-]token\s+limit\b
        "#,
    )
    .unwrap()
});

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static CONTENT_FILTER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
        \breason:\s*content_filter\b
        | \b(?:finish|stop)[_\s]?reason["'`]?\s*(?:is|was|[:=])?\s*["'`]?(?:content[_-]filter|safety|prohibited_content|blocklist|refusal)\b
        | \bcontent[_\s-](?:moderation|management|filtering)[_\s-]policy\b
        | \b(?:blocked|stopped|flagged|filtered)\s+by\s+(?:(?:the|a|an|its)\s+)?(?:[a-z0-9_']+\s+){0,3}(?:content|safety)[\s_-](?:filters?|settings)\b
        "#,
    )
    .unwrap()
});

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xim)
        \bAPI[\s_]?Error[:\s(]+([45]\d\d)\b
        | \b(?:(?P<of>[a-z_]+)[_\s])?(?:http|response)?(?:status(?:[_\s]*code)?|code)["':=\s]{1,4}([45]\d\d)\b
        | \b(?P<camel>(?-i:[a-z]+[A-Za-z]*))(?-i:Status(?:Code)?|Code)["':=\s]{1,4}([45]\d\d)\b
        | \bhttp["':=\s]{1,4}([45]\d\d)\b
        | (?:^\s*(?:Error:)?|"\w+"\s*:\s*")\s*([45]\d\d)\s+[A-Za-z{]
        | \b(?:client|server)\s+error\s+'([45]\d\d)\b
        | \b(?:upstream|server|gateway|proxy|API|HTTP|service|provider|endpoint)\s+
          (?:error|returned|responded\s+with|answered\s+with|failed\s+with)\s*:?\s+(?:an?\s+)?([45]\d\d)\b
        | \(([45]\d\d)\) | \berror:\s*([45]\d\d)\s+[A-Za-z{]
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
            ("upstream error 503", ErrorCategory::Provider),
            (r#"Internal error: {"status_code": 429}"#, ErrorCategory::RateLimit),
            (r#"Internal error: {"http_status":503}"#, ErrorCategory::Provider),
            (r#"Internal error: {"httpStatus":401}"#, ErrorCategory::Auth),
            (r#"Internal error: {"httpStatusCode":429}"#, ErrorCategory::RateLimit),
            (r#"Internal error: {"http_code":502}"#, ErrorCategory::Provider),
            (r#"Internal error: {"response":{"statusCode":503}}"#, ErrorCategory::Provider),
            (r#"Internal error: {"code":"UNAVAILABLE"}"#, ErrorCategory::Provider),
            (r#"Internal error: {"code":"UNAUTHENTICATED"}"#, ErrorCategory::Auth),
            ("the file is unavailable", ErrorCategory::Protocol),
            (r#"Internal error: {"error_code":429}"#, ErrorCategory::RateLimit),
            (r#"Internal error: {"apiStatusCode":503}"#, ErrorCategory::Provider),
            (r#"Internal error: {"code":"PERMISSION_DENIED"}"#, ErrorCategory::Auth),
            ("Internal error: grpc_status: DEADLINE_EXCEEDED", ErrorCategory::Provider),
            ("14 UNAVAILABLE: no connection established", ErrorCategory::Provider),
            ("Tool UNAVAILABLE in this mode", ErrorCategory::Protocol),
            ("exit_code: 404", ErrorCategory::Protocol),
            ("exit code 404", ErrorCategory::Protocol),
            ("exitCode: 404", ErrorCategory::Protocol),
            ("opcode: 404", ErrorCategory::Protocol),
            ("opCode: 404", ErrorCategory::Protocol),
            ("exit code 1, status 503", ErrorCategory::Provider),
            ("upstream error: 401", ErrorCategory::Auth),
            ("the server responded with a 529", ErrorCategory::RateLimit),
            ("invalid x-api-key", ErrorCategory::Auth),
            ("invalid_api_key", ErrorCategory::Auth),
            ("insufficient_quota", ErrorCategory::RateLimit),
            ("context_length_exceeded", ErrorCategory::Provider),
            ("Your credit balance is too low to access the API.", ErrorCategory::Provider),
            ("server error in line 503", ErrorCategory::Protocol),
            ("error 404 of 500 files", ErrorCategory::Protocol),
            ("upstream error 5031", ErrorCategory::Protocol),
            ("method not found: session/prompt", ErrorCategory::Protocol),
            ("cannot read properties of undefined", ErrorCategory::Protocol),
            ("line 404 of the file is wrong", ErrorCategory::Protocol),
            ("stream disconnected before completion: Transport error: network error", ErrorCategory::Provider),
            ("error sending request for url (http://127.0.0.1:9/v1/responses)", ErrorCategory::Provider),
            ("connect ECONNREFUSED 127.0.0.1:9", ErrorCategory::Provider),
            ("TypeError: fetch failed", ErrorCategory::Provider),
            ("terminated", ErrorCategory::Provider),
            ("Selected model is at capacity. Please try a different model.", ErrorCategory::Provider),
            ("The socket connection was closed unexpectedly.", ErrorCategory::Provider),
            ("Unable to connect. Is the computer able to access the url?", ErrorCategory::Provider),
            ("Failed to get response; Last error: 429 slow down", ErrorCategory::RateLimit),
            ("You've hit your usage limit. Try again at 3:10 PM.", ErrorCategory::RateLimit),
            (
                "You've hit your usage limit for GPT-5. Switch to another model now, or try again later.",
                ErrorCategory::RateLimit,
            ),
            ("The usage limit has been reached", ErrorCategory::RateLimit),
            ("You hit your spend cap set in your workspace.", ErrorCategory::RateLimit),
            ("Your workspace is out of credits. Add credits to continue.", ErrorCategory::RateLimit),
            (
                "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
                ErrorCategory::RateLimit,
            ),
            ("Quota exceeded. Check your plan and billing details.", ErrorCategory::RateLimit),
            ("exceeded retry limit, last status: 429 Too Many Requests, request id: r", ErrorCategory::RateLimit),
            ("exceeded retry limit, last status: 503 Service Unavailable", ErrorCategory::Provider),
            ("unexpected status 401 Unauthorized: Missing bearer, url: u", ErrorCategory::Auth),
            ("We're currently experiencing high demand, which may cause temporary errors.", ErrorCategory::Provider),
            ("Error while reading the server response: body, request id: r", ErrorCategory::Provider),
            ("Reconnecting... 2/5", ErrorCategory::Provider),
            ("Codex ran out of room in the model's context window. Start a new thread.", ErrorCategory::Provider),
            (
                r#"{"detail":"The 'm' model is not supported when using Codex with a ChatGPT account."}"#,
                ErrorCategory::Provider,
            ),
            (
                "Your access token could not be refreshed because your refresh token was revoked. Please log out and sign in again.",
                ErrorCategory::Auth,
            ),
            ("the usage limit of the tool is 5 calls", ErrorCategory::Protocol),
            ("401 invalid API key", ErrorCategory::Auth),
            ("Missing environment variable: `GATEWAY_API_KEY`.", ErrorCategory::Auth),
            ("Error: No authentication information found.", ErrorCategory::Auth),
            ("Unauthorized", ErrorCategory::Auth),
            ("OPENAI_API_KEY environment variable is not set", ErrorCategory::Auth),
            ("Error: OPENAI_API_KEY is required", ErrorCategory::Auth),
            ("ANTHROPIC_API_KEY is not set", ErrorCategory::Auth),
            ("please set ANTHROPIC_API_KEY", ErrorCategory::Auth),
            ("GITHUB_TOKEN is missing", ErrorCategory::Auth),
            ("HTTP 403 Forbidden", ErrorCategory::Auth),
            ("Error: token expired", ErrorCategory::Auth),
            ("starting\ncredentials not found\n", ErrorCategory::Auth),
            ("login failed", ErrorCategory::Auth),
            ("SyntaxError: next_token is required", ErrorCategory::Protocol),
            ("1 test failed: a user whose token expired is asked again", ErrorCategory::Protocol),
            ("test test_login failed", ErrorCategory::Protocol),
            ("session not found", ErrorCategory::Protocol),
            (r#"{"error":"unauthorized"}"#, ErrorCategory::Auth),
            ("ImportError: unauthorized import of module os", ErrorCategory::Protocol),
            ("Missing environment variable: PAGER", ErrorCategory::Protocol),
            ("You must be logged in to use this model", ErrorCategory::Auth),
            ("Your session has ended. Please log back in.", ErrorCategory::Auth),
            ("please sign into your account", ErrorCategory::Auth),
            ("DEBUG http: request body not logged (too long)", ErrorCategory::Protocol),
            ("please log this as a bug", ErrorCategory::Protocol),
            ("error: commits must be signed", ErrorCategory::Protocol),
            ("the process was terminated by its parent", ErrorCategory::Protocol),
        ] {
            assert_eq!(by_text(text), category, "{text}");
        }
    }

    #[test]
    fn the_last_words_of_an_agent_say_that_it_was_refused() {
        assert_eq!(refused_in("OPENAI_API_KEY is not set"), Some(ErrorCategory::Auth));
        assert_eq!(refused_in("error: 429 Too Many Requests"), Some(ErrorCategory::RateLimit));
        assert_eq!(refused_in("rate_limit_error: slow down"), Some(ErrorCategory::RateLimit));
        assert_eq!(refused_in("implemented the rate limit of the server"), None);
        let auth = Some(ErrorCategory::Auth);
        for (text, category) in [
            ("warning: GITHUB_TOKEN is not set, anonymous access", None),
            ("WARN OPENAI_API_KEY is not set\nSegmentation fault", None),
            ("2026-01-02T03:04:05Z  INFO token: login failed before\npanicked", None),
            ("(node:12) Warning: invalid api key\nTypeError: x", None),
            ("GITHUB_TOKEN is not set\nTypeError: x is undefined", None),
            ("GITHUB_TOKEN is not set", auth),
            ("Error: GITHUB_TOKEN is not set\n    at main", auth),
            ("warning: slow\nlogin failed\n    at main", auth),
        ] {
            assert_eq!(refused_in(text), category, "{text}");
        }
    }

    #[test]
    fn a_refusal_of_the_account_is_told_from_one_of_the_request() {
        for (text, expected) in [
            ("invalid_request_error Your credit balance is too low to access the Anthropic API.", true),
            ("INVALID_ARGUMENT API key not valid. Please pass a valid API key.", true),
            ("You have reached your specified API usage limits. You will regain access on 2026-12-01.", true),
            ("invalid_request_error billing_hard_limit_reached Billing hard limit has been reached", true),
            ("This organization has been disabled.", true),
            ("insufficient_quota You exceeded your current quota, please check your plan and billing details.", true),
            ("invalid_request_error authentication_error invalid x-api-key", true),
            ("Your organization has reached its monthly spend limit", true),
            ("invalid_request_error Arrearage Access denied.", true),
            ("Access denied, please make sure your account is in good standing.", true),
            ("INVALID_ARGUMENT Consumer has been suspended.", true),
            ("This request requires more credits, or fewer max_tokens. You can only afford 100.", true),
            ("FAILED_PRECONDITION User location is not supported for the API use.", true),
            // Texts that quote another server or the conversation.
            ("Error while downloading https://x/y.png. Upstream status code: 403.", false),
            ("Unable to download image from https://x/y.png: 403 Forbidden", false),
            ("Error retrieving tool list from MCP server: https://x. Http status code: 401 (Unauthorized)", false),
            ("Error retrieving tool list from MCP server: https://x: invalid API key", false),
            ("Failed to fetch image: HTTP 429", false),
            ("messages.4: prompt blocked: \"please log in to continue\"", false),
            ("Too many input tokens: quota of 100 images exceeded", false),
            ("invalid_request_error Request too large: exceeded rate limit of images per request", false),
            ("invalid_image_url Failed to fetch the image: authentication_error", false),
            ("invalid_request_error prompt is too long: 210000 tokens > 200000 maximum", false),
            ("invalid_request_error context_length_exceeded Please reduce the length of the messages.", false),
            ("`max_output_tokens` must be at least 16", false),
            ("messages.3: the balance sheet of the account is no valid image", false),
            ("not today", false),
        ] {
            assert_eq!(is_of_account(text), expected, "{text}");
        }
    }

    #[test]
    fn a_limit_or_a_filter_that_is_worded_as_an_error_is_how_the_model_ended() {
        for (text, reason) in [
            ("Incomplete response returned, reason: max_output_tokens", Some(StopReason::MaxTokens)),
            ("API Error: Claude's response exceeded the 32000 output token maximum.", Some(StopReason::MaxTokens)),
            ("the stream ended with finish_reason: length", Some(StopReason::MaxTokens)),
            ("Incomplete response returned, reason: content_filter", Some(StopReason::Refusal)),
            (
                "Request failed due to triggering the model provider's content moderation policy. Please modify it.",
                Some(StopReason::Refusal),
            ),
            ("finishReason: SAFETY", Some(StopReason::Refusal)),
            ("Provider finish_reason: content_filter", Some(StopReason::Refusal)),
            ("The response was blocked by the provider's content filter", Some(StopReason::Refusal)),
            // Requests that were refused because of the limit they asked for.
            ("400 max_tokens is too large: 100000. This model supports at most 8192 completion tokens", None),
            ("`max_output_tokens` must be at least 16", None),
            ("prompt is too long: 210000 tokens > 200000 maximum", None),
            ("API Error: 500 the content filter service is down", None),
        ] {
            assert_eq!(ended_in(text), reason, "{text}");
        }
    }
}
