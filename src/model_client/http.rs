//! Sends one request over HTTP and reads the whole response. Redirects are not followed, so that a key is sent
//! to no other server.

use std::time::Duration;

use serde_json::Value;

use super::{AskError, Service};

/// The maximum size of a response.
const MAX_ANSWER: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Http {
    time: Duration,
}

/// A header of a request.
pub(super) type HeaderLine = (&'static str, String);

/// A response.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

impl Http {
    pub(super) fn new(time: Duration) -> Self {
        Self { time }
    }

    pub(super) fn post(
        &self,
        service: &Service,
        path: &str,
        headers: &[HeaderLine],
        body: &Value,
    ) -> Result<Answer, AskError> {
        let proxy = service.proxy.as_deref().map(ureq::Proxy::new).transpose();
        let proxy = proxy.map_err(|error| AskError::Unreachable(format!("its proxy setting is not valid: {error}")))?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(self.time))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .user_agent(concat!("evals/", env!("CARGO_PKG_VERSION")))
            .build();
        let agent = config.new_agent();
        let mut request = agent.post(format!("{}{path}", service.base_url)).content_type("application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let mut response = request.send(body.to_string()).map_err(|error| match self.error(&error) {
            AskError::Unreachable(why) => AskError::Unreachable(format!("{} at {}", why, shown(&service.base_url))),
            other => other,
        })?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let retry_after = header("retry-after-ms")
            .and_then(|ms| ms.parse().ok())
            .map(Duration::from_millis)
            .or_else(|| header("retry-after").and_then(seconds));
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        Ok(Answer { status, retry_after, body: body.map_err(|error| self.error_within(&error))? })
    }

    fn error(&self, error: &ureq::Error) -> AskError {
        use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
        match error {
            ureq::Error::Timeout(_) => AskError::Slow(self.time),
            ureq::Error::Io(io) if io.kind() == TimedOut => AskError::Slow(self.time),
            ureq::Error::Io(io)
                if [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&io.kind()) =>
            {
                AskError::Cut(io.to_string())
            }
            other => AskError::Unreachable(other.to_string()),
        }
    }

    /// Returns the error for a failure after the response began.
    fn error_within(&self, error: &ureq::Error) -> AskError {
        match self.error(error) {
            AskError::Unreachable(why) => AskError::Cut(why),
            other => other,
        }
    }
}

/// Returns an address without user name, password and query, which may contain keys.
fn shown(address: &str) -> String {
    let address = address.split_once(['?', '#']).map_or(address, |(address, _)| address);
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let at = rest.get(..end).and_then(|host| host.rfind('@')).map_or(0, |at| at + 1);
            format!("{scheme}://{}", rest.get(at..).unwrap_or_default())
        }
        None => address.to_owned(),
    }
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
    fn an_address_is_shown_without_its_password() {
        assert_eq!(shown("http://me:hunter2@host:8/v1/@x"), "http://host:8/v1/@x");
        assert_eq!(shown("https://host"), "https://host");
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        assert_eq!(seconds("2"), Some(Duration::from_secs(2)));
        assert_eq!(seconds("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(seconds("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO), "it is over");
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("-3"), None);
    }
}
