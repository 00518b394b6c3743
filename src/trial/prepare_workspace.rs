//! Makes a trial's workspace, runs its setup, and keeps the state that the change is measured against.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::above::Beside;
use super::{Attempt, Engine, Folders, TrialError, above, case_in_sight, io};
use crate::case::WorkspaceSource;
use crate::overlay::{self, OverlayPlace};
use crate::resources::Exhausted;
use crate::run::temporary::{Vanishing, no_room};
use crate::sandbox::TrialSandbox;
use crate::shell::{Command, Shell};
use crate::trace::Exit;
use crate::values::Time;
use crate::workspace::stamp::{FolderStamps, Stamp};
use crate::workspace::{FoundFiles, copy_as_it_is, copy_folder, copy_with_stamps, git, write_files};

/// The state of the workspace that its change is measured against.
pub(super) struct Before {
    pub(super) path: PathBuf,
    /// The sockets, devices and pipes that were there, which no copy holds.
    pub(super) special: BTreeSet<PathBuf>,
    /// The stamps of the files in the workspace; `None` if no copy was made.
    stamps: Option<Arc<BTreeMap<PathBuf, Stamp>>>,
    /// Removed with the trial, if it is a separate copy.
    _copy: Option<Vanishing>,
    /// A copy of the home as setup left it; `None` if setup left nothing there.
    home: Option<Vanishing>,
    /// The files that setup left beside the workspace.
    beside: Arc<Beside>,
    copies: Arc<Copies>,
    /// The files of the case among what is laid for the agent, and among what setup left outside of the workspace.
    shown_in_laid: Arc<[PathBuf]>,
}

/// The parts of [`Before`] that work on another thread needs.
#[derive(Clone)]
pub(super) struct StateBefore {
    pub(super) path: PathBuf,
    /// The sockets, devices and pipes that were there, which no copy holds.
    pub(super) special: BTreeSet<PathBuf>,
    /// The stamps of the files in the workspace; `None` if no copy was made.
    pub(super) stamps: Option<Arc<BTreeMap<PathBuf, Stamp>>>,
    /// The files that setup left beside the workspace.
    pub(super) beside: Arc<Beside>,
    pub(super) copies: Arc<Copies>,
    /// The files of the case among what is laid for the agent, and among what setup left outside of the workspace.
    pub(super) shown_in_laid: Arc<[PathBuf]>,
}

/// The engine's copies of what was there before the agent, each with its name for people and its stamps. An agent without a
/// sandbox can write to them.
#[derive(Debug, Default)]
pub(super) struct Copies(Vec<(&'static str, FolderStamps)>);

impl Copies {
    fn add(&mut self, name: &'static str, copy: &Path) -> std::io::Result<()> {
        self.0.push((name, FolderStamps::of(copy)?));
        Ok(())
    }

    /// Returns the first file of a copy that was changed since the copy was made, as text.
    pub(super) fn first_change(&self) -> Option<String> {
        self.0.iter().find_map(|(name, stamps)| {
            let path = stamps.first_change()?;
            let is_all = path.as_os_str().is_empty();
            Some(if is_all { format!("all of {name}") } else { format!("`{}` in {name}", path.display()) })
        })
    }
}

impl Before {
    /// Returns the home as setup left it; `None` if it was empty.
    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_ref().map(Vanishing::path)
    }

    /// Returns the folder around the workspace, if setup left something in it.
    pub(super) fn around(&self, folders: &Folders) -> Option<PathBuf> {
        folders.workspace.parent().filter(|_| !self.beside.is_empty()).map(Path::to_owned)
    }

    /// Returns true if setup left files in its home or beside the workspace.
    pub(super) fn has_files_outside(&self) -> bool {
        self.home.is_some() || self.beside.copy().is_some()
    }

    /// Returns the parts that work on another thread needs. The copies are removed with `self`.
    pub(super) fn state(&self) -> StateBefore {
        let (path, special, stamps) = (self.path.clone(), self.special.clone(), self.stamps.clone());
        let (beside, copies, shown_in_laid) = (self.beside.clone(), self.copies.clone(), self.shown_in_laid.clone());
        StateBefore { path, special, stamps, beside, copies, shown_in_laid }
    }
}

pub(super) async fn set_up(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    shell: &Shell,
) -> Result<Before, NotSetUp> {
    let made = make_workspace_and_state(engine, attempt, folders, shell).await;
    match made {
        // Errors of git or of the case's commands about a full disk are only text; the disk itself is checked.
        Err(NotSetUp::Case(why)) => match no_room(&folders.beside(".")) {
            Some(error) => Err(NotSetUp::Engine(io(format!("set up the workspace ({why})"))(error))),
            None => Err(NotSetUp::Case(why)),
        },
        made => made,
    }
}

/// The reason why a workspace was not set up.
pub(super) enum NotSetUp {
    /// The case, or a program that its commands need, caused the failure: the trial is errored.
    Case(String),
    /// The cause is the machine: no other trial could be set up either.
    Engine(TrialError),
}

/// Returns a function that sorts an error of an operation by its cause.
fn failed<E: std::error::Error + Send + Sync + 'static>(doing: &'static str) -> impl FnOnce(E) -> NotSetUp {
    move |error| match Exhausted::of(&error) {
        Some(Exhausted::Disk) => NotSetUp::Engine(io(doing)(std::io::Error::other(error))),
        Some(Exhausted::OpenFiles) | None => NotSetUp::Case(format!("could not {doing}: {error}")),
    }
}

async fn make_workspace_and_state(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    shell: &Shell,
) -> Result<Before, NotSetUp> {
    const MAKE: &str = "make the workspace";
    const KEEP: &str = "keep a copy of the workspace as it was made";
    let case = &attempt.case;
    match &case.workspace.source {
        WorkspaceSource::Empty => fs::create_dir(&folders.workspace).map_err(failed(MAKE))?,
        WorkspaceSource::Copy(from) => copy_folder(from, &folders.workspace, false).map_err(failed(MAKE))?,
        WorkspaceSource::Files(files) => write_files(files, &folders.workspace).map_err(failed(MAKE))?,
        WorkspaceSource::Git(source) => git::check_out(source, &folders.workspace, shell)
            .await
            .map_err(|why| NotSetUp::Case(format!("could not {MAKE}: {why}")))?,
    }
    // Commands of the case's author may need the network, for example for installing.
    let mut shell = Shell { inside: shell.inside.clone().map(TrialSandbox::with_network), ..shell.clone() };
    if let Some(inside) = &mut shell.inside {
        // What setup makes beside the workspace stays for the agent and the graders.
        inside.places.around = folders.workspace.parent().map(Path::to_owned);
    }
    let time = case.setup_time.or(attempt.manifest.timeouts.setup).unwrap_or(SETUP_TIME);
    for line in &case.workspace.setup {
        let outcome = shell.run(&Command::Line(line.clone()), None, time.0).await;
        let outcome =
            outcome.map_err(|error| NotSetUp::Case(format!("setup command `{line}` could not be started: {error}")))?;
        let code = outcome.exit.and_then(|exit| exit.code);
        if code != Some(0) {
            let how = match outcome.exit {
                Some(Exit { code: Some(code), .. }) => format!("exited {code}"),
                Some(Exit { signal: Some(signal), .. }) => format!("was ended by signal {signal}"),
                Some(_) => "ended in an unknown way".to_owned(),
                None => outcome.memory_exceeded().unwrap_or_else(|| {
                    format!("did not end within {time} (`timeouts.setup` of the case or the manifest)")
                }),
            };
            // The message alone keeps the output: the trial ends before it has a log.
            return Err(NotSetUp::Case(format!("setup command `{line}` {how}{}", outcome.end_of(40, 4000))));
        }
    }
    // Graders' commands get the home as setup left it, not as the agent changed it. The copies are not beside the
    // workspace, where a curious agent could find and change them.
    let (mut home, mut copies) = (None, Copies::default());
    if fs::read_dir(&folders.home).is_ok_and(|mut left| left.next().is_some()) {
        const COPY: &str = "copy the home";
        let copy = Vanishing::make(&engine.temporary, "home-").map_err(failed(COPY))?;
        copy_as_it_is(&folders.home, copy.path()).map_err(failed(COPY))?;
        copies.add("the engine's copy of the home as setup left it", copy.path()).map_err(failed(COPY))?;
        home = Some(copy);
    }
    let beside = match case.workspace.setup.is_empty() {
        true => Beside::default(),
        false => above::as_set_up(&folders.workspace, &engine.temporary)
            .map_err(failed("copy what setup left beside the workspace"))?,
    };
    if let Some(copy) = beside.copy() {
        copies
            .add("the engine's copy of what setup left beside the workspace", copy)
            .map_err(failed("copy what setup left beside the workspace"))?;
    }
    let beside = Arc::new(beside);
    // The agent did not make these files, so they are part of the state before.
    let laid =
        overlay::items(&case.overlay, &attempt.manifest).map_err(|why| NotSetUp::Case(format!("the case {why}")))?;
    let of_arms = attempt.arms.iter().flat_map(|arms| &arms.skills);
    let of_arms: Vec<String> = of_arms.map(|skill| skill.name.clone()).collect();
    overlay::check_skills_of_workspace(&laid, &of_arms, &attempt.manifest, &folders.workspace)
        .map_err(NotSetUp::Case)?;
    let user_home = engine.env.get("HOME").map(Path::new);
    let mut left = beside.paths(&folders.workspace);
    left.extend(home.as_ref().map(|_| (PathBuf::from("~"), folders.home.clone())));
    let shown_in_laid = case_in_sight::laid(case, &attempt.manifest, &laid, &left, &folders.workspace, user_home)
        .map_err(failed("look for the case in what is laid"))?;
    overlay::lay(&laid, OverlayPlace::Project, &folders.workspace, |skill| case.evals_in(skill))
        .map_err(failed("lay files into the workspace"))?;
    let as_made = case.workspace.setup.is_empty() && laid.iter().all(|item| item.place != OverlayPlace::Project);
    let (path, special, stamps, copy) = match &case.workspace.source {
        // The fixture itself is the state before, unless something changed it.
        WorkspaceSource::Copy(from) if as_made => (from.clone(), BTreeSet::new(), None, None),
        _ => {
            let copy = Vanishing::make(&engine.temporary, "before-").map_err(failed(KEEP))?;
            let found = copy_with_stamps(&folders.workspace, copy.path()).map_err(failed(KEEP))?;
            let FoundFiles { stamps, special } = found;
            copies.add("the engine's copy of the workspace before the agent", copy.path()).map_err(failed(KEEP))?;
            (copy.path().to_owned(), special, Some(Arc::new(stamps)), Some(copy))
        }
    };
    let copies = Arc::new(copies);
    let shown_in_laid = shown_in_laid.into();
    Ok(Before { path, special, stamps, _copy: copy, home, beside, copies, shown_in_laid })
}

/// The default timeout of a setup command.
const SETUP_TIME: Time = Time(Duration::from_secs(600));
