//! The only builder of traces. Whatever an adapter pushes, in whatever order, the laws of a trace hold.
//!
//! Events leave the recorder in order as soon as they can no longer change ([`Recorder::drain`]): a message
//! when something else follows it, a call when it has its result. For each call that has ended, only a hash of
//! its id is kept, 8 bytes.

use std::collections::{HashMap, HashSet, VecDeque};

mod bounds;
mod calls;
mod input;

pub use bounds::is_empty;
pub use input::{Answered, Asking, CallSaid, Part, ResultSaid, Said, Voice};

use bounds::{hash, push_bounded, shorten};
use calls::{OpenCall, OpenRequest, Step};

use super::Lost;
use super::usage::{self, UsageTotal};
use super::{Attachment, Body, Event, FileDiff, Header, Message, PlanEntry, Role, Stop, ToolCall, Usage, UsageScope};

/// Notices of one code that are kept; the rest is counted.
pub const MAX_NOTICES: u64 = 100;
/// Bytes of a line that a notice about it quotes.
const QUOTED: usize = 120;
/// Bytes of text that one message, thought or result keeps; the rest is counted.
pub const MAX_TEXT: usize = 16 << 20;
/// Events that are held for what is still open before them, and the bytes of the lines that they came from. Beyond
/// that they go, and what is open stays in the Trace as it is known then.
const MAX_HELD: usize = 100_000;
/// Calls that may be open at once. Beyond that the oldest ones end as unfinished, so many of them at a time.
pub const MAX_OPEN: (usize, usize) = (10_000, 1_000);
/// Calls that may be announced while an earlier one is open, and after how many calls that is looked at. Beyond that
/// the earlier one ends as unfinished: whoever joins calls with their results in order holds all that are between.
pub const MAX_BEHIND: (u64, u64) = (100_000, 10_000);
/// Events that are held at most while a session is ended.
const SPILLED: usize = 1000;
/// See [`MAX_HELD`].
const MAX_HELD_BYTES: usize = 64 << 20;

/// Builds a Trace and enforces its laws.
pub struct Recorder {
    header: Header,
    mode: Option<String>,
    now_ms: u64,
    line: Option<u64>,
    /// How the text of that line begins, if it is a line of the agent's or one sent to it.
    quote: String,
    slots: VecDeque<Slot>,
    /// Number of the first slot in `slots`, which is also the `seq` it will have.
    first: u64,
    held_bytes: usize,
    text: Option<OpenText>,
    open: HashMap<Box<str>, OpenCall>,
    seen: HashSet<u64>,
    /// Ids of the agent's that were used again, with the id in the Trace of the last such call.
    renamed: HashMap<String, String>,
    /// How often ids were used again, so that the next free name is found at once.
    repeats: HashMap<u64, u64>,
    steps: HashMap<Option<String>, Step>,
    next_step: u64,
    requests: HashMap<String, OpenRequest>,
    /// Requests, by the agent's ids, that came before their call was announced, and how many of each id are open.
    of_unknown_calls: HashMap<String, usize>,
    last_usage: Option<Usage>,
    total: UsageTotal,
    notices: HashMap<String, u64>,
    calls: u64,
    /// Calls were ended because too many were open.
    is_cut: bool,
    /// A notice says that something was lost.
    has_lost: bool,
    answer: String,
    /// The answer as the last turn ended; what comes late may add to it and does not take it away.
    answered: String,
    cut_bytes: u64,
    activity: u64,
    turns: u64,
    /// Turns that had ended when the user prompted last.
    turns_at_prompt: u64,
    /// Whether usage was reported since then.
    reported: bool,
    /// Turns before that without a report.
    unreported: u64,
    prompted: bool,
    ended_ms: Option<u64>,
    last_ms: u64,
}

struct Slot {
    event: Event,
    open: bool,
}

/// The text event that a further chunk may still be joined to.
struct OpenText {
    slot: u64,
    speaker: Speaker,
    part: Option<String>,
}

#[derive(PartialEq)]
struct Speaker {
    voice: Voice,
    parent: Option<String>,
}

/// A finished Trace: its header, and the events that had not been drained.
pub struct Finished {
    /// The header, with everything learned on the way.
    pub header: Header,
    /// The last events, `stop` at the end.
    pub events: Vec<Event>,
    /// What was spent.
    pub total: UsageTotal,
}

impl Recorder {
    /// Starts a Trace.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            mode: None,
            now_ms: 0,
            line: None,
            quote: String::new(),
            slots: VecDeque::new(),
            first: 0,
            held_bytes: 0,
            text: None,
            open: HashMap::new(),
            seen: HashSet::new(),
            renamed: HashMap::new(),
            repeats: HashMap::new(),
            steps: HashMap::new(),
            next_step: 0,
            requests: HashMap::new(),
            of_unknown_calls: HashMap::new(),
            last_usage: None,
            total: UsageTotal::default(),
            notices: HashMap::new(),
            calls: 0,
            is_cut: false,
            has_lost: false,
            answer: String::new(),
            answered: String::new(),
            cut_bytes: 0,
            activity: 0,
            turns: 0,
            turns_at_prompt: 0,
            reported: false,
            unreported: 0,
            prompted: false,
            ended_ms: None,
            last_ms: 0,
        }
    }

    /// Sets the clock: what is pushed from here on came with this line of the wire log.
    /// The clock never goes back.
    pub fn at(&mut self, at_ms: u64, line: u64) {
        if self.header.is_timed() {
            self.now_ms = self.now_ms.max(at_ms);
        }
        self.line = Some(line);
        self.quote.clear();
    }

    /// The text of the line that comes now, for notices: they quote how it begins.
    pub fn quote(&mut self, text: &str) {
        let text = text.trim_start();
        self.quote.push_str(&text[..text.floor_char_boundary(QUOTED)]);
        if self.quote.len() < text.len() {
            self.quote.push('…');
        }
    }

    /// Counts the bytes of the line that comes now. Where too much is held, it is let go.
    pub fn weigh(&mut self, bytes: usize) {
        if self.slots.len() <= 1 {
            self.held_bytes = 0;
        }
        self.held_bytes += bytes;
        if self.slots.len() <= MAX_HELD && self.held_bytes <= MAX_HELD_BYTES {
            return;
        }
        self.held_bytes = 0;
        let last = self.slots.len().saturating_sub(1);
        if let Some(open) = &self.text
            && open.slot < self.first + last as u64
            && open.speaker == Speaker::of(Voice::Agent, None)
        {
            self.answer = self.text_of(open.slot).to_owned();
        }
        let mut open = 0;
        for slot in self.slots.iter_mut().take(last).filter(|slot| slot.open) {
            slot.open = false;
            open += 1;
        }
        if open > 0 {
            let text =
                format!("{open} calls or texts were open for {last} events and stand as they were known by then");
            self.notice("let_go", text);
        }
    }

    /// The header, to add what the session tells about itself.
    pub fn header(&mut self) -> &mut Header {
        &mut self.header
    }

    /// The agent works in a mode in which it does not ask for every permission: what it did not ask for is unknown. If it
    /// changed into that mode while it worked, a notice says so.
    pub fn is_unattended(&mut self, mode: &str, changed: bool) {
        if !std::mem::replace(&mut self.header.capabilities.interaction, false) {
            return;
        }
        self.header.unattended_mode = Some(mode.to_owned());
        if changed {
            let text = format!("the agent changed into mode `{mode}`, in which it does not ask for every permission");
            self.notice("unattended_mode", text);
        }
    }

    /// The mode of the session as the agent last reported it, by its id.
    pub fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }

    /// The agent reports the mode of the session.
    pub fn mode_is(&mut self, mode: &str) {
        self.mode = Some(mode.to_owned());
    }

    /// An agent that was given its prompt when it was started says that it has started and is about to work.
    pub fn started(&mut self) {
        if self.header.is_timed() {
            self.header.start_ms.get_or_insert(self.now_ms);
        }
    }

    /// Calls announced so far.
    pub fn call_count(&self) -> u64 {
        self.calls
    }

    /// Steps begun so far.
    pub fn step_count(&self) -> u64 {
        self.next_step
    }

    /// What was spent so far.
    pub fn usage_total(&self) -> &UsageTotal {
        &self.total
    }

    /// Calls announced that have no result yet.
    pub fn open_calls(&self) -> usize {
        self.open.len()
    }

    /// The final answer so far: what the main agent said after its last call.
    pub fn answer(&self) -> &str {
        match &self.text {
            Some(open) if open.speaker == Speaker::of(Voice::Agent, None) && open.slot >= self.first => {
                self.text_of(open.slot)
            }
            _ => &self.answer,
        }
    }

    /// Counts what the agent did; usage and notices are not doing.
    pub fn activity(&self) -> u64 {
        self.activity
    }

    /// Whether the user has said anything.
    pub fn was_prompted(&self) -> bool {
        self.prompted
    }

    /// Turns that the agent has answered.
    pub fn turns_ended(&self) -> u64 {
        self.turns
    }

    /// An open call as it is known so far, with the changes it has shown, by the agent's id.
    pub fn open_call(&self, id: &str) -> Option<(&ToolCall, &[FileDiff])> {
        let open = self.open.get(id)?;
        let slot = self.slots.get(open.slot.checked_sub(self.first)? as usize)?;
        match &slot.event.body {
            Body::ToolCall(call) => Some((call, open.diffs())),
            _ => None,
        }
    }

    /// Whether a call with this id of the agent's is open.
    pub fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// Whether a call with this id of the agent's was ever announced.
    pub fn was_announced(&self, id: &str) -> bool {
        self.is_open(id) || self.seen.contains(&hash(&format!("call {id}")))
    }

    /// Returns true if a call with this id stands in the Trace.
    pub(super) fn was_recorded(&self, call: &str) -> bool {
        self.seen.contains(&hash(&format!("call {call}")))
    }

    /// The id in the Trace of the last call with this id of the agent's.
    pub fn call_id(&self, id: &str) -> String {
        self.renamed.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    /// Adds text. Chunks are joined as they are, blocks and messages of their own by an empty line.
    pub fn say(&mut self, voice: Voice, parent: Option<String>, text: &str, part: Part) {
        if text.is_empty() {
            return;
        }
        self.activity += 1;
        if voice == Voice::User && parent.is_none() {
            self.begin_turn();
        }
        let speaker = Speaker { voice, parent };
        if let Some(open) = &mut self.text
            && open.speaker == speaker
        {
            let apart = match (&part, &open.part) {
                (Part::Block, _) => true,
                (Part::Of(id), Some(last)) => id != last,
                (Part::Of(_), None) | (Part::Chunk, _) => false,
            };
            if let Part::Of(id) = part {
                open.part = Some(id);
            }
            let slot = open.slot;
            self.extend_text(slot, text, apart);
            return;
        }
        let mut kept = String::new();
        self.cut_bytes += push_bounded(&mut kept, text);
        let body = match voice {
            Voice::Thought => Body::Thought { text: kept },
            Voice::User => Body::Message(Message { role: Role::User, text: kept, attachments: Vec::new() }),
            Voice::Agent => Body::Message(Message { role: Role::Agent, text: kept, attachments: Vec::new() }),
        };
        if voice == Voice::User && speaker.parent.is_none() {
            self.close_text();
            self.answer.clear();
            self.answered.clear();
            self.prompted = true;
        }
        let parent = speaker.parent.clone();
        let slot = self.push_open(body, parent);
        let part = match part {
            Part::Of(id) => Some(id),
            Part::Block | Part::Chunk => None,
        };
        self.text = Some(OpenText { slot, speaker, part });
    }

    /// The user prompts, perhaps again. A prompt that comes in pieces begins one turn.
    fn begin_turn(&mut self) {
        if self.turns > self.turns_at_prompt {
            self.turns_at_prompt = self.turns;
            self.unreported += u64::from(!self.reported);
            self.reported = false;
        }
    }

    /// Prompts to which the agent said nothing are one message, so the Trace alone does not show that one of their turns
    /// reported no usage.
    fn note_unreported_turns(&mut self) {
        let unreported = self.unreported + u64::from(self.turns > 0 && !self.reported);
        let ended_unreported = self.turns > 0 && !self.reported;
        let is_missing = if self.total.is_of_session() { ended_unreported } else { unreported > 0 };
        if is_missing && self.total.is_exact() {
            let text =
                format!("{unreported} of {} turns reported no usage, so the totals are lower bounds", self.turns);
            self.push_aside(Body::Notice { code: usage::INCOMPLETE.into(), text, line: None, lost: None }, None, true);
        }
    }

    /// Adds something that is not text to the message being spoken, or to a new one.
    pub fn attach(&mut self, role: Role, parent: Option<String>, attachment: Attachment) {
        let voice = if role == Role::User { Voice::User } else { Voice::Agent };
        let speaker = Speaker { voice, parent };
        let slot = match &self.text {
            Some(open) if open.speaker == speaker => open.slot,
            _ => {
                if speaker == Speaker::of(Voice::User, None) {
                    self.close_text();
                    self.answer.clear();
                    self.answered.clear();
                }
                let message = Message { role, text: String::new(), attachments: Vec::new() };
                let slot = self.push_open(Body::Message(message), speaker.parent.clone());
                self.text = Some(OpenText { slot, speaker, part: None });
                slot
            }
        };
        if let Some(Body::Message(message)) = self.body(slot) {
            message.attachments.push(attachment);
        }
    }

    /// The agent's plan, which replaces the one before.
    pub fn plan(&mut self, parent: Option<String>, entries: Vec<PlanEntry>) {
        self.push(Body::Plan { entries }, parent, false);
    }

    /// Records usage. A report of nothing but zeros is none, and one that repeats the last is not said again.
    pub fn usage(&mut self, mut usage: Usage, host: bool) {
        // A negative cost is impossible and counts as unknown.
        usage.cost_usd = usage.cost_usd.filter(|cost| *cost >= 0.0);
        let repeated = usage.scope == UsageScope::Session && self.last_usage.as_ref() == Some(&usage);
        if usage.says_nothing() || repeated {
            return;
        }
        if usage::Measure::all().any(|measure| usage::holds(&usage, measure)) {
            self.reported = true;
        }
        if usage.scope == UsageScope::Session {
            self.last_usage = Some(usage.clone());
        }
        self.push_aside(Body::Usage(usage), None, host);
    }

    /// Records what could not be taken as an event, and quotes the line that it is about. After [`MAX_NOTICES`] of one
    /// code the rest is counted.
    pub fn notice(&mut self, code: &str, text: impl Into<String>) {
        self.tell(code, text.into(), None);
    }

    /// Records that a line was lost, or a part of one: what it said is in no event. Graders then know that what the Trace does
    /// not show may have happened.
    pub fn lost(&mut self, code: &str, text: impl Into<String>) {
        self.tell(code, text.into(), Some(Lost::Line));
    }

    fn tell(&mut self, code: &str, text: String, lost: Option<Lost>) {
        let count = self.notices.entry(code.to_owned()).or_insert(0);
        *count += 1;
        // The first loss is told however many notices of its code there are.
        let first_loss = lost.is_some() && !std::mem::replace(&mut self.has_lost, true);
        if *count <= MAX_NOTICES || first_loss {
            let line = self.line;
            let mut text = shorten(&text);
            let quote = self.quote.strip_suffix('…').unwrap_or(&self.quote);
            if !quote.trim().is_empty() && !text.contains(quote) {
                text = format!("{text}; the line begins: {}", self.quote);
            }
            self.push_aside(Body::Notice { code: code.to_owned(), text, line, lost }, None, false);
        }
    }

    /// The session came to its end here, whatever still follows: `stop` takes this time.
    pub fn mark_end(&mut self) {
        self.ended_ms = Some(self.now_ms);
    }

    /// The turn is over. If it was cancelled, what is open ends with it; if not, what was decided and got no word.
    pub fn end_turn(&mut self, cancelled: bool) {
        self.turns += 1;
        self.answered = self.answer().to_owned();
        self.mark_end();
        if cancelled {
            self.cancel_open();
        }
        self.end_open(|call| call.rejected || call.is_cancelled());
    }

    /// Takes the events that nothing can change any more, in order.
    pub fn drain(&mut self) -> Vec<Event> {
        let ready = self.slots.iter().take_while(|slot| !slot.open).count();
        self.first += ready as u64;
        self.slots.drain(..ready).map(|slot| slot.event).collect()
    }

    /// Events that something may still change, in order.
    pub fn held(&self) -> impl Iterator<Item = &Event> {
        self.slots.iter().map(|slot| &slot.event)
    }

    /// Ends the Trace. Calls without a result get one; then comes `stop`, with the final answer where it has none.
    pub fn finish(self, stop: Stop, host: bool) -> Finished {
        let mut events = Vec::new();
        let finished = self.finish_into(stop, host, |event| events.push(event));
        Finished { events, ..finished }
    }

    /// The same, event by event: calls that never closed may be very many, and their results are not held all at once.
    pub fn finish_into(mut self, mut stop: Stop, host: bool, mut each: impl FnMut(Event)) -> Finished {
        if let Some(ended) = self.ended_ms {
            self.now_ms = ended.max(self.last_ms);
        }
        for (id, open) in self.take_open(|_| true) {
            self.end_unanswered(&id, open);
            if self.slots.len() >= SPILLED {
                self.spill(&mut each);
            }
        }
        self.close_text();
        self.line = None;
        self.quote.clear();
        let mut codes: Vec<_> = self.notices.iter().filter(|(_, n)| **n > MAX_NOTICES).collect();
        codes.sort();
        let told: Vec<String> = codes
            .into_iter()
            .map(|(code, n)| format!("{} more notices of the kind {code} are in the wire log only", n - MAX_NOTICES))
            .collect();
        for text in told {
            self.push_aside(Body::Notice { code: "notices_cut".into(), text, line: None, lost: None }, None, true);
        }
        if self.cut_bytes > 0 {
            let text =
                format!("{} bytes of text beyond {MAX_TEXT} in one event are in the wire log only", self.cut_bytes);
            let body = Body::Notice { code: "text_cut".into(), text, line: None, lost: Some(Lost::Text) };
            self.push_aside(body, None, true);
        }
        self.note_unreported_turns();
        if stop.output.is_none() {
            let answer = if self.answer.is_empty() { &mut self.answered } else { &mut self.answer };
            stop.output = Some(std::mem::take(answer)).filter(|answer| !answer.is_empty());
        }
        self.push(Body::Stop(stop), None, host);
        self.spill(&mut each);
        Finished { header: self.header, events: Vec::new(), total: self.total }
    }

    /// Hands on the events that nothing can change any more.
    fn spill(&mut self, each: &mut impl FnMut(Event)) {
        while self.slots.front().is_some_and(|slot| !slot.open) {
            let Some(slot) = self.slots.pop_front() else { break };
            self.first += 1;
            each(slot.event);
        }
    }

    fn extend_text(&mut self, slot: u64, text: &str, apart: bool) {
        let Some(body) = self.body(slot) else {
            self.cut_bytes += text.len() as u64;
            return;
        };
        let kept = match body {
            Body::Message(message) => &mut message.text,
            Body::Thought { text } => text,
            _ => return,
        };
        if apart && !kept.is_empty() {
            kept.push_str("\n\n");
        }
        let cut = push_bounded(kept, text);
        self.cut_bytes += cut;
    }

    fn close_text(&mut self) {
        let Some(open) = self.text.take() else { return };
        if open.speaker == Speaker::of(Voice::Agent, None) && open.slot >= self.first {
            self.answer = self.text_of(open.slot).to_owned();
        }
        if let Some(slot) = self.slot(open.slot) {
            slot.open = false;
        }
    }

    fn text_of(&self, slot: u64) -> &str {
        let slot = slot.checked_sub(self.first).and_then(|n| self.slots.get(n as usize));
        match slot.map(|slot| &slot.event.body) {
            Some(Body::Message(message)) => &message.text,
            _ => "",
        }
    }

    fn slot(&mut self, slot: u64) -> Option<&mut Slot> {
        let index = slot.checked_sub(self.first)?;
        self.slots.get_mut(index as usize)
    }

    fn body(&mut self, slot: u64) -> Option<&mut Body> {
        self.slot(slot).map(|slot| &mut slot.event.body)
    }

    /// Pushes an event that ends the message being spoken.
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

    /// Pushes an event that a message may go on after.
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
