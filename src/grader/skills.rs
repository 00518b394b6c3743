//! `skills`: checks which skills the agent used, by the signs that the manifest of its harness names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use async_trait::async_trait;
#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::checks::Checks;
use super::observer::Finding;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::{Grade, SkillUse};
use crate::harness::Manifest;
use crate::harness::skills::{OfSkill, Signs, signs};
use crate::judgement::Judgement;
use crate::reason_text;
use crate::text::plural;
use crate::trace::calls::Call;
use crate::trace::facts::Reading;
use crate::trace::{Body, CallStatus, Event, Header, Location, Lost, ToolCall, ToolKind, UnseenAction};
use crate::yaml::lists::{filled, not_null};

/// The maximum number of events in the evidence of a check.
const POINTED_AT: usize = 40;
/// The maximum number of other skills that are kept by name.
const NAMED: usize = 40;

/// The skills that the agent must and must not use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{used: [pdf]}`")]
pub struct Skills {
    /// Skills that must have been used.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<SkillName>,
    /// Skills that must not have been used.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub not_used: Vec<SkillName>,
    /// The only skills that may have been used. With an empty list, no skill at all.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<SkillName>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillName(String);

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SkillName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let is_sign = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if name.starts_with(char::is_alphanumeric) && name.chars().all(is_sign) {
            return Ok(Self(name));
        }
        let shown = reason_text::short(&name, 60);
        Err(serde::de::Error::custom(format!(
            "`{shown}` is not the name of a skill: a name has letters, digits, `-`, `_`, `.` and `:`; globs are not allowed"
        )))
    }
}

impl Serialize for SkillName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
impl JsonSchema for SkillName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SkillName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string"})
    }
}

impl GraderSpec for Skills {
    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn depends_on_loss(&self, lost: Lost) -> bool {
        !matches!(lost, Lost::Text | Lost::Speaker | Lost::Caller)
    }

    fn depends_on_action(&self, action: &UnseenAction, _: Option<&str>) -> bool {
        action.path.ends_with(crate::skill::FILE)
    }

    fn only_finds(&self) -> bool {
        self.not_used.is_empty() && self.only.is_none()
    }

    fn asked_skills(&self) -> Vec<String> {
        self.used.iter().chain(&self.not_used).map(ToString::to_string).collect()
    }

    fn refusal(&self) -> Option<String> {
        let Self { used, not_used, only } = self;
        if used.is_empty() && not_used.is_empty() && only.is_none() {
            return Some("checks nothing; say which skills, for example `used: [changelog]`".to_owned());
        }
        if let Some(both) = used.iter().find(|name| not_used.contains(name)) {
            return Some(format!("contradicts itself: `{both}` is in `used` and in `not-used`"));
        }
        let only = only.as_ref()?;
        let left_out = used.iter().find(|name| !only.contains(name))?;
        Some(format!("contradicts itself: `{left_out}` is in `used`, and not in `only`"))
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(SkillsObserver {
            wanted: self.clone(),
            signs: Err("the session never began".to_owned()),
            named: BTreeMap::new(),
            others: BTreeMap::new(),
            unnamed: Unknown::default(),
        })
    }
}

struct SkillsObserver {
    wanted: Skills,
    /// The signs of the harness, or the reason why there are none.
    signs: Result<Signs, String>,
    /// The skills in `used` and `not-used`.
    named: BTreeMap<SkillName, Named>,
    /// The used skills that are not in `only`, with the events of their calls.
    others: BTreeMap<String, SkillUses>,
    /// The calls that may have used a skill that is not in `only`.
    unnamed: Unknown,
}

/// The observations of a skill that the grader names.
struct Named {
    signs: OfSkill,
    found: SkillUses,
    unknown: Unknown,
    /// The number of attempts that failed, were refused or cancelled, and the first of them.
    failed: (u64, u64),
}

/// The calls that used a skill: their number, and the events of the first of them.
#[derive(Default)]
struct SkillUses {
    count: u64,
    events: Vec<u64>,
}

impl SkillUses {
    fn add(&mut self, call: &Subject<'_>) {
        self.count += 1;
        if self.events.len() < POINTED_AT {
            self.events.extend([call.seq, call.result_seq]);
        }
    }

    /// Returns the events of the calls, without their results.
    fn calls(&self) -> String {
        reason_text::events(&self.events.iter().copied().step_by(2).collect::<Vec<u64>>())
    }
}

/// The calls of which it is unknown whether they used a skill: their number, and the first of them.
#[derive(Default)]
struct Unknown {
    count: u64,
    first: Option<String>,
}

impl Unknown {
    fn add(&mut self, call: &Subject<'_>) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{} (event {})", call.label(), call.seq));
    }

    fn hangs_on(&self) -> String {
        let first = self.first.as_deref().unwrap_or("a call");
        let more = match self.count.saturating_sub(1) {
            0 => String::new(),
            more => format!(" and of {}", plural(more, "more call")),
        };
        format!("the agent did not show enough of {first}{more}, or how it ended")
    }
}

/// Returns a call that reads a file, for the signs of skills.
fn read_of(path: &str, event: &Event) -> Call {
    Call {
        seq: event.seq,
        at_ms: event.at_ms,
        parent: None,
        call: ToolCall {
            call: String::new(),
            step: 0,
            kind: ToolKind::Read,
            name: None,
            title: None,
            input: None,
            without_input: false,
            unknown_kind: false,
            locations: vec![Location { path: path.to_owned(), line: None }],
            cwd: None,
        },
        announced_kind: None,
        asked: Vec::new(),
        result_seq: event.seq,
        result_at_ms: event.at_ms,
        status: CallStatus::Ok,
        is_cut: false,
        contested: false,
        output: None,
        truncated: false,
        diffs: Vec::new(),
        exit_code: None,
    }
}

#[async_trait]
impl Observer for SkillsObserver {
    fn begin(&mut self, header: &Header, manifest: Option<&Manifest>) {
        self.signs = signs(header, manifest);
        if let Ok(signs) = &self.signs {
            let names = self.wanted.used.iter().chain(&self.wanted.not_used);
            let named = |name: &SkillName| Named {
                signs: signs.of(&name.0),
                found: SkillUses::default(),
                unknown: Unknown::default(),
                failed: (0, 0),
            };
            self.named = names.map(|name| (name.clone(), named(name))).collect();
        }
    }

    /// Handles a call that named the file of a skill by a link: whether its sign fits may depend on the name.
    fn event(&mut self, event: &Event) {
        let Body::Notice { link: Some(link), .. } = &event.body else { return };
        let Ok(signs) = &self.signs else { return };
        if !link.to.ends_with(crate::skill::FILE) {
            return;
        }
        let reading = Reading::default();
        let [by_name, by_file] = [&link.path, &link.to].map(|path| read_of(path, event));
        let [by_name, by_file] = [&by_name, &by_file].map(|call| Subject::of(call, &reading));
        for named in self.named.values_mut() {
            if !named.signs.fits(&by_name).is_true() && named.signs.fits(&by_file).may_be_true() {
                named.unknown.add(&by_file);
            }
        }
        let Some(only) = &self.wanted.only else { return };
        let known = signs.uses(&by_name).names;
        let is_other = |name: &String| !only.iter().any(|allowed| allowed.0 == *name) && !known.contains(name);
        if signs.uses(&by_file).names.iter().any(is_other) {
            self.unnamed.add(&by_file);
        }
    }

    fn call(&mut self, call: &Subject<'_>) {
        let Ok(signs) = &self.signs else { return };
        for named in self.named.values_mut() {
            match named.signs.fits(call) {
                Judgement::True => named.found.add(call),
                Judgement::Unknown => named.unknown.add(call),
                Judgement::False if named.signs.attempted(call).is_true() => {
                    named.failed = (named.failed.0 + 1, if named.failed.0 == 0 { call.seq } else { named.failed.1 });
                }
                Judgement::False => {}
            }
        }
        let Some(only) = &self.wanted.only else { return };
        let uses = signs.uses(call);
        let is_other = |name: &&String| !only.iter().any(|allowed| allowed.0 == **name);
        for name in uses.names.iter().filter(is_other) {
            if self.others.len() < NAMED || self.others.contains_key(name) {
                self.others.entry(name.clone()).or_default().add(call);
            }
        }
        if uses.perhaps_more || uses.perhaps.iter().any(|name| is_other(&name)) {
            self.unnamed.add(call);
        }
    }

    async fn finish(self: Box<Self>, _: &Evidence<'_>) -> Findings {
        let uses = self.uses();
        Findings(vec![Finding { skills: uses, ..self.grade().into() }])
    }
}

impl SkillsObserver {
    fn grade(&self) -> Grade {
        if let Err(why) = &self.signs {
            return Grade::ungraded(format!("could not be graded: {why}"));
        }
        let mut checks = Checks::default();
        let of = |names: &[SkillName]| -> BTreeSet<SkillName> { names.iter().cloned().collect() };
        for name in of(&self.wanted.used) {
            let Some(Named { found, unknown, failed, .. }) = self.named.get(&name) else { continue };
            match (found.count, unknown.count) {
                (0, 0) => checks.violated(format!("the skill `{name}` was not used{}", failed_attempts(*failed)), []),
                (0, _) => {
                    checks.unknown(format!("whether the skill `{name}` was used is unknown: {}", unknown.hangs_on()))
                }
                _ => checks
                    .held(format!("the skill `{name}` was used ({})", found.calls()), found.events.iter().copied()),
            }
        }
        for name in of(&self.wanted.not_used) {
            let Some(Named { found, unknown, .. }) = self.named.get(&name) else { continue };
            match (found.count, unknown.count) {
                (0, 0) => checks.held(format!("the skill `{name}` was not used"), []),
                (0, _) => {
                    checks.unknown(format!("whether the skill `{name}` was used is unknown: {}", unknown.hangs_on()))
                }
                _ => checks
                    .violated(format!("the skill `{name}` was used ({})", found.calls()), found.events.iter().copied()),
            }
        }
        if let Some(only) = &self.wanted.only {
            self.check_only(only, &mut checks);
        }
        checks.grade()
    }

    /// Returns the named skills, each with whether it should be used and whether it was.
    fn uses(&self) -> Vec<SkillUse> {
        let used = |name: &SkillName| {
            let Named { found, unknown, .. } = self.named.get(name)?;
            match (found.count, unknown.count) {
                (0, 0) => Some(false),
                (0, _) => None,
                _ => Some(true),
            }
        };
        let expected = self.wanted.used.iter().map(|name| (name, true));
        let all = expected.chain(self.wanted.not_used.iter().map(|name| (name, false)));
        all.map(|(name, expected)| SkillUse { skill: name.0.clone(), expected, used: used(name) }).collect()
    }

    fn check_only(&self, only: &[SkillName], checks: &mut Checks) {
        let allowed = match only {
            [] => "no skill may be used".to_owned(),
            names => {
                format!("only {} may be used", reason_text::first_few(names.iter().map(|name| format!("`{name}`")), 8))
            }
        };
        if !self.others.is_empty() {
            let names = self
                .others
                .iter()
                .map(|(name, found)| format!("`{}` ({})", reason_text::short(name, 60), found.calls()));
            let events = self.others.values().flat_map(|found| found.events.iter().copied());
            let list = reason_text::first_few_long(&names.collect::<Vec<String>>(), 5);
            checks.violated(format!("{allowed}, and the agent used {list}"), events);
        } else if self.unnamed.count > 0 {
            let reason = format!("whether another skill was used is unknown: {}", self.unnamed.hangs_on());
            checks.unknown(reason);
        } else {
            checks.held(format!("{allowed}, and no other was"), []);
        }
    }
}

fn failed_attempts((count, first): (u64, u64)) -> String {
    match count {
        0 => String::new(),
        1 => format!("; an attempt failed or was refused (event {first})"),
        _ => format!("; {} failed or were refused (the first: event {first})", plural(count, "attempt")),
    }
}
