//! The run folder: the files of a run, written so that a crash at any moment loses no finished trial.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::case::quarantine::Quarantine;
use crate::gateway::guard::Enforce;
use crate::gateway::route::Mode;
use crate::gateway::server::Timing;
use crate::ids::{HasCaseId, TrialRecord, by_case_id};
use crate::judge::Chosen;
use crate::plan::arm_doubts::ArmDoubt;
use crate::regular;
use crate::sandbox;
use crate::values::Fraction;
use crate::verdict::{PassTrials, Verdict};
use crate::whole_file::FileError;
use shard::{Elsewhere, Shard};

pub mod events;
pub mod find;
pub mod folder;
pub mod integrity;
pub mod journal;
pub mod merge;
pub mod project_of_run;
pub mod user_file;
pub mod names;
pub mod shard;
pub mod stored_results;
pub mod temporary;
mod written_retries;

/// The version of the run folder that this program writes. Folders of a higher version are refused.
pub const VERSION: u32 = 1;

/// `run.json`: the plan of a run, and the files and settings it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// Version of the run folder's format.
    pub version: u32,
    /// Id of the run.
    pub run: String,
    /// The time at which the run began, in RFC 3339 and UTC.
    pub started: String,
    /// Version of `evals`. If another version resumed the run and earlier results were kept, each version, as in
    /// `0.1.0, 0.2.0`.
    pub evals: String,
    /// The command line, without the program.
    pub argv: Vec<String>,
    /// The run's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The folder of the project. If the project is copied or moved, paths in it are read in its new folder. Absent if the
    /// run folder lies outside the project, and in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The path of the run folder in the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PathBuf>,
    /// The part of the plan that this run plays (`--shard`). `cases` and `trials` contain the whole plan. Absent if the
    /// run plays all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The cases at the time of the run.
    pub cases: Vec<CaseRecord>,
    /// The harnesses at the time of the run.
    pub harnesses: Vec<HarnessRecord>,
    /// The experiment that the arms belong to. Absent if the columns are models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<ExperimentRecord>,
    /// The arms of the experiment, the baseline first. Absent if the columns are models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<ArmRecord>,
    /// Every planned trial.
    pub trials: Vec<TrialRecord>,
    /// The price table at the start of the run. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceRecord>,
    /// The options of the run.
    pub options: RunOptions,
    /// The run that this one was made from by `grade` or `--rerun failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<String>,
    /// True if the policy of any planned trial is `manual`. Comparisons leave such a run out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// True if the run was made by `grade`: no agent was run, and the traces come from another run or from
    /// single files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub graded: bool,
    /// True if the run was made by `grade` while its source was going on: it lacks the trials that had not finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub source_in_use: bool,
    /// True if every line of the journal has a digest, and every line of a finished trial the digest of its
    /// result. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub digests: bool,
    /// True if `end.json` is written when the run has ended; without it, the run did not reach its end. Absent in runs of older
    /// versions. In a run made by `grade`, true if its source had `--trials auto` and did not reach its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// The digest of the `run.json` that this one replaced. Absent if it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// The cases and trials of other shards. In `run.json`, they stand among the others.
    #[serde(skip)]
    pub elsewhere: Elsewhere,
    /// The folder of the project when the run began, if `project` is another one because the project was copied or moved.
    #[serde(skip)]
    pub moved_from: Option<PathBuf>,
}

/// The parts of `run.json` by which a run is found, without its plan.
#[derive(Debug, Clone, Deserialize)]
pub struct RunHead {
    /// Version of the run folder's format.
    pub version: u32,
    /// Id of the run.
    pub run: String,
    /// The time at which the run began, in RFC 3339 and UTC.
    pub started: String,
    /// The run's label.
    #[serde(default)]
    pub label: Option<String>,
    /// The part of the plan that the run plays.
    #[serde(default)]
    pub shard: Option<Shard>,
    /// The run that this one was made from.
    #[serde(default)]
    pub derived_from: Option<String>,
    /// True if the run was made by `grade`.
    #[serde(default)]
    pub graded: bool,
}

impl RunHead {
    /// Returns true if the run ran its trials itself: it was not made from another run or from traces.
    pub fn has_run(&self) -> bool {
        self.derived_from.is_none() && !self.graded
    }

    /// Returns true if the run was made by `--rerun failed`.
    pub fn is_rerun(&self) -> bool {
        self.derived_from.is_some() && !self.graded
    }
}

/// A case in `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseRecord {
    /// Id of the case.
    pub id: String,
    /// The case file.
    pub path: PathBuf,
    /// Digest of everything that the case is made from.
    pub digest: String,
    /// Digest of the source of the workspace. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Digests (BLAKE3) of the files that the verdicts depend on and that `digest` does not include:
    /// calibrations, and accepted snapshots of the run's cells. A missing file has the value `absent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judged_by: BTreeMap<PathBuf, String>,
    /// The commit of the workspaces, if the case's `rev` is a branch or another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Resolved>,
    /// Digest of the agents' input: prompts, workspace and limits. If trials are graded again, it keeps the value of
    /// the time when they ran. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<String>,
    /// The keys that decide what the stored files of the trials hold. If trials are graded again, it keeps the value of the
    /// time when they ran. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<crate::case::EvidenceKeys>,
    /// True if the case changed between trials: some may have run before the change and others after it
    /// (`--changed`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// The tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The number of trials of a cell that must pass: `all`, `any` or a share.
    pub pass: PassTrials,
    /// The mean score from which a trial passes.
    pub threshold: Fraction,
    /// The limits of a trial.
    pub limits: serde_json::Value,
    /// The interaction policy.
    pub interaction: String,
    /// `capability` or `regression`.
    #[serde(default)]
    pub kind: crate::case::CaseKind,
    /// The places where the graders are written. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<crate::case::GraderPlace>,
    /// True if losing this case alone fails a gate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// The quarantine of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
}

impl CaseRecord {
    /// Returns true if the case had its present content in the whole run. `digests` has the present digests by case.
    pub fn is_present(&self, digests: &BTreeMap<String, String>) -> bool {
        let is_same = |now: &String| crate::case::digest::is_same(now, &self.digest);
        !self.mixed && digests.get(&self.id).is_some_and(is_same)
    }

    /// Returns the quarantine of the case, if it holds at the start of a run.
    fn quarantine_at(&self, started: &str) -> Option<&Quarantine> {
        self.quarantine.as_ref().filter(|quarantine| quarantine.holds(started))
    }
}

/// The commit of a case's revision when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Resolved {
    /// The revision as the case names it. Absent for the HEAD of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// The commit that the revision named.
    pub commit: String,
}

/// The price table in `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PriceRecord {
    /// The date when the prices were looked up.
    pub date: String,
    /// Digest (BLAKE3) of the table's text.
    pub digest: String,
    /// The file of the table, or `built-in`. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// True if the table changed between trials: some may have been priced before the change and others after it
    /// (`--changed`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
}

impl PriceRecord {
    /// Returns the current price table.
    pub fn now() -> Self {
        let table = crate::price::table();
        let (date, digest) = (table.date.to_string(), table.digest.clone());
        Self { date, digest, origin: Some(table.origin()), mixed: false }
    }
}

/// An experiment in `run.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExperimentRecord {
    /// The experiment file. Absent if all arms were given on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The variants of the command line, as `NAME=YAML`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// The harness of the command line that every arm has, unless it names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The model of the command line that every arm has, unless it names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A description in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name of the baseline.
    pub baseline: String,
    /// The keys that may differ between the arms.
    pub vary: Vec<String>,
    /// The axes of a matrix, in the order written. Absent if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<AxisRecord>,
}

/// An axis of a matrix in `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AxisRecord {
    /// The key that differs.
    pub key: String,
    /// The labels of its values.
    pub labels: Vec<String>,
}

/// An arm of an experiment in `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArmRecord {
    /// The name of the arm.
    pub name: String,
    /// The harness. Absent if the arm runs on several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Digest of what the arm overrides, with the content of its files.
    pub digest: String,
    /// The keys that the arm overrides, with digests in place of the content of files.
    pub overrides: serde_json::Map<String, serde_json::Value>,
    /// Digests of the files and folders that the arm is made from, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<PathBuf, String>,
    /// The label of each axis, if the arm belongs to a matrix.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// True if the arm changed between trials: some may have run before the change and others after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Cases in which the agents of the arm get the same as those of an earlier arm, by the name of that arm. Absent if there
    /// are none, and in runs of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub same_as: BTreeMap<String, BTreeSet<String>>,
    /// Cases whose counted graders ask for a skill that other arms have and this one does not, by the name of the skill. Absent
    /// if there are none, and in runs of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lacks_skills: BTreeMap<String, BTreeSet<String>>,
}

/// A harness in `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HarnessRecord {
    /// Name of the harness.
    pub name: String,
    /// The origin of the manifest.
    pub origin: String,
    /// Digest of the manifest.
    pub digest: String,
    /// The manifest as the run used it.
    pub manifest: crate::harness::Manifest,
    /// True if the manifest changed between trials: some may have run before the change and others after it
    /// (`--changed`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
}

impl HasCaseId for CaseRecord {
    fn case_id(&self) -> &str {
        &self.id
    }
}

impl RunRecord {
    pub fn case(&self, id: &str) -> Option<&CaseRecord> {
        by_case_id(&self.cases, id)
    }

    /// Returns the quarantine of a case, if it held when the run began.
    pub fn quarantine(&self, case: &str) -> Option<&Quarantine> {
        self.case(case)?.quarantine_at(&self.started)
    }

    /// Returns the cases that were in quarantine when the run began, with their quarantines.
    pub fn in_quarantine(&self) -> impl Iterator<Item = (&CaseRecord, &Quarantine)> {
        self.cases.iter().filter_map(|case| Some((case, case.quarantine_at(&self.started)?)))
    }

    /// Returns the doubts about the arms, over the cases of the record.
    pub fn arm_doubts(&self) -> Vec<ArmDoubt> {
        let of_record = |cases: &BTreeSet<String>| -> BTreeSet<String> {
            cases.iter().filter(|case| self.case(case).is_some()).cloned().collect()
        };
        let mut found = Vec::new();
        for arm in &self.arms {
            for (first, cases) in &arm.same_as {
                let (cases, first, second) = (of_record(cases), first.clone(), arm.name.clone());
                found.push(ArmDoubt::Same { first, second, cases, of: self.cases.len() });
            }
            for (skill, cases) in &arm.lacks_skills {
                let (cases, skill, arm) = (of_record(cases), skill.clone(), arm.name.clone());
                found.push(ArmDoubt::Lacks { arm, skill, cases });
            }
        }
        found.retain(|doubt| !doubt.cases().is_empty());
        found
    }

    /// Records doubts about the arms. What is recorded about cases of which `is_read` returns false stays.
    pub fn record_arm_doubts(&mut self, doubts: Vec<ArmDoubt>, is_read: impl Fn(&str) -> bool) {
        for arm in &mut self.arms {
            for of_cases in [&mut arm.same_as, &mut arm.lacks_skills] {
                of_cases.values_mut().for_each(|cases| cases.retain(|case| !is_read(case)));
                of_cases.retain(|_, cases| !cases.is_empty());
            }
        }
        for doubt in doubts {
            let (name, key, is_same, cases) = match doubt {
                ArmDoubt::Same { first, second, cases, .. } => (second, first, true, cases),
                ArmDoubt::Lacks { arm, skill, cases } => (arm, skill, false, cases),
            };
            if let Some(arm) = self.arms.iter_mut().find(|arm| arm.name == name) {
                let of_cases = if is_same { &mut arm.same_as } else { &mut arm.lacks_skills };
                of_cases.entry(key).or_default().extend(cases);
            }
        }
    }

    /// Makes an empty record.
    pub fn blank() -> Self {
        Self {
            version: VERSION,
            run: String::new(),
            started: String::new(),
            evals: String::new(),
            argv: Vec::new(),
            label: None,
            project: None,
            place: None,
            shard: None,
            cases: Vec::new(),
            harnesses: Vec::new(),
            experiment: None,
            arms: Vec::new(),
            trials: Vec::new(),
            prices: None,
            options: RunOptions::default(),
            derived_from: None,
            manual: false,
            graded: false,
            source_in_use: false,
            digests: false,
            ends: false,
            replaces: None,
            elsewhere: Elsewhere::default(),
            moved_from: None,
        }
    }
}

impl HarnessRecord {
    /// Makes the current record of a harness.
    pub fn of(manifest: &crate::harness::Manifest, origin: String) -> Self {
        Self {
            name: manifest.name.clone(),
            origin,
            digest: manifest.digest(),
            manifest: manifest.clone(),
            mixed: false,
        }
    }

    /// Returns the name by which the harness can be requested: the path of its manifest if that is outside
    /// `harnesses/`, else its name.
    pub fn origin_or_name(&self) -> String {
        let in_folder = std::path::Path::new(&self.origin).parent().is_some_and(|folder| folder.ends_with("harnesses"));
        if self.origin.ends_with(".yaml") && !in_folder { self.origin.clone() } else { self.name.clone() }
    }
}

/// The options of a run that a resumed run must repeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunOptions {
    /// The number of concurrent trials.
    pub jobs: usize,
    /// Which workspaces are kept.
    pub keep_workspace: Keep,
    /// A policy that overrides those of the cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interaction: Option<String>,
    /// Limits that override those of the cases, as `key=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// The maximum number of retries of an errored trial, whatever its case says. Absent: its case decides.
    #[serde(flatten, with = "written_retries")]
    #[cfg_attr(test, schemars(with = "written_retries::WrittenRetries"))]
    pub retries: Option<u32>,
    /// The cost in US dollars at which the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// The time after which the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<crate::values::Time>,
    /// True if no more trials are started after one has failed.
    pub fail_fast: bool,
    /// The score that every column must reach. If set, it and the critical cases set the exit code, and not the
    /// verdicts of the other cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_under: Option<Fraction>,
    /// A sandbox that overrides those of the cases and the manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<sandbox::Kind>,
    /// Names of the user's environment variables that agents get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The names in `env` that trials did not get since the run was resumed, because the home of each trial is private. Absent if
    /// there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_not_passed: Vec<String>,
    /// True if a sandbox from the command line includes the mounts of the cases.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_mounts: bool,
    /// The numbers of trials of each cell at which the scores are evaluated. Absent if the number of trials is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<Vec<u32>>,
    /// Judge models for graders that name none.
    #[serde(skip_serializing_if = "Chosen::is_empty")]
    pub judges: Chosen,
    /// The treatment of agents' requests by the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<Mode>,
    /// The treatment of requests for another model than the requested one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce_model: Option<Enforce>,
    /// The pace of recorded answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_timing: Option<Timing>,
    /// True if one arm is compared with itself (`--aa`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aa: bool,
    /// The use of snapshots that was asked for (`--snapshot`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<crate::snapshot::mode::SnapshotMode>,
    /// The seed of the random choices of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// Which workspaces are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Workspaces of trials that did not pass.
    #[default]
    Failed,
    /// All workspaces.
    Always,
    /// No workspaces.
    Never,
}

impl Keep {
    /// Returns true if the workspace of a trial with this verdict is kept.
    pub fn keeps(self, verdict: Verdict) -> bool {
        match self {
            Keep::Always => true,
            Keep::Never => false,
            Keep::Failed => verdict != Verdict::Pass,
        }
    }
}

/// An error with a run folder.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file system returned an error.
    #[error("could not {doing} {path}: {source}{}", crate::resources::hint(source))]
    Io {
        /// The operation.
        doing: &'static str,
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error("{path} cannot be read: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        message: String,
    },
    /// A trial could not be completed.
    #[error("the trial in {path} cannot continue: {message}")]
    Trial {
        /// The trial's folder.
        path: PathBuf,
        message: String,
    },
    /// The results are damaged, and the files that they were gathered from no longer exist.
    #[error(
        "{path} is damaged: {damaged}; the results of run {run} cannot be rebuilt, because trials are missing from \
         its folder; restore a copy of the folder, or run its cases again"
    )]
    Lost {
        /// The file.
        path: PathBuf,
        /// The error and its line.
        damaged: String,
        run: String,
    },
    /// The file was written by a newer program.
    #[error("{path} has version {version}, this program reads up to {VERSION}; use a newer evals")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        version: u32,
    },
    /// The run does not exist.
    #[error("no run is called `{name}` in {folder}{hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The folder that was searched.
        folder: PathBuf,
        /// Existing alternatives.
        hint: String,
    },
    /// The path of a run or a trace does not exist.
    #[error(
        "`{path}` does not exist, and no run is called so; write the path of a run's folder or of a trace, or a run's id"
    )]
    NoFile { path: PathBuf },
    /// The name matches several runs.
    #[error("`{name}` could be any of {matches}; write more of it")]
    Ambiguous {
        /// The requested name.
        name: String,
        matches: String,
    },
    /// Another engine is using the run.
    #[error("another evals process is using {0}; wait for it, or end it")]
    Busy(PathBuf),
    /// A name that cannot be a folder.
    #[error("the name `{0}` cannot be the name of a folder of the run; use another name for the harness or model")]
    BadName(String),
    /// A link in a run folder.
    #[error("{0} is a link, which evals did not make, so nothing is read through it; restore the folder from a copy")]
    Link(PathBuf),
    /// A file in the folder of a trial that is neither a file nor a folder.
    #[error("{0} is a link, a pipe or a device, which evals did not make; remove it")]
    NoEvidence(PathBuf),
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
    /// Returns true if a file is missing, or is something else than a file that the engine writes.
    fn is_lost(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound};
                matches!(source.kind(), NotFound | NotADirectory | IsADirectory | InvalidInput)
            }
            Self::Link(_) => true,
            _ => false,
        }
    }

    /// Returns true if the system does not allow a file to be read.
    fn is_refused(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| RunError::Io { doing, path, source }
    }
}

/// Reads a JSON file.
///
/// # Errors
/// Returns an error if the file does not exist or has invalid content.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    parsed(path, &regular::read(path).map_err(RunError::io("read", path))?)
}

/// Reads the text of a JSON file.
fn parsed<T: serde::de::DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, RunError> {
    // Baselines may have been saved by an editor.
    serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text))
        .map_err(|error| RunError::Malformed { path: path.to_owned(), message: error.to_string() })
}
