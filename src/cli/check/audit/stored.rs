//! Reads the stored runs for an audit.

use std::collections::BTreeMap;
use std::path::Path;

use crate::audit::stored::Stored;
use crate::case::Case;
use crate::case::digest::is_same;
use crate::cli::terminal;
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::run::merge::replaced::Merges;

/// Reads the trials of the cases from the runs in a folder. A run that cannot be read is reported and left out.
pub fn read(runs: &Path, cases: &[Case]) -> Stored {
    let mut stored = Stored::default();
    let all = find::all(runs);
    if all.is_empty() {
        return stored;
    }
    let mut digests = BTreeMap::new();
    for case in cases {
        match case.digest() {
            Ok(digest) => _ = digests.insert(case.id.clone(), digest),
            Err(error) => terminal::note(format_args!("note: stored runs of case `{}` are not used: {error}", case.id)),
        }
    }
    // Trials of merged shards are in the merged run. The newest run is first in the folder.
    let merges = Merges::of(&all);
    for (path, record) in all.iter().filter(|(path, _)| !merges.replaces(path)) {
        if !record.cases.iter().any(|case| digests.get(&case.id).is_some_and(|now| is_same(now, &case.digest))) {
            continue;
        }
        match RunFolder::open(path).results(record) {
            Ok(results) => stored.add(record, &results, &digests),
            Err(error) => terminal::note(format_args!("note: {error}")),
        }
    }
    stored
}
