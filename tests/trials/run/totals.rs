//! Lower bounds, limits of stored traces, and relative paths, through the real program.

use serde_json::{Value, json};

use crate::project::Project;

/// Grades a trace and returns the only result.
fn graded(project: &Project, case: &str, trace: &str, code: i32) -> Value {
    project.write("case.yaml", case);
    project.write("t.jsonl", trace);
    let ran = project.evals(&["grade", "t.jsonl", "--case", "case.yaml", "--format", "json"]);
    ran.exits(code).json()["results"][0].clone()
}

fn recorded(name: &str) -> String {
    let file = format!("{}/tests/recordings/{name}.wire.jsonl", env!("CARGO_MANIFEST_DIR"));
    let project = Project::new();
    project.evals(&["import", "--adapter", "acp", &file]).exits(0).out
}

#[test]
fn an_agent_that_reports_a_part_keeps_no_budget() {
    let project = Project::new();
    for (name, tokens) in [("opencode-acp/full", 1577), ("gemini-acp/full", 4671), ("claude-agent-acp/subagent", 26308)]
    {
        let trace = recorded(name);
        let case = |most: u64| format!("prompt: go\ngraders: [{{budget: {{tokens: {most}}}}}]\n");
        let result = graded(&project, &case(1_000_000), &trace, 3);
        assert_eq!(result["verdict"], "ungraded", "{name} {result}");
        assert_eq!(result["metrics"]["total_tokens"], tokens, "{name}");
        assert!(result["metrics"]["lower_bounds"].as_array().unwrap().contains(&json!("total_tokens")), "{name}");
        assert_eq!(graded(&project, &case(tokens - 1), &trace, 1)["verdict"], "fail", "{name}");
    }
    // This session has one step, whose figures are complete.
    let case = "prompt: go\ngraders: [{budget: {tokens: 1577}}]\n";
    assert_eq!(graded(&project, case, &recorded("opencode-acp/reject"), 0)["verdict"], "pass");
}

const TRACE: &str = r#"{"type":"trace","version":1,"adapter":"acp","capabilities":{"tracing":true,"interaction":true},"model":{}}
{"seq":0,"at_ms":0,"type":"message","role":"user","text":"go"}
{"seq":1,"at_ms":5000,"type":"tool_call","call":"c","step":0,"kind":"read"}
{"seq":2,"at_ms":65000,"type":"tool_result","call":"c","status":"ok"}
{"seq":3,"at_ms":95000,"type":"message","role":"agent","text":"done"}
{"seq":4,"at_ms":100000,"type":"stop","reason":"end_turn","output":"done"}
"#;

#[test]
fn failed_calls_are_unknown_if_the_engine_ended_a_call_before_the_agent() {
    let project = Project::new();
    let case = |cel: &str| format!("prompt: go\ngraders: [{{expr: {{cel: '{cel}'}}}}]\n");
    let none_failed = case("metrics.failed_calls == 0");
    let whole = graded(&project, &none_failed, TRACE, 0);
    assert_eq!(whole["metrics"]["failed_calls"], 0, "{whole}");
    let failed = TRACE.replace(r#""status":"ok""#, r#""status":"error""#);
    assert_eq!(graded(&project, &none_failed, &failed, 1)["metrics"]["failed_calls"], 1);
    // Too many calls were open: the agent's end of this one is in the wire log only.
    let cut = TRACE
        .replace(r#""type":"tool_result","call":"c","status":"ok""#, r#""type":"notice","code":"too_many_open_calls","text":"x""#)
        .replace(r#""seq":4"#, r#""seq":5"#)
        .replace(
            r#"{"seq":3,"#,
            "{\"seq\":3,\"at_ms\":65000,\"type\":\"tool_result\",\"call\":\"c\",\"status\":\"unfinished\",\"host\":true}\n{\"seq\":4,",
        );
    let result = graded(&project, &none_failed, &cut, 3);
    assert_eq!(
        (&result["verdict"], &result["metrics"]["failed_calls"]),
        (&json!("ungraded"), &json!(null)),
        "{result}"
    );
    assert_eq!(graded(&project, &case("metrics.tool_calls == 1"), &cut, 0)["verdict"], "pass");
    // A success with the exit code of a failure is one of the two.
    let torn = TRACE.replace(r#""status":"ok""#, r#""status":"ok","exit_code":1"#);
    assert_eq!(graded(&project, &none_failed, &torn, 3)["metrics"]["failed_calls"], json!(null));
    let whole = TRACE.replace(r#""status":"ok""#, r#""status":"ok","exit_code":0"#);
    assert_eq!(graded(&project, &none_failed, &whole, 0)["metrics"]["failed_calls"], 0);
    // An agent that reports failed commands as successes.
    let hides = |trace: &str| trace.replace(r#""model":{}"#, r#""model":{},"unshown_outcomes":["execute"]"#);
    let command = |trace: &str| hides(trace).replace(r#""kind":"read""#, r#""kind":"execute""#);
    assert_eq!(graded(&project, &none_failed, &hides(TRACE), 0)["metrics"]["failed_calls"], 0);
    assert_eq!(graded(&project, &none_failed, &command(TRACE), 3)["metrics"]["failed_calls"], json!(null));
    assert_eq!(graded(&project, &none_failed, &command(&whole), 0)["metrics"]["failed_calls"], 0);
}

#[test]
fn a_stored_trace_keeps_the_limits_of_time() {
    let project = Project::new();
    for (limits, verdict, warning) in [
        ("time: 100s, idle: 30s", "pass", None),
        ("time: 99s", "fail", Some("limit `time` is 99s and was exceeded: 100s")),
        // A minute with an open call is no idle time.
        ("idle: 29s", "fail", Some("limit `idle` is 29s and was exceeded: 30s")),
        ("time: 1s, on-limit: grade", "pass", Some("limit `time`")),
        ("tokens: 5", "pass", Some("limit `tokens` is 5 and could not be checked")),
    ] {
        let case = format!("prompt: go\nlimits: {{{limits}}}\ngraders: [{{stop: {{reason: [end_turn]}}}}]\n");
        let result = graded(&project, &case, TRACE, i32::from(verdict == "fail"));
        assert_eq!(result["verdict"], verdict, "{limits} {result}");
        assert_eq!(result["warnings"].as_array().is_some_and(|it| !it.is_empty()), warning.is_some(), "{result}");
        assert!(result["warnings"].to_string().contains(warning.unwrap_or_default()), "{limits} {result}");
    }
    let untimed = TRACE.replace(r#""version":1"#, r#""version":1,"timed":false"#);
    let case = "prompt: go\nlimits: {time: 1s, idle: 1s}\ngraders: [{stop: {reason: [end_turn]}}]\n";
    let result = graded(&project, case, &untimed, 0);
    let codes: Vec<&str> = result["warnings"].as_array().unwrap().iter().filter_map(|it| it["code"].as_str()).collect();
    assert_eq!(codes, ["limit_unknown", "limit_unknown"], "{result}");
}

#[test]
fn a_time_in_which_the_engine_was_stopped_is_in_no_report() {
    let project = Project::new();
    let reports = ["--reporter", "junit=j.xml", "--reporter", "html=h.html"];
    for (stopped, is_known) in [("", true), (r#","stopped_ms":90000"#, false)] {
        let trace = TRACE.replace(r#""model":{}"#, &format!(r#""model":{{}}{stopped}"#));
        let case = "prompt: go\ngraders: [{expr: {cel: 'metrics.duration_ms < 200000'}}]\n";
        let result = graded(&project, case, &trace, if is_known { 0 } else { 3 });
        assert_eq!(result["metrics"]["duration_ms"], 100_000, "{result}");
        assert_eq!(result["verdict"], if is_known { "pass" } else { "ungraded" }, "{result}");
        project.write("case.yaml", "prompt: go\ngraders: [{output: {equals: other}}]\n");
        project.write("u.jsonl", &trace);
        let args = [&["grade", "t.jsonl", "u.jsonl", "--case", "case.yaml"][..], &reports].concat();
        let ran = project.evals(&args).exits(1);
        assert_eq!(ran.out.contains("1m40s"), is_known, "{}", ran.out);
        assert_eq!(project.read("j.xml").contains("time=\"200.000\""), is_known, "{stopped}");
        assert_eq!(project.read("h.html").contains("Time per trial"), is_known, "{stopped}");
    }
}

#[test]
fn a_limit_that_is_never_shown_is_told() {
    let project = Project::new();
    project.case("a", "limits: {tokens: 5, steps: 3}\nharnesses: [demo-text]", "steps: [{say: done}]");
    let ran = project.evals(&["check"]).exits(0);
    let ran = ran.says("case `a`: the limit `steps` cannot be checked with harness `demo-text`");
    ran.says("the limit `tokens` cannot be checked with harness `demo-text`, which reports no usage");
    // A rule that is only called so reports none.
    for (name, emits, is_told) in
        [("quiet", "message: {text: line.text}", true), ("counts", "usage: {input: line.n}", false)]
    {
        let rule = format!("{{name: usage, when: line.kind == 'x', emit: {{{emits}}}}}");
        project
            .harness(name, &format!("adapter: json-stream\ncommand: [sh, -c, 'true', '{{prompt}}']\nstream: [{rule}]"));
        project.case("b", &format!("limits: {{tokens: 5}}\nharnesses: [{name}]"), "");
        let said = project.evals(&["check"]).exits(0).err;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said.contains(&format!("`{name}`, which reports no usage")), is_told, "{said}");
    }
    project.evals(&["run", "cases/a.yaml"]).exits(0);
    let warnings = project.result("a/demo-text/default/1")["warnings"].to_string();
    assert!(warnings.contains("limit `tokens`") && warnings.contains("limit `steps`"), "{warnings}");
}

#[test]
fn files_of_a_suite_and_of_a_named_grader_count_from_their_own_file() {
    let project = Project::with(&[
        ("cases/suite.yaml", "graders: [{files: {equals: {out.txt: golden.txt}}}, {use: same}]\n"),
        ("cases/golden.txt", "hello"),
        ("cases/sub/golden.txt", "other"),
        ("graders/same.yaml", "description: d\ngraders: [{files: {equals: {out.txt: own.txt}}}]\n"),
        ("graders/own.txt", "hello"),
        ("cases/sub/own.txt", "other"),
        ("cases/sub/a.yaml", "prompt: go\n"),
        ("cases/sub/a.demo.yaml", "steps: [{write: {path: out.txt, text: hello}}, {say: done}]\n"),
    ]);
    project.evals(&["check"]).exits(0);
    project.evals(&["run"]).exits(0);
    project.evals(&["grade", "latest"]).exits(0);
    for (path, place) in [("cases/golden.txt", "cases/suite.yaml:1"), ("graders/own.txt", "graders/same.yaml:2")] {
        std::fs::remove_file(project.path(path)).unwrap();
        project.evals(&["check"]).exits(2).says("does not exist").says(place);
        project.write(path, "hello");
    }
    project.write("cases/sub/a.yaml", "prompt: go\ngraders:\n  - output: {json-schema: gone.json}\n");
    project.evals(&["check"]).exits(2).says("gone.json").says("cases/sub/a.yaml:3");
}

#[test]
fn files_that_are_no_cases_are_named() {
    let project = Project::with(&[
        ("cases/upgrade-to-2.0.yaml", "prompt: go\ngraders: [{stop: {reason: [end_turn]}}]\n"),
        ("cases/upgrade-to-2.0.demo.yaml", "steps: [{say: done}]\n"),
        ("cases/gone.demo.yaml", "steps: []\n"),
        ("cases/b.yml", "x: 1\n"),
        ("cases/c.YAML", "x: 1\n"),
        ("cases/.hidden.yaml", "prompt: go\n"),
        ("cases/sub/.hidden.yml", "x: 1\n"),
        ("cases/.git/config.yaml", "x: 1\n"),
        ("cases/fixture/.tool.yaml", "x: 1\n"),
        ("cases/.a.yaml.swp", "x: 1\n"),
        ("cases/d.yaml", "prompt: go\nworkspace: {copy: fixture}\ngraders: [{files: {equals: {e: e.golden.yaml}}}]\n"),
        ("cases/d.demo.yaml", "steps: [{write: {path: e, text: 'x: 1\n'}}]\n"),
        ("cases/d.notes.yaml", "x: 1\n"),
        ("cases/e.golden.yaml", "x: 1\n"),
        ("cases/fixture/compose.yml", "x: 1\n"),
        ("cases/fixture/a.b.yaml", "x: 1\n"),
    ]);
    for command in [&["check"][..], &["list", "cases"], &["run"]] {
        let ran = project.evals(command);
        for stray in ["gone.demo.yaml", "b.yml", "c.YAML", "d.notes.yaml", ".hidden.yaml", "sub/.hidden.yml"] {
            assert!(ran.err.contains(&format!("`cases/{stray}` is not read")), "{command:?} {stray}: {}", ran.err);
        }
        for own in
            ["e.golden.yaml", "compose.yml", "a.b.yaml", "d.demo.yaml", "2.0", "config.yaml", ".tool.yaml", ".swp"]
        {
            assert!(!ran.err.contains(&format!("{own}` is not read")), "{command:?} {own}: {}", ran.err);
        }
    }
    assert_eq!(project.result("upgrade-to-2.0/demo/default/1")["verdict"], "pass");
}

#[test]
fn a_threshold_of_zero_is_refused() {
    let project = Project::new();
    project.case("a", "pass: {threshold: 0}", "");
    project.evals(&["check"]).exits(2).says("a threshold of 0 asserts nothing").says("cases/a.yaml:2");
}
