//! Parses the output of Node test runners: `node --test`, mocha, jest and vitest.

use super::report::{Report, Status, Totals, number_before};

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    let mut suites: Vec<(usize, String)> = Vec::new();
    let mut sum: Option<Totals> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if let Some(found) = total(trimmed, sum) {
            sum = Some(found);
            continue;
        }
        // The section that follows repeats the failed tests.
        if trimmed == "✖ failing tests:" || trimmed.starts_with("Summary of all failing tests") {
            break;
        }
        let mut chars = trimmed.chars();
        let symbol = chars.next().unwrap_or_default();
        let rest = without_time(chars.as_str().trim());
        if !"▶✔✓√✖✕✗×﹣○↓".contains(symbol) {
            continue;
        }
        while suites.last().is_some_and(|(at, name)| *at > indent || (*at == indent && name != rest)) {
            suites.pop();
        }
        let is_open = suites.last().is_some_and(|(at, name)| *at == indent && name == rest);
        let status = match symbol {
            '▶' if is_open => {
                suites.pop();
                continue;
            }
            '▶' => {
                suites.push((indent, rest.to_owned()));
                continue;
            }
            '✔' | '✓' | '√' => Status::Passed,
            '✖' | '✕' | '✗' | '×' => Status::Failed,
            '﹣' | '○' | '↓' => Status::Skipped,
            _ => continue,
        };
        // The end of a suite looks like a test.
        if is_open {
            suites.pop();
            continue;
        }
        let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
        let status =
            if directive.starts_with("SKIP") || directive.starts_with("TODO") { Status::Skipped } else { status };
        let path = suites.iter().map(|(_, name)| name.as_str()).chain([name]);
        let full = path.collect::<Vec<&str>>().join(" > ");
        report.add_another(vec![full, name.to_owned()], status);
    }
    report.totals = sum;
    // Many programs print check marks without totals.
    if report.totals.is_none() { Report::default() } else { report }
}

/// Parses a line of the runner's totals.
fn total(line: &str, so_far: Option<Totals>) -> Option<Totals> {
    let mut sum = so_far.unwrap_or_default();
    if let Some(rest) = line.strip_prefix("ℹ ") {
        let (word, count) = rest.split_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match word {
            "pass" => sum.passed = count,
            "fail" => sum.failed += count,
            // A cancelled test did not pass.
            "cancelled" => sum.failed += count,
            "skipped" | "todo" => sum.skipped += count,
            "tests" | "suites" => {}
            _ => return None,
        }
        return Some(sum);
    }
    // jest, and vitest.
    if let Some(rest) = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests ")) {
        let count = |word| number_before(rest, word).unwrap_or(0);
        let (passed, failed, skipped) = (count("passed"), count("failed"), count("skipped") + count("todo"));
        return (passed + failed + skipped > 0).then_some(Totals { passed, failed, skipped });
    }
    // mocha: `3 passing (12ms)`.
    let (count, rest) = line.split_once(' ')?;
    let count: u64 = count.parse().ok()?;
    match rest.split(' ').next()? {
        "passing" => sum.passed += count,
        "failing" => sum.failed += count,
        "pending" => sum.skipped += count,
        _ => return None,
    }
    Some(sum)
}

/// Returns the name in `name (1.25ms)`, without the time.
fn without_time(text: &str) -> &str {
    let is_time = |text: &str| {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim();
        number.parse::<f64>().is_ok()
    };
    match text.rsplit_once(" (") {
        Some((name, time)) if time.strip_suffix(')').is_some_and(is_time) => name.trim_end(),
        _ => text,
    }
}
