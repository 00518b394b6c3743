//! The tolerance for sums of floating-point numbers, with which judgements, limits and comparisons ignore errors of rounding.

/// The largest relative rounding error that is ignored: three times 0.1 is not above 0.3.
const RELATIVE: f64 = 1e-9;

/// The largest difference of two scores, which are at most 1, that is ignored.
pub const OF_SCORES: f64 = RELATIVE;

/// Returns true if a sum of floating-point numbers is at least `wanted`, except for rounding.
pub fn reaches(sum: f64, wanted: f64) -> bool {
    sum >= wanted || wanted - sum <= room(wanted)
}

/// Returns true if a sum of floating-point numbers is above `limit` by more than rounding.
pub fn exceeds(sum: f64, limit: f64) -> bool {
    sum > limit && sum - limit > room(limit)
}

/// Returns true if a sum of floating-point numbers is `wanted`, except for rounding.
pub fn equals(sum: f64, wanted: f64) -> bool {
    reaches(sum, wanted) && !exceeds(sum, wanted)
}

/// Returns the smallest whole number that is at least `sum`, except for rounding.
pub fn ceil(sum: f64) -> f64 {
    (sum - room(sum)).ceil()
}

/// Returns the largest share that counts as less than 1.
pub fn below_one() -> f64 {
    1.0 - RELATIVE
}

fn room(around: f64) -> f64 {
    RELATIVE * around.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_ignored_and_nothing_else() {
        assert!(reaches(0.1 + 0.2, 0.3) && reaches(0.3, 0.1 + 0.2));
        assert!(!exceeds(0.1 + 0.1 + 0.1, 0.3) && exceeds(0.300_001, 0.3));
        assert!(!reaches(0.999_999, 1.0));
        assert!(equals(0.1 + 0.2, 0.3) && !equals(0.300_001, 0.3) && !equals(0.299_999, 0.3));
        assert!(reaches(f64::MAX, 1.0) && exceeds(f64::INFINITY, 1.0));
        assert_eq!((ceil(0.8 * 5.0), ceil(0.7 * 10.0), ceil(2.1)), (4.0, 7.0, 3.0));
    }
}
