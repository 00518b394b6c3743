//! Drives Claude Code in both directions: handshake, model, prompts, permission requests, questions, interrupt.
//! The session logs and translates the lines; this module only decides what to send next.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::adapter::claude_stream::background::Background;
use crate::adapter::claude_stream::control::{ALLOW, ALLOW_ALWAYS, CanUseTool};
use crate::adapter::claude_stream::tools;
use crate::adapter::surrogates;
use crate::attachment::{Attached, Content, Kind, MAX_INLINE_BYTES};
use crate::driver::requested::request_about;
use crate::driver::{Broken, DRAIN, Task, end_unattended};
use crate::engine_clock;
use crate::harness::{Adapter, ModelVia};
use crate::interaction::{Decision, Request};
use crate::process::Stdin;
use crate::session::{End, Incoming, Meanwhile, Session, Turn};
use crate::trace::{NoticeCode, RequestSubject};
use crate::wire::{EngineLine, trimmed};

/// The time that the agent has to exit after its standard input is closed.
const EXIT: Duration = Duration::from_secs(5);
/// The tool by which the agent asks questions of its user.
const QUESTION: &str = "AskUserQuestion";

/// Drives the session to its end. Returns how long to wait for the process to exit by itself.
pub async fn drive(session: &mut Session, task: &mut Task) -> Duration {
    if session.spawn(&task.command, &task.folder, &task.env, Stdin::Piped).await.is_err() {
        return Duration::ZERO;
    }
    let mut client = Client { session, task, requests: 0, background: Background::default() };
    let ended = match client.converse().await {
        Ok(()) => {
            client.session.answered();
            client.rest().await
        }
        Err(broken) => Err(broken),
    };
    match ended {
        Ok(patience) => patience,
        Err(broken) => {
            end_unattended(client.session, client.task, &broken);
            if let Some(patience) = broken.leave(client.session) {
                return patience;
            }
            let grace = client.task.manifest.timeouts.grace.0;
            if client.interrupt(grace).await {
                // Requests that the agent makes after its answer are answered, too: the agent may wait for them.
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
    requests: u64,
    background: Background,
}

impl Client<'_> {
    async fn converse(&mut self) -> Result<(), Broken> {
        let start = self.task.manifest.timeouts.start.0;
        self.request(json!({"subtype": "initialize", "hooks": null}), "initialize", start).await?;
        let over_the_protocol = matches!(self.task.manifest.model.via, ModelVia::SetModel | ModelVia::ConfigOption);
        if let (true, Some(model)) = (over_the_protocol, self.task.model.clone()) {
            self.request(json!({"subtype": "set_model", "model": model}), &format!("model `{model}`"), start).await?;
        }
        for turn in Turn::all(&self.task.turns) {
            let mut content = vec![json!({"type": "text", "text": turn.prompt})];
            if turn.number == 1 {
                content.extend(self.task.attachments.iter().filter_map(block));
            } else if self.session.ends_before_turn() {
                break;
            }
            let line = json!({
                "type": "user",
                "session_id": "",
                "parent_tool_use_id": null,
                "message": {"role": "user", "content": content},
            });
            self.session.begin_turn(turn);
            self.background.prompted();
            self.session.send(&line.to_string()).await;
            let failed = self.turn().await?;
            self.session.end_turn();
            if failed {
                break;
            }
        }
        Ok(())
    }

    /// Serves the agent until the turn ends. Returns true if it ended in another way than by an answer.
    ///
    /// The end of a turn that the agent began itself is not the answer: the turn for the prompt follows. If no line follows for
    /// the grace period, the agent's program has given the prompt to its model within its own turn, and has answered it there.
    async fn turn(&mut self) -> Result<bool, Broken> {
        let grace = self.task.manifest.timeouts.grace.0;
        loop {
            let within = self.background.may_have_answered().then_some(grace);
            match self.session.next(within).await {
                Incoming::Line(line) => {
                    let line = value_of(&line);
                    self.check_mode()?;
                    self.serve(&line).await;
                    if self.session.has_received_answer() {
                        return Ok(!self.session.turn_end().is_answer());
                    }
                }
                Incoming::Late if self.background.may_have_answered() => {
                    self.background.answered_in_own_turn();
                    self.session.turn_answered();
                    return Ok(!self.session.turn_end().is_answer());
                }
                Incoming::Closed => return Err(Broken::Gone),
                Incoming::Late | Incoming::Terminal(_) => {}
                Incoming::End(_) => return Err(Broken::Ended),
            }
        }
    }

    /// Fails if the agent's mode does not ask for every permission although the policy has decisions to make.
    fn check_mode(&mut self) -> Result<(), Broken> {
        let mode = self.session.recorder().mode().filter(|_| self.task.must_ask).map(str::to_owned);
        match mode.filter(|mode| self.task.manifest.is_unattended(mode)) {
            Some(mode) => Err(Broken::Unattended(mode)),
            None => Ok(()),
        }
    }

    /// Sends a request, and serves the agent until the agent has answered it.
    async fn request(&mut self, request: Value, what: &str, within: Duration) -> Result<(), Broken> {
        let id = self.send_request(request).await;
        let until = engine_clock::now() + within;
        loop {
            match self.session.next(Some(until.saturating_duration_since(engine_clock::now()))).await {
                Incoming::Line(line) => {
                    let line = value_of(&line);
                    match answer_to(&line, &id) {
                        Some(Ok(())) => return Ok(()),
                        Some(Err(error)) => return Err(Broken::Handshake(format!("{what} was refused: {error}"))),
                        None => self.serve(&line).await,
                    }
                }
                Incoming::Closed => return Err(Broken::Gone),
                Incoming::Late => {
                    let seconds = within.as_secs_f64();
                    return Err(Broken::Handshake(format!("{what} was not answered within {seconds} s")));
                }
                Incoming::End(End::Limit) => {
                    return Err(Broken::Handshake(format!("{what} was not answered before a limit was reached")));
                }
                Incoming::End(End::Interrupted) => return Err(Broken::Ended),
                Incoming::Terminal(_) => {}
            }
        }
    }

    async fn send_request(&mut self, request: Value) -> String {
        self.requests += 1;
        let id = format!("evals-{}", self.requests);
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        self.session.send(&line.to_string()).await;
        id
    }

    /// Answers a request of the agent. Other lines need no answer, but may report what goes on in the background.
    async fn serve(&mut self, line: &Value) {
        let kind = line.get("type").and_then(Value::as_str);
        self.background.json(line);
        self.session.set_has_sub_agents(self.background.has_sub_agents());
        if kind != Some("control_request") {
            return;
        }
        let id = line.get("request_id").cloned().unwrap_or(Value::Null);
        let answer = match CanUseTool::of(line) {
            Some(asked) => match self.answer(&asked).await {
                Some(answer) => answer,
                None => return,
            },
            None => Err("this client does not support the request".to_owned()),
        };
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        self.session.reply(&json!({"type": "control_response", "response": response}).to_string()).await;
    }

    /// Returns the answer to a request to use a tool, or the text of an error. Returns `None` if the agent withdrew
    /// the request.
    async fn answer(&mut self, asked: &CanUseTool) -> Option<Result<Value, String>> {
        let decision = self.decide(asked).await?;
        self.session.decided(&Value::String(asked.id.clone()), &decision);
        let mut input = asked.input.clone();
        match (&mut input, decision.updated_input) {
            (Value::Object(input), Some(keys)) => input.extend(keys),
            (input, Some(keys)) => *input = Value::Object(keys),
            (_, None) => {}
        }
        let reason = decision.by.reason;
        Some(match decision.option.as_deref() {
            Some(ALLOW) => Ok(json!({"behavior": "allow", "updatedInput": input})),
            Some(ALLOW_ALWAYS) => {
                Ok(json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": asked.rules}))
            }
            Some(_) => Ok(json!({"behavior": "deny", "message": refusal(reason)})),
            None => Err(refusal(reason)),
        })
    }

    async fn decide(&mut self, asked: &CanUseTool) -> Option<Decision> {
        let goes_on = self.background.goes_on() && !self.session.is_cancelled();
        if !self.session.is_of_turn() && !goes_on {
            let late = || format!("the request {} came after the turn was interrupted", asked.id);
            let request = self.request_of(asked);
            let decision = Decision::of_engine("the request came when no prompt was running")
                .rejecting(self.task.policy.would_reject(request.as_ref()));
            return Some(Decision { notice: self.session.is_cancelled().then(late), ..decision });
        }
        let request = self.request_of(asked);
        let may_be_question =
            |request: &Request| matches!(request.subject(), RequestSubject::Question | RequestSubject::Doubtful);
        let is_question = request.as_ref().is_none_or(may_be_question);
        if asked.tool == QUESTION && is_question {
            return Some(self.answer_questions(asked));
        }
        let Some(request) = request else {
            let decision = Decision::of_engine("the request is about a call that is unknown or has ended");
            return Some(decision.rejecting(self.task.policy.would_reject(None)));
        };
        let deciding = self.task.policy.decide(&request);
        match self.session.meanwhile(deciding, |line| is_withdrawn(line, &asked.id)).await {
            Meanwhile::Done(decision) => Some(decision),
            Meanwhile::Withdrawn => None,
            Meanwhile::Over => Some(self.task.policy.unanswered()),
        }
    }

    /// Returns the request for the policy, or `None` if no such call is open.
    fn request_of(&mut self, asked: &CanUseTool) -> Option<Request> {
        let input = self.session.masked(&asked.input);
        let report = asked.call_report(input, tools::Kinds::new(&self.task.manifest).of(&asked.tool));
        // The translation has seen the ids with their secrets redacted. If the request has no call id, the trace shows which
        // call it was taken to be about.
        let of_trace = |id: &str, session: &Session| match session.masked(&Value::from(id)) {
            Value::String(id) => id,
            _ => id.to_owned(),
        };
        let call = match asked.call.is_empty() {
            true => {
                let request = of_trace(&asked.id, self.session);
                self.session.recorder().call_of_request(&request).map(str::to_owned)
            }
            false => Some(of_trace(&asked.call, self.session)),
        };
        let about = |call: String| request_about(self.session, &call, &report, asked.options(), &self.task.folder);
        call.and_then(about)
    }

    /// Serves the agent after its last answer, until its input can be closed: within the time limits, when no sub-agent and
    /// no turn goes on; after the grace period, if no line follows the announcement of a turn, another task goes on or a turn
    /// may follow; else when the agent is silent, because late lines are evidence, too. Returns how long to wait for the
    /// program to exit by itself.
    async fn rest(&mut self) -> Result<Duration, Broken> {
        let grace = self.task.manifest.timeouts.grace.0;
        let mut since = engine_clock::now();
        let mut announced: Option<Instant> = None;
        loop {
            let is_working = self.background.is_working() && !self.session.has_ended();
            self.session.set_goes_on(is_working);
            let awaits_turn = is_working && self.background.is_only_announced();
            announced = awaits_turn.then(|| announced.unwrap_or_else(engine_clock::now));
            let within = if is_working {
                since = engine_clock::now();
                let of_turn = announced.map(|at| grace.saturating_sub(elapsed(at)));
                if of_turn.is_some_and(|remaining| remaining.is_zero()) {
                    return Ok(self.close());
                }
                let remaining = self.session.remaining_time();
                if remaining.is_zero() {
                    let text = "a time limit was reached while work went on in the background, and the engine ended it";
                    self.session.engine(&EngineLine::Notice { code: NoticeCode::BackgroundCut, text: text.to_owned() });
                    // The input stays open: otherwise the agent could not ask for permission, which is an error.
                    return Ok(Duration::ZERO);
                }
                of_turn.map_or(remaining, |of_turn| of_turn.min(remaining))
            } else {
                let (most, silence) = if self.background.may_follow() { (grace, grace) } else { DRAIN };
                let remaining = most.saturating_sub(elapsed(since));
                if remaining.is_zero() {
                    return Ok(self.close());
                }
                remaining.min(silence)
            };
            match self.session.next(Some(within)).await {
                Incoming::Line(line) => {
                    if is_working {
                        self.check_mode()?;
                    }
                    self.serve(&value_of(&line)).await;
                }
                Incoming::Terminal(_) => {}
                Incoming::End(_) if is_working => return Err(Broken::Ended),
                Incoming::Late if is_working => {}
                // The agent ended by itself, which leaves the announced turn without an end.
                Incoming::Closed if awaits_turn => return Ok(EXIT),
                Incoming::Closed | Incoming::Late | Incoming::End(_) => return Ok(self.close()),
            }
        }
    }

    /// Closes the agent's input. Returns how long to wait for the agent to exit by itself.
    fn close(&mut self) -> Duration {
        self.session.close_stdin();
        EXIT
    }

    /// Takes late lines until the agent is silent, because late lines are evidence, too.
    async fn drain(&mut self) {
        let until = engine_clock::now() + DRAIN.0;
        while engine_clock::now() < until {
            match self.session.next(Some(DRAIN.1)).await {
                Incoming::Line(line) => self.serve(&value_of(&line)).await,
                Incoming::Terminal(_) => {}
                Incoming::Closed | Incoming::Late | Incoming::End(_) => return,
            }
        }
    }

    /// Answers questions from the case's answers. The tool takes the answers as a part of its input.
    fn answer_questions(&mut self, asked: &CanUseTool) -> Decision {
        let questions = asked.input.get("questions").and_then(Value::as_array);
        let texts: Vec<String> = questions
            .into_iter()
            .flatten()
            .filter_map(|question| question.get("question")?.as_str().map(str::to_owned))
            .collect();
        let (answers, decision) = self.task.policy.answer(&texts);
        let updated_input = answers.map(|answers| {
            let by_question = texts.into_iter().zip(answers.into_iter().map(Value::String));
            Map::from_iter([("answers".to_owned(), Value::Object(by_question.collect()))])
        });
        Decision { updated_input, ..decision.choose(&asked.options()) }
    }

    /// Interrupts the running turn and waits for its end. Returns true if the turn ended.
    async fn interrupt(&mut self, grace: Duration) -> bool {
        if !self.session.cancel_turn() {
            return false;
        }
        self.send_request(json!({"subtype": "interrupt"})).await;
        let until = engine_clock::now() + grace;
        loop {
            match self.session.next(Some(until.saturating_duration_since(engine_clock::now()))).await {
                Incoming::Line(line) => {
                    let line = value_of(&line);
                    self.serve(&line).await;
                    if self.session.has_received_answer() {
                        return true;
                    }
                }
                Incoming::Terminal(_) => {}
                // An interrupt of the run may come while a limit is being enforced; the grace period ends in both
                // cases.
                Incoming::Closed | Incoming::Late | Incoming::End(_) => return false,
            }
        }
    }
}

/// Returns a block of the prompt with an attached file, or `None` if the agent does not support this kind of file.
fn block(file: &Attached) -> Option<Value> {
    let base64 = || json!({"type": "base64", "media_type": file.media_type, "data": file.content.base64()});
    match (file.kind, &file.content) {
        (Kind::Image, _) => Some(json!({"type": "image", "source": base64()})),
        (Kind::Pdf, _) => Some(json!({"type": "document", "source": base64(), "title": file.name})),
        (_, Content::Text(text)) => {
            let source = json!({"type": "text", "media_type": "text/plain", "data": text});
            Some(json!({"type": "document", "source": source, "title": file.name}))
        }
        (_, Content::Bytes(_)) => None,
    }
}

/// Checks that the agent supports these attachments.
///
/// # Errors
/// Returns the reason if a kind of file is not supported, or if the files are too large together.
pub(super) fn takes(attached: &[Attached]) -> Result<(), String> {
    let kinds = "images, PDF documents and text";
    if let Some(file) = attached.iter().find(|file| !Adapter::ClaudeCodeControl.takes(file.kind)) {
        return Err(format!("the attachment `{}` cannot be sent: `claude-code-control` takes {kinds}", file.name));
    }
    let bytes: u64 = attached.iter().map(|file| file.content.size()).sum();
    if bytes > MAX_INLINE_BYTES {
        return Err(format!("the attachments have {bytes} bytes; a prompt takes at most {MAX_INLINE_BYTES}"));
    }
    Ok(())
}

/// Returns the text about a refusal for the model.
fn refusal(reason: Option<String>) -> String {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("The user does not allow this{reason}")
}

/// Returns the time since a reading of the engine's clock.
fn elapsed(since: Instant) -> Duration {
    engine_clock::now().saturating_duration_since(since)
}

/// Returns the JSON value of a line of the agent, or null if the line is not JSON.
fn value_of(line: &str) -> Value {
    surrogates::parse(trimmed(line)).unwrap_or_default()
}

/// Returns true if a line withdraws the request with this id.
fn is_withdrawn(line: &str, id: &str) -> bool {
    const CANCEL: &str = "control_cancel_request";
    if !line.contains(CANCEL) {
        return false;
    }
    let line = value_of(line);
    line.get("type").and_then(Value::as_str) == Some(CANCEL)
        && line.get("request_id").and_then(Value::as_str) == Some(id)
}

/// Returns the outcome of the request with this id, if the line is the answer to it.
fn answer_to(line: &Value, id: &str) -> Option<Result<(), String>> {
    let response =
        line.get("response").filter(|_| line.get("type").and_then(Value::as_str) == Some("control_response"))?;
    if response.get("request_id").and_then(Value::as_str) != Some(id) {
        return None;
    }
    match response.get("subtype").and_then(Value::as_str) {
        Some("success") => Some(Ok(())),
        _ => Some(Err(response.get("error").and_then(Value::as_str).unwrap_or("no reason was given").to_owned())),
    }
}
