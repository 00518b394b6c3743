//! Finds the skill folders below a folder, and lints each skill.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use miette::Severity;

use super::document::Document;
use super::lint::{self, Files, Problem};
use super::{FILE, file, folder_name, plain};

/// The maximum depth of folders in which skills are searched.
const DEPTH: usize = 6;
/// The maximum number of folders that are searched.
const FOLDERS: usize = 2_000;

/// The result of linting a skill.
#[derive(Debug, Clone)]
pub struct Linted {
    /// The path of the skill's folder, as given or as found.
    pub folder: PathBuf,
    /// The name in the front matter, if it can be read.
    pub name: Option<String>,
    /// The problems, sorted by place.
    pub problems: Vec<Problem>,
    document: Option<Document>,
}

impl Linted {
    /// Returns the number of problems of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity == severity).count()
    }
}

/// The skill folders of a path.
#[derive(Debug, Default)]
pub struct Found {
    /// The paths of the folders, sorted.
    pub skills: Vec<PathBuf>,
    /// Folders that could not be read, each with an error that names the folder.
    pub unreadable: Vec<(PathBuf, String)>,
    /// The first folder that was not searched, because it is too deep, or one too many.
    pub left_out: Option<PathBuf>,
}

/// Returns the skill folders of a path: the folder itself, or else the folders below it. `.git` and `node_modules` are
/// not searched.
///
/// # Errors
/// Returns an error if the folder cannot be read, or no folder that was searched contains a `SKILL.md`.
pub fn find(path: &Path) -> Result<Found, String> {
    let folder = match path.parent() {
        Some(parent) if path.file_name().is_some_and(|name| name == FILE) && path.is_file() => {
            if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
        }
        _ => path,
    };
    // A broken link or a folder of that name is a skill that cannot be read.
    let itself = || Found { skills: vec![folder.to_owned()], ..Found::default() };
    if folder.join(FILE).symlink_metadata().is_ok() {
        return Ok(itself());
    }
    let own = match file(folder) {
        Ok(_) => return Ok(itself()),
        Err(error) => error,
    };
    if !folder.is_dir() {
        return Err(own);
    }
    let mut search = Search { visited: HashSet::new(), found: Found::default() };
    search.below(folder, 0);
    let mut found = search.found;
    if !found.skills.is_empty() {
        found.skills.sort();
        return Ok(found);
    }
    let unread = found.unreadable.first().map(|(_, error)| format!("; {error}"));
    let left_out = found.left_out.map(|path| format!("; {} was not searched", path.display()));
    let rest: String = unread.into_iter().chain(left_out).collect();
    Err(format!("{own}, and neither does a folder below it{rest}"))
}

struct Search {
    /// The real paths of the folders: links may form a loop.
    visited: HashSet<PathBuf>,
    found: Found,
}

impl Search {
    fn below(&mut self, folder: &Path, depth: usize) {
        if let Err(error) = self.search(folder, depth) {
            let error = format!("the folder {} could not be read: {error}", folder.display());
            self.found.unreadable.push((folder.to_owned(), error));
        }
    }

    fn search(&mut self, folder: &Path, depth: usize) -> io::Result<()> {
        let real = folder.canonicalize()?;
        if self.visited.contains(&real) {
            return Ok(());
        }
        let folders = entries(folder)?;
        if depth >= DEPTH || self.visited.len() >= FOLDERS {
            // Without folders in it, there was nothing to search.
            if !folders.is_empty() && self.found.left_out.is_none() {
                self.found.left_out = Some(folder.to_owned());
            }
            return Ok(());
        }
        self.visited.insert(real);
        for path in folders {
            if path.join(FILE).symlink_metadata().is_ok() {
                self.found.skills.push(path);
            } else {
                self.below(&path, depth + 1);
            }
        }
        Ok(())
    }
}

/// Returns the folders in a folder that may contain skills, sorted.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths: io::Result<Vec<PathBuf>> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let is_apart = |path: &PathBuf| path.file_name().is_some_and(|name| name == ".git" || name == "node_modules");
    let mut folders: Vec<PathBuf> = paths?.into_iter().filter(|path| !is_apart(path) && path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

/// Lints the skill in a folder.
///
/// # Errors
/// Returns an error if the folder contains no `SKILL.md` that can be read.
pub fn lint(folder: &Path) -> Result<Linted, String> {
    let path = file(folder)?;
    let file = std::fs::File::open(&path).map_err(|error| format!("{} could not be read: {error}", path.display()))?;
    drop(file);
    let document = match Document::read(&path) {
        Ok(document) => document,
        Err(error) => {
            let problems = vec![Problem { severity: Severity::Error, rule: "unreadable-file", error }];
            return Ok(Linted { folder: folder.to_owned(), name: None, problems, document: None });
        }
    };
    let own = folder_name(folder).unwrap_or_default();
    let problems = lint::lint(&document, &own, &Below(folder));
    let keys = document.front().ok().and_then(|front| front.keys().ok());
    let name = keys.and_then(|keys| plain(keys.get("name")?)).filter(|name| !name.is_empty());
    Ok(Linted { folder: folder.to_owned(), name, problems, document: Some(document) })
}

/// Adds a warning to each skill that has the name of an earlier one.
pub fn compare_names(skills: &mut [Linted]) {
    for later in 1..skills.len() {
        let (before, rest) = skills.split_at_mut(later);
        let Some(skill) = rest.first_mut() else { continue };
        let (Some(name), Some(document)) = (&skill.name, &skill.document) else { continue };
        if let Some(other) = before.iter().find(|other| other.name.as_ref() == Some(name)) {
            skill.problems.push(lint::same_name(document, name, &other.folder));
        }
    }
}

/// The files below a skill's folder.
struct Below<'a>(&'a Path);

impl Files for Below<'_> {
    fn exists(&self, path: &Path) -> bool {
        self.0.join(path).exists()
    }

    fn document(&self, path: &Path) -> Option<Document> {
        Document::read(&self.0.join(path)).ok()
    }
}
