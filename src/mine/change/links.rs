//! Finds the files behind links among the tests of a commit: who changes such a file changes the test.

use std::collections::{BTreeMap, BTreeSet};

use super::loaded::may_be_loaded;
use super::usage::only_of_tests;
use super::{Entry, Mode, texts};
use crate::mine::history::Commit;
use crate::mine::language::Language;
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles, has_test_name};
use crate::paths::MAX_LINKS;

/// The files behind the links among the tests.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Files that only the tests use.
    pub(super) hidden: BTreeSet<String>,
    /// Tests that are links to files which an agent may change: `tests/test_a.py -> src/a.py`.
    pub(super) loose: Vec<String>,
    /// Data behind other links that code may read, and modules that code may load by a name.
    pub(super) open: BTreeSet<String>,
}

/// Finds the files behind the links among the tests of a commit.
///
/// # Errors
/// Returns git's message.
pub(super) async fn find(
    repository: &Repository,
    commit: &Commit,
    entries: &BTreeMap<String, Entry>,
    roles: &Roles,
) -> Result<Links, RepositoryError> {
    let all: Vec<(&String, &Entry)> = entries.iter().filter(|(_, entry)| entry.mode == Mode::Link).collect();
    if !all.iter().any(|(path, _)| roles.of(path) == Role::Test) {
        return Ok(Links::default());
    }
    let targets = texts(repository, &all).await?;
    let files: BTreeSet<String> = entries.keys().cloned().collect();
    let is_test = |path: &str| roles.of(path) == Role::Test;
    let mut links = Links::default();
    let leads: Vec<(&String, String, BTreeSet<String>)> = targets
        .keys()
        .filter(|link| is_test(link))
        .filter_map(|link| {
            let (place, on_the_way) = followed(link, &targets)?;
            let found = files_at(&place, &files);
            // Who changes a link on the way changes the test, too.
            links.hidden.extend(on_the_way.into_iter().filter(|path| !found.is_empty() && !is_test(path)));
            Some((link, place, found))
        })
        .collect();
    let behind: BTreeSet<String> =
        leads.iter().flat_map(|(.., found)| found).filter(|path| !is_test(path)).cloned().collect();
    let own = only_of_tests(repository, &commit.id, entries, roles, &behind).await?.alone;
    let modules = own.iter().filter(|path| Language::of(path).is_some() && !has_test_name(path));
    let loaded = may_be_loaded(repository, &commit.id, entries, roles, &modules.cloned().collect()).await?;
    let is_changed = |path: &String| commit.files.iter().any(|file| file.path == *path);
    for (link, place, found) in leads {
        let others = found.iter().filter(|path| !is_test(path));
        let is_test_itself = has_test_name(link) || has_test_name(&place);
        if is_test_itself {
            if found.is_empty() || others.clone().any(|path| !own.contains(path)) {
                links.loose.push(format!("{link} -> {place}"));
            }
        } else if others.clone().any(|path| is_changed(path) && Language::of(path).is_some()) {
            // The tests reach the code of the commit by this link.
            continue;
        }
        let is_open = |path: &&String| match Language::of(path) {
            Some(_) => !is_test_itself && loaded.contains(*path),
            None => !own.contains(*path),
        };
        links.open.extend(others.clone().filter(is_open).cloned());
        links.hidden.extend(others.filter(|path| own.contains(*path) && !is_open(path)).cloned());
    }
    Ok(links)
}

/// Returns the file at a path, or the files in the folder there.
fn files_at(path: &str, files: &BTreeSet<String>) -> BTreeSet<String> {
    if files.contains(path) {
        return BTreeSet::from([path.to_owned()]);
    }
    let folder = format!("{path}/");
    files.range(folder.clone()..).take_while(|file| file.starts_with(&folder)).cloned().collect()
}

/// Returns the path that a path leads to when all links are followed, or `None` if it leads out of the repository or in a
/// circle.
pub(super) fn resolved(path: &str, links: &BTreeMap<String, String>) -> Option<String> {
    followed(path, links).map(|(place, _)| place)
}

/// Returns the path that a path leads to, as [`resolved`] does, and the links on the way. A link to a folder above the path is
/// not one of them.
fn followed(path: &str, links: &BTreeMap<String, String>) -> Option<(String, BTreeSet<String>)> {
    let mut rest: Vec<&str> = path.split('/').rev().collect();
    let mut done: Vec<&str> = Vec::new();
    let (mut steps, mut on_the_way) = (0, BTreeSet::new());
    while let Some(part) = rest.pop() {
        match part {
            "" | "." => continue,
            ".." => _ = done.pop()?,
            _ => done.push(part),
        }
        let place = done.join("/");
        if let Some(target) = links.get(&place) {
            steps += 1;
            if steps > MAX_LINKS || target.starts_with('/') {
                return None;
            }
            if rest.is_empty() {
                on_the_way.insert(place);
            }
            done.pop();
            rest.extend(target.split('/').rev());
        }
    }
    Some((done.join("/"), on_the_way))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_within_the_repository() {
        let links: BTreeMap<String, String> = [
            ("tests/test_a.py", "../shared/impl.py"),
            ("tests/more", "../shared"),
            ("shared/next.py", "./impl.py"),
            ("tests/out.py", "../../x.py"),
            ("tests/far.py", "/usr/x.py"),
            ("tests/round.py", "round.py"),
        ]
        .map(|(link, target)| (link.to_owned(), target.to_owned()))
        .into();
        for (path, place) in [
            ("tests/test_a.py", Some("shared/impl.py")),
            ("tests/more", Some("shared")),
            ("tests/more/next.py", Some("shared/impl.py")),
            ("tests/plain.py", Some("tests/plain.py")),
            ("tests/../calc", Some("calc")),
            ("tests/out.py", None),
            ("tests/far.py", None),
            ("tests/round.py", None),
        ] {
            assert_eq!(resolved(path, &links).as_deref(), place, "{path}");
        }
    }
}
