//! Finds files of the case in what its agent gets: an agent that reads them knows how it is graded, or the solution.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::attachment;
use crate::case::kept::{Kept, SEARCHED_BYTES, Shown, ShownBy};
use crate::case::{Case, WorkspaceSource};
use crate::harness::{Home, Manifest};
use crate::overlay::{ExtraFiles, Item, Laid, OverlayPlace};
use crate::regular;
use crate::result::Warning;
use crate::result::warning::PROMPT_OF_VARIANT;
use crate::workspace::tree::{Entry, Tree};
use crate::workspace::walk::{Descend, walk};

/// The maximum number of files that are named in a result.
const MAX_NAMED_FILES: usize = 5;

/// Returns a warning if the agent got the case's own file, its reference solution, a script beside it, or its hidden files: in the
/// workspace, as it was before the agent started, or among `laid`, the result of [`laid`].
///
/// In a checkout of the repository that contains the case, these files are found by their paths, as an older version of
/// them shows the same. In all workspaces, the case's file and its solution are found by their content, and the files of its
/// hidden folder and of a solution that is a folder by their content below a folder of the same name: without the name of the
/// folder, a file that the task is to move or to copy would count.
///
/// # Errors
/// Returns an error if a file of the workspace cannot be read.
pub(super) fn warning(case: &Case, before: &Tree, laid: &[PathBuf]) -> io::Result<Option<Warning>> {
    let mut found = by_path(case, before);
    found.extend(by_content(case.kept(), before)?);
    found.extend(laid.iter().cloned());
    Ok(named(found))
}

/// Returns the files of the case among what is laid for its agent, beside the files of its workspace, as they are laid: into the
/// workspace, or below `~/` into the home. They are found by their content, wherever they are laid, also as a part of a text, and
/// in the attachments and the texts that an arm adds to the prompts. `left` is what setup left outside of the workspace: its paths
/// for people, and on this machine. It is searched for whole files, and only if the case has hidden files or a solution.
///
/// A file that the case's own workspace also has is no secret, nor is one that graders only read and that the case itself gives
/// its agents. `workspace` is the workspace before anything is laid into it.
///
/// # Errors
/// Returns an error if a file that is laid, or a folder of the workspace, cannot be read.
pub(super) fn laid(
    case: &Case,
    manifest: &Manifest,
    items: &[Item<'_>],
    left: &[(PathBuf, PathBuf)],
    workspace: &Path,
    user_home: Option<&Path>,
) -> io::Result<Vec<PathBuf>> {
    let mut search = Search { kept: case.kept(), found: Vec::new() };
    case.texts_of_arm.iter().try_for_each(|text| search.text(Path::new(PROMPT_OF_VARIANT), text))?;
    let home = Path::new("~");
    for item in items {
        let at = match item.place {
            OverlayPlace::User => home.join(&item.path),
            OverlayPlace::Project => item.path.clone(),
        };
        match item.what {
            Laid::Skill { folder, .. } => search.folder(&at, folder, &case.evals_in(folder))?,
            Laid::Instructions(instructions) => search.text(&at, &instructions.read()?)?,
            Laid::Files(ExtraFiles::Folder(folder)) => search.folder(&at, folder, &[])?,
            Laid::Files(ExtraFiles::Texts(texts)) => {
                texts.iter().try_for_each(|(path, text)| search.text(&at.join(path), text))?;
            }
        }
    }
    if let Home::Private(private) = &manifest.home {
        manifest.files.iter().try_for_each(|(path, text)| search.text(&home.join(path), text))?;
        let copied = user_home.map(|of_user| private.copy.iter().map(move |path| (path, of_user.join(path))));
        for (path, from) in copied.into_iter().flatten() {
            if from.is_dir() {
                search.folder(&home.join(path), &from, &[])?;
            } else if from.is_file() {
                search.file(&home.join(path), &from, from.metadata()?.len())?;
            }
        }
    }
    for file in &case.attachments {
        // An attachment that does not exist is an error of its own.
        let Ok(meta) = file.metadata() else { continue };
        let name = file.file_name().unwrap_or_default();
        search.file(&home.join(attachment::FOLDER).join(name), file, meta.len())?;
    }
    if case.hidden.is_some() || case.oracle.is_some() {
        left.iter().for_each(|(at, from)| search.left_by_setup(at, from));
    }
    search.secrets(case, workspace)
}

/// A search among what is laid.
struct Search<'a> {
    kept: &'a Kept,
    /// The files that show a kept file, as they are laid.
    found: Vec<(PathBuf, Shown<'a>)>,
}

impl Search<'_> {
    fn folder(&mut self, at: &Path, folder: &Path, left_out: &[PathBuf]) -> io::Result<()> {
        let mut failed = None;
        walk(folder, |path, meta| {
            if left_out.iter().any(|part| path.starts_with(part)) {
                return Descend::Skip;
            }
            if meta.is_file() {
                let done = self.file(&at.join(path), &folder.join(path), meta.len());
                failed = failed.take().or(done.err());
            }
            Descend::Enter
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn file(&mut self, at: &Path, file: &Path, len: u64) -> io::Result<()> {
        // A file that cannot be read is compared only if it has the size of a kept file.
        let text = if SEARCHED_BYTES.contains(&len) { regular::read(file).ok() } else { None };
        if let Some(text) = text {
            return self.bytes(at, &text);
        }
        let shown = self.kept.shown_by(at, len, true, || regular::digest(regular::open(file)?))?;
        self.found.extend(shown.into_iter().map(|shown| (at.to_owned(), shown)));
        Ok(())
    }

    /// Searches a file or a folder that setup left. A file that cannot be read shows nothing, and one that graders only read is
    /// given by the case itself.
    fn left_by_setup(&mut self, at: &Path, from: &Path) {
        let (kept, found) = (self.kept, &mut self.found);
        let mut look = |at: PathBuf, file: &Path, len: u64| {
            let shown = kept.shown_by(&at, len, true, || regular::digest(regular::open(file)?)).unwrap_or_default();
            let secret = shown.into_iter().filter(|shown| shown.by != ShownBy::ContentOfRead);
            found.extend(secret.map(|shown| (at.clone(), shown)));
        };
        match from.symlink_metadata() {
            Ok(meta) if meta.is_file() => look(at.to_owned(), from, meta.len()),
            Ok(meta) if meta.is_dir() => {
                let _ = walk(from, |path, meta| {
                    if meta.is_file() {
                        look(at.join(path), &from.join(path), meta.len());
                    }
                    Descend::Enter
                });
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn text(&mut self, at: &Path, text: &str) -> io::Result<()> {
        self.bytes(at, text.as_bytes())
    }

    /// Searches a text: a part of it may be a kept file, as in instructions that quote the solution.
    fn bytes(&mut self, at: &Path, text: &[u8]) -> io::Result<()> {
        let len = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let shown = self.kept.shown_by(at, len, true, || Ok(blake3::hash(text)))?;
        let shown = shown.into_iter().chain(self.kept.shown_in_text(text));
        self.found.extend(shown.map(|shown| (at.to_owned(), shown)));
        Ok(())
    }

    /// Returns the found files without those that the workspace also has, or that the case itself gives its agents. These are only
    /// read if something was found.
    fn secrets(self, case: &Case, workspace: &Path) -> io::Result<Vec<PathBuf>> {
        if self.found.is_empty() {
            return Ok(Vec::new());
        }
        let sizes: BTreeSet<u64> = self.found.iter().map(|(_, shown)| shown.len).collect();
        let mut public: Vec<(PathBuf, blake3::Hash)> = Vec::new();
        walk(workspace, |path, meta| {
            if path.file_name().is_some_and(|name| name == ".git") {
                return Descend::Skip;
            }
            if meta.is_file() && sizes.contains(&meta.len()) {
                let digest = regular::open(workspace.join(path)).and_then(regular::digest);
                public.extend(digest.ok().map(|digest| (path.to_owned(), digest)));
            }
            Descend::Enter
        })?;
        let is_only_read = |(_, shown): &(PathBuf, Shown<'_>)| shown.by == ShownBy::ContentOfRead;
        let given = if self.found.iter().any(is_only_read) { digests_given(case) } else { Vec::new() };
        let in_workspace = |shown: &Shown<'_>| public.iter().any(|(_, digest)| *digest == shown.digest);
        let is_public = |shown: &Shown<'_>| match shown.by {
            ShownBy::Own => false,
            ShownBy::Place(below) => public.iter().any(|(path, it)| path == below && *it == shown.digest),
            ShownBy::Content => in_workspace(shown),
            ShownBy::ContentOfRead => in_workspace(shown) || given.contains(&shown.digest),
        };
        Ok(self.found.into_iter().filter(|(_, shown)| !is_public(shown)).map(|(path, _)| path).collect())
    }
}

/// Returns the digests of the kept files that the case itself shows its agents, whatever their arm is: in its prompts, its
/// attachments, its skills and its instruction file.
fn digests_given(case: &Case) -> Vec<blake3::Hash> {
    let mut search = Search { kept: case.kept(), found: Vec::new() };
    let given = case.given();
    let texts = given.overlay.instructions.iter().filter_map(|instructions| instructions.read().ok());
    // An error leaves out what is not given: what cannot be read shows nothing.
    for text in given.prompts.iter().cloned().chain(texts) {
        let _ = search.text(Path::new(""), &text);
    }
    for file in &case.attachments {
        let _ = file.metadata().and_then(|meta| search.file(file, file, meta.len()));
    }
    for skill in &given.overlay.skills {
        let _ = search.folder(Path::new(""), &skill.folder, &case.evals_in(&skill.folder));
    }
    search.found.into_iter().map(|(_, shown)| shown.digest).collect()
}

/// Returns the warning that names these files, if there are some.
fn named(mut found: Vec<PathBuf>) -> Option<Warning> {
    found.sort();
    found.dedup();
    if found.is_empty() {
        return None;
    }
    let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let files = found.into_iter().take(MAX_NAMED_FILES).map(|path| path.to_string_lossy().into_owned()).collect();
    Some(Warning::CaseInWorkspace { files, count })
}

fn by_path(case: &Case, before: &Tree) -> Vec<PathBuf> {
    let WorkspaceSource::Git(source) = &case.workspace.source else { return Vec::new() };
    let Some(named) = source.repository.on_this_machine() else { return Vec::new() };
    let Ok(mut root) = work_tree(&named).canonicalize() else { return Vec::new() };
    root.extend(&source.subdir);
    let below = |path: &Path| Some(path.canonicalize().ok()?.strip_prefix(&root).ok()?.to_owned());
    // A solution may be a later state of the same folder.
    let is_part = |path: &PathBuf| !path.as_os_str().is_empty();
    let own: Vec<PathBuf> = case.kept_from_agent().filter_map(below).filter(is_part).collect();
    let is_in = |kept: &Path| kept.canonicalize().is_ok_and(|kept| root.starts_with(&kept) && root != kept);
    let is_hidden = case.hidden.as_ref().and_then(|path| path.canonicalize().ok()).is_some_and(|path| path == root);
    if is_hidden || case.kept_from_agent().any(is_in) {
        return before.entries.keys().cloned().collect();
    }
    before.entries.keys().filter(|path| own.iter().any(|own| path.starts_with(own))).cloned().collect()
}

/// Returns the folder of the files of a repository that may be named by its folder `.git`.
fn work_tree(repository: &Path) -> &Path {
    match repository.parent() {
        Some(above) if repository.ends_with(".git") => above,
        _ => repository,
    }
}

/// Returns the files of the workspace that show a kept file. A file that the workspace also has in its own place is no secret.
fn by_content(kept: &Kept, before: &Tree) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for (path, entry) in &before.entries {
        let Entry::File { len, .. } = entry else { continue };
        let shown = kept.shown_by(path, *len, false, || digest_in(before, path, *len))?;
        let is_public = |shown: &Shown<'_>| {
            let ShownBy::Place(below) = shown.by else { return false };
            let is_as_long = before.entries.get(below).is_some_and(|entry| entry.len() == shown.len);
            is_as_long && digest_in(before, below, shown.len).is_ok_and(|digest| digest == shown.digest)
        };
        if shown.iter().any(|shown| !is_public(shown)) {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Returns the digest of a file of a tree that had this size.
fn digest_in(tree: &Tree, path: &Path, len: u64) -> io::Result<blake3::Hash> {
    Ok(blake3::hash(&tree.bytes(path, len.saturating_add(1))?))
}
