//! Undoes between two graders what the commands of the first one changed: they may run code of the agent, and must not decide the
//! next grade.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::above;
use super::prepare_workspace::{Before, Copies};
use super::protected::ProtectedCopy;
use super::{Folders, TrialError, io as failed};
use crate::case::Case;
use crate::result::Warning;
use crate::shell::Shell;
use crate::text::some_of;
use crate::workspace::copy_as_it_is;
use crate::workspace::remove::remove;
use crate::workspace::stamp::FolderStamps;

/// The maximum number of files in a warning.
const NAMED: usize = 5;

/// The state that each grader that runs commands finds: home, protected files, and the folders above the workspace.
#[derive(Default)]
pub(super) struct Between {
    state: Option<State>,
    changed: Mutex<Changed>,
}

struct State {
    /// The home of the graders, and the folder for temporary files.
    home: PathBuf,
    scratch: Option<PathBuf>,
    /// The home as setup left it, with the copies of which it is one. Absent if setup left nothing there.
    home_before: Option<(PathBuf, Arc<Copies>)>,
    protected: Option<ProtectedCopy>,
    /// The private folder of the trial, and the names in it.
    trial: PathBuf,
    names: BTreeSet<OsString>,
    /// The folder that all trials share.
    temporary: PathBuf,
}

/// The paths that were restored or removed, and the stamps of the home as it is.
#[derive(Default)]
struct Changed {
    protected: BTreeSet<String>,
    above: BTreeSet<String>,
    home: Option<FolderStamps>,
}

impl Between {
    /// Takes the state before the first grader. Nothing is taken if fewer than two graders run commands.
    pub(super) fn of(
        case: &Case,
        folders: &Folders,
        shell: &Shell,
        before: Option<&Before>,
        temporary: &Path,
    ) -> Result<Self, TrialError> {
        if case.graders.iter().filter(|grader| grader.kind.needs().commands).count() < 2 {
            return Ok(Self::default());
        }
        let trial = folders.workspace.parent().unwrap_or(&folders.workspace).to_owned();
        let home = folders.beside("graders-home");
        let stamps = FolderStamps::of(&home).map_err(failed("look at the home of the graders"))?;
        let protected = ProtectedCopy::of(&case.workspace, &folders.workspace, temporary)
            .map_err(failed("copy the protected files"))?;
        let home_before = before.and_then(|before| Some((before.home()?.to_owned(), before.state().copies)));
        let state = State {
            scratch: shell.inside.as_ref().map(|inside| inside.places.scratch.clone()),
            home,
            home_before,
            protected,
            names: names(&trial).map_err(failed("list the private folder of the trial"))?,
            trial,
            temporary: temporary.to_owned(),
        };
        Ok(Self { state: Some(state), changed: Mutex::new(Changed { home: Some(stamps), ..Changed::default() }) })
    }

    /// Restores the state before the next grader.
    ///
    /// # Errors
    /// Returns the reason if the state is unknown or cannot be restored: the next grader must not judge then.
    pub(super) fn restore(&self) -> Result<(), String> {
        let Some(state) = &self.state else { return Ok(()) };
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |doing: &str| {
            let doing = doing.to_owned();
            move |error: io::Error| format!("could not {doing} after an earlier grader: {error}")
        };
        // Without stamps, an earlier call failed.
        let entries = changed.home.take().and_then(|stamps| stamps.changed_entries());
        state.renew_home(entries).map_err(failed("renew the home of the graders"))?;
        changed.home = Some(FolderStamps::of(&state.home).map_err(failed("look at the home of the graders"))?);
        if let Some(protected) = &state.protected {
            changed.protected.extend(protected.put_back()?);
        }
        for name in names(&state.trial).map_err(failed("list the private folder of the trial"))? {
            if !state.names.contains(&name) {
                remove(&state.trial.join(&name)).map_err(failed("clear the private folder of the trial"))?;
                changed.above.insert(format!("../{}", name.to_string_lossy()));
            }
        }
        let shared = above::clear_shared(&state.temporary).map_err(failed("clear the folder of the trials"))?;
        changed.above.extend(shared);
        Ok(())
    }

    /// Returns warnings about what was undone.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let files = some_of(&changed.protected, NAMED);
        let protected = (!changed.protected.is_empty()).then_some(Warning::ProtectedPutBack { files });
        let above: Vec<String> = changed.above.iter().cloned().collect();
        protected.into_iter().chain(above::warning(&above, true)).collect()
    }
}

impl State {
    /// Makes these entries of the home as setup left them, or all of the home.
    fn renew_home(&self, entries: Option<BTreeSet<OsString>>) -> io::Result<()> {
        if let Some((_, copies)) = &self.home_before
            && let Some(file) = copies.first_change()
        {
            return Err(io::Error::other(format!("another program changed {file}")));
        }
        let before = self.home_before.as_ref().map(|(before, _)| before);
        match entries {
            Some(entries) => {
                for name in entries {
                    remove(&self.home.join(&name))?;
                    let source = before.map(|before| before.join(&name)).filter(|path| path.symlink_metadata().is_ok());
                    source.map_or(Ok(()), |source| above::copy(&source, &self.home.join(&name)))?;
                }
            }
            None => {
                remove(&self.home)?;
                fs::create_dir(&self.home)?;
                before.map_or(Ok(()), |before| copy_as_it_is(before, &self.home)).map_err(io::Error::other)?;
            }
        }
        // A sandbox command has its temporary files in the home.
        let mut scratch = self.scratch.iter().filter(|scratch| scratch.starts_with(&self.home));
        scratch.try_for_each(fs::create_dir_all)
    }
}

fn names(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}
