//! The sub-agents of a Claude Code session: which calls started one, and whether the lines show what it did.

use std::collections::{BTreeMap, HashMap};

use crate::text::plural;
use crate::trace::recorder::Recorder;
use crate::trace::usage::INCOMPLETE;

/// The tools that start a sub-agent or give one more work.
const TOOLS: [&str; 4] = ["Agent", "Task", "Workflow", "SendMessage"];

/// The maximum number of calls, and of sub-agents that spoke, that are remembered.
const MAX_KNOWN: usize = 100_000;

/// The calls that started sub-agents, and what the lines show of the sub-agents.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    started: BTreeMap<String, Started>,
    shown: HashMap<String, Shown>,
    /// True if a call could not be remembered.
    is_full: bool,
}

/// The program's report about the sub-agent of a call.
#[derive(Debug, Default)]
struct Started {
    /// The number of calls that the sub-agent made, if it was reported.
    calls: Option<u64>,
}

/// The part of a sub-agent's work that the lines show.
#[derive(Debug, Default)]
struct Shown {
    calls: u64,
}

impl SubAgents {
    /// Takes the announcement of a call, which starts a sub-agent if its tool does so.
    pub(super) fn announced(&mut self, id: &str, tool: &str) {
        if TOOLS.contains(&tool) {
            self.start(id);
        }
    }

    /// Takes a report that a call started a sub-agent, and of the number of calls that the sub-agent made.
    pub(super) fn reported(&mut self, id: &str, calls: Option<u64>) {
        if let Some(started) = self.start(id) {
            started.calls = started.calls.max(calls);
        }
    }

    /// Takes a report that a call was refused, so that it started nothing.
    pub(super) fn refused(&mut self, id: &str) {
        self.started.remove(id);
    }

    /// Takes a message of the sub-agent of a call.
    pub(super) fn spoke(&mut self, parent: &str) {
        self.showed(parent);
    }

    /// Takes a call that the sub-agent of a call made.
    pub(super) fn called(&mut self, parent: &str) {
        if let Some(shown) = self.showed(parent) {
            shown.calls += 1;
        }
    }

    /// Returns true if a call is known to have started a sub-agent.
    pub(super) fn is_started(&self, id: &str) -> bool {
        self.started.contains_key(id)
    }

    /// Returns true if a sub-agent was started, shown or not.
    pub(super) fn any(&self) -> bool {
        self.is_full || !self.started.is_empty()
    }

    /// Reports the sub-agents whose calls are not all shown. Without a reported number of calls, a sub-agent is shown if any
    /// line is its own. `counts` is true if the program's usage reports include the sub-agents that have ended.
    pub(super) fn settle(&mut self, counts: bool, recorder: &mut Recorder) {
        let mut uncounted = false;
        for (id, started) in std::mem::take(&mut self.started) {
            let shown = self.shown.get(&id);
            let missing = match started.calls {
                Some(calls) => calls > shown.map_or(0, |shown| shown.calls),
                None => shown.is_none(),
            };
            uncounted |= match counts {
                true => missing && started.calls.is_none(),
                false => missing || shown.is_none(),
            };
            if missing {
                let text = match started.calls {
                    Some(calls) => format!(
                        "the sub-agent of the call {id} made {}, of which {} are shown",
                        plural(calls, "call"),
                        shown.map_or(0, |shown| shown.calls)
                    ),
                    None => format!("the agent does not show what the sub-agent of the call {id} did"),
                };
                // The report is about the whole session.
                recorder.without_line();
                recorder.did_unseen("hidden_sub_agent", text);
            }
        }
        if std::mem::take(&mut self.is_full) {
            recorder.without_line();
            recorder.did_unseen("hidden_sub_agent", "too many sub-agents were started to tell which of them are shown");
            uncounted = true;
        }
        if uncounted {
            recorder.without_line();
            recorder.notice(INCOMPLETE, "the usage of a sub-agent is not reported, so the totals are lower bounds");
        }
    }

    fn start(&mut self, id: &str) -> Option<&mut Started> {
        if self.started.len() >= MAX_KNOWN && !self.started.contains_key(id) {
            self.is_full = true;
            return None;
        }
        Some(self.started.entry(id.to_owned()).or_default())
    }

    fn showed(&mut self, parent: &str) -> Option<&mut Shown> {
        if self.shown.len() >= MAX_KNOWN && !self.shown.contains_key(parent) {
            return None;
        }
        Some(self.shown.entry(parent.to_owned()).or_default())
    }
}
