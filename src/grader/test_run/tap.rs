//! Parses the Test Anything Protocol, with subtests.

use std::collections::{BTreeSet, HashSet};

use super::report::{Report, Status, is_failed_hook, is_script, is_unreadable, unreadable, whole};
use crate::reason_text::short;

/// The maximum depth of subtests. Deeper ones count as subtests at this depth.
const MAX_SUBTEST_DEPTH: usize = 64;

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    // Indented lines are subtests: names by depth, and whether there were subtests.
    let mut within: Vec<String> = Vec::new();
    let mut below: Vec<Option<Status>> = Vec::new();
    let (mut planned, mut seen): (Option<u64>, u64) = (None, 0);
    let mut plans = Plans::default();
    // The indentation of the details of a test, which may contain anything.
    let mut details: Option<usize> = None;
    let (mut failed, mut totals) = (0, NodeTotals::default());
    // The first reason why tests did not run.
    let mut missing: Option<String> = None;
    // The last test if it failed, and whether its details say that it is a suite.
    let mut last_failed: Option<(String, bool)> = None;
    // The last test passed and has no subtests.
    let mut has_passed_alone = false;
    // The tests that failed and are still to be done, which ava counts in `# fail`.
    let mut failed_todo = 0;
    let mut is_tap = false;
    // The tests with subtests in braces that have no end so far.
    let mut braced: Vec<Braced> = Vec::new();
    let mut vitest = Vitest::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = indent_of(line);
        let depth = (indent / 4).min(MAX_SUBTEST_DEPTH);
        let trimmed = line.trim();
        if let Some(at) = details.filter(|at| trimmed.is_empty() || indent >= *at) {
            details = (indent > at || trimmed != "...").then_some(at);
            if indent == at && trimmed == "type: 'suite'" {
                report.empty_suites += u64::from(std::mem::take(&mut has_passed_alone));
            }
            if let Some((name, is_suite)) = last_failed.as_mut().filter(|_| indent == at) {
                *is_suite |= trimmed == "type: 'suite'";
                // The tests that the suite had not defined yet are unknown.
                if *is_suite && trimmed == "failureType: 'testCodeFailure'" {
                    missing.get_or_insert_with(|| failed_beside(name));
                }
            }
            continue;
        }
        details = (trimmed == "---" && indent > 0).then_some(indent);
        totals.line(line);
        if trimmed.starts_with("TAP version") {
            is_tap = true;
            plans.end(depth);
        } else if let Some(name) = trimmed.strip_prefix("# Subtest: ") {
            within.truncate(depth);
            within.resize(depth, String::new());
            within.push(name.to_owned());
        } else if let Some(count) = plan(trimmed) {
            plans.plan(depth, count);
            if depth == 0 {
                // An output may contain the reports of several programs.
                planned = Some(planned.unwrap_or(0).saturating_add(count));
                is_tap = true;
            }
        } else if let Some(count) = trimmed.strip_prefix("# fail ").filter(|_| depth == 0) {
            let count = count.trim();
            failed = whole(count).unwrap_or(0).max(failed);
            // A comment of a test may begin in the same way, but has more words.
            if is_unreadable(count) && !count.contains(' ') {
                report.doubts.push(unreadable(trimmed));
            }
        } else if let Some(left) = trimmed.strip_prefix("# ").filter(|left| is_left_by_ava(left)) {
            missing.get_or_insert_with(|| format!("ava reports `{}`", short(left, 120)));
        } else if let Some(why) = trimmed.strip_prefix("Bail out!") {
            report.problems.push(format!("it bailed out:{why}"));
        } else if trimmed == "}"
            && plans.has_all(depth + 1)
            && let Some(Braced { name, status, .. }) = braced.pop_if(|it| it.indent == indent)
        {
            let children = below.get(depth + 1).copied().flatten();
            below.truncate(depth + 1);
            note_worst(&mut below, depth, status);
            within.truncate(depth);
            // If a subtest ran, only the clean-up of the suite failed.
            if status == Status::Failed && children.is_none_or(|worst| worst == Status::Skipped) {
                missing.get_or_insert_with(|| failed_beside(&name));
            }
            add(&mut report, &within, &name, status, children);
        } else if let Some(Point { status, number, name, is_skip, is_failed_todo }) = point(trimmed) {
            is_tap = true;
            seen += u64::from(depth == 0);
            failed_todo += u64::from(is_failed_todo);
            let begins = |next: &&str| indent_of(next) > indent && is_of_test(next.trim());
            let is_braced = trimmed.ends_with(" {") && lines.peek().is_some_and(begins);
            let name = name.strip_suffix(" {").filter(|_| is_braced).unwrap_or(name);
            if depth == 0 {
                vitest.note(name, status, is_skip, is_braced);
            }
            if is_braced {
                plans.point(depth, number, false);
                below.truncate(depth + 1);
                within.truncate(depth);
                within.resize(depth, String::new());
                within.push(name.to_owned());
                braced.push(Braced { indent, name: name.to_owned(), status });
                (last_failed, has_passed_alone) = (None, false);
                continue;
            }
            let is_path = name.starts_with('/') && is_script(name);
            let is_file = is_path && within.len() == depth + 1 && within.last().is_some_and(|it| it == name);
            plans.point(depth, number, is_file);
            last_failed = (status == Status::Failed).then(|| (name.to_owned(), false));
            if status == Status::Failed && is_failed_hook(name) {
                missing.get_or_insert_with(|| format!("`{}` failed, so tests did not run", short(name, 120)));
            }
            let children = below.get(depth + 1).copied().flatten();
            below.truncate(depth + 1);
            note_worst(&mut below, depth, status);
            within.truncate(depth);
            let is_own = add(&mut report, &within, name, status, children);
            has_passed_alone = is_own && status == Status::Passed;
            if is_own && (is_file || status == Status::Failed) {
                report.note_file(name, status);
            }
        }
    }
    if !is_tap {
        return Report::default();
    }
    plans.end(0);
    match planned {
        Some(planned) if planned != seen => {
            report.problems.push(format!("{planned} tests were planned, but {seen} were reported"));
        }
        None => report.problems.push("the report has no plan (1..N), so it may be incomplete".to_owned()),
        // The order of the lines of several programs at the same time is not known.
        Some(_) => report.doubts.extend(plans.problem),
    }
    report.doubts.extend(plans.plan_alone);
    if let Some(Braced { name, .. }) = braced.first() {
        report.problems.push(format!("the subtests of `{}` have no end", short(name, 120)));
    }
    let missing = missing.or_else(|| vitest.missing().filter(|_| report.counts().failed > 0));
    if let Some(why) = missing {
        report.incomplete(why);
    }
    report.problems.extend(plans.problem_of_subtests);
    report.problems.extend(totals.problem(plans.points));
    if totals.cancelled > 0 {
        report.contradiction(|| format!("{} were cancelled by its totals", totals.cancelled));
    }
    if failed > 0 && failed != failed_todo {
        report.contradiction(|| format!("{failed} failed by its totals, but no failed test was reported"));
    }
    report
}

/// Adds a test. A test with subtests counts by its subtests, `children` with their worst outcome; it is a further test only if it
/// failed although no subtest did. Returns true if the test counts.
fn add(report: &mut Report, within: &[String], name: &str, status: Status, children: Option<Status>) -> bool {
    let is_own = children.is_none_or(|worst| status == Status::Failed && worst != Status::Failed);
    let path = within.iter().map(String::as_str).chain([name]).filter(|part| !part.is_empty());
    let names = vec![path.collect::<Vec<&str>>().join(" > "), name.to_owned()];
    if is_own {
        report.add_another(names, status);
    } else {
        report.add_suite(names, status);
    }
    is_own
}

/// Notes an outcome in the worst outcomes of the tests at each depth.
fn note_worst(below: &mut Vec<Option<Status>>, depth: usize, status: Status) {
    below.resize(depth + 1, None);
    if let Some(worst) = below.get_mut(depth) {
        *worst = Some(worst.map_or(status, |worst| worst.max(status)));
    }
}

/// Returns the problem of a suite that failed by itself.
fn failed_beside(suite: &str) -> String {
    format!("the suite `{}` failed outside of its tests, so some of them may not have run", short(suite, 120))
}

/// A test whose subtests follow in braces, as vitest prints them: `ok 1 - math # time=5ms {`.
struct Braced {
    indent: usize,
    name: String,
    status: Status,
}

/// The files and tests at depth 0 of a report of vitest. The reporter `tap` lists the files, each with its suites and tests in
/// braces, and `tap-flat` the tests with the names of their files and suites.
#[derive(Default)]
struct Vitest<'a> {
    /// A file has tests.
    has_tests: bool,
    /// The first failed file without tests.
    broken: Option<&'a str>,
    /// The files and suites of tests that ran.
    run_suites: HashSet<&'a str>,
    /// The files and suites of skipped tests.
    skipped: Vec<&'a str>,
}

impl<'a> Vitest<'a> {
    fn note(&mut self, name: &'a str, status: Status, is_skip: bool, is_braced: bool) {
        let file = name.split_once(" > ").map(|(file, _)| file);
        self.has_tests |= file.is_some_and(is_script) || (is_braced && is_script(name));
        if let Some((suite, _)) = name.rsplit_once(" > ").filter(|_| is_skip) {
            self.skipped.push(suite);
        } else if status != Status::Skipped {
            self.run_suites
                .extend(name.match_indices(" > ").take(MAX_SUBTEST_DEPTH).filter_map(|(at, _)| name.get(..at)));
        }
        if status == Status::Failed && file.is_none() && !is_braced && is_script(name) {
            self.broken.get_or_insert(name);
        }
    }

    /// Returns the reason why tests may not have run: a file could not be loaded, or the set-up of a suite failed, which
    /// `tap-flat` does not list.
    fn missing(self) -> Option<String> {
        if !self.has_tests {
            return None;
        }
        if let Some(file) = self.broken {
            return Some(format!("the file `{}` failed before its tests, which did not run", short(file, 120)));
        }
        let suite = self.skipped.iter().find(|suite| !self.run_suites.contains(*suite))?;
        Some(format!(
            "all tests of `{}` were skipped, perhaps because its set-up failed, which `--reporter=tap` and `--reporter=junit` show",
            short(suite, 120)
        ))
    }
}

/// The totals that `node --test` writes at the end of a report: `# tests 2`, `# suites 0`, `# pass 1` and so on.
#[derive(Default)]
struct NodeTotals {
    /// The counts of the block that is being read, which begins with `# tests`.
    open: Option<Block>,
    tests: u64,
    cancelled: u64,
    /// The first block whose tests are more than those of known outcome, as written.
    missing: Option<(u64, u64)>,
}

/// The counts of one block.
#[derive(Default)]
struct Block {
    tests: u64,
    known: u64,
    cancelled: u64,
    lines: u64,
}

impl NodeTotals {
    /// Takes a line. A test may print a line that looks like one of a block, but not a whole block.
    fn line(&mut self, line: &str) {
        let total = line.strip_prefix("# ").and_then(|rest| rest.split_once(' '));
        match (total.and_then(|(word, count)| Some((word, whole(count)?))), &mut self.open) {
            (Some(("tests", tests)), _) => self.open = Some(Block { tests, ..Block::default() }),
            (Some((word @ ("suites" | "pass" | "fail" | "cancelled" | "skipped" | "todo"), count)), Some(block)) => {
                block.lines += 1;
                block.known = block.known.saturating_add(if word == "suites" { 0 } else { count });
                block.cancelled = block.cancelled.saturating_add(if word == "cancelled" { count } else { 0 });
                if block.lines == 6 {
                    self.end();
                }
            }
            _ => self.open = None,
        }
    }

    /// Adds a whole block. A run may have several.
    fn end(&mut self) {
        let Some(Block { tests, known, cancelled, .. }) = self.open.take() else { return };
        self.tests = self.tests.saturating_add(tests);
        self.cancelled = self.cancelled.saturating_add(cancelled);
        if known < tests {
            self.missing.get_or_insert((tests, known));
        }
    }

    /// Returns what the totals say and the report does not show. `points` is the number of lines of tests and suites.
    fn problem(&self, points: u64) -> Option<String> {
        if let Some((tests, known)) = self.missing {
            return Some(format!("the runner counted {tests} tests, but the outcome of {known}"));
        }
        if self.tests > points {
            return Some(format!("the runner counted {} tests, but {points} were reported", self.tests));
        }
        None
    }
}

/// The plans of the tests at each depth, and the tests that they plan.
#[derive(Default)]
struct Plans {
    /// The number of lines of tests, at any depth.
    points: u64,
    open: Vec<Document>,
    problem: Option<String>,
    problem_of_subtests: Option<String>,
    /// A plan without any subtest, which may be a line that a test printed.
    plan_alone: Option<String>,
}

/// A plan and its tests: the report of one program, or the subtests of one test.
#[derive(Default)]
struct Document {
    planned: Option<u64>,
    seen: u64,
    numbers: BTreeSet<u64>,
}

impl Plans {
    /// Returns the document at a depth. Deeper documents end there.
    fn at(&mut self, depth: usize) -> &mut Document {
        while self.open.len() > depth + 1 {
            self.end(self.open.len() - 1);
        }
        self.open.resize_with(depth + 1, Document::default);
        &mut self.open[depth]
    }

    fn plan(&mut self, depth: usize, count: u64) {
        let document = self.at(depth);
        let is_last = document.planned.is_none() && document.seen > 0;
        if document.planned.is_some() {
            self.end(depth);
        }
        self.at(depth).planned = Some(count);
        if is_last {
            self.end(depth);
        }
    }

    /// Counts a test. `is_file` is true for a file of Node in which no test ran: up to version 20, Node numbers such a
    /// file among the files and not among the tests, so its number is that of an earlier test.
    fn point(&mut self, depth: usize, number: Option<u64>, is_file: bool) {
        self.points += 1;
        let document = self.at(depth);
        // The first test of another program.
        if number == Some(1) && document.planned == Some(document.seen) {
            self.end(depth);
        }
        let document = self.at(depth);
        document.seen += 1;
        let number = number.map(|number| if is_file && depth == 0 { number.max(document.seen) } else { number });
        let is_new = number.is_none_or(|number| document.numbers.insert(number));
        if let Some(number) = number.filter(|_| !is_new) {
            self.tell(depth, format!("it reports the test number {number} twice"));
        }
    }

    /// Returns true if the document at a depth lacks no planned test.
    fn has_all(&self, depth: usize) -> bool {
        self.open.get(depth).and_then(|it| Some((it.planned?, it.seen))).is_none_or(|(planned, seen)| planned <= seen)
    }

    /// Ends the document at a depth and deeper ones.
    fn end(&mut self, depth: usize) {
        while self.open.len() > depth
            && let Some(Document { planned, seen, numbers }) = self.open.pop()
        {
            let depth = self.open.len();
            let last = numbers.last().copied().unwrap_or(0);
            match planned {
                Some(planned) if planned != seen => {
                    let what = if depth == 0 { "tests" } else { "subtests" };
                    let problem = format!("{planned} {what} were planned, but {seen} were reported");
                    if depth > 0 && seen == 0 {
                        self.plan_alone.get_or_insert(problem);
                    } else {
                        self.tell(depth, problem);
                    }
                }
                Some(planned) if last > planned => {
                    self.tell(depth, format!("it reports the test number {last} after its plan of {planned}"));
                }
                None if seen > 0 && depth == 0 => {
                    self.tell(depth, "it reports tests after the end of its plan".to_owned());
                }
                _ => {}
            }
        }
    }

    fn tell(&mut self, depth: usize, problem: String) {
        let place = if depth == 0 { &mut self.problem } else { &mut self.problem_of_subtests };
        place.get_or_insert(problem);
    }
}

/// Returns true for a comment of ava about tests that did not run: `2 tests remaining in a.test.js`.
fn is_left_by_ava(comment: &str) -> bool {
    let rest = comment.split_once(" remaining in ").map(|(count, _)| count);
    let count = rest.and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")));
    count.is_some_and(|count| whole(count).is_some())
}

/// Returns the number of blanks at the start of a line.
fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns true for a line with which subtests begin.
fn is_of_test(line: &str) -> bool {
    plan(line).is_some() || line.starts_with("# Subtest: ") || point(line).is_some()
}

/// Parses the plan `1..3`.
fn plan(line: &str) -> Option<u64> {
    line.strip_prefix("1..")?.split_whitespace().next().and_then(whole)
}

/// Returns true if a directive in capital letters marks a test that is still to be done. `TODOLIST` is another word.
pub(super) fn is_todo(directive: &str) -> bool {
    directive.strip_prefix("TODO").is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// The line of one test.
struct Point<'a> {
    status: Status,
    number: Option<u64>,
    name: &'a str,
    is_skip: bool,
    is_failed_todo: bool,
}

/// Parses `ok 3 - name # SKIP why`.
fn point(line: &str) -> Option<Point<'_>> {
    let (holds, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    // `go test` writes such a line with a tab before the name of a package.
    if (!rest.is_empty() && !rest.starts_with(' ')) || rest.starts_with("  \t") {
        return None;
    }
    let numbered = rest.trim_start();
    let rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = numbered.strip_suffix(rest).and_then(whole);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim();
    let (name, directive) =
        rest.split_once(" # ").or_else(|| rest.strip_prefix("# ").map(|it| ("", it))).unwrap_or((rest, ""));
    let directive = directive.trim().to_ascii_uppercase();
    let status = match holds {
        _ if directive.starts_with("SKIP") => Status::Skipped,
        // The outcome of a test that is still to be done does not count.
        _ if is_todo(&directive) => Status::Skipped,
        true => Status::Passed,
        false => Status::Failed,
    };
    let is_skip = directive.starts_with("SKIP");
    let is_failed_todo = !holds && is_todo(&directive);
    Some(Point { status, number, name: name.trim(), is_skip, is_failed_todo })
}
