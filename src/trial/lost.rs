//! What a run did not keep of a workspace, as its results tell it: what a judgement of today has to do without.

use std::path::PathBuf;

use super::after::{IGNORED, MASKED};
use super::again::tells_of_a_lack;
use super::kept;

/// What a workspace lacks that was made again from its source and its patch.
///
/// Ignored files that the source and setup bring are there again, a repository's own folder among them.
pub(super) fn of_rebuilt(warnings: &[String], unknown: &[PathBuf], ignored_now: u64) -> Vec<String> {
    let mut lost = Vec::new();
    if let Some(first) = unknown.first() {
        let n = unknown.len();
        lost.push(format!("the patch leaves out the content of {n} changed files, the first is `{}`", first.display()));
    }
    // A result that says nothing of them says that there were none.
    let told = warnings.iter().find_map(|line| line.strip_suffix(IGNORED)?.trim().parse::<u64>().ok());
    let then = told.unwrap_or(0);
    if then != ignored_now {
        lost.push(format!(
            "ignored files are in no patch: there were {then} bytes of them, and {ignored_now} are there now"
        ));
    }
    if warnings.iter().any(|line| line == MASKED) {
        lost.push("the patch held secrets and was masked".to_owned());
    }
    lost
}

/// What a workspace lacks that was kept.
pub(super) fn of_kept(warnings: &[String]) -> Vec<String> {
    // What an earlier grading said of it repeats the same words.
    warnings.iter().filter(|line| kept::tells_of_a_loss(line) && !tells_of_a_lack(line)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_that_are_all_gone_are_as_lost_as_new_ones() {
        let told = |then: u64| vec![format!("{then} {IGNORED}")];
        assert_eq!(of_rebuilt(&told(6), &[], 6), Vec::<String>::new());
        assert_eq!(of_rebuilt(&[], &[], 0), Vec::<String>::new());
        let lost = of_rebuilt(&[], &[], 6);
        assert!(lost[0].contains("there were 0 bytes of them, and 6 are there now"), "{lost:?}");
        assert!(of_rebuilt(&told(6), &[], 0)[0].contains("there were 6 bytes of them, and 0 are there now"));
    }
}
