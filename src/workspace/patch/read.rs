//! Reads a patch of this program: the changed files and their changes. Omitted content is marked as such.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use flate2::read::ZlibDecoder;

use super::{BASE85, LEFT_OUT};
use crate::workspace::change::{Change, FileChangeKind, MAX_PATCH_FILE_BYTES};

/// The change of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    pub how: FileChangeKind,
    /// The new mode as git writes it, if the patch contains one.
    pub mode: Option<String>,
    /// The change of the content.
    pub edit: Edit,
}

/// The change of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// No change: the file is empty, or only its mode changes.
    None,
    /// Lines are removed and added.
    Lines(Vec<Hunk>),
    /// The content is replaced: the git name of the old content, and the new content.
    Whole(String, Vec<u8>),
    /// The patch does not hold the new content.
    LeftOut,
}

/// A place where lines change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The number of lines before the hunk, in the old content.
    pub before: usize,
    /// The old lines, including the unchanged lines around the difference.
    pub old: Vec<Vec<u8>>,
    /// The new lines in their place.
    pub new: Vec<Vec<u8>>,
}

/// The reason why a patch cannot be read or applied.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// An invalid line.
    #[error("line {line}: {message}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The error in the line.
        message: String,
    },
    /// A file differs from the file that the patch was made from.
    #[error("`{0}` is not what the patch was made from")]
    Other(String),
    /// The file system returned an error.
    #[error("`{path}`: {source}")]
    Io {
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Reads a patch.
///
/// # Errors
/// Returns an error if the patch was not written by this program, or is damaged.
pub fn read(patch: &[u8]) -> Result<Vec<Piece>, PatchError> {
    let mut lines = Lines { rest: patch, number: 0 };
    let mut pieces = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix(b"diff --git ") {
            pieces.push(lines.piece(rest)?);
        } else if let Some(rest) = line.strip_prefix(LEFT_OUT.as_bytes()) {
            pieces.push(lines.left_out(rest)?);
        } else if !line.is_empty() {
            return Err(lines.wrong("it belongs to no file"));
        }
    }
    Ok(pieces)
}

/// Returns the change that a patch describes.
pub fn change(pieces: &[Piece]) -> Change {
    let mut change = Change::default();
    // A patch deletes and creates a file that becomes a link; the file has changed nevertheless.
    let created: std::collections::HashSet<&Path> =
        pieces.iter().filter(|piece| piece.how == FileChangeKind::Created).map(|piece| &*piece.path).collect();
    let deleted: std::collections::HashSet<&Path> =
        pieces.iter().filter(|piece| piece.how == FileChangeKind::Deleted).map(|piece| &*piece.path).collect();
    for piece in pieces {
        let name = piece.path.to_string_lossy().into_owned();
        match piece.how {
            FileChangeKind::Deleted if created.contains(&*piece.path) => change.changed.push(name),
            FileChangeKind::Created if deleted.contains(&*piece.path) => {}
            FileChangeKind::Created => change.created.push(name),
            FileChangeKind::Deleted => change.deleted.push(name),
            FileChangeKind::Changed | FileChangeKind::Unread => change.changed.push(name),
        }
    }
    change
}

struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    /// Returns the next line, without its end.
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let (line, rest) = match end {
            Some(end) => (self.rest.get(..end)?, self.rest.get(end + 1..)?),
            None => (self.rest, &self.rest[self.rest.len()..]),
        };
        self.rest = rest;
        Some(line)
    }

    fn peek(&self) -> &'a [u8] {
        let mut ahead = Lines { rest: self.rest, number: self.number };
        ahead.next().unwrap_or_default()
    }

    fn wrong(&self, message: impl Into<String>) -> PatchError {
        PatchError::Line { line: self.number, message: message.into() }
    }

    /// Reads the change of a file, from the text after `diff --git `.
    fn piece(&mut self, names: &[u8]) -> Result<Piece, PatchError> {
        let path = self.path(path_of_head(names).ok_or_else(|| self.wrong("it names no file"))?)?;
        let mut piece = Piece { path, how: FileChangeKind::Changed, mode: None, edit: Edit::None };
        loop {
            let line = self.peek();
            let mode = |prefix: &[u8]| line.strip_prefix(prefix).map(|mode| String::from_utf8_lossy(mode).into_owned());
            if let Some(mode) = mode(b"new file mode ") {
                (piece.how, piece.mode) = (FileChangeKind::Created, Some(mode));
            } else if mode(b"deleted file mode ").is_some() {
                piece.how = FileChangeKind::Deleted;
            } else if let Some(mode) = mode(b"new mode ") {
                piece.mode = Some(mode);
            } else if line.starts_with(b"index ") {
                self.next();
                piece.edit = self.whole(line)?;
                break;
            } else if line.starts_with(b"--- ") {
                self.next();
                self.next();
                piece.edit = Edit::Lines(self.hunks()?);
                break;
            } else if !line.starts_with(b"old mode ") {
                break;
            }
            self.next();
        }
        Ok(piece)
    }

    fn path(&self, name: Vec<u8>) -> Result<PathBuf, PatchError> {
        let path = PathBuf::from(OsStr::from_bytes(&name));
        let within = path.components().all(|part| matches!(part, Component::Normal(_)));
        if within && path.components().next().is_some() {
            Ok(path)
        } else {
            Err(self.wrong(format!("`{}` is not a path in the workspace", path.display())))
        }
    }

    fn left_out(&self, rest: &[u8]) -> Result<Piece, PatchError> {
        let none = || self.wrong("it names no file");
        let (name, why) = if rest.starts_with(b"\"") {
            let (name, rest) = unquoted(rest).ok_or_else(none)?;
            (name, rest)
        } else {
            let end = start_of_reason(rest).ok_or_else(none)?;
            let (name, why) = rest.split_at(end);
            (name.to_vec(), why)
        };
        let says = |word: &str| why.starts_with(format!(" ({word}, ").as_bytes());
        let how = match () {
            () if says("created") => FileChangeKind::Created,
            () if says("deleted") => FileChangeKind::Deleted,
            () if says("changed") => FileChangeKind::Changed,
            () => FileChangeKind::Unread,
        };
        Ok(Piece { path: self.path(name)?, how, mode: None, edit: Edit::LeftOut })
    }

    fn hunks(&mut self) -> Result<Vec<Hunk>, PatchError> {
        let mut hunks = Vec::new();
        while self.peek().starts_with(b"@@ ") {
            let head = String::from_utf8_lossy(self.next().unwrap_or_default()).into_owned();
            let (old, new) = head
                .strip_prefix("@@ -")
                .and_then(|rest| rest.strip_suffix(" @@"))
                .and_then(|rest| rest.split_once(" +"))
                .and_then(|(old, new)| Some((span(old)?, span(new)?)))
                .ok_or_else(|| self.wrong("it is not a `@@` line"))?;
            // The number of a hunk without old lines is that of the line before it.
            let before = if old.1 == 0 { old.0 } else { old.0.saturating_sub(1) };
            let mut hunk = Hunk { before, old: Vec::new(), new: Vec::new() };
            while hunk.old.len() < old.1 || hunk.new.len() < new.1 {
                let Some((sign, text)) = self.next().and_then(<[u8]>::split_first) else {
                    return Err(self.wrong("a difference is incomplete"));
                };
                let mut line = text.to_vec();
                if self.peek().starts_with(b"\\ ") {
                    self.next();
                } else {
                    line.push(b'\n');
                }
                match sign {
                    b' ' => {
                        hunk.old.push(line.clone());
                        hunk.new.push(line);
                    }
                    b'-' => hunk.old.push(line),
                    b'+' => hunk.new.push(line),
                    _ => return Err(self.wrong("it is not a line of a difference")),
                }
            }
            hunks.push(hunk);
        }
        Ok(hunks)
    }

    fn whole(&mut self, index: &[u8]) -> Result<Edit, PatchError> {
        let names = String::from_utf8_lossy(index.strip_prefix(b"index ").unwrap_or_default()).into_owned();
        let old = names.split_once("..").map(|(old, _)| old.to_owned());
        let old = old.ok_or_else(|| self.wrong("it is not an `index` line"))?;
        if self.next() != Some(b"GIT binary patch") {
            return Err(self.wrong("a binary change was expected"));
        }
        let new = self.literal()?;
        self.literal()?;
        Ok(Edit::Whole(old, new))
    }

    fn literal(&mut self) -> Result<Vec<u8>, PatchError> {
        let head = String::from_utf8_lossy(self.next().unwrap_or_default()).into_owned();
        let length = head.strip_prefix("literal ").and_then(|length| length.parse::<u64>().ok());
        let length = length
            .filter(|length| *length <= MAX_PATCH_FILE_BYTES)
            .ok_or_else(|| self.wrong("it is not a `literal` line"))?;
        let mut packed = Vec::new();
        while let Some(line) = self.next().filter(|line| !line.is_empty()) {
            unpack_line(line, &mut packed).ok_or_else(|| self.wrong("it is not base 85"))?;
        }
        let mut bytes = Vec::new();
        ZlibDecoder::new(&*packed)
            .take(length + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.wrong(format!("a binary file cannot be unpacked: {error}")))?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(self.wrong("a binary file has another length")) }
    }
}

/// Decodes a line of git's base 85: the number of bytes, then groups of five digits.
fn unpack_line(line: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (count, digits) = line.split_first()?;
    let count = match count {
        b'A'..=b'Z' => usize::from(count - b'A') + 1,
        b'a'..=b'z' => usize::from(count - b'a') + 27,
        _ => return None,
    };
    let start = out.len();
    for group in digits.chunks(5) {
        let mut number: u32 = 0;
        for digit in group {
            let value = BASE85.iter().position(|known| known == digit)?;
            number = number.checked_mul(85)?.checked_add(u32::try_from(value).ok()?)?;
        }
        out.extend_from_slice(&number.to_be_bytes());
    }
    if out.len() < start + count {
        return None;
    }
    out.truncate(start + count);
    Some(())
}

/// Returns the first line of a hunk, and its length.
fn span(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, length)) => Some((start.parse().ok()?, length.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// Returns the path of `a/PATH b/PATH` in the first line of a file in a patch of git, if both paths are the same. They may be
/// quoted.
pub fn path_of_head(names: &[u8]) -> Option<Vec<u8>> {
    if names.starts_with(b"\"") {
        let (name, rest) = unquoted(names)?;
        let (other, rest) = unquoted(rest.strip_prefix(b" ")?)?;
        let name = name.strip_prefix(b"a/")?;
        return (other.strip_prefix(b"b/") == Some(name) && rest.is_empty()).then(|| name.to_vec());
    }
    let length = names.len().checked_sub(5)? / 2;
    let name = names.get(2..2 + length)?;
    let other = names.get(length + 5..)?;
    (names.starts_with(b"a/") && name == other).then(|| name.to_vec())
}

/// Returns the path after `--- ` or `+++ ` of a patch that git wrote, with its `a/` or `b/`. A name with unusual characters is
/// quoted; after a name with a space, git writes a tab.
pub fn file_name(text: &[u8]) -> Option<PathBuf> {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let name = match unquoted(text) {
        Some((name, _)) => name,
        None => text.strip_suffix(b"\t").unwrap_or(text).to_vec(),
    };
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(&name)))
}

/// Returns the place of the ` (` that the last `)` of a line closes. A reason may have parentheses of its own.
fn start_of_reason(line: &[u8]) -> Option<usize> {
    let mut open = 0_usize;
    for (at, byte) in line.iter().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' if open == 1 && line[..at].ends_with(b" ") => return Some(at - 1),
            b'(' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Reads a quoted name. Returns the name and the text after it.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    let mut rest = text.strip_prefix(b"\"")?;
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (kind, after) = rest.split_first()?;
                match kind {
                    b'a' => name.push(0x07),
                    b'b' => name.push(0x08),
                    b'v' => name.push(0x0b),
                    b'f' => name.push(0x0c),
                    b'r' => name.push(b'\r'),
                    b'n' => name.push(b'\n'),
                    b't' => name.push(b'\t'),
                    b'"' | b'\\' => name.push(*kind),
                    _ => {
                        let digits = std::str::from_utf8(rest.get(..3)?).ok()?;
                        name.push(u8::from_str_radix(digits, 8).ok()?);
                        rest = rest.get(3..)?;
                        continue;
                    }
                }
                rest = after;
            }
            byte => name.push(*byte),
        }
    }
}
