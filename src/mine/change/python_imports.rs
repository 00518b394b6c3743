//! Finds the modules that Python code imports by import statements, in each form of the statement. Pure.

use std::collections::BTreeSet;

/// Words that begin a statement whose body may be in the same line: `try: import checks`.
const BEFORE_COLON: [&str; 13] =
    ["async", "case", "class", "def", "elif", "else", "except", "finally", "for", "if", "try", "while", "with"];

/// Returns the modules that a text may import by statements, as paths. Each dot before a relative one is a `/`.
pub(super) fn imported(text: &str) -> Vec<String> {
    statements(text).iter().flat_map(|statement| modules(statement)).collect()
}

/// Returns the packages, and the modules at the top of Python's path, that a text imports by statements.
pub(in crate::mine) fn packages(text: &str) -> BTreeSet<String> {
    let tops = imported(text).into_iter().filter_map(|module| module.split('/').next().map(str::to_owned));
    tops.filter(|name| !name.is_empty()).collect()
}

/// Returns a text without its parts in triple quotes, such as docstrings: their lines are no statements.
pub(super) fn without_blocks(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some((at, quotes)) =
        ["\"\"\"", "'''"].into_iter().filter_map(|quotes| Some((rest.find(quotes)?, quotes))).min()
    {
        let (before, from) = rest.split_at(at);
        found.push_str(before);
        let inside = from.get(quotes.len()..).unwrap_or_default();
        let is_comment = before.rsplit('\n').next().is_some_and(|line| line.contains('#'));
        rest = match inside.split_once(quotes) {
            Some((_, after)) if !is_comment => after,
            _ => inside,
        };
    }
    found + rest
}

/// Returns the import statements of a text, each in one line with the names in its parentheses.
pub(super) fn statements(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in lines(text) {
        for part in line.split(';').map(str::trim) {
            if is_open {
                if let Some(last) = found.last_mut() {
                    last.push(' ');
                    last.push_str(part);
                }
            } else if let Some(statement) = statement(part) {
                found.push(statement.to_owned());
            } else {
                continue;
            }
            is_open = found.last().is_some_and(|last| last.contains('(') && !last.contains(')'));
        }
    }
    found
}

/// Returns the lines of a text without comments and with single blanks. A line that ends with a backslash includes the next
/// one.
fn lines(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_continued = false;
    for line in text.trim_start_matches('\u{feff}').lines() {
        let code = line.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = code.trim_end_matches('\\').split_whitespace().collect();
        if is_continued && let Some(last) = found.last_mut() {
            last.push(' ');
            last.push_str(&words.join(" "));
        } else {
            found.push(words.join(" "));
        }
        is_continued = code.ends_with('\\');
    }
    found
}

/// Returns the import statement at the start of a line, or after the colon of a statement before it.
fn statement(line: &str) -> Option<&str> {
    let is_import =
        |part: &&str| part.starts_with("import ") || (part.starts_with("from ") && part.contains(" import"));
    let word = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let bodies = line.match_indices(':').filter_map(|(at, _)| line.get(at + 1..)).map(str::trim_start);
    let bodies = bodies.filter(|_| BEFORE_COLON.contains(&word));
    [line].into_iter().chain(bodies).find(is_import)
}

/// Returns the modules that an import statement may import, as paths.
fn modules(statement: &str) -> Vec<String> {
    let names = |list: &str| -> Vec<String> {
        let plain = list.replace(['(', ')'], " ");
        plain.split(',').filter_map(|name| name.split_whitespace().next().map(|name| name.replace('.', "/"))).collect()
    };
    if let Some(list) = statement.strip_prefix("import ") {
        return names(list);
    }
    let Some((module, list)) = statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import")) else {
        return Vec::new();
    };
    let module = module.trim().replace('.', "/");
    let within = names(list).into_iter().map(|name| match module.ends_with('/') {
        true => format!("{module}{name}"),
        false => format!("{module}/{name}"),
    });
    let within: Vec<String> = within.collect();
    [vec![module], within].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_statements_are_found_however_they_are_written() {
        for (text, expected) in [
            ("import os, qa.checks as checks\n", &["os", "qa/checks"][..]),
            ("from qa import \\\n    checks\n", &["qa", "qa/checks"]),
            ("from qa \\\n    import checks\n", &["qa", "qa/checks"]),
            ("import os, \\\n    qa.checks as checks\n", &["os", "qa/checks"]),
            ("from\tqa  import\tchecks\n", &["qa", "qa/checks"]),
            ("from qa import ( # both (\n    checks\n        as same,\n    more)\n", &["qa", "qa/checks", "qa/more"]),
            ("if sys.version_info > (3,): from qa import checks\n", &["qa", "qa/checks"]),
            ("try: import qa.checks\nexcept ImportError: checks = None\n", &["qa/checks"]),
            ("def a(x: int): import checks; import more\n", &["checks", "more"]),
            ("\u{feff}import checks\n", &["checks"]),
            ("from the table (of sums\nimport checks\n", &["checks"]),
            ("from .base import x\n", &["/base", "/base/x"]),
            ("print('a: import b')\nimportant = 1\n# import c\n", &[]),
        ] {
            assert_eq!(imported(text), expected, "{text}");
        }
        let text = "import os.path as p, json\nfrom hamcrest.core import x\nfrom .x import y\n";
        assert_eq!(packages(text), BTreeSet::from(["hamcrest", "json", "os"].map(str::to_owned)));
    }
    #[test]
    fn lines_of_a_docstring_are_no_statements() {
        for (text, expected) in [
            ("\"\"\"Sums.\nimport one\n\"\"\"\nimport two\n", &["two"][..]),
            ("'''\"\"\" import one'''\nimport two\n", &["two"]),
            ("# \"\"\"\nimport two\n# '''\n", &["two"]),
            ("import two\n\"\"\"\nimport one\n", &["two", "one"]),
        ] {
            assert_eq!(imported(&without_blocks(text)), expected, "{text}");
        }
    }
}
