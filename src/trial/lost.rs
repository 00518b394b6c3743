//! What a run did not keep of a workspace, as its results tell it: what a judgement of today has to do without.

use std::path::PathBuf;

use super::after::{IGNORED, MASKED};
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
    lost.extend(warnings.iter().filter_map(|line| {
        let then: u64 = line.strip_suffix(IGNORED)?.trim().parse().ok()?;
        (then != ignored_now).then(|| {
            format!("ignored files are in no patch: there were {then} bytes of them, and {ignored_now} are there now")
        })
    }));
    if warnings.iter().any(|line| line == MASKED) {
        lost.push("the patch held secrets and was masked".to_owned());
    }
    lost
}

/// What a workspace lacks that was kept.
pub(super) fn of_kept(warnings: &[String]) -> Vec<String> {
    warnings.iter().filter(|line| kept::tells_of_a_loss(line)).cloned().collect()
}
