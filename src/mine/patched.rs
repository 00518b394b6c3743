//! Reads the hunks of a patch as the code that is there afterwards. Pure.

use std::collections::BTreeSet;

use super::brackets::inner;
use super::interface::{first_name, words};
use super::language::NODE;

/// Words of JavaScript that can precede a bracket, as the name of a method does, but are no names of methods.
pub(super) const NO_METHODS: [&str; 12] =
    ["await", "catch", "constructor", "for", "function", "if", "return", "super", "switch", "typeof", "while", "with"];
/// The maximum number of bytes of a line of a hunk that is read. A longer one is the work of a program.
const MAX_LINE_BYTES: usize = 2_000;

/// A hunk of a patch, without comments, and without the modules of tests in code of Rust.
#[derive(Debug, Default)]
pub(super) struct Hunk<'a> {
    /// The ending of the file, without its dot.
    pub(super) extension: &'a str,
    /// The line behind `@@`, which shows the code around the hunk, and the lines of the hunk after the change.
    pub(super) code: String,
    /// The lines that the patch adds.
    pub(super) added: Vec<&'a str>,
}

impl Hunk<'_> {
    /// Returns those of the names in the code of a hunk that a line has which the patch adds.
    pub(super) fn introduced(&self, names: Vec<&str>) -> Vec<String> {
        let added: BTreeSet<&str> = self.added.iter().flat_map(|line| words(line)).map(|word| word.name).collect();
        names.into_iter().filter(|name| added.contains(name)).map(str::to_owned).collect()
    }
}

pub(super) fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let mut found: Vec<Hunk<'_>> = Vec::new();
    let mut extension = "";
    // The indentation of the module of tests that is being read.
    let mut tests = None;
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            (extension, tests) = (ending(path), None);
            found.push(Hunk { extension, ..Hunk::default() });
        } else if let Some(rest) = line.strip_prefix("@@ ") {
            let around = rest.split_once(" @@").map_or("", |(_, around)| around.trim());
            tests = opens_tests(around, extension).then_some(0);
            // A list of parameters that ends before the hunk would not end in it.
            let is_whole = around.matches('(').count() == around.matches(')').count();
            let code = if is_whole && !around.is_empty() { format!("{around}\n") } else { String::new() };
            found.push(Hunk { extension, code, added: Vec::new() });
        } else if let Some(hunk) =
            found.last_mut().filter(|_| line.starts_with(['+', ' ']) && line.len() <= MAX_LINE_BYTES)
        {
            let code = without_comment(line.get(1..).unwrap_or_default(), extension);
            let indent = code.len() - code.trim_start().len();
            if let Some(outer) = tests {
                if indent == outer && code.trim_start().starts_with('}') {
                    tests = None;
                }
                continue;
            }
            if opens_tests(code.trim(), extension) {
                tests = Some(indent);
                continue;
            }
            hunk.code.push_str(code);
            hunk.code.push('\n');
            hunk.added.extend(Some(code).filter(|_| line.starts_with('+')));
        }
    }
    found
}

/// Returns true if a line opens a module of tests in code of Rust.
fn opens_tests(line: &str, extension: &str) -> bool {
    extension == "rs" && ["mod test {", "mod tests {"].contains(&line)
}

/// Returns a line of code without its comment.
fn without_comment<'a>(line: &'a str, extension: &str) -> &'a str {
    let start = line.trim_start();
    if extension == "py" {
        return if start.starts_with('#') { "" } else { line.split("  # ").next().unwrap_or_default() };
    }
    if let Some(rest) = start.strip_prefix("/*") {
        return rest.split_once("*/").map_or("", |(_, code)| code);
    }
    let is_comment = start == "*" || ["//", "* ", "*/"].iter().any(|mark| start.starts_with(mark));
    if is_comment && !(NODE.has_extension(extension) && begins_generator(start)) {
        return "";
    }
    line.split(" // ").next().unwrap_or_default()
}

/// Returns true if a line of JavaScript begins a method that is a generator: `* leaves() {`. A line of a comment may begin with an
/// asterisk, too.
fn begins_generator(line: &str) -> bool {
    let Some(method) = line.strip_prefix("* ") else { return false };
    let name = first_name(method);
    let list = method.strip_prefix(name).and_then(|rest| rest.trim_start().strip_prefix('('));
    let body = list.and_then(|list| list.get(inner(list).len() + 1..)).unwrap_or_default();
    let is_named = !name.is_empty() && !NO_METHODS.contains(&name);
    is_named && body.trim_start().starts_with(['{', ':']) && line.ends_with(['{', '}'])
}

/// Returns the ending of the file in a line `+++ b/…` of a patch, without its dot.
pub(super) fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, end)| end.trim_end_matches(['"', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_have_no_comments_and_no_modules_of_tests() {
        let patch = "+++ b/a.rs\n@@ -1,2 +1,9 @@ pub enum Kind {\n     Wide, // not, tall\n+    /// Or tall.\n+    Tall,\n-    Old,\n }\n\
                     +#[cfg(test)]\n+mod tests {\n+    fn a() {\n+    }\n+}\n+const X: u8 = 1;\n\
                     @@ -30,1 +40,2 @@ mod tests {\n     fn b() {\n+        let expected = 1;\n";
        let found: Vec<(String, Vec<&str>)> = hunks(patch).into_iter().map(|hunk| (hunk.code, hunk.added)).collect();
        let code = "pub enum Kind {\n    Wide,\n\n    Tall,\n}\n#[cfg(test)]\nconst X: u8 = 1;\n";
        assert_eq!(
            found,
            [
                (String::new(), Vec::new()),
                (code.to_owned(), vec!["", "    Tall,", "#[cfg(test)]", "const X: u8 = 1;"]),
                ("mod tests {\n".to_owned(), Vec::new()),
            ]
        );
        let patch = "+++ b/a.js\n@@ -0,0 +1,4 @@\n+   * leaves (a) reads {a}\n+   * if (a) {\n+  * leaves(a) {\n+  * nodes() {}\n";
        assert_eq!(hunks(patch)[1].code, "\n\n  * leaves(a) {\n  * nodes() {}\n");
        let patch = "+++ b/a.py\n@@ -1,9 +1,9 @@ def load(\n+x = 1  # one\n+# two\n";
        let hunks = hunks(patch);
        assert_eq!(hunks[1].code, "x = 1\n\n");
        assert_eq!(hunks[1].introduced(vec!["x", "y"]), ["x"]);
    }
}
