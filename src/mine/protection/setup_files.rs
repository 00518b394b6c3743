//! The files that test runners of Node load before the tests, as their settings and the scripts of `package.json` name
//! them. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::mine::runner::Tree;

/// Keys of the settings of mocha, jest, vitest and ava, and options of these programs and of Node, whose values are files
/// that are loaded before the tests, or that decide how the tests are run.
const KEYS: [&str; 20] = [
    "config",
    "env-file",
    "experimental-loader",
    "file",
    "globalSetup",
    "globalTeardown",
    "import",
    "loader",
    "opts",
    "project",
    "reporter",
    "require",
    "runner",
    "setupFile",
    "setupFiles",
    "setupFilesAfterEnv",
    "setupTestFrameworkScriptFile",
    "testEnvironment",
    "testRunner",
    "tsconfig",
];
/// Keys of settings whose values are files of that kind if they are relative paths, and packages or other words otherwise.
const KEYS_WITH_PATHS: [&str; 9] = [
    "extends",
    "preset",
    "reporters",
    "resolver",
    "snapshotResolver",
    "snapshotSerializers",
    "testResultsProcessor",
    "testSequencer",
    "transform",
];
/// Short options, and a variable, whose values, like those of `KEYS`, name files that a runner loads before the tests.
const SHORT: [&str; 5] = ["-r", "-c", "-C", "-P", "TS_NODE_PROJECT"];
/// Keys of `package.json` with settings of runners.
const SECTIONS: [&str; 5] = ["ava", "jest", "mocha", "nyc", "vitest"];
/// Programs that run the program or the file that follows.
const INTERPRETERS: [&str; 14] =
    ["bash", "bun", "c8", "cross-env", "deno", "env", "exec", "node", "npx", "nyc", "python3", "sh", "ts-node", "tsx"];
/// The endings that a runner adds to a name.
const ENDINGS: [&str; 16] = [
    "",
    ".js",
    ".cjs",
    ".mjs",
    ".ts",
    ".cts",
    ".mts",
    ".json",
    "/index.js",
    "/index.cjs",
    "/index.mjs",
    "/index.ts",
    "/index.cts",
    "/index.mts",
    "/jest-preset.js",
    "/jest-preset.json",
];

/// Returns the files of a tree that runners of Node load before the tests.
pub(super) fn loaded(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in &tree.texts {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        // A script and the settings of mocha name files from the working directory, which is the top folder or the package.
        let mut add = |names: Vec<String>| {
            let files = names.iter().flat_map(|name| [file(tree, folder, name), file(tree, "", name)]);
            found.extend(files.flatten());
        };
        if name == "package.json" {
            let Ok(package) = serde_json::from_str::<Value>(text) else { continue };
            add(of_scripts(&package, &["test", "pretest"]));
            for section in SECTIONS.iter().filter_map(|section| package.get(section)) {
                add(of_settings(&section.to_string()));
            }
        } else if name == "mocha.opts" {
            add(of_line(text));
        } else if crate::mine::runner::has_settings_of_node(name) {
            add(of_settings(text));
        }
    }
    found
}

/// Returns the file that a name means from a folder.
fn file(tree: &Tree, folder: &str, name: &str) -> Option<String> {
    let path = place(folder, name)?;
    ENDINGS.iter().map(|end| format!("{path}{end}")).find(|path| tree.has(path))
}

/// Returns the path that a name means from a folder, unless it is outside of the repository.
pub(super) fn place(folder: &str, name: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." | "<rootDir>" => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the files that the scripts of a package, and the scripts that these run, name as programs or load.
pub(in crate::mine) fn of_package(tree: &Tree, package: &Value, scripts: &[&str]) -> BTreeSet<String> {
    of_scripts(package, scripts).iter().filter_map(|name| file(tree, "", name)).collect()
}

/// Returns the names in scripts of a package and in the scripts that they run.
fn of_scripts(package: &Value, scripts: &[&str]) -> Vec<String> {
    let script = |name: &str| package.get("scripts")?.get(name)?.as_str();
    let mut open = scripts.to_vec();
    let mut done: Vec<&str> = Vec::new();
    let mut names = Vec::new();
    while let Some(name) = open.pop() {
        let Some(line) = script(name).filter(|_| !done.contains(&name)) else { continue };
        done.push(name);
        names.extend(of_line(line));
        open.extend(line.split_whitespace().map(|word| word.trim_matches(['"', '\''])));
    }
    names
}

/// Returns the names of files in a line of a shell: values of options, and files that are run.
fn of_line(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in line.split(['&', ';', '|', '\n']) {
        let words = part.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')']));
        let mut rest = words.filter(|word| !word.is_empty());
        let mut is_run = true;
        while let Some(word) = rest.next() {
            let (option, value) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
            let is_key = option.strip_prefix("--").is_some_and(|name| KEYS.contains(&name)) || SHORT.contains(&option);
            if is_key {
                let value = value.or_else(|| rest.next()).unwrap_or_default();
                names.extend(value.split(',').map(|name| name.trim_matches(['"', '\'']).to_owned()));
            } else if is_run && !option.starts_with('-') && value.is_none() {
                names.push(word.to_owned());
                // `node FILE`, `npx ts-node FILE`: the next word is run, too.
                is_run = INTERPRETERS.contains(&word.rsplit('/').next().unwrap_or(word));
            }
        }
    }
    names
}

/// Returns the names of files that settings in JavaScript, JSON or YAML have as values of the keys.
fn of_settings(text: &str) -> Vec<String> {
    let is_path = |word: &str| ["./", "../", "<rootDir>"].iter().any(|start| word.starts_with(start));
    let keys = KEYS.iter().map(|key| (*key, false)).chain(KEYS_WITH_PATHS.iter().map(|key| (*key, true)));
    let mut names = Vec::new();
    for (key, needs_path) in keys {
        for value in values(text, key) {
            names.extend(words(value).filter(|word| !needs_path || is_path(word)).map(str::to_owned));
        }
    }
    names
}

/// Returns the values of a key in settings in JavaScript, JSON or YAML.
pub(in crate::mine) fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '-';
    let mut found = Vec::new();
    for (at, _) in text.match_indices(key) {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let rest = text.get(at + key.len()..).unwrap_or_default();
        if before.is_some_and(is_name) || rest.starts_with(is_name) {
            continue;
        }
        let value = rest.trim_start_matches(['"', '\'']).trim_start().strip_prefix(':');
        found.extend(value.map(value_of));
    }
    found
}

/// Returns the words of a value: the texts in its quotes, and what is between brackets and commas.
pub(in crate::mine) fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| c.is_whitespace() || "\"'`[](){},".contains(c)).filter(|word| !word.is_empty())
}

/// Returns the value at the start of a text: up to a comma or the end of a line outside of brackets, or the items of YAML's
/// list in the next lines.
fn value_of(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut has_begun = false;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' | '{' => (depth, has_begun) = (depth + 1, true),
            ']' | ')' | '}' if depth == 0 => return text.get(..at).unwrap_or_default(),
            ']' | ')' | '}' => depth -= 1,
            ',' if depth == 0 => return text.get(..at).unwrap_or_default(),
            '\n' if depth == 0 => {
                let next = text.get(at + 1..).unwrap_or_default().trim_start();
                if has_begun && !next.starts_with("- ") {
                    return text.get(..at).unwrap_or_default();
                }
            }
            c if c.is_whitespace() => {}
            _ => has_begun = true,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str], settings: (&str, &str)) -> Tree {
        let (path, text) = settings;
        let files = files.iter().chain([&path]).map(|path| (*path).to_owned()).collect();
        Tree { files, texts: [(path.to_owned(), text.to_owned())].into() }
    }

    #[test]
    fn files_that_are_loaded_before_the_tests_are_found() {
        for (path, text, expected) in [
            ("package.json", r#"{"scripts": {"test": "node --import ./support/a.js --test"}}"#, &["support/a.js"][..]),
            (
                "package.json",
                r#"{"scripts": {"test": "node -r ./support/a --test lib/x.js"}}"#,
                &["support/a.js", "lib/x.js"],
            ),
            (
                "package.json",
                r#"{"scripts": {"test": "mocha --require=support/a,b -R dot test/*.js"}}"#,
                &["b.ts", "support/a.js"],
            ),
            (
                "package.json",
                r#"{"scripts": {"test": "eslint lib/x.js && npm run unit", "unit": "mocha --file b.ts"}}"#,
                &["b.ts"],
            ),
            ("package.json", r#"{"scripts": {"test": "CI=1 node lib/x.js && ./b.ts"}}"#, &["b.ts", "lib/x.js"]),
            (
                "package.json",
                r#"{"mocha": {"require": ["should", "./support/a.js"]}, "main": "b.ts"}"#,
                &["support/a.js"],
            ),
            (
                "package.json",
                r#"{"jest": {"setupFiles": ["<rootDir>/b.ts"], "globalSetup": "./support/a"}}"#,
                &["b.ts", "support/a.js"],
            ),
            ("package.json", r#"{"ava": {"require": ["./b.ts"]}}"#, &["b.ts"]),
            (
                ".mocharc.yml",
                "spec: lib/x.js\nrequire:\n  - should\n  - ./support/a.js\nfile: b.ts\nui: lib/x.js\n",
                &["b.ts", "support/a.js"],
            ),
            (".mocharc.yaml", "require: support/a\nspec: lib/x.js\n", &["support/a.js"]),
            (".mocharc.js", "module.exports = { require: './support/a.js', spec: 'lib/x.js' };", &["support/a.js"]),
            (
                "jest.config.js",
                "export default {\n  roots: ['lib/x.js'],\n  setupFilesAfterEnv: [\n    require.resolve('./support/a'),\n  ],\n};",
                &["support/a.js"],
            ),
            ("vitest.config.ts", "test: {\n  setupFiles: './b',\n  include: ['lib/x.js'] }", &["b.ts"]),
            ("vite.config.ts", "test: { globalSetup: [`./b.ts`] }, entry: 'lib/x.js'", &["b.ts"]),
            ("test/mocha.opts", "--require support/a\n--recursive\nlib/x.js\n", &["lib/x.js", "support/a.js"]),
            ("pkg/jest.config.js", "module.exports = { setupFiles: ['./c.js'] }", &["pkg/c.js"]),
            ("pkg/.mocharc.json", r#"{"require": "../support/a.js", "file": ["../../b.ts"]}"#, &["support/a.js"]),
            ("tsconfig.json", r#"{"extends": ["./support/a.js", "b"], "include": ["lib/x.js"]}"#, &["support/a.js"]),
            (
                "jest.config.js",
                "module.exports = { transform: { 'b': './support/a.js', 'c': 'lib/x' }, preset: 'b' }",
                &["support/a.js"],
            ),
            ("package.json", r#"{"scripts": {"test": "TS_NODE_PROJECT=b.ts mocha"}}"#, &["b.ts"]),
            ("package.json", "{", &[]),
        ] {
            let tree = tree(&["support/a.js", "b.ts", "lib/x.js", "pkg/c.js"], (path, text));
            let expected: BTreeSet<String> = expected.iter().map(|path| (*path).to_owned()).collect();
            assert_eq!(loaded(&tree), expected, "{path}: {text}");
        }
    }
}
