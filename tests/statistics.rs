//! The statistics against expected values of scipy and statsmodels, and by laws.

#[path = "statistics/golden.rs"]
mod golden;
#[path = "statistics/laws.rs"]
mod laws;
