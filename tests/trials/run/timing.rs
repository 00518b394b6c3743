//! The times in `duration_ms` and `start_ms`, for agents with a protocol and for commands that run to their end.

use serde_json::Value;

use crate::project::Project;

/// The start-up time of every agent, in milliseconds.
const START: u64 = 500;

fn project() -> Project {
    let project = Project::new();
    project.write("stream.sh", "sleep 0.5; echo '{\"t\": \"up\"}'; echo '{\"t\": \"end\", \"say\": \"42\"}'\n");
    project.write("plain.sh", "sleep 0.5; echo 42\n");
    project.write("acp.py", &format!("import time\ntime.sleep(0.5)\n{}", include_str!("acp_agent.py")));
    let at = |file: &str| project.path(file).display().to_string();
    let stream = "stream:\n  - {when: line.t == 'up', ignore: true}\n  - {when: line.t == 'end', emit: [{message: {text: line.say}}, {stop: {reason: end_turn}}]}";
    let command = format!("command: [sh, '{}', '{{prompt}}']", at("stream.sh"));
    project.harness("told", &format!("adapter: json-stream\n{command}\nstarted-by: line.t == 'up'\n{stream}"));
    project.harness("untold", &format!("adapter: json-stream\n{command}\n{stream}"));
    project.harness("plain", &format!("adapter: output-only\ncommand: [sh, '{}', '{{prompt}}']", at("plain.sh")));
    project.harness("talks", &format!("adapter: acp\ncommand: [python3, '{}']", at("acp.py")));
    project.write("cases/a.yaml", "prompt: say(42)\ngraders: [{output: {contains: '42'}}]\n");
    project
}

fn figures(project: &Project, harness: &str) -> (Option<u64>, u64) {
    let metrics = project.result(&format!("a/{harness}/default/1"))["metrics"].clone();
    (metrics.get("start_ms").and_then(Value::as_u64), metrics["duration_ms"].as_u64().unwrap())
}

#[test]
fn start_up_stands_beside_the_time_where_it_can_be_told() {
    let project = project();
    let args =
        ["run", "--harness", "told", "--harness", "untold", "--harness", "plain", "--harness", "talks", "--jobs", "1"];
    let ran = project.evals(&args).exits(0);
    for harness in ["told", "talks"] {
        let (start, duration) = figures(&project, harness);
        assert!(start.is_some_and(|start| start >= START), "{harness}: {start:?}");
        let whole = project.trace(&format!("a/{harness}/default/1")).last().unwrap()["at_ms"].as_u64().unwrap();
        assert_eq!(duration, whole - start.unwrap(), "{harness}");
    }
    for harness in ["untold", "plain"] {
        let (start, duration) = figures(&project, harness);
        assert_eq!(start, None, "{harness}");
        assert!(duration >= START, "{harness}: {duration}");
    }
    // A start of a tenth of a second or more is shown beside the time.
    for (harness, is_shown) in [("told", true), ("talks", true), ("plain", false)] {
        let shown = project.evals(&["show", "latest", &format!("a/{harness}")]).exits(0).out;
        assert_eq!(shown.contains("ms, after a start of "), is_shown, "{shown}");
    }
    ran.says("times of plain, untold include the start of the program, those of the others do not");
    // The wire log contains the start-up, and stored trials have the same figures when they are graded again.
    let wire = format!("{}/trials/a/told/default/1/wire.jsonl", project.run_folder());
    let text = project.of_trial("a/told/default/1", "trace.jsonl");
    assert_eq!(project.evals(&["import", "--harness", "told", &wire]).exits(0).out, text);
    let run = project.runs()[0].clone();
    let again = project.evals(&["grade", &run, "--format", "json"]).exits(0).json();
    let graded = again["results"].as_array().unwrap();
    for result in graded {
        let before = figures_of(&project, result["harness"].as_str().unwrap(), &run);
        assert_eq!(result["metrics"]["duration_ms"], before["duration_ms"], "{result}");
        assert_eq!(result["metrics"].get("start_ms"), before.get("start_ms"), "{result}");
    }
    assert_eq!(graded.len(), 4);
}

fn figures_of(project: &Project, harness: &str, run: &str) -> Value {
    let path = format!(".evals/runs/{run}/trials/a/{harness}/default/1/result.json");
    serde_json::from_str::<Value>(&project.read(&path)).unwrap()["metrics"].clone()
}

#[test]
fn the_limit_of_time_counts_the_start_up_of_every_agent() {
    let project = project();
    for harness in ["told", "untold", "plain", "talks"] {
        project.evals(&["run", "--harness", harness, "--limit", "time=300ms", "--label", harness]);
        let folder = project.run_named(harness);
        let result: Value =
            serde_json::from_str(&project.read(&format!("{folder}/trials/a/{harness}/default/1/result.json"))).unwrap();
        // An agent with a protocol was not prompted yet, and so did not begin its case.
        let verdict = if harness == "talks" { "errored" } else { "fail" };
        assert_eq!(result["verdict"], verdict, "{harness}: {result}");
    }
}

#[test]
fn the_time_of_a_trial_in_which_the_engine_was_stopped_is_not_in_the_median() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let medians = || {
        let report = project.evals(&["report", "latest", "--format", "json"]).exits(0).json().to_string();
        let medians = report.split("\"median_duration_ms\":").skip(1);
        medians.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).count()
    };
    assert!(medians() > 0);
    let folder = project.run_folder();
    project.without_digests(&folder);
    let mut result = project.result("a/demo/default/1");
    result["warnings"] = serde_json::json!([{"code": "engine_stopped", "ms": 4000}]);
    project.write(&format!("{folder}/trials/a/demo/default/1/result.json"), &result.to_string());
    project.write(&format!("{folder}/results.jsonl"), &format!("{result}\n"));
    assert_eq!(medians(), 0);
}
