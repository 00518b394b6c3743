//! The modules that would take the place of an installed package, or of a module of Python's own, that tests import. Pure.

use std::collections::BTreeSet;

use crate::mine::change::{Change, python_imports, python_text};
use crate::mine::runner;

/// The endings of files that Python imports.
const MODULES: [&str; 5] = [".py", ".pyi", ".pyx", ".pyd", ".so"];

/// The maximum number of folders that modules are looked for in.
const MAX_ROOT_FOLDERS: usize = 30;

/// Returns the paths of modules in the folders that Python imports from, for each name that the modules of tests import and
/// no module of the repository has, other than the protected ones. A folder of data is no package.
pub(super) fn installed(change: &Change) -> Vec<String> {
    let Change { before, after, python_texts, protected, .. } = change;
    // A module of the agent may also take the place of a protected one, from a folder that comes earlier on the path.
    let is_module = |path: &&String| MODULES.iter().any(|end| path.ends_with(end)) && !protected.contains(path);
    let modules = before.files.iter().chain(&after.files).filter(is_module);
    let parts = modules.flat_map(|path| path.split('/'));
    let own: BTreeSet<&str> = parts.map(|part| part.split_once('.').map_or(part, |(stem, _)| stem)).collect();
    let mut names: BTreeSet<String> = python_texts.iter().flat_map(|(_, text)| imported(text)).collect();
    let loads = python_texts.iter().flat_map(|(path, text)| python_text::loads(path, text));
    let plugins = loads.filter(|load| load.is_plugin).flat_map(|load| load.modules);
    let tops = plugins.filter_map(|name| name.split('/').next().map(str::to_owned));
    names.extend(tops.filter(|name| !name.is_empty()));
    let names: Vec<String> = names.into_iter().filter(|name| !own.contains(name.as_str())).collect();
    let is_package = |place: &str| [before, after].iter().any(|tree| tree.has(&format!("{place}/__init__.py")));
    let places = roots(change).into_iter().flat_map(|root| names.iter().map(move |name| format!("{root}{name}")));
    places.filter(|place| !is_package(place)).map(|place| format!("{place}.py")).collect()
}

/// Returns the names of the packages and modules at the top of Python's path that a text imports.
fn imported(text: &str) -> BTreeSet<String> {
    let by_name = |call: &str, part: &str| {
        let rest = part.split_once(call)?.1.trim_start().strip_prefix(['"', '\''])?;
        let name = rest.split(['"', '\'']).next().unwrap_or_default();
        Some(name.split('.').next().unwrap_or_default().to_owned())
    };
    let parts = || text.lines().flat_map(|line| line.split(';'));
    let mut found = python_imports::packages(text);
    for call in ["importorskip(", "import_module("] {
        found.extend(parts().filter_map(|part| by_name(call, part)));
    }
    found.retain(|name| !name.is_empty() && is_name(name));
    found
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the folders on Python's path when the tests run, each empty or with a slash at its end: the top, `src`, those of
/// pytest's settings and of lines about `sys.path`, and those that pytest adds for the modules of tests.
fn roots(change: &Change) -> Vec<String> {
    let Change { before, after, python_texts, changed_tests, .. } = change;
    let is_folder = |folder: &str| before.has_folder(folder) || after.has_folder(folder);
    let is_package = |folder: &str| {
        let file = format!("{folder}/__init__.py");
        before.has(&file) || after.has(&file)
    };
    let mut named = vec!["src".to_owned()];
    named.extend([before, after].into_iter().flat_map(runner::python_paths));
    if let Some(package) = &change.package {
        let inside = |folder: String| format!("{}/{folder}", package.folder);
        named.extend([package.folder.clone(), inside("src".to_owned())]);
        let paths = [&package.before, &package.after].into_iter().flat_map(runner::python_paths);
        named.extend(paths.filter(|folder| folder != ".").map(inside));
    }
    named.extend(python_texts.iter().flat_map(|(path, text)| python_text::search_paths(path, text, is_folder)));
    // pytest adds the first folder above a module that is no package.
    let base = |path: &String| {
        let mut folders = path.match_indices('/').rev().filter_map(|(at, _)| path.get(..at));
        folders.find(|folder| !is_package(folder)).unwrap_or_default().to_owned()
    };
    let modules = changed_tests.iter().filter(|path| path.ends_with(".py")).chain(python_texts.iter().map(|it| &it.0));
    let mut found = vec![String::new()];
    for folder in named.into_iter().filter(|folder| is_folder(folder)).chain(modules.map(base)) {
        let root = if folder.is_empty() { folder } else { format!("{folder}/") };
        if !found.contains(&root) {
            found.push(root);
        }
    }
    found.truncate(MAX_ROOT_FOLDERS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mine::runner::Tree;

    #[test]
    fn the_folders_on_the_path_of_python_are_found() {
        for (settings, text) in [
            ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = [\"python\", './deep/lib/']\n"),
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]\npythonpath = [\n  \"python\",\n  \"deep/lib\",\n]\nx = ['docs']\n",
            ),
            ("pytest.ini", "[pytest]\npythonpath = python deep/lib\naddopts = docs\n"),
            ("setup.cfg", "[tool:pytest]\npythonpath =\n    python\n    deep/lib\n\n[other]\ndocs\n"),
        ] {
            let files =
                ["python/calc.py", "deep/lib/a.py", "docs/conf.py", "near/pkg/__init__.py", "near/pkg/a_test.py"];
            let files = files.iter().chain([&settings]).map(|path| (*path).to_owned()).collect();
            let before = Tree { files, texts: [(settings.to_owned(), text.to_owned())].into() };
            let changed_tests = vec!["near/pkg/a_test.py".to_owned()];
            let line = "import sys\nsys.path.insert(0, os.path.join(here, '../docs'))\n";
            let python_texts = vec![("near/pkg/a_test.py".to_owned(), line.to_owned())];
            let change = Change { before: before.clone(), changed_tests: changed_tests.clone(), ..Change::default() };
            assert_eq!(roots(&change), ["", "python/", "deep/lib/", "near/"], "{settings}: {text}");
            let change = Change { before, changed_tests, python_texts, ..Change::default() };
            assert_eq!(roots(&change), ["", "python/", "deep/lib/", "docs/", "near/"], "{settings}: {text}");
        }
    }

    #[test]
    fn a_folder_of_data_is_not_the_package_of_its_name() {
        let files = ["hamcrest/notes.txt", "pkg/__init__.py", "tests/a_test.py"].map(str::to_owned).into();
        let before = Tree { files, texts: std::collections::BTreeMap::new() };
        let python_texts = vec![("tests/a_test.py".to_owned(), "import hamcrest, pkg\n".to_owned())];
        let change = Change { before, python_texts, ..Change::default() };
        let found = installed(&change);
        assert!(
            found.contains(&"hamcrest.py".to_owned()) && !found.iter().any(|path| path.contains("pkg")),
            "{found:?}"
        );
        let globs = crate::mine::protection::shadows(&found, &[]);
        let packages = "hamcrest/**/{__init__,__init__.*,*}.{py,pyc,pyd,so}";
        let expected = [packages, "hamcrest.{py,pyc,pyd,so,*.pyd,*.so}"];
        assert!(expected.iter().all(|glob| globs.contains(&(*glob).to_owned())), "{globs:?}");
    }

    #[test]
    fn a_protected_module_can_be_replaced_from_an_earlier_folder() {
        let files = ["src/calc.py", "support/checks.py", "tests/a_test.py"].map(str::to_owned).into();
        let before = Tree { files, texts: std::collections::BTreeMap::new() };
        let text =
            "import sys; from checks import same\nsys.path.append('../support')\npytest_plugins = 'deal.fixtures'\n";
        let python_texts = vec![("tests/a_test.py".to_owned(), text.to_owned())];
        let of = |protected: &[&str]| {
            let protected = protected.iter().map(|path| (*path).to_owned()).collect();
            installed(&Change {
                before: before.clone(),
                protected,
                python_texts: python_texts.clone(),
                ..Change::default()
            })
        };
        let (found, of_code) = (of(&["support/checks.py"]), of(&[]));
        for path in ["checks.py", "src/checks.py", "deal.py", "sys.py"] {
            assert!(found.contains(&path.to_owned()), "{path}: {found:?}");
        }
        assert!(!of_code.contains(&"checks.py".to_owned()), "{of_code:?}");
    }

    #[test]
    fn the_packages_that_a_text_imports_are_found() {
        for (text, names) in [
            ("import os.path as p, json", &["json", "os"][..]),
            ("    from hamcrest.core import (", &["hamcrest"]),
            ("try: from hamcrest \\\n    import core", &["hamcrest"]),
            ("from .x import y", &[]),
            ("np = pytest.importorskip(\"numpy.linalg\")", &["numpy"]),
            ("m = importlib.import_module('deal')", &["deal"]),
            ("important = 1", &[]),
        ] {
            let found: Vec<String> = imported(text).into_iter().collect();
            assert_eq!(found, names, "{text}");
        }
    }
}
