//! Finds the arguments by keyword and the options that a patch defines, and the attributes of the classes that it changes. Pure.

use std::collections::BTreeSet;

use super::interface::{OF_NODE, first_name, last_name, words};

/// The endings of TypeScript.
const OF_TYPESCRIPT: [&str; 4] = ["cts", "mts", "ts", "tsx"];
/// Words of JavaScript before brackets that hold no parameters.
const NO_FUNCTIONS: [&str; 6] = ["catch", "for", "if", "switch", "while", "with"];
/// Usual names of parameters with options. The list of parameters may be outside of the patch.
const USUAL: [&str; 6] = ["config", "options", "opts", "params", "props", "settings"];
/// The code before an object that a function of JavaScript returns.
const RETURNS: [&str; 3] = ["=> ({", "return ({", "return {"];
/// The code before a pattern that takes properties of an object in JavaScript.
const TAKES: [&str; 3] = ["const {", "let {", "var {"];

/// Returns the names by which callers pass arguments and options to the functions in a patch, and the keys of objects that
/// functions of JavaScript return. What the patch passes to other functions is not among them.
pub(super) fn names(patch: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (extension, code) in hunks(patch) {
        if extension == "py" {
            found.extend(of_python(&code).into_iter().map(str::to_owned));
        } else if OF_NODE.contains(&extension) {
            found.extend(of_node(&code).into_iter().map(str::to_owned));
        }
        if OF_TYPESCRIPT.contains(&extension) {
            found.extend(code.lines().filter_map(field).map(str::to_owned));
        }
    }
    found.remove("");
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
            } else if OF_NODE.contains(&extension) {
                let getter = start.strip_prefix("static ").unwrap_or(start).strip_prefix("get ");
                found.extend(getter.and_then(|rest| rest.split_once('(')).map(|(name, _)| first_name(name)));
            }
        }
    }
    found
}

/// Returns the code of each hunk of a patch as it is afterwards, with the ending of its file.
fn hunks(patch: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut extension = "";
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            extension = ending(path);
            found.push((extension, String::new()));
        } else if line.starts_with("@@ ") {
            found.push((extension, String::new()));
        } else if let Some((_, code)) = found.last_mut().filter(|_| line.starts_with(['+', ' '])) {
            code.push_str(line.get(1..).unwrap_or_default());
            code.push('\n');
        }
    }
    found
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, end)| end.trim_end_matches(['"', '\t']))
}

/// Returns the parameters of the functions in code of Python.
fn of_python(code: &str) -> Vec<&str> {
    let lists = code.match_indices("def ").filter_map(|(at, _)| code.get(at..)?.split_once('('));
    lists.flat_map(|(_, rest)| items(inner(rest))).map(|item| first_name(item.trim_start_matches('*'))).collect()
}

/// Returns the options of the functions in code of JavaScript: names that a list of parameters takes from an object, and
/// properties of parameters. Keys of returned objects are among them.
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
    let returned = RETURNS.into_iter().flat_map(objects);
    found.extend(returned.flat_map(|(object, _)| items(object)).map(first_name));
    found
}

/// Returns the field that a line of a type of TypeScript has: `limit?: number;`.
fn field(line: &str) -> Option<&str> {
    let start = line.trim();
    let start = start.strip_prefix("readonly ").unwrap_or(start);
    let name = first_name(start);
    let rest = start.get(name.len()..)?;
    let rest = rest.strip_prefix('?').unwrap_or(rest);
    (!name.is_empty() && rest.starts_with(": ") && rest.ends_with(';')).then_some(name)
}

/// Returns a text up to the bracket that closes the one in which it begins.
fn inner(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return text.get(..at).unwrap_or_default(),
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// Returns the parts of a text between commas and semicolons that are in no further brackets.
fn items(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' | ';' if depth == 0 => {
                found.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.extend(text.get(start..));
    found.into_iter().map(str::trim).collect()
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
        assert_eq!(names(patch).into_iter().collect::<Vec<String>>(), ["limit", "path"]);
    }

    #[test]
    fn options_of_javascript_are_names() {
        for (code, expected) in [
            ("export const row = (l, { sep = '|', end: e } = {}) => l.join(sep);", &["end", "join", "sep"][..]),
            ("function cut(s, o) {\n  return s.slice(0, o.limit);\n}", &["limit", "slice"]),
            ("  cut(s, o) {\n    const { limit = 1 } = o;\n  }", &["limit"]),
            ("const cut = o => o?.limit;", &["limit"]),
            ("  return this.options.limit;", &["limit"]),
            ("const stat = (s) => ({ size: s.length, all });", &["all", "length", "size"]),
            ("const put = (p) => { fs.mkdirSync(p, { recursive: true }); };", &[]),
            ("let expected = 0;\nfor (const it of list) {\n  expected += it.n;\n}", &[]),
        ] {
            assert_eq!(of("a.js", code), expected, "{code}");
        }
        assert_eq!(of("a.ts", "interface Options {\n  readonly limit?: number;\n}"), ["limit"]);
        assert_eq!(
            of("a.ts", "function cut(s: string, o: { limit?: number; end: string }): string {\n}"),
            ["end", "limit"]
        );
    }
}
