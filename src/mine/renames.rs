//! Finds out whether the changes of tests only rename or move them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::patch::sections::sections;

/// The removed and the added lines of a file.
struct Lines<'a> {
    path: String,
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
}

/// Returns the new names of tests, or the new paths of their files, if a patch of tests changes nothing else.
pub(super) fn renamed(patch: &str) -> Option<Vec<String>> {
    let files = files(patch);
    let (whole, parts): (Vec<&Lines>, Vec<&Lines>) =
        files.iter().partition(|file| file.removed.is_empty() != file.added.is_empty());
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut moved: BTreeSet<&str> = BTreeSet::new();
    for file in parts {
        compare(&file.removed, &file.added, &mut names).then_some(())?;
    }
    // A file that is moved is a deleted and a created one.
    let (mut gone, new): (Vec<&Lines>, Vec<&Lines>) = whole.into_iter().partition(|file| file.added.is_empty());
    for file in new {
        let at = gone.iter().position(|old| {
            let mut with = names.clone();
            let is_same = compare(&old.removed, &file.added, &mut with);
            if is_same {
                names = with;
            }
            is_same
        })?;
        gone.remove(at);
        moved.insert(&file.path);
    }
    let all: BTreeSet<&str> = names.values().copied().chain(moved).collect();
    (gone.is_empty() && !all.is_empty()).then(|| all.into_iter().map(str::to_owned).collect())
}

/// Returns the files of a patch of git, with their changed lines that are not empty.
fn files(patch: &str) -> Vec<Lines<'_>> {
    let mut files: Vec<Lines> = Vec::new();
    for section in sections(patch.as_bytes()) {
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for line in section.texts() {
            if let Some(text) = line.strip_prefix('-').filter(|text| !text.trim().is_empty()) {
                removed.push(text);
            } else if let Some(text) = line.strip_prefix('+').filter(|text| !text.trim().is_empty()) {
                added.push(text);
            }
        }
        let path = section.new.or(section.old).unwrap_or_default();
        files.push(Lines { path: path.to_string_lossy().into_owned(), removed, added });
    }
    files
}

/// Returns true if lines differ only in the names of definitions, and adds these names.
fn compare<'a>(removed: &[&'a str], added: &[&'a str], names: &mut BTreeMap<&'a str, &'a str>) -> bool {
    let pairs = || removed.iter().zip(added);
    for (old, new) in pairs() {
        if let (Some((before, old, _)), Some((start, new, _))) = (definition(old), definition(new))
            && before == start
            && old != new
            && names.insert(old, new).is_some_and(|other| other != new)
        {
            return false;
        }
    }
    let with_names = |line: &str| {
        let mut text = String::new();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        for part in line.split_inclusive(|c| !is_word(c)) {
            let end = part.find(|c| !is_word(c)).unwrap_or(part.len());
            let (word, rest) = part.split_at(end);
            text.push_str(names.get(word).copied().unwrap_or(word));
            text.push_str(rest);
        }
        text
    };
    let is_same = |old: &str, new: &str| match (definition(old), definition(new)) {
        (Some((start, name, rest)), Some((start_new, name_new, rest_new))) => {
            start == start_new && names.get(name).copied().unwrap_or(name) == name_new && with_names(rest) == rest_new
        }
        _ => with_names(old) == new,
    };
    removed.len() == added.len() && pairs().all(|(old, new)| is_same(old, new))
}

/// Splits a line that defines a test or a class before and after its name.
fn definition(line: &str) -> Option<(&str, &str, &str)> {
    const WORDS: [&str; 6] = ["def ", "class ", "fn ", "func ", "void ", "mod "];
    const CALLS: [&str; 6] = ["it(", "test(", "describe(", "suite(", "context(", "specify("];
    let start = line.len() - line.trim_start().len();
    let code = line.get(start..)?;
    if CALLS.iter().any(|call| code.starts_with(call)) {
        let open = start + code.find(['\'', '"', '`'])?;
        let quote = line.get(open..)?.chars().next()?;
        let end = open + 1 + line.get(open + 1..)?.find(quote)?;
        return Some((line.get(..open)?, line.get(open + 1..end)?, line.get(end..)?));
    }
    let word = WORDS.iter().find_map(|word| Some((code.find(word)?, word.len())));
    // Only modifiers are before the word.
    let (at, length) = word.filter(|(at, _)| {
        code.get(..*at).is_some_and(|text| text.chars().all(|c| c.is_alphanumeric() || "_ ()".contains(c)))
    })?;
    let from = start + at + length;
    let rest = line.get(from..)?;
    let end = from + rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    (end > from).then(|| Some((line.get(..from)?, line.get(from..end)?, line.get(end..)?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(path: &str, lines: &str) -> String {
        format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,3 +1,3 @@\n{lines}")
    }

    #[test]
    fn changes_that_only_rename_or_move_tests_are_seen() {
        let file = |lines: &str| patch("tests/test_a.py", lines);
        for (patch, names) in [
            (file("-class Sum(TestCase):\n+class Sums(TestCase):\n     x\n"), Some(vec!["Sums"])),
            (
                file(
                    "-    def test_a(self):\n-        return Sum()\n-class Sum:\n+    def test_b(self):\n+        return Sums()\n+class Sums:\n",
                ),
                Some(vec!["Sums", "test_b"]),
            ),
            (patch("a.test.js", "-it('adds', () => {\n+it('sums up', () => {\n"), Some(vec!["sums up"])),
            (patch("tests/a.rs", "-    fn adds() {\n+    fn sums() {\n"), Some(vec!["sums"])),
            (patch("a_test.go", "-func TestA(t *testing.T) {\n+func TestB(t *testing.T) {\n"), Some(vec!["TestB"])),
            (patch("ATest.java", "-  public void adds() {\n+  public void sums() {\n"), Some(vec!["sums"])),
            (
                patch("tests/old.py", "-import x\n-def test_a():\n")
                    + &patch("tests/new.py", "+import x\n+def test_b():\n"),
                Some(vec!["test_b", "tests/new.py"]),
            ),
            // Another expectation, a further test, a removed one, and a name that becomes two.
            (file("-    def test_a(self):\n-        x(1)\n+    def test_b(self):\n+        x(2)\n"), None),
            (file("-def test_a():\n+def test_b():\n+def test_c():\n"), None),
            (patch("tests/old.py", "-def test_a():\n"), None),
            (file("-def a():\n-def a():\n+def b():\n+def c():\n"), None),
            (String::new(), None),
        ] {
            let expected = names.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(renamed(&patch), expected, "{patch}");
        }
    }
}
