//! Writes a case: the case file, the folder of its hidden tests, and the patch that solves it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::case::provenance::Provenance;
use crate::overlay;
use crate::paths;
use crate::regular;
use crate::text::one_line;
use crate::whole_file::{FileError, write_whole};
use crate::workspace::remove::remove;
use crate::yaml;

/// The maximum number of characters of a subject in the name of a case.
const NAME: usize = 48;

/// The paths of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The case file.
    pub case: PathBuf,
    /// The case file until the case is known to be sound. Nothing reads a file with such a name as a case of its
    /// folder, so that an interrupted mining leaves no case behind that was not tested.
    pub untested: PathBuf,
    /// The folder of the hidden tests.
    pub hidden: PathBuf,
    pub patch: PathBuf,
}

impl Place {
    /// Returns the place of the case of a commit.
    pub fn of(folder: &Path, subject: &str, commit: &str) -> Self {
        let lower = subject.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|it| !it.is_empty()).collect();
        let slug: String = words.join("-").chars().take(NAME).collect();
        let slug = slug.trim_matches('-');
        let short = crate::text::first_chars(commit, 10);
        let name = if slug.is_empty() { short.to_owned() } else { format!("{slug}-{short}") };
        let file = |extension: &str| folder.join(format!("{name}.{extension}"));
        let untested = folder.join(format!(".{name}.yaml"));
        Self { case: file("yaml"), untested, hidden: file("hidden"), patch: file("patch") }
    }

    /// Returns the missing folder or patch, if the case file exists and names it.
    pub fn missing(&self) -> Option<PathBuf> {
        let text = regular::read(&self.case).ok()?;
        let text = String::from_utf8_lossy(&text);
        let names = |path: &&&PathBuf| path.file_name().is_some_and(|name| text.contains(&*name.to_string_lossy()));
        [&self.hidden, &self.patch].iter().filter(names).find(|path| !path.exists()).map(|path| path.to_path_buf())
    }

    /// Returns true if all files of a case in reserve exist.
    pub fn is_complete_reserve(&self) -> bool {
        self.untested.is_file() && self.hidden.is_dir() && self.patch.is_file()
    }

    /// Returns the digest of the files of the case, or `None` if one of them cannot be read.
    pub fn digest(&self) -> Option<String> {
        let case = if self.case.is_file() { &self.case } else { &self.untested };
        let digests = [case, &self.hidden, &self.patch].map(|path| overlay::digest(path).ok());
        let [Some(case), Some(hidden), Some(patch)] = digests else { return None };
        Some(format!("{case} {hidden} {patch}"))
    }

    /// Gives the case file its name.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn accept(&self) -> Result<(), FileError> {
        fs::rename(&self.untested, &self.case).map_err(FileError::io("rename", &self.untested))
    }

    /// Removes the files of the case.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn clear(&self) -> Result<(), FileError> {
        for path in [&self.case, &self.untested, &self.hidden, &self.patch] {
            remove(path).map_err(FileError::io("remove", path))?;
        }
        Ok(())
    }
}

/// The parts of a case.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The subject of the commit.
    pub subject: String,
    pub prompt: String,
    /// The name of the test runner.
    pub runner: &'static str,
    /// The location of the repository.
    pub repository: (&'static str, String),
    /// The set-up commands.
    pub setup: Vec<String>,
    /// The globs of files that are removed or restored before the tests run.
    pub protect: Vec<String>,
    /// The body of the `tests` grader.
    pub grader: Map<String, Value>,
    pub patch: Vec<u8>,
    /// The origin.
    pub provenance: Provenance,
    /// True if a person has to read the case first.
    pub needs_review: bool,
    /// Remarks for the reader of the file.
    pub remarks: Vec<String>,
}

/// Writes the patch and the case file of a draft. The hidden tests are written before.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn write(draft: &Draft, place: &Place) -> Result<(), FileError> {
    write_whole(&place.patch, |out| out.write_all(&draft.patch))?;
    let text = text(draft, place);
    write_whole(&place.untested, |out| out.write_all(text.as_bytes()))
}

fn text(draft: &Draft, place: &Place) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut grader = draft.grader.clone();
    grader.insert("gate".to_owned(), json!(true));
    let (key, repository) = &draft.repository;
    let mut workspace = json!({"git": {*key: repository, "rev": draft.provenance.parent}});
    if !draft.setup.is_empty() {
        workspace["setup"] = json!(draft.setup);
    }
    if !draft.protect.is_empty() {
        workspace["protect"] = json!(draft.protect);
    }
    let mut keys = vec![
        ("description", json!(one_line(&draft.subject))),
        ("tags", json!(["mined", draft.runner])),
        ("prompt", json!(draft.prompt)),
        ("workspace", workspace),
        ("hidden", json!(name(&place.hidden))),
        ("graders", json!([{"tests": grader}])),
        ("oracle", json!({"patch": name(&place.patch)})),
    ];
    if draft.needs_review {
        keys.push(("review", json!("needed")));
    }
    keys.push(("provenance", json!(draft.provenance)));
    let map: Map<String, Value> = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let remarks: String = draft.remarks.iter().map(|remark| format!("# {}\n", one_line(remark))).collect();
    format!("{remarks}{}", yaml::write(&Value::Object(map)))
}

/// Returns the path of a repository as a case names it: relative to the case if it lies in the project.
pub fn repository_path(repository: &Path, project: &Path, cases: &Path) -> String {
    let (project, cases) = (paths::real(project), paths::real(cases));
    if !repository.starts_with(&project) || !cases.starts_with(&project) {
        return repository.to_string_lossy().into_owned();
    }
    let common = cases.components().zip(repository.components()).take_while(|(one, other)| one == other).count();
    let up = cases.components().skip(common).map(|_| "..".to_owned());
    let down = repository.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    let parts: Vec<String> = up.chain(down).collect();
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_in_the_project_has_a_relative_path() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().canonicalize().unwrap();
        let cases = project.join("cases/mined");
        assert_eq!(repository_path(&project, &project, &cases), "../..");
        assert_eq!(repository_path(&project.join("repos/a"), &project, &cases), "../../repos/a");
        assert_eq!(repository_path(Path::new("/elsewhere/a"), &project, &cases), "/elsewhere/a");
    }

    #[test]
    fn a_name_is_made_of_the_subject_and_the_hash() {
        let place = Place::of(Path::new("c"), "Fix: `foo/bar` (#12)!", "0123456789abcdef");
        assert_eq!(place.case, Path::new("c/fix-foo-bar-12-0123456789.yaml"));
        assert_eq!(Place::of(Path::new("c"), "…", "0123456789abcdef").hidden, Path::new("c/0123456789.hidden"));
    }
}
