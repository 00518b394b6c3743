//! Figures of a comparison in words: shares, points, p-values, ratios.

use crate::compare::Ratio;
use crate::statistics::Interval;

/// A share.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A difference of shares, in percentage points.
pub fn points(difference: f64) -> String {
    format!("{:+.1} pp", cleaned(difference * 100.0))
}

/// An interval of a difference.
pub fn points_interval(interval: Interval) -> String {
    format!("[{:+.1}, {:+.1}]", cleaned(interval.low * 100.0), cleaned(interval.high * 100.0))
}

/// An interval of a share.
pub fn percent_interval(interval: Interval) -> String {
    format!("[{:.1}, {:.1}]", cleaned(interval.low * 100.0), cleaned(interval.high * 100.0))
}

/// No figure is shown as minus nothing.
fn cleaned(value: f64) -> f64 {
    if value.abs() < 0.05 { 0.0 } else { value }
}

/// A p-value; never 0.
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.0001 => "p < 0.0001".to_owned(),
        p if p < 0.1 => format!("p = {p:.4}"),
        p => format!("p = {p:.2}"),
    }
}

/// A chance; never certain.
pub fn chance(p: f64) -> String {
    match p {
        p if p > 0.994 => "above 0.99".to_owned(),
        p if p < 0.006 => "below 0.01".to_owned(),
        p => format!("of {p:.2}"),
    }
}

/// A ratio with its interval, and over how many of the compared cases it is, where not over all.
pub fn ratio(ratio: &Ratio, compared: usize) -> String {
    let over =
        if ratio.cases < compared { format!(" over {} of {compared} cases", ratio.cases) } else { String::new() };
    let interval = ratio.interval.map(|it| format!(" [{}, {}]", factor(it.low), factor(it.high))).unwrap_or_default();
    format!("{}{interval}{over}", factor(ratio.ratio))
}

fn factor(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 0.095 || v == 0.0 => format!("{v:.2}"),
        // Two figures of what is small.
        v => format!("{v:.*}", (1.0 - v.log10().floor()).clamp(2.0, 12.0) as usize),
    }
}
