//! The announced calls that a line of an unknown form names, and whether the line does no more than report on them: that they
//! go on, print something, ended or failed.

use serde_json::{Map, Value};

use super::unknown_block::{
    ARGUMENTS, MAX_TYPE, RARE_TYPE_KEYS, TYPE_KEYS, has_content, has_sign_of_script, is_type_of_call, may_be_of_call,
    plain_form, words,
};
use crate::trace::recorder::{CallReport, Recorder};
use crate::trace::view::{command, is_command_key, is_path_key};

/// Keys of the object that a line is about, if it also names the call.
const WRAPPERS: [&str; 5] = ["item", "data", "part", "payload", "params"];

/// Keys for the id of a call, in lower case and without `_` and `-`.
const CALL_IDS: [&str; 5] = ["callid", "toolcall", "toolcallid", "tooluseid", "functioncallid"];

/// Keys that hold the id of a call in some formats. In others, `id` is that of the line, and `tool` is a name.
const MAYBE_CALL_IDS: [&str; 5] = ["id", "itemid", "call", "tool", "toolid"];

/// Keys for ids that are none of a call, and for what lines say of their session.
const OF_SESSION: [&str; 25] = [
    "uuid",
    "parentuuid",
    "sessionid",
    "threadid",
    "turnid",
    "messageid",
    "parentmessageid",
    "requestid",
    "responseid",
    "conversationid",
    "eventid",
    "runid",
    "agentid",
    "processid",
    "terminalid",
    "traceid",
    "spanid",
    "streamid",
    "cwd",
    "gitbranch",
    "usertype",
    "entrypoint",
    "slug",
    "model",
    "role",
];

/// Keys for single words about a line or what it holds.
const OF_LINE: [&str; 12] = [
    "progresstoken",
    "workspace",
    "workspaceid",
    "format",
    "mimetype",
    "mediatype",
    "user",
    "host",
    "by",
    "mode",
    "hookevent",
    "hookname",
];

/// Keys for what a line calls its call. The title of a call may be its command.
const TITLES: [&str; 4] = ["title", "displayname", "label", "description"];

/// Keys for the name of a tool.
const NAMES: [&str; 4] = ["name", "toolname", "function", "fn"];

/// Words in the keys for times, and for figures that may be texts.
const FIGURES: [&str; 14] = [
    "time",
    "timestamp",
    "ts",
    "date",
    "at",
    "elapsed",
    "duration",
    "took",
    "seconds",
    "ms",
    "eta",
    "version",
    "v",
    "jsonrpc",
];

/// Keys for how a call stands.
const STATUSES: [&str; 6] = ["status", "state", "outcome", "decision", "phase", "level"];

/// Keys for what a call printed or returned.
const OUTPUTS: [&str; 21] = [
    "output",
    "stdout",
    "stderr",
    "outputdelta",
    "aggregatedoutput",
    "formattedoutput",
    "partialoutput",
    "partialresult",
    "result",
    "response",
    "chunk",
    "chunks",
    "stream",
    "channel",
    "encoding",
    "progress",
    "percent",
    "error",
    "errors",
    "warnings",
    "reason",
];

/// Keys for the whole of what a call returned, which may be an object of any form.
const RESULTS: [&str; 3] = ["result", "response", "output"];

/// Keys for what a call printed, which may be the text of a command in a line that announces one.
const TEXTS: [&str; 11] =
    ["text", "content", "message", "data", "delta", "log", "logs", "progressmessage", "preview", "lines", "bytes"];

/// Words in the type of a line with output, or about a call that is running.
const OF_OUTPUT: [&str; 10] =
    ["progress", "output", "stdout", "stderr", "log", "logs", "heartbeat", "status", "update", "updated"];

/// Words in the type of a line about a call that has ended.
const OF_END: [&str; 13] = [
    "result",
    "response",
    "end",
    "ended",
    "done",
    "complete",
    "completed",
    "finish",
    "finished",
    "stopped",
    "succeeded",
    "success",
    "applied",
];

/// Words in the type of a line that is not about the end of its call, although it may list errors.
const MIDWAY: [&str; 6] = ["progress", "heartbeat", "log", "logs", "stdout", "stderr"];

/// Words in the type of a line about a part of a call. The part may be one of its arguments, unless another word says otherwise.
const OF_PART: [&str; 5] = ["delta", "partial", "chunk", "stream", "running"];

/// Words in the type of a line about the start of a call.
const OF_START: [&str; 4] = ["start", "started", "begin", "began"];

/// Words for the failure of a call, in a type or a status.
const OF_FAILURE: [&str; 17] = [
    "fail",
    "failed",
    "failure",
    "error",
    "errored",
    "exception",
    "denied",
    "rejected",
    "refused",
    "declined",
    "cancelled",
    "canceled",
    "aborted",
    "interrupted",
    "timeout",
    "timed",
    "killed",
];

/// Words before one for a failure that say that there is none.
const NEGATIONS: [&str; 7] = ["no", "not", "non", "none", "without", "zero", "0"];

/// Words behind one for a failure with which it names something else: output, or a limit that was changed.
const NO_FAILURE: [&str; 9] = ["none", "output", "stderr", "log", "logs", "stream", "extended", "changed", "updated"];

/// Texts that say that there is no error or no signal.
const NOTHING: [&str; 7] = ["", "none", "null", "no", "false", "0", "no error"];

/// Words in a type that names a change, or the arguments of a call.
const OF_ACTION: [&str; 20] = [
    "write",
    "wrote",
    "written",
    "edit",
    "delete",
    "patch",
    "create",
    "apply",
    "replace",
    "move",
    "rename",
    "remove",
    "append",
    "insert",
    "unlink",
    "arguments",
    "args",
    "input",
    "params",
    "parameters",
];

/// The words of [`OF_ACTION`] for a change of a file's content. With a word for an end, they are the end of such a call.
const OF_EDIT: [&str; 10] =
    ["write", "wrote", "written", "edit", "patch", "create", "apply", "replace", "append", "insert"];

/// The endings of the forms of a verb: `edits`, `deleted`, `moving`, `applied`, `deletion`.
const OF_FORMS: [&str; 11] = ["", "e", "y", "s", "es", "ed", "ing", "ion", "ies", "ied", "ying"];

/// The things that a word such as `update` in a type may be an action on.
const OF_FILES: [&str; 7] = ["file", "files", "dir", "directory", "folder", "diff", "editor"];

/// Keys for an exit code.
const EXIT_CODES: [&str; 7] = ["exitcode", "exitstatus", "exit", "exitvalue", "returncode", "retcode", "rc"];

/// Keys that are false if a call failed.
const SUCCESSES: [&str; 4] = ["ok", "success", "succeeded", "successful"];

/// Keys that are true if a call failed.
const FAILURES: [&str; 11] = [
    "failed",
    "failure",
    "iserror",
    "haserror",
    "error",
    "denied",
    "rejected",
    "cancelled",
    "canceled",
    "aborted",
    "timedout",
];

/// The parts of a line about a call that the trace does not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NewOfCalls {
    /// True if the line may show another call, or an action of an announced one.
    pub(crate) is_other: bool,
    /// The announced call that the line reports as failed or denied, by its id.
    pub(crate) failed: Option<String>,
}

/// Returns what a line that may be about a call shows and the trace does not. It shows no other call if its type is one of
/// progress and of no action, all ids of calls in it are announced, and all else is the name of the call, times, counters,
/// states or output. Without a text, the type of a line about an open call may have any other words. `is_type_key` returns
/// true for further keys of types.
pub(crate) fn new_of_calls(line: &Value, is_type_key: impl Fn(&str) -> bool, recorder: &Recorder) -> NewOfCalls {
    let other = NewOfCalls { is_other: true, failed: None };
    let Value::Object(map) = line else { return other };
    let own = own_objects(map, true);
    let Some(call) = known_call(&own, recorder) else { return other };
    let is_type = |key: &str| {
        let is_argument = ARGUMENTS.contains(&key) || is_command_key(key) || is_path_key(key);
        TYPE_KEYS.contains(&key) || RARE_TYPE_KEYS.contains(&key) || (is_type_key(key) && !is_argument)
    };
    let types = own.iter().flat_map(|map| map.iter()).filter(|(key, _)| is_type(key));
    let each: Vec<Vec<String>> = types.filter_map(|(_, value)| value.as_str()).map(words).collect();
    let types = each.concat();
    let reading = Reading { recorder, own: &own, call: &call, types: &types, is_type: &is_type };
    let is_known = reading.is_progress() && !names_other_call(line, recorder);
    let has_failed = each.iter().any(|words| tells_failure(words)) || own.iter().any(|map| fails(map, &types));
    NewOfCalls { is_other: !is_known, failed: has_failed.then_some(call) }
}

/// Returns true if a value names a call that was announced, as the progress of a call does, and is not itself about another
/// one. The parent of a call is another call.
pub(crate) fn names_a_call(value: &Value, recorder: &Recorder) -> bool {
    names_known_call(value, recorder) && !names_other_call(value, recorder)
}

fn names_known_call(value: &Value, recorder: &Recorder) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| names_known_call(item, recorder)),
        Value::Object(map) => map.iter().any(|(key, item)| match item {
            Value::String(text) => is_key_of_a_call(key) && recorder.was_announced(text),
            // The number of a line or a turn may be that of a call.
            Value::Number(number) => {
                is_key_of_a_call(key) && key != "id" && recorder.was_announced(&number.to_string())
            }
            item => !key.starts_with("parent") && names_known_call(item, recorder),
        }),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if the call that a line is about was not announced.
fn names_other_call(line: &Value, recorder: &Recorder) -> bool {
    let Value::Object(map) = line else { return false };
    own_objects(map, true).into_iter().any(|map| ids_of_call(map).any(|id| !recorder.was_announced(&id)))
}

/// Returns true for a key that holds the id of the call that a line is about: `id`, `callId`, `tool_use_id`. Another text can
/// equal a short id by chance, and the call that a sub-agent's message names as its parent is another one.
fn is_key_of_a_call(key: &str) -> bool {
    let key = plain_form(key);
    CALL_IDS.contains(&key.as_str()) || MAYBE_CALL_IDS.contains(&key.as_str())
}

/// Returns the objects that say what a line is about: itself, and those below the keys of [`WRAPPERS`] that name a call.
fn own_objects(map: &Map<String, Value>, is_line: bool) -> Vec<&Map<String, Value>> {
    let within = WRAPPERS.iter().filter_map(|key| map.get(*key)?.as_object());
    let within: Vec<_> = within.flat_map(|map| own_objects(map, false)).collect();
    let names_call = || map.iter().any(|(key, value)| is_key_of_a_call(key) && id_text(value).is_some());
    match is_line || !within.is_empty() || names_call() {
        true => [vec![map], within].concat(),
        false => Vec::new(),
    }
}

/// Returns the ids under the keys of an object that hold nothing but the id of a call.
fn ids_of_call(map: &Map<String, Value>) -> impl Iterator<Item = String> {
    map.iter().filter(|(key, _)| CALL_IDS.contains(&plain_form(key).as_str())).filter_map(|(_, value)| id_text(value))
}

fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the announced call that a line is about.
fn known_call(own: &[&Map<String, Value>], recorder: &Recorder) -> Option<String> {
    let by_key = |key: &str, value: &Value| {
        // The number of a line or a turn may be that of a call.
        let is_number = value.is_number() && plain_form(key) == "id";
        id_text(value).filter(|id| !is_number && is_key_of_a_call(key) && recorder.was_announced(id))
    };
    let ids = own.iter().flat_map(|map| ids_of_call(map)).find(|id| recorder.was_announced(id));
    ids.or_else(|| own.iter().flat_map(|map| map.iter()).find_map(|(key, value)| by_key(key, value)))
}

fn has(words: &[String], known: &[&str]) -> bool {
    words.iter().any(|word| known.contains(&word.as_str()))
}

/// A line that names an announced call.
struct Reading<'a> {
    recorder: &'a Recorder,
    own: &'a [&'a Map<String, Value>],
    call: &'a str,
    /// The words of its types.
    types: &'a [String],
    is_type: &'a dyn Fn(&str) -> bool,
}

impl Reading<'_> {
    /// Returns true if the line says no more than that the call goes on or ended.
    fn is_progress(&self) -> bool {
        let is_state = || self.recorder.is_open(self.call) && self.all(|key, value| self.is_of_frame(key, value));
        let goes_on = || self.has_type_of_progress() && self.all(|key, value| self.is_of_progress(key, value));
        !self.names_action() && (is_state() || goes_on())
    }

    /// Returns true if the type says that a call goes on or ended. Only an open call can begin.
    fn has_type_of_progress(&self) -> bool {
        let begins = || has(self.types, &OF_START) && self.recorder.is_open(self.call);
        self.may_have_text() || has(self.types, &OF_PART) || begins()
    }

    /// Returns true if a line of this type may have a text that is not a part of an announced call.
    fn may_have_text(&self) -> bool {
        has(self.types, &OF_OUTPUT) || has(self.types, &OF_END) || has(self.types, &OF_FAILURE)
    }

    /// Returns true if the type names an action, and not the end of an edit.
    fn names_action(&self) -> bool {
        let ends = has(self.types, &OF_END) || has(self.types, &OF_FAILURE);
        let is_action =
            |word: &String| OF_ACTION.iter().any(|verb| is_form_of(word, verb) && !(ends && OF_EDIT.contains(verb)));
        let is_change = has(self.types, &["update", "updated", "change", "changed", "created"]);
        self.types.iter().any(is_action) || (is_change && has(self.types, &OF_FILES))
    }

    /// Returns true if all that the objects of the line hold is of this form.
    fn all(&self, is_of_form: impl Fn(&str, &Value) -> bool) -> bool {
        self.own.iter().flat_map(|map| map.iter()).all(|(key, value)| is_of_form(key, value))
    }

    /// Returns true if a key of the line and its value tell no more of a call than its progress.
    fn is_of_progress(&self, key: &str, value: &Value) -> bool {
        let plain = plain_form(key);
        let is_one_of = |known: &[&str]| known.contains(&plain.as_str());
        let is_result = || is_one_of(&RESULTS) && !may_be_of_call(value);
        self.is_of_frame(key, value)
            || match value.as_str() {
                _ if is_one_of(&OUTPUTS) => self.is_output(value) || is_result(),
                _ if is_one_of(&TEXTS) => self.may_have_text() && self.is_output(value),
                Some(text) if is_one_of(&TITLES) => self.may_have_text() && self.is_title(text),
                text => (is_one_of(&OF_SESSION) || is_one_of(&STATUSES)) && text.is_some(),
            }
    }

    /// Returns true if a key of the line and its value are an id, a type, the name of the call, a state or a figure.
    fn is_of_frame(&self, key: &str, value: &Value) -> bool {
        let plain = plain_form(key);
        let is_one_of = |known: &[&str]| known.contains(&plain.as_str());
        let text = value.as_str();
        let is_known_id = || id_text(value).is_some_and(|id| self.recorder.was_announced(&id));
        let is_known_name = || text.is_some_and(|name| self.has_name(name));
        let is_short = || text.is_some_and(is_word);
        match value {
            // A number counts as the ID of a call only under the key of one.
            value if !(has_texts(value) || value.is_number() && is_key_of_a_call(key) && plain != "id") => true,
            Value::Object(map) if self.own.iter().any(|own| std::ptr::eq(*own, map)) => true,
            Value::Object(map) if plain == "usage" => map.iter().all(|(key, value)| is_of_usage(key, value)),
            _ if is_one_of(&CALL_IDS) => is_known_id(),
            // A line with another key for its call may have an id of its own.
            _ if is_one_of(&["id", "itemid"]) => {
                is_known_id() || self.own.iter().any(|map| ids_of_call(map).next().is_some())
            }
            _ if is_one_of(&MAYBE_CALL_IDS) => is_known_id() || is_known_name(),
            _ if is_one_of(&NAMES) => is_known_name(),
            _ if is_one_of(&OF_SESSION) || is_one_of(&OF_LINE) || is_one_of(&STATUSES) => is_short(),
            // The parent of a line may be a message or an agent.
            _ if plain.starts_with("parent") => {
                is_known_id() || (is_short() && !["call", "tool", "function"].iter().any(|of| plain.contains(of)))
            }
            _ if plain == "signal" => is_short(),
            _ if is_one_of(&SUCCESSES) && text.is_some_and(|it| ["true", "false"].contains(&it)) => true,
            _ if (self.is_type)(key) => is_short(),
            _ => text.is_some_and(is_number) || (has(&words(key), &FIGURES) && text.is_some_and(is_figure)),
        }
    }

    /// Returns true if the call has this name, in letters of any case.
    fn has_name(&self, name: &str) -> bool {
        let known = self.recorder.open_call(self.call).and_then(|(call, _)| call.name.as_deref());
        let ended_as = |name: String| {
            self.recorder.ended_knowing(self.call, &CallReport { name: Some(name), ..CallReport::default() })
        };
        let lower = name.to_ascii_lowercase();
        let capital = || [lower[..1].to_ascii_uppercase().as_str(), &lower[1..]].concat();
        known.is_some_and(|known| known.eq_ignore_ascii_case(name))
            || ended_as(name.to_owned())
            || ended_as(lower.clone())
            || (lower.is_char_boundary(1) && ended_as(capital()))
    }

    /// Returns true if a text describes the call: it is the title or the command that the call shows, or reads as no command.
    fn is_title(&self, text: &str) -> bool {
        let is_shown = || {
            self.recorder.open_call(self.call).is_some_and(|(call, _)| {
                call.title.as_deref() == Some(text) || command(call.input.as_ref()).as_deref() == Some(text)
            })
        };
        !has_sign_of_script(text) || is_shown()
    }

    /// Returns true if a value is output: texts, or blocks of text, and no call.
    fn is_output(&self, value: &Value) -> bool {
        let is_of_text = |kind: &str| is_word(kind) && !is_type_of_call(kind);
        match value {
            Value::Array(items) => items.iter().all(|item| self.is_output(item)),
            Value::Object(map) => map.iter().all(|(key, value)| {
                let plain = plain_form(key);
                let is_one_of = |known: &[&str]| known.contains(&plain.as_str());
                match value {
                    value if !has_texts(value) => true,
                    value if (self.is_type)(key) => value.as_str().is_some_and(is_of_text),
                    value if is_one_of(&["name", "code"]) => value.as_str().is_some_and(is_word),
                    value => {
                        is_one_of(&STATUSES) || ((is_one_of(&OUTPUTS) || is_one_of(&TEXTS)) && self.is_output(value))
                    }
                }
            }),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }
}

/// Returns true if a value holds a text that is not empty.
fn has_texts(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_texts),
        Value::Object(map) => map.values().any(has_texts),
        value => has_content(value),
    }
}

/// Returns true for the text of a time or a figure: `2026-01-01T00:00:00Z`, `3.2 s`, `about 3 s`.
fn is_figure(text: &str) -> bool {
    let figure = ["about ", "ca. ", "~", "<", ">"].into_iter().find_map(|sign| text.strip_prefix(sign));
    let figure = figure.unwrap_or(text).trim_start();
    text.len() <= MAX_TYPE && figure.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns true for the text of a number: `12`.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || first == '-') && text.parse::<f64>().is_ok()
}

/// Returns true for a key and a value in an object of usage: a figure, or a word such as the model.
fn is_of_usage(key: &str, value: &Value) -> bool {
    let plain = plain_form(key);
    let is_label = || OF_SESSION.contains(&plain.as_str()) || STATUSES.contains(&plain.as_str());
    !has_texts(value) || value.as_str().is_some_and(|text| is_number(text) || (is_label() && is_word(text)))
}

/// Returns true if a word is a form of a verb: `deleted` of `delete`. `created` is what a call is, too.
fn is_form_of(word: &str, verb: &str) -> bool {
    let stem = verb.strip_suffix(['e', 'y']).unwrap_or(verb);
    let is_form = || word.strip_prefix(stem).is_some_and(|rest| OF_FORMS.contains(&rest));
    word == verb || (word != "created" && is_form())
}

/// Returns true for a short text without blanks.
fn is_word(text: &str) -> bool {
    text.len() <= MAX_TYPE && !text.contains(char::is_whitespace)
}

/// Returns true if words report a failure. `no error`, `error_output` and `timeout_extended` report none.
fn tells_failure(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    let is = |word: Option<&&str>, known: &[&str]| word.is_some_and(|word| known.contains(word));
    words.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        OF_FAILURE.contains(word) && !is(before, &NEGATIONS) && !is(words.get(at + 1), &NO_FAILURE)
    })
}

/// Returns true if an object of a line about a call says that it failed or was denied. `types` are the words of the line's
/// types.
fn fails(map: &Map<String, Value>, types: &[String]) -> bool {
    let is_nonzero = |value: &Value| match value {
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => text.trim().parse::<i64>().is_ok_and(|code| code != 0),
        _ => false,
    };
    let is_of_http = |value: &Value| {
        has(types, &["http", "fetch"]) && value.as_f64().is_some_and(|code| (100.0..400.0).contains(&code))
    };
    let of_process = || has(types, &["exec", "command", "bash", "shell", "process", "exit"]);
    let is_midway = || has(types, &MIDWAY) && !has(types, &OF_END);
    let states_failure = |text: &str| text.split_whitespace().count() <= 2 && tells_failure(&words(text));
    let is_nothing = |text: &str| NOTHING.contains(&text.trim().to_ascii_lowercase().as_str());
    map.iter().any(|(key, value)| {
        let plain = plain_form(key);
        let is_one_of = |known: &[&str]| known.contains(&plain.as_str());
        match value {
            _ if is_one_of(&EXIT_CODES) => {
                [Some(value), value.get("code"), value.get("value")].into_iter().flatten().any(is_nonzero)
            }
            _ if plain == "signal" => is_nonzero(value) || value.as_str().is_some_and(|name| !is_nothing(name)),
            Value::Bool(is) => is_one_of(if *is { &FAILURES[..] } else { &SUCCESSES[..] }),
            // `Err` is the failure in a result of Rust.
            _ if plain == "error" || key == "Err" => has_content(value) && !value.as_str().is_some_and(is_nothing),
            _ if plain == "errors" => has_content(value) && !is_midway(),
            Value::Number(number) if is_one_of(&["ok", "success", "successful"]) => {
                number.as_f64() == Some(0.0) && !is_midway()
            }
            Value::Number(_) => plain == "code" && of_process() && is_nonzero(value) && !is_of_http(value),
            Value::String(text) if is_one_of(&SUCCESSES) => text == "false",
            Value::String(text) => (is_one_of(&STATUSES) || plain == "result") && states_failure(text),
            Value::Object(map) => (is_one_of(&OUTPUTS) || is_one_of(&TEXTS) || plain == "ok") && fails(map, types),
            Value::Null | Value::Array(_) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::recorder::ResultReport;
    use crate::trace::{Header, Seen};

    /// Returns a recorder with the open call `c1` of the tool `sh`, and the ended call `c0`.
    fn recorder() -> Recorder {
        let mut recorder = Recorder::new(Header::new("json-stream", Seen { tracing: true, interaction: false }));
        let named = || CallReport { name: Some("sh".to_owned()), ..CallReport::default() };
        for id in ["c0", "c1"] {
            recorder.call(id, named());
        }
        recorder.result("c0", ResultReport::default());
        recorder
    }

    fn new_in(line: &str) -> NewOfCalls {
        let is_type_key = |key: &str| key == "step" || key == "command";
        new_of_calls(&serde_json::from_str(line).unwrap(), is_type_key, &recorder())
    }

    #[test]
    fn progress_names_its_call_and_holds_only_times_counters_states_and_output() {
        for line in [
            r#"{"kind":"tool_progress","tool_call_id":"c1","elapsed":3,"text":"still running"}"#,
            r#"{"kind":"bash_output","id":"c1","text":"x"}"#,
            r#"{"kind":"bash_output","id":"c0","text":"x"}"#,
            r#"{"type":"tool_progress","tool_use_id":"c1","tool_name":"sh","parent_tool_use_id":null,"uuid":"u","session_id":"s"}"#,
            r#"{"type":"exec_command_output_delta","call_id":"c1","stream":"stdout","chunk":"aGk="}"#,
            r#"{"type":"function_call_output","id":"fc_9","call_id":"c1","output":[{"type":"output_text","text":"rm x"}]}"#,
            r#"{"method":"tool/progress","params":{"call_id":"c1","message":"half","at":"2026-01-01T00:00:00Z"}}"#,
            r#"{"type":"item.updated","item":{"id":"c1","type":"command_execution","status":"running","usage":{"n":1}}}"#,
            r#"{"type":"exec_command_end","call_id":"c1","exit_code":0,"stderr":"","duration":"3.2s"}"#,
            r#"{"type":"tool_call_started","id":"c1","tool":"sh"}"#,
            r#"{"step":"tool_output","id":"c1","output":"x"}"#,
            r#"{"type":"tool_progress","id":7,"call_id":"c1"}"#,
            // Other ids, names, titles and labels.
            r#"{"type":"tool_progress","call_id":"c1","parent_id":"msg_1","parentAgentId":"main","text":"x"}"#,
            r#"{"type":"tool.progress","data":{"toolCallId":"c1","progressMessage":"50%"},"id":"u1","parentId":"u0"}"#,
            r#"{"type":"tool_progress","call_id":"c1","toolName":"Sh","displayName":"Shell","title":"ls","text":"x"}"#,
            r#"{"type":"tool_progress","call_id":"c0","toolName":"SH","description":"lists the files"}"#,
            r#"{"type":"tool_output","call_id":"c1","preview":"a","lines":["a","b"],"bytes":"YQ==","format":"ansi"}"#,
            r#"{"type":"tool_end","call_id":"c1","seq":"12","usage":{"model":"x","n":1},"mimeType":"text/plain"}"#,
            r#"{"type":"tool_progress","call_id":"c1","workspace":"/w","elapsed":"about 3s","progressToken":"t1"}"#,
            // States of an open call.
            r#"{"type":"tool_queued","tool_use_id":"c1"}"#,
            r#"{"type":"tool_call_created","id":"c1"}"#,
            r#"{"type":"tool_approved","id":"c1","by":"user"}"#,
            r#"{"type":"tool_call_validating","callId":"c1","status":"validating"}"#,
            // Results of any form, and ends of edits.
            r#"{"type":"mcp_tool_call_end","call_id":"c1","result":{"Ok":{"content":[{"type":"text","text":"x"}]}}}"#,
            r#"{"type":"tool_result","call_id":"c1","result":{"llmContent":"x","returnDisplay":"y"}}"#,
            r#"{"type":"tool_result","call_id":"c1","result":{"title":"ls","output":"x"}}"#,
            r#"{"type":"patch_apply_end","call_id":"c1","success":true,"stdout":"ok","stderr":""}"#,
            r#"{"type":"edit_file_completed","call_id":"c1"}"#,
        ] {
            assert_eq!(new_in(line), NewOfCalls::default(), "{line}");
        }
    }

    #[test]
    fn a_line_with_more_than_progress_may_be_another_call() {
        for line in [
            // Another call, or none that is known.
            r#"{"kind":"tool_progress","tool_call_id":"c2","text":"x"}"#,
            r#"{"kind":"exec","call_id":"c2","item":{"id":"c1"}}"#,
            r#"{"type":"tool_use","id":"c2","name":"Bash","parent":{"id":"c1"}}"#,
            r#"{"type":"tool_output","id":"c2","parent":{"id":"c1"}}"#,
            r#"{"type":"tool_output","call_id":7,"parent":{"id":"c1"}}"#,
            r#"{"type":"tool_output","call_id":"c1","tool_id":7}"#,
            r#"{"type":"tool_output","id":"c1","parent_call_id":"c9"}"#,
            r#"{"type":"tool_output","id":"c1","tool_calls":[{"id":"c2","name":"sh"}]}"#,
            r#"{"type":"tool_output","id":"c1","content":[{"type":"tool_use","name":"rm"}]}"#,
            // Another name, arguments, or an action by the type.
            r#"{"type":"tool_call","id":"c1","name":"delete_everything"}"#,
            r#"{"type":"tool_progress","id":"c1","name":"delete_everything"}"#,
            r#"{"type":"exec_command","id":"c1","text":"rm -rf src"}"#,
            r#"{"type":"exec_command_begin","id":"c1","text":"rm -rf src"}"#,
            r#"{"type":"tool_call_started","id":"c0"}"#,
            r#"{"type":"function_call_arguments.delta","item_id":"c1","delta":"rm -rf src"}"#,
            r#"{"type":"tool_call_delta","id":"c1","delta":"rm -rf src"}"#,
            r#"{"type":"delete_files","id":"c1","names":["src/a","src/b"]}"#,
            r#"{"type":"delete_files_progress","id":"c1"}"#,
            r#"{"type":"update_file","id":"c1","text":"x"}"#,
            r#"{"type":"apply_diff","id":"c1","diff":"--- a/src/x"}"#,
            r#"{"type":"tool_progress","id":"c1","params":{"text":"rm -rf src"}}"#,
            r#"{"type":"tool_progress","id":"c1","payload":{"target":"src"}}"#,
            r#"{"type":"tool_progress","id":"c1","started_at":"rm -rf src"}"#,
            r#"{"type":"tool_progress","id":"c1","command":"ls"}"#,
            r#"{"kind":"tool","id":"c1","args":{"line":"rm"}}"#,
            r#"{"kind":"exec","id":"c1","line":"rm"}"#,
            r#"{"kind":"edit","id":"c1","path":"a"}"#,
            r#"{"type":"tool_queued","id":"c0"}"#,
            r#"{"type":"tool_queued","id":"c1","text":"rm -rf src"}"#,
            r#"{"type":"tool_queued","id":"c1","status":"rm -rf src"}"#,
            r#"{"type":"file_deleted","id":"c1"}"#,
            r#"{"type":"file_created","id":"c1"}"#,
            r#"{"type":"delete_file_completed","id":"c1"}"#,
            r#"{"type":"edit_file_completed","id":"c1","path":"a"}"#,
            r#"{"type":"function_call_arguments.done","item_id":"c1"}"#,
            r#"{"type":"tool_progress","id":"c1","title":"rm -rf src"}"#,
            r#"{"type":"tool_progress","id":"c1","parentToolUseId":"c9"}"#,
            r#"{"type":"tool_result","id":"c1","result":{"command":"rm -rf src"}}"#,
            r#"{"type":"tool_result","id":"c1","result":{"tool_calls":[{"id":"c2","name":"sh"}]}}"#,
            r#"{"type":"tool_result","id":"c1","result":{"x":{"name":"rm","arguments":{}}}}"#,
        ] {
            assert_eq!(new_in(line), NewOfCalls { is_other: true, failed: None }, "{line}");
        }
    }

    #[test]
    fn a_line_may_report_that_its_call_failed() {
        for (line, is_other) in [
            (r#"{"type":"exec_command_end","call_id":"c1","exit_code":1,"stderr":"boom"}"#, false),
            (r#"{"type":"exec_command_end","call_id":"c1","exit_code":1,"command":["ls"]}"#, true),
            (r#"{"type":"tool_end","call_id":"c1","exit_status":{"code":2,"signal":null}}"#, false),
            (r#"{"type":"tool_call_failed","id":"c1","error":"exit 1"}"#, false),
            (r#"{"type":"tool_denied","call_id":"c1","reason":"user"}"#, false),
            (r#"{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"x"}"#, false),
            (r#"{"type":"item.completed","item":{"id":"c1","type":"tool_call","status":"failed"}}"#, false),
            (r#"{"type":"tool_end","id":"c1","error":{"name":"TimeoutError","message":"5 s"}}"#, false),
            (r#"{"type":"tool_end","id":"c1","rc":1}"#, false),
            (r#"{"type":"tool_end","id":"c1","exit_code":"1"}"#, false),
            (r#"{"type":"tool_end","id":"c1","exitCode":{"value":1}}"#, false),
            (r#"{"type":"tool_end","id":"c1","success":0}"#, false),
            (r#"{"type":"tool_end","id":"c1","success":"false"}"#, false),
            (r#"{"type":"tool_end","id":"c1","errors":["boom"]}"#, false),
            (r#"{"type":"exec_fetch_end","id":"c1","code":1}"#, false),
            (r#"{"type":"tool_failed","id":"c1","subtype":"no_retry"}"#, false),
            (r#"{"type":"tool_output_error","id":"c1"}"#, false),
            (r#"{"type":"edit_file_failed","id":"c1"}"#, false),
            (r#"{"type":"mcp_tool_call_end","id":"c1","result":{"Err":"boom"}}"#, false),
            (r#"{"type":"mcp_tool_call_end","id":"c1","result":{"Ok":{"content":[],"isError":true}}}"#, false),
        ] {
            assert_eq!(new_in(line), NewOfCalls { is_other, failed: Some("c1".to_owned()) }, "{line}");
        }
        for line in [
            r#"{"type":"tool_end","id":"c1","ok":true,"error":null,"errors":[],"status":"0 of 3 failed"}"#,
            r#"{"type":"fetch_result","id":"c1","code":200}"#,
            r#"{"type":"exec_http_result","id":"c1","code":200}"#,
            r#"{"type":"tool_update","id":"c1","state":"no error"}"#,
            r#"{"type":"tool_error_output","id":"c1","text":"warning"}"#,
            r#"{"type":"tool_timeout_extended","id":"c1","seconds":30}"#,
            r#"{"type":"exec_end","id":"c1","signal":"none","exit_code":0}"#,
            r#"{"type":"tool_end","id":"c1","error":"none","exit":"0"}"#,
            r#"{"type":"tool_progress","id":"c1","errors":["w1"]}"#,
        ] {
            assert_eq!(new_in(line), NewOfCalls::default(), "{line}");
        }
    }

    #[test]
    fn a_line_names_its_call_by_a_key_for_the_call() {
        let mut recorder = recorder();
        recorder.call("1", CallReport::default());
        for (line, names) in [
            (r#"{"type":"progress","call_id":"1"}"#, true),
            (r#"{"type":"progress","toolCallId":1}"#, true),
            (r#"{"type":"progress","item":{"id":"1"}}"#, true),
            (r#"{"type":"message","content":[{"tool_use_id":"1"}]}"#, true),
            (r#"{"id":1,"turn_id":"1","session_id":"1","step_id":1,"parent_tool_use_id":"1"}"#, false),
            (r#"{"type":"tool_use","id":"c2","name":"Bash","parent":{"id":"1"}}"#, false),
            (r#"{"type":"progress","call_id":"c2","related":{"id":"1"}}"#, false),
        ] {
            assert_eq!(names_a_call(&serde_json::from_str(line).unwrap(), &recorder), names, "{line}");
        }
    }
}
