//! The wire log: every line that crossed the process boundary, in both directions, and what the engine did.
//!
//! It is the evidence. A [`crate::trace`] follows from it alone, so a session can be translated again later.

use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::{ErrorCategory, Exit, Header};

/// Bytes of a line that are kept; the rest is counted in [`WireLine::cut`].
pub const MAX_LINE: usize = 16 << 20;

/// Which way a line went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dir {
    /// To the agent's standard input.
    Send,
    /// From the agent's standard output.
    Recv,
    /// From the agent's standard error.
    Stderr,
    /// What the engine did: an [`EngineLine`] as JSON.
    Engine,
    /// How the process ended: an [`crate::trace::Exit`] as JSON.
    Exit,
}

/// One line of the wire log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WireLine {
    /// Milliseconds since the Trial began.
    #[serde(default)]
    pub at_ms: u64,
    /// Which way it went.
    pub dir: Dir,
    /// The line as it was, without its end; where it was not UTF-8, as much of it as is.
    pub line: String,
    /// The bytes, where they were not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_b64: Option<String>,
    /// Bytes that were cut off the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
}

impl WireLine {
    /// A line of text.
    pub fn text(at_ms: u64, dir: Dir, line: impl Into<String>) -> Self {
        Self { at_ms, dir, line: line.into(), bytes_b64: None, cut: None }
    }

    /// A line of whatever bytes there were.
    pub fn bytes(at_ms: u64, dir: Dir, bytes: &[u8], cut: Option<u64>) -> Self {
        Self::owned(at_ms, dir, bytes.to_vec(), cut)
    }

    /// The same of bytes that nobody else needs: where they are UTF-8 they are not copied.
    pub fn owned(at_ms: u64, dir: Dir, bytes: Vec<u8>, cut: Option<u64>) -> Self {
        match String::from_utf8(bytes) {
            Ok(line) => Self { at_ms, dir, line, bytes_b64: None, cut },
            Err(error) => {
                let bytes = error.as_bytes();
                let line = String::from_utf8_lossy(bytes).into_owned();
                Self { at_ms, dir, line, bytes_b64: Some(STANDARD.encode(bytes)), cut }
            }
        }
    }

    /// What the engine did.
    pub fn engine(at_ms: u64, line: &EngineLine) -> Self {
        Self::text(at_ms, Dir::Engine, serde_json::to_string(line).unwrap_or_default())
    }

    /// Writes it as a line of JSON.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

/// What the engine did, as it stands in a line of direction `engine`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineLine {
    /// The Trial began; the header holds what was known then.
    Start {
        /// Header of the Trace as it starts.
        header: Box<Header>,
    },
    /// The version that the agent's program printed when it was asked with the manifest's `version` command.
    AgentVersion {
        /// The agent's name, for an agent that does not introduce itself.
        name: String,
        /// The version.
        version: String,
    },
    /// A prompt that reaches the agent by its arguments, its input or a file.
    Prompt {
        /// What it says.
        text: String,
    },
    /// The program could not be started.
    NotStarted {
        /// `not_installed` or `start_failed`.
        category: ErrorCategory,
        /// What the system said.
        message: String,
    },
    /// The agent did not get as far as a session, or its model could not be set.
    Handshake {
        /// What was asked and not answered, or how it was refused.
        message: String,
    },
    /// The agent is in a mode in which it does not ask for every permission, and the policy is not `auto-approve`: the
    /// engine ends the session.
    Unattended {
        /// The mode's id.
        mode: String,
        /// The policy's word.
        policy: String,
    },
    /// A limit of the Case was reached.
    Limit {
        /// The limit's key in the case: `time`, `idle`, `steps`, `tool-calls`, `tokens`, `cost-usd`.
        key: String,
        /// What was allowed.
        limit: String,
    },
    /// The user ended the run.
    Interrupted,
    /// The engine asked the agent to cancel its turn.
    Cancel,
    /// The engine closed the agent's standard input.
    CloseStdin,
    /// The engine sent a signal to the agent's process group.
    Signal {
        /// Its name.
        signal: String,
        /// The agent itself had ended; this was for what it left in its group.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        after_exit: bool,
    },
    /// Processes had left the agent's group; the engine found and ended them.
    Escaped {
        /// How many.
        processes: u64,
    },
    /// The agent's process was ended after a turn, and another one is started that goes on with the session.
    Restart,
    /// What a terminal of the agent's shows so far, and how its command ended.
    Terminal {
        /// Its id.
        terminal: String,
        /// The end of what it printed.
        output: String,
        /// What it printed before that is not kept.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
        /// How it ended, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The Interaction Policy decided; the answer follows as a line to the agent.
    Permission {
        /// The agent's id of its request, as JSON.
        id: Value,
        /// The policy.
        policy: String,
        /// The rule of it that matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The cost that the agent did not tell, from a price table.
    Priced {
        /// US dollars.
        cost_usd: f64,
        /// The model they were priced for.
        model: String,
        /// The table's date.
        table: String,
    },
    /// Something that the user should know and that is no event.
    Notice {
        /// A word for the kind of oddity.
        code: String,
        /// What happened.
        text: String,
    },
    /// A line that a newer program wrote.
    #[serde(other)]
    Unknown,
}

/// Reads a recorded session: a wire log, or an agent's own standard output, told apart by the first line.
pub struct Reader<R> {
    input: R,
    raw: Option<bool>,
    buffer: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Reader<R> {
    /// Starts to read.
    pub fn new(input: R) -> Self {
        Self { input, raw: None, buffer: Vec::new(), line: 0 }
    }

    /// Whether the lines have times: a wire log has, an agent's output has none. Known after the first line.
    pub fn is_timed(&self) -> bool {
        self.raw == Some(false)
    }

    /// Number of the last line read, from 1.
    pub fn line_number(&self) -> u64 {
        self.line
    }

    /// The next line; `None` at the end. A torn last line of a wire log is passed over.
    pub fn next_line(&mut self) -> io::Result<Option<WireLine>> {
        loop {
            self.buffer.clear();
            let cut = read_bounded(&mut self.input, &mut self.buffer)?;
            let Some(cut) = cut else { return Ok(None) };
            self.line += 1;
            let ended = self.buffer.last() == Some(&b'\n');
            if ended {
                self.buffer.pop();
            }
            let raw = match self.raw {
                Some(raw) => raw,
                // Blank lines at the start decide nothing.
                None if self.buffer.iter().all(u8::is_ascii_whitespace) => continue,
                None => *self.raw.insert(serde_json::from_slice::<WireLine>(&self.buffer).is_err()),
            };
            if raw {
                if self.buffer.last() == Some(&b'\r') {
                    self.buffer.pop();
                }
                return Ok(Some(WireLine::bytes(0, Dir::Recv, &self.buffer, (cut > 0).then_some(cut))));
            }
            match serde_json::from_slice::<WireLine>(&self.buffer) {
                Ok(line) => return Ok(Some(line)),
                Err(_) if !ended => return Ok(None),
                Err(_) if self.buffer.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => {
                    let text = String::from_utf8_lossy(&self.buffer);
                    let notice = EngineLine::Notice {
                        code: "malformed_wire_line".to_owned(),
                        text: format!("line {} of the wire log is not one: {error}: {text}", self.line),
                    };
                    return Ok(Some(WireLine::engine(0, &notice)));
                }
            }
        }
    }
}

/// Reads a line with its end, keeping [`MAX_LINE`] bytes of it. Answers how many were cut, `None` at the end.
fn read_bounded(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    // A wire log's line holds a line of the agent escaped, so it may be longer than that.
    const MOST: usize = 2 * MAX_LINE + 1024;
    let mut cut = 0u64;
    let mut any = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            return Ok(any.then_some(cut));
        }
        any = true;
        let (part, ended) = match memchr::memchr(b'\n', chunk) {
            Some(end) => (&chunk[..end], true),
            None => (chunk, false),
        };
        let taken = part.len().min(MOST.saturating_sub(line.len()));
        line.extend_from_slice(&part[..taken]);
        cut += (part.len() - taken) as u64;
        let used = part.len() + usize::from(ended);
        input.consume(used);
        if ended {
            line.push(b'\n');
            return Ok(Some(cut));
        }
    }
}
