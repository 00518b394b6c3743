//! The capabilities of sessions with a harness: what the manifest claims, within the limits of its adapter.

use super::stream::Kind;
use super::{Adapter, Manifest};
use crate::trace::Seen;

impl Manifest {
    /// Returns the kinds of events that a session with this harness shows. A claim of the manifest counts only if the
    /// adapter can show such events: otherwise nothing would be recorded, and every grader of what is absent would pass.
    pub fn seen(&self) -> Seen {
        let can = self.adapter.can();
        let has_call_rules = self.adapter != Adapter::JsonStream || self.emits(Kind::ToolCall);
        Seen {
            tracing: can.tracing && self.capabilities.tracing.unwrap_or(has_call_rules),
            interaction: match self.capabilities.interaction {
                Some(claimed) => claimed && self.may_ask(),
                None => can.interaction,
            },
        }
    }

    /// Returns true if the harness takes several prompts in one session.
    pub fn multi_turn(&self) -> bool {
        self.adapter.can().multi_turn && self.capabilities.multi_turn.unwrap_or(true)
    }

    /// Returns the capabilities that the manifest claims although its adapter does not have them: the key, and why the
    /// claim has no effect.
    pub(super) fn overclaims(&self) -> Vec<(&'static str, String)> {
        let (can, claims, adapter) = (self.adapter.can(), self.capabilities, self.adapter.word());
        let mut found = Vec::new();
        if claims.tracing == Some(true) && !can.tracing {
            found.push(("tracing", format!("the adapter `{adapter}` shows no tool calls")));
        }
        if claims.interaction == Some(true) && !self.may_ask() {
            let why = match self.adapter {
                Adapter::JsonStream => "no rule of `stream` emits a `permission-request`".to_owned(),
                _ => format!("the adapter `{adapter}` passes on no permission requests"),
            };
            found.push(("interaction", why));
        }
        if claims.multi_turn == Some(true) && !can.multi_turn {
            found.push(("multi-turn", format!("the adapter `{adapter}` takes one prompt")));
        }
        found
    }

    /// Returns true if a session can show permission requests: over the adapter, or by a rule of `stream`.
    fn may_ask(&self) -> bool {
        self.adapter.can().interaction || self.emits(Kind::PermissionRequest)
    }

    /// Returns true if a rule of `stream` can emit an event of this kind.
    fn emits(&self, kind: Kind) -> bool {
        self.adapter == Adapter::JsonStream && self.stream.iter().any(|rule| rule.emits(kind))
    }
}
