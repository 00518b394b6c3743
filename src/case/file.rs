//! One file as it was written, case or suite, and how a case is laid over its suites.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{CaseKind, Requires, SessionSettings};
use crate::grader::{GraderEntry, What};
use crate::interaction::{Interaction, Llm, QuestionAnswer, Scripted};
use crate::limits::Limits;
use crate::paths;
use crate::sandbox;
use crate::snapshot::set::Several;
use crate::snapshot::settings::{Normalise, SnapshotText};
use crate::trace::ErrorCategory;
use crate::values::{Fraction, Time};
use crate::verdict::PassTrials;

/// Keys that a case may hold and a `suite.yaml` may not.
pub const CASE_ONLY: [&str; 4] = ["id", "prompt", "turns", "oracle"];

/// A case or a suite, as written: what a file does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Layer {
    /// The case's name; without it, the path below the cases root without extension.
    pub id: Option<String>,
    /// One line for people.
    pub description: Option<String>,
    /// What the case is for: `capability` or `regression`.
    pub kind: Option<CaseKind>,
    /// Words to choose cases by; those of suites are added.
    pub tags: Vec<String>,
    /// What the user says. Either this or `turns`.
    pub prompt: Option<String>,
    /// Several prompts, one after the other, in one session.
    pub turns: Option<Vec<String>>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The folder the agent works in; an empty one where nothing is said.
    pub workspace: Option<WorkspaceLayer>,
    /// A folder laid over the workspace when the agent has stopped, before grading.
    pub hidden: Option<PathBuf>,
    /// Names of the harnesses it is run with.
    pub harnesses: Option<Vec<String>>,
    /// What a harness must be able to do.
    pub requires: Option<Requires>,
    /// How permission requests are answered.
    pub interaction: Option<Interaction>,
    /// What a trial may use up.
    pub limits: Option<Limits>,
    /// How long parts of a trial may take that are not the agent's.
    pub timeouts: Option<TimeoutsLayer>,
    /// How often it is tried.
    pub trials: Option<NonZeroU32>,
    /// Added to the agent's environment.
    pub env: Option<BTreeMap<String, String>>,
    /// What judges the result; those of suites are added.
    pub graders: Vec<GraderEntry>,
    /// When it passes.
    pub pass: Option<PassLayer>,
    /// A reference solution, for `evals check --audit`.
    pub oracle: Option<OracleLayer>,
    /// What the model gateway plays in the model's place.
    pub model: Option<ModelLayer>,
    /// A trial whose model is not the one asked for is not judged.
    pub require_model: Option<bool>,
    /// Answers to the agent's questions.
    pub answers: Option<Vec<QuestionAnswer>>,
    /// MCP servers offered to the agent: a list, or a map by name.
    pub mcp_servers: Option<Value>,
    /// Files sent along with the first prompt.
    pub attachments: Option<Vec<PathBuf>>,
    /// What is special about the agent's session: its mode, and how it goes on between turns.
    pub session: Option<SessionSettings>,
    /// The sandbox: `none`, `bwrap`, `command`, or a map.
    pub sandbox: Option<sandbox::Settings>,
    /// When errored trials are tried again.
    pub retries: Option<RetriesLayer>,
    /// Its failure counts more than the share of cases that pass.
    pub critical: Option<bool>,
    /// What of its Trace a snapshot keeps.
    pub snapshot: Option<SnapshotLayer>,
}

/// The folder an agent works in, from one of `copy`, `git` and `files`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WorkspaceLayer {
    /// A folder that is copied.
    pub copy: Option<PathBuf>,
    /// A repository that is checked out.
    pub git: Option<GitLayer>,
    /// Files by path, with their text.
    pub files: Option<BTreeMap<String, String>>,
    /// Commands run in it before the agent starts.
    pub setup: Option<Vec<String>>,
    /// Paths that are left out of its change.
    pub ignore: Option<Vec<String>>,
    /// Files that are put back before grading.
    pub protect: Option<Vec<String>>,
    /// A change to a protected file fails the trial.
    pub protect_strict: Option<bool>,
}

/// How long parts of a trial may take that are not the agent's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TimeoutsLayer {
    /// For each command of `workspace.setup`. Default: `timeouts.setup` of the manifest, else `10m`.
    pub setup: Option<Time>,
}

/// A repository, from one of `path` and `url`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GitLayer {
    /// A folder.
    pub path: Option<PathBuf>,
    /// A repository elsewhere.
    pub url: Option<String>,
    /// Commit, branch or tag.
    pub rev: Option<String>,
    /// Only this folder of it.
    pub subdir: Option<PathBuf>,
}

/// When a case passes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PassLayer {
    /// The score that a trial must reach: above 0, at most 1. Default: 1.0, at which every counted grader must have passed.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub threshold: Option<Fraction>,
    /// How many trials must pass: `all`, `any` or a share.
    pub trials: Option<PassTrials>,
}

/// A reference solution: one of `copy` and `script`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct OracleLayer {
    /// A folder laid over the workspace.
    pub copy: Option<PathBuf>,
    /// A script of the demo agent.
    pub script: Option<PathBuf>,
}

/// What the model gateway plays.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelLayer {
    /// A file with its answers.
    pub script: PathBuf,
}

/// When errored trials are tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RetriesLayer {
    /// At most so often.
    pub max: Option<u32>,
    /// Only after errors of these categories.
    pub on: Option<Vec<ErrorCategory>>,
}

/// What of a Trace a snapshot keeps.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SnapshotLayer {
    /// How texts are kept.
    pub text: Option<SnapshotText>,
    /// What differs by chance beyond what the environment shows: replaced before it is kept or compared.
    pub normalise: Option<Vec<Normalise>>,
    /// What several trials come to: `set`, each of their Shapes, or `core`, what they have in common.
    pub several: Option<Several>,
}

impl Layer {
    /// Makes every path absolute, counted from the folder of the file it stands in.
    pub(super) fn rebase(&mut self, folder: &Path) {
        let rebase = |path: &mut PathBuf| *path = paths::absolute(folder, path);
        if let Some(workspace) = &mut self.workspace {
            workspace.copy.as_mut().map(rebase);
            workspace.git.as_mut().and_then(|git| git.path.as_mut()).map(rebase);
        }
        self.hidden.as_mut().map(rebase);
        if let Some(oracle) = &mut self.oracle {
            oracle.copy.as_mut().map(rebase);
            oracle.script.as_mut().map(rebase);
        }
        if let Some(model) = &mut self.model {
            rebase(&mut model.script);
        }
        self.attachments.iter_mut().flatten().for_each(rebase);
        if let Some(servers) = &mut self.mcp_servers {
            rebase_commands(servers, folder);
        }
        let mounts = self.sandbox.iter_mut().flat_map(|sandbox| &mut sandbox.mount).map(|mount| &mut mount.path);
        mounts.filter(|path| !path.starts_with("~")).for_each(rebase);
    }

    /// Folders and files it names, in its graders counted from this folder: nothing in them is a case.
    pub(super) fn names(&self, folder: &Path) -> Vec<PathBuf> {
        let workspace = self.workspace.as_ref();
        let oracle = self.oracle.as_ref();
        let one = [
            workspace.and_then(|w| w.copy.as_deref()),
            workspace.and_then(|w| w.git.as_ref()?.path.as_deref()),
            self.hidden.as_deref(),
            oracle.and_then(|o| o.copy.as_deref()),
            oracle.and_then(|o| o.script.as_deref()),
            self.model.as_ref().map(|m| m.script.as_path()),
        ];
        let attachments = self.attachments.iter().flatten().map(PathBuf::as_path);
        let graders = self.graders.iter().filter_map(|entry| match &entry.what {
            What::Kind(kind) => Some(kind.named_files()),
            What::Use(_) => None,
        });
        let own = one.into_iter().flatten().chain(attachments).map(Path::to_path_buf);
        own.chain(graders.flatten().map(|file| paths::absolute(folder, file))).collect()
    }

    /// This layer with another one laid over it: maps merge, scalars are overridden, lists replaced,
    /// graders and tags appended.
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
            limits: merged(self.limits, over.limits, |under, over| Limits {
                time: over.time.or(under.time),
                idle: over.idle.or(under.idle),
                steps: over.steps.or(under.steps),
                tool_calls: over.tool_calls.or(under.tool_calls),
                tokens: over.tokens.or(under.tokens),
                cost_usd: over.cost_usd.or(under.cost_usd),
                on_limit: over.on_limit.or(under.on_limit),
            }),
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
            snapshot: merged(self.snapshot, over.snapshot, |under, over| SnapshotLayer {
                text: over.text.or(under.text),
                normalise: over.normalise.or(under.normalise),
                several: over.several.or(under.several),
            }),
        }
    }
}

impl WorkspaceLayer {
    /// A workspace has one source: naming another kind of it takes the place of the inherited one.
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

/// Makes the commands of MCP servers that name a program beside the file count from its folder.
fn rebase_commands(servers: &mut Value, folder: &Path) {
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

fn merged<T>(under: Option<T>, over: Option<T>, merge: impl FnOnce(T, T) -> T) -> Option<T> {
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
