//! Compares what the engine did at the agent's request with the agent's calls: an action may belong to one of them.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::text_at;
use crate::command_line::is_shell;
use crate::text::first_bytes;
use crate::trace::recorder::{CallInProgress, CallReport, QuotedLine, Recorder};
use crate::trace::{NoticeCode, ToolKind, UnseenAction, view};

/// The maximum bytes of a request in the text of a notice.
const MAX_QUOTED: usize = 600;
/// The maximum number of actions that wait for the end of their calls, and of terminals that wait for a call. Further ones
/// count as actions that no call shows.
const MAX_WAITING: usize = 10_000;

/// The actions of the engine at the agent's request of which it is open which call they belong to.
///
/// An agent announces a call before it asks the engine for what the call does, and the call may show its command or its
/// files later. So an action is compared with the open calls when it is asked for, and once more when its call ends. An
/// action that belongs to no call gets a notice: graders may not rely on the calls alone.
#[derive(Debug, Default)]
pub(super) struct Actions {
    /// By the agent's id of the call.
    claimed: HashMap<String, Vec<Claimed>>,
    count: usize,
    /// The terminals that belonged to no call when they were started, by their ids. A call may show them later.
    terminals: BTreeMap<String, Action>,
}

/// A request of an agent that the engine should do something.
#[derive(Debug, Clone)]
pub(super) struct Action {
    what: What,
    /// The text of the notice if no call shows the action.
    text: String,
    /// The line of the request.
    line: QuotedLine,
}

#[derive(Debug, Clone)]
enum What {
    Reads(String),
    Writes(String),
    Runs(Program),
}

/// A request for a terminal that has no answer yet.
#[derive(Debug)]
pub(super) enum AskedTerminal {
    /// The terminal of the open call with this id of the agent.
    Of(String),
    /// A terminal that no open call shows.
    OfNoCall(Action),
}

/// The program of a terminal.
#[derive(Debug, Clone)]
struct Program {
    /// The words of the command line.
    line: Vec<String>,
    /// The words of the script, if the program is a shell.
    script: Option<Vec<String>>,
    /// If the script first goes to a folder: the folder, and the words of the rest.
    in_folder: Option<(String, Vec<String>)>,
    cwd: Option<String>,
}

#[derive(Debug)]
struct Claimed {
    action: Action,
    /// The id of the terminal, if the action started one.
    terminal: Option<String>,
}

impl Action {
    /// Reads a request of the agent by its method. `None` if the method is no action.
    pub(super) fn of(method: &str, params: &Value) -> Option<Self> {
        let path = || text_at(params, "path").unwrap_or_default();
        let what = match method {
            "fs/read_text_file" => What::Reads(path()),
            "fs/write_text_file" => What::Writes(path()),
            "terminal/create" => What::Runs(Program::of(params)),
            _ => return None,
        };
        let text = format!("{method} without a tool call: {}", first_bytes(&params.to_string(), MAX_QUOTED));
        Some(Self { what, text, line: QuotedLine::default() })
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.what, What::Runs(_))
    }

    /// Returns true if the action may belong to a call: by its kind, and by the command or the files that the call shows.
    /// `workspace` is the folder that paths are relative to.
    fn may_belong_to(&self, call: &CallInProgress<'_>, workspace: Option<&str>) -> bool {
        use ToolKind::{Delete, Edit, Execute, Move, Other, Read, Search};
        match (&self.what, call.call.kind) {
            (What::Runs(program), Execute | Other) => program.may_be_of(call),
            (What::Writes(path), Edit | Delete | Move) | (What::Reads(path), Edit | Delete | Move | Read) => {
                names(call, path, workspace).unwrap_or(true)
            }
            // A command, a search or an unknown tool may use any file, and which is known only if the call names it.
            (What::Writes(path), Execute | Other) | (What::Reads(path), Execute | Other | Search) => {
                names(call, path, workspace).unwrap_or(false)
            }
            _ => false,
        }
    }

    /// Adds a notice that no call shows this action. If a file was used, and this is all that the trace lacks, the notice
    /// names it: a program reads files of its own accord, and writes other files while a call changes some.
    fn tell(self, recorder: &mut Recorder) {
        use ToolKind::{Delete, Edit, Execute, Move, Other, Read};
        let may_change = |call: CallInProgress<'_>| matches!(call.call.kind, Edit | Delete | Move | Execute | Other);
        let Self { what, text, line } = self;
        let used = match what {
            What::Reads(path) => Some((Read, path)),
            What::Writes(path) if recorder.calls_in_progress().any(may_change) => Some((Edit, path)),
            What::Writes(_) | What::Runs(_) => None,
        };
        let workspace = recorder.header().cwd.clone();
        match used.filter(|(_, path)| !path.is_empty()) {
            Some((kind, path)) => {
                let path = view::relative(&path, workspace.as_deref());
                let action = UnseenAction { kind, path };
                recorder.about(line, |recorder| recorder.acted_unseen(NoticeCode::UnannouncedAction, text, action));
            }
            None => recorder.about(line, |recorder| recorder.did_unseen(NoticeCode::UnannouncedAction, text)),
        }
    }
}

impl AskedTerminal {
    /// Adds the notice of a terminal that no call shows. The engine gave no answer.
    pub(super) fn tell(self, recorder: &mut Recorder) {
        if let Self::OfNoCall(action) = self {
            action.tell(recorder);
        }
    }
}

impl Program {
    fn of(params: &Value) -> Self {
        let program = text_at(params, "command").unwrap_or_default();
        let args = params.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let args: Vec<&str> = args.collect();
        let line = words(&std::iter::once(program.as_str()).chain(args.iter().copied()).collect::<Vec<_>>().join(" "));
        let is_shell = is_shell(&program);
        let script = args
            .split_last()
            .filter(|(_, flags)| is_shell && !flags.is_empty() && flags.iter().all(|flag| flag.starts_with('-')))
            .map(|(script, _)| *script);
        let in_folder = script.and_then(after_cd).map(|(folder, rest)| (folder.to_owned(), words(rest)));
        let cwd = text_at(params, "cwd").filter(|cwd| !cwd.is_empty());
        Self { line, script: script.map(words), in_folder, cwd }
    }

    /// Returns true if a call shows no input, or this command: alone, or as the last argument of a shell, which may first go
    /// to a folder.
    fn may_be_of(&self, call: &CallInProgress<'_>) -> bool {
        // Without an input, the command of the call is not known to be another one.
        let Some(input) = call.call.shown_input() else { return true };
        let shown = view::commands(input);
        let mut shown = shown.iter().map(|command| words(command));
        shown.any(|command| command == self.line || Some(&command) == self.script.as_ref() || self.is_rest(&command))
    }

    fn is_rest(&self, command: &[String]) -> bool {
        self.in_folder.as_ref().is_some_and(|(_, rest)| rest == command)
    }

    /// Returns the folder in which a call's command runs.
    fn cwd_of(&self, call: Option<&CallInProgress<'_>>) -> Option<&String> {
        let shown = call.and_then(|call| call.call.shown_input()).map(view::commands).unwrap_or_default();
        match &self.in_folder {
            Some((folder, _)) if shown.iter().any(|command| self.is_rest(&words(command))) => Some(folder),
            _ => self.cwd.as_ref(),
        }
    }
}

impl Actions {
    /// Takes what the agent asks for. Returns the request for a terminal, which waits for the terminal's id.
    pub(super) fn asked(&mut self, action: Action, recorder: &mut Recorder) -> Option<AskedTerminal> {
        let is_terminal = action.is_terminal();
        let action = Action { line: recorder.this_line(), ..action };
        match self.claim(action, None, recorder) {
            Ok(call) => is_terminal.then_some(AskedTerminal::Of(call)),
            Err(action) if is_terminal => Some(AskedTerminal::OfNoCall(*action)),
            Err(action) => {
                action.tell(recorder);
                None
            }
        }
    }

    /// Takes the id of a new terminal. A terminal without an id was not started. If no call shows it, the attempt gets
    /// its notice at once.
    pub(super) fn started(&mut self, asked: AskedTerminal, id: Option<String>, recorder: &mut Recorder) {
        let action = match asked {
            AskedTerminal::Of(call) => {
                let mut claimed = self.claimed.get_mut(&call).into_iter().flatten();
                if let Some(claimed) = claimed.find(|it| it.action.is_terminal() && it.terminal.is_none()) {
                    claimed.terminal = id;
                }
                return;
            }
            AskedTerminal::OfNoCall(action) => action,
        };
        let Err(action) = self.claim(action, id.as_deref(), recorder) else { return };
        match id.filter(|_| self.terminals.len() < MAX_WAITING) {
            Some(id) => _ = self.terminals.insert(id, *action),
            None => action.tell(recorder),
        }
    }

    /// Takes a call that was announced or updated, with the terminals that it embeds: it may show a waiting terminal.
    pub(super) fn record_shown_call(&mut self, call: &str, embeds: &[String], recorder: &mut Recorder) {
        if self.terminals.is_empty() {
            return;
        }
        let workspace = recorder.header().cwd.clone();
        let ids: Vec<String> = self.terminals.keys().cloned().collect();
        for id in ids {
            let Some(open) = recorder.call_in_progress(call) else { return };
            let has_another = !embeds.contains(&id) && self.runs_in(call);
            let fits = |action: &Action| !has_another && action.may_belong_to(&open, workspace.as_deref());
            if self.terminals.get(&id).is_some_and(fits)
                && let Some(action) = self.terminals.remove(&id)
            {
                self.keep(call.to_owned(), action, Some(id), recorder);
            }
        }
    }

    /// Takes the end of a call: its actions are compared with all that it has shown. Returns the terminals whose command it
    /// shows.
    pub(super) fn ended(&mut self, call: &str, recorder: &mut Recorder) -> Vec<String> {
        let Some(claimed) = self.claimed.remove(call) else { return Vec::new() };
        self.count -= claimed.len();
        let workspace = recorder.header().cwd.clone();
        let mut terminals = Vec::new();
        for Claimed { action, terminal } in claimed {
            let open = recorder.call_in_progress(call);
            let shows_input = open.as_ref().is_some_and(|open| open.call.shown_input().is_some());
            // A call that was rejected after the action does not show that it was carried out.
            let fits =
                |open: CallInProgress<'_>| !open.is_rejected && action.may_belong_to(&open, workspace.as_deref());
            if open.is_none_or(fits) {
                terminals.extend(terminal.filter(|_| shows_input));
                continue;
            }
            // Another open call may be it instead.
            if let Err(action) = self.claim(action, terminal.as_deref(), recorder) {
                action.tell(recorder);
            }
        }
        terminals
    }

    /// Takes the end of a turn: every call is compared, and no call will show a terminal that waits.
    pub(super) fn turn_ended(&mut self, recorder: &mut Recorder) {
        let mut calls: Vec<String> = self.claimed.keys().cloned().collect();
        calls.sort();
        for call in calls {
            self.ended(&call, recorder);
        }
        for action in std::mem::take(&mut self.terminals).into_values() {
            action.tell(recorder);
        }
        // What found another call at its first call's end is compared with that one now or before.
        *self = Self::default();
    }

    /// Finds an open call that may be the action. A call is one terminal, unless it embeds more.
    fn claim(
        &mut self,
        action: Action,
        terminal: Option<&str>,
        recorder: &mut Recorder,
    ) -> Result<String, Box<Action>> {
        let workspace = recorder.header().cwd.clone();
        let fits = |open: &CallInProgress<'_>| {
            !(action.is_terminal() && self.runs_in(open.id)) && action.may_belong_to(open, workspace.as_deref())
        };
        // A call that shows what it does comes before one that does not.
        let order = |open: &CallInProgress<'_>| (open.call.shown_input().is_none(), open.number);
        let call = recorder.calls_in_progress().filter(fits).min_by_key(order).map(|open| open.id.to_owned());
        match call {
            Some(call) => {
                self.keep(call.clone(), action, terminal.map(str::to_owned), recorder);
                Ok(call)
            }
            None => Err(Box::new(action)),
        }
    }

    fn keep(&mut self, call: String, action: Action, terminal: Option<String>, recorder: &mut Recorder) {
        if let What::Runs(program) = &action.what {
            let workspace = recorder.header().cwd.clone();
            let is_elsewhere = |cwd: &&String| view::relative(cwd, workspace.as_deref()) != ".";
            // A call that gives no kind is of the kind `other`, and the engine knows better: it starts a program.
            let kind = Some(ToolKind::Execute);
            let cwd = program.cwd_of(recorder.call_in_progress(&call).as_ref()).filter(is_elsewhere).cloned();
            recorder.update(&call, CallReport { kind, cwd, ..CallReport::default() }, true);
        }
        if self.count < MAX_WAITING {
            self.count += 1;
            self.claimed.entry(call).or_default().push(Claimed { action, terminal });
        } else {
            action.tell(recorder);
        }
    }

    /// Returns true if a call has a terminal.
    fn runs_in(&self, call: &str) -> bool {
        self.claimed.get(call).is_some_and(|claimed| claimed.iter().any(|it| it.action.is_terminal()))
    }
}

/// Returns the folder and the rest of a script that first goes to a folder by its whole path.
fn after_cd(script: &str) -> Option<(&str, &str)> {
    let (folder, rest) = script.trim_start().strip_prefix("cd ")?.split_once(" && ")?;
    let quoted = folder.strip_prefix('\'').and_then(|folder| folder.strip_suffix('\''));
    let is_plain = match quoted {
        Some(folder) => !folder.contains('\''),
        None => folder.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c)),
    };
    let folder = quoted.unwrap_or(folder);
    (is_plain && folder.starts_with('/')).then_some((folder, rest))
}

/// Returns the words of a command, without quotes, the program without its folder.
fn words(command: &str) -> Vec<String> {
    let plain = command.replace(['\'', '"'], "");
    let mut words: Vec<String> = plain.split_whitespace().map(str::to_owned).collect();
    if let Some(program) = words.first_mut() {
        *program = last_part(program).to_owned();
    }
    words
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns whether a call names a file. `None` if it names none.
fn names(open: &CallInProgress<'_>, path: &str, workspace: Option<&str>) -> Option<bool> {
    let shown = view::paths(open.call.shown_input(), &open.call.locations, open.diffs, workspace);
    (!shown.is_empty()).then(|| shown.contains(&view::relative(path, workspace)))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;

    use super::*;
    use crate::trace::ToolCall;

    #[test]
    fn an_action_belongs_to_a_call_that_may_be_it() {
        let call = |kind: &str, input: Value| -> ToolCall {
            let text = json!({"seq": 0, "type": "tool_call", "call": "c", "step": 0, "kind": kind, "input": input});
            let event = crate::trace::jsonl::read_event(text.to_string().as_bytes()).unwrap();
            let crate::trace::Body::ToolCall(call) = event.body else { panic!("no call") };
            call
        };
        let rm = json!({"command": "rm", "args": ["-rf", "x"]});
        let shell = json!({"command": "bash", "args": ["-lc", "ls -l"]});
        let moved = |script: &str| json!({"command": "/bin/bash", "args": ["-c", script]});
        let (inside, relative) = (moved("cd '/w x' && ls -l; pwd"), moved("cd sub && ls -l"));
        let unclear = moved("cd '/w'$(rm y)'' && ls -l");
        let file = |path: &str| json!({"path": path});
        for (kind, input, method, params, belongs) in [
            ("execute", json!({"command": "ls -l"}), "terminal/create", &shell, true),
            ("execute", json!({"command": "ls -l; pwd"}), "terminal/create", &inside, true),
            ("execute", json!({"command": "cd '/w x' && ls -l; pwd"}), "terminal/create", &inside, true),
            ("execute", json!({"command": "pwd"}), "terminal/create", &inside, false),
            ("execute", json!({"command": "ls -l"}), "terminal/create", &relative, false),
            ("execute", json!({"command": "ls -l"}), "terminal/create", &unclear, false),
            ("execute", json!({"command": "rm -rf x"}), "terminal/create", &rm, true),
            ("execute", json!({"command": "ls"}), "terminal/create", &rm, false),
            ("execute", json!({"description": "clean"}), "terminal/create", &rm, false),
            ("execute", json!({"command": "x"}), "terminal/create", &rm, false),
            ("execute", json!({"command": "rm -rf"}), "terminal/create", &rm, false),
            ("execute", json!({"command": "/bin/rm -rf 'x'"}), "terminal/create", &rm, true),
            ("execute", json!(null), "terminal/create", &rm, true),
            ("other", json!({"x": 1}), "terminal/create", &rm, false),
            ("read", json!({"path": "a"}), "terminal/create", &rm, false),
            ("read", json!({"path": "/w/a"}), "fs/read_text_file", &file("/w/a"), true),
            ("read", json!({"path": "src"}), "fs/read_text_file", &file("/w/src/b"), false),
            ("read", json!({"path": "a"}), "fs/read_text_file", &file("/etc/passwd"), false),
            ("read", json!({"path": "a"}), "fs/write_text_file", &file("/w/a"), false),
            ("edit", json!({"path": "a"}), "fs/write_text_file", &file("/w/a"), true),
            ("edit", json!({"path": "a"}), "fs/write_text_file", &file("/w/b"), false),
            ("other", json!({"x": 1}), "fs/write_text_file", &file("/w/b"), false),
            ("search", json!({"pattern": "x"}), "fs/read_text_file", &file("/w/b"), false),
            ("other", json!({"path": "b"}), "fs/write_text_file", &file("/w/b"), true),
            ("edit", json!(null), "fs/write_text_file", &file("/w/b"), true),
        ] {
            let call = call(kind, input.clone());
            let open =
                CallInProgress { id: "c", number: 1, call: Cow::Borrowed(&call), diffs: &[], is_rejected: false };
            let action = Action::of(method, params).unwrap();
            assert_eq!(action.may_belong_to(&open, Some("/w")), belongs, "{kind} {input} {method}");
        }
    }
}
