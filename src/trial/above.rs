//! Keeps files above a workspace from deciding how it is graded: test runners and build tools look for settings in the
//! folders above the one in which they run, and an agent without a sandbox can leave some there.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::case::Case;
use crate::grade::{GradeRecord, Outcome};
use crate::grader::Kind;
use crate::result::{TrialResult, Warning};
use crate::run::temporary::Vanishing;
use crate::workspace::copy_as_it_is;
use crate::workspace::remove::remove;
use crate::workspace::tree_digest::tree_digest;

/// The engine's own folders in the private folder of a trial.
const OWN: [&str; 3] = ["workspace", "home", "tmp"];
/// The maximum number of paths in a warning.
const NAMED: usize = 20;
/// Files and folders that test runners, build tools and languages look for in each folder above the one in which they run.
const SETTINGS: [&str; 36] = [
    ".cargo",
    "Cargo.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "setup.py",
    "pyproject.toml",
    "conftest.py",
    "__init__.py",
    "package.json",
    "node_modules",
    ".npmrc",
    ".swcrc",
    "jsconfig.json",
    "deno.json",
    "bunfig.toml",
    "go.mod",
    "go.work",
    "pom.xml",
    ".mvn",
    "gradle.properties",
    "Gemfile",
    ".rspec",
    "composer.json",
    ".tool-versions",
    ".python-version",
    ".node-version",
    ".ruby-version",
    "mise.toml",
    ".mise.toml",
    ".envrc",
];
/// The beginnings of the names of further settings.
const STARTS: [&str; 14] = [
    ".mocharc",
    ".babelrc",
    ".postcssrc",
    ".nycrc",
    ".c8rc",
    "jest.config.",
    "vitest.",
    "vite.config.",
    "ava.config.",
    "babel.config.",
    "postcss.config.",
    "tsconfig.",
    "settings.gradle",
    "build.gradle",
];

/// Returns true if files above the workspace can decide how a case is graded: a grader runs commands.
pub(super) fn matters(case: &Case) -> bool {
    case.graders.iter().any(|grader| grader.kind.needs().commands)
}

/// Copies what the setup of a case left beside the workspace, such as a package that the workspace names by `../`. Returns
/// `None` if it left nothing there.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn as_set_up(workspace: &Path, temporary: &Path) -> io::Result<Option<Vanishing>> {
    let trial = workspace.parent().unwrap_or(workspace);
    let names = names(trial)?;
    if names.is_empty() {
        return Ok(None);
    }
    let kept = Vanishing::make(temporary, "beside-")?;
    for name in names {
        copy(&trial.join(&name), &kept.path().join(&name))?;
    }
    Ok(Some(kept))
}

/// Removes what an agent left in the private folder of its trial beside the workspace, and restores what it changed there:
/// `kept` is the copy of [`as_set_up`]. In the folder that all trials share, settings are removed. Returns a warning for
/// each kind of place.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn restore(workspace: &Path, kept: Option<&Path>, temporary: &Path) -> io::Result<Vec<Warning>> {
    let trial = workspace.parent().unwrap_or(workspace);
    let mut found = BTreeSet::new();
    for name in names(trial)? {
        let place = trial.join(&name);
        if !kept.is_some_and(|kept| is_same(&kept.join(&name), &place)) {
            remove(&place)?;
            found.insert(name);
        }
    }
    if let Some(kept) = kept {
        for name in names(kept)? {
            let place = trial.join(&name);
            if place.symlink_metadata().is_err() {
                copy(&kept.join(&name), &place)?;
                found.insert(name);
            }
        }
    }
    let mut paths: Vec<String> = found.iter().map(|name| format!("../{}", name.to_string_lossy())).collect();
    paths.extend(removed_settings(temporary)?);
    Ok([warning(&paths, true), warning(&new_settings(temporary), false)].into_iter().flatten().collect())
}

/// Removes settings from the folder that all trials share, and returns a warning if there were some. They came while the
/// trial was graded, from the agent of another trial.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn after_grading(temporary: &Path) -> io::Result<Option<Warning>> {
    Ok(warning(&removed_settings(temporary)?, false))
}

/// Withdraws what passed by a command while settings lay above the workspace, which may have decided it. Returns true if
/// anything was withdrawn.
pub(super) fn withdraw(result: &mut TrialResult, warnings: &[Warning]) -> bool {
    let path = warnings.iter().find_map(|warning| match warning {
        Warning::FilesAboveWorkspace { paths, put_back: false, .. } => paths.first(),
        _ => None,
    });
    let Some(path) = path else { return false };
    let mut any = false;
    let by_command = |grade: &&mut GradeRecord| grade.passed == Some(true) && Kind::needs_of(&grade.grader).commands;
    for grade in result.grades.iter_mut().filter(by_command) {
        (grade.outcome, grade.value, grade.passed) = (Outcome::Ungraded, None, None);
        grade.evidence = Vec::new();
        grade.reason = format!(
            "passed while `{path}` lay above the workspace, which test runners may read, so the result is unknown: {}",
            grade.reason
        );
        any = true;
    }
    any
}

fn warning(paths: &[String], put_back: bool) -> Option<Warning> {
    let some: Vec<String> = paths.iter().take(NAMED).cloned().collect();
    let count = paths.len() as u64;
    (count > 0).then_some(Warning::FilesAboveWorkspace { paths: some, count, put_back })
}

/// Removes the settings in the folder that all trials share, and returns their paths relative to a workspace.
fn removed_settings(temporary: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for name in names(temporary)?.into_iter().filter(|name| is_setting(name)) {
        remove(&temporary.join(&name))?;
        found.push(format!("../../{}", name.to_string_lossy()));
    }
    Ok(found)
}

/// Returns the settings in the folders above the engine's own that changed since the engine made its folder. They are not
/// removed, because these folders belong to the user.
fn new_settings(temporary: &Path) -> Vec<String> {
    let Ok(lock) = temporary.join(".lock").metadata() else { return Vec::new() };
    let began = (lock.mtime(), lock.mtime_nsec());
    let is_new = |meta: &Metadata| (meta.ctime(), meta.ctime_nsec()) > began;
    let changed = |path: &Path| {
        // Programs use other files in this folder.
        let settings = if path.ends_with(".cargo") {
            ["config", "config.toml"].map(|it| path.join(it)).to_vec()
        } else {
            vec![path.to_owned()]
        };
        settings.iter().any(|path| path.symlink_metadata().is_ok_and(|meta| is_new(&meta)))
    };
    let above = temporary.ancestors().skip(1);
    let settings = above.flat_map(|folder| {
        let names = names(folder).unwrap_or_default().into_iter().filter(|name| is_setting(name));
        names.map(|name| folder.join(name)).collect::<Vec<PathBuf>>()
    });
    settings.filter(|path| changed(path)).map(|path| path.display().to_string()).collect()
}

/// Returns the names in a folder, without those of the engine's own folders in a trial.
fn names(folder: &Path) -> io::Result<BTreeSet<OsString>> {
    let names = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name()));
    names.filter(|name| !name.as_ref().is_ok_and(|name| OWN.iter().any(|own| name == own))).collect()
}

fn is_setting(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    SETTINGS.contains(&&*name) || STARTS.iter().any(|start| name.starts_with(start))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
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
    let (Ok(meta), Ok(meta_of_other)) = (one.symlink_metadata(), other.symlink_metadata()) else { return false };
    let content = |path: &Path, meta: &Metadata| match () {
        () if meta.is_dir() => tree_digest(path).ok().map(String::into_bytes),
        () if meta.is_symlink() => fs::read_link(path).ok().map(|to| to.into_os_string().into_encoded_bytes()),
        () if meta.is_file() => fs::read(path).ok(),
        () => None,
    };
    let is_there = content(one, &meta);
    meta.file_type() == meta_of_other.file_type() && is_there.is_some() && is_there == content(other, &meta_of_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_setup_left_beside_a_workspace_is_restored_and_the_rest_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let (trial, kept, shared) = (root.path().join("trial"), root.path().join("kept"), root.path().join("shared"));
        for folder in [&trial.join("workspace"), &trial.join("home"), &trial.join("dep"), &shared.join("trial-x")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(trial.join("dep/lib.py"), "x = 1\n").unwrap();
        fs::write(trial.join("same"), "same").unwrap();
        symlink("dep", trial.join("link")).unwrap();
        copy_as_it_is(&trial, &kept).unwrap();
        let workspace = trial.join("workspace");
        assert!(restore(&workspace, Some(&kept), &shared).unwrap().is_empty());
        fs::write(trial.join("dep/lib.py"), "x = 2\n").unwrap();
        fs::write(trial.join("pytest.ini"), "[pytest]\n").unwrap();
        fs::remove_file(trial.join("link")).unwrap();
        fs::create_dir(shared.join(".cargo")).unwrap();
        fs::write(shared.join("index"), "").unwrap();
        let paths = ["../dep", "../link", "../pytest.ini", "../../.cargo"].map(str::to_owned).to_vec();
        let told = Warning::FilesAboveWorkspace { paths, count: 4, put_back: true };
        assert_eq!(restore(&workspace, Some(&kept), &shared).unwrap(), [told]);
        assert_eq!(fs::read_to_string(trial.join("link/lib.py")).unwrap(), "x = 1\n");
        assert!(!trial.join("pytest.ini").exists() && !shared.join(".cargo").exists());
        assert!(trial.join("same").exists() && shared.join("index").exists() && shared.join("trial-x").exists());
    }
}
