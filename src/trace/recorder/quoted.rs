//! The line of the recording that a notice names and quotes.

use super::Recorder;
use super::gaps::Place;

/// A line of the recording: its number, and its beginning if the agent sent or received it.
#[derive(Debug, Clone, Default)]
pub struct QuotedLine {
    number: Option<u64>,
    quote: String,
    place: Option<Place>,
}

impl Recorder {
    /// Returns the current line, for a notice that is recorded later.
    pub fn this_line(&self) -> QuotedLine {
        QuotedLine { number: self.line, quote: self.quote.clone(), place: Some(self.place()) }
    }

    /// Records notices about an earlier line, which they name and quote.
    pub fn about(&mut self, line: QuotedLine, record: impl FnOnce(&mut Self)) {
        let number = std::mem::replace(&mut self.line, line.number);
        let quote = std::mem::replace(&mut self.quote, line.quote);
        let place = std::mem::replace(&mut self.place, line.place);
        record(self);
        (self.line, self.quote, self.place) = (number, quote, place);
    }
}
