//! Formats the figures of a comparison: shares, percentage points, p-values, ratios.

use crate::compare::Ratio;
use crate::rounding;
use crate::statistics::Interval;
use crate::trace::amount::Amount;

/// Formats a share as a percentage.
pub fn percent(share: f64) -> String {
    rounding::percent(share)
}

/// Formats a figure, with `>=` before a lower bound.
pub fn bounded(figure: Amount<f64>, format: impl Fn(f64) -> String) -> String {
    format!("{}{}", if figure.is_exact() { "" } else { ">=" }, format(figure.value()))
}

/// Formats a difference of shares in percentage points.
pub fn points(difference: f64) -> String {
    format!("{} pp", rounding::points_figure(difference))
}

/// Formats the confidence interval of a difference.
pub fn points_interval(interval: Interval) -> String {
    format!("[{}, {}]", rounding::points_figure(interval.low), rounding::points_figure(interval.high))
}

/// Formats the confidence interval of a share.
pub fn percent_interval(interval: Interval) -> String {
    format!("[{}, {}]", rounding::percent_figure(interval.low), rounding::percent_figure(interval.high))
}

/// Formats a p-value, which is never shown as 0.
pub fn p_value(p: f64) -> String {
    rounding::p_value(p)
}

/// Formats a probability, which is never shown as 0 or 1.
pub fn chance(p: f64) -> String {
    match p {
        p if p > 0.994 => "above 0.99".to_owned(),
        p if p < 0.006 => "below 0.01".to_owned(),
        p => format!("{p:.2}"),
    }
}

/// Formats a ratio with its interval, and the number of compared cases it is based on if that is not all of
/// them.
pub fn ratio(ratio: &Ratio, compared: usize) -> String {
    let coverage =
        if ratio.cases < compared { format!(" over {} of {compared} cases", ratio.cases) } else { String::new() };
    format!("{}{coverage}", ratio.figure())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_shown_unless_its_ends_are_too_far_apart() {
        let shown = |value: f64, low: f64, high: f64| {
            let interval = Some(Interval { low, high });
            ratio(&Ratio { ratio: Some(value), interval, of_totals: value, cases: 3, without_ratio: None }, 3)
        };
        assert_eq!(shown(675.0, 402.0, 1134.0), "675 [402, 1134]");
        assert_eq!(shown(0.0012, 0.0004, 0.0036), "0.0012 [0.00040, 0.0036]");
        assert_eq!(shown(22.4, 0.001, 2000.0), "22.40 (interval too wide to be useful)");
        assert_eq!(shown(22.4, 0.0, 3e18), "22.40 (interval too wide to be useful)");
    }

    #[test]
    fn a_ratio_of_sums_names_the_cases_without_a_ratio() {
        let sums = Ratio { ratio: None, interval: None, of_totals: 0.333, cases: 6, without_ratio: Some(4) };
        let says = "the ratio of the sums, because 4 cases are 0 on one side and have no ratio";
        assert_eq!(ratio(&sums, 6), format!("0.33 ({says})"));
    }
}
