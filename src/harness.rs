//! Harnesses: agents under evaluation. Each is a [`Manifest`], data in a YAML file, on an Adapter that is code.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sandbox;
use crate::trace::{ErrorCategory, Seen, StopReason, ToolKind};
use crate::values::{NameGlob, Pattern, Time};

pub mod benchflow;
mod built_in;
pub mod catalog;
mod gateway;
pub mod login;
pub mod login_secrets;
pub mod protocol;
mod reading;
mod routes;
pub mod stream;

pub use built_in::built_in;
pub use gateway::GatewayRoute;
pub use protocol::{Adapter, AdapterCan};
pub use reading::reading;
pub use routes::{ServersRoute, ServersVia, SystemPromptRoute, SystemPromptVia};

/// What a manifest in `harnesses/` says of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    /// The name it is asked for by.
    pub name: String,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its id in the protocol's own registry; `acp:ID` asks for it by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_id: Option<String>,
    /// Further names it can be asked for by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The protocol it speaks.
    pub adapter: Adapter,
    /// Program and arguments. `{prompt}`, `{model}`, `{workspace}`, `{home}` and `{self}` are replaced in each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// How the prompt reaches the program; ACP agents get it over the protocol.
    #[serde(default)]
    pub prompt_via: PromptVia,
    /// How the model is chosen.
    #[serde(default)]
    pub model: ModelRoute,
    /// How a case's system prompt reaches it.
    #[serde(default, skip_serializing_if = "SystemPromptRoute::is_default")]
    pub system_prompt: SystemPromptRoute,
    /// How a case's MCP servers reach it; over its protocol where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<ServersRoute>,
    /// Environment beyond the allow-list.
    #[serde(default)]
    pub env: Env,
    /// Variables without which it cannot work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires_env: Vec<String>,
    /// Over ACP: the methods of `authenticate` that need no person. When the agent asks for a login, the first one that
    /// it offers and whose needs are met is called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authenticate: Vec<login::Method>,
    /// What the manifest's variables, files and methods for the login were verified by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<login::Evidence>,
    /// How to install it; printed when the program is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Its command may download the program when it starts, as `npx -y` does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downloads: bool,
    /// Command that prints its version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version: Vec<String>,
    /// Tool names to kinds, first match wins; globs are allowed.
    #[serde(default, skip_serializing_if = "ToolKinds::is_empty")]
    pub tool_kinds: ToolKinds,
    /// The form of the titles of `execute` calls that are announced without an input, if such a title is the command
    /// line: a regular expression whose first group is the command. `(?s)^(.+)$` takes the whole title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_title: Option<Pattern>,
    /// What its usage reports mean.
    #[serde(default)]
    pub usage: UsageConvention,
    /// What it can, where that differs from the adapter.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Over ACP: the mode of each session, by its id or name, unless the case names one. The trial is `errored` if the
    /// agent cannot be put into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_mode: Option<String>,
    /// Over ACP: the mode that takes the place of `session-mode` in a trial whose requests for permission matter: its
    /// policy is not `auto-approve`, or the case has a `permissions` grader or requires interaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking_mode: Option<String>,
    /// The ids of the modes in which the agent does not ask for every permission; globs are allowed. In such a mode a
    /// trial with another policy than `auto-approve` is `errored`, and requests for permission are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unattended_modes: Vec<NameGlob>,
    /// How long to wait for it.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Its home: a private one, with files copied from the user's.
    #[serde(default)]
    pub home: Home,
    /// Files written into the private home.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// How it is pointed at a model server on loopback, such as a scripted model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayRoute>,
    /// Texts by which the agent tells an error as an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub error_text: Vec<Pattern>,
    /// For `acp`: texts that the agent's program writes into its messages, told by a whole chunk. They are notices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_text: Vec<Pattern>,
    /// For `acp`: how the agent's program reports on standard error that a request to its model failed, if it then answers
    /// the prompt with `refusal`. The first group is the cause. Patterns are found in what the program printed since the
    /// prompt, or since the last update of a tool call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusal_error: Vec<Pattern>,
    /// For `acp`: the exit code of a command, as the agent's output of it tells it: patterns with one group. They are
    /// looked for in the results of calls that execute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit_text: Vec<Pattern>,
    /// What the program's own exit codes mean, if it ends without saying how: `{53: max_turns, 41: auth}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exit: BTreeMap<ExitCode, ExitMeaning>,
    /// The name by which the agent introduces itself on the wire, so that an imported session is known by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_info: Option<String>,
    /// For `json-stream`: what the lines of its stream are. The first rule that holds takes a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream: Vec<stream::Rule>,
    /// For `json-stream`: an expression that holds for one of the first lines of its recordings, and for no other
    /// agent's, so that an imported session is known by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_by: Option<stream::Formula>,
    /// For `json-stream`: an expression that holds for the line by which the agent says that it has started and is about
    /// to work. The time before it is start-up, and no part of `duration_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<stream::Formula>,
    /// What it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<sandbox::Settings>,
    /// At most so many at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
    /// For `replay`: the wire log or Trace to play; its path counts from the manifest's file first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<PathBuf>,
    /// How much of a run is captured: `wired`, `native`, `runnable`, `catalog`, `vendor-locked`, `out-of-scope`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Which version was seen doing what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<Verified>,
    /// What is odd about it, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<String>,
    /// How its own program does a task by itself, for `evals harness parity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
}

/// An agent's own one-shot command: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parity {
    /// Program and arguments, with the placeholders of `command`. Of what it does nothing but the workspace is seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A harness of the same agent whose command works by itself and shows its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
}

impl Manifest {
    /// Whether this is one of its further names, or its id in the protocol's registry as `acp:ID`.
    pub fn goes_by(&self, name: &str) -> bool {
        let is_id = |id| self.registry_id.as_deref() == Some(id);
        self.aliases.iter().any(|alias| alias == name) || name.strip_prefix(catalog::REGISTRY).is_some_and(is_id)
    }

    /// The manifest of an adapter that nobody named a harness for.
    pub fn bare(adapter: Adapter) -> Self {
        Self {
            name: adapter.word().to_owned(),
            description: None,
            registry_id: None,
            aliases: Vec::new(),
            adapter,
            command: Vec::new(),
            prompt_via: PromptVia::default(),
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
            command_title: None,
            usage: UsageConvention::default(),
            capabilities: Capabilities::default(),
            session_mode: None,
            asking_mode: None,
            unattended_modes: Vec::new(),
            timeouts: Timeouts::default(),
            home: Home::default(),
            files: BTreeMap::new(),
            gateway: None,
            error_text: Vec::new(),
            program_text: Vec::new(),
            refusal_error: Vec::new(),
            exit_text: Vec::new(),
            exit: BTreeMap::new(),
            agent_info: None,
            stream: Vec::new(),
            known_by: None,
            started_by: None,
            sandbox: None,
            jobs: None,
            recording: None,
            tier: None,
            verified: Vec::new(),
            quirks: Vec::new(),
            parity: None,
        }
    }

    /// What a session with it shows.
    pub fn seen(&self) -> Seen {
        let can = self.adapter.can();
        Seen {
            tracing: self.capabilities.tracing.unwrap_or(can.tracing),
            interaction: self.capabilities.interaction.unwrap_or(can.interaction),
        }
    }

    /// The mode that the manifest names for a session: the one that asks if requests for permission matter.
    pub fn mode(&self, must_ask: bool) -> Option<&str> {
        self.asking_mode.as_deref().filter(|_| must_ask).or(self.session_mode.as_deref())
    }

    /// Returns true if the agent does not ask for every permission in the mode with this id.
    pub fn is_unattended(&self, mode: &str) -> bool {
        is_unattended(&self.unattended_modes, mode)
    }

    /// Whether it takes several prompts in one session.
    pub fn multi_turn(&self) -> bool {
        self.capabilities.multi_turn.unwrap_or(self.adapter.can().multi_turn)
    }

    /// The demo scripts its command names: `{script}` is `<case>.demo.yaml`, `{script:x}` is `<case>.x.demo.yaml`.
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

    /// Whether its model can be chosen.
    pub fn model_selection(&self) -> bool {
        self.model.via != ModelVia::None
    }
}

/// An exit code as the key of a map: a number, which formats give as a number or as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExitCode(pub i32);

impl<'de> Deserialize<'de> for ExitCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.trim().parse().map(ExitCode);
        number.map_err(|_| serde::de::Error::custom(format!("`{text}` is no exit code; write a number such as 53")))
    }
}

impl Serialize for ExitCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl JsonSchema for ExitCode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExitCode".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^-?[0-9]+$"})
    }
}

/// What an exit code of an agent's program means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitMeaning {
    /// The agent ended, for this reason.
    Stop(StopReason),
    /// It failed, in this way.
    Error(ErrorCategory),
}

impl ExitMeaning {
    /// Every meaning, with its word.
    pub const ALL: [(&'static str, ExitMeaning); 8] = [
        ("max_turns", ExitMeaning::Stop(StopReason::MaxTurns)),
        ("max_tokens", ExitMeaning::Stop(StopReason::MaxTokens)),
        ("max_budget", ExitMeaning::Stop(StopReason::MaxBudget)),
        ("refusal", ExitMeaning::Stop(StopReason::Refusal)),
        ("cancelled", ExitMeaning::Stop(StopReason::Cancelled)),
        ("auth", ExitMeaning::Error(ErrorCategory::Auth)),
        ("rate_limit", ExitMeaning::Error(ErrorCategory::RateLimit)),
        ("provider", ExitMeaning::Error(ErrorCategory::Provider)),
    ];

    fn words() -> Vec<&'static str> {
        Self::ALL.iter().map(|(word, _)| *word).collect()
    }
}

impl<'de> Deserialize<'de> for ExitMeaning {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let found = Self::ALL.iter().find(|(known, _)| *known == word);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known = Self::words().join("`, `");
            serde::de::Error::custom(format!("`{word}` is no meaning of an exit code; these are: `{known}`"))
        })
    }
}

impl Serialize for ExitMeaning {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = Self::ALL.iter().find(|(_, meaning)| meaning == self);
        serializer.serialize_str(found.map_or("", |(word, _)| *word))
    }
}

impl JsonSchema for ExitMeaning {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExitMeaning".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"enum": Self::words()})
    }
}

/// Returns true if one of the globs matches the id of a mode.
pub fn is_unattended(modes: &[NameGlob], mode: &str) -> bool {
    modes.iter().any(|glob| glob.is_match(mode))
}

/// How the prompt reaches the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromptVia {
    /// As `{prompt}` among the arguments.
    #[default]
    Argument,
    /// On standard input, which is then closed.
    Stdin,
    /// In a file whose path takes the place of `{prompt}`.
    File,
}

/// How the model is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelRoute {
    /// The way.
    pub via: ModelVia,
    /// The flag that takes the model, for `flag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// The variable that takes the model, for `env`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// The model where none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A way to choose the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelVia {
    /// ACP's `session/set_config_option` of category `model`.
    ConfigOption,
    /// The older `session/set_model`.
    SetModel,
    /// A flag on the command line, or `{model}` in the command.
    Flag,
    /// A variable of the environment.
    Env,
    /// It cannot be chosen.
    #[default]
    None,
}

/// Environment beyond the allow-list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Env {
    /// Variables passed on from the engine's own environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
    /// Variables set to a value; `{workspace}`, `{home}`, `{model}` and `{self}` are replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Variables whose values are masked wherever they occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret: Vec<String>,
    /// Variables that are passed on because a file of the user's home names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_in: Vec<login::NamedIn>,
}

/// Tool names to kinds, in the order in which they stand in the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolKinds(pub Vec<(NameGlob, ToolKind)>);

impl ToolKinds {
    /// The kind of a tool with this name, if the list knows it.
    pub fn of(&self, name: &str) -> Option<ToolKind> {
        self.0.iter().find(|(glob, _)| glob.is_match(name)).map(|(_, kind)| *kind)
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

mod tool_kinds {
    use std::borrow::Cow;
    use std::fmt;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde::ser::{Serialize, SerializeMap, Serializer};

    use super::ToolKinds;

    impl<'de> Deserialize<'de> for ToolKinds {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Kinds;
            impl<'de> Visitor<'de> for Kinds {
                type Value = ToolKinds;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a map of tool names to kinds")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ToolKinds, A::Error> {
                    let mut kinds = Vec::new();
                    while let Some(entry) = map.next_entry()? {
                        kinds.push(entry);
                    }
                    Ok(ToolKinds(kinds))
                }
            }
            deserializer.deserialize_map(Kinds)
        }
    }

    impl Serialize for ToolKinds {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (name, kind) in &self.0 {
                map.serialize_entry(name, kind)?;
            }
            map.end()
        }
    }

    impl JsonSchema for ToolKinds {
        fn schema_name() -> Cow<'static, str> {
            "ToolKinds".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            let kind = generator.subschema_for::<crate::trace::ToolKind>();
            json_schema!({"type": "object", "additionalProperties": kind})
        }
    }
}

/// What an agent's usage reports mean.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UsageConvention {
    /// What the answer to a prompt covers: `turn`, `session`, or `call` where it is the last model call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<UsageOf>,
    /// Input tokens include the cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_includes_cache: Option<bool>,
    /// Output tokens leave the tokens of thought out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_excludes_thoughts: Option<bool>,
    /// The agent sends a `usage_update` after each message of the model and the results of its calls, so that the calls
    /// between two updates share a step (`acp` only). Default: `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_each_message: Option<bool>,
    /// What the reports leave out. A total of such reports is a lower bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves_out: Vec<LeftOut>,
    /// Names of the tools that start a sub-agent, for `leaves-out: [sub-agents]` where the agent shows nothing of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agent_tools: Vec<String>,
}

/// What an agent's usage reports leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// All calls of the model but the last one before the report.
    Steps,
    /// Tokens of thought: neither the output count nor a count of their own holds them.
    Thoughts,
    /// What sub-agents spent.
    SubAgents,
}

/// What the usage in an answer to a prompt covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UsageOf {
    /// That prompt.
    Turn,
    /// The session so far.
    Session,
    /// The last call of the model.
    Call,
}

/// What an agent can, where that differs from its adapter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Capabilities {
    /// It shows its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<bool>,
    /// It asks for permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction: Option<bool>,
    /// It takes several prompts in one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_turn: Option<bool>,
    /// Over ACP: whether it is offered the files of its workspace; it is, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs: Option<bool>,
    /// Over ACP: whether it is offered terminals; it is, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<bool>,
    /// Over ACP: whether it may ask the user questions; it may, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<bool>,
}

/// How long to wait for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Timeouts {
    /// For each step of the handshake.
    pub start: Time,
    /// After a cancel, before signals.
    pub grace: Time,
    /// For each command of `workspace.setup`, unless the case says otherwise. Default: `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Time>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { start: Time(Duration::from_secs(60)), grace: Time(Duration::from_secs(5)), setup: None }
    }
}

/// Whose home an agent sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Home {
    /// `home: user`: the user's own, which is a warning in every result.
    Named(HomeName),
    /// A private one.
    Private(PrivateHome),
}

// Not derived: an untagged enum forgets which key was wrong, and where.
impl<'de> Deserialize<'de> for Home {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrMap;
        impl<'de> serde::de::Visitor<'de> for NameOrMap {
            type Value = Home;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`user`, or a map such as `{copy: [.my-agent/login.json]}`")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Home, E> {
                match name {
                    "user" => Ok(Home::Named(HomeName::User)),
                    other => Err(E::unknown_variant(other, &["user"])),
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Home, A::Error> {
                PrivateHome::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Home::Private)
            }
        }
        deserializer.deserialize_any(NameOrMap)
    }
}

/// A home by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HomeName {
    /// The user's own home.
    User,
}

/// A private home.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrivateHome {
    /// Files and folders copied from the user's home, where they exist.
    #[serde(default)]
    pub copy: Vec<PathBuf>,
}

impl Default for Home {
    fn default() -> Self {
        Home::Private(PrivateHome::default())
    }
}

/// How much of a run with an agent is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Its raw model traffic, through a gateway, and its protocol log.
    Wired,
    /// The same, without a shim.
    Native,
    /// Its protocol log only.
    Runnable,
    /// A recipe that was not run.
    Catalog,
    /// Nothing: it works with its vendor's service only.
    VendorLocked,
    /// Nothing: it is another kind of program.
    OutOfScope,
}

impl Tier {
    /// The tier's word, as it stands in manifests.
    pub fn word(self) -> &'static str {
        match self {
            Tier::Wired => "wired",
            Tier::Native => "native",
            Tier::Runnable => "runnable",
            Tier::Catalog => "catalog",
            Tier::VendorLocked => "vendor-locked",
            Tier::OutOfScope => "out-of-scope",
        }
    }

    /// Whether nobody claims that it was run, so that its manifest need not say how.
    pub fn is_recipe(self) -> bool {
        matches!(self, Tier::Catalog | Tier::VendorLocked | Tier::OutOfScope)
    }
}

/// Which version was seen doing what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Verified {
    /// The agent's version.
    pub version: String,
    /// When, as a date.
    pub date: String,
    /// The recording or test that shows it.
    pub by: String,
}
