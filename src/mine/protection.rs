//! The files that decide about tests besides the hidden ones: test files that an agent adds, and settings of runners.
//! They are protected in a mined case, so that they are removed or restored before the tests run. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::change::Change;
use super::commit_tests::CommitTests;
use super::hunks;
use super::language;
use super::left_out::{self, Guard};
use super::package;
use super::role::{self, Role};
use super::runner::{Runner, Tree};
use crate::values::{PathGlob, escaped_glob};

mod python_modules;
pub(super) mod setup_files;
pub(super) mod tools;

/// The files that decide about the tests of a language.
struct Language {
    /// The endings of the tests, without dots.
    endings: &'static [&'static str],
    /// The test runners of the language.
    runners: &'static [Runner],
    /// Globs of files that runners take for tests. A module of code that an agent may add must not match: for Rust,
    /// `src/parser/tests.rs` is a part of the crate.
    tests: &'static [&'static str],
    /// True if the names of tests show no file, so that a test of an agent can have the name of a hidden one. Then the other
    /// folders that hold tests in the repository, such as `spec`, are protected, too.
    shows_no_file: bool,
    /// Globs of the files that determine which tests are run, how, and with which packages.
    settings: &'static [&'static str],
}

/// The maximum number of bytes of the paths in a command: a line for `sh -c` has a limit.
const MAX_PATHS_BYTES: usize = 50_000;
/// The test runners of Node.
const OF_NODE: [Runner; 5] = [Runner::Node, Runner::Npm, Runner::Mocha, Runner::Jest, Runner::Vitest];
/// The glob of the manifests of Rust.
const MANIFESTS_OF_RUST: &str = "**/Cargo.toml";
/// The glob of the lock files of Rust.
const LOCKS_OF_RUST: &str = "**/Cargo.lock";
/// The test runners of Python.
const OF_PYTHON: [Runner; 2] = [Runner::Pytest, Runner::Unittest];

const LANGUAGES: [Language; 6] = [
    Language {
        endings: &["py"],
        runners: &OF_PYTHON,
        // pytest also loads a `conftest.py` around the tests: its glob has a line of its own, because code may be in a `test.py`.
        tests: &["**/{test,tests}/**", "**/test_*.py", "**/*_{test,tests}.py", "**/{test,tests}.py", "**/conftest.py"],
        shows_no_file: false,
        // pytest loads the plug-ins that the metadata of any package on its path names. Python itself runs the other files
        // when it starts, if their folder is on its path: a module, compiled or not, or a package. A name without wildcards,
        // also one of several alternatives, is protected if the repository ignores such a file, too, and so is a folder whose
        // name is a part of a glob.
        settings: &[
            "pytest.ini",
            ".pytest.ini",
            "pytest.toml",
            ".pytest.toml",
            "tox.ini",
            "pyproject.toml",
            "setup.cfg",
            "**/{,.}pytest.{ini,toml}",
            "**/{tox.ini,pyproject.toml,setup.cfg}",
            // Python compares the ends of these names without their case.
            "**/*.{[dD][iI][sS][tT]-[iI][nN][fF][oO],[eE][gG][gG]-[iI][nN][fF][oO]}/**",
            "**/{sitecustomize,usercustomize}{,.py,.pyc,.so,.*}",
            "**/sitecustomize/**",
            "**/usercustomize/**",
            "sitecustomize.pyc",
            "usercustomize.pyc",
            "src/sitecustomize.pyc",
            "src/usercustomize.pyc",
            "**/*.pth",
        ],
    },
    Language {
        endings: language::NODE.endings(),
        runners: &OF_NODE,
        tests: &[
            "**/{test,tests,__tests__}/**",
            // jest puts a module in such a folder in the place of the package of its name.
            "**/__mocks__/**",
            "**/*{.,-,_}{test,tests,spec}.{js,cjs,mjs,jsx,ts,cts,mts,tsx}",
            "**/{test,tests}.{js,cjs,mjs,ts,cts,mts}",
            "**/test-*.{js,cjs,mjs,ts,cts,mts}",
        ],
        shows_no_file: true,
        // The endings are spelled out, so that such a file is protected also if git ignores it (`*.js` in projects of TypeScript).
        settings: &[
            "**/node_modules/**",
            "**/package.json",
            "**/.npmrc",
            "**/.mocharc.{cjs,js,json,jsonc,mjs,yaml,yml,*}",
            "**/{jest,ava,vitest}.config.{cjs,cts,js,json,mjs,mts,ts,*}",
            "**/vitest.{workspace,projects}.{cjs,cts,js,json,mjs,mts,ts,*}",
            "**/vite.config.{cjs,cts,js,mjs,mts,ts,*}",
            "**/{.babelrc,babel.config}{,.cjs,.cts,.js,.json,.mjs,.*}",
            "**/.swcrc",
            // vite runs these in its own process, which writes the report.
            "**/{.postcssrc,postcss.config}{,.cjs,.cts,.js,.json,.mjs,.mts,.ts,.yaml,.yml,.*}",
            "**/{svelte,tailwind}.config.{cjs,cts,js,mjs,mts,ts,*}",
            "**/{.nycrc,nyc.config}{,.cjs,.js,.json,.mjs,.yaml,.yml,.*}",
            "**/{.c8rc,.c8rc.json,.c8rc.*,.taprc,karma.conf.cjs,karma.conf.js,karma.conf.mjs,karma.conf.ts,karma.conf.*}",
            // tsx, ts-node and others replace packages by `paths` when the tests run.
            "**/{tsconfig,jsconfig}.json",
            "**/tsconfig.*.json",
        ],
    },
    Language {
        endings: &["rs"],
        runners: &[Runner::Cargo],
        tests: &["tests/**", "crates/*/tests/**"],
        shows_no_file: false,
        // Cargo.toml can name another file for a test, and the toolchain's file another cargo. With `force_pass` in its
        // settings, insta passes each snapshot.
        settings: &[
            ".cargo/**",
            MANIFESTS_OF_RUST,
            "**/rust-toolchain{,.toml}",
            "**/{,.}insta.yaml",
            "**/.config/nextest.toml",
        ],
    },
    Language {
        endings: &["go"],
        runners: &[Runner::Go],
        tests: &["**/*_test.go", "**/testdata/**"],
        shows_no_file: false,
        settings: &["**/go.{mod,sum}", "go.{work,work.sum}", "**/vendor/**"],
    },
    Language {
        endings: language::JVM.endings(),
        runners: &[Runner::Maven, Runner::Gradle],
        tests: &["**/src/test/**"],
        shows_no_file: false,
        settings: &[
            "**/pom.xml",
            ".mvn/**",
            "**/*.{gradle,gradle.kts}",
            "**/gradle.properties",
            // JUnit reads it from any folder on the path of classes.
            "**/junit-platform.properties",
            "gradle/**",
            "buildSrc/**",
            "{mvnw,gradlew}",
        ],
    },
    Language {
        endings: &["t", "bats", "sh"],
        runners: &[],
        tests: &["**/{t,test,tests}/**", "**/*.bats"],
        shows_no_file: true,
        // The options of `prove`.
        settings: &["**/.proverc"],
    },
];

impl Language {
    /// Returns the globs for tests. A glob that also matches code is restricted to the top folder, that of the package and those
    /// around it, or dropped.
    fn tests_beside(&self, change: &Change, code: &[&String]) -> Vec<String> {
        let globs = self.tests.iter().map(|glob| (*glob).to_owned()).chain(self.further_tests(change, code));
        let apart = globs.flat_map(|glob| match glob.strip_prefix("**/").map(str::to_owned) {
            Some(inside) if !spares(&glob, code) => of_folders(change, &inside),
            _ => vec![glob],
        });
        apart.filter(|glob| spares(glob, code)).collect()
    }

    /// Returns globs of the folders that tests of the language have in the repository, and that no other glob matches. If several
    /// have the same name, those that an agent adds count, too, unless such a folder holds other files.
    fn further_tests(&self, change: &Change, code: &[&String]) -> Vec<String> {
        if !self.shows_no_file {
            return Vec::new();
        }
        let known = self.tests.iter().filter(|glob| spares(glob, code));
        let known: Vec<PathGlob> = known.filter_map(|glob| glob.parse().ok()).collect();
        let has_ending = |path: &&String| self.endings.contains(&role::split(role::name(path)).1);
        let all = change.before.files.iter().chain(&change.after.files);
        // A patch may change data beside the code.
        let (tests, others): (Vec<&String>, Vec<&String>) = all.partition(|path| change.roles.of(path) == Role::Test);
        let tests = tests.into_iter().filter(has_ending);
        let folders: BTreeSet<&str> = tests.filter_map(|path| role::folder_of_tests(path)).collect();
        let is_known = |folder: &&str| known.iter().any(|glob| glob.is_match(&format!("{folder}/a")));
        let has_other = |folder: &str| folders.iter().any(|it| *it != folder && role::name(it) == role::name(folder));
        let globs = folders.iter().copied().filter(|folder| !is_known(folder)).map(|folder| {
            let anywhere = format!("**/{}/**", role::name(folder));
            let is_anywhere = has_other(folder) && spares(&anywhere, &others);
            if is_anywhere { anywhere } else { format!("{}/**", escaped_glob(folder)) }
        });
        globs.filter(|glob| spares(glob, &others)).collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Returns the globs for settings. Those at the top are looked for in the folder of the package and in those around it, too.
    fn settings_of(&self, change: &Change) -> Vec<String> {
        let of_glob = |glob: &&'static str| match glob.starts_with("**/") {
            true => vec![(*glob).to_owned()],
            false => of_folders(change, glob),
        };
        self.settings.iter().flat_map(of_glob).collect()
    }
}

/// Returns a glob of the top, and the same glob of the folder of each package that the tests belong to and of the folders around
/// it: cargo, Go, Maven and pytest look for settings from the working directory up.
fn of_folders(change: &Change, glob: &str) -> Vec<String> {
    let package = change.package.iter().map(|package| package.folder.as_str());
    let packages = package.chain(change.packages.iter().map(String::as_str));
    let folders: BTreeSet<&str> = packages.flat_map(|folder| package::around(folder).chain([folder])).collect();
    let below = folders.into_iter().filter(|folder| *folder != package::TOP);
    [glob.to_owned()].into_iter().chain(below.map(|folder| format!("{folder}/{glob}"))).collect()
}

/// Returns the globs for a case. A glob for tests that also matches code is restricted to the top folder or dropped. A glob
/// for settings is dropped if it matches a file of `patched`: the files of the patch that an agent may have to change. For
/// Node, the files that its settings load before the tests are added, unless the patch changes them, and what would be loaded
/// in place of packages. For Rust, the tests of each package and the build scripts are added. For Python, so are the files that
/// would be imported in place of hidden tests.
pub fn globs(change: &Change, patched: &[String], runner: Runner) -> Vec<String> {
    let is_used = |endings: &[&str], runners: &[Runner]| is_used(change, runner, endings, runners);
    let code = code_of(change);
    let all_patched: Vec<&String> = patched.iter().collect();
    // The patch may change data beside the code, which is in a folder that only has the name of one of tests.
    let is_open = |path: &&String| change.roles.of(path) != Role::Test;
    let open: Vec<&String> = code.iter().copied().chain(patched.iter().filter(is_open)).collect();
    let of_language = |language: &Language| {
        let settings = language.settings_of(change).into_iter().filter(|glob| spares(glob, &all_patched));
        let mut found = language.tests_beside(change, if language.shows_no_file { &open } else { &code });
        if language.runners.contains(&Runner::Cargo) {
            found.retain(|glob| protects_tests_of_rust(glob, change, &all_patched));
        }
        found.extend(settings);
        found
    };
    let used = LANGUAGES.iter().filter(|language| is_used(language.endings, language.runners));
    let mut found: Vec<String> = used.flat_map(of_language).collect();
    if is_used(language::NODE.endings(), &OF_NODE) {
        let loaded = setup_files::loaded(&change.before, runner).into_iter().chain(tools_of_scripts(change, runner));
        found.extend(loaded.filter(|path| !patched.contains(path)).map(|path| escaped_glob(&path)));
        found.extend(change.in_place_of_packages.iter().filter(|glob| spares(glob, &code)).cloned());
        found.extend(in_place_of_scripts(&change.hidden, &open));
    }
    // With another lock file, cargo needs packages that the set-up did not fetch. With another manifest, it writes the file anew.
    let changed = patched.iter().chain(&change.changed_tests).chain(&change.removed_tests).collect::<Vec<&String>>();
    if runner == Runner::Cargo && [MANIFESTS_OF_RUST, LOCKS_OF_RUST].iter().all(|glob| spares(glob, &changed)) {
        found.push(LOCKS_OF_RUST.to_owned());
    }
    if is_used(&["rs"], &[Runner::Cargo]) {
        let trees = [&change.before, &change.after];
        let known = parsed(&found);
        let is_known = |folder: &str| known.iter().any(|glob| glob.is_match(&format!("{folder}tests/a.rs")));
        let folders = trees.into_iter().flat_map(packages_of_rust).collect::<BTreeSet<&str>>();
        let tests = folders.into_iter().filter(|folder| !is_known(folder));
        let globs = tests.map(|folder| format!("{}tests/**", escaped_glob(folder))).filter(|glob| spares(glob, &code));
        found.extend(globs.filter(|glob| protects_tests_of_rust(glob, change, &all_patched)));
        let scripts = trees.into_iter().flat_map(build_scripts).collect::<BTreeSet<String>>();
        found.extend(scripts.iter().filter(|path| !patched.contains(path)).map(|path| escaped_glob(path)));
    }
    if is_used(&["py"], &OF_PYTHON) {
        let tests = [&change.hidden[..], &change.protected, &python_modules::installed(change)].concat();
        found.extend(shadows(&tests, &code));
    }
    found
}

/// Returns true if a glob for tests of Rust is a part of a case. If an agent may change manifests, one may name a test of the
/// agent, and cargo reads no manifest that names a missing file. Hidden files are restored in any case.
fn protects_tests_of_rust(glob: &str, change: &Change, patched: &[&String]) -> bool {
    let is_open = |path: &&String| !change.hidden.contains(path);
    let has_open = |glob: PathGlob| change.after.files.iter().filter(is_open).any(|path| glob.is_match(path));
    spares(MANIFESTS_OF_RUST, patched) || glob.parse::<PathGlob>().is_ok_and(has_open)
}

/// Returns true if a case has tests of a language.
fn is_used(change: &Change, runner: Runner, endings: &[&str], runners: &[Runner]) -> bool {
    let mut changed = change.changed_tests.iter().map(|path| role::split(role::name(path)).1);
    // A commit may change only the data of its tests.
    changed.any(|ending| endings.contains(&ending)) || runners.contains(&runner)
}

/// Returns the files that decide what the tools do which the scripts of packages of Node start, if the runner starts these scripts.
fn tools_of_scripts(change: &Change, runner: Runner) -> BTreeSet<String> {
    let runs_scripts = matches!(runner, Runner::Npm | Runner::Given);
    let is_of_node = is_used(change, runner, language::NODE.endings(), &OF_NODE);
    if runs_scripts && is_of_node { setup_files::of_tools(&change.before) } else { BTreeSet::new() }
}

/// Returns the settings that the patch changes, and such files that the command of `--test` names, or that decide what the tools in
/// scripts do.
pub fn settings_in_patch(change: &Change, runner: Runner, command: Option<&str>) -> Vec<String> {
    let used = LANGUAGES.iter().filter(|language| is_used(change, runner, language.endings, language.runners));
    let mut globs: Vec<String> = used.flat_map(|language| language.settings_of(change)).collect();
    globs.extend(command.into_iter().flat_map(|command| named(command, &change.before, &[])));
    globs.extend(tools_of_scripts(change, runner).iter().map(|path| escaped_glob(path)));
    let globs = parsed(&globs);
    let is_setting = |path: &String| globs.iter().any(|glob| glob.is_match(path));
    hunks::files(&change.patch).into_iter().filter(is_setting).collect()
}

/// Returns globs of the files that no glob of a case matches: another file, which an agent may have to change, matches the glob
/// for such settings, too.
pub fn missing(files: &[String], globs: &[String]) -> Vec<String> {
    let globs = parsed(globs);
    let is_missing = |path: &&String| !globs.iter().any(|glob| glob.is_match(path));
    files.iter().filter(is_missing).map(|path| escaped_glob(path)).collect()
}

/// Returns globs of the files that tests of Python may be in. Each case of the commit hides or protects these files.
pub fn guarded(change: &Change) -> Vec<String> {
    let code = code_of(change);
    let of_python = LANGUAGES.iter().filter(|language| language.runners.contains(&Runner::Pytest));
    let mut found: Vec<String> = of_python.flat_map(|language| language.tests_beside(change, &code)).collect();
    let known = parsed(&found);
    let is_new = |path: &&String| !known.iter().any(|glob| glob.is_match(path));
    // With one of these signs, a path would be read as a glob.
    let is_plain = |path: &&String| !path.contains(['*', '{']);
    let hidden = change.hidden.iter().filter(|path| path.ends_with(".py")).filter(is_plain).filter(is_new);
    let mut bytes = 0;
    let is_short = |path: &&String| {
        bytes += path.len();
        bytes <= MAX_PATHS_BYTES
    };
    let more: Vec<String> = hidden.take_while(is_short).cloned().collect();
    found.extend(more);
    found
}

/// Returns the folders of the packages of Rust. Each is empty, or has a slash at its end.
fn packages_of_rust(tree: &Tree) -> impl Iterator<Item = &str> {
    let folders = tree.files.iter().filter_map(|path| path.strip_suffix("Cargo.toml"));
    folders.filter(|folder| folder.is_empty() || folder.ends_with('/'))
}

/// Returns the build scripts of the packages of Rust, which cargo runs before it compiles the tests: `build.rs` beside a
/// `Cargo.toml`, whether it exists or not, or the files that the manifest names. A module of the sources may be called `build`,
/// too.
fn build_scripts(tree: &Tree) -> BTreeSet<String> {
    let of_manifest = |path: &String| -> Vec<String> {
        let Some(folder) = path.strip_suffix("Cargo.toml").filter(|it| it.is_empty() || it.ends_with('/')) else {
            return Vec::new();
        };
        let manifest: Option<Value> = tree.text(path).and_then(|text| toml::from_str(text).ok());
        let names: Vec<&str> = match manifest.as_ref().and_then(|manifest| manifest.pointer("/package/build")) {
            Some(Value::Bool(false)) => Vec::new(),
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => vec!["build.rs"],
        };
        let around = folder.trim_end_matches('/');
        names.into_iter().filter_map(|name| setup_files::place(around, name)).collect()
    };
    tree.files.iter().flat_map(of_manifest).collect()
}

/// Returns the files of code before and after a commit.
fn code_of(change: &Change) -> Vec<&String> {
    let is_code = |path: &&String| matches!(change.roles.of(path), Role::Code | Role::Dependencies);
    change.before.files.iter().chain(&change.after.files).filter(is_code).collect()
}

/// Returns true if a glob matches none of the files.
fn spares(glob: &str, files: &[&String]) -> bool {
    glob.parse::<PathGlob>().is_ok_and(|glob| !files.iter().any(|path| glob.is_match(path)))
}

fn parsed(globs: &[String]) -> Vec<PathGlob> {
    globs.iter().filter_map(|glob| glob.parse().ok()).collect()
}

/// The ends of globs of what Python imports in place of a module of a name: modules in a folder of the name, which may be a
/// part of a package without `__init__.py`, and modules beside it, compiled ones too. Other files, such as `logging.conf`
/// and `html/page.html`, replace no module. `__init__` is named, so that it counts also if git ignores it.
const SHADOWS: [&str; 2] = ["/**/{__init__,__init__.*,*}.{py,pyc,pyd,so}", ".{py,pyc,pyd,so,*.pyd,*.so}"];

/// The ends of globs of what Node loads in place of a script with another ending than `js`. Each is named, so that it counts also
/// if git ignores it (`*.js` in projects of TypeScript).
const BEFORE_SCRIPTS: [&str; 2] = [".{js,cjs,mjs,jsx,json,node}", "/index.{js,cjs,mjs,jsx,json,node}"];
/// The maximum number of names in a glob of what is loaded in place of tests.
const MAX_NAMES: usize = 200;

/// Returns globs of what Python imports in place of tests: a package or a compiled module of the same name in the same folder.
/// Globs such as `tests/**` have them, too, but protect no new file that git ignores, such as `tests/helper/__init__.pyc`.
fn shadows(tests: &[String], code: &[&String]) -> Vec<String> {
    let own: BTreeSet<&String> = tests.iter().collect();
    let code: Vec<&String> = code.iter().copied().filter(|path| !own.contains(path)).collect();
    with_ends(tests.iter().filter_map(|path| path.strip_suffix(".py")), &SHADOWS, &code)
}

/// Returns globs of what Node loads in place of hidden scripts of TypeScript, and others whose ending is not `js`.
fn in_place_of_scripts(hidden: &[String], code: &[&String]) -> Vec<String> {
    let own: BTreeSet<&String> = hidden.iter().collect();
    let code: Vec<&String> = code.iter().copied().filter(|path| !own.contains(path)).collect();
    let scripts = hidden.iter().filter(|path| language::NODE.has(path) && !path.ends_with(".js"));
    with_ends(scripts.filter_map(|path| Some(path.rsplit_once('.')?.0)), &BEFORE_SCRIPTS, &code)
}

/// Returns globs of paths with each of some ends, unless code matches. The paths in a folder share globs.
fn with_ends<'a>(paths: impl Iterator<Item = &'a str>, ends: &[&str], code: &[&String]) -> Vec<String> {
    let mut folders: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for path in paths {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        folders.entry(folder).or_default().insert(escaped_glob(name));
    }
    let mut found = Vec::new();
    for (folder, names) in folders {
        let folder = if folder.is_empty() { String::new() } else { format!("{}/", escaped_glob(folder)) };
        for end in ends {
            let is_apart = |name: &&str| spares(&format!("{folder}{name}{end}"), code);
            let apart: Vec<&str> = names.iter().map(String::as_str).filter(is_apart).collect();
            found.extend(apart.chunks(MAX_NAMES).map(|names| match names {
                [name] => format!("{folder}{name}{end}"),
                several => format!("{folder}{{{}}}{end}", several.join(",")),
            }));
        }
    }
    found
}

/// Returns globs of the files with tests that only the names of their tests show, such as `checks/add.sh`: they are not hidden, so
/// they are restored before the tests run. A file of code that holds tests too is none. For Python, globs of what would be
/// imported in place of these files follow. `folder` is that of the runner, empty or with a slash at its end.
pub fn of_tests(
    runner: Runner,
    folder: &str,
    sorted: &CommitTests,
    change: &Change,
    patched: &[String],
) -> Vec<String> {
    let tests = sorted.fail_to_pass.iter().chain(&sorted.pass_to_pass);
    let found: BTreeSet<String> = tests
        .filter_map(|test| match left_out::guard(runner, folder, test, change, patched) {
            Guard::File(path) => Some(path),
            Guard::Hidden | Guard::None => None,
        })
        .collect();
    let files: Vec<String> = found.into_iter().collect();
    let more = shadows(&files, &code_of(change));
    files.iter().map(|path| escaped_glob(path)).chain(more).collect()
}

/// Returns globs of the data and the modules that only tests use, and of the folders of data that tests list, unless the patch
/// changes them.
pub fn of_helpers(change: &Change, patched: &[String]) -> Vec<String> {
    let files = change.protected.iter().filter(|path| !patched.contains(path)).map(|path| escaped_glob(path));
    let all_patched: Vec<&String> = patched.iter().collect();
    files.chain(change.folders.iter().filter(|glob| spares(glob, &all_patched)).cloned()).collect()
}

/// Returns globs of the files of the repository that a command names, itself or by its tools, unless the patch changes them. A
/// name may be relative to a folder that the command names, too. A tool may prefer another file to the one that it has.
pub fn named(command: &str, before: &Tree, patched: &[String]) -> Vec<String> {
    let words: Vec<&str> = command
        .split(|c: char| c.is_whitespace() || "'\";&|()<>=`".contains(c))
        .map(|word| word.trim_start_matches("./").trim_end_matches('/'))
        .filter(|word| !word.is_empty())
        .collect();
    let below = words.iter().filter(|word| before.has_folder(word)).map(|word| format!("{word}/"));
    let folders: Vec<String> = [String::new()].into_iter().chain(below).collect();
    let in_folders = |name: &str| folders.iter().map(|folder| format!("{folder}{name}")).collect::<Vec<String>>();
    let mut paths: Vec<String> =
        words.iter().flat_map(|word| in_folders(word)).filter(|path| before.has(path)).collect();
    for files in words.iter().map(|word| tools::files(word)) {
        for folder in &folders {
            let all: Vec<String> = files.iter().map(|file| format!("{folder}{file}")).collect();
            if all.iter().any(|path| before.has(path)) {
                paths.extend(all);
            }
        }
    }
    let mut found: Vec<String> = Vec::new();
    for path in paths.iter().filter(|path| !patched.contains(path)) {
        let glob = escaped_glob(path);
        if !found.contains(&glob) {
            found.push(glob);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_command_names_are_protected() {
        let tree = tree(&["run.sh", "ci/test.sh", "Makefile", "package.json", "sub/Makefile", "src/a.c"]);
        for (command, files) in [
            ("./run.sh", &["run.sh"][..]),
            ("sh ci/test.sh --all", &["ci/test.sh"]),
            // GNU make prefers another name if there is such a file.
            ("CI=1 make test", &["Makefile", "makefile", "GNUmakefile"]),
            ("npm test && ./run.sh", &["run.sh", "package.json"]),
            ("cd ci && ./test.sh", &["ci/test.sh"]),
            (
                "make -C sub test",
                &["Makefile", "makefile", "GNUmakefile", "sub/Makefile", "sub/makefile", "sub/GNUmakefile"],
            ),
            ("gulp test", &[]),
            ("cargo test", &[]),
        ] {
            assert_eq!(named(command, &tree, &[]), files, "{command}");
        }
        assert_eq!(named("./run.sh", &tree, &["run.sh".to_owned()]), Vec::<String>::new());
        let tree = self::tree(&["ci/[fast].sh"]);
        assert_eq!(named("sh ci/[fast].sh", &tree, &[]), [r"ci/\[fast\].sh"]);
    }

    fn change(tree: &Tree, test: &str) -> Change {
        let (before, after) = (tree.clone(), tree.clone());
        Change { before, after, changed_tests: vec![test.to_owned()], ..Change::default() }
    }

    fn tree(files: &[&str]) -> Tree {
        Tree { files: files.iter().map(|path| (*path).to_owned()).collect(), ..Tree::default() }
    }

    #[test]
    fn the_files_of_a_language_and_its_folders_are_protected() {
        let tree = tree(&["calc.py", "tests/test_calc.py", "pytest.ini"]);
        let found = globs(&change(&tree, "tests/test_calc.py"), &[], Runner::Given);
        let is_protected = |path: &str| found.iter().any(|glob| glob.parse::<PathGlob>().unwrap().is_match(path));
        for path in [
            "test_aaa.py",
            "conftest.py",
            "pkg/conftest.py",
            "tests/test_calc/__init__.py",
            "pytest.ini",
            ".pytest.ini",
            "sub/pytest.toml",
            ".pytest.toml",
            "sub/setup.cfg",
            "src/sitecustomize.py",
            "src/sitecustomize.pyc",
            "src/sitecustomize.cpython-311-x86_64-linux-gnu.so",
            "src/sitecustomize/__init__.py",
            "usercustomize/__init__.py",
            "usercustomize.py",
            "src/evil.egg-info/entry_points.txt",
            "src/evil-1.0.Dist-Info/entry_points.txt",
            "evil.EGG-INFO/entry_points.txt",
            "a.pth",
        ] {
            assert!(is_protected(path), "{path}");
        }
        assert!(!is_protected("src/mysitecustomize.py") && !is_protected("src/info/entry_points.txt"));
        assert!(!is_protected("calc.py") && !is_protected("latest.py") && !is_protected("calc.test.js"));
    }

    #[test]
    fn what_would_replace_an_installed_module_that_tests_import_is_protected() {
        let tree = tree(&["src/calc/__init__.py", "tests/test_calc.py", "tests/helpers.py"]);
        let text = "import json, os.path as p\nfrom testfixtures import compare\nfrom calc import add\nfrom .x import y\n\
                    from helpers import z\n    import decimal\n";
        let texts = vec![("tests/test_calc.py".to_owned(), text.to_owned())];
        let change = Change { python_texts: texts, ..change(&tree, "tests/test_calc.py") };
        let found = globs(&change, &[], Runner::Pytest);
        let is_protected = |path: &str| found.iter().any(|glob| glob.parse::<PathGlob>().unwrap().is_match(path));
        for path in [
            "testfixtures.py",
            "src/testfixtures/__init__.py",
            "testfixtures/deep/compare.so",
            "decimal.py",
            "os.pyc",
            "os.cpython-311-x86_64-linux-gnu.so",
            "src/json.py",
        ] {
            assert!(is_protected(path), "{path}: {found:?}");
        }
        let data = ["json/a.json", "json.conf", "src/os/page.html", "decimal.txt"];
        for path in ["calc.py", "src/calc/more.py", "helpers.py", "y.py", "src/add.py"].iter().chain(&data) {
            assert!(!is_protected(path), "{path}: {found:?}");
        }
    }

    #[test]
    fn what_python_imports_in_place_of_a_hidden_test_is_protected() {
        let tree = tree(&["calc.py", "checks/deep.py", "checks/deep.json", "checks/deep/code.py", "test_calc.py"]);
        let hidden = ["checks/deep.py", "conftest.py", "test_calc.py", "tests/test_a.py"].map(str::to_owned);
        let change = Change { hidden: hidden.to_vec(), ..change(&tree, "test_calc.py") };
        let found = globs(&change, &[], Runner::Pytest);
        let packages = "{conftest,test_calc}/**/{__init__,__init__.*,*}.{py,pyc,pyd,so}";
        assert!(found.contains(&packages.to_owned()), "{found:?}");
        let is_protected = |path: &str| parsed(&found).iter().any(|glob| glob.is_match(path));
        for path in
            ["test_calc/__init__.py", "test_calc.so", "test_calc.cpython-311-x86_64-linux-gnu.so", "conftest.pyc"]
        {
            assert!(is_protected(path), "{path}: {found:?}");
        }
        // Code of the repository, and code that only begins with the same name.
        for path in ["checks/deep/code.py", "checks/deep.json", "test_calculator/a.py"] {
            assert!(!is_protected(path), "{path}: {found:?}");
        }
        assert_eq!(guarded(&change).last().map(String::as_str), Some("checks/deep.py"));
        let odd = Change { hidden: vec!["checks/[a].py".to_owned()], ..change.clone() };
        assert_eq!(guarded(&odd).last().map(String::as_str), Some("checks/[a].py"));
        let checks = CommitTests { pass_to_pass: vec!["checks/b.py::test_b".to_owned()], ..CommitTests::default() };
        let tree = self::tree(&["checks/b.py", "tests/a.py"]);
        let found = of_tests(Runner::Pytest, "", &checks, &self::change(&tree, "tests/a.py"), &[]);
        let shadows = SHADOWS.map(|end| format!("checks/b{end}"));
        assert_eq!(found, [&["checks/b.py".to_owned()][..], &shadows].concat());
    }

    #[test]
    fn what_is_loaded_in_place_of_a_hidden_file_is_named_in_case_git_ignores_it() {
        let names = |globs: &[String], wanted: &[&str]| {
            let is_there = |it: &&str| globs.iter().any(|glob| glob == it);
            assert!(wanted.iter().all(is_there), "{globs:?}");
        };
        let hidden = ["tests/helper.py", "tests/test_a.py"].map(str::to_owned).to_vec();
        let change_of =
            |files: &[&str], test: &str, hidden: Vec<String>| Change { hidden, ..change(&tree(files), test) };
        let python = change_of(&["calc.py", "tests/helper.py", "tests/test_a.py"], "tests/test_a.py", hidden);
        let shadows = SHADOWS.map(|end| format!("tests/{{helper,test_a}}{end}"));
        names(&globs(&python, &[], Runner::Unittest), &shadows.each_ref().map(String::as_str));
        let hidden = ["test/a.test.ts", "test/helper.ts", "test/old.js"].map(str::to_owned).to_vec();
        let files = ["lib/calc.ts", "test/a.test.ts", "test/helper.ts", "test/old.js"];
        let found = globs(&change_of(&files, "test/a.test.ts", hidden), &[], Runner::Node);
        let replacing = BEFORE_SCRIPTS.map(|end| format!("test/{{a.test,helper}}{end}"));
        names(&found, &replacing.each_ref().map(String::as_str));
        let many: Vec<String> = (0..=MAX_NAMES).map(|n| format!("tests/test_{n}.py")).collect();
        assert_eq!(super::shadows(&many, &[]).len(), 2 * SHADOWS.len());
    }

    #[test]
    fn a_commit_that_changes_only_data_of_tests_has_the_protection_of_its_runner() {
        let tree = tree(&["calc.py", "tests/data.json", "tests/test_calc.py"]);
        let found = globs(&change(&tree, "tests/data.json"), &[], Runner::Pytest);
        assert!(found.contains(&"**/{test,tests}.py".to_owned()), "{found:?}");
        assert!(globs(&change(&tree, "tests/data.json"), &[], Runner::Given).is_empty());
    }

    #[test]
    fn each_file_that_node_takes_for_a_test_is_protected() {
        let found = globs(&change(&tree(&["lib/calc.js"]), "test/calc.test.js"), &[], Runner::Node);
        let is_protected = |path: &str| parsed(&found).iter().any(|glob| glob.is_match(path));
        for name in ["test-a", "test", "a.test", "a-test", "a_test", "test/a"] {
            for end in ["js", "cjs", "mjs", "ts", "cts", "mts"] {
                assert!(is_protected(&format!("zz/{name}.{end}")), "{name}.{end}");
            }
        }
    }

    #[test]
    fn folders_and_names_that_hold_tests_in_the_repository_are_protected() {
        let has = |files: &[&str], runner: Runner, path: &str| {
            let test = files.last().copied().unwrap_or_default();
            parsed(&globs(&change(&tree(files), test), &[], runner)).iter().any(|glob| glob.is_match(path))
        };
        let of_jasmine = ["lib/calc.js", "packages/a/spec/helpers/all.js", "spec/calcSpec.js"];
        for path in ["spec/own.js", "packages/b/spec/ownSpec.js", "spec/helpers/own.js"] {
            assert!(has(&of_jasmine, Runner::Npm, path), "{path}");
        }
        // Code may have such a name: `querySpec.js`. A folder elsewhere is that of tests only if there are several.
        assert!(!has(&of_jasmine, Runner::Npm, "lib/ownSpec.js"));
        assert!(!has(&["lib/calc.js", "spec/calcSpec.js"], Runner::Npm, "lib/spec/own.js"));
        let plain = ["lib/calc.js", "test/e2e/own.js", "test/fixtures/a.js", "test/calc.js"];
        for path in ["lib/ownSpec.js", "spec/own.js", "e2e/own.js", "lib/fixtures/own.js"] {
            assert!(!has(&plain, Runner::Node, path), "{path}");
        }
        for (files, path) in [
            (["lib/calc.js", "e2e/calc.js"], "e2e/deep/own.js"),
            (["lib/calc.js", "lib/__test__/calc.js"], "lib/__test__/own.js"),
            (["bin/calc", "spec/calc.sh"], "spec/own.sh"),
        ] {
            assert!(has(&files, Runner::Given, path), "{path}");
        }
        // A folder of the same name holds code.
        let of_code = ["lib/spec/parse.js", "packages/a/spec/parse.js"];
        for (path, is) in [("lib/spec/own.js", false), ("packages/a/spec/own.js", true), ("packages/a/own.js", false)] {
            assert_eq!(has(&of_code, Runner::Node, path), is, "{path}");
        }
        // So does one with data, which a patch may change.
        let of_data = ["lib/spec/usage.txt", "packages/a/spec/parse.js", "spec/calc.js"];
        for (path, is) in [("lib/spec/usage.txt", false), ("packages/a/spec/own.js", true), ("spec/own.js", true)] {
            assert_eq!(has(&of_data, Runner::Node, path), is, "{path}");
        }
        let data = "lib/test/usage.txt".to_owned();
        let change = change(&tree(&["lib/calc.js", data.as_str(), "test/calc.js"]), "test/calc.js");
        let found = parsed(&globs(&change, std::slice::from_ref(&data), Runner::Node));
        let is_protected = |path: &str| found.iter().any(|glob| glob.is_match(path));
        assert!(!is_protected(&data) && is_protected("test/own.js"));
        let of_code = ["lib/test/run.js", "packages/a/test/run.js"];
        assert!(has(&of_code, Runner::Node, "packages/a/test/own.js"));
        // Names of tests of Python have their file.
        assert!(!has(&["calc.py", "spec/calc_spec.py"], Runner::Pytest, "spec/own.py"));
    }

    #[test]
    fn the_lock_files_of_rust_are_protected_unless_an_agent_may_change_them_or_a_manifest() {
        let tree = tree(&["Cargo.lock", "Cargo.toml", "fuzz/Cargo.lock", "src/lib.rs", "tests/all.rs"]);
        let has = |patched: &str, runner: Runner| {
            globs(&change(&tree, "tests/all.rs"), &[patched.to_owned()], runner).contains(&LOCKS_OF_RUST.to_owned())
        };
        assert!(has("src/lib.rs", Runner::Cargo) && !has("src/lib.rs", Runner::Given));
        for path in ["Cargo.lock", "Cargo.toml", "fuzz/Cargo.lock"] {
            assert!(!has(path, Runner::Cargo), "{path}");
        }
        let of_tests = globs(&change(&tree, "tests/kit/Cargo.toml"), &[], Runner::Cargo);
        assert!(!of_tests.contains(&LOCKS_OF_RUST.to_owned()), "{of_tests:?}");
    }

    #[test]
    fn the_files_of_tools_that_a_script_starts_are_protected_or_settings_of_the_patch() {
        let mut tree = tree(&["Makefile", "lib/calc.js", "package.json", "test/a.js"]);
        tree.texts.insert("package.json".to_owned(), r#"{"scripts": {"test": "make test"}}"#.to_owned());
        let patch = b"diff --git a/Makefile b/Makefile\ndiff --git a/lib/calc.js b/lib/calc.js\n".to_vec();
        let change = Change { patch, ..change(&tree, "test/a.js") };
        let has = |patched: &str, runner: Runner, path: &str| {
            parsed(&globs(&change, &[patched.to_owned()], runner)).iter().any(|glob| glob.is_match(path))
        };
        assert!(["Makefile", "GNUmakefile"].iter().all(|path| has("lib/calc.js", Runner::Npm, path)));
        assert!(!has("Makefile", Runner::Npm, "Makefile") && !has("lib/calc.js", Runner::Mocha, "Makefile"));
        assert_eq!(settings_in_patch(&change, Runner::Npm, None), ["Makefile"]);
        assert_eq!(settings_in_patch(&change, Runner::Mocha, None), Vec::<String>::new());
    }

    #[test]
    fn settings_that_runners_of_node_find_by_themselves_are_protected() {
        let tree = tree(&["lib/calc.js", "tsconfig.json", "src/__mocks__/api.js", "test/calc.test.js"]);
        let of = |patched: &[String]| globs(&change(&tree, "test/calc.test.js"), patched, Runner::Jest);
        let has = |globs: &[String], path: &str| parsed(globs).iter().any(|glob| glob.is_match(path));
        let found = of(&[]);
        for path in [
            "vitest.projects.mjs",
            "packages/a/vitest.workspace.json",
            "postcss.config.cjs",
            ".postcssrc",
            ".postcssrc.json",
            "__mocks__/chai.js",
            "src/__mocks__/@scope/chai.js",
            "tsconfig.json",
            "packages/a/jsconfig.json",
            "tsconfig.test.json",
            ".swcrc",
            ".nycrc.json",
            ".c8rc.json",
            ".taprc",
            "karma.conf.cjs",
        ] {
            assert!(has(&found, path), "{path}: {found:?}");
        }
        // Another solution may have to change it, too.
        let found = of(&["tsconfig.json".to_owned()]);
        assert!(!has(&found, "tsconfig.json") && has(&found, "tsconfig.test.json"), "{found:?}");
    }

    #[test]
    fn settings_around_a_package_are_protected_in_each_folder() {
        for (package, packages) in [(Some("libs/rs/calc"), vec![]), (None, vec![".", "libs/rs/calc", "web"])] {
            let files = ["libs/rs/calc/src/lib.rs", "libs/rs/calc/tests/all.rs", "libs/rs/calc/tool/test.py"];
            let change = Change {
                package: package.map(|folder| package::Package { folder: folder.to_owned(), ..Default::default() }),
                packages: packages.iter().map(|folder| (*folder).to_owned()).collect(),
                ..change(&tree(&files), "libs/rs/calc/tests/all.rs")
            };
            for (runner, paths) in [
                (
                    Runner::Cargo,
                    &[
                        ".cargo/config.toml",
                        "libs/.cargo/config.toml",
                        "libs/rs/.cargo/config",
                        "libs/rs/calc/.cargo/a",
                    ][..],
                ),
                (Runner::Go, &["go.work", "libs/go.work", "libs/rs/go.work.sum", "libs/rs/calc/go.work"]),
                (
                    Runner::Maven,
                    &[".mvn/maven.config", "libs/.mvn/maven.config", "libs/rs/.mvn/jvm.config", "libs/gradle/a.toml"],
                ),
                (Runner::Pytest, &["libs/conftest.py", "libs/rs/pytest.ini", "libs/rs/calc/tool/conftest.py"]),
                (
                    Runner::Jest,
                    &["libs/.npmrc", "libs/package.json", "libs/tsconfig.json", "libs/node_modules/chai/index.js"],
                ),
            ] {
                let found = parsed(&globs(&change, &[], runner));
                for path in paths {
                    assert!(found.iter().any(|glob| glob.is_match(path)), "{package:?} {runner:?}: {path}");
                }
            }
            let found = globs(&change, &[], Runner::Pytest);
            assert!(found.contains(&"libs/pytest.ini".to_owned()), "{found:?}");
            assert!(!found.iter().any(|glob| glob.starts_with("./")), "{found:?}");
        }
    }

    #[test]
    fn code_is_not_protected() {
        // An agent may add a module of tests to a crate.
        let rust = tree(&["Cargo.toml", "crates/a/Cargo.toml", "src/lib.rs", "tests/all.rs"]);
        let found = globs(&change(&rust, "tests/all.rs"), &[], Runner::Given);
        let is_protected = |path: &str| found.iter().any(|glob| glob.parse::<PathGlob>().unwrap().is_match(path));
        assert!(is_protected("tests/more.rs") && is_protected(".cargo/config.toml"));
        let settings = ["Cargo.toml", "crates/a/Cargo.toml", "rust-toolchain", "rust-toolchain.toml"];
        let of_insta = [".config/insta.yaml", "insta.yaml", ".insta.yaml", "crates/a/.config/insta.yaml"];
        let of_nextest = [".config/nextest.toml"];
        for path in settings.iter().chain(&of_insta).chain(&of_nextest).chain(&["build.rs", "crates/a/build.rs"]) {
            assert!(is_protected(path), "{path}");
        }
        assert!(!is_protected("src/tests.rs") && !is_protected("src/tests/mod.rs"));
        // A glob that applies to code of the repository is left out.
        let of = |files: &[&str]| globs(&change(&tree(files), "a.test.js"), &[], Runner::Given);
        let has = |globs: &[String], path: &str| globs.iter().any(|it| it.parse::<PathGlob>().unwrap().is_match(path));
        assert!(has(&of(&["index.js"]), "test-runner.js") && !has(&of(&["test-runner.js"]), "test-runner.js"));
        // Below the sources, a folder `test` may hold code. The one at the top is protected.
        let found = of(&["src/test/tool.js"]);
        assert!(!has(&found, "src/test/tool.js") && has(&found, "test/more.js"), "{found:?}");
    }

    #[test]
    fn the_build_scripts_of_cargo_are_protected_and_a_module_called_build_is_not() {
        for (manifest, patched, expected) in [
            ("[package]\nname = 'a'\n", "src/lib.rs", &["build.rs"][..]),
            ("[package]\nname = 'a'\n", "build.rs", &[]),
            ("[package]\nbuild = 'tools/gen.rs'\n", "src/lib.rs", &["tools/gen.rs"]),
            ("[package]\nbuild = './gen.rs'\n", "src/lib.rs", &["gen.rs"]),
            ("[package]\nbuild = false\n", "src/lib.rs", &[]),
        ] {
            let mut tree = tree(&["Cargo.toml", "src/lib.rs", "tests/all.rs"]);
            tree.texts.insert("Cargo.toml".to_owned(), manifest.to_owned());
            let found = globs(&change(&tree, "tests/all.rs"), &[patched.to_owned()], Runner::Cargo);
            let paths = ["build.rs", "gen.rs", "src/build.rs", "src/commands/build.rs", "tools/gen.rs"];
            let is_protected = |path: &&str| parsed(&found).iter().any(|glob| glob.is_match(path));
            assert_eq!(paths.into_iter().filter(is_protected).collect::<Vec<_>>(), expected, "{manifest}");
        }
    }

    #[test]
    fn the_tests_of_each_package_of_rust_are_protected() {
        let files = ["Cargo.toml", "core/Cargo.toml", "core/src/lib.rs", "core/tests/add.rs", "crates/a/Cargo.toml"];
        let mut change = change(&tree(&files), "core/tests/add.rs");
        change.after.files.insert("deep/util/Cargo.toml".to_owned());
        let found = globs(&change, &[], Runner::Cargo);
        let has = |path: &str| parsed(&found).iter().any(|glob| glob.is_match(path));
        for path in ["tests/own.rs", "core/tests/own/main.rs", "crates/a/tests/own.rs", "deep/util/tests/own.rs"] {
            assert!(has(path), "{path}: {found:?}");
        }
        for path in ["core/src/tests.rs", "core/src/tests/own.rs", "deep/tests/own.rs"] {
            assert!(!has(path), "{path}: {found:?}");
        }
        assert!(!found.contains(&"crates/a/tests/**".to_owned()), "{found:?}");
    }

    #[test]
    fn tests_of_rust_are_not_protected_if_an_agent_may_change_a_manifest_that_names_them() {
        let tree = tree(&["Cargo.toml", "core/Cargo.toml", "core/src/lib.rs", "core/tests/add.rs", "tests/all.rs"]);
        let hidden = ["core/tests/add.rs", "tests/all.rs"].map(str::to_owned);
        let of = |hidden: &[String], patched: &str| {
            let change = Change { hidden: hidden.to_vec(), ..change(&tree, "tests/all.rs") };
            let found = parsed(&globs(&change, &[patched.to_owned()], Runner::Cargo));
            ["tests/own.rs", "core/tests/own.rs", "crates/a/tests/own.rs"]
                .map(|path| found.iter().any(|glob| glob.is_match(path)))
        };
        assert_eq!(of(&hidden, "core/src/lib.rs"), [true; 3]);
        assert_eq!(of(&hidden, "Cargo.toml"), [false; 3]);
        assert_eq!(of(&hidden, "core/Cargo.toml"), [false; 3]);
        // If not all tests are hidden, the globs alone protect the others.
        assert_eq!(of(&hidden[..1], "Cargo.toml"), [true, false, false]);
    }

    #[test]
    fn settings_in_a_patch_are_those_of_the_tests_and_of_the_command() {
        let patch = |paths: &[&str]| -> Vec<u8> {
            paths.iter().flat_map(|path| format!("diff --git a/{path} b/{path}\n").into_bytes()).collect()
        };
        let tree = tree(&["Cargo.toml", "core/Cargo.toml", "build.rs", "run.sh", "src/lib.rs", "tests/all.rs"]);
        let paths = ["Cargo.toml", "build.rs", "core/Cargo.toml", "package.json", "run.sh", "src/lib.rs"];
        let change = Change { patch: patch(&paths), ..change(&tree, "tests/all.rs") };
        assert_eq!(settings_in_patch(&change, Runner::Cargo, None), ["Cargo.toml", "core/Cargo.toml"]);
        let found = settings_in_patch(&change, Runner::Given, Some("sh run.sh"));
        assert_eq!(found, ["Cargo.toml", "core/Cargo.toml", "run.sh"]);
    }

    #[test]
    fn a_folder_of_perl_tests_is_protected() {
        let found = globs(&change(&tree(&["lib/a.pm", "t/a.t"]), "t/a.t"), &[], Runner::Given);
        let has = |path: &str| found.iter().any(|it| it.parse::<PathGlob>().unwrap().is_match(path));
        assert!(has("t/b.t") && has("t/lib/helper.pm") && has(".proverc") && !has("lib/a.pm"), "{found:?}");
    }

    #[test]
    fn files_that_settings_of_node_load_are_protected_unless_the_patch_changes_them() {
        let mut tree = tree(&["package.json", "support/setup.js", "lib/calc.js", "test/a.test.js"]);
        let package = r#"{"scripts": {"test": "node --import ./support/setup.js --test"}}"#;
        tree.texts.insert("package.json".to_owned(), package.to_owned());
        let change = change(&tree, "test/a.test.js");
        let has = |patched: &str| {
            globs(&change, &[patched.to_owned()], Runner::Given).contains(&"support/setup.js".to_owned())
        };
        assert!(has("lib/calc.js") && !has("support/setup.js"));
    }

    #[test]
    fn files_that_the_names_of_tests_show_are_protected() {
        let tree = tree(&["checks/add.sh", "checks/sub.sh", "src/calc.py", "tests/a.sh"]);
        let names = ["checks/add.sh", "checks/sub.sh: usage", "src/calc.py::src.calc.add", "tests/a.sh", "adds"];
        let sorted = CommitTests { pass_to_pass: names.map(str::to_owned).to_vec(), ..CommitTests::default() };
        let change = change(&tree, "tests/a.sh");
        assert_eq!(of_tests(Runner::Given, "", &sorted, &change, &[]), ["checks/add.sh", "checks/sub.sh"]);
        assert_eq!(of_tests(Runner::Given, "", &sorted, &change, &["checks/sub.sh".to_owned()]), ["checks/add.sh"]);
        assert_eq!(of_tests(Runner::Cargo, "", &sorted, &change, &[]), Vec::<String>::new());
    }

    #[test]
    fn names_with_signs_of_a_glob_are_escaped_and_not_left_out() {
        let rust = tree(&["Cargo.toml", "[core]/Cargo.toml", "[core]/tests/add.rs"]);
        let found = globs(&change(&rust, "[core]/tests/add.rs"), &[], Runner::Cargo);
        assert!(
            [r"\[core\]/tests/**", r"\[core\]/build.rs"].iter().all(|glob| found.iter().any(|it| it == glob)),
            "{found:?}"
        );
        let mut node = tree(&["package.json", "support/set{up}.js", "test/a.test.js"]);
        let package = r#"{"scripts": {"test": "node --import ./support/set{up}.js --test"}}"#;
        node.texts.insert("package.json".to_owned(), package.to_owned());
        let found = globs(&change(&node, "test/a.test.js"), &[], Runner::Node);
        assert!(found.iter().any(|glob| glob == r"support/set\{up\}.js"), "{found:?}");
        let python = tree(&["checks/a[1].py", "tests/a.py"]);
        let sorted = CommitTests { pass_to_pass: vec!["checks/a[1].py::test_a".to_owned()], ..CommitTests::default() };
        let found = of_tests(Runner::Pytest, "", &sorted, &change(&python, "tests/a.py"), &[]);
        let shadows = SHADOWS.map(|end| format!(r"checks/a\[1\]{end}"));
        assert_eq!(found, [&[r"checks/a\[1\].py".to_owned()][..], &shadows].concat());
        let protected = vec!["golden/out[1].json".to_owned()];
        let change = Change { protected, ..change(&python, "tests/a.py") };
        assert_eq!(of_helpers(&change, &[]), [r"golden/out\[1\].json"]);
        assert_eq!(of_helpers(&change, &["golden/out[1].json".to_owned()]), Vec::<String>::new());
    }

    #[test]
    fn settings_are_protected_unless_the_patch_changes_them() {
        let tree = tree(&["jest.config.js", "package.json", "a.test.js"]);
        let found = |patched: &[&str]| {
            let patched: Vec<String> = patched.iter().map(|path| (*path).to_owned()).collect();
            globs(&change(&tree, "a.test.js"), &patched, Runner::Given)
        };
        let has = |globs: &[String], path: &str| globs.iter().any(|it| it.parse::<PathGlob>().unwrap().is_match(path));
        for path in ["jest.config.js", "package.json", "sub/package.json", ".npmrc", "node_modules/.bin/jest"] {
            assert!(has(&found(&["index.js"]), path), "{path}");
        }
        let without = found(&["package.json"]);
        assert!(!has(&without, "package.json") && has(&without, "jest.config.js"));
    }
}
