//! The digest of a folder: the paths, kinds, contents and link targets of everything in it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::openat::open_file;
use super::tree::{Entry, Tree};
use super::walk::{Descend, walk};

/// The size in bytes from which a file is not searched for the path of its tree.
const LARGE: u64 = 16 << 20;

/// The number of bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Returns the digest (BLAKE3) of everything below a folder. Of the modes, only the owner's execute bit counts; times
/// do not count. A copy of the folder therefore has the same digest.
///
/// # Errors
/// Returns an error if the folder or a file in it cannot be read.
pub fn tree_digest(root: &Path) -> io::Result<String> {
    let mut entries: BTreeMap<PathBuf, u8> = BTreeMap::new();
    let left = walk(root, |path, meta| {
        let executable = meta.permissions().mode() & 0o100 != 0;
        let kind = match () {
            () if meta.is_symlink() => b'l',
            () if meta.is_dir() => b'd',
            () if meta.is_file() && executable => b'x',
            () if meta.is_file() => b'f',
            // Sockets and pipes have no content, and are not copied for graders.
            () => return Descend::Skip,
        };
        entries.insert(path.to_owned(), kind);
        Descend::Enter
    })?;
    entries.extend(left.into_iter().map(|(path, _)| (path, b'?')));
    hash(root, &[], entries.iter().map(|(path, kind)| (path.as_path(), *kind)))
}

/// Returns the digest (BLAKE3) of the folders, files and links of a tree, in which ignored ones are left out. The path of the
/// workspace in which commands made them counts as the same text everywhere, because commands write it into files. Compiled
/// files of Python hold times, and do not count.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn digest_of(tree: &Tree, workspace: &Path) -> io::Result<String> {
    let folders = tree.beyond.folders.iter().map(|path| (path.as_path(), b'd'));
    let unread = tree.unread.keys().map(|path| (path.as_path(), b'?'));
    let kind = |entry: &Entry| match entry {
        Entry::Link(_) => b'l',
        Entry::File { executable: true, .. } => b'x',
        Entry::File { .. } => b'f',
    };
    let files = tree.entries.iter().map(|(path, entry)| (path.as_path(), kind(entry)));
    let is_compiled =
        |path: &Path| path.extension().is_some_and(|end| end == "pyc") || path.iter().any(|part| part == "__pycache__");
    let entries = folders.chain(unread).chain(files).filter(|(path, _)| !is_compiled(path));
    let entries: BTreeMap<&Path, u8> = entries.collect();
    let mut roots = vec![workspace.to_owned()];
    roots.extend(workspace.canonicalize().ok().filter(|real| real != workspace));
    // A path that holds another one is replaced first.
    roots.sort_by_key(|root| std::cmp::Reverse(root.as_os_str().len()));
    hash(&tree.root, &roots, entries)
}

/// Returns the digest of the entries of a folder, each with its kind. `roots` are paths that count as the same text.
fn hash<'a>(root: &Path, roots: &[PathBuf], entries: impl IntoIterator<Item = (&'a Path, u8)>) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for (path, kind) in entries {
        let name = path.as_os_str().as_bytes();
        hasher.update(&[kind]).update(&(name.len() as u64).to_le_bytes()).update(name);
        let place = root.join(path);
        let content = match kind {
            b'l' => blake3::hash(&without(roots, fs::read_link(&place)?.as_os_str().as_bytes())),
            b'f' | b'x' if !roots.is_empty() && fs::metadata(&place)?.len() <= LARGE => {
                let mut content = Vec::new();
                open_file(&place)?.read_to_end(&mut content)?;
                blake3::hash(&without(roots, &content))
            }
            b'f' | b'x' => of_file(&place)?,
            _ => continue,
        };
        hasher.update(content.as_bytes());
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Returns a content in which each of these paths is replaced.
fn without<'a>(roots: &[PathBuf], content: &'a [u8]) -> Cow<'a, [u8]> {
    let mut content = Cow::Borrowed(content);
    for root in roots {
        let root = root.as_os_str().as_bytes();
        let places: Vec<usize> = memchr::memmem::find_iter(&content, root).collect();
        if places.is_empty() {
            continue;
        }
        let (mut replaced, mut kept) = (Vec::with_capacity(content.len()), 0);
        for place in places {
            replaced.extend_from_slice(&content[kept..place]);
            replaced.extend_from_slice(b"{workspace}");
            kept = place + root.len();
        }
        replaced.extend_from_slice(&content[kept..]);
        content = Cow::Owned(replaced);
    }
    content
}

fn of_file(path: &Path) -> io::Result<blake3::Hash> {
    let mut file = open_file(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(length) => _ = hasher.update(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
