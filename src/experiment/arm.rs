//! A resolved arm: the settings that override parts of each case and each manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::resolve::{hidden, is_same, shown, value};
use super::sources::SourcePlace;
use super::variant::{KEYS, VariantLayer, merged_servers, servers_of};
use crate::case::{Case, LoadError};
use crate::harness::Manifest;
use crate::limits::Limits;
use crate::overlay::{self, Overlay, SkillSource};
use crate::yaml::StepPart;

/// An arm of an experiment.
#[derive(Debug, Clone)]
pub struct Arm {
    pub name: String,
    /// The keys that the arm overrides.
    pub layer: VariantLayer,
    /// The label of each axis, if the arm is of a matrix.
    pub labels: Vec<(String, String)>,
    /// The skills, if the arm overrides them.
    pub skills: Option<Vec<SkillSource>>,
    /// The keys that the arm overrides. The content of files is replaced by digests.
    pub resolved: Map<String, Value>,
    /// The digest of `resolved`.
    pub digest: String,
    /// The digests of the files and folders that the arm is made from.
    pub sources: BTreeMap<PathBuf, String>,
    /// The secrets that the arm contains, with their names.
    pub secrets: Vec<(String, String)>,
    pub(super) place: SourcePlace,
    pub(super) places: BTreeMap<&'static str, SourcePlace>,
}

impl Arm {
    /// Returns an arm from `run.json`, for an experiment that can no longer be read: only the limits and the policy,
    /// which judge a trial. The files that the arm lays are unknown.
    pub fn recorded(name: &str, overrides: &Map<String, Value>) -> Self {
        let limits = overrides.get("limits").and_then(|limits| serde_json::from_value(limits.clone()).ok());
        let interaction = overrides.get("interaction").and_then(Value::as_str).and_then(|text| text.parse().ok());
        Self {
            name: name.to_owned(),
            layer: VariantLayer { limits, interaction, ..VariantLayer::default() },
            labels: Vec::new(),
            skills: None,
            resolved: overrides.clone(),
            digest: String::new(),
            sources: BTreeMap::new(),
            secrets: Vec::new(),
            place: SourcePlace::nowhere(),
            places: BTreeMap::new(),
        }
    }

    /// Returns true if the arm lays something into the workspace or the home.
    pub fn lays_files(&self) -> bool {
        ["skills", "instructions", "files"].iter().any(|key| !value(self, key).is_null())
    }

    /// Returns the files and folders of this machine that the arm lays, each with the key that names it.
    pub fn laid(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let skills = self.skills.iter().flatten().map(|skill| ("skills", skill.folder.as_path()));
        let instructions = self.layer.instructions.iter().filter_map(|it| Some(("instructions", it.file.as_deref()?)));
        let files = self.layer.files.iter().filter_map(|files| Some(("files", files.folder()?)));
        skills.chain(instructions).chain(files)
    }

    /// Returns the names of the MCP servers that the arm adds.
    pub fn servers(&self) -> Vec<String> {
        let servers = servers_of(self.layer.mcp_servers.clone());
        servers.iter().filter_map(|server| Some(server.get("name")?.as_str()?.to_owned())).collect()
    }

    /// Returns the case with the arm's settings applied.
    pub fn case(&self, case: &Case) -> Case {
        let given = Arc::new(case.given());
        let mut case = Case { without_arm: Some(given), ..case.clone() };
        let layer = self.layer.clone();
        if let (Some(edit), Some(first)) = (layer.prompt, case.turns.first_mut()) {
            *first = edit.apply(first);
            case.texts_of_arm.extend([edit.prefix, edit.suffix]);
        }
        case.texts_of_arm.extend(layer.system_prompt.clone());
        case.system_prompt = layer.system_prompt.or(case.system_prompt);
        if let Some(servers) = layer.mcp_servers {
            case.mcp_servers = merged_servers(case.mcp_servers, servers);
        }
        case.env.extend(layer.env.unwrap_or_default());
        case.session.mode = layer.session_mode.or(case.session.mode);
        if let Some(interaction) = layer.interaction {
            case.interaction = interaction;
        }
        case.limits = case.limits.under(layer.limits.unwrap_or_default());
        case.overlay = Overlay {
            skills: self.skills.clone().unwrap_or(case.overlay.skills),
            instructions: layer.instructions.or(case.overlay.instructions),
            files: match (case.overlay.files, layer.files) {
                (Some(under), Some(over)) => Some(under.under(over)),
                (under, over) => over.or(under),
            },
        };
        case
    }

    /// Returns the manifest with the arm's settings applied.
    pub fn manifest(&self, manifest: &Manifest) -> Manifest {
        let mut manifest = manifest.clone();
        if let Some(command) = &self.layer.command {
            // The manifest's command for the version asks its own program.
            let same_arguments = command.get(1..) == manifest.command.get(1..);
            let asks_program = manifest.version.first() == manifest.command.first();
            match (same_arguments && asks_program, command.first(), manifest.version.first_mut()) {
                (true, Some(program), Some(first)) => program.clone_into(first),
                _ => manifest.version.clear(),
            }
            if !same_arguments {
                // Another command may be of another program, which reads no prompt from standard input.
                manifest.stdin_prompts = None;
            }
            manifest.command.clone_from(command);
            manifest.downloads = false;
            if let Some(gateway) = &mut manifest.gateway {
                // The gateway's command starts the manifest's own program.
                gateway.command.clear();
            }
        }
        let args = self.layer.args.as_deref().unwrap_or_default();
        add_arguments(&mut manifest.command, args);
        // Behind the gateway, an agent may have a command of its own.
        if let Some(gateway) = manifest.gateway.as_mut().filter(|gateway| !gateway.command.is_empty()) {
            add_arguments(&mut gateway.command, args);
        }
        manifest
    }

    /// Returns everything that the agent of a case gets in this arm, as text: two arms with the same text are the same
    /// arm for that case, whatever they are written as.
    pub fn resolved_for(&self, case: &Case, manifest: &Manifest) -> String {
        let (case, manifest) = (self.case(case), self.manifest(manifest));
        let limits = Limits { on_limit: Some(case.limits.on_limit()), ..case.limits };
        let laid = overlay::content(&case.overlay, &manifest);
        // A model that is not asked for is the manifest's own, if it can be passed to the agent.
        let default = manifest.model.default.as_ref().filter(|_| manifest.model_selection());
        let told = json!({
            "harness": manifest.name,
            "command": manifest.command,
            "model": self.layer.model.as_ref().or(default),
            "turns": case.turns,
            "system-prompt": case.system_prompt,
            "env": case.env,
            "mcp-servers": case.mcp_servers,
            "session": case.session,
            "interaction": case.interaction.to_text(),
            "limits": limits,
            "program": self.resolved.get("program"),
        });
        format!("{told} {laid:?}")
    }

    /// Returns the keys in which the arm differs from another, each with the value there and here, as text.
    pub fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let keys = KEYS.into_iter().filter(|key| !is_same(self, other, key));
        let hide = |text: String| hidden(self.secrets.iter().chain(&other.secrets), text);
        keys.map(|key| (key, shown(key, value(other, key), &hide), shown(key, value(self, key), &hide))).collect()
    }

    /// Returns the arm with one of its keys alone.
    pub fn only(&self, key: &str) -> Self {
        let skills = self.skills.clone().filter(|_| key == "skills");
        Self { layer: self.layer.only(key), skills, ..self.clone() }
    }

    /// Sets limits that hold for every arm.
    pub fn limit(&mut self, limits: Limits) {
        if let Some(own) = &mut self.layer.limits {
            *own = own.under(limits);
        }
    }

    /// Returns an error about the arm, at the place of one of its keys if it has it.
    pub fn error(&self, key: Option<&str>, message: String, help: impl Into<String>) -> LoadError {
        match key.and_then(|key| self.places.get(key)) {
            Some(place) => place.error(StepPart::Value, message, help),
            None => self.place.error(StepPart::Key, message, help),
        }
    }
}

/// Adds arguments to a command: before the `--` that precedes the prompt, or else at the end.
fn add_arguments(command: &mut Vec<String>, args: &[String]) {
    let end = match command.as_slice() {
        [before @ .., mark, prompt] if mark == "--" && prompt.contains("{prompt}") => before.len(),
        all => all.len(),
    };
    command.splice(end..end, args.iter().cloned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_added_before_the_end_of_the_options() {
        let added = |command: &[&str]| {
            let mut command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            add_arguments(&mut command, &["-v".to_owned()]);
            command
        };
        assert_eq!(added(&["agent", "-p", "--", "{prompt}"]), ["agent", "-p", "-v", "--", "{prompt}"]);
        assert_eq!(added(&["npx", "--", "agent", "{prompt}"]), ["npx", "--", "agent", "{prompt}", "-v"]);
        assert_eq!(added(&["agent"]), ["agent", "-v"]);
    }
}
