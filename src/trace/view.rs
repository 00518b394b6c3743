//! Read-only questions that graders and policies ask of calls: which paths, which command, which input.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::{FileDiff, Location};

/// Input keys under which agents put a path, all of them seen in recordings.
const PATH_KEYS: [&str; 12] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "filename",
    "absolute_path",
    "notebook_path",
    "target_file",
    "dir_path",
    "directory",
    "uri",
];
/// Input keys under which agents put several paths.
const PATHS_KEYS: [&str; 4] = ["paths", "files", "file_paths", "filePaths"];
/// Input keys of a move, which touches both ends.
const MOVE_KEYS: [&str; 8] =
    ["from", "to", "source", "destination", "old_path", "new_path", "source_path", "destination_path"];
/// Input keys under which agents put a command.
const COMMAND_KEYS: [&str; 4] = ["command", "cmd", "script", "commands"];

/// The paths a call touches, relative to the workspace where they lie in it, each once.
/// They come from its locations, its diffs and the usual keys of its input.
pub fn paths(
    input: Option<&Value>,
    locations: &[Location],
    diffs: &[FileDiff],
    workspace: Option<&str>,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |path: &str| {
        let path = relative(path, workspace);
        if !path.is_empty() && !found.contains(&path) {
            found.push(path);
        }
    };
    for location in locations {
        add(&location.path);
    }
    for diff in diffs {
        add(&diff.path);
    }
    if let Some(Value::Object(map)) = input {
        for key in PATH_KEYS.iter().chain(&MOVE_KEYS) {
            if let Some(Value::String(path)) = map.get(*key) {
                add(path);
            }
        }
        for key in PATHS_KEYS {
            if let Some(Value::Array(list)) = map.get(key) {
                list.iter().filter_map(Value::as_str).for_each(&mut add);
            }
        }
    }
    found
}

/// Whether agents put a path, or several, under this input key.
pub fn is_path_key(key: &str) -> bool {
    PATH_KEYS.contains(&key) || PATHS_KEYS.contains(&key) || MOVE_KEYS.contains(&key)
}

/// The command that a call runs, as text; an argument list is joined by blanks.
pub fn command(input: Option<&Value>) -> Option<String> {
    let map = input?.as_object()?;
    COMMAND_KEYS.iter().find_map(|key| match map.get(*key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        _ => None,
    })
}

/// A path as graders see it: relative to the workspace where it lies in it, without `.` and `..`, `/` between.
pub fn relative(path: &str, workspace: Option<&str>) -> String {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let clean = normalise(Path::new(path));
    let inside = workspace.and_then(|root| {
        let root = normalise(Path::new(root));
        clean.strip_prefix(&root).ok().map(Path::to_path_buf)
    });
    let path = inside.unwrap_or(clean);
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// Takes `.` and `..` out of a path by its words alone; nothing is read from the disk.
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

/// A value as one line of JSON that is the same for equal values: keys sorted, no blanks, `1.0` written `1`.
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
