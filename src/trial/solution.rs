//! Finds the folders in which the reference solution of a case has files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::case::Oracle;
use crate::regular;
use crate::workspace::walk::{Descend, walk};

/// Returns the folders in which a reference solution has files, relative to the workspace. Returns an empty set if the
/// solution is a script, whose files are unknown.
pub(super) fn folders(oracle: Option<&Oracle>) -> BTreeSet<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    match oracle {
        Some(Oracle::Patch(patch)) => {
            let text = regular::read(patch).unwrap_or_default();
            files = written(&String::from_utf8_lossy(&text));
        }
        Some(Oracle::Copy(folder)) => {
            let _ = walk(folder, |path, meta| {
                files.extend((!meta.is_dir()).then(|| path.to_owned()));
                Descend::Enter
            });
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
    folders
}

/// Returns the files that a patch of git writes.
fn written(patch: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut is_head = false;
    for line in patch.lines() {
        if line.starts_with("diff --git ") || line.starts_with("--- ") {
            is_head = true;
        } else if line.starts_with("@@ ") {
            is_head = false;
        } else if is_head && let Some(path) = line.strip_prefix("+++ ") {
            let path = path.trim_end().trim_matches('"');
            found.extend(path.strip_prefix("b/").map(PathBuf::from));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_a_patch_are_those_of_the_files_that_it_writes() {
        let patch = "diff --git a/src/a.rs b/src/a.rs\ndeleted file mode 100644\n--- a/src/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                     diff --git a/src/b/mod.rs b/src/b/mod.rs\n--- /dev/null\n+++ b/src/b/mod.rs\n@@ -0,0 +1,2 @@\n+x\n+++ b/not/this\n\
                     diff --git \"a/x y/é.rs\" \"b/x y/é.rs\"\n--- \"a/x y/é.rs\"\n+++ \"b/x y/é.rs\"\n@@ -1 +1 @@\n-x\n+y\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.patch");
        std::fs::write(&file, patch).unwrap();
        let found = folders(Some(&Oracle::Patch(file)));
        let expected = ["src", "src/b", "src/b/mod", "x y", "x y/é"].map(PathBuf::from);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        let copied = folder.path().join("copied");
        std::fs::create_dir_all(copied.join("pkg/new")).unwrap();
        std::fs::write(copied.join("pkg/new/a.py"), "").unwrap();
        let found = folders(Some(&Oracle::Copy(copied)));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["pkg", "pkg/new"].map(PathBuf::from));
        assert_eq!(folders(None), BTreeSet::new());
    }
}
