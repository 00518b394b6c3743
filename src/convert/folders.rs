//! Finds task folders by a file that each of them has.

use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use super::source::{self, Visit};
use super::{Note, slug, whole};
use crate::yaml::YamlError;

/// Returns the name of the folder for the cases (from the folder around the tasks), and the task folders at or below a path:
/// those that contain a file of this name. Notes say which folders could not be searched.
///
/// # Errors
/// Returns an error if the path cannot be read, or there is no such folder.
pub fn tasks_below(path: &Path, file: &str, notes: &mut Vec<Note>) -> Result<(String, Vec<PathBuf>), Vec<YamlError>> {
    let found = std::fs::metadata(path);
    let kind = found.map_err(|error| vec![whole(path, format!("the path could not be read: {error}"))])?;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if kind.is_file() {
        if path.file_name().is_none_or(|name| name != file) {
            return Err(vec![whole(path, format!("the file is no `{file}`")).with_help("name the folder of a task")]);
        }
        let folder = absolute.parent().unwrap_or(Path::new("/")).to_owned();
        return Ok((group(folder.parent()), vec![source::folder(path)]));
    }
    if path.join(file).is_file() {
        return Ok((group(absolute.parent()), vec![path.to_owned()]));
    }
    let visit = |folder: &Path, kind: FileType| -> io::Result<Visit> {
        let is_private = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        Ok(match kind.is_dir() && source::has_file(folder, file)? {
            true => Visit::Take,
            false if is_private => Visit::LeaveOut,
            false => Visit::Search,
        })
    };
    let folders = source::entries_below(path, &visit, notes);
    match folders.is_empty() {
        true => Err(source::nothing_found(notes, whole(path, format!("no folder here or below contains `{file}`")))),
        false => Ok((group(Some(&absolute)), folders)),
    }
}

/// Returns the last part of the absolute path of a folder; `.` has the name of the current folder.
pub fn name(folder: &Path) -> String {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn group(folder: Option<&Path>) -> String {
    let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.as_deref().and_then(slug).unwrap_or_else(|| "tasks".to_owned())
}
