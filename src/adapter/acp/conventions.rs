//! The manifest's settings for reading an agent's reports, and the manifests of agents that introduce
//! themselves by name.

use crate::adapter::typed_input;
use crate::harness::Adapter;
use crate::harness::{self, Manifest, ToolKinds, UsageConvention, UsageOf};
use crate::trace::{ToolKind, UsageScope};
use crate::values::{NameGlob, Pattern};

/// The conventions by which an agent's reports are read.
#[derive(Debug, Clone)]
pub struct Conventions {
    tool_kinds: ToolKinds,
    name_title: Option<Pattern>,
    message_id: Option<Pattern>,
    /// The meaning of the agent's usage reports.
    pub usage: UsageConvention,
    error_text: Vec<Pattern>,
    program_text: Vec<Pattern>,
    refusal_error: Vec<Pattern>,
    exit_text: Vec<Pattern>,
    failures_shown_since: Option<String>,
    unattended_modes: Vec<NameGlob>,
    /// True if the agent does not show what it types into a running command.
    pub(super) hides_typed_input: bool,
    /// The name by which the agent introduces itself.
    agent_info: Option<String>,
    /// True if no harness was named, so that the agent's own name may select the manifest.
    unnamed: bool,
}

impl Conventions {
    /// Takes the conventions from a manifest. If it names no harness, `introduce` can replace them.
    pub fn of(manifest: &Manifest) -> Self {
        Self {
            tool_kinds: manifest.tool_kinds.clone(),
            name_title: manifest.name_title.clone(),
            message_id: manifest.message_id.clone(),
            usage: manifest.usage.clone(),
            error_text: manifest.error_text.clone(),
            program_text: manifest.program_text.clone(),
            refusal_error: manifest.refusal_error.clone(),
            exit_text: manifest.exit_text.clone(),
            failures_shown_since: manifest.failures_shown_since.clone(),
            unattended_modes: manifest.unattended_modes.clone(),
            hides_typed_input: typed_input::is_unshown(manifest),
            agent_info: manifest.agent_info.clone(),
            // The manifest of a recording names a file, and not the agent that made the recording.
            unnamed: *manifest == Manifest::bare(manifest.adapter)
                || (manifest.adapter == Adapter::Replay
                    && manifest.tool_kinds.is_empty()
                    && manifest.usage == UsageConvention::default()
                    && manifest.error_text.is_empty()),
        }
    }

    /// Uses the settings of the agent with this name, if no harness was named.
    pub fn introduce(&mut self, agent_info: &str) {
        if self.unnamed
            && let Some(manifest) = by_agent_info(agent_info)
        {
            *self = Self { unnamed: true, ..Self::of(manifest) };
        }
    }

    /// Returns true if the agent introduces itself by a known name.
    pub fn has_name(&self) -> bool {
        self.agent_info.is_some()
    }

    /// Returns true if these are the conventions of the agent that introduces itself by this name.
    pub fn is_agent(&self, name: &str) -> bool {
        self.agent_info.as_deref() == Some(name)
    }

    /// Returns the kind that the manifest gives a tool.
    pub fn kind_of(&self, name: Option<&str>) -> Option<ToolKind> {
        self.tool_kinds.of(name?)
    }

    /// Returns the tool's name in the title by which a call is announced: by the form of the manifest, or because the
    /// manifest's table lists the title itself. Any other title may be a command, a file or a sentence.
    pub fn name_in_title<'a>(&self, title: &'a str) -> Option<&'a str> {
        let by_form = self.name_title.as_ref().and_then(|form| form.first_group(title));
        by_form.or_else(|| Some(title).filter(|title| self.tool_kinds.lists(title)))
    }

    /// Returns the ID of the model's message to which a text or a thought belongs, from its `messageId`. Without a form in
    /// the manifest, only a text names its message.
    pub fn message_of<'a>(&self, word: &str, id: &'a str) -> Option<&'a str> {
        match &self.message_id {
            Some(form) => form.first_group(id),
            None => Some(id).filter(|_| word == "agent_message_chunk"),
        }
    }

    /// Returns true if an ID has another form than those of the model's messages.
    pub fn is_other_id(&self, id: &str) -> bool {
        self.message_id.as_ref().is_some_and(|form| form.first_group(id).is_none())
    }

    /// Returns true if the manifest has the form of the IDs of the model's messages.
    pub fn names_messages(&self) -> bool {
        self.message_id.is_some()
    }

    /// Returns true if the agent does not ask for every permission in this mode.
    pub fn is_unattended(&self, mode: &str) -> bool {
        harness::is_unattended(&self.unattended_modes, mode)
    }

    /// Returns the scope of the usage in the answer to a prompt.
    pub fn scope(&self) -> UsageScope {
        match self.usage.scope {
            Some(UsageOf::Session) => UsageScope::Session,
            Some(UsageOf::Call) => UsageScope::Call,
            Some(UsageOf::Turn) | None => UsageScope::Turn,
        }
    }

    /// Returns true if the manifest lists this answer as an error.
    pub fn is_error(&self, answer: &str) -> bool {
        self.error_text.iter().any(|pattern| pattern.is_match(answer))
    }

    /// Returns true if the agent's program wrote this chunk of a message, and not its model.
    pub fn is_program_text(&self, chunk: &str) -> bool {
        self.program_text.iter().any(|pattern| pattern.is_match(chunk))
    }

    /// Returns true if standard error can show that a refusal was a failed request.
    pub fn heeds_stderr(&self) -> bool {
        !self.refusal_error.is_empty()
    }

    /// Returns the cause of a failed request to the model, if the agent's program printed one before it answered with a
    /// refusal.
    pub fn failure_in<'a>(&self, printed: &'a str) -> Option<&'a str> {
        self.refusal_error.iter().find_map(|pattern| pattern.first_group(printed)).map(str::trim)
    }

    /// Returns the exit code in the output of a command.
    pub fn exit_code_in(&self, output: &str) -> Option<i64> {
        self.exit_text.iter().find_map(|pattern| pattern.first_group(output)?.parse().ok())
    }

    /// Returns true if this version of the agent may report a failed command as a success.
    pub fn hides_failures(&self, version: Option<&str>) -> bool {
        self.failures_shown_since.as_ref().is_some_and(|first| may_precede(version, first))
    }
}

/// Returns true if a version precedes another one, or is unknown.
pub fn may_precede(version: Option<&str>, first: &str) -> bool {
    version.is_none_or(|version| numbers(version) < numbers(first))
}

/// Returns the numbers at the beginning of a version.
fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

/// Returns the built-in manifest of the agent that introduces itself by this name.
fn by_agent_info(name: &str) -> Option<&'static Manifest> {
    crate::harness::built_in::containing(name).find(|manifest| manifest.agent_info.as_deref() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_unknown_versions_may_hide_failures() {
        let mut manifest = Manifest::bare(Adapter::Acp);
        assert!(!Conventions::of(&manifest).hides_failures(None));
        manifest.failures_shown_since = Some("0.21".to_owned());
        let conventions = Conventions::of(&manifest);
        for (version, hides) in [
            (None, true),
            (Some("dev"), true),
            (Some("0.15.10"), true),
            (Some("0.20.9"), true),
            (Some("0.21.0"), false),
            (Some("0.21.0-preview.1"), false),
            (Some("0.24.4"), false),
            (Some("1.0"), false),
        ] {
            assert_eq!(conventions.hides_failures(version), hides, "{version:?}");
        }
    }

    #[test]
    fn agents_that_introduce_themselves_are_known_by_one_name_each() {
        let acp = crate::harness::built_in().filter(|manifest| manifest.agent_info.is_some());
        for manifest in acp {
            assert_eq!(manifest.adapter, Adapter::Acp, "{}", manifest.name);
            let info = manifest.agent_info.as_deref().unwrap_or_default();
            assert_eq!(by_agent_info(info).map(|found| found.name.as_str()), Some(manifest.name.as_str()));
        }
        assert!(by_agent_info("Copilot").is_some() && by_agent_info("nobody").is_none());
    }

    #[test]
    fn a_named_harness_keeps_its_own_conventions() {
        let mut bare = Conventions::of(&Manifest::bare(Adapter::Acp));
        bare.introduce("Copilot");
        assert_eq!(bare.scope(), UsageScope::Session);
        let mut named = Conventions::of(&Manifest { name: "mine".into(), ..Manifest::bare(Adapter::Acp) });
        named.introduce("Copilot");
        assert_eq!(named.scope(), UsageScope::Turn);
    }

    #[test]
    fn error_texts_are_no_honest_answers() {
        for (agent, error) in [
            (
                "@agentclientprotocol/codex-acp",
                "{\"error\": {\"message\": \"m\", \"type\": \"invalid_request_error\"}}",
            ),
            ("Copilot", "{\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\"}}"),
            ("Copilot", "Error: 400 Bad Request"),
        ] {
            let conventions = Conventions::of(by_agent_info(agent).unwrap());
            assert!(conventions.is_error(error), "{agent}: {error}");
            for honest in
                ["Finished. answer.txt holds 42.", "Error: the file is missing, so I made one.", "{\"error\": 5}"]
            {
                assert!(!conventions.is_error(honest), "{agent}: {honest}");
            }
        }
    }

    #[test]
    fn lines_of_copilots_program_are_no_texts_of_its_model() {
        let conventions = Conventions::of(by_agent_info("Copilot").unwrap());
        for text in [
            "Info: Operation cancelled by user",
            "Info: /w/answer.txt",
            "Info: C:\\w\\answer.txt",
            "Info: Request failed due to a transient API error. Retrying...",
        ] {
            assert!(conventions.is_program_text(text), "{text}");
        }
        for text in [
            "Info: the tests pass.",
            "Info: /w/answer.txt holds 42.",
            "Info: /w/answer.txt\nIt holds 42.",
            "Info: Operation cancelled by user, so I stop.",
            "Info: answer.txt",
            "Operation cancelled by user",
        ] {
            assert!(!conventions.is_program_text(text), "{text}");
        }
    }

    #[test]
    fn the_report_of_vibe_about_its_servers_is_of_its_program() {
        let conventions = Conventions::of(crate::harness::built_in::named("vibe").unwrap());
        assert!(
            conventions.is_program_text("The following MCP servers failed to connect:\n- srv: mcp_transport_failed")
        );
        assert!(!conventions.is_program_text("The following MCP servers failed to connect: srv."));
        assert!(conventions.is_other_id("f8b77995-015c-4e58-a6e3-da07f30cd524"));
        assert!(!conventions.is_other_id("assistant-f8b77995-015c-4e58-a6e3-da07f30cd524"));
    }

    #[test]
    fn texts_of_the_bridge_to_pi_are_its_programs() {
        let conventions = Conventions::of(by_agent_info("pi-acp").unwrap());
        for text in [
            "Retrying...",
            "Retrying (attempt 1/3, waiting 2s)...",
            "Retry finished, resuming.",
            "Context nearing limit, running automatic compaction...",
            "Automatic compaction finished; context was summarized to continue the session.",
            "Pi editor UI request is not supported in ACP yet; cancelling it.",
            "Queued message (position 1).",
            "Cleared queued prompts.",
            "Starting queued message. (0 remaining)",
            "pi v0.74.2\n---\n",
            "pi v0.74.2\n---\n\n## Context\n- /w/AGENTS.md\n\n## Extensions\n- npm:x\n  - index.ts\n",
            "## Context\n- /w/AGENTS.md\n\n## Skills\n- /w/.pi/skills/a.md\n\n---\nNew version available: v2 (installed v1).\n",
            "New version available: v2 (installed v1). Run: `npm i -g x`\n",
        ] {
            assert!(conventions.is_program_text(text), "{text}");
        }
        for text in
            ["42", "", "\n", "## Context\nI read the file.\n", "Retrying... it works now.", "## Context\n- /w/a"]
        {
            assert!(!conventions.is_program_text(text), "{text}");
        }
    }
}
