//! Walks through a folder without following links, up to a maximum depth.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

/// The maximum depth of folders that are entered.
pub const MAX_FOLDER_DEPTH: usize = 256;
/// The maximum length of a path within a folder, in bytes. Together with the folder's own path, it stays within the
/// system's limit.
pub const MAX_PATH_BYTES: usize = 3000;

/// The decision to enter a folder, to skip it, or to end the walk. For other files, `Enter` and `Skip` have no meaning.
pub enum Descend {
    /// Enter the folder.
    Enter,
    /// Do not enter the folder.
    Skip,
    /// End the walk.
    End,
}

/// The reason why the content of a folder is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The folder is deeper than [`MAX_FOLDER_DEPTH`], or its path is longer than [`MAX_PATH_BYTES`].
    #[error("it is too deep")]
    TooDeep,
    /// The system returned an error.
    #[error("{0}")]
    Refused(io::Error),
}

/// Calls `visit` for everything below a folder; a folder comes before its content. Returns the folders that could not
/// be entered.
///
/// # Errors
/// Returns an error if the folder itself cannot be read. A file that vanishes meanwhile is left out.
pub fn walk(root: &Path, mut visit: impl FnMut(&Path, &Metadata) -> Descend) -> io::Result<Vec<(PathBuf, Unread)>> {
    let mut left = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if depth > MAX_FOLDER_DEPTH || folder.as_os_str().as_bytes().len() > MAX_PATH_BYTES {
            left.push((folder, Unread::TooDeep));
            continue;
        }
        let entries = match fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                left.push((folder, Unread::Refused(error)));
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if depth == 0 => return Err(error),
                Err(error) => {
                    left.push((folder.clone(), Unread::Refused(error)));
                    break;
                }
            };
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    left.push((folder.join(entry.file_name()), Unread::Refused(error)));
                    continue;
                }
            };
            let path = folder.join(entry.file_name());
            match visit(&path, &meta) {
                Descend::End => return Ok(left),
                Descend::Enter if meta.is_dir() => folders.push((path, depth + 1)),
                Descend::Enter | Descend::Skip => {}
            }
        }
    }
    Ok(left)
}

/// Returns true if a walk did not see all that programs may find in a folder. `walked` is the result of [`walk`]. A folder of
/// another user that may not be entered hides nothing: no program of this user finds anything there.
pub fn is_incomplete(root: &Path, walked: &io::Result<Vec<(PathBuf, Unread)>>) -> bool {
    let is_usable = |path: &Path| {
        let found = path.ancestors().find_map(|path| Some((path, path.symlink_metadata().ok()?)));
        found.is_none_or(|(path, meta)| meta.uid() == geteuid().as_raw() || access(path, Access::EXEC_OK).is_ok())
    };
    walked.as_ref().map_or(true, |left| left.iter().any(|(path, _)| is_usable(&root.join(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_this_user_that_was_not_entered_may_hide_files() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        let left = |path: &str| Ok(vec![(path.into(), Unread::TooDeep)]);
        assert!(!is_incomplete(root.path(), &walk(root.path(), |_, _| Descend::Enter)));
        assert!(is_incomplete(root.path(), &left("d")) && is_incomplete(root.path(), &left("d/unseen")));
        assert!(is_incomplete(root.path(), &Err(io::ErrorKind::PermissionDenied.into())));
    }

    #[test]
    fn what_is_too_deep_is_named_and_not_entered() {
        let root = tempfile::tempdir().unwrap();
        let chain: PathBuf = vec!["d"; MAX_FOLDER_DEPTH + 10].iter().collect();
        fs::create_dir_all(root.path().join(&chain)).unwrap();
        let mut seen = 0;
        let left = walk(root.path(), |_, _| {
            seen += 1;
            Descend::Enter
        });
        let left = left.unwrap();
        assert_eq!(seen, MAX_FOLDER_DEPTH + 1);
        assert!(matches!(&left[..], [(path, Unread::TooDeep)] if path.components().count() == MAX_FOLDER_DEPTH + 1));
    }
}
