//! An agent made with the protocol's own Rust SDK. Each prompt is a script in JSON: what to tell, what to ask of the
//! client and how to wait for the answer. What it was answered it writes to its standard error, a line for each.
#![allow(clippy::print_stderr, reason = "its account of what it was answered")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, CreateElicitationRequest, CreateTerminalRequest, InitializeRequest,
    InitializeResponse, KillTerminalRequest, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse,
    ReadTextFileRequest, ReleaseTerminalRequest, RequestPermissionRequest, SessionNotification, StopReason,
    TerminalOutputRequest, WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::{
    Agent, Client, Error, JsonRpcRequest, JsonRpcResponse, Result, Stdio, UntypedMessage, on_receive_notification,
    on_receive_request,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

/// One thing to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Step {
    /// Tells an update of the session.
    Update(Value),
    /// Asks the client. `$CWD` in a text is the workspace, `$TERMINAL n` the terminal that the n-th question made.
    Ask { method: String, params: Value, wait: Wait },
    /// Waits this many milliseconds.
    Sleep(u64),
    /// From here on a cancel is not obeyed.
    Deaf(bool),
    /// Answers the prompt. What follows comes after the end.
    End(StopReason),
}

/// How an answer is waited for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Wait {
    /// Nothing else is done before it.
    Now,
    /// While the script goes on.
    Later,
    /// Not at all.
    Never,
    /// It is given up at once (`$/cancel_request`).
    GiveUp,
}

/// What the agent knows of its one session.
#[derive(Clone)]
struct Session {
    cwd: Arc<Mutex<String>>,
    /// How many questions were asked, and the terminals that they made.
    asked: Arc<Mutex<(usize, BTreeMap<usize, String>)>>,
    /// How many cancels were heard.
    cancels: watch::Sender<u64>,
}

const SESSION: &str = "the-session";

#[tokio::main]
async fn main() -> Result<()> {
    let session = Session { cwd: Arc::default(), asked: Arc::default(), cancels: watch::Sender::new(0) };
    let (opened, prompted, cancelled) = (session.clone(), session.clone(), session);
    Agent
        .v1()
        .name("sdk-agent")
        .on_receive_request(
            async move |asked: InitializeRequest, responder, _connection| {
                responder.respond(InitializeResponse::new(asked.protocol_version))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: NewSessionRequest, responder, _connection| {
                *lock(&opened.cwd) = asked.cwd.display().to_string();
                responder.respond(NewSessionResponse::new(SESSION))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let script = script_of(&asked)?;
                let (session, inner) = (prompted.clone(), connection.clone());
                connection.spawn(async move {
                    let mut responder = Some(responder);
                    let mut cancels = session.cancels.subscribe();
                    cancels.mark_unchanged();
                    let mut deaf = false;
                    for step in script {
                        if let Step::Deaf(is) = step {
                            deaf = is;
                            continue;
                        }
                        if let Step::End(reason) = step {
                            if let Some(responder) = responder.take() {
                                responder.respond(PromptResponse::new(reason))?;
                            }
                            continue;
                        }
                        let hears = !deaf && responder.is_some();
                        tokio::select! {
                            biased;
                            _ = cancels.changed(), if hears => {
                                if let Some(responder) = responder.take() {
                                    responder.respond(PromptResponse::new(StopReason::Cancelled))?;
                                }
                                return Ok(());
                            }
                            done = do_step(&inner, &session, step) => done?,
                        }
                    }
                    if let Some(responder) = responder.take() {
                        // A script without an end never answers; only a cancel ends it.
                        if deaf {
                            std::future::pending::<()>().await;
                        }
                        let _ = cancels.changed().await;
                        responder.respond(PromptResponse::new(StopReason::Cancelled))?;
                    }
                    Ok(())
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |_cancel: CancelNotification, _connection| {
                cancelled.cancels.send_modify(|count| *count += 1);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(Stdio::new())
        .await
}

async fn do_step(connection: &ConnectionTo<Client>, session: &Session, step: Step) -> Result<()> {
    match step {
        Step::Update(update) => {
            let told: SessionNotification = typed(json!({"sessionId": SESSION, "update": update}))?;
            connection.send_notification(told)
        }
        Step::Sleep(milliseconds) => {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            Ok(())
        }
        Step::Ask { method, mut params, wait } => {
            session.fill_in(&mut params);
            if let Some(params) = params.as_object_mut() {
                params.entry("sessionId").or_insert_with(|| json!(SESSION));
            }
            let number = session.next_number();
            let asking = Asking { connection, session, method: &method, number, wait };
            match method.as_str() {
                "session/request_permission" => asking.ask::<RequestPermissionRequest>(params).await,
                "fs/read_text_file" => asking.ask::<ReadTextFileRequest>(params).await,
                "fs/write_text_file" => asking.ask::<WriteTextFileRequest>(params).await,
                "terminal/create" => asking.ask::<CreateTerminalRequest>(params).await,
                "terminal/output" => asking.ask::<TerminalOutputRequest>(params).await,
                "terminal/wait_for_exit" => asking.ask::<WaitForTerminalExitRequest>(params).await,
                "terminal/kill" => asking.ask::<KillTerminalRequest>(params).await,
                "terminal/release" => asking.ask::<ReleaseTerminalRequest>(params).await,
                "elicitation/create" => asking.ask::<CreateElicitationRequest>(params).await,
                _ => asking.send(UntypedMessage::new(&method, params)?).await,
            }
        }
        Step::Deaf(_) | Step::End(_) => Ok(()),
    }
}

/// A question on its way.
struct Asking<'a> {
    connection: &'a ConnectionTo<Client>,
    session: &'a Session,
    method: &'a str,
    number: usize,
    wait: Wait,
}

impl Asking<'_> {
    /// Asks in the SDK's own type, so that the answer must be one that the SDK reads.
    async fn ask<R: JsonRpcRequest + DeserializeOwned>(self, params: Value) -> Result<()> {
        self.send(typed::<R>(params)?).await
    }

    async fn send<R: JsonRpcRequest>(self, request: R) -> Result<()> {
        let sent = self.connection.send_request(request);
        let (number, method, session) = (self.number, self.method.to_owned(), self.session.clone());
        match self.wait {
            Wait::Now => session.tell(number, &method, sent.block_task().await),
            Wait::Later => {
                return self.connection.spawn(async move {
                    session.tell(number, &method, sent.block_task().await);
                    Ok(())
                });
            }
            Wait::Never => sent.detach(),
            Wait::GiveUp => drop(sent),
        }
        Ok(())
    }
}

impl Session {
    fn next_number(&self) -> usize {
        let mut asked = lock(&self.asked);
        asked.0 += 1;
        asked.0 - 1
    }

    /// Writes down what was answered.
    fn tell<T: JsonRpcResponse>(&self, number: usize, method: &str, answer: Result<T>) {
        let told = match answer.and_then(|answer| answer.into_json(method)) {
            Ok(answer) => {
                if let Some(terminal) = answer.get("terminalId").and_then(Value::as_str) {
                    lock(&self.asked).1.insert(number, terminal.to_owned());
                }
                json!({"asked": number, "method": method, "answer": answer})
            }
            Err(error) => json!({"asked": number, "method": method, "error": i32::from(error.code)}),
        };
        eprintln!("{told}");
    }

    /// Puts the workspace and terminals in their places.
    fn fill_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(number) = text.strip_prefix("$TERMINAL ") {
                    let made = number.parse().ok().and_then(|number: usize| lock(&self.asked).1.get(&number).cloned());
                    *text = made.unwrap_or_else(|| "no-terminal".to_owned());
                } else {
                    *text = text.replace("$CWD", &lock(&self.cwd));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_in(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.fill_in(item)),
            _ => {}
        }
    }
}

fn script_of(prompt: &PromptRequest) -> Result<Vec<Step>> {
    let Some(ContentBlock::Text(text)) = prompt.prompt.first() else { return Err(Error::invalid_params()) };
    serde_json::from_str(&text.text).map_err(|error| Error::invalid_params().data(error.to_string()))
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::internal_error().data(error.to_string()))
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
