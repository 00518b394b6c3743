//! Keeps files above a workspace from deciding how it is graded: test runners and build tools look for settings in the
//! folders above the one in which they run, and an agent without a sandbox can leave some there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::settings_above::{SettingsAbove, is_setting};
use crate::case::Case;
use crate::grade::GradeRecord;
use crate::grader::Kind;
use crate::result::{TrialResult, Warning};
use crate::run::temporary::Vanishing;
use crate::workspace::link_targets::LinkTargets;
use crate::workspace::remove::remove;
use crate::workspace::stamp::FolderStamps;
use crate::workspace::tree_digest::tree_digest;
use crate::workspace::walk::{Descend, walk};
use crate::workspace::{copy_as_it_is, same};

/// The engine's own folders in the private folder of a trial.
const OWN: [&str; 8] = ["workspace", "home", "agents-home", "tmp", "graders-home", "graders-tmp", "nowhere", "trial"];
/// The engine's own files and folders in the folder that all trials share.
const OWN_SHARED: [&str; 5] = [".lock", "cases", "git-home", "index", "index.lock"];
/// The beginnings of the names of the engine's further files and folders there.
const OWN_STARTS: [&str; 10] =
    ["trial-", "before-", "home-", "beside-", "version-", "judge-", "audit-", "trace-", "mine-", "resolve-"];
/// The maximum number of paths in a warning.
const MAX_NAMED_PATHS: usize = 20;

/// The files and folders that the setup of a case left beside the workspace.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// A copy of the settings. Absent if setup left none.
    copy: Option<Vanishing>,
    /// The names of everything that setup left there, with their stamps. The agent may work in these folders, such as a repository
    /// that it pushes to. A stamp is absent if the folder could not be read.
    left: BTreeMap<OsString, Option<FolderStamps>>,
}

impl Beside {
    /// Returns the copy. Absent if setup left no settings.
    pub(super) fn copy(&self) -> Option<&Path> {
        self.copy.as_ref().map(Vanishing::path)
    }

    /// Returns what setup left beside the workspace, by its paths relative to the workspace and on this machine.
    pub(super) fn paths(&self, workspace: &Path) -> Vec<(PathBuf, PathBuf)> {
        let trial = workspace.parent().unwrap_or(workspace);
        self.left.keys().map(|name| (Path::new("..").join(name), trial.join(name))).collect()
    }

    /// Returns true if setup left nothing beside the workspace.
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns true if something that setup left beside the workspace changed since, or if this is unknown.
    pub(super) fn is_changed(&self) -> bool {
        self.left.values().any(|stamps| stamps.as_ref().is_none_or(|stamps| stamps.first_change().is_some()))
    }

    /// Returns the links beside the workspace that were made or changed since setup left its files there, by their paths relative
    /// to the workspace.
    pub(super) fn changed_links(&self, workspace: &Path) -> BTreeSet<PathBuf> {
        let trial = workspace.parent().unwrap_or(workspace);
        let mut links = BTreeSet::new();
        for (name, stamps) in &self.left {
            let root = trial.join(name);
            let changed = stamps.as_ref().map_or_else(|| all_in(&root), FolderStamps::changes);
            // A path with an empty end would name what a link leads to.
            let paths = changed.iter().map(|path| match path.as_os_str().is_empty() {
                true => PathBuf::from(name),
                false => Path::new(name).join(path),
            });
            let found = paths.filter(|path| trial.join(path).is_symlink());
            links.extend(found.map(|path| Path::new("..").join(path)));
        }
        links
    }

    /// Returns the absolute paths of what changed beside the workspace since setup left it.
    fn changes(&self, trial: &Path) -> Vec<PathBuf> {
        let of = |(name, stamps): (&OsString, &Option<FolderStamps>)| {
            let root = trial.join(name);
            let changes = stamps.as_ref().map_or_else(|| BTreeSet::from([PathBuf::new()]), FolderStamps::changes);
            changes.into_iter().map(move |path| root.join(path))
        };
        self.left.iter().flat_map(of).collect()
    }
}

/// Returns true if a setting that is a link, or a link in a folder of settings, leads to one of the changed paths, also by other
/// links, or if this is unknown.
fn leads_to_changed(setting: &Path, changes: &[PathBuf]) -> bool {
    if changes.is_empty() {
        return false;
    }
    let mut links = Vec::new();
    if setting.is_symlink() {
        links.push(setting.to_owned());
    } else if setting.is_dir() {
        // What cannot be read differs from the copy.
        let _ = walk(setting, |path, meta| {
            links.extend(meta.is_symlink().then(|| setting.join(path)));
            Descend::Enter
        });
    }
    links.iter().any(|link| {
        let found = LinkTargets::of(link);
        let is_changed =
            |place: &PathBuf| changes.iter().any(|path| path.starts_with(place) || place.starts_with(path));
        found.is_unknown || found.places.iter().any(is_changed)
    })
}

/// Returns the paths of a folder and of everything in it, relative to the folder.
fn all_in(root: &Path) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::from([PathBuf::new()]);
    let _ = walk(root, |path, _| {
        paths.insert(path.to_owned());
        Descend::Enter
    });
    paths
}

/// Returns true if files above the workspace can decide how a case is graded: a grader runs commands.
pub(super) fn matters(case: &Case) -> bool {
    case.graders.iter().any(|grader| grader.kind.needs().commands)
}

/// Looks at what the setup of a case left beside the workspace, and copies the settings.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn as_set_up(workspace: &Path, temporary: &Path) -> io::Result<Beside> {
    let trial = workspace.parent().unwrap_or(workspace);
    let mut beside = Beside::default();
    for name in names(trial)? {
        if is_setting(&name) {
            let kept = match beside.copy.take() {
                Some(kept) => kept,
                None => Vanishing::make(temporary, "beside-")?,
            };
            copy(&trial.join(&name), &kept.path().join(&name))?;
            beside.copy = Some(kept);
        }
        let stamps = FolderStamps::of(&trial.join(&name)).ok();
        beside.left.insert(name, stamps);
    }
    Ok(beside)
}

/// Removes everything that is neither the engine's own nor of setup from the private folder of a trial, beside the workspace, and
/// everything that is not the engine's own from the folder that all trials share: a list of settings would lack those of the
/// next tool. Returns a warning for what was removed, and one for settings that changed and stay: those of setup, and `of_user`, in
/// folders of the user.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn clear(
    workspace: &Path,
    beside: &Beside,
    temporary: &Path,
    of_user: &SettingsAbove,
) -> io::Result<Vec<Warning>> {
    let trial = workspace.parent().unwrap_or(workspace);
    let mut removed = clear_beside(workspace, beside)?;
    removed.extend(clear_shared(temporary)?);
    let kept = beside.copy().map(names).transpose()?.unwrap_or_default();
    let changes = if kept.is_empty() { Vec::new() } else { beside.changes(trial) };
    let is_changed = |name: &&OsString| {
        let place = trial.join(name);
        beside.copy().is_some_and(|copy| !is_same(&copy.join(name), &place) || leads_to_changed(&place, &changes))
    };
    let mut changed: Vec<String> = kept.iter().filter(is_changed).map(|name| shown(name)).collect();
    changed.extend(of_user.changed());
    Ok([warning(&removed, true), warning(&changed, false)].into_iter().flatten().collect())
}

/// Removes everything that is neither the engine's own nor of setup from the private folder of a trial. Returns the paths relative
/// to the workspace.
///
/// # Errors
/// Returns an error if the file system refuses.
fn clear_beside(workspace: &Path, beside: &Beside) -> io::Result<Vec<String>> {
    let trial = workspace.parent().unwrap_or(workspace);
    let mut removed = Vec::new();
    for name in names(trial)?.into_iter().filter(|name| !beside.left.contains_key(name)) {
        remove(&trial.join(&name))?;
        removed.push(shown(&name));
    }
    Ok(removed)
}

/// Returns the stamps of the settings that setup left beside the workspace, as far as they are there.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn stamps_of_settings(trial: &Path, beside: &Beside) -> io::Result<BTreeMap<OsString, FolderStamps>> {
    let mut stamps = BTreeMap::new();
    for name in beside.copy().map(names).transpose()?.unwrap_or_default() {
        if let Ok(found) = FolderStamps::of(&trial.join(&name)) {
            stamps.insert(name, found);
        }
    }
    Ok(stamps)
}

/// Puts back the settings of setup that changed since `stamps` were taken, and takes their stamps anew. Returns the paths
/// relative to the workspace.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn put_back_settings(
    trial: &Path,
    beside: &Beside,
    stamps: &mut BTreeMap<OsString, FolderStamps>,
) -> io::Result<Vec<String>> {
    let Some(kept) = beside.copy() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for name in names(kept)? {
        let (original, place) = (kept.join(&name), trial.join(&name));
        let is_unchanged = match stamps.get(&name) {
            Some(stamps) => stamps.first_change().is_none(),
            None => place.symlink_metadata().is_err(),
        };
        if is_unchanged || is_same(&original, &place) {
            continue;
        }
        remove(&place)?;
        copy(&original, &place)?;
        found.push(shown(&name));
        stamps.insert(name, FolderStamps::of(&place)?);
    }
    Ok(found)
}

fn shown(name: &OsStr) -> String {
    format!("../{}", name.to_string_lossy())
}

/// Clears the folder that all trials share, and returns a warning if something was removed. It came while the trial was
/// graded, from another trial.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn after_grading(temporary: &Path) -> io::Result<Option<Warning>> {
    Ok(warning(&clear_shared(temporary)?, false))
}

/// Makes passes of graders that run commands ungraded if settings lay above the workspace, because the commands may have read
/// them. Returns true if a grade was changed.
pub(super) fn withdraw(result: &mut TrialResult, warnings: &[Warning]) -> bool {
    let Some(path) = changed_in(warnings).next() else { return false };
    let mut any = false;
    let by_command = |grade: &&mut GradeRecord| grade.passed == Some(true) && Kind::needs_of(&grade.grader).commands;
    for grade in result.grades.iter_mut().filter(by_command) {
        grade.withdraw(format!(
            "passed while `{path}` lay above the workspace, which test runners may read, so the result is unknown: {}",
            grade.reason
        ));
        any = true;
    }
    any
}

/// Returns the paths above the workspace that may have decided the grading, from warnings.
pub(super) fn changed_in(warnings: &[Warning]) -> impl Iterator<Item = &String> {
    warnings.iter().flat_map(Warning::settings_above)
}

pub(super) fn warning(paths: &[String], put_back: bool) -> Option<Warning> {
    let some: Vec<String> = paths.iter().take(MAX_NAMED_PATHS).cloned().collect();
    let count = paths.len() as u64;
    (count > 0).then_some(Warning::FilesAboveWorkspace { paths: some, count, put_back })
}

/// Removes everything from the folder that all trials share that is not the engine's own, and returns the paths relative to a
/// workspace.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn clear_shared(temporary: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in names(temporary)?.into_iter().filter(|name| !is_own(name)) {
        remove(&temporary.join(&name))?;
        found.push(format!("../../{}", name.to_string_lossy()));
    }
    Ok(found)
}

/// Returns true for the name of a file or folder that the engine makes in the folder that all trials share.
fn is_own(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    OWN_SHARED.contains(&&*name) || OWN_STARTS.iter().any(|start| name.starts_with(start))
}

/// Returns the names in a folder, without those of the engine's own folders in a trial.
fn names(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    let names = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name()));
    names.filter(|name| !name.as_ref().is_ok_and(|name| OWN.iter().any(|own| name == own))).collect()
}

/// Copies a file, a link or a folder.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let meta = from.symlink_metadata()?;
    match () {
        () if meta.is_dir() => copy_as_it_is(from, to).map_err(io::Error::other),
        () if meta.is_symlink() => symlink(fs::read_link(from)?, to),
        () if meta.is_file() => fs::copy(from, to).map(drop),
        // No copy holds a socket, a pipe or a device.
        () => Ok(()),
    }
}

/// Returns true if two files, links or folders are the same. What cannot be read is not.
fn is_same(one: &Path, other: &Path) -> bool {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    match is_folder(one) && is_folder(other) {
        true => tree_digest(one).is_ok_and(|digest| tree_digest(other).is_ok_and(|of_other| of_other == digest)),
        false => same::content(one, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_agent_are_removed_and_those_of_setup_stay() {
        let root = tempfile::tempdir().unwrap();
        let shared = root.path().join("shared");
        let trial = shared.join("trial-x");
        for folder in [&trial.join("workspace"), &trial.join("home"), &trial.join("dep"), &shared.join("trial-y")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(trial.join("dep/lib.py"), "x = 1\n").unwrap();
        fs::write(trial.join("setup.cfg"), "[a]\n").unwrap();
        symlink("setup.cfg", trial.join("tox.ini")).unwrap();
        let workspace = trial.join("workspace");
        let beside = as_set_up(&workspace, &shared).unwrap();
        let of_user = SettingsAbove::of(&shared).unwrap();
        assert!(clear(&workspace, &beside, &shared, &of_user).unwrap().is_empty());
        fs::write(trial.join("dep/lib.py"), "x = 2\n").unwrap();
        fs::create_dir(trial.join("worktree")).unwrap();
        fs::write(trial.join("pytest.ini"), "[pytest]\n").unwrap();
        fs::create_dir(shared.join(".cargo")).unwrap();
        fs::write(shared.join("tool.of-tomorrow"), "").unwrap();
        fs::write(shared.join("index"), "").unwrap();
        let warning = |paths: &[&str], put_back| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            Warning::FilesAboveWorkspace { count: paths.len() as u64, paths, put_back }
        };
        let removed = ["../pytest.ini", "../worktree", "../../.cargo", "../../tool.of-tomorrow"];
        let removed = warning(&removed, true);
        assert_eq!(clear(&workspace, &beside, &shared, &of_user).unwrap(), [removed]);
        assert_eq!(fs::read_to_string(trial.join("dep/lib.py")).unwrap(), "x = 2\n");
        assert!(!trial.join("worktree").exists() && !trial.join("pytest.ini").exists());
        assert!(!shared.join(".cargo").exists() && shared.join("index").exists() && shared.join("trial-y").exists());
        // Settings of setup that the agent changed stay, and are reported.
        fs::write(trial.join("setup.cfg"), "[b]\n").unwrap();
        fs::remove_file(trial.join("tox.ini")).unwrap();
        let changed = warning(&["../setup.cfg", "../tox.ini"], false);
        assert_eq!(clear(&workspace, &beside, &shared, &of_user).unwrap(), [changed]);
        assert_eq!(fs::read_to_string(trial.join("setup.cfg")).unwrap(), "[b]\n");
    }

    #[test]
    fn settings_are_put_back_and_a_link_counts_by_what_it_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let trial = root.path().join("trial-x");
        let workspace = trial.join("workspace");
        fs::create_dir_all(&workspace).unwrap();
        fs::create_dir(trial.join("d")).unwrap();
        fs::write(trial.join("d/pytest.ini"), "[a]\n").unwrap();
        fs::write(trial.join("setup.cfg"), "[a]\n").unwrap();
        symlink("d/pytest.ini", trial.join("pytest.ini")).unwrap();
        let beside = as_set_up(&workspace, root.path()).unwrap();
        let of_user = SettingsAbove::of(root.path()).unwrap();
        assert!(!beside.is_changed());
        let mut stamps = stamps_of_settings(&trial, &beside).unwrap();
        assert!(put_back_settings(&trial, &beside, &mut stamps).unwrap().is_empty());
        fs::write(trial.join("setup.cfg"), "[forged]\n").unwrap();
        assert_eq!(put_back_settings(&trial, &beside, &mut stamps).unwrap(), ["../setup.cfg"]);
        assert_eq!(fs::read_to_string(trial.join("setup.cfg")).unwrap(), "[a]\n");
        assert!(put_back_settings(&trial, &beside, &mut stamps).unwrap().is_empty());
        assert!(clear(&workspace, &beside, root.path(), &of_user).unwrap().is_empty());
        fs::write(trial.join("d/pytest.ini"), "[forged]\n").unwrap();
        assert!(beside.is_changed());
        let warnings = clear(&workspace, &beside, root.path(), &of_user).unwrap();
        let [Warning::FilesAboveWorkspace { paths, put_back: false, .. }] = &*warnings else { panic!("{warnings:?}") };
        assert_eq!(paths, &["../pytest.ini"]);
    }

    #[test]
    fn a_setting_that_leads_on_by_links_or_holds_one_changes_with_the_file_at_the_end() {
        let root = tempfile::tempdir().unwrap();
        let trial = root.path().canonicalize().unwrap().join("trial-x");
        let workspace = trial.join("workspace");
        for folder in [&workspace, &trial.join(".cargo"), &trial.join("d"), &trial.join("origin.git")] {
            fs::create_dir_all(folder).unwrap();
        }
        for name in ["a", "b", "c"] {
            fs::write(trial.join("d").join(name), "[a]\n").unwrap();
        }
        symlink("d/a", trial.join("next")).unwrap();
        symlink("next", trial.join("pytest.ini")).unwrap();
        symlink("../d/b", trial.join(".cargo/config.toml")).unwrap();
        let beside = as_set_up(&workspace, root.path()).unwrap();
        let of_user = SettingsAbove::of(root.path()).unwrap();
        let changed = || match &*clear(&workspace, &beside, root.path(), &of_user).unwrap() {
            [] => Vec::new(),
            [Warning::FilesAboveWorkspace { paths, put_back: false, .. }] => paths.clone(),
            other => panic!("{other:?}"),
        };
        // Work in other files of setup changes no setting.
        fs::write(trial.join("origin.git/new"), "").unwrap();
        fs::write(trial.join("d/c"), "[other]\n").unwrap();
        assert!(changed().is_empty());
        fs::write(trial.join("d/b"), "[forged]\n").unwrap();
        assert_eq!(changed(), ["../.cargo"]);
        fs::write(trial.join("d/a"), "[forged]\n").unwrap();
        assert_eq!(changed(), ["../.cargo", "../pytest.ini"]);
    }
}
