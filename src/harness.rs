//! Harnesses: agents under evaluation. Each harness is a [`Manifest`], a YAML file, for an adapter, which is
//! code.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::project;
use crate::sandbox;
use crate::trace::ToolKind;
use crate::values::{NameGlob, Pattern, Time};
use crate::word::word;

pub mod benchflow;
pub mod built_in;
mod capabilities;
pub mod catalog;
mod exit_codes;
mod gateway;
mod home;
mod hooks;
pub mod login;
pub mod login_secrets;
pub mod protocol;
mod reading;
mod routes;
mod session_file;
pub mod skills;
pub mod stream;
mod tool_kinds;
mod usage;

pub use built_in::built_in;
pub use exit_codes::{ExitCode, ExitMeaning};
pub use gateway::{GatewayRoute, PLACEHOLDER_KEY, Pointed, Results};
pub use home::{HOME_IS_PRIVATE, Home, HomeName, PrivateHome};
pub use hooks::HookFile;
pub use protocol::Adapter;
pub use reading::reading;
pub use routes::{ServersRoute, ServersVia, SystemPromptRoute, SystemPromptVia};
pub use session_file::SessionFile;
pub use skills::{Instructions, Plugin, Server, Skills, names_in, servers_in};
pub use tool_kinds::ToolKinds;
pub use usage::{LeftOut, UsageConvention, UsageOf};

/// The manifest of a harness, a file in `harnesses/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// The name of the harness.
    pub name: String,
    /// A description in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The harness's id in the protocol's own registry; `acp:ID` selects the harness by this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_id: Option<String>,
    /// Further names of the harness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The protocol that the harness speaks.
    pub adapter: Adapter,
    /// Program and arguments. `{prompt}`, `{model}`, `{workspace}`, `{home}`, `{self}`, `{project}` and `{manifest-dir}`
    /// are replaced in each. A path to the program is relative to the project's root; the agent resolves other paths in
    /// its workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The route by which the prompt reaches the program. ACP agents get the prompt over the protocol.
    #[serde(default)]
    pub prompt_via: PromptVia,
    /// The prompts that the program gets on standard input instead of as the argument `{prompt}`: a regular expression, such as
    /// `^-` for a program that would read such an argument as an option. The argument is then left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_prompts: Option<Pattern>,
    /// The method of choosing the model.
    #[serde(default)]
    pub model: ModelRoute,
    /// The route by which a case's system prompt reaches the agent.
    #[serde(default, skip_serializing_if = "SystemPromptRoute::is_default")]
    pub system_prompt: SystemPromptRoute,
    /// The route by which a case's MCP servers reach the agent. Default: over the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<ServersRoute>,
    /// Environment variables passed to the agent in addition to the allow-list.
    #[serde(default)]
    pub env: Env,
    /// Environment variables that the agent requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires_env: Vec<String>,
    /// Over ACP: the methods of `authenticate` that need no person. When the agent asks for a login, the first
    /// method is called that the agent offers and whose needs are met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authenticate: Vec<login::Method>,
    /// The verification of the manifest's variables, files and methods for the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<login::Evidence>,
    /// The command that installs the agent. It is shown when the program is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// If `true`, the command may download the program when it starts, as `npx -y` does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downloads: bool,
    /// The command that prints the agent's version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version: Vec<String>,
    /// Maps tool names to kinds. Globs are allowed, and the first match wins. If the protocol shows no kinds, the kind of
    /// a tool that is not listed is unknown.
    #[serde(default, skip_serializing_if = "ToolKinds::is_empty")]
    pub tool_kinds: ToolKinds,
    /// The names of the tools that start a sub-agent whose calls the agent does not show; globs are allowed. If a call
    /// has no name, its title is compared. After such a call, no grader passes because a call is absent, unless the
    /// agent showed calls of its sub-agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden_sub_agents: Vec<NameGlob>,
    /// Tools of the agent whose calls its protocol never shows, with their kinds. A grader that asks for such a tool or kind
    /// is ungraded, unless the calls that are shown decide it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unshown_tools: BTreeMap<String, ToolKind>,
    /// The kinds of calls that the agent reports as successes even if they failed: `[execute]`. Without an exit code, whether
    /// such a call succeeded or failed is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unshown_outcomes: Vec<ToolKind>,
    /// The files from which the agent reads hooks, which may change a call that the agent shows unchanged. If such a file has
    /// hooks, no grader passes because a call is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookFile>,
    /// True if the agent reports a move of a file as an edit of the old path. An edited file that is gone at the end, and
    /// that no call deletes, may then be at the path of any file that the session created and no call changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edits_may_move: bool,
    /// The form of the titles of `execute` calls that are announced without an input, if such a title is the command
    /// line: a regular expression whose first group is the command. `(?s)^(.+)$` takes the whole title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_title: Option<Pattern>,
    /// For an agent that announces calls with a title and without a name: a regular expression that matches those
    /// titles that are tool names. Its first group is the name. Default: a title is a name only if `tool-kinds`
    /// lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_title: Option<Pattern>,
    /// For `acp`: a regular expression whose first group is the id of the model's message in the `messageId` of a text or a
    /// thought. If the next text or thought belongs to another message and no call is between them, the engine
    /// concludes that the agent did not show a call of the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Pattern>,
    /// The conventions of the agent's usage reports.
    #[serde(default)]
    pub usage: UsageConvention,
    /// Capabilities of the agent that differ from those of the adapter.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Over ACP: the mode of each session, by its id or name, unless the case names one. If the agent cannot be
    /// put into the mode, the trial is `errored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_mode: Option<String>,
    /// Over ACP: the mode that replaces `session-mode` in a trial whose permission requests matter: its policy
    /// is not `auto-approve`, or the case has a `permissions` grader or requires interaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking_mode: Option<String>,
    /// The ids of the modes in which the agent does not ask for every permission; globs are allowed. In such a
    /// mode, a trial with a policy other than `auto-approve` is `errored`, and permission requests are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unattended_modes: Vec<NameGlob>,
    /// Timeouts of the agent.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The agent's home directory: a private one, with files copied from the user's.
    #[serde(default)]
    pub home: Home,
    /// Files written into the private home, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The folders from which the agent reads skills, and the calls by which it uses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Skills>,
    /// The files from which the agent reads its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// The settings that point the agent at a model server on loopback, such as a scripted model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayRoute>,
    /// Patterns of answers by which the agent reports an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error_text: Vec<Pattern>,
    /// For `acp`: patterns of texts that the agent's program writes into its messages. A matching chunk becomes
    /// a notice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_text: Vec<Pattern>,
    /// Patterns of a line of standard error, or over ACP of a text of the agent's program, that reports MCP servers that do not
    /// work. The first group contains their names; without a group, each server of the case may be meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_servers: Vec<Pattern>,
    /// For `acp`: patterns of standard error by which the agent's program reports that a request to its model
    /// failed, if it then answers the prompt with `refusal`. The first group is the cause. Patterns are
    /// searched in the output printed since the prompt, or since the last update of a tool call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusal_error: Vec<Pattern>,
    /// For `acp`: patterns with one group that find the exit code of a command in the agent's output. They are
    /// searched in the results of calls that execute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_text: Vec<Pattern>,
    /// The first version of the agent that shows failures: `"0.21"`. For `acp`: if an older version, or an unknown one, reports a
    /// command as a success without an exit code, the outcome is unknown. For `json-stream`: an older version, as printed by
    /// `version`, does not show calls that failed before they began, so calls may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures_shown_since: Option<String>,
    /// The meaning of the program's own exit codes, if the program ends without reporting a reason: `{53:
    /// max_turns, 41: auth}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exit: BTreeMap<ExitCode, ExitMeaning>,
    /// The name by which the agent introduces itself over the protocol. It identifies the agent of an imported
    /// session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_info: Option<String>,
    /// For `json-stream`: the meaning of the lines of the stream. The first matching rule handles a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream: Vec<stream::Rule>,
    /// For `json-stream`: an expression that is true for one of the first lines of this agent's recordings, and
    /// for no other agent's. It identifies the agent of an imported session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_by: Option<stream::Formula>,
    /// For `json-stream`: an expression that is true for the line by which the agent reports that it has
    /// started and is about to work. The time before this line is start-up, and not part of `duration_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<stream::Formula>,
    /// For `json-stream`: the files in which the agent keeps its sessions, for `evals import`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<SessionFile>,
    /// The sandbox of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<sandbox::Settings>,
    /// The maximum number of trials with this harness at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
    /// For `replay`: the wire log or trace to play. A relative path is resolved from the folder of the manifest, or, if
    /// no such file exists, from the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<PathBuf>,
    /// The part of a run that is captured: `wired`, `native`, `runnable`, `catalog`, `vendor-locked`, `out-of-scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Verified versions of the agent, with the evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<Verified>,
    /// Peculiarities of the agent, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<String>,
    /// The agent's own command for a task, for `evals harness parity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// The folder of the file that the manifest was read from, absolute.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
}

/// An agent's own one-shot command, given by one of `command` and `harness`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parity {
    /// Program and arguments, with the placeholders of `command`. Only its changes to the workspace are
    /// observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A harness of the same agent whose command works without the engine and shows its tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
}

impl Manifest {
    /// Returns the folder of the file that the manifest was read from, for the placeholder `{manifest-dir}`.
    pub fn folder_text(&self) -> Option<String> {
        self.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned())
    }

    /// Returns a word of a command in which the placeholders that have the same value in every trial are replaced:
    /// `{project}` and `{manifest-dir}`.
    pub fn placed(&self, word: &str) -> String {
        let word = word.replace("{project}", &project::root().to_string_lossy());
        match self.folder_text() {
            Some(folder) => word.replace("{manifest-dir}", &folder),
            None => word,
        }
    }

    /// Returns the manifest of an adapter that is used without a harness.
    pub fn bare(adapter: Adapter) -> Self {
        Self {
            name: adapter.word().to_owned(),
            description: None,
            registry_id: None,
            aliases: Vec::new(),
            adapter,
            command: Vec::new(),
            prompt_via: PromptVia::default(),
            stdin_prompts: None,
            model: ModelRoute::default(),
            system_prompt: SystemPromptRoute::default(),
            mcp_servers: None,
            env: Env::default(),
            requires_env: Vec::new(),
            authenticate: Vec::new(),
            login: None,
            install: None,
            downloads: false,
            version: Vec::new(),
            tool_kinds: ToolKinds::default(),
            hidden_sub_agents: Vec::new(),
            unshown_tools: BTreeMap::new(),
            unshown_outcomes: Vec::new(),
            hooks: Vec::new(),
            edits_may_move: false,
            command_title: None,
            name_title: None,
            message_id: None,
            usage: UsageConvention::default(),
            capabilities: Capabilities::default(),
            session_mode: None,
            asking_mode: None,
            unattended_modes: Vec::new(),
            timeouts: Timeouts::default(),
            home: Home::default(),
            files: BTreeMap::new(),
            skills: None,
            instructions: None,
            gateway: None,
            error_text: Vec::new(),
            program_text: Vec::new(),
            broken_servers: Vec::new(),
            refusal_error: Vec::new(),
            exit_text: Vec::new(),
            failures_shown_since: None,
            exit: BTreeMap::new(),
            agent_info: None,
            stream: Vec::new(),
            known_by: None,
            started_by: None,
            session_file: None,
            sandbox: None,
            jobs: None,
            recording: None,
            tier: None,
            verified: Vec::new(),
            quirks: Vec::new(),
            parity: None,
            folder: None,
        }
    }

    /// Returns the mode that the manifest names for a session: the asking mode if permission requests matter.
    pub fn mode(&self, must_ask: bool) -> Option<&str> {
        self.asking_mode.as_deref().filter(|_| must_ask).or(self.session_mode.as_deref())
    }

    /// Returns true if the agent does not ask for every permission in the mode with this id.
    pub fn is_unattended(&self, mode: &str) -> bool {
        is_unattended(&self.unattended_modes, mode)
    }

    /// Returns the variants of demo scripts that the command names: `{script}` is `<case>.demo.yaml`,
    /// `{script:x}` is `<case>.x.demo.yaml`.
    pub fn script_variants(&self) -> Vec<String> {
        let mut variants = Vec::new();
        for word in &self.command {
            for (at, _) in word.match_indices("{script") {
                let rest = &word[at + "{script".len()..];
                if rest.starts_with('}') {
                    variants.push(String::new());
                } else if let Some((variant, _)) = rest.strip_prefix(':').and_then(|rest| rest.split_once('}')) {
                    variants.push(variant.to_owned());
                }
            }
        }
        variants
    }

    /// Returns true if the program plays a script of the case's author, so no model decides what it does.
    pub fn plays_a_script(&self) -> bool {
        !self.script_variants().is_empty()
    }

    /// Returns true if the program gets this prompt on standard input: a command that contains `{prompt}` gets it there only
    /// if it is one of `stdin-prompts`.
    pub fn gives_on_stdin(&self, prompt: &str) -> bool {
        match self.prompt_via {
            PromptVia::Stdin => !self.command.iter().any(|word| word.contains("{prompt}")),
            PromptVia::Argument => {
                let is_wanted = self.stdin_prompts.as_ref().is_some_and(|pattern| pattern.is_match(prompt));
                is_wanted && self.has_prompt_argument()
            }
            PromptVia::File => false,
        }
    }

    /// Returns true if an argument of the command is the prompt and nothing else.
    pub fn has_prompt_argument(&self) -> bool {
        self.command.iter().any(|word| word == "{prompt}")
    }

    /// Returns the route of the model of a manifest without the key `model`: the place in which `{model}` is replaced.
    fn place_of_model(&self) -> Option<ModelVia> {
        let has_place = |text: &String| text.contains("{model}");
        if self.command.iter().any(has_place) {
            Some(ModelVia::Flag)
        } else {
            self.env.set.values().any(has_place).then_some(ModelVia::Env)
        }
    }

    /// Returns true if the model can be chosen.
    pub fn model_selection(&self) -> bool {
        self.model.via != ModelVia::None
    }
}

/// Returns true if one of the globs matches the id of a mode.
pub fn is_unattended(modes: &[NameGlob], mode: &str) -> bool {
    modes.iter().any(|glob| glob.is_match(mode))
}

/// A route by which the prompt reaches the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PromptVia {
    /// As `{prompt}` in the arguments.
    #[default]
    Argument,
    /// On standard input, which is then closed. Standard input is empty if the command contains `{prompt}`.
    Stdin,
    /// In a file whose path replaces `{prompt}`.
    File,
}

/// The method of choosing the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelRoute {
    /// The method.
    pub via: ModelVia,
    /// The flag that sets the model, for `flag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// The environment variable that sets the model, for `env`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// The model if none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A method of choosing the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ModelVia {
    /// ACP's `session/set_config_option` of category `model`.
    ConfigOption,
    /// The older `session/set_model`.
    SetModel,
    /// A flag on the command line, or `{model}` in the command.
    Flag,
    /// An environment variable.
    Env,
    /// The model cannot be chosen.
    #[default]
    None,
}

/// Environment variables passed to the agent in addition to the allow-list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Env {
    /// Variables passed on from the engine's own environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
    /// Variables set to a value; `{workspace}`, `{home}`, `{model}`, `{self}`, `{project}` and `{manifest-dir}`
    /// are replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Variables whose values are redacted wherever they occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret: Vec<String>,
    /// Variables that are passed on because a file in the user's home names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_in: Vec<login::NamedIn>,
}

/// Capabilities of an agent that differ from those of its adapter. A capability that the adapter does not have cannot be
/// claimed: `true` has no effect then, and `evals check` reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Capabilities {
    /// True if the agent shows its tool calls. Default for `json-stream`: true if a rule of `stream` emits a `tool-call`;
    /// `true` is for an agent that has no tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<bool>,
    /// True if the agent asks for permission. For `json-stream`, `true` requires a rule that emits a
    /// `permission-request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction: Option<bool>,
    /// True if the agent takes several prompts in one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_turn: Option<bool>,
    /// Over ACP: whether the engine offers file access to the agent. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<bool>,
    /// Over ACP: whether the engine offers terminals to the agent. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<bool>,
    /// Over ACP: whether the agent may ask the user questions. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<bool>,
}

/// Timeouts of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Timeouts {
    /// Timeout of each step of the handshake.
    pub start: Time,
    /// Time between a cancel and the first signal.
    pub grace: Time,
    /// Timeout of each command of `workspace.setup`, unless the case sets one. Default: `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Time>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { start: Time(Duration::from_secs(60)), grace: Time(Duration::from_secs(5)), setup: None }
    }
}

/// The part of a run with an agent that is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Tier {
    /// The agent's raw model traffic, through a gateway, and its protocol log.
    Wired,
    /// The agent's raw model traffic and its protocol log, without a shim.
    Native,
    /// The agent's protocol log only.
    Runnable,
    /// A recipe that was not run.
    Catalog,
    /// Nothing: the agent works with its vendor's service only.
    VendorLocked,
    /// Nothing: the program is of another kind.
    OutOfScope,
}

word!(Tier);

impl Tier {
    /// Returns true if the tier does not claim that the harness was run, so that its manifest need not describe how.
    pub fn is_recipe(self) -> bool {
        matches!(self, Tier::Catalog | Tier::VendorLocked | Tier::OutOfScope)
    }
}

impl Manifest {
    /// Returns the newest version that the manifest was verified with, if it was not verified with this one.
    pub fn newest_if_unverified(&self, version: &str) -> Option<&str> {
        let is = |verified: &str| {
            let rest = version.strip_prefix(verified);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        };
        let newest = self.verified.last()?;
        let known = self.verified.iter().any(|verified| is(&verified.version));
        (!known).then_some(newest.version.as_str())
    }
}

/// A verified version of an agent, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Verified {
    /// The agent's version.
    pub version: String,
    /// The date of the verification.
    pub date: String,
    /// The recording or test that shows it.
    pub by: String,
}
