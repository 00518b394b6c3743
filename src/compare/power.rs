//! The power of a comparison: the minimum detectable effect, and the cases or trials needed to detect a smaller
//! one.

use serde::Serialize;

use super::differing::Differing;
use super::effect::{Effect, Method, are_shares};
use super::join::{Paired, SAME};
use super::one_case;
use crate::rounding;
use crate::statistics::means;
use crate::statistics::power::{self, POWER, Spread};
use crate::text::plural;

/// The power of a comparison: the minimum detectable effect, and the cases or trials needed to detect a smaller
/// one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Power {
    /// The minimum detectable effect at 80 % power. Absent if so few cases or trials detect no difference, or if too few
    /// cases differ to compute it.
    pub smallest_effect: Option<f64>,
    /// The share of the squared standard error that comes from differences between trials of the same case.
    /// More trials can remove this share, and no more. Absent if no case has two trials in both arms.
    pub share_within: Option<f64>,
    /// `share_within` as it was estimated. From 1 on, no difference between cases beyond chance was seen, and the number of
    /// cases is too small to tell how much of the error more trials remove.
    pub share_within_raw: Option<f64>,
    /// The target difference of `cases_needed` and `trials_needed`.
    pub target: f64,
    /// The number of cases needed to detect the target difference with 80 % power, with the same number of
    /// trials per case. Absent if one case is too few to estimate it, or if too few cases differ.
    pub cases_needed: Option<u64>,
    /// The number of trials per case and arm needed to detect the target difference with these cases. Absent if
    /// no number suffices, if one trial per case is too few to estimate it, if no difference between cases beyond
    /// chance was seen, or if too few cases differ.
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
    let se = effect.se?;
    let n = cases.len() as f64;
    let alpha = 1.0 - level;
    let apart = power::errors_apart(alpha, POWER);
    // With few cases, the test is a t test, so the power is computed from the t distribution, too.
    let apart_here = match (effect.method, cases) {
        (Some(Method::PairedT), _) => power::errors_apart_by_t(alpha, POWER, n - 1.0),
        (Some(Method::Welch), [case]) => means::welch(&case.new.scores, &case.old.scores, level)
            .map_or(apart, |it| power::errors_apart_by_t(alpha, POWER, it.df)),
        _ => apart,
    };
    let by_error = apart_here * se;
    let few = few(cases, effect, by_error, level);
    let smallest_effect = match (&few, effect.method) {
        (_, Some(Method::Newcombe)) => one_case::minimum_detectable(cases, level, by_error),
        (Few::No, _) => Some(by_error),
        (Few::Assumed(it), _) => Some(it.effect),
        (Few::Unknown(_), _) => None,
    };
    let of_case = se * se * n;
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
    let cases_by_error = ((apart * apart * of_case) / (target * target)).ceil().max(2.0);
    let cases_needed = match &few {
        _ if cases.len() < 2 => None,
        Few::No => Some(cases_by_error),
        Few::Assumed(it) => it.cases_needed(target, cases_by_error),
        Few::Unknown(_) => None,
    };
    // How far more trials help depends on the differences between cases, which the error then does not show. If few cases
    // differ, neither part of the spread is seen.
    let is_hidden = share_within_raw.is_some_and(is_all);
    let trials_needed = spread.filter(|_| !is_hidden && matches!(few, Few::No));
    let trials_needed = trials_needed.and_then(|(spread, _)| power::trials_needed(target / apart_here, n, spread));
    let points = |share: f64| format!("{} pp", rounding::percent_figure(share));
    let several = cases.iter().any(|case| case.old.scores.len() > 1 && case.new.scores.len() > 1);
    let found = match (smallest_effect, &few) {
        (Some(smallest), _) => {
            let assumption = few.assumed().map(Assumed::described).unwrap_or_default();
            format!("minimum detectable effect at 80 % power: {}{assumption}", size(smallest))
        }
        (None, _) if effect.method == Some(Method::Newcombe) => {
            "no difference can be detected at 80 % power with so few trials".to_owned()
        }
        (None, Few::Unknown(why)) => (*why).to_owned(),
        (None, _) => "no minimum detectable effect can be computed".to_owned(),
    };
    let text = match cases_needed {
        _ if smallest_effect.is_some_and(|smallest| smallest <= target) => found,
        None if smallest_effect.is_none() || cases.len() > 1 => found,
        None => format!("{found}; the effect of more cases cannot be estimated from one case"),
        Some(cases_needed) if is_hidden => {
            format!("{found}; detecting {} needs {cases_needed:.0} cases", points(target))
        }
        Some(cases_needed) => {
            let trials = match (trials_needed, spread) {
                (Some(trials), _) => format!("or {:.0} trials of each case", trials.ceil()),
                (None, Some(_)) if few.assumed().is_some() => {
                    "the effect of more trials cannot be estimated if so few cases differ".to_owned()
                }
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

/// The answer to whether so few cases differ that their spread is smaller than the minimum detectable effect itself causes.
enum Few {
    /// Enough cases differ, or the spread does not come from them.
    No,
    /// Too few cases differ, and the spread is computed from an assumption.
    Assumed(Assumed),
    /// Too few cases differ, and nothing can be assumed. With the reason.
    Unknown(&'static str),
}

impl Few {
    fn assumed(&self) -> Option<&Assumed> {
        match self {
            Self::Assumed(it) => Some(it),
            Self::No | Self::Unknown(_) => None,
        }
    }
}

/// The assumption that cases which differ do so by the same amount in one direction. It causes the smallest spread that a
/// mean difference can have, if no case differs by more.
struct Assumed {
    /// The minimum detectable effect.
    effect: f64,
    /// The difference of a case that differs: the largest observed one, or 1 if no case differs, or if so few cases show
    /// only a complete loss.
    of_case: f64,
    /// The number of cases that differ.
    differ: u64,
    /// The number of all cases.
    all: u64,
    method: Differing,
}

impl Assumed {
    /// Returns the number of cases needed to detect the target difference; `by_error` is the number by the observed error.
    fn cases_needed(&self, target: f64, by_error: f64) -> Option<f64> {
        let from = if self.effect <= target { 2 } else { self.all + 1 };
        let exact = || self.method.cases((target / self.of_case).min(1.0), from).map(|cases| cases as f64);
        match self.method {
            // The share of cases that differ is the observed one, or at least what the target difference implies.
            Differing::Counts(level) => {
                let share = (self.differ as f64 / self.all as f64).max(target);
                let (one, other) = ((share + target) / 2.0, (share - target) / 2.0);
                let pairs = power::mcnemar_pairs(one, other, 1.0 - level, POWER)?;
                exact().map(|cases| cases.max(pairs.ceil()))
            }
            Differing::T(_) if is_above_observed(target, self.of_case, self.differ, self.all) => exact(),
            Differing::T(_) => Some(by_error.max(from as f64)),
        }
    }

    fn described(&self) -> String {
        format!(
            " ({} of {} {}, which is too few to show the spread, so this assumes that more cases differ by {} pp, all \
             in one direction)",
            self.differ,
            plural(self.all as usize, "case"),
            if self.differ == 1 { "differs" } else { "differ" },
            rounding::percent_figure(self.of_case)
        )
    }
}

/// Returns true if a mean difference implies that more cases differ than were observed, if each differs by `of_case`.
fn is_above_observed(effect: f64, of_case: f64, differ: u64, all: u64) -> bool {
    (differ as f64) < effect / of_case * all as f64 - SAME
}

/// Checks whether so few cases differ that the error understates the minimum detectable effect `by_error`. An effect
/// implies that cases differ; if fewer differ than that, the error at the effect is larger than the observed one. The power is
/// then that of a binomial distribution: that enough cases differ for the interval to exclude 0.
fn few(cases: &[Paired<'_>], effect: &Effect, by_error: f64, level: f64) -> Few {
    let method = match effect.method {
        Some(Method::PairedT) => Differing::T(level),
        Some(Method::BonettPrice) => Differing::Counts(level),
        Some(Method::ClopperPearson | Method::Newcombe | Method::Welch) | None => return Few::No,
    };
    let (differ, all) = (effect.counts.discordant(), effect.counts.all());
    let largest = cases.iter().map(|case| case.delta().abs()).fold(0.0, f64::max);
    let of_case = if differ == 0 { 1.0 } else { largest };
    let is_few = is_above_observed(by_error, of_case, differ, all);
    let (share, of_case) = match (method, method.share(all)) {
        (Differing::T(_), None) if !is_few || effect.counts.ties == 0 => return Few::No,
        // By t, so few cases show a difference only if all of them differ. If all lose everything, their difference is compared
        // by Bonett and Price's method.
        (Differing::T(level), None) => (Differing::Counts(level).share(all), 1.0),
        (_, share) => (share, of_case),
    };
    let Some(share) = share else {
        // Not even the same loss of every case is shown.
        return match effect.could_be_significant {
            true => Few::Unknown("too few cases to compute a minimum detectable effect"),
            false => Few::Unknown("no difference can be detected at 80 % power with so few cases"),
        };
    };
    if !is_few || share * of_case <= by_error {
        return Few::No;
    }
    // Partial scores can differ by any amount, so the observed differences show nothing of those that are to be detected.
    if !are_shares(cases) && !effect.enough_differ {
        return Few::Unknown("too few cases differ to compute a minimum detectable effect");
    }
    Few::Assumed(Assumed { effect: share * of_case, of_case, differ, all, method })
}
