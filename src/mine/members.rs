//! Finds the names that a patch defines and that code reaches from elsewhere: functions, types, constants, methods, attributes
//! and fields of types. Pure.

use std::collections::BTreeSet;

use super::brackets::{contents, inner, items};
use super::fields::{OF_TYPESCRIPT, begins_member, is_assigned, key_of_node, keys, of_types};
use super::interface::{Word, first_name, last_name, words};
use super::language::NODE;
use super::patched::{Hunk, NO_METHODS, hunks};
use crate::audit::definitions;

/// Returns the names that a patch defines and that code reaches from elsewhere: those after a keyword such as `def`, besides
/// local variables that no object has as a key, and members without a keyword, such as methods of JavaScript, attributes of
/// Python and fields of Rust.
pub(super) fn names(patch: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let all = hunks(patch);
    // The object may be in another hunk than the variable.
    let shared: BTreeSet<&str> = all.iter().flat_map(|hunk| keys_of_objects(&hunk.code, hunk.extension)).collect();
    for hunk in &all {
        let (extension, code) = (hunk.extension, hunk.code.as_str());
        for line in &hunk.added {
            let locals = locals(line, extension);
            let is_reached = |name: &&str| !locals.contains(*name) || shared.contains(*name);
            let defined = definitions::in_line(line).into_iter().filter(is_reached);
            let together = if extension == "py" { assigned_together(line) } else { Vec::new() };
            found.extend(defined.chain(member(line, extension)).chain(together).map(str::to_owned));
        }
        let of_code = match extension {
            "py" => [of_types(code), aliases(code), of_namespaces(code)].concat(),
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

/// Returns the methods of traits of Rust and the abstract methods of Python that a patch defines: a type of a test that
/// implements them needs their names.
pub(super) fn implemented_methods(patch: &str) -> BTreeSet<String> {
    let of_hunk = |hunk: Hunk<'_>| match hunk.extension {
        "py" => hunk.introduced(abstract_methods(&hunk.code)),
        "rs" => hunk.introduced(methods_of_traits(&hunk.code)),
        _ => Vec::new(),
    };
    hunks(patch).into_iter().flat_map(of_hunk).collect()
}

/// Returns the methods in code of Python that each subclass defines.
fn abstract_methods(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut lines = code.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.starts_with('@') && line.ends_with("abstractmethod") {
            found.extend(lines.by_ref().find_map(|line| line.split_once("def ")).map(|(_, rest)| first_name(rest)));
        }
    }
    found
}

/// Returns the methods of the traits in code of Rust.
fn methods_of_traits(code: &str) -> Vec<&str> {
    let heads = code.split("trait ").skip(1).filter_map(|rest| rest.split_once('{'));
    let bodies = heads.filter(|(head, _)| !head.contains([';', '}'])).map(|(_, body)| inner(body));
    bodies.flat_map(words).filter(|word| word.before.ends_with("fn ")).map(|word| word.name).collect()
}

/// Returns the attributes of namespaces in code of Python: `SimpleNamespace(rows=1)`.
fn of_namespaces(code: &str) -> Vec<&str> {
    let arguments = contents(code, "SimpleNamespace(").into_iter().flat_map(items);
    arguments.filter(|item| item.contains('=')).map(first_name).collect()
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

/// Returns the keys of the objects in code of JavaScript. A local variable that is such a key leaves its function as a property:
/// `done(null, { total })`, `return Object.freeze({ load, save })`.
fn keys_of_objects<'a>(code: &'a str, extension: &str) -> Vec<&'a str> {
    if !NODE.has_extension(extension) {
        return Vec::new();
    }
    let is_key = |word: &Word<'_>| {
        let Some((outer, inside)) = word.opened.and_then(|at| word.before.split_at_checked(at)) else { return false };
        // `const { total } = values`, `const [{ total }] = values`, `import { total } from './values.js'`
        let keyword = last_name(outer.trim_end_matches([' ', '(', '[', '{']));
        let is_taken = ["const", "import", "let", "var"].contains(&keyword);
        // `${total}` in a text, `<b>{total}</b>`
        let is_object = inside.starts_with('{') && !outer.ends_with(['$', '>']);
        // `{ 'total': total }`
        let before = word.before.trim_end_matches(['"', '\'']).trim_end();
        let after = word.after.trim_start_matches(['"', '\'']).trim_start();
        is_object && !is_taken && before.ends_with(['{', ',']) && after.starts_with([',', '}', ':'])
    };
    words(code).into_iter().filter(is_key).map(|word| word.name).collect()
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

/// Returns the names and attributes that a line of Python assigns together: `MAJOR, MINOR = 1, 2`, `self.low, self.high = pair`.
/// Names of other lines than those without indentation are local variables.
fn assigned_together(line: &str) -> Vec<&str> {
    let is_assignment = |(targets, value): &(&str, &str)| targets.contains(',') && !value.starts_with('=');
    let Some((targets, _)) = line.split_once('=').filter(is_assignment) else { return Vec::new() };
    let is_top = !line.starts_with([' ', '\t']);
    let targets = targets.trim().trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
    let targets = targets.split(',').map(|target| target.trim().trim_start_matches('*')).filter(|it| !it.is_empty());
    let names = targets.map(|target| {
        let own = target.strip_prefix("self.").or_else(|| target.strip_prefix("cls."));
        let name = own.unwrap_or(target);
        (first_name(name) == name && (own.is_some() || is_top)).then_some(name)
    });
    // The arguments of a call are no names alone: `run(a, b=1)`.
    names.collect::<Option<Vec<&str>>>().unwrap_or_default()
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
    // `module.exports = { load, save }`, `export const Mode = { FAST: 1 }`, `const Mode = { FAST: 1 }` that is exported later
    for (before, object) in objects {
        let line = before.rsplit('\n').next().unwrap_or_default();
        let constant = line.strip_prefix("const ").map(first_name);
        let line = line.trim();
        let is_export = line.starts_with("export ")
            || line.contains("exports")
            || constant.is_some_and(|name| !name.is_empty() && is_exported(code, name));
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

/// Returns true if code of JavaScript exports a name: `exports.Mode = Mode`, `module.exports = { Mode }`, `export { Mode }`.
fn is_exported(code: &str, name: &str) -> bool {
    let is_value = |value: &str| value.trim().trim_end_matches(';') == name;
    let assigned = code.split("exports").skip(1).filter_map(|rest| rest.lines().next()?.split_once('='));
    let mut default = code.lines().filter_map(|line| line.strip_prefix("export default "));
    let mut in_object = contents(code, "exports = {").into_iter().flat_map(items).map(last_name);
    let mut in_list = contents(code, "export {").into_iter().flat_map(items).map(first_name);
    assigned.map(|(_, value)| value).any(is_value)
        || default.any(is_value)
        || in_object.any(|it| it == name)
        || in_list.any(|it| it == name)
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
            ("const Level = { LOW: 1 };\nexports.Level = Level;", &["LOW", "Level"]),
            (
                "const Level = Object.freeze({\n  LOW: 1,\n});\nmodule.exports = {\n  half,\n  Level,\n};",
                &["LOW", "Level", "half"],
            ),
            ("const Level = { LOW: 1 };\nexport { Level };", &["LOW", "Level"]),
            ("const Level = { LOW: 1 };\nexport default Level;", &["LOW", "Level"]),
            ("const level = { LOW: 1 };\nexports.half = (n) => n / level.LOW;", &["half", "level"]),
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
    fn names_that_python_assigns_together_are_members() {
        for (code, expected) in [
            ("MAJOR, MINOR = 1, 2", &["MAJOR", "MINOR"][..]),
            ("(LOW, *HIGH) = pair", &["HIGH", "LOW"]),
            ("        self.rows, self.columns = size", &["columns", "rows"]),
            ("    first, second = pair", &[]),
            ("run(first, second=1)", &[]),
            ("assert first, second == 1", &[]),
            ("for first, second in pairs: total = 1", &[]),
        ] {
            assert_eq!(of("a.py", code), expected, "{code}");
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
            "class Box {\n  * tally() {\n    yield 1;\n  }\n}",
            "class Box {\n  /**\n   * for (const it of l) {\n   * other(a): the text\n   * other(l, () => {\n   * }\n   */\n  * tally() {}\n}",
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
            ("a.js", "function sum(l) {\n  let expected = 0;\n  return `all: ${expected}`;\n}", &["sum"]),
            // A property of what the function takes.
            ("a.js", "function stat(l) {\n  const [{ total }] = l;\n  return total;\n}", &["stat"]),
            ("a.rs", "fn sum() {}\n#[cfg(test)]\nmod tests {\n    fn expected() {}\n}\nfn more() {}", &["more", "sum"]),
        ] {
            assert_eq!(of(path, code), expected, "{code}");
        }
    }

    #[test]
    fn local_variables_that_leave_their_function_as_keys_are_members() {
        for (code, expected) in [
            (
                "function stat(l, done) {\n  const total = l.length;\n  done(null, { total });\n}",
                &["stat", "total"][..],
            ),
            (
                "function stat(l, res) {\n  const total = 1, other = 2;\n  res.json({ 'total': total, more: other });\n}",
                &["stat", "total"],
            ),
            (
                "module.exports = (() => {\n  const addAll = (a) => a;\n  return Object.freeze({ addAll });\n})();",
                &["addAll"],
            ),
            ("function rows(l) {\n  const width = l.length;\n  return [{ width, text: l }];\n}", &["rows", "width"]),
        ] {
            assert_eq!(of("a.js", code), expected, "{code}");
        }
        let patch = "+++ b/a.js\n@@ -1 +1,2 @@\n+  const total = 1;\n@@ -9 +10,2 @@\n+  done({\n+    total,\n+  });\n";
        assert_eq!(names(patch).into_iter().collect::<Vec<String>>(), ["total"]);
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
            ("return types.SimpleNamespace(rows=1, columns=f(other=2))", &["columns", "rows"]),
        ] {
            assert_eq!(of("a.py", code), expected, "{code}");
        }
    }
}
