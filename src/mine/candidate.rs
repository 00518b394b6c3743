//! Decides from a commit's list of files whether it may become a case, and names each reason why not. Pure.

use std::fmt;

use super::history::{Changed, Commit};
use super::package;
use super::role::{Role, Sight};

/// The reason why a commit does not become a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// The commit has no parent, so there is no state before it.
    First,
    /// The commit changes no test.
    NoTests,
    /// The commit changes tests only inside files of code, which an agent may change.
    TestsInCode { files: Vec<String> },
    /// Tests are links to files that an agent may change.
    LooseLinks {
        /// The links, each with its target.
        links: Vec<String>,
    },
    /// Files that the commit changes may be code or data of its tests.
    Doubtful { files: Vec<String> },
    /// The commit changes no code.
    NoCode,
    /// The commit is too large.
    TooLarge {
        /// The number of changed lines. Absent if the commit was not read completely.
        lines: Option<u64>,
        /// The allowed number.
        most: u64,
    },
    /// A file that the commit changes has a name that a case cannot hold.
    NotUtf8 {
        /// The name, as far as it is text.
        name: String,
    },
    /// The commit changes no code except binary files.
    BinaryAlone,
    /// An earlier commit makes the same change.
    Duplicate {
        /// The earlier commit.
        of: String,
    },
    /// No test runner was recognised at the commit.
    NoRunner {
        /// A part of a message about manifests below the top.
        below: Option<String>,
    },
    /// The changed tests belong to several packages below the top, each with a runner of its own.
    SeveralPackages {
        /// The folders of the packages.
        folders: Vec<String>,
    },
    /// The set-up or the tests do not run with the commit.
    BuildFails {
        /// The error.
        why: String,
    },
    /// A run of the tests did not come to its end, so it is not known which of them fail.
    Cut {
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
        /// The new names of the tests.
        tests: Vec<String>,
    },
    /// The tests on which the case would depend do not always have the same outcome.
    Flaky {
        /// The names of the tests.
        tests: Vec<String>,
    },
    /// The case that was made from the commit is not sound.
    NotSound {
        /// The error.
        why: String,
    },
    /// The commit's tests do not notice some of its hunks, and there are enough other cases.
    Unnoticed {
        hunks: Vec<String>,
        /// The number of hunks that were tried.
        tried: usize,
    },
    /// Settings are not protected, because a test needs their change, and there are enough other cases.
    OpenSettings { files: Vec<String> },
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dropped::First => f.write_str("no parent: it is the first commit"),
            Dropped::NoTests => f.write_str(
                "no tests: none of its files is in a folder of tests or has the name of a test (`test_a.py`, `a.test.js`, \
                 `a_test.go`, `t/a.t`)",
            ),
            Dropped::TestsInCode { files } => {
                write!(f, "no tests: tests only inside {}, which an agent may change", crate::text::some_of(files, 5))
            }
            Dropped::LooseLinks { links } => {
                write!(f, "tests are links to files that an agent may change: {}", crate::text::some_of(links, 5))
            }
            Dropped::Doubtful { files } => {
                let some = crate::text::some_of(files, 5);
                write!(f, "it is not known whether these files are code or data of the tests: {some}")
            }
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
            Dropped::NoRunner { below } => {
                f.write_str("no test runner was recognised; name the command that runs the tests with --test COMMAND")?;
                below.iter().try_for_each(|below| write!(f, "; {below}"))
            }
            Dropped::SeveralPackages { folders } => {
                let shown = |folder: &String| match folder.as_str() {
                    package::TOP => "the top".to_owned(),
                    folder => format!("`{folder}`"),
                };
                let some = crate::text::some_of(folders.iter().map(shown), 5);
                write!(f, "its tests are in several packages: {some}; name a command that runs them all with --test COMMAND")
            }
            Dropped::BuildFails { why } => write!(f, "the build fails: {why}"),
            Dropped::Cut { why } => write!(f, "it is not known which tests fail: {why}"),
            Dropped::NothingChanges { left_out } => {
                f.write_str("nothing that fails before and passes after")?;
                if left_out.is_empty() {
                    return Ok(());
                }
                let some = crate::text::some_of(left_out, 5);
                write!(f, "; left out, because their names select other tests, too: {some}")
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
            Dropped::OpenSettings { files } => {
                let some = crate::text::some_of(files, 5);
                write!(f, "an agent can replace the packages of its tests by these settings, and others are enough: {some}")
            }
        }
    }
}

/// Returns why a commit cannot become a case, as far as its list of files shows.
pub fn at_sight(commit: &Commit, max_lines: u64) -> Option<Dropped> {
    if commit.parent.is_none() {
        return Some(Dropped::First);
    }
    // A file that may be a test counts as a test and as code until its text was read.
    let of =
        |role: Role| -> Vec<&Changed> { commit.files.iter().filter(|it| Sight::of(&it.path).may_be(role)).collect() };
    let (tests, code) = (of(Role::Test), [of(Role::Code), of(Role::Data)].concat());
    if tests.is_empty() && !commit.is_cut {
        return Some(match commit.inline_tests.is_empty() {
            true => Dropped::NoTests,
            false => Dropped::TestsInCode { files: commit.inline_tests.clone() },
        });
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
    fn each_reason_is_seen() {
        let commit = |files: &[(&str, Option<(u64, u64)>)]| Commit {
            parent: Some("p".to_owned()),
            files: files.iter().map(|(path, lines)| Changed { path: (*path).to_owned(), lines: *lines }).collect(),
            ..Commit::default()
        };
        let few = Some((3, 1));
        for (files, reason) in [
            (
                vec![("src/a.rs", few)],
                Some(
                    "no tests: none of its files is in a folder of tests or has the name of a test (`test_a.py`, \
                     `a.test.js`, `a_test.go`, `t/a.t`)",
                ),
            ),
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
        let inline = Commit { inline_tests: vec!["src/a.rs".to_owned()], ..commit(&[("src/a.rs", few)]) };
        let reason = at_sight(&inline, 2000).map(|it| it.to_string());
        assert_eq!(reason.as_deref(), Some("no tests: tests only inside src/a.rs, which an agent may change"));
    }
}
