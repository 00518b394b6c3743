//! The names that coder-eval ignores: it copies no such file of a template, and its globs find none.

use std::path::Path;

use regex::RegexSet;

use super::super::refused::{Refused, refused};

/// The default patterns of the source.
const DEFAULT: [&str; 36] = [
    ".venv",
    "venv",
    "ENV",
    "env",
    "virtualenv",
    ".git",
    ".svn",
    ".hg",
    "__pycache__",
    "*.pyc",
    "*.pyo",
    "*.pyd",
    ".pytest_cache",
    ".ruff_cache",
    "*.egg-info",
    ".eggs",
    "dist",
    "build",
    ".vscode",
    ".idea",
    "*.swp",
    "*.swo",
    "*~",
    ".DS_Store",
    "Thumbs.db",
    "node_modules",
    ".npm",
    "bower_components",
    ".coverage",
    "htmlcov",
    ".tox",
    ".nox",
    "*.so",
    "*.dylib",
    "*.dll",
    "cli_mocks",
];

/// Returns the default patterns with those of `ignore_patterns`. An entry that begins with `!` removes a pattern.
///
/// # Errors
/// Returns an error if an entry names no pattern.
pub fn patterns(own: &[String]) -> Result<Vec<String>, Refused> {
    let mut patterns: Vec<String> = DEFAULT.iter().map(|&pattern| pattern.to_owned()).collect();
    for entry in own.iter().map(|entry| entry.trim()) {
        match entry.strip_prefix('!') {
            _ if entry.is_empty() || entry == "!" => {
                return Err(refused("sandbox.ignore_patterns", "an entry names no pattern"));
            }
            Some(removed) => patterns.retain(|pattern| pattern != removed),
            None => patterns.push(entry.to_owned()),
        }
    }
    Ok(patterns)
}

/// Returns true if a part of a path matches a pattern.
pub fn is_ignored(path: &Path, patterns: &[String]) -> bool {
    path.iter().any(|part| patterns.iter().any(|pattern| is_match(&part.to_string_lossy(), pattern)))
}

/// Returns true if a name matches a pattern. As in the source, `*` has a meaning only at one end of a pattern.
fn is_match(name: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}

/// Returns the patterns of `include_patterns` for the paths that are copied although they are ignored. As in the source,
/// `*` also matches `/`.
///
/// # Errors
/// Returns an error if a pattern contains a class of characters.
pub fn included(patterns: &[String]) -> Result<RegexSet, Refused> {
    let wrong = |why: String| refused("include_patterns", why);
    let regex = |written: &String| {
        let path = written.replace('\\', "/");
        let path = path.strip_prefix("./").unwrap_or(&path);
        match path.contains('[') {
            true => Err(wrong(format!("`{written}` contains a class of characters"))),
            false => {
                let regex = regex::escape(path).replace(r"\*", ".*").replace(r"\?", ".");
                Ok(format!(r"(?s)\A{regex}\z"))
            }
        }
    };
    let regexes = patterns.iter().map(regex).collect::<Result<Vec<String>, Refused>>()?;
    RegexSet::new(regexes).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ignored_by_the_default_patterns_and_those_of_the_task() {
        let own = ["!dist".to_owned(), " gen ".to_owned(), "tmp*".to_owned()];
        let (default, own) = (patterns(&[]).unwrap(), patterns(&own).unwrap());
        for (path, by_default, by_own) in [
            ("dist/bundle.js", true, false),
            ("a/node_modules/b.js", true, true),
            ("a/b.pyc", true, true),
            ("a/distance/b", false, false),
            ("gen/a", false, true),
            ("a/tmp1/b", false, true),
            ("a/b.js", false, false),
        ] {
            let found = (is_ignored(Path::new(path), &default), is_ignored(Path::new(path), &own));
            assert_eq!(found, (by_default, by_own), "{path}");
        }
        assert!(patterns(&["!".to_owned()]).is_err() && patterns(&[" ".to_owned()]).is_err());
    }

    #[test]
    fn patterns_that_include_a_path_match_all_of_it() {
        let set = included(&["./dist/*.js".to_owned(), "build/a?".to_owned()]).unwrap();
        for (path, is) in [("dist/a.js", true), ("dist/a/b.js", true), ("x/dist/a.js", false), ("build/ab", true)] {
            assert_eq!(set.is_match(path), is, "{path}");
        }
        assert!(included(&["dist/[ab]".to_owned()]).is_err());
    }
}
