//! Decides the answer to a request: the next turn of its conversation in the script. Pure.

use std::time::Duration;

use super::choice::{self, Choice};
use super::script::{ErrorEvent, Fault, HttpError, RateLimit, Script, Stop, Turn, WithoutTools};
use super::tools::{self, sample};
use super::turns::call_id;
use super::{Api, ModelRequest, Refusal, Reply, ToolResult, side_requests};
use crate::values::Time;

/// The answer to a request, and its log entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    pub what: AnswerKind,
    /// The number of the turn, from 0, if one was played.
    pub turn: Option<usize>,
    /// The number of the turn's alternative, from 0, if the turn has several.
    pub alternative: Option<usize>,
    /// The number of the turn's sub-agent, from 0.
    pub sub_agent: Option<usize>,
    /// The fault of the turn that was played. Absent if the turn was played without one.
    pub fault: Option<&'static str>,
    /// True if the request contains none of the case's prompts, and was therefore answered aside.
    pub without_prompt: bool,
    /// The part of the script that could not be played as written.
    pub problem: Option<String>,
    /// The delay before the answer.
    pub delay: Duration,
    /// The time that the stream of the answer takes.
    pub takes: Duration,
    pub answer: PlayedAnswer,
}

/// The kind of answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// A turn of the script.
    Turn,
    /// A few words for a request outside the conversation.
    Aside,
    /// The last text again: the script has no further turn.
    AfterTheLast,
    /// A count of tokens.
    CountTokens,
    /// A list of models, or one model.
    Models,
    /// A response to a check whether the server is running.
    Probe,
    /// An unknown request.
    Unknown,
}

/// An answer, with its fault.
#[derive(Debug, Clone, PartialEq)]
pub enum PlayedAnswer {
    /// A complete answer.
    Whole(Reply),
    /// An answer that is cut off in the middle.
    Cut(Reply),
    /// An answer with an error in the middle.
    Broken(Reply, Refusal),
    /// A refused request.
    Refused(Refusal),
}

/// The text of the answer to requests outside the conversation, and of the answer after a last turn without text.
const NEUTRAL: &str = "Done.";

/// Facts about the trial of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scene<'a> {
    /// The agent's working directory.
    pub workspace: Option<&'a str>,
    /// The prompts of the case; empty without a case.
    pub prompts: &'a [String],
}

/// Decides the answer to a request. `before` is the number of earlier requests for this turn at the same place.
pub fn play(script: &Script, api: Api, asked: &ModelRequest, scene: Scene<'_>, before: Before) -> Played {
    let model = |turn: Option<&Turn>| {
        let scripted = turn.and_then(|turn| turn.model.as_ref()).or(script.model.as_ref());
        scripted.or(asked.model.as_ref()).cloned().unwrap_or_else(|| "scripted".to_owned())
    };
    if is_aside(script, asked, scene.prompts) {
        return Played::of(AnswerKind::Aside, PlayedAnswer::Whole(Reply { model: model(None), ..aside(api, asked) }));
    }
    let (sub_agent, turns) = script.turns_for(&asked.opening);
    let number = match side_requests::turns_since_prompt(asked, scene.prompts) {
        Some(number) => number,
        // A separate conversation that the script recognises by its first message.
        None if sub_agent.is_some() => asked.model_turns,
        None => {
            let reply = Reply { model: model(None), ..aside(api, asked) };
            return Played { without_prompt: true, ..Played::of(AnswerKind::Aside, PlayedAnswer::Whole(reply)) };
        }
    };
    let results = choice::results(asked, number);
    let Some(turn) = turns.get(number) else {
        return Played { sub_agent, ..after_the_last(turns, &results, &model) };
    };
    let played =
        Played { turn: Some(number), sub_agent, ..Played::of(AnswerKind::Turn, PlayedAnswer::Whole(Reply::default())) };
    let Choice { turn, alternative } = match choice::choose(turn, number, &results) {
        Ok(chosen) => chosen,
        Err(why) => return played.cannot(number, why, Reply { model: model(None), ..Reply::default() }),
    };
    let (delay, takes) = (time_of(turn.delay), time_of(turn.take));
    // Without a stream, the answer comes when it is complete.
    let (delay, takes) = if asked.stream { (delay, takes) } else { (delay.saturating_add(takes), Duration::ZERO) };
    let played = Played { alternative, delay, takes, ..played };
    let fault = turn.fault_after(before.faults);
    let played = Played { fault: fault.map(Fault::word), ..played };
    if let Some(refusal) = fault.and_then(|fault| refused(fault, api, &model(Some(turn)))) {
        return Played {
            delay: time_of(turn.delay),
            takes: Duration::ZERO,
            answer: PlayedAnswer::Refused(refusal),
            ..played
        };
    }
    if fault == Some(&Fault::Empty) {
        let reply = Reply { model: model(Some(turn)), usage: turn.usage, ..Reply::default() };
        return Played { answer: PlayedAnswer::Whole(reply), ..played };
    }
    let mut reply = Reply {
        model: model(Some(turn)),
        thinking: turn.thinking.clone().filter(|text| !text.is_empty()),
        text: turn.text.clone().filter(|text| !text.is_empty()),
        usage: turn.usage,
        stop: stop_of(turn, fault),
        ..Reply::default()
    };
    let folder = scene.workspace.or(asked.folder.as_deref());
    for (at, wanted) in turn.calls.iter().filter_map(|call| call.wanted()).enumerate() {
        match tools::call(wanted, &asked.tools, folder) {
            Ok(call) => {
                let id = call_id(api.call_prefix(), sub_agent, number, at, before.played);
                reply.calls.push(super::Call { call: id, ..call });
            }
            // The rest of a turn without one of its calls would be a different turn.
            Err(error) => {
                let reply = Reply { thinking: None, calls: Vec::new(), ..reply };
                return played.cannot(number, error.to_string(), reply);
            }
        }
    }
    let answer = match fault {
        Some(Fault::Cut) => PlayedAnswer::Cut(reply),
        Some(Fault::ErrorEvent(ErrorEvent { message })) => {
            let message = message.clone().unwrap_or_else(|| "Overloaded".to_owned());
            PlayedAnswer::Broken(reply, Refusal { status: api.overloaded(), message, retry_after_ms: None })
        }
        _ => PlayedAnswer::Whole(reply),
    };
    Played { answer, ..played }
}

/// Returns the answer after the last turn of a script.
fn after_the_last(turns: &[Turn], results: &[ToolResult], model: &dyn Fn(Option<&Turn>) -> String) -> Played {
    let last = turns.last().and_then(|turn| choice::choose(turn, turns.len() - 1, results).ok());
    let last = last.map(|chosen| chosen.turn);
    let last_text = last.filter(|last| last.calls.is_empty()).and_then(|last| last.text.clone());
    // A model that refuses or is filtered continues to do so: agents ask again, with the refusal in the conversation.
    let refuses = |stop: &Stop| matches!(stop, Stop::Refusal | Stop::ContentFilter);
    let stop = last.map(Turn::stop).filter(refuses).unwrap_or_default();
    let text = Some(last_text.unwrap_or_else(|| NEUTRAL.to_owned()));
    Played::of(
        AnswerKind::AfterTheLast,
        PlayedAnswer::Whole(Reply { model: model(last), text, stop, ..Reply::default() }),
    )
}

/// The number of earlier requests for a turn at the same place of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    /// The number of faults since the turn was played without one.
    pub faults: u32,
    /// The number of times the turn was played, completely or partially.
    pub played: usize,
}

impl Played {
    /// Makes an answer without further details.
    pub fn of(what: AnswerKind, answer: PlayedAnswer) -> Self {
        let (delay, takes) = (Duration::ZERO, Duration::ZERO);
        Self {
            what,
            turn: None,
            alternative: None,
            sub_agent: None,
            fault: None,
            without_prompt: false,
            problem: None,
            delay,
            takes,
            answer,
        }
    }

    /// Returns the error answer for a turn that cannot be played, with the reason.
    fn cannot(self, number: usize, why: String, reply: Reply) -> Self {
        let problem = format!("turn {number} of the script cannot be played: {why}");
        let text = Some(format!("The scripted model cannot go on: {problem}."));
        let answer = PlayedAnswer::Whole(Reply { text, stop: Stop::EndTurn, ..reply });
        Self { problem: Some(problem), answer, ..self }
    }
}

fn time_of(time: Option<Time>) -> Duration {
    time.map(|time| time.0).unwrap_or_default()
}

/// Returns the stop reason of a turn. A fault that no longer occurs has no effect.
fn stop_of(turn: &Turn, fault: Option<&Fault>) -> Stop {
    if fault.is_some() { turn.stop() } else { Turn { fault: None, ..turn.clone() }.stop() }
}

/// Returns a few words, or the simplest value of the requested form.
fn aside(api: Api, asked: &ModelRequest) -> Reply {
    let forced = asked.forced.as_ref().and_then(|name| asked.tools.iter().find(|tool| tool.name == *name));
    if let Some(tool) = forced {
        let input = sample(&tool.schema);
        let call = super::Call {
            call: format!("{}aside", api.call_prefix()),
            kind: "tool".into(),
            ..tools::made(tool, input)
        };
        return Reply { calls: vec![call], stop: Stop::ToolCalls, ..Reply::default() };
    }
    let text = asked.format.as_ref().map_or_else(|| NEUTRAL.to_owned(), |schema| sample(schema).to_string());
    Reply { text: Some(text), ..Reply::default() }
}

/// Returns true if a request is outside the conversation: for a title, a summary, a judgement of a call, or a
/// check of a key.
fn is_aside(script: &Script, asked: &ModelRequest, prompts: &[String]) -> bool {
    let toolless = asked.tools.is_empty() && script.without_tools == WithoutTools::Aside;
    toolless || asked.beside || asked.forced.is_some() || side_requests::is_side_request(asked, prompts, &script.aside)
}

fn refused(fault: &Fault, api: Api, model: &str) -> Option<Refusal> {
    let millis = |time: Time| u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX);
    match fault {
        Fault::HttpError(HttpError { status, message, retry_after }) => Some(Refusal {
            status: *status,
            message: message.clone().unwrap_or_else(|| usual_message(*status).to_owned()),
            retry_after_ms: retry_after.map(millis),
        }),
        Fault::RateLimit(RateLimit { retry_after, message, .. }) => {
            let retry_after_ms = retry_after.map(millis);
            let message = message.clone().unwrap_or_else(|| api.rate_limit_message(model, retry_after_ms));
            Some(Refusal { status: 429, message, retry_after_ms })
        }
        Fault::Overloaded => {
            Some(Refusal { status: api.overloaded(), message: "Overloaded".to_owned(), retry_after_ms: None })
        }
        _ => None,
    }
}

fn usual_message(status: u16) -> &'static str {
    match status {
        400 => "the request is refused, as the script says",
        401 => "invalid API key",
        403 => "this key may not do that",
        404 => "there is no such model",
        413 => "the request is too large",
        429 => "too many requests",
        503 | 529 => "Overloaded",
        _ => "the model's service failed",
    }
}

impl Api {
    /// Returns the HTTP status for an overloaded service.
    pub fn overloaded(self) -> u16 {
        if self == Api::Anthropic { 529 } else { 503 }
    }

    fn call_prefix(self) -> &'static str {
        if self == Api::Anthropic { "toolu_" } else { "call_" }
    }
}
