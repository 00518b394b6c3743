//! Keeps files above a workspace from deciding how it is graded: test runners and build tools look for settings in the
//! folders above the one in which they run, and an agent without a sandbox can leave some there.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType, Metadata};
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
/// The engine's own files and folders in the folder that all trials share.
const OWN_SHARED: [&str; 6] = [".lock", "empty", "cases", "git-home", "index", "index.lock"];
/// The beginnings of the names of the engine's further files and folders there.
const OWN_STARTS: [&str; 10] =
    ["trial-", "before-", "home-", "beside-", "version-", "judge-", "audit-", "trace-", "mine-", "resolve-"];
/// The maximum number of paths in a warning.
const NAMED: usize = 20;
/// Files and folders that test runners, build tools and languages look for in each folder above the one in which they run.
const SETTINGS: [&str; 57] = [
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
    "ruff.toml",
    ".ruff.toml",
    ".flake8",
    "rustfmt.toml",
    ".rustfmt.toml",
    "clippy.toml",
    ".clippy.toml",
    ".clang-format",
    ".git",
    "global.json",
    "Directory.Build.props",
    "Directory.Build.targets",
    "deno.jsonc",
    ".pnp.cjs",
    ".yarnrc.yml",
    ".env",
    "mypy.ini",
    ".mypy.ini",
    "pnpm-workspace.yaml",
    ".coveragerc",
    "nose.cfg",
];
/// The beginnings of the names of further settings.
const STARTS: [&str; 21] = [
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
    ".eslintrc",
    "eslint.config.",
    ".prettierrc",
    "prettier.config.",
    "playwright.config.",
    "webdriver",
    "karma.conf.",
];

/// The files that the setup of a case left beside the workspace, such as a package that the workspace names by `../`.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// A copy of it. Absent if setup left no file, folder or link there.
    copy: Option<Vanishing>,
    /// The sockets, pipes and devices, which no copy holds.
    special: BTreeMap<OsString, FileType>,
}

impl Beside {
    /// Returns the copy. Absent if setup left no file, folder or link there.
    pub(super) fn copy(&self) -> Option<&Path> {
        self.copy.as_ref().map(Vanishing::path)
    }

    /// Returns true if a place with a name is as setup left it.
    fn has(&self, name: &OsStr, place: &Path) -> bool {
        let is_of = |kind: &FileType| place.symlink_metadata().is_ok_and(|meta| meta.file_type() == *kind);
        self.special.get(name).is_some_and(is_of) || self.copy().is_some_and(|copy| is_same(&copy.join(name), place))
    }
}

/// Returns true if files above the workspace can decide how a case is graded: a grader runs commands.
pub(super) fn matters(case: &Case) -> bool {
    case.graders.iter().any(|grader| grader.kind.needs().commands)
}

/// Copies what the setup of a case left beside the workspace.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn as_set_up(workspace: &Path, temporary: &Path) -> io::Result<Beside> {
    let trial = workspace.parent().unwrap_or(workspace);
    let mut beside = Beside::default();
    for name in names(trial)? {
        let place = trial.join(&name);
        let kind = place.symlink_metadata()?.file_type();
        if kind.is_dir() || kind.is_file() || kind.is_symlink() {
            let kept = match beside.copy.take() {
                Some(kept) => kept,
                None => Vanishing::make(temporary, "beside-")?,
            };
            copy(&place, &kept.path().join(&name))?;
            beside.copy = Some(kept);
        } else {
            beside.special.insert(name, kind);
        }
    }
    Ok(beside)
}

/// Removes what an agent left in the private folder of its trial beside the workspace, and restores what it changed there.
/// In the folder that all trials share, everything that is not the engine's own is removed. Returns a warning for each kind
/// of place.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn restore(workspace: &Path, beside: &Beside, temporary: &Path) -> io::Result<Vec<Warning>> {
    let trial = workspace.parent().unwrap_or(workspace);
    let mut found = BTreeSet::new();
    for name in names(trial)? {
        let place = trial.join(&name);
        if !beside.has(&name, &place) {
            remove(&place)?;
            found.insert(name);
        }
    }
    if let Some(kept) = beside.copy() {
        for name in names(kept)? {
            let place = trial.join(&name);
            if place.symlink_metadata().is_err() {
                copy(&kept.join(&name), &place)?;
                found.insert(name);
            }
        }
    }
    let mut paths: Vec<String> = found.iter().map(|name| format!("../{}", name.to_string_lossy())).collect();
    paths.extend(clear_shared(temporary)?);
    Ok([warning(&paths, true), warning(&new_settings(temporary), false)].into_iter().flatten().collect())
}

/// Clears the folder that all trials share, and returns a warning if something was removed. It came while the trial was
/// graded, from another trial.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn after_grading(temporary: &Path) -> io::Result<Option<Warning>> {
    Ok(warning(&clear_shared(temporary)?, false))
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

/// Removes everything from the folder that all trials share that is not the engine's own, and returns the paths relative to a
/// workspace. A list of settings would lack those of the next tool.
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

/// Returns the settings in the folders above the engine's own that changed since the engine made its folder. They are not
/// removed, because these folders belong to the user.
fn new_settings(temporary: &Path) -> Vec<String> {
    let Ok(lock) = temporary.join(".lock").metadata() else { return Vec::new() };
    let began = (lock.mtime(), lock.mtime_nsec());
    let is_new = |meta: &Metadata| (meta.ctime(), meta.ctime_nsec()) > began;
    let changed = |path: &Path| {
        // Programs use other files in these folders.
        let settings = match path.file_name().and_then(OsStr::to_str) {
            Some(".cargo") => ["config", "config.toml"].map(|it| path.join(it)).to_vec(),
            Some(".git") if path.is_dir() => ["HEAD", "config"].map(|it| path.join(it)).to_vec(),
            _ => vec![path.to_owned()],
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
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_setup_left_beside_a_workspace_is_restored_and_the_rest_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let shared = root.path().join("shared");
        let trial = shared.join("trial-x");
        for folder in [&trial.join("workspace"), &trial.join("home"), &trial.join("dep"), &shared.join("trial-y")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(trial.join("dep/lib.py"), "x = 1\n").unwrap();
        fs::write(trial.join("same"), "same").unwrap();
        symlink("dep", trial.join("link")).unwrap();
        // A socket stays when its listener is closed.
        drop(UnixListener::bind(trial.join("socket")).unwrap());
        let workspace = trial.join("workspace");
        let beside = as_set_up(&workspace, &shared).unwrap();
        assert!(restore(&workspace, &beside, &shared).unwrap().is_empty());
        fs::write(trial.join("dep/lib.py"), "x = 2\n").unwrap();
        fs::write(trial.join("pytest.ini"), "[pytest]\n").unwrap();
        drop(UnixListener::bind(trial.join("other")).unwrap());
        fs::remove_file(trial.join("link")).unwrap();
        fs::create_dir(shared.join(".cargo")).unwrap();
        fs::write(shared.join("tool.of-tomorrow"), "").unwrap();
        fs::write(shared.join("index"), "").unwrap();
        let paths = ["../dep", "../link", "../other", "../pytest.ini", "../../.cargo", "../../tool.of-tomorrow"];
        let paths = paths.map(str::to_owned).to_vec();
        let told = Warning::FilesAboveWorkspace { paths, count: 6, put_back: true };
        assert_eq!(restore(&workspace, &beside, &shared).unwrap(), [told]);
        assert_eq!(fs::read_to_string(trial.join("link/lib.py")).unwrap(), "x = 1\n");
        assert!(!trial.join("pytest.ini").exists() && !shared.join(".cargo").exists());
        assert!(trial.join("same").exists() && trial.join("socket").exists());
        assert!(shared.join("index").exists() && shared.join("trial-y").exists());
    }
}
