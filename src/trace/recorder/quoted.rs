//! The line of the recording that a notice names and quotes.

use super::Recorder;

/// A line of the recording: its number, and its beginning if the agent sent or received it.
#[derive(Debug, Clone, Default)]
pub struct QuotedLine {
    number: Option<u64>,
    quote: String,
}

impl Recorder {
    /// Returns the current line, for a notice that is recorded later.
    pub fn this_line(&self) -> QuotedLine {
        QuotedLine { number: self.line, quote: self.quote.clone() }
    }

    /// Records notices about an earlier line, which they name and quote.
    pub fn about(&mut self, line: QuotedLine, record: impl FnOnce(&mut Self)) {
        let number = std::mem::replace(&mut self.line, line.number);
        let quote = std::mem::replace(&mut self.quote, line.quote);
        record(self);
        (self.line, self.quote) = (number, quote);
    }
}
