//! The files that decide about tests besides the hidden ones: test files that an agent adds, and settings of runners.
//! They are protected in a mined case, so that they are removed or restored before the tests run. Pure.

use std::collections::BTreeSet;

use super::change::Change;
use super::judgement::Judged;
use super::left_out::{self, Guard};
use super::role::Role;
use super::runner::{Runner, Tree};
use crate::values::PathGlob;

mod setup_files;

/// The files that decide about the tests of a language.
struct Language {
    /// The endings of its tests.
    endings: &'static [&'static str],
    /// Globs of files that runners take for tests. A module of code that an agent may add must not match: for Rust,
    /// `src/parser/tests.rs` is a part of the crate.
    tests: &'static [&'static str],
    /// Globs of the files that determine which tests are run, how, and with which packages.
    settings: &'static [&'static str],
}

/// The endings of the tests of Node.
const NODE: [&str; 7] = [".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".mts"];

const LANGUAGES: [Language; 6] = [
    Language {
        endings: &[".py"],
        tests: &["**/{test,tests}/**", "**/test_*.py", "**/*_{test,tests}.py", "**/{test,tests,conftest}.py"],
        // pytest loads the plug-ins that the metadata of any package on its path names. Python itself runs the other files
        // when it starts, if their folder is on its path: a module, compiled or not, or a package. A name without wildcards
        // is also protected if the repository ignores such a file, and so is a folder whose name is a part of a glob.
        settings: &[
            "pytest.ini",
            ".pytest.ini",
            "pytest.toml",
            ".pytest.toml",
            "tox.ini",
            "pyproject.toml",
            "setup.cfg",
            "**/{,.}pytest.{ini,toml}",
            "**/{tox.ini,pyproject.toml,setup.cfg}",
            // Python compares the ends of these names without their case.
            "**/*.{[dD][iI][sS][tT]-[iI][nN][fF][oO],[eE][gG][gG]-[iI][nN][fF][oO]}/**",
            "**/{sitecustomize,usercustomize}{,.*}",
            "**/sitecustomize/**",
            "**/usercustomize/**",
            "sitecustomize.pyc",
            "usercustomize.pyc",
            "src/sitecustomize.pyc",
            "src/usercustomize.pyc",
            "**/*.pth",
        ],
    },
    Language {
        endings: &NODE,
        tests: &[
            "**/{test,tests,__tests__}/**",
            "**/*{.,-,_}{test,tests,spec}.{js,cjs,mjs,jsx,ts,cts,mts,tsx}",
            "**/{test,tests}.{js,cjs,mjs,ts}",
            "**/test-*.{js,cjs,mjs,ts}",
        ],
        settings: &[
            "**/node_modules/**",
            "**/package.json",
            "**/.npmrc",
            "**/.mocharc.*",
            "**/{jest,ava,vitest}.config.*",
            "**/vitest.workspace.*",
            "**/vite.config.*",
            "**/{.babelrc,.babelrc.*,babel.config.*}",
        ],
    },
    Language {
        endings: &[".rs"],
        tests: &["tests/**", "crates/*/tests/**"],
        // Cargo.toml can name another file for a test, the toolchain's file another cargo, and build.rs runs before the tests
        // are compiled.
        settings: &[".cargo/**", "**/Cargo.toml", "**/rust-toolchain{,.toml}", "**/build.rs"],
    },
    Language {
        endings: &[".go"],
        tests: &["**/*_test.go", "**/testdata/**"],
        settings: &["**/go.{mod,sum}", "go.{work,work.sum}", "**/vendor/**"],
    },
    Language {
        endings: &[".java", ".kt", ".groovy", ".scala"],
        tests: &["**/src/test/**"],
        settings: &[
            "**/pom.xml",
            ".mvn/**",
            "**/*.{gradle,gradle.kts}",
            "**/gradle.properties",
            "gradle/**",
            "buildSrc/**",
            "{mvnw,gradlew}",
        ],
    },
    Language {
        endings: &[".t", ".bats", ".sh"],
        tests: &["**/{t,test,tests}/**", "**/*.bats"],
        // The options of `prove`.
        settings: &["**/.proverc"],
    },
];

/// Returns the globs for a case. A glob for tests that also matches code is restricted to the top folder or dropped. A glob
/// for settings is dropped if the patch changes a file that it matches, because an agent may have to change that file. For
/// Node, the files that its settings load before the tests are added, unless the patch changes them.
pub fn globs(change: &Change, patched: &[String]) -> Vec<String> {
    let Change { before, after, roles, changed_tests, .. } = change;
    let is_changed = |endings: &[&str]| changed_tests.iter().any(|path| endings.iter().any(|end| path.ends_with(end)));
    let is_code = |path: &&String| matches!(roles.of(path), Role::Code | Role::Dependencies);
    let code: Vec<&String> = before.files.iter().chain(&after.files).filter(is_code).collect();
    let patched: Vec<&String> = patched.iter().collect();
    let spares = |text: &str, files: &[&String]| {
        text.parse::<PathGlob>().is_ok_and(|glob| !files.iter().any(|path| glob.is_match(path)))
    };
    let of_language = |language: &Language| {
        let at_top = |glob: &&'static str| glob.strip_prefix("**/").filter(|glob| spares(glob, &code));
        let tests =
            language.tests.iter().filter_map(|glob| if spares(glob, &code) { Some(*glob) } else { at_top(glob) });
        let settings = language.settings.iter().copied().filter(|glob| spares(glob, &patched));
        tests.chain(settings).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut found: Vec<String> =
        LANGUAGES.iter().filter(|language| is_changed(language.endings)).flat_map(of_language).collect();
    if is_changed(&NODE) {
        let loaded = setup_files::loaded(before).into_iter().filter(|path| !patched.contains(&path));
        found.extend(loaded.filter(|path| is_plain(path)));
    }
    found
}

/// Returns the files with tests that only the names of their tests show, such as `checks/add.sh`: they are not hidden, so
/// they are restored before the tests run. A file of code that holds tests too is none.
pub fn of_tests(runner: Runner, judged: &Judged, change: &Change, patched: &[String]) -> Vec<String> {
    let tests = judged.fail_to_pass.iter().chain(&judged.pass_to_pass);
    let found: BTreeSet<String> = tests
        .filter_map(|test| match left_out::guard(runner, test, change, patched) {
            Guard::File(path) => Some(path).filter(|path| is_plain(path)),
            Guard::Hidden | Guard::None => None,
        })
        .collect();
    found.into_iter().collect()
}

/// Returns true if a path, as a glob, matches the path alone.
fn is_plain(path: &str) -> bool {
    !path.contains(['*', '?', '[', ']', '{', '}', '\\', '!'])
}

/// Programs, and the files that decide what they do.
const PROGRAMS: [(&[&str], &[&str]); 4] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["npm", "yarn", "pnpm"], &["package.json"]),
    (&["just"], &["justfile", "Justfile"]),
    (&["tox"], &["tox.ini"]),
];

/// Returns the files of the repository that a command names, itself or by its programs, unless the patch changes them. A
/// name may be relative to a folder that the command names, too.
pub fn named(command: &str, before: &Tree, patched: &[String]) -> Vec<String> {
    let words: Vec<&str> = command
        .split(|c: char| c.is_whitespace() || "'\";&|()<>=`".contains(c))
        .map(|word| word.trim_start_matches("./").trim_end_matches('/'))
        .filter(|word| !word.is_empty())
        .collect();
    let of_program = |word: &&str| {
        let files = PROGRAMS.iter().find(|(programs, _)| programs.contains(word)).map(|(_, files)| *files);
        files.unwrap_or_default().iter().copied()
    };
    let names: Vec<&str> = words.iter().copied().chain(words.iter().flat_map(of_program)).collect();
    let folders: Vec<String> =
        words.iter().filter(|word| before.has_folder(word)).map(|word| format!("{word}/")).collect();
    let mut found: Vec<String> = Vec::new();
    for name in names {
        for path in [String::new()].iter().chain(&folders).map(|folder| format!("{folder}{name}")) {
            if is_plain(&path) && before.has(&path) && !patched.contains(&path) && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_command_names_are_protected() {
        let tree = tree(&["run.sh", "ci/test.sh", "Makefile", "package.json", "sub/Makefile", "src/a.c"]);
        for (command, files) in [
            ("./run.sh", &["run.sh"][..]),
            ("sh ci/test.sh --all", &["ci/test.sh"]),
            ("CI=1 make test", &["Makefile"]),
            ("npm test && ./run.sh", &["run.sh", "package.json"]),
            ("cd ci && ./test.sh", &["ci/test.sh"]),
            ("make -C sub test", &["Makefile", "sub/Makefile"]),
            ("cargo test", &[]),
        ] {
            assert_eq!(named(command, &tree, &[]), files, "{command}");
        }
        assert_eq!(named("./run.sh", &tree, &["run.sh".to_owned()]), Vec::<String>::new());
    }

    fn change(tree: &Tree, test: &str) -> Change {
        let (before, after) = (tree.clone(), tree.clone());
        Change { before, after, changed_tests: vec![test.to_owned()], ..Change::default() }
    }

    fn tree(files: &[&str]) -> Tree {
        Tree { files: files.iter().map(|path| (*path).to_owned()).collect(), ..Tree::default() }
    }

    #[test]
    fn the_files_of_a_language_and_its_folders_are_protected() {
        let tree = tree(&["calc.py", "tests/test_calc.py", "pytest.ini"]);
        let found = globs(&change(&tree, "tests/test_calc.py"), &[]);
        let is_protected = |path: &str| found.iter().any(|glob| glob.parse::<PathGlob>().unwrap().is_match(path));
        for path in [
            "test_aaa.py",
            "conftest.py",
            "pkg/conftest.py",
            "tests/test_calc/__init__.py",
            "pytest.ini",
            ".pytest.ini",
            "sub/pytest.toml",
            ".pytest.toml",
            "sub/setup.cfg",
            "src/sitecustomize.py",
            "src/sitecustomize.pyc",
            "src/sitecustomize.cpython-311-x86_64-linux-gnu.so",
            "src/sitecustomize/__init__.py",
            "usercustomize/__init__.py",
            "usercustomize.py",
            "src/evil.egg-info/entry_points.txt",
            "src/evil-1.0.Dist-Info/entry_points.txt",
            "evil.EGG-INFO/entry_points.txt",
            "a.pth",
        ] {
            assert!(is_protected(path), "{path}");
        }
        assert!(!is_protected("src/mysitecustomize.py") && !is_protected("src/info/entry_points.txt"));
        assert!(!is_protected("calc.py") && !is_protected("latest.py") && !is_protected("calc.test.js"));
    }

    #[test]
    fn code_is_not_protected() {
        // An agent may add a module of tests to a crate.
        let rust = tree(&["src/lib.rs", "tests/all.rs"]);
        let found = globs(&change(&rust, "tests/all.rs"), &[]);
        let is_protected = |path: &str| found.iter().any(|glob| glob.parse::<PathGlob>().unwrap().is_match(path));
        assert!(is_protected("tests/more.rs") && is_protected(".cargo/config.toml"));
        for path in ["Cargo.toml", "crates/a/Cargo.toml", "rust-toolchain", "rust-toolchain.toml", "build.rs"] {
            assert!(is_protected(path), "{path}");
        }
        assert!(!is_protected("src/tests.rs") && !is_protected("src/tests/mod.rs"));
        // A glob that applies to code of the repository is left out.
        let of = |files: &[&str]| globs(&change(&tree(files), "a.test.js"), &[]);
        let has = |globs: &[String], path: &str| globs.iter().any(|it| it.parse::<PathGlob>().unwrap().is_match(path));
        assert!(has(&of(&["index.js"]), "test-runner.js") && !has(&of(&["test-runner.js"]), "test-runner.js"));
        // Below the sources, a folder `test` may hold code. The one at the top is protected.
        let found = of(&["src/test/tool.js"]);
        assert!(!has(&found, "src/test/tool.js") && has(&found, "test/more.js"), "{found:?}");
    }

    #[test]
    fn a_folder_of_perl_tests_is_protected() {
        let found = globs(&change(&tree(&["lib/a.pm", "t/a.t"]), "t/a.t"), &[]);
        let has = |path: &str| found.iter().any(|it| it.parse::<PathGlob>().unwrap().is_match(path));
        assert!(has("t/b.t") && has("t/lib/helper.pm") && has(".proverc") && !has("lib/a.pm"), "{found:?}");
    }

    #[test]
    fn files_that_settings_of_node_load_are_protected_unless_the_patch_changes_them() {
        let mut tree = tree(&["package.json", "support/setup.js", "lib/calc.js", "test/a.test.js"]);
        let package = r#"{"scripts": {"test": "node --import ./support/setup.js --test"}}"#;
        tree.texts.insert("package.json".to_owned(), package.to_owned());
        let change = change(&tree, "test/a.test.js");
        assert!(globs(&change, &["lib/calc.js".to_owned()]).contains(&"support/setup.js".to_owned()));
        assert!(!globs(&change, &["support/setup.js".to_owned()]).contains(&"support/setup.js".to_owned()));
    }

    #[test]
    fn files_that_the_names_of_tests_show_are_protected() {
        let tree = tree(&["checks/add.sh", "checks/sub.sh", "src/calc.py", "tests/a.sh"]);
        let names = ["checks/add.sh", "checks/sub.sh: usage", "src/calc.py::src.calc.add", "tests/a.sh", "adds"];
        let judged = Judged { pass_to_pass: names.map(str::to_owned).to_vec(), ..Judged::default() };
        let change = change(&tree, "tests/a.sh");
        assert_eq!(of_tests(Runner::Given, &judged, &change, &[]), ["checks/add.sh", "checks/sub.sh"]);
        assert_eq!(of_tests(Runner::Given, &judged, &change, &["checks/sub.sh".to_owned()]), ["checks/add.sh"]);
        assert_eq!(of_tests(Runner::Cargo, &judged, &change, &[]), Vec::<String>::new());
    }

    #[test]
    fn settings_are_protected_unless_the_patch_changes_them() {
        let tree = tree(&["jest.config.js", "package.json", "a.test.js"]);
        let found = |patched: &[&str]| {
            let patched: Vec<String> = patched.iter().map(|path| (*path).to_owned()).collect();
            globs(&change(&tree, "a.test.js"), &patched)
        };
        let has = |globs: &[String], path: &str| globs.iter().any(|it| it.parse::<PathGlob>().unwrap().is_match(path));
        for path in ["jest.config.js", "package.json", "sub/package.json", ".npmrc", "node_modules/.bin/jest"] {
            assert!(has(&found(&["index.js"]), path), "{path}");
        }
        let without = found(&["package.json"]);
        assert!(!has(&without, "package.json") && has(&without, "jest.config.js"));
    }
}
