//! Parses JUnit XML in the variants of common runners.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use roxmltree::{Document, Node, NodeId};

use super::node_failures::{Details, Failures, Totals};
use super::pytest::{self, OutputFacts};
use super::report::{Report, Status, is_failed_hook, whole};
use crate::reason_text::short;
use crate::text::plural;

/// The name of pytest's suite.
const PYTEST: &str = "pytest";

/// The maximum depth of elements: the time that a report takes grows with it.
const MAX_ELEMENT_DEPTH: usize = 64;

/// A reporter whose reports differ from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reporter {
    /// jest-junit, which does not count tests that are still to be done.
    Jest,
    /// mocha-junit-reporter, which counts tests when their suite begins. A hook may add more.
    Mocha,
    /// vitest, which lists a file or a suite that failed like a test.
    Vitest,
    /// Catch2, which counts assertions.
    Catch2,
    /// Another reporter.
    Other,
}

impl Reporter {
    fn of(root: &Node<'_, '_>) -> Self {
        // Catch2 writes this text for the name of the machine.
        let is_catch2 =
            |node: Node<'_, '_>| node.has_tag_name("testsuite") && node.attribute("hostname") == Some("tbd");
        match root.attribute("name") {
            Some("jest tests") => Self::Jest,
            Some("Mocha Tests") => Self::Mocha,
            Some("vitest tests") => Self::Vitest,
            _ if has_form_of_jest(root) => Self::Jest,
            _ if root.descendants().any(is_catch2) => Self::Catch2,
            _ => Self::Other,
        }
    }
}

/// Returns true if the elements have the attributes that jest-junit writes. Its option `suiteName` replaces the name of the root.
fn has_form_of_jest(root: &Node<'_, '_>) -> bool {
    const ROOT: [&str; 5] = ["name", "tests", "failures", "errors", "time"];
    const SUITE: [&str; 7] = ["name", "errors", "failures", "skipped", "timestamp", "time", "tests"];
    const CASE: [&str; 3] = ["classname", "name", "time"];
    let has = |node: &Node<'_, '_>, keys: &[&str]| keys.iter().all(|key| node.has_attribute(*key));
    let has_only = |node: &Node<'_, '_>, keys: &[&str]| has(node, keys) && node.attributes().count() == keys.len();
    root.has_tag_name("testsuites")
        && has_only(root, &ROOT)
        && root.descendants().all(|node| match node.tag_name().name() {
            "testsuite" => has_only(&node, &SUITE),
            "testcase" => has(&node, &CASE),
            _ => true,
        })
}

/// Parses a report.
///
/// # Errors
/// Returns an error if the text is not XML, or contains no test suite.
pub fn read(text: &str) -> Result<Report, String> {
    read_beside(text, &OutputFacts::default())
}

/// Parses a report of a run. `output` has the facts in the run's output: pytest counts subtests that passed in the total
/// of its suite, and does not list them.
///
/// # Errors
/// Returns an error if the text is not XML, or contains no test suite.
pub fn read_beside(text: &str, output: &OutputFacts) -> Result<Report, String> {
    // Some runners write control characters of test names as references, which XML does not have.
    let readable: String;
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            readable = without_forbidden(text);
            Document::parse(&readable).map_err(|_| format!("it is not XML: {error}"))?
        }
    };
    let root = document.root_element();
    if !["testsuites", "testsuite", "testcase"].contains(&root.tag_name().name()) {
        return Err(format!("it begins with `{}`, not with `testsuites`", root.tag_name().name()));
    }
    if root.descendants().any(|node| node.ancestors().nth(MAX_ELEMENT_DEPTH).is_some()) {
        return Err(format!("its elements are nested more than {MAX_ELEMENT_DEPTH} deep"));
    }
    let mut report = Report::default();
    let mut is_pytest = false;
    let reporter = Reporter::of(&root);
    let todo = Todo::of(&root, reporter, &mut report);
    // The first reason why tests did not run.
    let mut missing: Option<String> = None;
    let suites = if reporter == Reporter::Vitest { unrun_suites(&root) } else { HashSet::new() };
    for case in root.descendants().filter(is_test) {
        let names = names(&case);
        let status = if todo.known.contains(&case.id()) { Status::Skipped } else { status_of(&case) };
        if missing.is_none() && status == Status::Failed && stands_for_others(&case, reporter, &suites) {
            let shown = names.iter().rfind(|name| !name.trim().is_empty()).map_or("a class", String::as_str);
            missing = Some(format!("`{}` failed, so other tests did not run", short(shown, 120)));
        }
        if case.attribute("name").is_none() && status != Status::Failed {
            report.problems.push("it lists a test without a name, which may have been cut off".to_owned());
        } else if todo.unclear.contains(&case.id()) {
            report.unclear.push(names);
        } else if is_of_pytest(&case) {
            is_pytest = true;
            report.add_try(names, status);
        } else {
            report.note_file(case.attribute("name").unwrap_or_default(), status);
            // Two tests may have the same name if a runner does not report their classes.
            report.add_another(names, status);
        }
    }
    // jest-junit and mocha-junit-reporter join the names of suites and tests by blanks.
    let is_with_blanks = matches!(reporter, Reporter::Jest | Reporter::Mocha);
    report.joins_by_blanks = is_with_blanks && root.has_tag_name("testsuites");
    let is_group = |node: &Node<'_, '_>| node.has_tag_name("testsuites") || node.has_tag_name("testsuite");
    report.doubts.extend(root.descendants().filter(is_group).filter_map(|suite| unreadable_total(&suite)));
    let skipped = skipped_below(&root);
    let problem = |suite: &Node<'_, '_>| contradiction(suite, reporter, output, &skipped);
    let suites = root.descendants().filter(is_group);
    report.problems.extend(suites.filter_map(|suite| beside_tests(&suite).or_else(|| problem(&suite))));
    // Whether another reporter than pytest's counts each test that it lists is unknown.
    let suites = root.descendants().filter(is_group).filter(|suite| name_of(suite) != PYTEST);
    report.doubts.extend(suites.filter_map(|suite| more_passes(&suite, reporter)));
    let suites = root.descendants().filter(is_group).filter(|_| output.tests.is_none());
    report.doubts.extend(suites.filter_map(|suite| may_be_subtests(&suite, &skipped)));
    let empty = EmptySuites::of(&root);
    report.empty_suites = empty.passed;
    let missing = missing.or_else(|| empty.missing.map(str::to_owned));
    report.problems.extend(missing.filter(|_| report.counts().failed > 0));
    if let Some(why) = output.abort.as_deref().filter(|_| is_pytest) {
        report.incomplete(pytest::aborted(why));
    }
    Ok(report)
}

/// Returns true for a failed test that is none: it is in place of the tests of a file, a class or a suite that could not be loaded or
/// set up. `suites` are those of vitest in which no test ran.
fn stands_for_others(case: &Node<'_, '_>, reporter: Reporter, suites: &HashSet<(&str, &str)>) -> bool {
    // JUnit 4 and 5, and Gradle; Surefire leaves the name empty.
    const NAMES: [&str; 4] = ["", "classMethod", "executionError", "initializationError"];
    // unittest
    const STARTS: [&str; 3] = ["setUpClass (", "setUpModule (", "unittest.loader."];
    let name = case.attribute("name").unwrap_or_default().trim();
    let class = case.attribute("classname").unwrap_or_default();
    let error = case.children().find(|child| child.has_tag_name("error"));
    let is_of_reporter = || match reporter {
        Reporter::Jest => error.is_some(),
        Reporter::Vitest => suites.contains(&(class, name)),
        Reporter::Other => is_class(case, name, class),
        Reporter::Mocha | Reporter::Catch2 => false,
    };
    NAMES.contains(&name)
        || STARTS.iter().any(|start| name.starts_with(start) || class.starts_with(start))
        || is_failed_hook(name)
        || error.is_some_and(|error| error.attribute("message") == Some("collection failure"))
        || is_of_reporter()
}

/// Returns true if a test has the name of its class, as a class of JUnit that could not be set up in reports of older versions of
/// Surefire. CTest writes the name of each test twice, with its status.
fn is_class(case: &Node<'_, '_>, name: &str, class: &str) -> bool {
    let is_of_java = class.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase));
    // A runner of another language may name a test and its group by a function, such as `Array.From`.
    let is_suite = case.parent().is_some_and(|suite| suite.attribute("name") == Some(class));
    name == class && is_of_java && is_suite && !case.has_attribute("status")
}

/// The suites without tests in a report of `node --test`, which lists them like tests. The comments at its end count suites, and
/// the outcomes of tests alone.
struct EmptySuites {
    /// The number of those that passed.
    passed: u64,
    /// The reason why tests may not have run, if a failed test may be one.
    missing: Option<&'static str>,
}

impl EmptySuites {
    fn of(root: &Node<'_, '_>) -> Self {
        let comments = || root.children().filter(|node| node.is_comment()).filter_map(|node| node.text());
        let count = |word: &str| {
            let counts = comments().filter_map(|text| whole(text.trim().strip_prefix(word)?));
            counts.reduce(u64::saturating_add)
        };
        let has_status = |case: &Node<'_, '_>, status: Status| is_test(case) && status_of(case) == status;
        let listed = |status: Status| root.descendants().filter(|case| has_status(case, status)).count() as u64;
        let suites = count("suites ").unwrap_or(0);
        let passed = count("pass ").filter(|_| suites > 0);
        let [failed, cancelled] = ["fail ", "cancelled "].map(|word| count(word).unwrap_or(0));
        Self {
            passed: passed.map_or(0, |passed| listed(Status::Passed).saturating_sub(passed)),
            missing: failures_of_node(root).missing(Totals { suites, failed, cancelled }),
        }
    }
}

/// Returns the failures of a report of `node --test`. Whether a test with subtests failed is not shown, so each may have.
fn failures_of_node(root: &Node<'_, '_>) -> Failures {
    let mut failures = Failures::default();
    let is_listed =
        |node: &Node<'_, '_>| node.has_tag_name("testsuite") || (is_test(node) && status_of(node) == Status::Failed);
    let listed: Vec<Node<'_, '_>> = root.descendants().filter(is_listed).collect();
    // The children of an element then come before it.
    for node in listed.into_iter().rev() {
        failures.add(node.ancestors().count(), node.attribute("name").unwrap_or_default(), !is_test(&node));
        if let Some(failure) = node.children().find(|child| child.has_tag_name("failure")) {
            let kind = failure.attribute("type").unwrap_or_default();
            failures.details(Details::of_junit(kind, failure.text().unwrap_or_default()));
        }
    }
    failures
}

/// Returns the names of the files and suites of vitest in which no test ran, each with its file: `math` of `math > adds`. The
/// failure of such a suite has the last part of its name.
fn unrun_suites<'a>(root: &Node<'a, '_>) -> HashSet<(&'a str, &'a str)> {
    // The files and suites, with their whole names, and whether a test of each ran.
    let mut suites: HashMap<(&str, &str), bool> = HashMap::new();
    for case in root.descendants().filter(is_test) {
        let (Some(file), Some(name)) = (case.attribute("classname"), case.attribute("name")) else { continue };
        let has_run = name != file && status_of(&case) != Status::Skipped;
        let whole = name.match_indices(" > ").take(MAX_ELEMENT_DEPTH).filter_map(|(at, _)| name.get(..at));
        for suite in whole.chain([file]) {
            *suites.entry((file, suite)).or_default() |= has_run;
        }
    }
    let unrun = suites.into_iter().filter(|(_, has_run)| !has_run).map(|(suite, _)| suite);
    unrun.map(|(file, suite)| (file, suite.rsplit(" > ").next().unwrap_or(suite))).collect()
}

/// Returns true for the element of a test. `prove --timer` also lists the time before and after the tests of a file, and does
/// not count it.
fn is_test(node: &Node<'_, '_>) -> bool {
    let is_time = || {
        let name = node.attribute("name").unwrap_or_default();
        let has_name = ["(init)", "(teardown)"].contains(&name) && !node.has_attribute("classname");
        has_name && status_of(node) == Status::Passed
    };
    node.has_tag_name("testcase") && !is_time()
}

/// Returns the outcome of a test.
fn status_of(case: &Node<'_, '_>) -> Status {
    let has = |name: &str| case.children().any(|child| child.has_tag_name(name));
    // Tests marked as still to be done may fail. pytest writes an error beside the mark if the clean-up after a skipped test
    // failed.
    let is_skip = |key: &str| case.attribute(key).is_some_and(is_skip);
    // The failure beside a skipped test of pytest is that of a subtest.
    if has("skipped") && (has("error") || (has("failure") && is_of_pytest(case))) {
        Status::Failed
    } else if has("skipped") || is_skip("status") || is_skip("result") {
        Status::Skipped
    } else if has("failure") || has("error") || case.attribute("status").is_some_and(is_failure) {
        Status::Failed
    } else {
        Status::Passed
    }
}

/// Returns true for a test in a suite of pytest.
fn is_of_pytest(case: &Node<'_, '_>) -> bool {
    case.ancestors().any(|suite| suite.attribute("name") == Some(PYTEST))
}

/// The tests of jest-junit that are still to be done (`test.todo`). The reporter lists them like tests that passed in no time,
/// and does not count them in `tests`.
#[derive(Default)]
struct Todo {
    /// The tests that are still to be done.
    known: HashSet<NodeId>,
    /// The tests of which only some are, but which ones is unknown.
    unclear: HashSet<NodeId>,
}

impl Todo {
    /// Finds the tests, and adds those of unclear outcome to the counts of the report, without names.
    fn of(root: &Node<'_, '_>, reporter: Reporter, report: &mut Report) -> Self {
        let mut todo = Self::default();
        if reporter != Reporter::Jest {
            return todo;
        }
        for suite in root.descendants().filter(|node| node.has_tag_name("testsuite")) {
            let Some(tests) = total(&suite, "tests") else { continue };
            // The error of a file is listed as a test, too.
            let is_error = |node: &Node<'_, '_>| node.children().any(|child| child.has_tag_name("error"));
            let cases = suite.children().filter(|node| node.has_tag_name("testcase") && !is_error(node));
            let more = cases.clone().count().saturating_sub(usize::try_from(tests).unwrap_or(usize::MAX));
            let zeros: Vec<NodeId> = cases.filter(may_be_todo).map(|case| case.id()).collect();
            if more >= zeros.len() {
                todo.known.extend(zeros);
            } else if more > 0 {
                for n in 0..zeros.len() {
                    report.add_another(Vec::new(), if n < more { Status::Skipped } else { Status::Passed });
                }
                todo.unclear.extend(zeros);
            }
        }
        todo
    }
}

/// Returns true for a test of jest-junit that may be one that is still to be done.
fn may_be_todo(case: &Node<'_, '_>) -> bool {
    status_of(case) == Status::Passed && case.attribute("time") == Some("0")
}

/// Returns the text of a report that is written as UTF-8, UTF-16 or ISO-8859-1. In another encoding, characters outside of
/// ASCII are replaced.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units = bytes.get(2..).unwrap_or_default().as_chunks().0.iter().map(|pair| of(*pair));
        let text = char::decode_utf16(units).map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER));
        Cow::Owned(text.collect())
    };
    match bytes {
        [0xff, 0xfe, ..] => return wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => return wide(u16::from_be_bytes),
        _ => {}
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let head = String::from_utf8_lossy(bytes.get(..100).unwrap_or(bytes)).to_lowercase();
    let head = head.split("?>").next().unwrap_or_default();
    match ["iso-8859-1", "latin-1", "latin1"].iter().any(|name| head.contains(name)) {
        true => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
        false => String::from_utf8_lossy(bytes),
    }
}

/// Returns the failure of a suite that belongs to none of its tests.
fn beside_tests(suite: &Node<'_, '_>) -> Option<String> {
    let found = suite.children().find(|child| child.has_tag_name("error") || child.has_tag_name("failure"))?;
    let message = found.attribute("message").or_else(|| found.text()).unwrap_or_default().trim();
    let detail = if message.is_empty() { String::new() } else { format!(": {}", short(message, 200)) };
    Some(format!("{} failed outside of its tests{detail}", name_of(suite)))
}

/// Returns a total of a suite, if it states one that can be read.
fn total(suite: &Node<'_, '_>, key: &str) -> Option<u64> {
    suite.attribute(key)?.trim().parse().ok()
}

/// Returns the number of tests, of which some may be listed several times: pytest-rerunfailures lists each try of a test, and
/// counts the test once.
fn distinct<'a, 'input: 'a>(cases: impl Iterator<Item = Node<'a, 'input>>) -> u64 {
    let key = |case: Node<'a, 'input>| ["classname", "file", "name"].map(|key| case.attribute(key));
    cases.map(key).collect::<HashSet<_>>().len() as u64
}

/// Returns the number of tests that passed and are counted in `tests` of a suite or of the whole report.
fn counted_passes(suite: &Node<'_, '_>, reporter: Reporter) -> u64 {
    let is_jest = reporter == Reporter::Jest;
    // Node does not count the tests of a nested suite, which has a total of its own.
    let is_counted = |case: &Node<'_, '_>| {
        let with_total = || case.ancestors().skip(1).find(|node| node.has_attribute("tests"));
        suite.has_tag_name("testsuites") || with_total().is_none_or(|node| node.id() == suite.id())
    };
    let cases = suite.descendants().filter(is_test).filter(is_counted);
    distinct(cases.filter(|case| status_of(case) == Status::Passed && !(is_jest && may_be_todo(case))))
}

/// Returns true if tests of a suite ran again after a failure. Surefire then counts only those that ran last.
fn has_reruns(suite: &Node<'_, '_>) -> bool {
    const RERUNS: [&str; 4] = ["flakyFailure", "flakyError", "rerunFailure", "rerunError"];
    suite.descendants().any(|node| RERUNS.iter().any(|name| node.has_tag_name(*name)))
}

fn name_of<'a>(suite: &'a Node<'_, '_>) -> &'a str {
    suite.attribute("name").filter(|name| !name.is_empty()).unwrap_or("a suite")
}

/// Returns the total of a suite that is no number, so it is unknown what it states.
fn unreadable_total(suite: &Node<'_, '_>) -> Option<String> {
    let total = |key: &&str| suite.attribute(*key).map(str::trim).filter(|text| !text.is_empty());
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let key =
        ["tests", "failures", "errors"].into_iter().find(|key| total(key).is_some_and(|text| !is_number(text)))?;
    Some(format!("{} has `{key}` that is no whole number: `{}`", name_of(suite), short(total(&key)?, 40)))
}

/// Returns the number of skipped tests that are shown in each element that has some.
fn skipped_below(root: &Node<'_, '_>) -> HashMap<NodeId, u64> {
    let mut found: HashMap<NodeId, u64> = HashMap::new();
    for skipped in root.descendants().filter(|node| node.has_tag_name("skipped")) {
        for node in skipped.ancestors() {
            *found.entry(node.id()).or_default() += 1;
        }
    }
    found
}

/// Returns how many skipped tests a suite counts, but does not show. Some reporters count them only for the whole report.
/// `skipped` are the shown ones.
fn hidden_skipped(suite: &Node<'_, '_>, skipped: &HashMap<NodeId, u64>) -> u64 {
    let hidden = |node: Node<'_, '_>| {
        let shown = skipped.get(&node.id()).copied().unwrap_or(0);
        total(&node, "skipped").unwrap_or(0).saturating_sub(shown)
    };
    suite.ancestors().map(hidden).max().unwrap_or(0)
}

/// Returns a message if more tests of a suite passed than it counts.
fn more_passes(suite: &Node<'_, '_>, reporter: Reporter) -> Option<String> {
    let counted = total(suite, "tests").filter(|_| !matches!(reporter, Reporter::Mocha | Reporter::Catch2))?;
    let passed = counted_passes(suite, reporter);
    let is_more = passed > counted && !has_reruns(suite);
    is_more.then(|| {
        let tests = plural(counted, "test");
        format!("{} has {tests} by its totals, but {passed} are reported as passed", name_of(suite))
    })
}

/// Returns a message if the totals of a suite exceed its reported tests or failures, or if more tests of pytest passed than it
/// counts.
fn contradiction(
    suite: &Node<'_, '_>,
    reporter: Reporter,
    output: &OutputFacts,
    skipped: &HashMap<NodeId, u64>,
) -> Option<String> {
    let total = |key: &str| total(suite, key).unwrap_or(0);
    let is_suite = |node: &Node<'_, '_>| node.has_tag_name("testsuite");
    let cases = suite.descendants().filter(is_test).count() as u64;
    // Node counts a nested suite as one test of the suite around it.
    let direct = suite.children().filter(|node| is_test(node) || is_suite(node)).count() as u64;
    // Some tests have a failure and an error, and a test marked as still to be done may have a failure.
    let is_failed = |node: &Node<'_, '_>| {
        node.has_tag_name("failure")
            || node.has_tag_name("error")
            || (is_test(node) && node.attribute("status").is_some_and(is_failure))
    };
    let shown_failures = suite.descendants().filter(is_failed).count() as u64;
    let (tests, failures) = (total("tests"), total("failures").saturating_add(total("errors")));
    let (name, passed) = (name_of(suite), counted_passes(suite, reporter));
    let is_pytest = name == PYTEST;
    let all = || distinct(suite.descendants().filter(is_test));
    if cases == 0 && failures > 0 {
        Some(format!("{name} failed before any of its tests"))
    } else if failures > shown_failures {
        Some(format!("{name} has {} by its totals, but {shown_failures} in its tests", plural(failures, "failure")))
    } else if let Some(more) = more_passes(suite, reporter).filter(|_| is_pytest) {
        Some(more)
    } else if is_pytest && output.tests == Some(0) && passed > 0 {
        Some(format!("pytest ran no test by its output, but {passed} are reported as passed"))
    } else if is_pytest && output.tests.is_none_or(|tests| tests == all()) {
        None
    } else if reporter != Reporter::Catch2 && tests.saturating_sub(cases.max(direct)) > hidden_skipped(suite, skipped) {
        Some(format!("{name} has {} by its totals, but {cases} are reported", plural(tests, "test")))
    } else {
        None
    }
}

/// Returns the doubt about a suite of pytest that counts more tests than it lists, if nothing else says how many there are.
fn may_be_subtests(suite: &Node<'_, '_>, skipped: &HashMap<NodeId, u64>) -> Option<String> {
    let tests = total(suite, "tests")?;
    let cases = distinct(suite.descendants().filter(|node| node.has_tag_name("testcase")));
    let is_more = name_of(suite) == PYTEST && tests.saturating_sub(cases) > hidden_skipped(suite, skipped);
    is_more.then(|| {
        format!(
            "pytest has {} by its totals, but {cases} are reported; the others may be subtests, if its output counts {cases} \
             (without -qq)",
            plural(tests, "test")
        )
    })
}

/// Returns true if a test's `status` attribute states a failure. Most runners write an element instead.
fn is_failure(status: &str) -> bool {
    ["fail", "failed", "failure", "error", "errored", "timeout", "aborted", "crashed", "broken"]
        .iter()
        .any(|word| status.eq_ignore_ascii_case(word))
}

/// Returns true if a test's `status` or `result` states that it did not run. GoogleTest and CTest write no element then.
fn is_skip(status: &str) -> bool {
    ["notrun", "disabled", "skipped", "suppressed", "ignored"].iter().any(|word| status.eq_ignore_ascii_case(word))
}

/// Returns a text in which characters that XML forbids, raw or as references, are replaced.
fn without_forbidden(text: &str) -> String {
    let is_allowed = |c: char| matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("&#") {
        let (before, reference) = rest.split_at(at);
        plain.push_str(before);
        let end = reference.bytes().take(13).position(|byte| byte == b';');
        let number = end.and_then(|end| reference.get(2..end));
        let code = number.and_then(|number| match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
            None => number.parse().ok(),
        });
        match (end, code) {
            (Some(end), Some(code)) if !char::from_u32(code).is_some_and(is_allowed) => {
                plain.push('\u{fffd}');
                rest = &reference[end + 1..];
            }
            _ => {
                plain.push_str("&#");
                rest = &reference[2..];
            }
        }
    }
    plain.push_str(rest);
    plain.replace(|c| !is_allowed(c), "\u{fffd}")
}

fn names(case: &Node<'_, '_>) -> Vec<String> {
    let name = case.attribute("name").unwrap_or_default();
    let suite = case.parent().and_then(|suite| suite.attribute("name"));
    let owners = [case.attribute("classname"), case.attribute("file"), suite];
    let owners = owners.into_iter().flatten().filter(|owner| !owner.is_empty());
    let full = owners.flat_map(|owner| [format!("{owner}.{name}"), format!("{owner}::{name}")]);
    // jest-junit writes a blank before the name of a test outside of suites.
    let trimmed = Some(name.trim()).filter(|trimmed| *trimmed != name && !trimmed.is_empty());
    full.chain([name.to_owned()]).chain(trimmed.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_forbids_do_not_hide_a_report() {
        let text = "<testsuite><testcase classname='a' name='nul &#x0; bell &#7; \u{1b}[0m &#233; &#60;'/></testsuite>";
        let report = read(text).unwrap();
        assert_eq!(report.tests()[0].names[0], "a.nul \u{fffd} bell \u{fffd} \u{fffd}[0m \u{e9} <");
        assert!(read("<testsuite><testcase &#x0;").is_err());
    }

    #[test]
    fn a_long_report_of_references_without_ends_is_refused_at_once() {
        let begun = std::time::Instant::now();
        assert!(read(&format!("<testsuites>{}", "&#".repeat(2 << 20))).is_err());
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }
}
