//! Accepts connections and serves HTTP on them, with a limit on how long a request's head may take.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The timeout for the head of a request, so that a client that sends it byte by byte does not hold a
/// connection for long.
pub(super) const HEAD: Duration = Duration::from_secs(30);

/// The maximum number of concurrent connections; further ones wait.
const MOST: usize = 1024;

/// A source of connections.
pub(super) trait Listen: Send + 'static {
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

/// Serves every connection until `ends` is true, or the task is aborted; both end the connections. `head` is the
/// timeout for a request's head.
pub(super) async fn serve<L: Listen>(listener: L, router: Router, head: Duration, mut ends: watch::Receiver<bool>) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        if open.len() >= MOST {
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
