//! The hidden files that failed outside of their tests. A test of such a file that passed may be that of another file: runners of
//! Node name tests by their titles alone.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::report::is_script;
use crate::regular;
use crate::workspace::walk::{Descend, walk};

/// The maximum number of files that are read.
const MAX_FILES: usize = 1000;
/// The largest part of a file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The hidden files that failed outside of their tests, each with its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedFiles(Vec<(String, String)>);

impl FailedFiles {
    /// Reads the files that a runner named, from its folder. `hidden` is the folder of the hidden files, or absent. Packages that
    /// are installed there are not searched.
    pub fn of(hidden: Option<&Path>, names: &[String]) -> Self {
        let Some(hidden) = hidden.filter(|_| !names.is_empty()) else { return Self::default() };
        // A name without a folder may be the title of a test.
        let is_named = |path: &Path| {
            let mut names = names.iter().map(|name| name.strip_prefix("./").unwrap_or(name));
            names.any(|name| path == Path::new(name) || (name.contains('/') && path.ends_with(name)))
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        let walked = walk(hidden, |path, meta| {
            if meta.is_file() && is_named(path) {
                paths.push(path.to_owned());
            }
            match path.file_name().and_then(|name| name.to_str()) {
                _ if paths.len() >= MAX_FILES => Descend::End,
                Some(".git" | "node_modules") => Descend::Skip,
                _ => Descend::Enter,
            }
        });
        let text = |path: PathBuf| {
            let mut bytes = Vec::new();
            regular::open(hidden.join(&path)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).ok()?;
            Some((path.to_string_lossy().into_owned(), String::from_utf8_lossy(&bytes).into_owned()))
        };
        if walked.is_ok() { Self(paths.into_iter().filter_map(text).collect()) } else { Self::default() }
    }

    /// Returns the file that calls a function with the title of a test in quotes, unless the name of the test has its own file. In
    /// other places, the same text says nothing: `['add', 'take'].map(…)`.
    pub fn with_test(&self, name: &str) -> Option<&str> {
        let (file, title) = (name.split(" > ").next()?, name.rsplit(" > ").next()?);
        let is_call = |text: &str, at: usize| text.get(..at).is_some_and(|it| it.trim_end().ends_with('('));
        let has_title = |text: &str| {
            let mut quoted = ['"', '\'', '`'].into_iter().map(|quote| format!("{quote}{title}{quote}"));
            quoted.any(|quoted| text.match_indices(&quoted).any(|(at, _)| is_call(text, at)))
        };
        let mut files = self.0.iter().filter(|_| !is_script(file) && !title.is_empty());
        files.find(|(_, text)| has_title(text)).map(|(path, _)| path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_file_is_found_by_its_path_and_by_the_titles_of_its_tests() {
        let hidden = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(hidden.path().join("web/spec")).unwrap();
        let text = "test(\n  'takes', () => {});\nconst all = ['add'];\n";
        std::fs::write(hidden.path().join("web/spec/take.js"), text).unwrap();
        std::fs::create_dir_all(hidden.path().join("web/node_modules/a")).unwrap();
        std::fs::write(hidden.path().join("web/node_modules/a/take.js"), "test('other')").unwrap();
        let found = |name: &str, test: &str| {
            FailedFiles::of(Some(hidden.path()), &[name.to_owned()]).with_test(test).map(str::to_owned)
        };
        for (name, test, is) in [
            ("./web/spec/take.js", "takes", true),
            // From the folder in which the tests ran.
            ("spec/take.js", "suite > takes", true),
            ("web/spec/take.js", "take", false),
            ("web/spec/take.js", "web/spec/other.js > takes", false),
            ("spec/other.js", "takes", false),
            ("take.js", "takes", false),
            // The title is one of other words, or in a package.
            ("web/spec/take.js", "add", false),
            ("web/node_modules/a/take.js", "other", false),
        ] {
            assert_eq!(found(name, test).as_deref(), is.then_some("web/spec/take.js"), "{name} {test}");
        }
        assert_eq!(FailedFiles::of(None, &["web/spec/take.js".to_owned()]), FailedFiles::default());
    }
}
