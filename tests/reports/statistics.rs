//! The statistics against expected values of scipy and statsmodels, and by laws.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod coverage;
mod golden;
mod laws;
