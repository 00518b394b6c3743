//! Determines from a result's warnings the parts that a stored workspace lacks, which regrading must do without.

use std::path::PathBuf;

use crate::result::{BesidePatch, Warning};
use crate::text::plural;

/// Returns the parts that a rebuilt workspace lacks.
///
/// Ignored files that come from the source and setup exist again, including a repository's own folder.
pub(super) fn of_rebuilt(
    warnings: &[Warning],
    recorded: Option<&BesidePatch>,
    unknown: &[PathBuf],
    ignored_now: u64,
) -> Vec<String> {
    let mut lost = Vec::new();
    if let Some(first) = unknown.first() {
        let n = unknown.len();
        let files = plural(n, "changed file");
        lost.push(format!("the patch leaves out the content of {files}, the first is `{}`", first.display()));
    }
    // A result without the warning had no such files.
    let bytes = warnings.iter().find_map(|warning| match warning {
        Warning::IgnoredFiles { bytes } => Some(*bytes),
        _ => None,
    });
    let then = bytes.unwrap_or(0);
    if then != ignored_now {
        lost.push(format!(
            "ignored files are not part of the patch: there were {then} bytes of them, and now there are {ignored_now}"
        ));
    } else if let Some(place) = recorded.and_then(changed_ignored) {
        // Empty files and folders have no bytes.
        lost.push(format!("ignored files are not part of the patch, and {place} changed"));
    }
    if warnings.contains(&Warning::PatchMasked) {
        lost.push("the patch held secrets and was masked".to_owned());
    }
    lost
}

/// Returns a place of ignored files that the agent changed, for a message.
fn changed_ignored(recorded: &BesidePatch) -> Option<String> {
    let is_ignored = |path: &&String| !is_repository(path) && !recorded.special.contains(path);
    let is_unnamed = recorded.unnamed.is_some_and(|unnamed| unnamed > 0);
    let named = recorded.changed.iter().find(is_ignored).map(|path| format!("`{path}`"));
    named.or_else(|| is_unnamed.then(|| "a place that `result.json` does not name".to_owned()))
}

fn is_repository(path: &str) -> bool {
    path == ".git" || path.ends_with("/.git")
}

/// Returns true if everything that the agent did and a rebuilt workspace lacks lies in places that are known by name: if
/// its patch has every change of every other file.
pub(super) fn lie_in_known_places(warnings: &[Warning], unknown: &[PathBuf]) -> bool {
    unknown.is_empty() && !warnings.contains(&Warning::PatchMasked)
}

/// Returns the parts that a kept workspace lacks.
pub(super) fn of_kept(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().filter(|warning| warning.tells_of_a_loss()).map(Warning::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_that_are_all_gone_are_as_lost_as_new_ones() {
        let ignored = |bytes: u64| vec![Warning::IgnoredFiles { bytes }];
        assert_eq!(of_rebuilt(&ignored(6), None, &[], 6), Vec::<String>::new());
        assert_eq!(of_rebuilt(&[], None, &[], 0), Vec::<String>::new());
        let lost = of_rebuilt(&[], None, &[], 6);
        assert!(lost[0].contains("there were 0 bytes of them, and now there are 6"), "{lost:?}");
        assert!(of_rebuilt(&ignored(6), None, &[], 0)[0].contains("there were 6 bytes of them, and now there are 0"));
    }

    #[test]
    fn empty_ignored_files_are_lost_too() {
        let lost = |changed: &[&str], unnamed| {
            let changed = changed.iter().map(|path| (*path).to_owned()).collect();
            let recorded = BesidePatch { changed, unnamed, special: vec!["pipe".to_owned()], ..BesidePatch::default() };
            of_rebuilt(&[], Some(&recorded), &[], 0)
        };
        assert!(lost(&["build"], None)[0].contains("`build` changed"));
        assert!(lost(&[], Some(2))[0].contains("does not name"));
        assert_eq!(lost(&["pipe", ".git", "x/.git"], Some(0)), Vec::<String>::new());
    }
}
