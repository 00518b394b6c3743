//! What the earlier attempts of a trial came to: they count in no score, and were paid for all the same.

use std::fs;
use std::path::Path;

use crate::result::{EarlierAttempts, TrialResult};
use crate::run::read_json;

/// What the attempts that lie beside the one that counts came to; nothing where there are none.
pub(super) fn sum(trial: &Path) -> Option<EarlierAttempts> {
    let mut sum = EarlierAttempts::default();
    for attempt in fs::read_dir(trial.join("attempts")).into_iter().flatten().flatten().map(|entry| entry.path()) {
        sum.count += 1;
        match read_json::<TrialResult>(&attempt.join("result.json")) {
            Ok(result) => match result.metrics.cost_usd {
                Some(cost) => sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + cost),
                None => sum.cost_unknown += u32::from(result.agent_ran()),
            },
            // Its engine was killed. Without a line of its agent there was none that could have spent something.
            Err(_) => sum.cost_unknown += u32::from(attempt.join("wire.jsonl").exists()),
        }
    }
    if sum.cost_usd.is_some_and(|cost| !cost.is_finite()) {
        // More than a number holds is not known.
        sum.cost_usd = None;
        sum.cost_unknown += 1;
    }
    (sum.count > 0).then_some(sum)
}
