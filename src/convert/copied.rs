//! The files that a converted case copies to its workspace: regular files that stay in their folder.

use std::path::{Path, PathBuf};

use crate::paths;

/// The maximum number of files of a case.
const MOST: usize = 10_000;
/// The maximum depth of folders.
const DEPTH: usize = 32;

/// A file to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The file.
    pub from: PathBuf,
    /// The file's path in the workspace.
    pub to: PathBuf,
}

/// Returns the files at a path below a folder: one file, or all files of a folder.
///
/// # Errors
/// Returns an error if the path leaves the folder, does not exist, or contains anything but files and folders.
pub fn below(folder: &Path, path: &str, to: &Path) -> Result<Vec<Copied>, String> {
    if let Some(why) = paths::leaves(Path::new(path)) {
        return Err(format!("the path {why}"));
    }
    if let Some(why) = paths::leaves(to) {
        return Err(format!("the path in the workspace {why}"));
    }
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        _ => format!("the file could not be read: {error}"),
    };
    let real = folder.join(path).canonicalize().map_err(failed)?;
    let root = folder.canonicalize().map_err(failed)?;
    if !real.starts_with(&root) {
        return Err("a link leads out of the folder".to_owned());
    }
    let mut found = Vec::new();
    collect(&real, to, 0, &|_| false, &mut found)?;
    Ok(found)
}

/// Returns all files of a folder.
///
/// # Errors
/// Returns an error if this is not a folder, or if the folder contains anything but files and folders.
pub fn all(folder: &Path, to: &Path) -> Result<Vec<Copied>, String> {
    all_but(folder, to, &|_| false)
}

/// Returns the files of a folder, without those whose path in the workspace is left out.
///
/// # Errors
/// Returns an error if `folder` is not a folder, or if something that is not left out is neither a file nor a folder.
pub fn all_but(folder: &Path, to: &Path, is_left_out: &dyn Fn(&Path) -> bool) -> Result<Vec<Copied>, String> {
    let real = folder.canonicalize().map_err(|error| format!("the folder could not be read: {error}"))?;
    // A file has no path in the workspace.
    if !real.is_dir() {
        return Err("this is not a folder".to_owned());
    }
    let mut found = Vec::new();
    collect(&real, to, 0, is_left_out, &mut found)?;
    Ok(found)
}

fn collect(
    from: &Path,
    to: &Path,
    depth: usize,
    is_left_out: &dyn Fn(&Path) -> bool,
    found: &mut Vec<Copied>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("`{}` could not be read: {error}", to.display());
    let kind = from.symlink_metadata().map_err(failed)?.file_type();
    if !kind.is_dir() && is_left_out(to) {
        return Ok(());
    }
    if kind.is_file() {
        if found.len() >= MOST {
            return Err(format!("there are more than {MOST} files"));
        }
        found.push(Copied { from: from.to_owned(), to: to.to_owned() });
        return Ok(());
    }
    if !kind.is_dir() {
        return Err(format!("`{}` is neither a regular file nor a folder", to.display()));
    }
    if depth >= DEPTH {
        return Err(format!("folders are nested more than {DEPTH} deep"));
    }
    let mut names: Vec<_> = std::fs::read_dir(from).map_err(failed)?.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names.iter().try_for_each(|name| collect(&from.join(name), &to.join(name), depth + 1, is_left_out, found))
}
