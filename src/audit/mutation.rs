//! Decides whether the graders noticed a mutant, and sums up the mutants of a case. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::mutants::Mutation;
use super::quality::Finding;
use crate::grade::GradeRecord;
use crate::grader::Kind;
use crate::result::TrialResult;
use crate::verdict::Verdict;

/// The mutations of a case's reference solution, with the results of the graders.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mutants {
    /// The number of possible mutations.
    pub possible: usize,
    /// The number of mutations that were graded: noticed or not.
    pub judged: usize,
    /// The number of mutations that failed.
    pub noticed: usize,
    /// The share of graded mutations that failed. Absent if none was graded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The number of noticed mutations with which no test ran, for example because the build failed. Known only for
    /// graders that run tests.
    pub no_test_ran: usize,
    /// The number of mutations with unsteady results: the mutation failed once, and not by the same grader when it was
    /// run again, or its grader also fails the solution at times. They are not among the graded mutations.
    pub unsteady: usize,
    /// The number of mutations that could not be graded.
    pub not_judged: usize,
    /// The number of chosen mutations that changed nothing in the graded workspace. They are not counted.
    pub without_effect: usize,
    /// The number of mutations that each grader noticed, by its name.
    pub graders: BTreeMap<String, usize>,
    /// The mutations that passed.
    pub not_noticed: Vec<Mutation>,
    /// The reason why no mutation was tried. Absent if some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The results of the graders on a mutant in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    verdict: Verdict,
    /// The counting graders that failed.
    failed: BTreeMap<String, FailedGrader>,
}

/// A grader that failed a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FailedGrader {
    /// True if the grader can differ between two trials because it runs commands.
    can_differ: bool,
    /// True if the grader runs tests, and no test ran.
    no_test_ran: bool,
}

impl Seen {
    /// Reads a result.
    pub fn of(result: &TrialResult) -> Self {
        let counts = |grade: &&GradeRecord| !grade.diagnostic && (grade.gate || grade.weight > 0.0);
        let failed = result.grades.iter().filter(counts).filter(|grade| grade.passed == Some(false));
        let of = |grade: &GradeRecord| FailedGrader {
            can_differ: Kind::needs_of(&grade.grader).commands,
            no_test_ran: grade.tests.as_ref().is_some_and(|tests| !tests.any_ran),
        };
        Self { verdict: result.verdict, failed: failed.map(|grade| (grade.name.clone(), of(grade))).collect() }
    }

    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns true if the mutant must be run again: it failed, but only by graders that run commands, whose results
    /// can differ between two trials.
    pub fn needs_confirmation(&self) -> bool {
        self.verdict == Verdict::Fail && !self.failed.is_empty() && self.failed.values().all(|grader| grader.can_differ)
    }
}

/// The outcome of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A grader failed the mutant.
    Noticed {
        /// The graders, each with true if it runs tests and no test ran, for example because the build failed.
        by: BTreeMap<String, bool>,
    },
    /// The mutant passed: no grader noticed it.
    NotNoticed,
    /// The mutant failed once, but not by the same grader when it was run again.
    Unsteady,
    /// The mutant could not be graded.
    NotGraded,
    /// Nothing differed in the graded workspace.
    WithoutEffect,
}

/// Returns the outcome of a mutant from its trial, and from a second one if it was run again.
pub fn outcome(first: &Seen, again: Option<&Seen>) -> Outcome {
    match first.verdict {
        Verdict::Pass => Outcome::NotNoticed,
        Verdict::Fail => {
            let failed_again = |name: &String| again.is_none_or(|again| again.failed.contains_key(name));
            let by = first.failed.iter().filter(|(name, _)| failed_again(name));
            let by: BTreeMap<String, bool> = by.map(|(name, grader)| (name.clone(), grader.no_test_ran)).collect();
            let fails_again = again.is_none_or(|again| again.verdict == Verdict::Fail && !by.is_empty());
            match fails_again {
                true => Outcome::Noticed { by },
                false => Outcome::Unsteady,
            }
        }
        Verdict::Ungraded | Verdict::Errored | Verdict::Skipped => Outcome::NotGraded,
    }
}

impl Mutants {
    /// Makes the summary if no mutation was tried.
    pub fn none(why: impl Into<String>) -> Self {
        Self { note: Some(why.into()), ..Self::default() }
    }

    /// Sums up the mutants. `control` is a further trial of the solution itself after them: a grader that fails it has
    /// noticed no mutant.
    pub fn of(possible: usize, outcomes: Vec<(Mutation, Outcome)>, control: Option<&Seen>) -> Self {
        let mut all = Self { possible, ..Self::default() };
        for (mutation, outcome) in outcomes {
            match outcome {
                Outcome::NotNoticed => all.not_noticed.push(mutation),
                Outcome::Unsteady => all.unsteady += 1,
                Outcome::NotGraded => all.not_judged += 1,
                Outcome::WithoutEffect => all.without_effect += 1,
                Outcome::Noticed { by } => {
                    let is_steady = |name: &String| control.is_none_or(|it| !it.failed.contains_key(name));
                    let steady: Vec<(String, bool)> = by.into_iter().filter(|(name, _)| is_steady(name)).collect();
                    if steady.is_empty() && control.is_some_and(|it| it.verdict != Verdict::Pass) {
                        all.unsteady += 1;
                        continue;
                    }
                    all.noticed += 1;
                    all.no_test_ran += usize::from(steady.iter().any(|(_, no_test_ran)| *no_test_ran));
                    steady.into_iter().for_each(|(name, _)| *all.graders.entry(name).or_default() += 1);
                }
            }
        }
        all.judged = all.noticed + all.not_noticed.len();
        all.share = (all.judged > 0).then(|| all.noticed as f64 / all.judged as f64);
        all
    }

    /// Returns the finding, if a mutation was not noticed.
    pub fn finding(&self) -> Option<Finding> {
        let not_noticed = self.not_noticed.len();
        (not_noticed > 0).then_some(Finding::MutantsNotNoticed { not_noticed, judged: self.judged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::mutants::MutationKind;

    fn seen(verdict: Verdict, failed: &[(&str, bool)]) -> Seen {
        let grader = |can_differ| FailedGrader { can_differ, no_test_ran: false };
        let failed = failed.iter().map(|(name, can_differ)| ((*name).to_owned(), grader(*can_differ))).collect();
        Seen { verdict, failed }
    }

    fn by(names: &[&str]) -> Outcome {
        Outcome::Noticed { by: names.iter().map(|name| ((*name).to_owned(), false)).collect() }
    }

    #[test]
    fn a_grader_that_fails_once_has_noticed_nothing() {
        let once = seen(Verdict::Fail, &[("tests", true)]);
        assert!(once.needs_confirmation());
        assert_eq!(outcome(&once, Some(&seen(Verdict::Pass, &[]))), Outcome::Unsteady);
        assert_eq!(outcome(&once, Some(&seen(Verdict::Fail, &[("lint", true)]))), Outcome::Unsteady);
        assert_eq!(outcome(&once, Some(&once)), by(&["tests"]));
        // A grader that runs no command decides the same each time.
        let sure = seen(Verdict::Fail, &[("tests", true), ("diff", false)]);
        assert!(!sure.needs_confirmation());
        assert_eq!(outcome(&sure, None), by(&["diff", "tests"]));
        assert_eq!(outcome(&seen(Verdict::Pass, &[]), None), Outcome::NotNoticed);
        assert_eq!(outcome(&seen(Verdict::Ungraded, &[]), None), Outcome::NotGraded);
    }

    fn mutation(line: usize) -> Mutation {
        let (file, kind) = ("f".to_owned(), MutationKind::DeleteLine);
        Mutation { file, line, kind, was: Some("x".to_owned()), now: None }
    }

    #[test]
    fn only_graders_that_noticed_a_mutant_say_that_no_test_ran() {
        let mut first = seen(Verdict::Fail, &[("lint", true), ("tests", true)]);
        first.failed.get_mut("tests").unwrap().no_test_ran = true;
        let without_tests = |again: &[(&str, bool)], control: &Seen| {
            let outcome = outcome(&first, Some(&seen(Verdict::Fail, again)));
            let all = Mutants::of(1, vec![(mutation(1), outcome)], Some(control));
            (all.noticed, all.no_test_ran)
        };
        let passed = seen(Verdict::Pass, &[]);
        assert_eq!(without_tests(&[("lint", true), ("tests", true)], &passed), (1, 1));
        assert_eq!(without_tests(&[("lint", true)], &passed), (1, 0));
        let of_tests = seen(Verdict::Fail, &[("tests", true)]);
        assert_eq!(without_tests(&[("lint", true), ("tests", true)], &of_tests), (1, 0));
    }

    #[test]
    fn what_also_fails_the_solution_is_not_counted() {
        let outcomes = vec![
            (mutation(1), by(&["tests"])),
            (mutation(2), by(&["lint", "tests"])),
            (mutation(3), Outcome::NotNoticed),
            (mutation(4), Outcome::Unsteady),
            (mutation(5), Outcome::WithoutEffect),
        ];
        let all = Mutants::of(9, outcomes.clone(), Some(&seen(Verdict::Pass, &[])));
        assert_eq!((all.judged, all.noticed, all.unsteady, all.without_effect), (3, 2, 1, 1));
        assert_eq!(all.share, Some(2.0 / 3.0));
        assert_eq!(all.graders, BTreeMap::from([("lint".to_owned(), 1), ("tests".to_owned(), 2)]));
        assert_eq!(all.finding(), Some(Finding::MutantsNotNoticed { not_noticed: 1, judged: 3 }));
        let all = Mutants::of(9, outcomes, Some(&seen(Verdict::Fail, &[("tests", true)])));
        assert_eq!((all.judged, all.noticed, all.unsteady), (2, 1, 2));
        let none = Mutants::of(0, Vec::new(), None);
        assert_eq!((none.share, none.finding()), (None, None));
    }
}
