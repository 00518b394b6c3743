//! Compares the paths of a call with a glob.

use std::path::Path;

use serde_json::Value;

use super::subject::{Facts, Subject};
use crate::judgement::Judgement;
use crate::trace::{ToolKind, file_globs, view};
use crate::values::{Below, PathGlob};

/// Returns whether a path of a call matches. Deleting or moving a folder affects the files in it.
pub(super) fn path_fits(glob: &PathGlob, call: &Subject<'_>, facts: Facts<'_>) -> Judgement {
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
    let made = call.call;
    let (tool, input, cwd) = (made.name.as_deref(), made.shown_input(), made.cwd.as_deref());
    fits(removes(facts.kind))
        .or(as_announced)
        .or(|| pattern_may_fit(glob, (facts.kind, tool, input), cwd, call.workspace()))
}

/// Returns whether the pattern of a search without a name may select files that match. It may be the text that is searched for,
/// so it never matches for certain.
pub fn pattern_may_fit(
    glob: &PathGlob,
    (kind, tool, input): (ToolKind, Option<&str>, Option<&Value>),
    cwd: Option<&str>,
    workspace: Option<&str>,
) -> Judgement {
    let may_fit =
        |named: &String| place_fits(glob, &view::located(named, cwd, workspace), kind, false, workspace).may_be_true();
    match file_globs::perhaps_named(Some(kind), tool, input).iter().any(may_fit) {
        true => Judgement::Unknown,
        false => Judgement::False,
    }
}

/// Returns whether a path of a call of this kind matches. Removing a folder removes the files in it.
pub fn place_fits(glob: &PathGlob, path: &str, kind: ToolKind, is_removed: bool, workspace: Option<&str>) -> Judgement {
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
    // A brace may have alternatives in several folders.
    let is_plain = |part: &&str| !view::is_pattern(part) && !part.contains('{');
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
    // A glob for names such as `*.rs` names no file of another form. A glob for a folder is about all files in it.
    let glob_text = glob.to_string();
    let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    let is_other = !glob.is_folder() && differ(&last(&glob_text), &last(pattern));
    if is_other || glob.lies_below(&folder) == Below::None { Judgement::False } else { Judgement::Unknown }
}

/// Returns true if no name fits both globs: one is a name that the other does not fit, or their literal ends or beginnings
/// differ, as in `*.pem` and `*.{ts,tsx}`, or in `test_*` and `.env*`.
fn differ(wanted: &str, named: &str) -> bool {
    let Some(all_wanted) = alternatives(wanted) else { return false };
    let all_named = alternatives(named);
    let form = named.parse::<PathGlob>().ok().filter(|_| !named.contains("**"));
    let is_other_name = |wanted: &str| {
        let is_name = !wanted.contains(['*', '?', '[', '\\']);
        is_name && form.as_ref().is_some_and(|form| !form.is_match(wanted))
    };
    let is_of_another_form = |wanted: &str, named: &str| {
        let (end, named_end) = (literal_end(wanted), literal_end(named));
        let (begin, named_begin) = (literal_begin(wanted), literal_begin(named));
        !(end.ends_with(named_end) || named_end.ends_with(end))
            || !(begin.starts_with(named_begin) || named_begin.starts_with(begin))
    };
    let fits_none = |wanted: &String| all_named.iter().flatten().all(|named| is_of_another_form(wanted, named));
    all_wanted.iter().all(|wanted| is_other_name(wanted) || (all_named.is_some() && fits_none(wanted)))
}

/// Returns the alternatives in the braces of a glob without `/`. Returns `None` if there are other braces than one pair.
fn alternatives(name: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = name.split_once('{') else {
        return (!name.contains('}')).then(|| vec![name.to_owned()]);
    };
    let (inner, after) =
        rest.split_once('}').filter(|(inner, after)| !inner.contains('{') && !after.contains(['{', '}']))?;
    Some(inner.split(',').map(|alternative| format!("{before}{alternative}{after}")).collect())
}

/// Returns the text with which all names that a glob fits end.
fn literal_end(name: &str) -> &str {
    name.rsplit(['*', '?', ']', '\\']).next().unwrap_or_default()
}

/// Returns the text with which all names that a glob fits begin.
fn literal_begin(name: &str) -> &str {
    name.split(['*', '?', '[', '\\']).next().unwrap_or_default()
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

/// Returns true if the last part of a path has an extension, as files have.
fn looks_like_a_file(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.trim_start_matches('.').contains('.')
}

/// Returns true if calls of this kind take globs as paths, and a path is one. An edit names its file.
pub(super) fn may_be_pattern(path: &str, kind: ToolKind) -> bool {
    kind != ToolKind::Edit && view::is_pattern(path)
}
