//! A comparison in three plain lines: the changes, their certainty, and the cost.

use super::words::{points_interval, ratio};
use crate::compare::Pair;
use crate::compare::cases::{CaseRow, ComparedFlag};
use crate::compare::doubts::About;
use crate::compare::effect::EffectVerdict;
use crate::compare::per_trial::{PerTrial, TrialFigure};
use crate::report::text::{count, duration, money, plural};
use crate::rounding;
use crate::text::some_of;

/// The maximum number of cases named.
const MAX_NAMED_CASES: usize = 5;

/// Returns what changed from the old side to the new one: how many cases are better, worse and the same, and those
/// that were lost.
pub(super) fn what_changed(pair: &Pair) -> String {
    let counts = pair.counts;
    let cases = plural(pair.cases_compared, "case");
    let word = match pair.verdict {
        EffectVerdict::Improved => "better",
        EffectVerdict::Regressed => "worse",
        EffectVerdict::Equivalent => "no difference that matters",
        EffectVerdict::Inconclusive if pair.is_loss_doubted => "unknown whether it is worse",
        EffectVerdict::Inconclusive if pair.why_untrusted().is_some() => "unknown whether it is better",
        EffectVerdict::Inconclusive => "no clear difference",
    };
    let but = pair.but().map(|but| format!(", {but}")).unwrap_or_default();
    // Old scores of agents that could read files of their own case show no loss.
    let is_shown = |row: &&CaseRow| !pair.read_in_old.contains(&row.case);
    let lost = pair.cases.iter().filter(|row| row.flags.contains(&ComparedFlag::Regressed)).filter(is_shown);
    let lost: Vec<&str> = lost.map(|row| &*row.case).collect();
    let left_out = match pair.unpaired.len() {
        0 => String::new(),
        count => format!("; {} left out", plural(count, "case")),
    };
    let lost = if lost.is_empty() { String::new() } else { format!("; lost: {}", some_of(lost, MAX_NAMED_CASES)) };
    format!(
        "{} instead of {}: {word}{but}. Of {cases}, {} better, {} worse, {} the same{left_out}{lost}",
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
    if let Some(why) = pair.why_untrusted() {
        let level = rounding::percent_bound(pair.level);
        return format!(
            "how sure: the scores show nothing, because {why}; the difference is within {interval} percentage points ({level} \
             interval)"
        );
    }
    let text = match pair.verdict {
        EffectVerdict::Inconclusive if pair.is_unconfirmed() => {
            let does = if pair.could_be_significant { "does not" } else { "cannot" };
            return format!(
                "how sure: the interval {interval} excludes 0, but with {} and {} trials Fisher's test {does} confirm \
                 a difference, so none is reported",
                pair.trials_old, pair.trials_new
            );
        }
        EffectVerdict::Inconclusive if pair.counts.discordant() == 0 => {
            let most = rounding::points_figure(widest).trim_start_matches('+').to_owned();
            return format!(
                "how sure: no case differs, but so few cases can hide a difference of up to {most} percentage points"
            );
        }
        EffectVerdict::Improved | EffectVerdict::Regressed if pair.but().is_some() => {
            "chance alone hardly explains this comparison by itself: the difference is within"
        }
        EffectVerdict::Equivalent if pair.but().is_some() => {
            "a difference that matters is unlikely if the few cases that differ show the spread: it is within"
        }
        EffectVerdict::Improved | EffectVerdict::Regressed => {
            "chance alone hardly explains it: the difference is within"
        }
        EffectVerdict::Equivalent => "a difference that matters is hardly possible: it is within",
        EffectVerdict::Inconclusive => {
            "chance alone can explain it, so neither side is shown to be better: the difference is within"
        }
    };
    format!("how sure: {text} {interval} percentage points ({} interval)", rounding::percent_bound(pair.level))
}

/// Returns what a trial of both sides cost over the compared cases: money, tokens and time. A figure that some trials did not
/// report is a lower bound, and says so.
pub(super) fn what_it_cost(pair: &Pair) -> String {
    type Show = fn(f64) -> String;
    let PerTrial { cost_usd, tokens, duration_ms } = pair.per_trial;
    let figures: [(&str, TrialFigure, Show); 3] = [
        ("money", cost_usd, money),
        ("tokens", tokens, |tokens| format!("{} tokens", count(tokens.round() as u64))),
        ("time", duration_ms, |ms| duration(ms.round() as u64)),
    ];
    // Times that begin at different moments are figures of each side alone.
    let is_timed_otherwise = pair.doubts.iter().any(|doubt| doubt.about == About::Times);
    let (mut parts, mut unknown) = (Vec::new(), Vec::new());
    for (name, figure, show) in figures {
        if figure.new.is_none() && figure.old.is_none() {
            unknown.push(name);
            continue;
        }
        let side = |value: Option<f64>, unknown: u64| match value {
            None => "unknown".to_owned(),
            Some(value) if unknown == 0 => show(value),
            Some(value) => format!("at least {}", show(value)),
        };
        let (new, old) = (side(figure.new, figure.new_unknown), side(figure.old, figure.old_unknown));
        let text = match name == "time" {
            true if is_timed_otherwise => format!("{new} and {old}, one of which includes the start of the program"),
            // A baseline has the times of its cases, and none of its trials.
            true if figure.old.is_none() && pair.duration.is_some() => {
                let times = pair.duration.as_ref().map(|it| ratio(it, pair.cases_compared)).unwrap_or_default();
                format!("{new}, which is {times} times the old")
            }
            _ => format!("{new} instead of {old}"),
        };
        let coverage = match figure.cases < pair.cases_compared {
            true => format!(" (over {} of {} cases)", figure.cases, pair.cases_compared),
            false => String::new(),
        };
        parts.push(format!("{text}{coverage}"));
    }
    if !unknown.is_empty() {
        let why = if cost_usd.cases == 0 { ", because every case has an errored trial" } else { "" };
        parts.push(format!("{} unknown{why}", unknown.join(" and ")));
    }
    let costs_known = cost_usd.new.is_some() || cost_usd.old.is_some();
    let note = pair.note_on_retries().filter(|_| costs_known).map(|note| format!("; {note}"));
    // Other cases of one side may be cheaper or more expensive.
    let cases = match pair.unpaired.is_empty() {
        true => String::new(),
        false => format!(" in the {}", plural(pair.cases_compared, "compared case")),
    };
    format!("what a trial cost{cases}: {}{}", parts.join(", "), note.unwrap_or_default())
}
