//! `command`: runs a command in the workspace and checks how it ends.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess};
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Workspace};
use crate::command_line::{simple_commands, text_of_started_shell};
use crate::grade::Grade;
use crate::reason_text;
use crate::shell::{Command, CommandOutcome, KEPT};
use crate::trace::Exit;
use crate::trace::Lost;
use crate::values::{Pattern, Time};
use crate::yaml::forms::{self, Forms, deserialize_forms};
use crate::yaml::lists::OneOrList;
use crate::yaml::lists::not_null;

mod own_modes;

pub(super) use own_modes::OwnModes;

/// A command, and how it must end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a map such as `{run: make test}`")]
pub struct RunCommand {
    /// The command: a line for `sh -c`, or a list of a program and its arguments.
    pub run: Run,
    /// The expected exit code.
    #[serde(default)]
    pub exit: i32,
    /// The timeout. A command that exceeds it fails.
    #[serde(default = "five_minutes")]
    pub timeout: Time,
    /// A text, or a list of texts, that standard output must contain.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub stdout_contains: Option<OneOrList<String>>,
    /// A regular expression, or a list of them, that must match standard output; unanchored.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub stdout_regex: Option<OneOrList<Pattern>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Run {
    /// A line for `sh -c`.
    Line(String),
    /// A program and its arguments.
    Program(Vec<String>),
    /// The end of a line for `sh -c`, because the commands before it were run alone.
    #[serde(skip)]
    Rest {
        /// The end of the line, which the shell runs.
        line: String,
        /// The line, by which messages name the command.
        whole: String,
        /// The exit code of the commands before it, which is `$?` at its beginning.
        status: i32,
    },
}

impl<'de> Forms<'de> for Run {
    const EXPECTED: &'static str = "a command line, or a list of a program and its arguments";

    fn from_text<E: Error>(line: &str) -> Result<Self, E> {
        Ok(Run::Line(line.to_owned()))
    }

    // `run: true` is a command, too; `True` is not.
    fn from_flag<E: Error>(flag: bool) -> Result<Self, E> {
        Ok(Run::Line(flag.to_string()))
    }

    fn from_list<A: SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        forms::list(seq).map(Run::Program)
    }
}

deserialize_forms!(Run, deserialize_any);

/// Returns true if a shell line is made of comments and blanks, or only starts another shell with such a line.
fn runs_nothing(line: &str) -> bool {
    if line.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#')) {
        return true;
    }
    match simple_commands(line).as_deref() {
        Some([command]) if !command.is_compound && !command.writes_file && command.input.is_none() => {
            let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
            text_of_started_shell(&words).is_some_and(|text| text.len() < line.len() && runs_nothing(text))
        }
        _ => false,
    }
}

impl Run {
    /// Returns true if the command runs no program.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Run::Line(line) | Run::Rest { line, .. } => runs_nothing(line),
            Run::Program(words) => {
                let all: Vec<&str> = words.iter().map(String::as_str).collect();
                let is_unnamed = all.first().is_none_or(|program| program.trim().is_empty());
                is_unnamed || text_of_started_shell(&all).is_some_and(runs_nothing)
            }
        }
    }

    /// Returns the commands that set permissions or owners, or remove files, before any other program runs, if there are any.
    pub(super) fn own_modes(&self) -> Option<OwnModes> {
        OwnModes::of(self)
    }

    /// Returns the command that a shell runs.
    pub(super) fn command(&self) -> Command {
        match self {
            Run::Line(line) => Command::Line(line.clone()),
            Run::Rest { line, whole, status } => {
                let before = whole.strip_suffix(line.as_str()).unwrap_or_default();
                // `$LINENO` counts the lines before it, too.
                let lines = "\n".repeat(before.matches('\n').count());
                Command::Line(format!("{lines}(exit {status});{line}"))
            }
            Run::Program(words) => Command::Program(words.clone()),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Run::Line(line) | Run::Rest { whole: line, .. } => f.write_str(line),
            Run::Program(words) => f.write_str(&words.join(" ")),
        }
    }
}

#[cfg(test)]
impl JsonSchema for Run {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Run".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "a line for `sh -c`, or a list of a program and its arguments",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
        })
    }
}

/// Returns the default timeout of commands, scripts and test runners.
pub(super) fn five_minutes() -> Time {
    Time(Duration::from_secs(300))
}

impl GraderSpec for RunCommand {
    fn depends_on_loss(&self, _: Lost) -> bool {
        false
    }

    fn needs() -> Needs {
        Needs { workspace: Workspace::Files, commands: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        let texts = self.stdout_contains.iter().flat_map(OneOrList::iter);
        let patterns = self.stdout_regex.iter().flat_map(OneOrList::iter);
        let in_any_text = patterns.clone().find(|pattern| pattern.is_in_any_text() && !pattern.0.as_str().is_empty());
        if self.run.is_empty() {
            Some("runs nothing: `run` is empty".to_owned())
        } else if texts.map(String::as_str).chain(patterns.map(|pattern| pattern.0.as_str())).any(str::is_empty) {
            Some("checks nothing: an expectation of its standard output is empty".to_owned())
        } else if let Some(pattern) = in_any_text {
            Some(format!("checks nothing: `stdout-regex` holds /{pattern}/, which matches any text"))
        } else if self.timeout.0.is_zero() {
            Some("has a `timeout` of 0, which no command can meet".to_owned())
        } else if !(0..=255).contains(&self.exit) {
            Some(format!("expects the exit code {}, with which no command can end; codes are 0 to 255", self.exit))
        } else {
            None
        }
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(Watch(self.clone()))
    }
}

struct Watch(RunCommand);

#[async_trait]
impl Observer for Watch {
    fn run(&mut self) -> Option<&mut Run> {
        Some(&mut self.0.run)
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.0.grade(evidence).await.into()
    }
}

impl RunCommand {
    /// Runs the command and grades how it ended.
    async fn grade(&self, evidence: &Evidence<'_>) -> Grade {
        let command = self.run.command();
        let shown = format!("`{}`", reason_text::short(&self.run.to_string(), 200));
        match evidence.shell.run(&command, None, self.timeout.0).await {
            Err(error) => Grade::ungraded(format!("{shown} could not be started: {error}")),
            Ok(outcome) => self.grade_run(&shown, &outcome, evidence),
        }
    }

    fn grade_run(&self, shown: &str, outcome: &CommandOutcome, evidence: &Evidence<'_>) -> Grade {
        let tail = outcome.end();
        let mut checks = Checks::default();
        if let Some(exceeded) = outcome.memory_exceeded() {
            return Grade::ungraded(format!("{shown} {exceeded}{tail}"));
        }
        let ended = match outcome.exit {
            None => {
                return Grade::fail(format!(
                    "{shown} took longer than its timeout of {} and was ended{tail}",
                    self.timeout
                ));
            }
            Some(Exit { code: Some(127), .. }) if self.exit != 127 && is_not_installed(&self.run, evidence) => {
                return Grade::ungraded(format!("{shown} could not be started: its program is not installed{tail}"));
            }
            Some(Exit { code: Some(code), .. }) => {
                let holds = code == self.exit;
                let not = if holds { String::new() } else { format!(", not with {}", self.exit) };
                (holds, format!("{shown} exited with {code}{not}"))
            }
            Some(Exit { signal: Some(signal), .. }) => (false, format!("{shown} was ended by signal {signal}")),
            Some(Exit { code: None, signal: None }) => {
                return Grade::ungraded(format!(
                    "{shown} ended in an unknown way, because its supervisor was lost{tail}"
                ));
            }
        };
        checks.either(ended.0, ended.1, []);
        // The end of the command's output is shown once, after the failed checks.
        checks.when_failed(tail);
        let stdout = String::from_utf8_lossy(&outcome.stdout);
        let mut expect = |holds: bool, does: &str, verb: &str, what: String| {
            if holds {
                checks.held(format!("its output {does} {what}"), []);
            } else if outcome.stdout.len() >= KEPT {
                checks
                    .unknown(format!("only the end of the output of {shown} was kept, and it does not {verb} {what}"));
            } else {
                checks.violated(format!("the output of {shown} does not {verb} {what}"), []);
            }
        };
        for text in self.stdout_contains.iter().flat_map(OneOrList::iter) {
            let holds = stdout.contains(text.as_str());
            expect(holds, "contains", "contain", format!("`{}`", reason_text::short(text, 100)));
        }
        for pattern in self.stdout_regex.iter().flat_map(OneOrList::iter) {
            expect(pattern.is_match(&stdout), "matches", "match", format!("/{pattern}/"));
        }
        checks.grade()
    }
}

/// Returns true if the program of a command line is not installed on this machine: then the grader failed, not
/// the agent. A path within the workspace is the agent's work.
pub(super) fn is_not_installed(run: &Run, evidence: &Evidence<'_>) -> bool {
    let (Run::Line(line) | Run::Rest { line, .. }) = run else { return false };
    let is_setting = |word: &&str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    // `{` begins a group of commands.
    let mut words = line.split_whitespace().skip_while(|word| *word == "{" || is_setting(word));
    let Some(program) = words.next() else { return false };
    if program.starts_with('/') {
        let in_workspace = evidence.workspace.is_some_and(|workspace| Path::new(program).starts_with(workspace));
        return program.chars().all(is_plain) && !in_workspace && !Path::new(program).exists();
    }
    is_missing(program, evidence.shell.env.get("PATH").map(String::as_str).unwrap_or_default())
}

/// Returns true if a plain word, unless the shell itself knows it, names no program in the folders of `path`.
pub(super) fn is_missing(program: &str, path: &str) -> bool {
    !program.contains('/')
        && !program.is_empty()
        && program.chars().all(is_plain)
        && !SHELL_WORDS.contains(&program)
        && !std::env::split_paths(path).any(|folder| folder.join(program).exists())
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.+/".contains(c)
}

/// Shell words that need no program.
const SHELL_WORDS: [&str; 38] = [
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "eval", "exec", "exit", "export", "fg",
    "for", "function", "getopts", "hash", "if", "jobs", "local", "read", "readonly", "return", "set", "shift",
    "source", "time", "times", "trap", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::grade::Score;
    use crate::shell::Shell;
    use crate::trace::usage::UsageTotal;
    use crate::trace::{Header, Seen, Stop, StopReason};

    /// Grades how a command ended, without running it.
    fn grade_of(grader: &str, exit: Option<Exit>, stdout: &str, stderr: &str) -> Grade {
        let grader: RunCommand = serde_yaml::from_str(grader).unwrap();
        let env = BTreeMap::from([("PATH".to_owned(), "/bin:/usr/bin".to_owned())]);
        let outcome = CommandOutcome { exit, memory_limit: None, stdout: stdout.into(), stderr: stderr.into() };
        let stop =
            Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit: None };
        let evidence = Evidence {
            harness: "demo",
            model: None,
            arm: "default",
            header: &Header::new("acp", Seen { tracing: false, interaction: false }),
            lasting_answer: None,
            stop: &stop,
            usage: &UsageTotal::default(),
            output: "",
            metrics: &crate::result::Metrics::default(),
            duration_ms: None,
            workspace: Some(Path::new("/nowhere/w")),
            change: None,
            hidden: None,
            case_folder: Path::new("/nowhere"),
            trace: None,
            patch: None,
            shell: &Shell { folder: "/nowhere/w".into(), env, ..Shell::default() },
            judges: &crate::judge::Judges::none(),
            unmasked: None,
        };
        grader.grade_run("`it`", &outcome, &evidence)
    }

    fn exited(code: i32) -> Option<Exit> {
        Some(Exit { code: Some(code), signal: None })
    }

    fn scored(grade: Grade) -> Score {
        match grade {
            Grade::Scored(score) => score,
            Grade::Ungraded { reason } => panic!("ungraded: {reason}"),
        }
    }

    #[test]
    fn the_exit_code_decides() {
        assert!(scored(grade_of("run: x", exited(0), "", "")).passed);
        assert!(scored(grade_of("{run: [x], exit: 3}", exited(3), "", "")).passed);
        let failed = scored(grade_of("run: cargo test", exited(101), "out\n", "one\n\ntwo\n"));
        assert!(!failed.passed);
        assert_eq!(failed.reason, "`it` exited with 101, not with 0\nstderr:\none\n\ntwo\nstdout:\nout");
        let blank = scored(grade_of("run: x", exited(1), "\n \n", "  a  \n\n\n"));
        assert_eq!(blank.reason, "`it` exited with 1, not with 0\nstderr:\n  a");
        let killed = scored(grade_of("run: x", Some(Exit { code: None, signal: Some(9) }), "", ""));
        assert_eq!((killed.passed, killed.reason.as_str()), (false, "`it` was ended by signal 9"));
        let lost = Some(Exit { code: None, signal: None });
        let Grade::Ungraded { reason } = grade_of("run: x", lost, "out\n", "") else { panic!("it was scored") };
        assert_eq!(reason, "`it` ended in an unknown way, because its supervisor was lost\nstdout:\nout");
    }

    #[test]
    fn the_end_of_a_line_begins_with_the_exit_code_and_in_the_line_of_the_whole() {
        let whole = "chmod +x a\nchmod +x b; sh c".to_owned();
        let rest = Run::Rest { line: " sh c".to_owned(), whole, status: 1 };
        assert!(matches!(rest.command(), Command::Line(line) if line == "\n(exit 1); sh c"));
        assert_eq!(rest.to_string(), "chmod +x a\nchmod +x b; sh c");
    }

    #[test]
    fn a_comment_in_a_shell_that_other_programs_start_runs_nothing() {
        let is_empty = |run: &str| serde_yaml::from_str::<Run>(run).unwrap().is_empty();
        for run in [
            "'# todo'",
            "[bash, -lc, '# todo']",
            "\"bash -lc '# todo'\"",
            "\"env bash -c 'sh -c \\\"# todo\\\"'\"",
            "[env, bash, -c, '# todo']",
            "[timeout, 5, bash, -c, '# todo']",
            "[busybox, sh, -c, '# todo']",
            "[fish, '--command=# todo']",
            "[nu, -c, '# todo']",
            "[sh, -c, '']",
        ] {
            assert!(is_empty(run), "{run}");
        }
        for run in [
            "'true'",
            "test -f a",
            "'[ -f a ]'",
            "'! grep -q x a'",
            "'bash -c \"$CHECK\"'",
            "\"bash -c '# todo' && make\"",
            "\"bash -c 'exit 1' # todo\"",
            "[bash, check.sh, '# todo']",
            "[env, make, '# todo']",
            "[bash, -c, make, '# todo']",
        ] {
            assert!(!is_empty(run), "{run}");
        }
    }

    #[test]
    fn a_command_that_takes_too_long_fails() {
        let late = scored(grade_of("{run: x, timeout: 2s}", None, "still here", ""));
        assert!(!late.passed);
        assert_eq!(late.reason, "`it` took longer than its timeout of 2s and was ended\nstdout:\nstill here");
    }

    #[test]
    fn what_it_prints_can_be_checked() {
        let grader = "{run: x, stdout-contains: [good, fine], stdout-regex: '^all'}";
        assert!(scored(grade_of(grader, exited(0), "all good, fine", "")).passed);
        let half = scored(grade_of(grader, exited(0), "all good", ""));
        assert_eq!((half.passed, half.value.get()), (false, 0.75));
        assert!(half.reason.contains("does not contain `fine`"), "{}", half.reason);
        // Only the end of the output was kept, so the missing text may have been in the rest.
        let long = "x".repeat(KEPT);
        assert!(matches!(grade_of(grader, exited(0), &long, ""), Grade::Ungraded { .. }));
        assert!(!scored(grade_of(grader, exited(1), &long, "")).passed);
    }

    #[test]
    fn a_program_that_is_not_installed_is_not_the_agents_failure() {
        for line in ["no-such-program-here --flag", "A=1 no-such-program-here", "/no/such/program"] {
            let grader = format!("run: {line}");
            assert!(matches!(grade_of(&grader, exited(127), "", "not found"), Grade::Ungraded { .. }), "{line}");
            assert!(!scored(grade_of(&grader, exited(1), "", "")).passed, "{line}");
            assert!(scored(grade_of(&format!("{{run: {line}, exit: 127}}"), exited(127), "", "")).passed, "{line}");
        }
        let group = "run: '{ A=1; no-such-program-here --flag || x; } && y'";
        assert!(matches!(grade_of(group, exited(127), "", "not found"), Grade::Ungraded { .. }), "{group}");
        for line in
            ["./made-by-agent", "sh missing", "exit 127", "cd src && x", "/nowhere/w/x", "(x)", "type x", "wait 1"]
        {
            assert!(!scored(grade_of(&format!("run: {line}"), exited(127), "", "")).passed, "{line}");
        }
    }
}
