//! `scope`: checks which files a trial touched, by the change of the workspace and by its tool calls.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::Grade;
use crate::matcher::paths::holds;
use crate::reason_text;
use crate::trace::facts::Fact;
use crate::trace::{CallStatus, FollowedLink, Lost, ToolKind, UnseenAction};
use crate::values::{Below, PathGlob};
use crate::workspace::change::{Change, PATCH_ALONE, shown_place};
use crate::yaml::lists::filled;

/// The maximum number of paths kept for a reason.
const KEPT: usize = 40;

/// The files that may be touched. Paths in the workspace are relative to it, others are absolute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{only: [src/**]}`")]
pub struct Scope {
    /// Globs of files that may change. To allow no change, use `never: ["**"]`.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<PathGlob>,
    /// Globs of files that must not change. A name without wildcards is also the folder of that name.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<PathGlob>,
    /// Globs of files that tools may read.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<PathGlob>,
}

impl GraderSpec for Scope {
    fn depends_on_loss(&self, lost: Lost) -> bool {
        !matches!(lost, Lost::Text | Lost::Speaker | Lost::Caller)
    }

    fn depends_on_action(&self, action: &UnseenAction, _: Option<&str>) -> bool {
        match action.kind {
            ToolKind::Read => !self.reads.is_empty() && !fits(&self.reads, &action.path),
            _ => {
                let is_outside = !self.only.is_empty() && !fits(&self.only, &action.path);
                is_outside || self.never.iter().any(|glob| glob.with_content().is_match(&action.path))
            }
        }
    }

    fn depends_on_path_name(&self, link: &FollowedLink, _: Option<&str>) -> bool {
        // The change of the workspace shows where a file was moved to.
        if link.moved {
            return false;
        }
        let differs = |globs: &[PathGlob]| fits(globs, &link.path) != fits(globs, &link.to);
        let never: Vec<PathGlob> = self.never.iter().map(PathGlob::with_content).collect();
        let of_change = || differs(&self.only) || differs(&never);
        match link.kind {
            ToolKind::Read => differs(&self.reads),
            ToolKind::Other => differs(&self.reads) || of_change(),
            kind => kind.changes_files() && of_change(),
        }
    }

    fn needs() -> Needs {
        Needs { calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        let Self { only, never, reads } = self;
        let mut lists = [("only", only), ("never", never), ("reads", reads)].into_iter();
        if let Some((key, _)) = lists.clone().find(|(_, globs)| globs.iter().any(|glob| glob.to_string().is_empty())) {
            return Some(format!("checks nothing: `{key}` has an empty glob"));
        }
        // Alone, it says plainly that every file is allowed.
        if let Some((key, glob)) = [("only", only), ("reads", reads)]
            .into_iter()
            .find_map(|(key, globs)| Some((key, globs.iter().find(|glob| glob.is_any() && globs.len() > 1)?)))
        {
            return Some(format!("checks nothing: `{key}` holds `{glob}`, which is every file"));
        }
        lists
            .all(|(_, globs)| globs.is_empty())
            .then(|| "checks nothing; say which files, for example `only: [\"src/**\"]`".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        // Only files change, so a name that is a folder can only mean the files in it.
        let never = self.never.iter().map(PathGlob::with_content).collect();
        Box::new(ScopeObserver {
            wanted: Scope { never, ..self.clone() },
            outside: Breaches::default(),
            forbidden: Breaches::default(),
            read: Breaches::default(),
            unseen_change: None,
            unseen_read: None,
        })
    }
}

/// Paths outside the scope, each with its evidence.
#[derive(Default)]
struct Breaches {
    count: u64,
    first: BTreeMap<String, String>,
    events: Vec<u64>,
    /// True if the workspace shows one of them.
    in_workspace: bool,
}

impl Breaches {
    fn add(&mut self, path: &str, how: impl FnOnce() -> String, events: impl IntoIterator<Item = u64>) {
        if self.first.contains_key(path) {
            return;
        }
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.insert(path.to_owned(), how());
            self.events.extend(events);
        }
    }

    fn described(&self) -> String {
        let texts: Vec<String> = self.first.iter().map(|(path, how)| format!("`{path}` {how}")).collect();
        let shown = reason_text::first_few_long(&texts, 8);
        match self.count.saturating_sub(texts.len() as u64) {
            0 => shown,
            more => format!("{shown}, {more} not kept"),
        }
    }
}

struct ScopeObserver {
    wanted: Scope,
    outside: Breaches,
    forbidden: Breaches,
    read: Breaches,
    /// The first call that changed files without naming them, and the first call that read files without naming
    /// them.
    unseen_change: Option<String>,
    unseen_read: Option<String>,
}

fn not_shown(call: &Subject<'_>) -> String {
    format!("the agent did not show the files of {} (event {})", call.label(), call.seq)
}

/// Returns true if a glob is about files that are no part of the workspace's change: outside of it, or in `.git`.
fn is_elsewhere(glob: &PathGlob) -> bool {
    let text = glob.to_string();
    // A brace has alternatives, each of which may be such a path.
    let mut paths = text.split(['{', '}', ',']);
    paths.any(|path| path.starts_with(['/', '~']) || path.split('/').any(|part| part == ".." || part == ".git"))
}

/// Returns why it is unknown which file a path means, if it is.
fn unplaced(call: &Subject<'_>, path: &str) -> Option<String> {
    let (seq, workspace) = (call.seq, call.workspace());
    if call.is_placed(path) {
        None
    } else if workspace.is_none() && (path.starts_with('/') || path.starts_with("..")) {
        Some(format!("the trace does not name its workspace, and `{path}` (event {seq}) may lie in it"))
    } else {
        Some(format!("it is unknown which files `{path}` (event {seq}) means"))
    }
}

/// Returns true if a path fits one of the globs, wherever the workspace is.
fn surely_fits(globs: &[PathGlob], path: &str) -> bool {
    globs.iter().any(|glob| !glob.is_above() && glob.is_match(path))
}

fn fits(globs: &[PathGlob], path: &str) -> bool {
    globs.iter().any(|glob| glob.is_match(path))
}

impl ScopeObserver {
    /// Handles a call of an unknown kind, or one of which it is unknown whether it was carried out: it may have changed or read
    /// the files that it names, or any if it names none.
    fn of_unknown(&mut self, call: &Subject<'_>) {
        let why = || match call.contested {
            true => format!("whether {} (event {}) was carried out is unknown", call.label(), call.seq),
            false => format!("the kind of {} (event {}) is unknown", call.label(), call.seq),
        };
        let Scope { only, never, reads } = &self.wanted;
        let (may_change, may_read) = match call.placed_paths() {
            None => (true, true),
            Some(paths) => {
                let may_hold = |path: &str| never.iter().any(|glob| holds(glob, path).may_be_true());
                let may_break =
                    |path: &str| (!only.is_empty() && !fits(only, path)) || fits(never, path) || may_hold(path);
                (paths.iter().any(|path| may_break(path)), paths.iter().any(|path| !fits(reads, path)))
            }
        };
        let kind = call.call.kind;
        let may_be = |is: bool| call.call.unknown_kind || is;
        let (may_change, may_read) =
            (may_change && may_be(kind.changes_files()), may_read && may_be(kind == ToolKind::Read));
        if may_change {
            self.unseen_change.get_or_insert_with(why);
        }
        if may_read {
            self.unseen_read.get_or_insert_with(why);
        }
    }

    /// Handles a changed file. Without events, the workspace shows the change.
    fn changed(&mut self, path: &str, removed: bool, how: impl Fn() -> String, events: &[u64]) {
        if !self.wanted.only.is_empty() && !fits(&self.wanted.only, path) {
            self.outside.in_workspace |= events.is_empty();
            self.outside.add(path, &how, events.iter().copied());
        }
        // Removing a folder removes the files in it.
        let holds = |glob: &PathGlob| removed && glob.lies_below(path) == Below::All;
        if fits(&self.wanted.never, path) || self.wanted.never.iter().any(holds) {
            self.forbidden.in_workspace |= events.is_empty();
            self.forbidden.add(path, &how, events.iter().copied());
        }
    }
}

/// Returns whether a call took effect. A failed call did not, unless it shows changes.
fn took_place(call: &Subject<'_>) -> bool {
    match call.status {
        CallStatus::Ok | CallStatus::Unfinished => true,
        CallStatus::Error => call.shows_changes(),
        CallStatus::Denied | CallStatus::Cancelled => false,
    }
}

#[async_trait]
impl Observer for ScopeObserver {
    fn call(&mut self, call: &Subject<'_>) {
        let changes = call.call.kind.changes_files();
        if changes && took_place(call) {
            match call.paths() {
                Fact::Seen(paths) => {
                    for path in paths {
                        if let Some(why) = unplaced(call, path).filter(|_| !surely_fits(&self.wanted.never, path)) {
                            self.unseen_change.get_or_insert(why);
                            continue;
                        }
                        let how = || format!("by {} (event {})", call.call.kind, call.seq);
                        self.changed(path, call.call.kind != ToolKind::Edit, how, &[call.seq, call.result_seq]);
                    }
                }
                Fact::NotShown => {
                    self.unseen_change.get_or_insert_with(|| not_shown(call));
                }
            }
        } else if call.shows_changes() && took_place(call) {
            for path in call.changed_paths() {
                let how = || format!("by {} (event {})", call.call.kind, call.seq);
                self.changed(&path, false, how, &[call.seq, call.result_seq]);
            }
        }
        if call.contested || (call.call.unknown_kind && took_place(call)) {
            self.of_unknown(call);
        }
        if call.call.kind == ToolKind::Read && !self.wanted.reads.is_empty() && took_place(call) {
            for path in call.known_paths().iter().filter(|path| !surely_fits(&self.wanted.reads, path)) {
                if let Some(why) = unplaced(call, path) {
                    self.unseen_read.get_or_insert(why);
                    continue;
                }
                if fits(&self.wanted.reads, path) {
                    continue;
                }
                self.read.add(path, || format!("(event {})", call.seq), [call.seq, call.result_seq]);
            }
            if *call.paths() == Fact::NotShown {
                self.unseen_read.get_or_insert_with(|| not_shown(call));
            }
        }
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl ScopeObserver {
    fn grade(mut self, evidence: &Evidence<'_>) -> Grade {
        if let Some(change) = evidence.change {
            for (path, what) in change.all().chain(change.other_modes()) {
                self.changed(path, false, || format!("was {what}"), &[]);
            }
        }
        let traced = evidence.header.capabilities.tracing;
        let unknown = match (evidence.change, traced) {
            (_, false) => Some("the harness shows no tool calls".to_owned()),
            (None, true) => Some("the change of the workspace is not known".to_owned()),
            (Some(_), true) => self.unseen_change.take(),
        };
        let Scope { only, never, reads } = &self.wanted;
        let any_of = |globs: &[PathGlob]| reason_text::any_of(globs.iter().map(|glob| format!("`{glob}`")));
        let checked = [
            (only, &self.outside, "only", "may change, but these did", "nothing else changed"),
            (never, &self.forbidden, "never", "must not change, but these did", "none of them changed"),
        ];
        let mut checks = Checks::default();
        for (globs, breaches, key, broken, verb) in checked {
            let globs = match globs.as_slice() {
                [] => continue,
                globs => any_of(globs),
            };
            let modes = evidence.change.and_then(Change::unnamed_modes);
            let hidden = match key {
                "never" => never.iter().find_map(|glob| evidence.change?.may_hide_any(glob)),
                _ => evidence.change.and_then(|change| change.may_break(only)),
            };
            // Which files of the workspace changed is known from its content, even if no tool call is shown.
            let is_whole = evidence.change.is_some_and(|change| !change.has_ignored && !change.is_patch_alone);
            let allowed: &[PathGlob] = if key == "only" { only } else { &[] };
            let is_beside_patch = evidence.change.is_some_and(|change| change.may_break_beside_patch(allowed));
            let is_in_truth = key == "never" && !traced && is_whole && !never.iter().any(is_elsewhere);
            match &unknown {
                _ if breaches.count > 0 => {
                    let (reason, events) =
                        (format!("{key}: {globs} {broken}: {}", breaches.described()), &breaches.events);
                    match breaches.in_workspace {
                        true => checks.violated_in_workspace(reason, events.clone()),
                        false => checks.violated(reason, events.clone()),
                    }
                }
                _ if hidden.is_some() && (unknown.is_none() || is_in_truth) => {
                    let hidden = shown_place(hidden.unwrap_or_default());
                    checks.unknown(format!(
                        "{key}: {globs} could not be graded, because {hidden} changed and is not measured (it is \
                         ignored, a pipe or the like, or the repository)"
                    ));
                }
                _ if modes.is_some() && (unknown.is_none() || is_in_truth) && !allowed.iter().any(PathGlob::is_any) => {
                    let modes = modes.unwrap_or_default();
                    checks.unknown(format!("{key}: {globs} could not be graded, because {modes}"));
                }
                None if is_beside_patch => {
                    checks.unknown(format!("{key}: {globs} could not be graded, because {PATCH_ALONE}"));
                }
                Some(_) if is_in_truth => {
                    checks.held(format!("{key}: {globs}; none of them differs in the workspace"), []);
                }
                Some(why) => checks.unknown(format!("{key}: {globs} could not be graded, because {why}")),
                None => {
                    let beside = evidence.change.map(Change::not_measured).unwrap_or_default();
                    checks.held(format!("{key}: {globs}; {verb}{beside}"), []);
                }
            }
        }
        if !reads.is_empty() {
            let globs = any_of(reads);
            if !traced {
                checks.unknown(format!("reads: {globs} could not be graded, because the harness shows no tool calls"));
            } else if self.read.count > 0 {
                let reason = format!("reads: only {globs} may be read, but these were: {}", self.read.described());
                checks.violated(reason, self.read.events.clone());
            } else if let Some(why) = &self.unseen_read {
                checks.unknown(format!("reads: {globs} could not be graded, because {why}"));
            } else {
                checks.held(format!("reads: {globs}; nothing else was read"), []);
            }
        }
        checks.grade()
    }
}
