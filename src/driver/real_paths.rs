//! Follows symbolic links: the files that the paths of a call really lead to.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::paths::MAX_LINKS;
use crate::trace::facts::Fact;
use crate::trace::view;

/// Adds to the paths of a call the paths that they lead to through links, if those differ. `written` are the paths as the
/// agent wrote them. A path that leads in a circle is not known, and neither are the paths of its call then.
pub(super) fn added(paths: Fact<Vec<String>>, written: &[String], workspace: &Path) -> Fact<Vec<String>> {
    let Fact::Seen(mut paths) = paths else { return paths };
    let agent = AgentView { folder: workspace, temporary: None };
    let Some(root) = agent.real(workspace) else { return Fact::NotShown };
    let root = root.to_string_lossy().into_owned();
    for path in written {
        let Some(real) = agent.real(&workspace.join(path)) else { return Fact::NotShown };
        let real = view::relative(&real.to_string_lossy(), Some(&root));
        if !paths.contains(&real) {
            paths.push(real);
        }
    }
    Fact::Seen(paths)
}

/// The files as the agent sees them, where that differs from the engine's view.
#[derive(Debug, Clone, Copy)]
pub struct AgentView<'a> {
    /// The folder in which the agent works.
    pub folder: &'a Path,
    /// The folder that is `/tmp` to the agent, if it has one of its own.
    pub temporary: Option<&'a Path>,
}

impl AgentView<'_> {
    /// Returns the place that a path leads to. Parts that do not exist stay as they are. Returns `None` if it leads in a circle,
    /// or to what only the agent's process has: an open file.
    pub fn real(&self, path: &Path) -> Option<PathBuf> {
        let mut rest: VecDeque<OsString> = parts(path);
        let (mut place, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                place.pop();
                continue;
            }
            let next = place.join(&part);
            let target = match of_process(&next) {
                Some("cwd") => Ok(self.folder.to_owned()),
                Some("root") => Ok(PathBuf::from("/")),
                Some(_) => return None,
                None => fs::read_link(self.here(&next)),
            };
            let Ok(target) = target else {
                place = next;
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            if target.is_absolute() {
                place = PathBuf::from("/");
            }
            for part in parts(&target).into_iter().rev() {
                rest.push_front(part);
            }
        }
        Some(place)
    }

    /// Returns the engine's path of a path of the agent.
    fn here(&self, path: &Path) -> PathBuf {
        let own = self.temporary.and_then(|folder| Some(folder.join(path.strip_prefix("/tmp").ok()?)));
        // The workspace itself may be below `/tmp`, and has the same path inside.
        own.filter(|_| !path.starts_with(self.folder) && !self.folder.starts_with(path))
            .unwrap_or_else(|| path.to_owned())
    }
}

/// Returns the name of an entry that the kernel makes for a process and that leads elsewhere: `cwd` of `/proc/self/cwd`.
fn of_process(path: &Path) -> Option<&str> {
    let mut parts = path.strip_prefix("/proc").ok()?.components();
    let process = parts.next()?.as_os_str().to_str()?;
    let is_process = ["self", "thread-self"].contains(&process) || process.parse::<u32>().is_ok();
    let name = parts.next()?.as_os_str().to_str()?;
    let leads = ["cwd", "root", "exe", "fd", "map_files", "task"].contains(&name);
    (is_process && leads && parts.next().is_none()).then_some(name)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_where_they_lead() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = root.join("w");
        fs::create_dir_all(workspace.join("src")).unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        symlink("../../outside", workspace.join("src/out")).unwrap();
        symlink("missing", workspace.join("src/dangling")).unwrap();
        symlink("circle", workspace.join("circle")).unwrap();
        symlink(&workspace, root.join("alias")).unwrap();
        let outside = |name: &str| root.join(name).to_string_lossy().into_owned();
        for (written, added_path) in [
            ("src/a", None),
            ("src/out/x", Some(outside("outside/x"))),
            ("src/out/../x", Some(outside("x"))),
            ("src/dangling", Some("src/missing".to_owned())),
            ("src/new/x", None),
        ] {
            for workspace in [&workspace, &root.join("alias")] {
                let shown = vec![view::relative(written, Some(&workspace.to_string_lossy()))];
                let expected = shown.iter().cloned().chain(added_path.clone()).collect();
                assert_eq!(
                    added(Fact::Seen(shown), &[written.to_owned()], workspace),
                    Fact::Seen(expected),
                    "{written}"
                );
            }
        }
        assert_eq!(added(Fact::Seen(vec!["circle".into()]), &["circle".into()], &workspace), Fact::NotShown);
        assert_eq!(added(Fact::NotShown, &[], &workspace), Fact::NotShown);
    }
}
