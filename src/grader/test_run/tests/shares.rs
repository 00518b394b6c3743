//! The share of the tests that passed: of reports that lack tests, and of tests that are counted more than once.

use super::*;

/// Repeats the line of a test that passed for nine tests.
fn nine(line: &str) -> String {
    (0..9).map(|number| line.replace('#', &number.to_string())).collect()
}

fn xml(name: &str, class: &str, more: &str) -> String {
    let tests = nine(&format!("<testcase classname=\"{class}\" name=\"t#\"/>"));
    format!("<testsuites name=\"{name}\"><testsuite name=\"{class}\">{tests}{more}</testsuite></testsuites>")
}

/// Runs with nine passed tests and one known failure, whose other tests may not have run: each has a command, a format, an output,
/// and a part of the reason.
fn incomplete() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let unittest = |headline: &str, count: u8| {
        let rule = "=".repeat(70);
        let tests = nine("test_# (m.T.test_#) ... ok\n");
        format!(
            "{tests}{headline} ... ERROR\n\n{rule}\nERROR: {headline}\n----\nx\n\nRan {count} tests in 0.1s\n\nFAILED (errors=1)\n"
        )
    };
    let summary = "=== short test summary info ===\n";
    let node = |end: &str| format!("{}✖ bad (1ms)\n{end}ℹ pass 9\nℹ fail 1\n", nine("✔ t# (1ms)\n"));
    let jest = |end: &str| format!("{}  ✕ bad (1 ms)\n{end}", nine("  ✓ t# (1 ms)\n"));
    let vitest = "Test Files  2 failed (2)\n      Tests  1 failed | 9 passed (10)\n";
    let tap = |end: &str| format!("TAP version 13\n{}{end}\n1..10\n", nine("ok - t#\n"));
    let go = format!("{}--- FAIL: TestBad (0.00s)\n", nine("--- PASS: Test# (0.00s)\n"));
    let event = |action: &str, more: &str| format!("{{\"Action\":\"{action}\",\"Package\":\"m\"{more}}}\n");
    let files = |more: &str| {
        format!("TAP version 13\n1..2\nok 1 - a.mjs # time=7ms {{\n    1..9\n{}}}\n{more}", nine("    ok - t#\n"))
    };
    let flat = |more: &str| format!("TAP version 13\n1..11\n{}{more}", nine("ok - a.mjs > t#\n"));
    let hook = r#""before each" hook for "b0""#;
    let hook_in_xml =
        "<testcase classname=\"b\" name=\"&quot;before all&quot; hook for &quot;b0&quot;\"><failure/></testcase>";
    vec![
        ("x", "pytest", format!("{summary}ERROR test_b.py\n9 passed, 1 error in 0.06s\n"), "able to collect test_b.py"),
        ("x", "pytest", "9 passed, 1 error in 0.06s\n".to_owned(), "an error that it does not name"),
        (
            "x",
            "pytest",
            format!(
                "{summary}FAILED a.py::test_a - x\n!!! stopping after 1 failures !!!\n1 failed, 9 passed in 0.03s\n"
            ),
            "stopping after 1 failures",
        ),
        // A module that was skipped while it was collected is none of the 11 tests.
        (
            "x",
            "pytest",
            format!(
                "collected 11 items / 1 skipped\n{summary}FAILED a.py::test_a - x\n!!! stopping after 1 failures !!!\n\
                 1 failed, 9 passed, 1 skipped in 0.03s\n"
            ),
            "stopping after 1 failures",
        ),
        (
            "x",
            "junit",
            xml("pytest tests", "pytest", "<testcase name=\"b\"><error message=\"collection failure\"/></testcase>"),
            "`b` failed, so other tests did not run",
        ),
        (
            "x",
            "junit",
            xml("vitest tests", "a.mjs", "<testcase classname=\"b.mjs\" name=\"b.mjs\"><failure/></testcase>"),
            "b.mjs",
        ),
        (
            "x",
            "junit",
            xml(
                "vitest tests",
                "a.mjs",
                "<testcase classname=\"a.mjs\" name=\"s &gt; b0\"><skipped/></testcase><testcase classname=\"a.mjs\" \
                 name=\"s\"><failure/></testcase>",
            ),
            "`s` failed",
        ),
        (
            "x",
            "junit",
            xml(
                "vitest tests",
                "a.mjs",
                "<testcase classname=\"a.mjs\" name=\"o &gt; s &gt; b0\"><skipped/></testcase><testcase classname=\"a.mjs\" \
                 name=\"s\"><failure/></testcase>",
            ),
            "`s` failed",
        ),
        ("x", "junit", xml("r", "a", hook_in_xml), "before all"),
        ("x", "junit", xml("r", "a", "<testcase classname=\"b.T\" name=\"\"><error/></testcase>"), "b.T"),
        ("x", "junit", xml("r", "a", "<testcase name=\"initializationError\"><error/></testcase>"), "initialization"),
        // Surefire, before version 3.
        (
            "x",
            "junit",
            xml(
                "r",
                "a",
                "</testsuite><testsuite name=\"com.x.BTest\"><testcase classname=\"com.x.BTest\" name=\"com.x.BTest\">\
                 <error/></testcase>",
            ),
            "`com.x.BTest` failed",
        ),
        (
            "x",
            "junit",
            xml("r", "a", "<testcase name=\"s\"><failure type=\"cancelledByParent\"/></testcase>")
                .replace("</testsuites>", "<!-- cancelled 1 --></testsuites>"),
            "tests were cancelled",
        ),
        (
            "x",
            "junit",
            xml("r", "a", "<testcase name=\"s\"><failure/></testcase>")
                .replace("</testsuites>", "<!-- suites 3 --></testsuites>"),
            "may be a suite",
        ),
        ("x", "unittest", unittest("test_b (unittest.loader._FailedTest.test_b)", 10), "could not be loaded"),
        ("x", "unittest", unittest("setUpClass (m.B)", 9), "`setUpClass (m.B)` failed"),
        ("python3 -m unittest -f", "unittest", unittest("test_z (m.T.test_z)", 10), "`-f` stops the run"),
        (
            "x",
            "node",
            jest("  ● Test suite failed to run\n\nTests:       1 failed, 9 passed, 10 total\n"),
            "Test suite failed to run",
        ),
        (
            "x",
            "node",
            jest("Test Suites: 1 failed, 1 of 2 total\nTests:       1 failed, 9 passed, 10 total\n"),
            "did not run all files",
        ),
        ("x", "node", jest(&format!("⎯⎯ Failed Suites 1 ⎯⎯⎯\n\n {vitest}")), "1 failed suite"),
        ("x", "node", format!("{}    1) {hook}\n\n  9 passing (3ms)\n  1 failing\n", nine("  ✔ t#\n")), "before each"),
        ("npx mocha --bail", "node", jest("\n  9 passing (3ms)\n  1 failing\n"), "`--bail` stops the run"),
        ("x", "node", node("ℹ tests 9\nℹ suites 1\n").replace("ℹ fail 1", "ℹ fail 0"), "may be a suite"),
        (
            "x",
            "node",
            node("  'test did not finish before its parent and was cancelled'\nℹ tests 10\nℹ cancelled 1\n")
                .replace("ℹ fail 1", "ℹ fail 0"),
            "tests were cancelled",
        ),
        ("npx vitest --reporter=tap", "tap", files("not ok 2 - b.mjs\n"), "the file `b.mjs` failed before its tests"),
        (
            "npx vitest --reporter=tap",
            "tap",
            files(
                "not ok 2 - b.mjs # time=1ms {\n    1..1\n    not ok 1 - s # time=1ms {\n        1..1\n        ok 1 - b # SKIP\n    }\n}\n",
            ),
            "the suite `s` failed outside of its tests",
        ),
        (
            "npx vitest --reporter=tap-flat",
            "tap",
            flat("not ok - b.mjs\nok - c.mjs > s > c # SKIP\n"),
            "the file `b.mjs` failed before its tests",
        ),
        (
            "npx vitest --reporter=tap-flat",
            "tap",
            flat("not ok - a.mjs > bad\nok - c.mjs > s > c # SKIP\n"),
            "all tests of `c.mjs > s` were skipped",
        ),
        ("x", "tap", tap(&format!("not ok - b {hook}")), "before each"),
        (
            "x",
            "tap",
            tap("not ok - s\n  ---\n  type: 'suite'\n  failureType: 'testCodeFailure'\n  ..."),
            "the suite `s` failed outside of its tests",
        ),
        ("x", "tap", tap("not ok - a › before hook\n# 2 tests remaining in a.test.js"), "2 tests remaining"),
        (
            "x",
            "cargo",
            format!(
                "running 10 tests\n{}test bad ... FAILED\n\ntest result: FAILED. 9 passed; 1 failed; 0 ignored\n\nerror: test \
                 failed, to rerun pass `--lib`\n",
                nine("test t# ... ok\n")
            ),
            "may not have run all targets",
        ),
        (
            "cargo test --lib",
            "cargo",
            format!(
                "running 10 tests\n{}test bad ... FAILED\n\ntest result: FAILED. 9 passed; 1 failed; 0 ignored\n\nerror: test \
                 failed, to rerun pass `-p a --lib`\n",
                nine("test t# ... ok\n")
            ),
            "may not have run all targets",
        ),
        (
            "x",
            "cargo",
            format!(
                "  Starting 20 tests across 2 binaries\n{}  FAIL [ 0.004s] c bad\n  Summary [ 0.010s] 10/20 tests run: 9 \
                 passed, 1 failed\n",
                nine("  PASS [ 0.004s] c t#\n")
            ),
            "started 20 tests, but its summaries count 10",
        ),
        ("go test -v", "go", format!("{go}panic: boom\nexit status 2\nFAIL\tm\t0.1s\nFAIL\n"), "exit status 2"),
        // With several packages, the exit status is not shown.
        ("go test -v ./...", "go", format!("{go}2026/11/30 bye\nFAIL\tm\t0.1s\nFAIL\n"), "no line `FAIL` follows"),
        (
            "go test ./...",
            "go",
            format!("{}--- FAIL: TestBad (0.00s)\npanic: boom\nFAIL\tm\t0.1s\nFAIL\n", nine("ok  \tm/p#\t0.1s\n")),
            "no line `FAIL` follows",
        ),
        // A test and the code under test print `FAIL` before the program ends.
        (
            "go test ./...",
            "go",
            format!(
                "{}--- FAIL: TestBad (0.00s)\n    a_test.go:9: got PASS, want FAIL\nself check: FAIL\n\
                 FAIL\tm\t0.1s\nFAIL\n",
                nine("ok  \tm/p#\t0.1s\n")
            ),
            "no line `FAIL` follows",
        ),
        (
            "go test -v",
            "go",
            format!("{go}=== RUN   TestC\nFAIL\nexit status 1\nFAIL\tm\t0.1s\nFAIL\n"),
            "TestC began and did not end",
        ),
        (
            "go test -json",
            "go",
            [
                nine(&event("pass", ",\"Test\":\"Test#\"")),
                event("fail", ",\"Test\":\"TestBad\""),
                event("run", ",\"Test\":\"TestC\""),
                event("fail", ""),
            ]
            .concat(),
            "test TestC of the package m began and did not end",
        ),
        (
            "go test -json ./...",
            "go",
            [
                nine(&event("pass", ",\"Test\":\"Test#\"")),
                event("fail", ",\"Test\":\"TestBad\""),
                event("output", ",\"Output\":\"FAIL\\tm\\t0.1s\\n\""),
                event("fail", ""),
            ]
            .concat(),
            "no line `FAIL` follows",
        ),
        (
            "go test -json",
            "go",
            [
                nine(&event("pass", ",\"Test\":\"Test#\"")),
                event("fail", ",\"Test\":\"TestBad\""),
                event("output", ",\"Output\":\"exit status 2\\n\""),
                event("output", ",\"Output\":\"FAIL\\tm\\t0.1s\\n\""),
                event("fail", ""),
            ]
            .concat(),
            "exit status 2",
        ),
    ]
}

#[test]
fn tests_that_did_not_run_leave_the_share_open() {
    for (run, format, text, why) in incomplete() {
        for format in [format, "auto"] {
            let graded = |min: &str| grade(&format!("{{run: {run}, format: {format}{min}}}"), &text, 1);
            let open = graded(", min: 0.8");
            assert!(matches!(&open, Grade::Ungraded { reason } if reason.contains(why)), "{format} {text}: {open:?}");
            assert!(!scored(graded(", min: 0.95")).0, "{format} {text}");
            let Grade::Scored(score) = graded("") else { panic!("{format} {text}") };
            let bounds = score.bounds.map(|bounds| (bounds.low.get(), bounds.high.get()));
            assert_eq!((score.passed, bounds), (false, Some((0.0, 0.9))), "{format} {text}: {score:?}");
            assert!(score.reason.contains(why), "{format} {text}: {}", score.reason);
        }
    }
}

#[test]
fn a_share_of_all_tests_is_known() {
    let jest = "Summary of all failing tests\nFAIL ./a.test.js\n  ● bad\n\n    ✕ text\n\n\
                Test Suites: 1 failed, 21 passed, 22 total\nTests:       1 failed, 9 passed, 10 total\n";
    for (run, format, text) in [
        (
            "pytest -x",
            "pytest",
            "=== test session starts ===\ncollected 10 items\n\na.py .........F\n=== short test summary info ===\n\
             FAILED a.py::test_a - x\n!!! stopping after 1 failures !!!\n=== 1 failed, 9 passed in 0.03s ===\n"
                .to_owned(),
        ),
        ("jest --bail", "node", format!("{}  ✕ bad (1 ms)\n{jest}", nine("  ✓ t# (1 ms)\n"))),
        (
            "cargo test --no-fail-fast",
            "cargo",
            "test result: FAILED. 9 passed; 1 failed; 0 ignored\n\nerror: test failed, to rerun pass `--lib`\n\
             error: 1 target failed:\n    `--lib`\n"
                .to_owned(),
        ),
        (
            "go test -v",
            "go",
            format!(
                "{}--- FAIL: TestBad (0.00s)\nFAIL\nexit status 1\nFAIL\tm\t0.1s\n",
                nine("--- PASS: Test# (0.00s)\n")
            ),
        ),
        // A test printed a line without its end.
        (
            "go test -v",
            "go",
            format!(
                "{}--- FAIL: TestBad (0.00s)\nadding...FAIL\nexit status 1\nFAIL\tm\t0.1s\nFAIL\n",
                nine("--- PASS: Test# (0.00s)\n")
            ),
        ),
        (
            "go test -json",
            "go",
            "#{\"Action\":\"fail\",\"Package\":\"m\",\"Test\":\"TestBad\"}\n\
             {\"Action\":\"output\",\"Package\":\"m\",\"Output\":\"adding...FAIL\\n\"}\n\
             {\"Action\":\"output\",\"Package\":\"m\",\"Output\":\"FAIL\\tm\\t0.1s\\n\"}\n\
             {\"Action\":\"fail\",\"Package\":\"m\"}\n"
                .replacen('#', &nine("{\"Action\":\"pass\",\"Package\":\"m\",\"Test\":\"Test#\"}\n"), 1),
        ),
        (
            "cd a && cargo test --lib -- t",
            "cargo",
            "test result: FAILED. 9 passed; 1 failed; 0 ignored\n\nerror: test failed, to rerun pass `--lib`\n"
                .to_owned(),
        ),
        (
            "cargo test -p a --test b",
            "cargo",
            "test result: FAILED. 9 passed; 1 failed; 0 ignored\n\nerror: test failed, to rerun pass `-p a --test b`\n"
                .to_owned(),
        ),
        (
            "x",
            "junit",
            xml("r", "Array", "<testcase classname=\"Array.From\" name=\"Array.From\"><failure/></testcase>"),
        ),
        // CTest writes the name of a test twice.
        (
            "ctest",
            "junit",
            xml("r", "a", "<testcase classname=\"com.x.B\" name=\"com.x.B\" status=\"fail\"><failure/></testcase>"),
        ),
        // What a failed test printed is no line of pytest.
        (
            "x",
            "pytest",
            "!!! a banner !!!\n=== short test summary info ===\nFAILED a.py::test_a - x\n1 failed, 9 passed in 0.03s\n"
                .to_owned(),
        ),
    ] {
        let (passed, value, reason) = scored(grade(&format!("{{run: {run}, format: {format}, min: 0.9}}"), &text, 1));
        assert!(passed && value == 0.9, "{format} {text}: {reason}");
    }
}

#[test]
fn a_test_of_go_may_print_any_text_without_its_line_end() {
    let event = |action: &str, more: &str| format!("{{\"Action\":\"{action}\",\"Package\":\"m\"{more}}}\n");
    for text in ["done. ", "bye: ", "x="] {
        let plain = format!(
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\n{text}FAIL\n\
             FAIL\tm\t0.1s\nFAIL\n"
        );
        let json = [
            event("run", ",\"Test\":\"TestA\""),
            event("pass", ",\"Test\":\"TestA\""),
            event("run", ",\"Test\":\"TestB\""),
            event("fail", ",\"Test\":\"TestB\""),
            event("output", &format!(",\"Output\":\"{text}FAIL\\n\"")),
            event("output", ",\"Output\":\"FAIL\\tm\\t0.1s\\n\""),
            event("fail", ""),
        ];
        for (run, output) in [("go test -v", plain), ("go test -json", json.concat())] {
            let (passed, value, reason) = scored(grade(&format!("{{run: {run}, format: go, min: 0.5}}"), &output, 1));
            assert!(passed && value == 0.5, "{run} {text}: {reason}");
        }
    }
}

#[test]
fn real_reports_that_lack_tests_leave_the_share_open() {
    for (run, format, text, why) in [
        ("x", "tap", runner!("vitest4-broken.tap"), "the file `b.test.js` failed before its tests"),
        ("x", "tap", runner!("vitest4-broken-flat.tap"), "the file `b.test.js` failed before its tests"),
        ("x", "tap", runner!("vitest4-hook.tap"), "the suite `inner` failed outside of its tests"),
        ("x", "tap", runner!("vitest4-hook-flat.tap"), "all tests of `c.test.js > outer > inner` were skipped"),
        ("x", "junit", runner!("vitest4-hook.xml"), "`inner` failed, so other tests did not run"),
        ("x", "node", runner!("node20-cancelled.txt"), "tests were cancelled"),
        ("x", "junit", runner!("node20-cancelled.xml"), "tests were cancelled"),
        // A test with a failed subtest hides the suite in the totals.
        ("x", "node", runner!("node20-hidden-suite.txt"), "may be a suite"),
        ("x", "junit", runner!("node20-hidden-suite.xml"), "may be a suite"),
        ("go test ./...", "go", runner!("go-panic.txt"), "m/a ended before its last test"),
        ("go test -v ./...", "go", runner!("go-v-fatal.txt"), "m/a ended before its last test"),
    ] {
        let open = grade(&format!("{{run: {run}, format: {format}, min: 0.3}}"), text, 1);
        assert!(matches!(&open, Grade::Ungraded { reason } if reason.contains(why)), "{text}: {open:?}");
    }
}

#[test]
fn suites_without_tests_and_further_tries_leave_the_share_known() {
    for (format, text, share) in [
        // A test has the name of a suite.
        ("junit", runner!("vitest4.xml"), 0.667),
        ("node", runner!("node24-empty.txt"), 0.667),
        ("tap", runner!("node24-empty.tap"), 0.667),
        ("junit", runner!("node24-empty.xml"), 0.667),
        // A hook failed, so all tests of the suite are cancelled and known.
        ("node", runner!("node20-hook.txt"), 0.75),
        // A test threw an error that its suite made.
        ("node", runner!("node20-suite-error.txt"), 0.909),
        ("junit", runner!("node20-suite-error.xml"), 0.909),
        ("node", runner!("node20-two-failed.txt"), 0.833),
        ("junit", runner!("node20-two-failed.xml"), 0.833),
        ("pytest", runner!("pytest9-reruns.txt"), 0.9),
        // A module was skipped while it was collected.
        ("pytest", runner!("pytest9-reruns-skipped.txt"), 0.9),
        ("pytest", runner!("pytest9-reruns-teardown.txt"), 0.667),
    ] {
        let (_, value, reason) = scored(grade(&format!("{{run: x, format: {format}, min: {share}}}"), text, 1));
        assert_eq!(value, share, "{format} {text}: {reason}");
        assert!(scored(grade(&format!("{{run: x, format: {format}, min: 0.66}}"), text, 1)).0, "{format} {text}");
    }
}

#[test]
fn a_file_of_node_that_could_not_be_loaded_leaves_the_share_open() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let with_tests = place("b.test.mjs", "import test from 'node:test';\nimport './nothere.mjs';\n");
    let without = place("plain.js", "require('assert').equal(1, 2);\n");
    let tap = |file: &str| format!("TAP version 13\n{}# Subtest: {file}\nnot ok - {file}\n1..10\n", nine("ok - t#\n"));
    let spec = |file: &str| format!("{}✖ {file} (7ms)\nℹ tests 10\nℹ pass 9\nℹ fail 1\n", nine("✔ t# (1ms)\n"));
    for text in [tap as fn(&str) -> String, spec as _] {
        let graded = |file: &str| {
            let tests: Tests = serde_yaml::from_str("{run: x, format: node, min: 0.8}").unwrap();
            let outcome = outcome(&text(file), 1);
            tests.grade_report("x", &tests.read(&outcome).unwrap().in_folder(folder.path()), &outcome)
        };
        for file in [with_tests.as_str(), "b.test.mjs", "/elsewhere/b.test.mjs"] {
            let open = graded(file);
            assert!(
                matches!(&open, Grade::Ungraded { reason } if reason.contains("failed outside")),
                "{file}: {open:?}"
            );
        }
        // A file without tests counts by its exit code, and a title may look like a path.
        for file in [without.as_str(), "src/no-such.js"] {
            assert!(scored(graded(file)).0, "{file}");
        }
    }
}

#[test]
fn a_test_of_pytest_counts_once_with_its_worst_outcome() {
    let summary = "=== short test summary info ===\n";
    let heading = |when: &str, name: &str| format!("____ ERROR at {when} of {name} ____\n");
    let late = |name: &str| heading("teardown", name);
    let sub = "SUBFAILED(i=0) a.py::test_s - x\nSUBFAILED(i=1) a.py::test_s - x\n";
    for (text, (passed, failed), (low, high)) in [
        // Each of three tests failed when it was torn down.
        (
            format!(
                "{}{}{}{summary}ERROR a.py::test_a - x\nERROR a.py::test_b - x\nERROR a.py::T::test_a - x\n3 passed, 3 errors \
                 in 0.1s\n",
                late("test_a"),
                late("test_b"),
                late("T.test_a")
            ),
            (0, 3),
            (0.0, 0.0),
        ),
        (
            format!(
                "a.py::test_a PASSED [ 50%]\na.py::test_a ERROR [ 50%]\na.py::test_b PASSED [100%]\n{summary}ERROR \
                 a.py::test_a - x\n=== 2 passed, 1 error in 0.1s ===\n"
            ),
            (1, 1),
            (0.5, 0.5),
        ),
        // A test whose set-up failed did not pass.
        (
            format!(
                "{}{}{summary}ERROR a.py::test_a - x\nERROR a.py::test_a - y\n2 passed, 2 errors in 0.1s\n",
                heading("setup", "test_a"),
                late("test_a")
            ),
            (2, 1),
            (2.0 / 3.0, 2.0 / 3.0),
        ),
        // Subtests, of a test that fails with them, and of one that does not.
        (
            format!("{summary}{sub}FAILED a.py::test_s - contains 2 failed subtests\n3 failed, 3 passed in 0.1s\n"),
            (3, 1),
            (0.75, 0.75),
        ),
        (format!("{summary}{sub}2 failed, 2 passed in 0.1s\n"), (1, 1), (0.5, 0.5)),
        // Nothing shows whether the set-up or the tear-down failed.
        (format!("{summary}ERROR a.py::test_a - x\n2 passed, 1 error in 0.1s\n"), (1, 1), (0.5, 2.0 / 3.0)),
        // The test whose tear-down failed may be the skipped one.
        (
            format!("{}{summary}ERROR a.py::test_a - x\n2 passed, 1 skipped, 1 error in 0.1s\n", late("test_a")),
            (1, 1),
            (0.5, 2.0 / 3.0),
        ),
        // Each collected test is counted once.
        (
            format!(
                "=== test session starts ===\ncollected 6 items / 1 deselected / 5 selected\n\na.py .RR..\n\
                 {summary}FAILED a.py::test_a - x\n=== 1 failed, 4 passed, 1 deselected, 2 rerun in 0.1s ===\n"
            ),
            (4, 1),
            (0.8, 0.8),
        ),
        // Each try counts as passed if the tear-down failed.
        (format!("{summary}FAILED a.py::test_a - x\n1 failed, 4 passed, 1 rerun in 0.1s\n"), (4, 1), (0.75, 0.8)),
    ] {
        let report = report("pytest", &text);
        assert_eq!((report.counts().passed, report.counts().failed), (passed, failed), "{text}");
        let Grade::Scored(score) = grade("{run: x, format: pytest}", &text, 1) else { panic!("{text}") };
        let known = score.bounds.map_or((score.value, score.value), |bounds| (bounds.low, bounds.high));
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        assert_eq!((round(known.0.get()), round(known.1.get())), (round(low), round(high)), "{text}: {score:?}");
    }
    // It is unknown whether the minimum is reached.
    let text = format!("{summary}ERROR a.py::test_a - x\n2 passed, 1 error in 0.1s\n");
    let open = grade("{run: x, format: pytest, min: 0.6}", &text, 1);
    assert!(matches!(&open, Grade::Ungraded { reason } if reason.contains("add -v")), "{open:?}");
    assert!(scored(grade("{run: x, format: pytest, min: 0.5}", &text, 1)).0);
}

#[test]
fn parts_and_fixtures_of_unittest_are_no_tests() {
    let rule = "=".repeat(70);
    let parts: String = (0..10).map(|n| format!("{rule}\nFAIL: test_s (m.T.test_s) (i={n})\n----\nx\n\n")).collect();
    let text = format!(
        "{rule}\nERROR: tearDownClass (m.U)\n----\nx\n\n{parts}Ran 5 tests in 0.1s\n\nFAILED (failures=10, errors=1)\n"
    );
    assert_eq!(counts(&report("unittest", &text)), (4, 2, 0));
    assert_eq!(scored(grade("{run: x, format: unittest, min: 0.6}", &text, 1)).1, 0.667);
}
