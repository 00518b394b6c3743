//! Replaces values that vary by chance in texts by placeholders in braces: folders of the trial, values of the
//! environment, and matches of the case's rules.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use regex::{Captures, Regex};

use self::folders::Folders;
use super::provenance::{Form, Numbers, Provenance};
use crate::snapshot::settings::Normalise;
use crate::trace::Header;

mod folders;

/// A word in braces in the agent's own text. It gets a backslash, so that it is never taken for a replaced value.
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\\*\{(?:workspace|home|tmp|trial|run|tmpdir|version|duration|[a-z][a-z0-9-]*:\d+)\}")
        .unwrap_or_else(|error| unreachable!("{error}"))
});
/// A word in braces in the replacement of a case's rule; `${name}` is a group.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?P<before>^|[^$])\{(?P<word>[a-z][a-z0-9-]*)\}").unwrap_or_else(|error| unreachable!("{error}"))
});

/// The treatment of a value that has no number yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// The value gets the next number.
    Next,
    /// The value gets no number: `{uuid:?}`.
    Later,
}

/// The replacements in the texts of one trace.
pub struct Redactions<'a> {
    folders: Folders,
    version: Option<String>,
    provenance: Provenance,
    numbers: RefCell<Numbers>,
    /// True if a text held a value that gets a number.
    uses_numbers: Cell<bool>,
    rules: &'a [Normalise],
}

impl<'a> Redactions<'a> {
    /// Makes the replacements for a trace. Its header names the folders and the agent's version.
    pub fn new(header: &Header, provenance: Provenance, rules: &'a [Normalise]) -> Self {
        let version =
            header.agent.as_ref().and_then(|agent| agent.version.clone()).filter(|version| version.len() >= 5);
        let folders = header.cwd.as_deref().map(Folders::of).unwrap_or_default();
        Self { folders, version, provenance, numbers: RefCell::default(), uses_numbers: Cell::new(false), rules }
    }

    /// Forgets the values that were used so far, for [`Redactions::uses_numbers`].
    pub fn forget_uses(&self) {
        self.uses_numbers.set(false);
    }

    /// Returns true if a text since the last [`Redactions::forget_uses`] held a value that gets a number, so that it
    /// depends on the numbering.
    pub fn uses_numbers(&self) -> bool {
        self.uses_numbers.get()
    }

    /// Numbers the values in the result of a call.
    pub fn take(&self, values: &[u32]) {
        self.numbers.borrow_mut().take(values, &self.provenance);
    }

    /// Numbers the values of equal calls, in the order in which they are used.
    pub fn take_equal(&self, calls: Vec<Vec<u32>>) {
        self.numbers.borrow_mut().take_equal(calls, &self.provenance);
    }

    /// Replaces values in an argument of a call under its key, or in a title.
    pub fn argument(&self, key: &str, text: &str, numbering: Numbering) -> String {
        self.with_rules(self.replaced(text, key, false, numbering), numbering)
    }

    /// Replaces values in prose, including the agent's version and durations that a tool measured.
    pub fn prose(&self, text: &str) -> String {
        self.with_rules(self.replaced(text, "", true, Numbering::Next), Numbering::Next)
    }

    fn replaced(&self, text: &str, key: &str, prose: bool, numbering: Numbering) -> String {
        let mut spans: Vec<(std::ops::Range<usize>, Cow<'static, str>)> = self.folders.in_text(text);
        let covered = |range: &std::ops::Range<usize>, spans: &[(std::ops::Range<usize>, Cow<'static, str>)]| {
            spans.iter().any(|(other, _)| other.start < range.end && range.start < other.end)
        };
        if let Some(version) = self.version.as_deref().filter(|_| prose) {
            let in_folders = spans.len();
            // The name of a folder may contain the version.
            for range in whole(text, version) {
                if !covered(&range, &spans[..in_folders]) {
                    spans.push((range, Cow::Borrowed("{version}")));
                }
            }
        }
        let values = self.provenance.chances(text, key, prose);
        let fixed = spans.len();
        for (range, id) in values {
            if covered(&range, &spans[..fixed]) {
                continue;
            }
            let Some((form, _)) = self.provenance.chance(id) else { continue };
            let word = form.word();
            self.uses_numbers.set(true);
            let mut numbers = self.numbers.borrow_mut();
            let number = match numbering {
                Numbering::Next => numbers.number(id, &self.provenance),
                Numbering::Later => numbers.known(id, &self.provenance),
            };
            spans.push((
                range,
                match number {
                    _ if form == Form::Duration => Cow::Borrowed("{duration}"),
                    Some(number) => Cow::Owned(format!("{{{word}:{number}}}")),
                    None => Cow::Owned(format!("{{{word}:?}}")),
                },
            ));
        }
        spans.sort_by_key(|span| span.0.start);
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (range, word) in spans {
            out.push_str(&as_written(&text[done..range.start]));
            out.push_str(&word);
            done = range.end;
        }
        out.push_str(&as_written(&text[done..]));
        out
    }

    /// Applies the case's own rules. They come last, because they are written for the text that the snapshot would
    /// show. A word in braces gets a number for each text that was replaced.
    fn with_rules(&self, text: String, numbering: Numbering) -> String {
        self.rules.iter().fold(text, |text, rule| {
            let with = |found: &Captures<'_>| {
                let numbered = PLACEHOLDER.replace_all(&rule.with, |place: &Captures<'_>| {
                    let word = &place["word"];
                    self.uses_numbers.set(true);
                    let number = match numbering {
                        Numbering::Next => self.numbers.borrow_mut().of_rule(word, &found[0]).to_string(),
                        Numbering::Later => "?".to_owned(),
                    };
                    format!("{}{{{word}:{number}}}", &place["before"])
                });
                let mut out = String::new();
                found.expand(&numbered, &mut out);
                out
            };
            match rule.regex.0.replace_all(&text, with) {
                Cow::Borrowed(_) => text,
                Cow::Owned(replaced) => replaced,
            }
        })
    }
}

/// Escapes the agent's text, so that nothing in it can be taken for a replaced value.
fn as_written(text: &str) -> Cow<'_, str> {
    if text.contains('{') {
        WRITTEN.replace_all(text, |found: &Captures<'_>| format!("\\{}", &found[0]))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the places of a name that are no part of a longer name.
fn whole<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = std::ops::Range<usize>> + 't {
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    text.match_indices(name).map(|(start, found)| start..start + found.len()).filter(move |range| {
        !goes_on(text[range.end..].chars().next()) && !text[..range.start].ends_with(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests;
