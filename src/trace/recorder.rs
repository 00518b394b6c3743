//! The only builder of traces. It enforces the laws of a trace for any input and any order of an adapter's events.
//!
//! Events leave the recorder in order as soon as they can no longer change ([`Recorder::drain`]): a message when
//! another event follows it, a call when it has its result. For each call that has ended, only a hash of its id is
//! kept, 8 bytes and its share of a table.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

mod calls;
mod gaps;
mod hashes;
mod input;
mod limits;
mod notices;
mod quoted;
mod texts;
mod withdrawn;

pub use input::{Answered, Asking, CallReport, Continuation, DecidedBy, ReportedStatus, ResultReport, Voice, is_empty};
pub use quoted::QuotedLine;
pub use withdrawn::SentText;

use calls::{EndedCall, EndedEarly, FailedResult, OpenCall, OpenRequest, Step, UnshownSubAgent};
pub(crate) use calls::{continues_input, folder_of, is_other_tool};
use gaps::{Gap, LastPart, Place, gap_within};
use hashes::hash_in;
use withdrawn::Withdrawn;

use super::hashes::Hashes;
use super::usage::{self, UsageTotal};
use super::{Body, Event, FileDiff, Header, PlanEntry, Stop, ToolCall, Usage, UsageScope};
use super::{Lost, NoticeCode, PermissionOutcome};
use crate::text::{first_bytes, plural};
use crate::values::NameGlob;

/// The maximum number of kept notices of one code; the rest is counted.
pub const MAX_NOTICES: u64 = 100;

/// The maximum number of notices about paths that lead to other files by links.
const MAX_LINKS: u64 = 1000;

/// The empty line between separate blocks and messages of one text.
const APART: &str = "\n\n";

/// The maximum number of parts of one text that are known apart. Beyond that, no part can be taken out.
const MAX_PARTS: usize = 10_000;

/// The bytes of a line that a notice about it quotes.
const QUOTED: usize = 120;
/// The maximum bytes of text in one message, thought or result; the rest is counted.
pub const MAX_TEXT: usize = 16 << 20;
/// The maximum number of events that wait for an earlier open event, as [`MAX_PENDING_BYTES`] limits the bytes of their
/// lines. Beyond that they leave the recorder, and the open event stays in the trace as it is known then.
const MAX_PENDING: usize = 100_000;
/// The maximum number of open calls, and the number of the oldest ones that end as unfinished when it is exceeded.
pub const MAX_OPEN: (usize, usize) = (10_000, 1_000);
/// The number of ended calls whose outcome is remembered, for reports that contradict it.
const MAX_ENDED: usize = 256;
/// The maximum number of calls that may be announced while an earlier one is open, and the number of calls between
/// two checks of this limit. If it is exceeded, the earlier call ends as unfinished, because readers that join calls
/// with results in order must hold all calls in between.
pub const MAX_BEHIND: (u64, u64) = (100_000, 10_000);
/// The maximum number of events that wait behind a failed result which the agent may still report as denied.
const MAX_DOUBTED: usize = 1000;
/// The maximum number of held events while a session is ended.
const SPILLED: usize = 1000;
/// The maximum bytes of the lines of held events; see [`MAX_PENDING`].
const MAX_PENDING_BYTES: usize = 64 << 20;

/// The builder of a trace, which enforces the trace's laws.
pub struct Recorder {
    header: Header,
    /// The tools that start a sub-agent whose calls the agent does not show.
    hidden_sub_agents: Vec<NameGlob>,
    mode: Option<String>,
    now_ms: u64,
    line: Option<u64>,
    /// The beginning of the current line, if the agent sent or received it.
    quote: String,
    /// The place of the earlier line that notices are about.
    place: Option<Place>,
    slots: VecDeque<Slot>,
    /// The number of the first slot in `slots`, which is also the `seq` of its event.
    first: u64,
    pending_bytes: usize,
    /// The bytes of the lines that are held, by the first event that can leave only after them.
    weights: VecDeque<(u64, usize)>,
    text: Option<OpenText>,
    open: HashMap<Box<str>, OpenCall>,
    /// The calls that ended before the answer to a request about them, by the agent's id.
    early: HashMap<String, EndedEarly>,
    /// The failed results that the agent may still report as denied.
    doubted: VecDeque<FailedResult>,
    seen: Hashes,
    /// The last calls that ended, with their outcomes.
    ended: VecDeque<EndedCall>,
    /// The calls that ended and started a sub-agent of which no call was shown, until the end of the trace.
    unshown: Vec<UnshownSubAgent>,
    /// The agent's ids that were used again, with the id in the trace of the last such call.
    renamed: HashMap<String, String>,
    /// The number of times that ids were used again, to find the next free name at once.
    repeats: HashMap<u64, u64>,
    steps: HashMap<Option<String>, Step>,
    next_step: u64,
    requests: HashMap<String, OpenRequest>,
    /// The open requests by the calls that they are about. Both have their ids in the trace.
    requests_of: HashMap<String, HashSet<String>>,
    /// For open requests that came before their call was announced: the agent's ids of the requests, and how often
    /// each occurs.
    of_unknown_calls: HashMap<String, usize>,
    last_usage: Option<Usage>,
    total: UsageTotal,
    notices: HashMap<NoticeCode, u64>,
    /// The text of the last notice about an error of the agent.
    agent_error: Option<String>,
    /// The number of paths that lead to other files by links.
    links: u64,
    /// The answers to requests about calls that were not announced yet, by the agent's id of the call.
    answered_early: HashMap<String, PermissionOutcome>,
    calls: u64,
    /// True if calls were ended because too many were open.
    is_cut: bool,
    /// The losses that notices report.
    lost: HashSet<Lost>,
    answer: String,
    /// The ID of the last part of the answer.
    answer_part: Option<String>,
    /// True if the main agent's next text begins another answer, even if it is in the same message.
    is_answer_over: bool,
    /// The last event of the answer, and the places in the answer where something is missing.
    last_part: LastPart,
    answer_gaps: Vec<Gap>,
    /// The last notice of a missing call or line, if the notice has the place of what is missing.
    last_gap: Option<u64>,
    /// The answer at the end of the last turn; late text may add to it and does not remove it.
    answered: String,
    answered_gaps: Vec<Gap>,
    /// The number of the event with which the answer begins, and the same of `answered`.
    answer_from: u64,
    answered_from: u64,
    /// The last text of the main agent that it withdrew and that stays in its message: the number of the last event when it
    /// was complete, and the line that withdrew it.
    withdrawn: Option<(u64, QuotedLine)>,
    cut_bytes: u64,
    activity: u64,
    turns: u64,
    /// The number of turns that had ended at the user's last prompt.
    turns_at_prompt: u64,
    /// The number of calls that had been announced when the last further turn began.
    calls_at_prompt: u64,
    /// True if usage was reported since then.
    reported: bool,
    /// The number of earlier turns without a report.
    unreported: u64,
    /// True if the agent added to a message or a thought after its last report. No event shows this.
    has_unreported_text: bool,
    prompted: bool,
    ended_ms: Option<u64>,
    last_ms: u64,
}

struct Slot {
    event: Event,
    open: bool,
}

/// The text event that may still take a further chunk.
struct OpenText {
    slot: u64,
    speaker: Speaker,
    /// The ID of the last part.
    part: Option<String>,
    /// The parts that are set apart in this event: their IDs, and the length of the text before each.
    parts: Vec<(Option<String>, usize)>,
    /// The final answer before this text, if this text continues the last part of that answer. Else empty.
    before: String,
    /// The length of the text before the final answer, if an earlier turn's answer is in the same event.
    answer_at: usize,
    /// The places where something is missing: in this event, and in `before`.
    gaps: Vec<Gap>,
    before_gaps: Vec<Gap>,
    /// The withdrawn text, if the event holds nothing else.
    withdrawn: Option<Withdrawn>,
    /// True if a notice reports that the event may hold a text of another speaker.
    is_doubted: bool,
}

#[derive(PartialEq)]
struct Speaker {
    voice: Voice,
    parent: Option<String>,
}

/// An open call, as known so far.
#[derive(Debug)]
pub struct CallInProgress<'a> {
    /// The agent's id.
    pub id: &'a str,
    /// The number of calls announced up to this one.
    pub number: u64,
    /// The call, with the input that was last asked for.
    pub call: Cow<'a, ToolCall>,
    /// The changes that it has shown.
    pub diffs: &'a [FileDiff],
    /// True if its last request was rejected.
    pub is_rejected: bool,
}

/// A finished trace: its header, and the events that had not been drained.
pub struct Finished {
    /// The header, with everything learned from the session.
    pub header: Header,
    /// The last events, with `stop` at the end.
    pub events: Vec<Event>,
    /// The usage of the session.
    pub total: UsageTotal,
}

impl Recorder {
    /// Starts a trace.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            hidden_sub_agents: Vec::new(),
            mode: None,
            now_ms: 0,
            line: None,
            quote: String::new(),
            place: None,
            slots: VecDeque::new(),
            first: 0,
            pending_bytes: 0,
            weights: VecDeque::new(),
            text: None,
            open: HashMap::new(),
            early: HashMap::new(),
            doubted: VecDeque::new(),
            seen: Hashes::default(),
            ended: VecDeque::new(),
            unshown: Vec::new(),
            renamed: HashMap::new(),
            repeats: HashMap::new(),
            steps: HashMap::new(),
            next_step: 0,
            requests: HashMap::new(),
            requests_of: HashMap::new(),
            of_unknown_calls: HashMap::new(),
            last_usage: None,
            total: UsageTotal::default(),
            notices: HashMap::new(),
            agent_error: None,
            links: 0,
            answered_early: HashMap::new(),
            calls: 0,
            is_cut: false,
            lost: HashSet::new(),
            answer: String::new(),
            answer_part: None,
            is_answer_over: false,
            last_part: LastPart::default(),
            answer_gaps: Vec::new(),
            last_gap: None,
            answered: String::new(),
            answered_gaps: Vec::new(),
            answer_from: 0,
            answered_from: 0,
            withdrawn: None,
            cut_bytes: 0,
            activity: 0,
            turns: 0,
            turns_at_prompt: 0,
            calls_at_prompt: 0,
            reported: false,
            unreported: 0,
            has_unreported_text: false,
            prompted: false,
            ended_ms: None,
            last_ms: 0,
        }
    }

    /// Sets the names of the tools that start a sub-agent whose calls the agent does not show.
    pub fn hides_sub_agents_of(&mut self, tools: &[NameGlob]) {
        self.hidden_sub_agents = tools.to_vec();
    }

    /// Sets the time and the line of the wire log for the following events. The clock never goes back.
    pub fn at(&mut self, at_ms: u64, line: u64) {
        if self.header.is_timed() {
            self.now_ms = self.now_ms.max(at_ms);
        }
        self.line = Some(line);
        self.quote.clear();
    }

    /// Notes that the following events are in no line of the recording.
    pub fn without_line(&mut self) {
        self.line = None;
        self.quote.clear();
    }

    /// Sets the text of the current line, whose beginning notices quote.
    pub fn quote(&mut self, text: &str) {
        let text = text.trim_start();
        self.quote.push_str(first_bytes(text, QUOTED));
        if self.quote.len() < text.len() {
            self.quote.push('…');
        }
    }

    /// Counts the bytes of the current line. If too much is held, the held events leave.
    pub fn weigh(&mut self, bytes: usize) {
        if self.slots.len() <= 1 {
            self.forget_weights();
        }
        while let Some((slot, weight)) = self.weights.front().copied()
            && slot < self.first
        {
            self.weights.pop_front();
            self.pending_bytes -= weight;
        }
        self.pending_bytes += bytes;
        let next = self.first + self.slots.len() as u64;
        match self.weights.back_mut() {
            Some((slot, weight)) if *slot == next => *weight += bytes,
            _ => self.weights.push_back((next, bytes)),
        }
        let holds_too_much = self.slots.len() > MAX_PENDING || self.pending_bytes > MAX_PENDING_BYTES;
        self.settle_failures(if holds_too_much { 0 } else { MAX_DOUBTED });
        if !holds_too_much {
            return;
        }
        self.forget_weights();
        let last = self.slots.len().saturating_sub(1);
        self.keep_written(self.first + last as u64);
        if let Some(open) = &self.text
            && open.slot < self.first + last as u64
            && open.speaker == Speaker::of(Voice::Agent, None)
        {
            self.answer = self.whole_answer(open);
            (self.answer_gaps, self.last_part) = (open.whole_gaps(), open.as_last_part());
        }
        let mut open = 0;
        for slot in self.slots.iter_mut().take(last).filter(|slot| slot.open) {
            slot.open = false;
            open += 1;
        }
        if open > 0 {
            let what = if open == 1 { "1 call or text was".to_owned() } else { format!("{open} calls or texts were") };
            let text = format!("{what} open for {last} events and recorded as known by then");
            self.notice(NoticeCode::LetGo, text);
        }
    }

    fn forget_weights(&mut self) {
        self.pending_bytes = 0;
        self.weights.clear();
    }

    /// Returns the header, so that the session's information about itself can be added.
    pub fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Notes that the agent works in a mode in which it does not ask for every permission, so a missing request
    /// proves nothing. If the mode changed during the work, a notice reports this.
    pub fn is_unattended(&mut self, mode: &str, changed: bool) {
        if !std::mem::replace(&mut self.header.capabilities.interaction, false) {
            return;
        }
        self.header.unattended_mode = Some(mode.to_owned());
        if changed {
            let text = format!("the agent changed to mode `{mode}`, in which it does not ask for every permission");
            self.notice(NoticeCode::UnattendedMode, text);
        }
    }

    /// Returns the id of the mode that the agent last reported.
    pub fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }

    /// Notes the mode that the agent reports.
    pub fn mode_is(&mut self, mode: &str) {
        self.mode = Some(mode.to_owned());
    }

    /// Notes that an agent that got its prompt at its start has started, and is about to work.
    pub fn started(&mut self) {
        if self.header.is_timed() {
            self.header.start_ms.get_or_insert(self.now_ms);
        }
    }

    /// Returns the number of calls announced so far.
    pub fn call_count(&self) -> u64 {
        self.calls
    }

    /// Returns the number of steps begun so far.
    pub fn step_count(&self) -> u64 {
        self.next_step
    }

    /// Returns the usage so far.
    pub fn usage_total(&self) -> &UsageTotal {
        &self.total
    }

    /// Returns the number of calls without a result.
    pub fn open_calls(&self) -> usize {
        self.open.values().filter(|open| !open.in_background).count()
    }

    /// Returns the count of the agent's actions; usage and notices are not actions.
    pub fn activity(&self) -> u64 {
        self.activity
    }

    /// Returns true if the user has sent a message.
    pub fn was_prompted(&self) -> bool {
        self.prompted
    }

    /// Returns the number of turns that the agent has answered.
    pub fn turns_ended(&self) -> u64 {
        self.turns
    }

    /// Returns an open call as known so far, with the changes it has shown, by the agent's id.
    pub fn open_call(&self, id: &str) -> Option<(&ToolCall, &[FileDiff])> {
        let open = self.open.get(id)?;
        let slot = self.slots.get(open.slot.checked_sub(self.first)? as usize)?;
        match &slot.event.body {
            Body::ToolCall(call) => Some((call, open.diffs())),
            _ => None,
        }
    }

    /// Returns true if a call with this id of the agent is open.
    pub fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// Returns the open calls that were not rejected, in no order.
    pub fn calls_in_progress(&self) -> impl Iterator<Item = CallInProgress<'_>> {
        self.open.keys().filter_map(|id| self.call_in_progress(id)).filter(|open| !open.is_rejected)
    }

    /// Returns an open call by the agent's id, with the input that was last asked for.
    pub fn call_in_progress(&self, id: &str) -> Option<CallInProgress<'_>> {
        let (id, open) = self.open.get_key_value(id)?;
        let (call, diffs) = self.open_call(id)?;
        let call = match open.asked_input() {
            Some(input) => Cow::Owned(ToolCall { input: Some(input.clone()), ..call.clone() }),
            None => Cow::Borrowed(call),
        };
        Some(CallInProgress { id, number: open.number, call, diffs, is_rejected: open.rejected })
    }

    /// Returns true if a call with this id of the agent was ever announced.
    pub fn was_announced(&self, id: &str) -> bool {
        self.is_open(id) || self.seen.contains(hash_in("call", id))
    }

    /// Returns true if a call with this id is in the trace.
    pub fn was_recorded(&self, call: &str) -> bool {
        self.seen.contains(hash_in("call", call))
    }

    /// Returns the id in the trace of the last call with this id of the agent.
    pub fn call_id(&self, id: &str) -> String {
        self.renamed.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    /// Begins a turn at the user's prompt, and returns true if it is a further one. The pieces of one prompt begin only one
    /// turn.
    fn begin_turn(&mut self) -> bool {
        let is_further = self.turns > self.turns_at_prompt;
        if is_further {
            self.turns_at_prompt = self.turns;
            self.calls_at_prompt = self.calls;
            self.unreported += u64::from(!self.reported);
            self.reported = false;
        }
        is_further
    }

    /// Notes turns that reported no usage. Prompts without any answer are one message, so the trace alone does not show
    /// such a turn.
    fn note_unreported_turns(&mut self) {
        let unreported = self.unreported + u64::from(self.turns > 0 && !self.reported);
        let ended_unreported = self.turns > 0 && !self.reported;
        let is_missing = if self.total.is_of_session() { ended_unreported } else { unreported > 0 };
        if is_missing && self.total.is_exact() {
            let text =
                format!("{unreported} of {} turns reported no usage, so the totals are lower bounds", self.turns);
            self.note(NoticeCode::UsageIncomplete, text, None);
        }
    }

    /// Notes that the session was cut off after a text which no usage report counts, and which is in an event from before the
    /// last report. Only the engine knows this: the trace shows no activity after the report.
    fn note_unreported_text(&mut self, stop: &Stop, host: bool) {
        if !self.has_unreported_text {
            return;
        }
        let mut total = self.total.clone();
        total.event(&Event { seq: 0, at_ms: 0, body: Body::Stop(stop.clone()), parent: None, host });
        if total.activity().was_cut() && total.is_exact() {
            let text = "the session was cut off after a text that no usage report counts: the totals are lower bounds";
            self.note(NoticeCode::UsageIncomplete, text.to_owned(), None);
        }
    }

    /// Records the agent's plan, which replaces the one before.
    pub fn plan(&mut self, parent: Option<String>, entries: Vec<PlanEntry>) {
        self.push(Body::Plan { entries }, parent, false);
    }

    /// Records usage. A report of zeros alone, or one that repeats the last, is not recorded.
    pub fn usage(&mut self, mut usage: Usage, host: bool) {
        usage.cost_usd = usage::possible_cost(&usage);
        let repeated = usage.scope == UsageScope::Session && self.last_usage.as_ref() == Some(&usage);
        if usage.says_nothing() || repeated {
            return;
        }
        if usage::Measure::all().any(|measure| usage::holds(&usage, measure)) {
            self.reported = true;
            // A price of the engine counts no further tokens.
            self.has_unreported_text &= usage.source.as_deref() == Some(usage::PRICED);
        }
        if usage.scope == UsageScope::Session {
            self.last_usage = Some(usage.clone());
        }
        self.push_aside(Body::Usage(usage), None, host);
    }

    /// Ends an open call, or records another result for a call that is not open. `call` is the name of the open call, if it
    /// differs from the agent's id.
    pub fn end_or_repeat(&mut self, call: &str, id: &str, report: ResultReport) {
        if self.is_open(call) {
            self.result(call, report);
            return;
        }
        let text = format!("a result for the call {id}, which is not open");
        if !self.was_announced(id) {
            self.lost(NoticeCode::UnknownCall, text);
        } else if self.contradicts(id, &report) {
            self.contradicted(NoticeCode::RepeatedResult, format!("{text} and was reported to have ended otherwise"));
        } else if !report.diffs.is_empty() && !self.ended_with(id, &report.diffs) {
            self.lost(NoticeCode::RepeatedResult, format!("{text} and showed other changes to files"));
        } else if self.ended_as(id).is_none() {
            self.contradicted(NoticeCode::RepeatedResult, format!("{text}, and how it ended before is not remembered"));
        } else if report.output.as_deref().is_some_and(|output| !output.is_empty() && !self.ended_printing(id, output))
        {
            self.contradicted(NoticeCode::RepeatedResult, format!("{text} and had another output"));
        } else {
            self.notice(NoticeCode::RepeatedResult, text);
        }
    }

    /// Marks the end of the session: `stop` takes this time, even if events follow.
    pub fn mark_end(&mut self) {
        self.ended_ms = Some(self.now_ms);
    }

    /// Ends the turn, and with it the calls that were refused or cancelled. If the turn was cancelled, all open calls
    /// end.
    pub fn end_turn(&mut self, cancelled: bool) {
        self.turns += 1;
        self.answered = self.answer().into_owned();
        self.answered_gaps = self.gaps_of_answer();
        self.answered_from = self.answer_from;
        self.mark_end();
        if cancelled {
            self.cancel_open();
        }
        for step in self.steps.iter_mut().filter_map(|(parent, step)| parent.is_none().then_some(step)) {
            // What the agent does after the next prompt is not parallel to what it did before.
            step.has_result = true;
        }
        self.release_early();
        self.end_open(|call| call.rejected || call.is_cancelled() || call.withdrawn);
    }

    /// Notes that the answer so far is complete: if the main agent speaks again without another prompt, that is another
    /// answer. Both texts may be in one message, but only the last one is the final answer.
    pub fn complete_answer(&mut self) {
        self.is_answer_over = true;
    }

    /// Returns true if the answer so far is complete, and the main agent has not spoken since.
    pub fn is_answer_complete(&self) -> bool {
        self.is_answer_over
    }

    /// Returns the number of turns that ended.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Takes the events that can no longer change, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Event> {
        let ready = self.slots.iter().take_while(|slot| !slot.open).count();
        self.first += ready as u64;
        self.slots.drain(..ready).map(|slot| slot.event)
    }

    /// Returns the events that may still change, in order.
    pub fn pending(&self) -> impl Iterator<Item = &Event> {
        self.slots.iter().map(|slot| &slot.event)
    }

    /// Ends the trace. Calls without a result get one; then `stop` follows, with the final answer if it has none.
    pub fn finish(self, stop: Stop, host: bool) -> Finished {
        let mut events = Vec::new();
        let finished = self.finish_into(stop, host, |event| events.push(event));
        Finished { events, ..finished }
    }

    /// Ends the trace and passes on its events one by one: very many calls may be open, and their results are not
    /// held all at once.
    pub fn finish_into(mut self, mut stop: Stop, host: bool, mut each: impl FnMut(Event)) -> Finished {
        if let Some(ended) = self.ended_ms {
            self.now_ms = ended.max(self.last_ms);
        }
        self.release_early();
        self.settle_failures(0);
        for (id, open) in self.take_open(|_| true) {
            self.end_unanswered(&id, open);
            if self.slots.len() >= SPILLED {
                self.spill(&mut each);
            }
        }
        self.close_text();
        self.tell_unshown();
        if stop.output.is_none() {
            self.tell_withdrawn_answer();
        }
        self.line = None;
        self.quote.clear();
        let mut codes: Vec<_> = self.notices.iter().filter(|(_, n)| **n > MAX_NOTICES).collect();
        codes.sort_by_key(|(code, _)| code.as_str());
        let texts: Vec<String> = codes
            .into_iter()
            .map(|(code, n)| {
                format!("only the wire log has {} of the kind {code}", plural(n - MAX_NOTICES, "more notice"))
            })
            .collect();
        for text in texts {
            self.note(NoticeCode::NoticesCut, text, None);
        }
        if self.cut_bytes > 0 {
            let bytes = plural(self.cut_bytes, "byte");
            let text = format!("only the wire log has {bytes} of text beyond {MAX_TEXT} in one event");
            self.note(NoticeCode::TextCut, text, Some(Lost::Text));
        }
        self.note_unreported_turns();
        self.note_unreported_text(&stop, host);
        if stop.output.is_none() {
            let (answer, gaps) = match self.answer.is_empty() {
                true => (&mut self.answered, &self.answered_gaps),
                false => (&mut self.answer, &self.answer_gaps),
            };
            stop.gap = gap_within(answer, gaps);
            stop.output = Some(std::mem::take(answer)).filter(|answer| !answer.is_empty());
        }
        self.push(Body::Stop(stop), None, host);
        self.spill(&mut each);
        Finished { header: self.header, events: Vec::new(), total: self.total }
    }

    /// Passes on the events that can no longer change.
    fn spill(&mut self, each: &mut impl FnMut(Event)) {
        while self.slots.front().is_some_and(|slot| !slot.open) {
            let Some(slot) = self.slots.pop_front() else { break };
            self.first += 1;
            each(slot.event);
        }
    }

    fn slot(&mut self, slot: u64) -> Option<&mut Slot> {
        let index = slot.checked_sub(self.first)?;
        self.slots.get_mut(index as usize)
    }

    fn body(&mut self, slot: u64) -> Option<&mut Body> {
        self.slot(slot).map(|slot| &mut slot.event.body)
    }

    /// Pushes an event that ends the current message.
    fn push(&mut self, body: Body, parent: Option<String>, host: bool) {
        self.close_text();
        self.activity += 1;
        self.push_aside(body, parent, host);
    }

    fn push_open(&mut self, body: Body, parent: Option<String>) -> u64 {
        self.push(body, parent, false);
        let number = self.first + self.slots.len() as u64 - 1;
        if let Some(slot) = self.slots.back_mut() {
            slot.open = true;
        }
        number
    }

    /// Pushes an event after which the current message may continue.
    fn push_aside(&mut self, body: Body, parent: Option<String>, host: bool) {
        let seq = self.first + self.slots.len() as u64;
        self.last_ms = self.now_ms;
        let event = Event { seq, at_ms: self.now_ms, body, parent, host };
        self.total.event(&event);
        self.slots.push_back(Slot { event, open: false });
    }
}

impl Speaker {
    fn of(voice: Voice, parent: Option<String>) -> Self {
        Self { voice, parent }
    }
}

#[cfg(test)]
mod tests;
