//! Formats shares, differences and p-values so that no figure is rounded to a bound that it does not reach.
//! Pure.

/// Shares closer to a bound than this equal the bound: sums of floats have such errors.
const SAME: f64 = 1e-12;

/// Returns a share between 0 and 1, such as a score, with two decimals or as many more as it needs: `0.83`, `0.9996`.
pub fn share(share: f64) -> String {
    apart(share, &[0.0, 1.0], 2, 4, false)
}

/// Returns a share as a percentage: `83.3 %`, `99.96 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", percent_figure(share))
}

/// Returns a share as a percentage without the sign: `83.3`, `99.96`.
pub fn percent_figure(share: f64) -> String {
    apart(share * 100.0, &[0.0, 100.0], 1, 3, false)
}

/// Returns a difference of shares in percentage points, signed and without the unit: `+13.1`, `-0.04`.
pub fn points_figure(difference: f64) -> String {
    apart(difference * 100.0, &[0.0, 100.0, -100.0], 1, 3, true)
}

/// Returns a figure from -1 to 1, such as a correlation or kappa, with two decimals or as many more as it needs.
pub fn coefficient(value: f64) -> String {
    apart(value, &[0.0, 1.0, -1.0], 2, 4, false)
}

/// Returns a figure from -1 to 1 that differs from another one whenever the two values differ: `0.796` beside
/// `0.8`.
pub fn coefficient_beside(value: f64, other: f64) -> String {
    apart(value, &[0.0, 1.0, -1.0, other], 2, 4, false)
}

/// Returns a p-value's figure with at least `places` decimals.
pub fn p_figure(p: f64, places: usize) -> String {
    // A p-value that is closer to 0 than an error of rounding is not 0.
    let p = if p > 0.0 { p.max(1e-9) } else { p };
    apart(p, &[0.0, 1.0], places, places.max(4), false)
}

/// Returns a p-value with its name, which is never shown as 0: `p = 0.0027`.
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.0001 => "p < 0.0001".to_owned(),
        p if p < 0.1 => format!("p = {p:.4}"),
        p => format!("p = {}", p_figure(p, 2)),
    }
}

/// Returns a ratio of positive figures with two decimals, or as many more as it needs to differ from 1: `0.91`, `1.004`.
/// Small ratios have two significant digits, ratios from 100 on no decimals.
pub fn factor(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 0.095 => apart(v, &[1.0], 2, 4, false),
        0.0 => "0.00".to_owned(),
        v => format!("{v:.*}", (1.0 - v.log10().floor()).clamp(2.0, 12.0) as usize),
    }
}

/// Returns a share as a percentage that differs from another one whenever the two shares differ: `79.96 %` beside
/// `80.0 %`.
pub fn percent_beside(share: f64, other: f64) -> String {
    format!("{} %", apart(share * 100.0, &[0.0, 100.0, other * 100.0], 1, 3, false))
}

/// Returns a difference in percentage points, as [`points_figure`] does, that is on the same side of another difference
/// as the value itself: `-5.02` beside `-5.0`.
pub fn points_beside(difference: f64, other: f64) -> String {
    apart(difference * 100.0, &[0.0, 100.0, -100.0, other * 100.0], 1, 3, true)
}

/// Returns a bound that a user or `evals` set, as a percentage with up to six decimals: `80.0 %`, `66.67 %`.
pub fn percent_bound(share: f64) -> String {
    format!("{} %", as_written(&format!("{:.6}", share * 100.0)))
}

/// Returns a bound that a user set, in percentage points with up to six decimals: `-5.0`, `-5.04`.
pub fn points_bound(difference: f64) -> String {
    as_written(&format!("{:+.6}", difference * 100.0))
}

/// Removes the zeros at the end of a decimal number, but for one.
fn as_written(number: &str) -> String {
    let short = number.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

/// Returns a figure with the fewest decimals, from `places` to `most`, that distinguish it from every bound and leave it
/// on its side of each; a value still closer to a bound is written as an inequality.
fn apart(value: f64, bounds: &[f64], places: usize, most: usize, signed: bool) -> String {
    let written = |value: f64, places: usize| {
        // Avoids a negative zero.
        let value = if value.abs() <= SAME { 0.0 } else { value };
        if signed { format!("{value:+.places$}") } else { format!("{value:.places$}") }
    };
    let same = SAME * bounds.iter().fold(1.0_f64, |most, bound| most.max(bound.abs()));
    if !value.is_finite() || bounds.iter().any(|bound| (value - bound).abs() <= same) {
        return written(value, places);
    }
    // A figure that is rounded across a bound is as wrong as one that is rounded to it.
    let misleads = |text: &str, bound: f64| {
        text.parse::<f64>().is_ok_and(|shown| (shown - bound).abs() <= same || (shown < bound) != (value < bound))
    };
    for places in places..=most {
        let text = written(value, places);
        if !bounds.iter().any(|bound| misleads(&text, *bound)) {
            return text;
        }
    }
    let nearest = bounds.iter().copied().min_by(|a, b| (value - a).abs().total_cmp(&(value - b).abs()));
    let (bound, step) = (nearest.unwrap_or_default(), 0.1_f64.powi(i32::try_from(most).unwrap_or(i32::MAX)));
    if value > bound {
        format!("<{}", written(bound + step, most))
    } else {
        format!(">{}", written(bound - step, most))
    }
}

/// Returns the sum of two amounts of money. A sum below 1000 is rounded to 12 decimals, because amounts are decimal: 0.1
/// and 0.2 are 0.3. If one amount is 0, the other is returned unchanged.
pub fn sum_of_money(one: f64, other: f64) -> f64 {
    const PLACES: f64 = 1e12;
    let sum = one + other;
    if one == 0.0 || other == 0.0 || sum.abs() >= 1000.0 { sum } else { (sum * PLACES).round() / PLACES }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sums_of_money_are_decimal() {
        assert_eq!(sum_of_money(0.1, 0.2), 0.3);
        assert_eq!(sum_of_money(0.0, 0.051_234_500_000_000_01), 0.051_234_500_000_000_01);
        assert_eq!((0..9).fold(0.0, |sum, _| sum_of_money(sum, 0.1)), 0.9);
    }

    #[test]
    fn figures_are_rounded_and_bounds_are_kept_for_what_reaches_them() {
        assert_eq!([0.0, 1.0, 0.5, 59.0 / 60.0].map(share), ["0.00", "1.00", "0.50", "0.98"]);
        assert_eq!([0.9996, 0.995, 0.004, 0.999_999].map(share), ["0.9996", "0.99", "0.004", ">0.9999"]);
        assert_eq!([1e-9, 0.1 + 0.2 + 0.7].map(share), ["<0.0001", "1.00"]);
        assert_eq!([0.9996, 1.0, 0.0003, 0.5].map(percent), ["99.96 %", "100.0 %", "0.03 %", "50.0 %"]);
        assert_eq!([0.999_999_9, 1e-7].map(percent), [">99.999 %", "<0.001 %"]);
        assert_eq!(
            [0.0, -0.0, 0.0004, -0.0004, -0.9997].map(points_figure),
            ["+0.0", "+0.0", "+0.04", "-0.04", "-99.97"]
        );
        assert_eq!([1e-7, -1e-7].map(points_figure), ["<+0.001", ">-0.001"]);
        assert_eq!([0.998, -0.998, -0.25].map(coefficient), ["0.998", "-0.998", "-0.25"]);
        assert_eq!(
            (p_figure(0.998, 2), p_figure(0.9996, 3), p_figure(0.0004, 3)),
            ("0.998".into(), "0.9996".into(), "0.0004".into())
        );
        assert_eq!((percent_beside(0.7996, 0.8), percent_beside(0.8, 0.8)), ("79.96 %".into(), "80.0 %".into()));
    }

    #[test]
    fn a_ratio_other_than_1_is_not_shown_as_1() {
        assert_eq!([1.0, 1.0 + 1e-15, 0.914, 1.2, 1.0051].map(factor), ["1.00", "1.00", "0.91", "1.20", "1.01"]);
        assert_eq!([1.004, 0.996, 1.000_04].map(factor), ["1.004", "0.996", "<1.0001"]);
        assert_eq!([0.0, 0.0012, 123.4].map(factor), ["0.00", "0.0012", "123"]);
    }

    #[test]
    fn a_p_value_above_0_is_never_0() {
        assert_eq!([0.0, 0.0027, 0.338].map(p_value), ["p < 0.0001", "p = 0.0027", "p = 0.34"]);
        assert_eq!([1e-17, 1e-9, 0.0].map(|p| p_figure(p, 3)), ["<0.0001", "<0.0001", "0.000"]);
    }

    #[test]
    fn a_figure_stays_on_its_side_of_a_bound_that_has_more_decimals() {
        assert_eq!(
            [0.8, 1.0, 0.0, 0.6667, 0.9875].map(percent_bound),
            ["80.0 %", "100.0 %", "0.0 %", "66.67 %", "98.75 %"]
        );
        assert_eq!([-0.05, -0.0504, 0.1].map(points_bound), ["-5.0", "-5.04", "+10.0"]);
        assert_eq!(percent_beside(2.0 / 3.0, 0.6667), "66.667 %");
        assert_eq!(percent_beside(2.0 / 3.0, 0.666_667), ">66.666 %");
        assert_eq!(percent_beside(0.667, 0.6667), "66.7 %");
        assert_eq!((points_beside(-0.0502, -0.05), points_beside(-0.05, -0.05)), ("-5.02".into(), "-5.0".into()));
        assert_eq!(points_beside(-0.259, -0.05), "-25.9");
    }

    proptest! {
        /// No share is shown as a bound unless it is one, and the shown figure is near the share.
        #[test]
        fn nothing_is_shown_as_a_bound_that_it_is_not(exponent in 0.0..11.0f64, above in any::<bool>()) {
            let near = 10f64.powf(-exponent);
            let value = if above { near } else { 1.0 - near };
            prop_assume!(value > 0.0 && value < 1.0);
            let (text, hundred) = (share(value), percent_figure(value));
            let figure = |text: &str| text.trim_start_matches(['<', '>']).parse::<f64>().unwrap();
            prop_assert!(figure(&text) > 0.0 && figure(&text) < 1.0, "{value} {text}");
            prop_assert!((figure(&text) - value).abs() <= 0.0051, "{value} {text}");
            prop_assert!(figure(&hundred) > 0.0 && figure(&hundred) < 100.0, "{value} {hundred}");
        }
    }
}
