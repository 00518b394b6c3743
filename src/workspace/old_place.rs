//! The old place of a workspace that is graded at another one: links to the old place are changed, and files that name it are
//! found.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use regex::bytes::Regex;

use super::change::FileChangeKind;
use super::patch::read::{Edit, Piece};
use super::tree::{Entry, Tree};
use super::tree_digest::file_holds;
use super::walk::{Descend, walk};

/// Changes each absolute link into the old place of a workspace, so that it leads to the same path in `workspace`. Returns the
/// first link that leads to another place in the private folder of the trial, such as its home, which does not exist any more.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn move_links(workspace: &Path, old: &Path) -> io::Result<Option<PathBuf>> {
    if !is_place(old) {
        return Ok(None);
    }
    let mut links = Vec::new();
    walk(workspace, |path, meta| {
        if meta.is_symlink() {
            links.push(path.to_owned());
        }
        Descend::Enter
    })?;
    let now = std::path::absolute(workspace)?;
    let mut stays = None;
    for path in links {
        let link = workspace.join(&path);
        let target = fs::read_link(&link)?;
        match target.strip_prefix(old) {
            Ok(inner) if stays_inside(inner) => {
                fs::remove_file(&link)?;
                symlink(now.join(inner), &link)?;
            }
            _ if target.starts_with(private_folder(old)) => _ = stays.get_or_insert(path),
            _ => {}
        }
    }
    Ok(stays)
}

/// Returns the first file of a tree that contains the path of the old place, or of the private folder around it. Links and
/// Python's compiled modules are left out, as in [`file_that_names`].
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn file_in(tree: &Tree, old: &Path) -> io::Result<Option<PathBuf>> {
    if !is_place(old) {
        return Ok(None);
    }
    let place = private_folder(old).as_os_str().as_bytes();
    for path in tree.entries.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. })).map(|(path, _)| path) {
        if !is_compiled(path) && file_holds(&tree.root.join(path), &[place])? {
            return Ok(Some(path.clone()));
        }
    }
    Ok(None)
}

/// Returns the first file of a change whose new text contains the path of the old place, or of the private folder around it.
/// Links are left out, because [`move_links`] changes them, and so are Python's compiled modules, which Python compiles again.
pub fn file_that_names(pieces: &[Piece], workspace: &Path, old: &Path) -> Option<PathBuf> {
    let old = private_folder(old).to_str().filter(|_| is_place(old))?;
    let name = Regex::new(&format!("{}(?-u:[^A-Za-z0-9_.-]|$)", regex::escape(old))).ok()?;
    let names = |piece: &&Piece| match &piece.edit {
        Edit::Lines(hunks) => hunks.iter().flat_map(|hunk| &hunk.new).any(|line| name.is_match(line)),
        Edit::Whole(_, bytes) => name.is_match(bytes),
        Edit::None | Edit::LeftOut => false,
    };
    let is_meant = |piece: &&Piece| {
        let stays = piece.how != FileChangeKind::Deleted && !is_compiled(&piece.path);
        stays && !workspace.join(&piece.path).is_symlink()
    };
    pieces.iter().filter(is_meant).find(names).map(|piece| piece.path.clone())
}

/// Returns the first of these files of a workspace that contains one of the texts. Links, files that cannot be read, and Python's
/// compiled modules are left out.
pub fn file_with(workspace: &Path, files: &[PathBuf], texts: &[Vec<u8>]) -> Option<PathBuf> {
    let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let holds = |path: &&PathBuf| !is_compiled(path) && file_holds(&workspace.join(path), &texts).unwrap_or(false);
    files.iter().find(holds).cloned()
}

fn is_compiled(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "pyc")
}

/// Returns the private folder of the trial to which a workspace belonged, with its home and its temporary files, or the path
/// itself if it is not the workspace of a trial.
fn private_folder(old: &Path) -> &Path {
    let folder = old.parent().filter(|_| old.ends_with("workspace"));
    let is_of_trial = |folder: &&Path| folder.file_name().is_some_and(|name| name.as_bytes().starts_with(b"trial-"));
    folder.filter(is_of_trial).unwrap_or(old)
}

/// Returns true if a path can be the place of a workspace. A trace that another program wrote may name any folder.
fn is_place(path: &Path) -> bool {
    path.is_absolute() && path.parent().is_some()
}

/// Returns true if a relative path does not lead above its beginning.
fn stays_inside(path: &Path) -> bool {
    let mut depth = 0_usize;
    path.components().all(|part| match part {
        Component::ParentDir => {
            let above = depth.checked_sub(1);
            depth = above.unwrap_or_default();
            above.is_some()
        }
        Component::Normal(_) => {
            depth += 1;
            true
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::patch::read::read;

    #[test]
    fn links_to_the_old_place_lead_to_the_new_one_and_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("new");
        fs::create_dir_all(workspace.join("d")).unwrap();
        for (link, target) in [
            ("a", "/old/w/f"),
            ("d/b", "/old/w/d/../f"),
            ("c", "/old/w"),
            ("out", "/old/w/../x"),
            ("longer", "/old/ws/f"),
            ("relative", "d/x"),
            ("other", "/bin/sh"),
        ] {
            symlink(target, workspace.join(link)).unwrap();
        }
        assert_eq!(move_links(&workspace, Path::new("/old/w")).unwrap(), Some("out".into()));
        let leads = |link: &str| fs::read_link(workspace.join(link)).unwrap();
        assert_eq!((leads("a"), leads("d/b")), (workspace.join("f"), workspace.join("d/../f")));
        assert_eq!(leads("c"), workspace.join(""));
        for (link, target) in
            [("out", "/old/w/../x"), ("longer", "/old/ws/f"), ("relative", "d/x"), ("other", "/bin/sh")]
        {
            assert_eq!(leads(link), Path::new(target), "{link}");
        }
        // No workspace is the root of the file system.
        assert_eq!(move_links(&workspace, Path::new("/")).unwrap(), None);
        assert_eq!(leads("other"), Path::new("/bin/sh"));
        // The home of the trial is in its private folder.
        symlink("/t/trial-a/home/tool", workspace.join("tool")).unwrap();
        assert_eq!(move_links(&workspace, Path::new("/t/trial-a/workspace")).unwrap(), Some("tool".into()));
        assert_eq!(leads("tool"), Path::new("/t/trial-a/home/tool"));
    }

    #[test]
    fn a_file_with_the_path_of_the_old_place_is_found() {
        let root = tempfile::tempdir().unwrap();
        symlink("/old/w/x", root.path().join("link")).unwrap();
        let found = |path: &str, line: &str| {
            let head = format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n");
            let pieces = read(format!("{head}@@ -0,0 +1 @@\n+{line}\n").as_bytes()).unwrap();
            file_that_names(&pieces, root.path(), Path::new("/old/w")).is_some()
        };
        assert!(found("a.sh", "cat /old/w/a.txt") && found("a.sh", "cd /old/w"));
        assert_eq!(private_folder(Path::new("/t/trial-a/workspace")), Path::new("/t/trial-a"));
        assert_eq!(private_folder(Path::new("/home/me/workspace")), Path::new("/home/me/workspace"));
        for (path, line) in [
            ("a.sh", "cat a.txt"),
            ("a.sh", "cat /old/w2/a.txt"),
            ("link", "/old/w/x"),
            ("__pycache__/a.pyc", "/old/w/a.py"),
        ] {
            assert!(!found(path, line), "{path}: {line}");
        }
    }
}
