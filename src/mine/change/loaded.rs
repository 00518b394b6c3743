//! Finds the modules that code may load by a name that only its run shows, such as plug-ins.

use std::collections::{BTreeMap, BTreeSet};

use super::settings_text::{ENDINGS, is_of_checkers};
use super::usage::{has_word, word};
use super::{Entry, tree};
use crate::mine::language::{Language, NODE, PYTHON};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles, name, place, split};
use crate::mine::runner::{has_settings_of_node, without_pytest};

/// Signs of code of Python that loads modules by their names.
const OF_PYTHON: [&str; 11] = [
    "importlib",
    "import_module",
    "__import__",
    "find_spec",
    "load_module",
    "exec_module",
    "iter_modules",
    "walk_packages",
    "run_module",
    "run_path",
    "entry_points",
];
/// Parts of `importlib` that load no module.
const HARMLESS: [&str; 4] =
    ["importlib.metadata", "importlib.resources", "importlib import metadata", "importlib import resources"];
/// Signs of code of Node that loads several modules.
const OF_NODE: [&str; 2] = ["require.context(", "import.meta.glob"];
/// Calls of Node that load a module.
const CALLS: [&str; 2] = ["require(", "import("];

/// Returns those of the modules that code of their language may load by a name, or that settings name. Only tests use the
/// modules, as far as imports show it.
///
/// # Errors
/// Returns git's message.
pub(super) async fn may_be_loaded(
    repository: &Repository,
    commit: &str,
    entries: &BTreeMap<String, Entry>,
    roles: &Roles,
    paths: &BTreeSet<String>,
) -> Result<BTreeSet<String>, RepositoryError> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut words: BTreeSet<&str> = OF_PYTHON.iter().chain(&OF_NODE).chain(&CALLS).copied().collect();
    words.extend(paths.iter().flat_map(|path| [Some(word(path)), place(path)]).flatten());
    let holders = repository.files_with(commit, &words).await?;
    let is_of_tool = |path: &str| {
        has_settings_of_node(name(path)) || is_of_checkers(name(path)) || name(path) == "pnpm-workspace.yaml"
    };
    let is_code = |path: &str| {
        holders.contains(path) && roles.of(path) == Role::Code && !paths.contains(path) && !is_of_tool(path)
    };
    let texts = tree(repository, entries, is_code).await?.texts;
    let is_loaded = |path: &&String| texts.iter().any(|(file, text)| loads(file, text, path));
    Ok(paths.iter().filter(is_loaded).cloned().collect())
}

/// Returns true if a file may load a module by a name, or is settings that name the module or its folder.
fn loads(file: &str, text: &str, path: &str) -> bool {
    if ENDINGS.contains(&split(file).1) {
        let text = without_pytest(file, text);
        return has_word(&text, word(path)) || place(path).is_some_and(|place| has_word(&text, place));
    }
    let is_of = |wanted: &Language| [file, path].iter().all(|it| wanted.has(it));
    (is_of(&PYTHON) && text.lines().any(loads_in_python)) || (is_of(&NODE) && loads_in_node(text))
}

fn loads_in_python(line: &str) -> bool {
    let rest = HARMLESS.iter().fold(line.to_owned(), |rest, harmless| rest.replace(*harmless, ""));
    OF_PYTHON.iter().any(|sign| rest.contains(sign))
}

fn loads_in_node(text: &str) -> bool {
    let is_variable = |call: &&str| {
        text.match_indices(*call).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let first = text.get(at + call.len()..).and_then(|rest| rest.trim_start().chars().next());
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && !matches!(first, Some('"' | '\'' | ')') | None)
        })
    };
    OF_NODE.iter().any(|sign| text.contains(sign)) || CALLS.iter().any(is_variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_code_may_load_by_a_name_is_seen() {
        for (file, text, path, is_loaded) in [
            ("core.py", "importlib.import_module(kind + name)\n", "plugins/slug.py", true),
            ("core.py", "__import__(name)\n", "plugins/slug.py", true),
            ("core.py", "from importlib.metadata import version\n", "plugins/slug.py", false),
            ("core.py", "from importlib import metadata, import_module\n", "plugins/slug.py", true),
            ("core.py", "import json\n", "plugins/slug.py", false),
            ("core.js", "importlib", "plugins/slug.py", false),
            ("settings.json", "{\"package\": \"plugins\"}\n", "plugins/slug.py", true),
            ("settings.json", "{\"plugin\": \"slug\"}\n", "plugins/slug.py", true),
            ("settings.json", "{\"plugin\": \"sluggish\"}\n", "plugins/slug.py", false),
            ("pytest.ini", "[pytest]\naddopts = -p plugins.slug\n", "plugins/slug.py", false),
            ("tox.ini", "[testenv]\ncommands = slug\n", "plugins/slug.py", true),
            ("core.js", "const a = require('./a');\nimport('./b');\n", "plugins/slug.js", false),
            ("core.js", "module.exports = name => require(`./plugins/${name}`);\n", "plugins/slug.js", true),
            ("core.mjs", "await import(name);\n", "plugins/slug.js", true),
            ("core.js", "require(name);\n", "plugins/slug.py", false),
        ] {
            assert_eq!(loads(file, text, path), is_loaded, "{file} {text}");
        }
    }
}
