//! Undoes between two graders what the commands of the first one changed: they may run code of the agent, and must not decide the
//! next grade.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::above::{self, Beside};
use super::prepare_workspace::{Before, Copies};
use super::protected::{self, ProtectedCopy, WatchedFiles};
use super::renewed_files::RenewedFiles;
use super::settings_above::SettingsAbove;
use super::{Engine, Folders, TrialError, graders_home, io as failed};
use crate::case::{Case, GradersHome};
use crate::grader::Renewed;
use crate::result::Warning;
use crate::shell::Shell;
use crate::text::some_of;
use crate::workspace::copy_as_it_is;
use crate::workspace::hidden::changed::remove_within;
use crate::workspace::remove::remove;
use crate::workspace::stamp::FolderStamps;

/// The maximum number of files in a warning.
const MAX_NAMED_FILES: usize = 5;
/// The folder of Python's compiled modules in the home of the graders, which `PYTHONPYCACHEPREFIX` names.
const COMPILED: &str = ".cache/python";
/// Places in the home in which programs leave logs and caches that no later command needs. They are renewed, too, but explain no
/// failure.
const BY_PRODUCTS: [&str; 16] = [
    COMPILED,
    ".bash_history",
    ".cache/go-build",
    ".cache/pip",
    ".cache/uv",
    ".cargo/.global-cache",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".config/go/telemetry",
    ".local/state",
    ".node_repl_history",
    ".npm/_cacache",
    ".npm/_logs",
    ".npm/_update-notifier-last-checked",
    ".python_history",
    ".wget-hsts",
];

/// The state that each grader that runs commands finds: home, protected files, and the folders above the workspace.
#[derive(Default)]
pub(super) struct Between {
    state: Option<State>,
    /// The protected files that the agent found. Absent if there are none, or if no grader runs commands.
    watched: Option<WatchedFiles>,
    /// The reason why a failure of a command does not count, if there is one before the first grader.
    doubt: Option<String>,
    /// The settings in folders of the user. Absent if no grader runs commands.
    of_user: Option<SettingsAbove>,
    /// Those that had changed when the agent had stopped.
    changed_by_agent: BTreeSet<String>,
    changed: Mutex<Changed>,
}

struct State {
    /// The home of the graders, and the folder for temporary files.
    home: PathBuf,
    scratch: Option<PathBuf>,
    workspace: PathBuf,
    /// True if the graders share the home.
    shares_home: bool,
    /// The home as setup left it. Absent if setup left nothing there.
    home_before: Option<PathBuf>,
    /// The settings that setup left beside the workspace.
    beside: Arc<Beside>,
    /// The engine's copies of what was there before the agent.
    copies: Arc<Copies>,
    protected: Option<ProtectedCopy>,
    renewed: Option<RenewedFiles>,
    /// The private folder of the trial, and the names in it.
    trial: PathBuf,
    names: BTreeSet<OsString>,
    /// The folder that all trials share.
    temporary: PathBuf,
}

/// The paths that were restored or removed, and the stamps of what is restored.
#[derive(Default)]
struct Changed {
    protected: BTreeSet<String>,
    /// Paths in the folder that all trials share.
    shared: BTreeSet<String>,
    /// Settings in folders of the user, which stay.
    of_user: BTreeSet<String>,
    home: Option<FolderStamps>,
    settings: BTreeMap<OsString, FolderStamps>,
}

impl Between {
    /// Renews protected and hidden files, and takes the state before the first grader. Of the state, only the protected files are
    /// needed if a single grader runs commands. `warnings` name the protected files that were restored when the agent had stopped,
    /// and the changed settings. `is_restored` is true if all protected files were restored from the state before the agent.
    pub(super) fn of(
        case: &Case,
        folders: &Folders,
        shell: &Shell,
        before: Option<&Before>,
        engine: &Engine,
        warnings: &[Warning],
        is_restored: bool,
    ) -> Result<Self, TrialError> {
        let temporary = &engine.temporary;
        let run_commands = case.graders.iter().filter(|grader| grader.kind.needs().commands).count();
        let found = before.map(|before| before.path.as_path());
        let renewed = match run_commands {
            0 => None,
            _ => {
                RenewedFiles::of(case, found, &folders.workspace).map_err(failed("list protected and hidden files"))?
            }
        };
        renewed.as_ref().map_or(Ok(()), RenewedFiles::renew).map_err(failed("renew protected and hidden files"))?;
        let watched = match run_commands {
            0 => None,
            _ => WatchedFiles::of(case, found, &folders.workspace, is_restored)
                .map_err(failed("look at the protected files"))?,
        };
        let doubt = found.map(|found| protected::doubt_of_failures(&case.workspace, found, warnings));
        let doubt = doubt.transpose().map_err(failed("look at the protected files"))?.flatten();
        let of_user = (run_commands > 0).then(|| engine.settings_above.clone());
        let changed_by_agent = above::changed_in(warnings).cloned().collect();
        let between = Self { watched, doubt, of_user, changed_by_agent, ..Self::default() };
        if run_commands < 2 {
            return Ok(between);
        }
        let trial = folders.workspace.parent().unwrap_or(&folders.workspace).to_owned();
        let home = graders_home::place(folders, before.and_then(Before::home));
        let stamps = FolderStamps::of(&home).map_err(failed("look at the home of the graders"))?;
        let protected = ProtectedCopy::of(&case.workspace, &folders.workspace, temporary)
            .map_err(failed("copy the protected files"))?;
        let (beside, copies) = before.map(Before::state).map(|state| (state.beside, state.copies)).unwrap_or_default();
        let settings = above::stamps_of_settings(&trial, &beside).map_err(failed("look at what setup left"))?;
        let state = State {
            scratch: shell.inside.as_ref().map(|inside| inside.places.scratch.clone()),
            home,
            workspace: folders.workspace.clone(),
            shares_home: case.graders_home == GradersHome::Shared,
            home_before: before.and_then(Before::home).map(Path::to_owned),
            beside,
            copies,
            protected,
            renewed,
            names: names(&trial).map_err(failed("list the private folder of the trial"))?,
            trial,
            temporary: temporary.clone(),
        };
        let changed = Changed { home: Some(stamps), settings, ..Changed::default() };
        Ok(Self { state: Some(state), changed: Mutex::new(changed), ..between })
    }

    /// Returns the protected files that the agent found. `None` if there are none, or if no grader runs commands.
    pub(super) fn watched(&self) -> Option<&WatchedFiles> {
        self.watched.as_ref()
    }

    /// Returns why a failure of a command does not count, if there is a reason before the first grader.
    pub(super) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// Checks the settings in folders of the user after the commands of a grader, because a later grader could put them back.
    pub(super) fn look_above(&self) {
        let found = self.of_user.as_ref().map(SettingsAbove::changed).unwrap_or_default();
        let new = found.into_iter().filter(|path| !self.changed_by_agent.contains(path));
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).of_user.extend(new);
    }

    /// Restores the state before the next grader, and returns what was undone.
    ///
    /// # Errors
    /// Returns the reason if the state is unknown or cannot be restored: the next grader must not grade then.
    pub(super) fn restore(&self) -> Result<Renewed, String> {
        let Some(state) = &self.state else { return Ok(Renewed::default()) };
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |doing: &str| {
            let doing = doing.to_owned();
            move |error: io::Error| format!("could not {doing} after an earlier grader: {error}")
        };
        state.check_copies()?;
        remove_within(&state.home, Path::new(COMPILED)).map_err(failed("remove Python's compiled modules"))?;
        let mut home = false;
        if !state.shares_home {
            home = state.renew_home(changed.home.take()).map_err(failed("renew the home of the graders"))?;
            changed.home = Some(FolderStamps::of(&state.home).map_err(failed("look at the home of the graders"))?);
        }
        let protected = state.protected.as_ref().map(ProtectedCopy::put_back).transpose()?.unwrap_or_default();
        changed.protected.extend(protected.iter().cloned());
        let renewed = state.renewed.as_ref().map_or(Ok(()), RenewedFiles::renew);
        renewed.map_err(failed("renew protected and hidden files"))?;
        let mut above = above::put_back_settings(&state.trial, &state.beside, &mut changed.settings)
            .map_err(failed("put back what setup left above the workspace"))?;
        for name in names(&state.trial).map_err(failed("list the private folder of the trial"))? {
            if !state.names.contains(&name) {
                remove(&state.trial.join(&name)).map_err(failed("clear the private folder of the trial"))?;
                above.push(format!("../{}", name.to_string_lossy()));
            }
        }
        let shared = above::clear_shared(&state.temporary).map_err(failed("clear the folder of the trials"))?;
        above.extend(shared.iter().cloned());
        changed.shared.extend(shared);
        Ok(Renewed { home, protected: protected.into_iter().next(), above: above.into_iter().next() })
    }

    /// Returns warnings about what was undone, or changed and stays. What graders left in the private folder of the trial has none:
    /// it is the cause of nothing unless a later grader fails, whose grade then states it.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let files = some_of(&changed.protected, MAX_NAMED_FILES);
        let protected = (!changed.protected.is_empty()).then_some(Warning::ProtectedPutBack { files });
        // It may be of another trial's agent, and it may have decided the grader that ran meanwhile.
        let above: Vec<String> = changed.shared.iter().chain(&changed.of_user).cloned().collect();
        protected.into_iter().chain(above::warning(&above, false)).collect()
    }
}

impl State {
    /// Returns an error if another program changed a copy from which the state is restored.
    fn check_copies(&self) -> Result<(), String> {
        if self.home_before.is_none() && self.beside.copy().is_none() {
            return Ok(());
        }
        self.copies.first_change().map_or(Ok(()), |file| Err(format!("another program changed {file}")))
    }

    /// Makes the entries of the home in which something changed as setup left them, and returns true if there were any, except
    /// temporary files, and by-products to which no link of the workspace leads. Without stamps, all of the home is made anew.
    fn renew_home(&self, stamps: Option<FolderStamps>) -> io::Result<bool> {
        // Without stamps, an earlier call failed.
        let mut changes = stamps.map_or_else(|| BTreeSet::from([PathBuf::new()]), |stamps| stamps.changes());
        // A sandbox command has its temporary files in the home, and the graders share them, as in other sandboxes.
        let scratch = self.scratch.as_ref().filter(|scratch| scratch.starts_with(&self.home));
        changes.retain(|path| scratch.is_none_or(|scratch| !self.home.join(path).starts_with(scratch)));
        let is_needed = !changes.iter().all(|path| is_by_product(path));
        let links = match is_needed || changes.is_empty() {
            true => Vec::new(),
            false => graders_home::links_into(&self.workspace, &self.home),
        };
        let before = self.home_before.as_ref();
        let entries: Option<BTreeSet<OsString>> =
            changes.iter().map(|path| Some(path.iter().next()?.to_owned())).collect();
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
        scratch.map_or(Ok(()), fs::create_dir_all)?;
        Ok(is_needed || links.iter().any(|link| link.metadata().is_err()))
    }
}

/// Returns true if a path in the home is a place of by-products, in one, or a folder around one.
fn is_by_product(path: &Path) -> bool {
    let is_home = path.as_os_str().is_empty();
    !is_home && BY_PRODUCTS.iter().any(|place| path.starts_with(place) || Path::new(place).starts_with(path))
}

fn names(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_and_caches_that_no_later_command_needs_are_by_products() {
        for path in [
            ".npm/_logs/1.log",
            ".npm",
            ".cache",
            ".cache/python/a.pyc",
            ".config/go",
            ".cargo/.global-cache",
            ".cargo/.package-cache",
            ".cargo/.package-cache-mutate",
            ".npm/_cacache/a",
            ".cache/uv/wheels",
            ".cache/pip/wheels",
            ".local/state/tool/history",
        ] {
            assert!(is_by_product(Path::new(path)), "{path}");
        }
        for path in ["", ".local/lib/a.py", ".cache/app", ".cargo/bin/a", ".cargo/registry", ".config/app", ".npmrc"] {
            assert!(!is_by_product(Path::new(path)), "{path}");
        }
        // Commands run programs that lie there.
        for path in [".npm/_npx/1/a", ".config/go/env"] {
            assert!(!is_by_product(Path::new(path)), "{path}");
        }
    }
}
