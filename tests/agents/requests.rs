//! Records what agents send to their scripted model: a proxy on loopback between the two. The log of the scripted model
//! (`model.jsonl`) has the names of the offered tools, and not the text of the requests.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The bodies of the requests to each scripted model, by the model's port, in the order of their arrival.
type Bodies = Arc<Mutex<BTreeMap<u16, Vec<String>>>>;

/// A proxy for all trials of a project. It ends with the test's process.
pub struct Requests {
    port: u16,
    bodies: Bodies,
}

impl Requests {
    /// Starts the proxy on a free port.
    pub fn record() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, bodies) = (listener.local_addr().unwrap().port(), Bodies::default());
        let shared = bodies.clone();
        thread::spawn(move || {
            for agent in listener.incoming().flatten() {
                let bodies = shared.clone();
                // An agent that is ended closes its connection at any time.
                thread::spawn(move || pass(agent, &bodies).ok());
            }
        });
        Self { port, bodies }
    }

    /// Returns a manifest whose agent reaches its scripted model through the proxy: the model's address is a part of
    /// the path.
    pub fn through(&self, manifest: &str) -> String {
        manifest.replace("{gateway}", &format!("http://127.0.0.1:{}/{{gateway}}", self.port))
    }

    /// Returns the requests of the trial whose agent works in this folder: agents state it to their model.
    #[track_caller]
    pub fn of(&self, folder: &str) -> Vec<String> {
        let bodies = self.bodies.lock().unwrap();
        let trials = bodies.values().filter(|bodies| bodies.iter().any(|body| body.contains(folder)));
        let [bodies] = trials.collect::<Vec<_>>()[..] else { panic!("not one trial states the folder {folder}") };
        bodies.clone()
    }
}

/// Passes one request on, and its answer back.
fn pass(mut agent: TcpStream, bodies: &Bodies) -> io::Result<()> {
    let mut reader = BufReader::new(agent.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let Some((method, port, rest)) = target(&first) else {
        return agent.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    };
    let mut head = format!("{method} {rest}");
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let lower = line.to_ascii_lowercase();
        match lower.split_once(':').map(|(name, value)| (name, value.trim())) {
            None => break,
            Some(("content-length", value)) => length = value.parse().unwrap_or(0),
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            Some(("connection" | "keep-alive" | "host" | "expect", _)) => {}
            Some(_) => head.push_str(&line),
        }
    }
    let mut body = Vec::new();
    if chunked {
        read_chunks(&mut reader, &mut body)?;
    } else {
        reader.take(length).read_to_end(&mut body)?;
    }
    bodies.lock().unwrap().entry(port).or_default().push(String::from_utf8_lossy(&body).into_owned());
    let mut model = TcpStream::connect(("127.0.0.1", port))?;
    write!(model, "{head}host: 127.0.0.1:{port}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len())?;
    model.write_all(&body)?;
    io::copy(&mut model, &mut agent)?;
    agent.shutdown(Shutdown::Both)
}

/// Splits the first line of a request: the method, the model's port, and the rest of the line from the model's path on.
fn target(line: &str) -> Option<(&str, u16, &str)> {
    let (method, url) = line.split_once(' ')?;
    let (_, address) = url.split_once("127.0.0.1:")?;
    let digits = address.find(|c: char| !c.is_ascii_digit())?;
    Some((method, address[..digits].parse().ok()?, &address[digits..]))
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim().split(';').next().unwrap_or(""), 16).map_err(io::Error::other)?;
        reader.by_ref().take(size).read_to_end(body)?;
        let mut end = String::new();
        reader.read_line(&mut end)?;
        if size == 0 {
            return Ok(());
        }
    }
}
