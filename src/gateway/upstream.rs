//! The services behind the gateway: their addresses, the user's keys, and the client that sends requests on.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use reqwest::redirect;

use super::Api;
use super::purpose::Purpose;
use crate::proxy::proxy_for;
use crate::secrets::urls::{credentials_in, without_credentials};
use crate::secrets::{MIN_SECRET_BYTES, looks_secret};

/// The variable with the headers that the user adds.
const HEADERS: &str = "EVALS_UPSTREAM_HEADERS";

/// The address of Anthropic's own service.
pub const ANTHROPIC: &str = "https://api.anthropic.com";
/// The address of OpenAI's own service.
pub const OPENAI: &str = "https://api.openai.com/v1";

/// The variables with the addresses of services.
const ADDRESSES: [&str; 6] = [
    "EVALS_UPSTREAM_ANTHROPIC",
    "EVALS_UPSTREAM_OPENAI",
    "EVALS_UPSTREAM_GEMINI",
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
    "GOOGLE_GEMINI_BASE_URL",
];

/// The name of masked credentials in these addresses.
const CREDENTIALS: &str = "UPSTREAM_CREDENTIALS";

/// The beginning of the variables of this program's own.
const OF_THIS_PROGRAM: &str = "EVALS_";

/// The time for establishing a connection to a service.
const CONNECT: Duration = Duration::from_secs(30);

/// The services, and the client that reaches them.
#[derive(Clone)]
pub struct Upstream {
    anthropic: Service,
    openai: Service,
    gemini: Service,
    /// Headers that are added to each request.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Placeholders for keys in an agent's settings. They are not keys.
    placeholders: Vec<String>,
    client: reqwest::Client,
}

#[derive(Clone)]
struct Service {
    /// The address, without a trailing slash.
    base_url: String,
    /// True if the address is the service's own, and not one that the user named.
    is_own: bool,
    /// The user's key, which replaces placeholders.
    key: Option<String>,
    /// All of the user's keys of the service. Agents may send them themselves.
    keys: Vec<String>,
    /// The variables that may hold the key.
    variables: &'static [&'static str],
}

/// The reason why requests cannot be sent on.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// A variable holds no address.
    #[error("{variable} is `{address}`, which is not an address that begins with http:// or https://")]
    Address {
        variable: &'static str,
        /// The value of the variable.
        address: String,
    },
    /// A variable holds no headers.
    #[error("EVALS_UPSTREAM_HEADERS has a line that is not `Name: value`")]
    Headers,
    /// The client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// The reason why a request got no answer of a service.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The agent sent a placeholder instead of a key, and the user has no key.
    #[error("no key for this service: set {}", .0.join(" or "))]
    NoKey(&'static [&'static str]),
    /// The service cannot be reached.
    #[error("{address} cannot be reached: {why}")]
    Unreachable {
        address: String,
        /// The reason.
        why: String,
    },
}

/// A request that is sent on.
pub struct Outgoing {
    pub method: Method,
    /// The path with its query, as the agent sent it.
    pub path: String,
    /// The agent's headers.
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A request that was sent on.
pub struct Sent {
    /// The answer, of which the head has arrived.
    pub answer: reqwest::Response,
    /// The names of the headers, and of the parts of the query, that the service did not get because they are keys of another
    /// service.
    pub left_out: Vec<String>,
}

impl Upstream {
    /// Reads the services from an environment.
    ///
    /// # Errors
    /// Returns an error if a variable is not valid.
    pub fn of_env(env: &BTreeMap<String, String>) -> Result<Self, UpstreamError> {
        let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let service =
            |names: &[&'static str], own: &str, variables: &'static [&'static str]| -> Result<Service, UpstreamError> {
                let base_url = base_url(env, names, own)?;
                let keys: Vec<String> = variables.iter().filter_map(|name| get(name)).map(str::to_owned).collect();
                Ok(Service { is_own: base_url == own, base_url, key: keys.first().cloned(), keys, variables })
            };
        let mut anthropic =
            service(&["EVALS_UPSTREAM_ANTHROPIC", "ANTHROPIC_BASE_URL"], ANTHROPIC, &["ANTHROPIC_API_KEY"])?;
        // Another header holds this key than holds the placeholders.
        anthropic.keys.extend(get("ANTHROPIC_AUTH_TOKEN").map(str::to_owned));
        let openai = service(&["EVALS_UPSTREAM_OPENAI", "OPENAI_BASE_URL"], OPENAI, &["OPENAI_API_KEY"])?;
        let gemini = service(
            &["EVALS_UPSTREAM_GEMINI", "GOOGLE_GEMINI_BASE_URL"],
            "https://generativelanguage.googleapis.com",
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )?;
        let headers = added_headers(env)?;
        Ok(Self { anthropic, openai, gemini, headers, placeholders: Vec::new(), client: client(env)? })
    }

    /// Returns the services for an agent that sends one of these values in place of a key if it has none.
    #[must_use]
    pub fn with_placeholders(&self, placeholders: Vec<String>) -> Self {
        Self { placeholders, ..self.clone() }
    }

    fn service(&self, api: Api) -> &Service {
        match api {
            Api::Anthropic => &self.anthropic,
            Api::OpenaiChat | Api::OpenaiResponses => &self.openai,
            Api::Gemini => &self.gemini,
        }
    }

    /// Returns true if the user has a key for an API.
    pub fn has_key(&self, api: Api) -> bool {
        self.service(api).key.is_some()
    }

    /// Returns the address of a request.
    pub fn url(&self, api: Api, method: &str, path: &str) -> String {
        let base = &self.service(api).base_url;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        match api {
            // The address of this service has the version, and that of the gateway has it only for some agents.
            Api::OpenaiChat | Api::OpenaiResponses => {
                let rest = path.strip_prefix("/v1").filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
                joined(base, rest.unwrap_or(&path))
            }
            Api::Anthropic if Purpose::of_logged(method, &path).is_known() && !path.starts_with("/v1/") => {
                joined(base, &format!("/v1{path}"))
            }
            Api::Anthropic | Api::Gemini => joined(base, &path),
        }
    }

    /// Forwards a request, and returns the answer as soon as its head has arrived.
    ///
    /// # Errors
    /// Returns an error if there is no key, or the service cannot be reached.
    pub async fn send(&self, api: Api, outgoing: Outgoing) -> Result<Sent, SendError> {
        let service = self.service(api);
        let (path, mut left_out) = self.path_with_key(service, &outgoing.path)?;
        let url = self.url(api, outgoing.method.as_str(), &path);
        let mut headers = HeaderMap::new();
        for (name, value) in &outgoing.headers {
            if is_of_the_connection(name) {
                continue;
            }
            let text = value.to_str().ok().map(|text| self.with_key(service, text)).transpose()?;
            if self.is_key_of_another(service, name.as_str(), text.as_deref().unwrap_or_default()) {
                // A header that the user adds would replace it.
                if !self.headers.iter().any(|(added, _)| added == name) {
                    left_out.push(name.to_string());
                }
                continue;
            }
            let value = text.and_then(|text| HeaderValue::from_str(&text).ok()).unwrap_or_else(|| value.clone());
            headers.append(name.clone(), value);
        }
        // What the service says is evidence, so it should come as text.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        let request = self.client.request(outgoing.method, &url).headers(headers).body(outgoing.body);
        let answer = request.send().await.map_err(|error| SendError::Unreachable {
            address: without_credentials(&service.base_url),
            why: causes(&error.without_url()),
        })?;
        Ok(Sent { answer, left_out })
    }

    /// Replaces a placeholder by the user's key, if it is the whole value or all that follows the word of a scheme.
    fn with_key(&self, service: &Service, text: &str) -> Result<String, SendError> {
        let (scheme, value) = match text.split_once(' ') {
            Some((scheme, value)) => (format!("{scheme} "), value),
            None => (String::new(), text),
        };
        if value.is_empty() || !self.placeholders.iter().any(|placeholder| placeholder == value) {
            return Ok(text.to_owned());
        }
        let key = service.key.as_ref().ok_or(SendError::NoKey(service.variables))?;
        Ok(format!("{scheme}{key}"))
    }

    /// Replaces a placeholder in the query of a path, and leaves out the key of another service. Returns the path, and the names
    /// of what was left out.
    fn path_with_key(&self, service: &Service, path: &str) -> Result<(String, Vec<String>), SendError> {
        let Some((path, query)) = path.split_once('?') else { return Ok((path.to_owned(), Vec::new())) };
        let (mut parts, mut left_out) = (Vec::new(), Vec::new());
        for part in query.split('&') {
            let Some((name, value)) = part.split_once('=') else {
                parts.push(part.to_owned());
                continue;
            };
            let value = self.with_key(service, value)?;
            match self.is_key_of_another(service, name, &value) {
                true => left_out.push(name.to_owned()),
                false => parts.push(format!("{name}={value}")),
            }
        }
        if parts.is_empty() {
            return Ok((path.to_owned(), left_out));
        }
        Ok((format!("{path}?{}", parts.join("&")), left_out))
    }

    /// Returns true if the value of a header, or of a part of the query, is a key of another service, which `service` must not
    /// receive: the user's key of that service, or a key under the name that only that service uses. At an address that the user
    /// named, such a name may hold the key of a proxy. A key of `service` itself is none, whatever else the user has it for.
    fn is_key_of_another(&self, service: &Service, name: &str, value: &str) -> bool {
        let bare = value.split_once(' ').map_or(value, |(_, bare)| bare);
        let has_key = |of: &Service| of.keys.iter().any(|key| key == bare);
        if has_key(service) {
            return false;
        }
        let is_elsewhere = |other: &Service| origin(&other.base_url) != origin(&service.base_url);
        let named_by = match name {
            "x-api-key" => Some(&self.anthropic),
            "x-goog-api-key" | "key" => Some(&self.gemini),
            _ => None,
        };
        let all = [&self.anthropic, &self.openai, &self.gemini];
        let is_key = |other: &Service| bare.len() >= MIN_SECRET_BYTES && has_key(other);
        all.into_iter().any(|other| is_key(other) && is_elsewhere(other))
            || (service.is_own && named_by.is_some_and(is_elsewhere))
    }
}

/// Returns the scheme, the host and the port of an address. All names of loopback are one host.
fn origin(address: &str) -> String {
    let Ok(url) = reqwest::Url::parse(address) else { return address.to_ascii_lowercase() };
    let host = url.host_str().unwrap_or_default();
    let is_loopback = |ip: IpAddr| ip.is_loopback();
    let is_here = host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(is_loopback);
    let host = if is_here { "localhost" } else { host };
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}://{host}:{port}", url.scheme())
}

/// Returns the address of a service without a trailing slash: the first of the variables that is set, or the service's own
/// address. An empty variable counts as not set, unless it is this program's own: then it is a mistake, such as `$(cat FILE)` of
/// an empty file.
///
/// # Errors
/// Returns an error if the variable holds no address.
pub fn base_url(env: &BTreeMap<String, String>, names: &[&'static str], own: &str) -> Result<String, UpstreamError> {
    let mut set = names.iter().copied().filter_map(|name| Some((name, env.get(name)?.trim())));
    match set.find(|(name, value)| !value.is_empty() || name.starts_with(OF_THIS_PROGRAM)) {
        None => Ok(own.to_owned()),
        Some((_, address)) if is_address(address) => Ok(address.trim_end_matches('/').to_owned()),
        Some((variable, address)) => Err(UpstreamError::Address { variable, address: address.to_owned() }),
    }
}

/// Returns an address with a path, which may have a query. The query of the address itself, such as a version, stays at the end.
pub fn joined(address: &str, path: &str) -> String {
    let Some((address, own)) = address.split_once('?') else { return format!("{address}{path}") };
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{}{path}{mark}{own}", address.trim_end_matches('/'))
}

/// Returns the headers that the user adds to every request to a service.
///
/// # Errors
/// Returns an error if the variable holds no headers.
pub fn added_headers(env: &BTreeMap<String, String>) -> Result<Vec<(HeaderName, HeaderValue)>, UpstreamError> {
    headers(env.get(HEADERS).map(String::as_str).unwrap_or_default())
}

fn is_address(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

/// Reads headers, one on each line.
fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, UpstreamError> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let read = lines.map(|line| {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(value.trim()).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    });
    read.collect::<Option<_>>().ok_or(UpstreamError::Headers)
}

/// Returns the secrets of the user's services by name: the values of the headers that the user adds, and the credentials in the
/// addresses.
pub fn service_secrets(env: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let addresses = ADDRESSES.iter().filter_map(|name| env.get(*name)).flat_map(|address| address_secrets(address));
    let addresses = addresses.map(|secret| (CREDENTIALS.to_owned(), secret));
    secret_headers(env).into_iter().chain(addresses).collect()
}

/// Returns the credentials in the address of a service. Its query goes with each request, and services repeat it.
pub fn address_secrets(address: &str) -> Vec<String> {
    // Names that other addresses use for something else: the code of a function, and a signature.
    const NAMES: [&str; 4] = ["code", "k", "sig", "signature"];
    let mut found = credentials_in(address);
    let query = address.split('#').next().and_then(|it| it.split_once('?')).map_or("", |(_, query)| query);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let is_secret = looks_secret(name) || NAMES.iter().any(|it| name.eq_ignore_ascii_case(it));
        if is_secret && value.len() >= MIN_SECRET_BYTES && !found.iter().any(|known| known.contains(value)) {
            found.push(value.to_owned());
        }
    }
    found
}

/// Returns the values of the headers that the user adds, by name: they are secrets.
fn secret_headers(env: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let lines = env.get(HEADERS).map(String::as_str).unwrap_or_default().lines();
    let values = lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()));
    let parts = values.flat_map(|(name, value)| {
        // A service may repeat the credential without its scheme.
        let bare = value.split_once(' ').map(|(_, bare)| (name.to_owned(), bare.to_owned()));
        std::iter::once((name.to_owned(), value.to_owned())).chain(bare)
    });
    parts.collect()
}

fn client(env: &BTreeMap<String, String>) -> Result<reqwest::Client, UpstreamError> {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let env = env.clone();
    let proxy = reqwest::Proxy::custom(move |url| {
        let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        proxy_for(url.as_str(), get)
    });
    let builder = reqwest::Client::builder()
        .proxy(proxy)
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .referer(false);
    builder.build().map_err(|error| UpstreamError::Client(causes(&error)))
}

/// Returns true for a header that belongs to the connection and not to the request.
pub(super) fn is_of_the_connection(name: &HeaderName) -> bool {
    const NAMES: [HeaderName; 11] = [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::ACCEPT_ENCODING,
        header::EXPECT,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        header::PROXY_AUTHORIZATION,
        header::PROXY_AUTHENTICATE,
    ];
    NAMES.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Returns the messages of an error and its causes, joined by `: `. Repeated messages are left out.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(env: &[(&str, &str)]) -> Result<Upstream, UpstreamError> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Upstream::of_env(&env).map(|it| it.with_placeholders(vec!["no-key".to_owned()]))
    }

    #[test]
    fn addresses_are_the_user_s_or_the_services_own() {
        let own = upstream(&[("ANTHROPIC_BASE_URL", "http://corp.example/claude/")]).unwrap();
        let set = upstream(&[
            ("ANTHROPIC_BASE_URL", "http://corp.example"),
            ("EVALS_UPSTREAM_ANTHROPIC", "http://127.0.0.1:9"),
            ("EVALS_UPSTREAM_OPENAI", "http://127.0.0.1:8/v1"),
            ("EVALS_UPSTREAM_GEMINI", "http://127.0.0.1:7/"),
        ])
        .unwrap();
        let versioned = upstream(&[
            ("ANTHROPIC_BASE_URL", "http://corp.example?v=1"),
            ("OPENAI_BASE_URL", "http://corp.example/v1/?api-version=1&x=2"),
        ])
        .unwrap();
        for (of, api, path, wanted) in [
            (&own, Api::Anthropic, "/v1/messages?beta=true", "http://corp.example/claude/v1/messages?beta=true"),
            (&own, Api::OpenaiChat, "/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
            (&set, Api::Anthropic, "/v1/messages", "http://127.0.0.1:9/v1/messages"),
            (&set, Api::Anthropic, "/messages", "http://127.0.0.1:9/v1/messages"),
            (&set, Api::OpenaiResponses, "/v1/responses", "http://127.0.0.1:8/v1/responses"),
            (&set, Api::OpenaiChat, "/chat/completions", "http://127.0.0.1:8/v1/chat/completions"),
            (&set, Api::OpenaiChat, "/v1beta/x", "http://127.0.0.1:8/v1/v1beta/x"),
            (&versioned, Api::Anthropic, "/v1/messages?beta=true", "http://corp.example/v1/messages?beta=true&v=1"),
            (
                &versioned,
                Api::OpenaiChat,
                "/v1/chat/completions",
                "http://corp.example/v1/chat/completions?api-version=1&x=2",
            ),
            (
                &set,
                Api::Gemini,
                "/v1beta/models/m:generateContent",
                "http://127.0.0.1:7/v1beta/models/m:generateContent",
            ),
        ] {
            assert_eq!(of.url(api, "POST", path), wanted);
        }
        let wrong = upstream(&[("EVALS_UPSTREAM_OPENAI", "localhost:8")]).err().unwrap().to_string();
        assert!(wrong.starts_with("EVALS_UPSTREAM_OPENAI is `localhost:8`"), "{wrong}");
        assert!(upstream(&[("EVALS_UPSTREAM_HEADERS", "X-Team evals")]).is_err());
        let empty = upstream(&[("EVALS_UPSTREAM_OPENAI", "")]).err().unwrap().to_string();
        assert!(empty.starts_with("EVALS_UPSTREAM_OPENAI is ``"), "{empty}");
    }

    #[test]
    fn a_placeholder_becomes_the_user_s_key() {
        let with = upstream(&[("ANTHROPIC_API_KEY", "sk-own")]).unwrap();
        let keyed = |of: &Upstream, api, text| of.with_key(of.service(api), text).map_err(|error| error.to_string());
        assert_eq!(keyed(&with, Api::Anthropic, "Bearer no-key").unwrap(), "Bearer sk-own");
        assert_eq!(keyed(&with, Api::Anthropic, "sk-other").unwrap(), "sk-other");
        // A short placeholder is no part of another value.
        assert_eq!(keyed(&with, Api::Anthropic, "no-key/1.0").unwrap(), "no-key/1.0");
        let path = with.path_with_key(&with.gemini, "/no-key/models?alt=sse&x=no-key2").ok();
        assert_eq!(path, Some(("/no-key/models?alt=sse&x=no-key2".to_owned(), Vec::new())));
        let error = keyed(&with, Api::OpenaiChat, "Bearer no-key").unwrap_err();
        assert_eq!(error, "no key for this service: set OPENAI_API_KEY");
    }

    #[test]
    fn a_key_goes_to_no_other_service() {
        let keys = [("ANTHROPIC_API_KEY", "sk-ant-key"), ("OPENAI_API_KEY", "sk-oai-key")];
        let own = upstream(&keys).unwrap();
        let named = upstream(&[&keys[..], &[("OPENAI_BASE_URL", "http://proxy.example/v1")]].concat()).unwrap();
        let one =
            [("ANTHROPIC_BASE_URL", "http://Proxy.example/claude"), ("OPENAI_BASE_URL", "http://proxy.example/v1")];
        let one = upstream(&[&keys[..], &one].concat()).unwrap();
        for (of, api, name, value, is_left_out) in [
            (&own, Api::OpenaiChat, "x-api-key", "sk-ant-key", true),
            (&own, Api::OpenaiChat, "authorization", "Bearer sk-ant-key", true),
            (&own, Api::OpenaiChat, "x-api-key", "unknown", true),
            (&own, Api::OpenaiChat, "key", "unknown", true),
            (&own, Api::Anthropic, "x-goog-api-key", "unknown", true),
            (&own, Api::Anthropic, "x-api-key", "unknown", false),
            (&own, Api::Anthropic, "x-api-key", "sk-ant-key", false),
            (&own, Api::OpenaiChat, "authorization", "Bearer sk-oai-key", false),
            (&own, Api::OpenaiChat, "authorization", "Bearer unknown", false),
            (&own, Api::Gemini, "key", "unknown", false),
            (&named, Api::OpenaiChat, "x-api-key", "unknown", false),
            (&named, Api::OpenaiChat, "x-api-key", "sk-ant-key", true),
            (&one, Api::OpenaiChat, "x-api-key", "sk-ant-key", false),
        ] {
            let found = of.is_key_of_another(of.service(api), name, value);
            assert_eq!(found, is_left_out, "{} {name}: {value}", of.service(api).base_url);
        }
        let path = |path: &str| own.path_with_key(&own.openai, path).ok();
        let left_out = vec!["key".to_owned()];
        assert_eq!(path("/v1/models?key=k&a=1"), Some(("/v1/models?a=1".to_owned(), left_out.clone())));
        assert_eq!(path("/v1/models?key=k"), Some(("/v1/models".to_owned(), left_out)));
    }

    #[test]
    fn a_key_of_several_services_goes_to_each_of_them() {
        const KEY: &str = "sk-of-a-proxy";
        for (names, api, is_left_out) in [
            (["OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN"], Api::Anthropic, false),
            (["OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN"], Api::OpenaiChat, false),
            (["OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN"], Api::Gemini, true),
            (["OPENAI_API_KEY", "GOOGLE_API_KEY"], Api::Gemini, false),
            (["OPENAI_API_KEY", "GOOGLE_API_KEY"], Api::Anthropic, true),
            (["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"], Api::OpenaiChat, true),
            (["ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY"], Api::OpenaiChat, true),
        ] {
            // A first key of the service, which replaces placeholders.
            let mut env = vec![("ANTHROPIC_BASE_URL", "http://corp.example"), ("GEMINI_API_KEY", "AIza-first-key")];
            env.extend(names.map(|name| (name, KEY)));
            let of = upstream(&env).unwrap();
            let found = of.is_key_of_another(of.service(api), "authorization", &format!("Bearer {KEY}"));
            assert_eq!(found, is_left_out, "{names:?} {api:?}");
        }
        for (one, other, is_same) in [
            ("http://localhost:4000", "http://127.0.0.1:4000/v1", true),
            ("http://LOCALHOST:4000", "http://[::1]:4000", true),
            ("https://Proxy.example", "https://user:word@proxy.example:443/v1?x=1", true),
            ("http://proxy.example:80", "http://proxy.example/", true),
            ("http://localhost:4000", "http://localhost:4001", false),
            ("http://proxy.example", "https://proxy.example", false),
            ("http://localhost:4000", "http://localhost.example:4000", false),
        ] {
            assert_eq!(origin(one) == origin(other), is_same, "{one} {other}");
        }
    }
}
