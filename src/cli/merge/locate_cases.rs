//! Finds the cases of shards that ran in another folder: on another machine, or in another checkout.

use std::path::{Path, PathBuf};

use crate::run::RunRecord;
use crate::run::project_of_run::move_case;

/// Replaces each path of a case that does not exist by an existing path below a folder that ends in the same names. The
/// caller compares the digests of the cases.
pub fn found_below(folder: &Path, mut record: RunRecord) -> RunRecord {
    for case in &mut record.cases {
        if let Some((there, here)) = roots(folder, &case.path) {
            move_case(case, &there, &here);
        }
    }
    record
}

/// Returns the missing folder and the existing folder that replaces it, for a missing path: the shortest prefix is
/// replaced for which the file exists.
fn roots(folder: &Path, path: &Path) -> Option<(PathBuf, PathBuf)> {
    if path.exists() {
        return None;
    }
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let there =
        above.into_iter().find(|above| path.strip_prefix(above).is_ok_and(|rest| folder.join(rest).is_file()))?;
    Some((there.to_owned(), folder.to_owned()))
}
