//! Plays a script: decides the answer to each request, and counts how often each turn was played.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::api::{Api, StreamOptions};
use super::play::{Before, Played, PlayedAnswer, Scene, play};
use super::script::Script;
use super::script_line::ScriptLine;
use super::{ModelRequest, Refusal, Reply};

/// The maximum number of remembered places in conversations.
const MAX_PLACES: usize = 100_000;

/// A script that is played to an agent.
pub struct Player {
    pub script: Script,
    /// The agent's working directory, for tools that need absolute paths. Default: as stated in the requests.
    pub workspace: Option<String>,
    /// The prompts of the case: a conversation without any of them does not belong to the case.
    pub prompts: Vec<String>,
    before: Mutex<HashMap<TurnPlace, Before>>,
}

/// The place of a turn in a conversation: a repeated request has the same place.
type TurnPlace = (Option<usize>, usize, usize, blake3::Hash);

/// The answer of a script.
pub(super) struct Scripted {
    /// The HTTP status.
    pub(super) status: u16,
    /// The answer as JSON.
    pub(super) whole: Value,
    /// The events of a streamed answer; `None` if it is not streamed.
    pub(super) events: Option<Vec<String>>,
    /// True if the answer breaks off.
    pub(super) cut: bool,
    /// True if the answer breaks off, or an error follows its beginning.
    pub(super) breaks: bool,
    /// The pause before a retry, in milliseconds.
    pub(super) retry_after_ms: Option<u64>,
    /// The pause before the answer, and the time that its stream takes.
    pub(super) pace: (Duration, Duration),
    /// The line of the log.
    pub(super) line: ScriptLine,
}

impl Player {
    /// Makes a player. Blank prompts are ignored.
    pub fn new(script: Script, workspace: Option<String>, prompts: Vec<String>) -> Self {
        let prompts = prompts.into_iter().filter(|prompt| !prompt.trim().is_empty()).collect();
        Self { script, workspace, prompts, before: Mutex::default() }
    }

    /// Returns the answer to a request for a model's answer. `n` makes the ids of answers differ.
    pub(super) fn answer(&self, api: Api, path: &str, body: &Value, n: u64) -> Scripted {
        let asked = api.asked(path, body);
        let played = self.next(api, &asked);
        let line = line_of(&asked, &played);
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let options = api.stream_options(query, &asked);
        let Played { answer, delay, takes, .. } = played;
        let id = line.turn.map_or_else(|| "aside".to_owned(), |turn| turn.to_string());
        let named = |mut reply: Reply| {
            // The numbers of answers count from 0.
            reply.id = format!("scripted_{id}_{}", n.saturating_sub(1));
            reply.created = jiff::Timestamp::now().as_second();
            reply
        };
        let scripted = match answer {
            PlayedAnswer::Refused(refusal) => refused(api, &refusal, line),
            PlayedAnswer::Broken(_, refusal) if !asked.stream => refused(api, &refusal, line),
            PlayedAnswer::Whole(reply) => whole(api, &named(reply), &asked, options, line),
            PlayedAnswer::Cut(reply) => broken(api, &named(reply), &asked, options, None, line),
            PlayedAnswer::Broken(reply, refusal) => broken(api, &named(reply), &asked, options, Some(&refusal), line),
        };
        Scripted { pace: (delay, takes), ..scripted }
    }

    fn next(&self, api: Api, asked: &ModelRequest) -> Played {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let (sub_agent, _) = self.script.turns_for(&asked.opening);
        let place = (sub_agent, asked.model_turns, asked.results.len(), blake3::hash(asked.opening.as_bytes()));
        if before.len() >= MAX_PLACES {
            // The dropped turns may be played again, but by then the conversation is broken.
            before.clear();
        }
        let earlier = before.entry(place).or_default();
        let scene = Scene { workspace: self.workspace.as_deref(), prompts: &self.prompts };
        let played = play(&self.script, api, asked, scene, *earlier);
        if played.turn.is_some() {
            let refused = matches!(played.answer, PlayedAnswer::Refused(_));
            *earlier = Before {
                faults: if played.fault.is_some() { earlier.faults.saturating_add(1) } else { 0 },
                played: earlier.played + usize::from(!refused),
            };
        }
        played
    }
}

fn line_of(asked: &ModelRequest, played: &Played) -> ScriptLine {
    let reply = match &played.answer {
        PlayedAnswer::Whole(reply) | PlayedAnswer::Cut(reply) | PlayedAnswer::Broken(reply, _) => Some(reply),
        PlayedAnswer::Refused(_) => None,
    };
    let line = ScriptLine {
        played: played.what,
        turn: played.turn,
        alternative: played.alternative,
        sub_agent: played.sub_agent,
        tools: asked.tools.iter().map(|tool| tool.name.clone()).collect(),
        model_turns: Some(asked.model_turns),
        tool_results: Some(asked.results.len()),
        calls: reply.map(|reply| reply.calls.clone()).unwrap_or_default(),
        fault: played.fault.map(str::to_owned),
        without_prompt: played.without_prompt,
        problem: played.problem.clone(),
    };
    line.bounded()
}

fn whole(api: Api, reply: &Reply, asked: &ModelRequest, options: StreamOptions, line: ScriptLine) -> Scripted {
    let whole = api.whole(reply);
    let events = asked.stream.then(|| api.events(&whole, options));
    Scripted {
        status: 200,
        whole,
        events,
        cut: false,
        breaks: false,
        retry_after_ms: None,
        pace: Default::default(),
        line,
    }
}

/// Returns an answer that breaks off, or that an error follows.
fn broken(
    api: Api,
    reply: &Reply,
    asked: &ModelRequest,
    options: StreamOptions,
    error: Option<&Refusal>,
    line: ScriptLine,
) -> Scripted {
    let whole = api.whole(reply);
    let events = if asked.stream {
        Some(api.broken(&whole, options, error))
    } else {
        let text = whole.to_string();
        Some(vec![text.get(..text.floor_char_boundary(text.len() / 2)).unwrap_or("").to_owned()])
    };
    Scripted {
        status: 200,
        whole,
        events,
        cut: error.is_none(),
        breaks: true,
        retry_after_ms: None,
        pace: Default::default(),
        line,
    }
}

fn refused(api: Api, refusal: &Refusal, line: ScriptLine) -> Scripted {
    Scripted {
        status: refusal.status,
        whole: api.error(refusal),
        events: None,
        cut: false,
        breaks: false,
        retry_after_ms: refusal.retry_after_ms,
        pace: Default::default(),
        line,
    }
}
