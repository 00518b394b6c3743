//! Decides what a file is in a change: a test, code, a manifest, data or documentation. Pure.
//!
//! Most paths show it. A folder `test` within the sources may hold tests, or the code of a command `test`; such paths are
//! in doubt, and what the files contain decides.

use std::collections::BTreeSet;

use super::language::{self, Language};
use super::runner::Tree;

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
const TEST_FOLDERS: [&str; 10] = [
    "tests",
    "__tests__",
    "__test__",
    "__fixtures__",
    "__mocks__",
    "__snapshots__",
    "testdata",
    "test-data",
    "e2e",
    "fixtures",
];
/// Folders of tests, unless they are within the sources: there, code may have these names, too.
const AMBIGUOUS: [&str; 3] = ["test", "spec", "specs"];
/// Folders of sources.
const SOURCES: [&str; 7] = ["src", "lib", "app", "source", "sources", "cmd", "internal"];
/// The folders of Maven and Gradle below `src/test`.
const JVM: [&str; 5] = ["java", "kotlin", "groovy", "scala", "resources"];
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
/// Extensions of files that are neither compiled nor run.
const OF_DATA: [&str; 26] = [
    "bin", "csv", "dat", "expected", "gif", "golden", "gz", "html", "in", "ini", "jpg", "json", "jsonl", "ndjson",
    "out", "pdf", "png", "svg", "toml", "tsv", "txt", "wav", "xml", "yaml", "yml", "zip",
];
/// Extensions of documentation, including manual pages (`1`) and pictures (`svg`).
const TEXTS: [&str; 8] = ["md", "rst", "txt", "adoc", "markdown", "1", "html", "svg"];
/// Names of files that are neither code nor a test, in lower case, without extension. `history.py` is code.
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
/// Extensions of code in languages besides those of [`Language`].
const OF_MORE_CODE: [&str; 20] = [
    "clj", "cljs", "coffee", "css", "dart", "erl", "f90", "hs", "jl", "kts", "less", "m", "ml", "mm", "nim", "proto",
    "r", "scss", "sql", "zig",
];
/// Names of files that list dependencies.
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
/// The ends of the names of tests, without extension.
const ENDS: [&str; 8] = ["_test", "_tests", ".test", ".tests", ".spec", "_spec", "-test", "-spec"];

/// The role of a file, as far as its path shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    Known(Role),
    /// The file is a test if the files of a place are tests.
    Doubtful {
        /// A folder, or the file itself.
        place: String,
        /// The role of the file if the others are not tests.
        otherwise: Role,
    },
}

impl Sight {
    /// Returns what a path shows.
    pub fn of(path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        let (stem, extension) = split(name);
        // Snapshots of insta, jest and vitest.
        if parts.iter().any(|part| TEST_FOLDERS.contains(part)) || extension == "snap" {
            return Sight::Known(Role::Test);
        }
        let in_perl = perl(path);
        if extension == "t" && in_perl.is_some() {
            return Sight::Known(Role::Test);
        }
        let is_ambiguous = |part: &&str| AMBIGUOUS.contains(part);
        let in_folder = ambiguous(path);
        if is_test_name(name, stem, extension) && !(in_folder.is_none() && parts.iter().any(is_ambiguous)) {
            let is_within = parts.iter().any(|part| SOURCES.contains(part)) || (extension == "py" && !parts.is_empty());
            // In Rust, the name of a file says nothing: `#[cfg(test)]` before its module does. A command `test` is code.
            let is_module = extension == "rs" && stem != "tests";
            let is_plain = stem.eq_ignore_ascii_case("test");
            return match is_within && (is_module || is_plain) {
                true => Sight::Doubtful { place: in_folder.unwrap_or_else(|| path.to_owned()), otherwise: other(path) },
                false => Sight::Known(Role::Test),
            };
        }
        match (in_folder, in_perl) {
            (Some(place), _) => Sight::Doubtful { place, otherwise: other(path) },
            (None, _) if parts.iter().any(is_ambiguous) => Sight::Known(Role::Test),
            // A file beside tests of Perl.
            (None, Some(place)) => Sight::Doubtful { place, otherwise: other(path) },
            (None, None) => Sight::Known(other(path)),
        }
    }

    /// Returns true if a file may have a role.
    pub fn may_be(&self, role: Role) -> bool {
        match self {
            Sight::Known(known) => *known == role,
            Sight::Doubtful { otherwise, .. } => role == Role::Test || role == *otherwise,
        }
    }
}

/// Returns the folder around a file whose name code and tests may have.
fn ambiguous(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/')?;
    let parts: Vec<&str> = folder.split('/').collect();
    let at = parts.iter().position(|part| AMBIGUOUS.contains(part))?;
    let (above, below) = parts.split_at(at);
    let is_jvm = above.last() == Some(&"src") && below.get(1).is_some_and(|part| JVM.contains(part));
    let is_source = above.iter().any(|part| SOURCES.contains(part));
    let is_package = name.ends_with(".py") && !above.is_empty();
    let is_doubtful = !is_jvm && (is_source || is_package);
    is_doubtful.then(|| parts.get(..=at).unwrap_or_default().join("/"))
}

/// Returns the folder `t` around a file. It holds tests if a file in it ends with `.t`.
fn perl(path: &str) -> Option<String> {
    let (folder, _) = path.rsplit_once('/')?;
    let parts: Vec<&str> = folder.split('/').collect();
    let at = parts.iter().position(|part| *part == "t")?;
    Some(parts.get(..=at).unwrap_or_default().join("/"))
}

/// Returns the outermost folder around a file whose name is that of a folder of tests.
pub(super) fn folder_of_tests(path: &str) -> Option<&str> {
    let mut folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
    folders.find(|folder| TEST_FOLDERS.contains(&name(folder)) || AMBIGUOUS.contains(&name(folder)))
}

/// Returns true if a file is below a folder of sources.
pub(super) fn is_in_sources(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|part| SOURCES.contains(&part))
}

/// Returns the role of a file that is no test.
fn other(path: &str) -> Role {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let has = |known: &[&str]| folder.split('/').any(|part| known.contains(&part));
    let (_, extension) = split(name);
    let is_requirements = name.contains("requirements") && extension == "txt";
    if DEPENDENCIES.contains(&name) || is_requirements || folder == "requirements" {
        return Role::Dependencies;
    }
    let is_data = has(&EXAMPLES) || (!folder.is_empty() && DATA.contains(&extension));
    if is_data && !has(&OTHER_FOLDERS) && !has_other_name(name) {
        return Role::Data;
    }
    let is_other = has(&OTHER_FOLDERS)
        || has(&EXAMPLES)
        || TEXTS.contains(&extension)
        || has_other_name(name)
        || (name.starts_with('.') && folder.is_empty());
    if is_other { Role::Other } else { Role::Code }
}

/// Returns true if a file is data by its extension.
pub(super) fn is_data(path: &str) -> bool {
    OF_DATA.contains(&split(name(path)).1)
}

/// Returns true if a file may be data by its place and its name: neither documentation nor a file about the project.
pub(super) fn may_be_data(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_documentation = folder.split('/').any(|part| OTHER_FOLDERS.contains(&part));
    let is_setting = folder.is_empty() && name.starts_with('.');
    !is_documentation && !is_setting && !has_other_name(name)
}

/// Returns true if a file is about the project by its name, such as `CHANGES.md`.
fn has_other_name(name: &str) -> bool {
    let (stem, extension) = split(name);
    let is_code = Language::of(name).is_some() || OF_MORE_CODE.contains(&extension);
    !is_code && OTHER_NAMES.contains(&stem.to_ascii_lowercase().as_str())
}

/// Returns true if a file is a setting at the top, such as `.env`, or a page of documentation, which tests may read.
pub(super) fn is_aside(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_documentation = folder.split('/').any(|part| OTHER_FOLDERS.contains(&part));
    other(path) == Role::Other && (is_documentation || (folder.is_empty() && name.starts_with('.')))
}

/// Returns true if a file is a test by its name alone.
pub(super) fn has_test_name(path: &str) -> bool {
    let name = name(path);
    let (stem, extension) = split(name);
    is_test_name(name, stem, extension)
}

/// Returns the name of a file.
pub(super) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the path of the folder of a file, with `/` at its end. The top is empty.
pub(super) fn folder(path: &str) -> &str {
    path.strip_suffix(name(path)).unwrap_or_default()
}

/// Returns the name of the folder of a file.
pub(super) fn place(path: &str) -> Option<&str> {
    path.rsplit('/').nth(1)
}

/// Splits the name of a file from its extension.
pub(super) fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((name, ""))
}

/// Returns true if a file is a test by its name.
fn is_test_name(name: &str, stem: &str, extension: &str) -> bool {
    let is_code = !extension.is_empty() && !TEXTS.contains(&extension);
    let lower = stem.to_ascii_lowercase();
    is_code && (ENDS.iter().any(|end| lower.ends_with(end)) || ["test", "tests"].contains(&lower.as_str()))
        || (extension == "py" && (lower.starts_with("test_") || lower == "conftest"))
        || (language::JVM.has_extension(extension) && (stem.ends_with("Test") || stem.ends_with("Tests")))
        || name == "conftest.py"
}

/// The roles of the files of a commit and its parent.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// The doubtful places that hold tests.
    tests: BTreeSet<String>,
}

impl Roles {
    /// Decides the doubtful places of trees, which need the texts of the files that [`decides`] names.
    pub fn of_trees(trees: &[&Tree]) -> Self {
        let mut tests = BTreeSet::new();
        for tree in trees {
            for path in &tree.files {
                let of_path = match Sight::of(path) {
                    Sight::Doubtful { place, .. } => Some(place),
                    Sight::Known(_) => None,
                };
                // A file with the name of a test shows what its folder holds.
                for place in of_path.into_iter().chain(ambiguous(path)).chain(perl(path)) {
                    if !tests.contains(&place) && shows_tests(path, &place, tree) {
                        tests.insert(place);
                    }
                }
            }
        }
        Self { tests }
    }

    /// Returns the role of a file.
    pub fn of(&self, path: &str) -> Role {
        match Sight::of(path) {
            Sight::Known(role) => role,
            Sight::Doubtful { place, .. } if self.tests.contains(&place) => Role::Test,
            Sight::Doubtful { otherwise, .. } => otherwise,
        }
    }
}

/// Returns true if the text of a file is needed to decide doubtful places: those in them, and files of Rust that may declare
/// their modules.
pub fn decides(path: &str, places: &BTreeSet<String>) -> bool {
    let is_doubtful = matches!(Sight::of(path), Sight::Doubtful { .. });
    is_doubtful || places.iter().any(|place| declaring(place).iter().any(|file| file == path))
}

/// Returns the doubtful places among paths.
pub fn places<'a>(paths: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let place = |path: &String| match Sight::of(path) {
        Sight::Doubtful { place, .. } => Some(place),
        Sight::Known(_) => None,
    };
    paths.filter_map(place).collect()
}

/// Returns true if a file shows that its doubtful place holds tests.
fn shows_tests(path: &str, place: &str, tree: &Tree) -> bool {
    let name = name(path);
    let (stem, extension) = split(name);
    if perl(path).as_deref() == Some(place) {
        return extension == "t";
    }
    if extension == "rs" {
        return declaring(place).iter().filter_map(|file| tree.text(file)).any(|text| is_declared_as_test(text, place));
    }
    if path != place && is_test_name(name, stem, extension) {
        return !is_beside_its_code(path, stem, extension, tree);
    }
    tree.text(path).is_some_and(|text| defines_tests(text, extension))
}

/// Returns true if the code that a test is named after is in the same folder: such a test says nothing about the folder.
fn is_beside_its_code(path: &str, stem: &str, extension: &str, tree: &Tree) -> bool {
    let folder = path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
    let of_end = ENDS.iter().find_map(|end| stem.strip_suffix(end));
    let subject = of_end.or_else(|| stem.strip_prefix("test_"));
    subject.is_some_and(|subject| tree.has(&format!("{folder}{subject}.{extension}")))
}

/// Returns true if a text defines tests, in the way of the runners of its language.
fn defines_tests(text: &str, extension: &str) -> bool {
    const NODE: [&str; 12] = [
        "describe(",
        "describe.",
        "it(",
        "it.",
        "test(",
        "test.",
        "suite(",
        "context(",
        "exports['",
        "exports[\"",
        "import test ",
        "const test =",
    ];
    let starts: &[&str] = match extension {
        "py" => &["def test_", "async def test_", "def test("],
        _ if language::NODE.has_extension(extension) => &NODE,
        _ if language::JVM.has_extension(extension) => &["@Test", "@ParameterizedTest"],
        _ => &[],
    };
    text.lines().any(|line| starts.iter().any(|start| line.trim_start().starts_with(start)))
}

/// Returns the files of Rust that may declare the module of a file or folder.
fn declaring(place: &str) -> Vec<String> {
    let (folder, _) = place.rsplit_once('/').unwrap_or(("", place));
    let mut files: Vec<String> =
        ["lib.rs", "main.rs", "mod.rs"].iter().map(|name| format!("{folder}/{name}")).collect();
    files.push(format!("{folder}.rs"));
    // `sum.rs` may declare `sum_test.rs`.
    let of_end = place.strip_suffix(".rs").and_then(|stem| ENDS.iter().find_map(|end| stem.strip_suffix(end)));
    files.extend(of_end.map(|stem| format!("{stem}.rs")));
    files
}

/// Returns true if a text of Rust declares the module of a file or folder, and only for tests.
fn is_declared_as_test(text: &str, place: &str) -> bool {
    let file = place.rsplit('/').next().unwrap_or(place);
    let name = file.trim_end_matches(".rs");
    let (mut is_for_tests, mut is_file) = (false, false);
    for line in text.lines().map(str::trim) {
        let (attribute, rest) = match line.strip_prefix("#[cfg(test)]") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, line),
        };
        is_for_tests |= attribute;
        is_file |= rest.starts_with("#[path") && rest.contains(&format!("\"{file}\""));
        let rest = rest.strip_prefix("pub(crate) ").or_else(|| rest.strip_prefix("pub ")).unwrap_or(rest);
        let declared = rest.strip_prefix("mod ").and_then(|rest| rest.split([';', ' ', '{']).next());
        if declared == Some(name) || (is_file && declared.is_some()) {
            return is_for_tests;
        }
        // Further attributes and comments may be between.
        if !rest.is_empty() && !rest.starts_with("#[") && !rest.starts_with("//") {
            (is_for_tests, is_file) = (false, false);
        }
    }
    false
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
            ("test.js", Role::Test),
            ("test_app.py", Role::Test),
            ("pkg/conftest.py", Role::Test),
            ("test/fixtures/a.bin", Role::Test),
            ("test/helper.js", Role::Test),
            ("packages/a/test/helper.js", Role::Test),
            ("lib/__fixtures__/a.json", Role::Test),
            ("src/snapshots/calc__all.snap", Role::Test),
            ("test/src/helper.js", Role::Test),
            ("test/test.js", Role::Test),
            ("packages/a/test.js", Role::Test),
            ("src/app.test.ts", Role::Test),
            ("pkg/add_test.go", Role::Test),
            ("src/test/java/a/BTest.java", Role::Test),
            ("src/test/java/a/Helper.java", Role::Test),
            ("sub/src/test/resources/a.txt", Role::Test),
            ("t/usage.t", Role::Test),
            ("t/deep/usage.t", Role::Test),
            ("cli/t/usage.t", Role::Test),
            ("src/t/AddTest.java", Role::Test),
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
            ("README.ja", Role::Other),
            ("tox.ini", Role::Other),
            ("history.py", Role::Code),
            ("web/todo.css", Role::Code),
            ("examples/todo.js", Role::Data),
            (".gitignore", Role::Other),
            ("doc/hexyl.1", Role::Other),
        ] {
            assert_eq!(Sight::of(path), Sight::Known(role), "{path}");
        }
    }

    #[test]
    fn a_name_that_code_may_have_is_decided_by_what_the_files_contain() {
        for (files, path, role) in [
            // A command `test`, and a library for tests.
            (
                vec![("src/test/mod.rs", "pub fn run() {}\n"), ("src/main.rs", "mod test;\n")],
                "src/test/mod.rs",
                Role::Code,
            ),
            (vec![("src/test.rs", "pub fn run() {}\n"), ("src/lib.rs", "pub mod test;\n")], "src/test.rs", Role::Code),
            (vec![("src/a/ab_test.rs", ""), ("src/a.rs", "mod ab_test;\n")], "src/a/ab_test.rs", Role::Code),
            (vec![("lib/test/helper.js", "exports.help = () => 1;\n")], "lib/test/helper.js", Role::Code),
            (vec![("src/commands/test.ts", "export const run = 1;\n")], "src/commands/test.ts", Role::Code),
            (vec![("cmd/test/main.go", "package main\n")], "cmd/test/main.go", Role::Code),
            (vec![("django/test/client.py", "class Client:\n    pass\n")], "django/test/client.py", Role::Code),
            (vec![("lib/test/a.js", ""), ("lib/test/a.test.js", "test('a')\n")], "lib/test/a.test.js", Role::Test),
            (vec![("src/test/run_test.rs", ""), ("src/lib.rs", "mod test;\n")], "src/test/run_test.rs", Role::Code),
            // Tests.
            (
                vec![("src/a_test.rs", ""), ("src/a.rs", "#[cfg(test)]\n#[path = \"a_test.rs\"]\nmod tests;\n")],
                "src/a_test.rs",
                Role::Test,
            ),
            (vec![("src/test/mod.rs", ""), ("src/lib.rs", "#[cfg(test)]\nmod test;\n")], "src/test/mod.rs", Role::Test),
            (vec![("src/test.rs", ""), ("src/lib.rs", "#[cfg(test)] mod test;\n")], "src/test.rs", Role::Test),
            (vec![("src/test/index.ts", ""), ("src/test/suite/app.test.ts", "")], "src/test/index.ts", Role::Test),
            (vec![("lib/test/add.js", "describe('add', () => {\n")], "lib/test/add.js", Role::Test),
            (vec![("pkg/test/helpers.py", ""), ("pkg/test/test_a.py", "")], "pkg/test/helpers.py", Role::Test),
            (vec![("pkg/test/add.py", "class A:\n    def test_add(self):\n")], "pkg/test/add.py", Role::Test),
            (vec![("app/spec/test.js", "it('adds', () => {})\n")], "app/spec/test.js", Role::Test),
            // A folder `t` is one of tests if it has a test of Perl.
            (vec![("t/a.t", ""), ("t/lib/helper.pm", "")], "t/lib/helper.pm", Role::Test),
            (vec![("t/helper.pm", "")], "t/helper.pm", Role::Code),
        ] {
            let tree = Tree::for_test(&files);
            assert_eq!(Roles::of_trees(&[&tree]).of(path), role, "{path} {files:?}");
        }
        // Code beside its test is no test.
        let tree = Tree::for_test(&[("lib/test/a.js", ""), ("lib/test/a.test.js", "")]);
        assert_eq!(Roles::of_trees(&[&tree]).of("lib/test/a.js"), Role::Code);
    }

    #[test]
    fn a_module_for_tests_is_declared_after_its_attribute() {
        for (text, is) in [
            ("#[cfg(test)]\nmod test;", true),
            ("#[cfg(test)]\n#[path = \"x\"]\n// x\npub(crate) mod test;", true),
            ("#[cfg(test)]\nuse x;\nmod test;", false),
            ("mod test;", false),
            ("#[cfg(test)]\nmod tests;\nmod test;", false),
            ("", false),
        ] {
            assert_eq!(is_declared_as_test(text, "src/test"), is, "{text}");
        }
    }
}
