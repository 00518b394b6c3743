//! The project: the folder whose `cases/`, `harnesses/`, `graders/`, `policies/` and `.evals/` are used if no other is
//! named.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

/// The folders that make a folder a project.
const MARKS: [&str; 3] = ["cases", "harnesses", ".evals"];

static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    above(&here).unwrap_or(&here).to_owned()
});

/// The project that the command uses instead of the one around its working folder.
static ENTERED: OnceLock<PathBuf> = OnceLock::new();

/// Returns the project's root: the working folder, or the nearest folder above it, that contains `cases/`, `harnesses/`
/// or `.evals/`. Without one: the working folder. After [`enter`], the root of the other project.
pub fn root() -> &'static Path {
    ENTERED.get().unwrap_or(&ROOT)
}

/// Uses another project for the rest of the command.
pub fn enter(root: &Path) {
    let _ = ENTERED.set(root.to_owned());
}

/// Returns true if the project's root is above the working folder.
pub fn is_above() -> bool {
    std::env::current_dir().is_ok_and(|here| here != root())
}

/// Returns the root of the git repository that ended the search for a project. Returns `None` if a project was found,
/// or if the working folder is that root and no project lies above it.
pub fn search_ended_at() -> Option<PathBuf> {
    ended_at(&std::env::current_dir().ok()?)
}

fn ended_at(here: &Path) -> Option<PathBuf> {
    if above(here).is_some() {
        return None;
    }
    let repository = here.ancestors().find(|folder| folder.join(".git").exists())?;
    let beyond = || repository.ancestors().skip(1).any(is_project);
    (repository != here || beyond()).then(|| repository.to_path_buf())
}

/// Returns the path of a file or folder in the project's root: relative to the working folder if that lies in the project.
pub fn path(name: &str) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let Ok(below) = here.strip_prefix(root()) else { return root().join(name) };
    let mut path: PathBuf = std::iter::repeat_n("..", below.components().count()).collect();
    path.push(name);
    path
}

/// Returns the outermost folder whose files may apply to a folder: the root of its project, else of its git repository,
/// else the outermost folder above that no other user can write to, so that a stranger's file in a shared folder for
/// temporary files does not count.
pub fn reach(folder: &Path) -> Option<PathBuf> {
    if folder.starts_with(root()) && is_project(root()) {
        return Some(root().to_path_buf());
    }
    let mine = owner(folder);
    let own = || folder.ancestors().take_while(|above| owner(above) == mine && !everyone_writes(above));
    let in_repository = || own().find(|above| above.join(".git").exists());
    above(folder).or_else(in_repository).or_else(|| own().last()).map(Path::to_path_buf)
}

/// Returns the root of the project around a folder.
pub fn around(folder: &Path) -> Option<PathBuf> {
    above(folder).map(Path::to_path_buf)
}

/// Returns the nearest project. The search stops at the root of a git repository. A folder of another user does not
/// count: its manifests would be started.
fn above(here: &Path) -> Option<&Path> {
    let mine = owner(here);
    for folder in here.ancestors() {
        if is_project(folder) && owner(folder) == mine && !everyone_writes(folder) {
            return Some(folder);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

/// Returns true if a folder has one of the marks, and they are of the folder's owner.
fn is_project(folder: &Path) -> bool {
    let marks = MARKS.iter().map(|mark| folder.join(mark));
    marks.into_iter().any(|mark| mark.is_dir() && owner(&mark) == owner(folder))
}

fn owner(folder: &Path) -> Option<u32> {
    std::fs::metadata(folder).ok().map(|data| data.uid())
}

/// Returns true if anyone can write to a folder, as in the system's folder for temporary files.
fn everyone_writes(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|data| data.mode() & 0o002 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_nearest_project_above_is_found_within_its_repository() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("p/cases/deep")).unwrap();
        fs::create_dir_all(root.join("p/src/a")).unwrap();
        fs::create_dir_all(root.join("p/src/b/.git")).unwrap();
        fs::create_dir_all(root.join("p/src/b/harnesses")).unwrap();
        fs::create_dir_all(root.join("p/other/.git")).unwrap();
        fs::create_dir_all(root.join("p/other/x")).unwrap();
        let found = |path: &str| above(&root.join(path)).map(Path::to_path_buf);
        assert_eq!(found("p"), Some(root.join("p")));
        assert_eq!(found("p/src/a"), Some(root.join("p")));
        assert_eq!(found("p/cases/deep"), Some(root.join("p")));
        assert_eq!(found("p/src/b"), Some(root.join("p/src/b")), "its own project");
        assert_eq!(found("p/other/x"), None, "beyond the repository");
        assert_eq!(found("."), None);
        assert_eq!(ended_at(&root.join("p/other/x")), Some(root.join("p/other")));
        assert_eq!(ended_at(&root.join("p/other")), Some(root.join("p/other")), "a project lies above");
        assert_eq!(ended_at(&root.join("p/src/a")), None, "a project was found");
        assert_eq!(reach(&root.join("p/src/a")), Some(root.join("p")));
        assert_eq!(reach(&root.join("p/other/x")), Some(root.join("p/other")), "its repository");
        // Without a project: as far as nobody else can write, which the system's folder for temporary files ends.
        assert_eq!(reach(root), Some(root.to_path_buf()));
        fs::set_permissions(root.join("p"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(found("p/src/a"), None, "anyone could have put it there");
    }
}
