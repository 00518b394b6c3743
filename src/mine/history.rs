//! Reads the history of a repository, newest commit first, as a stream: at most a set number of commits is read.

use std::collections::{BTreeMap, HashMap};

use super::repository::{DIFF_TREE, Repository, RepositoryError};
use super::role::{Role, Sight};

/// The maximum number of changed files that are read of a commit.
const MAX_CHANGED_FILES: usize = 5000;
/// The maximum number of bytes of a commit's message and file list.
const MAX_ENTRY_BYTES: usize = 4 << 20;

/// The character before each commit in git's output.
const BEGIN: u8 = 0x1e;
/// The character between the fields of a commit.
const FIELD: char = '\u{1f}';

/// A commit and the files that it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// The hash.
    pub id: String,
    /// The hash of its parent; `None` for the first commit.
    pub parent: Option<String>,
    /// The day of the commit, in UTC.
    pub date: String,
    pub message: String,
    /// The changed files. A renamed file is a deleted and a created one.
    pub files: Vec<Changed>,
    /// The files of Rust in which the commit changes the declaration of a test, if it changes no file that may be a test.
    pub inline_tests: Vec<String>,
    /// True if the commit changes more files than are read.
    pub is_cut: bool,
}

impl Commit {
    /// Returns the first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default().trim()
    }
}

/// A file that a commit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The path from the top of the repository.
    pub path: String,
    /// The number of added and removed lines; `None` for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// The part of the history that is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    /// The first commit that is left out, or the first day.
    pub since: Option<Since>,
    /// Globs of paths; a commit that changes none of them is not looked at.
    pub paths: Vec<String>,
    /// The maximum number of commits.
    pub most: usize,
}

/// The start of the history that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// Commits that this commit does not reach.
    Commit(String),
    /// Commits after this time, as git reads it.
    Date(String),
}

/// Reads the commits of a range, newest first, without merges.
///
/// # Errors
/// Returns git's message.
pub async fn read(repository: &Repository, range: &Range) -> Result<Vec<Commit>, RepositoryError> {
    let most = format!("--max-count={}", range.most);
    let since = match &range.since {
        Some(Since::Date(date)) => Some(format!("--since={date}")),
        _ => None,
    };
    let revisions = match &range.since {
        Some(Since::Commit(commit)) => format!("{commit}..HEAD"),
        _ => "HEAD".to_owned(),
    };
    let globs: Vec<String> = range.paths.iter().map(|glob| format!(":(glob){glob}")).collect();
    let mut words = vec![
        "log",
        "--no-merges",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--numstat",
        "-z",
        "--date=format-local:%Y-%m-%d",
        "--format=tformat:%x1e%H%x1f%P%x1f%cd%x1f%B%x1f",
        &most,
    ];
    words.extend(since.as_deref());
    words.extend((!globs.is_empty()).then_some("--full-diff"));
    words.extend([revisions.as_str(), "--"]);
    words.extend(globs.iter().map(String::as_str));
    let mut reader = Reader::default();
    let utc = BTreeMap::from([("TZ".to_owned(), "UTC".to_owned())]);
    repository
        .stream(&words, None, &utc, |bytes| {
            reader.push(bytes);
            true
        })
        .await?;
    let mut commits = reader.finish();
    find_inline_tests(repository, &mut commits).await?;
    Ok(commits)
}

/// Finds the tests inside files of code of Rust, for commits that change no file of tests.
async fn find_inline_tests(repository: &Repository, commits: &mut [Commit]) -> Result<(), RepositoryError> {
    let may_have = |commit: &&Commit| {
        let may_be_test = |file: &Changed| Sight::of(&file.path).may_be(Role::Test);
        let is_of_rust = |file: &Changed| file.path.ends_with(".rs");
        !commit.is_cut && commit.files.iter().any(is_of_rust) && !commit.files.iter().any(may_be_test)
    };
    let input: String = commits.iter().filter(may_have).map(|commit| format!("{}\n", commit.id)).collect();
    if input.is_empty() {
        return Ok(());
    }
    let attribute = r"-G#\[(cfg\()?([a-z_]+::)*(rs)?test";
    let options = ["--stdin", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv"];
    let words = [&["diff-tree"][..], &options, &[attribute, "--", "*.rs"]].concat();
    let bytes = repository.run(&words, Some(input.into_bytes())).await?;
    let text = String::from_utf8_lossy(&bytes);
    let mut found: HashMap<&str, Vec<String>> = HashMap::new();
    let mut commit = None;
    for part in text.split('\0').filter(|part| !part.is_empty()) {
        match commit {
            Some(commit) if part.contains('.') => found.entry(commit).or_default().push(part.to_owned()),
            _ => commit = Some(part),
        }
    }
    for commit in commits {
        commit.inline_tests = found.remove(commit.id.as_str()).unwrap_or_default();
    }
    Ok(())
}

/// Splits git's output into commits as it comes.
#[derive(Debug, Default)]
struct Reader {
    open: Vec<u8>,
    is_cut: bool,
    commits: Vec<Commit>,
}

impl Reader {
    fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == BEGIN) {
            let (text, ends) = match part.split_last() {
                Some((last, text)) if *last == BEGIN => (text, true),
                _ => (part, false),
            };
            if self.open.len() + text.len() <= MAX_ENTRY_BYTES {
                self.open.extend_from_slice(text);
            } else {
                self.is_cut = true;
            }
            if ends {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        let bytes = std::mem::take(&mut self.open);
        let is_cut = std::mem::take(&mut self.is_cut);
        if let Some(mut commit) = commit(&String::from_utf8_lossy(&bytes)) {
            commit.is_cut |= is_cut;
            self.commits.push(commit);
        }
    }

    fn finish(mut self) -> Vec<Commit> {
        self.close();
        self.commits
    }
}

fn commit(text: &str) -> Option<Commit> {
    let mut fields = text.splitn(5, FIELD);
    let id = fields.next()?.trim().to_owned();
    let parents = fields.next()?;
    let date = fields.next()?.trim().to_owned();
    let message = fields.next()?.trim().to_owned();
    let listed = fields.next()?;
    // A line end is before the first file; others are parts of names.
    let all = listed.split('\0').map(|line| line.trim_start_matches('\n')).filter_map(changed);
    let mut files: Vec<Changed> = all.take(MAX_CHANGED_FILES + 1).collect();
    let is_cut = files.len() > MAX_CHANGED_FILES;
    files.truncate(MAX_CHANGED_FILES);
    let parent = parents.split_whitespace().next().map(str::to_owned);
    (!id.is_empty()).then_some(Commit { id, parent, date, message, files, inline_tests: Vec::new(), is_cut })
}

/// Parses `3\t1\tsrc/lib.rs`.
fn changed(line: &str) -> Option<Changed> {
    let mut parts = line.splitn(3, '\t');
    let (added, removed, path) = (parts.next()?, parts.next()?, parts.next()?);
    let lines = added.parse().ok().zip(removed.parse().ok());
    (lines.is_some() || added == "-").then(|| Changed { path: path.to_owned(), lines })
}

/// Returns a digest of the change of each commit: the changed lines, wherever they are in their files. Commits with
/// equal digests are the same change.
///
/// # Errors
/// Returns git's message.
pub async fn digests(
    repository: &Repository,
    commits: &[&str],
) -> Result<HashMap<String, blake3::Hash>, RepositoryError> {
    let words = [&DIFF_TREE[..], &["--stdin"]].concat();
    let mut input = commits.join("\n");
    input.push('\n');
    let mut found = Digests::default();
    let mut open: Vec<u8> = Vec::new();
    repository
        .stream(&words, Some(input.into_bytes()), &BTreeMap::new(), |bytes| {
            for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                open.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    found.line(&open);
                    open.clear();
                }
            }
            true
        })
        .await?;
    found.close();
    Ok(found.done)
}

#[derive(Default)]
struct Digests {
    open: Option<(String, blake3::Hasher)>,
    done: HashMap<String, blake3::Hash>,
}

impl Digests {
    fn line(&mut self, line: &[u8]) {
        let is_hash = matches!(line.len(), 41 | 65)
            && line.strip_suffix(b"\n").is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit));
        if is_hash {
            self.close();
            let name = String::from_utf8_lossy(line).trim().to_owned();
            self.open = Some((name, blake3::Hasher::new()));
        } else if let Some((_, hasher)) = &mut self.open
            && matches!(line.first(), Some(b'+' | b'-'))
        {
            hasher.update(line);
        } else if let Some((_, hasher)) = &mut self.open
            && line.starts_with(b"Binary files ")
        {
            hasher.update(line);
        }
    }

    fn close(&mut self) {
        if let Some((name, hasher)) = self.open.take() {
            self.done.insert(name, hasher.finalize());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_split_wherever_the_output_is_cut() {
        let text = "\u{1e}aa\u{1f}bb cc\u{1f}2024-01-02\u{1f}Fix it\n\nBecause.\n\u{1f}\0\n3\t1\tsrc/a b.rs\0-\t-\tx.png\0\
                    \u{1e}bb\u{1f}\u{1f}2024-01-01\u{1f}First\u{1f}\0";
        for size in [1, 7, 1000] {
            let mut reader = Reader::default();
            text.as_bytes().chunks(size).for_each(|part| reader.push(part));
            let commits = reader.finish();
            assert_eq!(commits.len(), 2, "{commits:?}");
            assert_eq!((commits[0].subject(), commits[0].parent.as_deref()), ("Fix it", Some("bb")));
            let files: Vec<(&str, _)> = commits[0].files.iter().map(|file| (file.path.as_str(), file.lines)).collect();
            assert_eq!(files, [("src/a b.rs", Some((3, 1))), ("x.png", None)]);
            assert_eq!((commits[1].parent.as_deref(), commits[1].files.len()), (None, 0));
        }
    }
}
