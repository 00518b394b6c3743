//! What an agent changed in its workspace: which files, and the patch that says how.

use std::io;
use std::path::{Path, PathBuf};

use super::patch;
use super::tree::{Entry, Tree};

/// The change between two states of a workspace; paths are relative to it, sorted, `/` between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Files that are new.
    pub created: Vec<String>,
    /// Files whose bytes, mode or target differ.
    pub changed: Vec<String>,
    /// Files that are gone.
    pub deleted: Vec<String>,
}

impl Change {
    /// Every path in it, with `created`, `changed` or `deleted`.
    pub fn all(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let created = self.created.iter().map(|path| (path.as_str(), "created"));
        let changed = self.changed.iter().map(|path| (path.as_str(), "changed"));
        let deleted = self.deleted.iter().map(|path| (path.as_str(), "deleted"));
        created.chain(changed).chain(deleted)
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// Compares two states of a workspace. The patch is in the form that `git apply` takes.
///
/// # Errors
/// A file could not be read.
pub fn compare(before: &Tree, after: &Tree) -> io::Result<(Change, Vec<u8>)> {
    let mut change = Change::default();
    let mut text = Vec::new();
    for (path, how) in differences(before, after)? {
        let name = path.to_string_lossy().into_owned();
        match how {
            How::Created => change.created.push(name),
            How::Changed => change.changed.push(name),
            How::Deleted => change.deleted.push(name),
        }
        patch::write(&mut text, path, side(before, path)?, side(after, path)?);
    }
    Ok((change, text))
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is new.
    Created,
    /// Its bytes, mode or target differ.
    Changed,
    /// It is gone.
    Deleted,
}

impl How {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            How::Created => "created",
            How::Changed => "changed",
            How::Deleted => "deleted",
        }
    }
}

/// The paths in which two states differ, sorted.
///
/// # Errors
/// A file could not be read.
pub fn differences<'a>(before: &'a Tree, after: &'a Tree) -> io::Result<Vec<(&'a Path, How)>> {
    let mut paths: Vec<&PathBuf> = before.entries.keys().chain(after.entries.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut found = Vec::new();
    for path in paths {
        let how = match (before.entries.get(path), after.entries.get(path)) {
            (None, _) => How::Created,
            (Some(_), None) => How::Deleted,
            (Some(old), Some(new)) if old == new && same_bytes(before, after, path)? => continue,
            (Some(_), Some(_)) => How::Changed,
        };
        found.push((path.as_path(), how));
    }
    Ok(found)
}

fn same_bytes(before: &Tree, after: &Tree, path: &Path) -> io::Result<bool> {
    match before.entries.get(path) {
        // Links that are equal as entries point to the same target.
        Some(Entry::File { .. }) => Ok(before.bytes(path)? == after.bytes(path)?),
        _ => Ok(true),
    }
}

fn side(tree: &Tree, path: &Path) -> io::Result<Option<patch::Side>> {
    let Some(entry) = tree.entries.get(path) else { return Ok(None) };
    let mode = match entry {
        Entry::Link(_) => "120000",
        Entry::File { executable: true, .. } => "100755",
        Entry::File { executable: false, .. } => "100644",
    };
    Ok(Some(patch::Side { mode, bytes: tree.bytes(path)? }))
}
