//! Doubts about results: reasons why a pass or a better score of an arm shows less than it seems to. They are listed here, once
//! for each comparison or run; gates, verdicts, caveats, rankings, axes and `--trials auto` read the list. Pure.

use std::collections::BTreeSet;

use super::doubts::{About, Doubt};
use super::effect::{Effect, EffectVerdict, effect};
use super::gate::must_pass;
use super::gate::regressions::is_guarded;
use super::join::{Joined, Reason};
use super::side::{Arm, Side};
use super::{ArmPair, arms_of};
use crate::fold::CaseTrials;
use crate::statistics::gates::GateVerdict;
use crate::text::plural;

/// A doubt about results of an arm of a comparison, or of a column of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultDoubt {
    /// The name of the arm or the column.
    pub arm: String,
    /// The case whose results are doubted. `None`: all cases of the arm.
    pub case: Option<String>,
    pub reason: DoubtReason,
}

/// The reason of a doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoubtReason {
    /// Agents could read files of their own case.
    OwnCase {
        /// The number of trials in which an agent could.
        trials: u64,
        /// True if the case has a score above 0. Otherwise, the agents gained nothing.
        has_score: bool,
    },
    /// The arm is compared with results of another harness: a pipeline may have run another agent by mistake.
    OtherHarness {
        old: HarnessOfRun,
        new: HarnessOfRun,
        /// True if the old results are those of a baseline file. Two runs that a user names can be of different harnesses.
        is_baseline: bool,
    },
    /// The baseline has no results of the case, because the case was in quarantine, and the case does not pass now: it may be
    /// lost.
    NotInBaseline(LackedNow),
}

/// The outcome in the new arm of a case of which the baseline has no results because of a quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LackedNow {
    /// The trials that passed.
    pub passed: u64,
    /// The planned trials. 0 if the arm skipped the case.
    pub planned: u64,
    /// True if the case has no score and is neither critical nor a regression case: it may be missing if enough other cases have
    /// a score.
    pub may_be_missing: bool,
}

/// A harness, and a run of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessOfRun {
    pub harness: String,
    pub run: String,
}

impl ResultDoubt {
    /// Returns the doubt about a case of an arm or a column if agents could read its files in some trials.
    pub fn of_own_case(arm: &str, case: &str, trials: u64, score: Option<f64>) -> Option<Self> {
        let reason = DoubtReason::OwnCase { trials, has_score: score.is_some_and(|score| score > 0.0) };
        (trials > 0).then(|| Self { arm: arm.to_owned(), case: Some(case.to_owned()), reason })
    }
}

/// The doubts about the results of a comparison or a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultDoubts(Vec<ResultDoubt>);

impl FromIterator<ResultDoubt> for ResultDoubts {
    fn from_iter<I: IntoIterator<Item = ResultDoubt>>(doubts: I) -> Self {
        Self(doubts.into_iter().collect())
    }
}

impl ResultDoubts {
    /// Lists the doubts of a comparison. `joined` has the cases of each pair.
    pub fn of_comparison(pairs: &[ArmPair<'_>], joined: &[Joined<'_>]) -> Self {
        let mut found = Self::of_arms(arms_of(pairs).into_iter().map(|(_, arm)| arm));
        for ((old, new), joined) in pairs.iter().zip(joined) {
            found.0.extend(other_harness(*old, *new));
            found.0.extend(not_in_baseline(*new, joined));
        }
        found
    }

    /// Lists the doubts about arms by themselves.
    pub fn of_arms<'a>(arms: impl IntoIterator<Item = &'a Arm>) -> Self {
        let of_arm = |arm: &'a Arm| {
            arm.cases.iter().filter_map(move |(id, case)| {
                ResultDoubt::of_own_case(&arm.name, id, case.case_in_workspace, case.score())
            })
        };
        arms.into_iter().flat_map(of_arm).collect()
    }

    /// Returns the doubts about an arm or a column.
    pub fn of<'s>(&'s self, arm: &str) -> impl Iterator<Item = &'s ResultDoubt> {
        self.0.iter().filter(move |doubt| doubt.arm == arm)
    }

    /// Returns the cases of an arm with a score above 0 whose agents could read their files, of those for which `counts` is true.
    fn read_own_case<'s>(&'s self, arm: &str, counts: impl Fn(&str) -> bool) -> Vec<(&'s str, u64)> {
        let read = self.of(arm).filter_map(|doubt| match (&doubt.reason, &doubt.case) {
            (DoubtReason::OwnCase { trials, has_score: true }, Some(case)) => Some((case.as_str(), *trials)),
            _ => None,
        });
        read.filter(|(case, _)| counts(case)).collect()
    }

    /// Returns the compared cases with a score above 0 whose agents could read their files, in each arm of a pair.
    pub fn read_of<'s>(&'s self, old: &Arm, new: &Arm, joined: &Joined<'_>) -> ReadCases<'s> {
        let compared: BTreeSet<&str> = joined.cases.iter().map(|case| case.id).collect();
        let read_in = |arm: &Arm| -> Vec<&'s str> {
            self.read_own_case(&arm.name, |case| compared.contains(case)).into_iter().map(|(case, _)| case).collect()
        };
        ReadCases { old: read_in(old), new: read_in(new) }
    }

    /// Returns the caveat about all trials of an arm whose agents could read files of their own case.
    pub fn caveat(&self, arm: &str) -> Option<Doubt> {
        let trials = self.of(arm).map(|doubt| match doubt.reason {
            DoubtReason::OwnCase { trials, .. } => trials,
            DoubtReason::OtherHarness { .. } | DoubtReason::NotInBaseline(_) => 0,
        });
        own_case_caveat(arm, trials.sum())
    }

    /// Returns that caveat for a figure that rests on the scores of an arm in the cases for which `counts` is true.
    pub fn caveat_of_scores(&self, arm: &str, counts: impl Fn(&str) -> bool) -> Option<Doubt> {
        own_case_caveat(arm, self.read_own_case(arm, counts).into_iter().map(|(_, trials)| trials).sum())
    }

    /// Returns the caveat about a new arm that is compared with results of another harness.
    pub fn caveat_of_harness(&self, new: &str) -> Option<Doubt> {
        self.of(new).find_map(|doubt| {
            let DoubtReason::OtherHarness { old, new, .. } = &doubt.reason else { return None };
            let text = format!("two harnesses are compared: {} before, {} now", old.harness, new.harness);
            Some(Doubt { about: About::OtherHarness, text })
        })
    }

    /// Returns the cases of a new arm that the baseline lacks because of a quarantine and that may be lost.
    pub fn not_in_baseline<'s>(&'s self, new: &str) -> impl Iterator<Item = (&'s str, LackedNow)> {
        self.of(new).filter_map(|doubt| match (&doubt.reason, &doubt.case) {
            (DoubtReason::NotInBaseline(now), Some(case)) => Some((case.as_str(), *now)),
            _ => None,
        })
    }
}

/// The compared cases of a pair of arms with a score above 0 whose agents could read their files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadCases<'a> {
    /// Those in which agents of the old arm could.
    pub old: Vec<&'a str>,
    /// Those in which agents of the new arm could.
    pub new: Vec<&'a str>,
}

impl ReadCases<'_> {
    /// Returns the verdict on the difference of the pair. It is inconclusive instead of improved or equivalent if agents of the
    /// new arm could read files of their own case, and instead of regressed if agents of the old arm could and the other cases
    /// alone do not show a loss. If agents are worse although they could, the verdict counts.
    pub fn verdict(&self, joined: &Joined<'_>, of_pair: &Effect, level: f64, margin: f64) -> EffectVerdict {
        let loss_of_others = || {
            let of_others = effect(&joined.without(&self.old).cases, level);
            of_others.is_some_and(|effect| effect.verdict(level, margin) == EffectVerdict::Regressed)
        };
        match of_pair.verdict(level, margin) {
            EffectVerdict::Improved | EffectVerdict::Equivalent if !self.new.is_empty() => EffectVerdict::Inconclusive,
            EffectVerdict::Regressed if !self.old.is_empty() && !loss_of_others() => EffectVerdict::Inconclusive,
            it => it,
        }
    }
}

fn own_case_caveat(arm: &str, trials: u64) -> Option<Doubt> {
    let text = || format!("{arm}: in {} the agent could read files of its own case", plural(trials, "trial"));
    (trials > 0).then(|| Doubt { about: About::Loaded, text: text() })
}

fn other_harness((old_side, old): (&Side, &Arm), (new_side, new): (&Side, &Arm)) -> Option<ResultDoubt> {
    let reason = || DoubtReason::OtherHarness {
        old: HarnessOfRun { harness: old.harness.clone(), run: old.run.clone() },
        new: HarnessOfRun { harness: new.harness.clone(), run: new_side.run.clone() },
        is_baseline: old_side.baseline,
    };
    (old.harness != new.harness).then(|| ResultDoubt { arm: new.name.clone(), case: None, reason: reason() })
}

/// Returns the doubts about cases of which the baseline has no results because they were in quarantine. A case that cannot be
/// lost, whatever it was before, has none, and neither has a case that the new arm does not have: as with other cases, such as in
/// a run of a part of the suite, the gate `cases` counts it.
fn not_in_baseline((side, arm): (&Side, &Arm), joined: &Joined<'_>) -> Vec<ResultDoubt> {
    let lacked = joined.unpaired.iter().filter(|it| it.reason == Reason::QuarantinedInOld);
    let doubts = lacked.filter_map(|it| {
        let (facts, now) = (side.cases.get(&it.case)?, arm.cases.get(&it.case));
        let guarded = is_guarded(facts.critical, facts.kind);
        let is_kept =
            |now: &CaseTrials| now.passed > 0 && (!guarded || must_pass(now.verdict(facts.pass)) == GateVerdict::Pass);
        let is_doubted = now.map_or_else(|| arm.skipped.contains(&it.case), |now| !is_kept(now));
        let may_be_missing = !guarded && now.is_none_or(|now| now.scores.is_empty());
        let (passed, planned) = now.map_or((0, 0), |now| (now.passed, now.planned()));
        let reason = DoubtReason::NotInBaseline(LackedNow { passed, planned, may_be_missing });
        is_doubted.then(|| ResultDoubt { arm: arm.name.clone(), case: Some(it.case.clone()), reason })
    });
    doubts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::CaseKind;
    use crate::compare::join::Paired;
    use crate::compare::side::CaseFacts;
    use crate::verdict::PassTrials;

    const MARGIN: f64 = 0.05;

    /// Returns the verdict on a pair of arms with these scores of one trial of each case.
    fn verdict(old: &[f64], new: &[f64], read: &ReadCases<'_>) -> EffectVerdict {
        let facts = CaseFacts {
            digest: String::new(),
            played: None,
            mixed: false,
            limits: serde_json::Value::Null,
            interaction: String::new(),
            tags: Vec::new(),
            kind: CaseKind::default(),
            pass: PassTrials::default(),
            critical: false,
            kept_from: None,
        };
        let ids: Vec<String> = (0..old.len()).map(|n| format!("c{n}")).collect();
        let trials = |scores: &[f64]| -> Vec<CaseTrials> {
            scores.iter().map(|score| CaseTrials { scores: vec![*score], ..CaseTrials::default() }).collect()
        };
        let (old, new) = (trials(old), trials(new));
        let cases = ids.iter().zip(old.iter().zip(&new));
        let cases = cases.map(|(id, (old, new))| Paired { id, facts: &facts, old, new }).collect();
        let joined = Joined { cases, unpaired: Vec::new() };
        let level = crate::statistics::LEVEL;
        read.verdict(&joined, &effect(&joined.cases, level).unwrap(), level, MARGIN)
    }

    #[test]
    fn a_better_arm_whose_agents_could_read_their_case_shows_nothing_and_a_worse_one_does() {
        let (all, none) = (vec![1.0; 100], vec![0.0; 100]);
        let (clean, read) = (ReadCases::default(), ReadCases { old: Vec::new(), new: vec!["c0"] });
        for (old, found) in [(&none, EffectVerdict::Improved), (&all, EffectVerdict::Equivalent)] {
            assert_eq!((verdict(old, &all, &clean), verdict(old, &all, &read)), (found, EffectVerdict::Inconclusive));
        }
        assert_eq!(verdict(&all, &none, &read), EffectVerdict::Regressed);
    }

    #[test]
    fn a_loss_counts_if_it_does_not_rest_on_agents_of_the_old_arm_that_could_read_their_case() {
        let read = ReadCases { old: vec!["c0", "c1", "c2", "c3", "c4"], new: Vec::new() };
        let (old, lost) =
            (vec![1.0; 20], |n: usize| -> Vec<f64> { (0..20).map(|c| f64::from(u8::from(c >= n))).collect() });
        assert_eq!(verdict(&old, &lost(6), &ReadCases::default()), EffectVerdict::Regressed);
        assert_eq!(verdict(&old, &lost(6), &read), EffectVerdict::Inconclusive);
        assert_eq!(verdict(&old, &lost(20), &read), EffectVerdict::Regressed);
        assert_eq!(verdict(&lost(20), &old, &read), EffectVerdict::Improved);
    }

    #[test]
    fn a_caveat_counts_all_trials_and_that_of_a_figure_those_of_its_scores() {
        let mut arm = Arm { name: "x".to_owned(), ..Arm::default() };
        for (id, score, trials) in [("a", 1.0, 2), ("b", 0.0, 1), ("c", 1.0, 0), ("d", 0.5, 4)] {
            let case = CaseTrials { scores: vec![score], case_in_workspace: trials, ..CaseTrials::default() };
            arm.cases.insert(id.to_owned(), case);
        }
        let doubts = ResultDoubts::of_arms([&arm]);
        let text = |doubt: Option<Doubt>| doubt.map(|it| it.text);
        let caveat = |trials: &str| Some(format!("x: in {trials} the agent could read files of its own case"));
        assert_eq!(text(doubts.caveat("x")), caveat("7 trials"));
        assert_eq!(text(doubts.caveat_of_scores("x", |case| case != "d")), caveat("2 trials"));
        assert_eq!(doubts.caveat_of_scores("x", |case| ["b", "c"].contains(&case)), None);
        assert_eq!(doubts.caveat("y"), None);
    }
}
