//! Sessions with a lost line, or with unexpected ids: no grader passes because of missing events.

use crate::project::{Project, of_type};

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","model":"m","tools":[]}"#;
const END: &str =
    r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","num_turns":1}"#;

/// Returns the grades of a session: the outcomes of forbid, none, require, errors, output and a grader of the
/// workspace.
fn says(adapter: &str, lines: &str) -> (Vec<String>, Project) {
    let project = Project::new();
    project.write("session.txt", lines);
    let session = project.path("session.txt");
    let harness = match adapter {
        "json-stream" => {
            "stream:
  - {when: line.k == 'c', emit: {tool-call: {id: line.id, name: line.name, input: line.input, parent: line.parent}}}
  - {when: line.k == 'r', emit: {tool-result: {id: line.id, status: line.status}}}
  - {when: line.k == 'end', emit: [{message: {text: \"'done'\"}}, {stop: {reason: end_turn}}]}
"
        }
        _ => "",
    };
    project.harness(
        "agent",
        &format!(
            "adapter: {adapter}\ncommand: [cat, {}]\ntool-kinds: {{Bash: execute, Read: read}}\n{harness}",
            session.display()
        ),
    );
    project.case(
        "a",
        "harnesses: [agent]\ngraders:\n  - tool-calls: {name: forbid, forbid: [{command: rm -rf}]}\n  - tool-calls: {name: none, none: true}\n  \
         - tool-calls: {name: require, require: [{command: make}]}\n  - errors: {max: 0}\n  - output: {equals: done}\n  - diff: {none: true}\n  - output: {contains: done}\n",
        "",
    );
    project.evals(&["run"]);
    let result = project.result("a/agent/default/1");
    let outcome = |grade: &serde_json::Value| match grade["passed"].as_bool() {
        Some(true) => "pass".to_owned(),
        Some(false) => "fail".to_owned(),
        None => "ungraded".to_owned(),
    };
    (result["grades"].as_array().unwrap().iter().map(outcome).collect(), project)
}

fn call(id: &str, command: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m{id}","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{command}"}}}}]}},"session_id":"s"}}"#
    )
}

#[test]
fn nothing_passes_by_what_a_lost_line_may_have_said() {
    let ungraded = ["ungraded", "ungraded", "ungraded", "ungraded", "ungraded", "pass", "pass"];
    let nested = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for lost in [
        call("1", "rm -rf /").replace(r#""id":"1","#, ""),
        call("1", "rm -rf /").replace("}}]}", ""),
        call("1", r"x").replace(r#""x""#, "1e999"),
        call("1", r"x").replace(r#""x""#, &nested),
        format!("{}{}", call("1", "rm -rf /"), call("2", "ls")),
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"7","content":"x","is_error":true}]},"session_id":"s"}"#.to_owned(),
    ] {
        let (said, project) = says("claude-code-stream", &format!("{INIT}\n{lost}\n{END}\n"));
        assert_eq!(said, ungraded, "{lost}");
        let notices = project.trace("a/agent/default/1");
        assert!(of_type(&notices, "notice").iter().any(|notice| notice["lost"] == "line"), "{lost}");
    }
    // Known calls still count: the required one, and the forbidden one.
    let torn = &call("3", "ls")[..40];
    let found = format!("{INIT}\n{}\n{}\n{torn}\n{END}\n", call("1", "make"), call("2", "rm -rf /"));
    let (said, _) = says("claude-code-stream", &found);
    assert_eq!(said, ["fail", "fail", "pass", "ungraded", "ungraded", "pass", "pass"]);
    // A line of text is not an event.
    let (said, _) = says("claude-code-stream", &format!("{INIT}\nnpm warn deprecated\n[1] started\n{END}\n"));
    assert_eq!(said, ["pass", "pass", "fail", "pass", "pass", "pass", "pass"]);
    // Half of a surrogate pair affects only itself.
    let (said, _) = says("claude-code-stream", &format!("{INIT}\n{}\n{END}\n", call("1", r"rm -rf / # \ud83d")));
    assert_eq!(said[..2], ["fail", "fail"]);
}

#[test]
fn a_key_twice_in_an_object_leaves_open_what_the_line_says() {
    let calls = call("1", "ls").replace(r#""content":["#, r#""content":[],"content":["#);
    let hidden =
        call("1", "rm -rf /").replace(r#""model":"m","content""#, r#""model":"m","content":[],"role":"x","content""#);
    let input = call("1", "rm -rf /").replace(r#"rm -rf /""#, r#"rm -rf /","command":"ls""#);
    for line in [calls, hidden, input] {
        let (said, project) = says("claude-code-stream", &format!("{INIT}\n{line}\n{END}\n"));
        assert!(!said[..5].contains(&"pass".to_owned()), "{line}: {said:?}");
        let trace = project.trace("a/agent/default/1");
        assert!(of_type(&trace, "notice").iter().any(|notice| notice["code"] == "repeated_key"), "{line}");
    }
    for line in [
        r#"{"k":"c","id":"1","name":"Bash","input":{"command":"rm -rf /"},"k":"thought"}"#,
        r#"{"k":"c","id":"1","name":"Bash","input":{"command":"rm -rf /","command":"ls"}}"#,
    ] {
        let (said, _) = says("json-stream", &format!("{line}\n{{\"k\":\"end\"}}\n"));
        assert!(!said[..5].contains(&"pass".to_owned()), "{line}: {said:?}");
    }
}

#[test]
fn a_second_call_of_an_open_id_is_another_call() {
    let read = call("1", "a").replace(r#""name":"Bash""#, r#""name":"Read""#).replace("\"m1\"", "\"m2\"");
    for second in [read, call("1", "ls").replace("\"m1\"", "\"m2\"")] {
        let (said, project) =
            says("claude-code-stream", &format!("{INIT}\n{}\n{second}\n{END}\n", call("1", "rm -rf /")));
        assert_eq!(said[..2], ["fail", "fail"]);
        let trace = project.trace("a/agent/default/1");
        assert_eq!(of_type(&trace, "tool_call").len(), 2, "{second}");
        assert_eq!(of_type(&trace, "tool_result").len(), 2, "{second}");
    }
    // The same message twice is one call.
    let (_, project) = says("claude-code-stream", &format!("{INIT}\n{0}\n{0}\n{END}\n", call("1", "ls")));
    assert_eq!(of_type(&project.trace("a/agent/default/1"), "tool_call").len(), 1);
}

#[test]
fn a_json_stream_loses_what_its_rules_cannot_take() {
    let end = r#"{"k":"end"}"#;
    let (said, _) =
        says("json-stream", &format!("{}\n{end}\n", r#"{"k":"c","name":"Bash","input":{"command":"rm -rf /"}}"#));
    assert_eq!(said, ["ungraded", "ungraded", "ungraded", "ungraded", "ungraded", "pass", "pass"]);
    // An unknown status leaves open how the call ended.
    let one = r#"{"k":"c","id":"1","name":"Bash","input":{"command":"make"}}"#;
    let (_, project) = says("json-stream", &format!("{one}\n{}\n{end}\n", r#"{"k":"r","id":"1","status":"FAILED"}"#));
    let trace = project.trace("a/agent/default/1");
    assert_eq!(of_type(&trace, "tool_result")[0]["status"], "unfinished");
    // A parent that is not a call is ignored.
    let invented = one.replace(r#""id":"1""#, r#""id":"1","parent":"zzz""#);
    let (_, project) = says("json-stream", &format!("{invented}\n{end}\n"));
    let trace = project.trace("a/agent/default/1");
    assert!(of_type(&trace, "tool_call")[0]["parent"].is_null());
    assert!(of_type(&trace, "notice").iter().any(|notice| notice["code"] == "unknown_parent"));
}
