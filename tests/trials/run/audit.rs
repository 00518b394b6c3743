//! `evals check --audit`: tests the cases themselves, with agents whose verdicts are known in advance.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::project::{Project, Ran, wait_for};

fn audit(project: &Project, code: i32) -> Value {
    project.evals(&["check", "--audit", "--format", "json"]).exits(code).json()
}

fn tried<'a>(report: &'a Value, case: &str, agent: &str) -> Vec<&'a Value> {
    let cases = report["cases"].as_array().unwrap();
    let case = cases.iter().find(|it| it["case"] == case).unwrap_or_else(|| panic!("no {case}: {report}"));
    case["agents"].as_array().unwrap().iter().filter(|it| it["agent"] == agent).collect()
}

fn names(tried: &Value) -> Vec<&str> {
    tried["graders"].as_array().into_iter().flatten().map(|grader| grader["name"].as_str().unwrap()).collect()
}

fn says(ran: Ran, texts: &[&str]) {
    texts.iter().fold(ran, |ran, text| ran.says(text));
}

#[test]
#[ignore = "slow: runs each bundled case several times"]
fn every_bundled_case_passes_its_audit() {
    let project = Project::bundled();
    let before = project.files("");
    let report = project.evals(&["check", "--audit", "--mutants", "0", "--format", "json"]).exits(0).json();
    let unsound: Vec<&Value> = report["cases"].as_array().unwrap().iter().filter(|it| it["sound"] != true).collect();
    assert!(unsound.is_empty(), "{unsound:?}");
    assert_eq!((&report["summary"]["without_oracle"], &report["summary"]["unsound"]), (&0.into(), &0.into()));
    for case in report["cases"].as_array().unwrap() {
        let id = case["case"].as_str().unwrap();
        assert_eq!(tried(&report, id, "oracle")[0]["verdict"], "pass", "{id}");
        for agent in ["null", "vandal"] {
            assert!(tried(&report, id, agent).iter().all(|it| it["verdict"] == "fail"), "{id}");
        }
        // Each oracle is a script, so every grader was audited.
        assert_eq!(tried(&report, id, "oracle")[0].get("not_audited"), None, "{id}");
    }
    assert!(project.files("") == before, "an audit leaves nothing");
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn an_interrupted_audit_reports_the_cases_that_it_finished() {
    let project = Project::on_disk();
    project.write("cases/done/solved", "");
    let keys = |run: &str| format!("oracle: {{copy: done}}\ngraders: [{{command: {{run: \"{run}\"}}}}]");
    project.case("a", &keys("test -e solved"), "");
    // As many cases are audited at once as there are processors: the last one begins when the first has ended.
    let jobs = std::thread::available_parallelism().unwrap().get();
    (1..jobs).for_each(|number| project.case(&format!("b{number:03}"), &keys("sleep 100"), ""));
    let begun = project.path("begun");
    project.case("c", &keys(&format!("touch '{}'; sleep 100", begun.display())), "");
    let mut command = project.command(&["check", "--audit", "--mutants", "0"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the end of the first case", || begun.exists());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(130), "{err}");
    assert!(out.contains("1 case audited, all sound") && !out.contains("| b") && !out.contains("| c"), "{out}");
    assert!(err.contains(&format!("interrupted after 1 of {} cases; the report is about these", jobs + 1)), "{err}");
}

#[test]
fn graders_that_let_null_or_the_vandal_through_are_named() {
    let project = Project::new();
    // Passes with any agent.
    project.case("nothing", "graders: [{command: {name: always, run: 'true'}}, {stop: {reason: [end_turn]}}]", "");
    // The agent itself could write the test that judges it.
    project.write("cases/fix/tests/run.sh", "grep -q fixed src.txt\n");
    project.write("cases/fix/src.txt", "broken\n");
    project.write("cases/done/src.txt", "fixed\n");
    let judged = "oracle: {copy: done}\ngraders: [{command: {name: visible tests, run: sh tests/run.sh}}]";
    project.case("visible", &format!("workspace: {{copy: fix}}\n{judged}"), "");
    project.case("protected", &format!("workspace: {{copy: fix, protect: [tests/**]}}\n{judged}"), "");
    // Passes if no file is left.
    project.case("absent", "workspace: {copy: fix}\ngraders: [{files: {absent: [src.txt]}}]", "");
    // Checks words alone.
    project.case("words", "graders: [{output: {contains: passed}}]", "");
    let report = audit(&project, 1);
    assert_eq!(names(tried(&report, "nothing", "null")[0]), ["always", "stop"]);
    let vandal = tried(&report, "visible", "vandal");
    let through: Vec<&str> =
        vandal.iter().filter(|it| it["verdict"] == "pass").map(|it| it["how"].as_str().unwrap()).collect();
    assert_eq!(through, ["overwrites tests and protected files", "overwrites every file"]);
    assert_eq!(names(vandal[0]), ["visible tests"]);
    assert_eq!(tried(&report, "visible", "oracle")[0]["verdict"], "pass");
    assert_eq!(report["cases"].as_array().unwrap().iter().find(|it| it["case"] == "protected").unwrap()["sound"], true);
    let absent = tried(&report, "absent", "vandal");
    assert_eq!((absent[1]["verdict"].as_str(), absent[2]["verdict"].as_str()), (Some("fail"), Some("pass")));
    assert_eq!(tried(&report, "words", "null")[0]["verdict"], "fail");
    assert_eq!(tried(&report, "words", "vandal")[0]["verdict"], "pass");
    let texts = [
        "AUDIT nothing",
        "null passes and must fail; it passed by always (command): `true` exited with 0",
        "vandal, which overwrites tests and protected files, passes and must fail; it passed by visible tests",
        "5 cases audited, 1 sound, 4 not",
    ];
    says(project.evals(&["check", "--audit"]).exits(1), &texts);
}

#[test]
fn a_reference_solution_that_does_not_pass_is_told_with_the_graders_that_refuse_it() {
    let project = Project::new();
    project.write("cases/right/a.txt", "right\n");
    project.write("cases/wrong/a.txt", "wrong\n");
    let grader = "graders: [{files: {name: a, contains: {a.txt: right}}}, {tool-calls: {name: calls, min: 1}}]";
    project.case("right", &format!("oracle: {{copy: right}}\n{grader}"), "");
    project.case("wrong", &format!("oracle: {{copy: wrong}}\n{grader}"), "");
    project.case("none", grader, "");
    let calls = "graders: [{tool-calls: {name: calls, min: 1}}]";
    project.case("calls", &format!("oracle: {{copy: right}}\n{calls}"), "");
    project.case("script", &format!("oracle: {{script: solve.demo.yaml}}\n{grader}"), "");
    project.write("cases/solve.demo.yaml", "steps: [{write: {path: a.txt, text: right}}, {say: done}]");
    project.case("idle", &format!("oracle: {{script: idle.demo.yaml}}\n{grader}"), "");
    project.write("cases/idle.demo.yaml", "steps: [{say: done}]");
    project.case("setup", &format!("workspace: {{setup: ['exit 3']}}\n{grader}"), "");
    let report = audit(&project, 1);
    let oracle = |case: &str| tried(&report, case, "oracle")[0].clone();
    assert_eq!(
        (&oracle("right")["verdict"], &oracle("right")["not_audited"]),
        (&"pass".into(), &serde_json::json!(["calls"]))
    );
    assert_eq!((oracle("wrong")["verdict"].as_str(), names(&oracle("wrong"))), (Some("fail"), vec!["a"]));
    assert_eq!((oracle("none").get("verdict"), &oracle("none")["sound"]), (None, &true.into()));
    assert_eq!((oracle("calls").get("verdict"), &oracle("calls")["sound"]), (None, &true.into()));
    assert_eq!(oracle("script")["verdict"], "pass");
    assert_eq!(names(&oracle("idle")), ["a", "calls"]);
    assert!(tried(&report, "setup", "null")[0]["note"].as_str().unwrap().contains("exited 3"));
    let texts = [
        "oracle must pass, but its verdict is `fail` a (files): `a.txt`",
        "not audited, since a folder does not show it: calls of right",
    ];
    says(project.evals(&["check", "--audit"]).exits(1), &texts);
    for case in ["wrong", "idle", "setup"] {
        std::fs::remove_file(project.path(&format!("cases/{case}.yaml"))).unwrap();
    }
    std::fs::remove_file(project.path("cases/idle.demo.yaml")).unwrap();
    // A folder shows no calls, which alone count.
    let report = audit(&project, 3);
    let calls = report["cases"].as_array().unwrap().iter().find(|it| it["case"] == "calls").unwrap();
    assert_eq!((&calls["audited"], &calls["sound"]), (&false.into(), &false.into()));
    assert_eq!((&report["summary"]["not_audited"], &report["summary"]["without_oracle"]), (&1.into(), &1.into()));
    let blind = "1 case not audited with a reference solution: its oracle shows files alone, and no counted grader reads \
                 files; the first is calls";
    let none = "1 case without a reference solution, so it is not tested that one passes";
    says(project.evals(&["check", "--audit"]).exits(3), &[blind, none, "all sound, 1 not audited"]);
    // A case without a reference solution is reported, and is no failure.
    std::fs::remove_file(project.path("cases/calls.yaml")).unwrap();
    says(project.evals(&["check", "--audit"]).exits(0), &[none, "all sound"]);
}

#[test]
fn a_case_that_only_judges_grade_is_not_audited_and_not_sound() {
    let project = Project::new();
    project.write("cases/right/a.txt", "right\n");
    let rubric = "rubric: {criteria: [{id: good, ask: Is it good?}]}";
    project.case("judged", &format!("oracle: {{copy: right}}\ngraders: [{{{rubric}}}]"), "");
    let report = audit(&project, 3);
    let summary = |report: &Value| {
        ["cases", "sound", "unsound", "not_audited", "without_oracle"]
            .map(|key| report["summary"][key].as_u64().unwrap())
    };
    assert_eq!(summary(&report), [1, 0, 0, 1, 0]);
    let judged = &report["cases"][0];
    assert_eq!((&judged["audited"], &judged["sound"]), (&false.into(), &false.into()));
    for agent in ["null", "oracle", "vandal"] {
        let tried = tried(&report, "judged", agent)[0];
        assert_eq!((tried.get("verdict"), &tried["sound"]), (None, &false.into()), "{agent}");
    }
    says(project.evals(&["check", "--audit"]).exits(3), &["1 case not audited"]);
    let files = "{files: {contains: {a.txt: right}}}";
    project.case("right", &format!("oracle: {{copy: right}}\ngraders: [{files}, {{{rubric}}}]"), "");
    let report = audit(&project, 3);
    assert_eq!(summary(&report), [2, 1, 0, 1, 0]);
    says(project.evals(&["check", "--audit"]).exits(3), &["1 case audited, all sound, 1 not audited"]);
    project.case("nothing", "graders: [{files: {absent: [b.txt]}}]", "");
    assert_eq!(summary(&audit(&project, 1)), [3, 1, 1, 1, 1]);
    says(project.evals(&["check", "--audit"]).exits(1), &["2 cases audited, 1 sound, 1 not, 1 not audited"]);
}

#[test]
fn what_cannot_be_read_is_2_and_nothing_is_played() {
    let project = Project::new();
    project.case("a", "oracle: {script: solve.demo.yaml}", "");
    project.write("cases/solve.demo.yaml", "steps: [{sai: done}]");
    project.evals(&["check", "--audit"]).exits(2).says("sai");
    project.evals(&["check", "--format", "json"]).exits(2).says("--audit");
}

#[test]
fn a_report_flags_saturated_broken_and_flaky_cases() {
    let project = Project::new();
    let at = project.path("count").display().to_string();
    // Every other trial of the case fails.
    let line = format!("n=$(cat {at} 2>/dev/null || echo 0); echo $((n + 1)) > {at}; echo answer $((n % 2))");
    project.write("agent.sh", &line);
    let agent = project.path("agent.sh").display().to_string();
    project.harness("turns", &format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin"));
    project.case("easy", "graders: [{output: {contains: answer}}]", "");
    project.case("kept", "kind: regression\ngraders: [{output: {contains: answer}}]", "");
    project.case("hopeless", "graders: [{output: {contains: other}}]", "");
    project.case("turns", "graders: [{output: {contains: answer 1}}]", "");
    let ran = project.evals(&["run", "--harness", "turns", "--trials", "2", "--jobs", "1"]).exits(1);
    let ran = ran.says("saturated, capability cases that every trial passes: easy; make them harder");
    let ran = ran.says("possibly broken: no trial passes hopeless; check with `evals check --audit` whether one can");
    ran.says("flaky, with both passes and fails: turns (turns)");
    let report = project.evals(&["report", "--format", "json"]).json();
    let flags: Vec<(&str, &Value)> = report["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| (case["case"].as_str().unwrap(), &case["flags"]))
        .collect();
    let of = |case: &str| flags.iter().find(|(id, _)| *id == case).unwrap().1.clone();
    assert_eq!(of("easy"), serde_json::json!(["saturated"]));
    assert_eq!(of("kept"), serde_json::json!([]));
    assert_eq!(of("hopeless"), serde_json::json!(["broken"]));
    assert_eq!(of("turns"), serde_json::json!(["flaky"]));
    assert_eq!(report["cases"][0]["kind"], "capability");
}
