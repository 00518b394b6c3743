//! Decides whether a content block or a line of an unknown form may hold text or a call.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::command_line::is_shell;
use crate::trace::recorder::Recorder;
use crate::trace::view::{is_command_key, may_hold_command, written_paths};

/// Keys whose value, whatever it is, is neither text of a message nor a part of a call.
const ASIDE: [&str; 3] = ["annotations", "_meta", "cache_control"];

/// Keys whose value, if it is a text, is neither text of a message nor a part of a call.
const LABELS: [&str; 15] = [
    "type",
    "id",
    "uuid",
    "index",
    "uri",
    "url",
    "name",
    "title",
    "mimeType",
    "media_type",
    "data",
    "blob",
    "signature",
    "timestamp",
    "status",
];

/// Returns true if a content block of an unknown form may hold text of a message, or a call.
pub(crate) fn may_hold(block: &Value) -> bool {
    match block {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(may_hold),
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_label = value.is_string() && LABELS.contains(&key.as_str());
            !is_label && !ASIDE.contains(&key.as_str()) && may_hold(value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Keys by which agents name a tool, a call, its arguments or its command. Lists of the tools and commands that there are
/// have other keys.
const OF_CALLS: [&str; 22] = [
    "tool",
    "tool_name",
    "toolName",
    "tool_call",
    "toolCall",
    "tool_calls",
    "toolCalls",
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
    "call_id",
    "callId",
    "function_call",
    "functionCall",
    "rawInput",
    "command",
    "cmd",
    "argv",
    "shell_command",
    "shellCommand",
    "command_line",
    "commandLine",
];

/// Keys whose text may be a command or a script, besides those of [`is_command_key`].
const MAYBE_COMMANDS: [&str; 6] = ["bash", "sh", "shell", "exec", "cmdline", "code"];

/// Words in the type of a line that reports something, such as a message that quotes a script.
const TOLD: [&str; 12] = [
    "message",
    "text",
    "log",
    "result",
    "error",
    "output",
    "delta",
    "thought",
    "thinking",
    "reasoning",
    "assistant",
    "user",
];

/// Keys whose value lists the calls of a message, or is its only call.
const LISTS: [&str; 14] = [
    "tool_call",
    "toolCall",
    "tool_calls",
    "toolCalls",
    "function_call",
    "functionCall",
    "function_calls",
    "functionCalls",
    "tool_use",
    "toolUse",
    "tool_uses",
    "toolUses",
    "tool_invocations",
    "toolInvocations",
];

/// Types of content blocks that are calls, in lower case and without `_` and `-`.
const BLOCKS: [&str; 11] = [
    "tooluse",
    "toolcall",
    "functioncall",
    "servertooluse",
    "customtoolcall",
    "localshellcall",
    "mcpcall",
    "mcptoolcall",
    "mcptooluse",
    "computercall",
    "toolinvocation",
];

/// Words in the types of content blocks that concern a call and are no calls themselves, such as results.
const NO_CALL: [&str; 6] = ["output", "result", "response", "reference", "error", "end"];

/// Keys of the arguments of a call.
const ARGUMENTS: [&str; 8] = ["arguments", "args", "input", "action", "parameters", "tool_input", "command", "code"];

/// Keys for the id of a call. A block of the type `tool` that has one is a call, and not the definition of a tool.
const CALL_IDS: [&str; 6] = ["call_id", "callId", "callID", "tool_call_id", "toolCallId", "toolCallID"];

/// Keys of the parts of a call besides its name. A statistic about a tool has none.
const PARTS: [&str; 11] = [
    "id",
    "call_id",
    "callId",
    "callID",
    "arguments",
    "args",
    "input",
    "action",
    "function",
    "parameters",
    "tool_input",
];

/// Keys whose value lists what there is, and not what was done.
const AVAILABLE: [&str; 10] = [
    "tools",
    "commands",
    "availableCommands",
    "available_commands",
    "slash_commands",
    "models",
    "skills",
    "agents",
    "plugins",
    "mcp_servers",
];

/// Keys for the type of a line.
const TYPE_KEYS: [&str; 3] = ["type", "kind", "event"];

/// Keys for the type of a line in fewer formats, which others use for something else.
const RARE_TYPE_KEYS: [&str; 4] = ["t", "method", "subtype", "op"];

/// The maximum number of bytes of a type under a rare key.
const MAX_TYPE: usize = 64;

/// The methods of HTTP that are words of [`ACTIONS`], as a log of requests has them.
const HTTP_METHODS: [&str; 2] = ["DELETE", "PATCH"];

/// Words in the type of a line that records the work of the agent's program, and not of a tool.
const RECORDS: [&str; 11] =
    ["hook", "hooks", "log", "logs", "logger", "telemetry", "metric", "metrics", "http", "db", "database"];

/// The words of a type of a line that is about an agent, a workflow, a session or a skill as a whole, with [`STATES`].
const WHOLES: [&str; 7] = ["agent", "sub", "subagent", "workflow", "session", "skill", "task"];

/// The states in the type of a line about a whole of [`WHOLES`].
const STATES: [&str; 16] = [
    "start",
    "started",
    "begin",
    "began",
    "created",
    "loaded",
    "registered",
    "resumed",
    "end",
    "ended",
    "done",
    "completed",
    "finished",
    "stopped",
    "failed",
    "ready",
];

/// Words within the type of a line that is about an action.
const ACTIONS: [&str; 13] = [
    "call", "calls", "function", "exec", "execute", "command", "patch", "shell", "bash", "edit", "write", "delete",
    "tool",
];

/// Words that are an action together with one of [`THINGS`].
const VERBS: [&str; 10] =
    ["create", "apply", "replace", "move", "run", "rename", "remove", "append", "insert", "update"];

/// The things that an action of [`VERBS`] is about.
const THINGS: [&str; 11] =
    ["file", "files", "diff", "cmd", "command", "terminal", "editor", "patch", "dir", "directory", "folder"];

/// Words in the type of a line that describes a state, such as the list of available tools, and not an action.
const NO_ACTION: [&str; 20] = [
    "list",
    "available",
    "commands",
    "tools",
    "stats",
    "count",
    "progress",
    "mode",
    "summary",
    "info",
    "cache",
    "usage",
    "config",
    "definitions",
    "permission",
    "permissions",
    "allowed",
    "changed",
    "settings",
    "limit",
];

/// Returns true if a line that no rule of a manifest takes may be about a tool call: it, or an object in it, names a tool,
/// a call or a command, or has a name and arguments, or its type names an action and it holds more than figures.
pub(crate) fn may_be_of_call(line: &Value) -> bool {
    may_be_of_call_in(line, false, false)
}

/// Returns the same for a part of a line. In a list of the available tools, commands or models, only the keys of calls count,
/// since each entry has a name and often a type. A line that reports something may quote a script.
fn may_be_of_call_in(line: &Value, is_listing: bool, is_told: bool) -> bool {
    match line {
        Value::Object(map) => {
            let is_told = is_told || is_report(map);
            let has_form = || {
                has_name_and_arguments(map)
                    || TYPE_KEYS.iter().chain(&RARE_TYPE_KEYS).any(|key| has_type_of_action(map, key))
            };
            (!is_listing && has_form())
                || map.iter().any(|(key, value)| {
                    let is_listing = is_listing || AVAILABLE.contains(&key.as_str());
                    let is_of_call = || {
                        OF_CALLS.contains(&key.as_str())
                            || is_command(map, key, value)
                            || (!is_listing && !is_told && may_be_command(key, value))
                    };
                    (has_content(value) && is_of_call()) || may_be_of_call_in(value, is_listing, is_told)
                })
        }
        Value::Array(items) => items.iter().any(|item| may_be_of_call_in(item, is_listing, is_told)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns true if an object holds a command under this key, as a text or a list. A list that may be one of the available
/// commands holds command lines if an entry has several words.
fn is_command(map: &Map<String, Value>, key: &str, value: &Value) -> bool {
    let is_line = |text: &str| text.trim().contains(char::is_whitespace) && !text.starts_with('/');
    let holds_line = |items: &[Value]| items.iter().filter_map(Value::as_str).any(is_line);
    let is_listing = || words(own_type(map)).iter().any(|word| NO_ACTION.contains(&word.as_str()));
    let is_one = match value {
        Value::String(_) => true,
        Value::Array(items) => !AVAILABLE.contains(&key) || (holds_line(items) && !is_listing()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    is_one && is_command_key(key)
}

/// Returns true if a text under this key may be a command or a script. The code of an error is one word, and a shell or its
/// version may be stated as such.
fn may_be_command(key: &str, value: &Value) -> bool {
    let Some(text) = value.as_str().map(str::trim) else { return false };
    let has_several = text.contains(|letter: char| letter.is_whitespace() || ";|&<>()$`".contains(letter));
    let is_program = || is_shell(text) || text.starts_with(|first: char| first.is_ascii_digit());
    MAYBE_COMMANDS.contains(&key) && (has_several || (key != "code" && !is_program()))
}

/// Returns the type that an object states, or an empty text.
fn own_type(map: &Map<String, Value>) -> &str {
    TYPE_KEYS.iter().filter_map(|key| map.get(*key)?.as_str()).find(|kind| !kind.is_empty()).unwrap_or_default()
}

/// Returns true if an object reports something, by its role or its type.
fn is_report(map: &Map<String, Value>) -> bool {
    map.get("role").is_some_and(Value::is_string)
        || words(own_type(map)).iter().any(|word| TOLD.contains(&word.as_str()))
}

/// Returns true if an object records the work of the agent's program by its type: `log`, `hook_started`.
fn is_record(map: &Map<String, Value>) -> bool {
    words(own_type(map)).iter().any(|word| RECORDS.contains(&word.as_str()))
}

/// Returns true if an object is about an agent, a workflow, a session or a skill as a whole: `workflow_started`. The type
/// `agent_step` may be that of a call.
fn is_of_whole(map: &Map<String, Value>) -> bool {
    let words: Vec<String> = words(own_type(map)).into_iter().filter(|word| !word.is_empty()).collect();
    words.iter().any(|word| WHOLES.contains(&word.as_str()))
        && words.iter().all(|word| WHOLES.contains(&word.as_str()) || STATES.contains(&word.as_str()))
}

/// Returns true if a line has the type of an action under one of these keys, and holds more than figures and types.
pub(crate) fn has_action_under<'k>(line: &Value, mut keys: impl Iterator<Item = &'k str>) -> bool {
    line.as_object().is_some_and(|map| keys.any(|key| has_type_of_action(map, key)))
}

/// Returns true if an object has a name and arguments, even empty ones. The key `input`, and a text under `args`, may hold
/// something else, such as a prompt, unless they hold an object. An object under `parameters` may be the schema in the
/// definition of a tool.
fn has_name_and_arguments(map: &Map<String, Value>) -> bool {
    let is_name = |key: &str| map.get(key).and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let has_name = ["name", "function", "fn"].into_iter().any(is_name);
    let is_object = |value: &Value| match value {
        Value::Object(_) => true,
        Value::String(text) => text.trim_start().starts_with('{'),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    let is_schema =
        |value: &Value| value.get("properties").is_some() || value.get("type").is_some_and(|kind| kind == "object");
    let has_inputs = || {
        ["args", "input"].into_iter().filter_map(|key| map.get(key)).any(is_object)
            || map.get("parameters").is_some_and(|value| value.is_object() && !is_schema(value))
    };
    has_name
        && (map.get("arguments").is_some_and(|arguments| has_content(arguments) || is_object(arguments))
            || (has_inputs() && !is_record(map) && !is_of_whole(map)))
}

/// Returns true if the type of an object under this key names an action, and the object holds more than figures and types.
/// Under a rare key, a record of the agent's program has another word, unless it is the type of a call.
fn has_type_of_action(map: &Map<String, Value>, key: &str) -> bool {
    let Some(kind) = map.get(key).and_then(Value::as_str) else { return false };
    let is_type = TYPE_KEYS.contains(&key) || (kind.len() <= MAX_TYPE && !kind.contains(char::is_whitespace));
    // The operations of JSON Patch are single words.
    let is_action = if key == "op" { is_of_action_words(kind) } else { is_action(kind) };
    let holds_more =
        || map.iter().any(|(of, value)| of != key && !TYPE_KEYS.contains(&of.as_str()) && has_content(value));
    let is_other = || {
        let is_http = key == "method" && HTTP_METHODS.contains(&kind);
        RARE_TYPE_KEYS.contains(&key) && (is_http || (is_record(map) && !is_type_of_call(kind)))
    };
    is_type && is_action && !is_other() && holds_more()
}

/// Returns true if a line, or an object in it, lists a call that was not announced, beside something else, as a message of
/// Chat Completions does.
pub(crate) fn lists_other_call(line: &Value, recorder: &Recorder) -> bool {
    let is_other = |value: &Value| is_call(value) && !is_known_call(value, recorder);
    match line {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_list = LISTS.contains(&key.as_str());
            let holds = || is_other(value) || value.as_array().is_some_and(|items| items.iter().any(is_other));
            (is_list && holds()) || lists_other_call(value, recorder)
        }),
        Value::Array(items) => items.iter().any(|item| lists_other_call(item, recorder)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the calls that a line lists or holds as content blocks, each once. In a list with an announced call, whatever the
/// list's name, each entry of the same form is a call.
pub(crate) fn all_calls<'a>(line: &'a Value, recorder: &Recorder) -> Vec<&'a Value> {
    let mut found = Vec::new();
    call_blocks(line, &mut found);
    listed_calls(line, &mut found);
    calls_beside_known(line, recorder, &mut found);
    let (mut objects, mut ids) = (HashSet::new(), HashSet::new());
    found.retain(|call| {
        let own: Vec<String> = ids_of_call(call).collect();
        let is_new = objects.insert(std::ptr::from_ref(*call)) && !own.iter().any(|id| ids.contains(id));
        ids.extend(own);
        is_new
    });
    found
}

/// Adds the calls below the keys that list them.
fn listed_calls<'a>(line: &'a Value, found: &mut Vec<&'a Value>) {
    match line {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            if LISTS.contains(&key.as_str()) {
                let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                found.extend(items.iter().filter(|item| is_call(item)));
            }
            listed_calls(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| listed_calls(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds the entries of lists that have the form of an announced call in the same list.
fn calls_beside_known<'a>(line: &'a Value, recorder: &Recorder, found: &mut Vec<&'a Value>) {
    match line {
        // The arguments of a call may be a list whose entries have short ids, such as a plan.
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !ARGUMENTS.contains(&key.as_str()))
            .for_each(|(_, value)| calls_beside_known(value, recorder, found)),
        Value::Array(items) => {
            let is_known = |item: &&Value| describes_call(item) && is_known_call(item, recorder);
            let forms: HashSet<_> = items.iter().filter(is_known).filter_map(form).collect();
            let is_of_form = |item: &&Value| form(item).is_some_and(|form| forms.contains(&form));
            if !forms.is_empty() {
                found.extend(items.iter().filter(is_of_form));
            }
            items.iter().for_each(|item| calls_beside_known(item, recorder, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns true if an object has the name or the arguments of a call.
fn describes_call(value: &Value) -> bool {
    const NAMES: [&str; 6] = ["name", "tool", "tool_name", "toolName", "function", "rawInput"];
    value.as_object().is_some_and(|map| ARGUMENTS.iter().chain(&NAMES).any(|key| map.contains_key(*key)))
}

/// Returns the form of an object: its type and its keys.
fn form(value: &Value) -> Option<(Option<&str>, Vec<&str>)> {
    let map = value.as_object()?;
    let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
    keys.sort_unstable();
    Some((map.get("type").and_then(Value::as_str), keys))
}

/// Returns true if an object has a part of a call besides its name.
fn is_call(value: &Value) -> bool {
    value.as_object().is_some_and(|map| PARTS.iter().any(|key| map.contains_key(*key)))
}

/// Returns true if a call that a line lists was announced.
pub(crate) fn is_known_call(call: &Value, recorder: &Recorder) -> bool {
    ids_of_call(call).any(|id| recorder.was_announced(&id))
}

/// Returns the ids of a call that a line lists, as the agent wrote them.
pub(crate) fn ids_of_call(call: &Value) -> impl Iterator<Item = String> {
    let keys = ["tool_use_id", "id"];
    CALL_IDS.into_iter().chain(keys).filter_map(|key| call.get(key)).filter_map(|id| match id {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Adds the objects in a line that are calls by their type, such as content blocks of the type `tool_use`.
pub(crate) fn call_blocks<'a>(line: &'a Value, found: &mut Vec<&'a Value>) {
    match line {
        Value::Object(map) => {
            if map.get("type").and_then(Value::as_str).is_some_and(|kind| is_call_block(kind, map)) {
                found.push(line);
            }
            map.values().for_each(|value| call_blocks(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| call_blocks(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns true if a value holds an object that is a call by its type, even one without arguments.
pub(crate) fn holds_call(value: &Value) -> bool {
    let mut found = Vec::new();
    call_blocks(value, &mut found);
    !found.is_empty()
}

/// Returns true if an object of this type is a call: the type is known, or names an action, and the object has arguments.
fn is_call_block(kind: &str, map: &Map<String, Value>) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| map.contains_key(*key));
    let plain = plain_form(kind);
    match plain.as_str() {
        // The definition of a tool has the same type, and neither of these.
        "tool" => has(&CALL_IDS) || map.contains_key("state"),
        "function" => has(&CALL_IDS),
        plain if BLOCKS.contains(&plain) => has(&PARTS) || has(&CALL_IDS),
        plain => is_action(kind) && !NO_CALL.iter().any(|word| plain.contains(word)) && has(&ARGUMENTS),
    }
}

/// Returns true if two of these calls have one id and different names, so that an event of one does not show the other. A line
/// may hold one call twice, once with a part of its arguments.
pub(crate) fn are_several_of_one_id(blocks: &[&Value]) -> bool {
    let mut names: HashMap<String, &Value> = HashMap::new();
    blocks.iter().filter_map(|block| Some((*block, block.get("name")?))).any(|(block, name)| {
        let ids: Vec<String> = ids_of_call(block).collect();
        ids.into_iter().any(|id| *names.entry(id).or_insert(name) != name)
    })
}

/// Returns true if a line that no rule of a manifest takes may be a message of the agent: it states the agent's role or type,
/// and holds text.
pub(crate) fn may_be_answer(line: &Value) -> bool {
    const TYPES: [&str; 10] = [
        "assistant",
        "agent",
        "model",
        "assistant_message",
        "agent_message",
        "answer",
        "message",
        "text",
        "output",
        "response",
    ];
    let Value::Object(map) = line else { return false };
    let word = |key: &str| map.get(key).and_then(Value::as_str);
    let is_of_agent = |word: Option<&str>| word.is_some_and(|word| TYPES[..6].contains(&word));
    let holds_text =
        || ["text", "content", "message", "answer", "parts"].iter().any(|key| map.get(*key).is_some_and(may_hold));
    let is_text = word("type").is_none_or(|word| TYPES.contains(&word));
    is_text && (is_of_agent(word("role")) || is_of_agent(word("type"))) && holds_text()
}

/// Returns true if a value names a call that was announced, as the progress of a call does.
pub(crate) fn names_a_call(value: &Value, recorder: &Recorder) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| names_a_call(item, recorder)),
        Value::Object(map) => map.iter().any(|(key, item)| match item {
            Value::String(text) => is_key_of_a_call(key) && recorder.was_announced(text),
            // The number of a line or a turn may be that of a call.
            Value::Number(number) => {
                is_key_of_a_call(key) && key != "id" && recorder.was_announced(&number.to_string())
            }
            item => names_a_call(item, recorder),
        }),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if a line that may be about a call is the progress of an announced call: it names that call, holds no
/// arguments, and neither lists nor names another call.
pub(crate) fn is_progress(line: &Value, recorder: &Recorder) -> bool {
    names_a_call(line, recorder) && !holds_more_of_calls(line, recorder) && !lists_other_call(line, recorder)
}

/// Returns true if a value holds arguments of a call, or the id of a call that was not announced.
fn holds_more_of_calls(value: &Value, recorder: &Recorder) -> bool {
    match value {
        Value::Object(map) => {
            let is_more = |key: &str, value: &Value| {
                let is_argument = key == "rawInput" || ARGUMENTS.contains(&key) || is_command_key(key);
                let is_other = || value.as_str().is_some_and(|id| !recorder.was_announced(id));
                (is_argument && has_content(value)) || (CALL_IDS.contains(&key) && is_other())
            };
            may_hold_command(value)
                || !written_paths(Some(value), &[], &[]).is_empty()
                || map.iter().any(|(key, value)| is_more(key, value) || holds_more_of_calls(value, recorder))
        }
        Value::Array(items) => items.iter().any(|item| holds_more_of_calls(item, recorder)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns true for a key that holds the id of the call that a line is about: `id`, `callId`, `tool_use_id`. Another text can
/// equal a short id by chance, and the call that a sub-agent's message names as its parent is another one.
fn is_key_of_a_call(key: &str) -> bool {
    let key = key.replace(['_', '-'], "").to_ascii_lowercase();
    ["id", "call", "callid", "tool", "toolid", "toolcall", "toolcallid", "tooluseid", "itemid", "functioncallid"]
        .contains(&key.as_str())
}

/// Returns true for a text, a list or an object that is not empty.
fn has_content(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a type in lower case and without signs such as `_` and `-`.
fn plain_form(kind: &str) -> String {
    kind.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns true for a type of [`BLOCKS`], in any spelling.
fn is_type_of_call(kind: &str) -> bool {
    BLOCKS.contains(&plain_form(kind).as_str())
}

/// Returns true if the type of a line names an action: `exec_command_begin`, `functionCall`, `write_file`, `apply_diff`, `rename`.
fn is_action(kind: &str) -> bool {
    const SINGLE: [&str; 5] = ["terminal", "rename", "move", "remove", "unlink"];
    is_of_action_words(kind) || SINGLE.iter().any(|word| kind.eq_ignore_ascii_case(word))
}

/// Returns true if the words in the type of a line are those of an action.
fn is_of_action_words(kind: &str) -> bool {
    let words = words(kind);
    let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    is_type_of_call(kind) || ((any(&ACTIONS) || (any(&VERBS) && any(&THINGS))) && !any(&NO_ACTION))
}

/// Returns the words in a type, in lower case: those of `writeFile`, `EXEC_COMMAND`, `MCPToolCall`. A capital begins a word
/// behind another letter than a capital, or before a small letter.
fn words(kind: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = kind.chars().peekable();
    let mut is_behind_capital = false;
    while let Some(letter) = letters.next() {
        let is_before_small = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = letter.is_uppercase() && (!is_behind_capital || is_before_small);
        if !letter.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        is_behind_capital = letter.is_uppercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::recorder::CallReport;
    use crate::trace::{Header, Seen};

    #[test]
    fn labels_hold_nothing_and_other_texts_may() {
        for (block, holds) in [
            (r#"{"type":"image","id":"1","mimeType":"image/png","data":"cG5n"}"#, false),
            (r#"{"type":"redacted","signature":"c2ln","cache_control":{"type":"ephemeral"}}"#, false),
            (r#"{"type":"pause","seconds":3,"text":" "}"#, false),
            (r#"{"type":"refusal","refusal":"no"}"#, true),
            (r#"{"type":"function_call","name":"sh","arguments":"{\"command\":\"rm\"}"}"#, true),
            (r#"{"type":"server_event","data":{"command":"rm"}}"#, true),
            (r#"{"type":"shell","action":["rm"]}"#, true),
        ] {
            assert_eq!(may_hold(&serde_json::from_str(block).unwrap()), holds, "{block}");
        }
    }

    #[test]
    fn a_line_that_names_a_tool_or_a_command_may_be_about_a_call() {
        for (line, may) in [
            (r#"{"type":"tool_executed","item":{"command":"rm -rf x"}}"#, true),
            (r#"{"type":"zz","event":{"toolCallId":"a"}}"#, true),
            (r#"{"parts":[{"functionCall":{"name":"sh"}}]}"#, true),
            (r#"{"type":"heartbeat","n":1,"text":"tool"}"#, false),
            (r#"{"type":"status","tool":null,"model":"m"}"#, false),
            (r#"{"type":"init","tools":["Bash"],"commands":["/help"],"stats":{"tool_calls":3}}"#, false),
            (r#"{"type":"function_call","name":"bash","arguments":"{\"command\":\"rm\"}"}"#, true),
            (r#"{"kind":"step","name":"bash","arguments":{"line":"rm"}}"#, true),
            (r#"{"type":"apply_diff","text":"x"}"#, true),
            (r#"{"type":"rename","from":"a","to":"b"}"#, true),
            (r#"{"type":"unlink","path":"a"}"#, true),
            (r#"{"type":"move"}"#, false),
            (r#"{"type":"str_replace_editor","path":"x"}"#, true),
            (r#"{"type":"run_terminal_cmd","text":"x"}"#, true),
            (r#"{"type":"tool_list","tools":[{"type":"function","function":{"name":"sh","parameters":{}}}]}"#, false),
            (r#"{"type":"batch","commands":[{"command":"rm -rf x"}]}"#, true),
            (r#"{"type":"cache_write","tokens":3}"#, false),
            (r#"{"type":"edit_mode","mode":"on"}"#, false),
            (r#"{"type":"x","availableCommands":[{"name":"plan","input":{"hint":"x"}}]}"#, false),
            (r#"{"event":"turn.started","name":"turn","params":{"n":1}}"#, false),
            (r#"{"type":"run.completed","text":"x"}"#, false),
            (r#"{"type":"start","name":"tiny","args":["-p"]}"#, false),
            (r#"{"type":"exec_command_begin","line":"rm"}"#, true),
            (r#"{"type":"writeFile","path":"a"}"#, true),
            (r#"{"type":"mcp_call","server":"fs","method":"delete"}"#, true),
            (r#"{"type":"available_commands_update","names":["edit"]}"#, false),
            (r#"{"type":"tool_list_changed","n":3}"#, false),
            (r#"{"name":"m","input":""}"#, false),
            // Empty arguments, arguments under other keys, and types under other keys.
            (r#"{"type":"step","name":"wipe_disk","arguments":{}}"#, true),
            (r#"{"type":"step","name":"wipe_disk","arguments":"{}"}"#, true),
            (r#"{"method":"tools/call","params":{"name":"rm","input":{"path":"x"}}}"#, true),
            (r#"{"type":"event","data":{"name":"rm","args":"{\"path\":\"x\"}"}}"#, true),
            (r#"{"type":"event","subtype":"tool_call","data":{"of":"rm"}}"#, true),
            (r#"{"t":"exec","line":"rm"}"#, true),
            (r#"{"op":"write_file","path":"a"}"#, true),
            (r#"{"type":"delta","delta":[{"op":"remove","path":"/x"},{"op":"move","path":"/x"}]}"#, false),
            (r#"{"type":"run","name":"agent","input":"Edit the file."}"#, false),
            (r#"{"type":"run","name":"agent","args":"-p"}"#, false),
            (r#"{"type":"note","t":"I edit the file","text":"x"}"#, false),
            (r#"{"method":"tools/list","id":"x"}"#, false),
            (r#"{"type":"heartbeat","subtype":"exec"}"#, false),
            // Types in capitals, and without a sign between their words.
            (r#"{"kind":"EXEC_COMMAND","line":"rm"}"#, true),
            (r#"{"type":"TOOL_CALL","target":"rm"}"#, true),
            (r#"{"type":"BASH","line":"rm"}"#, true),
            (r#"{"kind":"toolcall","x":"a"}"#, true),
            (r#"{"kind":"MCPToolUse","x":"a"}"#, true),
            (r#"{"kind":"EXECCommand","x":"a"}"#, true),
            (r#"{"type":"UNLINK","path":"a"}"#, true),
            (r#"{"type":"TOOL_LIST","names":["edit"]}"#, false),
            // Commands under other keys.
            (r#"{"kind":"step","script":"rm -rf src"}"#, true),
            (r#"{"kind":"step","script":["rm","src"]}"#, true),
            (r#"{"kind":"step","commands":["rm -rf src"]}"#, true),
            (r#"{"kind":"allowed","commands":["npm test"]}"#, false),
            (r#"{"bash":"make"}"#, true),
            (r#"{"sh":"./wipe"}"#, true),
            (r#"{"kind":"step","data":{"code":"import os; os.remove('a')"}}"#, true),
            (r#"{"kind":"step","shell":"rm -rf src"}"#, true),
            (r#"{"type":"init","shell":"/bin/zsh","bash":"5.2"}"#, false),
            (r#"{"type":"init","shell":"bash"}"#, false),
            (r#"{"kind":"failure","code":"ENOENT"}"#, false),
            (r#"{"type":"message","content":[{"code":"rm -rf src"}]}"#, false),
            (r#"{"role":"assistant","content":{"bash":"rm -rf src"}}"#, false),
            (r#"{"kind":"step","function":"sh","arguments":{"line":"rm"}}"#, true),
            (r#"{"kind":"step","fn":"sh","args":{"line":"rm"}}"#, true),
            (r#"{"kind":"step","name":"sh","parameters":{"line":"rm"}}"#, true),
            (r#"{"kind":"schema","functions":[{"name":"sh","parameters":{"type":"object"}}]}"#, false),
            // Records of the agent's program, and lines about an agent or a workflow as a whole.
            (r#"{"kind":"log","level":"debug","op":"write","msg":"flushed session"}"#, false),
            (r#"{"kind":"http","method":"delete","url":"http://localhost/session"}"#, false),
            (r#"{"method":"DELETE","url":"http://localhost/session"}"#, false),
            (r#"{"kind":"telemetry","subtype":"tool_latency","text":"200ms"}"#, false),
            (r#"{"kind":"hook","name":"SessionStart","input":{"source":"startup"}}"#, false),
            (r#"{"kind":"workflow_started","name":"review","input":{"pr":"5"}}"#, false),
            (r#"{"kind":"workflow_started","name":"rm","arguments":{"path":"x"}}"#, true),
            (r#"{"kind":"agent_step","name":"rm","input":{"path":"x"}}"#, true),
            (r#"{"kind":"agent","subtype":"exec_command","line":"rm"}"#, true),
            (r#"{"kind":"log","subtype":"tool_call","line":"rm"}"#, true),
        ] {
            assert_eq!(may_be_of_call(&serde_json::from_str(line).unwrap()), may, "{line}");
        }
        let line = serde_json::from_str(r#"{"step":"run_command","of":"rm"}"#).unwrap();
        assert!(!may_be_of_call(&line) && has_action_under(&line, ["step"].into_iter()));
    }

    #[test]
    fn a_message_lists_calls_and_a_figure_does_not() {
        let mut recorder = Recorder::new(Header::new("json-stream", Seen { tracing: true, interaction: false }));
        recorder.call("c1", CallReport::default());
        for (line, lists) in [
            (r#"{"role":"assistant","content":"I look","tool_calls":[{"function":{"name":"sh"}}]}"#, true),
            (r#"{"message":{"text":"I look","functionCall":{"name":"sh","args":{}}}}"#, true),
            (r#"{"content":"x","tool_calls":[{"id":"c1","name":"sh"}]}"#, false),
            (r#"{"content":"x","tool_calls":[{"id":"c1","name":"sh"},{"id":"c2","name":"sh"}]}"#, true),
            (r#"{"content":"x","parent_tool_use_id":"c1","tool_calls":[{"id":"c2","name":"sh"}]}"#, true),
            // The part of a message that is still being written names calls that follow.
            (r#"{"text":"x","partial":{"content":[{"type":"toolCall","id":"c3","name":"sh"}]}}"#, false),
            (r#"{"type":"result","stats":{"tool_calls":3},"tool_calls":[]}"#, false),
            (r#"{"type":"say","tool_calls":{"total":3}}"#, false),
            (r#"{"type":"bye","tool_calls":[{"name":"sh","count":1}]}"#, false),
        ] {
            assert_eq!(lists_other_call(&serde_json::from_str(line).unwrap(), &recorder), lists, "{line}");
        }
    }

    #[test]
    fn a_line_names_its_call_by_a_key_for_the_call() {
        let mut recorder = Recorder::new(Header::new("json-stream", Seen { tracing: true, interaction: false }));
        recorder.call("1", CallReport::default());
        for (line, names) in [
            (r#"{"type":"progress","call_id":"1"}"#, true),
            (r#"{"type":"progress","toolCallId":1}"#, true),
            (r#"{"type":"progress","item":{"id":"1"}}"#, true),
            (r#"{"id":1,"turn_id":"1","session_id":"1","step_id":1,"parent_tool_use_id":"1"}"#, false),
        ] {
            assert_eq!(names_a_call(&serde_json::from_str(line).unwrap(), &recorder), names, "{line}");
        }
    }

    #[test]
    fn the_progress_of_an_announced_call_holds_no_arguments_and_names_no_other_call() {
        let mut recorder = Recorder::new(Header::new("json-stream", Seen { tracing: true, interaction: false }));
        recorder.call("c1", CallReport::default());
        for (line, is) in [
            (r#"{"kind":"tool_progress","tool_call_id":"c1","elapsed":3,"text":"still running"}"#, true),
            (r#"{"kind":"bash_output","id":"c1","text":"x"}"#, true),
            (r#"{"kind":"tool_progress","tool_call_id":"c2","text":"x"}"#, false),
            (r#"{"kind":"tool","id":"c1","args":{"line":"rm"}}"#, false),
            (r#"{"kind":"exec","id":"c1","line":"rm"}"#, false),
            (r#"{"kind":"edit","id":"c1","path":"a"}"#, false),
            (r#"{"kind":"exec","call_id":"c2","item":{"id":"c1"}}"#, false),
            (r#"{"kind":"tools","id":"c1","tool_calls":[{"id":"c2","name":"sh"}]}"#, false),
        ] {
            assert_eq!(is_progress(&serde_json::from_str(line).unwrap(), &recorder), is, "{line}");
        }
    }

    #[test]
    fn a_text_in_the_agent_s_role_may_be_its_answer() {
        for (line, may) in [
            (r#"{"type":"assistant","text":"Done."}"#, true),
            (r#"{"role":"model","parts":[{"text":"Done."}]}"#, true),
            (r#"{"role":"user","content":"Do it."}"#, false),
            (r#"{"type":"assistant","content":[]}"#, false),
            (r#"{"type":"log","text":"Done."}"#, false),
            (r#"{"type":"reasoning","role":"assistant","text":"Done."}"#, false),
            (r#"{"type":"message","role":"assistant","text":"Done."}"#, true),
        ] {
            assert_eq!(may_be_answer(&serde_json::from_str(line).unwrap()), may, "{line}");
        }
    }
}
