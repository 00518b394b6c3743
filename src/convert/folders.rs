//! Finds task folders by a file that each of them has.

use std::path::{Path, PathBuf};

use super::{slug, whole};
use crate::yaml::YamlError;

/// The maximum depth of folders that are searched.
const DEPTH: usize = 6;

/// Returns the name of the group, and the folders at or below a path that contain a file of this name.
///
/// # Errors
/// Returns an error if the path cannot be read, or there is no such folder.
pub fn with(path: &Path, file: &str) -> Result<(String, Vec<PathBuf>), YamlError> {
    let found = std::fs::metadata(path);
    let kind = found.map_err(|error| whole(path, format!("the path could not be read: {error}")))?;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if kind.is_file() {
        if path.file_name().is_none_or(|name| name != file) {
            return Err(whole(path, format!("the file is no `{file}`")).with_help("name the folder of a task"));
        }
        let folder = absolute.parent().unwrap_or(Path::new("/")).to_owned();
        return Ok((group(folder.parent()), vec![super::source::folder(path)]));
    }
    if path.join(file).is_file() {
        return Ok((group(absolute.parent()), vec![path.to_owned()]));
    }
    let mut folders = Vec::new();
    walk(path, file, 0, &mut folders);
    match folders.is_empty() {
        true => Err(whole(path, format!("no folder here or below contains `{file}`"))),
        false => Ok((group(Some(&absolute)), folders)),
    }
}

/// Returns the name of a folder.
pub fn name(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn group(folder: Option<&Path>) -> String {
    let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.as_deref().and_then(slug).unwrap_or_else(|| "tasks".to_owned())
}

fn walk(folder: &Path, file: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect();
    paths.sort();
    for path in paths {
        let is_private = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.join(file).is_file() {
            found.push(path);
        } else if depth < DEPTH && !is_private {
            walk(&path, file, depth + 1, found);
        }
    }
}
