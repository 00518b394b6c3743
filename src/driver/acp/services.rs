//! The client's services for an agent: files of the workspace, terminals in it, and answers to questions.
//!
//! This module only parses requests and decides the answers; the session and the workspace carry them out.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Client;
use crate::adapter::acp::modes::mode_in;
use crate::adapter::acp::questions;
use crate::adapter::acp::rpc;
use crate::interaction::{Answer, Decision, Form};
use crate::process::find;
use crate::session::terminals::{Screen, TerminalCommand};
use crate::trace::{Exit, NoticeCode};
use crate::wire::EngineLine;
use crate::workspace::agent_fs::{self, AgentFsError};

/// Error codes of JSON-RPC and of ACP.
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const REQUEST_CANCELLED: i64 = -32800;
const NOT_FOUND: i64 = -32002;

/// The maximum number of requests that wait for the end of a command. Further ones are refused.
const MAX_WAITING_REQUESTS: usize = 10_000;

/// The reason why a request is refused.
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

fn refusal(code: i64, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into() }
}

/// A request that is answered when the command of a terminal has ended.
pub(super) struct Waiting {
    id: Value,
    terminal: String,
    what: Wait,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Exit,
    Kill,
    Release,
}

impl Client<'_> {
    /// Serves a request of the agent. Returns `None` if the request is answered later.
    pub(super) async fn serves(&mut self, id: &Value, method: &str, params: &Value) -> Option<Result<Value, Refusal>> {
        let offers = self.task.manifest.capabilities;
        let (service, action) = method.split_once('/').unwrap_or_default();
        let offered = match service {
            "fs" => offers.fs,
            "terminal" => offers.terminal,
            "elicitation" => offers.elicitation,
            _ => Some(false),
        };
        if offered == Some(false) {
            // Even an unsupported request is answered: the agent might wait for the answer forever.
            return Some(Err(refusal(METHOD_NOT_FOUND, format!("method not found: {method}"))));
        }
        if method == questions::METHOD {
            return Some(Ok(self.answer_question(id, params)));
        }
        if self.is_foreign(params) {
            return Some(Err(refusal(INVALID_PARAMS, "there is no such session")));
        }
        if self.session.is_over() && !self.works_on() && matches!(action, "write_text_file" | "create") {
            let text = format!("{method} was requested after the turn was over");
            self.session.engine(&EngineLine::Notice { code: NoticeCode::LateRequest, text });
            return Some(Err(refusal(REQUEST_CANCELLED, "the turn is over")));
        }
        match action {
            "read_text_file" | "write_text_file" if service == "fs" => Some(self.file(method, params).await),
            "create" if service == "terminal" => Some(self.create(method, params).await),
            "output" if service == "terminal" => Some(self.screen(params).map(|(terminal, screen)| {
                if screen.exit.is_some() {
                    self.session.tell_terminal(&terminal);
                }
                output(screen)
            })),
            "wait_for_exit" if service == "terminal" => self.until_ended(id, params, Wait::Exit),
            "kill" if service == "terminal" => self.until_ended(id, params, Wait::Kill),
            "release" if service == "terminal" => self.until_ended(id, params, Wait::Release),
            _ => Some(Err(refusal(METHOD_NOT_FOUND, format!("method not found: {method}")))),
        }
    }

    /// Handles a notification of the agent: a cancelled request, or a new mode.
    pub(super) async fn take_notification(&mut self, method: &str, params: &Value) {
        match method {
            "$/cancel_request" => {
                let key = params.get("requestId").map(rpc::key);
                let cancelled = self.waiting.iter().position(|it| Some(rpc::key(&it.id)) == key);
                if let Some(Waiting { id, .. }) = cancelled.map(|at| self.waiting.remove(at)) {
                    self.session.reply(&rpc::error(&id, REQUEST_CANCELLED, "the request was cancelled")).await;
                }
            }
            "session/update" if !self.is_foreign(params) => {
                let update = params.get("update").unwrap_or(&Value::Null);
                if let Some(mode) = mode_in(update) {
                    self.mode = Some(mode.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Answers the requests that wait for the end of the command in this terminal.
    pub(super) async fn terminal_ended(&mut self, terminal: &str) {
        let (ended, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|it| it.terminal == terminal);
        self.waiting = waiting;
        let ended: Vec<Waiting> = ended;
        // Read before a request releases the terminal, because other requests may still wait for the exit.
        let exit = self.session.terminal(terminal).and_then(|screen| screen.exit);
        for Waiting { id, what, .. } in ended {
            let result = match what {
                Wait::Exit => exit_status(exit),
                Wait::Kill => json!({}),
                Wait::Release => {
                    self.session.release_terminal(terminal);
                    json!({})
                }
            };
            self.session.reply(&rpc::result(&id, &result)).await;
        }
    }

    /// Refuses all waiting requests because the turn is cancelled: the events that they wait for may never come.
    pub(super) async fn nobody_waits(&mut self) {
        for Waiting { id, .. } in std::mem::take(&mut self.waiting) {
            self.session.reply(&rpc::error(&id, REQUEST_CANCELLED, "the turn was cancelled")).await;
        }
    }

    /// Reads or writes a file on another thread, so that a slow disk does not delay other trials.
    async fn file(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let path = PathBuf::from(text(params, "path")?);
        let (workspace, asked) = (self.task.folder.clone(), path.clone());
        let done = if method == "fs/read_text_file" {
            let (line, limit) = (count(params, "line")?, count(params, "limit")?);
            let read = move || agent_fs::read(&workspace, &asked, line, limit).map(|text| json!({"content": text}));
            tokio::task::spawn_blocking(read).await
        } else {
            let content = text(params, "content")?.to_owned();
            let write = move || agent_fs::write(&workspace, &asked, &content).map(|()| json!({}));
            tokio::task::spawn_blocking(write).await
        };
        match done {
            Ok(done) => done.map_err(|error| self.unreached(method, &path, &error)),
            Err(error) => Err(refusal(INTERNAL, error.to_string())),
        }
    }

    /// Returns the refusal of a path. A path outside the workspace is reported.
    fn unreached(&mut self, method: &str, path: &Path, error: &AgentFsError) -> Refusal {
        let message = format!("{}: {error}", path.display());
        let code = match error {
            AgentFsError::Escapes => {
                let text = format!("{method} was refused: `{}` is outside the workspace", path.display());
                self.session.engine(&EngineLine::Notice { code: NoticeCode::PathEscape, text });
                INVALID_PARAMS
            }
            AgentFsError::Absent => NOT_FOUND,
            AgentFsError::IsNo(_) | AgentFsError::NotText | AgentFsError::TooLong => INVALID_PARAMS,
            AgentFsError::Io(_) => INTERNAL,
        };
        refusal(code, message)
    }

    async fn create(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let folder = match params.get("cwd").filter(|cwd| !cwd.is_null()) {
            Some(_) => {
                let cwd = Path::new(text(params, "cwd")?);
                let found = agent_fs::folder(&self.task.folder, cwd);
                Some(found.map_err(|error| self.unreached(method, cwd, &error))?)
            }
            None => None,
        };
        let shell = &self.task.terminals;
        let path = shell.env.get("PATH").map(String::as_str);
        let command = command(params, folder.as_deref().unwrap_or(&shell.folder), path)?;
        let (env, keep) = (variables(params)?, count(params, "outputByteLimit")?);
        let wanted = TerminalCommand { command, folder: folder.as_deref(), env, keep };
        let opened = self.session.open_terminal(shell, wanted).await;
        opened.map(|id| json!({"terminalId": id})).map_err(|error| refusal(INTERNAL, error.message))
    }

    /// Returns the id and the content of the terminal that a request names.
    fn screen(&self, params: &Value) -> Result<(String, Screen), Refusal> {
        let id = text(params, "terminalId")?;
        let screen = self.session.terminal(id);
        let screen = screen.ok_or_else(|| refusal(NOT_FOUND, format!("there is no terminal `{id}`")))?;
        Ok((id.to_owned(), screen))
    }

    /// Answers a request when the command in its terminal has ended: now if it already has, else later.
    fn until_ended(&mut self, id: &Value, params: &Value, what: Wait) -> Option<Result<Value, Refusal>> {
        let (terminal, screen) = match self.screen(params) {
            Ok(found) => found,
            Err(refusal) => return Some(Err(refusal)),
        };
        if what != Wait::Exit {
            self.session.kill_terminal(&terminal);
        }
        if screen.exit.is_some() {
            // The agent may end its call next, which gets the output that is in the log then.
            self.session.tell_terminal(&terminal);
            if what == Wait::Release {
                self.session.release_terminal(&terminal);
            }
            return Some(Ok(if what == Wait::Exit { exit_status(screen.exit) } else { json!({}) }));
        }
        if self.waiting.len() >= MAX_WAITING_REQUESTS {
            return Some(Err(refusal(INTERNAL, format!("{MAX_WAITING_REQUESTS} requests are already waiting"))));
        }
        self.waiting.push(Waiting { id: id.clone(), terminal, what });
        None
    }

    /// Answers a question of the agent from the case's answers.
    fn answer_question(&mut self, id: &Value, params: &Value) -> Value {
        let mode = params.get("mode").and_then(Value::as_str).unwrap_or("form");
        let (content, decision) = if self.is_foreign(params) {
            (None, Decision::of_engine("the question is for another session"))
        } else if self.session.is_late() && !self.works_on() {
            (None, Decision::of_engine("the question came after the turn was over"))
        } else if mode != "form" {
            let reason = "only questions in a form are answered";
            (None, Decision { answer: Answer::RejectOnce, ..Decision::of_engine(reason) })
        } else {
            self.task.policy.answer_form(&Form::read(params))
        };
        self.session.decided(id, &decision);
        match (content, decision.answer) {
            (Some(content), _) => json!({"action": "accept", "content": content}),
            (None, Answer::Cancel) => json!({"action": "cancel"}),
            (None, _) => json!({"action": "decline"}),
        }
    }
}

/// Returns the program and its arguments. Many agents send a whole shell line as the command, without arguments; such
/// a line is run by `sh -c`.
fn command(params: &Value, folder: &Path, path: Option<&str>) -> Result<Vec<String>, Refusal> {
    let program = text(params, "command")?.to_owned();
    if program.trim().is_empty() {
        return Err(refusal(INVALID_PARAMS, "`command` is empty"));
    }
    let mut words = vec![program];
    for arg in list(params, "args")? {
        let arg =
            arg.as_str().ok_or_else(|| refusal(INVALID_PARAMS, "`args` contains a value that is not a string"))?;
        words.push(arg.to_owned());
    }
    let is_line = |program: &str| program.contains(|c: char| c.is_whitespace() || "|&;<>()$`*?~=".contains(c));
    match words.as_slice() {
        [line] if is_line(line) && find(line, folder, path).is_none() => {
            Ok(vec!["sh".to_owned(), "-c".to_owned(), line.clone()])
        }
        _ => Ok(words),
    }
}

fn variables(params: &Value) -> Result<Vec<(String, String)>, Refusal> {
    let wrong = || refusal(INVALID_PARAMS, "`env` is not a list of names and values");
    // A variable name that begins with a dash would be read as an option by `env`.
    let is_name = |name: &&str| !name.is_empty() && !name.starts_with('-') && !name.contains(['=', '\0']);
    let pair = |variable: &Value| {
        let name = variable.get("name")?.as_str().filter(is_name)?;
        Some((name.to_owned(), variable.get("value")?.as_str()?.to_owned()))
    };
    list(params, "env")?.iter().map(|variable| pair(variable).ok_or_else(wrong)).collect()
}

fn list<'a>(params: &'a Value, key: &str) -> Result<&'a [Value], Refusal> {
    match params.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(refusal(INVALID_PARAMS, format!("`{key}` is not a list"))),
    }
}

fn text<'a>(params: &'a Value, key: &str) -> Result<&'a str, Refusal> {
    let text = params.get(key).and_then(Value::as_str);
    text.ok_or_else(|| refusal(INVALID_PARAMS, format!("`{key}` is missing or not a string")))
}

fn count(params: &Value, key: &str) -> Result<Option<u64>, Refusal> {
    match params.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let whole = value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
            let number = value.as_u64().or(whole.map(|number| number as u64));
            number.map(Some).ok_or_else(|| refusal(INVALID_PARAMS, format!("`{key}` is not a whole number from 0")))
        }
    }
}

fn output(screen: Screen) -> Value {
    let mut answer = json!({"output": screen.output, "truncated": screen.truncated});
    if screen.exit.is_some() {
        answer["exitStatus"] = exit_status(screen.exit);
    }
    answer
}

fn exit_status(exit: Option<Exit>) -> Value {
    let exit = exit.unwrap_or(Exit { code: None, signal: None });
    json!({"exitCode": exit.code, "signal": exit.signal.map(signal_name)})
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}
