//! Combines several judges: their majority, and their agreement. Pure.

use super::criteria::Criterion;
use crate::grade::judge_record::{CriterionFinding, CriterionVerdict};
use crate::statistics::figures::quantile_of_sorted;

/// Returns the majority's verdict on each criterion, in the order of the criteria. A judge without an answer counts in
/// the total, so that there is no majority without more than half of all judges.
pub fn majority(criteria: &[Criterion], judges: &[Option<Vec<CriterionFinding>>]) -> Vec<CriterionFinding> {
    let most = |number: usize, criterion: &Criterion| -> CriterionFinding {
        let all: Vec<&CriterionFinding> = judges.iter().flatten().filter_map(|findings| findings.get(number)).collect();
        let of = |verdict: CriterionVerdict| -> Vec<&CriterionFinding> {
            all.iter().copied().filter(|it| it.verdict == verdict).collect()
        };
        let (passed, failed) = (of(CriterionVerdict::Pass), of(CriterionVerdict::Fail));
        let winners = [passed, failed].into_iter().find(|votes| votes.len() * 2 > judges.len());
        match winners {
            Some(votes) => {
                let mut finding = votes.first().map(|it| (*it).clone()).unwrap_or_else(|| unknown(criterion, ""));
                let mut values: Vec<f64> = votes.iter().filter_map(|it| it.value).collect();
                values.sort_by(f64::total_cmp);
                finding.value = quantile_of_sorted(&values, 0.5);
                finding.evidence = votes.iter().flat_map(|it| it.evidence.iter().copied()).collect();
                finding.evidence.sort_unstable();
                finding.evidence.dedup();
                finding
            }
            None => match all.as_slice() {
                [only] if judges.len() == 1 => (*only).clone(),
                _ => unknown(criterion, "no majority of the judges"),
            },
        }
    };
    criteria.iter().enumerate().map(|(number, criterion)| most(number, criterion)).collect()
}

/// Returns the share of pairs of judges that agree, over all criteria. `None` with fewer than two answers.
pub fn agreement(criteria: &[Criterion], judges: &[Option<Vec<CriterionFinding>>]) -> Option<f64> {
    let answers: Vec<&Vec<CriterionFinding>> = judges.iter().flatten().collect();
    let (mut pairs, mut same) = (0_u32, 0_u32);
    for (number, one) in answers.iter().enumerate() {
        for other in answers.iter().skip(number + 1) {
            for criterion in 0..criteria.len() {
                let (Some(one), Some(other)) = (one.get(criterion), other.get(criterion)) else { continue };
                pairs += 1;
                same += u32::from(one.verdict == other.verdict);
            }
        }
    }
    (pairs > 0).then(|| f64::from(same) / f64::from(pairs))
}

fn unknown(criterion: &Criterion, reason: &str) -> CriterionFinding {
    CriterionFinding {
        criterion: criterion.id.clone(),
        verdict: CriterionVerdict::Unknown,
        value: None,
        evidence: Vec::new(),
        quote: String::new(),
        reason: reason.to_owned(),
        void: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(verdict: CriterionVerdict, value: Option<f64>) -> CriterionFinding {
        let criterion =
            Criterion { id: "a".into(), ask: "?".into(), scale: None, number: None, weight: 1.0, required: false };
        CriterionFinding { verdict, value, evidence: vec![1], ..unknown(&criterion, "") }
    }

    #[test]
    fn more_than_half_of_all_judges_decide() {
        use CriterionVerdict::{Fail, Pass, Unknown};
        let criteria =
            [Criterion { id: "a".into(), ask: "?".into(), scale: None, number: None, weight: 1.0, required: false }];
        let say = |verdicts: &[Option<CriterionVerdict>]| {
            let judges: Vec<_> = verdicts.iter().map(|it| it.map(|it| vec![finding(it, Some(2.0))])).collect();
            (majority(&criteria, &judges)[0].verdict, agreement(&criteria, &judges))
        };
        assert_eq!(say(&[Some(Pass)]), (Pass, None));
        assert_eq!(say(&[Some(Unknown)]), (Unknown, None));
        assert_eq!(say(&[Some(Pass), Some(Pass), Some(Fail)]), (Pass, Some(1.0 / 3.0)));
        assert_eq!(say(&[Some(Pass), Some(Fail)]), (Unknown, Some(0.0)));
        assert_eq!(say(&[Some(Pass), Some(Unknown), None]), (Unknown, Some(0.0)));
        assert_eq!(say(&[Some(Fail), Some(Fail), None]), (Fail, Some(1.0)));
        assert_eq!(say(&[None, None]), (Unknown, None));
    }

    #[test]
    fn points_are_the_median_of_those_who_decide() {
        use CriterionVerdict::{Fail, Pass};
        let criteria =
            [Criterion { id: "a".into(), ask: "?".into(), scale: None, number: None, weight: 1.0, required: false }];
        let points = |answers: &[(CriterionVerdict, Option<f64>)]| {
            let judges: Vec<_> = answers.iter().map(|(verdict, value)| Some(vec![finding(*verdict, *value)])).collect();
            majority(&criteria, &judges)[0].value
        };
        assert_eq!(points(&[(Pass, Some(5.0)), (Pass, Some(3.0)), (Pass, Some(4.0)), (Fail, Some(1.0))]), Some(4.0));
        assert_eq!(points(&[(Pass, Some(4.0)), (Pass, Some(5.0)), (Fail, Some(1.0))]), Some(4.5));
        assert_eq!(points(&[(Pass, None), (Pass, None)]), None);
    }
}
