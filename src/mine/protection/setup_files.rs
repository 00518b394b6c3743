//! The files that test runners of Node load before the tests, as their settings and the scripts of `package.json` name
//! them. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::tools::ToolCommand;
use crate::mine::role;
use crate::mine::runner::{Runner, Tree};

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

/// The beginnings of the names of scripts that npm runs before a script, and around it.
const BEFORE: [&str; 1] = ["pre"];
const AROUND: [&str; 2] = ["pre", "post"];

/// Returns the files of a tree that a runner of Node loads before the tests.
pub(super) fn loaded(tree: &Tree, runner: Runner) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // A script and the settings of mocha name files from the working directory, which is the top folder or the package.
    let mut add = |folders: &[&str], names: Vec<String>| {
        let folders: Vec<&str> = folders.iter().copied().chain([""]).collect();
        for name in &names {
            found.extend(folders.iter().filter_map(|folder| file(tree, folder, name)));
        }
    };
    let runs_scripts = !matches!(runner, Runner::Node | Runner::Mocha | Runner::Jest | Runner::Vitest);
    for (path, text) in &tree.texts {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == "package.json" {
            let Ok(package) = serde_json::from_str::<Value>(text) else { continue };
            if !runs_scripts {
                add(&[folder], of_program(&package, runner.word()));
            }
            for section in SECTIONS.iter().filter_map(|section| package.get(section)) {
                add(&[folder], of_settings(&section.to_string()));
            }
        } else if name == "mocha.opts" {
            add(&[folder], of_line(text));
        } else if crate::mine::runner::has_settings_of_node(name) {
            add(&[folder], of_settings(text));
        }
    }
    // What npm runs after a script loads nothing before the tests.
    let reached = if runs_scripts { reached(tree, &BEFORE) } else { Vec::new() };
    for (folder, lines) in reached {
        let enters = lines.iter().flat_map(|line| commands(line)).filter(|words| words.first() == Some(&"cd"));
        let entered: Vec<String> = enters.filter_map(|words| place(&folder, words.get(1)?)).collect();
        let folders: Vec<&str> = [folder.as_str()].into_iter().chain(entered.iter().map(String::as_str)).collect();
        add(&folders, lines.iter().flat_map(|line| of_line(line)).collect());
    }
    found
}

/// Returns the names in those commands of the script `test` that start a program. Mined commands start the program itself, so npm
/// runs no script.
fn of_program(package: &Value, program: &str) -> Vec<String> {
    let line = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let is_program = |word: &str| {
        let name = role::name(word);
        name == program || name.strip_prefix('_') == Some(program) || name.strip_suffix(".js") == Some(program)
    };
    let has_program = |part: &&str| commands(part).into_iter().flatten().any(is_program);
    let parts: Vec<&str> = line.split(['&', ';', '|', '\n']).filter(has_program).collect();
    // Another part with `node` starts another program.
    let is_of_tests = |part: &str| program == "node" && part.split_whitespace().any(|word| word == "--test");
    let has_tests = parts.iter().any(|part| is_of_tests(part));
    parts.into_iter().filter(|part| !has_tests || is_of_tests(part)).flat_map(of_line).collect()
}

/// Returns the files that decide what the tools do which the script `test` of a package starts, such as the `Makefile` of
/// `make test`, and those that a tool would prefer to them if they existed. `package.json` is not among them. A script may enter
/// each folder that it names.
pub(super) fn of_tools(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (folder, lines) in reached(tree, &AROUND) {
        let folders = named_folders(tree, &folder, &lines);
        for words in lines.iter().flat_map(|line| commands(line)) {
            for tool in (0..words.len()).filter_map(|at| ToolCommand::of(words.get(at..)?)) {
                for folder in &folders {
                    let place = |file: &str| place(folder, &tool.place(file));
                    let named = tool.named.and_then(place).filter(|path| tree.has(path));
                    let looked_for: Vec<String> = tool.files.iter().filter_map(|file| place(file)).collect();
                    let has_any = looked_for.iter().any(|path| tree.has(path));
                    found.extend(named.into_iter().chain(looked_for.into_iter().filter(|_| has_any)));
                }
            }
        }
    }
    found.retain(|path| role::name(path) != "package.json");
    found
}

/// Returns the lines that the script `test` of each package comes to, in its own package and in others
/// (`npm --prefix qa run check`, `cd qa && npm run check`). Each part has the folder of a package, empty or with a slash at its end. `around` are the beginnings
/// of the names of scripts that npm runs, too.
fn reached(tree: &Tree, around: &[&str]) -> Vec<(String, Vec<String>)> {
    let packages = tree.texts.keys().filter(|path| role::name(path) == "package.json");
    let mut open: Vec<(String, Vec<String>)> =
        packages.map(|path| (role::folder(path).to_owned(), vec!["test".to_owned()])).collect();
    let mut done: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
    let mut found = Vec::new();
    while let Some((folder, scripts)) = open.pop() {
        if !done.insert((folder.clone(), scripts.clone())) {
            continue;
        }
        let text = tree.text(&format!("{folder}package.json"));
        let Some(package) = text.and_then(|text| serde_json::from_str::<Value>(text).ok()) else { continue };
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let lines: Vec<String> = lines(&package, &scripts, around).into_iter().map(str::to_owned).collect();
        let folders = named_folders(tree, &folder, &lines);
        for words in lines.iter().flat_map(|line| commands(line)) {
            let tools = (0..words.len()).filter_map(|at| ToolCommand::of(words.get(at..)?));
            for tool in tools.filter(|tool| tool.files.contains(&"package.json")) {
                let manifests = folders.iter().filter_map(|it| place(it, &tool.place("package.json")));
                let others = manifests.filter(|path| tree.has(path) && role::folder(path) != folder);
                let names: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
                open.extend(others.map(|path| (role::folder(&path).to_owned(), names.clone())));
            }
        }
        found.push((folder, lines));
    }
    found
}

/// Returns the folder of a package, and the folders of the tree that lines of its scripts name, without slashes at their ends.
fn named_folders(tree: &Tree, folder: &str, lines: &[String]) -> BTreeSet<String> {
    let words = lines.iter().flat_map(|line| commands(line)).flatten();
    let named = words.filter_map(|word| place(folder, word)).filter(|path| tree.has_folder(path));
    named.chain(place(folder, "")).collect()
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
    let names = lines(package, scripts, &AROUND).into_iter().flat_map(of_line);
    names.filter_map(|name| file(tree, "", &name)).collect()
}

/// Returns the lines of scripts of a package, of the scripts that npm runs before or after them, and of those that they run.
/// `around` are the beginnings of the names of the former.
fn lines<'a>(package: &'a Value, scripts: &[&str], around: &[&str]) -> Vec<&'a str> {
    let mut open: Vec<String> = scripts.iter().map(|name| (*name).to_owned()).collect();
    let mut done: BTreeSet<String> = BTreeSet::new();
    let mut lines = Vec::new();
    while let Some(name) = open.pop() {
        let line = package.get("scripts").and_then(|scripts| scripts.get(&name)?.as_str());
        let Some(line) = line.filter(|_| !done.contains(&name)) else { continue };
        lines.push(line);
        open.extend(around.iter().map(|start| format!("{start}{name}")));
        open.extend(commands(line).into_iter().flatten().map(str::to_owned));
        done.insert(name);
    }
    lines
}

/// Returns the words of each command in a line of a shell.
fn commands(line: &str) -> Vec<Vec<&str>> {
    let parts = line.split(['&', ';', '|', '\n']).map(|part| {
        let words = part.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')']));
        words.filter(|word| !word.is_empty()).collect()
    });
    parts.collect()
}

/// Returns the names of files in a line of a shell: values of options, and files that are run.
fn of_line(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for words in commands(line) {
        let mut rest = words.into_iter();
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
            (
                "package.json",
                r#"{"scripts": {"test": "npm run unit&&true", "preunit": "./b.ts", "unit": "x", "postunit": "node lib/x"}}"#,
                &["b.ts"],
            ),
            ("package.json", r#"{"scripts": {"test": "cd pkg && node c && cd ../lib"}}"#, &["pkg/c.js"]),
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
            assert_eq!(loaded(&tree, Runner::Npm), expected, "{path}: {text}");
        }
    }

    #[test]
    fn only_npm_runs_further_scripts_than_test() {
        let files = ["support/a.js", "b.ts", "lib/x.js"];
        for (test, runner, expected) in [
            ("node lib/x.js && node --import ./support/a.js --test", Runner::Node, &["support/a.js"][..]),
            ("npm run unit && nyc node_modules/.bin/_mocha -r ./support/a", Runner::Mocha, &["support/a.js"]),
            ("npm run unit && mocha -r ./support/a", Runner::Npm, &["b.ts", "lib/x.js", "support/a.js"]),
        ] {
            let scripts = serde_json::json!({
                "test": test, "pretest": "node lib/x.js", "posttest": "./c.js", "unit": "./b.ts", "postunit": "./c.js"
            });
            let package = serde_json::json!({ "scripts": scripts }).to_string();
            let tree = tree(&[&files[..], &["c.js"]].concat(), ("package.json", package.as_str()));
            assert_eq!(loaded(&tree, runner).into_iter().collect::<Vec<_>>(), expected, "{test}");
        }
    }

    #[test]
    fn the_files_of_tools_that_scripts_start_are_found() {
        let files = ["Gruntfile.js", "gulpfile.mjs", "justfile", "qa/Makefile", "qa/sum.mk"];
        for (path, scripts, expected) in [
            ("package.json", r#""test": "gulp test""#, &["gulpfile.mjs"][..]),
            (
                "package.json",
                r#""test": "npm run all", "all": "x", "preall": "CI=1 node_modules/.bin/grunt a""#,
                &["Gruntfile.js"],
            ),
            ("package.json", r#""test": "(just test)""#, &["justfile"]),
            ("package.json", r#""test": "make -C ./qa -f sum.mk test""#, &["qa/Makefile", "qa/sum.mk"]),
            ("qa/package.json", r#""test": "make test""#, &["qa/Makefile"]),
            ("package.json", r#""test": "cd qa && make -s test""#, &["qa/Makefile"]),
            ("package.json", r#""test": "make test""#, &[]),
            ("package.json", r#""lint": "gulp""#, &[]),
        ] {
            let package = format!("{{\"scripts\": {{{scripts}}}}}");
            let tree = tree(&files, (path, package.as_str()));
            let found: Vec<String> = of_tools(&tree).into_iter().filter(|path| tree.has(path)).collect();
            assert_eq!(found, expected, "{path}: {scripts}");
        }
        // The script of another package.
        for test in ["npm --prefix qa run -s check", "cd qa && npm run check"] {
            let package = format!("{{\"scripts\": {{\"test\": \"{test}\"}}}}");
            let mut tree = tree(&["qa/Makefile", "qa/package.json"], ("package.json", package.as_str()));
            let scripts = r#"{"scripts": {"check": "make all && node run", "lint": "just"}}"#;
            tree.texts.insert("qa/package.json".to_owned(), scripts.to_owned());
            tree.files.extend(["qa/justfile", "qa/run.js"].map(str::to_owned));
            let found: Vec<String> = of_tools(&tree).into_iter().filter(|path| tree.has(path)).collect();
            assert_eq!(found, ["qa/Makefile"], "{test}");
            assert!(loaded(&tree, Runner::Given).contains("qa/run.js"), "{test}");
        }
        let tree = tree(&["Makefile"], ("package.json", r#"{"scripts": {"test": "make test"}}"#));
        assert_eq!(of_tools(&tree).into_iter().collect::<Vec<_>>(), ["GNUmakefile", "Makefile", "makefile"]);
    }
}
