//! Finds the files of a run after its project was copied or moved: in the project that the run's folder lies in now.

use std::path::{Path, PathBuf};

use super::{CaseRecord, RunRecord};
use crate::project;

/// Replaces the paths of a run's files if its project was copied or moved after the run began. The original project may
/// still exist, with other cases.
pub(super) fn place(folder: &Path, record: &mut RunRecord) {
    let Some(from) = record.project.clone() else { return };
    let Some(to) = present(folder, &from, &record.cases) else { return };
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
    for harness in record.harnesses.iter_mut().filter(|harness| Path::new(&harness.origin).starts_with(&from)) {
        harness.origin = moved(Path::new(&harness.origin)).display().to_string();
    }
    (record.project, record.moved_from) = (Some(to), Some(from));
}

/// Returns the project that the cases of a run are in now. Returns `None` if it is still that of the run, or if no other
/// project has one of the cases.
fn present(folder: &Path, from: &Path, cases: &[CaseRecord]) -> Option<PathBuf> {
    let real = folder.canonicalize().ok();
    let runs = real.as_deref().and_then(|path| path.ancestors().find(|above| above.ends_with(".evals")));
    for project in runs.and_then(Path::parent).into_iter().chain([project::root()]) {
        if project == from {
            return None;
        }
        let is_here = |case: &CaseRecord| case.path.strip_prefix(from).is_ok_and(|path| project.join(path).is_file());
        if cases.iter().any(is_here) {
            return Some(project.to_owned());
        }
    }
    None
}

/// Replaces one folder by another in the paths of a case and of the files that it is judged by.
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
