//! Finds the files of a run after its project was copied or moved with the run folder in it.

use std::path::{Path, PathBuf};

use super::{CaseRecord, RunRecord};
use crate::project;

/// Returns the project in which a run was made, if it is not the one of this command and some of the run's cases lie there. If the
/// run folder lies outside the project, it is the one around the cases.
pub fn other_project(record: &RunRecord) -> Option<PathBuf> {
    let holds_cases = |project: &Path| record.cases.iter().any(|case| case.path.starts_with(project));
    let project = match &record.project {
        Some(project) => project.clone(),
        None if holds_cases(project::root()) => return None,
        None => project::around(record.cases.first()?.path.parent()?)?,
    };
    (project != project::root() && project.is_dir() && holds_cases(&project)).then_some(project)
}

/// Uses the project of a run for the rest of the command: its named graders, manifests, prices and programs belong to its cases.
pub fn enter(record: &RunRecord) {
    if let Some(project) = other_project(record) {
        project::enter(&project);
    }
}

/// Keeps the project of a new run, with the place of the run folder in it, if the folder lies below the project: then both
/// are copied together. `runs` is the folder of runs.
pub(super) fn keep_if_around(runs: &Path, record: &mut RunRecord) {
    let folder = runs.canonicalize().map(|runs| runs.join(&record.run)).ok();
    let project = record.project.as_deref().and_then(|project| project.canonicalize().ok());
    record.place =
        project.zip(folder).and_then(|(project, folder)| Some(folder.strip_prefix(project).ok()?.to_owned()));
    record.project = record.project.take().filter(|_| record.place.is_some());
}

/// Replaces the paths of a run's files if its project was copied or moved after the run began. The original project may
/// still exist, with other cases.
pub(super) fn place(folder: &Path, record: &mut RunRecord) {
    let Some(from) = record.project.clone() else { return };
    let Some(to) = present(folder, &from, record) else { return };
    for case in &mut record.cases {
        move_case(case, &from, &to);
    }
    let moved = |path: &Path| moved(path, &from, &to);
    if let Some(file) = record.experiment.as_mut().and_then(|it| it.file.as_mut()) {
        *file = moved(file);
    }
    for arm in &mut record.arms {
        arm.sources = std::mem::take(&mut arm.sources).into_iter().map(|(path, it)| (moved(&path), it)).collect();
    }
    let of_harnesses = record.harnesses.iter_mut().map(|harness| &mut harness.origin);
    let of_prices = record.prices.iter_mut().filter_map(|prices| prices.origin.as_mut());
    for origin in of_harnesses.chain(of_prices).filter(|origin| Path::new(origin.as_str()).starts_with(&from)) {
        *origin = moved(Path::new(origin.as_str())).display().to_string();
    }
    (record.project, record.moved_from) = (Some(to), Some(from));
}

/// Returns the project that the run folder lies in now, at the place that it had in the project of the run. Returns `None`
/// if that is still the project of the run, if the folder has another place, or if the project has none of the cases.
fn present(folder: &Path, from: &Path, record: &RunRecord) -> Option<PathBuf> {
    let (place, real) = (record.place.as_deref()?, folder.canonicalize().ok()?);
    let to = real.ancestors().nth(place.components().count()).filter(|to| real == to.join(place))?;
    let is_here = |case: &CaseRecord| case.path.strip_prefix(from).is_ok_and(|path| to.join(path).is_file());
    (to != from && record.cases.iter().any(is_here)).then(|| to.to_owned())
}

/// Replaces one folder by another in the paths of a case and of the files that it is graded with.
pub fn move_case(case: &mut CaseRecord, from: &Path, to: &Path) {
    let moved = |path: &Path| moved(path, from, to);
    case.path = moved(&case.path);
    case.judged_by = std::mem::take(&mut case.judged_by).into_iter().map(|(path, it)| (moved(&path), it)).collect();
    for grader in &mut case.graders {
        grader.file = moved(&grader.file);
    }
}

fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    path.strip_prefix(from).map_or_else(|_| path.to_owned(), |rest| to.join(rest))
}
