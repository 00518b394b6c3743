//! Drives an ACP agent: prompts, permission requests, cancel. The session logs and translates the lines; this
//! module only decides what to send next.

use std::time::Duration;

use serde_json::{Value, json};

use crate::adapter::acp::background::Background;
use crate::adapter::acp::conventions::Conventions;
use crate::adapter::acp::permissions::options;
use crate::adapter::acp::rpc::{self, Message, RpcError};
use crate::adapter::acp::{blocks, calls};
use crate::driver::requested::request_about;
use crate::driver::{Broken, DRAIN, Task, end_unattended};
use crate::engine_clock;
use crate::interaction::{Answer, Decision, Request};
use crate::process::Stdin;
use crate::session::{End, Incoming, Meanwhile, Session, Turn};
use crate::trace::NoticeCode;
use crate::wire::EngineLine;

mod modes;
mod opening;
mod services;

use services::{Refusal, Waiting};

/// The method by which an agent withdraws one of its requests.
const CANCEL_REQUEST: &str = "$/cancel_request";

/// The time that an agent has to exit after its standard input is closed.
pub(super) const EXIT: Duration = Duration::from_secs(2);

/// Drives the session to its end. Returns how long to wait for the process to exit by itself.
pub async fn drive(session: &mut Session, task: &mut Task) -> Duration {
    if session.spawn(&task.command, &task.folder, &task.env, Stdin::Piped).await.is_err() {
        return Duration::ZERO;
    }
    let mut client = Client {
        session,
        task,
        next_id: 0,
        asked_at: 0,
        session_id: None,
        can: Value::Null,
        login_methods: Vec::new(),
        opened: Value::Null,
        mode: None,
        waiting: Vec::new(),
        background: Background::default(),
    };
    match client.converse().await {
        Ok(()) => {
            client.session.answered();
            client.rest().await;
            client.drain().await;
            client.session.close_stdin();
            EXIT
        }
        Err(broken) => {
            if end_unattended(client.session, client.task, &broken) && !client.session.is_prompting() {
                client.session.close_stdin();
                return EXIT;
            }
            if matches!(broken, Broken::Refused) {
                client.session.answered();
                client.drain().await;
            }
            if let Some(patience) = broken.leave(client.session) {
                return patience;
            }
            let grace = client.task.manifest.timeouts.grace.0;
            if client.cancel(grace).await {
                // Requests that the agent makes after its answer are answered, too: the agent may wait for them.
                client.drain().await;
                client.session.close_stdin();
                return EXIT.min(grace);
            }
            Duration::ZERO
        }
    }
}

/// The client of one agent.
pub(super) struct Client<'a> {
    pub(super) session: &'a mut Session,
    pub(super) task: &'a mut Task,
    next_id: u64,
    /// The number of the client's last request in the wire log. A line before it cannot be the answer.
    asked_at: u64,
    pub(super) session_id: Option<Value>,
    /// The agent's `agentCapabilities`.
    pub(super) can: Value,
    /// The ids of the agent's `authMethods`.
    pub(super) login_methods: Vec<String>,
    /// The answer to the request that opened the session.
    pub(super) opened: Value,
    /// The last mode that the agent reported.
    pub(super) mode: Option<String>,
    /// Requests that are answered when a terminal's command has ended.
    waiting: Vec<Waiting>,
    /// The agent's work beside the prompts' turns.
    background: Background,
}

impl Client<'_> {
    async fn converse(&mut self) -> Result<(), Broken> {
        self.initialize().await?;
        self.open().await?;
        for turn in Turn::all(&self.task.turns) {
            let mut prompt = vec![json!({"type": "text", "text": turn.prompt})];
            if turn.number == 1 {
                prompt.extend(blocks::of(&self.task.attachments, &self.can));
            } else {
                if self.session.ends_before_turn() {
                    break;
                }
                if !self.between_turns().await? {
                    break;
                }
            }
            let params = json!({"sessionId": self.session_id, "prompt": prompt});
            // The agent may have changed its mode since the session was opened.
            self.check_mode()?;
            self.session.begin_turn(turn);
            let answer = self.ask("session/prompt", &params, None).await?;
            self.session.end_turn();
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

    /// Returns the parameters of `initialize`. They announce exactly the capabilities that this client implements.
    pub(super) fn hello(&self) -> Value {
        let offers = self.task.manifest.capabilities;
        let served = |offer: Option<bool>| offer.unwrap_or(true);
        let mut capabilities = json!({
            "fs": {"readTextFile": served(offers.fs), "writeTextFile": served(offers.fs)},
            "terminal": served(offers.terminal),
            "auth": {"terminal": false},
        });
        if served(offers.elicitation) {
            capabilities["elicitation"] = json!({"form": {}});
        }
        json!({
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "evals", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    /// Sends a request, and serves the agent until the agent has answered it.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: &Value,
        within: Option<Duration>,
    ) -> Result<Result<Value, RpcError>, Broken> {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.session.send(&rpc::request(&id, method, params)).await;
        self.asked_at = self.session.last_sent();
        let deadline = within.map(|within| engine_clock::now() + within);
        loop {
            let remaining = deadline.map(|deadline| deadline.saturating_duration_since(engine_clock::now()));
            match self.hear(remaining).await {
                Incoming::Line(line) => {
                    if let Some(outcome) = self.serve(&line, &id).await {
                        return Ok(outcome);
                    }
                    if self.session.is_prompting() {
                        self.check_mode()?;
                    }
                }
                Incoming::Closed => return Err(Broken::Gone),
                Incoming::Late => {
                    let seconds = within.unwrap_or_default().as_secs_f64();
                    return Err(Broken::Handshake(format!("{method} was not answered within {seconds} s")));
                }
                Incoming::End(End::Limit) if !self.session.is_prompting() => {
                    return Err(Broken::Handshake(format!("{method} was not answered before a limit was reached")));
                }
                Incoming::End(_) => return Err(Broken::Ended),
                Incoming::Terminal(_) => {}
            }
        }
    }

    /// Waits for the next event of the session. Meanwhile, requests that wait for the end of a terminal's command are
    /// answered.
    async fn hear(&mut self, within: Option<Duration>) -> Incoming {
        let until = within.map(|within| engine_clock::now() + within);
        loop {
            match self.session.next(until.map(|until| until.saturating_duration_since(engine_clock::now()))).await {
                Incoming::Terminal(id) => self.terminal_ended(&id).await,
                incoming => return incoming,
            }
        }
    }

    /// Takes a line from the agent and answers the requests in it. Returns the outcome of the request `awaited` if
    /// the line answers it.
    async fn serve(&mut self, line: &str, awaited: &Value) -> Option<Result<Value, RpcError>> {
        let mut outcome = None;
        let may_answer = self.session.last_received() > self.asked_at;
        for message in rpc::parse(line) {
            match message {
                Message::Response { id, outcome: response } if may_answer && rpc::key(&id) == rpc::key(awaited) => {
                    outcome.get_or_insert(response);
                }
                Message::Request { id, method, params } => {
                    self.look_at_background(&method, &params);
                    self.answer(&id, &method, &params).await;
                }
                Message::Notification { method, params } => {
                    self.look_at_background(&method, &params);
                    self.take_notification(&method, &params).await;
                }
                Message::Response { .. } | Message::NotRpc { .. } => {}
            }
        }
        outcome
    }

    /// Notes what a message of the agent says about its work in the background.
    fn look_at_background(&mut self, method: &str, params: &Value) {
        if !self.is_foreign(params) {
            self.background.observe(method, params);
        }
    }

    async fn answer(&mut self, id: &Value, method: &str, params: &Value) {
        if method == "session/request_permission" {
            return self.answer_permission(id, params).await;
        }
        match self.serves(id, method, params).await {
            Some(Ok(result)) => self.session.reply(&rpc::result(id, &result)).await,
            Some(Err(Refusal { code, message })) => self.session.reply(&rpc::error(id, code, &message)).await,
            None => {}
        }
    }

    /// Returns true if work goes on in the background for which the engine waits: what the agent asks for is served as in a turn.
    pub(super) fn works_on(&self) -> bool {
        self.background.goes_on() && !self.session.is_cancelled()
    }

    /// Returns true if this client has a session and the parameters name another one. What names no session is of this one, as in
    /// the translation.
    pub(super) fn is_foreign(&self, params: &Value) -> bool {
        let named = params.get("sessionId").filter(|id| !id.is_null());
        self.session_id.is_some() && named.is_some_and(|id| Some(id) != self.session_id.as_ref())
    }

    async fn answer_permission(&mut self, id: &Value, params: &Value) {
        let decision = self.decide(id, params).await;
        self.session.decided(id, &decision);
        // The id must be sent exactly as it was received, which may be a string or a number.
        let offered = params.get("options").and_then(Value::as_array);
        let mut ids = offered.into_iter().flatten().filter_map(|option| option.get("optionId"));
        let outcome = match decision.option.and_then(|option| ids.find(|id| rpc::id_text(id) == option)) {
            Some(option) => json!({"outcome": "selected", "optionId": option}),
            None => json!({"outcome": "cancelled"}),
        };
        self.session.reply(&rpc::result(id, &json!({"outcome": outcome}))).await;
    }

    /// Decides a permission request. A request is never approved if it does not belong to this turn of this session, or is
    /// about a call that the agent never described.
    async fn decide(&mut self, id: &Value, params: &Value) -> Decision {
        // The translation has seen the ids with their secrets redacted.
        let call = self.session.masked(params.pointer("/toolCall/toolCallId").unwrap_or(&Value::Null));
        let call = if call.is_null() { String::new() } else { rpc::id_text(&call) };
        let asked = rpc::id_text(&self.session.masked(id));
        if self.is_foreign(params) {
            return self.refused(id, None, "the request is for another session");
        } else if call.is_empty() {
            return self.refused(id, None, "the request names no call");
        }
        let request = self.request(&call, params).filter(|_| {
            // If the call was unknown when the agent asked, a later report of the call does not change that.
            !self.session.recorder().asked_of_an_unknown_call(&asked)
        });
        if !self.session.is_of_turn() && !self.works_on() {
            return self.refused(id, request.as_ref(), "the request came when no prompt was running");
        }
        let Some(request) = request else {
            return self.refused(id, None, "the request is about a call that is unknown or has ended");
        };
        let deciding = self.task.policy.decide(&request);
        let mut decision = match self.session.meanwhile(deciding, |line| is_withdrawn(line, id)).await {
            Meanwhile::Done(decision) => decision,
            Meanwhile::Over => self.task.policy.unanswered(),
            Meanwhile::Withdrawn => {
                let rejects = self.task.policy.would_reject(Some(&request));
                return Decision::of_engine("the agent withdrew its request").rejecting(rejects);
            }
        };
        // A rule that allows the call with a changed input does not allow it with the agent's own input.
        let of_call = |key: &String| request.input.as_ref().and_then(|input| input.get(key));
        let is_changed = decision.updated_input.iter().flatten().any(|(key, value)| of_call(key) != Some(value));
        if is_changed && decision.allows() {
            let text = "a rule allows the call with a changed input, which ACP does not support; the call is rejected";
            decision.answer = Answer::RejectOnce;
            decision = Decision { notice: Some(text.to_owned()), ..decision.choose(&request.options) };
        }
        decision
    }

    /// Cancels a request without asking the policy.
    fn refused(&self, id: &Value, request: Option<&Request>, reason: &str) -> Decision {
        // Other faults of a request are reported by the translation.
        let late = || format!("request {id} came after the turn was cancelled");
        let decision = Decision::of_engine(reason).rejecting(self.task.policy.would_reject(request));
        Decision { notice: self.session.is_cancelled().then(late), ..decision }
    }

    /// Returns the request for the policy, or `None` if no such call is open.
    fn request(&mut self, call: &str, params: &Value) -> Option<Request> {
        let requested = self.session.masked(params.get("toolCall").unwrap_or(&Value::Null));
        let name = self.session.recorder().asked_call(call).and_then(|(call, _)| call.name.clone());
        let report = calls::call_report(&requested, name.as_deref(), &Conventions::of(&self.task.manifest));
        request_about(self.session, call, &report, options(params.get("options")), &self.task.folder)
    }

    /// Serves the agent after its last answer while its sub-agents work in the background, or a turn about the end of one goes on:
    /// within the time limits.
    async fn rest(&mut self) {
        while self.background.goes_on() && !self.session.has_ended() {
            self.session.set_goes_on(true);
            let remaining = self.session.remaining_time();
            if remaining.is_zero() {
                let text = "a time limit was reached while work went on in the background, and the engine ended it";
                self.session.engine(&EngineLine::Notice { code: NoticeCode::BackgroundCut, text: text.to_owned() });
                break;
            }
            match self.hear(Some(remaining)).await {
                Incoming::Line(line) => {
                    self.serve(&line, &Value::Null).await;
                }
                Incoming::Terminal(_) | Incoming::Late => {}
                Incoming::Closed | Incoming::End(_) => break,
            }
        }
        self.session.set_goes_on(false);
        // What still works is not waited for any longer, so its requests are late.
        self.background = Background::default();
    }

    /// Takes late lines until the agent is silent, because late updates are evidence, too.
    pub(super) async fn drain(&mut self) {
        let until = engine_clock::now() + DRAIN.0;
        while engine_clock::now() < until {
            match self.hear(Some(DRAIN.1)).await {
                Incoming::Line(line) => {
                    self.serve(&line, &Value::Null).await;
                }
                Incoming::Terminal(_) => {}
                Incoming::Closed | Incoming::Late | Incoming::End(_) => return,
            }
        }
    }

    /// Cancels the running prompt and waits for the agent's response. Returns true if the agent responded.
    async fn cancel(&mut self, grace: Duration) -> bool {
        self.session.cancel_turn();
        let Some(id) = self.session_id.clone() else { return false };
        let awaited = json!(self.next_id.saturating_sub(1));
        self.session.send(&rpc::notification("session/cancel", &json!({"sessionId": id}))).await;
        self.nobody_waits().await;
        let until = engine_clock::now() + grace;
        loop {
            match self.hear(Some(until.saturating_duration_since(engine_clock::now()))).await {
                Incoming::Line(line) => {
                    if self.serve(&line, &awaited).await.is_some() {
                        return true;
                    }
                }
                Incoming::Terminal(_) => {}
                // An interrupt may come while a limit is being enforced; the grace period ends in both cases.
                Incoming::Closed | Incoming::Late | Incoming::End(_) => return false,
            }
        }
    }
}

/// Returns true if a line withdraws the request with this id.
fn is_withdrawn(line: &str, id: &Value) -> bool {
    line.contains(CANCEL_REQUEST)
        && rpc::parse(line).any(|message| {
            matches!(message, Message::Notification { method, params }
                if method == CANCEL_REQUEST && params.get("requestId").map(rpc::key) == Some(rpc::key(id)))
        })
}
