//! Finds the package below the top of a repository whose tests a commit changes. Its tests are run in its folder. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::language;
use super::role::{self, Role, Sight};
use super::runner::{Given, Recipe, TestFiles, Tree, recipes};
use crate::values::escaped_glob;

/// A package in a folder of the repository.
#[derive(Debug, Clone, Default)]
pub struct Package {
    /// The folder, without a slash at its end.
    pub folder: String,
    /// The folder of the workspaces of npm around the package, empty for the top. npm installs the packages there.
    pub workspaces: Option<String>,
    /// The files of the commit in the folder. Paths begin there.
    pub after: Tree,
    /// The files of its parent in the folder.
    pub before: Tree,
}

impl Package {
    /// Returns the ways to set up and run the tests in the folder. `changed` and `guarded` are as in [`TestFiles`], from the top.
    pub fn recipes(&self, changed: &[&str], guarded: &[String], given: &Given) -> Vec<Recipe> {
        let start = format!("{}/", self.folder);
        let changed: Vec<&str> = changed.iter().filter_map(|path| path.strip_prefix(&start)).collect();
        let inside = |glob: &String| match glob.strip_prefix(&start) {
            Some(rest) => Some(rest.to_owned()),
            None => glob.starts_with("**/").then(|| glob.clone()),
        };
        let guarded: Vec<String> = guarded.iter().filter_map(inside).collect();
        let tests = TestFiles { changed: &changed, guarded: &guarded };
        let found = recipes(&self.after, &self.before, &tests, given);
        let within = |recipe: Recipe| recipe.within(&self.folder, self.workspaces.as_deref(), given.setup.is_empty());
        found.into_iter().map(within).collect()
    }
}

/// The packages below the top whose tests a commit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// All changed tests belong to the top.
    Top,
    /// All changed tests belong to one package: its folder.
    One(String),
    /// The changed tests belong to several packages: their folders. [`TOP`] is the top.
    Several(Vec<String>),
}

/// The manifests of a language.
struct Manifests {
    endings: &'static [&'static str],
    names: &'static [&'static str],
    /// True if the outermost manifest counts, because the projects of inner ones are its modules.
    is_outermost: bool,
}

const OF_PYTHON: Manifests = Manifests {
    endings: &["py"],
    names: &[
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "requirements.txt",
        "requirements-dev.txt",
        "requirements-test.txt",
    ],
    is_outermost: false,
};

const LANGUAGES: [Manifests; 5] = [
    Manifests { endings: &["rs"], names: &["Cargo.toml"], is_outermost: false },
    OF_PYTHON,
    Manifests { endings: language::NODE.endings(), names: &["package.json"], is_outermost: false },
    Manifests { endings: &["go"], names: &["go.mod"], is_outermost: false },
    Manifests {
        endings: language::JVM.endings(),
        names: &["pom.xml", "build.gradle", "build.gradle.kts"],
        is_outermost: true,
    },
];

/// The top among the folders of several packages.
pub(super) const TOP: &str = ".";
/// Folders of packages of others.
const OF_OTHERS: [&str; 4] = ["node_modules", "third_party", "vendor", "venv"];

/// Returns the packages below the top to which tests belong. Tests in no language, such as data, count only if there are no others.
pub(super) fn find(tree: &Tree, tests: &[String]) -> Found {
    let of_language = |test: &String| {
        let ending = role::split(role::name(test)).1;
        let manifests = LANGUAGES.iter().find(|language| language.endings.contains(&ending))?;
        Some(folder(tree, test, manifests))
    };
    let of_any = |test: &String| {
        let nearest = LANGUAGES.iter().filter_map(|manifests| folder(tree, test, manifests));
        nearest.max_by_key(String::len).map(Some)
    };
    let mut places: BTreeSet<Option<String>> = tests.iter().filter_map(of_language).collect();
    if places.is_empty() {
        places = tests.iter().filter_map(of_any).collect();
    }
    let mut places: Vec<Option<String>> = places.into_iter().collect();
    match places.len() {
        0 | 1 => places.pop().flatten().map_or(Found::Top, Found::One),
        _ => Found::Several(places.into_iter().map(|folder| folder.unwrap_or_else(|| TOP.to_owned())).collect()),
    }
}

/// Returns true if the top has a manifest of Python, or settings of pytest.
pub(super) fn describes_python(tree: &Tree) -> bool {
    OF_PYTHON.names.iter().any(|name| tree.has(name))
}

/// Returns the folders below the top of the packages of Python to which files belong.
pub(super) fn folders_of_python<'a>(tree: &Tree, files: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    files.filter(|path| path.ends_with(".py")).filter_map(|path| folder(tree, path, &OF_PYTHON)).collect()
}

/// Returns the folders around a path, the innermost first, without the top.
pub(super) fn around(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.match_indices('/').rev().filter_map(move |(at, _)| path.get(..at))
}

/// Returns the folder below the top of the package to which a test belongs.
fn folder(tree: &Tree, test: &str, manifests: &Manifests) -> Option<String> {
    let is_package = |folder: &&str| {
        let is_own = !folder.split('/').any(|part| OF_OTHERS.contains(&part));
        // Projects among the tests are their data. Signs of a glob would mean something in the globs of the case.
        let is_plain = !folder.starts_with('-') && escaped_glob(folder) == **folder;
        let is_tested = Sight::of(&format!("{folder}/package")) == Sight::Known(Role::Test);
        let has_manifest = || manifests.names.iter().any(|name| tree.has(&format!("{folder}/{name}")));
        is_own && is_plain && !is_tested && has_manifest()
    };
    let mut packages = around(test).filter(is_package);
    let found = if manifests.is_outermost { packages.next_back() } else { packages.next() }?;
    if !manifests.names.contains(&"Cargo.toml") {
        return Some(found.to_owned());
    }
    // cargo runs the tests of all members of a workspace at its top: in the nearest folder that has one.
    let mut folders = [found].into_iter().chain(around(found).filter(is_package)).chain([""]);
    let workspace = folders.find(|folder| is_workspace_of(tree, folder, found)).unwrap_or(found);
    (!workspace.is_empty()).then(|| workspace.to_owned())
}

/// Returns true if a folder, empty for the top, has a workspace of cargo that does not exclude a package in it. As for cargo, a
/// folder that is also one of the `members` is not excluded.
fn is_workspace_of(tree: &Tree, folder: &str, package: &str) -> bool {
    let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let manifest: Option<Value> = tree.text(&format!("{start}Cargo.toml")).and_then(|text| toml::from_str(text).ok());
    let Some(workspace) = manifest.as_ref().and_then(|manifest| manifest.get("workspace")) else { return false };
    let inside = package.strip_prefix(&start).unwrap_or_default();
    let has = |key: &str| {
        let paths = workspace.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut plain = paths.map(|path| path.trim_start_matches("./").trim_end_matches('/'));
        plain.any(|path| inside.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    package == folder || has("members") || !has("exclude")
}

/// Returns the folder of the workspaces of npm around a folder, if there are any. The top is empty.
pub(super) fn workspaces(tree: &Tree, folder: &str) -> Option<String> {
    let has_workspaces = |folder: &&str| {
        let path = if folder.is_empty() { "package.json".to_owned() } else { format!("{folder}/package.json") };
        let package: Option<Value> = tree.text(&path).and_then(|text| serde_json::from_str(text).ok());
        package.is_some_and(|package| package.get("workspaces").is_some_and(|it| !it.is_null()))
    };
    around(folder).chain([""]).find(has_workspaces).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_changed_tests_is_found() {
        let tree = Tree::for_test(&[
            ("package.json", r#"{"workspaces": ["web/*"]}"#),
            ("web/app/package.json", "{}"),
            ("web/app/test/fixtures/package.json", "{}"),
            ("svc/pytest.ini", ""),
            ("svc/src/deep/setup.py", ""),
            ("rust/Cargo.toml", "[workspace]\nmembers = ['a']\n"),
            ("rust/a/Cargo.toml", "[package]\n"),
            ("tools/Cargo.toml", "[workspace]\nexclude = ['fuzz']\n"),
            ("tools/fuzz/Cargo.toml", "[package]\n"),
            ("tools/core/Cargo.toml", "[package]\n"),
            ("tools/own/Cargo.toml", "[package]\nname = 'own'\n[workspace]\n"),
            ("rust/a/b/c/d/Cargo.toml", "[package]\ndescription = 'no [workspace]'\n"),
            ("jvm/pom.xml", ""),
            ("jvm/core/pom.xml", ""),
            ("go/go.mod", ""),
            ("[odd]/go.mod", ""),
            ("vendor/x/go.mod", ""),
        ]);
        let several = |folders: &[&str]| Found::Several(folders.iter().map(|it| (*it).to_owned()).collect());
        for (tests, found) in [
            (&["test/a.test.js"][..], Found::Top),
            (&["web/app/test/a.test.js", "web/app/test/data.json"], Found::One("web/app".to_owned())),
            (&["web/app/test/fixtures/test/a.test.js"], Found::One("web/app".to_owned())),
            (&["web/app/test/run.sh"], Found::One("web/app".to_owned())),
            (&["svc/tests/test_a.py", "web/app/test/data.json"], Found::One("svc".to_owned())),
            (&["svc/src/deep/tests/test_a.py"], Found::One("svc/src/deep".to_owned())),
            (&["rust/a/tests/a.rs"], Found::One("rust".to_owned())),
            (&["tools/fuzz/tests/a.rs"], Found::One("tools/fuzz".to_owned())),
            (&["tools/core/tests/a.rs"], Found::One("tools".to_owned())),
            (&["tools/own/tests/a.rs"], Found::One("tools/own".to_owned())),
            (&["rust/a/b/c/d/tests/a.rs"], Found::One("rust".to_owned())),
            (&["jvm/core/src/test/java/ATest.java"], Found::One("jvm".to_owned())),
            (&["go/deep/a_test.go"], Found::One("go".to_owned())),
            (&["[odd]/a_test.go", "vendor/x/a_test.go"], Found::Top),
            (&["svc/tests/test_a.py", "web/app/test/a.test.js"], several(&["svc", "web/app"])),
            (&["tests/test_a.py", "svc/tests/test_a.py"], several(&[".", "svc"])),
            (&["data.json"], Found::Top),
        ] {
            let tests: Vec<String> = tests.iter().map(|test| (*test).to_owned()).collect();
            assert_eq!(find(&tree, &tests), found, "{tests:?}");
        }
        // Within a workspace at the top, a package with a workspace of its own, or an excluded one, is apart.
        let mut tree = tree;
        let top = "[workspace]\nmembers = ['core', 'tools/core']\nexclude = ['tools']\n".to_owned();
        tree.files.insert("Cargo.toml".to_owned());
        tree.texts.insert("Cargo.toml".to_owned(), top);
        tree.texts.insert("tools/Cargo.toml".to_owned(), "[package]\n".to_owned());
        for (test, found) in [
            ("core/tests/a.rs", Found::Top),
            ("rust/a/tests/a.rs", Found::One("rust".to_owned())),
            ("tools/core/tests/a.rs", Found::Top),
            ("tools/fuzz/tests/a.rs", Found::One("tools/fuzz".to_owned())),
            ("tools/own/tests/a.rs", Found::One("tools/own".to_owned())),
        ] {
            assert_eq!(find(&tree, &[test.to_owned()]), found, "{test}");
        }
        assert_eq!(workspaces(&tree, "web/app"), Some(String::new()));
        assert_eq!(workspaces(&Tree::default(), "web/app"), None);
        assert_eq!(
            folders_of_python(&tree, ["svc/tests/test_a.py".to_owned(), "a.py".to_owned()].iter()),
            ["svc".to_owned()].into()
        );
    }

    #[test]
    fn commands_run_in_the_folder_of_the_package() {
        let files = [("package.json", r#"{"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}"#)];
        let mut package = Package {
            folder: "web/a b".to_owned(),
            after: Tree::for_test(&files),
            before: Tree::for_test(&files),
            ..Package::default()
        };
        let changed = ["web/a b/test/a.test.js", "svc/test_a.py"];
        let one = |package: &Package, given: &Given| package.recipes(&changed, &[], given).remove(0);
        let found = one(&package, &Given::default());
        assert_eq!(found.run, "cd 'web/a b' && node_modules/.bin/jest --ci --verbose --coverage=false 2>&1");
        assert!(found.setup[0].line.starts_with("cd 'web/a b' && npm install"), "{:?}", found.setup);
        assert_eq!((found.path().as_str(), found.keeps), ("web/a b/", vec!["web/a b/node_modules".to_owned()]));
        let given = Given { test: None, setup: vec!["make deps".to_owned()] };
        assert_eq!(one(&package, &given).setup[0].line, "make deps");
        package.workspaces = Some("web".to_owned());
        let found = one(&package, &Given::default());
        assert_eq!(
            found.run,
            "cd 'web/a b' && PATH=\"$PWD/node_modules/.bin:$OLDPWD\"/web/node_modules/.bin:\"$PATH\" && jest --ci --verbose \
             --coverage=false 2>&1"
        );
        assert_eq!(found.setup[0].depends_on, None);
        assert_eq!(found.keeps, ["web/a b/node_modules", "web/node_modules"]);
        let files = [("pom.xml", "")];
        let package = Package {
            folder: "jvm".to_owned(),
            after: Tree::for_test(&files),
            before: Tree::for_test(&files),
            ..Package::default()
        };
        let found = package.recipes(&["jvm/src/test/java/ATest.java"], &[], &Given::default()).remove(0);
        assert_eq!(found.report.as_deref(), Some("jvm/**/target/surefire-reports/*.xml"));
        assert!(found.key.starts_with("jvm: ") && found.run.starts_with("cd jvm && find . "), "{found:?}");
    }

    #[test]
    fn guarded_files_of_python_begin_at_the_folder() {
        let files = [("pytest.ini", ""), ("tests/test_a.py", "")];
        let package = Package {
            folder: "svc".to_owned(),
            after: Tree::for_test(&files),
            before: Tree::for_test(&files),
            ..Package::default()
        };
        let guarded = ["**/test_*.py", "svc/checks/deep.py", "other/deep.py"].map(str::to_owned);
        let found = package.recipes(&["svc/tests/test_a.py"], &guarded, &Given::default()).remove(0);
        assert!(found.run.contains("\"checks/deep.py\"") && !found.run.contains("other/deep.py"), "{}", found.run);
    }
}
