//! Parses the output of Python's `unittest`.

use std::collections::BTreeSet;

use super::report::{Report, Status, Totals, is_unreadable, sum_of, unreadable, whole};
use crate::reason_text::short;

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    // The number of tests of a run whose outcome is on a later line.
    let mut run_count: Option<u64> = None;
    let (mut runs, mut ended) = (0, 0);
    let mut open: Option<Vec<String>> = None;
    // The tests of the current run that have a line of their own, which they have only with -v.
    let mut shown: u64 = 0;
    let mut is_below_rule = false;
    let mut failures = Failures::default();
    for line in text.lines() {
        let trimmed = line.trim();
        let is_headline = std::mem::replace(&mut is_below_rule, trimmed == RULE);
        if is_headline
            && let Some(rest) = HEADLINES.iter().find_map(|start| trimmed.strip_prefix(start))
            && let Some(names) = names(rest)
        {
            if let Some(problem) = failures.note(&names) {
                report.incomplete(problem);
            }
            // Without -v, only these lines name a failed test. They also name errors outside of tests: `setUpClass`.
            report.add(names, Status::Failed);
            // Subtests of one test fail one by one.
            report.named_failures += 1;
            continue;
        }
        if let Some(count) = count_of_run(trimmed) {
            if is_unreadable(count) {
                report.doubts.push(unreadable(trimmed));
            }
            if let Some(count) = whole(count) {
                run_count = Some(count);
                runs += 1;
                let shown = std::mem::take(&mut shown);
                if 0 < shown && shown < count {
                    report.doubts.push(format!("unittest counted {count} tests, but shows {shown}"));
                }
            }
            continue;
        }
        if let Some(total) = run_count
            && let Some(sum) = sum(trimmed, total)
        {
            let sum = std::mem::take(&mut failures).corrected(sum, total);
            // A line may run several programs.
            report.totals = Some(report.totals.unwrap_or_default().plus(sum));
            report.doubts.extend(has_unreadable_count(trimmed).then(|| unreadable(trimmed)));
            ended += 1;
            run_count = None;
            continue;
        }
        if let Some(found) = names(trimmed) {
            open = Some(found);
        }
        let result = trimmed.rsplit_once(" ... ").map_or(trimmed, |(_, result)| result);
        let is_test = open.is_some() || status(result).is_some();
        shown += u64::from(is_test && !line.starts_with(' ') && line.contains(" ...") && !is_fixture(trimmed));
        if let Some(status) = status(result)
            && let Some(names) = open.take()
        {
            report.add(names, status);
        }
    }
    if runs == 0 {
        return Report::default();
    }
    if ended < runs {
        report.problems.push("the output of unittest has no end: no OK or FAILED".to_owned());
    }
    report
}

/// The line above the name of a failed test.
const RULE: &str = "======================================================================";

/// The beginnings of the lines that name a failed test.
const HEADLINES: [&str; 3] = ["FAIL: ", "ERROR: ", "UNEXPECTED SUCCESS: "];

/// Returns the number in `Ran 2 tests in 0.001s`. The line of another runner ends differently: `Ran 2 tests across 1 file.` of bun.
fn count_of_run(line: &str) -> Option<&str> {
    let (count, rest) = line.strip_prefix("Ran ")?.split_once(" test")?;
    rest.strip_prefix('s').unwrap_or(rest).starts_with(" in ").then_some(count)
}

/// The fixtures of classes and modules, which are no tests.
const FIXTURES: [&str; 4] = ["setUpClass", "setUpModule", "tearDownClass", "tearDownModule"];

/// Returns true for the line of a fixture that failed or was skipped.
fn is_fixture(line: &str) -> bool {
    FIXTURES.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(" (")))
}

/// The failures of one run, each of which has a headline.
#[derive(Default)]
struct Failures {
    headlines: u64,
    tests: BTreeSet<String>,
    fixtures: u64,
    has_problem: bool,
}

impl Failures {
    /// Notes a headline with these names. Returns the first reason why tests did not run: a module that could not be imported, or
    /// a class or module that could not be set up, has one headline for all of its tests.
    fn note(&mut self, names: &[String]) -> Option<String> {
        let (full, shown) = (names.first()?, names.last()?);
        self.headlines += 1;
        let is_new = self.tests.insert(full.clone());
        let name = full.rsplit('.').next().unwrap_or_default();
        self.fixtures += u64::from(is_new && FIXTURES.contains(&name));
        let why = if full.starts_with("unittest.loader.") {
            "could not be loaded"
        } else if ["setUpClass", "setUpModule"].contains(&name) {
            "failed"
        } else {
            return None;
        };
        let is_first = !std::mem::replace(&mut self.has_problem, true);
        is_first.then(|| format!("`{}` {why}, so its tests did not run", short(shown, 120)))
    }

    /// Returns the numbers of tests. unittest counts each failed part of a test (`subTest`) and each failed fixture as a failure,
    /// and no fixture as a test.
    fn corrected(self, sum: Totals, run_count: u64) -> Totals {
        if self.headlines < sum.failed {
            return sum;
        }
        let failed = (self.tests.len() as u64).min(sum.failed);
        let all = run_count.saturating_add(self.fixtures.min(failed));
        Totals { passed: all.saturating_sub(failed.saturating_add(sum.skipped)), failed, ..sum }
    }
}

/// Parses `test_b (module.Class.test_b)`, or in older versions `test_b (module.Class)`.
fn names(line: &str) -> Option<Vec<String>> {
    let (name, rest) = line.split_once(" (")?;
    let (class, _) = rest.split_once(')')?;
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
    if !is_name(name) || !is_name(class) {
        return None;
    }
    let full = if class.ends_with(&format!(".{name}")) { class.to_owned() } else { format!("{class}.{name}") };
    Some(vec![full, name.to_owned(), format!("{name} ({class})")])
}

fn status(text: &str) -> Option<Status> {
    match text {
        "ok" | "unexpected success" => Some(if text == "ok" { Status::Passed } else { Status::Failed }),
        "FAIL" | "ERROR" => Some(Status::Failed),
        "expected failure" => Some(Status::Skipped),
        other if other.starts_with("skipped ") => Some(Status::Skipped),
        _ => None,
    }
}

/// Returns the counts in `(failures=1, errors=2)`.
fn counts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.trim_matches(['(', ')']).split(", ").filter_map(|part| part.split_once('='))
}

/// Returns true if a line of totals has a count that is no number.
fn has_unreadable_count(line: &str) -> bool {
    line.split_once('(').is_some_and(|(_, rest)| counts(rest).any(|(_, count)| count.parse::<u64>().is_err()))
}

/// Parses `OK (skipped=1)`, `FAILED (failures=1, errors=2)`.
fn sum(line: &str, run_count: u64) -> Option<Totals> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    if !["OK", "FAILED"].contains(&word) && line != "NO TESTS RAN" && !line.starts_with("NO TESTS RAN (") {
        return None;
    }
    let count = |key: &str| counts(rest).find(|(known, _)| *known == key).and_then(|(_, n)| whole(n));
    let failed = sum_of(["failures", "errors", "unexpected successes"].iter().filter_map(|key| count(key)));
    let skipped = sum_of(["skipped", "expected failures"].iter().filter_map(|key| count(key)));
    // `FAILED` without counts is a failure, too.
    let failed = if word == "FAILED" { failed.max(1) } else { failed };
    Some(Totals { passed: run_count.saturating_sub(failed.saturating_add(skipped)), failed, skipped })
}
