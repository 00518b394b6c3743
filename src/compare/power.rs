//! The power of a comparison: the minimum detectable effect, and the cases or trials needed to detect a smaller
//! one.

use serde::Serialize;

use super::effect::{Effect, Method};
use super::join::{Paired, SAME};
use crate::rounding;
use crate::statistics::means;
use crate::statistics::power::{self, POWER, Spread};

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
    /// `share_within` as it was estimated. From 1 on, no difference between cases beyond chance was seen, and the number of
    /// cases is too small to tell how much of the error more trials remove.
    pub share_within_raw: Option<f64>,
    /// The target difference of `cases_needed` and `trials_needed`.
    pub target: f64,
    /// The number of cases needed to detect the target difference with 80 % power, with the same number of
    /// trials per case. Absent if one case is too few to estimate it.
    pub cases_needed: Option<u64>,
    /// The number of trials per case and arm needed to detect the target difference with these cases. Absent if
    /// no number suffices, if one trial per case is too few to estimate it, or if no difference between cases beyond
    /// chance was seen.
    pub trials_needed: Option<u64>,
    /// The power as a sentence.
    pub text: String,
}

impl Power {
    /// Returns true if all of the error can come from differences between trials of the same case.
    pub fn has_no_difference_between_cases(&self) -> bool {
        self.share_within_raw.is_some_and(is_all)
    }
}

/// Returns true for a share that is everything. The estimate has rounding errors.
fn is_all(share: f64) -> bool {
    share >= 1.0 - SAME
}

/// Returns the size of a detectable effect. No difference of scores is larger than 100 pp.
pub fn size(effect: f64) -> String {
    if effect < 1.0 { format!("{} pp", rounding::percent_figure(effect)) } else { "above 100 pp".to_owned() }
}

/// The scores of one arm in a case.
type Scores = for<'a, 'b> fn(&'b Paired<'a>) -> &'b [f64];

/// Computes the power of a comparison of these cases at this level.
pub fn power_of(cases: &[Paired<'_>], effect: &Effect, target: f64, level: f64) -> Option<Power> {
    effect.interval?;
    let n = cases.len() as f64;
    let alpha = 1.0 - level;
    let apart = power::errors_apart(alpha, POWER);
    // With few cases, the test is a t test, so the power is computed from the t distribution, too.
    let by_t = effect.method == Some(Method::PairedT);
    let apart_here = if by_t { power::errors_apart_by_t(alpha, POWER, n - 1.0) } else { apart };
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
    let share_within_raw = spread.filter(|_| of_case > 0.0).map(|(_, of_trials)| of_trials / of_case);
    let cases_needed = ((apart * apart * of_case) / (target * target)).ceil().max(2.0);
    let cases_needed = (cases.len() > 1).then_some(cases_needed);
    // How far more trials help depends on the differences between cases, which the error then does not show.
    let is_hidden = share_within_raw.is_some_and(is_all);
    let trials_needed = spread.filter(|_| !is_hidden);
    let trials_needed = trials_needed.and_then(|(spread, _)| power::trials_needed(target / apart_here, n, spread));
    let points = |share: f64| format!("{} pp", rounding::percent_figure(share));
    let found = format!("minimum detectable effect at 80 % power: {}", size(smallest_effect));
    let several = cases.iter().any(|case| case.old.scores.len() > 1 && case.new.scores.len() > 1);
    let text = match cases_needed {
        _ if smallest_effect <= target => found,
        None => format!("{found}; the effect of more cases cannot be estimated from one case"),
        Some(cases_needed) if is_hidden => {
            format!("{found}; detecting {} needs {cases_needed:.0} cases", points(target))
        }
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
        share_within: share_within_raw.map(|share| share.min(1.0)),
        share_within_raw,
        target,
        cases_needed: cases_needed.map(|it| it as u64),
        trials_needed: trials_needed.map(|it| it.ceil() as u64),
        text,
    })
}
