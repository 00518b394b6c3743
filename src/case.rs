//! Cases: a task for an agent and how the result is graded, after reading, merging with the suites, and checking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use crate::gateway::route::{CaseModel, Mode, Route};
use crate::grader::Grader;
use crate::ids::{ArmOf, HasCaseId};
use crate::interaction::{Interaction, QuestionAnswer};
use crate::limits::Limits;
use crate::overlay::Overlay;
use crate::sandbox;
use crate::snapshot::settings::SnapshotSettings;
use crate::trace::ErrorCategory;
use crate::values::{Fraction, PathGlob, Time, is_plain};
use crate::verdict::PassTrials;
use crate::whole_file::FileError;
use crate::word::word;
use crate::workspace::git_source::GitSource;
use crate::yaml::{self, LeftOut, Step, StepPart, YamlError};

mod check;
pub mod digest;
mod evidence_keys;
pub mod find;
mod graders;
mod check_judges;
pub mod file;
mod helpers;
pub mod kept;
mod known_files;
mod load;
pub(crate) mod mcp_servers;
pub mod provenance;
pub mod quarantine;
pub mod seal;

pub use check::KEEP_APART;
pub use check_judges::{check_judges, check_named_judges, unfit};
pub use evidence_keys::EvidenceKeys;
pub use graders::{GraderFolder, GraderPlace, WrittenGrader};
pub use kept::Kept;
pub use known_files::KnownFiles;
pub use load::{LoadContext, LoadError, Loaded, case_files, check_harnesses, load, load_all, load_known};

/// A case, as loaded from its file and its suites.
#[derive(Debug, Clone)]
pub struct Case {
    /// The id: as written, or the path below the root without extension.
    pub id: String,
    /// A description in one line.
    pub description: Option<String>,
    /// The purpose of the case.
    pub kind: CaseKind,
    /// Tags by which cases can be selected.
    pub tags: Vec<String>,
    /// The user's prompts, in order; at least one.
    pub turns: Vec<String>,
    pub system_prompt: Option<String>,
    /// The folder the agent works in.
    pub workspace: Workspace,
    /// A folder that is copied over the workspace before grading.
    pub hidden: Option<PathBuf>,
    /// The home that each grader that runs commands gets.
    pub graders_home: GradersHome,
    /// The harnesses that the case supports. Empty: any harness.
    pub harnesses: Vec<String>,
    /// Capabilities that a harness must have.
    pub requires: Requires,
    /// The policy that answers permission requests.
    pub interaction: Interaction,
    /// The limits of a trial.
    pub limits: Limits,
    /// The timeout of each setup command, if the case sets one.
    pub setup_time: Option<Time>,
    /// The number of trials.
    pub trials: u32,
    /// Environment variables added to the agent's environment.
    pub env: BTreeMap<String, String>,
    /// The graders; those of the suites come first.
    pub written_graders: Vec<WrittenGrader>,
    /// The condition under which the case passes.
    pub pass: Pass,
    /// A reference solution.
    pub oracle: Option<Oracle>,
    /// The model behind the gateway: a script, or a recording.
    pub model: Option<CaseModel>,
    /// True if a trial is errored when its model is unknown or not the requested one.
    pub require_model: bool,
    /// Answers to the agent's questions.
    pub answers: Vec<QuestionAnswer>,
    /// MCP servers offered to the agent, as they were written; each has a `name`.
    pub mcp_servers: Vec<Value>,
    /// Files sent along with the first prompt.
    pub attachments: Vec<PathBuf>,
    /// Skills, an instruction file and further files that are laid into a trial.
    pub overlay: Overlay,
    /// Settings of the agent's session.
    pub session: SessionSettings,
    /// The sandbox that the case asks for.
    pub sandbox: Option<sandbox::Settings>,
    /// The conditions under which errored trials are retried.
    pub retries: Retries,
    /// True if a failure of this case alone fails the gates, whatever the score is.
    pub critical: bool,
    pub quarantine: Option<quarantine::Quarantine>,
    /// The review that the case needs, if it is a draft.
    pub review: Option<Review>,
    /// The origin of the case, if the case was made from a commit, a session or another format.
    pub provenance: Option<provenance::Provenance>,
    pub snapshot: SnapshotSettings,
    /// The case file, as an absolute path.
    pub file: PathBuf,
    /// The scripts of the demo agent that lie beside the case, by variant; `<case>.demo.yaml` has none.
    pub demo_scripts: BTreeMap<String, PathBuf>,
    /// The outermost folder of cases that contains the case. Agents cannot read its content.
    pub cases_root: PathBuf,
    /// The files of the suites and of the case as they were read, outermost first.
    pub sources: Vec<Arc<Source>>,
    /// The texts of the graders in `graders/` that the case names, by name.
    pub named_graders: BTreeMap<String, String>,
    /// Name and text of the policy in `policies/` that the case names.
    pub named_policy: Option<(String, String)>,
    /// The graders, with every named grader replaced by its definition.
    pub graders: Vec<Arc<Grader>>,
    /// The result of [`Case::kept`], which the case shares with its forms in the arms of an experiment.
    pub kept_files: Arc<OnceLock<Kept>>,
    /// The files and folders that were read for the cases loaded together.
    pub known_files: Arc<KnownFiles>,
    /// The texts that an arm of an experiment adds to the prompt, and its system prompt. Empty without an arm.
    pub texts_of_arm: Vec<String>,
    /// The files and texts that the case gives its agents without the arm of an experiment. Absent without an arm.
    pub without_arm: Option<Arc<GivenByCase>>,
}

/// The files and texts that a case itself gives its agents, beside its workspace and its attachments.
#[derive(Debug, Clone)]
pub struct GivenByCase {
    /// The prompts, with the system prompt.
    pub prompts: Vec<String>,
    /// Skills and the instruction file.
    pub overlay: Overlay,
}

impl Case {
    /// Returns the folder of the case file.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// Returns true if permission requests are evidence in this case, whatever the policy answers.
    pub fn wants_requests(&self) -> bool {
        self.requires.interaction == Some(true) || self.graders.iter().any(|grader| grader.kind.needs().interaction)
    }

    /// Returns what the case itself gives its agents, whatever an arm of an experiment adds or replaces.
    pub fn given(&self) -> GivenByCase {
        let of_case = || GivenByCase {
            prompts: self.turns.iter().chain(&self.system_prompt).cloned().collect(),
            overlay: self.overlay.clone(),
        };
        self.without_arm.as_deref().cloned().unwrap_or_else(of_case)
    }

    /// Returns the files and folders of the case that its agent must not see.
    pub fn kept_from_agent(&self) -> impl Iterator<Item = &Path> {
        let oracle = self.oracle.as_ref().map(Oracle::path);
        let scripts = self.demo_scripts.values().map(PathBuf::as_path);
        [Some(self.file.as_path()), self.hidden.as_deref(), oracle].into_iter().flatten().chain(scripts)
    }

    /// Returns the files that the agent must not see, for comparing them with what it gets. They are listed once.
    pub fn kept(&self) -> &Kept {
        self.kept_files.get_or_init(|| Kept::of(self))
    }

    /// Returns why a file or folder that a variant lays under this key cannot be given to the agent of the case, if it would show
    /// files of the case or of its graders.
    pub fn shown_by(&self, key: &str, given: &Path) -> Option<String> {
        let evals = if key == "skills" { self.evals_in(given) } else { Vec::new() };
        let of_graders = check::files_of_graders(self.graders.iter().map(Arc::as_ref));
        check::shows(given, &evals, self.kept_from_agent().chain(of_graders))
    }

    /// Returns the parts of a skill's folder that are not laid for the case, as paths within the folder: its first folder on the
    /// way to the case or one of its suites, such as `evals`, and then each further folder with cases. Empty if the case is not
    /// in such a folder of the skill.
    pub fn evals_in(&self, skill: &Path) -> Vec<PathBuf> {
        check::evals_in(skill, self.sources.iter().map(|source| source.file.as_path()), &self.known_files)
    }

    /// Returns the file name of a script of the demo agent: `<case>.demo.yaml`, or
    /// `<case>.<variant>.demo.yaml`.
    pub fn script_name(&self, variant: &str) -> String {
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        if variant.is_empty() { format!("{stem}.demo.yaml") } else { format!("{stem}.{variant}.demo.yaml") }
    }

    /// Returns the path of the script if the model is scripted.
    pub fn model_script(&self) -> Option<&PathBuf> {
        match &self.model {
            Some(CaseModel::Script(script)) => Some(script),
            Some(CaseModel::Cassette { .. }) | None => None,
        }
    }

    /// Returns the cassette of a cell beside the case: `HARNESS.jsonl`, `HARNESS@MODEL.jsonl` or
    /// `HARNESS+VARIANT.jsonl`.
    ///
    /// # Errors
    /// Returns an error if one of the names cannot be the name of a file.
    pub fn cassette(&self, harness: &str, arm: ArmOf<'_>) -> Result<PathBuf, FileError> {
        Ok(self.cassettes().join(format!("{}.jsonl", arm.file_name(harness)?)))
    }

    /// Returns the folder of the cassettes beside the case.
    pub fn cassettes(&self) -> PathBuf {
        self.file.with_extension("cassettes")
    }

    /// Returns the source of the model's answers in a trial. `mode` is the mode that the run requests. `None`: the
    /// agent reaches its model without the gateway.
    ///
    /// # Errors
    /// Returns an error if the cell cannot have a cassette.
    pub fn route(&self, mode: Option<Mode>, harness: &str, arm: ArmOf<'_>) -> Result<Option<Route>, FileError> {
        let own = self.cassette(harness, arm)?;
        Ok(Route::of(self.model.as_ref(), mode, || own))
    }

    /// Returns the path of the case file as messages show it.
    pub fn shown(&self) -> &Path {
        self.sources.last().map_or(&self.file, |source| &source.shown)
    }

    /// Returns the innermost file that sets a key: the case, or a `suite.yaml` above it.
    pub fn set_in(&self, key: &str) -> &Path {
        self.source_of(&[Step::Key(key)]).map_or(&self.file, |source| &source.shown)
    }

    fn source_of(&self, steps: &[Step<'_>]) -> Option<&Source> {
        let sets = |source: &&Arc<Source>| yaml::find(&source.text, steps, StepPart::Value).is_some();
        self.sources.iter().rev().find(sets).or(self.sources.last()).map(Arc::as_ref)
    }

    /// Returns an error about a setting, in the innermost file that sets it.
    pub fn error_at(&self, steps: &[Step<'_>], message: impl Into<String>) -> YamlError {
        match self.source_of(steps) {
            Some(source) => YamlError::at_steps(&source.shown, &source.text, steps, StepPart::Value, message),
            None => YamlError::at(self.shown(), "", None, message),
        }
    }

    /// Returns a script of the demo agent beside the case, if the file exists.
    pub fn script(&self, variant: &str) -> Option<&Path> {
        self.demo_scripts.get(variant).map(PathBuf::as_path)
    }
}

impl HasCaseId for Case {
    fn case_id(&self) -> &str {
        &self.id
    }
}

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// The path in the form in which messages show it.
    pub shown: PathBuf,
    pub file: PathBuf,
    /// The text of the file.
    pub text: String,
    /// The invalid parts of the file, which were left out.
    pub left_out: LeftOut,
}

/// The purpose of a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum CaseKind {
    /// Shows what an agent can do.
    #[default]
    Capability,
    /// Shows that an agent can still do what it could do before.
    Regression,
}

word!(CaseKind);

/// The folder an agent works in. Each trial gets a fresh copy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Workspace {
    /// The source of the workspace's files.
    pub source: WorkspaceSource,
    /// Commands that run in the workspace before the agent starts.
    pub setup: Vec<String>,
    /// Globs of paths that are left out of the workspace's change.
    pub ignore: Vec<String>,
    /// Globs of files that are restored before grading.
    pub protect: Vec<PathGlob>,
    /// True if a change to a protected file fails the trial.
    pub protect_strict: bool,
}

impl Workspace {
    /// Returns the globs of protected files that begin with a folder that does not exist, such as `test/**` in a
    /// workspace with `tests`. Leaves out globs without a folder, and folders whose name begins with a dot, such as
    /// `.github`: they may be meant for files that an agent creates.
    pub fn unmatched_protection(&self, has_folder: impl Fn(&Path) -> bool) -> Vec<String> {
        let is_unmatched = |glob: &&String| {
            let first = glob.split_once('/').map_or("", |(first, _)| first);
            let is_name = !first.is_empty() && !first.starts_with('.') && is_plain(first);
            is_name && !has_folder(Path::new(first))
        };
        let globs: Vec<String> = self.protect.iter().map(PathGlob::to_string).collect();
        globs.iter().filter(is_unmatched).cloned().collect()
    }
}

/// The home of graders that run commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GradersHome {
    /// Each grader gets the home as setup left it.
    #[default]
    Fresh,
    /// All graders of a trial share one home, in which code of the agent can leave files, too.
    Shared,
}

/// The source of a workspace's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WorkspaceSource {
    /// An empty folder.
    #[default]
    Empty,
    /// A copy of a folder.
    Copy(PathBuf),
    /// A checkout of a Git repository.
    Git(GitSource),
    /// Files by path, with their text.
    Files(BTreeMap<String, String>),
}

/// Capabilities that a harness must have. Trials with a harness that lacks one are skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{tracing: true}`")]
pub struct Requires {
    /// The harness shows its tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing: Option<bool>,
    /// The harness asks for permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interaction: Option<bool>,
    /// The harness takes several prompts in one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_turn: Option<bool>,
    /// The harness lets the model be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_selection: Option<bool>,
}

/// Settings of the agent's session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{mode: plan}`")]
pub struct SessionSettings {
    /// The id of the agent's mode. Default: the agent's own default mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The method of continuing the session after a turn. Default: `keep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between_turns: Option<BetweenTurns>,
}

/// A method of continuing a session after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BetweenTurns {
    /// The turn continues in the same process.
    Keep,
    /// The turn starts a new process, which loads the session with its history.
    Load,
    /// The turn starts a new process, which resumes the session.
    Resume,
}

/// The condition under which a case passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pass {
    /// The score that a trial must reach.
    pub threshold: Fraction,
    /// The number of trials that must pass.
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
    /// A patch that `git apply` applies to the workspace.
    Patch(PathBuf),
}

impl Oracle {
    /// Returns the folder or file of the solution.
    pub fn path(&self) -> &Path {
        match self {
            Oracle::Copy(path) | Oracle::Script(path) | Oracle::Patch(path) => path,
        }
    }
}

/// The review that a case needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Review {
    /// The case is a draft: a person has to read its prompt and remove this key.
    Needed,
}

/// The conditions under which errored trials are retried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retries {
    /// The maximum number of retries. Default: 0. `--retries` overrides it.
    pub max: Option<u32>,
    /// The error categories after which a trial is retried. Empty: `rate_limit`, `provider`, `crashed`, `protocol`, `handshake`
    /// and `internal`.
    pub on: Vec<ErrorCategory>,
}
