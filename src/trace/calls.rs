//! Joins each call with its result while events arrive, in the order in which the calls were announced.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::{AskedCall, Body, CallStatus, Event, FileDiff, Location, ToolCall, ToolKind, ToolResult};

/// The code of the notice after which the engine ends calls that the agent might still have ended.
pub const TOO_MANY_OPEN_CALLS: &str = "too_many_open_calls";

/// The code of the notice that another model answers the main agent than before.
pub const MODEL_CHANGED: &str = "model_changed";

/// The code of the notice that the agent reports a rejected call as completed.
pub const DENIED_CALL_COMPLETED: &str = "denied_call_completed";

/// A call with its result, and with the input that permission responses changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The `seq` of the call.
    pub seq: u64,
    /// The time at which the call was announced, in milliseconds.
    pub at_ms: u64,
    /// The sub-agent that made the call.
    pub parent: Option<String>,
    /// The call itself. If a permission request or a policy changed the call, this is the changed one.
    pub call: ToolCall,
    /// The kind that the agent announced, if it then asked for permission for another one.
    pub announced_kind: Option<ToolKind>,
    /// The `seq` of the result.
    pub result_seq: u64,
    /// The time at which the result arrived, in milliseconds.
    pub result_at_ms: u64,
    /// The outcome of the call.
    pub status: CallStatus,
    /// True if the engine ended the call because too many were open, so that the agent's end of it is unknown.
    pub is_cut: bool,
    /// True if the agent reports that the call completed, although it was refused.
    pub contested: bool,
    /// The call's output.
    pub output: Option<String>,
    /// True if the agent reported that the output was truncated.
    pub truncated: bool,
    /// The changes to files that the call showed.
    pub diffs: Vec<FileDiff>,
    /// The exit code, if reported.
    pub exit_code: Option<i64>,
}

/// Joins events in order to calls in order.
#[derive(Debug, Default)]
pub struct Joiner {
    waiting: VecDeque<Waiting>,
    first: u64,
    open: HashMap<String, u64>,
    cuts: Cuts,
}

/// Marks the results that the engine wrote because too many calls were open: how the agent ended those calls is
/// unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cuts {
    /// True if the engine has begun to end calls that the agent might still have ended.
    begun: bool,
}

impl Cuts {
    /// Takes the next event, and returns true if it is a result that the engine wrote because too many calls were open.
    pub fn event(&mut self, event: &Event) -> bool {
        match &event.body {
            Body::Notice { code, .. } => {
                self.begun |= code == TOO_MANY_OPEN_CALLS;
                false
            }
            Body::ToolResult(result) => self.begun && event.host && result.status == CallStatus::Unfinished,
            _ => false,
        }
    }
}

#[derive(Debug)]
struct Waiting {
    seq: u64,
    at_ms: u64,
    parent: Option<String>,
    call: ToolCall,
    announced_kind: Option<ToolKind>,
    result: Option<(u64, u64, ToolResult)>,
    is_cut: bool,
}

impl Waiting {
    /// Takes what a permission request says of the call. It makes the call more exact; if it says something else than the
    /// call said, the files are those of both, unless its input is another one.
    fn ask(&mut self, asked: &AskedCall) {
        let call = &mut self.call;
        let vague = call.unknown_kind || call.kind == ToolKind::Other;
        if let Some(kind) = asked.kind {
            if !vague && call.kind != kind {
                self.announced_kind.get_or_insert(call.kind);
            }
            (call.kind, call.unknown_kind) = (kind, false);
        }
        call.name = asked.name.clone().or(call.name.take());
        if let Some(locations) = &asked.locations {
            // Another input has other files; the same input has those that were announced, too.
            if asked.input.is_some() {
                call.locations.clear();
            }
            let new: Vec<Location> = locations.iter().filter(|it| !call.locations.contains(it)).cloned().collect();
            call.locations.extend(new);
        }
    }
}

impl Joiner {
    /// Takes the next event, and returns the calls that are now complete and next in order.
    pub fn event(&mut self, event: &Event) -> Vec<Call> {
        let is_cut = self.cuts.event(event);
        match &event.body {
            Body::ToolCall(call) => {
                self.open.insert(call.call.clone(), self.first + self.waiting.len() as u64);
                self.waiting.push_back(Waiting {
                    seq: event.seq,
                    at_ms: event.at_ms,
                    parent: event.parent.clone(),
                    call: call.clone(),
                    announced_kind: None,
                    result: None,
                    is_cut: false,
                });
                Vec::new()
            }
            Body::PermissionRequest(request) => {
                let number = self.open.get(&request.call).copied();
                if let Some(asked) = &request.asked
                    && let Some(waiting) = number.and_then(|n| self.at(n))
                {
                    waiting.ask(asked);
                }
                Vec::new()
            }
            // The requested input is what the agent attempted, even if the answer rejects it.
            Body::PermissionResponse(response) => {
                if let Some(input) = &response.updated_input {
                    self.change_input(&response.call, input);
                }
                Vec::new()
            }
            Body::ToolResult(result) => {
                if let Some(waiting) = self.open.remove(&result.call).and_then(|n| self.at(n)) {
                    waiting.is_cut = is_cut;
                    waiting.result = Some((event.seq, event.at_ms, result.clone()));
                }
                self.ready()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the calls that are left at the end of the trace: a call without a result is unfinished.
    pub fn rest(&mut self) -> Vec<Call> {
        for waiting in &mut self.waiting {
            let (seq, at_ms, call) = (waiting.seq, waiting.at_ms, &waiting.call.call);
            waiting.result.get_or_insert_with(|| (seq, at_ms, ToolResult::unfinished(call)));
        }
        self.open.clear();
        self.ready()
    }

    fn at(&mut self, number: u64) -> Option<&mut Waiting> {
        let index = number.checked_sub(self.first)?;
        self.waiting.get_mut(index as usize)
    }

    fn change_input(&mut self, call: &str, input: &Value) {
        let number = self.open.get(call).copied();
        if let Some(waiting) = number.and_then(|n| self.at(n)) {
            waiting.call.input = Some(input.clone());
        }
    }

    fn ready(&mut self) -> Vec<Call> {
        let mut ready = Vec::new();
        while let Some(front) = self.waiting.pop_front() {
            let Some((result_seq, result_at_ms, result)) = front.result else {
                self.waiting.push_front(front);
                break;
            };
            self.first += 1;
            ready.push(Call {
                seq: front.seq,
                at_ms: front.at_ms,
                parent: front.parent,
                call: front.call,
                announced_kind: front.announced_kind,
                result_seq,
                result_at_ms,
                status: result.status,
                is_cut: front.is_cut,
                contested: result.contested,
                output: result.output,
                truncated: result.truncated,
                diffs: result.diffs,
                exit_code: result.exit_code,
            });
        }
        ready
    }
}
