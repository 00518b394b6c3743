//! Formats figures of a report: scores, intervals, completion, time, cost and tokens. An unknown figure is
//! never shown as 0.

use super::cells::{Column, Figures, ScoreInterval};
use super::text::{Look, count, duration, money};
use crate::rounding;

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
            format!("{completed}/{trials} ({}%)", whole_percent(completed, trials))
        },
    )
}

/// Returns a share in whole percent, rounded down: only a full share is 100, and only an empty one is 0. It is computed from
/// whole numbers, because 0.58 * 100.0 is below 58.
fn whole_percent(part: usize, all: usize) -> String {
    match part * 100 / all.max(1) {
        0 if part > 0 => "<1".to_owned(),
        percent => percent.to_string(),
    }
}

/// Formats time, cost and tokens. If some trials are missing from a sum, it is shown as a lower bound.
pub fn taken(figures: &Figures, look: &Look) -> [String; 3] {
    let unknown = || look.unknown().to_owned();
    [
        figures.median_duration_ms.map_or_else(unknown, duration),
        at_least(figures.cost_usd, figures.cost_unknown, look),
        figures
            .tokens
            .map_or_else(unknown, |tokens| format!("{}{}", sign_of_bound(figures.tokens_unknown, look), count(tokens))),
    ]
}

/// Formats a cost, which is a lower bound if that of a trial is unknown.
pub fn at_least(cost_usd: Option<f64>, unknown: usize, look: &Look) -> String {
    cost_usd
        .map_or_else(|| look.unknown().to_owned(), |cost| format!("{}{}", sign_of_bound(unknown, look), money(cost)))
}

fn sign_of_bound(unknown: usize, look: &Look) -> &'static str {
    if unknown > 0 { look.sign("≥", ">=") } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_no_further() {
        let shares = [(29, 50), (57, 100), (29, 100), (2, 3), (199, 200), (1, 200), (0, 3), (3, 3), (0, 0)];
        let shown = shares.map(|(part, all)| whole_percent(part, all));
        assert_eq!(shown, ["58", "57", "29", "66", "99", "<1", "0", "100", "0"]);
    }
}
