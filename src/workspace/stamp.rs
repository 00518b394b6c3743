//! Stamps of files, by which a later change of a file is noticed. Only files in memory are read for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::MAX_READ_FILE_BYTES;
use super::openat::open_file;
use super::walk::{Descend, walk};
use crate::regular;

/// Identifies a version of a file. A program can set the times of reading and writing, but not the time of the last change of
/// the file's state (`ctime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    written: (i64, i64),
    changed: (i64, i64),
    /// The digest of a file's content, if the file system is in memory: a file there that is written through a shared mapping
    /// keeps all of its times. On a disk, only a page that was written and not stored yet can be written so once more.
    content: Option<blake3::Hash>,
}

impl Stamp {
    /// Returns the stamp of a file or a link by its metadata alone, which do not show every change of a file in memory. A folder
    /// counts by its place and its mode, because its entries have stamps of their own.
    pub fn of(meta: &Metadata) -> Self {
        let (size, written, changed) = match meta.is_dir() {
            true => (0, (0, 0), (0, 0)),
            false => (meta.len(), (meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())),
        };
        Self { device: meta.dev(), inode: meta.ino(), mode: meta.mode(), size, written, changed, content: None }
    }
}

/// Takes stamps of files that may lie in memory, and remembers which file systems do.
#[derive(Debug, Default)]
pub struct Stamper {
    /// Each device, and whether its file system is in memory.
    in_memory: BTreeMap<u64, bool>,
}

impl Stamper {
    /// Returns the stamp of a file, a link or a folder, with the digest of its content if it is a file in memory.
    pub fn stamp(&mut self, path: &Path, meta: &Metadata) -> Stamp {
        Stamp { content: self.content(path, meta), ..Stamp::of(meta) }
    }

    /// Returns the digest of a file in memory. A file that is too large to be read to its end has none.
    fn content(&mut self, path: &Path, meta: &Metadata) -> Option<blake3::Hash> {
        let is_read = meta.is_file() && meta.len() > 0 && meta.len() <= MAX_READ_FILE_BYTES;
        if !is_read || !self.lies_in_memory(path, meta) {
            return None;
        }
        regular::digest(open_file(path).ok()?).ok()
    }

    /// Returns true if a file lies in memory, so that its times do not show every change of its content.
    pub fn lies_in_memory(&mut self, path: &Path, meta: &Metadata) -> bool {
        *self.in_memory.entry(meta.dev()).or_insert_with(|| is_in_memory(path))
    }
}

/// Returns true if a path lies in a file system of the kind `tmpfs`.
#[cfg(target_os = "linux")]
fn is_in_memory(path: &Path) -> bool {
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == TMPFS)
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> bool {
    false
}

/// The stamps of a folder and of everything in it.
#[derive(Debug)]
pub struct FolderStamps {
    root: PathBuf,
    stamps: BTreeMap<PathBuf, Stamp>,
}

impl FolderStamps {
    /// Takes the stamps of a folder. Of a file or a link, the only stamp is its own.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn of(root: &Path) -> io::Result<Self> {
        let meta = root.symlink_metadata()?;
        let mut stamper = Stamper::default();
        let mut stamps = BTreeMap::from([(PathBuf::new(), stamper.stamp(root, &meta))]);
        if meta.is_dir() {
            walk(root, |path, meta| {
                stamps.insert(path.to_owned(), stamper.stamp(&root.join(path), meta));
                Descend::Enter
            })?;
        }
        Ok(Self { root: root.to_owned(), stamps })
    }

    /// Returns the first path, relative to the folder, that was made, changed or removed since the stamps were taken. The path is
    /// empty if it is the folder itself, or if the folder cannot be read.
    pub fn first_change(&self) -> Option<PathBuf> {
        self.changes().into_iter().next()
    }

    /// Returns all paths, relative to the folder, that were made, changed or removed since the stamps were taken. A path is
    /// empty if it is the folder itself, or if the folder cannot be read.
    pub fn changes(&self) -> BTreeSet<PathBuf> {
        let Ok(now) = Self::of(&self.root) else { return BTreeSet::from([PathBuf::new()]) };
        let paths = self.stamps.keys().chain(now.stamps.keys());
        paths.filter(|path| self.stamps.get(*path) != now.stamps.get(*path)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// Returns the first change that `act` makes in a folder with the files `a` and `d/b`.
    fn first_change(act: impl FnOnce(&Path)) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("copy");
        fs::create_dir_all(folder.join("d")).unwrap();
        for path in ["a", "d/b"] {
            fs::write(folder.join(path), "text").unwrap();
        }
        let stamps = FolderStamps::of(&folder).unwrap();
        // File systems count time in steps of a few milliseconds.
        sleep(Duration::from_millis(30));
        act(&folder);
        stamps.first_change().map(|path| path.display().to_string())
    }

    #[test]
    fn every_change_of_a_file_is_noticed_and_reading_is_none() {
        assert_eq!(first_change(|folder| assert_eq!(fs::read_to_string(folder.join("d/b")).unwrap(), "text")), None);
        let told = |path: &str| Some(path.to_owned());
        assert_eq!(first_change(|folder| fs::write(folder.join("d/c"), "").unwrap()), told("d/c"));
        assert_eq!(first_change(|folder| fs::remove_file(folder.join("a")).unwrap()), told("a"));
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        let stamps = FolderStamps::of(root.path()).unwrap();
        fs::write(root.path().join("d/new"), "").unwrap();
        assert_eq!(stamps.changes(), BTreeSet::from(["d/new".into()]));
        // A file has a stamp, too.
        let stamps = FolderStamps::of(&root.path().join("d/new")).unwrap();
        assert_eq!(stamps.first_change(), None);
        fs::remove_file(root.path().join("d/new")).unwrap();
        assert_eq!(stamps.first_change(), Some(PathBuf::new()));
        assert_eq!(first_change(|folder| fs::rename(folder, folder.with_file_name("other")).unwrap()), told(""));
        // The same size and the same time of writing.
        let forge = |folder: &Path| {
            let path = folder.join("d/b");
            let written = path.metadata().unwrap().modified().unwrap();
            fs::write(&path, "TEXT").unwrap();
            File::options().write(true).open(&path).unwrap().set_times(FileTimes::new().set_modified(written)).unwrap();
        };
        assert_eq!(first_change(forge), told("d/b"));
    }
}
