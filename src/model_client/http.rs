//! Sends one request over HTTP and reads the whole response. Redirects are not followed, so that a key is sent
//! to no other server.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::redirect;
use serde_json::Value;

use super::{AskError, Service};
use crate::gateway::encoding::{self, Obstacle};
use crate::gateway::upstream::{causes, joined};
use crate::secrets::urls::without_credentials;

/// The maximum size of a response in bytes.
const MAX_ANSWER: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Http {
    time: Duration,
    /// The clients by their proxy. They are kept because making a client reads all certificates of the machine.
    clients: Mutex<HashMap<Option<String>, reqwest::Client>>,
}

/// A header of a request.
pub(super) type HeaderLine = (&'static str, String);

pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

impl Http {
    pub(super) fn new(time: Duration) -> Self {
        Self { time, clients: Mutex::default() }
    }

    /// Sends a request and waits for the whole response. Called on threads that may block.
    pub(super) fn post(
        &self,
        service: &Service,
        path: &str,
        headers: &[HeaderLine],
        body: &Value,
    ) -> Result<HttpResponse, AskError> {
        let asked = self.send(service, path, headers, body);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.block_on(asked),
            Err(_) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.map_err(|error| AskError::Unreachable(error.to_string()))?.block_on(asked)
            }
        }
    }

    async fn send(
        &self,
        service: &Service,
        path: &str,
        headers: &[HeaderLine],
        body: &Value,
    ) -> Result<HttpResponse, AskError> {
        let client = self.client(service.proxy.as_deref())?;
        let mut request = client.post(joined(&service.base_url, path)).timeout(self.time);
        request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        // An added header replaces one of the same name.
        request = request.headers(service.headers.clone());
        let mut response = request.send().await.map_err(|error| match self.error(error) {
            AskError::Unreachable(why) => {
                AskError::Unreachable(format!("{why} at {}", without_credentials(&service.base_url)))
            }
            other => other,
        })?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let retry_after = header("retry-after-ms")
            .and_then(|ms| ms.parse().ok())
            .map(Duration::from_millis)
            .or_else(|| header("retry-after").and_then(seconds));
        let status = response.status().as_u16();
        let encoding = encoding::name_of(response.headers());
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.error_within(error))? {
            if body.len() + bytes.len() > MAX_ANSWER {
                return Err(AskError::Cut(format!("the answer is larger than {MAX_ANSWER} bytes")));
            }
            body.extend_from_slice(&bytes);
        }
        // Some services compress answers unasked.
        if !encoding.is_empty() && !body.is_empty() {
            body = match encoding::undone(&encoding, &body, MAX_ANSWER) {
                (plain, None) => plain,
                (_, Some(Obstacle::EndsEarly)) => {
                    return Err(AskError::Cut(format!("its content encoding `{encoding}` ends too early")));
                }
                (_, Some(Obstacle::TooLarge)) => {
                    return Err(AskError::Cut(format!("the answer is larger than {MAX_ANSWER} bytes")));
                }
                (_, Some(Obstacle::Unknown | Obstacle::Damaged(_))) => body,
            };
        }
        Ok(HttpResponse { status, retry_after, body })
    }

    fn client(&self, proxy: Option<&str>) -> Result<reqwest::Client, AskError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let key = proxy.map(str::to_owned);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let invalid = |error| AskError::Unreachable(format!("its proxy setting is not valid: {error}"));
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            // Requests are few and far apart, and may come from different runtimes.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("evals/", env!("CARGO_PKG_VERSION")));
        if let Some(proxy) = proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(invalid)?);
        }
        let client = builder.build().map_err(|error| AskError::Unreachable(causes(&error)))?;
        clients.insert(key, client.clone());
        Ok(client)
    }

    fn error(&self, error: reqwest::Error) -> AskError {
        if error.is_timeout() {
            return AskError::Slow(self.time);
        }
        let error = error.without_url();
        match io_kind(&error) {
            Some(io::ErrorKind::TimedOut) => AskError::Slow(self.time),
            _ if error.is_connect() => AskError::Unreachable(causes(&error)),
            Some(kind) if is_cut(kind) => AskError::Cut(causes(&error)),
            _ if is_incomplete(&error) => AskError::Cut(causes(&error)),
            _ => AskError::Unreachable(causes(&error)),
        }
    }

    /// Returns the error for a failure after the response began.
    fn error_within(&self, error: reqwest::Error) -> AskError {
        match self.error(error) {
            AskError::Unreachable(why) => AskError::Cut(why),
            other => other,
        }
    }
}

fn is_cut(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&kind)
}

/// Returns the kind of the first I/O error among the causes of an error.
fn io_kind(error: &dyn Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        cause = error.source();
    }
    None
}

/// Returns true if the service closed the connection before its answer was complete.
fn is_incomplete(error: &dyn Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(|it| it.is_incomplete_message() || it.is_closed()) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Parses a number of seconds, or a date.
fn seconds(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let wait = then.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        assert_eq!(seconds("2"), Some(Duration::from_secs(2)));
        assert_eq!(seconds("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(seconds("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO), "it is over");
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("-3"), None);
    }
}
