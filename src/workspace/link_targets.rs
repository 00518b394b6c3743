//! Finds the places to which a link may lead, also when folders on its way are made, or links are replaced, later.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::paths::MAX_LINKS;

/// The maximum number of names that are looked at for one link.
const MAX_STEPS: usize = 4000;
/// A link of bubblewrap, which replaces a folder of this machine, and its target.
const OF_BWRAP: [&str; 2] = ["/var/tmp", "/tmp"];

/// The places to which a link may lead.
#[derive(Debug, Default)]
pub struct LinkTargets {
    /// Absolute paths.
    pub places: BTreeSet<PathBuf>,
    /// True if the link may lead anywhere. It leads through `/proc`, where each process finds other files: `/proc/self/cwd` is the
    /// working directory of the process that follows it. Or it leads by too many ways, or the system does not show where.
    pub is_unknown: bool,
}

impl LinkTargets {
    /// Returns the places to which an absolute path may lead. A name that does not exist counts as a folder, because a program may
    /// make it: `..` behind it leads back. A link on the way counts as what it leads to now, and also as a folder that takes its
    /// place.
    pub fn of(path: &Path) -> Self {
        let mut found = Self::default();
        let mut ways = vec![(PathBuf::from("/"), names(path), 0)];
        let mut steps = 0;
        while let Some((mut at, mut left, links)) = ways.pop() {
            loop {
                let Some(name) = left.pop_front() else {
                    found.places.insert(at);
                    break;
                };
                steps += 1;
                if steps > MAX_STEPS {
                    return Self { is_unknown: true, ..found };
                }
                if name == ".." {
                    at.pop();
                    continue;
                }
                let folder = at.clone();
                at.push(&name);
                if at == Path::new("/proc") {
                    found.is_unknown = true;
                    break;
                }
                let [of_bwrap, its_target] = OF_BWRAP.map(Path::new);
                let target = match fs::read_link(&at) {
                    Ok(target) => Some(target),
                    Err(error) => {
                        found.is_unknown |= !is_no_link(&error);
                        None
                    }
                };
                for target in target.into_iter().chain((at == of_bwrap).then(|| its_target.to_owned())) {
                    if links < MAX_LINKS {
                        let start = if target.is_absolute() { PathBuf::from("/") } else { folder.clone() };
                        ways.push((start, names(&target).into_iter().chain(left.iter().cloned()).collect(), links + 1));
                    }
                }
            }
        }
        found
    }
}

/// Returns true if the error says that a path is no link, or that it does not exist. Others do not: the whole path of a chain of
/// links can be too long for the system, which follows each of them.
fn is_no_link(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
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
            ("missing", "none/../direct"),
            ("plain", "d/a"),
            ("gone", "/nowhere/proc/a"),
            ("circle", "circle"),
            ("grows", "grows/x"),
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
            ("missing", true),
            ("plain", false),
            ("gone", false),
            ("circle", false),
            ("grows", false),
        ] {
            assert_eq!(LinkTargets::of(&workspace.join(link)).is_unknown, leads, "{link}");
        }
    }

    #[test]
    fn what_is_missing_or_a_link_may_be_a_folder_later() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["d/in", "else/in"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        symlink("else/in", root.join("link")).unwrap();
        for (target, expected) in [
            ("a", vec!["a"]),
            ("d/a", vec!["d/a"]),
            ("none/../a", vec!["a"]),
            ("none/../none/../d/a", vec!["d/a"]),
            ("file/../a", vec!["a"]),
            ("link/../a", vec!["a", "else/a"]),
            ("link", vec!["else/in", "link"]),
        ] {
            let place = root.join("to");
            symlink(target, &place).unwrap();
            let found = LinkTargets::of(&place);
            fs::remove_file(&place).unwrap();
            let expected = expected.into_iter().chain(["to"]).map(|path| root.join(path)).collect();
            assert_eq!((found.places, found.is_unknown), (expected, false), "{target}");
        }
        let of_bwrap = LinkTargets::of(Path::new("/var/tmp/../a")).places;
        assert!(of_bwrap.contains(Path::new("/a")) && of_bwrap.contains(Path::new("/var/a")), "{of_bwrap:?}");
    }

    #[test]
    fn a_link_whose_way_is_too_long_for_the_system_may_lead_anywhere() {
        let root = tempfile::tempdir().unwrap();
        let half = vec!["d".repeat(200); 12].join("/");
        fs::create_dir_all(root.path().join(&half)).unwrap();
        symlink(format!("{half}/next"), root.path().join("long")).unwrap();
        symlink(format!("{half}/a"), root.path().join(&half).join("next")).unwrap();
        assert!(LinkTargets::of(&root.path().join("long")).is_unknown);
    }

    #[test]
    fn a_link_with_too_many_ways_may_lead_anywhere() {
        let root = tempfile::tempdir().unwrap();
        for (link, next) in [("a", "b/b/b"), ("b", "c/c/c"), ("c", "d/d/d"), ("d", "e/e/e"), ("e", ".")] {
            symlink(next, root.path().join(link)).unwrap();
        }
        assert!(LinkTargets::of(&root.path().join("a")).is_unknown);
    }
}
