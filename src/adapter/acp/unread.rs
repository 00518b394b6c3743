//! What the engine cannot read and what may show a call: messages of unknown methods, and updates of unknown kinds.

use serde_json::{Map, Value};

use super::{MAX_REPORTED, Translator};
use crate::trace::NoticeCode;
use crate::trace::recorder::{QuotedLine, Recorder};

/// A message that names calls which no update had announced. An update may announce them later.
pub(super) struct Unread {
    ids: Vec<String>,
    code: NoticeCode,
    /// The method, if a notice without a loss is given once for each.
    method: Option<String>,
    text: String,
    line: QuotedLine,
}

/// The calls that something unread shows, without those that an update announced.
#[derive(Default)]
struct ShownCalls {
    ids: Vec<String>,
    /// True if it shows a call without an ID: an update or a description of one.
    has_unnamed: bool,
}

impl ShownCalls {
    fn look(&mut self, unread: &Value, recorder: &Recorder) {
        match unread {
            Value::Object(map) => self.look_in(map, recorder),
            Value::Array(items) => items.iter().for_each(|item| self.look(item, recorder)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn look_in(&mut self, unread: &Map<String, Value>, recorder: &Recorder) {
        if let Some(id) = unread.get("toolCallId").and_then(Value::as_str) {
            return self.named(id, recorder);
        }
        let is_update = |word: &str| word.starts_with("tool_call");
        self.has_unnamed |= unread.get("sessionUpdate").and_then(Value::as_str).is_some_and(is_update);
        match unread.get("toolCall") {
            Some(Value::String(id)) => self.named(id, recorder),
            Some(Value::Object(call)) => self.has_unnamed |= !call.contains_key("toolCallId"),
            _ => {}
        }
        unread.values().for_each(|value| self.look(value, recorder));
    }

    fn named(&mut self, id: &str, recorder: &Recorder) {
        if !recorder.was_announced(id) {
            self.ids.push(id.to_owned());
        }
    }
}

impl Translator {
    /// Reports a message of an unknown method or an update of an unknown kind. If it may show a call that no update announces
    /// until the end of the turn, the call is lost. `method` is the method, if a notice without a loss is given once for each.
    pub(super) fn take_unread(
        &mut self,
        code: NoticeCode,
        method: Option<&str>,
        unread: &Value,
        text: impl FnOnce() -> String,
        recorder: &mut Recorder,
    ) {
        let mut shown = ShownCalls::default();
        shown.look(unread, recorder);
        let ShownCalls { ids, has_unnamed } = shown;
        if has_unnamed || (!ids.is_empty() && self.unread.len() >= MAX_REPORTED) {
            recorder.did_unseen(code, text());
        } else if ids.is_empty() {
            self.tell_unread(code, method, text, recorder);
        } else {
            let (method, line) = (method.map(str::to_owned), recorder.this_line());
            self.unread.push(Unread { ids, code, method, text: text(), line });
        }
    }

    /// Takes the end of a turn: the calls that no update announced by then are lost.
    pub(super) fn unread_ended(&mut self, recorder: &mut Recorder) {
        for Unread { ids, code, method, text, line } in std::mem::take(&mut self.unread) {
            let is_lost = ids.iter().any(|id| !recorder.was_announced(id));
            recorder.about(line, |recorder| match is_lost {
                true => recorder.did_unseen(code, text),
                false => self.tell_unread(code, method.as_deref(), || text, recorder),
            });
        }
    }

    fn tell_unread(
        &mut self,
        code: NoticeCode,
        method: Option<&str>,
        text: impl FnOnce() -> String,
        recorder: &mut Recorder,
    ) {
        match method {
            Some(method) => self.once(code, method, text, recorder),
            None => recorder.notice(code, text()),
        }
    }
}
