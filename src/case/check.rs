//! Checks the rules for a case or a suite that the types do not express: keys that exclude each other, and
//! required folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::file::{CASE_ONLY, GitLayer, Layer, WorkspaceLayer, servers};
use super::{KnownFiles, Source, mcp_servers};
use crate::grader::Grader;
use crate::harness::HOME_IS_PRIVATE;
use crate::harness::catalog::is_path;
use crate::interaction::Interaction;
use crate::overlay::SkillSource;
use crate::paths;
use crate::values::{Fraction, PathGlob};
use crate::workspace;
use crate::yaml::{self, Step, StepPart, YamlError, words};

/// Returns all errors in a file that can be found without other files. Its paths are already absolute. With `starts_agents`, the
/// file may also set nothing that a trial refuses.
pub(super) fn check(source: &Source, layer: &Layer, is_suite: bool, starts_agents: bool) -> Vec<YamlError> {
    let mut checks = Checks { source, starts_agents, errors: Vec::new() };
    if is_suite {
        checks.suite();
    } else {
        checks.prompts(layer);
        checks.id(layer);
    }
    checks.texts(layer);
    if let Some(workspace) = &layer.workspace {
        checks.workspace(workspace);
    }
    checks.paths(layer);
    checks.limits(layer);
    checks.pass(layer);
    checks.interaction(layer);
    checks.servers(layer);
    checks.session(layer);
    checks.model(layer);
    checks.sandbox(layer);
    checks.snapshot(layer);
    checks.errors
}

/// Returns the errors of the quarantine of a case, by its merged layer.
pub(super) fn quarantine(own: &Source, merged: &Layer) -> Option<YamlError> {
    let quarantine = merged.quarantine.as_ref()?;
    let (steps, message, help): (&[Step<'_>], _, _) = match (merged.critical, quarantine.why.trim()) {
        (Some(true), _) => (
            &[Key("quarantine")],
            "a critical case cannot be in quarantine",
            "remove `quarantine` or `critical: true`, here or in its suite.yaml",
        ),
        (_, "") => (&[Key("quarantine"), Key("why")], "`why` is empty", "write why the verdicts do not count"),
        _ => return None,
    };
    let error = YamlError::at_steps(&own.shown, &own.text, steps, StepPart::Key, message.to_owned());
    Some(error.with_help(help))
}

struct Checks<'a> {
    source: &'a Source,
    starts_agents: bool,
    errors: Vec<YamlError>,
}

use Step::{Item, Key};

impl Checks<'_> {
    fn add(&mut self, steps: &[Step<'_>], part: StepPart, message: String, help: impl Into<String>) {
        let Source { shown, text, left_out, .. } = self.source;
        let steps = left_out.written(steps);
        self.errors.push(YamlError::at_steps(shown, text, &steps, part, message).with_help(help));
    }

    fn written(&self, key: &str) -> bool {
        yaml::find(&self.source.text, &[Key(key)], StepPart::Key).is_some()
    }

    fn suite(&mut self) {
        for key in CASE_ONLY {
            if self.written(key) {
                let message = format!("a suite.yaml takes no `{key}`");
                self.add(
                    &[Key(key)],
                    StepPart::Key,
                    message,
                    "write it in each case; a suite holds what its cases share",
                );
            }
        }
    }

    fn model(&mut self, layer: &Layer) {
        let Some(model) = &layer.model else { return };
        let help = "write `model: {script: FILE}` or `model: {cassette: FILE}`";
        match (&model.script, &model.cassette) {
            (Some(_), Some(_)) => {
                let message = "`model` has both `script` and `cassette`".to_owned();
                self.add(&[Key("model"), Key("cassette")], StepPart::Key, message, help);
            }
            (None, None) => {
                let message = "`model` names neither a `script` nor a `cassette`".to_owned();
                self.add(&[Key("model")], StepPart::Key, message, help);
            }
            (Some(_), None) if model.results.is_some() => {
                let message = "`results` is for a `cassette`; a script does not compare requests".to_owned();
                self.add(&[Key("model"), Key("results")], StepPart::Key, message, "remove it");
            }
            _ => {}
        }
    }

    fn prompts(&mut self, layer: &Layer) {
        match (&layer.prompt, &layer.turns) {
            (Some(_), Some(_)) => {
                let message = "the case has both `prompt` and `turns`".to_owned();
                self.add(&[Key("turns")], StepPart::Key, message, "keep one of them; `prompt` is a single turn");
            }
            (None, None) => {
                let at = if self.written("prompt") { "prompt" } else { "turns" };
                let help = "write `prompt: …`, or `turns: [first, second]`";
                let message = "the case has neither `prompt` nor `turns`".to_owned();
                if self.written(at) {
                    self.add(&[Key(at)], StepPart::Key, message, help);
                } else {
                    let Source { shown, text, .. } = self.source;
                    self.errors.push(YamlError::at(shown, text, None, message).with_help(help));
                }
            }
            (Some(prompt), None) if prompt.trim().is_empty() => {
                self.add(
                    &[Key("prompt")],
                    StepPart::Key,
                    "the prompt is empty".to_owned(),
                    "say what the agent should do",
                );
            }
            (None, Some(turns)) if turns.is_empty() => {
                self.add(&[Key("turns")], StepPart::Key, "`turns` is empty".to_owned(), "write at least one prompt");
            }
            (_, turns) => {
                for (number, turn) in turns.iter().flatten().enumerate() {
                    if turn.trim().is_empty() {
                        let message = "this turn is empty".to_owned();
                        self.add(
                            &[Key("turns"), Item(number)],
                            StepPart::Value,
                            message,
                            "say what the agent should do",
                        );
                    }
                }
            }
        }
    }

    fn id(&mut self, layer: &Layer) {
        if let Some(why) = layer.id.as_deref().and_then(wrong_id) {
            self.add(
                &[Key("id")],
                StepPart::Value,
                format!("the id {why}"),
                "write words joined by `-`, and `/` between parts",
            );
        }
    }

    fn texts(&mut self, layer: &Layer) {
        let lists = [("tags", Some(&layer.tags)), ("harnesses", layer.harnesses.as_ref())];
        for (key, list) in lists {
            for (number, word) in list.into_iter().flatten().enumerate() {
                if word.trim().is_empty() {
                    self.add(
                        &[Key(key), Item(number)],
                        StepPart::Value,
                        "a name is empty".to_owned(),
                        "write it, or remove it",
                    );
                }
            }
        }
        for (number, name) in layer.harnesses.iter().flatten().enumerate().filter(|(_, name)| is_path(name)) {
            self.exists(&[Key("harnesses"), Item(number)], Path::new(name), false);
        }
        for (name, value) in layer.env.iter().flatten() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("`{}` cannot name an environment variable", words::short(name));
                self.add(&[Key("env"), Key(name)], StepPart::Key, message, "a name is not empty and holds no `=`");
            } else if name == "HOME" && self.starts_agents {
                let help = "remove it; to give one command another home, write `HOME=FOLDER command`";
                self.add(&[Key("env"), Key(name)], StepPart::Key, HOME_IS_PRIVATE.to_owned(), help);
            } else if value.contains('\0') {
                let message = format!("the value of `{name}` holds a NUL character");
                self.add(&[Key("env"), Key(name)], StepPart::Value, message, "environment variables cannot hold it");
            } else if yaml::is_written_null(&self.source.text, &[Key("env"), Key(name)], value) {
                let message = format!("the value of `{}` is null", words::short(name));
                let help = "write `\"\"` for an empty value, or the word in quotes";
                self.add(&[Key("env"), Key(name)], StepPart::Value, message, help);
            }
        }
    }

    fn workspace(&mut self, workspace: &WorkspaceLayer) {
        let WorkspaceLayer { copy, git, files, ignore, protect, .. } = workspace;
        let named = [("copy", copy.is_some()), ("git", git.is_some()), ("files", files.is_some())];
        let sources: Vec<&str> = named.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        if let [first, second, ..] = sources.as_slice() {
            let message = format!("the workspace has two sources, `{first}` and `{second}`");
            self.add(&[Key("workspace"), Key(second)], StepPart::Key, message, "keep one of `copy`, `git` and `files`");
        }
        if let Some(git) = git {
            self.git(git);
        }
        for (key, globs) in [("ignore", ignore), ("protect", protect)] {
            for (number, glob) in globs.iter().flatten().enumerate() {
                let steps = [Key("workspace"), Key(key), Item(number)];
                match glob.parse::<PathGlob>() {
                    Err(error) => {
                        self.add(&steps, StepPart::Value, error, "`*` stays within a folder, `**` crosses folders");
                    }
                    // `/build` in `ignore` is a rule as in `.gitignore`.
                    Ok(parsed) if key == "protect" && !parsed.is_relative() => {
                        let message = format!("`{glob}` is not a path within the workspace, so it protects nothing");
                        self.add(&steps, StepPart::Value, message, "write it relative to the workspace: `tests/**`");
                    }
                    Ok(_) => {}
                }
            }
        }
        let names: Vec<&String> = files.iter().flatten().map(|(name, _)| name).collect();
        for name in &names {
            let steps = [Key("workspace"), Key("files"), Key(name)];
            if let Some(why) = paths::leaves(Path::new(name)) {
                let message = format!("the file `{}` {why}", words::short(name));
                self.add(
                    &steps,
                    StepPart::Key,
                    message,
                    "files are written inside the workspace: use a relative path without `..`",
                );
            } else if names.iter().any(|other| other != name && Path::new(name).starts_with(other)) {
                let message = format!("`{}` is in a folder that is also a file here", words::short(name));
                self.add(&steps, StepPart::Key, message, "rename one of them");
            }
        }
    }

    fn git(&mut self, git: &GitLayer) {
        let steps = [Key("workspace"), Key("git")];
        match (&git.path, &git.url) {
            (Some(_), Some(_)) => {
                let message = "the repository has both `path` and `url`".to_owned();
                self.add(&[steps[0], steps[1], Key("url")], StepPart::Key, message, "keep one of them");
            }
            (None, None) => {
                let message = "the repository has neither `path` nor `url`".to_owned();
                self.add(&steps, StepPart::Key, message, "write `path: …` for a folder, or `url: …`");
            }
            _ => {}
        }
        for (key, value) in [("url", &git.url), ("rev", &git.rev)] {
            if value.as_ref().is_some_and(|value| value.is_empty() || value.starts_with('-')) {
                let message = format!("`{key}` is empty, or looks like an option of git");
                self.add(&[steps[0], steps[1], Key(key)], StepPart::Value, message, "write what git should check out");
            }
        }
        if let Some(why) = git.subdir.as_deref().and_then(paths::leaves) {
            let message = format!("`subdir` {why}");
            self.add(
                &[steps[0], steps[1], Key("subdir")],
                StepPart::Value,
                message,
                "write a folder inside the repository",
            );
        }
    }

    fn paths(&mut self, layer: &Layer) {
        let workspace = layer.workspace.as_ref();
        let copy = workspace.and_then(|workspace| workspace.copy.as_ref());
        let oracle = layer.oracle.as_ref();
        if let Some(oracle) = oracle {
            let kinds = [("copy", &oracle.copy), ("script", &oracle.script), ("patch", &oracle.patch)];
            let named: Vec<&str> = kinds.iter().filter(|(_, path)| path.is_some()).map(|(key, _)| *key).collect();
            let message = match named.as_slice() {
                [] => Some("the oracle has none of `copy`, `script` and `patch`".to_owned()),
                [_] => None,
                [first, second, ..] => Some(format!("the oracle has both `{first}` and `{second}`")),
            };
            if let Some(message) = message {
                self.add(&[Key("oracle")], StepPart::Key, message, "keep one of them");
            }
        }
        let folders: [(&[Step<'_>], Option<&PathBuf>); 4] = [
            (&[Key("workspace"), Key("copy")], copy),
            (&[Key("workspace"), Key("git"), Key("path")], workspace.and_then(|w| w.git.as_ref()?.path.as_ref())),
            (&[Key("hidden")], layer.hidden.as_ref()),
            (&[Key("oracle"), Key("copy")], oracle.and_then(|oracle| oracle.copy.as_ref())),
        ];
        for (steps, folder) in folders {
            if let Some(folder) = folder {
                self.exists(steps, folder, true);
            }
        }
        // A workspace that cannot be copied stops a trial before the agent begins. Hidden files are laid after its work.
        if let Some(hidden) = layer.hidden.as_ref().filter(|hidden| hidden.is_dir())
            && let Err(error) = workspace::can_be_copied(hidden)
        {
            let help = "it is laid over the workspace, so its links have to stay in the folder";
            self.add(&[Key("hidden")], StepPart::Value, error.to_string(), help);
        }
        if copy.is_some_and(|copy| is_within(&self.source.file, copy)) {
            let message = "the workspace would contain this file".to_owned();
            let help = "put what the agent works on into a folder of its own beside the case";
            self.add(&[Key("workspace"), Key("copy")], StepPart::Value, message, help);
        }
        let laid: [(&[Step<'_>], Option<&PathBuf>); 2] = [
            (&[Key("hidden")], layer.hidden.as_ref()),
            (&[Key("oracle"), Key("copy")], oracle.and_then(|oracle| oracle.copy.as_ref())),
        ];
        let file = &{ self.source }.file;
        let holds_case = |folder: Option<&PathBuf>| folder.is_some_and(|folder| is_within(file, folder));
        for (steps, _) in laid.into_iter().filter(|(_, folder)| holds_case(*folder)) {
            let message = "the folder contains this file, which would be laid over the workspace".to_owned();
            let help = "name a folder of its own beside the case, which holds only these files";
            self.add(steps, StepPart::Value, message, help);
        }
        if let Some(script) = oracle.and_then(|oracle| oracle.script.as_ref()) {
            self.exists(&[Key("oracle"), Key("script")], script, false);
        }
        if let Some(patch) = oracle.and_then(|oracle| oracle.patch.as_ref()) {
            self.exists(&[Key("oracle"), Key("patch")], patch, false);
        }
        // A cassette may be recorded later.
        if let Some(script) = layer.model.as_ref().and_then(|model| model.script.as_ref()) {
            self.exists(&[Key("model"), Key("script")], script, false);
        }
        for (number, file) in layer.attachments.iter().flatten().enumerate() {
            self.exists(&[Key("attachments"), Item(number)], file, false);
        }
        let mut names: Vec<String> = Vec::new();
        for (number, entry) in layer.skills.iter().flatten().enumerate() {
            let steps = [Key("skills"), Item(number)];
            match SkillSource::read(entry) {
                Ok(skill) if names.contains(&skill.name) => {
                    let message = format!("two skills have the name `{}`", skill.name);
                    self.add(&steps, StepPart::Value, message, "remove one of them");
                }
                Ok(skill) => names.push(skill.name),
                Err(why) => {
                    let message = format!("`{}` is not a skill: {why}", paths::shown(&entry.path).display());
                    self.add(&steps, StepPart::Value, message, "write the path of a folder with a SKILL.md");
                }
            }
        }
        if let Some(file) = layer.instructions.as_ref().and_then(|it| it.file.as_ref()) {
            self.exists(&[Key("instructions")], file, false);
        }
    }

    fn exists(&mut self, steps: &[Step<'_>], path: &Path, folder: bool) {
        let what = if folder { "folder" } else { "file" };
        let shown = paths::shown(path);
        let shown = shown.display();
        let message = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() == folder => return,
            Ok(_) => format!("`{shown}` is not a {what}"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                format!("the {what} `{shown}` does not exist")
            }
            Err(error) => format!("the {what} `{shown}` could not be read: {error}"),
        };
        self.add(steps, StepPart::Value, message, "paths are relative to the file they are written in");
    }

    fn limits(&mut self, layer: &Layer) {
        let Some(limits) = &layer.limits else { return };
        for (key, time) in [("time", limits.time), ("idle", limits.idle)] {
            if time.is_some_and(|time| time.0.is_zero()) {
                let message = format!("the limit `{key}` is 0, so no agent could answer");
                self.add(&[Key("limits"), Key(key)], StepPart::Value, message, "write more, or remove the limit");
            }
        }
    }

    fn pass(&mut self, layer: &Layer) {
        if layer.pass.as_ref().and_then(|pass| pass.threshold) == Some(Fraction::ZERO) {
            let message = "a threshold of 0 asserts nothing: every trial would reach it".to_owned();
            self.add(
                &[Key("pass"), Key("threshold")],
                StepPart::Value,
                message,
                "write a number above 0, and at most 1",
            );
        }
    }

    fn interaction(&mut self, layer: &Layer) {
        let Some(Interaction::Scripted(scripted)) = &layer.interaction else { return };
        let rules = [Key("interaction"), Key("scripted"), Key("rules")];
        for (number, rule) in scripted.rules.iter().enumerate() {
            let [a, b, c] = rules;
            if rule.when.nth == Some(0) {
                let steps = [a, b, c, Item(number), Key("when"), Key("nth")];
                self.add(&steps, StepPart::Value, "`nth` counts from 1".to_owned(), "write 1 for the first request");
            }
        }
    }

    fn servers(&mut self, layer: &Layer) {
        let steps = [Key("mcp-servers")];
        let help = "write `- {name: …, command: …, args: […]}` for each";
        match &layer.mcp_servers {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => {
                for (number, server) in list.iter().enumerate() {
                    if !server.get("name").is_some_and(Value::is_string) {
                        let message = "an MCP server has no `name`".to_owned();
                        self.add(&[steps[0], Item(number)], StepPart::Value, message, help);
                    }
                    self.server(&[steps[0], Item(number)], server);
                }
            }
            Some(Value::Object(map)) => {
                for (name, server) in map {
                    if !server.is_object() {
                        let message = format!("the MCP server `{}` is not a map", words::short(name));
                        self.add(&[steps[0], Key(name)], StepPart::Value, message, help);
                    }
                    self.server(&[steps[0], Key(name)], server);
                }
            }
            Some(_) => self.add(&steps, StepPart::Value, "`mcp-servers` must be a list".to_owned(), help),
        }
    }

    fn server(&mut self, steps: &[Step<'_>], server: &Value) {
        for wrong in mcp_servers::wrong(server, false) {
            let mut steps = steps.to_vec();
            steps.extend(wrong.key.as_deref().map(Key));
            self.add(&steps, StepPart::Key, wrong.message, wrong.help);
        }
    }

    fn session(&mut self, layer: &Layer) {
        let mode = layer.session.as_ref().and_then(|session| session.mode.as_ref());
        if mode.is_some_and(|mode| mode.trim().is_empty()) {
            let help = "write the id of one of the agent's modes, or remove it";
            self.add(&[Key("session"), Key("mode")], StepPart::Value, "the mode is empty".to_owned(), help);
        }
    }

    /// Checks the groups of replacements: a group that the regular expression does not have would be replaced
    /// by nothing.
    fn snapshot(&mut self, layer: &Layer) {
        let rules = layer.snapshot.as_ref().and_then(|snapshot| snapshot.normalise.as_ref());
        for (number, rule) in rules.into_iter().flatten().enumerate() {
            let regex = &rule.regex.0;
            let is_known = |group: &str| match group.parse::<usize>() {
                Ok(number) => number < regex.captures_len(),
                Err(_) => regex.capture_names().flatten().any(|name| name == group),
            };
            let Some(wrong) = references(&rule.with).into_iter().find(|it| !is_known(it.group)) else { continue };
            let steps = [Key("snapshot"), Key("normalise"), Item(number), Key("with")];
            let message = format!("`{}` is not a group of the regex", words::short(wrong.written));
            // `$1a` is read as the group `1a`.
            let digits = wrong.group.len() - wrong.group.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let meant = wrong.group.get(..digits).filter(|number| digits < wrong.group.len() && is_known(number));
            let help = match meant.filter(|_| !wrong.written.starts_with("${")) {
                Some(number) => {
                    let more = wrong.group.get(digits..).unwrap_or_default();
                    format!("for group {number} and then `{more}` write `${{{number}}}{more}`; {}", groups(regex))
                }
                None => groups(regex),
            };
            self.add(&steps, StepPart::Value, message, help);
        }
    }

    fn sandbox(&mut self, layer: &Layer) {
        for (number, mount) in layer.sandbox.iter().flat_map(|sandbox| &sandbox.mount).enumerate() {
            if !mount.path.starts_with("~") && !mount.path.exists() {
                let message = format!("`{}` does not exist", paths::shown(&mount.path).display());
                let steps = [Key("sandbox"), Key("mount"), Item(number), Key("path")];
                self.add(
                    &steps,
                    StepPart::Value,
                    message,
                    "paths are relative to the file they are written in; `~/` is your home",
                );
            }
        }
    }
}

/// A part of a replacement that refers to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reference<'a> {
    /// The text of the reference, including its dollar sign.
    written: &'a str,
    /// The name or number of the group.
    group: &'a str,
}

/// Returns the groups that a replacement refers to, as the regex engine reads it: `$1`, `$name` and `${name}`;
/// `$$` is a dollar sign, and so is a `$` followed by none of these.
fn references(with: &str) -> Vec<Reference<'_>> {
    let mut found = Vec::new();
    let mut rest = with;
    while let Some(at) = rest.find('$') {
        let after = &rest[at + 1..];
        let (group, length) = if after.starts_with('$') {
            ("", 1)
        } else if let Some((group, _)) = after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            (group, group.len() + 2)
        } else {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            (&after[..end], end)
        };
        let is_group = length > 0 && !after.starts_with('$');
        found.extend(is_group.then(|| Reference { written: &rest[at..at + 1 + length], group }));
        rest = &after[length..];
    }
    found
}

/// Returns the groups of a regular expression as a replacement names them.
fn groups(regex: &Regex) -> String {
    let mut known: Vec<String> = (1..regex.captures_len()).map(|number| format!("`${number}`")).collect();
    known.extend(regex.capture_names().flatten().map(|name| format!("`${{{name}}}`")));
    let those = if known.is_empty() { "no group".to_owned() } else { known.join(", ") };
    format!("the regex has {those}; `$0` is the whole match, `$$` a dollar sign")
}

/// Returns a path without links, or as it is if it does not exist.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the files that graders read or run. Their paths are absolute.
pub(super) fn files_of_graders<'a>(graders: impl IntoIterator<Item = &'a Grader>) -> impl Iterator<Item = &'a Path> {
    // A word of a command that names no file beside the case is relative.
    graders.into_iter().flat_map(|grader| grader.kind.spec().named_files()).filter(|file| file.is_absolute())
}

/// The folders of a skill that its agent needs: cases in one of them do not make it a folder of cases.
const PARTS_OF_SKILL: [&str; 12] = [
    "agents",
    "assets",
    "bin",
    "examples",
    "lib",
    "prompts",
    "reference",
    "references",
    "resources",
    "scripts",
    "src",
    "templates",
];

/// Returns the folder directly within a skill's folder that holds one of these files: the first of them counts. It is left out
/// whole, because it may hold further cases. Further folders of the skill that hold cases follow: the skill would show the agents
/// of one folder what the other one expects. Empty if the first folder is a part that the agent needs.
pub(super) fn evals_in<'a>(
    skill: &Path,
    files: impl IntoIterator<Item = &'a Path>,
    known: &KnownFiles,
) -> Vec<PathBuf> {
    let skill = resolved(skill);
    let first = files.into_iter().find_map(|file| {
        let folder = resolved(file.parent()?);
        let below = folder.strip_prefix(&skill).ok()?;
        below.components().next().map(|first| PathBuf::from(first.as_os_str()))
    });
    let is_needed = |folder: &Path| PARTS_OF_SKILL.iter().any(|part| folder == Path::new(part));
    let Some(first) = first.filter(|folder| !is_needed(folder)) else { return Vec::new() };
    let with_cases = known.folders_with_cases(&skill, |folder| !is_needed(folder));
    let others: Vec<PathBuf> = with_cases.iter().filter(|folder| **folder != first).cloned().collect();
    std::iter::once(first).chain(others).collect()
}

/// Returns true if a path is in a folder. Either of them may be a link.
fn is_within(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) || resolved(path).starts_with(resolved(folder))
}

/// Returns an error for each MCP server that an agent could not reach, or in two ways: a suite and a case may each hold a part of
/// one. The layer is merged; the last source is the case.
pub(super) fn unreachable_servers(sources: &[Arc<Source>], layer: &Layer) -> Vec<YamlError> {
    let listed = servers(layer.mcp_servers.clone());
    let wrong = listed.iter().enumerate().filter_map(|(number, server)| {
        let message = mcp_servers::wrong(server, true).into_iter().find(|wrong| wrong.is_of_several)?;
        let name = server.get("name").and_then(Value::as_str).unwrap_or_default();
        let places: [&[Step<'_>]; 3] =
            [&[Key("mcp-servers"), Key(name)], &[Key("mcp-servers"), Item(number)], &[Key("mcp-servers")]];
        let is_there = |source: &Source, steps: &[Step<'_>]| yaml::find(&source.text, steps, StepPart::Value).is_some();
        let has_both = |source: &Source| {
            let has = |steps: &[Step<'_>], key: &'static str| {
                let mut steps = steps.to_vec();
                steps.push(Key(key));
                is_there(source, &steps)
            };
            places.iter().any(|steps| has(steps, "command") && has(steps, "url"))
        };
        // Such a file has its own error.
        if message.key.is_some() && sources.iter().any(|source| has_both(source)) {
            return None;
        }
        let (source, steps) = sources
            .iter()
            .rev()
            .find_map(|source| places.iter().find(|steps| is_there(source, steps)).map(|steps| (source, *steps)))?;
        let error = YamlError::at_steps(&source.shown, &source.text, steps, StepPart::Value, message.message);
        Some(error.with_help(message.help))
    });
    wrong.collect()
}

/// Returns an error for each file that the agent must not see and would find in its workspace, or in a skill, an instruction file
/// or an attachment. The layer is merged; the sources are ordered from the outermost suite to the case. A workspace may contain
/// files of graders: a grader may ask whether the agent left a file as it was.
pub(super) fn leaks(sources: &[Arc<Source>], layer: &Layer, graders: &[Grader], known: &KnownFiles) -> Vec<YamlError> {
    let copy = layer.workspace.as_ref().and_then(|workspace| workspace.copy.as_ref());
    let oracle = layer.oracle.as_ref();
    let kept: [(&[Step<'_>], _); 4] = [
        (&[Key("hidden")], layer.hidden.as_ref()),
        (&[Key("oracle"), Key("copy")], oracle.and_then(|oracle| oracle.copy.as_ref())),
        (&[Key("oracle"), Key("script")], oracle.and_then(|oracle| oracle.script.as_ref())),
        (&[Key("oracle"), Key("patch")], oracle.and_then(|oracle| oracle.patch.as_ref())),
    ];
    let mut errors = Vec::new();
    for (steps, folder) in kept {
        let (Some(folder), Some(copy)) = (folder, copy) else { continue };
        let (shown, works_in) = (paths::shown(folder), paths::shown(copy));
        let (message, help) = if is_within(folder, copy) {
            let message = format!("`{}` is in the folder that the agent works in", shown.display());
            (message, "put it beside that folder, where the agent cannot read it")
        } else if is_within(copy, folder) {
            let (shown, works_in) = (shown.display(), works_in.display());
            let message = format!("`{shown}` contains the folder that the agent works in, `{works_in}`");
            (message, "put what the agent works on into a folder of its own beside this one")
        } else {
            continue;
        };
        let Some(source) = innermost(sources, steps) else { continue };
        let error = YamlError::at_steps(&source.shown, &source.text, steps, StepPart::Value, message);
        errors.push(error.with_help(help));
    }
    let skills = layer.skills.iter().flatten().map(|entry| entry.path.as_path());
    let skills = skills.enumerate().map(|(number, path)| (vec![Key("skills"), Item(number)], path));
    let attachments = layer.attachments.iter().flatten().map(PathBuf::as_path);
    let attachments = attachments.enumerate().map(|(number, path)| (vec![Key("attachments"), Item(number)], path));
    let instructions = layer.instructions.iter().filter_map(|it| it.file.as_deref());
    let instructions = instructions.map(|path| (vec![Key("instructions")], path));
    let file = sources.last().map(|source| source.file.as_path());
    for (steps, path) in skills.chain(attachments).chain(instructions) {
        let (is_skill, is_attachment) = (steps.starts_with(&[Key("skills")]), steps.starts_with(&[Key("attachments")]));
        let files = sources.iter().map(|source| source.file.as_path());
        let evals = if is_skill { evals_in(path, files, known) } else { Vec::new() };
        // A grader may ask whether the agent copied an attachment, but not attach the check itself.
        let of_graders = graders.iter().filter(|grader| !is_attachment || grader.kind.spec().runs_named_files());
        let own = kept.iter().filter_map(|(_, own)| own.map(PathBuf::as_path)).chain(files_of_graders(of_graders));
        let Some(source) = innermost(sources, steps.get(..1).unwrap_or_default()) else { continue };
        let of_suite = file.filter(|file| *file != source.file && is_within(file, path));
        let message = match of_suite.filter(|_| evals.is_empty()) {
            // The same for each case of a suite, so it is reported once.
            Some(_) => Some(format!("`{}` contains cases whose agents get it", paths::shown(path).display())),
            None => shows(path, &evals, file.into_iter().chain(own)),
        };
        let Some(message) = message else { continue };
        let steps = source.left_out.written(&steps);
        let error = YamlError::at_steps(&source.shown, &source.text, &steps, StepPart::Value, message);
        errors.push(error.with_help(KEEP_APART));
    }
    errors
}

/// The help for a file or folder that would show the agent files of its case.
pub const KEEP_APART: &str = "give the agent a file or folder of its own, without files of the case or its graders; a \
                              skill may have a folder of its cases, such as `evals`, which is not laid";

/// Returns the innermost file that sets a key.
fn innermost<'a>(sources: &'a [Arc<Source>], steps: &[Step<'_>]) -> Option<&'a Arc<Source>> {
    sources.iter().rev().find(|source| yaml::find(&source.text, steps, StepPart::Value).is_some())
}

/// Returns why a file or folder cannot be given to an agent, if it cannot: it contains a file that the agent must not see, or is a
/// part of such a folder. `kept` are the files and folders that the agent must not see; `evals` are the parts of the given folder
/// that the agent does not get.
pub(super) fn shows<'a>(given: &Path, evals: &[PathBuf], kept: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    let real = resolved(given);
    let left_out: Vec<PathBuf> = evals.iter().map(|evals| real.join(evals)).collect();
    let mut kept = kept.into_iter().filter(|kept| !left_out.iter().any(|folder| is_within(kept, folder)));
    kept.find_map(|kept| {
        let of_kept = resolved(kept);
        let (shown, own) = (paths::shown(given), paths::shown(kept));
        let (shown, own) = (shown.display(), own.display());
        if real == of_kept {
            Some(format!("the agent must not see `{shown}`, which belongs to its case"))
        } else if kept.starts_with(given) || of_kept.starts_with(&real) {
            Some(format!("`{shown}` contains `{own}`, which the agent must not see"))
        } else if given.starts_with(kept) || real.starts_with(&of_kept) {
            Some(format!("`{shown}` is in `{own}`, which the agent must not see"))
        } else {
            None
        }
    })
}

/// Returns why a text cannot be the id of a case, if it cannot. Folders are named after the id.
pub(super) fn wrong_id(id: &str) -> Option<&'static str> {
    if id.trim().is_empty() {
        Some("is empty")
    } else if id.chars().any(char::is_control) {
        Some("holds a control character")
    } else if id.split('/').any(|part| part == "." || part == "..") {
        Some("has `.` or `..` as a part")
    } else if id.split('/').any(|part| part.trim().is_empty()) {
        Some("has an empty part")
    } else {
        None
    }
}
