//! The power of a comparison: the minimum detectable effect, and the cases or trials needed to detect a smaller
//! one.

use serde::Serialize;

use super::effect::{Effect, Method};
use super::join::Paired;
use crate::rounding;
use crate::statistics::distributions::t_quantile;
use crate::statistics::means;
use crate::statistics::power::{self, Spread};

/// The power of a comparison: the minimum detectable effect, and the cases or trials needed to detect a smaller
/// one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Power {
    /// The minimum detectable effect at 80 % power.
    pub smallest_effect: f64,
    /// The share of the squared standard error that comes from differences between trials of the same case.
    /// More trials can remove this share, and no more. Absent if no case has two trials in both arms.
    pub share_within: Option<f64>,
    /// The target difference of `cases_needed` and `trials_needed`.
    pub target: f64,
    /// The number of cases needed to detect the target difference with 80 % power, with the same number of
    /// trials per case. Absent if one case is too few to estimate it.
    pub cases_needed: Option<u64>,
    /// The number of trials per case and arm needed to detect the target difference with these cases. Absent if
    /// no number suffices, or if one trial per case is too few to estimate it.
    pub trials_needed: Option<u64>,
    /// The power as a sentence.
    pub text: String,
}

/// The power of the figures: the probability of detecting a difference that exists.
const POWER: f64 = 0.8;

/// The scores of one arm in a case.
type Scores = for<'a, 'b> fn(&'b Paired<'a>) -> &'b [f64];

/// Computes the power of a comparison of these cases at this level.
pub fn power_of(cases: &[Paired<'_>], effect: &Effect, target: f64, level: f64) -> Option<Power> {
    effect.interval?;
    let n = cases.len() as f64;
    let alpha = 1.0 - level;
    let apart = power::errors_apart(alpha, POWER);
    // With few cases, the test is a t test, so the power is computed from the t distribution, too.
    let by_t = |df: f64| t_quantile(1.0 - alpha / 2.0, df) + t_quantile(POWER, df);
    let apart_here = if effect.method == Some(Method::PairedT) { by_t(n - 1.0) } else { apart };
    let smallest_effect = apart_here * effect.se;
    let of_case = effect.se * effect.se * n;
    let within = |side: Scores| {
        let known: Vec<f64> = cases.iter().filter_map(|case| means::variance(side(case))).collect();
        means::mean(&known)
    };
    // A case with one trial shows no spread of its own, so it has the mean one.
    let of_trials = |side: Scores, mean: f64| {
        let of_case = |case| means::variance(side(case)).unwrap_or(mean) / side(case).len() as f64;
        cases.iter().map(of_case).sum::<f64>() / n
    };
    let (old, new): (Scores, Scores) = (|it| &it.old.scores, |it| &it.new.scores);
    // The sources of the error can be separated only if it comes from a spread that was observed.
    let seen = effect.method == Some(Method::PairedT);
    let spread = within(old).zip(within(new)).filter(|_| seen).map(|(within_a, within_b)| {
        let of_trials = of_trials(old, within_a) + of_trials(new, within_b);
        (Spread { between: (of_case - of_trials).max(0.0), within_a, within_b }, of_trials)
    });
    let share_within = spread.filter(|_| of_case > 0.0).map(|(_, of_trials)| (of_trials / of_case).min(1.0));
    let cases_needed = ((apart * apart * of_case) / (target * target)).ceil().max(2.0);
    let cases_needed = (cases.len() > 1).then_some(cases_needed);
    let trials_needed = spread.and_then(|(spread, _)| power::trials_needed(target / apart_here, n, spread));
    let points = |share: f64| format!("{} pp", rounding::percent_figure(share));
    let found = if smallest_effect < 1.0 {
        format!("minimum detectable effect at 80 % power: {}", points(smallest_effect))
    } else {
        "minimum detectable effect at 80 % power: above 100 pp".to_owned()
    };
    let several = cases.iter().any(|case| case.old.scores.len() > 1 && case.new.scores.len() > 1);
    let text = match cases_needed {
        _ if smallest_effect <= target => found,
        None => format!("{found}; the effect of more cases cannot be estimated from one case"),
        Some(cases_needed) => {
            let trials = match (trials_needed, spread) {
                (Some(trials), _) => format!("or {:.0} trials of each case", trials.ceil()),
                (None, Some(_)) => "no number of trials is enough with these cases".to_owned(),
                (None, None) if several => {
                    "the effect of more trials cannot be estimated if all cases differ by the same amount".to_owned()
                }
                (None, None) => "the effect of more trials cannot be estimated from one trial per case".to_owned(),
            };
            format!("{found}; detecting {} needs {cases_needed:.0} cases ({trials})", points(target))
        }
    };
    Some(Power {
        smallest_effect,
        share_within,
        target,
        cases_needed: cases_needed.map(|it| it as u64),
        trials_needed: trials_needed.map(|it| it.ceil() as u64),
        text,
    })
}
