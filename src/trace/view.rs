//! Facts about tool calls for graders and policies: paths, command, input.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::{FileDiff, Location};

/// Input keys under which agents put a path, all of them seen in recordings or in the tools' own descriptions.
const PATH_KEYS: [&str; 19] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "fileName",
    "filename",
    "file_name",
    "absolute_path",
    "absolutePath",
    "relative_path",
    "relativePath",
    "relative_workspace_path",
    "notebook_path",
    "target_file",
    "targetFile",
    "dir_path",
    "directory",
    "uri",
];
/// Input keys under which agents put several paths, each as a text or as an object that contains a path.
const PATHS_KEYS: [&str; 5] = ["paths", "files", "file_paths", "filePaths", "target_files"];
/// Input keys under which agents put several changes, each of which may contain a path.
const CHANGES_KEYS: [&str; 3] = ["edits", "operations", "changes"];
/// Input keys of a move, which touches both paths.
const MOVE_KEYS: [&str; 30] = [
    "from",
    "to",
    "source",
    "destination",
    "src",
    "dst",
    "dest",
    "old_path",
    "new_path",
    "oldPath",
    "newPath",
    "source_path",
    "destination_path",
    "sourcePath",
    "destinationPath",
    "src_path",
    "dst_path",
    "from_path",
    "to_path",
    "target_path",
    "targetPath",
    "rename_to",
    "renameTo",
    "new_file_path",
    "old_uri",
    "new_uri",
    "oldUri",
    "newUri",
    "output_path",
    "outputPath",
];
/// Input keys under which agents put the text of a patch.
const PATCH_KEYS: [&str; 7] = ["patch", "patchText", "patch_text", "input", "command", "cmd", "arguments"];
/// The beginnings of the lines that name a file in a patch, and the beginning of such a patch.
const PATCH_LINES: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
const PATCH_BEGINS: &str = "*** Begin Patch";
/// Input keys under which agents put a command.
const COMMAND_KEYS: [&str; 8] =
    ["command", "cmd", "script", "commands", "shell_command", "shellCommand", "command_line", "commandLine"];
/// Input keys under which tools of servers may put a command.
const MAYBE_COMMAND_KEYS: [&str; 8] = ["cmdline", "bash", "shell", "sh", "code", "run", "exec", "line"];
/// Input keys under which agents put the input of a tool of a server, as an object.
const INNER_KEYS: [&str; 5] = ["arguments", "args", "params", "parameters", "input"];

/// Input keys under which agents put the arguments of a command.
const ARGUMENT_KEYS: [&str; 5] = ["args", "arguments", "argv", "params", "parameters"];

/// The placeholder for a path that a call names and that cannot be read, such as `null` in a list of paths.
pub const UNREAD_PATH: &str = "(a path that cannot be read)";

/// Returns the paths that a call touches, each once; those in the workspace are relative to it. They come from the
/// call's locations, its diffs and the usual keys of its input.
pub fn paths(
    input: Option<&Value>,
    locations: &[Location],
    diffs: &[FileDiff],
    workspace: Option<&str>,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for path in written_paths(input, locations, diffs) {
        let path = if path == UNREAD_PATH { path } else { relative(&path, workspace) };
        if !path.is_empty() && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Returns a path that a call names: relative to the workspace if the path is within it, and absolute otherwise. A relative
/// path of the call is resolved in the folder in which the call was made (`cwd`), or in the workspace if that folder is
/// unknown. If the workspace is unknown, only the folder of the call counts. A path that begins at a home folder stays as
/// it is written, and so does [`UNREAD_PATH`].
pub fn located(path: &str, cwd: Option<&str>, workspace: Option<&str>) -> String {
    if is_from_home(path) || path == UNREAD_PATH {
        return path.to_owned();
    }
    let root = workspace.map(Path::new).filter(|root| root.is_absolute()).unwrap_or(Path::new(""));
    let whole = root.join(cwd.unwrap_or_default()).join(of_url(path).as_ref());
    relative(&whole.to_string_lossy(), workspace)
}

/// Returns true if a path begins at a home folder, which the trace does not name: `~/a`, `~user/a`, `$HOME/a`, `${HOME}/a`.
pub fn is_from_home(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
    let is_users = || path.contains('/') && first.strip_prefix('~').is_some_and(is_name);
    matches!(first, "~" | "$HOME" | "${HOME}") || is_users()
}

/// Returns true if a path has signs of a glob, so that it may stand for other files. A class in brackets is left out, because
/// files of some frameworks are named so.
pub fn is_pattern(path: &str) -> bool {
    let is_one_of = path.find('{').and_then(|at| path.get(at..)?.split_once('}')).is_some_and(|it| it.0.contains(','));
    path.contains(['*', '?']) || is_one_of
}

/// Returns the paths that a call names, as the agent wrote them; URLs of files as paths. An empty text is no path, but in a
/// list of paths it is one that cannot be read: [`UNREAD_PATH`].
pub fn written_paths(input: Option<&Value>, locations: &[Location], diffs: &[FileDiff]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |path: &str| {
        let path = of_url(path);
        if !path.trim().is_empty() && !found.iter().any(|known| *known == path) {
            found.push(path.into_owned());
        }
    };
    for location in locations {
        add(&location.path);
    }
    for diff in diffs {
        add(&diff.path);
    }
    match input {
        Some(Value::Object(map)) => {
            levels(map).into_iter().for_each(|map| paths_of_keys(map, &mut add));
            for (_, value) in entries(map, &PATCH_KEYS) {
                match value {
                    Value::String(text) => paths_of_patch(text, &mut add),
                    Value::Array(words) => {
                        words.iter().filter_map(Value::as_str).for_each(|text| paths_of_patch(text, &mut add));
                    }
                    _ => {}
                }
            }
        }
        Some(Value::String(text)) => paths_of_patch(text, &mut add),
        _ => {}
    }
    found
}

/// Returns the objects of an input that contain keys of a tool: the input itself, and the inputs of a server's tool in it.
pub(super) fn levels(map: &Map<String, Value>) -> Vec<&Map<String, Value>> {
    let mut found = vec![map];
    let mut next = 0;
    while let Some(map) = found.get(next).copied() {
        for (_, inner) in entries(map, &INNER_KEYS) {
            let items = inner.as_array().map_or(std::slice::from_ref(inner), Vec::as_slice);
            found.extend(items.iter().filter_map(Value::as_object));
        }
        next += 1;
    }
    found
}

/// Returns the entries of an object under these keys, in the order of the keys. The few entries of an input are compared
/// with the keys, because most of many keys would be looked up in vain.
pub(super) fn entries<'a>(
    map: &'a Map<String, Value>,
    keys: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'a Value)> {
    let found = map.iter().filter_map(|(key, value)| Some((keys.iter().position(|known| known == key)?, value)));
    let mut found: Vec<(usize, &Value)> = found.collect();
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(at, value)| (keys[at], value))
}

fn paths_of_keys(map: &Map<String, Value>, add: &mut impl FnMut(&str)) {
    for (_, value) in entries(map, &PATH_KEYS) {
        match value {
            Value::String(path) => add(path),
            Value::Array(list) => list.iter().for_each(|item| path_of_item(item, add)),
            Value::Object(_) => path_of_item(value, add),
            Value::Number(_) => add(UNREAD_PATH),
            Value::Null | Value::Bool(_) => {}
        }
    }
    // Numbers under the keys of a move may be lines of a file.
    for (_, value) in entries(map, &MOVE_KEYS) {
        match value {
            Value::String(path) => add(path),
            Value::Object(_) | Value::Array(_) => add(UNREAD_PATH),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    for (key, value) in entries(map, &PATHS_KEYS) {
        match value {
            Value::Array(list) => list.iter().for_each(|item| path_of_item(item, add)),
            Value::Object(files) if key == "files" => files.keys().for_each(|path| path_of_text(path, add)),
            // How a tool makes paths of one text is unknown.
            Value::String(text) if !text.trim().is_empty() => add(UNREAD_PATH),
            Value::Object(_) | Value::Number(_) => add(UNREAD_PATH),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    for (key, value) in entries(map, &CHANGES_KEYS) {
        match value {
            Value::Array(list) => {
                for item in list {
                    match item {
                        Value::String(path) if key != "edits" => add(path),
                        Value::Object(item) => path_of_object(item, add),
                        _ => {}
                    }
                }
            }
            // Codex puts the files that it changes as keys.
            Value::Object(files) if key == "changes" => files.keys().for_each(|path| path_of_text(path, add)),
            _ => {}
        }
    }
}

/// Adds the path that an item of a list of paths names.
fn path_of_item(item: &Value, add: &mut impl FnMut(&str)) {
    match item {
        Value::String(path) => path_of_text(path, add),
        Value::Object(item) if item.keys().any(|key| names_path(key)) => path_of_object(item, add),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => add(UNREAD_PATH),
    }
}

fn path_of_text(path: &str, add: &mut impl FnMut(&str)) {
    add(if path.trim().is_empty() { UNREAD_PATH } else { path });
}

/// Returns true if agents put one path under this input key.
fn names_path(key: &str) -> bool {
    PATH_KEYS.contains(&key) || MOVE_KEYS.contains(&key)
}

/// Adds the paths under the keys of an object that is part of a list. An object without such a key names no path.
fn path_of_object(item: &Map<String, Value>, add: &mut impl FnMut(&str)) {
    for (_, value) in entries(item, &PATH_KEYS) {
        match value {
            Value::String(path) => path_of_text(path, add),
            _ => add(UNREAD_PATH),
        }
    }
    for path in entries(item, &MOVE_KEYS).filter_map(|(_, value)| value.as_str()) {
        path_of_text(path, add);
    }
}

/// Adds the files that the text of an `apply_patch`, or a unified diff, names.
fn paths_of_patch(text: &str, add: &mut impl FnMut(&str)) {
    let Some(begin) = text.find(PATCH_BEGINS) else { return paths_of_diff(text, add) };
    for line in text[begin..].lines() {
        if let Some(path) = PATCH_LINES.iter().find_map(|begins| line.strip_prefix(begins)) {
            add(path.trim());
        }
    }
}

/// Adds the files that a unified diff names. Only a text that begins with a file of the diff is one: a command may hold a
/// diff in its middle.
fn paths_of_diff(text: &str, add: &mut impl FnMut(&str)) {
    let text = text.trim_start();
    if !["--- ", "diff --git ", "Index: "].iter().any(|begins| text.starts_with(begins)) {
        return;
    }
    // A time may follow the name. A name in quotes has escapes.
    let name = |side: &str| side.split('\t').next().unwrap_or_default().trim_end().to_owned();
    let mut add = |name: &str| add(if name.starts_with('"') { UNREAD_PATH } else { name });
    // The file of a section of git's that no other line has named yet: its header alone names it if it has no hunks.
    let mut headed: Option<&str> = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix("diff --git ") {
            headed.replace(header).into_iter().for_each(|header| add(name_of_header(header)));
            continue;
        }
        let moved = ["rename from ", "rename to ", "copy from ", "copy to "];
        if let Some(name) = moved.iter().find_map(|begins| line.strip_prefix(begins)).filter(|_| headed.is_some()) {
            add(name);
            // The second name of a move follows the first one at once.
            if line.starts_with("rename to ") || line.starts_with("copy to ") {
                headed = None;
            }
            continue;
        }
        let (Some(old), Some(new)) =
            (line.strip_prefix("--- "), lines.peek().and_then(|next| next.strip_prefix("+++ ")))
        else {
            continue;
        };
        headed = None;
        // Git writes the names of the two sides as if they were in folders `a` and `b`.
        let (old, new) = (name(old), name(new));
        let is_of_git = |name: &str, folder: &str| name == "/dev/null" || name.starts_with(folder);
        let by_git = is_of_git(&old, "a/") && is_of_git(&new, "b/");
        for (name, folder) in [(&old, "a/"), (&new, "b/")] {
            let bare = name.strip_prefix(folder).filter(|_| by_git).unwrap_or(name);
            if bare != "/dev/null" {
                add(bare);
            }
        }
        lines.next();
    }
    headed.into_iter().for_each(|header| add(name_of_header(header)));
}

/// Returns the file that the header of a section of git's names, `a/NAME b/NAME`. Names with blanks are found because both
/// are the same.
fn name_of_header(header: &str) -> &str {
    let header = header.trim_end();
    let half = header.len().saturating_sub(1) / 2;
    let sides = header.split_at_checked(half).and_then(|(old, rest)| Some((old, rest.strip_prefix(' ')?)));
    match sides.and_then(|(old, new)| Some((old.strip_prefix("a/")?, new.strip_prefix("b/")?))) {
        Some((old, new)) if old == new => old,
        _ => UNREAD_PATH,
    }
}

/// Returns true if agents put a path, or several, under this input key.
pub fn is_path_key(key: &str) -> bool {
    PATH_KEYS.contains(&key) || PATHS_KEYS.contains(&key) || CHANGES_KEYS.contains(&key) || MOVE_KEYS.contains(&key)
}

/// Returns true if agents put a command under this input key.
pub fn is_command_key(key: &str) -> bool {
    COMMAND_KEYS.contains(&key)
}

/// Returns true if an input has a text under a key that may be one of a command.
pub fn may_hold_command(input: &Value) -> bool {
    let maps = input.as_object().map(levels).unwrap_or_default();
    maps.into_iter().any(|map| entries(map, &MAYBE_COMMAND_KEYS).any(|(_, value)| value.is_string()))
}

/// Returns the command that a call runs, as text, with its arguments; an argument list is joined by blanks, and a list of
/// command lines by line feeds. If the input holds several different commands, the first is returned.
pub fn command(input: Option<&Value>) -> Option<String> {
    commands(input?).into_iter().next()
}

/// Returns every command under the known keys of an input, each once and with its arguments. Empty texts are left out.
pub fn commands(input: &Value) -> Vec<String> {
    readings(input).into_iter().map(|(command, _)| command).collect()
}

/// Returns the other readings of the lists under the known keys of commands: whether such a list is one command with its
/// arguments, or several commands, is unknown.
pub fn other_commands(input: &Value) -> Vec<String> {
    readings(input).into_iter().filter_map(|(_, other)| other).collect()
}

/// Returns each command, and its other reading.
fn readings(input: &Value) -> Vec<(String, Option<String>)> {
    let Some(map) = input.as_object() else { return Vec::new() };
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    let under_keys = |map| entries(map, &COMMAND_KEYS).map(move |(key, value)| (map, key, value));
    for (map, key, value) in levels(map).into_iter().flat_map(under_keys) {
        let (command, other) = match value {
            Value::String(text) => (text.clone(), None),
            Value::Array(list) => list_readings(key, &list.iter().filter_map(word).collect::<Vec<_>>()),
            _ => continue,
        };
        if command.trim().is_empty() || has_unread_word(map, key) {
            continue;
        }
        let command = with_arguments(&command, map);
        if !found.iter().any(|(known, _)| known.trim() == command.trim()) {
            found.push((command, other.map(|other| with_arguments(&other, map))));
        }
    }
    found
}

/// Reads the list under a key of commands: `commands` holds command lines, the other keys hold a program with its arguments.
/// Returns the command, and the other reading if the list may be that, too. A list with an item such as `-c` is a program
/// with its arguments, and so is a list without a blank, unless its key says otherwise. A first item with a blank is a command
/// line, unless it begins as a path: a program may have a blank in its path.
fn list_readings(key: &str, list: &[String]) -> (String, Option<String>) {
    let (one, several) = (list.join(" "), list.join("\n"));
    let has_option = list.iter().any(|item| item.starts_with('-'));
    let is_line = |item: &String| item.trim().contains(char::is_whitespace);
    let (has_blank, begins_with_line) = (list.iter().any(is_line), list.first().is_some_and(is_line));
    let begins_with_path = list.len() > 1 && list.first().is_some_and(|item| begins_as_path(item));
    match key == "commands" {
        _ if list.len() < 2 => (one, None),
        true => (several, has_option.then_some(one)),
        false if begins_with_line && !has_option && !begins_with_path => (several, None),
        false => (one, (has_blank && !has_option).then_some(several)),
    }
}

/// Returns true if a text begins as the path of a program, on any system.
fn begins_as_path(text: &str) -> bool {
    let has_drive = || {
        let behind_letter = text.strip_prefix(|c: char| c.is_ascii_alphabetic());
        behind_letter.is_some_and(|rest| rest.starts_with(":\\") || rest.starts_with(":/"))
    };
    ["/", "./", "../", "~/", ".\\", "..\\", "\\\\"].iter().any(|start| text.starts_with(start)) || has_drive()
}

/// Returns true if an input has a list of words under a key of commands, and one of the words, or of the arguments beside it,
/// cannot be read: which command it is cannot be known.
pub fn has_unread_command(input: &Value) -> bool {
    let maps = input.as_object().map(levels).unwrap_or_default();
    maps.into_iter().any(|map| entries(map, &COMMAND_KEYS).any(|(key, _)| has_unread_word(map, key)))
}

/// Returns true if an item of the list under a key of commands, or of the list of its arguments, is neither text nor number.
fn has_unread_word(map: &Map<String, Value>, key: &str) -> bool {
    let is_unread = |key: &str| match map.get(key) {
        Some(Value::Array(words)) => words.iter().any(|item| word(item).is_none()),
        _ => false,
    };
    map.contains_key(key) && (is_unread(key) || ARGUMENT_KEYS.iter().any(|key| is_unread(key)))
}

/// Returns a program with the arguments that an input holds beside it.
pub fn with_arguments(program: &str, map: &Map<String, Value>) -> String {
    let arguments = arguments(map);
    let is_first = arguments.first().is_some_and(|first| first == program);
    let program = (!is_first).then(|| program.to_owned());
    program.into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns the arguments of a command that an input holds under a separate key.
pub fn arguments(map: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for key in ARGUMENT_KEYS {
        match map.get(key) {
            Some(Value::Array(words)) => found.extend(words.iter().filter_map(word)),
            Some(Value::String(text)) if !text.trim().is_empty() => found.push(text.clone()),
            _ => {}
        }
    }
    found
}

/// Returns the texts of arguments that an input holds beside a command, under keys of their own. How a tool makes words of
/// them is unknown.
pub fn named_arguments(input: &Value) -> Vec<&str> {
    fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::String(text) if !text.trim().is_empty() => found.push(text),
            Value::Array(list) => list.iter().for_each(|item| texts(item, found)),
            Value::Object(map) => map.values().for_each(|item| texts(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for map in input.as_object().map(levels).unwrap_or_default() {
        if map.keys().any(|key| is_command_key(key)) {
            let objects = ARGUMENT_KEYS.iter().filter_map(|key| map.get(*key)).filter(|value| value.is_object());
            objects.for_each(|value| texts(value, &mut found));
        }
    }
    found
}

/// Returns true if agents put the arguments of a command under this input key.
pub fn is_argument_key(key: &str) -> bool {
    ARGUMENT_KEYS.contains(&key)
}

/// Returns a word of a command line.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the path of a `file:` URL, or any other text unchanged.
pub fn of_url(path: &str) -> std::borrow::Cow<'_, str> {
    use std::borrow::Cow;
    let is_scheme = path.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("file://"));
    let Some(rest) = path.get(7..).filter(|_| is_scheme) else { return Cow::Borrowed(path) };
    // The path may follow a host, which is this machine.
    let rest = rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest);
    if !rest.contains('%') {
        return Cow::Borrowed(rest);
    }
    let hex = |digit: Option<&u8>| digit.and_then(|digit| char::from(*digit).to_digit(16));
    let bytes = rest.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// Returns a path as graders see it: relative to the workspace if it is within it, without `.` and `..`, with `/` as
/// separator.
pub fn relative(path: &str, workspace: Option<&str>) -> String {
    let path = of_url(path);
    let clean = normalise(Path::new(path.as_ref()));
    let inside = workspace.and_then(|root| {
        let root = normalise(Path::new(root));
        // `../w/a` is in the workspace `/x/w`.
        let whole = if clean.starts_with("..") { normalise(&root.join(&clean)) } else { clean.clone() };
        whole.strip_prefix(&root).ok().map(Path::to_path_buf)
    });
    let path = inside.unwrap_or(clean);
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// Removes `.` and `..` from a path by its text alone; nothing is read from the disk.
pub fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                let last = clean.components().next_back();
                match last {
                    Some(Component::Normal(_)) => {
                        clean.pop();
                    }
                    Some(Component::RootDir) => {}
                    _ => clean.push(".."),
                }
            }
            other => clean.push(other),
        }
    }
    clean
}

/// Returns a value as one line of JSON that is the same for equal values: keys sorted, no blanks, `1.0` written `1`.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e15 => {
                out.push_str(&(float as i64).to_string());
            }
            _ => out.push_str(&number.to_string()),
        },
        Value::Array(list) => {
            out.push('[');
            for (n, item) in list.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (n, key) in keys.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_read_from_every_key_that_agents_use() {
        for (input, wanted) in [
            (json!({"relative_path": "src/a.rs"}), vec!["src/a.rs"]),
            (json!({"fileName": "/w/a", "diff": "x"}), vec!["a"]),
            (json!({"src": "a", "dst": "b"}), vec!["a", "b"]),
            (json!({"oldPath": "a", "newPath": "/etc/b"}), vec!["a", "/etc/b"]),
            (json!({"path": "a", "target_path": "/etc/b"}), vec!["a", "/etc/b"]),
            (json!({"oldUri": "file:///w/a", "newUri": "file:///etc/b"}), vec!["a", "/etc/b"]),
            (json!({"edits": [{"path": "a", "old": "x"}, {"file_path": "/w/b"}]}), vec!["a", "b"]),
            (json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}), vec!["a"]),
            (json!({"files": ["a", {"path": "b"}]}), vec!["a", "b"]),
            (json!({"changes": {"/w/a": {"type": "delete"}, "b": {}}}), vec!["a", "b"]),
            (json!({"target_file": "a"}), vec!["a"]),
            (
                json!({"patch": "*** Begin Patch\n*** Delete File: a\n*** Update File: b\n*** Move to: c\n@@\n+*** x\n*** End Patch"}),
                vec!["a", "b", "c"],
            ),
            (json!({"command": ["apply_patch", "*** Begin Patch\n*** Add File: /w/d\n+x\n*** End Patch"]}), vec!["d"]),
            (json!("*** Begin Patch\n*** Delete File: src/a.rs\n*** End Patch"), vec!["src/a.rs"]),
            (json!({"path": "a", "content": "*** Begin Patch\n*** Delete File: b\n"}), vec!["a"]),
            (json!({"uri": "file:///w/a%20b/%C3%BC.txt"}), vec!["a b/ü.txt"]),
            (json!({"uri": "file://localhost/w/%2e%2e/etc/passwd"}), vec!["/etc/passwd"]),
            (json!({"uri": "FILE:///w/100%"}), vec!["100%"]),
            (json!({"path": "/w/100%20"}), vec!["100%20"]),
            (json!({"path": "", "file": " ", "paths": null}), vec![]),
            (json!({"paths": ["", "a"]}), vec![UNREAD_PATH, "a"]),
            (json!({"files": ["a", null, 5, ["b"]]}), vec!["a", UNREAD_PATH]),
            (json!({"files": [{"path": null}, {"path": "a"}], "edits": [{"path": ""}]}), vec![UNREAD_PATH, "a"]),
            (json!({"path": ["a", "b"]}), vec!["a", "b"]),
            (json!({"path": 5, "directory": true, "from": 1, "to": 9}), vec![UNREAD_PATH]),
            (json!({"paths": "a, b"}), vec![UNREAD_PATH]),
            (json!({"paths": ["a", {"odd": "b"}], "to": {"p": "c"}}), vec![UNREAD_PATH, "a"]),
            (json!({"patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- y\n+++ z\n"}), vec!["x", "y", "z"]),
            (json!({"patch": "diff --git a/x b/x\n--- /dev/null\n+++ b/x\n@@"}), vec!["x"]),
            (
                json!({"patch": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@\ndiff --git a/o p b/q\nsimilarity index 100%\nrename from o p\nrename to q\n"}),
                vec!["x", "o p", "q"],
            ),
            (
                json!({"patch": "diff --git a/o p b/o p\nold mode 100644\nnew mode 100755\ndiff --git a/i.png b/j.png\nBinary files differ\n"}),
                vec!["o p", UNREAD_PATH],
            ),
            (
                json!({"patch": "diff --git a/n to s.md b/b.md\nsimilarity index 100%\nrename from n to s.md\nrename to b.md\ndiff --git a/c to d b/e\nsimilarity index 100%\ncopy from c to d\ncopy to e\n"}),
                vec!["n to s.md", "b.md", "c to d", "e"],
            ),
            (json!({"patch": "--- \"a/f\\303\"\n+++ \"b/f\\303\"\n@@"}), vec![UNREAD_PATH]),
            (json!({"patch": "--- old/x\t2026-01-01\n+++ new/x\t2026-01-01\n@@"}), vec!["old/x", "new/x"]),
        ] {
            assert_eq!(paths(Some(&input), &[], &[], Some("/w")), wanted, "{input}");
        }
    }

    #[test]
    fn a_path_that_begins_at_a_home_folder_is_kept_as_written() {
        for path in ["~", "~/.bashrc", "~root/x", "$HOME/.ssh/config", "${HOME}/a"] {
            assert_eq!(located(path, Some("/w/sub"), Some("/w")), path);
        }
        for (path, placed) in [("~a.txt", "~a.txt"), ("a/~/b", "a/~/b"), ("$HOMES/a", "$HOMES/a"), ("./~/a", "~/a")] {
            assert_eq!(located(path, None, Some("/w")), placed);
        }
    }

    #[test]
    fn signs_of_a_glob_are_told_from_names() {
        for (path, is) in
            [("src/**", true), ("a?.rs", true), ("{a,b}.rs", true), ("app/[id]/page.tsx", false), ("{a}", false)]
        {
            assert_eq!(is_pattern(path), is, "{path}");
        }
    }
}
