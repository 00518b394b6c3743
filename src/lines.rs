//! Splits bytes from a pipe into lines of bounded length.

use crate::wire::MAX_LINE;

/// A line, without its line feed. A carriage return before it is kept.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The bytes, at most [`MAX_LINE`].
    pub bytes: Vec<u8>,
    /// The number of bytes that were cut off.
    pub cut: Option<u64>,
}

/// Splits arriving bytes into lines.
#[derive(Debug, Default)]
pub struct Splitter {
    partial: Vec<u8>,
    cut: u64,
}

impl Splitter {
    /// Adds bytes, and calls `each` for every line that ended in them.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.keep(&bytes[..end]);
            bytes = &bytes[end + 1..];
            each(self.take());
        }
        self.keep(bytes);
    }

    /// Returns the last line, which had no end.
    pub fn rest(&mut self) -> Option<Line> {
        (!self.partial.is_empty() || self.cut > 0).then(|| self.take())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.partial.len()).min(bytes.len());
        self.partial.extend_from_slice(&bytes[..room]);
        self.cut += (bytes.len() - room) as u64;
    }

    fn take(&mut self) -> Line {
        let bytes = std::mem::take(&mut self.partial);
        let cut = std::mem::take(&mut self.cut);
        Line { bytes, cut: (cut > 0).then_some(cut) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_the_bytes_come_in() {
        let text = b"one\r\ntwo\n\nlast";
        for size in 1..text.len() {
            let mut splitter = Splitter::default();
            let mut lines = Vec::new();
            for chunk in text.chunks(size) {
                splitter.push(chunk, |line| lines.push(line.bytes));
            }
            lines.extend(splitter.rest().map(|line| line.bytes));
            assert_eq!(lines, [&b"one\r"[..], b"two", b"", b"last"]);
        }
    }

    #[test]
    fn a_line_too_long_is_cut_and_counted() {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            splitter.push(&chunk, |line| lines.push(line));
        }
        splitter.push(b"\nnext\n", |line| lines.push(line));
        assert_eq!(lines[0].bytes.len(), MAX_LINE);
        assert_eq!(lines[0].cut, Some(4 << 20));
        assert_eq!(lines[1], Line { bytes: b"next".to_vec(), cut: None });
    }
}
