//! States the conclusion about each arm of an experiment in one sentence: whether it helps, by how much, at which cost,
//! and which sample size would make it certain.

use serde::Serialize;

use super::coverage::Trials;
use super::effect::EffectVerdict;
use super::power::Power;
use super::{NotCompared, Pair, Ratio};
use crate::rounding::{percent_figure, points_figure};
use crate::text::plural;

/// The conclusion about an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conclusion {
    /// Name of the arm.
    pub arm: String,
    /// Name of the baseline.
    pub baseline: String,
    /// The conclusion in one or two sentences.
    pub text: String,
}

/// Returns the conclusion about the new arm of a pair; differences up to `margin` count as none.
pub fn of(pair: &Pair, margin: f64) -> Conclusion {
    let (new, old) = (&pair.new, &pair.old);
    let found = match pair.verdict {
        EffectVerdict::Improved => format!("{new} helps"),
        EffectVerdict::Regressed => format!("{new} does harm"),
        EffectVerdict::Equivalent => format!("{new} makes no difference of more than {} pp", percent_figure(margin)),
        EffectVerdict::Inconclusive => format!("unknown whether {new} helps"),
    };
    let but = pair.but().map(|but| format!(", {but}")).unwrap_or_default();
    let interval = match pair.interval {
        Some(it) => {
            let level = pair.level_text();
            format!(" ({level} interval {} to {})", points_figure(it.low), points_figure(it.high))
        }
        None => String::new(),
    };
    let mut text = format!(
        "{found}{but}: {} pp against {old}{interval}, over {}",
        points_figure(pair.delta),
        plural(pair.cases_compared, "case")
    );
    let ratios = [("cost", pair.cost), ("tokens", pair.tokens), ("time", pair.duration)];
    let ratios: Vec<String> = ratios
        .iter()
        .filter_map(|(what, it)| {
            let ratio = it.as_ref()?;
            let note = pair.note_on_retries().filter(|_| *what == "cost").map(str::to_owned);
            Some(ratio.described(what, coverage_note(ratio, pair.cases_compared).into_iter().chain(note).collect()))
        })
        .collect();
    if !ratios.is_empty() {
        text.push_str(&format!("; it takes {}", ratios.join(", ")));
    }
    if let Some(why) = pair.why_untrusted() {
        text.push_str(&format!(". The scores show nothing, because {why}"));
    } else if pair.verdict == EffectVerdict::Inconclusive {
        text.push_str(&match &pair.power {
            Some(power) if power.smallest_effect.is_some_and(|smallest| smallest <= power.target) => {
                let target = percent_figure(power.target);
                format!(". These cases are enough to detect {target} pp, but the interval leaves the result open")
            }
            Some(Power { cases_needed: Some(cases), trials_needed, target, .. }) => {
                let trials = trials_needed.map(|trials| format!(", or {} of each case", plural(trials, "trial")));
                let (target, trials) = (percent_figure(*target), trials.unwrap_or_default());
                format!(". To detect {target} pp takes {}{trials}", plural(*cases, "case"))
            }
            _ => ". More cases are needed to know what certainty would take".to_owned(),
        });
    }
    text.push('.');
    let lost = |trials: Trials| trials.planned.saturating_sub(trials.completed);
    let (old_lost, new_lost) = (lost(pair.rests_on.old), lost(pair.rests_on.new));
    if old_lost + new_lost > 0 {
        text.push_str(&format!(
            " {} of {new} and {old_lost} of {old} have no score and count in nothing.",
            plural(new_lost, "trial")
        ));
    }
    Conclusion { arm: new.clone(), baseline: old.clone(), text }
}

/// Returns the conclusion about an arm that could not be compared.
pub fn not_compared(pair: &NotCompared) -> Conclusion {
    let text =
        format!("unknown whether {} helps: it could not be compared with {}: {}.", pair.new, pair.old, pair.text);
    Conclusion { arm: pair.new.clone(), baseline: pair.old.clone(), text }
}

/// Returns the conclusion about an arm without a partner: the baseline ran on other harnesses.
pub fn without_partner(arm: &str, baseline: &str) -> Conclusion {
    let text = format!("unknown whether {arm} helps: the baseline {baseline} has no results on its harness.");
    Conclusion { arm: arm.to_owned(), baseline: baseline.to_owned(), text }
}

/// Returns the remark about the number of cases that a ratio is based on, if it is not all of the compared ones.
fn coverage_note(ratio: &Ratio, compared: usize) -> Option<String> {
    (ratio.cases < compared).then(|| format!("over {} of {compared} cases", ratio.cases))
}
