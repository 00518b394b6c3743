//! The order of calls of several speakers: it is known only if the numbers of their steps and their events agree. Each trace
//! is written by hand.

use serde_json::{Value, json};

use super::{Fail, Pass, Trial, Ungraded, check};

const NO_ORDER: &str = "of different agents";

/// Makes a trial of events, which get their numbers here.
pub fn trial(events: &[Value]) -> Trial {
    let mut text = String::new();
    for (seq, event) in events.iter().enumerate() {
        let mut event = event.clone();
        (event["seq"], event["at_ms"]) = (json!(seq), json!(seq * 1000));
        text += &format!("{event}\n");
    }
    Trial::of(&text)
}

fn call(id: &str, step: u64, kind: &str, of: &str, parent: Option<&str>) -> Value {
    let input = if kind == "execute" { json!({"command": of}) } else { json!({"file_path": of}) };
    let mut call = json!({"type": "tool_call", "call": id, "step": step, "kind": kind, "name": kind, "input": input});
    parent.into_iter().for_each(|parent| call["parent"] = json!(parent));
    call
}

fn end(id: &str, status: &str, parent: Option<&str>) -> Value {
    let mut end = json!({"type": "tool_result", "call": id, "status": status});
    parent.into_iter().for_each(|parent| end["parent"] = json!(parent));
    end
}

fn stop() -> Value {
    json!({"type": "stop", "reason": "end_turn"})
}

/// A sub-agent in the background edits `a` and `b`, both in its step 1. The main agent tests in step 2, between the two edits.
fn in_the_background() -> Trial {
    let sub = Some("t");
    trial(&[
        call("t", 0, "think", "p", None),
        end("t", "ok", None),
        call("e1", 1, "edit", "a", sub),
        end("e1", "ok", sub),
        call("b1", 2, "execute", "pytest tests", None),
        end("b1", "ok", None),
        call("e2", 1, "edit", "b", sub),
        end("e2", "ok", sub),
        stop(),
    ])
}

#[test]
fn steps_of_another_speaker_that_the_events_contradict_show_no_order() {
    let unknown = || Ungraded(NO_ORDER);
    check(
        &in_the_background(),
        &[
            ("rules: [response: {after: {kind: edit}, then: {command: test}}]", unknown()),
            ("rules: [never-after: {after: {command: test}, never: {kind: edit}}]", unknown()),
            ("rules: [before: {first: {path: b}, then: {command: test}}]", unknown()),
            ("rules: [immediately: {after: {path: b}, then: {command: test}}]", unknown()),
            ("rules: [within: {after: {path: b}, then: {command: test}, steps: 3}]", unknown()),
            ("rules: [within: {after: {path: b}, then: {command: test}, seconds: 9s}]", unknown()),
            ("rules: [absent-between: {from: {kind: think}, to: {command: test}, never: {path: b}}]", unknown()),
            ("tool-calls: {order: [{kind: edit, path: b}, {kind: execute}]}", unknown()),
            ("tool-calls: {order: [{kind: execute}, {kind: edit, path: b}]}", unknown()),
            ("trajectory: {agent: any, expected: [{path: b}, {kind: execute}]}", unknown()),
            ("trajectory: {agent: any, mode: exact, expected: [think, edit, edit, execute]}", unknown()),
        ],
    );
    // Where both agree, or only one speaker decides, the order is known.
    check(
        &in_the_background(),
        &[
            ("rules: [response: {after: {path: a}, then: {command: test}}]", Pass(&[4])),
            ("rules: [before: {first: {kind: think}, then: {kind: edit}}]", Pass(&[0])),
            ("rules: [never-after: {after: {path: a}, never: {command: test}}]", Fail(0.0, &[4], "must not happen")),
            ("rules: [before: {first: {command: test}, then: {path: a}}]", Fail(0.0, &[2], "missing before")),
            (
                "rules: [absent-between: {from: {kind: think}, to: {command: test}, never: {path: a}}]",
                Fail(0.0, &[2], ""),
            ),
            ("rules: [absent-between: {from: {path: a}, to: {command: test}, never: {kind: think}}]", Pass(&[])),
            ("tool-calls: {order: [{kind: think}, {kind: edit}, {kind: execute}]}", Pass(&[0, 2, 4])),
            ("tool-calls: {order: [{kind: execute}, {path: a}]}", Fail(0.0, &[4], "the order is broken")),
            ("trajectory: {agent: any, expected: [{path: a}, {kind: execute}]}", Pass(&[2, 4])),
            ("trajectory: {expected: [{kind: think}, {kind: execute}]}", Pass(&[0, 4])),
            ("trajectory: {agent: any, mode: exact, expected: [edit, think]}", Fail(0.0, &[4], "not expected")),
            ("rules: [eventually: {path: b}]", Pass(&[6])),
        ],
    );
}

#[test]
fn a_sub_agent_works_after_the_call_that_starts_it() {
    let sub = Some("t");
    let events = |begin: u64| {
        trial(&[
            call("t", 0, "think", "p", None),
            call("e", begin, "edit", "a", sub),
            end("e", "ok", sub),
            end("t", "ok", None),
            call("b", 2, "execute", "pytest", None),
            end("b", "ok", None),
            stop(),
        ])
    };
    check(
        &events(1),
        &[
            ("rules: [before: {first: {kind: think}, then: {kind: edit}}]", Pass(&[0])),
            ("rules: [never-after: {after: {kind: think}, never: {kind: edit}}]", Fail(0.0, &[1], "")),
            ("rules: [response: {after: {kind: edit}, then: {command: pytest}}]", Pass(&[4])),
            ("rules: [response: {after: {kind: edit}, then: {kind: think}}]", Fail(0.0, &[1], "missing after")),
        ],
    );
    // Steps that a sub-agent counts from 0 say something else than the events.
    check(
        &events(0),
        &[
            ("rules: [before: {first: {kind: think}, then: {kind: edit}}]", Ungraded(NO_ORDER)),
            ("rules: [response: {after: {kind: edit}, then: {command: pytest}}]", Pass(&[4])),
        ],
    );
}

#[test]
fn a_failure_is_recovered_by_a_later_call_of_another_speaker_only_if_it_is_known_to_be_later() {
    let sub = Some("t");
    let events = |first: u64| {
        trial(&[
            call("t", 0, "think", "p", None),
            end("t", "ok", None),
            call("s", first, "execute", "ls", sub),
            end("s", "error", sub),
            call("m", 2, "execute", "ls", None),
            end("m", "ok", None),
            stop(),
        ])
    };
    let recovered = "errors: {recovered: true}";
    check(&events(1), &[(recovered, Pass(&[]))]);
    check(&events(5), &[(recovered, Ungraded(NO_ORDER))]);
}
