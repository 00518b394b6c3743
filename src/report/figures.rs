//! Figures of a Report in words: scores, intervals, completion, time, cost and tokens. An unknown one is never 0.

use super::cells::{Column, Figures, ScoreInterval};
use super::text::{Look, count, duration, money};
use crate::rounding;

/// A score.
pub fn score(score: Option<f64>, look: &Look) -> String {
    score.map_or_else(|| look.unknown().to_owned(), rounding::share)
}

/// An interval, such as `0.62–0.93`.
pub fn interval(interval: Option<ScoreInterval>, look: &Look) -> String {
    interval.map_or_else(
        || look.unknown().to_owned(),
        |it| format!("{}{}{}", rounding::share(it.low), look.sign("–", " to "), rounding::share(it.high)),
    )
}

/// How many of a column's cases passed.
pub fn passed(column: &Column) -> String {
    format!("{}/{} passed", column.cases_passed, column.cases)
}

/// How many of a column's trials ran and were not errored.
pub fn completion(column: &Column, look: &Look) -> String {
    column.completion.map_or_else(
        || look.unknown().to_owned(),
        |share| {
            // Only everything is 100 %, and only nothing is 0 %.
            let percent = match (share * 100.0).floor() {
                0.0 if share > 0.0 => "<1".to_owned(),
                percent => format!("{percent:.0}"),
            };
            format!("{}/{} ({percent}%)", column.tally.completed(), column.tally.trials)
        },
    )
}

/// Time, cost and tokens. A sum that some trials are missing from is at least that much.
pub fn taken(figures: &Figures, look: &Look) -> [String; 3] {
    let at_least = |unknown: usize| if unknown > 0 { look.sign("≥", ">=") } else { "" };
    let unknown = || look.unknown().to_owned();
    [
        figures.median_duration_ms.map_or_else(unknown, duration),
        figures.cost_usd.map_or_else(unknown, |cost| format!("{}{}", at_least(figures.cost_unknown), money(cost))),
        figures.tokens.map_or_else(unknown, |tokens| format!("{}{}", at_least(figures.tokens_unknown), count(tokens))),
    ]
}
