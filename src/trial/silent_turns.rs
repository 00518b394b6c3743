//! Finds turns in which an agent showed nothing: it may have taken the prompt for a command of its own.

use crate::trace::{Body, Event, NoticeCode, Role};

/// The turns of a session in which the agent showed nothing.
#[derive(Debug, Default)]
pub(super) struct SilentTurns {
    /// True if nothing of the agent has followed the last prompt.
    is_waiting: bool,
    is_found: bool,
}

impl SilentTurns {
    /// Handles the next event.
    pub(super) fn event(&mut self, event: &Event) {
        match &event.body {
            Body::Message(message) if message.role == Role::User && event.parent.is_none() => {
                self.is_found |= self.is_waiting;
                self.is_waiting = true;
            }
            // Prompts without anything between them are one message.
            Body::Notice { code, .. } => self.is_found |= *code == NoticeCode::SilentTurn,
            Body::Message(_)
            | Body::Thought { .. }
            | Body::Plan { .. }
            | Body::ToolCall(_)
            | Body::PermissionRequest(_) => self.is_waiting = false,
            _ => {}
        }
    }

    /// Returns true if there was such a turn. The session is over.
    pub(super) fn any(&self) -> bool {
        self.is_found || self.is_waiting
    }
}
