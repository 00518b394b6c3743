//! Lays skills, an instruction file and further files into a workspace or a home.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{ExtraFiles, Instructions, Item, Laid, Mode, OverlayPlace};
use crate::harness::Manifest;
use crate::regular;
use crate::workspace::remove::remove;
use crate::workspace::{WorkspaceError, copy_folder, copy_folder_without};

/// The reason why a file or folder could not be added to a trial.
#[derive(Debug, thiserror::Error)]
pub enum LayError {
    /// The workspace or the home already has the skill.
    #[error("the skill `{name}` cannot be added at {path}, which already exists; remove one of the two")]
    SkillExists {
        /// The skill.
        name: String,
        /// The path, from the workspace or the home.
        path: PathBuf,
    },
    /// The workspace already has an instruction file at this path.
    #[error(
        "an instruction file cannot be added at {path}, which already exists; write `mode: append` or `mode: replace`"
    )]
    InstructionsExist {
        /// The path, from the workspace or the home.
        path: PathBuf,
    },
    /// A link on the path leads out of the folder.
    #[error("{path} cannot be added, because the path leads through a link; remove the link")]
    Link {
        /// The path, from the workspace or the home.
        path: PathBuf,
    },
    /// A file is where a folder is needed.
    #[error("{path} cannot be added, because a part of its path is a file; remove the file, or choose another path")]
    InFile {
        /// The path, from the workspace or the home.
        path: PathBuf,
    },
    /// The file system returned an error.
    #[error("could not {doing} {path}: {source}{}", crate::resources::hint(source))]
    Io {
        /// The operation.
        doing: &'static str,
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder could not be copied.
    #[error(transparent)]
    Copy(#[from] WorkspaceError),
}

impl LayError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// Lays the items of one place below its root: the workspace, or the home. `left_out` returns the parts of a skill's folder that
/// are not laid, as paths within the folder.
///
/// # Errors
/// Returns an error if something is already there, or if the file system refuses.
pub fn lay(
    items: &[Item<'_>],
    place: OverlayPlace,
    root: &Path,
    left_out: impl Fn(&Path) -> Vec<PathBuf>,
) -> Result<(), LayError> {
    for item in items.iter().filter(|item| item.place == place) {
        match item.what {
            Laid::Skill { name, folder } => {
                let target = made_parent(root, &item.path)?;
                if target.symlink_metadata().is_ok() {
                    return Err(LayError::SkillExists { name: name.to_owned(), path: item.path.clone() });
                }
                copy_folder_without(folder, &target, &left_out(folder))?;
            }
            Laid::Instructions(instructions) => lay_instructions(root, &item.path, instructions)?,
            Laid::Files(ExtraFiles::Folder(folder)) => copy_folder(folder, root, true)?,
            Laid::Files(ExtraFiles::Texts(texts)) => {
                for (path, text) in texts {
                    let target = made_parent(root, Path::new(path))?;
                    remove(&target).map_err(LayError::io("replace", &target))?;
                    fs::write(&target, text).map_err(LayError::io("write", &target))?;
                }
            }
        }
    }
    Ok(())
}

/// Checks that the workspace contains none of the skills that are to be added, in the home or in the workspace, and
/// none of `others`, the skills of all arms of the experiment. An arm without a skill would otherwise have the skill,
/// and be no control.
///
/// # Errors
/// Returns the reason if the workspace has one.
pub fn check_skills_of_workspace(
    items: &[Item<'_>],
    others: &[String],
    manifest: &Manifest,
    workspace: &Path,
) -> Result<(), String> {
    let Some(folder) = manifest.skills.as_ref().and_then(|skills| skills.project.as_ref()) else { return Ok(()) };
    let is_there = |name: &&str| workspace.join(folder).join(name).symlink_metadata().is_ok();
    let mut laid = items.iter().filter_map(|item| match item.what {
        Laid::Skill { name, .. } => Some(name),
        Laid::Instructions(_) | Laid::Files(_) => None,
    });
    if let Some(name) = laid.find(is_there) {
        return Err(format!(
            "the workspace already has the skill `{name}`, which is to be laid; remove one of the two"
        ));
    }
    match others.iter().map(String::as_str).find(is_there) {
        Some(name) => Err(format!(
            "the workspace already has the skill `{name}`, which only another arm should have; remove it from the workspace"
        )),
        None => Ok(()),
    }
}

/// Checks that a folder can be copied into a trial: it has no link that leads out, and no pipes or devices.
///
/// # Errors
/// Returns the reason if it cannot be copied.
pub fn can_be_laid(folder: &Path) -> Result<(), String> {
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    copy_folder(folder, &temporary.path().join("copy"), false).map_err(|error| error.to_string())
}

fn lay_instructions(root: &Path, path: &Path, instructions: &Instructions) -> Result<(), LayError> {
    let text = match &instructions.file {
        Some(file) => regular::read(file).map_err(LayError::io("read", file))?,
        None => instructions.text.clone().unwrap_or_default().into_bytes(),
    };
    let target = made_parent(root, path)?;
    let exists = target.symlink_metadata().is_ok();
    let text = match instructions.mode {
        None if exists => return Err(LayError::InstructionsExist { path: path.to_owned() }),
        Some(Mode::Append) if exists => {
            if target.is_symlink() {
                return Err(LayError::Link { path: path.to_owned() });
            }
            let mut before = regular::read(&target).map_err(LayError::io("read", &target))?;
            if !before.is_empty() {
                let ends: &[u8] = if before.ends_with(b"\n") { b"\n" } else { b"\n\n" };
                before.extend_from_slice(ends);
            }
            before.extend_from_slice(&text);
            before
        }
        Some(Mode::Append | Mode::Replace) | None => text,
    };
    remove(&target).map_err(LayError::io("replace", &target))?;
    fs::write(&target, text).map_err(LayError::io("write", &target))
}

/// Makes the folders above a path and returns the whole path. A link on the way is refused: it may lead out of the
/// root.
fn made_parent(root: &Path, path: &Path) -> Result<PathBuf, LayError> {
    let mut at = root.to_owned();
    for part in path.parent().unwrap_or(Path::new("")).components() {
        let Component::Normal(name) = part else { continue };
        at.push(name);
        match at.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(meta) if meta.is_symlink() => return Err(LayError::Link { path: path.to_owned() }),
            Ok(_) => return Err(LayError::InFile { path: path.to_owned() }),
            Err(_) => fs::create_dir(&at).map_err(LayError::io("make the folder", &at))?,
        }
    }
    Ok(root.join(path))
}
