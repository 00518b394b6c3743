//! Finds the modules that names mean in files of Node: paths, packages of the repository, `imports` and `exports` of
//! `package.json`, and aliases in the settings of test runners. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::links::resolved;
use super::usage::has_word;
use crate::mine::protection::setup_files::{values, words};
use crate::mine::runner::{Tree, has_settings_of_node};

/// The endings that Node, its bundlers and TypeScript add to the path of a module.
pub(super) const ENDINGS: [&str; 9] = ["", ".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".mts", ".cts"];
/// The endings of compiled files, which files of TypeScript name.
const COMPILED: [&str; 4] = [".js", ".mjs", ".cjs", ".jsx"];
/// Keys of `package.json` with the module that the name of the package means.
const ENTRIES: [&str; 3] = ["main", "module", "browser"];
/// Sections of `package.json` with settings of test runners.
const SECTIONS: [&str; 2] = ["jest", "vitest"];
/// Keys of settings with other names of modules, and with folders in which names are looked for.
const ALIASES: [&str; 7] =
    ["alias", "baseUrl", "moduleDirectories", "moduleNameMapper", "modulePaths", "paths", "roots"];

/// The settings among [`ALIASES`] with folders in which packages are looked for.
const OF_PACKAGES: [&str; 3] = ["baseUrl", "moduleDirectories", "modulePaths"];

/// The names of the modules of a repository.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) files: BTreeSet<String>,
    packages: Vec<Package>,
    /// The values of the settings with aliases.
    aliases: String,
    /// The folders that these values name.
    folders: BTreeSet<String>,
    /// The modules that these values name.
    pub(super) targets: BTreeSet<String>,
    /// The folders of the repository in which packages are looked for. The top is empty.
    pub(super) of_packages: BTreeSet<String>,
}

/// A folder with a `package.json`.
#[derive(Debug)]
struct Package {
    folder: String,
    manifest: Value,
}

impl Names {
    /// Returns the names of the modules of a tree, which has the texts of its manifests and settings.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut names = Self { files: tree.files.clone(), ..Self::default() };
        let mut settings: Vec<(&str, String)> = Vec::new();
        for (path, text) in &tree.texts {
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            if has_settings_of_node(name) {
                settings.push((folder, text.clone()));
            } else if name == "package.json"
                && let Ok(manifest) = serde_json::from_str::<Value>(text)
            {
                let sections = SECTIONS.iter().filter_map(|section| manifest.get(section));
                settings.extend(sections.map(|section| (folder, section.to_string())));
                names.packages.push(Package { folder: folder.to_owned(), manifest });
            }
        }
        for (folder, text) in settings {
            for (key, value) in ALIASES.iter().flat_map(|key| values(&text, key).into_iter().map(move |it| (key, it))) {
                names.aliases.push_str(value);
                names.aliases.push('\n');
                for word in words(value) {
                    let found = [names.add(folder, word), names.add("", word)];
                    if OF_PACKAGES.contains(key) {
                        names.of_packages.extend(found.into_iter().flatten());
                    }
                }
            }
        }
        names
    }

    /// Adds the folder and the module that a word of settings in a folder may mean: `<rootDir>/support/$1`. Returns the
    /// folder if it exists.
    fn add(&mut self, folder: &str, word: &str) -> Option<String> {
        let plain = word.replace("<rootDir>", ".");
        let fixed = plain.split(['*', '$']).next().unwrap_or_default();
        // `.*` is a part of a pattern.
        if fixed.is_empty() || fixed.starts_with('/') || (fixed == "." && plain != ".") {
            return None;
        }
        let place = resolved(&joined(folder, fixed), &BTreeMap::new())?;
        let module = self.beside(&place);
        self.targets.extend(module);
        let prefix = format!("{place}/");
        let is_folder = self.files.range(prefix.clone()..).next().is_some_and(|file| file.starts_with(&prefix));
        if !place.is_empty() && !is_folder {
            return None;
        }
        self.folders.insert(place.clone());
        Some(place)
    }

    /// Returns the modules that a name in an import of a file may mean.
    pub(super) fn imported(&self, path: &str, name: &str) -> BTreeSet<String> {
        if name.is_empty()
            || name.starts_with('/')
            || !name.chars().all(|c| c.is_alphanumeric() || "@/._-~#$".contains(c))
        {
            return BTreeSet::new();
        }
        if [".", ".."].contains(&name) || name.starts_with("./") || name.starts_with("../") {
            let folder = path.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
            return self.at(&joined(folder, name));
        }
        let mut found = BTreeSet::new();
        for package in &self.packages {
            let (folder, manifest) = (package.folder.as_str(), &package.manifest);
            let mut add = |targets: Vec<String>| {
                for target in targets {
                    found.extend(self.at(&joined(folder, &target)));
                }
            };
            let is_around = folder.is_empty() || path.starts_with(&format!("{folder}/"));
            if is_around && let Some(map) = manifest.get("imports") {
                add(mapped(map, name));
            }
            let own = manifest.get("name").and_then(Value::as_str).filter(|own| !own.is_empty());
            let Some(rest) = own.and_then(|own| name.strip_prefix(own)) else { continue };
            if !rest.is_empty() && !rest.starts_with('/') {
                continue;
            }
            add(vec![format!(".{rest}")]);
            if let Some(map) = manifest.get("exports") {
                add(mapped(map, &format!(".{rest}")));
            }
        }
        found.extend(self.of_aliases(name));
        found
    }

    /// Returns the modules that a name means by an alias, or in a folder in which names are looked for.
    fn of_aliases(&self, name: &str) -> BTreeSet<String> {
        let parts: Vec<&str> = name.split('/').collect();
        let key = parts.first().map(|part| part.trim_matches(|c: char| !c.is_alphanumeric())).unwrap_or_default();
        let is_alias = key.is_empty() || has_word(&self.aliases, key);
        let mut found = BTreeSet::new();
        for folder in &self.folders {
            // An alias replaces the first parts.
            for skipped in (0..parts.len().max(2)).filter(|skipped| *skipped == 0 || is_alias) {
                let rest = parts.get(skipped..).unwrap_or_default().join("/");
                found.extend(self.at(&joined(folder, &rest)));
            }
        }
        found
    }

    /// Returns words of which a text has one if it imports one of the modules by another name than its path.
    pub(super) fn words<'a>(&self, modules: impl Iterator<Item = &'a String> + Clone) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for Package { folder, manifest } in &self.packages {
            let prefix = joined(folder, "");
            if !modules.clone().any(|path| path.starts_with(&prefix)) {
                continue;
            }
            // The name of the whole repository alone means its entry, which its manifest names.
            let end = if folder.is_empty() { "/" } else { "" };
            found.extend(manifest.get("name").and_then(Value::as_str).map(|name| format!("{name}{end}")));
            let keys = manifest.get("imports").and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
            found.extend(keys.map(|key| key.split('*').next().unwrap_or_default().to_owned()));
        }
        let is_edge = |c: char| !c.is_alphanumeric() && !"@#~/".contains(c);
        found.extend(words(&self.aliases).map(|word| word.trim_matches(is_edge).to_owned()));
        found.retain(|word| word.len() > 1);
        found
    }

    /// Returns the modules at a path: a file, or what the name of a folder means.
    pub(super) fn at(&self, path: &str) -> BTreeSet<String> {
        let Some(place) = resolved(path, &BTreeMap::new()) else { return BTreeSet::new() };
        if let Some(file) = self.beside(&place) {
            return BTreeSet::from([file]);
        }
        let packages = self.packages.iter().filter(|package| package.folder == place);
        let entries = packages.flat_map(|package| {
            ENTRIES.iter().filter_map(move |key| package.manifest.get(*key)?.as_str()).map(str::to_owned)
        });
        let places = entries.chain(["index".to_owned()]).filter_map(|entry| {
            let place = resolved(&joined(&place, &entry), &BTreeMap::new())?;
            self.beside(&place).or_else(|| self.beside(&joined(&place, "index")))
        });
        places.collect()
    }

    /// Returns the file at a path, with an ending that may be left out.
    fn beside(&self, place: &str) -> Option<String> {
        let stem = COMPILED.iter().find_map(|end| place.strip_suffix(end)).unwrap_or(place);
        let mut files = ENDINGS.iter().flat_map(|end| [format!("{place}{end}"), format!("{stem}{end}")]);
        files.find(|file| self.files.contains(file))
    }
}

fn joined(folder: &str, rest: &str) -> String {
    if folder.is_empty() { rest.to_owned() } else { format!("{folder}/{rest}") }
}

/// Returns the paths that `imports` or `exports` of `package.json` have for a name.
fn mapped(map: &Value, name: &str) -> Vec<String> {
    let keys = map.as_object().filter(|keys| keys.keys().any(|key| key.starts_with(['.', '#'])));
    let Some(keys) = keys else {
        // One module, or one for each condition.
        return if name == "." { leaves(map) } else { Vec::new() };
    };
    let mut found = Vec::new();
    for (key, value) in keys {
        let star = match key.split_once('*') {
            None => Some("").filter(|_| key == name),
            Some((start, end)) => name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)),
        };
        if let Some(star) = star {
            found.extend(leaves(value).iter().map(|path| path.replace('*', star)));
        }
    }
    found
}

/// Returns all texts in a value.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().flat_map(leaves).collect(),
        Value::Object(all) => all.values().flat_map(leaves).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_and_aliases_mean_modules() {
        let files = ["support/checks.js", "support/index.js", "packages/checks/index.js", "shared/lib/main.cjs"];
        for (settings, text, name, expected) in [
            ("package.json", "{}", "../support/checks", &["support/checks.js"][..]),
            ("package.json", "{}", "../support", &["support/index.js"]),
            (
                "packages/checks/package.json",
                r#"{"name": "@calc/checks"}"#,
                "@calc/checks",
                &["packages/checks/index.js"],
            ),
            ("packages/checks/package.json", r#"{"name": "@calc/checks"}"#, "@calc/checksum", &[]),
            ("shared/package.json", r#"{"name": "shared", "main": "./lib/main"}"#, "shared", &["shared/lib/main.cjs"]),
            ("shared/package.json", r#"{"main": "lib/main.cjs"}"#, "../shared", &["shared/lib/main.cjs"]),
            (
                "package.json",
                r##"{"imports": {"#support/*": {"node": "./support/*", "default": null}}}"##,
                "#support/checks.js",
                &["support/checks.js"],
            ),
            (
                "package.json",
                r#"{"name": "calc", "exports": {"./*": "./*.js"}}"#,
                "calc/support/checks",
                &["support/checks.js"],
            ),
            ("package.json", r#"{"name": "calc", "exports": "./support/index.js"}"#, "calc", &["support/index.js"]),
            (
                "package.json",
                r#"{"jest": {"moduleNameMapper": {"^@support/(.*)$": "<rootDir>/support/$1"}}}"#,
                "@support/checks",
                &["support/checks.js"],
            ),
            (
                "package.json",
                r#"{"jest": {"moduleDirectories": ["node_modules", "support"]}}"#,
                "checks",
                &["support/checks.js"],
            ),
            (
                "jest.config.js",
                "module.exports = { modulePaths: ['<rootDir>/support'] }",
                "checks",
                &["support/checks.js"],
            ),
            (
                "vitest.config.ts",
                "resolve: { alias: { '@support': path.resolve(__dirname, 'support') } }",
                "@support",
                &["support/index.js"],
            ),
            ("tsconfig.json", r#"{"compilerOptions": {"baseUrl": "."}}"#, "support/checks", &["support/checks.js"]),
            (
                "tsconfig.json",
                r#"{"compilerOptions": {"paths": {"@/*": ["./support/*"]}}}"#,
                "@/checks",
                &["support/checks.js"],
            ),
            ("tsconfig.json", r#"{"compilerOptions": {"paths": {"@/*": ["./support/*"]}}}"#, "chai", &[]),
        ] {
            let files: BTreeSet<String> = files.iter().chain([&settings]).map(|path| (*path).to_owned()).collect();
            let tree = Tree { files, texts: [(settings.to_owned(), text.to_owned())].into() };
            let found: Vec<String> = Names::of(&tree).imported("test/a.js", name).into_iter().collect();
            assert_eq!(found, expected, "{settings} {text} {name}");
        }
    }

    #[test]
    fn a_module_that_an_alias_names_is_a_target() {
        let files = ["support/checks.js", "jest.config.js"].map(str::to_owned).into();
        let text = "module.exports = { moduleNameMapper: { '^checks$': '<rootDir>/support/checks.js' } }".to_owned();
        let names = Names::of(&Tree { files, texts: [("jest.config.js".to_owned(), text)].into() });
        assert_eq!(names.targets, BTreeSet::from(["support/checks.js".to_owned()]));
    }
}
