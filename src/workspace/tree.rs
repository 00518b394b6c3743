//! The current files of a folder, except ignored ones, for comparing two states.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::beyond_patch::{BeyondPatch, USUAL_MODES};
use super::git_index;
use super::openat::open_file;
use super::walk::{Descend, Unread, walk};

use crate::regular;

/// A file or a link in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    File {
        /// Size in bytes.
        len: u64,
        /// True if the file's owner may execute the file.
        executable: bool,
    },
    /// A link, with its target.
    Link(PathBuf),
}

/// The size of a file or folder that was left out as ignored. A new file in a folder changes it, even an empty one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IgnoredSize {
    /// The number of bytes in files and of the targets of links.
    pub bytes: u64,
    /// The number of files, links and folders in the folder.
    pub entries: u64,
}

/// The files and links below a folder, by their path relative to the folder.
pub struct Tree {
    /// The folder.
    pub root: PathBuf,
    /// The files and links, by path.
    pub entries: BTreeMap<PathBuf, Entry>,
    /// The number of bytes in files that were left out as ignored, without those in `.git`.
    pub ignored_bytes: u64,
    /// True if something was left out as ignored, even if it has no bytes.
    pub has_ignored: bool,
    /// The files and folders that were left out as ignored, without what lies in these folders.
    pub ignored: BTreeMap<PathBuf, IgnoredSize>,
    /// The ignored folders that were read, because git tracks files in them.
    pub entered: BTreeSet<PathBuf>,
    /// Folders whose content is unknown, and links whose target is unknown, each with the reason.
    pub unread: BTreeMap<PathBuf, Unread>,
    /// The state of the workspace that no patch can hold.
    pub beyond: BeyondPatch,
}

/// The rules for files that are left out of a [`Tree`]. `.git` always is.
#[derive(Debug)]
pub struct Ignore {
    rules: Gitignore,
    /// The files that a rule covers and that the repository of the original tracks: to git, they are not ignored.
    tracked: BTreeSet<PathBuf>,
    /// The folders of these files.
    folders: BTreeSet<PathBuf>,
}

impl Ignore {
    /// Reads the rules of the `.gitignore` files in the original folder, and adds globs of the same form. The former do not
    /// apply to files that the repository in the folder tracks.
    ///
    /// # Errors
    /// Returns an error if an existing `.gitignore` cannot be read, or a glob is invalid: the rules are then unknown.
    pub fn of(original: &Path, globs: &[String]) -> io::Result<Self> {
        let mut builder = GitignoreBuilder::new(original);
        let (mut folders, mut repositories) = (vec![original.to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            let file = folder.join(".gitignore");
            let text = match regular::read(&file) {
                Ok(text) => text,
                // Git ignores a folder of that name, and a tree leaves out a folder that may not be entered.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => Vec::new(),
                Err(_) if is_closed(&folder) => Vec::new(),
                Err(error) => return Err(named(&file, &error)),
            };
            let text = String::from_utf8_lossy(&text);
            let below = folder.strip_prefix(original).unwrap_or(Path::new("")).to_string_lossy().into_owned();
            for line in text.trim_start_matches('\u{feff}').lines() {
                let rule = if below.is_empty() { line.to_owned() } else { below_folder(line, &below) };
                if builder.add_line(None, &rule).is_err() {
                    // To Git, a brace is a character like others, and a rule with a wrong range matches nothing.
                    let plain = rule.replace('{', "\\{").replace('}', "\\}");
                    let _ = builder.add_line(None, &plain);
                }
            }
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => continue,
                Err(error) => return Err(named(&folder, &error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| named(&folder, &error))?;
                if entry.file_name() == ".git" {
                    repositories.push(folder.clone());
                }
                let is_folder = match entry.file_type() {
                    Ok(kind) => kind.is_dir(),
                    Err(error) if error.kind() == ErrorKind::NotFound => false,
                    Err(error) => return Err(named(&entry.path(), &error)),
                };
                if is_folder && entry.file_name() != ".git" {
                    folders.push(entry.path());
                }
            }
        }
        let mut of_case = GitignoreBuilder::new(original);
        for glob in globs {
            let wrong = |error| io::Error::other(format!("`workspace.ignore`: {error}"));
            builder.add_line(None, glob).map_err(wrong)?;
            of_case.add_line(None, glob).map_err(wrong)?;
        }
        let wrong = |error| io::Error::other(format!("the rules of `.gitignore` and `workspace.ignore`: {error}"));
        let (rules, of_case) = (builder.build().map_err(wrong)?, of_case.build().map_err(wrong)?);
        let is_covered = |rules: &Gitignore, path: &Path| rules.matched_path_or_any_parents(path, false).is_ignore();
        let tracked: BTreeSet<PathBuf> = repositories
            .iter()
            .flat_map(|repository| {
                let below = repository.strip_prefix(original).unwrap_or(Path::new(""));
                git_index::tracked(repository).into_iter().map(|path| below.join(path))
            })
            .filter(|path| is_covered(&rules, path) && !is_covered(&of_case, path))
            .collect();
        let above = |path: &PathBuf| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        let folders = tracked.iter().flat_map(above).filter(|folder| !folder.as_os_str().is_empty()).collect();
        Ok(Self { rules, tracked, folders })
    }

    /// Returns true for an ignored folder with tracked files.
    fn is_entered(&self, folder: &Path) -> bool {
        self.folders.contains(folder) && self.rules.matched_path_or_any_parents(folder, true).is_ignore()
    }

    /// Returns true if a relative path, or a folder that contains it, is left out as a file or as a folder.
    pub fn may_cover(&self, path: &Path) -> bool {
        if self.tracked.contains(path) {
            return false;
        }
        let mut above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        self.covers(path, false) || self.covers(path, true) || above.any(|folder| self.covers(folder, true))
    }

    fn covers(&self, path: &Path, is_folder: bool) -> bool {
        if path.file_name().is_some_and(|name| name == ".git") {
            return true;
        }
        let tracked = if is_folder { &self.folders } else { &self.tracked };
        if tracked.contains(path) {
            return false;
        }
        // Below an ignored folder that is entered for a tracked file, everything else is ignored.
        let is_entered = path.parent().is_some_and(|folder| self.is_entered(folder));
        let matched = match is_entered {
            true => self.rules.matched_path_or_any_parents(path, is_folder),
            false => self.rules.matched(path, is_folder),
        };
        matched.is_ignore()
    }
}

/// Returns true if a folder may not be entered.
fn is_closed(folder: &Path) -> bool {
    fs::read_dir(folder).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Rewrites a line of a `.gitignore` below the root, so that it is relative to the root.
fn below_folder(line: &str, folder: &str) -> String {
    let (not, rule) = line.strip_prefix('!').map_or(("", line), |rule| ("!", rule));
    if rule.trim().is_empty() || rule.starts_with('#') {
        return String::new();
    }
    let anchored = rule.trim_end().trim_end_matches('/').contains('/');
    let rule = rule.strip_prefix('/').unwrap_or(rule);
    // The signs of a glob in the folder's name stand for themselves.
    let escaped = |c: char| "\\*?[]{}".contains(c).then_some('\\').into_iter().chain([c]);
    let folder: String = folder.chars().flat_map(escaped).collect();
    if anchored { format!("{not}/{folder}/{rule}") } else { format!("{not}/{folder}/**/{rule}") }
}

impl Tree {
    /// Reads a folder without its ignored files.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read. A file that vanishes during the reading is left out.
    pub fn read(root: &Path, ignore: &Ignore) -> io::Result<Self> {
        let (mut ignored_bytes, mut has_ignored, mut ignored) = (0, false, BTreeMap::new());
        let (mut repositories, mut all_ignored, mut entered) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut tree = Self::gather(root, |path, meta| {
            if path.file_name().is_some_and(|name| name == ".git") {
                repositories.insert(path.to_owned());
                return false;
            }
            if ignore.covers(path, meta.is_dir()) {
                has_ignored = true;
                all_ignored.insert(path.to_owned());
                let alone = IgnoredSize { bytes: meta.len(), entries: 0 };
                let size = if meta.is_dir() { size_of(&root.join(path)) } else { alone };
                ignored_bytes += size.bytes;
                ignored.insert(path.to_owned(), size);
                return false;
            }
            if meta.is_dir() && ignore.is_entered(path) {
                entered.insert(path.to_owned());
            }
            true
        })?;
        tree.entered = entered;
        (tree.beyond.repositories, tree.beyond.ignored) = (repositories, all_ignored);
        (tree.ignored_bytes, tree.has_ignored, tree.ignored) = (ignored_bytes, has_ignored, ignored);
        Ok(tree)
    }

    /// Reads the selected files of a folder, ignored or not.
    ///
    /// # Errors
    /// Returns the errors of [`Tree::read`].
    pub fn only(root: &Path, wanted: impl Fn(&Path) -> bool) -> io::Result<Self> {
        Self::gather(root, |path, meta| meta.is_dir() || wanted(path))
    }

    fn gather(root: &Path, mut wanted: impl FnMut(&Path, &Metadata) -> bool) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        let mut beyond = BeyondPatch::default();
        let mut unread = BTreeMap::new();
        // The first name of each file with several names. A name elsewhere, as in the cache of a package manager, changes nothing.
        let mut names: HashMap<(u64, u64), PathBuf> = HashMap::new();
        let left = walk(root, |path, meta| {
            if !wanted(path, meta) {
                return Descend::Skip;
            }
            if meta.is_symlink() {
                match fs::read_link(root.join(path)) {
                    Ok(target) => drop(entries.insert(path.to_owned(), Entry::Link(target))),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => drop(unread.insert(path.to_owned(), Unread::Refused(error))),
                }
            } else if meta.is_file() {
                let mode = meta.permissions().mode() & 0o7777;
                entries.insert(path.to_owned(), Entry::File { len: meta.len(), executable: mode & 0o100 != 0 });
                if !USUAL_MODES.contains(&mode) {
                    beyond.modes.insert(path.to_owned(), mode);
                }
                if meta.nlink() > 1 {
                    let first = names.entry((meta.dev(), meta.ino())).or_insert_with(|| path.to_owned());
                    if first != path {
                        beyond.linked.extend([first.clone(), path.to_owned()]);
                    }
                }
            } else if meta.is_dir() {
                let mode = meta.permissions().mode() & 0o7777;
                if !USUAL_MODES.contains(&mode) {
                    beyond.modes.insert(path.to_owned(), mode);
                }
                beyond.folders.insert(path.to_owned());
            } else {
                beyond.special.insert(path.to_owned());
            }
            Descend::Enter
        })?;
        unread.extend(left);
        Ok(Self {
            root: root.to_owned(),
            entries,
            ignored_bytes: 0,
            has_ignored: false,
            ignored: BTreeMap::new(),
            entered: BTreeSet::new(),
            unread,
            beyond,
        })
    }

    /// Adds sockets, devices and pipes that were in the folder of which this one is a copy, because no copy holds them. Ignored
    /// ones count with the ignored place in which they are.
    pub fn add_special(&mut self, special: &BTreeSet<PathBuf>, ignore: &Ignore) {
        for path in special {
            let mut above: Vec<&Path> = path.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
            above.reverse();
            match above.into_iter().find(|above| ignore.covers(above, *above != path.as_path())) {
                Some(place) if place.file_name().is_some_and(|name| name == ".git") => {}
                Some(place) => {
                    let size = self.ignored.entry(place.to_owned()).or_default();
                    size.entries += u64::from(place != path.as_path());
                    self.has_ignored = true;
                }
                None => _ = self.beyond.special.insert(path.clone()),
            }
        }
    }

    /// Returns true if a file or folder was left out as ignored. Returns false for what is in an ignored folder.
    pub fn is_left_out(&self, path: &Path) -> bool {
        self.beyond.ignored.contains(path)
    }

    /// Returns true if a path lies in a folder that could not be read.
    pub fn is_unknown(&self, path: &Path) -> bool {
        !self.unread.is_empty() && path.ancestors().skip(1).any(|folder| self.unread.contains_key(folder))
    }

    /// Opens a file for reading piece by piece.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        open_file(&self.root.join(path))
    }

    /// Returns the bytes of an entry: a file's content up to a maximum, or a link's target.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn bytes(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        match self.entries.get(path) {
            Some(Entry::Link(target)) => Ok(target.as_os_str().as_bytes().to_vec()),
            Some(Entry::File { .. }) => {
                let mut bytes = Vec::new();
                self.open(path)?.take(most).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            None => Ok(Vec::new()),
        }
    }
}

impl Entry {
    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Entry::File { len, .. } => *len,
            Entry::Link(target) => target.as_os_str().len() as u64,
        }
    }

    /// Returns true if the size is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn size_of(folder: &Path) -> IgnoredSize {
    let mut size = IgnoredSize::default();
    let _ = walk(folder, |_, meta| {
        size.bytes += if meta.is_dir() { 0 } else { meta.len() };
        size.entries += 1;
        Descend::Enter
    });
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_no_glob_removes_no_other_rule() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".gitignore"), "x[z-a]\na{b\nlogs\n").unwrap();
        let ignore = Ignore::of(root.path(), &["out".to_owned()]).unwrap();
        for (path, covered) in [("logs", true), ("out", true), ("a{b", true), ("ab", false), ("xa", false)] {
            assert_eq!(ignore.covers(Path::new(path), false), covered, "{path}");
        }
        let error = Ignore::of(root.path(), &["x[z-a]".to_owned()]).err().unwrap();
        assert!(error.to_string().contains("`workspace.ignore`: "), "{error}");
    }

    #[test]
    fn rules_in_a_folder_hold_for_that_folder_alone() {
        let root = tempfile::tempdir().unwrap();
        for (folder, rules) in [("app/[slug]", "/out\nlogs/ \n"), ("app/{a}*", "x\n")] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join(".gitignore"), rules).unwrap();
        }
        let ignore = Ignore::of(root.path(), &[]).unwrap();
        for (path, covered) in [
            ("app/[slug]/out", true),
            ("app/[slug]/in/logs", true),
            ("app/s/out", false),
            ("app/{a}*/x", true),
            ("app/a/x", false),
            ("app/{a}b/x", false),
        ] {
            assert_eq!(ignore.covers(Path::new(path), true), covered, "{path}");
        }
    }

    #[test]
    fn a_tracked_file_is_not_ignored_and_its_neighbours_are() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), text).unwrap();
        };
        write(".gitignore", "dist/\n*.log\n");
        for path in ["dist/index.js", "dist/new.js", "dist/sub/deep.js", "kept.log", "other.log", "out/a"] {
            write(path, "");
        }
        for words in [&["init", "-q", "."][..], &["add", "--force", "dist/index.js", "kept.log", "out/a"]] {
            let ran = std::process::Command::new("git").args(words).current_dir(root.path()).status().unwrap();
            assert!(ran.success(), "{words:?}");
        }
        let ignore = Ignore::of(root.path(), &[]).unwrap();
        let tree = Tree::read(root.path(), &ignore).unwrap();
        let names: Vec<&str> = tree.entries.keys().filter_map(|path| path.to_str()).collect();
        assert_eq!(names, [".gitignore", "dist/index.js", "kept.log", "out/a"]);
        let ignored: Vec<&str> = tree.ignored.keys().filter_map(|path| path.to_str()).collect();
        assert_eq!(ignored, ["dist/new.js", "dist/sub", "other.log"]);
        assert_eq!(tree.entered.iter().collect::<Vec<_>>(), [Path::new("dist")]);
        // What the case ignores is ignored, tracked or not.
        let ignore = Ignore::of(root.path(), &["dist".to_owned()]).unwrap();
        assert!(ignore.covers(Path::new("dist"), true) && !ignore.covers(Path::new("kept.log"), false));
    }

    #[test]
    fn rules_that_cannot_be_read_are_no_empty_rules() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.path().join(".gitignore"), "\u{feff}top\n").unwrap();
        fs::write(inner.join(".gitignore"), b"low\n\xff\n").unwrap();
        let ignore = Ignore::of(root.path(), &[]).unwrap();
        for (path, covered) in [("top", true), ("a/top", true), ("a/b/low", true), ("low", false)] {
            assert_eq!(ignore.covers(Path::new(path), false), covered, "{path}");
        }
        // A link to itself exists, and no user can read it.
        std::os::unix::fs::symlink(".gitignore", root.path().join("a/.gitignore")).unwrap();
        let error = Ignore::of(root.path(), &[]).err().unwrap();
        assert!(error.to_string().contains("a/.gitignore: "), "{error}");
    }
}
