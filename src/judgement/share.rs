//! A weighted mean of parts between 0 and 1 of which some are unknown or known within bounds only.

use super::{Judgement, tolerance};
use crate::values::Fraction;

/// A weighted mean of which some parts may be unknown. An unknown part can have any value from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Weighted sum of the known parts.
    sum: f64,
    /// The largest sum that the known parts may have: above `sum` if a part is known within bounds only.
    at_most: f64,
    /// Weight of the known parts.
    known: f64,
    /// Weight of the unknown parts.
    unknown: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The weight, from 0.
    pub weight: f64,
    /// The smallest and the largest possible value, which are equal if the value is exact. `None` if the value is
    /// unknown.
    pub value: Option<(f64, f64)>,
}

impl Part {
    /// Makes a part with this weight and value; unknown if the value is absent.
    pub fn new(weight: f64, value: Option<f64>) -> Self {
        Self { weight, value: value.map(|value| (value, value)) }
    }
}

impl Share {
    /// Adds up parts. Parts without weight do not count.
    pub fn of(parts: impl Iterator<Item = Part> + Clone) -> Self {
        // Weights are divided by the largest one, because a sum of large weights would overflow.
        let largest = parts.clone().map(|part| part.weight).fold(0.0, f64::max);
        let mut share = Self { sum: 0.0, at_most: 0.0, known: 0.0, unknown: 0.0 };
        for Part { weight, value } in parts.filter(|part| part.weight > 0.0) {
            let weight = weight / largest;
            match value {
                Some((value, at_most)) => {
                    share.sum += weight * value;
                    share.at_most += weight * at_most;
                    share.known += weight;
                }
                None => share.unknown += weight,
            }
        }
        share
    }

    /// Returns the mean of the known parts; `None` if none is known.
    pub fn known_mean(&self) -> Option<Fraction> {
        if self.known > 0.0 { Fraction::new((self.sum / self.known).clamp(0.0, 1.0)) } else { None }
    }

    /// Returns the smallest and the largest mean of all parts, if they differ.
    pub fn bounds(&self) -> Option<(Fraction, Fraction)> {
        let all = self.known + self.unknown;
        let of = |sum: f64| Fraction::new((sum / all).clamp(0.0, 1.0));
        let (low, high) = (of(self.sum)?, of(self.at_most + self.unknown)?);
        (low != high).then_some((low, high))
    }

    /// Returns whether the mean of all parts reaches a threshold, except for rounding: unknown if an unknown part
    /// decides. The mean of no parts reaches every threshold.
    pub fn reaches(&self, threshold: Fraction) -> Judgement {
        let all = self.known + self.unknown;
        let reaches = |sum: f64| all == 0.0 || tolerance::reaches((sum / all).clamp(0.0, 1.0), threshold.get());
        match (reaches(self.sum), reaches(self.at_most + self.unknown)) {
            (true, _) => Judgement::True,
            (false, true) => Judgement::Unknown,
            (false, false) => Judgement::False,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn half() -> Fraction {
        Fraction::new(0.5).unwrap()
    }

    #[test]
    fn large_weights_and_no_parts() {
        let large = [Part::new(1e308, Some(1.0)), Part::new(1e308, Some(0.0)), Part::new(0.0, Some(0.0))];
        let share = Share::of(large.into_iter());
        assert_eq!((share.known_mean(), share.reaches(half())), (Some(half()), Judgement::True));
        let none = Share::of(std::iter::empty());
        assert_eq!((none.known_mean(), none.reaches(Fraction::ONE)), (None, Judgement::True));
    }

    proptest! {
        /// A certain result holds for all values of the unknown parts, and an unknown result can become either.
        #[test]
        fn unknown_parts_decide_just_what_they_can(
            parts in prop::collection::vec((1u32..5, prop::option::of(0u32..=4)), 1..5),
            threshold in 1u32..=4,
        ) {
            let threshold = Fraction::new(f64::from(threshold) / 4.0).unwrap();
            let part = |weight: u32, value: Option<u32>| Part::new(f64::from(weight), value.map(|it| f64::from(it) / 4.0));
            let said = Share::of(parts.iter().map(|(weight, value)| part(*weight, *value))).reaches(threshold);
            let with = |unknown: u32| {
                let filled = parts.iter().map(|(weight, value)| part(*weight, Some(value.unwrap_or(unknown))));
                Share::of(filled).reaches(threshold)
            };
            let expected = if with(0) == with(4) { with(0) } else { Judgement::Unknown };
            prop_assert_eq!(said, expected);
        }
    }
}
