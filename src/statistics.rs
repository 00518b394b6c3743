//! Statistics of scores, trials and figures: pure functions, each with its definition and its source.
//!
//! The unit is the case: if trials are repeated, the mean of each case counts (adr/0024). Nothing here reads a
//! file, a clock or a random source; functions that draw random numbers take a [`random::Generator`].
//!
//! The module is a part of the library's interface, so it also has functions that this program does not call.

pub mod agreement;
pub mod attempts;
pub mod consistency;
pub mod distributions;
pub mod figures;
pub mod gates;
pub mod means;
pub mod paired;
pub mod permutation;
pub mod power;
pub mod random;
pub mod rates;
pub mod several;
pub mod stopping;
pub mod tables;

use serde::{Deserialize, Serialize};

/// The default level of every interval and test.
pub const LEVEL: f64 = 0.95;

/// An interval that contains the true value in a known share of repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Returns the interval from `middle - half` to `middle + half`.
    pub fn around(middle: f64, half: f64) -> Self {
        Self { low: middle - half, high: middle + half }
    }

    /// Returns the interval limited to `low..=high`: a share is never below 0 or above 1.
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }

    /// Returns true if a value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
