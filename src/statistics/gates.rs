//! Non-inferiority tests: whether the new arm is not worse than the old one by more than a margin.

use serde::{Deserialize, Serialize};

use super::distributions::normal_quantile;
use super::rates::{clopper_pearson_lower, clopper_pearson_upper};

/// The verdict of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GateVerdict {
    /// The condition of the gate holds.
    Pass,
    /// The condition of the gate does not hold.
    Fail,
    /// It is unknown whether the condition holds.
    Inconclusive,
}

impl GateVerdict {
    /// Returns the verdict as a word.
    pub fn word(self) -> &'static str {
        match self {
            GateVerdict::Pass => "pass",
            GateVerdict::Fail => "fail",
            GateVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// Returns the one-sided bounds of `new - old`, each with an error of `alpha`.
pub fn bounds(delta: f64, se: f64, alpha: f64) -> (f64, f64) {
    let half = normal_quantile(1.0 - alpha) * se;
    (delta - half, delta + half)
}

/// Returns the verdict of a non-inferiority test: pass if the lower bound exceeds `-margin`, fail if the upper
/// bound is below it.
pub fn not_worse(lower: f64, upper: f64, margin: f64) -> GateVerdict {
    if lower > -margin {
        GateVerdict::Pass
    } else if upper < -margin {
        GateVerdict::Fail
    } else {
        GateVerdict::Inconclusive
    }
}

/// Tests by the one-sided upper bound of the share of cases that regress (Clopper-Pearson; `1 - alpha^(1/n)` if none
/// did). The test is for samples without any observed spread: no spread in a sample does not prove that there is none.
/// 20 cases without a regression do not exclude a drop of 5 %, 59 cases do. `None` without a case.
pub fn regressed_share(regressed: u64, cases: u64, margin: f64, alpha: f64) -> Option<(f64, GateVerdict)> {
    let upper = clopper_pearson_upper(regressed, cases, alpha)?;
    let lower = clopper_pearson_lower(regressed, cases, alpha)?;
    let verdict = if upper < margin {
        GateVerdict::Pass
    } else if lower > margin {
        GateVerdict::Fail
    } else {
        GateVerdict::Inconclusive
    };
    Some((upper, verdict))
}
