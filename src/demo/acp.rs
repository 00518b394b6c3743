//! The demo agent over the Agent Client Protocol: real JSON-RPC on stdio, with a client that may interrupt.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::NAME;
use super::play::{Call, Permission, Played, Player, Spent, Stage};
use super::script::{PlanLine, Question, Script, Tool};
use super::tools::{CallOutcome, Workspace};

mod client;
pub mod inbox;

use client::Offers;
use inbox::{Inbox, Incoming};

/// The size of the context that the demo agent reports, in tokens. The protocol requires a size beside each cost.
const CONTEXT: u64 = 200_000;

/// Serves a client until it closes standard input.
///
/// # Errors
/// Returns an error if the client has disconnected.
pub fn serve(script: &Script, model: &str) -> io::Result<()> {
    let inbox = Arc::new(Inbox::default());
    let reader = Arc::clone(&inbox);
    std::thread::spawn(move || reader.fill(io::stdin().lock()));
    let mut agent = Agent {
        script,
        model: model.to_owned(),
        sessions: HashMap::new(),
        offers: Offers::default(),
        wire: Wire { out: io::stdout().lock(), next_request: 0 },
        inbox,
    };
    while let Some(incoming) = agent.inbox.next() {
        agent.take(incoming)?;
    }
    Ok(())
}

struct Agent<'a> {
    script: &'a Script,
    model: String,
    sessions: HashMap<String, Session>,
    offers: Offers,
    wire: Wire,
    inbox: Arc<Inbox>,
}

struct Session {
    player: Player,
    cwd: PathBuf,
    model: String,
    /// Requested models that are not the script's own.
    asked: Vec<String>,
    turns: usize,
    messages: u64,
    spent: Spent,
}

/// A refused request: a JSON-RPC error.
struct Refusal {
    code: i64,
    message: String,
}

impl Refusal {
    fn params(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }
}

impl Agent<'_> {
    fn take(&mut self, incoming: Incoming) -> io::Result<()> {
        match incoming {
            Incoming::Malformed(code, message) => self.wire.answer(&Value::Null, Err(Refusal { code, message })),
            // A notification has no answer, and only the cancel of a turn has a meaning here.
            Incoming::Notification => Ok(()),
            Incoming::Request { id, method, params } => {
                let result = match method.as_str() {
                    "initialize" => {
                        self.offers = Offers::of(&params);
                        Ok(hello())
                    }
                    "session/new" => self.new_session(&params),
                    "session/set_config_option" => self.set_config_option(&params),
                    "session/set_model" => self.set_model(&params),
                    "session/prompt" => self.prompt(&params)?,
                    _ => Err(Refusal { code: -32601, message: format!("method not found: {method}") }),
                };
                self.wire.answer(&id, result)
            }
        }
    }

    fn new_session(&mut self, params: &Value) -> Result<Value, Refusal> {
        let cwd = params["cwd"].as_str().ok_or_else(|| Refusal::params("`cwd` is missing"))?;
        if !Path::new(cwd).is_absolute() {
            return Err(Refusal::params(format!("`cwd` is not an absolute path: {cwd}")));
        }
        let workspace = Workspace::new(Path::new(cwd)).map_err(|error| Refusal::params(format!("{cwd}: {error}")))?;
        let id = format!("demo-session-{}", self.sessions.len() + 1);
        let session = Session {
            player: Player::new(workspace),
            cwd: PathBuf::from(cwd),
            model: self.model.clone(),
            asked: Vec::new(),
            turns: 0,
            messages: 0,
            spent: Spent::default(),
        };
        let options = session.config_options(self.script);
        self.sessions.insert(id.clone(), session);
        Ok(json!({"sessionId": id, "configOptions": options}))
    }

    fn set_config_option(&mut self, params: &Value) -> Result<Value, Refusal> {
        let (script, session) = (self.script, self.session(params)?);
        if params["configId"] != "model" {
            return Err(Refusal::params(format!("unknown option: {}", params["configId"])));
        }
        session.choose(&params["value"], script)?;
        Ok(json!({"configOptions": session.config_options(script)}))
    }

    fn set_model(&mut self, params: &Value) -> Result<Value, Refusal> {
        let (script, session) = (self.script, self.session(params)?);
        session.choose(&params["modelId"], script)?;
        Ok(json!({}))
    }

    /// Plays the session's next turn.
    fn prompt(&mut self, params: &Value) -> io::Result<Result<Value, Refusal>> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let played = match self.sessions.get_mut(&id) {
            None => Err(Refusal::params(format!("unknown session: {}", params["sessionId"]))),
            Some(session) => {
                let steps = self.script.turn(session.turns);
                session.turns += 1;
                let mut voice = Voice {
                    wire: &mut self.wire,
                    inbox: &self.inbox,
                    session: &id,
                    messages: &mut session.messages,
                    offers: self.offers,
                    cwd: &session.cwd,
                };
                let played = session.player.turn(steps, &mut voice)?;
                if played.spent.cost.is_some() {
                    session.spent.add_cost(played.spent.cost);
                    let used = played.spent.total().unwrap_or(0);
                    let cost = json!({"amount": session.spent.cost, "currency": "USD"});
                    voice.update("usage_update", json!({"used": used, "size": CONTEXT, "cost": cost}))?;
                }
                Ok(answer(&played))
            }
        };
        self.inbox.answered(&id);
        Ok(played)
    }

    fn session(&mut self, params: &Value) -> Result<&mut Session, Refusal> {
        let id = params["sessionId"].as_str().unwrap_or_default();
        self.sessions.get_mut(id).ok_or_else(|| Refusal::params(format!("unknown session: {}", params["sessionId"])))
    }
}

impl Session {
    fn choose(&mut self, model: &Value, script: &Script) -> Result<(), Refusal> {
        let model = model.as_str().ok_or_else(|| Refusal::params("the model is not a string"))?;
        if !script.accepts(model) {
            return Err(Refusal::params(format!("unknown model: {model}")));
        }
        if model != self.model {
            let before = std::mem::replace(&mut self.model, model.to_owned());
            self.asked.retain(|asked| asked != model);
            self.asked.push(before);
        }
        Ok(())
    }

    fn config_options(&self, script: &Script) -> Value {
        let listed = script.models.iter().flatten().chain(&self.asked).chain([&self.model]);
        let mut models: Vec<&str> = Vec::new();
        for model in listed {
            if !models.contains(&model.as_str()) {
                models.push(model);
            }
        }
        let options: Vec<Value> = models.iter().map(|model| json!({"value": model, "name": model})).collect();
        json!([{
            "id": "model",
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": self.model,
            "options": options,
        }])
    }
}

fn hello() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": NAME, "title": "evals demo agent", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": false,
            // A prompt may have any content, because the script does not depend on it.
            "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
            // For the same reason the demo agent accepts any MCP server, and connects to none.
            "mcpCapabilities": {"http": true, "sse": true},
        },
        "authMethods": [],
    })
}

/// Returns the answer to a prompt. The answer contains only figures that the script gives.
fn answer(played: &Played) -> Value {
    let mut answer = json!({"stopReason": played.stop});
    if played.spent.has_tokens() {
        let mut usage = Map::new();
        for (word, figure) in [
            ("inputTokens", played.spent.input),
            ("outputTokens", played.spent.output),
            ("cachedReadTokens", played.spent.cache_read),
            ("cachedWriteTokens", played.spent.cache_write),
            ("totalTokens", played.spent.total()),
        ] {
            if let Some(figure) = figure {
                usage.insert(word.to_owned(), json!(figure));
            }
        }
        answer["usage"] = Value::Object(usage);
    }
    answer
}

/// The output to the client.
struct Wire {
    out: io::StdoutLock<'static>,
    next_request: u64,
}

impl Wire {
    fn send(&mut self, message: &Value) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.out.flush()
    }

    fn answer(&mut self, id: &Value, result: Result<Value, Refusal>) -> io::Result<()> {
        match result {
            Ok(result) => self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Err(Refusal { code, message }) => {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
            }
        }
    }
}

/// A turn of a session, as it is sent to the client.
struct Voice<'a> {
    wire: &'a mut Wire,
    inbox: &'a Inbox,
    session: &'a str,
    messages: &'a mut u64,
    offers: Offers,
    cwd: &'a Path,
}

impl Voice<'_> {
    fn update(&mut self, word: &str, fields: Value) -> io::Result<()> {
        let mut update = json!({"sessionUpdate": word});
        if let (Value::Object(update), Value::Object(fields)) = (&mut update, fields) {
            update.extend(fields);
        }
        let params = json!({"sessionId": self.session, "update": update});
        self.wire.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    }

    fn chunks(&mut self, word: &str, text: &str) -> io::Result<()> {
        *self.messages += 1;
        let message = format!("msg_{}", self.messages);
        for chunk in in_chunks(text) {
            self.update(word, json!({"content": {"type": "text", "text": chunk}, "messageId": message}))?;
        }
        Ok(())
    }

    fn call_update(&mut self, call: &Call, fields: Value) -> io::Result<()> {
        let mut update = json!({"toolCallId": call.id});
        if let (Value::Object(update), Value::Object(fields)) = (&mut update, fields) {
            update.extend(fields);
        }
        self.update("tool_call_update", update)
    }
}

impl Stage for Voice<'_> {
    fn question(&mut self, question: &Question) -> io::Result<Option<String>> {
        self.ask_user(question)
    }

    fn by_client(&mut self, call: &Call) -> io::Result<Option<CallOutcome>> {
        self.done_by_client(call)
    }

    fn thought(&mut self, text: &str) -> io::Result<()> {
        self.chunks("agent_thought_chunk", text)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.chunks("agent_message_chunk", text)
    }

    fn plan(&mut self, plan: &[PlanLine]) -> io::Result<()> {
        let entries: Vec<Value> = plan
            .iter()
            .map(|line| json!({"content": line.text, "status": line.status.word(), "priority": line.priority.word()}))
            .collect();
        self.update("plan", json!({"entries": entries}))
    }

    fn announce(&mut self, call: &Call) -> io::Result<()> {
        let mut fields = announced(call);
        fields["status"] = json!("pending");
        self.update("tool_call", fields)
    }

    fn ask(&mut self, call: &Call) -> io::Result<Permission> {
        let params = json!({
            "toolCall": announced(call),
            "options": [
                {"optionId": "allow-once", "name": "Allow", "kind": "allow_once"},
                {"optionId": "allow-always", "name": format!("Always allow {}", call.name), "kind": "allow_always"},
                {"optionId": "reject-once", "name": "Reject", "kind": "reject_once"},
            ],
        });
        let outcome = self.request("session/request_permission", params)?;
        Ok(match outcome.as_ref().map(|answer| &answer["result"]["outcome"]) {
            None => Permission::Cancelled,
            // An approval that crosses with the cancel of the turn is too late.
            Some(_) if self.cancelled() => Permission::Cancelled,
            Some(outcome) if outcome["outcome"] == "cancelled" => Permission::Cancelled,
            Some(outcome) => match outcome["optionId"].as_str() {
                Some("allow-once") => Permission::Once,
                Some("allow-always") => Permission::Always,
                // Neither an error nor an option that was not offered is an approval.
                _ => Permission::Rejected,
            },
        })
    }

    fn begin(&mut self, call: &Call) -> io::Result<()> {
        self.call_update(call, json!({"status": "in_progress"}))
    }

    fn finish(&mut self, call: &Call, outcome: &CallOutcome) -> io::Result<()> {
        let mut content = Vec::new();
        if !outcome.text.is_empty() {
            content.push(json!({"type": "content", "content": {"type": "text", "text": outcome.text}}));
        }
        if let Some(terminal) = &outcome.terminal {
            content.push(json!({"type": "terminal", "terminalId": terminal}));
        }
        for diff in &outcome.diffs {
            let mut block = json!({"type": "diff", "path": diff.path, "newText": diff.new});
            if let Some(old) = &diff.old {
                block["oldText"] = json!(old);
            }
            content.push(block);
        }
        let mut fields = json!({"status": if outcome.failed { "failed" } else { "completed" }, "content": content});
        if let (Tool::Run(_), Some(exit)) = (call.tool, outcome.exit) {
            fields["rawOutput"] = json!({"output": outcome.text});
            match (exit.code(), std::os::unix::process::ExitStatusExt::signal(&exit)) {
                (Some(code), _) => fields["rawOutput"]["exitCode"] = json!(code),
                (None, signal) => fields["rawOutput"]["signal"] = json!(signal),
            }
        }
        self.call_update(call, fields)?;
        if let Some(terminal) = &outcome.terminal {
            self.request("terminal/release", json!({"terminalId": terminal}))?;
        }
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.inbox.is_cancelled(self.session)
    }

    fn wait(&self, time: Duration) {
        self.inbox.wait(self.session, time);
    }
}

fn announced(call: &Call) -> Value {
    let mut fields = json!({
        "toolCallId": call.id,
        "name": call.name,
        "title": call.title,
        "kind": call.kind.word(),
        "rawInput": call.input,
    });
    if !call.locations.is_empty() {
        fields["locations"] = call.locations.iter().map(|path| json!({"path": path})).collect();
    }
    fields
}

/// Splits a text into up to four parts, as in a model's stream.
fn in_chunks(text: &str) -> impl Iterator<Item = &str> {
    let size = text.len().div_ceil(4).max(1);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (chunk, later) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        rest = later;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::in_chunks;

    #[test]
    fn chunks_are_several_and_make_up_the_text() {
        for (text, count) in [("", 0), ("a", 1), ("ok", 2), ("I will fix the loop.", 4), ("äöüß€", 3), ("🦀🦀", 2)]
        {
            let chunks: Vec<&str> = in_chunks(text).collect();
            assert_eq!(chunks.concat(), text);
            assert_eq!(chunks.len(), count, "{chunks:?}");
        }
    }
}
