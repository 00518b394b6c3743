//! The activation of skills: whether they were used in the trials whose `skills` grader says that they should be, or
//! should not be.

use std::collections::BTreeMap;

use serde::Serialize;

use super::compare::words::{percent, percent_interval};
use super::page::{Block, Table};
use crate::ids::ColumnId;
use crate::result::TrialResult;
use crate::statistics::rates::wilson;
use crate::statistics::{Interval, LEVEL};

/// The activation of a skill in a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Activation {
    /// The harness and the arm.
    pub column: ColumnId,
    /// The name of the skill.
    pub skill: String,
    /// Trials in which the skill should be used and was.
    pub used: u64,
    /// Trials in which the skill should be used and was not.
    pub missed: u64,
    /// Trials in which the skill should not be used and was.
    pub used_wrongly: u64,
    /// Trials in which the skill should not be used and was not.
    pub left_alone: u64,
    /// Trials whose use of the skill is unknown; they are in none of the other numbers.
    pub unknown: u64,
    /// The share of uses that were right. Null if the skill was never used.
    pub precision: Option<Share>,
    /// Of the trials that should use the skill, the share that did. Null if there are none.
    pub recall: Option<Share>,
}

/// A share with its 95 % interval (Wilson). Each trial counts, so the interval is too narrow if cases have several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    /// The share, from 0 to 1.
    pub value: f64,
    /// The 95 % confidence interval of the share.
    pub interval: Option<Interval>,
}

impl Share {
    fn of(part: u64, all: u64) -> Option<Self> {
        (all > 0).then(|| Self { value: part as f64 / all as f64, interval: wilson(part, all, LEVEL) })
    }
}

/// The activations so far, in the order of the results. Errored trials count in nothing: a call that failed says nothing
/// about a skill.
#[derive(Debug, Default)]
pub struct Activations {
    found: Vec<Activation>,
    places: BTreeMap<(ColumnId, String), usize>,
}

impl Activations {
    /// Counts the skills in a result.
    pub(super) fn add(&mut self, result: &TrialResult) {
        for it in result.grades.iter().flat_map(|grade| &grade.skills) {
            let column = result.cell().column();
            let at = *self.places.entry((column.clone(), it.skill.clone())).or_insert_with(|| {
                self.found.push(Activation {
                    column,
                    skill: it.skill.clone(),
                    used: 0,
                    missed: 0,
                    used_wrongly: 0,
                    left_alone: 0,
                    unknown: 0,
                    precision: None,
                    recall: None,
                });
                self.found.len() - 1
            });
            let Some(row) = self.found.get_mut(at) else { continue };
            match (it.expected, it.used) {
                (_, None) => row.unknown += 1,
                (true, Some(true)) => row.used += 1,
                (true, Some(false)) => row.missed += 1,
                (false, Some(true)) => row.used_wrongly += 1,
                (false, Some(false)) => row.left_alone += 1,
            }
        }
    }

    /// Returns the activation of each skill in each column.
    pub(super) fn all(mut self) -> Vec<Activation> {
        for row in &mut self.found {
            row.precision = Share::of(row.used, row.used + row.used_wrongly);
            row.recall = Share::of(row.used, row.used + row.missed);
        }
        self.found
    }
}

/// Returns the table of activations; empty if no grader names a skill.
pub fn block(activations: &[Activation]) -> Block {
    let unknown = activations.iter().any(|row| row.unknown > 0);
    let mut head = vec!["skill", "", "should: used", "missed", "should not: used", "left alone"];
    head.extend(unknown.then_some("unknown"));
    head.extend(["precision", "recall"]);
    let mut table = Table::new(head).right(2..=if unknown { 6 } else { 5 });
    let share = |share: Option<Share>| match share {
        Some(Share { value, interval: Some(interval) }) => format!("{} {}", percent(value), percent_interval(interval)),
        Some(Share { value, interval: None }) => percent(value),
        None => "-".to_owned(),
    };
    for row in activations {
        let mut cells = vec![row.skill.clone(), row.column.to_string()];
        cells.extend([row.used, row.missed, row.used_wrongly, row.left_alone].map(|count| count.to_string()));
        cells.extend(unknown.then(|| row.unknown.to_string()));
        cells.extend([share(row.precision), share(row.recall)]);
        table.row(cells);
    }
    Block::Table(table)
}
