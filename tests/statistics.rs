//! The statistics against expected values of scipy and statsmodels, and by laws.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "statistics/coverage.rs"]
mod coverage;
#[path = "statistics/golden.rs"]
mod golden;
#[path = "statistics/laws.rs"]
mod laws;
