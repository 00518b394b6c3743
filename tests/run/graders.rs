//! Graders in real runs: wrong expressions with their place, scripts, test runners, and the examples of the documentation.

use crate::project::Project;

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
    project.evals(&["check"]).exits(2).says("cases/suite.yaml:2:36").says("there is no function `siez`");
    // The same in a named grader, in each way in which it may be written.
    for text in ["expr: {cel: 'out == 1'}", "grader: {expr: {cel: 'out == 1'}}", "graders: [{expr: {cel: 'out == 1'}}]"]
    {
        let project = Project::new();
        project.case("a", "graders: [{use: mine}]", "");
        project.write("graders/mine.yaml", &format!("description: d\n{text}\n"));
        let column = text.find("out").unwrap() + 1;
        project
            .evals(&["check"])
            .exits(2)
            .says(&format!("graders/mine.yaml:2:{column}"))
            .says("nothing is named `out`");
    }
}

/// A judge beside the case: looks at everything that it is told, and gives three grades.
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
fn a_script_that_says_nothing_usable_leaves_it_ungraded() {
    let project = Project::new();
    let table = [
        ("crash", "echo '{\"passed\": true}'; echo oh >&2; exit 3", "exited with 3; stderr: oh"),
        ("kill", "kill -9 $$", "was ended by signal 9"),
        ("slow", "echo waiting >&2; sleep 30", "took longer than its timeout of 500ms and was ended; stderr: waiting"),
        ("text", "echo passed; echo why >&2", "did not print JSON: expected value at line 1 column 1; stderr: why"),
        ("nothing", "exit 0", "printed nothing"),
        ("empty", "echo '[]'", "gave no grade: its list is empty"),
        ("word", "echo '\"passed\"'", "gave no grade: it is no JSON object"),
        ("unsaid", "echo '{\"value\": 1}'", "it says neither `passed` nor `ungraded`"),
        ("beyond", "echo '{\"passed\": true, \"value\": 1.5}'", "`value` is 1.5, not a number from 0 to 1"),
        ("second", "echo '[{\"passed\": true}, {\"passed\": 1}]'", "in entry 2: `passed` is neither true nor false"),
        ("events", "echo '{\"passed\": true, \"evidence\": [\"a\"]}'", "`evidence` is not a list of event numbers"),
        ("much", "head -c 3000000 /dev/zero", "printed more than 1048576 bytes"),
    ];
    for (id, line, _) in &table {
        let grader = serde_json::json!({"script": {"run": ["sh", "-c", line], "timeout": "500ms"}});
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
        ("script: {run: [a], timeout: 0}", "no script meets"),
    ] {
        let project = Project::new();
        project.case("a", &format!("graders: [{{{text}}}]"), "");
        project.evals(&["check"]).exits(2).says(why);
    }
}
