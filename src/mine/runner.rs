//! Recognises the test runner of a repository by its files, and returns the commands that set it up and run it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use strum::IntoStaticStr;

use crate::grader::test_run::{Format, RESULTS_ALONE};
use crate::text::{shell_word, some_of};
use crate::word::word;

mod cargo;
mod go;
mod jvm;
mod node;
mod python;

pub(super) use python::{example_folders, is_settings_of_pytest, python_paths, python_plugins, without_pytest};

/// The report that runners write in the workspace if their output cannot hold all names.
pub(super) const REPORT: &str = ".evals-tests.xml";

/// The folder of the programs of packages of Node, in commands.
const PROGRAMS_OF_NODE: &str = "node_modules/.bin/";

/// A test runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Runner {
    /// `cargo test`
    Cargo,
    Pytest,
    /// Python's `unittest`
    Unittest,
    /// `go test`
    Go,
    /// `node --test`
    Node,
    /// `npm test`
    Npm,
    Mocha,
    Jest,
    Vitest,
    Maven,
    Gradle,
    /// The command of `--test`
    Given,
}

word!(Runner);

impl Runner {
    /// Returns true if the tests are those of Python.
    pub fn is_of_python(self) -> bool {
        matches!(self, Runner::Pytest | Runner::Unittest)
    }

    /// Returns true if the tests need the packages of Node.
    fn is_of_node(self) -> bool {
        matches!(self, Runner::Node | Runner::Npm | Runner::Mocha | Runner::Jest | Runner::Vitest)
    }
}

/// The files of a commit: all paths, and the texts of those that describe the project.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The paths.
    pub files: BTreeSet<String>,
    /// The texts by path, as far as they were read.
    pub texts: BTreeMap<String, String>,
}

impl Tree {
    #[cfg(test)]
    pub(super) fn for_test(files: &[(&str, &str)]) -> Self {
        Self {
            files: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
            texts: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
        }
    }

    /// Returns true if a file exists.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains(path)
    }

    /// Returns true if a folder has a file in it.
    pub fn has_folder(&self, folder: &str) -> bool {
        let prefix = format!("{folder}/");
        self.files.range(prefix.clone()..).next().is_some_and(|path| path.starts_with(&prefix))
    }

    /// Returns the files in a folder. Their paths begin there.
    pub fn below(&self, folder: &str) -> Tree {
        let start = format!("{folder}/");
        let files = self.files.iter().filter_map(|path| path.strip_prefix(&start)).map(str::to_owned).collect();
        let text = |(path, text): (&String, &String)| Some((path.strip_prefix(&start)?.to_owned(), text.clone()));
        Tree { files, texts: self.texts.iter().filter_map(text).collect() }
    }

    /// Returns the text of a file that describes the project.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }
}

/// The maximum number of folders around settings of Node that are read, unless they are beside or around the changed tests.
const MAX_SETTINGS_DEPTH: usize = 3;

/// Returns true if a file has settings of mocha, jest, vitest, ava or TypeScript, by its name.
pub(super) fn has_settings_of_node(name: &str) -> bool {
    const STARTS: [&str; 9] = [
        ".mocharc.",
        "ava.config.",
        "jest.config.",
        "jsconfig.",
        "tsconfig.",
        "vite.config.",
        "vitest.config.",
        "vitest.projects.",
        "vitest.workspace.",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// Returns true if a file names what cargo or a runner of Node loads, by its own name.
pub(super) fn has_settings(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["Cargo.toml", "package.json", "mocha.opts"].contains(&name) || has_settings_of_node(name)
}

/// Returns true if a file may define names of modules of Node: a `package.json`, or settings of a runner with aliases.
pub(super) fn has_names_of_node(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    describes_the_project(path) && (name == "package.json" || has_settings_of_node(name))
}

/// Returns true if the text of a file is needed to recognise the runner, or to know what it loads.
pub fn describes_the_project(path: &str) -> bool {
    const NAMES: [&str; 15] = [
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "Makefile",
        "go.mod",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
    ];
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    // A dependency in any folder may have a build script.
    let is_read = name == "Cargo.toml" || path.matches('/').count() <= MAX_SETTINGS_DEPTH;
    if has_settings(path) && is_read && !path.contains("node_modules/") {
        return true;
    }
    let is_requirements = name.contains("requirements") && name.ends_with(".txt");
    match folder {
        "" => NAMES.contains(&name) || is_requirements || (name.ends_with(".py") && name.contains("test")),
        "requirements" => name.ends_with(".txt") || name.ends_with(".in"),
        "tests" | "test" => is_requirements || name.ends_with(".py"),
        _ => false,
    }
}

/// A command that prepares a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The line for `sh -c`.
    pub line: String,
    /// The inputs of the command outside the workspace, or in kept folders. The command is not repeated in the same
    /// set-up unless they change. Absent: the command runs for each commit.
    pub depends_on: Option<String>,
}

impl Step {
    pub(super) fn once(line: impl Into<String>) -> Self {
        Self { line: line.into(), depends_on: Some(String::new()) }
    }

    pub(super) fn each(line: impl Into<String>) -> Self {
        Self { line: line.into(), depends_on: None }
    }

    pub(super) fn again_with(line: impl Into<String>, depends_on: String) -> Self {
        Self { line: line.into(), depends_on: Some(depends_on) }
    }
}

/// The way to set up and run the tests of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    pub runner: Runner,
    /// The folder in which the tests run, without a slash at its end. Names of tests begin there. Empty for the top.
    pub folder: String,
    /// The commands that prepare the workspace, with the network.
    pub setup: Vec<Step>,
    /// The line that runs the tests, without the network.
    pub run: String,
    /// The format of the output.
    pub format: Format,
    /// The glob of the reports that the runner writes, if it writes reports.
    pub report: Option<String>,
    /// The programs that have to be installed.
    pub needs: Vec<String>,
    /// Further programs that the commands may start: a sandbox gets the installations of all of them.
    pub mounted: Vec<String>,
    /// The folders of the workspace that the set-up makes and that a commit with the same key can reuse.
    pub keeps: Vec<String>,
    /// The key of the set-up. Commits with the same key share it.
    pub key: String,
}

impl Recipe {
    /// Returns a recipe without commands, for the top.
    pub(super) fn bare(runner: Runner) -> Self {
        Self {
            runner,
            folder: String::new(),
            setup: Vec::new(),
            run: String::new(),
            format: Format::Auto,
            report: None,
            needs: Vec::new(),
            mounted: Vec::new(),
            keeps: Vec::new(),
            key: String::new(),
        }
    }

    /// Returns the programs that the commands may start.
    pub fn programs(&self) -> Vec<String> {
        [&self.needs[..], &self.mounted].concat()
    }

    /// Returns the folder in which the tests run, with a slash at its end. Empty for the top.
    pub fn path(&self) -> String {
        if self.folder.is_empty() { String::new() } else { format!("{}/", self.folder) }
    }

    /// Returns the recipe with its commands in a folder of the workspace. `workspaces` is the folder of the workspaces of npm around
    /// it, empty for the top: packages are installed there. `enters` is false if the set-up runs at the top, as the user gave it.
    pub fn within(mut self, folder: &str, workspaces: Option<&str>, enters: bool) -> Self {
        let enter = format!("cd {}", shell_word(folder));
        if enters {
            for step in &mut self.setup {
                step.line = format!("{enter} && {}", step.line);
                // Links between workspaces depend on the folders of each commit.
                step.depends_on = step.depends_on.take().filter(|_| workspaces.is_none());
            }
        }
        self.keeps = self.keeps.iter().map(|name| format!("{folder}/{name}")).collect();
        let around = workspaces.filter(|_| self.runner.is_of_node());
        let packages = around.map(|around| match around {
            "" => "node_modules".to_owned(),
            around => format!("{around}/node_modules"),
        });
        self.run = match &packages {
            Some(packages) if self.run.contains(PROGRAMS_OF_NODE) => {
                let shared = shell_word(&format!("{packages}/.bin"));
                let path = format!("\"$PWD/node_modules/.bin:$OLDPWD\"/{shared}:\"$PATH\"");
                format!("{enter} && PATH={path} && {}", self.run.replace(PROGRAMS_OF_NODE, ""))
            }
            _ => format!("{enter} && {}", self.run),
        };
        self.keeps.extend(packages);
        self.report = self.report.map(|glob| format!("{folder}/{glob}"));
        self.key = format!("{folder}: {}", self.key);
        folder.clone_into(&mut self.folder);
        self
    }

    /// Returns the body of the `tests` grader that runs the tests after removing files.
    pub fn grader(&self, removed: &[String], timeout: &str) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("run".to_owned(), json!(self.line(removed)));
        if self.format != Format::Auto {
            body.insert("format".to_owned(), json!(self.format));
        }
        body.extend(self.report.iter().map(|glob| ("report".to_owned(), json!(glob))));
        body.insert("timeout".to_owned(), json!(timeout));
        body
    }

    /// Returns the line that runs the tests. Test files that the commit deletes must not be run.
    fn line(&self, removed: &[String]) -> String {
        if removed.is_empty() {
            return self.run.clone();
        }
        let words: Vec<String> = removed.iter().map(|path| shell_word(path)).collect();
        format!("rm -f -- {} && {}", words.join(" "), self.run)
    }
}

/// The set-up and test settings that the user gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The line that runs the tests.
    pub test: Option<String>,
    /// The lines that prepare a workspace; empty: as detected.
    pub setup: Vec<String>,
}

/// The test files of a commit.
#[derive(Debug, Clone, Copy, Default)]
pub struct TestFiles<'a> {
    /// The paths of the tests that the commit changes.
    pub changed: &'a [&'a str],
    /// Globs of the files of Python that tests may be in: they are hidden or protected.
    pub guarded: &'a [String],
}

/// A function that returns the recipes of one language for a commit, its parent and its test files.
type Detect = fn(&Tree, &Tree, &TestFiles<'_>) -> Vec<Recipe>;

/// The endings of each language's files, and its recipes.
const LANGUAGES: [(&[&str], Detect); 5] = [
    (&[".rs"], cargo::recipes),
    (&[".py"], python::recipes),
    (&[".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".mts", ".cts"], node::recipes),
    (&[".go"], go::recipes),
    (&[".java", ".kt", ".groovy", ".scala"], jvm::recipes),
];

/// The manifests of packages, each with the command that runs the tests of a package.
const MANIFESTS: [(&str, &str); 9] = [
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("go.mod", "go test -json ./..."),
    ("pyproject.toml", "python3 -m pytest -v"),
    ("setup.py", "python3 -m pytest -v"),
    ("setup.cfg", "python3 -m pytest -v"),
    ("pom.xml", "COMMAND"),
    ("build.gradle", "COMMAND"),
    ("build.gradle.kts", "COMMAND"),
];

/// Returns a part of a message about the manifests below the top that are nearest to tests, with the options that run a command
/// in the first of their folders. Returns `None` if there are none.
pub fn below_the_top(tree: &Tree, tests: &[String]) -> Option<String> {
    let nearest = |path: &String| {
        let mut folders = path.match_indices('/').rev().filter_map(|(at, _)| path.get(..at));
        let manifest = |folder: &str| {
            let (name, command) = MANIFESTS.iter().find(|(name, _)| tree.has(&format!("{folder}/{name}")))?;
            Some((folder.to_owned(), *name, *command))
        };
        folders.find_map(manifest)
    };
    let found: BTreeSet<(String, &str, &str)> = tests.iter().filter_map(nearest).collect();
    let (folder, _, command) = found.first()?;
    let verb = if found.len() == 1 { "manifest nearest to the tests is" } else { "manifests nearest to the tests are" };
    let manifests = some_of(found.iter().map(|(folder, name, _)| format!("`{folder}/{name}`")), 3);
    let paths = shell_word(&format!("{folder}/**"));
    let test = shell_word(&format!("cd {} && {command}", shell_word(folder)));
    Some(format!(
        "the {verb} {manifests}: name the command of this folder with --paths {paths} --test {test}, and the commands that \
         install its packages with --setup"
    ))
}

/// Returns the words of a line for a shell that may be names of programs.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || "\"'`;&|()<>$={}".contains(c));
    words.filter(|word| !word.is_empty() && !word.starts_with('-') && !word.contains('/'))
}

/// Returns the recipes for a commit, the most faithful one first. `parent` is the state in which the set-up runs.
pub fn recipes(tree: &Tree, parent: &Tree, tests: &TestFiles<'_>, given: &Given) -> Vec<Recipe> {
    // A repository may have several languages: the changed tests decide.
    let is_changed = |endings: &[&str]| tests.changed.iter().any(|path| endings.iter().any(|end| path.ends_with(end)));
    let own = LANGUAGES.iter().filter(|(endings, _)| is_changed(endings));
    let mut all: Vec<Recipe> = own
        .chain(&LANGUAGES)
        .map(|(_, detect)| detect(tree, parent, tests))
        .find(|found| !found.is_empty())
        .unwrap_or_default();
    // A command that the user gives may start the detected programs by a script.
    let mut programs = all.first().map(|recipe| recipe.needs.clone()).unwrap_or_default();
    for name in given.test.iter().chain(&given.setup).flat_map(|line| names(line)) {
        if !programs.iter().any(|known| known == name) {
            programs.push(name.to_owned());
        }
    }
    if let Some(test) = &given.test {
        if all.is_empty() || !given.setup.is_empty() {
            all = vec![Recipe::bare(Runner::Given)];
        }
        for recipe in &mut all {
            (recipe.runner, recipe.format, recipe.report) = (Runner::Given, Format::Auto, None);
            recipe.run.clone_from(test);
            recipe.needs.clear();
        }
        all.dedup();
    }
    if !given.setup.is_empty() {
        all.truncate(1);
        for recipe in &mut all {
            recipe.setup = given.setup.iter().map(Step::each).collect();
            recipe.key.push_str(&given.setup.join("\n"));
        }
    }
    if *given != Given::default() {
        let toolchains = cargo::toolchains();
        let uses_rustup = programs.iter().any(|name| cargo::is_of_rustup(name));
        for recipe in &mut all {
            recipe.mounted.clone_from(&programs);
            if uses_rustup && !recipe.setup.contains(&toolchains) {
                recipe.setup.insert(0, toolchains.clone());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changing<'a>(changed: &'a [&'a str]) -> TestFiles<'a> {
        TestFiles { changed, guarded: &[] }
    }

    #[test]
    fn each_runner_is_recognised_by_its_files() {
        let unittest = "import unittest\n";
        for (files, changed, runner, run) in [
            (
                vec![("Cargo.toml", "[package]\n"), ("tests/a.rs", "")],
                "tests/a.rs",
                Runner::Cargo,
                "cargo test --offline --no-fail-fast \"$@\"",
            ),
            (
                vec![("setup.py", ""), ("tests/test_a.py", "import pytest")],
                "tests/test_a.py",
                Runner::Pytest,
                "-vv --color=no --continue-on-collection-errors -p no:cacheprovider 3>&1 >&2",
            ),
            (
                vec![("tests.py", unittest)],
                "tests.py",
                Runner::Unittest,
                "python3 -IBc 'import os, sys, types, unittest",
            ),
            (vec![("tests/test_a.py", unittest)], "tests/test_a.py", Runner::Unittest, "discover -v -s tests"),
            (vec![("go.mod", "module a"), ("a_test.go", "")], "a_test.go", Runner::Go, "go test -json -count=1 ./..."),
            (
                vec![("package.json", r#"{"scripts": {"test": "node --test"}}"#), ("test/a.js", "")],
                "test/a.js",
                Runner::Node,
                "node --test --test-reporter=tap",
            ),
            (
                vec![
                    ("package.json", r#"{"scripts": {"test": "eslint . && mocha -R dot test/*.js"}}"#),
                    ("test/a.js", ""),
                ],
                "test/a.js",
                Runner::Mocha,
                "node_modules/.bin/mocha 'test/*.js' --reporter xunit",
            ),
            (
                vec![("package.json", r#"{"scripts": {"test": "jest"}}"#), ("a.test.js", "")],
                "a.test.js",
                Runner::Jest,
                "node_modules/.bin/jest --ci --verbose",
            ),
            (
                vec![("package.json", r#"{"scripts": {"test": "vitest"}}"#), ("a.test.ts", "")],
                "a.test.ts",
                Runner::Vitest,
                "vitest run --reporter=junit",
            ),
            (
                vec![("pom.xml", "<project/>"), ("src/test/java/ATest.java", "")],
                "src/test/java/ATest.java",
                Runner::Maven,
                "mvn",
            ),
            (
                vec![("build.gradle", ""), ("src/test/java/ATest.java", "")],
                "src/test/java/ATest.java",
                Runner::Gradle,
                "gradle",
            ),
        ] {
            let tree = Tree::for_test(&files);
            let found = recipes(&tree, &tree, &changing(&[changed]), &Given::default());
            let first = found.first().unwrap_or_else(|| panic!("{files:?}"));
            assert_eq!(first.runner, runner, "{files:?}");
            assert!(first.run.contains(run), "{}", first.run);
        }
        let none = Tree::for_test(&[("a.c", ""), ("test/a.c", "")]);
        assert!(recipes(&none, &none, &changing(&["test/a.c"]), &Given::default()).is_empty());
    }

    #[test]
    fn the_changed_tests_decide_between_languages() {
        let tree =
            Tree::for_test(&[("Cargo.toml", "[package]\n"), ("setup.py", ""), ("tests/test_a.py", "import pytest")]);
        for (path, runner) in [("tests/test_a.py", Runner::Pytest), ("tests/a.rs", Runner::Cargo)] {
            assert_eq!(recipes(&tree, &tree, &changing(&[path]), &Given::default())[0].runner, runner);
        }
    }

    #[test]
    fn what_the_user_says_replaces_what_was_detected() {
        let tree = Tree::for_test(&[("Cargo.toml", "[package]\n"), ("tests/a.rs", "")]);
        let given = Given { test: Some("make check".to_owned()), setup: Vec::new() };
        let found = recipes(&tree, &tree, &changing(&["tests/a.rs"]), &given);
        assert_eq!((found.len(), found[0].run.as_str(), found[0].setup.is_empty()), (1, "make check", false));
        // A cargo of rustup also needs its toolchains.
        let given = Given { test: None, setup: vec!["true".to_owned()] };
        let expected = [cargo::toolchains(), Step::each("true")];
        assert_eq!(recipes(&tree, &tree, &changing(&["tests/a.rs"]), &given)[0].setup, expected);
    }

    #[test]
    fn given_commands_need_the_detected_programs_and_those_that_they_name() {
        let of_rust = Tree::for_test(&[("Cargo.toml", "[package]\n"), ("tests/a.rs", "")]);
        let recipe = |tree: &Tree, test: &str, setup: &[&str]| {
            let setup = setup.iter().map(|line| (*line).to_owned()).collect();
            let given = Given { test: Some(test.to_owned()), setup };
            recipes(tree, tree, &changing(&["tests/a.rs"]), &given).remove(0)
        };
        let found = recipe(&of_rust, "make check", &["true"]);
        assert!(found.needs.is_empty(), "{found:?}");
        assert_eq!(found.programs(), ["cargo", "rustc", "make", "check", "true"]);
        assert_eq!(found.setup, [cargo::toolchains(), Step::each("true")]);
        let found = recipe(
            &Tree::for_test(&[("core/Cargo.toml", "")]),
            "cd core && X=1 /opt/run --all; sh -c 'cargo test'",
            &[],
        );
        assert_eq!(found.programs(), ["cd", "core", "X", "1", "sh", "cargo", "test"]);
        assert_eq!(found.setup, [cargo::toolchains()]);
        assert!(recipe(&Tree::for_test(&[]), "make check", &[]).setup.is_empty());
    }

    #[test]
    fn manifests_below_the_top_are_named_with_the_options_that_mine_them() {
        let files = ["web/package.json", "web/a b/Cargo.toml", "web/a b/tests/a.rs", "web/test/a.js", "tests/b.js"];
        let tree = Tree::for_test(&files.map(|path| (path, "")));
        let below = |tests: &[&str]| below_the_top(&tree, &tests.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let found = below(&["tests/b.js", "web/test/a.js"]).unwrap();
        assert!(found.contains("the manifest nearest to the tests is `web/package.json`: "), "{found}");
        assert!(found.contains("--paths 'web/**' --test 'cd web && npm test',"), "{found}");
        let found = below(&["web/a b/tests/a.rs"]).unwrap();
        assert!(found.contains(r"--paths 'web/a b/**' --test 'cd '\''web/a b'\'' && cargo test'"), "{found}");
        assert_eq!(below(&["tests/b.js"]), None);
    }

    #[test]
    fn deleted_tests_are_not_run() {
        let tree = Tree::for_test(&[("Cargo.toml", "[package]\n")]);
        let recipe = &recipes(&tree, &tree, &changing(&["tests/a.rs"]), &Given::default())[0];
        let body = recipe.grader(&["tests/it's old.rs".to_owned()], "10m");
        assert!(body["run"].as_str().unwrap().starts_with("rm -f -- 'tests/it'\\''s old.rs' && "), "{body:?}");
    }
}
