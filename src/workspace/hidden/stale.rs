//! Removes hidden files of an earlier run, which a kept workspace still holds.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::{is_folder, reached_without_links};
use crate::workspace::change::Change;
use crate::workspace::restore::put_back;
use crate::workspace::tree::{Ignore, Tree};

/// Removes hidden files that a run laid over a workspace and that its case does not have any more. Files of `before`, the
/// state before the agent, are restored. Returns the paths at which the agent had a file whose content is unknown now.
///
/// # Errors
/// Returns an error if the workspace cannot be read.
pub fn remove_stale(
    stale: &BTreeSet<String>,
    before: &Path,
    workspace: &Path,
    ignore: &Ignore,
    change: &Change,
) -> io::Result<BTreeSet<String>> {
    let now = Tree::read(workspace, ignore)?;
    let is_changed = |path: &str| change.all().any(|(changed, _)| changed == path);
    let is_there = |path: &str| workspace.join(path).symlink_metadata().is_ok();
    // The change does not hold ignored files.
    let is_ignored = |path: &str| is_there(path) && !now.entries.contains_key(Path::new(path));
    let mut unknown = BTreeSet::new();
    for path in stale {
        if is_changed(path) || is_ignored(path) || put_back(before, workspace, Path::new(path)).is_err() {
            unknown.insert(path.clone());
        } else {
            remove_empty_folders(before, workspace, Path::new(path));
        }
    }
    // Laying hidden files empties the folders that only they have.
    let written = change.created.iter().chain(&change.changed);
    unknown.extend(written.filter(|path| !is_there(path)).cloned());
    Ok(unknown)
}

/// Removes the folders above a removed file that are empty now and that were not there before.
fn remove_empty_folders(before: &Path, workspace: &Path, path: &Path) {
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        let place = workspace.join(folder);
        let is_of_hidden = !is_folder(&before.join(folder)) && reached_without_links(workspace, &place);
        if !is_of_hidden || !is_folder(&place) || fs::remove_dir(&place).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::write;
    use super::*;

    #[test]
    fn a_file_that_the_agent_did_not_touch_becomes_what_it_was_and_others_are_unknown() {
        let root = tempfile::tempdir().unwrap();
        let [before, workspace] = ["before", "workspace"].map(|name| root.path().join(name));
        write(&before, "tests/old.py", "old");
        write(&before, ".gitignore", "out\n");
        for path in ["tests/old.py", "tests/new.py", "check/deep/run.py", "made", "out/ignored"] {
            write(&workspace, path, "hidden");
        }
        write(&workspace, "tests/mine.py", "mine");
        let stale = ["tests/old.py", "tests/new.py", "check/deep/run.py", "made", "out/ignored", "gone", "../outside"];
        let stale = stale.map(str::to_owned).into();
        let created = ["made", "tests/mine.py", "check/emptied"].map(str::to_owned).into();
        let change = Change { created, ..Change::default() };
        let ignore = Ignore::of(&before, &[]).unwrap();
        write(root.path(), "outside", "mine");
        let unknown = remove_stale(&stale, &before, &workspace, &ignore, &change).unwrap();
        let expected = ["../outside", "check/emptied", "made", "out/ignored"].map(str::to_owned);
        assert_eq!(unknown, BTreeSet::from(expected));
        let text = |path: &str| fs::read_to_string(workspace.join(path)).ok();
        assert_eq!((text("tests/old.py"), text("tests/new.py")), (Some("old".to_owned()), None));
        assert!(!workspace.join("check").exists() && workspace.join("tests/mine.py").exists());
        assert!(root.path().join("outside").exists());
    }
}
