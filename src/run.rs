//! The run folder: what a Run leaves on disk, written so that a crash at any moment loses nothing that was finished.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ids::TrialRecord;
use crate::judge::Chosen;
use crate::regular;
use crate::sandbox;
use crate::values::Fraction;
use crate::verdict::{PassTrials, Verdict};
use crate::whole_file::FileError;

pub mod events;
pub mod folder;
pub mod integrity;
pub mod journal;
pub mod user_file;
pub mod names;
pub mod temporary;

/// The version of the run folder that this program writes; it refuses to read a higher one.
pub const VERSION: u32 = 1;

/// `run.json`: the plan of a Run and what it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunRecord {
    /// Version of the run folder's format.
    pub version: u32,
    /// Id of the run.
    pub run: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// Version of the program.
    pub evals: String,
    /// The command line, without the program.
    pub argv: Vec<String>,
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The cases, as they were.
    pub cases: Vec<CaseRecord>,
    /// The harnesses, as they were.
    pub harnesses: Vec<HarnessRecord>,
    /// Every trial that was planned.
    pub trials: Vec<TrialRecord>,
    /// The price table that it was begun with; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceRecord>,
    /// How it was run.
    pub options: RunOptions,
    /// The run that this one was made from by `grade` or `--rerun failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<String>,
    /// Whether the policy of any planned trial is `manual`: comparisons leave such a run out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// Made by `grade`: no agent was run for it, and its traces are those of another run or of single files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub graded: bool,
    /// Every line of the journal has a digest, and every finished one that of its result. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub digests: bool,
    /// The digest of the `run.json` that the engine put this one in the place of; absent where it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// A case in `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CaseRecord {
    /// Its id.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// Digest of everything it is made from.
    pub digest: String,
    /// Digest of what its workspace was made from; absent in runs of versions that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Digests (BLAKE3) of the files that its trials are judged by and that `digest` leaves out: calibrations, and accepted
    /// snapshots of the run's cells. `absent` stands for a file that is not there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judged_by: BTreeMap<PathBuf, String>,
    /// The commit that its workspaces are checkouts of, if its `rev` is a branch or another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolved>,
    /// Digest of what its agents met: what they were asked, worked in and were bounded by. Where trials are graded again
    /// it stays what it was when they ran. Absent where nobody knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<String>,
    /// Some of its trials may have met it as it was before it changed, and others after (`--changed`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How many of a cell's trials must pass: `all`, `any` or a share.
    pub pass: PassTrials,
    /// The mean from which a trial passes.
    pub threshold: Fraction,
    /// The limits it ran under.
    pub limits: serde_json::Value,
    /// The policy that answered.
    pub interaction: String,
    /// `capability` or `regression`.
    #[serde(default)]
    pub kind: crate::case::CaseKind,
    /// Where its graders are written; absent in runs of versions that did not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<crate::case::GraderPlace>,
    /// Whether its loss alone fails a gate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
}

/// What the revision of a case was when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Resolved {
    /// The revision as the case names it; absent for the HEAD of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// The commit that it was.
    pub commit: String,
}

/// The price table in `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PriceRecord {
    /// The day its prices were looked up.
    pub date: String,
    /// Digest (BLAKE3) of its text.
    pub digest: String,
}

impl PriceRecord {
    /// The table in force.
    pub fn now() -> Self {
        let table = crate::price::table();
        Self { date: table.date.clone(), digest: table.digest.clone() }
    }
}

/// A harness in `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HarnessRecord {
    /// Its name.
    pub name: String,
    /// Where its manifest came from.
    pub origin: String,
    /// Digest of the manifest.
    pub digest: String,
    /// The manifest itself.
    pub manifest: crate::harness::Manifest,
    /// Some of its trials may have been run by it as it was before it changed, and others after (`--changed`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
}

impl RunRecord {
    /// One that says nothing yet.
    pub fn blank() -> Self {
        Self {
            version: VERSION,
            run: String::new(),
            started: String::new(),
            evals: String::new(),
            argv: Vec::new(),
            label: None,
            cases: Vec::new(),
            harnesses: Vec::new(),
            trials: Vec::new(),
            prices: None,
            options: RunOptions::default(),
            derived_from: None,
            manual: false,
            graded: false,
            digests: false,
            replaces: None,
        }
    }
}

impl HarnessRecord {
    /// A harness as it is now.
    pub fn of(manifest: &crate::harness::Manifest, origin: String) -> Self {
        Self {
            name: manifest.name.clone(),
            origin,
            digest: manifest.digest(),
            manifest: manifest.clone(),
            mixed: false,
        }
    }

    /// What to ask for it by: the path of its manifest where it came from one outside of `harnesses/`, else its name.
    pub fn origin_or_name(&self) -> String {
        let in_folder = std::path::Path::new(&self.origin).parent().is_some_and(|folder| folder.ends_with("harnesses"));
        if self.origin.ends_with(".yaml") && !in_folder { self.origin.clone() } else { self.name.clone() }
    }
}

/// How a run was run, as far as a resumed one must do the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RunOptions {
    /// Trials at once.
    pub jobs: usize,
    /// Which workspaces are kept.
    pub keep_workspace: Keep,
    /// A policy in the place of the cases' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interaction: Option<String>,
    /// Limits in the place of the cases' own, as `key=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Errored trials are tried so many times more.
    pub retries: u32,
    /// The run ends at this cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// The run ends after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<crate::values::Time>,
    /// The run ends with the first failure.
    pub fail_fast: bool,
    /// The score that every column is asked for; it alone, and the critical cases, then set the exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_under: Option<Fraction>,
    /// A sandbox in the place of the cases' and the manifests' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<sandbox::Kind>,
    /// Variables of the user's environment that agents get, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Whether a sandbox that the command line asks for takes the mounts of cases along.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_mounts: bool,
    /// Trials of each cell at which the run is looked at; absent where their number is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<Vec<u32>>,
    /// Judges that no grader names.
    #[serde(skip_serializing_if = "Chosen::is_empty")]
    pub judges: Chosen,
    /// The seed of whatever is drawn about the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// Which workspaces are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Those of trials that did not pass.
    #[default]
    Failed,
    /// All.
    Always,
    /// None.
    Never,
}

impl Keep {
    /// Whether the workspace of a trial with this verdict is kept.
    pub fn keeps(self, verdict: Verdict) -> bool {
        match self {
            Keep::Always => true,
            Keep::Never => false,
            Keep::Failed => verdict != Verdict::Pass,
        }
    }
}

/// What went wrong with a run folder.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file system refused.
    #[error("could not {doing} {path}: {source}{}", crate::resources::hint(source))]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path} cannot be read: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A trial could not be brought to a result.
    #[error("the trial in {path} cannot go on: {message}")]
    Trial {
        /// Its folder.
        path: PathBuf,
        /// What failed.
        message: String,
    },
    /// The results are damaged, and what they were gathered from is gone.
    #[error(
        "{path} is damaged: {damaged}; the results of run {run} cannot be gathered again, as trials of it are gone from \
         its folder, too; put back a copy of the folder, or run its cases again"
    )]
    Lost {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and in which line.
        damaged: String,
        /// The run.
        run: String,
    },
    /// A newer program wrote it.
    #[error("{path} has version {version}, this program reads up to {VERSION}; use a newer evals")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// There is no such run.
    #[error("no run is called `{name}` in {folder}{hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
        /// What there is instead.
        hint: String,
    },
    /// Several runs could be meant.
    #[error("`{name}` could be any of {matches}; write more of it")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What it could be.
        matches: String,
    },
    /// Another engine is at work on it.
    #[error("another evals is at work on {0}; wait for it, or end it")]
    Busy(PathBuf),
    /// A name cannot be a folder.
    #[error("`{0}` cannot be the name of a folder")]
    BadName(String),
}

impl From<FileError> for RunError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { doing, path, source } => Self::Io { doing, path, source },
            FileError::BadName(name) => Self::BadName(name),
        }
    }
}

impl RunError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| RunError::Io { doing, path, source }
    }
}

/// Reads a JSON file.
///
/// # Errors
/// It is not there, or not what it should be.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    parsed(path, &regular::read(path).map_err(RunError::io("read", path))?)
}

/// Reads the text of a JSON file.
fn parsed<T: serde::de::DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, RunError> {
    serde_json::from_slice(text)
        .map_err(|error| RunError::Malformed { path: path.to_owned(), message: error.to_string() })
}
