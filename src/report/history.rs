//! The history of cells over the runs of a folder: score, cost, time, and where figures before and after do not compare.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::cells::{Cell, CellFolds};
use super::grid;
use super::list::ListForm;
use super::page::Table;
use super::text::{Look, one_line, plural};
use super::unfinished::Unfinished;
use super::{figures, mixed, text};
use crate::case::digest::is_same;
use crate::grader;
use crate::ids::{CellId, TrialRecord, column_name, trials_by_case};
use crate::result::TrialResult;
use crate::run::{CaseRecord, RunRecord};
use crate::snapshot::store;
use crate::text::some_of;
use crate::trace::amount::Amount;

/// The maximum number of runs whose scores are drawn.
const DRAWN: usize = 40;
/// The maximum number of marks that are explained below the table.
const EXPLAINED: usize = 12;

/// The history of all cells.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct History {
    /// The cells, by case, harness and arm.
    pub cells: Vec<CellHistory>,
}

/// The history of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellHistory {
    /// Case, harness and arm.
    #[serde(flatten)]
    pub id: CellId,
    /// A point for each run, the oldest first.
    pub points: Vec<Point>,
}

/// A cell in one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Point {
    /// The id of the run.
    pub run: String,
    /// The time at which the run began, in RFC 3339 and UTC.
    pub at: String,
    /// The mean score of the trials that have one. Absent if none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The number of trials that passed.
    pub passes: usize,
    /// The number of trials that were run.
    pub trials: usize,
    /// The number of planned trials that were not run, such as after `--max-time`. Absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_run: usize,
    /// The cost of the trials in US dollars, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// The number of trials whose cost is unknown or a lower bound, so that `cost_usd` is a lower bound. Absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    cost_unknown: usize,
    /// The median duration of the trials, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// True if trials both passed and failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// True if the case was in quarantine: its verdicts did not count. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quarantined: bool,
    /// Changes since the previous point that make the figures before and after incomparable.
    pub breaks: Vec<Break>,
}

/// A change between two runs after which figures do not compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Break {
    /// The case, its graders or its files.
    Case,
    /// An input of the agent that is not in the files of the case: the commit of the workspace, the policy, the limits
    /// or the environment.
    Inputs,
    /// The version of the agent, or what its variant overrides.
    Agent,
    /// The model that answered.
    Model,
    /// A file on which grades depend: a calibration, or an accepted snapshot with which a grader compares.
    Grader,
    /// The price table.
    Prices,
}

impl Break {
    pub fn word(self) -> &'static str {
        match self {
            Self::Case => "case",
            Self::Inputs => "inputs",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Grader => "grader",
            Self::Prices => "prices",
        }
    }
}

/// The inputs on which a cell's figures depend in a run.
#[derive(Debug, Clone, Default)]
struct MadeBy {
    /// The changes between the trials of the run: figures of different versions compare with none.
    mixed: BTreeSet<Break>,
    case: String,
    /// The digest of the agent's inputs, and the limits and the policy.
    played: Option<String>,
    /// The names of the user's environment variables that the agents got.
    env: BTreeSet<String>,
    judged_by: BTreeMap<PathBuf, String>,
    agents: BTreeSet<String>,
    /// The models that answered.
    models: BTreeSet<String>,
    variant: Option<String>,
    prices: Option<String>,
}

impl MadeBy {
    /// Returns the inputs that differ. An input that is unknown on one side does not count as different.
    fn breaks(&self, before: &Self) -> Vec<Break> {
        let differ =
            |now: &BTreeSet<String>, before: &BTreeSet<String>| !now.is_empty() && !before.is_empty() && now != before;
        let agent = differ(&self.agents, &before.agents);
        let known = |now: &Option<String>, before: &Option<String>| now.is_some() && before.is_some() && now != before;
        let mixed = |it: Break| self.mixed.contains(&it) || before.mixed.contains(&it);
        let is_case = !is_same(&self.case, &before.case) || mixed(Break::Case);
        let played = self.played.as_ref().zip(before.played.as_ref());
        let has_other_inputs = played.is_some_and(|(now, before)| !is_same(now, before));
        let differs = [
            (Break::Case, is_case),
            (Break::Inputs, self.env != before.env || (!is_case && has_other_inputs)),
            (Break::Agent, agent || self.variant != before.variant || mixed(Break::Agent)),
            (Break::Model, differ(&self.models, &before.models)),
            (Break::Grader, differs_in_part(&self.judged_by, &before.judged_by)),
            (Break::Prices, known(&self.prices, &before.prices) || mixed(Break::Prices)),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(it, _)| it).collect()
    }

    /// Fills in facts from an earlier run that this run does not have, such as the version of an agent that never
    /// started.
    fn or(mut self, before: &Self) -> Self {
        if self.agents.is_empty() {
            self.agents.clone_from(&before.agents);
        }
        if self.models.is_empty() {
            self.models.clone_from(&before.models);
        }
        self.prices = self.prices.or_else(|| before.prices.clone());
        self.played = self.played.or_else(|| before.played.clone());
        for (file, digest) in &before.judged_by {
            self.judged_by.entry(file.clone()).or_insert_with(|| digest.clone());
        }
        self
    }
}

/// The agents, models and graders of a cell's trials in a run.
#[derive(Debug, Default)]
struct CellInputs {
    agents: BTreeSet<String>,
    models: BTreeSet<String>,
    /// True if a grader compared a trial with the accepted snapshot.
    by_snapshot: bool,
}

/// Returns true if a file differs that both runs have recorded.
fn differs_in_part(now: &BTreeMap<PathBuf, String>, before: &BTreeMap<PathBuf, String>) -> bool {
    now.iter().any(|(file, digest)| before.get(file).is_some_and(|earlier| earlier != digest))
}

/// Returns the recorded files that a cell is graded by: those of its case, without the snapshots of other cells. Its own
/// snapshot is one of them only if a grader compares with it (`by_snapshot`).
fn judged_by(
    case: &CaseRecord,
    trials: &[&TrialRecord],
    (cell, by_snapshot): (&CellId, bool),
) -> BTreeMap<PathBuf, String> {
    // A run may have been copied, so only the end of a path is compared.
    let folder = store::folder(&case.path).file_name().map(PathBuf::from).unwrap_or_default();
    let snapshot = |trial: &&TrialRecord| store::file(&folder, &trial.harness, trial.arm_of()).ok();
    let own = trials.iter().filter(|trial| by_snapshot && trial.cell() == *cell);
    let own: BTreeSet<PathBuf> = own.filter_map(snapshot).collect();
    let others: BTreeSet<PathBuf> = trials.iter().filter_map(snapshot).filter(|file| !own.contains(file)).collect();
    case.judged_by.clone().into_iter().filter(|(file, _)| !others.iter().any(|other| file.ends_with(other))).collect()
}

/// Collects the history of cells, run by run.
#[derive(Debug, Default)]
pub struct Collector {
    cells: BTreeMap<(String, String, String), (CellHistory, MadeBy)>,
}

impl Collector {
    /// Adds a run; the oldest comes first. Runs that were made from another run are left out. `unfinished` are its attempts
    /// without a result.
    pub fn add(&mut self, run: &RunRecord, results: &[TrialResult], unfinished: &[Unfinished<'_>]) {
        if run.derived_from.is_some() || run.graded {
            return;
        }
        let mut folds = CellFolds::new(run);
        for result in results {
            folds.add(result);
        }
        unfinished.iter().for_each(|found| folds.add_unfinished(found.trial, &found.attempts));
        let (cells, _) = folds.all(run);
        let mut inputs: BTreeMap<CellId, CellInputs> = BTreeMap::new();
        for result in results {
            let agent =
                result.agent.as_ref().and_then(|agent| Some(format!("{} {}", agent.name, agent.version.as_ref()?)));
            let inputs = inputs.entry(result.cell()).or_default();
            inputs.agents.extend(agent);
            inputs.models.extend(result.model_that_answered().map(str::to_owned));
            inputs.by_snapshot |= result.grades.iter().any(|grade| grader::Kind::needs_of(&grade.grader).snapshots);
        }
        let planned = trials_by_case(&run.trials);
        // An interrupted attempt has cost something.
        let begun: BTreeSet<CellId> = unfinished.iter().map(|found| found.trial.cell()).collect();
        let is_run = |cell: &&Cell| cell.tally.trials > cell.tally.not_run || begun.contains(&cell.id);
        for cell in cells.iter().filter(is_run) {
            let of_case = planned.get(&*cell.id.case).map(Vec::as_slice).unwrap_or_default();
            self.add_cell(run, cell, of_case, inputs.remove(&cell.id).unwrap_or_default());
        }
    }

    fn add_cell(&mut self, run: &RunRecord, cell: &Cell, of_case: &[&TrialRecord], inputs: CellInputs) {
        let case = run.case(&cell.id.case);
        let arm = run.arms.iter().find(|arm| arm.name == cell.id.arm);
        let mixed = [
            (Break::Case, case.is_some_and(|case| case.mixed)),
            (Break::Agent, arm.is_some_and(|arm| arm.mixed)),
            (Break::Prices, mixed::has_mixed_prices(run)),
        ];
        let made = MadeBy {
            mixed: mixed.into_iter().filter(|(_, holds)| *holds).map(|(it, _)| it).collect(),
            case: case.map(|case| case.digest.clone()).unwrap_or_default(),
            played: case.and_then(|case| case.played.clone()),
            env: run.options.env.iter().cloned().collect(),
            judged_by: case.map(|case| judged_by(case, of_case, (&cell.id, inputs.by_snapshot))).unwrap_or_default(),
            agents: inputs.agents,
            models: inputs.models,
            variant: arm.map(|arm| arm.digest.clone()),
            prices: run.prices.as_ref().map(|prices| prices.digest.clone()),
        };
        let key = (cell.id.case.clone(), cell.id.harness.clone(), cell.id.arm.clone());
        let new = || (CellHistory { id: cell.id.clone(), points: Vec::new() }, made.clone());
        let (history, before) = self.cells.entry(key).or_insert_with(new);
        // The first run has none before it.
        let breaks = if history.points.is_empty() { Vec::new() } else { made.breaks(before) };
        *before = made.or(before);
        history.points.push(Point {
            run: run.run.clone(),
            at: run.started.clone(),
            score: cell.score,
            passes: cell.tally.passed,
            trials: cell.tally.trials.saturating_sub(cell.tally.not_run),
            not_run: cell.tally.not_run,
            cost_usd: cell.figures.cost().map(Amount::value),
            cost_unknown: cell.figures.cost_unknown,
            duration_ms: cell.figures.median_duration_ms,
            flaky: cell.flaky(),
            quarantined: cell.quarantine.is_some(),
            breaks,
        });
    }

    /// Returns the history of the cells whose case is wanted.
    pub fn history(self, wanted: impl Fn(&str) -> bool) -> History {
        let cells = self.cells.into_values().map(|(history, _)| history);
        History { cells: cells.filter(|cell| wanted(&cell.id.case)).collect() }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Point {
    /// Returns the cost of the trials in US dollars. Returns `None` if no trial reported any of it.
    pub fn cost(&self) -> Option<Amount<f64>> {
        self.cost_usd.map(|cost| Amount::new(cost, self.cost_unknown == 0))
    }

    /// Returns the number of trials that passed, of those that were run, and the number of those that were not run.
    pub fn passed(&self) -> String {
        let not_run = if self.not_run == 0 { String::new() } else { format!(", {} not run", self.not_run) };
        format!("{}/{}{not_run}", self.passes, self.trials)
    }
}

impl CellHistory {
    /// Returns the scores as one sign each, with `|` where figures before and after do not compare, and `q` after those in
    /// quarantine.
    fn drawn(&self, look: &Look) -> String {
        let signs: Vec<char> =
            if look.unicode { "▁▂▃▄▅▆▇█".chars().collect() } else { "0123456789".chars().collect() };
        let mut text = String::new();
        for point in self.points.iter().skip(self.points.len().saturating_sub(DRAWN)) {
            if !point.breaks.is_empty() {
                text.push('|');
            }
            let sign = point.score.and_then(|score| signs.get(height(score, signs.len())));
            text.push(sign.copied().unwrap_or('x'));
            if point.quarantined {
                text.push('q');
            }
        }
        text
    }
}

/// Returns the place of the sign for a score, of so many signs. The lowest and the highest sign are for 0 and 1 alone.
fn height(score: f64, signs: usize) -> usize {
    let last = signs.saturating_sub(1);
    match score {
        score if score <= 0.0 => 0,
        score if score >= 1.0 => last,
        score => ((score * last as f64).round() as usize).clamp(1, last.saturating_sub(1).max(1)),
    }
}

/// Writes the history.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(history: &History, form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    let ListForm::Table(look) = form else {
        serde_json::to_writer_pretty(&mut *out, history)?;
        return out.write_all(b"\n");
    };
    let mut table = Table::new(["case", "column", "runs", "scores", "last", "passed", "time", "cost", "flaky"]);
    table = table.right([2, 4, 5, 6, 7]).spare([8, 7, 6, 5, 2]);
    for cell in &history.cells {
        let Some(last) = cell.points.last() else { continue };
        let flaky = cell.points.iter().filter(|point| point.flaky).count();
        let time = last.duration_ms.map_or_else(|| look.unknown().to_owned(), text::duration);
        let cost = figures::cost(last.cost(), &look);
        table.row([
            one_line(&cell.id.case, 200, &look),
            one_line(&column_name(&cell.id.harness, &cell.id.arm), 200, &look),
            cell.points.len().to_string(),
            cell.drawn(&look),
            figures::score(last.score, &look),
            last.passed(),
            time,
            cost,
            if flaky == 0 { String::new() } else { format!("{flaky} of {}", plural(cell.points.len(), "run")) },
        ]);
    }
    grid::write(&table, &look, out)?;
    explain(history, &look, out)
}

/// Writes the meaning of the marks, and further remarks for the reader.
fn explain(history: &History, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut explanations: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for cell in &history.cells {
        for point in cell.points.iter().filter(|point| !point.breaks.is_empty()) {
            let words: Vec<&str> = point.breaks.iter().map(|it| it.word()).collect();
            let name = one_line(&cell.id.to_string(), 200, look);
            explanations.entry((&point.run, words.join(", "))).or_default().push(name);
        }
    }
    if !explanations.is_empty() {
        writeln!(out, "\n| marks a change after which figures do not compare with those before:")?;
    }
    for ((run, words), cells) in explanations.iter().rev().take(EXPLAINED) {
        writeln!(out, "  {run}  {words} changed: {}", some_of(cells, 3))?;
    }
    if explanations.len() > EXPLAINED {
        writeln!(out, "  and {} earlier; see all with --format json", explanations.len() - EXPLAINED)?;
    }
    if history.cells.iter().any(|cell| cell.points.iter().any(|point| point.score.is_none())) {
        writeln!(out, "\nx marks a run in which the cell has no score")?;
    }
    if history.cells.iter().any(|cell| cell.points.iter().any(|point| point.quarantined)) {
        writeln!(out, "\nq marks a run in which the case was in quarantine: its verdicts did not count")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_score_of_0_or_1_has_the_lowest_or_the_highest_sign() {
        assert_eq!([0.0, 0.001, 0.05, 0.5, 0.95, 0.999, 1.0].map(|score| height(score, 8)), [0, 1, 1, 4, 6, 6, 7]);
        assert_eq!([0.0, 0.01, 0.99, 1.0].map(|score| height(score, 10)), [0, 1, 8, 9]);
    }
}
