//! Opens an agent's session: sends `initialize`, makes a new session or continues one, and sets its model and mode.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, EXIT};
use crate::adapter::acp::answers::{AUTH_REQUIRED, category_of};
use crate::adapter::acp::background::Background;
use crate::adapter::acp::models;
use crate::adapter::acp::rpc::RpcError;
use crate::case::BetweenTurns;
use crate::driver::Broken;
use crate::harness::ModelVia;
use crate::process::Stdin;
use crate::session::Incoming;
use crate::trace::{ErrorCategory, NoticeCode};
use crate::wire::EngineLine;

impl Client<'_> {
    fn start(&self) -> Duration {
        self.task.manifest.timeouts.start.0
    }

    /// Sends `initialize` and keeps the agent's capabilities. Fails if the agent lacks a capability that the case
    /// needs.
    pub(super) async fn initialize(&mut self) -> Result<(), Broken> {
        let answer = self.ask("initialize", &self.hello(), Some(self.start())).await?;
        let mut answer = answer.map_err(|error| refused("initialize", &error))?;
        if answer.get("protocolVersion").and_then(Value::as_f64) != Some(1.0) {
            let version = answer.get("protocolVersion").cloned().unwrap_or(Value::Null);
            return Err(Broken::Handshake(format!("the agent speaks protocol version {version}, not 1")));
        }
        self.can = answer.get_mut("agentCapabilities").map(Value::take).unwrap_or_default();
        let methods = answer.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        self.login_methods = methods.filter_map(|method| method.get("id")?.as_str().map(str::to_owned)).collect();
        let lacks = |word: &str, method: &str, key: &str| {
            let why =
                format!("the case sets `between-turns: {word}`, but the agent does not support {method} (`{key}`)");
            Err(Broken::Handshake(why))
        };
        if let Some((name, by)) = self.not_taken() {
            let why = format!(
                "the case's MCP server `{name}` uses {by}, which the agent does not support (`agentCapabilities.mcpCapabilities.{by}`)"
            );
            return Err(Broken::Handshake(why));
        }
        match self.goes_on_by() {
            Some(BetweenTurns::Load) if self.can.get("loadSession").and_then(Value::as_bool) != Some(true) => {
                lacks("load", "session/load", "agentCapabilities.loadSession")
            }
            Some(BetweenTurns::Resume) if !is_offered(self.can.pointer("/sessionCapabilities/resume")) => {
                lacks("resume", "session/resume", "agentCapabilities.sessionCapabilities.resume")
            }
            _ => Ok(()),
        }
    }

    /// Returns the name and the transport of an MCP server of the case that the agent does not claim to support.
    fn not_taken(&self) -> Option<(String, &'static str)> {
        self.task.mcp_servers.iter().find_map(|server| {
            let by = ["http", "sse"].into_iter().find(|by| server.get("type").and_then(Value::as_str) == Some(by))?;
            let takes = self.can.pointer(&format!("/mcpCapabilities/{by}")).and_then(Value::as_bool) == Some(true);
            let name = server.get("name").and_then(Value::as_str).unwrap_or_default();
            (!takes).then(|| (name.to_owned(), by))
        })
    }

    /// Returns how the session continues in another process between two turns, or `None` if it stays in one process.
    fn goes_on_by(&self) -> Option<BetweenTurns> {
        self.task.session.between_turns.filter(|by| *by != BetweenTurns::Keep && self.task.turns.len() > 1)
    }

    /// Opens a new session and sets its model and mode.
    pub(super) async fn open(&mut self) -> Result<(), Broken> {
        let new = self.session_params();
        let answer = self.ask_logged_in("session/new", &new).await?;
        let Some(id) = answer.get("sessionId").filter(|id| !id.is_null()) else {
            return Err(Broken::Handshake("session/new was answered without a sessionId".to_owned()));
        };
        self.session_id = Some(id.clone());
        self.set_up(&answer).await?;
        self.opened = answer;
        Ok(())
    }

    /// Requests a session. If the agent requires a login first, and the manifest names a login method that works
    /// without a person, logs in and repeats the request once.
    async fn ask_logged_in(&mut self, method: &str, params: &Value) -> Result<Value, Broken> {
        let start = Some(self.start());
        let error = match self.ask(method, params, start).await? {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let wants_login = match category_of(&error) {
            ErrorCategory::Auth => true,
            // A login does not lift the limit, and its own failure would hide it.
            ErrorCategory::RateLimit => false,
            _ => error.code == Some(AUTH_REQUIRED),
        };
        let Some(id) = self.login().filter(|_| wants_login) else { return Err(refused(method, &error)) };
        let answer = self.ask("authenticate", &json!({"methodId": id}), start).await?;
        answer.map_err(|error| refused("authenticate", &error))?;
        self.ask(method, params, start).await?.map_err(|error| refused(method, &error))
    }

    /// Returns the first login method of the manifest that the agent offers and whose environment variables and files
    /// are present.
    fn login(&self) -> Option<String> {
        let env = &self.task.env;
        let home = env.get("HOME").map(Path::new);
        let offered = |id: &String| self.login_methods.contains(id);
        let usable = self.task.manifest.authenticate.iter().find(|it| offered(&it.method) && it.is_usable(env, home));
        usable.map(|method| method.method.clone())
    }

    /// Returns the parameters by which a session is opened or continued.
    fn session_params(&self) -> Value {
        let mut params = json!({"cwd": self.task.folder, "mcpServers": mcp_servers(&self.task.mcp_servers)});
        if let Some(system) = &self.task.system_prompt {
            params["_meta"] = json!({"systemPrompt": {"append": system}});
        }
        params
    }

    /// Ends the agent's process and continues the session in a new one, if the case requests it. Returns false if the agent
    /// removed the workspace, so that no process can start in it.
    pub(super) async fn between_turns(&mut self) -> Result<bool, Broken> {
        let method = match self.goes_on_by() {
            Some(BetweenTurns::Load) => "session/load",
            Some(BetweenTurns::Resume) => "session/resume",
            Some(BetweenTurns::Keep) | None => return Ok(true),
        };
        self.drain().await;
        if !self.task.folder.is_dir() {
            return Ok(false);
        }
        if self.background.goes_on() {
            let text = "the agent's process was ended between two turns while work went on in the background";
            self.session.engine(&EngineLine::Notice { code: NoticeCode::BackgroundCut, text: text.to_owned() });
        }
        self.session.close_stdin();
        self.session.end_for_another(EXIT).await;
        self.waiting.clear();
        self.background = Background::default();
        self.mode = None;
        if matches!(self.session.next(Some(Duration::ZERO)).await, Incoming::End(_)) {
            return Err(Broken::Ended);
        }
        let task = &*self.task;
        if self.session.spawn(&task.command, &task.folder, &task.env, Stdin::Piped).await.is_err() {
            return Err(Broken::Gone);
        }
        self.initialize().await?;
        let mut params = self.session_params();
        params["sessionId"] = self.session_id.clone().unwrap_or(Value::Null);
        let answer = self.ask_logged_in(method, &params).await?;
        // Some agents go on with the history after their answer. After the next prompt, it would be part of the next turn.
        self.drain().await;
        // Modes and options that the agent does not report again are the ones it reported when it made the session.
        let says = ["modes", "configOptions"].iter().any(|key| answer.get(key).is_some_and(|value| !value.is_null()));
        let opened = if says { answer } else { self.opened.clone() };
        // The history may repeat the start of work that ended with the process.
        self.background = Background::default();
        self.set_up(&opened).await?;
        Ok(true)
    }

    async fn set_up(&mut self, opened: &Value) -> Result<(), Broken> {
        self.choose_model(opened).await?;
        self.choose_mode(opened).await
    }

    /// Sets the model by the method that the manifest names. Fails if the model cannot be set, because the results
    /// would otherwise appear under its name.
    async fn choose_model(&mut self, opened: &Value) -> Result<(), Broken> {
        let Some(model) = self.task.model.clone() else { return Ok(()) };
        let via = self.task.manifest.model.via;
        if !matches!(via, ModelVia::ConfigOption | ModelVia::SetModel) {
            return Ok(());
        }
        let refused = |error: RpcError| Broken::Handshake(format!("model `{model}` was refused: {}", error.detail()));
        // An agent that accepts the model may still use another one; the translation reports that.
        let (method, params) = match models::option_for(opened, &model).and_then(|option| option.get("id")) {
            Some(option) if via == ModelVia::ConfigOption => {
                let params = json!({"sessionId": self.session_id, "configId": option, "value": model});
                ("session/set_config_option", params)
            }
            _ => ("session/set_model", json!({"sessionId": self.session_id, "modelId": model})),
        };
        self.ask(method, &params, Some(self.start())).await?.map_err(refused)?;
        Ok(())
    }
}

fn refused(method: &str, error: &RpcError) -> Broken {
    Broken::Handshake(format!("{method} was refused: {}", error.detail()))
}

/// Returns true if the agent has a capability: an object, which may be empty, or `true`.
fn is_offered(capability: Option<&Value>) -> bool {
    capability.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
}

/// Returns the case's MCP servers in the protocol's form, in which environment variables and headers are lists of
/// names and values.
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
