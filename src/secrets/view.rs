//! A text as its reader decodes it, with the place of each of its bytes in the original.

use std::ops::Range;

/// A decoded text.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The decoded bytes.
    pub(super) text: Vec<u8>,
    /// The places at which bytes of the text and of the original do not correspond one to one, in order.
    jumps: Vec<Jump>,
}

/// A part of the text whose length differs from its part of the original.
#[derive(Debug)]
struct Jump {
    /// The place in the text.
    text: Range<usize>,
    /// The place in the original.
    original: Range<usize>,
}

impl View {
    /// Appends the decoded form of a part of the original, or nothing if the part is left out.
    pub(super) fn decoded(&mut self, text: &[u8], original: Range<usize>) {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.jumps.push(Jump { text: start..self.text.len(), original });
    }

    /// Returns the place of a part of the text in the original, without bytes that were left out at its ends.
    pub(super) fn original(&self, part: Range<usize>) -> Range<usize> {
        let after = |before: usize, at: usize| match before.checked_sub(1).and_then(|last| self.jumps.get(last)) {
            Some(jump) => jump.original.end + (at - jump.text.end),
            None => at,
        };
        let starts = self.jumps.partition_point(|jump| jump.text.end <= part.start);
        let start = match self.jumps.get(starts) {
            // The part begins inside the decoded form of an escape.
            Some(jump) if jump.text.start < part.start => jump.original.start,
            _ => after(starts, part.start),
        };
        let ends = self.jumps.partition_point(|jump| jump.text.end <= part.end && jump.text.start < part.end);
        let end = match self.jumps.get(ends) {
            Some(jump) if jump.text.start < part.end => jump.original.end,
            _ => after(ends, part.end),
        };
        start..end.max(start)
    }

    /// Returns the places of a part of the text in the original, split where bytes of the original were left out.
    pub(super) fn pieces(&self, part: Range<usize>) -> Vec<Range<usize>> {
        let first = self.jumps.partition_point(|jump| jump.text.start <= part.start);
        let inside = self.jumps[first..].iter().take_while(|jump| jump.text.start < part.end);
        let mut pieces = Vec::new();
        let mut from = part.start;
        for cut in inside.filter(|jump| jump.text.is_empty()).map(|jump| jump.text.start) {
            // Two adjacent parts may have been left out.
            if cut > from {
                pieces.push(self.original(from..cut));
                from = cut;
            }
        }
        pieces.push(self.original(from..part.end));
        pieces
    }

    /// Returns the view of the text from this byte on.
    pub(super) fn tail(&self, start: usize) -> Self {
        let before = Jump { text: 0..0, original: 0..self.original(start..start + 1).start };
        let first = self.jumps.partition_point(|jump| jump.text.start <= start);
        let rest = self.jumps[first..]
            .iter()
            .map(|jump| Jump { text: jump.text.start - start..jump.text.end - start, original: jump.original.clone() });
        Self { text: self.text[start..].to_vec(), jumps: std::iter::once(before).chain(rest).collect() }
    }
}
