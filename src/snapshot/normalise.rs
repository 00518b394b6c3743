//! From a Trace to its Shape: the events go by, and what differs by chance is replaced when all of them are known.

use std::collections::HashMap;

use super::replace::{Replacing, names_in};
use super::{Body, Call, Item, Range, Shape, value};
use crate::case::{SnapshotSettings, SnapshotText};
use crate::trace::usage::UsageTotal;
use crate::trace::view;
use crate::trace::{
    Body as EventBody, CallStatus, Event, FileDiff, Header, PermissionOutcome, PlanEntry, Role, Stop, StopReason,
    ToolCall,
};

/// Sub-agents of sub-agents further down than this stand at the end.
const DEEPEST: usize = 16;

/// So many names of temporary files are kept from what programs told.
const MOST_TOLD: usize = 200;

/// Watches a Trace go by, and keeps what a Shape needs of it.
#[derive(Debug, Default)]
pub struct Watching {
    speakers: HashMap<Option<String>, Vec<Seen>>,
    /// Speakers in the order in which they were first heard.
    order: Vec<Option<String>>,
    calls: Vec<SeenCall>,
    by_id: HashMap<String, usize>,
    ids: Vec<String>,
    /// Names of temporary files that programs told, with how many calls there were by then.
    told: Vec<(String, usize)>,
    usage: UsageTotal,
    stop: Option<(Stop, u64)>,
}

#[derive(Debug)]
enum Seen {
    Message(Role, String, u64),
    Thought(String, u64),
    Plan(Vec<PlanEntry>, u64),
    Step(u64, Vec<usize>),
}

#[derive(Debug)]
struct SeenCall {
    call: ToolCall,
    status: CallStatus,
    exit_code: Option<i64>,
    changes: Vec<FileDiff>,
    asked: Vec<PermissionOutcome>,
    events: Vec<u64>,
}

impl Watching {
    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        let seq = event.seq;
        match &event.body {
            EventBody::Message(message) => {
                // What a sub-agent is told stands in the call that starts it.
                if message.role == Role::Agent || event.parent.is_none() {
                    self.of(event).push(Seen::Message(message.role, message.text.clone(), seq));
                }
            }
            EventBody::Thought { text } => {
                let text = text.clone();
                self.of(event).push(Seen::Thought(text, seq));
            }
            EventBody::Plan { entries } => {
                let entries = entries.clone();
                self.of(event).push(Seen::Plan(entries, seq));
            }
            EventBody::ToolCall(call) => {
                let number = self.calls.len();
                let seen = self.of(event);
                let open = seen.iter_mut().rev().find_map(|it| match it {
                    Seen::Step(step, calls) if *step == call.step => Some(calls),
                    _ => None,
                });
                match open {
                    Some(calls) => calls.push(number),
                    None => seen.push(Seen::Step(call.step, vec![number])),
                }
                self.by_id.insert(call.call.clone(), number);
                self.ids.push(call.call.clone());
                self.calls.push(SeenCall {
                    call: call.clone(),
                    status: CallStatus::Unfinished,
                    exit_code: None,
                    changes: Vec::new(),
                    asked: Vec::new(),
                    events: vec![seq],
                });
            }
            EventBody::PermissionRequest(request) => {
                self.ids.push(request.request.clone());
                if let Some(call) = self.call(&request.call) {
                    call.events.push(seq);
                }
            }
            EventBody::PermissionResponse(response) => {
                if let Some(call) = self.call(&response.call) {
                    call.asked.push(response.outcome);
                    call.events.push(seq);
                    if let (PermissionOutcome::Allowed, Some(input)) = (response.outcome, &response.updated_input) {
                        call.call.input = Some(input.clone());
                    }
                }
            }
            EventBody::ToolResult(result) => {
                let room = MOST_TOLD.saturating_sub(self.told.len());
                let names = names_in(result.output.as_deref().unwrap_or_default()).take(room);
                self.told.extend(names.map(|name| (name.to_owned(), self.calls.len())));
                if let Some(call) = self.call(&result.call) {
                    (call.status, call.exit_code) = (result.status, result.exit_code);
                    call.events.push(seq);
                    if call.call.input.is_none() {
                        call.changes.clone_from(&result.diffs);
                    }
                }
            }
            EventBody::Usage(usage) => self.usage.add(usage),
            // What the engine could not take depends on when it came.
            EventBody::Notice { .. } => {}
            EventBody::Stop(stop) => self.stop = Some((stop.clone(), seq)),
        }
    }

    fn of(&mut self, event: &Event) -> &mut Vec<Seen> {
        let speaker = event.parent.clone();
        if !self.speakers.contains_key(&speaker) {
            self.order.push(speaker.clone());
        }
        self.speakers.entry(speaker).or_default()
    }

    fn call(&mut self, id: &str) -> Option<&mut SeenCall> {
        let number = *self.by_id.get(id)?;
        self.calls.get_mut(number)
    }

    /// The names that programs told before the user or the agent did.
    fn told_first(&self) -> Vec<&str> {
        if self.told.is_empty() {
            return Vec::new();
        }
        let inputs: Vec<String> =
            self.calls.iter().map(|seen| seen.call.input.as_ref().map(view::canonical).unwrap_or_default()).collect();
        let prompts: Vec<&str> = self
            .speakers
            .get(&None)
            .into_iter()
            .flatten()
            .filter_map(|seen| match seen {
                Seen::Message(Role::User, text, _) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let was_named = |name: &str, calls: usize| {
            inputs.iter().take(calls).any(|input| input.contains(name)) || prompts.iter().any(|it| it.contains(name))
        };
        self.told.iter().filter(|(name, calls)| !was_named(name, *calls)).map(|it| it.0.as_str()).collect()
    }

    /// The Shape of what went by.
    pub fn shape(mut self, header: &Header, settings: &SnapshotSettings) -> Shape {
        let ids = std::mem::take(&mut self.ids);
        let inputs = self.calls.iter().filter_map(|seen| seen.call.input.as_ref());
        let told = self.told_first();
        let told = told.into_iter();
        let replacing = Replacing::new(header, ids.iter().map(String::as_str), inputs, told, &settings.normalise);
        let workspace = header.cwd.clone();
        let stop = self.stop.take();
        let (tokens, output_tokens) = (self.usage.tokens(), self.usage.output_tokens());
        let order = std::mem::take(&mut self.order);
        let mut making = Making { seen: self, replacing, text: settings.text, workspace };
        let mut items = making.items(&None, 0);
        // Of these nobody knows the call that started them.
        for speaker in order {
            items.extend(making.items(&speaker, 0));
        }
        if let Some((stop, seq)) = stop {
            items.push(Item { body: making.stop(&stop), events: vec![seq] });
        }
        let range = |figure: Option<u64>| figure.map(Range::of);
        Shape { items, tokens: range(tokens), output_tokens: range(output_tokens) }
    }
}

/// Why a Shape of such a session could show nothing of what the agent did, if it could not. Where the harness shows its calls
/// it is a statement that there are none.
pub fn shows_nothing(header: &Header, settings: &SnapshotSettings) -> Option<&'static str> {
    (!header.capabilities.tracing && settings.text == SnapshotText::None).then_some(
        "has nothing to compare: the harness shows no tool calls, and the case keeps no texts; write `snapshot: {text: full}` or \
         `{text: digest}` in the case",
    )
}

struct Making<'a> {
    seen: Watching,
    replacing: Replacing<'a>,
    text: SnapshotText,
    workspace: Option<String>,
}

impl Making<'_> {
    /// What one speaker did; each is taken once.
    fn items(&mut self, speaker: &Option<String>, depth: usize) -> Vec<Item> {
        let mut items = Vec::new();
        for seen in self.seen.speakers.remove(speaker).unwrap_or_default() {
            let (body, events) = match seen {
                Seen::Message(Role::User, text, seq) => (Some(Body::User(self.kept(&text))), vec![seq]),
                Seen::Message(Role::Agent, text, seq) => (self.kept(&text).map(Body::Says), vec![seq]),
                Seen::Thought(text, seq) => (self.kept(&text).map(Body::Thinks), vec![seq]),
                Seen::Plan(entries, seq) => (self.plan(&entries), vec![seq]),
                Seen::Step(_, calls) => {
                    let mut calls: Vec<Call> = calls.into_iter().filter_map(|n| self.made(n, depth)).collect();
                    // They were made at once, so their order means nothing.
                    calls.sort_by_cached_key(|call| {
                        format!("{}\n{:?}\n{:?}", call.label(), call.details, bodies(&call.inner))
                    });
                    let events = calls.iter().flat_map(|call| call.events.iter().copied()).collect();
                    (Some(Body::Step(calls)), events)
                }
            };
            items.extend(body.map(|body| Item { body, events }));
        }
        items
    }

    fn plan(&self, entries: &[PlanEntry]) -> Option<Body> {
        let lines: Option<Vec<(String, String)>> = entries
            .iter()
            .map(|entry| {
                let status = entry.status.as_deref().unwrap_or("pending");
                Some((value::of_key(status), self.kept(&entry.text)?))
            })
            .collect();
        lines.filter(|lines| !lines.is_empty()).map(Body::Plan)
    }

    fn made(&mut self, number: usize, depth: usize) -> Option<Call> {
        let seen = self.seen.calls.get(number)?;
        let mut details = Vec::new();
        let argument = |text: &str| self.replacing.argument(text);
        match &seen.call.input {
            Some(input) => {
                let leaves = value::leaves(input, &|key, text| self.replacing.argument_of(key, text));
                details.extend(leaves.into_iter().filter(|leaf| leaf.1 != "{}" || leaf.0 != "@input"));
            }
            None => {
                // Where no arguments are told, the line for people and the files are all that is known of them.
                details.extend(
                    seen.call.title.as_deref().map(|title| ("@title".to_owned(), value::of_text(&argument(title)))),
                );
                for path in view::paths(None, &seen.call.locations, &[], self.workspace.as_deref()) {
                    details.push(("@path".to_owned(), value::of_text(&argument(&path))));
                }
                for change in &seen.changes {
                    let path = argument(&view::relative(&change.path, self.workspace.as_deref()));
                    let what = match &change.new {
                        Some(text) => digest(&argument(text)),
                        None => "deleted".to_owned(),
                    };
                    details.push((format!("@change {}", value::of_path(&path)), what));
                }
            }
        }
        for outcome in &seen.asked {
            details.push(("@asked".to_owned(), outcome_word(*outcome).to_owned()));
        }
        if seen.status != CallStatus::Ok {
            details.push(("@status".to_owned(), seen.status.word().to_owned()));
        }
        if let Some(code) = seen.exit_code.filter(|code| *code != 0) {
            details.push(("@exit".to_owned(), code.to_string()));
        }
        let (kind, name) = (seen.call.kind, seen.call.name.as_deref().map(argument));
        let (id, events) = (seen.call.call.clone(), seen.events.clone());
        let inner = if depth < DEEPEST { self.items(&Some(id), depth + 1) } else { Vec::new() };
        Some(Call { kind, name, details, inner, events })
    }

    fn stop(&self, stop: &Stop) -> Body {
        use StopReason::{Idle, MaxBudget, MaxTurns, Other, TimedOut};
        // The limit that was reached, or the agent's own word; an error's text is prose.
        let says = matches!(stop.reason, MaxTurns | MaxBudget | TimedOut | Idle | Other);
        let detail = stop.detail.as_deref().filter(|_| says);
        Body::Stop(stop.reason.word().to_owned(), detail.map(|text| value::on_one_line(&self.replacing.prose(text))))
    }

    fn kept(&self, text: &str) -> Option<String> {
        match self.text {
            SnapshotText::None => None,
            SnapshotText::Full => Some(value::of_text(self.replacing.prose(text).trim())),
            SnapshotText::Digest => Some(digest(self.replacing.prose(text).trim())),
        }
    }
}

fn bodies(items: &[Item]) -> Vec<&Body> {
    items.iter().map(|item| &item.body).collect()
}

fn digest(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("digest {}", hash.get(..16).unwrap_or_default())
}

fn outcome_word(outcome: PermissionOutcome) -> &'static str {
    match outcome {
        PermissionOutcome::Allowed => "allowed",
        PermissionOutcome::Rejected => "rejected",
        PermissionOutcome::Cancelled => "cancelled",
    }
}
