//! The files that decide about tests besides the hidden ones: test files that an agent adds, and settings of runners.
//! They are protected in a mined case, so that they are removed or restored before the tests run. Pure.

use super::candidate::{Role, TEST_FOLDERS};
use super::runner::Tree;
use crate::values::PathGlob;

/// Globs of files that runners find or obey, by the ending of the changed tests.
const BY_ENDING: [(&[&str], &[&str]); 5] = [
    (&[".py"], &["**/test*.py", "**/*_test.py", "**/*_tests.py", "**/conftest.py", "pytest.ini", "tox.ini"]),
    (
        &[".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".mts"],
        &[
            "**/*{.,-,_}{test,tests,spec}.{js,cjs,mjs,jsx,ts,cts,mts,tsx}",
            "**/{test,tests}.{js,cjs,mjs,ts}",
            "**/test-*.{js,cjs,mjs,ts}",
            "{.mocharc,jest.config,vitest.config}.*",
        ],
    ),
    (&[".rs"], &["**/{test,tests}.rs", "**/*_{test,tests}.rs", ".cargo/**"]),
    (&[".go"], &["**/*_test.go"]),
    (&[".java", ".kt", ".groovy", ".scala"], &["**/*{Test,Tests}.{java,kt,groovy,scala}"]),
];

/// Returns the globs for a case. A glob is left out if it applies to code of the repository, which an agent may have to
/// change.
pub fn globs(before: &Tree, after: &Tree, changed_tests: &[String]) -> Vec<String> {
    let folders = format!("**/{{{}}}/**", TEST_FOLDERS.join(","));
    let of_languages = BY_ENDING
        .iter()
        .filter(|(endings, _)| changed_tests.iter().any(|path| endings.iter().any(|ending| path.ends_with(ending))));
    let all = of_languages.flat_map(|(_, globs)| globs.iter().map(|glob| (*glob).to_owned())).chain([folders]);
    let is_code = |path: &&String| matches!(Role::of(path), Role::Code | Role::Dependencies);
    let code: Vec<&String> = before.files.iter().chain(&after.files).filter(is_code).collect();
    let spares_code = |text: &String| {
        text.parse::<PathGlob>().is_ok_and(|glob| !code.iter().any(|path| glob.is_match(path) && !is_settings(path)))
    };
    all.filter(spares_code).collect()
}

/// Returns true if a file has only settings of a test runner.
fn is_settings(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["pytest.ini", "tox.ini"].contains(&name) || name.starts_with(".mocharc")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> Tree {
        Tree { files: files.iter().map(|path| (*path).to_owned()).collect(), ..Tree::default() }
    }

    #[test]
    fn the_files_of_a_language_and_its_folders_are_protected() {
        let tree = tree(&["calc.py", "tests/test_calc.py", "pytest.ini"]);
        let found = globs(&tree, &tree, &["tests/test_calc.py".to_owned()]);
        let is_protected = |path: &str| found.iter().any(|glob| glob.parse::<PathGlob>().unwrap().is_match(path));
        for path in ["test_aaa.py", "conftest.py", "pkg/conftest.py", "tests/test_calc/__init__.py", "pytest.ini"] {
            assert!(is_protected(path), "{path}");
        }
        assert!(!is_protected("calc.py") && !is_protected("latest.py") && !is_protected("calc.test.js"));
    }

    #[test]
    fn code_is_not_protected() {
        let tree = tree(&["testing_tools.py", "test_calc.py"]);
        let found = globs(&tree, &tree, &["test_calc.py".to_owned()]);
        assert!(!found.contains(&"**/test*.py".to_owned()), "{found:?}");
        assert!(found.contains(&"**/conftest.py".to_owned()));
    }
}
