//! A sign that a skill was used: a matcher of calls, with the placeholder `{skill}` for the skill's name.

use std::collections::BTreeSet;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::judgement::Judgement;
use crate::matcher::Matcher;
use crate::matcher::subject::Subject;
use crate::trace::CallStatus;
use crate::trace::facts::Command;
use crate::values::escaped_glob;
use crate::yaml::forms::{Forms, deserialize_forms};

/// The placeholder for a skill's name.
const SKILL: &str = "{skill}";

/// The maximum number of texts of a call that are tried as names.
const TRIED: usize = 500;

/// A name that no skill has. If the result for this name is unknown, the agent did not show something.
const NOBODY: &str = "no-skill-8f2b1c";

/// A matcher with the placeholder `{skill}` for the name of a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Sign {
    /// The matcher as written.
    written: Map<String, Value>,
}

/// The signs of an agent.
#[derive(Debug)]
pub struct Signs(Vec<Ready>);

/// A sign with the matchers that are needed for each call.
#[derive(Debug)]
struct Ready {
    sign: Sign,
    /// Fits each call that the sign fits for any name, and perhaps others.
    anyone: Option<Matcher>,
    /// The sign for a name that no skill has.
    nobody: Option<Matcher>,
}

/// The signs of the use of one skill.
#[derive(Debug, Clone)]
pub struct OfSkill(Vec<Matcher>);

/// The skills that a call used.
#[derive(Debug, Default)]
pub struct Uses {
    /// The names of skills that the call used.
    pub names: BTreeSet<String>,
    /// The names of skills that the call may have used.
    pub perhaps: BTreeSet<String>,
    /// True if the call may have used a skill whose name is not known.
    pub perhaps_more: bool,
}

impl Signs {
    /// Makes the signs ready for use.
    pub fn new(signs: Vec<Sign>) -> Self {
        let ready = |sign: Sign| Ready { anyone: sign.of_any(), nobody: sign.matcher(NOBODY), sign };
        Self(signs.into_iter().map(ready).collect())
    }

    /// Returns the signs of the use of this skill.
    pub fn of(&self, skill: &str) -> OfSkill {
        OfSkill(self.0.iter().filter_map(|ready| ready.sign.matcher(skill)).collect())
    }

    /// Returns the skills that a call used.
    pub fn uses(&self, call: &Subject<'_>) -> Uses {
        let mut uses = Uses::default();
        let ended_well = ended_well(call);
        if ended_well == Judgement::False {
            return uses;
        }
        for ready in &self.0 {
            ready.add_uses(call, ended_well, &mut uses);
        }
        uses
    }
}

impl OfSkill {
    /// Returns whether a call used the skill.
    pub fn fits(&self, call: &Subject<'_>) -> Judgement {
        ended_well(call).and(|| self.attempted(call))
    }

    /// Returns whether a call tried to use the skill, regardless of its outcome.
    pub fn attempted(&self, call: &Subject<'_>) -> Judgement {
        Judgement::any(self.0.iter().map(|matcher| matcher.fits(call)))
    }
}

/// Returns whether a call was executed and did not fail. Unknown for a call that was announced and never ended, and for a
/// success that may have been a failure.
fn ended_well(call: &Subject<'_>) -> Judgement {
    match call.status {
        CallStatus::Unfinished => Judgement::Unknown,
        CallStatus::Ok if call.may_have_failed() => Judgement::Unknown,
        CallStatus::Ok => Judgement::True,
        CallStatus::Error | CallStatus::Denied | CallStatus::Cancelled => Judgement::False,
    }
}

impl Ready {
    fn add_uses(&self, call: &Subject<'_>, ended_well: Judgement, uses: &mut Uses) {
        let fits = |matcher: Option<&Matcher>| matcher.map_or(Judgement::Unknown, |matcher| matcher.fits(call));
        let by_anyone = fits(self.anyone.as_ref());
        if by_anyone == Judgement::False {
            return;
        }
        let tried = self.sign.candidates(call);
        let mut found = false;
        for name in tried.iter().take(TRIED) {
            let fits = ended_well.and(|| fits(self.sign.matcher(name).as_ref()));
            found |= fits.may_be_true();
            match fits {
                Judgement::True => uses.names.insert((*name).to_owned()),
                Judgement::Unknown => uses.perhaps.insert((*name).to_owned()),
                Judgement::False => false,
            };
        }
        // If the sign has the name in the arguments, every text in them was tried.
        let has_all = self.sign.written.get("args").is_some_and(has_skill);
        uses.perhaps_more |=
            tried.len() > TRIED || fits(self.nobody.as_ref()).is_unknown() || by_anyone.is_true() && !has_all && !found;
    }
}

impl Sign {
    /// Returns the matcher for a skill. `None` if the name makes it unreadable.
    fn matcher(&self, skill: &str) -> Option<Matcher> {
        self.with(|key, text| text.replace(SKILL, &escaped(key, skill))).ok()
    }

    /// Returns a matcher that fits each call that the sign fits for any name, and perhaps others.
    fn of_any(&self) -> Option<Matcher> {
        let mut written = self.clone();
        if self.written.get("args").is_some_and(has_skill) {
            written.written.remove("args");
            written.written.remove("match-args");
        }
        written.with(|key, text| text.replace(SKILL, if is_glob(key) { "*" } else { "[^/\\n]+" })).ok()
    }

    fn with(&self, replace: impl Fn(&str, &str) -> String) -> Result<Matcher, String> {
        let filled = self.written.iter().map(|(key, value)| (key.clone(), filled_in(key, value, &replace)));
        serde_json::from_value(Value::Object(filled.collect())).map_err(|error| error.to_string())
    }

    /// Returns the texts of a call that can be the name in it.
    fn candidates<'a>(&self, call: &'a Subject<'_>) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        for (key, value) in self.written.iter().filter(|(_, value)| has_skill(value)) {
            match (key.as_str(), value) {
                ("args", _) => {
                    if let Some(input) = call.call.shown_input() {
                        let mut around = Vec::new();
                        each_text(value, &mut |text| around.extend(text.split_once(SKILL)));
                        each_text(input, &mut |text| {
                            let inside = |(before, after): &(&str, &str)| {
                                text.strip_prefix(before).and_then(|text| text.strip_suffix(after))
                            };
                            names.extend(around.iter().filter_map(inside).filter(|name| !name.is_empty()));
                        });
                    }
                }
                ("name", Value::String(glob)) => {
                    names.extend(call.call.name.as_deref().and_then(|it| within(glob, it)))
                }
                ("path", Value::String(glob)) => {
                    let own = glob.split('/').find(|part| part.contains(SKILL)).unwrap_or(SKILL);
                    let parts = call.known_paths().iter().flat_map(|path| path.split('/'));
                    names.extend(parts.filter_map(|part| within(own, part)));
                }
                ("command", _) => match call.command() {
                    Command::Seen(command) => names.extend(words(command)),
                    Command::Among(texts) => names.extend(texts.iter().flat_map(|text| words(text))),
                    Command::List { command, other } => {
                        names.extend([command, other].into_iter().flat_map(|text| words(text)));
                    }
                    Command::With { command, arguments } => {
                        names.extend([command, arguments].into_iter().flat_map(|text| words(text)));
                    }
                    Command::None | Command::NotShown => {}
                },
                _ => names.extend(call.input().into_iter().flat_map(words)),
            }
        }
        names
    }

    /// Returns the reason why the matcher cannot be a sign of the use of a skill, or `None` if it can.
    fn refusal(&self) -> Option<String> {
        if self.written.is_empty() {
            return Some("this has no key, so every call would use every skill".to_owned());
        }
        if let Some(key) = ["status", "match-args"].into_iter().find(|key| self.written.contains_key(*key)) {
            return Some(match key {
                "status" => "`status` has no place here: a call that failed uses no skill".to_owned(),
                _ => "`match-args` has no place here: a skill's name is compared as it is".to_owned(),
            });
        }
        let matcher = match self.with(|key, text| text.replace(SKILL, &escaped(key, NOBODY))) {
            Ok(matcher) => matcher,
            Err(why) => return Some(why.replace(&regex::escape(NOBODY), SKILL).replace(NOBODY, SKILL)),
        };
        if let Some(why) = matcher.refusal() {
            return Some(format!("this {why}"));
        }
        if !self.written.values().any(has_skill) {
            let why = format!("this has no `{SKILL}`, so it could not tell which skill was used");
            return Some(why);
        }
        self.written.iter().find_map(|(key, value)| match value {
            Value::String(text) if text.contains(SKILL) => loose(key, text),
            _ => None,
        })
    }
}

/// Returns why a name could begin or end elsewhere than at `{skill}` in this text, if it could: `a` would be found in
/// `a-b`.
fn loose(key: &str, text: &str) -> Option<String> {
    let wrong = text.match_indices(SKILL).find(|(at, _)| {
        let (before, after) = (&text[..*at], &text[at + SKILL.len()..]);
        if is_glob(key) {
            let outside = |c: &char| *c != '/' || key == "name";
            let signs = |mut part: Box<dyn Iterator<Item = char> + '_>| {
                part.any(|c| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\' | '!'))
            };
            return signs(Box::new(before.chars().rev().take_while(outside)))
                || signs(Box::new(after.chars().take_while(outside)));
        }
        let is_end = |c: char| matches!(c, '/' | '"' | '\'' | ' ' | '^' | '$');
        let mut next = after.chars();
        !before.ends_with(is_end)
            || !next.next().is_some_and(is_end)
            || next.next().is_some_and(|c| matches!(c, '?' | '*' | '{'))
    })?;
    let at = words_around(text, wrong.0);
    Some(if is_glob(key) {
        format!("beside `{SKILL}` there can be no glob sign in the same part of a path (`{at}`): `a` would be `a-b`")
    } else {
        format!("`{SKILL}` has to stand between `/`, quotes or blanks (`{at}`): `a` would be found in `a-b`")
    })
}

fn words_around(text: &str, at: usize) -> String {
    let start = text[..at].char_indices().rev().nth(4).map_or(0, |(start, _)| start);
    text[start..].chars().take(SKILL.len() + 10).collect()
}

/// Returns true if the value of a key is a glob; the others are regular expressions or arguments.
fn is_glob(key: &str) -> bool {
    matches!(key, "name" | "path")
}

/// Returns a skill's name in the form that is required in the value of a key.
fn escaped(key: &str, skill: &str) -> String {
    match key {
        "name" | "path" => escaped_glob(skill),
        "command" | "input" => regex::escape(skill),
        _ => skill.to_owned(),
    }
}

fn filled_in(key: &str, value: &Value, replace: &impl Fn(&str, &str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(replace(key, text)),
        Value::Array(list) => list.iter().map(|value| filled_in(key, value, replace)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(name, value)| (name.clone(), filled_in(key, value, replace))).collect())
        }
        other => other.clone(),
    }
}

fn has_skill(value: &Value) -> bool {
    let mut found = false;
    each_text(value, &mut |text| found |= text.contains(SKILL));
    found
}

fn each_text<'a>(value: &'a Value, take: &mut impl FnMut(&'a str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(list) => list.iter().for_each(|value| each_text(value, take)),
        Value::Object(map) => map.values().for_each(|value| each_text(value, take)),
        _ => {}
    }
}

/// Returns the name in a text that has the form `before{skill}after`.
fn within<'a>(form: &str, text: &'a str) -> Option<&'a str> {
    let (before, after) = form.split_once(SKILL)?;
    let name = text.strip_prefix(before)?.strip_suffix(after)?;
    (!name.is_empty()).then_some(name)
}

/// Returns the parts of a text that can be names, as [`loose`] separates them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(['/', '"', '\'', ' ', '\n', '\\']).filter(|word| !word.is_empty())
}

impl<'de> Forms<'de> for Sign {
    const EXPECTED: &'static str = "a matcher of calls with `{skill}` in it";

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let sign = Self { written: Map::deserialize(MapAccessDeserializer::new(map))? };
        match sign.refusal() {
            Some(why) => Err(A::Error::custom(why)),
            None => Ok(sign),
        }
    }
}

deserialize_forms!(Sign, deserialize_map);

impl Serialize for Sign {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

#[cfg(test)]
impl JsonSchema for Sign {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Matcher::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        Matcher::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Matcher::json_schema(generator)
    }
}
