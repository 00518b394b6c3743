//! The facts of a trace that decide whether its usage reports are complete: turns, the agent's activity, and
//! the end.

use std::collections::BTreeSet;

use crate::trace::{Body, Event, NoticeCode, Role, StopReason};

/// The maximum number of kept names of tools.
const MAX_TOOL_NAMES: usize = 1000;

/// A count of the turns and of the agent's activity beside its usage reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionActivity {
    prompts: u64,
    activity: u64,
    /// The number of messages, thoughts and calls.
    work: u64,
    steps_in_turn: u64,
    last_step: Option<u64>,
    spoke_since_call: bool,
    sub_agent_spoke: bool,
    tools: BTreeSet<String>,
    end: Option<End>,
    is_noted_incomplete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answered,
    Cut,
    CutByEngine,
    OutOfTime,
}

impl SessionActivity {
    pub(super) fn event(&mut self, event: &Event) {
        match &event.body {
            Body::Usage(_) => return,
            Body::Notice { code, .. } => {
                self.is_noted_incomplete |= *code == NoticeCode::UsageIncomplete;
                return;
            }
            Body::Stop(stop) => {
                self.end = Some(match stop.reason {
                    StopReason::TimedOut | StopReason::Idle if event.host => End::OutOfTime,
                    _ if event.host => End::CutByEngine,
                    StopReason::Crashed | StopReason::Error | StopReason::Cancelled => End::Cut,
                    _ => End::Answered,
                });
                return;
            }
            Body::ToolCall(call) => {
                if let Some(name) = &call.name
                    && self.tools.len() < MAX_TOOL_NAMES
                    && !self.tools.contains(name)
                {
                    self.tools.insert(name.clone());
                }
            }
            _ => {}
        }
        // An event that the engine adds for the agent does not count as activity of the agent.
        if event.host {
            return;
        }
        let is_answer = matches!(&event.body, Body::Message(message) if message.role == Role::Agent);
        self.work += u64::from(is_answer || matches!(&event.body, Body::Thought { .. } | Body::ToolCall(_)));
        if event.parent.is_some() {
            self.sub_agent_spoke = true;
            self.activity += 1;
            return;
        }
        match &event.body {
            Body::Message(message) if message.role == Role::User => {
                self.prompts += 1;
                self.steps_in_turn = 0;
                self.last_step = None;
                self.spoke_since_call = false;
                return;
            }
            Body::Message(_) | Body::Thought { .. } => self.spoke_since_call = true,
            Body::ToolCall(call) => {
                self.spoke_since_call = false;
                if self.last_step != Some(call.step) {
                    self.last_step = Some(call.step);
                    self.steps_in_turn += 1;
                }
            }
            _ => {}
        }
        self.activity += 1;
    }

    /// Returns the number of the main agent's model calls in this turn, as far as its steps show them.
    pub fn rounds_in_turn(&self) -> u64 {
        self.steps_in_turn + u64::from(self.spoke_since_call)
    }

    /// Returns true if the trace shows an action of a sub-agent.
    pub fn sub_agent_spoke(&self) -> bool {
        self.sub_agent_spoke
    }

    /// Returns true if a tool of this name was called.
    pub fn called(&self, tool: &str) -> bool {
        self.tools.contains(tool)
    }

    pub(super) fn prompts(&self) -> u64 {
        self.prompts
    }

    pub(super) fn units(&self) -> u64 {
        self.activity
    }

    /// Returns the number of messages, thoughts and calls of the agent and its sub-agents, each of which costs something.
    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// Returns true if the session is over.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Returns true if the session ended without a regular answer, so that its last usage may be unreported.
    pub fn was_cut(&self) -> bool {
        matches!(self.end, Some(End::Cut | End::CutByEngine | End::OutOfTime))
    }

    pub(super) fn was_cut_by_engine(&self) -> bool {
        matches!(self.end, Some(End::CutByEngine | End::OutOfTime))
    }

    /// Returns true if a time limit ended the session. An answer of the model that was under way may be in no report, even
    /// in one that the agent made when it was cancelled.
    pub(super) fn is_out_of_time(&self) -> bool {
        self.end == Some(End::OutOfTime)
    }

    /// Returns true if the engine noted that a turn reported no usage.
    pub(super) fn is_noted_incomplete(&self) -> bool {
        self.is_noted_incomplete
    }
}
