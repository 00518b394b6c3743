//! Cuts the long lines of a text around a place, so that a message does not print a line of many kilobytes.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, NamedSource, SourceCode, SourceSpan, SpanContents};

/// The maximum length of a line in bytes. Longer lines are cut.
const LONG: usize = 400;
/// The number of bytes that are kept before a place.
const BEFORE: usize = 40;
/// The number of bytes that are kept from a place on, and from the beginning of other lines.
const AFTER: usize = 80;
/// The sign for what was cut.
const CUT: &str = "…";

/// A text with its long lines cut, and the range in it. Lines and columns are those of the whole text.
#[derive(Debug, Clone)]
pub(super) struct Excerpt {
    text: NamedSource<String>,
    range: Range<usize>,
    /// The line of the range, from 0.
    line: usize,
    /// The column of the range in the whole text, in characters from 0.
    column: usize,
}

impl Excerpt {
    /// Cuts the long lines of a text. Returns `None` if the line of the range and those around it are short.
    pub(super) fn of(name: &str, text: &str, range: &Range<usize>) -> Option<Self> {
        let line = text.get(..range.start)?.matches('\n').count();
        let near = line.saturating_sub(1)..line + 2;
        if !text.split('\n').enumerate().any(|(number, it)| near.contains(&number) && it.len() > LONG) {
            return None;
        }
        let mut shown = String::new();
        let mut found = None;
        let mut column = 0;
        let mut start = 0;
        for (number, of_text) in text.split_inclusive('\n').enumerate() {
            let begin = start;
            start += of_text.len();
            let content = of_text.strip_suffix('\n').unwrap_or(of_text);
            let (from, to) = if number == line {
                let at = range.start - begin;
                let from =
                    if content.len() > LONG { content.floor_char_boundary(at.saturating_sub(BEFORE)) } else { 0 };
                let to = if content.len() > LONG { content.ceil_char_boundary(at + AFTER) } else { content.len() };
                let mark = if from > 0 { CUT } else { "" };
                column = content.get(..at)?.chars().count();
                let place = shown.len() + mark.len() + at - from;
                found = Some(place..place + range.len().min(to - at));
                (from, to)
            } else if content.len() > LONG {
                (0, content.floor_char_boundary(AFTER))
            } else {
                (0, content.len())
            };
            let (before, after) = (if from > 0 { CUT } else { "" }, if to < content.len() { CUT } else { "" });
            let end = if content.len() < of_text.len() { "\n" } else { "" };
            shown.extend([before, content.get(from..to)?, after, end]);
        }
        // A place after the last line end is at the end.
        let range = found.unwrap_or(shown.len()..shown.len());
        let text = NamedSource::new(name, shown).with_language("yaml");
        Some(Self { text, range, line, column })
    }

    /// Returns the range in the cut text.
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let cut = self.text.read_span(span, before, after)?;
        let is_place = cut.line() == self.line && cut.column() > 0;
        let column = if is_place { self.column } else { cut.column() };
        let name = self.text.name().to_owned();
        let contents =
            MietteSpanContents::new_named(name, cut.data(), *cut.span(), cut.line(), column, cut.line_count());
        Ok(Box::new(contents.with_language("yaml")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_place_and_short_ones_are_not() {
        assert!(Excerpt::of("a.yaml", "a: b\nc: d\n", &(3..4)).is_none());
        let long = format!("first: {}\nlong: {}HERE{}\nlast: x\n", "x".repeat(999), "é".repeat(9999), "z".repeat(9999));
        let at = long.find("HERE").unwrap();
        let cut = Excerpt::of("a.yaml", &long, &(at..at + 4)).unwrap();
        let text = cut.text.inner();
        assert_eq!(&text[cut.range()], "HERE");
        assert!(text.len() < 400 && text.starts_with("first: xx") && text.ends_with("z…\nlast: x\n"), "{text}");
        let place = cut.read_span(&cut.range().into(), 0, 0).unwrap();
        assert_eq!((place.line(), place.column()), (1, "long: ".len() + 9999));
        // A range that goes on to the end of its line, and one at the end of the text.
        let cut = Excerpt::of("a.yaml", &long, &(at..long.len())).unwrap();
        assert_eq!(cut.range().len(), 80);
        let ended = format!("{}\n", "y".repeat(5000));
        let cut = Excerpt::of("a.yaml", &ended, &(5001..5001)).unwrap();
        assert_eq!(cut.range().start, cut.text.inner().len());
        let end = "y".repeat(5000);
        let cut = Excerpt::of("a.yaml", &end, &(5000..5000)).unwrap();
        assert_eq!(cut.range().start, cut.text.inner().len());
    }
}
