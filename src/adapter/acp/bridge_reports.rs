//! Reports of the bridges to Claude Code and Codex that have the form of calls although no model called anything: the bridges,
//! and what such a report never shows.

use serde_json::{Map, Value};

use super::{Translator, content};
use crate::trace::recorder::{self, Recorder};

/// The names by which the bridge to Claude Code introduces itself, and did earlier.
pub(super) const CLAUDE: [&str; 5] = [
    "@agentclientprotocol/claude-agent-acp",
    "@zed-industries/claude-agent-acp",
    "@zed-industries/claude-code-acp",
    "claude-agent-acp",
    "claude-code-acp",
];

/// The names by which the bridge to Codex introduces itself, and did earlier.
pub(super) const CODEX: [&str; 3] = ["@agentclientprotocol/codex-acp", "@zed-industries/codex-acp", "codex-acp"];

impl Translator {
    /// Returns true if the agent is the bridge of these names, by the manifest or by its introduction.
    pub(super) fn is_bridge(&self, names: &[&str], recorder: &mut Recorder) -> bool {
        let agent = recorder.header().agent.as_ref();
        names.iter().any(|name| self.conventions.is_agent(name) || agent.is_some_and(|agent| agent.name == *name))
    }

    /// Returns true if the agent is the bridge of these names, or may be because nothing names it.
    pub(super) fn may_be_bridge(&self, names: &[&str], recorder: &mut Recorder) -> bool {
        let is_unnamed = recorder.header().agent.is_none() && !self.conventions.has_name();
        is_unnamed || self.is_bridge(names, recorder)
    }
}

/// Returns true if an update may be such a report: it has no other kind than this one, and shows no file, no change and no
/// terminal. The caller looks at the input.
pub(super) fn may_be_report(update: &Map<String, Value>, meta: &Value, kind: &str) -> bool {
    let shown = content::shown(update.get("content").cloned().unwrap_or(Value::Null));
    let is_kind = update.get("kind").is_none_or(|it| it.is_null() || it.as_str() == Some(kind));
    let has_terminal = meta.as_object().is_some_and(|meta| meta.keys().any(|key| key.starts_with("terminal")));
    is_kind
        && update.get("locations").is_none_or(recorder::is_empty)
        && shown.diffs.is_empty()
        && shown.terminals.is_empty()
        && shown.other.is_empty()
        && !has_terminal
}
