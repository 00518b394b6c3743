//! Reads the stored runs for an audit.

use std::path::Path;

use crate::audit::stored::Stored;
use crate::case::Case;
use crate::cli::{present_digests, terminal};
use crate::run::find;
use crate::run::folder::RunFolder;

/// Reads the trials of the cases from the runs in a folder. A run that cannot be read is reported and left out.
pub fn read(runs: &Path, cases: &[Case]) -> Stored {
    let mut stored = Stored::default();
    let all = find::all(runs);
    if all.is_empty() {
        return stored;
    }
    let digests = present_digests::of(cases.iter());
    // The newest run comes first.
    for (path, record) in find::without_repeated(&all) {
        if !record.cases.iter().any(|case| case.is_present(&digests)) {
            continue;
        }
        match RunFolder::open(path).results(record) {
            Ok(results) => stored.add(record, &results, &digests),
            Err(error) => terminal::note(format_args!("note: {error}")),
        }
    }
    stored
}
