//! Finds what would be loaded in place of the packages that tests of Node import: files in folders of the repository in which
//! the settings of a runner look for packages. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::node_names::Names;
use crate::values::escaped_glob;

/// The ends of the code before the name of a module in quotes.
const BEFORE: [&str; 7] = ["from", "import", "import(", "require(", "require.resolve(", "mock(", "requireActual("];
/// The modules of Node itself, which no file replaces.
const OF_NODE: [&str; 30] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "querystring",
    "readline",
    "stream",
    "string_decoder",
    "timers",
    "url",
    "util",
    "worker_threads",
    "zlib",
];
/// The ends of the globs of a module: a file of its name, and what a folder of its name means.
const ENDS: [&str; 3] =
    ["{,.js,.cjs,.mjs,.jsx,.ts,.cts,.mts,.tsx,.json}", "/index.{js,cjs,mjs,jsx,ts,cts,mts,tsx,json}", "/package.json"];

/// Returns globs of the files that would be loaded in place of the packages which texts import.
pub(super) fn replacing(texts: &BTreeMap<String, String>, names: &Names) -> Vec<String> {
    let packages: BTreeSet<&str> = texts.iter().flat_map(|(path, text)| imported(path, text, names)).collect();
    let of_folder = |folder: String| {
        let root = if folder == "." { String::new() } else { format!("{}/", escaped_glob(&folder)) };
        let places: Vec<String> = packages.iter().map(|package| format!("{root}{package}")).collect();
        places.iter().flat_map(|place| ENDS.map(|end| format!("{place}{end}"))).collect::<Vec<String>>()
    };
    folders(names).into_iter().flat_map(of_folder).collect()
}

/// Returns the folders in which packages are looked for, besides those of installed ones. The top is `.`.
pub(super) fn folders(names: &Names) -> Vec<String> {
    let is_installed = |folder: &&String| folder.split('/').any(|part| part == "node_modules");
    let own = names.of_packages.iter().filter(|folder| !is_installed(folder));
    own.map(|folder| if folder.is_empty() { ".".to_owned() } else { folder.clone() }).collect()
}

/// Returns the packages that a text imports: names that mean no file of the repository.
fn imported<'a>(path: &str, text: &'a str, names: &Names) -> BTreeSet<&'a str> {
    let is_plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "@/._-".contains(c));
    let is_package = |name: &str| {
        let is_of_node = OF_NODE.contains(&name.split('/').next().unwrap_or_default());
        name.starts_with(|c: char| c.is_alphanumeric() || c == '@') && is_plain(name) && !is_of_node
    };
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let parts: Vec<&str> = line.split(['"', '\'', '`']).collect();
        for (before, name) in parts.iter().zip(parts.iter().skip(1)) {
            let is_import = BEFORE.iter().any(|sign| before.trim_end().ends_with(sign));
            if is_import && is_package(name) && names.imported(path, name).is_empty() {
                found.insert(*name);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mine::runner::Tree;
    use crate::values::PathGlob;

    #[test]
    fn what_would_be_loaded_in_place_of_a_package_is_found() {
        let text = "const equal = require('fast-deep-equal'), { avg } = require(\"avg\"), fs = require('fs');\n\
                    import { x } from '@scope/x';\nimport chai from './own';\njest.mock('lodash/get');\n\
                    test('equal', () => {});\n";
        let texts = BTreeMap::from([("test/avg.test.js".to_owned(), text.to_owned())]);
        for (settings, folder) in [
            (r#"{"jest": {"moduleDirectories": ["src", "node_modules"]}}"#, Some("src/")),
            (r#"{"jest": {"modulePaths": ["<rootDir>"]}}"#, Some("")),
            (r#"{"jest": {"modulePaths": ["<rootDir>/!own"]}}"#, Some("!own/")),
            (r#"{"jest": {"moduleNameMapper": {"^@/(.*)$": "<rootDir>/src/$1"}}}"#, None),
            ("{}", None),
        ] {
            let files = ["!own/a.js", "package.json", "src/avg.js", "test/avg.test.js"].map(str::to_owned).into();
            let tree = Tree { files, texts: [("package.json".to_owned(), settings.to_owned())].into() };
            let found = replacing(&texts, &Names::of(&tree));
            let globs: Vec<PathGlob> = found.iter().map(|glob| glob.parse().unwrap()).collect();
            let has = |path: &str| globs.iter().any(|glob| glob.is_match(path));
            let Some(folder) = folder else {
                assert!(found.is_empty(), "{settings}: {found:?}");
                continue;
            };
            for path in ["fast-deep-equal", "fast-deep-equal.js", "@scope/x/index.ts", "lodash/get.json"] {
                assert!(has(&format!("{folder}{path}")), "{settings} {path}: {found:?}");
            }
            for path in ["fs.js", "equal.js", "own.js", "fast-deep-equal/more.js", "x.js"] {
                assert!(!has(&format!("{folder}{path}")), "{settings} {path}: {found:?}");
            }
            assert!(!has("src/avg.js"), "{settings}: {found:?}");
        }
    }
}
