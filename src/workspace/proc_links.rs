//! Finds links that lead through `/proc`, where each process finds other files.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The maximum number of links that the system follows in one path.
const MOST_LINKS: usize = 40;

/// Returns true if an absolute path leads through `/proc`, by whatever links: `/proc/self/cwd` is the working directory of the
/// process that follows it, so no other process can tell where the path leads.
pub fn leads_through_proc(path: &Path) -> bool {
    let (mut at, mut left, mut links) = (PathBuf::from("/"), names(path), 0);
    while let Some(name) = left.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        at.push(&name);
        if at == Path::new("/proc") {
            return true;
        }
        let Ok(target) = fs::read_link(&at) else { continue };
        links += 1;
        if links > MOST_LINKS {
            return false;
        }
        at.pop();
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        let mut on = names(&target);
        on.append(&mut left);
        left = on;
    }
    false
}

fn names(path: &Path) -> VecDeque<OsString> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_as_any_process_follows_them() {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        fs::create_dir_all(workspace.join("d")).unwrap();
        for (link, target) in [
            ("direct", "/proc/self/cwd/check/a"),
            ("chain", "direct"),
            ("folder", "/proc/self/cwd"),
            ("below", "folder/check/a"),
            ("up", "d/../../beside/check/a"),
            ("dots", "/usr/../proc/1/root/x"),
            ("plain", "d/a"),
            ("gone", "/nowhere/proc/a"),
            ("circle", "circle"),
        ] {
            symlink(target, workspace.join(link)).unwrap();
        }
        symlink("/proc/self/cwd", root.path().join("beside")).unwrap();
        for (link, leads) in [
            ("direct", true),
            ("chain", true),
            ("folder", true),
            ("below", true),
            ("up", true),
            ("dots", true),
            ("plain", false),
            ("gone", false),
            ("circle", false),
        ] {
            assert_eq!(leads_through_proc(&workspace.join(link)), leads, "{link}");
        }
    }
}
