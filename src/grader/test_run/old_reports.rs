//! The reports that exist before the tests run. They are no results of this run, so those that the agent may have written
//! are moved away until it has ended.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{MAX_REPORT_BYTES, MAX_REPORTS, junit};
use crate::values::{Below, PathGlob};
use crate::workspace::change::Change;
use crate::workspace::openat::open_file;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, walk};
use crate::yaml::lists::OneOrList;

/// The maximum number of folders of interrupted runs that are passed over.
const MAX_LEFT_FOLDERS: u32 = 100;

/// Identifies a version of a file, because a new version may have the same content. Permissions, owners and the number of links
/// are no part of it: a runner that changes them has not written the file.
#[derive(PartialEq, Eq)]
pub struct Stamp(u64, u64, i64, i64);

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self(meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec())
    }
}

/// Returns the files in the workspace that match `report`.
///
/// # Errors
/// Returns an error if there are more than [`MAX_REPORTS`], or a folder that may hold some cannot be read: a report that exists
/// before the run could then count as one of the runner's.
pub fn reports(workspace: &Path, globs: &OneOrList<PathGlob>) -> Result<HashMap<String, Stamp>, String> {
    let mut found = HashMap::new();
    let unread = walk(workspace, |path, meta| {
        let name = path.to_string_lossy();
        if meta.is_file() && found.len() <= MAX_REPORTS && globs.iter().any(|glob| glob.is_match(&name)) {
            found.insert(name.into_owned(), Stamp::of(meta));
        }
        Descend::Enter
    });
    let unread = unread.map_err(|error| format!("the workspace could not be read: {error}"))?;
    if found.len() > MAX_REPORTS {
        return Err(format!("more than {MAX_REPORTS} files match `report`; name fewer"));
    }
    let holds_reports =
        |folder: &Path| globs.iter().any(|glob| glob.lies_below(&folder.to_string_lossy()) != Below::None);
    match unread.iter().find(|(folder, _)| holds_reports(folder)) {
        Some((folder, why)) => Err(format!("`{}`, which may hold reports, could not be read: {why}", folder.display())),
        None => Ok(found),
    }
}

/// The files that match `report` before the tests run.
pub struct OldReports {
    /// The files that stay in the workspace.
    present: HashMap<String, Stamp>,
    /// The reports that were moved away, until this is dropped.
    away: Option<Away>,
    /// The reports, among those moved away, that git does not ignore: each may be a part of the solution.
    tracked: Vec<String>,
}

impl OldReports {
    /// Reads the files that match `report`.
    ///
    /// # Errors
    /// Returns an error if it is not known which files match.
    pub fn find(workspace: &Path, globs: &OneOrList<PathGlob>) -> Result<Self, String> {
        Ok(Self { present: reports(workspace, globs)?, away: None, tracked: Vec::new() })
    }

    /// Moves the reports away that the agent may have written. A runner may copy, merge or touch whatever it finds, and the
    /// times of a file do not tell this from writing a report. Files that are no reports stay, such as a `pom.xml` that a
    /// broad glob matches, and so do hidden files, and files that the agent did not change or that were restored: tests may
    /// read them.
    ///
    /// # Errors
    /// Returns an error if it is not known which files match, or if a report cannot be moved.
    pub fn move_away(
        workspace: &Path,
        globs: &OneOrList<PathGlob>,
        change: Option<&Change>,
        hidden: Option<&Path>,
    ) -> Result<Self, String> {
        let mut old = Self::find(workspace, globs)?;
        let is_hidden = |path: &str| hidden.is_some_and(|hidden| hidden.join(path).symlink_metadata().is_ok());
        let is_moved =
            |path: &str| !is_hidden(path) && may_be_of_the_agent(path, change) && is_report(&workspace.join(path));
        let paths: Vec<String> = old.present.keys().filter(|path| is_moved(path)).cloned().collect();
        if !paths.is_empty() {
            let is_tracked = |path: &&String| {
                change.is_some_and(|change| change.files().any(|(changed, _)| changed == path.as_str()))
            };
            old.tracked = paths.iter().filter(is_tracked).cloned().collect();
            old.present.retain(|path, _| !paths.contains(path));
            let away = Away::of(workspace, paths);
            old.away = Some(away.map_err(|error| format!("reports of the agent could not be moved away: {error}"))?);
        }
        Ok(old)
    }

    /// Returns true if a file was written since.
    pub fn is_new(&self, path: &str, stamp: &Stamp) -> bool {
        self.present.get(path) != Some(stamp)
    }

    /// Returns the reports of the agent that were moved away, that a pattern of `report` matches, and that the runner did not write
    /// again: tests may read such a file. A glob without a pattern names a report of the runner, and a file that git ignores is a
    /// report of a run by the agent.
    pub fn missing(&self, globs: &OneOrList<PathGlob>) -> Vec<String> {
        let Some(away) = &self.away else { return Vec::new() };
        let is_named = |path: &str| globs.iter().any(|glob| glob.is_path() && glob.is_match(path));
        let is_missing = |path: &str| away.workspace.join(path).symlink_metadata().is_err();
        let mut missing: Vec<String> =
            self.tracked.iter().filter(|path| !is_named(path) && is_missing(path)).cloned().collect();
        missing.sort();
        missing
    }

    /// Returns true if no file matched.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty() && self.away.is_none()
    }
}

/// Returns true unless it is known that the agent did not write a file.
fn may_be_of_the_agent(path: &str, change: Option<&Change>) -> bool {
    change.is_none_or(|change| {
        let is_changed = change.files().any(|(changed, _)| changed == path);
        let is_restored = change.restored.iter().any(|restored| restored == path);
        change.is_patch_alone || change.may_hide(path).is_some() || (is_changed && !is_restored)
    })
}

/// Returns true if a file is a report, or if it cannot be read. A file that is too large is never read as a report.
fn is_report(path: &Path) -> bool {
    let mut bytes = Vec::new();
    match open_file(path).and_then(|file| file.take(MAX_REPORT_BYTES + 1).read_to_end(&mut bytes)) {
        Ok(_) => bytes.len() as u64 <= MAX_REPORT_BYTES && junit::read(&junit::text_of(&bytes)).is_ok(),
        Err(_) => true,
    }
}

/// Reports that are in a folder beside the workspace until this is dropped.
struct Away {
    workspace: PathBuf,
    folder: PathBuf,
    /// The paths of the reports in the workspace. In the folder, each has its number in this list.
    paths: Vec<String>,
}

impl Away {
    fn of(workspace: &Path, paths: Vec<String>) -> io::Result<Self> {
        let mut away =
            Self { workspace: workspace.to_owned(), folder: make_folder_beside(workspace)?, paths: Vec::new() };
        for path in paths {
            fs::rename(workspace.join(&path), away.place(away.paths.len()))?;
            away.paths.push(path);
        }
        Ok(away)
    }

    fn place(&self, number: usize) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// Returns true if nothing is at a path of the workspace, and no link leads there.
    fn is_free(&self, path: &Path) -> bool {
        let is_folder = |above: &Path| above.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let mut folders = path.ancestors().skip(1).take_while(|above| *above != self.workspace);
        folders.all(is_folder) && path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        for (number, path) in self.paths.iter().enumerate() {
            let place = self.workspace.join(path);
            if self.is_free(&place) {
                let _ = fs::rename(self.place(number), place);
            }
        }
        let _ = remove(&self.folder);
    }
}

/// Makes a private folder beside the workspace.
fn make_folder_beside(workspace: &Path) -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let folder = workspace.with_file_name(format!("old-reports-{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < MAX_LEFT_FOLDERS => number += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const REPORT: &str = "<testsuite><testcase name=\"a\"/></testsuite>";

    fn write(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn reports_of_the_agent_are_away_until_the_run_has_ended() {
        let root = tempfile::tempdir().unwrap();
        let [workspace, hidden] = ["workspace", "hidden"].map(|name| root.path().join(name));
        let all = ["a.xml", "b.xml", "known.xml", "linked/c.xml", "pom.xml", "tests/d.xml", "target/e.xml"];
        for path in all {
            write(&workspace, path, if path == "pom.xml" { "<project/>" } else { REPORT });
        }
        write(&hidden, "tests/d.xml", REPORT);
        let created = ["a.xml", "b.xml", "linked/c.xml", "pom.xml", "tests/d.xml"].map(str::to_owned).to_vec();
        let change = Change { created, has_ignored: true, unmeasured: vec!["target".to_owned()], ..Change::default() };
        let globs = OneOrList(vec!["**/*.xml".parse::<PathGlob>().unwrap()]);
        let old = OldReports::move_away(&workspace, &globs, Some(&change), Some(&hidden)).unwrap();
        let with_named = OneOrList(["**/*.xml", "a.xml"].map(|glob| glob.parse::<PathGlob>().unwrap()).to_vec());
        assert_eq!(old.missing(&with_named), ["b.xml", "linked/c.xml"]);
        let present = || {
            let mut names: Vec<String> = reports(&workspace, &globs).unwrap().into_keys().collect();
            names.sort();
            names
        };
        assert_eq!(present(), ["known.xml", "pom.xml", "tests/d.xml"]);
        // The runner writes one of them, and code puts a link in the place of a folder.
        write(&workspace, "b.xml", "new");
        fs::remove_dir(workspace.join("linked")).unwrap();
        symlink(root.path(), workspace.join("linked")).unwrap();
        assert_eq!(old.missing(&globs), ["a.xml", "linked/c.xml"]);
        drop(old);
        assert_eq!(present(), ["a.xml", "b.xml", "known.xml", "pom.xml", "target/e.xml", "tests/d.xml"]);
        assert_eq!(fs::read_to_string(workspace.join("b.xml")).unwrap(), "new");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2, "the folder beside the workspace is gone");
        // Nothing is known about the change.
        let old = OldReports::move_away(&workspace, &globs, None, None).unwrap();
        assert_eq!(present(), ["b.xml", "pom.xml"]);
        assert!(!old.is_empty());
    }

    #[test]
    fn a_file_with_other_permissions_or_another_link_is_not_new() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "a.xml", REPORT);
        let globs = OneOrList(vec!["a.xml".parse::<PathGlob>().unwrap()]);
        let old = OldReports::find(root.path(), &globs).unwrap();
        let is_new = || old.is_new("a.xml", &reports(root.path(), &globs).unwrap()["a.xml"]);
        fs::set_permissions(root.path().join("a.xml"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::hard_link(root.path().join("a.xml"), root.path().join("b")).unwrap();
        assert!(!is_new());
        write(root.path(), "a.xml", "other");
        assert!(is_new());
    }
}
