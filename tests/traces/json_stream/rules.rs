//! What rules can say: pieces and wholes, variables, lists, sub-agents, permissions, endings; and what they are told.

use evals::internal::adapter::import;
use evals::internal::harness::Adapter;
use evals::trace::amount::Amount;
use evals::trace::usage::UsageTotal;
use serde_json::{Value, json};

use super::{events, laws, manifest, trace};

fn run(rules: &str, lines: &[Value]) -> Vec<Value> {
    let text: Vec<String> =
        lines.iter().map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned)).collect();
    let trace = trace(&manifest(rules), &text.join("\n"));
    laws::assert_lawful(&trace);
    events(&trace)
}

fn texts(events: &[Value]) -> Vec<String> {
    let said = events.iter().filter(|event| event["type"] == "message" || event["type"] == "thought");
    said.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

fn notices(events: &[Value]) -> Vec<(String, String)> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap().to_owned();
    let notices = events.iter().filter(|event| event["type"] == "notice");
    notices.map(|event| (text(event, "code"), text(event, "text"))).collect()
}

const TEXTS: &str = "
stream:
  - {when: has(line.delta), emit: {message: {delta: line.delta, id: line.id}}}
  - {when: has(line.whole), emit: {message: {text: line.whole, id: line.id}}}
  - {when: has(line.so_far), emit: {message: {snapshot: line.so_far, id: line.id}}}
  - {when: has(line.thought), emit: {thought: {text: line.thought, id: line.id}}}
  - {when: has(line.call), emit: [{tool-call: {id: line.call}}, {tool-result: {id: line.call}}]}
";

#[test]
fn pieces_wholes_and_snapshots_are_said_once() {
    let said = |lines: &[Value]| texts(&run(TEXTS, lines));
    let piece = |id: Value, text: &str| json!({"delta": text, "id": id});
    let whole = |id: Value, text: &str| json!({"whole": text, "id": id});
    let so_far = |id: Value, text: &str| json!({"so_far": text, "id": id});
    assert_eq!(said(&[piece(json!("a"), "on"), piece(json!("a"), "e"), whole(json!("a"), "one")]), ["one"]);
    assert_eq!(said(&[piece(Value::Null, "on"), piece(Value::Null, "e"), whole(Value::Null, "one")]), ["one"]);
    assert_eq!(said(&[piece(json!("a"), "on"), whole(json!("a"), "one"), piece(json!("b"), "two")]), ["one\n\ntwo"]);
    assert_eq!(said(&[whole(json!("a"), "one"), whole(json!("a"), "one"), whole(json!("a"), "two")]), ["one\n\ntwo"]);
    assert_eq!(said(&[whole(Value::Null, "one"), whole(Value::Null, "one")]), ["one\n\none"]);
    assert_eq!(said(&[so_far(json!(1), "o"), so_far(json!(1), "one"), so_far(json!(1), "on")]), ["on"]);
    // A call between two texts without an id makes the second one another.
    let call = json!({"call": "c"});
    assert_eq!(
        said(&[piece(Value::Null, "one"), call, piece(Value::Null, "two"), whole(Value::Null, "two")]),
        ["one", "two"]
    );
    let thought = json!({"thought": "hm", "id": "a"});
    assert_eq!(said(&[thought.clone(), thought, whole(json!("a"), "hm")]), ["hm", "hm"]);
    let differs = run(TEXTS, &[piece(json!("a"), "one"), whole(json!("a"), "two")]);
    assert_eq!((texts(&differs), notices(&differs)), (vec!["two".to_owned()], Vec::new()));
    let late = run(TEXTS, &[piece(json!("a"), "one"), json!({"thought": "hm", "id": "t"}), whole(json!("a"), "two")]);
    assert_eq!((texts(&late).len(), notices(&late)[0].0.as_str()), (3, "stream_differs"));
}

#[test]
fn a_message_has_the_attachments_that_the_rule_names() {
    let rules = "
stream:
  - when: has(line.parts)
    for-each: line.parts
    rules:
      - {when: has(it.text), emit: {message: {role: line.role, text: it.text}}}
      - {when: has(it.url), emit: {message: {role: line.role, attachments: \"{'kind': 'image', 'uri': it.url}\"}}}
  - when: has(line.files)
    emit: {message: {text: line.text, attachments: \"line.files.map(f, {'kind': f.kind, 'media_type': f.?type.orValue(null), 'data': f.?data.orValue(null)})\"}}
  - {when: line.kind == 'bare', emit: {message: {role: user, attachments: \"[{'uri': 'x'}]\"}}}
";
    let of_user = json!({"role": "user", "parts": [{"url": "data:image/png;base64,AAAA"}, {"text": "Look."}, {"url": "https://x/y"}]});
    let of_agent = json!({"text": "Here.", "files": [{"kind": "audio", "type": "audio/mp3", "data": "AAAAAA"}]});
    let none = json!({"text": "And?", "files": []});
    let events = run(rules, &[of_user, of_agent, none]);
    let told: Vec<Value> = events
        .iter()
        .filter(|event| event["type"] == "message")
        .map(|event| json!([event["role"], event["text"], event["attachments"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["user", "Look.", [{"kind": "image", "media_type": "image/png", "bytes": 4}, {"kind": "image", "uri": "https://x/y"}]]),
            json!(["agent", "Here.\n\nAnd?", [{"kind": "audio", "media_type": "audio/mp3", "bytes": 6}]]),
        ]
    );
    assert!(notices(&events).is_empty(), "{events:?}");
    let bare = run(rules, &[json!({"kind": "bare"})]);
    assert_eq!((texts(&bare).len(), notices(&bare)[0].0.as_str()), (0, "mapping_failed"));
}

/// The losses of the notices of a session.
fn lost(rules: &str, lines: &[Value]) -> Vec<String> {
    let events = run(
        &format!("stream:\n{rules}  - {{when: line.type == 'end', emit: {{stop: {{reason: end_turn}}}}}}\n"),
        lines,
    );
    let told = |event: &Value| Some(format!("{} {}", event["code"].as_str()?, event["lost"].as_str()?));
    events.iter().filter(|event| event["type"] == "notice").filter_map(told).collect()
}

#[test]
fn a_text_that_the_agent_takes_back_is_replaced_or_lost() {
    let rules = "  - {when: has(line.delta), emit: {message: {delta: line.delta, id: line.id}}}\n  \
                 - {when: has(line.whole), emit: {message: {text: line.whole, id: line.id}}}\n  \
                 - {when: has(line.so_far), emit: {message: {snapshot: line.so_far, id: line.id}}}\n  \
                 - {when: has(line.thought), emit: {thought: {text: line.thought}}}\n";
    let said = |key: &str, text: &str| json!({key: text, "id": "a"});
    for (first, later) in [
        (said("so_far", "Done. I also deleted it."), said("so_far", "Done.")),
        (said("so_far", "I cannot do it."), said("so_far", "Done.")),
        (said("delta", "I cannot do it."), said("so_far", "Done.")),
        (said("delta", "I cannot do it."), said("whole", "Done.")),
    ] {
        let lines = [first.clone(), later.clone()];
        assert_eq!(lost(rules, &lines), [""; 0], "{first} {later}");
        assert_eq!(texts(&run(&format!("stream:\n{rules}"), &lines)), ["Done."], "{first} {later}");
        // After another event, the text is final.
        let lines = [first.clone(), json!({"thought": "hm"}), later.clone()];
        assert_eq!(lost(rules, &lines), ["stream_differs text"], "{first} {later}");
    }
    let grows = ["Do", "Done.", "Done. \n", "Done."].map(|text| said("so_far", text));
    assert_eq!(lost(rules, &grows), [""; 0]);
}

#[test]
fn a_call_that_only_a_notice_shows_is_lost() {
    let rules = |lost: &str| {
        format!(
            "  - {{when: line.type == 'tool', emit: {{tool-call: {{id: line.id}}}}}}\n  \
             - {{when: line.type == 'replaced', emit: {{notice: {{code: \"'replaced'\", text: \"'all'\"{lost}}}}}}}\n"
        )
    };
    let known = json!({"type": "tool", "id": "c1"});
    let replaced = json!({"type": "replaced", "messages": [{"toolCalls": [{"id": "c1", "name": "sh", "args": {"command": "rm x"}}]}]});
    assert_eq!(lost(&rules(""), std::slice::from_ref(&replaced)), ["unmapped_line call"]);
    assert_eq!(lost(&rules(""), &[known, replaced.clone()]), [""; 0]);
    // A notice that reports the loss itself is enough.
    assert_eq!(lost(&rules(", lost: \"'line'\""), &[replaced]), ["replaced line"]);
}

#[test]
fn a_line_without_a_rule_that_reports_a_failure_leaves_its_call_in_doubt() {
    let rules = "  - {when: line.type == 'tool', emit: {tool-call: {id: line.id}}}\n  \
                 - {when: line.type == 'done', emit: {tool-result: {id: line.id, status: 'line.ok ? ok : error'}}}\n";
    let call = json!({"type": "tool", "id": "c1"});
    let done = |ok: bool| json!({"type": "done", "id": "c1", "ok": ok});
    let failed = json!({"type": "exec_command_end", "call_id": "c1", "exit_code": 1, "stderr": "boom"});
    for lines in [
        vec![call.clone(), failed.clone(), done(true)],
        vec![call.clone(), done(true), failed.clone()],
        vec![call.clone(), failed.clone()],
    ] {
        assert_eq!(lost(rules, &lines), ["unmapped_line outcome"], "{lines:?}");
    }
    // The trace shows the failure.
    for lines in [[call.clone(), failed.clone(), done(false)], [call.clone(), done(false), failed.clone()]] {
        assert_eq!(lost(rules, &lines), [""; 0], "{lines:?}");
        let events = run(&format!("stream:\n{rules}"), &lines);
        assert_eq!(notices(&events).iter().filter(|(code, _)| code == "unmapped_line").count(), 1);
    }
    let mut more = failed;
    more["command"] = json!(["rm", "x"]);
    assert_eq!(lost(rules, &[call, more, done(true)]), ["unmapped_line call", "unmapped_line outcome"]);
}

#[test]
fn a_call_of_which_a_rule_makes_no_event_is_lost() {
    let call = json!({"type": "tool", "tool": "sh", "args": {"command": "rm -rf build"}});
    for rules in [
        // No nested rule takes it, the condition of its only event is false or cannot be evaluated, and its list is missing.
        "  - {when: line.type == 'tool', rules: [{when: line.tool == 'read', emit: {tool-call: {id: line.tool}}}]}\n",
        "  - {when: line.type == 'tool', emit: [{when: line.tool == 'read', tool-call: {id: line.tool}}]}\n",
        "  - {when: line.type == 'tool', for-each: line.calls, rules: [{emit: {tool-call: {id: it.id}}}]}\n",
    ] {
        assert_eq!(lost(rules, std::slice::from_ref(&call)), ["unmapped_line call"], "{rules}");
    }
    for rules in [
        "  - {when: line.type == 'tool', emit: [{when: line.tool > 3, tool-call: {id: line.tool}}]}\n",
        "  - {when: line.tool > 3, emit: [{tool-call: {id: line.tool}}]}\n  - {ignore: true}\n",
    ] {
        assert_eq!(lost(rules, std::slice::from_ref(&call)), ["mapping_failed call"], "{rules}");
    }
    // The progress of a call that is known is no further call.
    let progress = "  - {when: line.type == 'tool', emit: {tool-call: {id: line.call_id}}}\n  - {when: line.type == 'update', \
                    emit: [{when: line.done, tool-result: {id: line.call_id}}]}\n";
    let known = json!({"type": "tool", "call_id": "a"});
    let update = json!({"type": "update", "call_id": "a", "done": false, "command": "ls"});
    assert_eq!(lost(progress, &[known.clone(), update.clone()]), [""; 0]);
    let mut other = update;
    other["call_id"] = json!("b");
    assert_eq!(lost(progress, &[known.clone(), other.clone()]), ["unmapped_line call"]);
    // So is a line that no rule takes, if its type is one of progress and it holds nothing else.
    let mut untaken = json!({"type": "tool_progress", "call_id": "a", "text": "still running"});
    assert_eq!(lost(progress, &[known.clone(), untaken.clone()]), [""; 0]);
    untaken["args"] = json!({"line": "rm x"});
    assert_eq!(lost(progress, &[known.clone(), untaken]), ["unmapped_line call"]);
    let untaken = json!({"type": "exec_command", "call_id": "a", "text": "rm -rf src"});
    assert_eq!(lost(progress, &[known.clone(), untaken]), ["unmapped_line call"]);
    // The call that a sub-agent's call names as its parent is another one.
    let child = json!({"type": "update", "call_id": "c", "done": false, "tool": "sh", "parent": {"id": "a"}});
    assert_eq!(lost(progress, &[known, child]), ["unmapped_line call"]);
    // Another text that equals a short id is none, and an id may be a number.
    let numbered = progress.replace("id: line.call_id", "id: string(line.call_id)");
    let known = json!({"type": "tool", "call_id": 1});
    (other["call_id"], other["attempt"]) = (json!(2), json!("1"));
    assert_eq!(lost(&numbered, &[known.clone(), other.clone()]), ["unmapped_line call"]);
    (other["call_id"], other["attempt"]) = (json!(1), json!("2"));
    assert_eq!(lost(&numbered, &[known, other]), [""; 0]);
    // A line that is about no call, an empty list, and a rule that says so are nothing.
    let list = "  - {when: line.type == 'tool', for-each: line.calls, rules: [{emit: {tool-call: {id: it.id}}}]}\n";
    let ignored = "  - {when: line.type == 'tool', ignore: true}\n";
    let idle = "  - {when: line.type == 'idle', emit: [{when: line.n == 1, thought: {text: line.text}}]}\n";
    for (rules, line) in [
        (list.replace("'tool'", "'batch'").as_str(), json!({"type": "batch", "calls": []})),
        (ignored, call.clone()),
        (idle, json!({"type": "idle", "n": 2})),
    ] {
        assert_eq!(lost(rules, &[line]), [""; 0], "{rules}");
    }
}

#[test]
fn a_call_beside_an_empty_text_or_list_is_lost() {
    let says = "  - {when: line.role == 'assistant', emit: {message: {text: line.content}}}\n";
    let parts =
        "  - {when: line.role == 'assistant', for-each: line.content, rules: [{emit: {message: {text: it.text}}}]}\n";
    let calls = json!([{"id": "c", "function": {"name": "sh", "arguments": "{}"}}]);
    let line = |content: Value, calls: &Value| json!({"role": "assistant", "content": content, "tool_calls": calls});
    for (rules, content) in [
        (says, Value::Null),
        (says, json!("")),
        (says, json!("I look.")),
        (parts, json!([])),
        (parts, json!([{"text": "I look."}])),
    ] {
        assert_eq!(lost(rules, &[line(content.clone(), &calls)]), ["unmapped_line call"], "{content}");
        assert_eq!(lost(rules, &[line(content.clone(), &json!([]))]), [""; 0], "{content}");
    }
    // A later rule may make the call.
    let both = "  - {when: line.role == 'assistant', go-on: true, emit: {message: {text: line.content}}}\n  \
                - {when: line.role == 'assistant', for-each: line.tool_calls, rules: [{emit: {tool-call: {id: it.id}}}]}\n";
    assert_eq!(lost(both, &[line(Value::Null, &calls)]), [""; 0]);
    // A text in the agent's role that no rule takes may be its answer.
    let answer = json!({"role": "assistant", "content": "Done."});
    assert_eq!(lost("  - {when: line.type == 'x', ignore: true}\n", &[answer]), ["unmapped_line text"]);
}

#[test]
fn a_call_in_a_block_beside_a_text_is_lost_unless_it_is_announced() {
    let says = "  - {when: line.type == 'say', emit: {message: {text: line.text}}}\n  \
                - {when: line.type == 'tool', emit: {tool-call: {id: line.id}}}\n";
    let announced = json!({"type": "tool", "id": "t1"});
    for kind in [
        "tool_use",
        "toolCall",
        "tool_call",
        "function_call",
        "server_tool_use",
        "MCP_CALL",
        "localShellCall",
        "apply_patch_call",
    ] {
        let block = json!({"type": kind, "id": "t1", "name": "sh", "input": {"command": "rm -rf x"}});
        let say = json!({"type": "say", "text": "hi", "blocks": [{"type": "text", "text": "hi"}, block]});
        assert_eq!(lost(says, std::slice::from_ref(&say)), ["unmapped_line call"], "{kind}");
        assert_eq!(lost(says, &[say.clone(), say.clone()]), ["unmapped_line call"], "{kind}");
        // A message may come before the calls that it shows.
        assert_eq!(lost(says, &[say.clone(), announced.clone()]), [""; 0], "{kind}");
        assert_eq!(lost(says, &[announced.clone(), say.clone()]), [""; 0], "{kind}");
        // Without an id, it cannot be recognised later.
        let mut nameless = say;
        nameless["blocks"][1].as_object_mut().unwrap().remove("id");
        assert_eq!(lost(says, &[nameless, announced.clone()]), ["unmapped_line call"], "{kind}");
    }
    for kind in ["tool_result", "function_call_output", "patch", "tool_reference", "step-finish", "mcp_list_tools"] {
        let block = json!({"type": kind, "id": "x1", "name": "sh", "hash": "1", "reason": "tool-calls", "tools": []});
        assert_eq!(lost(says, &[json!({"type": "say", "text": "hi", "blocks": [block]})]), [""; 0], "{kind}");
    }
    // A call without arguments is a call, also as an item of a list.
    let items = "  - {when: line.type == 'say', for-each: line.blocks, rules: [{when: it.type == 'text', emit: {message: {text: it.text}}}]}\n";
    let say = json!({"type": "say", "blocks": [{"type": "toolCall", "id": "c1", "name": "sh", "arguments": {}}]});
    assert_eq!(lost(items, &[say]), ["unmapped_line line"]);
    // The event of a call does not show another one with its id.
    let twice = |other: &str| {
        let block = |name: &str| json!({"type": "tool_use", "id": "t1", "name": name, "input": {}});
        json!({"type": "say", "text": "hi", "blocks": [block("sh"), block(other)]})
    };
    assert_eq!(lost(says, &[announced.clone(), twice("rm")]), ["unmapped_line call"]);
    assert_eq!(lost(says, &[announced.clone(), twice("sh")]), [""; 0]);
    // A part of a message may have an id of its own besides that of its call.
    let part = json!({"type": "tool", "id": "p1", "callID": "t1", "tool": "sh", "state": {"input": {"command": "rm"}}});
    let say = json!({"type": "say", "text": "hi", "parts": [part]});
    assert_eq!(lost(says, std::slice::from_ref(&say)), ["unmapped_line call"]);
    assert_eq!(lost(says, &[say, announced]), [""; 0]);
    let available = json!({"type": "say", "text": "hi", "can": [{"type": "tool", "id": "sh", "name": "sh"}]});
    assert_eq!(lost(says, &[available]), [""; 0]);
}

#[test]
fn a_notice_at_the_end_is_about_the_line_that_lists_the_call_or_asks_for_it() {
    let rules = "stream:\n  - {when: line.type == 'act', emit: {tool-call: {id: \"line.tool_calls[0].id\"}}}\n  \
                 - {when: line.type == 'ask', emit: {permission-request: {request: line.id, id: line.id}}}\n  \
                 - {when: line.type == 'end', emit: {stop: {reason: end_turn}}}\n";
    let acts = json!({"type": "act", "tool_calls": [{"id": "c1", "input": {}}, {"id": "c2", "input": {}}]});
    let asks = json!({"type": "ask", "id": "c3"});
    let events = run(rules, &[acts.clone(), asks.clone(), json!({"type": "end"})]);
    for (code, number, line) in [("unmapped_line", 1, acts), ("unknown_call", 2, asks)] {
        let notice = events.iter().find(|event| event["code"] == code).unwrap();
        assert_eq!((&notice["line"], &notice["lost"]), (&json!(number), &json!("call")), "{events:#?}");
        let begins = format!("the line begins: {}", &line.to_string()[..20]);
        assert!(notice["text"].as_str().unwrap().contains(&begins), "{notice}");
    }
}

#[test]
fn a_further_call_of_a_line_is_lost_unless_it_is_announced() {
    let first = "  - {when: line.type == 'act', emit: {tool-call: {id: \"line.tool_calls[0].id\"}}}\n  \
                 - {when: line.type == 'tool', emit: {tool-call: {id: line.id}}}\n";
    let call = |id: &str| json!({"id": id, "function": {"name": "sh", "arguments": "{}"}});
    let act = |calls: &[Value]| json!({"type": "act", "tool_calls": calls});
    let two = act(&[call("c1"), call("c2")]);
    assert_eq!(lost(first, &[act(&[call("c1")])]), [""; 0]);
    assert_eq!(lost(first, std::slice::from_ref(&two)), ["unmapped_line call"]);
    // A later line may announce it.
    assert_eq!(lost(first, &[two, json!({"type": "tool", "id": "c2"})]), [""; 0]);
    // Without an ID, it cannot be recognised later.
    let nameless = json!({"function": {"name": "rm", "arguments": "{}"}});
    assert_eq!(lost(first, &[act(&[call("c1"), nameless])]), ["unmapped_line call"]);
    // The list may have any name, and its entries the keys of this agent.
    let entry = |id: &str| json!({"id": id, "tool": "sh", "input": {"command": "ls"}});
    let command = |id: &str| json!({"id": id, "command": "ls"});
    for key in ["calls", "actions", "toolRequests", "tools", "commands"] {
        let rule = first.replace("tool_calls", key);
        for [one, two] in [[entry("c1"), entry("c2")], [command("c1"), command("c2")]] {
            let other = json!({"id": "x", "path": "a.txt"});
            assert_eq!(lost(&rule, &[json!({"type": "act", key: [one, other]})]), [""; 0], "{key}");
            let both = json!({"type": "act", key: [one, two]});
            assert_eq!(lost(&rule, std::slice::from_ref(&both)), ["unmapped_line call"], "{key}");
            assert_eq!(lost(&rule, &[both, json!({"type": "tool", "id": "c2"})]), [""; 0], "{key}");
        }
    }
    // The arguments of a call may hold such a list, whose entries are no calls.
    let mut plans = json!({"type": "tool", "id": "1", "name": "plan"});
    plans["input"] = json!({"steps": [{"id": "1", "name": "look"}, {"id": "2", "name": "write"}]});
    assert_eq!(lost(first, &[plans]), [""; 0]);
    // The same with content blocks.
    let block = |id: &str| json!({"type": "tool_use", "id": id, "name": "sh", "input": {}});
    let blocks = "  - {when: line.type == 'act', emit: {tool-call: {id: \"line.content[0].id\"}}}\n";
    assert_eq!(lost(blocks, &[json!({"type": "act", "content": [block("c1")]})]), [""; 0]);
    assert_eq!(lost(blocks, &[json!({"type": "act", "content": [block("c1"), block("c2")]})]), ["unmapped_line call"]);
    // A rule may take every call, and give it an ID of its own.
    for id in ["it.id", "'own-' + string(index)"] {
        let each = format!(
            "  - {{when: line.type == 'act', for-each: line.tool_calls, rules: [{{emit: {{tool-call: {{id: \"{id}\"}}}}}}]}}\n"
        );
        assert_eq!(lost(&each, &[act(&[call("c1"), call("c2")])]), [""; 0], "{id}");
    }
}

#[test]
fn a_text_of_an_unknown_sub_agent_and_an_answer_that_is_not_shown_are_lost_texts() {
    let says = "  - {when: line.type == 'say', emit: {message: {text: line.text, parent: line.of}}}\n";
    let say = |of: &Value| json!({"type": "say", "text": "I failed", "of": of});
    assert_eq!(lost(says, &[say(&json!("session-1"))]), ["unknown_parent text"]);
    assert_eq!(lost(says, &[say(&Value::Null)]), [""; 0]);
    let ends = "  - {when: line.type == 'bye', emit: {stop: {reason: end_turn, output: line.result}}}\n";
    assert_eq!(lost(ends, &[json!({"type": "bye"})]), ["answer_not_shown text"]);
    assert_eq!(lost(ends, &[json!({"type": "bye", "result": ""})]), [""; 0]);
    let both = format!("{says}{ends}");
    let differs = [say(&Value::Null), json!({"type": "bye", "result": "done"})];
    assert_eq!(lost(&both, &differs), ["answer_differs text"]);
    let repeats = [say(&Value::Null), json!({"type": "bye", "result": "I failed"})];
    assert_eq!(lost(&both, &repeats), [""; 0]);
    assert_eq!(lost(&format!("{says}{ends}"), &[say(&Value::Null), json!({"type": "bye"})]), [""; 0]);
}

#[test]
fn work_after_the_end_that_a_stream_reports_is_an_unfinished_turn() {
    let rules = "  - {when: line.type == 'say', emit: {message: {text: line.text, id: line.id}}}\n  \
                 - {when: line.type == 'think', emit: {thought: {text: line.text}}}\n  \
                 - {when: line.type == 'call', emit: {tool-call: {id: line.id, kind: \"'read'\"}}}\n  \
                 - {when: line.type == 'last', emit: [{stop: {reason: end_turn}}, {message: {text: line.text}}]}\n  \
                 - {when: line.type == 'used', emit: {usage: {input: line.n}}}\n";
    let say = |text: &str| json!({"type": "say", "text": text, "id": text});
    let (end, used) = (json!({"type": "end"}), json!({"type": "used", "n": 5}));
    let call = json!({"type": "call", "id": "c"});
    let of = |more: &[Value]| {
        let mut lines = vec![say("One."), end.clone()];
        lines.extend_from_slice(more);
        lost(rules, &lines)
    };
    for more in [vec![], vec![used], vec![say("One.")], vec![say("Two."), end.clone()], vec![call.clone(), end.clone()]]
    {
        assert_eq!(of(&more), [""; 0], "{more:?}");
    }
    for more in [say("Two."), json!({"type": "think", "text": "Two."}), call] {
        assert_eq!(of(std::slice::from_ref(&more)), ["unfinished_turn text"], "{more}");
    }
    // A text without an id is a message of its own.
    let without_id = |text: &str| json!({"type": "say", "text": text});
    for (more, losses) in [("One.", vec![]), ("One. Two.", vec!["unfinished_turn text"])] {
        assert_eq!(lost(rules, &[without_id("One."), end.clone(), without_id(more)]), losses, "{more}");
    }
    // The line of the end may show the answer.
    assert_eq!(lost(rules, &[json!({"type": "last", "text": "One."})]), [""; 0]);
}

#[test]
fn variables_are_kept_between_lines() {
    let rules = "
stream:
  - {when: line.type == 'begin', keep: {n: 'kept.?n.orValue(0) + 1', tool: line.tool}, ignore: true}
  - {when: line.type == 'end', emit: [{tool-call: {id: \"'call-' + string(kept.n)\", name: kept.tool}}, {tool-result: {id: \"'call-' + string(kept.n)\"}}]}
  - {when: line.type == 'forget', keep: {tool: line.nothing}}
";
    let line = |kind: &str| json!({"type": kind, "tool": "bash"});
    let events = run(rules, &[line("begin"), line("end"), line("begin"), line("forget"), line("end")]);
    let calls: Vec<(&Value, &Value)> = events
        .iter()
        .filter(|event| event["type"] == "tool_call")
        .map(|event| (&event["call"], &event["name"]))
        .collect();
    assert_eq!(calls, [(&json!("call-1"), &json!("bash")), (&json!("call-2"), &Value::Null)]);
}

#[test]
fn a_line_that_no_rule_takes_and_an_element_that_no_rule_takes_are_notices() {
    let rules = "
stream:
  - when: line.type == 'blocks'
    for-each: line.blocks
    rules:
      - {when: it.type == 'text', emit: {message: {text: it.text}}}
  - {when: line.type == 'known', ignore: true}
";
    let blocks = json!({"type": "blocks", "blocks": [{"type": "text", "text": "a"}, {"type": "odd", "x": 1}]});
    let events =
        run(rules, &[blocks, json!({"type": "known"}), json!({"type": "new"}), json!("no json"), json!("[1]")]);
    assert_eq!(texts(&events), ["a"]);
    let told = notices(&events);
    let codes: Vec<&str> = told.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes, ["unmapped_line", "unmapped_line", "malformed_line", "malformed_line"]);
    assert!(told[0].1.contains("no rule of stream[0] matches {\"type\":\"odd\",\"x\":1}"), "{told:?}");
    assert_eq!(events.iter().filter(|event| event["line"] == 3).count(), 1);
}

#[test]
fn what_cannot_be_worked_out_is_told_with_rule_and_line() {
    let rules = "
stream:
  - {name: says, when: line.type == 'a', emit: {message: {text: line.text}}}
  - {when: line.type == 'b', emit: [{tool-call: {id: line.id, kind: line.kind}}, {tool-result: {id: line.id, exit-code: line.code + 1, status: line.status}}]}
  - {when: line.n > 3, emit: {message: {text: 'line.n'}}}
  - {when: line.type == 'c', for-each: line.list, emit: {message: {text: it}}}
  - {when: line.type == 'd', emit: {usage: {input: line.input}}}
";
    let lines = [
        json!({"type": "a"}),
        json!({"type": "a", "text": ["no text"]}),
        json!({"type": "a", "text": null}),
        json!({"type": "b", "id": 7, "kind": "magic", "code": "x", "status": "fine"}),
        json!({"type": "z", "n": "many"}),
        json!({"type": "c", "list": 5}),
        json!({"type": "d", "input": -5}),
    ];
    let events = run(rules, &lines);
    let told: Vec<(Value, String)> = events
        .iter()
        .filter(|event| event["type"] == "notice")
        .map(|event| {
            // How the line begins is held by `notices.rs`.
            let text = event["text"].as_str().unwrap().split("; the line begins: ").next().unwrap();
            (event["line"].clone(), format!("{}: {text}", event["code"].as_str().unwrap()))
        })
        .collect();
    let expected = [
        (1, "mapping_failed: says: message.text: there is no `text`"),
        (2, "mapping_failed: says: message.text: found a list, expected a text"),
        (4, "mapping_failed: stream[1]: tool-call.kind: `magic` is not a tool kind"),
        (4, "mapping_failed: stream[1]: tool-result.exit-code: `add` cannot be applied to string and int"),
        (4, "unclear_outcome: how the call 7 ended cannot be read"),
        (
            4,
            "mapping_failed: stream[1]: tool-result.status: `fine` is not a status; expected ok, error, denied or cancelled",
        ),
        (5, "mapping_failed: stream[2]: when: found no matching overload for '_>_' applied to '(string, int)'"),
        (5, "unmapped_line: {\"type\":\"z\",\"n\":\"many\"}"),
        (6, "mapping_failed: stream[3]: for-each: the value is not a list"),
        (7, "usage_incomplete: a count of a usage report cannot be read, so the totals are lower bounds"),
        (7, "mapping_failed: stream[4]: usage.input: found -5, expected a number from 0"),
    ];
    let expected: Vec<(Value, String)> =
        expected.iter().map(|(line, text)| (json!(line), (*text).to_owned())).collect();
    assert_eq!(told, expected);
    assert!(events.iter().any(|event| event["type"] == "tool_result" && event["call"] == "7"));
    assert!(events.iter().all(|event| event["type"] != "usage"));
}

#[test]
fn calls_are_joined_by_their_ids_and_their_arguments_by_pieces() {
    let rules = "
tool-kinds: {'run*': execute}
stream:
  - {when: line.type == 'piece', emit: {tool-call: {id: line.id, name: line.name, input-delta: line.piece}}}
  - {when: line.type == 'call', emit: {tool-call: {id: line.id, name: line.name, input: line.input, title: line.title, locations: line.files}}}
  - {when: line.type == 'result', emit: {tool-result: {id: line.id, output: line.output, diffs: line.diffs, truncated: line.cut}}}
  - {when: line.type == 'refused', emit: {denied: {id: line.id}}}
";
    let lines = [
        json!({"type": "piece", "id": "a", "name": "run_it", "piece": "{\"comm"}),
        json!({"type": "piece", "id": "a", "piece": "and\": \"ls\"}"}),
        json!({"type": "call", "id": "b", "name": "edit", "input": "{\"path\": \"x\"}", "title": "Editing", "files": ["x", {"path": "y", "line": 3}]}),
        json!({"type": "result", "id": "a", "output": "x", "cut": true}),
        json!({"type": "refused", "id": "b"}),
        json!({"type": "result", "id": "b", "diffs": [{"path": "x", "old": "1", "new": "2"}, {"path": "y"}]}),
        json!({"type": "result", "id": "b"}),
        json!({"type": "result", "id": "c"}),
        json!({"type": "call", "id": "a", "name": "run_it", "input": {}}),
    ];
    let events = run(rules, &lines);
    let shown: Vec<Value> = events.iter().filter(|event| event["type"] != "stop").cloned().collect();
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots/json_stream"}, {
        insta::assert_json_snapshot!("rules-calls", shown);
    });
}

#[test]
fn plans_permissions_and_headers_are_taken_over() {
    let rules = "
stream:
  - {when: line.type == 'hello', emit: {header: {agent: \"'Mine'\", version: line.version, model: line.model, cwd: line.cwd}}}
  - {when: line.type == 'plan', emit: {plan: {entries: \"line.steps.map(s, {'text': s, 'status': 'pending'})\"}}}
  - {when: line.type == 'call', emit: {tool-call: {id: line.id, name: \"'rm'\", kind: delete}}}
  - {when: line.type == 'ask', emit: {permission-request: {request: line.request, id: line.id, options: \"[{'option': 'y', 'kind': 'allow_once', 'label': 'Yes'}]\"}}}
  - {when: line.type == 'answer', emit: {permission-response: {request: line.request, outcome: \"line.ok ? allowed : rejected\"}}}
  - {when: line.type == 'result', emit: {tool-result: {id: line.id}}}
";
    let lines = [
        json!({"type": "hello", "version": "1.2", "model": "m", "cwd": "/w"}),
        json!({"type": "hello", "version": "1.2", "model": "n", "cwd": "/w"}),
        json!({"type": "plan", "steps": ["one", "two"]}),
        json!({"type": "call", "id": "a"}),
        json!({"type": "ask", "request": 1, "id": "a"}),
        json!({"type": "answer", "request": 1, "ok": false}),
        json!({"type": "answer", "request": 9, "ok": true}),
        json!({"type": "result", "id": "a"}),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let trace = trace(&manifest(rules), &text.join("\n"));
    laws::assert_lawful(&trace);
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots/json_stream"}, {
        insta::assert_snapshot!("rules-other-events", trace);
    });
}

#[test]
fn each_of_two_requests_with_one_id_has_its_own_answer() {
    let rules = "  - {when: line.type == 'call', emit: {tool-call: {id: line.id}}}\n  \
                 - {when: line.type == 'ask', emit: {permission-request: {request: \"'r'\", id: line.id}}}\n  \
                 - {when: line.type == 'answer', emit: {permission-response: {request: \"'r'\", outcome: line.outcome}}}\n";
    let call = |id: &str| json!({"type": "call", "id": id});
    let ask = |id: &str| json!({"type": "ask", "id": id});
    let answer = |outcome: &str| json!({"type": "answer", "outcome": outcome});
    let lines = [call("a"), call("b"), ask("a"), ask("b"), answer("allowed"), answer("rejected")];
    let events = run(&format!("stream:\n{rules}"), &lines);
    let answers = events.iter().filter(|event| event["type"] == "permission_response");
    let answers: Vec<(&Value, &Value)> = answers.map(|event| (&event["call"], &event["outcome"])).collect();
    assert_eq!(answers, [(&json!("a"), &json!("allowed")), (&json!("b"), &json!("rejected"))]);
    assert_eq!(lost(rules, &lines), ["duplicate_request call"]);
    // Both are about the same call.
    assert_eq!(lost(rules, &[call("a"), ask("a"), ask("a"), answer("rejected")]), [""; 0]);
}

#[test]
fn usage_follows_the_convention_of_the_manifest() {
    let rules = "
usage: {scope: session, input-includes-cache: true, output-excludes-thoughts: true}
stream:
  - {when: has(line.input), emit: {usage: {input: line.input, cache-read: line.cached, output: line.output, thought: line.thought, cost-usd: line.cost}}}
";
    let usage = |line: Value| {
        let events = run(rules, &[line]);
        let mut usage = events[0].clone();
        assert_eq!(usage["type"], "usage");
        for key in ["seq", "at_ms", "type"] {
            usage.as_object_mut().unwrap().remove(key);
        }
        usage
    };
    let all = json!({"input": 10, "cached": 4, "output": 3, "thought": 2, "cost": 0.5});
    assert_eq!(
        usage(all),
        json!({"scope": "session", "input_tokens": 6, "output_tokens": 5, "cache_read_tokens": 4, "thought_tokens": 2, "cost_usd": 0.5})
    );
    // Without its parts a figure is unknown. Their sum is a lower bound: the thoughts are not in it.
    let sum = json!({"scope": "session", "total_tokens": 13, "cost_usd": 0.5, "lower_bounds": ["total_tokens"]});
    assert_eq!(usage(json!({"input": 10, "output": 3, "cost": "0.5"})), sum);
}

/// The usage of a session.
fn usage_of(rules: &str, lines: &[Value]) -> UsageTotal {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let mut total = UsageTotal::default();
    let done = import(Adapter::JsonStream, &manifest(rules), true, text.join("\n").as_bytes(), |event| {
        total.event(&event);
        Ok(())
    });
    done.unwrap();
    total
}

#[test]
fn a_usage_report_that_cannot_be_read_makes_the_totals_lower_bounds() {
    let rules = "
stream:
  - {when: line.type == 'end', emit: {stop: {reason: end_turn}}}
  - {emit: {usage: {input: line.i, output: line.o, cache-read: line.cached, cost-usd: line.cost, scope: line.scope}}}
";
    let read = json!({"i": 10, "o": 1, "cost": 0.5, "scope": "call"});
    let end = json!({"type": "end"});
    let totals = |more: Value| {
        let mut other = json!({"i": 20, "o": 2, "cost": 0.5, "scope": "call"});
        other.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let total = usage_of(rules, &[read.clone(), other, end.clone()]);
        (total.tokens().unwrap(), total.cost_usd().unwrap())
    };
    assert_eq!(totals(json!({})), (Amount::Exact(33), Amount::Exact(1.0)));
    for scope in [json!("total"), json!(["call"]), json!(true)] {
        assert_eq!(totals(json!({"scope": scope})), (Amount::AtLeast(11), Amount::AtLeast(0.5)));
    }
    assert_eq!(totals(json!({"cached": "many"})), (Amount::AtLeast(33), Amount::AtLeast(1.0)));
    assert_eq!(totals(json!({"i": -1, "o": [], "cost": null})), (Amount::AtLeast(11), Amount::AtLeast(0.5)));
    assert_eq!(totals(json!({"cost": "free"})), (Amount::Exact(33), Amount::AtLeast(0.5)));
    // A count of the session that cannot be read may have grown since the report before.
    let of_session = rules.replace("line.scope", "session");
    let later = json!({"i": "many", "o": 5, "cost": 0.9});
    assert_eq!(usage_of(&of_session, &[read, later, end]).input_tokens(), Some(Amount::AtLeast(10)));
}

#[test]
fn a_second_result_with_another_exit_code_is_another_outcome_in_both_orders() {
    let rules = "  - {when: line.type == 'call', emit: {tool-call: {id: line.id}}}\n  \
                 - {when: line.type == 'result', emit: {tool-result: {id: line.id, output: line.out, exit-code: line.code}}}\n";
    let call = json!({"type": "call", "id": "a"});
    let result = |code: Value| json!({"type": "result", "id": "a", "out": "x", "code": code});
    for (first, second, is_lost) in [
        (json!(0), json!(1), true),
        (json!(1), json!(0), true),
        (json!(1), json!(1), false),
        // A report without the exit code repeats the one before.
        (json!(1), Value::Null, false),
    ] {
        let lines = [call.clone(), result(first.clone()), result(second.clone())];
        let expected: &[&str] = if is_lost { &["repeated_result outcome"] } else { &[] };
        assert_eq!(lost(rules, &lines), expected, "{first} {second}");
    }
}

#[test]
fn the_agent_s_own_word_decides_how_it_ended() {
    let rules = "
error-text: ['^API Error']
stream:
  - {when: has(line.said), emit: {message: {text: line.said}}}
  - {when: line.type == 'end', emit: {stop: {reason: line.reason, detail: line.detail, http: line.http, output: line.output}}}
";
    let stop = |lines: &[Value]| {
        let stop = run(rules, lines).pop().unwrap();
        let text = |key: &str| stop[key].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("category"), text("detail"), text("output"))
    };
    let word = |reason: Value| stop(&[json!({"type": "end", "reason": reason})]);
    let of = |reason: &str, category: &str, detail: &str, output: &str| {
        (reason.to_owned(), category.to_owned(), detail.to_owned(), output.to_owned())
    };
    assert_eq!(word(json!("end_turn")), of("end_turn", "", "", ""));
    assert_eq!(word(json!("refusal")), of("refusal", "", "", ""));
    assert_eq!(word(json!("pause")), of("other", "", "pause", ""));
    assert_eq!(word(json!(null)), of("error", "protocol", "the agent's stop event has no reason", ""));
    assert_eq!(word(json!(["a"])), of("error", "protocol", "the agent's stop event has no reason", ""));
    assert_eq!(
        stop(&[json!({"type": "end", "reason": "error", "detail": "no", "http": 429})]),
        of("error", "rate_limit", "no", "")
    );
    assert_eq!(stop(&[json!({"type": "end", "reason": "end_turn", "output": "42"})]), of("end_turn", "", "", "42"));
    let said = json!({"said": "API Error: 500"});
    assert_eq!(
        stop(&[said.clone(), json!({"type": "end", "reason": "end_turn"})]),
        of("error", "provider", "API Error: 500", "API Error: 500")
    );
    assert_eq!(stop(&[said]).0, "crashed");
    assert_eq!(stop(&[json!("API Error: 529 overloaded")]), of("error", "rate_limit", "API Error: 529 overloaded", ""));
}

#[test]
fn the_end_of_a_stream_can_be_a_word_of_its_own() {
    let rules = "
stream:
  - {when: line.type == 'said', keep: {done: true}, emit: {message: {text: line.text}}}
  - {on: end, when: kept.done && (exit == null || exit.code == 0), emit: {stop: {reason: end_turn}}}
";
    let wire = |code: i64| {
        let line = json!({"type": "said", "text": "42"}).to_string();
        let exit = format!("{{\"code\":{code},\"signal\":null}}");
        vec![json!({"at_ms": 1, "dir": "recv", "line": line}), json!({"at_ms": 2, "dir": "exit", "line": exit})]
    };
    assert_eq!(run(rules, &wire(0)).pop().unwrap()["reason"], "end_turn");
    assert_eq!(run(rules, &wire(1)).pop().unwrap()["reason"], "crashed");
    assert_eq!(run(rules, &[json!({"type": "said", "text": "42"})]).pop().unwrap()["reason"], "end_turn");
    assert_eq!(run(rules, &[]).pop().unwrap()["reason"], "crashed");
}
