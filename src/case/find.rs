//! Finds the cases and suites below a path, the suites that apply to a case, and the folder that its id is relative
//! to.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Case;
use super::load::LoadError;
use crate::paths;
use crate::project;
use crate::regular;
use crate::workspace::walk::{self as tree, Descend};
use crate::yaml::{self, Step, StepPart};

/// The name of the file with the defaults of a folder's cases.
pub const SUITE: &str = "suite.yaml";

/// A file that is a case, unless another case names its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The file, absolute.
    pub(super) file: PathBuf,
    /// The requested folder, or the folder of the requested file.
    pub(super) given: PathBuf,
}

/// The files found below the requested paths.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    /// Files that may be cases. Files closest to the root come first.
    pub(super) candidates: Vec<Candidate>,
    /// Folders with a `suite.yaml`. Folders closest to the root come first.
    pub(super) suites: Vec<PathBuf>,
    /// Paths that could not be read.
    pub(super) errors: Vec<LoadError>,
    /// YAML files that are neither cases nor, by their names, belong to a case, each with the reason.
    pub(super) strays: Vec<(PathBuf, String)>,
}

/// Finds cases. Only folders are read.
pub(super) fn find(asked: &[PathBuf]) -> FoundFiles {
    let mut found = FoundFiles::default();
    let mut visited = HashSet::new();
    for path in asked {
        let absolute = paths::absolute(Path::new(""), path);
        match std::fs::metadata(&absolute) {
            Err(error) => {
                let what = match error.kind() {
                    std::io::ErrorKind::NotFound => format!("does not exist{}", searched(path)),
                    _ => format!("could not be read: {error}"),
                };
                found.errors.push(LoadError::path(format!("`{}` {what}", path.display()), way_out(path)));
            }
            Ok(kind) if kind.is_dir() => walk(&absolute, &absolute, &mut visited, &mut found),
            Ok(_) => file(path, &absolute, &mut found),
        }
    }
    let depth = |path: &Path| (path.components().count(), path.to_path_buf());
    found.candidates.sort_by_cached_key(|candidate| depth(&candidate.file));
    found.candidates.dedup_by(|one, other| one.file == other.file);
    found.suites.sort_by_cached_key(|folder| depth(folder));
    found.suites.dedup();
    found.strays.sort();
    found.strays.dedup();
    found
}

/// Returns where a relative path was searched.
fn searched(path: &Path) -> String {
    match std::env::current_dir() {
        Ok(here) if path.is_relative() => format!(" in the working directory, {}", here.display()),
        _ => String::new(),
    }
}

/// Returns help on a path that does not exist: the same path in the project's root, if it exists there.
fn way_out(path: &Path) -> String {
    let in_project = path.to_str().filter(|_| path.is_relative() && project::is_above()).map(project::path);
    match in_project.filter(|path| path.exists()) {
        Some(path) => format!("did you mean `{}`, which is in the project?", path.display()),
        None => {
            let beyond = beyond_the_repository();
            format!("name a case file, or a folder with cases in it; `evals init` makes an example{beyond}")
        }
    }
}

/// Returns the end of a help text about a search for a project that ended at the root of a repository.
pub fn beyond_the_repository() -> String {
    let at =
        |root: PathBuf| format!("; the search for a project ended at {}, the root of a git repository", root.display());
    project::search_ended_at().map(at).unwrap_or_default()
}

/// Adds a file that was requested by its own path.
fn file(asked: &Path, absolute: &Path, found: &mut FoundFiles) {
    let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let refuse = |why: &str, help: &str| LoadError::path(format!("`{}` is not a case: {why}", asked.display()), help);
    let folder = absolute.parent().unwrap_or(absolute);
    if let Some(what) = beside_cases(folder) {
        let help = match what {
            "manifests" => "check it with `evals check`, and run its agent with `evals run --harness FILE`",
            _ => "cases name it; name a case file, or a folder with cases in it",
        };
        found.errors.push(refuse(&format!("its folder is beside `cases` and holds {what}"), help));
        return;
    }
    match class(&name, folder) {
        Class::Case => found.candidates.push(Candidate {
            file: absolute.to_path_buf(),
            given: absolute.parent().unwrap_or(absolute).to_path_buf(),
        }),
        Class::Suite => {
            found
                .errors
                .push(refuse("it holds the defaults of a folder's cases", "name the folder, or one of its cases"));
        }
        Class::Companion | Class::Unknown(_) => {
            found.errors.push(refuse("a name with two extensions belongs to a case beside it", "name that case"));
        }
        Class::Orphan(case) => {
            found.errors.push(refuse(&format!("it belongs to `{case}`, which does not exist"), "name a case"));
        }
        Class::Yml => found.errors.push(refuse("it does not end in .yaml", "rename it to end in .yaml")),
        Class::Other => found.errors.push(refuse("it does not end in .yaml", "name a *.yaml file or a folder")),
    }
}

fn walk(folder: &Path, given: &Path, visited: &mut HashSet<(PathBuf, PathBuf)>, found: &mut FoundFiles) {
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        // Links may lead back to a parent folder; each folder is entered once for each given path.
        let identity = std::fs::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
        if !visited.insert((given.to_path_buf(), identity)) {
            continue;
        }
        let unread = |error: std::io::Error| {
            let message = format!("`{}` could not be read: {error}", paths::shown(&folder).display());
            LoadError::path(message, "look at its permissions")
        };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                found.errors.push(unread(error));
                continue;
            }
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    found.errors.push(unread(error));
                    break;
                }
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            if name.starts_with('.') {
                // Hidden folders hold files of tools, such as `.git`, `.github` and `.evals`.
                if is_yaml(&name) && path.is_file() {
                    let note = not_read(&path, "hidden files are not cases; rename it if it is one");
                    found.strays.push((path, note));
                }
                continue;
            }
            if path.is_dir() {
                // The project's own folders of manifests, graders and policies are read as such.
                if beside_cases(&path).is_none() {
                    waiting.push(path);
                }
                continue;
            }
            let why = match class(&name, &folder) {
                Class::Case => {
                    found.candidates.push(Candidate { file: path, given: given.to_path_buf() });
                    continue;
                }
                Class::Suite => {
                    found.suites.push(folder.clone());
                    continue;
                }
                Class::Companion | Class::Other => continue,
                Class::Yml => "cases end in .yaml; rename it if it is one".to_owned(),
                Class::Orphan(case) => format!("it belongs to `{case}`, which does not exist"),
                Class::Unknown(case) => {
                    format!("`{case}` does not name it; rename it if it is a case of its own")
                }
            };
            let note = not_read(&path, &why);
            found.strays.push((path, note));
        }
    }
}

/// Returns a note about each `suite.yaml` beside a folder `cases` that applies to none of the cases.
pub(super) fn unused_suites(cases: &[Case]) -> Vec<String> {
    let roots: BTreeSet<&Path> = cases.iter().map(|case| case.cases_root.as_path()).collect();
    let beside = roots.into_iter().filter(|root| is_named_cases(root)).filter_map(Path::parent);
    let suites: BTreeSet<PathBuf> = beside.map(|folder| folder.join(SUITE)).filter(|suite| suite.is_file()).collect();
    let is_used = |suite: &Path| cases.iter().flat_map(|case| &case.sources).any(|source| source.file == suite);
    let unused = suites.iter().filter(|suite| !is_used(suite));
    unused.map(|suite| not_read(suite, "it does not apply to the folder `cases` beside it; move it there")).collect()
}

/// Returns the note about a YAML file that is not read as a case.
fn not_read(path: &Path, why: &str) -> String {
    format!("`{}` is not read: {why}", paths::shown(path).display())
}

/// Returns what a folder beside `cases/` contains instead of cases, by its name.
fn beside_cases(folder: &Path) -> Option<&'static str> {
    let what = match folder.file_name()?.to_str()? {
        "harnesses" => "manifests",
        "graders" => "named graders",
        "policies" => "named policies",
        _ => return None,
    };
    let beside = folder.parent()?;
    // A folder within a folder of cases holds cases, whatever its name is.
    let is_within_cases = beside.ancestors().any(is_named_cases);
    (!is_within_cases && beside.join("cases").is_dir()).then_some(what)
}

enum Class {
    Case,
    Suite,
    /// A file that belongs to the case beside it, by its name.
    Companion,
    /// A companion file whose case, named here, does not exist.
    Orphan(String),
    /// A file whose name, given here, begins like that of the case beside it, but is not that of a known companion.
    Unknown(String),
    Yml,
    Other,
}

/// The last parts of the names of companion files: `x.demo.yaml` belongs to `x.yaml`.
const COMPANIONS: [&str; 3] = ["demo", "model", "calibration"];

/// Returns true if a name ends like that of a YAML file, in whatever case.
fn is_yaml(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["yaml", "yml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn class(name: &str, folder: &Path) -> Class {
    if name == SUITE {
        return Class::Suite;
    }
    let Some((stem, extension)) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) else {
        return Class::Other;
    };
    if extension != "yaml" {
        return if is_yaml(name) { Class::Yml } else { Class::Other };
    }
    // A case's own name may contain points, and so may the rest: `x.wrong.demo.yaml` belongs to `x.yaml`.
    let mut beside = stem.match_indices('.').rev().map(|(at, _)| format!("{}.yaml", &stem[..at]));
    let case = beside.clone().find(|case| case != SUITE && folder.join(case).is_file());
    let is_companion = stem.rsplit_once('.').is_some_and(|(_, last)| COMPANIONS.contains(&last));
    match (case, is_companion) {
        (Some(_), true) => Class::Companion,
        (Some(case), false) => Class::Unknown(case),
        (None, true) => Class::Orphan(beside.next().unwrap_or_default()),
        (None, false) => Class::Case,
    }
}

/// The facts found about the folders of cases. Each folder is read once, regardless of its number of cases.
#[derive(Debug, Default)]
pub(super) struct Folders {
    suites: RefCell<HashMap<PathBuf, bool>>,
    tops: RefCell<HashMap<PathBuf, PathBuf>>,
    scripts: RefCell<HashMap<PathBuf, Rc<Vec<String>>>>,
}

impl Folders {
    /// Returns the folder that a case's id is relative to: the nearest ancestor that contains a `suite.yaml` or is
    /// named `cases`, else the requested folder.
    pub(super) fn root(&self, file: &Path, given: &Path) -> PathBuf {
        let above = self.above(file, given);
        let mut found = above.iter().filter(|folder| is_named_cases(folder) || self.holds_suite(folder));
        found.next().map_or_else(|| given.to_path_buf(), |folder| folder.to_path_buf())
    }

    /// Returns the outermost folder of the cases that a file belongs to: the nearest one named `cases`, else the
    /// outermost with a `suite.yaml`, else the requested folder.
    pub(super) fn outermost(&self, file: &Path, given: &Path) -> PathBuf {
        let above = self.above(file, given);
        let named = above.iter().find(|folder| is_named_cases(folder));
        let found = named.or_else(|| above.iter().rfind(|folder| self.holds_suite(folder)));
        found.map_or_else(|| given.to_path_buf(), |folder| folder.to_path_buf())
    }

    /// Returns the folders whose `suite.yaml` applies to a case, outermost first. A `suite.yaml` above a folder named
    /// `cases` does not apply.
    pub(super) fn suites(&self, file: &Path, given: &Path) -> Vec<PathBuf> {
        let above = self.above(file, given);
        let last = above.iter().position(|folder| is_named_cases(folder)).map_or(above.len(), |at| at + 1);
        let within = above.iter().take(last).filter(|folder| self.holds_suite(folder));
        let mut folders: Vec<PathBuf> = within.map(|folder| folder.to_path_buf()).collect();
        folders.reverse();
        folders
    }

    /// Returns the scripts of the demo agent beside a case file, by variant: `x.demo.yaml` has no variant,
    /// `x.wrong.demo.yaml` is `wrong`.
    pub(super) fn demo_scripts(&self, case: &Path) -> BTreeMap<String, PathBuf> {
        let (Some(folder), Some(stem)) = (case.parent(), case.file_stem().and_then(|stem| stem.to_str())) else {
            return BTreeMap::new();
        };
        let names = self.scripts_in(folder);
        // Sorted names with the same beginning stand together.
        let first = names.partition_point(|name| name.as_str() < stem);
        let beside = names.iter().skip(first).take_while(|name| name.starts_with(stem));
        beside
            .filter_map(|name| {
                let rest = name.strip_prefix(stem)?.strip_suffix(".demo.yaml")?;
                let variant = if rest.is_empty() { "" } else { rest.strip_prefix('.')? };
                Some((variant.to_owned(), folder.join(name)))
            })
            .filter(|(_, path)| path.is_file())
            .collect()
    }

    /// Returns the names of the demo scripts in a folder, sorted.
    fn scripts_in(&self, folder: &Path) -> Rc<Vec<String>> {
        if let Some(known) = self.scripts.borrow().get(folder) {
            return known.clone();
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.ends_with(".demo.yaml"));
        names.sort_unstable();
        let names = Rc::new(names);
        self.scripts.borrow_mut().insert(folder.to_path_buf(), names.clone());
        names
    }

    /// Returns the folders above a file whose suites may apply to it, the nearest first: up to the root of its project.
    fn above<'a>(&self, file: &'a Path, given: &Path) -> Vec<&'a Path> {
        let Some(folder) = file.parent() else { return Vec::new() };
        let known = self.tops.borrow().get(folder).cloned();
        let top = known.unwrap_or_else(|| {
            let top = project::reach(folder).unwrap_or_else(|| given.to_path_buf());
            self.tops.borrow_mut().insert(folder.to_path_buf(), top.clone());
            top
        });
        // The requested folder belongs to the suite even if it lies above the project.
        let top = if top.starts_with(given) { given } else { &top };
        folder.ancestors().take_while(|above| above.starts_with(top)).collect()
    }

    fn holds_suite(&self, folder: &Path) -> bool {
        if let Some(known) = self.suites.borrow().get(folder) {
            return *known;
        }
        let holds = folder.join(SUITE).is_file();
        self.suites.borrow_mut().insert(folder.to_path_buf(), holds);
        holds
    }
}

fn is_named_cases(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "cases")
}

/// Returns the default id of a case: its path below a root, without extension.
pub(super) fn id(file: &Path, root: &Path) -> Result<String, String> {
    let below = file.strip_prefix(root).unwrap_or(file).with_extension("");
    let mut parts = Vec::new();
    for part in &below {
        parts.push(part.to_str().ok_or("its path is not UTF-8, so it gives no id; write an `id`")?);
    }
    Ok(parts.join("/"))
}

/// Returns the scripts of the demo agent beside case files, in the order of the files.
pub fn demo_scripts(cases: &[PathBuf]) -> Vec<PathBuf> {
    let folders = Folders::default();
    cases.iter().flat_map(|case| folders.demo_scripts(case).into_values()).collect()
}

/// Returns true if a YAML text is an experiment instead of a case: it has a key that only experiments have.
pub fn is_experiment(text: &str) -> bool {
    has_one_of(text, &["variants", "matrix"])
}

/// Returns true if a YAML text has one of these keys.
fn has_one_of(text: &str, keys: &[&str]) -> bool {
    let has = |key: &&str| text.contains(*key) && yaml::find(text, &[Step::Key(key)], StepPart::Key).is_some();
    keys.iter().any(has)
}

/// Returns the folders directly within a folder that hold a case at any depth, in alphabetical order, of those whose names are
/// selected. Hidden folders hold files of tools.
pub(super) fn folders_with_cases(folder: &Path, is_selected: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = folders.map(|entry| PathBuf::from(entry.file_name()));
    let is_hidden = |path: &Path| path.as_os_str().as_encoded_bytes().starts_with(b".");
    let mut found: Vec<PathBuf> = names
        .filter(|name| !is_hidden(name) && is_selected(name))
        .filter(|name| holds_a_case(&folder.join(name), folder))
        .collect();
    found.sort();
    found
}

/// Returns true if a folder within `top` holds a case. The search ends at the first one.
fn holds_a_case(folder: &Path, top: &Path) -> bool {
    let mut found = false;
    let walked = tree::walk(folder, |path, meta| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            return Descend::Skip;
        }
        found = meta.is_file() && name.ends_with(".yaml") && name != SUITE && is_case(&folder.join(path), top);
        if found { Descend::End } else { Descend::Enter }
    });
    walked.is_ok() && found
}

/// Returns true if a YAML file is a case by its keys: it has prompts, and the file or a suite above it, within `top`, has graders.
/// Other tools have YAML files with prompts, too.
fn is_case(file: &Path, top: &Path) -> bool {
    let Ok(text) = regular::read_to_string(file) else { return false };
    let first = [Step::Key("graders"), Step::Item(0)];
    let has_graders = |text: &str| text.contains("graders") && yaml::find(text, &first, StepPart::Value).is_some();
    let mut above = file.ancestors().skip(1).take_while(|above| above.starts_with(top));
    let of_suite = |folder: &Path| regular::read_to_string(folder.join(SUITE)).is_ok_and(|text| has_graders(&text));
    has_one_of(&text, &["prompt", "turns"]) && (has_graders(&text) || above.any(of_suite))
}
