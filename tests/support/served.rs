//! `evals view` as a running program, and raw HTTP requests to it.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::project::Project;

/// A running `evals view`.
pub struct Served {
    child: Child,
    /// The printed address.
    pub url: String,
    pub port: u16,
    /// The path of the list: `/TOKEN/`.
    pub root: String,
    /// The rest of the printed address.
    pub opened: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    #[track_caller]
    pub fn has(self, text: &str) -> Self {
        assert!(self.body.contains(text), "`{text}` is not in {self:?}");
        self
    }
}

impl Served {
    /// Starts the server and reads its address.
    pub fn start(project: &Project, args: &[&str]) -> Self {
        let mut command = project.command(&[&["view", "--no-open"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        Self::of(child.stdout.take().unwrap(), child)
    }

    /// Reads the address of a server that was started.
    pub fn of(out: ChildStdout, mut child: Child) -> Self {
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        let rest = url.strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{url}: {:?}", child.wait()));
        let (port, path) = rest.split_once('/').unwrap();
        let (token, opened) = path.split_once('/').unwrap();
        let (port, root, opened) = (port.parse().unwrap(), format!("/{token}/"), opened.to_owned());
        Self { child, url, port, root, opened }
    }

    /// Sends a request as it stands, and returns everything that comes.
    pub fn raw(&self, request: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all
    }

    /// Sends a request with a method, a path and a host.
    pub fn ask(&self, method: &str, path: &str, host: &str) -> Answer {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let all = self.raw(&request);
        let text = String::from_utf8_lossy(&all).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_default();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked && method != "HEAD" { joined(body) } else { body.to_owned() };
        Answer { status, head: head.to_owned(), body }
    }

    /// Gets a path below the token.
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", &format!("{}{path}", self.root), &format!("127.0.0.1:{}", self.port))
    }

    /// Sends a signal, and returns the exit code.
    pub fn end(mut self, signal: rustix::process::Signal) -> i32 {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(20), "evals view does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Joins the chunks of a body. A body that is not complete ends with a mark.
fn joined(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return out;
        }
        let Some(chunk) = rest.get(..size) else { break };
        out.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    out + "[the body is not complete]"
}

/// A run whose trials wait: each case `waits/N` ends when [`Going::release`] was called with `N`.
pub struct Going {
    child: Child,
}

impl Going {
    /// Starts a run of so many cases, one at a time, and waits until the first trial waits.
    pub fn start(project: &Project, cases: u32, label: &str) -> Self {
        for number in 1..=cases {
            let go = project.path(&format!("go-{number}"));
            let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
            let steps =
                format!("steps:\n  - say: words of trial {number}\n  - run: {{command: {wait:?}}}\n  - say: done\n");
            project.case(&format!("waits/{number}"), "", &steps);
        }
        let mut command = project.command(&["run", "--jobs", "1", "--label", label, "cases/waits"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let going = Self { child };
        going.until(project, 1);
        going
    }

    /// Lets a trial end.
    pub fn release(&self, project: &Project, number: u32) {
        fs::write(project.path(&format!("go-{number}")), "").unwrap();
    }

    /// Waits until the wire log of a trial has the call that waits.
    pub fn until(&self, project: &Project, number: u32) {
        let text = format!("go-{number}");
        wait_for(|| {
            let run = project.runs().pop()?;
            let log = format!(".evals/runs/{run}/trials/waits/{number}/demo/default/1/wire.jsonl");
            fs::read_to_string(project.path(&log)).ok().filter(|log| log.contains(&text))
        });
    }

    /// Waits for the end of the run.
    pub fn end(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            // The engine ends its agents when it is asked to.
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_child(&self.child),
                rustix::process::Signal::TERM,
            );
        }
        let _ = self.child.wait();
    }
}

/// Waits until something is there.
#[track_caller]
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
