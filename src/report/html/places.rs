//! The places in the HTML report: `#/CASE/HARNESS/ARM/N` for each trial.

use std::collections::HashMap;

use super::live::Live;
use crate::ids::{CellId, TrialId};
use crate::report::whole::WholeReport;
use crate::result::TrialResult;
use crate::verdict::Verdict;

/// A planned trial, with its place and its result.
#[derive(Debug)]
pub struct Trial<'a> {
    pub id: TrialId,
    /// The place, without `#/`.
    pub place: String,
    /// The result. Absent for a trial that was not run.
    pub result: Option<&'a TrialResult>,
    /// True if the trial is running. Its result, if there is one, is that of an earlier attempt.
    pub running: bool,
}

/// The planned trials, and the trials of each cell, in the order of the plan.
#[derive(Debug)]
pub struct Places<'a> {
    pub trials: Vec<Trial<'a>>,
    by_cell: HashMap<CellId, Vec<usize>>,
}

impl<'a> Places<'a> {
    /// Returns the places of all planned trials of a run.
    pub fn of(report: WholeReport<'a>, live: Option<&Live>) -> Self {
        let results: HashMap<TrialId, &TrialResult> =
            report.all_results().iter().map(|result| (result.id(), result)).collect();
        let mut by_cell: HashMap<CellId, Vec<usize>> = HashMap::new();
        let mut trials = Vec::with_capacity(report.run.trials.len());
        for planned in &report.run.trials {
            let id = planned.id();
            by_cell.entry(planned.cell()).or_default().push(trials.len());
            let place = place(&id);
            let running = live.is_some_and(|live| live.running.contains_key(&place));
            trials.push(Trial { place, result: results.get(&id).copied(), id, running });
        }
        Self { trials, by_cell }
    }

    pub fn of_cell(&self, cell: &CellId) -> impl Iterator<Item = &Trial<'a>> {
        self.by_cell.get(cell).into_iter().flatten().filter_map(|at| self.trials.get(*at))
    }
}

impl Trial<'_> {
    /// Returns the verdict in a word.
    pub fn word(&self) -> &'static str {
        let none = if self.running { "running" } else { "not run" };
        self.result.map_or(none, |result| result.verdict.word())
    }

    /// Returns the verdict. Absent for a trial that was not run.
    pub fn verdict(&self) -> Option<Verdict> {
        self.result.map(|result| result.verdict)
    }
}

/// The words that divide a link: `PLACE/event/SEQ` and `PLACE/beside/PLACE`.
const DIVIDERS: [&str; 2] = ["beside", "event"];

/// Returns the place of a trial, without `#/`. A `/` of a case's id is not encoded.
pub fn place(id: &TrialId) -> String {
    let case: Vec<String> = id.case.split('/').map(encoded).collect();
    format!("{}/{}/{}/{}", case.join("/"), encoded(&id.harness), encoded(&id.arm), id.trial)
}

/// Encodes a part of a place, as folders of a run are named. The first letter of a word that divides links is encoded
/// as well, so that the names of cases, harnesses and arms never divide a link.
fn encoded(part: &str) -> String {
    let divides = DIVIDERS.contains(&part);
    let mut out = String::with_capacity(part.len());
    for (at, byte) in part.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if plain && !(divides && at == 0) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_the_parts_of_a_trial_apart() {
        let id =
            |case: &str, arm: &str| TrialId { case: case.into(), harness: "demo".into(), arm: arm.into(), trial: 2 };
        assert_eq!(place(&id("fix/off-by-one", "default")), "fix/off-by-one/demo/default/2");
        assert_eq!(place(&id("a b", "x/y#2")), "a%20b/demo/x%2Fy%232/2");
        assert_eq!(place(&id("a/beside/events", "event")), "a/%62eside/events/demo/%65vent/2");
    }
}
