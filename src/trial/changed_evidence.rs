//! Finds evidence of a trial that another program changed while the trial ran, and withdraws the grades that may rest on it.

use std::path::{Path, PathBuf};

use crate::grade::Outcome;
use crate::result::{TrialResult, Warning};
use crate::text::some_of;
use crate::whole_file::PartFile;
use crate::workspace::stamp::Stamp;

/// The maximum number of files in a warning.
const NAMED: usize = 5;

/// Files of a trial that are complete before it is graded, each with its name for people and its stamp.
pub(super) struct WrittenFiles(Vec<(&'static str, PathBuf, Option<Stamp>)>);

impl WrittenFiles {
    /// Takes the stamps of the trace, of the patch and of the wire log, if there is one.
    pub(super) fn of(trace: &PartFile, patch: &PartFile, wire: &Path) -> Self {
        let mut files = vec![
            ("trace.jsonl", trace.written().to_owned(), of_part(trace)),
            ("workspace.patch", patch.written().to_owned(), of_part(patch)),
        ];
        if let Some(stamp) = stamp(wire) {
            files.push(("wire.jsonl", wire.to_owned(), Some(stamp)));
        }
        Self(files)
    }

    /// Returns the names of the files that were changed since the engine wrote them.
    pub(super) fn changed(&self) -> Vec<String> {
        let changed = self.0.iter().filter(|(_, path, written)| written.is_none() || stamp(path) != *written);
        changed.map(|(name, ..)| format!("`{name}`")).collect()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    path.symlink_metadata().ok().map(|meta| Stamp::of(&meta))
}

/// Returns the stamp of a file that was just written, unless its name leads to another file or its size is another one.
fn of_part(part: &PartFile) -> Option<Stamp> {
    let meta = part.metadata().ok()?;
    let own = Stamp::of(&meta);
    (meta.len() == part.size() && stamp(part.written()) == Some(own)).then_some(own)
}

/// Returns the warning about changed files.
pub(super) fn warning(files: &[String], ungraded: bool) -> Option<Warning> {
    (!files.is_empty()).then(|| Warning::EvidenceChanged { files: some_of(files, NAMED), ungraded })
}

/// Makes every grade of a result ungraded, because evidence of the trial was changed.
pub(super) fn withdraw(result: &mut TrialResult, files: &[String]) {
    let why = format!("another program changed {} during the trial, so the result is unknown", some_of(files, NAMED));
    for grade in &mut result.grades {
        (grade.outcome, grade.value, grade.bounds, grade.passed) = (Outcome::Ungraded, None, None, None);
        (grade.evidence, grade.broken) = (Vec::new(), Vec::new());
        grade.reason = format!("{why}; without it: {}", grade.reason);
    }
}
