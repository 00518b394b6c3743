//! `tests`: runs a test runner in the workspace, parses the result of each test, and grades the results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::command::{Run, five_minutes, is_missing, is_not_installed};
use super::observer::Finding;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Workspace};
use crate::command_line::is_shell;
use crate::grade::{Grade, Score, TestsSeen};
use crate::reason_text;
use crate::shell::{CommandOutcome, Shell};
use crate::text::plural;
use crate::trace::Exit;
use crate::trace::Lost;
use crate::values::{Fraction, PathGlob, Time};
use crate::workspace::hidden::changed::changed;
use crate::workspace::openat::open_file;
use crate::yaml::lists::OneOrList;
use crate::yaml::lists::{filled, not_null};

mod cargo;
mod fail_fast;
mod failed_files;
mod go;
mod junit;
mod node;
mod no_test;
mod node_failures;
mod old_reports;
mod pytest;
mod report;
mod tap;
mod unittest;

pub use no_test::any_test_ran;
use old_reports::{OldReports, reports};
use report::{Listed, Report, is_script};
pub use report::{Status, without_colour};

/// The exit of a runner whose supervisor was lost: how it ended is unknown.
const LOST: Exit = Exit { code: None, signal: None };
/// The reason why only bounds of the number of passed tests are known.
const NOT_EXACT: &str = "it is not known exactly how many tests passed, as the runner does not name them; add -v";
/// The maximum number of tests in a reason.
const SHOWN: usize = 8;
/// The maximum number of bytes read of a report.
const MAX_REPORT_BYTES: u64 = 64 << 20;
/// The maximum number of reports that are read.
const MAX_REPORTS: usize = 1000;
/// Redirections of a line whose runner writes its results to descriptor 3. Standard output then contains only test
/// results; output of the code under test goes to standard error.
pub const RESULTS_ALONE: &str = "3>&1 >&2";
/// The maximum number of bytes kept of the output of a runner: more than of other commands, because it names each test.
const KEPT: usize = 16 << 20;

/// Tests to run, and those of them that must pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a map such as `{run: pytest --junit-xml=r.xml, report: r.xml}`"
)]
pub struct Tests {
    /// The test runner: a line for `sh -c`, or a list of a program and its arguments.
    pub run: Run,
    /// The format of the runner's output. Default: detected.
    #[serde(default)]
    pub format: Format,
    /// Globs of JUnit files that the runner writes, relative to the workspace. They are read instead of the
    /// output.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub report: Option<OneOrList<PathGlob>>,
    /// Tests that failed before the agent's work and must pass now; `*` matches anything.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub fail_to_pass: Vec<String>,
    /// Tests that passed before the agent's work and must still pass.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub pass_to_pass: Vec<String>,
    /// The share of tests that must pass. Default: all.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
    /// The timeout. A runner that exceeds it fails.
    #[serde(default = "five_minutes")]
    pub timeout: Time,
}

/// The format of a test runner's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Detected from the output.
    #[default]
    Auto,
    /// JUnit XML.
    Junit,
    /// `cargo test`, `cargo nextest`.
    Cargo,
    /// `go test`, also with `-v` and `-json`.
    Go,
    /// `pytest`, best with `-v` or `-rA`.
    Pytest,
    /// Python's `unittest`, best with `-v`.
    Unittest,
    /// `node --test`; also mocha, jest and vitest.
    Node,
    /// The Test Anything Protocol.
    Tap,
}

impl GraderSpec for Tests {
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
        let listed = self.fail_to_pass.iter().chain(&self.pass_to_pass);
        if self.run.is_empty() {
            Some("runs nothing: `run` is empty".to_owned())
        } else if self.timeout.0.is_zero() {
            Some("has a `timeout` of 0, which no runner can meet".to_owned())
        } else if listed.into_iter().any(|name| name.trim().is_empty()) {
            Some("checks nothing: a test in its lists has an empty name".to_owned())
        } else if self.min == Some(Fraction::ZERO) {
            Some("checks nothing: with `min: 0` it always passes".to_owned())
        } else if self.report.is_some() && !matches!(self.format, Format::Auto | Format::Junit) {
            Some("contradicts itself: a `report` is JUnit XML, but `format` names another format".to_owned())
        } else {
            None
        }
    }

    fn warning(&self) -> Option<String> {
        let listed = self.listed();
        let mut names = self.fail_to_pass.iter().chain(&self.pass_to_pass);
        let (name, longer) = names.find_map(|name| {
            let longer = listed.longer_than(name).find(|longer| self.is_only_a_part(name, longer))?;
            Some((reason_text::short(name, 120), reason_text::short(longer, 120)))
        })?;
        Some(format!(
            "lists `{name}` and `{longer}`: a test with both names counts for the longer one alone, so `{name}` needs another \
             test with this end; list whole names"
        ))
    }

    fn only_guards(&self) -> bool {
        self.fail_to_pass.is_empty() && !self.pass_to_pass.is_empty()
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(Watch(self.clone()))
    }
}

struct Watch(Tests);

#[async_trait]
impl Observer for Watch {
    fn run(&mut self) -> Option<&mut Run> {
        Some(&mut self.0.run)
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        let hidden = |workspace: &Path| match evidence.hidden {
            Some(hidden) => changed(hidden, workspace),
            None => Some(BTreeSet::new()),
        };
        let before = evidence.workspace.map(hidden);
        let (mut grade, tests) = self.0.grade(evidence).await;
        if let (Grade::Scored(Score { passed: true, .. }), Some(before), Some(workspace)) =
            (&grade, before, evidence.workspace)
        {
            let after = hidden(workspace);
            let written = before.zip(after).map(|(before, after)| after.difference(&before).next().cloned());
            match written {
                Some(None) => {}
                Some(Some(path)) => {
                    let why = format!("the tests passed, but their run changed the hidden file `{}`", path.display());
                    grade = Grade::ungraded(format!("{why}: what was tested is unknown"));
                }
                None => grade = Grade::ungraded("the hidden files could not be compared with the workspace"),
            }
        }
        Findings(vec![Finding { tests, ..grade.into() }])
    }
}

/// A function that parses the output of a test runner.
type ReadOutput = fn(&str) -> Report;

impl Tests {
    /// Runs the tests and grades the results. The tests are absent if the runner did not end.
    async fn grade(&self, evidence: &Evidence<'_>) -> (Grade, Option<TestsSeen>) {
        let workspace = match evidence.files() {
            Ok(workspace) => workspace,
            Err(ungraded) => return (ungraded, None),
        };
        let shown = format!("`{}`", reason_text::short(&self.run.to_string(), 200));
        let command = self.run.command();
        let before = match self.move_old_reports_away(workspace, evidence).await {
            Ok(before) => before,
            Err(why) => return (Grade::ungraded(format!("{shown}: {why}")), None),
        };
        let outcome = match evidence.shell.run_keeping(KEPT, &command, None, self.timeout.0).await {
            Err(error) => return (Grade::ungraded(format!("{shown} could not be started: {error}")), None),
            Ok(outcome) => outcome,
        };
        if let Some(exceeded) = outcome.memory_exceeded() {
            let why = format!("{shown} {exceeded}, so it is not known which tests pass{}", outcome.end());
            return (Grade::ungraded(why), None);
        }
        match outcome.exit {
            None => {
                let end = outcome.end();
                let timeout = self.timeout;
                let why = format!("{shown} took longer than its timeout of {timeout} and was ended{end}");
                return (Grade::fail(why), None);
            }
            Some(Exit { code: Some(127), .. }) if is_not_installed(&self.run, evidence) => {
                let why = format!("{shown} could not be started: its program is not installed{}", outcome.end());
                return (Grade::ungraded(why), None);
            }
            Some(_) => {}
        }
        // The code under test may have written long reports, which no time limit ends.
        let (tests, workspace, folder) = (self.clone(), workspace.to_owned(), evidence.shell.folder.clone());
        let hidden = evidence.hidden.map(Path::to_owned);
        let graded = move || {
            let missing = tests.missing(before.as_ref());
            let (grade, seen) = tests.grade_run(&shown, &workspace, &folder, hidden.as_deref(), before, &outcome);
            let has_run = seen.as_ref().is_some_and(|seen| seen.any_ran);
            (if has_run { unless_missing(grade, &missing) } else { grade }, seen)
        };
        let graded = tokio::task::spawn_blocking(graded).await;
        graded.unwrap_or_else(|error| (Grade::ungraded(format!("the report could not be graded: {error}")), None))
    }

    /// Moves the reports away that the agent may have written. Returns `None` if the tests write no report.
    async fn move_old_reports_away(
        &self,
        workspace: &Path,
        evidence: &Evidence<'_>,
    ) -> Result<Option<OldReports>, String> {
        let Some(globs) = self.report.clone() else { return Ok(None) };
        let (workspace, change) = (workspace.to_owned(), evidence.change.cloned());
        let hidden = evidence.hidden.map(Path::to_owned);
        let move_away = move || OldReports::move_away(&workspace, &globs, change.as_ref(), hidden.as_deref());
        let moved = tokio::task::spawn_blocking(move_away).await;
        moved.unwrap_or_else(|error| Err(format!("the reports could not be read: {error}"))).map(Some)
    }

    /// Returns the files of the agent that tests may read, and that were moved away while they ran.
    fn missing(&self, before: Option<&OldReports>) -> Vec<String> {
        self.report.as_ref().zip(before).map(|(globs, before)| before.missing(globs)).unwrap_or_default()
    }

    /// Grades a run that ended. `hidden` is the folder of the hidden files, and `before` are the reports that existed before the
    /// run.
    fn grade_run(
        &self,
        shown: &str,
        workspace: &Path,
        folder: &Path,
        hidden: Option<&Path>,
        before: Option<OldReports>,
        outcome: &CommandOutcome,
    ) -> (Grade, Option<TestsSeen>) {
        let report = match (&self.report, before) {
            (Some(globs), Some(before)) => written(workspace, globs, &before, outcome),
            _ => self.read(outcome).map_err(NoReport::Wrong),
        };
        let report = report.map(|report| report.in_folder(folder).with_hidden(hidden));
        if outcome.exit == Some(LOST) && !report.as_ref().is_ok_and(|report| self.shows_failure(report)) {
            let why = format!("{shown} ended in an unknown way, because its supervisor was lost{}", outcome.end());
            return (Grade::ungraded(why), None);
        }
        match report {
            Err(NoReport::Unknown(why)) => (Grade::ungraded(format!("{shown}: {why}")), None),
            Ok(report) => (self.grade_report(shown, &report, outcome), Some(self.seen(&report))),
            Err(NoReport::Wrong(_)) if self.is_cut(outcome) && has_succeeded(outcome) => {
                (Grade::ungraded(only_end_of(shown)), None)
            }
            Err(NoReport::Wrong(why)) => {
                let missing = missing_program(outcome).map(|name| format!("did not find the program `{name}`"));
                let why = missing.unwrap_or(why);
                (Grade::fail(format!("{shown} {why}{}", outcome.end())), Some(TestsSeen::default()))
            }
        }
    }

    /// Returns true if the grader fails by a test that failed, whatever other tests did.
    fn shows_failure(&self, report: &Report) -> bool {
        let listed = self.listed();
        let is_failed = |name: &String| report.listed(name, &listed).iter().any(|test| test.status == Status::Failed);
        let mut names = self.fail_to_pass.iter().chain(&self.pass_to_pass).peekable();
        let has_failed = if names.peek().is_none() { report.counts().failed > 0 } else { names.any(is_failed) };
        self.min.is_none() && has_failed
    }

    /// Returns true if a listed name is no whole name of a test, as a longer one or the runner shows: names of its tests begin with
    /// a file, a module or a package.
    fn is_only_a_part(&self, name: &str, longer: &str) -> bool {
        let has_file = |name: &str| {
            let first = name.split("::").next().and_then(|part| part.split(" > ").next()).unwrap_or_default();
            first != name && (first.ends_with(".py") || is_script(first))
        };
        let is_single = !name.contains('.') && !name.contains("::");
        let start = longer.strip_suffix(name).filter(|_| is_single);
        !has_file(name) && (has_file(longer) || start.is_some_and(|start| self.has_names_with(start)))
    }

    /// Returns true if the whole name of each test of the runner has a start such as this one. False if the runner is unknown.
    fn has_names_with(&self, start: &str) -> bool {
        const OTHERS: [&str; 12] =
            ["bun", "cargo", "deno", "gradle", "jest", "make", "mocha", "mvn", "node", "npm", "npx", "vitest"];
        let line = self.run.to_string();
        let words: Vec<&str> = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word)).collect();
        let is_python = ["pytest", "unittest"].iter().any(|runner| line.contains(runner));
        let is_go = words.windows(2).any(|pair| pair == ["go", "test"]);
        let is_alone = is_python != is_go && !words.iter().any(|word| OTHERS.contains(word));
        // A subtest has the name of its test before its own.
        let has_test = || start.split(['/', '.']).any(|part| part.starts_with("Test"));
        match self.format {
            Format::Pytest | Format::Unittest => is_part_of_python(start),
            Format::Go => start.ends_with(['.', '/']) && !has_test(),
            _ if is_alone && is_python => is_part_of_python(start),
            _ => is_alone && start.ends_with(['.', '/']) && !has_test(),
        }
    }

    /// Returns the names of both lists.
    fn listed(&self) -> Listed<'_> {
        Listed::new(self.fail_to_pass.iter().chain(&self.pass_to_pass))
    }

    /// Returns whether any test ran, and the tests of `fail-to-pass` that passed.
    fn seen(&self, report: &Report) -> TestsSeen {
        let listed = self.listed();
        let passed = |name: &&String| report.passes(name, &listed);
        let counts = report.counts();
        TestsSeen {
            any_ran: counts.passed > 0 || counts.failed > 0,
            fail_to_pass_passed: self.fail_to_pass.iter().filter(passed).cloned().collect(),
        }
    }

    /// Runs the tests in the shell's folder, and returns the outcome of each, without grading them.
    ///
    /// # Errors
    /// Returns an error if the runner cannot be started.
    pub async fn observe(&self, shell: &Shell) -> std::io::Result<Seen> {
        let before = match self.report.as_ref().map(|globs| OldReports::find(&shell.folder, globs)).transpose() {
            Ok(before) => before,
            Err(why) => return Ok(Seen { why: Some(why), ..Seen::default() }),
        };
        let outcome = shell.run_keeping(KEPT, &self.run.command(), None, self.timeout.0).await?;
        let (tests, folder) = (self.clone(), shell.folder.clone());
        let seen = tokio::task::spawn_blocking(move || tests.seen_in(&folder, before, &outcome)).await;
        seen.map_err(std::io::Error::other)
    }

    /// Returns the outcomes of a run in a folder. `before` are the reports that existed before it.
    fn seen_in(&self, folder: &Path, before: Option<OldReports>, outcome: &CommandOutcome) -> Seen {
        if let Some(exceeded) = outcome.memory_exceeded() {
            let why = format!("the runner {exceeded}{}", outcome.end());
            return Seen { why: Some(why), cut: Some(Cut::Memory), ..Seen::default() };
        }
        let report = match (&self.report, before) {
            _ if outcome.exit.is_none() => {
                Err(NoReport::Wrong(format!("took longer than its timeout of {}", self.timeout)))
            }
            _ if outcome.exit == Some(LOST) => {
                Err(NoReport::Unknown("how the runner ended is unknown, because its supervisor was lost".to_owned()))
            }
            (Some(globs), Some(before)) => written(folder, globs, &before, outcome),
            _ => self.read(outcome).map_err(NoReport::Wrong),
        };
        let report = report.map(|report| report.in_folder(folder));
        let end = outcome.end();
        match report {
            _ if self.is_cut(outcome) => {
                let why = format!("the runner prints more than {} MiB, so not all of its tests are known", KEPT >> 20);
                Seen { why: Some(why), cut: Some(Cut::Output), ..Seen::default() }
            }
            Ok(report) => {
                let why = report.problems.iter().chain(&report.doubts).next().map(|problem| format!("{problem}{end}"));
                let (outcomes, left_out) = report.outcomes();
                let (shared, last_parts) = (report.shared(), report.last_parts());
                let in_failed_files = report.in_failed_files(folder, outcomes.keys());
                Seen { outcomes, left_out, in_failed_files, shared, last_parts, why, report, ..Seen::default() }
            }
            Err(NoReport::Unknown(why)) => Seen { why: Some(why), ..Seen::default() },
            Err(NoReport::Wrong(why)) => Seen {
                why: Some(format!("the runner {why}{end}")),
                missing_program: missing_program(outcome),
                cut: outcome.exit.is_none().then_some(Cut::Time),
                ..Seen::default()
            },
        }
    }

    /// Returns true if the beginning of the runner's output was not kept.
    fn is_cut(&self, outcome: &CommandOutcome) -> bool {
        let reads_stderr = !matches!(self.format, Format::Junit | Format::Tap | Format::Node);
        self.report.is_none() && (outcome.stdout.len() >= KEPT || (reads_stderr && outcome.stderr.len() >= KEPT))
    }

    /// Parses the runner's output.
    fn read(&self, outcome: &CommandOutcome) -> Result<Report, String> {
        let text = |bytes: &[u8]| without_colour(&String::from_utf8_lossy(bytes));
        let out = if self.format == Format::Junit {
            junit::text_of(&outcome.stdout).into_owned()
        } else {
            text(&outcome.stdout)
        };
        let both = format!("{out}\n{}", text(&outcome.stderr));
        let junit = || {
            let start = out.find("<?xml").or_else(|| out.find("<testsuite"))?;
            let end = out.rfind('>')?;
            out.get(start..=end)
        };
        let read = match self.format {
            Format::Junit => {
                let xml = junit().ok_or_else(|| self.no_junit(outcome))?;
                return junit::read(xml).map_err(|why| format!("printed JUnit XML that cannot be read: {why}"));
            }
            Format::Cargo => self.cargo()(&both),
            Format::Go => self.go()(&both),
            Format::Pytest => pytest::read(&both),
            Format::Unittest => unittest::read(&both),
            // Without a terminal, `node --test` prints TAP up to version 22.
            Format::Node => {
                let mut report = node::read(&out);
                // vitest describes on standard error what failed.
                if let Some(why) = node::failed_suites(&text(&outcome.stderr)).filter(|_| !report.is_empty()) {
                    report.incomplete(why);
                }
                if report.is_empty() { tap::read(&out) } else { report }
            }
            Format::Tap => tap::read(&out),
            Format::Auto => {
                let readers: [(&str, ReadOutput); 6] = [
                    ("cargo", self.cargo()),
                    ("pytest", pytest::read),
                    ("unittest", unittest::read),
                    ("go", self.go()),
                    ("node", node::read),
                    ("tap", tap::read),
                ];
                let junit = junit().and_then(|xml| junit::read(xml).ok()).map(|report| ("junit", report));
                let mut found = junit
                    .into_iter()
                    .chain(readers.map(|(name, read)| (name, read(&both))))
                    .filter(|it| !it.1.is_empty());
                let mut report = found.next().map(|(_, report)| report).unwrap_or_default();
                // Another runner may have printed to the same output.
                for (name, other) in found {
                    if let Some(problem) = other_runner(name, &other) {
                        report.contradiction(|| problem);
                    }
                    // Any program may print lines that look like a plan.
                    report.doubts.extend(other.doubts.into_iter().filter(|_| name != "tap"));
                }
                report
            }
        };
        let is_go = matches!(self.format, Format::Auto | Format::Go);
        match go::mark_of_no_test(&both).filter(|_| is_go) {
            _ if !read.is_empty() => Ok(read),
            Some(mark) => Err(format!("ran no test: its output contains `{mark}`")),
            None if no_test::says_none(&both) => Err("ran no test".to_owned()),
            None => Err("showed no test that could be understood".to_owned()),
        }
    }

    /// Returns the reason why there is no report, for a runner that printed no JUnit XML.
    fn no_junit(&self, outcome: &CommandOutcome) -> String {
        if !self.run.to_string().contains(RESULTS_ALONE) {
            return "printed no JUnit XML; if it writes a file, add `report: PATH`".to_owned();
        }
        // The line defines where the results are, so no file has them. What the runner says about it is on standard error.
        match outcome.exit {
            Some(Exit { code: Some(0), .. }) => {
                "exited with 0, but wrote no results; the code under test may have ended it".to_owned()
            }
            Some(Exit { code: Some(code), .. }) => format!("exited with {code} and wrote no results"),
            Some(Exit { signal: Some(signal), .. }) => format!("was ended by signal {signal} and wrote no results"),
            _ => "ended without an exit code and wrote no results".to_owned(),
        }
    }

    /// Returns the reader of the output of `cargo test`.
    fn cargo(&self) -> ReadOutput {
        cargo::reader(&self.run.to_string())
    }

    /// Returns the reader of the output of `go test`.
    fn go(&self) -> ReadOutput {
        if go::is_verbose(&self.run.to_string()) { go::read_verbose } else { go::read }
    }

    fn grade_report(&self, shown: &str, report: &Report, outcome: &CommandOutcome) -> Grade {
        let mut checks = Checks::default();
        let (is_cut, listed) = (self.is_cut(outcome), self.listed());
        for (key, names) in [("fail-to-pass", &self.fail_to_pass), ("pass-to-pass", &self.pass_to_pass)] {
            for name in names {
                self.check_listed(&mut checks, key, name, &listed, report, is_cut);
            }
        }
        if self.fail_to_pass.is_empty() && self.pass_to_pass.is_empty() {
            self.check_all(&mut checks, shown, report, outcome);
        } else if let Some(signal) = signal_of(outcome.exit, report.counts().failed) {
            // The output up to that point may be incomplete, or come from another program.
            checks.violated(format!("{shown} was ended by signal {signal}{}", outcome.end()), []);
        } else if report.counts().failed == 0 && !is_cut {
            check_end(&mut checks, shown, report, outcome);
        }
        checks.grade_at_least(self.min)
    }

    fn check_listed(
        &self,
        checks: &mut Checks,
        key: &str,
        name: &str,
        listed: &Listed<'_>,
        report: &Report,
        is_cut: bool,
    ) {
        let shown = reason_text::short(name, 120);
        let found = report.listed(name, listed);
        let worst = |status: Status| found.iter().find(|test| test.status == status);
        if found.is_empty() {
            if is_cut {
                checks.unknown(format!("{key}: the end of the output that was kept does not name `{shown}`"));
            } else if report.unnamed() > 0 {
                checks.unknown(format!(
                    "{key}: `{shown}` is not named, and {} passed without a name; make the runner name each test (-v)",
                    plural(report.unnamed(), "test")
                ));
            } else if report.is_unclear(name) {
                checks.unknown(unclear(key, &shown));
            } else if report.names_only_failures && report.problems.len() == report.early_ends {
                checks.unknown(format!(
                    "{key}: `{shown}` is not named, and the runner names only tests that failed; make the runner name each \
                     test (-v)"
                ));
            } else if let Some(last) = report.last_part_of(name) {
                checks.unknown(format!(
                    "{key}: `{shown}` is not named; the runner names `{}` without its suites, so list that name, or use a \
                     `report` that names them",
                    reason_text::short(last, 120)
                ));
            } else if let Some(longer) = report.ending_with(name, listed) {
                checks.unknown(format!(
                    "{key}: no test is named `{shown}`; list the whole name, such as `{}`",
                    reason_text::short(longer, 120)
                ));
            } else if let Some(test) = report.named(name).first().filter(|_| report.is_all_well()) {
                // Both names may mean the same test.
                let whole = test.names.first().map(|whole| reason_text::short(whole, 120)).unwrap_or_default();
                checks.unknown(format!(
                    "{key}: no test is left for `{shown}`, because `{whole}` counts for another listed name; list whole names"
                ));
            } else {
                let problem = report.problems.first().map(|problem| format!("; {problem}")).unwrap_or_default();
                checks.violated(format!("{key}: `{shown}` was not run{problem}"), []);
            }
        } else if let Some(test) = worst(Status::Failed) {
            checks.violated(format!("{key}: {} failed", shown_name(name, &test.names)), []);
        } else if let Some(test) = worst(Status::Skipped) {
            checks.violated(format!("{key}: {} was skipped", shown_name(name, &test.names)), []);
        } else if report.unnamed_failures() > 0 {
            let failed = plural(report.unnamed_failures(), "test");
            checks.unknown(format!(
                "{key}: `{shown}` passed, but {failed} failed without a name, which may be the same test in another run; \
                 make the runner name each test (-v)"
            ));
        } else if report.is_unclear(name) {
            checks.unknown(unclear(key, &shown));
        } else if let Some(problem) = report.may_be_another(name, &found) {
            let whole = found.first().and_then(|test| test.names.first()).map_or("", String::as_str);
            checks.unknown(format!(
                "{key}: `{}` passed, but another test whose name ends with `{shown}` may not have run; list whole names: \
                 {problem}",
                reason_text::short(whole, 120)
            ));
        } else if let Some(file) = report.failed_file_of(name) {
            checks.unknown(format!(
                "{key}: `{shown}` passed, but the hidden file `{}`, which has a test of this name, failed outside of its tests; \
                 the test that passed may be in another file",
                reason_text::short(file, 120)
            ));
        } else if is_cut {
            checks.unknown(format!(
                "{key}: `{shown}` passed in the end of the output that was kept; it may have failed before that"
            ));
        } else {
            checks.held(format!("{key}: `{shown}` passed"), []);
        }
    }

    /// Checks every test, for a grader without lists of tests. At least one test is required.
    fn check_all(&self, checks: &mut Checks, shown: &str, report: &Report, outcome: &CommandOutcome) {
        let counts = report.counts();
        let all = counts.passed.saturating_add(counts.failed);
        let skipped = if counts.skipped > 0 { format!(", {} skipped", counts.skipped) } else { String::new() };
        let stop = fail_fast::option(&self.run.to_string()).filter(|_| counts.failed > 0);
        let stop = stop.map(|option| format!("`{option}` stops the run after failures, so not all tests may have run"));
        let first = |list: &[String]| list.first().map(|problem| format!("; {problem}"));
        let problem = first(&report.problems).unwrap_or_default();
        let is_cut = self.is_cut(outcome);
        if all == 0 && is_cut && has_succeeded(outcome) {
            checks.unknown(only_end_of(shown));
            return;
        }
        if all == 0 {
            checks.violated(format!("{shown} ran no test{skipped}{problem}{}", outcome.end()), []);
            return;
        }
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let failed: Vec<String> = report
            .tests()
            .iter()
            .filter(|test| test.status == Status::Failed)
            .filter_map(|test| Some(format!("`{}`", test.names.first()?)))
            .collect();
        let tests = plural(all, "test");
        let unsure = first(&report.problems).or_else(|| first(&report.doubts)).or_else(|| first(stop.as_slice()));
        let is_exact = counts.failed == 0 || (report.perhaps_more == 0 && report.perhaps_fewer == 0);
        let has_all = unsure.is_none();
        let unsure = unsure.or_else(|| (!is_exact).then(|| format!("; {NOT_EXACT}"))).unwrap_or_default();
        let reason = match (counts.failed, failed.is_empty()) {
            (0, _) => format!("all of {tests} passed{skipped}"),
            (count, true) => format!("{count} of {tests} failed{skipped}{unsure}{}", outcome.end()),
            (count, false) => {
                format!("{count} of {tests} failed{skipped}: {}{unsure}", reason_text::first_few(failed, SHOWN))
            }
        };
        // The share of tests that passed is unknown if the report is incomplete or contradicts itself. What did not run did not
        // pass.
        let silent = report.without_tests().find(|_| counts.failed == 0);
        let is_complete = has_all && silent.is_none() && !is_cut;
        let share_of = |passed: u64| Fraction::of(size(passed), size(passed.saturating_add(counts.failed)));
        let share = share_of(counts.passed);
        let most = share_of(counts.passed.saturating_add(report.perhaps_more));
        let least = share_of(counts.passed.saturating_sub(report.perhaps_fewer));
        if counts.failed > 0 && !is_complete {
            checks.between(Fraction::ZERO, most, share, reason);
        } else if !is_exact {
            checks.between(least, most, share, reason);
        } else if is_complete {
            checks.partly(share, reason, []);
        }
        if let Some(part) = silent {
            checks.unknown(format!(
                "{shown} reported no test in {part}: its tests did not run, perhaps because the code under test ended the \
                 process; list the tests"
            ));
        }
        if counts.failed == 0 {
            // What the end lacks, such as a plan, may be in the part that was not kept.
            if !is_cut || !has_succeeded(outcome) {
                check_end(checks, shown, report, outcome);
            }
            if is_cut {
                checks.unknown(only_end_of(shown));
            }
        }
    }
}

/// Returns the grade, or ungraded if the tests failed while files of the agent were moved away. `missing` are these files.
fn unless_missing(grade: Grade, missing: &[String]) -> Grade {
    match grade {
        Grade::Scored(Score { passed: false, reason, .. }) if !missing.is_empty() => {
            let files = reason_text::first_few(missing.iter().map(|path| format!("`{path}`")), SHOWN);
            Grade::ungraded(format!(
                "{files}, which the agent wrote and `report` matches, could not be read while the tests ran, so it is unknown \
                 whether they fail: name the runner's reports in `report` without signs of a glob, or let git ignore their folder in the workspace of the case. The grader failed: {reason}"
            ))
        }
        grade => grade,
    }
}

/// Returns true if a text can precede a part of a name of pytest or unittest: `a.py::`, `m.T.`.
fn is_part_of_python(start: &str) -> bool {
    start.ends_with("::") || start.ends_with('.')
}

/// Returns true if a runner exited with 0.
fn has_succeeded(outcome: &CommandOutcome) -> bool {
    outcome.exit.is_some_and(|exit| exit.code == Some(0))
}

/// Returns the reason why not all tests are known if the output of the runner was larger than the part that is kept.
fn only_end_of(shown: &str) -> String {
    format!("only the last {} MiB of the output of {shown} were kept, so not all of its tests are known", KEPT >> 20)
}

/// Returns the reason why it is unknown whether a test of jest-junit passed.
fn unclear(key: &str, name: &str) -> String {
    format!("{key}: `{name}` passed or is still to be done (`test.todo`), which the report does not tell apart")
}

/// Returns the program that a runner which reported nothing did not find.
pub fn missing_program(outcome: &CommandOutcome) -> Option<String> {
    outcome.exit?.code.filter(|code| *code != 0)?;
    let outputs = [&outcome.stderr, &outcome.stdout].map(|bytes| without_colour(&String::from_utf8_lossy(bytes)));
    outputs.iter().flat_map(|text| text.lines()).find_map(not_found).map(str::to_owned)
}

/// Returns the program that a shell did not find: `sh: 1: mocha: not found`, `bash: line 1: mocha: command not found`,
/// `env: 'node': No such file or directory`.
fn not_found(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_./+@".contains(c)) && !name.ends_with(".py")
    };
    let of_shell = [": command not found", ": not found"].iter().find_map(|end| line.strip_suffix(end));
    let of_env = || {
        let line = line.strip_suffix(": No such file or directory")?;
        line.strip_prefix("env: ").or_else(|| line.strip_prefix("/usr/bin/env: "))
    };
    let rest = match of_shell {
        // Only a shell says so, with its own name or path first.
        Some(rest) => {
            let (shell, rest) = rest.split_once(": ")?;
            is_shell(shell).then_some(rest)?
        }
        None => of_env()?,
    };
    let name = rest.rsplit(": ").next()?;
    let name = name.trim_matches(|c: char| "'\"`\u{2018}\u{2019}".contains(c));
    Some(name).filter(is_name)
}

/// Returns the failure that a second report in the same output states.
fn other_runner(name: &str, report: &Report) -> Option<String> {
    let failed = report.counts().failed;
    if failed > 0 {
        return Some(format!("the output also contains a report in the format {name}, with {failed} failed"));
    }
    // Other programs print `ok`, too, and no plan.
    let problem = report.problems.first().filter(|_| name != "tap")?;
    Some(format!("the output also contains a report in the format {name}: {problem}"))
}

/// Returns the signal that ended a runner. A shell reports it as an exit code above 128, which some runners use for their
/// number of failed tests.
fn signal_of(exit: Option<Exit>, failed: u64) -> Option<i32> {
    // Illegal instruction, abort, bus error, floating-point error, kill, segmentation fault, termination.
    const OF_THE_RUNNER: [i32; 7] = [4, 6, 7, 8, 9, 11, 15];
    let exit = exit?;
    let by_shell = exit.code.filter(|code| i64::from(*code) != i64::try_from(failed).unwrap_or(i64::MAX));
    exit.signal.or(by_shell.map(|code| code - 128).filter(|signal| OF_THE_RUNNER.contains(signal)))
}

/// Returns the name of a test for messages: the requested name, or, for a pattern, the full name with the pattern.
fn shown_name(wanted: &str, names: &[String]) -> String {
    let full = names.first().map(String::as_str).unwrap_or_default();
    if wanted == full || !wanted.contains('*') {
        format!("`{}`", reason_text::short(wanted, 120))
    } else {
        format!("`{}` (of `{}`)", reason_text::short(full, 120), reason_text::short(wanted, 120))
    }
}

/// Checks the end of a runner that reported no failed test. A failed test makes a runner exit with an error; if no test
/// failed, something else went wrong.
fn check_end(checks: &mut Checks, shown: &str, report: &Report, outcome: &CommandOutcome) {
    let problem = report.problems.first().map(|problem| format!("; {problem}")).unwrap_or_default();
    let ended = match outcome.exit {
        Some(Exit { code: Some(0), .. }) => None,
        Some(Exit { code: Some(code), .. }) => Some(format!("exited with {code}")),
        Some(Exit { signal: Some(signal), .. }) => Some(format!("was ended by signal {signal}")),
        _ => Some("ended without an exit code".to_owned()),
    };
    if let Some(ended) = ended {
        checks.violated(format!("{shown} {ended} though no test failed{problem}{}", outcome.end()), []);
    } else if let Some(problem) = report.problems.first() {
        checks.violated(format!("{shown}: {problem}{}", outcome.end()), []);
    } else if let Some(doubt) = report.doubts.first() {
        checks.unknown(format!("{shown}: {doubt}{}", outcome.end()));
    }
}

/// The outcomes of one run of a test runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The outcome of each test, by its full name.
    pub outcomes: BTreeMap<String, Status>,
    /// The names of the tests that are left out, because their names, as patterns, also select other tests.
    pub left_out: BTreeSet<String>,
    /// The names of tests that a file which failed outside of its tests has, too: a grader cannot tell which of them passed.
    pub in_failed_files: BTreeSet<String>,
    /// The names that several tests share, or a test and a suite.
    pub shared: BTreeSet<String>,
    /// The last parts of the names of tests and suites, each with the whole names.
    pub last_parts: BTreeMap<String, BTreeSet<String>>,
    /// The problem of the run besides single tests, with the end of its output.
    pub why: Option<String>,
    /// The program that was not found, if the runner reported nothing for this reason.
    pub missing_program: Option<String>,
    /// The reason why tests that have no outcome may have passed. Absent if the run came to its end.
    pub cut: Option<Cut>,
    report: Report,
}

impl Seen {
    /// Returns true if all of these names pass, as a grader that lists them finds the tests.
    pub fn passes_all(&self, names: &[String]) -> bool {
        let listed = Listed::new(names.iter());
        names.iter().all(|name| self.report.passes(name, &listed))
    }
}

/// The reason why the outcomes of a run are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The run was ended at its timeout.
    Time,
    /// The runner printed more than is kept.
    Output,
    /// The run was ended because it used too much memory.
    Memory,
}

/// Returns the program of a line for `sh` if it is not installed. `path` has the folders of the programs.
pub fn program_that_is_missing<'a>(line: &'a str, path: &str) -> Option<&'a str> {
    line.split_whitespace().next().filter(|program| is_missing(program, path))
}

/// The reason why there is no report.
enum NoReport {
    /// The runner's output is no report.
    Wrong(String),
    /// The output of the runner is unknown.
    Unknown(String),
}

/// Returns the reports that the runner wrote. A report that existed before is the agent's, and shows nothing.
fn written(
    workspace: &Path,
    globs: &OneOrList<PathGlob>,
    before: &OldReports,
    outcome: &CommandOutcome,
) -> Result<Report, NoReport> {
    let after = reports(workspace, globs).map_err(NoReport::Unknown)?;
    let mut names: Vec<&String> =
        after.iter().filter(|(name, stamp)| before.is_new(name, stamp)).map(|(name, _)| name).collect();
    names.sort();
    if names.is_empty() {
        let wanted = reason_text::any_of(globs.iter().map(|glob| format!("`{glob}`")));
        let behind_link = |path: &String| !after.contains_key(path) && workspace.join(path).is_file();
        let mut in_workspace = globs.iter().filter_map(PathGlob::path).filter(|path| !path.starts_with('/'));
        if let Some(path) = in_workspace.find(behind_link) {
            let why =
                format!("wrote no report that counts: `{path}` is a link or lies behind one, which is not followed");
            return Err(NoReport::Wrong(why));
        }
        return Err(NoReport::Wrong(match before.is_empty() {
            true => format!("wrote no report matching {wanted}"),
            false => format!("wrote no report matching {wanted}; the files there existed before"),
        }));
    }
    let mut all = Report::default();
    // A glob may be one of several places; a path without signs of a glob is a report that is expected.
    let lacks = |glob: &&PathGlob| glob.is_path() && !names.iter().any(|name| glob.is_match(name));
    all.problems.extend(globs.iter().filter(lacks).map(|glob| format!("the runner wrote no report `{glob}`")));
    let output = pytest::output_facts(&without_colour(&String::from_utf8_lossy(&outcome.stdout)));
    for name in names {
        let wrong = |why: String| NoReport::Wrong(format!("wrote the report `{name}`, but {why}"));
        let mut bytes = Vec::new();
        let file = open_file(&workspace.join(name)).map_err(|error| wrong(format!("it could not be read: {error}")))?;
        let most = MAX_REPORT_BYTES + 1;
        file.take(most).read_to_end(&mut bytes).map_err(|error| wrong(format!("it could not be read: {error}")))?;
        if bytes.len() as u64 > MAX_REPORT_BYTES {
            return Err(NoReport::Unknown(format!(
                "the report `{name}` is larger than {} MiB",
                MAX_REPORT_BYTES >> 20
            )));
        }
        all.add_report(junit::read_beside(&junit::text_of(&bytes), &output).map_err(wrong)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
