//! Matchers for permission requests: by the call, and by the answer.

use std::fmt;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::grader::Subject;
use crate::grader::shared_keys::{SharedKeys, Split};
use crate::interaction::Answer;
use crate::judgement::Judgement;
use crate::matcher::Matcher;
use crate::reason_text;
use crate::trace::{PermissionOption, PermissionOutcome, PermissionResponse};
use crate::values::NameGlob;
use crate::yaml::lists::OneOrList;

const OUTCOMES: [PermissionOutcome; 3] =
    [PermissionOutcome::Allowed, PermissionOutcome::Rejected, PermissionOutcome::Cancelled];

/// Selects requests: the keys of a call matcher apply to the call, the others to the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestMatcher {
    pub call: Matcher,
    pub answer: Answered,
}

/// The answer to a request. A key about the answer does not match if there was no answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answered {
    outcome: Option<OneOrList<PermissionOutcome>>,
    answer: Option<OneOrList<Answer>>,
    option: Option<NameGlob>,
    policy: Option<NameGlob>,
    rule: Option<NameGlob>,
}

/// The facts about an answer that matchers use.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The answer that the agent got.
    pub outcome: PermissionOutcome,
    /// The decision of the policy, which may be a rejection that the agent offered no option for.
    pub decision: PermissionOutcome,
    /// `seq` of the answer.
    pub seq: u64,
    /// The possible answers: several if the agent uses its own word for the kind of the chosen option.
    answers: &'static [Answer],
    option: Option<String>,
    policy: Option<String>,
    /// The rule that decided.
    pub rule: Option<String>,
}

impl Reply {
    /// Makes a reply from an answer and the offered options.
    pub fn of(response: &PermissionResponse, offered: &[PermissionOption], seq: u64) -> Self {
        let chosen = offered.iter().find(|offer| Some(&offer.option) == response.option.as_ref());
        let answers: &[Answer] = match (response.outcome, chosen.map(|offer| offer.kind.as_str())) {
            (PermissionOutcome::Cancelled, _) => &[Answer::Cancel],
            (_, Some("allow_once")) => &[Answer::AllowOnce],
            (_, Some("allow_always")) => &[Answer::AllowAlways],
            (_, Some("reject_once")) => &[Answer::RejectOnce],
            (_, Some("reject_always")) => &[Answer::RejectAlways],
            (PermissionOutcome::Allowed, _) => &[Answer::AllowOnce, Answer::AllowAlways],
            (PermissionOutcome::Rejected, _) => &[Answer::RejectOnce, Answer::RejectAlways],
        };
        Self {
            outcome: response.outcome,
            decision: response.decision(),
            seq,
            answers,
            option: response.option.clone(),
            policy: response.policy.clone(),
            rule: response.rule.clone(),
        }
    }
}

impl RequestMatcher {
    /// Returns whether a request matches. The call is absent if the agent never described it; nothing of it was
    /// shown then.
    pub fn fits(&self, call: Option<&Subject<'_>>, reply: Option<&Reply>) -> Judgement {
        self.answer.fits(reply).and(|| match call {
            _ if self.call == Matcher::default() => Judgement::True,
            Some(call) => self.call.fits(call),
            None => Judgement::Unknown,
        })
    }

    /// Returns why the matcher is meaningless, or can never match a request with this outcome. The text
    /// continues after its place.
    pub fn refusal(&self, outcome: Option<PermissionOutcome>) -> Option<String> {
        let says_answer = self.answer != Answered::default();
        if let Some(refusal) = self.call.refusal().filter(|_| !says_answer || self.call != Matcher::default()) {
            return Some(refusal.to_owned());
        }
        for (key, glob) in
            [("option", &self.answer.option), ("policy", &self.answer.policy), ("rule", &self.answer.rule)]
        {
            if glob.as_ref().is_some_and(|glob| glob.to_string().is_empty()) {
                return Some(format!("has an empty `{key}`"));
            }
        }
        let contradicts = outcome.is_some_and(|outcome| !self.answer.can_be(outcome));
        (contradicts || !OUTCOMES.into_iter().any(|outcome| self.answer.can_be(outcome)))
            .then(|| "asks for an answer that such a request never has".to_owned())
    }
}

impl Answered {
    fn fits(&self, reply: Option<&Reply>) -> Judgement {
        let Self { outcome, answer, option, policy, rule } = self;
        let Some(reply) = reply else { return Judgement::from(*self == Self::default()) };
        let named = |glob: &Option<NameGlob>, name: &Option<String>| {
            // A rule without a name is called `rules[0]`, which would be a set of letters in a glob.
            let is =
                |glob: &NameGlob| name.as_deref().is_some_and(|name| glob.is_match(name) || glob.to_string() == name);
            glob.as_ref().is_none_or(is)
        };
        let ended = [reply.outcome, reply.decision];
        let others = outcome.as_ref().is_none_or(|list| list.iter().any(|outcome| ended.contains(outcome)))
            && named(option, &reply.option)
            && named(policy, &reply.policy)
            && named(rule, &reply.rule);
        let is_listed = |list: &OneOrList<Answer>| {
            let ways = reply.answers.iter().map(|answer| Judgement::from(list.iter().any(|listed| listed == answer)));
            Judgement::agreed(ways)
        };
        Judgement::from(others).and(|| answer.as_ref().map_or(Judgement::True, is_listed))
    }

    /// Returns true if an answer with this outcome can match. A rejection without an option for it is answered `cancelled`.
    fn can_be(&self, outcome: PermissionOutcome) -> bool {
        use PermissionOutcome::{Cancelled, Rejected};
        let without_option = || {
            self.outcome.as_ref().is_none_or(|list| list.iter().any(|it| matches!(it, Cancelled | Rejected)))
                && self.answer.as_ref().is_none_or(|list| list.iter().any(|it| *it == Answer::Cancel))
                && self.option.is_none()
        };
        self.is_possible(outcome) || (outcome == Rejected && without_option())
    }

    /// Returns true if an answer with this outcome, which is also what was decided, can match.
    fn is_possible(&self, outcome: PermissionOutcome) -> bool {
        let of = |answer: Answer| match answer {
            Answer::AllowOnce | Answer::AllowAlways => PermissionOutcome::Allowed,
            Answer::RejectOnce | Answer::RejectAlways => PermissionOutcome::Rejected,
            Answer::Cancel => PermissionOutcome::Cancelled,
        };
        self.outcome.as_ref().is_none_or(|list| list.iter().any(|it| *it == outcome))
            && self.answer.as_ref().is_none_or(|list| list.iter().any(|it| of(*it) == outcome))
            && (self.option.is_none() || outcome != PermissionOutcome::Cancelled)
    }
}

impl SharedKeys for Answered {
    const KEYS: &'static [&'static str] = &["outcome", "answer", "option", "policy", "rule"];

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &'static str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "outcome" => self.outcome = Some(map.next_value()?),
            "answer" => self.answer = Some(map.next_value()?),
            "option" => self.option = Some(map.next_value()?),
            "policy" => self.policy = Some(map.next_value()?),
            _ => self.rule = Some(map.next_value()?),
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for RequestMatcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut answer = Answered::default();
        let call = Matcher::deserialize(Split { inner: deserializer, beside: &mut answer })?;
        Ok(Self { call, answer })
    }
}

impl Serialize for RequestMatcher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let Answered { outcome, answer, option, policy, rule } = &self.answer;
        let mut matcher = serde_json::to_value(&self.call).map_err(S::Error::custom)?;
        let beside = [
            ("outcome", outcome.as_ref().map(serde_json::to_value)),
            ("answer", answer.as_ref().map(serde_json::to_value)),
            ("option", option.as_ref().map(serde_json::to_value)),
            ("policy", policy.as_ref().map(serde_json::to_value)),
            ("rule", rule.as_ref().map(serde_json::to_value)),
        ];
        if let Value::Object(map) = &mut matcher {
            for (key, value) in beside {
                if let Some(value) = value {
                    map.insert(key.to_owned(), value.map_err(S::Error::custom)?);
                }
            }
        }
        matcher.serialize(serializer)
    }
}

#[cfg(test)]
impl JsonSchema for RequestMatcher {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RequestMatcher".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Matcher::json_schema(generator);
        let outcome = generator.subschema_for::<OneOrList<PermissionOutcome>>();
        let answer = generator.subschema_for::<OneOrList<Answer>>();
        let glob = generator.subschema_for::<NameGlob>();
        let keys = serde_json::json!({
            "outcome": {"description": "What was decided: one outcome or several.", "allOf": [outcome]},
            "answer": {"description": "The kind of the option that was chosen: one or several.", "allOf": [answer]},
            "option": {"description": "The agent's id of the option that was chosen; `*` is anything.", "allOf": [glob]},
            "policy": {"description": "The policy that answered: its word, `answers` for the case's answers, `engine` \
                if no policy was asked.", "allOf": [glob]},
            "rule": {"description": "The rule that decided: its name, or `rules[0]` by its place; `*` is anything.", "allOf": [glob]},
        });
        crate::grader::entry::add_properties(&mut schema, &keys);
        schema
    }
}

impl fmt::Display for RequestMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answered { outcome, answer, option, policy, rule } = &self.answer;
        let mut parts: Vec<String> = Vec::new();
        if self.call != Matcher::default() {
            parts.push(self.call.to_string().trim_matches('`').to_owned());
        }
        parts.extend(outcome.as_ref().map(|it| reason_text::any_of(it.iter().map(word_of))));
        parts.extend(answer.as_ref().map(|it| reason_text::any_of(it.iter().map(word_of))));
        parts.extend(option.as_ref().map(|it| format!("by option {it}")));
        parts.extend(policy.as_ref().map(|it| format!("by policy {it}")));
        parts.extend(rule.as_ref().map(|it| format!("by rule {it}")));
        write!(f, "`{}`", parts.join(" "))
    }
}

/// Returns the name of a value in files.
fn word_of(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
