//! Decides which commands of a session can be graders for another session: those that check something, that were shown to
//! succeed, and that mean the same on another machine. Pure.

use std::collections::BTreeSet;

use crate::command_line::{SimpleCommand, is_option_of_text, is_shell, simple_commands};
use crate::text::shell_word;
use crate::values::is_hidden;

mod options;
pub mod read_only;
pub mod set_ups;

/// The reason why a command cannot become a grader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The command hides the exit code of the check.
    #[error("its exit code is not that of the check because of `{0}`, so it is unknown whether the check passed")]
    HidesExitCode(&'static str),
    /// The command does more than check.
    #[error("it does more than check: as a grader it could do a part of the work itself")]
    DoesMore,
    /// The command names a path of the machine on which the session ran.
    #[error("it names an absolute path of the machine on which the session ran")]
    NamesMachine,
    /// The command enters a folder outside the workspace.
    #[error("it runs in a folder outside the workspace")]
    RunsElsewhere,
    /// An earlier command may have left the shell in another folder.
    #[error("an earlier command changed the folder of the shell, so the session does not show where it ran")]
    UnknownFolder,
    /// The command continues after the call ended.
    #[error("it ran in the background, so the session does not show how it ended")]
    RunsOn,
    /// The command has an option, a variable or a word that may change the meaning of the check.
    #[error("with `{0}` it may check less than its name says, or do a part of the work")]
    Changed(String),
    /// A part of the command was masked.
    #[error("a secret in it was redacted, so the text is not the command that ran")]
    Masked,
    /// The command has characters that are not shown.
    #[error("it has characters that are not shown")]
    Hidden,
    /// The command has a word such as `test`, and a program that is not known.
    #[error("it looks like a check of a program that evals does not know")]
    UnknownCheck,
    /// The command is a check in a form that is not read.
    #[error("it looks like a check in a form that evals does not read: a loop, a condition, or the input of a shell")]
    UnreadForm,
    /// Shells read the command line in different ways.
    #[error("shells read it in different ways, so another shell may run other commands")]
    Unread,
}

/// The purpose of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Builds the code, or checks it without running it.
    Builds,
    /// Runs tests.
    Tests,
}

/// A command that can be a grader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The command line, to be run in the workspace. It enters the folders itself: `cd FOLDER && …`.
    pub line: String,
    /// The folders in which its commands run, relative to the workspace; empty for the workspace itself.
    pub folders: Vec<String>,
    /// The purpose of the command.
    pub purpose: Purpose,
    /// True if a part of the original is not in the line, and may be what failed: `cd build && cd .. && pytest`.
    pub leaves_out: bool,
    /// The shells within the original that read other settings than the one of the agent, such as login shells.
    pub shells: String,
    /// The names of the programs that the line may run.
    pub programs: Vec<String>,
}

/// Returns the check that a command line is, or the reason why it cannot be a grader; `None` if it checks nothing.
/// `workspace` is the folder of the session.
pub fn check(line: &str, workspace: Option<&str>) -> Option<Result<Check, Unfit>> {
    let parts = parts(line);
    if parts.iter().any(|part| part.is_unread && mentions_check(&part.text)) {
        return Some(Err(Unfit::Unread));
    }
    // A command that checks nothing is no candidate at all, whatever else is wrong with it.
    let Some(purpose) = parts.iter().filter_map(|part| purpose(&part.words)).max() else {
        if parts.iter().any(is_in_other_form) || feeds_shell(&parts) {
            return Some(Err(Unfit::UnreadForm));
        }
        let is_like_one = parts.iter().any(|part| looks_like_check(&part.words));
        return is_like_one.then_some(Err(Unfit::UnknownCheck));
    };
    Some(fit(line, &parts, workspace).map(|check| Check { purpose, ..check }))
}

/// Returns a command line as one that first enters a folder.
pub fn within(folder: &str, line: &str) -> String {
    format!("cd {} && {}", shell_word(folder), with_quoted_script(line.trim()))
}

/// Programs whose words are no command, because the programs only read.
const READERS: [&str; 23] = [
    "cat", "ls", "head", "tail", "grep", "rg", "find", "wc", "pwd", "echo", "which", "stat", "file", "tree", "nl",
    "cd", "less", "du", "env", "printenv", "type", "true", "set",
];

/// Returns true if a file decides what a check does: settings of its runner, or the file in which its task is written. A
/// change of it may be why the check passes.
pub fn decides(path: &str, check: &Check) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let runs = |names: &[&str]| check.programs.iter().any(|program| names.contains(&program.as_str()));
    let is = |names: &[&str]| names.contains(&name);
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    const NODE: [&str; 9] = ["npm", "pnpm", "yarn", "bun", "jest", "vitest", "mocha", "ava", "playwright"];
    let of_python = ["pytest", "py.test", "tox", "nox", "nose", "nosetests", "behave", "hatch", "coverage"];
    let linters = ["flake8", "pylint", "mypy", "pyright", "ruff", "black", "isort", "eslint", "prettier", "tsc"];
    const OF_BAZEL: [&str; 9] = [
        "BUILD",
        "BUILD.bazel",
        "WORKSPACE",
        "WORKSPACE.bazel",
        "WORKSPACE.bzlmod",
        "MODULE.bazel",
        ".bazelrc",
        ".bazelversion",
        ".bazelignore",
    ];
    (is(&["pytest.ini", ".pytest.ini", "tox.ini", "noxfile.py", "conftest.py", "setup.cfg", "pyproject.toml"])
        && runs(&of_python))
        || (begins(&[".coveragerc"]) && runs(&["coverage", "pytest", "py.test"]))
        || (is(&["hatch.toml"]) && runs(&["hatch"]))
        || (is(&["manage.py"]) && runs(&["manage.py"]))
        || (is(&OF_BAZEL) && runs(&["bazel", "bazelisk"]))
        || (is(&["package.json"]) && runs(&NODE))
        || (begins(&["jest.config", "vitest.config", "vite.config", ".mocharc", "playwright.config"]) && runs(&NODE))
        || (is(&["Makefile", "makefile", "GNUmakefile"]) && runs(&["make"]))
        || (is(&["justfile", "Justfile"]) && runs(&["just"]))
        || (begins(&["Taskfile"]) && runs(&["task"]))
        || (is(&["Rakefile"]) && runs(&["rake"]))
        || (is(&["composer.json"]) && runs(&["composer"]))
        || (begins(&["phpunit.xml"]) && runs(&["phpunit", "composer", "artisan"]))
        || (begins(&["build.gradle", "settings.gradle"]) && runs(&["gradle", "gradlew"]))
        || (is(&["pom.xml"]) && runs(&["mvn", "mvnw"]))
        || (is(&["clippy.toml", ".clippy.toml"]) && runs(&["clippy"]))
        || (runs(&linters)
            && (is(&["setup.cfg", "tox.ini", "pyproject.toml", "mypy.ini", "ruff.toml", ".ruff.toml"])
                || begins(&[
                    ".flake8",
                    ".pylintrc",
                    ".eslint",
                    "eslint.config",
                    ".prettier",
                    "prettier.config",
                    "tsconfig",
                ])))
}

/// Returns the names of the programs that a command line may run.
fn programs_of(line: &str) -> Vec<String> {
    let mut programs: Vec<String> = Vec::new();
    for part in split(line) {
        let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
        // `python3 -m coverage run -m pytest` runs pytest, and so does `hatch run pytest`.
        let before = words.len() - itself(&words).len();
        programs.extend(words.iter().take(before + 6).map(|word| name_of(word).to_owned()));
    }
    programs
}

/// Returns true if a file decides what a check does and nothing else: commands of a session that add packages change other
/// ones, such as `package.json`, and new files of code are named in `BUILD`.
pub fn configures(path: &str, check: &Check) -> bool {
    const ALSO_FOR_PACKAGES: [&str; 14] = [
        "package.json",
        "pyproject.toml",
        "hatch.toml",
        "setup.cfg",
        "composer.json",
        "pom.xml",
        "conftest.py",
        "tsconfig.json",
        "BUILD",
        "BUILD.bazel",
        "WORKSPACE",
        "WORKSPACE.bazel",
        "WORKSPACE.bzlmod",
        "MODULE.bazel",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    decides(path, check) && !ALSO_FOR_PACKAGES.contains(&name) && !name.contains(".gradle")
}

/// Returns the folders in the workspace that a command line makes working trees of their own, relative to it.
pub fn working_trees(line: &str, workspace: Option<&str>) -> Vec<String> {
    let mut folder = String::new();
    let mut found = Vec::new();
    for part in parts(line) {
        let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
        let paths = match bare(&words) {
            ["cd", target] => {
                folder = entered(&folder, target, workspace).unwrap_or_else(|_| "..".to_owned());
                continue;
            }
            // The words may be a branch or a path.
            ["git", "worktree", "add", rest @ ..] | ["git", "clone", rest @ ..] => rest,
            _ => continue,
        };
        let paths = paths.iter().filter(|word| !word.starts_with('-'));
        found.extend(paths.filter_map(|path| entered(&folder, path, workspace).ok()).filter(|path| !path.is_empty()));
    }
    found
}

/// Returns true if a shell that stays open is in another folder than the workspace after a command line, false if it is
/// in the workspace, and `None` if the line does not change the folder.
pub fn leaves_workspace(line: &str, workspace: Option<&str>) -> Option<bool> {
    let parts = split(&unwrapped(line.trim()));
    // What these run may change the folder.
    let runs_text = |part: &Part| {
        let first = part.words.first().map(String::as_str);
        part.is_compound || matches!(first, Some("eval" | "builtin" | "source" | "." | "if" | "for" | "while" | "case"))
    };
    if parts.iter().any(runs_text) && line.contains("cd") || parts.iter().any(|part| sources(&part.words)) {
        return Some(true);
    }
    let moves = parts
        .iter()
        .rev()
        .find(|part| matches!(part.words.first().map(String::as_str), Some("cd" | "pushd" | "popd")))?;
    let target = moves.words.get(1).map(|target| target.trim_end_matches('/'));
    Some(target.is_none() || target != workspace.map(|it| it.trim_end_matches('/')))
}

/// Returns the check that the parts of a line are, as one that builds.
fn fit(line: &str, parts: &[Part], workspace: Option<&str>) -> Result<Check, Unfit> {
    if line.contains("[redacted") {
        return Err(Unfit::Masked);
    }
    if line.chars().any(|c| is_hidden(c) || (c.is_control() && !matches!(c, '\n' | '\t'))) {
        return Err(Unfit::Hidden);
    }
    // What comes after the check and cannot fail does not decide how the line ends.
    let end = parts.iter().rposition(|part| !only_follows(&part.words, workspace)).map_or(0, |last| last + 1);
    let mut grader_line = GraderLine::default();
    for (number, part) in parts.iter().enumerate() {
        grader_line.begin(part);
        let is_alone = number.checked_sub(1).is_none_or(|before| parts[before].after != Some("&&"));
        grader_line.check_operator(part, is_alone, number + 1 == parts.len())?;
        if number >= end {
            grader_line.leave_out(part);
            continue;
        }
        grader_line.add(part, workspace)?;
        grader_line.folders.close(part);
    }
    // The folder that a last `cd` enters may be what was missing.
    let ends_elsewhere = end.checked_sub(1).is_some_and(|last| parts[last].words.first().is_some_and(|it| it == "cd"));
    if grader_line.commands.is_empty() || ends_elsewhere {
        return Err(Unfit::DoesMore);
    }
    let line = grader_line.text(workspace)?;
    if parts.iter().any(|part| part.text.contains('~')) {
        return Err(Unfit::NamesMachine);
    }
    let leaves_out = grader_line.leaves_out || !grader_line.uses_visited_folders();
    let folders = grader_line.commands.into_iter().map(|commands| commands.folder).collect();
    let programs = programs_of(&line);
    let shells = grader_line.shells.join(" ");
    Ok(Check { line, folders, purpose: Purpose::Builds, leaves_out, shells, programs })
}

/// The commands that run one after the other in one folder.
#[derive(Debug)]
struct FolderCommands {
    folder: String,
    texts: Vec<String>,
}

/// The line of a grader, made of the parts of a session's line from left to right.
#[derive(Debug, Default)]
struct GraderLine<'a> {
    /// The folder of the current part.
    folders: Folders,
    /// The commands of each folder, in the order in which they run.
    commands: Vec<FolderCommands>,
    /// The depth of shells at which the first failure ends the line.
    stops_at: Option<usize>,
    /// A variable that a command in a folder below the workspace sets.
    set_below: Option<String>,
    /// A variable that a shell within the line sets, with the depth of the shell.
    set_within: Option<(usize, String)>,
    /// A variable that such a shell set, if the shell has ended.
    set_before: Option<String>,
    /// The folders that the line enters.
    visited: BTreeSet<String>,
    /// True if a part is not in the line, and may be what failed.
    leaves_out: bool,
    /// The shells that run the commands, without repetition.
    shells: Vec<&'a str>,
}

impl<'a> GraderLine<'a> {
    /// Begins a part: leaves the shells that ended before it, and enters those that begin with it.
    fn begin(&mut self, part: &Part) {
        let depth = self.folders.outer.len();
        if self.set_before.is_none() {
            let ended = self.set_within.as_ref().filter(|(within, _)| *within > depth);
            self.set_before = ended.map(|(_, variable)| variable.clone());
        }
        self.stops_at = self.stops_at.filter(|stops_at| *stops_at <= depth);
        self.folders.open(part);
    }

    /// Returns an error if the operator after a part hides its exit code. `is_alone` is true if no `&&` is before the part.
    fn check_operator(&self, part: &Part, is_alone: bool, is_last: bool) -> Result<(), Unfit> {
        // What comes after the last command of a shell is in the shell around it.
        let stops = self.stops_at == self.folders.outer.len().checked_sub(part.closes) && is_alone;
        match part.after {
            Some("&&") | None => Ok(()),
            Some("&") => Err(Unfit::RunsOn),
            // A last `;` or line end changes nothing.
            Some(";" | "\n") if is_last || stops => Ok(()),
            Some(";" | "\n") if sets_options(part, self.commands.is_empty()).is_some() => Ok(()),
            Some(operator) => Err(Unfit::HidesExitCode(hides_name(operator))),
        }
    }

    /// Leaves out a part after the check.
    fn leave_out(&mut self, part: &Part) {
        // To enter a folder above fails no more than the session itself.
        self.leaves_out |= match part.words.as_slice() {
            [cd, target] if cd == "cd" => target == "-" && self.folders.before.is_none(),
            _ => true,
        };
    }

    /// Adds a part: options of its shell, the folder that it enters, or its command.
    fn add(&mut self, part: &'a Part, workspace: Option<&str>) -> Result<(), Unfit> {
        if part.is_unread || part.is_of_bash {
            return Err(Unfit::Unread);
        }
        if part.writes_file || part.is_compound {
            return Err(Unfit::DoesMore);
        }
        if let Some(around) = &part.around {
            return Err(Unfit::Changed(around.clone()));
        }
        if let Some(stops) = sets_options(part, self.commands.is_empty()) {
            self.stops_at = stops.then_some(self.folders.outer.len()).or(self.stops_at);
            return Ok(());
        }
        match part.words.as_slice() {
            [cd, target] if cd == "cd" => self.enter(target, workspace),
            _ => self.add_command(part),
        }
    }

    fn enter(&mut self, target: &str, workspace: Option<&str>) -> Result<(), Unfit> {
        self.folders.enter(target, workspace)?;
        self.visited.insert(self.folders.here.clone());
        let mut steps = target.split('/').skip_while(|step| matches!(*step, ".." | "." | ""));
        self.leaves_out |= steps.any(|step| step == "..");
        Ok(())
    }

    fn add_command(&mut self, part: &'a Part) -> Result<(), Unfit> {
        if purpose(&part.words).is_none() && !is_harmless(&part.words) {
            return Err(Unfit::DoesMore);
        }
        if part.words.iter().any(|word| leaves(word)) {
            return Err(Unfit::RunsElsewhere);
        }
        if let Some(word) = options::unknown(&part.words) {
            return Err(Unfit::Changed(word.to_owned()));
        }
        if let Some(variable) = &self.set_before {
            return Err(Unfit::Changed(variable.clone()));
        }
        // A keyword of some shells, and no program.
        let text = part.text.trim();
        let text = text.strip_prefix("time ").unwrap_or(text).trim_start();
        if !self.shells.contains(&part.shell.as_str()) {
            self.shells.push(&part.shell);
        }
        match self.commands.last_mut() {
            Some(commands) if commands.folder == self.folders.here => commands.texts.push(text.to_owned()),
            _ => {
                // The command of a folder is in parentheses, which variables do not leave.
                if let Some(variable) = &self.set_below {
                    return Err(Unfit::Changed(variable.clone()));
                }
                self.commands.push(FolderCommands { folder: self.folders.here.clone(), texts: vec![text.to_owned()] });
            }
        }
        if sets_variables(&part.words) {
            let depth = self.folders.outer.len();
            if self.set_within.as_ref().is_none_or(|(known, _)| *known < depth) {
                self.set_within = Some((depth, text.to_owned()));
            }
            if !self.folders.here.is_empty() {
                self.set_below = Some(text.to_owned());
            }
        }
        Ok(())
    }

    /// Returns the text of the line, in which each folder is entered from the workspace.
    fn text(&self, workspace: Option<&str>) -> Result<String, Unfit> {
        let workspace = workspace.map(|it| it.trim_end_matches('/')).filter(|it| !it.is_empty());
        let is_one = self.commands.len() == 1;
        let mut lines = Vec::new();
        for FolderCommands { folder, texts } in &self.commands {
            let mut text = texts.join(" && ");
            if let Some(workspace) = workspace {
                // Within a folder of the workspace, its other files are not where a relative path would find them.
                if folder.is_empty() {
                    text = relative(&text, workspace, "./");
                } else if text.contains(workspace) {
                    return Err(Unfit::NamesMachine);
                }
            }
            if names_machine(&text) {
                return Err(Unfit::NamesMachine);
            }
            lines.push(match folder.as_str() {
                "" => text,
                folder if is_one => format!("cd {} && {text}", shell_word(folder)),
                folder => format!("(cd {} && {text})", shell_word(folder)),
            });
        }
        Ok(lines.join(" && "))
    }

    /// Returns true if a command runs in each folder that the line enters, or below it.
    fn uses_visited_folders(&self) -> bool {
        let is_used = |folder: &String| {
            let is_within = |it: &FolderCommands| {
                it.folder.strip_prefix(folder).is_some_and(|it| it.is_empty() || it.starts_with('/'))
            };
            folder.is_empty() || self.commands.iter().any(is_within)
        };
        self.visited.iter().all(is_used)
    }
}

/// Returns whether the line ends at its first failure after a part that only sets options of its shell: one at the
/// beginning of the line, or the options of a shell within it.
fn sets_options(part: &Part, is_first: bool) -> Option<bool> {
    stops_at_failure(&part.words).filter(|_| is_first || part.text.is_empty())
}

/// Returns true if a command after a check goes back to another folder, or shows the state of the repository.
fn only_follows(words: &[String], workspace: Option<&str>) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cd", target] => {
            let is_workspace = workspace.is_some_and(|it| it.trim_end_matches('/') == target.trim_end_matches('/'));
            *target == "-" || is_workspace || target.trim_end_matches('/').split('/').all(|step| step == "..")
        }
        ["git", "status"] | ["git", "status", "-s" | "--short"] | ["git", "diff"] | ["git", "diff", "--stat"] => true,
        _ => false,
    }
}

/// Returns whether the line ends at its first failure after `set` with known options, and `None` for another command.
fn stops_at_failure(words: &[String]) -> Option<bool> {
    let (_, options) = words.split_first().filter(|(set, options)| *set == "set" && !options.is_empty())?;
    let is_known = |word: &String| {
        word == "pipefail" || word.strip_prefix('-').is_some_and(|it| it.chars().all(|c| "euxo".contains(c)))
    };
    options.iter().all(is_known).then(|| options.iter().any(|word| word.starts_with('-') && word.contains('e')))
}

fn sets_variables(words: &[String]) -> bool {
    words.first().is_some_and(|first| first == "export") || words.iter().all(|word| is_assignment(word))
}

/// The folder in which each command of a line runs, relative to the workspace.
#[derive(Debug, Default)]
struct Folders {
    here: String,
    /// The folder to which `cd -` goes back.
    before: Option<String>,
    /// The current and the earlier folder of each shell around the one that runs the command.
    outer: Vec<(String, Option<String>)>,
}

impl Folders {
    /// Begins the shells whose first command this is.
    fn open(&mut self, part: &Part) {
        self.outer.extend((0..part.opens).map(|_| (self.here.clone(), self.before.clone())));
    }

    /// Ends the shells whose last command this is: what they entered, the shell around them did not.
    fn close(&mut self, part: &Part) {
        for (here, before) in (0..part.closes).filter_map(|_| self.outer.pop()).collect::<Vec<_>>() {
            (self.here, self.before) = (here, before);
        }
    }

    fn enter(&mut self, target: &str, workspace: Option<&str>) -> Result<(), Unfit> {
        let next = match target {
            "-" => self.before.clone().ok_or(Unfit::RunsElsewhere)?,
            _ => entered(&self.here, target, workspace)?,
        };
        self.before = Some(std::mem::replace(&mut self.here, next));
        Ok(())
    }
}

/// Returns true if a word may be a path outside the workspace: it goes up, or the shell makes it.
fn leaves(word: &str) -> bool {
    let is_drive = |word: &str| word.as_bytes().get(1) == Some(&b':') && word.contains('\\');
    word.split(['/', '=']).any(|part| part == "..") || word.contains(['$', '`']) || is_drive(word)
}

fn hides_name(operator: &str) -> &'static str {
    match operator {
        "||" => "||",
        "|" => "|",
        "\n" => "several lines",
        _ => ";",
    }
}

/// Returns the folder below the workspace that a `cd` enters.
fn entered(folder: &str, target: &str, workspace: Option<&str>) -> Result<String, Unfit> {
    let target = target.trim_end_matches('/');
    let below = match workspace.map(|it| it.trim_end_matches('/')) {
        Some(workspace) if target == workspace => return Ok(String::new()),
        Some(workspace) if target.starts_with(workspace) && target[workspace.len()..].starts_with('/') => {
            let below = &target[workspace.len() + 1..];
            return if leaves(below) { Err(Unfit::RunsElsewhere) } else { Ok(below.to_owned()) };
        }
        _ => target,
    };
    if below.is_empty() || below.starts_with(['/', '~', '-']) || below.contains(['$', '*', '?']) {
        return Err(Unfit::RunsElsewhere);
    }
    let root = if folder.starts_with('/') { "/" } else { "" };
    let mut steps: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in below.split('/') {
        match (step, steps.last()) {
            ("" | ".", _) => {}
            ("..", None | Some(&"..")) => return Err(Unfit::RunsElsewhere),
            ("..", Some(_)) => drop(steps.pop()),
            (step, _) => steps.push(step),
        }
    }
    Ok(format!("{root}{}", steps.join("/")))
}

/// Replaces the path of a folder by a relative one: a path below it by `prefix` and the rest, the folder itself by `.`. The
/// same letters within another path, such as `/api/app/users` for the folder `/app`, stay.
pub(super) fn relative(text: &str, workspace: &str, prefix: &str) -> String {
    // Letters without upper and lower case, as of Chinese, stand beside a path without a blank.
    let goes_on = |c: char| c.is_ascii_digit() || c.is_lowercase() || c.is_uppercase() || "_-".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(workspace) {
        let after = &rest[at + workspace.len()..];
        let before = text[..text.len() - rest.len() + at].chars().next_back();
        let begins = before.is_none_or(|c| !(goes_on(c) || "/.:~\\+%)]}".contains(c)));
        out.push_str(&rest[..at]);
        let mut next = after.chars();
        let (first, second) = (next.next(), next.next());
        match first {
            Some('/') if begins => {
                let tail = &after[1..];
                let alone = second.is_none_or(|c| c.is_whitespace() || "\"'`,;)".contains(c));
                out.push_str(if alone { "." } else { prefix });
                rest = tail;
            }
            // A point at the end of a sentence does not belong to the path; with it, `.` would be `..`.
            Some('.') if begins && !second.is_some_and(|c| goes_on(c) || c == '.') => {
                out.push_str("./");
                rest = after;
            }
            Some(c) if !begins || goes_on(c) || c == '.' => {
                out.push_str(workspace);
                rest = after;
            }
            _ => {
                out.push('.');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns true if a command line names an absolute path that another machine need not have.
fn names_machine(text: &str) -> bool {
    const EVERYWHERE: [&str; 6] = ["/dev/null", "/bin/", "/usr/bin/", "/dev/stdout", "/dev/stderr", "/usr/bin/env"];
    let bytes = text.as_bytes();
    (0..bytes.len()).filter(|at| bytes[*at] == b'/').any(|at| {
        let begins = at == 0 || matches!(bytes[at - 1], b' ' | b'\t' | b'"' | b'\'' | b'=' | b':' | b'(' | b'<' | b'>');
        let url = at > 0 && bytes[at - 1] == b':' && bytes.get(at + 1) == Some(&b'/');
        let is_path = bytes.get(at + 1).is_some_and(|next| next.is_ascii_alphanumeric() || b"._".contains(next));
        begins && !url && is_path && !EVERYWHERE.iter().any(|known| text[at..].starts_with(known))
    })
}

/// Returns a call of a shell whose text is shown without quotes, as some agents do, with them.
fn with_quoted_script(line: &str) -> String {
    let shell = line.split_whitespace().next().unwrap_or_default();
    let rest = line.strip_prefix(shell).filter(|_| is_shell(shell)).unwrap_or_default();
    for flag in [" -lc ", " -c ", " -l -c ", " -euo pipefail -c "] {
        let inner = rest.strip_prefix(flag).map(str::trim).filter(|inner| !inner.starts_with(['\'', '"']));
        if let Some(inner) = inner {
            return format!("{shell}{flag}{}", shell_word(inner));
        }
    }
    line.to_owned()
}

/// Returns the command line that a call of a shell runs: `bash -lc 'pytest -q'` runs `pytest -q`.
fn unwrapped(line: &str) -> String {
    let line = with_quoted_script(line);
    match split(&line).as_slice() {
        [part] if !part.writes_file && !part.is_compound => {
            let inner = script_of_shell(&part.words).filter(|inner| inner.around.is_none());
            inner.map_or(line, |inner| inner.text.trim().to_owned())
        }
        _ => line,
    }
}

/// The commands that a simple command gives to a shell as a text.
#[derive(Debug, Default)]
struct ShellText {
    text: String,
    /// The words around the shell that may change how it runs: `timeout 60`.
    around: Option<String>,
    /// True if the shell ends at the first failure.
    stops: bool,
    /// The options that distinguish the shell from the one of the agent. Empty for `bash -c`.
    shell: String,
}

/// Returns the commands that a simple command gives to a shell as a text: of `bash -lc 'pytest -q'`, `pytest -q`. The shell may
/// come after other words.
fn script_of_shell(words: &[String]) -> Option<ShellText> {
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    let own = bare(&all);
    let (program, rest) = own.split_first()?;
    let program = name_of(program);
    let after = |text: Vec<&str>, around: &str| {
        Some(ShellText { text: text.join(" "), around: Some(around.to_owned()), ..ShellText::default() })
    };
    match program {
        "eval" => return after(rest.to_vec(), program),
        "su" | "runuser" => {
            let at = rest.iter().position(|word| is_option_of_text(word) || *word == "--command")?;
            return after(rest.get(at + 1..)?.iter().take(1).copied().collect(), program);
        }
        // Its words are a pattern or a text.
        "git" | "printf" => return None,
        _ if READERS.contains(&program) && !["env", "find"].contains(&program) => return None,
        _ => {}
    }
    let at = words.iter().position(|word| is_shell(word))?;
    let rest = &words[at + 1..];
    let before = words[..at].join(" ");
    let mut found = ShellText {
        around: Some(before).filter(|before| !before.is_empty() && before != "time"),
        shell: Some(name_of(&words[at])).filter(|name| *name != "bash").unwrap_or_default().to_owned(),
        ..ShellText::default()
    };
    let mut has_text = false;
    let mut takes_value = false;
    for (number, word) in rest.iter().enumerate() {
        let mut is_known = true;
        if std::mem::take(&mut takes_value) {
            found.stops |= word == "errexit";
            is_known = ["pipefail", "errexit", "nounset"].contains(&word.as_str());
        } else if word == "--login" {
            found.shell.push_str(" -l");
        } else if word.starts_with("--") {
            is_known = ["--norc", "--noprofile"].contains(&word.as_str());
            takes_value = ["--rcfile", "--init-file"].contains(&word.as_str());
        } else if let Some(letters) = word.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty()) {
            is_known = word.starts_with('-') && letters.chars().all(|c| "celiouxv".contains(c));
            has_text |= is_option_of_text(word);
            found.stops |= word.starts_with('-') && letters.contains('e');
            for option in [" -i", " -l"].into_iter().filter(|option| letters.contains(&option[2..])) {
                found.shell.push_str(option);
            }
            takes_value = letters.contains(['o', 'O']);
        } else if has_text {
            let more = &rest[number + 1..];
            // Without its quotes, a text may be several words.
            let is_cut = !more.is_empty() && !word.contains(char::is_whitespace);
            found.text = if is_cut { rest[number..].join(" ") } else { word.clone() };
            if is_cut || more.iter().any(|word| word.starts_with('<')) {
                found.around = found.around.or_else(|| Some(more.join(" ")));
            }
            return Some(found);
        } else {
            return None;
        }
        if !is_known {
            found.around = found.around.or_else(|| Some(word.clone()));
        }
    }
    None
}

/// Returns the commands that a shell reads from its input: of `bash <<< 'pytest -q'`, `pytest -q`.
fn input_of_shell(part: &Part) -> Option<ShellText> {
    let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
    let (_, rest) = bare(&words).split_first().filter(|(program, _)| is_shell(program))?;
    let has_script = rest.iter().any(|word| !word.starts_with(['-', '+', '<']));
    let text = part.input.clone().filter(|_| !has_script)?;
    Some(ShellText { text, around: Some("<<".to_owned()), ..ShellText::default() })
}

/// The maximum depth of shells within shells that are read.
const MAX_SHELL_DEPTH: usize = 4;

/// Splits a command line at its operators, also the texts that it gives to shells: `cd a && bash -c 'pytest'`.
fn parts(line: &str) -> Vec<Part> {
    parts_of(&with_quoted_script(line.trim()), 0)
}

fn parts_of(line: &str, depth: usize) -> Vec<Part> {
    let mut found = Vec::new();
    for part in split(line) {
        let text = script_of_shell(&part.words).or_else(|| input_of_shell(&part));
        let text = text.filter(|_| depth < MAX_SHELL_DEPTH).unwrap_or_default();
        let mut inner = parts_of(&text.text, depth + 1);
        if text.stops && !inner.is_empty() {
            let words = ["set", "-e"].map(str::to_owned).to_vec();
            inner.insert(0, Part { words, after: Some(";"), ..Part::default() });
        }
        for of_shell in &mut inner {
            of_shell.writes_file |= part.writes_file;
            of_shell.is_compound |= part.is_compound;
            of_shell.around = text.around.clone().or(of_shell.around.take());
            of_shell.shell.insert_str(0, &text.shell);
        }
        if let Some(first) = inner.first_mut() {
            first.opens += 1;
        }
        match inner.last_mut() {
            Some(last) => {
                last.closes += 1;
                last.after = last.after.filter(|after| *after == "&").or(part.after);
                found.append(&mut inner);
            }
            None => found.push(part),
        }
    }
    found
}

/// A simple command of a command line, and the operator after it.
#[derive(Debug, Default)]
struct Part {
    text: String,
    words: Vec<String>,
    after: Option<&'static str>,
    writes_file: bool,
    is_compound: bool,
    /// The words around the shell that runs it, which may change how it runs.
    around: Option<String>,
    /// The options that distinguish the shells that run it from the one of the agent.
    shell: String,
    /// The number of shells within the line whose first command this is, and of those whose last one it is.
    opens: usize,
    closes: usize,
    /// The text that it gets as its input.
    input: Option<String>,
    /// True if `sh`, which runs graders, reads the command differently than Bash.
    is_of_bash: bool,
    /// True if shells read the text in different ways, so that its commands are unknown.
    is_unread: bool,
}

impl Part {
    fn of(command: SimpleCommand) -> Self {
        let SimpleCommand { text, words, after, writes_file, is_compound, input, has_document, is_of_bash } = command;
        // The text of a here-document is not in the text of the command.
        let around = has_document.then(|| "<<".to_owned());
        Self { text, words, after, writes_file, is_compound, around, input, is_of_bash, ..Self::default() }
    }
}

/// Splits a command line at its operators. A line that shells read in different ways is one part.
fn split(line: &str) -> Vec<Part> {
    match simple_commands(line) {
        Some(commands) => commands.into_iter().map(Part::of).collect(),
        None => vec![Part { text: line.to_owned(), is_compound: true, is_unread: true, ..Part::default() }],
    }
}

/// Returns true if each check of a line is one of this program, as [`read_only::build`] names it: the program builds what it
/// tests.
pub(super) fn builds_itself(line: &str, program: &str) -> bool {
    let checks: Vec<Part> = split(line).into_iter().filter(|part| purpose(&part.words).is_some()).collect();
    let is_of_program = |part: &Part| {
        let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
        itself(&words).first().and_then(|first| read_only::builder(first)) == Some(program)
    };
    !checks.is_empty() && checks.iter().all(is_of_program)
}

/// Words before a command that change nothing about its exit code.
const AROUND: [&str; 9] = ["time", "env", "command", "nice", "exec", "npx", "bunx", "uvx", "stdbuf"];
/// Programs that run another one in an environment, with `run` or `exec` as the next word.
const RUNNERS: [&str; 8] = ["uv", "poetry", "pdm", "hatch", "pipenv", "rye", "bundle", "mise"];

/// Returns the purpose of a simple command, or `None` if the command is not a known check.
fn purpose(words: &[String]) -> Option<Purpose> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    purpose_of(&words)
}

fn purpose_of(words: &[&str]) -> Option<Purpose> {
    purpose_with(words, of_file)
}

/// Returns the purpose of the script with a path.
type OfFile = fn(&str) -> Option<Purpose>;

/// Returns the purpose of a simple command. `of_file` decides about scripts.
fn purpose_with(words: &[&str], of_file: OfFile) -> Option<Purpose> {
    let (program, rest) = itself(words).split_first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    let sub = rest.iter().copied().find(|word| !word.starts_with('-') && !word.starts_with('+')).unwrap_or_default();
    let has = |word: &str| rest.contains(&word);
    // These only print.
    if rest.iter().any(|word| matches!(*word, "--help" | "--version" | "--collect-only" | "--list" | "--no-run")) {
        return None;
    }
    let tests = Some(Purpose::Tests);
    let builds = Some(Purpose::Builds);
    match name {
        "cargo" => match sub {
            "test" | "nextest" | "t" => tests,
            "check" | "build" | "b" | "c" => builds,
            "clippy" if !has("--fix") => builds,
            "fmt" if has("--check") => builds,
            _ => None,
        },
        "playwright" if matches!(sub, "install" | "install-deps") => None,
        "pytest" | "py.test" | "tox" | "nox" | "jest" | "vitest" | "mocha" | "ava" | "ctest" | "rspec" | "phpunit"
        | "bats" | "behave" | "nosetests" | "gotestsum" | "playwright" => tests,
        "go" => match sub {
            "test" => tests,
            "vet" | "build" => builds,
            _ => None,
        },
        "npm" | "pnpm" | "yarn" | "bun" => {
            let plain: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
            let script = match plain.as_slice() {
                ["workspace", _, rest @ ..] => rest,
                all => all,
            };
            match script {
                ["run" | "run-script", script, ..] | [script, ..] => of_script(script),
                [] => None,
            }
        }
        "bazel" | "bazelisk" => match sub {
            "test" => tests,
            "build" => builds,
            _ => None,
        },
        "hatch" if sub == "test" => tests,
        "coverage" => of_coverage(rest, of_file),
        "php" if matches!(rest, ["artisan", "test", ..]) => tests,
        "node" | "deno" | "tsx" if has("--test") || sub == "test" => tests,
        "tsc" | "mypy" | "pyright" | "flake8" | "pylint" | "shellcheck" | "hadolint" | "staticcheck" => builds,
        "eslint" | "ruff" if !has("--fix") && sub != "format" => builds,
        "black" | "isort" | "prettier" | "gofmt" if has("--check") => builds,
        "mvn" | "mvnw" => match sub {
            "test" | "verify" => tests,
            "compile" | "package" => builds,
            _ => None,
        },
        "gradle" | "gradlew" | "sbt" | "dotnet" | "swift" | "mix" | "zig" | "rake" | "make" | "just" | "task"
        | "composer" | "flutter" | "dart" | "lein" | "cabal" | "stack" | "ninja" => of_script(sub),
        "python" | "python3" | "python2" => of_python(rest, of_file),
        "sh" | "bash" | "zsh" | "node" | "deno" | "ruby" | "perl" | "php" => of_file(sub),
        _ if program.contains('/') => of_file(program),
        _ => None,
    }
}

/// Returns the purpose of Python with these words.
fn of_python(words: &[&str], of_file: OfFile) -> Option<Purpose> {
    match words {
        ["-m", "coverage", rest @ ..] => of_coverage(rest, of_file),
        ["-m", "django", "test", ..] => Some(Purpose::Tests),
        ["-m", "pytest" | "unittest" | "tox" | "nose" | "doctest", ..] => Some(Purpose::Tests),
        ["-m", "mypy" | "flake8" | "pylint" | "compileall" | "py_compile", ..] => Some(Purpose::Builds),
        [script, "test", ..] if script.rsplit('/').next() == Some("manage.py") => Some(Purpose::Tests),
        _ => of_file(words.iter().copied().find(|word| !word.starts_with(['-', '+'])).unwrap_or_default()),
    }
}

/// Returns the purpose of `coverage run`, which runs Python with the words after its options.
fn of_coverage(words: &[&str], of_file: OfFile) -> Option<Purpose> {
    let ["run", rest @ ..] = words else { return None };
    let at = rest.iter().position(|word| *word == "-m" || !word.starts_with('-'))?;
    of_python(rest.get(at..)?, of_file)
}

/// Returns true if a simple command that is no known check has the name of a runner of tests or of a test among its words.
fn looks_like_check(words: &[String]) -> bool {
    const NAMES: [&str; 12] =
        ["test", "tests", "pytest", "unittest", "spec", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest", "tox"];
    // These name tests, and run none.
    const OTHERS: [&str; 29] = [
        "awk", "cp", "chmod", "curl", "diff", "export", "for", "gh", "git", "kill", "ln", "man", "mkdir", "mv", "pip",
        "pip3", "pkill", "pushd", "printf", "ps", "rm", "rmdir", "sed", "sort", "source", "tar", "tee", "touch", "[",
    ];
    const IDLE: [&str; 26] = [
        "--help",
        "--version",
        "--list",
        "--collect-only",
        "activate",
        "add",
        "build",
        "ci",
        "config",
        "create",
        "i",
        "info",
        "init",
        "install",
        "list",
        "ls",
        "new",
        "outdated",
        "remove",
        "show",
        "uninstall",
        "update",
        "venv",
        "view",
        "virtualenv",
        "why",
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((program, rest)) = bare(&words).split_first() else { return false };
    let name = program.rsplit('/').next().unwrap_or(program);
    // `command -v pytest` looks for a program.
    if name == "command" {
        return false;
    }
    if READERS.contains(&name) || OTHERS.contains(&name) {
        return false;
    }
    // `test:unit`, `:app:test`, `elm-test`; an option is none.
    let is_name = |word: &&str| {
        let is_plain = !word.starts_with('-') && !word.contains(['.', '/']);
        is_plain && word.split([':', '-', '_']).any(|part| NAMES.contains(&part))
    };
    // `test -f FILE` looks at a file.
    let is_runner = is_name(&name) && (name != "test" || rest.is_empty());
    let names_one = name != "test" && rest.iter().any(is_name);
    (is_runner || names_one) && !rest.iter().any(|word| IDLE.contains(word))
}

/// Returns true if a command of the shell's grammar has a check in it: `! pytest`, `then make test`, `{ pytest`.
fn is_in_other_form(part: &Part) -> bool {
    let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
    let is_one = match words.as_slice() {
        ["function", ..] | [_, "{", ..] => true,
        [first, ..] => KEYWORDS.contains(first),
        [] => false,
    };
    is_one && (purpose_of(bare(&words)).is_some() || looks_like_check(&part.words))
}

/// Returns true if a shell of the line, also one of another machine, may get a check as its input: `cat <<E | sh`,
/// `echo pytest | bash`.
fn feeds_shell(parts: &[Part]) -> bool {
    let words_of = |part: &Part| -> Vec<String> {
        let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
        bare(&words).iter().map(|word| (*word).to_owned()).collect()
    };
    let runs_input = |part: &Part| {
        let words = words_of(part);
        let name = words.first().map_or("", |first| name_of(first));
        name == "ssh" || !READERS.contains(&name) && words.iter().any(|word| is_shell(word))
    };
    parts.iter().enumerate().any(|(number, part)| {
        let behind = parts.get(number..).unwrap_or_default();
        if part.input.as_deref().is_some_and(mentions_check) && behind.iter().any(runs_input) {
            return true;
        }
        let words = words_of(part);
        let Some((first, printed)) = words.split_first() else { return false };
        // The text of another pipe is not the input of the shell.
        let piped = behind.iter().take_while(|part| part.after == Some("|")).count();
        let reached = if part.writes_file { behind } else { behind.get(..=piped).unwrap_or_default() };
        ["echo", "printf"].contains(&first.as_str())
            && reached.iter().any(runs_input)
            && mentions_check(&printed.join(" ").replace("\\n", "\n"))
    })
}

/// Returns true if a text whose commands are unknown has the words of a check.
fn mentions_check(text: &str) -> bool {
    text.split([';', '&', '|', '\n', '(', ')', '{', '}', '`', '"', '\'']).any(|piece| {
        let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
        purpose(&words).is_some() || looks_like_check(&words)
    })
}

/// Returns the purpose of a task with this name.
fn of_script(name: &str) -> Option<Purpose> {
    let first = name.split([':', '-', '_']).next().unwrap_or_default();
    match first {
        "test" | "tests" | "spec" | "t" => Some(Purpose::Tests),
        "check" | "lint" | "build" | "typecheck" | "verify" | "compile" | "analyze" => Some(Purpose::Builds),
        _ => None,
    }
}

/// Returns the words of a command without the variables and programs before it.
pub(super) fn itself<'a, 'b>(mut words: &'a [&'b str]) -> &'a [&'b str] {
    loop {
        words = match words {
            [first, rest @ ..] if is_assignment(first) || AROUND.contains(first) => rest,
            ["timeout", _, rest @ ..] if !rest.is_empty() => rest,
            [runner, "run" | "exec", rest @ ..] if RUNNERS.contains(runner) => rest,
            _ => return words,
        };
    }
}

/// Words of the shell before a command.
const KEYWORDS: [&str; 9] = ["!", "{", "do", "elif", "else", "if", "then", "until", "while"];
/// Programs that run the command after their options.
const WRAPPERS: [&str; 23] = [
    "builtin",
    "bunx",
    "caffeinate",
    "chronic",
    "command",
    "doas",
    "env",
    "exec",
    "gtimeout",
    "ionice",
    "nice",
    "nohup",
    "npx",
    "pnpx",
    "setsid",
    "stdbuf",
    "sudo",
    "time",
    "timeout",
    "unbuffer",
    "uvx",
    "xargs",
    "xvfb-run",
];

/// Returns the words of a command without everything before it, as far as it is known. For reading only: what is left out
/// may decide what the command does, and the value of an option may be the first word that is left.
fn bare<'a, 'b>(mut words: &'a [&'b str]) -> &'a [&'b str] {
    fn after_options<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
        let is_value = |word: &&str| word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit());
        let count = words.iter().take_while(|word| is_value(word)).count();
        words.get(count..).unwrap_or_default()
    }
    loop {
        let rest = match words {
            // `command -v pytest` looks for a program.
            ["command", "-v" | "-V", ..] => return words,
            ["function", _, "{", rest @ ..] | [_, "{", rest @ ..] => rest,
            [first, rest @ ..] if is_assignment(first) || KEYWORDS.contains(first) => rest,
            [first, rest @ ..] if WRAPPERS.contains(&name_of(first)) => after_options(rest),
            [first, rest @ ..] if RUNNERS.contains(&name_of(first)) => match after_options(rest) {
                ["run" | "exec", rest @ ..] => after_options(rest),
                _ => return words,
            },
            _ => return words,
        };
        if rest.is_empty() {
            return words;
        }
        words = rest;
    }
}

/// Returns the ways to read a command: without everything before it, and if something was before it, also from each later
/// word, because the value of an option may come first.
fn readings<'a, 'b>(words: &'a [&'b str]) -> impl Iterator<Item = &'a [&'b str]> {
    let own = bare(words);
    let only_reads = own.first().is_some_and(|first| READERS.contains(first));
    let count = if own.len() < words.len() && !only_reads { own.len() } else { 1 };
    (0..count).filter_map(move |at| own.get(at..))
}

/// Returns the purpose of a script with this path.
fn of_file(path: &str) -> Option<Purpose> {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let words: Vec<&str> = stem.split(['-', '_']).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    if has(&OF_TESTS) {
        return Some(Purpose::Tests);
    }
    has(&OF_CHECKS).then_some(Purpose::Builds)
}

/// Words in the names of scripts that run tests, and of those that check something else.
const OF_TESTS: [&str; 3] = ["test", "tests", "spec"];
const OF_CHECKS: [&str; 4] = ["check", "checks", "verify", "lint"];

/// Returns true if a simple command changes no file of the workspace and hides no exit code.
fn is_harmless(words: &[String]) -> bool {
    match words.first().map(String::as_str) {
        None => true,
        Some("echo" | "true" | "export" | "pwd" | "ls" | "date") => true,
        Some(_) => words.iter().all(|word| is_assignment(word)) || reports_coverage(words),
    }
}

/// Returns true for `coverage report`, which shows what an earlier command measured.
fn reports_coverage(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(itself(&words), ["coverage", "report", ..] | ["python" | "python3", "-m", "coverage", "report", ..])
}

/// Returns true if a command runs a file in the shell itself.
fn sources(words: &[String]) -> bool {
    matches!(words.first().map(String::as_str), Some("source" | "."))
}

/// Returns the name of a file without its folders.
fn name_of(path: &str) -> &str {
    path.rsplit(['/', '=']).next().unwrap_or(path)
}

pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: &str) -> Option<Result<String, Unfit>> {
        check(line, Some("/home/ada/calc")).map(|found| found.map(|check| check.line))
    }

    #[test]
    fn checks_are_recognised_and_their_lines_are_for_the_workspace() {
        for (written, expected) in [
            ("python3 -m unittest -q", "python3 -m unittest -q"),
            ("cd /home/ada/calc && pytest -q tests", "pytest -q tests"),
            ("cd /home/ada/calc/web && npm test", "cd web && npm test"),
            ("cd web && npm run test:unit", "cd web && npm run test:unit"),
            // Each check stays in its folder.
            (
                "cd /home/ada/calc/a && pytest && cd /home/ada/calc/b && pytest -q",
                "(cd a && pytest) && (cd b && pytest -q)",
            ),
            ("cd a && pytest && cd ../b && pytest", "(cd a && pytest) && (cd b && pytest)"),
            ("pytest && cd web && npm test", "pytest && (cd web && npm test)"),
            ("cd web && npm test && cd - && pytest && ls", "(cd web && npm test) && pytest && ls"),
            ("cd a/b && cd .. && pytest", "cd a && pytest"),
            ("cd a && pytest && cd -", "cd a && pytest"),
            ("bash -c 'pytest -q' x", "pytest -q"),
            ("bash -ec 'cd a; pytest -q'", "cd a && pytest -q"),
            ("time bash -c 'pytest -q'", "pytest -q"),
            ("cd a && pytest && cd .. && git status", "cd a && pytest"),
            ("bash -c 'cd a && pytest' && pytest -q", "(cd a && pytest) && pytest -q"),
            // The shell around a command.
            ("cd a && bash -lc 'python3 -m unittest'", "cd a && python3 -m unittest"),
            (r"bash -lc 'pytest -k '\''a and b'\'''", "pytest -k 'a and b'"),
            ("bash -lc \"pytest -k 'a and b'\"", "pytest -k 'a and b'"),
            // What is no command, and what changes no result.
            ("# Run the tests, don't wait\ncd a && pytest", "cd a && pytest"),
            ("pytest -q # all of it", "pytest -q"),
            ("set -e\npytest", "pytest"),
            ("set -eu; cd a; pytest; npm test", "cd a && pytest && npm test"),
            // Programs that run a known check.
            ("python3 manage.py test", "python3 manage.py test"),
            ("coverage run -m pytest && coverage report", "coverage run -m pytest && coverage report"),
            ("python3 -m coverage run manage.py test", "python3 -m coverage run manage.py test"),
            ("uvx pytest -q", "uvx pytest -q"),
            ("hatch test", "hatch test"),
            ("php artisan test", "php artisan test"),
            ("bazel test //...", "bazel test //..."),
            ("yarn workspace web test", "yarn workspace web test"),
            ("pytest /home/ada/calc/tests/test_a.py", "pytest ./tests/test_a.py"),
            ("RUST_BACKTRACE=1 cargo test 2>&1", "RUST_BACKTRACE=1 cargo test 2>&1"),
            ("cargo fmt --check && cargo clippy && cargo test", "cargo fmt --check && cargo clippy && cargo test"),
            ("bash -lc 'go test ./...'", "go test ./..."),
            ("sh check.sh > /dev/null", "sh check.sh > /dev/null"),
            ("uv run pytest -k 'a and b'", "uv run pytest -k 'a and b'"),
            ("timeout 60 ./run_tests.sh;", "timeout 60 ./run_tests.sh"),
            ("/usr/bin/python3 -m pytest", "/usr/bin/python3 -m pytest"),
        ] {
            assert_eq!(line(written), Some(Ok(expected.to_owned())), "{written}");
        }
    }

    #[test]
    fn what_hides_the_exit_code_or_does_the_work_is_no_grader() {
        for (written, why) in [
            ("pytest | tail -5", Unfit::HidesExitCode("|")),
            ("cargo test 2>&1 | tail", Unfit::HidesExitCode("|")),
            ("pytest || true", Unfit::HidesExitCode("||")),
            ("pytest; echo done", Unfit::HidesExitCode(";")),
            ("pytest\necho done", Unfit::HidesExitCode("several lines")),
            ("sed -i s/a/b/ calc.py && pytest", Unfit::DoesMore),
            ("git checkout calc.py && pytest", Unfit::DoesMore),
            ("pytest > out.txt", Unfit::DoesMore),
            ("(cd x; pytest)", Unfit::HidesExitCode(";")),
            ("(pytest)", Unfit::DoesMore),
            ("pytest &", Unfit::RunsOn),
            ("/home/ada/venv/bin/pytest", Unfit::NamesMachine),
            ("pytest --rootdir=/home/ada/calculator", Unfit::Changed("--rootdir=/home/ada/calculator".to_owned())),
            ("~/bin/test.sh", Unfit::NamesMachine),
            ("pytest /home/ada/calculator", Unfit::NamesMachine),
            ("cd /home/ada/calc/../other && pytest", Unfit::RunsElsewhere),
            ("pytest ../other", Unfit::RunsElsewhere),
            ("pytest $HOME/x", Unfit::RunsElsewhere),
            ("API_KEY=[redacted:key] pytest", Unfit::Masked),
            ("pytest \u{202e}eurt", Unfit::Hidden),
            ("source enter.sh && pytest", Unfit::DoesMore),
            ("cd /tmp/x && pytest", Unfit::RunsElsewhere),
            ("cd .. && pytest", Unfit::RunsElsewhere),
            ("cd web && pytest /home/ada/calc/a.py", Unfit::NamesMachine),
            ("cd a && pytest && cd ../.. && pytest", Unfit::RunsElsewhere),
            ("cd a && pytest; cd -", Unfit::HidesExitCode(";")),
            ("pytest && grep x a.py", Unfit::DoesMore),
            ("cd a && export CI=1 && pytest && cd .. && pytest", Unfit::Changed("export CI=1".to_owned())),
            ("set -e\ncd a && pytest\nnpm test", Unfit::HidesExitCode("several lines")),
            ("set -e; bash -c 'pytest; npm test'", Unfit::HidesExitCode(";")),
            ("sh -c 'set -e; cd a; pytest'; npm test", Unfit::HidesExitCode(";")),
            ("sh -c 'set -e; cd a' && sh -c 'pytest; npm test'", Unfit::HidesExitCode(";")),
            ("pytest && cd build", Unfit::DoesMore),
            ("bash -c 'pytest &' && npm test", Unfit::RunsOn),
            ("bash -c 'pytest' > out.txt", Unfit::DoesMore),
            ("bash -ec 'cd a; pytest'; npm test", Unfit::HidesExitCode(";")),
            ("timeout 60 bash -c 'cd a && pytest -q'", Unfit::Changed("timeout 60".to_owned())),
            ("A=1 bash -c 'pytest -q'", Unfit::Changed("A=1".to_owned())),
            ("bash -nc 'pytest -q'", Unfit::Changed("-nc".to_owned())),
            ("eval 'pytest -q'", Unfit::Changed("eval".to_owned())),
            ("bash -c 'export CI=1 && pytest -q' && npm test", Unfit::Changed("export CI=1".to_owned())),
            ("bash -c 'export CI=1 && cd a' && npm test", Unfit::Changed("export CI=1".to_owned())),
            ("uv run --frozen pytest -q", Unfit::UnknownCheck),
            ("npx -y vitest run", Unfit::UnknownCheck),
            ("uvx --from pytest pytest", Unfit::UnknownCheck),
            ("nice -n 10 pytest", Unfit::UnknownCheck),
            ("env -u X pytest -q", Unfit::UnknownCheck),
            ("poetry run -q pytest", Unfit::UnknownCheck),
            ("stdbuf -oL pytest -q", Unfit::UnknownCheck),
            ("./gradlew :app:test", Unfit::UnknownCheck),
            ("elm-test", Unfit::UnknownCheck),
            ("docker compose exec web pytest", Unfit::UnknownCheck),
            ("if python3 -m unittest; then echo; fi", Unfit::UnreadForm),
            ("{ pytest -q; }", Unfit::UnreadForm),
            ("! pytest", Unfit::UnreadForm),
            ("if [ -d tests ]; then pytest; fi", Unfit::UnreadForm),
            ("for f in a b; do pytest $f; done", Unfit::UnreadForm),
            ("t() { cargo clippy; }; t", Unfit::UnreadForm),
            ("cat <<'E' | sh\npytest -q\nE", Unfit::UnreadForm),
            ("ssh h <<'E'\npytest\nE", Unfit::UnreadForm),
            ("echo pytest -q | bash", Unfit::UnreadForm),
            ("printf 'cd a\\npytest -q\\n' | sudo sh -s", Unfit::UnreadForm),
            ("echo pytest -q > run.sh; sh run.sh", Unfit::UnreadForm),
            ("cargo xtask test", Unfit::UnknownCheck),
            ("hatch run test", Unfit::UnknownCheck),
            // `sh` reads these in another way.
            ("pytest &> /dev/null", Unfit::Unread),
            (r"echo $'it\'s' && pytest", Unfit::Unread),
            (r"echo $'it\'s' && pytest -k 'a'", Unfit::Unread),
            ("bash -c \"echo $'a' && pytest\"", Unfit::Unread),
            ("bash <<< 'pytest -q'", Unfit::Changed("<<".to_owned())),
            ("pytest <<E\ntext\nE", Unfit::Changed("<<".to_owned())),
        ] {
            assert_eq!(line(written), Some(Err(why)), "{written}");
        }
    }

    #[test]
    fn what_a_shell_within_a_line_runs_is_seen() {
        let workspace = Some("/w");
        assert_eq!(set_ups::set_ups("cd /w/a && bash -lc 'pip install x'", workspace), ["cd a && pip install x"]);
        assert_eq!(within("/w/a", "bash -lc git stash"), "cd /w/a && bash -lc 'git stash'");
        for (line, expected) in [
            ("timeout 60 bash -c 'pip install x'", "pip install x"),
            ("sudo bash -c 'apt-get install -y x'", "apt-get install -y x"),
            ("env A=1 bash -lc 'pip install x'", "pip install x"),
            ("nohup bash -c 'pip install x'", "pip install x"),
            ("bash -c 'pip install x' arg", "pip install x"),
            ("bash --rcfile .rc -c 'pip install x'", "pip install x"),
            ("eval 'pip install x'", "pip install x"),
            ("su -c 'pip install x'", "pip install x"),
            ("xargs -n 1 pip install < req.txt", "xargs -n 1 pip install < req.txt"),
            ("sudo -u ada pip install x", "sudo -u ada pip install x"),
            ("docker exec web bash -c 'pip install x'", "pip install x"),
        ] {
            assert_eq!(set_ups::set_ups(line, workspace), [expected], "{line}");
        }
        for line in ["echo bash -c 'pip install x'", "sudo ls /opt/setup", "bash check.sh -c 'pip install x'"] {
            assert!(set_ups::set_ups(line, workspace).is_empty(), "{line}");
        }
    }

    #[test]
    fn what_is_not_in_the_line_and_may_have_failed_is_told() {
        let of = |line: &str| check(line, Some("/w")).unwrap().unwrap();
        for line in [
            "pytest && cd -",
            "pytest && git status",
            "cd out/build && cd ../.. && pytest",
            "cd build && cd /w && pytest",
            "cd a/b && cd .. && pytest",
            "cd a/../b && pytest",
        ] {
            assert!(of(line).leaves_out, "{line}");
        }
        for line in ["cd /w && pytest", "cd a && cd b && pytest", "cd a && pytest && cd -", "cd a && pytest && cd .."] {
            assert!(!of(line).leaves_out, "{line}");
        }
        assert_eq!(of("bash -c 'pytest'").shells, of("pytest").shells);
        for line in ["bash -lc 'pytest'", "bash --login -c pytest", "zsh -c pytest", "bash -lic pytest"] {
            assert_ne!(of(line).shells, of("pytest").shells, "{line}");
        }
    }

    #[test]
    fn only_the_folder_itself_and_paths_below_it_become_relative() {
        for (text, expected) in [
            ("see /app/a.py, /app and /app/.", "see ./a.py, . and ./."),
            ("in /app. Then `/app/`", "in ./. Then `.`"),
            ("/api/app/users https://x.example/app/a src/app/a C:/app/a ~/app/a", ""),
            ("/application /app-2/a /app.old/a /app_b é/app/a", ""),
            ("请看/app/a.py。", "请看./a.py。"),
        ] {
            let expected = if expected.is_empty() { text } else { expected };
            assert_eq!(relative(text, "/app", "./"), expected, "{text}");
        }
    }

    #[test]
    fn commands_that_change_the_folder_are_told_from_others() {
        let leaves = |line: &str| leaves_workspace(line, Some("/w"));
        assert_eq!(
            (leaves("ls"), leaves("cd /w && ls"), leaves("cd a && ls"), leaves("cd")),
            (None, Some(false), Some(true), Some(true))
        );
    }

    #[test]
    fn a_command_with_a_long_text_is_read_in_time() {
        let html = "<p>text</p>\n".repeat(15_000);
        let written = format!("cat > index.html <<'EOF'\n{html}EOF\npytest -q");
        let begun = std::time::Instant::now();
        assert_eq!(line(&written), Some(Err(Unfit::HidesExitCode("several lines"))));
        assert!(read_only::other_command(&written).is_some());
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_checks_nothing_is_no_candidate() {
        for written in [
            "ls",
            "cat test_calc.py",
            "git status",
            "echo pytest",
            "echo 'run pytest -q' && bash setup.sh",
            "echo pytest | grep sh",
            "cat notes.md | sh",
            "if [ -f a ]; then ls; fi",
            "pytest --version",
            "cargo run",
            "",
            "&&",
            "npm install",
            "echo start # && pytest",
            "pip install pytest",
            "npm install --save-dev jest",
            "git add tests && git commit -m test",
            "mkdir -p tests && test -f tests/a.py",
            "cat > notes.md <<'EOF'\nrun the test\nEOF",
            "command -v pytest",
        ] {
            assert_eq!(line(written), None, "{written}");
        }
    }
}
