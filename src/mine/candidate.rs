//! Decides from a commit's list of files whether it may become a case, and names each reason why not. Pure.

use std::fmt;

use super::history::{Changed, Commit};

/// The role of a file in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A test, or a file that tests read.
    Test,
    /// Code, which can make a test pass.
    Code,
    /// A manifest or a lock file of dependencies.
    Dependencies,
    /// An example, or a text beside the code: tests may read it.
    Data,
    /// Documentation, benchmarks and settings of services.
    Other,
}

/// Folders of tests, anywhere in a path.
const TEST_FOLDERS: [&str; 12] = [
    "test",
    "tests",
    "__tests__",
    "__test__",
    "__mocks__",
    "__snapshots__",
    "spec",
    "specs",
    "testdata",
    "test-data",
    "e2e",
    "fixtures",
];
/// Folders that contain neither code nor tests.
const OTHER_FOLDERS: [&str; 12] = [
    "doc",
    "docs",
    "documentation",
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    ".github",
    ".circleci",
    ".gitlab",
    ".vscode",
    ".verb",
];
/// Folders of examples.
const EXAMPLES: [&str; 2] = ["example", "examples"];
/// Extensions of documentation that programs also read as data.
const DATA: [&str; 3] = ["txt", "html", "svg"];
/// Extensions of documentation.
const TEXTS: [&str; 8] = ["md", "rst", "txt", "adoc", "markdown", "1", "html", "svg"];
/// Names of files that are neither code nor a test, in lower case, without extension.
const OTHER_NAMES: [&str; 14] = [
    "readme",
    "changelog",
    "changes",
    "history",
    "license",
    "licence",
    "authors",
    "contributors",
    "contributing",
    "makefile",
    "appveyor",
    "tox",
    "news",
    "todo",
];
/// Names of files about dependencies.
const DEPENDENCIES: [&str; 16] = [
    "Cargo.toml",
    "Cargo.lock",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "setup.cfg",
    "go.mod",
    "go.sum",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
];

impl Role {
    /// Returns the role of a file by its path.
    pub fn of(path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let has = |known: &[&str]| folder.split('/').any(|part| known.contains(&part));
        let (stem, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((name, ""));
        if is_test_name(name, stem, extension) || has(&TEST_FOLDERS) {
            return Role::Test;
        }
        let is_requirements = name.contains("requirements") && extension == "txt";
        if DEPENDENCIES.contains(&name) || is_requirements || folder == "requirements" {
            return Role::Dependencies;
        }
        let plain = stem.to_ascii_lowercase();
        let is_data = has(&EXAMPLES) || (!folder.is_empty() && DATA.contains(&extension));
        if is_data && !has(&OTHER_FOLDERS) && !OTHER_NAMES.contains(&plain.as_str()) {
            return Role::Data;
        }
        let is_other = has(&OTHER_FOLDERS)
            || has(&EXAMPLES)
            || TEXTS.contains(&extension)
            || OTHER_NAMES.contains(&plain.as_str())
            || (name.starts_with('.') && folder.is_empty());
        if is_other { Role::Other } else { Role::Code }
    }
}

/// Returns true if a file is a test by its name.
fn is_test_name(name: &str, stem: &str, extension: &str) -> bool {
    let is_code = !extension.is_empty() && !TEXTS.contains(&extension);
    let lower = stem.to_ascii_lowercase();
    let ends = ["_test", "_tests", ".test", ".tests", ".spec", "_spec", "-test", "-spec"];
    is_code && (ends.iter().any(|end| lower.ends_with(end)) || ["test", "tests"].contains(&lower.as_str()))
        || (extension == "py" && (lower.starts_with("test_") || lower == "conftest"))
        || (["java", "kt", "groovy", "scala"].contains(&extension)
            && (stem.ends_with("Test") || stem.ends_with("Tests")))
        || name == "conftest.py"
}

/// The reason why a commit does not become a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// The commit has no parent, so there is no state before it.
    First,
    /// It changes no test.
    NoTests,
    /// It changes no code.
    NoCode,
    /// It is too large.
    TooLarge {
        /// The number of changed lines. Absent if the commit was not read completely.
        lines: Option<u64>,
        /// The allowed number.
        most: u64,
    },
    /// A file that it changes has a name that a case cannot hold.
    NotUtf8 {
        /// The name, as far as it is text.
        name: String,
    },
    /// The code that it changes is binary alone.
    BinaryAlone,
    /// An earlier commit makes the same change.
    Duplicate {
        /// The earlier commit.
        of: String,
    },
    /// No test runner was recognised at the commit.
    NoRunner,
    /// The set-up or the tests do not run with the commit.
    BuildFails {
        /// The error.
        why: String,
    },
    /// No test fails before the commit and passes after it.
    NothingChanges {
        /// The tests that were left out, because their names select other tests.
        left_out: Vec<String>,
    },
    /// The tests that fail before and pass after passed before under other names.
    OnlyRenames {
        /// Their new names.
        tests: Vec<String>,
    },
    /// The tests on which the case would depend do not always have the same outcome.
    Flaky {
        /// Their names.
        tests: Vec<String>,
    },
    /// The case that was made from it is not sound.
    NotSound {
        /// The error.
        why: String,
    },
    /// Its tests do not notice some of its hunks, and there are enough other cases.
    Unnoticed {
        /// The hunks.
        hunks: Vec<String>,
        /// The number of hunks that were tried.
        tried: usize,
    },
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dropped::First => f.write_str("no parent: it is the first commit"),
            Dropped::NoTests => f.write_str("no tests"),
            Dropped::NoCode => f.write_str("no code"),
            Dropped::TooLarge { lines: Some(lines), most } => {
                write!(f, "more than {most} lines (--max-lines): {lines}")
            }
            Dropped::TooLarge { lines: None, most } => {
                write!(f, "more than {most} lines (--max-lines), or too many files")
            }
            Dropped::NotUtf8 { name } => write!(f, "the name of a file is not UTF-8: {name}"),
            Dropped::BinaryAlone => f.write_str("binary alone"),
            Dropped::Duplicate { of } => write!(f, "a duplicate of {}", crate::text::first_chars(of, 12)),
            Dropped::NoRunner => f.write_str("the build fails: no test runner was recognised; name one with --test"),
            Dropped::BuildFails { why } => write!(f, "the build fails: {why}"),
            Dropped::NothingChanges { left_out } => {
                f.write_str("nothing that fails before and passes after")?;
                if left_out.is_empty() {
                    return Ok(());
                }
                let some = crate::text::some_of(left_out, 5);
                write!(f, "; left out, because `*` in a name selects other tests, too: {some}")
            }
            Dropped::OnlyRenames { tests } => {
                write!(f, "only renames or moves tests: {}", crate::text::some_of(tests, 5))
            }
            Dropped::Flaky { tests } => write!(f, "flaky: {}", crate::text::some_of(tests, 5)),
            Dropped::NotSound { why } => write!(f, "not sound: {why}"),
            Dropped::Unnoticed { hunks, tried } => {
                let (count, some) = (hunks.len(), crate::text::some_of(hunks, 5));
                write!(f, "its tests do not notice {count} of {tried} hunks, and others are enough: {some}")
            }
        }
    }
}

/// Returns why a commit cannot become a case, as far as its list of files shows.
pub fn at_sight(commit: &Commit, max_lines: u64) -> Option<Dropped> {
    if commit.parent.is_none() {
        return Some(Dropped::First);
    }
    let of = |role: Role| -> Vec<&Changed> { commit.files.iter().filter(|it| Role::of(&it.path) == role).collect() };
    let (tests, code) = (of(Role::Test), [of(Role::Code), of(Role::Data)].concat());
    if tests.is_empty() && !commit.is_cut {
        return Some(Dropped::NoTests);
    }
    if code.is_empty() && !commit.is_cut {
        return Some(Dropped::NoCode);
    }
    let lines: u64 = commit.files.iter().filter_map(|file| file.lines).map(|(added, removed)| added + removed).sum();
    if commit.is_cut || lines > max_lines {
        return Some(Dropped::TooLarge { lines: (!commit.is_cut).then_some(lines), most: max_lines });
    }
    if let Some(file) = commit.files.iter().find(|file| !is_utf8(&file.path)) {
        return Some(Dropped::NotUtf8 { name: file.path.clone() });
    }
    code.iter().all(|file| file.lines.is_none()).then_some(Dropped::BinaryAlone)
}

/// Returns true if a path that was read from git had no bytes that are not UTF-8.
pub fn is_utf8(path: &str) -> bool {
    !path.contains(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_of_a_file_follows_from_its_path() {
        for (path, role) in [
            ("tests/integration.rs", Role::Test),
            ("src/tests.rs", Role::Test),
            ("tests.py", Role::Test),
            ("test_app.py", Role::Test),
            ("pkg/conftest.py", Role::Test),
            ("test/fixtures/a.bin", Role::Test),
            ("src/app.test.ts", Role::Test),
            ("pkg/add_test.go", Role::Test),
            ("src/test/java/a/BTest.java", Role::Test),
            ("src/main/java/a/B.java", Role::Code),
            ("src/latest.rs", Role::Code),
            ("src/contest.py", Role::Code),
            ("src/testing_tools.rs", Role::Code),
            ("index.js", Role::Code),
            ("data/table.json", Role::Code),
            ("setup.py", Role::Code),
            ("package.json", Role::Dependencies),
            ("requirements/tests.txt", Role::Dependencies),
            ("dev-requirements.txt", Role::Dependencies),
            ("README.md", Role::Other),
            ("examples/in.txt", Role::Data),
            ("examples/README.md", Role::Other),
            ("tiny/words.txt", Role::Data),
            ("docs/words.txt", Role::Other),
            ("words.txt", Role::Other),
            ("docs/conf.py", Role::Other),
            ("CHANGES", Role::Other),
            (".gitignore", Role::Other),
            ("doc/hexyl.1", Role::Other),
        ] {
            assert_eq!(Role::of(path), role, "{path}");
        }
    }

    #[test]
    fn each_reason_is_seen() {
        let commit = |files: &[(&str, Option<(u64, u64)>)]| Commit {
            parent: Some("p".to_owned()),
            files: files.iter().map(|(path, lines)| Changed { path: (*path).to_owned(), lines: *lines }).collect(),
            ..Commit::default()
        };
        let few = Some((3, 1));
        for (files, reason) in [
            (vec![("src/a.rs", few)], Some("no tests")),
            (vec![("tests/a.rs", few), ("README.md", few), ("Cargo.toml", few)], Some("no code")),
            (
                vec![("tests/a.rs", few), ("src/a.rs", Some((1000, 1001)))],
                Some("more than 2000 lines (--max-lines): 2005"),
            ),
            (
                vec![("tests/a.rs", few), ("src/a.rs", few), ("src/\u{fffd}", few)],
                Some("the name of a file is not UTF-8: src/\u{fffd}"),
            ),
            (vec![("tests/a.rs", few), ("src/a.png", None)], Some("binary alone")),
            (vec![("tests/a.rs", few), ("src/a.rs", few)], None),
        ] {
            assert_eq!(at_sight(&commit(&files), 2000).map(|it| it.to_string()).as_deref(), reason, "{files:?}");
        }
        assert_eq!(at_sight(&Commit::default(), 2000), Some(Dropped::First));
    }
}
