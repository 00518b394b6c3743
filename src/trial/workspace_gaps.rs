//! Determines from a result's warnings the parts that a stored workspace lacks, which regrading must do without.

use std::path::PathBuf;

use crate::result::Warning;

/// Returns the parts that a rebuilt workspace lacks.
///
/// Ignored files that come from the source and setup exist again, including a repository's own folder.
pub(super) fn of_rebuilt(warnings: &[Warning], unknown: &[PathBuf], ignored_now: u64) -> Vec<String> {
    let mut lost = Vec::new();
    if let Some(first) = unknown.first() {
        let n = unknown.len();
        lost.push(format!("the patch leaves out the content of {n} changed files, the first is `{}`", first.display()));
    }
    // A result without the warning had no such files.
    let told = warnings.iter().find_map(|warning| match warning {
        Warning::IgnoredFiles { bytes } => Some(*bytes),
        _ => None,
    });
    let then = told.unwrap_or(0);
    if then != ignored_now {
        lost.push(format!(
            "ignored files are not part of the patch: there were {then} bytes of them, and now there are {ignored_now}"
        ));
    }
    if warnings.contains(&Warning::PatchMasked) {
        lost.push("the patch held secrets and was masked".to_owned());
    }
    lost
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
        let told = |bytes: u64| vec![Warning::IgnoredFiles { bytes }];
        assert_eq!(of_rebuilt(&told(6), &[], 6), Vec::<String>::new());
        assert_eq!(of_rebuilt(&[], &[], 0), Vec::<String>::new());
        let lost = of_rebuilt(&[], &[], 6);
        assert!(lost[0].contains("there were 0 bytes of them, and now there are 6"), "{lost:?}");
        assert!(of_rebuilt(&told(6), &[], 0)[0].contains("there were 6 bytes of them, and now there are 0"));
    }
}
