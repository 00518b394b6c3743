//! Parses the output of `go test`: plain, with `-v`, and with `-json`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::report::{Report, Status};
use crate::reason_text::short;

/// The line that a program of tests prints behind its last test if one failed.
const FAIL: &str = "FAIL";

/// The line that a program of tests prints behind its last test if none failed.
const PASS: &str = "PASS";

/// Parses the output; returns an empty report for the output of another runner.
pub fn read(text: &str) -> Report {
    read_with(text, false)
}

/// Parses the output of a command that has `-v`.
pub fn read_verbose(text: &str) -> Report {
    read_with(text, true)
}

fn read_with(text: &str, has_flag: bool) -> Report {
    let is_json = text.lines().any(|line| line.starts_with('{') && line.contains("\"Action\":"));
    // With -v each test has such a line.
    let is_verbose = || has_flag || text.lines().any(|line| line.starts_with("=== RUN "));
    if is_json { json(text) } else { plain(text, is_verbose()) }
}

/// Returns true if a command line runs `go test`, each time with `-v`.
pub fn is_verbose(line: &str) -> bool {
    const FLAGS: [&str; 5] = ["-v", "--v", "-v=true", "-test.v", "-test.v=true"];
    let is_go = |pair: &[&str]| pair[0].rsplit('/').next() == Some("go") && pair[1] == "test";
    let (mut runs, mut verbose) = (0, 0);
    for command in line.split(['|', ';', '&', '\n']) {
        let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
        if words.windows(2).any(is_go) {
            runs += 1;
            verbose += u32::from(words.iter().any(|word| FLAGS.contains(word)));
        }
    }
    runs > 0 && runs == verbose
}

/// Returns the mark of a package without tests, if the output contains one.
pub fn mark_of_no_test(text: &str) -> Option<&'static str> {
    ["[no tests to run]", "[no test files]"].into_iter().find(|mark| text.contains(mark))
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

/// Parses output without `-json`. With `-v` each test is named, else only those that failed.
fn plain(text: &str, is_verbose: bool) -> Report {
    let mut report = Report::default();
    // Tests whose package is named on a later line.
    let mut waiting: Vec<(String, Status)> = Vec::new();
    // Tests that began and have no result so far.
    let mut begun: Vec<String> = Vec::new();
    let mut panic = Panic::default();
    // A last line without a package says that one failed.
    let mut says_failed = false;
    // The package's program came to its end, or its tests are only listed.
    let (mut has_end, mut lists_tests) = (false, false);
    // The line before that of the package, if its program did not end as after a failed test.
    let mut died: Option<&str> = None;
    // The line with which a program says after its last test that one failed. A panic or an exit comes before it.
    let mut says_end = false;
    // The package names tests that began. If all of them ended, a text without its line end is one of the last test.
    let mut shows_begin = false;
    for line in text.lines() {
        panic.line(line);
        says_failed |= line == FAIL;
        says_end |= is_end(line, FAIL) || (shows_begin && begun.is_empty() && line.ends_with(FAIL));
        if let Some(name) = line.strip_prefix("=== RUN ") {
            begun.push(name.trim().to_owned());
            (says_end, shows_begin) = (false, true);
            continue;
        }
        if let Some((status, name)) = result(line) {
            says_end = false;
            if let Some(at) = begun.iter().position(|it| it == name) {
                begun.remove(at);
            }
            waiting.push((name.to_owned(), status));
            continue;
        }
        let mut words = line.split_whitespace();
        let (first, package) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // A line with only FAIL precedes the line with the package.
        let is_package = line.contains('\t') && !package.is_empty() && ["ok", "FAIL"].contains(&first);
        if !is_package {
            has_end |= is_end(line.trim_end(), PASS);
            lists_tests |= is_test_name(line);
            died = other_exit(line);
            continue;
        }
        let (died, says_end) = (died.take(), std::mem::take(&mut says_end));
        shows_begin = false;
        let (has_end, lists_tests) = (std::mem::take(&mut has_end), std::mem::take(&mut lists_tests));
        let tests = std::mem::take(&mut waiting);
        let has_failed = tests.iter().any(|(_, status)| *status == Status::Failed);
        if first == "FAIL" && !has_failed {
            report.problems.push(format!("the package {package} failed: {}", line.trim()));
        } else if first == "FAIL" && (died.is_some() || !says_end) {
            report.incomplete(ended_early(package, died));
            report.early_ends += 1;
        }
        let is_silent = tests.is_empty() && first == "ok" && !line.contains("[no test");
        report.names_only_failures |= !is_verbose && (is_silent || has_failed);
        if is_silent && !is_verbose {
            // The package counts as a test.
            report.add(vec![package.to_owned()], Status::Passed);
            if lists_tests {
                report.doubts.push(format!("the package {package} lists its tests, as with -list, which runs none"));
            }
        } else if is_silent && !has_end {
            report.note_package(package);
        }
        for (name, status) in tests {
            report.add(names(package, &name), status);
        }
    }
    if !waiting.is_empty() {
        report.problems.push("the output of go test has no end".to_owned());
    }
    for (name, status) in waiting {
        report.add(vec![name], status);
    }
    if let Some(name) = begun.first()
        && !report.is_empty()
    {
        // Other tests may have failed: this one is in no number of tests.
        report.incomplete(format!("the test {name} began and did not end"));
    }
    let is_good = !report.is_empty() && report.problems.is_empty() && report.counts().failed == 0;
    if is_good && says_failed {
        report.doubts.push("the output contains the line FAIL, but no failed test and no failed package".to_owned());
    }
    if is_good && panic.is_complete() {
        report.doubts.push(Panic::DOUBT.to_owned());
    }
    report
}

/// The parts of the report of a panic in an output.
#[derive(Default, Clone, Copy)]
struct Panic {
    has_message: bool,
    has_stack: bool,
}

impl Panic {
    /// The doubt about a report in which something panicked, but nothing failed.
    const DOUBT: &str =
        "the output contains a panic, but no failed test; another program, or a test itself, may have panicked";

    fn line(&mut self, line: &str) {
        self.has_message |= line.starts_with("panic: ") || line.starts_with("fatal error: ");
        self.has_stack |= self.has_message && line.starts_with("goroutine ") && line.trim_end().ends_with("]:");
    }

    fn is_complete(self) -> bool {
        self.has_message && self.has_stack
    }
}

/// Parses the line `exit status 2` or `signal: killed` of a program that a panic, a timeout or the code under test ended. After
/// failed tests, the exit status is 1, and 66 if the race detector found something.
fn other_exit(line: &str) -> Option<&str> {
    let line = line.trim();
    let is_other = line
        .strip_prefix("exit status ")
        .is_some_and(|code| !["1", "66"].contains(&code) && code.parse::<u8>().is_ok());
    (is_other || line.starts_with("signal: ")).then_some(line)
}

/// Returns true if a line is one that a program of tests prints behind its last test. A test may have printed text without its
/// line end before it. Indented lines are logs of tests, and `check: FAIL` is a line of the code under test.
fn is_end(line: &str, word: &str) -> bool {
    const BEFORE_A_WORD: [char; 4] = [' ', '\t', ':', '='];
    line.strip_suffix(word).is_some_and(|text| !text.starts_with([' ', '\t']) && !text.ends_with(BEFORE_A_WORD))
}

/// Returns true if tests of a package began, and all of them ended. A text without its line end is one of the last test then.
fn all_ended(begun: &BTreeSet<(String, String)>, with_tests: &BTreeSet<String>, package: &str) -> bool {
    with_tests.contains(package) && !begun.iter().any(|(of, test)| of == package && !test.is_empty())
}

/// Returns the problem of a package whose program ended before its last test.
fn ended_early(package: &str, how: Option<&str>) -> String {
    let how = how.map_or_else(|| format!("no line `{FAIL}` follows its tests"), |how| short(how, 40));
    format!("the program of the package {package} ended before its last test ({how})")
}

/// Parses `--- PASS: TestA (0.00s)`. If a test prints a line without its end, the result follows on the same line.
fn result(line: &str) -> Option<(Status, &str)> {
    line.match_indices("--- ").find_map(|(at, mark)| {
        let (word, rest) = line.get(at + mark.len()..)?.split_once(": ")?;
        let status = status(word)?;
        let is_alone = line.get(..at)?.trim().is_empty();
        match rest.rsplit_once(" (") {
            Some((name, time)) if is_alone || time.ends_with("s)") => Some((status, name.trim())),
            None if is_alone => Some((status, rest.trim())),
            _ => None,
        }
    })
}

/// Returns true for a line that is only the name of a test, as `-list` prints it.
fn is_test_name(line: &str) -> bool {
    let is_word = line.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_word && ["Test", "Example", "Fuzz"].iter().any(|start| line.starts_with(start))
}

fn json(text: &str) -> Report {
    let mut report = Report::default();
    let mut failed_packages = BTreeSet::new();
    let mut with_failed_tests = BTreeSet::new();
    // Packages, and their tests, that began and have no result so far.
    let mut begun: BTreeSet<(String, String)> = BTreeSet::new();
    let mut panics: BTreeMap<String, Panic> = BTreeMap::new();
    // The packages whose program did not end as after a failed test, by the line before that of the package.
    let mut died: BTreeMap<String, String> = BTreeMap::new();
    // The packages with the line that their tests failed, and those whose program said after its last test that one failed.
    let (mut with_line, mut says_end) = (BTreeSet::new(), BTreeSet::new());
    // The packages with a test that began.
    let mut with_tests = BTreeSet::new();
    // The packages that passed, and those with a test or the end of their program.
    let (mut passed, mut known) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let field = |key: &str| event.get(key).and_then(Value::as_str);
        let status = field("Action").and_then(status);
        if field("Action") == Some("build-fail") {
            let package = field("ImportPath").unwrap_or_default();
            report.problems.push(format!("the package {package} does not build"));
        }
        if let (Some("output"), Some(package), Some(output)) = (field("Action"), field("Package"), field("Output")) {
            panics.entry(package.to_owned()).or_default().line(output);
            if field("Test").is_some() {
                says_end.remove(package);
            } else if is_end(output.trim_end(), FAIL)
                || (all_ended(&begun, &with_tests, package) && output.trim_end().ends_with(FAIL))
            {
                says_end.insert(package.to_owned());
            } else if output.starts_with("FAIL\t") {
                with_line.insert(package.to_owned());
            }
            match other_exit(output).filter(|_| field("Test").is_none()) {
                Some(how) => _ = died.insert(package.to_owned(), how.to_owned()),
                None if output.starts_with("FAIL") => {}
                None => _ = died.remove(package),
            }
            if output.starts_with("ok") && output.contains('\t') && !output.contains("[no test") {
                passed.insert(package.to_owned());
            } else if is_end(output.trim_end(), PASS) {
                known.insert(package.to_owned());
            }
        }
        if let Some(package) = field("Package") {
            let of = |test: &str| (package.to_owned(), test.to_owned());
            match (status, field("Action"), field("Test")) {
                // The end of a benchmark is no event.
                (None, Some("run"), Some(test)) if test.starts_with("Benchmark") => begun.extend([of("")]),
                (None, Some("run"), Some(test)) => {
                    with_tests.insert(package.to_owned());
                    begun.extend([of(""), of(test)]);
                }
                (None, Some("start"), None) => begun.extend([of("")]),
                (None, Some("bench"), Some(test)) | (Some(_), _, Some(test)) => {
                    begun.remove(&of(test));
                    // A test does not end its package.
                    begun.insert(of(""));
                }
                (Some(_), _, None) => _ = begun.remove(&of("")),
                _ => {}
            }
        }
        let Some(status) = status else { continue };
        let package = field("Package").or_else(|| field("ImportPath")).unwrap_or_default();
        match field("Test") {
            Some(test) => {
                if status == Status::Failed {
                    with_failed_tests.insert(package.to_owned());
                }
                report.add(names(package, test), status);
                known.insert(package.to_owned());
            }
            None if status == Status::Failed => {
                failed_packages.insert(package.to_owned());
            }
            None => {}
        }
    }
    for package in failed_packages.difference(&with_failed_tests) {
        report.problems.push(format!("the package {package} failed outside of its tests"));
    }
    let has_no_end = |package: &String| with_line.contains(package) && !says_end.contains(package);
    if let Some(package) = with_failed_tests.iter().find(|it| died.contains_key(*it) || has_no_end(it)) {
        report.incomplete(ended_early(package, died.get(package).map(String::as_str)));
    }
    if report.counts().failed == 0 && failed_packages.is_empty() && panics.values().any(|panic| panic.is_complete()) {
        report.doubts.push(Panic::DOUBT.to_owned());
    }
    passed.difference(&known).for_each(|package| report.note_package(package));
    // The last of a package's entries: a test, if one did not end, else the package itself.
    if let Some((package, test)) = begun.last() {
        let test = if test.is_empty() { String::new() } else { format!("test {test} of the ") };
        report.incomplete(format!("the {test}package {package} began and did not end"));
    }
    report
}
