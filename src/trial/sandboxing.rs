//! A trial's sandbox: what the agent, setup and graders run in, and what without one is watched instead.

use std::fs;
use std::path::{Path, PathBuf};

use super::read_outside::Outside;
use super::scripted::Relay;
use super::{Attempt, Engine, Folders, TrialError, io};
use crate::case::Case;
use crate::driver::Task;
use crate::environment::{self, Placeholders};
use crate::process;
use crate::sandbox::{Inside, Places, Sandbox, SandboxError};
use crate::shell::Shell;
use crate::workspace::remove::remove;

/// The sandbox of a trial's commands.
pub(super) fn inside(engine: &Engine, attempt: &Attempt, folders: &Folders) -> Result<Inside, SandboxError> {
    let (case, manifest) = (attempt.case.sandbox.as_ref(), attempt.manifest.sandbox.as_ref());
    let mut hides = engine.hides.clone();
    hides.push(engine.temporary.clone());
    hides.retain(|path| path.exists());
    let places = Places {
        workspace: folders.workspace.clone(),
        home: folders.home.clone(),
        scratch: PathBuf::new(),
        reads: Vec::new(),
        through: Vec::new(),
        hides,
    };
    let mut inside = Inside { sandbox: Sandbox::decide(engine.sandbox, case, manifest)?, places };
    inside.places.scratch = scratch(&inside, &folders.home, folders.beside("tmp"));
    Ok(inside)
}

/// Where temporary files go. A command that confines a trial takes its home along, and no folder beside it.
fn scratch(inside: &Inside, home: &Path, beside: PathBuf) -> PathBuf {
    match inside.sandbox {
        Sandbox::Command(_) => home.join(".tmp"),
        Sandbox::None | Sandbox::Bwrap { .. } => beside,
    }
}

/// The shell in which setup runs, and from which that of the graders is made.
pub(super) fn shell(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    inside: &Inside,
) -> Result<Shell, TrialError> {
    let scratch = &inside.places.scratch;
    fs::create_dir_all(scratch).map_err(io("make a scratch folder"))?;
    let (home, scratch) = (folders.home.to_string_lossy(), scratch.to_string_lossy());
    Ok(Shell {
        folder: folders.workspace.clone(),
        env: environment::of_commands(&engine.env, &attempt.case.env, &home, &scratch),
        inside: Some(inside.clone()),
    })
}

/// The shell in which graders run their commands: what the agent left in its home, and in its scratch, has no say there.
pub(super) fn graders_shell(shell: &Shell, folders: &Folders, case: &Case) -> Result<Shell, TrialError> {
    let mut shell = shell.clone();
    if !case.graders.iter().any(|judge| judge.kind.needs().commands) {
        return Ok(shell);
    }
    // As setup left it. Without setup it is empty, whatever an agent that is not confined put in its place.
    let home = folders.beside("graders-home");
    if case.workspace.setup.is_empty() {
        remove(&home).map_err(io("make a home for the graders"))?;
    }
    if !home.exists() {
        fs::create_dir(&home).map_err(io("make a home for the graders"))?;
    }
    environment::isolate_graders(&mut shell.env, &home);
    if let Some(inside) = &mut shell.inside {
        let new = scratch(inside, &home, folders.beside("graders-tmp"));
        let old = std::mem::replace(&mut inside.places.scratch, new.clone());
        // An agent that is not confined may have put something in its place.
        remove(&new).map_err(io("make a scratch folder"))?;
        fs::create_dir_all(&new).map_err(io("make a scratch folder"))?;
        for name in crate::sandbox::TEMPORARY {
            // A folder that the case itself names stays.
            if let Some(folder) = shell.env.get_mut(name).filter(|folder| Path::new(folder.as_str()) == old) {
                *folder = new.to_string_lossy().into_owned();
            }
        }
        inside.places.home = home;
    }
    Ok(shell)
}

/// The graders' shell in an empty folder, where there is no workspace to judge in.
pub(super) fn nowhere(shell: &Shell, folders: &Folders) -> Result<Shell, TrialError> {
    let mut shell = shell.clone();
    shell.folder = folders.beside("nowhere");
    fs::create_dir_all(&shell.folder).map_err(io("make an empty folder for the graders"))?;
    if let Some(inside) = &mut shell.inside {
        inside.places.workspace.clone_from(&shell.folder);
    }
    Ok(shell)
}

/// Without a sandbox nothing keeps an agent from looking around; that it did is to be known.
pub(super) fn outside(inside: &Inside, folders: &Folders) -> Outside {
    match inside.sandbox {
        Sandbox::None => {
            let own = folders.workspace.parent().unwrap_or(&folders.workspace);
            Outside::new(&inside.places.hides, own, &folders.workspace)
        }
        Sandbox::Bwrap { .. } | Sandbox::Command(_) => Outside::default(),
    }
}

/// Puts the agent's command into its sandbox. Of what its manifest names by its whole path it can read that.
/// A program that is not there stays as it is, so that it is told by its name.
pub(super) fn confine(
    task: &mut Task,
    mut inside: Inside,
    engine: &Engine,
    placeholders: &Placeholders,
    relay: Option<&Relay>,
) {
    let path = task.env.get("PATH").map(String::as_str);
    if task.command.program().is_none_or(|program| process::find(program, &task.folder, path).is_none()) {
        return;
    }
    let named = task.manifest.command.iter().filter(|word| word.starts_with('/') && !word.contains('{'));
    let given = placeholders.scripts.values().chain(&placeholders.servers_file);
    inside.places.reads = named.chain(given).map(PathBuf::from).collect();
    inside.places.reads.extend(task.attachments.iter().map(|file| file.copy.clone()));
    // A folder may hold what is hidden; it takes a mount of its own.
    inside.places.reads.retain(|path| path.is_file());
    if task.manifest.command.iter().any(|word| word.contains("{self}")) {
        inside.places.reads.push(engine.this_program.clone());
    }
    if let Some(home) = task.env.get("HOME") {
        inside.places.home = PathBuf::from(home);
    }
    if let Some(Relay { port, socket }) = relay {
        let words = ["gateway", "relay", "--port", &port.to_string(), "--socket", &socket.to_string_lossy(), "--"];
        inside.places.through = vec![engine.this_program.to_string_lossy().into_owned()];
        inside.places.through.extend(words.map(str::to_owned));
    }
    task.command = inside.around(std::mem::take(&mut task.command.command), &task.env);
}
