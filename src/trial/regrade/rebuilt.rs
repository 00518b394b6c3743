//! Rebuilds the workspace of a stored trial: its source, its setup, and the patch of the agent's work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoredFiles;
use super::prepare::{KnownChange, RegradeSetup, StoredTrial, has_commands, place_in_trial};
use crate::case::Case;
use crate::result::Warning;
use crate::run::integrity;
use crate::shell::Shell;
use crate::trial::measure::{lay_over, of_setup};
use crate::trial::prepare_workspace::{Before, NotSetUp, set_up};
use crate::trial::sandboxing::graders_shell;
use crate::trial::{TrialError, io, on_blocking_thread, other_keys, protected, workspace_gaps};
use crate::workspace::apply::apply;
use crate::workspace::beyond_patch::MayDiffer;
use crate::workspace::change::{FOLDERS, Found, MODES};
use crate::workspace::patch::read::Piece;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::{beside_patch, old_place};

/// Returns the reason why a workspace that setup makes now is not the one of the trial.
pub(super) fn other_setup(stored: &StoredFiles, case: &Case) -> &'static str {
    match other_keys::of_change(stored.keys.as_ref(), case) {
        None => {
            "its setup commands make other files now than in the trial; if files differ each time, name them in \
             `workspace.ignore` and run the case again"
        }
        Some(_) => {
            "its setup commands make other files now than in the trial; what they made in the trial was recorded with another \
             `workspace.ignore`, so only a new run helps"
        }
    }
}

/// Rebuilds the workspace: its source, its setup, and the patch of the agent's work.
pub(super) async fn rebuilt(
    trial: &StoredTrial<'_>,
    shell: Shell,
    pieces: Arc<Vec<Piece>>,
    mut known: KnownChange,
) -> Result<RegradeSetup, TrialError> {
    let StoredTrial { engine, attempt, stored, folders } = *trial;
    let case = &attempt.case;
    let before = match set_up(engine, attempt, folders, &shell).await {
        Ok(before) => before,
        Err(NotSetUp::Engine(error)) => return Err(error),
        Err(NotSetUp::Case(why)) => {
            return Ok(RegradeSetup::none(known, format!("the workspace could not be rebuilt: {why}")));
        }
    };
    if is_other_setup(stored, case, &folders.workspace, &before).await? {
        return Ok(RegradeSetup::none(known, format!("it was not kept, and {}", other_setup(stored, case))));
    }
    let patched = match lay_work_over(trial, &before, pieces).await? {
        Ok(patched) => patched,
        Err(why) => {
            let why = format!(
                "the workspace could not be rebuilt: {why}; its source has changed, or workspace.patch was masked"
            );
            return Ok(RegradeSetup::none(known, why));
        }
    };
    let PatchedWorkspace { unknown, put_back, ignored_bytes, mut may_differ, beyond_patch, link, ignore } = patched;
    if let Some(change) = &mut known.0 {
        change.unmeasured.extend(may_differ.places.unmeasured.iter().cloned());
        change.found = Some(Found { root: before.path.clone(), ignore: Some(Arc::new(ignore)) });
    }
    let warnings = stored.warnings();
    let recorded = stored.earlier.as_ref().and_then(|earlier| earlier.beside_patch.as_ref());
    let touched = protected::joined(put_back, protected::touched_before(&case.workspace, None, warnings));
    let mut lost = workspace_gaps::of_rebuilt(warnings, recorded, &unknown, ignored_bytes);
    let is_known = workspace_gaps::lie_in_known_places(warnings, &unknown) && stored.doubt.is_none();
    may_differ.all = may_differ.all.filter(|_| is_known);
    may_differ.is_masked = warnings.contains(&Warning::PatchMasked);
    let lacks_work = !beyond_patch.is_empty() || !unknown.is_empty() || may_differ.is_masked;
    may_differ.left_out = unknown;
    lost.extend(beyond_patch.into_iter().map(|what| format!("the agent changed what no patch holds: {what}")));
    lost.extend(stored.doubt.clone());
    let shell = graders_shell(&shell, folders, case, Some(&before))?;
    let prepared = RegradeSetup::there(shell, (known.0, touched), lost, |lost| Warning::RebuiltInPart { lost });
    let mut prepared = RegradeSetup { lacks_work, may_differ, before: Some(before), ..prepared };
    if let Some(link) = link.filter(|_| has_commands(case)) {
        prepared.doubt_commands(&link, false);
    }
    Ok(prepared)
}

/// A workspace with the agent's work, as far as the patch and the stored result hold it.
struct PatchedWorkspace {
    /// The files whose content the patch leaves out.
    unknown: Vec<PathBuf>,
    /// The changes of protected files that were put back.
    put_back: Vec<Warning>,
    ignored_bytes: u64,
    may_differ: MayDiffer,
    /// The kinds of changes that no patch holds, as words.
    beyond_patch: Vec<String>,
    /// A link that was moved from the place of the workspace in the trial to its present one.
    link: Option<PathBuf>,
    ignore: Ignore,
}

/// Applies the patch of the agent's work to the workspace, and lays protected and hidden files over it. Returns the reason if the
/// patch cannot be applied.
async fn lay_work_over(
    trial: &StoredTrial<'_>,
    before: &Before,
    pieces: Arc<Vec<Piece>>,
) -> Result<Result<PatchedWorkspace, String>, TrialError> {
    let stored = trial.stored;
    let (case, workspace) = (trial.attempt.case.clone(), trial.folders.workspace.clone());
    let before = before.path.clone();
    let mut beyond: Vec<String> = stored.result().map(|result| result.beyond_patch.clone()).unwrap_or_default();
    let recorded = stored.earlier.as_ref().and_then(|earlier| earlier.beside_patch.clone());
    let old = place_in_trial(stored);
    // Ignored files are compared with those of the trial.
    let globs = other_keys::ignore_of(stored.keys.as_ref(), &case).to_vec();
    on_blocking_thread(move || -> Result<_, TrialError> {
        let unknown = match apply(&workspace, &pieces) {
            Ok(unknown) => unknown,
            Err(error) => return Ok(Err(error.to_string())),
        };
        // Before hidden files are laid, because a link must not lead to them.
        let link = old.map_or(Ok(None), |old| old_place::move_links(&workspace, &old));
        let link = link.map_err(io("move links in the workspace"))?;
        if let Some(recorded) = &recorded {
            let folders = beside_patch::rebuild_folders(&workspace, recorded);
            beyond.extend((!folders).then(|| FOLDERS.to_owned()));
            let modes = beside_patch::rebuild_modes(&workspace, recorded);
            beyond.extend((!modes).then(|| MODES.to_owned()));
        }
        let ignore = Ignore::of(&before, &globs).map_err(io("read what is ignored"))?;
        let now = Tree::read(&workspace, &ignore).map_err(io("read the workspace"))?;
        // The stored result has the warning about links to hidden files.
        let (put_back, _) = lay_over(&case, &before, &workspace, &now, &BTreeSet::new())?;
        let may_differ = MayDiffer::of(&beyond, recorded.as_ref(), &now);
        let ignored_bytes = now.ignored_bytes;
        Ok(Ok(PatchedWorkspace { unknown, put_back, ignored_bytes, may_differ, beyond_patch: beyond, link, ignore }))
    })
    .await?
}

/// Returns true if the setup commands made other files now than in the trial. Runs of older versions do not record this.
pub(super) async fn is_other_setup(
    stored: &StoredFiles,
    case: &Case,
    workspace: &Path,
    before: &Before,
) -> Result<bool, TrialError> {
    let recorded = stored.earlier.as_ref().and_then(|earlier| earlier.files.get(integrity::AFTER_SETUP));
    let Some(recorded) = recorded.cloned() else { return Ok(false) };
    let globs = other_keys::ignore_of(stored.keys.as_ref(), case).to_vec();
    let (workspace, state) = (workspace.to_owned(), before.state());
    on_blocking_thread(move || {
        let tree = Ignore::of(&state.path, &globs).and_then(|ignore| Tree::read(&state.path, &ignore));
        tree.and_then(|tree| of_setup(&tree, &state, &globs, &workspace)).ok() != Some(recorded)
    })
    .await
}
