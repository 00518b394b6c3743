//! Runs in the formats of other tools. Pure: each format returns files, which the command writes.

use std::path::PathBuf;

use serde_json::Value;

use crate::report::whole::WholeReport;

mod agentskills;

/// The formats of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Agent Skills: grading.json, timing.json and benchmark.json of a skill with and without it
    Agentskills,
}

/// The files of an export, and the parts that could not be exported.
#[derive(Debug, Default)]
pub struct Exported {
    /// The files, by their paths below the folder of the export.
    pub files: Vec<(PathBuf, Value)>,
    /// Parts that the format cannot represent, and values that are unknown.
    pub notes: Vec<String>,
}

impl Target {
    /// Returns why a single trace cannot be exported, and what is exported instead.
    pub fn needs_run(self) -> &'static str {
        match self {
            Self::Agentskills => {
                "agentskills compares the trials of a run with a skill and without it: name a run of an experiment that \
                 varies `skills`"
            }
        }
    }

    /// Exports a run.
    ///
    /// # Errors
    /// Returns an error if the run is not of the kind that the format describes.
    pub fn export(self, report: WholeReport<'_>) -> Result<Exported, String> {
        match self {
            Self::Agentskills => agentskills::export(report),
        }
    }
}
