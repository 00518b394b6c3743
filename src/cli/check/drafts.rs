//! Warnings about cases: drafts that a person has to read first, and settings without an effect.

use crate::case::{Case, Review};
use crate::text::some_of;

/// The maximum number of leaks that a warning names.
const NAMED: usize = 5;

/// Returns a warning if the case is a draft, one if its prompt contains parts of its solution, and one if it makes the
/// protection of no file strict.
pub fn warnings(case: &Case) -> Vec<String> {
    let (id, file) = (&case.id, case.shown().display());
    let mut warnings = Vec::new();
    if case.review == Some(Review::Needed) {
        let set_in = case.set_in("review").display();
        warnings.push(format!(
            "case `{id}` is a draft: read its prompt, correct it, and remove `review: needed` from {set_in}"
        ));
    }
    let leaks = case.provenance.iter().flat_map(|provenance| &provenance.leaks);
    let leaks: Vec<String> = leaks.map(|leak| format!("`{leak}`")).collect();
    if !leaks.is_empty() {
        warnings.push(format!(
            "the prompt of case `{id}` contains words or lines of its solution: {}; rephrase it and remove \
             `provenance.leaks` from {file}",
            some_of(leaks, NAMED)
        ));
    }
    if case.workspace.protect_strict && case.workspace.protect.is_empty() {
        warnings.push(format!(
            "case `{id}`: `protect-strict` has no effect, because `workspace.protect` names no files; add them in {file}"
        ));
    }
    warnings
}
