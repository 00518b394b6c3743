//! `loops`: limits how often an agent repeats the same calls immediately. It keeps a few calls for each agent
//! or sub-agent.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::Grade;
use crate::judgement::Judgement;
use crate::text::plural;
use crate::trace::ToolKind;

/// The maximum number of calls in a block.
const LONGEST: usize = 4;
/// The maximum number of events in the evidence of the grade.
const POINTED_AT: usize = 40;

/// A bound on immediate repetitions of the same calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Loops {
    /// The maximum number of consecutive occurrences of a block of 1 to 4 calls, each of the same kind, name
    /// and input.
    #[schemars(range(min = 1))]
    pub max: u64,
}

impl GraderSpec for Loops {
    fn fails_by_outcome(&self) -> bool {
        false
    }

    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn refusal(&self) -> Option<String> {
        (self.max == 0).then(|| {
            "contradicts itself: a call counts itself, so `max: 0` allows none; write `max: 1` or more".to_owned()
        })
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(LoopsJudge { max: self.max, speakers: HashMap::new(), worst: None, possible: 0, unsure: None })
    }
}

/// A call, reduced to the parts that repetition depends on.
#[derive(Clone)]
struct ComparedCall {
    seq: u64,
    /// A hash of the known parts of the call. Calls have the same hash if they are equal as far as the agent showed
    /// them.
    same: blake3::Hash,
    known: Arc<CallFacts>,
    label: String,
}

/// The facts that decide whether two calls are equal.
struct CallFacts {
    /// Absent if the agent gave no known kind.
    kind: Option<ToolKind>,
    name: Option<String>,
    /// The input, or the command from the title instead.
    input: Option<String>,
    /// The files that were shown.
    places: Option<String>,
    /// True if the order of calls in the call's step is unknown.
    is_any: bool,
}

impl CallFacts {
    fn of(call: &Subject<'_>) -> Self {
        let title_command = || call.command().seen().map(|command| format!("command {command}"));
        let diffs = call.diffs().iter().map(|diff| format!("{} {:?} {:?}", diff.path, diff.old, diff.new));
        let places: Vec<String> = call.known_paths().iter().cloned().chain(diffs).collect();
        Self {
            kind: (!call.call.unknown_kind).then_some(call.call.kind),
            name: call.call.name.clone(),
            input: call.input().map(|input| format!("input {input}")).or_else(title_command),
            places: (!places.is_empty()).then(|| places.join("\n")),
            is_any: false,
        }
    }

    fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.kind.map_or("unknown", |kind| kind.word()).as_bytes());
        for part in [&self.name, &self.input] {
            // An absent value differs from an empty one.
            hasher.update(&[u8::from(part.is_some())]);
            let part = part.as_deref().unwrap_or_default();
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize()
    }

    /// Returns whether two calls are equal. An agent that names no tools, or gives no known kinds, is assumed to use the
    /// same tool for equal inputs.
    fn is(&self, other: &CallFacts) -> Judgement {
        if self.is_any || other.is_any {
            return Judgement::Unknown;
        }
        let equal = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => Judgement::from(one == other),
            _ => Judgement::Unknown,
        };
        let name = || match (&self.name, &other.name) {
            (None, None) => Judgement::True,
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

/// The latest calls of the main agent or a sub-agent.
#[derive(Default)]
struct Speaker {
    /// The calls of the current step. They have no order, so they are sorted.
    step: Option<u64>,
    open: Vec<ComparedCall>,
    /// The last calls before the current step.
    last: VecDeque<ComparedCall>,
    /// For blocks of 1, 2, 3 and 4 calls: the run of calls that each equal the call one block before.
    runs: [Run; LONGEST],
    /// For blocks of 1, 2, 3 and 4 calls: the length of the run of calls that may each equal the call one block
    /// before.
    possible: [u64; LONGEST],
}

/// Calls that each equal the call one block before.
#[derive(Default)]
struct Run {
    length: u64,
    /// The first calls of the run, with the block before it.
    events: Vec<u64>,
}

/// The most frequent repetition of a block.
struct Worst {
    times: u64,
    block: Vec<String>,
    events: Vec<u64>,
}

struct LoopsJudge {
    max: u64,
    speakers: HashMap<Option<String>, Speaker>,
    worst: Option<Worst>,
    /// The number of times that a block may have been repeated.
    possible: u64,
    /// The call that was not shown completely.
    unsure: Option<String>,
}

#[async_trait]
impl Observer for LoopsJudge {
    fn call(&mut self, call: &Subject<'_>) {
        let known = CallFacts::of(call);
        if known.input.is_none() || known.kind.is_none() {
            self.unsure.get_or_insert_with(|| format!("{} (event {})", call.label(), call.seq));
        }
        let done = ComparedCall { seq: call.seq, same: known.hash(), known: Arc::new(known), label: call.label() };
        let speaker = self.speakers.entry(call.parent.map(str::to_owned)).or_default();
        if speaker.step != Some(call.call.step) {
            speaker.step = Some(call.call.step);
            close(speaker, &mut self.worst, &mut self.possible);
        }
        speaker.open.push(done);
    }

    async fn finish(self: Box<Self>, _: &Evidence<'_>) -> Findings {
        self.grade().into()
    }
}

impl LoopsJudge {
    fn grade(mut self) -> Grade {
        for speaker in self.speakers.values_mut() {
            close(speaker, &mut self.worst, &mut self.possible);
        }
        let max = self.max;
        let mut checks = Checks::default();
        match self.worst {
            None => checks.held("there were no calls", []),
            Some(Worst { times, .. }) if times <= max && self.possible > max => {
                let why = self.unsure.unwrap_or_else(|| "the tools' names".to_owned());
                checks.unknown(format!(
                    "whether calls were repeated more than {max} times in a row is unknown: the agent did not show \
                     enough of {why}"
                ));
            }
            Some(Worst { times, .. }) if times <= max => {
                let most = if times == 1 {
                    "no call was repeated at once".to_owned()
                } else {
                    format!("the same calls were made at most {times} times in a row")
                };
                checks.held(format!("{most}, {max} allowed"), []);
            }
            Some(Worst { times, block, events }) => {
                let what = block.join(", then ");
                let calls = plural(block.len() as u64, "call");
                let reason = format!(
                    "a block of {calls} was made {times} times in a row, at most {max} allowed: {what} (from event {})",
                    events.first().copied().unwrap_or_default()
                );
                checks.violated(reason, events);
            }
        }
        checks.grade()
    }
}

/// Ends a step of an agent, and appends the step's calls to the earlier ones.
fn close(speaker: &mut Speaker, worst: &mut Option<Worst>, possible: &mut u64) {
    let mut calls = std::mem::take(&mut speaker.open);
    calls.sort_by_key(|call| (*call.same.as_bytes(), call.seq));
    // If a call of the step was not shown, the position of all of its calls is unknown.
    if calls.len() > 1 && calls.iter().any(|call| call.known.input.is_none()) {
        for call in &mut calls {
            let CallFacts { kind, name, input, places, .. } = &*call.known;
            let (kind, name, input, places) = (*kind, name.clone(), input.clone(), places.clone());
            call.known = Arc::new(CallFacts { kind, name, input, places, is_any: true });
        }
    }
    for call in calls {
        for (n, run) in speaker.runs.iter_mut().enumerate() {
            let block = n + 1;
            let before = speaker.last.len().checked_sub(block).and_then(|at| speaker.last.get(at));
            let is_same = before.map_or(Judgement::False, |before| before.known.is(&call.known));
            if let Some(length) = speaker.possible.get_mut(n) {
                *length = if is_same.may_be_true() { *length + 1 } else { 0 };
                *possible = (*possible).max(*length / block as u64 + 1);
            }
            if is_same.is_true() {
                if run.length == 0 {
                    run.events = speaker.last.iter().rev().take(block).rev().map(|call| call.seq).collect();
                }
                run.length += 1;
                if run.events.len() < POINTED_AT {
                    run.events.push(call.seq);
                }
            } else {
                *run = Run::default();
            }
            let times = run.length / block as u64 + 1;
            // Among equally frequent blocks, the shortest describes the loop best. It comes first.
            if worst.as_ref().is_none_or(|worst| times > worst.times) {
                let others = speaker.last.iter().rev().take(block - 1).rev();
                let labels = others.map(|call| call.label.clone()).chain([call.label.clone()]).collect();
                *worst = Some(Worst { times, block: labels, events: run.events.clone() });
            } else if let Some(worst) =
                worst.as_mut().filter(|worst| worst.times == times && worst.block.len() == block)
            {
                // The same run continues by a part of the block.
                if worst.events.first() == run.events.first() && worst.events.len() < POINTED_AT {
                    worst.events.clone_from(&run.events);
                }
            }
        }
        speaker.last.push_back(call);
        if speaker.last.len() > LONGEST {
            speaker.last.pop_front();
        }
    }
}
