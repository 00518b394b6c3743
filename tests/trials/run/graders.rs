//! Graders in real runs: invalid expressions with their place, scripts, test runners, and the examples of the
//! documentation.

use crate::project::{Project, bubblewrap};

#[test]
fn a_wrong_expression_is_told_by_its_line_and_column() {
    let project = Project::new();
    let graders = "graders:\n  - stop: {reason: end_turn}\n  - expr:\n      cel: |\n        size(calls) < 9\n          && calls.exists(c, c.knid == 'edit')\n";
    project.case("a", graders, "");
    project.write("cases/suite.yaml", "graders:\n  - expr: {cel: \"output == 'ab' && siez(calls) > 1\"}\n");
    project
        .evals(&["check"])
        .exits(2)
        .says("cases/a.yaml:7:32")
        .says("a call has no `knid`")
        .says("did you mean `kind`?");
    project.evals(&["check"]).exits(2).says("cases/suite.yaml:2:36").says("unknown function `siez`");
    // The same in a named grader, in each form that it may have.
    for text in ["expr: {cel: 'out == 1'}", "grader: {expr: {cel: 'out == 1'}}", "graders: [{expr: {cel: 'out == 1'}}]"]
    {
        let project = Project::new();
        project.case("a", "graders: [{use: mine}]", "");
        project.write("graders/mine.yaml", &format!("description: d\n{text}\n"));
        let column = text.find("out").unwrap() + 1;
        project.evals(&["check"]).exits(2).says(&format!("graders/mine.yaml:2:{column}")).says("unknown name `out`");
    }
}

/// A grading script beside the case: checks all of its input, and returns three grades.
const JUDGE: &str = r#"
import json, os, sys
told = json.load(sys.stdin)
assert sys.argv[1:] == ["--strict", "a.txt"], sys.argv
assert os.getcwd() == told["workspace"], os.getcwd()
events = [json.loads(line) for line in open(told["trace"])]
assert events[0]["type"] == "trace" and events[-1]["type"] == "stop"
assert "+hello" in open(told["patch"]).read()
assert open(os.path.join(told["workspace"], "a.txt")).read() == "hello\n"
call = told["calls"][0]
assert (call["kind"], call["paths"], call["status"], call["input"]["text"]) == ("edit", ["a.txt"], "ok", "hello\n")
assert told["files"] == {"created": ["a.txt"], "changed": [], "deleted": []}, told["files"]
assert (told["case"], told["harness"], told["trial"], told["output"]) == ("a", "demo", 1, "Done.")
assert told["metrics"]["tool_calls"] == 1 and told["stop"]["reason"] == "end_turn"
assert told["usage"] == {} and "requested" not in told["model"]
print(json.dumps([
    {"passed": True, "reason": "all is well", "evidence": [call["seq"]]},
    {"name": "style", "passed": False, "value": 0.25, "reason": "not nice"},
    {"name": "taste", "ungraded": "nobody knows"},
]))
"#;

#[test]
fn a_script_is_told_everything_and_gives_its_grades() {
    let project = Project::new();
    project.write("cases/judge.py", JUDGE);
    let keys = "graders:\n  - script: {run: [python3, judge.py, --strict, a.txt], name: mine, diagnostic: true}\n  - stop: {reason: end_turn}";
    project.case("a", keys, "steps: [{write: {path: a.txt, text: \"hello\\n\"}}, {say: Done.}]");
    project.evals(&["run"]).exits(0);
    let result = project.result("a/demo/default/1");
    let grades: Vec<_> = result["grades"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grade| {
            let text = |key: &str| grade[key].as_str().unwrap_or_default().to_owned();
            (text("name"), text("grader"), grade["value"].as_f64(), text("reason"))
        })
        .collect();
    assert_eq!(grades.len(), 4, "{grades:?}");
    let row = |name: &str, value, reason: &str| (name.to_owned(), "script".to_owned(), value, reason.to_owned());
    assert_eq!(
        grades[..3],
        [
            row("mine", Some(1.0), "all is well"),
            row("style", Some(0.25), "not nice"),
            row("taste", None, "nobody knows")
        ]
    );
    assert_eq!(result["grades"][0]["evidence"], serde_json::json!([1]));
    assert_eq!(result["grades"][1]["diagnostic"], true);
}

#[test]
fn a_script_beside_a_suite_or_a_named_grader_is_found() {
    let project = Project::new();
    project.write("cases/suite.yaml", "graders:\n  - script: {run: [sh, ./yes.sh], name: suite}\n");
    project.write("cases/yes.sh", "echo '{\"passed\": true, \"reason\": \"of the suite\"}'\n");
    project.write("graders/mine.yaml", "description: d\nscript: {run: [sh, yes.sh]}\n");
    project.write("graders/yes.sh", "echo '{\"passed\": true, \"reason\": \"of the graders\"}'\n");
    project.case("deep/a", "graders: [{use: mine}]", "steps: [{say: hi}]");
    project.evals(&["run"]).exits(0);
    let result = project.result("deep/a/demo/default/1");
    assert_eq!(result["grades"][0]["reason"], "of the suite");
    assert_eq!(result["grades"][1]["reason"], "of the graders");
}

#[test]
fn a_command_line_that_does_not_find_the_script_beside_the_case_is_told_why() {
    let project = Project::new();
    project.write("cases/judge.py", "print('{\"passed\": true}')\n");
    project.case("a", "graders: [{script: {run: python3 judge.py}}]", "steps: [{say: hi}]");
    // The same line finds the file that the agent made in the workspace.
    let fails = "{write: {path: judge.py, text: 'import sys; sys.exit(3)'}}";
    project.case("b", "graders: [{script: {run: python3 judge.py}}]", &format!("steps: [{fails}, {{say: hi}}]"));
    project.evals(&["run"]).exits(3);
    let reason = |case: &str| {
        project.result(&format!("{case}/demo/default/1"))["grades"][0]["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("a").contains("`judge.py` lies beside the case and not in the workspace"), "{}", reason("a"));
    assert!(!reason("b").contains("beside the case"), "{}", reason("b"));
}

#[test]
fn a_script_that_says_nothing_usable_leaves_it_ungraded() {
    let project = Project::new();
    let table = [
        ("crash", "echo '{\"passed\": true}'; echo oh >&2; exit 3", "exited with 3\nstderr:\noh"),
        ("kill", "kill -9 $$", "was ended by signal 9"),
        ("slow", "echo waiting >&2; sleep 300", "took longer than its timeout of 5s and was ended\nstderr:\nwaiting"),
        ("text", "echo passed; echo why >&2", "did not print JSON: expected value at line 1 column 1\nstderr:\nwhy"),
        ("nothing", "exit 0", "printed nothing"),
        ("empty", "echo '[]'", "printed no grade: its list is empty"),
        ("word", "echo '\"passed\"'", "printed no grade: it is not a JSON object"),
        ("unsaid", "echo '{\"value\": 1}'", "it has neither `passed` nor `ungraded`"),
        ("beyond", "echo '{\"passed\": true, \"value\": 1.5}'", "`value` is 1.5, not a number from 0 to 1"),
        ("second", "echo '[{\"passed\": true}, {\"passed\": 1}]'", "in entry 2: `passed` is neither true nor false"),
        ("events", "echo '{\"passed\": true, \"evidence\": [\"a\"]}'", "`evidence` is not a list of event numbers"),
        (
            "later",
            "echo '{\"passed\": true, \"evidence\": [1, 999]}'",
            "`evidence` names event 999, but the last event",
        ),
        ("twice", "echo '{\"passed\": false, \"passed\": true}'", "printed no grade: the key `passed` occurs twice"),
        ("much", "head -c 3000000 /dev/zero", "printed more than 1048576 bytes"),
    ];
    for (id, line, _) in &table {
        let timeout = if *id == "slow" { "5s" } else { "60s" };
        let grader = serde_json::json!({"script": {"run": ["sh", "-c", line], "timeout": timeout}});
        project.case(id, &format!("graders: [{grader}]"), "steps: [{say: hi}]");
    }
    project.case("absent", "graders: [{script: {run: [no-such-program-here]}}]", "steps: [{say: hi}]");
    project.evals(&["run"]).exits(3);
    for (id, _, reason) in table.iter().chain(&[("absent", "", "could not be started")]) {
        let grade = &project.result(&format!("{id}/demo/default/1"))["grades"][0];
        assert_eq!(grade["outcome"], "ungraded", "{id}: {grade}");
        assert!(grade["reason"].as_str().unwrap().contains(reason), "{id}: {grade}");
    }
    for (text, why) in [
        ("script: {}", "missing"),
        ("script: {run: []}", "`run` is empty"),
        ("script: {run: [a], timeout: 0}", "no script can meet"),
    ] {
        let project = Project::new();
        project.case("a", &format!("graders: [{{{text}}}]"), "");
        project.evals(&["check"]).exits(2).says(why);
    }
}

#[test]
fn a_failure_that_a_script_reports_with_the_value_1_fails_the_trial() {
    let project = Project::new();
    let line = "echo '{\"passed\": false, \"value\": 1.0, \"reason\": \"too slow\"}'";
    let grader = serde_json::json!({"script": {"run": ["sh", "-c", line]}});
    project.case("a", &format!("graders: [{grader}]"), "steps: [{say: hi}]");
    project.evals(&["run"]).exits(1);
    let result = project.result("a/demo/default/1");
    assert_eq!((&result["verdict"], &result["grades"][0]["passed"]), (&"fail".into(), &false.into()), "{result}");
    assert_eq!(result["grades"][0]["reason"], "too slow");
}

/// Two tests of Python's own runner, one of which the agent breaks.
const SUITE: &str = "import unittest\nfrom m import add\nclass T(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(add(1, 1), 2)\n    def test_two(self):\n        self.assertEqual(add(2, 2), 4)\n";

#[test]
#[ignore = "slow: runs many trials"]
fn tests_of_a_runner_are_judged_one_by_one() {
    let project = Project::new();
    project.write("cases/given/m.py", "def add(a, b):\n    return 0\n");
    project.write("cases/hidden/test_m.py", SUITE);
    let keys = |grader: &str| {
        format!(
            "workspace: {{copy: given}}\nhidden: hidden\nenv: {{PYTHONDONTWRITEBYTECODE: '1'}}\ngraders: [{{tests: {grader}}}]"
        )
    };
    let step = |new: &str| format!("steps: [{{edit: {{path: m.py, old: return 0, new: {new}}}}}]");
    let run = "run: python3 -m unittest -v";
    project.case("good", &keys(&format!("{{{run}, fail-to-pass: [test_m.T.test_one]}}")), &step("return a + b"));
    project.case("half", &keys(&format!("{{{run}}}")), &step("return 2"));
    project.case("enough", &keys(&format!("{{{run}, min: 0.5}}")), &step("return 2"));
    project.case(
        "listed",
        &keys(&format!("{{{run}, fail-to-pass: [test_one], pass-to-pass: ['*two']}}")),
        &step("return 2"),
    );
    project.case("broken", &keys(&format!("{{{run}}}")), &step("return ("));
    project.case("late", &keys("{run: sleep 30, timeout: 300ms}"), &step("return 2"));
    project.case("absent", &keys("{run: no-such-runner-here --all}"), &step("return 2"));
    project.case("told", &keys("{run: 'echo All tests passed'}"), &step("return 2"));
    project.evals(&["run"]).exits(1);
    for (id, value, reason) in [
        ("good", Some(1.0), "fail-to-pass: `test_m.T.test_one` passed"),
        ("half", Some(0.5), "1 of 2 tests failed: `test_m.T.test_two`"),
        ("enough", Some(0.5), "enough checks held, the minimum is 0.5"),
        ("listed", Some(0.5), "pass-to-pass: `test_m.T.test_two` (of `*two`) failed"),
        ("broken", Some(0.0), "1 of 1 test failed"),
        ("late", Some(0.0), "`sleep 30` took longer than its timeout of 300ms"),
        ("absent", None, "its program is not installed"),
        ("told", Some(0.0), "showed no test that could be understood"),
    ] {
        let grade = &project.result(&format!("{id}/demo/default/1"))["grades"][0];
        assert_eq!(grade["value"].as_f64(), value, "{id}: {grade}");
        assert!(grade["reason"].as_str().unwrap().contains(reason), "{id}: {grade}");
        assert_eq!(grade["passed"].as_bool(), value.map(|value| value == 1.0 || id == "enough"), "{id}: {grade}");
    }
}

#[test]
fn tests_that_did_not_run_leave_the_share_open_and_satisfy_no_name() {
    let rule = "=".repeat(70);
    let passed: String = (0..9).map(|n| format!("test_{n} (m.T.test_{n}) ... ok\n")).collect();
    let failed = "test_b (unittest.loader._FailedTest.test_b)";
    let unittest = format!(
        "{passed}{failed} ... ERROR\n\n{rule}\nERROR: {failed}\n----\nx\n\nRan 10 tests in 0.1s\n\nFAILED (errors=1)\n"
    );
    let tap = "TAP version 13\n# Subtest: cli\n    ok 1 - empty\n    1..1\nok 1 - cli\nnot ok 2 - words\n1..2\n";
    let vitest = include_str!("../../traces/graders/runners/vitest4-broken.tap");
    let node = include_str!("../../traces/graders/runners/node24-empty.txt");
    let files = serde_json::json!({"unittest": unittest, "tap": tap, "vitest": vitest, "node": node});
    let project = Project::new();
    let cases = [
        ("whole", "run: 'cat unittest; exit 1'", "", "fail"),
        ("threshold", "run: 'cat unittest; exit 1'", "pass: {threshold: 0.8}", "ungraded"),
        ("min", "run: 'cat unittest; exit 1', min: 0.8", "", "ungraded"),
        ("high", "run: 'cat unittest; exit 1', min: 0.95", "", "fail"),
        ("listed", "run: 'cat tap; exit 1', fail-to-pass: ['cli > empty', empty]", "", "fail"),
        ("of-suite", "run: 'cat tap; exit 1', fail-to-pass: ['cli > empty']", "", "pass"),
        ("file", "run: 'cat vitest; exit 1', min: 0.4", "", "ungraded"),
        ("empty-suites", "run: 'cat node; exit 1', min: 0.6", "", "pass"),
    ];
    for (id, tests, more, _) in cases {
        let keys = format!("workspace: {{files: {files}}}\n{more}\ngraders: [{{tests: {{{tests}}}}}]");
        project.case(id, &keys, "steps: [{say: done}]");
    }
    project.evals(&["run"]).exits(1);
    for (id, _, _, verdict) in cases {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
    }
    let grade = &project.result("threshold/demo/default/1")["grades"][0];
    assert_eq!(grade["value"], 0.9, "{grade}");
    assert_eq!(grade["bounds"], serde_json::json!({"low": 0.0, "high": 0.9}), "{grade}");
    let listed = &project.result("listed/demo/default/1")["grades"][0];
    assert!(listed["reason"].as_str().unwrap().contains("`empty` was not run"), "{listed}");
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_test_is_found_in_long_output_and_by_the_path_of_its_file() {
    let project = Project::new();
    // A runner that names tests outside of suites by the path of their file, and prints more than other commands may.
    let print = "import os\nprint('<testsuite name=\"s\">')\n\
                 print(f'<testcase classname=\"{os.getcwd()}/test/b.js\" name=\"squares\"/>')\n\
                 for n in range(30000): print(f'<testcase classname=\"test.a\" name=\"adds {n}\" time=\"0.001\"/>')\n\
                 print('</testsuite>')\n";
    project.write("cases/given/run.py", print);
    let lists = "fail-to-pass: [test/b.js.squares], pass-to-pass: [test.a.adds 0]";
    let keys =
        format!("workspace: {{copy: given}}\ngraders: [{{tests: {{run: python3 run.py, format: junit, {lists}}}}}]");
    project.case("long", &keys, "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    // What was cut off may hold a failure of the same test.
    let cut =
        "print('1..2\\nnot ok 1 - squares')\nfor n in range(200000): print('# ' + 'x' * 90)\nprint('ok 2 - squares')\n";
    project.write("cases/given/cut.py", cut);
    let keys =
        "workspace: {copy: given}\ngraders: [{tests: {run: python3 cut.py, format: tap, fail-to-pass: [squares]}}]";
    project.case("cut", keys, "steps: [{say: done}]");
    project.evals(&["run", "--case", "cut"]).exits(3);
}

#[test]
fn totals_of_the_code_under_test_that_are_too_large_do_not_pass() {
    let project = Project::new();
    // The first line is the code's own: together, the tests that began are 0 again if the sum overflows.
    project.write(
        "cases/given/overflow.txt",
        "running 18446744073709551606 tests\nrunning 10 tests\ntest result: ok. 1 passed; 0 failed; 0 ignored\n",
    );
    project.write("cases/given/failures.txt", "ok 1 - a\n1..1\n# fail -1\n");
    for (name, format) in [("overflow", "cargo"), ("failures", "tap")] {
        let keys =
            format!("workspace: {{copy: given}}\ngraders: [{{tests: {{run: cat {name}.txt, format: {format}}}}}]");
        project.case(name, &keys, "steps: [{say: done}]");
    }
    project.evals(&["run"]).exits(1);
    let grade = |name: &str| project.result(&format!("{name}/demo/default/1"))["grades"][0].clone();
    assert_eq!(grade("overflow")["passed"], false, "{}", grade("overflow"));
    let doubt = grade("failures");
    assert!(doubt["passed"].is_null() && doubt["reason"].as_str().unwrap().contains("cannot be read"), "{doubt}");
}

#[test]
fn tests_that_are_listed_and_did_not_run_do_not_pass() {
    let project = Project::new();
    let of_pytest = |tests: u8, more: &str| {
        format!(
            "<testsuites><testsuite name=\"pytest\" tests=\"{tests}\"><testcase classname=\"t\" name=\"a\"/>{more}</testsuite></testsuites>"
        )
    };
    project.write("cases/given/plan.xml", &of_pytest(0, ""));
    project.write("cases/given/exit.xml", &of_pytest(1, "<testcase time=\"0.000\"/>"));
    let todo = "<testcase classname=\" a\" name=\" a\" time=\"0\"/>";
    project.write(
        "cases/given/todo.xml",
        &format!("<testsuites name=\"jest tests\" tests=\"0\"><testsuite name=\"undefined\" tests=\"0\">{todo}</testsuite></testsuites>"),
    );
    // A package whose code ends the process before its tests.
    project.write("cases/given/go", "printf 'ok  \\tm\\t0.003s\\n'\n");
    let case = |name: &str, tests: &str| {
        let keys = format!("workspace: {{copy: given}}\ngraders: [{{tests: {{{tests}}}}}]");
        project.case(name, &keys, "steps: [{say: done}]");
    };
    case("plan", "run: cp plan.xml r.xml, report: r.xml, fail-to-pass: ['t::a']");
    case("exit", "run: cp exit.xml r.xml, report: r.xml");
    case("todo", "run: cp todo.xml r.xml, report: r.xml");
    case("init", "run: sh ./go test -v ./...");
    case("quiet", "run: sh ./go test ./..., fail-to-pass: [TestAdd]");
    project.evals(&["run"]).exits(1);
    for (id, passed, reason) in [
        ("plan", Some(false), "pytest has 0 tests by its totals, but 1 are reported as passed"),
        ("exit", Some(false), "it lists a test without a name"),
        ("todo", Some(false), "ran no test, 1 skipped"),
        ("init", Some(false), "ran no test"),
        ("quiet", None, "names only tests that failed"),
    ] {
        let grade = &project.result(&format!("{id}/demo/default/1"))["grades"][0];
        assert_eq!(grade["passed"].as_bool(), passed, "{id}: {grade}");
        assert!(grade["reason"].as_str().unwrap().contains(reason), "{id}: {grade}");
    }
}

#[test]
fn totals_that_do_not_count_each_listed_test_are_no_failure() {
    let project = Project::new();
    let suites = |root: &str, suite: &str, tests: &str| {
        format!("<testsuites {root}><testsuite {suite}>{tests}</testsuite></testsuites>")
    };
    let two = "<testcase classname=\"x\" name=\"a\"/><testcase classname=\"y\" name=\"b\"/>";
    let mocha =
        suites("name=\"Mocha Tests\" tests=\"1\" failures=\"0\"", "name=\"files\" tests=\"1\" failures=\"0\"", two);
    let jest = suites(
        "name=\"web\" tests=\"1\" failures=\"0\" errors=\"0\" time=\"0.299\"",
        "name=\"undefined\" errors=\"0\" failures=\"0\" skipped=\"0\" timestamp=\"2026-11-29T10:55:19\" time=\"0.1\" tests=\"1\"",
        "<testcase classname=\" x\" name=\" x\" time=\"0.002\"/><testcase classname=\" later\" name=\" later\" time=\"0\"/>",
    );
    let times = "<testcase name=\"(init)\" time=\"0.01\"/><testcase name=\"1 - adds\"/><testcase name=\"(teardown)\" time=\"0.01\"/>";
    let catch = "name=\"t\" errors=\"0\" failures=\"0\" tests=\"6\" hostname=\"tbd\"";
    for (name, report) in [
        ("mocha", mocha),
        ("jest", jest),
        ("prove", suites("", "name=\"a_t\" tests=\"1\" failures=\"0\" errors=\"0\"", times)),
        ("missing", suites("", "name=\"a_t\" tests=\"3\" failures=\"0\" errors=\"0\"", times)),
        ("catch", suites("", catch, two)),
        ("other", suites("", "name=\"s\" tests=\"1\"", two)),
    ] {
        project.write(&format!("cases/given/{name}.xml"), &report);
        let keys =
            format!("workspace: {{copy: given}}\ngraders: [{{tests: {{run: cp {name}.xml r.xml, report: r.xml}}}}]");
        project.case(name, &keys, "steps: [{say: done}]");
    }
    project.evals(&["run"]).exits(1);
    for (id, passed, reason) in [
        ("mocha", Some(true), "all of 2 tests passed"),
        ("jest", Some(true), "all of 1 test passed, 1 skipped"),
        ("prove", Some(true), "all of 1 test passed"),
        ("missing", Some(false), "a_t has 3 tests by its totals, but 1 are reported"),
        ("catch", Some(true), "all of 2 tests passed"),
        ("other", None, "s has 1 test by its totals, but 2 are reported as passed"),
    ] {
        let grade = &project.result(&format!("{id}/demo/default/1"))["grades"][0];
        assert_eq!(grade["passed"].as_bool(), passed, "{id}: {grade}");
        assert!(grade["reason"].as_str().unwrap().contains(reason), "{id}: {grade}");
    }
}

#[test]
fn a_package_of_go_that_has_no_test_to_run_is_not_read_as_tap() {
    let project = Project::new();
    project.write("cases/given/go", "printf 'ok  \\tm\\t(cached) [no tests to run]\\n'\n");
    let keys = "workspace: {copy: given}\ngraders: [{tests: {run: sh ./go test ./..., fail-to-pass: [TestB]}}]";
    project.case("a", keys, "steps: [{say: done}]");
    project.evals(&["run"]).exits(1);
    let grade = &project.result("a/demo/default/1")["grades"][0];
    let reason = grade["reason"].as_str().unwrap();
    assert!(reason.contains("ran no test: its output contains `[no tests to run]`"), "{grade}");
}

#[test]
fn a_report_that_lay_there_before_says_nothing() {
    let project = Project::new();
    let report =
        "<testsuites><testsuite name=\\\"s\\\"><testcase classname=\\\"c\\\" name=\\\"a\\\"/></testsuite></testsuites>";
    let write = format!("steps: [{{write: {{path: out/report.xml, text: \"{report}\"}}}}]");
    let keys = |run: &str| {
        format!(
            "workspace: {{files: {{ok.xml: \"{report}\"}}}}\n\
             graders: [{{tests: {{run: {run}, report: 'out/*.xml'}}}}, {{files: {{exists: [out/report.xml]}}}}]"
        )
    };
    project.case("forged", &keys("'true'"), &write);
    project.case("none", &keys("'true'"), "steps: [{say: hi}]");
    // The same bytes, written by the test runner.
    project.case("fresh", &keys("'cp ok.xml out/report.xml'"), &write);
    // The line of the runner reaches the report of the agent, and writes none.
    project.case("rights", &keys("'chmod -R u+rwX,go-rwx .'"), &write);
    project.case("owner", &keys("'chown -R $(id -u) .'"), &write);
    project.case("link", &keys("'ln out/report.xml saved.xml || true'"), &write);
    project.case("copy", &keys("'cp out/report.xml out/copy.xml || true'"), &write);
    project.case("moved", &keys("'mv out old; mv old out'"), &write);
    project.case("touched", &keys("'touch out/report.xml'"), &write);
    project.evals(&["run"]).exits(1);
    let before = "the files there existed before";
    for (id, passed, reason) in [
        ("forged", false, before),
        ("none", false, "wrote no report matching `out/*.xml`"),
        ("fresh", true, "all of 1 test passed"),
        ("rights", false, before),
        ("owner", false, before),
        ("link", false, before),
        ("copy", false, before),
        ("moved", false, before),
        ("touched", false, "wrote the report `out/report.xml`, but it is not XML"),
    ] {
        // The report of the agent is in its place again.
        let exists = &project.result(&format!("{id}/demo/default/1"))["grades"][1];
        assert_eq!(exists["passed"], id != "none", "{id}: {exists}");
        let grade = &project.result(&format!("{id}/demo/default/1"))["grades"][0];
        assert_eq!(grade["passed"], passed, "{id}: {grade}");
        assert!(grade["reason"].as_str().unwrap().contains(reason), "{id}: {grade}");
    }
}

#[test]
fn tests_that_fail_without_a_report_that_the_agent_wrote_are_ungraded() {
    let report = "<testsuite><testcase name=\"a\"/></testsuite>";
    let failed = "<testsuite failures=\"1\"><testcase name=\"a\"><failure/></testcase></testsuite>";
    let files = serde_json::json!({"good": report, "bad": failed});
    let read =
        "mkdir -p build; if grep -q testcase samples/out.xml; then cp good build/r.xml; else cp bad build/r.xml; fi";
    let write = serde_json::json!({"steps": [{"write": {"path": "samples/out.xml", "text": report}}]});
    let project = Project::new();
    let cases = [
        ("wide", read, "'**/*.xml'", "ungraded"),
        ("narrow", read, "'build/*.xml'", "pass"),
        ("named", read, "['build/*.xml', samples/out.xml]", "fail"),
        // What the tests read is there, or is not needed.
        ("written", "cp good samples/out.xml; mkdir build; cp bad build/r.xml", "'**/*.xml'", "fail"),
        ("not-needed", "mkdir build; cp good build/r.xml", "'**/*.xml'", "pass"),
        ("slow", "sleep 9", "'**/*.xml'", "fail"),
    ];
    for (id, run, report, _) in cases {
        let timeout = if id == "slow" { "500ms" } else { "1m" };
        let tests = format!("{{run: '{run}', report: {report}, timeout: {timeout}}}");
        let keys = format!("workspace: {{files: {files}}}\ngraders: [{{tests: {tests}}}]");
        project.case(id, &keys, &write.to_string());
    }
    project.evals(&["run"]).exits(1);
    for (id, _, _, verdict) in cases {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
        let reason = result["grades"][0]["reason"].as_str().unwrap();
        assert_eq!(reason.contains("`samples/out.xml`, which the agent wrote"), verdict == "ungraded", "{reason}");
    }
}

#[test]
fn a_report_behind_a_link_is_named_as_such() {
    let project = Project::new();
    let good = "<testsuite><testcase name=\\\"a\\\"/></testsuite>";
    let keys = format!(
        "workspace: {{files: {{good: \"{good}\"}}}}\ngraders: [{{tests: {{run: cp good reports/r.xml, report: reports/r.xml}}}}]"
    );
    let link = "mkdir real reports; touch real/r.xml; ln -s ../real/r.xml reports/r.xml";
    project.case("file", &keys, &format!("steps: [{{run: {{command: '{link}'}}}}]"));
    project.case("folder", &keys, "steps: [{run: {command: 'mkdir real; ln -s real reports'}}]");
    project.evals(&["run"]).exits(1);
    for id in ["file", "folder"] {
        let grade = &project.result(&format!("{id}/demo/default/1"))["grades"][0];
        assert_eq!(grade["passed"], false, "{id}: {grade}");
        assert!(grade["reason"].as_str().unwrap().contains("`reports/r.xml` is a link or lies behind one"), "{grade}");
    }
}

#[test]
fn a_report_that_is_not_of_the_agent_stays_where_tests_read_it() {
    let report = "<testsuite><testcase name=\"a\"/></testsuite>";
    let files = serde_json::json!({
        ".gitignore": "cache\n", "cache/x": "1", "a.txt": "", "more.xml": report, "tests/sample.xml": report
    });
    let read = "grep -q testcase tests/sample.xml && cp tests/sample.xml out.xml";
    let keys = format!(
        "workspace: {{files: {files}, protect: ['tests/**']}}\ngraders: [{{tests: {{run: '{read}', report: '**/*.xml'}}}}]"
    );
    let project = Project::new();
    project.case("other", &keys, "steps: [{write: {path: a.txt, text: done}}]");
    // What the agent wrote there is not there any more.
    project.case("restored", &keys, "steps: [{write: {path: tests/sample.xml, text: <testsuite/>}}]");
    project.evals(&["run"]);
    for id in ["other", "restored"] {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_eq!(result["verdict"], "pass", "{id}: {result}");
    }
}

#[test]
fn a_report_may_have_another_encoding_and_a_named_one_has_to_be_written() {
    let project = Project::new();
    let latin = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><testsuite tests=\"1\"><testcase name=\"t\u{e9}\"/></testsuite>";
    let bytes: Vec<u8> = latin.chars().map(|c| c as u8).collect();
    std::fs::create_dir_all(project.path("cases/fix")).unwrap();
    std::fs::write(project.path("cases/fix/latin"), &bytes).unwrap();
    let wide = latin.replace("ISO-8859-1", "UTF-16");
    let wide: Vec<u8> = [0xfeff].into_iter().chain(wide.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    std::fs::write(project.path("cases/fix/wide"), &wide).unwrap();
    let keys = |tests: &str| format!("workspace: {{copy: fix}}\ngraders: [{{tests: {{{tests}}}}}]");
    let done = "steps: [{say: done}]";
    project.case("file", &keys("run: cp latin r.xml, report: r.xml, fail-to-pass: ['t\u{e9}']"), done);
    project.case("wide", &keys("run: cp wide r.xml, report: [r.xml, 'more/*.xml'], fail-to-pass: ['t\u{e9}']"), done);
    project.case("printed", &keys("run: cat latin, format: junit, fail-to-pass: ['t\u{e9}']"), done);
    project.case("lacks", &keys("run: cp latin r.xml, report: [r.xml, s.xml]"), done);
    project.case("large", &keys("run: head -c 68000000 /dev/zero > r.xml, report: r.xml"), done);
    project.evals(&["run"]).exits(1);
    for (id, passed) in [("file", true), ("wide", true), ("printed", true), ("lacks", false)] {
        let grade = &project.result(&format!("{id}/demo/default/1"))["grades"][0];
        assert_eq!(grade["passed"], passed, "{id}: {grade}");
    }
    let lacks = &project.result("lacks/demo/default/1")["grades"][0];
    assert!(lacks["reason"].as_str().unwrap().contains("wrote no report `s.xml`"), "{lacks}");
    let large = &project.result("large/demo/default/1")["grades"][0];
    assert_eq!(large["outcome"], "ungraded", "{large}");
    assert!(large["reason"].as_str().unwrap().contains("`r.xml` is larger than 64 MiB"), "{large}");
}

#[test]
fn a_script_can_be_read_in_a_sandbox() {
    let project = Project::new();
    project.write("cases/judge.py", JUDGE);
    let keys = "sandbox: bwrap\ngraders:\n  - script: {run: [python3, judge.py, --strict, a.txt], name: mine, diagnostic: true}\n  - stop: {reason: end_turn}";
    project.case("a", keys, "steps: [{write: {path: a.txt, text: \"hello\\n\"}}, {say: Done.}]");
    if !bubblewrap() {
        return;
    }
    project.evals(&["run"]).exits(0);
    let grades = &project.result("a/demo/default/1")["grades"];
    assert_eq!(grades[0]["reason"], "all is well", "{grades}");
}

/// The script of the demo agent for the examples of `docs/graders/`.
const MENDS: &str = r#"
steps:
  - read: {path: src/total.py}
  - run: {command: python3 -m unittest discover -s src}
  - edit: {path: src/total.py, old: "sum(numbers[:-1])", new: "sum(numbers)", ask: true}
  - run: {command: "python3 -m unittest discover  -s src"}
  - say: |
      The last element was left out. 2 tests pass now.

      ```json
      {"file": "src/total.py", "tests": 2}
      ```
  - usage: {input-tokens: 1500, output-tokens: 120, cost-usd: 0.02}
"#;

#[test]
#[ignore = "slow: runs many trials"]
fn the_examples_of_the_documentation_hold_on_their_session() {
    let project = Project::new();
    project.write("work/README.md", "# Totals\n");
    project.write("work/.agents/skills/testing/SKILL.md", "---\nname: testing\n---\nRun the tests.\n");
    project.write("work/src/total.py", "def total(numbers):\n    return sum(numbers[:-1])\n");
    let suite = "import unittest\nfrom total import total\nclass T(unittest.TestCase):\n    def test_all(self):\n        self.assertEqual(total([1, 2, 3]), 6)\n    def test_empty(self):\n        self.assertEqual(total([]), 0)\n";
    project.write("work/src/test_total.py", suite);
    for word in evals::internal::grader::Kind::WORDS {
        let page = std::fs::read_to_string(format!("docs/graders/{word}.md")).unwrap();
        let examples: String =
            page.split("```yaml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
        // A diagnostic grader does not count, and a case needs one that does.
        let graders = examples.replace("\n- ", "\n  - ");
        let keys = format!(
            "interaction: auto-approve\nworkspace: {{copy: ../work}}\nenv: {{PYTHONDONTWRITEBYTECODE: '1'}}\ngraders:\n  {graders}"
        );
        // A line that is indented further belongs to the grader above it.
        let keys: String = keys
            .lines()
            .map(|line| if line.starts_with("    ") { format!("  {line}\n") } else { format!("{line}\n") })
            .collect();
        // Only this example is about a session that uses a skill.
        let skill = "steps:\n  - read: {path: .agents/skills/testing/SKILL.md}\n";
        let steps = if *word == "skills" { MENDS.replacen("steps:\n", skill, 1) } else { MENDS.to_owned() };
        project.case(word, &keys, &steps);
    }
    // The snapshot must be accepted before.
    project.evals(&["run", "--case", "snapshot", "--snapshot", "update", "--out", "first"]);
    project.evals(&["run", "--jobs", "2"]);
    for word in evals::internal::grader::Kind::WORDS {
        let result = project.result(&format!("{word}/demo/default/1"));
        for grade in result["grades"].as_array().unwrap() {
            if ["rubric", "pairwise"].contains(word) {
                // The examples are valid, but there is no key here.
                assert!(grade["reason"].as_str().unwrap().contains("no key for"), "{word}: {grade}");
                continue;
            }
            assert_eq!(grade["passed"], true, "{word}: {grade}");
        }
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn an_expression_that_comes_to_no_end_is_ungraded() {
    let project = Project::new();
    let list = format!("[{}]", vec!["1"; 60].join(","));
    let mut endless = "a > 0".to_owned();
    for name in ["a", "b", "c", "d", "e", "f"] {
        endless = format!("{list}.all({name}, {endless})");
    }
    project.case(
        "a",
        &format!("graders: [{{expr: {{cel: 'size(output) >= 0 && {endless}'}}}}]"),
        "steps: [{say: done}]",
    );
    project.evals(&["run"]).exits(3);
    let result = project.result("a/demo/default/1");
    assert!(result["grades"][0]["reason"].as_str().unwrap().contains("it took longer than 5 s"), "{result}");
}
