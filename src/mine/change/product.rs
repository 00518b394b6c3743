//! Decides which modules may be a part of the product, although only tests use them as far as names show it. A protected module
//! of the product would fail a solution that changes it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::mentions::{may_copy, may_name, names_module};
use super::python_imports::packages;
use super::settings_text::{is_settings, plain, values};
use super::{Entry, MAX_SEARCHED_WORDS, tree};
use crate::mine::language::{NODE, PYTHON};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles, name, split};
use crate::mine::runner::{Tree, without_pytest};
use crate::values::PathGlob;

/// Names of folders and modules for tests.
const FOR_TESTS: [&str; 28] = [
    "__fixtures__",
    "__mocks__",
    "conftest",
    "e2e",
    "fixture",
    "fixtures",
    "harness",
    "helper",
    "helpers",
    "mock",
    "mocks",
    "spec",
    "specs",
    "support",
    "test",
    "test-helpers",
    "test-support",
    "test-util",
    "test-utils",
    "test_helpers",
    "test_support",
    "test_util",
    "test_utils",
    "testing",
    "tests",
    "testsupport",
    "testutil",
    "testutils",
];
/// Packages of Python for tests.
const OF_PYTHON: [&str; 2] = ["pytest", "unittest"];
/// Packages of Node for tests.
const OF_NODE: [&str; 12] = [
    "@jest/globals",
    "assert",
    "assert/strict",
    "chai",
    "expect",
    "jest",
    "node:assert",
    "node:assert/strict",
    "node:test",
    "supertest",
    "vitest",
    "@vitest/expect",
];
/// The beginnings of definitions of checks.
const CHECKS: [&str; 8] = [
    "def assert_",
    "def expect_",
    "function assert",
    "function expect",
    "exports.assert",
    "exports.expect",
    "const assert",
    "const expect",
];
/// Packages of Python for programs with arguments.
const OF_PROGRAMS: [&str; 4] = ["click", "docopt", "fire", "typer"];
/// Calls of a module of Python that read the arguments of a program.
const READS: [&str; 2] = ["parse_args(", "parse_known_args("];
/// Words in code by which a module tests itself, such as `doctest.testmod()`.
const OF_SELF_TESTS: [&str; 7] = ["assert", "doctest", "selftest", "test", "testmod", "tests", "unittest"];
/// Signs of a program of Node, which does something if it is not loaded by another module.
const RUNS_ITSELF: [&str; 3] = ["require.main", "import.meta.main", "process.argv[1]"];
/// Folders that may be around those of [`SERVED`] in a package.
const AROUND: [&str; 2] = ["app", "src"];
/// Folders of Node whose files a server or a service finds by their places.
const SERVED: [&str; 8] = ["api", "functions", "netlify", "pages", "public", "routes", "static", "vercel"];
/// Files that describe a distribution of Python.
const OF_DISTRIBUTIONS: [&str; 3] = ["pyproject.toml", "setup.cfg", "setup.py"];
/// Signs of a distribution of Python.
const BUILDS: [&str; 5] = ["[build-system]", "[metadata]", "[project]", "[tool.poetry]", "setup("];
/// Signs that the packages of a distribution are looked for.
const FINDS: [&str; 5] = ["find:", "find_namespace:", "find_namespace_packages", "find_packages", "packages.find"];
/// Keys of `package.json` with paths of the product.
const OF_PACKAGE: [&str; 8] = ["bin", "browser", "directories", "exports", "files", "main", "module", "workspaces"];
/// Keys of `package.json` that show that its folder is a package to be used.
const ENTRIES: [&str; 3] = ["bin", "exports", "main"];

/// Returns those of the modules that may be a part of the product. Each module has its text.
///
/// # Errors
/// Returns git's message.
pub(super) async fn may_be_product(
    repository: &Repository,
    commit: &str,
    entries: &BTreeMap<String, Entry>,
    roles: &Roles,
    modules: &BTreeMap<&String, &str>,
) -> Result<BTreeSet<String>, RepositoryError> {
    let doubtful: Vec<(&str, &str)> = modules.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let doubtful: Vec<(&str, &str)> = doubtful.into_iter().filter(|(path, text)| !is_for_tests(path, text)).collect();
    if doubtful.is_empty() {
        return Ok(BTreeSet::new());
    }
    let paths = || doubtful.iter().map(|(path, _)| *path);
    let words: BTreeSet<&str> = paths().flat_map(|path| path.split('/').map(|part| split(part).0)).collect();
    let with_words = repository.files_with(commit, &words.into_iter().take(MAX_SEARCHED_WORDS).collect()).await?;
    let names: BTreeSet<String> = paths().flat_map(|path| [name(path).to_owned(), dotted(path)]).collect();
    let with_names =
        repository.files_with(commit, &names.iter().map(String::as_str).take(MAX_SEARCHED_WORDS).collect()).await?;
    let is_read = |path: &str| {
        let is_manifest = name(path) == "package.json" || OF_DISTRIBUTIONS.contains(&name(path));
        let has_words = (is_settings(path) || may_copy(path)) && with_words.contains(path);
        // A `Makefile` or a `Procfile` may name a module without its folder or its ending.
        let is_short = split(name(path)).1.is_empty() && with_words.contains(path);
        let is_named = may_name(path) && (with_names.contains(path) || is_short);
        roles.of(path) != Role::Test && (is_manifest || has_words || is_named)
    };
    let tree = tree(repository, entries, is_read).await?;
    let is_named = |path: &str| tree.texts.iter().any(|(file, text)| may_name(file) && names_module(file, text, path));
    let may_be = |(path, text): &(&str, &str)| {
        is_program(path, text) || is_served(path, &tree) || is_product(path, &tree) || is_named(path)
    };
    Ok(doubtful.iter().filter(|module| may_be(module)).map(|(path, _)| (*path).to_owned()).collect())
}

/// Returns the last two parts of the dotted name of a Python module: the names of its folder and of the
/// module, as in `folder.module`.
fn dotted(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let own = parts.next().map(|part| split(part).0).unwrap_or_default();
    parts.next().map_or(own.to_owned(), |folder| format!("{folder}.{own}"))
}

/// Returns true if a module is also a program that can be started: it reads arguments, or acts if it is started itself. A self
/// test makes no program.
fn is_program(path: &str, text: &str) -> bool {
    let is_python = PYTHON.has(path);
    let reads_arguments = || {
        READS.iter().any(|call| text.contains(call))
            || packages(text).iter().any(|package| OF_PROGRAMS.contains(&package.as_str()))
    };
    let own = if is_python { own_code_of_python(text) } else { own_code_of_node(text) };
    text.starts_with("#!") || own.iter().any(|code| !is_self_test(code)) || (is_python && reads_arguments())
}

/// Returns the pieces of a module of Python that run if the module is started itself, without comments.
fn own_code_of_python(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
    let is_main = |line: &str| line.contains("__name__") && line.contains("__main__");
    let is_below = |line: &&&str| line.trim().is_empty() || line.starts_with(char::is_whitespace);
    let starts = lines.iter().enumerate().filter(|(_, line)| is_main(line)).map(|(at, _)| at);
    let piece = |at: usize| {
        let below = lines.iter().skip(at + 1).take_while(is_below);
        let all: Vec<&str> = lines.iter().skip(at).take(1).chain(below).copied().collect();
        all.join("\n")
    };
    starts.map(piece).collect()
}

/// Returns the pieces of a module of Node that run if the module is started itself.
fn own_code_of_node(text: &str) -> Vec<String> {
    let places = RUNS_ITSELF.iter().flat_map(|sign| text.match_indices(sign));
    let piece = |(at, _): (usize, &str)| {
        let rest = text.get(at..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        // A statement in one line, or a block.
        let end = if line.contains([';', '}']) { "\n" } else { "\n}" };
        rest.split(end).next().unwrap_or_default().to_owned()
    };
    places.map(piece).collect()
}

/// Returns true if code has a word of tests: `doctest.testmod()`, `_self_test()`.
fn is_self_test(code: &str) -> bool {
    let mut words = code.split(|c: char| !c.is_alphabetic());
    words.any(|word| OF_SELF_TESTS.contains(&word.to_ascii_lowercase().as_str()))
}

/// Returns true if a server or a service may find a module of Node by its place: below a folder at the top of the repository
/// or of a package, or in `src` or `app` there.
fn is_served(path: &str, tree: &Tree) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let folders = parts.split_last().map(|(_, folders)| folders).unwrap_or_default();
    let is_at_top = |at: usize| {
        let mut around = folders.get(..at).unwrap_or_default();
        while let Some((_, rest)) =
            around.split_last().filter(|(last, _)| AROUND.contains(*last) || SERVED.contains(*last))
        {
            around = rest;
        }
        around.is_empty() || tree.has(&format!("{}/package.json", around.join("/")))
    };
    let is_served = |(at, part): (usize, &&str)| SERVED.contains(part) && is_at_top(at);
    NODE.has(path) && folders.iter().enumerate().any(is_served)
}

/// Returns true if a module is a helper of tests without doubt: its path or its packages show it, or it defines checks.
pub(super) fn is_for_tests(path: &str, text: &str) -> bool {
    if path.split('/').any(|part| FOR_TESTS.contains(&split(part).0.to_ascii_lowercase().as_str())) {
        return true;
    }
    let defines_checks =
        || text.lines().any(|line| CHECKS.iter().any(|sign| line.trim_start().starts_with(sign) && !loads(line)));
    if PYTHON.has(path) {
        return packages(text).iter().any(|it| OF_PYTHON.contains(&it.as_str())) || defines_checks();
    }
    let imports = |line: &str| loads(line) && line.split(['"', '\'']).any(|word| OF_NODE.contains(&word));
    text.lines().any(imports) || (text.contains("expect(") && text.contains(").to")) || defines_checks()
}

/// Returns true if a line of Node may import something.
fn loads(line: &str) -> bool {
    ["require", "import", "from"].iter().any(|sign| line.contains(sign))
}

/// Returns true if a module may be a part of the product: a package or a program is around it, settings name it, its folder or
/// a glob for it, or a tool looks for packages where it is. The tree has the texts of the settings.
fn is_product(path: &str, tree: &Tree) -> bool {
    let mut folders = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
    folders.any(|folder| is_package(folder, tree))
        || is_found(path, tree)
        || tree.texts.iter().any(|(file, text)| is_settings(file) && is_named(path, file, text))
}

/// Returns true if a folder is a program of Python, or a package of Node that others may use.
fn is_package(folder: &str, tree: &Tree) -> bool {
    let manifest = tree.text(&format!("{folder}package.json"));
    let manifest: Option<Value> = manifest.and_then(|text| serde_json::from_str(text).ok());
    let is_used = |manifest: &Value| {
        let is_private = manifest.get("private").and_then(Value::as_bool) == Some(true);
        !is_private && ENTRIES.iter().any(|key| manifest.get(*key).is_some())
    };
    tree.has(&format!("{folder}__main__.py")) || manifest.as_ref().is_some_and(is_used)
}

/// Returns true if a distribution of Python has no list of its packages, and the module is in a place where they are found.
fn is_found(path: &str, tree: &Tree) -> bool {
    if !PYTHON.has(path) {
        return false;
    }
    let mut distributions: BTreeMap<&str, String> = BTreeMap::new();
    for (file, text) in tree.texts.iter().filter(|(file, _)| OF_DISTRIBUTIONS.contains(&name(file))) {
        let all = distributions.entry(file.strip_suffix(name(file)).unwrap_or_default()).or_default();
        all.push_str(text);
        all.push('\n');
    }
    distributions.iter().any(|(folder, text)| {
        let top = path.strip_prefix(folder).and_then(|rest| rest.split_once('/')).map(|(top, _)| top);
        let is_place = |top: &str| top == "src" || tree.has(&format!("{folder}{top}/__init__.py"));
        finds_packages(text) && top.is_some_and(is_place)
    })
}

/// Returns true if the description of a distribution of Python leaves it to a tool to find the packages.
fn finds_packages(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let has_key = |key: &str| {
        text.match_indices(key).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at + key.len()..).unwrap_or_default().trim_start_matches([' ', '"', '\'']);
            !before.is_some_and(is_name) && after.starts_with(['=', ':'])
        })
    };
    let has = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    has(&BUILDS) && (has(&FINDS) || !["packages", "py_modules", "py-modules"].into_iter().any(has_key))
}

/// Returns true if settings name a module, a folder around it, or a glob for one of them.
fn is_named(path: &str, file: &str, text: &str) -> bool {
    let folder = file.strip_suffix(name(file)).unwrap_or_default();
    let places: BTreeSet<String> =
        places(path).into_iter().chain(path.strip_prefix(folder).into_iter().flat_map(places)).collect();
    let names = |word: &str| {
        let is_glob_of = |glob: PathGlob| places.iter().any(|place| glob.is_match(place));
        // `*.py` alone is in settings for many reasons.
        let is_glob =
            || word.contains('*') && (name(file) == "package.json" || word.starts_with(char::is_alphanumeric));
        places.contains(word) || (is_glob() && word.parse().is_ok_and(is_glob_of))
    };
    if name(file) != "package.json" {
        return values(&without_pytest(file, text)).any(names);
    }
    let Ok(manifest) = serde_json::from_str::<Value>(text) else { return false };
    let mut paths = Vec::new();
    for value in OF_PACKAGE.iter().filter_map(|key| manifest.get(*key)) {
        add_texts(value, &mut paths);
    }
    paths.iter().any(|path| names(plain(path)))
}

/// Returns the names of a module and of the folders around it: their paths, and their names in Python.
fn places(path: &str) -> Vec<String> {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let roots = ["src/", "lib/"].iter().filter_map(|root| stem.strip_prefix(root));
    let mut found = vec![path.to_owned()];
    for stem in [stem].into_iter().chain(roots) {
        let folders = stem.match_indices('/').filter_map(|(at, _)| stem.get(..at));
        for place in folders.chain([stem]).filter(|place| !["src", "lib"].contains(place)) {
            found.extend([place.to_owned(), place.replace('/', ".")]);
        }
    }
    found
}

/// Adds the texts in a value, at any depth.
fn add_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(all) => all.iter().for_each(|value| add_texts(value, texts)),
        Value::Object(all) => all.values().for_each(|value| add_texts(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_settings_or_a_package_cover_may_be_product() {
        for (file, text, path, expected) in [
            ("pyproject.toml", "[project]\n[tool.setuptools.packages.find]\n", "server/core.py", true),
            ("pyproject.toml", "[project]\n", "server/core.py", true),
            ("pyproject.toml", "[project]\n", "src/pkg/core.py", true),
            ("pyproject.toml", "[project]\n", "checks/core.py", false),
            ("pyproject.toml", "[project]\n[tool.setuptools]\npackages = ['calc']\n", "server/core.py", false),
            ("pyproject.toml", "[project]\n[tool.setuptools]\npackages = ['server']\n", "server/core.py", true),
            ("pyproject.toml", "[tool.black]\n", "server/core.py", false),
            ("setup.py", "setup(packages=find_packages())\n", "server/core.py", true),
            ("setup.cfg", "[metadata]\n[options]\npackages =\n    calc\n    checks\n", "checks/core.py", true),
            ("setup.cfg", "[options]\npy_modules = one, checks\n", "checks.py", true),
            ("setup.cfg", "[options.entry_points]\npytest11 =\n    a = checks.core\n", "checks/core.py", true),
            ("config.yml", "plugin: checks.core\n", "checks/core.py", true),
            (".env", "PLUGIN=checks\n", "checks/core.py", true),
            ("config.yml", "checks: yes\n", "checks/core.py", false),
            ("package.json", r#"{"workspaces": ["packages/*"]}"#, "packages/a/index.js", true),
            ("package.json", r#"{"workspaces": {"packages": ["packages/**"]}}"#, "packages/a/index.js", true),
            ("package.json", r#"{"files": ["printer", "parser/"]}"#, "parser/index.js", true),
            ("package.json", r#"{"bin": {"a": "./bin/a.js"}}"#, "bin/a.js", true),
            ("package.json", r#"{"directories": {"bin": "bin"}}"#, "bin/a.js", true),
            ("package.json", r#"{"exports": {".": "./lib/main.js"}}"#, "parser/index.js", false),
            ("package.json", r#"{"scripts": {"a": "node parser"}}"#, "parser/index.js", false),
            ("pkg/package.json", r#"{"main": "a.js"}"#, "pkg/b.js", true),
            ("pkg/package.json", r#"{"main": "a.js", "private": true}"#, "pkg/b.js", false),
            ("pkg/package.json", r#"{"name": "pkg"}"#, "pkg/b.js", false),
            ("pnpm-workspace.yaml", "packages:\n  - packages/*\n", "packages/a/index.js", true),
            ("cli/__main__.py", "", "cli/core.py", true),
        ] {
            let files = [file, path, "server/__init__.py"].map(str::to_owned).into();
            let tree = Tree { files, texts: [(file.to_owned(), text.to_owned())].into() };
            assert_eq!(is_product(path, &tree), expected, "{file} {text} {path}");
        }
    }

    #[test]
    fn programs_and_files_that_a_service_finds_may_be_product() {
        for (path, text, expected) in [
            ("svc/main.py", "if __name__ == \"__main__\":\n    run()\n", true),
            ("svc/main.py", "#!/usr/bin/env python3\n", true),
            ("svc/main.py", "import argparse\n\nargparse.ArgumentParser().parse_args()\n", true),
            ("svc/main.py", "import argparse\n", false),
            ("svc/main.py", "import click\n", true),
            ("svc/main.py", "if __name__ == \"__main__\":\n    import doctest\n    doctest.testmod()\n", false),
            ("svc/main.py", "if __name__ == '__main__':\n    same(1, 1)\n    print('self test passed')\n", false),
            ("svc/main.py", "if __name__ == '__main__':\n    run()\n\n\ntest = 1\n", true),
            ("svc/main.py", "if __name__ == '__main__':  # the test runs it\n    send_latest()\n", true),
            ("svc/main.py", "def same(a, b):\n    return a == b\n", false),
            ("svc/main.js", "#!/usr/bin/env node\n", true),
            ("svc/main.js", "if (require.main === module) run();\n", true),
            ("svc/main.js", "if (require.main === module) {\n  run();\n}\nexports.test = 1;\n", true),
            ("svc/main.js", "if (require.main === module) { same(1, 1); console.log('self test passed'); }\n", false),
            ("svc/main.js", "if (require.main === module) {\n  selfTest();\n}\n", false),
            ("svc/main.js", "exports.same = (a, b) => a === b;\n", false),
        ] {
            assert_eq!(is_program(path, text), expected, "{path} {text}");
        }
        let tree = Tree { files: ["web/package.json".to_owned()].into(), ..Tree::default() };
        for (path, expected) in [
            ("api/names.js", true),
            ("netlify/functions/names.mjs", true),
            ("app/routes/a.ts", true),
            ("src/app/api/a.ts", true),
            ("web/src/pages/a.ts", true),
            ("qa/static/a.js", false),
            ("qa/src/api/a.js", false),
            ("api/names.py", false),
            ("qa/api.js", false),
        ] {
            assert_eq!(is_served(path, &tree), expected, "{path}");
        }
        assert_eq!(["svc/deep/main.py", "main.py"].map(dotted), ["deep.main", "main"]);
    }

    #[test]
    fn helpers_of_tests_are_known_by_their_paths_and_by_what_they_import() {
        for (path, text, expected) in [
            ("support/checks.py", "", true),
            ("packages/test-utils/index.js", "", true),
            ("supporting/checks.py", "", false),
            ("checks/core.py", "import unittest\n", true),
            ("checks/core.py", "from pytest import fixture\n", true),
            ("checks/core.py", "# import pytest\n", false),
            ("checks/core.py", "def assert_same(a, b):\n    pass\n", true),
            ("checks/core.js", "const assert = require('node:assert');\n", true),
            ("checks/core.js", "import { test } from \"vitest\";\n", true),
            ("checks/core.js", "exports.same = (a, b) => expect(a).toBe(b);\n", true),
            ("checks/core.js", "const a = 'assert';\n", false),
            ("checks/core.js", "exports.parse = s => s;\n", false),
        ] {
            assert_eq!(is_for_tests(path, text), expected, "{path} {text}");
        }
    }
}
