//! The state of `evals mine`: a file with one line for each tested commit, so that an interrupted run of it can be resumed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::case::provenance::Hunks;
use crate::regular;
use crate::whole_file::FileError;

/// A commit that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Candidate {
    /// The hash of the commit.
    pub commit: String,
    /// The hash of its parent. Absent for the first commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent: String,
    /// The first line of the message.
    pub subject: String,
    /// The status of the commit.
    pub status: CandidateStatus,
    /// The reason why the commit was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tests that fail before the commit and pass after it.
    pub fail_to_pass: Vec<String>,
    /// The tests that pass before and after the commit.
    pub pass_to_pass: Vec<String>,
    /// The tests that did not always have the same outcome.
    pub flaky: Vec<String>,
    /// The tests that are in no list, because `*` in their names also selects other tests. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The hunks of the commit's code that the tests notice. Absent if they were not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Hunks>,
    /// True if the prompt says nothing about the task. Absent if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thin: bool,
    /// The settings that the commit changes and that a test needs: they are not protected. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_settings: Vec<String>,
    /// The case file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The folder in which the tests ran, empty for the top. Absent if none ran, or if an earlier version made the state. Only the
    /// state has it.
    #[serde(skip)]
    pub folder: Option<String>,
}

/// The status of a commit: whether a case was made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CandidateStatus {
    /// A case was made.
    Kept,
    /// No case was made.
    Dropped,
}

/// The first line of the file: the program and the settings that made its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeWith {
    /// The version of this program.
    pub tool: String,
    /// The folder of the repository.
    pub repo: PathBuf,
    /// The settings that change the result of a commit.
    pub settings: String,
}

/// The open state.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    file: File,
    known: HashMap<String, Line>,
}

/// A line of the file after the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    #[serde(rename = "looked")]
    candidate: Candidate,
    /// The folder in which the tests ran. States of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// The digest of the files of the case, as the mining made them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<String>,
}

impl State {
    /// Opens the state in a folder. With `resume`, the results that were made with the same settings are read; otherwise
    /// they are removed.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn open(folder: &Path, with: &MadeWith, resume: bool) -> Result<Self, FileError> {
        let path = path(folder, with);
        std::fs::create_dir_all(folder).map_err(FileError::io("make", folder))?;
        let known = if resume { read(&path, with) } else { HashMap::new() };
        let mut lines = vec![json(with)];
        let mut kept: Vec<&Line> = known.values().collect();
        kept.sort_by(|one, other| one.candidate.commit.cmp(&other.candidate.commit));
        lines.extend(kept.into_iter().map(json));
        // A torn last line is removed, so that the next one does not continue it.
        crate::whole_file::write_whole(&path, |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(FileError::io("open", &path))?;
        Ok(Self { path, file, known })
    }

    /// Returns the results that were made with these settings, by commit. Changes no file.
    pub fn read(folder: &Path, with: &MadeWith) -> HashMap<String, Candidate> {
        read(&path(folder, with), with).into_iter().map(|(commit, line)| (commit, line.candidate)).collect()
    }

    /// Returns the version that made the newest of the states that other versions of the mining rules made with the same
    /// settings.
    pub fn other_tool(folder: &Path, with: &MadeWith) -> Option<String> {
        let other = |path: PathBuf| {
            let MadeWith { tool, repo, settings } = first(&regular::read_to_string(&path).ok()?)?;
            let is_other = tool != with.tool && repo == with.repo && settings == with.settings;
            is_other.then(|| (path.metadata().and_then(|it| it.modified()).ok(), tool))
        };
        let states = std::fs::read_dir(folder).ok()?.filter_map(|entry| other(entry.ok()?.path()));
        states.max().map(|(_, tool)| tool)
    }

    /// Returns the result of a commit, if the commit was tested.
    pub fn known(&self, commit: &str) -> Option<&Candidate> {
        self.known.get(commit).map(|line| &line.candidate)
    }

    /// Returns the digest of the files of a commit's case, as the mining made them.
    pub fn made(&self, commit: &str) -> Option<&str> {
        self.known.get(commit)?.made.as_deref()
    }

    /// Adds the result of a commit, and the digest of the files of its case. The line is on the disk when this returns.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn add(&mut self, candidate: &Candidate, made: Option<String>) -> Result<(), FileError> {
        let line = Line { candidate: candidate.clone(), folder: candidate.folder.clone(), made };
        let mut text = json(&line);
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(FileError::io("write", &self.path))?;
        self.known.insert(candidate.commit.clone(), line);
        Ok(())
    }
}

fn path(folder: &Path, with: &MadeWith) -> PathBuf {
    let name = blake3::hash(format!("{:?}\n{}\n{}", with.repo, with.settings, with.tool).as_bytes()).to_hex();
    folder.join(format!("{}.jsonl", crate::text::first_chars(name.as_str(), 16)))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the first line of a state.
fn first(text: &str) -> Option<MadeWith> {
    serde_json::from_str(text.lines().next()?).ok()
}

fn read(path: &Path, with: &MadeWith) -> HashMap<String, Line> {
    let Ok(text) = regular::read_to_string(path) else { return HashMap::new() };
    if first(&text).as_ref() != Some(with) {
        return HashMap::new();
    }
    let lines = text.lines().skip(1).filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let known = lines.map(|mut line| {
        line.candidate.folder.clone_from(&line.folder);
        (line.candidate.commit.clone(), line)
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_judged_again_and_other_settings_know_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let with = MadeWith { tool: "t".to_owned(), repo: "/r".into(), settings: "s".to_owned() };
        let candidate = |commit: &str| Candidate {
            commit: commit.to_owned(),
            parent: String::new(),
            subject: String::new(),
            status: CandidateStatus::Dropped,
            reason: Some("no tests".to_owned()),
            fail_to_pass: Vec::new(),
            pass_to_pass: Vec::new(),
            flaky: Vec::new(),
            left_out: Vec::new(),
            hunks: None,
            thin: false,
            open_settings: Vec::new(),
            case: None,
            folder: Some("svc".to_owned()),
        };
        let mut state = State::open(folder.path(), &with, false).unwrap();
        state.add(&candidate("a"), Some("digest".to_owned())).unwrap();
        assert_eq!(state.made("a"), Some("digest"));
        state.file.write_all(b"{\"looked\":{\"commit\":\"b\",").unwrap();
        let mut again = State::open(folder.path(), &with, true).unwrap();
        assert_eq!((again.known("a"), again.known("b")), (Some(&candidate("a")), None));
        assert_eq!(again.made("a"), Some("digest"));
        again.add(&candidate("b"), None).unwrap();
        assert!(State::open(folder.path(), &with, true).unwrap().known("b").is_some());
        // A state of an earlier version has no folders.
        let path = path(folder.path(), &with);
        let old = std::fs::read_to_string(&path).unwrap().replace(",\"folder\":\"svc\"", "");
        std::fs::write(&path, old).unwrap();
        let old = State::open(folder.path(), &with, true).unwrap();
        assert_eq!(old.known("a"), Some(&Candidate { folder: None, ..candidate("a") }));
        let other = MadeWith { settings: "o".to_owned(), ..with.clone() };
        assert!(State::open(folder.path(), &other, true).unwrap().known("a").is_none());
        assert!(State::open(folder.path(), &with, false).unwrap().known("a").is_none());
    }
}
