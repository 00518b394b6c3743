//! A service on loopback that answers with given bytes, and keeps what it was sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A service. It answers until the test ends.
pub struct Service {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub line: String,
    /// The headers in lower case, a line each.
    pub headers: String,
    pub body: String,
}

/// The answer to a request: the head without its first line, and the parts of the body with the pause before each. With
/// `content-encoding: gzip` in the head, the parts are compressed.
pub type Answer = fn(&Request) -> (u16, &'static str, Vec<(u64, &'static str)>);

impl Service {
    /// Starts a service.
    pub fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let kept = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let kept = kept.clone();
                std::thread::spawn(move || stream.is_ok_and(|stream| serve(stream, answer, &kept).is_some()));
            }
        });
        Self { address, requests }
    }

    /// Returns the address.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers one request, and closes the connection. A body without an end is cut.
fn serve(mut stream: TcpStream, answer: Answer, kept: &Mutex<Vec<Request>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        let lower = header.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        // Values keep their case.
        let (name, value) = header.split_once(':')?;
        headers.push_str(&format!("{}:{}\n", name.to_ascii_lowercase(), value.trim_end()));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request = Request { line: line.trim().to_owned(), headers, body: String::from_utf8_lossy(&body).into_owned() };
    let (status, head, parts) = answer(&request);
    kept.lock().unwrap().push(request);
    let head = format!("HTTP/1.1 {status} X\r\n{head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut gzip = head.contains("content-encoding: gzip").then(|| GzEncoder::new(Vec::new(), Compression::fast()));
    let whole = parts.last().is_none_or(|(_, text)| *text != CUT);
    for (pause, text) in parts.iter().filter(|(_, text)| *text != CUT) {
        std::thread::sleep(Duration::from_millis(*pause));
        let bytes = match &mut gzip {
            Some(gzip) => {
                gzip.write_all(text.as_bytes()).and_then(|()| gzip.flush()).ok()?;
                std::mem::take(gzip.get_mut())
            }
            None => text.as_bytes().to_vec(),
        };
        chunk(&mut stream, &bytes)?;
    }
    if whole {
        if let Some(gzip) = gzip {
            chunk(&mut stream, &gzip.finish().ok()?)?;
        }
        stream.write_all(b"0\r\n\r\n").ok()?;
    }
    Some(())
}

/// Sends a part of a body.
fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).ok()?;
    stream.write_all(bytes).ok()?;
    stream.write_all(b"\r\n").ok()
}

/// The last part of an answer that breaks off.
pub const CUT: &str = "\u{0}cut";
