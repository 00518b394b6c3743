//! Writes the derived run: the new results, beside the same evidence. The run is written completely or not at
//! all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{LeftAttempt, Plan, Work};
use crate::cli::{CliError, errors};
use crate::result::TrialResult;
use crate::run::RunError;
use crate::run::folder::RunFolder;
use crate::run::folder::unfinished::UnfinishedRun;
use crate::run::journal::{JournalEvent, JournalLine};
use crate::whole_file::{link_or_copy, put_in_place, sync_folder, write_part};

/// The files of a trial that the derived run shares.
const SAME: [&str; 6] = ["trace.jsonl", "wire.jsonl", "llm.jsonl", "model.jsonl", "stderr.log", "workspace.patch"];

/// Writes the run. Returns its folder and all of its results, including skipped trials, in the order of the
/// plan.
pub fn write(
    runs: &Path,
    plan: &mut Plan,
    judged: Vec<TrialResult>,
) -> Result<(RunFolder, Vec<TrialResult>), CliError> {
    let unfinished = UnfinishedRun::begin(runs, &mut plan.record);
    let unfinished = unfinished.map_err(|error| errors::of_new_run(error, "--out DIR"))?;
    let results = write_in(unfinished.folder(), plan, judged)?;
    Ok((unfinished.publish()?, results))
}

fn write_in(folder: &RunFolder, plan: &Plan, judged: Vec<TrialResult>) -> Result<Vec<TrialResult>, CliError> {
    let mut lines = Vec::with_capacity(2 * judged.len());
    let mut named: BTreeSet<PathBuf> = BTreeSet::new();
    for (work, result) in plan.works.iter().zip(&judged) {
        let at = folder.trial_of(&work.trial)?;
        fs::create_dir_all(&at).map_err(RunError::io("make the folder", &at))?;
        named.extend(at.ancestors().take_while(|above| above.starts_with(&folder.path)).map(Path::to_owned));
        same_evidence(work, &at)?;
        let part = write_part(&at.join("result.json"), |out| {
            serde_json::to_writer_pretty(&mut *out, result)?;
            out.write_all(b"\n")
        })?;
        put_in_place([part])?;
        for event in [JournalEvent::Started, JournalEvent::Finished] {
            lines.push(line(plan, work, result, event));
        }
    }
    for attempt in &plan.without_result {
        let at = folder.trial_of(&attempt.trial)?.join("attempts").join(attempt.number.to_string());
        fs::create_dir_all(&at).map_err(RunError::io("make the folder", &at))?;
        named.extend(at.ancestors().take_while(|above| above.starts_with(&folder.path)).map(Path::to_owned));
        what_it_cost(attempt, &at)?;
    }
    // Each folder is synchronised once, before the journal states that its trials are done.
    named.iter().try_for_each(|folder| sync_folder(folder))?;
    folder.open_journal()?.write_all(&lines)?;
    let mut judged =
        plan.works.iter().map(|work| work.trial.id()).zip(judged).collect::<Vec<_>>().into_iter().peekable();
    let mut results = Vec::new();
    for trial in &plan.record.trials {
        match &trial.skip {
            Some(reason) => results.push(TrialResult::skipped(trial, reason)),
            None => results.extend(judged.next_if(|(key, _)| *key == trial.id()).map(|(_, result)| result)),
        }
    }
    folder.write_results(&results)?;
    Ok(results)
}

/// Links the evidence of a trial into the derived run. The files are never written again, and they outlive the
/// original run.
fn same_evidence(work: &Work, at: &Path) -> Result<(), CliError> {
    if let Some(trace) = work.files.trace.as_ref().filter(|_| work.folder.is_none()) {
        link_or_copy(trace, &at.join("trace.jsonl")).map_err(RunError::io("copy", trace))?;
    }
    for name in SAME {
        if let Some(from) = work.folder.as_ref().map(|folder| folder.join(name)).filter(|path| path.is_file()) {
            link_or_copy(&from, &at.join(name)).map_err(RunError::io("copy", &from))?;
        }
    }
    Ok(())
}

/// Links the files of an attempt without a result that its cost is read from.
fn what_it_cost(attempt: &LeftAttempt, at: &Path) -> Result<(), CliError> {
    for name in ["wire.jsonl", "result.json"] {
        let from = attempt.folder.join(name);
        if from.is_file() {
            link_or_copy(&from, &at.join(name)).map_err(RunError::io("copy", &from))?;
        }
    }
    Ok(())
}

fn line(plan: &Plan, work: &Work, result: &TrialResult, event: JournalEvent) -> JournalLine {
    let line = JournalLine::new(plan.record.started.clone(), event, &work.trial, work.attempt);
    if event == JournalEvent::Finished { line.with_result(result) } else { line }
}
