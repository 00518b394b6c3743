//! The part of an agent's work that `workspace.patch` does not hold, as `result.json` records it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The changes of a workspace besides `workspace.patch`. A rebuilt workspace gets the folders and the permission bits
/// from here. Paths are relative to the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BesidePatch {
    /// New folders without files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Deleted folders that no deleted file of the patch implies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted_folders: Vec<String>,
    /// The permission bits of files and folders that the patch does not determine, as octal numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modes: BTreeMap<String, String>,
    /// The files and folders that were there before and have other permission bits, unless both are among 644, 755, 664
    /// and 775. A `/` follows a folder. At most the first 1,000: if it has 1,000, there may be more. Absent if no permission
    /// bits are recorded, if a name has a redacted secret, and in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_modes: Option<Vec<String>>,
    /// The files and folders in which a rebuilt workspace may differ: ignored ones, repositories that changed, and
    /// sockets, devices and pipes that are new or gone. Absent if there are more than 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<Vec<String>>,
    /// The ignored files and folders, the repositories, and the sockets, devices and pipes that the agent changed, at most
    /// 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The number of changed places that `changed` does not name, and of those whose names have a redacted secret. May be
    /// absent if there are none. Results of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<u64>,
    /// The sockets, devices and pipes that are new or gone, and changed files or folders named `.git` in a folder
    /// that are no repositories, at most the first 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub special: Vec<String>,
}

impl BesidePatch {
    /// Returns the record, or `None` if a rebuilt workspace needs nothing of it: it has no entry, and the agent changed
    /// nothing else that the patch does not hold.
    pub fn if_needed(self, is_incomplete: bool) -> Option<Self> {
        let Self { folders, deleted_folders, modes, changed_modes: _, unmeasured, changed, unnamed: _, special } =
            &self;
        let is_needed = is_incomplete
            || !folders.is_empty()
            || !deleted_folders.is_empty()
            || !modes.is_empty()
            || !changed.is_empty()
            || !special.is_empty()
            || unmeasured.as_ref().is_some_and(|places| !places.is_empty());
        is_needed.then_some(self)
    }
}
