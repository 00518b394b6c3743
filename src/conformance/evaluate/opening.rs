//! Items before a prompt: start, version, handshake, session, and the choice of the model.

use serde_json::Value;

use super::{About, end_of, finding, one_way, session};
use crate::conformance::observed::Observed;
use crate::conformance::probes::{NO_SUCH_MODEL, Probe};
use crate::conformance::{EvidenceLine, Finding, Item, ModelSource, Outcome};
use crate::harness::Adapter;
use crate::harness::ModelVia;
use crate::trace::{Body, ErrorCategory, NoticeCode};
use crate::wire::{Dir, EngineLine};

pub(super) fn starts(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::Starts;
    for session in sessions {
        if let Some(line) = session.first(Dir::Recv, |_| true) {
            let millis = session.lines.get(line as usize - 1).map_or(0, |line| line.at_ms);
            let text = format!("its first line came after {millis} ms");
            return finding(item, Outcome::Seen, text, [session.place(line)]);
        }
    }
    let Some(session) = sessions.first() else {
        return match &about.printed {
            Some(printed) if printed.ended_well => {
                finding(item, Outcome::Seen, format!("it printed its version: {}", printed.line), [])
            }
            Some(_) => finding(item, Outcome::Failed, "its version command failed", []),
            None => finding(item, Outcome::NotChecked, "it was not started: it needs a prompt, and so a model", []),
        };
    };
    let why = session
        .result
        .error
        .as_ref()
        .map_or_else(|| "it ended without output".to_owned(), |error| format!("it wrote no line: {}", error.message));
    // A missing program was reported above; this one ran, or could not be run.
    finding(item, Outcome::Failed, why, end_of(session))
}

/// Returns the version that the agent reports, and its place.
pub(super) fn version_of(about: &About<'_>, sessions: &[Observed]) -> Option<(String, Option<EvidenceLine>)> {
    for session in sessions {
        if let Some(version) = session.header.agent.as_ref().and_then(|agent| agent.version.clone()) {
            let quoted = serde_json::to_string(&version).unwrap_or_default();
            let line = session.first(Dir::Recv, |line| line.line.contains(&quoted));
            return Some((version, line.map(|line| session.place(line))));
        }
    }
    let printed = about.printed.as_ref().filter(|printed| printed.ended_well && !printed.line.is_empty())?;
    Some((printed.line.clone(), None))
}

pub(super) fn version(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let verified = match about.manifest.verified.last() {
        Some(verified) => format!("; the manifest was verified with {}", verified.version),
        None => String::new(),
    };
    match version_of(about, sessions) {
        Some((version, place)) => finding(Item::Version, Outcome::Seen, format!("{version}{verified}"), place),
        None => {
            let text = match &about.printed {
                Some(printed) if !printed.ended_well => "its version command failed",
                _ => "the agent reports no version, and the manifest has no version command",
            };
            finding(Item::Version, Outcome::NotSeen, text, [])
        }
    }
}

pub(super) fn handshake(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::Handshake;
    if let Some(finding) = one_way(item, about) {
        return finding;
    }
    let Some(session) = sessions.first() else {
        return finding(item, Outcome::NotChecked, "it was not started", []);
    };
    if about.manifest.adapter == Adapter::ClaudeCodeControl {
        return match control_answer(session, |request| request["subtype"] == "initialize") {
            Some((line, _)) => finding(item, Outcome::Seen, "initialize was answered", [session.place(line)]),
            None => finding(item, Outcome::Failed, broken(session), end_of(session)),
        };
    }
    let Some(exchange) = session.asked("initialize") else {
        return finding(item, Outcome::Failed, broken(session), end_of(session));
    };
    match &exchange.answer {
        Some((line, Ok(answer))) => {
            let version = answer.get("protocolVersion").cloned().unwrap_or_default();
            let outcome = if version.as_f64() == Some(1.0) { Outcome::Seen } else { Outcome::Failed };
            finding(item, outcome, format!("protocol version {version}"), [session.place(*line)])
        }
        Some((line, Err(error))) => {
            let text = format!("initialize was refused: {}", error.detail());
            finding(item, Outcome::Failed, text, [session.place(*line)])
        }
        None => finding(item, Outcome::Failed, broken(session), [session.place(exchange.asked)]),
    }
}

/// Finds the answer to a request of the engine over Claude Code's control protocol: its line, and whether it is a refusal.
fn control_answer(session: &Observed, is_asked: impl Fn(&Value) -> bool) -> Option<(u64, bool)> {
    let lines = |dir: Dir| {
        let numbered = session.lines.iter().zip(1..).filter(move |(line, _)| line.dir == dir);
        numbered.filter_map(|(line, n): (_, u64)| Some((n, serde_json::from_str::<Value>(&line.line).ok()?)))
    };
    let (_, asked) =
        lines(Dir::Send).find(|(_, line)| line["type"] == "control_request" && is_asked(&line["request"]))?;
    let (line, answer) = lines(Dir::Recv).find(|(_, line)| {
        line["type"] == "control_response" && line["response"]["request_id"] == asked["request_id"]
    })?;
    Some((line, answer["response"]["subtype"] == "error"))
}

/// Returns the ids of the login methods that the agent listed in its handshake.
pub(super) fn login_methods(session: &Observed) -> Option<Vec<String>> {
    let (_, answer) = session.asked("initialize")?.answer.as_ref()?;
    let methods = answer.as_ref().ok()?.get("authMethods")?.as_array()?;
    Some(methods.iter().filter_map(|method| method.get("id")?.as_str().map(str::to_owned)).collect())
}

pub(super) fn sessions(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::Sessions;
    if about.manifest.adapter != Adapter::Acp {
        let text = format!("`{}` has no request to open a session", about.manifest.adapter.word());
        return finding(item, Outcome::NotApplicable, text, []);
    }
    let Some(session) = sessions.first() else {
        return finding(item, Outcome::NotChecked, "it was not started", []);
    };
    let Some(exchange) = session.asked("session/new") else {
        return finding(item, Outcome::NotChecked, "its session ended before this step", end_of(session));
    };
    match &exchange.answer {
        Some((line, Ok(answer))) if answer.get("sessionId").is_some_and(|id| !id.is_null()) => {
            finding(item, Outcome::Seen, "session/new returned an id", [session.place(*line)])
        }
        Some((line, Ok(_))) => {
            finding(item, Outcome::Failed, "session/new was answered without a sessionId", [session.place(*line)])
        }
        Some((line, Err(error))) => {
            let auth = session.stop().is_some_and(|stop| stop.category == Some(ErrorCategory::Auth));
            let (outcome, what) = if auth {
                (Outcome::NotChecked, "the agent requires a login")
            } else {
                (Outcome::Failed, "session/new was refused")
            };
            finding(item, outcome, format!("{what}: {}", error.detail()), [session.place(*line)])
        }
        None => finding(item, Outcome::Failed, broken(session), [session.place(exchange.asked)]),
    }
}

/// Returns why a session did not get as far as a prompt.
fn broken(session: &Observed) -> String {
    let told = session.engine().find_map(|(_, line)| match line {
        EngineLine::Handshake { message } | EngineLine::NotStarted { message, .. } => Some(message),
        _ => None,
    });
    let error = || session.result.error.as_ref().map(|error| error.message.clone());
    told.or_else(error).unwrap_or_else(|| "it did not answer".to_owned())
}

pub(super) fn model_choice(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::ModelChoice;
    match about.manifest.model.via {
        ModelVia::None => finding(item, Outcome::NotApplicable, "the manifest names no way to choose the model", []),
        ModelVia::Flag | ModelVia::Env => launched_with(about, sessions),
        ModelVia::ConfigOption | ModelVia::SetModel => match session(sessions, Probe::Model) {
            Some(session) => no_such_model(session, sessions),
            None => finding(item, Outcome::NotChecked, "it was not tested", []),
        },
    }
}

/// Checks that a model that does not exist is refused, or that the agent reports that it uses another one.
fn no_such_model(bogus: &Observed, sessions: &[Observed]) -> Finding {
    let item = Item::ModelChoice;
    let asked = bogus
        .exchanges
        .iter()
        .rev()
        // A mode is chosen by the same request.
        .find(|exchange| ["value", "modelId"].iter().any(|key| exchange.params[*key] == NO_SUCH_MODEL));
    let Some(asked) = asked else {
        return match control_answer(bogus, |request| request["model"] == NO_SUCH_MODEL) {
            Some((line, true)) => {
                finding(item, Outcome::Seen, "a model that does not exist was refused", [bogus.place(line)])
            }
            Some((_, false)) | None => finding(
                item,
                Outcome::NotChecked,
                format!("its session ended before this step: {}", broken(bogus)),
                end_of(bogus),
            ),
        };
    };
    let (line, answer) = match &asked.answer {
        None => {
            let text = format!("{} was not answered", asked.method);
            return finding(item, Outcome::Failed, text, [bogus.place(asked.asked)]);
        }
        Some(answer) => answer,
    };
    if let Err(error) = answer {
        let text = format!("a model that does not exist was refused: {}{}", error.detail(), effective(sessions));
        return finding(item, Outcome::Seen, text, [bogus.place(asked.asked), bogus.place(*line)]);
    }
    let is_other_model = |code: &NoticeCode| matches!(code, NoticeCode::ModelMismatch | NoticeCode::ModelChanged);
    let mismatch =
        bogus.events.iter().any(|event| matches!(&event.body, Body::Notice { code, .. } if is_other_model(code)));
    let other = bogus.header.model.effective.as_ref().filter(|model| *model != NO_SUCH_MODEL);
    let places = [bogus.place(asked.asked), bogus.place(*line)];
    match other {
        Some(model) => {
            let text = format!("a model that does not exist was accepted, and the agent reported `{model}` instead");
            finding(item, Outcome::Seen, text, places)
        }
        None if mismatch => finding(item, Outcome::Seen, "a model that does not exist was noticed", places),
        None => finding(item, Outcome::Failed, "a model that does not exist was accepted silently", places),
    }
}

/// Returns the model that answered a prompt, in words.
fn effective(sessions: &[Observed]) -> String {
    let Some(answer) = session(sessions, Probe::Answer) else { return String::new() };
    match (&answer.header.model.requested, &answer.header.model.effective) {
        (Some(asked), Some(model)) if asked == model => format!("; `{model}` was requested and answered"),
        (Some(asked), Some(model)) => format!("; `{asked}` was requested, and the agent reports `{model}`"),
        (None, Some(model)) => format!("; the agent reports `{model}`"),
        _ => String::new(),
    }
}

/// Checks a model that is set at the launch: the model that answered must be the requested one.
fn launched_with(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::ModelChoice;
    if about.model == ModelSource::None {
        let text = "the model is chosen at launch, and is visible only after a prompt";
        return finding(item, Outcome::NotChecked, text, []);
    }
    let Some(answer) = session(sessions, Probe::Answer) else {
        return finding(item, Outcome::NotChecked, "it was not tested", []);
    };
    let Some(asked) = &answer.header.model.requested else {
        return finding(item, Outcome::NotChecked, "no model was requested; request one with --model NAME", []);
    };
    let quoted = serde_json::to_string(asked).unwrap_or_default();
    let named = answer.first(Dir::Recv, |line| line.line.contains(&quoted)).map(|line| answer.place(line));
    let requested: Vec<&str> = answer.requests.iter().filter_map(|request| request.get("model")?.as_str()).collect();
    match &answer.header.model.effective {
        Some(model) if model == asked => {
            finding(item, Outcome::Seen, format!("`{asked}` was requested and answered"), named)
        }
        _ if requested.iter().any(|model| model == asked) => {
            finding(item, Outcome::Seen, format!("the model's service was asked for `{asked}`"), [])
        }
        Some(model) => {
            finding(item, Outcome::Failed, format!("`{asked}` was requested, but `{model}` answered"), end_of(answer))
        }
        None => finding(item, Outcome::NotSeen, "the agent does not report which model answered", end_of(answer)),
    }
}
