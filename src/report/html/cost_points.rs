//! The points of the chart of cost and score: the columns of a run, over the cases that all of them completed. Pure.

use std::collections::BTreeMap;

use crate::report::cells::{Cell, Column};
use crate::statistics::means::mean;

/// The points of the chart. Scores and costs of different cases do not compare, so all points are over the same cases.
#[derive(Debug)]
pub(super) struct CostPoints<'a> {
    /// The cost per trial in US dollars and the score of each column whose costs are all known.
    pub points: Vec<(f64, f64, &'a Column)>,
    /// The number of cases.
    pub cases: usize,
    /// True if a column has other cases as well.
    pub is_part: bool,
}

/// Returns the points of these columns. A case in quarantine counts for none.
pub(super) fn points<'a>(cells: &'a [Cell], columns: &'a [Column]) -> CostPoints<'a> {
    let cells_of = |column: &'a Column| -> BTreeMap<&'a str, &'a Cell> {
        let here = cells.iter().filter(|cell| cell.id.harness == column.id.harness && cell.id.arm == column.id.arm);
        let counted = here.filter(|cell| cell.quarantine.is_none() && cell.tally.trials > 0);
        counted.map(|cell| (&*cell.id.case, cell)).collect()
    };
    let has_costs = |cells: &BTreeMap<&str, &Cell>| {
        cells.values().all(|cell| cell.figures.cost_unknown_in_results == 0)
            && cells.values().any(|cell| cost_of(cell).is_some())
    };
    let scored = columns.iter().filter(|column| column.score.is_some()).map(|column| (column, cells_of(column)));
    let columns: Vec<(&Column, BTreeMap<&str, &Cell>)> = scored.filter(|(_, cells)| has_costs(cells)).collect();
    let all_completed =
        |case: &str| columns.iter().all(|(_, cells)| cells.get(case).is_some_and(|cell| is_complete(cell)));
    let cases = columns.first().into_iter().flat_map(|(_, cells)| cells.keys().copied());
    let cases: Vec<&str> = cases.filter(|case| all_completed(case)).collect();
    let mean_of = |cells: &BTreeMap<&str, &Cell>, figure: fn(&Cell) -> Option<f64>| {
        let figures = cases.iter().filter_map(|case| figure(cells.get(*case)?));
        mean(&figures.collect::<Vec<_>>())
    };
    let point = |(column, cells): &(&'a Column, BTreeMap<&str, &Cell>)| {
        Some((mean_of(cells, cost_of)?, mean_of(cells, |cell| cell.score)?, *column))
    };
    CostPoints {
        points: columns.iter().filter_map(point).collect(),
        cases: cases.len(),
        is_part: columns.iter().any(|(_, cells)| cells.len() > cases.len()),
    }
}

/// Returns the cost per trial. Trials that were not run and attempts without a result have no cost here.
fn cost_of(cell: &Cell) -> Option<f64> {
    cell.figures.cost_per_trial
}

/// Returns true if every trial that ran has a score and a known cost.
fn is_complete(cell: &Cell) -> bool {
    cell.tally.ungraded + cell.tally.errored == 0 && cell.score.is_some() && cost_of(cell).is_some()
}
