//! Finds what tests expect of each solution: the names and the files that they use and that only the commit introduces. Pure.

use std::collections::BTreeSet;

use super::change::Change;
use super::options;
use super::role::{Role, folder};
use crate::audit::definitions;

/// The maximum number of names in a prompt besides imported ones.
const MOST_NAMES: usize = 100;
/// The endings of JavaScript and TypeScript.
pub(super) const OF_NODE: [&str; 8] = ["cjs", "cts", "js", "jsx", "mjs", "mts", "ts", "tsx"];
/// Calls of Python with the name of an attribute within quotes.
const WITH_NAMES_OF_PYTHON: [&str; 9] =
    ["attrgetter(", "delattr(", "getattr(", "hasattr(", "methodcaller(", "patch(", "patch.object(", "setattr(", "spy("];
/// Calls of Node with the name of a member within quotes.
const WITH_NAMES_OF_NODE: [&str; 5] = ["mock.method(", "replaceProperty(", "spy(", "spyOn(", "stub("];
/// The folders that modules of Python are imported from.
const ROOTS_OF_PYTHON: [&str; 3] = ["", "src/", "lib/"];

/// Returns the names that tests use without an import, and that a patch introduces: parts of something else (`module.name`,
/// `object.name()`, `crate::name`, `const { name } = lib`), names within quotes in calls such as `getattr` and `patch.object`,
/// arguments by keyword, and keys of options, if the patch defines them as such. In Go, tests of the same package use names
/// without a package.
pub(super) fn names<'a>(tests: &'a [(String, String)], patch: &str) -> BTreeSet<&'a str> {
    let mut defined = definitions::members(patch);
    let attributes = options::attributes(patch);
    defined.extend(&attributes);
    let given = options::names(patch);
    let of_go = OfGo::read(patch);
    let mut found = BTreeSet::new();
    for (path, text) in tests {
        let extension = path.rsplit_once('.').map_or("", |(_, end)| end);
        // Names that count if the patch defines them, and names that count if the patch also defines them as parameters.
        let (members, arguments) = match extension {
            "py" => ([members(text, &["."]), quoted(text, &WITH_NAMES_OF_PYTHON)].concat(), keywords(text)),
            "rs" => ([members(text, &[".", "::"]), keys(text)].concat(), Vec::new()),
            "go" => {
                found.extend(of_go.used(text));
                continue;
            }
            _ if OF_NODE.contains(&extension) => {
                let all = [members(text, &["."]), members_of_node(text), quoted(text, &WITH_NAMES_OF_NODE)];
                (all.concat(), keys(text))
            }
            _ => continue,
        };
        found.extend(members.into_iter().filter(|name| defined.contains(name)));
        found.extend(arguments.into_iter().filter(|name| given.contains(*name) || attributes.contains(name)));
    }
    found.into_iter().filter(|name| name.chars().count() >= 2).take(MOST_NAMES).collect()
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
fn members<'a>(text: &'a str, marks: &[&'static str]) -> Vec<&'a str> {
    marks.iter().flat_map(|mark| text.split(*mark).skip(1)).map(first_name).collect()
}

/// Returns the names in `lib['name']` and `const { name } = lib`.
fn members_of_node(text: &str) -> Vec<&str> {
    let mut found = members(text, &["['", "[\""]);
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
    let is_own = |word: &Word<'_>| {
        let before = opening(word.before).and_then(|at| word.before.get(..at)).unwrap_or_default();
        let called = last_name(before);
        let object = before.strip_suffix(called).and_then(|before| before.strip_suffix('.')).map(last_name);
        let is_of_object = object.is_some_and(|object| object != "self");
        !called.is_empty() && !is_of_object && text.contains(&format!("def {called}("))
    };
    let is_argument = |word: &Word<'_>| is_given(word) && word.before.trim_end().ends_with(['(', ',']) && !is_own(word);
    words(text).into_iter().filter(is_argument).map(|word| word.name).collect()
}

/// Returns the keys of objects and of values of structs: `{ limit: 6 }`, `{ limit }`.
fn keys(text: &str) -> Vec<&str> {
    let is_given = |word: &Word<'_>| word.after.starts_with(':') && !word.after.starts_with("::");
    let is_short = |word: &Word<'_>| {
        let is_in_braces =
            || opening(word.before).and_then(|at| word.before.get(at..)).is_some_and(|it| it.starts_with('{'));
        word.after.trim_start().starts_with([',', '}']) && is_in_braces()
    };
    let is_key = |word: &Word<'_>| word.before.trim_end().ends_with(['{', ',']) && (is_given(word) || is_short(word));
    words(text).into_iter().filter(is_key).map(|word| word.name).collect()
}

/// Returns the place of the last bracket in a text that nothing closes.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth == 0 => return Some(at),
            '(' | '[' | '{' => depth -= 1,
            _ => {}
        }
    }
    None
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
}

/// Returns the names in a text.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let name = first_name(rest);
        if name.is_empty() {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let after = rest.get(name.len()..).unwrap_or_default();
        found.push(Word { before: text.get(..at).unwrap_or_default(), name, after });
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
    fn methods_that_a_fake_implements_are_names() {
        let patch = "+++ b/calc/copy.go\n@@ -0,0 +1,6 @@\n+package calc\n+\n+type Store interface {\n+\tFetch(k string) string\n\
                     +}\n+func Copy(s Store) { print(s) }\n";
        let text = "func (f fake) Fetch(k string) string { return f[k] }\nfunc (f fake) print(k string) {}\nCopy(f)\n";
        assert_eq!(all("calc/copy_test.go", text, patch), ["Copy", "Fetch"]);
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
