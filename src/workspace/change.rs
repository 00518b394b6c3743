//! The agent's change of its workspace: the files, and the patch.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::patch;
use super::tree::{Entry, Tree};
use crate::result::Warning;
use crate::result::warning::FileChange;

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
        self.files().map(|(path, change)| (path, change.word()))
    }

    /// Every path in it, with what happened to the file.
    pub fn files(&self) -> impl Iterator<Item = (&str, FileChange)> {
        let created = self.created.iter().map(|path| (path.as_str(), FileChange::Created));
        let changed = self.changed.iter().map(|path| (path.as_str(), FileChange::Changed));
        let deleted = self.deleted.iter().map(|path| (path.as_str(), FileChange::Deleted));
        created.chain(changed).chain(deleted)
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// The largest file whose content stands in a patch.
pub const LARGEST: u64 = 16 << 20;
/// How large a patch becomes. What comes after that is named in it and no more.
const WHOLE: u64 = 64 << 20;
/// How long the smallest differences are looked for, in all files together.
const TIME: Duration = Duration::from_secs(10);

/// Two states of a workspace, compared.
#[derive(Debug, Default)]
pub struct Compared {
    /// What changed.
    pub change: Change,
    /// How, in the form that `git apply` takes. What is left out has a line that says so, which git passes over.
    pub patch: Vec<u8>,
    /// Files whose content is left out of the patch, and how many bytes that is.
    pub left_out: (usize, u64),
    /// Files and folders that could not be read, each with the reason.
    pub unread: Vec<String>,
    /// Whether something in a file was hidden.
    pub hidden: bool,
}

/// Hides what must not stand in a patch; nothing where there is nothing to hide.
pub type Hide<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// Compares two states of a workspace. What must not be in a patch is hidden in the files before they are compared.
///
/// # Errors
/// A file of the state before could not be read.
pub fn compare(before: &Tree, after: &Tree, hide: Hide<'_>) -> io::Result<Compared> {
    let mut compared = Compared::default();
    let deadline = Instant::now() + TIME;
    for (path, how) in differences(before, after)? {
        let name = path.to_string_lossy().into_owned();
        match how {
            How::Created => compared.change.created.push(name),
            How::Changed | How::Unread => compared.change.changed.push(name),
            How::Deleted => compared.change.deleted.push(name),
        }
        compared.describe(before, after, path, how, (hide, deadline))?;
    }
    Ok(compared)
}

impl Compared {
    fn describe(
        &mut self,
        before: &Tree,
        after: &Tree,
        path: &Path,
        how: How,
        (hide, deadline): (Hide<'_>, Instant),
    ) -> io::Result<()> {
        let room = self.patch.len() as u64;
        if how == How::Unread {
            let reason = after.unread.get(path).map_or("it could not be read".to_owned(), ToString::to_string);
            return self.not_read(path, &reason, room);
        }
        let sizes = [before, after].map(|tree| tree.entries.get(path).map(Entry::len));
        let bytes: u64 = sizes.iter().flatten().sum();
        if sizes.iter().flatten().any(|size| *size > LARGEST) || room + bytes > WHOLE {
            self.left_out.0 += 1;
            self.left_out.1 += bytes;
            if room <= WHOLE {
                patch::left_out(&mut self.patch, path, &said(sizes));
            }
            return Ok(());
        }
        let mut old = side(before, path)?;
        let mut new = match side(after, path) {
            Ok(new) => new,
            Err(error) => return self.not_read(path, &error.to_string(), room),
        };
        // A patch packs binary files and puts a mark before each line of a text.
        let mut hidden = false;
        for side in [&mut old, &mut new].into_iter().flatten() {
            if let Some(masked) = hide(&side.bytes) {
                side.bytes = masked;
                hidden = true;
            }
        }
        self.hidden |= hidden;
        if hidden && old == new {
            patch::left_out(&mut self.patch, path, "only secrets in it differ");
            return Ok(());
        }
        patch::write(&mut self.patch, path, old, new, deadline);
        Ok(())
    }

    fn not_read(&mut self, path: &Path, reason: &str, room: u64) -> io::Result<()> {
        self.unread.push(format!("{}: {reason}", path.display()));
        if room <= WHOLE {
            patch::left_out(&mut self.patch, path, reason);
        }
        Ok(())
    }

    /// What is not in the patch, for people.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut told = Vec::new();
        if self.left_out.0 > 0 {
            let (files, bytes) = self.left_out;
            told.push(Warning::PatchLeftOut { files: files as u64, bytes, largest: LARGEST, most: WHOLE });
        }
        if let Some(first) = self.unread.first() {
            told.push(Warning::Unread { count: self.unread.len() as u64, first: first.clone() });
        }
        told
    }
}

/// How large a file is on either side.
fn said(sizes: [Option<u64>; 2]) -> String {
    match sizes {
        [None, Some(new)] => format!("created, {new} bytes"),
        [Some(old), None] => format!("deleted, {old} bytes"),
        [Some(old), Some(new)] => format!("changed, {old} bytes before and {new} now"),
        [None, None] => "not known".to_owned(),
    }
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
    /// What it is now could not be read.
    Unread,
}

impl How {
    /// What the agent did to the file, as a warning reports it.
    pub fn as_change(self) -> FileChange {
        match self {
            How::Created => FileChange::Created,
            How::Changed | How::Unread => FileChange::Changed,
            How::Deleted => FileChange::Deleted,
        }
    }
}

/// The paths in which two states differ, sorted.
///
/// # Errors
/// A file of the state before could not be read.
pub fn differences<'a>(before: &'a Tree, after: &'a Tree) -> io::Result<Vec<(&'a Path, How)>> {
    let mut paths: Vec<&PathBuf> = before.entries.keys().chain(after.entries.keys()).collect();
    paths.extend(after.unread.keys());
    paths.sort();
    paths.dedup();
    let mut found = Vec::new();
    for path in paths {
        let how = match (before.entries.get(path), after.entries.get(path)) {
            _ if after.unread.contains_key(path) => How::Unread,
            // What lies in a folder that cannot be read is not known; the folder stands for it.
            _ if after.is_unknown(path) => continue,
            (None, _) => How::Created,
            (Some(_), None) => How::Deleted,
            (Some(old), Some(new)) if old != new => How::Changed,
            (Some(Entry::Link(_)), Some(_)) => continue,
            (Some(_), Some(_)) => match after.open(path) {
                Ok(new) if same(&before.open(path)?, &new)? => continue,
                Ok(_) => How::Changed,
                Err(_) => How::Unread,
            },
        };
        found.push((path.as_path(), how));
    }
    Ok(found)
}

/// Whether two files hold the same, piece by piece.
fn same(old: &File, new: &File) -> io::Result<bool> {
    let (mut a, mut b) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let (read, other) = (fill(old, &mut a)?, fill(new, &mut b)?);
        if a[..read] != b[..other] {
            return Ok(false);
        }
        if read < PIECE {
            return Ok(true);
        }
    }
}

const PIECE: usize = 64 << 10;

/// Reads until a piece is full or the file is at its end.
fn fill(mut file: &File, piece: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match file.read(&mut piece[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn side(tree: &Tree, path: &Path) -> io::Result<Option<patch::Side>> {
    let Some(entry) = tree.entries.get(path) else { return Ok(None) };
    let mode = match entry {
        Entry::Link(_) => "120000",
        Entry::File { executable: true, .. } => "100755",
        Entry::File { executable: false, .. } => "100644",
    };
    Ok(Some(patch::Side { mode, bytes: tree.bytes(path, LARGEST)? }))
}
