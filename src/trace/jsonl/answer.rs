//! The final answer of a trace whose `stop` does not have it, by the rule of the recorder: the main agent's text after its last
//! call.

use super::super::{AnswerGap, Body, Event, Lost, Role};

/// The main agent's last text after its last call and the last prompt.
#[derive(Debug, Default)]
pub(super) struct AnswerSoFar {
    text: String,
    /// The last notice after the text began that a call or a line is missing, so that a part of the text may come before it.
    gap: Option<u64>,
}

impl AnswerSoFar {
    /// Handles the next event. A `stop` without an answer gets the answer so far.
    pub fn event(&mut self, event: &mut Event) {
        let (is_main, seq) = (event.parent.is_none(), event.seq);
        match &mut event.body {
            Body::Message(message) if is_main && message.role == Role::Agent => {
                self.text.clone_from(&message.text);
                self.gap = None;
            }
            Body::Message(_) | Body::ToolCall(_) if is_main => self.text.clear(),
            Body::Notice { lost: Some(Lost::Call | Lost::Line), .. } => self.gap = Some(seq),
            Body::Stop(stop) if stop.output.is_none() && !self.text.is_empty() => {
                let at = self.text.len() as u64;
                stop.gap = stop.gap.or(self.gap.map(|event| AnswerGap { event, at }));
                stop.output = Some(std::mem::take(&mut self.text));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use crate::trace::Body;
    use crate::trace::jsonl::Reader;

    /// Returns the answer of a trace with these events, and whether a part of it may be from before something that is missing.
    fn answer(events: &[&str]) -> (Option<String>, bool) {
        let capabilities = r#"{"tracing":true,"interaction":true}"#;
        let mut text = format!(r#"{{"type":"trace","version":1,"adapter":"acp","capabilities":{capabilities}}}"#);
        for (seq, event) in events.iter().enumerate() {
            text.push_str(&format!("\n{{\"seq\":{seq},\"at_ms\":0,{event}}}"));
        }
        let last = Reader::lawful(Cursor::new(text)).unwrap().last().unwrap().unwrap();
        let Body::Stop(stop) = last.body else { panic!("the last event is no stop") };
        (stop.output, stop.gap.is_some())
    }

    #[test]
    fn a_stop_without_an_answer_gets_the_text_after_the_last_call() {
        let prompt = r#""type":"message","role":"user","text":"go""#;
        let message = r#""type":"message","role":"agent","text":"The key is k1.""#;
        let call = r#""type":"tool_call","call":"c","step":0,"kind":"read""#;
        let result = r#""type":"tool_result","call":"c","status":"ok""#;
        let inner = r#""type":"message","role":"agent","text":"inner","parent":"c""#;
        let lost = r#""type":"notice","code":"bad_line","text":"x","lost":"line""#;
        let stop = r#""type":"stop","reason":"end_turn""#;
        let answered = r#""type":"stop","reason":"end_turn","output":"Done.""#;
        let text = Some("The key is k1.".to_owned());
        for (events, expected) in [
            (&[prompt, message, stop][..], (text.clone(), false)),
            (&[prompt, call, result, message, stop], (text.clone(), false)),
            (&[prompt, call, message, inner, result, stop], (text.clone(), false)),
            (&[prompt, message, lost, stop], (text, true)),
            (&[prompt, message, call, result, stop], (None, false)),
            (&[prompt, message, prompt, stop], (None, false)),
            (&[prompt, call, inner, result, stop], (None, false)),
            (&[prompt, message, answered], (Some("Done.".to_owned()), false)),
        ] {
            assert_eq!(answer(events), expected, "{events:?}");
        }
    }
}
