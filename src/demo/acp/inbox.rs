//! Reads the client's messages on a separate thread, so that they are handled while a turn is played.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::BufRead;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A message that waits to be handled.
#[derive(Debug)]
pub enum Incoming {
    /// A request, which requires an answer.
    Request {
        /// The request's id, of any JSON type.
        id: Value,
        /// The requested method.
        method: String,
        /// The parameters.
        params: Value,
    },
    Notification,
    /// A line that is not a message, with the error code and text for the answer.
    Malformed(i64, String),
}

/// The messages that have been received and not yet handled.
#[derive(Debug, Default)]
pub struct Inbox {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Incoming>,
    answers: HashMap<u64, Value>,
    /// The number of prompts that are not answered yet, by session.
    prompts: HashMap<String, usize>,
    cancelled: HashSet<String>,
    closed: bool,
}

/// The time to wait for an answer after the turn was cancelled: the client must answer, but may be gone.
const PATIENCE: Duration = Duration::from_millis(500);

impl Inbox {
    /// Reads messages to the end of the input.
    pub fn fill(&self, mut input: impl BufRead) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => {
                    self.put(serde_json::from_slice(&line));
                    self.news.notify_all();
                }
            }
        }
        self.state().closed = true;
        self.news.notify_all();
    }

    fn put(&self, message: serde_json::Result<Value>) {
        let mut state = self.state();
        let message = match message {
            Ok(Value::Object(message)) => message,
            Ok(_) => return state.waiting.push_back(Incoming::Malformed(-32600, "not a message".to_owned())),
            Err(error) => return state.waiting.push_back(Incoming::Malformed(-32700, format!("not JSON: {error}"))),
        };
        let params = message.get("params").cloned().unwrap_or_default();
        let session = params["sessionId"].as_str().unwrap_or_default();
        let incoming = match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some("session/cancel"), None) => {
                // A cancel between turns is too late for the last turn and must not cancel the next one.
                if state.prompts.contains_key(session) {
                    state.cancelled.insert(session.to_owned());
                }
                return;
            }
            (Some(_), None) => Incoming::Notification,
            (Some(method), Some(id)) => {
                if method == "session/prompt" {
                    *state.prompts.entry(session.to_owned()).or_default() += 1;
                }
                Incoming::Request { id: id.clone(), method: method.to_owned(), params }
            }
            (None, Some(id)) => {
                if let Some(id) = id.as_u64() {
                    state.answers.insert(id, Value::Object(message));
                }
                return;
            }
            (None, None) => Incoming::Malformed(-32600, "a message without method and id".to_owned()),
        };
        state.waiting.push_back(incoming);
    }

    /// Returns the next message, or `None` once the input is closed.
    pub fn next(&self) -> Option<Incoming> {
        let mut state = self.state();
        loop {
            if let Some(incoming) = state.waiting.pop_front() {
                return Some(incoming);
            }
            if state.closed {
                return None;
            }
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the answer to a request of the demo agent. Returns `None` if no answer can come any more.
    pub fn answer_to(&self, id: u64, session: &str) -> Option<Value> {
        let mut state = self.state();
        let mut cancelled_at = None;
        loop {
            if let Some(answer) = state.answers.remove(&id) {
                return Some(answer);
            }
            if state.closed {
                return None;
            }
            if !state.cancelled.contains(session) {
                state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let since: Instant = *cancelled_at.get_or_insert_with(Instant::now);
            let left = PATIENCE.checked_sub(since.elapsed())?;
            (state, _) = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns true if the session's turn must end: it was cancelled, or the client has disconnected.
    pub fn is_cancelled(&self, session: &str) -> bool {
        self.state().is_cancelled(session)
    }

    /// Waits for a time, or until the session's turn is cancelled.
    pub fn wait(&self, session: &str, time: Duration) {
        let started = Instant::now();
        let mut state = self.state();
        while !state.is_cancelled(session) {
            let left = time.saturating_sub(started.elapsed());
            if left.is_zero() {
                return;
            }
            (state, _) = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Marks a prompt of the session as answered. A cancel that was received for the prompt has no effect any more.
    pub fn answered(&self, session: &str) {
        let mut state = self.state();
        let left = state.prompts.get(session).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            state.prompts.remove(session);
            state.cancelled.remove(session);
        } else {
            state.prompts.insert(session.to_owned(), left);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_cancelled(&self, session: &str) -> bool {
        self.closed || self.cancelled.contains(session)
    }
}
