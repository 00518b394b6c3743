//! Reads the modules of Python and Node that tests reach by their imports.

use std::collections::{BTreeMap, BTreeSet};

use super::node_names::Names;
use super::node_text::{self, Loads};
use super::python_imports;
use super::python_text::{self, Load, Shown};
use super::{Entry, tree};
use crate::mine::history::Commit;
use crate::mine::language::{Language, NODE, PYTHON};
use crate::mine::package::folders_of_python;
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles, has_test_name, name};
use crate::mine::runner::{self, Tree};

/// The maximum number of steps from a test to a module that it imports.
const MAX_STEPS: usize = 4;
/// The maximum number of modules.
const MAX_MODULES: usize = 100;

/// The files of a commit and of its parent, and what decides which of them are tests.
#[derive(Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) commit: &'a Commit,
    pub(super) entries: &'a BTreeMap<String, Entry>,
    pub(super) before: &'a BTreeMap<String, Entry>,
    pub(super) roles: &'a Roles,
    /// Files that are hidden with the tests, whatever their roles are.
    pub(super) own: &'a BTreeSet<String>,
}

impl Files<'_> {
    pub(super) fn is_test(&self, path: &str) -> bool {
        self.roles.of(path) == Role::Test || self.own.contains(path)
    }

    pub(super) fn is_code(&self, path: &str) -> bool {
        self.roles.of(path) == Role::Code && !self.own.contains(path)
    }

    /// Returns true if the commit does not change a file.
    pub(super) fn is_kept(&self, path: &str) -> bool {
        self.entries.get(path).zip(self.before.get(path)).is_some_and(|(new, old)| new.object == old.object)
    }

    /// Returns true if a file is a module among the code, and the commit does not change it.
    pub(super) fn is_module(&self, path: &str) -> bool {
        self.is_kept(path) && self.is_code(path) && imports_modules(path)
    }

    /// Returns the folders below the top of the packages of Python whose tests the commit changes.
    fn packages_of_python(&self) -> BTreeSet<String> {
        let changed = self.commit.files.iter().map(|file| &file.path);
        let tests: Vec<&String> = changed.filter(|path| PYTHON.has(path) && self.is_test(path)).collect();
        if tests.is_empty() {
            return BTreeSet::new();
        }
        let tree = Tree { files: self.entries.keys().cloned().collect(), ..Tree::default() };
        folders_of_python(&tree, tests.into_iter())
    }

    /// Returns true if a file is in a folder around a test that the commit changes.
    fn is_around_tests(&self, path: &str) -> bool {
        let Some((folder, _)) = path.rsplit_once('/') else { return true };
        let is_around =
            |test: &str| test.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')) && self.is_test(test);
        self.commit.files.iter().any(|file| is_around(&file.path))
    }

    /// Returns true if a file is a test whose imports are looked at: one that the commit changes, or one that others may use.
    fn is_start(&self, path: &str) -> bool {
        let is_changed = self.commit.files.iter().any(|file| file.path == path);
        // pytest loads each `conftest.py` above a test, whichever tests the commit changes.
        let is_read = is_changed || !has_test_name(path) || name(path) == "conftest.py";
        imports_modules(path) && self.is_test(path) && is_read
    }
}

/// The tests and the modules that they reach, with what decides where imports lead.
pub(super) struct Reached {
    /// The texts, by path.
    pub(super) texts: BTreeMap<String, String>,
    pub(super) names: Names,
    /// The modules that aliases of Node's runners name.
    pub(super) targets: BTreeSet<String>,
    /// The folders of pytest's examples. Each is empty, or has a slash at its end.
    pub(super) examples: Vec<String>,
    /// True if tests load more modules than were read.
    pub(super) has_more: bool,
    /// The settings of pytest in the commit and in its parent.
    settings: [Tree; 2],
    /// The folders on Python's path. Each has a slash at its end.
    roots: Vec<String>,
    /// The plug-ins that the settings of pytest name.
    plugins: Vec<String>,
}

impl Reached {
    /// Reads the tests, and follows their imports.
    ///
    /// # Errors
    /// Returns git's message.
    pub(super) async fn read(repository: &Repository, files: Files<'_>) -> Result<Self, RepositoryError> {
        let Files { entries, before, .. } = files;
        let settings = [
            tree(repository, entries, runner::is_settings_of_pytest).await?,
            tree(repository, before, runner::is_settings_of_pytest).await?,
        ];
        let has_names =
            |path: &str| runner::has_names_of_node(path) || (runner::has_settings(path) && files.is_around_tests(path));
        let names = Names::of(&tree(repository, entries, has_names).await?);
        let mut last = tree(repository, entries, |path| files.is_start(path)).await?.texts;
        let mut reached = Self::of(settings, names, last.clone());
        for folder in files.packages_of_python() {
            let start = format!("{folder}/");
            let is_needed = |path: &str| path.strip_prefix(&start).is_some_and(runner::is_settings_of_pytest);
            let settings = [
                tree(repository, entries, is_needed).await?.below(&folder),
                tree(repository, before, is_needed).await?.below(&folder),
            ];
            reached.add_package(&folder, &settings);
        }
        for step in 0..=MAX_STEPS {
            reached.add_roots(&last);
            let unread = reached.unread(files, &last);
            if unread.is_empty() {
                break;
            }
            let modules = reached.texts.keys().chain(&unread).filter(|path| files.is_module(path));
            if step == MAX_STEPS || modules.count() > MAX_MODULES {
                reached.has_more = true;
                break;
            }
            last = tree(repository, entries, |path| unread.contains(path)).await?.texts;
            if last.is_empty() {
                // Links and files that are too large are not read.
                break;
            }
            reached.texts.extend(last.clone());
        }
        Ok(reached)
    }

    fn of(settings: [Tree; 2], names: Names, texts: BTreeMap<String, String>) -> Self {
        let has_node = texts.keys().any(|path| NODE.has(path));
        let targets = names.targets.iter().filter(|_| has_node).cloned().collect();
        let examples = settings.iter().flat_map(runner::example_folders).collect();
        let plugins = settings.iter().flat_map(runner::python_plugins);
        let plugins = plugins.filter_map(|name| python_text::module(&name)).collect();
        let roots = settings.iter().flat_map(runner::python_paths);
        let is_folder = |folder: &String| settings.iter().any(|tree| tree.has_folder(folder));
        let roots = roots.filter(is_folder).map(|folder| format!("{folder}/")).collect();
        Self { texts, names, targets, examples, has_more: false, settings, roots, plugins }
    }

    /// Adds the folder of a package of Python below the top, and what its settings of pytest name.
    fn add_package(&mut self, folder: &str, settings: &[Tree; 2]) {
        let named = settings.iter().flat_map(runner::python_paths).map(|root| format!("{folder}/{root}"));
        let named: Vec<String> = named.filter(|root| self.is_folder(root)).collect();
        self.roots.extend([folder.to_owned()].into_iter().chain(named).map(|root| format!("{root}/")));
        let plugins = settings.iter().flat_map(runner::python_plugins);
        self.plugins.extend(plugins.filter_map(|name| python_text::module(&name)));
    }

    /// Adds the folders that files put on Python's path.
    fn add_roots(&mut self, texts: &BTreeMap<String, String>) {
        for (path, text) in texts.iter().filter(|(path, _)| PYTHON.has(path)) {
            let found = python_text::search_paths(path, text, |folder| self.is_folder(folder));
            self.roots.extend(found.iter().map(|folder| format!("{folder}/")));
        }
        self.roots.sort();
        self.roots.dedup();
    }

    /// Returns the files that these files load and that are not read yet.
    fn unread(&self, files: Files<'_>, texts: &BTreeMap<String, String>) -> BTreeSet<String> {
        let imported = texts.keys().flat_map(|path| self.imports(path));
        let tests = texts.iter().filter(|(path, _)| PYTHON.has(path) && files.is_test(path));
        let copied = tests.flat_map(|(_, text)| python_text::examples(text, &self.examples, &self.names.files));
        let all = imported.chain(self.plugins()).chain(self.targets.iter().cloned()).chain(copied);
        // An unchanged test may be the base of a changed one.
        let is_read = |path: &String| files.is_module(path) || (files.is_test(path) && imports_modules(path));
        all.filter(|path| is_read(path) && !self.texts.contains_key(path)).collect()
    }

    /// Returns true if the commit or its parent has a folder.
    pub(super) fn is_folder(&self, folder: &str) -> bool {
        self.settings.iter().any(|tree| tree.has_folder(folder))
    }

    /// Returns the text of a file, which is empty if the file was not read.
    pub(super) fn text(&self, path: &str) -> &str {
        self.texts.get(path).map(String::as_str).unwrap_or_default()
    }

    /// Returns the files of a language, with their texts.
    pub(super) fn of_language(&self, language: &Language) -> impl Iterator<Item = (&String, &String)> {
        self.texts.iter().filter(move |(path, _)| language.has(path))
    }

    /// Returns the modules that were read.
    pub(super) fn modules(&self, files: Files<'_>) -> BTreeSet<String> {
        self.texts.keys().filter(|path| files.is_module(path)).cloned().collect()
    }

    /// Returns the files that a file imports.
    pub(super) fn imports(&self, path: &str) -> BTreeSet<String> {
        imports(path, self.text(path), &self.names, &self.roots)
    }

    /// Returns the files of code that tests import and that only the commit has. Other solutions need files with the same
    /// paths.
    pub(super) fn added(&self, files: Files<'_>) -> BTreeSet<String> {
        let tests = self.texts.iter().filter(|(path, _)| files.is_test(path));
        let imported = tests.flat_map(|(path, text)| match NODE.has(path) {
            true => node_text::imported(path, text, &self.names),
            false => self.imported_by_python(path, text),
        });
        let is_new = |path: &String| files.is_code(path) && !files.before.contains_key(path);
        let new: BTreeSet<String> = imported.filter(is_new).collect();
        // The package around a module is loaded with it.
        let is_around = |path: &String| {
            let folder = path.strip_suffix("__init__.py").filter(|folder| !folder.is_empty());
            folder.is_some_and(|folder| new.iter().any(|other| other != path && other.starts_with(folder)))
        };
        new.iter().filter(|path| !is_around(path)).cloned().collect()
    }

    /// Returns the files that a file of Python imports by statements, or loads by whole names.
    fn imported_by_python(&self, path: &str, text: &str) -> BTreeSet<String> {
        let text = python_imports::without_blocks(text);
        let mut found = self.located(path, &python_imports::imported(&text));
        for load in python_text::loads(path, &text).iter().filter(|load| load.shown != Shown::Part) {
            found.extend(self.loaded(path, load));
        }
        found
    }

    /// Returns the files of modules that a file of Python names.
    pub(super) fn located(&self, path: &str, modules: &[String]) -> BTreeSet<String> {
        located(path, modules, &self.names.files, &self.roots)
    }

    /// Returns the files that a statement of a file loads, as far as it names them.
    pub(super) fn loaded(&self, path: &str, load: &Load) -> BTreeSet<String> {
        of_load(path, load, &self.names.files, &self.roots)
    }

    /// Returns the files of the plug-ins that the settings of pytest name.
    pub(super) fn plugins(&self) -> BTreeSet<String> {
        self.located("", &self.plugins)
    }

    /// Returns the files of the programs that files of Python run.
    pub(super) fn programs(&self) -> BTreeSet<String> {
        self.of_language(&PYTHON).flat_map(|(path, text)| run(path, text, &self.names.files, &self.roots)).collect()
    }

    /// Returns the files that tests copy from folders of examples.
    pub(super) fn copies(&self, files: Files<'_>, folders: &[String]) -> BTreeSet<String> {
        let tests = self.of_language(&PYTHON).filter(|(path, _)| files.is_test(path));
        tests.flat_map(|(_, text)| python_text::examples(text, folders, &self.names.files)).collect()
    }
}

/// Returns true if the imports of a file are read.
fn imports_modules(path: &str) -> bool {
    PYTHON.has(path) || NODE.has(path)
}

/// Returns the files that a module of Python or Node imports, as far as its lines show them.
/// `roots` are folders on Python's path, each with a slash at its end.
pub(super) fn imports(path: &str, text: &str, names: &Names, roots: &[String]) -> BTreeSet<String> {
    if PYTHON.has(path) {
        of_python(path, text, &names.files, roots)
    } else if NODE.has(path) {
        let Loads { mut modules, special, .. } = node_text::loads(path, text, names);
        modules.extend(special);
        modules
    } else {
        BTreeSet::new()
    }
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
    use crate::mine::change::Mode;
    use crate::mine::history::Changed;

    #[test]
    fn the_modules_of_tests_that_the_commit_does_not_change_are_read() {
        let entries = |calc: &str| -> BTreeMap<String, Entry> {
            let entry = |object: &str| Entry { mode: Mode::File, object: object.to_owned(), size: 1 };
            [("calc.py", calc), ("support/checks.py", "same"), ("tests/test_a.py", "test")]
                .map(|(path, object)| (path.to_owned(), entry(object)))
                .into()
        };
        let (after, before) = (entries("new"), entries("old"));
        let commit = Commit {
            id: "c".to_owned(),
            parent: None,
            date: String::new(),
            message: String::new(),
            files: vec![Changed { path: "calc.py".to_owned(), lines: None }],
            inline_tests: Vec::new(),
            is_cut: false,
        };
        let (roles, own) = (Roles::default(), BTreeSet::new());
        let files = Files { commit: &commit, entries: &after, before: &before, roles: &roles, own: &own };
        let tree = Tree { files: after.keys().cloned().collect(), texts: BTreeMap::new() };
        let test = "import calc\nfrom support.checks import same\n";
        let tests = BTreeMap::from([("tests/test_a.py".to_owned(), test.to_owned())]);
        let mut reached = Reached::of([Tree::default(), Tree::default()], Names::of(&tree), tests.clone());
        assert_eq!(reached.unread(files, &tests), BTreeSet::from(["support/checks.py".to_owned()]));
        let helper = BTreeMap::from([("support/checks.py".to_owned(), "import calc\n".to_owned())]);
        reached.texts.extend(helper.clone());
        assert_eq!(reached.unread(files, &helper), BTreeSet::new());
        assert_eq!(reached.modules(files), BTreeSet::from(["support/checks.py".to_owned()]));
    }

    #[test]
    fn new_files_of_code_that_tests_import_are_found() {
        let entries = |paths: &[&str]| -> BTreeMap<String, Entry> {
            let entry = || Entry { mode: Mode::File, object: String::new(), size: 1 };
            paths.iter().map(|path| ((*path).to_owned(), entry())).collect()
        };
        let old = ["lib/n.js", "tests/a.test.js", "tests/test_a.py"];
        let new = [
            "calc/__init__.py",
            "calc/inner.py",
            "calc/lazy.py",
            "calc/pad.py",
            "lib/money-format.js",
            "lib/other.js",
            "lib/util/columns.js",
            "lib/wide.js",
        ];
        let (after, before) = (entries(&[&old[..], &new].concat()), entries(&old));
        let (commit, roles, own) = (Commit::default(), Roles::default(), BTreeSet::new());
        let files = Files { commit: &commit, entries: &after, before: &before, roles: &roles, own: &own };
        let tree = Tree { files: after.keys().cloned().collect(), texts: BTreeMap::new() };
        let of_node = "import filler from '../lib/money-format.js';\nimport { n } from '../lib/n.js';\n\
                       import {\n  columns,\n} from \"../lib/util/columns.js\";\n// import other from '../lib/other.js'\n\
                       const wide = require(path.join(__dirname, '..', 'lib', 'wide'));\n";
        let of_python = "\"\"\"Widens.\n\nfrom calc.inner import widen\n\"\"\"\nfrom calc.pad import widen\n\
                         lazy = importlib.import_module(\"calc.lazy\")\n";
        let texts = [("tests/a.test.js", of_node), ("tests/test_a.py", of_python)];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let reached = Reached::of([Tree::default(), Tree::default()], Names::of(&tree), texts);
        let expected = ["calc/lazy.py", "calc/pad.py", "lib/money-format.js", "lib/util/columns.js", "lib/wide.js"];
        assert_eq!(reached.added(files), expected.map(str::to_owned).into());
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
    }
}
