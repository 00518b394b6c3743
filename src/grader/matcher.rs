//! Matchers: which calls a grader, a rule or a policy means.

use std::cell::OnceCell;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::arguments::{Compiled, MatchArgs};
use super::lists::{OneOrList, said};
use super::words;
use crate::trace::calls::Call;
use crate::trace::{CallStatus, FileDiff, ToolCall, ToolKind, view};
use crate::values::{NameGlob, PathGlob, Pattern};

/// Which calls are meant. Every key that is said has to fit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Matcher {
    /// What the tool does: one kind or several.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub kind: Option<OneOrList<ToolKind>>,
    /// The tool's name; `*` is anything.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub name: Option<NameGlob>,
    /// A path it touches, relative to the workspace; `*` stays within a folder, `**` crosses.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub path: Option<PathGlob>,
    /// A regular expression over its input as one line of JSON: keys sorted, no blanks, 1.0 written 1.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub input: Option<Pattern>,
    /// A regular expression over its command.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub command: Option<Pattern>,
    /// Arguments that are among its own; those within objects too, lists as they are.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// How the arguments are compared; `partial` where nobody says.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub match_args: Option<MatchArgs>,
    /// How it ended: one status, several, or `any`.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub status: Option<OneOrList<Status>>,
    /// Who made it.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub agent: Option<Speaker>,
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) compiled: Compiled,
}

/// How a call ended, as a matcher asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Carried out, without an error.
    Ok,
    /// Carried out, with an error.
    Error,
    /// Refused.
    Denied,
    /// Cancelled.
    Cancelled,
    /// The agent never said.
    Unfinished,
    /// However it ended.
    Any,
}

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

    fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Error => "error",
            Status::Denied => "denied",
            Status::Cancelled => "cancelled",
            Status::Unfinished => "unfinished",
            Status::Any => "any",
        }
    }
}

/// Who made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The main agent.
    Main,
    /// A sub-agent.
    Sub,
    /// Either.
    Any,
}

/// A call as matchers see it. What takes work to find is found once, when it is first asked for.
#[derive(Debug)]
pub struct Subject<'a> {
    /// `seq` of the call.
    pub seq: u64,
    /// `seq` of its result.
    pub result_seq: u64,
    /// The call.
    pub call: &'a ToolCall,
    /// The sub-agent that made it.
    pub parent: Option<&'a str>,
    /// How it ended.
    pub status: CallStatus,
    /// When it was announced.
    pub at_ms: u64,
    /// When its result came.
    pub result_at_ms: u64,
    /// What its result said.
    pub output: Option<&'a str>,
    /// Its exit code, where told.
    pub exit_code: Option<i64>,
    diffs: &'a [FileDiff],
    workspace: Option<&'a str>,
    paths: OnceCell<Vec<String>>,
    input: OnceCell<Option<String>>,
    command: OnceCell<Option<String>>,
}

impl<'a> Subject<'a> {
    /// A call that has its result.
    pub fn of(call: &'a Call, workspace: Option<&'a str>) -> Self {
        Self {
            seq: call.seq,
            result_seq: call.result_seq,
            parent: call.parent.as_deref(),
            status: call.status,
            at_ms: call.at_ms,
            result_at_ms: call.result_at_ms,
            output: call.output.as_deref(),
            exit_code: call.exit_code,
            diffs: &call.diffs,
            ..Self::open(&call.call, workspace)
        }
    }

    /// A call that has no result yet, such as one that a policy is asked about.
    pub fn open(call: &'a ToolCall, workspace: Option<&'a str>) -> Self {
        Self {
            seq: 0,
            result_seq: 0,
            call,
            parent: None,
            status: CallStatus::Unfinished,
            at_ms: 0,
            result_at_ms: 0,
            output: None,
            exit_code: None,
            diffs: &[],
            workspace,
            paths: OnceCell::new(),
            input: OnceCell::new(),
            command: OnceCell::new(),
        }
    }

    /// The paths it touches, relative to the workspace where they lie in it.
    pub fn paths(&self) -> &[String] {
        self.paths
            .get_or_init(|| view::paths(self.call.input.as_ref(), &self.call.locations, self.diffs, self.workspace))
    }

    /// The paths it shows outside of its input: there a command's working folder may stand.
    pub fn shown_paths(&self) -> Vec<String> {
        view::paths(None, &self.call.locations, self.diffs, self.workspace)
    }

    /// Whether its result shows changes to files.
    pub fn shows_changes(&self) -> bool {
        !self.diffs.is_empty()
    }

    /// The paths of the changes that its result shows.
    pub fn changed_paths(&self) -> Vec<String> {
        view::paths(None, &[], self.diffs, self.workspace)
    }

    /// Its input as one line of JSON; absent where the agent never showed it.
    pub fn input(&self) -> Option<&str> {
        self.input.get_or_init(|| self.call.input.as_ref().map(view::canonical)).as_deref()
    }

    /// The command it runs.
    pub fn command(&self) -> Option<&str> {
        self.command.get_or_init(|| view::command(self.call.input.as_ref())).as_deref()
    }

    /// The call in a few words.
    pub fn label(&self) -> String {
        let kind = self.call.kind;
        if let Some(command) = self.command() {
            format!("{kind} `{}`", words::short(command, 60))
        } else if let Some(path) = self.paths().first() {
            format!("{kind} {}", words::short(path, 60))
        } else if let Some(name) = self.call.name.as_ref().or(self.call.title.as_ref()) {
            format!("{kind} ({})", words::short(name, 60))
        } else {
            kind.to_string()
        }
    }
}

impl Matcher {
    /// Whether a call fits that is wanted: where no status is named, one that was carried out.
    pub fn finds(&self, call: &Subject<'_>) -> bool {
        (self.status.is_some() || call.status.carried_out()) && self.fits(call)
    }

    /// Whether a call fits, however it ended where no status is named.
    pub fn fits(&self, call: &Subject<'_>) -> bool {
        let Self { kind, name, path, input, command, args, match_args, status, agent, compiled } = self;
        kind.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| *kind == call.call.kind))
            && name.as_ref().is_none_or(|glob| call.call.name.as_ref().is_some_and(|name| glob.is_match(name)))
            && status.as_ref().is_none_or(|list| list.iter().any(|status| status.fits(call.status)))
            && agent.is_none_or(|agent| match agent {
                Speaker::Main => call.parent.is_none(),
                Speaker::Sub => call.parent.is_some(),
                Speaker::Any => true,
            })
            && path.as_ref().is_none_or(|glob| call.paths().iter().any(|path| glob.is_match(path)))
            && command.as_ref().is_none_or(|pattern| call.command().is_some_and(|text| pattern.is_match(text)))
            && input.as_ref().is_none_or(|pattern| call.input().is_some_and(|text| pattern.is_match(text)))
            && args.as_ref().is_none_or(|wanted| {
                let (tool, input) = (call.call.name.as_deref(), call.call.input.as_ref());
                let by_default = MatchArgs::default();
                let rules = match_args.as_ref().unwrap_or(&by_default);
                rules.fits(tool, wanted, input, call.workspace, compiled)
            })
    }

    /// Why it means nothing: no key, or an empty expectation.
    pub fn refusal(&self) -> Option<String> {
        let empty_args = self.args.as_ref().is_some_and(Map::is_empty);
        if empty_args && !self.match_args.as_ref().is_some_and(MatchArgs::counts_keys) {
            return Some("has empty `args`".to_owned());
        }
        self.refusal_as_expected()
    }

    /// The same for a call of an expected list, where a call without arguments may be meant.
    pub fn refusal_as_expected(&self) -> Option<String> {
        let Self { kind, name, path, input, command, args, match_args, status, agent, compiled: _ } = self;
        let empty = |text: Option<String>| text.is_some_and(|text| text.is_empty());
        let has_args = args.as_ref().is_some_and(|args| !args.is_empty());
        let keyless = kind.is_none() && status.is_none() && agent.is_none() && !has_args;
        let counts_keys = args.is_some() && match_args.as_ref().is_some_and(MatchArgs::counts_keys);
        let wrong_args = match (args, match_args) {
            (Some(args), Some(rules)) => {
                rules.refusal(args).map(|why| format!("has `args` that cannot be compared: {why}"))
            }
            (None, Some(_)) => Some("says how to compare `args` and has none".to_owned()),
            _ => None,
        };
        if wrong_args.is_some() {
            return wrong_args;
        }
        let told =
            if keyless && !counts_keys && name.is_none() && path.is_none() && input.is_none() && command.is_none() {
                Some("has no key, so it would match any call; say which calls, for example `kind: edit`")
            } else if empty(name.as_ref().map(ToString::to_string)) {
                Some("has an empty `name`")
            } else if empty(path.as_ref().map(ToString::to_string)) {
                Some("has an empty `path`")
            } else if empty(input.as_ref().map(ToString::to_string)) {
                Some("has an empty `input`")
            } else if empty(command.as_ref().map(ToString::to_string)) {
                Some("has an empty `command`")
            } else {
                None
            };
        told.map(str::to_owned)
    }

    /// The same matcher, with a way to compare arguments where it has none of its own.
    #[must_use]
    pub fn comparing(mut self, rules: Option<&MatchArgs>) -> Self {
        if self.args.is_some() && self.match_args.is_none() {
            self.match_args = rules.cloned();
        }
        self
    }
}

/// The first of a list of matchers that means nothing. The text goes on from the grader's name.
pub fn refuse_list<'a>(key: &str, matchers: impl IntoIterator<Item = &'a Matcher>) -> Option<String> {
    let mut numbered = matchers.into_iter().zip(1..);
    numbered.find_map(|(matcher, n)| Some(format!("checks nothing: entry {n} of `{key}` {}", matcher.refusal()?)))
}

/// Whether two values are equal, where 1.0 is 1.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            if a.is_f64() || b.is_f64() {
                a.as_f64() == b.as_f64()
            } else {
                a == b
            }
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, path, input, command, args, match_args: _, status, agent, compiled: _ } = self;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(kind.as_ref().map(|kinds| words::any_of(kinds.iter().map(ToString::to_string))));
        parts.extend(name.as_ref().map(|glob| format!("name {glob}")));
        parts.extend(path.as_ref().map(ToString::to_string));
        parts.extend(command.as_ref().map(|pattern| format!("command /{pattern}/")));
        parts.extend(input.as_ref().map(|pattern| format!("input /{pattern}/")));
        let args = args.as_ref().map(|args| view::canonical(&Value::Object(args.clone())));
        parts.extend(args.map(|args| format!("args {}", words::short(&args, 80))));
        let status = status.as_ref().map(|list| words::any_of(list.iter().map(|status| status.word().to_owned())));
        parts.extend(status.map(|status| format!("status {status}")));
        parts.extend(agent.map(|agent| match agent {
            Speaker::Main => "by the main agent".to_owned(),
            Speaker::Sub => "by a sub-agent".to_owned(),
            Speaker::Any => "by any agent".to_owned(),
        }));
        write!(f, "`{}`", parts.join(" "))
    }
}
