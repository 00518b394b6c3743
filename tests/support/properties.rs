//! How often a property is tried: `EVALS_PROPERTY_FACTOR` times as often as usual. Default: 1.

use proptest::test_runner::Config;

/// Returns the configuration of a property that is usually tried with so many inputs.
pub fn tries(usual: u32) -> Config {
    let factor = std::env::var("EVALS_PROPERTY_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u32);
    // The failing input is printed in its shortest form; a file of seeds would be left in the working copy.
    Config { failure_persistence: None, ..Config::with_cases(usual.saturating_mul(factor)) }
}
