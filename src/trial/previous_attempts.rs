//! Sums up the earlier attempts of a trial: they count in no score, but they were paid for.

use std::path::Path;

use crate::result::{EarlierAttempts, TrialResult};
use crate::run::read_json;

/// Returns the sum of the attempts before this one, or `None` if there are none. Other folders beside them are
/// ignored.
pub(super) fn sum(trial: &Path, attempt: u32) -> Option<EarlierAttempts> {
    let mut sum = EarlierAttempts::default();
    let folders = (1..attempt).map(|number| trial.join("attempts").join(number.to_string()));
    for attempt in folders.filter(|folder| folder.is_dir()) {
        sum.count += 1;
        match read_json::<TrialResult>(&attempt.join("result.json")) {
            Ok(result) => match result.metrics.cost() {
                Some(cost) => {
                    sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + cost.value());
                    sum.cost_unknown += u32::from(!cost.is_exact());
                }
                None => sum.cost_unknown += u32::from(result.agent_ran()),
            },
            // The engine was killed during the attempt. Without a line from its agent, nothing can have been
            // spent.
            Err(_) => sum.cost_unknown += u32::from(attempt.join("wire.jsonl").exists()),
        }
    }
    if sum.cost_usd.is_some_and(|cost| !cost.is_finite()) {
        // A sum that overflows is unknown.
        sum.cost_usd = None;
        sum.cost_unknown += 1;
    }
    (sum.count > 0).then_some(sum)
}
