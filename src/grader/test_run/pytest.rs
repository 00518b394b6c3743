//! Parses the output of `pytest`: terse, verbose, and with the summary of single tests.

use super::report::{Report, Status, Totals, number_before};

/// The words for the outcomes of single tests.
const WORDS: [(&str, Status); 6] = [
    ("PASSED", Status::Passed),
    ("FAILED", Status::Failed),
    ("ERROR", Status::Failed),
    ("SKIPPED", Status::Skipped),
    ("XFAIL", Status::Skipped),
    ("XPASS", Status::Passed),
];

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    let (mut begun, mut ended) = (0, 0);
    let (mut collected, mut deselected) = (0_u64, 0_u64);
    for line in text.lines() {
        let line = line.trim();
        if let Some(sum) = sum(line) {
            // A line may run pytest several times.
            report.totals = Some(report.totals.unwrap_or_default().plus(sum));
            deselected = deselected.saturating_add(number_before(line, "deselected").unwrap_or(0));
            ended += 1;
        } else if line.contains("test session starts") {
            begun += 1;
        } else if let Some(count) = items(line) {
            collected = collected.saturating_add(count);
        } else if let Some((name, status)) = verbose(line).or_else(|| summary(line)) {
            let mut names = vec![name.to_owned()];
            names.extend(name.rsplit_once("::").map(|(_, short)| short.to_owned()));
            report.add(names, status);
        }
    }
    if report.totals.is_none() && begun == 0 {
        // Other programs print `ERROR a.py`, too.
        return Report::default();
    }
    if ended < begun {
        report.problems.push("the output of pytest has no end".to_owned());
    } else {
        let sum = report.totals.unwrap_or_default();
        let reported = sum.passed.saturating_add(sum.failed).saturating_add(sum.skipped).saturating_add(deselected);
        if collected > reported {
            // A session that a test ended with `pytest.exit` may exit with 0.
            report.contradiction(|| format!("{collected} tests were collected, but {reported} were reported"));
        }
    }
    report
}

/// Parses `collecting ... collected 7 items / 2 deselected / 5 selected`.
fn items(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("collecting ... ").unwrap_or(line);
    let (count, rest) = rest.strip_prefix("collected ")?.split_once(' ')?;
    rest.starts_with("item").then(|| count.parse().ok()).flatten()
}

/// Parses `=== 3 passed, 1 failed, 2 skipped in 0.12s ===`, without the `=` in quiet output.
fn sum(line: &str) -> Option<Totals> {
    let inner = line.trim_matches('=').trim();
    let (counts, time) = inner.rsplit_once(" in ")?;
    if !time.split(' ').next()?.trim_end_matches('s').parse::<f64>().is_ok_and(f64::is_finite) {
        return None;
    }
    let count = |words: &[&str]| words.iter().filter_map(|word| number_before(counts, word)).sum::<u64>();
    let known =
        ["passed", "failed", "error", "errors", "skipped", "xfailed", "xpassed", "deselected", "warning", "warnings"];
    if counts != "no tests ran" && !known.iter().any(|word| number_before(counts, word).is_some()) {
        return None;
    }
    Some(Totals {
        passed: count(&["passed", "xpassed"]),
        failed: count(&["failed", "error", "errors"]),
        skipped: count(&["skipped", "xfailed"]),
    })
}

/// Parses `a.py::test_b PASSED [ 50%]`, or `[gw0] [ 50%] PASSED a.py::test_b` of parallel workers.
fn verbose(line: &str) -> Option<(&str, Status)> {
    for (word, status) in WORDS {
        let marked = format!(" {word}");
        if let Some(at) = line.find(&marked) {
            let (name, rest) = (line.get(..at)?, line.get(at + marked.len()..)?);
            let ends = rest.is_empty() || rest.trim_start().starts_with(['[', '(']);
            if name.contains(".py::") && ends && !name.starts_with('[') {
                return Some((name.trim(), status));
            }
            if name.starts_with("[gw") && rest.contains(".py::") {
                return Some((rest.trim(), status));
            }
        }
    }
    None
}

/// Parses `FAILED a.py::test_b - assert 1 == 2`.
fn summary(line: &str) -> Option<(&str, Status)> {
    let (word, rest) = line.split_once(' ')?;
    let status = WORDS.iter().find(|(known, _)| *known == word).map(|(_, status)| *status)?;
    let name = rest.split(" - ").next()?.trim();
    // If collecting fails, the line names a file instead of a test.
    let is_test = name.contains(".py::") || (word == "ERROR" && name.ends_with(".py"));
    is_test.then_some((name, status))
}
