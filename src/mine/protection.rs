//! The files that decide about tests besides the hidden ones: test files that an agent adds, and settings of runners.
//! They are protected in a mined case, so that they are removed or restored before the tests run. Pure.

use super::candidate::Role;
use super::runner::Tree;
use crate::values::PathGlob;

/// Globs of files that runners find or obey, by the ending of the changed tests. A module of code that an agent may add
/// must not match: for Rust, `src/parser/tests.rs` is a part of the crate.
const BY_ENDING: [(&[&str], &[&str]); 5] = [
    (
        &[".py"],
        &[
            "**/{test,tests}/**",
            "**/test_*.py",
            "**/*_{test,tests}.py",
            "**/{test,tests,conftest}.py",
            "{pytest,tox}.ini",
        ],
    ),
    (
        &[".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".mts"],
        &[
            "**/{test,tests,__tests__}/**",
            "**/*{.,-,_}{test,tests,spec}.{js,cjs,mjs,jsx,ts,cts,mts,tsx}",
            "**/{test,tests}.{js,cjs,mjs,ts}",
            "**/test-*.{js,cjs,mjs,ts}",
            "{.mocharc,jest.config,vitest.config}.*",
        ],
    ),
    (&[".rs"], &["tests/**", "crates/*/tests/**", ".cargo/**"]),
    (&[".go"], &["**/*_test.go", "**/testdata/**"]),
    (&[".java", ".kt", ".groovy", ".scala"], &["**/src/test/**"]),
];

/// Returns the globs for a case. A glob is left out if it applies to code of the repository, which an agent may have to
/// change.
pub fn globs(before: &Tree, after: &Tree, changed_tests: &[String]) -> Vec<String> {
    let of_languages = BY_ENDING
        .iter()
        .filter(|(endings, _)| changed_tests.iter().any(|path| endings.iter().any(|ending| path.ends_with(ending))));
    let all = of_languages.flat_map(|(_, globs)| globs.iter().map(|glob| (*glob).to_owned()));
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
        // An agent may add a module of tests to a crate.
        let rust = tree(&["src/lib.rs", "tests/all.rs"]);
        let found = globs(&rust, &rust, &["tests/all.rs".to_owned()]);
        let is_protected = |path: &str| found.iter().any(|glob| glob.parse::<PathGlob>().unwrap().is_match(path));
        assert!(is_protected("tests/more.rs") && is_protected(".cargo/config.toml"));
        assert!(!is_protected("src/tests.rs") && !is_protected("src/tests/mod.rs"));
        // A glob that applies to code of the repository is left out.
        let settings = tree(&["jest.config.js", "a.test.js"]);
        assert_eq!(Role::of("jest.config.js"), Role::Code);
        let found = globs(&settings, &settings, &["a.test.js".to_owned()]);
        assert!(!found.iter().any(|glob| glob.contains("jest.config")), "{found:?}");
    }
}
