//! Checks whether the difference between two arms of an experiment changed while its trials ran.

use std::collections::BTreeSet;

use super::doubts::{About, Doubt};
use super::join::{Paired, SAME};
use crate::fold::CaseTrials;
use crate::rounding::{p_value, points_figure};
use crate::statistics::distributions::t_two_sided;
use crate::statistics::power::ALPHA;
use crate::statistics::{means, tables};

/// Returns a caveat if the difference in the later half of the trials differs from the difference in the earlier half.
/// The trials are interleaved, so both arms ran at the same times.
pub(super) fn trend(cases: &[Paired<'_>]) -> Option<Doubt> {
    let halves: Vec<(f64, f64)> = cases.iter().filter_map(halves).collect();
    let changes: Vec<f64> = halves.iter().map(|(early, late)| late - early).collect();
    let change = means::of_cases(&changes, 1.0 - ALPHA).filter(|mean| mean.se > 0.0 || mean.mean.abs() > SAME)?;
    let p = if change.se > 0.0 {
        t_two_sided(change.mean / change.se, (changes.len() - 1) as f64)
    } else {
        // Equal changes show no spread for a t test. Only their signs could have been others.
        tables::mcnemar(changes.len() as u64, 0).exact
    };
    if p >= ALPHA {
        return None;
    }
    let early = means::mean(&halves.iter().map(|(early, _)| *early).collect::<Vec<_>>())?;
    let late = means::mean(&halves.iter().map(|(_, late)| *late).collect::<Vec<_>>())?;
    let text = format!(
        "the difference changed while the run went on: {} pp in the first half of the trials, {} pp in the second \
         ({})",
        points_figure(early),
        points_figure(late),
        p_value(p)
    );
    Some(Doubt { about: About::Trend, text })
}

/// Returns the difference in the earlier and in the later half of the trials of a case. Both arms are split at the same
/// trial number, because a run starts the trials with one number at the same time. Trials without a score do not move the
/// split. `None` if an arm has no score in a half.
fn halves(case: &Paired<'_>) -> Option<(f64, f64)> {
    let both = case.old.numbered.iter().chain(&case.new.numbered);
    let numbers: BTreeSet<u32> = both.filter_map(|(number, score)| score.map(|_| *number)).collect();
    let middle = *numbers.iter().nth(numbers.len() / 2)?;
    let score = |trials: &CaseTrials, is_early: bool| {
        let half = trials.numbered.iter().filter(|(number, _)| (*number < middle) == is_early);
        means::mean(&half.filter_map(|(_, score)| *score).collect::<Vec<_>>())
    };
    let difference = |is_early: bool| Some(score(case.new, is_early)? - score(case.old, is_early)?);
    Some((difference(true)?, difference(false)?))
}
