//! Parses the output of Python's `unittest`.

use super::report::{Report, Status, Totals};

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    // The number of tests of a run whose outcome is on a later line.
    let mut ran: Option<u64> = None;
    let (mut runs, mut ended) = (0, 0);
    let mut open: Option<Vec<String>> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(count) = trimmed.strip_prefix("Ran ").and_then(|rest| rest.split_once(" test")) {
            if let Ok(count) = count.0.parse() {
                ran = Some(count);
                runs += 1;
            }
            continue;
        }
        if let Some(total) = ran
            && let Some(sum) = sum(trimmed, total)
        {
            // A line may run several programs.
            report.totals = Some(report.totals.unwrap_or_default().plus(sum));
            ended += 1;
            ran = None;
            continue;
        }
        if let Some(found) = names(trimmed) {
            open = Some(found);
        }
        let result = trimmed.rsplit_once(" ... ").map_or(trimmed, |(_, result)| result);
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

/// Parses `test_b (module.Class.test_b)`, or in older versions `test_b (module.Class)`.
fn names(line: &str) -> Option<Vec<String>> {
    let (name, rest) = line.split_once(" (")?;
    let (class, _) = rest.split_once(')')?;
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
    if !is_name(name) || !is_name(class) {
        return None;
    }
    let full = if class.ends_with(&format!(".{name}")) { class.to_owned() } else { format!("{class}.{name}") };
    Some(vec![full, name.to_owned()])
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

/// Parses `OK (skipped=1)`, `FAILED (failures=1, errors=2)`.
fn sum(line: &str, ran: u64) -> Option<Totals> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    if !["OK", "FAILED"].contains(&word) && line != "NO TESTS RAN" && !line.starts_with("NO TESTS RAN (") {
        return None;
    }
    let count = |key: &str| -> Option<u64> {
        let parts = rest.trim_matches(['(', ')']).split(", ");
        parts.filter_map(|part| part.split_once('=')).find(|(known, _)| *known == key).and_then(|(_, n)| n.parse().ok())
    };
    let failed = ["failures", "errors", "unexpected successes"].iter().filter_map(|key| count(key)).sum::<u64>();
    let skipped = ["skipped", "expected failures"].iter().filter_map(|key| count(key)).sum::<u64>();
    // `FAILED` without counts is a failure, too.
    let failed = if word == "FAILED" { failed.max(1) } else { failed };
    Some(Totals { passed: ran.saturating_sub(failed + skipped), failed, skipped })
}
