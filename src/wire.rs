//! The wire log: every line that crossed the process boundary, in both directions, and the engine's own
//! actions.
//!
//! The wire log is the evidence: a [`crate::trace`] is derived from it alone, so a session can be translated
//! again later.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::repeated_key::KeyFinder;
use crate::trace::{ErrorCategory, Exit, FollowedLink, Header, NoticeCode, Usage};

/// The maximum number of bytes kept of a line; the rest is counted in [`WireLine::cut`].
pub const MAX_LINE: usize = 16 << 20;

/// The direction of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Dir {
    /// To the agent's standard input.
    Send,
    /// From the agent's standard output.
    Recv,
    /// From the agent's standard error.
    Stderr,
    /// An action of the engine: an [`EngineLine`] as JSON.
    Engine,
    /// The end of the process: an [`crate::trace::Exit`] as JSON.
    Exit,
}

/// A line of the wire log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireLine {
    /// Milliseconds since the session began, without setup.
    #[serde(default)]
    pub at_ms: u64,
    /// The direction of the line.
    pub dir: Dir,
    /// The line without its end; if it was not UTF-8, the valid part.
    pub line: String,
    /// The bytes in base64, if they were not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_b64: Option<String>,
    /// The number of bytes that were cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
}

impl WireLine {
    pub fn text(at_ms: u64, dir: Dir, line: impl Into<String>) -> Self {
        Self { at_ms, dir, line: line.into(), bytes_b64: None, cut: None }
    }

    /// Makes a line from bytes, which are also kept in base64 if they are not UTF-8. `cut` bytes were cut off before.
    pub fn bytes(at_ms: u64, dir: Dir, bytes: &[u8], cut: Option<u64>) -> Self {
        Self::owned(at_ms, dir, bytes.to_vec(), cut)
    }

    /// Makes a line from owned bytes, which are not copied if they are UTF-8.
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

    /// Returns the line without the carriage return at its end, if it has one: programs of other systems end their lines
    /// with it.
    pub fn without_return(&self) -> Cow<'_, Self> {
        match self.line.strip_suffix('\r').filter(|_| self.cut.is_none()) {
            Some(line) => Cow::Owned(Self { line: line.to_owned(), ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// Makes a line for an action of the engine.
    pub fn engine(at_ms: u64, line: &EngineLine) -> Self {
        Self::text(at_ms, Dir::Engine, serde_json::to_string(line).unwrap_or_default())
    }

    /// Writes the line as JSON.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }
}

/// An action of the engine, in a line of direction `engine`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EngineLine {
    /// The trial began. The header contains the data that were known then.
    Start {
        /// The initial header of the trace.
        header: Box<Header>,
    },
    /// The version that the manifest's `version` command printed.
    AgentVersion {
        /// The agent's name, for an agent that does not introduce itself.
        name: String,
        version: String,
    },
    /// A prompt that the agent gets by its arguments, its input or a file.
    Prompt {
        /// The text of the prompt.
        text: String,
    },
    /// The program could not be started.
    NotStarted {
        /// `not_installed` or `start_failed`.
        category: ErrorCategory,
        /// The system's error message.
        message: String,
    },
    /// No session could be established, or the model could not be set.
    Handshake {
        /// The request without an answer, or the refusal.
        message: String,
    },
    /// The agent is in a mode in which it does not ask for every permission, and the policy is not `auto-approve`: the
    /// engine ends the session.
    Unattended {
        /// The mode's id.
        mode: String,
        /// The policy's name.
        policy: String,
    },
    /// A limit of the case was reached.
    Limit {
        /// The name of the limit in the case: `time`, `idle`, `steps`, `tool-calls`, `tokens`, `cost-usd`.
        key: String,
        /// The value of the limit.
        limit: String,
    },
    /// The user interrupted the run.
    Interrupted,
    /// The engine asked the agent to cancel its turn.
    Cancel,
    /// The engine closed the agent's standard input.
    CloseStdin,
    /// The engine sent a signal to the agent's process group.
    Signal {
        /// The name of the signal.
        signal: String,
        /// True if the agent itself had already ended, and the signal was for its remaining processes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        after_exit: bool,
    },
    /// The engine itself was stopped. The agent may have worked meanwhile.
    Stopped {
        /// The time in milliseconds.
        ms: u64,
    },
    /// Processes had left the agent's process group; the engine found and ended them.
    Escaped {
        /// The number of processes.
        processes: u64,
    },
    /// The agent's process was ended after a turn, and a new one is started to continue the session.
    Restart,
    /// The state of a terminal of the agent: its output so far, and how its command ended.
    Terminal {
        /// The terminal's id.
        terminal: String,
        /// The end of the output.
        output: String,
        /// True if earlier output was cut off.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
        /// The exit of the command, if it has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
    },
    /// The interaction policy decided; the answer follows as a line to the agent.
    Permission {
        /// The id of the agent's request, as JSON.
        id: Value,
        policy: String,
        /// The rule that matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// True if the policy rejected the request, and the agent offered no option for that answer; or if the engine cancelled
        /// a request that the policy would have rejected.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rejects: bool,
    },
    /// A cost from a price table, because the agent reported none.
    Priced {
        /// Cost in US dollars.
        cost_usd: f64,
        /// The model of the price.
        model: String,
        /// The date of the table.
        table: String,
    },
    /// The report of the model's service through the gateway: the tokens of all answers, and the model.
    Gateway {
        /// The tokens of the session. Absent if some answers came without them and the agent reported its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
        /// The model that answered most requests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The cost in US dollars by the price of each model that answered, if the agent reported none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// True if the cost leaves out a model without a known price, tokens that were not reported, or what has no price in a
        /// table.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cost_is_lower_bound: bool,
    },
    /// The agent's model did not answer, as the gateway saw: no request of the session, or not the one that the agent
    /// needed to go on.
    Refused {
        /// `auth`, `rate_limit` or `provider`.
        category: ErrorCategory,
        /// The failure that the gateway saw, in words.
        message: String,
        /// True if the agent closed the connections of these requests, which it also does when it crashes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        closed: bool,
        /// True if no request of the session was answered, and the service refused at least one or could not be reached.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unanswered: bool,
    },
    /// The agent's model gave its last answer whole, as the gateway saw. The text matches a pattern of `error-text`.
    Answered {
        /// The text of the answer.
        text: String,
    },
    /// The output limit of the agent's model ended its last answer, as the gateway saw.
    OutputLimit,
    /// A content filter of the model's service ended the last answer of the agent's model, as the gateway saw.
    Filtered,
    /// A path of a call leads to another file by a link in the workspace, as the engine saw when the agent had ended.
    Followed {
        /// The path, and the file.
        link: FollowedLink,
    },
    /// Information for the user that does not belong to any other event.
    Notice {
        /// A code for the kind of notice.
        code: NoticeCode,
        /// The text of the notice.
        text: String,
    },
    /// A line of a newer program.
    #[serde(other)]
    Unknown,
}

/// A line of a wire log as it is read. Its time may be missing: then it is unknown, and not 0.
#[derive(Deserialize)]
struct StoredLine {
    at_ms: Option<u64>,
    dir: Dir,
    line: String,
    bytes_b64: Option<String>,
    cut: Option<u64>,
}

impl From<StoredLine> for WireLine {
    fn from(StoredLine { at_ms, dir, line, bytes_b64, cut }: StoredLine) -> Self {
        Self { at_ms: at_ms.unwrap_or_default(), dir, line, bytes_b64, cut }
    }
}

/// The lines of a recorded session, in order.
pub trait Lines {
    /// Reads the next line into `line`, whose memory is used again. Returns false at the end.
    ///
    /// # Errors
    /// Returns the error of reading.
    fn read_line(&mut self, line: &mut WireLine) -> io::Result<bool>;

    /// Returns true if all lines up to the last one read have times: those of a wire log have, an agent's output has none.
    /// Known after the first line.
    fn is_timed(&self) -> bool;

    /// Returns the number of the last line read, from 1.
    fn line_number(&self) -> u64;

    /// Returns a key that an object of the last line from the agent has twice.
    fn repeated_key(&mut self, line: &WireLine) -> Option<String>;
}

/// Returns a line without the byte order marks at its beginning and without the blanks around it.
pub fn trimmed(line: &str) -> &str {
    line.trim_start_matches('\u{feff}').trim()
}

/// Returns a key that an object of a line from the agent has twice.
pub fn repeated_key(keys: &mut KeyFinder, line: &WireLine) -> Option<String> {
    if line.dir != Dir::Recv {
        return None;
    }
    keys.repeated(trimmed(&line.line)).map(Cow::into_owned)
}

/// A reader of a recorded session: a wire log, or an agent's own standard output, detected by the first line.
pub struct Reader<R> {
    input: R,
    raw: Option<bool>,
    /// True if a line of the wire log had no time.
    lacks_time: bool,
    buffer: Vec<u8>,
    line: u64,
    keys: KeyFinder,
}

impl<R: BufRead> Reader<R> {
    /// Makes a reader of a recorded session. Nothing is read yet.
    pub fn new(input: R) -> Self {
        Self { input, raw: None, lacks_time: false, buffer: Vec::new(), line: 0, keys: KeyFinder::default() }
    }

    /// Returns true if all lines up to the last one read have times: those of a wire log have, an agent's output has none.
    /// Known after the first line.
    pub fn is_timed(&self) -> bool {
        self.is_wire_log() && !self.lacks_time
    }

    /// Returns true if the lines are those of a wire log, and not an agent's output. Known after the first line.
    pub fn is_wire_log(&self) -> bool {
        self.raw == Some(false)
    }

    /// Returns the number of the last line read, from 1.
    pub fn line_number(&self) -> u64 {
        self.line
    }

    /// Returns the next line, or `None` at the end. A torn last line of a wire log is skipped.
    pub fn next_line(&mut self) -> io::Result<Option<WireLine>> {
        let mut line = WireLine::text(0, Dir::Recv, "");
        Ok(self.read_line(&mut line)?.then_some(line))
    }

    /// Reads the next line into `line`, whose memory is used again. Returns false at the end.
    pub fn read_line(&mut self, line: &mut WireLine) -> io::Result<bool> {
        loop {
            self.buffer.clear();
            let cut = read_bounded(&mut self.input, &mut self.buffer)?;
            let Some(cut) = cut else { return Ok(false) };
            self.line += 1;
            let ended = self.buffer.last() == Some(&b'\n');
            if ended {
                self.buffer.pop();
            }
            // A program that saved the file may have put a byte order mark before its first line of JSON.
            if self.line == 1 && self.buffer.starts_with("\u{feff}{".as_bytes()) {
                self.buffer.drain(.."\u{feff}".len());
            }
            let raw = match self.raw {
                Some(raw) => raw,
                // Blank lines at the start do not show the format.
                None if self.buffer.iter().all(u8::is_ascii_whitespace) => continue,
                None => *self.raw.insert(serde_json::from_slice::<WireLine>(&self.buffer).is_err()),
            };
            if raw {
                // The next line is read into the memory of the last one.
                let bytes = std::mem::replace(&mut self.buffer, std::mem::take(&mut line.line).into_bytes());
                *line = WireLine::owned(0, Dir::Recv, bytes, (cut > 0).then_some(cut));
                return Ok(true);
            }
            match serde_json::from_slice::<StoredLine>(&self.buffer) {
                Ok(read) => {
                    self.lacks_time |= read.at_ms.is_none();
                    *line = read.into();
                    return Ok(true);
                }
                Err(_) if !ended => return Ok(false),
                Err(_) if self.buffer.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => {
                    let text = String::from_utf8_lossy(&self.buffer);
                    let notice = EngineLine::Notice {
                        code: NoticeCode::MalformedWireLine,
                        text: format!("line {} of the wire log cannot be read: {error}: {text}", self.line),
                    };
                    *line = WireLine::engine(0, &notice);
                    return Ok(true);
                }
            }
        }
    }
}

impl<R: BufRead> Lines for Reader<R> {
    fn read_line(&mut self, line: &mut WireLine) -> io::Result<bool> {
        Self::read_line(self, line)
    }

    fn is_timed(&self) -> bool {
        Self::is_timed(self)
    }

    fn line_number(&self) -> u64 {
        Self::line_number(self)
    }

    fn repeated_key(&mut self, line: &WireLine) -> Option<String> {
        repeated_key(&mut self.keys, line)
    }
}

/// Reads a line with its end, keeping the longest line that a wire log has. Returns the number of cut bytes, or `None` at the
/// end.
fn read_bounded(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    // A wire log has a byte of the agent's line as up to six (`\u001b`), and a line that is not UTF-8 as base64, too.
    const MAX_LOG_LINE: usize = 8 * MAX_LINE + 1024;
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
        let taken = part.len().min(MAX_LOG_LINE.saturating_sub(line.len()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_is_found_after_a_byte_order_mark() {
        let line = WireLine::text(0, Dir::Recv, "\u{feff}{\"a\": 1, \"a\": 2}");
        assert_eq!(repeated_key(&mut KeyFinder::default(), &line).as_deref(), Some("a"));
    }

    #[test]
    fn the_longest_line_of_a_wire_log_can_be_read_back() {
        let line = WireLine::owned(0, Dir::Recv, vec![0x1b; 6 << 20], None);
        let text = serde_json::to_string(&line).unwrap() + "\n";
        assert!(Reader::new(text.as_bytes()).next_line().unwrap() == Some(line), "control characters");
        let mixed = [&[0xff][..], &[0x1b; 999]].concat();
        let text = serde_json::to_string(&WireLine::owned(0, Dir::Recv, mixed, Some(1))).unwrap();
        assert!(text.len() <= 8 * 1000, "{} bytes", text.len());
    }

    #[test]
    fn a_log_has_times_if_each_line_has_one() {
        for (text, is_wire_log, is_timed) in [
            (r#"{"at_ms":0,"dir":"recv","line":"a"}"#, true, true),
            ("{\"at_ms\":0,\"dir\":\"recv\",\"line\":\"a\"}\n\nno line\n", true, true),
            (r#"{"dir":"recv","line":"a"}"#, true, false),
            ("{\"at_ms\":1,\"dir\":\"recv\",\"line\":\"a\"}\n{\"dir\":\"recv\",\"line\":\"b\"}\n", true, false),
            (r#"{"at_ms":0,"type":"a"}"#, false, false),
        ] {
            let mut reader = Reader::new(text.as_bytes());
            while reader.next_line().unwrap().is_some() {}
            assert_eq!((reader.is_wire_log(), reader.is_timed()), (is_wire_log, is_timed), "{text}");
        }
    }

    #[test]
    fn a_line_that_is_used_again_holds_nothing_of_the_line_before() {
        let raw: &[u8] = b"\n{\"type\":\"long line\"}\r\nab\xff\xfe\n\nlast";
        let timed = br#"{"at_ms":3,"dir":"send","line":"long line","bytes_b64":"YWI=","cut":7}
{"dir":"recv","line":"b"}

{"dir":
{"at_ms":9,"dir":"recv","line":""}
{"dir":"recv","li"#;
        for (text, lines) in [(raw, 4), (timed.as_slice(), 4)] {
            let (mut fresh, mut again) = (Reader::new(text), Reader::new(text));
            let mut line = WireLine::text(0, Dir::Recv, "");
            let mut read = 0;
            while again.read_line(&mut line).unwrap() {
                assert_eq!(fresh.next_line().unwrap().as_ref(), Some(&line));
                assert_eq!(fresh.line_number(), again.line_number());
                read += 1;
            }
            assert_eq!((fresh.next_line().unwrap(), read), (None, lines));
        }
    }
}
