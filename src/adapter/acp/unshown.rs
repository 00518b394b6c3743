//! Calls that no update shows: the agent asked its model again after a message without a call. OpenCode does so after the summary
//! of its conversation.

use super::Translator;
use crate::trace::NoticeCode;
use crate::trace::recorder::Recorder;

/// The names by which agents introduce themselves that show each call, and a text that is not their answer like a message: the
/// summary of the conversation, and an answer that broke off and was requested again.
const SHOWS_SUMMARIES: &str = "OpenCode";
const SHOWS_BROKEN: &str = "@agentclientprotocol/claude-agent-acp";

/// The messages of the model in a turn, of an agent that reports its usage after each of them.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The tokens in the context by the last report. A turn may begin with a repetition of the last one.
    used: Option<u64>,
    /// True if the turn has a report.
    is_counted: bool,
    /// The sum of the reports of the turn that are above the one before: the tokens of its messages, or fewer. After a compression
    /// of the conversation, the first report is an estimate.
    counted: u64,
    /// True if an update or a request since the last report shows what the agent did.
    has_acted: bool,
    /// True if no call of the last message is shown. Without a call, it is the last message of the turn.
    is_last: bool,
    /// The ID of the last text, if only texts followed.
    text: Option<String>,
    /// True if a text directly follows a text with another ID.
    has_next_text: bool,
    /// True if a usage report after the last text counted a message.
    is_text_counted: bool,
    /// True if a notice reports a call of this turn that is not shown.
    is_reported: bool,
    /// The ID of the last text or thought since the last report.
    spoken: Option<String>,
    /// The ID of the last text or thought before the last usage report, if this report equals the one before it.
    spoken_before_equal: Option<String>,
}

impl Messages {
    /// Takes the beginning of a turn.
    pub(super) fn begin(&mut self) {
        *self = Self { used: self.used, ..Self::default() };
    }

    /// Notes that the agent shows more than a text.
    pub(super) fn acted(&mut self) {
        self.has_acted = true;
        self.text = None;
    }

    /// Notes that the last text does not count: the next one is not another message.
    pub(super) fn discarded(&mut self) {
        self.text = None;
    }

    /// Takes an update of the session, by its kind and the ID of its message. Returns true if a text directly follows a text
    /// with another ID.
    fn updated(&mut self, word: &str, message: Option<&str>) -> bool {
        match word {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let Some(message) = message else { return false };
                self.is_text_counted = false;
                let before = self.text.replace(message.to_owned());
                let is_next = before.is_some_and(|before| before != message);
                self.has_next_text |= is_next;
                return is_next;
            }
            "usage_update"
            | "session_info_update"
            | "available_commands_update"
            | "config_option_update"
            | "current_mode_update"
            | "current_model_update" => {}
            _ => self.acted(),
        }
        false
    }

    /// Returns true if the messages of the turn used more tokens than this total: version 2.0.0 of the bridge to Codex, and
    /// older ones, report the tokens of the last message as those of the turn.
    pub(super) fn exceed(&self, total: u64) -> bool {
        self.counted > total
    }

    /// Takes a part of a text or of a thought, by its ID.
    fn spoke(&mut self, id: &str) {
        // A report within a message does not count the message.
        if self.spoken_before_equal.take().is_some_and(|before| before == id) {
            self.is_last = false;
        }
        self.spoken = Some(id.to_owned());
    }

    /// Takes a report of the tokens in the context. Returns true if the message before lacks a call.
    fn reported(&mut self, used: Option<u64>, is_calling: bool) -> bool {
        self.is_counted = true;
        let Some(used) = used else { return false };
        let before = self.used.replace(used);
        let is_equal = before == Some(used);
        if before.is_none_or(|before| used > before) {
            self.counted = self.counted.saturating_add(used);
        }
        let spoken = self.spoken.take();
        // The agent repeats a report if only the limits of the service changed. After a further message, an equal report counts
        // that message: its answer may have used as many tokens.
        if is_equal && spoken.is_none() && !self.has_acted {
            return false;
        }
        self.spoken_before_equal = spoken.filter(|_| is_equal);
        self.is_text_counted = true;
        // The conversation was compressed. That takes a message of the model, too.
        let is_compressed = before.is_some_and(|before| used < before);
        let lacks_call = self.is_last && !is_compressed;
        let has_acted = std::mem::take(&mut self.has_acted);
        // A message may only wait for a call that is still running.
        self.is_last = !(has_acted || is_calling || is_compressed);
        lacks_call
    }
}

impl Translator {
    /// Takes an update of the session, by its kind and the `messageId` of the main agent. A text after a call that is not
    /// shown begins another answer.
    pub(super) fn message_updated(&mut self, word: &str, id: Option<&str>, recorder: &mut Recorder) {
        // One message may have several texts: then no report is between them.
        let is_counted = self.messages.is_text_counted;
        if let Some(id) = id.filter(|_| matches!(word, "agent_message_chunk" | "agent_thought_chunk")) {
            self.messages.spoke(id);
        }
        let message = id.and_then(|id| self.conventions.message_of(word, id));
        if !self.messages.updated(word, message) || self.is_over() {
            return;
        }
        if self.conventions.names_messages() {
            recorder.complete_answer();
            if !std::mem::replace(&mut self.messages.is_reported, true) {
                unshown_call(recorder);
            }
        } else if self.counts_messages() && is_counted {
            recorder.complete_answer();
        } else if self.conventions.is_agent(SHOWS_SUMMARIES) {
            recorder.complete_answer();
            let text = "two messages follow each other without a call: either may be the summary of the conversation";
            recorder.lost_speaker(NoticeCode::UnknownSpeaker, text);
        } else if self.conventions.is_agent(SHOWS_BROKEN) {
            // The answer is the later message, also if a call between them is not shown. Both are the model's.
            recorder.complete_answer();
            let text = "two messages follow each other without a call: the first may be an answer that was requested \
                        again";
            recorder.notice(NoticeCode::UnknownSpeaker, text);
        }
    }

    /// Takes a report of the tokens in the context.
    pub(super) fn message_counted(&mut self, used: Option<u64>, recorder: &mut Recorder) {
        let is_calling = recorder.calls_in_progress().next().is_some();
        let lacks_call = self.messages.reported(used, is_calling);
        // Before a prompt, the agent repeats reports of earlier turns.
        if lacks_call && self.turn.open > 0 && self.counts_messages() {
            unshown_call(recorder);
        }
    }

    /// Takes the end of a turn. If the service counts no tokens, two texts in a row are of one message, or a call between
    /// them is not shown.
    pub(super) fn messages_ended(&mut self, recorder: &mut Recorder) {
        let may_be_asked_again = self.messages.has_next_text && !self.messages.is_counted;
        // The agent repeats a request that failed.
        if may_be_asked_again && !self.turn.system_error && self.counts_messages() {
            let text = "two texts follow each other and no token count is between them: the agent may not show a call";
            recorder.did_unseen(NoticeCode::UnshownAction, text);
        }
    }

    /// Returns true if the agent reports its usage after each message of its model.
    pub(super) fn counts_messages(&self) -> bool {
        self.conventions.usage.after_each_message == Some(true)
    }
}

fn unshown_call(recorder: &mut Recorder) {
    let text =
        "the agent asked its model again after a message without a call: it does not show a call of that message";
    recorder.did_unseen(NoticeCode::UnshownAction, text);
}
