//! Copies a case's hidden files over the workspace that an agent left.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::remove::remove;
use super::walk::{Descend, walk};
use super::{WorkspaceError, copy_folder};

pub mod changed;
mod links;
pub mod stale;

/// Python's folder for compiled modules. A compiled module can be marked as unchecked, and then runs instead of its
/// source.
const COMPILED: &str = "__pycache__";

/// Copies hidden files over a workspace; `before` is the workspace before the agent ran, and `solution` are the folders in
/// which the reference solution has files.
///
/// A folder that the hidden files have and `before` does not is emptied first: the checks would take the agent's files
/// in it for their own, such as a module that shadows one they import. A folder of `solution` is not emptied, because the
/// agent's solution may be in it, too. Compiled modules beside hidden files are removed.
///
/// A link of the agent that would lead to a hidden file keeps what it led to when the agent ended: a copy of that file, or
/// nothing. A missing folder on its way counts as one that a program may make. A link out of the workspace, to a folder with such a
/// link, counts as one, too. `beside` are links of the agent beside the workspace, by
/// their paths relative to it. The paths of the links that are kept so are returned.
///
/// # Errors
/// Returns an error if the file system refuses, or the hidden folder holds something that cannot be copied.
pub fn lay(
    hidden: &Path,
    before: &Path,
    workspace: &Path,
    solution: &BTreeSet<PathBuf>,
    beside: &BTreeSet<PathBuf>,
) -> Result<Vec<PathBuf>, WorkspaceError> {
    let io = |doing, path: &Path, source: io::Error| WorkspaceError::Io { doing, path: path.to_owned(), source };
    let (mut own, mut with_files, mut files) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    walk(hidden, |path, meta| {
        if meta.is_dir() {
            if !is_folder(&before.join(path)) && !solution.contains(path) {
                own.push(path.to_owned());
                return Descend::Skip;
            }
        } else {
            files.insert(path.to_owned());
            with_files.insert(path.parent().map(Path::to_owned).unwrap_or_default());
        }
        Descend::Enter
    })
    .map_err(|error| io("read the folder", hidden, error))?;
    let links = links::Links::of(before, workspace, beside).map_err(|error| io("read the folder", workspace, error))?;
    let places = links::Places { files: &files, folders: &own };
    let mut kept = links.keep_files(&places).map_err(|error| io("copy the file behind a link in", workspace, error))?;
    let compiled = with_files.into_iter().map(|folder: PathBuf| folder.join(COMPILED));
    for path in own.iter().cloned().chain(compiled) {
        let path = workspace.join(path);
        if reached_without_links(workspace, &path) {
            remove(&path).map_err(|error| io("empty the folder", &path, error))?;
        }
    }
    copy_folder(hidden, workspace, true)?;
    changed::open_folders(hidden, workspace).map_err(|error| io("read the folder", hidden, error))?;
    kept.extend(links.remove(&places).map_err(|error| io("remove a link in", workspace, error))?);
    Ok(kept)
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// Returns true if every path component between the workspace and a path is a folder, not a link. Copying the hidden
/// files replaces such a link, which hides everything behind it.
fn reached_without_links(workspace: &Path, path: &Path) -> bool {
    path.ancestors().skip(1).take_while(|above| *above != workspace).all(is_folder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    pub(super) fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_folder_that_only_the_hidden_files_name_is_emptied_and_others_are_merged() {
        let root = tempfile::tempdir().unwrap();
        let [hidden, before, workspace] = ["hidden", "before", "workspace"].map(|name| root.path().join(name));
        write(&hidden, "check/run.py", "right");
        write(&hidden, "tests/sub/x.py", "right");
        write(&hidden, "tests/x.py", "right");
        write(&before, "tests/a.py", "a");
        write(&workspace, "tests/a.py", "a");
        for planted in ["check/json.py", "check/deep/y.py", "tests/sub/json.py", "tests/__pycache__/x.pyc"] {
            write(&workspace, planted, "planted");
        }
        write(&workspace, "tests/mine.py", "the agent's own test");
        lay(&hidden, &before, &workspace, &BTreeSet::new(), &BTreeSet::new()).unwrap();
        let there = |path: &str| workspace.join(path).exists();
        assert!(there("check/run.py") && there("tests/sub/x.py") && there("tests/x.py") && there("tests/mine.py"));
        assert!(!there("check/json.py") && !there("check/deep") && !there("tests/sub/json.py"));
        assert!(!there("tests/__pycache__"));
    }

    #[test]
    fn a_folder_of_the_solution_keeps_the_files_of_the_agent() {
        let root = tempfile::tempdir().unwrap();
        let [hidden, before, workspace] = ["hidden", "before", "workspace"].map(|name| root.path().join(name));
        write(&hidden, "src/a/tests.rs", "right");
        write(&hidden, "src/a/data/x", "right");
        write(&before, "src/lib.rs", "");
        for path in ["src/a/mod.rs", "src/a/tests.rs", "src/a/data/planted", "src/a/__pycache__/x.pyc"] {
            write(&workspace, path, "the agent's");
        }
        lay(&hidden, &before, &workspace, &BTreeSet::from([PathBuf::from("src/a")]), &BTreeSet::new()).unwrap();
        let text = |path: &str| fs::read_to_string(workspace.join(path)).unwrap_or_default();
        assert_eq!((text("src/a/mod.rs"), text("src/a/tests.rs")), ("the agent's".to_owned(), "right".to_owned()));
        assert!(!workspace.join("src/a/data/planted").exists() && !workspace.join("src/a/__pycache__").exists());
    }

    #[test]
    fn a_link_to_a_hidden_file_keeps_what_it_led_to() {
        let root = tempfile::tempdir().unwrap();
        let [hidden, before, workspace] = ["hidden", "before", "workspace"].map(|name| root.path().join(name));
        write(&hidden, "check/expected.txt", "42");
        write(&hidden, "tests/expected.txt", "42");
        write(&before, "tests/a.txt", "a");
        write(&workspace, "tests/a.txt", "a");
        write(&workspace, "tests/expected.txt", "a guess");
        write(&workspace, "check/expected.txt", "another guess");
        for (link, target) in [
            ("answer.txt", "check/later.txt"),
            ("chain.txt", "answer.txt"),
            ("guess.txt", "tests/expected.txt"),
            ("other.txt", "check/expected.txt"),
            ("folder", "check"),
            ("tests.link", "tests"),
            ("a.txt", "tests/a.txt"),
        ] {
            symlink(target, workspace.join(link)).unwrap();
        }
        write(&hidden, "check/later.txt", "42");
        for folder in [&before, &workspace] {
            symlink("check/expected.txt", folder.join("of-the-case.txt")).unwrap();
        }
        let mut kept = lay(&hidden, &before, &workspace, &BTreeSet::new(), &BTreeSet::new()).unwrap();
        kept.sort();
        assert_eq!(kept, ["answer.txt", "chain.txt", "folder", "guess.txt", "other.txt"].map(PathBuf::from));
        let text = |path: &str| fs::read_to_string(workspace.join(path)).ok();
        let is = |text: &str| Some(text.to_owned());
        assert_eq!((text("answer.txt"), text("chain.txt"), text("folder/expected.txt")), (None, None, None));
        assert_eq!((text("guess.txt"), text("other.txt")), (is("a guess"), is("another guess")));
        assert_eq!((text("of-the-case.txt"), text("a.txt"), text("tests.link/a.txt")), (is("42"), is("a"), is("a")));
        assert_eq!((text("check/expected.txt"), text("tests/expected.txt")), (is("42"), is("42")));
    }

    #[test]
    fn a_link_to_a_folder_elsewhere_that_holds_a_link_to_a_hidden_file_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let [hidden, before, workspace] = ["hidden", "before", "workspace"].map(|name| root.path().join(name));
        write(&hidden, "check/expected.txt", "42");
        fs::create_dir_all(&before).unwrap();
        fs::create_dir_all(&workspace).unwrap();
        let expected = workspace.join("check/expected.txt");
        write(root.path(), "plain/notes.txt", "mine");
        for (folder, target) in [
            ("direct", expected),
            ("next", "../direct".into()),
            ("plain", "notes.txt".into()),
            ("around", workspace.clone()),
        ] {
            fs::create_dir_all(root.path().join(folder).join("deep")).unwrap();
            symlink(target, root.path().join(folder).join("link")).unwrap();
            symlink(Path::new("..").join(folder), workspace.join(folder)).unwrap();
        }
        symlink(&workspace, root.path().join("direct/deep/workspace")).unwrap();
        let kept = lay(&hidden, &before, &workspace, &BTreeSet::new(), &BTreeSet::new()).unwrap();
        assert_eq!(kept, ["direct", "next"].map(PathBuf::from));
        assert!(workspace.join("plain/link").is_file() && workspace.join("around").is_symlink());
        assert!(root.path().join("direct/link").is_symlink());
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let [hidden, before, workspace] = ["hidden", "before", "workspace"].map(|name| root.path().join(name));
        write(&hidden, "tests/sub/x.py", "right");
        write(&hidden, "check/x.py", "right");
        write(&before, "tests/a.py", "a");
        fs::create_dir_all(&workspace).unwrap();
        write(root.path(), "elsewhere/sub/y.py", "mine");
        symlink("../elsewhere", workspace.join("tests")).unwrap();
        symlink("../elsewhere", workspace.join("check")).unwrap();
        lay(&hidden, &before, &workspace, &BTreeSet::new(), &BTreeSet::new()).unwrap();
        assert_eq!(fs::read_to_string(workspace.join("tests/sub/x.py")).unwrap(), "right");
        assert_eq!(fs::read_to_string(root.path().join("elsewhere/sub/y.py")).unwrap(), "mine");
        assert!(!root.path().join("elsewhere/x.py").exists());
    }
}
