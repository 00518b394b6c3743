//! Measures the workspace after the agent has ended, and prepares it for the graders.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::prepare::PreparedTrial;
use super::prepare_workspace::StateBefore;
use super::{Attempt, Engine, Folders, TrialError, above, case_in_sight, io, on_blocking_thread, protected, solution};
use crate::case::Case;
use crate::result::{BesidePatch, Warning};
use crate::secrets::Masker;
use crate::text::some_of;
use crate::whole_file::PartFile;
use crate::whole_file::write_part;
use crate::workspace::beside_patch;
use crate::workspace::beyond_patch::{self, Changed};
use crate::workspace::change::{Change, Found, compare};
use crate::workspace::hidden;
use crate::workspace::make_ready::make_ready;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::tree_digest::digest_of;

/// Facts about the workspace after the agent has ended.
pub(super) struct MeasuredChange {
    /// The agent's changes.
    pub change: Change,
    /// The patch of the change, in a temporary file.
    pub patch: PartFile,
    /// True if protected files had to be restored.
    pub touched: bool,
    /// The kinds of changes that are recorded nowhere, in words.
    pub beyond_patch: Vec<String>,
    /// The recorded changes besides the patch.
    pub beside_patch: Option<BesidePatch>,
    /// The first file of the engine's copies of the state before that another program changed, as text.
    pub changed_copy: Option<String>,
    /// The digest of the workspace as setup left it, without ignored files. Absent if the case has no setup commands.
    pub after_setup: Option<String>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// Measures the agent's change, restores protected files, copies the hidden files over the workspace, and removes what the
/// agent left above it. Runs on another thread, because the time it takes depends on what the agent left.
/// `answered` is the time of the agent's answer.
pub(super) async fn measure(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    prepared: &PreparedTrial,
    answered: Option<SystemTime>,
) -> Result<MeasuredChange, TrialError> {
    let (case, masker, before) = (attempt.case.clone(), prepared.masker.clone(), prepared.before.state());
    let (workspace, trial) = (folders.workspace.clone(), attempt.folder.clone());
    let (temporary, of_user) = (engine.temporary.clone(), engine.settings_above.clone());
    on_blocking_thread(move || {
        let mut after = after_the_agent(&case, &workspace, &before, &trial, &masker)?;
        if above::matters(&case) {
            let removed = above::clear(&workspace, &before.beside, &temporary, &of_user);
            after.warnings.extend(removed.map_err(io("remove what the agent left above the workspace"))?);
        }
        after.warnings.extend(answered.and_then(|answered| worked_on(&after.change, &workspace, answered)));
        // After their use: also a change that was undone meanwhile is found.
        after.changed_copy = before.copies.first_change();
        Ok(after)
    })
    .await?
}

/// Returns a warning if a file was written later than [`LATE`] after the agent's answer.
fn worked_on(change: &Change, workspace: &Path, answered: SystemTime) -> Option<Warning> {
    let written = |path: &str| workspace.join(path).symlink_metadata().ok()?.modified().ok();
    // Programs can set the time of a file. A time that is yet to come shows nothing.
    let now = SystemTime::now();
    let later = |path: &str| {
        let written = written(path).filter(|time| *time <= now)?;
        written.duration_since(answered).ok().filter(|later| *later > LATE)
    };
    let (later, path) = change.all().filter_map(|(path, _)| Some((later(path)?, path))).max()?;
    let ms = u64::try_from(later.as_millis()).unwrap_or(u64::MAX);
    Some(Warning::WorkedOn { path: path.to_owned(), ms })
}

/// The time after an answer in which programs finish what they have begun.
const LATE: Duration = Duration::from_secs(1);

/// Measures the workspace. `state` is the state before the agent.
pub(super) fn after_the_agent(
    case: &Case,
    workspace: &Path,
    state: &StateBefore,
    trial: &Path,
    masker: &Masker,
) -> Result<MeasuredChange, TrialError> {
    let before = state.path.as_path();
    let mut warnings = Vec::new();
    let ready = make_ready(workspace).map_err(io("make the workspace ready"))?;
    warnings.extend(ready.warnings());
    let ignore = Ignore::of(before, &case.workspace.ignore).map_err(io("read what is ignored"))?;
    let mut old = Tree::read(before, &ignore).map_err(io("read the state before"))?;
    let after_setup = match case.workspace.setup.is_empty() {
        true => None,
        false => Some(of_setup(&old, state, &case.workspace.ignore, workspace).map_err(io("read the state before"))?),
    };
    old.add_special(&state.special, &ignore);
    let of_case = case_in_sight::warning(case, &old, &state.shown_in_laid);
    warnings.extend(of_case.map_err(io("look for the case in its workspace"))?);
    let new = Tree::read(workspace, &ignore).map_err(io("read the workspace"))?;
    let hide = |bytes: &[u8]| match masker.mask_bytes(bytes) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    };
    let compared = compare(&old, &new, &hide).map_err(io("compare the workspace"))?;
    warnings.extend(compared.warnings());
    let patch = masker.mask_bytes(&compared.patch);
    if compared.hidden || matches!(patch, Cow::Owned(_)) {
        warnings.push(Warning::PatchMasked);
    }
    let patch = write_part(&trial.join("workspace.patch"), |out| out.write_all(&patch))?;
    if compared.change.has_ignored {
        warnings.push(Warning::IgnoredFiles { bytes: new.ignored_bytes });
    }
    // A name that holds a secret is not recorded.
    let name = |path: &Path| path.to_str().filter(|path| !masker.finds(path)).map(str::to_owned);
    let stamps = state.stamps.as_deref();
    let Changed { unrecorded, mut recorded, ignored, special, repositories } =
        beyond_patch::changed(&old, &new, stamps, &name);
    let mut change = compared.change;
    change.found = Some(Found { root: before.to_owned(), ignore: None });
    let mut known: BTreeSet<String> = change.unmeasured.iter().cloned().collect();
    for path in ignored.iter().chain(&special).chain(&repositories) {
        let path = path.to_string_lossy().into_owned();
        if known.insert(path.clone()) {
            change.unmeasured.push(path);
        }
    }
    change.special = special.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    beside_patch::record_changed(&mut recorded, &change, |path| masker.mask(path).into_owned());
    beyond_patch::recall_beside(&mut change, Some(&recorded), &unrecorded);
    // The graders of this trial have got all of them.
    recorded.changed_modes.iter_mut().for_each(|modes| modes.truncate(beside_patch::MAX_PLACES));
    let beside = state.beside.is_changed().then_some(beyond_patch::BESIDE);
    let beyond_patch: Vec<String> = unrecorded.into_iter().chain(beside).map(str::to_owned).collect();
    let beside_patch = recorded.if_needed(!beyond_patch.is_empty());
    let links = if case.hidden.is_some() { state.beside.changed_links(workspace) } else { BTreeSet::new() };
    let (put_back, unlinked) = lay_over(case, before, workspace, &new, &links)?;
    change.restored = protected::restored(&case.workspace, &change);
    let touched = !put_back.is_empty();
    warnings.extend(protected::unmatched(case, before));
    warnings.extend(put_back.into_iter().chain(unlinked));
    Ok(MeasuredChange { change, patch, touched, beyond_patch, beside_patch, changed_copy: None, after_setup, warnings })
}

/// Returns the digest of what setup commands made in a workspace and beside it. `globs` are those of `workspace.ignore`.
pub(super) fn of_setup(
    made: &Tree,
    state: &StateBefore,
    globs: &[String],
    workspace: &Path,
) -> std::io::Result<String> {
    let beside = match state.beside.copy() {
        Some(copy) => Some(Tree::read(copy, &Ignore::of(copy, globs)?)?),
        None => None,
    };
    digest_of(made, beside.as_ref(), workspace)
}

/// Prepares a workspace for the graders: restores protected files, and copies the hidden files over it. `beside` are links of the
/// agent beside the workspace, by their paths relative to it. Returns a warning for each restored file, and one about links to
/// hidden files.
pub(super) fn lay_over(
    case: &Case,
    before: &Path,
    workspace: &Path,
    now: &Tree,
    beside: &BTreeSet<PathBuf>,
) -> Result<(Vec<Warning>, Option<Warning>), TrialError> {
    let put_back =
        protected::restore(&case.workspace, before, workspace, now).map_err(io("put protected files back"))?;
    Ok((put_back, lay_hidden(case, before, workspace, beside)?))
}

/// Copies the hidden files over a workspace. Returns a warning if the agent left links to them, there or among `beside`.
pub(super) fn lay_hidden(
    case: &Case,
    before: &Path,
    workspace: &Path,
    beside: &BTreeSet<PathBuf>,
) -> Result<Option<Warning>, TrialError> {
    let Some(from) = &case.hidden else { return Ok(None) };
    let solution = solution::folders(case.oracle.as_ref()).map_err(io("read the reference solution"))?;
    let links = hidden::lay(from, before, workspace, &solution, beside)
        .map_err(|error| io("lay the hidden files over")(std::io::Error::other(error)))?;
    let names: Vec<String> = links.iter().map(|path| path.display().to_string()).collect();
    Ok((!names.is_empty()).then(|| Warning::LinksToHidden { links: some_of(&names, 5) }))
}
