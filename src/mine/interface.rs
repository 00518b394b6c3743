//! Finds what tests expect of each solution: the names and the files that they use and that only the commit introduces. Pure.

use std::collections::BTreeSet;

use super::brackets::{inner, items};
use super::change::Change;
use super::language::NODE;
use super::role::{Role, folder};
use super::{fields, members, options};
use crate::audit::leaks::shared_words;

/// The maximum number of names in a prompt besides imported ones.
const MAX_NAMES: usize = 100;
/// The words before the names that a test of Python or Rust defines.
const DEFINES: [&str; 11] = ["class", "const", "def", "enum", "fn", "let", "mod", "static", "struct", "trait", "type"];
/// Calls of Python with the name of an attribute within quotes.
const WITH_NAMES_OF_PYTHON: [&str; 9] =
    ["attrgetter(", "delattr(", "getattr(", "hasattr(", "methodcaller(", "patch(", "patch.object(", "setattr(", "spy("];
/// Calls of Python with a key of a dictionary within quotes.
const WITH_KEYS_OF_PYTHON: [&str; 4] = [".get(", ".pop(", "assertIn(", "itemgetter("];
/// Calls of Node with the name of a member within quotes.
const WITH_NAMES_OF_NODE: [&str; 6] = ["Property(", "mock.method(", "property(", "spy(", "spyOn(", "stub("];
/// The folders that modules of Python are imported from.
const ROOTS_OF_PYTHON: [&str; 3] = ["", "src/", "lib/"];

/// Returns the names that tests use without an import, and that a patch introduces: parts of something else (`module.name`,
/// `object.name()`, `crate::name`, `const { name } = lib`), names within quotes in calls such as `getattr` and `patch.object`,
/// macros, arguments by keyword, keys of options, fields of results, and methods that a type of a test implements, if the patch
/// defines them as such. In Go, tests of the same package use names without a package.
pub(super) fn names<'a>(tests: &'a [(String, String)], patch: &str) -> BTreeSet<&'a str> {
    let attributes = options::attributes(patch);
    let (defined, fields, given) = (members::names(patch), fields::names(patch), options::names(patch));
    let of_go = OfGo::read(patch);
    let implemented = members::implemented_methods(patch);
    let is_defined = |name: &&str| defined.contains(*name) || attributes.contains(*name);
    let is_field = |name: &&str| fields.contains(*name);
    let is_given = |name: &&str| given.contains(*name) || attributes.contains(*name);
    let mut found = BTreeSet::new();
    for (path, text) in tests {
        let extension = path.rsplit_once('.').map_or("", |(_, end)| end);
        match extension {
            "py" => {
                let bare = if text.contains("import *") { bare(text) } else { Vec::new() };
                let members = [names_after(text, &["."]), quoted(text, &WITH_NAMES_OF_PYTHON), bare].concat();
                found.extend(members.into_iter().filter(is_defined));
                let arguments = keywords(text).into_iter();
                found.extend(arguments.filter(|name| is_given(name) || is_field(name)));
                let keys = [keys_of_python(text), quoted(text, &WITH_KEYS_OF_PYTHON)].concat();
                found.extend(keys.into_iter().filter(is_field));
                found.extend(names_after(text, &["def "]).into_iter().filter(|name| implemented.contains(*name)));
            }
            "rs" => {
                let bare = if text.contains("::*") { bare(text) } else { Vec::new() };
                let members = [names_after(text, &[".", "::"]), keys(text), macros(text), bare].concat();
                found.extend(members.into_iter().filter(is_defined));
                found.extend(names_after(text, &["fn "]).into_iter().filter(|name| implemented.contains(*name)));
            }
            "go" => found.extend(of_go.used(text)),
            _ if NODE.has_extension(extension) => {
                let members =
                    [names_after(text, &["."]), members_of_node(text), quoted(text, &WITH_NAMES_OF_NODE)].concat();
                found.extend(members.into_iter().filter(|name| is_defined(name) || is_field(name)));
                found.extend(keys(text).into_iter().filter(|name| is_given(name) || is_field(name)));
            }
            _ => {}
        }
    }
    found.into_iter().filter(|name| name.chars().count() >= 2).take(MAX_NAMES).collect()
}

/// The languages in which [`names`] finds the names that tests use.
const READ: [&str; 3] = ["go", "py", "rs"];

/// Returns true if a test of a language that [`names`] does not read has a word.
pub(super) fn is_in_other_test(tests: &[(String, String)], word: &str) -> bool {
    let is_other = |path: &str| {
        let extension = path.rsplit_once('.').map_or("", |(_, end)| end);
        !READ.contains(&extension) && !NODE.has_extension(extension)
    };
    let has_word = |text: &str| text.split(|c: char| !is_part(c)).any(|part| part == word);
    tests.iter().any(|(path, text)| is_other(path) && has_word(text))
}

/// Returns the names in the imports of tests that a patch introduces. A name that the patch has only as a local variable is the
/// tests' own (`const expected = require('./data.json').sum`).
pub(super) fn imported(imports: &str, patch: &str) -> BTreeSet<String> {
    let (locals, defined, fields) = (members::local_variables(patch), members::names(patch), fields::names(patch));
    let is_local = |name: &String| locals.contains(name) && !defined.contains(name) && !fields.contains(name);
    shared_words(imports, patch).into_iter().filter(|name| !is_local(name)).collect()
}

/// Returns the files of code that tests name without an import, and that only the commit has: modules of Python in calls such as
/// `patch("a.b.c")`, and new folders with packages of Go.
pub(super) fn files(change: &Change) -> BTreeSet<String> {
    let Change { after, before, roles, test_texts, .. } = change;
    let module = |name: &str| {
        let ends = name.match_indices('.').map(|(at, _)| at).rev();
        let places = ends.filter_map(|end| name.get(..end)).map(|place| place.replace('.', "/"));
        let mut files = places.flat_map(|place| {
            ROOTS_OF_PYTHON
                .into_iter()
                .flat_map(move |root| [format!("{root}{place}.py"), format!("{root}{place}/__init__.py")])
        });
        files.find(|path| after.has(path))
    };
    let is_new = |path: &String| !before.has(path) && roles.of(path) == Role::Code;
    let is_of_go = |path: &&String| path.ends_with(".go") && roles.of(path) != Role::Test;
    let known: BTreeSet<&str> = before.files.iter().filter(is_of_go).map(|path| folder(path)).collect();
    let packages: BTreeSet<&str> = after.files.iter().filter(is_of_go).map(|path| folder(path)).collect();
    let packages: Vec<&str> = packages.difference(&known).filter_map(|folder| folder.strip_suffix('/')).collect();
    let mut found = BTreeSet::new();
    for (path, text) in test_texts {
        if path.ends_with(".py") {
            found.extend(quoted(text, &["patch(", "setattr("]).into_iter().filter_map(module).filter(is_new));
        } else if path.ends_with(".go") {
            let is_used = |package: &&&str| {
                folder(path).strip_suffix('/') == Some(**package) || text.contains(&format!("/{package}\""))
            };
            found.extend(packages.iter().filter(is_used).map(|package| (*package).to_owned()));
        }
    }
    found
}

/// Returns the names after marks: `module.name`, `crate::name`.
fn names_after<'a>(text: &'a str, marks: &[&'static str]) -> Vec<&'a str> {
    marks.iter().flat_map(|mark| text.split(*mark).skip(1)).map(first_name).collect()
}

/// Returns the names in `lib['name']` and `const { name } = lib`.
fn members_of_node(text: &str) -> Vec<&str> {
    let mut found = names_after(text, &["['", "[\""]);
    let taken = text.lines().map(str::trim_start).filter_map(|line| {
        let rest = ["const {", "let {", "var {"].iter().find_map(|start| line.strip_prefix(start))?;
        rest.split_once('}').map(|(names, _)| names)
    });
    found.extend(taken.flat_map(|names| names.split(',')).map(|name| first_name(name.trim_start())));
    found
}

/// Returns the texts within quotes in the arguments of calls, if they are names or dotted names.
fn quoted<'a>(text: &'a str, calls: &[&'static str]) -> Vec<&'a str> {
    let is_name = |word: &&str| !word.is_empty() && word.chars().all(|c| is_part(c) || c == '.');
    let starts = calls.iter().flat_map(|call| text.match_indices(*call).map(|(at, found)| at + found.len()));
    let arguments = starts.filter_map(|start| text.get(start..)).map(arguments);
    arguments.flat_map(|all| all.split(['"', '\'']).skip(1).step_by(2)).filter(is_name).collect()
}

/// Returns a text up to the bracket that closes the call in which it begins.
fn arguments(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return text.get(..at).unwrap_or_default(),
            ')' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// Returns the names of arguments in Python (`load(path, limit=6)`), unless the text defines the called function itself.
fn keywords(text: &str) -> Vec<&str> {
    let is_given = |word: &Word<'_>| word.after.starts_with('=') && !word.after.starts_with("==");
    let names = text.match_indices("def ").filter_map(|(at, found)| text.get(at + found.len()..));
    let is_function = |rest: &&str| rest.get(first_name(rest).len()..).is_some_and(|rest| rest.starts_with('('));
    let own: BTreeSet<&str> = names.filter(is_function).map(first_name).collect();
    let is_own = |word: &Word<'_>| {
        let before = word.opened.and_then(|at| word.before.get(..at)).unwrap_or_default();
        let called = last_name(before);
        let object = before.strip_suffix(called).and_then(|before| before.strip_suffix('.')).map(last_name);
        let is_of_object = object.is_some_and(|object| object != "self");
        !called.is_empty() && !is_of_object && own.contains(called)
    };
    let is_argument = |word: &Word<'_>| is_given(word) && word.before.trim_end().ends_with(['(', ',']) && !is_own(word);
    words(text).into_iter().filter(is_argument).map(|word| word.name).collect()
}

/// Returns the keys of objects and of values of structs: `{ limit: 6 }`, `{ 'limit': 6 }`, `{ limit }`.
fn keys(text: &str) -> Vec<&str> {
    let is_given = |word: &Word<'_>| word.after.starts_with(':') && !word.after.starts_with("::");
    let is_short = |word: &Word<'_>| {
        let is_in_braces = word.opened.and_then(|at| word.before.get(at..)).is_some_and(|it| it.starts_with('{'));
        word.after.trim_start().starts_with([',', '}']) && is_in_braces
    };
    let is_key = |word: &Word<'_>| word.before.trim_end().ends_with(['{', ',']) && (is_given(word) || is_short(word));
    words(text).into_iter().filter(|word| is_key(word) || is_quoted_key(word)).map(|word| word.name).collect()
}

/// Returns true if a word is a key within quotes: `{"limit": 6}`.
fn is_quoted_key(word: &Word<'_>) -> bool {
    let before = word.before.strip_suffix(['"', '\'']).map(str::trim_end);
    let after = word.after.strip_prefix(['"', '\'']).map(str::trim_start);
    before.is_some_and(|before| before.ends_with(['{', ','])) && after.is_some_and(|after| after.starts_with(':'))
}

/// Returns the keys of dictionaries: `result["count"]`, `{"count": 2}`, `"count" in result`.
fn keys_of_python(text: &str) -> Vec<&str> {
    let is_looked_up = |word: &Word<'_>| {
        let after = word.after.strip_prefix(['"', '\'']).unwrap_or_default();
        let is_asked = after.starts_with(" in ") || after.starts_with(" not in ");
        word.before.ends_with(['"', '\'']) && (is_asked || is_quoted_key(word))
    };
    let found = words(text).into_iter().filter(is_looked_up).map(|word| word.name);
    found.chain(names_after(text, &["['", "[\""])).collect()
}

/// Returns the names of functions, types, constants and modules that a text has without a module before them, besides those
/// that it defines itself. Imports of all names (`use tab::*`) do not show them.
fn bare(text: &str) -> Vec<&str> {
    let all = words(text);
    let is_own = |word: &&Word<'_>| DEFINES.contains(&last_name(word.before.trim_end()));
    let own: BTreeSet<&str> = all.iter().filter(is_own).map(|word| word.name).collect();
    let is_bare = |word: &&Word<'_>| {
        let is_shown = word.name.starts_with(char::is_uppercase) || word.after.starts_with('(');
        (is_shown || word.after.starts_with("::")) && !word.before.ends_with(['.', ':']) && !own.contains(word.name)
    };
    all.iter().filter(is_bare).map(|word| word.name).collect()
}

/// Returns the macros of Rust that a text uses: `total!(1, 2)`.
fn macros(text: &str) -> Vec<&str> {
    let is_macro = |word: &Word<'_>| ["!(", "![", "!{", "! {"].iter().any(|mark| word.after.starts_with(mark));
    words(text).into_iter().filter(is_macro).map(|word| word.name).collect()
}

/// Returns the name at the end of a text, or an empty text.
pub(super) fn last_name(text: &str) -> &str {
    let start = text.char_indices().rev().take_while(|(_, c)| is_part(*c)).last().map_or(text.len(), |(at, _)| at);
    text.get(start..).unwrap_or_default()
}

/// The names that a patch defines in Go.
#[derive(Debug, Default)]
struct OfGo<'a> {
    /// Functions, types, variables and constants of a package.
    of_package: BTreeSet<&'a str>,
    /// Methods, and fields of structs.
    members: BTreeSet<&'a str>,
    /// Methods of interfaces, which a fake in a test implements.
    methods: BTreeSet<&'a str>,
}

impl<'a> OfGo<'a> {
    fn read(patch: &'a str) -> Self {
        let mut found = Self::default();
        let (mut is_go, mut is_group, mut is_interface) = (false, false, false);
        for line in patch.lines() {
            if let Some(path) = line.strip_prefix("+++ ") {
                (is_go, is_group) = (path.trim_end_matches(['"', '\t']).ends_with(".go"), false);
            } else if let Some((_, around)) = line.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@")) {
                is_group = opens_group(around.trim_start());
                is_interface = opens_interface(around);
            } else if let Some(code) = line.get(1..).filter(|_| is_go && line.starts_with(['+', ' '])) {
                is_group = opens_group(code) || (is_group && !code.starts_with(')'));
                is_interface = opens_interface(code) || (is_interface && !code.trim_start().starts_with('}'));
                let method = code.trim_start().split_once('(').map(|(name, _)| name);
                if line.starts_with('+') && is_interface {
                    found.methods.extend(method.filter(|name| !name.is_empty() && name.chars().all(is_part)));
                }
                if line.starts_with('+') {
                    found.add(code, is_group);
                    found.add_inline(code);
                }
            }
        }
        found
    }

    /// Adds the names that a line of code defines. `is_group` is true within `const (…)`, `var (…)` and `type (…)`.
    fn add(&mut self, code: &'a str, is_group: bool) {
        let is_inside = code.starts_with(['\t', ' ']);
        let definition = ["const ", "func ", "type ", "var "].iter().find_map(|word| code.strip_prefix(word));
        if let Some(method) = code.strip_prefix("func (") {
            self.members.extend(method.split_once(") ").map(|(_, rest)| first_name(rest)));
        } else if let Some(rest) = definition {
            self.of_package.extend(listed(rest).0);
        } else if is_inside {
            let (names, rest) = listed(code.trim_start());
            let is_assigned = rest.split_whitespace().next().is_some_and(|word| word.ends_with('='));
            if is_group {
                self.of_package.extend(&names);
            }
            if !is_assigned && (rest.is_empty() || rest.starts_with([' ', '\t', '('])) {
                self.members.extend(names);
            }
        }
    }

    /// Adds the fields of structs and the methods of interfaces that are in one line: `struct{ Rows, Cols int }`.
    fn add_inline(&mut self, code: &'a str) {
        let code = code.split("//").next().unwrap_or_default();
        let items_of = |word: &'static str| -> Vec<&'a str> {
            let after = code.match_indices(word).filter_map(|(at, _)| code.get(at + word.len()..));
            let types = after.filter_map(|rest| rest.trim_start().strip_prefix('{'));
            types.map(inner).flat_map(items).filter(|item| !first_name(item).is_empty()).collect()
        };
        self.members.extend(items_of("struct").into_iter().map(first_name));
        let methods = items_of("interface").into_iter().filter(|item| item.contains('('));
        let methods: Vec<&str> = methods.map(first_name).collect();
        self.members.extend(&methods);
        self.methods.extend(methods);
    }

    /// Returns those of the names that a test uses.
    fn used<'b>(&self, text: &'b str) -> BTreeSet<&'b str> {
        let code = text.lines().flat_map(|line| line.split("//").next().unwrap_or_default().split('"').step_by(2));
        let is_used = |word: &Word<'_>| {
            let is_key = word.after.starts_with(':') && !word.after.starts_with(":=");
            let is_member = word.before.ends_with('.') || is_key;
            let is_implemented = word.before.starts_with("func (") && word.before.ends_with(") ");
            self.of_package.contains(word.name)
                || (is_member && self.members.contains(word.name))
                || (is_implemented && self.methods.contains(word.name))
        };
        code.flat_map(words).filter(is_used).map(|word| word.name).collect()
    }
}

/// Returns true if a line opens a group of definitions of Go.
fn opens_group(code: &str) -> bool {
    ["const (", "type (", "var ("].iter().any(|start| code.starts_with(start))
}

/// Returns true if a line opens an interface of Go.
fn opens_interface(code: &str) -> bool {
    code.trim_end().ends_with("interface {")
}

/// Returns the names at the start of a text with commas between them, and the rest of the text.
fn listed(text: &str) -> (Vec<&str>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let name = first_name(rest);
        rest = rest.get(name.len()..).unwrap_or_default();
        found.extend(Some(name).filter(|name| !name.is_empty()));
        match rest.strip_prefix(',') {
            Some(more) if !name.is_empty() => rest = more.trim_start(),
            _ => return (found, rest),
        }
    }
}

/// A name in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) before: &'a str,
    pub(super) name: &'a str,
    pub(super) after: &'a str,
    /// The place of the last bracket before the name that nothing closes.
    pub(super) opened: Option<usize>,
}

/// Returns the names in a text.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let (before, rest) = text.split_at(at);
        let name = first_name(rest);
        match first {
            '(' | '[' | '{' => open.push(at),
            ')' | ']' | '}' => _ = open.pop(),
            _ => {}
        }
        if name.is_empty() {
            at += first.len_utf8();
            continue;
        }
        let after = rest.get(name.len()..).unwrap_or_default();
        found.push(Word { before, name, after, opened: open.last().copied() });
        at += name.len();
    }
    found
}

/// Returns the name at the start of a text, or an empty text.
pub(super) fn first_name(text: &str) -> &str {
    text.get(..text.find(|c: char| !is_part(c)).unwrap_or(text.len())).unwrap_or_default()
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mine::runner::Tree;

    fn all(path: &str, text: &str, patch: &str) -> Vec<String> {
        let tests = [(path.to_owned(), text.to_owned())];
        names(&tests, patch).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn names_that_tests_reach_are_those_that_the_patch_defines() {
        let patch =
            "+++ b/calc.py\n+def half(a):\n+    helper = 1\n+class Sum:\n+    def run_all(self): pass\n+LIMIT = 1\n";
        let text = "import calc\ncalc.half(2)\ncalc.Sum().run_all()\ncalc.LIMIT\nx.helper\nx.other\n";
        assert_eq!(all("tests/test_a.py", text, patch), ["LIMIT", "Sum", "half", "run_all"]);
        let patch = "+++ b/index.js\n+exports.newName = (x) => x;\n+  addAll(items) {\n+const inner = 1;\n";
        let text = "const lib = require('..');\nlib.newName(1)?.addAll();\n// inner\n";
        assert_eq!(all("test/a.js", text, patch), ["addAll", "newName"]);
        let exported = "+++ b/index.js\n+module.exports = { product: function (a, b) { return a * b; } };\n";
        assert_eq!(all("test/a.js", "lib.product(2, 3)", exported), ["product"]);
        assert_eq!(all("test/a.js", "lib['product'](2, 3)", exported), ["product"]);
        assert_eq!(all("a.test.ts", "const { inner, x } = lib;\n", patch), ["inner"]);
        let patch = "+++ b/src/lib.rs\n+pub fn half(a: u32) -> u32 { a / 2 }\n+    pub width: u32,\n+    Wide,\n";
        assert_eq!(all("tests/a.rs", "calc::half(2); a.width; Kind::Wide; half_of", patch), ["Wide", "half", "width"]);
        assert_eq!(all("tests/a.rs", "Size { width: 2 }", patch), ["width"]);
    }

    #[test]
    fn words_of_tests_in_other_languages_are_names() {
        let has = |path: &str, text: &str| is_in_other_test(&[(path.to_owned(), text.to_owned())], "half");
        assert!(has("src/test/java/ATest.java", "assertEquals(1, Calc.half(2));"));
        assert!(!has("src/test/java/ATest.java", "assertEquals(1, Calc.halfOf(2));"));
        assert!(!has("tests/test_a.py", "half = 1"));
        assert!(!has("test/a.js", "// half"));
    }

    #[test]
    fn names_within_quotes_are_used_by_calls_that_look_them_up() {
        let patch = "+++ b/acme/io.py\n+def _fetch(p):\n+def lines(p):\n";
        for (text, expected) in [
            ("with mock.patch.object(io, \"_fetch\", return_value=\"a\\r\\nb\"):\n", &["_fetch"][..]),
            ("monkeypatch.setattr(io, '_fetch', lambda p: (p, 1))\n", &["_fetch"]),
            ("getattr(make(io), \"lines\")(1)\n", &["lines"]),
            ("mock.patch(\"acme.io._fetch\")\n", &["_fetch"]),
            ("print(\"_fetch\", getattr(io, \"other\"))\n", &[]),
        ] {
            assert_eq!(all("tests/test_io.py", text, patch), expected, "{text}");
        }
        let patch = "+++ b/io.js\n+exports.fetchAll = (p) => p;\n";
        assert_eq!(all("io.test.js", "jest.spyOn(io, 'fetchAll');\n", patch), ["fetchAll"]);
    }

    #[test]
    fn arguments_by_keyword_and_keys_of_options_are_names() {
        let patch = "+++ b/io.py\n+def load(p, limit=None):\n+    return p[:limit]\n";
        for (text, expected) in [
            ("load(__file__, limit=6)\n", &["limit"][..]),
            ("load(\n    limit=6,\n)\n", &["limit"]),
            ("limit = 6\nassert (limit==6)\n", &[]),
            ("load(__file__, size=6)\n", &[]),
        ] {
            assert_eq!(all("tests/test_io.py", text, patch), expected, "{text}");
        }
        let patch = "+++ b/index.js\n+export const row = (l, { sep = '|' } = {}) => l.join(sep);\n";
        assert_eq!(all("a.test.js", "row(['a', 'b'], { sep: ';' })", patch), ["sep"]);
        assert_eq!(all("a.test.js", "row(['a', 'b'], { other: sep ? 1 : 2 })", patch), Vec::<String>::new());
        assert_eq!(all("a.test.js", "row(['a', 'b'], { sep })", patch), ["sep"]);
        assert_eq!(all("a.test.js", "row(['a', sep, 'b'])", patch), Vec::<String>::new());
    }

    #[test]
    fn a_long_list_in_a_test_is_read_once() {
        let begun = std::time::Instant::now();
        let patch = "+++ b/index.js\n+export const row = (l, { sep = '|' } = {}) => l.join(sep);\n";
        let text = format!("const all = [{}0];\nrow(all, {{ sep }});\n", "1, ".repeat(100_000));
        assert_eq!(all("a.test.js", &text, patch), ["sep"]);
        let patch = "+++ b/io.py\n+def load(p, limit=None):\n+    return p[:limit]\n";
        let text = format!("load({}limit=6)\n", "other=6, ".repeat(50_000));
        assert_eq!(all("tests/test_io.py", &text, patch), ["limit"]);
        // Reading the list again for each of its items takes minutes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_a_patch_passes_or_keeps_to_itself_is_no_name() {
        for (path, patch, text) in [
            // The fix and its test pass the same argument to the standard library.
            ("a.py", "+def dump(d):\n+    return json.dumps(d, sort_keys=True)\n", "json.dumps(d, sort_keys=True)\n"),
            (
                "a.js",
                "+export const put = (p) => fs.mkdirSync(p, { deep: true });\n",
                "fs.rmSync(p, { deep: true });\n",
            ),
            // A local variable.
            ("a.py", "+def twelve(a):\n+    offset = 12\n+    return a + offset\n", "chk(1, offset=12)\n"),
            ("a.js", "+  let expected = 0;\n+  for (const x of l) expected += x;\n", "[{ given: 1, expected: 3 }]\n"),
            // A parameter of the patch that the test passes only to its own function.
            ("a.py", "+def cut(s, size=0):\n", "def chk(v, size=0):\n    return v\nchk(1, size=2)\n"),
        ] {
            let patch = format!("+++ b/lib/{path}\n{patch}");
            assert_eq!(all(&format!("tests/{path}"), text, &patch), Vec::<String>::new(), "{patch}");
        }
    }

    #[test]
    fn variables_of_tests_that_the_patch_has_as_local_variables_are_no_names() {
        let patch = "+++ b/lib/sum.js\n+exports.sum = (l) => {\n+  let expected = 0;\n+  return expected;\n+};\n";
        let text = "const expected = 3;\nfor (const it of cases) assert.equal(lib.sum(it.given), it.expected);\n\
                    const { given, expected } = cases[0];\nassert.equal(expected, cases[0]['expected']);\n";
        assert_eq!(all("test/sum.js", text, patch), ["sum"]);
        let patch = "+++ b/src/lib.rs\n+pub fn sum(l: &[u8]) -> u8 {\n+    let mut expected = 0;\n+    expected\n+}\n\
                     +#[cfg(test)]\n+mod tests {\n+    fn wanted() -> u8 {\n+        let expected = 1;\n+    }\n+}\n";
        let text = "struct Case { expected: u8, wanted: u8 }\nlet expected = 3;\nlet it = Case { expected, wanted: 1 };\n\
                    assert_eq!(tab::sum(&[1, 2]), it.expected + it.wanted);\nlet all = if x { expected } else { 4 };\n";
        assert_eq!(all("tests/sum.rs", text, patch), ["sum"]);
    }

    #[test]
    fn variables_of_imports_that_the_patch_has_as_local_variables_are_no_names() {
        let patch = "+++ b/lib/sum.js\n+function total(l) {\n+  let expected = 0;\n+  const kept = {};\n+  return expected;\n+}\n\
                     +exports.kept = total;\n";
        let imports = "const expected = require('./data.json').sum;\nconst { kept } = require('..');\nimport { total } from '..';\n";
        assert_eq!(imported(imports, patch).into_iter().collect::<Vec<String>>(), ["kept", "total"]);
    }

    #[test]
    fn fields_of_results_are_names() {
        let patch = "+++ b/acme/core.py\n+def stats(l):\n+    return {\"count\": len(l), \"longest\": max(l)}\n";
        for (text, expected) in [
            ("r = core.stats(l)\nassert r[\"count\"] == r['longest'] == 2\n", &["count", "longest", "stats"][..]),
            ("self.assertEqual(run(), {'count': 1, \"other\": 2})\n", &["count"]),
            ("assert run() == dict(count=1) and \"longest\" in run()\n", &["count", "longest"]),
            ("self.assertIn('longest', run())\nrun().get('count')\n", &["count", "longest"]),
            ("x.count('a')\nprint('count', \"longest\")\n", &[]),
        ] {
            assert_eq!(all("tests/test_core.py", text, patch), expected, "{text}");
        }
        let patch = "+++ b/lib/index.js\n+exports.stats = (l) => {\n+  const r = {};\n+  r.openings = l.length;\n+  return r;\n+};\n";
        for (text, expected) in [
            ("assert.deepEqual(run(), { openings: 2, longest: 3 });", &["openings"][..]),
            ("assert.deepEqual(run(), { 'openings': 2 });", &["openings"]),
            ("expect(run()).toHaveProperty('openings', 2);", &["openings"]),
            ("assert.equal(run().openings, 2);", &["openings"]),
            ("const { openings } = run();", &["openings"]),
            ("const openings = run();", &[]),
        ] {
            assert_eq!(all("test/index.js", text, patch), expected, "{text}");
        }
    }

    #[test]
    fn types_that_calls_of_python_make_have_names() {
        let patch = "+++ b/acme/core.py\n+Size = namedtuple(\"Size\", \"rows columns\")\n+Mode = IntEnum(\"Mode\", \"QUICK FULL\")\n";
        let text = "assert size(t).rows == 1\nassert Size(columns=2)\nrun(core.Mode.QUICK)\n";
        assert_eq!(all("tests/test_core.py", text, patch), ["Mode", "QUICK", "columns", "rows"]);
        let patch = "+++ b/acme/core.py\n+def show(x, **options):\n+    sep = options.pop(\"separator\", \",\")\n";
        assert_eq!(all("tests/test_core.py", "core.show(x, separator=';')\n", patch), ["separator", "show"]);
    }

    #[test]
    fn macros_and_exports_of_rust_are_names() {
        let patch = "+++ b/src/lib.rs\n+macro_rules! total {\n+pub use inner::add_all as sum_all;\n";
        assert_eq!(all("tests/a.rs", "tab::total!(1, 2); tab::sum_all(&[1]);", patch), ["sum_all", "total"]);
        assert_eq!(all("tests/a.rs", "use tab::*;\nfn a() { assert_eq!(total![1, 2], 3); }\n", patch), ["total"]);
    }

    #[test]
    fn names_of_imports_of_all_names_are_used_without_a_module() {
        let patch = "+++ b/src/lib.rs\n+pub enum Kind { Wide, Tall(u8) }\n+pub fn half(n: u8) -> u8 { n / 2 }\n+pub fn twice() {}\n";
        let text =
            "fn twice() {}\n#[test]\nfn a() { half(2); twice(); x.Wide; match k() { Tall(_) => {}, _ => {} } }\n";
        assert_eq!(
            all("tests/a.rs", &format!("use tab::{{Kind::*, *}};\n{text}"), patch),
            ["Kind", "Tall", "Wide", "half"]
        );
        assert_eq!(all("tests/a.rs", text, patch), ["Wide"]);
        let patch = "+++ b/calc.py\n+LIMIT = 1\n+def half(n): pass\n+def twice(n): pass\n";
        let text = "def twice(n): pass\nassert half(LIMIT) == twice(1)\n";
        assert_eq!(all("tests/test_a.py", &format!("from calc import *\n{text}"), patch), ["LIMIT", "half"]);
        assert_eq!(all("tests/test_a.py", text, patch), Vec::<String>::new());
    }

    #[test]
    fn methods_that_a_fake_implements_are_names() {
        let patch = "+++ b/calc/copy.go\n@@ -0,0 +1,6 @@\n+package calc\n+\n+type Store interface {\n+\tFetch(k string) string\n\
                     +}\n+func Copy(s Store) { print(s) }\n";
        let text = "func (f fake) Fetch(k string) string { return f[k] }\nfunc (f fake) print(k string) {}\nCopy(f)\n";
        assert_eq!(all("calc/copy_test.go", text, patch), ["Copy", "Fetch"]);
        let patch = "+++ b/calc/copy.go\n+type Store interface{ Fetch(k string) string; Close() }\n";
        assert_eq!(all("calc/copy_test.go", text, patch), ["Fetch"]);
    }

    #[test]
    fn methods_that_a_type_of_a_test_implements_are_names() {
        let patch = "+++ b/src/lib.rs\n+pub trait Plug {\n+    fn handle_event(&self, kind: &str) -> String;\n+    fn fire(&self) {}\n+}\n\
                     +fn other() {}\n";
        let text = "impl tab::Plug for Mine {\n    fn handle_event(&self, kind: &str) -> String { kind.to_owned() }\n}\n\
                    fn other() {}\n";
        assert_eq!(all("tests/a.rs", text, patch), ["Plug", "handle_event"]);
        let patch = "+++ b/acme/core.py\n+class Plug(abc.ABC):\n+    @abc.abstractmethod\n+    def handle(self, kind):\n+        ...\n\
                     +    def fire(self):\n+        return self.handle('go')\n";
        let text = "class Mine(core.Plug):\n    def handle(self, kind):\n        return kind\n    def fire(self):\n        pass\n";
        assert_eq!(all("tests/test_core.py", text, patch), ["Plug", "handle"]);
    }

    #[test]
    fn attributes_of_classes_and_getters_are_names() {
        let patch = "+++ b/acme/io.py\n@@ -1,4 +1,5 @@\n class Mode(enum.Enum):\n     FAST = 1\n+    THOROUGH = 2\n def run(m):\n\
                     +    total = 1\n";
        assert_eq!(all("tests/test_io.py", "run(Mode.THOROUGH)\nx.total\n", patch), ["THOROUGH"]);
        let patch = "+++ b/index.js\n+  get wordCount() { return this.s.split(' ').length; }\n";
        assert_eq!(all("a.test.js", "assert.equal(t.wordCount, 2);", patch), ["wordCount"]);
    }

    #[test]
    fn names_of_go_are_used_with_and_without_their_package() {
        let patch = "+++ b/calc/pad.go\n@@ -0,0 +1,9 @@\n+package calc\n+\n+func PadLeft(s string) string {\n+\tout := s\n+}\n\
                     +\n+func (t *Table) addRow(s string) {\n+type Options struct {\n+\tWidth, Height int\n+}\n\
                     @@ -3,2 +9,3 @@ const (\n \tRed = 1\n+\tGreen = 2\n )\n+var errWide, errTall = 1, 2\n";
        for (text, expected) in [
            ("calc.PadLeft(\"x\")\n", &["PadLeft"][..]),
            ("PadLeft(x)\n", &["PadLeft"]),
            ("var ExportedWide = errWide // errTall\n", &["errWide"]),
            ("t.addRow(calc.Options{Width: 3})\n", &["Options", "Width", "addRow"]),
            ("calc.Green\n", &["Green"]),
            ("x.out, out, addRow, Width, \"PadLeft\"\n", &[]),
            ("calc.Red\n", &[]),
        ] {
            assert_eq!(all("calc/calc_test.go", text, patch), expected, "{text}");
        }
    }

    #[test]
    fn fields_of_structs_of_go_in_one_line_are_names() {
        let patch = "+++ b/calc/size.go\n+type Size struct{ Rows, Cols int } // struct{ Other int }\n+type (\n\
                     +\tGen[T any] struct{ Value T }\n+\tOuter struct {\n\
                     +\t\tAny struct{ First struct{ Deep int }; Last []struct{} }\n+\t}\n+)\n";
        let text = "s.Rows + s.Cols + g.Value + o.Any.First.Deep + o.Any.Last[0] + o.Other\n";
        assert_eq!(all("calc/size_test.go", text, patch), ["Any", "Cols", "Deep", "First", "Last", "Rows", "Value"]);
    }

    #[test]
    fn modules_that_tests_replace_and_new_packages_of_go_are_files() {
        let tree =
            |files: &[&str]| Tree { files: files.iter().map(|path| (*path).to_owned()).collect(), ..Tree::default() };
        for (path, text, expected) in [
            ("tests/test_a.py", "mock.patch(\"acme.web.fetch\")\n", &["src/acme/web.py"][..]),
            ("tests/test_a.py", "mock.patch(\"acme.io.load\")\n", &[]),
            ("tests/test_a.py", "monkeypatch.setattr(\"acme.web.Client.get\", 1)\n", &["src/acme/web.py"]),
            ("calc_test.go", "import \"example.com/calc/pad\"\n", &["pad"]),
            ("pad/pad_test.go", "package pad\n", &["pad"]),
            ("calc_test.go", "import \"example.com/calc/text\"\n", &[]),
        ] {
            let before = ["src/acme/__init__.py", "src/acme/io.py", "calc.go", "text/text.go"];
            let after = [&before[..], &["src/acme/web.py", "pad/pad.go", "new/new_test.go"]].concat();
            let change = Change {
                before: tree(&before),
                after: tree(&after),
                test_texts: vec![(path.to_owned(), text.to_owned())],
                ..Change::default()
            };
            assert_eq!(files(&change).into_iter().collect::<Vec<String>>(), expected, "{path} {text}");
        }
    }
}
