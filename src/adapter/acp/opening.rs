//! Opens an agent's session: initialize, new or loaded, its model and its mode.

use std::time::Duration;

use serde_json::{Value, json};

use super::drive::{Client, EXIT};
use super::models;
use super::rpc::RpcError;
use crate::adapter::drive::Broken;
use crate::case::BetweenTurns;
use crate::harness::ModelVia;
use crate::process::Stdin;
use crate::session::Incoming;

impl Client<'_> {
    fn start(&self) -> Duration {
        self.task.manifest.timeouts.start.0
    }

    /// The agent's answer to `initialize`. What the case needs and the agent does not offer is found out here.
    pub(super) async fn initialize(&mut self) -> Result<(), Broken> {
        let answer = self.ask("initialize", &self.hello(), Some(self.start())).await?;
        let mut answer = answer.map_err(|error| refused("initialize", &error))?;
        if answer.get("protocolVersion").and_then(Value::as_f64) != Some(1.0) {
            let version = answer.get("protocolVersion").cloned().unwrap_or(Value::Null);
            return Err(Broken::Handshake(format!("the agent speaks protocol version {version}, and not 1")));
        }
        self.can = answer.get_mut("agentCapabilities").map(Value::take).unwrap_or_default();
        let lacks = |word: &str, method: &str, key: &str| {
            let why = format!("the case says `between-turns: {word}`, and the agent offers no {method} (`{key}`)");
            Err(Broken::Handshake(why))
        };
        if let Some((name, by)) = self.not_taken() {
            let why = format!(
                "the case offers the MCP server `{name}` over {by}, and the agent takes none (`agentCapabilities.mcpCapabilities.{by}`)"
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

    /// An MCP server of the case that the agent does not say it takes, and by what it is reached.
    fn not_taken(&self) -> Option<(String, &'static str)> {
        self.task.mcp_servers.iter().find_map(|server| {
            let by = ["http", "sse"].into_iter().find(|by| server.get("type").and_then(Value::as_str) == Some(by))?;
            let takes = self.can.pointer(&format!("/mcpCapabilities/{by}")).and_then(Value::as_bool) == Some(true);
            let name = server.get("name").and_then(Value::as_str).unwrap_or_default();
            (!takes).then(|| (name.to_owned(), by))
        })
    }

    /// How the session goes on in another process, where a turn needs one.
    fn goes_on_by(&self) -> Option<BetweenTurns> {
        self.task.session.between_turns.filter(|by| *by != BetweenTurns::Keep && self.task.turns.len() > 1)
    }

    /// Makes a new session, on its model and in its mode.
    pub(super) async fn open(&mut self) -> Result<(), Broken> {
        let new = self.session_params();
        let answer = self.ask("session/new", &new, Some(self.start())).await?;
        let answer = answer.map_err(|error| refused("session/new", &error))?;
        let Some(id) = answer.get("sessionId").filter(|id| !id.is_null()) else {
            return Err(Broken::Handshake("session/new was answered without a sessionId".to_owned()));
        };
        self.session_id = Some(id.clone());
        self.set_up(&answer).await?;
        self.opened = answer;
        Ok(())
    }

    /// What a session is opened with, be it new or one that goes on.
    fn session_params(&self) -> Value {
        let mut params = json!({"cwd": self.task.folder, "mcpServers": mcp_servers(&self.task.mcp_servers)});
        if let Some(system) = &self.task.system_prompt {
            params["_meta"] = json!({"systemPrompt": {"append": system}});
        }
        params
    }

    /// Where the case wants it, ends the agent's process and goes on with the session in another one.
    pub(super) async fn between_turns(&mut self) -> Result<(), Broken> {
        let method = match self.goes_on_by() {
            Some(BetweenTurns::Load) => "session/load",
            Some(BetweenTurns::Resume) => "session/resume",
            Some(BetweenTurns::Keep) | None => return Ok(()),
        };
        self.drain().await;
        self.session.close_stdin();
        self.session.end_for_another(EXIT).await;
        self.waiting.clear();
        self.mode = None;
        if matches!(self.session.next(Some(Duration::ZERO)).await, Incoming::End(_)) {
            return Err(Broken::Ended);
        }
        let task = &*self.task;
        if self.session.spawn(&task.command, &task.folder, &task.env, Stdin::Piped).is_err() {
            return Err(Broken::Gone);
        }
        self.initialize().await?;
        let mut params = self.session_params();
        params["sessionId"] = self.session_id.clone().unwrap_or(Value::Null);
        let answer = self.ask(method, &params, Some(self.start())).await?;
        let answer = answer.map_err(|error| refused(method, &error))?;
        // What an agent does not say again holds as it was.
        let says = ["modes", "configOptions"].iter().any(|key| answer.get(key).is_some_and(|value| !value.is_null()));
        let opened = if says { answer } else { self.opened.clone() };
        self.set_up(&opened).await
    }

    async fn set_up(&mut self, opened: &Value) -> Result<(), Broken> {
        self.choose_model(opened).await?;
        self.choose_mode(opened).await
    }

    /// Asks for the model the way the manifest says. A model that cannot be set must not be run under its name.
    async fn choose_model(&mut self, opened: &Value) -> Result<(), Broken> {
        let Some(model) = self.task.model.clone() else { return Ok(()) };
        let via = self.task.manifest.model.via;
        if !matches!(via, ModelVia::ConfigOption | ModelVia::SetModel) {
            return Ok(());
        }
        let refused = |error: RpcError| Broken::Handshake(format!("model `{model}` was refused: {}", error.detail()));
        // Whether the agent means what it answers the translation tells.
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

    /// Puts the session into the case's mode. In another one it would be another case.
    async fn choose_mode(&mut self, opened: &Value) -> Result<(), Broken> {
        let Some(mode) = self.task.session.mode.clone() else { return Ok(()) };
        let wrong = |why: String| Broken::Handshake(format!("mode `{mode}` {why}"));
        let refused = |error: RpcError| wrong(format!("was refused: {}", error.detail()));
        let start = Some(self.start());
        self.mode = None;
        let (wanted, told) = if let Some(option) = option_of(opened, "mode") {
            let wanted = named(option.get("options"), "value", &mode).unwrap_or_else(|| mode.clone());
            let params = json!({"sessionId": self.session_id, "configId": option.get("id"), "value": wanted});
            let answer = self.ask("session/set_config_option", &params, start).await?.map_err(refused)?;
            (wanted, option_of(&answer, "mode").and_then(current).map(str::to_owned))
        } else {
            let modes = opened.pointer("/modes/availableModes").filter(|modes| modes.is_array());
            let Some(modes) = modes else {
                return Err(wrong("cannot be set: the agent offers no modes".to_owned()));
            };
            let Some(wanted) = named(Some(modes), "id", &mode) else {
                let ids: Vec<&str> =
                    modes.as_array().into_iter().flatten().filter_map(|it| it.get("id")?.as_str()).collect();
                return Err(wrong(format!("is not one of the agent's: {}", ids.join(", "))));
            };
            let params = json!({"sessionId": self.session_id, "modeId": wanted});
            self.ask("session/set_mode", &params, start).await?.map_err(refused)?;
            (wanted, None)
        };
        match told.or_else(|| self.mode.take()).filter(|now| *now != wanted) {
            Some(now) => Err(wrong(format!("was asked for and accepted, and the agent says it is in `{now}`"))),
            None => Ok(()),
        }
    }
}

/// The id of an entry in a list, or in its groups: the entry with this id, else the first of this name.
fn named(list: Option<&Value>, key: &str, name: &str) -> Option<String> {
    let entries: Vec<&Value> = list?
        .as_array()?
        .iter()
        .flat_map(|entry| match entry.get("options").and_then(Value::as_array) {
            Some(group) => group.iter().collect(),
            None => vec![entry],
        })
        .collect();
    let by = |by: &str| entries.iter().find(|entry| entry.get(by).and_then(Value::as_str) == Some(name));
    by(key).or_else(|| by("name"))?.get(key)?.as_str().map(str::to_owned)
}

fn refused(method: &str, error: &RpcError) -> Broken {
    Broken::Handshake(format!("{method} was refused: {}", error.detail()))
}

/// A capability that is an object, which may be empty, or `true`.
fn is_offered(capability: Option<&Value>) -> bool {
    capability.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
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

/// The config option of a category; one without a category goes by its id.
fn option_of<'a>(answer: &'a Value, category: &str) -> Option<&'a Value> {
    let options = answer.get("configOptions")?.as_array()?;
    let by = |key: &str| options.iter().find(|option| option.get(key).and_then(Value::as_str) == Some(category));
    by("category").or_else(|| by("id"))
}

fn current(option: &Value) -> Option<&str> {
    option.get("currentValue")?.as_str()
}
