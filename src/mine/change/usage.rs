//! Decides which files only tests use, as far as the names in other files show it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::globs::{Globs, signs};
use super::python_imports;
use super::settings_text::{is_of_checkers, values};
use super::test_data::{names, names_folder};
use super::unquoted::{embedded_files, without_patterns};
use super::{Entry, MAX_SEARCHED_WORDS, tree};
use crate::mine::language::{Language, PYTHON};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{self, Role, Roles, name, place};
use crate::mine::runner::{has_settings_of_node, without_pytest};

/// Files with the exact versions of packages. They name no module that code loads.
pub(super) const LOCKS: [&str; 7] =
    ["Cargo.lock", "npm-shrinkwrap.json", "package-lock.json", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "yarn.lock"];
/// Keys of `package.json` that say nothing about the modules that code uses: what is published, the names of the package and
/// of its own modules, other packages, and settings of test runners and of tools that check code.
const NO_USE: [&str; 37] = [
    "author",
    "ava",
    "bugs",
    "bundledDependencies",
    "c8",
    "contributors",
    "dependencies",
    "description",
    "devDependencies",
    "engines",
    "eslintConfig",
    "eslintIgnore",
    "files",
    "funding",
    "homepage",
    "imports",
    "jest",
    "keywords",
    "license",
    "lint-staged",
    "maintainers",
    "mocha",
    "name",
    "nyc",
    "optionalDependencies",
    "overrides",
    "packageManager",
    "peerDependencies",
    "peerDependenciesMeta",
    "prettier",
    "private",
    "repository",
    "resolutions",
    "stylelint",
    "version",
    "vitest",
    "workspaces",
];
/// Keys of a `package.json` that name the entry modules of its package. Below the top of the repository they do not
/// count as a use of these modules, because files that use the modules name the package.
const ENTRIES: [&str; 6] = ["browser", "exports", "main", "module", "types", "typings"];

/// The files that only tests use.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Files that no other file uses.
    pub(super) alone: BTreeSet<String>,
    /// Files that no code uses, but that a manifest names, such as the `main` of `package.json`.
    pub(super) listed: BTreeSet<String>,
}

/// Returns those of the paths that no code outside of them uses. Data counts as used if a glob in code fits its name, or if
/// code names its folder. Of more than [`MAX_SEARCHED_WORDS`] files, none is returned.
///
/// # Errors
/// Returns git's message.
pub(super) async fn only_of_tests(
    repository: &Repository,
    commit: &str,
    entries: &BTreeMap<String, Entry>,
    roles: &Roles,
    paths: &BTreeSet<String>,
) -> Result<Usage, RepositoryError> {
    let is_data = |path: &String| Language::of(path).is_none();
    let data = || paths.iter().filter(|path| is_data(path));
    let endings: BTreeSet<String> = data().flat_map(|path| signs(name(path))).collect();
    let mut words: BTreeSet<&str> = paths.iter().map(|path| word(path)).collect();
    if words.is_empty() || words.len() > MAX_SEARCHED_WORDS {
        return Ok(Usage::default());
    }
    words.extend(endings.iter().map(String::as_str));
    words.extend(data().filter_map(|path| place(path)));
    words.insert("//go:embed");
    let holders = repository.files_with(commit, &words).await?;
    let is_code = |path: &str| {
        let is_program = roles.of(path) == Role::Code && !role::is_data(path);
        let is_manifest = roles.of(path) == Role::Dependencies && !LOCKS.contains(&name(path));
        let is_of_tool = has_settings_of_node(name(path)) || is_of_checkers(name(path));
        holders.contains(path) && (is_program || is_manifest) && !is_of_tool
    };
    let mut texts = tree(repository, entries, is_code).await?.texts;
    let embedded = embedded_files(texts.iter(), entries.keys());
    for (file, text) in &mut texts {
        *text = match name(file) {
            "package.json" => of_manifest(file, text),
            "setup.cfg" => of_setup(text),
            _ => without_patterns(file, &without_pytest(file, text)),
        };
    }
    let globs = Globs::of(texts.values().map(String::as_str));
    let is_folder_named = |folder: &str| texts.values().any(|text| names_folder(text, folder));
    let is_read = |path: &String| globs.fit(name(path)) || place(path).is_some_and(is_folder_named);
    let is_unread = |path: &&String| !embedded.contains(*path) && (!is_data(path) || !is_read(path));
    let unread: BTreeSet<String> = paths.iter().filter(is_unread).cloned().collect();
    let alone = unused(&unread, &texts);
    texts.retain(|file, _| roles.of(file) != Role::Dependencies);
    let listed = unused(&unread, &texts).difference(&alone).cloned().collect();
    Ok(Usage { alone, listed })
}

/// Returns the values of a `package.json` that may name modules which code uses, each in a line.
fn of_manifest(path: &str, text: &str) -> String {
    let Ok(Value::Object(keys)) = serde_json::from_str(text) else { return text.to_owned() };
    let is_use = |key: &str| !NO_USE.contains(&key) && (path == "package.json" || !ENTRIES.contains(&key));
    let lines = keys.iter().filter(|(key, _)| is_use(key)).map(|(_, value)| format!("{value}\n"));
    lines.collect()
}

/// Returns the values of a `setup.cfg` that name modules of a distribution, each within quotes in a line.
fn of_setup(text: &str) -> String {
    let mut is_of_options = false;
    let is_kept = |line: &&str| {
        if line.starts_with('[') {
            is_of_options = ["[options]", "[options.entry_points]"].iter().any(|start| line.starts_with(start));
        }
        is_of_options && !line.starts_with('[')
    };
    let lines: Vec<&str> = text.lines().filter(is_kept).collect();
    values(&lines.join("\n")).map(|word| format!("\"{word}\"\n")).collect()
}

/// Returns those of the paths that none of the texts outside of them uses.
fn unused(paths: &BTreeSet<String>, texts: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut left = paths.clone();
    loop {
        let is_used = |path: &String| texts.iter().any(|(file, text)| !left.contains(file) && uses(file, text, path));
        let used: Vec<String> = left.iter().filter(|path| is_used(path)).cloned().collect();
        if used.is_empty() {
            return left;
        }
        for path in used {
            left.remove(&path);
        }
    }
}

/// Returns the word by which code would name a file: the name of data, and the name of a module without its ending; for
/// `__init__`, `index` and `mod`, the name of their folder.
pub(super) fn word(path: &str) -> &str {
    if Language::of(path).is_none() {
        return name(path);
    }
    match role::split(name(path)).0 {
        "__init__" | "index" | "mod" => place(path).unwrap_or_else(|| name(path)),
        stem => stem,
    }
}

/// Returns true if the text of a file names another file: data within quotes, and a module in a line that imports something or
/// has quotes, or in an import statement of several lines.
fn uses(file: &str, text: &str, path: &str) -> bool {
    const IMPORTS: [&str; 9] = ["import", "require", "from", "include", "use ", "mod ", "\"", "'", "`"];
    let word = word(path);
    if Language::of(path).is_none() {
        return names(text, word);
    }
    let is_import = |line: &str| has_word(line, word) && IMPORTS.iter().any(|sign| line.contains(sign));
    let imports = || python_imports::statements(text).iter().any(|statement| has_word(statement, word));
    text.lines().any(is_import) || (PYTHON.has(file) && imports())
}

/// Returns true if a text has a word that is not within a longer name.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_code_names_is_used_by_tests_alone() {
        let paths = ["support/__init__.py", "support/checks.py", "support/sums.csv", "pkg/sums.py"];
        let paths: BTreeSet<String> = paths.map(str::to_owned).into();
        for (file, text, used) in [
            ("calc.py", "# same checks as before, support it\nsums = 1\n", &[][..]),
            ("calc.py", "from support.checks import same\n", &["support/__init__.py", "support/checks.py"]),
            ("calc.py", "from support import (\n    checks,\n)\n", &["support/__init__.py", "support/checks.py"]),
            ("setup.py", "scripts=['x=support.checks:main']\n", &["support/__init__.py", "support/checks.py"]),
            ("calc.py", "open('support/sums.csv')\n", &["pkg/sums.py", "support/__init__.py", "support/sums.csv"]),
            // A file that only tests use may name another one.
            ("support/__init__.py", "from .checks import same\n", &[]),
        ] {
            let texts = BTreeMap::from([(file.to_owned(), text.to_owned())]);
            let found: Vec<String> = paths.difference(&unused(&paths, &texts)).cloned().collect();
            assert_eq!(found, used, "{file} {text}");
        }
    }

    #[test]
    fn modules_of_a_distribution_are_read_from_its_settings() {
        let text = "[options]\npackages =\n    printer\n    parsing\n[options.entry_points]\npytest11 =\n    \
                    foo = fixtures.plugin\n[tool:pytest]\naddopts = -p support.checks\n";
        assert_eq!(of_setup(text), "\"printer\"\n\"parsing\"\n\"fixtures.plugin\"\n");
    }

    #[test]
    fn a_manifest_names_modules_that_are_used_and_lists_of_other_things() {
        for (path, text, expected) in [
            ("package.json", r#"{"name": "checks", "files": ["support"], "main": "lib/a.js"}"#, "\"lib/a.js\"\n"),
            ("packages/checks/package.json", r#"{"main": "index.js", "bin": {"a": "b.js"}}"#, "{\"a\":\"b.js\"}\n"),
            ("package.json", r#"{"eslintConfig": {"overrides": [{"files": ["support/checks.js"]}]}}"#, ""),
            ("package.json", "{", "{"),
        ] {
            assert_eq!(of_manifest(path, text), expected, "{path} {text}");
        }
    }
}
