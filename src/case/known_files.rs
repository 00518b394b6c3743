//! What the cases that are loaded together share about files: the files that they keep from their agents, and the folders of
//! skills that hold cases. Each folder is walked once, whatever the number of cases and arms is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::find;
use super::kept::KeptFiles;

/// The files and folders that were read so far.
#[derive(Debug, Default)]
pub struct KnownFiles {
    /// The kept files, by the path of the file or of their folder.
    kept: Mutex<HashMap<PathBuf, Arc<KeptFiles>>>,
    /// The names of the folders with cases, by the folder of the skill.
    skills: Mutex<HashMap<PathBuf, Arc<[PathBuf]>>>,
}

impl KnownFiles {
    /// Returns the files of a kept path, which are listed the first time.
    pub(super) fn kept(&self, path: &Path) -> Arc<KeptFiles> {
        let mut known = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(path.to_owned()).or_insert_with(|| Arc::new(KeptFiles::list(path))).clone()
    }

    /// Returns the folders directly within a skill's folder that hold a case, of those that are selected by name. The selection
    /// is the same for all cases.
    pub(super) fn folders_with_cases(&self, skill: &Path, is_selected: impl Fn(&Path) -> bool) -> Arc<[PathBuf]> {
        let mut known = self.skills.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(skill.to_owned()).or_insert_with(|| find::folders_with_cases(skill, is_selected).into()).clone()
    }
}
