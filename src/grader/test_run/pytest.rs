//! Parses the output of `pytest`: terse, verbose, and with the summary of single tests.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::report::{Report, Status, Totals, not_counted, number_before, sum_of, unreadable_before, whole};
use crate::text::plural;

/// The words for the outcomes of single tests.
const WORDS: [(&str, Status); 6] = [
    ("PASSED", Status::Passed),
    ("FAILED", Status::Failed),
    ("ERROR", Status::Failed),
    ("SKIPPED", Status::Skipped),
    ("XFAIL", Status::Skipped),
    ("XPASS", Status::Passed),
];

/// The words of the totals that a number precedes.
const COUNTED: [&str; 10] =
    ["passed", "failed", "error", "errors", "skipped", "xfailed", "xpassed", "deselected", "warning", "warnings"];

/// The maximum number of names that are read from a line with a reason.
const MAX_NAMES: usize = 32;

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    read_with_abort(text).0
}

/// Parses the output. The second value is the reason why pytest ended before all tests had run.
fn read_with_abort(text: &str) -> (Report, Option<String>) {
    let mut report = Report::default();
    let (mut begun, mut ended) = (0, 0);
    let (mut collected, mut reported) = (Collected::default(), Collected::default());
    // The sessions that began and have no end so far. A session within another one is the output of a test, or a session
    // at the same time.
    let mut open = 0_u64;
    // The end of a session and its failure, if the session is within another one.
    let (mut is_after_inner, mut inner): (bool, Option<String>) = (false, None);
    // The first failure outside of tests.
    let mut beside: Option<String> = None;
    // The lines of the current session, and the number of tests in all sessions that are known to have run.
    let (mut session, mut least_reported) = (Session::default(), 0_u64);
    // A file that could not be collected.
    let (mut uncollected, mut has_uncollected): (Option<String>, bool) = (None, false);
    // The number of collected tests is shown. An error has neither a name nor a heading.
    let (mut has_count, mut has_unknown_error) = (false, false);
    // Lines as those of the summary of single tests, outside of it: tests may print them.
    let (mut is_in_summary, mut has_summary, mut stray) = (false, false, Vec::new());
    for line in text.lines() {
        let line = &*without_subtests(line.trim());
        let is_inner = open > 1;
        if line.trim_matches(['=', ' ']) == "short test summary info" {
            (is_in_summary, has_summary) = (true, true);
        }
        if let Some(sum) = sum(line) {
            is_in_summary = false;
            let deselected = number_before(line, "deselected").unwrap_or(0);
            let items = sum_of([sum.passed, sum.failed, sum.skipped, deselected]);
            report.doubts.extend(not_counted(line, &COUNTED).filter(|_| report.doubts.is_empty()));
            reported.add(Collected { items, errors: errors(line) });
            if is_inner && sum.failed > 0 {
                inner = inner.or_else(|| Some(line.trim_matches(['=', ' ']).to_owned()));
            } else {
                let of_session = if is_inner { Session::default() } else { std::mem::take(&mut session) };
                let (sum, open) = of_session.totals(sum, line);
                // A line may run pytest several times.
                report.totals = Some(report.totals.unwrap_or_default().plus(sum));
                report.perhaps_more = report.perhaps_more.saturating_add(open.more);
                report.perhaps_fewer = report.perhaps_fewer.saturating_add(open.fewer);
                let passed = sum.passed.saturating_sub(open.fewer);
                least_reported = sum_of([least_reported, passed, sum.failed, sum.skipped, deselected]);
                has_unknown_error |= open.has_unknown_error;
            }
            ended += 1;
            open = open.saturating_sub(1);
            is_after_inner = is_inner;
            continue;
        }
        if let Some(why) = abort(line) {
            let place = if is_inner || is_after_inner { &mut inner } else { &mut beside };
            place.get_or_insert(why);
            session.is_aborted = true;
        }
        is_after_inner &= line.is_empty();
        if line.contains("test session starts") {
            begun += 1;
            open += 1;
        } else if let Some(found) = items(line) {
            (has_count, _) = (true, collected.add(found));
            // If one of these numbers cannot be read, the number of tests is unknown.
            if !is_inner && not_counted(line, &["deselected", "skipped"]).is_none() {
                let deselected = number_before(line, "deselected").unwrap_or(0);
                session.items.get_or_insert(found.items.saturating_sub(deselected));
            }
            report.doubts.extend(unreadable_before(line, &["item", "items", "error", "errors"]));
        } else if let Some((names, status)) = verbose(line).or_else(|| summary(line)) {
            if is_inner && status == Status::Failed {
                inner = inner.or_else(|| Some(line.to_owned()));
                continue;
            }
            // A test may fail, and its teardown too.
            let is_summary = verbose(line).is_none();
            if is_summary && !is_in_summary {
                stray.push((names, status));
                continue;
            }
            if !is_inner {
                session.note(line, &names, status, is_summary);
            }
            let file = names.first().filter(|name| status == Status::Failed && !name.contains("::"));
            uncollected = uncollected.or_else(|| file.cloned());
            report.named_failures += u64::from(is_summary && status == Status::Failed);
            add(&mut report, &names, status);
        } else if let Some(error) = error_heading(line).filter(|_| !is_inner) {
            session.headings[error as usize] += 1;
        }
        has_uncollected |= session.headings[Error::Collecting as usize] > 0;
    }
    let counts_no_failure = report.totals.is_some_and(|totals| totals.failed == 0);
    for (names, status) in stray.into_iter().filter(|(_, status)| !has_summary || *status == Status::Failed) {
        if status == Status::Failed && counts_no_failure {
            let name = names.first().map(String::as_str).unwrap_or_default();
            report.doubts.push(format!("pytest counts no failure, but a line like that of a failed test names {name}"));
        } else {
            report.named_failures += u64::from(status == Status::Failed);
            add(&mut report, &names, status);
        }
    }
    if report.totals.is_none() && begun == 0 && !has_summary {
        // Other programs print `ERROR a.py`, too. With `-qq`, pytest prints its summary without totals.
        return (Report::default(), None);
    }
    let has_failed = report.counts().failed > 0;
    // A session that stopped after its last test lacks none. The output of a failed test is shown, too.
    let has_all = collected.items > 0 && least_reported >= collected.items;
    let is_abort = |why: &String| !has_failed || (is_of_pytest(why) && !(has_all && why.contains(STOPPING)));
    let beside = beside.filter(is_abort);
    if ended < begun {
        report.problems.push("the output of pytest has no end".to_owned());
    } else {
        if let Some(why) = &beside {
            // A session that a test ended with `pytest.exit` may exit with 0.
            report.incomplete(aborted(why));
        }
        if collected.errors > reported.errors {
            let (found, known) = (plural(collected.errors, "error"), reported.errors);
            report.contradiction(|| format!("pytest counted {found} when it collected tests, but reports {known}"));
        }
        if has_failed && (uncollected.is_some() || has_uncollected || collected.errors > 0) {
            let file = uncollected.as_deref().unwrap_or("a file");
            report.incomplete(format!("pytest was not able to collect {file}, so its tests are not known"));
        } else if has_unknown_error && !has_count {
            report.incomplete("pytest counts an error that it does not name, which may be that of a file of tests");
        }
        if let Some(why) = inner {
            report.doubts.push(format!(
                "a session of pytest within another one failed (`{why}`); it may be the output of a test, or tests of its own"
            ));
        }
        if collected.items > reported.items {
            // Plugins may remove tests without reporting them as deselected.
            let (found, known) = (collected.items, reported.items);
            report.doubts.push(format!("{found} tests were collected, but {known} were reported"));
        }
    }
    (report, beside)
}

/// The words of a session that `-x` or `--maxfail` ended.
const STOPPING: &str = "stopping after";

/// Returns true if a line `!!! … !!!` is one of pytest, not of the output of a test.
fn is_of_pytest(why: &str) -> bool {
    [STOPPING, "Interrupted", "KeyboardInterrupt", "Exit", "INTERNALERROR"].iter().any(|words| why.contains(words))
}

/// An error outside of the code of a test.
#[derive(Clone, Copy)]
enum Error {
    SetUp,
    TearDown,
    Collecting,
}

/// Parses the heading of an error: `____ ERROR at teardown of TestK.test_a ____`.
fn error_heading(line: &str) -> Option<Error> {
    let heading = line.strip_prefix('_')?.trim_start_matches('_').trim_start().strip_prefix("ERROR ")?;
    let starts =
        [("at setup of ", Error::SetUp), ("at teardown of ", Error::TearDown), ("collecting ", Error::Collecting)];
    starts.into_iter().find(|(start, _)| heading.starts_with(start)).map(|(_, error)| error)
}

/// The lines of one session before its totals. pytest counts each failure: that of a test, of its set-up, of its tear-down, and
/// of each part of it (subtests). A test that passed before its tear-down or a part failed counts as passed, too.
#[derive(Default)]
struct Session {
    tests: BTreeMap<String, Lines>,
    /// The number of lines that state that a test passed: lines of the tests, and of the summary.
    passes: [u64; 2],
    /// The number of lines that state a failure, in the same way.
    failures: [u64; 2],
    /// The number of headings of each kind of error.
    headings: [u64; 3],
    /// The number of collected tests and skipped modules, without deselected tests, if the session shows it.
    items: Option<u64>,
    /// A line may be one of a session that ends early.
    is_aborted: bool,
}

/// The counts that the lines of a session leave open.
#[derive(Default)]
struct Open {
    /// The number of further tests that may have passed.
    more: u64,
    /// The number of passes that may be further tries of a test.
    fewer: u64,
    /// An error has neither a name nor a heading.
    has_unknown_error: bool,
}

/// The lines of a session about one test.
#[derive(Default)]
struct Lines {
    passed: bool,
    failed: bool,
    /// The test itself failed, not only its set-up, its tear-down or a part of it.
    itself: bool,
    /// A part of it failed.
    part: bool,
}

impl Session {
    /// Notes a line about a test by one of these names.
    fn note(&mut self, line: &str, names: &[String], status: Status, is_summary: bool) {
        let known = names.iter().find(|name| self.tests.contains_key(*name));
        let Some(name) = known.or(names.first()) else { return };
        let test = self.tests.entry(name.clone()).or_default();
        match status {
            Status::Passed => {
                test.passed = true;
                self.passes[usize::from(is_summary)] += 1;
            }
            Status::Failed => {
                test.failed = true;
                test.itself |= if is_summary { line.starts_with("FAILED") } else { line.contains(" FAILED") };
                test.part |= is_summary && line.starts_with("SUBFAIL");
                self.failures[usize::from(is_summary)] += 1;
            }
            Status::Skipped => {}
        }
    }

    /// Returns the numbers of tests, each with its worst outcome, and what is open about them.
    fn totals(&self, sum: Totals, line: &str) -> (Totals, Open) {
        let count =
            |is: &dyn Fn(&str, &Lines) -> bool| self.tests.iter().filter(|(name, test)| is(name, test)).count() as u64;
        let named = count(&|_, test| test.failed);
        if sum.failed == 0 {
            return (sum, Open::default());
        }
        let unnamed = sum.failed.saturating_sub(self.failures.into_iter().max().unwrap_or(0));
        let failed = if unnamed == 0 { named.clamp(1, sum.failed) } else { sum.failed };
        let has_headings = sum_of(self.headings) == errors(line);
        let has_unknown_error = !has_headings && unnamed > 0 && errors(line) > 0;
        if self.passes.iter().any(|lines| *lines >= sum.passed) {
            let passed = count(&|_, test| test.passed && !test.failed).min(sum.passed);
            return (Totals { passed, failed, ..sum }, Open { has_unknown_error, ..Open::default() });
        }
        // The names of the tests that passed are missing.
        let parts = count(&|_, test| test.part && !test.itself);
        let errors_alone = count(&|name, test| test.failed && !test.itself && !test.part && name.contains("::"));
        let [set_ups, tear_downs, _] = self.headings;
        let late = match (has_headings, unnamed) {
            (true, 0) => errors_alone.saturating_sub(set_ups),
            (true, _) => tear_downs,
            (false, 0) => errors_alone,
            (false, _) => errors(line),
        };
        // A skipped test has a tear-down, too.
        let known = if has_headings && unnamed == 0 { late.saturating_sub(sum.skipped) } else { 0 };
        let most = sum.passed.saturating_sub(parts).saturating_sub(known);
        // Each try of a test that passed counts, and is tried again if its tear-down failed.
        let reruns = number_before(line, "rerun").unwrap_or(0);
        let least = most.saturating_sub(late - known).saturating_sub(reruns);
        // Each collected test ran, and those that did not pass are known.
        let others = count(&|name, test| test.failed && name.contains("::")).saturating_add(sum.skipped);
        let items = self.items.filter(|_| unnamed == 0 && late == 0 && !self.is_aborted);
        let exact = items.and_then(|items| items.checked_sub(others)).filter(|it| (least..=most).contains(it));
        if let Some(passed) = exact {
            return (Totals { passed, failed, ..sum }, Open { has_unknown_error, ..Open::default() });
        }
        let passed = if late > 0 { least } else { most };
        (Totals { passed, failed, ..sum }, Open { more: most - passed, fewer: passed - least, has_unknown_error })
    }
}

/// Returns the problem of a run that ended before all tests had run.
pub fn aborted(why: &str) -> String {
    format!("pytest was not able to run all tests: {why}")
}

/// Adds a test that a line shows by one of these names. If there are several, it is unknown which one it is, because a reason
/// follows the name: a failure counts for each test that has one of them, and nothing passes.
fn add(report: &mut Report, names: &[String], status: Status) {
    if let [name] = names {
        return report.add(names_of(name), status);
    }
    let known: Vec<&String> = names.iter().filter(|name| report.has(name)).collect();
    match status {
        Status::Passed => {}
        _ if known.is_empty() => report.add(names.iter().flat_map(|name| names_of(name)).collect(), status),
        _ => known.into_iter().for_each(|name| report.add(names_of(name), status)),
    }
}

/// Returns the names of a test: the whole one, and its last part.
fn names_of(name: &str) -> Vec<String> {
    let short = name.rsplit_once("::").map(|(_, short)| short.to_owned());
    std::iter::once(name.to_owned()).chain(short).collect()
}

/// The facts in the output of a run of pytest that also wrote a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputFacts {
    /// The number of tests by the totals, without deselected ones and subtests; `None` without totals.
    pub tests: Option<u64>,
    /// The reason why pytest ended before all tests had run.
    pub abort: Option<String>,
}

/// Returns the facts in the output of a run of pytest that also wrote a report.
pub fn output_facts(text: &str) -> OutputFacts {
    let totals = text.lines().filter_map(|line| sum(&without_subtests(line.trim())));
    let counts = totals.map(|sum| sum_of([sum.passed, sum.failed, sum.skipped]));
    OutputFacts { tests: counts.reduce(u64::saturating_add), abort: read_with_abort(text).1 }
}

/// Returns a line of totals without its counts of subtests, which are no tests: `1 passed, 2 subtests passed in 0.1s`.
fn without_subtests(line: &str) -> Cow<'_, str> {
    if !line.contains(" subtests ") && !line.contains(" subtest ") {
        return Cow::Borrowed(line);
    }
    let Some((counts, time)) = line.trim_matches(['=', ' ']).rsplit_once(" in ") else { return Cow::Borrowed(line) };
    let tests: Vec<&str> = counts.split(", ").filter(|count| !count.contains(" subtest")).collect();
    Cow::Owned(format!("{} in {time}", tests.join(", ")))
}

/// The numbers that sessions collected, or reported at their ends.
#[derive(Default, Clone, Copy)]
struct Collected {
    items: u64,
    errors: u64,
}

impl Collected {
    fn add(&mut self, other: Self) {
        self.items = self.items.saturating_add(other.items);
        self.errors = self.errors.saturating_add(other.errors);
    }
}

/// Parses `collecting ... collected 7 items / 1 error / 2 deselected / 1 skipped / 5 selected`. A module that is skipped while it
/// is collected is no item, but the totals count it as skipped, so it is added to the items.
fn items(line: &str) -> Option<Collected> {
    let rest = line.strip_prefix("collecting ... ").unwrap_or(line);
    let (count, rest) = rest.strip_prefix("collected ")?.split_once(' ')?;
    let items = rest.starts_with("item").then(|| whole(count)).flatten()?;
    let skipped = number_before(rest, "skipped").unwrap_or(0);
    Some(Collected { items: sum_of([items, skipped]), errors: errors(rest) })
}

fn errors(line: &str) -> u64 {
    sum_of(["error", "errors"].iter().filter_map(|word| number_before(line, word)))
}

/// Parses the lines of a session that ended early: `!!! Interrupted: 1 error during collection !!!`, `INTERNALERROR> …`.
fn abort(line: &str) -> Option<String> {
    if line.starts_with("INTERNALERROR>") {
        return Some("INTERNALERROR".to_owned());
    }
    let inner = line.strip_prefix("!!!")?.strip_suffix("!!!")?.trim_matches('!').trim();
    (!inner.is_empty()).then(|| inner.to_owned())
}

/// Parses `=== 3 passed, 1 failed, 2 skipped in 0.12s ===`, without the `=` in quiet output.
fn sum(line: &str) -> Option<Totals> {
    let inner = line.trim_matches('=').trim();
    let (counts, time) = inner.rsplit_once(" in ")?;
    if !time.split(' ').next()?.trim_end_matches('s').parse::<f64>().is_ok_and(f64::is_finite) {
        return None;
    }
    let count = |words: &[&str]| sum_of(words.iter().filter_map(|word| number_before(counts, word)));
    if counts != "no tests ran" && !COUNTED.iter().any(|word| number_before(counts, word).is_some()) {
        return None;
    }
    Some(Totals {
        passed: count(&["passed", "xpassed"]),
        failed: count(&["failed", "error", "errors"]),
        skipped: count(&["skipped", "xfailed"]),
    })
}

/// Parses `a.py::test_b PASSED [ 50%]`, or `[gw0] [ 50%] PASSED a.py::test_b` of parallel workers.
fn verbose(line: &str) -> Option<(Vec<String>, Status)> {
    for (word, status) in WORDS {
        let marked = format!(" {word}");
        if let Some(at) = line.find(&marked) {
            let (name, rest) = (line.get(..at)?, line.get(at + marked.len()..)?);
            let ends = rest.is_empty() || rest.trim_start().starts_with(['[', '(']);
            if name.contains(".py::") && ends && !name.starts_with('[') {
                return Some((vec![name.trim().to_owned()], status));
            }
            if name.starts_with("[gw") && rest.contains(".py::") {
                return Some((vec![rest.trim().to_owned()], status));
            }
        }
    }
    None
}

/// Parses `FAILED a.py::test_b - assert 1 == 2`. Returns each name that the test may have: `test_b[1 - 2]` is one of
/// `FAILED a.py::test_b[1 - 2] - assert x[1] - y[2]`, and `test_b[1 - 2] - assert x[1]` is another one.
fn summary(line: &str) -> Option<(Vec<String>, Status)> {
    // `SUBFAILED[m] (i=1) a.py::test_b - assert 1 == 2`: a test of which a part failed. Older versions write `SUBFAIL`.
    if let Some(rest) = line.strip_prefix("SUBFAIL") {
        let name = rest.split(" - ").next()?.split(' ').find(|word| word.contains(".py::"))?;
        return Some((vec![name.to_owned()], Status::Failed));
    }
    let (word, rest) = line.split_once(' ')?;
    let status = WORDS.iter().find(|(known, _)| *known == word).map(|(_, status)| *status)?;
    if word == "PASSED" {
        // No reason follows the name.
        let name = rest.trim();
        return name.contains(".py::").then(|| (vec![name.to_owned()], status));
    }
    let first = rest.split(" - ").next()?.trim();
    if !first.contains(".py::") {
        // If collecting fails, the line names a file instead of a test.
        let is_file = word == "ERROR" && first.ends_with(".py");
        return is_file.then(|| (vec![first.to_owned()], status));
    }
    let ends = rest.match_indices(" - ").map(|(at, _)| at).chain([rest.len()]).take(MAX_NAMES);
    let parts = ends.filter_map(|at| rest.get(..at));
    let is_whole = |name: &&str| {
        let own = name.split_once(".py::").map(|(_, own)| own);
        own.is_some_and(|own| !own.contains('[') || own.ends_with(']'))
    };
    let mut names: Vec<&str> = parts.map(str::trim).filter(is_whole).collect();
    // A name without parameters has no ` - `.
    if let Some(name) = names.iter().copied().find(|name| !name.contains('[')) {
        names = vec![name];
    }
    // Plug-ins may cut a name.
    if !names.contains(&first) {
        names.push(first);
    }
    Some((names.into_iter().map(str::to_owned).collect(), status))
}
