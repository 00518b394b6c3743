//! Workspaces: the folder that an agent works in, new for each trial, and the agent's changes to it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use stamp::Stamp;
use walk::{Descend, MAX_FOLDER_DEPTH, MAX_PATH_BYTES, Unread, walk};

pub mod apply;
pub mod beside_patch;
pub mod beyond_patch;
pub mod openat;
pub mod change;
pub mod git;
pub mod git_folders;
mod git_index;
pub mod git_source;
pub mod hidden;
pub mod link_targets;
pub mod make_ready;
pub mod old_place;
pub mod patch;
pub mod agent_fs;
pub mod remove;
pub mod repository;
pub mod restore;
pub mod same;
pub mod stamp;
pub mod tree;
pub mod tree_digest;
pub mod walk;

/// The size of the largest file of an agent that is read or copied to its end, in bytes. A file with holes of any size takes no
/// disk, and reading it would take hours.
pub const MAX_READ_FILE_BYTES: u64 = 1 << 30;

/// The reason why a workspace could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The file system returned an error.
    #[error("could not {doing} {path}: {source}{}", crate::resources::hint(source))]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A link points out of the folder that is copied.
    #[error("the link {link} points to {target}, outside of the folder that is copied; take it out of the fixture")]
    Escapes {
        link: PathBuf,
        /// The target of the link.
        target: PathBuf,
    },
    /// A path that is neither a file, a folder nor a link.
    #[error("{0} is neither a file, a folder nor a link, so it cannot be copied")]
    Special(PathBuf),
    /// A folder that is nested too deeply.
    #[error(
        "{0} cannot be copied: the maximum is {MAX_FOLDER_DEPTH} levels of folders and {MAX_PATH_BYTES} bytes of a path; shorten the path, or take it out of the fixture"
    )]
    TooDeep(PathBuf),
}

impl WorkspaceError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| WorkspaceError::Io { doing, path, source }
    }
}

/// Copies a folder: files with their modes (sharing blocks where the file system can), links as links, and empty
/// folders. Links that point out of the folder are refused. With `over`, existing files are replaced.
///
/// # Errors
/// Returns an error if the file system refuses, or the folder holds something that cannot be copied.
pub fn copy_folder(from: &Path, to: &Path, over: bool) -> Result<(), WorkspaceError> {
    copy(from, to, CopyMode { over, checked: true }, |_, _| false)
}

/// Copies a folder as [`copy_folder`] does, without some of the files or folders in it.
///
/// # Errors
/// Returns the errors of [`copy_folder`].
pub fn copy_folder_without(from: &Path, to: &Path, left_out: &[PathBuf]) -> Result<(), WorkspaceError> {
    let is_left_out = |path: &Path| left_out.iter().any(|part| path.starts_with(part));
    copy(from, to, CopyMode { over: false, checked: true }, |path, _| is_left_out(path))
}

/// Checks that [`copy_folder`] can copy everything in a folder, without reading files.
///
/// # Errors
/// Returns the first thing that cannot be copied.
pub fn can_be_copied(folder: &Path) -> Result<(), WorkspaceError> {
    let mut first = None;
    let left = walk(folder, |path, meta| {
        let path = folder.join(path);
        let done = if meta.is_symlink() {
            inner_link(folder, &path).map(drop)
        } else if meta.is_file() || meta.is_dir() {
            Ok(())
        } else {
            Err(WorkspaceError::Special(path))
        };
        first = first.take().or(done.err());
        if first.is_some() { Descend::Skip } else { Descend::Enter }
    });
    let left = left.map_err(WorkspaceError::io("read the folder", folder))?;
    first.or(left.into_iter().next().map(|left| unread(folder, left))).map_or(Ok(()), Err)
}

fn unread(folder: &Path, (path, why): (PathBuf, Unread)) -> WorkspaceError {
    match why {
        Unread::TooDeep => WorkspaceError::TooDeep(folder.join(path)),
        Unread::Refused(error) => WorkspaceError::io("read", &folder.join(path))(error),
    }
}

/// Copies a folder that programs have worked in, with the permission bits of its folders. Links are copied unchanged,
/// wherever they point; sockets and pipes are not copied. Anything that cannot be copied is left out, and the rest is still
/// copied.
///
/// # Errors
/// Returns the first failure: an error of the file system, or a file that is nested too deeply.
pub fn copy_as_it_is(from: &Path, to: &Path) -> Result<(), WorkspaceError> {
    copy(from, to, CopyMode { over: false, checked: false }, |_, _| false)
}

/// A file that a copy does not hold as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCopied {
    /// The path in the folder.
    pub path: PathBuf,
    /// The kind of file, in words with an article.
    kind: &'static str,
}

/// The special files of a folder that was copied: all but plain files, folders and links.
#[derive(Debug, Default)]
pub struct SpecialFiles {
    /// The files that the copy does not hold as they are.
    pub not_copied: Vec<NotCopied>,
    /// True if there are devices, pipes or sockets.
    pub has_special: bool,
    /// True if files have several names in the folder.
    pub has_linked: bool,
}

impl fmt::Display for NotCopied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.kind)
    }
}

/// Copies a folder as [`copy_as_it_is`] does, and also its pipes, its sockets and the hard links between its files, as
/// far as the system makes them.
///
/// # Errors
/// Returns the errors of [`copy_as_it_is`].
pub fn copy_with_special_files(from: &Path, to: &Path) -> Result<SpecialFiles, WorkspaceError> {
    // The first name in the copy of each file with several names.
    let mut names: HashMap<(u64, u64), PathBuf> = HashMap::new();
    let mut found = SpecialFiles::default();
    copy(from, to, CopyMode { over: false, checked: false }, |path, meta| {
        if meta.is_dir() {
            return false;
        }
        let target = to.join(path);
        if meta.nlink() > 1 {
            let file = (meta.dev(), meta.ino());
            match names.get(&file) {
                None => _ = names.insert(file, target.clone()),
                Some(first) => {
                    found.has_linked = true;
                    if fs::hard_link(first, &target).is_ok() {
                        return true;
                    }
                    found.not_copied.push(NotCopied { path: path.to_owned(), kind: "a hard link" });
                }
            }
        }
        if meta.is_file() || meta.is_symlink() {
            return false;
        }
        found.has_special = true;
        if !make_special(&target, meta) && found.not_copied.last().is_none_or(|last| last.path != path) {
            found.not_copied.push(NotCopied { path: path.to_owned(), kind: special_kind(meta.file_type()) });
        }
        true
    })?;
    Ok(found)
}

fn special_kind(kind: fs::FileType) -> &'static str {
    match () {
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

/// Makes a pipe or a socket with the permission bits of another one. Returns false if that failed, or if the other one is a device.
#[cfg(not(target_vendor = "apple"))]
fn make_special(target: &Path, meta: &fs::Metadata) -> bool {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let kind = FileType::from_raw_mode(meta.mode());
    matches!(kind, FileType::Fifo | FileType::Socket)
        && mknodat(CWD, target, kind, Mode::from_raw_mode(meta.mode()), 0).is_ok()
        && fs::set_permissions(target, meta.permissions()).is_ok()
}

/// Returns false: this system makes such files only for its administrator.
#[cfg(target_vendor = "apple")]
fn make_special(_: &Path, _: &fs::Metadata) -> bool {
    false
}

/// The content of a folder when it was copied.
#[derive(Debug, Default)]
pub struct FoundFiles {
    /// The stamps of its files and links.
    pub stamps: BTreeMap<PathBuf, Stamp>,
    /// Its sockets, devices and pipes, which the copy lacks.
    pub special: BTreeSet<PathBuf>,
}

/// Copies a folder as [`copy_as_it_is`] does, and returns what the folder holds.
///
/// # Errors
/// Returns the errors of [`copy_as_it_is`].
pub fn copy_with_stamps(from: &Path, to: &Path) -> Result<FoundFiles, WorkspaceError> {
    let mut found = FoundFiles::default();
    copy(from, to, CopyMode { over: false, checked: false }, |path, meta| {
        if meta.is_file() || meta.is_symlink() {
            found.stamps.insert(path.to_owned(), Stamp::of(meta));
        } else if !meta.is_dir() {
            found.special.insert(path.to_owned());
        }
        false
    })?;
    Ok(found)
}

/// The way in which a folder is copied.
#[derive(Debug, Clone, Copy)]
struct CopyMode {
    /// Existing files are replaced.
    over: bool,
    /// Links out of the folder, sockets and pipes are refused, as in a fixture.
    checked: bool,
}

/// Copies a folder. `see` gets each path in it before it is copied, and returns true if it made the copy itself.
fn copy(
    from: &Path,
    to: &Path,
    how: CopyMode,
    mut see: impl FnMut(&Path, &fs::Metadata) -> bool,
) -> Result<(), WorkspaceError> {
    make_folder(to, how.over)?;
    let (mut first, mut modes) = (None, Vec::new());
    let left = walk(from, |path, meta| {
        if how.checked && first.is_some() {
            return Descend::Skip;
        }
        if see(path, meta) {
            return Descend::Enter;
        }
        let done = copy_entry(from, &from.join(path), &to.join(path), meta, how);
        if done.is_ok() && meta.is_dir() && !how.checked {
            modes.push((to.join(path), meta.permissions().mode() & 0o7777));
        }
        let next = if done.is_ok() { Descend::Enter } else { Descend::Skip };
        first = first.take().or(done.err());
        next
    });
    let left = left.map_err(WorkspaceError::io("read the folder", from))?;
    // A folder follows those above it, whose permission bits may deny the way to it.
    for (folder, mode) in modes.into_iter().rev() {
        let done = fs::set_permissions(&folder, Permissions::from_mode(mode | 0o700));
        first = first.take().or(done.map_err(WorkspaceError::io("set the permission bits of", &folder)).err());
    }
    first.or(left.into_iter().next().map(|left| unread(from, left))).map_or(Ok(()), Err)
}

fn make_folder(to: &Path, over: bool) -> Result<(), WorkspaceError> {
    match fs::create_dir(to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() && !to.is_symlink() => Ok(()),
        Err(error) if over && error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(to).map_err(WorkspaceError::io("replace", to))?;
            fs::create_dir(to).map_err(WorkspaceError::io("make the folder", to))
        }
        Err(error) => Err(WorkspaceError::io("make the folder", to)(error)),
    }
}

fn copy_entry(
    root: &Path,
    source: &Path,
    target: &Path,
    meta: &fs::Metadata,
    how: CopyMode,
) -> Result<(), WorkspaceError> {
    if meta.is_dir() {
        return make_folder(target, how.over);
    }
    if how.over {
        remove::remove(target).map_err(WorkspaceError::io("replace", target))?;
    }
    if meta.is_symlink() {
        copy_link(root, source, target, how)
    } else if meta.is_file() {
        fs::copy(source, target).map(|_| ()).map_err(WorkspaceError::io("copy", source))
    } else if how.checked {
        Err(WorkspaceError::Special(source.to_owned()))
    } else {
        Ok(())
    }
}

fn copy_link(root: &Path, source: &Path, target: &Path, how: CopyMode) -> Result<(), WorkspaceError> {
    let points = if how.checked { inner_link(root, source)? } else { read_link(source)? };
    symlink(&points, target).map_err(WorkspaceError::io("make the link", target))
}

fn read_link(link: &Path) -> Result<PathBuf, WorkspaceError> {
    fs::read_link(link).map_err(WorkspaceError::io("read the link", link))
}

/// Returns where a link points, if it leads to a place in a folder.
fn inner_link(root: &Path, link: &Path) -> Result<PathBuf, WorkspaceError> {
    let points = read_link(link)?;
    match stays_within(root, link, &points).map_err(WorkspaceError::io("follow the link", link))? {
        true => Ok(points),
        false => Err(WorkspaceError::Escapes { link: link.to_owned(), target: points }),
    }
}

/// Returns true if a link leads to a place in a folder, through other links too, and never leaves the folder on the
/// way.
fn stays_within(root: &Path, link: &Path, points: &Path) -> io::Result<bool> {
    let root = root.canonicalize()?;
    let mut at = link.parent().unwrap_or(&root).canonicalize()?;
    for part in points.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = at.pop(),
            Component::Normal(name) => {
                at.push(name);
                // A missing path is at the place that its name gives.
                at = at.canonicalize().unwrap_or(at);
            }
            Component::RootDir | Component::Prefix(_) => return Ok(false),
        }
        if !at.starts_with(&root) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes files given as text into a folder.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn write_files(files: &BTreeMap<String, String>, to: &Path) -> Result<(), WorkspaceError> {
    fs::create_dir_all(to).map_err(WorkspaceError::io("make the folder", to))?;
    for (name, text) in files {
        let path = to.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(WorkspaceError::io("make the folder", parent))?;
        }
        fs::write(&path, text).map_err(WorkspaceError::io("write", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_modes_links_empty_folders_and_odd_names() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        fs::create_dir_all(from.join("empty/inner")).unwrap();
        fs::write(from.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(from.join("odd \n name\u{fe}"), "x").unwrap();
        symlink("run.sh", from.join("link")).unwrap();
        symlink("../run.sh", from.join("empty/up")).unwrap();
        copy_folder(&from, &to, false).unwrap();
        assert_eq!(fs::metadata(to.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(to.join("empty/up")).unwrap(), Path::new("../run.sh"));
        assert!(to.join("empty/inner").is_dir() && to.join("odd \n name\u{fe}").is_file());
    }

    #[test]
    fn a_link_that_leads_out_is_refused() {
        for target in ["../outside", "/etc/passwd", "a/../../x"] {
            let root = tempfile::tempdir().unwrap();
            let from = root.path().join("from");
            fs::create_dir(&from).unwrap();
            symlink(target, from.join("link")).unwrap();
            let error = copy_folder(&from, &root.path().join("to"), false).unwrap_err();
            assert!(matches!(error, WorkspaceError::Escapes { .. }), "{target}: {error}");
        }
    }

    #[test]
    fn a_link_that_leads_out_through_other_links_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        fs::create_dir_all(from.join("sub/deep")).unwrap();
        fs::write(root.path().join("secret.txt"), "outside").unwrap();
        symlink(".", from.join("d")).unwrap();
        symlink("sub/deep", from.join("s")).unwrap();
        symlink("d/s/../deep", from.join("good")).unwrap();
        symlink("not/there", from.join("dangling")).unwrap();
        symlink("good", from.join("sub/deep/self")).unwrap();
        copy_folder(&from, &root.path().join("to"), false).unwrap();
        for target in ["d/../secret.txt", "d/d/../not-there", "s/../../../secret.txt", "dangling/../../x"] {
            symlink(target, from.join("e")).unwrap();
            let error = copy_folder(&from, &root.path().join("again"), true).unwrap_err();
            assert!(matches!(error, WorkspaceError::Escapes { .. }), "{target}: {error}");
            fs::remove_file(from.join("e")).unwrap();
        }
    }

    #[test]
    fn what_programs_left_is_copied_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        fs::create_dir(&from).unwrap();
        symlink("/bin/sh", from.join("link")).unwrap();
        std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        fs::create_dir_all(from.join("closed/inner")).unwrap();
        fs::set_permissions(from.join("closed/inner"), Permissions::from_mode(0o2711)).unwrap();
        fs::set_permissions(from.join("closed"), Permissions::from_mode(0o500)).unwrap();
        copy_as_it_is(&from, &to).unwrap();
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("/bin/sh"));
        assert!(to.join("socket").symlink_metadata().is_err());
        // The owner may always change the copy.
        for (folder, mode) in [("closed", 0o700), ("closed/inner", 0o2711)] {
            assert_eq!(fs::metadata(to.join(folder)).unwrap().permissions().mode() & 0o7777, mode, "{folder}");
        }
    }

    #[cfg(not(target_vendor = "apple"))]
    #[test]
    fn pipes_sockets_and_hard_links_are_copied_if_asked_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        fs::create_dir_all(from.join("d")).unwrap();
        fs::write(from.join("a"), "1").unwrap();
        fs::set_permissions(from.join("a"), Permissions::from_mode(0o400)).unwrap();
        fs::hard_link(from.join("a"), from.join("d/b")).unwrap();
        // Another name of this file is outside.
        fs::write(from.join("c"), "2").unwrap();
        fs::hard_link(from.join("c"), root.path().join("outside")).unwrap();
        std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        mknodat(CWD, from.join("d/pipe"), FileType::Fifo, Mode::empty(), 0).unwrap();
        fs::set_permissions(from.join("d/pipe"), Permissions::from_mode(0o622)).unwrap();
        let copied = copy_with_special_files(&from, &to).unwrap();
        assert!(copied.not_copied.is_empty() && copied.has_special && copied.has_linked, "{copied:?}");
        let meta = |path: &Path| path.symlink_metadata().unwrap();
        assert_eq!(meta(&to.join("a")).ino(), meta(&to.join("d/b")).ino());
        assert_eq!((meta(&to.join("a")).nlink(), meta(&to.join("c")).nlink()), (2, 1));
        for path in ["socket", "d/pipe"] {
            let (copy, own) = (meta(&to.join(path)), meta(&from.join(path)));
            assert_eq!((copy.file_type(), copy.mode()), (own.file_type(), own.mode()), "{path}");
        }
    }

    #[test]
    fn laying_over_replaces_files_links_and_folders_by_what_is_laid() {
        let root = tempfile::tempdir().unwrap();
        let (hidden, workspace) = (root.path().join("hidden"), root.path().join("workspace"));
        fs::create_dir_all(hidden.join("sub")).unwrap();
        fs::write(hidden.join("test.sh"), "right").unwrap();
        fs::write(hidden.join("sub/x"), "right").unwrap();
        fs::create_dir(&workspace).unwrap();
        // A link or a folder that an agent puts in the place of a check must not catch or divert the check.
        fs::write(root.path().join("elsewhere"), "mine").unwrap();
        symlink("../elsewhere", workspace.join("test.sh")).unwrap();
        fs::write(workspace.join("sub"), "in the way").unwrap();
        copy_folder(&hidden, &workspace, true).unwrap();
        assert_eq!(fs::read_to_string(workspace.join("test.sh")).unwrap(), "right");
        assert_eq!(fs::read_to_string(workspace.join("sub/x")).unwrap(), "right");
        assert_eq!(fs::read_to_string(root.path().join("elsewhere")).unwrap(), "mine");
    }
}
