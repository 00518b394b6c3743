//! The lines of the agent that wait for the driver.

use std::collections::VecDeque;

/// The maximum size in bytes of the waiting lines. The output of an agent that writes more while it does not read is not
/// read further.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// The lines that wait for the driver, and their size.
#[derive(Default)]
pub(super) struct Queue {
    lines: VecDeque<ReceivedLine>,
    bytes: usize,
}

/// A line that waits for the driver.
pub(super) struct ReceivedLine {
    /// The number of the line in the wire log.
    pub(super) number: u64,
    pub(super) text: String,
}

impl Queue {
    /// Adds a line.
    pub(super) fn push(&mut self, line: ReceivedLine) {
        self.bytes += line.text.len();
        self.lines.push_back(line);
    }

    /// Takes the first line.
    pub(super) fn pop(&mut self) -> Option<ReceivedLine> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.text.len();
        Some(line)
    }

    /// Returns true if the agent's output is not to be read further until the driver has taken lines.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > MAX_WAITING_BYTES
    }

    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = &ReceivedLine> + Clone {
        self.lines.iter().filter(move |line| line.number > number)
    }
}
