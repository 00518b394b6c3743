//! Checks whether the difference between two arms of an experiment changed while its trials ran.

use super::doubts::{About, Doubt};
use super::join::Paired;
use crate::rounding::points_figure;
use crate::statistics::distributions::t_two_sided;
use crate::statistics::means;

/// The p-value below which a change is reported.
const ALPHA: f64 = 0.05;

/// Returns a caveat if the difference in the later half of the trials differs from the difference in the earlier half.
/// The trials are interleaved, so both arms ran at the same times.
pub(super) fn trend(cases: &[Paired<'_>]) -> Option<Doubt> {
    let halves: Vec<(f64, f64)> = cases.iter().filter_map(halves).collect();
    let changes: Vec<f64> = halves.iter().map(|(early, late)| late - early).collect();
    let change = means::of_cases(&changes, 1.0 - ALPHA).filter(|mean| mean.se > 0.0)?;
    let p = t_two_sided(change.mean / change.se, (changes.len() - 1) as f64);
    if p >= ALPHA {
        return None;
    }
    let early = means::mean(&halves.iter().map(|(early, _)| *early).collect::<Vec<_>>())?;
    let late = means::mean(&halves.iter().map(|(_, late)| *late).collect::<Vec<_>>())?;
    let text = format!(
        "the difference changed while the run went on: {} pp in the first half of the trials, {} pp in the second \
         (p = {p:.3})",
        points_figure(early),
        points_figure(late)
    );
    Some(Doubt { about: About::Trend, text })
}

/// Returns the difference in the earlier and in the later half of the trials of a case.
fn halves(case: &Paired<'_>) -> Option<(f64, f64)> {
    let half = |scores: &[f64]| {
        let (early, late) = scores.split_at(scores.len() / 2);
        Some((means::mean(early)?, means::mean(late)?))
    };
    let (old, new) = (half(&case.old.scores)?, half(&case.new.scores)?);
    Some((new.0 - old.0, new.1 - old.1))
}
