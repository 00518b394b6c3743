//! Reads the content of a repository from its `.git`, without the files that git rewrites by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::beyond_patch::RESTLESS;
use super::walk::{Descend, walk};
use crate::regular;

/// The folders of `.git` that hold further repositories and worktrees, each with restless files of its own.
const FURTHER: [&str; 2] = ["modules", "worktrees"];
/// A list of the refs that git writes while it packs objects.
const REFS_OF_SERVERS: &str = "info/refs";
/// The bytes of a pack's index before the names of the objects: signature, version, and the numbers of objects by first byte.
const INDEX_HEAD: usize = 8 + 256 * 4;

/// The content of a repository. It does not depend on which objects and refs are packed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RepositoryContent {
    /// The names of the objects, which are digests of their content.
    pub objects: BTreeSet<String>,
    /// The refs, by name.
    pub refs: BTreeMap<String, String>,
    /// The other files and links, such as `HEAD`, `config` and the hooks, relative to `.git`.
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
            if let Ok(below) = path.strip_prefix("objects") {
                content.add_object(git, below)?;
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
        Ok(content)
    }

    /// Adds the objects of a file in the folder `objects`. Files that git computes from the objects are left out.
    fn add_object(&mut self, git: &Path, below: &Path) -> io::Result<()> {
        let path = Path::new("objects").join(below);
        let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
        match parts.as_slice() {
            ["info", "alternates"] => _ = self.files.insert(path),
            ["pack", _] if is_index_of_pack(git, &path) => match packed_objects(&regular::read(git.join(&path))?) {
                Some(names) => self.objects.extend(names),
                None => _ = self.files.insert(path),
            },
            [first, rest] if first.len() == 2 && is_hex(first) && is_hex(rest) => {
                self.objects.insert(format!("{first}{rest}"));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the files and links below a folder `.git` that belong to its content, relative to the folder. The index is not
/// among them: git writes the times of files into it.
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
        || path == Path::new(REFS_OF_SERVERS)
        || is_one_of(first, &RESTLESS)
        || (is_one_of(first, &FURTHER) && is_one_of(path.file_name(), &RESTLESS))
}

fn is_one_of(part: Option<&OsStr>, names: &[&str]) -> bool {
    part.is_some_and(|part| names.iter().any(|name| part == *name))
}

/// Returns true for the index of a pack that exists.
fn is_index_of_pack(git: &Path, path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "idx") && git.join(path.with_extension("pack")).is_file()
}

fn text(file: &Path) -> io::Result<String> {
    regular::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the refs of the file `packed-refs`. Comments and the commits of annotated tags are left out.
fn packed_refs(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
    lines.filter_map(|line| line.split_once(' ')).map(|(value, name)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns the names of the objects in the index of a pack, of version 2. Source: Documentation/gitformat-pack of git.
fn packed_objects(index: &[u8]) -> Option<Vec<String>> {
    if !index.starts_with(b"\xfftOc\0\0\0\x02") {
        return None;
    }
    let count: [u8; 4] = index.get(INDEX_HEAD - 4..INDEX_HEAD)?.try_into().ok()?;
    let count = usize::try_from(u32::from_be_bytes(count)).ok()?;
    // Each object has a name, a checksum, an offset, and a further offset of eight bytes if the pack is large. Two digests
    // follow. The length of the names is in no header.
    let is_length = |length: &usize| {
        let without = INDEX_HEAD + count * (length + 8) + 2 * length;
        index.len().checked_sub(without).is_some_and(|rest| rest.is_multiple_of(8) && rest / 8 <= count)
    };
    let length = [20, 32].into_iter().find(is_length)?;
    let names = index.get(INDEX_HEAD..INDEX_HEAD + count * length)?;
    Some(names.chunks(length).map(|name| name.iter().map(|byte| format!("{byte:02x}")).collect()).collect())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
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
            // Two files, two folders, two commits and the tag.
            assert_eq!((before.objects.len(), before.refs.len()), (7, 2), "{format}: {before:?}");
            fs::write(root.path().join("a"), "a").unwrap();
            git(&["status"]);
            fs::write(root.path().join(".git/index.lock"), "").unwrap();
            assert_eq!(read(), before, "{format}");
            fs::remove_file(root.path().join(".git/index.lock")).unwrap();
            git(&["repack", "-adq"]);
            git(&["pack-refs", "--all"]);
            assert_eq!(read(), before, "{format}");
            let acts: [&[&str]; 3] =
                [&["branch", "other"], &["tag", "-d", "v1"], &["commit", "-qm", "c", "--allow-empty"]];
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

    #[test]
    fn no_index_of_a_pack_is_read_beyond_its_end() {
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        index.extend([0; 256 * 4 - 1]);
        index.push(1);
        index.extend([7; 20 + 8 + 40]);
        assert_eq!(packed_objects(&index), Some(vec!["07".repeat(20)]));
        for length in 0..index.len() {
            assert_eq!(packed_objects(&index[..length]), None, "{length}");
        }
    }
}
