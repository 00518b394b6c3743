//! The sub-agents of a Claude Code session: which calls started one, and whether the lines show what it did.

use std::collections::{BTreeMap, HashMap};

use crate::text::plural;
use crate::trace::NoticeCode;
use crate::trace::recorder::Recorder;

/// The tools that start a sub-agent or give one more work.
const TOOLS: [&str; 4] = ["Agent", "Task", "Workflow", "SendMessage"];

/// The maximum number of calls, and of sub-agents that spoke, that are remembered.
const MAX_KNOWN: usize = 100_000;

/// The sub-agents that were started, and what the lines show of them.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    started: BTreeMap<Origin, Started>,
    shown: HashMap<Origin, Shown>,
    /// True if a sub-agent could not be remembered.
    is_full: bool,
}

/// The origin of a sub-agent: the call that started it, by its ID in the trace, or its task if the agent names no call. The
/// agent may use its own ID of a call again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Origin {
    Call(String),
    Task(String),
}

/// The agent's report about a sub-agent.
#[derive(Debug, Default)]
struct Started {
    /// The number of calls that the sub-agent made, if it was reported.
    calls: Option<u64>,
    /// True if news of a task names the call of the sub-agent.
    has_task: bool,
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
            self.start(Origin::Call(id.to_owned()));
        }
    }

    /// Takes a report that a call started a sub-agent, and of the number of calls that the sub-agent made.
    pub(super) fn reported(&mut self, id: &str, calls: Option<u64>) {
        if let Some(started) = self.start(Origin::Call(id.to_owned())) {
            started.calls = started.calls.max(calls);
        }
    }

    /// Takes a report about a task that is the sub-agent of a call, with the number of calls that the sub-agent made.
    pub(super) fn reported_by_task(&mut self, id: &str, calls: Option<u64>) {
        if let Some(started) = self.start(Origin::Call(id.to_owned())) {
            started.calls = started.calls.max(calls);
            started.has_task = true;
        }
    }

    /// Takes a report about a task that is a sub-agent, and that names no call, with the number of calls that the sub-agent
    /// made.
    pub(super) fn reported_task(&mut self, task: &str, calls: Option<u64>) {
        if let Some(started) = self.start(Origin::Task(task.to_owned())) {
            started.calls = started.calls.max(calls);
        }
    }

    /// Takes a report that a call started a task. Returns true if the task is known to be a sub-agent.
    pub(super) fn joins(&mut self, task: &str, call: &str) -> bool {
        let task = Origin::Task(task.to_owned());
        if let Some(shown) = self.shown.remove(&task) {
            self.showed(Origin::Call(call.to_owned())).into_iter().for_each(|of_call| of_call.calls += shown.calls);
        }
        let Some(started) = self.started.remove(&task) else { return false };
        self.reported(call, started.calls);
        true
    }

    /// Returns true if a task without a call is known to be a sub-agent.
    pub(super) fn is_task(&self, task: &str) -> bool {
        self.started.contains_key(&Origin::Task(task.to_owned()))
    }

    /// Takes a message of the sub-agent of a task, with the number of calls that the message announced.
    pub(super) fn showed_task(&mut self, task: &str, calls: u64) {
        if let Some(shown) = self.showed(Origin::Task(task.to_owned())) {
            shown.calls += calls;
        }
    }

    /// Takes a report that a call was refused, so that it started nothing.
    pub(super) fn refused(&mut self, id: &str) {
        self.started.remove(&Origin::Call(id.to_owned()));
    }

    /// Takes a message of the sub-agent of a call.
    pub(super) fn spoke(&mut self, parent: &str) {
        self.showed(Origin::Call(parent.to_owned()));
    }

    /// Takes a call that the sub-agent of a call made.
    pub(super) fn called(&mut self, parent: &str) {
        if let Some(shown) = self.showed(Origin::Call(parent.to_owned())) {
            shown.calls += 1;
        }
    }

    /// Returns true if a call is known to have started a sub-agent.
    pub(super) fn is_started(&self, id: &str) -> bool {
        self.started.contains_key(&Origin::Call(id.to_owned()))
    }

    /// Returns true if a sub-agent was started, shown or not.
    pub(super) fn any(&self) -> bool {
        self.is_full || !self.started.is_empty()
    }

    /// Reports the sub-agents whose calls are not all shown. Without a reported number of calls, a sub-agent is shown if any
    /// line is its own. `counts` is true if the agent's usage reports include the sub-agents that have ended.
    pub(super) fn settle(&mut self, counts: bool, recorder: &mut Recorder) {
        let mut uncounted = false;
        self.join_tasks();
        for (origin, started) in std::mem::take(&mut self.started) {
            let shown = self.shown.get(&origin);
            let missing = match started.calls {
                Some(calls) => calls > shown.map_or(0, |shown| shown.calls),
                None => shown.is_none(),
            };
            uncounted |= match counts {
                true => missing && started.calls.is_none(),
                false => missing || shown.is_none(),
            };
            if missing {
                let origin = match origin {
                    Origin::Call(id) => format!("the call {id}"),
                    Origin::Task(id) => format!("the task {id}"),
                };
                let text = match started.calls {
                    Some(calls) => format!(
                        "the sub-agent of {origin} made {}, of which {} are shown",
                        plural(calls, "call"),
                        shown.map_or(0, |shown| shown.calls)
                    ),
                    None => format!("the agent does not show what the sub-agent of {origin} did"),
                };
                // The report is about the whole session.
                recorder.without_line();
                recorder.did_unseen(NoticeCode::HiddenSubAgent, text);
            }
        }
        if std::mem::take(&mut self.is_full) {
            recorder.without_line();
            recorder.did_unseen(
                NoticeCode::HiddenSubAgent,
                "too many sub-agents were started to tell which of them are shown",
            );
            uncounted = true;
        }
        if uncounted {
            recorder.without_line();
            recorder.notice(
                NoticeCode::UsageIncomplete,
                "the usage of a sub-agent is not reported, so the totals are lower bounds",
            );
        }
    }

    /// Removes tasks that name no call if a call of the trace accounts for them: no task names that call, and the lines show
    /// as many calls of its sub-agent as the report about the task counts.
    fn join_tasks(&mut self) {
        // How many such calls there are, by the number of calls that the lines show.
        let mut free: BTreeMap<u64, u64> = BTreeMap::new();
        for (origin, started) in self.started.iter().filter(|(_, started)| !started.has_task) {
            if let (Origin::Call(_), Some(shown)) = (origin, self.shown.get(origin))
                && started.calls.is_none_or(|calls| calls == shown.calls)
            {
                *free.entry(shown.calls).or_default() += 1;
            }
        }
        let is_unshown_task = |origin: &Origin| matches!(origin, Origin::Task(_)) && !self.shown.contains_key(origin);
        let tasks = self.started.iter().filter(|(origin, _)| is_unshown_task(origin));
        let mut tasks: Vec<(Option<u64>, Origin)> =
            tasks.map(|(origin, started)| (started.calls, origin.clone())).collect();
        // A task without a count can belong to any call, so it comes last.
        tasks.sort_by_key(|(calls, _)| calls.is_none());
        for (calls, task) in tasks {
            let Some(fit) = calls.or_else(|| free.keys().next().copied()) else { continue };
            let Some(count) = free.get_mut(&fit) else { continue };
            *count -= 1;
            if *count == 0 {
                free.remove(&fit);
            }
            self.started.remove(&task);
        }
    }

    fn start(&mut self, origin: Origin) -> Option<&mut Started> {
        if self.started.len() >= MAX_KNOWN && !self.started.contains_key(&origin) {
            self.is_full = true;
            return None;
        }
        Some(self.started.entry(origin).or_default())
    }

    fn showed(&mut self, origin: Origin) -> Option<&mut Shown> {
        if self.shown.len() >= MAX_KNOWN && !self.shown.contains_key(&origin) {
            return None;
        }
        Some(self.shown.entry(origin).or_default())
    }
}
