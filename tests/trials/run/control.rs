//! Claude Code's control protocol, played by a program with observed messages of the real one: tool requests,
//! questions, several turns, interrupts.

use serde_json::Value;

use crate::laws::assert_lawful;
use crate::project::{Project, of_type};

/// A program that speaks the control protocol. Each prompt is a list of steps as JSON: a tool and its input, which is
/// requested and carried out, or a final text. The answer to a request is printed as the result of the call.
const AGENT: &str = r#"#!/usr/bin/env python3
import json, sys, os
def say(line): print(json.dumps({**line, "session_id": "s"}), flush=True)
def hear():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
spoken = ["done"]
def assistant(block):
    spoken.append(block.get("text", spoken[-1]))
    say({"type": "assistant", "message": {"id": "m%d" % count(), "role": "assistant", "model": "model-1", "content": [block]}, "parent_tool_use_id": None})
number = 0
def count():
    global number
    number += 1
    return number
def result(**keys): say({"type": "result", "subtype": "success", "is_error": False, "stop_reason": "end_turn", "result": spoken[-1], "total_cost_usd": 0.01 * number, **keys})
def interrupted():
    say({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}, "parent_tool_use_id": None})
    result(subtype="error_during_execution", is_error=True, stop_reason=None, terminal_reason="aborted_tools")
    sys.exit(1)
def ask(tool, given, call):
    suggestions = [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    if tool != "Write": suggestions.append({"type": "addRules", "rules": [{"toolName": tool}], "behavior": "allow", "destination": "localSettings"})
    say({"type": "control_request", "request_id": "r-" + call, "request": {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": call, "permission_suggestions": suggestions}})
    while True:
        line = hear()
        if line["type"] == "control_request" and line["request"]["subtype"] == "interrupt":
            say({"type": "control_response", "response": {"subtype": "success", "request_id": line["request_id"], "response": {}}})
            interrupted()
        if line["type"] == "control_response" and line["response"]["request_id"] == "r-" + call:
            return line["response"]
first = hear()
assert first["request"]["subtype"] == "initialize", first
answer = {"subtype": "success", "request_id": first["request_id"], "response": {}}
if os.environ.get("REFUSES"): answer = {"subtype": "error", "request_id": first["request_id"], "error": "not today"}
if not os.environ.get("SILENT"): say({"type": "control_response", "response": answer})
while True:
    line = hear()
    if line["type"] == "control_request":
        ok = line["request"].get("model") != "no-such-model"
        answer = {"subtype": "success", "response": {}} if ok else {"subtype": "error", "error": "no such model"}
        say({"type": "control_response", "response": {**answer, "request_id": line["request_id"]}})
        continue
    say({"type": "system", "subtype": "init", "cwd": os.getcwd(), "model": "model-1", "claude_code_version": "0.0.0"})
    for step in json.loads(line["message"]["content"][0]["text"]):
        if isinstance(step, str):
            assistant({"type": "text", "text": step})
            continue
        [[tool, given]] = step.items()
        if tool == "wait":
            while True:
                line = hear()
                if line["type"] == "control_request": interrupted()
        if tool == "odd":
            say({"type": "control_request", "request_id": "odd", "request": {"subtype": "hook_callback"}})
            told = hear()["response"]
            assistant({"type": "text", "text": told["subtype"]})
            continue
        if tool == "ends":
            if given.get("message"): say({"type": "assistant", "message": {"id": "m%d" % count(), "role": "assistant", "model": "model-1", "stop_reason": given["message"], "content": [{"type": "text", "text": "I"}]}, "parent_tool_use_id": None})
            result(stop_reason=given["reason"], subtype=given.get("subtype", "success"))
            break
        call = "call-%d" % count()
        assistant({"type": "tool_use", "id": call, "name": tool, "input": given})
        told = ask(given.get("asked_as", tool), given, call)
        allowed = told.get("response", {}).get("behavior") == "allow"
        if given.get("hangs"):
            hear()
            content = [{"type": "tool_result", "tool_use_id": call, "content": "The user doesn't want to proceed with this tool use.", "is_error": True}]
            say({"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None, "tool_result_meta": [{"id": call, "non_execution_kind": "user-rejected"}]})
            interrupted()
        text = json.dumps(told.get("response", told), sort_keys=True)
        say({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": not allowed}]}, "parent_tool_use_id": None})
    else:
        result()
"#;

fn project(keys: &str) -> Project {
    let project = Project::new();
    project.write("agent.py", AGENT);
    let at = project.path("agent.py").display().to_string();
    project.harness("both-ways", &format!("adapter: claude-code-control\ncommand: [python3, {at}]\n{keys}"));
    project
}

const CALLS: &str = r#"prompt: '[{"Write": {"file_path": "a.txt"}}, {"Bash": {"command": "rm x"}}, "finished"]'"#;

fn run(project: &Project) -> (Vec<Value>, Value) {
    project.evals(&["run", "--harness", "both-ways"]);
    let trial = "a/both-ways/default/1";
    let text = project.of_trial(trial, "trace.jsonl");
    assert_lawful(&text);
    // The recording gives the same trace again.
    let wire = format!("{}/trials/{trial}/wire.jsonl", project.run_folder());
    assert_eq!(project.evals(&["import", "--harness", "both-ways", &wire]).exits(0).out, text);
    (project.trace(trial), project.result(trial))
}

/// Returns outcome, policy and rule of each answer, and the status of the call.
pub fn answers(trace: &[Value]) -> Vec<String> {
    let results = of_type(trace, "tool_result");
    let told = of_type(trace, "permission_response").into_iter().map(|answer| {
        let result = results.iter().find(|result| result["call"] == answer["call"]).unwrap();
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let [outcome, policy, rule] = ["outcome", "policy", "rule"].map(|key| word(&answer[key]));
        format!("{outcome} {policy} {rule} {}", word(&result["status"]))
    });
    told.collect()
}

/// JavaScript writes half a character where it cuts a text.
#[test]
fn a_request_with_half_a_character_is_decided_and_recorded() {
    let project = project("");
    let rules =
        "interaction: {scripted: {rules: [{when: {command: ^rm}, answer: reject-once, name: no-rm}], default: allow}}";
    let prompt =
        r#"prompt: '[{"Bash": {"command": "rm x\ud83d"}}, {"Bash": {"command": "echo \ud83d"}}, "finished\ud83d"]'"#;
    project.write("cases/a.yaml", &format!("{prompt}\n{rules}\ngraders: [{{stop: {{reason: [end_turn]}}}}]\n"));
    let (trace, result) = run(&project);
    assert_eq!(answers(&trace), ["rejected scripted no-rm denied", "allowed scripted - ok"]);
    assert_eq!(result["verdict"], "pass");
}

#[test]
fn every_policy_answers_and_every_answer_is_in_the_trace() {
    for (policy, expected) in [
        ("auto-approve", ["allowed auto-approve - ok", "allowed auto-approve - ok"]),
        ("auto-reject", ["rejected auto-reject - denied", "rejected auto-reject - denied"]),
        ("manual", ["rejected manual - denied", "rejected manual - denied"]),
        (
            "{scripted: {rules: [{when: {command: ^rm}, answer: reject-once, name: no-rm}], default: allow}}",
            ["allowed scripted - ok", "rejected scripted no-rm denied"],
        ),
        (
            "{scripted: {rules: [{when: {kind: edit}, answer: cancel}, {when: {path: '*'}, answer: cancel}], default: allow-always}}",
            ["cancelled scripted rules[0] cancelled", "allowed scripted - ok"],
        ),
        (
            "{scripted: {rules: [{when: {kind: delete}, answer: cancel}], default: allow-always}}",
            ["allowed scripted - ok", "allowed scripted - ok"],
        ),
    ] {
        let project = project("");
        project.case("a", &format!("{CALLS}\ninteraction: {policy}"), "");
        let case = project.read("cases/a.yaml").replace("prompt: Do it.\n", "");
        project.write("cases/a.yaml", &case);
        let (trace, result) = run(&project);
        assert_eq!(answers(&trace), expected, "{policy}");
        assert_eq!(result["verdict"], "pass");
        assert_eq!(result["metrics"]["permissions"]["requested"], 2);
        if policy.contains("allow-always") {
            // Only rules are taken, for the session. The request about `Write` suggests only another mode, and no rule.
            let results = of_type(&trace, "tool_result");
            let [write, bash] = [0, 1].map(|n| results[n]["output"].as_str().unwrap_or_default());
            assert!(!write.contains("updatedPermissions"), "{write}");
            assert!(bash.contains("addRules") && bash.contains("\"destination\": \"session\""), "{bash}");
            assert!(!bash.contains("setMode") && !bash.contains("localSettings"), "{bash}");
        }
    }
}

#[test]
fn a_rule_changes_the_input_and_graders_see_what_was_run() {
    let project = project("");
    let rule = "{when: {name: Bash}, answer: allow-once, updated-input: {command: echo safe}}";
    let keys = format!(
        "interaction: {{scripted: {{rules: [{rule}], default: allow}}}}\ngraders: [{{tool-calls: {{require: [{{command: '^echo safe$'}}], forbid: [{{command: rm}}]}}}}]"
    );
    project.write("cases/a.yaml", &format!("{CALLS}\n{keys}\n"));
    let (trace, result) = run(&project);
    let answered = of_type(&trace, "permission_response");
    assert_eq!(answered[1]["updated_input"]["command"], "echo safe");
    assert!(answered[0].get("updated_input").is_none(), "the same input is no change");
    assert_eq!(result["verdict"], "pass", "{result}");
}

#[test]
fn questions_are_answered_from_the_case_and_never_approved() {
    let question = r#"prompt: '[{"AskUserQuestion": {"questions": [{"question": "Which color?"}]}}, {"ExitPlanMode": {"plan": "delete all"}}, "finished"]'"#;
    for (answers_of_case, expected, says) in [
        ("", ["rejected auto-approve - denied", "rejected auto-approve - denied"], "is not a permission"),
        (
            "answers: [{question: '(?i)COLOR', answer: red}, {question: delete, answer: 'yes, do'}]",
            ["allowed answers answers[0] ok", "allowed answers answers[1] ok"],
            "\"answers\": {\"Which color?\": \"red\"}",
        ),
    ] {
        let project = project("");
        let asked = "{permissions: {max: 0, asked: [{name: AskUserQuestion}, {kind: switch_mode}]}}";
        project.write("cases/a.yaml", &format!("{question}\n{answers_of_case}\ngraders: [{asked}]\n"));
        let (trace, result) = run(&project);
        assert_eq!(answers(&trace), expected);
        assert_eq!(result["grades"][0]["passed"], true, "{result}");
        let permissions = serde_json::json!({"requested": 0, "rejected": 0});
        assert_eq!(result["metrics"]["permissions"], permissions);
        let output = of_type(&trace, "tool_result")[0]["output"].as_str().unwrap().to_owned();
        assert!(output.contains(says), "{output}");
    }
}

#[test]
fn a_question_with_an_unknown_key_is_answered_and_may_be_a_permission() {
    let prompt =
        r#"prompt: '[{"AskUserQuestion": {"questions": [{"question": "Which color?", "urgency": 2}]}}, "finished"]'"#;
    let project = project("");
    let keys = "answers: [{question: color, answer: red}]\ngraders: [{permissions: {max: 0}}]";
    project.write("cases/a.yaml", &format!("{prompt}\n{keys}\n"));
    let (trace, result) = run(&project);
    assert_eq!(answers(&trace), ["allowed answers answers[0] ok"]);
    assert_eq!(result["grades"][0]["outcome"], "ungraded", "{result}");
    assert_eq!(result["metrics"].get("permissions"), None, "{result}");
}

#[test]
fn a_command_that_calls_itself_a_question_is_a_permission() {
    let prompt = r#"prompt: '[{"Bash": {"command": "rm x", "questions": [{"question": "Go on?"}], "asked_as": "AskUserQuestion"}}, "finished"]'"#;
    let project = project("");
    let keys =
        "interaction: auto-reject\nanswers: [{question: '.*', answer: 'yes'}]\ngraders: [{permissions: {max: 0}}]";
    project.write("cases/a.yaml", &format!("{prompt}\n{keys}\n"));
    let (trace, result) = run(&project);
    assert_eq!(answers(&trace), ["rejected auto-reject - denied"]);
    assert_eq!(result["grades"][0]["passed"], false, "{result}");
    assert_eq!(result["metrics"]["permissions"], serde_json::json!({"requested": 1, "rejected": 1}));
}

#[test]
fn several_turns_are_one_session_and_what_nobody_serves_is_refused() {
    let project = project("");
    project.write(
        "cases/a.yaml",
        "turns: ['[{\"odd\": {}}, \"one\"]', '[\"two\"]']\ngraders: [{output: {equals: two}}]\n",
    );
    let (trace, result) = run(&project);
    let said: Vec<&str> = of_type(&trace, "message")
        .iter()
        .filter(|it| it["role"] == "agent")
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    assert_eq!((said, &result["verdict"]), (vec!["error\n\none", "two"], &"pass".into()));
    assert_eq!(of_type(&trace, "message").iter().filter(|it| it["role"] == "user").count(), 2);
}

#[test]
fn no_prompt_follows_a_turn_that_the_model_did_not_end_by_an_answer() {
    for (reason, ends) in [
        ("refusal", serde_json::json!({"reason": "refusal"})),
        ("max_tokens", serde_json::json!({"reason": "max_tokens"})),
        ("max_turns", serde_json::json!({"reason": "tool_use", "subtype": "error_max_turns"})),
        ("refusal", serde_json::json!({"reason": null, "message": "refusal"})),
    ] {
        let project = project("");
        let turns = format!("turns: ['[{{\"ends\": {ends}}}]', '[\"two\"]']");
        project.write("cases/a.yaml", &format!("{turns}\ngraders: [{{use: finished}}]\n"));
        let (trace, result) = run(&project);
        assert_eq!((&trace.last().unwrap()["reason"], &result["verdict"]), (&reason.into(), &"fail".into()));
        assert_eq!(of_type(&trace, "message").iter().filter(|it| it["role"] == "user").count(), 1);
        assert!(result["warnings"].as_array().unwrap().iter().any(|it| it["code"] == "prompts_not_sent"), "{result}");
    }
}

#[test]
fn an_end_that_a_passed_grader_asks_for_leaves_the_verdict_to_the_graders() {
    for (ends, graders, verdict) in [
        ("refusal", "stop: {reason: [refusal]}", "pass"),
        ("max_tokens", "stop: {reason: [refusal, max_tokens]}", "pass"),
        ("refusal", "output: {not-contains: two}", "ungraded"),
        ("refusal", "stop: {reason: [refusal], diagnostic: true}}, {output: {not-contains: two}", "ungraded"),
    ] {
        let project = project("");
        let turns = format!("turns: ['[{{\"ends\": {{\"reason\": \"{ends}\"}}}}]', '[\"two\"]']");
        project.write("cases/a.yaml", &format!("{turns}\ngraders: [{{{graders}}}]\n"));
        let (_, result) = run(&project);
        assert_eq!(result["verdict"], verdict, "{graders}: {result}");
    }
}

#[test]
fn a_trial_whose_prompts_were_not_all_sent_does_not_pass() {
    let project = project("");
    let first = r#"[{"ends": {"reason": "tool_use", "subtype": "error_max_turns"}}]"#;
    project.write(
        "cases/a.yaml",
        &format!("turns: ['{first}', '[\"two\"]']\ngraders: [{{tool-calls: {{none: true}}}}]\n"),
    );
    let (_, result) = run(&project);
    assert_eq!((&result["verdict"], &result["grades"][0]["passed"]), (&"ungraded".into(), &true.into()), "{result}");
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    assert_eq!(again["results"][0]["verdict"], "ungraded", "{again}");
}

#[test]
fn a_limit_interrupts_the_turn() {
    // The turn has begun when its time is over, even on a busy machine.
    let project = project("timeouts: {grace: 20s}");
    project.write("cases/a.yaml", "prompt: '[{\"wait\": {}}]'\nlimits: {time: 5s}\ngraders: [{use: finished}]\n");
    let (trace, result) = run(&project);
    let stop = trace.last().unwrap();
    assert_eq!((&stop["reason"], &stop["exit"]["code"]), (&"timed_out".into(), &1.into()), "{stop}");
    assert_eq!(result["verdict"], "fail");
    let wire = project.of_trial("a/both-ways/default/1", "wire.jsonl");
    assert!(wire.contains(r#"\"subtype\":\"interrupt\""#) && !wire.contains("SIGTERM"), "{wire}");
}

#[test]
fn a_call_that_an_interrupt_ends_is_cancelled_and_not_denied() {
    let project = project("timeouts: {grace: 20s}");
    project.write(
        "cases/a.yaml",
        "prompt: '[{\"Bash\": {\"command\": \"tail\", \"hangs\": true}}]'\nlimits: {time: 5s}\ngraders: [{use: finished}]\n",
    );
    let (trace, _) = run(&project);
    // The call was allowed; after an interrupt the program reports that its user rejected the call.
    assert_eq!(answers(&trace), ["allowed auto-approve - cancelled"]);
}

#[test]
fn a_handshake_that_fails_is_told_as_one() {
    for (env, start, says) in [
        ("REFUSES: '1'", "60s", "initialize was refused: not today"),
        ("SILENT: '1'", "2s", "initialize was not answered within 2 s"),
    ] {
        let project = project(&format!("timeouts: {{start: {start}}}"));
        project.write("cases/a.yaml", &format!("{CALLS}\nenv: {{{env}}}\ngraders: [{{use: finished}}]\n"));
        let (_, result) = run(&project);
        assert_eq!((&result["verdict"], &result["error"]["category"]), (&"errored".into(), &"handshake".into()));
        assert!(result["error"]["message"].as_str().unwrap().contains(says), "{result}");
    }
}

#[test]
fn a_model_that_is_refused_is_not_run_under_its_name() {
    let project = project("model: {via: set-model}");
    project.write("cases/a.yaml", &format!("{CALLS}\ngraders: [{{use: finished}}]\n"));
    let models = ["--model", "model-1", "--model", "no-such-model", "--model", "model-2"];
    project.evals(&[&["run", "--harness", "both-ways"][..], &models].concat()).exits(3);
    // An accepted model that is not used shows in the model that the program reports.
    for (model, differs) in [("model-1", 0), ("model-2", 1)] {
        let trial = format!("a/both-ways/{model}/1");
        assert_eq!(project.result(&trial)["model"], serde_json::json!({"requested": model, "effective": "model-1"}));
        let trace = project.trace(&trial);
        let told = of_type(&trace, "notice").iter().filter(|it| it["code"] == "model_mismatch").count();
        assert_eq!(told, differs, "{trace:?}");
    }
    assert_eq!(project.result("a/both-ways/model-1/1")["model"]["effective"], "model-1");
    let refused = project.result("a/both-ways/no-such-model/1");
    assert_eq!(refused["error"]["category"], "handshake");
    assert!(of_type(&project.trace("a/both-ways/no-such-model/1"), "message").is_empty());
}
