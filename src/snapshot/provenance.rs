//! Determines which values of a session its environment produced before the agent used them, and their numbers
//! in a snapshot.
//!
//! A value counts as chance only if two conditions hold: environments make values of this form at random
//! ([`values`]), and a tool's output contained it before the agent or the user did. Values are looked up in an
//! index, so that the cost grows linearly with the length of the session.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* static $name: std::sync::LazyLock<regex::Regex> = std::sync::LazyLock::new(|| {
            // The pattern is a constant, and a test compiles it.
            regex::Regex::new($text).unwrap_or_else(|error| unreachable!("{error}"))
        });)*
    };
}

mod forms;
mod numbers;
mod signs;
mod temporary;
mod times;
mod values;
mod words;

pub use forms::Form;
pub use numbers::Numbers;
pub use values::is_generated;

use signs::Signs;
use times::Span;
use words::{is_hex, is_number, segments};

/// The maximum number of values of one output; an agent's use of a later value is shown unchanged.
const MAX_OUTPUT_VALUES: usize = 5_000;
/// The maximum number of values of a session.
const MAX_VALUES: usize = 500_000;

/// A place in a session: a later event has a greater moment.
pub type Moment = u64;

/// The number of a value in the index.
pub type Id = u32;

/// The values of a session, by text.
#[derive(Debug, Default)]
pub struct Provenance {
    values: Vec<Value>,
    by_text: HashMap<String, Id>,
    /// Hashes, sorted, to find an abbreviated hash by its first digits.
    hashes: BTreeMap<String, Id>,
    listed: usize,
    has_times: bool,
    has_uuids: bool,
    has_durations: bool,
}

#[derive(Debug)]
struct Value {
    form: Form,
    /// The moment at which the environment produced the value.
    produced: Moment,
    /// The moment at which the agent or the user said the value.
    first_mention: Moment,
    /// A shorter form of the same hash.
    same_as: Option<Id>,
}

impl Provenance {
    /// Takes the values of a tool's output, and returns each once, in order. `command` produced the output.
    pub fn produced(&mut self, output: &str, command: &str, at: Moment) -> Vec<Id> {
        let mut listed = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for (form, text) in values::in_output(output, command) {
            if listed.len() >= MAX_OUTPUT_VALUES || self.listed >= MAX_VALUES {
                break;
            }
            if let Some(id) = self.made(form, text, at).filter(|id| seen.insert(*id)) {
                listed.push(id);
                self.listed += 1;
            }
        }
        listed
    }

    /// Takes a value that the engine or the protocol made before the agent began.
    pub fn given(&mut self, form: Form, text: &str) -> Option<Id> {
        self.made(form, text, 0)
    }

    fn made(&mut self, form: Form, text: &str, at: Moment) -> Option<Id> {
        if let Some(id) = self.by_text.get(text) {
            return Some(*id);
        }
        let id = Id::try_from(self.values.len()).ok().filter(|_| self.values.len() < MAX_VALUES)?;
        self.values.push(Value { form, produced: at, first_mention: Moment::MAX, same_as: None });
        self.by_text.insert(text.to_owned(), id);
        match form {
            Form::Hash => drop(self.hashes.insert(text.to_owned(), id)),
            Form::Date | Form::Time => self.has_times = true,
            Form::Uuid => self.has_uuids = true,
            Form::Duration => self.has_durations = true,
            _ => {}
        }
        Some(id)
    }

    /// Takes a text of the agent or the user, with the key if it is an argument. All outputs must be known by then.
    pub fn mention(&mut self, text: &str, key: &str, at: Moment) {
        for (_, id) in self.all_in(text, key, true) {
            if let Some(value) = self.values.get_mut(id as usize) {
                value.first_mention = value.first_mention.min(at);
            }
        }
    }

    /// Joins each hash with its abbreviated forms. Must be called when everything is known.
    pub fn complete(&mut self) {
        let mut shortest: Option<(&str, Id)> = None;
        for (text, id) in &self.hashes {
            match shortest {
                Some((short, same)) if text.starts_with(short) => {
                    if let Some(value) = self.values.get_mut(*id as usize) {
                        value.same_as = Some(same);
                    }
                }
                _ => shortest = Some((text, *id)),
            }
        }
    }

    /// Returns the form of a value that the environment produced before it was said, and the value's shortest form.
    pub fn chance(&self, id: Id) -> Option<(Form, Id)> {
        let value = self.values.get(id as usize).filter(|value| value.produced < value.first_mention)?;
        Some((value.form, value.same_as.unwrap_or(id)))
    }

    /// Returns the values of chance in a text, in order and without overlaps.
    pub fn chances(&self, text: &str, key: &str, prose: bool) -> Vec<(Range<usize>, Id)> {
        let mut found = self.all_in(text, key, prose);
        found.retain(|(_, id)| self.chance(*id).is_some());
        // A longer value covers the values in it.
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut end = 0;
        found.retain(|(range, _)| {
            let free = range.start >= end;
            end = if free { range.end } else { end };
            free
        });
        found
    }

    /// Returns every value of the index in a text, including values within values.
    fn all_in(&self, text: &str, key: &str, prose: bool) -> Vec<(Range<usize>, Id)> {
        let mut found = Vec::new();
        if self.values.is_empty() {
            return found;
        }
        let mut spans: Vec<Span> = Vec::new();
        if self.has_times {
            times::times(&Signs::of(text), text, &mut spans);
        }
        if self.has_uuids {
            spans.extend(values::uuids(text).map(|range| (range, Form::Uuid)));
        }
        if prose && self.has_durations {
            times::durations(text, &mut spans);
        }
        for (range, form) in spans {
            if let Some(id) = self
                .by_text
                .get(&text[range.clone()])
                .filter(|id| (form == Form::Duration) == (self.form(**id) == Some(Form::Duration)))
            {
                found.push((range, *id));
            }
        }
        for word in words::words(text) {
            let before = found.len();
            self.whole(text, word.clone(), &mut found);
            if found.len() == before || self.form_of_last(&found) != Some(Form::Temporary) {
                self.parts(text, word, key, &mut found);
            }
        }
        found
    }

    fn form(&self, id: Id) -> Option<Form> {
        self.values.get(id as usize).map(|value| value.form)
    }

    fn form_of_last(&self, found: &[(Range<usize>, Id)]) -> Option<Form> {
        self.form(found.last()?.1)
    }

    /// Finds a word that is a value, alone or followed by one or two extensions.
    fn whole(&self, text: &str, word: Range<usize>, found: &mut Vec<(Range<usize>, Id)>) {
        let mut end = word.end;
        for _ in 0..3 {
            let part = &text[word.start..end];
            if let Some(id) = self.by_text.get(part)
                && !is_number(part)
                && self.form(*id) != Some(Form::Duration)
            {
                return found.push((word.start..end, *id));
            }
            match part.rfind('.') {
                Some(point) if point > 0 => end = word.start + point,
                _ => return,
            }
        }
    }

    /// Finds parts of a word that are values: digits and letters between other characters.
    fn parts(&self, text: &str, word: Range<usize>, key: &str, found: &mut Vec<(Range<usize>, Id)>) {
        for mut range in segments(text, word) {
            // The form `v1.2-3-ga1b2c3d` of `git describe`.
            let described = range.len() > 7
                && text[range.clone()].strip_prefix('g').is_some_and(is_hex)
                && text[..range.start].ends_with('-')
                && !self.by_text.contains_key(&text[range.clone()]);
            range.start += usize::from(described);
            let part = &text[range.clone()];
            let Some(id) = self.by_text.get(part).copied().or_else(|| self.abbreviated(part)) else { continue };
            let form = self.form(id);
            let short_pid = form == Some(Form::Pid) && part.len() < 4;
            let holds = !(is_number(part) && is_of_decimal(text, &range))
                && form != Some(Form::Duration)
                && (!short_pid || names_a_process(&text[..range.start], key));
            if holds {
                found.push((range, id));
            }
        }
    }

    /// Returns the hash with these first digits, as git abbreviates hashes.
    fn abbreviated(&self, part: &str) -> Option<Id> {
        if !(7..64).contains(&part.len()) || !is_hex(part) {
            return None;
        }
        let (text, id) =
            self.hashes.range::<str, _>((std::ops::Bound::Excluded(part), std::ops::Bound::Unbounded)).next()?;
        text.starts_with(part).then_some(*id)
    }
}

/// Returns true if a number is a part of a decimal number or of a version.
fn is_of_decimal(text: &str, range: &Range<usize>) -> bool {
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let figure = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    before.strip_suffix('.').is_some_and(|rest| figure(rest.chars().next_back()))
        || after.strip_prefix('.').is_some_and(|rest| figure(rest.chars().next()))
}

patterns! {
    /// The commands and keys before the number of a process, up to that number.
    TAKES_PID = r"(?:\b(?:kill|wait|ps|strace|ltrace|lsof|gdb|pmap|pgrep|pkill|pidstat|renice|top|fg|bg|disown|taskset|nsenter|pwdx|prlimit|kill_process|tail)\b[^;|&\n]*|/proc/|(?i:p?pid)\W{0,4}|(?i:process)(?: id)?\W{1,3})$";
}

/// Returns true if the text before a short number, or its key, names a process.
fn names_a_process(before: &str, key: &str) -> bool {
    let mut from = before.len().saturating_sub(200);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    let key = key.to_ascii_lowercase();
    key.contains("pid") || key.contains("process") || TAKES_PID.is_match(&before[from..])
}
