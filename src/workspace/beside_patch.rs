//! Records the folders without files and the permission bits that a patch cannot hold, and gives them to a rebuilt
//! workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::apply;
use super::change::Change;
use super::tree::{Entry, Tree};
use crate::result::BesidePatch;

/// The maximum number of folders, of permission bits, and of other places that are recorded.
pub const MAX_PLACES: usize = 1000;

/// A function that returns the text that a path is recorded by, or `None` if it must not be recorded or is not text.
pub type Name<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// Returns the recorded texts of paths, or `None` if one of them cannot be recorded, or there are too many.
pub(super) fn names<'a>(paths: impl IntoIterator<Item = &'a Path>, name: Name<'_>) -> Option<Vec<String>> {
    let names: Option<Vec<String>> = paths.into_iter().take(MAX_PLACES + 1).map(name).collect();
    names.filter(|names| names.len() <= MAX_PLACES)
}

/// Returns the folders without files that are new, and the folders that were deleted with one, if they can be recorded.
pub(super) fn folders(old: &Tree, new: &Tree, name: Name<'_>) -> Option<(Vec<String>, Vec<String>)> {
    let (before, after) = (without_files(old), without_files(new));
    let is_gone = |folder: &Path| !folder.as_os_str().is_empty() && !new.beyond.folders.contains(folder);
    // Applying the patch leaves the folders above a folder without files, even if the patch deletes all of their files.
    let gone: BTreeSet<&Path> =
        before.iter().flat_map(|folder| folder.ancestors().take_while(|folder| is_gone(folder))).collect();
    let made = names(after.difference(&before).copied(), name)?;
    let gone = names(gone, name)?;
    (made.len() + gone.len() <= MAX_PLACES).then_some((made, gone))
}

/// Returns the folders in which there is no file or link, however deep.
pub(super) fn without_files(tree: &Tree) -> BTreeSet<&Path> {
    let with: BTreeSet<&Path> = tree.entries.keys().flat_map(|path| path.ancestors().skip(1)).collect();
    tree.beyond.folders.iter().map(PathBuf::as_path).filter(|folder| !with.contains(folder)).collect()
}

/// Returns the permission bits that the patch does not determine, if they can be recorded: unusual ones of files and
/// folders that had others or that a rebuilt workspace makes anew, and usual ones of those that had unusual ones.
pub(super) fn modes(old: &Tree, new: &Tree, name: Name<'_>) -> Option<BTreeMap<String, String>> {
    let is_file = |tree: &Tree, path: &Path| matches!(tree.entries.get(path), Some(Entry::File { .. }));
    let kept = |path: &&PathBuf| is_file(old, path) && is_file(new, path);
    let holds_kept: BTreeSet<&Path> =
        new.entries.keys().filter(kept).flat_map(|path| path.ancestors().skip(1)).collect();
    let stays = |path: &Path| {
        (is_file(old, path) && is_file(new, path)) || (old.beyond.folders.contains(path) && holds_kept.contains(path))
    };
    let had = |path: &Path| old.beyond.modes.get(path).copied().filter(|_| stays(path));
    let unusual = new.beyond.modes.iter().filter(|(path, mode)| had(path) != Some(**mode));
    let is_usual_now = |path: &&PathBuf| {
        !new.beyond.modes.contains_key(*path) && (is_file(new, path) || new.beyond.folders.contains(*path))
    };
    let usual = old.beyond.modes.keys().filter(is_usual_now);
    let mut modes = BTreeMap::new();
    for (path, mode) in unusual.map(|(path, mode)| (path, Some(*mode))).chain(usual.map(|path| (path, None))) {
        let mode = match mode {
            Some(mode) => mode,
            None => new.root.join(path).symlink_metadata().ok()?.permissions().mode() & 0o7777,
        };
        modes.insert(name(path)?, format!("{mode:o}"));
        if modes.len() > MAX_PLACES {
            return None;
        }
    }
    Some(modes)
}

/// Returns the files and folders of both states that have other permission bits, as far as these are unusual in one of them, if
/// their names can be recorded. A `/` follows the path of a folder. A result records at most [`MAX_PLACES`] of them.
pub(super) fn changed_modes(old: &Tree, new: &Tree, with_folders: bool, name: Name<'_>) -> Option<Vec<String>> {
    let (before, after) = (&old.beyond, &new.beyond);
    let differs = |path: &&PathBuf| before.modes.get(*path) != after.modes.get(*path);
    let paths: BTreeSet<&PathBuf> = before.modes.keys().chain(after.modes.keys()).filter(differs).collect();
    let mut found = Vec::new();
    for path in paths {
        let is_file = [old, new].iter().all(|tree| matches!(tree.entries.get(path), Some(Entry::File { .. })));
        let is_folder = before.folders.contains(path) && after.folders.contains(path);
        if path.as_os_str().is_empty() || !(is_file || (is_folder && with_folders)) {
            continue;
        }
        let name = name(path)?;
        found.push(if is_folder { format!("{name}/") } else { name });
    }
    Some(found)
}

/// Records the places that changed without being measured. `mask` redacts the secrets in a path.
pub fn record_changed(recorded: &mut BesidePatch, change: &Change, mask: impl Fn(&str) -> String) {
    // Every place that no rule ignores decides whether nothing else changed, so these come first if not all are recorded.
    let plain: BTreeSet<&String> = change.in_plain_sight().collect();
    let (first, rest): (Vec<&String>, Vec<&String>) =
        change.unmeasured.iter().partition(|path| change.unmeasured.len() > MAX_PLACES && plain.contains(path));
    let places: Vec<(&String, String)> = first.into_iter().chain(rest).map(|path| (path, mask(path))).collect();
    let masked = places.iter().take(MAX_PLACES).filter(|(path, told)| *path != told).count();
    let unnamed = places.len().saturating_sub(MAX_PLACES) + masked;
    recorded.changed = places.into_iter().take(MAX_PLACES).map(|(_, told)| told).collect();
    recorded.special = change.special.iter().take(MAX_PLACES).map(|path| mask(path)).collect();
    let is_told = unnamed > 0 || recorded.unmeasured.is_none() || recorded.changed.len() >= MAX_PLACES;
    recorded.unnamed = is_told.then_some(unnamed as u64);
}

/// Adds to a change of a patch the places that a result records. Results of older versions do not say whether they name all.
pub fn recall_changed(change: &mut Change, recorded: &BesidePatch) {
    change.unmeasured.clone_from(&recorded.changed);
    change.special.clone_from(&recorded.special);
    let is_full = recorded.changed.len() >= MAX_PLACES;
    change.has_unnamed = recorded.unnamed.map_or(is_full || recorded.unmeasured.is_none(), |unnamed| unnamed > 0);
    // Then places that no rule ignores may be missing, too.
    change.is_patch_alone |= is_full && (recorded.unnamed.is_none() || change.in_plain_sight().count() >= MAX_PLACES);
}

/// Changes the folders without files of a rebuilt workspace as recorded. Returns false if this failed.
pub fn rebuild_folders(workspace: &Path, recorded: &BesidePatch) -> bool {
    // In this order a folder follows those in it.
    let mut deleted: Vec<&String> = recorded.deleted_folders.iter().collect();
    deleted.sort_by(|one, other| other.cmp(one));
    let mut all = true;
    for folder in deleted {
        all &= delete_folder(workspace, Path::new(folder)).is_ok();
    }
    for folder in &recorded.folders {
        all &= make_folder(workspace, Path::new(folder)).is_ok();
    }
    all
}

/// Sets the permission bits of a rebuilt workspace as recorded. Returns false if this failed.
pub fn rebuild_modes(workspace: &Path, recorded: &BesidePatch) -> bool {
    let mut all = true;
    for (path, mode) in recorded.modes.iter().rev() {
        all &= set_mode(workspace, Path::new(path), mode).is_ok();
    }
    all
}

/// Returns the place of a recorded path. Another program may have written the record: a path that may lead out of the
/// workspace is an error.
fn place(workspace: &Path, path: &Path, make: bool) -> io::Result<PathBuf> {
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_))) && path.file_name().is_some();
    if !is_inside {
        return Err(io::Error::other("it is not a path in the workspace"));
    }
    apply::place(workspace, path, make)
}

fn delete_folder(workspace: &Path, path: &Path) -> io::Result<()> {
    let place = match place(workspace, path, false) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        place => place?,
    };
    match place.symlink_metadata() {
        // A file or a link of the patch has taken the place of the folder.
        Ok(meta) if !meta.is_dir() => Ok(()),
        Ok(_) => fs::remove_dir(place),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn make_folder(workspace: &Path, path: &Path) -> io::Result<()> {
    let place = place(workspace, path, true)?;
    match place.symlink_metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        _ => fs::create_dir(place),
    }
}

fn set_mode(workspace: &Path, path: &Path, mode: &str) -> io::Result<()> {
    let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
    if mode > 0o7777 {
        return Err(io::Error::other("these are no permission bits"));
    }
    let place = place(workspace, path, false)?;
    let meta = place.symlink_metadata()?;
    if !meta.is_dir() && !meta.is_file() {
        return Err(io::Error::other("it is not a file or a folder"));
    }
    fs::set_permissions(place, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_changed_places_names_all_or_says_that_it_does_not() {
        let ignored = |count: usize| (0..count).map(|n| format!("{n}.log"));
        let mask = |path: &str| path.replace("secret", "***");
        let recalled = |recorded: &BesidePatch| {
            let mut change = Change::default();
            recall_changed(&mut change, recorded);
            (change.has_unnamed, change.is_patch_alone, change.may_break(&[]).is_some())
        };
        let some = || Some(Vec::new());
        for (count, more, unmeasured, expected) in [
            (3, None, some(), (None, (false, false, false))),
            (3, None, None, (Some(0), (false, false, false))),
            (3, Some("pkg/.git"), some(), (None, (false, false, true))),
            (3, Some("secret/.git"), some(), (Some(1), (true, false, true))),
            (MAX_PLACES + 5, None, None, (Some(5), (true, false, false))),
            (MAX_PLACES + 5, Some("pkg/.git"), None, (Some(6), (true, false, true))),
        ] {
            let unmeasured_places = ignored(count).chain(more.map(str::to_owned)).collect();
            let change = Change { unmeasured: unmeasured_places, ..Change::default() };
            let mut recorded = BesidePatch { unmeasured, ..BesidePatch::default() };
            record_changed(&mut recorded, &change, mask);
            assert_eq!((recorded.unnamed, recalled(&recorded)), expected, "{count} {more:?}");
        }
        // Results of older versions.
        let older = |count: usize, unmeasured| {
            let changed = ignored(count).collect();
            BesidePatch { changed, unmeasured, ..BesidePatch::default() }
        };
        assert_eq!(recalled(&older(3, some())), (false, false, false));
        assert_eq!(recalled(&older(3, None)), (true, false, false));
        assert_eq!(recalled(&older(MAX_PLACES, None)), (true, true, false));
    }

    #[test]
    fn no_record_changes_anything_outside_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("w");
        fs::create_dir_all(&workspace).unwrap();
        fs::create_dir_all(root.path().join("other")).unwrap();
        std::os::unix::fs::symlink("../other", workspace.join("link")).unwrap();
        fs::set_permissions(root.path().join("other"), Permissions::from_mode(0o755)).unwrap();
        let other = root.path().join("other").display().to_string();
        for path in ["..", "../other", "../new", "link/new", "a/../../new", &other, "/", "", "."] {
            let folders = BesidePatch { folders: vec![path.to_owned()], ..BesidePatch::default() };
            let deleted = BesidePatch { deleted_folders: vec![path.to_owned()], ..BesidePatch::default() };
            let modes = [(path.to_owned(), "700".to_owned())].into();
            assert!(!rebuild_folders(&workspace, &folders), "{path}");
            assert!(!rebuild_folders(&workspace, &deleted), "{path}");
            assert!(!rebuild_modes(&workspace, &BesidePatch { modes, ..BesidePatch::default() }), "{path}");
        }
        for (path, mode) in [("link", "700"), ("a", "999"), ("a", "17777"), ("missing", "700")] {
            fs::write(workspace.join("a"), "x").unwrap();
            let modes = [(path.to_owned(), mode.to_owned())].into();
            assert!(!rebuild_modes(&workspace, &BesidePatch { modes, ..BesidePatch::default() }), "{path} {mode}");
        }
        assert_eq!(fs::metadata(root.path().join("other")).unwrap().permissions().mode() & 0o777, 0o755);
        let mut names: Vec<_> = fs::read_dir(root.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["other", "w"]);
    }
}
