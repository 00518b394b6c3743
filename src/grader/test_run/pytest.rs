//! Parses the output of `pytest`: terse, verbose, and with the summary of single tests.

use std::borrow::Cow;

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
const MOST_NAMES: usize = 32;

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
                // A line may run pytest several times.
                report.totals = Some(report.totals.unwrap_or_default().plus(sum));
            }
            ended += 1;
            open = open.saturating_sub(1);
            is_after_inner = is_inner;
            continue;
        }
        if let Some(why) = abort(line) {
            let place = if is_inner || is_after_inner { &mut inner } else { &mut beside };
            place.get_or_insert(why);
        }
        is_after_inner &= line.is_empty();
        if line.contains("test session starts") {
            begun += 1;
            open += 1;
        } else if let Some(found) = items(line) {
            collected.add(found);
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
            report.named_failures += u64::from(is_summary && status == Status::Failed);
            add(&mut report, &names, status);
        }
    }
    let counts_no_failure = report.totals.is_some_and(|totals| totals.failed == 0);
    for (names, status) in stray.into_iter().filter(|(_, status)| !has_summary || *status == Status::Failed) {
        if status == Status::Failed && counts_no_failure {
            let name = names.first().map(String::as_str).unwrap_or_default();
            report.doubts.push(format!("pytest counts no failure, but a line as that of a failed test names {name}"));
        } else {
            report.named_failures += u64::from(status == Status::Failed);
            add(&mut report, &names, status);
        }
    }
    if report.totals.is_none() && begun == 0 && !has_summary {
        // Other programs print `ERROR a.py`, too. With `-qq`, pytest prints its summary without totals.
        return (Report::default(), None);
    }
    if ended < begun {
        report.problems.push("the output of pytest has no end".to_owned());
    } else {
        if let Some(why) = &beside {
            // A session that a test ended with `pytest.exit` may exit with 0.
            report.contradiction(|| aborted(why));
        }
        if collected.errors > reported.errors {
            let (found, known) = (plural(collected.errors, "error"), reported.errors);
            report.contradiction(|| format!("pytest counted {found} when it collected tests, but reports {known}"));
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
pub struct Told {
    /// The number of tests by the totals, without deselected ones and subtests; `None` without totals.
    pub tests: Option<u64>,
    /// The reason why pytest ended before all tests had run.
    pub abort: Option<String>,
}

/// Returns the facts in the output of a run of pytest that also wrote a report.
pub fn told(text: &str) -> Told {
    let totals = text.lines().filter_map(|line| sum(&without_subtests(line.trim())));
    let counts = totals.map(|sum| sum_of([sum.passed, sum.failed, sum.skipped]));
    Told { tests: counts.reduce(u64::saturating_add), abort: read_with_abort(text).1 }
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

/// Parses `collecting ... collected 7 items / 1 error / 2 deselected / 5 selected`.
fn items(line: &str) -> Option<Collected> {
    let rest = line.strip_prefix("collecting ... ").unwrap_or(line);
    let (count, rest) = rest.strip_prefix("collected ")?.split_once(' ')?;
    let items = rest.starts_with("item").then(|| whole(count)).flatten()?;
    Some(Collected { items, errors: errors(rest) })
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
    // `SUBFAILED[m] (i=1) a.py::test_b - assert 1 == 2`: a test of which a part failed.
    if let Some(rest) = line.strip_prefix("SUBFAILED") {
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
    let ends = rest.match_indices(" - ").map(|(at, _)| at).chain([rest.len()]).take(MOST_NAMES);
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
