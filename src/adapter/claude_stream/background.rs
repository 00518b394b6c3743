//! Tasks in the background: which calls started them, and which of them failed after the result of their call.

use std::collections::{HashMap, HashSet};

use super::lines::{Line, ToolUseResult};
use crate::trace::CallStatus;
use crate::trace::recorder::Recorder;

/// The code of the notice about a call that went on in the background and failed after its result.
const FAILED: &str = "task_failed";

/// The tools that give the output of a task.
const ASKS_FOR_TASKS: [&str; 3] = ["AgentOutputTool", "BashOutput", "TaskOutput"];

/// The types of tasks that are sub-agents.
const SUB_AGENTS: [&str; 4] = ["local_agent", "remote_agent", "in_process_teammate", "local_workflow"];

/// The maximum number of tasks whose calls are remembered.
const MAX_KNOWN: usize = 10_000;

/// The tasks in the background.
#[derive(Default)]
pub(super) struct Tasks {
    /// The calls that started tasks, by the tasks' IDs.
    calls: HashMap<String, String>,
    /// The calls whose tasks failed.
    failed: HashSet<String>,
}

impl Tasks {
    /// Takes a line with news of a task.
    pub(super) fn news(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        let (task, call) = (line.task_id.get(), line.tool_use_id.get());
        if let (Some(task), Some(call)) = (task, call)
            && self.calls.len() < MAX_KNOWN
        {
            self.calls.insert(task.to_owned(), call.to_owned());
        }
        let patched = line.patch.0.as_ref().and_then(|patch| patch.status.get());
        if line.status.get().or(patched) == Some("failed")
            && let Some(call) = call.or_else(|| self.call(task))
        {
            self.has_failed(call.to_owned(), recorder);
        }
    }

    /// Takes the result of a call, which is open, successful, and may have asked for the output of a task.
    pub(super) fn output(&mut self, id: &str, told: &ToolUseResult<'_>, recorder: &mut Recorder) {
        let tool = recorder.open_call(id).and_then(|(call, _)| call.name.as_deref());
        if !tool.is_some_and(|tool| ASKS_FOR_TASKS.contains(&tool)) {
            return;
        }
        let (task, status) = match &told.task.0 {
            Some(task) => (task.task_id.get(), task.status.get()),
            None => (told.shell_id.get(), told.status.get()),
        };
        if status != Some("failed") {
            return;
        }
        match self.call(task).map(str::to_owned) {
            Some(call) => self.has_failed(call, recorder),
            None => recorder.contradicted(FAILED, format!("by the call {id}, a command in the background failed")),
        }
    }

    /// Returns the call that started a task, if it is known.
    pub(super) fn call(&self, task: Option<&str>) -> Option<&str> {
        self.calls.get(task?).map(String::as_str)
    }

    /// Records that the task of a call failed, once. A call that is still open has its result to come.
    fn has_failed(&mut self, call: String, recorder: &mut Recorder) {
        if recorder.ended_as(&call) == Some(CallStatus::Ok) && self.failed.insert(call.clone()) {
            recorder.contradicted(FAILED, format!("the call {call} went on in the background and failed there"));
        }
    }
}

/// Returns true if a line with news of a task shows that the task is a sub-agent.
pub(super) fn is_sub_agent(line: &Line<'_>) -> bool {
    !line.subagent_type.or_empty().is_empty() || SUB_AGENTS.contains(&line.task_type.or_empty())
}
