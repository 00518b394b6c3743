//! The content of a case file or suite file as written, and the merging of a case with its suites.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::provenance::Provenance;
use super::quarantine::Quarantine;
use super::{CaseKind, GradersHome, Requires, Review, SessionSettings};
use crate::gateway::route::CaseModel;
use crate::grader::{GraderEntry, GraderOrName};
use crate::harness::Results;
use crate::harness::catalog::is_path;
use crate::interaction::{Interaction, Llm, QuestionAnswer, Scripted};
use crate::limits::Limits;
use crate::overlay::{Instructions, SkillEntry};
use crate::paths;
use crate::sandbox;
use crate::snapshot::set::Several;
use crate::snapshot::settings::{Normalise, SnapshotText};
use crate::trace::ErrorCategory;
use crate::values::{Fraction, Time};
use crate::verdict::PassTrials;

/// Keys that a case may hold and a `suite.yaml` may not.
pub const CASE_ONLY: [&str; 4] = ["id", "prompt", "turns", "oracle"];

/// A case or a suite, as written. Keys that the file does not contain are absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Layer {
    /// The case's name. Default: the path below the root of the cases, without extension.
    pub id: Option<String>,
    /// A description in one line.
    pub description: Option<String>,
    /// The purpose of the case: `capability` or `regression`.
    pub kind: Option<CaseKind>,
    /// Tags by which cases can be selected. Tags of suites are added.
    pub tags: Vec<String>,
    /// The user's prompt. A case has either `prompt` or `turns`.
    pub prompt: Option<String>,
    /// Several prompts, sent in order in one session.
    pub turns: Option<Vec<String>>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The folder the agent works in. Default: an empty folder.
    pub workspace: Option<WorkspaceLayer>,
    /// A folder that is copied over the workspace after the agent has stopped, before grading.
    pub hidden: Option<PathBuf>,
    /// The home of graders that run commands: `fresh` for each grader, or `shared` by all. Default: `fresh`.
    pub graders_home: Option<GradersHome>,
    /// The harnesses that the case is run with: names, or paths of manifests.
    pub harnesses: Option<Vec<String>>,
    /// Capabilities that a harness must have.
    pub requires: Option<Requires>,
    /// The policy that answers permission requests.
    pub interaction: Option<Interaction>,
    /// The limits of a trial.
    pub limits: Option<Limits>,
    /// Timeouts for the parts of a trial that are not the agent's.
    pub timeouts: Option<TimeoutsLayer>,
    /// The number of trials.
    pub trials: Option<NonZeroU32>,
    /// Environment variables added to the agent's environment.
    pub env: Option<BTreeMap<String, String>>,
    /// The graders that grade the result. Graders of suites are added.
    pub graders: Vec<GraderEntry>,
    /// The condition under which the case passes.
    pub pass: Option<PassLayer>,
    /// A reference solution, for `evals check --audit`.
    pub oracle: Option<OracleLayer>,
    /// The model behind the gateway: a script or a recording, instead of a service.
    pub model: Option<ModelLayer>,
    /// If `true`, a trial whose model is not the requested one is `errored`.
    pub require_model: Option<bool>,
    /// Answers to the agent's questions.
    pub answers: Option<Vec<QuestionAnswer>>,
    /// MCP servers offered to the agent: a list, or a map by name. A server has `command` (with `args`, `env` and `cwd`),
    /// or `url` or `httpUrl` (with `type` and `headers`). Agents get other keys, such as `timeout`, `disabled` and
    /// `autoApprove`, as they are.
    pub mcp_servers: Option<Value>,
    /// Files sent along with the first prompt.
    pub attachments: Option<Vec<PathBuf>>,
    /// The folders of skills that are laid where the agent reads skills, each with its `SKILL.md`.
    pub skills: Option<Vec<SkillEntry>>,
    /// The instruction file that is laid where the agent reads one.
    pub instructions: Option<Instructions>,
    /// Settings of the agent's session: its mode, and how it continues between turns.
    pub session: Option<SessionSettings>,
    /// The sandbox: `none`, `bwrap`, `command`, or a map.
    pub sandbox: Option<sandbox::Settings>,
    /// The conditions under which errored trials are retried.
    pub retries: Option<RetriesLayer>,
    /// If `true`, a failure of this case alone fails the gates (`--fail-under`, `--gate`), whatever the score is.
    pub critical: Option<bool>,
    /// The quarantine: until a given day, the case's verdicts are shown but change no exit code.
    pub quarantine: Option<Quarantine>,
    /// `needed`: the case is a draft that a person has not reviewed yet.
    pub review: Option<Review>,
    /// The commit or session that the case was made from.
    pub provenance: Option<Provenance>,
    /// The settings of the case's snapshots.
    pub snapshot: Option<SnapshotLayer>,
}

/// The folder an agent works in, from one of `copy`, `git` and `files`. Default: an empty folder.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{copy: template}`")]
pub struct WorkspaceLayer {
    /// The folder to copy.
    pub copy: Option<PathBuf>,
    /// The Git repository to check out.
    pub git: Option<GitLayer>,
    /// Files by path, with their text.
    pub files: Option<BTreeMap<String, String>>,
    /// Commands that run in the workspace before the agent starts.
    pub setup: Option<Vec<String>>,
    /// Globs of paths that are left out of the workspace's change.
    pub ignore: Option<Vec<String>>,
    /// Globs of files that are restored before grading.
    pub protect: Option<Vec<String>>,
    /// If `true`, a change to a protected file fails the trial.
    pub protect_strict: Option<bool>,
}

/// Timeouts for the parts of a trial that are not the agent's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{setup: 10m}`")]
pub struct TimeoutsLayer {
    /// Timeout of each command of `workspace.setup`. Default: `timeouts.setup` of the manifest, else `10m`.
    pub setup: Option<Time>,
}

/// A Git repository, given by one of `path` and `url`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{path: repo, rev: main}`")]
pub struct GitLayer {
    /// The folder of a local repository.
    pub path: Option<PathBuf>,
    /// The URL of a remote repository.
    pub url: Option<String>,
    /// The commit, branch or tag to check out.
    pub rev: Option<String>,
    /// The folder of the repository to use. Default: all of it.
    pub subdir: Option<PathBuf>,
}

/// The condition under which a case passes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{threshold: 0.8}`")]
pub struct PassLayer {
    /// The score that a trial must reach: above 0, at most 1. Default: 1.0, at which every counted grader must have passed.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub threshold: Option<Fraction>,
    /// The number of trials that must pass: `all`, `any` or a share.
    pub trials: Option<PassTrials>,
}

/// A reference solution, given by one of `copy`, `script` and `patch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{patch: solution.patch}`")]
pub struct OracleLayer {
    /// A folder that is copied over the workspace.
    pub copy: Option<PathBuf>,
    /// A script of the demo agent.
    pub script: Option<PathBuf>,
    /// A patch that `git apply` applies to the workspace.
    pub patch: Option<PathBuf>,
}

/// The model behind the gateway: exactly one of `script` and `cassette`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{script: model.yaml}`")]
pub struct ModelLayer {
    /// A script with the model's answers.
    pub script: Option<PathBuf>,
    /// A recording of the model's answers.
    pub cassette: Option<PathBuf>,
    /// The comparison of tool results with the recording. Default: `gateway.results` of the manifest, else `compare`.
    pub results: Option<Results>,
}

impl ModelLayer {
    /// Returns the model; `None` if the layer names none, which is reported as an error.
    pub(super) fn into_model(self) -> Option<CaseModel> {
        let ignore_results = self.results == Some(Results::Ignore);
        let script = self.script.map(CaseModel::Script);
        script.or_else(|| Some(CaseModel::Cassette { file: self.cassette?, ignore_results }))
    }
}

/// The conditions under which errored trials are retried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{max: 2}`")]
pub struct RetriesLayer {
    /// The maximum number of retries. Default: 0. `--retries` overrides it.
    pub max: Option<u32>,
    /// The error categories after which a trial is retried. Default: `rate_limit`, `provider`, `crashed`, `protocol`,
    /// `handshake` and `internal`.
    pub on: Option<Vec<ErrorCategory>>,
}

/// The settings of a case's snapshots.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{text: full}`")]
pub struct SnapshotLayer {
    /// The form in which texts are kept in snapshots.
    pub text: Option<SnapshotText>,
    /// Rules for values that vary by chance and are not known from the environment: they are replaced before a
    /// trace is stored or compared.
    pub normalise: Option<Vec<Normalise>>,
    /// The way in which several trials are combined in a snapshot: `set` keeps the shape of each trial, `core` keeps
    /// the parts that all shapes have in common.
    pub several: Option<Several>,
}

impl Layer {
    /// Makes every path absolute, relative to the folder of the file that contains it.
    pub(super) fn rebase(&mut self, folder: &Path) {
        let rebase = |path: &mut PathBuf| *path = paths::absolute(folder, path);
        if let Some(workspace) = &mut self.workspace {
            workspace.copy.as_mut().map(rebase);
            workspace.git.as_mut().and_then(|git| git.path.as_mut()).map(rebase);
        }
        self.hidden.as_mut().map(rebase);
        for harness in self.harnesses.iter_mut().flatten().filter(|name| is_path(name)) {
            *harness = paths::absolute(folder, Path::new(&*harness)).to_string_lossy().into_owned();
        }
        if let Some(oracle) = &mut self.oracle {
            oracle.copy.as_mut().map(rebase);
            oracle.script.as_mut().map(rebase);
            oracle.patch.as_mut().map(rebase);
        }
        if let Some(model) = &mut self.model {
            model.script.as_mut().map(rebase);
            model.cassette.as_mut().map(rebase);
        }
        self.attachments.iter_mut().flatten().for_each(rebase);
        self.skills.iter_mut().flatten().for_each(|skill| rebase(&mut skill.path));
        self.instructions.as_mut().and_then(|it| it.file.as_mut()).map(rebase);
        if let Some(servers) = &mut self.mcp_servers {
            rebase_commands(servers, folder);
        }
        let mounts = self.sandbox.iter_mut().flat_map(|sandbox| &mut sandbox.mount).map(|mount| &mut mount.path);
        mounts.filter(|path| !path.starts_with("~")).for_each(rebase);
    }

    /// Returns the folders and files that the layer names; paths in its graders are relative to this folder. No file
    /// in them is read as a case.
    pub(super) fn names(&self, folder: &Path) -> Vec<PathBuf> {
        let workspace = self.workspace.as_ref();
        let oracle = self.oracle.as_ref();
        let one = [
            workspace.and_then(|w| w.copy.as_deref()),
            workspace.and_then(|w| w.git.as_ref()?.path.as_deref()),
            self.hidden.as_deref(),
            oracle.and_then(|o| o.copy.as_deref()),
            oracle.and_then(|o| o.script.as_deref()),
            oracle.and_then(|o| o.patch.as_deref()),
            self.model.as_ref().and_then(|model| model.script.as_deref()),
            self.model.as_ref().and_then(|model| model.cassette.as_deref()),
        ];
        let attachments = self.attachments.iter().flatten().map(PathBuf::as_path);
        let graders = self.graders.iter().filter_map(|entry| match &entry.what {
            GraderOrName::Kind(kind) => Some(kind.spec().named_files()),
            GraderOrName::Use(_) => None,
        });
        let skills = self.skills.iter().flatten().map(|skill| skill.path.as_path());
        let instructions = self.instructions.as_ref().and_then(|it| it.file.as_deref());
        let laid = skills.chain(instructions);
        let manifests = self.harnesses.iter().flatten().filter(|name| is_path(name)).map(Path::new);
        let own = one.into_iter().flatten().chain(attachments).chain(laid).chain(manifests).map(Path::to_path_buf);
        own.chain(graders.flatten().map(|file| paths::absolute(folder, file))).collect()
    }

    /// Merges another layer over this one: maps are merged, scalars are overridden, lists are replaced, graders
    /// and tags are appended.
    #[must_use]
    pub(super) fn under(self, over: Layer) -> Layer {
        let mut tags = self.tags;
        for tag in over.tags {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        let mut graders = self.graders;
        graders.extend(over.graders);
        Layer {
            id: over.id.or(self.id),
            description: over.description.or(self.description),
            kind: over.kind.or(self.kind),
            tags,
            prompt: over.prompt.or(self.prompt),
            turns: over.turns.or(self.turns),
            system_prompt: over.system_prompt.or(self.system_prompt),
            workspace: merged(self.workspace, over.workspace, WorkspaceLayer::under),
            hidden: over.hidden.or(self.hidden),
            graders_home: over.graders_home.or(self.graders_home),
            harnesses: over.harnesses.or(self.harnesses),
            requires: merged(self.requires, over.requires, |under, over| Requires {
                tracing: over.tracing.or(under.tracing),
                interaction: over.interaction.or(under.interaction),
                multi_turn: over.multi_turn.or(under.multi_turn),
                model_selection: over.model_selection.or(under.model_selection),
            }),
            interaction: merged(self.interaction, over.interaction, interactions),
            timeouts: merged(self.timeouts, over.timeouts, |under, over| TimeoutsLayer {
                setup: over.setup.or(under.setup),
            }),
            limits: merged(self.limits, over.limits, Limits::under),
            trials: over.trials.or(self.trials),
            env: merged(self.env, over.env, maps),
            graders,
            pass: merged(self.pass, over.pass, |under, over| PassLayer {
                threshold: over.threshold.or(under.threshold),
                trials: over.trials.or(under.trials),
            }),
            oracle: over.oracle.or(self.oracle),
            model: over.model.or(self.model),
            require_model: over.require_model.or(self.require_model),
            answers: over.answers.or(self.answers),
            mcp_servers: merged(self.mcp_servers, over.mcp_servers, values),
            attachments: over.attachments.or(self.attachments),
            skills: over.skills.or(self.skills),
            instructions: over.instructions.or(self.instructions),
            session: merged(self.session, over.session, |under, over| SessionSettings {
                mode: over.mode.or(under.mode),
                between_turns: over.between_turns.or(under.between_turns),
            }),
            sandbox: merged(self.sandbox, over.sandbox, |under, over| sandbox::Settings {
                mount: if over.mount.is_empty() { under.mount.clone() } else { over.mount.clone() },
                ..over.over(under)
            }),
            retries: merged(self.retries, over.retries, |under, over| RetriesLayer {
                max: over.max.or(under.max),
                on: over.on.or(under.on),
            }),
            critical: over.critical.or(self.critical),
            quarantine: over.quarantine.or(self.quarantine),
            review: over.review.or(self.review),
            provenance: over.provenance.or(self.provenance),
            snapshot: merged(self.snapshot, over.snapshot, |under, over| SnapshotLayer {
                text: over.text.or(under.text),
                normalise: over.normalise.or(under.normalise),
                several: over.several.or(under.several),
            }),
        }
    }
}

impl WorkspaceLayer {
    /// Merges two workspaces. A workspace has one source: a source in the upper layer replaces an inherited
    /// source of another kind.
    fn under(self, over: WorkspaceLayer) -> WorkspaceLayer {
        let (copy, git, files) = if over.copy.is_some() {
            (over.copy, None, None)
        } else if over.git.is_some() {
            (None, merged(self.git, over.git, GitLayer::under), None)
        } else if over.files.is_some() {
            (None, None, merged(self.files, over.files, maps))
        } else {
            (self.copy, self.git, self.files)
        };
        WorkspaceLayer {
            copy,
            git,
            files,
            setup: over.setup.or(self.setup),
            ignore: over.ignore.or(self.ignore),
            protect: over.protect.or(self.protect),
            protect_strict: over.protect_strict.or(self.protect_strict),
        }
    }
}

impl GitLayer {
    fn under(self, over: GitLayer) -> GitLayer {
        let other_place = over.path.is_some() || over.url.is_some();
        let (path, url) = if other_place { (over.path, over.url) } else { (self.path, self.url) };
        GitLayer { path, url, rev: over.rev.or(self.rev), subdir: over.subdir.or(self.subdir) }
    }
}

/// Makes commands of MCP servers that name a program beside the file relative to the file's folder.
pub(crate) fn rebase_commands(servers: &mut Value, folder: &Path) {
    let servers: Box<dyn Iterator<Item = &mut Value>> = match servers {
        Value::Array(list) => Box::new(list.iter_mut()),
        Value::Object(map) => Box::new(map.values_mut()),
        _ => return,
    };
    for command in servers.filter_map(|server| server.get_mut("command")) {
        let Some(written) = command.as_str().filter(|word| word.contains('/')) else { continue };
        let program = paths::absolute(folder, Path::new(written));
        if program.is_file()
            && let Some(program) = program.to_str()
        {
            *command = Value::String(program.to_owned());
        }
    }
}

/// Lays an optional value over another one.
pub fn merged<T>(under: Option<T>, over: Option<T>, merge: impl FnOnce(T, T) -> T) -> Option<T> {
    match (under, over) {
        (Some(under), Some(over)) => Some(merge(under, over)),
        (under, over) => over.or(under),
    }
}

fn maps(mut under: BTreeMap<String, String>, over: BTreeMap<String, String>) -> BTreeMap<String, String> {
    under.extend(over);
    under
}

fn interactions(under: Interaction, over: Interaction) -> Interaction {
    match (under, over) {
        (Interaction::Scripted(under), Interaction::Scripted(over)) => Interaction::Scripted(Scripted {
            rules: if over.rules.is_empty() { under.rules } else { over.rules },
            default: over.default.or(under.default),
        }),
        (Interaction::Llm(under), Interaction::Llm(over)) => Interaction::Llm(Llm {
            model: over.model.or(under.model),
            instructions: over.instructions.or(under.instructions),
            default: over.default.or(under.default),
        }),
        (_, over) => over,
    }
}

fn values(under: Value, over: Value) -> Value {
    match (under, over) {
        (Value::Object(mut under), Value::Object(over)) => {
            for (key, value) in over {
                let value = match under.remove(&key) {
                    Some(inherited) => values(inherited, value),
                    None => value,
                };
                under.insert(key, value);
            }
            Value::Object(under)
        }
        (_, over) => over,
    }
}

/// Returns MCP servers as a list: the keys of a map become names.
pub(crate) fn servers(written: Option<Value>) -> Vec<Value> {
    match written {
        Some(Value::Array(list)) => list,
        Some(Value::Object(map)) => map
            .into_iter()
            .map(|(name, mut server)| {
                if let Value::Object(server) = &mut server {
                    server.entry("name").or_insert(Value::String(name));
                }
                server
            })
            .collect(),
        _ => Vec::new(),
    }
}
