//! The files of accepted snapshots: beside their cases, one file for each cell. Finds, reads and writes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::form;
use super::set::Accepted;
use crate::ids::ArmOf;
use crate::regular;
use crate::whole_file::FileError;
use crate::whole_file::write_whole;

/// The extension of the folder of a case's snapshots.
const FOLDER: &str = "snapshots";
/// The extension of the file of a cell.
const FILE: &str = "snap";

/// Returns the folder of a case's snapshots, beside the case.
pub fn folder(case: &Path) -> PathBuf {
    case.with_extension(FOLDER)
}

/// Returns the name of a cell's snapshot file: `HARNESS.snap`, `HARNESS@MODEL.snap` or `HARNESS+VARIANT.snap`.
///
/// # Errors
/// Returns an error if one of the names cannot be the name of a file.
pub fn file(folder: &Path, harness: &str, arm: ArmOf<'_>) -> Result<PathBuf, FileError> {
    Ok(folder.join(format!("{}.{FILE}", arm.file_name(harness)?)))
}

/// The reason why a snapshot could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system error.
    #[error("the snapshot {path} cannot be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a snapshot.
    #[error("the snapshot {path} cannot be read: {source}")]
    Form {
        /// The file.
        path: PathBuf,
        source: form::FormError,
    },
}

/// Reads the accepted snapshot, if there is one.
///
/// # Errors
/// Returns an error if the file exists and cannot be read.
pub fn read(path: &Path) -> Result<Option<Accepted>, StoreError> {
    Ok(read_with_digest(path)?.map(|(accepted, _)| accepted))
}

/// Reads the accepted snapshot and the digest of its file, if there is one.
///
/// # Errors
/// Returns an error if the file exists and cannot be read.
pub fn read_with_digest(path: &Path) -> Result<Option<(Accepted, String)>, StoreError> {
    match regular::read_to_string(path) {
        Ok(text) => {
            let accepted = form::read(&text).map_err(|source| StoreError::Form { path: path.to_owned(), source })?;
            Ok(Some((accepted, blake3::hash(text.as_bytes()).to_hex().to_string())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Io { path: path.to_owned(), source }),
    }
}

/// Writes the accepted snapshot, whole or not at all.
///
/// # Errors
/// Returns the error of the file system.
pub fn write(path: &Path, accepted: &Accepted) -> Result<(), FileError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(FileError::io("make the folder", folder))?;
    }
    let text = form::write(accepted);
    write_whole(path, |out| out.write_all(text.as_bytes()))
}

/// Returns the unreferenced snapshots below a folder of cases, with the reason: their case no longer exists, their
/// name is not the one of their cell, or `why_not` gives a reason for a snapshot beside its case.
pub fn unreferenced(root: &Path, why_not: &dyn Fn(&Path, &Accepted) -> Option<String>) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            // Links are not followed, because they may lead back to a parent folder.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir())
                || entry.file_name().to_string_lossy().starts_with('.')
            {
                continue;
            }
            if path.extension().is_some_and(|end| end == FOLDER) {
                of_case(&path, why_not, &mut found);
            } else {
                waiting.push(path);
            }
        }
    }
    found.sort();
    found
}

fn of_case(folder: &Path, why_not: &dyn Fn(&Path, &Accepted) -> Option<String>, found: &mut Vec<(PathBuf, String)>) {
    let case = folder.with_extension("yaml");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|end| end != FILE) {
            continue;
        }
        let misnamed = |accepted: &Accepted| {
            let right = file(folder, &accepted.id.harness, accepted.id.arm()).ok()?;
            (right != path).then(|| format!("its cell uses another file: {}", right.display()))
        };
        let why = match read(&path) {
            _ if !case.is_file() => Some(format!("the case {} does not exist", case.display())),
            Ok(Some(accepted)) => why_not(&case, &accepted).or_else(|| misnamed(&accepted)),
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        found.extend(why.map(|why| (path, why)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_files_of_their_own() {
        let folder = folder(Path::new("cases/fix.yaml"));
        assert_eq!(folder, Path::new("cases/fix.snapshots"));
        let of = |model| ArmOf { model, variant: None };
        let name = |harness: &str, model| file(&folder, harness, of(model)).unwrap().file_name().unwrap().to_owned();
        let variant = file(&folder, "demo", ArmOf { model: Some("a"), variant: Some("skill") }).unwrap();
        assert_eq!(variant.file_name().unwrap(), "demo+skill.snap");
        assert_eq!(name("demo", None), "demo.snap");
        assert_eq!(name("demo", Some("openai/gpt-5")), "demo@openai%2Fgpt-5.snap");
        assert_ne!(name("demo@x", None), name("demo", Some("x")));
        assert!(file(&folder, "..", of(None)).is_err());
        let long = "é".repeat(150);
        assert!(name(&long, Some(&long)).len() < 255);
        assert_ne!(name(&long, Some(&long)), name(&long, Some(&format!("{long}x"))));
    }
}
