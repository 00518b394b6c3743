//! Finds the modules that a text of Node loads or runs: those of its imports, those that it names by their paths, and those
//! whose paths a call puts together. Pure.

use std::collections::BTreeSet;

use super::node_names::{ENDINGS, Names};
use crate::mine::brackets::inner;
use crate::mine::language::NODE;
use crate::mine::role::split;
use crate::text::first_bytes;

/// Calls that load a module.
const LOADS: [&str; 2] = ["require(", "import("];
/// The call that makes a `require` for another folder than that of the file.
const MAKES_REQUIRE: &str = "createRequire";
/// Programs that run a module.
const RUNS: [&str; 4] = ["bun", "node", "ts-node", "tsx"];
/// Calls that put a path together.
const PATHS: [&str; 3] = ["join(", "resolve(", "URL("];
/// Words of expressions that mean no part of a path, or its beginning.
const BASES: [&str; 22] = [
    "URL",
    "__dirname",
    "__filename",
    "await",
    "cwd",
    "dirname",
    "fileURLToPath",
    "filename",
    "href",
    "import",
    "join",
    "meta",
    "new",
    "normalize",
    "path",
    "pathToFileURL",
    "pathname",
    "process",
    "require",
    "resolve",
    "toString",
    "url",
];
/// The maximum number of bytes of the arguments of a call.
const MAX_ARGUMENT_BYTES: usize = 400;
/// The maximum number of calls of a text that are read.
const MAX_CALLS: usize = 200;

/// A part of a path; `None` is one that only a run shows.
type Part = Option<String>;

/// The modules that a text loads or runs.
#[derive(Debug, Default)]
pub(super) struct Loads {
    pub(super) modules: BTreeSet<String>,
    /// Modules that are loaded fresh (`import("./a.mjs?t=1")`), or by a `require` for another folder: the product may be loaded
    /// in these ways, too.
    pub(super) special: BTreeSet<String>,
    /// True if the text loads a module by a path that only a run shows.
    pub(super) is_computed: bool,
}

/// Returns the modules that a file of Node loads or runs.
pub(super) fn loads(path: &str, text: &str, names: &Names) -> Loads {
    let mut loads = Loads { is_computed: hides_names(text), ..Loads::default() };
    for line in text.lines() {
        for word in line.split(['"', '\'', '`']).filter(|_| may_import(line)) {
            let imported = names.imported(path, without_query(word));
            if word.contains('?') { loads.special.extend(imported) } else { loads.modules.extend(imported) }
        }
        for word in line.split(['"', '\'', '`']).flat_map(words).map(value_of_option) {
            let is_path = word.contains('/') && word.contains(char::is_alphanumeric) && !word.starts_with('/');
            if is_path && !word.contains(char::is_whitespace) {
                let is_relative = word.starts_with("./") || word.starts_with("../");
                let beside = if is_relative { names.imported(path, word) } else { BTreeSet::new() };
                // A program is started in the top folder.
                let all = beside.into_iter().chain(names.at(word));
                loads.modules.extend(all.filter(|file| NODE.has(file)));
            }
        }
    }
    for arguments in calls(text, &LOADS).filter(|arguments| !is_literal(arguments)) {
        let parts = known_parts(arguments, text);
        let files = fitting(&parts, names);
        loads.is_computed |= files.is_empty();
        let files = files.into_iter().filter(|file| NODE.has(file));
        if has_query(arguments) { loads.special.extend(files) } else { loads.modules.extend(files) }
    }
    for arguments in calls(text, &PATHS) {
        let parts = parts_of(arguments);
        let is_whole =
            parts.last().is_some_and(|last| last.as_deref().is_some_and(|name| parts.len() > 1 || NODE.has(name)));
        if is_whole {
            let files = fitting(&parts, names).into_iter().filter(|file| NODE.has(file));
            if has_query(arguments) { loads.special.extend(files) } else { loads.modules.extend(files) }
        }
    }
    let required = required(text);
    loads.special.extend(required.iter().flat_map(|parts| fitting(parts, names)).filter(|file| NODE.has(file)));
    loads.special = loads.special.difference(&loads.modules).cloned().collect();
    loads
}

/// Returns the modules that the imports of a file of Node name, by themselves or by a path that a call puts together.
pub(super) fn imported(path: &str, text: &str, names: &Names) -> BTreeSet<String> {
    let text = plain(text);
    let words = text.lines().filter(|line| may_import(line)).flat_map(|line| line.split(['"', '\'', '`']));
    let mut found: BTreeSet<String> = words.flat_map(|word| names.imported(path, without_query(word))).collect();
    let put_together = calls(&text, &LOADS).filter(|arguments| !is_literal(arguments));
    let paths = put_together.map(|arguments| known_parts(arguments, &text)).chain(required(&text));
    for parts in paths.filter(|parts| parts.iter().all(Option::is_some)) {
        // Many files have the same name.
        let is_shown = |file: &String| NODE.has(file) && (parts.len() > 1 || !file.contains('/'));
        found.extend(fitting(&parts, names).into_iter().filter(is_shown));
    }
    found
}

/// Returns a text of Node without its comments. Of texts in quotes, only those of one word stay: others may be code.
pub(super) fn plain(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\'', '`', '/']) {
        let (before, from) = rest.split_at(at);
        found.push_str(before);
        rest = if let Some(after) = after_comment(from) {
            after
        } else if let Some((word, after)) = split_quoted(from) {
            let is_word = !word.contains(|c: char| c.is_whitespace() || "\"'`".contains(c));
            let quote = from.get(..1).unwrap_or_default();
            found.extend([quote, if is_word { word } else { "" }, quote]);
            after
        } else {
            let (sign, after) = from.split_at(1);
            found.push_str(sign);
            after
        };
    }
    found + rest
}

/// Returns what follows the comment at the start of a text of Node.
fn after_comment(text: &str) -> Option<&str> {
    if text.starts_with("//") {
        return text.get(text.find('\n').unwrap_or(text.len())..);
    }
    text.strip_prefix("/*")?.split_once("*/").map(|(_, after)| after)
}

/// Splits the content of the quotes at the start of a text of Node from what follows them. Only a text in backticks has several
/// lines.
fn split_quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' if quote != '`' => return None,
            _ if c == quote => return text.get(1..at).zip(text.get(at + 1..)),
            _ => {}
        }
    }
    None
}

fn may_import(line: &str) -> bool {
    ["import", "require", "from"].iter().any(|word| line.contains(word))
}

/// Returns true if a text names modules in a way that is not read here: by a path with escapes, or in folders that a variable
/// of the environment names.
fn hides_names(text: &str) -> bool {
    let is_path = |word: &str| (word.contains("\\u") || word.contains("\\x")) && word.contains('/');
    let has_escape = |line: &str| line.split(['"', '\'', '`']).skip(1).step_by(2).any(is_path);
    let loads = |line: &&str| LOADS.iter().any(|sign| line.contains(sign)) || line.contains(" from ");
    (text.contains("NODE_PATH") && text.contains("_initPaths")) || text.lines().filter(loads).any(has_escape)
}

/// Returns a path without its query: `./checks.js?fresh=1` is `./checks.js`.
fn without_query(word: &str) -> &str {
    word.split('?').next().unwrap_or_default()
}

/// Returns true if a text in quotes is a path with a query.
fn has_query(arguments: &str) -> bool {
    arguments.split(['"', '\'', '`']).skip(1).step_by(2).any(|word| word.contains('?'))
}

/// Returns the value of an option: `--import=./checks.mjs` has `./checks.mjs`.
fn value_of_option(word: &str) -> &str {
    word.strip_prefix("--").and_then(|option| option.split_once('=')).map_or(word, |(_, value)| value)
}

/// Returns the texts in quotes that are relative paths.
fn relative(text: &str) -> impl Iterator<Item = &str> {
    let words = text.lines().flat_map(|line| line.split(['"', '\'', '`']));
    words.filter(|word| word.starts_with("./") || word.starts_with("../"))
}

/// Returns the folders, as parts of their paths, from which a text loads modules with `createRequire`.
fn required_from(text: &str) -> Vec<Vec<Part>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    // `import { createRequire as make }` and `const { createRequire: make }`
    let other = |rest: &str| {
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("as ").or_else(|| rest.strip_prefix(':'))?.trim_start();
        rest.split(|c: char| !is_name(c)).next().filter(|name| !name.is_empty()).map(str::to_owned)
    };
    let mut signs = vec![MAKES_REQUIRE.to_owned()];
    signs.extend(text.split(MAKES_REQUIRE).skip(1).filter_map(other));
    let mut found = Vec::new();
    for sign in signs {
        let sign = format!("{sign}(");
        for arguments in calls(text, &[sign.as_str()]) {
            let mut parts = known_parts(arguments, text);
            let is_file = |part: &mut Part| part.as_deref().is_some_and(|name| name.contains('.'));
            // The folder of a file.
            let _ = parts.pop_if(is_file);
            if !parts.is_empty() {
                found.push(parts);
            }
        }
    }
    found
}

/// Returns the paths, as their parts, of the modules that a `require` for another folder may load.
fn required(text: &str) -> Vec<Vec<Part>> {
    let mut found = Vec::new();
    for folder in required_from(text) {
        for word in relative(text) {
            let mut parts = folder.clone();
            add_literal(word, &mut parts);
            found.push(parts);
        }
    }
    found
}

/// Returns the words of a command line of Node (`node support/checks.js 1`), or the text itself.
fn words(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_command = words.len() > 1 && words.iter().any(|word| RUNS.contains(word));
    if is_command { words } else { vec![text] }
}

/// Returns the arguments of the calls in a text, outside of lines that are comments.
fn calls<'a>(text: &'a str, signs: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let of_sign = move |sign: &&'a str| {
        text.match_indices(*sign).filter_map(move |(at, sign)| {
            let before = text.get(..at)?;
            let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
            let is_within = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
            let is_comment = ["//", "*", "/*"].iter().any(|start| line.starts_with(start));
            if is_within || is_comment {
                return None;
            }
            let found = within(text.get(at + sign.len()..)?).trim();
            (!found.is_empty()).then_some(found)
        })
    };
    signs.iter().flat_map(of_sign).take(MAX_CALLS)
}

/// Returns the text up to the bracket that closes it, or its first [`MAX_ARGUMENT_BYTES`] bytes.
fn within(text: &str) -> &str {
    inner(first_bytes(text, MAX_ARGUMENT_BYTES))
}

/// Returns true if arguments begin with a whole text in quotes.
fn is_literal(arguments: &str) -> bool {
    let mut rest = arguments;
    // `import(/* webpackChunkName: "x" */ "./x")`
    while let Some((_, after)) = rest.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) {
        rest = after.trim_start();
    }
    let Some(quote) = rest.chars().next().filter(|c| "\"'`".contains(*c)) else { return false };
    let Some((text, after)) = rest.get(1..).and_then(|rest| rest.split_once(quote)) else { return false };
    let after = after.trim_start();
    !(quote == '`' && text.contains("${")) && (after.is_empty() || after.starts_with(','))
}

/// Returns the parts of the path that an expression means, with the value of a variable if the expression itself has none.
fn known_parts(expression: &str, text: &str) -> Vec<Part> {
    let parts = parts_of(expression);
    if !parts.is_empty() {
        return parts;
    }
    let unknown: Vec<&str> = variables(expression).collect();
    let mut found = unknown.iter().filter_map(|name| value(name, text)).map(parts_of).find(|parts| !parts.is_empty());
    if unknown.len() > 1
        && let Some(parts) = &mut found
    {
        parts.push(None);
    }
    found.unwrap_or_default()
}

/// Returns the expression that a variable gets in a text.
fn value<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    text.match_indices(name).find_map(|(at, _)| {
        let before = text.get(..at)?;
        let after = text.get(at + name.len()..)?.trim_start().strip_prefix('=')?;
        let is_within = before.ends_with(|c: char| c.is_alphanumeric() || "_$.".contains(c));
        let is_other = is_within || after.starts_with(['=', '>']);
        (!is_other).then(|| after.split([';', '\n']).next().unwrap_or_default())
    })
}

/// Returns the names of variables in code.
fn variables(code: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let words = code.split(move |c: char| !is_name(c)).filter(|word| !word.is_empty());
    words.filter(|word| !BASES.contains(word))
}

/// Returns the parts of the path that an expression puts together, from the first one that it shows. Dots, and what is before
/// that part, are left out.
fn parts_of(expression: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut rest = expression;
    while let Some((code, after)) = rest.split_once(['"', '\'', '`']) {
        let quote = rest.get(code.len()..).and_then(|rest| rest.chars().next()).unwrap_or('"');
        let (literal, after) = after.split_once(quote).unwrap_or((after, ""));
        rest = after;
        if variables(code).next().is_some() {
            parts.push(None);
        }
        // `require("path")` within the expression names no part.
        if !code.ends_with("require(") {
            add_literal(literal, &mut parts);
        }
    }
    if variables(rest).next().is_some() {
        parts.push(None);
    }
    let first = parts.iter().position(Option::is_some).unwrap_or(parts.len());
    parts.split_off(first)
}

/// Adds the parts of a text in quotes.
fn add_literal(literal: &str, parts: &mut Vec<Part>) {
    if ENDINGS.contains(&literal) {
        if let Some(Some(last)) = parts.last_mut() {
            last.push_str(literal);
        }
        return;
    }
    let mut plain = String::new();
    for (at, piece) in literal.split("${").enumerate() {
        match piece.split_once('}') {
            Some((_, after)) if at > 0 => plain.extend(["\0", after]),
            _ => plain.push_str(piece),
        }
    }
    for part in without_query(&plain).split('/').filter(|part| !["", ".", ".."].contains(part)) {
        parts.push(Some(part.to_owned()).filter(|part| !part.contains('\0')));
    }
}

/// Returns the files whose paths end with parts. The ending of a module, and `index`, may be left out.
fn fitting(parts: &[Part], names: &Names) -> BTreeSet<String> {
    if parts.iter().all(Option::is_none) {
        return BTreeSet::new();
    }
    let stems: Vec<&str> = parts.iter().flatten().map(|part| split(part).0).collect();
    let may_fit = |file: &&String| stems.iter().all(|stem| file.contains(*stem));
    names
        .files
        .iter()
        .filter(may_fit)
        .filter(|file| forms(file).iter().any(|form| ends_with(form, parts)))
        .cloned()
        .collect()
}

/// Returns the paths by which a file may be named.
fn forms(file: &str) -> Vec<String> {
    let mut found = vec![file.to_owned()];
    if let Some((stem, _)) = file.rsplit_once('.').filter(|_| NODE.has(file)) {
        found.push(stem.to_owned());
        found.push(format!("{stem}.js"));
        found.extend(stem.strip_suffix("/index").map(str::to_owned));
    }
    found
}

fn ends_with(path: &str, parts: &[Part]) -> bool {
    let own: Vec<&str> = path.split('/').collect();
    let fits = |(own, part): (&&str, &Part)| part.as_ref().is_none_or(|part| part == own);
    own.len() >= parts.len() && own.iter().rev().zip(parts.iter().rev()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mine::runner::Tree;

    fn names() -> Names {
        let files = ["golden/a.json", "lib/calc.js", "scripts/verify.js", "support/checks.js", "shared/deep/index.ts"];
        Names::of(&Tree { files: files.map(str::to_owned).into(), ..Tree::default() })
    }

    #[test]
    fn modules_whose_paths_a_call_puts_together_are_found() {
        let names = names();
        for text in [
            "const {eq}=require(require('path').join(__dirname,'..','support','checks.js'));",
            "require(path.join(__dirname, '..', 'support', 'checks'));",
            "require(__dirname+\"/../support/checks\");",
            "require(require('path').resolve('support/checks.js'));",
            "await import(`${root}/support/checks.js`);",
            "await import(new URL('../support/checks.js', import.meta.url));",
            "await import(\n  '../support/checks.js'\n);",
            "const CHECKS = path.join(root, 'support', 'checks.js');\nrequire(CHECKS);",
            "const SUPPORT = path.join(root, 'support');\nrequire(path.join(SUPPORT, name));",
            "require(`../support/${name}.js`);",
            "require('../support/' + name + '.js');",
            "require(join(root, 'support', name + '.js'));",
            "execFileSync('node', ['--import=./support/checks.js', '-e', code]);",
        ] {
            let found = loads("test/a.js", text, &names);
            assert_eq!(found.modules, BTreeSet::from(["support/checks.js".to_owned()]), "{text}");
            assert!(!found.is_computed, "{text}");
        }
        for text in [
            "await import('../support/checks.js?fresh=1');",
            "await import(`../support/checks.js?${Date.now()}`);",
            "const require = createRequire(new URL('../support/', import.meta.url));\nrequire('./checks.js');",
            "import { createRequire as make } from 'module';\nmake(new URL('../support/a.js', import.meta.url))('./checks');",
        ] {
            let found = loads("test/a.js", text, &names);
            assert_eq!(found.special, BTreeSet::from(["support/checks.js".to_owned()]), "{text}");
            assert!(found.modules.is_empty() && !found.is_computed, "{text}");
        }
        let found = loads("test/a.js", "require(path.join(root, 'shared', 'deep'));", &names);
        assert_eq!(found.modules, BTreeSet::from(["shared/deep/index.ts".to_owned()]));
        for text in [
            "execFileSync('node', ['scripts/verify.js']);",
            "execSync('node scripts/verify.js ' + a);",
            "execSync(`node scripts/verify.js ${a}`);",
        ] {
            let found = loads("test/a.js", text, &names);
            assert_eq!(found.modules, BTreeSet::from(["scripts/verify.js".to_owned()]), "{text}");
        }
    }

    #[test]
    fn imports_are_those_of_the_code_and_not_of_comments_and_texts() {
        for (text, is_imported) in [
            ("import c from '../support/checks.js';", true),
            ("const c = require(path.join(__dirname, '..', 'support', 'checks'));", true),
            ("require('module').createRequire(__dirname + '/../support/x.js')('./checks.js');", true),
            ("import(/* chunk */ '../support/checks.js'); // import", true),
            ("const sign = '\\''; import c from \"../support/checks.js\";", true),
            ("<p>don't</p>;\nimport c from '../support/checks.js';", true),
            ("// import c from '../support/checks.js'", false),
            ("/*\n * import c from '../support/checks.js'\n */", false),
            ("same(lint(\"import c from '../support/checks.js'\"), '../support/checks.js');", false),
            ("const code = `\nimport c from '../support/checks.js';\n`;", false),
            ("require(path.join(root, 'support', name));", false),
            ("require(path.join(root, 'checks.js'));", false),
        ] {
            let found = imported("test/a.js", text, &names());
            assert_eq!(found.contains("support/checks.js"), is_imported, "{text}");
        }
    }

    #[test]
    fn a_path_that_only_a_run_shows_is_computed() {
        for (text, is_computed) in [
            ("require(process.env.CHECKS);", true),
            ("const name = find();\nrequire(name);", true),
            ("require('./' + name);", true),
            ("import(`${root}/other/${name}.js`);", true),
            ("import('../sup\\u0070ort/checks.js');", true),
            ("process.env.NODE_PATH = here;\nModule._initPaths();\nrequire('checks');", true),
            ("require('chai');", false),
            ("import(/* chunk */ './x');", false),
            ("require(path.join(root, 'golden', 'a.json'));", false),
            ("// require(name)\nproxyrequire(name);", false),
            ("import a from './a';", false),
        ] {
            assert_eq!(loads("test/a.js", text, &names()).is_computed, is_computed, "{text}");
        }
    }
}
