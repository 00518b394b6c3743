//! Restricts the files beside cases that a command may write if only a run's own record names them.

use std::path::{Path, PathBuf};

use super::CliError;
use crate::project;

/// Refuses a file that is below neither the working directory, nor the project's root, nor one of the folders `named`.
///
/// A run folder may come from elsewhere, and its `run.json` contains the paths of its cases: these paths must not
/// decide where something is written.
///
/// # Errors
/// Returns an error if the file is elsewhere, perhaps through a link. `way_out` states what the user can do.
pub fn refuse_elsewhere(file: &Path, named: &[PathBuf], way_out: &str) -> Result<(), CliError> {
    let real = real(file);
    let below = |folder: &Path| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
    if below(Path::new("."))
        || below(project::root())
        || named.iter().any(|path| below(if path.is_dir() { path } else { folder_of(path) }))
    {
        return Ok(());
    }
    Err(CliError::unreadable(format!(
        "the run names {}, which is not below the project's folder ({}), so nothing is written there; {way_out}",
        file.display(),
        project::root().display()
    )))
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the path with links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}
