//! The reason why a part of a source was not taken over.

use std::path::Path;

use super::Note;
use crate::yaml::YamlError;

/// The key or column without an equivalent, and the reason: without it, the case would be another one.
pub type Refused<Key = String> = (Key, String);

/// Returns the refusal of a key.
pub fn refused(key: &str, why: impl Into<String>) -> Refused {
    (key.to_owned(), why.into())
}

/// Returns a note that an error kept a file from becoming a case.
pub fn unread(file: &Path, error: &YamlError) -> Note {
    let line = error.place().map(|(line, _)| line);
    Note::new(file, "", format!("no case was written: {}", error.message())).on(line)
}
