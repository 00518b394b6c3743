//! The criteria of a rubric, and the rule by which their verdicts are combined. Pure.

use serde::{Deserialize, Serialize};

use crate::grade::judge_record::CriterionVerdict;
use crate::judgement::Judgement;
use crate::judgement::share::{Part, Share};
use crate::values::Fraction;
use crate::yaml::Step;
use crate::yaml::wrong_part::WrongPart;

/// A question of a rubric. The answer is yes or no, unless the criterion has `scale` or `number`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Criterion {
    /// The id of the criterion in answers, labels and reports.
    pub id: String,
    /// The question to the judge. `yes` is a pass.
    pub ask: String,
    /// Asks for points; the criterion passes from a minimum number of points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Asks for a number that the judge reads from the trace; the criterion passes if the number is within
    /// these bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Bounds>,
    /// The weight of the criterion in the mean.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: f64,
    /// If `true`, the rubric fails if this criterion fails, regardless of the mean.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

fn one() -> f64 {
    1.0
}

fn is_one(weight: &f64) -> bool {
    *weight == 1.0
}

/// A scale of points from the worst to the best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scale {
    /// The worst number of points.
    pub from: i64,
    /// The best number of points.
    pub to: i64,
    /// The minimum number of points to pass.
    pub pass: i64,
    /// The meaning of single points.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub points: std::collections::BTreeMap<String, String>,
}

/// Bounds within which a number passes. At least one of the two is required.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bounds {
    /// The minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// The rule by which a rubric passes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// Every criterion passes or, if `min` is set, the mean reaches it.
    #[default]
    All,
    /// At least one criterion passes.
    Any,
}

impl Criterion {
    /// Returns true if the answer must contain a number.
    pub fn wants_value(&self) -> bool {
        self.scale.is_some() || self.number.is_some()
    }

    /// Returns the verdict for a number, or `None` if the number is not allowed.
    pub fn verdict_of(&self, value: f64) -> Option<CriterionVerdict> {
        let holds = if let Some(scale) = &self.scale {
            let points = scale.from as f64..=scale.to as f64;
            if value.fract() != 0.0 || !points.contains(&value) {
                return None;
            }
            value >= scale.pass as f64
        } else {
            let bounds = self.number.as_ref().filter(|_| value.is_finite())?;
            bounds.min.is_none_or(|min| value >= min) && bounds.max.is_none_or(|max| value <= max)
        };
        Some(if holds { CriterionVerdict::Pass } else { CriterionVerdict::Fail })
    }

    /// Returns the criterion's value in the mean: points by their place on the scale, anything else 1 or 0.
    /// Unknown answers have none.
    pub fn counts(&self, verdict: CriterionVerdict, value: Option<f64>) -> Option<f64> {
        match (verdict, &self.scale, value) {
            (CriterionVerdict::Unknown, ..) => None,
            (_, Some(scale), Some(value)) => {
                let width = scale.to as f64 - scale.from as f64;
                Some(((value - scale.from as f64) / width).clamp(0.0, 1.0))
            }
            (verdict, ..) => Some(f64::from(u8::from(verdict == CriterionVerdict::Pass))),
        }
    }

    /// Returns the key that makes the criterion invalid, and the reason.
    fn refusal(&self) -> Option<(&'static str, String)> {
        let id = &self.id;
        if id.is_empty() || id.len() > 64 || id.chars().any(|c| !c.is_ascii_alphanumeric() && !"-_.".contains(c)) {
            let why = format!("has a criterion `{id}`, whose id is not made of letters, digits, `-`, `_` and `.`");
            return Some(("id", why));
        }
        let (key, why) = if self.ask.trim().is_empty() {
            ("ask", "has an empty `ask`")
        } else if !(self.weight.is_finite() && self.weight >= 0.0) {
            ("weight", "has a `weight` that is not a number from 0")
        } else if self.scale.is_some() && self.number.is_some() {
            ("number", "has both `scale` and `number`; keep one")
        } else if let Some(why) = self.number.as_ref().and_then(Bounds::refusal) {
            ("number", why)
        } else {
            ("scale", self.scale.as_ref().and_then(Scale::refusal)?)
        };
        Some((key, format!("has a criterion `{id}` that {why}")))
    }
}

impl Bounds {
    fn refusal(&self) -> Option<&'static str> {
        match (self.min, self.max) {
            (None, None) => Some("has a `number` without bounds, which every number meets; write `min` or `max`"),
            (Some(min), _) if !min.is_finite() => Some("has a `number` whose `min` is not a number"),
            (_, Some(max)) if !max.is_finite() => Some("has a `number` whose `max` is not a number"),
            (Some(min), Some(max)) if min > max => {
                Some("has a `number` whose `min` is greater than its `max`, which no number meets")
            }
            _ => None,
        }
    }
}

impl Scale {
    fn refusal(&self) -> Option<&'static str> {
        let has = |point: &str| point.parse().is_ok_and(|point| (self.from..=self.to).contains(&point));
        if self.from >= self.to {
            Some("has a `scale` whose `from` is not less than its `to`")
        } else if self.pass <= self.from || self.pass > self.to {
            Some("has a `scale` whose `pass` is out of range; it must be greater than `from` and at most `to`")
        } else if !self.points.keys().all(|point| has(point)) {
            Some("has `points` outside its `scale`")
        } else {
            None
        }
    }
}

/// Returns the reason why criteria cannot be asked together, and its place.
pub fn refusal(criteria: &[Criterion], aggregate: Aggregate, min: Option<Fraction>) -> Option<WrongPart> {
    let key = Step::Key("criteria");
    if criteria.is_empty() {
        return Some(WrongPart::new(&[key], "has no `criteria`"));
    }
    for (number, criterion) in criteria.iter().enumerate() {
        if let Some((at, why)) = criterion.refusal() {
            return Some(WrongPart::new(&[key, Step::Item(number), Step::Key(at)], why));
        }
        if criteria.iter().take(number).any(|before| before.id == criterion.id) {
            let why = format!("has two criteria with the ID `{}`; IDs must be unique", criterion.id);
            return Some(WrongPart::new(&[key, Step::Item(number), Step::Key("id")], why));
        }
    }
    if criteria.iter().all(|criterion| criterion.weight == 0.0 && !criterion.required) {
        return Some(WrongPart::new(&[key], "decides nothing: every criterion has weight 0"));
    }
    if min.is_some_and(|min| min.get() == 0.0) {
        return Some(WrongPart::new(&[Step::Key("min")], "decides nothing: a `min` of 0 is always reached"));
    }
    (aggregate == Aggregate::Any && min.is_some())
        .then(|| WrongPart::new(&[Step::Key("min")], "has both `aggregate: any` and `min`; keep one of them"))
}

/// Combines the verdicts of several criteria: returns the verdict, and the mean of the known parts.
pub fn aggregate(
    criteria: &[Criterion],
    answers: &[(CriterionVerdict, Option<f64>)],
    aggregate: Aggregate,
    min: Option<Fraction>,
) -> (CriterionVerdict, Option<Fraction>) {
    let each = || criteria.iter().zip(answers).filter(|(criterion, _)| criterion.weight > 0.0 || criterion.required);
    let parts = criteria.iter().zip(answers);
    let share = Share::of(parts.map(|(it, (verdict, value))| Part::new(it.weight, it.counts(*verdict, *value))));
    let all = |want: CriterionVerdict| each().all(|(_, (verdict, _))| *verdict == want);
    let any = |want: CriterionVerdict| each().any(|(_, (verdict, _))| *verdict == want);
    let required = |want: CriterionVerdict| each().any(|(it, (verdict, _))| it.required && *verdict == want);
    let reached = min.map_or(Judgement::True, |min| share.reaches(min));
    let failed = match (aggregate, min) {
        _ if required(CriterionVerdict::Fail) => true,
        (Aggregate::Any, _) => all(CriterionVerdict::Fail),
        (Aggregate::All, None) => any(CriterionVerdict::Fail),
        (Aggregate::All, Some(_)) => reached == Judgement::False,
    };
    let passed = !failed
        && !required(CriterionVerdict::Unknown)
        && match (aggregate, min) {
            (Aggregate::Any, _) => any(CriterionVerdict::Pass),
            (Aggregate::All, None) => all(CriterionVerdict::Pass),
            (Aggregate::All, Some(_)) => reached == Judgement::True && share.known_mean().is_some(),
        };
    let verdict = match (failed, passed) {
        (true, _) => CriterionVerdict::Fail,
        (_, true) => CriterionVerdict::Pass,
        _ => CriterionVerdict::Unknown,
    };
    (verdict, share.known_mean())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn criterion(id: &str, weight: f64, required: bool) -> Criterion {
        Criterion { id: id.to_owned(), ask: "Is it?".to_owned(), scale: None, number: None, weight, required }
    }

    fn come_to(
        verdicts: &[CriterionVerdict],
        how: Aggregate,
        min: Option<f64>,
        required: bool,
    ) -> (CriterionVerdict, Option<f64>) {
        let criteria: Vec<_> =
            (0..verdicts.len()).map(|n| criterion(&format!("c{n}"), 1.0, required && n == 0)).collect();
        let answers: Vec<_> = verdicts.iter().map(|verdict| (*verdict, None)).collect();
        let (verdict, value) = aggregate(&criteria, &answers, how, min.and_then(Fraction::new));
        (verdict, value.map(Fraction::get))
    }

    #[test]
    fn unknown_is_neither_a_pass_nor_a_fail() {
        use Aggregate::{All, Any};
        use CriterionVerdict::{Fail, Pass, Unknown};
        for (verdicts, how, min, required, wanted) in [
            (&[Pass, Pass][..], All, None, false, (Pass, Some(1.0))),
            (&[Pass, Unknown], All, None, false, (Unknown, Some(1.0))),
            (&[Fail, Unknown], All, None, false, (Fail, Some(0.0))),
            (&[Unknown, Unknown], All, None, false, (Unknown, None)),
            (&[Pass, Fail], All, Some(0.5), false, (Pass, Some(0.5))),
            (&[Pass, Pass, Unknown], All, Some(0.6), false, (Pass, Some(1.0))),
            (&[Pass, Fail, Unknown], All, Some(0.6), false, (Unknown, Some(0.5))),
            (&[Fail, Fail, Unknown], All, Some(0.6), false, (Fail, Some(0.0))),
            (&[Fail, Pass, Pass], All, Some(0.5), true, (Fail, Some(2.0 / 3.0))),
            (&[Unknown, Pass, Pass], All, Some(0.5), true, (Unknown, Some(1.0))),
            (&[Fail, Pass], Any, None, false, (Pass, Some(0.5))),
            (&[Fail, Unknown], Any, None, false, (Unknown, Some(0.0))),
            (&[Fail, Fail], Any, None, false, (Fail, Some(0.0))),
        ] {
            assert_eq!(come_to(verdicts, how, min, required), wanted, "{verdicts:?} {how:?} {min:?} {required}");
        }
    }

    #[test]
    fn points_and_numbers_are_judged_by_their_bounds() {
        let scale = Scale { from: 1, to: 5, pass: 4, points: Default::default() };
        let points = Criterion { scale: Some(scale), ..criterion("a", 1.0, false) };
        assert_eq!(
            [3.0, 4.0, 5.0].map(|n| points.verdict_of(n)),
            [Some(CriterionVerdict::Fail), Some(CriterionVerdict::Pass), Some(CriterionVerdict::Pass)]
        );
        assert_eq!([0.0, 6.0, 3.5, f64::NAN].map(|n| points.verdict_of(n)), [None; 4]);
        assert_eq!(points.counts(CriterionVerdict::Fail, Some(2.0)), Some(0.25));
        let number =
            Criterion { number: Some(Bounds { min: Some(0.0), max: Some(2.0) }), ..criterion("b", 1.0, false) };
        assert_eq!(
            [-1.0, 2.0, 2.5].map(|n| number.verdict_of(n)),
            [Some(CriterionVerdict::Fail), Some(CriterionVerdict::Pass), Some(CriterionVerdict::Fail)]
        );
        assert_eq!(number.verdict_of(f64::INFINITY), None);
    }

    fn any_verdict() -> impl Strategy<Value = CriterionVerdict> {
        prop_oneof![Just(CriterionVerdict::Pass), Just(CriterionVerdict::Fail), Just(CriterionVerdict::Unknown)]
    }

    proptest! {
        /// An answer that becomes known never turns a verdict into its opposite.
        #[test]
        fn learning_an_unknown_overturns_nothing(
            answers in prop::collection::vec((any_verdict(), any_verdict(), 0.0..3.0f64, any::<bool>()), 1..6),
            any in any::<bool>(),
            min in prop::option::of(0.01..=1.0f64),
        ) {
            let criteria: Vec<_> = answers.iter().enumerate().map(|(n, it)| criterion(&format!("c{n}"), it.2, it.3)).collect();
            let how = if any { Aggregate::Any } else { Aggregate::All };
            let min = min.filter(|_| !any).and_then(Fraction::new);
            let before: Vec<_> = answers.iter().map(|it| (it.0, None)).collect();
            let after: Vec<_> =
                answers.iter().map(|it| (if it.0 == CriterionVerdict::Unknown { it.1 } else { it.0 }, None)).collect();
            let (before, _) = aggregate(&criteria, &before, how, min);
            let (after, _) = aggregate(&criteria, &after, how, min);
            prop_assert!(before == CriterionVerdict::Unknown || before == after, "{before:?} became {after:?}");
        }
    }
}
