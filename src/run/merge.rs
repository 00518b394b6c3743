//! Merges the records of shards into the record of the whole plan, or reports the cells that prevent it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shard::Shard;
use super::{ArmRecord, CaseRecord, RunError, RunOptions, RunRecord, parsed};
use crate::case::digest::is_same;
use crate::ids::{CellId, TrialRecord};
use crate::regular;
use crate::snapshot::mode::SnapshotMode;
use crate::text::{plural, some_of};

pub mod folder;
pub mod replaced;

/// The name of the file in a merged run that names its shards.
pub const FILE: &str = "merged.json";

/// The maximum number of cells that an error names.
const MAX_NAMED_CELLS: usize = 50;

/// Options that may differ between the shards of a run, because no verdict depends on them.
const MAY_DIFFER: [&str; 6] = ["jobs", "seed", "max_cost", "max_time", "fail_fast", "snapshot"];

/// `merged.json`: the shards that a run was merged from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedFrom {
    /// The shards, by number.
    pub shards: Vec<MergedShard>,
}

/// A shard of a merged run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MergedShard {
    /// Id of the shard's run.
    pub run: String,
    /// The part of the plan.
    pub shard: Shard,
}

impl MergedFrom {
    /// Reads the shards of a run. Returns `None` if the run was not merged.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn of(run: &Path) -> Result<Option<Self>, RunError> {
        let path = run.join(FILE);
        match regular::read_own(&path) {
            Ok(text) => parsed(&path, &text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RunError::io("read", &path)(error)),
        }
    }

    /// Returns true if the run is one of the shards.
    fn names(&self, run: &str) -> bool {
        self.shards.iter().any(|shard| shard.run == run)
    }

    /// Returns true if a run can have been merged from these shards: it is a whole plan, and every known shard is a
    /// shard of the same plan. The check is needed because an agent can write such a file into the folder of its own
    /// run, and must not hide a run with it.
    pub fn is_true_of(&self, record: &RunRecord, known: &HashMap<&str, &RunRecord>) -> bool {
        let numbers: BTreeSet<u32> = self.shards.iter().map(|part| part.shard.k).collect();
        let has_all = |n: u32| self.shards.iter().all(|part| part.shard.n == n) && numbers.len() == n as usize;
        let is_complete = self.shards.first().is_some_and(|part| has_all(part.shard.n));
        let own: BTreeSet<_> = record.trials.iter().map(TrialRecord::id).collect();
        let digests: BTreeMap<_, _> = record.cases.iter().map(|case| (&case.id, &case.digest)).collect();
        // A resumed run may have more trials than its shards.
        let is_its_shard = |part: &MergedShard, shard: &RunRecord| {
            shard.shard == Some(part.shard)
                && shard.trials.iter().all(|trial| own.contains(&trial.id()))
                && shard.cases.iter().all(|case| digests.get(&case.id).is_some_and(|own| is_same(own, &case.digest)))
        };
        is_complete
            && record.shard.is_none()
            && record.derived_from.is_none()
            && self.shards.len() == numbers.len()
            && self.shards.iter().all(|part| known.get(&*part.run).is_none_or(|shard| is_its_shard(part, shard)))
    }
}

/// The reason why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A run plays a whole plan.
    #[error("run {run} is not a shard: it was not run with --shard K/N; merge takes only shards")]
    NoShard { run: String },
    /// A run was made from another run.
    #[error("run {run} was made from run {from}; merge the shards that ran the trials")]
    Derived {
        run: String,
        /// The origin.
        from: String,
    },
    /// The plans have different numbers of shards.
    #[error(
        "run {run} is shard {shard}, and run {other} is shard {of_other}; merge only runs with the same number of shards"
    )]
    OtherNumber {
        run: String,
        shard: Shard,
        /// The first run.
        other: String,
        of_other: Shard,
    },
    /// A shard is given twice.
    #[error("shard {shard} is given twice, as run {run} and run {other}; both contain {}", named(.cells))]
    Twice {
        shard: Shard,
        run: String,
        /// The other run.
        other: String,
        /// The cells of the shard.
        cells: Vec<CellId>,
    },
    /// A shard is missing.
    #[error("{} to get these cells: {}", merge_missing(.shards), named(.cells))]
    Missing {
        /// The missing shards.
        shards: Vec<Shard>,
        /// The cells of the missing shards.
        cells: Vec<CellId>,
    },
    /// The shards were run with other inputs.
    #[error("run {run} and run {other} have other inputs: {what}; run the shards again with the same inputs")]
    OtherInputs {
        run: String,
        /// The first run.
        other: String,
        /// The differences, and the cells that they concern.
        what: String,
    },
}

/// Returns the record of the run that the shards make up: as if `--shard` had not been given. The id is that of the
/// first shard, and the start that of the last.
///
/// # Errors
/// Returns an error if a shard is missing, is given twice, or was run with other inputs.
pub fn merged(shards: &[RunRecord]) -> Result<RunRecord, MergeError> {
    let mut by_number: BTreeMap<Shard, &RunRecord> = BTreeMap::new();
    let Some(first) = shards.first() else { return Err(MergeError::Missing { shards: Vec::new(), cells: Vec::new() }) };
    let of_first = shard_of(first)?;
    let whole = first.clone().whole();
    for record in shards {
        let shard = shard_of(record)?;
        if shard.n != of_first.n {
            let (run, other) = (record.run.clone(), first.run.clone());
            return Err(MergeError::OtherNumber { run, shard, other, of_other: of_first });
        }
        check_inputs(&record.clone().whole(), &whole)?;
        if let Some(other) = by_number.insert(shard, record) {
            let (run, other) = (record.run.clone(), other.run.clone());
            return Err(MergeError::Twice { shard, run, other, cells: cells(&record.trials) });
        }
    }
    check_complete(&whole, of_first, &by_number)?;
    // The merged run is newer than its shards, wherever runs are sorted.
    let started = shards.iter().map(|record| &record.started).max().cloned().unwrap_or_default();
    let lowest = by_number.into_values().next().unwrap_or(first);
    let options = RunOptions { snapshot: strictest_snapshots(shards), ..lowest.options.clone() };
    let evals = versions(shards);
    let label = lowest.label.clone().filter(|_| shards.iter().all(|record| record.label == lowest.label));
    let arms = whole.arms.iter().map(|arm| with_all_doubts(arm.clone(), shards)).collect();
    Ok(RunRecord {
        started,
        label,
        arms,
        argv: without_shard(&lowest.argv),
        options,
        evals,
        manual: shards.iter().any(|record| record.manual),
        shard: None,
        replaces: None,
        ..whole
    })
}

/// Returns an arm with what any of the shards records about it: an older version records no cases in which arms are the same or
/// lack a skill.
fn with_all_doubts(mut arm: ArmRecord, shards: &[RunRecord]) -> ArmRecord {
    for of_shard in shards.iter().flat_map(|record| &record.arms).filter(|of_shard| of_shard.name == arm.name) {
        let both = [(&mut arm.same_as, &of_shard.same_as), (&mut arm.lacks_skills, &of_shard.lacks_skills)];
        for (own, others) in both {
            for (name, cases) in others {
                own.entry(name.clone()).or_default().extend(cases.iter().cloned());
            }
        }
    }
    arm
}

fn shard_of(record: &RunRecord) -> Result<Shard, MergeError> {
    let run = record.run.clone();
    match (&record.derived_from, record.shard) {
        (Some(from), _) => Err(MergeError::Derived { run, from: from.clone() }),
        (None, Some(shard)) if !record.graded => Ok(shard),
        (None, _) => Err(MergeError::NoShard { run }),
    }
}

/// Checks that every case of the plan belongs to one of the shards.
fn check_complete(whole: &RunRecord, any: Shard, given: &BTreeMap<Shard, &RunRecord>) -> Result<(), MergeError> {
    let (mut shards, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for (number, case) in super::shard::in_order(&whole.trials).into_iter().enumerate() {
        let shard = any.of_case(number);
        if !given.contains_key(&shard) {
            shards.insert(shard);
            missing.insert(case);
        }
    }
    if shards.is_empty() {
        return Ok(());
    }
    let mut cells = cells(&whole.trials);
    cells.retain(|cell| missing.contains(&*cell.case));
    Err(MergeError::Missing { shards: shards.into_iter().collect(), cells })
}

/// Returns true if two runs, given with their whole plans, are shards of the same plan, which can be merged unless they are the
/// same shard.
pub fn is_same_plan(one: &RunRecord, other: &RunRecord) -> bool {
    one.shard.map(|shard| shard.n) == other.shard.map(|shard| shard.n) && check_inputs(one, other).is_ok()
}

/// Checks that two shards, given with their whole plans, have the same inputs.
fn check_inputs(this: &RunRecord, other: &RunRecord) -> Result<(), MergeError> {
    let mut what = Vec::new();
    let mut concerned = BTreeSet::new();
    // Another version may have resumed a shard: the merged run names each version, as a resumed run does.
    if begun_by(this) != begun_by(other) {
        what.push(format!("version {} and {} of evals", this.evals, other.evals));
    }
    for (name, of_this, of_other) in
        pairs(this.cases.iter().map(|case| (&*case.id, case)), other.cases.iter().map(|case| (&*case.id, case)))
    {
        if of_this.map(inputs_of) != of_other.map(inputs_of) {
            what.push(difference("case", name, of_this.is_some(), of_other.is_some()));
            concerned.insert(name.to_owned());
        }
    }
    let harness = |record: &RunRecord| -> BTreeMap<String, String> {
        record.harnesses.iter().map(|it| (it.name.clone(), it.digest.clone())).collect()
    };
    let arm = |record: &RunRecord| -> BTreeMap<String, String> {
        record.arms.iter().map(|it| (it.name.clone(), it.digest.clone())).collect()
    };
    for (kind, of_this, of_other) in [("harness", harness(this), harness(other)), ("variant", arm(this), arm(other))] {
        let both = pairs(
            of_this.iter().map(|(name, digest)| (&**name, digest)),
            of_other.iter().map(|(name, digest)| (&**name, digest)),
        );
        for (name, of_this, of_other) in both.into_iter().filter(|(_, this, other)| this != other) {
            what.push(difference(kind, name, of_this.is_some(), of_other.is_some()));
            let is_meant = |trial: &&TrialRecord| trial.harness == name || trial.arm_of().variant == Some(name);
            concerned.extend(this.trials.iter().filter(is_meant).map(|trial| trial.case.clone()));
        }
    }
    let options = (options_of(this), options_of(other));
    for (key, of_this, of_other) in pairs(
        options.0.iter().map(|(key, value)| (&**key, value)),
        options.1.iter().map(|(key, value)| (&**key, value)),
    ) {
        if of_this != of_other {
            what.push(format!("the option `{key}`"));
        }
    }
    if this.prices.as_ref().map(|it| &it.digest) != other.prices.as_ref().map(|it| &it.digest) {
        what.push("the price table".to_owned());
    }
    if this.experiment != other.experiment {
        what.push("the experiment".to_owned());
    }
    let different: Vec<&TrialRecord> = {
        let known: BTreeMap<_, _> = other.trials.iter().map(|trial| (trial.id(), trial)).collect();
        let mine: BTreeSet<_> = this.trials.iter().map(TrialRecord::id).collect();
        let changed = this.trials.iter().filter(|trial| known.get(&trial.id()) != Some(trial));
        changed.chain(other.trials.iter().filter(|trial| !mine.contains(&trial.id()))).collect()
    };
    if !different.is_empty() {
        what.push(format!("the plan of {}", plural(different.len(), "trial")));
        concerned.extend(different.iter().map(|trial| trial.case.clone()));
    }
    if what.is_empty() {
        return Ok(());
    }
    let everything = concerned.is_empty();
    let mut all = cells(&this.trials);
    all.extend(cells(&other.trials).into_iter().filter(|cell| !this.trials.iter().any(|it| it.cell() == *cell)));
    all.retain(|cell| everything || concerned.contains(&cell.case));
    let what = format!("{}; concerned: {}", what.join(", "), named(&all));
    Err(MergeError::OtherInputs { run: this.run.clone(), other: other.run.clone(), what })
}

/// Returns the inputs on which the verdicts of a case depend: everything except the location of its files.
fn inputs_of(case: &CaseRecord) -> CaseRecord {
    let folder = case.path.parent().unwrap_or(Path::new(""));
    let beside = |path: &PathBuf| path.strip_prefix(folder).map_or_else(|_| path.clone(), Path::to_owned);
    let judged_by = case.judged_by.iter().map(|(path, digest)| (beside(path), digest.clone())).collect();
    CaseRecord { path: PathBuf::new(), graders: Vec::new(), judged_by, ..case.clone() }
}

fn options_of(record: &RunRecord) -> BTreeMap<String, Value> {
    let Ok(Value::Object(options)) = serde_json::to_value(&record.options) else { return BTreeMap::new() };
    options.into_iter().filter(|(key, _)| !MAY_DIFFER.contains(&key.as_str())).collect()
}

/// Returns the use of snapshots by shards that may be merged: the one that finds most differences, if they differ.
/// What one shard accepts must not be accepted for the others, so `update` counts only if it is the use of all.
fn strictest_snapshots(shards: &[RunRecord]) -> Option<SnapshotMode> {
    let strictness = |mode: &Option<SnapshotMode>| match mode {
        Some(SnapshotMode::Off) => 0,
        None => 1,
        Some(SnapshotMode::Check) => 2,
        Some(SnapshotMode::Update) => 3,
    };
    let all = || shards.iter().map(|record| record.options.snapshot);
    let strictest = all().max_by_key(strictness).flatten();
    let is_of_all = all().all(|mode| mode == strictest);
    strictest.map(|mode| if mode == SnapshotMode::Update && !is_of_all { SnapshotMode::Check } else { mode })
}

/// Returns the version that began a run.
fn begun_by(record: &RunRecord) -> &str {
    record.evals.split(", ").next().unwrap_or_default()
}

/// Returns the versions that played trials of the shards, each once, in the form of `run.json`.
fn versions(shards: &[RunRecord]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for version in shards.iter().flat_map(|record| record.evals.split(", ")) {
        if !all.contains(&version) {
            all.push(version);
        }
    }
    all.join(", ")
}

/// Returns the values of two lists by name.
fn pairs<'a, T>(
    these: impl Iterator<Item = (&'a str, T)>,
    others: impl Iterator<Item = (&'a str, T)>,
) -> Vec<(&'a str, Option<T>, Option<T>)> {
    let mut all: BTreeMap<&str, (Option<T>, Option<T>)> = BTreeMap::new();
    for (name, value) in these {
        all.entry(name).or_insert((None, None)).0 = Some(value);
    }
    for (name, value) in others {
        all.entry(name).or_insert((None, None)).1 = Some(value);
    }
    all.into_iter().map(|(name, (this, other))| (name, this, other)).collect()
}

fn difference(kind: &str, name: &str, in_this: bool, in_other: bool) -> String {
    match (in_this, in_other) {
        (true, true) => format!("the {kind} `{name}` differs"),
        (true, false) => format!("the {kind} `{name}` is only in the first of the two"),
        _ => format!("the {kind} `{name}` is only in the second of the two"),
    }
}

/// Returns the cells of trials, each once, in the order of the plan.
fn cells(trials: &[TrialRecord]) -> Vec<CellId> {
    let mut cells: Vec<CellId> = trials.iter().map(TrialRecord::cell).collect();
    cells.dedup();
    cells
}

fn named(cells: &[CellId]) -> String {
    some_of(cells, MAX_NAMED_CELLS)
}

fn merge_missing(shards: &[Shard]) -> String {
    let names = some_of(shards, MAX_NAMED_CELLS);
    match shards.len() {
        1 => format!("shard {names} is missing; merge it"),
        _ => format!("shards {names} are missing; merge them"),
    }
}

/// Returns a command line without `--shard`.
fn without_shard(argv: &[String]) -> Vec<String> {
    let mut left = Vec::new();
    let mut words = argv.iter();
    while let Some(word) = words.next() {
        match &**word {
            // Everything after it is a path.
            "--" => {
                left.push(word.clone());
                left.extend(words.by_ref().cloned());
            }
            "--shard" => drop(words.next()),
            other if other.starts_with("--shard=") => {}
            _ => left.push(word.clone()),
        }
    }
    left
}
