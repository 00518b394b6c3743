//! Compares two or more arms case by case: the differences, their confidence intervals, and the results of the
//! gates. Pure.

use serde::Serialize;

pub mod side;
pub mod arm_pairs;
pub mod axes;
pub mod behaviour;
pub mod cases;
pub mod changes;
pub mod conclusion;
pub mod coverage;
pub mod differing;
pub mod doubts;
pub mod effect;
mod few_differ;
pub mod gate;
pub mod join;
pub mod sequential;
pub mod non_inferiority;
pub mod one_case;
pub mod per_trial;
pub mod power;
pub mod result_doubts;
pub mod self_check;
pub mod summary;
mod trend;

use crate::fold::{CaseTrials, KnownSum};
use crate::judgement::tolerance;
use crate::rounding::{factor, p_value, percent_bound};
use crate::run::RunRecord;
use crate::statistics::gates::GateVerdict;
use crate::statistics::random::Generator;
use crate::statistics::tables::{self, Table};
use crate::statistics::{Interval, LEVEL, means, paired, permutation, several};
use crate::text::{plural, some_of};
use axes::{AxisEffect, AxisNotCompared};
use behaviour::Behaviour;
use cases::{CaseRow, Slice};
use conclusion::Conclusion;
use coverage::RestsOn;
use doubts::{About, Doubt, doubts};
use effect::{Counts, Effect, EffectVerdict, Method};
use gate::arm::ArmEvidence;
use gate::{Gate, GateRequest};
use join::{Joined, Paired, Unpaired, join};
use per_trial::PerTrial;
use power::Power;
use result_doubts::{ReadCases, ResultDoubts};
use side::{Arm, Interner, Side};
use summary::{ArmSummary, Ranking, rank, summaries};

/// The version of the comparison's JSON form.
pub const VERSION: u32 = 1;

/// The default margin: differences up to this size count as none.
pub const MARGIN: f64 = 0.05;

/// The maximum number of cases named in the reason of a verdict.
const MAX_NAMED_CASES: usize = 5;

/// The settings of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The margin: differences up to this size count as none.
    pub margin: f64,
    /// True if trials errored by a crash or a broken protocol count as failures.
    pub errors_fail: bool,
    /// The seed of the random number generator.
    pub seed: u64,
    pub gates: GateRequest,
}

/// A comparison of arms, in the form of the JSON report. Every other report format shows the same content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Version of the JSON form.
    pub version: u32,
    /// Version of `evals`.
    pub evals: String,
    /// The worst verdict of all pairs.
    pub verdict: EffectVerdict,
    /// The exit code: that of the gates if there are any, else that of the verdict.
    pub exit_code: u8,
    /// The seed of the random number generator.
    pub seed: u64,
    /// The margin: differences up to this size count as none.
    pub margin: f64,
    /// True if trials errored by a crash or a broken protocol count as failures.
    pub errors_as_failures: bool,
    /// The arms; the old arm of each pair comes before its new arm.
    pub arms: Vec<ArmSummary>,
    /// The arms by score and cost, over the same cases. Absent if fewer than two arms can be ranked.
    pub ranking: Option<Ranking>,
    /// Each new arm compared with its old arm.
    pub pairs: Vec<Pair>,
    /// For an experiment: the keys that may differ between its arms. Absent otherwise.
    pub vary: Option<Vec<String>>,
    /// For an experiment: one conclusion for each arm. Absent otherwise.
    pub conclusions: Option<Vec<Conclusion>>,
    /// For a matrix: the effect of each axis, averaged over the other axes. Absent without a matrix.
    pub axes: Option<Vec<AxisEffect>>,
    /// For a matrix: the values of axes whose effect is unknown. Absent if there are none.
    pub axes_not_compared: Option<Vec<AxisNotCompared>>,
    /// Pairs of arms without a case that can be compared. Absent if there are none.
    pub not_compared: Option<Vec<NotCompared>>,
    /// Harnesses and models that only one side has, and that are therefore not compared. Absent if there are
    /// none.
    pub unmatched: Option<Unmatched>,
    /// The results of the gates. Absent without a gate.
    pub gate: Option<Gates>,
}

/// A new arm and an old arm without a case that can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotCompared {
    /// Name of the old arm.
    pub old: String,
    /// Name of the new arm.
    pub new: String,
    /// The reason, as text.
    pub text: String,
    /// Each case with the reason why it cannot be compared.
    pub unpaired: Vec<Unpaired>,
}

/// Arms that only one side has, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unmatched {
    /// Arms that only the old side has.
    pub old: Vec<String>,
    /// Arms that only the new side has.
    pub new: Vec<String>,
}

impl Unmatched {
    fn is_empty(&self) -> bool {
        self.old.is_empty() && self.new.is_empty()
    }

    fn text(&self) -> String {
        let side = |which: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("only the {which} side has {}", names.join(", ")))
        };
        let sides = [side("old", &self.old), side("new", &self.new)];
        format!("not everything is compared: {}", sides.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

/// The results of the gates.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gates {
    /// The verdict over all gates.
    pub verdict: GateVerdict,
    /// The result of each gate.
    pub gates: Vec<Gate>,
}

/// A new arm compared with an old arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pair {
    /// Name of the old arm.
    pub old: String,
    /// Name of the new arm.
    pub new: String,
    /// The verdict that follows from the confidence interval. Inconclusive instead of improved or equivalent if agents of the
    /// new arm could read files of their own case and reached a score above 0 there, and instead of regressed if agents of the
    /// old arm did and the other cases show no loss.
    pub verdict: EffectVerdict,
    /// The compared cases with a score above 0 in the new arm whose agents could read files of their own case.
    #[serde(skip)]
    pub read_own_case: Vec<String>,
    /// The compared cases with a score above 0 in the old arm whose agents could read files of their own case.
    #[serde(skip)]
    pub read_in_old: Vec<String>,
    /// True if the verdict is inconclusive instead of regressed because of the cases in `read_in_old`.
    #[serde(skip)]
    pub is_loss_doubted: bool,
    /// The old arm's score over the compared cases.
    pub score_old: f64,
    /// The new arm's score over the compared cases.
    pub score_new: f64,
    /// The mean over cases of the new score minus the old score.
    pub delta: f64,
    /// The confidence interval of `delta`.
    pub interval: Option<Interval>,
    /// The confidence level of the interval; above 0.95 if the scores of a run were evaluated several times.
    pub level: f64,
    /// The method by which the interval was computed.
    pub method: Option<Method>,
    /// The name of the test that belongs to the interval.
    pub test: Option<String>,
    /// The p-value of that test.
    pub p: Option<f64>,
    /// The p-value adjusted by Holm for all pairs of this comparison. Absent with one pair.
    pub p_holm: Option<f64>,
    /// The number of pairs that `p_holm` is adjusted for.
    #[serde(skip)]
    pub holm_pairs: usize,
    /// The two-sided p-value of the sign-flip permutation test.
    pub sign_flip_p: f64,
    /// True if all sign flips were enumerated. If `false`, they were sampled.
    pub sign_flip_exact: bool,
    /// The standard error of the difference. Absent without an interval.
    pub se: Option<f64>,
    /// The correlation between the arms' scores over cases: the extent to which both arms find the same cases hard.
    pub correlation: Option<f64>,
    /// The number of cases that could be compared.
    pub cases_compared: usize,
    /// The number of trials and cases that the comparison is based on.
    pub rests_on: RestsOn,
    /// Trials with a score in the old arm, over the compared cases.
    pub trials_old: u64,
    /// Trials with a score in the new arm, over the compared cases.
    pub trials_new: u64,
    /// The number of cases in which the new arm wins, loses or ties.
    pub counts: Counts,
    /// The probability that the new arm is better: that it wins more than half of the cases in which the arms
    /// differ, with a flat prior.
    pub new_is_better: f64,
    /// The p-value of the Cochran-Mantel-Haenszel test: for exactly these cases, with only the trials left to
    /// chance. Absent with one trial per case.
    pub these_cases_p: Option<f64>,
    /// The difference if errored trials of the new arm count as failures and those of the old arm are left out.
    /// Absent if the new arm has no errored trials.
    pub delta_at_worst: Option<f64>,
    /// The cost, the tokens and the duration of a trial, over the compared cases.
    pub per_trial: PerTrial,
    /// The new arm's cost divided by the old arm's cost.
    pub cost: Option<Ratio>,
    /// The new arm's tokens divided by the old arm's tokens.
    pub tokens: Option<Ratio>,
    /// The new arm's duration divided by the old arm's duration. Absent if one of them includes the start of the agent's
    /// program and the other does not.
    pub duration: Option<Ratio>,
    /// True if any outcome with these numbers of cases and trials could have been significant.
    pub could_be_significant: bool,
    /// True if the interval could exclude 0 with as many differing cases as there are.
    #[serde(skip)]
    pub enough_differ: bool,
    /// The minimum detectable effect, and the numbers of cases and trials needed to detect a smaller one.
    pub power: Option<Power>,
    /// True if trials were retried after an attempt that counts in no score, whose cost is in the cost of the trial.
    #[serde(skip)]
    pub retried: bool,
    /// Caveats of the comparison.
    pub doubts: Vec<Doubt>,
    /// The cases, the largest loss first.
    pub cases: Vec<CaseRow>,
    /// Cases that could not be compared.
    pub unpaired: Vec<Unpaired>,
    /// The comparison by tag. The figures are exploratory: they are not adjusted for the number of tags.
    pub slices: Vec<Slice>,
    /// Differences in behaviour. Absent against a baseline, which keeps no traces.
    pub behaviour: Option<Behaviour>,
}

impl Pair {
    /// Returns the confidence level of the interval as text, such as `95 %`.
    pub fn level_text(&self) -> String {
        if self.is_at_higher_level() { percent_bound(self.level) } else { "95 %".to_owned() }
    }

    /// Returns true if the level is above the usual one, because the scores of a run were evaluated several times.
    pub fn is_at_higher_level(&self) -> bool {
        tolerance::exceeds(self.level, LEVEL)
    }

    /// Returns the caveat that belongs to the verdict wherever the verdict is stated: chance can explain the best of several
    /// comparisons, or one case more that differs could change the verdict.
    pub fn but(&self) -> Option<String> {
        if self.doubts.iter().any(|doubt| doubt.about == About::FewDiffer) {
            return Some("but one case more that differs could change that".to_owned());
        }
        let is_found = matches!(self.verdict, EffectVerdict::Improved | EffectVerdict::Regressed);
        let p = self.p_holm.filter(|p| is_found && *p >= 1.0 - self.level)?;
        Some(format!("but with {} comparisons, chance can explain it ({} by Holm)", self.holm_pairs, p_value(p)))
    }

    /// Returns true if the interval of a single case shows a difference that Fisher's test does not confirm.
    pub fn is_unconfirmed(&self) -> bool {
        let excludes_none = self.interval.is_some_and(|it| it.low > 0.0 || it.high < 0.0);
        let is_open = self.verdict == EffectVerdict::Inconclusive && self.why_untrusted().is_none();
        self.method == Some(Method::Newcombe) && excludes_none && is_open
    }

    /// Returns the reason why the verdict is inconclusive whatever the interval is, if agents of the new arm could read files of
    /// their own case, or if only scores of such agents of the old arm show a loss.
    pub fn why_untrusted(&self) -> Option<String> {
        let (arm, read) =
            if self.is_loss_doubted { (&self.old, &self.read_in_old) } else { (&self.new, &self.read_own_case) };
        let is_untrusted = self.verdict == EffectVerdict::Inconclusive && !read.is_empty();
        let names = || some_of(read, MAX_NAMED_CASES);
        is_untrusted.then(|| format!("agents of {arm} could read files of their own case: {}", names()))
    }

    /// Returns the sentence that costs and tokens of retried trials count different attempts, if trials were retried.
    /// Without it, twice the cost for the same tokens would seem to be a higher price.
    pub fn note_on_retries(&self) -> Option<&'static str> {
        self.retried.then_some("the cost includes retried attempts, tokens and time do not")
    }
}

/// The ratio of the new arm's consumption to the old arm's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The geometric mean over cases. Absent if the figure of a case is 0 in one arm only.
    pub ratio: Option<f64>,
    /// The 95 % confidence interval of `ratio`.
    pub interval: Option<Interval>,
    /// The ratio of the sums over the cases for which the figure is known in both arms.
    pub of_totals: f64,
    /// The number of cases for which the figure is known in both arms, and above 0 unless `ratio` is absent.
    pub cases: usize,
    /// The number of cases whose figure is 0 in one arm only, and that have no ratio. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_ratio: Option<usize>,
}

/// The factor between the ends of the interval of a ratio beyond which they mean nothing.
const WIDEST: f64 = 1_000_000.0;

impl Ratio {
    /// Returns the ratio with its interval, if it is known: `0.91 [0.77, 1.08]`.
    pub fn figure(&self) -> String {
        let interval = match self.ends() {
            Some((low, high)) => format!(" [{low}, {high}]"),
            None if self.interval.is_some() => format!(" ({})", Self::TOO_WIDE),
            None => String::new(),
        };
        match self.why_of_sums() {
            Some(why) => format!("{} ({why})", self.shown()),
            None => format!("{}{interval}", self.shown()),
        }
    }

    /// Returns the geometric mean, or the ratio of the sums if a case has no ratio.
    fn shown(&self) -> String {
        factor(self.ratio.unwrap_or(self.of_totals))
    }

    /// Returns the reason why the ratio is that of the sums.
    fn why_of_sums(&self) -> Option<String> {
        let cases = self.without_ratio?;
        let has = if cases == 1 { "is 0 on one side and has" } else { "are 0 on one side and have" };
        Some(format!("the ratio of the sums, because {} {has} no ratio", plural(cases, "case")))
    }

    /// Returns the ratio of consumption with remarks: `0.91 [0.77, 1.08] × the cost (over 3 of 4 cases)`. An interval whose ends
    /// are shown as the ratio is left out.
    fn described(&self, what: &str, mut remarks: Vec<String>) -> String {
        let shown = self.shown();
        let interval = match self.ends() {
            Some((low, high)) if low == shown && high == shown => String::new(),
            Some((low, high)) => format!(" [{low}, {high}]"),
            None => String::new(),
        };
        if self.interval.is_some() && self.ends().is_none() {
            remarks.insert(0, Self::TOO_WIDE.to_owned());
        }
        if let Some(why) = self.why_of_sums() {
            remarks.insert(0, why);
        }
        let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) };
        format!("{shown}{interval} × the {what}{remarks}")
    }

    /// The remark about an interval whose ends are not shown.
    const TOO_WIDE: &str = "interval too wide to be useful";

    /// Returns the ends of the interval as text. With two or three cases that differ widely, the interval is useless, and its
    /// ends are not shown.
    fn ends(&self) -> Option<(String, String)> {
        let interval = self.interval.filter(|it| it.high <= it.low * WIDEST)?;
        Some((factor(interval.low), factor(interval.high)))
    }
}

/// The reason why nothing can be compared.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CompareError {
    /// The arms have no case in common.
    #[error("{old} and {new} have no case in common; compare runs of the same suite")]
    NothingInCommon {
        /// The old arm.
        old: String,
        /// The new arm.
        new: String,
    },
    /// The baseline was made from another suite.
    #[error(
        "the baseline is of another suite: none of its cases is in run {run}; set one for this suite with `evals baseline set`"
    )]
    OtherSuite { run: String },
    /// The arms have no common case that can be compared.
    #[error("no case of {old} and {new} can be compared:\n{reasons}")]
    NothingLeft {
        /// The old arm.
        old: String,
        /// The new arm.
        new: String,
        /// The reasons, one per line.
        reasons: String,
    },
}

/// An old arm and a new arm, each with the side it belongs to.
pub type ArmPair<'a> = ((&'a Side, &'a Arm), (&'a Side, &'a Arm));

/// Compares each new arm with its old arm.
///
/// # Errors
/// Returns an error if no pair has a case that can be compared. If a case only lacks a score, or all common cases are in
/// quarantine, the comparison is left open instead.
pub fn compare(pairs: &[ArmPair<'_>], words: &Interner, options: &Options) -> Result<Comparison, CompareError> {
    let mut generator = Generator::seeded(options.seed);
    let (mut done, mut gates, mut evidence, mut not_compared) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut refused, mut open, mut undecided) = (None, false, 0);
    let mut in_quarantine: Vec<&str> = Vec::new();
    let nothing_counts = pairs.iter().all(decides_nothing);
    let joined: Vec<Joined<'_>> = pairs.iter().map(|(old, new)| join(*old, *new)).collect();
    let doubted = ResultDoubts::of_comparison(pairs, &joined);
    for (of_both, joined) in pairs.iter().zip(joined) {
        let ((old_side, old), (new_side, new)) = of_both;
        let counts = nothing_counts || !decides_nothing(of_both);
        if joined.cases.is_empty() {
            not_compared.push(NotCompared::of(old, new, &joined));
        }
        if joined.cases.is_empty() && counts {
            open |= joined.unpaired.iter().any(|case| case.reason.is_without_score()) || joined.is_quarantined_in_old();
            open |= nothing_counts && old_side.cases.keys().any(|case| new_side.cases.contains_key(case));
            refused = refused.or_else(|| Some(why_nothing((old_side, old), (new_side, new), &joined)));
            undecided += 1;
        }
        let level = sequential::level_of(old_side, new_side);
        let effect = effect::effect(&joined.cases, level);
        if counts {
            let (of_old, of_new) = ((*old_side, *old), (*new_side, *new));
            let of_pair = gate::of_pair(&options.gates, of_old, of_new, &joined, effect.as_ref(), &doubted);
            let of_cases = gate::evidence::of_cases(options.gates.cases(), old, new, &joined);
            let quarantined: Vec<&str> = joined.quarantined().collect();
            gates.extend(of_pair.into_iter().map(|gate| gate.without_quarantined(&quarantined)));
            // The old arm has no trial, and no case that the new one could lack unless a named one has no score.
            let is_lacked = joined.is_quarantined_in_old();
            if is_lacked {
                in_quarantine.push(&old.name);
            }
            if !is_lacked || coverage::cases_of_old(old, new, &joined) > 0 {
                evidence.push(of_cases.without_quarantined(&quarantined));
            }
        }
        let mut doubts = doubts((old_side, old), (new_side, new), &joined, &doubted);
        if old_side.interleaved && old_side.run == new_side.run {
            // Trials that ran again later are in no half of the run.
            let apart = doubts::ran_apart(old, new, &joined);
            doubts.extend(apart.or_else(|| trend::trend(&joined.cases)));
        }
        let Some(effect) = effect else { continue };
        let read = doubted.read_of(old, new, &joined);
        if read.new.is_empty() {
            doubts.extend(few_differ::few_differ(&joined.cases, &effect, level, options.margin));
        }
        done.push(pair(old, new, joined, &effect, doubts, &read, words, level, options, &mut generator));
    }
    // If cases are only missing scores, the comparison is left open; if no case could ever have been compared,
    // it is refused.
    if let Some(refused) = refused.filter(|_| done.is_empty() && !open) {
        return Err(refused);
    }
    adjust(&mut done);
    let with_sides = arms_of(pairs);
    let arms: Vec<&Arm> = with_sides.iter().map(|(_, arm)| *arm).collect();
    let mut rows = summaries(&with_sides, &done);
    let ranking = rank(&mut rows, &with_sides, &done, &doubted);
    let new: Vec<&str> = pairs.iter().map(|(_, (_, new))| &*new.name).collect();
    let counted: Vec<&ArmPair<'_>> = pairs.iter().filter(|pair| nothing_counts || !decides_nothing(pair)).collect();
    let counts = |arm: &Arm| counted.iter().any(|((_, old), (_, new))| old.name == arm.name || new.name == arm.name);
    for arm in arms.iter().filter(|arm| new.contains(&&*arm.name)) {
        // Without a case that counts an arm has no score, but cases in quarantine may have had costs.
        let mut asked = options.gates;
        asked.fail_under = asked.fail_under.filter(|_| counts(arm));
        let of_arm = gate::of_arm(&asked, arm).into_iter();
        gates.extend(of_arm.map(|gate| gate.without_quarantined(&quarantined_of(arm))));
    }
    if options.gates.any() {
        gates.extend(evidence);
        let counted = arms.iter().filter(|arm| counts(arm) && !in_quarantine.contains(&&*arm.name));
        gates.extend(counted.map(|arm| {
            ArmEvidence::of(arm).completed(options.gates.completed()).without_quarantined(&quarantined_of(arm))
        }));
    }
    let gates: Vec<Gate> = gates.into_iter().map(|gate| gate.settled(&doubted)).collect();
    let without = std::iter::repeat_n(EffectVerdict::Inconclusive, undecided);
    let verdict = EffectVerdict::of_all(done.iter().map(|pair| pair.verdict).chain(without));
    let gate = options.gates.any().then(|| Gates { verdict: gate::of_all(&gates), gates });
    let without_gate = match verdict {
        EffectVerdict::Improved | EffectVerdict::Equivalent => 0,
        EffectVerdict::Regressed => 1,
        EffectVerdict::Inconclusive => 3,
    };
    Ok(Comparison {
        version: VERSION,
        evals: env!("CARGO_PKG_VERSION").to_owned(),
        verdict,
        exit_code: gate.as_ref().map_or(without_gate, |it| gate::exit_code(it.verdict)),
        seed: options.seed,
        margin: options.margin,
        errors_as_failures: options.errors_fail,
        arms: rows,
        ranking,
        pairs: done,
        vary: None,
        conclusions: None,
        axes: None,
        axes_not_compared: None,
        not_compared: (!not_compared.is_empty()).then_some(not_compared),
        unmatched: None,
        gate,
    })
}

impl Comparison {
    /// Adds a conclusion for each arm of an experiment with this baseline.
    pub fn conclude(&mut self, vary: &[String], baseline: &str) {
        self.vary = Some(vary.to_vec());
        let compared = self.pairs.iter().map(|pair| conclusion::of(pair, self.margin));
        let others = self.not_compared.iter().flatten().map(conclusion::not_compared);
        let alone = self.unmatched.iter().flat_map(|it| &it.new).map(|arm| conclusion::without_partner(arm, baseline));
        self.conclusions = Some(compared.chain(others).chain(alone).collect());
    }

    /// Adds the effects of the axes of a run's experiment to the comparison of the run's arms.
    pub fn add_axes(&mut self, side: &Side, record: &RunRecord) {
        let (effects, not_compared) = axes::of(side, record);
        self.axes = Some(effects).filter(|axes| !axes.is_empty());
        self.axes_not_compared = Some(not_compared).filter(|axes| !axes.is_empty());
    }

    /// Adds the arms that have no counterpart to the comparison, and to the caveats of each pair.
    #[must_use]
    pub fn with_unmatched(mut self, unmatched: Unmatched) -> Self {
        if !unmatched.is_empty() {
            let doubt = Doubt { about: About::Unmatched, text: unmatched.text() };
            self.pairs.iter_mut().for_each(|pair| pair.doubts.push(doubt.clone()));
            self.unmatched = Some(unmatched);
        }
        self
    }

    /// Adds the results of the gates for the arms that only the old side has: their cases have no score in the new side.
    #[must_use]
    pub fn with_gone(mut self, asked: &GateRequest, old: &Side) -> Self {
        let names = self.unmatched.iter().flat_map(|unmatched| &unmatched.old);
        let gone = names.filter_map(|name| old.arms.iter().find(|arm| arm.name == *name));
        let found: Vec<Gate> = gone.flat_map(|arm| gate::of_gone(asked, old, arm)).collect();
        if let Some(gates) = &mut self.gate {
            gates.gates.extend(found);
            gates.verdict = gate::of_all(&gates.gates);
            self.exit_code = gate::exit_code(gates.verdict);
        }
        self
    }
}

/// Returns true if a pair decides nothing, unless all pairs are like this: no case of either arm counts, because all were
/// skipped or are in quarantine. In a comparison within one run, the new arm suffices: it cannot do what the cases require. In
/// a comparison of two runs, a new arm without a case has lost those of the old arm, also those that a baseline only names.
fn decides_nothing(((old_side, old), (new_side, new)): &ArmPair<'_>) -> bool {
    let is_one_run = std::ptr::eq(*old_side, *new_side);
    new.cases.is_empty() && (is_one_run || old.cases.is_empty() && old.left_out.is_empty())
}

/// Returns the names of an arm's cases in quarantine.
fn quarantined_of(arm: &Arm) -> Vec<&String> {
    arm.quarantined.keys().collect()
}

/// Returns every arm once with its side, in the order of the pairs.
fn arms_of<'a>(pairs: &[ArmPair<'a>]) -> Vec<(&'a Side, &'a Arm)> {
    let mut arms: Vec<(&Side, &Arm)> = Vec::new();
    for (side, arm) in pairs.iter().flat_map(|(old, new)| [*old, *new]) {
        if !arms.iter().any(|(_, known)| known.name == arm.name) {
            arms.push((side, arm));
        }
    }
    arms
}

impl NotCompared {
    fn of(old: &Arm, new: &Arm, joined: &Joined<'_>) -> Self {
        let text = joined.unpaired.first().map_or("neither side has a case that was not skipped", |case| &case.text);
        let others = joined.unpaired.iter().any(|case| case.text != text);
        let text = if others { format!("{text}, and more reasons") } else { text.to_owned() };
        Self { old: old.name.clone(), new: new.name.clone(), text, unpaired: joined.unpaired.clone() }
    }
}

/// Returns the reason why nothing of two arms can be compared.
fn why_nothing(old: (&Side, &Arm), new: (&Side, &Arm), joined: &Joined<'_>) -> CompareError {
    let (before, now) = (old.1.name.clone(), new.1.name.clone());
    if !old.1.cases.keys().any(|case| new.1.cases.contains_key(case)) {
        return match old.0.baseline {
            true => CompareError::OtherSuite { run: new.0.run.clone() },
            false => CompareError::NothingInCommon { old: before, new: now },
        };
    }
    let lines = joined.unpaired.iter().take(8).map(|it| format!("  {}: {}", it.case, it.text));
    let mut reasons = lines.collect::<Vec<_>>().join("\n");
    if joined.unpaired.len() > 8 {
        reasons.push_str(&format!("\n  and {} more", joined.unpaired.len() - 8));
    }
    CompareError::NothingLeft { old: before, new: now, reasons }
}

#[expect(clippy::too_many_arguments, reason = "a pair is made from everything that is known of it")]
fn pair(
    old: &Arm,
    new: &Arm,
    joined: Joined<'_>,
    effect: &Effect,
    doubts: Vec<Doubt>,
    read: &ReadCases<'_>,
    words: &Interner,
    level: f64,
    options: &Options,
    generator: &mut Generator,
) -> Pair {
    let cases = &joined.cases;
    let (found, verdict) =
        (effect.verdict(level, options.margin), read.verdict(&joined, effect, level, options.margin));
    let owned = |cases: &[&str]| cases.iter().map(|&case| case.to_owned()).collect::<Vec<_>>();
    let scores = |of: fn(&Paired<'_>) -> Option<f64>| cases.iter().filter_map(of).collect::<Vec<f64>>();
    let (before, now) = (scores(|it| it.old.score()), scores(|it| it.new.score()));
    let flipped = permutation::sign_flip(&cases.iter().map(Paired::delta).collect::<Vec<_>>(), generator);
    let trials = |of: fn(&Paired<'_>) -> usize| cases.iter().map(|case| of(case) as u64).sum();
    let counts = effect.counts;
    let without_errors = per_trial::without_errors(cases);
    let several_trials = cases.iter().any(|case| case.old.scores.len() > 1 || case.new.scores.len() > 1);
    let tables: Vec<Table> = cases
        .iter()
        .map(|case| Table { a: (case.new.passed, case.new.failed), b: (case.old.passed, case.old.failed) })
        .collect();
    Pair {
        old: old.name.clone(),
        new: new.name.clone(),
        verdict,
        read_own_case: owned(&read.new),
        read_in_old: owned(&read.old),
        is_loss_doubted: found == EffectVerdict::Regressed && verdict != found,
        score_old: means::mean(&before).unwrap_or_default(),
        score_new: means::mean(&now).unwrap_or_default(),
        delta: effect.delta,
        interval: effect.interval,
        level,
        method: effect.method,
        test: effect.method.map(|method| method.test().to_owned()),
        p: effect.p,
        p_holm: None,
        holm_pairs: 0,
        sign_flip_p: flipped.two_sided,
        sign_flip_exact: flipped.exact,
        se: effect.se,
        correlation: paired::correlation(&now, &before),
        cases_compared: cases.len(),
        rests_on: RestsOn::of(old, new, &joined),
        trials_old: trials(|it| it.old.scores.len()),
        trials_new: trials(|it| it.new.scores.len()),
        counts,
        new_is_better: tables::mcnemar(counts.wins, counts.losses).first_is_better,
        these_cases_p: several_trials.then(|| tables::cochran_mantel_haenszel(&tables)).flatten().map(|it| it.p),
        delta_at_worst: at_worst(cases, &joined.unpaired, old, new),
        per_trial: PerTrial::of(cases),
        cost: ratio(&without_errors, |it| it.cost),
        tokens: ratio(&without_errors, |it| it.tokens),
        duration: ratio(cases, |it| it.duration).filter(|_| !old.is_timed_otherwise(new)),
        could_be_significant: effect.could_be_significant,
        enough_differ: effect.enough_differ,
        power: power::power_of(cases, effect, options.margin, level),
        retried: [old, new].into_iter().any(|arm| arm.cases.values().any(|case| case.tried_again > 0)),
        doubts,
        cases: cases::rows(cases, (old.made.is_mixed(), new.made.is_mixed())),
        slices: cases::slices(cases, level, options.margin),
        behaviour: behaviour::behaviour(cases, old, new, words),
        unpaired: joined.unpaired,
    }
}

/// Returns the difference if every errored trial of the new arm counts as a failure. A case whose trials all
/// errored counts as a failure too.
fn at_worst(cases: &[Paired<'_>], unpaired: &[Unpaired], old: &Arm, new: &Arm) -> Option<f64> {
    let lost = unpaired.iter().filter(|it| it.reason == join::Reason::NoScoreInNew);
    let lost = lost.filter_map(|it| Some((old.cases.get(&it.case)?, new.cases.get(&it.case)?)));
    let all: Vec<_> = cases.iter().map(|it| (it.old, it.new)).chain(lost).collect();
    let delta = |(old, new): &(&CaseTrials, &CaseTrials)| Some(new.score_with_errors()? - old.score()?);
    let any = all.iter().any(|(_, new)| new.errored > 0);
    any.then(|| means::mean(&all.iter().filter_map(delta).collect::<Vec<_>>())).flatten()
}

/// Returns the ratio over the cases for which every trial of both arms reported the figure.
fn ratio(cases: &[Paired<'_>], of: fn(&CaseTrials) -> KnownSum) -> Option<Ratio> {
    let (old, new) = per_trial::known_in_both(cases, of);
    // Without these cases, the mean of the ratios would not show what was saved or spent in them.
    let without_ratio = old.iter().zip(&new).filter(|(old, new)| (**old > 0.0) != (**new > 0.0)).count();
    if without_ratio > 0 {
        let of_totals = new.iter().sum::<f64>() / old.iter().sum::<f64>();
        let (cases, without_ratio) = (old.len(), Some(without_ratio));
        return of_totals.is_finite().then_some(Ratio { ratio: None, interval: None, of_totals, cases, without_ratio });
    }
    let ratio = paired::log_ratio(&old, &new, LEVEL).filter(|it| it.ratio.is_finite() && it.of_totals.is_finite())?;
    Some(Ratio {
        ratio: Some(ratio.ratio),
        interval: ratio.interval.filter(|it| it.low.is_finite() && it.high.is_finite()),
        of_totals: ratio.of_totals,
        cases: ratio.n,
        without_ratio: None,
    })
}

/// Adjusts the p-values of several pairs by Holm.
fn adjust(pairs: &mut [Pair]) {
    if pairs.len() < 2 {
        return;
    }
    let known: Vec<f64> = pairs.iter().filter_map(|pair| pair.p).collect();
    let mut adjusted = several::holm(&known).into_iter();
    for pair in pairs.iter_mut().filter(|pair| pair.p.is_some()) {
        pair.p_holm = adjusted.next();
        pair.holm_pairs = known.len();
    }
}
