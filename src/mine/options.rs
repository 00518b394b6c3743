//! Finds the arguments by keyword and the options that a patch defines, and the attributes of the classes that it changes. Pure.

use std::collections::BTreeSet;

use super::brackets::{inner, items};
use super::fields::of_types;
use super::interface::{Word, first_name, last_name, words};
use super::language::NODE;
use super::patched::{ending, hunks};

/// Words of JavaScript before brackets that hold no parameters.
const NO_FUNCTIONS: [&str; 6] = ["catch", "for", "if", "switch", "while", "with"];
/// Usual names of parameters with options. The list of parameters may be outside of the patch.
const USUAL: [&str; 6] = ["config", "options", "opts", "params", "props", "settings"];
/// Usual names of parameters of Python that hold all other arguments by keyword.
const RESTS: [&str; 5] = ["kw", "kwargs", "kwds", "options", "opts"];
/// The code before the quotes around a key that code of Python reads from a dictionary.
const READS: [&str; 4] = [".get(", ".pop(", ".setdefault(", "["];
/// The code before a pattern that takes properties of an object in JavaScript.
const TAKES: [&str; 3] = ["const {", "let {", "var {"];

/// Returns the names by which callers pass arguments and options to the functions in a patch. What the patch passes to other
/// functions is not among them.
pub(super) fn names(patch: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for hunk in hunks(patch) {
        let code = hunk.code.as_str();
        let names = match hunk.extension {
            "py" => [of_python(code), from_rest(code), of_types(code)].concat(),
            extension if NODE.has_extension(extension) => of_node(code).into_iter().collect(),
            _ => Vec::new(),
        };
        found.extend(hunk.introduced(names));
    }
    found
}

/// Returns the attributes of classes of Python, such as fields and members of an enum, and the getters of JavaScript that a
/// patch adds.
pub(super) fn attributes(patch: &str) -> BTreeSet<&str> {
    let (mut extension, mut is_class) = ("", false);
    let mut found = BTreeSet::new();
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            (extension, is_class) = (ending(path), false);
        } else if let Some((_, around)) = line.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@")) {
            is_class = around.trim_start().starts_with("class ");
        } else if let Some(code) = line.get(1..).filter(|_| line.starts_with(['+', ' '])) {
            if code.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '@') {
                is_class = code.starts_with("class ");
            }
            let start = code.trim_start();
            if !line.starts_with('+') {
                continue;
            }
            if extension == "py" && is_class && code.len() == start.len() + 4 {
                let name = first_name(start);
                let rest = start.get(name.len()..).unwrap_or_default().trim_start();
                let is_defined = rest.starts_with(": ") || (rest.starts_with('=') && !rest.starts_with("=="));
                found.extend(Some(name).filter(|_| is_defined));
            } else if NODE.has_extension(extension) {
                let getter = start.strip_prefix("static ").unwrap_or(start).strip_prefix("get ");
                found.extend(getter.and_then(|rest| rest.split_once('(')).map(|(name, _)| first_name(name)));
            }
        }
    }
    found
}

/// Returns the parameters of the functions in code of Python.
fn of_python(code: &str) -> Vec<&str> {
    let lists = code.match_indices("def ").filter_map(|(at, _)| code.get(at..)?.split_once('('));
    lists.flat_map(|(_, rest)| items(inner(rest))).map(|item| first_name(item.trim_start_matches('*'))).collect()
}

/// Returns the names of the arguments that code of Python reads from a parameter such as `**options`.
fn from_rest(code: &str) -> Vec<&str> {
    let mut rests = BTreeSet::from(RESTS);
    rests.extend(code.split("**").skip(1).map(first_name));
    rests.remove("");
    let is_read = |word: &Word<'_>| {
        let Some(before) = word.before.strip_suffix(['"', '\'']) else { return false };
        let Some(after) = word.after.strip_prefix(['"', '\'']) else { return false };
        let object = READS.iter().find_map(|read| before.strip_suffix(read)).map(last_name);
        let whole = [" in ", " not in "].iter().find_map(|within| after.strip_prefix(within)).map(first_name);
        object.or(whole).is_some_and(|name| rests.contains(name))
    };
    words(code).into_iter().filter(is_read).map(|word| word.name).collect()
}

/// Returns the options of the functions in code of JavaScript: names that a list of parameters takes from an object, and
/// properties of parameters.
fn of_node(code: &str) -> BTreeSet<&str> {
    let (mut found, mut parameters) = (BTreeSet::new(), BTreeSet::from(USUAL));
    let objects = |start: &str| {
        let places = code.match_indices(start).filter_map(|(at, start)| code.get(at + start.len()..));
        places.map(|rest| (inner(rest), rest.get(inner(rest).len() + 1..).unwrap_or_default())).collect::<Vec<_>>()
    };
    for (at, _) in code.match_indices('(') {
        let rest = code.get(at + 1..).unwrap_or_default();
        let list = inner(rest);
        let after = rest.get(list.len() + 1..).unwrap_or_default().trim_start();
        let line = after.lines().next().unwrap_or_default().trim_end();
        let is_typed = after.starts_with(':') && (line.ends_with('{') || line.contains("=>"));
        let before = last_name(code.get(..at).unwrap_or_default().trim_end());
        let is_body = (after.starts_with('{') || is_typed) && !NO_FUNCTIONS.contains(&before);
        if !after.starts_with("=>") && !is_body {
            continue;
        }
        for item in items(list) {
            // `{ limit = 1 } = {}`, `options: { limit?: number }`
            let object = item.strip_prefix('{').or_else(|| item.split_once(": {").map(|(_, object)| object));
            found.extend(object.map(inner).map(items).unwrap_or_default().into_iter().map(first_name));
            parameters.insert(first_name(item.trim_start_matches('.')));
        }
    }
    // `options => options.limit`
    let arrows = code.match_indices("=>").filter_map(|(at, _)| code.get(..at));
    parameters.extend(arrows.map(|before| last_name(before.trim_end())));
    parameters.remove("");
    for (object, after) in TAKES.into_iter().flat_map(objects) {
        let from = after.trim_start().strip_prefix('=').unwrap_or_default().trim_start();
        if parameters.contains(first_name(from)) {
            found.extend(items(object).into_iter().map(first_name));
        }
    }
    let reads = words(code).into_iter().filter(|word| {
        word.before.ends_with('.') && parameters.contains(last_name(word.before.trim_end_matches(['.', '?'])))
    });
    found.extend(reads.map(|word| word.name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, code: &str) -> Vec<String> {
        let added: String = code.lines().flat_map(|line| ["+", line, "\n"]).collect();
        names(&format!("+++ b/{path}\n@@ -0,0 +1 @@\n{added}")).into_iter().filter(|name| name.len() > 1).collect()
    }

    #[test]
    fn parameters_of_python_are_names() {
        let code = "def load(p, limit=None, *rest, depth: int = len((1, 2)), **more):\n    sort(p, reverse=True)\n    total = 1\n";
        assert_eq!(of("a.py", code), ["depth", "limit", "more", "rest"]);
        assert_eq!(of("a.py", "async def load(\n    p,\n    limit=None,\n):\n    pass\n"), ["limit"]);
        // The patch adds a parameter to a list that begins before it.
        let patch = "+++ b/a.py\n@@ -1,3 +1,4 @@\n def load(\n     path,\n+    limit=None,\n ):\n";
        assert_eq!(names(patch).into_iter().collect::<Vec<String>>(), ["limit"]);
    }

    #[test]
    fn arguments_that_python_takes_from_a_dictionary_are_names() {
        for (code, expected) in [
            ("def show(x, **options):\n    sep = options.pop(\"separator\", \",\")\n", &["options", "separator"][..]),
            ("def show(x, **rest):\n    return rest.get('end', '') + rest['sep']\n", &["end", "rest", "sep"]),
            ("    if \"limit\" in kwargs or 'size' not in kwargs:\n        pass\n", &["limit", "size"]),
            ("    other.pop(\"limit\")\n    x = {\"limit\": 2 ** 3}\n", &[]),
            ("Size = namedtuple(\"Size\", \"rows columns\")\n", &["columns", "rows"]),
        ] {
            assert_eq!(of("a.py", code), expected, "{code}");
        }
    }

    #[test]
    fn options_of_javascript_are_names() {
        for (code, expected) in [
            ("export const row = (l, { sep = '|', end: e } = {}) => l.join(sep);", &["end", "join", "sep"][..]),
            ("function cut(s, o) {\n  return s.slice(0, o.limit);\n}", &["limit", "slice"]),
            ("  cut(s, o) {\n    const { limit = 1 } = o;\n  }", &["limit"]),
            ("const cut = o => o?.limit;", &["limit"]),
            ("  return this.options.limit;", &["limit"]),
            ("const stat = (s) => ({ size: s.length, all });", &["length"]),
            ("const put = (p) => { fs.mkdirSync(p, { recursive: true }); };", &[]),
            ("let expected = 0;\nfor (const it of list) {\n  expected += it.n;\n}", &[]),
        ] {
            assert_eq!(of("a.js", code), expected, "{code}");
        }
        assert_eq!(
            of("a.ts", "function cut(s: string, o: { limit?: number; end: string }): string {\n}"),
            ["end", "limit"]
        );
    }
}
