//! A `SKILL.md` as text: its front matter between two `---` lines, and its body.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::regular;
use crate::yaml::{self, YamlError};

/// The maximum size of a `SKILL.md`, in bytes: an agent loads all of it.
const MAX_BYTES: u64 = 4 << 20;

/// A `SKILL.md` as text.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    text: String,
    has_bom: bool,
}

/// The front matter of a document.
#[derive(Debug, Clone, Copy)]
pub struct Front<'a> {
    document: &'a Document,
    /// The start of the line after the closing `---`.
    body: usize,
    /// The bytes between the two `---` lines.
    inner: (usize, usize),
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is too large, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, YamlError> {
        let failed = |error| YamlError::at(path, "", None, format!("the file could not be read: {error}"));
        let file = regular::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        if size > MAX_BYTES {
            let message = format!("the file has {size} bytes; at most {MAX_BYTES} are allowed");
            return Err(YamlError::at(path, "", None, message).with_help("move large content to separate files"));
        }
        let mut start = Vec::new();
        file.take(regular::BOM.len_utf8() as u64).read_to_end(&mut start).map_err(failed)?;
        let has_bom = start == regular::BOM.to_string().as_bytes();
        Ok(Self { path: path.to_owned(), text: yaml::read(path)?, has_bom })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the file begins with a byte order mark.
    pub fn has_bom(&self) -> bool {
        self.has_bom
    }

    /// Returns the front matter.
    ///
    /// # Errors
    /// Returns an error if the text does not begin with a `---` line, or no second one follows.
    pub fn front(&self) -> Result<Front<'_>, YamlError> {
        let mut lines = lines(&self.text);
        let first = lines.next().unwrap_or(0..0);
        if !self.is_marker(&first) {
            let at = Some(first.start..first.start + self.line(&first).len());
            let message = "the file does not begin with front matter: its first line must be `---`";
            return Err(YamlError::at(&self.path, &self.text, at, message).with_help(
                "begin the file with a line `---`, then `name: …` and `description: …`, then a line `---`",
            ));
        }
        match lines.find(|line| self.is_marker(line)) {
            Some(close) => Ok(Front { document: self, body: close.end, inner: (first.end, close.start) }),
            None => {
                let message = "the front matter is not closed: no second line is `---`";
                Err(YamlError::at(&self.path, &self.text, Some(0..3), message)
                    .with_help("write a line `---` after the last key"))
            }
        }
    }

    /// Returns the bytes of the line that contains a byte, without its end.
    pub fn line_at(&self, byte: usize) -> Range<usize> {
        let found = lines(&self.text).find(|line| byte < line.end);
        let line = found.or_else(|| lines(&self.text).last()).unwrap_or(0..0);
        line.start..line.start + self.line(&line).len()
    }

    fn line(&self, line: &Range<usize>) -> &str {
        self.text.get(line.clone()).unwrap_or_default().trim_end()
    }

    fn is_marker(&self, line: &Range<usize>) -> bool {
        self.line(line) == "---"
    }
}

/// Returns the bytes of each line, with its line end.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.split_inclusive('\n').scan(0, |start, line| {
        let range = *start..*start + line.len();
        *start = range.end;
        Some(range)
    })
}

impl<'a> Front<'a> {
    /// Returns the text up to the closing `---`: a place in it is a place in the file.
    pub fn yaml(&self) -> &'a str {
        self.document.text.get(..self.inner.1).unwrap_or_default()
    }

    /// Returns the bytes between the two `---` lines.
    pub fn inner(&self) -> Range<usize> {
        self.inner.0..self.inner.1
    }

    /// Returns the body, and its first byte in the text.
    pub fn body(&self) -> (usize, &'a str) {
        (self.body, self.document.text.get(self.body..).unwrap_or_default())
    }

    /// Returns the keys with their values.
    ///
    /// # Errors
    /// Returns all errors of the YAML text.
    pub fn keys(&self) -> Result<Map<String, Value>, Vec<YamlError>> {
        let (path, text) = (self.document.path(), self.yaml());
        let inner = text.get(self.inner()).unwrap_or_default();
        let is_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let Some(first) = lines(inner).find(|line| is_content(inner.get(line.clone()).unwrap_or_default())) else {
            let error = YamlError::at(path, text, Some(0..3), "the front matter is empty");
            return Err(vec![error.with_help("write `name: …` and `description: …` between the two `---` lines")]);
        };
        let parsed = yaml::parse_all::<Value>(path, text);
        match parsed.checked(|_| Vec::new())? {
            Value::Object(keys) => Ok(keys),
            _ => {
                let start = self.inner.0 + first.start;
                let shown = inner.get(first).unwrap_or_default().trim_end();
                let error = YamlError::at(
                    path,
                    text,
                    Some(start..start + shown.len()),
                    "the front matter must be a map of keys",
                );
                Err(vec![error.with_help("write `name: …` and `description: …`, each on a line of its own")])
            }
        }
    }
}
