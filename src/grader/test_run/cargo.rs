//! Parses the output of `cargo test` and `cargo nextest`.

use std::collections::BTreeMap;

use super::report::{Report, Status, Totals, is_unreadable, not_counted, number_before, sum_of, unreadable, whole};
use crate::reason_text::short;

/// The words of a result of libtest that a number precedes.
const COUNTED: [&str; 4] = ["passed", "failed", "ignored", "measured"];

/// The targets that a command line selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selected {
    /// Several targets, or it is unknown which ones.
    Any,
    /// One target of each selected package.
    OnePerPackage,
    /// One target.
    One,
}

/// Returns the reader of the output of a command line.
pub fn reader(line: &str) -> fn(&str) -> Report {
    match selected(line) {
        Selected::Any => |text: &str| read(text, Selected::Any),
        Selected::OnePerPackage => |text: &str| read(text, Selected::OnePerPackage),
        Selected::One => |text: &str| read(text, Selected::One),
    }
}

/// Returns the targets that a command line with one `cargo test` selects.
fn selected(line: &str) -> Selected {
    const ONE: [&str; 4] = ["--bin", "--test", "--example", "--bench"];
    const SEVERAL: [&str; 8] =
        ["--bins", "--tests", "--examples", "--benches", "--all-targets", "--doc", "--workspace", "--all"];
    // What follows `&&` does not run if a test failed.
    let last = line.rsplit("&&").next().unwrap_or_default();
    // A variable may hold anything.
    let is_alone = runs(line).count() == 1 && !line.contains(['$', '`']);
    let Some(options) = runs(last).next().filter(|_| is_alone) else { return Selected::Any };
    let (mut targets, mut packages) = (0, 0);
    for (at, option) in options.iter().enumerate() {
        let (name, value) = option.split_once('=').map_or((*option, None), |(name, value)| (name, Some(value)));
        let value = value.or_else(|| options.get(at + 1).copied());
        let is_one = value.is_some_and(|value| !value.starts_with('-') && !value.contains(['*', '?', '[']));
        match name {
            "--lib" => targets += 1,
            _ if ONE.contains(&name) && is_one => targets += 1,
            "-p" | "--package" if is_one => packages += 1,
            _ if ONE.contains(&name) || SEVERAL.contains(&name) || name.starts_with("-p") || name == "--package" => {
                return Selected::Any;
            }
            _ => {}
        }
    }
    match (targets, packages) {
        (1, 0) => Selected::OnePerPackage,
        (1, 1) => Selected::One,
        _ => Selected::Any,
    }
}

/// Returns the options of each `cargo test` in a command line.
fn runs(line: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_cargo = |word: &&str| word.rsplit('/').next() == Some("cargo");
    line.split(['|', ';', '&', '\n']).filter_map(move |command| {
        let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        words.find(is_cargo)?;
        let test = words.find(|word| !word.starts_with('+'))?;
        ["test", "t"].contains(&test).then(|| words.take_while(|word| *word != "--").collect())
    })
}

/// Parses the output; returns an empty report for the output of another runner.
fn read(text: &str, selected: Selected) -> Report {
    let mut report = Report::default();
    let (mut announced, mut ended) = (0_u64, 0_u64);
    let mut sum = Totals::default();
    let mut has_sum = false;
    // The number of targets with a result.
    let mut targets = 0_u64;
    // A line for a whole binary or run states a failure.
    let mut has_failed = false;
    // The line with which cargo stops after the first target with a failed test, unless a later one lists the failed targets.
    let mut stopped: Option<&str> = None;
    let (mut has_summary, mut has_nextest, mut has_libtest) = (false, false, false);
    // The tests and runs of nextest that began, and those that ended.
    let (mut started, mut finished) = (Runs::default(), Runs::default());
    let mut names_failures = false;
    // The doubt about the first totals that cannot be read.
    let mut unread: Option<String> = None;
    // The test whose result is on a later line, after its own output.
    let mut open: Option<String> = None;
    // The last outcome of each test of nextest that was tried several times.
    let mut tried: BTreeMap<String, Status> = BTreeMap::new();
    // nextest shows the output of a failed test, indented; libtest's own lines are not.
    let is_nextest = text.lines().any(|line| starting(line.trim()).is_some());
    for line in text.lines() {
        let trimmed = line.trim();
        let is_of_test =
            is_nextest && line.starts_with("    ") && nextest(try_of(trimmed).unwrap_or(trimmed)).is_none();
        if is_of_test && starting(trimmed).is_none() && !trimmed.starts_with("Summary [") {
            continue;
        }
        names_failures |= line == "failures:";
        let count =
            starting(trimmed).or_else(|| running(trimmed)).or_else(|| tests_run(trimmed.strip_prefix("Summary [")?));
        unread = unread.or_else(|| count.filter(|count| is_unreadable(count)).map(|_| unreadable(trimmed)));
        if let Some(rest) = trimmed.strip_prefix("test result: ") {
            let count = |word| number_before(rest, word).unwrap_or(0);
            let (passed, failed, ignored) = (count("passed"), count("failed"), count("ignored"));
            sum = sum.plus(Totals { passed, failed, skipped: ignored });
            ended = sum_of([ended, passed, failed, ignored, count("measured")]);
            unread = unread.or_else(|| not_counted(rest, &COUNTED));
            has_sum = true;
            targets += 1;
            has_failed |= rest.starts_with("FAILED");
        } else if is_failed_run(trimmed) {
            has_failed = true;
            let is_stop = trimmed.starts_with("error: test failed, to rerun pass ");
            stopped = if is_stop { stopped.or(Some(trimmed)) } else { None };
        } else if let Some(incomplete) = trimmed.strip_prefix("Summary [").and_then(summary) {
            has_summary = true;
            has_failed |= incomplete;
            finished.add(tests_run(trimmed).and_then(whole).unwrap_or(0));
        } else if let Some(count) = starting(trimmed).and_then(whole) {
            started.add(count);
        } else if let Some(count) = running(trimmed).and_then(whole) {
            announced = announced.saturating_add(count);
        } else if let Some((name, rest)) = single(trimmed) {
            match status(rest) {
                Some(status) => {
                    report.add_another(names(name), status);
                    has_libtest = true;
                }
                None => open = Some(name.to_owned()),
            }
        } else if let Some(status) = open.as_ref().and_then(|_| status(trimmed)) {
            if let Some(name) = open.take() {
                report.add_another(names(&name), status);
            }
        } else if let Some(name) = trimmed.strip_suffix(" --- FAILED") {
            // In quiet output, only failed tests have names.
            report.add_another(names(name), Status::Failed);
        } else if let Some((status, name)) = try_of(trimmed).and_then(nextest) {
            tried.insert(name.to_owned(), status);
            has_nextest = true;
        } else if let Some((status, name)) = nextest(trimmed) {
            tried.remove(name);
            let short = name.rsplit(' ').next().unwrap_or(name).to_owned();
            report.add(vec![name.to_owned(), short], status);
            has_nextest = true;
        }
    }
    for (name, status) in tried {
        let short = name.rsplit(' ').next().unwrap_or(&name).to_owned();
        report.add(vec![name, short], status);
    }
    if has_sum {
        report.totals = Some(sum);
    }
    report.doubts.extend(unread);
    if announced > ended && (announced > 0 || has_sum) {
        report.problems.push(format!("{} of {announced} tests began and did not end", announced - ended));
    }
    if (has_nextest && !has_summary) || (has_libtest && !has_sum) {
        report.problems.push("the output of cargo has no end: a summary of its tests is missing".to_owned());
    }
    if has_nextest && (started.tests > finished.tests || started.runs > finished.runs) {
        let (started, finished) = (started.tests, finished.tests);
        report.problems.push(format!("nextest started {started} tests, but its summaries count {finished}"));
    }
    if names_failures && !has_failed && !report.is_empty() && report.counts().failed == 0 {
        report.doubts.push("the output contains the line `failures:`, but no failed test".to_owned());
    }
    // The line names the package if several are selected, or one by its name.
    let has_all = |line: &str| match selected {
        Selected::Any => false,
        Selected::OnePerPackage => targets == 1 && !["`-p ", "'-p "].iter().any(|mark| line.contains(mark)),
        Selected::One => targets == 1,
    };
    if let Some(line) = stopped.filter(|line| report.counts().failed > 0 && !has_all(line)) {
        let line = short(line, 120);
        report.incomplete(format!("cargo may not have run all targets (`{line}`); add --no-fail-fast"));
    }
    if has_failed && !report.is_empty() {
        report.contradiction(|| "cargo reports a failure, but no failed test".to_owned());
    }
    if text.lines().any(|line| line.starts_with("error: could not compile") || line.starts_with("error[E")) {
        report.problems.push("it does not compile".to_owned());
    }
    report
}

/// Parses `test module::name ... ok`; the test's own output may precede the `ok`, or move it to a later line.
fn single(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("test ")?;
    rest.split_once(" ... ").or_else(|| Some((rest.strip_suffix(" ...")?, "")))
}

/// Returns true for a line of cargo or nextest that states that a test binary or the run failed.
fn is_failed_run(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("error: ") else { return false };
    let is_count = || {
        rest.split_once(" target")
            .is_some_and(|(count, rest)| whole(count).is_some() && rest.trim_start_matches('s').starts_with(" failed:"))
    };
    ["test failed", "doctest failed", "test run failed"].iter().any(|start| rest.starts_with(start)) || is_count()
}

/// Parses the end of nextest, `0.010s] 3 tests run: 2 passed, 1 failed`, after `Summary [`. Returns true if a test failed
/// or did not run: `2/3 tests run`.
fn summary(line: &str) -> Option<bool> {
    let (run, rest) = line.split_once(']')?.1.split_once(" run: ")?;
    let is_cut = run.split_whitespace().next()?.split_once('/').is_some_and(|(run, all)| run != all);
    Some(is_cut || [" failed", " timed out"].iter().any(|word| rest.contains(word)))
}

/// Parses the number of tests in `Summary [ 0.010s] 3 tests run: …`.
fn tests_run(line: &str) -> Option<&str> {
    line.split_once(']')?.1.split_whitespace().next()?.split('/').next()
}

/// Parses `Starting 3 tests across 2 binaries` of nextest.
fn starting(line: &str) -> Option<&str> {
    let (count, rest) = line.strip_prefix("Starting ")?.split_once(" test")?;
    rest.contains(" across ").then_some(count)
}

/// The runs of nextest, and their tests.
#[derive(Default)]
struct Runs {
    runs: u64,
    tests: u64,
}

impl Runs {
    fn add(&mut self, tests: u64) {
        self.runs += 1;
        self.tests = self.tests.saturating_add(tests);
    }
}

fn running(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("running ")?;
    let (count, word) = rest.split_once(' ')?;
    ["test", "tests"].contains(&word).then_some(count)
}

fn status(text: &str) -> Option<Status> {
    match text.split([' ', ',']).next()? {
        "ok" => Some(Status::Passed),
        "FAILED" => Some(Status::Failed),
        "ignored" => Some(Status::Skipped),
        "bench:" => Some(Status::Passed),
        _ => None,
    }
}

fn names(name: &str) -> Vec<String> {
    let short = name.strip_suffix(" - should panic").or_else(|| name.strip_suffix(" - compile fail"));
    short.into_iter().chain([name]).map(str::to_owned).collect()
}

/// Returns what follows the number of a try: `TRY 2 PASS [   0.004s] crate name`.
fn try_of(line: &str) -> Option<&str> {
    let (number, rest) = line.strip_prefix("TRY ")?.split_once(' ')?;
    whole(number).map(|_| rest)
}

/// Parses `PASS [   0.004s] (1/3) crate module::name`.
fn nextest(line: &str) -> Option<(Status, &str)> {
    let (word, rest) = line.split_once(" [")?;
    let status = match word.trim() {
        "PASS" | "LEAK" => Status::Passed,
        "FAIL" | "ABORT" | "SIGABRT" | "SIGSEGV" | "TIMEOUT" => Status::Failed,
        "SKIP" => Status::Skipped,
        _ => return None,
    };
    let (time, name) = rest.split_once(']')?;
    let is_time = time.trim().trim_start_matches('>').trim_end_matches('s').parse::<f64>().is_ok();
    let name = name.trim();
    let name = match name.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, name)) => name.trim(),
        None => name,
    };
    (is_time && !name.is_empty()).then_some((status, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_selects_one_target_is_known() {
        for (line, expected) in [
            ("cargo test --lib", Selected::OnePerPackage),
            (
                "cd a && RUST_BACKTRACE=1 cargo +nightly t -q --test=it name -- --bins 2>&1 | tee log",
                Selected::OnePerPackage,
            ),
            ("sh -c \"cargo test --bin b --features x\"", Selected::OnePerPackage),
            ("cargo test -p a --lib", Selected::One),
            ("cargo test --package=a --example e", Selected::One),
            ("cargo test", Selected::Any),
            ("cargo test -p a", Selected::Any),
            ("cargo test --lib --bins", Selected::Any),
            ("cargo test --lib --test it", Selected::Any),
            ("cargo test --test 'it*'", Selected::Any),
            ("cargo test --lib --workspace", Selected::Any),
            ("cargo test --lib -p a -p b", Selected::Any),
            ("cargo test --lib -p 'a*'", Selected::Any),
            ("cargo test --lib && cargo test --test it", Selected::Any),
            ("cargo test --lib && make more", Selected::Any),
            ("cargo test --lib $MORE", Selected::Any),
            ("cargo nextest run --lib", Selected::Any),
        ] {
            assert_eq!(selected(line), expected, "{line}");
        }
    }
}
