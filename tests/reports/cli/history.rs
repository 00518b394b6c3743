//! `evals history`: the figures of cells over the runs of a folder.

use serde_json::Value;

use crate::project::Project;

const PASS: &str = "steps: [{say: done}]";
const FAIL: &str = "steps: [{stop: refusal}]";

fn points(project: &Project, case: &str) -> Vec<Value> {
    let json = project.evals(&["history", case, "--format", "json"]).exits(0).json();
    let cell = json["cells"][0].clone();
    assert_eq!((&cell["case"], &cell["harness"], &cell["arm"]), (&case.into(), &"demo".into(), &"default".into()));
    cell["points"].as_array().unwrap().clone()
}

#[test]
fn scores_of_the_runs_stand_in_their_order_with_what_changed_between_them() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    project.evals(&["run", "--trials", "2", "--label", "first"]).exits(0);
    project.evals(&["run", "--label", "second"]).exits(0);
    // A changed script of the agent is part of the case.
    project.case("a", "", FAIL);
    project.evals(&["run", "--label", "third"]).exits(1);
    // A derived run is no point.
    project.evals(&["grade", "third"]).exits(1);
    let points = points(&project, "a");
    let of = |key: &str| points.iter().map(|point| point[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("score"), [1.0.into(), 1.0.into(), Value::from(0.0)]);
    assert_eq!(of("passes"), [2, 1, 0].map(Value::from));
    assert_eq!(of("trials"), [2, 1, 1].map(Value::from));
    assert_eq!(points[0]["breaks"], serde_json::json!([]));
    assert_eq!(points[1]["breaks"], serde_json::json!([]));
    assert!(points.iter().all(|point| point["duration_ms"].is_u64() && point["at"].is_string()), "{points:?}");
    let case = project.read("cases/a.yaml");
    project.write("cases/a.yaml", &format!("{case}tags: [changed]\n"));
    project.evals(&["run", "--case", "a"]).exits(1);
    assert_eq!(self::points(&project, "a").last().unwrap()["breaks"], serde_json::json!(["case"]));
    let table = project.evals(&["history"]).exits(0);
    table.says("|0").says("case changed: a (demo)").says("b");
}

#[test]
fn another_version_of_the_agent_is_a_mark_and_an_errored_run_has_no_score() {
    let project = Project::new();
    project.case("a", "", PASS);
    let agent = |version: &str| {
        project.write("agent.sh", &format!("#!/bin/sh\necho done\nexit {}\n", if version == "broken" { 1 } else { 0 }));
        let path = project.path("agent.sh");
        let version = if version == "broken" { String::new() } else { format!("version: [echo, '{version}']\n") };
        project.harness("own", &format!("adapter: output-only\ncommand: [sh, {}]\n{version}", path.display()));
    };
    for (version, code) in [("1.0", 0), ("1.0", 0), ("broken", 3), ("2.0", 0)] {
        agent(version);
        assert_eq!(project.evals(&["run", "--harness", "own"]).code, code, "{version}");
    }
    let json = project.evals(&["history", "a", "--format", "json"]).exits(0).json();
    let points = json["cells"][0]["points"].as_array().unwrap();
    let breaks: Vec<String> = points.iter().map(|point| point["breaks"].to_string()).collect();
    assert_eq!(breaks, ["[]", "[]", "[]", "[\"agent\"]"]);
    assert!(points[2].get("score").is_none() && points[2]["passes"] == 0 && points[2]["trials"] == 1);
    project.evals(&["history"]).exits(0).says("x marks a run in which the cell has no score");
}

#[test]
fn an_unknown_case_and_a_folder_without_runs_are_told() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["history"]).exits(2).says("there are no runs in");
    project.evals(&["run"]).exits(0);
    project.evals(&["history", "zz"]).exits(2).says("has a case `zz`");
    project.evals(&["history", "a*"]).exits(0);
}
