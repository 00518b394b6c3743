//! What an agent changed in its workspace that a patch cannot hold: empty folders, special files, permission bits, hard
//! links, ignored files, and the repository. Folders and permission bits are recorded; a rebuilt workspace lacks the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::ops::Bound;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::beside_patch::{self, Name, without_files};
use super::change::{BesideChange, BesideKind, Change, FOLDERS, MODES, UnnamedBeside};
use super::same::have_same_content;
use super::stamp::{Stamp, Stamper};
use super::tree::Tree;
use super::walk::{Descend, walk};
use crate::regular;
use crate::result::BesidePatch;

/// The parts of a folder that a patch cannot hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BeyondPatch {
    /// Every folder.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Sockets, devices and pipes.
    pub(crate) special: BTreeSet<PathBuf>,
    /// The permission bits of files and folders that have unusual ones.
    pub(super) modes: BTreeMap<PathBuf, u32>,
    /// The `.git` of each repository.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Files with more than one name in the folder.
    pub(super) linked: BTreeSet<PathBuf>,
    /// The ignored files and folders, without what lies in these folders.
    pub(super) ignored: BTreeSet<PathBuf>,
}

/// The words for a repository that changed.
const REPOSITORY: &str = "the repository in `.git`";
/// The words for ignored files that were there before the agent's work, and that the agent changed or deleted.
pub const IGNORED: &str = "ignored files";
/// The words for sockets, devices and pipes that are new or gone.
pub const SPECIAL: &str = "sockets, devices or pipes";
/// The words for files with several names.
pub const LINKED: &str = "hard links";
/// The words for files outside of the workspace that setup left beside it, and that the agent changed.
pub const BESIDE: &str = "what `setup` left beside the workspace";

/// Returns true if the words for a change do not say in which places files changed.
pub fn is_of_unknown_places(words: &str) -> bool {
    [REPOSITORY, IGNORED, SPECIAL].contains(&words)
}

/// The permission bits that files usually have.
pub(super) const USUAL_MODES: [u32; 4] = [0o644, 0o755, 0o664, 0o775];

/// Files of a repository that commands rewrite without changing what it holds.
pub(super) const RESTLESS: [&str; 6] = ["index", "FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "gc.log", "logs"];
/// The maximum size in bytes of a file of a repository whose content is kept in memory while it is compared.
const SMALL: u64 = 64 << 10;

/// The changes of the agent that the patch does not hold.
#[derive(Debug, Default)]
pub struct Changed {
    /// The kinds of changes that are not recorded, in words.
    pub unrecorded: Vec<&'static str>,
    /// The record for rebuilding the workspace.
    pub recorded: BesidePatch,
    /// The ignored files and folders that were there before, and that the agent changed or deleted.
    pub ignored: Vec<PathBuf>,
    /// The sockets, devices and pipes that are new or gone, and the `.git` of folders that changed and are no repositories.
    pub special: Vec<PathBuf>,
    /// The `.git` of each repository that is new, gone or changed.
    pub repositories: Vec<PathBuf>,
}

/// Returns what the agent changed that the patch does not hold. `stamps` are those that the files of the workspace had before,
/// if the old tree is a copy of it; a file with the same stamp is not read. `name` returns the text that a path is recorded by.
pub fn changed(old: &Tree, new: &Tree, stamps: Option<&BTreeMap<PathBuf, Stamp>>, name: Name<'_>) -> Changed {
    let mut contents = Contents { old: &old.root, new: &new.root, stamps, stamper: Stamper::default() };
    let mut found = Vec::new();
    let mut recorded = BesidePatch::default();
    match beside_patch::folders(old, new, name) {
        Some((made, deleted)) => (recorded.folders, recorded.deleted_folders) = (made, deleted),
        None if without_files(old) != without_files(new) => found.push(FOLDERS),
        None => {}
    }
    let (before, after) = (&old.beyond, &new.beyond);
    if before.special != after.special {
        found.push(SPECIAL);
    }
    match beside_patch::modes(old, new, name) {
        Some(modes) => recorded.modes = modes,
        None => {
            let is_there = |path: &PathBuf| new.entries.contains_key(path) || after.folders.contains(path);
            let had = before.modes.iter().filter(|(path, _)| is_there(path));
            found.extend((!after.modes.iter().eq(had)).then_some(MODES));
        }
    }
    // Only a copy of the workspace has the permission bits of its folders: in a fixture they may be others.
    let changed_modes = beside_patch::changed_modes(old, new, stamps.is_some(), name);
    let is_needed = |changed: &Vec<String>| !changed.is_empty() || !recorded.modes.is_empty() || found.contains(&MODES);
    recorded.changed_modes = changed_modes.filter(is_needed);
    if !after.linked.is_subset(&before.linked) {
        found.push(LINKED);
    }
    let ignored = changed_ignored(old, new, &mut contents);
    if !ignored.is_empty() {
        found.push(IGNORED);
    }
    let repositories = before.repositories.union(&after.repositories);
    let changed: Vec<&PathBuf> = repositories.filter(|path| contents.repository_differs(path)).collect();
    if !changed.is_empty() {
        found.push(REPOSITORY);
    }
    let mut special: Vec<PathBuf> = before.special.symmetric_difference(&after.special).cloned().collect();
    let places = after.ignored.iter().chain(&special).chain(changed.iter().copied()).map(PathBuf::as_path);
    recorded.unmeasured = beside_patch::names(places, name);
    // In a folder of this name that is no repository, any file may be hidden. That of the workspace itself may always change.
    let is_of_folder = |path: &&&PathBuf| path.components().count() > 1;
    let is_fake = |path: &&&PathBuf| [old, new].iter().any(|tree| is_no_repository(&tree.root.join(path)));
    special.extend(changed.iter().filter(is_of_folder).filter(is_fake).map(|path| (*path).clone()));
    let repositories = changed.into_iter().cloned().collect();
    Changed { unrecorded: found, recorded, ignored, special, repositories }
}

/// Adds to a change what its result records of empty folders and of permission bits. `words` are those for what is recorded
/// nowhere. Call it when the lists of files and `unmeasured` are complete.
pub fn recall_beside(change: &mut Change, recorded: Option<&BesidePatch>, words: &[impl AsRef<str>]) {
    let nothing = BesidePatch::default();
    let BesidePatch { folders, deleted_folders, modes, changed_modes, .. } = recorded.unwrap_or(&nothing);
    let files: BTreeSet<&str> = change.files().map(|(path, _)| path).collect();
    let unmeasured: BTreeSet<&str> = change.unmeasured.iter().map(String::as_str).collect();
    let is_in = |paths: &BTreeSet<&str>, folder: &str| paths.contains(folder) || has_below(paths, folder);
    // A folder whose files were deleted was there before, and one with ignored files or a repository is not empty.
    let is_empty = |folder: &str| !is_in(&files, folder) && !is_in(&unmeasured, folder);
    let mut beside = Vec::new();
    for (kind, list) in [(BesideKind::FolderCreated, folders), (BesideKind::FolderDeleted, deleted_folders)] {
        let paths: BTreeSet<&str> = list.iter().map(String::as_str).collect();
        // The folders above an innermost one follow from it.
        let innermost = paths.iter().copied().filter(|path| !has_below(&paths, path) && is_empty(path));
        beside.extend(innermost.map(|path| BesideChange { path: path.to_owned(), kind }));
    }
    for path in changed_modes.iter().flatten() {
        match path.strip_suffix('/') {
            Some(folder) => beside.push(BesideChange { path: folder.to_owned(), kind: BesideKind::FolderMode }),
            None if files.contains(path.as_str()) => {}
            None => beside.push(BesideChange { path: path.clone(), kind: BesideKind::FileMode }),
        }
    }
    let has = |word: &str| words.iter().any(|it| it.as_ref() == word);
    // Results of older versions do not say which of the permission bits are those of new files and folders.
    let may_be_changed = |path: &String| !folders.contains(path) && !is_in(&files, path.as_str());
    let has_unnamed_modes = match changed_modes {
        // A result records no more.
        Some(named) => named.len() == beside_patch::MAX_PLACES,
        None => has(MODES) || modes.keys().any(may_be_changed),
    };
    let folders = has(FOLDERS).then_some(UnnamedBeside::Folders);
    let unnamed = if has_unnamed_modes { Some(UnnamedBeside::Modes) } else { folders };
    (change.beside, change.unnamed_beside) = (beside, unnamed);
}

/// Returns true if one of the paths lies in a folder.
fn has_below(paths: &BTreeSet<&str>, folder: &str) -> bool {
    let begin = format!("{folder}/");
    let mut from = paths.range::<str, _>((Bound::Included(begin.as_str()), Bound::Unbounded));
    from.next().is_some_and(|path| path.starts_with(&begin))
}

/// Returns the ignored files and folders that were there before, and that were changed or deleted. New ones are no change:
/// a workspace that is rebuilt lacks them, and holds nothing that the agent's did not.
fn changed_ignored(old: &Tree, new: &Tree, contents: &mut Contents<'_>) -> Vec<PathBuf> {
    let mut differs = |path: &Path, before: &Metadata| {
        let Ok(after) = new.root.join(path).symlink_metadata() else { return true };
        if before.file_type() != after.file_type() || unusual_mode(before) != unusual_mode(&after) {
            return true;
        }
        !before.is_dir() && (before.len() != after.len() || contents.differ(path, &after))
    };
    let mut is_changed = |path: &Path| {
        let root = old.root.join(path);
        let Ok(meta) = root.symlink_metadata() else { return true };
        let mut found = differs(path, &meta);
        if meta.is_dir() && !found {
            let walked = walk(&root, |below, meta| {
                found = found || differs(&path.join(below), meta);
                if found { Descend::Skip } else { Descend::Enter }
            });
            found |= walked.map_or(true, |left| !left.is_empty());
        }
        found
    };
    old.beyond.ignored.iter().filter(|path| is_changed(path)).cloned().collect()
}

/// Compares the files of the workspace with those before the agent.
struct Contents<'a> {
    old: &'a Path,
    new: &'a Path,
    /// The stamps that the files of the workspace had before the agent. `None` if they are unknown.
    stamps: Option<&'a BTreeMap<PathBuf, Stamp>>,
    stamper: Stamper,
}

impl Contents<'_> {
    /// Returns true if the content of a file of the same size, or the target of a link, differs or cannot be read.
    fn differ(&mut self, path: &Path, after: &Metadata) -> bool {
        let (old, new) = (self.old.join(path), self.new.join(path));
        if after.is_symlink() {
            return old.read_link().ok() != new.read_link().ok();
        }
        let stamp = self.stamps.and_then(|stamps| stamps.get(path));
        let is_untouched = stamp == Some(&Stamp::of(after)) && !self.stamper.lies_in_memory(&new, after);
        !is_untouched && !have_same_content(&old, &new).unwrap_or(false)
    }

    /// Returns true if a repository, by its `.git`, differs. Git names an object by its content, so objects have that of their
    /// names.
    fn repository_differs(&mut self, git: &Path) -> bool {
        let (before, after) = (repository(&self.old.join(git)), repository(&self.new.join(git)));
        if before != after {
            return true;
        }
        let unread = after.into_iter().flatten().filter(|(path, file)| file.content.is_none() && !is_object(path));
        unread.into_iter().any(|(path, _)| {
            let path = if path.as_os_str().is_empty() { git.to_owned() } else { git.join(path) };
            self.new.join(&path).symlink_metadata().map_or(true, |meta| self.differ(&path, &meta))
        })
    }
}

/// Returns the permission bits if they are unusual, and otherwise whether the owner may execute the file.
fn unusual_mode(meta: &Metadata) -> u32 {
    let mode = meta.permissions().mode() & 0o7777;
    if USUAL_MODES.contains(&mode) { mode & 0o100 } else { mode }
}

/// The places in which a rebuilt workspace may differ from the agent's.
#[derive(Debug, Default)]
pub struct MayDiffer {
    /// The ignored files and folders, and the repository, if they may hold what the agent removed or changed.
    pub places: Change,
    /// True if folders without files, or special files, differ.
    pub folders: bool,
    /// All places in which files or folders may differ. `None` if they are unknown.
    pub all: Option<Vec<String>>,
    /// The files whose content the patch leaves out. They have the content of the source, or are absent.
    pub left_out: Vec<PathBuf>,
    /// True if secrets in files were redacted.
    pub is_masked: bool,
}

impl MayDiffer {
    /// Returns the places in a rebuilt workspace, by the recorded words and places.
    pub fn of(words: &[String], recorded: Option<&BesidePatch>, rebuilt: &Tree) -> Self {
        let has = |word: &str| words.iter().any(|it| it == word);
        let beyond = &rebuilt.beyond;
        let ignored = beyond.ignored.iter().filter(|_| has(IGNORED));
        let repositories = || beyond.repositories.iter().filter(|_| has(REPOSITORY));
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let places = Change { unmeasured: ignored.chain(repositories()).map(text).collect(), ..Change::default() };
        // Hard links and permission bits change neither the names nor the content of files.
        let recorded = recorded.and_then(|it| it.unmeasured.clone()).filter(|_| !has(FOLDERS));
        let all = recorded.map(|mut all| {
            all.extend(beyond.ignored.iter().chain(&beyond.special).chain(repositories()).map(text));
            all
        });
        Self { places, folders: has(FOLDERS) || has(SPECIAL), all, ..Self::default() }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct RepositoryFile {
    /// The size in bytes.
    len: u64,
    /// The content, if it is small and no object.
    content: Option<Vec<u8>>,
}

/// Returns the files of a repository, by its `.git`.
fn repository(folder: &Path) -> Option<BTreeMap<PathBuf, RepositoryFile>> {
    let meta = folder.symlink_metadata().ok()?;
    let mut files = BTreeMap::new();
    if !meta.is_dir() {
        files.insert(PathBuf::new(), RepositoryFile { len: meta.len(), content: content(folder, meta.len()) });
        return Some(files);
    }
    let walked: io::Result<_> = walk(folder, |path, meta| {
        let is_restless = path.iter().next().is_some_and(|first| RESTLESS.iter().any(|name| first == *name));
        if is_restless || path.extension().is_some_and(|extension| extension == "lock") {
            return Descend::Skip;
        }
        if !meta.is_dir() {
            let content = if is_object(path) { None } else { content(&folder.join(path), meta.len()) };
            files.insert(path.to_owned(), RepositoryFile { len: meta.len(), content });
        }
        Descend::Enter
    });
    walked.ok().map(|_| files)
}

/// Returns true if a `.git` is there and is neither a repository, with the names of Git in it, nor a file that names one.
fn is_no_repository(git: &Path) -> bool {
    let Ok(meta) = git.symlink_metadata() else { return false };
    if !meta.is_dir() {
        return content(git, meta.len()).is_none_or(|text| !text.starts_with(b"gitdir: "));
    }
    let has_parts = git.join("HEAD").is_file() && git.join("objects").is_dir() && git.join("refs").is_dir();
    let is_of_git = |name: &str| {
        let name = name.strip_suffix(".lock").unwrap_or(name);
        OF_GIT.contains(&name) || OF_GIT_ENDS.iter().any(|end| name.ends_with(end))
    };
    let has_names_of_git = || {
        let mut entries = git.read_dir().ok()?;
        Some(entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_of_git))))
    };
    !has_parts || !has_names_of_git().unwrap_or(false)
}

/// The names that Git uses in a repository.
const OF_GIT: [&str; 26] = [
    "HEAD",
    "AUTO_MERGE",
    "MERGE_MODE",
    "branches",
    "commondir",
    "config",
    "config.worktree",
    "description",
    "gc.log",
    "gc.pid",
    "gitdir",
    "hooks",
    "index",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "rr-cache",
    "sequencer",
    "shallow",
    "worktrees",
];
/// The ends of further names, such as `FETCH_HEAD` and `COMMIT_EDITMSG`.
const OF_GIT_ENDS: [&str; 3] = ["_HEAD", "_MSG", "_EDITMSG"];

fn is_object(path: &Path) -> bool {
    path.starts_with("objects")
}

fn content(file: &Path, len: u64) -> Option<Vec<u8>> {
    if len <= SMALL { regular::read(file).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::workspace::tree::Ignore;

    const LARGE: usize = 2 * SMALL as usize;

    #[test]
    fn a_git_folder_is_a_repository_only_with_the_parts_and_names_of_git() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        assert!(!is_no_repository(&git));
        fs::write(&git, "gitdir: ../x\n").unwrap();
        assert!(!is_no_repository(&git));
        fs::write(&git, "x").unwrap();
        assert!(is_no_repository(&git));
        fs::remove_file(&git).unwrap();
        for folder in ["objects", "refs", "hooks"] {
            assert!(is_no_repository(&git) == git.exists(), "{folder}");
            fs::create_dir_all(git.join(folder)).unwrap();
        }
        for file in ["HEAD", "index.lock", "COMMIT_EDITMSG"] {
            fs::write(git.join(file), "x").unwrap();
            assert!(!is_no_repository(&git), "{file}");
        }
        fs::write(git.join("evil.js"), "x").unwrap();
        assert!(is_no_repository(&git));
    }

    fn tree(root: &Path) -> Tree {
        Tree::read(root, &Ignore::of(root, &[]).unwrap()).unwrap()
    }

    #[test]
    fn each_thing_that_no_patch_holds_is_named() {
        let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let make = |root: &Path| {
            fs::create_dir_all(root.join("d")).unwrap();
            fs::write(root.join("a"), "a").unwrap();
            fs::write(root.join("d/only"), "1").unwrap();
            fs::create_dir_all(root.join("target/empty")).unwrap();
            fs::write(root.join("target/built"), "1").unwrap();
            fs::write(root.join("target/large"), "1".repeat(LARGE)).unwrap();
            fs::write(root.join(".gitignore"), "target/\n").unwrap();
            mode(&root.join("target/built"), 0o644);
            mode(&root.join("a"), 0o644);
        };
        let old = tempfile::tempdir().unwrap();
        make(old.path());
        type Act = fn(&Path);
        let acts: [(Act, &[&str]); 17] = [
            (|root| fs::write(root.join("target/new"), "x").unwrap(), &[]),
            (|root| fs::remove_file(root.join("target/built")).unwrap(), &["ignored files"]),
            (|root| fs::write(root.join("target/built"), "2").unwrap(), &["ignored files"]),
            (|root| fs::write(root.join("target/large"), "2".repeat(LARGE)).unwrap(), &["ignored files"]),
            (|root| fs::remove_dir(root.join("target/empty")).unwrap(), &["ignored files"]),
            (
                |root| {
                    fs::set_permissions(root.join("target/built"), fs::Permissions::from_mode(0o755)).unwrap();
                },
                &["ignored files"],
            ),
            (|root| fs::remove_dir_all(root.join("target")).unwrap(), &["ignored files"]),
            (|_| {}, &[]),
            (|root| fs::write(root.join("new"), "x").unwrap(), &[]),
            (|root| fs::remove_dir_all(root.join("d")).unwrap(), &[]),
            (|root| fs::create_dir(root.join("e")).unwrap(), &["+e"]),
            (|root| fs::remove_file(root.join("d/only")).unwrap(), &["+d"]),
            (|root| fs::hard_link(root.join("a"), root.join("b")).unwrap(), &["hard links"]),
            (|root| fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o666)).unwrap(), &["a 666"]),
            (|root| fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o777)).unwrap(), &["d 777"]),
            (
                |root| {
                    fs::create_dir_all(root.join("d/.git")).unwrap();
                    fs::write(root.join("d/.git/HEAD"), "x").unwrap();
                },
                &["the repository in `.git`"],
            ),
            (
                |root| {
                    fs::create_dir_all(root.join(".git/refs")).unwrap();
                    fs::write(root.join(".git/HEAD"), "x").unwrap();
                },
                &["the repository in `.git`"],
            ),
        ];
        for (number, (act, expected)) in acts.into_iter().enumerate() {
            let new = tempfile::tempdir().unwrap();
            make(new.path());
            act(new.path());
            let name = |path: &Path| path.to_str().map(str::to_owned);
            let Changed { unrecorded, recorded, .. } = changed(&tree(old.path()), &tree(new.path()), None, &name);
            let mut found: Vec<String> = unrecorded.into_iter().map(str::to_owned).collect();
            found.extend(recorded.folders.iter().map(|folder| format!("+{folder}")));
            found.extend(recorded.deleted_folders.iter().map(|folder| format!("-{folder}")));
            found.extend(recorded.modes.iter().map(|(path, mode)| format!("{path} {mode}")));
            assert_eq!(found, expected, "act {number}");
        }
    }
}
