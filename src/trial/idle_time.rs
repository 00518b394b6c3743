//! Measures how long an agent was idle, as far as the times of a trace show it.

use crate::trace::amount::Amount;
use crate::trace::{Body, Event, Role};

/// The longest time in which a prompted agent was idle without an open call.
#[derive(Debug, Clone, Default)]
pub struct Quiet {
    open_calls: u64,
    last: Option<Last>,
    longest_ms: u64,
    /// The longest time after the beginning of a message. Its further chunks have no times in a trace.
    perhaps_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    at_ms: u64,
    is_text: bool,
}

impl Quiet {
    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        let is_text = match &event.body {
            // These events are no activity of the agent.
            Body::Usage(_) | Body::Notice { .. } => return,
            Body::Message(message) => message.role == Role::Agent,
            Body::Thought { .. } => true,
            _ => false,
        };
        let is_prompt = matches!(&event.body, Body::Message(message) if message.role == Role::User);
        // An agent that waits for a prompt or for an answer is not idle.
        let waited = is_prompt || matches!(event.body, Body::PermissionResponse(_));
        if let Some(last) = self.last.filter(|_| self.open_calls == 0 && !waited) {
            let quiet = event.at_ms.saturating_sub(last.at_ms);
            let longest = if last.is_text { &mut self.perhaps_ms } else { &mut self.longest_ms };
            *longest = quiet.max(*longest);
        }
        match &event.body {
            Body::ToolCall(_) => self.open_calls += 1,
            Body::ToolResult(_) => self.open_calls = self.open_calls.saturating_sub(1),
            _ => {}
        }
        self.last = Some(Last { at_ms: event.at_ms, is_text });
    }

    /// Returns the longest idle time in milliseconds; a lower bound if more than `limit_ms` passed after the
    /// beginning of a message, because the trace does not show when the message ended.
    pub fn longest(&self, limit_ms: u128) -> Amount<u64> {
        Amount::new(self.longest_ms, u128::from(self.perhaps_ms) <= limit_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(lines: &str, limit_ms: u128) -> Amount<u64> {
        let header = r#"{"type":"trace","version":1,"adapter":"acp","capabilities":{"tracing":true,"interaction":true},"model":{}}"#;
        let text = format!("{header}\n{lines}");
        let mut quiet = Quiet::default();
        for event in crate::trace::jsonl::Reader::new(std::io::Cursor::new(text)).unwrap() {
            quiet.event(&event.unwrap());
        }
        quiet.longest(limit_ms)
    }

    #[test]
    fn an_agent_is_quiet_after_a_prompt_or_a_result_and_perhaps_while_it_speaks() {
        let session = r#"{"seq":0,"at_ms":0,"type":"message","role":"user","text":"go"}
{"seq":1,"at_ms":300,"type":"tool_call","call":"a","step":0,"kind":"execute"}
{"seq":2,"at_ms":5000,"type":"usage","scope":"call","input_tokens":1}
{"seq":3,"at_ms":9000,"type":"tool_result","call":"a","status":"ok"}
{"seq":4,"at_ms":9400,"type":"message","role":"agent","text":"done"}
{"seq":5,"at_ms":9900,"type":"stop","reason":"end_turn"}"#;
        assert_eq!(longest(session, 500), Amount::Exact(400));
        assert_eq!(longest(session, 450), Amount::AtLeast(400));
        let late = session.replace("9400", "12000").replace("9900", "12000");
        assert_eq!(longest(&late, 500), Amount::Exact(3000));
        let next_turn =
            session.replace(r#""type":"stop","reason":"end_turn""#, r#""type":"message","role":"user","text":"b""#);
        assert_eq!(longest(&next_turn, 0), Amount::Exact(400));
    }
}
