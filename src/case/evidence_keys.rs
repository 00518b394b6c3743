//! The keys of a case that decide what the stored files of its trials hold.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Case;
use crate::workspace::walk::{Descend, walk};

/// The keys of a case by which the change of a workspace is measured, and by which a kept workspace was prepared for the
/// graders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EvidenceKeys {
    /// `workspace.ignore`: globs of paths that `workspace.patch` leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// `workspace.protect`: globs of files that are restored before grading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
    /// The paths of the hidden files, which a kept workspace holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

impl Case {
    /// Returns the keys that decide what the stored files of trials of this case hold.
    ///
    /// # Errors
    /// Returns an error if the hidden folder cannot be read.
    pub fn evidence_keys(&self) -> io::Result<EvidenceKeys> {
        Ok(EvidenceKeys {
            ignore: self.workspace.ignore.clone(),
            protect: self.workspace.protect.iter().map(ToString::to_string).collect(),
            hidden: self.hidden.as_deref().map_or_else(|| Ok(Vec::new()), paths_below)?,
        })
    }
}

/// Returns the paths of the files and links below a folder, sorted.
fn paths_below(folder: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    walk(folder, |path, meta| {
        if !meta.is_dir() {
            paths.extend(path.to_str().map(str::to_owned));
        }
        Descend::Enter
    })?;
    paths.sort();
    Ok(paths)
}
