//! Drives an ACP agent: handshake, model, prompts, permission requests, cancel. What it says and hears is
//! logged and translated by the session; here it is only decided what to send next.

use std::time::Duration;

use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};

use super::rpc::{self, Message, RpcError};
use crate::adapter::drive::{Broken, Task, asked_about};
use crate::harness::ModelVia;
use crate::process::Stdin;
use crate::session::{End, Incoming, Session};
use crate::trace::PermissionOption;
use crate::wire::EngineLine;

/// How long late updates may follow an answer, and how long the agent may be silent before that is over.
const DRAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(60));

/// How long an agent has to exit once its standard input is closed.
const EXIT: Duration = Duration::from_secs(2);

/// Drives the session to its end. Answers how long to wait for the process to exit by itself.
pub async fn drive(session: &mut Session, task: &mut Task) -> Duration {
    if session.spawn(&task.command, &task.folder, &task.env, Stdin::Piped).is_err() {
        return Duration::ZERO;
    }
    let mut client =
        Client { session, task, next_id: 0, asked_at: 0, session_id: None, prompting: false, cancelled: false };
    match client.converse().await {
        Ok(()) => {
            client.session.answered();
            client.drain().await;
            client.session.close_stdin();
            EXIT
        }
        Err(broken) => {
            if let Some(patience) = broken.leave(client.session) {
                return patience;
            }
            let grace = client.task.manifest.timeouts.grace.0;
            if client.cancel(grace).await {
                // What it asks behind its answer is answered too: it may wait for it.
                client.drain().await;
                client.session.close_stdin();
                return EXIT.min(grace);
            }
            Duration::ZERO
        }
    }
}

struct Client<'a> {
    session: &'a mut Session,
    task: &'a mut Task,
    next_id: u64,
    /// Number in the wire log of our last request: what was said before that does not answer it.
    asked_at: u64,
    session_id: Option<Value>,
    prompting: bool,
    cancelled: bool,
}

impl Client<'_> {
    async fn converse(&mut self) -> Result<(), Broken> {
        let start = self.task.manifest.timeouts.start.0;
        let initialize = schema::InitializeRequest::new(agent_client_protocol_schema::ProtocolVersion::V1)
            .client_info(schema::Implementation::new("evals", env!("CARGO_PKG_VERSION")));
        let answer = self.ask("initialize", &as_json(&initialize), Some(start)).await?;
        let answer =
            answer.map_err(|error| Broken::Handshake(format!("initialize was refused: {}", error.detail())))?;
        if answer.get("protocolVersion").and_then(Value::as_f64) != Some(1.0) {
            let version = answer.get("protocolVersion").cloned().unwrap_or(Value::Null);
            return Err(Broken::Handshake(format!("the agent speaks protocol version {version}, and not 1")));
        }
        let new = json!({"cwd": self.task.folder, "mcpServers": mcp_servers(&self.task.mcp_servers)});
        let answer = self.ask("session/new", &new, Some(start)).await?;
        let answer =
            answer.map_err(|error| Broken::Handshake(format!("session/new was refused: {}", error.detail())))?;
        let Some(id) = answer.get("sessionId").filter(|id| !id.is_null()) else {
            return Err(Broken::Handshake("session/new was answered without a sessionId".to_owned()));
        };
        self.session_id = Some(id.clone());
        self.choose_model(&answer, start).await?;
        for turn in self.task.turns.clone() {
            let params = json!({"sessionId": self.session_id, "prompt": [{"type": "text", "text": turn}]});
            self.prompting = true;
            self.session.turn_begins();
            let answer = self.ask("session/prompt", &params, None).await?;
            self.prompting = false;
            let ended_well = answer
                .as_ref()
                .is_ok_and(|answer| answer.get("stopReason").and_then(Value::as_str) == Some("end_turn"));
            if answer.is_err() {
                return Err(Broken::Refused);
            }
            if !ended_well {
                break;
            }
        }
        Ok(())
    }

    /// Asks for the model the way the manifest says. A model that cannot be set must not be run under its name.
    async fn choose_model(&mut self, opened: &Value, start: Duration) -> Result<(), Broken> {
        let Some(model) = self.task.model.clone() else { return Ok(()) };
        let via = self.task.manifest.model.via;
        if !matches!(via, ModelVia::ConfigOption | ModelVia::SetModel) {
            return Ok(());
        }
        let refused = |error: RpcError| Broken::Handshake(format!("model `{model}` was refused: {}", error.detail()));
        if via == ModelVia::ConfigOption
            && let Some(option) = model_option(opened)
        {
            let params = json!({"sessionId": self.session_id, "configId": option, "value": model});
            let answer = self.ask("session/set_config_option", &params, Some(start)).await?.map_err(refused)?;
            let now = current_model(&answer);
            if let Some(now) = now.filter(|now| *now != model) {
                let text = format!("model `{model}` was asked for and accepted, and the agent says it is `{now}`");
                self.session.engine(&EngineLine::Notice { code: "model_mismatch".to_owned(), text });
            }
            return Ok(());
        }
        let params = json!({"sessionId": self.session_id, "modelId": model});
        self.ask("session/set_model", &params, Some(start)).await?.map_err(refused)?;
        Ok(())
    }

    /// Sends a request and serves the agent until it is answered.
    async fn ask(
        &mut self,
        method: &str,
        params: &Value,
        within: Option<Duration>,
    ) -> Result<Result<Value, RpcError>, Broken> {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.session.send(&rpc::request(&id, method, params)).await;
        self.asked_at = self.session.said_at();
        let deadline = within.map(|within| std::time::Instant::now() + within);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(std::time::Instant::now()));
            match self.session.next(left).await {
                Incoming::Line(line) => {
                    if let Some(outcome) = self.serve(&line, &id).await {
                        return Ok(outcome);
                    }
                }
                Incoming::Closed => return Err(Broken::Gone),
                Incoming::Late => {
                    let seconds = within.unwrap_or_default().as_secs_f64();
                    return Err(Broken::Handshake(format!("{method} was not answered within {seconds} s")));
                }
                Incoming::End(End::Limit) if !self.prompting => {
                    return Err(Broken::Handshake(format!("{method} was not answered before a limit was reached")));
                }
                Incoming::End(_) => return Err(Broken::Ended),
            }
        }
    }

    /// Takes a line: answers what the agent asks. Gives the outcome if it is the answer to this id.
    async fn serve(&mut self, line: &str, awaited: &Value) -> Option<Result<Value, RpcError>> {
        let mut outcome = None;
        let may_answer = self.session.heard_at() > self.asked_at;
        for message in rpc::parse(line) {
            match message {
                Message::Response { id, outcome: given } if may_answer && rpc::key(&id) == rpc::key(awaited) => {
                    outcome.get_or_insert(given);
                }
                Message::Request { id, method, params } => self.answer(&id, &method, &params).await,
                Message::Response { .. } | Message::Notification { .. } | Message::NotRpc { .. } => {}
            }
        }
        outcome
    }

    async fn answer(&mut self, id: &Value, method: &str, params: &Value) {
        if method == "session/request_permission" {
            self.answer_permission(id, params).await;
        } else {
            // An agent that is left without an answer may wait for it for ever.
            self.session.reply(&rpc::error(id, -32601, &format!("method not found: {method}"))).await;
        }
    }

    async fn answer_permission(&mut self, id: &Value, params: &Value) {
        let (option, decided) = self.decide(id, params).await;
        self.session.engine(&EngineLine::Permission {
            id: id.clone(),
            policy: decided.policy,
            rule: decided.rule,
            reason: decided.reason,
        });
        if let Some(text) = decided.notice {
            let code = if self.cancelled { "late_request" } else { "permission" };
            self.session.engine(&EngineLine::Notice { code: code.to_owned(), text });
        }
        let outcome = match option {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        self.session.reply(&rpc::result(id, &json!({"outcome": outcome}))).await;
    }

    /// Decides a permission request. One that is not of this turn of this session, or about a call that nobody
    /// described, is never approved.
    async fn decide(&mut self, id: &Value, params: &Value) -> (Option<String>, Said) {
        let call = params.pointer("/toolCall/toolCallId").map(rpc::id_text).unwrap_or_default();
        let call = call.as_str();
        let foreign = self.session_id.is_some() && params.get("sessionId") != self.session_id.as_ref();
        let why_not = if foreign {
            Some("the request is of another session")
        } else if !self.prompting {
            Some("the request came when no prompt was running")
        } else if self.session.recorder().open_call(call).is_none()
            || self.session.recorder().asked_of_an_unknown_call(&rpc::id_text(id))
        {
            Some("the request is about a call that is unknown or has ended")
        } else {
            None
        };
        if let Some(reason) = why_not {
            // What else is wrong with a request the translation tells.
            let notice = self.cancelled.then(|| format!("request {id} came after the turn was cancelled"));
            let reason = Some(reason.to_owned());
            let said = Said { policy: "engine".to_owned(), rule: None, reason, notice };
            return (None, said);
        }
        let about = asked_about(self.session, call, &self.task.folder);
        let Some((asked, diffs)) = about else { return (None, Said::default()) };
        let options = options_of(params);
        let reply = self.task.policy.decide(&asked, &diffs, &options).await;
        let unserved =
            reply.updated_input.map(|_| "a rule changes the call's input, which ACP takes none of".to_owned());
        let notice = reply.notice.or(unserved);
        (reply.option, Said { policy: reply.policy, rule: reply.rule, reason: reply.reason, notice })
    }

    /// Late updates are evidence too: takes them until the agent is silent.
    async fn drain(&mut self) {
        let until = std::time::Instant::now() + DRAIN.0;
        while std::time::Instant::now() < until {
            match self.session.next(Some(DRAIN.1)).await {
                Incoming::Line(line) => {
                    self.serve(&line, &Value::Null).await;
                }
                Incoming::Closed | Incoming::Late | Incoming::End(_) => return,
            }
        }
    }

    /// Cancels the prompt that is running and waits for its answer. Answers whether it came.
    async fn cancel(&mut self, grace: Duration) -> bool {
        self.session.engine(&EngineLine::Cancel);
        self.cancelled = true;
        let Some(id) = self.session_id.clone() else { return false };
        let awaited = json!(self.next_id.saturating_sub(1));
        self.session.send(&rpc::notification("session/cancel", &json!({"sessionId": id}))).await;
        self.prompting = false;
        let until = std::time::Instant::now() + grace;
        loop {
            match self.session.next(Some(until.saturating_duration_since(std::time::Instant::now()))).await {
                Incoming::Line(line) => {
                    if self.serve(&line, &awaited).await.is_some() {
                        return true;
                    }
                }
                // The interrupt may come while a limit is being enforced; the grace is over either way.
                Incoming::Closed | Incoming::Late | Incoming::End(_) => return false,
            }
        }
    }
}

/// The case's MCP servers in the protocol's form, where an environment is a list of names and values.
fn mcp_servers(written: &[Value]) -> Vec<Value> {
    let mut servers = written.to_vec();
    for server in servers.iter_mut().filter_map(Value::as_object_mut) {
        for key in ["env", "headers"] {
            if let Some(Value::Object(pairs)) = server.get(key) {
                let list = pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                server.insert(key.to_owned(), Value::Array(list));
            }
        }
        if server.contains_key("command") {
            server.entry("args").or_insert_with(|| json!([]));
            server.entry("env").or_insert_with(|| json!([]));
        }
    }
    servers
}

/// What is logged of a decision.
#[derive(Default)]
struct Said {
    policy: String,
    rule: Option<String>,
    reason: Option<String>,
    notice: Option<String>,
}

fn options_of(params: &Value) -> Vec<PermissionOption> {
    let options = params.get("options").and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |option: &Value, key: &str| option.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    options
        .iter()
        .filter(|option| option.get("optionId").is_some_and(Value::is_string))
        .map(|option| PermissionOption {
            option: text(option, "optionId"),
            kind: text(option, "kind"),
            label: text(option, "name"),
        })
        .collect()
}

/// The config option by which the model is chosen.
fn model_option(answer: &Value) -> Option<Value> {
    let options = answer.get("configOptions")?.as_array()?;
    let by = |key: &str| options.iter().find(|option| option.get(key).and_then(Value::as_str) == Some("model"));
    by("category").or_else(|| by("id"))?.get("id").cloned()
}

fn current_model(answer: &Value) -> Option<String> {
    let id = model_option(answer)?;
    let options = answer.get("configOptions")?.as_array()?;
    let option = options.iter().find(|option| option.get("id") == Some(&id))?;
    option.get("currentValue")?.as_str().map(str::to_owned)
}

fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
