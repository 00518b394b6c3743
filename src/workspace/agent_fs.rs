//! Accesses files of a workspace on behalf of an agent: links are followed only within the workspace.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, mkdirat, openat, readlinkat};
use rustix::io::Errno;

use super::openat::{kind, open_own};
use crate::paths::MAX_LINKS;

/// The maximum number of bytes of text that one read returns.
const MAX_READ_BYTES: u64 = 8 << 20;
/// The maximum number of bytes that are skipped to reach a line.
const MAX_SKIPPED_BYTES: u64 = 256 << 20;

/// The reason why a path could not be accessed.
#[derive(Debug, thiserror::Error)]
pub enum AgentFsError {
    /// The path is outside the workspace.
    #[error("the path leads out of the workspace")]
    Escapes,
    /// The path does not exist.
    // Gemini recognises a missing file by these words alone.
    #[error("it does not exist")]
    Absent,
    /// The path is not of the expected kind: file or folder.
    #[error("it is not a {0}")]
    IsNo(&'static str),
    /// The file is not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// The requested text is too long for one read.
    #[error("over {MAX_READ_BYTES} bytes were asked for at once; take fewer lines with `line` and `limit`")]
    TooLong,
    /// The file system returned an error.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for AgentFsError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Absent,
            Errno::NOTDIR => Self::IsNo("folder"),
            error => Self::Io(error.into()),
        }
    }
}

/// Reads the text of a file, from a line on (counted from 1), and at most `limit` lines.
///
/// # Errors
/// Returns an error if the path is outside the workspace, or its text cannot be returned.
pub fn read(workspace: &Path, path: &Path, line: Option<u64>, limit: Option<u64>) -> Result<String, AgentFsError> {
    let mut text = BufReader::new(open(&walk(workspace, path, false)?)?);
    if !pass_lines(&mut text, line.unwrap_or(1).saturating_sub(1), MAX_SKIPPED_BYTES)? {
        return Ok(String::new());
    }
    let mut taken = Vec::new();
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 {
        let room = MAX_READ_BYTES + 1 - taken.len() as u64;
        let read = io::Read::take(&mut text, room).read_until(b'\n', &mut taken)?;
        if taken.len() as u64 > MAX_READ_BYTES {
            return Err(AgentFsError::TooLong);
        }
        if read == 0 {
            break;
        }
        left -= 1;
    }
    String::from_utf8(taken).map_err(|_| AgentFsError::NotText)
}

/// Skips lines of together at most about this many bytes. Returns false if the text ends before.
fn pass_lines(text: &mut impl BufRead, lines: u64, most: u64) -> Result<bool, AgentFsError> {
    let mut passed = 0;
    for _ in 0..lines {
        if passed > most {
            return Err(AgentFsError::TooLong);
        }
        match pass_line(text, most - passed)? {
            0 => return Ok(false),
            n => passed += n,
        }
    }
    Ok(true)
}

/// Skips a line without keeping it. Returns the line's length in bytes, or an error once more than `most` bytes were read
/// without a line end.
fn pass_line(text: &mut impl BufRead, most: u64) -> Result<u64, AgentFsError> {
    let mut passed = 0;
    loop {
        let chunk = text.fill_buf()?;
        if chunk.is_empty() {
            return Ok(passed);
        }
        let (used, ended) = match memchr::memchr(b'\n', chunk) {
            Some(end) => (end + 1, true),
            None => (chunk.len(), false),
        };
        text.consume(used);
        passed += used as u64;
        if ended {
            return Ok(passed);
        }
        if passed > most {
            return Err(AgentFsError::TooLong);
        }
    }
}

/// Writes a file, replacing its old content, and makes the folders above it.
///
/// # Errors
/// Returns an error if the path is outside the workspace, or the file system refuses.
pub fn write(workspace: &Path, path: &Path, text: &str) -> Result<(), AgentFsError> {
    let place = walk(workspace, path, true)?;
    if place.kind.is_some_and(|kind| kind != FileType::RegularFile) {
        return Err(AgentFsError::IsNo("file"));
    }
    // The file is truncated only once it is known to be a file: the path may have become something else.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(openat(&place.parent, &place.name, flags, Mode::from_raw_mode(0o666))?);
    if !file.metadata()?.is_file() {
        return Err(AgentFsError::IsNo("file"));
    }
    file.set_len(0)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Returns the real path of a folder.
///
/// # Errors
/// Returns an error if the path is outside the workspace, or is not a folder.
pub fn folder(workspace: &Path, path: &Path) -> Result<PathBuf, AgentFsError> {
    let place = walk(workspace, path, false)?;
    match place.kind {
        Some(FileType::Directory) => Ok(workspace.join(place.path)),
        Some(_) => Err(AgentFsError::IsNo("folder")),
        None => Err(AgentFsError::Absent),
    }
}

/// The place to which a path of the agent leads after its links are followed.
struct PathTarget {
    /// The folder that contains the place.
    parent: OwnedFd,
    /// The name in that folder; `.` for the workspace itself.
    name: OsString,
    /// The path from the workspace, without links.
    path: PathBuf,
    /// The kind of file at the place, if there is one.
    kind: Option<FileType>,
}

fn open(place: &PathTarget) -> Result<File, AgentFsError> {
    match place.kind {
        Some(FileType::RegularFile) => {}
        Some(_) => return Err(AgentFsError::IsNo("file")),
        None => return Err(AgentFsError::Absent),
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&place.parent, &place.name, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(AgentFsError::IsNo("file")) }
}

/// Opens the path components in order, each relative to the open folder, so that no link can be inserted in between.
fn walk(workspace: &Path, path: &Path, make: bool) -> Result<PathTarget, AgentFsError> {
    let mut names = names(workspace, path)?;
    // No folder is made for a path whose target is outside the workspace.
    let mut depth = 0usize;
    for name in &names {
        depth = if name == ".." { depth.checked_sub(1).ok_or(AgentFsError::Escapes)? } else { depth + 1 };
    }
    let mut folders: Vec<(OwnedFd, OsString)> = Vec::new();
    let root = open_own(workspace)?;
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        if name == ".." {
            folders.pop().ok_or(AgentFsError::Escapes)?;
            continue;
        }
        let parent = folders.last().map_or(&root, |(folder, _)| folder);
        let found = match kind(parent, &name) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        match found {
            Some(FileType::Symlink) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = readlinkat(parent, &name, Vec::new())?;
                let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                if target.is_absolute() {
                    folders.clear();
                }
                let mut on = self::names(workspace, target)?;
                on.append(&mut names);
                names = on;
            }
            Some(FileType::Directory) => {
                let folder = enter(parent, &name)?;
                folders.push((folder, name));
            }
            None if make && !names.is_empty() => {
                mkdirat(parent, &name, Mode::from_raw_mode(0o777))?;
                let folder = enter(parent, &name)?;
                folders.push((folder, name));
            }
            None if !names.is_empty() => return Err(AgentFsError::Absent),
            Some(_) if !names.is_empty() => return Err(AgentFsError::IsNo("folder")),
            found => {
                let mut path: PathBuf = folders.iter().map(|(_, name)| name).collect();
                path.push(&name);
                let parent = folders.pop().map_or(root, |(folder, _)| folder);
                return Ok(PathTarget { parent, name, path, kind: found });
            }
        }
    }
    let path = folders.iter().map(|(_, name)| name).collect();
    let parent = folders.pop().map_or(root, |(folder, _)| folder);
    Ok(PathTarget { parent, name: ".".into(), path, kind: Some(FileType::Directory) })
}

fn enter(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Returns the names of a path, relative to the workspace.
fn names(workspace: &Path, path: &Path) -> Result<VecDeque<OsString>, AgentFsError> {
    let below = match path.strip_prefix(workspace) {
        Ok(below) => below,
        Err(_) if path.is_absolute() => return Err(AgentFsError::Escapes),
        Err(_) => path,
    };
    let mut names = VecDeque::new();
    for part in below.components() {
        match part {
            Component::Normal(name) => names.push_back(name.to_owned()),
            Component::ParentDir => names.push_back("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(AgentFsError::Escapes),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Makes a folder that contains a workspace, and beside it a file that must not be touched.
    fn stand() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().canonicalize().unwrap().join("workspace");
        fs::create_dir_all(workspace.join("a/b")).unwrap();
        fs::write(workspace.join("a/x"), "one\ntwo\nthree").unwrap();
        fs::write(root.path().join("precious"), "mine").unwrap();
        (root, workspace)
    }

    #[test]
    fn short_lines_are_passed_up_to_the_same_bound_as_long_ones() {
        let (short, long) = ("\n".repeat(100), "x".repeat(100));
        for text in [&short, &long] {
            assert!(matches!(pass_lines(&mut text.as_bytes(), u64::MAX, 50), Err(AgentFsError::TooLong)), "{text}");
        }
        assert!(pass_lines(&mut short.as_bytes(), 50, 50).unwrap());
        assert!(!pass_lines(&mut short.as_bytes(), 101, 200).unwrap());
    }

    #[test]
    fn no_way_leads_out() {
        let (root, workspace) = stand();
        symlink(root.path().join("precious"), workspace.join("file")).unwrap();
        symlink("../precious", workspace.join("near")).unwrap();
        symlink("..", workspace.join("up")).unwrap();
        symlink(root.path(), workspace.join("a/up")).unwrap();
        symlink("a/b/../../../precious", workspace.join("round")).unwrap();
        symlink("../new", workspace.join("dangling")).unwrap();
        let absolute = root.path().join("precious").display().to_string();
        for path in [
            "../precious",
            &absolute,
            "/etc/passwd",
            "file",
            "near",
            "up/precious",
            "a/up/precious",
            "round",
            "a/../../precious",
            "dangling",
            "new/../../x",
        ] {
            assert!(matches!(read(&workspace, Path::new(path), None, None), Err(AgentFsError::Escapes)), "read {path}");
            assert!(matches!(write(&workspace, Path::new(path), "x"), Err(AgentFsError::Escapes)), "write {path}");
            assert!(matches!(folder(&workspace, Path::new(path)), Err(AgentFsError::Escapes)), "folder {path}");
        }
        assert_eq!(fs::read_to_string(root.path().join("precious")).unwrap(), "mine");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
        assert!(!workspace.join("new").exists());
    }

    #[test]
    fn links_that_stay_inside_lead_on() {
        let (_root, workspace) = stand();
        symlink("a", workspace.join("link")).unwrap();
        symlink(workspace.join("a/x"), workspace.join("a/b/back")).unwrap();
        symlink("b/../made", workspace.join("a/new")).unwrap();
        let text = |path: &str| read(&workspace, Path::new(path), None, None).unwrap();
        for path in ["a/x", "./a/./x", "link/x", "a/b/back", "a/b/../x"] {
            assert_eq!(text(path), "one\ntwo\nthree", "{path}");
        }
        write(&workspace, Path::new("link/new"), "made").unwrap();
        assert_eq!(text("a/made"), "made");
        write(&workspace, Path::new("deep/er/file"), "deep").unwrap();
        write(&workspace, &workspace.join("deep/er/file"), "er").unwrap();
        assert_eq!(text("deep/er/file"), "er");
        assert_eq!(folder(&workspace, Path::new("link/b")).unwrap(), workspace.join("a/b"));
        assert_eq!(folder(&workspace, &workspace).unwrap(), workspace);
    }

    #[test]
    fn lines_count_from_one_and_what_is_no_text_is_told() {
        let (_root, workspace) = stand();
        let text = |line, limit| read(&workspace, Path::new("a/x"), line, limit).unwrap();
        assert_eq!(text(Some(2), Some(1)), "two\n");
        assert_eq!(text(Some(3), None), "three");
        assert_eq!((text(Some(9), None), text(None, Some(0))), (String::new(), String::new()));
        assert_eq!(text(Some(0), Some(2)), "one\ntwo\n");
        fs::write(workspace.join("bytes"), [0xff, 0xfe]).unwrap();
        assert!(matches!(read(&workspace, Path::new("bytes"), None, None), Err(AgentFsError::NotText)));
        assert!(matches!(read(&workspace, Path::new("no"), None, None), Err(AgentFsError::Absent)));
        assert!(matches!(read(&workspace, Path::new("a"), None, None), Err(AgentFsError::IsNo("file"))));
        assert!(matches!(read(&workspace, Path::new("a/x/y"), None, None), Err(AgentFsError::IsNo("folder"))));
        assert!(matches!(write(&workspace, Path::new("a"), ""), Err(AgentFsError::IsNo("file"))));
        assert!(matches!(folder(&workspace, Path::new("a/x")), Err(AgentFsError::IsNo("folder"))));
        let long = File::create(workspace.join("long")).unwrap();
        long.set_len(MAX_READ_BYTES + 1).unwrap();
        assert!(matches!(read(&workspace, Path::new("long"), None, None), Err(AgentFsError::TooLong)));
        long.set_len(1 << 40).unwrap();
        assert!(matches!(read(&workspace, Path::new("long"), Some(2), None), Err(AgentFsError::TooLong)));
    }

    #[test]
    fn what_is_no_file_holds_nobody_up() {
        let (_root, workspace) = stand();
        let pipe = workspace.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink("loop", workspace.join("loop")).unwrap();
        assert!(matches!(read(&workspace, Path::new("pipe"), None, None), Err(AgentFsError::IsNo("file"))));
        assert!(matches!(write(&workspace, Path::new("pipe"), "x"), Err(AgentFsError::IsNo("file"))));
        assert!(matches!(read(&workspace, Path::new("loop"), None, None), Err(AgentFsError::Io(_))));
    }
}
