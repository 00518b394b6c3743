//! Parses the output of `go test`: plain, with `-v`, and with `-json`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Report, Status};

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let is_json = text.lines().any(|line| line.starts_with('{') && line.contains("\"Action\":"));
    if is_json { json(text) } else { plain(text) }
}

fn names(package: &str, test: &str) -> Vec<String> {
    vec![format!("{package}.{test}"), format!("{package}/{test}"), test.to_owned()]
}

fn status(word: &str) -> Option<Status> {
    match word {
        "PASS" | "pass" => Some(Status::Passed),
        "FAIL" | "fail" => Some(Status::Failed),
        "SKIP" | "skip" => Some(Status::Skipped),
        _ => None,
    }
}

fn plain(text: &str) -> Report {
    let mut report = Report::default();
    // Tests whose package is named on a later line.
    let mut waiting: Vec<(String, Status)> = Vec::new();
    let mut packages = 0;
    for line in text.lines() {
        if let Some((status, rest)) = line.trim_start().strip_prefix("--- ").and_then(|rest| {
            let (word, rest) = rest.split_once(": ")?;
            Some((status(word)?, rest))
        }) {
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            waiting.push((name.trim().to_owned(), status));
            continue;
        }
        let mut words = line.split_whitespace();
        let (first, package) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // A line with only FAIL precedes the line with the package.
        let is_package = line.contains('\t') && !package.is_empty() && ["ok", "FAIL"].contains(&first);
        if !is_package {
            continue;
        }
        packages += 1;
        let tests = std::mem::take(&mut waiting);
        let has_failed = tests.iter().any(|(_, status)| *status == Status::Failed);
        if first == "FAIL" && !has_failed {
            report.problems.push(format!("the package {package} failed: {}", line.trim()));
        }
        // Without -v, a package that passed names no test; the package counts as a test then.
        if tests.is_empty() && first == "ok" && !line.contains("[no test") {
            report.add(vec![package.to_owned()], Status::Passed);
        }
        for (name, status) in tests {
            report.add(names(package, &name), status);
        }
    }
    if packages == 0 && !waiting.is_empty() {
        report.problems.push("the output of go test has no end".to_owned());
    }
    for (name, status) in waiting {
        report.add(vec![name], status);
    }
    report
}

fn json(text: &str) -> Report {
    let mut report = Report::default();
    let mut failed_packages = BTreeSet::new();
    let mut with_failed_tests = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let said = |key: &str| event.get(key).and_then(Value::as_str);
        let Some(status) = said("Action").and_then(status) else { continue };
        let package = said("Package").or_else(|| said("ImportPath")).unwrap_or_default();
        match said("Test") {
            Some(test) => {
                if status == Status::Failed {
                    with_failed_tests.insert(package.to_owned());
                }
                report.add(names(package, test), status);
            }
            None if status == Status::Failed => {
                failed_packages.insert(package.to_owned());
            }
            None => {}
        }
    }
    for package in failed_packages.difference(&with_failed_tests) {
        report.problems.push(format!("the package {package} failed beside its tests"));
    }
    report
}
