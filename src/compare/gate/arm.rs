//! The gates of an arm of a comparison or a column of a run, by itself: a minimum score and enough completed trials.

use super::{Gate, Kind};
use crate::compare::coverage::Trials;
use crate::compare::side::Arm;
use crate::fold::CaseTrials;
use crate::judgement::tolerance;
use crate::rounding::{percent, percent_beside, percent_bound};
use crate::statistics::gates::GateVerdict;
use crate::statistics::means::mean;

/// The evidence of an arm or a column, over the cases that count.
#[derive(Debug, Clone)]
pub struct ArmEvidence {
    /// The name of the arm or the column.
    pub name: String,
    /// The scores of its cases.
    pub cases: Vec<CaseEvidence>,
    /// The number of planned and of completed trials.
    pub trials: Trials,
    /// The number of errored trials, including those that count as failures.
    pub errored: u64,
    /// The number of ungraded trials.
    pub ungraded: u64,
    /// The number of trials that were not run.
    pub not_run: u64,
    /// True for a run by itself: a run that was not finished is no pass, whatever its score is. A comparison counts a trial
    /// that was not run as not completed.
    pub must_be_finished: bool,
}

/// The score of a case, and the number of trials that it is based on.
#[derive(Debug, Clone, Copy)]
pub struct CaseEvidence {
    /// The mean score of the trials that have one.
    pub score: Option<f64>,
    /// The number of trials that have a score.
    pub scored: u64,
    /// The number of trials whose outcome is unknown.
    pub unknown: u64,
}

impl CaseEvidence {
    fn lacks_score(&self) -> bool {
        self.score.is_none() && self.scored + self.unknown > 0
    }

    /// Returns the mean score if each trial without a score had the score 1. Returns `None` if the case has no trial.
    fn at_best(&self) -> Option<f64> {
        let sum = self.score.unwrap_or_default() * self.scored as f64 + self.unknown as f64;
        (self.scored + self.unknown > 0).then(|| sum / (self.scored + self.unknown) as f64)
    }
}

impl ArmEvidence {
    /// Collects the evidence of an arm of a comparison.
    pub fn of(arm: &Arm) -> Self {
        let count = |of: fn(&CaseTrials) -> u64| arm.cases.values().map(of).sum::<u64>();
        let case = |case: &CaseTrials| CaseEvidence {
            score: case.score(),
            scored: case.scores.len() as u64,
            unknown: case.unknown(),
        };
        Self {
            name: arm.name.clone(),
            cases: arm.cases.values().map(case).collect(),
            trials: Trials::of(arm),
            errored: count(|it| it.errored + it.counted_errors),
            ungraded: count(|it| it.ungraded),
            not_run: count(|it| it.not_run),
            must_be_finished: false,
        }
    }

    /// Checks whether the score reaches the minimum. A lower score fails only if it were too low as well if every trial
    /// without a score had the score 1. If a case has no score, the score of the suite is unknown.
    pub fn fail_under(&self, least: f64) -> Gate {
        // Sums have rounding errors: a score of 0.8 over five cases must reach 0.8.
        let reaches = |score: &f64| tolerance::reaches(*score, least);
        let over_cases =
            |of: fn(&CaseEvidence) -> Option<f64>| mean(&self.cases.iter().filter_map(of).collect::<Vec<_>>());
        let score = over_cases(|case| case.score);
        let open = self.cases.iter().any(CaseEvidence::lacks_score) || self.must_be_finished && self.not_run > 0;
        let (verdict, text) = match score {
            Some(score) if !reaches(&score) => {
                let scores = format!("scores {}, below {}", percent_beside(score, least), percent_bound(least));
                match over_cases(CaseEvidence::at_best).filter(reaches) {
                    Some(best) => {
                        let best = percent_beside(best, least);
                        let text = format!("{scores}; trials without a score could raise it to {best}");
                        (GateVerdict::Inconclusive, text)
                    }
                    None => (GateVerdict::Fail, scores),
                }
            }
            Some(score) if open => (
                GateVerdict::Inconclusive,
                format!("scores {} over the trials with a score, but some cases or trials have none", percent(score)),
            ),
            Some(score) => (
                GateVerdict::Pass,
                format!("scores {} of at least {}", percent_beside(score, least), percent_bound(least)),
            ),
            None => (GateVerdict::Inconclusive, "has no score".to_owned()),
        };
        Gate { bound: Some(least), found: score, ..Gate::new(self.name.clone(), Kind::FailUnder, verdict, text) }
    }

    /// Checks whether enough of the planned trials are completed: a score from too few trials does not show that a minimum
    /// is reached.
    pub fn completed(&self, least: f64) -> Gate {
        let Trials { planned, completed } = self.trials;
        let share = self.trials.share();
        let enough = share.is_some_and(|share| tolerance::reaches(share, least));
        let verdict = if enough { GateVerdict::Pass } else { GateVerdict::Inconclusive };
        let text = match share {
            Some(share) => {
                let lost = [(self.errored, "errored"), (self.ungraded, "ungraded"), (self.not_run, "never run")];
                let lost = lost.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}"));
                let lost = lost.collect::<Vec<_>>().join(", ");
                let lost = if lost.is_empty() { lost } else { format!(": {lost}") };
                let share = percent_beside(share, least);
                let least = percent_bound(least);
                format!("completed {completed} of {planned} planned trials ({share}{lost}), {least} required")
            }
            None => "all planned trials were skipped or in quarantine".to_owned(),
        };
        Gate { bound: Some(least), found: share, ..Gate::new(self.name.clone(), Kind::Completed, verdict, text) }
    }
}
