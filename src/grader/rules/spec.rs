//! Rules as a case writes them: how they are read, described, refused, and told.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::event::EventMatcher;
use super::judge::Near;
use crate::grader::text;
use crate::values::{Fraction, Time};
use crate::yaml::lists::{filled, said};

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
            #[serde(deserialize_with = "filled")]
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
    pub(super) fn bounds(&self) -> Near {
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
        #[allow(clippy::large_enum_variant, reason = "a case has a few of them")]
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
pub(super) enum Takes {
    /// What was carried out.
    Done,
    /// What was attempted.
    Tried,
}

impl Rule {
    /// Its matchers, each with what it takes.
    pub(super) fn matchers(&self) -> Vec<(&'static str, &EventMatcher, Takes)> {
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
    pub(super) fn looks_at_each(&self) -> bool {
        matches!(self, Rule::Immediately(_) | Rule::Within(_) | Rule::AbsentBetween(_))
    }

    pub(super) fn vacuous(&self) -> Option<Vacuous> {
        match self {
            Rule::Before(rule) => rule.vacuous,
            Rule::Response(rule) | Rule::Immediately(rule) => rule.vacuous,
            Rule::Within(rule) => rule.vacuous,
            Rule::AbsentBetween(rule) => rule.vacuous,
            Rule::Eventually(_) | Rule::Never(_) | Rule::Count(_) | Rule::NeverAfter(_) => None,
        }
    }

    pub(super) fn refusal(&self) -> Option<String> {
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
    pub(super) fn told(&self) -> String {
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
                    (Some(steps), _) => text::count(*steps, "step"),
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
    pub(super) fn premise(&self) -> String {
        match self {
            Rule::Before(Before { then, .. }) => then.to_string(),
            Rule::Response(Follow { after, .. }) | Rule::Immediately(Follow { after, .. }) => after.to_string(),
            Rule::Within(Within { after, .. }) => after.to_string(),
            Rule::AbsentBetween(AbsentBetween { from, to, .. }) => format!("{to} after {from}"),
            _ => String::new(),
        }
    }
}
