//! Reports of a run: [`Report`] is the model from which every format is written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::compare::gate::{self, Gate};
use crate::compare::self_check::SelfCheck;
use crate::ids::{TrialId, TrialRecord};
use crate::result::TrialResult;
use crate::run::folder::RunFolder;
use crate::run::{RunError, RunRecord};
use crate::snapshot::compare::Compared;
use crate::verdict::Verdict;

pub mod activation;
pub mod asked;
pub mod audit;
pub mod benchmark;
pub mod calibration;
pub mod cells;
pub mod commands;
pub mod compare;
pub mod conformance;
pub mod decisions;
pub mod escape;
pub mod event_line;
pub mod explain;
pub mod figures;
pub mod format;
pub mod gates;
pub mod gathered;
pub mod github;
pub mod grid;
pub mod history;
pub mod html;
pub mod json;
pub mod junit;
pub mod list;
pub mod mine;
pub mod mixed;
pub mod notes;
pub mod page;
pub mod parity;
pub mod problems;
pub mod progress;
pub mod results;
pub mod run_page;
pub mod show;
pub mod snapshots;
pub mod case_flags;
pub mod stored;
pub mod text;
pub mod unfinished;
pub mod whole;
pub mod note_facts;

use activation::Activation;
use asked::AskedModels;
use case_flags::CaseFlags;
use cells::{Cell, Column};
use decisions::Decision;
use gathered::{ColumnModels, Gathered, TrialInBrief};
use note_facts::NoteFacts;
use page::Meaning;
use results::Results;

/// A run and its results.
#[derive(Debug, Clone)]
pub struct Report {
    /// The plan, and the files and settings it was made from.
    pub run: Arc<RunRecord>,
    /// The run folder.
    pub folder: PathBuf,
    /// The results, in the order of the plan.
    pub results: Results,
    /// Each result in brief, in the order of the results.
    pub trials: Vec<TrialInBrief>,
    /// Counts and first examples from the results.
    pub note_facts: NoteFacts,
    /// The number of trials by verdict.
    pub summary: Summary,
    /// The cells (case × harness × arm), in the order of the plan.
    pub cells: Arc<[Cell]>,
    /// The columns (harness × arm), in the order of the plan.
    pub columns: Vec<Column>,
    /// The models of the columns that have results, in the order of the columns.
    pub models: Vec<ColumnModels>,
    /// The flags of the cases, in the order of the plan.
    pub cases: Vec<CaseFlags>,
    /// The usage of the models that the engine itself called.
    pub asked: AskedModels,
    /// Notes that a reader of the figures needs to know.
    pub notes: Vec<String>,
    /// The root of the repository, if known; services show paths of cases relative to it.
    pub root: Option<PathBuf>,
    /// The cells that were compared with their accepted snapshots.
    pub snapshots: Vec<Compared>,
    /// The requested gates. If there are any, they set the exit code instead of the cells.
    pub gates: Vec<Gate>,
    /// The activation of skills, if `skills` graders name any.
    pub activation: Vec<Activation>,
    /// The comparison of an arm with itself, if the run is one (`--aa`).
    pub aa: Option<SelfCheck>,
    /// Everything that can decide the exit code.
    pub decisions: Vec<Decision>,
    /// True if an engine is still using the run, and trials or the end of the run are missing.
    pub going_on: bool,
    /// True if every planned trial has a result, and the run did not reach its end: its snapshots may not have been compared or
    /// accepted, and a run with `--trials auto` may lack trials.
    pub lacks_end: bool,
    /// The reason why the engine could not finish the run, if it could not.
    pub broken_off: Option<String>,
    /// The exit code of the command, if it does not follow from the exit decisions: the user interrupted the run, or it broke
    /// off.
    pub exit_code: Option<u8>,
}

/// Data about a run besides its results.
#[derive(Debug, Clone, Default)]
pub struct RunContext {
    /// The cells that were compared with their accepted snapshots.
    pub snapshots: Vec<Compared>,
    /// Further notes.
    pub notes: Vec<String>,
    /// The root of the repository, if known.
    pub root: Option<PathBuf>,
    /// The reason why the engine could not finish the run, if it could not.
    pub broken_off: Option<String>,
    /// The exit code of the command, if it does not follow from the results.
    pub exit_code: Option<u8>,
    /// True if the run did not reach its end.
    pub lacks_end: bool,
}

/// The number of trials by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// Trials that passed.
    pub pass: usize,
    /// Trials that failed.
    pub fail: usize,
    /// Trials that could not be graded.
    pub ungraded: usize,
    /// Trials in which the agent, or something it needs, failed.
    pub errored: usize,
    /// Trials that were skipped because of requirements of their cases.
    pub skipped: usize,
    /// Trials that never started because the run ended before.
    pub not_run: usize,
}

impl Summary {
    /// Counts results.
    pub fn of(results: &[TrialResult], not_run: usize) -> Self {
        let mut summary = Summary { not_run, ..Summary::default() };
        results.iter().for_each(|result| summary.add(result.verdict));
        summary
    }

    /// Counts a result.
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Pass => self.pass += 1,
            Verdict::Fail => self.fail += 1,
            Verdict::Ungraded => self.ungraded += 1,
            Verdict::Errored => self.errored += 1,
            Verdict::Skipped => self.skipped += 1,
        }
    }

    /// Returns the counts that are not zero, with their meaning.
    pub fn parts(&self) -> Vec<(Meaning, String)> {
        let counts = [
            (self.pass, "passed", Meaning::Verdict(Verdict::Pass)),
            (self.fail, "failed", Meaning::Verdict(Verdict::Fail)),
            (self.ungraded, "ungraded", Meaning::Verdict(Verdict::Ungraded)),
            (self.errored, "errored", Meaning::Verdict(Verdict::Errored)),
            (self.skipped, "skipped", Meaning::Quiet),
            (self.not_run, "not run", Meaning::Quiet),
        ];
        let shown = counts.into_iter().filter(|(number, word, _)| *number > 0 || *word == "passed");
        shown.map(|(number, word, meaning)| (meaning, format!("{number} {word}"))).collect()
    }

    /// Returns the number of all trials, including those that were not run.
    pub fn trials(&self) -> usize {
        self.pass + self.fail + self.ungraded + self.errored + self.skipped + self.not_run
    }

    /// Returns how far a run has come that is going on.
    fn state_so_far(&self) -> String {
        let planned = self.trials() - self.skipped;
        format!("going on: {} of {} so far", planned - self.not_run, text::plural(planned, "trial"))
    }
}

impl Report {
    /// Makes the report of a run from its plan, the results of the finished trials, the number of trials that
    /// never started, and its folder.
    pub fn new(run: &RunRecord, results: Vec<TrialResult>, not_run: usize, folder: &Path) -> Self {
        Self::with(Arc::new(run.clone()), results, not_run, folder, RunContext::default())
    }

    /// Makes the report of a run, with data besides its results.
    pub fn with(
        run: Arc<RunRecord>,
        results: Vec<TrialResult>,
        not_run: usize,
        folder: &Path,
        beside: RunContext,
    ) -> Self {
        let stored = RunFolder::open(folder);
        let mut gathered = Gathered::new(&run);
        results.iter().for_each(|result| gathered.add_stored(result, &stored));
        Self::of(run, gathered, Results::Whole(results), not_run, folder, beside, false)
    }

    /// Makes the report of a stored run, which may be going on, from its results.
    pub fn of_stored(
        folder: &RunFolder,
        run: Arc<RunRecord>,
        results: Vec<TrialResult>,
        beside: RunContext,
        going_on: bool,
    ) -> Self {
        let not_run = run.trials.len().saturating_sub(results.len());
        let beside = RunContext { lacks_end: lacks_end(folder, &run), ..beside };
        let mut gathered = Gathered::new(&run);
        results.iter().for_each(|result| gathered.add_stored(result, folder));
        Self::of(run, gathered, Results::Whole(results), not_run, &folder.path, beside, going_on)
    }

    /// Makes the report of a stored run for any format but a page for a browser. Results are read again from
    /// `results.jsonl` when they are shown, if that file has them, so that a report of many trials needs little memory.
    ///
    /// # Errors
    /// Returns an error if the run cannot be read.
    pub fn of_folder(folder: &RunFolder, run: Arc<RunRecord>, beside: RunContext) -> Result<Self, RunError> {
        // Asked first: a run that ends in this moment has all of its results.
        let going_on = folder.is_in_use();
        let not_run = |results: usize| run.trials.len().saturating_sub(results);
        let begin = || Gathered::new(&run);
        match folder.fold_to_read_again(&run, begin, |gathered, result| gathered.add_stored(&result, folder)) {
            Some((gathered, stored)) => {
                let not_run = not_run(gathered.trials.len());
                let beside = RunContext { lacks_end: lacks_end(folder, &run), ..beside };
                Ok(Self::of(run, gathered, Results::Stored(stored), not_run, &folder.path, beside, going_on))
            }
            None => {
                let results = folder.results(&run)?;
                Ok(Self::of_stored(folder, run, results, beside, going_on))
            }
        }
    }

    /// Makes the report of a run from what was gathered of its results.
    fn of(
        run: Arc<RunRecord>,
        gathered: Gathered,
        results: Results,
        not_run: usize,
        folder: &Path,
        beside: RunContext,
        going_on: bool,
    ) -> Self {
        let Gathered { summary, mut cells, again, mut asked, halves, activation, mut note_facts, trials, models } =
            gathered;
        for found in unfinished::of(&run, &RunFolder::open(folder), cells.open(&run, &trials), going_on) {
            cells.add_unfinished(found.trial, &found.attempts);
            asked.add_unfinished(&found.attempts);
            note_facts.unfinished += usize::from(!found.is_running);
        }
        if not_run > 0 {
            note_facts.unknown_to_journal = RunFolder::open(folder).unknown_results(&run).unwrap_or_default();
        }
        let (cells, columns) = cells.all(&run);
        let summary = Summary { not_run, ..summary };
        let cases = case_flags::of_cases(&run, &again, &cells);
        let gates = gates::of_run(&run, &cells, &columns);
        let aa = halves.map(|halves| halves.compared(&run));
        let activation = activation.all();
        let mut report = Self {
            run,
            folder: folder.to_owned(),
            results,
            trials,
            note_facts,
            summary,
            cells: cells.into(),
            columns,
            models,
            cases,
            asked,
            notes: Vec::new(),
            root: beside.root,
            snapshots: beside.snapshots,
            gates,
            activation,
            aa,
            decisions: Vec::new(),
            going_on: going_on && (not_run > 0 || beside.lacks_end),
            lacks_end: beside.lacks_end && not_run == 0,
            broken_off: beside.broken_off,
            exit_code: beside.exit_code,
        };
        report.notes = notes::of(&report);
        report.notes.extend(beside.notes);
        report.decisions = decisions::of(&report);
        report
    }

    /// Returns how far a run has come that is going on.
    pub fn state_so_far(&self) -> String {
        self.summary.state_so_far()
    }

    /// Returns true if the policy of any trial is `manual`. Comparisons leave such a run out.
    pub fn is_manual(&self) -> bool {
        self.run.manual || self.note_facts.manual
    }

    /// Returns the places of the results of each cell, in the order of the cells.
    pub fn places_by_cell(&self) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new(); self.cells.len()];
        for (place, trial) in self.trials.iter().enumerate() {
            if let Some(of_cell) = places.get_mut(trial.cell) {
                of_cell.push(place);
            }
        }
        places
    }

    /// Returns the cells of each case, in the order of the plan.
    pub fn cells_by_case(&self) -> Vec<(&str, Vec<&Cell>)> {
        let mut cases: Vec<(&str, Vec<&Cell>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for cell in self.cells.iter() {
            let place = *places.entry(&cell.id.case).or_insert_with(|| {
                cases.push((&cell.id.case, Vec::new()));
                cases.len() - 1
            });
            if let Some((_, cells)) = cases.get_mut(place) {
                cells.push(cell);
            }
        }
        cases
    }

    pub fn trial_folder(&self, trial: &TrialId) -> Option<PathBuf> {
        RunFolder::open(&self.folder).stored_trial(trial).ok()
    }

    /// Returns the identity of a trial.
    pub fn id_of(&self, trial: &TrialInBrief) -> Option<TrialId> {
        let cell = &self.cells.get(trial.cell)?.id;
        let (case, harness, arm) = (cell.case.clone(), cell.harness.clone(), cell.arm.clone());
        Some(TrialId { case, harness, arm, trial: trial.trial })
    }
}

/// Returns true if a stored run did not reach its end, or if that is unknown.
fn lacks_end(folder: &RunFolder, run: &RunRecord) -> bool {
    folder.lacks_end(run).unwrap_or(true)
}

/// Returns the exit code of a report. 1 if a snapshot differs. Otherwise, the exit code of the gates, if there
/// are any. Otherwise, by the cells: 1 if one failed; 3 if one could not be graded or compared, was not run
/// completely, or nothing ran at all; else 0.
pub fn exit_code(report: &Report) -> u8 {
    report.exit_code.unwrap_or_else(|| gate::exit_code(decisions::outcome(&report.decisions)))
}

/// Returns the planned trials that a name selects: a full name, or its beginning up to a `/`, such as the id of
/// a case.
pub fn trials_named<'a>(run: &'a RunRecord, name: &str) -> Vec<&'a TrialRecord> {
    let name = name.trim_end_matches('/');
    let meant = |trial: &&TrialRecord| {
        let whole = trial.id().to_string();
        whole.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // If the name is a case and also the folder of other cases, it selects the trials of the case itself.
    let of_case: Vec<_> = run.trials.iter().filter(|trial| trial.case == name).collect();
    if of_case.is_empty() { run.trials.iter().filter(meant).collect() } else { of_case }
}
