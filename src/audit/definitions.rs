//! Finds the names that a patch defines: functions, types and constants, and the files that it adds. Pure.

use std::collections::BTreeSet;

use crate::workspace::patch::sections::{Section, sections};

/// The words before the name of a definition, in the languages of the test runners.
const BEFORE: [&str; 21] = [
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
    "macro_rules",
    "sub",
    "record",
];
/// Words between those and the name.
const BETWEEN: [&str; 6] = ["mut", "async", "fn", "function", "class", "unsafe"];
/// Common names of files, without extension. A prompt that contains one of them does not reveal the solution.
const USUAL: [&str; 12] =
    ["__init__", "__main__", "index", "init", "lib", "main", "mod", "package", "setup", "test", "utils", "util"];
/// Short words that a prompt has without meaning a function of this name.
const PROSE: &str = " a add all an and any are as ask at bad be big bug but by can cut day do end few fit fix for get go had \
    has if in is it its key let log low map max may min new no not now of off old on one or our out own pay per put run \
    say see set so sum tag the to too top try two up use via was way we who why yes yet you ";

/// Returns the names that the added lines of a patch define.
pub fn names(patch: &str) -> BTreeSet<&str> {
    let added = patch.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
    let is_comment = |line: &&str| ["#", "//", "*", "--"].iter().any(|start| line.trim_start().starts_with(start));
    added.filter(|line| !is_comment(line)).flat_map(in_line).collect()
}

/// Returns the names that a line of code defines.
pub fn in_line(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        // A method of Go has its receiver before its name: `func (c *Counter) Inc(`.
        let name = match (word, line.split_once("func (")) {
            ("func", Some((_, rest))) => rest.split_once(") ").and_then(|(_, rest)| {
                rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())
            }),
            (word, _) if BEFORE.contains(&word) => words.clone().find(|word| !BETWEEN.contains(word)),
            ("exports", _) => words.clone().next().filter(|name| line.contains(&format!("exports.{name} ="))),
            _ => None,
        };
        names.extend(name.filter(|name| name.chars().count() >= 2 && name.chars().any(char::is_alphabetic)));
    }
    names
}

/// Returns the names, without extension, of the files that a patch adds.
pub fn files(patch: &str) -> BTreeSet<String> {
    let added = sections(patch.as_bytes()).into_iter().filter_map(Section::added);
    let names = added.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let stems = names.filter_map(|name| Some(stem(&name)?.to_owned()));
    stems.filter(|stem| stem.chars().count() >= 3 && !USUAL.contains(&stem.as_str())).collect()
}

/// Returns the name of a file without its extensions: `pad` of `lib/pad.test.js`.
pub fn stem(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.split('.').find(|part| !part.is_empty())
}

/// Returns true if a word is not a word of a natural language: `snake_case`, `camelCase`, `name2`.
pub fn is_identifier(word: &str) -> bool {
    has_shape(word) || word.chars().any(|c| c.is_ascii_digit())
}

/// Returns true if a word has the shape of a name with several words: `snake_case`, `camelCase`.
fn has_shape(word: &str) -> bool {
    let inner = word.trim_matches('_');
    let letters: Vec<char> = inner.chars().collect();
    let changes_case = letters.windows(2).any(|pair| matches!(pair, [a, b] if a.is_lowercase() && b.is_uppercase()));
    inner.contains('_') || changes_case
}

/// Returns true if a text means a name of the code by a word that a patch adds, and not a word of a natural language: by the
/// shape of the word, by its marks in the text, or because the text calls it a function, a class or the like. `code` are
/// the words of the patch's code.
pub fn is_meant(text: &str, word: &str, code: &BTreeSet<&str>, defined: &BTreeSet<&str>) -> bool {
    let is_short = word.chars().count() < 4 && defined.contains(word) && !is_prose(word);
    let is_code = code.contains(word) || defined.contains(word);
    has_shape(word) || is_short || (is_code && (is_identifier(word) || in_code(text, word) || is_called(text, word)))
}

/// Returns true if a text calls a word a part of code: `the function half`, `a half method`.
fn is_called(text: &str, word: &str) -> bool {
    const KINDS: [&str; 17] = [
        "function",
        "functions",
        "method",
        "methods",
        "class",
        "classes",
        "type",
        "struct",
        "enum",
        "trait",
        "constant",
        "variable",
        "module",
        "field",
        "property",
        "parameter",
        "macro",
    ];
    let words: Vec<&str> =
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|it| !it.is_empty()).collect();
    let is_kind = |word: &str| KINDS.contains(&word.to_lowercase().as_str());
    words.windows(2).any(|pair| matches!(pair, [a, b] if (*a == word && is_kind(b)) || (is_kind(a) && *b == word)))
}

/// Returns the words of the code that a patch adds, without comments and literals.
pub fn code_words(patch: &str) -> BTreeSet<&str> {
    let added = patch.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
    let mut words = BTreeSet::new();
    let mut is_text = false;
    for line in added {
        // The text of a docstring has several lines.
        let marks = line.matches("\"\"\"").count() + line.matches("'''").count();
        let was_text = is_text;
        is_text ^= marks % 2 == 1;
        let start = line.trim_start();
        if was_text || marks > 0 || ["#", "//", "/*", "*", "--"].iter().any(|mark| start.starts_with(mark)) {
            continue;
        }
        let code = without_literals(line);
        words.extend(code.into_iter().flat_map(|part| part.split(|c: char| !(c.is_alphanumeric() || c == '_'))));
    }
    words
}

/// Returns the parts of a line of code between its literals, up to a comment.
fn without_literals(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    loop {
        // A lifetime of Rust has a single quote too; a literal begins after a sign or a space.
        let begins = |at: usize, mark: &str| {
            mark != "'"
                || rest.get(..at).and_then(|text| text.chars().next_back()).is_none_or(|c| " (,[=:+{".contains(c))
        };
        let comment = ["//", " #"].iter().filter_map(|mark| rest.find(mark)).min();
        let open = rest
            .match_indices(['"', '\'', '`'])
            .find(|(at, mark)| begins(*at, mark) && rest.get(at + 1..).is_some_and(|after| after.contains(mark)));
        match (comment, open) {
            (Some(comment), open) if open.is_none_or(|(at, _)| comment < at) => {
                parts.extend(rest.get(..comment));
                return parts;
            }
            (_, Some((at, mark))) => {
                parts.extend(rest.get(..at));
                let after = rest.get(at + 1..).unwrap_or_default();
                rest = after.split_once(mark).map_or("", |(_, rest)| rest);
            }
            (_, None) => {
                parts.push(rest);
                return parts;
            }
        }
    }
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
                     +  let mut x2 = 1\n+  const x1 = 2\n+++ b/def no\n+call(def_x)\n+macro_rules! total {\n";
        assert_eq!(names(patch).into_iter().collect::<Vec<_>>(), ["Inc", "go", "inc", "total", "up", "x1", "x2"]);
    }

    #[test]
    fn words_of_code_are_not_those_of_its_comments_and_literals() {
        let patch = "+++ b/no.py\n+x = f(\"quoted // text\", 'more', `raw`) # note\n+// all\n+fn g<'a>(y: &'a str, z: &'a str) {} // end\n\
                     +\"\"\"Doc.\n+string\n+\"\"\"\n-old = 1\n+print('it')\n";
        let found = code_words(patch);
        for word in ["x", "f", "fn", "g", "y", "z", "str", "print"] {
            assert!(found.contains(word), "{word}: {found:?}");
        }
        for word in ["quoted", "text", "more", "raw", "note", "all", "end", "Doc", "string", "old", "it", "no"] {
            assert!(!found.contains(word), "{word}: {found:?}");
        }
    }

    #[test]
    fn files_that_a_patch_adds_are_named_without_extension() {
        let patch = "diff --git a/a/new_one.py b/a/new_one.py\nnew file mode 100644\n--- /dev/null\n+++ b/a/new_one.py\n+x\n\
                     diff --git a/old.py b/old.py\n--- a/old.py\n+++ b/old.py\n+y\ndiff --git a/p.py b/q/moved.py\n\
                     rename from p.py\nrename to q/moved.py\ndiff --git a/m/__init__.py b/m/__init__.py\n--- /dev/null\n\
                     +++ b/m/__init__.py\n\
                     diff --git \"a/gr\\303\\266\\303\\237e.py\" \"b/gr\\303\\266\\303\\237e.py\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/gr\\303\\266\\303\\237e.py\"\n@@ -0,0 +1 @@\n+x\n\
                     diff --git a/logo_big.png b/logo_big.png\nnew file mode 100644\nGIT binary patch\nliteral 1\nIc\n";
        assert_eq!(files(patch).into_iter().collect::<Vec<_>>(), ["größe", "logo_big", "moved", "new_one"]);
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
