//! The agent's answers to the engine's requests, and how they end the session.

use serde_json::Value;

use super::rpc::{self, RpcError};
use super::usage::{Figures, is_left_out, only_model, tell_invalid};
use super::{Translator, sessions, text_at};
use crate::adapter::{EndReport, errors};
use crate::trace::recorder::Recorder;
use crate::trace::usage::Measure;
use crate::trace::{ErrorCategory, NoticeCode, StopReason};

/// The version of the protocol that this program speaks.
const VERSION: i64 = 1;
/// The protocol's code for a missing login.
pub(crate) const AUTH_REQUIRED: i64 = -32000;
/// The name by which the bridge to Claude Code introduces itself.
const COUNTS_BY_MODEL: &str = "@agentclientprotocol/claude-agent-acp";
/// The protocol's code for a cancelled request.
const REQUEST_CANCELLED: i64 = -32800;

/// A request of the engine.
#[derive(Debug)]
pub(super) enum SentRequest {
    Initialize,
    Session(&'static str),
    /// The choice of a model: the method and the model's name.
    Model(&'static str, Option<String>),
    /// The choice of a mode: the method and the mode.
    Mode(String, Option<String>),
    /// The prompt with this number.
    Prompt(u64),
    Other(String),
}

impl Translator {
    /// Takes a request of the engine to the agent.
    pub(super) fn ask_agent(&mut self, id: &Value, method: &str, params: Value, recorder: &mut Recorder) {
        let asked = match method {
            "initialize" => SentRequest::Initialize,
            "session/new" => self.ask_session("session/new", &params, false, recorder),
            "session/load" => self.ask_session("session/load", &params, true, recorder),
            "session/resume" => self.ask_session("session/resume", &params, true, recorder),
            "session/fork" => self.ask_session("session/fork", &params, false, recorder),
            "session/set_config_option" => match text_at(&params, "configId") {
                Some(config) if self.model.is_chosen_by(&config) => {
                    self.model.asked(Some(config));
                    self.ask_model("session/set_config_option", text_at(&params, "value"), recorder)
                }
                Some(config) if self.mode.is_chosen_by(&config) => {
                    self.mode.asked();
                    SentRequest::Mode(method.to_owned(), text_at(&params, "value"))
                }
                _ => SentRequest::Other(method.to_owned()),
            },
            "session/set_mode" => {
                self.mode.asked();
                SentRequest::Mode(method.to_owned(), text_at(&params, "modeId"))
            }
            "session/set_model" => {
                self.model.asked(None);
                self.ask_model("session/set_model", text_at(&params, "modelId"), recorder)
            }
            "session/prompt" => {
                self.prompt(params, recorder);
                self.look_at_mode(false, recorder);
                SentRequest::Prompt(self.turn.number)
            }
            _ => SentRequest::Other(method.to_owned()),
        };
        let key = rpc::key(id);
        self.answered.remove(&key);
        self.asked.insert(key, asked);
    }

    fn ask_session(
        &mut self,
        method: &'static str,
        params: &Value,
        loads: bool,
        recorder: &mut Recorder,
    ) -> SentRequest {
        let header = recorder.header();
        if header.cwd.is_none() {
            header.cwd = text_at(params, "cwd");
        }
        // The answer gives a fork an id of its own.
        let id = params.as_object().and_then(sessions::session_of).filter(|_| method != "session/fork");
        self.session.asked(id, loads);
        SentRequest::Session(method)
    }

    fn ask_model(&mut self, method: &'static str, model: Option<String>, recorder: &mut Recorder) -> SentRequest {
        let requested = &mut recorder.header().model.requested;
        if requested.is_none() {
            requested.clone_from(&model);
        }
        SentRequest::Model(method, model)
    }

    /// Takes an answer of the agent.
    pub(super) fn answer(&mut self, id: &Value, outcome: Result<Value, RpcError>, recorder: &mut Recorder) {
        let key = rpc::key(id);
        let asked = match self.asked.remove(&key) {
            Some(asked) => asked,
            None if self.answered.contains(&key) => {
                return recorder
                    .notice(NoticeCode::DuplicateAnswer, described("a second answer to the request", id, &outcome));
            }
            None => match self.guess(&outcome) {
                Some(asked) => asked,
                None => {
                    return recorder.notice(
                        NoticeCode::UnknownAnswer,
                        described("an answer to the unknown request", id, &outcome),
                    );
                }
            },
        };
        self.answered.insert(key);
        match (asked, outcome) {
            (SentRequest::Prompt(number), outcome) => self.prompt_answered(number, outcome, recorder),
            (SentRequest::Initialize, Ok(result)) => {
                self.setup = None;
                self.check_version(&result, recorder);
                self.introduced(&result, recorder);
            }
            (SentRequest::Session(_), Ok(result)) => {
                self.setup = None;
                self.session_opened(&result, recorder);
            }
            (SentRequest::Model(method, model), Ok(result)) => {
                self.setup = None;
                self.model_accepted(method, model, &result, recorder);
                self.mode_of_options(&result, recorder);
            }
            (SentRequest::Mode(_, mode), Ok(result)) => self.mode_accepted(mode, &result, recorder),
            (SentRequest::Other(_), Ok(result)) => {
                self.config_options(result.get("configOptions"), recorder);
                self.mode_of_options(&result, recorder);
            }
            (SentRequest::Initialize, Err(error)) => self.refused("initialize", &error, true, recorder),
            (SentRequest::Session(method), Err(error)) => {
                self.session.refused();
                self.refused(method, &error, true, recorder);
            }
            (SentRequest::Model(_, model), Err(error)) => self.model_refused(model.as_deref(), &error, recorder),
            (SentRequest::Mode(method, _), Err(error)) => self.refused(&method, &error, false, recorder),
            (SentRequest::Other(method), Err(error)) => {
                self.refused(&method, &error, method == "authenticate", recorder)
            }
        }
    }

    /// Infers the request from its answer, if the recording lacks the engine's lines.
    fn guess(&mut self, outcome: &Result<Value, RpcError>) -> Option<SentRequest> {
        if self.has_engine_lines {
            return None;
        }
        match outcome {
            Ok(result) if result.get("protocolVersion").is_some() => Some(SentRequest::Initialize),
            Ok(result) if result.get("sessionId").is_some() => Some(SentRequest::Session("session/new")),
            Ok(result) if result.get("stopReason").is_some() => {
                self.turn.number += 1;
                Some(SentRequest::Prompt(self.turn.number))
            }
            Ok(_) => None,
            Err(_) if self.session.is_known() => {
                self.turn.number += 1;
                Some(SentRequest::Prompt(self.turn.number))
            }
            Err(_) => Some(SentRequest::Session("session/new")),
        }
    }

    /// Handles a refused request. Before the first prompt, the refusal of a request that the session needs ends the
    /// session, unless a later request succeeds.
    pub(super) fn refused(&mut self, what: &str, error: &RpcError, needed: bool, recorder: &mut Recorder) {
        let detail = format!("{what} was refused: {}", error.detail());
        recorder.notice(NoticeCode::Refused, detail.clone());
        if needed && self.turn.number == 0 {
            let login = what == "authenticate" || error.code == Some(AUTH_REQUIRED);
            let category = match category_of(error) {
                // A failure of an MCP server is not one of the model's service.
                _ if !login && errors::names_server(&error.text()) => ErrorCategory::Handshake,
                ErrorCategory::Protocol if login => ErrorCategory::Auth,
                ErrorCategory::Protocol => ErrorCategory::Handshake,
                category => category,
            };
            self.setup = Some(EndReport::Failed { category, detail });
        }
    }

    fn check_version(&mut self, result: &Value, recorder: &mut Recorder) {
        match result.get("protocolVersion") {
            Some(version) if version.as_f64() == Some(VERSION as f64) => {}
            None | Some(Value::Null) => {
                recorder.notice(NoticeCode::ProtocolVersion, "the agent did not report its protocol version");
            }
            Some(version) => {
                let detail = format!("the agent speaks protocol version {version}, not {VERSION}");
                self.version = Some(EndReport::Failed { category: ErrorCategory::Handshake, detail });
            }
        }
    }

    fn prompt_answered(&mut self, number: u64, outcome: Result<Value, RpcError>, recorder: &mut Recorder) {
        self.turn.open = self.turn.open.saturating_sub(1);
        let answer = match &outcome {
            Ok(result) => {
                self.prompt_usage(result, recorder);
                self.messages_ended(recorder);
                self.reviews_ended(recorder);
                stop_reason(result)
            }
            Err(error) => failed(error),
        };
        self.unread_ended(recorder);
        let cancelled = matches!(answer, EndReport::Ended { reason: StopReason::Cancelled, .. });
        self.calls.end_turn(cancelled, recorder);
        if number == self.turn.number {
            self.turn.answer = Some(answer);
        }
    }

    /// Records the usage in an answer: the protocol's own, else the quota that some agents report instead. The bridge to Claude
    /// Code leaves calls of its model out of the former; with those that it reports by model, the session so far is recorded.
    fn prompt_usage(&mut self, result: &Value, recorder: &mut Recorder) {
        let meta = result.get("_meta");
        let quota = meta.and_then(|meta| meta.get("quota"));
        let model = quota.and_then(only_model).map(str::to_owned);
        for named in [meta, quota, result.get("usage")].into_iter().flatten() {
            self.model_named(named, recorder);
        }
        let counts = || quota.and_then(|quota| quota.get("token_count").or_else(|| quota.get("tokenCount")));
        for report in result.get("usage").into_iter().chain(counts()) {
            tell_invalid(report, recorder);
        }
        let figures = result.get("usage").and_then(Figures::read).or_else(|| counts().and_then(Figures::read));
        let activity = recorder.usage_total().activity();
        let is_left_out = is_left_out(&self.conventions.usage, activity);
        let lacks_cycle = figures.is_some() && self.by_model.take_left_out_cycle();
        let total = figures.and_then(|figures| figures.total);
        let lacks_message = self.counts_messages() && total.is_some_and(|total| self.messages.exceed(total));
        let mut reports = Vec::new();
        if let Some(figures) = figures {
            let mut usage = figures.as_usage(self.conventions.scope(), &self.conventions.usage);
            if is_left_out || lacks_cycle || lacks_message {
                usage.at_least(Measure::all());
            }
            self.turn.has_usage |= !usage.says_nothing();
            reports.push(usage);
        }
        if let Some(quota) = quota.filter(|_| self.conventions.is_agent(COUNTS_BY_MODEL)) {
            let may_go_on = self.calls.has_gone_on;
            self.by_model.add(figures, Figures::of_models(quota), |is_more| {
                lacks_cycle || (is_left_out && (may_go_on || !is_more))
            });
            reports.extend(self.by_model.session_usage(&self.conventions.usage));
        }
        for mut usage in reports {
            usage.model = model.clone().filter(|_| !self.model.is_rerouted());
            recorder.usage(usage, false);
        }
    }

    /// Notes that the model worked for the main agent. Claude Code also does so by itself after a turn, such as at news of a task
    /// in the background. Its bridge leaves the tokens of that work out of the usage of the turns, but not the cost.
    pub(super) fn worked_between_turns(&mut self) {
        if self.is_over() && self.conventions.is_agent(COUNTS_BY_MODEL) {
            self.by_model.leave_out_cycle();
        }
    }

    /// Records that the tokens of the model's work after the last turn are missing. A later turn marks its figures instead.
    pub(super) fn end_of_usage(&mut self, recorder: &mut Recorder) {
        if self.by_model.take_left_out_cycle() {
            let text = "the agent worked after its answer to the prompt, and no report has its tokens: the totals are \
                        lower bounds";
            recorder.notice(NoticeCode::UsageIncomplete, text);
        }
    }

    /// Returns how the agent ended the session.
    pub(super) fn ending(&mut self, recorder: &Recorder) -> EndReport {
        if let Some(version) = self.version.take() {
            return version;
        }
        let answer = match self.turn.answer.take() {
            Some(answer) => answer,
            None if self.turn.number > 0 => EndReport::None,
            None => self.setup.take().unwrap_or(EndReport::None),
        };
        match answer {
            // Some agents report a failed request to the model as a refusal of the model.
            EndReport::Ended { reason: reason @ (StopReason::EndTurn | StopReason::Refusal), detail } => {
                let text = recorder.answer().into_owned();
                let text = text.trim();
                let program = self.turn.program_message.as_deref();
                if self.turn.system_error {
                    let last_text = program.unwrap_or(text);
                    let shown = if last_text.is_empty() { "the agent's status was systemError" } else { last_text };
                    return EndReport::Failed { category: errors::by_text(shown), detail: shown.to_owned() };
                }
                let is_by_model = self.turn.answer_of_model.as_deref().is_some_and(|answer| answer.trim() == text);
                let own_text = Some(text).filter(|_| !is_by_model);
                let error = program.into_iter().chain(own_text).find(|text| self.conventions.is_error(text));
                if let Some(shown) = error {
                    return EndReport::Failed { category: errors::by_text(shown), detail: shown.to_owned() };
                }
                if reason == StopReason::Refusal
                    && let Some(cause) = self.conventions.failure_in(&self.turn.printed)
                {
                    let category = match errors::by_text(cause) {
                        ErrorCategory::Protocol => ErrorCategory::Provider,
                        category => category,
                    };
                    return EndReport::Failed { category, detail: cause.to_owned() };
                }
                EndReport::Ended { reason, detail }
            }
            answer => answer,
        }
    }
}

fn stop_reason(result: &Value) -> EndReport {
    let Some(word) = result.get("stopReason").and_then(Value::as_str) else {
        let detail = format!("the prompt was answered with {result}, which has no stop reason");
        return EndReport::Failed { category: ErrorCategory::Protocol, detail };
    };
    let reason = match word {
        "end_turn" => StopReason::EndTurn,
        "max_tokens" => StopReason::MaxTokens,
        "max_turn_requests" => StopReason::MaxTurns,
        "refusal" => StopReason::Refusal,
        "cancelled" => StopReason::Cancelled,
        _ => StopReason::Other,
    };
    let detail = (reason == StopReason::Other).then(|| word.to_owned());
    EndReport::Ended { reason, detail }
}

fn failed(error: &RpcError) -> EndReport {
    if error.code == Some(REQUEST_CANCELLED) {
        return EndReport::Ended { reason: StopReason::Cancelled, detail: None };
    }
    EndReport::Failed { category: category_of(error), detail: error.detail() }
}

/// Returns the category of an error: by an HTTP status as its code, else by its text. Agents also use the code for a missing login
/// for other errors, because it is the first code that an implementation may define: it decides only if the text says nothing.
pub(crate) fn category_of(error: &RpcError) -> ErrorCategory {
    let by_code = error.code.and_then(|code| u64::try_from(code).ok()).and_then(errors::by_status);
    match by_code.unwrap_or_else(|| errors::by_text(&error.text())) {
        ErrorCategory::Protocol if error.code == Some(AUTH_REQUIRED) => ErrorCategory::Auth,
        category => category,
    }
}

fn described(what: &str, id: &Value, outcome: &Result<Value, RpcError>) -> String {
    match outcome {
        Ok(result) => format!("{what} {id}: {result}"),
        Err(error) => format!("{what} {id}: {}", error.detail()),
    }
}
