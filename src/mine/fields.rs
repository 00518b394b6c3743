//! Finds the fields of the values that a patch makes: keys of the objects and dictionaries that functions return, properties
//! that code assigns, and fields of types. Pure.

use std::collections::BTreeSet;

use super::brackets::{contents, inner, items};
use super::interface::{Word, first_name, words};
use super::language::NODE;
use super::patched::hunks;

/// The endings of TypeScript.
pub(super) const OF_TYPESCRIPT: [&str; 4] = ["cts", "mts", "ts", "tsx"];
/// The code before an object that a function of JavaScript returns, alone or in a list.
const RETURNS_OF_NODE: [&str; 6] = ["=> ({", "=> [{", "push({", "return ({", "return [{", "return {"];
/// The code before a dictionary that a function of Python returns, alone or in a list.
const RETURNS_OF_PYTHON: [&str; 4] = ["append({", "return [{", "return {", "yield {"];
/// Calls of Python that make a type; the names of its fields or members follow its own name.
const TYPES: [&str; 6] = ["Enum(", "Flag(", "NamedTuple(", "TypedDict(", "make_dataclass(", "namedtuple("];
/// Words of JavaScript and TypeScript before the name of a member.
const MODIFIERS: [&str; 12] = [
    "abstract",
    "async",
    "declare",
    "export",
    "get",
    "override",
    "private",
    "protected",
    "public",
    "readonly",
    "set",
    "static",
];

/// Returns the fields of the values that a patch makes in Python, JavaScript and TypeScript.
pub(super) fn names(patch: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for hunk in hunks(patch) {
        let code = hunk.code.as_str();
        let names = match hunk.extension {
            "py" => of_python(code),
            extension if OF_TYPESCRIPT.contains(&extension) => {
                of_node(code).into_iter().chain(code.lines().filter_map(field)).collect()
            }
            extension if NODE.has_extension(extension) => of_node(code),
            _ => Vec::new(),
        };
        found.extend(hunk.introduced(names));
    }
    found
}

/// Returns the fields and members of the types that calls of Python make: `namedtuple("Size", "rows columns")`.
pub(super) fn of_types(code: &str) -> Vec<&str> {
    let is_keyword = |word: &Word<'_>| is_assigned(word.after) && word.before.trim_end().ends_with(',');
    let calls = TYPES.iter().flat_map(|start| contents(code, start));
    let calls = calls.filter(|arguments| arguments.trim_start().starts_with(['"', '\'']));
    let lists = calls.filter_map(|arguments| arguments.get(arguments.find(',')?..));
    let lists = lists.map(|list| words(list).into_iter().find(is_keyword).map_or(list, |word| word.before));
    let texts = lists.flat_map(|list| list.split(['"', '\'']).skip(1).step_by(2));
    texts.flat_map(|text| text.split([',', ' '])).filter(|name| is_name(name)).collect()
}

/// Returns the keys of dictionaries in code of Python.
fn of_python(code: &str) -> Vec<&str> {
    let dictionaries = returned(code, &RETURNS_OF_PYTHON).into_iter();
    let mut found: Vec<&str> = dictionaries.flat_map(|it| keys(it, quoted_key)).collect();
    let arguments = contents(code, "return dict(").into_iter().flat_map(items);
    found.extend(arguments.filter(|item| item.contains('=')).map(first_name));
    found.extend(assigned_by_key(code));
    found.extend(typed_keys(code));
    // `result.setdefault("count", 0)`
    let defaults = contents(code, ".setdefault(").into_iter().filter(|arguments| arguments.starts_with(['"', '\'']));
    found.extend(defaults.filter_map(|arguments| arguments.split(['"', '\'']).nth(1)).filter(|name| is_name(name)));
    found
}

/// Returns the keys of dictionaries that classes in code of Python describe: `class Row(TypedDict):`.
fn typed_keys(code: &str) -> Vec<&str> {
    let classes = code.split("TypedDict").skip(1).filter_map(|rest| rest.split_once(":\n"));
    let bodies = classes.filter(|(head, _)| head.ends_with(')') && !head.contains('\n')).map(|(_, body)| body);
    let lines =
        bodies.flat_map(|body| body.lines().take_while(|line| line.is_empty() || line.starts_with([' ', '\t'])));
    let keys = lines.filter_map(|line| line.trim_start().split_once(": ")).map(|(name, _)| name);
    keys.filter(|name| is_name(name)).collect()
}

/// Returns the properties of objects in code of JavaScript.
fn of_node(code: &str) -> Vec<&str> {
    let mut found: Vec<&str> =
        returned(code, &RETURNS_OF_NODE).into_iter().flat_map(|it| keys(it, key_of_node)).collect();
    let is_property = |word: &Word<'_>| word.before.ends_with('.') && is_assigned(word.after);
    let fields = words(code).into_iter().filter(|word| is_property(word) || is_field_of_class(word));
    found.extend(fields.map(|word| word.name));
    found.extend(assigned_by_key(code));
    // `Object.assign(exports, { tally })`
    for arguments in contents(code, "Object.assign(").into_iter().map(items) {
        let is_target = arguments.first().is_some_and(|target| !target.starts_with('{'));
        let objects = arguments.into_iter().skip(1).filter(|it| is_target && it.starts_with('{'));
        found.extend(objects.flat_map(|object| keys(object, key_of_node)));
    }
    // `Object.defineProperty(Box.prototype, 'size', …)`
    let second = |arguments| items(arguments).get(1).copied();
    let defined = contents(code, "defineProperty(").into_iter().filter_map(second);
    found.extend(defined.map(|name| name.trim_matches(['"', '\''])).filter(|name| is_name(name)));
    let objects = contents(code, "defineProperties(").into_iter().filter_map(second);
    found.extend(objects.flat_map(items_of).filter_map(key_of_node));
    found
}

/// Returns the objects that functions in code return, directly or by a variable, and those that a module exports by a
/// variable. Their brackets are parts of them.
fn returned<'a>(code: &'a str, starts: &[&str]) -> Vec<&'a str> {
    let is_returned = |word: &Word<'_>| {
        let before = word.before.trim_end();
        ["return", "yield", "export default", "exports ="].iter().any(|start| before.ends_with(start))
    };
    let names: BTreeSet<&str> = words(code).into_iter().filter(is_returned).map(|word| word.name).collect();
    let of_name = code.match_indices("= {").filter(|(at, _)| {
        let line = code.get(..*at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default().trim_start();
        let keyword = ["const ", "let ", "var "].iter().find_map(|keyword| line.strip_prefix(keyword));
        names.contains(first_name(keyword.unwrap_or(line)))
    });
    let direct = starts.iter().flat_map(|start| code.match_indices(*start));
    of_name.chain(direct).filter_map(|(at, start)| object(code.get(at + start.len() - 1..)?)).collect()
}

/// Returns the object at the start of a text, with its brackets.
fn object(text: &str) -> Option<&str> {
    let content = inner(text.strip_prefix('{')?);
    Some(text.get(..content.len() + 2).unwrap_or(text))
}

/// Returns the items of an object that is given with its brackets.
fn items_of(object: &str) -> Vec<&str> {
    object.strip_prefix('{').map(inner).map(items).unwrap_or_default()
}

/// Returns the keys of an object that is given with its brackets, and the keys of the objects that are values in it.
pub(super) fn keys(object: &str, key: fn(&str) -> Option<&str>) -> Vec<&str> {
    let all = items_of(object);
    let values = all.iter().filter_map(|item| item.split_once(':')).map(|(_, value)| value.trim_start());
    let nested: Vec<&str> = values.flat_map(items_of).collect();
    all.into_iter().chain(nested).filter_map(key).collect()
}

/// Returns the key of an item of an object of JavaScript: `size: 1`, `'size': 1`, `size`, `size() {…}`.
pub(super) fn key_of_node(item: &str) -> Option<&str> {
    let plain = ["async ", "get ", "set ", "*"].iter().find_map(|word| item.strip_prefix(word)).unwrap_or(item);
    quoted_key(item).or_else(|| Some(first_name(plain)).filter(|name| !name.is_empty()))
}

/// Returns the key within quotes of an item: `"size": 1`.
fn quoted_key(item: &str) -> Option<&str> {
    let text = item.strip_prefix(['"', '\''])?;
    let name = first_name(text);
    let after = text.get(name.len()..)?.strip_prefix(['"', '\''])?;
    (!name.is_empty() && after.trim_start().starts_with(':')).then_some(name)
}

/// Returns the names that code assigns by a key: `counts["longest"] = 3`.
fn assigned_by_key(code: &str) -> Vec<&str> {
    let starts = ["['", "[\""].into_iter().flat_map(|start| code.match_indices(start));
    let names = starts.filter_map(|(at, start)| {
        let text = code.get(at + start.len()..)?;
        let name = first_name(text);
        let after = text.get(name.len()..)?.strip_prefix(['"', '\''])?.strip_prefix(']')?;
        (!name.is_empty() && is_assigned(after)).then_some(name)
    });
    names.collect()
}

/// Returns true if a word is the name of a field that a class of JavaScript or TypeScript defines: `static limit = 3;`.
fn is_field_of_class(word: &Word<'_>) -> bool {
    let Some((before, inside)) = word.opened.and_then(|at| word.before.split_at_checked(at)) else { return false };
    let head = before.rsplit(['\n', ';', '{', '}']).next().unwrap_or_default();
    let after = word.after.trim_start_matches(['?', '!']).trim_start();
    let is_defined = after.starts_with([':', ';']) || is_assigned(after);
    is_defined && inside.starts_with('{') && head.contains("class ") && begins_member(word.before)
}

/// Returns true if a member of a class or an object of JavaScript begins after a text, besides words such as `static`.
pub(super) fn begins_member(text: &str) -> bool {
    let mut before = text.trim_end_matches([' ', '\t', '*']);
    while let Some(rest) = MODIFIERS.iter().find_map(|word| before.strip_suffix(word)) {
        before = rest.trim_end_matches([' ', '\t']);
    }
    before.is_empty() || before.ends_with(['\n', '{', '}', ';', ','])
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

/// Returns true if the code after a name assigns a value to it.
pub(super) fn is_assigned(after: &str) -> bool {
    let after = after.trim_start();
    after.starts_with('=') && !after.starts_with("==") && !after.starts_with("=>")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && first_name(text) == text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, code: &str) -> Vec<String> {
        let added: String = code.lines().flat_map(|line| ["+", line, "\n"]).collect();
        names(&format!("+++ b/{path}\n@@ -0,0 +1 @@\n{added}")).into_iter().collect()
    }

    #[test]
    fn keys_of_returned_dictionaries_are_fields() {
        for (code, expected) in [
            ("return {\"count\": len(l), 'longest': {\"text\": f({\"other\": 1})}}", &["count", "longest", "text"][..]),
            ("return {name: 1, \"two words\": 2}", &[]),
            ("return {\"a1\", \"b1\"}", &[]),
            ("return dict(count=1, longest=f(other=2))", &["count", "longest"]),
            ("r = {\"count\": 1}\nr[\"longest\"] = 2\nreturn r", &["count", "longest"]),
            ("r = {\"count\": 1}\nsave(r)\nif r[\"longest\"] == 2:\n    pass", &[]),
            ("found.append({\"line\": 1})", &["line"]),
            ("class Row(typing.TypedDict):\n    label: str\n\n    size: int\n\n\nother: int = 1", &["label", "size"]),
            ("class Row(TypedDict, total=False):\n    label: str", &["label"]),
            ("from typing import TypedDict\n\n\ndef run():\n    other: int = 1", &[]),
            ("r.setdefault(\"count\", 0)\nr.setdefault(other, 1)", &["count"]),
            ("return [{\"line\": it, \"text\": f({\"other\": 1})} for it in l]", &["line", "text"]),
        ] {
            assert_eq!(of("a.py", code), expected, "{code}");
        }
    }

    #[test]
    fn properties_that_javascript_assigns_are_fields() {
        for (code, expected) in [
            ("const stat = (s) => ({ size: s.length, all, get half() { return 1; } });", &["all", "half", "size"][..]),
            ("const r = {};\nr.openings = 1;\nr.list[0].longest = 2;\nreturn r;", &["longest", "openings"]),
            (
                "const r = { openings: 1, 'longest': { text: f({ other: 1 }) } };\nreturn r;",
                &["longest", "openings", "text"],
            ),
            ("function rows(l) {\n  return [{ width, text: l }];\n}", &["text", "width"]),
            ("const rows = (l) => [{ width: l.length }];", &["width"]),
            ("const r = { other: 1 };\nsave(r);", &[]),
            ("exports['tally'] = (l) => l.length;", &["tally"]),
            ("if (x['tally'] === 1 || x.other == 2 || x.more >= 3) {}", &[]),
            ("Object.assign(exports, { tally: (l) => l.length, half });", &["half", "tally"]),
            ("save(Object.assign({}, { tally: 1 }));", &[]),
            ("Object.defineProperty(Box.prototype, 'openings', { get() { return this.n; } });", &["openings"]),
            ("Object.defineProperties(Box, { openings: { value: 1 } });", &["openings"]),
            (
                "class Box {\n  static limit = 3;\n  size;\n  #more = 4;\n  tally() { const other = 1; more = 2; }\n}",
                &["limit", "size"],
            ),
            ("fs.mkdirSync(p, { recursive: true });", &[]),
        ] {
            assert_eq!(of("a.js", code), expected, "{code}");
        }
        assert_eq!(of("a.ts", "interface Options {\n  readonly limit?: number;\n}"), ["limit"]);
        let patch = "+++ b/a.ts\n@@ -3,2 +3,3 @@ export class Box {\n   size = 1;\n+  limit?: number = 2;\n }\n";
        assert_eq!(names(patch).into_iter().collect::<Vec<String>>(), ["limit"]);
    }
}
