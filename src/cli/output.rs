//! Standard output and standard error of commands: buffered, and sanitised for terminals and CI services.

use std::io::{self, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::values::is_hidden;

/// The size of the buffer, in bytes.
const BUFFER: usize = 64 << 10;

/// The kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Text for people.
    Text,
    /// JSON. A character with a meaning to a service is escaped.
    Json,
}

/// A writer that lets only text and this program's own colours reach a terminal or a service.
///
/// Reports sanitise each text of an agent or a case themselves. This is the second line of defence: it also
/// covers messages, paths and names, for every command.
#[derive(Debug)]
pub struct Door<W: Write> {
    inner: W,
    pending: Vec<u8>,
    /// The length of the whole lines in `pending`.
    whole: usize,
    rules: Rules,
    line: Line,
    /// True for standard output: a failure to write its end is an error of the command.
    is_output: bool,
}

/// The rules for filtering.
#[derive(Debug, Clone, Copy)]
struct Rules {
    content: Content,
    /// A terminal interprets control characters; our own colours pass.
    terminal: bool,
    colours: bool,
    /// GitHub Actions reads workflow commands from the output.
    workflow: bool,
}

/// The state within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// The line has only white space so far.
    Blank,
    /// A colon after white space.
    Colon,
    /// Text, with the number of `#` at its end.
    Text(u8),
}

impl Content {
    /// Returns the kind for JSON or for text.
    pub fn json(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Standard error for code that keeps a writer for long: each write uses a new [`Door`].
#[derive(Debug, Clone, Copy)]
pub struct Notes;

impl Write for Notes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut door = stderr();
        door.write_all(bytes).and_then(|()| door.flush()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Returns a door to standard output.
pub fn stdout(content: Content) -> Door<io::StdoutLock<'static>> {
    let stdout = io::stdout();
    let colours = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let rules = Rules { content, terminal: stdout.is_terminal(), colours, workflow: reads_commands() };
    let mut door = Door::new(stdout.lock(), rules);
    door.is_output = true;
    door
}

/// The error of a door to standard output that was closed without `flush`.
static NOT_WRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

/// Returns the error of writing the end of the output, if no command has seen it. A closed pipe is none: its reader has read
/// enough.
pub fn not_written() -> Option<io::Error> {
    let mut kept = NOT_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    kept.take().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// Returns a door to a program that writes to standard output in our place, such as a pager.
pub fn in_place_of_stdout<W: Write>(inner: W) -> Door<W> {
    let stdout = io::stdout();
    let colours = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    let rules = Rules { content: Content::Text, terminal: stdout.is_terminal(), colours, workflow: reads_commands() };
    Door::new(inner, rules)
}

/// Returns a door to standard error.
pub fn stderr() -> Door<io::StderrLock<'static>> {
    let stderr = io::stderr();
    let colours = anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never;
    let rules = Rules { content: Content::Text, terminal: stderr.is_terminal(), colours, workflow: reads_commands() };
    Door::new(stderr.lock(), rules)
}

/// Returns true if a service reads commands from the output.
fn reads_commands() -> bool {
    static READS: LazyLock<bool> = LazyLock::new(|| {
        crate::own_environment::var("GITHUB_ACTIONS").is_some_and(|value| !value.is_empty() && value != "false")
    });
    *READS
}

impl<W: Write> Door<W> {
    fn new(inner: W, rules: Rules) -> Self {
        Self { inner, pending: Vec::new(), whole: 0, rules, line: Line::Blank, is_output: false }
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Most output goes to a file or a program and has nothing to replace.
        let is_read = self.rules.workflow || self.rules.terminal;
        if !is_read && !holds_control(bytes) && std::str::from_utf8(bytes).is_ok() {
            return self.inner.write_all(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        let mut out = String::with_capacity(text.len());
        let mut rest: &str = &text;
        while let Some(c) = rest.chars().next() {
            if c == '\x1b'
                && self.rules.colours
                && let Some(length) = own_colour(rest)
            {
                out.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            rest = &rest[c.len_utf8()..];
            self.character(c, rest, &mut out);
        }
        self.inner.write_all(out.as_bytes())
    }

    fn character(&mut self, c: char, rest: &str, out: &mut String) {
        if self.rules.workflow {
            match (c, self.line) {
                (':', Line::Colon) => out.push(' '),
                ('[', Line::Text(2..)) if self.rules.content == Content::Json => {
                    out.push_str("\\u005b");
                    self.line = Line::Text(0);
                    return;
                }
                ('[', Line::Text(2..)) => out.push(' '),
                _ => {}
            }
            self.line = match (c, self.line) {
                ('\n' | '\r', _) => Line::Blank,
                (c, Line::Blank) if c.is_whitespace() => Line::Blank,
                (':', Line::Blank) => Line::Colon,
                ('#', Line::Text(n)) => Line::Text(n.saturating_add(1)),
                ('#', _) => Line::Text(1),
                _ => Line::Text(0),
            };
        }
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if rest.starts_with('\n') => out.push(c),
            '\0'..='\x1f' => out.extend(['^', char::from(c as u8 + 0x40)]),
            c if self.rules.terminal && (c.is_control() || is_hidden(c)) => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
}

/// Returns true if bytes hold a control character other than a line feed and a tab. Blocks are compared as a whole, which
/// processors do for many bytes at once.
fn holds_control(bytes: &[u8]) -> bool {
    const BLOCK: usize = 4096;
    let is_control = |byte: u8| byte < b' ' && byte != b'\n' && byte != b'\t';
    bytes.chunks(BLOCK).any(|block| block.iter().fold(false, |found, byte| found | is_control(*byte)))
}

/// Returns the length of a colour sequence at the start, if it is one that this program writes: bold, dim, or a
/// plain colour.
fn own_colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let end = codes.find('m')?;
    let own = |code: &str| matches!(code.parse::<u8>(), Ok(0 | 1 | 2 | 3 | 4 | 7 | 22 | 31..=37 | 39 | 90..=97));
    (end <= 8 && codes[..end].split(';').all(own)).then_some(end + 3)
}

impl<W: Write> Write for Door<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Only the new bytes are searched: a line may be long, and come in small pieces.
        if let Some(end) = memchr::memrchr(b'\n', bytes) {
            self.whole = self.pending.len() + end + 1;
        }
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BUFFER && self.whole > 0 {
            let mut whole = std::mem::take(&mut self.pending);
            let passed = self.pass(&whole[..self.whole]);
            // The memory is used again: a large piece that is freed costs more than the rest that is moved.
            whole.drain(..std::mem::take(&mut self.whole));
            self.pending = whole;
            passed?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.whole = 0;
        self.pass(&pending)?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Door<W> {
    fn drop(&mut self) {
        if let Err(error) = self.flush()
            && self.is_output
        {
            NOT_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(rules: Rules, pieces: &[&str]) -> String {
        let mut out = Vec::new();
        let mut door = Door::new(&mut out, rules);
        for piece in pieces {
            door.write_all(piece.as_bytes()).unwrap();
        }
        drop(door);
        String::from_utf8(out).unwrap()
    }

    const LOG: Rules = Rules { content: Content::Text, terminal: false, colours: false, workflow: true };
    const TERMINAL: Rules = Rules { content: Content::Text, terminal: true, colours: true, workflow: false };

    #[test]
    fn no_line_is_a_workflow_command() {
        assert_eq!(passed(LOG, &["::error::x\n  ::warning::y\n a ::b\n"]), ": :error::x\n  : :warning::y\n a ::b\n");
        assert_eq!(passed(LOG, &[":", ":set-output\r", "\n::x"]), ": :set-output\r\n: :x");
        assert_eq!(passed(LOG, &["a ##[error]x ###[y] #[z]"]), "a ## [error]x ### [y] #[z]");
        let json = Rules { content: Content::Json, ..LOG };
        let text = "{\"a\": \"##[error]x\", \"b\": []}\n";
        let written = passed(json, &[text]);
        assert!(!written.contains("##["));
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }

    #[test]
    fn a_control_character_is_found_wherever_it_stands() {
        let rules = Rules { content: Content::Json, terminal: false, colours: false, workflow: false };
        let text = "a\tb é\n".repeat(2_000);
        assert_eq!(passed(rules, &[&text]), text);
        for at in [0, 4095, 4096, 8191, 9_999] {
            let mut bytes = vec![b'x'; 10_000];
            bytes[at] = 7;
            let text = String::from_utf8(bytes).unwrap();
            assert_eq!(passed(rules, &[&text]), text.replace('\x07', "^G"), "{at}");
        }
    }

    /// Counts what reaches the stream.
    #[derive(Default)]
    struct Counting {
        writes: usize,
        bytes: usize,
    }

    impl Write for Counting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            self.bytes += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn small_pieces_are_written_together_and_a_long_line_is_searched_once() {
        for (line, most) in [(100, 2_000_000 / BUFFER + 2), (2_000_000, 2)] {
            let mut counting = Counting::default();
            let mut door = Door::new(&mut counting, TERMINAL);
            for at in (0..2_000_000).step_by(10) {
                let piece = if (at + 10) % line == 0 { "123456789\n" } else { "1234567890" };
                door.write_all(piece.as_bytes()).unwrap();
            }
            drop(door);
            assert_eq!(counting.bytes, 2_000_000);
            assert!(counting.writes <= most, "{} writes with lines of {line} bytes", counting.writes);
        }
    }

    #[test]
    fn a_terminal_gets_our_own_colours_and_no_other_sequence() {
        assert_eq!(passed(TERMINAL, &["\x1b[1m\x1b[31mbold\x1b[0m"]), "\x1b[1m\x1b[31mbold\x1b[0m");
        assert_eq!(passed(TERMINAL, &["\x1b]0;title\x07\x1b[2J\x1b[5m"]), "^[]0;title^G^[[2J^[[5m");
        assert_eq!(passed(TERMINAL, &["a\u{9b}31m\u{202e}b\u{7f}\rc"]), "a\\u{9b}31m\\u{202e}b\\u{7f}^Mc");
        assert_eq!(passed(LOG, &["\x1b[31mred"]), "^[[31mred");
    }
}
