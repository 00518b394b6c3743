//! Moves files aside that another program put into a trial's folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::result::Warning;
use crate::run::RunError;

/// The prefix of folders with files that another program put into a trial's folder.
const FOREIGN: &str = "foreign-";
/// The maximum number of names in a warning.
const MAX_NAMES: usize = 20;

/// Files that another program put into a trial's folder, and their new path.
pub struct Foreign<'a> {
    folder: &'a Path,
    names: Vec<String>,
    to: Option<PathBuf>,
}

impl<'a> Foreign<'a> {
    /// Makes an empty list for a trial's folder.
    pub fn of(folder: &'a Path) -> Self {
        Self { folder, names: Vec::new(), to: None }
    }

    /// Adds the name of something that was removed instead of moved.
    pub fn add_name(&mut self, name: String) {
        self.names.push(name);
    }

    /// Moves a path aside, if it exists.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn take(&mut self, path: &Path) -> Result<(), RunError> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let to = match &self.to {
            Some(to) => to.clone(),
            None => {
                let free = |number: u32| self.folder.join(format!("{FOREIGN}{number}"));
                let to = (1..).map(free).find(|to| to.symlink_metadata().is_err()).unwrap_or_default();
                fs::create_dir(&to).map_err(RunError::io("make the folder", &to))?;
                self.to.insert(to).clone()
            }
        };
        let name = path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy().into_owned();
        let place = to.join(self.names.len().to_string()).with_extension(path.file_name().unwrap_or_default());
        fs::rename(path, &place).map_err(RunError::io("move aside", path))?;
        self.names.push(name);
        Ok(())
    }

    /// Returns a warning if there were such files.
    pub fn warning(self) -> Option<Warning> {
        let moved_to = self.to.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let names: Vec<String> = self.names.into_iter().take(MAX_NAMES).collect();
        (!names.is_empty()).then_some(Warning::ForeignFiles { names, moved_to })
    }
}

/// Returns true for a folder with files that were moved aside.
pub fn is_aside(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(FOREIGN))
}

/// Moves everything in a trial's folder aside that is not the engine's own.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn take_all(folder: &Path, is_own: impl Fn(&str) -> bool) -> Result<Option<Warning>, RunError> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let entries = entries.map_err(RunError::io("list", folder))?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| !is_aside(path) && !path.file_name().and_then(|name| name.to_str()).is_some_and(&is_own));
    paths.sort();
    let mut foreign = Foreign::of(folder);
    paths.iter().try_for_each(|path| foreign.take(path))?;
    Ok(foreign.warning())
}
