//! Decides whether a command line only reads, or runs checks: a list of the commands that are known to do so. Pure.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    OF_CHECKS, OF_TESTS, Purpose, is_assignment, itself, name_of, of_file, of_script, options, purpose_with,
    reports_coverage, stops_at_failure, with_quoted_script,
};
use crate::command_line::{CommandLine, Dialect, is_shell};

/// Programs that change nothing, whatever their arguments are.
const READERS: [&str; 65] = [
    ":",
    "[",
    "basename",
    "break",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "continue",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "expand",
    "false",
    "fgrep",
    "fold",
    "free",
    "grep",
    "groups",
    "head",
    "hexdump",
    "id",
    "join",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "pgrep",
    "popd",
    "printenv",
    "ps",
    "pushd",
    "pwd",
    "readlink",
    "realpath",
    "return",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "tr",
    "true",
    "type",
    "uname",
    "uptime",
    "wc",
    "which",
    "whoami",
];
/// Programs that run the command behind their options, which is listed beside them.
const WRAPPERS: [&str; 7] = ["builtin", "command", "gtimeout", "ionice", "nice", "stdbuf", "timeout"];
/// Commands of git that change neither files nor references.
const GIT: [&str; 19] = [
    "blame",
    "cat-file",
    "describe",
    "diff",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
];
/// Programs that run tasks of a project by their names.
const RUN_A_SCRIPT: [&str; 4] = ["bun", "npm", "pnpm", "yarn"];
const RUN_TARGETS: [&str; 12] =
    ["composer", "gmake", "gradle", "gradlew", "just", "make", "mvn", "mvnw", "ninja", "rake", "sbt", "task"];
/// Those of them whose tests do not build what they need.
const RUN_ONLY: [&str; 11] =
    ["bun", "composer", "gmake", "just", "make", "ninja", "npm", "pnpm", "rake", "task", "yarn"];
/// Options of checks that choose other tests or list them. A grader with them would check something else; the files stay.
const CHOOSE_TESTS: [(&[&str], &[&str]); 6] = [
    (
        &["pytest", "py.test", "python", "python3"],
        &[
            "--lf",
            "--last-failed",
            "--ff",
            "--failed-first",
            "--nf",
            "--new-first",
            "--sw",
            "--stepwise",
            "--co",
            "--collect-only",
            "--deselect",
            "--ignore",
        ],
    ),
    (&["jest", "npm", "pnpm", "yarn"], &["--watchAll=false", "--listTests"]),
    (&["jest", "vitest"], &["-t"]),
    (&["ctest"], &["--test-dir", "--output-on-failure", "-R", "-E", "-L"]),
    (&["nox"], &["-e", "--session", "--sessions"]),
    (&["tox"], &["-e"]),
];
/// Words that may follow the name of a check in the name of a task: `test:unit`, but not `lint:fix`.
const PARTS: [&str; 14] =
    ["all", "ci", "coverage", "e2e", "fast", "integration", "js", "lib", "py", "quick", "ts", "types", "unit", "web"];
/// Endings of files of tests, whose names begin or end with `test`, or have it before the ending.
const OF_TEST_FILES: [&str; 9] = [".cjs", ".js", ".mjs", ".php", ".pl", ".py", ".rb", ".t", ".ts"];
/// Endings of files of tests that a shell runs.
const OF_SHELLS: [&str; 3] = [".bash", ".bats", ".sh"];
/// Words in the names of scripts that prepare or change something, besides those of tasks that write.
const PREPARE: [&str; 43] = [
    "apply",
    "bootstrap",
    "build",
    "clean",
    "clear",
    "compile",
    "configure",
    "copy",
    "create",
    "delete",
    "download",
    "fetch",
    "gen",
    "generate",
    "init",
    "link",
    "load",
    "make",
    "patch",
    "populate",
    "prepare",
    "provision",
    "pull",
    "push",
    "rebuild",
    "record",
    "refresh",
    "regen",
    "regenerate",
    "reload",
    "remove",
    "reset",
    "restore",
    "revert",
    "rollback",
    "save",
    "seed",
    "setup",
    "start",
    "stop",
    "switch",
    "sync",
    "upgrade",
];
/// Words in the names of scripts of shells that start what tests need: `test-server.sh`.
const SERVE: [&str; 9] = ["data", "database", "db", "docker", "env", "environment", "fixtures", "server", "services"];
/// Programs that build what they test.
const BUILDERS: [&str; 15] = [
    "bazel", "cabal", "cargo", "dart", "dotnet", "flutter", "go", "gradle", "lein", "mix", "mvn", "sbt", "stack",
    "swift", "zig",
];
/// Files that are none.
const NO_FILES: [&str; 4] = ["/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"];

/// Returns the first command of a line that is not known to only read or check: any other command may change files, install
/// packages or start services.
pub fn other_command(line: &str) -> Option<String> {
    let line = with_quoted_script(line.trim());
    let read = CommandLine::read(&line, Dialect::Posix);
    if read.has_unknown || read.changes_shell {
        return Some(line);
    }
    // A program with a folder of its own is in both lists; the one that shows the folder decides.
    let without_folder = |form: &String| name_of_program(form).to_owned();
    let shown_otherwise: Vec<String> = read.others().iter().map(without_folder).collect();
    let is_shown = |form: &str| shown_otherwise.iter().any(|other| other == form);
    let others = read.others().iter().map(String::as_str).filter(|form| !is_known_other(&read, form));
    let found = read.possible_commands().filter(|form| !is_shown(form) && !is_known(&read, form)).chain(others).next();
    found.map(shown)
}

/// Returns the first build of a line that only reads or checks, with its program. What it makes may be what the tests of another
/// program need.
pub fn build(line: &str) -> Option<(String, &'static str)> {
    let read = CommandLine::read(&with_quoted_script(line.trim()), Dialect::Posix);
    read.possible_commands().find_map(|form| {
        let words: Vec<&str> = form.split(' ').collect();
        let (program, rest) = itself(&words).split_first()?;
        let program = builder(program)?;
        let makes = |word: &str| {
            let first = word.split([':', '-', '_']).next().unwrap_or_default();
            matches!(first, "build" | "compile" | "package") || (program, word) == ("cargo", "b")
        };
        let mut plain = rest.iter().filter(|word| !word.starts_with('-'));
        let is_build = match RUN_TARGETS.contains(&program) {
            true => plain.any(|word| makes(word)),
            false => plain.next().is_some_and(|word| makes(word)),
        };
        is_build.then(|| (shown(form), program))
    })
}

/// Returns the name of a program that builds what it tests, without its folder and its wrapper: `gradle` for `./gradlew`.
pub(super) fn builder(program: &str) -> Option<&'static str> {
    let name = match name_of(program) {
        "bazelisk" => "bazel",
        "gradlew" => "gradle",
        "mvnw" => "mvn",
        name => name,
    };
    BUILDERS.into_iter().find(|known| *known == name)
}

/// Returns a command in the normal form as a text to read.
fn shown(form: &str) -> String {
    form.replace(['␣', '␤'], " ")
}

/// Returns a command without the folder of its program.
fn name_of_program(form: &str) -> &str {
    let program = form.split(' ').next().unwrap_or_default();
    form.get(program.rfind('/').map_or(0, |at| at + 1)..).unwrap_or(form)
}

/// Returns true if a program with a folder of its own is a check, or an assignment changes only the output.
fn is_known_other(read: &CommandLine, form: &str) -> bool {
    let words: Vec<&str> = form.split(' ').collect();
    match words.as_slice() {
        ["GIT_PAGER=cat" | "PAGER=cat" | "MANPAGER=cat" | "GIT_OPTIONAL_LOCKS=0"] => true,
        [one] if is_assignment(one) => options::is_known_variable(one),
        _ => {
            let (redirections, words) = parted(read, form);
            redirections.iter().all(|word| keeps_files(word))
                && !words.iter().any(|it| is_unshown(it))
                && checks(&words)
        }
    }
}

/// Returns the redirections of a command, which come last, and its words.
fn parted<'a>(read: &CommandLine, form: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut words: Vec<&str> = form.split(' ').collect();
    let redirections = words.split_off(words.len().saturating_sub(read.redirections_of(form)));
    (redirections, words)
}

/// Returns true if a redirection writes no file.
fn keeps_files(redirection: &str) -> bool {
    redirection.starts_with('<') || NO_FILES.contains(&redirection.trim_start_matches('>'))
}

/// Returns true if a part of a word may be a value that the line does not show. A last `$` belongs to a pattern.
fn is_unshown(word: &str) -> bool {
    word.split('$').skip(1).any(|behind| behind.starts_with(|c: char| !")|/'\"".contains(c)))
}

fn is_known(read: &CommandLine, form: &str) -> bool {
    let (redirections, words) = parted(read, form);
    let Some((program, rest)) = words.split_first() else { return false };
    if !redirections.iter().all(|word| keeps_files(word)) {
        return false;
    }
    if READERS.contains(program) {
        return true;
    }
    let has = |words: &[&str]| rest.iter().any(|word| words.contains(word));
    let begins = |starts: &[&str]| rest.iter().any(|word| starts.iter().any(|start| word.starts_with(start)));
    let has_letter = |letters: &[char]| rest.iter().any(|word| is_cluster(word) && word.contains(letters));
    // `$p` in the form may be a variable, or the text of a script in quotes.
    let is_unknown = |place: usize| read.has_unknown_word(form, place + 1);
    match *program {
        "awk" | "gawk" | "mawk" => return awk_only_prints(rest, is_unknown),
        "sed" | "gsed" => return sed_only_prints(rest, is_unknown),
        "set" => return stops_at_failure(&owned(&words)).is_some(),
        _ if rest.iter().any(|word| is_unshown(word)) => return false,
        _ => {}
    }
    match *program {
        _ if matches!(rest, ["--version" | "--help" | "-V"]) => true,
        "git" => git_only_reads(rest),
        "find" | "gfind" => !begins(&["-delete", "-fls", "-fprint", "-ok"]),
        "fd" | "fdfind" => !begins(&["--exec"]) && !has_letter(&['x', 'X']),
        "rg" => !has(&["--pre"]) && !begins(&["--pre=", "--hostname-bin"]),
        "sort" => !begins(&["--"]) && !has_letter(&['o']),
        // `-R` writes files as `-o` does.
        "tree" => !begins(&["--"]) && !has_letter(&['o', 'R']),
        "tee" => rest.iter().all(|word| NO_FILES.contains(word) || *word == "-a"),
        "xargs" | "gxargs" => xargs_only_reads(rest),
        "uniq" => rest.iter().filter(|word| !word.starts_with('-') || **word == "-").count() <= 1,
        "file" => !begins(&["--"]) && !has_letter(&['C']),
        "less" | "more" => !begins(&["-", "+"]),
        "date" => rest.iter().all(|word| word.starts_with('+') || matches!(*word, "-u" | "-R" | "-I")),
        "printf" => !begins(&["-v"]),
        "time" => rest.iter().take_while(|word| word.starts_with('-')).all(|word| *word == "-p"),
        "env" => {
            let mut before = rest.iter().take_while(|word| word.starts_with('-') || is_assignment(word));
            before.all(|word| is_assignment(word) && options::is_known_variable(word))
        }
        "pip" | "pip3" => pip_only_reads(rest),
        "python" | "python3" if matches!(rest, ["-m", "pip", ..]) => pip_only_reads(&rest[2..]),
        "npm" if matches!(rest, ["ls" | "list", ..]) => true,
        "prove" => rest.iter().all(|word| {
            matches!(*word, "-l" | "-r" | "-v" | "-q" | "-lr" | "-lv" | "-rv" | "-lrv" | "t" | "--lib" | "--verbose")
                || !word.starts_with('-') && (word.starts_with("t/") || word.ends_with(".t"))
        }),
        _ if WRAPPERS.contains(program) => true,
        _ if is_shell(program) && gives_text(rest) => true,
        _ => checks(&words),
    }
}

fn pip_only_reads(rest: &[&str]) -> bool {
    let lists = matches!(rest, ["list" | "show" | "freeze" | "check", ..]);
    lists && !rest.iter().any(|word| word.starts_with("--log"))
}

/// Returns true if `xargs` gives the words of its input to a program that only reads, whatever its arguments are.
fn xargs_only_reads(rest: &[&str]) -> bool {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "-0" | "-r" | "-t" | "-x" | "--null" | "--no-run-if-empty" => {}
            "-n" | "-L" | "-P" | "-I" | "-d" | "-s" | "-a" => drop(words.next()),
            word if ["-n", "-L", "-P", "-I", "-d"].iter().any(|option| word.starts_with(option)) => {}
            program => return READERS.contains(&program),
        }
    }
    true
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns true if a word is several options of one letter, or one with its value: `-nE`, `-k2`.
fn is_cluster(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

/// Returns true if a command is a known check, with known options.
fn checks(words: &[&str]) -> bool {
    if reports_coverage(&owned(words)) {
        return true;
    }
    let Some((program, rest)) = itself(words).split_first() else { return false };
    let name = name_of(program);
    let is_choice = |word: &str| {
        let is_one =
            |options: &[&str]| options.contains(&word) || options.contains(&word.split('=').next().unwrap_or(word));
        CHOOSE_TESTS.iter().any(|(programs, options)| programs.contains(&name) && is_one(options))
    };
    let own: Vec<&str> = words.iter().copied().filter(|word| !is_choice(word)).collect();
    if purpose_with(&own, of_whole_name).is_none() || options::unknown(&owned(&own)).is_some() {
        return false;
    }
    // The name of a script decides only if its arguments do not: `./check.sh install`.
    if purpose_with(&own, |_| None).is_none() {
        let is_script = |word: &str| !word.starts_with('-') && of_whole_name(word).is_some();
        let mut arguments = itself(&own).iter().skip_while(|word| !is_script(word)).skip(1);
        while let Some(word) = arguments.next() {
            match *word {
                "-k" => drop(arguments.next()),
                word if word.starts_with('-') || chooses_tests(word) => {}
                _ => return false,
            }
        }
    }
    // These write files that later commands may run.
    let writes = match name {
        "tsc" => !rest.contains(&"--noEmit"),
        "go" => rest.first() == Some(&"build") && !rest.contains(&"./..."),
        _ => false,
    };
    if writes {
        return false;
    }
    if name == "nox" {
        // Without names it runs all sessions. `tests(python='3.12')` is one of several with this name.
        let own = rest.iter().take_while(|word| **word != "--");
        let joined =
            |word| ["--session=", "--sessions="].into_iter().find_map(|option| str::strip_prefix(word, option));
        let own = own.map(|word| joined(*word).unwrap_or(*word)).filter(|word| !word.starts_with('-'));
        let mut sessions = own.map(|word| word.split('(').next().unwrap_or(word)).peekable();
        return sessions.peek().is_some() && sessions.all(|session| is_task_of_check(name, session));
    }
    if name == "tox" {
        let mut named = rest.windows(2).filter(|pair| pair[0] == "-e").flat_map(|pair| pair[1].split(','));
        return named.all(is_environment_of_check);
    }
    let mut plain =
        rest.iter().filter(|word| !word.starts_with('-') && !word.bytes().all(|byte| byte.is_ascii_digit()));
    if RUN_A_SCRIPT.contains(&name) {
        let mut names = plain.filter(|word| !matches!(**word, "run" | "run-script"));
        let script = match names.next() {
            Some(&"workspace") => names.nth(1),
            first => first,
        };
        return script.is_some_and(|script| is_task_of_check(name, script));
    }
    !RUN_TARGETS.contains(&name) || plain.all(|target| is_task_of_check(name, target))
}

/// Returns true if the whole name of a task is one of a check: the task `lint:fix` is not. Neither is `build` of a program whose
/// tests do not build what they need: the files that it writes may be what a later test lacked.
fn is_task_of_check(program: &str, name: &str) -> bool {
    let mut parts = name.split([':', '-', '_']);
    let writes = matches!(parts.next(), Some("build" | "compile")) && RUN_ONLY.contains(&program);
    // `tests-3.12`
    let is_version = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    of_script(name).is_some() && !writes && parts.all(|part| PARTS.contains(&part) || is_version(part))
}

/// Returns true if the whole name of an environment of tox is one of a check, or of a version: `py311`, `py3.12-unit`.
fn is_environment_of_check(name: &str) -> bool {
    name.split(['-', '_']).all(|part| {
        let version = part.strip_prefix("pypy").or_else(|| part.strip_prefix("py")).unwrap_or(part);
        is_part_of_check(part) || !part.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

/// Returns true if a part of a name is a word for checks, or may stand beside one.
fn is_part_of_check(part: &str) -> bool {
    OF_TESTS.contains(&part) || OF_CHECKS.contains(&part) || PARTS.contains(&part)
}

/// Returns true if a part of a name is a verb of scripts that change something.
fn writes(part: &str) -> bool {
    options::WRITE.contains(&part) || PREPARE.contains(&part)
}

/// Returns true if a plain argument of a script only chooses what it checks: a number, a word such as `unit`, a class of tests
/// or a path of tests.
fn chooses_tests(word: &str) -> bool {
    let path = word.split("::").next().unwrap_or_default();
    let is_in_tests = path.rsplit('/').skip(1).any(|folder| OF_TESTS.contains(&folder));
    word.bytes().all(|byte| byte.is_ascii_digit())
        || word.split([':', '-', '_']).all(is_part_of_check)
        || word.starts_with("Test")
        || is_in_tests && !path.split(['/', '.', '-', '_']).any(writes)
        || path.contains(['.', '/']) && of_whole_name(path).is_some()
}

/// Returns the purpose of a script whose whole name is one of a check: `check_and_fix.sh` is not. A file of tests may have any
/// other word in its name that is no such verb: `test_total.py`, `total.test.js`.
fn of_whole_name(path: &str) -> Option<Purpose> {
    let name = name_of(path).to_ascii_lowercase();
    let mut dotted = name.split('.');
    let parts: Vec<&str> = dotted.next().unwrap_or_default().split(['-', '_']).collect();
    let has_ending = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let is_whole = parts.iter().all(|part| *part == "run" || is_part_of_check(part));
    let ends = [parts.first(), parts.last()];
    let may_be_of_tests = !parts.iter().any(|part| writes(part))
        && (has_ending(&OF_TEST_FILES) || has_ending(&OF_SHELLS) && !parts.iter().any(|part| SERVE.contains(part)));
    let is_of_tests = may_be_of_tests && ends.into_iter().flatten().any(|end| OF_TESTS.contains(end));
    // `total.test.js`, `tests/run.sh`
    let has_infix = has_ending(&OF_TEST_FILES) && dotted.next().is_some_and(|word| OF_TESTS.contains(&word));
    let is_in_tests = path.rsplit('/').nth(1).is_some_and(|folder| OF_TESTS.contains(&folder));
    let is_other = may_be_of_tests && (has_infix || is_whole && is_in_tests);
    of_file(path).filter(|_| is_whole || is_of_tests).or(is_other.then_some(Purpose::Tests))
}

/// Returns true if a shell gets its commands as a text, which are listed beside it, and reads no other file than its settings.
fn gives_text(rest: &[&str]) -> bool {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').unwrap_or_default();
        if letters.is_empty() || !letters.chars().all(|c| "celoux".contains(c)) {
            return false;
        }
        if letters.contains('o') && words.next() != Some(&"pipefail") {
            return false;
        }
        if letters.contains('c') {
            return words.next().is_some();
        }
    }
    false
}

fn git_only_reads(rest: &[&str]) -> bool {
    let mut words = rest;
    loop {
        words = match words {
            ["--no-pager" | "-P" | "--no-optional-locks", more @ ..] | ["-C", _, more @ ..] => more,
            _ => break,
        };
    }
    let Some((command, rest)) = words.split_first() else { return true };
    // `--output=FILE` and programs for differences, also cut short.
    let runs = ["--ou", "--ext", "--op", "--textconv", "--filters"];
    if rest.iter().any(|word| runs.iter().any(|start| word.starts_with(start))) {
        return false;
    }
    match (*command, rest) {
        ("grep", _) => !rest.iter().any(|word| is_cluster(word) && word.contains('O')),
        (command, _) if GIT.contains(&command) => true,
        ("branch", _) => rest.iter().all(|word| {
            matches!(*word, "-a" | "--all" | "-r" | "--remotes" | "-v" | "-vv" | "--list" | "--show-current")
        }),
        ("stash" | "worktree", ["list", ..]) | ("stash" | "reflog", ["show", ..]) => true,
        ("remote" | "tag" | "reflog", []) | ("remote", ["-v"]) | ("tag", ["-l" | "--list", ..]) => true,
        ("config", ["--get" | "--get-all" | "--list" | "-l", ..]) | ("submodule", ["status"]) => true,
        _ => false,
    }
}

/// Returns true if `sed` only prints: it edits no file in place, and its scripts have only commands that print, delete and
/// replace.
fn sed_only_prints(rest: &[&str], is_unknown: impl Fn(usize) -> bool) -> bool {
    static SCRIPT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let text = |sign: &str| format!(r"(?:[^{sign}\\␤]|\\[^␤])*");
        let address = format!(r"(?:[0-9]+|\$|\+[0-9]+|/{}/I?)", text("/"));
        let replaced = |sign: &str| format!(r"s{sign}{text}{sign}{text}{sign}[gpIi0-9]*", text = text(sign));
        let command = format!(
            r"␣*(?:{address}(?:,␣*{address})?)?␣*!?␣*(?:[pdqQ=l][0-9]*|{}|{}|{}|{})?␣*",
            replaced("/"),
            replaced(r"\|"),
            replaced("#"),
            replaced(",")
        );
        Regex::new(&format!("^{command}(?:;{command})*$")).ok()
    });
    let only_prints = |(place, script): &(usize, &str)| {
        !is_unknown(*place) && SCRIPT.as_ref().is_some_and(|pattern| pattern.is_match(script))
    };
    let mut words = rest.iter().copied().enumerate();
    let mut scripts: Vec<(usize, &str)> = Vec::new();
    let mut operands: Vec<(usize, &str)> = Vec::new();
    while let Some((place, word)) = words.next() {
        match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            None => operands.push((place, word)),
            Some("-quiet" | "-silent" | "-regexp-extended") => {}
            Some(letters) if letters.chars().all(|c| "nErsuz".contains(c)) => {}
            Some(letters) if letters.strip_suffix('e').is_some_and(|it| it.chars().all(|c| "nErsuz".contains(c))) => {
                scripts.extend(words.next());
            }
            Some(_) => return false,
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    !scripts.is_empty() && scripts.iter().all(only_prints)
}

/// Returns true if the program of `awk` runs no commands and writes no file.
fn awk_only_prints(rest: &[&str], is_unknown: impl Fn(usize) -> bool) -> bool {
    let mut words = rest.iter().copied().enumerate();
    while let Some((place, word)) = words.next() {
        match word {
            word if is_unknown(place) && !word.starts_with('-') => return false,
            "-F" | "-v" => drop(words.next()),
            word if word.starts_with("-F") => {}
            word if word.starts_with('-') => return false,
            program => {
                let text = program.replace("||", "");
                let runs = text.contains(['|', '@']) || text.contains("system") || text.contains("close");
                // A `>` before the first `print` compares.
                let writes = text.split_once("print").is_some_and(|(_, behind)| behind.contains('>'));
                // `/a$/` is a pattern.
                let is_field = |behind: &str| {
                    behind.starts_with(|c: char| c.is_ascii_digit() || c == '/') || behind.starts_with("NF")
                };
                return !runs && !writes && program.split('$').skip(1).all(is_field);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::builds_itself;
    use super::*;

    #[test]
    fn lines_that_only_read_or_check_are_known() {
        for line in [
            "",
            "# what is there\nls",
            "ls -la && pwd; cat a.py | head -20",
            "cd web && rg -n 'def f$' src | head",
            "grep -rn \"total(\" --include='*.py' . 2>/dev/null | sort -u | uniq -c | wc -l",
            "find . -name '*.py' -not -path './.venv/*' | head",
            "find . -name '*.py' -exec grep -l total {} +",
            "sed -n '1,20p' a; sed -n '10,$p;40q' b; sed -n -e '/def f/,/^$/p' c; sed 's/a b/c/g' d",
            "awk 'NR>=3 && NR<=9 {print $1}' a | tail -3",
            "git status --short && git diff --stat; git log --oneline -5; git --no-pager show HEAD:calc.py",
            "git -C web blame a.py; git branch --show-current; git stash list",
            "GIT_PAGER=cat git diff",
            "bash -lc 'sed -n 1,9p a; git diff'",
            "bash -lc cat a.py | head",
            "set -e; cd a && bash -euo pipefail -c 'ls'",
            "for f in a b; do cat $f; done",
            "if [ -f a ]; then cat a; else echo none; fi",
            "command -v pytest; which python3; python3 --version; node --version",
            "pytest -q tests/test_a.py::test_b -xvs 2>&1 | tail -20",
            "timeout 60 python3 -m pytest -q; echo \"exit: $?\"",
            ".venv/bin/python -m pytest -q && ./run_tests.sh",
            "RUST_BACKTRACE=1 cargo test 2>&1 | grep -E 'test|error' | head -40",
            "cargo check && cargo clippy --all-targets -- -D warnings; cargo build",
            "npm test -- --ci && npm run test:unit; make -j4 test; tsc --noEmit; go vet ./... && go test ./...",
            "uv run pytest -q; npx jest; poetry run pytest",
            "cat <<E\ntext $(ls)\nE",
            "cd \"$(git rev-parse --show-toplevel)\" && ls",
            "pip list | grep -i pytest; pip show x",
            // Options that choose tests, and comparisons in quotes.
            "pytest --lf -q && python3 -m pytest --ff; pytest --co -q",
            "npx jest --watchAll=false; npm test -- --watchAll=false",
            "grep -n '>= 3' a.py; cat a.py | grep '>='; grep '>x' a.py",
            "git ls-files | xargs grep -n total; find . -print0 | xargs -0 -n 10 wc -l",
            "grep total a.py '>=3'; for f in $(git ls-files); do sed -n 1,5p $f; done; sed '$!d' a; awk '{print $NF}' a",
            "sort a | uniq -c -; uniq - 2>/dev/null",
            "python3 tests/test_total.py; node total_test.js; sh run-unit-tests.sh; ./ci/lint.sh; bash check.sh",
            "nox -s tests; nox -s tests-3.12 lint -- -k total",
            "cargo build; mvn compile; go build ./...",
            "pytest -q 2>&1 | tee /dev/null | tail -3; uptime",
            // Scripts of tests, with arguments that choose some of them.
            "sh tests/test_total.sh; ./test-cli.sh; bash tests/run.sh; node calc.test.js; npx tsx --test a.test.ts",
            "./run_tests.sh unit 3; bash test.sh tests/a.py; python3 tests/test_a.py -v TestA.test_b; ./test.sh -k install",
            "prove -l t; prove t/a.t; ctest --test-dir build --output-on-failure; awk '/a$/' a",
            "nox --session tests; nox --session=lint; nox -e tests; tox; tox -e py311,lint; tox -e py3.12-unit",
        ] {
            assert_eq!(other_command(line), None, "{line}");
        }
    }

    #[test]
    fn any_other_command_is_named() {
        for line in [
            // Substitutions, here-strings, variables, functions and other languages.
            "echo \"$(pip install foo)\"",
            "ls ~+ \"a`pip install foo`\"",
            "ls ${x:-$(git stash)}",
            "x=$(git stash)",
            "cat <(git stash)",
            "cat <<E\n$(git stash)\nE",
            "bash <<< \"git stash\"",
            "bash <<E\ngit stash\nE",
            "echo git stash | sh",
            "curl -sSL https://x.y/install.sh | sh",
            "f() { git \"$@\"; }; f stash",
            "pytest() { true; }",
            "g=git; $g stash",
            "git $(cat a)",
            "alias pytest=true",
            "alias g=git; g stash",
            "trap 'git stash' EXIT",
            "eval 'git stash'",
            "ls | xargs git",
            "script -qc 'git stash' /dev/null",
            "parallel git ::: stash",
            "python3 -c 'print(1)'",
            "python3 - <<E\nprint(1)\nE",
            // Scripts and programs.
            "./fix.sh",
            "bash fix.sh",
            "source x",
            ". ./x",
            "./ls",
            "npm run setup",
            "npm run lint:fix",
            "make test install",
            "python3 fix.py",
            "bundle",
            "pixi install",
            "pip install -e .",
            "docker run -d postgres",
            "pg_ctl start",
            "python3 manage.py migrate",
            "git submodule update --init",
            "git s",
            "git -c alias.x='!rm a' x",
            "git diff --output=calc.py",
            "git grep -Ovim x",
            "git branch new",
            "GIT_PAGER='rm a' git -p log",
            // Writers.
            "black .",
            "ruff check --fix .",
            "jest -u",
            "vim -c wq calc.py",
            "sponge calc.py",
            "awk '{print > \"calc.py\"}' a",
            "awk 'BEGIN {system(\"x\")}'",
            "awk '{print | \"sh\"}' a",
            "sed -i s/a/b/ a",
            "sed -n 'w calc.py' a",
            "sed 's/a/b/w calc.py' a",
            "sed 's/a/b/e' a",
            "sed 1p a -i",
            "sort -o calc.py a",
            "uniq a calc.py",
            "uniq - calc.py",
            "sed -n \"$p\" calc.py",
            "sed -n -e \"$p\" calc.py",
            "awk \"$1\" calc.py",
            "echo x > =foo",
            "cat a >'=foo'",
            // Names of scripts and sessions with more than a check.
            "sh check_and_fix.sh",
            "./install_and_test.sh",
            "./verify_install.sh",
            "./scripts/update-tests.sh",
            "./ci/setup-test-db.sh",
            "sh test-db-reset.sh",
            "./setup_tests.sh",
            "bash run-tests-and-deploy.sh",
            "python3 test_reset.py",
            "python3 update_tests.py",
            "nox",
            "nox -s format",
            "nox -s tests fmt",
            "nox --session=format",
            "nox -e format",
            "tox -e format",
            "tox -e py311,deploy",
            "prove setup.pl",
            "./check.sh install",
            "./check.sh fix",
            "bash test.sh setup",
            "bash ci/test.sh deploy",
            "./run_tests.sh build",
            "python3 run_tests.py migrate",
            "./test.sh db reset",
            "python3 make_test.py",
            "node make_test.js",
            "python3 regen_tests.py",
            "python3 apply_test.py",
            "python3 load_tests.py",
            "python3 build_test.py",
            "node bootstrap-test.js",
            "node sync-test.mjs",
            "node sync.test.js",
            "python3 test_rollback.py",
            "./test-server.sh",
            "bash tests/setup.sh",
            "find . -delete",
            "find . -fprint calc.py",
            "find . -exec rm {} +",
            "rg --pre ./x y",
            "fd -x rm",
            "echo a > calc.py",
            "pytest > out.txt",
            "> calc.py",
            "touch conftest.py",
            "rm -rf __pycache__",
            "ln -s /opt/foo foo",
            "export PYTHONPATH=/opt",
            "PATH=.:$PATH",
            "PATH=./fake pytest",
            "env PATH=./fake ls",
            "set -n",
            "exec git stash",
            "nohup git stash",
            "ls; (git stash)",
            // What is given to a program that writes for some arguments, and files that later commands may run.
            "ls | xargs sort",
            "ls | xargs -n 1 sh -c 'git stash'",
            "ls | xargs -a x touch",
            "cat a | tee calc.py",
            "grep x a > calc.py",
            "grep '>= 3' a > calc.py",
            "tree -R -L 1",
            "pip list --log=calc.py",
            "rake test db:migrate",
            "pytest --lf --snapshot-update",
            "npm test -- --watchAll=false -u",
            "go build",
            "tsc",
            "npm run build",
            "make compile",
        ] {
            assert!(other_command(line).is_some(), "{line}");
        }
        assert_eq!(other_command("cd a && bash -lc 'ls; git stash push'").as_deref(), Some("git stash push"));
        assert_eq!(other_command("./fix.sh 'a b'").as_deref(), Some("./fix.sh a b"));
    }

    #[test]
    fn builds_are_told_from_other_checks() {
        for (line, expected) in [
            ("cargo build --release 2>&1 | tail", Some(("cargo build --release", "cargo"))),
            ("cd a && timeout 60 ./gradlew :app compileJava build", Some(("gradle", "gradle"))),
            ("bash -lc 'dotnet build'", Some(("dotnet build", "dotnet"))),
            ("mvn -q compile", Some(("mvn -q compile", "mvn"))),
            ("swift build", Some(("swift build", "swift"))),
            ("go build ./...", Some(("go build ./...", "go"))),
            ("cargo test -p build && cargo check; go test ./build; pytest build; ls", None),
        ] {
            let found = build(line);
            assert_eq!(found.as_ref().map(|(_, program)| *program), expected.map(|(_, program)| program), "{line}");
            if let (Some((command, _)), Some((text, program))) = (&found, expected) {
                assert!(text == program || command.starts_with(text), "{line}: {command}");
            }
        }
        assert!(builds_itself("cargo test && (cd a && cargo clippy)", "cargo"));
        assert!(builds_itself("./gradlew test", "gradle"));
        for line in ["pytest tests/cargo", "cargo test && pytest", "npm test", "ls"] {
            assert!(!builds_itself(line, "cargo"), "{line}");
        }
    }
}
