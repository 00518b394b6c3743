//! Tests of the parsers, on output of real runners.

use super::*;

macro_rules! runner {
    ($name:literal) => {
        include_str!(concat!("../../../tests/traces/graders/runners/", $name))
    };
}

fn ran(stdout: &str, code: i32) -> CommandOutcome {
    CommandOutcome { exit: Some(Exit { code: Some(code), signal: None }), stdout: stdout.into(), stderr: Vec::new() }
}

fn report(format: &str, stdout: &str) -> Report {
    let tests: Tests = serde_yaml::from_str(&format!("{{run: x, format: {format}}}")).unwrap();
    tests.read(&ran(stdout, 1)).unwrap()
}

fn counts(report: &Report) -> (u64, u64, u64) {
    let counts = report.counts();
    (counts.passed, counts.failed, counts.skipped)
}

#[test]
fn every_runner_is_known_by_its_output() {
    for (text, format, expected) in [
        (runner!("cargo.txt"), "cargo", (4, 1, 1)),
        (runner!("cargo-nocapture.txt"), "cargo", (4, 1, 1)),
        (runner!("cargo-q.txt"), "cargo", (3, 1, 1)),
        (runner!("nextest.txt"), "cargo", (2, 1, 0)),
        (runner!("pytest-v.txt"), "pytest", (4, 2, 2)),
        (runner!("pytest-q.txt"), "pytest", (4, 2, 2)),
        (runner!("pytest-ra.txt"), "pytest", (4, 2, 2)),
        (runner!("pytest-colour.txt"), "pytest", (4, 2, 2)),
        (runner!("pytest-broken.txt"), "pytest", (0, 1, 0)),
        (runner!("unittest-v.txt"), "unittest", (3, 2, 2)),
        (runner!("unittest.txt"), "unittest", (3, 2, 2)),
        (runner!("go-v.txt"), "go", (3, 2, 1)),
        (runner!("go.txt"), "go", (1, 2, 0)),
        (runner!("go.json"), "go", (2, 2, 1)),
        (runner!("node-spec.txt"), "node", (3, 2, 2)),
        (runner!("node.tap"), "tap", (3, 2, 2)),
        (runner!("mocha.txt"), "node", (1, 1, 1)),
        (runner!("jest.txt"), "node", (1, 1, 1)),
        (runner!("node.xml"), "junit", (3, 2, 2)),
        (runner!("pytest.xml"), "junit", (3, 2, 2)),
    ] {
        assert_eq!(counts(&report(format, text)), expected, "{format}: {text}");
        assert_eq!(report("auto", text), report(format, text), "{format}: {text}");
    }
    assert_eq!(counts(&report("auto", "ok 1 - a\nnot ok 2 - b # TODO later\n1..2\n")), (1, 0, 1));
    assert_eq!(counts(&report("auto", "ok 1 - a\nnot ok 2 - issue # TODOList\n1..2\n")), (1, 1, 0));
}

#[test]
fn a_skipped_test_whose_clean_up_failed_did_not_pass() {
    let of = |inner: &str| {
        format!(
            "<testsuite errors=\"1\" skipped=\"1\" tests=\"2\"><testcase name=\"a\"/><testcase name=\"b\">{inner}</testcase></testsuite>"
        )
    };
    let (passed, _, reason) = scored(grade("{run: x, format: junit}", &of("<skipped/><error message=\"m\"/>"), 0));
    assert!(!passed && reason.contains("1 of 2"), "{reason}");
    assert_eq!(counts(&report("junit", &of("<skipped/><failure/>"))), (1, 0, 1), "a test that is still to be done");
}

/// Output of `node --test` with a test that is still to be done, for a reason.
const TODO: &str = "✔ a (0.5ms)\n✖ c (0.24ms) # why\nℹ tests 2\nℹ suites 0\nℹ pass 1\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\n\
    ℹ todo 1\nℹ duration_ms 5\n";

/// Output of vitest 4.1 with retried and repeated tests.
const RETRIED: &str = " ✓ a.test.mjs > math > adds 6ms (retry x1)\n ✓ a.test.mjs > math > div 1ms (repeat x2)\n \
    ✓ a.test.mjs > math > both 1ms (retry x1) (repeat x2)\n\n Test Files  1 passed (1)\n      Tests  3 passed (3)\n";

#[test]
fn each_test_has_its_names() {
    use Status::{Failed, Passed, Skipped};
    for (text, name, expected) in [
        (runner!("cargo.txt"), "tests::panics", vec![Passed]),
        (RETRIED, "a.test.mjs > math > adds", vec![Passed]),
        (TODO, "c", vec![Skipped]),
        (RETRIED, "a.test.mjs > math > div", vec![Passed]),
        (RETRIED, "a.test.mjs > math > both", vec![Passed]),
        (runner!("cargo-nocapture.txt"), "tests::bad", vec![Failed]),
        (runner!("cargo-nocapture.txt"), "tests::panics - should panic", vec![Passed]),
        (runner!("cargo-nocapture.txt"), "tests::prints", vec![Passed]),
        (runner!("cargo-q.txt"), "tests::bad", vec![Failed]),
        (runner!("nextest.txt"), "tests::bad", vec![Failed]),
        (runner!("nextest.txt"), "c tests::good", vec![Passed]),
        (runner!("pytest-v.txt"), "test_p.py::test_par[a b]", vec![Passed]),
        (runner!("pytest-v.txt"), "test_p.py::TestK::test_in", vec![Passed]),
        // A test that fails in its teardown was reported as passed before.
        (runner!("pytest-v.txt"), "test_p.py::test_teardown", vec![Failed]),
        (runner!("pytest-q.txt"), "test_p.py::test_par[c-d]", vec![Failed]),
        (runner!("pytest-ra.txt"), "test_teardown", vec![Failed]),
        (runner!("pytest-colour.txt"), "test_p.py::test_sk", vec![Skipped]),
        (runner!("pytest.xml"), "test_p.py::TestK::test_in", vec![Passed]),
        (runner!("pytest.xml"), "test_p.py::test_par[c-d]", vec![Failed]),
        (runner!("unittest-v.txt"), "test_m.T.test_doc", vec![Passed]),
        (runner!("unittest-v.txt"), "test_err", vec![Failed]),
        (runner!("unittest-v.txt"), "test_m.T.test_print", vec![Passed]),
        (runner!("unittest-v.txt"), "test_m.T.test_skip", vec![Skipped]),
        (runner!("unittest-v.txt"), "test_skip (test_m.T.test_skip)", vec![Skipped]),
        (runner!("go-v.txt"), "TestTable/large", vec![Failed]),
        (runner!("go-v.txt"), "example.com/m/sub.TestSub", vec![Passed]),
        (runner!("go.json"), "example.com/m/add/TestAdd", vec![Passed]),
        (runner!("node-spec.txt"), "math > deep > divides (fast)", vec![Failed]),
        (runner!("node-spec.txt"), "multiplies", vec![Passed, Passed]),
        (runner!("node-spec.txt"), "fine > multiplies", vec![Passed]),
        // A test with subtests may be listed, too.
        (runner!("node-spec.txt"), "math", vec![Failed]),
        (runner!("node20-parent.tap"), "top", vec![Passed]),
        (runner!("node20-parent.tap"), "top > in", vec![Passed]),
        (runner!("vitest4-verbose.txt"), "v/a.test.mjs > s > a", vec![Passed]),
        (runner!("vitest4-verbose.txt"), "v/a.test.mjs > s > b", vec![Skipped]),
        (runner!("vitest4.txt"), "v/a.test.mjs", vec![]),
        // A test that only ends so may be another one.
        (runner!("vitest4-verbose.txt"), "s > a", vec![]),
        (runner!("cargo.txt"), "bad", vec![]),
        (runner!("go-v.txt"), "large", vec![]),
        (runner!("pytest9-subtests.txt"), "test_sf.py::test_sub", vec![Failed]),
        (runner!("node.tap"), "math > deep > divides (fast)", vec![Failed]),
        (runner!("node.tap"), "fine > multiplies", vec![Passed]),
        (runner!("node.tap"), "later", vec![Skipped]),
        (runner!("node.xml"), "deep::divides (fast)", vec![Failed]),
        (runner!("jest.txt"), "divides", vec![Failed]),
    ] {
        let report = report("auto", text);
        let found: Vec<Status> = report.named(name).iter().map(|test| test.status).collect();
        assert_eq!(found, expected, "{name}: {:?}", report.tests());
    }
}

#[test]
fn a_listed_test_that_the_runner_does_not_name_so_is_unknown() {
    let list = |names: &str| format!("{{run: x, pass-to-pass: [{names}]}}");
    let reason = |grade: Grade| match grade {
        Grade::Ungraded { reason } => reason,
        Grade::Scored(score) => panic!("{score:?}"),
    };
    // vitest names only slow tests, and jest no suites.
    let unnamed = reason(grade(&list("v/a.test.mjs > s > a"), runner!("vitest4.txt"), 0));
    assert!(unnamed.contains("passed without a name"), "{unnamed}");
    let flat = reason(grade(&list("math > adds"), runner!("jest.txt").replace("1 failed, ", "").as_str(), 0));
    assert!(flat.contains("names `adds` without its suites"), "{flat}");
    for (name, text) in [("s > a", runner!("vitest4-verbose.txt")), ("good", runner!("cargo.txt"))] {
        let longer = reason(grade(&list(name), text, 0));
        assert!(longer.contains("list the whole name"), "{longer}");
    }
    assert!(!scored(grade(&list("math > gone"), runner!("jest.txt"), 1)).0);
    // A part of another test failed, and it has a name.
    assert!(scored(grade(&list("test_sf.py::test_ok3"), runner!("pytest9-subtests.txt"), 1)).0);
}

#[test]
fn what_a_test_of_pytest_prints_is_no_failed_test() {
    let said = runner!("pytest9-printed.txt");
    match grade("run: x", said, 0) {
        Grade::Ungraded { reason } => assert!(reason.contains("names test_g.py::test_ok"), "{reason}"),
        Grade::Scored(score) => panic!("{score:?}"),
    }
    assert!(scored(grade("run: x", &said.replace("FAILED test_g.py::test_ok\n", ""), 0)).0);
    // In the summary such a line is a failed test.
    let failed = said
        .replace("PASSED test_g.py::test_sub", "FAILED test_g.py::test_sub")
        .replace("10 passed", "1 failed, 9 passed");
    assert!(!scored(grade("run: x", &failed, 1)).0);
}

fn grade(grader: &str, stdout: &str, code: i32) -> Grade {
    let tests: Tests = serde_yaml::from_str(grader).unwrap();
    let ran = ran(stdout, code);
    match tests.read(&ran) {
        Ok(report) => tests.judge_report("`it`", &report, &ran),
        Err(why) => Grade::fail(format!("`it` {why}")),
    }
}

fn scored(grade: Grade) -> (bool, f64, String) {
    match grade {
        Grade::Scored(score) => (score.passed, (score.value.get() * 1000.0).round() / 1000.0, score.reason),
        Grade::Ungraded { reason } => panic!("ungraded: {reason}"),
    }
}

#[test]
fn the_share_that_passed_is_the_value() {
    let (passed, value, reason) = scored(grade("run: x", runner!("cargo.txt"), 101));
    assert_eq!((passed, value), (false, 0.8));
    assert_eq!(reason, "1 of 5 tests failed, 1 skipped: `tests::bad`");
    assert!(scored(grade("{run: x, min: 0.8}", runner!("cargo.txt"), 101)).0);
    assert!(!scored(grade("{run: x, min: 0.81}", runner!("cargo.txt"), 101)).0);
    let good = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    assert_eq!(scored(grade("run: x", good, 0)), (true, 1.0, "all of 1 test passed".to_owned()));
    // If the runner failed, it is not enough that no test failed.
    let (passed, _, reason) = scored(grade("run: x", good, 101));
    assert!(!passed && reason.contains("exited with 101 though no test failed"), "{reason}");
    let cut = "running 3 tests\ntest a ... ok\ntest b ... ok\n";
    let (passed, _, reason) = scored(grade("run: x", cut, 0));
    assert!(!passed && reason.contains("3 of 3 tests began and did not end"), "{reason}");
}

#[test]
fn a_run_without_tests_fails() {
    for text in [
        "",
        "All tests passed!\n",
        "test result: ok. 0 passed; 0 failed; 0 ignored\n",
        "no tests ran in 0.01s\n",
        "1..0\n",
    ] {
        let (passed, value, reason) = scored(grade("run: x", text, 0));
        assert!(!passed && value == 0.0, "{text}: {reason}");
        assert!(reason.contains("ran no test") || reason.contains("no test that could be understood"), "{reason}");
    }
    let planned = "TAP version 13\n1..3\nok 1 - a\nok 2 - b\n";
    assert!(scored(grade("run: x", planned, 0)).2.contains("3 tests were planned, but 2 were reported"));
}

#[test]
fn lists_say_which_tests_count() {
    let both = "{run: x, fail-to-pass: ['test_p.py::test_par[a b]'], pass-to-pass: ['test_p.py::TestK::*', test_xf]}";
    let (passed, value, reason) = scored(grade(both, runner!("pytest-v.txt"), 1));
    assert_eq!((passed, value), (false, 0.667));
    assert_eq!(reason, "pass-to-pass: `test_xf` was skipped (2 of 3 checks held)");
    let (passed, _, reason) = scored(grade("{run: x, fail-to-pass: ['*par*']}", runner!("pytest-v.txt"), 1));
    assert_eq!(reason, "fail-to-pass: `test_p.py::test_par[c-d]` (of `*par*`) failed");
    assert!(!passed);
    // Failures of other tests do not matter.
    assert!(scored(grade("{run: x, fail-to-pass: [test_in]}", runner!("pytest-v.txt"), 1)).0);
    let (_, _, reason) = scored(grade("{run: x, fail-to-pass: [test_gone]}", runner!("cargo.txt"), 101));
    assert_eq!(reason, "fail-to-pass: `test_gone` was not run");
    // If no test failed, the runner has to say the same by its end.
    let good = "TAP version 13\n1..2\nok 1 - a\nok 2 - b\n";
    assert!(scored(grade("{run: x, fail-to-pass: [a]}", good, 0)).0);
    let (passed, _, reason) = scored(grade("{run: x, fail-to-pass: [a]}", good, 3));
    assert!(!passed && reason.contains("exited with 3 though no test failed"), "{reason}");
    let (passed, _, reason) = scored(grade("{run: x, fail-to-pass: [a]}", &good.replace("1..2", "1..3"), 0));
    assert!(!passed && reason.contains("3 tests were planned, but 2 were reported"), "{reason}");
    let cut = runner!("pytest-v.txt").split("test_p.py::test_par[c-d]").next().unwrap();
    let (passed, _, reason) = scored(grade("{run: x, format: pytest, fail-to-pass: [test_good]}", cut, 0));
    assert!(!passed && reason.contains("has no end"), "{reason}");
    // If a runner names only failed tests, it is unknown which tests passed.
    let quiet = grade("{run: x, fail-to-pass: [test_in]}", runner!("pytest-q.txt"), 1);
    assert!(
        matches!(&quiet, Grade::Ungraded { reason } if reason.contains("make the runner name each test")),
        "{quiet:?}"
    );
    let known =
        scored(grade("{run: x, fail-to-pass: [test_in, 'test_p.py::test_par[c-d]']}", runner!("pytest-q.txt"), 1));
    assert!(!known.0, "what is known to have failed decides");
}

#[test]
fn a_program_that_a_shell_did_not_find_is_named() {
    for (line, name) in [
        ("sh: 1: mocha: not found", Some("mocha")),
        ("/bin/sh: line 1: node_modules/.bin/vitest: not found", Some("node_modules/.bin/vitest")),
        ("bash: line 1: jest: command not found", Some("jest")),
        ("run.sh: 3: ava: not found", None),
        ("env: \u{2018}node\u{2019}: No such file or directory", Some("node")),
        ("/usr/bin/env: 'python': No such file or directory", Some("python")),
        ("Error: the page was not found", None),
        ("cat: a.txt: No such file or directory", None),
        ("sh: 1: the page: not found", None),
    ] {
        assert_eq!(not_found(line), name, "{line}");
        assert_eq!(missing_program(&ran(line, 127)).as_deref(), name, "{line}");
        assert_eq!(missing_program(&ran(line, 0)), None, "{line}");
    }
}

#[test]
fn what_is_not_what_it_should_be_is_told() {
    for (grader, text, why) in [
        ("{run: x, format: junit}", "all good", "printed no JUnit XML"),
        ("{run: x, format: junit}", "<testsuites><testcase>", "cannot be read: it is not XML"),
        ("{run: x, format: junit}", "<?xml version='1.0'?><html></html>", "begins with `html`"),
        ("{run: x, format: cargo}", "1..1\nok 1 - a\n", "showed no test"),
    ] {
        let (passed, _, reason) = scored(grade(grader, text, 0));
        assert!(!passed && reason.contains(why), "{grader}: {reason}");
    }
    for (grader, why) in [
        ("run: ''", "`run` is empty"),
        ("{run: x, timeout: 0}", "no runner can meet"),
        ("{run: x, fail-to-pass: ['']}", "empty name"),
        ("{run: x, min: 0}", "always passes"),
        ("{run: x, report: a.xml, format: go}", "`format` names another"),
    ] {
        let tests: Tests = serde_yaml::from_str(grader).unwrap();
        assert!(tests.refusal().unwrap().contains(why), "{grader}");
    }
}

/// Reports that contradict themselves, of runners that exit with 0.
const CONTRADICTIONS: [(&str, &str, &str); 54] = [
    ("junit", r#"<testsuite tests="5" errors="0" failures="0"><testcase name="a"/></testsuite>"#, "has 5 tests"),
    ("junit", r#"<testsuite tests="2" errors="0" failures="1"><testcase name="a"/></testsuite>"#, "has 1 failure"),
    ("junit", r#"<testsuite tests="1" errors="1"><testcase name="a"/></testsuite>"#, "has 1 failure"),
    (
        "junit",
        r#"<testsuites tests="1" errors="1"><testsuite><testcase name="a"/></testsuite></testsuites>"#,
        "failure",
    ),
    ("junit", r#"<testsuites tests="3"><testsuite tests="1"><testcase name="a"/></testsuite></testsuites>"#, "3 tests"),
    (
        "junit",
        r#"<testsuite><testcase name="a"/><testcase name="b" status="failed"/></testsuite>"#,
        "1 of 2 tests failed",
    ),
    (
        "junit",
        r#"<testsuite name="s" tests="1" errors="1"><error message="boom"/><testcase name="a"/></testsuite>"#,
        "s failed outside of its tests: boom",
    ),
    ("junit", r#"<testsuites><testsuite><failure>x</failure><testcase name="a"/></testsuite></testsuites>"#, "outside"),
    (
        "junit",
        r#"<testsuites><testsuite name="e" errors="1"/><testsuite><testcase name="a"/></testsuite></testsuites>"#,
        "e failed before any",
    ),
    // GoogleTest lists disabled tests without an element.
    (
        "junit",
        r#"<testsuite tests="1" disabled="1"><testcase name="DISABLED_a" status="notrun" result="suppressed"/></testsuite>"#,
        "ran no test, 1 skipped",
    ),
    ("junit", r#"<testsuite tests="4" skipped="1"><testcase name="a"/></testsuite>"#, "has 4 tests"),
    (
        "node",
        "FAIL ./c.test.js\n  ● Test suite failed to run\n\nTest Suites: 1 passed, 1 total\nTests:       1 passed, 1 total\n",
        "Test suite failed to run",
    ),
    (
        "node",
        "Vitest caught 1 unhandled error during the test run.\n Test Files  1 passed (1)\n      Tests  1 passed (1)\n",
        "unhandled error",
    ),
    (
        "cargo",
        "   Starting 3 tests across 1 binary\n PASS [ 0.004s] c a\n Summary [ 0.010s] 1 test run: 1 passed\n",
        "started 3 tests, but its summaries count 1",
    ),
    ("node", "Test Suites: 1 passed, 1 of 3 total\nTests:       1 passed, 1 total\n", "Test Suites: 1 passed, 1 of 3"),
    ("node", " Test Files  1 passed (3)\n      Tests  1 passed (1)\n", "Test Files 1 passed (3)"),
    ("node", "  ✓ a (1 ms)\nTest Suites: 1 failed, 1 passed, 2 total\nTests:       1 passed, 1 total\n", "1 failed"),
    ("node", "Snapshots:   1 failed, 1 total\nTests:       1 passed, 1 total\n", "1 failed"),
    ("node", "Tests:       1 passed, 3 total\n", "counted 3 tests"),
    ("node", "Tests:       1 failed, 1 total\nTests:       1 passed, 1 total\n", "1 of 2 tests failed"),
    ("node", " Test Files  1 failed | 1 passed (2)\n      Tests  1 passed (1)\n", "Test Files 1 failed"),
    ("node", " Test Files  1 passed (1)\n      Tests  1 passed (1)\n     Errors  1 error\n", "Errors 1 error"),
    ("node", "      Tests  1 passed (4)\n", "counted 4 tests"),
    ("node", "✔ a (0.8ms)\nℹ tests 3\nℹ pass 1\nℹ fail 0\n", "counted 3 tests"),
    ("node", "  1 passing (2ms)\n  1 failing\n", "1 of 2 tests failed"),
    (
        "go",
        "{\"Action\":\"run\",\"Package\":\"x\",\"Test\":\"TestA\"}\n\
         {\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n\
         {\"Action\":\"run\",\"Package\":\"x\",\"Test\":\"TestB\"}\n",
        "test TestB of the package x began and did not end",
    ),
    (
        "go",
        "{\"Action\":\"start\",\"Package\":\"x\"}\n{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n",
        "the package x began and did not end",
    ),
    ("go", "{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n", "the package x began and did not end"),
    (
        "go",
        "{\"ImportPath\":\"y\",\"Action\":\"build-output\",\"Output\":\"# y\\n\"}\n{\"ImportPath\":\"y\",\"Action\":\"build-fail\"}\n\
         {\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n{\"Action\":\"pass\",\"Package\":\"x\"}\n",
        "the package y does not build",
    ),
    (
        "go",
        "{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n{\"Action\":\"fail\",\"Package\":\"x\"}\n",
        "failed beside its tests",
    ),
    ("go", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\nok  \tx\t0.1s\n", "TestB began and did not end"),
    ("go", "--- PASS: TestA (0.00s)\nok  \tx\t0.1s\n--- PASS: TestB (0.00s)\n", "has no end"),
    ("tap", "ok 1 - a\n", "has no plan"),
    ("tap", "ok 1 - a\n1..1\nok 1 - b\n1..2\n", "3 tests were planned"),
    ("tap", "ok 1 - a\n1..1\n# tests 2\n# pass  1\n# fail  1\n", "1 failed by its totals"),
    ("tap", "# Subtest: s\n    ok 1 - a\n    1..3\nok 1 - s\n1..1\n", "3 subtests were planned, but 1 were reported"),
    ("tap", "# Subtest: s\n    ok 1 - a\n    Bail out! gone\nok 1 - s\n1..1\n", "bailed out"),
    ("tap", "1..2\nok 1 - a\nok 2 - b\nok 3 - c\n", "2 tests were planned, but 3"),
    ("pytest", "=== 1 failed in 0.01s ===\n=== 1 passed in 0.01s ===\n", "1 of 2 tests failed"),
    ("pytest", "== test session starts ==\n1 passed in 0.01s\n== test session starts ==\na.py .", "has no end"),
    (
        "pytest",
        "== test session starts ==\ncollected 1 item / 1 error\n\na.py .\n1 passed in 0.01s\n",
        "counted 1 error",
    ),
    (
        "pytest",
        "== test session starts ==\ncollected 2 items\n\na.py .\n!!! Interrupted: 1 error during collection !!!\n\
         === 1 passed in 0.01s ===\n",
        "Interrupted: 1 error during collection",
    ),
    (
        "pytest",
        "== test session starts ==\ncollected 2 items\n\na.py .\n== 1 passed in 0.01s ==\n!!! _pytest.outcomes.Exit: bye !!!\n",
        "Exit: bye",
    ),
    ("pytest", "== test session starts ==\na.py .\nINTERNALERROR> Traceback\n1 passed in 0.01s\n", "INTERNALERROR"),
    ("unittest", "Ran 1 test in 0.1s\n\nFAILED (errors=1)\nRan 2 tests in 0.1s\n\nOK\n", "1 of 3 tests failed"),
    ("unittest", "test_a (m.T.test_a) ... ok\n\nRan 2 tests in 0.1s\n", "has no end"),
    ("unittest", "Ran 1 test in 0.1s\n\nFAILED\n", "1 of 1 test failed"),
    (
        "unittest",
        "======================================================================\nERROR: setUpClass (m.T)\n----\n\
         Ran 2 tests in 0.1s\n\nOK\n",
        "1 of 3 tests failed",
    ),
    (
        "unittest",
        "======================================================================\n\
         ERROR: test_bad (unittest.loader._FailedTest.test_bad)\n----\nRan 2 tests in 0.1s\n\nOK\n",
        "1 of 3 tests failed",
    ),
    ("unittest", "Ran 3 tests in 0.1s\n\nOK\nRan 2 tests in 0.1s\n\nFAILED (failures=1)\n", "1 of 5 tests failed"),
    ("unittest", "Ran 0 tests in 0.1s\n\nOK\n", "ran no test"),
    ("cargo", "test result: FAILED. 2 passed; 0 failed; 0 ignored\n", "reports a failure"),
    ("cargo", "test a ... ok\n", "has no end"),
    ("cargo", "        PASS [   0.004s] (1/3) c tests::good\n", "has no end"),
];

#[test]
fn a_report_that_contradicts_itself_does_not_pass() {
    for (format, text, why) in CONTRADICTIONS {
        for keys in ["", ", min: 0.4"] {
            // A known share of failed tests may be enough.
            if why.contains(" failed") && why.contains(" of ") && !keys.is_empty() {
                continue;
            }
            for format in [format, "auto"] {
                let (passed, _, reason) = scored(grade(&format!("{{run: x, format: {format}{keys}}}"), text, 0));
                assert!(!passed && reason.contains(why), "{format} {text}: {reason}");
            }
        }
    }
    let binaries = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n\n\
         running 1 test\ntest b ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
    assert!(!scored(grade("run: x", binaries, 0)).0);
    // The block of totals that `node --test` writes behind its TAP.
    let block = |tests: u32, cancelled: u32| {
        format!(
            "TAP version 13\n# Subtest: a\nok 1 - a\n1..1\n# tests {tests}\n# suites 0\n# pass 1\n# fail 0\n\
             # cancelled {cancelled}\n# skipped 0\n# todo 0\n# duration_ms 5\n"
        )
    };
    for format in ["auto", "node", "tap"] {
        let grader = format!("{{run: x, format: {format}}}");
        for (tests, cancelled) in [(2, 1), (2, 0)] {
            assert!(!scored(grade(&grader, &block(tests, cancelled), 0)).0, "{format} {tests} {cancelled}");
        }
        assert!(scored(grade(&grader, &block(1, 0), 0)).0, "{format}");
        // The cancelled test is reported as one that failed.
        let told = block(2, 1).replace("1..1", "not ok 2 - b\n1..2");
        assert_eq!(scored(grade(&format!("{{run: x, format: {format}, min: 0.5}}"), &told, 1)).1, 0.5, "{format}");
    }
    let listed = "{run: x, fail-to-pass: [a]}";
    for text in ["ok 1 - a\n", "  ✓ a (1 ms)\nTest Suites: 1 failed, 2 total\nTests:       1 passed, 1 total\n"] {
        assert!(!scored(grade(listed, text, 0)).0, "{text}");
    }
}

/// Reports that neither state a failure nor show that all tests passed, of runners that exit with 0.
const DOUBTFUL: [(&str, &str, &str); 16] = [
    (
        "unittest",
        "test_a (m.T.test_a) ... ok\n\n----\nRan 3 tests in 0.1s\n\nOK\n",
        "unittest counted 3 tests, but shows 1",
    ),
    // A plugin removed tests, without reporting them as deselected.
    (
        "pytest",
        "== test session starts ==\ncollected 3 items\n\na.py .\n1 passed in 0.01s\n",
        "3 tests were collected, but 1 were reported",
    ),
    (
        "pytest",
        "== test session starts ==\ncollected 1 item\n\na.py == test session starts ==\ncollected 1 item\n\nb.py F\n\
         FAILED b.py::test_x - assert 0\n=== 1 failed in 0.04s ===\n.\n=== 1 passed in 0.05s ===\n",
        "within another one failed",
    ),
    (
        "pytest",
        "== test session starts ==\ncollected 1 item\n\na.py == test session starts ==\nINTERNALERROR> x\n\
         === no tests ran in 0.04s ===\n.\n=== 1 passed in 0.05s ===\n",
        "INTERNALERROR",
    ),
    (
        "node",
        " FAIL  c.test.js [ c.test.js ]\n Test Files  1 passed (1)\n      Tests  1 passed (1)\n",
        "`FAIL c.test.js",
    ),
    (
        "cargo",
        "running 2 tests\ntest a ... ok\n\nfailures:\n    b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored\n",
        "the line `failures:`",
    ),
    ("junit", r#"<testsuite name="s" tests="1" failures="one"><testcase name="a"/></testsuite>"#, "s has `failures`"),
    ("node", "  math\n    ✔ adds\n    1) divides\n\n  1 passing (12ms)\n", "`1) divides`"),
    ("tap", "ok 1 - a\nok 1 - b\n1..2\n", "the test number 1 twice"),
    // Only a file of Node has the number of another test, and its place is that of no other.
    ("tap", "ok 1 - a\nok 2 - b\n# Subtest: /w/c\nok 2 - /w/c\n1..3\n", "the test number 2 twice"),
    ("tap", "ok 1 - a\nok 2 - b\n# Subtest: c\nok 2 - /w/c.js\n1..3\n", "the test number 2 twice"),
    ("tap", "ok 1 - a\n# Subtest: /w/c.js\nok 1 - /w/c.js\nok 2 - b\n1..3\n", "the test number 2 twice"),
    ("tap", "ok 1 - a\n1..2\nok 2 - b\n", "2 tests were planned, but 1 were reported"),
    ("tap", "1..2\nok 1 - a\nok 3 - b\n", "the test number 3 after its plan of 2"),
    ("go", "=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \tx\t0.1s\nFAIL\n", "the line FAIL"),
    (
        "go",
        "{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n\
         {\"Action\":\"output\",\"Package\":\"x\",\"Output\":\"panic: boom\\n\"}\n\
         {\"Action\":\"output\",\"Package\":\"x\",\"Output\":\"goroutine 1 [running]:\\n\"}\n\
         {\"Action\":\"pass\",\"Package\":\"x\"}\n",
        "contains a panic",
    ),
];

#[test]
fn a_report_that_leaves_a_doubt_is_ungraded() {
    for (format, text, why) in DOUBTFUL {
        for keys in ["", ", min: 0.4"] {
            let grade = grade(&format!("{{run: x, format: {format}{keys}}}"), text, 0);
            assert!(matches!(&grade, Grade::Ungraded { reason } if reason.contains(why)), "{text}: {grade:?}");
        }
        // The exit code of the runner decides.
        assert!(!scored(grade(&format!("{{run: x, format: {format}}}"), text, 1)).0, "{text}");
    }
    let (_, text, why) = DOUBTFUL[0];
    let listed = grade("{run: x, fail-to-pass: [test_a]}", text, 0);
    assert!(matches!(&listed, Grade::Ungraded { reason } if reason.contains(why)), "{listed:?}");
    let cut = format!("{}\ntest result: ok. 2 passed; 0 failed; 0 ignored\n", "x".repeat(KEPT));
    let grade = grade("run: x", &cut, 0);
    assert!(matches!(&grade, Grade::Ungraded { reason } if reason.contains("only the last 16 MiB")), "{grade:?}");
}

/// Totals that no test prints by chance, and that are too large, negative, or no numbers. The code under test can print
/// them, so their sums must not begin at 0 again.
const UNREADABLE: [(&str, &str); 17] = [
    ("tap", "1..1\nok 1 - a\n# fail 99999999999999999999\n"),
    ("tap", "1..1\nok 1 - a\n# fail -1\n"),
    ("tap", "1..99999999999999999999\nok 1 - a\n"),
    ("node", "✔ a (1ms)\nℹ tests 1\nℹ pass 1\nℹ fail 99999999999999999999\n"),
    ("node", "✔ a (1ms)\nℹ fail 18446744073709551613\nℹ tests 1\nℹ pass 1\nℹ fail 3\n"),
    ("node", "✔ a (1ms)\nℹ pass 1\nℹ fail -1\n"),
    ("node", "  ✓ a (1 ms)\nTests:       99999999999999999999 failed, 1 passed, 1 total\n"),
    ("node", "  ✓ a (1 ms)\nTests:       x failed, 1 passed, 1 total\n"),
    ("node", "  ✓ a (1 ms)\nTest Suites: 99999999999999999999 failed, 1 total\nTests:       1 passed, 1 total\n"),
    ("node", "  ✔ a\n\n  18446744073709551615 failing\n  1 passing (1ms)\n  1 failing\n"),
    ("cargo", "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 99999999999999999999 failed; 0 ignored\n"),
    ("cargo", "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; x failed; 0 ignored\n"),
    (
        "cargo",
        "running 18446744073709551606 tests\nrunning 10 tests\ntest a ... ok\n\n\
         test result: ok. 1 passed; 0 failed; 0 ignored\n",
    ),
    ("pytest", "a.py::test_a PASSED\n=== 99999999999999999999 failed, 1 passed in 0.1s ===\n"),
    ("pytest", "a.py::test_a PASSED\n=== 18446744073709551615 failed, 1 errors, 1 passed in 0.1s ===\n"),
    ("unittest", "test_a (m.T.test_a) ... ok\n\nRan 99999999999999999999 tests in 0.1s\n\nOK\n"),
    ("unittest", "test_a (m.T.test_a) ... ok\n\nRan 1 test in 0.1s\n\nOK (skipped=x)\n"),
];

#[test]
fn totals_that_cannot_be_read_do_not_pass() {
    for (format, text) in UNREADABLE {
        for (format, keys) in [(format, ""), ("auto", ""), (format, ", min: 0.4"), (format, ", pass-to-pass: ['*a']")] {
            let grade = grade(&format!("{{run: x, format: {format}{keys}}}"), text, 0);
            let is_pass = matches!(&grade, Grade::Scored(score) if score.passed);
            assert!(!is_pass, "{format}{keys} {text}: {grade:?}");
        }
    }
    // Words after a mark are a comment of a test.
    for text in ["1..1\nok 1 - a\n# fail 2 times, then go on\n", "1..1\nok 1 - a\n# fail fast\n"] {
        assert!(scored(grade("{run: x, format: tap}", text, 0)).0, "{text}");
    }
}

#[test]
fn more_reports_than_are_read_are_unknown() {
    let workspace = tempfile::tempdir().unwrap();
    let globs: OneOrList<PathGlob> = serde_yaml::from_str("'out/*.xml'").unwrap();
    std::fs::create_dir(workspace.path().join("out")).unwrap();
    let report = |number: usize| {
        let text = "<testsuite><testcase name='a'/></testsuite>";
        std::fs::write(workspace.path().join(format!("out/{number}.xml")), text).unwrap();
    };
    (0..MOST).for_each(report);
    let before = reports(workspace.path(), &globs).unwrap();
    assert!(
        matches!(written(workspace.path(), &globs, &before, &ran("", 0)), Err(NoReport::Wrong(why)) if why.contains("existed"))
    );
    report(MOST);
    assert!(reports(workspace.path(), &globs).is_err_and(|why| why.contains("more than 1000 files")));
    assert!(matches!(written(workspace.path(), &globs, &before, &ran("", 0)), Err(NoReport::Unknown(_))));
}

#[test]
fn a_file_of_tests_in_which_no_test_ran_shows_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let silent = file("math.js", "const test = require('node:test');\nrequire('./calc.js');\n");
    let helper = file("helper.test.js", "module.exports = {};\n");
    let tap = |file: &str| {
        format!("TAP version 13\n# Subtest: {file}\nok 1 - {file}\n# Subtest: adds\nok 2 - adds\n1..2\n# fail 0\n")
    };
    let spec = |file: &str| format!("✔ {file} (30.1ms)\n✔ adds (1ms)\nℹ tests 2\nℹ pass 2\nℹ fail 0\n");
    let xml = |file: &str| format!("<testsuites><testcase name=\"{file}\"/><testcase name=\"adds\"/></testsuites>");
    let judged = |grader: &str, text: &str| {
        let tests: Tests = serde_yaml::from_str(grader).unwrap();
        let ran = ran(text, 0);
        tests.judge_report("x", &tests.read(&ran).unwrap().in_folder(folder.path()), &ran)
    };
    for (format, text) in [
        ("tap", tap as fn(&str) -> String),
        ("node", spec as _),
        ("node", tap as _),
        ("junit", xml as _),
        ("auto", tap as _),
    ] {
        let grader = format!("{{run: x, format: {format}}}");
        let grade = judged(&grader, &text(&silent));
        assert!(matches!(&grade, Grade::Ungraded { reason } if reason.contains("no test in")), "{format}: {grade:?}");
        assert!(!scored(judged("{run: x, fail-to-pass: [one]}", &text(&silent))).0, "{format}");
        assert!(scored(judged("{run: x, fail-to-pass: [adds]}", &text(&silent))).0, "{format}");
        // A helper beside tests has none, and a title may look like a path.
        assert!(scored(judged(&grader, &text(&helper))).0, "{format}");
        assert!(scored(judged(&grader, &text("src/a.test.js"))).0, "{format}");
    }
}

#[test]
fn tries_of_nextest_are_one_test() {
    let run = |tries: &str, end: &str| {
        format!(
            "    Starting 2 tests across 1 binary\n        PASS [   0.004s] (1/2) x a\n{tries}   Summary [   0.009s] 2 tests run: {end}\n"
        )
    };
    let passed = run(
        "  TRY 1 FAIL [   0.004s] (---) x b\n  TRY 2 PASS [   0.004s] (2/2) x b\n",
        "2 passed (1 flaky), 0 skipped",
    );
    assert_eq!(scored(grade("{run: x, pass-to-pass: [a, b]}", &passed, 0)).1, 1.0);
    assert!(scored(grade("run: x", &passed, 0)).2.contains("all of 2 tests passed"));
    // The output of a failed try is shown, indented.
    let shown = "  TRY 1 FAIL [   0.004s] x b\n  stdout ---\n\n    running 1 test\n    test b ... FAILED\n\n    test result: FAILED. 0 passed; 1 failed\n\n  TRY 2 PASS [   0.004s] (2/2) x b\n";
    assert!(scored(grade("{run: x, pass-to-pass: [a, b]}", &run(shown, "2 passed (1 flaky), 0 skipped"), 0)).0);
    assert!(
        scored(grade("run: x", &run(shown, "2 passed (1 flaky), 0 skipped"), 0)).2.contains("all of 2 tests passed")
    );
    let failed = run("  TRY 1 FAIL [   0.004s] x b\n  TRY 2 FAIL [   0.004s] x b\n", "1 passed, 1 failed, 0 skipped");
    assert!(!scored(grade("{run: x, pass-to-pass: [b]}", &failed, 100)).0);
}

#[test]
fn subtests_of_pytest_are_counted_in_its_report_and_not_listed() {
    let xml = |tests: u8, case: &str| {
        format!(
            "<testsuites><testsuite name=\"pytest\" tests=\"{tests}\"><testcase name=\"a\"/>{case}</testsuite></testsuites>"
        )
    };
    let read = |xml: &str, out: &str| junit::read_beside(xml, pytest::told(out)).unwrap();
    let end = "==== 2 passed, 5 subtests passed in 0.01s ====\n";
    assert!(read(&xml(7, "<testcase name=\"b\"/>"), end).problems.is_empty());
    // Newer versions do not count subtests that passed in their output.
    assert!(read(&xml(7, "<testcase name=\"b\"/>"), "==== 2 passed in 0.01s ====\n").problems.is_empty());
    assert!(!read(&xml(7, "<testcase name=\"b\"/>"), "==== 7 passed in 0.01s ====\n").problems.is_empty());
    let silent = read(&xml(7, "<testcase name=\"b\"/>"), "");
    assert!(silent.problems.is_empty() && silent.doubts[0].contains("may be subtests"), "{silent:?}");
    let both = read(&xml(2, "<testcase name=\"b\"><skipped/><failure/></testcase>"), end);
    assert_eq!(both.counts().failed, 1);
}

#[test]
fn a_share_of_an_incomplete_report_is_unknown() {
    let text = "1..5\nok 1 - a\nok 2 - b\nok 3 - c\nnot ok 4 - d\nBail out! gone\n";
    assert!(matches!(grade("{run: x, min: 0.5}", text, 1), Grade::Ungraded { .. }));
    assert!(!scored(grade("{run: x, min: 0.8}", text, 1)).0);
    assert_eq!(scored(grade("run: x", text, 1)).1, 0.75);
}

#[test]
fn a_failure_without_a_name_may_be_that_of_a_listed_test() {
    let (quiet, named) = ("Ran 2 tests in 0.1s\n\nFAILED (failures=1)\n", "{run: x, fail-to-pass: [test_a]}");
    let verbose = "test_a (m.T.test_a) ... ok\n\nRan 1 test in 0.1s\n\nOK\n";
    for text in [format!("{verbose}{quiet}"), format!("{quiet}{verbose}")] {
        let grade = grade(named, &text, 0);
        assert!(
            matches!(&grade, Grade::Ungraded { reason } if reason.contains("1 test failed without a name")),
            "{grade:?}"
        );
    }
    // Without -v, unittest names the failed tests in headlines, and mocha by numbers.
    let headline =
        "======================================================================\nFAIL: test_b (m.T.test_b)\n";
    assert!(scored(grade(named, &format!("{verbose}{headline}{quiet}"), 1)).0);
    let subtests = format!("{headline}{headline}{}", quiet.replace("failures=1", "failures=2"));
    assert!(scored(grade(named, &format!("{verbose}{subtests}"), 1)).0);
    let twice = "a.py::test_a PASSED\na.py::test_b FAILED\na.py::test_b ERROR\nFAILED a.py::test_b - x\n\
                 ERROR a.py::test_b - y\n=== 1 failed, 1 passed, 1 error in 0.1s ===\n";
    assert!(scored(grade(named, twice, 1)).0);
    let same = headline.replace("test_b", "test_a");
    assert!(!scored(grade(named, &format!("{verbose}{same}{quiet}"), 1)).0);
    assert!(scored(grade("{run: x, fail-to-pass: [adds]}", runner!("mocha.txt"), 1)).0);
    let (_, _, reason) = scored(grade("{run: x, fail-to-pass: [divides]}", runner!("mocha.txt"), 1));
    assert_eq!(reason, "fail-to-pass: `divides` failed");
}

#[test]
fn a_second_runner_in_the_same_output_counts() {
    let cargo = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    let with = |other: &str| scored(grade("run: x", &format!("{cargo}{other}"), 0));
    let (passed, _, reason) = with("=== 1 failed, 3 passed in 0.1s ===\n");
    assert!(!passed && reason.contains("also contains a report in the format pytest, with 1 failed"), "{reason}");
    assert!(!with("== test session starts ==\n").0);
    assert!(with("=== 3 passed in 0.1s ===\n").0);
    assert!(with("ok\n").0);
}

#[test]
fn consistent_reports_of_other_shapes_pass() {
    for (format, text) in [
        (
            "junit",
            r#"<testsuites tests="2" failures="0"><testsuite tests="2" skipped="1"><testcase name="a"/>
            <testcase name="b"><skipped/></testcase></testsuite></testsuites>"#,
        ),
        ("node", "Test Suites: 1 passed, 1 total\nTests:       1 skipped, 2 passed, 3 total\nSnapshots:   0 total\n"),
        ("node", " Test Files  2 passed (2)\n      Tests  1 passed | 1 todo (2)\n Type Errors  no errors\n"),
        ("go", "=== RUN   TestA\nno line end--- PASS: TestA (0.00s)\nPASS\nok  \tx\t0.1s\n"),
        (
            "pytest",
            "== test session starts ==\ncollected 3 items / 1 deselected / 2 selected\n\
            === 2 passed, 1 deselected in 0.1s ===\n",
        ),
        ("cargo", "   Starting 1 test across 1 binary\n PASS [ 0.004s] c a\n Summary [ 0.010s] 1 test run: 1 passed\n"),
        ("tap", "TAP version 13\nok 1 - a\n1..1\nok 1 - b\n1..1\n"),
        ("tap", "1..1\nok 1 - a\nok 1 - b\nok 2 - c\n1..2\n"),
        // Node 20, with two files without tests.
        (
            "tap",
            "TAP version 13\n# Subtest: a\nok 1 - a\n# Subtest: b\nok 2 - b\n# Subtest: /w/test/d.js\nok 2 - /w/test/d.js\n\
             # Subtest: /w/test/f \\# g.mjs\nok 3 - /w/test/f \\# g.mjs\n# Subtest: e\nok 5 - e\n1..5\n# pass 5\n# fail 0\n",
        ),
        ("tap", "TAP version 13\n1..2\nok 1 - a # time=2ms {\n    1..1\n    ok 1 - b\n}\nok 2 - c\n"),
        ("tap", "ok 1 - a\n  ---\n  diff: |-\n    1..4\n    not ok 7\n  ...\n1..1\n"),
        // mocha-junit-reporter without `includePending`.
        (
            "junit",
            r#"<testsuites tests="2" failures="0" skipped="1"><testsuite name="Root Suite" tests="0" failures="0"/>
            <testsuite name="math" tests="2" failures="0"><testcase name="math adds"/></testsuite></testsuites>"#,
        ),
        // A fixture has a line of its own, and a test two lines if it has a description.
        (
            "unittest",
            "setUpClass (m.S) ... skipped 'z'\ntest_b (m.T.test_b)\ndoc of b ... ok\ntest_p (m.T.test_p) ... hellook\n\
             f (m)\nDoctest: m.f ... ok\n\n----\nRan 3 tests in 0.1s\n\nOK (skipped=1)\n",
        ),
        ("node", "Test Suites: 1 skipped, 1 passed, 1 of 2 total\nTests:       1 skipped, 2 passed, 3 total\n"),
        (
            "pytest",
            "== test session starts ==\ncollected 1 item\n\na.py == test session starts ==\ncollected 1 item\n\nb.py .\n\
             === 1 passed in 0.04s ===\n.\n=== 1 passed in 0.05s ===\n",
        ),
        (
            "go",
            "{\"ImportPath\":\"x\",\"Action\":\"build-output\",\"Output\":\"warning\\n\"}\n{\"Action\":\"start\",\"Package\":\"x\"}\n\
             {\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n{\"Action\":\"pass\",\"Package\":\"x\"}\n",
        ),
    ] {
        let (passed, _, reason) = scored(grade(&format!("{{run: x, format: {format}}}"), text, 0));
        assert!(passed, "{format} {text}: {reason}");
    }
}
