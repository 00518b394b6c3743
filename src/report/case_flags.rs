//! Flags of the cases of a run: saturated, broken, flaky. Pure.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::cells::Cell;
use crate::case::CaseKind;
use crate::fold::CaseFlag;
use crate::run::RunRecord;
use crate::text::some_of;

/// A case of a run, with the flags that follow from its trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseFlags {
    /// Id of the case.
    pub case: String,
    /// The purpose of the case.
    pub kind: CaseKind,
    /// The flags; usually none.
    pub flags: Vec<RunFlag>,
}

/// A flag of a case, for readers of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, schemars(rename = "Flag"))]
pub enum RunFlag {
    /// A capability case that every planned trial of every harness and model passed, two or more of each: it no longer
    /// distinguishes them.
    Saturated,
    /// No trial of any harness and model passed, and two or more of one of them failed: perhaps the case cannot be
    /// solved.
    Broken,
    /// The case both passed and failed: within one cell, or between this run and the run before.
    Flaky,
}

impl From<CaseFlag> for RunFlag {
    fn from(flag: CaseFlag) -> Self {
        match flag {
            CaseFlag::Saturated => Self::Saturated,
            CaseFlag::Broken => Self::Broken,
        }
    }
}

/// Returns the flags of each case, in the order of the plan. `again` has the cases with a trial that passed after it had
/// failed before.
pub fn of_cases(run: &RunRecord, again: &HashSet<String>, cells: &[Cell]) -> Vec<CaseFlags> {
    let mut by_case: HashMap<&str, Vec<&Cell>> = HashMap::new();
    for cell in cells {
        by_case.entry(&cell.id.case).or_default().push(cell);
    }
    run.cases
        .iter()
        .map(|case| {
            let cells: &[&Cell] = by_case.get(&*case.id).map(Vec::as_slice).unwrap_or_default();
            let mut flags = Vec::new();
            // A rerun of failed trials shows nothing about the case as a whole.
            if run.derived_from.is_none() || run.graded {
                flags.extend(CaseFlag::of(case.kind, cells.iter().map(|cell| cell.tally)).map(RunFlag::from));
            }
            if again.contains(&case.id) || cells.iter().any(|cell| cell.flaky()) {
                flags.push(RunFlag::Flaky);
            }
            CaseFlags { case: case.id.clone(), kind: case.kind, flags }
        })
        .collect()
}

/// Returns the notes on cases with flags. Flaky cases are noted with their cells instead.
pub fn notes(cases: &[CaseFlags]) -> Vec<String> {
    let named = |flag: RunFlag| -> Vec<String> {
        cases.iter().filter(|it| it.flags.contains(&flag)).map(|it| it.case.clone()).collect()
    };
    let mut notes = Vec::new();
    let saturated = named(RunFlag::Saturated);
    if !saturated.is_empty() {
        notes.push(format!(
            "saturated, capability cases that every trial passes: {}; make them harder, or regression cases",
            some_of(&saturated, 5)
        ));
    }
    let broken = named(RunFlag::Broken);
    if !broken.is_empty() {
        notes.push(format!(
            "possibly broken: no trial passes {}; check with `evals check --audit` whether one can",
            some_of(&broken, 5)
        ));
    }
    notes
}
