//! Listens on loopback and serves HTTP: accepts connections, limits how long a request's head may take, and reads
//! the name by which a request was sent to this machine.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, header};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The timeout for the head of a request, so that a client that sends it byte by byte does not hold a
/// connection for long.
pub const HEAD: Duration = Duration::from_secs(30);

/// The maximum number of concurrent connections; further ones wait.
const MAX_CONNECTIONS: usize = 1024;

/// An open port.
pub type Listener = TcpListener;

/// A source of connections.
pub trait Listen: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        // Pieces of a stream are sent without delay.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

impl Listen for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

/// Opens a port of 127.0.0.1. Port 0 means any free port.
///
/// # Errors
/// Returns an error if the port cannot be opened.
pub async fn listen(port: u16) -> io::Result<Listener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
}

/// Returns true if a request was sent to this machine by a loopback name, with any port. A web page in a browser can
/// reach loopback under another host name.
pub fn names_loopback(headers: &HeaderMap) -> bool {
    host(headers).is_some_and(|(name, _)| is_loopback(name))
}

/// Returns true if a request was sent to this port of this machine by a loopback name.
pub fn names_port(headers: &HeaderMap, port: u16) -> bool {
    let only = headers.get_all(header::HOST).iter().count() == 1;
    // Browsers leave out the default port of HTTP.
    let same = |told: Option<&str>| told.map_or(port == 80, |told| told == port.to_string());
    only && host(headers).is_some_and(|(name, told)| is_loopback(name) && same(told))
}

/// Returns the name and the port of the `Host` header.
fn host(headers: &HeaderMap) -> Option<(&str, Option<&str>)> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    Some(match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => (name, Some(port)),
        _ => (host, None),
    })
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

/// Serves every connection until `ends` is true, or the task is aborted; both end the connections. `head` is the
/// timeout for a request's head.
pub async fn serve<L: Listen>(listener: L, router: Router, head: Duration, mut ends: watch::Receiver<bool>) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        if open.len() >= MAX_CONNECTIONS {
            tokio::select! {
                _ = open.join_next() => continue,
                _ = ends.wait_for(|ends| *ends) => break,
            }
        }
        let next = tokio::select! {
            next = listener.next() => next,
            _ = ends.wait_for(|ends| *ends) => break,
        };
        let Ok(stream) = next else {
            // No file descriptor is available until another connection ends.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        open.spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(head);
            // Errors of single connections are ignored.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
    open.shutdown().await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn a_request_names_a_port_by_a_loopback_name_alone() {
        let named = |host: &str, port| {
            let headers: HeaderMap = [(header::HOST, host.parse().unwrap())].into_iter().collect();
            (names_loopback(&headers), names_port(&headers, port))
        };
        for host in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"] {
            assert_eq!(named(host, 8000), (true, true), "{host}");
            assert_eq!(named(host, 8001), (true, false), "{host}");
        }
        assert_eq!(named("localhost", 80), (true, true));
        assert_eq!(named("localhost", 8000), (true, false));
        for host in ["evil.example:8000", "127.0.0.1.evil.example:8000", "127.0.0.2:8000", "localhost.:8000", ""] {
            assert_eq!(named(host, 8000), (false, false), "{host}");
        }
        assert!(!names_port(&HeaderMap::new(), 80) && !names_loopback(&HeaderMap::new()));
        let mut two = HeaderMap::new();
        two.append(header::HOST, "localhost:8000".parse().unwrap());
        two.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!names_port(&two, 8000));
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_the_connection_and_others_are_served() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "served" }));
        let (_going, ends) = watch::channel(false);
        let server = tokio::spawn(serve(listener, router, Duration::from_millis(200), ends));
        let mut slow = TcpStream::connect(address).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX: ").await.unwrap();
        let mut quick = TcpStream::connect(address).await.unwrap();
        quick.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut text = String::new();
        quick.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("served"), "{text}");
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), slow.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "the connection is still open");
        server.abort();
    }
}
