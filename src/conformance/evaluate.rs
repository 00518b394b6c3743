//! Evaluates the sessions of a check, item by item, as a pure function of their wire logs and results.

use super::observed::Observed;
use super::probes::Probe;
use super::{EvidenceLine, Finding, Item, ModelSource, Oddity, Outcome};
use crate::harness::{Manifest, Tier};
use crate::result::Warning;
use crate::trace::{Body, ErrorCategory, NoticeCode};
use crate::trial::version::Printed;
use crate::wire::{Dir, EngineLine};

mod ends;
mod opening;
mod turns;

/// The input of the evaluation besides the sessions.
pub struct About<'a> {
    /// The manifest as used in the check.
    pub manifest: &'a Manifest,
    /// The source of the model's answers.
    pub model: ModelSource,
    /// The output of the manifest's version command; absent if the manifest has none, or if it could not be run.
    pub printed: Option<Printed>,
    /// The reason why nothing was started.
    pub not_started: Option<String>,
}

/// The results of the evaluation.
pub struct Evaluation {
    /// The finding about each item, in order.
    pub items: Vec<Finding>,
    /// The version that the agent reported, or else the line that its `version` command printed.
    pub version: Option<String>,
    /// The ids of the login methods that the agent listed; absent if it listed none.
    pub offered: Option<Vec<String>>,
    /// The tier that follows from the observations.
    pub tier: Option<Tier>,
    /// All anomalies.
    pub oddities: Vec<Oddity>,
}

/// Evaluates the sessions of a check.
pub fn evaluate(about: &About<'_>, sessions: &[Observed]) -> Evaluation {
    let items: Vec<Finding> = Item::ALL
        .iter()
        .map(|&item| match &about.not_started {
            Some(why) => finding(item, Outcome::NotChecked, why.clone(), []),
            None => of_item(item, about, sessions),
        })
        .collect();
    Evaluation {
        version: opening::version_of(about, sessions).map(|(version, _)| version),
        offered: sessions.iter().find_map(opening::login_methods),
        tier: tier(about, &items, sessions),
        oddities: oddities(sessions),
        items,
    }
}

fn of_item(item: Item, about: &About<'_>, sessions: &[Observed]) -> Finding {
    match item {
        Item::Starts => opening::starts(about, sessions),
        Item::Version => opening::version(about, sessions),
        Item::Handshake => opening::handshake(about, sessions),
        Item::Sessions => opening::sessions(about, sessions),
        Item::ModelChoice => opening::model_choice(about, sessions),
        Item::Prompt => turns::prompt(about, sessions),
        Item::Streaming => turns::streaming(about, sessions),
        Item::ToolCalls | Item::ToolInput | Item::ToolResults => turns::tools(item, about, sessions),
        Item::PermissionApprove => turns::approve(about, sessions),
        Item::PermissionReject => turns::reject(about, sessions),
        Item::Cancel => ends::cancel(about, sessions),
        Item::Usage => turns::usage(about, sessions),
        Item::CleanExit => ends::clean_exit(sessions),
        Item::NoOrphans => ends::no_orphans(sessions),
    }
}

fn finding(
    item: Item,
    outcome: Outcome,
    text: impl Into<String>,
    evidence: impl IntoIterator<Item = EvidenceLine>,
) -> Finding {
    Finding { item, outcome, text: text.into(), evidence: evidence.into_iter().collect() }
}

fn session(sessions: &[Observed], probe: Probe) -> Option<&Observed> {
    sessions.iter().find(|session| session.probe == probe)
}

/// Returns the finding for an item that needs a prompt, if no model is available or the session failed.
fn without_model(item: Item, about: &About<'_>, session: Option<&Observed>) -> Option<Finding> {
    if about.model == ModelSource::None {
        let text = "it needs a model, and the manifest has no `gateway`; --live uses the agent's own model, which may cost \
             money";
        return Some(finding(item, Outcome::NotChecked, text, []));
    }
    let Some(session) = session else {
        return Some(finding(item, Outcome::NotChecked, "it was not tested", []));
    };
    let error = session.result.error.as_ref()?;
    let (outcome, what) = match error.category {
        ErrorCategory::Auth => (Outcome::NotChecked, "the agent requires a login"),
        ErrorCategory::RateLimit => (Outcome::NotChecked, "its model's service is busy"),
        ErrorCategory::Provider => (Outcome::NotChecked, "its model's service failed"),
        ErrorCategory::Setup | ErrorCategory::Internal | ErrorCategory::Grader => {
            (Outcome::NotChecked, "it could not be run")
        }
        ErrorCategory::NotInstalled
        | ErrorCategory::StartFailed
        | ErrorCategory::Handshake
        | ErrorCategory::Protocol
        | ErrorCategory::Crashed
            if item == Item::Prompt =>
        {
            return None;
        }
        ErrorCategory::Handshake => (Outcome::NotChecked, "its session ended before this step"),
        ErrorCategory::NotInstalled | ErrorCategory::StartFailed | ErrorCategory::Protocol | ErrorCategory::Crashed => {
            (Outcome::NotChecked, "its prompt was not answered")
        }
    };
    Some(finding(item, outcome, format!("{what}: {}", error.message), end_of(session)))
}

/// Returns the line on which a session ends, as evidence.
fn end_of(session: &Observed) -> Option<EvidenceLine> {
    session.last(Dir::Recv).or_else(|| session.last(Dir::Exit)).map(|line| session.place(line))
}

/// Returns the tier that follows from the findings: captured traffic decides; without an answer, the best tier is a
/// recipe.
fn tier(about: &About<'_>, items: &[Finding], sessions: &[Observed]) -> Option<Tier> {
    let outcome = |item: Item| items.iter().find(|finding| finding.item == item).map(|finding| finding.outcome);
    let seen = |item: Item| outcome(item) == Some(Outcome::Seen);
    let declared = about.manifest.tier;
    if about.not_started.is_some() || sessions.is_empty() {
        return None;
    }
    if seen(Item::Prompt) {
        let traffic = sessions.iter().any(|session| !session.requests.is_empty());
        return Some(match declared {
            _ if !traffic => Tier::Runnable,
            Some(Tier::Native) => Tier::Native,
            _ => Tier::Wired,
        });
    }
    Some(declared.filter(|tier| tier.is_recipe()).unwrap_or(Tier::Catalog))
}

/// Returns the anomalies by code, each with its first occurrence.
fn oddities(sessions: &[Observed]) -> Vec<Oddity> {
    let mut found: Vec<Oddity> = Vec::new();
    let mut add =
        |code: &str, text: &str, place: Option<EvidenceLine>| match found.iter_mut().find(|it| it.code == code) {
            Some(known) => known.count += 1,
            None => found.push(Oddity { code: code.to_owned(), count: 1, text: text.to_owned(), place }),
        };
    for session in sessions {
        for event in &session.events {
            // A refusal that the check itself caused is not an anomaly.
            if let Body::Notice { code, text, line, .. } = &event.body
                && !(session.probe == Probe::Model && *code == NoticeCode::Refused)
            {
                add(code.as_str(), text, line.map(|line| session.place(line)));
            }
        }
        for warning in &session.result.warnings {
            let ours = match warning {
                Warning::LimitReached { key } | Warning::LimitExceeded { key, .. } => {
                    key == "tool-calls" && session.probe == Probe::Cancel
                }
                // If the model is not called, or a turn is cancelled, a script is not played to its end.
                Warning::ScriptLeft { .. } => !matches!(session.probe, Probe::Answer | Probe::Tools),
                // An agent that cannot ask for permission is reported as an item.
                Warning::NoPermissions { .. } => true,
                _ => false,
            };
            if !ours {
                add("warning", &warning.to_string(), None);
            }
        }
        if let Some(line) = session.first(Dir::Stderr, |line| !line.line.trim().is_empty()) {
            let said = session.lines.get(line as usize - 1).map(|line| line.line.as_str()).unwrap_or_default();
            add("stderr", said, Some(session.place(line)));
        }
        if session.engine().any(|(_, line)| matches!(line, EngineLine::Limit { key, .. } if key == "time")) {
            let text = format!("the time limit of `{}` was reached", session.probe.word());
            add("time_limit", &text, end_of(session));
        }
    }
    found.sort_by(|one, other| one.code.cmp(&other.code));
    found
}

/// Returns the finding for an item that needs a conversation with the agent, if there is none.
fn one_way(item: Item, about: &About<'_>) -> Option<Finding> {
    (!about.manifest.adapter.has_conversation()).then(|| {
        let text = format!("`{}` runs one command to its end", about.manifest.adapter.word());
        finding(item, Outcome::NotApplicable, text, [])
    })
}
