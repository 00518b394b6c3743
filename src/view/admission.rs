//! Decides which requests are answered: those sent to this server by a loopback name, with its token, that only read.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::Method;
use axum::http::request::Parts;
use ring::rand::{SecureRandom, SystemRandom};

use crate::loopback;

/// The size of a token, in bytes: 256 bits.
const BYTES: usize = 32;

/// The conditions that a request must meet.
pub struct Admission {
    port: u16,
    /// The first part of every address.
    token: String,
    /// The code that replaces the token in one request: the request that opens the browser.
    code: String,
    used: AtomicBool,
}

/// The decision whether a request is answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Admitted<'a> {
    /// The request is answered. The value is the rest of the path, after the token.
    Yes(&'a str),
    /// The request has the code, which is used up now. The rest of the path.
    Once(&'a str),
    /// The request is refused: it names another host, or has no token.
    No,
    /// No: the request does not only read.
    Method,
}

impl Admission {
    /// Makes a token and a code.
    ///
    /// # Errors
    /// Returns an error if the system gives no random numbers.
    pub fn new(port: u16) -> io::Result<Self> {
        Ok(Self { port, token: secret()?, code: secret()?, used: AtomicBool::new(false) })
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    /// Decides about a request.
    pub fn admit<'a>(&self, head: &'a Parts) -> Admitted<'a> {
        // Proxies are sent whole addresses; this server is none.
        if head.uri.authority().is_some() || !loopback::names_port(&head.headers, self.port) {
            return Admitted::No;
        }
        let path = head.uri.path().strip_prefix('/').unwrap_or_default();
        let (given, rest) = path.split_once('/').unwrap_or((path, ""));
        let reads = head.method == Method::GET || head.method == Method::HEAD;
        if is(given, &self.token) {
            return if reads { Admitted::Yes(rest) } else { Admitted::Method };
        }
        if is(given, &self.code) && head.method == Method::GET && !self.used.swap(true, Ordering::SeqCst) {
            return Admitted::Once(rest);
        }
        Admitted::No
    }
}

/// Compares in a time that does not depend on where the texts differ: the comparison of digests has this property.
fn is(given: &str, secret: &str) -> bool {
    blake3::hash(given.as_bytes()) == blake3::hash(secret.as_bytes())
}

fn secret() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;

    use super::*;

    fn head(method: &str, uri: &str, host: &str) -> Parts {
        Request::builder().method(method).uri(uri).header("host", host).body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_request_needs_the_token_and_a_loopback_name() {
        let admission = Admission::new(8000).unwrap();
        let (token, code) = (admission.token().to_owned(), admission.code().to_owned());
        assert!(token.len() == 64 && token != code);
        let own = "127.0.0.1:8000";
        let good = format!("/{token}/run/");
        assert_eq!(admission.admit(&head("GET", &good, own)), Admitted::Yes("run/"));
        assert_eq!(admission.admit(&head("HEAD", &format!("/{token}"), "localhost:8000")), Admitted::Yes(""));
        assert_eq!(admission.admit(&head("POST", &good, own)), Admitted::Method);
        let wrong = format!("/{}x/run/", &token[..63]);
        let longer = format!("/{token}0/");
        let whole = format!("http://127.0.0.1:8000/{token}/");
        for (uri, host) in [
            (&*good, "evil.example:8000"),
            (&good, "127.0.0.1:8001"),
            (&wrong, own),
            (&longer, own),
            (&whole, own),
            ("/", own),
            ("//", own),
        ] {
            assert_eq!(admission.admit(&head("GET", uri, host)), Admitted::No, "{uri} of {host}");
        }
        let once = format!("/{code}/run/");
        assert_eq!(admission.admit(&head("HEAD", &once, own)), Admitted::No);
        assert_eq!(admission.admit(&head("GET", &once, own)), Admitted::Once("run/"));
        assert_eq!(admission.admit(&head("GET", &once, own)), Admitted::No);
    }
}
