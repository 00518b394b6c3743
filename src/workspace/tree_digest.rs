//! The digest of a folder: the paths, kinds, contents and link targets of everything in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use memchr::memmem::Finder;

use super::MAX_READ_FILE_BYTES;
use super::openat::open_file;
use super::tree::{Entry, Tree};
use super::walk::{Descend, walk};

/// The number of bytes that are read at once.
const PIECE: usize = 256 << 10;

/// The text that replaces the path of a trial's private folder.
const PLACE: &[u8] = b"{trial}";

/// Returns the digest (BLAKE3) of everything below a folder. Of the modes, only the owner's execute bit counts; times
/// do not count. A copy of the folder therefore has the same digest.
///
/// # Errors
/// Returns an error if the folder or a file in it cannot be read, or if a file is larger than [`MAX_READ_FILE_BYTES`].
pub fn tree_digest(root: &Path) -> io::Result<String> {
    let mut entries: BTreeMap<PathBuf, u8> = BTreeMap::new();
    let mut too_large = None;
    let left = walk(root, |path, meta| {
        if meta.is_file() && meta.len() > MAX_READ_FILE_BYTES {
            too_large = Some(path.to_owned());
        }
        let executable = meta.permissions().mode() & 0o100 != 0;
        let kind = match () {
            () if meta.is_symlink() => b'l',
            () if meta.is_dir() => b'd',
            () if meta.is_file() && executable => b'x',
            () if meta.is_file() => b'f',
            // Sockets and pipes have no content, and a copy of the folder may lack devices.
            () => return Descend::Skip,
        };
        entries.insert(path.to_owned(), kind);
        Descend::Enter
    })?;
    if let Some(path) = too_large {
        return Err(io::Error::other(format!("{} is larger than {MAX_READ_FILE_BYTES} bytes", path.display())));
    }
    entries.extend(left.into_iter().map(|(path, _)| (path, b'?')));
    let mut hasher = blake3::Hasher::new();
    add(&mut hasher, root, &[], entries.iter().map(|(path, kind)| (path.as_path(), *kind)))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Returns the digest (BLAKE3) of what setup commands made: the folders, files and links of the tree of a workspace, and of the
/// tree of what lies beside the workspace, both without ignored files. `workspace` is the place in which the commands ran. Its
/// folder has a random name, which no file from outside contains: of a file that contains it, the name and the kind count, and
/// in the target of a link, it counts as the same text everywhere. Python's compiled files and lists of digests do not count.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn digest_of(tree: &Tree, beside: Option<&Tree>, workspace: &Path) -> io::Result<String> {
    let trial = workspace.parent().unwrap_or(workspace);
    let mut roots = vec![trial.to_owned()];
    roots.extend(trial.canonicalize().ok().filter(|real| real != trial));
    // A path that contains another one is replaced first.
    roots.sort_by_key(|root| std::cmp::Reverse(root.as_os_str().len()));
    let mut hasher = blake3::Hasher::new();
    add_tree(&mut hasher, tree, &roots)?;
    if let Some(beside) = beside {
        hasher.update(b"beside");
        add_tree(&mut hasher, beside, &roots)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn add_tree(hasher: &mut blake3::Hasher, tree: &Tree, roots: &[PathBuf]) -> io::Result<()> {
    let folders = tree.beyond.folders.iter().map(|path| (path.as_path(), b'd'));
    let unread = tree.unread.keys().map(|path| (path.as_path(), b'?'));
    let kind = |entry: &Entry| match entry {
        Entry::Link(_) => b'l',
        Entry::File { executable: true, .. } => b'x',
        Entry::File { .. } => b'f',
    };
    let files = tree.entries.iter().map(|(path, entry)| (path.as_path(), kind(entry)));
    let entries: BTreeMap<&Path, u8> =
        folders.chain(unread).chain(files).filter(|(path, _)| !differs_by_nature(path)).collect();
    add(hasher, &tree.root, roots, entries)
}

/// Returns true for files of Python that differ each time they are made: compiled files hold times, and the `RECORD` of an
/// installed package holds digests of files that may contain the place of the package.
fn differs_by_nature(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::extension);
    path.extension().is_some_and(|end| end == "pyc")
        || path.iter().any(|part| part == "__pycache__")
        || (path.ends_with("RECORD") && folder.is_some_and(|end| end == "dist-info"))
}

/// Adds the entries of a folder, each with its kind.
fn add<'a>(
    hasher: &mut blake3::Hasher,
    root: &Path,
    roots: &[PathBuf],
    entries: impl IntoIterator<Item = (&'a Path, u8)>,
) -> io::Result<()> {
    let roots: Vec<&[u8]> = roots.iter().map(|root| root.as_os_str().as_bytes()).collect();
    for (path, kind) in entries {
        let name = path.as_os_str().as_bytes();
        hasher.update(&[kind]).update(&(name.len() as u64).to_le_bytes()).update(name);
        let place = root.join(path);
        let content = match kind {
            b'l' => blake3::hash(&without(&roots, fs::read_link(&place)?.into_os_string().into_encoded_bytes())),
            b'f' | b'x' => of_file(&place, &roots)?.unwrap_or_else(|| blake3::hash(PLACE)),
            _ => continue,
        };
        hasher.update(content.as_bytes());
    }
    Ok(())
}

/// Returns the target of a link in which each of these paths is replaced.
fn without(roots: &[&[u8]], mut target: Vec<u8>) -> Vec<u8> {
    for root in roots {
        while let Some(place) = memchr::memmem::find(&target, root) {
            drop(target.splice(place..place + root.len(), PLACE.iter().copied()));
        }
    }
    target
}

/// Returns the digest of a file, or `None` if the file contains one of these texts.
fn of_file(path: &Path, texts: &[&[u8]]) -> io::Result<Option<blake3::Hash>> {
    let mut hasher = blake3::Hasher::new();
    let holds = read_pieces(path, texts, |piece| _ = hasher.update(piece))?;
    Ok((!holds).then(|| hasher.finalize()))
}

/// Returns true if a file contains one of these texts.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(super) fn file_holds(path: &Path, texts: &[&[u8]]) -> io::Result<bool> {
    read_pieces(path, texts, |_| ())
}

/// Returns true if a file contains one of these texts. Passes the pieces of the file to `see` until such a text is found.
fn read_pieces(path: &Path, texts: &[&[u8]], mut see: impl FnMut(&[u8])) -> io::Result<bool> {
    let finders: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or_default();
    let mut file = open_file(path)?;
    let mut piece = vec![0; PIECE + longest];
    // The end of a piece is searched again with the next one: a text may lie in both.
    let mut kept = 0;
    loop {
        let end = match file.read(&mut piece[kept..]) {
            Ok(0) => return Ok(false),
            Ok(length) => kept + length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        see(&piece[kept..end]);
        if finders.iter().any(|finder| finder.find(&piece[..end]).is_some()) {
            return Ok(true);
        }
        let begin = end.saturating_sub(longest);
        piece.copy_within(begin..end, 0);
        kept = end - begin;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::workspace::tree::Ignore;

    #[test]
    fn files_that_contain_the_private_folder_count_by_their_names_and_others_by_their_content() {
        // Makes the trial's private folder, and returns the digest of its workspace and of the files beside it.
        let digest = |own: &str, also: &str, beside: &str| {
            let root = tempfile::tempdir().unwrap();
            let (trial, workspace) = (root.path(), root.path().join("workspace"));
            let package = workspace.join("lib/a-1.dist-info");
            fs::create_dir_all(&package).unwrap();
            fs::create_dir_all(workspace.join("lib/__pycache__")).unwrap();
            fs::create_dir(trial.join("dep")).unwrap();
            let place = trial.display();
            for (path, text) in [
                ("where", format!("{place}/workspace\n{own}")),
                ("home", format!("{own} {place}/home/x")),
                ("lib/a-1.dist-info/RECORD", own.to_owned()),
                ("lib/__pycache__/a", own.to_owned()),
                ("lib/a.pyc", own.to_owned()),
                ("large", format!("{}{place}", "x".repeat(PIECE - place.to_string().len() / 2))),
                ("RECORD", "the same".to_owned()),
                ("plain", also.to_owned()),
            ] {
                fs::write(workspace.join(path), text).unwrap();
            }
            symlink(trial.join("workspace/where"), workspace.join("link")).unwrap();
            fs::write(trial.join("dep/lib"), beside).unwrap();
            let tree = |folder: &Path| Tree::read(folder, &Ignore::of(folder, &[]).unwrap()).unwrap();
            digest_of(&tree(&workspace), Some(&tree(&trial.join("dep"))), &workspace).unwrap()
        };
        let first = digest("1", "same", "same");
        assert_eq!(digest("2", "same", "same"), first);
        assert_ne!(digest("1", "other", "same"), first);
        assert_ne!(digest("1", "same", "other"), first);
    }

    #[test]
    fn a_text_in_two_pieces_of_a_file_is_found() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a");
        let holds = |text: &str| file_holds(&file, &[text.as_bytes()]).unwrap();
        for before in [0, PIECE - 3, PIECE, PIECE + 2, PIECE + 3, 2 * PIECE - 1] {
            fs::write(&file, format!("{}needle", "n".repeat(before))).unwrap();
            assert!(holds("needle") && !holds("needles"), "{before}");
        }
    }
}
