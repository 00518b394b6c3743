//! Decides whether a file that is neither a test nor code of Python or Node names a module: a program that a `Makefile`, a
//! service, a workflow, a page or a container starts may be a part of the product. Pure.

use std::collections::BTreeSet;

use super::settings_text::plain;
use super::test_data::name;
use super::usage::LOCKS;
use crate::mine::language::{Language, NODE, PYTHON};
use crate::mine::protection::setup_files::{values, words};
use crate::mine::role::split;
use crate::mine::runner::{has_settings_of_node, without_pytest};

/// Words of lines that copy files into a product.
const COPIES: [&str; 11] =
    ["ADD", "COPY", "cp", "graft", "install", "mv", "recursive-include", "rsync", "scp", "tar", "zip"];
/// Names of files with such lines.
const WITH_COPIES: [&str; 8] =
    ["Containerfile", "Dockerfile", "GNUmakefile", "Justfile", "MANIFEST.in", "Makefile", "justfile", "package.json"];
/// Files that say which files are left out or who owns them, and not what the product has.
const OF_LISTS: [&str; 2] = [".gitattributes", "CODEOWNERS"];
/// Keys of the settings of TypeScript with files that are compiled.
const COMPILED: [&str; 2] = ["files", "include"];

/// Returns true if a file may name a module of the product: neither code that imports modules by their names, which is looked
/// at elsewhere, nor settings of a test runner, a lock file, or a list of files.
pub(super) fn may_name(path: &str) -> bool {
    let own = name(path);
    let is_code = Language::of(path).is_some_and(|language| [PYTHON, NODE].contains(language));
    let is_list = own.ends_with("ignore") || OF_LISTS.contains(&own) || LOCKS.contains(&own);
    !is_code && !is_list && (!has_settings_of_node(own) || is_of_typescript(own))
}

/// Returns true if a file may copy folders into a product.
pub(super) fn may_copy(path: &str) -> bool {
    let own = name(path);
    let is_container = own.starts_with("Dockerfile.") || own.ends_with(".Dockerfile");
    is_container || WITH_COPIES.contains(&own) || is_of_typescript(own) || path.starts_with(".github/")
}

/// Returns true if a file names a module by its path, or by its name in Python, or copies or compiles a folder around it.
pub(super) fn names_module(file: &str, text: &str, path: &str) -> bool {
    let beside = file.strip_suffix(name(file)).unwrap_or_default();
    let forms: BTreeSet<&str> = [path].into_iter().chain(path.strip_prefix(beside)).collect();
    let folders: BTreeSet<&str> =
        forms.iter().flat_map(|form| form.match_indices('/').filter_map(move |(at, _)| form.get(..at))).collect();
    if is_of_typescript(name(file)) {
        let listed = COMPILED.iter().flat_map(|key| values(text, key)).flat_map(words);
        return listed.map(without_glob).any(|word| forms.contains(word) || folders.contains(word));
    }
    if name(file) == "package.json" {
        // What scripts and other keys name is looked at elsewhere.
        return text.lines().any(|line| copies(line, &folders));
    }
    let dotted: Vec<String> = match Language::of(path) == Some(&PYTHON) {
        true => forms.iter().map(|form| split(form).0.replace('/', ".")).filter(|form| form.contains('.')).collect(),
        false => Vec::new(),
    };
    let text = without_pytest(file, text);
    let is_named =
        |line: &str| forms.iter().any(|form| has_path(line, form)) || dotted.iter().any(|form| has_path(line, form));
    text.lines().any(|line| is_named(line) || copies(line, &folders))
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

fn is_of_typescript(name: &str) -> bool {
    name.starts_with("tsconfig.") || name.starts_with("jsconfig.")
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
            (".vscode/launch.json", "{\"program\": \"${workspaceFolder}/svc/main.py\"}\n", "svc/main.py", true),
            ("README.md", "Run `python svc/main.py`.\n", "svc/main.py", true),
            ("index.html", "<script type=\"module\" src=\"/svc/main.js\"></script>\n", "svc/main.js", true),
            ("web/index.html", "<script src=\"js/main.js\"></script>\n", "web/js/main.js", true),
            ("Dockerfile", "COPY svc/ /app/\n", "svc/main.py", true),
            ("Dockerfile", "COPY . /app\nRUN ls svc\n", "svc/main.py", false),
            ("package.json", "{\"scripts\": {\"w\": \"cp -r svc out/\"}}\n", "svc/main.js", true),
            ("tsconfig.json", "{\"include\": [\"svc/**/*\"]}\n", "svc/main.js", true),
            ("tsconfig.json", "{\"compilerOptions\": {\"paths\": {\"@/*\": [\"./svc/*\"]}}}\n", "svc/main.js", false),
            ("pytest.ini", "[pytest]\naddopts = -p svc.main\n", "svc/main.py", false),
            ("Makefile", "lint:\n\truff check svc mysvc/main.py svc/main.pyc\n", "svc/main.py", false),
        ] {
            assert_eq!(names_module(file, text, path), expected, "{file} {text}");
        }
        for (path, expected) in [
            ("Makefile", true),
            ("run.sh", true),
            ("tsconfig.json", true),
            ("jest.config.js", false),
            (".npmignore", false),
            ("poetry.lock", false),
            ("core.py", false),
        ] {
            assert_eq!(may_name(path), expected, "{path}");
        }
        assert!(may_copy("deploy/Dockerfile.web") && may_copy(".github/workflows/a.yml") && !may_copy("README.md"));
    }
}
