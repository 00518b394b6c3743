//! The purpose of a request, determined by its method, path and headers.

use axum::http::{HeaderMap, Method};

use super::Api;

/// The parts of paths to which requests cost nothing: reports about the agent, its login, and what is kept at the service.
const FREE: [&str; 20] = [
    "apply-template",
    "cancel",
    "conversations",
    "detokenize",
    "files",
    "health",
    "initialize",
    "input_items",
    "log",
    "login",
    "logout",
    "logs",
    "moderations",
    "oauth",
    "ping",
    "register",
    "rgstr",
    "tokenize",
    "traces",
    "uploads",
];

/// Words in the parts of such paths, as in `event_logging` and `claude_code_metrics`.
const FREE_WORDS: [&str; 5] = ["analytics", "event", "feedback", "metrics", "telemetry"];

/// The purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// An answer of the model.
    Answer(Api),
    /// A count of tokens.
    Count(Api),
    /// The list of models, or the model with this name.
    Models(Api, Option<String>),
    /// A check whether the server is running.
    Probe,
    Unknown,
}

impl Purpose {
    /// Returns the purpose of a request. Base URLs differ: some include `/v1`, others do not. `path` may have a query, and `api` is
    /// the API of requests that do not show it.
    pub fn of(method: &Method, path: &str, headers: &HeaderMap, api: Option<Api>) -> Self {
        let whole = path;
        let path = without_query(path).trim_end_matches('/');
        if *method == Method::POST {
            let (_, last) = path.rsplit_once('/').unwrap_or(("", path));
            return match last.rsplit_once(':') {
                Some((_, "generateContent" | "streamGenerateContent")) => Purpose::Answer(Api::Gemini),
                Some((_, "countTokens")) => Purpose::Count(Api::Gemini),
                _ if path.ends_with("/messages/count_tokens") => Purpose::Count(Api::Anthropic),
                _ if path.ends_with("/chat/completions") => Purpose::Answer(Api::OpenaiChat),
                _ if path.ends_with("/responses/input_tokens") => Purpose::Count(Api::OpenaiResponses),
                _ if last == "messages" => Purpose::Answer(Api::Anthropic),
                _ if last == "responses" => Purpose::Answer(Api::OpenaiResponses),
                _ => Purpose::Unknown,
            };
        }
        if *method != Method::GET && *method != Method::HEAD && *method != Method::OPTIONS {
            return Purpose::Unknown;
        }
        match path.split_once("/models") {
            Some((before, "")) => Purpose::Models(lists(before, whole, headers, api), None),
            Some((before, name)) if name.starts_with('/') => {
                let name = name.trim_start_matches('/').to_owned();
                Purpose::Models(lists(before, whole, headers, api), Some(name))
            }
            _ if *method == Method::HEAD || matches!(path, "" | "/v1" | "/v1beta" | "/health") => Purpose::Probe,
            _ => Purpose::Unknown,
        }
    }

    /// Returns the purpose of a logged request. For a list of models, the API cannot be determined for certain.
    pub fn of_logged(method: &str, path: &str) -> Self {
        Method::from_bytes(method.as_bytes())
            .map_or(Purpose::Unknown, |method| Purpose::of(&method, path, &HeaderMap::new(), None))
    }

    /// Returns true if a request to a path that no API describes costs nothing, such as telemetry. Other such requests may ask
    /// for an answer of a model.
    pub fn is_free(path: &str) -> bool {
        let path = without_query(path).to_ascii_lowercase();
        let mut parts = path.split(['/', ':']);
        parts.any(|part| FREE.contains(&part) || FREE_WORDS.iter().any(|word| part.contains(word)))
    }

    /// Guesses the API of a request whose path no API describes, by its headers, by a key in its query, and by the base URLs that
    /// the gateway gives to commands: that of OpenAI ends in `/v1`. `path` may have a query.
    pub fn guess(path: &str, headers: &HeaderMap) -> Option<Api> {
        if headers.contains_key("anthropic-version") || headers.contains_key("x-api-key") {
            return Some(Api::Anthropic);
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let has_key = query.split('&').any(|part| part.starts_with("key="));
        if headers.contains_key("x-goog-api-key") || has_key || path.starts_with("/v1beta") {
            return Some(Api::Gemini);
        }
        path.starts_with("/v1/").then_some(Api::OpenaiChat)
    }

    pub fn is_known(&self) -> bool {
        self.api().is_some()
    }

    /// Returns the API of a request, if it is known.
    pub fn api(&self) -> Option<Api> {
        match self {
            Purpose::Answer(api) | Purpose::Count(api) | Purpose::Models(api, _) => Some(*api),
            Purpose::Probe | Purpose::Unknown => None,
        }
    }
}

fn without_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// Returns the API of a request for the list of models. Services use the same path: a header decides, then `api`, which is that of
/// the agent's manifest, then the way in which the request names its key. `before` is the path before `/models`.
fn lists(before: &str, path: &str, headers: &HeaderMap, api: Option<Api>) -> Api {
    if before.ends_with("/v1beta") {
        return Api::Gemini;
    }
    if headers.contains_key("anthropic-version") {
        return Api::Anthropic;
    }
    // Gemini's paths begin with a version.
    let fits = |api: &Api| *api != Api::Gemini || before.ends_with("/v1");
    match api.filter(fits).or_else(|| Purpose::guess(path, headers)) {
        Some(Api::Anthropic) => Api::Anthropic,
        Some(Api::Gemini) => Api::Gemini,
        // Both APIs of this service have one list.
        Some(Api::OpenaiChat | Api::OpenaiResponses) | None => Api::OpenaiChat,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn paths_are_known_whatever_stands_before() {
        for (path, wanted) in [
            ("/v1/messages", Purpose::Answer(Api::Anthropic)),
            ("/messages", Purpose::Answer(Api::Anthropic)),
            ("/v1/messages/count_tokens", Purpose::Count(Api::Anthropic)),
            ("/openai/v1/responses", Purpose::Answer(Api::OpenaiResponses)),
            ("/v1/responses/input_tokens", Purpose::Count(Api::OpenaiResponses)),
            ("/chat/completions", Purpose::Answer(Api::OpenaiChat)),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", Purpose::Answer(Api::Gemini)),
            ("/v1/models/a:countTokens", Purpose::Count(Api::Gemini)),
            ("/v1/embeddings", Purpose::Unknown),
        ] {
            assert_eq!(Purpose::of(&Method::POST, path, &HeaderMap::new(), None), wanted, "{path}");
        }
        for (path, wanted) in [
            ("/v1/models", Purpose::Models(Api::OpenaiChat, None)),
            ("/v1/models/a/b", Purpose::Models(Api::OpenaiChat, Some("a/b".to_owned()))),
            ("/v1beta/models", Purpose::Models(Api::Gemini, None)),
            ("/v1beta/models/x", Purpose::Models(Api::Gemini, Some("x".to_owned()))),
            ("/", Purpose::Probe),
            ("/v1/messages", Purpose::Unknown),
        ] {
            assert_eq!(Purpose::of(&Method::GET, path, &HeaderMap::new(), None), wanted, "{path}");
        }
        assert_eq!(Purpose::of(&Method::HEAD, "/anything", &HeaderMap::new(), None), Purpose::Probe);
        assert_eq!(Purpose::of(&Method::DELETE, "/v1/models", &HeaderMap::new(), None), Purpose::Unknown);
    }

    #[test]
    fn reports_about_an_agent_cost_nothing() {
        for path in ["/api/event_logging/batch", "/api/claude_code/metrics?x=1", "/v1/logs", "/v1i:recordMetrics"] {
            assert!(Purpose::is_free(path), "{path}");
        }
        for path in ["/v1/completions", "/v1/embeddings", "/v1/responses/compact", "/v1/models/m:predict", "/blog"] {
            assert!(!Purpose::is_free(path), "{path}");
        }
    }

    #[test]
    fn lists_of_models_differ_by_a_header_the_manifest_and_the_key() {
        for (header, path, manifest, wanted) in [
            ("anthropic-version", "/v1/models", None, Api::Anthropic),
            ("anthropic-version", "/v1/models", Some(Api::OpenaiChat), Api::Anthropic),
            ("anthropic-version", "/v1beta/models", None, Api::Gemini),
            ("x-api-key", "/v1/models?limit=1000", Some(Api::Anthropic), Api::Anthropic),
            ("x-api-key", "/v1/models", None, Api::Anthropic),
            ("x-api-key", "/v1/models", Some(Api::OpenaiResponses), Api::OpenaiChat),
            ("authorization", "/v1/models", Some(Api::Anthropic), Api::Anthropic),
            ("authorization", "/v1/models", None, Api::OpenaiChat),
            ("authorization", "/v1/models/m", Some(Api::Gemini), Api::Gemini),
            ("authorization", "/models", Some(Api::Gemini), Api::OpenaiChat),
            ("x-goog-api-key", "/v1/models", None, Api::Gemini),
            ("accept", "/v1/models?pageSize=1&key=k", None, Api::Gemini),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header, HeaderValue::from_static("v"));
            let found = Purpose::of(&Method::GET, path, &headers, manifest).api();
            assert_eq!(found, Some(wanted), "{header} {path} {manifest:?}");
        }
    }
}
