//! The lines of a recorded session on their way to the translation. Another thread may parse them before their turn.

use std::io::{self, BufRead};

use serde_json::Value;

use super::{claude_stream, json_stream};
use crate::big_numbers;
use crate::harness::Adapter;
use crate::repeated_key::KeyFinder;
use crate::wire::{Dir, Reader, WireLine, repeated_key};

/// The lines of a recorded session.
pub trait Lines {
    /// Calls `take` with each line, in order. The parser may be used for lines before their turn.
    ///
    /// # Errors
    /// Returns the error of reading, or of `take`.
    fn each(self, parser: Option<Parser>, take: impl FnMut(ReadLine<'_, '_>) -> io::Result<()>) -> io::Result<()>;
}

/// A line of a recorded session.
pub struct ReadLine<'l, 't> {
    pub wire: &'t WireLine,
    /// The number of the line in the recording, from 1.
    pub number: u64,
    /// True if the lines have times: a wire log has, an agent's output has none.
    pub is_timed: bool,
    /// A key that an object of a line from the agent has twice.
    pub repeated: Option<String>,
    /// The line as the parser parsed it, if it did.
    pub parsed: Option<&'l mut Parsed<'t>>,
}

impl<R: BufRead> Lines for Reader<R> {
    fn each(mut self, _: Option<Parser>, mut take: impl FnMut(ReadLine<'_, '_>) -> io::Result<()>) -> io::Result<()> {
        let (mut keys, mut wire) = (KeyFinder::default(), WireLine::text(0, Dir::Recv, ""));
        while self.read_line(&mut wire)? {
            let repeated = repeated_key(&mut keys, &wire);
            let (number, is_timed) = (self.line_number(), self.is_timed());
            take(ReadLine { wire: &wire, number, is_timed, repeated, parsed: None })?;
        }
        Ok(())
    }
}

/// A line of the agent, parsed as the translator of its protocol parses it.
pub enum Parsed<'a> {
    /// A line of Claude Code's stream.
    Claude(Box<claude_stream::Line<'a>>),
    /// A line of a JSON stream.
    Json(Value),
}

/// A function that parses a line of the agent. It returns `None` if the translator must parse the line itself.
#[derive(Clone, Copy)]
pub struct Parser(for<'a> fn(&'a str) -> Option<Parsed<'a>>);

impl Parser {
    /// Returns the function for lines of a protocol, or `None` if its lines are only parsed by their translator.
    pub fn of(adapter: Adapter) -> Option<Self> {
        match adapter {
            Adapter::ClaudeCodeStream | Adapter::ClaudeCodeControl => {
                Some(Self(|line| claude_stream::parsed(line).map(Parsed::Claude)))
            }
            Adapter::JsonStream => Some(Self(|line| json_stream::parsed(line).map(Parsed::Json))),
            Adapter::Acp | Adapter::OutputOnly | Adapter::Replay => None,
        }
    }

    /// Parses a line. Returns `None` if the line is not from the agent, or if it is changed before it is translated.
    pub fn parse(self, line: &WireLine) -> Option<Parsed<'_>> {
        let is_as_it_was = || !line.line.ends_with('\r') && !big_numbers::may_be_in(&line.line);
        if line.dir == Dir::Recv && is_as_it_was() { (self.0)(&line.line) } else { None }
    }
}
