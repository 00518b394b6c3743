//! Reads the parts of a candidate from the repository: its trees, its patch, its tests, and the sources of its prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::candidate::is_utf8;
use super::history::Commit;
use super::prompt::Sources;
use super::repository::{DIFF_TREE, Repository, RepositoryError};
use super::role::{self, Role, Roles};
use super::runner::{Tree, describes_the_project};
use crate::audit::leaks::hashes;

mod globs;
mod helpers;
mod links;
mod loaded;
mod mentions;
mod node_names;
mod node_text;
mod product;
mod programs;
pub(super) mod python_imports;
pub(super) mod python_text;
mod settings_text;
mod test_data;
mod usage;

/// The maximum number of hidden files. If a repository has more tests, only the changed ones are hidden.
const MOST_HIDDEN: usize = 2000;
/// The maximum number of bytes of hidden files. If a repository has more, only the changed tests are hidden.
const LARGEST_HIDDEN: u64 = 20 << 20;
/// The maximum number of bytes of a text that is read.
const LARGEST_TEXT: u64 = 1 << 20;
/// The maximum number of words that are searched for.
const MOST_WORDS: usize = 200;
/// The maximum number of lines of release notes in a prompt.
const MOST_NOTES: usize = 20;

/// A candidate, as read from the repository.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The files of the commit.
    pub after: Tree,
    /// The files of its parent.
    pub before: Tree,
    /// The roles of the files of both.
    pub roles: Roles,
    /// The tests that the commit changes or adds.
    pub changed_tests: Vec<String>,
    /// The tests that the commit deletes.
    pub removed_tests: Vec<String>,
    /// The tests of the commit that are hidden from the agent, with the files behind their links and the data that only tests
    /// read.
    pub hidden: Vec<String>,
    /// Globs of data and modules that only tests use and that the commit does not change: they are restored before the tests
    /// run.
    pub protected: Vec<String>,
    /// Globs of folders of data that tests list, and that only tests use.
    pub folders: Vec<String>,
    /// Modules that only tests load or run, and that may be code.
    pub unsure: Vec<String>,
    /// Tests, and modules that only they import, that load modules by names which only a run shows.
    pub computed: Vec<String>,
    /// True if tests load more modules than were looked at.
    pub has_more_modules: bool,
    /// Data that tests name, and that code may read without naming it, and settings and programs that tests name.
    pub open: BTreeSet<String>,
    /// Tests that are links to files which an agent may change: `tests/test_a.py -> src/a.py`.
    pub loose_links: Vec<String>,
    /// Files that the commit changes, and that may be code or data of its tests.
    pub doubtful: Vec<String>,
    /// The patch of the code: neither tests nor documentation.
    pub patch: Vec<u8>,
    /// The same patch with the files about dependencies and the data, if the commit changes some. They rarely matter:
    /// nothing new is installed for them, and few tests read them.
    pub with_more: Option<Vec<u8>>,
    /// The changed tests with their texts.
    pub test_texts: Vec<(String, String)>,
    /// All modules of Python among the tests, and those that only tests import, with their texts.
    pub python_texts: Vec<(String, String)>,
}

/// A file in a tree of git.
struct Entry {
    mode: String,
    object: String,
    size: u64,
}

/// Reads a candidate.
///
/// # Errors
/// Returns git's message.
pub async fn read(repository: &Repository, commit: &Commit, parent: &str) -> Result<Change, RepositoryError> {
    let (entries, entries_before) = (list(repository, &commit.id).await?, list(repository, parent).await?);
    let roles = roles(repository, &entries, &entries_before).await?;
    let links = links::find(repository, commit, &entries, &roles).await?;
    let data = test_data::find(repository, commit, &entries, &entries_before, &roles, &links.hidden).await?;
    let own: BTreeSet<String> = links.hidden.union(&data.changed).cloned().collect();
    let helpers = helpers::find(repository, commit, &entries, &entries_before, &roles, &own).await?;
    let of_role = |wanted: &[Role]| -> Vec<String> {
        let files = commit.files.iter().map(|file| file.path.clone());
        files.filter(|path| wanted.contains(&roles.of(path)) && !own.contains(path)).collect()
    };
    let tests = of_role(&[Role::Test]);
    // The names of tests of Rust do not show their files, but what the files define does.
    let is_needed = |path: &str| {
        let is_of_rust = path.ends_with(".rs") && roles.of(path) == Role::Test;
        is_of_rust || describes_the_project(path) || tests.iter().any(|it| it == path)
    };
    let after = tree(repository, &entries, is_needed).await?;
    let before = tree(repository, &entries_before, describes_the_project).await?;
    let (changed_tests, removed_tests): (Vec<String>, Vec<String>) =
        tests.into_iter().partition(|path| after.has(path));
    let removed_tests = removed_tests.into_iter().filter(|path| before.has(path)).collect();
    // The other files of the tests' folders are restored by `workspace.protect`.
    let is_test = |path: &str, entry: &Entry| roles.of(path) == Role::Test && entry.mode != "160000" && is_utf8(path);
    let all = || entries.iter().filter(|(path, entry)| is_test(path, entry));
    let is_small = all().count() <= MOST_HIDDEN && all().map(|(_, entry)| entry.size).sum::<u64>() <= LARGEST_HIDDEN;
    let mut hidden: Vec<String> = match is_small {
        // The agent could change the other tests too.
        true => all().map(|(path, _)| path.clone()).collect(),
        false => changed_tests.clone(),
    };
    hidden.extend(own.iter().filter(|path| is_utf8(path)).cloned());
    let kept = data.kept.into_iter().filter(|path| !own.contains(path));
    let protected: Vec<String> = kept.chain(helpers.protected).collect();
    let python_texts = {
        let modules = hidden.iter().chain(&protected).chain(&helpers.unsure).map(String::as_str);
        let modules: BTreeSet<&str> = modules.collect();
        // A changed test may import an installed package by a helper that the commit does not change.
        let is_module = |path: &str| path.ends_with(".py") && (roles.of(path) == Role::Test || modules.contains(path));
        tree(repository, &entries, is_module).await?.texts.into_iter().collect()
    };
    let is_known = |path: &String| [&protected, &helpers.unsure].iter().any(|known| known.contains(path));
    let open = data.open.into_iter().chain(links.open).filter(|path| !own.contains(path) && !is_known(path)).collect();
    let patch = diff(repository, parent, &commit.id, &of_role(&[Role::Code])).await?;
    let more = of_role(&[Role::Code, Role::Dependencies, Role::Data]);
    let all_of_it = diff(repository, parent, &commit.id, &more).await?;
    let with_more = (all_of_it != patch).then_some(all_of_it);
    let text = |path: &String| after.text(path).map(|text| (path.clone(), text.to_owned()));
    let test_texts = changed_tests.iter().filter_map(text).collect();
    Ok(Change {
        after,
        before,
        roles,
        changed_tests,
        removed_tests,
        hidden,
        protected,
        folders: data.folders.into_iter().collect(),
        unsure: helpers.unsure,
        computed: helpers.computed,
        has_more_modules: helpers.has_more,
        open,
        loose_links: links.loose,
        doubtful: data.doubtful,
        patch,
        with_more,
        test_texts,
        python_texts,
    })
}

/// Returns the roles of the files of a commit and its parent.
async fn roles(
    repository: &Repository,
    after: &BTreeMap<String, Entry>,
    before: &BTreeMap<String, Entry>,
) -> Result<Roles, RepositoryError> {
    let places = role::places(after.keys().chain(before.keys()));
    if places.is_empty() {
        return Ok(Roles::default());
    }
    let is_needed = |path: &str| role::decides(path, &places);
    let trees = [tree(repository, after, is_needed).await?, tree(repository, before, is_needed).await?];
    Ok(Roles::of_trees(&trees.each_ref()))
}

/// Returns the patch of the tests.
///
/// # Errors
/// Returns git's message.
pub async fn tests(
    repository: &Repository,
    commit: &Commit,
    parent: &str,
    change: &Change,
) -> Result<String, RepositoryError> {
    let paths = [&change.changed_tests[..], &change.removed_tests].concat();
    let patch = diff(repository, parent, &commit.id, &paths).await?;
    Ok(String::from_utf8_lossy(&patch).into_owned())
}

/// Returns the patch of some files between two commits, as `git apply` reads it.
async fn diff(repository: &Repository, from: &str, to: &str, paths: &[String]) -> Result<Vec<u8>, RepositoryError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut words = vec!["--literal-pathspecs"];
    words.extend(DIFF_TREE);
    words.extend(["--binary", "--full-index", from, to, "--"]);
    words.extend(paths.iter().map(String::as_str));
    repository.run(&words, None).await
}

/// Lists the files of a commit.
async fn list(repository: &Repository, commit: &str) -> Result<BTreeMap<String, Entry>, RepositoryError> {
    let bytes = repository.run(&["ls-tree", "-r", "-l", "-z", "--full-tree", commit], None).await?;
    let text = String::from_utf8_lossy(&bytes);
    let entry = |line: &str| -> Option<(String, Entry)> {
        let (about, path) = line.split_once('\t')?;
        let mut words = about.split_whitespace();
        let (mode, _, object) = (words.next()?, words.next()?, words.next()?);
        let size = words.next().and_then(|size| size.parse().ok()).unwrap_or(0);
        Some((path.to_owned(), Entry { mode: mode.to_owned(), object: object.to_owned(), size }))
    };
    Ok(text.split('\0').filter_map(entry).collect())
}

/// Returns a tree, with the texts of the files that are needed.
async fn tree(
    repository: &Repository,
    entries: &BTreeMap<String, Entry>,
    is_needed: impl Fn(&str) -> bool,
) -> Result<Tree, RepositoryError> {
    let wanted: Vec<(&String, &Entry)> = entries
        .iter()
        .filter(|(path, entry)| entry.mode.starts_with("100") && entry.size <= LARGEST_TEXT && is_needed(path))
        .collect();
    let texts = texts(repository, &wanted).await?;
    Ok(Tree { files: entries.keys().cloned().collect(), texts })
}

/// Returns the texts of files. The text of a link is its target.
async fn texts(
    repository: &Repository,
    wanted: &[(&String, &Entry)],
) -> Result<BTreeMap<String, String>, RepositoryError> {
    let mut texts = BTreeMap::new();
    if !wanted.is_empty() {
        let input: String = wanted.iter().map(|(_, entry)| format!("{}\n", entry.object)).collect();
        let bytes = repository.run(&["cat-file", "--batch"], Some(input.into_bytes())).await?;
        let mut rest = bytes.as_slice();
        for (path, _) in wanted {
            let Some((text, after)) = object(rest) else { break };
            texts.insert((*path).clone(), String::from_utf8_lossy(text).into_owned());
            rest = after;
        }
    }
    Ok(texts)
}

/// Splits the first object off the output of `git cat-file --batch`.
fn object(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
    let size: usize = head.rsplit(' ').next()?.parse().ok()?;
    let start = end + 1;
    Some((bytes.get(start..start + size)?, bytes.get(start + size + 1..).unwrap_or_default()))
}

/// Writes files of a commit below a folder.
///
/// # Errors
/// Returns git's message. `index` is a path for a temporary file.
pub async fn write_files(
    repository: &Repository,
    commit: &str,
    paths: &[String],
    to: &Path,
    index: &Path,
) -> Result<(), RepositoryError> {
    // The index of the user is not touched.
    let more = BTreeMap::from([("GIT_INDEX_FILE".to_owned(), index.to_string_lossy().into_owned())]);
    repository.run_with(&["read-tree", commit], None, &more).await?;
    let folder = format!("--work-tree={}", to.display());
    let git = format!("--git-dir={}", git_dir(repository).await?.display());
    let input: String = paths.iter().map(|path| format!("{path}\0")).collect();
    let words = [git.as_str(), folder.as_str(), "checkout-index", "--force", "--stdin", "-z"];
    repository.run_with(&words, Some(input.into_bytes()), &more).await?;
    for file in paths.iter().map(|path| to.join(path)) {
        // A link to a place outside of the repository is no test, and cannot be copied.
        if std::fs::read_link(&file).is_ok_and(|target| target.is_absolute()) {
            let _ = std::fs::remove_file(&file);
        }
    }
    Ok(())
}

async fn git_dir(repository: &Repository) -> Result<PathBuf, RepositoryError> {
    repository.line(&["rev-parse", "--absolute-git-dir"]).await.map(PathBuf::from)
}

/// Reads the texts that a prompt is made from.
///
/// # Errors
/// Returns git's message.
pub async fn sources(repository: &Repository, commit: &Commit, parent: &str) -> Result<Sources, RepositoryError> {
    let mut named = Vec::new();
    for hash in hashes(&commit.message) {
        // Only what the workspace's history holds.
        let name = format!("{hash}^{{commit}}");
        let Ok(found) = repository.line(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).await else {
            continue;
        };
        if repository.line(&["merge-base", "--is-ancestor", &found, parent]).await.is_ok() {
            named.push(repository.line(&["log", "-1", "--format=%s", &found]).await?);
        }
    }
    let is_notes = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        ["changelog", "changes", "history", "news", "release"].iter().any(|word| name.starts_with(word))
    };
    let paths: Vec<String> = commit.files.iter().map(|file| file.path.clone()).filter(|path| is_notes(path)).collect();
    let notes = diff(repository, parent, &commit.id, &paths).await?;
    let notes = String::from_utf8_lossy(&notes);
    let added = notes.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
    let notes: Vec<String> =
        added.map(str::trim_end).filter(|line| !line.is_empty()).take(MOST_NOTES).map(str::to_owned).collect();
    Ok(Sources { message: commit.message.clone(), notes, named, changes_tests: false })
}

/// Returns the words that no file of a commit contains.
///
/// # Errors
/// Returns git's message.
pub async fn unknown_words(
    repository: &Repository,
    commit: &str,
    words: BTreeSet<String>,
) -> Result<BTreeSet<String>, RepositoryError> {
    let mut unknown = BTreeSet::new();
    for word in words.into_iter().take(MOST_WORDS) {
        let search = ["grep", "-q", "-w", "-I", "-F", "-e", &word, commit, "--"];
        match repository.line(&search).await {
            Ok(_) => {}
            // git exits with 1 and says nothing if it finds nothing.
            Err(RepositoryError::Git { message, .. }) if message.is_empty() => _ = unknown.insert(word),
            Err(error) => return Err(error),
        }
    }
    Ok(unknown)
}
