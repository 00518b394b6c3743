//! Parses all YAML of this program: text to a typed value, or a [`YamlError`] that points at the wrong text.

use std::fmt;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use excerpt::Excerpt;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use recover::Failure;
use serde::de::DeserializeOwned;

use crate::regular;
use crate::values::is_hidden;

mod check;
mod excerpt;
mod recovered;
pub mod lists;
pub mod forms;
mod locate;
mod open_brackets;
mod recover;
mod surrogates;
pub mod words;
pub mod wrong_part;

pub use locate::{Step, StepPart, find, is_written_null};
pub use recovered::{LeftOut, OwnedStep};

/// The maximum size of a file in bytes: larger files are not written by hand, and the parser's time grows with the size.
const MAX_BYTES: usize = 4 << 20;

/// The maximum number of errors reported for a file; more would not help.
const MAX_ERRORS: usize = 50;

/// Parses a YAML text into a value. Enums are one-key maps or words; duplicate and unknown keys are refused.
///
/// # Errors
/// Returns the first error, with its place, the known names there, and how to fix it.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, YamlError> {
    let Parsed { value, mut errors, .. } = parse_all(path, text);
    errors.sort_by_key(YamlError::place);
    match (errors.into_iter().next(), value) {
        (Some(error), _) => Err(error),
        (None, Some(value)) => Ok(value),
        (None, None) => Err(YamlError::at(path, text, None, "the file could not be read")),
    }
}

/// Parses a YAML text, and returns all errors with a value of the valid rest.
pub fn parse_all<T: DeserializeOwned>(path: &Path, text: &str) -> Parsed<T> {
    let mut parsed = Parsed { value: None, left_out: LeftOut::default(), errors: Vec::new() };
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; at most {MAX_BYTES} are allowed", text.len());
        let error = YamlError::at(path, text, None, message).with_help("move large content to separate files");
        parsed.errors.push(error);
        return parsed;
    }
    let joined = surrogates::joined(text);
    let text = joined.as_deref().unwrap_or(text);
    if !check::check(path, text, &mut parsed.left_out, &mut parsed.errors) {
        return parsed;
    }
    loop {
        let reading = recover::Reading::new(text, &parsed.left_out);
        let deserializer = recover::At { inner: serde_yaml::Deserializer::from_str(text), reading: &reading };
        let error = match serde_yaml::with::singleton_map_recursive::deserialize(deserializer) {
            Ok(value) => {
                parsed.value = Some(value);
                return parsed;
            }
            Err(error) => error,
        };
        let Failure { at, blank } = reading.into_inner().failed();
        if !parsed.left_out.doubts(&at) {
            parsed.errors.push(match blank {
                Some(message) => without_value(path, text, &at, &message),
                None => rephrased(path, text, &error),
            });
        }
        if at.is_empty() || parsed.left_out.contains(&at) {
            return parsed;
        }
        if parsed.errors.len() >= MAX_ERRORS {
            parsed.errors.push(YamlError::at(
                path,
                text,
                None,
                "there may be more errors, which are reported when these are fixed",
            ));
            return parsed;
        }
        parsed.left_out.add(at);
    }
}

/// Rephrases an error of the deserializer for people.
fn rephrased(path: &Path, text: &str, error: &serde_yaml::Error) -> YamlError {
    let place = error.location().map(|place| locate::token(text, place.index()));
    let explained = words::explain(&locate::without_place(error));
    YamlError::at(path, text, place, explained.message).with_some_help(explained.help)
}

/// Returns the error about a key without a value. The deserializer's own error is about the map that contains the key.
fn without_value(path: &Path, text: &str, at: &[OwnedStep], message: &str) -> YamlError {
    let steps: Vec<Step<'_>> = at.iter().map(OwnedStep::step).collect();
    let explained = words::explain(&format!("{}: {message}", recovered::dotted(at)));
    YamlError::at(path, text, find(text, &steps, StepPart::Value), explained.message).with_some_help(explained.help)
}

/// The value of a text as far as it could be read, and all errors in it.
#[derive(Debug, Clone)]
pub struct Parsed<T> {
    /// The value without its wrong parts; absent if nothing could be read without them.
    pub value: Option<T>,
    /// The wrong parts that the value lacks.
    pub left_out: LeftOut,
    pub errors: Vec<YamlError>,
}

impl<T> Parsed<T> {
    /// Returns the value, if the text and a further check have no errors. An error of the check at a place where
    /// something was left out is dropped, because it may vanish once that part is fixed.
    ///
    /// # Errors
    /// Returns all errors, sorted by place.
    pub fn checked(self, check: impl FnOnce(&T) -> Vec<YamlError>) -> Result<T, Vec<YamlError>> {
        let Self { value, left_out, mut errors } = self;
        let more = value.as_ref().map(check).unwrap_or_default();
        errors.extend(more.into_iter().filter(|error| !error.doubted(&left_out)));
        errors.sort_by_key(YamlError::place);
        match value {
            Some(value) if errors.is_empty() => Ok(value),
            _ => Err(errors),
        }
    }
}

/// Writes a value as YAML, in the form that [`parse`] reads.
pub fn write(value: &impl serde::Serialize) -> String {
    let mut text = Vec::new();
    let mut serializer = serde_yaml::Serializer::new(&mut text);
    match serde_yaml::with::singleton_map_recursive::serialize(value, &mut serializer) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => format!("# cannot be written as YAML: {error}\n"),
    }
}

/// Reads the text of a file.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not UTF-8, with the place of the first invalid byte.
pub fn read(path: &Path) -> Result<String, YamlError> {
    let bytes = regular::read(path)
        .map_err(|error| YamlError::at(path, "", None, format!("the file could not be read: {error}")))?;
    String::from_utf8(bytes).map(regular::without_bom).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            let message = "the file is UTF-16, which is not read";
            return YamlError::at(path, "", None, message).with_help("save the file as UTF-8");
        }
        let wrong = bytes.get(at).copied().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let range = at..(at + char::REPLACEMENT_CHARACTER.len_utf8()).min(text.len());
        YamlError::at(path, &text, Some(range), format!("the file is not UTF-8: byte 0x{wrong:02x}"))
            .with_help("save the file as UTF-8")
    })
}

/// Returns the `<name>.yaml` files of a folder, by name, without names with two extensions. A missing folder is empty.
///
/// # Errors
/// Returns an error if the folder exists and cannot be read: the names in it are unknown.
pub fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, YamlError> {
    let unread = |error: std::io::Error| {
        YamlError::at(folder, "", None, format!("the folder could not be read: {error}"))
            .with_help("look at its permissions")
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(unread(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(".yaml"));
        if let Some(name) = name.filter(|name| !name.is_empty() && !name.contains('.')) {
            files.push((name.to_owned(), entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the YAML files of a folder that [`files`] leaves out, with the reason: names with two extensions, unless
/// they are calibrations of existing files, and names that end in `.yml`.
pub fn passed_over(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(PathBuf, String)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || entry.path().is_dir() {
                return None;
            }
            let (stem, extension) = name.rsplit_once('.')?;
            let of = stem.strip_suffix(".calibration");
            let why = match extension {
                "yaml" if !stem.contains('.') => return None,
                "yaml" if of.is_some_and(|of| folder.join(format!("{of}.yaml")).is_file()) => return None,
                "yaml" if of.is_some() => {
                    format!("it belongs to `{}.yaml`, which does not exist", of.unwrap_or_default())
                }
                "yaml" => format!("its name has two extensions; name it {}.yaml", stem.replace('.', "-")),
                _ if ["yaml", "yml"].iter().any(|known| extension.eq_ignore_ascii_case(known)) => {
                    "its name does not end in .yaml; rename it".to_owned()
                }
                _ => return None,
            };
            Some((entry.path(), why))
        })
        .collect();
    found.sort();
    found
}

/// An error in a file that a person wrote, displayed as `file:line:column: message`.
#[derive(Clone)]
pub struct YamlError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    path: PathBuf,
    place: Option<(usize, usize)>,
    range: Option<Range<usize>>,
    steps: Vec<OwnedStep>,
    message: String,
    help: Option<String>,
    text: NamedSource<String>,
    /// The text with its long lines cut, if there are any.
    excerpt: Option<Excerpt>,
}

impl YamlError {
    /// Makes an error about a range of bytes in a text, or without a range about the file as a whole.
    pub fn at(path: &Path, text: &str, range: Option<Range<usize>>, message: impl Into<String>) -> Self {
        let range = range.map(|range| {
            let start = text.floor_char_boundary(range.start);
            start..text.ceil_char_boundary(range.end.max(start))
        });
        let shown = same_length(text);
        let name = same_length(&path.to_string_lossy());
        let excerpt = range.as_ref().and_then(|range| Excerpt::of(&name, &shown, range));
        Self(Box::new(Inner {
            path: path.to_path_buf(),
            place: range.as_ref().map(|range| locate::line_column(text, range.start)),
            range,
            steps: Vec::new(),
            message: message.into(),
            help: None,
            text: NamedSource::new(name, shown).with_language("yaml"),
            excerpt,
        }))
    }

    /// Makes an error about the value, or the key, at these steps from the top of the text. If there is none, the error
    /// points at the last step that exists.
    pub fn at_steps(path: &Path, text: &str, steps: &[Step<'_>], part: StepPart, message: impl Into<String>) -> Self {
        let there = find(text, steps, part);
        let found = there.clone().or_else(|| {
            (1..steps.len()).rev().find_map(|length| steps.get(..length).and_then(|s| find(text, s, StepPart::Key)))
        });
        // An absent part is missing in the value that would hold it.
        let about = steps.get(..steps.len().saturating_sub(usize::from(there.is_none()))).unwrap_or_default();
        let mut error = Self::at(path, text, found, message);
        error.0.steps = OwnedStep::all(about);
        error
    }

    /// Returns true if the error may exist only because something at its place was left out.
    pub fn doubted(&self, left_out: &LeftOut) -> bool {
        left_out.doubts(&self.0.steps)
    }

    /// Adds help on how to fix the error.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    fn with_some_help(mut self, help: Option<String>) -> Self {
        self.0.help = help;
        self
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the line and the column, both from 1, in characters.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.0.place
    }

    /// Returns the text at the place.
    pub fn excerpt(&self) -> Option<&str> {
        self.0.text.inner().get(self.0.range.clone()?)
    }

    /// Returns the message, without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the help.
    pub fn way_out(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.path.display())?;
        if let Some((line, column)) = self.0.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.0.message)
    }
}

impl fmt::Debug for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "YamlError({self})")
    }
}

impl std::error::Error for YamlError {}

impl Diagnostic for YamlError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.range.as_ref()?;
        match &self.0.excerpt {
            Some(excerpt) => Some(excerpt),
            None => Some(&self.0.text),
        }
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let whole = self.0.range.clone()?;
        let range = self.0.excerpt.as_ref().map_or(whole, Excerpt::range);
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some("here".to_owned()), range))))
    }
}

/// Replaces every character that could act on a terminal by question marks, one for each of its bytes, so that the
/// places in the text do not move.
fn same_length(text: &str) -> String {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r') || is_hidden(c);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) { out.extend(std::iter::repeat_n('?', c.len_utf8())) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests;
