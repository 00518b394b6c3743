//! The use of snapshots in a run: `--snapshot`.

use serde::{Deserialize, Serialize};

/// The use of snapshots in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SnapshotMode {
    /// Compare every cell; a cell without a snapshot differs
    Check,
    /// Accept new and changed snapshots
    Update,
    /// Do not use snapshots
    Off,
}
