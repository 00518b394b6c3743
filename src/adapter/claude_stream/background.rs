//! Tasks in the background: which calls started them, how they ended after the result of their call, and which go on after an
//! answer.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::Value;

use super::lines::{Line, ToolUseResult};
use crate::trace::recorder::{Recorder, ReportedStatus, ResultReport};
use crate::trace::{CallStatus, NoticeCode, ToolKind};

/// The beginning of each text by which Claude Code reports that a command goes on in the background.
static COMMAND: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("Command "));

/// The texts by which Claude Code reports that a command goes on in the background: what follows [`COMMAND`], and what follows
/// later in the same line.
const GOES_ON: [(&str, &str); 4] = [
    ("running in background with ID: ", ""),
    ("was manually backgrounded by user with ID: ", ""),
    ("was moved to the background (ID: ", ""),
    ("did not complete within its ", " and was moved to the background (ID: "),
];

/// The tools that give the output of a task.
const ASKS_FOR_TASKS: [&str; 3] = ["AgentOutputTool", "BashOutput", "TaskOutput"];

/// The types of tasks that are sub-agents.
const SUB_AGENTS: [&str; 4] = ["local_agent", "remote_agent", "in_process_teammate", "local_workflow"];

/// The types of tasks that are sub-agents of the agent's program itself: they end, and they may ask for permission.
const OWN_SUB_AGENTS: [&str; 2] = ["local_agent", "local_workflow"];

/// The origin of a turn that the agent began because a task ended, and of a text about a task.
pub(super) const NOTIFICATION: &str = "task-notification";

/// The beginning of a text about a task.
pub(super) const TAG: &str = "<task-notification>";

/// The maximum number of tasks whose calls are remembered.
const MAX_KNOWN: usize = 10_000;

/// The tasks in the background.
#[derive(Default)]
pub(super) struct Tasks {
    /// The calls that started tasks, by the tasks' IDs.
    calls: HashMap<String, String>,
    /// The calls that started sub-agents in the background.
    launched: HashSet<String>,
    /// The calls whose tasks failed before the result of the call.
    failed_early: HashSet<String>,
    /// The calls whose tasks are reported as failed or stopped.
    reported: HashSet<String>,
    /// The calls whose results show that they failed, also when the results are forgotten.
    failed: HashSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Completed,
    Failed,
    /// The model, the user or the agent's program stopped the task.
    Stopped,
}

impl End {
    /// Returns the end that a word for the status of a task means, or `None` if the task goes on.
    fn of(status: Option<&str>) -> Option<Self> {
        match status? {
            "completed" => Some(Self::Completed),
            "failed" => Some(Self::Failed),
            "killed" | "stopped" => Some(Self::Stopped),
            _ => None,
        }
    }
}

impl Tasks {
    /// Takes a line with news of a task.
    pub(super) fn news(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        let (task, call) = (line.task_id.get(), line.tool_use_id.get());
        self.is_of(task, call);
        let patched = line.patch.0.as_ref().and_then(|patch| patch.status.get());
        self.ended(task, call, line.status.get().or(patched), recorder);
    }

    /// Takes a text with news of a task, as the agent's program gives it to the model.
    pub(super) fn text(&mut self, text: &str, recorder: &mut Recorder) {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(TAG) {
            let (news, next) = after.split_once("</task-notification>").unwrap_or((after, ""));
            rest = next;
            // What follows is in the words of the agent, of a sub-agent, or of a program.
            let news = news.split("<summary>").next().unwrap_or_default();
            let value = |tag: &str| {
                let (_, rest) = news.split_once(&format!("<{tag}>"))?;
                Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
            };
            self.ended(value("task-id"), value("tool-use-id"), value("status"), recorder);
        }
    }

    /// Takes the result of a call, which is open, successful, and may have asked for the output of a task.
    pub(super) fn output(&mut self, id: &str, details: &ToolUseResult<'_>, recorder: &mut Recorder) {
        let tool = recorder.open_call(id).and_then(|(call, _)| call.name.as_deref());
        if !tool.is_some_and(|tool| ASKS_FOR_TASKS.contains(&tool)) {
            return;
        }
        let (task, status) = match &details.task.0 {
            Some(task) => (task.task_id.get(), task.status.get()),
            None => (details.shell_id.get(), details.status.get()),
        };
        if self.call(task).is_none() && status == Some("failed") {
            recorder
                .contradicted(NoticeCode::TaskFailed, format!("by the call {id}, a command in the background failed"));
        }
        self.ended(task, None, status, recorder);
    }

    /// Takes the result of a call that goes on in the background: the call stays open until the end of its task is reported.
    /// Returns false if the call was not open, or was refused or cancelled.
    pub(super) fn goes_on(
        &mut self,
        id: &str,
        details: Option<&ToolUseResult<'_>>,
        output: Option<String>,
        recorder: &mut Recorder,
    ) -> bool {
        if !recorder.goes_on(id, output) {
            return false;
        }
        self.is_of(details.and_then(|details| details.background_task.get()), Some(id));
        // The agent may use the ID of a call again.
        self.failed.remove(id);
        self.reported.remove(id);
        if self.failed_early.remove(id) {
            self.ended(None, Some(id), Some("failed"), recorder);
        }
        true
    }

    /// Takes the result of a call that ended, or that started a sub-agent in the background.
    pub(super) fn returned(&mut self, id: &str, details: Option<&ToolUseResult<'_>>, recorder: &mut Recorder) {
        let failed = self.failed_early.remove(id);
        self.failed.remove(id);
        self.reported.remove(id);
        if details.is_some_and(|details| details.is_async.is_true()) && self.launched.len() < MAX_KNOWN {
            self.launched.insert(id.to_owned());
            if failed {
                self.ended(None, Some(id), Some("failed"), recorder);
            }
        }
    }

    /// Returns the call that started a task, if it is known.
    pub(super) fn call(&self, task: Option<&str>) -> Option<&str> {
        self.calls.get(task?).map(String::as_str)
    }

    /// Remembers a call whose result shows that it failed.
    fn keep_failure(&mut self, call: String, recorder: &Recorder) {
        if recorder.ended_as(&call) == Some(CallStatus::Error) && self.failed.len() < MAX_KNOWN {
            self.failed.insert(call);
        }
    }

    /// Notes that a call started a task.
    fn is_of(&mut self, task: Option<&str>, call: Option<&str>) {
        if let (Some(task), Some(call)) = (task, call)
            && self.calls.len() < MAX_KNOWN
        {
            self.calls.insert(task.to_owned(), call.to_owned());
        }
    }

    /// Takes the status of a task, and ends the call that waits for it. If the call has ended, a notice reports another
    /// outcome, once.
    fn ended(&mut self, task: Option<&str>, call: Option<&str>, status: Option<&str>, recorder: &mut Recorder) {
        let Some(end) = End::of(status) else { return };
        let Some(call) = call.or_else(|| self.call(task)).map(str::to_owned) else { return };
        if recorder.is_in_background(&call) {
            let outcome = match end {
                End::Completed => ReportedStatus::Ok,
                End::Failed => ReportedStatus::Failed,
                // The command came to no end of its own: the call ends as unfinished.
                End::Stopped => return,
            };
            recorder.result(&call, ResultReport { outcome, ..ResultReport::default() });
            self.keep_failure(call, recorder);
            return;
        }
        let is_launched = self.launched.contains(&call);
        let (ended, is_open) = (recorder.ended_as(&call), recorder.is_open(&call));
        let is_known = self.failed.contains(&call);
        let is_forgotten = ended.is_none() && !is_open && !is_known && recorder.was_announced(&call);
        let may_be_ok = is_forgotten || ended == Some(CallStatus::Ok);
        match (end, ended) {
            // The result of the call will follow.
            (End::Failed, None) if is_open && self.failed_early.len() < MAX_KNOWN => {
                self.failed_early.insert(call);
            }
            (End::Failed, _) if (may_be_ok || is_open) && self.reported.insert(call.clone()) => {
                recorder.contradicted(
                    NoticeCode::TaskFailed,
                    format!("the call {call} went on in the background and failed there"),
                );
            }
            (End::Stopped, _) if may_be_ok && is_launched && self.reported.insert(call.clone()) => {
                let text = format!("the call {call} went on in the background and was stopped there");
                recorder.contradicted(NoticeCode::TaskStopped, text);
            }
            (End::Failed, Some(_)) => self.keep_failure(call, recorder),
            _ => {}
        }
    }
}

/// Returns true if a successful result of a command only reports that the command goes on in the background. The data of the
/// result decide, and its text if there are none: the stream has none for the calls of sub-agents.
pub(super) fn goes_on(id: &str, details: Option<&ToolUseResult<'_>>, output: &str, recorder: &Recorder) -> bool {
    match details {
        Some(details) => details.background_task.get().is_some(),
        None => recorder.open_call(id).is_some_and(|(call, _)| call.kind == ToolKind::Execute) && says_goes_on(output),
    }
}

/// Returns true if a text in the user's name is the agent's news of a task.
pub(super) fn is_news(line: &Line<'_>, text: &str) -> bool {
    text.starts_with(TAG) || (line.is_of_task() && text.contains(TAG))
}

/// Returns true if a line of an output is a text by which Claude Code reports that a command goes on in the background. What
/// the command printed before comes first.
pub(crate) fn says_goes_on(output: &str) -> bool {
    COMMAND.find_iter(output.as_bytes()).any(|at| {
        let after = &output[at + COMMAND.needle().len()..];
        let says = |(begins, follows): &(&str, &str)| {
            after.strip_prefix(begins).is_some_and(|rest| rest.lines().next().unwrap_or_default().contains(follows))
        };
        GOES_ON.iter().any(says)
    })
}

/// The work that goes on beside the prompts' turns, as the agent reports it: tasks, and the turns that it begins itself
/// when a task has ended.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// The tasks that run, by their IDs, and whether each is a sub-agent of the agent's program itself.
    tasks: HashMap<String, bool>,
    /// True if a task ended, and no turn began since then.
    is_turn_due: bool,
    /// True if a turn began and has not ended.
    is_in_turn: bool,
    /// True if no line of that turn followed the line that announced it.
    is_only_announced: bool,
    /// True if the last prompt has no answer.
    is_prompt_open: bool,
    /// True if a turn that the agent began itself has ended since that prompt, and no line of another turn followed.
    has_ended_own_turn: bool,
}

impl Background {
    /// Notes that a prompt was sent.
    pub(crate) fn prompted(&mut self) {
        (self.is_prompt_open, self.has_ended_own_turn) = (true, false);
    }

    /// Notes that the last prompt was answered in a turn that the agent began itself.
    pub(crate) fn answered_in_own_turn(&mut self) {
        (self.is_prompt_open, self.has_ended_own_turn) = (false, false);
    }

    /// Returns true if the last prompt has no answer.
    pub(super) fn is_prompt_open(&self) -> bool {
        self.is_prompt_open
    }

    /// Returns true if a turn that the agent began itself has ended and the last prompt has no answer. The agent either begins
    /// a turn for the prompt at once, or has given the prompt to its model within its own turn, and begins none.
    pub(crate) fn may_have_answered(&self) -> bool {
        self.is_prompt_open && self.has_ended_own_turn
    }

    /// Takes a line of the agent.
    pub(crate) fn json(&mut self, line: &Value) {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        match text("type") {
            Some("system" | "result") => {
                if let Ok(line) = serde_json::from_str::<Line<'_>>(&line.to_string()) {
                    self.line(&line);
                }
            }
            // Such a line may be long, and only its type and its speaker count.
            Some(kind) if is_of_turn(kind) && text("parent_tool_use_id").is_none() => self.turn_goes_on(kind),
            _ => {}
        }
    }

    /// Takes a line of the agent.
    pub(super) fn line(&mut self, line: &Line<'_>) {
        match (line.kind.or_empty(), line.subtype.or_empty()) {
            ("system", "background_tasks_changed") => {
                let tasks = line.tasks.0.iter().filter_map(|task| task.0.as_ref());
                let running = tasks.filter_map(|task| {
                    Some((task.task_id.owned()?, OWN_SUB_AGENTS.contains(&task.task_type.or_empty())))
                });
                let before = std::mem::replace(&mut self.tasks, running.take(MAX_KNOWN).collect());
                self.is_turn_due |= before.keys().any(|id| !self.tasks.contains_key(id));
            }
            ("system", "init") => {
                (self.is_in_turn, self.is_turn_due, self.is_only_announced) = (true, false, true);
                self.has_ended_own_turn = false;
            }
            ("system", "thinking_tokens") => self.is_only_announced = false,
            (kind, _) if is_of_turn(kind) && line.parent().is_none() => self.turn_goes_on(kind),
            ("result", _) if line.parent().is_none() => {
                self.is_in_turn = false;
                self.is_prompt_open &= line.is_of_task();
                self.has_ended_own_turn = self.is_prompt_open;
            }
            _ => {}
        }
    }

    /// Takes a line of this type that is part of a turn.
    fn turn_goes_on(&mut self, kind: &str) {
        self.is_only_announced = false;
        // A sub-agent may ask for permission beside the turns, and its requests do not name it.
        if kind != "control_request" {
            self.has_ended_own_turn = false;
        }
    }

    /// Returns true if a sub-agent of the agent's program itself runs.
    pub(crate) fn has_sub_agents(&self) -> bool {
        self.tasks.values().any(|is_sub_agent| *is_sub_agent)
    }

    /// Returns true if a turn has begun and has not ended.
    pub(super) fn is_in_turn(&self) -> bool {
        self.is_in_turn
    }

    /// Returns true if a turn was announced, no line of it followed, no sub-agent runs, and no prompt waits for its answer. There
    /// may be no turn.
    pub(crate) fn is_only_announced(&self) -> bool {
        self.is_in_turn && self.is_only_announced && !self.is_prompt_open && !self.has_sub_agents()
    }

    /// Notes that the engine ends the agent. A turn that was announced and has no line does not count, unless a prompt waits
    /// for its answer.
    pub(super) fn is_ended_by_engine(&mut self) {
        if self.is_only_announced && !self.is_prompt_open {
            self.is_in_turn = false;
        }
    }

    /// Returns true if a sub-agent or a turn goes on, which will end.
    pub(crate) fn is_working(&self) -> bool {
        self.is_in_turn || self.has_sub_agents()
    }

    /// Returns true if anything goes on: a turn, a task of any kind, or the turn that follows the end of a task. The agent
    /// may ask for permission meanwhile.
    pub(crate) fn goes_on(&self) -> bool {
        self.is_in_turn || self.is_turn_due || !self.tasks.is_empty()
    }

    /// Returns true if the agent may begin another turn without a further prompt.
    pub(crate) fn may_follow(&self) -> bool {
        self.goes_on() || self.is_prompt_open
    }
}

/// Returns true if lines of this type are part of a turn.
fn is_of_turn(kind: &str) -> bool {
    ["assistant", "user", "stream_event", "control_request"].contains(&kind)
}

/// Returns true if a line with news of a task shows that the task is a sub-agent.
pub(super) fn is_sub_agent(line: &Line<'_>) -> bool {
    !line.subagent_type.or_empty().is_empty() || SUB_AGENTS.contains(&line.task_type.or_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_goes_on_follows_from_the_lines() {
        let tasks = |kind: &str| json!([{"task_id": "b", "task_type": kind}]);
        let changed = |tasks: Value| json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks});
        let init = json!({"type": "system", "subtype": "init"});
        let result = json!({"type": "result", "subtype": "success"});
        let own_result = json!({"type": "result", "subtype": "success", "origin": {"kind": "task-notification"}});
        let mut background = Background::default();
        background.prompted();
        for (line, is_working, goes_on, may_follow) in [
            (&init, true, true, true),
            (&changed(tasks("local_bash")), true, true, true),
            (&result, false, true, true),
            (&changed(tasks("local_agent")), true, true, true),
            (&json!({"type": "result", "parent_tool_use_id": "a"}), true, true, true),
            // The turn about the end of the task is due.
            (&changed(json!([])), false, true, true),
            (&init, true, true, true),
            (&own_result, false, false, false),
        ] {
            background.json(line);
            let seen = (background.is_working(), background.goes_on(), background.may_follow());
            assert_eq!(seen, (is_working, goes_on, may_follow), "{line}");
        }
        // The agent ended a turn of its own before that of the next prompt.
        background.prompted();
        background.json(&own_result);
        assert_eq!((background.goes_on(), background.may_follow()), (false, true));
        background.json(&result);
        assert!(!background.may_follow());
    }

    #[test]
    fn a_turn_of_the_program_may_be_the_answer_only_if_no_turn_for_the_prompt_follows() {
        let init = json!({"type": "system", "subtype": "init"});
        let own_result = json!({"type": "result", "subtype": "success", "origin": {"kind": "task-notification"}});
        let assistant = |parent: Value| json!({"type": "assistant", "parent_tool_use_id": parent});
        for (line, may_have_answered) in [
            (json!({"type": "system", "subtype": "status"}), true),
            (json!({"type": "control_request"}), true),
            (assistant(json!("a")), true),
            (assistant(Value::Null), false),
            (json!({"type": "result", "subtype": "success"}), false),
        ] {
            let mut background = Background::default();
            background.json(&own_result);
            assert!(!background.may_have_answered(), "no prompt waits");
            background.prompted();
            assert!(!background.may_have_answered());
            background.json(&own_result);
            background.json(&line);
            assert_eq!(background.may_have_answered(), may_have_answered, "{line}");
        }
        let mut background = Background::default();
        background.prompted();
        background.json(&own_result);
        background.json(&init);
        assert_eq!((background.may_have_answered(), background.is_only_announced()), (false, false));
        background.is_ended_by_engine();
        assert!(background.is_in_turn(), "the turn is that of the prompt");
    }

    #[test]
    fn a_turn_that_is_only_announced_is_none_when_the_engine_ends_the_program() {
        let init = json!({"type": "system", "subtype": "init"});
        let of_sub_agent = json!({"type": "assistant", "parent_tool_use_id": "a"});
        for (line, is_only_announced) in [
            (json!({"type": "system", "subtype": "status"}), true),
            (of_sub_agent, true),
            (json!({"type": "system", "subtype": "thinking_tokens"}), false),
            (json!({"type": "assistant", "parent_tool_use_id": null}), false),
            (json!({"type": "stream_event"}), false),
        ] {
            let mut background = Background::default();
            background.json(&init);
            background.json(&line);
            assert_eq!(background.is_only_announced(), is_only_announced, "{line}");
            background.is_ended_by_engine();
            assert_eq!(background.is_in_turn(), !is_only_announced, "{line}");
        }
    }
}
