//! The skills, MCP servers and plugins that the first line of a session lists.

use serde_json::Value;

use crate::harness::{Plugin, Server};

/// Returns the names of the skills that the `init` line of a session lists.
pub(crate) fn skills_listed(line: &Value) -> Option<Vec<String>> {
    is_init(line).then(|| crate::harness::names_in(line.get("skills")?)).flatten()
}

/// Returns the MCP servers that the `init` line of a session lists.
pub(crate) fn servers_listed(line: &Value) -> Option<Vec<Server>> {
    is_init(line).then(|| crate::harness::servers_in(line.get("mcp_servers")?)).flatten()
}

/// Returns the plugins that the `init` line of a session lists and that are not part of the agent.
pub(crate) fn plugins_listed(line: &Value) -> Vec<Plugin> {
    let listed = line.get("plugins").and_then(Value::as_array).filter(|_| is_init(line));
    let plugins = listed.into_iter().flatten().filter_map(|entry| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Plugin { name: text("name")?, path: text("path").filter(|path| path != "builtin")? })
    });
    plugins.collect()
}

fn is_init(line: &Value) -> bool {
    let is = |key: &str, word: &str| line.get(key).and_then(Value::as_str) == Some(word);
    is("type", "system") && is("subtype", "init")
}
