//! The number of cases that must differ before the interval of a comparison can exclude 0, and the share of cases and the
//! number of cases with which that many differ with 80 % power. Pure.

use crate::statistics::distributions::t_quantile;
use crate::statistics::paired;
use crate::statistics::power::{POWER, cases_with_events, share_with_events};

/// The maximum number of differing cases in the search for the number of cases needed. Usual levels need far fewer.
const MAX_DIFFERING_CASES: u64 = 1_000;

/// An interval over cases that differ by the same amount in one direction, while the others do not differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Differing {
    /// Bonett and Price's interval at this level.
    Counts(f64),
    /// The paired t interval at this level.
    T(f64),
}

impl Differing {
    /// Returns the smallest number of differing cases with which the interval excludes 0. Returns `None` if no number of
    /// these cases suffices; by t, a case without a difference is required, because all cases alike show no spread.
    pub fn needed(self, cases: u64) -> Option<u64> {
        match self {
            Self::Counts(level) => {
                let excludes_none = |differ: &u64| {
                    paired::bonett_price(*differ, 0, cases, level).is_some_and(|(_, interval)| interval.low > 0.0)
                };
                (1..=cases).find(excludes_none)
            }
            Self::T(level) => {
                let n = cases as f64;
                let quantile = t_quantile(0.5 + level / 2.0, n - 1.0);
                let t = |differ: f64| (differ * (n - 1.0) / (n - differ)).sqrt();
                (1..cases).find(|differ| t(*differ as f64) > quantile)
            }
        }
    }

    /// Returns the smallest share of cases like these that differ, if so many of these cases then differ with 80 % power
    /// that the interval excludes 0.
    pub fn share(self, cases: u64) -> Option<f64> {
        share_with_events(self.needed(cases)?, cases, POWER)
    }

    /// Returns the number of cases, at least `from`, of which so many differ with 80 % power that the interval excludes 0, if
    /// this share of cases differs.
    pub fn cases(self, share: f64, from: u64) -> Option<u64> {
        (1..=MAX_DIFFERING_CASES).find_map(|differ| {
            let cases = cases_with_events(differ, share, POWER)?.max(from);
            self.needed(cases).is_some_and(|needed| needed <= differ).then_some(cases)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are scipy's: `beta.ppf(.8, x, n - x + 1)`, and `binom.cdf(x - 1, n, p) <= .2`.
    #[test]
    fn the_power_of_few_differing_cases_is_exact() {
        let counts = Differing::Counts(0.95);
        for (cases, needed, share) in
            [(4, 4, 0.945_742), (10, 5, 0.580_865), (20, 5, 0.313_300), (40, 5, 0.162_328), (80, 6, 0.097_030)]
        {
            assert_eq!(counts.needed(cases), Some(needed), "{cases}");
            assert!((counts.share(cases).unwrap() - share).abs() < 1e-6, "{cases}");
        }
        assert_eq!((counts.needed(3), counts.share(3)), (None, None));
        assert_eq!((counts.cases(0.05, 11), counts.cases(0.05, 200)), (Some(157), Some(200)));
        let by_t = Differing::T(0.95);
        assert_eq!((by_t.needed(4), by_t.needed(60)), (None, Some(4)));
        assert!((by_t.share(60).unwrap() - 0.090_000).abs() < 1e-6);
        assert_eq!((by_t.cases(0.1, 21), by_t.cases(0.05, 2)), (Some(54), Some(110)));
    }
}
