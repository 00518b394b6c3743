//! Makes the shape of a trace: collects the events, and replaces values that vary by chance at the end.

use std::collections::HashMap;

use serde_json::Value;

use super::provenance::{Form, Id, Moment, Provenance, is_generated};
use super::redactions::{Numbering, Redactions};
use super::{Body, Call, Item, Range, Shape, value};
use crate::snapshot::settings::{SnapshotSettings, SnapshotText};
use crate::trace::amount::Amount;
use crate::trace::usage::UsageTotal;
use crate::trace::view;
use crate::trace::{
    Body as EventBody, CallStatus, Event, FileDiff, Header, Location, PermissionOutcome, PlanEntry, Role, Stop,
    StopReason, ToolKind,
};

/// The maximum depth of nested sub-agents; deeper ones are listed at the end.
const MAX_AGENT_DEPTH: usize = 16;

/// The maximum bytes of an input that are searched for the command that produced the output.
const MAX_COMMAND_BYTES: usize = 1 << 16;

/// An observer of a trace, which collects the data that a shape needs.
#[derive(Debug, Default)]
pub struct Watching {
    speakers: HashMap<Option<String>, Speaker>,
    /// Speakers in the order of their first event.
    order: Vec<Option<String>>,
    calls: Vec<SeenCall>,
    by_id: HashMap<String, usize>,
    requests: Vec<String>,
    provenance: Provenance,
    usage: UsageTotal,
    stop: Option<(Stop, u64)>,
}

/// The actions of one speaker, in order.
#[derive(Debug, Default)]
struct Speaker {
    seen: Vec<Seen>,
    /// The number of the last step, and its position in `seen`.
    step: Option<(u64, usize)>,
}

#[derive(Debug)]
enum Seen {
    Message(Role, String, u64),
    Thought(String, u64),
    Plan(Vec<PlanEntry>, u64),
    Step(Vec<usize>),
}

#[derive(Debug)]
struct SeenCall {
    id: String,
    kind: ToolKind,
    name: Option<String>,
    title: Option<String>,
    input: Option<Input>,
    locations: Vec<Location>,
    /// The command that produces the output, as far as the agent shows it, until the output is there.
    command: String,
    status: CallStatus,
    exit_code: Option<i64>,
    changes: Vec<FileDiff>,
    asked: Vec<PermissionOutcome>,
    /// The time of the first call of the step: the agent then knew no result of the step.
    step_start: Moment,
    /// The values in the result.
    produced: Vec<Id>,
    events: Vec<u64>,
}

/// The arguments of a call. Most are an object with few keys, for which a map would take ten times as much memory.
#[derive(Debug)]
enum Input {
    /// An object that is not empty.
    Object(Box<[(Box<str>, Value)]>),
    Other(Value),
}

impl Input {
    fn of(value: &Value) -> Self {
        match value {
            Value::Object(map) if !map.is_empty() => {
                let pairs = map.iter().map(|(key, value)| (key.as_str().into(), value.clone()));
                Self::Object(pairs.collect())
            }
            other => Self::Other(other.clone()),
        }
    }
}

/// Returns the moment of an event. Between two events there is room for values that existed before the second.
fn moment(seq: u64) -> Moment {
    seq.saturating_add(1).saturating_mul(2)
}

impl Watching {
    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        let seq = event.seq;
        self.usage.event(event);
        match &event.body {
            EventBody::Message(message) => {
                // The prompt of a sub-agent is in the call that starts it.
                if message.role == Role::Agent || event.parent.is_none() {
                    self.of(event).seen.push(Seen::Message(message.role, message.text.clone(), seq));
                }
            }
            EventBody::Thought { text } => {
                let text = text.clone();
                self.of(event).seen.push(Seen::Thought(text, seq));
            }
            EventBody::Plan { entries } => {
                let entries = entries.clone();
                self.of(event).seen.push(Seen::Plan(entries, seq));
            }
            EventBody::ToolCall(call) => {
                let number = self.calls.len();
                let speaker = self.of(event);
                let open =
                    speaker.step.filter(|(step, _)| *step == call.step).and_then(|(_, at)| speaker.seen.get_mut(at));
                let first = match open {
                    Some(Seen::Step(calls)) => {
                        calls.push(number);
                        calls.first().copied()
                    }
                    _ => {
                        speaker.step = Some((call.step, speaker.seen.len()));
                        speaker.seen.push(Seen::Step(vec![number]));
                        None
                    }
                };
                let step_start =
                    first.and_then(|first| self.calls.get(first)).map_or(moment(seq), |first| first.step_start);
                self.by_id.insert(call.call.clone(), number);
                self.calls.push(SeenCall {
                    id: call.call.clone(),
                    kind: call.kind,
                    name: call.name.clone(),
                    title: call.title.clone(),
                    input: call.input.as_ref().map(Input::of),
                    locations: call.locations.clone(),
                    command: command_of(call.input.as_ref(), call.title.as_deref()),
                    status: CallStatus::Unfinished,
                    exit_code: None,
                    changes: Vec::new(),
                    asked: Vec::new(),
                    step_start,
                    produced: Vec::new(),
                    events: call_events(seq),
                });
            }
            EventBody::PermissionRequest(request) => {
                self.requests.push(request.request.clone());
                if let Some(call) = self.call(&request.call) {
                    call.events.push(seq);
                }
            }
            EventBody::PermissionResponse(response) => {
                if let Some(call) = self.call(&response.call) {
                    call.asked.push(response.outcome);
                    call.events.push(seq);
                    if let (PermissionOutcome::Allowed, Some(input)) = (response.outcome, &response.updated_input) {
                        call.input = Some(Input::of(input));
                        call.command = command_of(Some(input), call.title.as_deref());
                    }
                }
            }
            EventBody::ToolResult(result) => {
                let Some(call) = self.by_id.get(&result.call).and_then(|number| self.calls.get_mut(*number)) else {
                    return;
                };
                (call.status, call.exit_code) = (result.status, result.exit_code);
                call.events.push(seq);
                let command = std::mem::take(&mut call.command);
                if call.input.is_none() {
                    call.changes.clone_from(&result.diffs);
                }
                // The earlier content of a changed file existed before the call. The text of a failed change may be in
                // no file.
                let old = result
                    .diffs
                    .iter()
                    .filter(|_| result.status == CallStatus::Ok)
                    .filter_map(|diff| diff.old.as_deref());
                for text in old {
                    call.produced.extend(self.provenance.produced(text, "", call.step_start - 1));
                }
                if let Some(output) = &result.output {
                    call.produced.extend(self.provenance.produced(output, &command, moment(seq)));
                }
            }
            EventBody::Usage(_) => {}
            // A notice depends on when its line arrived.
            EventBody::Notice { .. } => {}
            EventBody::Stop(stop) => self.stop = Some((stop.clone(), seq)),
        }
    }

    fn of(&mut self, event: &Event) -> &mut Speaker {
        let order = &mut self.order;
        self.speakers.entry(event.parent.clone()).or_insert_with_key(|speaker| {
            order.push(speaker.clone());
            Speaker::default()
        })
    }

    fn call(&mut self, id: &str) -> Option<&mut SeenCall> {
        let number = *self.by_id.get(id)?;
        self.calls.get_mut(number)
    }

    /// Determines which values the environment produced first: compares the values in the agent's calls with the values in
    /// tool results.
    fn provenance(&mut self, header: &Header) -> Provenance {
        let mut provenance = std::mem::take(&mut self.provenance);
        for call in &mut self.calls {
            if is_generated(&call.id) {
                call.produced.extend(provenance.given(Form::Call, &call.id));
            }
        }
        for request in self.requests.iter().filter(|request| is_generated(request)) {
            provenance.given(Form::Call, request);
        }
        // A prompt states the current day.
        if let Some(day) = header.started.as_deref().and_then(|started| started.get(..10)) {
            provenance.given(Form::Date, day);
        }
        for seen in self.speakers.values().flat_map(|speaker| &speaker.seen) {
            match seen {
                // A prompt belongs to the case, so it is the same in each trial, whenever it is sent.
                Seen::Message(Role::User, text, _) => provenance.mention(text, "", 0),
                Seen::Message(_, text, seq) | Seen::Thought(text, seq) => provenance.mention(text, "", moment(*seq)),
                Seen::Plan(entries, seq) => {
                    entries.iter().for_each(|it| provenance.mention(&it.text, "", moment(*seq)))
                }
                Seen::Step(..) => {}
            }
        }
        for seen in &self.calls {
            let mut mention = |key: &str, text: &str| provenance.mention(text, key, seen.step_start);
            match &seen.input {
                Some(Input::Object(pairs)) => {
                    for (key, value) in pairs {
                        mention("", key);
                        mention_in(value, key, 1, &mut mention);
                    }
                }
                Some(Input::Other(input)) => mention_in(input, "", 0, &mut mention),
                None => {
                    let title = seen.title.iter().map(String::as_str);
                    let places = seen.locations.iter().map(|place| place.path.as_str());
                    let changes = seen.changes.iter().flat_map(|it| [Some(it.path.as_str()), it.new.as_deref()]);
                    title
                        .chain(places)
                        .chain(changes.flatten())
                        .for_each(|text| provenance.mention(text, "", seen.step_start));
                }
            }
        }
        provenance.complete();
        provenance
    }

    /// Returns the shape of the events.
    pub fn shape(mut self, header: &Header, settings: &SnapshotSettings) -> Shape {
        let provenance = self.provenance(header);
        let redactions = Redactions::new(header, provenance, &settings.normalise);
        let workspace = header.cwd.clone();
        let stop = self.stop.take();
        // A lower bound does not show the true figure.
        let exact = |figure: Option<Amount<u64>>| figure.and_then(Amount::exact);
        let (tokens, output_tokens) = (exact(self.usage.tokens()), exact(self.usage.output_tokens()));
        let order = std::mem::take(&mut self.order);
        self.by_id = HashMap::new();
        let mut making = Making { seen: self, redactions, text: settings.text, workspace };
        let mut items = making.items(&None, 0);
        // The call that started these sub-agents is unknown.
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

/// Returns the events of a call that was just announced, with room for its result.
fn call_events(seq: u64) -> Vec<u64> {
    let mut events = Vec::with_capacity(2);
    events.push(seq);
    events
}

/// Returns the command that produces a call's output, as far as the agent shows it.
fn command_of(input: Option<&Value>, title: Option<&str>) -> String {
    let command = view::command(input).or_else(|| input.map(view::canonical));
    let mut text = command.unwrap_or_default();
    if text.len() > MAX_COMMAND_BYTES {
        let end = (0..=MAX_COMMAND_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
    }
    if let Some(title) = title {
        text.push('\n');
        text.push_str(title);
    }
    text
}

/// The maximum depth of an input; deeper values are taken as one text.
const MAX_INPUT_DEPTH: usize = 32;

/// Calls `mention` with each text of an input and its key. Keys are texts, too.
fn mention_in(input: &Value, key: &str, depth: usize, mention: &mut impl FnMut(&str, &str)) {
    match input {
        Value::String(text) => mention(key, text),
        Value::Array(list) if depth < MAX_INPUT_DEPTH => {
            list.iter().for_each(|it| mention_in(it, key, depth + 1, mention))
        }
        Value::Object(map) if depth < MAX_INPUT_DEPTH => {
            for (key, value) in map {
                mention("", key);
                mention_in(value, key, depth + 1, mention);
            }
        }
        other => mention(key, &view::canonical(other)),
    }
}

/// Returns the reason why a shape of a session with this header cannot show any action of the agent, or `None` if it
/// can. If a harness shows its calls, even a session without calls shows that no call was made.
pub fn shows_nothing(header: &Header, settings: &SnapshotSettings) -> Option<&'static str> {
    (!header.capabilities.tracing && settings.text == SnapshotText::None).then_some(
        "has nothing to compare: the harness shows no tool calls, and the case keeps no texts; write `snapshot: {text: full}` or \
         `{text: digest}` in the case",
    )
}

/// The arguments of a call by path, and its outcome.
type Details = Vec<(String, String)>;

struct Making<'a> {
    seen: Watching,
    redactions: Redactions<'a>,
    text: SnapshotText,
    workspace: Option<String>,
}

impl Making<'_> {
    /// Takes the actions of a speaker as items; each action is taken once.
    fn items(&mut self, speaker: &Option<String>, depth: usize) -> Vec<Item> {
        let seen = self.seen.speakers.remove(speaker).unwrap_or_default().seen;
        let mut items = Vec::with_capacity(seen.len());
        for seen in seen {
            let (body, events) = match seen {
                Seen::Message(Role::User, text, seq) => (Some(Body::User(self.kept(&text))), vec![seq]),
                Seen::Message(Role::Agent, text, seq) => (self.kept(&text).map(Body::Says), vec![seq]),
                Seen::Thought(text, seq) => (self.kept(&text).map(Body::Thinks), vec![seq]),
                Seen::Plan(entries, seq) => (self.plan(&entries), vec![seq]),
                Seen::Step(calls) => {
                    let calls = self.step(&calls, depth);
                    let mut events = Vec::with_capacity(calls.iter().map(|call| call.events.len()).sum());
                    calls.iter().for_each(|call| events.extend_from_slice(&call.events));
                    (Some(Body::Step(calls)), events)
                }
            };
            items.extend(body.map(|body| Item { body, events }));
        }
        items
    }

    /// Returns the calls of a step, sorted: the calls were made at once, so their order means nothing. Numbers follow
    /// the sorted order, and so do not depend on which call ended first.
    fn step(&mut self, calls: &[usize], depth: usize) -> Vec<Call> {
        let sketch = |n: &usize| {
            let seen = self.seen.calls.get(*n)?;
            self.redactions.forget_uses();
            let details = self.details(seen, Numbering::Later);
            let sketch = format!("{} {:?} {:?}", seen.kind, seen.name, details);
            // Without a number, the details are what they will be.
            Some((sketch, *n, Some(details).filter(|_| !self.redactions.uses_numbers())))
        };
        // A call alone needs no order.
        let mut order: Vec<(String, usize, Option<Details>)> = match calls {
            [only] => vec![(String::new(), *only, None)],
            several => several.iter().filter_map(sketch).collect(),
        };
        order.sort();
        let mut made: Vec<Call> = Vec::with_capacity(order.len());
        for (_, n, details) in &mut order {
            let Some(seen) = self.seen.calls.get(*n) else { continue };
            let details = details.take().unwrap_or_else(|| self.details(seen, Numbering::Next));
            let Some(seen) = self.seen.calls.get_mut(*n) else { continue };
            // Each call is taken once, so its arguments are not needed any more: a long session has many.
            (seen.input, seen.changes) = (None, Vec::new());
            let (name, events) = (seen.name.take(), std::mem::take(&mut seen.events));
            made.push(Call { kind: seen.kind, name, details, inner: Vec::new(), events });
        }
        for (call, (_, n, _)) in made.iter_mut().zip(&order) {
            let id = self.seen.calls.get_mut(*n).map(|seen| std::mem::take(&mut seen.id));
            call.inner = if depth < MAX_AGENT_DEPTH { self.items(&id, depth + 1) } else { Vec::new() };
        }
        for equal in order.chunk_by(|a, b| a.0 == b.0) {
            let of = |n: &usize| self.seen.calls.get(*n).map(|seen| seen.produced.as_slice()).unwrap_or_default();
            match equal {
                [(_, only, _)] => self.redactions.take(of(only)),
                several => self.redactions.take_equal(several.iter().map(|(_, n, _)| of(n).to_vec()).collect()),
            }
        }
        made.sort_by_cached_key(|call| format!("{}\n{:?}\n{:?}", call.label(), call.details, bodies(&call.inner)));
        made
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

    /// Returns the arguments and the outcome of a call.
    fn details(&self, seen: &SeenCall, numbering: Numbering) -> Details {
        let mut details = Vec::new();
        let argument = |text: &str| self.redactions.argument("", text, numbering);
        let replaced = |key: &str, text: &str| self.redactions.argument(key, text, numbering);
        match &seen.input {
            Some(Input::Object(pairs)) => details = value::leaves_of(pairs, &replaced),
            Some(Input::Other(input)) => {
                details = value::leaves(input, &replaced);
                details.retain(|leaf| leaf.1 != "{}" || leaf.0 != "@input");
            }
            None => {
                // If no arguments were sent, only the title and the files of the call are known.
                details
                    .extend(seen.title.as_deref().map(|title| ("@title".to_owned(), value::of_text(&argument(title)))));
                for path in view::paths(None, &seen.locations, &[], self.workspace.as_deref()) {
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
            details.push(("@asked".to_owned(), outcome.word().to_owned()));
        }
        if seen.status != CallStatus::Ok {
            details.push(("@status".to_owned(), seen.status.word().to_owned()));
        }
        if let Some(code) = seen.exit_code.filter(|code| *code != 0) {
            details.push(("@exit".to_owned(), code.to_string()));
        }
        details
    }

    fn stop(&self, stop: &Stop) -> Body {
        use StopReason::{Idle, MaxBudget, MaxTurns, Other, TimedOut};
        // The limit that was reached, or the agent's own word; the text of an error is prose.
        let says = matches!(stop.reason, MaxTurns | MaxBudget | TimedOut | Idle | Other);
        let detail = stop.detail.as_deref().filter(|_| says);
        Body::Stop(stop.reason.word().to_owned(), detail.map(|text| value::on_one_line(&self.redactions.prose(text))))
    }

    fn kept(&self, text: &str) -> Option<String> {
        match self.text {
            SnapshotText::None => None,
            SnapshotText::Full => Some(value::of_text(self.redactions.prose(text).trim())),
            SnapshotText::Digest => Some(digest(self.redactions.prose(text).trim())),
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
