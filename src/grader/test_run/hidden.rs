//! Whether the hidden files are as they were copied over the workspace: code under test may rewrite the tests that judge it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::walk::{Descend, walk};

/// Returns the hidden files that a workspace has in another form, or not at all. `None` if they cannot be read.
pub fn changed(hidden: Option<&Path>, workspace: &Path) -> Option<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let Some(hidden) = hidden else { return Some(found) };
    let unread = walk(hidden, |path, meta| {
        if meta.is_file() && fs::read(hidden.join(path)).ok() != fs::read(workspace.join(path)).ok() {
            found.insert(path.to_owned());
        }
        Descend::Enter
    });
    unread.is_ok_and(|unread| unread.is_empty()).then_some(found)
}
