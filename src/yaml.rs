//! The only YAML door: text to a typed value, or a [`YamlError`] that points at the offending text.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use serde::de::DeserializeOwned;

mod check;
mod locate;
pub mod words;

pub use locate::{Part, Step, find};

/// Files longer than this are refused unread: nobody writes them by hand, and the parser's time grows with them.
const MAX_BYTES: usize = 4 << 20;

/// Reads a YAML text into a value. Enums stand as one-key maps or as words; duplicate and unknown keys are refused.
///
/// # Errors
/// The first thing that is wrong, with its place, what is known there, and the way out.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, YamlError> {
    if text.len() > MAX_BYTES {
        let message = format!("the file holds {} bytes; at most {MAX_BYTES} are read", text.len());
        return Err(YamlError::at(path, text, None, message).with_help("keep large content in files of their own"));
    }
    check::check(path, text)?;
    let deserializer = serde_yaml::Deserializer::from_str(text);
    serde_yaml::with::singleton_map_recursive::deserialize(deserializer).map_err(|error: serde_yaml::Error| {
        let place = error.location().map(|place| locate::token(text, place.index()));
        let explained = words::explain(&locate::without_place(&error));
        YamlError::at(path, text, place, explained.message).with_some_help(explained.help)
    })
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
/// The file cannot be read, or is not UTF-8; the place of the first wrong byte is told.
pub fn read(path: &Path) -> Result<String, YamlError> {
    let bytes = std::fs::read(path)
        .map_err(|error| YamlError::at(path, "", None, format!("the file could not be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        let wrong = bytes.get(at).copied().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let range = at..(at + char::REPLACEMENT_CHARACTER.len_utf8()).min(text.len());
        YamlError::at(path, &text, Some(range), format!("the file is not UTF-8: byte 0x{wrong:02x}"))
            .with_help("save the file as UTF-8")
    })
}

/// Reads a file into a value, and gives its text too, which semantic errors point into.
///
/// # Errors
/// As [`read`] and [`parse`] say.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<(T, String), YamlError> {
    let text = read(path)?;
    let value = parse(path, &text)?;
    Ok((value, text))
}

/// The `<name>.yaml` files of a folder, by name; names with two extensions are left out. No folder has none.
pub fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<(String, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(".yaml")?.to_owned();
            (!name.is_empty() && !name.contains('.')).then(|| (name, entry.path()))
        })
        .collect();
    files.sort();
    files
}

/// Something wrong in a file that a person wrote. Shows as `file:line:column: what is wrong`.
#[derive(Clone)]
pub struct YamlError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    path: PathBuf,
    place: Option<(usize, usize)>,
    range: Option<Range<usize>>,
    message: String,
    help: Option<String>,
    text: NamedSource<String>,
}

impl YamlError {
    /// An error about a range of bytes in a text; without a range it is about the file as a whole.
    pub fn at(path: &Path, text: &str, range: Option<Range<usize>>, message: impl Into<String>) -> Self {
        let range = range.map(|range| {
            let start = text.floor_char_boundary(range.start);
            start..text.ceil_char_boundary(range.end.max(start))
        });
        Self(Box::new(Inner {
            path: path.to_path_buf(),
            place: range.as_ref().map(|range| locate::line_column(text, range.start)),
            range,
            message: message.into(),
            help: None,
            text: NamedSource::new(path.display().to_string(), text.to_owned()).with_language("yaml"),
        }))
    }

    /// An error about the value, or the key, to which these steps lead from the top of the text.
    /// Where they lead nowhere, the last step that exists is pointed at.
    pub fn at_steps(path: &Path, text: &str, steps: &[Step<'_>], part: Part, message: impl Into<String>) -> Self {
        let found = find(text, steps, part).or_else(|| {
            (1..steps.len()).rev().find_map(|length| steps.get(..length).and_then(|s| find(text, s, Part::Key)))
        });
        Self::at(path, text, found, message)
    }

    /// The same, with the way out.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    fn with_some_help(mut self, help: Option<String>) -> Self {
        self.0.help = help;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Line and column, both from 1, in characters.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.0.place
    }

    /// What is wrong, without its place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The way out.
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
        self.0.range.as_ref().map(|_| &self.0.text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let range = self.0.range.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some("here".to_owned()), range))))
    }
}

#[cfg(test)]
mod tests;
