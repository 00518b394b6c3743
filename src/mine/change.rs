//! Reads the parts of a candidate from the repository: its trees, its patch, its tests, and the sources of its prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::candidate::is_utf8;
use super::history::{Changed, Commit};
use super::hunks;
use super::language::{Language, NODE, PYTHON};
use super::package::{self, Found, Package};
use super::prompt::Sources;
use super::repository::{DIFF_TREE, Repository, RepositoryError};
use super::role::{self, Role, Roles};
use super::runner::{Tree, describes_the_project, has_settings};
use crate::audit::definitions;
use crate::audit::leaks::hashes;

mod globs;
mod helpers;
mod links;
mod loaded;
mod mentions;
mod modules;
mod node_names;
mod node_packages;
mod node_text;
mod product;
mod programs;
pub(super) mod python_imports;
pub(super) mod python_text;
mod settings_text;
mod test_data;
mod unquoted;
mod usage;

use node_names::Names;

/// The maximum number of hidden files. If a repository has more tests, only the changed ones are hidden.
const MAX_HIDDEN_FILES: usize = 2000;
/// The maximum number of bytes of hidden files. If a repository has more, only the changed tests are hidden.
const MAX_HIDDEN_BYTES: u64 = 20 << 20;
/// The maximum number of bytes of a text that is read.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// The maximum number of bytes of lines with a name that are read.
const MAX_FOUND_BYTES: usize = 4 << 20;
/// The maximum number of words that are searched for.
const MAX_SEARCHED_WORDS: usize = 200;
/// Extensions of release notes.
const OF_NOTES: [&str; 10] = ["", "adoc", "markdown", "md", "org", "pod", "rdoc", "rst", "textile", "txt"];
/// The maximum number of lines of release notes in a prompt.
const MAX_NOTE_LINES: usize = 20;

/// A candidate, as read from the repository.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The files of the commit.
    pub after: Tree,
    /// The files of its parent.
    pub before: Tree,
    /// The roles of the files of both.
    pub roles: Roles,
    /// The package below the top that all of the changed tests belong to.
    pub package: Option<Package>,
    /// The folders of the packages that the changed tests belong to, if there are several.
    pub packages: Vec<String>,
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
    /// The patch of the code, and of those other files that a test needs.
    pub patch: Vec<u8>,
    /// The number of bytes of the patch that change code. Further bytes change other files.
    pub code: usize,
    /// The other files that the patch changes, because a test needs one of their kind.
    pub needed: BTreeSet<String>,
    /// The patches of the other files, one for each kind. They rarely matter: nothing new is installed for them, and few
    /// tests read them.
    pub more: Vec<(Beside, Vec<u8>)>,
    /// Folders of the repository in which the settings of a runner of Node look for packages. The top is `.`.
    pub folders_of_packages: Vec<String>,
    /// Globs of files there that would be loaded in place of packages that tests import.
    pub in_place_of_packages: Vec<String>,
    /// Files of code that the tests import and that only the commit has.
    pub imported: BTreeSet<String>,
    /// The changed tests with their texts.
    pub test_texts: Vec<(String, String)>,
    /// All modules of Python among the tests, and those that only tests import, with their texts.
    pub python_texts: Vec<(String, String)>,
}

impl Change {
    /// Adds the patches of some of the other files to that of the code. Returns false if there are none.
    pub fn add(&mut self, is_added: impl Fn(Beside) -> bool) -> bool {
        let before = self.patch.len();
        for (_, patch) in self.more.extract_if(.., |(kind, _)| is_added(*kind)) {
            self.needed.extend(hunks::files(&patch));
            self.patch.extend(patch);
        }
        if before == 0 {
            // Without code, these files are the fix.
            self.code = self.patch.len();
        }
        self.patch.len() > before
    }

    /// Returns the patch of the code alone, or of the first files that were added if the commit changes no code.
    pub fn fix(&self) -> &[u8] {
        self.patch.get(..self.code).unwrap_or_default()
    }

    /// Returns true if a commit changes hidden data that its parent has: a test that reads the data and passes before the
    /// commit may fail after it.
    pub fn changes_data(&self, commit: &Commit) -> bool {
        commit.files.iter().any(|Changed { path, lines }| {
            // A line that is added to a text of code may be a further test.
            let is_data = lines.is_none() || role::is_data(path) || !self.changed_tests.contains(path);
            is_data && self.before.has(path) && self.hidden.contains(path)
        })
    }
}

/// A kind of files of a commit that are neither code nor tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Documentation, benchmarks and settings of services.
    Documentation,
    /// Files with the exact versions of packages.
    Locks,
    /// Other files about dependencies.
    Manifests,
    /// Examples, and texts beside the code.
    Data,
}

impl Beside {
    fn of(path: &str, role: Role) -> Option<Self> {
        match role {
            Role::Other => Some(Self::Documentation),
            Role::Dependencies if usage::LOCKS.contains(&role::name(path)) => Some(Self::Locks),
            Role::Dependencies => Some(Self::Manifests),
            Role::Data => Some(Self::Data),
            Role::Test | Role::Code => None,
        }
    }
}

/// The kind of an entry in a tree of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A file that cannot be started.
    File,
    /// A file that can be started.
    Program,
    Link,
    Submodule,
}

impl Mode {
    fn of(digits: &str) -> Self {
        match digits {
            "100755" => Self::Program,
            "120000" => Self::Link,
            "160000" => Self::Submodule,
            _ => Self::File,
        }
    }

    fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Program)
    }
}

/// A file in a tree of git.
struct Entry {
    mode: Mode,
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
    let changed = |is_wanted: &dyn Fn(&str, Role) -> bool| -> Vec<String> {
        let files = commit.files.iter().map(|file| file.path.clone());
        files.filter(|path| is_wanted(path, roles.of(path)) && !own.contains(path)).collect()
    };
    let tests = changed(&|_, role| role == Role::Test);
    // However deep the tests are: what the settings around them load decides what passes.
    let around: BTreeSet<&str> = tests.iter().flat_map(|path| package::around(path)).collect();
    let is_around = |path: &str| path.rsplit_once('/').is_some_and(|(folder, _)| around.contains(folder));
    let describes = |path: &str| describes_the_project(path) || (has_settings(path) && is_around(path));
    // The names of tests of Rust do not show their files, but what the files define does.
    let is_needed = |path: &str| {
        let is_of_rust = path.ends_with(".rs") && roles.of(path) == Role::Test;
        is_of_rust || describes(path) || tests.iter().any(|it| it == path)
    };
    let mut after = tree(repository, &entries, is_needed).await?;
    let mut before = tree(repository, &entries_before, describes).await?;
    let (changed_tests, removed_tests): (Vec<String>, Vec<String>) =
        tests.into_iter().partition(|path| after.has(path));
    let removed_tests: Vec<String> = removed_tests.into_iter().filter(|path| before.has(path)).collect();
    // A package whose tests the commit deletes or moves away need not run.
    let found = match changed_tests.is_empty() {
        false => package::find(&after, &changed_tests),
        true => package::find(&before, &removed_tests),
    };
    let (package, packages) = match found {
        Found::Top => (None, Vec::new()),
        Found::One(folder) => {
            let start = format!("{folder}/");
            let is_needed = |path: &str| path.strip_prefix(&start).is_some_and(describes_the_project);
            let (inside, inside_before) =
                (tree(repository, &entries, is_needed).await?, tree(repository, &entries_before, is_needed).await?);
            after.texts.extend(settings(&inside));
            before.texts.extend(settings(&inside_before));
            let workspaces = package::workspaces(&after, &folder);
            let (after, before) = (inside.below(&folder), inside_before.below(&folder));
            (Some(Package { folder, workspaces, after, before }), Vec::new())
        }
        Found::Several(folders) => (None, folders),
    };
    // The agent could change the other tests, too.
    let mut hidden = all_tests(&entries, &roles).unwrap_or_else(|| changed_tests.clone());
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
    let names = Names::of(&after);
    let in_place_of_packages = if names.of_packages.is_empty() {
        Vec::new()
    } else {
        let is_read =
            |path: &str| NODE.has(path) && (roles.of(path) == Role::Test || protected.iter().any(|it| it == path));
        node_packages::replacing(&tree(repository, &entries, is_read).await?.texts, &names)
    };
    let is_known = |path: &String| [&protected, &helpers.unsure].iter().any(|known| known.contains(path));
    let open = data.open.into_iter().chain(links.open).filter(|path| !own.contains(path) && !is_known(path)).collect();
    let code = changed(&|_, role| role == Role::Code);
    let patch = diff(repository, parent, &commit.id, &code).await?;
    let mut more = Vec::new();
    for kind in [Beside::Documentation, Beside::Locks, Beside::Manifests, Beside::Data] {
        let files = changed(&|path, role| Beside::of(path, role) == Some(kind));
        let patch = diff(repository, parent, &commit.id, &files).await?;
        if !patch.is_empty() {
            more.push((kind, patch));
        }
    }
    let text = |path: &String| after.text(path).map(|text| (path.clone(), text.to_owned()));
    let test_texts = changed_tests.iter().filter_map(text).collect();
    Ok(Change {
        after,
        before,
        roles,
        package,
        packages,
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
        code: patch.len(),
        patch,
        needed: BTreeSet::new(),
        more,
        folders_of_packages: node_packages::folders(&names),
        in_place_of_packages,
        imported: helpers.imported,
        test_texts,
        python_texts,
    })
}

/// Returns the settings of a tree that name what is loaded, with their texts.
fn settings(tree: &Tree) -> impl Iterator<Item = (String, String)> {
    let settings = tree.texts.iter().filter(|(path, _)| has_settings(path));
    settings.map(|(path, text)| (path.clone(), text.clone()))
}

/// Returns all tests of a commit, or `None` if they are too many or too large to hide all of them. The other files of the
/// tests' folders are restored by `workspace.protect`.
fn all_tests(entries: &BTreeMap<String, Entry>, roles: &Roles) -> Option<Vec<String>> {
    let is_test = |(path, entry): &(&String, &Entry)| {
        roles.of(path) == Role::Test && entry.mode != Mode::Submodule && is_utf8(path)
    };
    let tests = || entries.iter().filter(is_test);
    let is_small =
        tests().count() <= MAX_HIDDEN_FILES && tests().map(|(_, entry)| entry.size).sum::<u64>() <= MAX_HIDDEN_BYTES;
    is_small.then(|| tests().map(|(path, _)| path.clone()).collect())
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
        Some((path.to_owned(), Entry { mode: Mode::of(mode), object: object.to_owned(), size }))
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
        .filter(|(path, entry)| entry.mode.is_file() && entry.size <= MAX_TEXT_BYTES && is_needed(path))
        .collect();
    let texts = texts(repository, &wanted).await?;
    Ok(Tree { files: entries.keys().cloned().collect(), texts })
}

/// Returns the texts of files. The text of a link is its target.
async fn texts(
    repository: &Repository,
    wanted: &[(&String, &Entry)],
) -> Result<BTreeMap<String, String>, RepositoryError> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let input: String = wanted.iter().map(|(_, entry)| format!("{}\n", entry.object)).collect();
    let bytes = repository.run(&["cat-file", "--batch"], Some(input.into_bytes())).await?;
    let paths: Vec<&str> = wanted.iter().map(|(path, _)| path.as_str()).collect();
    shown(&bytes, &paths).map_err(|message| RepositoryError::Git { command: "cat-file --batch".to_owned(), message })
}

/// Splits the output of `git cat-file --batch` into the texts of files.
fn shown(bytes: &[u8], paths: &[&str]) -> Result<BTreeMap<String, String>, String> {
    let mut rest = bytes;
    let mut texts = BTreeMap::new();
    for path in paths {
        let (text, after) = object(rest).ok_or_else(|| format!("it does not show `{path}`"))?;
        texts.insert((*path).to_owned(), String::from_utf8_lossy(text).into_owned());
        rest = after;
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
    let paths: Vec<String> = commit.files.iter().map(|file| file.path.clone()).filter(|path| is_notes(path)).collect();
    let notes = diff(repository, parent, &commit.id, &paths).await?;
    let notes = String::from_utf8_lossy(&notes);
    let added = notes.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
    let notes: Vec<String> =
        added.map(str::trim_end).filter(|line| !line.is_empty()).take(MAX_NOTE_LINES).map(str::to_owned).collect();
    Ok(Sources { message: commit.message.clone(), notes, named, changes_tests: false })
}

/// Returns true if a file is one of release notes by its name. A file of code or data may begin with the same word.
fn is_notes(path: &str) -> bool {
    let name = role::name(path).to_ascii_lowercase();
    let (stem, extension) = role::split(&name);
    let begins = ["changelog", "changes", "history", "news", "release"].iter().any(|word| stem.starts_with(word));
    // A file that is only called `release` is a script.
    begins && OF_NOTES.contains(&extension) && name != "release"
}

/// Returns the text of a test without comments and texts whose lines would be taken for imports.
pub fn without_texts(path: &str, text: &str) -> String {
    if PYTHON.has(path) {
        python_imports::without_blocks(text)
    } else if NODE.has(path) {
        node_text::plain(text)
    } else {
        text.to_owned()
    }
}

/// Returns the names that no file of a commit has as code. In files of code, comments and literals do not count. Texts for
/// people do not count either; any other file, such as a manifest, does.
///
/// # Errors
/// Returns git's message.
pub async fn unknown_names(
    repository: &Repository,
    commit: &str,
    roles: &Roles,
    names: BTreeSet<String>,
) -> Result<BTreeSet<String>, RepositoryError> {
    let mut unknown = BTreeSet::new();
    for name in names.into_iter().take(MAX_SEARCHED_WORDS) {
        let search = ["grep", "-z", "-w", "-I", "-F", "-e", &name, commit, "--"];
        let mut found = Vec::new();
        let take = |bytes: &[u8]| {
            found.extend_from_slice(bytes);
            found.len() <= MAX_FOUND_BYTES
        };
        let searched = repository.stream(&search, None, &BTreeMap::new(), take).await;
        match searched {
            Ok(()) => {}
            Err(RepositoryError::Nothing(_)) => {
                unknown.insert(name);
                continue;
            }
            Err(error) => return Err(error),
        }
        let lines = String::from_utf8_lossy(&found);
        // A name with more occurrences is known.
        if found.len() <= MAX_FOUND_BYTES && !lines.lines().any(|line| has_name(line, commit, roles, &name)) {
            unknown.insert(name);
        }
    }
    Ok(unknown)
}

/// Returns true if a line of the output of `git grep -z` has a name as code.
fn has_name(line: &str, commit: &str, roles: &Roles, name: &str) -> bool {
    let place = line.strip_prefix(commit).and_then(|rest| rest.strip_prefix(':'));
    let Some((path, text)) = place.and_then(|rest| rest.split_once('\0')) else { return true };
    match Language::of(path) {
        // The words of code have no `$`.
        Some(_) if name.contains('$') => true,
        Some(_) => definitions::code_words(&format!("+{text}")).contains(name),
        None => roles.of(path) != Role::Other,
    }
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
    for word in words.into_iter().take(MAX_SEARCHED_WORDS) {
        let search = ["grep", "-q", "-w", "-I", "-F", "-e", &word, commit, "--"];
        match repository.line(&search).await {
            Ok(_) => {}
            Err(RepositoryError::Nothing(_)) => _ = unknown.insert(word),
            Err(error) => return Err(error),
        }
    }
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_git_does_not_show_is_an_error() {
        let both = shown(b"aa blob 2\nx\n\nbb blob 0\n\n", &["a", "b"]).unwrap();
        assert_eq!(both, BTreeMap::from([("a".to_owned(), "x\n".to_owned()), ("b".to_owned(), String::new())]));
        for (output, missing) in [
            ("aa missing\nbb blob 1\ny\n", "a"),
            ("aa blob 1\nx\nbb missing\n", "b"),
            ("aa blob 1\nx\nbb blob 9\ny", "b"),
        ] {
            let why = shown(output.as_bytes(), &["a", "b"]).unwrap_err();
            assert_eq!(why, format!("it does not show `{missing}`"), "{output}");
        }
    }

    #[test]
    fn a_name_is_known_by_code_and_not_by_texts_about_code() {
        for (line, expected) in [
            ("README.md\0There is no limit.", false),
            ("LICENSE\0no limit", false),
            ("acme/io.py\0    # no limit", false),
            ("acme/io.py\0    print('no limit')", false),
            ("acme/io.py\0def load(p, limit=None):", true),
            ("package.json\0{\"limit\": 1}", true),
            ("a line of a name with a new line", true),
        ] {
            let roles = Roles::default();
            assert_eq!(has_name(&format!("c0ffee:{line}"), "c0ffee", &roles, "limit"), expected, "{line}");
        }
    }

    #[test]
    fn release_notes_are_texts_for_people() {
        for path in ["NEWS", "ChangeLog", "docs/CHANGES.rst", "HISTORY.md", "RELEASE_NOTES", "release-1.2.TXT"] {
            assert!(is_notes(path), "{path}");
        }
        for path in ["history.py", "src/news.ts", "newsletter.html", "changes.json", "history.css", "bin/release"] {
            assert!(!is_notes(path), "{path}");
        }
    }

    #[test]
    fn all_tests_are_hidden_unless_they_are_too_many_or_too_large() {
        let entry = |mode: &str, size: u64| Entry { mode: Mode::of(mode), object: String::new(), size };
        let most = || (0..MAX_HIDDEN_FILES).map(|n| (format!("tests/{n}.py"), entry("100644", 1)));
        let of = |more: Vec<(&str, Entry)>| {
            let entries = most().chain(more.into_iter().map(|(path, entry)| (path.to_owned(), entry))).collect();
            all_tests(&entries, &Roles::default()).map(|tests| tests.len())
        };
        assert_eq!(of(vec![("src/a.py", entry("100644", 1))]), Some(MAX_HIDDEN_FILES));
        // A submodule is not hidden.
        assert_eq!(of(vec![("tests/sub", entry("160000", 0))]), Some(MAX_HIDDEN_FILES));
        assert_eq!(of(vec![("tests/link.py", entry("120000", 1))]), None);
        assert_eq!(of(vec![("tests/run", entry("100755", 1))]), None);
        let large = BTreeMap::from([("tests/a.bin".to_owned(), entry("100644", MAX_HIDDEN_BYTES + 1))]);
        assert_eq!(all_tests(&large, &Roles::default()), None);
    }
}
