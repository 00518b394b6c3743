//! Lines and blocks that cannot be read or belong to another session: whether they may hide what the agent did.

use serde_json::Value;

use super::lines::{Block, Line, Message};
use crate::adapter::call_progress::new_of_calls;
use crate::adapter::surrogates;
use crate::adapter::torn::{self, may_hold_message, may_hold_message_within};
use crate::adapter::unknown_block::{may_be_of_call, may_hold};
use crate::trace::recorder::Recorder;
use crate::trace::{CallStatus, NoticeCode};

/// The keys of the lines.
const KEYS: torn::Keys = torn::Keys {
    of_message: &["type"],
    of_piece: &[
        "message",
        "content",
        "tool_use",
        "tool_use_id",
        "tool_use_result",
        "tool_result",
        "parent_tool_use_id",
        "input",
        "name",
        "id",
        "is_error",
        "subtype",
        "session_id",
        "sessionId",
        "uuid",
        "parentUuid",
        "request_id",
    ],
};

/// Records a line of an unknown type. It may be about a call that the trace does not show, or report a failure of a call that
/// ended as ok.
pub(super) fn unknown_line(text: &str, recorder: &mut Recorder) {
    let line = serde_json::from_str::<Value>(text).ok().filter(may_be_of_call);
    let new = line.map(|line| new_of_calls(&line, |_| false, recorder)).unwrap_or_default();
    let has_ended_ok = |call: &String| recorder.ended_as(call) == Some(CallStatus::Ok);
    let contradicts = new.failed.as_ref().is_some_and(has_ended_ok);
    if new.is_other {
        recorder.did_unseen(NoticeCode::UnknownLine, text);
    }
    match contradicts {
        true => recorder.contradicted(NoticeCode::UnknownLine, text),
        false if new.is_other => {}
        false => recorder.notice(NoticeCode::UnknownLine, text),
    }
}

/// Returns true if a block of the line's message, of whatever type, may be a call or a result.
pub(super) fn has_calls(line: &Line<'_>) -> bool {
    line.message.0.as_ref().is_some_and(Message::has_calls)
}

/// Records a line of another session. An action in another session is an action in this trial, too.
pub(super) fn foreign(line: &Line<'_>, text: &str, recorder: &mut Recorder) {
    let notice = format!("a line of another session, {}: {text}", line.session_id.or_empty());
    let event = line.event.0.as_ref();
    match event {
        _ if has_calls(line) => recorder.did_unseen(NoticeCode::ForeignSession, notice),
        Some(event) if event.content_block.0.as_ref().is_some_and(Block::may_be_of_a_call) => {
            recorder.did_unseen(NoticeCode::ForeignSession, notice);
        }
        // The line with the whole message follows.
        Some(_) => {}
        None => recorder.notice(NoticeCode::ForeignSession, notice),
    }
}

/// Records a line that is no message, with its value if it is JSON. It is lost if it may hold a message.
pub(super) fn malformed(value: Option<&Value>, text: &str, recorder: &mut Recorder) {
    let is_lost = match value {
        Some(value) => may_hold_message_within(value, &KEYS),
        None => may_hold_message(text, &KEYS),
    };
    match is_lost {
        true => recorder.lost(NoticeCode::MalformedLine, text),
        false => recorder.notice(NoticeCode::MalformedLine, text),
    }
}

/// Records a block of text whose text cannot be read.
pub(super) fn lost_text(line: &str, recorder: &mut Recorder) {
    recorder.lost(NoticeCode::UnknownBlock, format!("a text that is no string: {line}"));
}

/// Returns true if a block of this type in a line may hold text or a call.
fn may_hold_anything(kind: &str, line: &str) -> bool {
    let Ok(line) = surrogates::parse(line) else { return true };
    let blocks = line.pointer("/message/content").and_then(Value::as_array);
    let of_kind = |block: &&Value| block.get("type").and_then(Value::as_str).unwrap_or_default() == kind;
    blocks.into_iter().flatten().filter(of_kind).any(may_hold)
}

/// Records a content block of an unknown type. It is lost if it may hold text or a call.
pub(super) fn unknown_block(block: &Block<'_>, text: &str, recorder: &mut Recorder) {
    let notice = match block.kind.or_empty() {
        "" => format!("a content block without a type: {text}"),
        kind => format!("a content block of the type `{kind}`: {text}"),
    };
    match block.may_be_of_a_call() || may_hold_anything(block.kind.or_empty(), text) {
        true => recorder.lost(NoticeCode::UnknownBlock, notice),
        false => recorder.notice(NoticeCode::UnknownBlock, notice),
    }
}
