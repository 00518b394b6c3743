//! Finds the losses of a session that may concern the final answer.

use crate::trace::{AnswerGap, Body, Event, Lost, NoticeCode, Role};

/// The losses of a session that may concern the final answer: the main agent's text after its last call.
#[derive(Debug, Default)]
pub struct AnswerLosses {
    message: Option<LastMessage>,
    /// The last prompt or call of the main agent: an answer begins after it.
    began: Option<u64>,
    /// The last notice that a message may hold a text that is not the agent's.
    speaker: Option<u64>,
    /// The last notice that a text is missing.
    text: Option<u64>,
    /// The last notice that a line is missing that may have been a text.
    line: Option<u64>,
    /// The places within the answer at which calls or lines are missing.
    gap: Option<AnswerGap>,
    /// True if a line with a repeated key was read, and no event of it yet.
    has_repeated_key: bool,
}

/// The last message of the main agent.
#[derive(Debug)]
struct LastMessage {
    seq: u64,
    /// The length of its text in bytes.
    length: usize,
    /// The last prompt or call before it.
    began: Option<u64>,
}

impl AnswerLosses {
    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        let (is_main, seq) = (event.parent.is_none(), event.seq);
        match &event.body {
            Body::Message(message) if is_main && message.role == Role::Agent => {
                let length = message.text.trim().len();
                self.message = Some(LastMessage { seq, length, began: self.began });
            }
            Body::Notice { code, lost, .. } => self.notice(code, *lost, seq),
            Body::Message(_) | Body::ToolCall(_) if is_main => {
                self.began = Some(seq);
                // What else such a line may say comes after its events.
                if std::mem::take(&mut self.has_repeated_key) {
                    self.line = Some(seq);
                }
            }
            Body::Stop(stop) => self.gap = stop.gap,
            _ => {}
        }
    }

    fn notice(&mut self, code: &NoticeCode, lost: Option<Lost>, seq: u64) {
        // Notices that were left out may have had any place.
        let is_cut = *code == NoticeCode::NoticesCut;
        if lost == Some(Lost::Speaker) {
            self.speaker = Some(seq);
        }
        let is_of_message = lost == Some(Lost::Line) && *code == NoticeCode::UnknownContent;
        if lost == Some(Lost::Text) || is_of_message || (is_cut && self.text.is_some()) {
            self.text = Some(seq);
        }
        if (lost == Some(Lost::Line) && may_be_text(code)) || (is_cut && self.line.is_some()) {
            self.line = Some(seq);
            self.has_repeated_key |= *code == NoticeCode::RepeatedKey;
        }
    }

    /// Returns why the final answer may hold a text that does not belong to it, with the notice about it.
    pub fn doubt(&self, answer: &str) -> Option<(&'static str, u64)> {
        // A notice about a speaker is about a message before it.
        let is_earlier = |notice: &u64| self.whole(answer).is_some_and(|message| message.seq > *notice);
        let of_speaker = self.speaker.filter(|notice| !is_earlier(notice));
        let of_speaker = of_speaker.map(|seq| ("the final answer may hold a text that is not the agent's", seq));
        of_speaker.or(self
            .gap
            .map(|gap| ("the final answer may hold a text from before a call that is not shown", gap.event)))
    }

    /// Returns the part of the answer behind the last place at which something is missing, if its speaker is known. Wherever the
    /// answer begins, it has this part.
    pub fn certain_part<'a>(&self, answer: &'a str) -> Option<&'a str> {
        answer.get(usize::try_from(self.gap?.at).ok()?..).filter(|_| self.speaker.is_none())
    }

    /// Returns true if a text of the final answer may be missing. A text before the last call in front of the answer does
    /// not belong to it.
    pub fn lacks_text(&self, answer: &str) -> bool {
        self.is_behind_call(self.text, answer)
    }

    /// Returns true if a line of the final answer may be missing.
    pub fn lacks_line(&self, answer: &str) -> bool {
        self.is_behind_call(self.line, answer)
    }

    /// Returns the answer, if text can be missing only before and after it. Where a text is missing in a message that could still
    /// grow is not known.
    pub fn known_part<'a>(&self, answer: &'a str) -> Option<&'a str> {
        let is_before = |notice: u64| self.whole(answer).is_some_and(|message| notice < message.seq);
        self.text.is_none_or(is_before).then_some(answer)
    }

    fn is_behind_call(&self, notice: Option<u64>, answer: &str) -> bool {
        let Some(notice) = notice else { return false };
        self.whole(answer).and_then(|message| message.began).is_none_or(|began| began <= notice)
    }

    /// Returns the last message, if it may hold all of the answer.
    fn whole(&self, answer: &str) -> Option<&LastMessage> {
        self.message.as_ref().filter(|message| answer.trim().len() <= message.length)
    }
}

/// Returns false for the codes of notices about lines that are about known calls.
fn may_be_text(code: &NoticeCode) -> bool {
    use NoticeCode::{LateUpdate, RepeatedCall, RepeatedResult, ToolContent, UnknownStatus};
    !matches!(code, LateUpdate | RepeatedCall | RepeatedResult | ToolContent | UnknownStatus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::jsonl::read_event;

    const ANSWER: &str = "It is 41.";

    /// Reads events of a session, each by its line, and returns whether the answer is doubted, whether it lacks a text, whether it
    /// lacks a line, and whether a text may be missing within it.
    fn found(events: &[&str]) -> [bool; 4] {
        let mut losses = AnswerLosses::default();
        for (seq, event) in events.iter().enumerate() {
            let text = format!(r#"{{"seq":{seq},"at_ms":0,{event}}}"#);
            losses.event(&read_event(text.as_bytes()).unwrap());
        }
        let is_within = losses.known_part(ANSWER).is_none();
        [losses.doubt(ANSWER).is_some(), losses.lacks_text(ANSWER), losses.lacks_line(ANSWER), is_within]
    }

    #[test]
    fn a_loss_counts_by_its_place() {
        let asks = r#""type":"message","role":"user","text":"go""#;
        let says = r#""type":"message","role":"agent","text":"It is 41.""#;
        let calls = r#""type":"tool_call","call":"c","step":0,"kind":"read""#;
        let called = r#""type":"tool_call","call":"d","step":0,"kind":"read","parent":"c""#;
        let notice = |code: &str, lost: &str| format!(r#""type":"notice","code":"{code}","text":"x","lost":"{lost}""#);
        let (gap, line) = (notice("unannounced_action", "call"), notice("malformed_line", "line"));
        let (late, block) = (notice("late_update", "line"), notice("unknown_content", "line"));
        let (text, cut) = (notice("embedded_text", "text"), r#""type":"notice","code":"notices_cut","text":"x""#);
        let speaker = notice("unknown_speaker", "speaker");
        let stop = r#""type":"stop","reason":"end_turn","gap":{"event":2,"at":5}"#;
        let none = [false; 4];
        for (events, expected) in [
            // Only the recorder knows whether the answer went on after a call that is not shown.
            (vec![asks, says, &gap], none),
            (vec![asks, says, &gap, stop], [true, false, false, false]),
            (vec![asks, says, &line], [false, false, true, false]),
            (vec![asks, calls, &line, says], [false, false, true, false]),
            (vec![asks, &line, calls, says], none),
            (vec![asks, &line, calls, says, cut], [false, false, true, false]),
            (vec![asks, calls, says, &late], none),
            (vec![asks, calls, says, &block], [false, true, true, true]),
            (vec![asks, says, cut], none),
            (vec![asks, &speaker, says], none),
            (vec![asks, says, &speaker], [true, false, false, false]),
            (vec![asks, says, &text, calls, says], none),
            (vec![asks, calls, &text, says], [false, true, false, false]),
            (vec![asks, calls, says, &text], [false, true, false, true]),
            (vec![asks, &text, called, says], [false, true, false, false]),
            (vec![asks, says, &text, asks, says], none),
            (vec![asks, &text, calls], [false, true, false, true]),
        ] {
            assert_eq!(found(&events), expected, "{events:?}");
        }
    }
}
