//! Reads the index of a git repository: its entries, and the files that it tracks, whatever `.gitignore` says of them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::regular;

/// The length in bytes of the fixed part of an entry without the object's name.
const FIXED: usize = 42;
/// The flag of an entry that has two more bytes of flags.
const EXTENDED: u16 = 0x4000;
/// The type bits of a mode, and those of a regular file and of a link.
const TYPE: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// The flags of an entry that users and merges set: assume-valid, and the stage.
const FLAGS: u16 = 0xb000;
/// The further flags that users set: skip-worktree, and intent-to-add.
const MORE_FLAGS: u16 = 0x6000;

/// An entry of an index, without the times and numbers by which git recognises files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexEntry {
    /// The path. Empty if the entry takes the place of one in the other file of the index.
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    /// The name of the object.
    pub(super) object: Vec<u8>,
    /// The flags, and the further flags.
    pub(super) flags: (u16, u16),
}

/// An index, or one of the two files of a split one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) entries: Vec<IndexEntry>,
    /// The extension that names the other file and the entries of it that do not count. Empty if there is none.
    pub(super) link: Vec<u8>,
    /// The name of the other file.
    shared: Option<String>,
}

/// Returns the index of a folder `.git`, and the shared file of a split index. Returns `None` if one of them cannot be read.
pub(super) fn read(git: &Path) -> Option<(Index, Option<Index>)> {
    let read = |name: &str| regular::read(git.join(name)).ok().and_then(|bytes| index(&bytes));
    let first = read("index")?;
    let other = match &first.shared {
        Some(shared) => Some(read(&format!("sharedindex.{shared}"))?),
        None => None,
    };
    Some((first, other))
}

/// Returns the tracked files and links of the repository in a folder, relative to the folder. Returns none if the folder
/// has no repository of its own, or one with an index that cannot be read. Of an index in two files, files are included that
/// git does not track any more.
pub(super) fn tracked(folder: &Path) -> BTreeSet<PathBuf> {
    let Some(git) = git_folder(folder) else { return BTreeSet::new() };
    let Ok(bytes) = regular::read(git.join("index")) else { return BTreeSet::new() };
    let Some(first) = index(&bytes) else { return BTreeSet::new() };
    let shared = first.shared.as_ref().and_then(|shared| regular::read(git.join(format!("sharedindex.{shared}"))).ok());
    let other = shared.and_then(|bytes| index(&bytes)).unwrap_or_default();
    let entries = first.entries.into_iter().chain(other.entries);
    // An entry without a name takes the place of one in the other file.
    let is_file = |entry: &IndexEntry| !entry.path.as_os_str().is_empty() && matches!(entry.mode & TYPE, FILE | LINK);
    entries.filter(is_file).map(|entry| entry.path).collect()
}

/// Returns the folder of git's own files, which a file `.git` names in a linked worktree and in a submodule.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = regular::read_to_string(&git).ok()?;
    Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Returns an index of the versions 2 to 4, or `None` if it is none. Source: Documentation/gitformat-index of git.
fn index(bytes: &[u8]) -> Option<Index> {
    // The length of the objects' names is in no header: it is that of the digest at the end.
    [20, 32].into_iter().find_map(|length| entries(bytes, length))
}

fn entries(index: &[u8], name_length: usize) -> Option<Index> {
    let version = u32_at(index, 4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let fixed = FIXED + name_length;
    let (mut found, mut name) = (Index::default(), Vec::new());
    let mut at = 12;
    for _ in 0..u32_at(index, 8)? {
        let mode = u32_at(index, at + 24)?;
        let object = index.get(at + fixed - 2 - name_length..at + fixed - 2)?.to_vec();
        let flags = u16_at(index, at + fixed - 2)?;
        let is_extended = flags & EXTENDED != 0;
        let more = if is_extended { u16_at(index, at + fixed)? } else { 0 };
        let mut begin = at + fixed + if is_extended { 2 } else { 0 };
        if version == 4 {
            let (cut, length) = offset(index.get(begin..)?)?;
            begin += length;
            name.truncate(name.len().checked_sub(cut)?);
        } else {
            name.clear();
        }
        let rest = index.get(begin..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&rest[..length]);
        let end = begin + length;
        // Before version 4, an entry is padded with one to eight zeros to a multiple of eight bytes.
        at = if version == 4 { end + 1 } else { at + ((end - at) / 8 + 1) * 8 };
        let path = Path::new(OsStr::from_bytes(&name));
        if path.is_absolute() {
            return None;
        }
        let flags = (flags & FLAGS, more & MORE_FLAGS);
        found.entries.push(IndexEntry { path: path.to_owned(), mode, object, flags });
    }
    // Extensions, each with a signature and a length, and the digest. Anything else is an index of another form.
    while at + name_length < index.len() {
        let length = u32_at(index, at + 4)? as usize;
        let extension = index.get(at + 8..at + 8 + length)?;
        if index[at..].starts_with(b"link") {
            found.link = extension.to_vec();
            found.shared = extension.get(..name_length).map(hex);
        }
        at += 8 + length;
    }
    (at + name_length == index.len()).then_some(found)
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Reads a number as in a pack's offsets: seven bits a byte, and one more for each further byte. Returns it with the number
/// of its bytes.
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value: usize = 0;
    for (at, byte) in bytes.iter().enumerate().take(8) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_tracked_files_are_those_that_git_lists() {
        let root = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let ran = Command::new("git").args(words).current_dir(root.path()).output().unwrap();
            assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
            ran.stdout
        };
        git(&["init", "-q", "."]);
        assert_eq!(tracked(root.path()), BTreeSet::new());
        let long = format!("deep/{}", "n".repeat(200));
        for name in ["a", "ab", "abcdefgh", "dist/index.js", "dist/index.css", "sp ace/ä", "z", &long] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        std::os::unix::fs::symlink("a", root.path().join("link")).unwrap();
        fs::write(root.path().join(".gitignore"), "dist/\n").unwrap();
        git(&["add", "--force", "."]);
        let listed = String::from_utf8(git(&["ls-files", "-z"])).unwrap();
        let listed: BTreeSet<PathBuf> = listed.split_terminator('\0').map(PathBuf::from).collect();
        assert_eq!(listed.len(), 10);
        for version in ["2", "3", "4"] {
            git(&["update-index", "--index-version", version]);
            assert_eq!(tracked(root.path()), listed, "version {version}");
            // An entry of a file that will be added has more flags.
            fs::write(root.path().join("later"), "").unwrap();
            git(&["add", "--intent-to-add", "later"]);
            assert_eq!(tracked(root.path()).len(), 11, "version {version}");
            git(&["rm", "-q", "--cached", "later"]);
        }
        git(&["update-index", "--split-index"]);
        fs::write(root.path().join("later"), "").unwrap();
        git(&["add", "later"]);
        assert_eq!(tracked(root.path()).len(), 11);
        git(&["rm", "-q", "--cached", "later"]);
        git(&["update-index", "--no-split-index"]);
        git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]);
        git(&["worktree", "add", "-q", "tree"]);
        assert_eq!(tracked(&root.path().join("tree")), listed);
        let wide = root.path().join("wide");
        fs::create_dir(&wide).unwrap();
        fs::write(wide.join("a"), "").unwrap();
        for words in [&["init", "-q", "--object-format=sha256", "."][..], &["add", "a"]] {
            assert!(Command::new("git").args(words).current_dir(&wide).status().unwrap().success());
        }
        assert_eq!(tracked(&wide), BTreeSet::from([PathBuf::from("a")]));
        let index = fs::read(root.path().join(".git/index")).unwrap();
        for length in 0..index.len() {
            let _ = super::index(&index[..length]);
        }
        assert_eq!(super::index(b"DIRC\0\0\0\x09\0\0\0\x01"), None);
    }
}
