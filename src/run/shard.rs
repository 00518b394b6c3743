//! Shards: the parts of one plan that several runs play, each run one part.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{CaseRecord, RunRecord};
use crate::ids::TrialRecord;

/// A part of a plan: number `k` of `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shard {
    /// Number of the part, from 1.
    pub k: u32,
    /// The number of parts.
    pub n: u32,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.k, self.n)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((k, n)) if 0 < k && k <= n => Ok(Self { k, n }),
            _ => Err(format!("`{text}` is not K/N with 1 ≤ K ≤ N, such as 1/4")),
        }
    }
}

impl Shard {
    /// Returns the shard that plays the case with this number in the plan, from 0. All cells of a case belong to one
    /// shard, so that a verdict of a cell or a case needs one run only.
    pub fn of_case(self, number: usize) -> Self {
        Self { k: u32::try_from(number % self.n.max(1) as usize).unwrap_or_default() + 1, ..self }
    }

    /// Returns the trials of this shard, selected from the trials of the whole plan.
    pub fn own(self, trials: &[TrialRecord]) -> Vec<TrialRecord> {
        let cases = self.own_cases(trials);
        trials.iter().filter(|trial| cases.contains(&*trial.case)).cloned().collect()
    }

    fn own_cases(self, trials: &[TrialRecord]) -> HashSet<String> {
        let cases = in_order(trials).into_iter().enumerate();
        cases.filter(|(number, _)| self.of_case(*number) == self).map(|(_, id)| id.to_owned()).collect()
    }
}

/// Returns the ids of the planned cases, in the order of the plan.
pub fn in_order(trials: &[TrialRecord]) -> Vec<&str> {
    let mut seen = HashSet::new();
    trials.iter().map(|trial| &*trial.case).filter(|case| seen.insert(*case)).collect()
}

/// The part of a plan that other shards run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Elsewhere {
    cases: Vec<CaseRecord>,
    trials: Vec<TrialRecord>,
    /// The ids of the cases of the whole plan: in the order of `cases`, and in that of `trials`.
    orders: (Vec<String>, Vec<String>),
}

impl RunRecord {
    /// Reduces the record of a whole plan to the part of a shard. The rest stays in `elsewhere`.
    #[must_use]
    pub fn played_by(mut self, shard: Shard) -> Self {
        let own = shard.own_cases(&self.trials);
        let owned = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect();
        let by_case: Vec<String> = self.cases.iter().map(|case| case.id.clone()).collect();
        let by_trial = owned(in_order(&self.trials));
        let (cases, other_cases) = self.cases.into_iter().partition(|case| own.contains(&case.id));
        let (trials, other_trials) = self.trials.into_iter().partition(|trial| own.contains(&trial.case));
        (self.cases, self.trials) = (cases, trials);
        self.elsewhere = Elsewhere { cases: other_cases, trials: other_trials, orders: (by_case, by_trial) };
        self.shard = Some(shard);
        self
    }

    /// Returns the record of the whole plan, as written to `run.json`.
    #[must_use]
    pub fn whole(mut self) -> Self {
        let Elsewhere { cases, trials, orders: (by_case, by_trial) } = std::mem::take(&mut self.elsewhere);
        self.cases.extend(cases);
        let places = places_of(&by_case);
        self.cases.sort_by_key(|case| places.get(&*case.id));
        self.trials.extend(trials);
        let places = places_of(&by_trial);
        self.trials.sort_by_key(|trial| places.get(&*trial.case));
        self
    }
}

fn places_of(order: &[String]) -> HashMap<&str, usize> {
    order.iter().enumerate().map(|(place, id)| (&**id, place)).collect()
}
