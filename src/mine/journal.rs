//! The state of a mining, as a file with one line for each commit that was judged, so that an interrupted one can go on.

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
pub struct Looked {
    /// The hash of the commit.
    pub commit: String,
    /// The hash of its parent; empty for the first commit.
    pub parent: String,
    /// The first line of the message.
    pub subject: String,
    /// The status of the commit.
    pub status: LookedStatus,
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
    /// The case file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
}

/// The status of a commit: whether a case was made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LookedStatus {
    /// A case was made.
    Kept,
    /// No case was made.
    Dropped,
}

/// The first line of the file: what the judgements were made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeWith {
    /// The version of this program.
    pub tool: String,
    /// The folder of the repository.
    pub repo: PathBuf,
    /// The settings that change a judgement.
    pub settings: String,
}

/// The open state.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    file: File,
    known: HashMap<String, Looked>,
}

impl State {
    /// Opens the state of a mining in a folder. With `resume`, the judgements that were made with the same settings are
    /// read; otherwise they are removed.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn open(folder: &Path, with: &MadeWith, resume: bool) -> Result<Self, FileError> {
        let path = path(folder, with);
        std::fs::create_dir_all(folder).map_err(FileError::io("make", folder))?;
        let known = if resume { read(&path, with) } else { HashMap::new() };
        let mut lines = vec![json(with)];
        let mut kept: Vec<&Looked> = known.values().collect();
        kept.sort_by(|one, other| one.commit.cmp(&other.commit));
        lines.extend(kept.into_iter().map(json));
        // A torn last line is removed, so that the next one does not continue it.
        crate::whole_file::write_whole(&path, |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(FileError::io("open", &path))?;
        Ok(Self { path, file, known })
    }

    /// Returns the judgements that a mining with these settings made, by commit. Changes no file.
    pub fn read(folder: &Path, with: &MadeWith) -> HashMap<String, Looked> {
        read(&path(folder, with), with)
    }

    /// Returns what made the newest state in a folder that another version of the mining made with the same settings.
    pub fn other_tool(folder: &Path, with: &MadeWith) -> Option<String> {
        let other = |path: PathBuf| {
            let MadeWith { tool, repo, settings } = first(&regular::read_to_string(&path).ok()?)?;
            let is_other = tool != with.tool && repo == with.repo && settings == with.settings;
            is_other.then(|| (path.metadata().and_then(|it| it.modified()).ok(), tool))
        };
        let states = std::fs::read_dir(folder).ok()?.filter_map(|entry| other(entry.ok()?.path()));
        states.max().map(|(_, tool)| tool)
    }

    /// Returns the judgement of a commit, if it was made.
    pub fn known(&self, commit: &str) -> Option<&Looked> {
        self.known.get(commit)
    }

    /// Adds the judgement of a commit. It is on the disk when this returns.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn add(&mut self, looked: &Looked) -> Result<(), FileError> {
        let mut line = json(looked);
        line.push('\n');
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(FileError::io("write", &self.path))
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

fn read(path: &Path, with: &MadeWith) -> HashMap<String, Looked> {
    let Ok(text) = regular::read_to_string(path) else { return HashMap::new() };
    if first(&text).as_ref() != Some(with) {
        return HashMap::new();
    }
    let looked = text.lines().skip(1).filter_map(|line| serde_json::from_str::<Looked>(line).ok());
    looked.map(|looked| (looked.commit.clone(), looked)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_judged_again_and_other_settings_know_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let with = MadeWith { tool: "t".to_owned(), repo: "/r".into(), settings: "s".to_owned() };
        let looked = |commit: &str| Looked {
            commit: commit.to_owned(),
            parent: String::new(),
            subject: String::new(),
            status: LookedStatus::Dropped,
            reason: Some("no tests".to_owned()),
            fail_to_pass: Vec::new(),
            pass_to_pass: Vec::new(),
            flaky: Vec::new(),
            left_out: Vec::new(),
            hunks: None,
            thin: false,
            case: None,
        };
        let mut state = State::open(folder.path(), &with, false).unwrap();
        state.add(&looked("a")).unwrap();
        state.file.write_all(b"{\"commit\":\"b\",").unwrap();
        let mut again = State::open(folder.path(), &with, true).unwrap();
        assert_eq!((again.known("a"), again.known("b")), (Some(&looked("a")), None));
        again.add(&looked("b")).unwrap();
        assert!(State::open(folder.path(), &with, true).unwrap().known("b").is_some());
        let other = MadeWith { settings: "o".to_owned(), ..with.clone() };
        assert!(State::open(folder.path(), &other, true).unwrap().known("a").is_none());
        assert!(State::open(folder.path(), &with, false).unwrap().known("a").is_none());
    }
}
