//! The difference between two arms over their cases: its interval, the interval's own test, and what could be seen.

use schemars::JsonSchema;
use serde::Serialize;

use super::join::Paired;
use crate::statistics::distributions::{
    binomial_at_most, normal_above, normal_quantile, normal_two_sided, t_above, t_quantile, z_of_level,
};
use crate::statistics::gates::{GateVerdict, not_worse, regressed_share};
use crate::statistics::power::{self, Spread};
use crate::statistics::{Interval, means, paired, tables};

/// How an interval and its p were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Paired t over cases; its p is the t test's.
    PairedT,
    /// Bonett and Price's interval, one 0/1 trial a case or no spread; its p is McNemar's mid-p.
    BonettPrice,
    /// One case: Newcombe's interval; its p is Fisher's. It speaks of this case, not of others.
    Newcombe,
    /// One case with fractional scores: an unpaired interval of its trials. It speaks of this case, not of others.
    Unpaired,
}

impl Method {
    /// The name of the test that belongs to it.
    pub fn test(self) -> &'static str {
        match self {
            Method::PairedT => "paired t",
            Method::BonettPrice => "McNemar mid-p",
            Method::Newcombe => "Fisher exact",
            Method::Unpaired => "z",
        }
    }
}

/// The difference, new less old.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The mean over cases of the difference of their means.
    pub delta: f64,
    /// Its standard error.
    pub se: f64,
    /// Its interval at the level of the comparison; absent where nothing can be said.
    pub interval: Option<Interval>,
    /// The p of that interval's own test.
    pub p: Option<f64>,
    /// How both were made; absent without an interval.
    pub method: Option<Method>,
    /// Cases in which the new arm does better, worse, the same.
    pub counts: Counts,
    /// Whether any outcome of a comparison like this one could have been significant.
    pub could_be_significant: bool,
    /// Cases.
    pub n: usize,
}

/// In how many cases which arm does better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// The new one.
    pub wins: u64,
    /// The old one.
    pub losses: u64,
    /// Neither.
    pub ties: u64,
}

/// Differences smaller than this are rounding.
const SAME: f64 = 1e-9;

impl Counts {
    fn of(differences: &[f64]) -> Self {
        let count = |of: fn(f64) -> bool| differences.iter().filter(|it| of(**it)).count() as u64;
        Self { wins: count(|it| it > SAME), losses: count(|it| it < -SAME), ties: count(|it| it.abs() <= SAME) }
    }

    /// Cases in which the arms differ.
    pub fn discordant(&self) -> u64 {
        self.wins + self.losses
    }

    fn all(&self) -> u64 {
        self.discordant() + self.ties
    }
}

/// What the interval and the bounds of a gate are computed from.
enum Basis {
    /// By t with so many degrees of freedom.
    T { df: f64 },
    /// By Bonett and Price on cases, each difference of this size.
    Counts { size: f64 },
    /// By the normal distribution, over the trials of one case.
    Trials(Method),
    /// Nothing can be said.
    Nothing,
}

fn basis(cases: &[Paired<'_>], differences: &[f64]) -> Basis {
    let zero_or_one = |scores: &[f64]| scores.iter().all(|score| *score == 0.0 || *score == 1.0);
    let shares = cases.iter().all(|case| zero_or_one(&case.old.scores) && zero_or_one(&case.new.scores));
    let single = cases.iter().all(|case| case.old.scores.len() == 1 && case.new.scores.len() == 1);
    if shares && single {
        return Basis::Counts { size: 1.0 };
    }
    if let [case] = cases {
        let repeated = case.old.scores.len() > 1 && case.new.scores.len() > 1;
        return match (shares, repeated) {
            (true, _) => Basis::Trials(Method::Newcombe),
            (false, true) => Basis::Trials(Method::Unpaired),
            (false, false) => Basis::Nothing,
        };
    }
    match means::variance(differences) {
        Some(0.0) => {
            let size = differences.first().map_or(0.0, |it| it.abs());
            Basis::Counts { size: if size > SAME { size } else { 1.0 } }
        }
        Some(_) => Basis::T { df: (cases.len() - 1) as f64 },
        None => Basis::Nothing,
    }
}

/// The difference over these cases.
pub fn effect(cases: &[Paired<'_>], level: f64) -> Option<Effect> {
    let differences: Vec<f64> = cases.iter().map(Paired::delta).collect();
    let (delta, n) = (means::mean(&differences)?, differences.len());
    let counts = Counts::of(&differences);
    let alpha = 1.0 - level;
    let base = Effect {
        delta,
        se: means::variance(&differences).map_or(0.0, |it| (it / n as f64).sqrt()),
        interval: None,
        p: None,
        method: None,
        counts,
        could_be_significant: false,
        n,
    };
    Some(match basis(cases, &differences) {
        Basis::T { df } => Effect {
            interval: Some(Interval::around(delta, t_quantile(0.5 + level / 2.0, df) * base.se).within(-1.0, 1.0)),
            p: Some(crate::statistics::distributions::t_two_sided(delta / base.se, df)),
            method: Some(Method::PairedT),
            could_be_significant: t_could_be_significant(cases, counts, t_quantile(0.5 + level / 2.0, df)),
            ..base
        },
        Basis::Counts { size } => {
            let (middle, se) = paired::bonett_price_parts(counts.wins, counts.losses, counts.all());
            let edge = paired::bonett_price(counts.discordant(), 0, counts.all(), level);
            Effect {
                se: size * se,
                interval: Some(Interval::around(size * middle, size * z_of_level(level) * se).within(-1.0, 1.0)),
                p: Some(tables::mcnemar(counts.wins, counts.losses).mid_p),
                method: Some(Method::BonettPrice),
                could_be_significant: edge.is_some_and(|(_, interval)| interval.low > 0.0),
                ..base
            }
        }
        Basis::Trials(method) => of_one_case(cases, method, level, alpha, base),
        Basis::Nothing => base,
    })
}

/// Whether the t of the best outcome exceeds its quantile: all cases that differ differ alike; where none is a tie and
/// scores are shares of k trials, all but one trial of one case.
fn t_could_be_significant(cases: &[Paired<'_>], counts: Counts, quantile: f64) -> bool {
    let (n, differ) = (counts.all() as f64, counts.discordant() as f64);
    if counts.ties > 0 {
        return (differ * (n - 1.0) / (n - differ)).sqrt() > quantile;
    }
    let zero_or_one = |scores: &[f64]| scores.iter().all(|score| *score == 0.0 || *score == 1.0);
    let shares = cases.iter().all(|case| zero_or_one(&case.old.scores) && zero_or_one(&case.new.scores));
    let most = cases.iter().map(|case| case.old.scores.len().max(case.new.scores.len())).max().unwrap_or(1);
    !shares || n * most as f64 - 1.0 > quantile
}

fn of_one_case(cases: &[Paired<'_>], method: Method, level: f64, alpha: f64, base: Effect) -> Effect {
    let Some(case) = cases.first() else { return base };
    let (x_new, n_new) = passes(&case.new.scores);
    let (x_old, n_old) = passes(&case.old.scores);
    if method == Method::Newcombe {
        let best = tables::fisher(n_new, n_new, 0, n_old);
        let interval = tables::newcombe(x_new, n_new, x_old, n_old, level);
        return Effect {
            se: interval.map_or(0.0, |it| (it.high - it.low) / 2.0 / z_of_level(level)),
            interval,
            p: tables::fisher(x_new, n_new, x_old, n_old).map(|it| it.two_sided),
            method: Some(method),
            could_be_significant: best.is_some_and(|it| it.two_sided < alpha),
            ..base
        };
    }
    let error = |scores: &[f64]| means::variance(scores).map(|it| (it / scores.len() as f64).sqrt());
    let (Some(of_new), Some(of_old)) = (error(&case.new.scores), error(&case.old.scores)) else { return base };
    let mean = |scores: &[f64]| means::mean(scores).unwrap_or_default();
    let between = means::unpaired(mean(&case.new.scores), of_new, mean(&case.old.scores), of_old, level);
    if between.se == 0.0 {
        return base;
    }
    let p = Some(normal_two_sided(between.z));
    let interval = Some(between.interval.within(-1.0, 1.0));
    Effect { se: between.se, interval, p, method: Some(method), could_be_significant: true, ..base }
}

fn passes(scores: &[f64]) -> (u64, u64) {
    (scores.iter().filter(|score| **score == 1.0).count() as u64, scores.len() as u64)
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval lies above 0.
    Improved,
    /// The whole interval lies below 0.
    Regressed,
    /// The whole interval lies within the margin.
    Equivalent,
    /// None of these is shown.
    Inconclusive,
}

impl Verdict {
    /// What an interval says, with differences up to the margin as none.
    pub fn of(interval: Option<Interval>, margin: f64) -> Self {
        match interval {
            Some(it) if it.low > 0.0 => Verdict::Improved,
            Some(it) if it.high < 0.0 => Verdict::Regressed,
            Some(it) if it.low > -margin && it.high < margin => Verdict::Equivalent,
            _ => Verdict::Inconclusive,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Improved => "improved",
            Verdict::Regressed => "regressed",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
        }
    }

    /// What several comparisons say together: the worst.
    pub fn of_all(all: impl Iterator<Item = Self> + Clone) -> Self {
        let any = |verdict| all.clone().any(|it| it == verdict);
        let worst = [Verdict::Regressed, Verdict::Inconclusive, Verdict::Improved].into_iter().find(|it| any(*it));
        worst.unwrap_or(if all.clone().next().is_some() { Verdict::Equivalent } else { Verdict::Inconclusive })
    }
}

/// Whether the new arm is not worse by more than a margin, one-sided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NotWorse {
    /// What is shown.
    pub verdict: GateVerdict,
    /// The one-sided lower bound of new less old.
    pub lower: Option<f64>,
    /// The p that it is worse by more than the margin.
    pub p: Option<f64>,
}

/// The gate's question, by the same means as the interval; where no case differs, by the share of cases that regress:
/// a spread that was not seen is no certainty.
pub fn not_worse_than(cases: &[Paired<'_>], effect: &Effect, margin: f64, alpha: f64) -> NotWorse {
    let differences: Vec<f64> = cases.iter().map(Paired::delta).collect();
    let bounded = |middle: f64, half: f64, p: f64| NotWorse {
        verdict: not_worse(middle - half, middle + half, margin),
        lower: Some((middle - half).max(-1.0)),
        p: Some(p),
    };
    let counts = effect.counts;
    match basis(cases, &differences) {
        Basis::T { df } => by_t(&differences, effect, df, margin, alpha),
        Basis::Counts { .. } if counts.discordant() == 0 => {
            let share = regressed_share(0, counts.all(), margin, alpha);
            NotWorse {
                verdict: share.map_or(GateVerdict::Inconclusive, |(_, verdict)| verdict),
                lower: share.map(|(upper, _)| -upper),
                p: Some(binomial_at_most(0, counts.all(), margin)),
            }
        }
        Basis::Counts { size } => {
            let (middle, se) = paired::bonett_price_parts(counts.wins, counts.losses, counts.all());
            let (middle, se) = (size * middle, size * se);
            bounded(middle, normal_quantile(1.0 - alpha) * se, normal_above((middle + margin) / se))
        }
        Basis::Trials(Method::Newcombe) => {
            let Some(case) = cases.first() else { return nothing() };
            let ((x_new, n_new), (x_old, n_old)) = (passes(&case.new.scores), passes(&case.old.scores));
            let Some(it) = tables::newcombe(x_new, n_new, x_old, n_old, 1.0 - 2.0 * alpha) else { return nothing() };
            let se = ((it.high - it.low) / 2.0 / normal_quantile(1.0 - alpha)).max(f64::MIN_POSITIVE);
            let p = Some(normal_above((effect.delta + margin) / se));
            NotWorse { verdict: not_worse(it.low, it.high, margin), lower: Some(it.low), p }
        }
        Basis::Trials(_) if effect.interval.is_some() => {
            let p = normal_above((effect.delta + margin) / effect.se);
            bounded(effect.delta, normal_quantile(1.0 - alpha) * effect.se, p)
        }
        Basis::Trials(_) | Basis::Nothing => nothing(),
    }
}

/// Cases that differ below which t trusts a spread that is not seen yet.
const FEW: u64 = 15;

/// Cases that are won below which losses could seem to make surer than ties do.
const FEW_WINS: u64 = 6;

/// The gate's question by t. In a suite that is nearly saturated few cases differ, and their spread is no measure of
/// what was not seen: so one more loss, of the largest size seen, is counted among them. And a result with hardly a win
/// is never surer than one without any difference.
fn by_t(differences: &[f64], effect: &Effect, df: f64, margin: f64, alpha: f64) -> NotWorse {
    let counts = effect.counts;
    let upper = effect.delta + t_quantile(1.0 - alpha, df) * effect.se;
    let mut all = differences.to_vec();
    if counts.discordant() < FEW {
        let loss = -differences.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        match all.iter_mut().find(|it| it.abs() <= SAME) {
            Some(tie) => *tie = loss,
            None => all.push(loss),
        }
    }
    let Some((delta, variance)) = means::mean(&all).zip(means::variance(&all)) else { return nothing() };
    let (n, df) = (all.len() as f64, all.len() as f64 - 1.0);
    let se = (variance / n).sqrt().max(f64::MIN_POSITIVE);
    let mut lower = delta - t_quantile(1.0 - alpha, df) * se;
    let mut p = t_above((delta + margin) / se, df);
    if counts.wins < FEW_WINS
        && let Some((share, _)) = regressed_share(0, counts.all(), margin, alpha)
    {
        lower = lower.min(-share);
        p = p.max(binomial_at_most(0, counts.all(), margin));
    }
    NotWorse { verdict: not_worse(lower, upper, margin), lower: Some(lower.max(-1.0)), p: Some(p) }
}

fn nothing() -> NotWorse {
    NotWorse { verdict: GateVerdict::Inconclusive, lower: None, p: None }
}

/// What a comparison could have seen, and what seeing more would take.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Power {
    /// The smallest difference that a comparison like this one finds four times in five.
    pub smallest_effect: f64,
    /// Of the squared standard error, the share that comes from trials of the same case differing. More trials can take
    /// that away, and no more. Absent where no case has two trials in both arms.
    pub share_within: Option<f64>,
    /// The difference that the next figures are about.
    pub target: f64,
    /// Cases it takes to find that difference four times in five, with as many trials each; absent where that cannot be
    /// known from one case.
    pub cases_needed: Option<u64>,
    /// Trials of each case in each arm it takes with these cases; absent where no number suffices or where it cannot
    /// be known from one trial a case.
    pub trials_needed: Option<u64>,
    /// The same in a sentence.
    pub text: String,
}

/// How sure one wants to be to find what is there.
const POWER: f64 = 0.8;

/// The scores of one arm in a case.
type Scores = for<'a, 'b> fn(&'b Paired<'a>) -> &'b [f64];

/// What these cases could have shown at this level.
pub fn power_of(cases: &[Paired<'_>], effect: &Effect, target: f64, level: f64) -> Option<Power> {
    effect.interval?;
    let n = cases.len() as f64;
    let alpha = 1.0 - level;
    let apart = power::errors_apart(alpha, POWER);
    let smallest_effect = apart * effect.se;
    let of_case = effect.se * effect.se * n;
    let within = |side: Scores| {
        let known: Vec<f64> = cases.iter().filter_map(|case| means::variance(side(case))).collect();
        means::mean(&known)
    };
    let inverse = |side: Scores| cases.iter().map(|case| 1.0 / side(case).len() as f64).sum::<f64>() / n;
    let (old, new): (Scores, Scores) = (|it| &it.old.scores, |it| &it.new.scores);
    // Only where the error is that of a spread that was seen can it be told from what it comes.
    let seen = effect.method == Some(Method::PairedT);
    let spread = within(old).zip(within(new)).filter(|_| seen).map(|(within_a, within_b)| {
        let of_trials = within_a * inverse(old) + within_b * inverse(new);
        (Spread { between: (of_case - of_trials).max(0.0), within_a, within_b }, of_trials)
    });
    let share_within = spread.filter(|_| of_case > 0.0).map(|(_, of_trials)| (of_trials / of_case).min(1.0));
    let cases_needed = ((apart * apart * of_case) / (target * target)).ceil().max(2.0);
    let cases_needed = (cases.len() > 1).then_some(cases_needed);
    let trials_needed = spread.and_then(|(spread, _)| power::trials_needed(target / apart, n, spread));
    let points = |share: f64| format!("{:.1} pp", share * 100.0);
    let found = if smallest_effect < 1.0 {
        format!("a difference of {} is found four times in five", points(smallest_effect))
    } else {
        "not even a difference of 100 pp is found four times in five".to_owned()
    };
    let several = cases.iter().any(|case| case.old.scores.len() > 1 && case.new.scores.len() > 1);
    let text = match cases_needed {
        _ if smallest_effect <= target => found,
        None => format!("{found}; what more cases would do cannot be known from one"),
        Some(cases_needed) => {
            let trials = match (trials_needed, spread) {
                (Some(trials), _) => format!("or {:.0} trials of each case", trials.ceil()),
                (None, Some(_)) => "with these no number of trials suffices".to_owned(),
                (None, None) if several => {
                    "what more trials would do cannot be known where all cases differ alike".to_owned()
                }
                (None, None) => "what more trials would do cannot be known from one a case".to_owned(),
            };
            format!("{found}; {} takes {cases_needed:.0} cases ({trials})", points(target))
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
