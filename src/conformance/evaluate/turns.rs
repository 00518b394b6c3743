//! Items while the agent works on a prompt: the answer, its pieces, calls, permissions, usage.

use std::collections::HashMap;

use super::{About, end_of, finding, session, without_model};
use crate::conformance::observed::Observed;
use crate::conformance::probes::Probe;
use crate::conformance::{EvidenceLine, Finding, Item, Outcome};
use crate::text::plural;
use crate::trace::{
    Body, CallStatus, PermissionOutcome, StopReason, ToolCall, ToolKind, ToolResult, Usage, UsageScope,
};

pub(super) fn prompt(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::Prompt;
    let answer = session(sessions, Probe::Answer);
    if let Some(finding) = without_model(item, about, answer) {
        return finding;
    }
    let Some(answer) = answer else { return finding(item, Outcome::NotChecked, "it was not tested", []) };
    if let Some(error) = &answer.result.error {
        return finding(item, Outcome::Failed, error.message.clone(), end_of(answer));
    }
    let stop = answer.stop();
    let text = stop.and_then(|stop| stop.output.as_deref()).unwrap_or_default().trim();
    match stop.map(|stop| stop.reason) {
        Some(StopReason::EndTurn) if !text.is_empty() => {
            let text = format!("answered with {}", plural(text.chars().count(), "character"));
            finding(item, Outcome::Seen, text, end_of(answer))
        }
        Some(StopReason::EndTurn) => finding(item, Outcome::Failed, "its turn ended without text", end_of(answer)),
        Some(reason) => {
            finding(item, Outcome::Failed, format!("its turn ended with {}", reason.word()), end_of(answer))
        }
        None => finding(item, Outcome::Failed, "its turn did not end", end_of(answer)),
    }
}

pub(super) fn streaming(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::Streaming;
    let answer = session(sessions, Probe::Answer);
    if let Some(finding) = without_model(item, about, answer) {
        return finding;
    }
    let Some(answer) = answer else { return finding(item, Outcome::NotChecked, "it was not tested", []) };
    let ends: Vec<EvidenceLine> =
        [answer.pieces.first(), answer.pieces.last()].into_iter().flatten().map(|line| answer.place(*line)).collect();
    let whole = answer.stop().is_some_and(|stop| stop.output.as_deref().is_some_and(|text| !text.trim().is_empty()));
    match answer.pieces.len() {
        0 if whole => finding(item, Outcome::NotSeen, "the text came in one piece", end_of(answer)),
        0 => finding(item, Outcome::NotSeen, "there was no text", end_of(answer)),
        1 => finding(item, Outcome::NotSeen, "the text came in one piece", ends.into_iter().take(1)),
        pieces => finding(item, Outcome::Seen, format!("the text came in {pieces} pieces"), ends),
    }
}

/// Returns the calls of a session with their results.
fn calls(session: &Observed) -> Vec<(&ToolCall, Option<&ToolResult>)> {
    let mut results: HashMap<&str, &ToolResult> = HashMap::new();
    for event in &session.events {
        if let Body::ToolResult(result) = &event.body {
            results.insert(&result.call, result);
        }
    }
    let calls = session.events.iter().filter_map(|event| match &event.body {
        Body::ToolCall(call) => Some((call, results.get(call.call.as_str()).copied())),
        _ => None,
    });
    calls.collect()
}

pub(super) fn tools(item: Item, about: &About<'_>, sessions: &[Observed]) -> Finding {
    if !about.manifest.seen().tracing {
        return finding(item, Outcome::NotApplicable, "its protocol shows no calls", []);
    }
    let tools = session(sessions, Probe::Tools);
    if let Some(finding) = without_model(item, about, tools) {
        return finding;
    }
    let Some(tools) = tools else { return finding(item, Outcome::NotChecked, "it was not tested", []) };
    let calls = calls(tools);
    let Some((first, _)) = calls.first() else {
        let text = match tools.held("files") {
            Some(true) => "it did the work, but showed no call",
            _ => "it made no call",
        };
        return finding(item, Outcome::NotSeen, text, end_of(tools));
    };
    let shown = |what: &str, lacking: Vec<&str>| match lacking.first() {
        None => finding(item, Outcome::Seen, format!("{what} of all {} calls", calls.len()), tools.naming(&first.call)),
        Some(call) => {
            let text = format!("{what} of {} of {} calls", calls.len() - lacking.len(), calls.len());
            finding(item, Outcome::NotSeen, text, tools.naming(call))
        }
    };
    match item {
        Item::ToolInput => {
            let empty = |call: &ToolCall| {
                call.input.as_ref().is_none_or(|input| input.as_object().is_some_and(serde_json::Map::is_empty))
            };
            shown(
                "the input",
                calls.iter().filter(|(call, _)| empty(call)).map(|(call, _)| call.call.as_str()).collect(),
            )
        }
        Item::ToolResults => {
            let told = |result: &ToolResult| {
                result.status != CallStatus::Unfinished && (result.output.is_some() || !result.diffs.is_empty())
            };
            let lacking = calls.iter().filter(|(_, result)| !result.is_some_and(told));
            shown("the result", lacking.map(|(call, _)| call.call.as_str()).collect())
        }
        _ => {
            let mut kinds: Vec<String> = Vec::new();
            for (call, _) in &calls {
                kinds.push(call.kind.to_string());
            }
            let text = format!("{}: {}", plural(calls.len(), "call"), kinds.join(", "));
            finding(item, Outcome::Seen, text, tools.naming(&first.call))
        }
    }
}

/// Returns the calls whose permission requests were answered with this outcome.
fn answers(session: &Observed, outcome: PermissionOutcome) -> Vec<&str> {
    let responses = session.events.iter().filter_map(|event| match &event.body {
        Body::PermissionResponse(response) if response.outcome == outcome => Some(response.call.as_str()),
        _ => None,
    });
    responses.collect()
}

pub(super) fn approve(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::PermissionApprove;
    if !about.manifest.seen().interaction {
        return finding(item, Outcome::NotApplicable, "the agent cannot ask for permission", []);
    }
    let tools = session(sessions, Probe::Tools);
    if let Some(finding) = without_model(item, about, tools) {
        return finding;
    }
    let Some(tools) = tools else { return finding(item, Outcome::NotChecked, "it was not tested", []) };
    let allowed = answers(tools, PermissionOutcome::Allowed);
    if allowed.is_empty() {
        return finding(item, Outcome::NotSeen, "it asked for no permission", end_of(tools));
    }
    let calls = calls(tools);
    let status = |call: &str| {
        let result = calls.iter().find(|(known, _)| known.call == call).and_then(|(_, result)| *result);
        result.map_or(CallStatus::Unfinished, |result| result.status)
    };
    match allowed.iter().find(|call| !status(call).carried_out()) {
        Some(call) => {
            let text = format!("an allowed call ended as {}", status(call).word());
            finding(item, Outcome::Failed, text, tools.naming(call))
        }
        None => {
            let text = format!("it asked {}, and made the calls that were allowed", plural(allowed.len(), "time"));
            finding(item, Outcome::Seen, text, allowed.first().map(|call| tools.naming(call)).unwrap_or_default())
        }
    }
}

/// The kinds of the calls that the probe requests, after which its graders are named.
const KINDS_LOOKED_FOR: [ToolKind; 2] = [ToolKind::Edit, ToolKind::Execute];

pub(super) fn reject(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::PermissionReject;
    if !about.manifest.seen().interaction {
        return finding(item, Outcome::NotApplicable, "the agent cannot ask for permission", []);
    }
    let rejecting = session(sessions, Probe::Reject);
    if let Some(finding) = without_model(item, about, rejecting) {
        return finding;
    }
    let Some(rejecting) = rejecting else { return finding(item, Outcome::NotChecked, "it was not tested", []) };
    let rejected = answers(rejecting, PermissionOutcome::Rejected);
    let Some(first) = rejected.first() else {
        return finding(item, Outcome::NotSeen, "it asked for no permission", end_of(rejecting));
    };
    let shown: Vec<EvidenceLine> = rejecting.naming(first);
    // Calls without a request are permitted; only requested and rejected calls count.
    let calls = calls(rejecting);
    let refused = || calls.iter().map(|(call, _)| *call).filter(|call| rejected.contains(&call.call.as_str()));
    if let Some(call) = refused().find(|call| rejecting.held(call.kind.word()) == Some(false)) {
        let text = format!("a call of kind {} was rejected, but its effect was found", call.kind);
        return finding(item, Outcome::Failed, text, rejecting.naming(&call.call));
    }
    // A call of another kind may have had either effect: it was respected only if neither effect occurred.
    let nothing_done = KINDS_LOOKED_FOR.iter().all(|kind| rejecting.held(kind.word()) == Some(true));
    if let Some(call) = refused().find(|call| rejecting.held(call.kind.word()).is_none()).filter(|_| !nothing_done) {
        let text = format!("a call of kind {} was rejected; whether it took effect is unknown", call.kind);
        return finding(item, Outcome::NotChecked, text, rejecting.naming(&call.call));
    }
    let text = format!("it asked {}, and did not carry out what was rejected", plural(rejected.len(), "time"));
    finding(item, Outcome::Seen, text, shown)
}

pub(super) fn usage(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::Usage;
    let answer = session(sessions, Probe::Answer);
    if let Some(finding) = without_model(item, about, answer) {
        return finding;
    }
    let reports = |session: &Observed| -> Vec<Usage> {
        let usages = session.events.iter().filter_map(|event| match &event.body {
            Body::Usage(usage) if usage.source.is_none() && spent(usage) => Some(usage.clone()),
            _ => None,
        });
        usages.collect()
    };
    let prompted = sessions.iter().filter(|session| session.probe.prompts());
    let told = prompted.map(|session| (session, reports(session))).find(|(_, reports)| !reports.is_empty());
    let Some((session, reports)) = told else {
        return finding(item, Outcome::NotSeen, "it reported no usage", answer.and_then(end_of));
    };
    let any = |figure: fn(&Usage) -> bool| reports.iter().any(figure);
    let figures = [
        (any(|usage| usage.input_tokens.is_some()), "input"),
        (any(|usage| usage.output_tokens.is_some()), "output"),
        (any(|usage| usage.cache_read_tokens.is_some()), "cache read"),
        (any(|usage| usage.cache_write_tokens.is_some()), "cache write"),
        (any(|usage| usage.thought_tokens.is_some()), "thoughts"),
        (any(|usage| usage.total_tokens.is_some()), "total"),
        (any(|usage| usage.cost_usd.is_some()), "cost"),
    ];
    let told: Vec<&str> = figures.iter().filter(|(there, _)| *there).map(|(_, word)| *word).collect();
    let scopes = [(UsageScope::Call, "call"), (UsageScope::Turn, "turn"), (UsageScope::Session, "session")];
    let scopes: Vec<&str> = scopes
        .iter()
        .filter(|(scope, _)| reports.iter().any(|usage| usage.scope == *scope))
        .map(|(_, word)| *word)
        .collect();
    let text = format!("{}; for each {}", told.join(", "), scopes.join(" and "));
    finding(item, Outcome::Seen, text, end_of(session))
}

/// Returns true if a report contains consumption, and not only how full the context is.
fn spent(usage: &Usage) -> bool {
    usage.input_tokens.is_some()
        || usage.output_tokens.is_some()
        || usage.total_tokens.is_some()
        || usage.cost_usd.is_some()
}
