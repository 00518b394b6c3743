//! The syntax of files by their endings: which lines are code, and which are comments or texts about code. Pure.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

/// The syntax of a kind of file.
pub struct Style {
    /// The starts of comments.
    pub comments: &'static [&'static str],
    /// The words that are opposites of each other.
    pub words: &'static [(&'static str, &'static str)],
    /// True if definitions begin with a text about them.
    pub has_docstrings: bool,
    /// True if ` < ` and ` > ` compare, instead of redirecting or quoting.
    pub angles: bool,
}

const C_LIKE: [&str; 28] = [
    "rs", "go", "js", "mjs", "cjs", "ts", "jsx", "tsx", "java", "c", "h", "cc", "cpp", "hpp", "cs", "swift", "kt",
    "scala", "php", "dart", "zig", "css", "scss", "less", "groovy", "proto", "m", "json5",
];
const SHELL: [&str; 4] = ["sh", "bash", "zsh", "fish"];
const HASHED: [&str; 13] = ["py", "pyi", "rb", "pl", "r", "jl", "yaml", "yml", "toml", "cfg", "ini", "mk", "ex"];

impl Style {
    /// Returns the syntax of a file, by the ending of its name.
    pub fn of(path: &Path) -> Self {
        const BOOLEANS: [(&str, &str); 4] = [("true", "false"), ("True", "False"), ("TRUE", "FALSE"), ("&&", "||")];
        const WITH_WORDS: [(&str, &str); 5] =
            [("true", "false"), ("True", "False"), ("TRUE", "FALSE"), ("&&", "||"), ("and", "or")];
        const TESTS: [(&str, &str); 5] =
            [("-eq", "-ne"), ("-lt", "-ge"), ("-gt", "-le"), ("true", "false"), ("&&", "||")];
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let is_one_of = |endings: &[&str]| endings.contains(&ending);
        let has_docstrings = is_one_of(&["py", "pyi"]);
        let (comments, words, angles): (&[&str], &[(&str, &str)], bool) = if is_one_of(&C_LIKE) {
            (&["//", "/*", "*"], &BOOLEANS, true)
        } else if is_one_of(&SHELL) {
            (&["#"], &TESTS, false)
        } else if is_one_of(&HASHED) {
            (&["#"], &WITH_WORDS, true)
        } else if is_one_of(&["sql", "lua", "hs"]) {
            (&["--"], &WITH_WORDS, true)
        } else {
            (&[], &BOOLEANS, false)
        };
        Self { comments, words, has_docstrings, angles }
    }

    /// Returns true if a line is more than white space, punctuation or a comment, so that an error in it may matter.
    pub fn is_code(&self, line: &str) -> bool {
        let line = line.trim();
        let is_comment = |start: &&&str| line.starts_with(**start);
        line.chars().any(char::is_alphanumeric) && self.comments.iter().find(is_comment).is_none()
    }

    /// Returns the part of a line before a comment that follows code.
    pub fn code<'a>(&self, line: &'a str) -> &'a str {
        let starts = self.comments.iter().filter(|start| **start != "*");
        let ends = starts.filter_map(|start| line.find(&format!(" {start} ")));
        line.get(..ends.min().unwrap_or(line.len())).unwrap_or(line)
    }
}

/// Returns the indices of the lines of Python that are texts about code: strings at the beginning of a definition or of the
/// file.
pub fn docstrings(lines: &[Vec<u8>], is_beginning: bool) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut can_begin = is_beginning;
    let mut open: Option<&str> = None;
    for (index, line) in lines.iter().enumerate() {
        let Ok(line) = std::str::from_utf8(line).map(str::trim) else { continue };
        if let Some(quote) = open {
            found.insert(index);
            open = Some(quote).filter(|_| !line.contains(quote));
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let text = line.trim_start_matches(['r', 'R', 'u', 'U']);
        let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| text.starts_with(quote));
        if let Some(quote) = quote.filter(|_| can_begin) {
            let rest = text.get(quote.len()..).unwrap_or_default();
            // A string that code follows is no text alone.
            if rest.ends_with(quote) || (quote.len() == 3 && !rest.contains(quote)) {
                found.insert(index);
                open = Some(quote).filter(|_| !rest.ends_with(quote));
            }
        }
        can_begin = line.ends_with(':');
    }
    found
}

/// Returns true if every changed line of a hunk of a unified diff is a comment, a docstring or white space. Returns
/// false if the comments of the file's language are not known. `lines` are the lines of the hunk with their signs, and
/// `is_beginning` is true if the hunk is at the beginning of the file.
pub fn changes_no_code(path: &Path, lines: &[&str], is_beginning: bool) -> bool {
    let style = Style::of(path);
    // Without known comments, every line may be one that matters.
    !style.comments.is_empty()
        && ['-', '+'].into_iter().all(|sign| {
            let side: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with([' ', sign])).collect();
            let bare: Vec<Vec<u8>> =
                side.iter().map(|line| line.as_bytes().get(1..).unwrap_or_default().to_vec()).collect();
            let texts = match style.has_docstrings {
                true => docstrings(&bare, is_beginning).into_iter().chain(0..end_of_text(&side)).collect(),
                false => BTreeSet::new(),
            };
            let changed = side.iter().enumerate().filter(|(_, line)| line.starts_with(sign));
            changed
                .into_iter()
                .all(|(at, line)| texts.contains(&at) || !style.is_code(line.get(1..).unwrap_or_default()))
        })
}

/// Returns the number of lines at the beginning of a hunk that belong to a docstring that begins before the hunk.
fn end_of_text(side: &[&str]) -> usize {
    let text = |line: &&str| line.get(1..).unwrap_or_default().trim().to_owned();
    let Some(at) = side.iter().position(|line| text(line).matches("\"\"\"").count() % 2 == 1) else { return 0 };
    let ends = side.get(at).is_some_and(|line| text(line).ends_with("\"\"\""));
    let before = side.get(..at).unwrap_or_default().iter().rev().map(text).find(|line| !line.is_empty());
    let begins = side.get(at).is_some_and(|line| text(line).starts_with("\"\"\""))
        && before.is_none_or(|line| line.ends_with(':'));
    if ends && !begins { at + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_about_code_are_told_from_code() {
        let of = |path: &str, hunk: &str| changes_no_code(Path::new(path), &hunk.lines().collect::<Vec<_>>(), false);
        for (path, hunk, no_code) in [
            ("a.py", " x = 1\n-# old\n+# new\n+\n y = 2", true),
            ("a.py", " x = 1\n+# new\n+y = 2", false),
            ("a.py", " def f():\n+    \"\"\"Does f.\"\"\"\n     return 1", true),
            ("a.py", "     text\n+    .. deprecated:: 2.0\n+        Gone.\n     \"\"\"\n     return 1", true),
            ("a.py", "     text\n+    more\n     \"\"\"\n-    return 1\n+    return 2", false),
            ("a.py", " def f():\n     \"\"\"\n+    More.\n     \"\"\"", true),
            ("a.rs", "+/// A page.\n+//\n fn f() {}", true),
            ("a.rs", "-fn f() {}\n+fn g() {}", false),
            ("README", "+A sentence.", false),
        ] {
            assert_eq!(of(path, hunk), no_code, "{path}: {hunk}");
        }
    }
}
