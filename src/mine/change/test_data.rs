//! Finds the data of a commit that its tests read and its code does not, such as the expected outputs in `golden`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, MOST_WORDS, tree};
use crate::mine::history::Commit;
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{self, Role, Roles};
use crate::mine::runner::Tree;

/// Returns the files of data that the commit changes or adds, with the other data in their folders, if a file of tests names
/// the file or its folder, and no file of code does. An agent that had to write them could write what its code returns.
pub(super) async fn find(
    repository: &Repository,
    commit: &Commit,
    entries: &BTreeMap<String, Entry>,
    roles: &Roles,
) -> Result<BTreeSet<String>, RepositoryError> {
    let is_data = |path: &str| matches!(roles.of(path), Role::Code | Role::Data) && role::is_data(path);
    let paths = commit.files.iter().map(|file| file.path.as_str());
    let changed: Vec<&str> =
        paths.filter(|path| is_data(path) && entries.contains_key(*path)).take(MOST_WORDS).collect();
    if changed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let words: BTreeSet<&str> = changed.iter().flat_map(|path| [Some(name(path)), place(path)]).flatten().collect();
    let holders = holders(repository, &commit.id, &words).await?;
    let all = tree(repository, entries, |path| holders.contains(path)).await?;
    Ok(of_tests(&changed, &all, roles))
}

/// Returns the files of a commit that contain one of the words.
async fn holders(
    repository: &Repository,
    commit: &str,
    words: &BTreeSet<&str>,
) -> Result<BTreeSet<String>, RepositoryError> {
    let mut search = vec!["grep", "-l", "-z", "-I", "-F", "--full-name"];
    search.extend(words.iter().flat_map(|word| ["-e", *word]));
    search.extend([commit, "--"]);
    let found = match repository.run(&search, None).await {
        Ok(found) => found,
        // git exits with 1 and says nothing if it finds nothing.
        Err(RepositoryError::Git { message, .. }) if message.is_empty() => Vec::new(),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&found);
    let paths = text.split('\0').filter_map(|line| line.strip_prefix(commit)?.strip_prefix(':'));
    Ok(paths.map(str::to_owned).collect())
}

/// Returns the data of tests among changed files. The tree has the texts of the files that may name them.
fn of_tests(changed: &[&str], tree: &Tree, roles: &Roles) -> BTreeSet<String> {
    let is_data = |path: &str| matches!(roles.of(path), Role::Code | Role::Data) && role::is_data(path);
    let is_named = |word: &str, wanted: Role| {
        let mut of_role = tree.texts.iter().filter(|(path, _)| roles.of(path) == wanted && !is_data(path));
        of_role.any(|(_, text)| names(text, word))
    };
    let mut found = BTreeSet::new();
    for path in changed {
        let folder = path.strip_suffix(name(path)).unwrap_or_default();
        let beside = || tree.files.iter().filter(|file| file.strip_suffix(name(file)) == Some(folder));
        // The name of a folder of code says nothing about the data in it.
        let is_apart = || beside().all(|file| is_data(file) || roles.of(file) != Role::Code);
        let place = place(path).filter(|_| is_apart());
        if is_named(name(path), Role::Code) || place.is_some_and(|place| is_named(place, Role::Code)) {
            continue;
        }
        if place.is_some_and(|place| is_named(place, Role::Test)) {
            found.extend(beside().filter(|file| is_data(file)).cloned());
        } else if is_named(name(path), Role::Test) {
            found.insert((*path).to_owned());
        }
    }
    found
}

/// Returns the name of a file.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the name of the folder of a file.
fn place(path: &str) -> Option<&str> {
    path.rsplit('/').nth(1)
}

/// Returns true if a text has a word as a path, or as a part of one, within quotes.
fn names(text: &str, word: &str) -> bool {
    let is_edge = |c: char| "/\\\"'`".contains(c);
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        before.is_some_and(is_edge) && after.is_some_and(is_edge)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_a_test_names_and_no_code_does_is_data_of_tests() {
        let reads = "const golden = name => read(join(__dirname, '../golden', name + '.json'))";
        let golden = &["golden/all.json", "golden/empty.json"][..];
        for (test, code, path, found) in [
            (reads, "", "golden/all.json", golden),
            ("open('golden/all.json')", "", "golden/all.json", golden),
            ("include_str!(\"../all.json\")", "", "golden/all.json", &["golden/all.json"]),
            ("the golden rule, all.json", "", "golden/all.json", &[]),
            // The code reads it.
            (reads, "load('golden')", "golden/all.json", &[]),
            (reads, "load('./all.json')", "golden/all.json", &[]),
            // A folder of code.
            ("require('../lib/calc')", "", "lib/table.json", &[]),
            ("read('../lib/table.json')", "", "lib/table.json", &["lib/table.json"]),
        ] {
            let files = ["golden/all.json", "golden/empty.json", "lib/calc.js", "lib/table.json", "test/calc.js"];
            let tree = Tree {
                files: files.map(str::to_owned).into(),
                texts: [("test/calc.js", test), ("lib/calc.js", code)]
                    .map(|(path, text)| (path.to_owned(), text.to_owned()))
                    .into(),
            };
            let roles = Roles::of_trees(&[&tree]);
            let all: Vec<String> = of_tests(&[path], &tree, &roles).into_iter().collect();
            assert_eq!(all, found, "{test} {code} {path}");
        }
    }
}
