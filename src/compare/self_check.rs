//! The comparison of an arm with itself: how often chance alone changes a verdict, and how often it fires a gate.

use std::collections::BTreeMap;

use serde::Serialize;

use super::gate::regressions::{is_guarded, is_lost};
use crate::fold::CaseTrials;
use crate::ids::{column_name, without_copy};
use crate::judgement::tolerance;
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::statistics::means;
use crate::statistics::random::Generator;
use crate::verdict::Verdict;

/// The number of random divisions of the trials.
const DRAWS: usize = 2_000;

/// The comparison of an arm with itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SelfCheck {
    /// The name of the arm.
    pub arm: String,
    /// The number of cases with a verdict in both halves. Cases in quarantine are not counted.
    pub cases: usize,
    /// The cases without a verdict in one of the halves: trials that were errored, ungraded or not run leave it open.
    pub open: Vec<String>,
    /// The cases whose verdict differs between the halves.
    pub flipped: Vec<String>,
    /// The cases in which trials of the arm had different verdicts.
    pub noisy: Vec<String>,
    /// The gate whose false alarms are counted: `fail-under`, or `no-regressions`.
    pub gate: &'static str,
    /// The share of random divisions of the trials into two halves in which the gate fires, from 0 to 1. Null if no
    /// case has a verdict in both halves.
    pub gate_false_alarms: Option<f64>,
    /// The number of random divisions.
    pub draws: usize,
}

/// The score of a trial, and whether the trial passed.
type Outcome = (f64, bool);

/// The results of an `--aa` run so far, by case and half.
#[derive(Debug, Default)]
pub struct Halves {
    /// Harness and arm of the first result.
    first: Option<(String, String)>,
    cases: BTreeMap<String, [Half; 2]>,
}

/// The trials of a case in one half.
#[derive(Debug, Default)]
struct Half {
    trials: CaseTrials,
    outcomes: Vec<Outcome>,
}

impl Halves {
    /// Begins with a plan. Returns `None` if the run does not compare an arm with itself.
    pub fn of(run: &RunRecord) -> Option<Self> {
        run.options.aa.then(|| {
            let mut halves = Self::default();
            for trial in run.trials.iter().filter(|trial| trial.skip.is_none()) {
                halves.half(&trial.case, &trial.arm).trials.plan();
            }
            halves
        })
    }

    /// Returns the half of a case that an arm is.
    fn half(&mut self, case: &str, arm: &str) -> &mut Half {
        let [first, second] = self.cases.entry(case.to_owned()).or_default();
        if without_copy(arm) == arm { first } else { second }
    }

    pub fn add(&mut self, result: &TrialResult) {
        self.first.get_or_insert_with(|| (result.harness.clone(), result.arm.clone()));
        let half = self.half(&result.case, &result.arm);
        half.trials.add(result);
        half.outcomes.extend(result.score.map(|score| (score.get(), result.verdict == Verdict::Pass)));
    }

    /// Returns the comparison of the arm with itself. The random divisions are drawn from the run's seed.
    pub fn compared(&self, run: &RunRecord) -> SelfCheck {
        compared(self, run)
    }
}

fn compared(halves: &Halves, run: &RunRecord) -> SelfCheck {
    let (mut open, mut flipped, mut noisy, mut pooled) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (id, halves) in &halves.cases {
        // A case in quarantine is in no gate.
        let Some(case) = run.case(id).filter(|_| run.quarantine(id).is_none()) else { continue };
        if halves.iter().all(|half| half.trials.planned() == 0) {
            // All trials were skipped.
            continue;
        }
        let verdicts = halves.each_ref().map(|half| half.trials.verdict(case.pass));
        let outcomes = halves.each_ref().map(|half| half.outcomes.clone());
        let all: Vec<Outcome> = outcomes.concat();
        if all.iter().any(|(_, passed)| *passed) && all.iter().any(|(_, passed)| !passed) {
            noisy.push(id.clone());
        }
        if verdicts.iter().any(|verdict| !matches!(verdict, Verdict::Pass | Verdict::Fail)) {
            open.push(id.clone());
            continue;
        }
        if verdicts[0] != verdicts[1] {
            flipped.push(id.clone());
        }
        let guarded = is_guarded(case.critical, case.kind);
        pooled.push(Pooled { first: outcomes[0].len(), all, pass: case.pass, guarded });
    }
    let least = run.options.fail_under.map(crate::values::Fraction::get);
    let mut generator = Generator::seeded(run.options.seed.unwrap_or(1));
    let fired = (0..DRAWS).filter(|_| fires(&mut pooled, least, &mut generator)).count();
    let named = |(harness, arm): &(String, String)| column_name(harness, without_copy(arm));
    SelfCheck {
        arm: halves.first.as_ref().map(named).unwrap_or_default(),
        cases: pooled.len(),
        open,
        flipped,
        noisy,
        gate: if least.is_some() { "fail-under" } else { "no-regressions" },
        gate_false_alarms: (!pooled.is_empty()).then(|| fired as f64 / DRAWS as f64),
        draws: DRAWS,
    }
}

/// The trials of both halves of a case.
struct Pooled {
    all: Vec<Outcome>,
    /// The number of trials of the first half.
    first: usize,
    pass: crate::verdict::PassTrials,
    guarded: bool,
}

/// Divides the trials of each case at random and returns true if the gate fires between the halves.
fn fires(cases: &mut [Pooled], least: Option<f64>, generator: &mut Generator) -> bool {
    let mut scores = Vec::with_capacity(cases.len());
    let mut lost = false;
    for case in cases {
        shuffle(&mut case.all, generator);
        let (old, new) = case.all.split_at(case.first);
        let [old, new] = [old, new].map(counted);
        scores.extend(new.score());
        lost |= is_lost(case.guarded, case.pass, &old, &new);
    }
    match least {
        Some(least) => means::mean(&scores).is_some_and(|score| !tolerance::reaches(score, least)),
        None => lost,
    }
}

fn shuffle(outcomes: &mut [Outcome], generator: &mut Generator) {
    for at in (1..outcomes.len()).rev() {
        outcomes.swap(at, generator.below(at + 1));
    }
}

fn counted(outcomes: &[Outcome]) -> CaseTrials {
    let passed = outcomes.iter().filter(|(_, passed)| *passed).count() as u64;
    CaseTrials {
        scores: outcomes.iter().map(|(score, _)| *score).collect(),
        passed,
        failed: outcomes.len() as u64 - passed,
        ..CaseTrials::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::PassTrials;

    #[test]
    fn a_gate_fires_by_chance_as_often_as_its_divisions_allow() {
        let case = |outcomes: &[bool]| Pooled {
            all: outcomes.iter().map(|passed| (f64::from(u8::from(*passed)), *passed)).collect(),
            first: outcomes.len() / 2,
            pass: PassTrials::All,
            guarded: false,
        };
        let share = |mut cases: Vec<Pooled>, least| {
            let mut generator = Generator::seeded(1);
            (0..DRAWS).filter(|_| fires(&mut cases, least, &mut generator)).count() as f64 / DRAWS as f64
        };
        assert_eq!(share(vec![case(&[true; 4]), case(&[false; 4])], None), 0.0);
        // One trial each: lost in one of the two orders.
        assert!((share(vec![case(&[true, false])], None) - 0.5).abs() < 0.04);
        // Two trials each: lost only if both passes come first, in one of six divisions.
        assert!((share(vec![case(&[true, true, false, false])], None) - 1.0 / 6.0).abs() < 0.04);
        assert!((share(vec![case(&[true, false])], Some(0.5)) - 0.5).abs() < 0.04);
    }

    #[test]
    fn the_gate_of_a_score_ignores_rounding_errors_as_the_real_one_does() {
        let case = || Pooled { all: vec![(0.7, false); 2], first: 1, pass: PassTrials::All, guarded: false };
        let fires = |least: f64| fires(&mut [case(), case(), case()], Some(least), &mut Generator::seeded(1));
        // The mean of three times 0.7 is 0.6999999999999998.
        assert!(!fires(0.7) && fires(0.71));
    }
}
