//! Texts that the agent's program may have written: it may show the error of a request to its model as a message, and then
//! answer the prompt with the same error.

use serde_json::{Map, Value};

use super::Translator;
use super::rpc::Message;
use super::updates::{gives_events, parent_of};
use crate::adapter::errors;
use crate::trace::NoticeCode;
use crate::trace::recorder::{QuotedLine, Recorder, Voice};

/// A chunk of a message that waits for the next line.
pub(super) struct PendingChunk {
    update: Map<String, Value>,
    meta: Value,
    text: String,
    line: QuotedLine,
}

impl Translator {
    /// Returns true if a chunk with a message ID has a text that also reports an error: the answer ended at a limit or as a
    /// refusal.
    pub(super) fn may_be_error(&self, update: &Map<String, Value>, meta: &Value) -> bool {
        let is_one = update.get("messageId").is_some_and(Value::is_string) && parent_of(meta).is_none();
        is_one && self.marked.is_none() && text_of(update).is_some_and(|text| errors::ended_in(text).is_some())
    }

    /// Keeps a chunk until the next line.
    pub(super) fn hold(&mut self, update: Map<String, Value>, meta: Value, recorder: &Recorder) {
        let text = text_of(&update).unwrap_or_default().trim().to_owned();
        self.pending_chunk = Some(PendingChunk { update, meta, text, line: recorder.this_line() });
    }

    /// Records the chunk that was kept, before the next message. If that message answers the prompt with an error of this
    /// text, the agent wrote the chunk. Updates that are no events of the session, and reports of usage, may come in between.
    pub(super) fn release_before(&mut self, next: &Message, recorder: &mut Recorder) {
        let is_error = |text: &str| match next {
            Message::Response { outcome: Err(error), .. } => error.detail().ends_with(text),
            _ => false,
        };
        match self.pending_chunk.take() {
            Some(chunk) if is_aside(next) => self.pending_chunk = Some(chunk),
            Some(chunk) if is_error(&chunk.text) => {
                recorder.about(chunk.line, |recorder| recorder.notice(NoticeCode::ProgramMessage, chunk.text));
            }
            chunk => self.record_chunk(chunk, recorder),
        }
    }

    /// Records the chunk that was kept, because no message follows.
    pub(super) fn release(&mut self, recorder: &mut Recorder) {
        let chunk = self.pending_chunk.take();
        self.record_chunk(chunk, recorder);
    }

    fn record_chunk(&mut self, chunk: Option<PendingChunk>, recorder: &mut Recorder) {
        if let Some(PendingChunk { update, meta, line, .. }) = chunk {
            // This is of the current line.
            let marked = self.marked.take();
            recorder.about(line, |recorder| self.speak(Some(Voice::Agent), update, &meta, recorder));
            self.marked = marked;
        }
    }
}

fn text_of(update: &Map<String, Value>) -> Option<&str> {
    update.get("content")?.get("text")?.as_str()
}

fn is_aside(message: &Message) -> bool {
    let (Message::Request { method, params, .. } | Message::Notification { method, params }) = message else {
        return false;
    };
    let word = params.pointer("/update/sessionUpdate").and_then(Value::as_str);
    method == "session/update" && word.is_some_and(|word| word == "usage_update" || !gives_events(word))
}
