//! `loops`: limits how often an agent repeats the same calls immediately. It keeps a few calls for each agent
//! or sub-agent.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::Grade;
use crate::judgement::Judgement;
use crate::text::plural;
use crate::trace::{Body, Event, Lost, ToolKind};

mod orders;
mod repeats;

use orders::Orders;
use repeats::{StepRuns, Worst};

/// The maximum number of calls in a block.
const MAX_BLOCK_CALLS: usize = 4;
/// The maximum number of events in the evidence of the grade.
const POINTED_AT: usize = 40;

/// A bound on immediate repetitions of the same calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a map such as `{max: 3}`")]
pub struct Loops {
    /// The maximum number of consecutive occurrences of a block of 1 to 4 calls, each of the same kind, name
    /// and input.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub max: u64,
}

impl GraderSpec for Loops {
    fn depends_on_loss(&self, lost: Lost) -> bool {
        // A call counts whatever its outcome is.
        !matches!(lost, Lost::Text | Lost::Speaker | Lost::Outcome)
    }

    fn fails_by_outcome(&self) -> bool {
        false
    }

    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        (self.max == 0).then(|| {
            "contradicts itself: a call counts itself, so `max: 0` allows none; write `max: 1` or more".to_owned()
        })
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(LoopsObserver {
            max: self.max,
            speakers: HashMap::new(),
            unsure: None,
            losses: Vec::new(),
            has_new_call: false,
        })
    }
}

/// A call, reduced to the parts that repetition depends on.
struct ComparedCall {
    seq: u64,
    /// A hash of the known facts. Calls with the same hash are interchangeable.
    same: u128,
    known: CallFacts,
    label: String,
}

/// The facts that decide whether two calls are equal.
struct CallFacts {
    /// Absent if the agent gave no known kind.
    kind: Option<ToolKind>,
    name: Option<String>,
    /// True if the call runs a command, which is the same whatever the tool is called.
    is_command: bool,
    /// The input, or the command from the title instead.
    input: Option<String>,
    /// The files that were shown, if the input was not.
    places: Option<String>,
}

impl CallFacts {
    fn of(call: &Subject<'_>) -> Self {
        let title_command = || call.command().seen().map(|command| format!("command {command}"));
        let input = call.input().map(|input| format!("input {input}")).or_else(title_command);
        let diffs = call.diffs().iter().map(|diff| format!("{} {:?} {:?}", diff.path, diff.old, diff.new));
        let places: Vec<String> = call.known_paths().iter().cloned().chain(diffs).collect();
        Self {
            kind: (!call.call.unknown_kind).then_some(call.call.kind),
            name: call.call.name.clone(),
            is_command: call.call.kind == ToolKind::Execute && call.command().seen().is_some(),
            input,
            places: (!places.is_empty()).then(|| places.join("\n")),
        }
    }

    /// Returns true if every fact was shown, so that equality with calls of which every fact was shown is known.
    fn is_complete(&self) -> bool {
        self.kind.is_some() && self.name.is_some() && self.input.is_some()
    }

    fn hash(&self) -> u128 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.kind.map_or("unknown", |kind| kind.word()).as_bytes());
        // Places matter only if the input is unknown.
        let places = if self.input.is_some() { &None } else { &self.places };
        for part in [&self.name, &self.input, places] {
            // An absent value differs from an empty one.
            hasher.update(&[u8::from(part.is_some())]);
            let part = part.as_deref().unwrap_or_default();
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().as_bytes().iter().take(16).fold(0, |hash, byte| hash << 8 | u128::from(*byte))
    }

    /// Returns whether two calls are equal. Calls without names may be of different tools, unless they run the same command.
    /// Equal calls of unknown kinds are of the same kind, because their tool is the same.
    fn is(&self, other: &CallFacts) -> Judgement {
        let equal = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => Judgement::from(one == other),
            _ => Judgement::Unknown,
        };
        let name = || match (&self.name, &other.name) {
            (None, None) if self.is_command && other.is_command => Judgement::True,
            (one, other) => equal(one, other),
        };
        // Calls on different files have different inputs; calls on the same files may have different inputs, too.
        let input = || match equal(&self.input, &other.input) {
            Judgement::Unknown if equal(&self.places, &other.places) == Judgement::False => Judgement::False,
            same => same,
        };
        let kind = match (self.kind, other.kind) {
            (Some(_), None) | (None, Some(_)) => Judgement::Unknown,
            (one, other) => Judgement::from(one == other),
        };
        kind.and(name).and(input)
    }
}

/// The calls that count as equal if the agent did not show everything.
#[derive(Clone, Copy)]
enum Equality {
    /// Calls that are equal whatever was not shown.
    Sure,
    /// Calls that may be equal.
    Possible,
}

impl Equality {
    fn holds(self, one: &ComparedCall, other: &ComparedCall) -> bool {
        let same = one.known.is(&other.known);
        match self {
            Equality::Sure => same.is_true(),
            Equality::Possible => same.may_be_true(),
        }
    }
}

/// The repetitions of one agent or sub-agent, under one meaning of equality.
#[derive(Clone)]
struct Repetitions {
    equality: Equality,
    /// Repetitions of calls, in the order within the steps that has the fewest.
    orders: Orders,
    /// Repetitions of whole steps, which need no order within the steps.
    steps: StepRuns,
}

impl Repetitions {
    /// Ends every run: something unknown comes before the next step.
    fn separate(&mut self) {
        self.orders.separate();
        self.steps.separate();
    }

    fn step(&mut self, calls: &[Arc<ComparedCall>]) {
        if calls.is_empty() {
            return;
        }
        self.orders.step(calls, self.equality);
        self.steps.step(calls, self.equality);
    }

    /// Returns the most frequent repetition that occurs in every order.
    fn at_least(&self) -> Option<&Worst> {
        self.orders.at_least().into_iter().chain(self.steps.worst()).reduce(worse)
    }

    /// Returns the most frequent repetition in the best order that was found.
    fn at_most(&self) -> Option<&Worst> {
        self.orders.at_most().into_iter().chain(self.steps.worst()).reduce(worse)
    }
}

/// Returns the more frequent repetition: of equally frequent ones, the first.
fn worse<'a>(one: &'a Worst, other: &'a Worst) -> &'a Worst {
    if other.times > one.times { other } else { one }
}

/// The calls of the main agent or a sub-agent.
struct Speaker {
    step: Option<u64>,
    /// The calls of the current step.
    open: Vec<Arc<ComparedCall>>,
    /// The places in the current step before which a part of the session was lost.
    gaps: Vec<usize>,
    /// The last call.
    last: u64,
    surely: Repetitions,
    /// Absent while all facts were shown: possible equality is certain equality then.
    perhaps: Option<Repetitions>,
}

impl Default for Speaker {
    fn default() -> Self {
        let surely = Repetitions { equality: Equality::Sure, orders: Orders::default(), steps: StepRuns::default() };
        Self { step: None, open: Vec::new(), gaps: Vec::new(), last: 0, surely, perhaps: None }
    }
}

impl Speaker {
    /// Ends the current step.
    fn close(&mut self) {
        let calls = std::mem::take(&mut self.open);
        if calls.is_empty() {
            return;
        }
        let gaps = std::mem::take(&mut self.gaps);
        let is_complete = gaps.is_empty() && calls.iter().all(|call| call.known.is_complete());
        if self.perhaps.is_none() && !is_complete {
            self.perhaps = Some(Repetitions { equality: Equality::Possible, ..self.surely.clone() });
        }
        let mut begin = 0;
        for end in gaps {
            self.surely.step(calls.get(begin..end).unwrap_or_default());
            self.surely.separate();
            begin = end;
        }
        self.surely.step(calls.get(begin..).unwrap_or_default());
        if let Some(perhaps) = &mut self.perhaps {
            perhaps.step(&calls);
        }
    }
}

struct LoopsObserver {
    max: u64,
    speakers: HashMap<Option<String>, Speaker>,
    /// The call that was not shown completely.
    unsure: Option<String>,
    /// The notices that a part of the session was lost, which may be a call: the first after each call.
    losses: Vec<u64>,
    /// True if a call was announced since the last loss.
    has_new_call: bool,
}

impl LoopsObserver {
    /// Returns true if a part of the session was lost between two calls.
    fn has_lost_between(&self, before: u64, after: u64) -> bool {
        let next = self.losses.get(self.losses.partition_point(|seq| *seq < before));
        next.is_some_and(|seq| *seq < after)
    }
}

#[async_trait]
impl Observer for LoopsObserver {
    fn event(&mut self, event: &Event) {
        match &event.body {
            Body::ToolCall(_) => self.has_new_call = true,
            Body::Notice { lost: Some(Lost::Line | Lost::Call), .. } if self.has_new_call => {
                self.losses.push(event.seq);
                self.has_new_call = false;
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &Subject<'_>) {
        let known = CallFacts::of(call);
        if known.input.is_none() || known.kind.is_none() {
            self.unsure.get_or_insert_with(|| format!("{} (event {})", call.label(), call.seq));
        }
        let done = ComparedCall { seq: call.seq, same: known.hash(), known, label: call.label() };
        let before = self.speakers.get(&call.parent.map(str::to_owned)).map(|speaker| speaker.last);
        let is_after_loss = before.is_some_and(|before| self.has_lost_between(before, call.seq));
        let speaker = self.speakers.entry(call.parent.map(str::to_owned)).or_default();
        if speaker.step != Some(call.call.step) {
            speaker.step = Some(call.call.step);
            speaker.close();
        }
        if is_after_loss {
            speaker.gaps.push(speaker.open.len());
        }
        speaker.last = call.seq;
        speaker.open.push(Arc::new(done));
    }

    async fn finish(self: Box<Self>, _: &Evidence<'_>) -> Findings {
        self.grade().into()
    }
}

impl LoopsObserver {
    fn grade(mut self) -> Grade {
        self.speakers.values_mut().for_each(Speaker::close);
        let max = self.max;
        let speakers = || self.speakers.values();
        // Speakers have no order, so of equally frequent repetitions the earliest is reported.
        let key = |worst: &&Worst| (worst.times, std::cmp::Reverse(worst.events.first().copied()));
        let surely = speakers().filter_map(|speaker| speaker.surely.at_least()).max_by_key(key);
        let possible = speakers().filter_map(|it| it.perhaps.as_ref().unwrap_or(&it.surely).at_most());
        let possible = possible.map(|worst| worst.times).max().unwrap_or(0);
        let in_some_order = speakers().filter_map(|speaker| speaker.surely.at_most()).map(|worst| worst.times).max();
        let mut checks = Checks::default();
        match surely {
            None => checks.held("there were no calls", []),
            Some(Worst { times, .. }) if *times <= max && possible > max => {
                let why = match self.unsure {
                    _ if !self.losses.is_empty() => "a part of the session between the calls was lost".to_owned(),
                    Some(unsure) => format!("the agent did not show enough of {unsure}"),
                    None if in_some_order.is_some_and(|times| times > max) => {
                        "parallel calls have no order, and too many orders are possible".to_owned()
                    }
                    None => "the agent did not show enough of the tools' names".to_owned(),
                };
                let times = plural(max, "time");
                checks.unknown(format!("whether calls were repeated more than {times} in a row is unknown: {why}"));
            }
            Some(Worst { times, .. }) if *times <= max => {
                let most = match in_some_order.unwrap_or(*times) {
                    1 => "no call was repeated immediately".to_owned(),
                    times => format!("the same calls were made at most {times} times in a row"),
                };
                checks.held(format!("{most}; up to {max} in a row are allowed"), []);
            }
            Some(Worst { times, block, events }) => {
                let what = block.join(", then ");
                let calls = plural(block.len() as u64, "call");
                let reason = format!(
                    "a block of {calls} was made {times} times in a row, at most {max} allowed: {what} (from event {})",
                    events.first().copied().unwrap_or_default()
                );
                checks.violated(reason, events.iter().copied());
            }
        }
        checks.grade()
    }
}
