//! Output of each runner: its tests, their outcomes and their names.

use super::*;

#[test]
fn every_runner_is_known_by_its_output() {
    for (text, format, expected) in [
        (runner!("cargo.txt"), "cargo", (4, 1, 1)),
        (runner!("cargo-nocapture.txt"), "cargo", (4, 1, 1)),
        (runner!("cargo-q.txt"), "cargo", (3, 1, 1)),
        (runner!("nextest.txt"), "cargo", (2, 1, 0)),
        (runner!("pytest-v.txt"), "pytest", (3, 2, 2)),
        (runner!("pytest-q.txt"), "pytest", (3, 2, 2)),
        (runner!("pytest-ra.txt"), "pytest", (3, 2, 2)),
        (runner!("pytest-colour.txt"), "pytest", (3, 2, 2)),
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
        (runner!("vitest4-broken.tap"), "tap", (2, 2, 1)),
        (runner!("vitest4-broken-flat.tap"), "tap", (2, 2, 1)),
        (runner!("vitest4-hook.tap"), "tap", (3, 2, 2)),
        (runner!("vitest4-hook-flat.tap"), "tap", (3, 1, 2)),
        (runner!("vitest4.xml"), "junit", (2, 1, 1)),
        (runner!("vitest4-hook.xml"), "junit", (3, 2, 2)),
        (runner!("node24-empty.txt"), "node", (2, 1, 0)),
        (runner!("node24-empty.tap"), "tap", (2, 1, 2)),
        (runner!("node24-empty.xml"), "junit", (2, 1, 2)),
        (runner!("go-panic.txt"), "go", (1, 2, 0)),
        (runner!("go-v-fatal.txt"), "go", (2, 1, 0)),
        (runner!("pytest9-reruns.txt"), "pytest", (9, 1, 0)),
        (runner!("pytest9-reruns-skipped.txt"), "pytest", (9, 1, 1)),
        (runner!("pytest9-reruns-teardown.txt"), "pytest", (2, 1, 0)),
    ] {
        assert_eq!(counts(&report(format, text)), expected, "{format}: {text}");
        assert_eq!(report("auto", text), report(format, text), "{format}: {text}");
    }
    assert_eq!(counts(&report("auto", "ok 1 - a\nnot ok 2 - b # TODO later\n1..2\n")), (1, 0, 1));
    assert_eq!(counts(&report("auto", "ok 1 - a\nnot ok 2 - issue # TODOList\n1..2\n")), (1, 1, 0));
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
        (runner!("vitest4-hook.tap"), "a.test.js > math > subtracts {", vec![Passed]),
        (runner!("vitest4-hook.tap"), "c.test.js > outer > inner > c", vec![Skipped]),
        (runner!("vitest4-hook.tap"), "c.test.js > outer", vec![Failed]),
        (runner!("vitest4-hook-flat.tap"), "a.test.js > math", vec![Failed]),
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
fn what_a_test_of_pytest_prints_is_no_failed_test() {
    let output = runner!("pytest9-printed.txt");
    match grade("run: x", output, 0) {
        Grade::Ungraded { reason } => assert!(reason.contains("names test_g.py::test_ok"), "{reason}"),
        Grade::Scored(score) => panic!("{score:?}"),
    }
    assert!(scored(grade("run: x", &output.replace("FAILED test_g.py::test_ok\n", ""), 0)).0);
    // In the summary such a line is a failed test.
    let failed = output
        .replace("PASSED test_g.py::test_sub", "FAILED test_g.py::test_sub")
        .replace("10 passed", "1 failed, 9 passed");
    assert!(!scored(grade("run: x", &failed, 1)).0);
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
    let read = |xml: &str, out: &str| junit::read_beside(xml, &pytest::output_facts(out)).unwrap();
    let end = "==== 2 passed, 5 subtests passed in 0.01s ====\n";
    assert!(read(&xml(7, "<testcase name=\"b\"/>"), end).problems.is_empty());
    // Newer versions do not count subtests that passed in their output.
    assert!(read(&xml(7, "<testcase name=\"b\"/>"), "==== 2 passed in 0.01s ====\n").problems.is_empty());
    assert!(!read(&xml(7, "<testcase name=\"b\"/>"), "==== 7 passed in 0.01s ====\n").problems.is_empty());
    let silent = read(&xml(7, "<testcase name=\"b\"/>"), "");
    assert!(silent.problems.is_empty() && silent.doubts[0].contains("may be subtests"), "{silent:?}");
    let both = read(&xml(2, "<testcase name=\"b\"><skipped/><failure/></testcase>"), end);
    assert_eq!(both.counts().failed, 1);
    // The tries of pytest-rerunfailures are one test.
    let tried = read(&xml(7, "<testcase name=\"b\"/><testcase name=\"b\"/>"), end);
    assert!(tried.problems.is_empty(), "{tried:?}");
}

#[test]
fn the_tries_of_pytest_in_a_report_are_one_test() {
    for (last, expected) in [("", (2, 0, 0)), ("<failure/>", (1, 1, 0)), ("<skipped/>", (1, 0, 1))] {
        let xml = format!(
            "<testsuites><testsuite name=\"pytest\" tests=\"2\"><testcase classname=\"t\" name=\"a\"/>\
             <testcase classname=\"t\" name=\"a\">{last}</testcase><testcase classname=\"t\" name=\"b\"/>\
             </testsuite></testsuites>"
        );
        let report = report("junit", &xml);
        assert_eq!(counts(&report), expected, "{last}");
        assert!(report.problems.is_empty(), "{last}: {report:?}");
    }
}

#[test]
fn the_output_of_pytest_beside_its_report_counts() {
    let read = |out: &str| {
        let xml = "<testsuite name=\"pytest\"><testcase classname=\"t\" name=\"a\"/></testsuite>";
        junit::read_beside(xml, &pytest::output_facts(out)).unwrap().problems
    };
    let good = "== test session starts ==\ncollected 1 item\n\na.py .\n== 1 passed in 0.01s ==\n";
    assert!(read(good).is_empty());
    let ended = read(&format!("{good}!!! _pytest.outcomes.Exit: bye !!!\n"));
    assert!(ended[0].contains("not able to run all tests: _pytest.outcomes.Exit: bye"), "{ended:?}");
    let planned = read("== no tests ran in 0.05s ==\n");
    assert!(planned[0].contains("ran no test by its output"), "{planned:?}");
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
        (
            "pytest",
            "== test session starts ==\ncollected 2 items / 1 skipped\n\na.py ..\n\
             === 2 passed, 1 skipped in 0.1s ===\n",
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
        // jest-junit does not count tests that are still to be done.
        (
            "junit",
            r#"<testsuites name="jest tests" tests="1"><testsuite name="undefined" tests="1">
            <testcase name=" later" time="0"/><testcase name=" ok" time="0.006"/></testsuite></testsuites>"#,
        ),
        // Surefire counts the tests of the last try, and Node a nested suite as one test.
        (
            "junit",
            r#"<testsuite name="S" tests="1"><testcase classname="S" name="a"/>
            <testcase classname="S" name="b"><flakyFailure/></testcase></testsuite>"#,
        ),
        (
            "junit",
            r#"<testsuites><testsuite name="a" tests="1"><testsuite name="b" tests="2">
            <testcase name="1"/><testcase name="2"/></testsuite></testsuite></testsuites>"#,
        ),
        // ava counts a test that failed and is still to be done.
        ("tap", "TAP version 13\nnot ok 1 - b # TODO\nok 2 - a\n1..2\n# tests 1\n# pass 1\n# fail 1\n"),
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
        // A benchmark begins with an event, and ends without one.
        (
            "go",
            "{\"Action\":\"pass\",\"Package\":\"x\",\"Test\":\"TestA\"}\n\
             {\"Action\":\"run\",\"Package\":\"x\",\"Test\":\"BenchmarkA\"}\n{\"Action\":\"pass\",\"Package\":\"x\"}\n",
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
        assert_eq!(missing_program(&outcome(line, 127)).as_deref(), name, "{line}");
        assert_eq!(missing_program(&outcome(line, 0)), None, "{line}");
    }
}
