//! Limits of a case: how they end the session, and how the trial is judged then.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::laws::assert_lawful;
use crate::project::{Project, lines, of_type, wait_for};

const CALLS: &str =
    "steps: [{run: {command: 'true'}}, {run: {command: 'true'}}, {run: {command: 'true'}}, {sleep: 10m}]";

/// Runs one case under a limit: with `fail`, and with `grade` and a grader that requires the limit's stop.
fn hit(limits: &str, script: &str, reason: &str, detail: &str) {
    let project = Project::new();
    let turns = if script.starts_with("turns") { "turns: [one, two]\n" } else { "" };
    let graders = format!("{turns}graders: [{{stop: {{reason: [{reason}]}}}}]");
    project.case("fail", &format!("limits: {{{limits}}}\n{graders}"), script);
    project.case("grade", &format!("limits: {{{limits}, on-limit: grade}}\n{graders}"), script);
    project.evals(&["run"]).exits(1);
    for (case, verdict, score) in [("fail", "fail", 0.0), ("grade", "pass", 1.0)] {
        let result = project.result(&format!("{case}/demo/default/1"));
        assert_eq!((&result["verdict"], &result["score"]), (&json!(verdict), &json!(score)), "{result}");
        assert_eq!(result["stop"]["reason"], reason, "{result}");
        assert!(result["stop"]["detail"].as_str().unwrap().contains(detail), "{result}");
        assert!(result["error"].is_null());
        let trace = project.of_trial(&format!("{case}/demo/default/1"), "trace.jsonl");
        assert_lawful(&trace);
        let events = project.trace(&format!("{case}/demo/default/1"));
        assert_eq!(of_type(&events, "stop")[0]["host"], true, "the engine ended it");
    }
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn time() {
    hit("time: 5s", "steps: [{sleep: 10m}]", "timed_out", "time");
}

#[test]
fn idle() {
    hit("idle: 300ms", "steps: [{say: hm}, {sleep: 10m}]", "idle", "idle");
}

/// Without the gateway, only the agent's own lines show that its model's service refuses it.
#[test]
fn a_request_that_is_repeated_until_the_time_is_over_is_a_warning() {
    let project = Project::new();
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "tools": []});
    let retry = json!({"type": "system", "subtype": "api_retry", "session_id": "s", "attempt": 3, "max_retries": 10,
        "error_status": 401, "error": "authentication_failed"});
    let says = |text: &str| {
        json!({"type": "assistant", "session_id": "s", "message": {"role": "assistant", "id": "m",
            "content": [{"type": "text", "text": text}]}})
    };
    for (name, lines) in [("refused", vec![&init, &retry]), ("answered", vec![&init, &retry, &says("Well.")])] {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        project.write(&format!("{name}.jsonl"), &lines);
        let lines = project.path(&format!("{name}.jsonl")).canonicalize().unwrap();
        let command = format!("command: [sh, -c, \"cat '{}'; sleep 60\"]", lines.display());
        project.harness(name, &format!("adapter: claude-code-stream\n{command}\nprompt-via: stdin"));
    }
    project.case("a", "harnesses: [refused, answered]\nlimits: {time: 2s}", "");
    project.evals(&["run"]).exits(1);
    let warnings = |name: &str| project.result(&format!("a/{name}/default/1"))["warnings"].to_string();
    assert!(warnings("refused").contains("authentication_failed, status 401"), "{}", warnings("refused"));
    assert!(!warnings("answered").contains("repeated_request"), "{}", warnings("answered"));
}

#[test]
fn steps() {
    hit("steps: 2", CALLS, "max_turns", "steps");
}

#[test]
fn tool_calls() {
    hit("tool-calls: 2", CALLS, "max_turns", "tool-calls");
}

#[test]
fn a_limit_that_is_reached_and_not_exceeded_holds() {
    let project = Project::new();
    let script = "steps: [{run: {command: 'true'}}, {run: {command: 'true'}}, {say: done}, {usage: {input-tokens: 90, output-tokens: 10, cost-usd: 0.5}}]";
    project.case("a", "limits: {steps: 2, tool-calls: 2, tokens: 100, cost-usd: 0.5, time: 1m}", script);
    project.evals(&["run"]).exits(0);
}

#[test]
fn cost() {
    let script = "turns:
  - steps: [{say: one}, {usage: {input-tokens: 9, output-tokens: 1, cost-usd: 0.5}}]
  - steps: [{sleep: 10m}]";
    hit("cost-usd: 0.10", script, "max_budget", "cost-usd");
}

#[test]
fn figures_that_come_with_the_last_answer_fail_a_trial_and_leave_its_stop() {
    for (limits, key, harness) in [
        ("cost-usd: 0.10", "cost-usd", "demo-stream"),
        ("tokens: 99", "tokens", "demo"),
        ("tokens: 99", "tokens", "demo-stream"),
    ] {
        let project = Project::new();
        let script = "steps: [{say: done}, {usage: {input-tokens: 90, output-tokens: 10, cost-usd: 0.5}}]";
        project.case("fail", &format!("limits: {{{limits}}}"), script);
        project.case("grade", &format!("limits: {{{limits}, on-limit: grade}}"), script);
        project.evals(&["run", "--harness", harness]).exits(1);
        let result = project.result(&format!("fail/{harness}/default/1"));
        assert_eq!((&result["verdict"], &result["score"]), (&json!("fail"), &json!(0.0)));
        assert_eq!(result["stop"]["reason"], "end_turn");
        assert!(result["warnings"].to_string().contains(key), "{result}");
        assert_eq!(project.result(&format!("grade/{harness}/default/1"))["verdict"], "pass");
    }
}

#[test]
fn no_prompt_is_sent_after_an_answer_that_exceeds_a_limit() {
    let project = Project::new();
    let script = "turns:
  - steps: [{usage: {input-tokens: 90, output-tokens: 10}}, {say: one}]
  - steps: [{write: {path: b.txt, text: late}}, {say: two}]";
    let keys = "limits: {tokens: 99, on-limit: grade}\ngraders: [{files: {absent: [b.txt]}}]";
    project.write("cases/a.yaml", &format!("turns: [first, second]\n{keys}\n"));
    project.write("cases/a.demo.yaml", script);
    project.evals(&["run"]).exits(0).says("in 1 trial not every prompt was sent");
    let result = project.result("a/demo/default/1");
    assert_eq!(result["stop"]["reason"], "max_budget", "{result}");
    let wire = project.of_trial("a/demo/default/1", "wire.jsonl");
    assert!(!wire.contains("second"), "{wire}");
    // No prompt is running, so the engine cancels nothing and the agent exits without a signal.
    assert!(!wire.contains("session/cancel") && wire.contains("close_stdin"), "{wire}");
    assert_eq!(result["stop"]["exit"]["code"], 0, "{result}");
    let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "prompts_not_sent").unwrap();
    assert_eq!((&told["sent"], &told["planned"]), (&1.into(), &2.into()), "{told}");
}

#[test]
fn a_pass_by_a_limit_that_the_case_does_not_have_any_more_is_ungraded() {
    let project = Project::new();
    let case = |turns: &str, limits: &str| {
        let graders = "workspace: {files: {a.txt: one}}\ngraders: [{files: {contains: {a.txt: two}}}]";
        project.write("cases/a.yaml", &format!("turns: [{turns}]\nlimits: {{{limits}}}\n{graders}\n"));
    };
    let script = "steps: [{edit: {path: a.txt, old: one, new: two}}, {read: {path: a.txt}}, {read: {path: a.txt}}]\n";
    project.write("cases/a.demo.yaml", script);
    case("one, two", "tool-calls: 1, on-limit: grade");
    project.evals(&["run", "--label", "first"]).exits(0);
    for (turns, limits, code) in [
        ("one, two", "tool-calls: 1, on-limit: grade", 0),
        // The limit would have ended this session, too.
        ("one, two, three", "tool-calls: 1, on-limit: grade", 0),
        ("one, two, three", "tool-calls: 100, on-limit: grade", 3),
        ("one, two", "on-limit: grade", 3),
    ] {
        case(turns, limits);
        let graded = project.evals(&["grade", "first", "--format", "json"]).exits(code).json();
        let told = graded["results"][0]["warnings"].to_string().contains("would have let the agent go on");
        assert_eq!(told, code == 3, "{turns} {limits} {graded}");
    }
}

#[test]
fn the_command_line_overrides_a_limit() {
    let project = Project::new();
    project.case("a", "limits: {time: 5m}", "steps: [{sleep: 10m}]");
    project.evals(&["run", "--limit", "time=5s"]).exits(1);
    assert_eq!(project.result("a/demo/default/1")["stop"]["reason"], "timed_out");
}

/// Stops the engine of a run for some seconds as soon as files exist. Returns its exit code.
fn run_and_stop(project: &Project, begun: &[&str], after: f64, seconds: f64) -> Option<i32> {
    let mut command = project.command(&["run", "--harness", "sh", "--jobs", "8"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the agents", || begun.iter().all(|name| project.path(name).exists()));
    std::thread::sleep(Duration::from_secs_f64(after));
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    child.wait().unwrap().code()
}

/// Writes an agent that notes its prompt beside the case, and answers after some seconds unless the prompt is `quick`.
fn slow_agent(project: &Project, seconds: f64) {
    let began = project.path("began-").display().to_string();
    let script = format!("[ \"$1\" = quick ] || {{ touch \"{began}$1\"; sleep {seconds}; }}; echo x > made; echo ok\n");
    project.write("agent.sh", &script);
    let agent = project.path("agent.sh").display().to_string();
    project.harness("sh", &format!("adapter: output-only\ncommand: [sh, '{agent}', '{{prompt}}']"));
}

#[test]
fn an_agent_may_have_worked_while_the_engine_was_stopped() {
    let project = Project::new();
    slow_agent(&project, 1.0);
    let made = "graders: [{files: {exists: [made]}}]";
    let began = project.path("began-grader").display().to_string();
    let command = format!("graders: [{{command: {{run: \"touch '{began}'; sleep 1\", timeout: 3s}}}}]");
    for (case, prompt, keys) in [
        ("time", "time", format!("limits: {{time: 3s}}\n{made}")),
        ("idle", "idle", format!("limits: {{idle: 3s}}\n{made}")),
        ("kept", "kept", format!("limits: {{time: 1m}}\n{made}")),
        ("budget", "budget", "graders: [{budget: {time: 3s}}]".to_owned()),
        ("grader", "quick", command),
    ] {
        project.write(&format!("cases/{case}.yaml"), &format!("prompt: {prompt}\n{keys}\n"));
    }
    let begun = ["began-time", "began-idle", "began-kept", "began-budget", "began-grader"];
    assert_eq!(run_and_stop(&project, &begun, 0.0, 4.0), Some(3));
    let verdicts =
        [("time", "errored"), ("idle", "errored"), ("kept", "pass"), ("budget", "ungraded"), ("grader", "pass")];
    for (case, verdict) in verdicts {
        let result = project.result(&format!("{case}/sh/default/1"));
        assert_eq!(result["verdict"], verdict, "{result}");
        if verdict == "errored" {
            assert_eq!(result["error"]["category"], "internal", "{result}");
        }
        if case != "grader" {
            let warnings = result["warnings"].as_array().unwrap();
            let told = warnings.iter().find(|warning| warning["code"] == "engine_stopped").unwrap();
            assert!(told["ms"].as_u64().unwrap() >= 3900, "{told}");
            assert!(result["metrics"]["duration_ms"].as_u64().unwrap() >= 3900, "{result}");
        }
    }
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    for (case, verdict) in verdicts {
        let result = again["results"].as_array().unwrap().iter().find(|result| result["case"] == case).unwrap();
        assert_eq!(result["verdict"], verdict, "{result}");
    }
}

#[test]
fn an_answer_that_a_busy_engine_reads_after_a_limit_is_too_late() {
    let project = Project::new();
    slow_agent(&project, 2.6);
    project.write("cases/a.yaml", "prompt: idle\nlimits: {idle: 2s}\ngraders: [{files: {exists: [made]}}]\n");
    // A stop of less than 2 s is no stop.
    assert_eq!(run_and_stop(&project, &["began-idle"], 1.3, 1.5), Some(1));
}

#[test]
fn what_an_agent_writes_to_standard_error_ends_an_idle_time() {
    let project = Project::new();
    let script = "for n in 1 2 3 4 5 6 7 8; do printf . >&2; sleep 0.4; done; echo done";
    project.harness("sh", &format!("adapter: output-only\ncommand: [sh, -c, '{script}', '{{prompt}}']"));
    project.case("a", "limits: {idle: 2s}\ngraders: [{output: {contains: done}}]", "");
    project.evals(&["run", "--harness", "sh"]).exits(0);
    // The trace does not show when the agent wrote it.
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(0).json();
    assert!(again["results"][0]["warnings"].to_string().contains("limit_unknown"), "{again}");
}

#[test]
fn the_wire_log_shows_what_came_before_and_after_each_signal() {
    let project = Project::new();
    let script = "trap \"echo late\" TERM; while :; do sleep 0.1; done";
    let keys = format!("adapter: output-only\ncommand: [sh, -c, '{script}', '{{prompt}}']\ntimeouts: {{grace: 100ms}}");
    project.harness("sh", &keys);
    project.case("a", "limits: {time: 500ms}", "");
    project.evals(&["run", "--harness", "sh"]).exits(1);
    let wire = lines(&project.of_trial("a/sh/default/1", "wire.jsonl"));
    let signal = |name: &str| wire.iter().position(|line| line["line"].to_string().contains(name)).unwrap();
    let (term, kill) = (signal("SIGTERM"), signal("SIGKILL"));
    let late = wire.iter().position(|line| line["line"] == "late").unwrap();
    assert!(term < late && late < kill, "{wire:?}");
    let times: Vec<u64> = wire.iter().filter_map(|line| line["at_ms"].as_u64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let ms = |at: usize| wire[at]["at_ms"].as_u64().unwrap();
    assert!(ms(kill) - ms(term) >= 1900 && ms(late) - ms(term) < 1900, "{wire:?}");
}
