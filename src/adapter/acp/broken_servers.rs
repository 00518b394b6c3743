//! The reports of agents over ACP that an MCP server does not work.

use serde_json::{Map, Value};

use super::content;

/// Returns the MCP server that a line of the agent reports as broken: in a notice of the bridge to Claude Code, or in the
/// report of the bridge to Codex that a server did not start.
pub(crate) fn broken_server(line: &Value) -> Option<&str> {
    let update = line.get("params")?.get("update")?;
    of_claude(update).or_else(|| of_codex(update))
}

fn of_claude(update: &Value) -> Option<&str> {
    let notice = update.get("_meta")?.get("claudeCode")?;
    let text = |key: &str| notice.get(key).and_then(Value::as_str);
    let is_broken = matches!(text("status"), Some("failed" | "needs-auth"));
    text("server").filter(|_| is_broken && text("kind") == Some("mcpServerStatus"))
}

fn of_codex(update: &Value) -> Option<&str> {
    startup_report(update.get("sessionUpdate")?.as_str()?, update.as_object()?)?;
    update.get("title")?.as_str()?.strip_prefix("mcp__")?.strip_suffix("__startup")
}

/// Returns the text by which the bridge to Codex reports that an MCP server did not start. The report has the form of a call.
pub(super) fn startup_report(word: &str, update: &Map<String, Value>) -> Option<String> {
    let id = update.get("toolCallId")?.as_str()?;
    if word != "tool_call" || !id.starts_with("mcp_startup.") {
        return None;
    }
    let text = content::shown(update.get("content")?.clone()).text?;
    text.starts_with("[codex-acp").then_some(text)
}
