//! Matchers: select tool calls for a grader, a rule or a policy.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::judgement::Judgement;
use crate::matching::{command_fits, name_fits, within_command};
use crate::reason_text;
use crate::trace::facts::is_cut;
use crate::trace::{CallStatus, FollowedLink, ToolKind, UnseenAction, view};
use crate::values::{NameGlob, PathGlob, Pattern};
use crate::word::word;
use crate::yaml::lists::OneOrList;
use crate::yaml::lists::not_null;

pub mod arguments;
pub mod paths;
pub mod refusal;
pub mod subject;

use arguments::{Compiled, MatchArgs};
use paths::{path_fits, place_fits};
use subject::{Facts, KINDS, KindFacts, Subject};

/// The calls to select. Every key that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Matcher {
    /// The kind of the tool: one kind, or a list.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub kind: Option<OneOrList<ToolKind>>,
    /// A glob for the tool's name; `*` matches anything.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub name: Option<NameGlob>,
    /// A glob for a path that the call touches, relative to the workspace; `*` stays within a folder, `**`
    /// crosses folders.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub path: Option<PathGlob>,
    /// A regular expression for the input as one line of JSON: keys sorted, no blanks, 1.0 written as 1.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub input: Option<Pattern>,
    /// A regular expression for the command.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub command: Option<Pattern>,
    /// A regular expression, or a list of them, for one of the commands that the command line runs: the program without its
    /// folder, then its arguments, separated by one blank. Blanks within an argument are `␣`.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub runs: Option<OneOrList<Pattern>>,
    /// Arguments that the call must have. Objects may have further keys; lists must be equal.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// The comparison of the arguments. Default: `partial`.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub match_args: Option<MatchArgs>,
    /// The outcome of the call: one status, a list, or `any`.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub status: Option<OneOrList<Status>>,
    /// The caller: the main agent or a sub-agent.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub agent: Option<Speaker>,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    pub(crate) compiled: Compiled,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// Executed without an error.
    Ok,
    /// Executed with an error.
    Error,
    /// Refused.
    Denied,
    /// Cancelled.
    Cancelled,
    /// The agent did not report the outcome.
    Unfinished,
    /// Any outcome.
    Any,
}

word!(Status);

impl Status {
    fn fits(self, status: CallStatus) -> bool {
        match self {
            Status::Ok => status == CallStatus::Ok,
            Status::Error => status == CallStatus::Error,
            Status::Denied => status == CallStatus::Denied,
            Status::Cancelled => status == CallStatus::Cancelled,
            Status::Unfinished => status == CallStatus::Unfinished,
            Status::Any => true,
        }
    }
}

/// The agent that made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The main agent.
    Main,
    /// A sub-agent.
    Sub,
    /// The main agent or a sub-agent.
    Any,
}

impl Matcher {
    /// Returns true if the matcher selects the calls of the main agent, or those of sub-agents.
    pub fn names_speaker(&self) -> bool {
        matches!(self.agent, Some(Speaker::Main | Speaker::Sub))
    }

    /// Returns whether a call matches. Without a `status` key, the call must have been executed. If the call was announced as
    /// another action than the requested one, either may have been executed.
    pub fn finds(&self, call: &Subject<'_>) -> Judgement {
        let carried_out = call.carried_out();
        let found =
            if self.status.is_some() { self.fits_asked(call) } else { carried_out.and(|| self.fits_form(call)) };
        match call.announced_form().filter(|_| carried_out.may_be_true()) {
            Some(announced) => Judgement::agreed([found, self.fits_form(&announced)]),
            None => found,
        }
    }

    /// Returns whether a call matches; without a `status` key, with any outcome. What the agent announced is an attempt, even if
    /// it then asked for permission for something else.
    pub fn fits(&self, call: &Subject<'_>) -> Judgement {
        let announced = || call.announced_form().map_or(Judgement::False, |form| self.fits_form(&form));
        self.fits_asked(call).or(announced)
    }

    /// Returns whether a call matches as a request asked for it. What the agent asked for and was refused is an attempt, whether it
    /// then asked for something else or not.
    fn fits_asked(&self, call: &Subject<'_>) -> Judgement {
        let attempted = || Judgement::any(call.refused_forms().map(|form| self.fits_form(&form)));
        self.fits_form(call).or(attempted)
    }

    /// Returns whether a call matches in one form. A key about a fact that was not shown is unknown; another key that does not
    /// match still decides. A call of an unknown kind is compared as a call of each kind.
    fn fits_form(&self, call: &Subject<'_>) -> Judgement {
        if !call.call.unknown_kind {
            return self.is_of_kind(call).and(|| self.fits_facts(call, || call.facts()));
        }
        let is_wanted = |kind: &ToolKind| self.kind.as_ref().is_none_or(|kinds| kinds.iter().any(|it| it == kind));
        let groups = KINDS.iter().zip(call.supposed());
        Judgement::agreed(groups.flat_map(|(group, KindFacts { kind, paths, command, lines })| {
            let wanted = group.iter().filter(|kind| is_wanted(kind)).count();
            let fits = (wanted > 0).then(|| self.fits_facts(call, || Facts { kind: *kind, paths, command, lines }));
            let is_other = (wanted < group.len()).then_some(Judgement::False);
            fits.into_iter().chain(is_other)
        }))
    }

    /// Returns whether a call of a known kind is of a kind of the matcher.
    fn is_of_kind(&self, call: &Subject<'_>) -> Judgement {
        let Some(kinds) = &self.kind else { return Judgement::True };
        let is_of = |wanted: ToolKind| kinds.iter().any(|kind| *kind == wanted);
        match call.announced_kind.is_some_and(is_of) {
            _ if is_of(call.call.kind) => Judgement::True,
            true => Judgement::Unknown,
            false => Judgement::False,
        }
    }

    /// Returns whether a call with these facts matches, whatever its kind is. The facts are read from the call only if a key asks
    /// for them.
    fn fits_facts<'f>(&self, call: &Subject<'_>, facts: impl Fn() -> Facts<'f>) -> Judgement {
        let Self { kind: _, name, path, input, command, runs, args, match_args, status, agent, compiled } = self;
        let is_speaker = agent.is_none_or(|agent| match agent {
            Speaker::Main => call.parent.is_none(),
            Speaker::Sub => call.parent.is_some(),
            Speaker::Any => true,
        });
        let unless = Judgement::True;
        Judgement::from(is_speaker)
            .and(|| status.as_ref().map_or(unless, |ways| call.ended(ways)))
            .and(|| name.as_ref().map_or(unless, |glob| name_fits(glob, call.call.name.as_deref())))
            .and(|| path.as_ref().map_or(unless, |glob| path_fits(glob, call, facts())))
            .and(|| command.as_ref().map_or(unless, |pattern| command_fits(pattern, facts().command)))
            .and(|| {
                let tool = call.call.name.as_deref();
                runs.as_ref().map_or(unless, |patterns| {
                    let Facts { lines, command, .. } = facts();
                    lines.run(patterns, command, tool)
                })
            })
            .and(|| input.as_ref().map_or(unless, |pattern| input_fits(pattern, call, facts())))
            .and(|| {
                args.as_ref().map_or(unless, |wanted| {
                    let (tool, input) = (call.call.name.as_deref(), call.call.shown_input());
                    let by_default = MatchArgs::default();
                    let rules = match_args.as_ref().unwrap_or(&by_default);
                    rules.fits(tool, wanted, input, call.workspace(), compiled)
                })
            })
    }

    /// Returns true if the matcher may be about a file that the engine read or wrote for the agent without a call. A matcher
    /// of names, inputs or commands alone is about calls.
    pub fn may_be(&self, action: &UnseenAction, workspace: Option<&str>) -> bool {
        let UnseenAction { kind, path } = action;
        let of_kind = self.kind.as_ref().is_none_or(|kinds| kinds.iter().any(|it| it == kind));
        let fits = |glob: &PathGlob| place_fits(glob, path, *kind, false, workspace).may_be_true();
        let at_path = self.path.as_ref().is_none_or(fits);
        (self.kind.is_some() || self.path.is_some()) && of_kind && at_path
    }

    /// Returns true if the matcher asks for calls of this tool, or of its kind. Such a tool runs no command.
    pub fn asks_for(&self, tool: &str, kind: ToolKind) -> bool {
        let of_kind = |kinds: &OneOrList<ToolKind>| kinds.iter().any(|it| *it == kind);
        (self.kind.is_some() || self.name.is_some())
            && self.command.is_none()
            && self.runs.is_none()
            && self.kind.as_ref().is_none_or(of_kind)
            && self.name.as_ref().is_none_or(|glob| glob.is_match(tool))
    }

    /// Returns true if the matcher fits one name of a file that has two, because a link leads from one to the other, and not the
    /// other. A call that may have moved its file touches the named path in any case, so only a match of the target is in doubt.
    pub fn distinguishes(&self, link: &FollowedLink, workspace: Option<&str>) -> bool {
        let FollowedLink { kind, path, to, moved } = link;
        let may_be_of = |kinds: &OneOrList<ToolKind>| *kind == ToolKind::Other || kinds.iter().any(|it| it == kind);
        self.kind.as_ref().is_none_or(may_be_of)
            && self.path.as_ref().is_some_and(|glob| {
                let fits = |path: &str| place_fits(glob, path, *kind, false, workspace);
                match moved {
                    true => fits(to).may_be_true() && !fits(path).is_true(),
                    false => fits(path) != fits(to),
                }
            })
    }

    /// Sets how arguments are compared, unless the matcher has its own setting.
    #[must_use]
    pub fn comparing(mut self, rules: Option<&MatchArgs>) -> Self {
        if self.args.is_some() && self.match_args.is_none() {
            self.match_args = rules.cloned();
        }
        self
    }
}

/// Returns whether an input as one line of JSON matches.
fn input_fits(pattern: &Pattern, call: &Subject<'_>, facts: Facts<'_>) -> Judgement {
    match (call.input(), call.call.shown_input()) {
        (Some(text), _) if pattern.is_match(text) => Judgement::True,
        (Some(_), Some(input)) if !is_cut(input) => Judgement::False,
        (Some(_), _) => Judgement::Unknown,
        (None, _) => within_command(pattern, facts.command.seen()),
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, path, input, command, runs, args, match_args: _, status, agent, compiled: _ } = self;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(kind.as_ref().map(|kinds| reason_text::any_of(kinds.iter().map(ToString::to_string))));
        parts.extend(name.as_ref().map(|glob| format!("name {glob}")));
        parts.extend(path.as_ref().map(ToString::to_string));
        parts.extend(
            command.as_ref().map(|pattern| format!("command /{}/", reason_text::short(&pattern.to_string(), 80))),
        );
        let runs = runs.as_ref().map(|patterns| reason_text::first_few(patterns.iter().map(|it| format!("/{it}/")), 2));
        parts.extend(runs.map(|patterns| format!("runs {patterns}")));
        parts.extend(input.as_ref().map(|pattern| format!("input /{}/", reason_text::short(&pattern.to_string(), 80))));
        let args = args.as_ref().map(|args| view::canonical(&Value::Object(args.clone())));
        parts.extend(args.map(|args| format!("args {}", reason_text::short(&args, 80))));
        let status =
            status.as_ref().map(|list| reason_text::any_of(list.iter().map(|status| status.word().to_owned())));
        parts.extend(status.map(|status| format!("status {status}")));
        parts.extend(agent.map(|agent| match agent {
            Speaker::Main => "by the main agent".to_owned(),
            Speaker::Sub => "by a sub-agent".to_owned(),
            Speaker::Any => "by any agent".to_owned(),
        }));
        write!(f, "`{}`", parts.join(" "))
    }
}
