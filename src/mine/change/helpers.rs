//! Finds modules outside of the folders of tests that only tests import, such as `support/checks.py`: who changes what such a
//! module compares changes the tests.

use std::collections::{BTreeMap, BTreeSet};

use super::links::resolved;
use super::loaded::may_be_loaded;
use super::usage::only_of_tests;
use super::{Entry, tree};
use crate::mine::history::Commit;
use crate::mine::language::{Language, NODE, PYTHON};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles, has_test_name, split};

/// The maximum number of steps from a test to a module that it imports.
const MOST_STEPS: usize = 4;
/// The maximum number of modules.
const MOST_MODULES: usize = 100;
/// The endings that Node, its bundlers and TypeScript add to the path of a module.
const ENDINGS: [&str; 9] = ["", ".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".mts", ".cts"];

/// The modules that only tests import.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Helpers {
    /// Globs of modules that an agent has no reason to change, and of files that would be loaded in place of one.
    pub(super) protected: BTreeSet<String>,
    /// Modules that may be code: their folders hold code that the commit changes, they import code, or code may load them by a
    /// name.
    pub(super) unsure: Vec<String>,
}

/// Returns the modules of Python and Node that the changed tests and the helpers among the tests import, that the commit does
/// not change, and that no code imports.
///
/// # Errors
/// Returns git's message.
pub(super) async fn find(
    repository: &Repository,
    commit: &Commit,
    entries: &BTreeMap<String, Entry>,
    before: &BTreeMap<String, Entry>,
    roles: &Roles,
    own: &BTreeSet<String>,
) -> Result<Helpers, RepositoryError> {
    let is_changed = |path: &str| commit.files.iter().any(|file| file.path == path);
    let is_test = |path: &str| roles.of(path) == Role::Test || own.contains(path);
    let imports_modules = |path: &str| matches!(Language::of(path), Some(it) if *it == PYTHON || *it == NODE);
    let is_start = |path: &str| imports_modules(path) && is_test(path) && (is_changed(path) || !has_test_name(path));
    let files: BTreeSet<String> = entries.keys().cloned().collect();
    let is_module = |path: &String| {
        let kept = entries.get(path).zip(before.get(path)).is_some_and(|(new, old)| new.object == old.object);
        kept && roles.of(path) == Role::Code && !own.contains(path) && imports_modules(path)
    };
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut texts = tree(repository, entries, is_start).await?.texts;
    for _ in 0..MOST_STEPS {
        let imported = texts.iter().flat_map(|(path, text)| imports(path, text, &files));
        let new: BTreeSet<String> = imported.filter(|path| is_module(path) && !found.contains_key(path)).collect();
        if new.is_empty() || found.len() + new.len() > MOST_MODULES {
            break;
        }
        texts = tree(repository, entries, |path| new.contains(path)).await?.texts;
        found.extend(texts.clone());
    }
    let all: BTreeSet<String> = found.keys().cloned().collect();
    let alone = only_of_tests(repository, &commit.id, entries, roles, &all).await?;
    let loaded = may_be_loaded(repository, &commit.id, entries, roles, &alone).await?;
    let is_code = |path: &String| roles.of(path) == Role::Code && !own.contains(path);
    let patched: Vec<&str> =
        commit.files.iter().filter(|file| is_code(&file.path)).map(|file| file.path.as_str()).collect();
    let imports_code = |path: &String| {
        let text = found.get(path).map(String::as_str).unwrap_or_default();
        imports(path, text, &files).into_iter().any(|other| is_code(&other) && !alone.contains(&other))
    };
    let mut helpers = Helpers::default();
    for path in &alone {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_below = |other: &str| folder.is_empty() || other.starts_with(&format!("{folder}/"));
        let is_of_folder = ["__init__", "index"].contains(&split(name).0);
        // The package of the code.
        if is_of_folder && patched.iter().any(|other| is_below(other)) {
            continue;
        }
        if patched.iter().any(|other| is_near(path, other)) || imports_code(path) || loaded.contains(path) {
            helpers.unsure.push(path.clone());
        } else {
            helpers.protected.extend(places(path, &files));
        }
    }
    Ok(helpers)
}

/// Returns true if two files are in one folder, or one of them is below the folder of the other. All files are below the top.
fn is_near(path: &str, other: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let (one, two) = (folder(path), folder(other));
    one == two || (!one.is_empty() && !two.is_empty() && (one.starts_with(&two) || two.starts_with(&one)))
}

/// Returns globs of a module, and of what would be loaded in its place.
fn places(path: &str, files: &BTreeSet<String>) -> Vec<String> {
    let mut found = vec![path.to_owned()];
    if path.ends_with(".py") {
        // A module or a package takes the place of a folder that is no package.
        for (at, _) in path.match_indices('/') {
            let folder = path.get(..at).unwrap_or_default();
            let others = [format!("{folder}/__init__.py"), format!("{folder}.py")];
            found.extend(others.into_iter().filter(|other| !files.contains(other)));
        }
    } else if let Some((stem, _)) = path.rsplit_once('.') {
        let others = ENDINGS.iter().map(|ending| format!("{stem}{ending}"));
        found.extend(others.filter(|other| !files.contains(other)));
    }
    found
}

/// Returns the files that a module of Python or Node imports, as far as its lines show them.
fn imports(path: &str, text: &str, files: &BTreeSet<String>) -> BTreeSet<String> {
    match Language::of(path) {
        Some(language) if *language == PYTHON => of_python(path, text, files),
        Some(language) if *language == NODE => of_node(path, text, files),
        _ => BTreeSet::new(),
    }
}

fn of_python(path: &str, text: &str, files: &BTreeSet<String>) -> BTreeSet<String> {
    let around = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
    let folders: Vec<&str> = [""].into_iter().chain(around).collect();
    let mut found = BTreeSet::new();
    let mut add = |root: &str, module: &str| {
        let place = format!("{root}{module}");
        let both = [format!("{place}.py"), format!("{place}/__init__.py")];
        found.extend(both.into_iter().filter(|file| files.contains(file)));
    };
    for line in import_lines(text) {
        for module in modules(&line) {
            let plain = module.trim_start_matches('/');
            let level = module.len() - plain.len();
            if level > 0 {
                // `from .checks import same`: one dot is the folder of the module.
                if let Some(root) = folders.len().checked_sub(level).and_then(|at| folders.get(at)) {
                    add(root, plain);
                }
                continue;
            }
            let parts = plain.match_indices('/').filter_map(|(at, _)| plain.get(..at)).chain([plain]);
            for part in parts {
                for root in ["src/", "lib/"].iter().chain(&folders) {
                    add(root, part);
                }
            }
        }
    }
    found
}

/// Returns the lines of Python that import something, each with the names in its parentheses.
fn import_lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if is_open {
            if let Some(last) = found.last_mut() {
                last.push_str(line);
            }
        } else if line.starts_with("import ") || line.starts_with("from ") {
            found.push(line.to_owned());
        } else {
            continue;
        }
        is_open = found.last().is_some_and(|last| last.contains('(') && !last.contains(')'));
    }
    found
}

/// Returns the modules that a line of Python may import, as paths. Each dot before a relative one is a `/`.
fn modules(line: &str) -> Vec<String> {
    let names = |list: &str| -> Vec<String> {
        let plain = list.replace(['(', ')'], " ");
        plain.split(',').filter_map(|name| name.split_whitespace().next().map(|name| name.replace('.', "/"))).collect()
    };
    if let Some(list) = line.strip_prefix("import ") {
        return names(list);
    }
    let Some((module, list)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import")) else {
        return Vec::new();
    };
    let module = module.trim().replace('.', "/");
    let within = names(list).into_iter().map(|name| match module.ends_with('/') {
        true => format!("{module}{name}"),
        false => format!("{module}/{name}"),
    });
    let within: Vec<String> = within.collect();
    [vec![module], within].concat()
}

fn of_node(path: &str, text: &str, files: &BTreeSet<String>) -> BTreeSet<String> {
    let folder = path.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    let is_import = |line: &&str| ["import", "require", "from"].iter().any(|word| line.contains(word));
    let paths = text.lines().filter(is_import).flat_map(|line| line.split(['"', '\'', '`']));
    let relative = paths.filter(|path| path.starts_with("./") || path.starts_with("../"));
    let places = relative.filter_map(|path| resolved(&format!("{folder}/{path}"), &BTreeMap::new()));
    let file = |place: String| {
        // TypeScript names the compiled file.
        let stem = place.strip_suffix(".js").unwrap_or(&place).to_owned();
        let beside = ENDINGS.iter().flat_map(|ending| [format!("{place}{ending}"), format!("{stem}{ending}")]);
        let within = ENDINGS.iter().map(|ending| format!("{place}/index{ending}"));
        beside.chain(within).find(|file| files.contains(file))
    };
    places.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_near_code_in_its_folder_and_below_and_above_it() {
        for (path, other, expected) in [
            ("near.py", "calc.py", true),
            ("support/checks.py", "calc.py", false),
            ("support/checks.py", "src/calc.py", false),
            ("app/support/checks.py", "app/calc.py", true),
            ("app/checks.py", "app/core/calc.py", true),
            ("app/checks.py", "application/calc.py", false),
        ] {
            assert_eq!(is_near(path, other), expected, "{path} {other}");
        }
    }

    #[test]
    fn the_modules_that_tests_import_are_found() {
        let files = [
            "calc.py",
            "src/app/core.py",
            "support/__init__.py",
            "support/checks.py",
            "support/more.py",
            "support/checks.js",
            "support/deep/index.ts",
            "support/typed.ts",
            "tests/base.py",
            "tests/test_a.py",
        ];
        let files: BTreeSet<String> = files.map(str::to_owned).into();
        for (path, text, expected) in [
            ("tests/test_a.py", "import unittest, calc  # support.checks\n", &["calc.py"][..]),
            ("tests/test_a.py", "from app.core import (\n    one,\n    two,\n)\n", &["src/app/core.py"]),
            ("tests/test_a.py", "from support.checks import same\n", &["support/__init__.py", "support/checks.py"]),
            (
                "tests/test_a.py",
                "from support import checks as c, more\n",
                &["support/__init__.py", "support/checks.py", "support/more.py"],
            ),
            (
                "tests/test_a.py",
                "from .base import x\nfrom ..support.more import y\n",
                &["support/more.py", "tests/base.py"],
            ),
            ("support/checks.py", "from . import more\n", &["support/more.py"]),
            ("tests/a.js", "const c = require('../support/checks');\n", &["support/checks.js"]),
            ("tests/a.ts", "import {\n  x,\n} from '../support/typed.js';\n", &["support/typed.ts"]),
            ("tests/a.ts", "import deep from \"../support/deep\";\nopen('../calc.py');\n", &["support/deep/index.ts"]),
            ("tests/a.rb", "require '../calc'\n", &[]),
        ] {
            let found: Vec<String> = imports(path, text, &files).into_iter().collect();
            assert_eq!(found, expected, "{path} {text}");
        }
        assert_eq!(places("support/checks.py", &files), ["support/checks.py", "support.py"]);
        assert!(places("support/checks.js", &files).contains(&"support/checks".to_owned()));
    }
}
