//! Matchers for events: calls by their facts, other events by type, text and answer.

use std::borrow::Cow;
use std::fmt;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use strum::IntoStaticStr;

use super::spec::Takes;
use crate::grader::Subject;
use crate::grader::shared_keys::{SharedKeys, Split};
use crate::judgement::Judgement;
use crate::matcher::{Matcher, Speaker};
use crate::reason_text;
use crate::secrets;
use crate::trace::{Body, PermissionOutcome, Role};
use crate::values::Pattern;
use crate::word::word;
use crate::yaml::lists::OneOrList;

/// The events to select. Every key that is set must match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventMatcher {
    /// The keys for events that are not calls.
    pub own: EventKeys,
    /// The keys for calls, and for events about a call.
    pub call: Matcher,
}

/// The keys of events that a call matcher does not have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventKeys {
    pub event: Option<EventType>,
    /// A regular expression for the text.
    pub text: Option<Pattern>,
    /// The outcome of a permission request.
    pub outcome: Option<OneOrList<PermissionOutcome>>,
    /// The sender of a message.
    pub role: Option<Role>,
}

/// The types of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EventType {
    /// A message.
    Message,
    /// A thought.
    Thought,
    /// A plan.
    Plan,
    /// A tool call.
    ToolCall,
    /// A permission request.
    PermissionRequest,
    /// The answer to a permission request.
    PermissionResponse,
    /// The result of a tool call.
    ToolResult,
    /// A usage report.
    Usage,
    /// A notice of the engine.
    Notice,
    /// The end of the session.
    Stop,
}

word!(EventType);

impl EventType {
    pub fn of(body: &Body) -> Self {
        match body {
            Body::Message(_) => EventType::Message,
            Body::Thought { .. } => EventType::Thought,
            Body::Plan { .. } => EventType::Plan,
            Body::ToolCall(_) => EventType::ToolCall,
            Body::PermissionRequest(_) => EventType::PermissionRequest,
            Body::PermissionResponse(_) => EventType::PermissionResponse,
            Body::ToolResult(_) => EventType::ToolResult,
            Body::Usage(_) => EventType::Usage,
            Body::Notice { .. } => EventType::Notice,
            Body::Stop(_) => EventType::Stop,
        }
    }
}

pub struct RuleEvent<'a> {
    pub event: EventType,
    pub seq: u64,
    /// The time.
    pub at_ms: u64,
    /// The call that started the sub-agent of the event.
    pub parent: Option<&'a str>,
    /// The call of the event, or the call that it is about.
    pub call: Option<&'a Subject<'a>>,
    pub text: Option<Cow<'a, str>>,
    /// The outcome of a permission request.
    pub outcome: Option<PermissionOutcome>,
    /// The decision about it, if the agent offered no option for the decision.
    pub decided: Option<PermissionOutcome>,
    /// The sender of a message.
    pub role: Option<Role>,
}

impl RuleEvent<'_> {
    /// Returns a short description of the event.
    pub fn label(&self) -> String {
        let outcome = self.outcome.map(|outcome| format!(" ({})", outcome.word())).unwrap_or_default();
        match (self.event, self.call) {
            (EventType::ToolCall, Some(call)) => call.label(),
            (event, Some(call)) => format!("{} of {}{outcome}", event.word(), call.label()),
            (event, None) => match &self.text {
                Some(text) => format!("{} `{}`{outcome}", event.word(), reason_text::short(text, 60)),
                None => format!("{}{outcome}", event.word()),
            },
        }
    }
}

/// Returns the text of an event that is not a call.
pub fn text_of(body: &Body) -> Option<Cow<'_, str>> {
    match body {
        Body::Message(message) => Some(Cow::Borrowed(&message.text)),
        Body::Thought { text } => Some(Cow::Borrowed(text)),
        Body::Plan { entries } => {
            let lines: Vec<&str> = entries.iter().map(|entry| entry.text.as_str()).collect();
            Some(Cow::Owned(lines.join("\n")))
        }
        Body::PermissionResponse(response) => response.reason.as_deref().map(Cow::Borrowed),
        Body::Notice { code, text, .. } => Some(Cow::Owned(format!("{code}: {text}"))),
        Body::Stop(stop) => {
            let parts = [Some(stop.reason.word()), stop.detail.as_deref(), stop.output.as_deref()];
            Some(Cow::Owned(parts.into_iter().flatten().collect::<Vec<&str>>().join("\n")))
        }
        Body::ToolCall(_) | Body::ToolResult(_) | Body::PermissionRequest(_) | Body::Usage(_) => None,
    }
}

impl EventMatcher {
    /// Returns whether an event matches. A call must have been executed, unless a status is set.
    pub fn finds(&self, seen: &RuleEvent<'_>) -> Judgement {
        let about_a_call = matches!(seen.event, EventType::ToolCall | EventType::ToolResult);
        match about_a_call {
            true => self.fits_by(seen, |call| self.call.finds(call)),
            false => self.fits(seen),
        }
    }

    /// Returns whether an event matches; without a `status` key, a call with any outcome. If the agent never
    /// described the call of a request, nothing of it is known.
    pub fn fits(&self, seen: &RuleEvent<'_>) -> Judgement {
        self.fits_by(seen, |call| self.call.fits(call))
    }

    fn fits_by(&self, seen: &RuleEvent<'_>, of_call: impl FnOnce(&Subject<'_>) -> Judgement) -> Judgement {
        let EventKeys { text, outcome, role, .. } = &self.own;
        let ended = |wanted: PermissionOutcome| seen.outcome == Some(wanted) || seen.decided == Some(wanted);
        let fits_itself = self.takes(seen)
            && outcome.as_ref().is_none_or(|wanted| wanted.iter().any(|one| ended(*one)))
            && role.is_none_or(|wanted| seen.role == Some(wanted));
        let says = || text.as_ref().map_or(Judgement::True, |pattern| Self::says(pattern, seen));
        let asks = matches!(seen.event, EventType::PermissionRequest | EventType::PermissionResponse);
        Judgement::from(fits_itself).and(says).and(|| match seen.call {
            Some(call) => of_call(call),
            None if !self.fits_speaker(seen.parent) => Judgement::False,
            None if self.is_of_no_call() => Judgement::True,
            None if asks => Judgement::Unknown,
            None => Judgement::False,
        })
    }

    /// Returns true if the event's type is selected.
    fn takes(&self, seen: &RuleEvent<'_>) -> bool {
        let EventKeys { event, text, outcome, role } = &self.own;
        match event {
            Some(event) => *event == seen.event,
            None if outcome.is_some() => seen.event == EventType::PermissionResponse,
            None if role.is_some() => seen.event == EventType::Message,
            None if text.is_some() && self.is_of_no_call() => {
                matches!(seen.event, EventType::Message | EventType::Thought | EventType::Plan)
                    && seen.role != Some(Role::User)
            }
            None => seen.event == EventType::ToolCall,
        }
    }

    /// Returns true if another outcome of a call can change whether the call matches.
    pub(super) fn depends_on_outcome(&self, takes: Takes) -> bool {
        // The text of a call includes its output.
        self.call.status.is_some() || (self.is_of_calls() && (takes == Takes::Done || self.reads_text()))
    }

    /// Returns true if the matcher selects calls or results of calls.
    fn is_of_calls(&self) -> bool {
        let EventKeys { event, text, outcome, role } = &self.own;
        match event {
            Some(event) => matches!(event, EventType::ToolCall | EventType::ToolResult),
            None => outcome.is_none() && role.is_none() && !(text.is_some() && self.is_of_no_call()),
        }
    }

    /// Returns true if the matcher compares texts of events.
    pub(super) fn reads_text(&self) -> bool {
        self.own.text.is_some()
    }

    /// Returns true if a lost text or line changes nothing about a text in which the matcher's text is found. An output of a call
    /// that lacks a part is marked as truncated. Other texts may have been longer, which an anchor of the whole text would show.
    pub(super) fn finds_in_longer_texts(&self) -> bool {
        self.is_of_calls() || !self.own.text.as_ref().is_some_and(Pattern::has_anchor_of_whole_text)
    }

    /// Returns whether the text of an event matches. A truncated output in which the pattern is not found may contain it,
    /// and so may a secret that is masked. A match at an end of a truncated output may need the end, as with `$`.
    fn says(pattern: &Pattern, seen: &RuleEvent<'_>) -> Judgement {
        let of_call = match (seen.event, seen.call) {
            (EventType::ToolCall, Some(call)) => Some((call.call.title.as_deref(), call)),
            (EventType::ToolResult, Some(call)) => Some((None, call)),
            _ => None,
        };
        let is_in = |text: &str| pattern.is_match(text);
        let title = of_call.and_then(|(title, _)| title);
        if title.is_some_and(is_in) || seen.text.as_deref().is_some_and(is_in) {
            return Judgement::True;
        }
        let output = of_call.and_then(|(_, call)| call.output);
        let is_cut = of_call.is_some_and(|(_, call)| call.truncated);
        let is_in_output = |text: &str| if is_cut { pattern.holds_in_longer_texts(text) } else { is_in(text) };
        if output.is_some_and(is_in_output) {
            return Judgement::True;
        }
        let is_masked = output.into_iter().chain(seen.text.as_deref()).any(|text| secrets::mark_in(text).is_some());
        if is_cut || is_masked { Judgement::Unknown } else { Judgement::False }
    }

    /// Returns true if no key is about calls only.
    fn is_of_no_call(&self) -> bool {
        let Matcher { kind, name, path, input, command, runs, args, status, .. } = &self.call;
        kind.is_none()
            && name.is_none()
            && path.is_none()
            && input.is_none()
            && command.is_none()
            && runs.is_none()
            && args.is_none()
            && status.is_none()
    }

    fn fits_speaker(&self, parent: Option<&str>) -> bool {
        self.call.agent.is_none_or(|agent| match agent {
            Speaker::Main => parent.is_none(),
            Speaker::Sub => parent.is_some(),
            Speaker::Any => true,
        })
    }

    /// Returns true if the matcher selects permission requests, or answers to them.
    pub fn is_about_permissions(&self) -> bool {
        let asks = matches!(self.own.event, Some(EventType::PermissionRequest | EventType::PermissionResponse));
        asks || self.own.outcome.is_some()
    }

    /// Returns why the matcher is meaningless.
    pub fn refusal(&self) -> Option<String> {
        let EventKeys { event, text, outcome, role } = &self.own;
        if text.as_ref().is_some_and(|pattern| pattern.0.as_str().is_empty()) {
            return Some("has an empty `text`".to_owned());
        }
        if outcome.is_some() && event.is_some_and(|event| event != EventType::PermissionResponse) {
            return Some("has an `outcome`, which only the event `permission_response` has".to_owned());
        }
        if role.is_some() && event.is_some_and(|event| event != EventType::Message) {
            return Some("has a `role`, which only the event `message` has".to_owned());
        }
        let about_a_call = |event: EventType| {
            use EventType::{PermissionRequest, PermissionResponse, ToolCall, ToolResult};
            matches!(event, ToolCall | ToolResult | PermissionRequest | PermissionResponse)
        };
        if !self.is_of_no_call() && (role.is_some() || event.is_some_and(|event| !about_a_call(event))) {
            return Some("has keys of tool calls, but its event is not one".to_owned());
        }
        let says_something = event.is_some() || text.is_some() || outcome.is_some() || role.is_some();
        if says_something && self.is_of_no_call() && self.call.match_args.is_none() {
            return None;
        }
        self.call.refusal()
    }
}

impl SharedKeys for EventKeys {
    const KEYS: &'static [&'static str] = &["event", "text", "outcome", "role"];

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &'static str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "event" => self.event = Some(map.next_value()?),
            "text" => self.text = Some(map.next_value()?),
            "outcome" => self.outcome = Some(map.next_value()?),
            _ => self.role = Some(map.next_value()?),
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for EventMatcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut own = EventKeys::default();
        let call = Matcher::deserialize(Split { inner: deserializer, beside: &mut own })?;
        Ok(Self { own, call })
    }
}

impl Serialize for EventMatcher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let EventKeys { event, text, outcome, role } = &self.own;
        let own = [
            ("event", event.map(serde_json::to_value)),
            ("text", text.as_ref().map(serde_json::to_value)),
            ("outcome", outcome.as_ref().map(serde_json::to_value)),
            ("role", role.map(serde_json::to_value)),
        ];
        let mut map = serde_json::to_value(&self.call).map_err(S::Error::custom)?;
        for (key, value) in own {
            if let (Value::Object(map), Some(value)) = (&mut map, value) {
                map.insert(key.to_owned(), value.map_err(S::Error::custom)?);
            }
        }
        map.serialize(serializer)
    }
}

#[cfg(test)]
impl JsonSchema for EventMatcher {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EventMatcher".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let with = |mut value: Value, text: &str| {
            value["description"] = Value::from(text);
            value
        };
        let event = with(EventType::json_schema(generator).to_value(), "the event's type");
        let text = with(Pattern::json_schema(generator).to_value(), "a regular expression over the event's text");
        let outcome = with(
            <OneOrList<PermissionOutcome>>::json_schema(generator).to_value(),
            "how a permission request was answered",
        );
        let role = with(serde_json::json!({"enum": ["user", "agent"]}), "who speaks in a message");
        let mut schema = Matcher::json_schema(generator);
        crate::grader::entry::add_properties(
            &mut schema,
            &serde_json::json!({"event": event, "text": text, "outcome": outcome, "role": role}),
        );
        schema
    }
}

impl fmt::Display for EventMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EventKeys { event, text, outcome, role } = &self.own;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(event.map(|event| event.word().to_owned()));
        parts.extend(role.map(|role| match role {
            Role::User => "of the user".to_owned(),
            Role::Agent => "of the agent".to_owned(),
        }));
        parts.extend(
            outcome
                .as_ref()
                .map(|list| format!("answer {}", reason_text::any_of(list.iter().map(|one| one.word().to_owned())))),
        );
        parts.extend(text.as_ref().map(|pattern| format!("text /{pattern}/")));
        let call = self.call.to_string();
        let call = call.trim_matches('`');
        if !call.is_empty() {
            parts.push(call.to_owned());
        }
        write!(f, "`{}`", parts.join(" "))
    }
}
