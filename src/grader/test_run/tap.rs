//! Parses the Test Anything Protocol, with subtests.

use super::report::{Report, Status};

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    // Indented lines are subtests: names by depth, and whether there were subtests.
    let mut within: Vec<String> = Vec::new();
    let mut below: Vec<Option<Status>> = Vec::new();
    let (mut planned, mut seen): (Option<u64>, u64) = (None, 0);
    let mut failed = 0;
    let mut is_tap = false;
    for line in text.lines() {
        let depth = (line.len() - line.trim_start_matches(' ').len()) / 4;
        let trimmed = line.trim();
        if trimmed.starts_with("TAP version") {
            is_tap = true;
        } else if let Some(name) = trimmed.strip_prefix("# Subtest: ") {
            within.truncate(depth);
            within.resize(depth, String::new());
            within.push(name.to_owned());
        } else if let Some(count) = trimmed.strip_prefix("1..").filter(|_| depth == 0) {
            // An output may contain the reports of several programs.
            if let Some(count) = count.split_whitespace().next().and_then(|count| count.parse::<u64>().ok()) {
                planned = Some(planned.unwrap_or(0).saturating_add(count));
            }
            is_tap |= planned.is_some();
        } else if let Some(count) = trimmed.strip_prefix("# fail ").filter(|_| depth == 0) {
            failed = count.trim().parse().unwrap_or(0).max(failed);
        } else if let Some(why) = trimmed.strip_prefix("Bail out!") {
            report.problems.push(format!("it bailed out:{why}"));
        } else if let Some((status, name)) = point(trimmed) {
            is_tap = true;
            seen += u64::from(depth == 0);
            let children = below.get(depth + 1).copied().flatten();
            below.truncate(depth + 1);
            below.resize(depth + 1, None);
            if let Some(worst) = below.get_mut(depth) {
                *worst = Some(worst.map_or(status, |worst| worst.max(status)));
            }
            within.truncate(depth);
            // A test with subtests counts by its subtests; it is a further test only if it failed although no subtest
            // did.
            let own = children.is_none_or(|worst| status == Status::Failed && worst != Status::Failed);
            if own {
                let path = within.iter().map(String::as_str).chain([name]).filter(|part| !part.is_empty());
                let full = path.collect::<Vec<&str>>().join(" > ");
                report.add_another(vec![full, name.to_owned()], status);
            }
        }
    }
    if !is_tap {
        return Report::default();
    }
    match planned {
        Some(planned) if planned != seen => {
            report.problems.push(format!("{planned} tests were planned, but {seen} were reported"));
        }
        None => report.problems.push("the report has no plan (1..N), so it may be incomplete".to_owned()),
        Some(_) => {}
    }
    if failed > 0 {
        report.contradiction(|| format!("{failed} failed by its totals, but no failed test was reported"));
    }
    report
}

/// Parses `ok 3 - name # SKIP why`.
fn point(line: &str) -> Option<(Status, &str)> {
    let (holds, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim();
    let (name, directive) =
        rest.split_once(" # ").or_else(|| rest.strip_prefix("# ").map(|it| ("", it))).unwrap_or((rest, ""));
    let directive = directive.trim().to_ascii_uppercase();
    let status = match holds {
        _ if directive.starts_with("SKIP") => Status::Skipped,
        // The outcome of a test that is still to be done does not count.
        _ if directive.starts_with("TODO") => Status::Skipped,
        true => Status::Passed,
        false => Status::Failed,
    };
    Some((status, name.trim()))
}
