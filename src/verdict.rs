//! Computes verdicts: of a trial from its grades, and of a cell from its trials. Pure.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::grade::GradeRecord;
use crate::judgement::share::{Part, Share};
use crate::judgement::{Judgement, tolerance};
use crate::values::Fraction;
use crate::word::word;

mod pass_trials;

pub use pass_trials::PassTrials;

/// The verdict on a trial, or on the trials of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// The task was done.
    Pass,
    /// The task was not done.
    Fail,
    /// The graders could not decide whether the task was done.
    Ungraded,
    /// The agent or a dependency of it failed, so the agent's work cannot be graded.
    Errored,
    /// The trial was not run, because of a requirement of its case.
    Skipped,
}

word!(Verdict);

/// A verdict with its score. Only `pass` and `fail` have one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredVerdict {
    pub verdict: Verdict,
    /// 0 if a gate failed, otherwise the weighted mean of the scored grades, or 1 if there is none to weigh.
    pub score: Option<Fraction>,
    /// True if the trial fails without the grades of judge models, and would not fail with them.
    pub without_models: bool,
}

/// Returns the verdict that follows from grades.
///
/// An unknown grade can have any value from 0 to 1: the verdict is `fail` if the trial would fail even with
/// every unknown grade at 1, `pass` if it would pass even with every unknown grade at 0, and else `ungraded`.
///
/// The verdict is first computed without the grades of judge models: if the trial fails without them, it fails.
pub fn of_grades(grades: &[GradeRecord], threshold: Fraction) -> ScoredVerdict {
    let with = of_these(|| grades.iter(), threshold);
    if grades.iter().any(|grade| grade.judge.is_some()) {
        let without = of_these(|| grades.iter().filter(|grade| grade.judge.is_none()), threshold);
        if without.verdict == Verdict::Fail {
            return ScoredVerdict { without_models: with.verdict != Verdict::Fail, ..without };
        }
    }
    with
}

fn of_these<'a, I: Iterator<Item = &'a GradeRecord>>(grades: impl Fn() -> I, threshold: Fraction) -> ScoredVerdict {
    let counted = || grades().filter(|grade| !grade.diagnostic);
    let gate_failed = counted().any(|grade| grade.gate && grade.passed == Some(false));
    let gate_unknown = counted().any(|grade| grade.gate && grade.passed.is_none());
    if gate_failed {
        return ScoredVerdict { verdict: Verdict::Fail, score: Some(Fraction::ZERO), without_models: false };
    }
    let weighed: Vec<&GradeRecord> = counted().filter(|grade| !grade.gate && grade.weight > 0.0).collect();
    let share = Share::of(weighed.iter().map(|grade| Part { weight: grade.weight, value: counts_as(grade) }));
    // At a threshold of 1.0, every grade counts, regardless of its value and weight: a failed grade may have the
    // value 1.
    let one_failed = weighed.iter().any(|grade| grade.passed == Some(false));
    let one_unknown = weighed.iter().any(|grade| grade.passed.is_none());
    let verdict = if threshold == Fraction::ONE && (one_failed || one_unknown || gate_unknown) {
        if one_failed { Verdict::Fail } else { Verdict::Ungraded }
    } else {
        match share.reaches(threshold) {
            Judgement::False => Verdict::Fail,
            Judgement::True if !gate_unknown && (weighed.is_empty() || share.known_mean().is_some()) => Verdict::Pass,
            Judgement::True | Judgement::Unknown => Verdict::Ungraded,
        }
    };
    let score = match verdict {
        Verdict::Pass | Verdict::Fail if weighed.is_empty() => Some(Fraction::ONE),
        Verdict::Pass | Verdict::Fail => {
            let value = |grade: &GradeRecord| if grade.passed? { Some(1.0) } else { grade.value.map(Fraction::get) };
            Share::of(weighed.iter().map(|grade| Part::new(grade.weight, value(grade)))).known_mean()
        }
        Verdict::Ungraded | Verdict::Errored | Verdict::Skipped => None,
    };
    ScoredVerdict { verdict, score, without_models: false }
}

/// Returns the smallest and the largest value of a grade in the mean: 1 if it passed, else its value, or the values that it
/// may have.
fn counts_as(grade: &GradeRecord) -> Option<(f64, f64)> {
    if grade.passed? {
        return Some((1.0, 1.0));
    }
    let exact = || grade.value.map(|value| (value.get(), value.get()));
    grade.bounds.map_or_else(exact, |bounds| Some((bounds.low.get(), bounds.high.get())))
}

/// Returns the verdict on a cell. Trials that are ungraded or errored are unknown; skipped ones do not count.
/// If only errored trials leave the cell open, it is `errored`, else `ungraded`.
pub fn of_trials(trials: &[Verdict], pass: PassTrials) -> Verdict {
    let ran: Vec<Verdict> = trials.iter().copied().filter(|verdict| *verdict != Verdict::Skipped).collect();
    if ran.is_empty() {
        return Verdict::Skipped;
    }
    let count = |verdict: Verdict| ran.iter().filter(|v| **v == verdict).count();
    let (passed, failed) = (count(Verdict::Pass), count(Verdict::Fail));
    let needed = match pass {
        PassTrials::All => ran.len(),
        PassTrials::Any => 1,
        PassTrials::Share(share) => tolerance::ceil(share.get() * ran.len() as f64).max(0.0) as usize,
    };
    if passed >= needed {
        Verdict::Pass
    } else if ran.len() - failed < needed {
        Verdict::Fail
    } else if count(Verdict::Ungraded) == 0 {
        Verdict::Errored
    } else {
        Verdict::Ungraded
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grade::Outcome;

    #[test]
    fn a_failed_grade_with_unknown_checks_decides_only_what_holds_for_all_its_values() {
        let fraction = |value: f64| Fraction::new(value).unwrap();
        let bounds = Some(crate::grade::Bounds { low: fraction(0.25), high: fraction(0.75) });
        let grades = [GradeRecord { bounds, ..grade(Some(0.5), false, 1.0, false) }];
        for (threshold, verdict, score) in [
            (0.2, Verdict::Pass, Some(0.5)),
            (0.4, Verdict::Ungraded, None),
            (0.6, Verdict::Ungraded, None),
            (0.8, Verdict::Fail, Some(0.5)),
            (1.0, Verdict::Fail, Some(0.5)),
        ] {
            let judged = of_grades(&grades, fraction(threshold));
            assert_eq!((judged.verdict, judged.score.map(Fraction::get)), (verdict, score), "{threshold}");
        }
    }

    fn grade(value: Option<f64>, passed: bool, weight: f64, gate: bool) -> GradeRecord {
        GradeRecord {
            name: "g".into(),
            grader: "output".into(),
            outcome: if value.is_some() { Outcome::Scored } else { Outcome::Ungraded },
            value: value.and_then(Fraction::new),
            bounds: None,
            passed: value.map(|_| passed),
            weight,
            gate,
            diagnostic: false,
            reason: String::new(),
            evidence: Vec::new(),
            broken: Vec::new(),
            skills: Vec::new(),
            judge: None,
            tests: None,
            snapshot: None,
        }
    }

    fn verdict(grades: &[GradeRecord], threshold: f64) -> (Verdict, Option<f64>) {
        let judged = of_grades(grades, Fraction::new(threshold).unwrap());
        (judged.verdict, judged.score.map(Fraction::get))
    }

    #[test]
    fn a_passed_grade_counts_one_and_a_failed_one_its_value() {
        let grades = [grade(Some(0.8), true, 1.0, false), grade(Some(0.5), false, 1.0, false)];
        assert_eq!(verdict(&grades, 0.7), (Verdict::Pass, Some(0.75)));
        assert_eq!(verdict(&grades, 0.8), (Verdict::Fail, Some(0.75)));
    }

    #[test]
    fn at_a_threshold_of_one_every_counted_grade_passes() {
        // A script may report a failure with the value 1.
        let failed = grade(Some(1.0), false, 1.0, false);
        assert_eq!(verdict(std::slice::from_ref(&failed), 1.0), (Verdict::Fail, Some(1.0)));
        assert_eq!(verdict(std::slice::from_ref(&failed), 0.9), (Verdict::Pass, Some(1.0)));
        // A small weight does not hide a failure, either.
        let (heavy, light) = (grade(Some(1.0), true, 1e12, false), grade(Some(0.0), false, 1.0, false));
        assert_eq!(verdict(&[heavy.clone(), light], 1.0).0, Verdict::Fail);
        let unknown = grade(None, false, 1.0, false);
        assert_eq!(verdict(&[heavy, unknown.clone()], 1.0).0, Verdict::Ungraded);
        assert_eq!(verdict(&[failed, unknown], 1.0).0, Verdict::Fail);
    }

    #[test]
    fn weights_are_normalised_before_they_are_summed() {
        let passed = |weight| grade(Some(1.0), true, weight, false);
        assert_eq!(verdict(&[passed(1e308), passed(1e308)], 1.0), (Verdict::Pass, Some(1.0)));
        let failed = grade(Some(0.0), false, 1e308, false);
        assert_eq!(verdict(&[passed(1e308), failed], 0.5), (Verdict::Pass, Some(0.5)));
        assert_eq!(verdict(&[passed(f64::MIN_POSITIVE), passed(f64::MIN_POSITIVE)], 1.0).0, Verdict::Pass);
    }

    #[test]
    fn gates_do_not_weigh_and_a_failed_one_is_fail_at_zero() {
        let grades = [grade(Some(0.0), false, 1.0, true), grade(Some(1.0), true, 1.0, false)];
        assert_eq!(verdict(&grades, 1.0), (Verdict::Fail, Some(0.0)));
        assert_eq!(verdict(&[grade(Some(1.0), true, 1.0, true)], 1.0), (Verdict::Pass, Some(1.0)));
        let grades = [grade(Some(1.0), true, 1.0, true), grade(Some(0.5), false, 1.0, false)];
        assert_eq!(verdict(&grades, 0.5), (Verdict::Pass, Some(0.5)));
    }

    #[test]
    fn a_gate_without_a_pass_or_a_failure_is_unknown_whatever_its_outcome() {
        let gate = GradeRecord { passed: None, ..grade(Some(1.0), true, 1.0, true) };
        assert_eq!(gate.outcome, Outcome::Scored);
        assert_eq!(verdict(&[gate], 1.0), (Verdict::Ungraded, None));
    }

    #[test]
    fn unknown_is_neither_a_pass_nor_a_fail() {
        assert_eq!(verdict(&[grade(None, false, 1.0, false)], 1.0), (Verdict::Ungraded, None));
        assert_eq!(verdict(&[grade(None, false, 1.0, true)], 1.0), (Verdict::Ungraded, None));
        // The trial fails even if the unknown grade were 1, and passes even if it were 0.
        let failed = grade(Some(0.0), false, 1.0, false);
        assert_eq!(verdict(&[failed, grade(None, false, 1.0, false)], 1.0), (Verdict::Fail, Some(0.0)));
        let passed = grade(Some(1.0), true, 3.0, false);
        assert_eq!(verdict(&[passed, grade(None, false, 1.0, false)], 0.75), (Verdict::Pass, Some(1.0)));
    }

    #[test]
    fn a_cell_follows_from_its_trials() {
        use Verdict::{Errored, Fail, Pass, Skipped, Ungraded};
        assert_eq!(of_trials(&[Pass, Pass], PassTrials::All), Pass);
        assert_eq!(of_trials(&[Pass, Fail, Errored], PassTrials::All), Fail);
        assert_eq!(of_trials(&[Pass, Errored], PassTrials::All), Errored);
        assert_eq!(of_trials(&[Pass, Ungraded, Errored], PassTrials::All), Ungraded);
        assert_eq!(of_trials(&[Errored, Pass, Fail], PassTrials::Any), Pass);
        let share = PassTrials::Share(Fraction::new(0.8).unwrap());
        assert_eq!(of_trials(&[Pass, Pass, Pass, Pass, Fail], share), Pass);
        assert_eq!(of_trials(&[Pass, Pass, Pass, Fail, Fail], share), Fail);
        assert_eq!(of_trials(&[Pass, Pass, Pass, Errored, Fail], share), Errored);
        assert_eq!(of_trials(&[Skipped, Skipped], PassTrials::All), Skipped);
        assert_eq!(of_trials(&[Skipped, Pass], PassTrials::All), Pass);
    }

    proptest! {
        /// A grade that becomes known never turns a verdict into its opposite.
        #[test]
        fn learning_an_unknown_never_overturns_a_verdict(
            known in prop::collection::vec((0.0..=1.0f64, any::<bool>(), 0.0..4.0f64, any::<bool>()), 0..5),
            unknown in prop::collection::vec((0.0..4.0f64, any::<bool>(), 0.0..=1.0f64, any::<bool>()), 0..4),
            threshold in 0.0..=1.0f64,
        ) {
            let sound = |value: f64, passed: bool, gate: bool| if gate { (f64::from(u8::from(passed)), passed) } else { (value, passed) };
            let mut before: Vec<GradeRecord> = known.iter().map(|(v, p, w, g)| { let (v, p) = sound(*v, *p, *g); grade(Some(v), p, *w, *g) }).collect();
            let mut after = before.clone();
            before.extend(unknown.iter().map(|(w, g, _, _)| grade(None, false, *w, *g)));
            after.extend(unknown.iter().map(|(w, g, v, p)| { let (v, p) = sound(*v, *p, *g); grade(Some(v), p, *w, *g) }));
            let threshold = Fraction::new(threshold).unwrap();
            let (before, after) = (of_grades(&before, threshold).verdict, of_grades(&after, threshold).verdict);
            prop_assert!(before == Verdict::Ungraded || before == after, "{before:?} became {after:?}");
        }

        /// If the trial fails without judge models, it fails with any of their answers, with the same score.
        #[test]
        fn a_judge_overturns_no_failure(
            others in prop::collection::vec((prop::option::of(0.0..=1.0f64), any::<bool>(), 0.0..4.0f64, any::<bool>()), 0..5),
            judges in prop::collection::vec((prop::option::of(0.0..=1.0f64), any::<bool>(), 0.0..9.0f64, any::<bool>()), 0..4),
            threshold in 0.0..=1.0f64,
        ) {
            let threshold = Fraction::new(threshold).unwrap();
            let of = |(v, p, w, g): &(Option<f64>, bool, f64, bool)| grade(*v, *p, *w, *g);
            let without: Vec<GradeRecord> = others.iter().map(of).collect();
            let mut with = without.clone();
            let judged = |it| GradeRecord { judge: Some(crate::grade::judge_record::JudgeRecord::default()), ..of(it) };
            with.extend(judges.iter().map(judged));
            let (without, with) = (of_grades(&without, threshold), of_grades(&with, threshold));
            prop_assert!(without.verdict != Verdict::Fail || (without.verdict, without.score) == (with.verdict, with.score), "{without:?} became {with:?}");
        }
    }
}
