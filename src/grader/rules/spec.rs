//! Rules as written in a case: reading, schema, validation, and description in words.

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::decide::Near;
use super::event::EventMatcher;
use crate::text::plural;
use crate::values::{Fraction, Time};
use crate::yaml::forms::{Forms, deserialize_forms, filled_list};
use crate::yaml::lists::{filled, not_null};

/// Rules about the events of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rules {
    /// The rules, each a map with one key.
    pub rules: Vec<Rule>,
    /// The share of the rules that is enough to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RulesMap {
    #[serde(deserialize_with = "filled")]
    rules: Vec<Rule>,
    #[serde(default, deserialize_with = "not_null")]
    min: Option<Fraction>,
}

impl<'de> Forms<'de> for Rules {
    const EXPECTED: &'static str = "a list of rules, or a map such as `{rules: […], gate: true}`";

    fn from_list<A: SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        Ok(Rules { rules: filled_list(seq)?, min: None })
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let RulesMap { rules, min } = RulesMap::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Rules { rules, min })
    }
}

deserialize_forms!(Rules, deserialize_any);

#[cfg(test)]
impl JsonSchema for Rules {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rules".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rule = generator.subschema_for::<Rule>();
        let rules = serde_json::json!({
            "type": "array", "items": rule, "minItems": 1, "description": "The rules, each a map of one key."
        });
        let mut min = generator.subschema_for::<Fraction>().to_value();
        min["description"] = "The share of the rules that must be true. Default: 1.".into();
        // A list of rules, or a map that contains one.
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

/// The result of a rule whose premise never occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Vacuous {
    /// The rule holds.
    Pass,
    /// The rule is broken.
    Fail,
}

/// A bound on the number of times an event happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bounds {
    /// The events that are counted.
    #[serde(rename = "match")]
    pub matcher: EventMatcher,
    /// The minimum number.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The maximum number, including calls that were not carried out.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// An event that must come first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Before {
    /// The event that must be in an earlier step.
    pub first: EventMatcher,
    /// The event that must have `first` in an earlier step, each time it happens.
    pub then: EventMatcher,
    /// The result if `then` never occurs. Default: ungraded.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub vacuous: Option<Vacuous>,
}

/// An event that must follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Follow {
    /// The event that `then` must follow, each time it happens.
    pub after: EventMatcher,
    /// The event that must follow.
    pub then: EventMatcher,
    /// The result if `after` never occurs. Default: ungraded.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub vacuous: Option<Vacuous>,
}

/// An event that must no longer happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeverAfter {
    /// The event that starts the rule, at its first occurrence.
    pub after: EventMatcher,
    /// The event that must not be in a later step.
    pub never: EventMatcher,
}

/// An event that must follow soon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Within {
    /// The event that `then` must follow, each time it happens.
    pub after: EventMatcher,
    /// The event that must follow.
    pub then: EventMatcher,
    /// The maximum number of steps between them.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The maximum time between them.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Time>,
    /// The result if `after` never occurs. Default: ungraded.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
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

/// An event that must not happen between two others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AbsentBetween {
    /// The event at which a span begins: the last one before each `to`.
    pub from: EventMatcher,
    /// The event at which a span ends.
    pub to: EventMatcher,
    /// The event that must not be in the span.
    pub never: EventMatcher,
    /// The result if no such span occurs. Default: ungraded.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub vacuous: Option<Vacuous>,
}

/// Declares the rules, one line each. Reading, writing and the schema follow from this list.
macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $word:literal),* $(,)?) => {
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "a case has a few of them")]
        pub enum Rule {
            $($(#[$doc])* $variant($body)),*
        }

        impl Rule {
            const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the rule's name.
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

            #[cfg(test)]
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
    /// The event happens at least once.
    Eventually(EventMatcher) = "eventually",
    /// The event never happens.
    Never(EventMatcher) = "never",
    /// The event happens this often.
    Count(Bounds) = "count",
    /// Every `then` has a `first` in an earlier step.
    Before(Before) = "before",
    /// Every `after` has a `then` in a later step.
    Response(Follow) = "response",
    /// No `never` occurs after the first `after`.
    NeverAfter(NeverAfter) = "never-after",
    /// Every `after` has a `then` in the next step that has calls.
    Immediately(Follow) = "immediately",
    /// Every `after` has a `then` within a number of steps or a time.
    Within(Within) = "within",
    /// No `never` occurs between the last `from` before each `to` and that `to`.
    AbsentBetween(AbsentBetween) = "absent-between",
}

impl<'de> Forms<'de> for Rule {
    const EXPECTED: &'static str = "a rule: a map of one key, such as `never: {kind: delete}`";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
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

deserialize_forms!(Rule, deserialize_map);

/// The key of a rule.
struct RuleWord(&'static str);

impl Forms<'_> for RuleWord {
    const EXPECTED: &'static str = "the name of a rule";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        let known = Rule::WORDS.iter().find(|known| **known == word);
        known.map(|known| RuleWord(known)).ok_or_else(|| E::unknown_field(word, Rule::WORDS))
    }
}

deserialize_forms!(RuleWord, deserialize_identifier);

#[cfg(test)]
impl JsonSchema for Rule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rules =
            Rule::schemas(generator).into_iter().map(|(word, body)| crate::yaml::forms::one_key(word, body.to_value()));
        let rules: Vec<serde_json::Value> = rules.collect();
        json_schema!({"description": "a rule: a map of one key", "oneOf": rules})
    }
}

/// The calls that a rule counts: only executed ones, or others, too.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Takes {
    /// Only executed calls.
    Done,
    /// All attempted calls.
    Tried,
}

impl Rule {
    /// Returns the matchers, each with the calls it counts.
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

    /// Returns true if the rule is about the order of events.
    pub(super) fn is_about_order(&self) -> bool {
        !matches!(self, Rule::Eventually(_) | Rule::Never(_) | Rule::Count(_))
    }

    /// Returns true if the rule looks at every found event, and not only at the first and the last ones.
    pub(super) fn looks_at_each(&self) -> bool {
        matches!(self, Rule::Immediately(_) | Rule::Within(_) | Rule::AbsentBetween(_))
    }

    /// Returns true if the events that break the rule still break it, whatever further events there are.
    pub(super) fn breaks_by_events(&self) -> bool {
        match self {
            Rule::Never(_) | Rule::NeverAfter(_) => true,
            Rule::Count(bounds) => bounds.max.is_some(),
            Rule::Eventually(_)
            | Rule::Before(_)
            | Rule::Response(_)
            | Rule::Immediately(_)
            | Rule::Within(_)
            // A further `from` may come after what must be absent.
            | Rule::AbsentBetween(_) => false,
        }
    }

    /// Returns true if another outcome of a call can change the result: the rule is about executed calls, or about their
    /// status or output.
    pub(super) fn depends_on_outcomes(&self) -> bool {
        match self {
            Rule::Count(bounds) => {
                let takes = if bounds.min.unwrap_or(0) > 0 { Takes::Done } else { Takes::Tried };
                bounds.matcher.depends_on_outcome(takes)
            }
            rule => rule.matchers().into_iter().any(|(_, matcher, takes)| matcher.depends_on_outcome(takes)),
        }
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
                (min, Some(max)) if min > *max => Some(format!("has a `min` of {min} above its `max` of {max}")),
                _ => None,
            },
            Rule::Within(Within { steps, seconds, .. }) => match (steps, seconds) {
                (None, None) => Some("has no distance; write `steps` or `seconds`".to_owned()),
                (Some(_), Some(_)) => Some("has both `steps` and `seconds`; keep one of them".to_owned()),
                (Some(0), None) => Some("has `steps: 0`, but the second event is always in a later step".to_owned()),
                _ => None,
            },
            Rule::Eventually(EventMatcher { own, .. }) => {
                let text = own.text.as_ref().filter(|text| text.is_in_any_text())?;
                Some(format!("has the `text` /{text}/, which matches any text"))
            }
            _ => None,
        })
    }

    /// Returns the rule in words, for a reason.
    pub(super) fn sentence(&self) -> String {
        let word = self.word();
        match self {
            Rule::Eventually(matcher) => format!("{word}: {matcher} must happen"),
            Rule::Never(matcher) => format!("{word}: {matcher} must not happen"),
            Rule::Count(Bounds { matcher, min, max }) => {
                let bounds = match (min, max) {
                    (Some(min), Some(max)) => format!("from {min} to {}", plural(*max, "time")),
                    (Some(min), None) => format!("at least {}", plural(*min, "time")),
                    (None, Some(max)) => format!("at most {}", plural(*max, "time")),
                    (None, None) => "any number of times".to_owned(),
                };
                format!("{word}: {matcher} must happen {bounds}")
            }
            Rule::Before(Before { first, then, .. }) => format!("{word}: {then} needs {first} in an earlier step"),
            Rule::Response(Follow { after, then, .. }) => format!("{word}: {after} needs {then} in a later step"),
            Rule::NeverAfter(NeverAfter { after, never }) => {
                format!("{word}: {never} must not happen after the first {after}")
            }
            Rule::Immediately(Follow { after, then, .. }) => format!("{word}: {after} needs {then} in the next step"),
            Rule::Within(Within { after, then, steps, seconds, .. }) => {
                let near = match (steps, seconds) {
                    (Some(steps), _) => plural(*steps, "step"),
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

    /// Returns the description of the event that never occurred if the rule is vacuous.
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
