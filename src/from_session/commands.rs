//! Decides which commands of a session can be graders for another session: those that check something, that were shown to
//! succeed, and that mean the same on another machine. Pure.

use crate::text::shell_word;
use crate::values::is_hidden;

mod options;
pub mod set_ups;
pub mod writes;

/// The reason why a command cannot become a grader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The command hides the exit code of the check.
    #[error("its exit code is not the one of the check, because of `{0}`: it is not known to have passed")]
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
    /// The command line, to be run in the workspace. It begins with `cd FOLDER &&` if `folder` is not empty.
    pub line: String,
    /// The folder in which it runs, relative to the workspace; empty for the workspace itself.
    pub folder: String,
    /// The purpose of the command.
    pub purpose: Purpose,
}

/// Returns the check that a command line is, or the reason why it cannot be a grader; `None` if it checks nothing.
/// `workspace` is the folder of the session.
pub fn check(line: &str, workspace: Option<&str>) -> Option<Result<Check, Unfit>> {
    let line = unwrapped(line.trim());
    let parts = split(&line);
    // A command that checks nothing is no candidate at all, whatever else is wrong with it.
    let purpose = parts.iter().filter_map(|part| purpose(&part.words)).max()?;
    Some(fit(&line, &parts, workspace).map(|(line, folder)| Check { line, folder, purpose }))
}

/// Returns true if a command line only reads, or checks something: it changes no file that a check depends on.
pub fn only_reads(line: &str) -> bool {
    const READERS: [&str; 22] = [
        "cat", "ls", "head", "tail", "grep", "rg", "find", "wc", "pwd", "echo", "which", "stat", "file", "tree", "nl",
        "cd", "less", "du", "env", "printenv", "type", "true",
    ];
    let git = ["status", "log", "diff", "show", "branch", "blame", "ls-files", "rev-parse", "grep"];
    split(&unwrapped(line.trim())).iter().all(|part| {
        let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
        let reads = match words.as_slice() {
            [] => true,
            ["git", sub, ..] => git.contains(sub),
            ["sed", "-n", ..] => true,
            ["find", rest @ ..] => !rest.iter().any(|word| matches!(*word, "-delete" | "-exec" | "-execdir" | "-ok")),
            [first, ..] => READERS.contains(first) || purpose(&part.words).is_some(),
        };
        reads && !part.writes_file && !part.is_compound
    })
}

/// Returns true if a file decides what a check does: settings of its runner, or the file in which its task is written. A
/// change of it may be why the check passes.
pub fn decides(path: &str, check: &Check) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut programs: Vec<String> = Vec::new();
    for part in split(&check.line) {
        let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
        // `python3 -m pytest` runs pytest.
        let own = itself(&words).iter().take(3).map(|word| word.rsplit('/').next().unwrap_or(word).to_owned());
        programs.extend(own);
    }
    let runs = |names: &[&str]| programs.iter().any(|program| names.contains(&program.as_str()));
    let is = |names: &[&str]| names.contains(&name);
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    const NODE: [&str; 9] = ["npm", "pnpm", "yarn", "bun", "jest", "vitest", "mocha", "ava", "playwright"];
    let of_python = ["pytest", "py.test", "tox", "nox", "nose", "nosetests", "behave"];
    let linters = ["flake8", "pylint", "mypy", "pyright", "ruff", "black", "isort", "eslint", "prettier", "tsc"];
    (is(&["pytest.ini", "tox.ini", "noxfile.py", "conftest.py", "setup.cfg", "pyproject.toml"]) && runs(&of_python))
        || (is(&["package.json"]) && runs(&NODE))
        || (begins(&["jest.config", "vitest.config", "vite.config", ".mocharc", "playwright.config"]) && runs(&NODE))
        || (is(&["Makefile", "makefile", "GNUmakefile"]) && runs(&["make"]))
        || (is(&["justfile", "Justfile"]) && runs(&["just"]))
        || (begins(&["Taskfile"]) && runs(&["task"]))
        || (is(&["Rakefile"]) && runs(&["rake"]))
        || (is(&["composer.json"]) && runs(&["composer"]))
        || (begins(&["phpunit.xml"]) && runs(&["phpunit", "composer"]))
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

/// Returns true if a file decides what a check does and nothing else: commands of a session that add packages change other
/// ones, such as `package.json`.
pub fn configures(path: &str, check: &Check) -> bool {
    const ALSO_FOR_PACKAGES: [&str; 7] =
        ["package.json", "pyproject.toml", "setup.cfg", "composer.json", "pom.xml", "conftest.py", "tsconfig.json"];
    let name = path.rsplit('/').next().unwrap_or(path);
    decides(path, check) && !ALSO_FOR_PACKAGES.contains(&name) && !name.contains(".gradle")
}

/// Returns true if a command line may take back changes of files.
pub fn reverts(line: &str) -> bool {
    let undoes = [
        "stash",
        "checkout",
        "restore",
        "reset",
        "clean",
        "revert",
        "switch",
        "apply",
        "am",
        "cherry-pick",
        "rebase",
        "merge",
        "pull",
        "mv",
        "rm",
        "read-tree",
        "checkout-index",
    ];
    split(&unwrapped(line.trim())).iter().any(|part| match part.words.as_slice() {
        [git, rest @ ..] => git == "git" && rest.iter().any(|word| undoes.contains(&word.as_str())),
        [] => false,
    })
}

/// Returns the folders in the workspace that a command line makes working trees of their own, relative to it.
pub fn working_trees(line: &str, workspace: Option<&str>) -> Vec<String> {
    let mut folder = String::new();
    let mut found = Vec::new();
    for part in split(&unwrapped(line.trim())) {
        let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
        let paths = match words.as_slice() {
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

fn fit(line: &str, parts: &[Part], workspace: Option<&str>) -> Result<(String, String), Unfit> {
    if line.contains("[redacted") {
        return Err(Unfit::Masked);
    }
    if line.chars().any(|c| is_hidden(c) || (c.is_control() && !matches!(c, '\n' | '\t'))) {
        return Err(Unfit::Hidden);
    }
    let mut folder = String::new();
    let mut kept: Vec<String> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        match part.after {
            Some("&&") => {}
            Some("&") => return Err(Unfit::RunsOn),
            // A last `;` or line end changes nothing.
            Some(";" | "\n") if number + 1 == parts.len() => {}
            None => {}
            Some(hides) => return Err(Unfit::HidesExitCode(hides_name(hides))),
        }
        if part.writes_file || part.is_compound {
            return Err(Unfit::DoesMore);
        }
        if let [cd, target] = part.words.as_slice()
            && cd == "cd"
        {
            folder = entered(&folder, target, workspace)?;
            continue;
        }
        if purpose(&part.words).is_none() && !is_harmless(&part.words) {
            return Err(Unfit::DoesMore);
        }
        if part.words.iter().any(|word| leaves(word)) {
            return Err(Unfit::RunsElsewhere);
        }
        if let Some(word) = options::unknown(&part.words) {
            return Err(Unfit::Changed(word.to_owned()));
        }
        // A keyword of some shells, and no program.
        let text = part.text.trim();
        kept.push(text.strip_prefix("time ").unwrap_or(text).trim_start().to_owned());
    }
    if kept.is_empty() {
        return Err(Unfit::DoesMore);
    }
    let mut text = kept.join(" && ");
    if let Some(workspace) = workspace.map(|it| it.trim_end_matches('/')).filter(|it| !it.is_empty()) {
        // Within a folder of the workspace, its other files are not where a relative path would find them.
        if folder.is_empty() {
            text = relative(&text, workspace);
        } else if text.contains(workspace) {
            return Err(Unfit::NamesMachine);
        }
    }
    if names_machine(&text) || line.contains('~') {
        return Err(Unfit::NamesMachine);
    }
    let line = if folder.is_empty() { text } else { format!("cd {} && {text}", shell_word(&folder)) };
    Ok((line, folder))
}

/// Returns true if a word may be a path outside the workspace: it goes up, or the shell makes it.
fn leaves(word: &str) -> bool {
    let is_drive = |word: &str| word.as_bytes().get(1) == Some(&b':') && word.contains('\\');
    word.split(['/', '=']).any(|part| part == "..") || word.contains('$') || is_drive(word)
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
    let leaves = below.starts_with(['/', '~', '-', '$']) || below.split('/').any(|part| part == "..");
    if leaves || below.is_empty() {
        return Err(Unfit::RunsElsewhere);
    }
    Ok(match (folder, below) {
        (folder, ".") => folder.to_owned(),
        ("", below) => below.to_owned(),
        (folder, below) => format!("{folder}/{below}"),
    })
}

/// Replaces the path of the workspace by a relative one.
fn relative(text: &str, workspace: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(workspace) {
        let after = &rest[at + workspace.len()..];
        let begins = rest[..at].chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || "/._-".contains(c)));
        out.push_str(&rest[..at]);
        match after.chars().next() {
            Some('/') if begins => {
                let tail = &after[1..];
                let alone = tail.chars().next().is_none_or(|c| c.is_whitespace() || "\"'".contains(c));
                out.push_str(if alone { "." } else { "./" });
                rest = tail;
            }
            Some(c) if !begins || c.is_alphanumeric() || "._-".contains(c) => {
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

/// Returns the command line that a call of a shell runs: `bash -lc 'pytest -q'` runs `pytest -q`.
fn unwrapped(line: &str) -> String {
    for shell in ["bash", "/bin/bash", "/usr/bin/bash", "sh", "/bin/sh", "zsh", "/bin/zsh"] {
        let Some(rest) = line.strip_prefix(shell).and_then(|rest| rest.strip_prefix(' ')) else { continue };
        for flag in ["-lc ", "-c ", "-l -c ", "-euo pipefail -c "] {
            let Some(inner) = rest.strip_prefix(flag) else { continue };
            let inner = inner.trim();
            for quote in ['\'', '"'] {
                let within = inner.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
                if let Some(within) = within.filter(|within| !within.contains(quote) && !within.contains('\\')) {
                    return within.to_owned();
                }
            }
            if !inner.starts_with(['\'', '"']) {
                return inner.to_owned();
            }
        }
    }
    line.to_owned()
}

/// A simple command of a command line, and the operator after it.
#[derive(Debug, Default)]
struct Part {
    text: String,
    words: Vec<String>,
    after: Option<&'static str>,
    writes_file: bool,
    is_compound: bool,
}

/// Splits a command line at its operators. Quoted text is one word.
fn split(line: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = Part::default();
    let mut word = String::new();
    let mut has_word = false;
    let chars: Vec<char> = line.chars().collect();
    let mut at = 0;
    let end_word = |word: &mut String, has_word: &mut bool, part: &mut Part| {
        if std::mem::take(has_word) {
            part.words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.get(at).copied() {
        let next = chars.get(at + 1).copied();
        let operator = match (c, next) {
            ('&', Some('&')) => Some("&&"),
            ('|', Some('|')) => Some("||"),
            ('|', _) => Some("|"),
            (';', _) => Some(";"),
            ('\n', _) => Some("\n"),
            // `2>&1` and `&>` redirect.
            ('&', Some('>')) => None,
            ('&', _) if at > 0 && chars[at - 1] == '>' => None,
            ('&', _) => Some("&"),
            _ => None,
        };
        if let Some(operator) = operator {
            end_word(&mut word, &mut has_word, &mut part);
            part.after = Some(operator);
            if !part.text.trim().is_empty() {
                parts.push(std::mem::take(&mut part));
            } else {
                part = Part::default();
            }
            at += operator.len();
            continue;
        }
        part.text.push(c);
        match c {
            '\'' | '"' => {
                has_word = true;
                at += 1;
                while let Some(inner) = chars.get(at).copied() {
                    part.text.push(inner);
                    if inner == c {
                        break;
                    }
                    if inner == '\\' && c == '"' {
                        at += 1;
                        let Some(escaped) = chars.get(at) else { break };
                        part.text.push(*escaped);
                        word.push(*escaped);
                    } else {
                        word.push(inner);
                    }
                    at += 1;
                }
            }
            '\\' => {
                if let Some(escaped) = next {
                    part.text.push(escaped);
                    word.push(escaped);
                    has_word = true;
                    at += 1;
                }
            }
            '>' => {
                let rest = chars.iter().skip(at + 1).skip_while(|c| matches!(c, '>' | '|'));
                let start = rest.skip_while(|c| c.is_whitespace()).take("/dev/null".len());
                let target: String = start.collect();
                part.writes_file |= !target.starts_with('&') && target != "/dev/null";
                // A number before it is the one of a stream.
                if word.chars().all(|c| c.is_ascii_digit()) {
                    word.clear();
                    has_word = false;
                }
                end_word(&mut word, &mut has_word, &mut part);
                // The target is no argument.
                while let Some(more) = chars.get(at + 1).copied() {
                    if more.is_whitespace() && !part.text.ends_with(['>', ' ']) || ";|\n".contains(more) {
                        break;
                    }
                    if more == '&' && chars.get(at + 2) == Some(&'&') {
                        break;
                    }
                    part.text.push(more);
                    at += 1;
                }
            }
            '(' | ')' => {
                part.is_compound = true;
                end_word(&mut word, &mut has_word, &mut part);
            }
            '`' | '{' | '}' => {
                part.is_compound = true;
                word.push(c);
                has_word = true;
            }
            c if c.is_whitespace() => end_word(&mut word, &mut has_word, &mut part),
            c => {
                word.push(c);
                has_word = true;
            }
        }
        at += 1;
    }
    end_word(&mut word, &mut has_word, &mut part);
    if !part.text.trim().is_empty() {
        parts.push(part);
    }
    parts
}

/// Words before a command that change nothing about its exit code.
const AROUND: [&str; 8] = ["time", "env", "command", "nice", "exec", "npx", "bunx", "stdbuf"];
/// Programs that run another one in an environment, with `run` or `exec` as the next word.
const RUNNERS: [&str; 8] = ["uv", "poetry", "pdm", "hatch", "pipenv", "rye", "bundle", "mise"];

/// Returns the purpose of a simple command, or `None` if the command is not a known check.
fn purpose(words: &[String]) -> Option<Purpose> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (program, rest) = itself(&words).split_first()?;
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
            let script = if sub == "run" || sub == "run-script" {
                rest.iter().copied().skip_while(|word| !word.starts_with("run")).nth(1).unwrap_or_default()
            } else {
                sub
            };
            of_script(script)
        }
        "node" | "deno" if has("--test") || sub == "test" => tests,
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
        "python" | "python3" | "python2" => match rest {
            ["-m", module, ..] if matches!(*module, "pytest" | "unittest" | "tox" | "nose" | "doctest") => tests,
            ["-m", module, ..] if matches!(*module, "mypy" | "flake8" | "pylint" | "compileall" | "py_compile") => {
                builds
            }
            _ => of_file(sub),
        },
        "sh" | "bash" | "zsh" | "node" | "deno" | "ruby" | "perl" | "php" => of_file(sub),
        _ if program.contains('/') => of_file(program),
        _ => None,
    }
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

/// Returns the purpose of a script with this path.
fn of_file(path: &str) -> Option<Purpose> {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let words: Vec<&str> = stem.split(['-', '_']).collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    if has(&["test", "tests", "spec"]) {
        return Some(Purpose::Tests);
    }
    has(&["check", "checks", "verify", "lint"]).then_some(Purpose::Builds)
}

/// Returns true if a simple command changes no file of the workspace and hides no exit code.
fn is_harmless(words: &[String]) -> bool {
    match words.first().map(String::as_str) {
        None => true,
        Some("echo" | "true" | "export" | "pwd" | "ls" | "date") => true,
        Some(_) => words.iter().all(|word| is_assignment(word)),
    }
}

/// Returns true if a command runs a file in the shell itself.
fn sources(words: &[String]) -> bool {
    matches!(words.first().map(String::as_str), Some("source" | "."))
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
        ] {
            assert_eq!(line(written), Some(Err(why)), "{written}");
        }
    }

    #[test]
    fn commands_that_may_change_files_or_the_folder_are_told_apart() {
        for reads in [
            "cat a.py | head",
            "git diff && ls",
            "sed -n 1,9p a",
            "pytest -q",
            "cd web && rg x",
            "bash -lc 'grep -r a .'",
        ] {
            assert!(only_reads(reads), "{reads}");
        }
        for changes in
            ["sed -i s/a/b/ a", "git checkout .", "cat > a", "pip install x", "find . -delete", "echo a > b", "(cat a)"]
        {
            assert!(!only_reads(changes), "{changes}");
        }
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
        assert!(!only_reads(&written));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_checks_nothing_is_no_candidate() {
        for written in [
            "ls",
            "cat test_calc.py",
            "git status",
            "echo pytest",
            "pytest --version",
            "cargo run",
            "",
            "&&",
            "npm install",
        ] {
            assert_eq!(line(written), None, "{written}");
        }
    }
}
