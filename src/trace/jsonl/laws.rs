//! Checks the laws that every trace keeps: numbers without gaps, steps in order, one result for each call, one stop at the
//! end.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::hashes::Hashes;
use super::super::{Body, Event};

/// The state of a trace up to the current event.
#[derive(Debug, Default)]
pub(super) struct Laws {
    last: Option<(u64, u64)>,
    stopped: bool,
    /// Calls without a result, with their lines.
    open: BTreeMap<String, u64>,
    /// Hashes of the ids of all calls: long traces have many.
    calls: Hashes,
    /// Hashes of the ids of all permission requests.
    requests: Hashes,
    /// The last step of each speaker: of the main agent, and of each sub-agent by the hash of its call's id.
    steps: BTreeMap<Option<u64>, u64>,
}

impl Laws {
    /// Checks the next event, which is on this line.
    ///
    /// # Errors
    /// Returns an error if the event breaks a law.
    pub fn event(&mut self, line: u64, event: &Event) -> Result<(), String> {
        let (seq, at_ms) = (event.seq, event.at_ms);
        match self.last {
            _ if self.stopped => return Err("an event follows the `stop`, which must be the last event".to_owned()),
            None if seq > 0 => return Err(format!("`seq` of the first event is {seq}, not 0: a line is missing")),
            Some((last, _)) if seq > last.saturating_add(1) => {
                return Err(format!("`seq` is {seq} after {last}: a line is missing"));
            }
            Some((last, _)) if seq <= last => {
                return Err(format!("`seq` is {seq} after {last}: `seq` must grow by 1 with each event"));
            }
            Some((_, last)) if at_ms < last => {
                return Err(format!("`at_ms` is {at_ms} after {last}: times must not decrease"));
            }
            _ => self.last = Some((seq, at_ms)),
        }
        match &event.body {
            Body::PermissionRequest(request) => _ = self.requests.insert(hash(&request.request)),
            Body::PermissionResponse(response) if !self.requests.contains(hash(&response.request)) => {
                let id = &response.request;
                return Err(format!("a `permission_response` to `{id}`, which no `permission_request` before it has"));
            }
            Body::ToolCall(call) => {
                if let Some(parent) = event.parent.as_ref().filter(|parent| !self.calls.contains(hash(parent))) {
                    return Err(format!("`parent` is `{parent}`, which no `tool_call` before it has as its id"));
                }
                if !self.calls.insert(hash(&call.call)) {
                    return Err(format!("a second `tool_call` has the id `{}`", call.call));
                }
                let speaker = event.parent.as_deref().map(hash);
                match self.steps.insert(speaker, call.step) {
                    Some(last) if call.step < last => {
                        return Err(format!(
                            "`step` is {} after {last}: the steps of a speaker must not decrease",
                            call.step
                        ));
                    }
                    _ => self.open.insert(call.call.clone(), line),
                };
            }
            Body::ToolResult(result) => {
                let id = &result.call;
                if self.open.remove(id).is_none() {
                    return Err(match self.calls.contains(hash(id)) {
                        true => format!("a second `tool_result` of the call `{id}`"),
                        false => format!("a `tool_result` of the call `{id}`, which has no `tool_call` before it"),
                    });
                }
            }
            Body::Stop(_) => self.stopped = true,
            _ => {}
        }
        Ok(())
    }

    /// Checks the end of the trace, given the number of its last line.
    ///
    /// # Errors
    /// Returns the line and the broken law if the trace has no stop, or a call has no result.
    pub fn end(&self, last_line: u64) -> Result<(), (u64, String)> {
        let first = self.open.iter().min_by_key(|(_, line)| **line);
        match first {
            _ if !self.stopped => Err((last_line, "the trace ends without a `stop`: it is incomplete".to_owned())),
            Some((call, line)) => Err((*line, format!("the call `{call}` has no `tool_result`"))),
            None => Ok(()),
        }
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
