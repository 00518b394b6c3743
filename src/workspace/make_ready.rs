//! Prepares a workspace for inspection after its agent has ended: makes sure that it exists, is readable, and is not
//! nested too deeply.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::remove::remove;
use super::walk::{Descend, MAX_FOLDER_DEPTH, MAX_PATH_BYTES, Unread, walk};
use crate::result::Warning;
use crate::text::first_chars;

/// The repairs that were necessary.
#[derive(Debug, Default)]
pub struct Repairs {
    /// The workspace was no longer a folder and was replaced by an empty one.
    pub lost: bool,
    /// The number of files and folders that were made readable again.
    pub opened: usize,
    /// Paths that were nested too deeply and were removed.
    pub removed: Vec<PathBuf>,
}

/// Makes a workspace ready for inspection. Files of other users that cannot be made readable stay as they are.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn make_ready(workspace: &Path) -> io::Result<Repairs> {
    let mut done = Repairs::default();
    done.stand(workspace)?;
    let left = walk(workspace, |path, meta| {
        done.opened += usize::from(open_up(&workspace.join(path), meta));
        Descend::Enter
    })?;
    for (path, why) in left {
        if matches!(why, Unread::TooDeep) {
            remove(&workspace.join(&path))?;
            done.removed.push(path);
        }
    }
    Ok(done)
}

/// Gives the owner the permission to read a file or folder. Returns true if it was missing.
fn open_up(path: &Path, meta: &Metadata) -> bool {
    let needed = match meta {
        meta if meta.is_dir() => 0o700,
        meta if meta.is_file() => 0o400,
        _ => return false,
    };
    let mode = meta.permissions().mode();
    mode & needed != needed && fs::set_permissions(path, Permissions::from_mode(mode | needed)).is_ok()
}

impl Repairs {
    /// Makes sure that the workspace is a folder. An agent without a sandbox can remove the folder above it, too.
    fn stand(&mut self, workspace: &Path) -> io::Result<()> {
        for folder in workspace.parent().into_iter().chain([workspace]) {
            match folder.symlink_metadata() {
                Ok(meta) if meta.is_dir() => self.opened += usize::from(open_up(folder, &meta)),
                _ => {
                    remove(folder)?;
                    fs::create_dir(folder)?;
                    self.lost = true;
                }
            }
        }
        Ok(())
    }

    /// Returns warnings about the repairs.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut told = Vec::new();
        if self.lost {
            told.push(Warning::WorkspaceLost);
        }
        if self.opened > 0 {
            told.push(Warning::OpenedUp { count: self.opened as u64 });
        }
        if let Some(first) = self.removed.first() {
            let first: String = first_chars(&first.to_string_lossy(), 100).to_owned();
            let (count, levels, path_bytes) =
                (self.removed.len() as u64, MAX_FOLDER_DEPTH as u64, MAX_PATH_BYTES as u64);
            told.push(Warning::TooDeep { count, levels, path_bytes, first });
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_in_the_place_of_a_workspace_is_not_followed() {
        for lost in ["", "a link", "a file"] {
            let root = tempfile::tempdir().unwrap();
            let (elsewhere, trial) = (root.path().join("elsewhere"), root.path().join("trial"));
            let workspace = trial.join("workspace");
            fs::create_dir(&elsewhere).unwrap();
            fs::write(elsewhere.join("x"), "mine").unwrap();
            fs::set_permissions(elsewhere.join("x"), Permissions::from_mode(0o200)).unwrap();
            fs::create_dir(&trial).unwrap();
            match lost {
                "a link" => symlink(&elsewhere, &workspace).unwrap(),
                "a file" => fs::write(&workspace, "").unwrap(),
                _ => {}
            }
            let done = make_ready(&workspace).unwrap();
            assert!(done.lost && done.opened == 0, "{lost}: {done:?}");
            assert_eq!(fs::read_dir(&workspace).unwrap().count(), 0);
            assert!(elsewhere.join("x").exists());
        }
    }

    #[test]
    fn what_is_closed_is_opened_and_what_is_endless_is_cut() {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        let deep: PathBuf = vec!["d"; MAX_FOLDER_DEPTH + 5].iter().collect();
        let long: PathBuf = vec!["n".repeat(200); 16].iter().collect();
        fs::create_dir_all(workspace.join(&deep)).unwrap();
        fs::create_dir_all(workspace.join(&long)).unwrap();
        fs::create_dir(workspace.join("closed")).unwrap();
        fs::write(workspace.join("closed/x"), "").unwrap();
        fs::set_permissions(workspace.join("closed/x"), Permissions::from_mode(0o010)).unwrap();
        fs::set_permissions(workspace.join("closed"), Permissions::from_mode(0o000)).unwrap();
        let done = make_ready(&workspace).unwrap();
        assert_eq!((done.lost, done.opened, done.removed.len()), (false, 2, 2));
        assert_eq!(fs::metadata(workspace.join("closed/x")).unwrap().permissions().mode() & 0o777, 0o410);
        let again = make_ready(&workspace).unwrap();
        assert!(again.warnings().is_empty(), "{again:?}");
        assert_eq!(done.warnings().len(), 2);
    }
}
