//! The files of a folder as they are now, without what is ignored: what two states are compared by.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file, with its size and whether it may be executed.
    File {
        /// Size in bytes.
        len: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A link, with where it points.
    Link(PathBuf),
}

/// The files and links below a folder, by their path relative to it.
pub struct Tree {
    /// The folder.
    pub root: PathBuf,
    /// What lies where.
    pub entries: BTreeMap<PathBuf, Entry>,
    /// Bytes of files that were left out as ignored.
    pub ignored_bytes: u64,
}

/// What is left out of a [`Tree`]. `.git` always is.
pub struct Ignore {
    rules: Gitignore,
}

impl Ignore {
    /// The rules of the original folder's own `.gitignore` files, and further globs in the same form.
    pub fn of(original: &Path, globs: &[String]) -> Self {
        let mut builder = GitignoreBuilder::new(original);
        let mut folders = vec![original.to_owned()];
        while let Some(folder) = folders.pop() {
            let file = folder.join(".gitignore");
            if file.is_file() && folder == original {
                builder.add(file);
            } else if let Ok(text) = fs::read_to_string(&file) {
                let below = folder.strip_prefix(original).unwrap_or(Path::new("")).to_string_lossy().into_owned();
                for line in text.lines() {
                    let _ = builder.add_line(None, &below_folder(line, &below));
                }
            }
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let inner = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.extend(inner.map(|entry| entry.path()).filter(|path| !path.ends_with(".git")));
        }
        for glob in globs {
            let _ = builder.add_line(None, glob);
        }
        Self { rules: builder.build().unwrap_or_else(|_| Gitignore::empty()) }
    }

    fn covers(&self, path: &Path, is_folder: bool) -> bool {
        path.file_name().is_some_and(|name| name == ".git") || self.rules.matched(path, is_folder).is_ignore()
    }
}

/// A line of a `.gitignore` below the root, said from the root.
fn below_folder(line: &str, folder: &str) -> String {
    let (not, rule) = line.strip_prefix('!').map_or(("", line), |rule| ("!", rule));
    if rule.trim().is_empty() || rule.starts_with('#') {
        return String::new();
    }
    let anchored = rule.trim_end_matches('/').contains('/');
    let rule = rule.strip_prefix('/').unwrap_or(rule);
    if anchored { format!("{not}/{folder}/{rule}") } else { format!("{not}/{folder}/**/{rule}") }
}

impl Tree {
    /// Reads a folder.
    ///
    /// # Errors
    /// The folder could not be read. What vanishes while it is read is left out.
    pub fn read(root: &Path, ignore: &Ignore) -> io::Result<Self> {
        let mut tree = Self { root: root.to_owned(), entries: BTreeMap::new(), ignored_bytes: 0 };
        tree.read_folder(Path::new(""), ignore)?;
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, ignore: &Ignore) -> io::Result<()> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if folder.as_os_str().is_empty() => return Err(error),
            Err(_) => return Ok(()),
        };
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            let Ok(meta) = entry.metadata() else { continue };
            if ignore.covers(&path, meta.is_dir()) {
                self.ignored_bytes += size_of(&entry.path());
            } else if meta.is_dir() {
                self.read_folder(&path, ignore)?;
            } else if meta.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap_or_default();
                self.entries.insert(path, Entry::Link(target));
            } else if meta.is_file() {
                let executable = meta.permissions().mode() & 0o100 != 0;
                self.entries.insert(path, Entry::File { len: meta.len(), executable });
            }
        }
        Ok(())
    }

    /// The bytes of an entry: a file's content, a link's target.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.entries.get(path) {
            Some(Entry::Link(target)) => Ok(target.as_os_str().as_bytes().to_vec()),
            Some(Entry::File { .. }) => fs::read(self.root.join(path)),
            None => Ok(Vec::new()),
        }
    }
}

fn size_of(path: &Path) -> u64 {
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    if !meta.is_dir() {
        return meta.len();
    }
    fs::read_dir(path).map_or(0, |entries| entries.flatten().map(|entry| size_of(&entry.path())).sum())
}
