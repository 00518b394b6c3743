//! The facts of a call for graders and policies: each is seen, or was not shown by the agent.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::calls::Call;
use super::{FileDiff, Location, ToolCall, ToolKind, file_globs, view};

/// A fact of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fact<T> {
    /// The agent showed this value.
    Seen(T),
    /// The agent did not show the value, so it is unknown.
    #[default]
    NotShown,
}

impl<T> Fact<T> {
    /// Returns the value, if it was seen.
    pub fn seen(&self) -> Option<&T> {
        match self {
            Fact::Seen(value) => Some(value),
            Fact::NotShown => None,
        }
    }
}

/// The command that a call runs, as far as known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Command {
    /// The call runs this command.
    Seen(String),
    /// The call runs no command.
    None,
    /// The call runs a command, and no known key of its input holds one. The command is one of these texts, or none
    /// of them.
    Among(Vec<String>),
    /// The call runs a list that is either one command with its arguments, or several commands.
    List {
        /// The command, by the key of the list.
        command: String,
        /// The other reading of the list.
        other: String,
    },
    /// The call runs this command with arguments that are shown under keys of their own, so their form is unknown.
    With {
        /// The command without these arguments.
        command: String,
        /// The arguments, as texts.
        arguments: String,
    },
    /// The agent did not show whether the call runs a command, or which.
    #[default]
    NotShown,
}

impl Command {
    /// Returns the command, if it was seen.
    pub fn seen(&self) -> Option<&str> {
        match self {
            Command::Seen(command) | Command::List { command, .. } => Some(command),
            Command::None | Command::Among(_) | Command::With { .. } | Command::NotShown => None,
        }
    }
}

/// The conventions for reading the calls of a session: the workspace, and the meaning of the calls' titles.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The path of the workspace.
    pub workspace: Option<String>,
    /// The form of an `execute` call's title that is the command line, for calls whose input shows no command: the first
    /// group is the command.
    pub command_title: Option<Regex>,
    /// The tools whose calls the agent never shows, with their kinds.
    pub unshown_tools: BTreeMap<String, ToolKind>,
    /// The kinds of calls that the agent reports as successes even if they failed.
    pub unshown_outcomes: Vec<ToolKind>,
}

impl Reading {
    /// Returns the command line in the title of an `execute` call, by the agent's convention.
    fn command_of(&self, kind: Option<ToolKind>, title: Option<&str>) -> Option<String> {
        let form = self.command_title.as_ref().filter(|_| kind == Some(ToolKind::Execute))?;
        let found = form.captures(title?)?;
        let command = found.get(1).or_else(|| found.get(0))?.as_str();
        (!command.trim().is_empty()).then(|| command.to_owned())
    }
}

/// The details of a call as the agent reported them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportedDetails<'a> {
    /// The kind of the call.
    pub kind: Option<ToolKind>,
    /// The agent's name of the tool.
    pub name: Option<&'a str>,
    /// The agent's title for people.
    pub title: Option<&'a str>,
    /// The call's arguments.
    pub input: Option<&'a Value>,
    /// The files that the call names.
    pub locations: &'a [Location],
    /// The changes that the call shows.
    pub diffs: &'a [FileDiff],
    /// The folder in which the call was made, if the session shows it.
    pub cwd: Option<&'a str>,
}

impl<'a> ReportedDetails<'a> {
    /// Returns the reported details of a call, with the changes that its result shows.
    pub fn of(call: &'a ToolCall, diffs: &'a [FileDiff]) -> Self {
        Self {
            kind: (!call.unknown_kind).then_some(call.kind),
            name: call.name.as_deref(),
            title: call.title.as_deref(),
            input: call.shown_input(),
            locations: &call.locations,
            diffs,
            cwd: call.cwd.as_deref(),
        }
    }

    /// Returns the reported details of a call that is joined with its result.
    pub fn of_joined(call: &'a Call) -> Self {
        Self::of(&call.call, &call.diffs)
    }

    fn shows_places(&self) -> bool {
        !self.locations.is_empty() || !self.diffs.is_empty()
    }

    /// Returns true if a call of this kind may run a command.
    fn may_run(&self) -> bool {
        matches!(self.kind, Some(ToolKind::Execute | ToolKind::Other) | None)
    }

    /// Returns the arguments, unless they are the text of arguments that were cut.
    fn arguments(&self) -> Option<&'a Value> {
        self.input.filter(|input| !is_cut(input))
    }

    /// Returns the paths that the call touches; those in the workspace are relative to it, and others are absolute.
    ///
    /// A call whose input, locations or changes were shown touches the paths that these name, and no others, unless its
    /// kind requires a path, or may do so because it is unknown. The input of an `execute` call names the working directory
    /// of a command, not the paths that the command touches, but its paths are returned, too. A move touches two paths; if
    /// only one is shown, the other is [`view::UNREAD_PATH`]. Globs of files in the input of a search count as paths.
    pub fn paths(&self, reading: &Reading) -> Fact<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        let add = |written: String, found: &mut Vec<String>| {
            let path = view::located(&written, self.cwd, reading.workspace.as_deref());
            if !path.is_empty() && !found.contains(&path) {
                found.push(path);
            }
        };
        self.written_paths().into_iter().for_each(|written| add(written, &mut found));
        if self.kind == Some(ToolKind::Move) && found.len() == 1 {
            found.push(view::UNREAD_PATH.to_owned());
        }
        let needs_one =
            matches!(self.kind, None | Some(ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move));
        let is_shown = || match self.arguments() {
            Some(input) => !needs_one && (self.kind != Some(ToolKind::Execute) || !is_bare(input)),
            None => reading.command_of(self.kind, self.title).is_some(),
        };
        if found.is_empty() && !is_shown() {
            return Fact::NotShown;
        }
        // A call that needs a path may hold it under a key that is not known, so globs alone do not show its paths.
        let named = file_globs::named_by_globs(self.kind, self.name, self.input);
        named.into_iter().for_each(|written| add(written, &mut found));
        Fact::Seen(found)
    }

    /// Returns the paths that the call names, as the agent wrote them.
    pub fn written_paths(&self) -> Vec<String> {
        view::written_paths(self.input, self.locations, self.diffs)
    }

    /// Returns the command that the call runs.
    ///
    /// Arguments beside a command are part of it. If the input names several different commands, or arguments without a
    /// known key of a command, each of its texts may be the command. The same holds for a call of an unknown kind, which may
    /// run a command.
    ///
    /// Without an input, the command is the title, if the agent's titles are command lines. Beside an input whose texts may
    /// be the command, the title may be it, too. A call of another kind that
    /// shows its files runs no command, and neither does a call that thinks or changes the agent's mode.
    pub fn command(&self, reading: &Reading) -> Command {
        if self.input.is_some_and(view::has_unread_command) {
            return Command::NotShown;
        }
        let mut commands = self.input.map(view::commands).unwrap_or_default();
        let mut others = self.input.map(view::other_commands).unwrap_or_default();
        match commands.pop() {
            Some(command) if commands.is_empty() => {
                let arguments = self.input.map(view::named_arguments).unwrap_or_default();
                return match (arguments.is_empty(), others.pop()) {
                    (true, None) => Command::Seen(command),
                    (true, Some(other)) => Command::List { command, other },
                    (false, None) => Command::With { command, arguments: arguments.join(" ") },
                    (false, Some(_)) => Command::NotShown,
                };
            }
            Some(command) => return Command::Among(commands.into_iter().chain([command]).chain(others).collect()),
            None => {}
        }
        let runs = matches!(self.kind, Some(ToolKind::Execute) | None);
        match self.arguments() {
            Some(input) if runs && is_bare(input) => {}
            Some(input) if runs || (self.may_run() && (has_arguments(input) || view::may_hold_command(input))) => {
                return match (among(input), reading.command_of(self.kind, self.title)) {
                    (Command::Among(texts), Some(title)) => Command::Among(texts.into_iter().chain([title]).collect()),
                    (command, _) => command,
                };
            }
            Some(_) => return Command::None,
            None => {}
        }
        if let Some(command) = reading.command_of(self.kind, self.title).filter(|_| self.input.is_none()) {
            return Command::Seen(command);
        }
        match self.kind {
            Some(ToolKind::Think | ToolKind::SwitchMode) => Command::None,
            Some(ToolKind::Execute | ToolKind::Other) | None => Command::NotShown,
            Some(_) if self.shows_places() && self.input.is_none() => Command::None,
            Some(_) => Command::NotShown,
        }
    }
}

/// Returns true if an input is the text of arguments that were cut. Such a text begins like a JSON object or array.
pub fn is_cut(input: &Value) -> bool {
    input.as_str().is_some_and(|text| text.trim_start().starts_with(['{', '[']))
}

/// Keys of settings around a command, such as its working directory.
const AROUND: [&str; 11] = [
    "cwd",
    "workdir",
    "working_dir",
    "working_directory",
    "workingDirectory",
    "dir_path",
    "directory",
    "description",
    "timeout",
    "timeout_ms",
    "env",
];

/// The maximum bytes of an input's texts that are compared with a command.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Returns true if the input of a command does not show the command: agents announce such inputs while they write them.
fn is_bare(input: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(words) => words.is_empty(),
        _ => false,
    };
    let is_around = |(key, value): (&String, &Value)| {
        AROUND.contains(&key.as_str()) || (view::is_command_key(key) && is_empty(value))
    };
    input.as_object().is_some_and(|map| map.iter().all(is_around))
}

/// Returns true if an input holds arguments of a command.
fn has_arguments(input: &Value) -> bool {
    input.as_object().is_some_and(|map| !view::arguments(map).is_empty())
}

/// Returns the texts of an input, each of which may be the command.
fn among(input: &Value) -> Command {
    let mut found = Vec::new();
    let mut room = MAX_TEXT_BYTES;
    if texts(input, &mut found, &mut room).is_some() { Command::Among(found) } else { Command::NotShown }
}

/// Adds every text in a value. Returns `None` if there are too many.
fn texts(value: &Value, found: &mut Vec<String>, room: &mut usize) -> Option<()> {
    let mut add = |text: String, room: &mut usize| {
        *room = room.checked_sub(text.len())?;
        found.push(text);
        Some(())
    };
    match value {
        Value::String(text) => add(text.clone(), room),
        Value::Array(list) => {
            // A command may be given word by word.
            let words: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            if let Some(words) = words.filter(|words| words.len() > 1) {
                add(words.join(" "), room)?;
            }
            list.iter().try_for_each(|item| texts(item, found, room))
        }
        Value::Object(map) => {
            if has_arguments(value) {
                // The program may be under any other key.
                for (key, program) in map {
                    if let Some(program) = program.as_str().filter(|_| !view::is_argument_key(key)) {
                        add(view::with_arguments(program, map), room)?;
                    }
                }
            }
            map.values().try_for_each(|item| texts(item, found, room))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn location(path: &str) -> Location {
        Location { path: path.to_owned(), line: None }
    }

    fn reading() -> Reading {
        Reading { workspace: Some("/w".to_owned()), ..Reading::default() }
    }

    fn details<'a>(kind: ToolKind, input: Option<&'a Value>, locations: &'a [Location]) -> ReportedDetails<'a> {
        ReportedDetails {
            kind: Some(kind),
            title: Some("rm -rf build"),
            input,
            locations,
            ..ReportedDetails::default()
        }
    }

    #[test]
    fn a_command_is_seen_absent_or_not_shown() {
        let gemini = Reading { command_title: Some(Regex::new("(?s)^(.+)$").unwrap()), ..reading() };
        let (here, ls) = ([location("/w/a")], json!({"command": "ls"}));
        let seen = |command: &str| Command::Seen(command.to_owned());
        for (kind, input, locations, plain, by_title) in [
            (ToolKind::Execute, Some(&ls), [].as_slice(), seen("ls"), seen("ls")),
            (ToolKind::Execute, None, &[], Command::NotShown, seen("rm -rf build")),
            (ToolKind::Execute, None, &here, Command::NotShown, seen("rm -rf build")),
            (ToolKind::Other, None, &[], Command::NotShown, Command::NotShown),
            (ToolKind::Other, None, &here, Command::NotShown, Command::NotShown),
            (ToolKind::Edit, None, &here, Command::None, Command::None),
            (ToolKind::Delete, None, &[], Command::NotShown, Command::NotShown),
            (ToolKind::Search, None, &[], Command::NotShown, Command::NotShown),
            (ToolKind::Think, None, &[], Command::None, Command::None),
            // An input that was announced before the command was written does not show the command.
            (ToolKind::Execute, Some(&json!({"cwd": "/w"})), &[], Command::NotShown, Command::NotShown),
            (ToolKind::Execute, Some(&json!({})), &[], Command::NotShown, Command::NotShown),
            (
                ToolKind::Execute,
                Some(&json!({"code": "1"})),
                &[],
                Command::Among(vec!["1".into()]),
                Command::Among(vec!["1".into(), "rm -rf build".into()]),
            ),
            (ToolKind::Execute, Some(&json!("{\"command\": \"rm")), &[], Command::NotShown, Command::NotShown),
            (ToolKind::Execute, Some(&json!({"command": ""})), &[], Command::NotShown, Command::NotShown),
            (ToolKind::Other, Some(&json!({})), &[], Command::None, Command::None),
            (ToolKind::Read, Some(&json!({"id": 5})), &[], Command::None, Command::None),
        ] {
            let call = details(kind, input, locations);
            assert_eq!(call.command(&reading()), plain, "{kind} {input:?}");
            assert_eq!(call.command(&gemini), by_title, "{kind} {input:?} with titles that are commands");
        }
    }

    #[test]
    fn arguments_beside_a_command_are_part_of_the_command() {
        let seen = |command: &str| Command::Seen(command.to_owned());
        let among = |texts: &[&str]| Command::Among(texts.iter().map(|text| (*text).to_owned()).collect());
        for (input, command) in [
            (json!({"command": "rm", "args": ["-rf", "/"]}), seen("rm -rf /")),
            (json!({"cmd": "rm", "arguments": "-rf /"}), seen("rm -rf /")),
            (json!({"command": "rm", "argv": ["rm", "-rf", "/"]}), seen("rm -rf /")),
            (json!({"command": ["rm", "-rf"], "args": ["/"]}), seen("rm -rf /")),
            (json!({"command": ["kill", 9, 1]}), seen("kill 9 1")),
            (json!({"command": "", "cmd": "rm -rf /"}), seen("rm -rf /")),
            (json!({"command": [], "script": "rm -rf /"}), seen("rm -rf /")),
            (json!({"command": "ls", "args": {"a": 1}}), seen("ls")),
            (
                json!({"command": "rm", "args": {"flags": "-rf", "path": "src"}}),
                Command::With { command: "rm".into(), arguments: "-rf src".into() },
            ),
            (json!({"command": "ls", "cmd": "ls "}), seen("ls")),
            (json!({"command": "ls", "cmd": "rm x"}), among(&["ls", "rm x"])),
            (json!({"program": "rm", "args": ["-rf", "/"]}), among(&["rm -rf /", "rm", "-rf /", "-rf", "/"])),
            (json!({"run": {"exe": "rm", "args": ["x"]}}), among(&["rm x", "rm", "x"])),
        ] {
            assert_eq!(details(ToolKind::Execute, Some(&input), &[]).command(&reading()), command, "{input}");
        }
        let of_other = json!({"program": "rm", "args": ["x"]});
        assert_eq!(details(ToolKind::Other, Some(&of_other), &[]).command(&reading()), among(&["rm x", "rm", "x"]));
        // A call of an unknown kind may run a command, and beside other texts the title may be the command.
        let (code, number) = (json!({"code": "rm -rf x"}), json!({"x": 1}));
        let unknown = ReportedDetails { kind: None, ..details(ToolKind::Other, Some(&code), &[]) };
        assert_eq!(unknown.command(&reading()), among(&["rm -rf x"]));
        assert_eq!(unknown.paths(&reading()), Fact::NotShown);
        let titles = Reading { command_title: Some(Regex::new("(?s)^(.+)$").unwrap()), ..reading() };
        assert_eq!(details(ToolKind::Execute, Some(&code), &[]).command(&titles), among(&["rm -rf x", "rm -rf build"]));
        assert_eq!(details(ToolKind::Execute, Some(&number), &[]).command(&titles), among(&["rm -rf build"]));
        let many: serde_json::Map<String, Value> = (0..20_000).map(|n| (format!("k{n}"), json!("x"))).collect();
        let mut many = Value::Object(many);
        many["args"] = json!("a".repeat(10_000));
        assert_eq!(details(ToolKind::Execute, Some(&many), &[]).command(&reading()), Command::NotShown);
    }

    #[test]
    fn paths_are_seen_or_not_shown() {
        let here = [location("/w/a")];
        let diff = [FileDiff { path: "/w/b".into(), old: None, new: None }];
        let seen = |paths: &[&str]| Fact::Seen(paths.iter().map(|path| (*path).to_owned()).collect());
        for (kind, input, locations, paths) in [
            (ToolKind::Edit, Some(json!({"path": "/w/x"})), [].as_slice(), seen(&["x"])),
            (ToolKind::Edit, None, &here, seen(&["a"])),
            (ToolKind::Edit, None, &[], Fact::NotShown),
            (ToolKind::Edit, Some(json!({"blob": "x"})), &[], Fact::NotShown),
            (ToolKind::Move, Some(json!({"from": "/w/x", "to": "/w/y"})), &[], seen(&["x", "y"])),
            (ToolKind::Move, Some(json!({"path": "/w/x"})), &here, seen(&["a", "x"])),
            (ToolKind::Move, Some(json!({"path": "/w/x"})), &[], seen(&["x", view::UNREAD_PATH])),
            (ToolKind::Read, Some(json!("{\"path\": \"/w/")), &[], Fact::NotShown),
            (ToolKind::Execute, Some(json!({"command": "cat a"})), &[], seen(&[])),
            (ToolKind::Execute, None, &[], Fact::NotShown),
            (ToolKind::Search, Some(json!({"pattern": "x"})), &[], seen(&[])),
            (ToolKind::Search, Some(json!({"path": "/w/a", "glob": "*.x"})), &[], seen(&["a", "a/**/*.x"])),
            (ToolKind::Read, Some(json!({"include": "*.x"})), &[], Fact::NotShown),
            (ToolKind::Search, None, &[], Fact::NotShown),
            (ToolKind::Other, Some(json!({})), &[], seen(&[])),
            (ToolKind::Other, None, &[], Fact::NotShown),
        ] {
            assert_eq!(details(kind, input.as_ref(), locations).paths(&reading()), paths, "{kind} {input:?}");
        }
        let shown = ReportedDetails { diffs: &diff, ..details(ToolKind::Edit, None, &[]) };
        assert_eq!(shown.paths(&reading()), seen(&["b"]));
        let gemini = Reading { command_title: Some(Regex::new("(?s)^(.+)$").unwrap()), ..reading() };
        assert_eq!(details(ToolKind::Execute, None, &[]).paths(&gemini), seen(&[]));
    }
}
