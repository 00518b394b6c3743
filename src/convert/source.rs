//! Finds the files of other tools in folders, and reads them: YAML, JSON and JSON Lines.

use std::fs::{self, FileType};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::refused::unread;
use super::{Note, whole};
use crate::paths;
use crate::yaml::{self, YamlError};

/// The maximum depth of folders that are searched.
const DEPTH: usize = 8;

/// The decision about an entry of a folder in a search.
pub enum Visit {
    /// The entry is one of those that are searched for.
    Take,
    /// The entry is searched if it is a folder.
    Search,
    /// The entry is neither taken nor searched.
    LeaveOut,
}

/// Returns the files and folders below a folder that `visit` takes, sorted within each folder. Links are left out. Notes say
/// which folders could not be searched.
pub fn entries_below(
    folder: &Path,
    visit: &dyn Fn(&Path, FileType) -> io::Result<Visit>,
    notes: &mut Vec<Note>,
) -> Vec<PathBuf> {
    let mut search = Search { visit, notes, found: Vec::new(), has_deeper: false };
    search.folder(folder, 0);
    let Search { found, has_deeper, .. } = search;
    if has_deeper {
        notes.push(Note::new(folder, "", format!("folders deeper than {DEPTH} levels are not searched")));
    }
    found
}

struct Search<'a> {
    visit: &'a dyn Fn(&Path, FileType) -> io::Result<Visit>,
    notes: &'a mut Vec<Note>,
    found: Vec<PathBuf>,
    /// True if a folder beyond the maximum depth was not searched.
    has_deeper: bool,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) {
        let entries = match entries_in(folder) {
            Ok(entries) => entries,
            Err(error) => return self.notes.push(Note::new(folder, "", error.message())),
        };
        for (path, kind) in entries.into_iter().filter(|(_, kind)| !kind.is_symlink()) {
            match (self.visit)(&path, kind) {
                Ok(Visit::Take) => self.found.push(path),
                Ok(Visit::Search) if kind.is_dir() && depth < DEPTH => self.folder(&path, depth + 1),
                Ok(Visit::Search) => self.has_deeper |= kind.is_dir(),
                Ok(Visit::LeaveOut) => {}
                Err(error) => self.notes.push(Note::new(&path, "", format!("the folder could not be read: {error}"))),
            }
        }
    }
}

/// Returns the entries of a folder, by name.
///
/// # Errors
/// Returns an error if the folder cannot be read: the names in it are unknown.
pub fn entries_in(folder: &Path) -> Result<Vec<(PathBuf, FileType)>, YamlError> {
    let unread = |error: io::Error| whole(folder, format!("the folder could not be read: {error}"));
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        entries.push((entry.path(), entry.file_type().map_err(unread)?));
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}

/// Returns true if a folder has a regular file of this name.
///
/// # Errors
/// Returns an error if this is unknown, because the folder cannot be read.
pub fn has_file(folder: &Path, name: &str) -> io::Result<bool> {
    match fs::metadata(folder.join(name)) {
        Ok(found) => Ok(found.is_file()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the error that nothing was found, after errors about the folders that were not searched.
pub fn nothing_found(unsearched: &[Note], error: YamlError) -> Vec<YamlError> {
    unsearched.iter().map(|note| whole(&note.file, note.message.as_str())).chain([error]).collect()
}

/// Returns the value of a YAML or JSON file.
///
/// # Errors
/// Returns an error with its line if the file cannot be read, or is neither.
pub fn value(path: &Path) -> Result<Value, Vec<YamlError>> {
    let text = yaml::read(path).map_err(|error| vec![error])?;
    if text.trim().is_empty() {
        return Err(vec![whole(path, "the file is empty")]);
    }
    if path.extension().is_some_and(|extension| extension == "json") {
        return json(path, &text).map_err(|error| vec![error]);
    }
    yaml::parse_all::<Value>(path, &text).checked(|_| Vec::new())
}

/// Returns the map of a file if it is one of the format: `is_it` is true for its keys. For another file, and for one
/// that cannot be read, the result is `None`, with the notes on what cannot be read.
///
/// # Errors
/// Returns these errors, and `other` for a file of another format, if the file `is_alone`: the user named it.
pub fn of_format(
    path: &Path,
    is_alone: bool,
    is_it: impl Fn(&Map<String, Value>) -> bool,
    other: &str,
    notes: &mut Vec<Note>,
) -> Result<Option<Map<String, Value>>, Vec<YamlError>> {
    match value(path) {
        Ok(Value::Object(keys)) if is_it(&keys) => Ok(Some(keys)),
        Ok(_) if is_alone => Err(vec![whole(path, other)]),
        Ok(_) => Ok(None),
        Err(errors) if is_alone => Err(errors),
        Err(errors) => {
            notes.extend(errors.iter().map(|error| unread(path, error)));
            Ok(None)
        }
    }
}

/// Returns the value of a JSON text.
///
/// # Errors
/// Returns an error with its line if the text is not JSON.
pub fn json(path: &Path, text: &str) -> Result<Value, YamlError> {
    serde_json::from_str(text).map_err(|error| {
        let before = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let at = text.floor_char_boundary((before + error.column().saturating_sub(1)).min(text.len()));
        YamlError::at(path, text, Some(at..at), format!("this is not JSON: {error}"))
    })
}

/// Returns the values of a file with one JSON value in each line, each with its line from 1. Empty lines are left out.
///
/// # Errors
/// Returns an error with its line if a line is not JSON.
pub fn json_lines(path: &Path, text: &str) -> Result<Vec<(usize, Value)>, YamlError> {
    let mut values = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if !line.trim().is_empty() {
            let value = serde_json::from_str(line).map_err(|error| {
                YamlError::at(path, text, Some(start..start), format!("this line is not JSON: {error}"))
            })?;
            values.push((number + 1, value));
        }
        start += line.len();
    }
    Ok(values)
}

/// Returns the path of a file that a configuration names, relative to its folder, and must not leave it by links.
///
/// # Errors
/// Returns the reason if the path is absolute, leaves the folder, or is no file.
pub fn named(folder: &Path, path: &str) -> Result<PathBuf, String> {
    let clean = path.trim_start_matches("./");
    paths::inside(Path::new(clean)).map_err(|why| format!("the path `{path}` {why}"))?;
    let file = folder.join(clean);
    if !file.is_file() {
        return Err(format!("the file `{path}` does not exist"));
    }
    let is_below =
        file.canonicalize().ok().zip(folder.canonicalize().ok()).is_some_and(|(file, folder)| file.starts_with(folder));
    if !is_below {
        return Err(format!("the path `{path}` leads out of the folder by a link"));
    }
    Ok(file)
}

/// Returns the folder of a file: `.` if the path has no folder.
pub fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
