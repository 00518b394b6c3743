//! Finds the cases of shards that ran in another folder: on another machine, or in another checkout.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::run::RunRecord;

/// Replaces each path of a case that does not exist by an existing path below a folder that ends in the same names. The
/// caller compares the digests of the cases.
pub fn found_below(folder: &Path, mut record: RunRecord) -> RunRecord {
    for case in &mut record.cases {
        let Some((there, here)) = roots(folder, &case.path) else { continue };
        let moved = |path: &PathBuf| path.strip_prefix(&there).map_or_else(|_| path.clone(), |rest| here.join(rest));
        case.path = moved(&case.path);
        case.judged_by =
            case.judged_by.iter().map(|(path, digest)| (moved(path), digest.clone())).collect::<BTreeMap<_, _>>();
        for grader in &mut case.graders {
            grader.file = moved(&grader.file);
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
