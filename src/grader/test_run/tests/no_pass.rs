//! Output that must not pass: no test, a contradiction, a doubt, or an unreadable total.

use super::*;

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
fn a_runner_whose_last_line_resembles_that_of_unittest_is_not_read_as_unittest() {
    let bun = "a.test.js:\n(pass) m > a [0.04ms]\n(pass) m > b [0.04ms]\n\n 2 pass\n 0 fail\n 2 expect() calls\n\
               Ran 2 tests across 1 file. [43.00ms]\n";
    for text in [bun.to_owned(), bun.replace("(pass) m > b", "(fail) m > b")] {
        let (passed, _, reason) = scored(grade("run: x", &text, 0));
        assert!(!passed && reason.contains("showed no test that could be understood"), "{reason}");
    }
    assert!(scored(grade("run: x", "Ran 1 test in 0.001s\n\nOK\n", 0)).0);
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
        let outcome = outcome(text, 0);
        tests.grade_report("x", &tests.read(&outcome).unwrap().in_folder(folder.path()), &outcome)
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

/// Reports that contradict themselves, of runners that exit with 0.
const CONTRADICTIONS: [(&str, &str, &str); 58] = [
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
    // `pytest --setup-plan` lists tests that did not run.
    (
        "junit",
        r#"<testsuites><testsuite name="pytest" tests="0"><testcase classname="t" name="a"/></testsuite></testsuites>"#,
        "pytest has 0 tests by its totals, but 1 are reported as passed",
    ),
    // The test that called `pytest.exit`.
    (
        "junit",
        r#"<testsuite name="pytest" tests="1"><testcase classname="t" name="a"/><testcase time="0.000"/></testsuite>"#,
        "a test without a name",
    ),
    (
        "junit",
        r#"<testsuites name="jest tests" tests="0"><testsuite name="undefined" tests="0">
        <testcase classname=" later" name=" later" time="0"/></testsuite></testsuites>"#,
        "ran no test, 1 skipped",
    ),
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
        "failed outside of its tests",
    ),
    ("go", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\nok  \tx\t0.1s\n", "TestB began and did not end"),
    ("go", "--- PASS: TestA (0.00s)\nok  \tx\t0.1s\n--- PASS: TestB (0.00s)\n", "has no end"),
    ("tap", "ok 1 - a\n", "has no plan"),
    ("tap", "ok 1 - a\n1..1\nok 1 - b\n1..2\n", "3 tests were planned"),
    ("tap", "ok 1 - a\n1..1\n# tests 2\n# pass  1\n# fail  1\n", "1 failed by its totals"),
    ("tap", "not ok 1 - b # TODO\nok 2 - a\n1..2\n# pass 1\n# fail 2\n", "2 failed by its totals"),
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
        let output = block(2, 1).replace("1..1", "not ok 2 - b\n1..2");
        assert_eq!(scored(grade(&format!("{{run: x, format: {format}, min: 0.5}}"), &output, 1)).1, 0.5, "{format}");
    }
    let listed = "{run: x, fail-to-pass: [a]}";
    for text in ["ok 1 - a\n", "  ✓ a (1 ms)\nTest Suites: 1 failed, 2 total\nTests:       1 passed, 1 total\n"] {
        assert!(!scored(grade(listed, text, 0)).0, "{text}");
    }
}

/// Reports that neither state a failure nor show that all tests passed, of runners that exit with 0.
const DOUBTFUL: [(&str, &str, &str); 17] = [
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
    (
        "junit",
        r#"<testsuites tests="1"><testsuite><testcase name="a"/><testcase name="b"/></testsuite></testsuites>"#,
        "has 1 test by its totals, but 2 are reported as passed",
    ),
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

#[test]
fn an_output_whose_beginning_was_not_kept_fails_only_by_a_failure() {
    let line = format!("# a line of a log {}\n", "x".repeat(8 << 10));
    let filler = line.repeat(KEPT / line.len() + 1);
    let judged = |end: &str, code: i32| {
        let tests: Tests = serde_yaml::from_str("{run: x, format: tap}").unwrap();
        let nowhere = Path::new("/nowhere");
        tests.grade_run("`it`", nowhere, nowhere, None, None, &outcome(&format!("{filler}{end}"), code)).0
    };
    // The plan, or all tests, are in the part that was not kept.
    for end in ["ok 1 - a\nok 2 - b\n", "", "1..0\n"] {
        let grade = judged(end, 0);
        assert!(matches!(&grade, Grade::Ungraded { reason } if reason.contains("only the last 16 MiB")), "{grade:?}");
        assert!(!scored(judged(end, 1)).0, "{end}");
    }
    assert!(!scored(judged("not ok 1 - a\n", 0)).0);
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
fn a_package_of_go_that_names_no_test_ran_none() {
    let ended = "ok  \tm/a\t0.002s\n";
    // The code under test printed the last word of a line, and ended the process.
    let checked = format!("self check: PASS\n{ended}");
    let other = "=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \tm/b\t0.003s\n";
    let none = "testing: warning: no tests to run\nPASS\nok  \tm/c\t0.003s [no tests to run]\n";
    let lines = "{\"Action\":\"output\",\"Package\":\"m/a\",\"Output\":\"ok  \\tm/a\\t0.002s\\n\"}\n\
                 {\"Action\":\"pass\",\"Package\":\"m/a\"}\n";
    let more = "{\"Action\":\"pass\",\"Package\":\"m/b\",\"Test\":\"TestB\"}\n\
                {\"Action\":\"output\",\"Package\":\"m/b\",\"Output\":\"PASS\\n\"}\n\
                {\"Action\":\"output\",\"Package\":\"m/b\",\"Output\":\"ok  \\tm/b\\t0.003s\\n\"}\n\
                {\"Action\":\"pass\",\"Package\":\"m/b\"}\n";
    for format in ["go", "auto"] {
        let grader = |run: &str, keys: &str| format!("{{run: {run}, format: {format}{keys}}}");
        for (run, text) in [("go test -v ./...", ended), ("go test -json ./...", lines)] {
            let (passed, _, reason) = scored(grade(&grader(run, ""), text, 0));
            assert!(!passed && reason.contains("ran no test"), "{format} {run}: {reason}");
        }
        // A line of another package shows that tests are named.
        let packages = [("make test", other, ended), ("make test", other, checked.as_str())];
        for (run, alone, with) in packages.into_iter().chain([("go test -json ./...", more, lines)]) {
            let both = format!("{with}{alone}");
            let grade_of_both = grade(&grader(run, ""), &both, 0);
            assert!(
                matches!(&grade_of_both, Grade::Ungraded { reason } if reason.contains("no test in the package `m/a`")),
                "{format} {run}: {grade_of_both:?}"
            );
            assert!(scored(grade(&grader(run, ", fail-to-pass: [TestB]"), &both, 0)).0, "{format} {run}");
            assert!(scored(grade(&grader(run, ""), alone, 0)).0, "{format} {run}");
        }
        assert!(scored(grade(&grader("go test -v ./...", ""), &format!("{other}{none}"), 0)).0, "{format}");
        // Without -v the package counts as its tests.
        assert!(scored(grade(&grader("go test ./...", ""), ended, 0)).0, "{format}");
        let listed = grade(&grader("go test ./...", ""), &format!("TestA\nBenchmarkA\n{ended}"), 0);
        assert!(matches!(&listed, Grade::Ungraded { reason } if reason.contains("lists its tests")), "{listed:?}");
    }
    for (line, is_verbose) in [
        ("cd a && /usr/bin/go test ./... -v | tee log", true),
        ("sh -c \"go test -v\"", true),
        ("go test ./... | grep -v vendor", false),
        ("go test -v ./a; go test ./b", false),
        ("make -v test", false),
    ] {
        assert_eq!(go::is_verbose(line), is_verbose, "{line}");
    }
}

#[test]
fn suites_that_are_nested_too_deep_are_no_report() {
    let nested = |depth: usize| {
        let (begin, end) = ("<testsuite name=\"s\">".repeat(depth), "</testsuite>".repeat(depth));
        format!("{begin}<testcase classname=\"t\" name=\"a\"/>{end}")
    };
    let graded = |depth: usize| scored(grade("{run: x, format: junit, fail-to-pass: [t.a]}", &nested(depth), 0));
    assert!(graded(20).0);
    let (passed, _, reason) = graded(100);
    assert!(!passed && reason.contains("nested more than 64 deep"), "{reason}");
}
