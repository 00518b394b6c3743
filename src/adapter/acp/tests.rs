//! Odd sessions, each in a few lines.

use serde_json::json;

use super::*;
use crate::adapter::Translation;
use crate::harness::Adapter;
use crate::trace::amount::Amount;
use crate::trace::calls::{Call, Joiner};
use crate::trace::usage::UsageTotal;
use crate::trace::{
    Body, CallStatus, ErrorCategory, Event, Header, Lost, Message as TraceMessage, NoticeCode, PermissionOutcome, Role,
    Stop, StopReason, ToolKind, Usage, UsageScope,
};
use crate::wire::Dir;

mod calls;
mod endings;

/// A session under construction.
struct Script {
    translation: Translation,
    at_ms: u64,
}

struct TestTrace {
    header: Header,
    events: Vec<Event>,
}

impl Script {
    fn of(manifest: &Manifest) -> Self {
        let header = Header::new("acp", manifest.seen());
        Self { translation: Translation::new(Adapter::Acp, manifest, header), at_ms: 0 }
    }

    fn new() -> Self {
        Self::of(&Manifest::bare(Adapter::Acp))
    }

    /// Returns a session `s` that is prompted, with the request 3.
    fn prompted() -> Self {
        let mut script = Self::new();
        script.open();
        script.prompt(3, "do it");
        script
    }

    fn open(&mut self) {
        self.send(json!({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}));
        self.recv(json!({"id": 1, "result": {"protocolVersion": 1}}));
        self.send(json!({"id": 2, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}));
        self.recv(json!({"id": 2, "result": {"sessionId": "s"}}));
    }

    fn prompt(&mut self, id: u64, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(json!({"id": id, "method": "session/prompt", "params": {"sessionId": "s", "prompt": prompt}}));
    }

    fn line(&mut self, dir: Dir, line: &str) {
        self.at_ms += 1;
        self.translation.line(&WireLine::text(self.at_ms, dir, line));
    }

    fn send(&mut self, message: Value) {
        self.line(Dir::Send, &message.to_string());
    }

    fn recv(&mut self, message: Value) {
        self.line(Dir::Recv, &message.to_string());
    }

    fn update(&mut self, update: Value) {
        self.recv(json!({"method": "session/update", "params": {"sessionId": "s", "update": update}}));
    }

    fn say(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}));
    }

    /// Adds a `tool_call` with the id and the given fields.
    fn call(&mut self, id: &str, more: Value) {
        self.call_as("tool_call", id, more);
    }

    fn change(&mut self, id: &str, more: Value) {
        self.call_as("tool_call_update", id, more);
    }

    fn call_as(&mut self, word: &str, id: &str, more: Value) {
        let mut update = json!({"sessionUpdate": word, "toolCallId": id});
        if let (Value::Object(update), Value::Object(more)) = (&mut update, more) {
            update.extend(more);
        }
        self.update(update);
    }

    /// Adds a permission request whose options have names that contradict their kinds.
    fn ask(&mut self, id: Value, session: &str, call: Value) {
        let options = json!([
            {"optionId": "a", "name": "No", "kind": "allow_once"},
            {"optionId": "r", "name": "Yes", "kind": "reject_once"},
            {"optionId": "x", "name": "Hm", "kind": "ponder"}
        ]);
        let params = json!({"sessionId": session, "toolCall": call, "options": options});
        self.recv(json!({"id": id, "method": "session/request_permission", "params": params}));
    }

    fn choose(&mut self, id: Value, option: &str) {
        self.send(json!({"id": id, "result": {"outcome": {"outcome": "selected", "optionId": option}}}));
    }

    fn end(self) -> TestTrace {
        let finished = self.translation.finish();
        TestTrace { header: finished.header, events: finished.events }
    }

    /// Answers the prompt 3 and ends.
    fn done(mut self) -> TestTrace {
        self.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
        self.end()
    }
}

fn collect<'a, T>(events: &'a [Event], of: impl Fn(&'a Event) -> Option<T>) -> Vec<T> {
    events.iter().filter_map(of).collect()
}

impl TestTrace {
    fn calls(&self) -> Vec<Call> {
        let mut joiner = Joiner::default();
        let mut calls: Vec<Call> = self.events.iter().flat_map(|event| joiner.event(event)).collect();
        calls.extend(joiner.rest());
        calls
    }

    fn call(&self) -> Call {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:#?}");
        calls.remove(0)
    }

    fn notices(&self) -> Vec<&str> {
        collect(&self.events, |event| match &event.body {
            Body::Notice { code, .. } => Some(code.as_str()),
            _ => None,
        })
    }

    fn stop(&self) -> &Stop {
        match self.events.last().map(|event| &event.body) {
            Some(Body::Stop(stop)) => stop,
            other => panic!("no stop: {other:?}"),
        }
    }

    fn ended(&self) -> (StopReason, Option<ErrorCategory>) {
        (self.stop().reason, self.stop().category)
    }

    fn messages(&self) -> Vec<(Role, &str)> {
        collect(&self.events, |event| match &event.body {
            Body::Message(TraceMessage { role, text, .. }) => Some((*role, text.as_str())),
            _ => None,
        })
    }

    fn answers(&self) -> Vec<PermissionOutcome> {
        collect(&self.events, |event| match &event.body {
            Body::PermissionResponse(response) => Some(response.outcome),
            _ => None,
        })
    }

    fn tokens(&self) -> Option<Amount<u64>> {
        let mut total = UsageTotal::default();
        self.events.iter().for_each(|event| total.event(event));
        total.tokens()
    }

    fn usages(&self) -> Vec<Usage> {
        collect(&self.events, |event| match &event.body {
            Body::Usage(usage) => Some(usage.clone()),
            _ => None,
        })
    }
}

#[test]
fn updates_before_the_session_is_known_wait_for_it() {
    let mut script = Script::new();
    script.send(json!({"id": 2, "method": "session/new", "params": {"cwd": "/w"}}));
    script.say("early");
    script.recv(json!({"method": "session/update", "params": {"sessionId": "other",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "not ours"}}}}));
    script.recv(json!({"id": 2, "result": {"sessionId": "s"}}));
    script.prompt(3, "do it");
    let trace = script.done();
    assert_eq!(trace.messages(), [(Role::Agent, "early"), (Role::User, "do it")]);
    assert_eq!(trace.notices(), ["foreign_session"]);
    assert_eq!(trace.header.cwd.as_deref(), Some("/w"));
}

#[test]
fn large_updates_do_not_wait_for_the_session() {
    let mut script = Script::new();
    script.send(json!({"id": 2, "method": "session/new", "params": {}}));
    script.say("early");
    assert!(script.translation.recorder().pending().next().is_none());
    script.say(&"x".repeat(5 << 20));
    assert!(script.translation.recorder().pending().next().is_some());
}

#[test]
fn without_an_answer_early_updates_are_ours() {
    let mut script = Script::new();
    script.send(json!({"id": 2, "method": "session/new", "params": {}}));
    script.say("early");
    let trace = script.end();
    assert_eq!(trace.messages(), [(Role::Agent, "early")]);
    assert_eq!(trace.ended(), (StopReason::Crashed, Some(ErrorCategory::Crashed)));
}

#[test]
fn the_history_of_a_loaded_session_is_not_this_one() {
    let mut script = Script::new();
    script.send(json!({"id": 2, "method": "session/load", "params": {"sessionId": "s", "cwd": "/w"}}));
    script.say("long ago");
    script.say("and more");
    script.call("c", json!({"kind": "read", "status": "completed"}));
    script.recv(json!({"id": 2, "result": null}));
    script.say("and the end of it");
    script.prompt(3, "do it");
    script.say("now");
    let trace = script.done();
    assert_eq!(trace.messages(), [(Role::User, "do it"), (Role::Agent, "now")]);
    // The trace does not have the earlier session, so nothing is missing in it.
    assert_eq!(trace.notices(), ["history"]);
}

#[test]
fn the_model_that_ran_counts_before_the_one_chosen() {
    let option = |value: &str| json!([{"id": "m", "category": "model", "type": "select", "currentValue": value}]);
    let mut script = Script::prompted();
    script.update(json!({"sessionUpdate": "config_option_update", "configOptions": option("first")}));
    assert_eq!(script.translation.recorder().header().model.effective.as_deref(), Some("first"));
    script.update(json!({"sessionUpdate": "config_option_update", "configOptions": option("second")}));
    assert_eq!(script.translation.recorder().header().model.effective.as_deref(), Some("second"));
    script.update(json!({"sessionUpdate": "usage_update", "used": 5, "size": 9, "_meta": {"_claude/model": "ran"}}));
    script.update(json!({"sessionUpdate": "usage_update", "used": 6, "_meta": {"_claude/model": "<synthetic>"}}));
    let trace = script.done();
    assert_eq!(trace.header.model.effective.as_deref(), Some("ran"));
}

#[test]
fn late_events_are_kept_and_told_once_for_each_kind() {
    let mut script = Script::prompted();
    script.say("almost ");
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    script.say("all");
    script.say(" of it");
    script.call("c", json!({"kind": "read", "status": "completed"}));
    script.update(json!({"sessionUpdate": "session_info_update", "title": "x"}));
    let trace = script.end();
    assert_eq!(trace.messages()[1], (Role::Agent, "almost all of it"));
    assert_eq!(trace.calls().len(), 1);
    assert_eq!(trace.notices(), ["late_update", "late_update"]);
}

#[test]
fn messages_of_qwens_program_are_no_answer_and_a_later_message_of_its_model_is_apart() {
    let message = |source: Option<&str>, text: &str| {
        let meta = json!({"qwenDiscreteMessage": true, "source": source});
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "_meta": meta})
    };
    let mut script = Script::prompted();
    script.say("DO");
    script.update(message(Some("background_task_completed"), "Monitor completed."));
    script.say("NE");
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    for source in ["background_notification", "todo_stop_guard", "vision_bridge_notice"] {
        script.update(message(Some(source), "Monitor completed."));
    }
    script.update(message(None, "The settings are wrong."));
    script.update(message(Some("background_notification_response"), "It ended."));
    let trace = script.end();
    assert_eq!(trace.messages()[1], (Role::Agent, "DONE\n\nIt ended."));
    assert_eq!(trace.notices().iter().filter(|code| **code == "program_message").count(), 5);
}

#[test]
fn noise_is_told_and_breaks_nothing() {
    let mut script = Script::prompted();
    for line in ["npm warn deprecated", "42", "", "   ", "[1, {\"method\": \"x/y\"}]", "{\"method\":\"x/y\"}"] {
        script.line(Dir::Recv, line);
    }
    script.recv(json!({"id": 0, "method": "craft/drainMidTurnQueue", "params": {}}));
    script.recv(json!({"id": 1, "method": "craft/drainMidTurnQueue", "params": {}}));
    script.recv(json!({"id": 2, "method": "fs/write_text_file", "params": {"path": "/w/a", "content": "x"}}));
    script.recv(json!({"id": 5, "method": "elicitation/create", "params": {"message": "Which one?"}}));
    script.recv(json!({"method": "session/update"}));
    script.recv(json!({"method": "session/update", "params": [1]}));
    script.update(json!("text"));
    script.update(json!({"no": "word"}));
    script.update(json!({"sessionUpdate": "hologram", "x": 1}));
    script.update(json!({"sessionUpdate": "tool_call"}));
    script.update(json!({"sessionUpdate": "plan", "entries": "none"}));
    script.update(json!({"sessionUpdate": "notice", "severity": "warning", "title": "t", "description": "d"}));
    script.update(json!({"sessionUpdate": "compaction_update", "compactionId": "1", "status": "started"}));
    script.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "data": "abc"}}));
    script.update(json!({"sessionUpdate": "agent_message_chunk"}));
    for word in ["available_commands_update", "current_mode_update", "session_info_update"] {
        script.update(json!({"sessionUpdate": word}));
    }
    script.say("fine");
    let trace = script.done();
    assert_eq!(
        trace.notices(),
        [
            "malformed_line",
            "malformed_line",
            "malformed_line",
            "unknown_method",
            "unknown_method",
            "unannounced_action",
            "malformed_update",
            "malformed_update",
            "malformed_update",
            "malformed_update",
            "unknown_update",
            "malformed_update",
            "unknown_update",
            "agent_notice",
            "compaction",
            "unknown_content",
            "malformed_update",
        ]
    );
    assert_eq!((trace.ended().0, trace.stop().output.as_deref()), (StopReason::EndTurn, Some("fine")));
    let attached = collect(&trace.events, |event| match &event.body {
        Body::Message(TraceMessage { role: Role::Agent, attachments, .. }) => attachments.first(),
        _ => None,
    });
    assert_eq!((attached[0].kind.as_str(), attached[0].bytes), ("hologram", Some(3)));
}

#[test]
fn messages_keep_their_parts_apart() {
    let mut script = Script::new();
    script.open();
    let prompt = json!([
        {"type": "text", "text": "Look at this."},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "text", "text": "And this."}
    ]);
    script.send(json!({"id": 3, "method": "session/prompt", "params": {"sessionId": "s", "prompt": prompt}}));
    let chunk = |word: &str, id: &str, text: &str| json!({"sessionUpdate": word, "messageId": id, "content": {"type": "text", "text": text}});
    script.update(chunk("user_message_chunk", "u", "Look at this.\n"));
    script.update(json!({"sessionUpdate": "user_message_chunk",
        "content": {"type": "image", "mimeType": "image/png", "data": "AAAA"}}));
    script.update(chunk("user_message_chunk", "u", "And this."));
    script.update(chunk("agent_thought_chunk", "m", "Hm."));
    script.update(chunk("agent_message_chunk", "m", "One"));
    script.update(chunk("agent_message_chunk", "m", ", two."));
    script.update(chunk("agent_message_chunk", "m", ""));
    script.update(chunk("agent_message_chunk", "n", "Three."));
    script.update(chunk("user_message_chunk", "v", "A word of the user's own."));
    let trace = script.done();
    assert_eq!(trace.messages(), [(Role::User, "Look at this.\n\nAnd this."), (Role::Agent, "One, two.\n\nThree.")]);
    let Body::Message(first) = &trace.events[0].body else { panic!("no message") };
    assert_eq!((first.attachments.len(), first.attachments[0].bytes), (1, Some(4)));
}

#[test]
fn a_text_of_the_agent_is_never_part_of_the_prompt() {
    let mut script = Script::new();
    script.open();
    let prompt = json!([{"type": "text", "text": "Fix it."}]);
    script.send(json!({"id": 3, "method": "session/prompt", "params": {"sessionId": "s", "prompt": prompt}}));
    let chunk = |word: &str, text: &str| json!({"sessionUpdate": word, "content": {"type": "text", "text": text}});
    script.update(chunk("user_message_chunk", "Fix it. And praise it."));
    script.update(chunk("agent_message_chunk", "Done."));
    script.update(chunk("user_message_chunk", "A word that nobody sent."));
    script.update(json!({"sessionUpdate": "user_message_chunk",
        "content": {"type": "image", "mimeType": "image/png", "data": "AAAA"}}));
    script.update(chunk("agent_message_chunk", "It is 42."));
    let trace = script.done();
    // The final answer begins after such a text.
    assert_eq!(trace.messages(), [(Role::User, "Fix it."), (Role::Agent, "Done.\n\nIt is 42.")]);
    assert_eq!(trace.notices(), ["synthetic_message"; 3]);
    assert_eq!(trace.stop().output.as_deref(), Some("It is 42."));
}

#[test]
fn plans_of_both_versions_are_plans() {
    let mut script = Script::prompted();
    let entries = json!([{"content": "a", "priority": "high", "status": "pending"}, "b", {"content": 5}]);
    script.update(json!({"sessionUpdate": "plan", "entries": entries}));
    script
        .update(json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": entries}}));
    let trace = script.done();
    let plans = collect(&trace.events, |event| match &event.body {
        Body::Plan { entries } => Some(entries.len()),
        _ => None,
    });
    assert_eq!(plans, [2, 2]);
    assert_eq!(trace.notices(), ["malformed_update", "malformed_update"]);
}

#[test]
fn usage_is_taken_from_where_it_is_told() {
    let mut script = Script::prompted();
    script.update(json!({"sessionUpdate": "usage_update", "used": 10, "size": 100,
        "cost": {"amount": 1.5, "currency": "EUR"}}));
    script.update(json!({"sessionUpdate": "usage_update", "used": 0, "size": 100}));
    script.update(json!({"sessionUpdate": "usage_update", "used": 11, "size": 100,
        "cost": {"amount": 0.5, "currency": "USD"}}));
    let quota = json!({"token_count": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10},
        "model_usage": [{"model": "m"}]});
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn", "usage": null, "_meta": {"quota": quota}}}));
    let trace = script.end();
    assert_eq!(trace.notices(), ["unknown_cost"]);
    let usages = trace.usages();
    let costs: Vec<_> = usages.iter().map(|usage| (usage.scope, usage.context_used, usage.cost_usd)).collect();
    assert_eq!(
        costs,
        [
            (UsageScope::Session, Some(10), None),
            (UsageScope::Session, Some(11), Some(0.5)),
            (UsageScope::Turn, None, None)
        ]
    );
    assert_eq!((usages[2].input_tokens, usages[2].model.as_deref()), (Some(7), Some("m")));
    assert_eq!(trace.header.model.effective.as_deref(), Some("m"));
}

#[test]
fn a_sub_agent_with_a_session_of_its_own_is_hidden_and_its_usage_is_missing() {
    let mut script = Script::prompted();
    script.update(json!({"sessionUpdate": "subagent_update", "sessionId": "child", "title": "Helper"}));
    script.update(json!({"sessionUpdate": "session_message", "messageId": "m", "recipientSessionId": "child"}));
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn",
        "usage": {"inputTokens": 80, "outputTokens": 20, "totalTokens": 100}}}));
    let trace = script.end();
    assert_eq!(trace.notices(), ["hidden_sub_agent", "usage_incomplete", "unknown_update", "unknown_update"]);
    let lost = collect(&trace.events, |event| match &event.body {
        Body::Notice { code, lost: Some(lost), .. } => Some((code.as_str(), *lost)),
        _ => None,
    });
    assert_eq!(lost, [("hidden_sub_agent", Lost::Call)]);
    assert_eq!(trace.tokens(), Some(Amount::AtLeast(100)));
}

#[test]
fn a_count_that_cannot_be_read_makes_the_tokens_a_lower_bound() {
    for (tokens, total) in [(json!(100), Amount::Exact(200)), (json!("many"), Amount::AtLeast(100))] {
        let mut script = Script::prompted();
        for tokens in [json!(100), tokens] {
            script.update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"},
                "_meta": {"usage": {"totalTokens": tokens}}}));
        }
        assert_eq!(script.done().tokens(), Some(total));
    }
}

#[test]
fn many_small_updates_stay_one_message() {
    let mut script = Script::prompted();
    for _ in 0..20_000 {
        script.say("x");
    }
    let trace = script.done();
    assert_eq!(trace.events.len(), 3);
    assert_eq!(trace.messages()[1].1.len(), 20_000);
}

#[test]
fn a_long_line_is_a_line() {
    let mut script = Script::prompted();
    script.update(json!({"sessionUpdate": "available_commands_update", "_meta": {"skills": "x".repeat(600_000)}}));
    script.say("after");
    let trace = script.done();
    assert_eq!(trace.stop().output.as_deref(), Some("after"));
    assert!(trace.notices().is_empty());
}
