//! Two arms or more, compared case by case: what differs, how sure that is, and what the gates say of it. Pure.

use schemars::JsonSchema;
use serde::Serialize;

pub mod side;
pub mod behaviour;
pub mod cases;
pub mod coverage;
pub mod doubts;
pub mod effect;
pub mod gate;
pub mod join;
pub mod sequential;
pub mod non_inferiority;
mod one_case;
pub mod power;
pub mod summary;

use crate::statistics::gates::GateVerdict;
use crate::statistics::random::Generator;
use crate::statistics::tables::{self, Table};
use crate::statistics::{Interval, LEVEL, means, paired, permutation, several};
use behaviour::Behaviour;
use cases::{CaseRow, Slice};
use coverage::RestsOn;
use doubts::{About, Doubt, doubts};
use effect::{Counts, Effect, Method, Verdict};
use gate::Gate;
use join::{Joined, Paired, Unpaired, join};
use power::Power;
use side::{Arm, CaseTrials, Known, Side, Words};
use summary::{ArmSummary, summaries};

/// The version of the comparison's JSON form.
pub const VERSION: u32 = 1;

/// Differences up to this are none, where nobody says otherwise.
pub const MARGIN: f64 = 0.05;

/// How a comparison is made.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Differences up to this are none.
    pub margin: f64,
    /// Whether crashed and protocol errors count as failures.
    pub errors_fail: bool,
    /// The seed of every draw.
    pub seed: u64,
    /// The gates.
    pub gates: gate::Asked,
}

/// A comparison of arms, as JSON and as every other format has it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Version of this form.
    pub version: u32,
    /// Version of the program.
    pub evals: String,
    /// What all pairs say together: the worst.
    pub verdict: Verdict,
    /// The exit code that follows: the gates' where there are any, else the verdict's.
    pub exit_code: u8,
    /// The seed of every draw.
    pub seed: u64,
    /// Differences up to this are none.
    pub margin: f64,
    /// Whether crashed and protocol errors count as failures.
    pub errors_as_failures: bool,
    /// The arms, the old one of each pair before its new one.
    pub arms: Vec<ArmSummary>,
    /// Each new arm against its old one.
    pub pairs: Vec<Pair>,
    /// Arms that have a partner and no case that could be compared with it; absent where there are none.
    pub not_compared: Option<Vec<NotCompared>>,
    /// Harnesses and models that only one side has, and so are compared with nothing; absent where there are none.
    pub unmatched: Option<Unmatched>,
    /// What the gates say; absent without one.
    pub gate: Option<Gates>,
}

/// A new arm and an old one without a case that could be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotCompared {
    /// Name of the old arm.
    pub old: String,
    /// Name of the new arm.
    pub new: String,
    /// Why, for people.
    pub text: String,
    /// Each case, and why.
    pub unpaired: Vec<Unpaired>,
}

/// Arms that only one side has, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unmatched {
    /// Those of the old side.
    pub old: Vec<String>,
    /// Those of the new side.
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

/// What the gates say.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gates {
    /// All of them together.
    pub verdict: GateVerdict,
    /// Each by itself.
    pub gates: Vec<Gate>,
}

/// A new arm against an old one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pair {
    /// Name of the old arm.
    pub old: String,
    /// Name of the new arm.
    pub new: String,
    /// What the interval says.
    pub verdict: Verdict,
    /// The old arm's score over the cases that are compared.
    pub score_old: f64,
    /// The new arm's score over the same cases.
    pub score_new: f64,
    /// The mean over cases of new less old.
    pub delta: f64,
    /// Its interval.
    pub interval: Option<Interval>,
    /// The level of the interval; above 0.95 where the run was looked at several times.
    pub level: f64,
    /// How the interval was made.
    pub method: Option<Method>,
    /// The name of the interval's own test.
    pub test: Option<String>,
    /// Its p.
    pub p: Option<f64>,
    /// The same, adjusted by Holm for all pairs of this comparison; absent with one pair.
    pub p_holm: Option<f64>,
    /// The p of flipping signs, two-sided.
    pub sign_flip_p: f64,
    /// Whether every flip was counted; otherwise flips were drawn.
    pub sign_flip_exact: bool,
    /// The standard error of the difference.
    pub se: f64,
    /// How far the arms find the same cases hard.
    pub correlation: Option<f64>,
    /// Cases that could be compared.
    pub cases_compared: usize,
    /// How much the comparison rests on.
    pub rests_on: RestsOn,
    /// Trials with a score in the old arm, over those cases.
    pub trials_old: u64,
    /// Trials with a score in the new arm, over those cases.
    pub trials_new: u64,
    /// In how many cases which does better.
    pub counts: Counts,
    /// The chance that the new one is the better one: that of the cases in which they differ it wins more than half, by
    /// a flat prior.
    pub new_is_better: f64,
    /// For these very cases, with only the trials left to chance: Cochran, Mantel and Haenszel's p. Absent with one
    /// trial a case.
    pub these_cases_p: Option<f64>,
    /// The difference with errored trials of the new arm as failures, and those of the old one left out; absent where
    /// the new arm has none.
    pub delta_at_worst: Option<f64>,
    /// Cost of the new arm over that of the old one.
    pub cost: Option<Ratio>,
    /// Tokens likewise.
    pub tokens: Option<Ratio>,
    /// Time likewise.
    pub duration: Option<Ratio>,
    /// Whether any outcome of these cases and trials could have been significant.
    pub could_be_significant: bool,
    /// What could have been seen, and what more would take.
    pub power: Option<Power>,
    /// What a reader has to know.
    pub doubts: Vec<Doubt>,
    /// The cases, worst loss first.
    pub cases: Vec<CaseRow>,
    /// Cases that could not be compared.
    pub unpaired: Vec<Unpaired>,
    /// By tag, unadjusted: exploratory.
    pub slices: Vec<Slice>,
    /// Where they behave differently; absent against a baseline, which keeps no traces.
    pub behaviour: Option<Behaviour>,
}

/// How many times as much the new arm takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The geometric mean over cases.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// The ratio of the sums over those cases.
    pub of_totals: f64,
    /// Cases of which it is known in both.
    pub cases: usize,
}

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CompareError {
    /// They have no case in common.
    #[error("{old} and {new} have no case in common; compare runs of the same suite")]
    NothingInCommon {
        /// The old arm.
        old: String,
        /// The new arm.
        new: String,
    },
    /// The baseline is another suite's.
    #[error(
        "the baseline is of another suite: none of its cases is in run {run}; set one for this suite with `evals baseline set`"
    )]
    OtherSuite {
        /// The run.
        run: String,
    },
    /// Cases they have in common cannot be compared.
    #[error("no case of {old} and {new} can be compared:\n{reasons}")]
    NothingLeft {
        /// The old arm.
        old: String,
        /// The new arm.
        new: String,
        /// Why, a line for each reason.
        reasons: String,
    },
}

/// An old arm and a new one, with the sides they belong to.
pub type ArmPair<'a> = ((&'a Side, &'a Arm), (&'a Side, &'a Arm));

/// Compares each new arm with its old one.
///
/// # Errors
/// A pair has no case that can be compared: nothing is compared that should not be.
pub fn compare(pairs: &[ArmPair<'_>], words: &Words, options: &Options) -> Result<Comparison, CompareError> {
    let mut generator = Generator::seeded(options.seed);
    let (mut done, mut gates, mut evidence, mut not_compared) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut refused, mut open) = (None, false);
    for ((old_side, old), (new_side, new)) in pairs {
        let joined = join((old_side, old), (new_side, new));
        if joined.cases.is_empty() {
            open |= joined.unpaired.iter().any(|case| case.reason.is_without_score());
            refused = refused.or_else(|| Some(why_nothing((old_side, old), (new_side, new), &joined)));
            not_compared.push(NotCompared::of(old, new, &joined));
        }
        let level = sequential::level_of(old_side, new_side);
        let effect = effect::effect(&joined.cases, level);
        gates.extend(gate::of_pair(&options.gates, (old_side, old), (new_side, new), &joined, effect.as_ref()));
        evidence.push(gate::evidence::of_cases(options.gates.cases(), old, new, &joined));
        let doubts = doubts((old_side, old), (new_side, new), &joined);
        let Some(effect) = effect else { continue };
        done.push(pair(old, new, joined, &effect, doubts, words, level, options, &mut generator));
    }
    // What could have been compared, had there been scores, is open; what never could is refused.
    if let Some(refused) = refused.filter(|_| done.is_empty() && !open) {
        return Err(refused);
    }
    adjust(&mut done);
    let arms = arms_of(pairs);
    let rows = summaries(&arms);
    let new: Vec<&str> = pairs.iter().map(|(_, (_, new))| &*new.name).collect();
    for (arm, row) in arms.iter().zip(&rows).filter(|(arm, _)| new.contains(&&*arm.name)) {
        gates.extend(gate::of_arm(&options.gates, arm, row));
    }
    if options.gates.any() {
        gates.extend(evidence);
        gates.extend(arms.iter().map(|arm| gate::evidence::of_trials(options.gates.completed(), arm)));
    }
    let without = not_compared.iter().map(|_| Verdict::Inconclusive);
    let verdict = Verdict::of_all(done.iter().map(|pair| pair.verdict).chain(without));
    let gate = options.gates.any().then(|| Gates { verdict: gate::of_all(&gates), gates });
    let without_gate = match verdict {
        Verdict::Improved | Verdict::Equivalent => 0,
        Verdict::Regressed => 1,
        Verdict::Inconclusive => 3,
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
        pairs: done,
        not_compared: (!not_compared.is_empty()).then_some(not_compared),
        unmatched: None,
        gate,
    })
}

impl Comparison {
    /// Tells, with each pair, which arms are compared with nothing.
    #[must_use]
    pub fn with_unmatched(mut self, unmatched: Unmatched) -> Self {
        if !unmatched.is_empty() {
            let doubt = Doubt { about: About::Unmatched, text: unmatched.text() };
            self.pairs.iter_mut().for_each(|pair| pair.doubts.push(doubt.clone()));
            self.unmatched = Some(unmatched);
        }
        self
    }
}

/// Every arm once, in the order of the pairs.
fn arms_of<'a>(pairs: &[ArmPair<'a>]) -> Vec<&'a Arm> {
    let mut arms: Vec<&Arm> = Vec::new();
    for arm in pairs.iter().flat_map(|((_, old), (_, new))| [*old, *new]) {
        if !arms.iter().any(|known| known.name == arm.name) {
            arms.push(arm);
        }
    }
    arms
}

impl NotCompared {
    fn of(old: &Arm, new: &Arm, joined: &Joined<'_>) -> Self {
        let text = joined.unpaired.first().map_or("neither has a case", |case| &case.text);
        let others = joined.unpaired.iter().any(|case| case.text != text);
        let text = if others { format!("{text}, and more reasons") } else { text.to_owned() };
        Self { old: old.name.clone(), new: new.name.clone(), text, unpaired: joined.unpaired.clone() }
    }
}

/// Why nothing of two arms can be compared.
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
    words: &Words,
    level: f64,
    options: &Options,
    generator: &mut Generator,
) -> Pair {
    let cases = &joined.cases;
    let scores = |of: fn(&Paired<'_>) -> Option<f64>| cases.iter().filter_map(of).collect::<Vec<f64>>();
    let (before, now) = (scores(|it| it.old.score()), scores(|it| it.new.score()));
    let flipped = permutation::sign_flip(&cases.iter().map(Paired::delta).collect::<Vec<_>>(), generator);
    let trials = |of: fn(&Paired<'_>) -> usize| cases.iter().map(|case| of(case) as u64).sum();
    let counts = effect.counts;
    let several_trials = cases.iter().any(|case| case.old.scores.len() > 1 || case.new.scores.len() > 1);
    let tables: Vec<Table> = cases
        .iter()
        .map(|case| Table { a: (case.new.passed, case.new.failed), b: (case.old.passed, case.old.failed) })
        .collect();
    Pair {
        old: old.name.clone(),
        new: new.name.clone(),
        verdict: effect.verdict(level, options.margin),
        score_old: means::mean(&before).unwrap_or_default(),
        score_new: means::mean(&now).unwrap_or_default(),
        delta: effect.delta,
        interval: effect.interval,
        level,
        method: effect.method,
        test: effect.method.map(|method| method.test().to_owned()),
        p: effect.p,
        p_holm: None,
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
        cost: ratio(cases, |it| it.cost),
        tokens: ratio(cases, |it| it.tokens),
        duration: ratio(cases, |it| it.duration),
        could_be_significant: effect.could_be_significant,
        power: power::power_of(cases, effect, options.margin, level),
        doubts,
        cases: cases::rows(cases),
        slices: cases::slices(cases, level, options.margin),
        behaviour: behaviour::behaviour(cases, old, new, words),
        unpaired: joined.unpaired,
    }
}

/// The difference where every error of the new arm is a failure; a case of which every trial was errored is one too.
fn at_worst(cases: &[Paired<'_>], unpaired: &[Unpaired], old: &Arm, new: &Arm) -> Option<f64> {
    let lost = unpaired.iter().filter(|it| it.reason == join::Reason::NoScoreInNew);
    let lost = lost.filter_map(|it| Some((old.cases.get(&it.case)?, new.cases.get(&it.case)?)));
    let all: Vec<_> = cases.iter().map(|it| (it.old, it.new)).chain(lost).collect();
    let delta = |(old, new): &(&CaseTrials, &CaseTrials)| Some(new.score_with_errors()? - old.score()?);
    let any = all.iter().any(|(_, new)| new.errored > 0);
    any.then(|| means::mean(&all.iter().filter_map(delta).collect::<Vec<_>>())).flatten()
}

/// A ratio over the cases of which every trial of both arms told.
fn ratio(cases: &[Paired<'_>], of: fn(&CaseTrials) -> Known) -> Option<Ratio> {
    let whole = |known: Known| known.mean().filter(|_| known.untold == 0);
    let pairs = cases.iter().filter_map(|case| Some((whole(of(case.old))?, whole(of(case.new))?)));
    let (old, new): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let ratio = paired::log_ratio(&old, &new, LEVEL).filter(|it| it.ratio.is_finite() && it.of_totals.is_finite())?;
    Some(Ratio {
        ratio: ratio.ratio,
        interval: ratio.interval.filter(|it| it.low.is_finite() && it.high.is_finite()),
        of_totals: ratio.of_totals,
        cases: ratio.n,
    })
}

/// Several pairs are a family: Holm.
fn adjust(pairs: &mut [Pair]) {
    if pairs.len() < 2 {
        return;
    }
    let known: Vec<f64> = pairs.iter().filter_map(|pair| pair.p).collect();
    let mut adjusted = several::holm(&known).into_iter();
    for pair in pairs.iter_mut().filter(|pair| pair.p.is_some()) {
        pair.p_holm = adjusted.next();
    }
}
