//! Joins each call with its result while events arrive, in the order in which the calls were announced.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::{
    AskedCall, Body, CallStatus, Event, FileDiff, Location, NoticeCode, PermissionOutcome, PermissionResponse,
    ToolCall, ToolKind, ToolResult, view,
};
use crate::command_line::{is_option_of_text, is_shell};

/// A call with its result, and with the input that permission responses changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The `seq` of the event that announced the call.
    pub seq: u64,
    /// The time at which the call was announced, in milliseconds.
    pub at_ms: u64,
    /// Id of the call that started the sub-agent which made this call. Absent for the main agent.
    pub parent: Option<String>,
    /// The call itself. If a permission request or a policy changed the call, this is the changed one; of several requests,
    /// the last one counts.
    pub call: ToolCall,
    /// The kind that the agent announced, if it then asked for permission for another one.
    pub announced_kind: Option<ToolKind>,
    /// The `seq` of the event that holds the result.
    pub result_seq: u64,
    /// The time at which the result arrived, in milliseconds.
    pub result_at_ms: u64,
    /// The outcome of the call.
    pub status: CallStatus,
    /// True if the engine ended the call because too many were open, so that the agent's end of it is unknown.
    pub is_cut: bool,
    /// True if the agent reports that the call completed, although it was refused.
    pub contested: bool,
    /// The output as text. Absent if the agent showed none.
    pub output: Option<String>,
    /// True if the output was truncated: the agent reports it, or it was longer than a text of the trace can be.
    pub truncated: bool,
    /// The changes to files that the call showed.
    pub diffs: Vec<FileDiff>,
    /// The exit code, if reported.
    pub exit_code: Option<i64>,
    /// Other forms of the call for which it may have been carried out: each earlier permission request that differs from the
    /// last one, and the announcement if the last request asked for another action.
    pub asked: Vec<AskedForm>,
}

/// A call as a request for permission asked for it, or as it was announced.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedForm {
    /// Id of the request. Absent for the announced call.
    pub request: Option<String>,
    /// The call, as asked for.
    pub call: ToolCall,
    /// The kind that the agent announced, if it asked for another one.
    pub announced_kind: Option<ToolKind>,
    /// The answer. Absent if there was none, and for an announced call whose request was not refused.
    pub outcome: Option<PermissionOutcome>,
    /// True if the form runs the same commands as the call, and only the permissions that it asks for are others.
    pub is_permission: bool,
}

impl AskedForm {
    /// Returns true if the request was rejected or cancelled.
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, Some(PermissionOutcome::Rejected | PermissionOutcome::Cancelled))
    }
}

/// Joins events in order to calls in order.
#[derive(Debug, Default)]
pub struct Joiner {
    waiting: VecDeque<Waiting>,
    first: u64,
    open: HashMap<String, u64>,
    cuts: Cuts,
    /// The number of events so far.
    events: u64,
}

/// The number of events after which the answer to a request of an ended call is no longer awaited.
const PATIENCE: u64 = 100;

/// A filter for the results that the engine wrote because too many calls were open: how the agent ended those calls is
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
            Body::Notice { code: NoticeCode::TooManyOpenCalls, .. } => {
                self.begun = true;
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
    /// The call as it was announced.
    call: ToolCall,
    /// The call as each request asked for it.
    asked: Vec<AskedForm>,
    /// True if the last request asked for another action than the announced one.
    asks_another: bool,
    /// The input in the answer to the last request.
    updated_input: Option<Value>,
    /// The number of requests without an answer.
    unanswered: usize,
    /// The number of the result among the events.
    ended_at: u64,
    result: Option<(u64, u64, ToolResult)>,
    is_cut: bool,
}

impl Waiting {
    /// Takes a permission request. It makes the call more exact; if it says something else than the call said, the files are
    /// those of both, unless its input is another one.
    fn ask(&mut self, request: &str, asked: Option<&AskedCall>) {
        let mut call = self.call.clone();
        let mut announced_kind = None;
        // What the agent did not announce, an earlier request may have told.
        let before = self.asked.last().map(|form| &form.call);
        let is_vague = |call: &ToolCall| call.unknown_kind || call.kind == ToolKind::Other;
        let (was_vague, asked) = (is_vague(&call), asked.cloned().unwrap_or_default());
        let earlier = before.filter(|before| was_vague && !is_vague(before)).map(|before| before.kind);
        if let Some(kind) = asked.kind.or(earlier) {
            if !was_vague && call.kind != kind {
                announced_kind = Some(call.kind);
            }
            (call.kind, call.unknown_kind) = (kind, false);
        }
        let earlier = before.filter(|_| call.name.is_none()).and_then(|before| before.name.clone());
        call.name = asked.name.or(call.name).or(earlier);
        if let Some(locations) = &asked.locations {
            // Another input has other files; the same input has those that were announced, too.
            // An earlier request may have named the files that seem announced.
            if asked.input.is_some() || !self.asked.is_empty() {
                call.locations.clear();
            }
            let new: Vec<Location> = locations.iter().filter(|it| !call.locations.contains(it)).cloned().collect();
            call.locations.extend(new);
        }
        let has_input = asked.input.is_some();
        call.input = asked.input.or(call.input);
        let is_same = is_same_action(&self.call, &call) && !shows_more(&self.call, &call);
        self.asks_another = has_input && !is_same && !fills_in(&self.call, &call);
        let form =
            AskedForm { request: Some(request.to_owned()), call, announced_kind, outcome: None, is_permission: false };
        self.asked.push(form);
        self.updated_input = None;
        self.unanswered += 1;
    }

    /// Takes the answer to a request. The requested input is what the agent attempted, even if the answer rejects it.
    fn answer(&mut self, response: &PermissionResponse) {
        let is_about = |form: &AskedForm| form.request.as_ref() == Some(&response.request);
        let is_last = self.asked.last().is_some_and(is_about);
        let Some(form) = self.asked.iter_mut().rev().find(|form| is_about(form)) else { return };
        form.outcome = Some(response.outcome);
        self.unanswered = self.unanswered.saturating_sub(1);
        if let Some(input) = &response.updated_input {
            form.call.input = Some(input.clone());
        }
        if is_last {
            self.updated_input.clone_from(&response.updated_input);
        }
    }

    /// Returns the call, the kind that was announced, if it was another one, and the other forms of the call. The input is the
    /// one that the last answer names: without one, the agent showed the call's own input after the request, or an old trace lacks
    /// the input of a request that only adds values. A request does not take back an announced action: the agent may carry out
    /// either.
    fn last_form(self) -> (ToolCall, Option<ToolKind>, Vec<AskedForm>) {
        let mut asked = self.asked;
        let Some(last) = asked.last() else { return (self.call, None, asked) };
        let is_another = self.asks_another && self.updated_input.is_some();
        let adds = || fills_in(&self.call, &last.call) && shows_more(&last.call, &self.call);
        let own = if self.updated_input.is_none() && adds() { &last.call.input } else { &self.call.input };
        let input = self.updated_input.or_else(|| own.clone());
        let call = ToolCall { input, ..last.call.clone() };
        let announced_kind = last.announced_kind;
        let outcome = last.outcome.filter(|outcome| *outcome != PermissionOutcome::Allowed);
        if is_another {
            let (request, announced_kind) = (None, None);
            asked.push(AskedForm { request, call: self.call, announced_kind, outcome, is_permission: false });
        }
        asked.retain(|form| !is_same_action(&form.call, &call) || shows_more(&form.call, &call));
        asked.iter_mut().for_each(|form| form.is_permission = differs_in_permissions(&form.call, &call));
        (call, announced_kind, asked)
    }
}

/// Returns true if two forms of a call are the same action, whatever its wording: of the same kind, tool, commands and
/// files, without different values under a key of both.
fn is_same_action(one: &ToolCall, other: &ToolCall) -> bool {
    one.kind == other.kind
        && one.unknown_kind == other.unknown_kind
        && runs_same_commands(one, other)
        && names_files_of(one, other)
        && names_files_of(other, one)
        && !contradicts(one, other)
}

/// Returns true if two forms run the same commands, and differ at most in the permissions that they ask for.
fn differs_in_permissions(one: &ToolCall, other: &ToolCall) -> bool {
    let without = |call: &ToolCall| {
        let mut call = call.clone();
        if let Some(Value::Object(input)) = &mut call.input {
            let is_remark = |key: &str| PERMISSION_KEYS.contains(&key) || REMARK_KEYS.contains(&key);
            input.retain(|key, _| !is_remark(key));
        }
        call
    };
    if one.kind != ToolKind::Execute || commands(one).is_empty() {
        return false;
    }
    let (one, other) = (without(one), without(other));
    is_same_action(&one, &other) && !shows_more(&one, &other) && !shows_more(&other, &one)
}

/// Returns true if a request names all that was announced, and adds only what was not announced.
fn fills_in(announced: &ToolCall, requested: &ToolCall) -> bool {
    let is_open = announced.unknown_kind || announced.kind == ToolKind::Other;
    let has_all_keys = match (announced.shown_input(), requested.shown_input()) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => old.keys().all(|key| new.contains_key(key)),
        (announced, _) => announced.is_none(),
    };
    (is_open || announced.kind == requested.kind)
        && has_all_keys
        && (commands(announced).is_empty() || runs_same_commands(announced, requested))
        && names_files_of(requested, announced)
        && !contradicts(announced, requested)
}

/// Returns true if two forms of a call have different names of the tool, or different values under a key of both inputs.
fn contradicts(one: &ToolCall, other: &ToolCall) -> bool {
    one.name.as_ref().zip(other.name.as_ref()).is_some_and(|(one, other)| one != other)
        || has_other_value(one.shown_input(), other.shown_input())
}

/// Returns true if the first form names each file of the second.
fn names_files_of(one: &ToolCall, other: &ToolCall) -> bool {
    let paths = |call: &ToolCall| view::written_paths(call.shown_input(), &call.locations, &[]);
    let named = paths(one);
    paths(other).iter().all(|path| named.iter().any(|shown| is_same_path(path, shown)))
}

fn commands(call: &ToolCall) -> Vec<String> {
    call.shown_input().map(view::commands).unwrap_or_default()
}

/// Returns true if two forms of a call run the same commands. A change of the folder before a command may be the working directory
/// of the other form.
fn runs_same_commands(one: &ToolCall, other: &ToolCall) -> bool {
    let (of_one, of_other) = (commands(one), commands(other));
    let is_same = |(line, command): (&String, &String)| {
        is_same_command(line, command)
            || is_in_folder(line, command, working_directory(other))
            || is_in_folder(command, line, working_directory(one))
    };
    of_one.len() == of_other.len() && of_one.iter().zip(&of_other).all(is_same)
}

/// Returns true if two commands are the same, apart from a shell around one of them.
pub fn is_same_command(one: &str, other: &str) -> bool {
    let bare = |command: &str| {
        let command = command.trim();
        let mut words = command.splitn(3, ' ');
        let inner = match (words.next(), words.next(), words.next()) {
            (Some(program), Some(option), Some(rest)) if is_shell(program) && is_option_of_text(option) => rest.trim(),
            _ => command,
        };
        let quoted = ['\'', '"'].into_iter().find_map(|quote| inner.strip_prefix(quote)?.strip_suffix(quote));
        quoted.unwrap_or(inner).to_owned()
    };
    one == other || bare(one) == bare(other)
}

/// Returns true if a line is a change to this folder and then the command.
fn is_in_folder(line: &str, command: &str, folder: Option<&str>) -> bool {
    let before = line.trim().strip_suffix(command.trim()).map(str::trim_end);
    let entered = before.and_then(|before| before.strip_suffix("&&")?.trim().strip_prefix("cd "));
    folder.is_some() && entered.map(|path| path.trim().trim_matches(['\'', '"'])) == folder
}

/// Input keys under which agents put the working directory of a command.
const FOLDER_KEYS: [&str; 5] = ["cwd", "workdir", "working_dir", "working_directory", "workingDirectory"];

/// Returns true if agents put the working directory of a command under this input key.
pub fn is_folder_key(key: &str) -> bool {
    FOLDER_KEYS.contains(&key)
}

/// Returns the working directory that the input of a call names.
pub fn working_directory(call: &ToolCall) -> Option<&str> {
    let input = call.shown_input()?;
    FOLDER_KEYS.iter().find_map(|key| input.get(*key)?.as_str())
}

/// Returns true if two paths are equal, or one of them is the end of the other: relative in one of two forms.
fn is_same_path(one: &str, other: &str) -> bool {
    let is_end_of = |end: &str, whole: &str| {
        let end = end.strip_prefix("./").unwrap_or(end);
        whole.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    is_end_of(one, other) || is_end_of(other, one)
}

/// Input keys under which agents put the whole content of a file.
const CONTENT_KEYS: [&str; 5] = ["content", "contents", "file_text", "fileText", "text"];

/// Input keys whose values do not change the action.
const WORDING_KEYS: [&str; 4] = ["description", "timeout", "timeout_ms", "timeoutMs"];

/// Input keys beside a command under which a request names the permissions that the command needs.
const PERMISSION_KEYS: [&str; 2] = ["url", "additionalPermissions"];

/// Input keys under which a request repeats what the call shows beside its input: its ID, tool or title.
const LABEL_KEYS: [&str; 15] = [
    "id",
    "callId",
    "call_id",
    "toolCallId",
    "tool_call_id",
    "type",
    "kind",
    "tool",
    "toolName",
    "tool_name",
    "name",
    "title",
    "label",
    "message",
    "question",
];

/// Input keys beside the arguments of a call of an MCP server under which a request names the server.
const SERVER_KEYS: [&str; 3] = ["server", "serverName", "server_name"];

/// Input keys for the user, under which a request says why the agent asks.
const REMARK_KEYS: [&str; 3] = ["reason", "justification", "explanation"];

/// Returns true if agents put a text under this input key that does not change the action.
pub fn is_remark_key(key: &str) -> bool {
    WORDING_KEYS.contains(&key) || REMARK_KEYS.contains(&key)
}

/// Returns true if two inputs have different values under the same key, apart from texts of commands and the wording.
fn has_other_value(one: Option<&Value>, other: Option<&Value>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one != other };
    one.iter().any(|(key, value)| match (value, other.get(key)) {
        (Value::Null, _) => false,
        (Value::String(one), Some(Value::String(other))) if view::is_path_key(key) => !is_same_path(one, other),
        (Value::String(_), _) | (_, Some(Value::String(_))) if view::is_command_key(key) => false,
        (value, other) => !WORDING_KEYS.contains(&key.as_str()) && has_other_value(Some(value), other),
    })
}

/// Returns true if a form of a call has an input with values that the other form does not show.
fn shows_more(one: &ToolCall, other: &ToolCall) -> bool {
    let own = own_texts(one);
    one.shown_input().zip(other.shown_input()).is_some_and(|(one, other)| has_more(one, other, &own))
}

/// Returns the texts that a call shows beside its input.
pub fn own_texts(call: &ToolCall) -> Vec<&str> {
    let texts = [Some(call.call.as_str()), call.title.as_deref(), call.name.as_deref(), Some(call.kind.word())];
    texts.into_iter().flatten().collect()
}

/// Returns true if an input has a value under a key that the other input lacks, unless the other input has the value under a key
/// of its own. Paths, commands, their arguments, working directories and wording are compared elsewhere. `own` are the texts that
/// the call shows beside its input.
pub fn has_more(one: &Value, other: &Value, own: &[&str]) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return false };
    // `{server: s, tool: t, arguments: {…}}`
    let is_wrapped = !other.is_empty() && one.values().any(|value| value.as_object() == Some(other));
    let is_label = |key: &str, value: &Value| match value {
        Value::String(text) if LABEL_KEYS.contains(&key) => is_wrapped || own.contains(&text.as_str()),
        Value::String(_) => is_wrapped && SERVER_KEYS.contains(&key),
        _ => false,
    };
    let is_list_of_texts = |value: &Value| match value {
        Value::String(_) => true,
        Value::Array(list) => list.iter().all(Value::is_string),
        _ => false,
    };
    let is_path = |key: &str, value: &Value| view::is_path_key(key) && key != "edits" && is_list_of_texts(value);
    let has_command = one.keys().any(|key| view::is_command_key(key));
    let is_compared_elsewhere = |key: &str, value: &Value| {
        is_remark_key(key)
            || is_folder_key(key)
            || is_label(key, value)
            || is_path(key, value)
            || (view::is_command_key(key) && is_list_of_texts(value))
            || (has_command && view::is_argument_key(key))
    };
    let mut added = one.iter().filter(|(key, value)| !other.contains_key(*key) && !is_compared_elsewhere(key, value));
    let (mut renamed, mut in_parts) = (Vec::new(), false);
    let is_left_out =
        |key: &String, value: &Value| !one.contains_key(key) && !is_remark_key(key) && !is_path(key, value);
    for (key, value) in other.iter().filter(|(key, value)| is_left_out(key, value)) {
        in_parts |= !CONTENT_KEYS.contains(&key.as_str());
        leaves(value, &mut renamed);
    }
    added.any(|(key, value)| {
        let mut values = Vec::new();
        leaves(value, &mut values);
        values.into_iter().any(|value| !renamed.contains(&value) && !is_patch_of(key, value, &renamed, in_parts))
    })
}

/// Adds the texts without the blanks around them, the numbers and each `true` of a value. Programs add `false` as the default
/// of what the model left out.
fn leaves<'a>(value: &'a Value, found: &mut Vec<Leaf<'a>>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => found.push(Leaf::Text(text.trim())),
        Value::Number(_) | Value::Bool(true) => found.push(Leaf::Other(value)),
        Value::Array(list) => list.iter().for_each(|item| leaves(item, found)),
        Value::Object(map) => map.values().for_each(|item| leaves(item, found)),
        Value::Null | Value::Bool(false) | Value::String(_) => {}
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Leaf<'a> {
    Text(&'a str),
    Other(&'a Value),
}

/// The minimum size in bytes of a part of a line that is recognised in the line: shorter parts are in most lines.
const MIN_PART_BYTES: usize = 4;

/// Returns true if a value is a patch that adds only lines of these texts: agents show the change to a file as its new content
/// or as a patch. Texts that are not a whole file may begin and end within a line.
fn is_patch_of(key: &str, value: Leaf<'_>, texts: &[Leaf<'_>], in_parts: bool) -> bool {
    let Leaf::Text(patch) = value else { return false };
    let key = key.to_ascii_lowercase();
    if !(key.contains("diff") || key.contains("patch")) || texts.is_empty() {
        return false;
    }
    let texts = || texts.iter().filter_map(|text| if let Leaf::Text(text) = text { Some(*text) } else { None });
    // One of the texts may be a patch of another form.
    let lines = texts().flat_map(str::lines);
    let lines: HashSet<&str> = lines.flat_map(|line| [line.trim(), line.trim_start_matches('+').trim()]).collect();
    let ends: Vec<&str> = if in_parts {
        texts().flat_map(|text| [text.lines().next(), text.lines().next_back()]).flatten().map(str::trim).collect()
    } else {
        Vec::new()
    };
    let added = patch.lines().filter(|line| !line.starts_with("+++ ")).filter_map(|line| line.strip_prefix('+'));
    let added: Vec<&str> = added.map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_in_line = |line: &str| ends.iter().any(|end| end.len() >= MIN_PART_BYTES && line.contains(end));
    let shown = texts().flat_map(str::lines).filter(|line| !line.trim().is_empty()).count();
    added.len() <= shown && added.into_iter().all(|line| lines.contains(line) || is_in_line(line))
}

impl Joiner {
    /// Takes the next event, and returns the calls that are now complete and next in order.
    pub fn event(&mut self, event: &Event) -> Vec<Call> {
        self.events += 1;
        let is_cut = self.cuts.event(event);
        match &event.body {
            Body::ToolCall(call) => {
                self.open.insert(call.call.clone(), self.first + self.waiting.len() as u64);
                self.waiting.push_back(Waiting {
                    seq: event.seq,
                    at_ms: event.at_ms,
                    parent: event.parent.clone(),
                    call: call.clone(),
                    asked: Vec::new(),
                    asks_another: false,
                    updated_input: None,
                    unanswered: 0,
                    ended_at: 0,
                    result: None,
                    is_cut: false,
                });
                Vec::new()
            }
            Body::PermissionRequest(request) => {
                if let Some(waiting) = self.of_open_call(&request.call) {
                    waiting.ask(&request.request, request.asked.as_ref());
                }
                Vec::new()
            }
            Body::PermissionResponse(response) => {
                if let Some(waiting) = self.of_open_call(&response.call) {
                    waiting.answer(response);
                    if waiting.unanswered == 0 && waiting.result.is_some() {
                        self.open.remove(&response.call);
                    }
                }
                self.ready()
            }
            Body::ToolResult(result) => {
                let events = self.events;
                if let Some(waiting) = self.of_open_call(&result.call) {
                    waiting.is_cut = is_cut;
                    waiting.ended_at = events;
                    waiting.result = Some((event.seq, event.at_ms, result.clone()));
                    if waiting.unanswered == 0 {
                        self.open.remove(&result.call);
                    }
                }
                self.ready()
            }
            _ if self.waiting.is_empty() => Vec::new(),
            _ => self.ready(),
        }
    }

    /// Returns the calls that are left at the end of the trace: a call without a result is unfinished.
    pub fn rest(&mut self) -> Vec<Call> {
        for waiting in &mut self.waiting {
            let (seq, at_ms, call) = (waiting.seq, waiting.at_ms, &waiting.call.call);
            waiting.result.get_or_insert_with(|| (seq, at_ms, ToolResult::unfinished(call)));
        }
        self.open.clear();
        self.waiting.iter_mut().for_each(|waiting| waiting.unanswered = 0);
        self.ready()
    }

    fn at(&mut self, number: u64) -> Option<&mut Waiting> {
        let index = number.checked_sub(self.first)?;
        self.waiting.get_mut(index as usize)
    }

    fn of_open_call(&mut self, call: &str) -> Option<&mut Waiting> {
        let number = self.open.get(call).copied()?;
        self.at(number)
    }

    fn ready(&mut self) -> Vec<Call> {
        let mut ready = Vec::new();
        while let Some(mut front) = self.waiting.pop_front() {
            // The answer to a request may come after the result of a call that did not wait for it.
            let awaits_answer = front.unanswered > 0 && self.events - front.ended_at < PATIENCE;
            let Some((result_seq, result_at_ms, result)) = front.result.take_if(|_| !awaits_answer) else {
                self.waiting.push_front(front);
                break;
            };
            self.first += 1;
            let (seq, at_ms, is_cut) = (front.seq, front.at_ms, front.is_cut);
            let parent = front.parent.take();
            let (call, announced_kind, asked) = front.last_form();
            ready.push(Call {
                seq,
                at_ms,
                parent,
                call,
                announced_kind,
                result_seq,
                result_at_ms,
                status: result.status,
                is_cut,
                contested: result.contested,
                output: result.output,
                truncated: result.truncated,
                diffs: result.diffs,
                exit_code: result.exit_code,
                asked,
            });
        }
        ready
    }
}
