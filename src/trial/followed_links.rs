//! Finds the paths of calls that lead to other files, because a link in the workspace is a part of them, or because the call
//! moved the file without showing the target.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::driver::real_paths::AgentView;
use crate::trace::{Body, Event, FileDiff, FollowedLink, Location, ToolKind, view};

mod moves;

use moves::Edited;
pub use moves::States;

/// The paths that the calls of a session name, each once for each kind of call.
#[derive(Debug, Default)]
pub struct NamedFiles {
    /// The path of the workspace, as the agent names it.
    workspace: String,
    named: HashSet<NamedFile>,
    /// The paths as they were written, by the kind of their call: most are named several times.
    written: HashMap<ToolKind, HashSet<String>>,
    /// The calls that have not ended, with their kind and folder.
    open: HashMap<String, (ToolKind, Option<String>)>,
    /// The number of edits of each path, if the agent reports a move as an edit.
    edits: Option<HashMap<String, usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct NamedFile {
    /// The path by its position: relative to the workspace if it lies in it.
    located: String,
    /// The path with its `..`, relative to the workspace if it begins with it.
    whole: PathBuf,
    kind: ToolKind,
}

impl NamedFiles {
    /// Watches the calls of a session in this workspace.
    pub fn new(workspace: &str) -> Self {
        Self { workspace: workspace.to_owned(), ..Self::default() }
    }

    /// Sets that an edit may be a move whose target the agent does not show.
    #[must_use]
    pub fn with_moves(mut self, edits_may_move: bool) -> Self {
        self.edits = edits_may_move.then(HashMap::new);
        self
    }

    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        match &event.body {
            Body::ToolCall(call) => {
                self.open.insert(call.call.clone(), (call.kind, call.cwd.clone()));
                self.add(call.kind, call.cwd.as_deref(), call.input.as_ref(), &call.locations, &[]);
            }
            Body::PermissionRequest(request) => {
                let Some(asked) = &request.asked else { return };
                let (kind, cwd) = self.open.get(&request.call).cloned().unwrap_or((ToolKind::Other, None));
                let kind = asked.kind.unwrap_or(kind);
                let locations = asked.locations.as_deref().unwrap_or_default();
                self.add(kind, cwd.as_deref(), asked.input.as_ref(), locations, &[]);
            }
            Body::PermissionResponse(response) => {
                let Some((kind, cwd)) = self.open.get(&response.call).cloned() else { return };
                self.add(kind, cwd.as_deref(), response.updated_input.as_ref(), &[], &[]);
            }
            Body::ToolResult(result) => {
                let (kind, cwd) = self.open.remove(&result.call).unwrap_or((ToolKind::Edit, None));
                let kind = if kind.changes_files() { kind } else { ToolKind::Edit };
                self.add(kind, cwd.as_deref(), None, &[], &result.diffs);
            }
            _ => {}
        }
    }

    fn add(
        &mut self,
        kind: ToolKind,
        cwd: Option<&str>,
        input: Option<&Value>,
        locations: &[Location],
        diffs: &[FileDiff],
    ) {
        let written_paths = view::written_paths(input, locations, diffs);
        if let (Some(edits), ToolKind::Edit) = (&mut self.edits, kind) {
            let located = written_paths.iter().map(|path| view::located(path, cwd, Some(&self.workspace)));
            located.collect::<HashSet<String>>().into_iter().for_each(|path| *edits.entry(path).or_default() += 1);
        }
        for written in written_paths {
            let is_none = written == view::UNREAD_PATH || view::is_from_home(&written) || view::is_pattern(&written);
            let known = self.written.get(&kind).filter(|_| cwd.is_none());
            if is_none || written.contains('\0') || known.is_some_and(|known| known.contains(&written)) {
                continue;
            }
            let whole = Path::new(&self.workspace).join(cwd.unwrap_or_default()).join(&written);
            let whole = whole.strip_prefix(&self.workspace).map_or_else(|_| whole.clone(), Path::to_path_buf);
            let located = view::located(&written, cwd, Some(&self.workspace));
            self.named.insert(NamedFile { located, whole, kind });
            if cwd.is_none() {
                self.written.entry(kind).or_default().insert(written);
            }
        }
    }

    /// Returns true if no call named a path.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Returns the paths of calls that change files.
    pub fn changed(&self) -> Vec<String> {
        let changed = self.named.iter().filter(|file| file.kind.changes_files());
        changed.map(|file| file.located.clone()).collect()
    }

    /// Returns the paths that lead to other files by a link: of the workspace as the agent left it, or as it was before.
    /// `temporary` is the folder that is `/tmp` to the agent, if it has one of its own.
    pub fn followed(mut self, states: States<'_>, temporary: Option<&Path>) -> Vec<FollowedLink> {
        let moved = self.moved(states);
        let States { workspace, before, .. } = states;
        let mut named: Vec<NamedFile> = self.named.into_iter().collect();
        named.sort_unstable();
        let mut states = [workspace, before].map(|root| State::new(root, temporary));
        // Most sessions name no link, and need no real paths.
        let roots = OnceCell::new();
        let of = |root: &Path| root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let roots = || roots.get_or_init(|| [workspace, before].map(of)).as_slice();
        let mut found: Vec<FollowedLink> = Vec::new();
        for NamedFile { located, whole, kind } in named {
            for state in &mut states {
                let Some(to) = state.leads(&whole, kind, roots) else { continue };
                let link = FollowedLink { kind, path: located.clone(), to, moved: false };
                if link.to != link.path && !found.ends_with(std::slice::from_ref(&link)) {
                    found.push(link);
                }
            }
        }
        found.extend(moved);
        found
    }

    /// Returns the possible targets of edits that may be moves. The old path is gone without a call that deletes it, or has a
    /// new file since. A file that one call made, and no other one changed, was not moved by an edit.
    fn moved(&mut self, states: States<'_>) -> Vec<FollowedLink> {
        let Some(edits) = self.edits.take() else { return Vec::new() };
        let kind = ToolKind::Edit;
        let as_deleted = |file: &NamedFile| NamedFile { kind: ToolKind::Delete, ..file.clone() };
        let may_be_moved = |file: &NamedFile| {
            let path = file.located.clone();
            if states.workspace.join(&file.whole).symlink_metadata().is_ok() {
                return states.old_content(&path).map(|old| Edited { path, stub_of: Some(old) });
            }
            let was_there =
                edits.get(&path).is_some_and(|count| *count > 1) || states.before.join(&file.whole).exists();
            let is_moved = was_there && !self.named.contains(&as_deleted(file));
            is_moved.then_some(Edited { path, stub_of: None })
        };
        let is_inside = |file: &NamedFile| !file.whole.is_absolute() && !file.located.starts_with('/');
        let files = self.named.iter().filter(|it| it.kind == kind && is_inside(it));
        let mut edited: Vec<Edited> = files.filter_map(may_be_moved).collect();
        edited.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        edited.dedup_by(|a, b| a.path == b.path);
        let changed = self.named.iter().filter(|it| it.kind.changes_files());
        let changed: HashSet<&str> = changed.map(|it| it.located.as_str()).collect();
        let targets = states.targets(&edited, |path| changed.contains(path));
        let links = edited.iter().zip(targets).flat_map(|(file, targets)| {
            targets.into_iter().map(move |to| FollowedLink { kind, path: file.path.clone(), to, moved: true })
        });
        links.collect()
    }
}

/// A state of the workspace.
struct State<'a> {
    agent: AgentView<'a>,
    /// The folders that were looked at: true if a link leads to it.
    folders: HashMap<PathBuf, bool>,
}

impl<'a> State<'a> {
    fn new(folder: &'a Path, temporary: Option<&'a Path>) -> Self {
        Self { agent: AgentView { folder, temporary }, folders: HashMap::new() }
    }

    /// Returns the file to which a path leads, if a part of it is a link. A path outside the workspace matters only if it leads
    /// into it, or if it is unknown where it leads. `roots` returns the folders that stand for the workspace, without links in
    /// their paths.
    fn leads<'r>(&mut self, path: &Path, kind: ToolKind, roots: impl Fn() -> &'r [PathBuf]) -> Option<String> {
        let is_outside = path.is_absolute();
        // A link is itself removed or renamed, and not the file to which it leads.
        let follows_last = !matches!(kind, ToolKind::Delete | ToolKind::Move);
        if !is_outside && !self.has_link(path, follows_last) {
            return None;
        }
        let whole = self.agent.folder.join(path);
        let real = match (follows_last, whole.parent(), whole.file_name()) {
            (false, Some(folder), Some(name)) => self.agent.real(folder).map(|folder| folder.join(name)),
            _ => self.agent.real(&whole),
        };
        let Some(real) = real else { return Some(view::UNREAD_PATH.to_owned()) };
        let inside = roots().iter().find_map(|root| real.strip_prefix(root).ok());
        match inside {
            Some(inside) if inside.as_os_str().is_empty() => Some(".".to_owned()),
            Some(inside) => Some(inside.to_string_lossy().into_owned()),
            None if is_outside => None,
            None => Some(real.to_string_lossy().into_owned()),
        }
    }

    /// Returns true if a part of a path in the workspace is a link.
    fn has_link(&mut self, path: &Path, with_last: bool) -> bool {
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        let mut at = self.agent.folder.to_owned();
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            at.push(part);
            let is_last = parts.peek().is_none();
            if is_last {
                return with_last && is_link(&at);
            }
            let is_link = *self.folders.entry(at.clone()).or_insert_with_key(|at| is_link(at));
            if is_link {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;
    use crate::trace::ToolCall;

    /// Returns `kind path -> file` for each path that leads elsewhere, in a workspace that `make` fills.
    fn followed(make: impl Fn(&Path, &Path), calls: &[(ToolKind, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (workspace, before) = (root.join("w"), root.join("before"));
        for folder in ["w/src", "before/src", "out"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        make(&workspace, &before);
        let mut named = NamedFiles::new(&workspace.to_string_lossy());
        for (number, (kind, path)) in calls.iter().enumerate() {
            let path = path.replace("ROOT", &root.to_string_lossy());
            let call = ToolCall {
                call: format!("c{number}"),
                step: 1,
                kind: *kind,
                name: None,
                title: None,
                input: Some(json!({"file_path": path})),
                without_input: false,
                unknown_kind: false,
                locations: Vec::new(),
                cwd: None,
            };
            named.event(&Event { seq: 0, at_ms: 0, parent: None, host: false, body: Body::ToolCall(call) });
        }
        let text = |link: FollowedLink| format!("{} {} -> {}", link.kind, link.path, link.to);
        let states = States { workspace: &workspace, before: &before, ignore: &[] };
        let links = named.followed(states, None).into_iter().map(text);
        links.map(|text| text.replace(&*root.to_string_lossy(), "ROOT")).collect()
    }

    #[test]
    fn a_link_leads_to_its_file_and_is_itself_removed() {
        let make = |workspace: &Path, before: &Path| {
            for folder in [workspace, before] {
                fs::write(folder.join("AGENTS.md"), "x").unwrap();
                symlink("AGENTS.md", folder.join("CLAUDE.md")).unwrap();
            }
        };
        let calls = [
            (ToolKind::Edit, "CLAUDE.md"),
            (ToolKind::Read, "ROOT/w/CLAUDE.md"),
            (ToolKind::Delete, "CLAUDE.md"),
            (ToolKind::Edit, "AGENTS.md"),
            (ToolKind::Edit, "new.txt"),
        ];
        assert_eq!(followed(make, &calls), ["read CLAUDE.md -> AGENTS.md", "edit CLAUDE.md -> AGENTS.md"]);
    }

    #[test]
    fn a_link_that_the_agent_made_or_removed_counts_too() {
        let make = |workspace: &Path, before: &Path| {
            symlink("../../out", workspace.join("src/l")).unwrap();
            symlink("../AGENTS.md", before.join("src/gone")).unwrap();
        };
        let calls = [(ToolKind::Edit, "src/l/deep/x"), (ToolKind::Edit, "src/gone"), (ToolKind::Edit, "src/l/../y")];
        assert_eq!(
            followed(make, &calls),
            ["edit src/gone -> AGENTS.md", "edit src/l/deep/x -> ROOT/out/deep/x", "edit src/y -> ROOT/y"]
        );
    }

    #[test]
    fn a_path_outside_matters_if_it_leads_into_the_workspace() {
        let make = |workspace: &Path, _: &Path| {
            symlink(workspace, workspace.parent().unwrap().join("out/in")).unwrap();
            symlink("../out", workspace.parent().unwrap().join("out/round")).unwrap();
        };
        let calls = [
            (ToolKind::Edit, "ROOT/out/in/src/a"),
            (ToolKind::Edit, "ROOT/out/round/a"),
            (ToolKind::Edit, "/proc/self/cwd/src/b"),
        ];
        assert_eq!(followed(make, &calls), ["edit /proc/self/cwd/src/b -> src/b", "edit ROOT/out/in/src/a -> src/a"]);
    }

    #[test]
    fn links_in_a_circle_end() {
        let make = |workspace: &Path, _: &Path| {
            symlink("b", workspace.join("a")).unwrap();
            symlink("a", workspace.join("b")).unwrap();
        };
        assert_eq!(followed(make, &[(ToolKind::Edit, "a")]), ["edit a -> (a path that cannot be read)"]);
    }

    #[test]
    fn a_link_to_a_folder_that_is_gone_and_one_into_a_process_count() {
        let make = |workspace: &Path, _: &Path| {
            symlink("../secret/new", workspace.join("src/gone")).unwrap();
            symlink("/proc/self/cwd/secret", workspace.join("src/cwd")).unwrap();
            symlink("/dev/fd/7", workspace.join("src/open")).unwrap();
        };
        let calls = ["src/gone/k", "src/cwd/k", "src/open", "/proc/self/cwd/../w/secret/k"];
        assert_eq!(
            followed(make, &calls.map(|path| (ToolKind::Edit, path))),
            [
                "edit /proc/self/w/secret/k -> secret/k",
                "edit src/cwd/k -> secret/k",
                "edit src/gone/k -> secret/new/k",
                "edit src/open -> (a path that cannot be read)",
            ]
        );
    }

    #[test]
    fn the_agent_may_have_a_folder_for_temporary_files_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (workspace, temporary) = (root.join("w"), root.join("t"));
        for folder in ["w/src", "w/secret", "t"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(workspace.join("secret"), temporary.join("l")).unwrap();
        symlink("/tmp/l", workspace.join("src/l")).unwrap();
        let view = AgentView { folder: &workspace, temporary: Some(&temporary) };
        for path in ["/tmp/l/k", &workspace.join("src/l/k").to_string_lossy()] {
            assert_eq!(view.real(Path::new(path)), Some(workspace.join("secret/k")), "{path}");
        }
    }
}
