//! Cases: a task for an agent and how the result is judged, ready to use: read, merged with its suites, checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::grader::Grader;
use crate::interaction::{Interaction, QuestionAnswer};
use crate::limits::Limits;
use crate::sandbox;
use crate::snapshot::settings::SnapshotSettings;
use crate::trace::ErrorCategory;
use crate::values::{Fraction, Time};
use crate::verdict::PassTrials;
use crate::workspace::git_source::GitSource;
use crate::yaml::LeftOut;

mod check;
pub mod digest;
pub mod find;
mod graders;
mod check_judges;
pub mod file;
mod load;
pub mod seal;

pub use check_judges::{check_judges, check_named_judges, unfit};
pub use graders::{GraderFolder, GraderPlace, WrittenGrader};
pub use load::{LoadContext, LoadError, Loaded, case_files, check_harnesses, load, load_all, load_known};

/// A Case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its id: as written, or the path below the root without extension.
    pub id: String,
    /// One line for people.
    pub description: Option<String>,
    /// What it is for.
    pub kind: CaseKind,
    /// Words to choose cases by.
    pub tags: Vec<String>,
    /// The user's prompts, in order; at least one.
    pub turns: Vec<String>,
    /// The system prompt, where the case has one.
    pub system_prompt: Option<String>,
    /// The folder the agent works in.
    pub workspace: Workspace,
    /// Laid over the workspace before grading.
    pub hidden: Option<PathBuf>,
    /// Harnesses it is meant for; empty where it does not say.
    pub harnesses: Vec<String>,
    /// What a harness must be able to do.
    pub requires: Requires,
    /// How permission requests are answered.
    pub interaction: Interaction,
    /// What a trial may use up.
    pub limits: Limits,
    /// How long each command of its setup may take, if it says so.
    pub setup_time: Option<Time>,
    /// How often it is tried.
    pub trials: u32,
    /// Added to the agent's environment.
    pub env: BTreeMap<String, String>,
    /// What judges it: those of its suites first.
    pub written_graders: Vec<WrittenGrader>,
    /// When it passes.
    pub pass: Pass,
    /// A reference solution.
    pub oracle: Option<Oracle>,
    /// A script that the model gateway plays in the model's place.
    pub model_script: Option<PathBuf>,
    /// A trial whose model is not the one asked for is not judged.
    pub require_model: bool,
    /// Answers to the agent's questions.
    pub answers: Vec<QuestionAnswer>,
    /// MCP servers offered to the agent, as they were written; each has a `name`.
    pub mcp_servers: Vec<Value>,
    /// Files sent along with the first prompt.
    pub attachments: Vec<PathBuf>,
    /// What is special about the agent's session.
    pub session: SessionSettings,
    /// The sandbox it asks for.
    pub sandbox: Option<sandbox::Settings>,
    /// When errored trials are tried again.
    pub retries: Retries,
    /// Its failure counts more than the share of cases that pass.
    pub critical: bool,
    /// What of its Trace a snapshot keeps.
    pub snapshot: SnapshotSettings,
    /// The file it stands in, absolute.
    pub file: PathBuf,
    /// The scripts of the demo agent that lie beside the case, by variant; `<case>.demo.yaml` has none.
    pub demo_scripts: BTreeMap<String, PathBuf>,
    /// The outermost folder of cases it belongs to: what lies below is nothing for agents to read.
    pub cases_root: PathBuf,
    /// The suites and the case, as they were read, outermost first.
    pub sources: Vec<Arc<Source>>,
    /// The texts of the graders in `graders/` that it names, by name.
    pub named_graders: BTreeMap<String, String>,
    /// Name and text of the policy in `policies/` that it names.
    pub named_policy: Option<(String, String)>,
    /// What judges it, with every named grader in its place.
    pub graders: Vec<Arc<Grader>>,
}

impl Case {
    /// The folder of the case file.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// Returns true if requests for permission are evidence in this case, whatever the policy answers.
    pub fn wants_requests(&self) -> bool {
        self.requires.interaction == Some(true) || self.graders.iter().any(|judge| judge.kind.needs().interaction)
    }

    /// The file name of a script of the demo agent: `<case>.demo.yaml`, or `<case>.<variant>.demo.yaml`.
    pub fn script_name(&self, variant: &str) -> String {
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        if variant.is_empty() { format!("{stem}.demo.yaml") } else { format!("{stem}.{variant}.demo.yaml") }
    }

    /// The case's file as messages name it.
    pub fn shown(&self) -> &Path {
        self.sources.last().map_or(&self.file, |source| &source.shown)
    }

    /// A script of the demo agent beside the case, if it is there.
    pub fn script(&self, variant: &str) -> Option<&Path> {
        self.demo_scripts.get(variant).map(PathBuf::as_path)
    }
}

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// As messages name it.
    pub shown: PathBuf,
    /// Where it is.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// What of it is wrong, and was left out.
    pub left_out: LeftOut,
}

/// What a case is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaseKind {
    /// It shows what an agent can do.
    #[default]
    Capability,
    /// It shows that an agent still can do what it could.
    Regression,
}

/// The folder an agent works in; always a fresh copy for each trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Workspace {
    /// What it is made from.
    pub source: WorkspaceSource,
    /// Commands run in it before the agent starts.
    pub setup: Vec<String>,
    /// Paths that are left out of its change, as globs.
    pub ignore: Vec<String>,
    /// Files that are put back before grading, as globs.
    pub protect: Vec<String>,
    /// A change to a protected file fails the trial.
    pub protect_strict: bool,
}

/// What a workspace is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WorkspaceSource {
    /// Nothing: an empty folder.
    #[default]
    Empty,
    /// A copy of a folder.
    Copy(PathBuf),
    /// A checkout.
    Git(GitSource),
    /// Files by path, with their text.
    Files(BTreeMap<String, String>),
}

/// What a harness must be able to do. A trial with a harness that cannot is skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Requires {
    /// It shows its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing: Option<bool>,
    /// It asks for permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interaction: Option<bool>,
    /// It takes several prompts in one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_turn: Option<bool>,
    /// Its model can be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_selection: Option<bool>,
}

/// What is special about the agent's session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SessionSettings {
    /// The agent's mode, by its id; the agent's own default where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How the session goes on after a turn; `keep` where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_turns: Option<BetweenTurns>,
}

/// How a session goes on after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BetweenTurns {
    /// In the same process.
    Keep,
    /// In another process, which loads it with its history.
    Load,
    /// In another process, which resumes it.
    Resume,
}

/// When a case passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pass {
    /// The score that a trial must reach.
    pub threshold: Fraction,
    /// How many of its trials must pass.
    pub trials: PassTrials,
}

impl Default for Pass {
    fn default() -> Self {
        Self { threshold: Fraction::ONE, trials: PassTrials::All }
    }
}

/// A reference solution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oracle {
    /// A folder laid over the workspace.
    Copy(PathBuf),
    /// A script of the demo agent.
    Script(PathBuf),
}

/// When errored trials are tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retries {
    /// At most so often; absent where the command line decides.
    pub max: Option<u32>,
    /// Only after these; empty means after any.
    pub on: Vec<ErrorCategory>,
}
