//! Protected and hidden files while graders run commands: newer than everything that the agent or an earlier grader built, and
//! without compiled forms of their Python modules.

use std::collections::BTreeSet;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT, utimensat};

use super::protected;
use crate::case::Case;
use crate::workspace::hidden::changed::{is_lock_file, remove_within};
use crate::workspace::same;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::walk::{Descend, walk};

/// Files of package managers, besides lock files. A rule such as `node_modules: package.json` installs again if the file is newer,
/// which may need the network. Their time decides no build of code.
const OF_PACKAGES: [&str; 8] = [
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    "Gemfile",
    "composer.json",
    "environment.yml",
];
/// Python's folder for compiled modules.
const COMPILED: &str = "__pycache__";
/// The difference between the time of the files and that of a file whose time was yet to come.
const SECOND: Duration = Duration::from_secs(1);

/// The protected and the hidden files of a workspace.
pub(super) struct RenewedFiles {
    workspace: PathBuf,
    /// The state before the agent, if it is known.
    before: Option<PathBuf>,
    /// The folder of the hidden files.
    hidden: Option<PathBuf>,
    /// The protected files that git does not ignore, and the hidden files, relative to the workspace.
    files: BTreeSet<PathBuf>,
    /// The folders of the Python modules among them.
    with_modules: BTreeSet<PathBuf>,
}

impl RenewedFiles {
    /// Returns the files. `None` if the case neither protects nor hides files. Protected files that git ignores do not count: if
    /// those that a build in setup left were newer than the agent's work, no build would use that work. Without `before`, the
    /// state before the agent, all protected files of the workspace count.
    ///
    /// # Errors
    /// Returns an error if the state before the agent or the hidden files cannot be read.
    pub(super) fn of(case: &Case, before: Option<&Path>, workspace: &Path) -> io::Result<Option<Self>> {
        let globs = &case.workspace.protect;
        if (globs.is_empty() && case.hidden.is_none()) || !workspace.is_dir() {
            return Ok(None);
        }
        let mut files = BTreeSet::new();
        if !globs.is_empty() {
            let is_protected = |path: &Path| protected::is_any(globs, path);
            let tree = match before {
                Some(before) => Tree::read(before, &Ignore::of(before, &[])?)?,
                None => Tree::only(workspace, is_protected)?,
            };
            files.extend(tree.entries.into_keys().filter(|path| is_protected(path)));
        }
        if let Some(hidden) = &case.hidden {
            walk(hidden, |path, meta| {
                if !meta.is_dir() {
                    files.insert(path.to_owned());
                }
                Descend::Enter
            })?;
        }
        let modules = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "py"));
        let with_modules = modules.filter_map(|path| path.parent()).map(Path::to_owned).collect();
        Ok(Some(Self {
            workspace: workspace.to_owned(),
            before: before.map(Path::to_owned),
            hidden: case.hidden.clone(),
            files,
            with_modules,
        }))
    }

    /// Gives the files the present time, except those of package managers, and a past one to every other path of the workspace
    /// whose time is yet to come: otherwise, a build would use what was built from another form of the files. Files that nothing
    /// touched count, too: the agent can build from another form of them elsewhere, and put only the result into the workspace.
    /// Removes compiled forms of their Python modules. Paths of other users that cannot be changed stay as they are.
    ///
    /// # Errors
    /// Returns an error if the workspace cannot be read, or a compiled module cannot be removed.
    pub(super) fn renew(&self) -> io::Result<()> {
        // An earlier grader may have closed the workspace, or replaced it by a link. Putting back hidden files removes the link.
        let Some(meta) = self.workspace.symlink_metadata().ok().filter(Metadata::is_dir) else { return Ok(()) };
        let mode = meta.permissions().mode();
        if mode & 0o700 != 0o700 {
            let _ = fs::set_permissions(&self.workspace, Permissions::from_mode(mode | 0o700));
        }
        let now = SystemTime::now();
        let past = now.checked_sub(SECOND).unwrap_or(UNIX_EPOCH);
        let mut compiled = Vec::new();
        walk(&self.workspace, |path, meta| {
            if self.is_compiled_form(path, meta) && !self.is_of_case(path) {
                compiled.push(path.to_owned());
                return Descend::Skip;
            }
            let is_renewed = self.files.contains(path) && !is_of_packages(path);
            if is_renewed || meta.modified().is_ok_and(|time| time >= now) {
                set_time(&self.workspace.join(path), if is_renewed { now } else { past });
            }
            Descend::Enter
        })?;
        for path in compiled {
            if let Err(error) = remove_within(&self.workspace, &path)
                && error.kind() != ErrorKind::PermissionDenied
            {
                return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
            }
        }
        Ok(())
    }

    /// Returns true if Python may read a path in place of a module among the files: a compiled module, an extension module, or
    /// anything but a folder at the place of the folder of compiled modules.
    fn is_compiled_form(&self, path: &Path, meta: &Metadata) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        if meta.is_dir() || self.with_modules.is_empty() {
            return false;
        }
        if name == COMPILED {
            return self.with_modules.contains(folder);
        }
        let folder = match folder.ends_with(COMPILED) {
            true => folder.parent().unwrap_or(folder),
            // Python reads an extension module that was there before the agent, too, and the agent may have built it again. Without
            // the state before, it is unknown whether it was there.
            false if path.extension().is_some_and(|extension| extension == "so") => {
                let was_there = |before: &PathBuf| before.join(path).symlink_metadata().is_ok();
                if self.before.as_ref().is_none_or(was_there) {
                    return false;
                }
                folder
            }
            false => return false,
        };
        // A name of a compiled form begins with that of the module: `a.cpython-313.pyc`, `a.abi3.so`.
        let name = name.to_string_lossy();
        let module = name.split('.').next().unwrap_or_default();
        self.with_modules.contains(folder) && self.files.contains(&folder.join(format!("{module}.py")))
    }

    /// Returns true if the case itself has a path of the workspace: the state before the agent, or the hidden files, with the same
    /// content.
    fn is_of_case(&self, path: &Path) -> bool {
        let place = self.workspace.join(path);
        self.before.iter().chain(&self.hidden).any(|original| same::content(&original.join(path), &place))
    }
}

fn is_of_packages(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    is_lock_file(path) || OF_PACKAGES.contains(&&*name) || (name.starts_with("requirements") && name.ends_with(".txt"))
}

/// Sets the time of the last change of a file, a folder or a link.
fn set_time(path: &Path, time: SystemTime) {
    let Ok(last_modification) = Timespec::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default()) else { return };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access, last_modification };
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Makes a workspace and a state before the agent with these files, and returns the files of the case in it.
    fn stand(root: &Path, before: &[&str], workspace: &[&str], files: &[&str]) -> RenewedFiles {
        for (folder, paths) in [("before", before), ("workspace", workspace)] {
            for path in paths {
                let path = root.join(folder).join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "text").unwrap();
            }
        }
        let files: BTreeSet<PathBuf> = files.iter().map(PathBuf::from).collect();
        let with_modules = files.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect();
        let before = Some(root.join("before"));
        RenewedFiles { workspace: root.join("workspace"), before, hidden: None, files, with_modules }
    }

    #[test]
    fn files_become_newer_than_what_was_built_and_no_time_is_yet_to_come() {
        let root = tempfile::tempdir().unwrap();
        let paths = ["tests/a.c", "package.json", "out/built", "out/old", "a.c"];
        let stand = stand(root.path(), &[], &paths, &["tests/a.c", "package.json"]);
        let place = |path: &str| root.path().join("workspace").join(path);
        symlink("built", place("out/link")).unwrap();
        let began = SystemTime::now();
        let (past, future) = (began - SECOND * 9, began + SECOND * 999);
        for (path, time) in [("tests/a.c", past), ("package.json", past), ("out/old", past), ("a.c", past)] {
            set_time(&place(path), time);
        }
        for path in ["out/built", "out/link", "out"] {
            set_time(&place(path), future);
        }
        stand.renew().unwrap();
        let time = |path: &str| place(path).symlink_metadata().unwrap().modified().unwrap();
        assert!(time("tests/a.c") >= began);
        for path in ["out/built", "out/link", "out"] {
            assert!(time(path) < time("tests/a.c"), "{path}");
        }
        assert_eq!(["package.json", "out/old", "a.c"].map(time), [past; 3]);
    }

    #[test]
    fn compiled_forms_of_the_modules_are_removed_unless_the_case_has_them() {
        let root = tempfile::tempdir().unwrap();
        let module = "tests/a.py";
        let own = ["tests/__pycache__/a.cpython-1.pyc", "tests/a.cpython-1.so"];
        let changed = ["tests/__pycache__/a.pypy-1.pyc"];
        let rebuilt = ["tests/a.pypy-1.so"];
        let new = ["tests/__pycache__/a.cpython-2.pyc", "tests/__pycache__/a.cpython-2-pytest-9.pyc", "tests/a.so"];
        let others = ["tests/__pycache__/b.pyc", "tests/b.so", "src/__pycache__/a.pyc", "src/a.so", module];
        let made = stand(root.path(), &own, &[own.as_slice(), &changed, &rebuilt, &new, &others].concat(), &[module]);
        let write = |path: &str| {
            let path = root.path().join("before").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "TEXT").unwrap();
        };
        changed.iter().chain(&rebuilt).for_each(|path| write(path));
        made.renew().unwrap();
        let has = |path: &&str| root.path().join("workspace").join(path).exists();
        assert!(own.iter().chain(&rebuilt).chain(&others).all(&has));
        assert!(!changed.iter().chain(&new).any(has));
        // A link in the place of the folder.
        let folder = root.path().join("workspace/tests/__pycache__");
        fs::rename(&folder, root.path().join("workspace/else")).unwrap();
        symlink("../else", &folder).unwrap();
        made.renew().unwrap();
        assert!(!folder.is_symlink() && root.path().join("workspace/else/a.cpython-1.pyc").exists());
    }
}
