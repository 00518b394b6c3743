//! `--trials auto`: interim looks at fixed numbers of trials, with a level for each look that bounds the error
//! rate of all looks together.

use super::arm_pairs;
use super::effect::{EffectVerdict, effect};
use super::few_differ::few_differ;
use super::join::{Joined, Reason, join};
use super::result_doubts::ResultDoubts;
use super::side::{Arm, Side};
use crate::statistics::LEVEL;

/// Trials of each cell at each look.
pub const LOOKS: [u32; 4] = [2, 4, 8, 16];

/// Returns the confidence level of each look's interval. The error rate is shared evenly (Bonferroni), which
/// holds for any dependence between the looks.
pub fn level(looks: u32) -> f64 {
    1.0 - (1.0 - LEVEL) / f64::from(looks.max(1))
}

/// Returns the confidence level of a comparison. It is higher if the scores of a run were evaluated several times.
pub fn level_of(old: &Side, new: &Side) -> f64 {
    level(old.looks.max(new.looks))
}

/// Returns true if every arm has a clear verdict (improved, regressed or equivalent) against the arm that the comparison of
/// the run pairs it with if there is no baseline file. `baseline` is the baseline of the run's experiment. A verdict
/// `equivalent` that rests on the spread of few cases is not clear. Pairs of arms without a case that more trials could make
/// comparable do not count: an arm skipped all its cases, or none of its trials has a score, so that further trials would only
/// be paid for. Neither do pairs that only scores of agents that could read files of their own case make clear, as further
/// trials would make no verdict of them. Returns `None` if there are no other pairs.
pub fn is_clear(side: &Side, baseline: Option<&str>, margin: f64) -> Option<bool> {
    let level = level(LOOKS.len() as u32);
    let (pairs, _) = arm_pairs::of_run(side, baseline);
    let has_score = |arm: &Arm| arm.cases.values().any(|case| !case.scores.is_empty());
    let pairs = pairs.into_iter().filter(|((_, old), (_, new))| has_score(old) && has_score(new));
    let joined = pairs.map(|(old, new)| (old.1, new.1, join(old, new))).filter(|(.., joined)| is_comparable(joined));
    let doubted = ResultDoubts::of_arms(&side.arms);
    let clear = joined.filter_map(|(old, new, joined)| {
        let Some(it) = effect(&joined.cases, level) else { return Some(false) };
        let found = it.verdict(level, margin);
        if doubted.read_of(old, new, &joined).verdict(&joined, &it, level, margin) != found {
            return None;
        }
        let is_open = found == EffectVerdict::Inconclusive;
        Some(!is_open && few_differ(&joined.cases, &it, level, margin).is_none())
    });
    clear.reduce(|all, one| all && one)
}

/// Returns true if two arms have a case that can be compared, or that only lacks a score.
pub fn is_comparable(joined: &Joined<'_>) -> bool {
    let lacks_score = |reason| matches!(reason, Reason::NoScoreInOld | Reason::NoScoreInNew);
    !joined.cases.is_empty() || joined.unpaired.iter().any(|case| lacks_score(case.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::CaseKind;
    use crate::compare::side::CaseFacts;
    use crate::fold::CaseTrials;
    use crate::verdict::PassTrials;

    /// A run of eight cases with two trials of each. Each arm has a harness, a name, and a letter for all of its trials: `p`
    /// pass, `f` fail, `e` errored, `s` skipped.
    fn side(arms: &[(&str, &str, char)]) -> Side {
        let ids = || (0..8).map(|number| format!("c{number}"));
        let facts = CaseFacts {
            digest: "d".to_owned(),
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
        let arm = |(harness, column, letter): &(&str, &str, char)| {
            let trials = match letter {
                'p' => CaseTrials { scores: vec![1.0; 2], passed: 2, ..CaseTrials::default() },
                'f' => CaseTrials { scores: vec![0.0; 2], failed: 2, ..CaseTrials::default() },
                _ => CaseTrials { errored: 2, ..CaseTrials::default() },
            };
            let (harness, column) = ((*harness).to_owned(), (*column).to_owned());
            let name = format!("{harness} / {column}");
            let cases = ids().filter(|_| *letter != 's').map(|id| (id, trials.clone())).collect();
            Arm { name, harness, column, cases, ..Arm::default() }
        };
        Side {
            cases: ids().map(|id| (id, facts.clone())).collect(),
            arms: arms.iter().map(arm).collect(),
            ..Side::default()
        }
    }

    #[test]
    fn arms_are_clear_against_those_that_they_are_compared_with() {
        let experiment = side(&[("h1", "a", 'p'), ("h1", "b", 'f'), ("h2", "a", 'f'), ("h2", "b", 'f')]);
        assert_eq!(is_clear(&experiment, Some("a"), 0.05), Some(false), "nothing differs on h2");
        assert_eq!(is_clear(&experiment, None, 0.05), Some(true), "all differ from the first");
        let pairs = arm_pairs::of_run(&experiment, Some("a")).0;
        let names: Vec<&str> = pairs.iter().map(|((_, old), _)| old.name.as_str()).collect();
        assert_eq!(names, ["h1 / a", "h2 / a"]);
    }

    #[test]
    fn an_arm_is_not_equivalent_by_the_spread_of_few_cases() {
        let mut run = side(&[("h", "a", 'p'), ("h", "b", 'p')]);
        let facts = run.cases["c0"].clone();
        for number in 8..40 {
            run.cases.insert(format!("c{number}"), facts.clone());
            for arm in &mut run.arms {
                arm.cases.insert(format!("c{number}"), arm.cases["c0"].clone());
            }
        }
        let lost = CaseTrials { scores: vec![1.0, 0.0], passed: 1, failed: 1, ..CaseTrials::default() };
        run.arms[1].cases.insert("c0".to_owned(), lost);
        let level = level(LOOKS.len() as u32);
        let joined = join((&run, &run.arms[0]), (&run, &run.arms[1]));
        let verdict = effect(&joined.cases, level).unwrap().verdict(level, 0.05);
        assert_eq!((verdict, is_clear(&run, None, 0.05)), (EffectVerdict::Equivalent, Some(false)));
    }

    #[test]
    fn an_arm_that_is_better_by_agents_that_could_read_their_case_needs_no_further_trials() {
        let mut run = side(&[("h", "x", 'f'), ("h", "y", 'p'), ("h", "z", 'p')]);
        let read = |arm: &mut Arm| arm.cases.values_mut().for_each(|case| case.case_in_workspace = 2);
        read(&mut run.arms[1]);
        assert_eq!(is_clear(&run, None, 0.05), Some(true), "the third arm is clear");
        read(&mut run.arms[2]);
        assert_eq!(is_clear(&run, None, 0.05), None);
        // An arm that is worse nevertheless is clear.
        let mut run = side(&[("h", "x", 'p'), ("h", "y", 'f')]);
        let passed = run.arms[0].cases["c0"].clone();
        run.arms[1].cases.insert("c0".to_owned(), passed);
        read(&mut run.arms[1]);
        assert_eq!(is_clear(&run, None, 0.05), Some(true));
        // A loss against scores of such agents is none, unless the other cases show it.
        read(&mut run.arms[0]);
        assert_eq!(is_clear(&run, None, 0.05), None);
        run.arms[0].cases.iter_mut().filter(|(id, _)| *id != "c1").for_each(|(_, case)| case.case_in_workspace = 0);
        assert_eq!(is_clear(&run, None, 0.05), Some(true));
    }

    #[test]
    fn an_arm_without_a_case_or_a_score_needs_no_trials_of_the_others() {
        for (letters, clear) in [
            ("pf", Some(true)),
            ("pp", Some(false)),
            ("pfs", Some(true)),
            ("spf", Some(true)),
            ("spp", Some(false)),
            ("pfe", Some(true)),
            ("ppe", Some(false)),
            ("pe", None),
            ("epf", None),
            ("ps", None),
            ("ss", None),
        ] {
            let names = ["x", "y", "z"];
            let arms: Vec<_> = letters.chars().zip(names).map(|(letter, name)| ("h", name, letter)).collect();
            assert_eq!(is_clear(&side(&arms), None, 0.05), clear, "{letters}");
        }
    }
}
