//! Reads the runs of a folder for the list, and finds the folder of a run by its name.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::encoded;
use super::pipe::Pipe;
use crate::ids::column_name;
use crate::report::Summary;
use crate::report::html::live::Live;
use crate::report::html::runs::{self, Results, Row};
use crate::result::TrialResult;
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::run::{RunError, RunRecord};

/// Returns the folder of a run by its name. The name is compared with those of the folders, and never becomes a path.
pub fn folder(runs: &Path, name: &[u8]) -> Option<PathBuf> {
    find::paths(runs).into_iter().find(|path| path.file_name().is_some_and(|it| it.as_bytes() == name))
}

/// Returns the results of a run, which may be going on.
///
/// # Errors
/// Returns an error if the run cannot be read.
pub fn results(folder: &RunFolder, record: &RunRecord, going_on: bool) -> Result<Vec<TrialResult>, RunError> {
    // Results are stored for the next reader, except those of a run in progress: its engine stores them.
    if going_on { folder.results_of_trials(record) } else { folder.results(record) }
}

/// Returns the state of the list.
pub fn state(runs: &Path) -> runs::State {
    let mut state = runs::State::default();
    for path in find::paths(runs) {
        let Some(name) = path.file_name().map(encoded) else { continue };
        let folder = RunFolder::open(&path);
        if folder.is_in_use()
            && let Ok(live) = folder.record().and_then(|record| Live::of(&folder, &record))
        {
            state.going_on.insert(name.clone(), live.text);
        }
        state.runs.push(name);
    }
    state
}

/// Writes the list.
pub fn write(runs: &Path, out: &mut Pipe) -> io::Result<()> {
    let state = state(runs);
    let named = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    for path in find::paths(runs) {
        match RunFolder::open(&path).record() {
            Ok(record) => found.push((record.started, record.run, path)),
            Err(error) => broken.push((named(&path), error.to_string())),
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    let rows = found.iter().map(|(started, run, path)| {
        // Read again, so that one record is in memory at a time.
        row(path).unwrap_or_else(|error| Row {
            link: path.file_name().map(encoded).unwrap_or_default(),
            run: run.clone(),
            started: started.clone(),
            results: Results::Unreadable(error.to_string()),
            ..Row::default()
        })
    });
    runs::write(&runs.display().to_string(), &state, rows, &broken, out)
}

fn row(path: &Path) -> Result<Row, RunError> {
    let folder = RunFolder::open(path);
    let record = folder.record()?;
    let columns: BTreeSet<String> = record.trials.iter().map(|trial| column_name(&trial.harness, &trial.arm)).collect();
    let live = Live::of(&folder, &record)?;
    let results = if live.going_on {
        Results::GoingOn(live.text)
    } else {
        match results(&folder, &record, false) {
            Ok(results) => {
                let not_run = record.trials.len().saturating_sub(results.len());
                let is_complete = not_run == 0 && !folder.lacks_end(&record)?;
                Results::Ended(Summary::of(&results, not_run).parts(), is_complete)
            }
            Err(error) => Results::Unreadable(error.to_string()),
        }
    };
    let made_from = match (&record.derived_from, record.graded) {
        (Some(from), true) => Some(format!("grades {from} again")),
        (Some(from), false) => Some(format!("made from {from}")),
        (None, true) => Some("grades stored traces".to_owned()),
        (None, false) => None,
    };
    Ok(Row {
        link: path.file_name().map(encoded).unwrap_or_default(),
        run: record.run,
        label: record.label,
        started: record.started,
        columns: columns.into_iter().collect(),
        made_from,
        results,
    })
}
