//! Formats the figures of a comparison: shares, percentage points, p-values, ratios.

use crate::compare::Ratio;
use crate::rounding;
use crate::statistics::Interval;

/// Formats a share as a percentage.
pub fn percent(share: f64) -> String {
    rounding::percent(share)
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
    match p {
        p if p < 0.0001 => "p < 0.0001".to_owned(),
        p if p < 0.1 => format!("p = {p:.4}"),
        p => format!("p = {}", rounding::p_figure(p, 2)),
    }
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
    let over =
        if ratio.cases < compared { format!(" over {} of {compared} cases", ratio.cases) } else { String::new() };
    // With two or three cases that differ widely, the interval is useless, and its ends are not shown.
    let interval = match ratio.interval {
        Some(it) if it.low < 1.0 / WIDEST || it.high > WIDEST => " (interval unknown)".to_owned(),
        Some(it) => format!(" [{}, {}]", factor(it.low), factor(it.high)),
        None => String::new(),
    };
    format!("{}{interval}{over}", factor(ratio.ratio))
}

/// The factor beyond which the ends of an interval mean nothing.
const WIDEST: f64 = 1000.0;

fn factor(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 0.095 || v == 0.0 => format!("{v:.2}"),
        // Small ratios are shown with two significant digits.
        v => format!("{v:.*}", (1.0 - v.log10().floor()).clamp(2.0, 12.0) as usize),
    }
}
