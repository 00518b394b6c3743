//! Further copies of results, for trials whose own `result.json` was removed or changed: those of this process, and the lines
//! of `results.jsonl`. A copy counts only if the journal confirms it.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Deserialize;

use crate::ids::{TrialId, TrialRecord};
use crate::regular;
use crate::result::TrialResult;
use crate::run::integrity;
use crate::run::journal::TrialState;
use crate::run::stored_results::{Lines, StoredLine, StoredResults};

/// The copies of a run's results besides those in the folders of the trials.
#[derive(Debug, Default)]
pub(super) struct FurtherCopies {
    own: Mutex<OwnResults>,
    /// `results.jsonl` as it was when a copy was first looked for. `None` if it cannot be read.
    lines: OnceLock<Option<LinesById>>,
}

/// The results that this process finished, in a file without a name, which nothing that searches the folder of the run meets. An
/// agent without a sandbox can reach it through `/proc`, so a copy counts only with the digest in the journal.
#[derive(Debug, Default)]
struct OwnResults {
    file: Option<File>,
    end: u64,
    /// The start and the length of each result.
    places: HashMap<TrialId, (u64, usize)>,
}

/// The lines of `results.jsonl`, by trial.
#[derive(Debug)]
struct LinesById {
    stored: StoredResults,
    places: HashMap<TrialId, usize>,
}

impl FurtherCopies {
    /// Keeps a copy of a result that this process finished. Does nothing if the file system refuses.
    pub(super) fn keep(&self, run: &Path, result: &TrialResult) {
        let Ok(json) = serde_json::to_vec(result) else { return };
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let OwnResults { file, end, places } = &mut *own;
        if file.is_none() {
            *file = tempfile::tempfile_in(run).ok();
        }
        let Some(file) = file else { return };
        if file.write_all_at(&json, *end).is_ok() {
            places.insert(result.id(), (*end, json.len()));
            *end += json.len() as u64;
        }
    }

    /// Returns a copy of a finished trial's result, with its JSON text.
    pub(super) fn find(&self, run: &Path, trial: &TrialRecord, state: &TrialState) -> Option<(TrialResult, Vec<u8>)> {
        let id = trial.id();
        let confirmed = |json: Vec<u8>| match integrity::checked(trial, state, &json) {
            Ok(Ok(result)) => Some((result, json)),
            _ => None,
        };
        self.own(&id).and_then(confirmed).or_else(|| self.line(run, &id).and_then(confirmed))
    }

    fn own(&self, id: &TrialId) -> Option<Vec<u8>> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, length) = own.places.get(id)?;
        let mut json = vec![0; *length];
        own.file.as_ref()?.read_exact_at(&mut json, *start).ok()?;
        Some(json)
    }

    fn line(&self, run: &Path, id: &TrialId) -> Option<Vec<u8>> {
        let lines = self.lines.get_or_init(|| LinesById::of(run)).as_ref()?;
        lines.stored.text(*lines.places.get(id)?).ok()
    }
}

impl LinesById {
    fn of(run: &Path) -> Option<Self> {
        #[derive(Deserialize)]
        struct Named {
            case: String,
            harness: String,
            arm: String,
            trial: u32,
        }
        let path = run.join("results.jsonl");
        let file = regular::open_own(&path).ok()?;
        let (mut stored, mut places) = (Vec::new(), HashMap::new());
        let mut lines = Lines::of(&file);
        while let Ok(Some(StoredLine { text, place })) = lines.next() {
            if let Ok(Named { case, harness, arm, trial }) = serde_json::from_str(text) {
                places.insert(TrialId { case, harness, arm, trial }, stored.len());
            }
            stored.push(place);
        }
        drop(lines);
        Some(Self { stored: StoredResults::new(path, file, stored), places })
    }
}
