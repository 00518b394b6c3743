//! Finds the names that a patch defines and that code reaches from elsewhere: functions, types, constants, methods, attributes
//! and fields of types. Pure.

use std::collections::BTreeSet;

use super::brackets::{contents, inner, items};
use super::fields::{OF_TYPESCRIPT, begins_member, is_assigned, key_of_node, keys, of_types};
use super::interface::{Word, first_name, last_name, words};
use super::language::NODE;
use super::patched::{Hunk, hunks};
use crate::audit::definitions;

/// The names before brackets in JavaScript that are no names of methods.
const NO_METHODS: [&str; 12] =
    ["await", "catch", "constructor", "for", "function", "if", "return", "super", "switch", "typeof", "while", "with"];

/// Returns the names that a patch defines and that code reaches from elsewhere: those after a keyword such as `def`, besides
/// local variables, and members without a keyword, such as methods of JavaScript, attributes of Python and fields of Rust.
pub(super) fn names(patch: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for hunk in hunks(patch) {
        let (extension, code) = (hunk.extension, hunk.code.as_str());
        for line in &hunk.added {
            let locals = locals(line, extension);
            let defined = definitions::in_line(line).into_iter().filter(|name| !locals.contains(name));
            found.extend(defined.chain(member(line, extension)).map(str::to_owned));
        }
        let of_code = match extension {
            "py" => [of_types(code), aliases(code)].concat(),
            "rs" => [public_fields(code), of_enums(code), exported_by_use(code)].concat(),
            _ if OF_TYPESCRIPT.contains(&extension) => [of_node(code), of_enums(code)].concat(),
            _ if NODE.has_extension(extension) => of_node(code),
            _ => Vec::new(),
        };
        found.extend(hunk.introduced(of_code));
    }
    found.retain(|name| name.chars().count() >= 2);
    found
}

/// Returns the local variables that a patch defines in Rust and JavaScript.
pub(super) fn local_variables(patch: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for Hunk { extension, added, .. } in hunks(patch) {
        found.extend(added.into_iter().flat_map(|line| locals(line, extension)).map(str::to_owned));
    }
    found
}

/// Returns the local variables that a line of Rust or JavaScript defines.
fn locals<'a>(line: &'a str, extension: &str) -> BTreeSet<&'a str> {
    let is_local = |word: &Word<'_>| {
        // `let mut a`, `const { a } = b`, `let (a, b) = c`
        let before = word.before.trim_end_matches([' ', '(', '[', '{']);
        let before = before.strip_suffix(" mut").unwrap_or(before);
        let keyword = last_name(before);
        let outer = before.strip_suffix(keyword).unwrap_or_default();
        let is_inside = !outer.is_empty() && !outer.trim_end().ends_with("export");
        match extension {
            "rs" => keyword == "let",
            _ => NODE.has_extension(extension) && is_inside && ["const", "let", "var"].contains(&keyword),
        }
    };
    words(line).into_iter().filter(is_local).map(|word| word.name).collect()
}

/// Returns the member that a line defines without a keyword.
fn member<'a>(line: &'a str, extension: &str) -> Option<&'a str> {
    let start = line.trim_start();
    let indent = line.len() - start.len();
    let split = |text: &'a str| {
        let name = first_name(text);
        let rest = text.get(name.len()..)?.trim_start();
        (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some((name, rest))
    };
    match extension {
        "py" => {
            let own = start.strip_prefix("self.").or_else(|| start.strip_prefix("cls."));
            let (name, rest) = split(own.unwrap_or(start))?;
            let is_typed = rest.starts_with(": ") && rest.ends_with(|c: char| !":({[,".contains(c)) && indent > 0;
            let is_reached = own.is_some() || indent == 0;
            ((is_reached && is_assigned(rest)) || (is_typed && indent <= 4)).then_some(name)
        }
        "rs" => {
            let (name, rest) = match start.strip_prefix("pub") {
                Some(rest) => split(rest.trim_start_matches(|c: char| c != ' ').trim_start())?,
                None => split(start)?,
            };
            let is_field = start.starts_with("pub") && rest.starts_with(": ");
            let is_variant = indent > 0
                && name.starts_with(char::is_uppercase)
                && (rest == "," || (rest.starts_with('(') && rest.ends_with("),")) || rest.starts_with('{'));
            (is_field || is_variant).then_some(name)
        }
        _ if NODE.has_extension(extension) => {
            // `each: function (x) {`, `mapAll = (x) => x;`
            let mut plain = start;
            while let Some(rest) =
                ["override ", "public ", "readonly ", "static "].iter().find_map(|it| plain.strip_prefix(it))
            {
                plain = rest;
            }
            let (name, rest) = split(plain)?;
            let given = rest.strip_prefix([':', '='])?.trim_start();
            let is_arrow = given.starts_with('(') && given.contains("=>");
            (is_arrow || given.starts_with("function") || given.starts_with("async ")).then_some(name)
        }
        _ => None,
    }
}

/// Returns the names that imports in code of Python give to what they import: `from .io import load as read`.
fn aliases(code: &str) -> Vec<&str> {
    let imports = code.lines().map(str::trim).filter(|line| {
        let is_in_list = line.trim_end_matches(',').split(' ').count() == 3;
        line.starts_with("from ") || line.starts_with("import ") || is_in_list
    });
    imports.flat_map(|line| line.split(" as ").skip(1)).map(first_name).collect()
}

/// Returns the methods in code of JavaScript, and what modules export as an object or under another name.
fn of_node(code: &str) -> Vec<&str> {
    let mut found: Vec<&str> = words(code).into_iter().filter(is_method).map(|word| word.name).collect();
    let objects = code.match_indices('{').filter_map(|(at, _)| code.split_at_checked(at));
    // `module.exports = { load, save }`, `export const Mode = { FAST: 1 }`
    for (before, object) in objects {
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        let is_export = line.starts_with("export ") || line.contains("exports");
        if line == "export default" || (is_export && (line.ends_with('=') || line.ends_with("freeze("))) {
            found.extend(keys(object, key_of_node));
        }
    }
    // `export { load as read }`, `export * as files from './files.js'`
    let listed = contents(code, "export {").into_iter().flat_map(items);
    found.extend(listed.map(last_name));
    found.extend(code.split("export * as ").skip(1).map(first_name));
    found
}

/// Returns true if a word is the name of a method of JavaScript: `async tally(items) {`.
fn is_method(word: &Word<'_>) -> bool {
    let after = match word.after.strip_prefix('<') {
        Some(parameters) => parameters.split_once('>').map_or("", |(_, after)| after),
        None => word.after,
    };
    let Some(list) = after.trim_start_matches(' ').strip_prefix('(') else { return false };
    if NO_METHODS.contains(&word.name) || !begins_member(word.before) {
        return false;
    }
    // The type of the result may be between the list and the body.
    list.get(inner(list).len() + 1..).is_some_and(|body| body.trim_start().starts_with(['{', ':']))
}

/// Returns the public fields in code of Rust, also if they are in one line.
fn public_fields(code: &str) -> Vec<&str> {
    let is_field = |word: &Word<'_>| {
        let is_typed = word.after.starts_with(':') && !word.after.starts_with("::");
        is_typed && last_name(word.before.trim_end()) == "pub"
    };
    words(code).into_iter().filter(is_field).map(|word| word.name).collect()
}

/// Returns the variants of the enums in code of Rust or TypeScript, and the fields of these variants.
fn of_enums(code: &str) -> Vec<&str> {
    let heads = code.split("enum ").skip(1).filter_map(|rest| rest.split_once('{'));
    let bodies = heads.filter(|(head, _)| !head.contains([';', '(', '}'])).map(|(_, body)| inner(body));
    let mut found = Vec::new();
    for variant in bodies.flat_map(items).map(without_attributes) {
        let name = first_name(variant);
        let fields = variant.get(name.len()..).and_then(|rest| rest.trim_start().strip_prefix('{')).map(inner);
        found.push(name);
        found.extend(fields.map(items).unwrap_or_default().into_iter().map(without_attributes).map(first_name));
    }
    found
}

/// Returns an item of Rust without the attributes before it: `#[default] Quick`.
fn without_attributes(item: &str) -> &str {
    let mut rest = item;
    while let Some(attribute) = rest.strip_prefix("#[") {
        rest = attribute.get(inner(attribute).len() + 1..).unwrap_or_default().trim_start();
    }
    rest
}

/// Returns the names that code of Rust exports by `pub use`: `pub use inner::{load, save as write};`.
fn exported_by_use(code: &str) -> Vec<&str> {
    let statements = code.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let is_last = |word: &Word<'_>| {
        let after = word.after.trim_start();
        word.name != "self" && (after.is_empty() || after.starts_with([',', '}']))
    };
    statements.flat_map(words).filter(is_last).map(|word| word.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, code: &str) -> Vec<String> {
        let added: String = code.lines().flat_map(|line| ["+", line, "\n"]).collect();
        names(&format!("+++ b/{path}\n@@ -0,0 +1 @@\n{added}")).into_iter().filter(|name| name != "exports").collect()
    }

    #[test]
    fn names_in_an_exported_object_are_members() {
        for (code, expected) in [
            (
                "module.exports = { product: function (a, b) { return a * b; }, sum(a, x) { }, half };",
                &["half", "product", "sum"][..],
            ),
            ("module.exports = {\n  half,\n  all: require('./all'),\n};", &["all", "half"]),
            ("export default { product: (a, b) => a * b, 'two': 2 };", &["product", "two"]),
            ("export const Mode = Object.freeze({ QUICK: 1, FULL: 2 });", &["FULL", "Mode", "QUICK"]),
            (
                "export { addAll as total, half } from './inner.js';\nexport * as io from './io.js';",
                &["half", "io", "total"],
            ),
            ("const lib = { product: 1 };", &["lib"]),
        ] {
            assert_eq!(of("a.js", code), expected, "{code}");
        }
    }

    #[test]
    fn members_are_found_by_the_form_of_their_line() {
        for (path, code, expected) in [
            (
                "a.py",
                "LIMIT = 3\n    self.total = 1\n    local = 2\n    count: int = 0\nif x == 1:\n    return y\n",
                &["LIMIT", "count", "total"][..],
            ),
            (
                "a.js",
                "  addAll(items) {\n  if (x) {\n  static async make(a, b) {\n  each: function (x) {\n  call(x);\n  mapAll = (x) => x;\n",
                &["addAll", "each", "make", "mapAll"],
            ),
            (
                "a.rs",
                "    pub width: u32,\n    Wide,\n    Tall(u32),\n    height: u32,\n    Some(x) => 1,\n",
                &["Tall", "Wide", "width"],
            ),
            ("a.go", "other := 1\n", &[]),
        ] {
            assert_eq!(of(path, code), expected, "{code}");
        }
    }

    #[test]
    fn methods_of_javascript_have_any_form() {
        for code in [
            "class Box {\n  tally() { this.n += 1; return this.n; }\n}",
            "class Box { constructor() { this.n = 0; } tally() { return 1; } }",
            "class Box {\n  static async tally (items) {\n    if (x) { y(); }\n  }\n}",
            "class Box {\n  tally(\n    items,\n    more = { a: 1 },\n  ) {\n    call(items, () => {});\n  }\n}",
            "class Box {\n  set tally(v) { this.n = v; }\n}",
            "export class Box {\n  *tally<T>(items: T[]): number { yield 1; }\n}",
        ] {
            assert_eq!(of("a.ts", code), ["Box", "tally"], "{code}");
        }
    }

    #[test]
    fn local_variables_and_names_in_tests_of_the_code_are_no_members() {
        for (path, code, expected) in [
            (
                "a.js",
                "function sum(l) {\n  let expected = 0;\n  for (const it of l) { expected += it; }\n}",
                &["sum"][..],
            ),
            (
                "a.js",
                "function sum(l) { const expected = 0; }\nconst kept = 1;\n  export const also = 2;",
                &["also", "kept", "sum"],
            ),
            (
                "a.rs",
                "fn sum() {\n    let mut expected = 0;\n    if let Some(it) = x {}\n}\nconst KEPT: u8 = 1;",
                &["KEPT", "sum"],
            ),
            ("a.rs", "fn sum() {}\n#[cfg(test)]\nmod tests {\n    fn expected() {}\n}\nfn more() {}", &["more", "sum"]),
        ] {
            assert_eq!(of(path, code), expected, "{code}");
        }
    }

    #[test]
    fn macros_enums_and_exports_of_rust_are_members() {
        for (code, expected) in [
            ("#[macro_export] macro_rules! total { () => { 1 }; }", &["total"][..]),
            ("pub use inner::add_all as total;", &["total"]),
            ("pub use inner::{\n    self,\n    io::load,\n    save as write,\n};", &["load", "write"]),
            ("pub struct Size { pub rows: u8, inside: u8 }", &["Size", "rows"]),
            (
                "pub enum Kind {\n    #[default]\n    Wide,\n    Tall(u8), Named { first: u8, second: u8 },\n}",
                &["Kind", "Named", "Tall", "Wide", "first", "second"],
            ),
        ] {
            assert_eq!(of("src/lib.rs", code), expected, "{code}");
        }
        let patch = "+++ b/src/kind.rs\n@@ -1,3 +1,4 @@ pub enum Kind {\n     Wide,\n+    Named { first: u8 },\n }\n";
        assert_eq!(names(patch).into_iter().collect::<Vec<String>>(), ["Named", "first"]);
        assert_eq!(of("a.ts", "export enum Mode { Quick = 1, Full }"), ["Full", "Mode", "Quick"]);
    }

    #[test]
    fn types_and_imports_of_python_define_members() {
        for (code, expected) in [
            ("Size = collections.namedtuple(\"Size\", \"rows columns\")", &["Size", "columns", "rows"][..]),
            (
                "def size():\n    return namedtuple('Size', ['rows', 'columns'], defaults=['no'])(1, 2)",
                &["columns", "rows", "size"],
            ),
            ("Size = NamedTuple(\"Size\", [(\"rows\", int), (\"columns\", int)])", &["Size", "columns", "rows"]),
            ("Mode = IntEnum(\"Mode\", \"QUICK, THOROUGH\")", &["Mode", "QUICK", "THOROUGH"]),
            ("class Mode(Enum):\n    pass", &["Mode"]),
            (
                "from .inner import (\n    add_all as total,\n    load,\n)\nfrom .io import read as get",
                &["get", "total"],
            ),
            ("with open(p) as file:\n    pass", &[]),
        ] {
            assert_eq!(of("a.py", code), expected, "{code}");
        }
    }
}
