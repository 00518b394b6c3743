//! Texts that the agent withdraws, and texts in its messages that are not its own: they are removed from the message that can
//! still grow, or they stay and are reported.

use super::{APART, MAX_PARTS, QuotedLine, Recorder, Speaker, Voice};
use crate::text::first_bytes;
use crate::trace::{Body, NoticeCode};

/// The ID of a part to which the agent gives none.
const UNNAMED: &str = "\0";

/// The maximum bytes of a text in the notice that the text is not the agent's.
const MAX_BEGINS: usize = 400;

/// A text of the agent that the agent may withdraw.
#[derive(Debug, Clone)]
pub struct SentText {
    /// The sub-agent that wrote the text.
    pub parent: Option<String>,
    /// The ID of the text's part.
    pub part: String,
    /// The beginning of the text.
    pub begins: String,
    /// The number of the last event when the text was complete.
    pub last_event: u64,
}

/// A withdrawn text that was not removed, and the line that withdrew it.
pub(super) struct Withdrawn {
    text: SentText,
    line: QuotedLine,
    /// True if the text was never the agent's: while the text stays, the speaker of its message is unknown.
    is_other: bool,
}

/// The place of a withdrawn text.
#[derive(PartialEq, Eq)]
enum Place {
    Removed,
    /// The text is all that the message holds, so it was not removed.
    Alone,
    /// The text is not in the message that can still grow, or cannot be removed from it.
    Elsewhere,
}

impl Recorder {
    /// Returns the number of the last event.
    pub fn last_event(&self) -> u64 {
        (self.first + self.slots.len() as u64).saturating_sub(1)
    }

    /// Removes a text that the agent withdraws from the message that can still grow. If the message holds nothing else, the
    /// text is removed when another text is added. A text that stays is reported in a notice.
    pub fn withdraw_text(&mut self, text: SentText) {
        let line = self.this_line();
        self.take_away(Withdrawn { text, line, is_other: false });
    }

    /// Returns true if the final answer so far is a text that the agent withdrew, and nothing else.
    pub fn is_answer_withdrawn(&self) -> bool {
        let main = Speaker::of(Voice::Agent, None);
        self.text.as_ref().is_some_and(|open| open.speaker == main && open.withdrawn.is_some())
    }

    /// Records that the last text of the main agent is not the agent's. The text is removed as a withdrawn one is, and the notice
    /// quotes it. If the message holds other texts, too, all of them stay and are in doubt. The next text begins another answer.
    pub fn end_other_text(&mut self, code: NoticeCode, text: &str) {
        self.complete_answer();
        let Some(other) = self.only_text() else { return self.lost_speaker(code, text) };
        self.notice(code, format!("{text}: {}", other.begins));
        let line = self.this_line();
        self.take_away(Withdrawn { text: other, line, is_other: true });
    }

    /// Returns the text of the main agent's message that can still grow, if the message is one text.
    fn only_text(&mut self) -> Option<SentText> {
        let open = self.text.as_mut().filter(|open| open.speaker == Speaker::of(Voice::Agent, None))?;
        let [(part, 0)] = open.parts.as_mut_slice() else { return None };
        if part.is_none() && open.part.is_none() {
            *part = Some(UNNAMED.to_owned());
        }
        let (part, slot) = (part.clone()?, open.slot);
        let begins = first_bytes(self.text_of(slot), MAX_BEGINS).to_owned();
        Some(SentText { parent: None, part, begins, last_event: self.last_event() })
    }

    fn take_away(&mut self, withdrawn: Withdrawn) {
        match self.take_out(&withdrawn.text) {
            Place::Removed => {}
            Place::Elsewhere => self.tell_that_stays(withdrawn),
            Place::Alone => {
                if let Some(open) = &mut self.text {
                    open.withdrawn = Some(withdrawn);
                }
            }
        }
    }

    /// Removes the withdrawn text that was alone in the message that can still grow, because another text was added.
    pub(super) fn take_out_first(&mut self) {
        let Some(alone) = self.text.as_mut().and_then(|open| open.withdrawn.take()) else { return };
        if self.take_out(&alone.text) != Place::Removed
            && let Some(open) = &mut self.text
        {
            open.withdrawn = Some(alone);
        }
    }

    /// Reports a withdrawn text that stays in its message.
    pub(super) fn tell_that_stays(&mut self, withdrawn: Withdrawn) {
        let Withdrawn { text, line, is_other } = withdrawn;
        if is_other {
            let notice = format!("a message still shows a text that is not the agent's: {}", text.begins);
            return self.about(line, |recorder| recorder.lost_speaker(NoticeCode::WithdrawnMessage, notice));
        }
        let is_later = |event: u64| event <= text.last_event;
        if text.parent.is_none() && self.withdrawn.as_ref().is_none_or(|(event, _)| is_later(*event)) {
            self.withdrawn = Some((text.last_event, line.clone()));
        }
        let notice = format!("a message still shows a text that the agent withdrew: {}", text.begins);
        self.about(line, |recorder| recorder.notice(NoticeCode::WithdrawnMessage, notice));
    }

    /// Reports at the end of the session that the final answer may hold a withdrawn text.
    pub(super) fn tell_withdrawn_answer(&mut self) {
        let (is_empty, from) = match self.answer.is_empty() {
            true => (self.answered.is_empty(), self.answered_from),
            false => (false, self.answer_from),
        };
        if is_empty {
            return;
        }
        if let Some((_, line)) = self.withdrawn.take().filter(|(event, _)| *event >= from) {
            let notice = "the final answer holds a text that the agent withdrew";
            self.about(line, |recorder| recorder.lost_speaker(NoticeCode::WithdrawnMessage, notice));
        }
    }

    /// Removes a text of the agent, wherever it is in the message that can still grow, unless the message is nothing else.
    fn take_out(&mut self, text: &SentText) -> Place {
        let Some(open) = &self.text else { return Place::Elsewhere };
        let is_of_speaker = open.speaker.voice == Voice::Agent && open.speaker.parent == text.parent;
        if !is_of_speaker || open.parts.len() >= MAX_PARTS {
            return Place::Elsewhere;
        }
        let is_part = |id: &Option<String>| id.as_deref() == Some(text.part.as_str());
        let Some(at) = open.parts.iter().position(|(id, _)| is_part(id)) else { return Place::Elsewhere };
        let (slot, from) = (open.slot, open.parts[at].1);
        let next = open.parts.get(at + 1).map(|(_, length)| *length);
        let Some(Body::Message(message)) = self.body(slot) else { return Place::Elsewhere };
        let kept = &mut message.text;
        let to = match next {
            // The empty line after the first part goes with it.
            Some(next) if from == 0 && next > 0 => next + APART.len(),
            Some(next) => next,
            None => kept.len(),
        };
        if from == 0 && to >= kept.len() {
            return Place::Alone;
        }
        if kept.get(from..to).is_none() {
            return Place::Elsewhere;
        }
        kept.replace_range(from..to, "");
        if let Some(open) = &mut self.text {
            open.parts.remove(at);
            open.answer_at = open.answer_at.min(from).max(open.answer_at.saturating_sub(to - from));
            for (_, length) in open.parts.iter_mut().skip(at) {
                *length = length.saturating_sub(to - from);
            }
            for gap in &mut open.gaps {
                gap.at = gap.at.min(from).max(gap.at.saturating_sub(to - from));
            }
        }
        Place::Removed
    }
}
