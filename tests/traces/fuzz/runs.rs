//! The files of a run: a journal forgets nothing that finished, and a damaged file is told and never shown as another.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use evals::internal::ids::TrialId;
use evals::internal::ids::TrialRecord;
use evals::internal::report::format::{self, Format};
use evals::internal::report::text::Look;
use evals::internal::report::{Report, show};
use evals::internal::result::TrialResult;
use evals::internal::run::folder::RunFolder;
use evals::internal::run::journal::{self, Journal, JournalEvent, JournalLine, TrialState};
use evals::internal::run::{RunError, RunRecord, read_json};
use evals::internal::runner;
use evals::internal::verdict::Verdict;

use super::corpus::{a_run, put};
use super::hunt::{Took, hunt};
use super::mutate::{Form, count_lines};
use crate::rng::Rng;

type States = HashMap<TrialId, TrialState>;

fn states(path: &Path, bytes: &[u8]) -> Result<States, String> {
    put(path, bytes);
    journal::read(path).map_err(|error| error.to_string())
}

/// Whatever had finished before has still finished.
fn forgets_nothing(before: &States, after: &States) -> Result<(), String> {
    for (key, state) in before.iter().filter(|(_, state)| state.finished.is_some()) {
        match after.get(key) {
            Some(now) if now.finished.is_some() && now.attempts >= state.attempts => {}
            now => return Err(format!("{key:?} had finished ({state:?}) and then {now:?}")),
        }
    }
    Ok(())
}

/// The trial that a line finishes.
fn finished(line: &[u8]) -> Option<TrialId> {
    let line: JournalLine = serde_json::from_slice(line).ok()?;
    let says = line.event == JournalEvent::Finished && line.verdict.is_some();
    let arm = line.arm().to_owned();
    says.then_some(TrialId { case: line.case, harness: line.harness, arm, trial: line.trial })
}

#[test]
fn journal() {
    let run = a_run();
    let seed = run.read(&format!("{}/journal.jsonl", run.run_folder())).into_bytes();
    let folder = RunFolder::open(&run.path(&run.run_folder()));
    let record = folder.record().unwrap();
    let path = folder.journal();
    hunt("journal reader", Form::Json, &[seed], |input| {
        let all = states(&path, input)?;
        // Nothing that is done is run again.
        let waiting = runner::waiting(&folder, &record.trials, &HashSet::new()).map_err(|error| error.to_string())?;
        let done = |trial: &TrialRecord| all.get(&trial.id()).is_some_and(TrialState::is_done);
        if waiting.len() + record.trials.iter().filter(|trial| done(trial)).count() != record.trials.len() {
            return Err("a trial is both done and to be run, or neither".to_owned());
        }
        if let Err(error) = folder.results(&record) {
            told(&error)?;
        }
        // A journal that was cut anywhere is a journal of before.
        let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        let mut rng = Rng::new(input.len() as u64);
        for _ in 0..3 {
            let number = rng.below(lines.len());
            let whole: usize = lines[..number].iter().map(|line| line.len()).sum();
            let earlier = states(&path, &input[..whole])?;
            let torn = states(&path, &input[..whole + rng.below(input.len() - whole + 1)])?;
            forgets_nothing(&earlier, &torn)?;
            forgets_nothing(&earlier, &all)?;
            let finished = lines[..number].iter().filter_map(|line| finished(line));
            if finished.clone().any(|key| earlier.get(&key).is_none_or(|state| state.finished.is_none())) {
                return Err("a line that finishes a trial was not believed".to_owned());
            }
        }
        if input.len().is_multiple_of(8) {
            goes_on(&path, input, &all)?;
        }
        let read = lines.iter().filter(|line| serde_json::from_slice::<JournalLine>(line).is_ok()).count();
        Ok(if read == count_lines(input) { Took::Accepted } else { Took::Rejected })
    });
}

/// A journal that is gone on with keeps what it said, and takes more, whatever its last line was.
fn goes_on(path: &Path, input: &[u8], before: &States) -> Result<(), String> {
    put(path, input);
    let more = JournalLine {
        at: "2026-01-01T00:00:00Z".to_owned(),
        event: JournalEvent::Finished,
        case: "more".to_owned(),
        harness: "demo".to_owned(),
        model: "default".to_owned(),
        arm: None,
        trial: 1,
        attempt: 1,
        verdict: Some(Verdict::Pass),
        retry: false,
        digest: None,
        plan: None,
    };
    Journal::open(path).and_then(|journal| journal.write(&more)).map_err(|error| error.to_string())?;
    let after = journal::read(path).map_err(|error| error.to_string())?;
    forgets_nothing(before, &after)?;
    let key = TrialId { case: "more".to_owned(), harness: "demo".to_owned(), arm: "default".to_owned(), trial: 1 };
    match after.get(&key) {
        Some(state) if state.is_done() => Ok(()),
        state => Err(format!("the line that was added is read as {state:?}")),
    }
}

fn told(error: &RunError) -> Result<Took, String> {
    if error.to_string().is_empty() { Err("an error without words".to_owned()) } else { Ok(Took::Rejected) }
}

/// A report in every format.
fn reported(record: &RunRecord, results: Vec<TrialResult>, folder: &Path) {
    let report = Report::new(record, results, 0, folder);
    for format in [Format::Table, Format::Json, Format::Jsonl] {
        for width in [0, 100] {
            format::write(format, &report, &Look { width, ..Look::PLAIN }, &mut Vec::new()).unwrap();
        }
    }
}

#[test]
fn result() {
    let run = a_run();
    let files = run.files(&run.run_folder());
    let seeds = files.iter().filter(|(name, _)| name.ends_with("result.json")).map(|(_, text)| text.clone());
    let seeds: Vec<Vec<u8>> = seeds.collect();
    let path = run.path("damaged.json");
    let record = RunFolder::open(&run.path(&run.run_folder())).record().unwrap();
    hunt("result reader", Form::Json, &seeds, |input| {
        put(&path, input);
        let result: TrialResult = match read_json(&path) {
            Ok(result) => result,
            Err(error) => return told(&error),
        };
        show::result(&record, &path, &result, &Look::PLAIN, &mut Vec::new()).unwrap();
        let again: TrialResult = serde_json::from_slice(&serde_json::to_vec(&result).unwrap()).unwrap();
        if again == result { Ok(Took::Accepted) } else { Err("what was written is read otherwise".to_owned()) }
    });
}

#[test]
fn run_record() {
    let run = a_run();
    let path = run.path(&run.run_folder());
    let folder = RunFolder::open(&path);
    let results = folder.results(&folder.record().unwrap()).unwrap();
    let seed = fs::read(path.join("run.json")).unwrap();
    hunt("run record reader", Form::Json, &[seed], |input| {
        put(&path.join("run.json"), input);
        let record = match folder.record() {
            Ok(record) => record,
            Err(error) => return told(&error),
        };
        reported(&record, results.clone(), &path);
        let again: RunRecord = serde_json::from_slice(&serde_json::to_vec(&record).unwrap()).unwrap();
        if again == record { Ok(Took::Accepted) } else { Err("what was written is read otherwise".to_owned()) }
    });
}

/// Damaged `results.jsonl` is never believed beyond what the journal says; the trials' own results stand in for it.
#[test]
fn results() {
    let run = a_run();
    let path = run.path(&run.run_folder());
    let folder = RunFolder::open(&path);
    let record = folder.record().unwrap();
    let seed = fs::read(path.join("results.jsonl")).unwrap();
    let keys = |results: &[TrialResult]| results.iter().map(|it| (it.case.clone(), it.trial, it.attempt)).collect();
    let expected: Vec<_> = keys(&folder.results(&record).unwrap());
    hunt("results reader", Form::Json, &[seed], |input| {
        put(&path.join("results.jsonl"), input);
        let results = folder.results(&record).map_err(|error| error.to_string())?;
        let known: Vec<_> = keys(&results);
        if known != expected {
            return Err(format!("{known:?} are not {expected:?}"));
        }
        reported(&record, results, &path);
        let kept = fs::read(path.join("results.jsonl")).unwrap() == input;
        Ok(if kept { Took::Accepted } else { Took::Rejected })
    });
}
