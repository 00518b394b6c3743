//! Compares the paths of a call with a glob.

use std::path::Path;

use super::subject::{Facts, Subject};
use crate::judgement::Judgement;
use crate::trace::{ToolKind, view};
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
    fits(removes(facts.kind)).or(as_announced)
}

/// Returns whether a path of a call of this kind matches. Removing a folder removes the files in it.
pub(super) fn place_fits(
    glob: &PathGlob,
    path: &str,
    kind: ToolKind,
    is_removed: bool,
    workspace: Option<&str>,
) -> Judgement {
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

/// Returns true if the last part of a path has an extension, as files have.
fn looks_like_a_file(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.trim_start_matches('.').contains('.')
}

/// Returns true if calls of this kind take globs as paths, and a path is one. An edit names its file.
pub(super) fn may_be_pattern(path: &str, kind: ToolKind) -> bool {
    kind != ToolKind::Edit && view::is_pattern(path)
}
