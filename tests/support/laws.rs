//! The laws of a trace, checked on its text, so that a trace of any origin can be checked.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const TYPES: [&str; 10] = [
    "message",
    "thought",
    "plan",
    "tool_call",
    "permission_request",
    "permission_response",
    "tool_result",
    "usage",
    "notice",
    "stop",
];
const KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
const STATUSES: [&str; 5] = ["ok", "error", "denied", "cancelled", "unfinished"];
const REASONS: [&str; 11] = [
    "end_turn",
    "max_tokens",
    "max_turns",
    "max_budget",
    "refusal",
    "cancelled",
    "timed_out",
    "idle",
    "error",
    "crashed",
    "other",
];
const FIGURES: [&str; 9] = [
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "thought_tokens",
    "cost_usd",
    "context_used",
    "context_size",
    "total_tokens",
];

/// Panics with the trace if it breaks a law.
pub fn assert_lawful(trace: &str) {
    if let Err(broken) = check(trace) {
        panic!("{broken}\n{trace}");
    }
}

/// Checks every law. The error names the broken law and the line.
pub fn check(trace: &str) -> Result<(), String> {
    let mut lines = trace.lines();
    let header: Value = lines.next().and_then(|line| serde_json::from_str(line).ok()).ok_or("no header")?;
    if header["type"] != "trace" || header["version"] != 1 || !header["adapter"].is_string() {
        return Err(format!("not a header: {header}"));
    }
    let mut laws = Laws { timed: header["timed"] != false, ..Laws::default() };
    for (n, line) in lines.enumerate() {
        let event: Value = serde_json::from_str(line).map_err(|error| format!("event {n}: not JSON: {error}"))?;
        laws.event(n as u64, &event).map_err(|broken| format!("event {n}: {broken}: {line}"))?;
    }
    laws.end()
}

#[derive(Default)]
struct Laws {
    timed: bool,
    at_ms: u64,
    /// A line of the recording has no time, or an earlier one than the line before.
    has_gap_in_times: bool,
    stopped: bool,
    calls: BTreeSet<String>,
    open: BTreeSet<String>,
    requests: BTreeSet<String>,
    unanswered: BTreeSet<String>,
    /// The last step of each speaker, and the speaker of each step.
    steps: BTreeMap<String, u64>,
    owners: BTreeMap<u64, String>,
    /// The speaker whose text the next text would have been joined to.
    spoken: Option<String>,
}

impl Laws {
    fn event(&mut self, n: u64, event: &Value) -> Result<(), String> {
        let law = |held: bool, law: &str| if held { Ok(()) } else { Err(law.to_owned()) };
        let text = |key: &str| event[key].as_str().map(str::to_owned);
        law(!self.stopped, "something follows the stop")?;
        law(event["seq"] == n, "seq has a gap")?;
        let at_ms = event["at_ms"].as_u64().ok_or("no at_ms")?;
        law(at_ms >= self.at_ms, "time goes back")?;
        self.at_ms = at_ms;
        self.has_gap_in_times |= event["code"] == "time_order";
        law(event["host"].is_null() || event["host"] == true, "host is not true")?;
        law(event["parent"].is_null() || text("parent").is_some_and(|it| !it.is_empty()), "parent is no id")?;
        let kind = text("type").ok_or("no type")?;
        law(TYPES.contains(&kind.as_str()), "an unknown type")?;
        let speaker = text("parent").unwrap_or_default();
        match kind.as_str() {
            "message" | "thought" => {
                let said = text("text").ok_or("no text")?;
                law(!said.is_empty() || event["attachments"].is_array(), "it says nothing")?;
                let voice = format!("{kind} {} {speaker}", event["role"]);
                law(self.spoken.as_deref() != Some(&voice), "one speaker's text stands in two events")?;
                law(kind == "thought" || ["user", "agent"].contains(&event["role"].as_str().unwrap_or("")), "no role")?;
                self.spoken = Some(voice);
                return Ok(());
            }
            "usage" => {
                let figure = |key: &&str| event[*key].as_f64().is_some_and(|n| n > 0.0);
                law(FIGURES.iter().any(figure), "nothing but zeros")?;
                law(["call", "turn", "session"].contains(&event["scope"].as_str().unwrap_or("")), "no scope")?;
                return Ok(());
            }
            "notice" => {
                law(text("code").is_some_and(|it| !it.is_empty()), "no code")?;
                return law(event["text"].is_string(), "no text");
            }
            _ => self.spoken = None,
        }
        match kind.as_str() {
            "tool_call" => {
                let call = text("call").ok_or("no call")?;
                law(text("parent").is_none_or(|it| self.calls.contains(&it)), "the parent is no call before it")?;
                law(self.calls.insert(call.clone()), "the id is not unique")?;
                self.open.insert(call);
                law(KINDS.contains(&event["kind"].as_str().unwrap_or("")), "an unknown kind")?;
                let empty = event["input"].as_object().is_some_and(|map| map.is_empty());
                law(!empty, "an empty input stands for an unknown one")?;
                self.step(speaker, event["step"].as_u64().ok_or("no step")?)
            }
            "tool_result" => {
                law(self.open.remove(&text("call").ok_or("no call")?), "a result without an open call")?;
                law(STATUSES.contains(&event["status"].as_str().unwrap_or("")), "an unknown status")?;
                let unfinished = event["status"] == "unfinished";
                law(!unfinished || event["host"] == true, "an unfinished result that the engine did not make")
            }
            "permission_request" => {
                let request = text("request").ok_or("no request")?;
                self.unanswered.insert(request.clone());
                law(self.requests.insert(request), "the id is not unique")
            }
            "permission_response" => {
                law(self.unanswered.remove(&text("request").ok_or("no request")?), "a response without a request")
            }
            "plan" => law(event["entries"].is_array(), "no entries"),
            _ => {
                self.stopped = true;
                law(REASONS.contains(&event["reason"].as_str().unwrap_or("")), "an unknown reason")?;
                law(event["reason"] != "error" || event["category"].is_string(), "an error without a category")
            }
        }
    }

    fn step(&mut self, speaker: String, step: u64) -> Result<(), String> {
        let known = self.owners.len() as u64;
        let owner = self.owners.entry(step).or_insert_with(|| speaker.clone());
        if *owner != speaker {
            return Err("a step of two speakers".to_owned());
        }
        if step > known {
            return Err("a step was left out".to_owned());
        }
        match self.steps.insert(speaker, step) {
            Some(last) if last > step => Err("a speaker's step goes back".to_owned()),
            _ => Ok(()),
        }
    }

    fn end(self) -> Result<(), String> {
        match self.open.first() {
            _ if !self.stopped => Err("no stop".to_owned()),
            _ if !self.timed && self.at_ms > 0 && !self.has_gap_in_times => {
                Err("a trace without times has a time".to_owned())
            }
            Some(call) => Err(format!("the call {call} has no result")),
            None => Ok(()),
        }
    }
}
