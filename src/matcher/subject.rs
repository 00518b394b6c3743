//! A call as matchers see it, with the facts that they compare.

use std::cell::OnceCell;

use super::Status;
use super::paths::may_be_pattern;
use crate::command_line::CommandLine;
use crate::judgement::Judgement;
use crate::matching::Lines;
use crate::reason_text;
use crate::trace::calls::{AskedForm, Call};
use crate::trace::facts::{Command, Fact, Reading, ReportedDetails};
use crate::trace::{CallStatus, FileDiff, PermissionOutcome, ToolCall, ToolKind, view};
use crate::yaml::lists::OneOrList;

/// The reason why the outcome of a call is unknown.
pub const CUT: &str = "so many calls were open that the engine ended the oldest ones";

/// A call for matchers. Facts that are expensive to compute are computed once, on first use.
#[derive(Debug)]
pub struct Subject<'a> {
    /// `seq` of the call.
    pub seq: u64,
    /// The `seq` of the call's result.
    pub result_seq: u64,
    pub call: &'a ToolCall,
    /// The kind that the agent announced, if it then asked for permission for another one.
    pub(super) announced_kind: Option<ToolKind>,
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
    /// The other forms in which the call was asked for or announced.
    asked: &'a [AskedForm],
    reading: &'a Reading,
    paths: OnceCell<Fact<Vec<String>>>,
    input: OnceCell<Option<String>>,
    command: OnceCell<Command>,
    lines: Lines,
    /// For a call of an unknown kind: the facts for each group of [`KINDS`].
    supposed: OnceCell<Vec<KindFacts>>,
}

/// The kinds of calls in groups whose facts are read in the same way.
pub(super) const KINDS: [&[ToolKind]; 6] = [
    &[ToolKind::Read, ToolKind::Edit],
    &[ToolKind::Delete, ToolKind::Move],
    &[ToolKind::Execute],
    &[ToolKind::Search, ToolKind::Fetch],
    &[ToolKind::Think, ToolKind::SwitchMode],
    &[ToolKind::Other],
];

/// The facts of a call that depend on its kind.
#[derive(Debug)]
pub(super) struct KindFacts {
    pub(super) kind: ToolKind,
    pub(super) paths: Fact<Vec<String>>,
    pub(super) command: Command,
    pub(super) lines: Lines,
}

/// The facts of a call that a matcher compares.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) kind: ToolKind,
    pub(super) paths: &'a Fact<Vec<String>>,
    pub(super) command: &'a Command,
    /// The lines of the command.
    pub(super) lines: &'a Lines,
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
            lines: Lines::default(),
            supposed: OnceCell::new(),
        }
    }

    /// Returns the call as this request for permission asked for it.
    pub fn asked_as(&self, request: &str) -> Self {
        let form = self.asked.iter().find(|form| form.request.as_deref() == Some(request));
        form.map_or_else(|| self.with(self.call, self.announced_kind), |form| self.in_form(form))
    }

    /// Returns the call in each form that was asked for and refused, besides the last one. Whether another form that was allowed
    /// was carried out is a doubt of its own.
    pub fn refused_forms(&self) -> impl Iterator<Item = Self> {
        self.asked.iter().filter(|form| form.is_refused()).map(|form| self.in_form(form))
    }

    /// Returns the call as it was announced, if its request asked for another action and was not refused: the agent may have
    /// carried out either.
    pub fn announced_form(&self) -> Option<Self> {
        let form = self.asked.iter().find(|form| form.request.is_none() && !form.is_refused())?;
        Some(self.in_form(form))
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
            lines: Lines::default(),
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
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { kind: self.call.kind, paths: self.paths(), command: self.command(), lines: &self.lines }
    }

    /// Returns the facts of a call of an unknown kind for each group of [`KINDS`].
    pub(super) fn supposed(&self) -> &[KindFacts] {
        self.supposed.get_or_init(|| {
            let kinds = KINDS.iter().filter_map(|group| group.first().copied());
            let facts = kinds.map(|kind| {
                let told = ReportedDetails { kind: Some(kind), ..self.details() };
                let (paths, command) = (told.paths(self.reading), told.command(self.reading));
                KindFacts { kind, paths, command, lines: Lines::default() }
            });
            facts.collect()
        })
    }

    fn details(&self) -> ReportedDetails<'a> {
        ReportedDetails::of(self.call, self.diffs)
    }

    /// Returns the workspace's path.
    pub fn workspace(&self) -> Option<&'a str> {
        self.reading.workspace.as_deref()
    }

    /// Returns true if the trace shows a success that may have been a failure. Either the agent reports failed calls of this kind
    /// as successes, too, and there is no exit code; or the exit code is one of a failure. The engine writes no such result, so
    /// one of the two is wrong.
    pub fn may_have_failed(&self) -> bool {
        self.status == CallStatus::Ok && self.exit_code.map_or_else(|| self.hides_failures(), |code| code != 0)
    }

    /// Returns true if the agent may report a failure of this call as a success.
    fn hides_failures(&self) -> bool {
        let is_listed = |kind: ToolKind| self.reading.unshown_outcomes.contains(&kind);
        is_listed(self.call.kind) || self.announced_kind.is_some_and(is_listed)
    }

    /// Returns whether the call was executed, as far as known.
    pub fn carried_out(&self) -> Judgement {
        if self.is_cut { Judgement::Unknown } else { self.status.carried_out().into() }
    }

    /// Returns whether the call ended in one of these ways.
    pub(super) fn ended(&self, ways: &OneOrList<Status>) -> Judgement {
        if self.is_cut && !ways.iter().any(|way| *way == Status::Any) {
            return Judgement::Unknown;
        }
        let fits = |status: CallStatus| ways.iter().any(|way| way.fits(status));
        // A refused call counts as refused; only whether it succeeded, as the agent reports, is unknown.
        if self.contested && fits(CallStatus::Ok) && !fits(self.status) {
            return Judgement::Unknown;
        }
        if self.may_have_failed() {
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
        self.paths.get_or_init(|| self.details().paths(self.reading))
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
        self.command.get_or_init(|| self.details().command(self.reading))
    }

    /// Returns the command lines that the command may be.
    pub fn lines(&self) -> &[CommandLine] {
        self.lines.read(self.command(), self.call.name.as_deref())
    }

    /// Returns a short description of the call, and of another form in which it was asked for or announced.
    pub fn label(&self) -> String {
        let Some(form) = self.asked.iter().find(|form| form.is_refused() || form.request.is_none()) else {
            return self.own_label();
        };
        let how = if form.request.is_some() { "also asked for" } else { "announced" };
        format!("{} ({how} as {})", self.own_label(), self.in_form(form).own_label())
    }

    fn own_label(&self) -> String {
        let kind = self.call.kind;
        if let Some(command) = self.command().seen() {
            format!("{kind} `{}`", reason_text::short(command, 60))
        } else if let Some(path) = self.known_paths().first() {
            format!("{kind} {}", reason_text::short(path, 60))
        } else if let Some(name) = self.call.name.as_ref().or(self.call.title.as_ref()) {
            format!("{kind} ({})", reason_text::short(name, 60))
        } else {
            kind.to_string()
        }
    }
}
