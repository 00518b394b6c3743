//! What an agent changed in its workspace that a patch cannot hold: empty folders, special files, permission bits, hard
//! links, and the repository. A workspace that is rebuilt from the patch lacks it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::tree::Tree;
use super::walk::{Descend, walk};
use crate::regular;

/// The parts of a folder that a patch cannot hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BeyondPatch {
    /// Every folder.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Sockets, devices and pipes.
    pub(super) special: BTreeSet<PathBuf>,
    /// The permission bits of files and folders that have unusual ones.
    pub(super) modes: BTreeMap<PathBuf, u32>,
    /// The `.git` of each repository.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// Files with more than one name.
    pub(super) linked: BTreeSet<PathBuf>,
}

/// The words for a repository that changed.
pub const REPOSITORY: &str = "the repository in `.git`";

/// The permission bits that files usually have.
pub(super) const USUAL_MODES: [u32; 4] = [0o644, 0o755, 0o664, 0o775];

/// Files of a repository that commands rewrite without changing what it holds.
const RESTLESS: [&str; 6] = ["index", "FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "gc.log", "logs"];
/// The maximum size in bytes of a file of a repository that is compared by its content.
const SMALL: u64 = 64 << 10;

/// Returns what the agent changed that the patch does not hold, in words.
pub fn changed(old: &Tree, new: &Tree) -> Vec<&'static str> {
    let mut found = Vec::new();
    if folders_without_files(old) != folders_without_files(new) {
        found.push("empty folders");
    }
    let (before, after) = (&old.beyond, &new.beyond);
    if before.special != after.special {
        found.push("sockets, devices or pipes");
    }
    let is_there = |path: &PathBuf| new.entries.contains_key(path) || after.folders.contains(path);
    let had = before.modes.iter().filter(|(path, _)| is_there(path));
    if !after.modes.iter().eq(had) {
        found.push("permission bits");
    }
    if !after.linked.is_subset(&before.linked) {
        found.push("hard links");
    }
    let mut repositories = before.repositories.union(&after.repositories);
    if repositories.any(|path| repository(&old.root.join(path)) != repository(&new.root.join(path))) {
        found.push(REPOSITORY);
    }
    found
}

fn folders_without_files(tree: &Tree) -> BTreeSet<&Path> {
    let with: BTreeSet<&Path> = tree.entries.keys().flat_map(|path| path.ancestors().skip(1)).collect();
    tree.beyond.folders.iter().map(PathBuf::as_path).filter(|folder| !with.contains(folder)).collect()
}

/// A file of a repository.
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
            let is_object = path.starts_with("objects");
            let content = if is_object { None } else { content(&folder.join(path), meta.len()) };
            files.insert(path.to_owned(), RepositoryFile { len: meta.len(), content });
        }
        Descend::Enter
    });
    walked.ok().map(|_| files)
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
            mode(&root.join("a"), 0o644);
        };
        let old = tempfile::tempdir().unwrap();
        make(old.path());
        type Act = fn(&Path);
        let acts: [(Act, &[&str]); 10] = [
            (|_| {}, &[]),
            (|root| fs::write(root.join("new"), "x").unwrap(), &[]),
            (|root| fs::remove_dir_all(root.join("d")).unwrap(), &[]),
            (|root| fs::create_dir(root.join("e")).unwrap(), &["empty folders"]),
            (|root| fs::remove_file(root.join("d/only")).unwrap(), &["empty folders"]),
            (|root| fs::hard_link(root.join("a"), root.join("b")).unwrap(), &["hard links"]),
            (
                |root| fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o666)).unwrap(),
                &["permission bits"],
            ),
            (
                |root| fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o777)).unwrap(),
                &["permission bits"],
            ),
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
            assert_eq!(changed(&tree(old.path()), &tree(new.path())), expected, "act {number}");
        }
    }
}
