//! Matchers: select tool calls for a grader, a rule or a policy.

use std::cell::OnceCell;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::decimal::Decimal;
use crate::judgement::Judgement;
use crate::matching::{command_fits, name_fits, within_command};
use crate::reason_text as text;
use crate::trace::calls::{AskedForm, Call};
use crate::trace::facts::{Command, Fact, Reading, ReportedDetails, is_cut};
use crate::trace::{CallStatus, FileDiff, FollowedLink, PermissionOutcome, ToolCall, ToolKind, UnseenAction, view};
use crate::values::{Below, NameGlob, PathGlob, Pattern};
use crate::word::word;
use crate::yaml::lists::OneOrList;
use crate::yaml::lists::said;

pub mod arguments;

use arguments::{Compiled, MatchArgs};

/// The calls to select. Every key that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Matcher {
    /// The kind of the tool: one kind, or a list.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub kind: Option<OneOrList<ToolKind>>,
    /// A glob for the tool's name; `*` matches anything.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub name: Option<NameGlob>,
    /// A glob for a path that the call touches, relative to the workspace; `*` stays within a folder, `**`
    /// crosses folders.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub path: Option<PathGlob>,
    /// A regular expression for the input as one line of JSON: keys sorted, no blanks, 1.0 written as 1.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub input: Option<Pattern>,
    /// A regular expression for the command.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub command: Option<Pattern>,
    /// Arguments that the call must have. Objects may have further keys; lists must be equal.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// The comparison of the arguments. Default: `partial`.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub match_args: Option<MatchArgs>,
    /// The outcome of the call: one status, a list, or `any`.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub status: Option<OneOrList<Status>>,
    /// The caller: the main agent or a sub-agent.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub agent: Option<Speaker>,
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    pub(crate) compiled: Compiled,
}

/// The reason why the outcome of a call is unknown.
pub const CUT: &str = "so many calls were open that the engine ended the oldest ones";

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

/// A call for matchers. Facts that are expensive to compute are computed once, on first use.
#[derive(Debug)]
pub struct Subject<'a> {
    /// `seq` of the call.
    pub seq: u64,
    /// The `seq` of the call's result.
    pub result_seq: u64,
    /// The call.
    pub call: &'a ToolCall,
    /// The kind that the agent announced, if it then asked for permission for another one.
    announced_kind: Option<ToolKind>,
    /// The call that started the sub-agent which made this call.
    pub parent: Option<&'a str>,
    /// The outcome.
    pub status: CallStatus,
    /// True if the engine ended the call because too many calls were open; the agent's own outcome is unknown
    /// then.
    pub is_cut: bool,
    /// True if the agent reports that the call completed, although it was rejected or cancelled.
    pub contested: bool,
    /// The time of the announcement.
    pub at_ms: u64,
    /// The time of the result.
    pub result_at_ms: u64,
    /// The output of the result.
    pub output: Option<&'a str>,
    /// True if the agent reported that the output was truncated, so that `output` is a part of it.
    pub truncated: bool,
    /// The exit code, if reported.
    pub exit_code: Option<i64>,
    diffs: &'a [FileDiff],
    /// The requests for permission that asked for something else.
    asked: &'a [AskedForm],
    reading: &'a Reading,
    paths: OnceCell<Fact<Vec<String>>>,
    input: OnceCell<Option<String>>,
    command: OnceCell<Command>,
    /// For a call of an unknown kind: its facts if it is of each group of [`KINDS`].
    supposed: OnceCell<Vec<KindFacts>>,
}

/// The kinds of calls in groups whose facts are read in the same way.
const KINDS: [&[ToolKind]; 6] = [
    &[ToolKind::Read, ToolKind::Edit],
    &[ToolKind::Delete, ToolKind::Move],
    &[ToolKind::Execute],
    &[ToolKind::Search, ToolKind::Fetch],
    &[ToolKind::Think, ToolKind::SwitchMode],
    &[ToolKind::Other],
];

/// The facts of a call that depend on its kind.
#[derive(Debug)]
struct KindFacts {
    kind: ToolKind,
    paths: Fact<Vec<String>>,
    command: Command,
}

/// The facts of a call that a matcher compares.
#[derive(Clone, Copy)]
struct Facts<'a> {
    kind: ToolKind,
    paths: &'a Fact<Vec<String>>,
    command: &'a Command,
}

impl<'a> Subject<'a> {
    /// Makes the subject of a call with its result.
    pub fn of(call: &'a Call, reading: &'a Reading) -> Self {
        Self {
            seq: call.seq,
            result_seq: call.result_seq,
            call: &call.call,
            announced_kind: call.announced_kind,
            parent: call.parent.as_deref(),
            status: call.status,
            is_cut: call.is_cut,
            contested: call.contested,
            at_ms: call.at_ms,
            result_at_ms: call.result_at_ms,
            output: call.output.as_deref(),
            truncated: call.truncated,
            exit_code: call.exit_code,
            diffs: &call.diffs,
            asked: &call.asked,
            reading,
            paths: OnceCell::new(),
            input: OnceCell::new(),
            command: OnceCell::new(),
            supposed: OnceCell::new(),
        }
    }

    /// Returns the call as this request for permission asked for it.
    pub fn asked_as(&self, request: &str) -> Self {
        let form = self.asked.iter().find(|form| form.request == request);
        form.map_or_else(|| self.with(self.call, self.announced_kind), |form| self.in_form(form))
    }

    /// Returns the call in each form that was asked for and refused, besides the last one. Whether another form that was allowed
    /// was carried out is a doubt of its own.
    pub fn refused_forms(&self) -> impl Iterator<Item = Self> {
        self.asked.iter().filter(|form| form.is_refused()).map(|form| self.in_form(form))
    }

    /// Returns the call in another form. Only a form that was allowed may be what the result is about.
    fn in_form(&self, form: &'a AskedForm) -> Self {
        let whole = self.with(&form.call, form.announced_kind);
        match form.outcome {
            Some(PermissionOutcome::Rejected) => whole.refused(CallStatus::Denied),
            Some(PermissionOutcome::Cancelled) => whole.refused(CallStatus::Cancelled),
            Some(PermissionOutcome::Allowed) | None => whole,
        }
    }

    fn with(&self, call: &'a ToolCall, announced_kind: Option<ToolKind>) -> Self {
        Self {
            call,
            announced_kind,
            asked: &[],
            paths: OnceCell::new(),
            input: OnceCell::new(),
            command: OnceCell::new(),
            supposed: OnceCell::new(),
            ..*self
        }
    }

    fn refused(self, status: CallStatus) -> Self {
        Self {
            status,
            contested: false,
            is_cut: false,
            output: None,
            truncated: false,
            exit_code: None,
            diffs: &[],
            ..self
        }
    }

    /// Returns the facts of a call of a known kind.
    fn facts(&self) -> Facts<'_> {
        Facts { kind: self.call.kind, paths: self.paths(), command: self.command() }
    }

    /// Returns the facts of a call of an unknown kind, for each group of [`KINDS`] that it may be of.
    fn supposed(&self) -> &[KindFacts] {
        self.supposed.get_or_init(|| {
            let kinds = KINDS.iter().filter_map(|group| group.first().copied());
            let facts = kinds.map(|kind| {
                let told = ReportedDetails { kind: Some(kind), ..self.told() };
                KindFacts { kind, paths: told.paths(self.reading), command: told.command(self.reading) }
            });
            facts.collect()
        })
    }

    fn told(&self) -> ReportedDetails<'a> {
        ReportedDetails::of(self.call, self.diffs)
    }

    /// Returns the workspace's path.
    pub fn workspace(&self) -> Option<&'a str> {
        self.reading.workspace.as_deref()
    }

    /// Returns true if the trace shows a success with an exit code of a failure. The engine writes no such result, so one of
    /// the two is wrong.
    pub fn contradicts_itself(&self) -> bool {
        self.status == CallStatus::Ok && self.exit_code.is_some_and(|code| code != 0)
    }

    /// Returns whether the call was executed, as far as known.
    pub fn carried_out(&self) -> Judgement {
        if self.is_cut { Judgement::Unknown } else { self.status.carried_out().into() }
    }

    /// Returns whether the call ended in one of these ways.
    fn ended(&self, ways: &OneOrList<Status>) -> Judgement {
        if self.is_cut && !ways.iter().any(|way| *way == Status::Any) {
            return Judgement::Unknown;
        }
        let fits = |status: CallStatus| ways.iter().any(|way| way.fits(status));
        // A refused call counts as refused; only whether it succeeded, as the agent reports, is unknown.
        if self.contested && fits(CallStatus::Ok) && !fits(self.status) {
            return Judgement::Unknown;
        }
        if self.contradicts_itself() {
            return match (fits(CallStatus::Ok), fits(CallStatus::Error)) {
                (true, true) => Judgement::True,
                (false, false) => Judgement::False,
                _ => Judgement::Unknown,
            };
        }
        fits(self.status).into()
    }

    /// Returns the paths that the call touches, if they were shown. Paths in the workspace are relative to it.
    pub fn paths(&self) -> &Fact<Vec<String>> {
        self.paths.get_or_init(|| self.told().paths(self.reading))
    }

    /// Returns the paths that were shown; empty if none were.
    pub fn known_paths(&self) -> &[String] {
        self.paths().seen().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the paths, if the place of each is known: it does not begin at a home folder, it is no glob, and it cannot lie
    /// in a workspace that the trace does not name.
    pub fn placed_paths(&self) -> Option<&[String]> {
        let paths = self.paths().seen()?;
        paths.iter().all(|path| self.is_placed(path)).then_some(paths)
    }

    /// Returns true if one of the paths that the call names cannot be read.
    pub fn has_unread_path(&self) -> bool {
        self.known_paths().iter().any(|path| path == view::UNREAD_PATH)
    }

    /// Returns true if it is known which file a path of the call means.
    pub fn is_placed(&self, path: &str) -> bool {
        let is_open = self.workspace().is_none() && (path.starts_with('/') || path.starts_with(".."));
        !is_open && path != view::UNREAD_PATH && !view::is_from_home(path) && !may_be_pattern(path, self.call.kind)
    }

    /// Returns the paths outside the input. The input may hold the working directory of a command.
    pub fn shown_paths(&self) -> Vec<String> {
        view::paths(None, &self.call.locations, self.diffs, self.workspace())
    }

    /// Returns the changes that the call shows.
    pub fn diffs(&self) -> &'a [FileDiff] {
        self.diffs
    }

    /// Returns true if the result shows changes to files.
    pub fn shows_changes(&self) -> bool {
        !self.diffs.is_empty()
    }

    /// Returns the paths of the changes in the result.
    pub fn changed_paths(&self) -> Vec<String> {
        view::paths(None, &[], self.diffs, self.workspace())
    }

    /// Returns the input as one line of JSON, or `None` if the agent never showed it.
    pub fn input(&self) -> Option<&str> {
        self.input.get_or_init(|| self.call.shown_input().map(view::canonical)).as_deref()
    }

    /// Returns the command, as far as known.
    pub fn command(&self) -> &Command {
        self.command.get_or_init(|| self.told().command(self.reading))
    }

    /// Returns a short description of the call, and of another form in which it was asked for.
    pub fn label(&self) -> String {
        match self.refused_forms().next() {
            Some(form) => format!("{} (also asked for as {})", self.own_label(), form.own_label()),
            None => self.own_label(),
        }
    }

    fn own_label(&self) -> String {
        let kind = self.call.kind;
        if let Some(command) = self.command().seen() {
            format!("{kind} `{}`", text::short(command, 60))
        } else if let Some(path) = self.known_paths().first() {
            format!("{kind} {}", text::short(path, 60))
        } else if let Some(name) = self.call.name.as_ref().or(self.call.title.as_ref()) {
            format!("{kind} ({})", text::short(name, 60))
        } else {
            kind.to_string()
        }
    }
}

/// Returns true if calls of this kind take globs as paths, and a path is one. An edit names its file.
fn may_be_pattern(path: &str, kind: ToolKind) -> bool {
    kind != ToolKind::Edit && view::is_pattern(path)
}

/// Returns whether a path of a call of this kind matches. Removing a folder removes the files in it.
fn place_fits(glob: &PathGlob, path: &str, kind: ToolKind, is_removed: bool, workspace: Option<&str>) -> Judgement {
    if path == view::UNREAD_PATH {
        return Judgement::Unknown;
    }
    if view::is_from_home(path) {
        return home_fits(glob, path, is_removed);
    }
    let fits = match workspace {
        Some(root) => placed_fits(glob, path, is_removed, root),
        None => unplaced_fits(glob, path, is_removed),
    };
    let may_name = || if may_be_pattern(path, kind) { pattern_fits(glob, path, workspace) } else { Judgement::False };
    fits.or(may_name)
}

/// Returns whether a path in or outside a known workspace matches.
fn placed_fits(glob: &PathGlob, path: &str, is_removed: bool, root: &str) -> Judgement {
    // An absolute glob is compared with the absolute path.
    let whole = glob.is_absolute().then(|| view::normalise(&Path::new(root).join(path)));
    let path = whole.as_deref().and_then(Path::to_str).unwrap_or(path);
    if glob.is_match(path) {
        return Judgement::True;
    }
    let is_above = path.starts_with('/') && Path::new(root).starts_with(path);
    match is_removed {
        false => Judgement::False,
        true if glob.is_above() => path.starts_with('/').into(),
        true => holds(glob, if is_above && glob.is_relative() { "." } else { path }),
    }
}

/// Returns whether a path that begins at a home folder matches. The trace does not name this folder, and a tool may also take
/// the path for one in the workspace.
fn home_fits(glob: &PathGlob, path: &str, is_removed: bool) -> Judgement {
    let as_written = glob.is_match(path);
    if view::is_from_home(&glob.to_string()) {
        return as_written.into();
    }
    let rest = path.split_once('/').map(|(_, rest)| rest).unwrap_or_default();
    let below = unplaced_fits(glob, &format!("/home/of/user/{rest}"), is_removed);
    match below {
        Judgement::True if as_written && glob.is_relative() => Judgement::True,
        Judgement::False if !as_written && glob.is_relative() => Judgement::False,
        _ => Judgement::Unknown,
    }
}

/// Returns whether files that a glob of a call names may match.
fn pattern_fits(glob: &PathGlob, pattern: &str, workspace: Option<&str>) -> Judgement {
    let is_plain = |part: &&str| !view::is_pattern(part);
    let base: Vec<&str> = pattern.split('/').take_while(is_plain).collect();
    let base = match base.as_slice() {
        [] => ".".to_owned(),
        [""] => "/".to_owned(),
        parts => parts.join("/"),
    };
    let folder = match workspace {
        Some(root) if glob.is_absolute() => {
            view::normalise(&Path::new(root).join(&base)).to_string_lossy().into_owned()
        }
        Some(root) if base.starts_with('/') && Path::new(root).starts_with(&base) => ".".to_owned(),
        None if base.starts_with('/') != glob.is_absolute() => return Judgement::Unknown,
        _ => base,
    };
    // A glob for names such as `*.rs` names no file of another form.
    let glob_text = glob.to_string();
    let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    let (wanted, named) = (last(&glob_text), last(pattern));
    let is_name = !wanted.contains(['*', '?', '[', '{', '\\']) && !named.contains("**");
    let is_other = (is_name && named.parse::<PathGlob>().is_ok_and(|named| !named.is_match(&wanted)))
        || end_otherwise(&wanted, &named);
    if is_other || glob.lies_below(&folder) == Below::None { Judgement::False } else { Judgement::Unknown }
}

/// Returns true if no name fits both globs, because their literal ends differ: `*.pem` and `*.{ts,tsx}`.
fn end_otherwise(one: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (literal_ends(one), literal_ends(other)) else { return false };
    one.iter().all(|a| other.iter().all(|b| !a.ends_with(b.as_str()) && !b.ends_with(a.as_str())))
}

/// Returns the literal ends of the names that a glob without `/` fits. Returns `None` if a name may end in any way.
fn literal_ends(name: &str) -> Option<Vec<String>> {
    let names = match name.split_once('{') {
        Some((before, rest)) => {
            let (inner, after) =
                rest.split_once('}').filter(|(inner, after)| !inner.contains('{') && !after.contains('{'))?;
            inner.split(',').map(|alternative| format!("{before}{alternative}{after}")).collect()
        }
        None => vec![name.to_owned()],
    };
    let end_of =
        |name: String| name.rsplit(['*', '?', ']', '\\']).next().filter(|end| !end.is_empty()).map(str::to_owned);
    names.into_iter().map(end_of).collect()
}

/// Returns whether a path matches if the workspace is unknown: an absolute path may lie in it or outside, and so may one that
/// leads upwards.
fn unplaced_fits(glob: &PathGlob, path: &str, is_removed: bool) -> Judgement {
    let fits = glob.is_match(path);
    let unless = |may_fit: bool| if may_fit { Judgement::Unknown } else { Judgement::False };
    match (path.starts_with('/'), glob.is_above()) {
        _ if path.starts_with("..") => Judgement::Unknown,
        (_, false) if fits => Judgement::True,
        (true, true) => unless(fits || is_removed),
        (false, true) => Judgement::False,
        (true, false) if glob.is_relative() => {
            let may_be = |end: &str| glob.is_match(end) || (is_removed && glob.lies_below(end) != Below::None);
            let mut ends = path.match_indices('/').filter_map(|(at, _)| path.get(at + 1..));
            unless(is_removed || ends.any(may_be))
        }
        (false, false) if glob.is_absolute() => Judgement::Unknown,
        _ if is_removed => holds(glob, path),
        _ => Judgement::False,
    }
}

/// Returns whether a removed folder held files that a glob matches.
pub fn holds(glob: &PathGlob, folder: &str) -> Judgement {
    match glob.lies_below(folder) {
        Below::All => Judgement::True,
        // The path may be a folder, if its name allows it.
        Below::Perhaps if !looks_like_a_file(folder) => Judgement::Unknown,
        Below::Perhaps | Below::None => Judgement::False,
    }
}

impl Matcher {
    /// Returns whether a call matches. Without a `status` key, the call must have been executed.
    pub fn finds(&self, call: &Subject<'_>) -> Judgement {
        if self.status.is_some() { self.fits(call) } else { call.carried_out().and(|| self.fits_form(call)) }
    }

    /// Returns whether a call matches; without a `status` key, with any outcome. What the agent asked for and was refused is an
    /// attempt, whether it then asked for something else or not.
    pub fn fits(&self, call: &Subject<'_>) -> Judgement {
        let attempted = || Judgement::any(call.refused_forms().map(|form| self.fits_form(&form)));
        self.fits_form(call).or(attempted)
    }

    /// Returns whether a call matches in one form. A key about a fact that was not shown is unknown; another key that does not
    /// match still decides. A call of an unknown kind is compared as a call of each kind.
    fn fits_form(&self, call: &Subject<'_>) -> Judgement {
        if !call.call.unknown_kind {
            return self.is_of_kind(call).and(|| self.fits_facts(call, call.facts()));
        }
        let is_wanted = |kind: &ToolKind| self.kind.as_ref().is_none_or(|kinds| kinds.iter().any(|it| it == kind));
        let groups = KINDS.iter().zip(call.supposed());
        Judgement::agreed(groups.flat_map(|(group, KindFacts { kind, paths, command })| {
            let wanted = group.iter().filter(|kind| is_wanted(kind)).count();
            let fits = (wanted > 0).then(|| self.fits_facts(call, Facts { kind: *kind, paths, command }));
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

    /// Returns whether a call with these facts matches, whatever its kind is.
    fn fits_facts(&self, call: &Subject<'_>, facts: Facts<'_>) -> Judgement {
        let Self { kind: _, name, path, input, command, args, match_args, status, agent, compiled } = self;
        let is_speaker = agent.is_none_or(|agent| match agent {
            Speaker::Main => call.parent.is_none(),
            Speaker::Sub => call.parent.is_some(),
            Speaker::Any => true,
        });
        let unless = Judgement::True;
        Judgement::from(is_speaker)
            .and(|| status.as_ref().map_or(unless, |ways| call.ended(ways)))
            .and(|| name.as_ref().map_or(unless, |glob| name_fits(glob, call.call.name.as_deref())))
            .and(|| path.as_ref().map_or(unless, |glob| path_fits(glob, call, facts)))
            .and(|| command.as_ref().map_or(unless, |pattern| command_fits(pattern, facts.command)))
            .and(|| input.as_ref().map_or(unless, |pattern| input_fits(pattern, call, facts)))
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

    /// Returns true if the matcher fits one name of a file that has two, because a link leads from one to the other, and not the
    /// other.
    pub fn tells_apart(&self, link: &FollowedLink, workspace: Option<&str>) -> bool {
        let FollowedLink { kind, path, to } = link;
        let may_be_of = |kinds: &OneOrList<ToolKind>| *kind == ToolKind::Other || kinds.iter().any(|it| it == kind);
        self.kind.as_ref().is_none_or(may_be_of)
            && self.path.as_ref().is_some_and(|glob| {
                let fits = |path: &str| place_fits(glob, path, *kind, false, workspace);
                fits(path) != fits(to)
            })
    }

    /// Returns why the matcher is meaningless: it has no key, or an empty expectation.
    pub fn refusal(&self) -> Option<String> {
        let empty_args = self.args.as_ref().is_some_and(Map::is_empty);
        if empty_args && !self.match_args.as_ref().is_some_and(MatchArgs::counts_keys) {
            return Some("has empty `args`".to_owned());
        }
        self.refusal_as_expected()
    }

    /// Returns the reason why the matcher is meaningless in an expected list, in which a call without arguments may
    /// be expected.
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
            (None, Some(_)) => Some("has `match-args` but no `args`".to_owned()),
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

    /// Sets how arguments are compared, unless the matcher has its own setting.
    #[must_use]
    pub fn comparing(mut self, rules: Option<&MatchArgs>) -> Self {
        if self.args.is_some() && self.match_args.is_none() {
            self.match_args = rules.cloned();
        }
        self
    }
}

/// Returns whether a path of a call matches. Deleting or moving a folder affects the files in it.
fn path_fits(glob: &PathGlob, call: &Subject<'_>, facts: Facts<'_>) -> Judgement {
    let Some(paths) = facts.paths.seen() else { return Judgement::Unknown };
    let removes = |kind: ToolKind| matches!(kind, ToolKind::Delete | ToolKind::Move);
    let fits = |is_removed: bool| {
        Judgement::any(paths.iter().map(|path| place_fits(glob, path, facts.kind, is_removed, call.workspace())))
    };
    // A call that was announced as the removal of a folder may be one, whatever it was requested as.
    let as_announced = || match call.announced_kind.is_some_and(removes) {
        true => fits(true).and(|| Judgement::Unknown),
        false => Judgement::False,
    };
    fits(removes(facts.kind)).or(as_announced)
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

/// Returns true if the last part of a path has an extension, as files have.
fn looks_like_a_file(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.trim_start_matches('.').contains('.')
}

/// Returns the first meaningless matcher of a list. The text continues a sentence that begins with the grader's
/// name.
pub fn refuse_list<'a>(key: &str, matchers: impl IntoIterator<Item = &'a Matcher>) -> Option<String> {
    let mut numbered = matchers.into_iter().zip(1..);
    numbered.find_map(|(matcher, n)| Some(format!("checks nothing: entry {n} of `{key}` {}", matcher.refusal()?)))
}

/// Returns true if two values are equal; 1.0 equals 1.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            // 1.0 equals 1; beyond the exact range of floats, whole numbers are compared by their digits.
            a == b || (a.is_f64() != b.is_f64() && Decimal::parse(&a.to_string()) == Decimal::parse(&b.to_string()))
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
        parts.extend(kind.as_ref().map(|kinds| text::any_of(kinds.iter().map(ToString::to_string))));
        parts.extend(name.as_ref().map(|glob| format!("name {glob}")));
        parts.extend(path.as_ref().map(ToString::to_string));
        parts.extend(command.as_ref().map(|pattern| format!("command /{}/", text::short(&pattern.to_string(), 80))));
        parts.extend(input.as_ref().map(|pattern| format!("input /{}/", text::short(&pattern.to_string(), 80))));
        let args = args.as_ref().map(|args| view::canonical(&Value::Object(args.clone())));
        parts.extend(args.map(|args| format!("args {}", text::short(&args, 80))));
        let status = status.as_ref().map(|list| text::any_of(list.iter().map(|status| status.word().to_owned())));
        parts.extend(status.map(|status| format!("status {status}")));
        parts.extend(agent.map(|agent| match agent {
            Speaker::Main => "by the main agent".to_owned(),
            Speaker::Sub => "by a sub-agent".to_owned(),
            Speaker::Any => "by any agent".to_owned(),
        }));
        write!(f, "`{}`", parts.join(" "))
    }
}
