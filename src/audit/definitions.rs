//! Finds the names that a patch defines: functions, types and constants, and the files that it adds. Pure.

use std::collections::BTreeSet;

/// The words before the name of a definition, in the languages of the test runners.
const BEFORE: [&str; 20] = [
    "def",
    "fn",
    "func",
    "function",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "type",
    "const",
    "let",
    "var",
    "val",
    "static",
    "mod",
    "module",
    "macro",
    "sub",
    "record",
];
/// The names of files that every project has.
const USUAL: [&str; 12] =
    ["__init__", "__main__", "index", "init", "lib", "main", "mod", "package", "setup", "test", "utils", "util"];
/// Short words that a prompt has without meaning a function of this name.
const PROSE: &str = " a add all an and any are as ask at bad be big bug but by can cut day do end few fit fix for get go had \
    has if in is it its key let log low map max may min new no not now of off old on one or our out own pay per put run \
    say see set so sum tag the to too top try two up use via was way we who why yes yet you ";

/// Returns the names that the added lines of a patch define.
pub fn names(patch: &str) -> BTreeSet<&str> {
    let added = patch.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
    let mut names = BTreeSet::new();
    let is_comment = |line: &&str| ["#", "//", "*", "--"].iter().any(|start| line.trim_start().starts_with(start));
    for line in added.filter(|line| !is_comment(line)) {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            // A method of Go has its receiver before its name: `func (c *Counter) Inc(`.
            let name = match (word, line.split_once("func (")) {
                ("func", Some((_, rest))) => rest.split_once(") ").and_then(|(_, rest)| {
                    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())
                }),
                (word, _) if BEFORE.contains(&word) => words.clone().next(),
                ("exports", _) => words.clone().next().filter(|name| line.contains(&format!("exports.{name} ="))),
                _ => None,
            };
            names.extend(name.filter(|name| name.chars().count() >= 2 && name.chars().any(char::is_alphabetic)));
        }
    }
    names
}

/// Returns the names, without extension, of the files that a patch adds.
pub fn files(patch: &str) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut is_new = false;
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            is_new = false;
        } else if line == "--- /dev/null" {
            is_new = true;
        }
        let path = line.strip_prefix("rename to ").or_else(|| line.strip_prefix("+++ b/").filter(|_| is_new));
        let name = path.and_then(|path| path.trim_matches('"').rsplit('/').next());
        let stem = name.and_then(|name| name.split('.').find(|part| !part.is_empty()));
        files.extend(stem.filter(|stem| stem.chars().count() >= 3 && !USUAL.contains(stem)).map(str::to_owned));
    }
    files
}

/// Returns true if a word is a short one of the English language.
pub fn is_prose(word: &str) -> bool {
    PROSE.contains(&format!(" {word} "))
}

/// Returns true if a text has a word as code: called, quoted as code, or as a member.
pub fn in_code(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, found)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + found.len()..).and_then(|text| text.chars().next());
        let is_marked = matches!(before, Some('`' | '.' | ':')) || matches!(after, Some('(' | '`'));
        is_marked && !is_part(before) && !is_part(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_in_added_lines() {
        let patch = "+def inc(a):\n-def dec(a):\n def keep():\n+pub fn go<T>() {}\n+func (c *Counter) Inc() {\n+exports.up = s => s\n\
                     +  const x1 = 2\n+++ b/def no\n+call(def_x)\n";
        assert_eq!(names(patch).into_iter().collect::<Vec<_>>(), ["Inc", "go", "inc", "up", "x1"]);
    }

    #[test]
    fn files_that_a_patch_adds_are_named_without_extension() {
        let patch = "diff --git a/a/new_one.py b/a/new_one.py\nnew file mode 100644\n--- /dev/null\n+++ b/a/new_one.py\n+x\n\
                     diff --git a/old.py b/old.py\n--- a/old.py\n+++ b/old.py\n+y\ndiff --git a/p.py b/q/moved.py\n\
                     rename from p.py\nrename to q/moved.py\ndiff --git a/m/__init__.py b/m/__init__.py\n--- /dev/null\n\
                     +++ b/m/__init__.py\n";
        assert_eq!(files(patch).into_iter().collect::<Vec<_>>(), ["moved", "new_one"]);
    }

    #[test]
    fn code_is_called_quoted_or_a_member() {
        for (text, is) in
            [("add() it", true), ("`add`", true), ("x.add", true), ("we add it", false), ("x.added", false)]
        {
            assert_eq!(in_code(text, "add"), is, "{text}");
        }
    }
}
