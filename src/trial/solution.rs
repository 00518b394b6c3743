//! Finds the folders in which the reference solution of a case has files.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::case::Oracle;
use crate::regular;
use crate::workspace::patch::sections::sections;
use crate::workspace::walk::{Descend, walk};

/// Returns the folders in which a reference solution has files, relative to the workspace. Returns an empty set if the
/// solution is a script, whose files are unknown.
///
/// # Errors
/// Returns an error if the solution cannot be read: a folder that is left out would be emptied with the agent's work in it.
pub(super) fn folders(oracle: Option<&Oracle>) -> io::Result<BTreeSet<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    match oracle {
        Some(Oracle::Patch(patch)) => {
            files = sections(&regular::read(patch)?).into_iter().filter_map(|section| section.new).collect();
        }
        Some(Oracle::Copy(folder)) => {
            let unread = walk(folder, |path, meta| {
                files.extend((!meta.is_dir()).then(|| path.to_owned()));
                Descend::Enter
            })?;
            if let Some((path, why)) = unread.first() {
                return Err(io::Error::other(format!("{}: {why}", folder.join(path).display())));
            }
        }
        Some(Oracle::Script(_)) | None => {}
    }
    let mut folders = BTreeSet::new();
    for file in files {
        folders.extend(file.ancestors().skip(1).map(Path::to_owned));
        // `a.rs` and `a/mod.rs` are two forms of the same module.
        if file.extension().is_some_and(|extension| extension == "rs") {
            folders.insert(file.with_extension(""));
        }
    }
    folders.remove(Path::new(""));
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_a_patch_are_those_of_the_files_that_it_writes() {
        let patch = "diff --git a/src/a.rs b/src/a.rs\ndeleted file mode 100644\n--- a/src/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                     diff --git a/src/b/mod.rs b/src/b/mod.rs\n--- /dev/null\n+++ b/src/b/mod.rs\n@@ -0,0 +1,2 @@\n+x\n+++ b/not/this\n\
                     diff --git a/src/c.sql b/src/c.sql\n--- a/src/c.sql\n+++ b/src/c.sql\n@@ -1 +1 @@\n--- x\n+++ b/nor/this\n\
                     diff --git \"a/x y/\\303\\251.rs\" \"b/x y/\\303\\251.rs\"\n--- \"a/x y/\\303\\251.rs\"\n+++ \"b/x y/\\303\\251.rs\"\n@@ -1 +1 @@\n-x\n+y\n\
                     diff --git a/a b/c b/a b/c\n--- a/a b/c\t\n+++ b/a b/c\t\n@@ -1 +1 @@\n-x\n+y\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.patch");
        std::fs::write(&file, patch).unwrap();
        let found = folders(Some(&Oracle::Patch(file))).unwrap();
        let expected = ["a b", "src", "src/b", "src/b/mod", "x y", "x y/é"].map(PathBuf::from);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        let copied = folder.path().join("copied");
        std::fs::create_dir_all(copied.join("pkg/new")).unwrap();
        std::fs::write(copied.join("pkg/new/a.py"), "").unwrap();
        let found = folders(Some(&Oracle::Copy(copied))).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["pkg", "pkg/new"].map(PathBuf::from));
        assert_eq!(folders(None).unwrap(), BTreeSet::new());
        folders(Some(&Oracle::Patch(folder.path().join("gone.patch")))).unwrap_err();
        folders(Some(&Oracle::Copy(folder.path().join("gone")))).unwrap_err();
    }
}
