//! Reads the content of a repository from its `.git`, without the files that git rewrites by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::beyond_patch::RESTLESS;
use super::git_index::{self, IndexEntry, hex};
use super::walk::{Descend, walk};
use crate::regular;

/// The folders of `.git` that hold further repositories and worktrees, each with restless files of its own.
const FURTHER: [&str; 2] = ["modules", "worktrees"];
/// A list of the refs that git writes while it packs objects.
const REFS_OF_SERVERS: &str = "info/refs";
/// The only file of the folder `objects` that counts. The refs and the indexes name the objects that matter, and git packs and
/// removes others by itself.
const ALTERNATES: &str = "objects/info/alternates";
/// The name of a file with an index, and the beginning of the name of its second file.
const INDEX: &str = "index";
const SHARED_INDEX: &[u8] = b"sharedindex.";

/// The content of a repository. It does not depend on which objects exist, and which refs are packed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RepositoryContent {
    /// The refs, by name.
    pub refs: BTreeMap<String, String>,
    /// The entries of the index, and of those of submodules and worktrees, as text.
    pub entries: BTreeSet<String>,
    /// The other files and links, such as `HEAD`, `config` and the hooks, relative to `.git`. An index that cannot be read is
    /// among them.
    pub files: BTreeSet<PathBuf>,
}

impl RepositoryContent {
    /// Reads a folder `.git`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn read(git: &Path) -> io::Result<Self> {
        let mut content = Self::default();
        let mut packed = BTreeMap::new();
        for path in files(git)? {
            if path.starts_with("objects") {
                content.files.extend((path == Path::new(ALTERNATES)).then_some(path));
            } else if path.starts_with("refs") {
                content.refs.insert(path.to_string_lossy().into_owned(), text(&git.join(&path))?.trim().to_owned());
            } else if path == Path::new("packed-refs") {
                packed = packed_refs(&text(&git.join(&path))?);
            } else {
                content.files.insert(path);
            }
        }
        for (name, value) in packed {
            content.refs.entry(name).or_insert(value);
        }
        for index in indexes(git)? {
            content.add_index(git, index);
        }
        Ok(content)
    }

    /// Adds the entries of an index.
    fn add_index(&mut self, git: &Path, index: PathBuf) {
        let folder = index.parent().unwrap_or(Path::new("")).to_owned();
        let Some((first, other)) = git_index::read(&git.join(&folder)) else {
            self.files.insert(index);
            return;
        };
        let place = folder.display();
        let as_text = |of: &str, entry: &IndexEntry| {
            let IndexEntry { path, mode, object, flags: (flags, more) } = entry;
            format!("{place} {of} {mode:o} {} {flags:x} {more:x} {path:?}", hex(object))
        };
        let link = format!("{place} link {}", hex(&first.link));
        self.entries.extend((!first.link.is_empty()).then_some(link));
        self.entries.extend(first.entries.iter().map(|entry| as_text("index", entry)));
        self.entries.extend(other.iter().flat_map(|other| &other.entries).map(|entry| as_text("shared", entry)));
    }
}

/// Returns the indexes of a repository and of its submodules and worktrees, relative to the folder `.git`.
fn indexes(git: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(git, |path, meta| {
        let first = path.iter().next();
        if path.file_name().is_some_and(|name| name == INDEX) && meta.is_file() {
            found.push(path.to_owned());
        }
        if is_one_of(first, &FURTHER) { Descend::Enter } else { Descend::Skip }
    })?;
    Ok(found)
}

/// Returns the files and links below a folder `.git` that git does not rewrite by itself, relative to the folder. The index is
/// not among them: git writes the times of files into it.
///
/// # Errors
/// Returns an error if a folder cannot be read.
pub fn files(git: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let left = walk(git, |path, meta| {
        if is_restless(path) {
            return Descend::Skip;
        }
        if meta.is_file() || meta.is_symlink() {
            found.insert(path.to_owned());
        }
        Descend::Enter
    })?;
    match left.into_iter().next() {
        Some((path, why)) => Err(io::Error::other(format!("{}: {why}", git.join(path).display()))),
        None => Ok(found),
    }
}

fn is_restless(path: &Path) -> bool {
    let first = path.iter().next();
    path.extension().is_some_and(|extension| extension == "lock")
        || path.file_name().is_some_and(|name| name.as_bytes().starts_with(SHARED_INDEX))
        || path == Path::new(REFS_OF_SERVERS)
        || is_one_of(first, &RESTLESS)
        || (is_one_of(first, &FURTHER) && is_one_of(path.file_name(), &RESTLESS))
}

fn is_one_of(part: Option<&OsStr>, names: &[&str]) -> bool {
    part.is_some_and(|part| names.iter().any(|name| part == *name))
}

fn text(file: &Path) -> io::Result<String> {
    regular::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the refs of the file `packed-refs`. Comments and the commits of annotated tags are left out.
fn packed_refs(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
    lines.filter_map(|line| line.split_once(' ')).map(|(value, name)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_git_rewrites_by_itself_is_no_content_and_every_other_change_is() {
        for format in ["sha1", "sha256"] {
            let root = tempfile::tempdir().unwrap();
            let git = |words: &[&str]| {
                let own = ["-c", "user.name=a", "-c", "user.email=a@b"];
                let ran = Command::new("git").args(own).args(words).current_dir(root.path()).output().unwrap();
                assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
            };
            let read = || RepositoryContent::read(&root.path().join(".git")).unwrap();
            git(&["init", "-q", &format!("--object-format={format}"), "."]);
            for name in ["a", "b"] {
                fs::write(root.path().join(name), name).unwrap();
                git(&["add", name]);
                git(&["commit", "-qm", name]);
            }
            git(&["tag", "-am", "one", "v1"]);
            let before = read();
            assert_eq!((before.entries.len(), before.refs.len()), (2, 2), "{format}: {before:?}");
            fs::write(root.path().join("a"), "a").unwrap();
            git(&["status"]);
            fs::write(root.path().join(".git/index.lock"), "").unwrap();
            assert_eq!(read(), before, "{format}");
            fs::remove_file(root.path().join(".git/index.lock")).unwrap();
            // An object that nothing names, and that git removes.
            git(&["hash-object", "-w", ".git/config"]);
            assert_eq!(read(), before, "{format}");
            git(&["prune", "--expire=now"]);
            git(&["repack", "-adq"]);
            git(&["pack-refs", "--all"]);
            git(&["update-index", "--index-version", "4"]);
            assert_eq!(read(), before, "{format}");
            let acts: [&[&str]; 8] = [
                &["branch", "other"],
                &["tag", "-d", "v1"],
                &["commit", "-qm", "c", "--allow-empty"],
                &["update-index", "--skip-worktree", "a"],
                &["update-index", "--assume-unchanged", "b"],
                &["update-index", "--chmod=+x", "b"],
                &["rm", "-qf", "--cached", "b"],
                &["update-index", "--split-index"],
            ];
            for act in acts {
                let before = read();
                git(act);
                assert_ne!(read(), before, "{format}: {act:?}");
            }
            let hook = Path::new("hooks/pre-commit");
            fs::create_dir_all(root.path().join(".git/hooks")).unwrap();
            fs::write(root.path().join(".git").join(hook), "exit 1").unwrap();
            assert!(read().files.contains(hook), "{format}");
        }
    }
}
