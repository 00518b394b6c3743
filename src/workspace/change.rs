//! The agent's changes to its workspace: the changed files, and the patch.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::patch;
use super::same::have_same_bytes;
use super::tree::{Entry, Ignore, Tree};
use crate::judgement::Judgement;
use crate::reason_text;
use crate::result::Warning;
use crate::result::warning::FileChange;
use crate::values::{Below, PathGlob};

/// The words for folders without files that are new or gone, and are not recorded.
pub const FOLDERS: &str = "empty folders";
/// The words for permission bits that are not recorded.
pub const MODES: &str = "permission bits";

/// The change between two states of a workspace. Paths are relative to the workspace, separated by `/`, and sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// New files.
    pub created: Vec<String>,
    /// Files whose bytes, mode or link target differ.
    pub changed: Vec<String>,
    /// Deleted files.
    pub deleted: Vec<String>,
    /// True if the workspace has ignored files: whether they changed is not known.
    pub has_ignored: bool,
    /// Ignored files and folders that are new, gone or changed, and the `.git` of each repository that changed: which of
    /// their files changed is not known. Sockets, devices and pipes that are new or gone, too. Empty if the workspace was
    /// not measured for it.
    pub unmeasured: Vec<String>,
    /// Of these, the sockets, devices and pipes, and what is named `.git` in a folder and is no repository.
    pub special: Vec<String>,
    /// True if more ignored places changed than `unmeasured` has, because a stored result does not name all of them.
    pub has_unnamed: bool,
    /// The changes of empty folders and of permission bits, which are in no list of files.
    pub beside: Vec<BesideChange>,
    /// The kind of change of which more may have happened than `beside` has, because the result does not name all of it.
    pub unnamed_beside: Option<UnnamedBeside>,
    /// Changed files that are protected: before grading, the engine restored or removed them.
    pub restored: Vec<String>,
    /// True if only the patch is known: what else changed is recorded nowhere.
    pub is_patch_alone: bool,
    /// The workspace as the agent found it, if it is there.
    pub found: Option<Found>,
}

/// A change that no list of changed files shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BesideChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// The kind of change.
    pub kind: BesideKind,
}

/// The kind of a [`BesideChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BesideKind {
    /// A folder without files is new.
    FolderCreated,
    /// A folder without files is gone.
    FolderDeleted,
    /// A folder has other permission bits.
    FolderMode,
    /// A file with the same content has other permission bits.
    FileMode,
}

impl BesideKind {
    /// Returns the change as a message states it after a path and `was`.
    pub fn words(self) -> &'static str {
        match self {
            BesideKind::FolderCreated => "created as an empty folder",
            BesideKind::FolderDeleted => "deleted as an empty folder",
            BesideKind::FolderMode | BesideKind::FileMode => "given other permission bits",
        }
    }

    /// Returns true if a folder changed.
    pub fn is_of_folder(self) -> bool {
        match self {
            BesideKind::FolderCreated | BesideKind::FolderDeleted | BesideKind::FolderMode => true,
            BesideKind::FileMode => false,
        }
    }
}

/// A workspace as the agent found it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The folder.
    pub root: PathBuf,
    /// The rules by which its files are ignored. Absent if they are not needed.
    pub ignore: Option<Arc<Ignore>>,
}

impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Found {}

impl Found {
    /// Returns false if no change of a path can be one of an ignored file: no rule covers the path, or it was a file that git
    /// tracks.
    fn may_be_ignored(&self, path: &str) -> bool {
        let Some(ignore) = &self.ignore else { return true };
        let path = Path::new(path);
        if path.has_root() {
            return false;
        }
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        !path.components().all(is_name) || ignore.may_cover(path)
    }
}

/// The reason why a patch alone does not show that nothing else changed.
pub const PATCH_ALONE: &str = "no result of the trial records what changed besides the patch: ignored files, repositories, \
                               pipes and the like";

/// The words for an ignored place that changed, if a stored result does not name it.
const UNNAMED: &str = "an ignored file or folder that `result.json` does not name";

/// Returns a place that changed without being measured, as [`Change::may_hide`] returns it, for a message.
pub fn shown_place(place: &str) -> String {
    if place == UNNAMED { place.to_owned() } else { format!("`{place}`") }
}

/// The kinds of change beside the lists of files that a stored result may not name completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnnamedBeside {
    Folders,
    /// Permission bits, possibly also folders.
    Modes,
}

impl UnnamedBeside {
    /// Returns the message that more changes of this kind may have happened than the result names.
    pub fn message(self) -> String {
        let words = match self {
            UnnamedBeside::Folders => FOLDERS,
            UnnamedBeside::Modes => MODES,
        };
        format!("{words} changed, and `result.json` does not name all of them")
    }
}

impl Change {
    /// Returns every changed path, with `created`, `changed` or `deleted`.
    pub fn all(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.files().map(|(path, change)| (path, change.word()))
    }

    /// Returns every changed path, with the kind of change.
    pub fn files(&self) -> impl Iterator<Item = (&str, FileChange)> {
        let created = self.created.iter().map(|path| (path.as_str(), FileChange::Created));
        let changed = self.changed.iter().map(|path| (path.as_str(), FileChange::Changed));
        let deleted = self.deleted.iter().map(|path| (path.as_str(), FileChange::Deleted));
        created.chain(changed).chain(deleted)
    }

    /// Returns the files that have the same content and other permission bits, with the words for this.
    pub fn other_modes(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.beside.iter().filter(|it| !it.kind.is_of_folder()).map(|it| (it.path.as_str(), it.kind.words()))
    }

    /// Returns the message that files may have other permission bits without being named.
    pub fn unnamed_modes(&self) -> Option<String> {
        self.unnamed_beside.filter(|it| *it == UnnamedBeside::Modes).map(UnnamedBeside::message)
    }

    /// Returns the ignored file or folder, or the repository, in which a path may have changed without being measured.
    pub fn may_hide(&self, path: &str) -> Option<&str> {
        let is_in = |folder: &&String| {
            path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.unmeasured.iter().find(is_in).map(String::as_str).or_else(|| {
            let is_measured = || self.files().any(|(changed, _)| changed == path);
            let may_be = |found: &Found| found.may_be_ignored(path);
            self.unnamed().filter(|_| self.found.as_ref().is_none_or(may_be) && !is_measured())
        })
    }

    /// Returns whether the agent made or changed a link of the workspace, by its path without links on its way.
    pub fn made_link(&self, workspace: &Path, path: &str) -> Judgement {
        if self.files().any(|(changed, _)| changed == path) {
            let is_restored = self.restored.iter().any(|restored| restored == path);
            return if is_restored { Judgement::False } else { Judgement::True };
        }
        let hidden = self.may_hide(path);
        if hidden.is_none() && !self.is_patch_alone {
            return Judgement::False;
        }
        match self.found.as_ref().filter(|found| found.root.is_dir()) {
            Some(found) => {
                let target = |root: &Path| fs::read_link(root.join(path)).ok();
                if target(&found.root) == target(workspace) { Judgement::False } else { Judgement::True }
            }
            None if hidden == Some(path) => Judgement::True,
            None => Judgement::Unknown,
        }
    }

    /// Returns the words for an ignored place that changed and that a stored result does not name, if there is one.
    pub fn unnamed(&self) -> Option<&'static str> {
        self.has_unnamed.then_some(UNNAMED)
    }

    /// Returns a place that changed without being measured, if a glob matches it: an ignored file or folder, a
    /// repository, a socket, a pipe or a device. A glob of wildcards alone matches no ignored file or folder here.
    pub fn may_hide_any(&self, glob: &PathGlob) -> Option<&str> {
        let text = glob.to_string();
        let names_a_part = text.contains(|c| !matches!(c, '*' | '/'));
        let may = |path: &&String| match path.rsplit('/').next() {
            Some(".git") => text.contains(".git"),
            _ => glob.is_match(path) || (text.starts_with(path.as_str()) && glob.lies_below(path) == Below::All),
        };
        let unnamed = || self.unnamed().filter(|_| self.may_match_ignored(glob));
        let by_name = self.unmeasured.iter().find(may).map(String::as_str).or_else(unnamed);
        let in_plain_sight = self.in_plain_sight().find(|path| glob.is_match(path)).map(String::as_str);
        in_plain_sight.or(by_name.filter(|_| names_a_part))
    }

    /// Returns false if no ignored file can match a glob, because the glob leads to or through a file that is not ignored and that
    /// did not change.
    fn may_match_ignored(&self, glob: &PathGlob) -> bool {
        let Some(found) = self.found.as_ref().filter(|_| glob.is_relative()) else { return true };
        let text = glob.to_string();
        let mut base = PathBuf::new();
        for part in text.split('/').take_while(|part| !part.contains(['*', '?', '[', ']', '{', '}', '\\'])) {
            base.push(part);
            if found.root.join(&base).symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
                let base = base.to_string_lossy();
                return found.may_be_ignored(&base) || self.files().any(|(changed, _)| changed == base);
            }
        }
        true
    }

    /// Returns the places that changed without being measured and that no rule ignores: sockets, devices and pipes, and the
    /// repositories of folders.
    pub fn in_plain_sight(&self) -> impl Iterator<Item = &String> {
        let is_repository = move |path: &&String| path.ends_with("/.git") && !self.special.contains(path);
        self.special.iter().chain(self.unmeasured.iter().filter(is_repository))
    }

    /// Returns true if files that no rule ignores may have changed without being listed. A repository hides no file of its work
    /// tree.
    pub fn may_lack_files(&self) -> bool {
        self.is_patch_alone || !self.special.is_empty()
    }

    /// Returns a place that changed without being measured and that none of the globs allows: a socket, a device or a pipe, or
    /// the repository of a folder. Ignored files and the workspace's own repository may always change.
    pub fn may_break(&self, allowed: &[PathGlob]) -> Option<&str> {
        self.in_plain_sight().find(|path| !allowed.iter().any(|glob| glob.is_match(path))).map(String::as_str)
    }

    /// Returns true if a file that none of the globs allows may have changed, because only the patch is known.
    pub fn may_break_beside_patch(&self, allowed: &[PathGlob]) -> bool {
        self.is_patch_alone && !allowed.iter().any(PathGlob::is_any)
    }

    /// Returns the places that changed without being in a list of files, for the end of a message; empty if there are none.
    pub fn not_measured(&self) -> String {
        let places = match self.unmeasured.as_slice() {
            [] => String::new(),
            places => format!("; not measured, but changed: {}", reason_text::first_few(places, 3)),
        };
        let folders = self.beside.iter().filter(|it| it.kind.is_of_folder());
        let folders: Vec<String> = folders.map(|it| format!("`{}` was {}", it.path, it.kind.words())).collect();
        match folders.as_slice() {
            [] => places,
            folders => format!("{places}; not a file, but changed: {}", reason_text::first_few(folders, 3)),
        }
    }

    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// The size of the largest file whose content is written into a patch, in bytes.
pub const MAX_PATCH_FILE_BYTES: u64 = 16 << 20;
/// The maximum size of a patch, in bytes. The patch names the files that exceed it, without their content.
const WHOLE: u64 = 64 << 20;
/// The maximum time of the search for the smallest differences, in all files together.
const TIME: Duration = Duration::from_secs(10);

/// The result of comparing two states of a workspace.
#[derive(Debug, Default)]
pub struct Compared {
    /// The changed files.
    pub change: Change,
    /// The changes as a patch for `git apply`. Each omission has a separate line, which git ignores.
    pub patch: Vec<u8>,
    /// The number of files whose content is left out of the patch, and the number of their bytes.
    pub left_out: (usize, u64),
    /// Files and folders that could not be read, each with the reason.
    pub unread: Vec<String>,
    /// True if a secret in a file was hidden.
    pub hidden: bool,
}

/// A function that hides secrets in the content of a file. It returns `None` if there is nothing to hide.
pub type Hide<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// Compares two states of a workspace. Secrets are hidden in the files before they are compared.
///
/// # Errors
/// Returns an error if a file of the earlier state cannot be read.
pub fn compare(before: &Tree, after: &Tree, hide: Hide<'_>) -> io::Result<Compared> {
    let mut compared = Compared::default();
    compared.change.has_ignored = before.has_ignored || after.has_ignored;
    let differs = |path: &&PathBuf| before.ignored.get(*path) != after.ignored.get(*path);
    let ignored: BTreeSet<&PathBuf> = before.ignored.keys().chain(after.ignored.keys()).filter(differs).collect();
    compared.change.unmeasured = ignored.into_iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let deadline = Instant::now() + TIME;
    for (path, how) in differences(before, after)? {
        let name = path.to_string_lossy().into_owned();
        match how {
            FileChangeKind::Created => compared.change.created.push(name),
            FileChangeKind::Changed | FileChangeKind::Unread => compared.change.changed.push(name),
            FileChangeKind::Deleted => compared.change.deleted.push(name),
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
        how: FileChangeKind,
        (hide, deadline): (Hide<'_>, Instant),
    ) -> io::Result<()> {
        if how == FileChangeKind::Unread {
            let reason = after.unread.get(path).map_or("it could not be read".to_owned(), ToString::to_string);
            self.not_read(path, &reason);
            return Ok(());
        }
        let sizes = [before, after].map(|tree| tree.entries.get(path).map(Entry::len));
        let bytes: u64 = sizes.iter().flatten().sum();
        let room = self.patch.len() as u64;
        if sizes.iter().flatten().any(|size| *size > MAX_PATCH_FILE_BYTES) || room + bytes > WHOLE {
            self.left_out.0 += 1;
            self.left_out.1 += bytes;
            // A stored patch is the only record of the changed files, so it names each of them.
            patch::left_out(&mut self.patch, path, &said(sizes));
            return Ok(());
        }
        let mut old = side(before, path)?;
        let mut new = match side(after, path) {
            Ok(new) => new,
            Err(error) => {
                self.not_read(path, &error.to_string());
                return Ok(());
            }
        };
        // Secrets are hidden first: a patch compresses binary files and puts a sign before each line of a text.
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

    fn not_read(&mut self, path: &Path, reason: &str) {
        self.unread.push(format!("{}: {reason}", path.display()));
        patch::left_out(&mut self.patch, path, reason);
    }

    /// Returns warnings about the content that is missing from the patch.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut told = Vec::new();
        if self.left_out.0 > 0 {
            let (files, bytes) = self.left_out;
            told.push(Warning::PatchLeftOut { files: files as u64, bytes, largest: MAX_PATCH_FILE_BYTES, most: WHOLE });
        }
        if let Some(first) = self.unread.first() {
            told.push(Warning::Unread { count: self.unread.len() as u64, first: first.clone() });
        }
        told
    }
}

/// Describes the size of a file in both states.
fn said(sizes: [Option<u64>; 2]) -> String {
    match sizes {
        [None, Some(new)] => format!("created, {new} bytes"),
        [Some(old), None] => format!("deleted, {old} bytes"),
        [Some(old), Some(new)] => format!("changed, {old} bytes before and {new} now"),
        [None, None] => "not known".to_owned(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// The file is new.
    Created,
    /// The file's bytes, mode or link target differ.
    Changed,
    Deleted,
    /// The file's new state could not be read.
    Unread,
}

impl FileChangeKind {
    /// Returns the change as a warning reports it.
    pub fn as_change(self) -> FileChange {
        match self {
            FileChangeKind::Created => FileChange::Created,
            FileChangeKind::Changed | FileChangeKind::Unread => FileChange::Changed,
            FileChangeKind::Deleted => FileChange::Deleted,
        }
    }
}

/// Returns the paths in which two states differ, sorted.
///
/// # Errors
/// Returns an error if a file of the earlier state cannot be read.
pub fn differences<'a>(before: &'a Tree, after: &'a Tree) -> io::Result<Vec<(&'a Path, FileChangeKind)>> {
    let mut paths: Vec<&PathBuf> = before.entries.keys().chain(after.entries.keys()).collect();
    paths.extend(after.unread.keys());
    paths.sort();
    paths.dedup();
    let mut found = Vec::new();
    let mut pieces = (Vec::new(), Vec::new());
    for path in paths {
        let how = match (before.entries.get(path), after.entries.get(path)) {
            _ if after.unread.contains_key(path) => FileChangeKind::Unread,
            // The content of an unreadable folder is unknown; only the folder itself is reported.
            _ if after.is_unknown(path) => continue,
            (None, _) => FileChangeKind::Created,
            (Some(_), None) => FileChangeKind::Deleted,
            (Some(old), Some(new)) if old != new => FileChangeKind::Changed,
            (Some(Entry::Link(_)), Some(_)) => continue,
            (Some(old), Some(_)) => match after.open(path) {
                Ok(new) if have_same_bytes(&before.open(path)?, &new, old.len(), &mut pieces)? => continue,
                Ok(_) => FileChangeKind::Changed,
                Err(_) => FileChangeKind::Unread,
            },
        };
        found.push((path.as_path(), how));
    }
    Ok(found)
}

fn side(tree: &Tree, path: &Path) -> io::Result<Option<patch::FileState>> {
    let Some(entry) = tree.entries.get(path) else { return Ok(None) };
    let mode = match entry {
        Entry::Link(_) => "120000",
        Entry::File { executable: true, .. } => "100755",
        Entry::File { executable: false, .. } => "100644",
    };
    Ok(Some(patch::FileState { mode, bytes: tree.bytes(path, MAX_PATCH_FILE_BYTES)? }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::tree::Ignore;

    #[test]
    fn a_file_beyond_the_largest_patch_is_named() {
        let [before, after] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::write(after.path().join("x"), "1").unwrap();
        let tree = |root: &Path| Tree::read(root, &Ignore::of(root, &[]).unwrap()).unwrap();
        let mut compared = Compared { patch: vec![b'\n'; (WHOLE + 1) as usize], ..Compared::default() };
        let hide: Hide<'_> = &|_| None;
        let (old, new) = (tree(before.path()), tree(after.path()));
        let kind = FileChangeKind::Created;
        compared.describe(&old, &new, Path::new("x"), kind, (hide, Instant::now())).unwrap();
        assert!(compared.patch.ends_with(b"\n# left out: x (created, 1 bytes)\n"));
        assert_eq!(compared.left_out, (1, 1));
    }
}
