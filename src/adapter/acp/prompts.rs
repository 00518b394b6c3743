//! Prompts: the user's messages, and the agent's echo of them.

use serde_json::Value;

use super::content::{self, Piece};
use super::{Translator, sessions};
use crate::adapter::EndReport;
use crate::trace::recorder::{Continuation, Recorder, Voice};
use crate::trace::{Attachment, NoticeCode, Role};

/// The maximum bytes of a prompt that an echo is compared with.
const MAX_ECHO: usize = 1 << 20;

/// The bytes of standard error that are kept when more than twice as many have been collected.
const MAX_PRINTED: usize = 16 << 10;

/// The state of the session's prompts.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of prompts sent so far.
    pub(super) number: u64,
    /// The number of prompts without an answer.
    pub(super) open: usize,
    /// The answer to the last prompt.
    pub(super) answer: Option<EndReport>,
    /// True if the agent reported a status that is an error.
    pub(super) system_error: bool,
    /// The last text of the agent's program, if no text of the model followed.
    pub(super) program_message: Option<String>,
    /// The model's last answer, if the gateway saw it and it looks like an error.
    pub(super) answer_of_model: Option<String>,
    /// True if an answer to a prompt reported usage.
    pub(super) has_usage: bool,
    /// The agent's standard error since the prompt, or since the last update of a tool call.
    pub(super) printed: String,
    /// True if the model has shown a text or a thought since its last call or its last repeated request.
    pub(super) is_answering: bool,
}

impl Turn {
    /// Takes a line of standard error. Of much text, the end is kept.
    pub(super) fn printed(&mut self, line: &str) {
        self.printed.push_str(line);
        self.printed.push('\n');
        if self.printed.len() > 2 * MAX_PRINTED {
            let from = self.printed.ceil_char_boundary(self.printed.len() - MAX_PRINTED);
            self.printed.drain(..from);
        }
    }
}

/// The last prompt, to recognise an echo of it.
#[derive(Debug, Default)]
pub(super) struct Echo {
    prompt: String,
    attachments: Vec<Attachment>,
    /// The part of the prompt that the agent has repeated so far.
    echoed: String,
}

impl Echo {
    fn of(pieces: &[Piece]) -> Self {
        let mut echo = Self::default();
        for piece in pieces {
            match piece {
                Piece::Text(text) => echo.prompt.push_str(text),
                Piece::Attachment(attachment) | Piece::Embedded(attachment, _) => {
                    echo.attachments.push(attachment.clone())
                }
                Piece::Unknown(..) | Piece::Malformed(_) => {}
            }
        }
        if echo.prompt.len() > MAX_ECHO {
            echo.prompt.clear();
        }
        echo
    }

    /// Takes a piece that the agent reports as the user's, and returns the part that is not an echo.
    fn take(&mut self, text: &str) -> Option<String> {
        if self.prompt.is_empty() {
            return Some(text.to_owned());
        }
        self.echoed.push_str(text);
        match begins(&self.prompt, &self.echoed) {
            Begins::Whole => self.echoed.clear(),
            Begins::Part => {}
            Begins::Not => return Some(std::mem::take(&mut self.echoed)),
        }
        None
    }
}

enum Begins {
    Whole,
    Part,
    Not,
}

/// Compares a text with the beginning of the prompt, ignoring white space: agents join the blocks in their own ways.
fn begins(prompt: &str, text: &str) -> Begins {
    let mut prompt = prompt.chars().filter(|c| !c.is_whitespace());
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        if prompt.next() != Some(c) {
            return Begins::Not;
        }
    }
    if prompt.next().is_none() { Begins::Whole } else { Begins::Part }
}

impl Translator {
    /// Takes a prompt to the agent.
    pub(super) fn prompt(&mut self, params: Value, recorder: &mut Recorder) {
        self.turn.number += 1;
        self.turn.open += 1;
        self.turn.answer = None;
        self.turn.system_error = false;
        self.turn.program_message = None;
        self.turn.printed.clear();
        self.turn.is_answering = false;
        self.messages.begin();
        self.model.prompted();
        // The earlier failure did not prevent the prompt.
        self.setup = None;
        let Value::Object(mut params) = params else { return };
        self.session.prompted(sessions::session_of(&params));
        self.take_early(recorder);
        let pieces = content::pieces(params.remove("prompt").unwrap_or(Value::Array(Vec::new())));
        self.echo = Echo::of(&pieces);
        for piece in pieces {
            match piece {
                Piece::Text(text) => recorder.say(Voice::User, None, &text, Continuation::Block),
                Piece::Attachment(attachment) | Piece::Embedded(attachment, _) | Piece::Unknown(attachment, _) => {
                    recorder.attach(Role::User, None, attachment);
                }
                Piece::Malformed(text) => recorder.notice(NoticeCode::UnknownContent, text),
            }
        }
    }

    /// Takes a piece of text that the agent reports as the user's.
    pub(super) fn take_user_piece(
        &mut self,
        piece: Piece,
        parent: Option<String>,
        part: Continuation,
        recorder: &mut Recorder,
    ) {
        match piece {
            Piece::Text(text) if parent.is_some() => recorder.say(Voice::User, parent, &text, part),
            Piece::Text(text) => {
                if let Some(text) = self.echo.take(&text) {
                    match self.turn.open {
                        0 => recorder.say(Voice::User, None, &text, part),
                        _ => not_of_user(text, recorder),
                    }
                }
            }
            Piece::Attachment(attachment) | Piece::Embedded(attachment, _)
                if self.echo.attachments.contains(&attachment) => {}
            Piece::Attachment(attachment) | Piece::Embedded(attachment, _) | Piece::Unknown(attachment, _)
                if parent.is_none() && self.turn.open > 0 =>
            {
                not_of_user(format!("an attachment of the kind {}", attachment.kind), recorder);
            }
            Piece::Attachment(attachment) | Piece::Embedded(attachment, _) => {
                recorder.attach(Role::User, parent, attachment)
            }
            Piece::Unknown(attachment, text) => {
                recorder.attach(Role::User, parent, attachment);
                recorder.notice(NoticeCode::UnknownContent, text);
            }
            Piece::Malformed(text) => recorder.notice(NoticeCode::UnknownContent, text),
        }
    }

    /// Returns true if every prompt so far was answered. Without the engine's lines, this is unknown.
    pub(super) fn is_over(&self) -> bool {
        self.has_engine_lines && self.turn.number > 0 && self.turn.open == 0
    }
}

/// Reports what the agent shows as the user's while it answers a prompt. The engine sent the whole prompt, so this is a text of the
/// program. What the agent says next is another answer.
fn not_of_user(what: String, recorder: &mut Recorder) {
    recorder.notice(NoticeCode::SyntheticMessage, what);
    recorder.complete_answer();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_in_pieces_is_no_message() {
        let mut echo = Echo::of(&[Piece::Text("Fix it.".into()), Piece::Text("Then test.".into())]);
        assert_eq!(echo.take("Fix"), None);
        assert_eq!(echo.take(" it.\n\nThen test."), None);
        assert_eq!(echo.take("Fix it.Then test.\n"), None);
        assert_eq!(echo.take("Fix"), None);
        assert_eq!(echo.take("ed by a hook"), Some("Fixed by a hook".into()));
        assert_eq!(echo.take("something else"), Some("something else".into()));
    }
}
