//! Finds the moment from which the agent does not ask for every permission: an answer that holds for later calls, too.

use std::collections::HashMap;

use crate::trace::{Body, Event, PermissionOption, PermissionOutcome};

/// The first answer that holds for later calls, too. Which calls an option such as "Always allow" covers is the agent's
/// decision, and no event shows it.
#[derive(Debug, Default)]
pub struct LastingAnswer {
    /// The IDs of the lasting options of each request without an answer.
    offered: HashMap<String, Vec<String>>,
    seq: Option<u64>,
}

impl LastingAnswer {
    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        if self.seq.is_some() {
            return;
        }
        match &event.body {
            Body::PermissionRequest(request) => {
                let lasting = request.options.iter().filter(|option| is_lasting(option));
                let lasting: Vec<String> = lasting.map(|option| option.option.clone()).collect();
                if !lasting.is_empty() {
                    self.offered.insert(request.request.clone(), lasting);
                }
            }
            Body::PermissionResponse(response) => {
                let offered = self.offered.remove(&response.request).unwrap_or_default();
                let is_answer = response.outcome != PermissionOutcome::Cancelled;
                if is_answer && response.option.as_ref().is_some_and(|option| offered.contains(option)) {
                    self.seq = Some(event.seq);
                    self.offered.clear();
                }
            }
            _ => {}
        }
    }

    /// Returns the `seq` of the answer, or `None` if there was none.
    pub fn seq(&self) -> Option<u64> {
        self.seq
    }
}

/// Returns true if the agent may remember an option: `allow_always`, `reject_always`, or a word of the agent's own such as
/// `allow_session`.
fn is_lasting(option: &PermissionOption) -> bool {
    let kind = option.kind.as_str();
    let is_answer = kind.starts_with("allow") || kind.starts_with("reject");
    kind.ends_with("_always") || (is_answer && !kind.ends_with("_once"))
}
