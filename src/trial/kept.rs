//! A workspace that is kept moves into its trial, with the secrets in its files masked; what is not kept vanishes.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::run::write_whole;
use crate::secrets::Masker;
use crate::workspace::copy_as_it_is;
use crate::workspace::remove::remove;

/// Moves a workspace into the folder of its trial. Gives the number of files that held secrets.
///
/// # Errors
/// The file system refused.
pub fn keep(workspace: &Path, trial: &Path, masker: &Masker) -> io::Result<usize> {
    // Before it gets there: no secret may lie in a run folder even for a moment.
    let masked = if masker.is_empty() { 0 } else { mask(workspace, masker)? };
    let to = trial.join("workspace");
    remove(&to)?;
    if fs::rename(workspace, &to).is_ok() {
        return Ok(masked);
    }
    // Another file system: what cannot be copied is left out, the rest is kept.
    if let Err(error) = copy_as_it_is(workspace, &to) {
        let note = trial.join("workspace.incomplete.txt");
        let text = format!("the workspace could not be kept whole: {error}");
        write_whole(&note, |out| writeln!(out, "{}", masker.mask(&text))).map_err(io::Error::other)?;
    }
    Ok(masked)
}

fn mask(folder: &Path, masker: &Masker) -> io::Result<usize> {
    // An agent may have taken its own rights away.
    open_up(folder);
    let mut masked = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            masked += mask(&path, masker)?;
            continue;
        }
        // A link is not followed: what it points to is not the workspace's.
        if !kind.is_file() {
            continue;
        }
        let mode = fs::metadata(&path)?.permissions();
        if mode.mode() & 0o400 == 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode.mode() | 0o600))?;
        }
        if let Cow::Owned(bytes) = masker.mask_bytes(&fs::read(&path)?) {
            // A new file, so that a second name of the old one, outside of the workspace, stays as it is.
            fs::remove_file(&path)?;
            fs::write(&path, bytes)?;
            masked += 1;
        }
        fs::set_permissions(&path, mode)?;
    }
    Ok(masked)
}

fn open_up(folder: &Path) {
    let mode = fs::metadata(folder).map_or(0, |meta| meta.permissions().mode());
    if mode & 0o700 != 0o700 {
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn secrets_are_masked_in_files_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (workspace, trial) = (root.path().join("workspace"), root.path().join("trial"));
        fs::create_dir_all(workspace.join("deep")).unwrap();
        fs::create_dir(&trial).unwrap();
        fs::write(root.path().join("outside"), "a long secret").unwrap();
        fs::write(workspace.join("deep/a"), b"\xff a long secret").unwrap();
        fs::write(workspace.join("b"), "nothing").unwrap();
        fs::set_permissions(workspace.join("deep/a"), fs::Permissions::from_mode(0o500)).unwrap();
        symlink("../outside", workspace.join("link")).unwrap();
        fs::hard_link(root.path().join("outside"), workspace.join("hard")).unwrap();
        let masker = Masker::new(&[("KEY".to_owned(), "a long secret".to_owned())].into());
        assert_eq!(keep(&workspace, &trial, &masker).unwrap(), 2);
        assert_eq!(fs::read(trial.join("workspace/deep/a")).unwrap(), b"\xff [redacted:KEY]");
        assert_eq!(fs::metadata(trial.join("workspace/deep/a")).unwrap().permissions().mode() & 0o777, 0o500);
        assert_eq!(fs::read(trial.join("workspace/hard")).unwrap(), b"[redacted:KEY]");
        assert_eq!(fs::read(root.path().join("outside")).unwrap(), b"a long secret");
    }
}
