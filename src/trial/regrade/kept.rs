//! The kept workspace of a stored trial: compared with its digest, and laid out for the graders as in the trial.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoredFiles;
use super::prepare::{KnownChange, RegradeSetup, StoredTrial, has_commands, place_in_trial};
use super::rebuilt::{is_other_setup, other_setup};
use crate::case::Case;
use crate::result::Warning;
use crate::shell::Shell;
use crate::text::some_of;
use crate::trial::measure::lay_hidden;
use crate::trial::prepare_workspace::{Before, NotSetUp, set_up};
use crate::trial::sandboxing::graders_shell;
use crate::trial::{TrialError, io, on_blocking_thread, other_keys, workspace_gaps};
use crate::workspace::beyond_patch::{BESIDE, LINKED, MayDiffer, SPECIAL};
use crate::workspace::change::{Change, Found};
use crate::workspace::hidden::stale::remove_stale;
use crate::workspace::restore::put_back;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::tree_digest::tree_digest;
use crate::workspace::{SpecialFiles, copy_with_special_files, old_place};

const SETUP_CHANGED: &str = "the files that setup creates beside it may differ: setup, or its input, has changed since";

/// Returns the kept workspace. The workspace before the agent is made too if setup left files in its home, if
/// protected files must be restored, or if there are hidden files.
pub(super) async fn kept_again(
    trial: &StoredTrial<'_>,
    shell: Shell,
    kept: &Path,
    mut known: KnownChange,
) -> Result<RegradeSetup, TrialError> {
    let StoredTrial { stored, folders, .. } = *trial;
    let case = &trial.attempt.case;
    let stale = other_keys::stale_hidden(stored.keys.as_ref(), case).map_err(io("read the hidden files"))?;
    let puts_back = !known.1.is_empty();
    let needs_state = puts_back || case.hidden.is_some() || !stale.is_empty() || !case.workspace.setup.is_empty();
    let state = match needs_state {
        true => make_state_before(trial, &shell, puts_back).await?,
        false => Ok(StateBefore::default()),
    };
    let state = match state {
        Ok(state) => state,
        Err(why) => return Ok(RegradeSetup::none(known, why)),
    };
    let copy = match copy_kept(trial, kept).await? {
        Ok(copy) => copy,
        Err(error) => return Ok(RegradeSetup::none(known, format!("the kept workspace could not be copied: {error}"))),
    };
    if let (Some(before), Some(change)) = (&state.before, &known.0) {
        put_protected_back(before, trial, change)?;
    }
    let places = unknown_places(trial, &state, stale, known.0.as_ref()).await?;
    if let (Some(change), Some(before)) = (&mut known.0, state.of_trial()) {
        change.found = Some(found_by_agent(trial, before, change.has_unnamed).await?);
    }
    let found = state.before.as_ref().map_or(folders.workspace.as_path(), |before| before.path.as_path());
    // Before hidden files are laid, which cannot contain the place of the trial.
    let naming = file_that_names_the_place(stored, case, found, &folders.workspace).await?;
    lay_hidden(case, found, &folders.workspace, &BTreeSet::new())?;
    let missing = missing_files(stored, copy.special_files);
    let lacks_beside = stored.result().is_some_and(|result| result.beyond_patch.iter().any(|words| words == BESIDE));
    let lacks_work = !missing.is_empty() || !places.is_empty() || state.has_other_home || lacks_beside;
    let mut lost = state.lost;
    lost.extend(missing);
    let places: Vec<String> = places.into_iter().collect();
    let is_each_named = known.0.as_ref().is_none_or(|change| !change.has_unnamed);
    let all = (lost.is_empty() && is_each_named).then(|| places.clone());
    if !places.is_empty() {
        let names = some_of(&places, 5);
        lost.push(format!(
            "`workspace.protect` or the hidden files were others in the trial, so what the agent left there is unknown: {names}"
        ));
    }
    lost.extend(lacks_beside.then(|| format!("the agent changed what was not kept: {BESIDE}")));
    let is_masked = stored.warnings().iter().any(|warning| matches!(warning, Warning::KeptMasked { .. }));
    let shell = graders_shell(&shell, folders, case, state.before.as_ref())?;
    let prepared = RegradeSetup::there(shell, known, lost, |lost| Warning::KeptInPart { lost });
    let places = Change { unmeasured: places, ..Change::default() };
    let may_differ = MayDiffer { is_masked, places, all, ..MayDiffer::default() };
    let mut prepared = RegradeSetup { lacks_work, may_differ, before: state.before, ..prepared };
    if let Some(file) = naming.or(copy.link) {
        prepared.doubt_commands(&file, true);
    }
    Ok(prepared)
}

/// The workspace before the agent, made again as far as the graders need it.
#[derive(Default)]
struct StateBefore {
    before: Option<Before>,
    /// True if the agent began with this workspace.
    is_of_trial: bool,
    /// True if setup left other files in the home than in the trial.
    has_other_home: bool,
    /// The parts that may be missing or differ.
    lost: Vec<String>,
}

impl StateBefore {
    /// Returns the workspace with which the agent began, if it is known to be the same.
    fn of_trial(&self) -> Option<&Before> {
        self.before.as_ref().filter(|_| self.is_of_trial)
    }
}

/// Makes the workspace before the agent again. Returns the reason if `puts_back` is set and the protected files of the trial are
/// unknown.
async fn make_state_before(
    trial: &StoredTrial<'_>,
    shell: &Shell,
    puts_back: bool,
) -> Result<Result<StateBefore, String>, TrialError> {
    let StoredTrial { engine, attempt, stored, folders } = *trial;
    let case = &attempt.case;
    let not_put_back = |why: &str| Ok(Err(format!("protected files could not be put back: {why}")));
    // A single trace was kept beside its workspace, and the user named the case for both.
    let changed = stored.no_source.as_ref().filter(|_| stored.earlier.is_some());
    if let (true, Some(changed)) = (puts_back, changed) {
        return not_put_back(changed);
    }
    let before = match set_up(engine, attempt, folders, shell).await {
        Ok(before) => before,
        Err(NotSetUp::Engine(error)) => return Err(error),
        Err(NotSetUp::Case(why)) if puts_back => return not_put_back(&why),
        Err(NotSetUp::Case(why)) => {
            let lost = vec![format!("the files that setup creates beside it are missing: {why}")];
            return Ok(Ok(StateBefore { lost, ..StateBefore::default() }));
        }
    };
    let is_other = is_other_setup(stored, case, &folders.workspace, &before).await?;
    if puts_back && is_other {
        return not_put_back(other_setup(stored, case));
    }
    let has_other_home = is_other && before.has_files_outside();
    let may_lack = changed.is_some() || has_other_home;
    let lost = may_lack.then(|| SETUP_CHANGED.to_owned()).or_else(|| stored.doubt.clone()).into_iter().collect();
    // The source of a single trace is not compared with that of its run.
    let is_of_trial = stored.earlier.is_some() && changed.is_none() && stored.doubt.is_none() && !is_other;
    Ok(Ok(StateBefore { before: Some(before), is_of_trial, has_other_home, lost }))
}

/// The copy of a kept workspace.
struct KeptCopy {
    /// A link that was moved from the place of the workspace in the trial to its present one, if graders run commands.
    link: Option<PathBuf>,
    special_files: SpecialFiles,
}

/// Copies a kept workspace into the folder of the trial, or returns the error.
async fn copy_kept(trial: &StoredTrial<'_>, kept: &Path) -> Result<Result<KeptCopy, String>, TrialError> {
    let (from, to, old) = (kept.to_owned(), trial.folders.workspace.clone(), place_in_trial(trial.stored));
    let uses_link = has_commands(&trial.attempt.case);
    on_blocking_thread(move || {
        crate::workspace::remove::remove(&to).map_err(|error| error.to_string())?;
        let special_files = copy_with_special_files(&from, &to).map_err(|error| error.to_string())?;
        let link = old.map_or(Ok(None), |old| old_place::move_links(&to, &old)).map_err(|error| error.to_string())?;
        Ok::<_, String>(KeptCopy { link: link.filter(|_| uses_link), special_files })
    })
    .await
}

/// Restores the protected files that the agent changed.
fn put_protected_back(before: &Before, trial: &StoredTrial<'_>, change: &Change) -> Result<(), TrialError> {
    let globs = &trial.attempt.case.workspace.protect;
    for (path, _) in change.all().filter(|(path, _)| globs.iter().any(|g| g.is_match(path))) {
        put_back(&before.path, &trial.folders.workspace, Path::new(path)).map_err(io("put protected files back"))?;
    }
    Ok(())
}

/// Returns the places at which it is unknown what the agent left, because the case had other keys in the trial. `stale` are the
/// hidden files that the case does not have any more; they are removed if the workspace with which the agent began is known.
async fn unknown_places(
    trial: &StoredTrial<'_>,
    state: &StateBefore,
    stale: BTreeSet<String>,
    change: Option<&Change>,
) -> Result<BTreeSet<String>, TrialError> {
    let (stored, case) = (trial.stored, &trial.attempt.case);
    let keys = stored.keys.as_ref();
    let mut places = other_keys::restored(keys, case, change, stored.warnings());
    places.extend(other_keys::not_restored(keys, case, change));
    let agent_began_with = state.of_trial().filter(|_| !stale.is_empty()).map(|it| it.path.clone());
    match agent_began_with.zip(change.cloned()) {
        Some((found, change)) => {
            let (to, globs) = (trial.folders.workspace.clone(), other_keys::ignore_of(keys, case).to_vec());
            let unknown = on_blocking_thread(move || {
                let ignore = Ignore::of(&found, &globs)?;
                remove_stale(&stale, &found, &to, &ignore, &change)
            });
            places.extend(unknown.await?.map_err(io("remove hidden files that the case does not have any more"))?);
        }
        None => places.extend(stale),
    }
    Ok(places)
}

/// Returns the workspace as the agent found it. `has_unnamed` is true if not all ignored places that changed are named: what is
/// ignored is then read.
async fn found_by_agent(trial: &StoredTrial<'_>, before: &Before, has_unnamed: bool) -> Result<Found, TrialError> {
    let root = before.path.clone();
    if !has_unnamed {
        return Ok(Found { root, ignore: None });
    }
    let folder = root.clone();
    let globs = other_keys::ignore_of(trial.stored.keys.as_ref(), &trial.attempt.case).to_vec();
    let ignore = on_blocking_thread(move || Ignore::of(&folder, &globs)).await?.map_err(io("read what is ignored"))?;
    Ok(Found { root, ignore: Some(Arc::new(ignore)) })
}

/// Returns what the copy of a kept workspace lacks of the agent's workspace.
fn missing_files(stored: &StoredFiles, copy: SpecialFiles) -> Vec<String> {
    let mut missing = workspace_gaps::of_kept(stored.warnings());
    // An archive may lack them. What was put back or graded may have removed them before the workspace was kept.
    let kept_with = stored.result().and_then(|result| result.kept_beyond_patch.as_deref()).unwrap_or_default();
    let without = [(SPECIAL, copy.has_special), (LINKED, copy.has_linked)];
    let is_gone = |(words, has): &(&str, bool)| !has && kept_with.iter().any(|it| it == words);
    if !copy.not_copied.is_empty() {
        let names = some_of(copy.not_copied, 5);
        missing.push(format!("files of the kept workspace could not be copied as they are: {names}"));
    }
    let gone = without.into_iter().filter(is_gone);
    missing
        .extend(gone.map(|(words, _)| format!("the workspace was kept with {words}, and the kept workspace has none")));
    missing
}

/// Returns a file of the copy that contains the place of the trial and is not ignored: setup may have made it, and no patch
/// shows it. `found` is the workspace as the agent found it. Without graders that run commands, nothing is searched.
async fn file_that_names_the_place(
    stored: &StoredFiles,
    case: &Case,
    found: &Path,
    copy: &Path,
) -> Result<Option<PathBuf>, TrialError> {
    let Some(old) = place_in_trial(stored).filter(|_| has_commands(case)) else { return Ok(None) };
    let (found, copy) = (found.to_owned(), copy.to_owned());
    let globs = other_keys::ignore_of(stored.keys.as_ref(), case).to_vec();
    let named = on_blocking_thread(move || {
        let tree = Ignore::of(&found, &globs).and_then(|ignore| Tree::read(&copy, &ignore))?;
        old_place::file_in(&tree, &old)
    });
    named.await?.map_err(io("search the workspace for its place in the trial"))
}

/// Returns why a kept workspace is not the one that was graded, if so. A workspace without a digest is trusted.
pub(super) async fn changed_since(kept: &Path, digest: Option<&String>) -> Result<Option<String>, TrialError> {
    let Some(digest) = digest else { return Ok(None) };
    let place = kept.to_owned();
    Ok(match on_blocking_thread(move || tree_digest(&place)).await? {
        Ok(found) if found == *digest => None,
        Ok(_) => {
            Some("the kept workspace was changed after the trial was graded: result.json has another digest".into())
        }
        Err(error) => Some(format!("the kept workspace cannot be compared with the digest in result.json: {error}")),
    })
}
