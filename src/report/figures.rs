//! Formats figures of a report: scores, intervals, completion, time, cost and tokens. An unknown figure is
//! never shown as 0.

use super::cells::{Column, Figures, ScoreInterval};
use super::text::{Look, count, duration, money};
use crate::rounding;
use crate::trace::amount::Amount;

/// Formats a score.
pub fn score(score: Option<f64>, look: &Look) -> String {
    score.map_or_else(|| look.unknown().to_owned(), rounding::share)
}

/// Formats an interval, such as `0.62–0.93`.
pub fn interval(interval: Option<ScoreInterval>, look: &Look) -> String {
    interval.map_or_else(
        || look.unknown().to_owned(),
        |it| format!("{}{}{}", rounding::share(it.low), look.sign("–", " to "), rounding::share(it.high)),
    )
}

/// Formats the number of a column's cases that passed.
pub fn passed(column: &Column) -> String {
    format!("{}/{} passed", column.cases_passed, column.cases)
}

/// Formats the number of a column's trials that have a score.
pub fn completion(column: &Column, look: &Look) -> String {
    column.completion.map_or_else(
        || look.unknown().to_owned(),
        |_| {
            let (completed, trials) = (column.tally.completed(), column.tally.trials);
            format!("{completed}/{trials} ({})", rounding::percent(completed as f64 / trials.max(1) as f64))
        },
    )
}

/// Formats time, cost and tokens. If some trials are missing from a sum, it is shown as a lower bound.
pub fn taken(figures: &Figures, look: &Look) -> [String; 3] {
    let unknown = || look.unknown().to_owned();
    [
        figures.median_duration_ms.map_or_else(unknown, duration),
        cost(figures.cost(), look),
        figures.tokens().map_or_else(unknown, |tokens| look.amount(tokens, count)),
    ]
}

/// Formats a cost.
pub fn cost(cost: Option<Amount<f64>>, look: &Look) -> String {
    cost.map_or_else(|| look.unknown().to_owned(), |cost| look.amount(cost, money))
}
