//! A comparison in three plain lines: the changes, their certainty, and the cost.

use super::words::{points_interval, ratio};
use crate::compare::cases::Flag;
use crate::compare::doubts::About;
use crate::compare::effect::Verdict;
use crate::compare::summary::ArmSummary;
use crate::compare::{Comparison, Pair};
use crate::report::text::{count, duration, money, plural};
use crate::rounding;
use crate::text::some_of;

/// The maximum number of cases named.
const NAMED: usize = 5;

/// Returns what changed from the old side to the new one: how many cases are better, worse and the same, and those
/// that were lost.
pub(super) fn what_changed(pair: &Pair) -> String {
    let counts = pair.counts;
    let cases = plural(pair.cases_compared, "case");
    let word = match pair.verdict {
        Verdict::Improved => "better",
        Verdict::Regressed => "worse",
        Verdict::Equivalent => "no difference that matters",
        Verdict::Inconclusive => "no clear difference",
    };
    let lost: Vec<&str> =
        pair.cases.iter().filter(|row| row.flags.contains(&Flag::Regressed)).map(|row| &*row.case).collect();
    let left_out = match pair.unpaired.len() {
        0 => String::new(),
        count => format!("; {} left out", plural(count, "case")),
    };
    let lost = if lost.is_empty() { String::new() } else { format!("; lost: {}", some_of(lost, NAMED)) };
    format!(
        "{} instead of {}: {word}. Of {cases}, {} better, {} worse, {} the same{left_out}{lost}",
        pair.new, pair.old, counts.wins, counts.losses, counts.ties
    )
}

/// Returns how sure the verdict is.
pub(super) fn how_sure(pair: &Pair) -> String {
    let Some(interval) = pair.interval else {
        return "how sure: unknown, because there are too few cases or trials".to_owned();
    };
    let widest = interval.low.abs().max(interval.high.abs());
    let interval = points_interval(interval);
    let text = match pair.verdict {
        Verdict::Inconclusive if pair.counts.discordant() == 0 => {
            let most = rounding::points_figure(widest).trim_start_matches('+').to_owned();
            return format!(
                "how sure: no case differs, but so few cases can hide a difference of up to {most} percentage points"
            );
        }
        Verdict::Improved | Verdict::Regressed => "chance alone hardly explains it: the difference is within",
        Verdict::Equivalent => "a difference that matters is hardly possible: it is within",
        Verdict::Inconclusive => {
            "chance alone can explain it, so neither side is shown to be better: the difference is within"
        }
    };
    format!("how sure: {text} {interval} percentage points ({} interval)", rounding::percent_bound(pair.level))
}

/// Returns what a trial of both sides cost: money, tokens and time. A figure that some trials did not report is a lower
/// bound, and says so.
pub(super) fn what_it_cost(pair: &Pair, comparison: &Comparison) -> String {
    let arm = |name: &str| comparison.arms.iter().find(|arm| arm.name == name);
    let (Some(new), Some(old)) = (arm(&pair.new), arm(&pair.old)) else {
        return "what it cost: unknown".to_owned();
    };
    let money_of = |arm: &ArmSummary| figure(arm.cost_per_trial.map(money), arm.cost_unknown);
    let tokens_of = |arm: &ArmSummary| {
        let tokens = arm.tokens_per_trial.map(|it| format!("{} tokens", count(it.round() as u64)));
        figure(tokens, arm.tokens_unknown)
    };
    let time_of = |arm: &ArmSummary| figure(arm.median_duration_ms.map(|ms| duration(ms.round() as u64)), 0);
    let figures = [
        ("money", money_of(new), money_of(old)),
        ("tokens", tokens_of(new), tokens_of(old)),
        ("time", time_of(new), time_of(old)),
    ];
    let is_told = |it: &&(&str, Option<String>, Option<String>)| it.1.is_some() || it.2.is_some();
    let or_unknown = |figure: &Option<String>| figure.clone().unwrap_or_else(|| "unknown".to_owned());
    let told = figures.iter().filter(is_told);
    // Times that begin at different moments are figures of each side alone.
    let is_timed_otherwise = pair.doubts.iter().any(|doubt| doubt.about == About::Times);
    let mut parts: Vec<String> = told
        .map(|(name, new, old)| match *name == "time" && is_timed_otherwise {
            true => {
                format!("{} and {}, one of which includes the start of the program", or_unknown(new), or_unknown(old))
            }
            // A baseline has the times of its cases, and none of its trials.
            false if *name == "time" && old.is_none() && pair.duration.is_some() => {
                let times = pair.duration.as_ref().map(|it| ratio(it, pair.cases_compared)).unwrap_or_default();
                format!("{}, which is {times} times the old", or_unknown(new))
            }
            false => format!("{} instead of {}", or_unknown(new), or_unknown(old)),
        })
        .collect();
    let untold: Vec<&str> = figures.iter().filter(|it| !is_told(it)).map(|(name, ..)| *name).collect();
    if !untold.is_empty() {
        parts.push(format!("{} unknown", untold.join(" and ")));
    }
    let costs_known = new.cost_per_trial.is_some() || old.cost_per_trial.is_some();
    let note = pair.note_on_retries().filter(|_| costs_known).map(|note| format!("; {note}"));
    format!("what a trial cost: {}{}", parts.join(", "), note.unwrap_or_default())
}

/// Returns a figure, as a lower bound if some trials did not report it.
fn figure(known: Option<String>, unknown: u64) -> Option<String> {
    known.map(|known| if unknown == 0 { known } else { format!("at least {known}") })
}
