//! Moves a kept workspace into its trial's folder, with secrets in its files redacted.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::result::Warning;
use crate::secrets::Masker;
use crate::text::some_of;
use crate::workspace::beyond_patch::{LINKED, SPECIAL};
use crate::workspace::make_ready::make_ready;
use crate::workspace::openat::open_file;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, walk};
use crate::workspace::{MAX_READ_FILE_BYTES, copy_with_special_files};

/// The maximum size of a file that is redacted. A larger file that contains a secret is left out.
const MAX_REDACTED_BYTES: u64 = 16 << 20;
/// The maximum amount of data that is searched, or copied to another file system. Files beyond it are left out.
const WHOLE: u64 = 4 << 30;
/// The overlap between pieces of a search: longer than any secret.
const OVERLAP: usize = 1 << 20;

/// The result of moving a workspace into its trial.
#[derive(Debug, Default)]
struct Kept {
    /// Files that contained secrets and were redacted.
    masked: usize,
    /// Files left out because a secret is in their name, or in a file too large to be redacted.
    secret: usize,
    /// Files left out because of the maximum amount, and their size in bytes.
    too_much: (usize, u64),
    /// Files that could not be read.
    unread: usize,
}

/// Moves a workspace into the folder of its trial. Returns warnings; a failure is only a warning.
pub fn keep(workspace: &Path, trial: &Path, masker: &Masker) -> Vec<Warning> {
    let to = trial.join("workspace");
    let mut warnings = Vec::new();
    if let Err(error) = move_to(workspace, &to, masker, &mut warnings) {
        // Files that may contain secrets must not remain there.
        let partly_left = remove(&to).is_err();
        warnings.push(Warning::WorkspaceNotKept { error: error.to_string(), partly_left });
    }
    warnings
}

/// Returns the words of `beyond_patch` for what a kept workspace has: special files, and files with several names.
pub fn kept_beyond_patch(kept: &Path) -> io::Result<Vec<String>> {
    let (mut names, mut has_special, mut has_linked) = (HashSet::new(), false, false);
    walk(kept, |_, meta| {
        if !meta.is_dir() {
            has_linked |= meta.nlink() > 1 && !names.insert((meta.dev(), meta.ino()));
            has_special |= !meta.is_file() && !meta.is_symlink();
        }
        Descend::Enter
    })?;
    let all = [(SPECIAL, has_special), (LINKED, has_linked)];
    Ok(all.into_iter().filter(|(_, has)| *has).map(|(words, _)| words.to_owned()).collect())
}

fn move_to(workspace: &Path, to: &Path, masker: &Masker, warnings: &mut Vec<Warning>) -> io::Result<()> {
    // Graders may run programs that the agent wrote, which may remove permissions.
    warnings.extend(make_ready(workspace)?.warnings());
    let here = fs::metadata(workspace)?.dev() == fs::metadata(to.parent().unwrap_or(to))?.dev();
    // Redacted before the move: no secret may lie in a run folder even for a moment.
    let is_read = !here || !masker.is_empty();
    warnings.extend(Kept::prepare(workspace, masker, is_read)?.warnings());
    remove(to)?;
    if fs::rename(workspace, to).is_ok() {
        return Ok(());
    }
    // Across file systems, files that cannot be copied are left out, and the others are kept.
    let error = match copy_with_special_files(workspace, to) {
        Ok(copied) => {
            let lacks = !copied.not_copied.is_empty();
            lacks.then(|| format!("could not be copied as they are: {}", some_of(copied.not_copied, 5)))
        }
        Err(error) => Some(error.to_string()),
    };
    warnings.extend(error.map(|error| Warning::WorkspaceKeptInPart { error }));
    Ok(())
}

impl Kept {
    /// Redacts files, and removes what is not kept. If the files are not read, only the largest ones are removed.
    fn prepare(workspace: &Path, masker: &Masker, is_read: bool) -> io::Result<Self> {
        let mut kept = Self::default();
        let (mut room, mut failed) = (if is_read { WHOLE } else { u64::MAX }, None);
        let left = walk(workspace, |path, meta| match kept.entry(&workspace.join(path), meta, masker, &mut room) {
            Ok(next) => next,
            Err(error) => {
                failed = Some(error);
                Descend::Skip
            }
        })?;
        for (path, _) in left {
            kept.unread += 1;
            remove(&workspace.join(path))?;
        }
        failed.map_or(Ok(kept), Err)
    }

    fn entry(&mut self, path: &Path, meta: &Metadata, masker: &Masker, room: &mut u64) -> io::Result<Descend> {
        let finds = |bytes: &[u8]| matches!(masker.mask_bytes(bytes), Cow::Owned(_));
        let named = path.file_name().is_some_and(|name| finds(name.as_bytes()));
        // A target that cannot be read may hold a secret.
        let leads = || fs::read_link(path).map_or(true, |to| finds(to.as_os_str().as_bytes()));
        if named || meta.is_symlink() && leads() {
            self.secret += 1;
            return remove(path).map(|()| Descend::Skip);
        }
        if !meta.is_file() {
            return Ok(Descend::Enter);
        }
        if meta.len() > MAX_READ_FILE_BYTES.min(*room) {
            self.too_much = (self.too_much.0 + 1, self.too_much.1.saturating_add(meta.len()));
            return remove(path).map(|()| Descend::Skip);
        }
        *room = room.saturating_sub(meta.len());
        match self.mask(path, meta, masker) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => {
                self.unread += 1;
                remove(path)?;
            }
        }
        Ok(Descend::Enter)
    }

    fn mask(&mut self, path: &Path, meta: &Metadata, masker: &Masker) -> io::Result<()> {
        if masker.is_empty() {
            return Ok(());
        }
        let file = open_file(path)?;
        if meta.len() > MAX_REDACTED_BYTES {
            if holds_secret(file, masker)? {
                self.secret += 1;
                remove(path)?;
            }
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.take(MAX_REDACTED_BYTES).read_to_end(&mut bytes)?;
        if let Cow::Owned(bytes) = masker.mask_bytes(&bytes) {
            // The file is replaced, so that a hard link to the old one outside the workspace is not changed.
            remove(path)?;
            fs::write(path, bytes)?;
            fs::set_permissions(path, meta.permissions())?;
            self.masked += 1;
        }
        Ok(())
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.masked > 0 {
            warnings.push(Warning::KeptMasked { files: self.masked as u64 });
        }
        if self.secret > 0 {
            warnings.push(Warning::KeptWithoutSecrets { files: self.secret as u64, largest: MAX_REDACTED_BYTES });
        }
        if self.too_much.0 > 0 {
            let (files, bytes) = self.too_much;
            warnings.push(Warning::KeptUpToLimit { files: files as u64, bytes, most: WHOLE });
        }
        if self.unread > 0 {
            warnings.push(Warning::KeptWithoutUnread { files: self.unread as u64 });
        }
        warnings
    }
}

/// Returns true if a file contains a secret. Searches piece by piece.
fn holds_secret(file: File, masker: &Masker) -> io::Result<bool> {
    let mut file = file.take(WHOLE);
    let mut piece = Vec::new();
    loop {
        let read = file.by_ref().take(MAX_REDACTED_BYTES).read_to_end(&mut piece)?;
        if matches!(masker.mask_bytes(&piece), Cow::Owned(_)) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        piece.drain(..piece.len().saturating_sub(OVERLAP));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

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
        fs::set_permissions(workspace.join("deep/a"), Permissions::from_mode(0o500)).unwrap();
        symlink("../outside", workspace.join("link")).unwrap();
        fs::hard_link(root.path().join("outside"), workspace.join("hard")).unwrap();
        let masker = Masker::new(&[("KEY".to_owned(), "a long secret".to_owned())].into());
        let warnings = keep(&workspace, &trial, &masker);
        assert_eq!(warnings, [Warning::KeptMasked { files: 2 }]);
        assert!(warnings[0].tells_of_a_loss());
        assert_eq!(fs::read(trial.join("workspace/deep/a")).unwrap(), b"\xff [redacted:KEY]");
        assert_eq!(fs::metadata(trial.join("workspace/deep/a")).unwrap().permissions().mode() & 0o777, 0o500);
        assert_eq!(fs::read(trial.join("workspace/hard")).unwrap(), b"[redacted:KEY]");
        assert_eq!(fs::read(root.path().join("outside")).unwrap(), b"a long secret");
    }

    #[test]
    fn what_is_too_large_to_be_masked_is_left_out_and_told() {
        let root = tempfile::tempdir().unwrap();
        let (workspace, trial) = (root.path().join("workspace"), root.path().join("trial"));
        fs::create_dir_all(workspace.join("d-a long secret")).unwrap();
        fs::create_dir(&trial).unwrap();
        let large = |name: &str, len: u64| {
            let file = File::create(workspace.join(name)).unwrap();
            file.set_len(len).unwrap();
            file
        };
        large("endless", WHOLE + 1);
        large("good", MAX_REDACTED_BYTES + 10);
        // Across the boundary of two pieces.
        std::os::unix::fs::FileExt::write_all_at(
            &large("bad", MAX_REDACTED_BYTES * 2),
            b"a long secret",
            MAX_REDACTED_BYTES - 5,
        )
        .unwrap();
        symlink("/x/a long secret", workspace.join("link")).unwrap();
        let masker = Masker::new(&[("KEY".to_owned(), "a long secret".to_owned())].into());
        let warnings = keep(&workspace, &trial, &masker);
        let too_much = Warning::KeptUpToLimit { files: 1, bytes: WHOLE + 1, most: WHOLE };
        assert_eq!(warnings, [Warning::KeptWithoutSecrets { files: 3, largest: MAX_REDACTED_BYTES }, too_much]);
        assert!(warnings.iter().all(Warning::tells_of_a_loss), "{warnings:?}");
        let kept: Vec<_> = fs::read_dir(trial.join("workspace")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(kept, ["good"]);
    }

    #[test]
    fn a_file_of_any_size_without_content_is_left_out_at_once() {
        let root = tempfile::tempdir().unwrap();
        let (workspace, trial) = (root.path().join("workspace"), root.path().join("trial"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&trial).unwrap();
        fs::write(workspace.join("a"), "text").unwrap();
        let endless = 1 << 40;
        File::create(workspace.join("endless")).unwrap().set_len(endless).unwrap();
        let warnings = keep(&workspace, &trial, &Masker::default());
        assert_eq!(warnings, [Warning::KeptUpToLimit { files: 1, bytes: endless, most: WHOLE }]);
        let kept: Vec<_> = fs::read_dir(trial.join("workspace")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(kept, ["a"]);
    }

    #[test]
    fn that_it_cannot_be_kept_is_a_warning() {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let warnings = keep(&workspace, &root.path().join("not/there"), &Masker::default());
        assert!(matches!(&*warnings, [Warning::WorkspaceNotKept { .. }]), "{warnings:?}");
        assert!(warnings[0].tells_of_a_loss());
    }
}
