//! Finds the folders of a git repository on this machine without starting git: those with its commits, and its work trees.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::git_source::GitSource;
use crate::regular;

/// The maximum number of repositories that are followed from one to the next whose objects it borrows. Git follows no more.
const MAX_ALTERNATES: usize = 5;
/// The maximum size in bytes of a file that names a folder, a branch or a commit.
const MAX_NAME_BYTES: u64 = 64 << 10;
/// The name of the folder of a repository in its work tree, or of a file that leads to this folder.
const DOT_GIT: &str = ".git";

/// Returns the paths of this machine that show the commits of a repository, of all branches: its own folder, which may be another
/// than that of a linked work tree, and the folders of the repositories whose objects it borrows. For a path that is no
/// repository, returns the path itself.
pub fn with_commits(repository: &Path) -> Vec<PathBuf> {
    let Some(GitFolders { name, own, common }) = GitFolders::find(repository) else {
        return vec![repository.to_owned()];
    };
    let mut objects: Vec<PathBuf> = common.join("objects").canonicalize().into_iter().collect();
    let mut last = objects.clone();
    for _ in 0..MAX_ALTERNATES {
        last = last.iter().flat_map(|folder| alternates(folder)).filter(|it| !objects.contains(it)).collect();
        objects.extend(last.iter().cloned());
    }
    let mut folders = [vec![name, own, common], objects].concat();
    // In this order, a folder comes before what is in it.
    folders.sort();
    folders.dedup_by(|later, earlier| later.starts_with(earlier));
    folders
}

/// Returns the folders of this machine that show the workspace of a source at another commit: the work trees of its repository,
/// as far as another commit is checked out there, or it is unknown which. Changes that are not committed are not looked for.
pub fn other_work_trees(source: &GitSource) -> Vec<PathBuf> {
    let repository = source.repository.on_this_machine().and_then(|path| GitFolders::find(&path));
    let Some(repository) = repository else { return Vec::new() };
    let of_workspace = source.revision().map(str::to_owned).or_else(|| repository.head(&repository.own));
    let is_other = |git: &Path| match (repository.head(git), &of_workspace) {
        (Some(head), Some(commit)) => !head.eq_ignore_ascii_case(commit),
        (None, _) | (_, None) => true,
    };
    let others = repository.work_trees().into_iter().filter(|(_, git)| is_other(git));
    let folders = others.map(|(tree, _)| match &source.subdir {
        Some(subdir) => tree.join(subdir),
        None => tree,
    });
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The folders of a repository.
struct GitFolders {
    /// The path by which the repository was found: a folder, or a file that names one.
    name: PathBuf,
    /// The folder with the `HEAD` and the index of the work tree.
    own: PathBuf,
    /// The folder with the branches and objects, which all work trees of the repository share.
    common: PathBuf,
}

impl GitFolders {
    /// Finds a repository by the path of its work tree or of its own folder.
    fn find(path: &Path) -> Option<Self> {
        let mut with_ending = path.as_os_str().to_owned();
        with_ending.push(DOT_GIT);
        // The names that git tries, in its order.
        let names = [path.join(DOT_GIT), path.to_owned(), path.join(DOT_GIT).join(DOT_GIT), with_ending.into()];
        let (name, own) = names.into_iter().find_map(|name| {
            let own = folder_of(&name)?;
            Some((name, own))
        })?;
        let common = match named_in(&own.join("commondir"), "", &own) {
            Some(common) => common.canonicalize().ok()?,
            None => own.clone(),
        };
        Some(Self { name, own, common })
    }

    /// Returns the work trees of the repository, each with the folder that holds its `HEAD`. A work tree may occur twice.
    fn work_trees(&self) -> Vec<(PathBuf, PathBuf)> {
        let linked = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        let linked = linked.filter_map(|entry| {
            let git = entry.path();
            Some((named_in(&git.join("gitdir"), "", &git)?, git))
        });
        let named = [(self.name.clone(), self.own.clone()), (self.common.clone(), self.common.clone())];
        let trees = named.into_iter().chain(linked).filter_map(|(dot_git, git)| {
            // A repository without a work tree has no index.
            let has_files = dot_git.file_name().is_some_and(|name| name == DOT_GIT) && git.join("index").is_file();
            let tree = dot_git.parent().filter(|_| has_files)?;
            Some((tree.to_owned(), git))
        });
        trees.collect()
    }

    /// Returns the commit that is checked out in a work tree. `None` if it is unknown.
    fn head(&self, git: &Path) -> Option<String> {
        let is_hash =
            |text: &String| matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let head = small_text(&git.join("HEAD"))?;
        let Some(branch) = head.strip_prefix("ref:").map(str::trim) else { return Some(head).filter(is_hash) };
        let loose = small_text(&self.common.join(branch));
        let packed = || {
            let refs = regular::read_to_string(self.common.join("packed-refs")).ok()?;
            let found = refs.lines().filter_map(|line| line.split_once(' ')).find(|(_, name)| *name == branch)?;
            Some(found.0.to_owned())
        };
        loose.or_else(packed).filter(is_hash)
    }
}

/// Returns the folder of a repository with this name: the folder itself, or the one to which a file of this name leads.
fn folder_of(name: &Path) -> Option<PathBuf> {
    let folder = match named_in(name, "gitdir:", name.parent()?) {
        Some(folder) => folder.canonicalize().ok()?,
        None => name.to_owned(),
    };
    folder.join("HEAD").symlink_metadata().is_ok().then_some(folder)
}

/// Returns the folders from which a folder of objects borrows others.
fn alternates(objects: &Path) -> Vec<PathBuf> {
    let text = regular::read(objects.join("info/alternates")).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    lines.filter_map(|line| objects.join(OsStr::from_bytes(line)).canonicalize().ok()).collect()
}

/// Returns the path that a small file holds after this text. A relative path is relative to the folder.
fn named_in(file: &Path, after: &str, relative_to: &Path) -> Option<PathBuf> {
    let bytes = small(file)?;
    let path = bytes.strip_prefix(after.as_bytes())?.trim_ascii();
    (!path.is_empty()).then(|| relative_to.join(OsStr::from_bytes(path)))
}

fn small_text(file: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&small(file)?).trim().to_owned())
}

fn small(file: &Path) -> Option<Vec<u8>> {
    let is_small = fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_NAME_BYTES);
    if is_small { regular::read(file).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::workspace::git_source::GitRepository;

    /// Makes a repository `main` with two commits, a linked work tree `linked` of its first commit, a bare clone `bare.git`, and
    /// a clone `borrowing` that borrows the objects of `main`. Returns the folder with all of them, and the first commit.
    fn repositories() -> (tempfile::TempDir, PathBuf, String) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let git = |words: &str| {
            let own = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let ran = Command::new("git").args(own).args(words.split(' ')).current_dir(&path).output().unwrap();
            assert!(ran.status.success(), "{words}: {}", String::from_utf8_lossy(&ran.stderr));
            String::from_utf8(ran.stdout).unwrap().trim().to_owned()
        };
        git("init -q main");
        for name in ["one", "two"] {
            fs::create_dir_all(path.join("main/sub")).unwrap();
            fs::write(path.join("main/sub/a.txt"), name).unwrap();
            git("-C main add .");
            git(&format!("-C main commit -qm {name}"));
        }
        let first = git("-C main rev-parse HEAD~1");
        git("-C main worktree add -q --detach ../linked HEAD~1");
        git("clone -q --bare main bare.git");
        git("clone -q --shared main borrowing");
        (root, path, first)
    }

    #[test]
    fn commits_are_found_behind_linked_work_trees_and_borrowed_objects() {
        let (_root, path, _) = repositories();
        let of = |name: &str| {
            let found = with_commits(&path.join(name));
            found.iter().map(|it| it.strip_prefix(&path).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("main"), ["main/.git"]);
        assert_eq!(of("main/.git"), ["main/.git"]);
        assert_eq!(of("linked"), ["linked/.git", "main/.git"]);
        assert_eq!(of("borrowing"), ["borrowing/.git", "main/.git/objects"]);
        assert_eq!(of("bare.git"), ["bare.git"]);
        assert_eq!(of("bare"), ["bare.git"]);
        assert_eq!(of("main/sub"), ["main/sub"]);
    }

    #[test]
    fn work_trees_at_other_commits_are_found_and_those_at_the_commit_of_the_workspace_are_not() {
        let (_root, path, first) = repositories();
        let of = |repository: GitRepository, rev: Option<&str>, subdir: Option<&str>| {
            let (rev, subdir) = (rev.map(str::to_owned), subdir.map(PathBuf::from));
            let mut found = other_work_trees(&GitSource { repository, rev, subdir, commit: None });
            found.sort();
            found.dedup();
            found.iter().map(|it| it.strip_prefix(&path).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        let at = |name: &str| GitRepository::Path(path.join(name));
        assert_eq!(of(at("main"), Some(&first), None), ["main"]);
        assert_eq!(of(at("linked"), Some(&first), Some("sub")), ["main/sub"]);
        let url = GitRepository::Url(format!("file://{}", path.join("main").display()));
        assert_eq!(of(url, Some(&first), None), ["main"]);
        // Without a revision, the workspace is what is checked out in the named work tree.
        assert_eq!(of(at("main"), None, None), ["linked"]);
        assert_eq!(of(at("linked"), None, None), ["main"]);
        assert_eq!(of(at("main"), Some("a-branch"), None), ["linked", "main"]);
        assert!(of(at("bare.git"), Some(&first), None).is_empty());
        assert!(of(GitRepository::Url("https://example.org/x.git".to_owned()), None, None).is_empty());
        let ran = Command::new("git").args(["-C", "main", "pack-refs", "--all"]).current_dir(&path).status();
        assert!(ran.unwrap().success());
        assert_eq!(of(at("main"), None, None), ["linked"]);
    }
}
