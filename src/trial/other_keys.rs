//! Finds what the stored files of a trial do not show, because its case had other keys when it ran: `workspace.ignore`,
//! `workspace.protect` or hidden files.

use std::collections::BTreeSet;
use std::io;

use super::protected::is_protected;
use crate::case::{Case, EvidenceKeys};
use crate::result::Warning;
use crate::values::PathGlob;
use crate::workspace::change::{Change, shown_place};

/// Returns the globs by which the change of a trial was measured.
pub(super) fn ignore_of<'a>(then: Option<&'a EvidenceKeys>, case: &'a Case) -> &'a [String] {
    match then {
        Some(then) => &then.ignore,
        None => &case.workspace.ignore,
    }
}

/// Returns the reason why the change of a trial is not the change that its case measures now, if so.
pub(super) fn of_change(then: Option<&EvidenceKeys>, case: &Case) -> Option<&'static str> {
    let is_other = ignore_of(then, case) != case.workspace.ignore;
    is_other.then_some("its change was measured with another `workspace.ignore`")
}

/// Returns the reason why it is unknown whether an agent changed protected files, if so.
pub(super) fn of_protection(then: Option<&EvidenceKeys>, case: &Case, change: Option<&Change>) -> Option<String> {
    if case.workspace.protect.is_empty() {
        return None;
    }
    let place = not_restored(then, case, change).pop_first();
    let why = match (of_change(then, case), place) {
        (Some(why), _) => why.to_owned(),
        (None, Some(place)) => {
            format!("{} changed without being measured, and was not protected then", shown_place(&place))
        }
        (None, None) => return None,
    };
    Some(format!("whether the agent changed protected files is unknown: {why}"))
}

/// Returns the places that changed without being measured and that the case protects now, but did not protect when the trial
/// ran.
pub(super) fn not_restored(then: Option<&EvidenceKeys>, case: &Case, change: Option<&Change>) -> BTreeSet<String> {
    let now = &case.workspace.protect;
    let is_same = then.is_none_or(|then| now.iter().map(PathGlob::to_string).eq(then.protect.iter().cloned()));
    let globs = now.iter().filter(|_| !is_same);
    globs.filter_map(|glob| change?.may_hide_any(glob)).map(str::to_owned).collect()
}

/// Returns the files that were restored before the trial was graded, and that the case does not protect now.
pub(super) fn restored(
    then: Option<&EvidenceKeys>,
    case: &Case,
    change: Option<&Change>,
    warnings: &[Warning],
) -> BTreeSet<String> {
    let globs = then.into_iter().flat_map(|then| &then.protect);
    let globs: Vec<PathGlob> = globs.filter_map(|glob| glob.parse().ok()).collect();
    // Runs of older versions recorded no globs.
    let of_warnings = warnings.iter().filter_map(|warning| match warning {
        Warning::ProtectedFile { path, put_back: true, .. } => Some(path.as_str()),
        _ => None,
    });
    let changed = change.into_iter().flat_map(Change::all).map(|(path, _)| path);
    let found = of_warnings.chain(changed.filter(|path| is_protected(&globs, path)));
    found.filter(|path| !is_protected(&case.workspace.protect, path)).map(str::to_owned).collect()
}

/// Returns the hidden files that a run laid over the workspace, and that the case does not have now.
///
/// # Errors
/// Returns an error if the hidden folder cannot be read.
pub(super) fn stale_hidden(then: Option<&EvidenceKeys>, case: &Case) -> io::Result<BTreeSet<String>> {
    let mut stale: BTreeSet<String> = then.into_iter().flat_map(|then| then.hidden.iter().cloned()).collect();
    if !stale.is_empty() {
        for path in case.evidence_keys()?.hidden {
            stale.remove(&path);
        }
    }
    Ok(stale)
}
