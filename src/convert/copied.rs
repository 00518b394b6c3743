//! The files that a converted case copies to its workspace: regular files that stay in their folder.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{paths, skill};

/// The maximum number of files of a case.
const MAX_FILES: usize = 10_000;
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
    paths::inside(Path::new(path)).map_err(|why| format!("the path {why}"))?;
    paths::inside(to).map_err(|why| format!("the path in the workspace {why}"))?;
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

/// The folder of a skill with its evals, by the convention of Agent Skills.
pub const EVALS: &str = "evals";
/// The beginning of each case that was converted.
const CONVERTED: &str = "# Converted from ";

/// Returns true if a path below a skill is in its evals, or in those of a skill within it.
fn is_of_evals(skill: &Path, path: &Path) -> bool {
    path.ancestors().filter(|folder| folder.file_name().is_some_and(|name| name == EVALS)).any(|folder| {
        let parent = folder.parent().unwrap_or(Path::new(""));
        parent.as_os_str().is_empty() || skill.join(parent).join(skill::FILE).is_file()
    })
}

fn is_converted(path: &Path) -> bool {
    let mut head = Vec::new();
    path.extension().is_some_and(|extension| extension == "yaml")
        && File::open(path).is_ok_and(|file| file.take(CONVERTED.len() as u64).read_to_end(&mut head).is_ok())
        && head == CONVERTED.as_bytes()
}

/// Returns true if a file is one beside a case, such as `a.hidden/test.py`. `cases` are paths without extension.
fn is_beside(file: &Path, cases: &BTreeSet<PathBuf>) -> bool {
    file.ancestors().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.match_indices('.').any(|(at, _)| cases.contains(&path.with_file_name(&name[..at])))
    })
}

/// Returns true if a skill contains evals, its own or those of a skill within it, or cases of an earlier conversion. What cannot
/// be read contains none.
pub fn has_evals(folder: &Path) -> bool {
    let files = all_but(folder, Path::new(""), &|to| folder.join(to).is_symlink());
    files.is_ok_and(|files| files.iter().any(|file| is_of_evals(folder, &file.to) || is_converted(&file.from)))
}

/// Returns the files of a skill, without its evals and without the cases of an earlier conversion: an agent that has the skill
/// must not find the expected results.
///
/// # Errors
/// Returns an error if `folder` is not a folder, or if it contains a link that leads out, or anything but files and folders.
pub fn skill(folder: &Path, is_source: &dyn Fn(&Path) -> bool) -> Result<Vec<Copied>, String> {
    let real = folder.canonicalize().map_err(|error| format!("the folder could not be read: {error}"))?;
    let links = RefCell::new(Vec::new());
    let is_left_out = |to: &Path| {
        // The history of a repository holds its evals, too.
        if is_of_evals(&real, to) || to.starts_with(".git") {
            return true;
        }
        let is_link = real.join(to).is_symlink();
        if is_link {
            links.borrow_mut().push(to.to_owned());
        }
        is_link
    };
    let mut files = all_but(&real, Path::new(""), &is_left_out)?;
    for to in links.into_inner() {
        let target = real.join(&to).canonicalize().map_err(|error| format!("the link `{}`: {error}", to.display()))?;
        let below = target.strip_prefix(&real);
        let below = below.map_err(|_| format!("the link `{}` leads out of the folder", to.display()))?;
        if !is_of_evals(&real, below) {
            collect(&target, &to, 0, &|_| false, &mut files)?;
        }
    }
    // A link may lead to a folder with evals.
    let is_eval = |file: &Path| file.strip_prefix(&real).is_ok_and(|path| is_of_evals(&real, path));
    let converted = files.iter().filter(|file| is_converted(&file.from));
    let cases: BTreeSet<PathBuf> = converted.map(|file| file.from.with_extension("")).collect();
    files.retain(|file| !is_source(&file.from) && !is_eval(&file.from) && !is_beside(&file.from, &cases));
    Ok(files)
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
        if found.len() >= MAX_FILES {
            return Err(format!("there are more than {MAX_FILES} files"));
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
    let names: std::io::Result<Vec<_>> =
        std::fs::read_dir(from).map_err(failed)?.map(|entry| entry.map(|entry| entry.file_name())).collect();
    let mut names = names.map_err(failed)?;
    names.sort();
    names.iter().try_for_each(|name| collect(&from.join(name), &to.join(name), depth + 1, is_left_out, found))
}
