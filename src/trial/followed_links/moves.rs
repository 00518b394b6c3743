//! Finds the files that a session created and no call names: the possible targets of moves that the agent shows as edits.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read};
use std::path::Path;

use crate::trace::view;
use crate::workspace::change::MAX_PATCH_FILE_BYTES;
use crate::workspace::openat::open_file;
use crate::workspace::tree::{Entry, Ignore, Tree};

/// The maximum number of targets that are named for one path.
const MAX_TARGETS: usize = 200;
/// The minimum number of lines by which a file is recognised in another place.
const MIN_LINES: usize = 3;

/// The workspace of a session as the agent left it, and as it was before.
#[derive(Debug, Clone, Copy)]
pub struct States<'a> {
    /// The workspace as the agent left it.
    pub workspace: &'a Path,
    /// The workspace before the agent.
    pub before: &'a Path,
    /// The globs of files that are ignored, besides those in `.gitignore`.
    pub ignore: &'a [String],
}

/// A file that an edit may have moved.
#[derive(Debug)]
pub struct Edited {
    /// The path, relative to the workspace.
    pub path: String,
    /// The content before the agent, if a file is at the path now: only a file with similar content can be the target.
    pub stub_of: Option<Vec<u8>>,
}

impl States<'_> {
    /// Returns the content that a file had before the agent began, if it has enough lines to be recognised in another
    /// place.
    pub fn old_content(&self, path: &str) -> Option<Vec<u8>> {
        let old = content(&self.before.join(path)).ok()?;
        (lines(&old).count() >= MIN_LINES).then_some(old)
    }

    /// Returns the possible targets of each file. `is_named` returns true for a file that a call names.
    pub fn targets(&self, edited: &[Edited], is_named: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
        if edited.is_empty() {
            return Vec::new();
        }
        let created = self.created(is_named);
        let by_content = edited.iter().any(|file| file.stub_of.is_some());
        let mut targets: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); edited.len()];
        for path in &created {
            let bytes = by_content.then(|| content(&self.workspace.join(path)).ok()).flatten();
            let new: Option<HashSet<&[u8]>> = bytes.as_deref().map(|bytes| lines(bytes).collect());
            // A file that cannot be read may have any content.
            let may_hold = |old: &[u8]| new.as_ref().is_none_or(|new| is_similar(old, new));
            for (file, targets) in edited.iter().zip(&mut targets) {
                if file.stub_of.as_deref().is_none_or(may_hold) {
                    targets.insert(path);
                }
            }
        }
        let bounded = |targets: BTreeSet<&str>| match targets.len() > MAX_TARGETS {
            true => vec![view::UNREAD_PATH.to_owned()],
            false => targets.into_iter().map(str::to_owned).collect(),
        };
        targets.into_iter().map(bounded).collect()
    }

    /// Returns the files in the workspace that were not there before, that are not ignored, and that no call names. If a part of
    /// the workspace cannot be read, [`view::UNREAD_PATH`] is among them.
    fn created(&self, is_named: impl Fn(&str) -> bool) -> Vec<String> {
        let tree = Ignore::of(self.before, self.ignore).and_then(|ignore| Tree::read(self.workspace, &ignore));
        let Ok(tree) = tree else { return vec![view::UNREAD_PATH.to_owned()] };
        let unread = (!tree.unread.is_empty()).then(|| view::UNREAD_PATH.to_owned());
        // A move writes a file, and no link.
        let files = tree.entries.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
        let created = files.filter(|(path, _)| self.before.join(path).symlink_metadata().is_err());
        let names = created.map(|(path, _)| path.to_string_lossy().into_owned());
        names.filter(|path| !is_named(path)).chain(unread).collect()
    }
}

/// Returns true if at least half of the lines of an old file are among the lines of a new one.
fn is_similar(old: &[u8], new: &HashSet<&[u8]>) -> bool {
    let kept = lines(old).filter(|line| new.contains(line)).count();
    kept * 2 >= lines(old).count()
}

/// Reads the first part of a file.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.take(MAX_PATCH_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the lines that are not empty, without blanks around them.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn created_files_are_targets_unless_they_are_ignored_named_or_too_many() {
        let root = tempfile::tempdir().unwrap();
        let [workspace, before] = ["now", "before"].map(|name| root.path().join(name));
        for folder in [&workspace, &before] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("kept"), "").unwrap();
        }
        for name in ["new", "named", "new.log"] {
            fs::write(workspace.join(name), "1\n  2\n\nx\n").unwrap();
        }
        let ignore = ["*.log".to_owned()];
        let states = States { workspace: &workspace, before: &before, ignore: &ignore };
        let targets = |stub_of: Option<&str>| {
            let edited = [Edited { path: "old".to_owned(), stub_of: stub_of.map(|text| text.as_bytes().to_vec()) }];
            states.targets(&edited, |path| path == "named").remove(0)
        };
        assert_eq!(targets(None), ["new"]);
        assert_eq!(targets(Some("1\n2\n3\n4\n")), ["new"]);
        assert_eq!(targets(Some("1\n3\n4\n")), [""; 0]);
        for name in 0..MAX_TARGETS {
            fs::write(workspace.join(name.to_string()), "").unwrap();
        }
        assert_eq!(targets(None), [view::UNREAD_PATH]);
        assert_eq!(targets(Some("1\n2\n3\n")), ["new"]);
    }
}
