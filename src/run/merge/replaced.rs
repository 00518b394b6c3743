//! Finds the runs that merged runs replace: every result of such a run is in a merged run, too.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::MergedFrom;
use crate::ids::TrialId;
use crate::run::folder::RunFolder;
use crate::run::journal::TrialState;
use crate::run::{RunError, RunRecord};

/// The states of the trials of a run, from its journal.
pub(in crate::run) type States = HashMap<TrialId, TrialState>;

/// The merged runs among the runs of a folder.
#[derive(Debug, Default)]
pub struct Merges<'a> {
    replaced: HashSet<&'a Path>,
    outdated: HashSet<&'a Path>,
    /// The group of each merged run and of each shard, by run.
    groups: HashMap<String, String>,
}

/// A merged run, or a shard of one.
struct Member<'a> {
    path: &'a Path,
    run: &'a str,
    /// The shards. `None` if the run was not merged.
    from: Option<MergedFrom>,
    /// The states of the trials whose folders exist: a result without the folder is no evidence.
    states: States,
    traces: HashSet<TrialId>,
}

impl<'a> Merges<'a> {
    /// Finds the merged runs among runs, the newest of which comes first. Only the journals of merged runs and their shards
    /// are read; a run whose journal cannot be read neither replaces another one nor is replaced.
    pub fn of(runs: &'a [(PathBuf, RunRecord)]) -> Self {
        let known: HashMap<&str, &RunRecord> = runs.iter().map(|(_, record)| (&*record.run, record)).collect();
        let mut merges = Self::default();
        let mut found: HashMap<&Path, MergedFrom> = HashMap::new();
        for (path, record) in runs {
            let Some(from) = MergedFrom::of(path).ok().flatten() else { continue };
            merges.group(record, &from);
            if from.is_true_of(record, &known) {
                found.insert(path, from);
            }
        }
        let shards: HashSet<String> =
            found.values().flat_map(|from| &from.shards).map(|shard| shard.run.clone()).collect();
        let mut members: Vec<Member<'a>> = Vec::new();
        for (path, record) in runs {
            let from = found.remove(path.as_path());
            if from.is_none() && !shards.contains(&record.run) {
                continue;
            }
            let folder = RunFolder::open(path);
            let Ok(mut states) = folder.states() else { continue };
            states.retain(|id, _| folder.stored_trial(id).is_ok_and(|at| at.is_dir()));
            let has_trace = |(id, state): &(&TrialId, &TrialState)| {
                let attempt = Path::new("attempts").join(state.attempt.to_string());
                let is_in =
                    |at: &Path| at.join("trace.jsonl").is_file() || at.join(&attempt).join("trace.jsonl").is_file();
                folder.stored_trial(id).is_ok_and(|at| is_in(&at))
            };
            let traces = states.iter().filter(has_trace).map(|(id, _)| id.clone()).collect();
            members.push(Member { path, run: &record.run, from, states, traces });
        }
        for (place, merged) in members.iter().enumerate() {
            let Some(from) = &merged.from else { continue };
            if merged.is_outdated(from, &members) {
                merges.outdated.insert(merged.path);
                continue;
            }
            let replaced = members.iter().enumerate().filter(|(of_other, other)| {
                let is_older = place < *of_other;
                merged.replaces(from, other, is_older)
            });
            merges.replaced.extend(replaced.map(|(_, other)| other.path));
        }
        merges
    }

    /// Returns true if every result of the run in this folder is in a merged run, too: the run is a shard, or another merge
    /// of the same shards. Of merged runs with the same results, the newest replaces the others.
    pub fn replaces(&self, path: &Path) -> bool {
        self.replaced.contains(path)
    }

    /// Returns true if the run in this folder was merged before its shards got further results: the shards in the folder of
    /// runs hold all its results and more. It replaces no run.
    pub fn is_outdated(&self, path: &Path) -> bool {
        self.outdated.contains(path)
    }

    /// Puts shards that belong to no merged run into groups of one plan each, so that they can still be merged. If there are
    /// several runs of a shard, the newest shards of the plan are a group.
    pub fn group_shards(&mut self, runs: &[(PathBuf, RunRecord)]) {
        let mut plans: Vec<(RunRecord, HashSet<u32>)> = Vec::new();
        for (_, record) in runs {
            let is_own = record.derived_from.is_none() && !record.graded && !self.groups.contains_key(&record.run);
            let Some(shard) = record.shard.filter(|_| is_own) else { continue };
            let whole = record.clone().whole();
            let lacks_it = |(newest, numbers): &&mut (RunRecord, HashSet<u32>)| {
                !numbers.contains(&shard.k) && super::is_same_plan(newest, &whole)
            };
            let plan = plans.iter_mut().find(lacks_it);
            let group = match plan {
                Some((newest, numbers)) => {
                    numbers.insert(shard.k);
                    newest.run.clone()
                }
                None => {
                    plans.push((whole, HashSet::from([shard.k])));
                    record.run.clone()
                }
            };
            self.groups.insert(record.run.clone(), group);
        }
    }

    /// Returns the group of a run. A merged run and its shards have the same group, and any other run has its own, unless
    /// [`Merges::group_shards`] put it into one.
    pub fn group_of<'b>(&'b self, run: &'b str) -> &'b str {
        self.groups.get(run).map_or(run, String::as_str)
    }

    /// Puts a merged run and its shards into one group. A `merged.json` that an agent wrote can only make `evals prune` keep
    /// more runs, so it is not checked here.
    fn group(&mut self, record: &RunRecord, from: &MergedFrom) {
        let members = || std::iter::once(&record.run).chain(from.shards.iter().map(|shard| &shard.run));
        let known = members().find_map(|run| self.groups.get(run)).cloned();
        let group = known.unwrap_or_else(|| record.run.clone());
        for run in members() {
            self.groups.entry(run.clone()).or_insert_with(|| group.clone());
        }
    }
}

impl Member<'_> {
    /// Returns true if the shards of this merged run together hold all its results, and one of them holds more.
    fn is_outdated(&self, from: &MergedFrom, members: &[Member<'_>]) -> bool {
        let shards: Vec<&States> = members.iter().filter(|it| from.names(it.run)).map(|it| &it.states).collect();
        hold_all(&shards, &self.states) && shards.iter().any(|shard| !hold_all(&[&self.states], shard))
    }

    /// Returns true if this merged run replaces another run.
    fn replaces(&self, from: &MergedFrom, other: &Member<'_>, is_older: bool) -> bool {
        // A copy of a run has its ID.
        let holds_all = hold_all(&[&self.states], &other.states) && other.traces.is_subset(&self.traces);
        if other.run == self.run || !holds_all {
            return false;
        }
        let is_of_same_shards =
            || other.from.as_ref().is_some_and(|it| it.shards.iter().any(|shard| from.names(&shard.run)));
        from.names(other.run) || (is_of_same_shards() && (is_older || !hold_all(&[&other.states], &self.states)))
    }
}

/// Returns true if every result of a run, also of an earlier attempt, is in one of the holders. A result without a digest, as
/// in runs of older versions, is taken to be in none.
pub(in crate::run) fn hold_all(holders: &[&States], run: &States) -> bool {
    run.iter().all(|(id, state)| {
        let holds = |holder: &&States, digest: &Arc<str>| {
            holder.get(id).is_some_and(|of_holder| of_holder.distrust.is_none() && of_holder.judged.contains(digest))
        };
        let is_known = state.finished.is_none() || !state.judged.is_empty();
        is_known && state.judged.iter().all(|digest| holders.iter().any(|holder| holds(holder, digest)))
    })
}

/// Returns the digest of the result of each finished trial. The map is empty if a digest is unknown, as in runs of older
/// versions.
///
/// # Errors
/// Returns an error if the journal cannot be read.
pub fn result_digests(folder: &RunFolder) -> Result<HashMap<TrialId, Arc<str>>, RunError> {
    let finished = folder.states()?.into_iter().filter(|(_, state)| state.finished.is_some());
    let known: Option<HashMap<_, _>> =
        finished.map(|(id, state)| if state.distrust.is_some() { None } else { Some((id, state.digest?)) }).collect();
    Ok(known.unwrap_or_default())
}
