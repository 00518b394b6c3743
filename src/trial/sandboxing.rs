//! The sandbox of a trial for agent, setup and graders, and the checks that replace it if there is none.

use std::fs;
use std::path::{Path, PathBuf};

use super::gateway::Relay;
use super::prepare_workspace::Before;
use super::read_outside::Outside;
use super::{Attempt, Engine, Folders, TrialError, graders_home, io, protected};
use crate::case::{Case, WorkspaceSource};
use crate::driver::Task;
use crate::environment::{self, Placeholders};
use crate::process;
use crate::sandbox::{Places, Sandbox, SandboxError, TrialSandbox};
use crate::shell::Shell;
use crate::workspace::git_folders;
use crate::workspace::hidden::changed::folders as folders_of_hidden;
use crate::workspace::remove::remove;

/// Returns the sandbox of a trial's commands.
pub(super) fn inside(engine: &Engine, attempt: &Attempt, folders: &Folders) -> Result<TrialSandbox, SandboxError> {
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
        fixed: Vec::new(),
        around: None,
        hides_around: Vec::new(),
    };
    let mut inside = TrialSandbox { sandbox: Sandbox::decide(engine.sandbox, case, manifest)?, places };
    inside.places.scratch = scratch(&inside, &folders.home, folders.beside("tmp"));
    Ok(inside)
}

/// Returns the folder for temporary files. A sandbox command mounts the trial's home, but no folder beside it.
fn scratch(inside: &TrialSandbox, home: &Path, beside: PathBuf) -> PathBuf {
    match inside.sandbox {
        Sandbox::Command(_) => home.join(".tmp"),
        Sandbox::None | Sandbox::Bwrap { .. } => beside,
    }
}

/// Returns the shell of the setup commands, from which that of the graders is derived.
pub(super) fn shell(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    inside: &TrialSandbox,
) -> Result<Shell, TrialError> {
    let scratch = &inside.places.scratch;
    fs::create_dir_all(scratch).map_err(io("make a scratch folder"))?;
    let (home, scratch) = (folders.home.to_string_lossy(), scratch.to_string_lossy());
    Ok(Shell {
        folder: folders.workspace.clone(),
        env: environment::of_commands(&engine.env, &attempt.case.env, &home, &scratch),
        inside: Some(inside.clone()),
        memory: None,
    })
}

/// Returns the shell for commands of graders, without the agent's home and scratch folder. Their home is as setup left it,
/// which is in `before`, or empty.
pub(super) fn graders_shell(
    shell: &Shell,
    folders: &Folders,
    case: &Case,
    before: Option<&Before>,
) -> Result<Shell, TrialError> {
    let mut shell = shell.clone();
    if !case.graders.iter().any(|grader| grader.kind.needs().commands) {
        return Ok(shell);
    }
    let home = graders_home::make(folders, before.and_then(Before::home))?;
    environment::isolate_graders(&mut shell.env, &home);
    if let Some(inside) = &mut shell.inside {
        let new = scratch(inside, &home, folders.beside("graders-tmp"));
        let old = std::mem::replace(&mut inside.places.scratch, new.clone());
        // An agent without a sandbox may have created the folder.
        remove(&new).map_err(io("make a scratch folder"))?;
        fs::create_dir_all(&new).map_err(io("make a scratch folder"))?;
        for name in crate::sandbox::TEMPORARY {
            // A folder that the case itself names is not changed.
            if let Some(folder) = shell.env.get_mut(name).filter(|folder| Path::new(folder.as_str()) == old) {
                *folder = new.to_string_lossy().into_owned();
            }
        }
        inside.places.home = home;
        inside.places.around = before.and_then(|before| before.around(folders));
        // The agent's home and scratch folder. Links are left out, because bubblewrap would hide what they lead to.
        let of_agent = [folders.home.clone(), folders.beside(graders_home::AGENTS_HOME), old];
        let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let hides = of_agent.into_iter().filter(|path| *path != inside.places.home && is_folder(path));
        inside.places.hides_around = hides.collect();
        if let Sandbox::Bwrap { .. } = inside.sandbox {
            let found = before.map_or(folders.workspace.as_path(), |before| before.path.as_path());
            let fixed = fixed(case, found).map_err(io("look at the protected files"))?;
            inside.places.fixed = fixed.iter().map(|folder| folders.workspace.join(folder)).collect();
        }
    }
    Ok(shell)
}

/// Returns the folders of hidden and protected files, outer ones first: one that is moved aside and back leaves no trace. `found` is
/// the workspace as the agent found it.
fn fixed(case: &Case, found: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = case.hidden.as_deref().map(folders_of_hidden).unwrap_or_default();
    folders.extend(protected::folders(case, found)?);
    folders.sort_by_key(|path| (path.iter().count(), path.clone()));
    folders.dedup();
    Ok(folders)
}

/// Returns the graders' shell in an empty folder, for trials without a workspace.
pub(super) fn nowhere(shell: &Shell, folders: &Folders) -> Result<Shell, TrialError> {
    let mut shell = shell.clone();
    shell.folder = folders.beside("nowhere");
    fs::create_dir_all(&shell.folder).map_err(io("make an empty folder for the graders"))?;
    if let Some(inside) = &mut shell.inside {
        inside.places.workspace.clone_from(&shell.folder);
        inside.places.fixed.clear();
    }
    Ok(shell)
}

/// Returns the folder that is `/tmp` to the agent, if its sandbox has one.
pub(super) fn temporary(inside: &TrialSandbox) -> Option<&Path> {
    matches!(inside.sandbox, Sandbox::Bwrap { .. }).then_some(inside.places.scratch.as_path())
}

/// Returns a watch for paths outside the trial in calls of an agent. Nothing confines an agent without a sandbox. In bubblewrap,
/// it can see a work tree of the case's repository if a mount shows it: such a tree is not hidden, because the agent's program
/// may be in it. A work tree matters if another commit than that of the workspace is checked out there.
pub(super) fn outside(inside: &TrialSandbox, folders: &Folders, case: &Case, launch: &process::Launch) -> Outside {
    let mut roots = match inside.sandbox {
        Sandbox::None => inside.places.hides.clone(),
        Sandbox::Bwrap { .. } => Vec::new(),
        Sandbox::Command(_) => return Outside::default(),
    };
    if let WorkspaceSource::Git(source) = &case.workspace.source {
        let is_shown = |tree: &PathBuf| tree.canonicalize().is_ok_and(|tree| inside.shows(launch, &tree));
        roots.extend(git_folders::other_work_trees(source).into_iter().filter(is_shown));
    }
    let own = folders.workspace.parent().unwrap_or(&folders.workspace);
    Outside::new(&roots, own, &folders.workspace)
}

/// Wraps the agent's command in its sandbox. Files that the manifest names by absolute paths are readable. A
/// missing program is left unchanged, so that errors name it.
pub(super) fn confine(
    task: &mut Task,
    mut inside: TrialSandbox,
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
    // A folder may contain hidden files; it needs a separate mount.
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
