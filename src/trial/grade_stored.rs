//! Passes a stored trace to graders, event by event, as a live session does.

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use super::grade_trial::ObservedSession;
use super::metrics::Observed;
use crate::grader::{Grader, Grading};
use crate::harness::Manifest;
use crate::regular;
use crate::trace::jsonl::{ReadError, Reader};
use crate::trace::recorder::Finished;
use crate::trace::usage::UsageTotal;

/// The size of a read, in bytes.
const PIECE: usize = 256 << 10;

/// Passes a stored trace to graders, line by line. Events are kept only if a grader keeps them. `marks` has for each grader
/// the mark that replaces a secret of its text in the trace.
///
/// # Errors
/// Returns an error if the trace cannot be read, or breaks a law of traces.
pub(super) fn watch(
    trace: &Path,
    graders: &[Arc<Grader>],
    marks: Vec<Option<String>>,
    manifest: &Manifest,
) -> Result<ObservedSession, ReadError> {
    let file = regular::open(trace).map_err(|source| ReadError::Io { line: 1, source })?;
    let mut reader = Reader::lawful(BufReader::with_capacity(PIECE, file))?;
    let header = reader.header().clone();
    let mut grading = Grading::new(graders, &header, Some(manifest)).with_secrets(marks);
    let (mut observed, mut total) = (Observed::default(), UsageTotal::default());
    observed.is_stored = true;
    observed.wrote_to_stderr = trace.with_file_name("stderr.log").metadata().is_ok_and(|file| file.len() > 0);
    while let Some(event) = reader.next_event()? {
        total.event(&event);
        observed.event(&event);
        grading.event(&event);
    }
    Ok(ObservedSession {
        finished: Finished { header, events: Vec::new(), total },
        observed,
        grading,
        not_as_set_up: None,
    })
}
