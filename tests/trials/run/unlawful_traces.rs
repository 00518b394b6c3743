//! Single traces that break a law of traces: commands that grade refuse them, and commands that display show them.

use serde_json::json;

use crate::project::Project;

const HEADER: &str = r#"{"type":"trace","version":1,"harness":"other","adapter":"acp","capabilities":{"tracing":true,"interaction":false}}"#;
const PROMPT: &str = r#"{"seq":0,"at_ms":0,"type":"message","role":"user","text":"go"}"#;
const CALL: &str = r#"{"seq":1,"at_ms":1,"type":"tool_call","call":"c","step":0,"kind":"execute","name":"rm","input":{"command":"rm"}}"#;
const RESULT: &str = r#"{"seq":2,"at_ms":2,"type":"tool_result","call":"c","status":"ok"}"#;
const ANSWER: &str =
    r#"{"seq":1,"at_ms":1,"type":"permission_response","call":"c","request":"r","outcome":"rejected"}"#;
const STOP: &str = r#"{"seq":3,"at_ms":3,"type":"stop","reason":"end_turn","output":"done"}"#;

fn text(lines: &[&str]) -> String {
    std::iter::once(&HEADER).chain(lines).map(|line| format!("{line}\n")).collect()
}

fn numbered(line: &str, seq: u64) -> String {
    let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
    (event["seq"], event["at_ms"]) = (json!(seq), json!(seq));
    event.to_string()
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_trace_that_breaks_a_law_is_not_judged() {
    let project = Project::new();
    project.case("a", "graders: [{tool-calls: {none: true}}, {output: {equals: done}}]", "");
    let [stop_1, stop_2, stop_4, result_1, result_3, call_3] =
        [(STOP, 1), (STOP, 2), (STOP, 4), (RESULT, 1), (RESULT, 3), (CALL, 3)].map(|(line, seq)| numbered(line, seq));
    let [of_nobody, of_itself] =
        ["nope", "c"].map(|it| CALL.replace("\"step\"", &format!("\"parent\":\"{it}\",\"step\"")));
    let result_2 = numbered(RESULT, 2);
    let twice = CALL.replace("{\"command\":\"rm\"}", "{\"command\":\"rm\",\"command\":\"ls\"}");
    let early = PROMPT.replace("\"at_ms\":0", "\"at_ms\":9");
    for (name, lines, why) in [
        ("gap", vec![PROMPT, RESULT, STOP], "line 3: `seq` is 2 after 0: a line is missing"),
        ("begins", vec![CALL, RESULT, STOP], "line 2: `seq` of the first event is 1, not 0: a line is missing"),
        ("repeats", vec![PROMPT, PROMPT, STOP], "line 3: `seq` is 0 after 0"),
        (
            "orphan",
            vec![PROMPT, &result_1, &stop_2],
            "line 3: a `tool_result` of the call `c`, which has no `tool_call`",
        ),
        ("results", vec![PROMPT, CALL, RESULT, &result_3, &stop_4], "line 5: a second `tool_result` of the call `c`"),
        ("calls", vec![PROMPT, CALL, RESULT, &call_3, &stop_4], "line 5: a second `tool_call` has the id `c`"),
        ("open", vec![PROMPT, CALL, &stop_2], "line 3: the call `c` has no `tool_result`"),
        ("after", vec![PROMPT, &stop_1, &stop_2], "line 4: an event follows the `stop`"),
        ("endless", vec![PROMPT], "line 2: the trace ends without a `stop`"),
        (
            "parent",
            vec![PROMPT, &of_nobody, &result_2, STOP],
            "line 3: `parent` is `nope`, which no `tool_call` before it has",
        ),
        (
            "self",
            vec![PROMPT, &of_itself, &result_2, STOP],
            "line 3: `parent` is `c`, which no `tool_call` before it has",
        ),
        ("answer", vec![PROMPT, ANSWER, &result_2, STOP], "line 3: a `permission_response` to `r`, which no"),
        ("key", vec![PROMPT, &twice, RESULT, STOP], "line 3: an object has the key `command` twice"),
        ("time", vec![&early, CALL, RESULT, STOP], "line 3: `at_ms` is 1 after 9"),
    ] {
        let file = format!("{name}.jsonl");
        project.write(&file, &text(&lines));
        for command in [&["grade", &file][..], &["snapshot", "check", &file], &["snapshot", "accept", &file]] {
            let ran = project.evals(&[command, &["--case", "cases/a.yaml"]].concat()).exits(2);
            assert!(ran.err.contains(&format!("{file}: {why}")), "{name} {command:?}: {ran:?}");
            assert!(!ran.err.contains("evals import"), "{ran:?}");
        }
        project.evals(&["show", &file]).exits(0);
        project.evals(&["import", "--adapter", "acp", &file]).exits(0);
    }
    assert!(!project.path(".evals/runs").exists() || project.runs().is_empty(), "nothing was graded");
    // One unlawful trace among lawful ones stops the command.
    project.write("good.jsonl", &text(&[PROMPT, &stop_1]));
    project.evals(&["grade", "good.jsonl", "gap.jsonl", "--case", "cases/a.yaml"]).exits(2).says("gap.jsonl: line 3");
    project.evals(&["grade", "good.jsonl", "--case", "cases/a.yaml"]).exits(0);
    // A recording that is played is checked too.
    let played = project.path("gap.jsonl");
    project.harness("played", &format!("adapter: replay\nrecording: {}", played.display()));
    let ran = project.evals(&["run", "--harness", "played"]).exits(3);
    ran.says("line 3: `seq` is 2 after 0");
}

#[test]
fn a_second_trace_in_a_file_is_named_by_its_line() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: done}}]", "");
    let one = text(&[PROMPT, &numbered(STOP, 1)]);
    for (file, content, why) in [
        ("two.jsonl", one.repeat(2), "line 4: a second trace begins here; put each trace into a file of its own"),
        // The file ends within a line. The parser's own number of the line is left out.
        ("torn.jsonl", one[..one.len() - 5].to_owned(), "line 3: EOF while parsing a string in column "),
    ] {
        project.write(file, &content);
        for command in [&["grade", "--case", "cases/a.yaml"][..], &["import"]] {
            project.evals(&[command, &[file]].concat()).exits(2).says(&format!("{file}: {why}"));
        }
        project.evals(&["show", file]).exits(2).says(why);
    }
}

#[test]
fn traces_of_other_programs_that_lack_nothing_are_judged() {
    let project = Project::new();
    project.case("a", "graders: [{tool-calls: {max: 1}}, {output: {equals: done}}]", "");
    let unknown = r#"{"seq":3,"at_ms":2,"type":"mood","of":"other"}"#;
    let lines = text(&[PROMPT, CALL, RESULT, unknown, &numbered(STOP, 4)]);
    for (name, lines) in [
        ("unknown.jsonl", lines.clone()),
        ("blank.jsonl", lines.replace('\n', "\n\n")),
        ("untimed.jsonl", lines.replace(r#""at_ms":"#, r#""other":"#)),
    ] {
        project.write(name, &lines);
        project.evals(&["grade", name, "--case", "cases/a.yaml"]).exits(0);
    }
}

#[test]
fn a_trace_without_times_took_an_unknown_time() {
    let project = Project::new();
    project.case("a", "graders: [{budget: {time: 5m}}]", "");
    let whole = text(&[PROMPT, CALL, RESULT, STOP]);
    for (name, trace, code) in [
        ("timed", whole.clone(), 0),
        ("untimed", whole.replace(r#""at_ms":"#, r#""other":"#), 3),
        ("late", whole.replacen(r#""at_ms":0"#, r#""other":0"#, 1), 3),
        ("lacking", whole.replacen(r#""at_ms":2"#, r#""other":2"#, 1), 2),
    ] {
        let file = format!("{name}.jsonl");
        project.write(&file, &trace);
        let ran = project.evals(&["grade", &file, "--case", "cases/a.yaml"]).exits(code);
        if code == 2 {
            ran.says("lacking.jsonl: line 4: an event of type tool_result needs `at_ms`");
        }
    }
}

#[test]
fn a_wire_log_without_times_took_an_unknown_time() {
    let project = Project::new();
    project.case("a", "graders: [{budget: {time: 5m}}]", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let wire = project.of_trial("a/demo/default/1", "wire.jsonl");
    let without = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("at_ms");
        format!("{line}\n")
    };
    let lines: Vec<&str> = wire.lines().collect();
    let all: String = lines.iter().map(|line| without(line)).collect();
    let (first, last) = lines.split_at(lines.len() - 1);
    let one: String = first.iter().map(|line| format!("{line}\n")).chain([without(last[0])]).collect();
    for (name, log, notices) in [("all", all, 0), ("one", one, 1)] {
        let file = format!("{name}.wire.jsonl");
        project.write(&file, &log);
        let trace = project.evals(&["import", "--harness", "demo", &file]).exits(0).out;
        let header: serde_json::Value = serde_json::from_str(trace.lines().next().unwrap()).unwrap();
        assert_eq!(header["timed"], false, "{name}: {trace}");
        assert_eq!(trace.matches("time_order").count(), notices, "{name}: {trace}");
        project.harness(name, &format!("adapter: replay\nrecording: ../{file}"));
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
        project.evals(&["run", "--harness", name]).exits(3);
        assert_eq!(project.trace(&format!("a/{name}/default/1"))[0]["timed"], false, "{name}");
        project.write("imported.jsonl", &trace);
        project.evals(&["grade", "imported.jsonl", "--case", "cases/a.yaml"]).exits(3);
    }
}

#[test]
fn a_stop_without_an_answer_is_judged_by_the_text_after_the_last_call() {
    let project = Project::new();
    project.case("a", "graders: [{output: {not-contains: hunter2}}]", "");
    let said = numbered(r#"{"type":"message","role":"agent","text":"It is hunter2."}"#, 3);
    let stop = numbered(r#"{"type":"stop","reason":"end_turn"}"#, 4);
    let lost = numbered(r#"{"type":"notice","code":"bad_line","text":"x","lost":"line"}"#, 4);
    let (stop_3, stop_5, harmless) = (numbered(&stop, 3), numbered(&stop, 5), said.replace("hunter2", "nothing"));
    for (name, lines, code) in [
        ("said", vec![PROMPT, CALL, RESULT, &said, &stop], 1),
        ("silent", vec![PROMPT, CALL, RESULT, &stop_3], 0),
        ("open", vec![PROMPT, CALL, RESULT, &harmless, &lost, &stop_5], 3),
    ] {
        let file = format!("{name}.jsonl");
        project.write(&file, &text(&lines));
        project.evals(&["grade", &file, "--case", "cases/a.yaml"]).exits(code);
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_single_trace_that_a_limit_ended_fails_as_in_its_run() {
    let project = Project::new();
    project.case("a", "graders: [{tool-calls: {none: true}}]", "");
    project.case("b", "graders: [{tool-calls: {none: true}}]\nlimits: {on-limit: grade}", "");
    for (reason, key) in [("timed_out", "time"), ("idle", "idle"), ("max_turns", "steps"), ("max_budget", "tokens")] {
        for detail in ["", ",\"detail\":\"KEY\""] {
            let detail = detail.replace("KEY", key);
            let stop =
                format!("{{\"seq\":1,\"at_ms\":1,\"type\":\"stop\",\"reason\":\"{reason}\",\"host\":true{detail}}}");
            project.write("limit.jsonl", &text(&[PROMPT, &stop]));
            let ran = project.evals(&["grade", "limit.jsonl", "--case", "cases/a.yaml"]).exits(1);
            ran.says(&format!("limit `{key}"));
            project.evals(&["grade", "limit.jsonl", "--case", "cases/b.yaml"]).exits(0);
            // If the agent chose the end itself, the graders decide.
            project.write("own.jsonl", &text(&[PROMPT, &stop.replace(",\"host\":true", "")]));
            project.evals(&["grade", "own.jsonl", "--case", "cases/a.yaml"]).exits(0);
        }
    }
}
