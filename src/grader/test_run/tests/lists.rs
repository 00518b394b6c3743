//! Tests that `fail-to-pass` and `pass-to-pass` name.

use super::*;

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
fn a_test_of_go_without_its_name_is_unknown() {
    let listed = |text: &str, code: i32| grade("{run: go test ./..., fail-to-pass: [TestAdd]}", text, code);
    let other = "--- FAIL: TestOther (0.00s)\nFAIL\nFAIL\tm\t0.003s\nFAIL\n";
    let died = "--- FAIL: TestOther (0.00s)\npanic: boom\nFAIL\tm\t0.003s\nok  \tm/b\t0.003s\nFAIL\n";
    for (text, code) in [("ok  \tm\t0.003s\n", 0), (other, 1), (died, 1)] {
        let grade = listed(text, code);
        assert!(
            matches!(&grade, Grade::Ungraded { reason } if reason.contains("names only tests that failed")),
            "{grade:?}"
        );
    }
    assert!(!scored(listed(&other.replace("TestOther", "TestAdd"), 1)).0);
    assert!(!scored(listed("FAIL\tm [build failed]\nFAIL\n", 2)).0);
}

#[test]
fn tests_of_jest_junit_are_found_by_their_names() {
    let xml = |tests: u8| {
        format!(
            "<testsuites name=\"jest tests\" tests=\"{tests}\"><testsuite name=\"undefined\" tests=\"{tests}\">\
             <testcase classname=\" adds\" name=\" adds\" time=\"0.001\"/>\
             <testcase classname=\"math divides\" name=\"math divides\" time=\"0\"/>\
             <testcase classname=\"math fast\" name=\"math fast\" time=\"0\"/></testsuite></testsuites>"
        )
    };
    let listed =
        |tests: u8, name: &str| grade(&format!("{{run: x, format: junit, fail-to-pass: ['{name}']}}"), &xml(tests), 0);
    for name in ["adds", " adds", "math divides", "math > divides"] {
        assert!(scored(listed(3, name)).0, "{name}");
    }
    assert!(!scored(listed(3, "math > gone")).0);
    let last = listed(3, "divides");
    assert!(matches!(&last, Grade::Ungraded { reason } if reason.contains("such as `math divides`")), "{last:?}");
    // One of the two tests without a time is still to be done.
    assert_eq!(scored(grade("{run: x, format: junit}", &xml(2), 0)).2, "all of 2 tests passed, 1 skipped");
    assert!(scored(listed(2, "adds")).0);
    for name in ["math divides", "math > fast", "*"] {
        let unclear = listed(2, name);
        assert!(matches!(&unclear, Grade::Ungraded { reason } if reason.contains("still to be done")), "{unclear:?}");
    }
    assert_eq!(counts(&report("junit", &xml(1))), (1, 0, 2));
}

#[test]
fn a_dash_belongs_to_the_name_of_a_test_of_pytest() {
    let text = "=== test session starts ===\ncollected 4 items\n\ntest_p.py ...EF\n\n\
                === short test summary info ===\nPASSED test_p.py::test_p[1 - 2]\nPASSED test_p.py::test_q[a]\n\
                PASSED test_p.py::test_q[a] - b]\nERROR test_p.py::test_q[a] - b] - boom\n\
                FAILED test_p.py::test_f[1 - 2] - assert x[1] - y\n=== 1 failed, 3 passed, 1 error in 0.1s ===\n";
    let report = report("pytest", text);
    for (name, expected) in [
        ("test_p[1 - 2]", vec![Status::Passed]),
        ("test_p[1", vec![]),
        ("test_f[1 - 2]", vec![Status::Failed]),
        // The line of a failure does not show where a name with ` - ` ends.
        ("test_f[1", vec![Status::Failed]),
        ("test_q[a] - b]", vec![Status::Failed]),
        ("test_q[a]", vec![Status::Failed]),
    ] {
        let found: Vec<Status> = report.named(&format!("test_p.py::{name}")).iter().map(|test| test.status).collect();
        assert_eq!(found, expected, "{name}: {:?}", report.tests());
    }
}

#[test]
fn the_summary_of_pytest_without_totals_names_each_test() {
    let text = "..    [100%]\n=== PASSES ===\n=== short test summary info ===\n\
                PASSED test_p.py::test_a\nPASSED test_p.py::test_b\n";
    let listed = |names: &str, text: &str, code: i32| {
        let grader = format!("{{run: x, format: pytest, fail-to-pass: [{names}]}}");
        scored(grade(&grader, text, code))
    };
    assert!(listed("'test_p.py::test_a', test_b", text, 0).0);
    let (passed, _, reason) = listed("test_a", text, 1);
    assert!(!passed && reason.contains("exited with 1 though no test failed"), "{reason}");
    let (passed, _, reason) = listed("test_c", text, 0);
    assert!(!passed && reason.contains("`test_c` was not run"), "{reason}");
    let failed = text.replace("PASSED test_p.py::test_b", "FAILED test_p.py::test_b - assert 1");
    assert!(!listed("test_a, test_b", &failed, 1).0);
    // Other programs print such lines, too.
    let (_, _, reason) = listed("test_a", "PASSED test_p.py::test_a\n", 0);
    assert!(reason.contains("showed no test that could be understood"), "{reason}");
}

#[test]
fn the_last_part_of_a_name_passes_beside_a_failed_test_and_empty_suites() {
    for (format, text) in [
        ("node", runner!("node24-empty.txt")),
        ("tap", runner!("node24-empty.tap")),
        ("junit", runner!("node24-empty.xml")),
    ] {
        let (passed, _, reason) =
            scored(grade(&format!("{{run: x, format: {format}, pass-to-pass: [divides]}}"), text, 1));
        assert!(passed, "{format}: {reason}");
    }
}

#[test]
fn one_reported_test_satisfies_one_listed_name() {
    let file = "/elsewhere/core.test.mjs";
    let tap = format!(
        "TAP version 13\n# Subtest: cli\n    # Subtest: empty\n    ok 1 - empty\n    1..1\nok 1 - cli\n# Subtest: {file}\nnot ok 2 - {file}\n1..2\n"
    );
    let spec =
        format!("▶ cli\n  ✔ empty (1ms)\n✔ cli (2ms)\n✖ {file} (9ms)\nℹ tests 2\nℹ suites 1\nℹ pass 1\nℹ fail 1\n");
    let xml = format!(
        "<testsuites><testsuite name=\"cli\" tests=\"1\"><testcase classname=\"test\" name=\"empty\"/></testsuite><testcase \
         classname=\"test\" name=\"{file}\"><failure/></testcase></testsuites>"
    );
    let judged = |names: &str, format: &str, text: &str| {
        let tests: Tests =
            serde_yaml::from_str(&format!("{{run: x, format: {format}, fail-to-pass: [{names}]}}")).unwrap();
        let outcome = outcome(text, 1);
        let report = tests.read(&outcome).unwrap().in_folder(Path::new("/w"));
        (tests.grade_report("x", &report, &outcome), tests.seen(&report).fail_to_pass_passed)
    };
    for (format, text) in [("tap", &tap), ("node", &spec), ("node", &tap), ("junit", &xml)] {
        let (both, passed) = judged("cli > empty, empty", format, text);
        let (_, value, reason) = scored(both);
        assert!(value == 0.5 && reason.contains("`empty` was not run; the file"), "{format}: {reason}");
        assert_eq!(passed, ["cli > empty"], "{format}");
        assert!(scored(judged("cli > empty", format, text).0).0, "{format}");
        // Another test of this name may be in the file that was not loaded.
        let (open, passed) = judged("empty", format, text);
        assert!(matches!(&open, Grade::Ungraded { reason } if reason.contains("list whole names")), "{open:?}");
        assert!(passed.is_empty(), "{format}");
        let whole = text.replace(file, "empty").replace("not ok 2", "ok 2").replace('✖', "✔").replace("<failure/>", "");
        let whole = whole.replace("pass 1\nℹ fail 1", "pass 2\nℹ fail 0");
        for names in ["empty", "cli > empty, empty"] {
            let grader = format!("{{run: x, format: {format}, fail-to-pass: [{names}]}}");
            assert!(scored(grade(&grader, &whole, 0)).0, "{format}: {names}");
        }
    }
    let rule = "=".repeat(70);
    let text = format!(
        "test_empty (test_cli.Cli.test_empty) ... ok\ntest_core (unittest.loader._FailedTest.test_core) ... ERROR\n\n{rule}\n\
         ERROR: test_core (unittest.loader._FailedTest.test_core)\n----\nx\n\nRan 2 tests in 0.1s\n\nFAILED (errors=1)\n"
    );
    let (open, _) = judged("test_empty", "unittest", &text);
    assert!(matches!(&open, Grade::Ungraded { reason } if reason.contains("could not be loaded")), "{open:?}");
    let both = "test_core.Core.test_empty, test_cli.Cli.test_empty";
    assert!(scored(judged(both, "unittest", &text).0).2.contains("`test_core.Core.test_empty` was not run"));
    assert!(scored(judged("test_cli.Cli.test_empty", "unittest", &text).0).0);
}

#[test]
fn a_test_that_passed_may_not_be_that_of_a_hidden_file_that_was_not_loaded() {
    let root = tempfile::tempdir().unwrap();
    let [folder, hidden] = ["workspace", "hidden"].map(|name| root.path().join(name));
    for folder in [&folder, &hidden] {
        std::fs::create_dir_all(folder.join("spec")).unwrap();
        std::fs::write(folder.join("spec/take.js"), "require('node:test')('takes', () => {});\n").unwrap();
    }
    let file = format!("{}/spec/take.js", folder.display());
    let tap = format!(
        "TAP version 13\n# Subtest: adds\nok 1 - adds\n# Subtest: takes\nok 2 - takes\n# Subtest: {file}\nnot ok 3 - {file}\n1..3\n"
    );
    let jest = "FAIL spec/own.js\n  ✓ adds (1 ms)\n  ✓ takes (1 ms)\n  ✕ other (1 ms)\nFAIL spec/take.js\n  ● Test suite failed to \
                run\n\n    Error: x\n\nTest Suites: 2 failed, 2 total\nTests:       1 failed, 2 passed, 3 total\n";
    for (format, text) in [("tap", tap.as_str()), ("node", jest)] {
        let judged = |name: &str, hidden: Option<&Path>| {
            let tests: Tests =
                serde_yaml::from_str(&format!("{{run: x, format: {format}, fail-to-pass: [{name}]}}")).unwrap();
            let outcome = outcome(text, 1);
            let report = tests.read(&outcome).unwrap().in_folder(&folder).with_hidden(hidden);
            (tests.grade_report("x", &report, &outcome), tests.seen(&report).fail_to_pass_passed)
        };
        let (grade, passed) = judged("takes", Some(&hidden));
        let why = "the hidden file `spec/take.js`, which has a test of this name, failed outside of its tests";
        assert!(matches!(&grade, Grade::Ungraded { reason } if reason.contains(why)), "{format}: {grade:?}");
        assert!(passed.is_empty(), "{format}");
        // Another file has this test, and without hidden files it is not known which one should have it.
        for (name, hidden) in [("adds", Some(hidden.as_path())), ("takes", None)] {
            assert!(scored(judged(name, hidden).0).0, "{format}: {name}");
        }
    }
}
