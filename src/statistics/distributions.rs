//! The distributions that the other modules need, from `statrs`; arguments out of their domain give NaN.

use statrs::distribution::{Beta, Binomial, ChiSquared, ContinuousCDF, Discrete, DiscreteCDF, Hypergeometric};
use statrs::distribution::{Normal, StudentsT};

/// Returns the value below which a share `p` of a standard normal distribution lies.
pub fn normal_quantile(p: f64) -> f64 {
    if (0.0..=1.0).contains(&p) { Normal::standard().inverse_cdf(p) } else { f64::NAN }
}

/// Returns the share of a standard normal distribution below `x`.
pub fn normal_below(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// Returns the share of a standard normal distribution above `x`, also exact far from the mean.
pub fn normal_above(x: f64) -> f64 {
    Normal::standard().sf(x)
}

/// Returns the two-sided p-value of a standard normal `z`.
pub fn normal_two_sided(z: f64) -> f64 {
    (2.0 * normal_above(z.abs())).min(1.0)
}

/// Returns the quantile of Student's t distribution with `df` degrees of freedom.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, df) {
        Ok(t) if (0.0..=1.0).contains(&p) => t.inverse_cdf(p),
        _ => f64::NAN,
    }
}

/// Returns the share of Student's t distribution above `x`.
pub fn t_above(x: f64, df: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |t| t.sf(x))
}

/// Returns the two-sided p-value of a `t` with `df` degrees of freedom.
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    (2.0 * t_above(t.abs(), df)).min(1.0)
}

/// Returns the quantile of a Beta distribution.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    match Beta::new(a, b) {
        Ok(beta) if (0.0..=1.0).contains(&p) => beta.inverse_cdf(p),
        _ => f64::NAN,
    }
}

/// Returns the share of a Beta distribution below `x`.
pub fn beta_below(x: f64, a: f64, b: f64) -> f64 {
    Beta::new(a, b).map_or(f64::NAN, |beta| beta.cdf(x))
}

/// Returns the share of a Beta distribution above `x`.
pub fn beta_above(x: f64, a: f64, b: f64) -> f64 {
    Beta::new(a, b).map_or(f64::NAN, |beta| beta.sf(x))
}

/// Returns the probability of at most `x` successes in `n` trials of probability `p`.
pub fn binomial_at_most(x: u64, n: u64, p: f64) -> f64 {
    Binomial::new(p, n).map_or(f64::NAN, |binomial| binomial.cdf(x))
}

/// Returns the probability of exactly `x` successes in `n` trials of probability `p`.
pub fn binomial_exactly(x: u64, n: u64, p: f64) -> f64 {
    Binomial::new(p, n).map_or(f64::NAN, |binomial| binomial.pmf(x))
}

/// Returns the probability of more than `x` under chi-squared with `df` degrees of freedom.
pub fn chi_squared_above(x: f64, df: f64) -> f64 {
    ChiSquared::new(df).map_or(f64::NAN, |chi| chi.sf(x))
}

/// Returns the probability of exactly `x` marked items in `draws` from `population` items, `marked` of them marked.
pub fn hypergeometric_exactly(x: u64, population: u64, marked: u64, draws: u64) -> f64 {
    Hypergeometric::new(population, marked, draws).map_or(f64::NAN, |it| it.pmf(x))
}

/// Returns the natural logarithm of the Beta function.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    use statrs::function::gamma::ln_gamma;
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// Returns the standard normal quantile that leaves half of `1 - level` above it.
pub fn z_of_level(level: f64) -> f64 {
    normal_quantile(0.5 + level / 2.0)
}
