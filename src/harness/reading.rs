//! The conventions for reading the tool calls of a session, from its header or the manifest of its agent.

use std::collections::BTreeMap;

use regex::Regex;

use super::{Manifest, built_in};
use crate::trace::facts::Reading;
use crate::trace::{Header, ToolKind};

/// Returns how the tool calls of a session are read: as its header states, else as the built-in manifest of its
/// harness, or of the agent that introduced itself, states.
pub fn reading(header: &Header) -> Reading {
    let of_header = || header.command_title.as_deref().and_then(|form| Regex::new(form).ok());
    let of_manifest =
        || of_session(header).find_map(|manifest| manifest.command_title.as_ref().map(|form| form.0.regex().clone()));
    // A relative path does not tell where the workspace is.
    let workspace = header.cwd.clone().filter(|cwd| std::path::Path::new(cwd).is_absolute());
    // A session file shows what the stream of the same agent does not.
    let of_stream = || of_session(header).filter(move |_| header.session.is_none());
    let unshown = || of_stream().find_map(|it| non_empty(&it.unshown_tools));
    let unshown_tools = non_empty(&header.unshown_tools).or_else(unshown).unwrap_or_default();
    let mut unshown_outcomes = header.unshown_outcomes.clone();
    if unshown_outcomes.is_empty() {
        let listed = of_stream().map(|it| &it.unshown_outcomes).find(|kinds| !kinds.is_empty());
        unshown_outcomes.extend(listed.into_iter().flatten());
    }
    Reading { workspace, command_title: of_header().or_else(of_manifest), unshown_tools, unshown_outcomes }
}

fn non_empty(tools: &BTreeMap<String, ToolKind>) -> Option<BTreeMap<String, ToolKind>> {
    (!tools.is_empty()).then(|| tools.clone())
}

/// Returns the built-in manifests of a session's harness, and of the agent that introduced itself.
pub(super) fn of_session(header: &Header) -> impl Iterator<Item = &'static Manifest> {
    let agent = header.agent.as_ref().map(|agent| agent.name.as_str());
    let introduces = move |manifest: &&Manifest| agent.is_some() && manifest.agent_info.as_deref() == agent;
    // A replayed recording belongs to the agent that introduced itself in it.
    let of_agent = agent.into_iter().flat_map(built_in::introduced_as);
    let of_harness = header.harness.as_deref().and_then(built_in::named);
    let of_harness = of_harness.filter(|manifest| manifest.adapter.word() == header.adapter && !introduces(manifest));
    of_agent.chain(of_harness)
}
