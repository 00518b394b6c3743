//! The kept workspace of a stored trial: compared with its digest, and laid out for the graders as in the trial.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoredFiles;
use super::prepare::{KnownChange, RegradeSetup, has_commands, place_in_trial};
use super::rebuilt::{is_other_setup, other_setup};
use crate::case::Case;
use crate::result::Warning;
use crate::shell::Shell;
use crate::text::some_of;
use crate::trial::measure::lay_hidden;
use crate::trial::prepare_workspace::{Before, NotSetUp, set_up};
use crate::trial::sandboxing::graders_shell;
use crate::trial::{Attempt, Engine, Folders, TrialError, io, on_blocking_thread, other_keys, workspace_gaps};
use crate::workspace::beyond_patch::{BESIDE, LINKED, MayDiffer, SPECIAL};
use crate::workspace::change::{Change, Found};
use crate::workspace::hidden::stale::remove_stale;
use crate::workspace::restore::put_back;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::tree_digest::tree_digest;
use crate::workspace::{copy_with_special_files, old_place};

const SETUP_CHANGED: &str = "the files that setup creates beside it may differ: setup, or its input, has changed since";

/// Returns the kept workspace. The workspace before the agent is made too if setup left files in its home, if
/// protected files must be restored, or if there are hidden files.
pub(super) async fn kept_again(
    engine: &Engine,
    attempt: &Attempt,
    left: &StoredFiles,
    folders: &Folders,
    shell: Shell,
    kept: &Path,
    mut known: KnownChange,
) -> Result<RegradeSetup, TrialError> {
    let case = &attempt.case;
    let (mut before, mut lost): (Option<Before>, Vec<String>) = (None, Vec::new());
    let put_back = !known.1.is_empty();
    let keys = left.keys.as_ref();
    let stale = other_keys::stale_hidden(keys, case).map_err(io("read the hidden files"))?;
    let (mut is_as_before, mut has_other_home) = (false, false);
    if put_back || case.hidden.is_some() || !stale.is_empty() || !case.workspace.setup.is_empty() {
        // A single trace was kept beside its workspace, and the user named the case for both.
        let changed = left.no_source.as_ref().filter(|_| left.was.is_some());
        if let (true, Some(changed)) = (put_back, changed) {
            return Ok(RegradeSetup::none(known, format!("protected files could not be put back: {changed}")));
        }
        match set_up(engine, attempt, folders, &shell).await {
            Ok(made) => {
                let is_other = is_other_setup(left, case, &folders.workspace, &made).await?;
                if put_back && is_other {
                    let why = other_setup(left, case);
                    return Ok(RegradeSetup::none(known, format!("protected files could not be put back: {why}")));
                }
                has_other_home = is_other && made.has_files_outside();
                let may_lack = changed.is_some() || has_other_home;
                lost.extend(may_lack.then(|| SETUP_CHANGED.to_owned()).or_else(|| left.doubt.clone()));
                // The source of a single trace is not compared with that of its run.
                is_as_before = left.was.is_some() && changed.is_none() && left.doubt.is_none() && !is_other;
                before = Some(made);
            }
            Err(NotSetUp::Engine(error)) => return Err(error),
            Err(NotSetUp::Case(why)) if put_back => {
                return Ok(RegradeSetup::none(known, format!("protected files could not be put back: {why}")));
            }
            Err(NotSetUp::Case(why)) => lost.push(format!("the files that setup creates beside it are missing: {why}")),
        }
    }
    let (from, to, old) = (kept.to_owned(), folders.workspace.clone(), place_in_trial(left));
    let copied = on_blocking_thread(move || {
        crate::workspace::remove::remove(&to).map_err(|error| error.to_string())?;
        let copied = copy_with_special_files(&from, &to).map_err(|error| error.to_string())?;
        let link = old.map_or(Ok(None), |old| old_place::move_links(&to, &old)).map_err(|error| error.to_string())?;
        Ok::<_, String>((link, copied))
    });
    let (link, copied) = match copied.await? {
        Ok((link, copied)) => (link.filter(|_| has_commands(case)), copied),
        Err(error) => return Ok(RegradeSetup::none(known, format!("the kept workspace could not be copied: {error}"))),
    };
    if let Some(before) = &before {
        let globs = &case.workspace.protect;
        for (path, _) in known.0.iter().flat_map(Change::all).filter(|(path, _)| globs.iter().any(|g| g.is_match(path)))
        {
            put_back_in(before, folders, path)?;
        }
    }
    let mut places = other_keys::restored(keys, case, known.0.as_ref(), left.warnings());
    places.extend(other_keys::not_restored(keys, case, known.0.as_ref()));
    let agent_began_with = before.as_ref().filter(|_| is_as_before && !stale.is_empty()).map(|it| it.path.clone());
    match agent_began_with.zip(known.0.clone()) {
        Some((found, change)) => {
            let (to, globs) = (folders.workspace.clone(), other_keys::ignore_of(keys, case).to_vec());
            let unknown = on_blocking_thread(move || {
                let ignore = Ignore::of(&found, &globs)?;
                remove_stale(&stale, &found, &to, &ignore, &change)
            });
            places.extend(unknown.await?.map_err(io("remove hidden files that the case does not have any more"))?);
        }
        None => places.extend(stale),
    }
    if let (Some(change), Some(before)) = (&mut known.0, before.as_ref().filter(|_| is_as_before)) {
        let (root, globs) = (before.path.clone(), other_keys::ignore_of(keys, case).to_vec());
        let ignore = match change.has_unnamed {
            true => on_blocking_thread(move || Ignore::of(&root, &globs))
                .await?
                .map(Some)
                .map_err(io("read what is ignored"))?,
            false => None,
        };
        change.found = Some(Found { root: before.path.clone(), ignore: ignore.map(Arc::new) });
    }
    let found = before.as_ref().map_or(folders.workspace.as_path(), |before| before.path.as_path());
    // Before hidden files are laid, which cannot contain the place of the trial.
    let naming = file_that_names_the_place(left, case, found, &folders.workspace).await?;
    lay_hidden(case, found, &folders.workspace, &BTreeSet::new())?;
    let not_kept = workspace_gaps::of_kept(left.warnings());
    let lacks_beside = left.result().is_some_and(|result| result.beyond_patch.iter().any(|words| words == BESIDE));
    // An archive may lack them. What was put back or graded may have removed them before the workspace was kept.
    let kept_with = left.result().and_then(|result| result.kept_beyond_patch.as_deref()).unwrap_or_default();
    let without = [(SPECIAL, copied.has_special), (LINKED, copied.has_linked)];
    let is_gone = |(words, has): &(&str, bool)| !has && kept_with.iter().any(|it| it == words);
    let gone: Vec<&str> = without.into_iter().filter(is_gone).map(|(words, _)| words).collect();
    let lacks_files = !not_kept.is_empty() || !copied.not_copied.is_empty() || !gone.is_empty();
    let lacks_work = lacks_files || !places.is_empty() || has_other_home || lacks_beside;
    lost.extend(not_kept);
    if !copied.not_copied.is_empty() {
        let names = some_of(copied.not_copied, 5);
        lost.push(format!("files of the kept workspace could not be copied as they are: {names}"));
    }
    lost.extend(
        gone.into_iter().map(|words| format!("the workspace was kept with {words}, and the kept workspace has none")),
    );
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
    let is_masked = left.warnings().iter().any(|warning| matches!(warning, Warning::KeptMasked { .. }));
    let shell = graders_shell(&shell, folders, case, before.as_ref())?;
    let prepared = RegradeSetup::there(shell, known, lost, |lost| Warning::KeptInPart { lost });
    let places = Change { unmeasured: places, ..Change::default() };
    let may_differ = MayDiffer { is_masked, places, all, ..MayDiffer::default() };
    let mut prepared = RegradeSetup { lacks_work, may_differ, before, ..prepared };
    if let Some(file) = naming.or(link) {
        prepared.doubt_commands(&file, true);
    }
    Ok(prepared)
}

/// Returns a file of the copy that contains the place of the trial and is not ignored: setup may have made it, and no patch
/// shows it. `found` is the workspace as the agent found it. Without graders that run commands, nothing is searched.
async fn file_that_names_the_place(
    left: &StoredFiles,
    case: &Case,
    found: &Path,
    copy: &Path,
) -> Result<Option<PathBuf>, TrialError> {
    let Some(old) = place_in_trial(left).filter(|_| has_commands(case)) else { return Ok(None) };
    let (found, copy) = (found.to_owned(), copy.to_owned());
    let globs = other_keys::ignore_of(left.keys.as_ref(), case).to_vec();
    let named = on_blocking_thread(move || {
        let tree = Ignore::of(&found, &globs).and_then(|ignore| Tree::read(&copy, &ignore))?;
        old_place::file_in(&tree, &old)
    });
    named.await?.map_err(io("search the workspace for its place in the trial"))
}

/// Returns why a kept workspace is not the one that was graded, if so. A workspace without a digest is trusted.
pub(super) async fn changed_since(kept: &Path, told: Option<&String>) -> Result<Option<String>, TrialError> {
    let Some(told) = told else { return Ok(None) };
    let place = kept.to_owned();
    Ok(match on_blocking_thread(move || tree_digest(&place)).await? {
        Ok(found) if found == *told => None,
        Ok(_) => {
            Some("the kept workspace was changed after the trial was graded: result.json has another digest".into())
        }
        Err(error) => Some(format!("the kept workspace cannot be compared with the digest in result.json: {error}")),
    })
}

fn put_back_in(before: &Before, folders: &Folders, path: &str) -> Result<(), TrialError> {
    put_back(&before.path, &folders.workspace, Path::new(path)).map_err(io("put protected files back"))
}
