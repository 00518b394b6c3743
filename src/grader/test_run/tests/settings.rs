//! The settings `min`, `format` and `report`, and settings that are refused.

use super::*;

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
fn a_share_of_an_incomplete_report_is_unknown() {
    let text = "1..5\nok 1 - a\nok 2 - b\nok 3 - c\nnot ok 4 - d\nBail out! gone\n";
    assert!(matches!(grade("{run: x, min: 0.5}", text, 1), Grade::Ungraded { .. }));
    assert!(!scored(grade("{run: x, min: 0.8}", text, 1)).0);
    assert_eq!(scored(grade("run: x", text, 1)).1, 0.75);
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

#[test]
fn a_line_that_directs_its_results_is_not_told_to_name_a_file() {
    let directed = "{run: 'python3 -c program 3>&1 >&2', format: junit}";
    for (grader, code, why) in [
        ("{run: x, format: junit}", 1, "`it` printed no JUnit XML; if it writes a file, add `report: PATH`"),
        (directed, 1, "`it` exited with 1 and wrote no results"),
        (directed, 0, "`it` exited with 0, but wrote no results; the code under test may have ended it"),
    ] {
        let (passed, _, reason) = scored(grade(grader, "", code));
        assert!(!passed && reason == why, "{grader}: {reason}");
    }
}

#[test]
fn a_listed_name_that_is_only_a_part_of_another_one_is_doubtful() {
    for (grader, is_doubtful) in [
        ("{run: x, fail-to-pass: ['a.py::test_x'], pass-to-pass: [test_x]}", true),
        ("{run: python3 -m unittest, fail-to-pass: [m.T.test_x, test_x]}", true),
        ("{run: x, format: go, fail-to-pass: [m/a.TestX, TestX]}", true),
        ("{run: x, fail-to-pass: ['a.test.js > math > adds', 'math > adds']}", true),
        ("{run: pytest, fail-to-pass: ['sub/a.py::test_x', 'a.py::test_x']}", false),
        ("{run: pytest, fail-to-pass: ['a.py::test_x', 'b.py::test_x', '*_x']}", false),
        ("{run: cd a && go test -v ./..., fail-to-pass: [m/a.TestX, TestX]}", true),
        // A test beside a subtest of another one.
        ("{run: go test -v ./..., fail-to-pass: [TestA, TestB/TestA]}", false),
        ("{run: x, format: go, fail-to-pass: [TestA, m/a.TestB/TestA]}", false),
        // It is unknown which runner has the test.
        ("{run: cd go && cargo test, fail-to-pass: ['tests::empty', empty]}", false),
        ("{run: npm test && pytest, fail-to-pass: ['cli > empty', empty]}", false),
        ("{run: npm test && pytest, fail-to-pass: [cli.empty, empty]}", false),
        // A test outside of suites.
        ("{run: node --test, fail-to-pass: ['cli > empty', empty]}", false),
        ("{run: cargo test, fail-to-pass: ['tests::empty', empty]}", false),
    ] {
        let tests: Tests = serde_yaml::from_str(grader).unwrap();
        assert_eq!(tests.warning().is_some(), is_doubtful, "{grader}: {:?}", tests.warning());
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
    (0..MAX_REPORTS).for_each(report);
    let before = OldReports::find(workspace.path(), &globs).unwrap();
    assert!(
        matches!(written(workspace.path(), &globs, &before, &outcome("", 0)), Err(NoReport::Wrong(why)) if why.contains("existed"))
    );
    report(MAX_REPORTS);
    assert!(reports(workspace.path(), &globs).is_err_and(|why| why.contains("more than 1000 files")));
    assert!(matches!(written(workspace.path(), &globs, &before, &outcome("", 0)), Err(NoReport::Unknown(_))));
}
