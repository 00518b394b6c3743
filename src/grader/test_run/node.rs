//! Parses the output of Node test runners: `node --test`, mocha, jest and vitest.

use super::node_failures::{self, Details, Failures};
use super::report::{
    Report, Status, Totals, is_failed_hook, is_script, is_unreadable, not_counted, number_before, sum_of, unreadable,
    unreadable_before, whole,
};
use super::tap;
use crate::reason_text::short;

/// The line of jest for a file that could not be loaded.
const NOT_LOADED: &str = "● Test suite failed to run";

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    let mut report = Report::default();
    let mut suites: Vec<(usize, String)> = Vec::new();
    let mut sum: Option<Totals> = None;
    // Failures that no test shows: of files, of unhandled errors.
    let mut beside: Option<String> = None;
    // The first reason why tests did not run, whether or not others failed.
    let mut missing: Option<String> = None;
    // The lines repeat failed tests.
    let mut is_repeated = false;
    let (mut failures, mut counts) = (Failures::default(), node_failures::Totals::default());
    // Lines such as `1) name` before the totals, which mocha prints for failed tests.
    let mut numbered_lines: Vec<String> = Vec::new();
    let (mut is_numbered_from_one, mut is_mocha) = (false, false);
    // The tests that a runner counted in all, and those of known outcome.
    let (mut counted, mut known) = (0_u64, 0_u64);
    // The first line of jest or vitest for a file with a failure.
    let mut failed_file: Option<&str> = None;
    // The last line of jest for a file with a failure.
    let mut last_failed_file = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        report.doubts.extend(unreadable_total(trimmed).filter(|_| report.doubts.is_empty()));
        if let Some(found) = total(trimmed, sum) {
            (sum, is_repeated) = (Some(found), false);
            failures.end();
            add_count(trimmed, &mut counts);
            is_mocha |= is_numbered_from_one && trimmed.contains(" passing");
            let (all, each) = sizes(trimmed);
            (counted, known) = (counted.saturating_add(all), known.saturating_add(each));
            continue;
        }
        missing = missing.or_else(|| missing_tests(trimmed));
        if trimmed.starts_with("FAIL ") && indent < 2 {
            last_failed_file = trimmed;
        } else if trimmed == NOT_LOADED {
            let words = last_failed_file.split_whitespace();
            words.filter(|word| is_script(word)).for_each(|file| report.note_file(file, Status::Failed));
        }
        if let Some(why) = failed_beside(trimmed) {
            beside = Some(why);
            continue;
        }
        // The totals of jest follow the section that repeats the failed tests.
        is_repeated |= trimmed.starts_with("Summary of all failing tests");
        if is_repeated {
            continue;
        }
        failed_file = failed_file.or_else(|| Some(trimmed).filter(|line| line.starts_with("FAIL ") && indent < 2));
        // The section that follows repeats the failed tests.
        if trimmed == "✖ failing tests:" {
            failures.repeat(repeated(lines));
            break;
        }
        if let Some(name) = numbered(trimmed).filter(|_| indent > 0 && sum.is_none()) {
            numbered_lines.push(name.to_owned());
            is_numbered_from_one |= trimmed.starts_with("1) ");
            continue;
        }
        let mut chars = trimmed.chars();
        let symbol = chars.next().unwrap_or_default();
        let (rest, is_aside) = without_reason(chars.as_str().trim());
        let rest = without_time(without_retries(rest));
        if !"▶✔✓√✖✕✗×﹣○↓".contains(symbol) || is_file(rest) {
            failures.line(trimmed);
            continue;
        }
        failures.end();
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
            '✔' | '✓' | '√' | '✖' | '✕' | '✗' | '×' if is_aside => Status::Skipped,
            '✔' | '✓' | '√' => Status::Passed,
            '✖' | '✕' | '✗' | '×' => Status::Failed,
            '﹣' | '○' | '↓' => Status::Skipped,
            _ => continue,
        };
        // The end of a suite looks like a test.
        if is_open {
            let full = suites.iter().map(|(_, name)| name.as_str()).collect::<Vec<&str>>().join(" > ");
            report.add_suite(vec![full, rest.to_owned()], status);
            if status == Status::Failed {
                failures.add(indent, rest, true);
            }
            suites.pop();
            continue;
        }
        let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
        let status = if directive.starts_with("SKIP") || tap::is_todo(directive) { Status::Skipped } else { status };
        let full =
            |name: &str| suites.iter().map(|(_, name)| name.as_str()).chain([name]).collect::<Vec<&str>>().join(" > ");
        // vitest prints the time of a test without brackets; a name may end like a time, too.
        let timed = without_plain_time(name).filter(|_| name.contains(" > "));
        let names = [timed, Some(name)].into_iter().flatten();
        if status == Status::Failed {
            failures.add(indent, rest, false);
        }
        report.note_file(name, status);
        report.add_another(names.flat_map(|name| [full(name), name.to_owned()]).collect(), status);
    }
    report.totals = sum;
    // Many programs print check marks without totals.
    if report.totals.is_none() {
        return Report::default();
    }
    // Tests may print such lines, too; then their number differs from that of the failures.
    if report.unnamed_failures() == numbered_lines.len() as u64 {
        numbered_lines.into_iter().for_each(|name| report.add_another(vec![name], Status::Failed));
    } else if let Some(first) = numbered_lines.first().filter(|_| is_mocha && report.counts().failed == 0) {
        report
            .doubts
            .push(format!("mocha counts no failure, but the line `1) {}` looks like that of a failed test", first));
    }
    if let Some(why) = missing.or_else(|| failures.missing(counts).map(str::to_owned)) {
        report.incomplete(why);
    }
    if let Some(why) = beside {
        report.contradiction(|| format!("the runner reports `{why}`, but no failed test"));
    } else if let Some(line) = failed_file.filter(|_| report.counts().failed == 0) {
        report.doubts.push(format!("the output contains the line `{line}`, but no failed test"));
    }
    if counted > known {
        report.contradiction(|| format!("the runner counted {counted} tests, but the outcome of {known}"));
    }
    report
}

/// Returns the reason why tests of a file or a suite are missing, if a line states one: a file that jest or vitest could not
/// load or did not run, or a hook of mocha or vitest that failed.
fn missing_tests(line: &str) -> Option<String> {
    let name = numbered(line).unwrap_or(line);
    if line == NOT_LOADED {
        Some(format!("the runner reports `{line}`, so the tests of a file did not run"))
    } else if has_missing_files(line) {
        let line = line.split_whitespace().collect::<Vec<&str>>().join(" ");
        Some(format!("the runner reports `{line}`, so it did not run all files"))
    } else if name.starts_with('"') && is_failed_hook(name) {
        Some(format!("the {} failed, so tests did not run", short(name.trim_end_matches(':'), 120)))
    } else {
        failed_suites(line)
    }
}

/// Returns the reason why tests are missing, if an output of vitest has the heading `Failed Suites 1`.
pub fn failed_suites(text: &str) -> Option<String> {
    let heading = |line: &str| {
        let count = line.trim_matches(['⎯', ' ']).strip_prefix("Failed Suites ")?;
        whole(count).map(|count| format!("vitest reports {count} failed suites, whose tests did not run"))
    };
    text.lines().find_map(heading)
}

/// Parses `1) name`.
fn numbered(line: &str) -> Option<&str> {
    let (number, name) = line.split_once(") ")?;
    whole(number).map(|_| name.trim())
}

/// Returns true if a line of totals counts fewer files than there are: `1 passed, 1 of 3 total`, `1 passed (3)`.
fn has_missing_files(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("Test Suites:").or_else(|| line.strip_prefix("Test Files ")) else {
        return false;
    };
    let count = |word| number_before(rest, word).unwrap_or(0);
    let all = match rest.split_once('(') {
        Some((_, all)) => whole(all.trim_end_matches(')')),
        None => number_before(rest, "total"),
    };
    let known = sum_of(["passed", "failed", "skipped", "todo"].iter().map(|word| count(*word)));
    all.is_some_and(|all| known < all)
}

/// Parses the totals of jest and vitest that are not of tests, and returns the line if something failed.
fn failed_beside(line: &str) -> Option<String> {
    const TOTALS: [&str; 4] = ["Test Suites:", "Test Files ", "Snapshots:", "Snapshots "];
    let has = |rest: &str, word: &str| number_before(rest, word).is_some_and(|count| count > 0);
    let of_files = TOTALS.iter().filter_map(|start| line.strip_prefix(start)).any(|rest| has(rest, "failed"));
    let errors = ["Errors ", "Type Errors "].iter().filter_map(|start| line.strip_prefix(start));
    let of_errors = errors.clone().any(|rest| has(rest, "error") || has(rest, "errors"));
    let is_error = line == NOT_LOADED || line.starts_with("Vitest caught ");
    (of_files || of_errors || is_error || has_missing_files(line))
        .then(|| line.split_whitespace().collect::<Vec<&str>>().join(" "))
}

/// Returns the number of tests that a line of totals counts in all, and the number whose outcome it states.
fn sizes(line: &str) -> (u64, u64) {
    if let Some(rest) = line.strip_prefix("ℹ ") {
        let (word, count) = rest.split_once(' ').unwrap_or_default();
        let count = whole(count).unwrap_or(0);
        return match word {
            "tests" => (count, 0),
            "suites" => (0, 0),
            _ => (0, count),
        };
    }
    let Some(rest) = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests ")) else { return (0, 0) };
    let (parts, all) = match rest.split_once('(') {
        Some((parts, all)) => (parts, whole(all.trim_end_matches(')'))),
        None => (rest, number_before(rest, "total")),
    };
    let numbers = |text: &str| sum_of(text.split([' ', ',', '|']).filter_map(whole));
    let all = all.unwrap_or(0);
    let own = if rest.contains('(') { 0 } else { all };
    (all, numbers(parts).saturating_sub(own))
}

/// Adds a line of the totals of `node --test`, such as `ℹ fail 1`.
fn add_count(line: &str, counts: &mut node_failures::Totals) {
    let (word, count) = line.strip_prefix("ℹ ").and_then(|rest| rest.split_once(' ')).unwrap_or_default();
    let count = whole(count).unwrap_or(0);
    let sum = match word {
        "suites" => &mut counts.suites,
        "fail" => &mut counts.failed,
        "cancelled" => &mut counts.cancelled,
        _ => return,
    };
    *sum = sum.saturating_add(count);
}

/// Parses the section in which `node --test` repeats the failures: the line `✖ name (1ms)`, then the indented details.
fn repeated<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, Details)> {
    let mut found: Vec<(String, Details)> = Vec::new();
    for line in lines {
        if let Some(name) = line.strip_prefix("✖ ") {
            found.push((without_time(without_reason(name.trim()).0).to_owned(), Details::default()));
        } else if let Some((_, details)) = found.last_mut() {
            details.line(line);
        }
    }
    found
}

/// Parses a line of the runner's totals.
fn total(line: &str, so_far: Option<Totals>) -> Option<Totals> {
    let sum = so_far.unwrap_or_default();
    let of = |passed: u64, failed: u64, skipped: u64| sum.plus(Totals { passed, failed, skipped });
    if let Some(rest) = line.strip_prefix("ℹ ") {
        let (word, count) = rest.split_once(' ')?;
        let count = whole(count)?;
        return match word {
            "pass" => Some(of(count, 0, 0)),
            // A cancelled test did not pass.
            "fail" | "cancelled" => Some(of(0, count, 0)),
            "skipped" | "todo" => Some(of(0, 0, count)),
            "tests" | "suites" => Some(sum),
            _ => None,
        };
    }
    // jest, and vitest.
    if let Some(rest) = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests ")) {
        let count = |word| number_before(rest, word).unwrap_or(0);
        let (passed, failed, skipped) = (count("passed"), count("failed"), sum_of([count("skipped"), count("todo")]));
        // A line may run several programs.
        return (passed > 0 || failed > 0 || skipped > 0).then_some(of(passed, failed, skipped));
    }
    // mocha: `3 passing (12ms)`.
    let (count, rest) = line.split_once(' ')?;
    let count = whole(count)?;
    match rest.split(' ').next()? {
        "passing" => Some(of(count, 0, 0)),
        "failing" => Some(of(0, count, 0)),
        "pending" => Some(of(0, 0, count)),
        _ => None,
    }
}

/// Returns the doubt about a line that looks like totals if one of its numbers cannot be read.
fn unreadable_total(line: &str) -> Option<String> {
    const OF_NODE: [&str; 7] = ["pass", "fail", "cancelled", "skipped", "todo", "tests", "suites"];
    const OF_OTHERS: [&str; 7] = ["passed", "failed", "skipped", "todo", "total", "error", "errors"];
    const STARTS: [&str; 7] =
        ["Tests:", "Tests ", "Test Suites:", "Test Files ", "Snapshots:", "Errors ", "Type Errors "];
    if let Some((word, count)) = line.strip_prefix("ℹ ").and_then(|rest| rest.split_once(' ')) {
        let is_total = OF_NODE.contains(&word) && !count.contains(' ');
        return (is_total && is_unreadable(count)).then(|| unreadable(line));
    }
    if let Some(rest) = STARTS.iter().find_map(|start| line.strip_prefix(start)) {
        let in_all = rest.rsplit_once('(').is_some_and(|(_, all)| is_unreadable(all.trim_end_matches(')')));
        let counted = if line.starts_with("Tests:") { not_counted } else { unreadable_before };
        return counted(line, &OF_OTHERS).or_else(|| in_all.then(|| unreadable(line)));
    }
    unreadable_before(line, &["passing", "failing", "pending"])
}

/// Returns the line of a test without the reason that `node --test` writes behind its time if the test is skipped or still
/// to be done: `adds (0.1ms) # why`. True if there was one: the outcome of such a test does not count.
fn without_reason(text: &str) -> (&str, bool) {
    match text.rsplit_once(" # ") {
        Some((test, _)) if test.ends_with(')') && without_time(test) != test => (test, true),
        _ => (text, false),
    }
}

/// Returns the line of a test of vitest without its end: `adds 6ms (retry x1) (repeat x2)`.
fn without_retries(text: &str) -> &str {
    let is_count = |text: &str| {
        let count = text.strip_prefix("retry x").or_else(|| text.strip_prefix("repeat x"));
        count.is_some_and(|count| whole(count).is_some())
    };
    match text.rsplit_once(" (") {
        Some((name, end)) if end.strip_suffix(')').is_some_and(is_count) => without_retries(name),
        _ => text,
    }
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

/// Returns the name in `name 12ms`, if it ends so.
fn without_plain_time(text: &str) -> Option<&str> {
    let (name, time) = text.rsplit_once(' ')?;
    let number = ["ms", "s", "m"].iter().find_map(|unit| time.strip_suffix(unit))?;
    number.parse::<f64>().is_ok_and(f64::is_finite).then(|| name.trim_end())
}

/// Returns true for the line of a file of vitest: `a.test.mjs (3 tests | 1 skipped) 40ms`.
fn is_file(text: &str) -> bool {
    let text = without_plain_time(text).unwrap_or(text);
    let inner = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")).map(|(_, inner)| inner);
    let mut words = inner.unwrap_or_default().split(' ');
    words.next().is_some_and(|count| whole(count).is_some())
        && words.next().is_some_and(|word| ["test", "tests"].contains(&word))
}
