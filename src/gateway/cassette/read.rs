//! Reads a cassette, and reports errors with their line.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::compact::{self, ReferenceError};
use super::{Cassette, Entry, Header, VERSION, bodies};
use crate::gateway::exchange::KEPT_HEADERS;
use crate::regular;

/// The reason why a cassette cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read.
    #[error("the cassette {} cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line is wrong.
    #[error("{}:{line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
}

impl CassetteError {
    /// Returns true if the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Checks that a recording may be written to a path: nothing is there, or a cassette.
///
/// # Errors
/// Returns the reason why it may not.
pub fn may_replace(path: &Path) -> Result<(), String> {
    if path.file_name().is_none() {
        return Err(format!("`{}` names no file for the cassette", path.display()));
    }
    match std::fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(found) if found.is_dir() => return Err(format!("{} is a folder, not a cassette", path.display())),
        Ok(_) => {}
    }
    let text = regular::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let first = text.lines().find(|line| !line.trim().is_empty());
    let is_cassette = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|it| it.get("cassette").is_some());
    match first.is_none_or(is_cassette) {
        true => Ok(()),
        false => Err(format!("{} is not a cassette, so it is not replaced; name another file", path.display())),
    }
}

/// Reads a cassette.
///
/// # Errors
/// Returns an error if the file, or a file that it names, cannot be read, if a line is not valid, or if the format is
/// newer than this program.
pub fn load(path: &Path) -> Result<Cassette, CassetteError> {
    let text = regular::read_to_string(path).map_err(|source| CassetteError::Io { path: path.to_owned(), source })?;
    let folder = bodies(path);
    let read = |name: &str| {
        let plain = !name.is_empty() && name != ".." && !name.contains(['/', '\\']);
        let is_link = std::fs::symlink_metadata(folder.join(name)).is_ok_and(|it| it.is_symlink());
        let read = if is_link {
            Err(io::Error::other("it is a link, which may lead out of the folder"))
        } else if plain {
            regular::read_to_string(folder.join(name))
        } else {
            Err(io::Error::other("it is not a plain file name"))
        };
        read.map_err(|error| ReferenceError::Body { name: name.to_owned(), why: error.to_string() })
    };
    parse(&text, &read).map_err(|(line, why)| CassetteError::Line { path: path.to_owned(), line, why })
}

fn parse(text: &str, read: &dyn Fn(&str) -> Result<String, ReferenceError>) -> Result<Cassette, (usize, String)> {
    let mut lines =
        text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().is_empty());
    let (at, first) =
        lines.next().ok_or((1, "the cassette is empty; its first line should be the header".to_owned()))?;
    let header = header(first).map_err(|why| (at, why))?;
    let mut entries: Vec<Entry> = Vec::new();
    for (at, line) in lines {
        let mut entry: Entry = serde_json::from_str(line).map_err(|error| (at, not_an_entry(line, &error)))?;
        if entry.n != entries.len() as u64 + 1 {
            return Err((at, format!("the entry has number {}, and {} was expected", entry.n, entries.len() + 1)));
        }
        if !(200..600).contains(&entry.status) {
            return Err((at, format!("`status` is {}, and should be from 200 to 599", entry.status)));
        }
        if let Some(name) = entry.headers.keys().find(|name| !KEPT_HEADERS.contains(&name.as_str())) {
            return Err((at, format!("the header `{name}` is not played; known are {}", KEPT_HEADERS.join(", "))));
        }
        let wrong = |error: ReferenceError| (at, error.to_string());
        let before = |n: u64| {
            let index = usize::try_from(n).ok()?.checked_sub(1)?;
            entries.get(index).map(|entry: &Entry| &entry.request)
        };
        let request = compact::whole(&entry.request, &before, read).map_err(wrong)?;
        entry.request = request;
        entry.response = compact::filled(&entry.response, read).map_err(wrong)?;
        entry.ms = header.ms.get(entries.len()).copied().flatten();
        entries.push(entry);
    }
    Ok(Cassette { header, entries })
}

fn header(line: &str) -> Result<Header, String> {
    let value: Value = serde_json::from_str(line)
        .map_err(|error| format!("the line is not JSON: {error}; the first line of a cassette is its header"))?;
    let Some(version) = value.get("cassette") else {
        return Err("the first line is not the header of a cassette, such as {\"cassette\":1}".to_owned());
    };
    match version.as_u64() {
        Some(1..=VERSION) => {}
        Some(later) if later > VERSION => {
            return Err(format!(
                "the cassette has version {later}, and this program reads versions up to {VERSION}; use a newer evals"
            ));
        }
        _ => return Err(format!("`cassette` is {version}, and should be {VERSION}")),
    }
    serde_json::from_value(value).map_err(|error| format!("the header is not valid: {error}"))
}

fn not_an_entry(line: &str, error: &serde_json::Error) -> String {
    let place = format!("column {}", error.column());
    match error.classify() {
        serde_json::error::Category::Eof => format!("the line ends too early, at {place}: the cassette is truncated"),
        serde_json::error::Category::Syntax if serde_json::from_str::<Value>(line).is_err() => {
            format!("the line is not JSON, at {place}: {error}")
        }
        _ => format!("the line is not an entry of a cassette: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"cassette":1,"harness":"h"}"#;
    const ENTRY: &str = r#"{"n":1,"api":"anthropic","method":"POST","path":"/v1/messages","request":{"a":1},"status":200,"response":{"b":2}}"#;

    fn nothing(name: &str) -> Result<String, ReferenceError> {
        Err(ReferenceError::Body { name: name.to_owned(), why: "it does not exist".to_owned() })
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let cut = &ENTRY[..60];
        for (text, line, wanted) in [
            (String::new(), 1, "the cassette is empty"),
            ("hello".to_owned(), 1, "the line is not JSON"),
            (ENTRY.to_owned(), 1, "the first line is not the header"),
            (r#"{"cassette":2}"#.to_owned(), 1, "the cassette has version 2, and this program reads versions up to 1"),
            (format!("{HEADER}\n{cut}"), 2, "the line ends too early, at column 60: the cassette is truncated"),
            (format!("{HEADER}\n{ENTRY}\n{ENTRY}"), 3, "the entry has number 1, and 2 was expected"),
            (format!("{HEADER}\n{{\"n\":1}}"), 2, "the line is not an entry of a cassette: missing field `api`"),
            (
                format!("{HEADER}\n{}", ENTRY.replace(r#"{"a":1}"#, r#"{"a":{"$same":7}}"#)),
                2,
                "`a` refers to entry 7, which is not an earlier entry with that key",
            ),
            (format!("{HEADER}\n{}", ENTRY.replace("200", "99")), 2, "`status` is 99"),
            (
                format!("{HEADER}\n{}", ENTRY.replace(r#"{"b":2}"#, r#"{"$same":1}"#)),
                2,
                "{\"$same\":1} refers to nothing here",
            ),
            (
                format!("{HEADER}\n{}", ENTRY.replace(r#"{"a":1}"#, r#"{"a":{"$same":-1}}"#)),
                2,
                "{\"$same\":-1} refers to nothing here",
            ),
            (
                format!("{HEADER}\n{}", ENTRY.replace("\"status\"", r#""headers":{"content-length":"3"},"status""#)),
                2,
                "the header `content-length` is not played",
            ),
            (
                format!("{HEADER}\n{}", ENTRY.replace(r#"{"a":1}"#, r#"{"a":{"$body":"x.txt"}}"#)),
                2,
                "the file x.txt cannot be read: it does not exist",
            ),
        ] {
            let (at, why) = parse(&text, &nothing).unwrap_err();
            assert!(at == line && why.starts_with(wanted), "{at}: {why}");
        }
        assert_eq!(parse(&format!("{HEADER}\n\n{ENTRY}\n"), &nothing).unwrap().entries.len(), 1);
    }
}
