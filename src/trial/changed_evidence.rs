//! Finds evidence of a trial that another program changed while the trial ran, and withdraws the grades that may rest on it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::result::{TrialResult, Warning};
use crate::text::some_of;
use crate::whole_file::PartFile;
use crate::workspace::stamp::{Stamp, Stamper};

/// The maximum number of files in a warning.
const MAX_NAMED_FILES: usize = 5;

/// Files of a trial that are complete before it is graded.
pub(super) struct WrittenFiles {
    /// Each file with its name for people and its stamp.
    files: Vec<(&'static str, PathBuf, Option<Stamp>)>,
    /// The places in `files` of those that an earlier look found changed: a later change can put the original back.
    changed: Mutex<BTreeSet<usize>>,
}

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
        Self { files, changed: Mutex::default() }
    }

    /// Looks for files that were changed since the engine wrote them.
    pub(super) fn look(&self) {
        let is_changed = |path: &Path, written: &Option<Stamp>| written.is_none() || stamp(path) != *written;
        let places = self.files.iter().enumerate().filter(|(_, (_, path, written))| is_changed(path, written));
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).extend(places.map(|(place, _)| place));
    }

    /// Returns the names of the files that are changed, or were changed at an earlier look.
    pub(super) fn changed(&self) -> Vec<String> {
        self.look();
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let names = self.files.iter().enumerate().filter(|(place, _)| changed.contains(place));
        names.map(|(_, (name, ..))| format!("`{name}`")).collect()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    path.symlink_metadata().ok().map(|meta| Stamper::default().stamp(path, &meta))
}

/// Returns the stamp of a file that was just written, unless its name leads to another file or its size is another one.
fn of_part(part: &PartFile) -> Option<Stamp> {
    let meta = part.metadata().ok()?;
    let own = Stamper::default().stamp(part.written(), &meta);
    (meta.len() == part.size() && stamp(part.written()) == Some(own)).then_some(own)
}

/// Returns the warning about changed files.
pub(super) fn warning(files: &[String], ungraded: bool) -> Option<Warning> {
    (!files.is_empty()).then(|| Warning::EvidenceChanged { files: some_of(files, MAX_NAMED_FILES), ungraded })
}

/// Makes every grade of a result ungraded, because evidence of the trial was changed.
pub(super) fn withdraw(result: &mut TrialResult, files: &[String]) {
    let why = format!(
        "another program changed {} during the trial, so the result is unknown",
        some_of(files, MAX_NAMED_FILES)
    );
    for grade in &mut result.grades {
        grade.withdraw(format!("{why}; without it: {}", grade.reason));
    }
}
