//! Lines of streams that hold more than a manifest takes from them, and outcomes that a manifest reads from a text. Each
//! session goes in as the agent prints it.

use serde_json::{Value, json};

use super::doubts::NO_ERRORS;
use super::streams::stream;
use super::unclear::check;
use super::{Expect, Fail, Pass, Ungraded};

const NO_RM: &str = "tool-calls: {forbid: [{command: rm}]}";
const NO_DELETED: &str = "rules: [{never: {text: deleted}}]";

fn lost() -> Expect {
    Ungraded("a line of the session was lost")
}

fn hidden() -> Expect {
    Ungraded("the agent did something that no call shows")
}

fn unclear() -> Expect {
    Ungraded("an outcome of a call")
}

/// A stream of Codex with these completed items.
fn codex(items: &[Value]) -> super::Trial {
    let mut lines = vec![json!({"type": "thread.started", "thread_id": "t"}), json!({"type": "turn.started"})];
    lines.extend(items.iter().map(|item| json!({"type": "item.completed", "item": item})));
    let usage = json!({"input_tokens": 10, "cached_input_tokens": 2, "output_tokens": 5});
    lines.push(json!({"type": "turn.completed", "usage": usage}));
    stream("codex", &lines)
}

#[test]
fn a_search_of_codex_has_ended_well_only_in_the_words_for_it() {
    let search = |more: Value| {
        let mut item = json!({"id": "i", "type": "web_search", "query": "q"});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        codex(&[item])
    };
    for more in [json!({}), json!({"status": null}), json!({"status": "completed"})] {
        check(&search(more), &[(NO_ERRORS, Pass(&[]))]);
    }
    check(&search(json!({"status": "failed"})), &[(NO_ERRORS, Fail(0.0, &[], "1 call failed"))]);
    check(&search(json!({"status": "declined"})), &[("tool-calls: {require: [{status: denied}]}", Pass(&[]))]);
    check(&search(json!({"status": "in_progress"})), &[("tool-calls: {require: [{status: unfinished}]}", Pass(&[]))]);
    for word in [json!("aborted"), json!("Completed"), json!(7), json!(true)] {
        check(&search(json!({"status": word})), &[(NO_ERRORS, unclear())]);
    }
}

#[test]
fn what_codex_and_pi_show_of_a_text_or_a_result_is_not_absent() {
    let begun = json!({"type": "item.started", "item": {"id": "a", "type": "agent_message", "text": "I deleted src"}});
    let cut = stream("codex", &[json!({"type": "thread.started", "thread_id": "t"}), begun]);
    check(&cut, &[(NO_DELETED, Fail(0.0, &[], ""))]);
    let no_failure = "rules: [{never: {event: tool_result, text: FAILED}}]";
    let mcp = |block: Value| {
        codex(&[json!({"id": "i", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {}, "error": null,
            "status": "completed", "result": {"content": [{"type": "text", "text": "x"}, block]}})])
    };
    let pi = |block: Value| {
        let call =
            json!({"type": "tool_execution_start", "toolCallId": "a", "toolName": "bash", "args": {"command": "ls"}});
        let end = json!({"type": "tool_execution_end", "toolCallId": "a", "toolName": "bash", "isError": false,
            "result": {"content": [{"type": "text", "text": "x"}, block]}});
        stream("pi", &[json!({"type": "session", "version": 3, "cwd": "/w"}), call, end])
    };
    let trials: [&dyn Fn(Value) -> super::Trial; 2] = [&mcp, &pi];
    for trial in trials {
        check(&trial(json!({"type": "ansi", "value": "FAILED"})), &[(no_failure, lost())]);
        check(&trial(json!({"type": "resource", "resource": {"text": "FAILED"}})), &[(no_failure, lost())]);
        check(&trial(json!({"type": "image", "data": "QUJD"})), &[(no_failure, Pass(&[]))]);
    }
}

#[test]
fn a_sub_agent_of_codex_that_works_on_leaves_out_usage_and_calls() {
    let with = |tool: &str, agents: Value| {
        json!({"id": tool, "type": "collab_tool_call", "tool": tool, "prompt": "p", "receiver_thread_ids": agents,
            "status": "completed"})
    };
    let tool = |tool: &str| with(tool, json!(["u"]));
    let total = "budget: {tokens: 100}";
    let starts = ["spawn_agent", "spawn_agents_on_csv", "send_input", "resume_agent", "followup_task"];
    for name in starts.into_iter().chain(["collab.spawn_agent", "wait", "assign_task"]) {
        check(&codex(&[tool(name)]), &[(NO_RM, hidden()), (total, Ungraded("not all of it was reported"))]);
    }
    // A call that ends sub-agents or names them starts none, and nothing works if there is none to wait for.
    let quiet = ["close_agent", "interrupt_agent", "list_agents"].map(tool);
    for item in quiet.into_iter().chain([with("wait", json!([]))]) {
        check(&codex(&[item]), &[(NO_RM, Pass(&[])), (total, Pass(&[]))]);
    }
    // A call that waits for a sub-agent of this session shows nothing new.
    let waited = codex(&[tool("spawn_agent"), tool("wait")]);
    let events = waited.events.iter().map(|event| serde_json::to_value(event).unwrap());
    assert_eq!(events.filter(|event| event["type"] == "notice").count(), 1);
}
