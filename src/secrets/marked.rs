//! A text whose secrets are replaced by marks in several searches, each in the text that the one before left.

use std::cmp::Reverse;
use std::ops::Range;

use super::view::View;

/// The place of a secret, and the name in its mark.
pub(super) type Secret = (Range<usize>, &'static str);

/// A text with marks.
pub(super) struct Marked<'t> {
    original: &'t str,
    /// The secrets found so far by their places in the original, in order and without overlap.
    secrets: Vec<Secret>,
    /// The text with marks, and the place of each of its parts in the original.
    view: View,
    text: Option<String>,
}

impl<'t> Marked<'t> {
    pub(super) fn new(original: &'t str) -> Self {
        Self { original, secrets: Vec::new(), view: View::default(), text: None }
    }

    /// Returns the text with the marks of all secrets found so far.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or(self.original)
    }

    /// Replaces further secrets, given by their places in the text with marks. A secret that contains a mark takes its
    /// place.
    pub(super) fn add(&mut self, found: Vec<Secret>) {
        if found.is_empty() {
            return;
        }
        self.secrets.extend(found.into_iter().map(|(at, name)| (self.view.original(at), name)));
        self.secrets.sort_by_key(|(at, _)| (at.start, Reverse(at.end)));
        self.secrets.dedup_by(|(later, _), (first, _)| {
            let overlaps = later.start < first.end;
            if overlaps {
                first.end = first.end.max(later.end);
            }
            overlaps
        });
        self.view = View::default();
        let mut copied = 0;
        for (at, name) in &self.secrets {
            self.view.text.extend_from_slice(&self.original.as_bytes()[copied..at.start]);
            self.view.decoded(format!("[redacted:{name}]").as_bytes(), at.clone());
            copied = at.end;
        }
        self.view.text.extend_from_slice(&self.original.as_bytes()[copied..]);
        self.text = Some(String::from_utf8_lossy(&self.view.text).into_owned());
    }

    /// Returns the text with marks, or `None` if no secret was found.
    pub(super) fn into_text(self) -> Option<String> {
        self.text
    }

    /// Returns the places of the secrets in the original.
    pub(super) fn into_secrets(self) -> Vec<Secret> {
        self.secrets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_searches_see_the_marks_of_earlier_ones() {
        let mut marked = Marked::new("a one b two c");
        marked.add(vec![(2..5, "x")]);
        assert_eq!(marked.text(), "a [redacted:x] b two c");
        marked.add(vec![(17..20, "y")]);
        assert_eq!(marked.text(), "a [redacted:x] b [redacted:y] c");
        marked.add(vec![(0..16, "z")]);
        assert_eq!(marked.text(), "[redacted:z] [redacted:y] c");
        assert_eq!(marked.into_secrets(), [(0..7, "z"), (8..11, "y")]);
        assert_eq!(Marked::new("a").into_text(), None);
    }
}
