//! Messages that the agent withdraws after it sent them: a later message names them in `supersedes`, or a notice about a
//! refusal in `retracted_message_uuids`. What was only streamed is withdrawn in `pieces.rs`.

use std::collections::{HashMap, VecDeque};

use super::lines::Line;
use super::{Translator, hash};
use crate::text::{first_bytes, plural};
use crate::trace::NoticeCode;
use crate::trace::recorder::{Recorder, SentText};

/// The maximum number of lines whose content is remembered.
const MAX_KNOWN: usize = 10_000;
/// The maximum bytes of a withdrawn text in a notice.
pub(super) const MAX_SHOWN: usize = 80;

/// The last lines of the model, by the hashes of their UUIDs.
#[derive(Default)]
pub(super) struct SentLines {
    lines: HashMap<u64, LineContent>,
    /// The known lines, the oldest first.
    order: VecDeque<u64>,
    /// True if an old line was removed, because more than [`MAX_KNOWN`] lines came.
    is_full: bool,
    /// The content of the line that is being read.
    current: LineContent,
}

/// The events that a line of the model added to the trace.
#[derive(Default)]
struct LineContent {
    texts: Vec<SentText>,
    calls: Vec<String>,
}

impl SentLines {
    /// Takes a text, which was recorded as this part of a message.
    pub(super) fn text(&mut self, parent: &Option<String>, part: String, text: &str, recorder: &Recorder) {
        let begins = first_bytes(text, MAX_SHOWN).to_owned();
        self.current.texts.push(SentText { parent: parent.clone(), part, begins, last_event: recorder.last_event() });
    }

    /// Takes a call.
    pub(super) fn call(&mut self, id: &str) {
        self.current.calls.push(id.to_owned());
    }

    /// Takes the end of a line, whose texts and calls came before.
    pub(super) fn end(&mut self, line: &Line<'_>) {
        let content = std::mem::take(&mut self.current);
        let Some(uuid) = line.uuid.get().filter(|_| !content.texts.is_empty() || !content.calls.is_empty()) else {
            return;
        };
        if self.order.len() >= MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.lines.remove(&oldest);
            self.is_full = true;
        }
        let uuid = hash(uuid);
        if self.lines.insert(uuid, content).is_none() {
            self.order.push_back(uuid);
        }
    }
}

impl Translator {
    /// Takes back the messages that a line names: their texts, unless an event came after them, and their calls without a
    /// result, which end as cancelled. A call with a result was carried out, so it stays.
    pub(super) fn withdraw(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        if line.supersedes.0.is_empty() {
            return;
        }
        let (mut texts, mut calls, mut is_forgotten) = (Vec::new(), 0_u64, false);
        for uuid in line.supersedes.0.iter().filter_map(|uuid| uuid.get()) {
            // A line that is named twice has no content the second time.
            let Some(content) = self.sent_lines.lines.get_mut(&hash(uuid)).map(std::mem::take) else {
                is_forgotten |= self.sent_lines.is_full;
                continue;
            };
            calls += content.calls.iter().filter(|id| recorder.withdraw(id)).count() as u64;
            texts.extend(content.texts);
        }
        let count = plural(texts.len() as u64, "text");
        let notice = format!("the agent withdrew {count} and {} of earlier messages", plural(calls, "call"));
        match is_forgotten {
            true => recorder
                .lost_speaker(NoticeCode::WithdrawnMessage, format!("{notice}; it withdrew other messages, too")),
            false if !texts.is_empty() || calls > 0 => recorder.notice(NoticeCode::WithdrawnMessage, notice),
            false => {}
        }
        for text in texts {
            recorder.withdraw_text(text);
        }
    }
}
