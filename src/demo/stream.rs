//! The demo agent with lines like Claude Code's stream-json: output only, with one prompt.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::play::{Call, Permission, Played, Player, Spent, Stage};
use super::script::{PlanLine, Step, Tool};
use super::tools::{CallOutcome, Workspace};

const SESSION: &str = "demo-session-1";

/// Plays a turn in the current folder.
///
/// # Errors
/// Returns an error if the folder does not exist, or the reader has disconnected.
pub fn play(turn: Option<&[Step]>, model: &str) -> io::Result<ExitCode> {
    let folder = std::env::current_dir()?;
    let mut stage = Stream::begin(&folder, model)?;
    let mut player = Player::new(Workspace::new(&folder)?);
    let played = player.turn(turn, &mut stage)?;
    stage.end(&played)
}

/// Prints the output that Claude Code prints if the model is not available.
///
/// # Errors
/// Returns an error if the folder does not exist, or the reader has disconnected.
pub fn refuse(model: &str) -> io::Result<ExitCode> {
    let mut stage = Stream::begin(&std::env::current_dir()?, model)?;
    let text = format!("API Error: 404 the model `{model}` is not one of the script's `models`");
    let mut line = stage.result_line("success", true);
    line.insert("api_error_status".to_owned(), json!(404));
    line.insert("terminal_reason".to_owned(), json!("api_error"));
    line.insert("result".to_owned(), json!(text));
    stage.line(&Value::Object(line))?;
    Ok(ExitCode::FAILURE)
}

struct Stream {
    out: io::StdoutLock<'static>,
    model: String,
    started: Instant,
    /// The number of the model's message. Blocks of one message share its id, and tool results end it.
    message: u64,
    fresh: bool,
}

impl Stream {
    fn begin(folder: &Path, model: &str) -> io::Result<Self> {
        let out = io::stdout().lock();
        let mut stage = Self { out, model: model.to_owned(), started: Instant::now(), message: 0, fresh: true };
        stage.line(&json!({
            "type": "system",
            "subtype": "init",
            "cwd": folder.to_string_lossy(),
            "session_id": SESSION,
            "tools": ["Read", "Search", "Write", "Edit", "Delete", "Move", "Bash", "Fetch"],
            "mcp_servers": [],
            "model": model,
            "permissionMode": "bypassPermissions",
            "claude_code_version": concat!("demo-", env!("CARGO_PKG_VERSION")),
        }))?;
        Ok(stage)
    }

    fn line(&mut self, line: &Value) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    fn block(&mut self, block: &Value) -> io::Result<()> {
        if self.fresh {
            self.message += 1;
            self.fresh = false;
        }
        self.line(&json!({
            "type": "assistant",
            "message": {
                "id": format!("msg_{}", self.message),
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": [block],
                "stop_reason": null,
                "stop_sequence": null,
            },
            "parent_tool_use_id": null,
            "session_id": SESSION,
        }))
    }

    fn result_line(&self, subtype: &str, is_error: bool) -> Map<String, Value> {
        let line = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "duration_ms": u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "num_turns": self.message,
            "session_id": SESSION,
            "permission_denials": [],
        });
        match line {
            Value::Object(line) => line,
            _ => Map::new(),
        }
    }

    fn end(&mut self, played: &Played) -> io::Result<ExitCode> {
        // For an error of Claude Code itself, the last line has no `result`, and the exit code is 1.
        let error = match played.stop.as_str() {
            "max_turn_requests" => Some(("error_max_turns", "Reached maximum number of turns", "max_turns")),
            "cancelled" => Some(("error_during_execution", "Request was aborted.", "aborted_streaming")),
            _ => None,
        };
        let mut line = self.result_line(error.map_or("success", |(subtype, ..)| subtype), error.is_some());
        match error {
            Some((_, text, reason)) => {
                line.insert("errors".to_owned(), json!([text]));
                line.insert("stop_reason".to_owned(), Value::Null);
                line.insert("terminal_reason".to_owned(), json!(reason));
            }
            None => {
                line.insert("result".to_owned(), json!(played.last_message.as_deref().unwrap_or_default()));
                line.insert("stop_reason".to_owned(), json!(played.stop));
                line.insert("terminal_reason".to_owned(), json!("completed"));
            }
        }
        add_usage(&mut line, &self.model, &played.spent);
        self.line(&Value::Object(line))?;
        Ok(if error.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

impl Stage for Stream {
    fn thought(&mut self, text: &str) -> io::Result<()> {
        self.block(&json!({"type": "thinking", "thinking": text, "signature": ""}))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.block(&json!({"type": "text", "text": text}))
    }

    /// Prints nothing: the stream has no plans, and a tool call in their place would be one that the script does not
    /// make.
    fn plan(&mut self, _plan: &[PlanLine]) -> io::Result<()> {
        Ok(())
    }

    fn announce(&mut self, call: &Call) -> io::Result<()> {
        self.block(&json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}))
    }

    /// Allows the call, because this protocol has no permission requests.
    fn ask(&mut self, _call: &Call) -> io::Result<Permission> {
        Ok(Permission::Once)
    }

    fn begin(&mut self, _call: &Call) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, call: &Call, outcome: &CallOutcome) -> io::Result<()> {
        self.fresh = true;
        let text = match outcome.exit {
            Some(exit) if !exit.success() => {
                // If a signal ended the command, the code is that of a shell.
                let code = exit
                    .code()
                    .unwrap_or_else(|| 128 + std::os::unix::process::ExitStatusExt::signal(&exit).unwrap_or(0));
                format!("Exit code {code}\n{}", outcome.text)
            }
            _ => outcome.text.clone(),
        };
        let detail = if outcome.failed { json!(format!("Error: {text}")) } else { detail(call, outcome) };
        let mut block = json!({"type": "tool_result", "tool_use_id": call.id, "content": text});
        if outcome.failed || outcome.exit.is_some() {
            block["is_error"] = json!(outcome.failed);
        }
        self.line(&json!({
            "type": "user",
            "message": {"role": "user", "content": [block]},
            "parent_tool_use_id": null,
            "session_id": SESSION,
            "tool_use_result": detail,
        }))
    }
}

/// Returns the details of a result that Claude Code reports besides the text.
fn detail(call: &Call, outcome: &CallOutcome) -> Value {
    let path = call.locations.first();
    let diff = outcome.diffs.first();
    match call.tool {
        Tool::Read(_) => {
            let lines = outcome.text.lines().count();
            let file = json!({"filePath": path, "content": outcome.text, "numLines": lines, "startLine": 1, "totalLines": lines});
            json!({"type": "text", "file": file})
        }
        Tool::Write(step) => {
            let old = diff.and_then(|diff| diff.old.as_deref());
            json!({
                "type": if old.is_some() { "update" } else { "create" },
                "filePath": path,
                "content": step.text,
                "structuredPatch": [],
                "originalFile": old,
                "userModified": false,
            })
        }
        Tool::Edit(step) => json!({
            "filePath": path,
            "oldString": step.old,
            "newString": step.new,
            "originalFile": diff.and_then(|diff| diff.old.as_deref()),
            "structuredPatch": [],
            "userModified": false,
            "replaceAll": false,
        }),
        Tool::Delete(_) => json!({
            "type": "delete",
            "filePath": path,
            "originalFile": diff.and_then(|diff| diff.old.as_deref()),
        }),
        Tool::Run(_) => json!({"stdout": outcome.text, "stderr": "", "interrupted": false, "isImage": false}),
        Tool::Move(_) | Tool::Search(_) | Tool::Fetch(_) => json!(outcome.text),
    }
}

/// Adds the script's usage to the last line. Figures that the script does not give are absent.
fn add_usage(line: &mut Map<String, Value>, model: &str, spent: &Spent) {
    let mut usage = Map::new();
    let mut of_model = Map::new();
    for (figure, word, model_word) in [
        (spent.input, "input_tokens", "inputTokens"),
        (spent.output, "output_tokens", "outputTokens"),
        (spent.cache_read, "cache_read_input_tokens", "cacheReadInputTokens"),
        (spent.cache_write, "cache_creation_input_tokens", "cacheCreationInputTokens"),
    ] {
        if let Some(figure) = figure {
            usage.insert(word.to_owned(), json!(figure));
            of_model.insert(model_word.to_owned(), json!(figure));
        }
    }
    if let Some(cost) = spent.cost {
        of_model.insert("costUSD".to_owned(), json!(cost));
        line.insert("total_cost_usd".to_owned(), json!(cost));
    }
    if !usage.is_empty() {
        line.insert("usage".to_owned(), Value::Object(usage));
    }
    if !of_model.is_empty() {
        line.insert("modelUsage".to_owned(), json!({model: of_model}));
    }
}
