//! The difference between two arms over their cases: its confidence interval, the interval's own test, and the
//! verdict.

use serde::Serialize;
use strum::IntoStaticStr;

use super::differing::Differing;
use super::join::{Paired, SAME};
use super::one_case;
use crate::statistics::distributions::{t_quantile, t_two_sided, z_of_level};
use crate::statistics::{Interval, means, paired, tables};
use crate::word::word;

/// The method by which an interval and its p-value are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Paired t interval over cases; the p-value is that of the t test.
    PairedT,
    /// Bonett and Price's interval, for one 0/1 trial per case or no difference; the p-value is McNemar's mid-p.
    BonettPrice,
    /// Clopper and Pearson's bound of the share of cases that differ otherwise, if all have the same difference other than
    /// 0; the p-value is that of the bound.
    ClopperPearson,
    /// Newcombe's interval, for a single case; the p-value is Fisher's. The result holds for this case only.
    Newcombe,
    /// Welch's t over the trials of a single case with fractional scores. The result holds for this case only.
    Welch,
}

impl Method {
    /// Returns the name of the test that belongs to the method.
    pub fn test(self) -> &'static str {
        match self {
            Method::PairedT => "paired t",
            Method::BonettPrice => "McNemar mid-p",
            Method::ClopperPearson => "binomial",
            Method::Newcombe => "Fisher exact",
            Method::Welch => "Welch's t",
        }
    }
}

/// The difference: new minus old.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The mean over cases of the difference of their means.
    pub delta: f64,
    /// The standard error of `delta`. Absent without an interval.
    pub se: Option<f64>,
    /// The confidence interval at the level of the comparison. Absent if it cannot be computed.
    pub interval: Option<Interval>,
    /// The p-value of the test that corresponds to the interval.
    pub p: Option<f64>,
    /// The method of both. Absent without an interval.
    pub method: Option<Method>,
    /// The number of cases in which the new arm wins, loses or ties.
    pub counts: Counts,
    /// True if any outcome with these numbers of cases and trials could have been significant.
    pub could_be_significant: bool,
    /// True if the interval could exclude 0 with as many differing cases as there are.
    pub enough_differ: bool,
    /// The number of cases.
    pub n: usize,
}

/// The number of cases in which the new arm wins, loses or ties.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counts {
    /// Cases in which the new arm is better.
    pub wins: u64,
    /// Cases in which the old arm is better.
    pub losses: u64,
    /// Cases in which both arms are equal.
    pub ties: u64,
}

impl Counts {
    fn of(differences: &[f64]) -> Self {
        let count = |of: fn(f64) -> bool| differences.iter().filter(|it| of(**it)).count() as u64;
        Self { wins: count(|it| it > SAME), losses: count(|it| it < -SAME), ties: count(|it| it.abs() <= SAME) }
    }

    /// Returns the number of cases in which the arms differ.
    pub fn discordant(&self) -> u64 {
        self.wins + self.losses
    }

    /// Returns the number of all cases.
    pub(super) fn all(&self) -> u64 {
        self.discordant() + self.ties
    }
}

/// The basis from which the interval and the bounds of a gate are computed.
pub(super) enum Basis {
    /// A t distribution with this many degrees of freedom.
    T { df: f64 },
    /// Bonett and Price's method on cases: each differs by all or nothing, or none differs.
    Counts,
    /// All cases have the same difference, other than 0 and 1. The cases then show no spread, so a bound of the share
    /// of cases with another difference replaces it.
    Same { difference: f64 },
    /// The trials of a single case are compared.
    Trials(Method),
    /// No interval can be computed.
    Nothing,
}

/// Returns true if each trial passed or failed, without a partial score.
pub(super) fn are_shares(cases: &[Paired<'_>]) -> bool {
    let zero_or_one = |scores: &[f64]| scores.iter().all(|score| *score == 0.0 || *score == 1.0);
    cases.iter().all(|case| zero_or_one(&case.old.scores) && zero_or_one(&case.new.scores))
}

pub(super) fn basis(cases: &[Paired<'_>], differences: &[f64]) -> Basis {
    let shares = are_shares(cases);
    let single = cases.iter().all(|case| case.old.scores.len() == 1 && case.new.scores.len() == 1);
    if shares && single {
        return Basis::Counts;
    }
    if let [case] = cases {
        let repeated = case.old.scores.len() > 1 && case.new.scores.len() > 1;
        return match (shares, repeated) {
            (true, _) => Basis::Trials(Method::Newcombe),
            (false, true) => Basis::Trials(Method::Welch),
            (false, false) => Basis::Nothing,
        };
    }
    match means::variance(differences) {
        Some(0.0) => match differences.first() {
            Some(difference) if difference.abs() > SAME && difference.abs() < 1.0 - SAME => {
                Basis::Same { difference: *difference }
            }
            _ => Basis::Counts,
        },
        Some(_) => Basis::T { df: (cases.len() - 1) as f64 },
        None => Basis::Nothing,
    }
}

/// Computes the difference over these cases.
pub fn effect(cases: &[Paired<'_>], level: f64) -> Option<Effect> {
    let differences: Vec<f64> = cases.iter().map(Paired::delta).collect();
    let (delta, n) = (means::mean(&differences)?, differences.len());
    let counts = Counts::of(&differences);
    let base = Effect {
        delta,
        se: means::variance(&differences).map(|it| (it / n as f64).sqrt()),
        interval: None,
        p: None,
        method: None,
        counts,
        could_be_significant: false,
        enough_differ: true,
        n,
    };
    Some(match basis(cases, &differences) {
        Basis::T { df } => {
            let se = base.se.unwrap_or_default();
            let needed = Differing::T(level).needed(counts.all());
            let interval = Interval::around(delta, t_quantile(0.5 + level / 2.0, df) * se).within(-1.0, 1.0);
            let is_significant = interval.low > 0.0 || interval.high < 0.0;
            Effect {
                interval: Some(interval),
                p: Some(t_two_sided(delta / se, df)),
                method: Some(Method::PairedT),
                could_be_significant: is_significant || could_be_significant(cases, level),
                enough_differ: counts.ties == 0 || needed.is_some_and(|needed| counts.discordant() >= needed),
                ..base
            }
        }
        Basis::Counts => {
            let (middle, se) = paired::bonett_price_parts(counts.wins, counts.losses, counts.all());
            let needed = Differing::Counts(level).needed(counts.all());
            Effect {
                se: Some(se),
                interval: Some(Interval::around(middle, z_of_level(level) * se).within(-1.0, 1.0)),
                p: Some(tables::mcnemar(counts.wins, counts.losses).mid_p),
                method: Some(Method::BonettPrice),
                could_be_significant: could_be_significant(cases, level),
                enough_differ: needed.is_some_and(|needed| counts.discordant() >= needed),
                ..base
            }
        }
        Basis::Same { difference } => {
            let share = other_share(n, (1.0 - level) / 2.0);
            let interval = with_others(difference, share);
            Effect {
                se: Some(share / z_of_level(level)),
                interval: Some(interval),
                p: Some(same_p(difference, n)),
                method: Some(Method::ClopperPearson),
                could_be_significant: could_be_significant(cases, level),
                enough_differ: with_others(difference.abs(), share).low > 0.0,
                ..base
            }
        }
        Basis::Trials(method) => one_case::effect(cases, method, level, base),
        Basis::Nothing => base,
    })
}

/// Returns the largest share of cases with another difference that `n` cases with the same one leave possible: Clopper and
/// Pearson's one-sided upper bound for none of `n`.
pub(super) fn other_share(n: usize, alpha: f64) -> f64 {
    1.0 - alpha.powf(1.0 / n as f64)
}

/// Returns the interval of the mean if a share of the cases may have any difference, and the others have this one.
pub(super) fn with_others(difference: f64, share: f64) -> Interval {
    Interval { low: difference - share * (difference + 1.0), high: difference + share * (1.0 - difference) }
}

/// Returns the two-sided p-value that the mean is 0: the chance that none of `n` cases shows another difference, if as many
/// have one as the mean needs to be 0.
fn same_p(difference: f64, n: usize) -> f64 {
    let needed = difference.abs() / (1.0 + difference.abs());
    (2.0 * (1.0 - needed).powf(n as f64)).min(1.0)
}

/// Returns true if the best possible outcome with so many cases and trials is significant. With one 0/1 trial per case, all
/// cases differ in one direction. Otherwise, the t of the best outcome must exceed its quantile. If scores are shares of k
/// trials, that is the outcome in which all but one trial of one case differ, or, with different numbers of trials, one in which
/// all cases differ by nearly the same amount.
fn could_be_significant(cases: &[Paired<'_>], level: f64) -> bool {
    let (shares, n) = (are_shares(cases), cases.len() as u64);
    let most = cases.iter().map(|case| case.old.scores.len().max(case.new.scores.len())).max().unwrap_or(1) as u64;
    if shares && most == 1 {
        return Differing::Counts(level).needed(n).is_some();
    }
    if n < 2 || !shares {
        return n > 1;
    }
    let quantile = t_quantile(0.5 + level / 2.0, n as f64 - 1.0);
    // The search is only for so few trials that it takes no time.
    (n * most) as f64 - 1.0 > quantile || largest_t(cases) > quantile
}

/// Returns the largest t of the outcomes that these numbers of trials can have: each outcome near the same difference for all
/// cases, with one case that may have any other.
fn largest_t(cases: &[Paired<'_>]) -> f64 {
    let possible: Vec<Vec<f64>> =
        cases.iter().map(|case| gains(case.old.scores.len() as u64, case.new.scores.len() as u64)).collect();
    let mut largest: f64 = 0.0;
    for middle in possible.iter().flatten() {
        let apart = |gain: &f64| (gain - middle).abs();
        let nearest = |gains: &Vec<f64>| gains.iter().copied().min_by(|one, other| apart(one).total_cmp(&apart(other)));
        let mut outcome: Vec<f64> = possible.iter().filter_map(nearest).collect();
        for (case, gains) in possible.iter().enumerate() {
            let Some(kept) = outcome.get(case).copied() else { continue };
            for gain in gains {
                outcome[case] = *gain;
                largest = largest.max(t_of(&outcome).unwrap_or_default());
            }
            outcome[case] = kept;
        }
    }
    largest
}

/// Returns the gains that a case with these numbers of 0/1 trials can have, each once.
fn gains(old: u64, new: u64) -> Vec<f64> {
    let shares = |trials: u64| (0..=trials).map(move |passed| passed as f64 / trials as f64);
    let mut gains: Vec<f64> =
        shares(new).flat_map(|new| shares(old).map(move |old| new - old)).filter(|gain| *gain > SAME).collect();
    gains.sort_by(f64::total_cmp);
    gains.dedup_by(|one, other| (*one - *other).abs() <= SAME);
    gains
}

/// Returns the mean in standard errors, unless the values are the same.
fn t_of(differences: &[f64]) -> Option<f64> {
    let error = (means::variance(differences)? / differences.len() as f64).sqrt();
    Some(means::mean(differences)? / error).filter(|_| error > SAME)
}

/// The verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum EffectVerdict {
    /// The whole interval lies above 0.
    Improved,
    /// The whole interval lies below 0.
    Regressed,
    /// The whole interval lies within the margin.
    Equivalent,
    /// None of the other verdicts applies.
    Inconclusive,
}

word!(EffectVerdict);

impl Effect {
    /// Returns the verdict of the interval; differences up to the margin count as none. For a single case, a
    /// difference counts only if Fisher's test agrees, because with a handful of trials the interval is too narrow.
    pub fn verdict(&self, level: f64, margin: f64) -> EffectVerdict {
        let found = EffectVerdict::of(self.interval, margin);
        let of_chance = self.method == Some(Method::Newcombe) && self.p.is_some_and(|p| p >= 1.0 - level);
        match found {
            EffectVerdict::Improved | EffectVerdict::Regressed if of_chance => EffectVerdict::Inconclusive,
            found => found,
        }
    }
}

impl EffectVerdict {
    /// Returns the verdict of an interval; differences up to the margin count as none.
    pub fn of(interval: Option<Interval>, margin: f64) -> Self {
        match interval {
            Some(it) if it.low > 0.0 => EffectVerdict::Improved,
            Some(it) if it.high < 0.0 => EffectVerdict::Regressed,
            Some(it) if it.low > -margin && it.high < margin => EffectVerdict::Equivalent,
            _ => EffectVerdict::Inconclusive,
        }
    }

    /// Returns the worst of several verdicts.
    pub fn of_all(all: impl Iterator<Item = Self> + Clone) -> Self {
        let any = |verdict| all.clone().any(|it| it == verdict);
        let worst = [EffectVerdict::Regressed, EffectVerdict::Inconclusive, EffectVerdict::Improved]
            .into_iter()
            .find(|it| any(*it));
        worst.unwrap_or(if all.clone().next().is_some() {
            EffectVerdict::Equivalent
        } else {
            EffectVerdict::Inconclusive
        })
    }
}
