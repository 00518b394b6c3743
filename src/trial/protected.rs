//! Protected files, which an agent must not change: changes are detected and undone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::case::{Case, Workspace};
use crate::result::Warning;
use crate::result::warning::FileChange;
use crate::run::temporary::Vanishing;
use crate::values::{PathGlob, is_plain};
use crate::workspace::change::{Change, FileChangeKind, differences};
use crate::workspace::link_targets::LinkTargets;
use crate::workspace::make_ready::make_ready;
use crate::workspace::restore::{put_back, put_back_folder};
use crate::workspace::stamp::FolderStamps;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::walk::{Descend, is_incomplete, walk};

mod ignored;
mod named_files;
mod while_graded;

use ignored::IgnoredByGit;
use named_files::names_file;
pub(super) use while_graded::{WatchedFiles, folders};

/// The maximum number of files that are named in a result.
const MAX_NAMED_FILES: usize = 20;

/// The maximum number of files behind a link that are searched for protected paths.
const MAX_FILES_BEHIND_LINK: usize = 100_000;

/// Restores protected files. Returns a warning for each one, up to the maximum.
///
/// An ignored file is protected if the original has it, or if a glob is its path, names the ignored folder, such as
/// `**/node_modules/**`, or names the file outside of ignored folders, such as `**/.npmrc`. Files that a build leaves beside
/// protected files are not. A pipe, a socket or a device counts as a new file, and so does a link to a folder through which a
/// new protected path leads.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn restore(case: &Workspace, before: &Path, workspace: &Path, now: &Tree) -> io::Result<Vec<Warning>> {
    let found = touched(case, before, workspace, now)?;
    for (path, _) in &found {
        put_back(before, workspace, path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    Ok(restored_warnings(case, &found))
}

/// Returns a text for each protected file that differs from the state before the agent, up to the maximum. They are those that
/// [`restore`] restores.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn notices(case: &Workspace, before: &Path, workspace: &Path) -> io::Result<Vec<String>> {
    if case.protect.is_empty() {
        return Ok(Vec::new());
    }
    let now = Tree::read(workspace, &Ignore::of(before, &case.ignore)?)?;
    let warnings = restored_warnings(case, &touched(case, before, workspace, &now)?);
    Ok(warnings.iter().map(|warning| without_putting_back(warning).to_string()).collect())
}

/// Returns the protected files that differ from the state before the agent, new ones first: they may block the path of an original.
fn touched(
    case: &Workspace,
    before: &Path,
    workspace: &Path,
    now: &Tree,
) -> io::Result<Vec<(PathBuf, FileChangeKind)>> {
    let globs = &case.protect;
    if globs.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = |path: &Path| is_any(globs, path);
    let (old, new) = (Tree::only(before, wanted)?, Tree::only(workspace, wanted)?);
    let mut found = differences(&old, &new)?;
    let is_meant = |path: &Path| {
        let is_apart = || ignored_folder(path, now).is_none();
        let is_named = || {
            globs.iter().any(|glob| glob.is_path() && glob.is_match_path(path))
                || (is_apart() && globs.iter().any(|glob| names_file(glob, path)))
        };
        let is_seen = now.entries.contains_key(path) || now.beyond.special.contains(path);
        is_seen || is_named() || names_what_is_ignored(globs, path, now)
    };
    let is_new = |path: &&PathBuf| !old.entries.contains_key(*path) && !old.beyond.special.contains(*path);
    let special = new.beyond.special.iter().filter(is_new);
    found.extend(special.map(|path| (path.as_path(), FileChangeKind::Created)));
    found.retain(|(path, how)| *how != FileChangeKind::Created || is_meant(path));
    // What a build links in ignored folders counts only if a glob names it, as its files do.
    let is_counted = |link: &Path| {
        let is_named = || globs.iter().filter_map(PathGlob::path).any(|path| Path::new(&path).starts_with(link));
        !wanted(link) && (now.entries.contains_key(link) || is_named() || names_what_is_ignored(globs, link, now))
    };
    let links = links_to_protected(workspace, before, globs, is_counted)?;
    found.extend(links.iter().map(|link| (link.as_path(), FileChangeKind::Created)));
    found.sort_by_key(|(_, how)| *how != FileChangeKind::Created);
    Ok(found.into_iter().map(|(path, how)| (path.to_owned(), how)).collect())
}

/// Adds a warning about further protected files, if there are any.
fn with_more(mut warnings: Vec<Warning>, more: u64) -> Vec<Warning> {
    warnings.extend((more > 0).then_some(Warning::ProtectedFiles { more }));
    warnings
}

/// Returns the number of the protected files that are not named.
fn unnamed(warnings: &[Warning]) -> u64 {
    let more = warnings.iter().filter_map(|warning| match warning {
        Warning::ProtectedFiles { more } => Some(*more),
        _ => None,
    });
    more.max().unwrap_or(0)
}

/// Returns false for a warning of a newer version, which must not be left out.
fn is_read(warning: &Warning) -> bool {
    !matches!(warning, Warning::Unknown(_))
}

/// Returns the warnings about protected files of two sources in order, each once and up to the maximum.
pub(super) fn joined(first: Vec<Warning>, second: Vec<Warning>) -> Vec<Warning> {
    let more = unnamed(&first).max(unnamed(&second));
    let mut all: Vec<Warning> = first.into_iter().chain(second).collect();
    all.retain(|warning| !matches!(warning, Warning::ProtectedFiles { .. }));
    all.sort_by_cached_key(Warning::to_string);
    all.dedup();
    all.sort_by_key(is_read);
    let over = all.len().saturating_sub(MAX_NAMED_FILES);
    all.truncate(MAX_NAMED_FILES);
    with_more(all, more.max(over as u64))
}

/// Returns a warning for each restored file, up to the maximum.
fn restored_warnings(case: &Workspace, found: &[(PathBuf, FileChangeKind)]) -> Vec<Warning> {
    let named = found.iter().take(MAX_NAMED_FILES);
    let named = named.map(|(path, how)| restored_warning(case, how.as_change(), &path.to_string_lossy()));
    with_more(named.collect(), found.len().saturating_sub(MAX_NAMED_FILES) as u64)
}

/// The protected files of a workspace as the graders find them, copied, so that what their commands change can be put back.
pub(super) struct ProtectedCopy {
    copy: Vanishing,
    stamps: FolderStamps,
    workspace: PathBuf,
    globs: Vec<PathGlob>,
    /// The folders of the protected files, with their permission bits.
    folders: BTreeMap<PathBuf, u32>,
}

impl ProtectedCopy {
    /// Copies the protected files. Returns `None` if the case protects none.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub(super) fn of(case: &Workspace, workspace: &Path, temporary: &Path) -> io::Result<Option<Self>> {
        let globs = case.protect.clone();
        if globs.is_empty() || !workspace.is_dir() {
            return Ok(None);
        }
        let copy = Vanishing::make(temporary, "before-")?;
        let now = Tree::only(workspace, |path| is_any(&globs, path))?;
        for path in now.entries.keys() {
            put_back(workspace, copy.path(), path)?;
        }
        let mut folders = BTreeMap::new();
        walk(copy.path(), |path, meta| {
            if let (true, Ok(meta)) = (meta.is_dir(), workspace.join(path).symlink_metadata()) {
                folders.insert(path.to_owned(), permission_bits(&meta));
            }
            Descend::Enter
        })?;
        let stamps = FolderStamps::of(copy.path())?;
        Ok(Some(Self { copy, stamps, workspace: workspace.to_owned(), globs, folders }))
    }

    /// Puts back the protected files that changed since, with the permission bits of their folders, and removes new ones. Returns
    /// their paths, without those of Python's compiled modules.
    ///
    /// # Errors
    /// Returns the reason if the files are unknown or cannot be put back.
    pub(super) fn put_back(&self) -> Result<Vec<String>, String> {
        if let Some(path) = self.stamps.first_change() {
            let path = path.display();
            return Err(format!("another program changed `{path}` in the engine's copy of the protected files"));
        }
        let failed =
            |error: io::Error| format!("protected files could not be put back after an earlier grader: {error}");
        let folders = self.put_back_folders().map_err(failed)?;
        // A folder that cannot be read may hold new protected files.
        make_ready(&self.workspace).map_err(failed)?;
        let wanted = |path: &Path| is_any(&self.globs, path);
        let old = Tree::only(self.copy.path(), wanted).map_err(failed)?;
        let new = Tree::only(&self.workspace, wanted).map_err(failed)?;
        let mut found = differences(&old, &new).map_err(failed)?;
        let special = new.beyond.special.iter();
        found.extend(special.map(|path| (path.as_path(), FileChangeKind::Created)));
        // New files are removed first: they may block the path of an original.
        found.sort_by_key(|(_, how)| *how != FileChangeKind::Created);
        for (path, _) in &found {
            put_back(self.copy.path(), &self.workspace, path).map_err(failed)?;
        }
        let is_compiled = |path: &Path| path.iter().any(|part| part == "__pycache__");
        let files = found.iter().map(|(path, _)| *path).filter(|path| !is_compiled(path));
        Ok(folders.iter().map(PathBuf::as_path).chain(files).map(|path| path.display().to_string()).collect())
    }

    /// Restores the folders of protected files that are gone or have other permission bits, and returns their paths.
    fn put_back_folders(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for (path, mode) in &self.folders {
            let now = self.workspace.join(path).symlink_metadata();
            if now.is_ok_and(|now| now.is_dir() && permission_bits(&now) == *mode) {
                continue;
            }
            put_back_folder(&self.workspace, path, *mode)?;
            found.push(path.clone());
        }
        Ok(found)
    }
}

fn permission_bits(meta: &Metadata) -> u32 {
    meta.permissions().mode() & 0o7777
}

/// Returns true if one of the globs protects a path.
pub(super) fn is_any(globs: &[PathGlob], path: &Path) -> bool {
    globs.iter().any(|glob| glob.protects(path) && means(glob, path))
}

/// Returns a warning about globs of a case that protect no file, because the workspace has no such folder. Mined cases
/// protect files that do not exist on purpose.
pub(super) fn unmatched(case: &Case, before: &Path) -> Option<Warning> {
    let has_folder = |folder: &Path| {
        before.join(folder).is_dir() || case.hidden.as_ref().is_some_and(|hidden| hidden.join(folder).is_dir())
    };
    let globs = case.workspace.unmatched_protection(has_folder);
    (case.provenance.is_none() && !globs.is_empty()).then_some(Warning::ProtectMatchedNothing { globs })
}

/// Returns links to folders that the agent made or changed, that count, and through which a path leads that is protected.
fn links_to_protected(
    workspace: &Path,
    before: &Path,
    globs: &[PathGlob],
    is_counted: impl Fn(&Path) -> bool,
) -> io::Result<Vec<PathBuf>> {
    let mut links = Vec::new();
    walk(workspace, |path, meta| {
        let is_new = || fs::read_link(workspace.join(path)).ok() != fs::read_link(before.join(path)).ok();
        if meta.is_symlink() && is_new() && is_counted(path) {
            match Behind::of(&workspace.join(path)) {
                Behind::NoFolder => {}
                behind => links.push((path.to_owned(), behind)),
            }
        }
        Descend::Enter
    })?;
    if links.is_empty() {
        return Ok(Vec::new());
    }
    let root = workspace.canonicalize()?;
    let mut search = SearchBehindLinks { globs, workspace, root, without: BTreeSet::new() };
    links.retain(|(link, behind)| {
        let below: Vec<&PathGlob> = globs.iter().filter(|glob| may_match_below(glob, link)).collect();
        if *behind == Behind::Unknown {
            return !below.is_empty();
        }
        let is_there =
            |path: String| is_any(globs, Path::new(&path)) && workspace.join(path).symlink_metadata().is_ok();
        below.iter().filter_map(|glob| glob.path()).any(is_there)
            || (below.iter().any(|glob| !glob.is_path()) && search.finds_protected(link, &below))
    });
    Ok(links.into_iter().map(|(link, _)| link).collect())
}

/// The end of a link, as far as protected files are concerned.
#[derive(PartialEq, Eq)]
enum Behind {
    NoFolder,
    Folder,
    /// The link may lead to a folder, or to another one, while graders run.
    Unknown,
}

impl Behind {
    fn of(link: &Path) -> Self {
        let targets = LinkTargets::of(link);
        let real = targets.places.iter().filter_map(|place| place.canonicalize().ok());
        let folders: BTreeSet<PathBuf> = real.filter(|place| place.is_dir()).collect();
        let now = link.canonicalize().ok();
        match () {
            () if targets.is_unknown || folders.iter().any(|folder| Some(folder) != now.as_ref()) => Self::Unknown,
            () if folders.is_empty() => Self::NoFolder,
            () => Self::Folder,
        }
    }
}

/// Returns true if a glob may match a path below a link.
fn may_match_below(glob: &PathGlob, link: &Path) -> bool {
    let path = glob.path();
    let text = glob.to_string();
    // An absolute glob is about no path of the workspace.
    let fixed = match &path {
        Some(path) => PathBuf::from(path.rsplit_once('/').map_or("", |(folder, _)| folder)),
        None => fixed_folders(&text),
    };
    !text.starts_with('/') && (fixed.starts_with(link) || (path.is_none() && link.starts_with(&fixed)))
}

/// Searches the folders behind links of an agent for protected paths.
struct SearchBehindLinks<'a> {
    globs: &'a [PathGlob],
    workspace: &'a Path,
    /// The workspace, without links in its path.
    root: PathBuf,
    /// The folders outside the workspace that hold no file whose name alone is protected.
    without: BTreeSet<PathBuf>,
}

impl SearchBehindLinks<'_> {
    /// Returns true if a path through a link to a folder is protected, also by further links to folders outside the workspace, or
    /// if this is unknown, because there are too many files, or a folder cannot be read. `below` are the globs that may match such
    /// a path.
    fn finds_protected(&mut self, link: &Path, below: &[&PathGlob]) -> bool {
        // Then, a folder needs no second search under another path.
        let is_by_name = below.iter().all(|glob| glob.is_path() || names_files_anywhere(glob));
        let (mut looked_at, mut found) = (0, false);
        let (mut paths, mut seen) = (vec![link.to_owned()], BTreeSet::new());
        while let Some(through) = paths.pop() {
            let Ok(folder) = self.workspace.join(&through).canonicalize() else { return true };
            let is_outside = !folder.starts_with(&self.root);
            if is_by_name && is_outside && (self.without.contains(&folder) || !seen.insert(folder.clone())) {
                continue;
            }
            let walked = walk(&folder, |within, meta| {
                let path = through.join(within);
                looked_at += 1;
                found |= looked_at > MAX_FILES_BEHIND_LINK || (!meta.is_dir() && is_any(self.globs, &path));
                if found {
                    return Descend::Skip;
                }
                if meta.is_symlink() {
                    let place = folder.join(within);
                    match Behind::of(&place) {
                        Behind::NoFolder => {}
                        // In the workspace, it counts by itself if the agent made it.
                        Behind::Unknown => found |= is_outside && below.iter().any(|glob| may_match_below(glob, &path)),
                        Behind::Folder if place.canonicalize().is_ok_and(|real| real.starts_with(&self.root)) => {}
                        Behind::Folder => paths.push(path),
                    }
                }
                Descend::Enter
            });
            if found || is_incomplete(&folder, &walked) {
                return true;
            }
        }
        self.without.extend(seen);
        false
    }
}

/// Returns true if a glob matches files of a name in any folder: `**/*.test.js`.
fn names_files_anywhere(glob: &PathGlob) -> bool {
    glob.to_string().strip_prefix("**/").is_some_and(|name| !name.contains('/'))
}

/// Returns the folders of a glob up to its first wildcard: `tests/unit` of `tests/unit/**`.
fn fixed_folders(glob: &str) -> PathBuf {
    let parts: Vec<&str> = glob.split('/').collect();
    let folders = &parts[..parts.len().saturating_sub(1)];
    folders.iter().take_while(|part| is_plain(part)).collect()
}

/// Returns the warning about a protected file that was restored.
fn restored_warning(case: &Workspace, change: FileChange, path: &str) -> Warning {
    Warning::ProtectedFile { path: path.to_owned(), change, put_back: true, fails: case.protect_strict }
}

/// Returns warnings about files that are protected now, from an earlier result and the stored change, up to the maximum.
pub(super) fn touched_before(case: &Workspace, change: Option<&Change>, warnings: &[Warning]) -> Vec<Warning> {
    let is_protected = |path: &str| is_protected(&case.protect, path);
    // Ignored files are in no patch, so only the earlier result mentions them.
    let of_files = warnings.iter().filter(|warning| match warning {
        Warning::ProtectedFile { path, .. } => is_protected(path),
        // A warning about a protected file that a newer version wrote is unknown here, but must not let the trial
        // pass.
        Warning::Unknown(map) => map.get("code").and_then(|code| code.as_str()) == Some("protected_file"),
        _ => false,
    });
    let mut touched: Vec<Warning> = of_files.cloned().collect();
    for warning in &mut touched {
        if let Warning::ProtectedFile { fails, .. } = warning {
            *fails = case.protect_strict;
        }
    }
    // If none of the files that the earlier result names is protected now, neither are those that it does not name.
    let more = if touched.is_empty() { 0 } else { unnamed(warnings) };
    let reported: BTreeSet<(&str, &str)> = warnings
        .iter()
        .filter_map(|warning| match warning {
            Warning::ProtectedFile { path, change, .. } => Some((path.as_str(), change.word())),
            _ => None,
        })
        .collect();
    let files = change.iter().flat_map(|change| change.files());
    let others = files.filter(|(path, how)| !reported.contains(&(*path, how.word())) && is_protected(path));
    let others: Vec<(&str, FileChange)> = others.collect();
    // The files that the earlier result does not name may be those of the change.
    let count = (touched.len() as u64).saturating_add(more.max(others.len() as u64));
    touched.sort_by_key(is_read);
    let room = MAX_NAMED_FILES.saturating_sub(touched.len());
    touched.truncate(MAX_NAMED_FILES);
    touched.extend(others.into_iter().take(room).map(|(path, how)| restored_warning(case, how, path)));
    let more = count.saturating_sub(touched.len() as u64);
    with_more(touched, more)
}

/// Returns true if one of the globs protects a path.
pub(super) fn is_protected(globs: &[PathGlob], path: &str) -> bool {
    is_any(globs, Path::new(path))
}

/// Returns the changed files that are protected, and that [`restore`] therefore restores.
pub(super) fn restored(case: &Workspace, change: &Change) -> Vec<String> {
    let paths = change.files().map(|(path, _)| path);
    paths.filter(|path| is_protected(&case.protect, path)).map(str::to_owned).collect()
}

/// Returns why a failure of a command does not count, if the agent changed or removed a protected file that git ignores and no glob
/// names, and that was restored: a build may use it in place of the agent's work. `before` is the state before the agent.
///
/// # Errors
/// Returns an error if the state before the agent cannot be read.
pub(super) fn doubt_of_failures(case: &Workspace, before: &Path, warnings: &[Warning]) -> io::Result<Option<String>> {
    let restored = warnings.iter().filter_map(|warning| match warning {
        Warning::ProtectedFile { path, change, put_back: true, .. } => {
            (*change != FileChange::Created).then_some(path.as_str())
        }
        _ => None,
    });
    let restored: Vec<&str> = restored.collect();
    if restored.is_empty() {
        return Ok(None);
    }
    let ignored = IgnoredByGit::of(&case.protect, before)?;
    let path = restored.into_iter().find(|path| ignored.has(Path::new(path)));
    Ok(path.map(|path| {
        format!(
            "the protected file `{path}`, which git ignores, changed while the agent worked, and was put back as it was before, so \
             it is unknown whether this fails: a build may use it in place of the agent's work. Let the grader remove or build it \
             first, or leave it out of `workspace.protect`"
        )
    }))
}

/// Returns the same warning, without the claim that the file was restored.
pub(super) fn without_putting_back(warning: &Warning) -> Warning {
    match warning.clone() {
        Warning::ProtectedFile { path, change, fails, .. } => {
            Warning::ProtectedFile { path, change, put_back: false, fails }
        }
        other => other,
    }
}

/// Returns true if a glob that applies to an ignored file names its ignored folder: `dist`, `{dist,out}` or `di?t`, and not `*`. `now`
/// has the files that are not ignored, and the ignored folders in which git tracks files.
fn names_what_is_ignored(globs: &[PathGlob], path: &Path, now: &Tree) -> bool {
    // A folder with nothing but ignored files may be above the one that a rule names, as `pkg` above `pkg/node_modules`.
    let of_rule = path.ancestors().skip(1).find(|folder| now.is_left_out(folder));
    let folders: Vec<&Path> = ignored_folder(path, now).into_iter().chain(of_rule).collect();
    let names: Vec<&OsStr> = folders.into_iter().filter_map(Path::file_name).collect();
    let is_name = |part: &str| {
        let glob = part.contains(char::is_alphanumeric).then(|| part.parse::<PathGlob>().ok()).flatten();
        let is_match = |name: &OsStr| glob.as_ref().is_some_and(|glob| glob.is_match_path(name.as_ref()));
        names.iter().any(|name| OsStr::new(part) == *name || is_match(name))
    };
    // Alternatives may have several folders.
    let has_paths = |glob: &str| {
        let mut depth = 0_usize;
        glob.chars().any(|c| {
            depth = match c {
                '{' => depth + 1,
                '}' => depth.saturating_sub(1),
                _ => depth,
            };
            c == '/' && depth > 0
        })
    };
    let names = |glob: String| has_paths(&glob) || glob.split('/').any(is_name);
    globs.iter().any(|glob| glob.protects(path) && names(glob.to_string()))
}

/// Returns the ignored folder that an ignored file is in. `now` has the files that are not ignored.
fn ignored_folder<'a>(path: &'a Path, now: &Tree) -> Option<&'a Path> {
    let has_files =
        |folder: &Path| now.entries.range(folder.to_owned()..).next().is_some_and(|it| it.0.starts_with(folder));
    let mut above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    above.reverse();
    let is_ignored = |folder: &&Path| now.entered.contains(*folder) || !has_files(folder);
    above.into_iter().find(is_ignored)
}

/// Returns false for a path in a folder `.git` if the glob does not name that folder: agents commit, so a glob such as
/// `**` does not protect the folder. Whether the glob matches the path is not checked here, but by [`PathGlob::protects`].
fn means(glob: &PathGlob, path: &Path) -> bool {
    glob.to_string().contains(".git") || !path.components().any(|part| part.as_os_str() == ".git")
}
