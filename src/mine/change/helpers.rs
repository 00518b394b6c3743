//! Finds modules that only tests import although they are outside of the folders of tests, such as `support/checks.py`.
//! An agent that changes what such a module compares changes the tests.

use std::collections::{BTreeMap, BTreeSet};

use super::loaded::may_be_loaded;
use super::node_names::{ENDINGS, Names};
use super::node_text::{self, Loads};
use super::product::{is_for_tests, may_be_product};
use super::python_imports;
use super::python_text::{self, Load, Shown};
use super::test_data::holders;
use super::usage::{Usage, only_of_tests};
use super::{Entry, MOST_WORDS, tree};
use crate::mine::history::Commit;
use crate::mine::language::{Language, NODE, PYTHON};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles, has_test_name, split};
use crate::mine::runner;

/// The maximum number of steps from a test to a module that it imports.
const MOST_STEPS: usize = 4;
/// The maximum number of modules.
const MOST_MODULES: usize = 100;

/// The modules that only tests import.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Helpers {
    /// Globs of modules that an agent has no reason to change, and of files that would be loaded in place of one.
    pub(super) protected: BTreeSet<String>,
    /// Modules that may be code: their folders hold code that the commit changes, they import code, code may load them by a
    /// name, or settings or packages around them show that they may be a part of the product.
    pub(super) unsure: Vec<String>,
    /// Tests, and modules that only they import, that load modules by names which only a run shows.
    pub(super) computed: Vec<String>,
    /// True if tests load more modules than were looked at.
    pub(super) has_more: bool,
}

/// Returns the modules of Python and Node that the changed tests, the helpers among the tests and `conftest.py` import, that
/// the commit does not change, and that no code imports. The plug-ins of the repository that pytest loads are among them, and
/// so are modules that aliases of Node's runners name.
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
    // pytest loads each `conftest.py` above a test, whichever tests the commit changes.
    let is_conftest = |path: &str| path.rsplit('/').next() == Some("conftest.py");
    let is_start = |path: &str| {
        let is_read = is_changed(path) || !has_test_name(path) || is_conftest(path);
        imports_modules(path) && is_test(path) && is_read
    };
    let files: BTreeSet<String> = entries.keys().cloned().collect();
    let is_kept =
        |path: &String| entries.get(path).zip(before.get(path)).is_some_and(|(new, old)| new.object == old.object);
    let is_module =
        |path: &String| is_kept(path) && roles.of(path) == Role::Code && !own.contains(path) && imports_modules(path);
    let settings = [
        tree(repository, entries, runner::is_settings_of_pytest).await?,
        tree(repository, before, runner::is_settings_of_pytest).await?,
    ];
    let is_folder = |folder: &str| settings.iter().any(|tree| tree.has_folder(folder));
    let named = settings.iter().flat_map(runner::python_paths).filter(|folder| is_folder(folder));
    let mut roots: Vec<String> = named.map(|folder| format!("{folder}/")).collect();
    let examples: Vec<String> = settings.iter().flat_map(runner::example_folders).collect();
    let plugins = settings.iter().flat_map(runner::python_plugins);
    let plugins: Vec<String> = plugins.filter_map(|name| python_text::module(&name)).collect();
    let names = Names::of(&tree(repository, entries, runner::has_names_of_node).await?);
    let mut texts = tree(repository, entries, is_start).await?.texts;
    let mut read = texts.clone();
    let has_node = texts.keys().any(|path| is_node(path));
    let targets: Vec<&String> = names.targets.iter().filter(|_| has_node).collect();
    let mut has_more = false;
    for _ in 0..MOST_STEPS {
        for (path, text) in texts.iter().filter(|(path, _)| is_python(path)) {
            roots.extend(python_text::search_paths(path, text, is_folder).iter().map(|folder| format!("{folder}/")));
        }
        roots.sort();
        roots.dedup();
        let imported = texts.iter().flat_map(|(path, text)| imports(path, text, &names, &roots));
        let imported = imported.chain(located("", &plugins, &files, &roots)).chain(targets.iter().copied().cloned());
        let copied = texts.iter().filter(|(path, _)| is_python(path) && is_test(path));
        let imported = imported.chain(copied.flat_map(|(_, text)| python_text::examples(text, &examples, &files)));
        // An unchanged test may be the base of a changed one.
        let is_read = |path: &String| is_module(path) || (is_test(path) && imports_modules(path));
        let new: BTreeSet<String> = imported.filter(|path| is_read(path) && !read.contains_key(path)).collect();
        let modules = read.keys().chain(&new).filter(|path| is_module(path));
        if new.is_empty() {
            break;
        }
        if modules.count() > MOST_MODULES {
            has_more = true;
            break;
        }
        texts = tree(repository, entries, |path| new.contains(path)).await?.texts;
        read.extend(texts.clone());
    }
    let all: BTreeSet<String> = read.keys().filter(|path| is_module(path)).cloned().collect();
    let Usage { mut alone, mut listed } = only_of_tests(repository, &commit.id, entries, roles, &all).await?;
    let of_node: BTreeMap<&String, &String> =
        read.iter().filter(|(path, _)| is_node(path) && (alone.contains(*path) || listed.contains(*path))).collect();
    let used = used_by_name(repository, &commit.id, entries, roles, &names, &of_node).await?;
    alone.retain(|path| !used.contains(path));
    listed.retain(|path| !used.contains(path));
    let loaded = may_be_loaded(repository, &commit.id, entries, roles, &alone).await?;
    let with_texts: BTreeMap<&String, &str> =
        alone.iter().map(|path| (path, read.get(path).map(String::as_str).unwrap_or_default())).collect();
    let mut product = may_be_product(repository, &commit.id, entries, roles, &with_texts).await?;
    let text_of = |path: &String| with_texts.get(path).copied().unwrap_or_default();
    // Tests also load a module of the product fresh.
    let of_node =
        read.iter().filter(|(path, _)| is_node(path)).map(|(path, text)| node_text::loads(path, text, &names));
    let (special, plain): (Vec<_>, Vec<_>) = of_node.map(|loads| (loads.special, loads.modules)).unzip();
    let plain: BTreeSet<String> = plain.into_iter().flatten().chain(targets.iter().copied().cloned()).collect();
    let special = special.into_iter().flatten().filter(|path| alone.contains(path) && !plain.contains(path));
    product.extend(special.filter(|path| !is_for_tests(path, text_of(path))));
    // A program may be one of the product, and so may be what a module of the product imports.
    let of_python = read.iter().filter(|(path, _)| is_python(path));
    let mut next: BTreeSet<String> = of_python.flat_map(|(path, text)| run(path, text, &names.files, &roots)).collect();
    next.extend(product.iter().flat_map(|path| imports(path, text_of(path), &names, &roots)));
    loop {
        next.retain(|path| alone.contains(path) && !product.contains(path) && !is_for_tests(path, text_of(path)));
        if next.is_empty() {
            break;
        }
        product.extend(next.iter().cloned());
        next = next.iter().flat_map(|path| imports(path, text_of(path), &names, &roots)).collect();
    }
    let is_code = |path: &String| roles.of(path) == Role::Code && !own.contains(path);
    let patched: Vec<&str> =
        commit.files.iter().filter(|file| is_code(&file.path)).map(|file| file.path.as_str()).collect();
    let imports_code = |path: &String| {
        let text = read.get(path).map(String::as_str).unwrap_or_default();
        imports(path, text, &names, &roots).into_iter().any(|other| is_code(&other) && !alone.contains(&other))
    };
    let loads: Vec<(&String, Load)> = read
        .iter()
        .filter(|(path, _)| is_python(path) && (is_test(path) || alone.contains(*path)))
        .flat_map(|(path, text)| python_text::loads(path, text).into_iter().map(move |load| (path, load)))
        .collect();
    // A plug-in imports the code that it makes ready for the tests.
    let mut of_pytest = located("", &plugins, &files, &roots);
    let named = loads.iter().filter(|(_, load)| load.is_plugin);
    of_pytest.extend(named.flat_map(|(path, load)| located(path, &load.modules, &files, &roots)));
    let copies = |folders: &[String]| -> BTreeSet<String> {
        let tests = read.iter().filter(|(path, _)| is_python(path) && is_test(path));
        tests.flat_map(|(_, text)| python_text::examples(text, folders, &files)).collect()
    };
    let named: Vec<String> = examples.iter().filter(|folder| !folder.is_empty()).cloned().collect();
    of_pytest.extend(copies(&named));
    let is_computed = |path: &str, load: &Load| match load.shown {
        Shown::All => false,
        Shown::Perhaps => of_load(path, load, &files, &roots).is_empty(),
        Shown::Part => true,
    };
    let mut computed: BTreeSet<String> = BTreeSet::new();
    computed.extend(loads.iter().filter(|(path, load)| is_computed(path, load)).map(|(path, _)| (*path).clone()));
    let is_computed = |(path, text): &(&String, &String)| {
        let is_hidden = match is_node(path) {
            true => node_text::loads(path, text, &names).is_computed,
            false => is_python(path) && python_text::has_computed_path(path, text, is_folder),
        };
        is_hidden && (is_test(path) || alone.contains(*path))
    };
    computed.extend(read.iter().filter(is_computed).map(|(path, _)| path.clone()));
    let mut helpers = Helpers { computed: computed.into_iter().collect(), has_more, ..Helpers::default() };
    for path in &alone {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_below = |other: &str| folder.is_empty() || other.starts_with(&format!("{folder}/"));
        let is_of_folder = ["__init__", "index"].contains(&split(name).0);
        // The package of the code.
        if is_of_folder && patched.iter().any(|other| is_below(other)) {
            continue;
        }
        let may_be_code = || imports_code(path) || loaded.contains(path);
        let is_doubtful = product.contains(path) || patched.iter().any(|other| is_near(path, other));
        if is_doubtful || (!of_pytest.contains(path) && may_be_code()) {
            helpers.unsure.push(path.clone());
        } else {
            helpers.protected.extend(places(path, &files));
        }
    }
    // The entry of a package imports its code, or lies beside it.
    let is_apart = |path: &&String| !patched.iter().any(|other| is_near(path, other)) && !imports_code(path);
    helpers.unsure.extend(listed.iter().filter(is_apart).cloned());
    // An example may also be a part of the documentation, or data.
    let is_other = |path: &String| is_kept(path) && !is_test(path) && !all.contains(path);
    helpers.unsure.extend(copies(&examples).into_iter().filter(is_other));
    Ok(helpers)
}

/// Returns those of the modules of Node that code imports by another name than their path, such as that of a package, and the
/// modules that these import.
async fn used_by_name(
    repository: &Repository,
    commit: &str,
    entries: &BTreeMap<String, Entry>,
    roles: &Roles,
    names: &Names,
    modules: &BTreeMap<&String, &String>,
) -> Result<BTreeSet<String>, RepositoryError> {
    let words = names.words(modules.keys().copied());
    if modules.is_empty() || words.is_empty() {
        return Ok(BTreeSet::new());
    }
    let holders = holders(repository, commit, &words.iter().map(String::as_str).take(MOST_WORDS).collect()).await?;
    let is_code = |path: &str| {
        let is_program = is_node(path) && roles.of(path) == Role::Code && !runner::has_names_of_node(path);
        holders.contains(path) && is_program && !modules.contains_key(&path.to_owned())
    };
    let texts = tree(repository, entries, is_code).await?.texts;
    let imported = |path: &str, text: &str| {
        imports(path, text, names, &[])
            .into_iter()
            .filter(|other| modules.contains_key(other))
            .collect::<BTreeSet<String>>()
    };
    let mut used: BTreeSet<String> = texts.iter().flat_map(|(path, text)| imported(path, text)).collect();
    loop {
        let texts = modules.iter().filter(|(path, _)| used.contains(**path));
        let next: BTreeSet<String> = texts.flat_map(|(path, text)| imported(path, text)).collect();
        if next.is_subset(&used) {
            return Ok(used);
        }
        used.extend(next);
    }
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
        // A file with the name of the folder is loaded in place of the module that the folder's name means.
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        if !folder.is_empty() && (name == "index" || files.contains(&format!("{folder}/package.json"))) {
            let others = ENDINGS.iter().skip(1).map(|ending| format!("{folder}{ending}"));
            found.extend(others.filter(|other| !files.contains(other)));
        }
    }
    found
}

/// Returns the files that a module of Python or Node imports, as far as its lines show them.
/// `roots` are folders on Python's path, each with a slash at its end.
fn imports(path: &str, text: &str, names: &Names, roots: &[String]) -> BTreeSet<String> {
    match Language::of(path) {
        Some(language) if *language == PYTHON => of_python(path, text, &names.files, roots),
        Some(language) if *language == NODE => {
            let Loads { mut modules, special, .. } = node_text::loads(path, text, names);
            modules.extend(special);
            modules
        }
        _ => BTreeSet::new(),
    }
}

fn is_node(path: &str) -> bool {
    Language::of(path) == Some(&NODE)
}

fn is_python(path: &str) -> bool {
    Language::of(path) == Some(&PYTHON)
}

fn of_python(path: &str, text: &str, files: &BTreeSet<String>, roots: &[String]) -> BTreeSet<String> {
    let mut found = located(path, &python_imports::imported(text), files, roots);
    for load in python_text::loads(path, text) {
        found.extend(of_load(path, &load, files, roots));
    }
    found.extend(run(path, text, files, roots));
    found
}

/// Returns the files of the programs that a file of Python runs.
fn run(path: &str, text: &str, files: &BTreeSet<String>, roots: &[String]) -> BTreeSet<String> {
    let (modules, places) = python_text::programs(path, text);
    let mut found = located(path, &modules, files, roots);
    found.extend(places.into_iter().filter(|place| files.contains(place)));
    found
}

/// Returns the files that a statement loads, as far as it names them.
fn of_load(path: &str, load: &Load, files: &BTreeSet<String>, roots: &[String]) -> BTreeSet<String> {
    let mut found = located(path, &load.modules, files, roots);
    found.extend(load.paths.iter().filter(|path| files.contains(*path)).cloned());
    found
}

/// Returns the files of modules that a file of Python names, with the packages around them.
fn located(path: &str, modules: &[String], files: &BTreeSet<String>, roots: &[String]) -> BTreeSet<String> {
    let around = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
    let folders: Vec<&str> = [""].into_iter().chain(around).collect();
    let mut found = BTreeSet::new();
    let mut add = |root: &str, module: &str| {
        let place = format!("{root}{module}");
        let both = [format!("{place}.py"), format!("{place}/__init__.py")];
        found.extend(both.into_iter().filter(|file| files.contains(file)));
    };
    for module in modules {
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
            for root in ["src/", "lib/"].iter().chain(&folders).copied().chain(roots.iter().map(String::as_str)) {
                add(root, part);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mine::runner::Tree;

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
        let names = Names::of(&Tree { files: files.clone(), ..Tree::default() });
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
            ("tests/test_a.py", "import os; from support.more import x\n", &["support/__init__.py", "support/more.py"]),
            ("tests/test_a.py", "try: from support \\\n    import more\n", &["support/__init__.py", "support/more.py"]),
            ("tests/test_a.py", "pytest_plugins = ['support.more']\n", &["support/__init__.py", "support/more.py"]),
            (
                "tests/test_a.py",
                "more = importlib.import_module('support.more')\n",
                &["support/__init__.py", "support/more.py"],
            ),
            ("tests/test_a.py", "runpy.run_path('support/more.py')\n", &["support/more.py"]),
            ("tests/a.js", "const c = require('../support/checks');\n", &["support/checks.js"]),
            ("tests/a.ts", "import {\n  x,\n} from '../support/typed.js';\n", &["support/typed.ts"]),
            ("tests/a.ts", "import deep from \"../support/deep\";\nopen('../calc.py');\n", &["support/deep/index.ts"]),
            ("tests/a.rb", "require '../calc'\n", &[]),
        ] {
            let found: Vec<String> = imports(path, text, &names, &[]).into_iter().collect();
            assert_eq!(found, expected, "{path} {text}");
        }
        // A folder on Python's path.
        let found = imports("tests/test_a.py", "from checks import same\n", &names, &["support/".to_owned()]);
        assert_eq!(found, BTreeSet::from(["support/checks.py".to_owned()]));
        assert_eq!(places("support/checks.py", &files), ["support/checks.py", "support.py"]);
        assert!(places("support/checks.js", &files).contains(&"support/checks".to_owned()));
        assert!(!places("support/checks.js", &files).contains(&"support.js".to_owned()));
        assert!(places("support/deep/index.ts", &files).contains(&"support/deep.js".to_owned()));
    }
}
