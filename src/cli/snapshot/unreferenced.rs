//! Finds snapshots without a reference: from the folders of cases, and further ones from a complete run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::trials::Placed;
use crate::case::Case;
use crate::cli::{arguments_of_run, inputs};
use crate::harness::catalog::Catalog;
use crate::ids::{TrialRecord, trials_by_case};
use crate::run::RunRecord;
use crate::snapshot::set::{Accepted, same_case};
use crate::snapshot::store;

/// A snapshot without a reference.
#[derive(Debug, Serialize)]
pub struct Unreferenced {
    #[serde(skip)]
    path: PathBuf,
    pub file: String,
    /// The reason.
    pub why: String,
}

impl Unreferenced {
    /// Returns a sentence for a report.
    pub fn sentence(&self) -> String {
        format!("a snapshot is unreferenced: {}: {}", self.file, self.why)
    }
}

/// Returns the unreferenced snapshots below the folders of a run's cases, except those of the run's cells.
pub fn of_run(record: &RunRecord, cases: &HashMap<String, Arc<Case>>, placed: &[Placed]) -> Vec<Unreferenced> {
    // Snapshots of a deleted case may remain beside it.
    let gone = record.cases.iter().filter(|it| !cases.contains_key(&it.id)).filter_map(|it| it.path.parent());
    let roots: BTreeSet<PathBuf> =
        cases.values().map(|case| case.cases_root.clone()).chain(gone.map(Path::to_path_buf)).collect();
    let known = KnownCells::new(record, cases);
    let shown = |path: &PathBuf| crate::paths::shown(path).display().to_string();
    let found =
        roots.iter().flat_map(|root| store::unreferenced(root, &|case, accepted| known.why_not(case, accepted)));
    let mut found: Vec<Unreferenced> =
        found.map(|(path, why)| Unreferenced { file: shown(&path), path, why }).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|one, other| one.path == other.path);
    let placed: HashSet<&Path> = placed.iter().map(|placed| placed.file.as_path()).collect();
    found.retain(|it| !placed.contains(&*it.path));
    found
}

struct KnownCells<'a> {
    record: &'a RunRecord,
    /// Ids of the run's cases by their files.
    ids: HashMap<&'a Path, &'a str>,
    /// The run's trials by their cases.
    trials: HashMap<&'a str, Vec<&'a TrialRecord>>,
    catalog: Option<Catalog>,
    /// True if the run includes everything that its cases request.
    whole: bool,
}

impl<'a> KnownCells<'a> {
    fn new(record: &'a RunRecord, cases: &'a HashMap<String, Arc<Case>>) -> Self {
        let ids = cases.iter().map(|(id, case)| (case.file.as_path(), id.as_str())).collect();
        let catalog = inputs::catalog(&[]).ok().map(|(catalog, _)| catalog);
        let derived = record.derived_from.is_some();
        let whole = !derived && arguments_of_run(&record.argv).is_some_and(|args| args.is_whole());
        Self { record, ids, trials: trials_by_case(&record.trials), catalog, whole }
    }

    /// Returns the reason why no cell can refer to a snapshot beside a case.
    fn why_not(&self, case: &Path, accepted: &Accepted) -> Option<String> {
        let harness = accepted.id.harness.as_str();
        let is_known = self.record.harnesses.iter().any(|it| it.name == harness)
            || self.catalog.as_ref().is_none_or(|catalog| catalog.get(harness).is_ok());
        if !is_known {
            return Some(format!("no harness is named `{harness}`"));
        }
        // The id of a case that the run left out is unknown.
        let id = *self.ids.get(case)?;
        if !same_case(&accepted.id.case, id) {
            return Some(format!("it was accepted for the case `{}`, but is beside `{id}`", accepted.id.case));
        }
        let of_case = self.trials.get(id).map(Vec::as_slice).unwrap_or_default();
        let cells = || of_case.iter().filter(|trial| trial.harness == harness);
        // A run shows nothing about the arms of an experiment that it was not made from.
        let models = accepted.id.variant.is_none() && self.whole && cells().next().is_some();
        let model = accepted.id.model.as_deref().filter(|_| models)?;
        let is_asked = cells().any(|trial| trial.model.as_deref() == Some(model));
        (!is_asked).then(|| format!("the run does not request model `{model}` from `{harness}`"))
    }
}
