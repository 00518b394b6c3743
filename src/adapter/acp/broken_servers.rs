//! The reports of agents over ACP that an MCP server does not work.

use serde_json::{Map, Value};

use super::bridge_reports::may_be_report;
use super::content;
use crate::trace::recorder;
use crate::values::Pattern;

/// Returns the MCP server that a line of the agent reports as broken: in a notice of the bridge to Claude Code, or in the
/// report of the bridge to Codex that a server did not start.
pub(crate) fn broken_server(line: &Value) -> Option<&str> {
    let update = line.get("params")?.get("update")?;
    of_claude(update).or_else(|| of_codex(update))
}

/// Returns the text of a chunk of a message that is not known to be the model's: it has no ID, or one of another form than the
/// model's messages have.
pub(crate) fn text_of_program<'a>(line: &'a Value, message_id: Option<&Pattern>) -> Option<&'a str> {
    let update = line.get("params")?.get("update")?;
    let id = update.get("messageId").and_then(Value::as_str);
    let is_of_model = id.is_some_and(|id| message_id.is_none_or(|form| form.first_group(id).is_some()));
    let is_text = update.get("sessionUpdate")?.as_str()? == "agent_message_chunk" && !is_of_model;
    update.get("content")?.get("text")?.as_str().filter(|_| is_text)
}

fn of_claude(update: &Value) -> Option<&str> {
    let notice = update.get("_meta")?.get("claudeCode")?;
    let text = |key: &str| notice.get(key).and_then(Value::as_str);
    let is_broken = matches!(text("status"), Some("failed" | "needs-auth"));
    text("server").filter(|_| is_broken && text("kind") == Some("mcpServerStatus"))
}

fn of_codex(update: &Value) -> Option<&str> {
    let meta = update.get("_meta").unwrap_or(&Value::Null);
    startup_report(update.get("sessionUpdate")?.as_str()?, update.as_object()?, meta)?;
    update.get("title")?.as_str()?.strip_prefix("mcp__")?.strip_suffix("__startup")
}

/// Returns the text by which the bridge to Codex reports that an MCP server did not start. The report has the form of a failed
/// call without an input and a result. An update of another form is one of a call.
pub(super) fn startup_report(word: &str, update: &Map<String, Value>, meta: &Value) -> Option<String> {
    let id = update.get("toolCallId")?.as_str()?;
    let is_empty = |key: &str| update.get(key).is_none_or(recorder::is_empty);
    let has_form = update.get("status").and_then(Value::as_str) == Some("failed")
        && ["rawInput", "rawOutput"].into_iter().all(is_empty)
        && may_be_report(update, meta, "other");
    if word != "tool_call" || !id.starts_with("mcp_startup.") || !has_form {
        return None;
    }
    let text = content::shown(update.get("content")?.clone()).text?;
    text.starts_with("[codex-acp").then_some(text)
}
