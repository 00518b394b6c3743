//! `rules`: what has to happen, and what must not, in which order. Each rule is true, false, or about nothing.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::checks::Checks;
use super::lists::said;
use super::{Body, Evidence, Judge, Subject, words};
use crate::grade::Grade;
use crate::trace::{Body as EventBody, Event, PermissionOutcome};
use crate::values::{Fraction, Time};

mod event;
mod hits;
mod judge;

use event::{EventMatcher, EventType, Seen, text_of};
use hits::{Hit, Hits, Place};
use judge::{Finding, Near, Session, judge, of_vacuous};

/// Events whose label is kept for a reason, at most.
const LABELS: usize = 400;
/// Events that a reason names, at most.
const SHOWN: usize = 4;

/// Rules about the events of a Trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rules {
    /// The rules, each a map of one key.
    pub rules: Vec<Rule>,
    /// The share of them that is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
}

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        struct Map {
            #[serde(deserialize_with = "super::lists::filled")]
            rules: Vec<Rule>,
            #[serde(default, deserialize_with = "said")]
            min: Option<Fraction>,
        }
        struct ListOrMap;
        impl<'de> Visitor<'de> for ListOrMap {
            type Value = Rules;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rules, or a map such as `{rules: […], gate: true}`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rules, A::Error> {
                let mut rules = Vec::new();
                while let Some(rule) = seq.next_element()? {
                    rules.push(rule);
                }
                if rules.is_empty() {
                    return Err(A::Error::custom("this list is empty: it would check nothing"));
                }
                Ok(Rules { rules, min: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rules, A::Error> {
                let Map { rules, min } = Map::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Rules { rules, min })
            }
        }
        deserializer.deserialize_any(ListOrMap)
    }
}

impl JsonSchema for Rules {
    fn schema_name() -> Cow<'static, str> {
        "Rules".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rule = generator.subschema_for::<Rule>();
        let rules = serde_json::json!({
            "type": "array", "items": rule, "minItems": 1, "description": "The rules, each a map of one key."
        });
        let mut min = generator.subschema_for::<Fraction>().to_value();
        min["description"] = "The share of them that is enough.".into();
        // A list of rules, or a map that holds one.
        json_schema!({
            "description": "Rules about the events of a Trial: a list of them, or a map.",
            "type": ["array", "object"],
            "items": rule,
            "minItems": 1,
            "properties": {"rules": rules, "min": min},
            "required": ["rules"],
            "additionalProperties": false
        })
    }
}

/// What is to become of a rule whose premise never occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Vacuous {
    /// It holds.
    Pass,
    /// It is broken.
    Fail,
}

/// How often something has to happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bounds {
    /// What.
    #[serde(rename = "match")]
    pub matcher: EventMatcher,
    /// At least so often.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// At most so often, attempts too.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// Something that has to come first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Before {
    /// What has to stand in an earlier step.
    pub first: EventMatcher,
    /// What it has to stand before, each time.
    pub then: EventMatcher,
    /// What holds where `then` never occurs; ungraded where nobody says.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub vacuous: Option<Vacuous>,
}

/// Something that has to follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Follow {
    /// What it has to follow, each time.
    pub after: EventMatcher,
    /// What has to follow.
    pub then: EventMatcher,
    /// What holds where `after` never occurs; ungraded where nobody says.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub vacuous: Option<Vacuous>,
}

/// Something that must not happen any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeverAfter {
    /// From the first of these on.
    pub after: EventMatcher,
    /// What must not stand in a later step.
    pub never: EventMatcher,
}

/// Something that has to follow soon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Within {
    /// What it has to follow, each time.
    pub after: EventMatcher,
    /// What has to follow.
    pub then: EventMatcher,
    /// No more than so many steps later.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// No more than so long after.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Time>,
    /// What holds where `after` never occurs; ungraded where nobody says.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub vacuous: Option<Vacuous>,
}

impl Within {
    fn bounds(&self) -> Near {
        match (self.steps, self.seconds) {
            (Some(steps), _) => Near::Steps(steps),
            (None, Some(time)) => Near::Milliseconds(time.0.as_secs_f64() * 1000.0),
            (None, None) => Near::Steps(u64::MAX),
        }
    }
}

/// Something that must not happen in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AbsentBetween {
    /// From the last of these that stands before…
    pub from: EventMatcher,
    /// … each of these.
    pub to: EventMatcher,
    /// What must not stand between the two.
    pub never: EventMatcher,
    /// What holds where no such pair occurs; ungraded where nobody says.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub vacuous: Option<Vacuous>,
}

/// The rules: one line each, and all that reads, writes and describes them follows from it.
macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $word:literal),* $(,)?) => {
        /// One rule.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Rule {
            $($(#[$doc])* $variant($body)),*
        }

        impl Rule {
            const WORDS: &'static [&'static str] = &[$($word),*];

            /// The rule's word.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Rule::$variant(_) => $word),*
                }
            }

            fn read<'de, A: MapAccess<'de>>(word: &str, map: &mut A) -> Result<Self, A::Error> {
                match word {
                    $($word => map.next_value().map(Rule::$variant),)*
                    other => Err(A::Error::unknown_field(other, Rule::WORDS)),
                }
            }

            fn schemas(generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
                vec![$(($word, generator.subschema_for::<$body>())),*]
            }
        }

        impl Serialize for Rule {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(1))?;
                match self {
                    $(Rule::$variant(body) => map.serialize_entry($word, body)?),*
                }
                map.end()
            }
        }
    };
}

rules! {
    /// It happens at least once.
    Eventually(EventMatcher) = "eventually",
    /// It never happens.
    Never(EventMatcher) = "never",
    /// It happens so often.
    Count(Bounds) = "count",
    /// Every `then` has a `first` in an earlier step.
    Before(Before) = "before",
    /// Every `after` has a `then` in a later step.
    Response(Follow) = "response",
    /// From the first `after` on there is no `never`.
    NeverAfter(NeverAfter) = "never-after",
    /// Every `after` has a `then` in the next step that has calls.
    Immediately(Follow) = "immediately",
    /// Every `after` has a `then` that is near.
    Within(Within) = "within",
    /// Between the last `from` before each `to` and that `to` there is no `never`.
    AbsentBetween(AbsentBetween) = "absent-between",
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneKey;
        impl<'de> Visitor<'de> for OneKey {
            type Value = Rule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rule: a map of one key, such as `never: {kind: delete}`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rule, A::Error> {
                let Some(RuleWord(word)) = map.next_key()? else {
                    return Err(A::Error::custom("this rule is empty; it is a map of one key"));
                };
                let rule = Rule::read(word, &mut map)?;
                match map.next_key::<String>()? {
                    None => Ok(rule),
                    Some(key) => Err(A::Error::custom(format_args!(
                        "a rule has one key, and this one has `{word}` already; begin another with `- {key}:`"
                    ))),
                }
            }
        }
        deserializer.deserialize_map(OneKey)
    }
}

/// The key of a rule.
struct RuleWord(&'static str);

impl<'de> Deserialize<'de> for RuleWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = RuleWord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a rule")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<RuleWord, E> {
                let known = Rule::WORDS.iter().find(|known| **known == word);
                known.map(|known| RuleWord(known)).ok_or_else(|| E::unknown_field(word, Rule::WORDS))
            }
        }
        deserializer.deserialize_identifier(Word)
    }
}

impl JsonSchema for Rule {
    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rules: Vec<serde_json::Value> = Rule::schemas(generator)
            .into_iter()
            .map(|(word, body)| {
                let mut properties = serde_json::Map::new();
                properties.insert(word.to_owned(), body.to_value());
                serde_json::json!({
                    "type": "object", "properties": properties, "required": [word], "additionalProperties": false
                })
            })
            .collect();
        json_schema!({"description": "a rule: a map of one key", "oneOf": rules})
    }
}

/// How a rule takes calls that were not carried out.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    /// What was carried out.
    Done,
    /// What was attempted.
    Tried,
}

impl Rule {
    /// Its matchers, each with what it takes.
    fn matchers(&self) -> Vec<(&'static str, &EventMatcher, Takes)> {
        match self {
            Rule::Eventually(matcher) => vec![("eventually", matcher, Takes::Done)],
            Rule::Never(matcher) => vec![("never", matcher, Takes::Tried)],
            Rule::Count(count) => {
                vec![("match", &count.matcher, Takes::Done), ("match", &count.matcher, Takes::Tried)]
            }
            Rule::Before(rule) => vec![("first", &rule.first, Takes::Done), ("then", &rule.then, Takes::Done)],
            Rule::Response(rule) | Rule::Immediately(rule) => {
                vec![("after", &rule.after, Takes::Done), ("then", &rule.then, Takes::Done)]
            }
            Rule::NeverAfter(rule) => vec![("after", &rule.after, Takes::Done), ("never", &rule.never, Takes::Tried)],
            Rule::Within(rule) => vec![("after", &rule.after, Takes::Done), ("then", &rule.then, Takes::Done)],
            Rule::AbsentBetween(rule) => vec![
                ("from", &rule.from, Takes::Done),
                ("to", &rule.to, Takes::Done),
                ("never", &rule.never, Takes::Tried),
            ],
        }
    }

    /// Whether it looks at every event that is found, and not only at the first and the last ones.
    fn looks_at_each(&self) -> bool {
        matches!(self, Rule::Immediately(_) | Rule::Within(_) | Rule::AbsentBetween(_))
    }

    fn vacuous(&self) -> Option<Vacuous> {
        match self {
            Rule::Before(rule) => rule.vacuous,
            Rule::Response(rule) | Rule::Immediately(rule) => rule.vacuous,
            Rule::Within(rule) => rule.vacuous,
            Rule::AbsentBetween(rule) => rule.vacuous,
            Rule::Eventually(_) | Rule::Never(_) | Rule::Count(_) | Rule::NeverAfter(_) => None,
        }
    }

    fn refusal(&self) -> Option<String> {
        let empty = self.matchers().into_iter().find_map(|(key, matcher, _)| {
            let refused = matcher.refusal()?;
            Some(if key == self.word() { refused } else { format!("in `{key}` {refused}") })
        });
        empty.or_else(|| match self {
            Rule::Count(Bounds { min, max, .. }) => match (min.unwrap_or(0), max) {
                (0, None) => Some("counts nothing: write `min` or `max`".to_owned()),
                (min, Some(max)) if min > *max => Some(format!("wants at least {min} and at most {max}")),
                _ => None,
            },
            Rule::Within(Within { steps, seconds, .. }) => match (steps, seconds) {
                (None, None) => Some("says no distance: write `steps` or `seconds`".to_owned()),
                (Some(_), Some(_)) => Some("says both `steps` and `seconds`; keep one of them".to_owned()),
                (Some(0), None) => Some("has `steps: 0`, and what follows stands in a later step".to_owned()),
                _ => None,
            },
            _ => None,
        })
    }

    /// The rule in words, for a reason.
    fn told(&self) -> String {
        let word = self.word();
        match self {
            Rule::Eventually(matcher) => format!("{word}: {matcher} has to happen"),
            Rule::Never(matcher) => format!("{word}: {matcher} must not happen"),
            Rule::Count(Bounds { matcher, min, max }) => {
                let bounds = match (min, max) {
                    (Some(min), Some(max)) => format!("from {min} to {max} times"),
                    (Some(min), None) => format!("at least {min} times"),
                    (None, Some(max)) => format!("at most {max} times"),
                    (None, None) => "any number of times".to_owned(),
                };
                format!("{word}: {matcher} has to happen {bounds}")
            }
            Rule::Before(Before { first, then, .. }) => format!("{word}: {then} needs {first} in an earlier step"),
            Rule::Response(Follow { after, then, .. }) => format!("{word}: {after} needs {then} in a later step"),
            Rule::NeverAfter(NeverAfter { after, never }) => {
                format!("{word}: {never} must not happen after the first {after}")
            }
            Rule::Immediately(Follow { after, then, .. }) => format!("{word}: {after} needs {then} in the next step"),
            Rule::Within(Within { after, then, steps, seconds, .. }) => {
                let near = match (steps, seconds) {
                    (Some(steps), _) => words::count(*steps, "step"),
                    (None, Some(time)) => time.to_string(),
                    (None, None) => "any distance".to_owned(),
                };
                format!("{word}: {after} needs {then} within {near}")
            }
            Rule::AbsentBetween(AbsentBetween { from, to, never, .. }) => {
                format!("{word}: {never} must not happen between {from} and {to}")
            }
        }
    }

    /// What never occurred where the rule is vacuous.
    fn premise(&self) -> String {
        match self {
            Rule::Before(Before { then, .. }) => then.to_string(),
            Rule::Response(Follow { after, .. }) | Rule::Immediately(Follow { after, .. }) => after.to_string(),
            Rule::Within(Within { after, .. }) => after.to_string(),
            Rule::AbsentBetween(AbsentBetween { from, to, .. }) => format!("{to} after {from}"),
            _ => String::new(),
        }
    }
}

impl Body for Rules {
    fn refusal(&self) -> Option<String> {
        let refused =
            self.rules.iter().zip(1..).find_map(|(rule, n)| {
                Some(format!("checks nothing: rule {n}, `{}`, {}", rule.word(), rule.refusal()?))
            });
        refused.or_else(|| {
            (self.rules.is_empty() || self.min == Some(Fraction::ZERO))
                .then(|| "checks nothing; write a rule, for example `never: {kind: delete}`".to_owned())
        })
    }

    fn sees_calls(&self) -> bool {
        true
    }

    fn judge(&self) -> Option<Box<dyn Judge>> {
        let watches = self.rules.iter().map(|rule| {
            let hits = || if rule.looks_at_each() { Hits::all() } else { Hits::ends() };
            rule.matchers().iter().map(|_| hits()).collect()
        });
        Some(Box::new(RulesJudge {
            hits: watches.collect(),
            needs_steps: self.rules.iter().any(|rule| matches!(rule, Rule::Immediately(_))),
            wanted: self.clone(),
            steps: BTreeSet::new(),
            announced: 0,
            asked: HashMap::new(),
            labels: HashMap::new(),
            refused: vec![None; self.rules.len()],
        }))
    }
}

/// A request or an answer whose call is not yet known to its end.
struct Asked {
    event: EventType,
    seq: u64,
    at_ms: u64,
    place: Place,
    outcome: Option<PermissionOutcome>,
    text: Option<String>,
    parent: Option<String>,
}

struct RulesJudge {
    wanted: Rules,
    /// For each rule, what each of its matchers found.
    hits: Vec<Vec<Hits>>,
    /// The ranks of the steps with calls, where a rule needs them.
    steps: BTreeSet<u64>,
    needs_steps: bool,
    /// How many steps were announced so far.
    announced: u64,
    asked: HashMap<String, Vec<Asked>>,
    labels: HashMap<u64, String>,
    /// For each rule, the first attempt that would have been what is wanted.
    refused: Vec<Option<u64>>,
}

impl Judge for RulesJudge {
    fn event(&mut self, event: &Event) {
        let place = Place::after_steps(self.announced, event.seq);
        let asked = |outcome: Option<PermissionOutcome>| Asked {
            event: EventType::of(&event.body),
            seq: event.seq,
            at_ms: event.at_ms,
            place,
            outcome,
            text: text_of(&event.body).map(Cow::into_owned),
            parent: event.parent.clone(),
        };
        match &event.body {
            // A call is looked at when its result is known, and its result with it.
            EventBody::ToolCall(call) => {
                self.announced = self.announced.max(call.step.saturating_add(1));
                if self.needs_steps {
                    self.steps.insert(Place::in_step(call.step).rank);
                }
            }
            EventBody::ToolResult(_) => {}
            EventBody::PermissionRequest(request) => {
                self.asked.entry(request.call.clone()).or_default().push(asked(None));
            }
            EventBody::PermissionResponse(response) => {
                self.asked.entry(response.call.clone()).or_default().push(asked(Some(response.outcome)));
            }
            body => {
                let role = match body {
                    EventBody::Message(message) => Some(message.role),
                    _ => None,
                };
                let seen = Seen {
                    event: EventType::of(body),
                    seq: event.seq,
                    at_ms: event.at_ms,
                    parent: event.parent.as_deref(),
                    call: None,
                    text: text_of(body),
                    outcome: None,
                    role,
                };
                self.see(&seen, place);
            }
        }
    }

    fn call(&mut self, call: &Subject<'_>) {
        let place = Place::in_step(call.call.step);
        let seen = |event: EventType, seq: u64, at_ms: u64| Seen {
            event,
            seq,
            at_ms,
            parent: call.parent,
            call: Some(call),
            text: None,
            outcome: None,
            role: None,
        };
        self.see(&seen(EventType::ToolCall, call.seq, call.at_ms), place);
        for asked in self.asked.remove(&call.call.call).unwrap_or_default() {
            let text = asked.text.as_deref().map(Cow::Borrowed);
            self.see(&Seen { outcome: asked.outcome, text, ..seen(asked.event, asked.seq, asked.at_ms) }, place);
        }
        self.see(&seen(EventType::ToolResult, call.result_seq, call.result_at_ms), place);
    }

    fn finish(mut self: Box<Self>, evidence: &Evidence<'_>) -> Grade {
        if let Some(ungraded) = evidence.without_tracing() {
            return ungraded;
        }
        self.see_what_has_no_call();
        let session = Session { steps: &self.steps, is_timed: evidence.header.is_timed() };
        let mut checks = Checks::default();
        for ((rule, hits), refused) in self.wanted.rules.iter().zip(&self.hits).zip(&self.refused) {
            let asks = rule.matchers().iter().any(|(_, matcher, _)| matcher.is_about_permissions());
            let judged = judge(rule, hits, &session);
            let is_vacuous = judged == Finding::Vacuous;
            let found = match judged {
                _ if asks && !evidence.header.capabilities.interaction => {
                    Finding::Unknown("the harness has no way to ask for permission")
                }
                Finding::Vacuous => of_vacuous(rule.vacuous()),
                found => found,
            };
            let told = rule.told();
            match found {
                Finding::Holds(_) if is_vacuous => {
                    checks.held(format!("{told}, and {} never occurred", rule.premise()), []);
                }
                Finding::Holds(events) => checks.held(format!("{told}, and that holds"), events),
                Finding::Broken(_) if is_vacuous => {
                    checks.violated(format!("{told}, and {} never occurred", rule.premise()), []);
                }
                Finding::Broken(events) => {
                    let reason = format!("{told}; {}", self.breach(rule, hits, &events, *refused));
                    checks.violated(reason, events);
                }
                Finding::Vacuous => checks.unknown(format!(
                    "{told}: vacuous, because {} never occurred (the rule may say `vacuous: pass` or `fail`)",
                    rule.premise()
                )),
                Finding::Unknown(why) => checks.unknown(format!("{told}: {why}")),
            }
        }
        checks.grade_at_least(self.wanted.min)
    }
}

impl RulesJudge {
    fn see(&mut self, seen: &Seen<'_>, place: Place) {
        let mut is_found = false;
        for ((rule, hits), refused) in self.wanted.rules.iter().zip(&mut self.hits).zip(&mut self.refused) {
            for ((_, matcher, takes), hits) in rule.matchers().into_iter().zip(hits) {
                let fits = matcher.fits(seen);
                if fits && (takes == Takes::Tried || matcher.finds(seen)) {
                    hits.add(Hit { place, seq: seen.seq, at_ms: seen.at_ms });
                    is_found = true;
                } else if fits {
                    refused.get_or_insert(seen.seq);
                    is_found = true;
                }
            }
        }
        if is_found && self.labels.len() < LABELS {
            self.labels.entry(seen.seq).or_insert_with(|| seen.label());
        }
    }

    /// Requests about calls that are nowhere.
    fn see_what_has_no_call(&mut self) {
        let mut rest: Vec<Asked> = std::mem::take(&mut self.asked).into_values().flatten().collect();
        rest.sort_by_key(|asked| asked.seq);
        for asked in rest {
            let seen = Seen {
                event: asked.event,
                seq: asked.seq,
                at_ms: asked.at_ms,
                parent: asked.parent.as_deref(),
                call: None,
                text: asked.text.as_deref().map(Cow::Borrowed),
                outcome: asked.outcome,
                role: None,
            };
            self.see(&seen, asked.place);
        }
    }

    /// What breaks a rule.
    fn breach(&self, rule: &Rule, hits: &[Hits], events: &[u64], refused: Option<u64>) -> String {
        let label = |seq: &u64| match self.labels.get(seq) {
            Some(label) => format!("{label} (event {seq})"),
            None => format!("event {seq}"),
        };
        let shown = words::first_few_long(&events.iter().map(label).collect::<Vec<_>>(), SHOWN);
        let refused = match refused {
            Some(seq) => format!("; {} was refused or cancelled", label(&seq)),
            None => String::new(),
        };
        match rule {
            Rule::Eventually(_) => format!("it never did{refused}"),
            Rule::Never(_) => format!("it did: {shown}"),
            Rule::Count(Bounds { max, .. }) => {
                let (done, tried) =
                    (hits.first().map_or(0, |hits| hits.count), hits.get(1).map_or(0, |hits| hits.count));
                match max {
                    Some(max) if tried > *max => format!("it did {}, too many are {shown}", times(tried)),
                    _ => format!("it did {}{refused}", times(done)),
                }
            }
            Rule::Before(_) => format!("without it stands {shown}{refused}"),
            Rule::Response(_) | Rule::Immediately(_) | Rule::Within(_) => {
                format!("it does not follow {shown}{refused}")
            }
            Rule::NeverAfter(_) | Rule::AbsentBetween(_) => format!("there is {shown}"),
        }
    }
}

fn times(count: u64) -> String {
    match count {
        0 => "not happen".to_owned(),
        count => format!("happen {}", words::count(count, "time")),
    }
}
