//! Which answer a request gets: the turn of the script that its conversation has come to. Pure.

use super::script::{ErrorEvent, Fault, HttpError, Script, Stop, Turn, WithoutTools};
use super::tools::{self, sample};
use super::turns::call_id;
use super::{Api, Asked, Refusal, Reply, beside};

/// What is answered to a request, and what the log says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// What was played.
    pub what: What,
    /// The number of the turn, from 0, where one was played.
    pub turn: Option<usize>,
    /// The number of the sub-agent whose turn it was, from 0.
    pub sub_agent: Option<usize>,
    /// Whether the turn's fault came.
    pub fault: bool,
    /// The request holds none of the case's prompts, and was answered aside for that.
    pub without_prompt: bool,
    /// What the script could not have as it says.
    pub problem: Option<String>,
    /// How long to wait first.
    pub delay: std::time::Duration,
    /// The answer.
    pub answer: Answer,
}

/// What kind of answer a request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A turn of the script.
    Turn,
    /// A few words to a request beside the conversation.
    Aside,
    /// Its last words once more: the script has no further turn.
    AfterTheLast,
    /// A count of tokens.
    CountTokens,
    /// A list of models, or one of it.
    Models,
    /// Something that asks whether the server is there.
    Probe,
    /// Nothing that this server knows.
    Unknown,
}

/// An answer, with what goes wrong in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It comes as it should.
    Whole(Reply),
    /// It breaks off in the middle.
    Cut(Reply),
    /// An error comes in the middle of it.
    Broken(Reply, Refusal),
    /// The request is refused.
    Refused(Refusal),
}

/// What is said to requests beside the conversation, and after the last turn where it has no text.
const NEUTRAL: &str = "Done.";

/// What is known of the trial in which a request is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scene<'a> {
    /// The folder that the agent works in.
    pub workspace: Option<&'a str>,
    /// The prompts of the case; empty if the server plays for no case.
    pub prompts: &'a [String],
}

/// Decides what a request gets. `before` tells how often this turn was met before, by requests at the same place.
pub fn play(script: &Script, api: Api, asked: &Asked, scene: Scene<'_>, before: Before) -> Played {
    let model = |turn: Option<&Turn>| {
        let said = turn.and_then(|turn| turn.model.as_ref()).or(script.model.as_ref());
        said.or(asked.model.as_ref()).cloned().unwrap_or_else(|| "scripted".to_owned())
    };
    if is_aside(script, asked, scene.prompts) {
        return Played::of(What::Aside, Answer::Whole(Reply { model: model(None), ..aside(api, asked) }));
    }
    let (sub_agent, turns) = script.turns_for(&asked.opening);
    let number = match beside::turns_since_prompt(asked, scene.prompts) {
        Some(number) => number,
        // A conversation of its own whose opening the script knows.
        None if sub_agent.is_some() => asked.model_turns,
        None => {
            let reply = Reply { model: model(None), ..aside(api, asked) };
            return Played { without_prompt: true, ..Played::of(What::Aside, Answer::Whole(reply)) };
        }
    };
    let Some(turn) = turns.get(number) else {
        let last = turns.last().filter(|last| last.calls.is_empty()).and_then(|last| last.text.clone());
        let text = last.unwrap_or_else(|| NEUTRAL.to_owned());
        // A model that refuses, or is filtered, goes on so; agents ask once more, with that noted.
        let stop = turns
            .last()
            .map(Turn::stop)
            .filter(|stop| matches!(stop, Stop::Refusal | Stop::ContentFilter))
            .unwrap_or_default();
        let reply = Reply { model: model(turns.last()), text: Some(text), stop, ..Reply::default() };
        return Played { sub_agent, ..Played::of(What::AfterTheLast, Answer::Whole(reply)) };
    };
    let played = Played {
        turn: Some(number),
        sub_agent,
        delay: turn.delay.map(|delay| delay.0).unwrap_or_default(),
        ..Played::of(What::Turn, Answer::Whole(Reply::default()))
    };
    let fault = turn.fault_after(before.faults);
    let played = Played { fault: fault.is_some(), ..played };
    if let Some(refusal) = fault.and_then(|fault| refused(fault, api)) {
        return Played { answer: Answer::Refused(refusal), ..played };
    }
    if fault == Some(&Fault::Empty) {
        let reply = Reply { model: model(Some(turn)), usage: turn.usage, ..Reply::default() };
        return Played { answer: Answer::Whole(reply), ..played };
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
            // Half of a turn would be another one.
            Err(error) => {
                let problem = format!("turn {number} of the script cannot be played: {error}");
                let text = Some(format!("The scripted model cannot go on: {problem}."));
                let reply = Reply { text, thinking: None, calls: Vec::new(), stop: Stop::EndTurn, ..reply };
                return Played { problem: Some(problem), answer: Answer::Whole(reply), ..played };
            }
        }
    }
    let answer = match fault {
        Some(Fault::Cut) => Answer::Cut(reply),
        Some(Fault::ErrorEvent(ErrorEvent { message })) => {
            let message = message.clone().unwrap_or_else(|| "Overloaded".to_owned());
            Answer::Broken(reply, Refusal { status: api.overloaded(), message, retry_after_ms: None })
        }
        _ => Answer::Whole(reply),
    };
    Played { answer, ..played }
}

/// How often a turn was met before, at the same place of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    /// With its fault, since it was played without.
    pub faults: u32,
    /// Played, whole or in part.
    pub played: usize,
}

impl Played {
    /// An answer without more to say of it.
    pub fn of(what: What, answer: Answer) -> Self {
        let delay = std::time::Duration::ZERO;
        Self { what, turn: None, sub_agent: None, fault: false, without_prompt: false, problem: None, delay, answer }
    }
}

/// Why a turn ends; a fault that does not come any more says nothing of it.
fn stop_of(turn: &Turn, fault: Option<&Fault>) -> Stop {
    if fault.is_some() { turn.stop() } else { Turn { fault: None, ..turn.clone() }.stop() }
}

/// A few words, or the plainest value of the form that is asked for.
fn aside(api: Api, asked: &Asked) -> Reply {
    let forced = asked.forced.as_ref().and_then(|name| asked.tools.iter().find(|tool| tool.name == *name));
    if let Some(tool) = forced {
        let input = sample(&tool.schema);
        let call =
            super::Call { call: format!("{}aside", api.call_prefix()), kind: "tool", ..tools::made(tool, input) };
        return Reply { calls: vec![call], stop: Stop::ToolCalls, ..Reply::default() };
    }
    let text = asked.format.as_ref().map_or_else(|| NEUTRAL.to_owned(), |schema| sample(schema).to_string());
    Reply { text: Some(text), ..Reply::default() }
}

/// Whether a request is made beside the conversation: for its title, for a summary, to judge a call, to see whether a
/// key works.
fn is_aside(script: &Script, asked: &Asked, prompts: &[String]) -> bool {
    let toolless = asked.tools.is_empty() && script.without_tools == WithoutTools::Aside;
    toolless || asked.beside || asked.forced.is_some() || beside::is_said(asked, prompts, &script.aside)
}

fn refused(fault: &Fault, api: Api) -> Option<Refusal> {
    match fault {
        Fault::HttpError(HttpError { status, message, retry_after }) => Some(Refusal {
            status: *status,
            message: message.clone().unwrap_or_else(|| usual_message(*status).to_owned()),
            retry_after_ms: retry_after.map(|time| u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX)),
        }),
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
    /// The status with which it says that it is overloaded.
    pub fn overloaded(self) -> u16 {
        if self == Api::AnthropicMessages { 529 } else { 503 }
    }

    fn call_prefix(self) -> &'static str {
        if self == Api::AnthropicMessages { "toolu_" } else { "call_" }
    }
}
