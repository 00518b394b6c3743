//! Reads the values in settings of any form, with or without quotes: JSON, TOML, YAML, INI and `.env`. Pure.

use super::usage::LOCKS;
use crate::mine::role::{name, split};
use crate::mine::runner::has_settings_of_node;

/// The endings of settings.
pub(super) const ENDINGS: [&str; 9] = ["json", "toml", "yaml", "yml", "ini", "cfg", "conf", "xml", "properties"];

/// The beginnings of the names of settings of tools that check, format or measure code, and load no module of a product.
const OF_CHECKERS: [&str; 30] = [
    ".c8rc",
    ".codecov.",
    ".coveragerc",
    ".editorconfig",
    ".eslintrc",
    ".flake8",
    ".jshintrc",
    ".lintstagedrc",
    ".mypy.ini",
    ".nycrc",
    ".oxlintrc",
    ".pre-commit-config.",
    ".prettierrc",
    ".pylintrc",
    ".ruff.toml",
    ".stylelintrc",
    "biome.json",
    "codecov.",
    "eslint.config.",
    "knip.",
    "lint-staged.config.",
    "mypy.ini",
    "nyc.config.",
    "oxlint.config.",
    "prettier.config.",
    "pylintrc",
    "pyrightconfig.",
    "ruff.toml",
    "sonar-project.",
    "stylelint.config.",
];

/// Returns true if a file has settings of a tool that checks, formats or measures code, by its name.
pub(super) fn is_of_checkers(name: &str) -> bool {
    OF_CHECKERS.iter().any(|start| name.starts_with(start))
}

/// Returns true if a file may have settings of the code. Settings of other programs have a dot before their name or that of
/// their folder, except `.env`. Settings of test runners and of tools that check code, and lock files, have none.
pub(super) fn is_settings(path: &str) -> bool {
    let name = name(path);
    let is_env = name == ".env" || name.starts_with(".env.");
    let is_hidden = path.split('/').any(|part| part.starts_with('.'));
    let is_plain = !is_hidden && (ENDINGS.contains(&split(name).1) || name == "setup.py");
    (is_env || is_plain) && !LOCKS.contains(&name) && !has_settings_of_node(name) && !is_of_checkers(name)
}

/// Returns the words in the values of settings. The key before a value, names of sections and comments are left out.
pub(super) fn values(text: &str) -> impl Iterator<Item = &str> {
    let is_edge = |c: char| c.is_whitespace() || "\"'`,;:=[](){}<>".contains(c);
    let is_section =
        |line: &str| line.starts_with('[') && line.trim_end().ends_with(']') && !line.contains(['"', '\'']);
    text.lines()
        .filter(move |line| !line.trim_start().starts_with(['#', ';']) && !is_section(line))
        .map(|line| line.split(" #").next().unwrap_or_default())
        .map(|line| line.split_once([':', '=']).map_or(line, |(_, value)| value))
        .flat_map(move |line| line.split(is_edge))
        .map(plain)
        .filter(|word| !word.is_empty())
}

/// Returns a path without `./` at its start and `/` at its end.
pub(super) fn plain(word: &str) -> &str {
    word.strip_prefix("./").unwrap_or(word).trim_end_matches('/')
}

/// Returns true if a value in settings is a folder, a part of its path at the end, or a glob in the folder.
pub(super) fn names_place(text: &str, folder: &str) -> bool {
    let folder = plain(folder);
    let is_named = |word: &str| {
        let fixed = word.split('*').next().unwrap_or_default().trim_matches('/');
        !fixed.is_empty() && (fixed == folder || folder.ends_with(&format!("/{fixed}")))
    };
    values(text).any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_by_a_value_with_or_without_quotes() {
        for (text, is_named) in [
            ("migrations: db/migrations\n", true),
            ("[db]\nmigrations = db/migrations\n", true),
            ("export MIGRATIONS=./db/migrations/\n", true),
            ("dirs:\n  - db/migrations # in order\n", true),
            ("{\"sql\": \"db/migrations/*.sql\"}\n", true),
            ("dir: migrations\n", true),
            ("migrations: yes\n", false),
            ("# migrations are in db/migrations\n", false),
            ("dir: app/migrations\n", false),
            ("dir: *\n", false),
            ("[migrations]\n", false),
        ] {
            assert_eq!(names_place(text, "db/migrations/"), is_named, "{text}");
        }
    }

    #[test]
    fn settings_are_known_by_their_names() {
        for (path, expected) in [
            ("config/app.yml", true),
            ("setup.py", true),
            (".env", true),
            ("app/.env.local", true),
            (".eslintrc.json", false),
            (".github/workflows/ci.yml", false),
            ("package-lock.json", false),
            ("jest.config.json", false),
            ("codecov.yml", false),
            ("pyrightconfig.json", false),
            ("calc.py", false),
        ] {
            assert_eq!(is_settings(path), expected, "{path}");
        }
    }
}
