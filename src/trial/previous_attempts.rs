//! Sums up the earlier attempts of a trial: they count in no score, but they were paid for.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::adapter;
use crate::grade::judge_record::EarlierUsage;
use crate::harness::Manifest;
use crate::regular;
use crate::result::{DiscardedAttempts, EarlierAttempts, TrialResult};
use crate::run::journal::TrialState;
use crate::run::read_json;

/// The attempts before another one, as they were before it started: its agent may remove their folders.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PreviousAttempts {
    /// Their sum. `None` if there are none.
    pub sum: Option<EarlierAttempts>,
    /// The number of their folders.
    folders: usize,
}

/// The models that the engine may have called in an attempt that has no result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MayAsk {
    /// True if a grader of the case calls a judge model.
    pub judges: bool,
    /// True if a model answers the permission requests of the agent.
    pub policy: bool,
}

impl PreviousAttempts {
    /// Reads the attempts before this one from their folders; other folders beside them are ignored. `finished` is the number of
    /// these attempts that finished by the journal: if fewer have a record, the others are missing. `manifest` is that of the
    /// harness, and `may_ask` is about the attempts without a result.
    pub fn before(trial: &Path, attempt: u32, finished: usize, manifest: &Manifest, may_ask: MayAsk) -> Self {
        let folders = folders_before(trial, attempt);
        let (mut sum, mut recorded) = (EarlierAttempts::default(), 0);
        // The result of an attempt has the figures of those before it, also if their folders were removed since.
        let with_carried = folders.iter().enumerate().rev().find_map(|(place, folder)| {
            let result: TrialResult = read_json(&folder.join("result.json")).ok()?;
            let earlier = result.earlier_attempts.filter(|earlier| earlier.count as usize >= place)?;
            Some((place, earlier))
        });
        let from = match with_carried {
            Some((place, earlier)) => {
                (sum, recorded) = (earlier, earlier.count);
                place
            }
            None => 0,
        };
        let later = folders.get(from..).unwrap_or_default();
        let has_result = |folder: &&PathBuf| folder.join("result.json").exists();
        recorded += u32::try_from(later.iter().filter(has_result).count()).unwrap_or(u32::MAX);
        if let Some(later) = sum_of(later.iter().cloned(), Some(manifest), may_ask) {
            sum = plus(sum, later);
        }
        // The folder of an attempt that finished may be left without its result.
        let lost = u32::try_from(finished).unwrap_or(u32::MAX).saturating_sub(recorded);
        let missing = lost.min(attempt.saturating_sub(1).saturating_sub(sum.count));
        sum.count += missing;
        sum.cost_unknown = sum.cost_unknown.saturating_add(missing).max(lost);
        sum.missing += missing;
        if missing > 0 {
            add_unknown(&mut sum, may_ask);
        }
        Self { sum: (sum.count > 0).then_some(sum), folders: folders.len() }
    }

    /// Marks the attempts of a trial that had finished and runs again, and adds which of them belong to results that were
    /// discarded. `state` is that of the trial in the journal.
    #[must_use]
    pub fn run_again(self, trial: &Path, state: &TrialState, manifest: &Manifest, may_ask: MayAsk) -> Self {
        let Some(mut sum) = self.sum else { return self };
        sum.ran_later = true;
        if state.discarded > 0 {
            let discarded = state.discarded.saturating_add(1);
            let found = Self::before(trial, discarded, state.judged_before, manifest, may_ask).sum;
            // If folders were removed, a result that was written before has the figures.
            let is_better =
                |it: &EarlierAttempts| it.missing == 0 || sum.discarded.is_none_or(|carried| carried.count < it.count);
            let found = found.filter(is_better).map(|it| DiscardedAttempts {
                count: it.count,
                last: state.discarded,
                cost_usd: it.cost_usd,
                cost_unknown: it.cost_unknown,
            });
            sum.discarded = found.or(sum.discarded);
        }
        Self { sum: Some(sum), ..self }
    }

    /// Returns true if folders of these attempts were removed since.
    pub(super) fn have_gone(&self, trial: &Path, attempt: u32) -> bool {
        self.folders > 0 && folders_before(trial, attempt).len() < self.folders
    }
}

/// Returns the folders of the attempts before this one, by their numbers.
fn folders_before(trial: &Path, attempt: u32) -> Vec<PathBuf> {
    let folders = (1..attempt).map(|number| trial.join("attempts").join(number.to_string()));
    folders.filter(|folder| folder.is_dir()).collect()
}

fn plus(one: EarlierAttempts, other: EarlierAttempts) -> EarlierAttempts {
    let costs = [one.cost_usd, other.cost_usd].into_iter().flatten();
    let (mut judges, mut policy) = (one.judges, one.policy);
    other.judges.iter().for_each(|usage| EarlierUsage::add_to(&mut judges, &usage.used()));
    other.policy.iter().for_each(|usage| EarlierUsage::add_to(&mut policy, &usage.used()));
    known(EarlierAttempts {
        count: one.count.saturating_add(other.count),
        cost_usd: costs.reduce(|one, other| one.max(0.0) + other.max(0.0)),
        cost_unknown: one.cost_unknown.saturating_add(other.cost_unknown),
        missing: one.missing.saturating_add(other.missing),
        judges,
        policy,
        discarded: one.discarded.or(other.discarded),
        ran_later: one.ran_later || other.ran_later,
    })
}

/// Returns a sum whose cost is unknown if it overflows.
fn known(mut sum: EarlierAttempts) -> EarlierAttempts {
    if sum.cost_usd.is_some_and(|cost| !cost.is_finite()) {
        sum.cost_usd = None;
        sum.cost_unknown += 1;
    }
    sum
}

/// Returns the attempts of a trial that no result includes, each with its number and folder: those after the attempt whose
/// result counts, or all if `counting` is 0. `started` is the number of attempts in the journal, or 0 if only the folders are
/// needed. `is_running` is true if an engine is making the last attempt, whose result will have its cost.
pub fn without_result(trial: &Path, counting: u32, started: u32, is_running: bool) -> Vec<(u32, PathBuf)> {
    let mut found = numbered(&trial.join("attempts"));
    found.retain(|(number, _)| *number > counting);
    // After an attempt that counts, a result in the folder of the trial is that of this attempt, or of a later one that has
    // ended since. If none counts, the result was discarded, or the attempt is tried again.
    let has_ended = trial.join("result.json").exists();
    let is_last_one_left = if counting == 0 { has_ended || !is_running } else { !has_ended && !is_running };
    if is_last_one_left && (has_ended || trial.join("wire.jsonl").exists()) {
        let number = found.last().map_or(counting, |(number, _)| *number).saturating_add(1).max(started);
        found.push((number, trial.to_owned()));
    }
    found
}

/// Returns the folders of attempts, sorted by their numbers. A number can be missing: an attempt that was interrupted before it
/// wrote anything has no folder.
fn numbered(attempts: &Path) -> Vec<(u32, PathBuf)> {
    // The target of a link is not an attempt.
    let listed = if attempts.is_symlink() { None } else { fs::read_dir(attempts).ok() };
    let folders = listed.into_iter().flatten().flatten();
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<(u32, PathBuf)> = folders
        .filter_map(|entry| {
            let name = entry.file_name();
            let number: u32 = name.to_str()?.parse().ok()?;
            (name.to_str() == Some(number.to_string().as_str())).then(|| (number, entry.path()))
        })
        .collect();
    found.sort();
    found
}

/// Returns the sum of attempts that no result includes, or `None` if nothing can have been spent. `manifest` is that of the
/// harness.
pub fn cost_of(attempts: &[(u32, PathBuf)], manifest: Option<&Manifest>) -> Option<EarlierAttempts> {
    let sum = sum_of(attempts.iter().map(|(_, folder)| folder.clone()), manifest, MayAsk::default());
    sum.filter(|sum| sum.cost_usd.is_some() || sum.cost_unknown > 0)
}

/// Adds that the usage of the models is unknown that the engine may have called in an attempt.
fn add_unknown(sum: &mut EarlierAttempts, MayAsk { judges, policy }: MayAsk) {
    if judges {
        EarlierUsage::add_unknown_to(&mut sum.judges);
    }
    if policy {
        EarlierUsage::add_unknown_to(&mut sum.policy);
    }
}

fn sum_of(
    attempts: impl Iterator<Item = PathBuf>,
    manifest: Option<&Manifest>,
    may_ask: MayAsk,
) -> Option<EarlierAttempts> {
    let mut sum = EarlierAttempts::default();
    for attempt in attempts {
        sum.count += 1;
        let result = read_json::<TrialResult>(&attempt.join("result.json"));
        result.iter().for_each(|result| sum.add_asked(result));
        match result {
            // The answers of a recording or a script cost nothing.
            Ok(result) if !result.was_paid() => {}
            Ok(result) => match result.metrics.cost() {
                // A negative cost is none: another program may have written the figure.
                Some(cost) => {
                    sum.cost_usd = Some(sum.cost_usd.unwrap_or(0.0) + cost.value().max(0.0));
                    sum.cost_unknown += u32::from(!cost.is_exact());
                }
                None => sum.cost_unknown += 1,
            },
            Err(_) => {
                let (known, is_unknown) = of_interrupted(&attempt, manifest);
                sum.cost_usd = known.map(|cost| sum.cost_usd.unwrap_or(0.0) + cost).or(sum.cost_usd);
                sum.cost_unknown += u32::from(is_unknown);
                // The trace is written before the graders call their judges.
                let is_graded = attempt.join("trace.jsonl").exists();
                add_unknown(
                    &mut sum,
                    MayAsk { judges: may_ask.judges && is_graded, policy: may_ask.policy && is_unknown },
                );
            }
        }
    }
    (sum.count > 0).then(|| known(sum))
}

/// Returns the cost that an attempt without a result had reported in US dollars, and true if it may have cost more. The
/// engine was interrupted or killed during the attempt, or the result is damaged. Without a line from its agent, nothing can
/// have been spent.
pub fn of_interrupted(attempt: &Path, manifest: Option<&Manifest>) -> (Option<f64>, bool) {
    let wire = attempt.join("wire.jsonl");
    let mut known = None;
    if let (Some(manifest), Ok(file)) = (manifest, regular::open_own(&wire)) {
        // The last line may be cut, which ends the reading.
        let _ = adapter::import_watched(manifest.adapter, manifest, true, BufReader::new(file), |_, _, translation| {
            known = translation.recorder().usage_total().cost_usd().map(crate::trace::amount::Amount::value);
            Ok(())
        });
    }
    (known, wire.exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::exchange::Source;
    use crate::ids::TrialRecord;
    use crate::verdict::Verdict;

    #[test]
    fn figures_of_removed_attempts_come_from_a_later_result_and_attempts_without_any_are_missing() {
        let trial = tempfile::tempdir().unwrap();
        let manifest = Manifest::bare(crate::harness::Adapter::OutputOnly);
        let before = |attempt, finished| {
            PreviousAttempts::before(trial.path(), attempt, finished, &manifest, MayAsk::default()).sum
        };
        assert_eq!(before(1, 0), None);
        // An attempt that was interrupted before it wrote anything has no folder, and cost nothing.
        assert_eq!(before(2, 0), None);
        let missing = before(3, 2).unwrap();
        assert_eq!((missing.count, missing.cost_usd, missing.cost_unknown, missing.missing), (2, None, 2, 2));
        let earlier = EarlierAttempts { count: 1, cost_usd: Some(5.0), ..EarlierAttempts::default() };
        let mut result = TrialResult::blank(&planned(), Verdict::Fail);
        result.earlier_attempts = Some(earlier);
        (result.metrics.measured_ms, result.metrics.cost_usd) = (Some(5), Some(0.5));
        let second = trial.path().join("attempts/2");
        std::fs::create_dir_all(&second).unwrap();
        std::fs::write(second.join("result.json"), serde_json::to_vec(&result).unwrap()).unwrap();
        let carried = before(3, 2).unwrap();
        assert_eq!((carried.count, carried.cost_usd, carried.cost_unknown, carried.missing), (2, Some(5.5), 0, 0));
        let state = PreviousAttempts::before(trial.path(), 3, 2, &manifest, MayAsk::default());
        assert!(!state.have_gone(trial.path(), 3));
        std::fs::remove_dir_all(trial.path().join("attempts")).unwrap();
        assert!(state.have_gone(trial.path(), 3));
    }

    #[test]
    fn discarded_attempts_are_known_though_their_folders_were_removed() {
        let trial = tempfile::tempdir().unwrap();
        let manifest = Manifest::bare(crate::harness::Adapter::OutputOnly);
        let folder = |number: u32| trial.path().join(format!("attempts/{number}"));
        let write = |number: u32, cost: f64, earlier_attempts| {
            let mut result = TrialResult { earlier_attempts, ..TrialResult::blank(&planned(), Verdict::Errored) };
            (result.metrics.measured_ms, result.metrics.cost_usd) = (Some(5), Some(cost));
            std::fs::create_dir_all(folder(number)).unwrap();
            std::fs::write(folder(number).join("result.json"), serde_json::to_vec(&result).unwrap()).unwrap();
        };
        let mut state = TrialState::default();
        (state.discarded, state.judged_before) = (1, 1);
        let before = |attempt, finished| {
            let may_ask = MayAsk::default();
            let previous = PreviousAttempts::before(trial.path(), attempt, finished, &manifest, may_ask);
            previous.run_again(trial.path(), &state, &manifest, may_ask).sum
        };
        assert_eq!(before(1, 0), None);
        write(1, 1.0, None);
        let second = before(2, 1);
        assert_eq!(second.map(|it| (it.count, it.ran_later, it.without_discarded())), Some((1, true, None)));
        write(2, 2.0, second);
        for is_removed in [false, true] {
            if is_removed {
                std::fs::remove_dir_all(folder(1)).unwrap();
            }
            let third = before(3, 2).unwrap();
            let discarded = third.discarded.unwrap();
            assert_eq!((third.count, third.cost_usd), (2, Some(3.0)), "{is_removed}");
            assert_eq!((discarded.count, discarded.last, discarded.cost_usd), (1, 1, Some(1.0)), "{is_removed}");
            let retried = third.without_discarded().unwrap();
            assert_eq!((retried.count, retried.cost_usd, retried.cost_unknown), (1, Some(2.0), 0), "{is_removed}");
        }
    }

    #[test]
    fn what_models_cost_in_an_attempt_without_a_result_is_unknown() {
        let trial = tempfile::tempdir().unwrap();
        let manifest = Manifest::bare(crate::harness::Adapter::OutputOnly);
        let may_ask = MayAsk { judges: true, policy: true };
        let before = || {
            let sum = PreviousAttempts::before(trial.path(), 2, 0, &manifest, may_ask).sum.unwrap();
            (sum.judges.is_some(), sum.policy.is_some(), sum.asked_cost().is_exact())
        };
        let first = trial.path().join("attempts/1");
        std::fs::create_dir_all(&first).unwrap();
        assert_eq!(before(), (false, false, true), "the agent had not begun");
        std::fs::write(first.join("wire.jsonl"), "").unwrap();
        assert_eq!(before(), (false, true, false));
        std::fs::write(first.join("trace.jsonl"), "").unwrap();
        assert_eq!(before(), (true, true, false));
        let missing = PreviousAttempts::before(&trial.path().join("none"), 2, 1, &manifest, may_ask).sum.unwrap();
        assert!(missing.judges.is_some() && !missing.asked_cost().is_exact());
    }

    fn planned() -> TrialRecord {
        TrialRecord::for_test("h", 1)
    }

    #[test]
    fn an_attempt_costs_what_was_paid_for_its_agent() {
        let trial = planned();
        let folder = tempfile::tempdir().unwrap();
        let attempts = [(Some(2.0), None), (Some(-1.0), None), (None, None), (Some(4.0), Some(Source::Cassette))];
        for (number, (cost_usd, model_from)) in (1..).zip(attempts) {
            let mut result = TrialResult { model_from, ..TrialResult::blank(&trial, Verdict::Fail) };
            (result.metrics.measured_ms, result.metrics.cost_usd) = (Some(5), cost_usd);
            let attempt = folder.path().join(format!("attempts/{number}"));
            std::fs::create_dir_all(&attempt).unwrap();
            std::fs::write(attempt.join("result.json"), serde_json::to_vec(&result).unwrap()).unwrap();
        }
        let folders = (1..=4).map(|number| folder.path().join(format!("attempts/{number}")));
        let sum = sum_of(folders, None, MayAsk::default()).unwrap();
        assert_eq!((sum.count, sum.cost_usd, sum.cost_unknown), (4, Some(2.0), 1));
        // What a running attempt has reported is not included.
        let left = |counting: u32, is_running: bool| without_result(folder.path(), counting, 0, is_running);
        assert_eq!(cost_of(&left(0, true), None), Some(sum));
        let numbers = |left: Vec<(u32, PathBuf)>| left.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
        assert_eq!(numbers(left(2, false)), [3, 4]);
        std::fs::write(folder.path().join("wire.jsonl"), "").unwrap();
        assert_eq!([numbers(left(2, true)), numbers(left(2, false))], [vec![3, 4], vec![3, 4, 5]]);
        let reported = serde_json::to_vec(&TrialResult::blank(&trial, Verdict::Fail)).unwrap();
        std::fs::write(folder.path().join("result.json"), reported).unwrap();
        assert_eq!(cost_of(&left(0, true), None).map(|all| (all.count, all.cost_unknown)), Some((5, 2)));
        assert_eq!([numbers(left(5, false)), numbers(left(2, false))], [vec![], vec![3, 4]]);
        // Attempts 5, 6 and 8 were interrupted before they wrote anything.
        std::fs::create_dir(folder.path().join("attempts/7")).unwrap();
        std::fs::remove_file(folder.path().join("result.json")).unwrap();
        assert_eq!(numbers(without_result(folder.path(), 3, 9, false)), [4, 7, 9]);
    }
}
