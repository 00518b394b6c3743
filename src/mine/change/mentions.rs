//! Decides whether a file that is neither a test nor code of Python or Node uses a module: a program that a `Makefile`, a
//! service, a workflow or a container starts, or that a page loads, may be a part of the product. A text that only mentions the
//! module, and settings of tools that check it, do not use it. Pure.

use std::collections::BTreeSet;

use super::settings_text::{is_of_checkers, plain};
use super::usage::LOCKS;
use crate::mine::language::{Language, NODE, PYTHON};
use crate::mine::protection::setup_files::{values, words};
use crate::mine::role::{name, split};
use crate::mine::runner::has_settings_of_node;

/// Words of lines that copy files into a product.
const COPIES: [&str; 9] = ["ADD", "COPY", "cp", "install", "mv", "rsync", "scp", "tar", "zip"];
/// Names of files with such lines.
const WITH_COPIES: [&str; 7] =
    ["Containerfile", "Dockerfile", "GNUmakefile", "Justfile", "Makefile", "justfile", "package.json"];
/// Files that say which files are left out or who owns them, and not what the product has.
const OF_LISTS: [&str; 3] = [".gitattributes", "CODEOWNERS", "MANIFEST.in"];
/// Keys of the settings of TypeScript with files that are compiled.
const COMPILED: [&str; 2] = ["files", "include"];
/// Parts of the names of settings of TypeScript that only check, or that compile tests.
const ONLY_CHECKS: [&str; 7] = ["check", "eslint", "lint", "spec", "test", "tests", "typecheck"];
/// Names of folders of tests.
const OF_TESTS: [&str; 5] = ["__tests__", "e2e", "spec", "test", "tests"];
/// Programs that start a module, or put it into a product, besides those of Python. Variables of a `Makefile` are among them.
const PROGRAMS: [&str; 25] = [
    "NODE",
    "PY",
    "PYTHON",
    "Python3_EXECUTABLE",
    "browserify",
    "bun",
    "celery",
    "daphne",
    "deno",
    "esbuild",
    "flask",
    "forever",
    "gunicorn",
    "hypercorn",
    "node",
    "nodejs",
    "nodemon",
    "pm2",
    "rollup",
    "streamlit",
    "ts-node",
    "tsx",
    "uvicorn",
    "uwsgi",
    "webpack",
];
/// Words after such a program with which a module is only checked or tested.
const CHECKS: [&str; 19] = [
    "--check",
    "--test",
    "bandit",
    "black",
    "coverage",
    "doctest",
    "eslint",
    "flake8",
    "isort",
    "mypy",
    "prettier",
    "py_compile",
    "pyflakes",
    "pylint",
    "pyright",
    "pytest",
    "ruff",
    "tsc",
    "unittest",
];
/// Words of a command before the folder in which a program is started.
const FOLDERS: [&str; 4] = ["--app-dir", "--chdir", "--cwd", "-C"];
/// Words of the last line of a container that runs tests.
const RUNNERS: [&str; 7] = ["jest", "mocha", "pytest", "test", "tox", "unittest", "vitest"];
/// The endings of texts for people.
const TEXTS: [&str; 7] = ["adoc", "asciidoc", "markdown", "md", "org", "rst", "txt"];
/// The endings of pages and of their templates.
const PAGES: [&str; 20] = [
    "astro", "ejs", "erb", "gohtml", "hbs", "htm", "html", "j2", "jinja", "jinja2", "liquid", "mustache", "njk", "php",
    "pug", "svelte", "tmpl", "twig", "vue", "xhtml",
];
/// Signs of lines of a page that load a module.
const LOADS: [&str; 4] = ["Worker(", "import", "require(", "src="];
/// The endings of scripts of a shell.
const OF_SHELL: [&str; 4] = ["bash", "bats", "sh", "zsh"];

/// Returns true if a file may use a module of the product: neither code that imports modules by their names, which is looked
/// at elsewhere, nor settings of a test runner, of an editor or of a tool that checks code, a lock file, or a list of files.
pub(super) fn may_name(path: &str) -> bool {
    let own = name(path);
    let is_code = PYTHON.has(path) || NODE.has(path);
    let is_list = own.ends_with("ignore") || OF_LISTS.contains(&own) || LOCKS.contains(&own);
    let is_of_tool = is_of_checkers(own) || (has_settings_of_node(own) && !is_of_typescript(own));
    !is_code && !is_list && !is_of_tool && !path.starts_with(".vscode/") && !path.starts_with(".idea/")
}

/// Returns true if a file may copy folders into a product.
pub(super) fn may_copy(path: &str) -> bool {
    let own = name(path);
    let is_container = own.starts_with("Dockerfile.") || own.ends_with(".Dockerfile");
    let is_workflow = path.starts_with(".github/") && !is_text(own);
    is_container || WITH_COPIES.contains(&own) || is_of_typescript(own) || is_workflow
}

/// Returns true if a file starts or loads a module, or copies or compiles a folder around it.
pub(super) fn names_module(file: &str, text: &str, path: &str) -> bool {
    if is_of_tests(file, text) {
        return false;
    }
    let own = name(file);
    let beside = file.strip_suffix(own).unwrap_or_default();
    let forms: BTreeSet<&str> = [path].into_iter().chain(path.strip_prefix(beside)).collect();
    let folders: BTreeSet<&str> =
        forms.iter().flat_map(|form| form.match_indices('/').filter_map(move |(at, _)| form.get(..at))).collect();
    if is_of_typescript(own) {
        let listed = || COMPILED.iter().flat_map(|key| values(text, key)).flat_map(words);
        let is_product =
            !only_checks(own, text) && !listed().any(|word| word.split('/').any(|it| OF_TESTS.contains(&it)));
        return is_product && listed().map(without_glob).any(|word| forms.contains(word) || folders.contains(word));
    }
    let is_copied = may_copy(file) && text.lines().any(|line| copies(line, &folders));
    if own == "package.json" {
        // What scripts and other keys name is looked at elsewhere.
        return is_copied;
    }
    let has_form = |line: &str| forms.iter().any(|form| has_path(line, form));
    let ending = split(own).1;
    if PAGES.contains(&ending) {
        return text.lines().any(|line| has_form(line) && LOADS.iter().any(|sign| line.contains(sign)));
    }
    if Language::of(file).is_some() && !OF_SHELL.contains(&ending) {
        return text.lines().any(has_form);
    }
    is_copied || commands(ending, text).lines().any(|line| starts(line, &forms, is_text(own)))
}

/// Returns true if a file is for tests by its name (`Dockerfile.test`), or is a container that runs tests.
fn is_of_tests(file: &str, text: &str) -> bool {
    let mut parts = name(file).split(['.', '-', '_']);
    let is_end = |line: &&str| ["CMD ", "ENTRYPOINT "].iter().any(|start| line.starts_with(start));
    let runs = |line: &str| line.split(|c: char| !c.is_alphanumeric()).any(|word| RUNNERS.contains(&word));
    parts.any(|part| ["test", "tests"].contains(&part)) || text.lines().rev().find(is_end).is_some_and(runs)
}

/// Returns true if settings of TypeScript compile nothing, or nothing of a product.
fn only_checks(name: &str, text: &str) -> bool {
    name.split('.').any(|part| ONLY_CHECKS.contains(&part))
        || values(text, "noEmit").iter().any(|value| value.trim() == "true")
}

/// Returns true if a line copies one of the folders.
fn copies(line: &str, folders: &BTreeSet<&str>) -> bool {
    let words = || line.split(|c: char| c.is_whitespace() || "\"'`[],;&|".contains(c));
    words().any(|word| COPIES.contains(&word)) && words().map(without_glob).any(|word| folders.contains(word))
}

/// Returns a path up to the folder in which a glob begins.
fn without_glob(word: &str) -> &str {
    plain(word.split('*').next().unwrap_or_default())
}

fn is_text(name: &str) -> bool {
    TEXTS.contains(&split(name).1) || name.starts_with("README")
}

/// Returns a text with each command in one line: a line that a backslash continues, and a list of YAML with a word in each line.
fn commands(ending: &str, text: &str) -> String {
    let mut all = String::new();
    for line in text.replace("\\\n", " ").lines() {
        let is_item = line.trim_start().starts_with("- ") && line.split_whitespace().count() == 2;
        let is_continued = ["yaml", "yml"].contains(&ending) && is_item;
        all.push(if is_continued { ' ' } else { '\n' });
        all.push_str(if is_continued { line.trim_start().trim_start_matches("- ") } else { line });
    }
    all
}

/// Returns true if a line has a command that starts a module (`python svc/main.py`, `cd svc && node main.js`). In a text for
/// people, only options are between the program and the module.
fn starts(line: &str, paths: &BTreeSet<&str>, is_text: bool) -> bool {
    if line.trim_start().starts_with('#') {
        return false;
    }
    let mut folder: Option<&str> = None;
    for command in line.split(|c: char| "`;|&".contains(c) || (is_text && "()".contains(c))) {
        let is_edge = |c: char| c.is_whitespace() || "\"'[](){}<>,=@$".contains(c);
        let words: Vec<&str> = command.split(is_edge).filter(|word| !word.is_empty()).collect();
        let after = |options: &[&str]| {
            let at = words.iter().position(|word| options.contains(word))?;
            words.get(at + 1).copied().map(plain)
        };
        folder = after(&["cd", "pushd"]).or(folder);
        let within = after(&FOLDERS).or(folder);
        let below =
            |path: &&str| within.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/')).map(str::to_owned);
        let mut forms: Vec<String> = paths.iter().flat_map(|path| forms_of(path, false)).collect();
        forms.extend(paths.iter().filter_map(below).flat_map(|path| forms_of(&path, true)));
        let Some(at) = words.iter().position(|word| is_program(name(word))) else { continue };
        let rest = words.get(at + 1..).unwrap_or_default();
        let is_module = |word: &&str| forms.iter().any(|form| has_path(word, form));
        let Some(before) = rest.iter().position(is_module).and_then(|at| rest.get(..at)) else { continue };
        let is_checked = before.iter().any(|word| CHECKS.contains(&name(word)));
        if !is_checked && (!is_text || before.iter().all(|word| word.starts_with('-'))) {
            return true;
        }
    }
    false
}

/// Returns true if a program starts modules: `node`, `python3.12`.
fn is_program(name: &str) -> bool {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    PROGRAMS.contains(&name) || version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Returns the forms in which a command names a module: its path, and its name without an ending. A name of one word means the
/// module only in its own folder.
fn forms_of(path: &str, is_own_folder: bool) -> Vec<String> {
    let stem = split(path).0;
    let name = if PYTHON.has(path) { stem.replace('/', ".") } else { stem.to_owned() };
    let is_sure = is_own_folder || name.contains(['.', '/']);
    [Some(path.to_owned()), Some(name).filter(|_| is_sure)].into_iter().flatten().collect()
}

fn is_of_typescript(name: &str) -> bool {
    name.starts_with("tsconfig.")
}

/// Returns true if a line has a path that is not within a longer name.
fn has_path(line: &str, path: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(at + path.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(|c| is_name(c) || c == '.') && !after.is_some_and(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_product_name_its_modules() {
        for (file, text, path, expected) in [
            ("Makefile", "run:\n\tpython svc/main.py\n", "svc/main.py", true),
            ("Procfile", "worker: python -m svc.main\n", "svc/main.py", true),
            ("deploy/worker.service", "ExecStart=/usr/bin/python /srv/svc/main.py\n", "svc/main.py", true),
            (".github/workflows/n.yml", "- run: node svc/main.js --all\n", "svc/main.js", true),
            ("README.md", "Run `python svc/main.py`.\n", "svc/main.py", true),
            ("index.html", "<script type=\"module\" src=\"/svc/main.js\"></script>\n", "svc/main.js", true),
            ("web/index.html", "<script src=\"js/main.js\"></script>\n", "web/js/main.js", true),
            ("Dockerfile", "COPY svc/ /app/\n", "svc/main.py", true),
            ("Dockerfile", "COPY . /app\nRUN ls svc\n", "svc/main.py", false),
            ("package.json", "{\"scripts\": {\"w\": \"cp -r svc out/\"}}\n", "svc/main.js", true),
            ("tsconfig.json", "{\"include\": [\"svc/**/*\"]}\n", "svc/main.js", true),
            ("tsconfig.json", "{\"compilerOptions\": {\"paths\": {\"@/*\": [\"./svc/*\"]}}}\n", "svc/main.js", false),
            ("pytest.ini", "[pytest]\naddopts = -p svc.main\n", "svc/main.py", false),
            ("Makefile", "lint:\n\truff check svc/main.py\n\tpython -m mypy svc/main.py\n", "svc/main.py", false),
            ("Makefile", "run:\n\tpython3 mysvc/main.py svc/main.pyc\n", "svc/main.py", false),
            ("Makefile", "run:\n\tcd svc && $(PYTHON) main.py\n", "svc/main.py", true),
            ("Procfile", "web: gunicorn --chdir svc main:app\n", "svc/main.py", true),
            ("Procfile", "web: gunicorn main:app\n", "svc/main.py", false),
            ("Procfile", "web: node svc/main\n", "svc/main.js", true),
            ("k8s/svc.yml", "command:\n  - python\n  - svc/main.py\n", "svc/main.py", true),
            ("ci.yml", "- run: npx eslint svc/main.js\n", "svc/main.js", false),
            ("CONTRIBUTING.md", "The tests compare with `svc/main.py`. Do not ship it.\n", "svc/main.py", false),
            ("CHANGELOG.md", "- The node module of tests (`svc/main.js`) is faster.\n", "svc/main.js", false),
            ("docs/api.html", "<a href=\"https://a.b/svc/main.js\">source</a>\n", "svc/main.js", false),
            ("main.go", "//go:embed svc/main.js\n", "svc/main.js", true),
            ("Dockerfile.test", "COPY svc /app/svc\nCMD pytest tests\n", "svc/main.py", false),
            ("Dockerfile", "COPY svc /app/svc\nCMD [\"pytest\", \"tests\"]\n", "svc/main.py", false),
            (".editorconfig", "[svc/main.py]\nindent_size = 4\n", "svc/main.py", false),
            ("tsconfig.json", "{\"include\": [\"lib\", \"svc\", \"test\"]}\n", "svc/main.js", false),
            (
                "tsconfig.json",
                "{\"compilerOptions\": {\"noEmit\": true}, \"include\": [\"svc\"]}\n",
                "svc/main.js",
                false,
            ),
            ("tsconfig.eslint.json", "{\"include\": [\"svc/**/*.js\"]}\n", "svc/main.js", false),
        ] {
            assert_eq!(names_module(file, text, path), expected, "{file} {text}");
        }
        for (path, expected) in [
            ("Makefile", true),
            ("run.sh", true),
            ("tsconfig.json", true),
            ("jest.config.js", false),
            ("jsconfig.json", false),
            (".nycrc", false),
            (".coveragerc", false),
            (".vscode/launch.json", false),
            ("MANIFEST.in", false),
            (".npmignore", false),
            ("poetry.lock", false),
            ("core.py", false),
        ] {
            assert_eq!(may_name(path), expected, "{path}");
        }
        assert!(may_copy("deploy/Dockerfile.web") && may_copy(".github/workflows/a.yml") && !may_copy("README.md"));
    }
}
