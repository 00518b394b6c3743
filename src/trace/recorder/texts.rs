//! Texts: messages and thoughts, joined from their pieces, and the final answer.

use std::borrow::Cow;

use super::limits::push_bounded;
use super::{APART, Continuation, MAX_PARTS, OpenText, Recorder, Speaker, Voice};
use crate::trace::{Attachment, Body, Message, NoticeCode, Role};

impl Recorder {
    /// Adds text. Chunks are joined without a separator; separate blocks and messages are joined by an empty line.
    pub fn say(&mut self, voice: Voice, parent: Option<String>, text: &str, part: Continuation) {
        if text.is_empty() {
            return;
        }
        self.activity += 1;
        let begins_turn = voice == Voice::User && parent.is_none() && self.begin_turn();
        let speaker = Speaker { voice, parent };
        let is_answer = speaker == Speaker::of(Voice::Agent, None);
        let begins_answer = is_answer && std::mem::take(&mut self.is_answer_over);
        self.note_silent_turn(begins_turn, &speaker);
        if let Some(open) = &mut self.text
            && open.speaker == speaker
        {
            self.has_unreported_text |= voice != Voice::User;
            let apart = match (&part, &open.part) {
                _ if begins_turn || begins_answer => true,
                (Continuation::Block, _) => true,
                (Continuation::Of(id), Some(last)) => id != last,
                (Continuation::Of(_), None) | (Continuation::Chunk, _) => false,
            };
            let begins = apart || open.parts.is_empty();
            let id = match part {
                Continuation::Of(id) => Some(id),
                Continuation::Block | Continuation::Chunk => None,
            };
            if id.is_some() {
                open.part.clone_from(&id);
            }
            let slot = open.slot;
            let length = self.text_of(slot).len();
            if let Some(open) = self.text.as_mut().filter(|open| begins && open.parts.len() < MAX_PARTS) {
                open.parts.push((id, length));
            }
            self.extend_text(slot, text, apart);
            if let Some(open) = &mut self.text
                && (begins_answer || (apart && open.answer_at > 0 && open.answer_at >= length))
            {
                open.before.clear();
                (open.gaps, open.before_gaps) = (Vec::new(), Vec::new());
                open.answer_at = if length > 0 { length + APART.len() } else { 0 };
            }
            if apart {
                self.take_out_first();
            }
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
            self.forget_answer();
            self.prompted = true;
        }
        let parent = speaker.parent.clone();
        let slot = self.push_open(body, parent);
        let part = match part {
            Continuation::Of(id) => Some(id),
            Continuation::Block | Continuation::Chunk => None,
        };
        let is_same_answer = is_answer && !begins_answer && !self.answer.is_empty();
        let continues = is_same_answer && part.is_some() && part == self.answer_part;
        if is_answer && !continues {
            self.answer_from = slot;
        }
        let (before, before_gaps) = match continues {
            true => (std::mem::take(&mut self.answer), std::mem::take(&mut self.answer_gaps)),
            false => (String::new(), Vec::new()),
        };
        // A part that continues an earlier event is not whole in this one.
        let parts = vec![(part.clone().filter(|_| !continues), 0)];
        self.text = Some(OpenText {
            slot,
            speaker,
            part,
            parts,
            before,
            answer_at: 0,
            gaps: Vec::new(),
            before_gaps,
            withdrawn: None,
            is_doubted: false,
        });
    }

    /// Adds a notice if a prompt begins a turn and follows the prompt before it in the same message.
    fn note_silent_turn(&mut self, begins_turn: bool, speaker: &Speaker) {
        if begins_turn && self.text.as_ref().is_some_and(|open| open.speaker == *speaker) {
            let text = "the agent answered a prompt and showed nothing, so the next prompt is in the same message";
            self.notice(NoticeCode::SilentTurn, text);
        }
    }

    /// Removes the end of a text that the agent takes back. Returns false if the text is not open any more or does not end
    /// so: then it stays. `part` is the part to which the end belongs.
    pub fn take_back(&mut self, voice: Voice, parent: Option<&String>, part: &str, end: &str) -> bool {
        self.take_end(voice, parent, Some(part), end)
    }

    /// Removes the end of the text that can still grow, if it is a text of this speaker, ends so, and its last part is
    /// `part`. Without a `part`, any part is meant.
    fn take_end(&mut self, voice: Voice, parent: Option<&String>, part: Option<&str>, end: &str) -> bool {
        let is_open = |open: &OpenText| {
            let is_part = part.is_none() || open.part.as_deref() == part;
            open.speaker.voice == voice && open.speaker.parent.as_ref() == parent && is_part
        };
        let Some(slot) = self.text.as_ref().filter(|open| is_open(open)).map(|open| open.slot) else { return false };
        let kept = match self.body(slot) {
            Some(Body::Message(message)) => &mut message.text,
            Some(Body::Thought { text }) => text,
            _ => return false,
        };
        let Some(length) = kept.strip_suffix(end).map(str::len) else { return false };
        kept.truncate(length);
        for gap in self.text.iter_mut().flat_map(|open| &mut open.gaps) {
            gap.at = gap.at.min(length);
        }
        true
    }

    /// Completes a character that was cut between two pieces of a text: `whole` takes the place of the U+FFFD at the end of
    /// the first piece. If another event came in between, the first piece stays as it is, and a notice reports the loss.
    pub fn complete(&mut self, voice: Voice, parent: Option<String>, whole: char, part: Continuation) {
        let id = match &part {
            Continuation::Of(id) => Some(id.as_str()),
            Continuation::Block | Continuation::Chunk => None,
        };
        if !self.take_end(voice, parent.as_ref(), id, "\u{fffd}") {
            self.lost_text(
                NoticeCode::CutCharacter,
                "another event came between the pieces of a text that hold a character",
            );
        }
        self.say(voice, parent, whole.encode_utf8(&mut [0; 4]), part);
    }

    /// Adds an attachment to the current message, or to a new one.
    pub fn attach(&mut self, role: Role, parent: Option<String>, attachment: Attachment) {
        let voice = if role == Role::User { Voice::User } else { Voice::Agent };
        let speaker = Speaker { voice, parent };
        let is_prompt = speaker == Speaker::of(Voice::User, None);
        let begins_turn = is_prompt && self.begin_turn();
        self.prompted |= is_prompt;
        self.note_silent_turn(begins_turn, &speaker);
        let slot = match &self.text {
            Some(open) if open.speaker == speaker => open.slot,
            _ => {
                if is_prompt {
                    self.forget_answer();
                }
                let message = Message { role, text: String::new(), attachments: Vec::new() };
                let slot = self.push_open(Body::Message(message), speaker.parent.clone());
                if speaker == Speaker::of(Voice::Agent, None) {
                    self.answer_from = slot;
                }
                let (parts, before) = (Vec::new(), String::new());
                self.text = Some(OpenText {
                    slot,
                    speaker,
                    part: None,
                    parts,
                    before,
                    answer_at: 0,
                    gaps: Vec::new(),
                    before_gaps: Vec::new(),
                    withdrawn: None,
                    is_doubted: false,
                });
                slot
            }
        };
        if let Some(Body::Message(message)) = self.body(slot) {
            message.attachments.push(attachment);
        }
    }

    /// Records, once for each message, that the main agent's message that can still grow may hold a text of another speaker.
    pub fn doubt_speaker(&mut self, code: NoticeCode, text: impl Into<String>) {
        let main = Speaker::of(Voice::Agent, None);
        let Some(open) = self.text.as_mut().filter(|open| open.speaker == main) else { return };
        if !std::mem::replace(&mut open.is_doubted, true) {
            self.lost_speaker(code, text);
        }
    }

    /// Returns the final answer so far: the main agent's last text after its last call. A text that continues the same part
    /// after a plan or a thought is one with the text before it.
    pub fn answer(&self) -> Cow<'_, str> {
        match &self.text {
            Some(open) if open.speaker == Speaker::of(Voice::Agent, None) && open.slot >= self.first => {
                match open.before.is_empty() {
                    true => Cow::Borrowed(self.answer_in(open)),
                    false => Cow::Owned(self.whole_answer(open)),
                }
            }
            _ => Cow::Borrowed(&self.answer),
        }
    }

    /// Returns the answer that ends with an open text of the main agent.
    pub(super) fn whole_answer(&self, open: &OpenText) -> String {
        let mut answer = open.before.clone();
        // What is beyond the bound is counted with the text itself.
        let _ = push_bounded(&mut answer, self.answer_in(open));
        answer
    }

    /// Returns the text of the event of an open text, without the answers of earlier turns.
    fn answer_in(&self, open: &OpenText) -> &str {
        self.text_of(open.slot).get(open.answer_at..).unwrap_or_default()
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
            kept.push_str(APART);
        }
        let cut = push_bounded(kept, text);
        self.cut_bytes += cut;
    }

    pub(super) fn close_text(&mut self) {
        let Some(open) = self.text.take() else { return };
        if open.speaker == Speaker::of(Voice::Agent, None) && open.slot >= self.first {
            self.answer = self.whole_answer(&open);
            (self.answer_gaps, self.last_part) = (open.whole_gaps(), open.as_last_part());
            self.answer_part = open.part;
        }
        if let Some(slot) = self.slot(open.slot) {
            slot.open = false;
        }
        if let Some(withdrawn) = open.withdrawn {
            self.tell_that_stays(withdrawn);
        }
    }

    /// Forgets the answer so far, because the agent is asked again.
    fn forget_answer(&mut self) {
        self.close_text();
        self.answer.clear();
        self.answered.clear();
        self.answer_gaps.clear();
        self.answered_gaps.clear();
    }

    pub(super) fn text_of(&self, slot: u64) -> &str {
        let slot = slot.checked_sub(self.first).and_then(|n| self.slots.get(n as usize));
        match slot.map(|slot| &slot.event.body) {
            Some(Body::Message(message)) => &message.text,
            Some(Body::Thought { text }) => text,
            _ => "",
        }
    }
}
