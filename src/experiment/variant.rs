//! The keys of a variant, as written, and how one variant is laid over another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::file::merged;
use crate::harness::catalog::is_path;
use crate::interaction::Interaction;
use crate::limits::Limits;
use crate::overlay::{ExtraFiles, Instructions};
use crate::paths;
use crate::yaml::forms::{Forms, deserialize_forms};

/// The keys of a variant.
pub const KEYS: [&str; 14] = [
    "harness",
    "model",
    "skills",
    "instructions",
    "mcp-servers",
    "system-prompt",
    "prompt",
    "env",
    "session-mode",
    "interaction",
    "files",
    "args",
    "command",
    "limits",
];

/// Declares a struct with the keys of a variant and further ones: `flatten` would lose the places of errors.
macro_rules! with_variant_keys {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$of:meta])* pub $key:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub struct $name {
            $($(#[$of])* pub $key: $type,)*
            /// The harness. Default: the harnesses of the case, else `demo`.
            pub harness: Option<String>,
            /// The model to request.
            pub model: Option<String>,
            /// The folders of the skills that are laid into the trial, each with its `SKILL.md`.
            pub skills: Option<Vec<crate::overlay::SkillEntry>>,
            /// The instruction file that is laid into the trial.
            pub instructions: Option<crate::overlay::Instructions>,
            /// MCP servers offered to the agent: a list, or a map by name. A server has `command` (with `args`, `env` and `cwd`),
            /// or `url` or `httpUrl` (with `type` and `headers`). Agents get other keys, such as `timeout`, `disabled` and
            /// `autoApprove`, as they are.
            pub mcp_servers: Option<serde_json::Value>,
            /// The system prompt.
            pub system_prompt: Option<String>,
            /// Texts added before and after the first prompt.
            pub prompt: Option<$crate::experiment::variant::PromptEdit>,
            /// Environment variables added to the agent's environment.
            pub env: Option<std::collections::BTreeMap<String, String>>,
            /// The id of the mode of the agent's session.
            pub session_mode: Option<String>,
            /// The policy that answers permission requests.
            pub interaction: Option<crate::interaction::Interaction>,
            /// Files laid over the workspace before the agent begins. They are not part of the agent's change.
            pub files: Option<crate::overlay::ExtraFiles>,
            /// Arguments added to the command of the manifest.
            pub args: Option<Vec<String>>,
            /// Program and arguments, in place of the command of the manifest.
            pub command: Option<Vec<String>>,
            /// The limits of a trial.
            pub limits: Option<crate::limits::Limits>,
        }
    };
}

pub(super) use with_variant_keys;

with_variant_keys! {
    /// The keys that a variant overrides, as written.
    pub struct VariantLayer {}
}

/// Texts added before and after the first prompt of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PromptEdit {
    /// The text before the prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The text after the prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub suffix: String,
}

/// The place of the case's prompt in a template.
const PROMPT: &str = "{prompt}";

impl PromptEdit {
    /// Returns the prompt with the texts around it.
    pub fn apply(&self, prompt: &str) -> String {
        format!("{}{prompt}{}", self.prefix, self.suffix)
    }
}

/// Texts around the prompt, as a map.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
#[cfg_attr(test, schemars(rename = "PromptEditMap"))]
struct PromptBody {
    /// The text before the prompt.
    prefix: String,
    /// The text after the prompt.
    suffix: String,
}

impl<'de> Forms<'de> for PromptEdit {
    const EXPECTED: &'static str = "a template with `{prompt}`, or a map with `prefix` and `suffix`";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        let Some((prefix, suffix)) = text.split_once(PROMPT) else {
            return Err(E::custom(
                "a template of a prompt contains `{prompt}`, which is replaced by the case's prompt",
            ));
        };
        if suffix.contains(PROMPT) {
            return Err(E::custom("a template of a prompt contains `{prompt}` once"));
        }
        Ok(Self { prefix: prefix.to_owned(), suffix: suffix.to_owned() })
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let PromptBody { prefix, suffix } = PromptBody::deserialize(MapAccessDeserializer::new(map))?;
        // A word must not run into the prompt.
        let apart = |text: &str, starts: bool| if starts { format!("{text}\n\n") } else { format!("\n\n{text}") };
        let prefix =
            if prefix.is_empty() || prefix.ends_with(char::is_whitespace) { prefix } else { apart(&prefix, true) };
        let suffix =
            if suffix.is_empty() || suffix.starts_with(char::is_whitespace) { suffix } else { apart(&suffix, false) };
        Ok(Self { prefix, suffix })
    }
}

deserialize_forms!(PromptEdit, deserialize_any);

#[cfg(test)]
impl JsonSchema for PromptEdit {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PromptEdit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let body = generator.subschema_for::<PromptBody>();
        json_schema!({"description": "a template with {prompt}, or a map", "anyOf": [{"type": "string"}, body]})
    }
}

impl VariantLayer {
    /// Returns the keys that are written.
    pub fn written(&self) -> Vec<&'static str> {
        let is = [
            self.harness.is_some(),
            self.model.is_some(),
            self.skills.is_some(),
            self.instructions.is_some(),
            self.mcp_servers.is_some(),
            self.system_prompt.is_some(),
            self.prompt.is_some(),
            self.env.is_some(),
            self.session_mode.is_some(),
            self.interaction.is_some(),
            self.files.is_some(),
            self.args.is_some(),
            self.command.is_some(),
            self.limits.is_some(),
        ];
        KEYS.into_iter().zip(is).filter(|(_, is)| *is).map(|(key, _)| key).collect()
    }

    /// Makes every path absolute, relative to the folder of the file that contains it.
    pub(super) fn rebase(&mut self, folder: &Path) {
        let rebase = |path: &mut PathBuf| *path = paths::absolute(folder, path);
        self.skills.iter_mut().flatten().for_each(|skill| rebase(&mut skill.path));
        if let Some(harness) = self.harness.as_mut().filter(|harness| is_path(harness)) {
            *harness = paths::absolute(folder, Path::new(&*harness)).to_string_lossy().into_owned();
        }
        if let Some(Instructions { file: Some(file), .. }) = &mut self.instructions {
            rebase(file);
        }
        if let Some(ExtraFiles::Folder(files)) = &mut self.files {
            rebase(files);
        }
        if let Some(servers) = &mut self.mcp_servers {
            crate::case::file::rebase_commands(servers, folder);
        }
        // A program path is resolved against the file if it exists there. Otherwise it is left relative to the workspace.
        if let Some(program) = self.command.as_mut().and_then(|command| command.first_mut())
            && program.contains('/')
        {
            let absolute = paths::absolute(folder, Path::new(program));
            if let Some(text) = absolute.to_str().filter(|_| absolute.is_file()) {
                text.clone_into(program);
            }
        }
    }

    /// Lays another variant over this one: maps are merged, scalars are overridden, lists are replaced.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        let servers = |under: Value, over: Value| Value::Array(merged_servers(servers_of(Some(under)), over));
        Self {
            harness: over.harness.or(self.harness),
            model: over.model.or(self.model),
            skills: over.skills.or(self.skills),
            instructions: over.instructions.or(self.instructions),
            mcp_servers: merged(self.mcp_servers, over.mcp_servers, servers),
            system_prompt: over.system_prompt.or(self.system_prompt),
            prompt: over.prompt.or(self.prompt),
            env: merged(self.env, over.env, |mut under: BTreeMap<String, String>, over| {
                under.extend(over);
                under
            }),
            session_mode: over.session_mode.or(self.session_mode),
            interaction: over.interaction.or(self.interaction),
            files: merged(self.files, over.files, ExtraFiles::under),
            args: over.args.or(self.args),
            command: over.command.or(self.command),
            limits: merged(self.limits, over.limits, Limits::under),
        }
    }

    /// Returns the variant with one of its keys alone.
    pub(super) fn only(&self, key: &str) -> Self {
        let this = self.clone();
        Self {
            harness: this.harness.filter(|_| key == "harness"),
            model: this.model.filter(|_| key == "model"),
            skills: this.skills.filter(|_| key == "skills"),
            instructions: this.instructions.filter(|_| key == "instructions"),
            mcp_servers: this.mcp_servers.filter(|_| key == "mcp-servers"),
            system_prompt: this.system_prompt.filter(|_| key == "system-prompt"),
            prompt: this.prompt.filter(|_| key == "prompt"),
            env: this.env.filter(|_| key == "env"),
            session_mode: this.session_mode.filter(|_| key == "session-mode"),
            interaction: this.interaction.filter(|_| key == "interaction"),
            files: this.files.filter(|_| key == "files"),
            args: this.args.filter(|_| key == "args"),
            command: this.command.filter(|_| key == "command"),
            limits: this.limits.filter(|_| key == "limits"),
        }
    }

    /// Returns the policy, if one is written.
    pub(super) fn interaction(&self) -> Option<&Interaction> {
        self.interaction.as_ref()
    }
}

/// Returns MCP servers as a list: the keys of a map become names.
pub(super) fn servers_of(written: Option<Value>) -> Vec<Value> {
    crate::case::file::servers(written)
}

/// Lays MCP servers over others. A server with the name of another replaces it.
pub(super) fn merged_servers(mut under: Vec<Value>, over: Value) -> Vec<Value> {
    for server in servers_of(Some(over)) {
        let name = server.get("name").cloned();
        match under.iter_mut().find(|known| name.is_some() && known.get("name") == name.as_ref()) {
            Some(known) => *known = server,
            None => under.push(server),
        }
    }
    under
}
