//! Decides whether a content block or a line of an unknown form may hold text or a call.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::command_line::Dialect;
use crate::trace::recorder::Recorder;
use crate::trace::view::is_command_key;

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

/// Keys whose value states a permission, a version or a feature for each tool.
const SETTINGS: [&str; 4] = ["permission", "permissions", "versions", "features"];

/// Words that state a permission, or whether something is switched on.
const SETTING_WORDS: [&str; 25] = [
    "allow",
    "allowed",
    "ask",
    "deny",
    "denied",
    "never",
    "always",
    "once",
    "on-request",
    "on-failure",
    "untrusted",
    "prompt",
    "required",
    "on",
    "off",
    "enabled",
    "disabled",
    "true",
    "false",
    "yes",
    "no",
    "none",
    "auto",
    "manual",
    "default",
];

/// Words in the type of a line that describes a project or its settings, such as the names of its scripts.
const DESCRIBED: [&str; 7] = ["project", "package", "workspace", "manifest", "config", "settings", "info"];

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
pub(super) const ARGUMENTS: [&str; 8] =
    ["arguments", "args", "input", "action", "parameters", "tool_input", "command", "code"];

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
pub(super) const TYPE_KEYS: [&str; 3] = ["type", "kind", "event"];

/// Keys for the type of a line in fewer formats, which others use for something else.
pub(super) const RARE_TYPE_KEYS: [&str; 4] = ["t", "method", "subtype", "op"];

/// The maximum number of bytes of a type under a rare key.
pub(super) const MAX_TYPE: usize = 64;

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
    may_be_of_call_in(line, Place::default())
}

/// The meaning that the keys above a part of a line give it.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// True in a list of the available tools, commands or models.
    is_listing: bool,
    /// True in an object that reports something.
    is_told: bool,
    /// True below a key of [`SETTINGS`].
    is_setting: bool,
}

/// Returns the same for a part of a line. In a list of the available tools, commands or models, only the keys of calls count,
/// since each entry has a name and often a type. A line that reports something may quote a script.
fn may_be_of_call_in(line: &Value, place: Place) -> bool {
    match line {
        Value::Object(map) => {
            let place = Place { is_told: place.is_told || is_report(map), ..place };
            let has_form = || {
                has_name_and_arguments(map)
                    || TYPE_KEYS.iter().chain(&RARE_TYPE_KEYS).any(|key| has_type_of_action(map, key))
            };
            (!place.is_listing && has_form())
                || map.iter().any(|(key, value)| {
                    let is_listing = place.is_listing || AVAILABLE.contains(&key.as_str());
                    let is_of_call = || {
                        OF_CALLS.contains(&key.as_str())
                            || is_command(map, key, value)
                            || (!is_listing && !place.is_told && may_be_command(key, value, place.is_setting))
                    };
                    let is_setting = place.is_setting || SETTINGS.contains(&key.as_str());
                    let within = Place { is_listing, is_setting, ..place };
                    (has_content(value) && is_of_call()) || may_be_of_call_in(value, within)
                })
        }
        Value::Array(items) => items.iter().any(|item| may_be_of_call_in(item, place)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns true if an object holds a command under this key, as a text or a list. A list that may be one of the available
/// commands holds command lines if an entry has several words. What describes a project lists its commands, and names a
/// script.
fn is_command(map: &Map<String, Value>, key: &str, value: &Value) -> bool {
    let is_line = |text: &str| text.trim().contains(char::is_whitespace) && !text.starts_with('/');
    let holds_line = |items: &[Value]| items.iter().filter_map(Value::as_str).any(is_line);
    let has_word = |known: &[&str]| words(own_type(map)).iter().any(|word| known.contains(&word.as_str()));
    let is_name = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || "_-:".contains(letter));
    let is_one = match value {
        Value::String(text) => key != "script" || !is_name(text) || !has_word(&DESCRIBED),
        Value::Array(items) => {
            !AVAILABLE.contains(&key) || (holds_line(items) && !has_word(&NO_ACTION) && !has_word(&DESCRIBED))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    is_one && is_command_key(key)
}

/// Returns true if a text under this key may be a command or a script. The code of an error has no sign of a script, and a
/// shell, its version or a permission may be stated as such. `is_setting` is true below a key of [`SETTINGS`].
fn may_be_command(key: &str, value: &Value, is_setting: bool) -> bool {
    let Some(text) = value.as_str().map(str::trim) else { return false };
    MAYBE_COMMANDS.contains(&key)
        && match key {
            "code" => has_sign_of_script(text),
            _ => !states_setting(key, text) && (!is_setting || has_sign_of_script(text)),
        }
}

/// Signs by which a shell joins or directs commands.
const SHELL_SIGNS: [char; 7] = [';', '|', '&', '<', '>', '$', '`'];

/// Returns true if a text has a sign of a shell or of a script: a line feed, a call such as `f(x)`, an assignment, or an option
/// or a path behind its first word.
pub(super) fn has_sign_of_script(text: &str) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_option = |word: &str| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(is_name));
    let is_path = |word: &str| (word.len() > 1 && word.contains('/') && !word.contains("://")) || word.contains('*');
    text.contains(|letter: char| letter == '\n' || SHELL_SIGNS.contains(&letter))
        || text.match_indices('(').any(|(at, _)| text[..at].ends_with(is_name))
        || text.split_whitespace().skip(1).any(|word| word == "=" || is_option(word) || is_path(word))
}

/// Returns true if a text under this key states a setting: a word for a permission or a switch, a version, a shell with its
/// version or its options, or the path of an installed program.
fn states_setting(key: &str, text: &str) -> bool {
    if text.contains(SHELL_SIGNS) {
        return false;
    }
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "GNU").collect();
    let Some((first, rest)) = words.split_first() else { return true };
    // `/usr/bin/node` as the program that runs. A path in another folder may be that of a script.
    let is_installed = || ["shell", "exec"].contains(&key) && is_in_folder_of_programs(first);
    let is_option = |word: &&str| {
        word.starts_with('-') && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    // `bash 2` runs a file.
    let is_of_version = |word: &&str| {
        let is_remark = word.starts_with('(') && word.ends_with([')', ',']);
        is_remark || word.trim_end_matches(',') == "version" || (word.contains('.') && is_version(word))
    };
    match rest {
        [] => {
            SETTING_WORDS.contains(&first.to_ascii_lowercase().as_str())
                || is_version(first)
                || names_shell(first)
                || is_installed()
        }
        rest => {
            names_shell(first.trim_end_matches(',')) && (rest.iter().all(is_option) || rest.iter().all(is_of_version))
        }
    }
}

/// Returns true for a version: `5.9`, `v7.4.1`, `5.2.15(1)-release`.
fn is_version(word: &str) -> bool {
    let word = word.strip_prefix('v').unwrap_or(word);
    let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(word.len());
    let (numbers, rest) = word.split_at(end);
    let is_known = rest.is_empty() || rest.starts_with('(') || rest == "-release";
    numbers.starts_with(|first: char| first.is_ascii_digit()) && is_known
}

/// Returns true if a word is a shell, also with its folder and with the ending of Windows.
fn names_shell(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.eq_ignore_ascii_case("cmd") || Dialect::of_tool(Some(name)) != Dialect::Unknown
}

/// Returns true if an absolute path leads to a folder of installed programs, such as `/usr/bin`.
fn is_in_folder_of_programs(path: &str) -> bool {
    let folder = path.rsplit_once('/').and_then(|(folder, _)| folder.rsplit('/').next());
    path.starts_with('/') && matches!(folder, Some("bin" | "sbin"))
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

/// Returns true if an object is about an agent, a workflow, a session or a skill as a whole and states its state:
/// `workflow_started`. The types `agent_step` and `task` may be those of calls.
fn is_of_whole(map: &Map<String, Value>) -> bool {
    let words: Vec<String> = words(own_type(map)).into_iter().filter(|word| !word.is_empty()).collect();
    let (is_whole, is_state) = (|word: &str| WHOLES.contains(&word), |word: &str| STATES.contains(&word));
    words.iter().any(|word| is_whole(word))
        && words.iter().any(|word| is_state(word))
        && words.iter().all(|word| is_whole(word) || is_state(word))
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

/// Returns true for a text, a list or an object that is not empty.
pub(super) fn has_content(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a type in lower case and without signs such as `_` and `-`.
pub(super) fn plain_form(kind: &str) -> String {
    kind.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns true for a type of [`BLOCKS`], in any spelling.
pub(super) fn is_type_of_call(kind: &str) -> bool {
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
pub(super) fn words(kind: &str) -> Vec<String> {
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
            (r#"{"type":"task","name":"delete_file","args":{"target":"src"}}"#, true),
            (r#"{"type":"skill","name":"wipe","input":{"line":"rm -rf src"}}"#, true),
            (r#"{"type":"agent","name":"wipe","input":{"target":"src"}}"#, true),
            (r#"{"type":"sub_agent_started","name":"review","input":{"pr":5}}"#, false),
            // Permissions, versions, shells and installed programs, and what may be a command under the same keys.
            (r#"{"type":"config","permission":{"bash":"ask","edit":"allow"}}"#, false),
            (r#"{"type":"config","permission":{"bash":"ask-once"}}"#, false),
            (r#"{"type":"config","permission":{"bash":"rm -rf src"}}"#, true),
            (r#"{"type":"approval_policy","bash":"never"}"#, false),
            (r#"{"type":"features","shell":"enabled","code":"v1"}"#, false),
            (r#"{"type":"init","shell":"zsh 5.9"}"#, false),
            (r#"{"type":"init","shell":"/bin/bash -l"}"#, false),
            (r#"{"type":"init","shell":"pwsh.exe"}"#, false),
            (r#"{"type":"init","shell":"C:\\Windows\\System32\\cmd.exe"}"#, false),
            (r#"{"type":"versions","bash":"GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)"}"#, false),
            (r#"{"type":"init","exec":"/usr/bin/node"}"#, false),
            (r#"{"type":"step","exec":"/tmp/wipe"}"#, true),
            (r#"{"type":"step","bash":"/usr/bin/make"}"#, true),
            (r#"{"type":"step","bash":"bash wipe.sh"}"#, true),
            (r#"{"type":"step","bash":"bash 01-wipe.sh"}"#, true),
            (r#"{"type":"step","bash":"bash -c 'rm -rf src'"}"#, true),
            (r#"{"type":"step","sh":"sh -l; rm x"}"#, true),
            (r#"{"type":"turn.failed","code":"insufficient quota"}"#, false),
            (r#"{"type":"turn.failed","code":"overloaded (529)"}"#, false),
            (r#"{"type":"step","code":"rm -rf src"}"#, true),
            (r#"{"type":"step","code":"cat /etc/passwd"}"#, true),
            (r#"{"type":"step","code":"wipe('src')"}"#, true),
            (r#"{"type":"project","script":"test"}"#, false),
            (r#"{"type":"project","commands":["npm test","npm run build"]}"#, false),
            (r#"{"type":"project","script":"rm -rf src"}"#, true),
            (r#"{"type":"step","script":"test"}"#, true),
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
