//! The cases of a comparison, the largest loss first: pass counts of both arms, p-values and flags.

use serde::Serialize;
use strum::IntoStaticStr;

use super::effect::EffectVerdict;
use super::join::Paired;
use crate::fold::{CaseFlag, CaseTrials, Tally};
use crate::statistics::{several, tables};
use crate::verdict::Verdict;
use crate::word::word;

/// The false discovery rate of the list of regressed cases.
const FALSE_FINDS: f64 = 0.1;

/// A case of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseRow {
    /// The case's id.
    pub case: String,
    /// The old arm's trials.
    pub old: Tried,
    /// The new arm's trials.
    pub new: Tried,
    /// The new mean score minus the old one.
    pub delta: f64,
    /// The p-value of Fisher's exact test on passed and failed trials.
    pub p: Option<f64>,
    /// The p-value adjusted for all cases by Benjamini and Hochberg.
    pub p_adjusted: Option<f64>,
    /// True if losing this case alone fails a gate.
    pub critical: bool,
    /// The noteworthy properties of the case, such as `regressed` or `flaky`.
    pub flags: Vec<ComparedFlag>,
}

/// The outcomes of an arm's trials of one case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tried {
    /// Trials that passed.
    pub passed: u64,
    /// Trials that passed or failed.
    pub judged: u64,
    /// The mean score of the trials.
    pub score: f64,
}

/// A flag of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(test, schemars(rename = "Flag"))]
pub enum ComparedFlag {
    /// The case passed before and no longer passes, or its score drops by more than chance explains.
    Regressed,
    /// The case did not pass before and passes now, or its score rises by more than chance explains.
    Fixed,
    /// By the passed and failed trials alone, the case passed before and fails now, or the reverse. Trials without a score
    /// leave it open whether that is so.
    Open,
    /// The case both passed and failed in one arm.
    Flaky,
    /// A capability case that every planned trial of both arms passed, two or more of each: it does not distinguish the
    /// arms.
    Saturated,
    /// No trial of either arm passed, of two or more of each, all were run, and two or more of one arm failed: perhaps the
    /// case cannot be solved.
    Broken,
}

word!(ComparedFlag);

impl From<CaseFlag> for ComparedFlag {
    fn from(flag: CaseFlag) -> Self {
        match flag {
            CaseFlag::Saturated => Self::Saturated,
            CaseFlag::Broken => Self::Broken,
        }
    }
}

/// Returns the cases, the largest loss first. `mixed` is true for an old or new arm that changed between its trials: passes
/// and fails of different versions do not make a case flaky.
pub fn rows(cases: &[Paired<'_>], mixed: (bool, bool)) -> Vec<CaseRow> {
    let p: Vec<Option<f64>> = cases.iter().map(|case| fisher(case.old, case.new)).collect();
    let known: Vec<f64> = p.iter().copied().flatten().collect();
    let mut adjusted = several::benjamini_hochberg(&known).into_iter();
    let mut rows: Vec<CaseRow> = Vec::with_capacity(cases.len());
    for (case, p) in cases.iter().zip(p) {
        let p_adjusted = p.and_then(|_| adjusted.next());
        rows.push(CaseRow {
            case: case.id.to_owned(),
            old: tried(case.old),
            new: tried(case.new),
            delta: case.delta(),
            p,
            p_adjusted,
            critical: case.facts.critical,
            flags: flags(case, p_adjusted, mixed),
        });
    }
    rows.sort_by(|a, b| a.delta.total_cmp(&b.delta).then_with(|| a.case.cmp(&b.case)));
    rows
}

fn tried(trials: &CaseTrials) -> Tried {
    let score = trials.score().unwrap_or_default();
    Tried { passed: trials.passed, judged: trials.passed + trials.failed, score }
}

fn fisher(old: &CaseTrials, new: &CaseTrials) -> Option<f64> {
    let (n_old, n_new) = (old.passed + old.failed, new.passed + new.failed);
    if n_old == 0 || n_new == 0 {
        return None;
    }
    tables::fisher(new.passed, n_new, old.passed, n_old).map(|it| it.two_sided)
}

fn flags(case: &Paired<'_>, p_adjusted: Option<f64>, mixed: (bool, bool)) -> Vec<ComparedFlag> {
    let pass = case.facts.pass;
    let judged = [case.old, case.new].map(|trials| trials.verdict_of_judged(pass));
    // Trials without a score may have had the other outcome.
    let [before, now] = [case.old, case.new].map(|trials| trials.verdict(pass));
    let delta = case.delta();
    let beyond_chance = p_adjusted.is_some_and(|p| p <= FALSE_FINDS);
    let lost = delta < 0.0 && judged == [Verdict::Pass, Verdict::Fail];
    let won = delta > 0.0 && judged == [Verdict::Fail, Verdict::Pass];
    let mut flags = Vec::new();
    if delta < 0.0 && beyond_chance || lost && before == Verdict::Pass && now == Verdict::Fail {
        flags.push(ComparedFlag::Regressed);
    } else if delta > 0.0 && beyond_chance || won && before == Verdict::Fail && now == Verdict::Pass {
        flags.push(ComparedFlag::Fixed);
    } else if lost || won {
        flags.push(ComparedFlag::Open);
    }
    let [old, new] = [case.old, case.new].map(Tally::of);
    if old.is_flaky() && !mixed.0 || new.is_flaky() && !mixed.1 {
        flags.push(ComparedFlag::Flaky);
    }
    // Unlike the report of a run, a comparison does not call a case broken if an arm has a single trial of it.
    let of_all = CaseFlag::of(case.facts.kind, [old, new].into_iter());
    flags.extend(of_all.filter(|_| old.trials.min(new.trials) > 1).map(ComparedFlag::from));
    flags
}

/// The comparison over the cases of one tag, without any adjustment for the number of tags.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slice {
    /// The tag that these cases have.
    pub tag: String,
    /// The number of cases.
    pub cases: usize,
    /// The difference over these cases.
    pub delta: f64,
    /// The confidence interval of the difference, if one can be computed.
    pub interval: Option<crate::statistics::Interval>,
    /// The verdict that the interval alone would give; exploratory.
    pub verdict: EffectVerdict,
}

/// Returns the slices by tag. Tags with only one case, or with all of the cases, are left out.
pub fn slices(cases: &[Paired<'_>], level: f64, margin: f64) -> Vec<Slice> {
    let mut tags: Vec<&String> = cases.iter().flat_map(|case| &case.facts.tags).collect();
    tags.sort_unstable();
    tags.dedup();
    let slice = |tag: &String| {
        let of_tag: Vec<Paired<'_>> = cases.iter().filter(|case| case.facts.tags.contains(tag)).cloned().collect();
        // A single case already has its own row.
        if of_tag.len() == cases.len() || of_tag.len() < 2 {
            return None;
        }
        let effect = super::effect::effect(&of_tag, level)?;
        let verdict = effect.verdict(level, margin);
        Some(Slice { tag: tag.clone(), cases: of_tag.len(), delta: effect.delta, interval: effect.interval, verdict })
    };
    tags.into_iter().filter_map(slice).collect()
}
