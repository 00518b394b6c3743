//! pytest and unittest, in a virtual environment if the project or its tests need packages.

use serde_json::Value;

use super::{RESULTS_ALONE, Recipe, Runner, Step, TestFiles, Tree};
use crate::grader::test_run::Format;
use crate::text::shell_word;

mod reporter;

/// The names of groups and extras with the packages that tests need.
const GROUPS: [&str; 5] = ["tests", "test", "testing", "dev", "develop"];
/// Files with such packages.
const REQUIREMENTS: [&str; 11] = [
    "requirements/tests.txt",
    "requirements/test.txt",
    "requirements/testing.txt",
    "requirements-test.txt",
    "requirements-tests.txt",
    "test-requirements.txt",
    "tests/requirements.txt",
    "requirements/dev.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements.txt",
];

/// The files with settings of pytest.
const SETTINGS: [&str; 7] =
    ["pyproject.toml", "setup.cfg", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"];

const PIP: &str = r#""$HOME/.venv/bin/pip" install -q --disable-pip-version-check"#;

/// Returns the recipes for a repository with Python tests.
pub(super) fn recipes(tree: &Tree, parent: &Tree, tests: &TestFiles<'_>) -> Vec<Recipe> {
    let has_project = ["setup.py", "pyproject.toml", "setup.cfg"].iter().any(|file| tree.has(file));
    if !has_project && !tests.changed.iter().any(|path| path.ends_with(".py")) {
        return Vec::new();
    }
    let describes = |name: &str| tree.texts.iter().any(|(_, text)| text.contains(name));
    let uses_pytest = describes("pytest") || describes("py.test");
    let is_unittest = !uses_pytest && (describes("import unittest") || describes("from unittest"));
    let installs = is_installable(tree) && is_installable(parent);
    let is_sealed = !brings_plugins(tree) && !brings_plugins(parent);
    // The paths that the project is imported from without an installation. Programs that tests start get them, too.
    let folders: &[&str] = if tree.has_folder("src") { &["src", "."] } else { &["."] };
    let run = |program: &str, path: &[&str]| {
        let variable = if path.is_empty() { String::new() } else { format!("PYTHONPATH={} ", path.join(":")) };
        let (name, arguments) = match is_unittest {
            true => ("unittest", format!("discover -v{}{}", discovered(tree), pattern(tree))),
            // A module that cannot be imported before the fix must not keep the tests of the other modules from running.
            false => (
                "pytest",
                format!("-vv --color=no --continue-on-collection-errors -p no:cacheprovider{}", collected(tree)),
            ),
        };
        format!(
            "{variable}{program} -IBc {} {arguments} {RESULTS_ALONE}",
            shell_word(&reporter::program(name, path, is_sealed, tests.guarded))
        )
    };
    let recipe = |setup: Vec<Step>, run: String, key: String| Recipe {
        runner: if is_unittest { Runner::Unittest } else { Runner::Pytest },
        folder: String::new(),
        setup,
        run,
        format: Format::Junit,
        report: None,
        needs: vec!["python3".to_owned()],
        mounted: Vec::new(),
        keeps: Vec::new(),
        key,
    };
    if is_unittest && !installs {
        return vec![recipe(Vec::new(), run("python3", folders), "python".to_owned())];
    }
    let venv = Step::once(r#"python3 -m venv "$HOME/.venv""#);
    let wanted = packages(tree);
    // Versions that were pinned long ago often no longer run; then the newest ones are tried.
    let loose: Vec<String> = wanted.iter().map(|package| name_of(package).to_owned()).collect();
    let tool = (!is_unittest && !wanted.iter().any(|it| name_of(it) == "pytest")).then(|| "pytest".to_owned());
    let python = r#""$HOME/.venv/bin/python""#;
    let mut all = Vec::new();
    for (packages, is_installed) in [(&wanted, installs), (&loose, installs), (&loose, false)] {
        let words: Vec<String> = packages.iter().chain(&tool).map(|word| shell_word(word)).collect();
        let mut setup = vec![venv.clone()];
        if !words.is_empty() {
            setup.push(Step::once(format!("{PIP} {}", words.join(" "))));
        }
        if is_installed {
            setup.push(Step::again_with(format!("{PIP} -e ."), layout(parent)));
        }
        let path = if is_installed { &[] } else { folders };
        let made = recipe(setup, run(python, path), format!("python {words:?} {is_installed}"));
        if !all.contains(&made) {
            all.push(made);
        }
    }
    all
}

/// Returns everything that an installation for development depends on: how the project is described, and its folders.
fn layout(tree: &Tree) -> String {
    let described: Vec<Option<&str>> =
        ["setup.py", "pyproject.toml", "setup.cfg", "MANIFEST.in"].iter().map(|file| tree.text(file)).collect();
    let top = |path: &String| {
        let mut parts = path.split('/');
        let (first, second) = (parts.next()?, parts.next());
        let third = parts.next().filter(|_| first == "src");
        Some(if third.is_some() { format!("{first}/{}", second.unwrap_or_default()) } else { first.to_owned() })
    };
    let folders: std::collections::BTreeSet<String> = tree.files.iter().filter_map(top).collect();
    format!("{described:?} {folders:?}")
}

/// Returns true if pytest or Python itself may load modules of a commit before its tests: the commit describes plug-ins of
/// pytest (`pytest11`), its settings name one (`-p NAME`), or it has a `sitecustomize` or `usercustomize`.
fn brings_plugins(tree: &Tree) -> bool {
    let is_site = |path: &String| {
        path.split('/').any(|part| part.starts_with("sitecustomize") || part.starts_with("usercustomize"))
    };
    tree.files.iter().any(is_site)
        || tree.texts.values().any(|text| text.contains("pytest11"))
        || !python_plugins(tree).is_empty()
}

/// Returns the plug-ins that settings of pytest load by its option `-p`, unlike `-p no:NAME`, which unloads one.
pub(in crate::mine) fn python_plugins(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for text in SETTINGS.iter().filter_map(|file| tree.text(file)) {
        let words = text.split(|c: char| c.is_whitespace() || "\"'=,[]".contains(c));
        let mut words = words.filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let name = match word.strip_prefix("-p") {
                Some("") => words.next(),
                rest => rest,
            };
            found.extend(name.filter(|name| !name.starts_with("no:")).map(str::to_owned));
        }
    }
    found
}

/// Returns true if a file at the top may have settings of pytest.
pub(in crate::mine) fn is_settings_of_pytest(path: &str) -> bool {
    SETTINGS.contains(&path)
}

/// Returns the text of a file without its sections of pytest. The modules that these name are loaded by pytest, not by code.
pub(in crate::mine) fn without_pytest(path: &str, text: &str) -> String {
    if !SETTINGS.contains(&path.rsplit('/').next().unwrap_or(path)) {
        return text.to_owned();
    }
    let mut is_of_pytest = false;
    let is_kept = |line: &&str| {
        if line.starts_with('[') {
            is_of_pytest = ["[pytest", "[tool:pytest]", "[tool.pytest"].iter().any(|start| line.starts_with(start));
        }
        !is_of_pytest
    };
    text.split_inclusive('\n').filter(is_kept).collect()
}

/// Returns the folders that settings of pytest put on Python's path (`pythonpath`), as far as their lines show them. Words that
/// are no folders may be among them.
pub(in crate::mine) fn python_paths(tree: &Tree) -> Vec<String> {
    folders(tree, "pythonpath")
}

/// Returns the folders from which `pytester` copies examples, each with a slash at its end: that of pytest's settings, or the
/// top, which is empty.
pub(in crate::mine) fn example_folders(tree: &Tree) -> Vec<String> {
    let named = folders(tree, "pytester_example_dir").into_iter().filter(|folder| tree.has_folder(folder));
    let found: Vec<String> = named.map(|folder| format!("{folder}/")).collect();
    if found.is_empty() { vec![String::new()] } else { found }
}

/// Returns the words in the value of a key in settings of pytest.
fn folders(tree: &Tree, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    for text in SETTINGS.iter().filter_map(|file| tree.text(file)) {
        let mut is_open = false;
        for line in text.lines() {
            let value = line.trim_start().strip_prefix(key).map(str::trim_start);
            let value = value.and_then(|rest| rest.strip_prefix(['=', ':']));
            // A list may go on in the next lines, up to another key or section.
            is_open = value.is_some() || (is_open && !line.contains('=') && !line.starts_with('['));
            if is_open {
                let words = value.unwrap_or(line).split(|c: char| c.is_whitespace() || "\"'[],".contains(c));
                let words = words.map(|word| word.trim_start_matches("./").trim_end_matches('/'));
                found.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
            }
        }
    }
    found
}

fn is_installable(tree: &Tree) -> bool {
    let builds = |text: &str| ["[project]", "[build-system]", "[tool.poetry]"].iter().any(|it| text.contains(it));
    tree.has("setup.py") || tree.text("pyproject.toml").is_some_and(builds)
}

/// Returns the arguments with which unittest finds the tests.
fn discovered(tree: &Tree) -> &'static str {
    let in_folder = |folder: &str| {
        let is_package = tree.has(&format!("{folder}/__init__.py"));
        tree.has_folder(folder) && !is_package
    };
    match (in_folder("tests"), in_folder("test")) {
        (true, _) => " -s tests",
        (false, true) => " -s test",
        _ => "",
    }
}

/// Returns the arguments for test files that pytest does not find by their names.
fn collected(tree: &Tree) -> &'static str {
    if tree.has_folder("tests") {
        ""
    } else if tree.has("tests.py") {
        " tests.py"
    } else if tree.has("test.py") {
        " test.py"
    } else {
        ""
    }
}

/// Returns the argument that restricts unittest's discovery to protected test files, if the repository's test files have
/// such names. Without it, unittest imports every `test*.py`.
fn pattern(tree: &Tree) -> &'static str {
    let modules = tree.files.iter().filter_map(|path| path.rsplit('/').next()).filter(|name| name.ends_with(".py"));
    let mut tests = modules.filter(|name| name.starts_with("test"));
    if tests.all(|name| name.starts_with("test_")) { " -p 'test_*.py'" } else { "" }
}

/// Returns the packages that the tests need, as the project states them.
fn packages(tree: &Tree) -> Vec<String> {
    let project: Option<Value> = tree.text("pyproject.toml").and_then(|text| toml::from_str(text).ok());
    let mut found = Vec::new();
    if let Some(project) = &project {
        let named = |pointer: &str| -> Option<Vec<String>> {
            let groups = project.pointer(pointer)?;
            let name = GROUPS.iter().find(|name| groups.get(**name).is_some())?;
            Some(group(groups, name, 0))
        };
        found = named("/dependency-groups")
            .or_else(|| named("/project/optional-dependencies"))
            .or_else(|| poetry(project))
            .unwrap_or_default();
    }
    if found.is_empty() {
        let file = REQUIREMENTS.iter().find_map(|file| tree.text(file));
        found = file.map(requirements).unwrap_or_default();
    }
    if found.is_empty() {
        found = tree.text("tox.ini").map(tox).unwrap_or_default();
    }
    if found.is_empty() {
        found = tree.text("setup.py").map(tests_require).unwrap_or_default();
    }
    // Options of plugins make pytest refuse to start if the plugin is missing.
    let names = |option: &str| SETTINGS.iter().filter_map(|file| tree.text(file)).any(|text| text.contains(option));
    for (option, plugin) in
        [("--cov", "pytest-cov"), ("asyncio_mode", "pytest-asyncio"), ("--timeout", "pytest-timeout")]
    {
        if names(option) && !found.iter().any(|package| name_of(package) == plugin) {
            found.push(plugin.to_owned());
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the packages of a group, with those of the groups that it includes.
fn group(groups: &Value, name: &str, depth: usize) -> Vec<String> {
    let entries = groups.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let of_entry = |entry: &Value| match (entry.as_str(), entry.get("include-group").and_then(Value::as_str)) {
        (Some(package), _) => vec![package.to_owned()],
        (None, Some(other)) if depth < 5 => group(groups, other, depth + 1),
        _ => Vec::new(),
    };
    entries.iter().flat_map(of_entry).filter(|package| is_package(package)).collect()
}

fn poetry(project: &Value) -> Option<Vec<String>> {
    let places = [
        "/tool/poetry/group/test/dependencies",
        "/tool/poetry/group/dev/dependencies",
        "/tool/poetry/dev-dependencies",
    ];
    let packages = places.iter().find_map(|place| project.pointer(place)?.as_object())?;
    Some(packages.keys().filter(|name| *name != "python").cloned().collect())
}

/// Returns the packages of a requirements file, without its options and other files.
fn requirements(text: &str) -> Vec<String> {
    let lines =
        text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim().trim_end_matches('\\').trim());
    lines
        .filter(|line| is_package(line))
        .map(|line| line.split(" --").next().unwrap_or(line).trim().to_owned())
        .collect()
}

/// Returns true if a line names a package of a registry.
fn is_package(line: &str) -> bool {
    let name = name_of(line);
    let rest = line[name.len()..].trim_start();
    let is_requirement = rest.is_empty()
        || rest.starts_with("--")
        || rest.starts_with(['[', '(', '=', '<', '>', '~', '!', ';', '#', ',', '@']);
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && is_requirement
        && !line.contains("://")
        && !line.starts_with("tox")
}

/// Returns the packages under `deps` in a tox.ini.
fn tox(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if line.starts_with('[') {
            is_open = false;
        }
        let inner = match line.strip_prefix("deps") {
            Some(rest) if rest.trim_start().starts_with('=') => {
                is_open = true;
                rest.trim_start().trim_start_matches('=')
            }
            _ if is_open && line.starts_with([' ', '\t']) => line,
            _ => {
                is_open = is_open && line.trim().is_empty();
                continue;
            }
        };
        let package = inner.trim();
        if is_package(package) && !package.contains(['{', ':']) {
            found.push(package.to_owned());
        }
    }
    found
}

/// Returns the packages under `tests_require` in a setup.py: a list, or the name of one.
fn tests_require(text: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once("tests_require") else { return Vec::new() };
    let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else { return Vec::new() };
    let name: String = value.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let of_line = |line: &str| Some(line.strip_prefix(&name)?.trim_start().strip_prefix('=')?.trim_start().len());
    let list = match name.as_str() {
        "" => Some(value),
        _ => text
            .split_inclusive('\n')
            .scan(0, |at, line| Some((std::mem::replace(at, *at + line.len()), line)))
            .find_map(|(at, line)| text.get(at + line.len() - of_line(line)?..)),
    };
    let Some((list, _)) = list.and_then(|list| list.strip_prefix(['[', '('])?.split_once([']', ')'])) else {
        return Vec::new();
    };
    let words = list.split(['"', '\'']).skip(1).step_by(2);
    words.filter(|word| is_package(word)).map(str::to_owned).collect()
}

/// Returns the name in `pytest[all]>=7; python_version > "3"`.
fn name_of(package: &str) -> &str {
    let end = package.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).unwrap_or(package.len());
    &package[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: TestFiles<'static> = TestFiles { changed: &["tests/test_a.py"], guarded: &[] };

    fn tree(file: &str, text: &str) -> Tree {
        Tree { files: [file.to_owned()].into(), texts: [(file.to_owned(), text.to_owned())].into() }
    }

    #[test]
    fn packages_are_read_from_each_kind_of_file() {
        for (file, text, found) in [
            (
                "pyproject.toml",
                "[dependency-groups]\ntests = ['freezegun', {include-group = 'base'}]\nbase = ['pytest>=7']\n",
                vec!["freezegun", "pytest>=7"],
            ),
            ("pyproject.toml", "[project.optional-dependencies]\ntest = ['attrs']\n", vec!["attrs"]),
            ("pyproject.toml", "[tool.poetry.dev-dependencies]\npython = '3'\nmock = '1'\n", vec!["mock"]),
            (
                "requirements/tests.txt",
                "# made by x\n--hash=sha256:a\n-r other.txt\npytest==6.0 \\\n    --hash=sha256:b\ngit+https://x/y\n",
                vec!["pytest==6.0"],
            ),
            (
                "tox.ini",
                "[testenv]\ndeps =\n    pytest\n    py37: mock\n    -r x.txt\ncommands = pytest\n",
                vec!["pytest"],
            ),
            ("setup.py", "setup(tests_require=['pytest', \"six>1\"])", vec!["pytest", "six>1"]),
            (
                "setup.py",
                "setup(\n  tests_require = needed,\n  classifiers=['A :: B'])\nneeded = ['six']\n",
                vec!["six"],
            ),
            ("setup.py", "needed = ['six>1']\nsetup(tests_require=needed, classifiers=['Intended'])\n", vec!["six>1"]),
            ("setup.py", "needed = []\nsetup(tests_require=needed, classifiers=['Intended'])\n", vec![]),
            ("setup.py", "setup(tests_require=['Development Status :: 5', 'a b'])", vec![]),
            ("setup.cfg", "[tool:pytest]\naddopts = --cov\n", vec!["pytest-cov"]),
        ] {
            assert_eq!(packages(&tree(file, text)), found, "{file}: {text}");
        }
        assert_eq!(name_of("pytest[all]>=7; python_version > '3'"), "pytest");
    }

    #[test]
    fn a_commit_that_has_plugins_is_known() {
        for (file, text, has) in [
            ("pyproject.toml", "[project.entry-points.pytest11]\nx = 'x.plugin'\n", true),
            ("setup.py", "setup(entry_points={'pytest11': ['x = x.plugin']})", true),
            ("pytest.ini", "[pytest]\naddopts = -q -p tests.helper\n", true),
            (".pytest.ini", "[pytest]\naddopts = -phelper\n", true),
            ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = ['-p', 'helper']\n", true),
            ("src/sitecustomize.py", "", true),
            ("usercustomize/__init__.py", "", true),
            ("pytest.ini", "[pytest]\naddopts = -p no:warnings -pno:doctest --pdb\n", false),
            ("setup.py", "setup(name='a-p')", false),
        ] {
            assert_eq!(brings_plugins(&tree(file, text)), has, "{file}: {text}");
        }
    }

    #[test]
    fn plugins_and_sections_of_pytest_are_read_from_settings() {
        let text = "[project]\nname = 'a'\n[tool.pytest.ini_options]\naddopts = '-q -p no:b -p support.plugin -pc'\n\
                    pythonpath = [\n  'lib',\n]\n[tool.x]\ny = 1\n";
        let tree = tree("pyproject.toml", text);
        assert_eq!(python_plugins(&tree), ["support.plugin", "c"]);
        assert_eq!(without_pytest("pyproject.toml", text), "[project]\nname = 'a'\n[tool.x]\ny = 1\n");
        assert_eq!(without_pytest("sub/tox.ini", "[pytest]\naddopts = a\n[testenv]\n"), "[testenv]\n");
        assert_eq!(without_pytest("a.py", "[pytest]\n"), "[pytest]\n");
    }

    #[test]
    fn plugins_of_the_workspace_are_refused_unless_the_commit_has_some() {
        let run = |text: &str| {
            let mut tree = tree("pytest.ini", text);
            tree.files.insert("tests/test_a.py".to_owned());
            recipes(&tree, &tree, &TESTS)[0].run.clone()
        };
        assert!(run("[pytest]\n").contains("if found and True:"));
        assert!(run("[pytest]\naddopts = -p helper\n").contains("if found and False:"));
    }

    #[test]
    fn a_pinned_version_is_tried_before_the_newest_one() {
        let mut tree = tree("tests/requirements.txt", "pytest==5.0\n");
        tree.files.extend(["setup.py".to_owned()]);
        tree.texts.insert("setup.py".to_owned(), "setup()".to_owned());
        let found = recipes(&tree, &tree, &TESTS);
        let lines: Vec<&str> = found.iter().map(|recipe| recipe.setup[1].line.as_str()).collect();
        assert!(lines[0].ends_with(" pytest==5.0") && lines[1].ends_with(" pytest"), "{lines:?}");
        assert!(found[2].run.starts_with("PYTHONPATH=. \"$HOME/.venv/bin/python\" -IBc "), "{}", found[2].run);
    }
}
