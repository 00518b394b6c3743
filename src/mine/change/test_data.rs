//! Finds the data that the tests of a commit read and its code does not, such as the expected outputs in `golden`.

use std::collections::{BTreeMap, BTreeSet};

use super::globs::{Globs, signs};
use super::programs::of_tools;
use super::settings_text::{is_settings, names_place};
use super::unquoted::{embedded_files, is_of_product, is_of_tools, of_commands, of_product, with_embedded};
use super::{Entry, MAX_SEARCHED_WORDS, Mode, all_tests, tree};
use crate::mine::history::Commit;
use crate::mine::language::{Language, NODE};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{self, Role, Roles, folder, has_test_name, name, place};
use crate::mine::runner::Tree;
use crate::values::{PathGlob, escaped_glob};

/// The maximum number of bytes of the name of a file.
const MAX_NAME_BYTES: usize = 255;
/// Signs of tests that list a folder.
const LISTS: [&str; 13] = [
    "Dir.",
    "ReadDir",
    "WalkDir",
    "embed.FS",
    "glob",
    "include_dir",
    "iterdir",
    "listFiles",
    "listdir",
    "opendir",
    "read_dir",
    "readdir",
    "walk",
];
/// The code before the name of a module that is imported.
const IMPORTS: [&str; 4] = ["from", "import", "import(", "require("];

/// The data of the tests of a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestData {
    /// The files that the commit changes or adds, with the other data in their folders.
    pub(super) changed: BTreeSet<String>,
    /// The files that the commit does not change.
    pub(super) kept: BTreeSet<String>,
    /// Files that the commit changes, that tests name, and that may be code: they have the ending of a language that the
    /// project compiles.
    pub(super) doubtful: Vec<String>,
    /// Files that tests name and that code may read without their names, and files that tests name and that are code or
    /// settings. Those that the commit changes stay in its patch.
    pub(super) open: BTreeSet<String>,
    /// Globs of folders of such data that tests may list: they would read a further file, too.
    pub(super) folders: BTreeSet<String>,
}

/// Returns the data of the tests: files that a file of tests names, or whose folder it names, and that no file of code does,
/// if they lie apart from the code. An agent that had to write such a file, or that changes one, could write what its code
/// returns.
pub(super) async fn find(
    repository: &Repository,
    commit: &Commit,
    entries: &BTreeMap<String, Entry>,
    before: &BTreeMap<String, Entry>,
    roles: &Roles,
    linked: &BTreeSet<String>,
) -> Result<TestData, RepositoryError> {
    let tests = || commit.files.iter().map(|file| file.path.as_str()).filter(|path| roles.of(path) == Role::Test);
    let named: Vec<&str> = tests().filter(|path| has_test_name(path)).collect();
    let own: Vec<&str> = if named.is_empty() { tests().collect() } else { named };
    let is_program = |(path, entry): (&String, &Entry)| (entry.mode != Mode::File).then(|| path.clone());
    let programs = entries.iter().filter_map(is_program).collect();
    let (commands, test_commands) = (String::new(), String::new());
    let embedded = BTreeSet::new();
    let mut kinds = Kinds { own: &own, programs, roles, linked, are_listed: false, commands, test_commands, embedded };
    let is_small = all_tests(entries, roles).is_some();
    let is_changed = |path: &str| commit.files.iter().any(|file| file.path == path);
    let read = tree(repository, entries, |path| kinds.is_test(path) && (is_small || is_changed(path))).await?;
    let read = with_embedded(read, |_| true);
    let test_commands = of_commands(&read, |_| true);
    kinds.are_listed = read.texts.values().any(|text| LISTS.iter().any(|sign| text.contains(sign)));
    let may_be = |path: &str| !matches!(kinds.of(path, entries.keys()), Kind::Code | Kind::Aside | Kind::Other);
    // Tests name many files that they make. Modules of Node are looked for elsewhere.
    let may_be_run = |path: &str| {
        let kind = kinds.of(path, entries.keys());
        matches!(kind, Kind::Code | Kind::Compiled | Kind::Aside) && !NODE.has(path)
    };
    let with_package = tree(repository, entries, |path| path == "package.json").await?;
    let starts = read.texts.iter().filter(|(path, _)| is_changed(path) || !has_test_name(path));
    let tools = of_tools(starts.clone(), &with_package);
    let named_now: BTreeSet<&str> = starts.flat_map(|(_, text)| words(text)).collect();
    let words: BTreeSet<&str> = read.texts.values().chain([&test_commands]).flat_map(|text| words(text)).collect();
    let is_named = |path: &str| words.contains(name(path)) || place(path).is_some_and(|place| words.contains(place));
    let is_kept = |path: &str, entry: &Entry| before.get(path).is_some_and(|old| old.object == entry.object);
    let changed: Vec<&str> = commit
        .files
        .iter()
        .map(|file| file.path.as_str())
        .filter(|path| entries.contains_key(*path) && (!is_small || is_named(path)) && may_be(path))
        .take(MAX_SEARCHED_WORDS)
        .collect();
    let kept: Vec<&str> = entries
        .iter()
        .filter(|(path, entry)| is_kept(path, entry) && is_named(path) && may_be(path))
        .map(|(path, _)| path.as_str())
        .take(MAX_SEARCHED_WORDS)
        .collect();
    let run: Vec<&str> = entries
        .iter()
        .filter(|(path, entry)| is_kept(path, entry) && named_now.contains(name(path)))
        .map(|(path, _)| path.as_str())
        .filter(|path| place(path).is_none_or(|place| named_now.contains(place)) && may_be_run(path))
        .take(MAX_SEARCHED_WORDS)
        .collect();
    if changed.is_empty() && kept.is_empty() && run.is_empty() {
        return Ok(TestData { open: tools, ..TestData::default() });
    }
    let searched = changed.iter().chain(&kept).chain(&run);
    let endings: BTreeSet<String> = searched.clone().flat_map(|path| signs(name(path))).collect();
    // The names of the files, and of all folders around them.
    let mut searched: BTreeSet<&str> =
        searched.flat_map(|path| path.split('/')).filter(|part| !part.is_empty()).collect();
    searched.extend(endings.iter().map(String::as_str));
    searched.insert("//go:embed");
    let holders = repository.files_with(&commit.id, &searched).await?;
    let all = tree(repository, entries, |path| holders.contains(path)).await?;
    kinds.embedded = embedded_files(all.texts.iter().filter(|(path, _)| !kinds.is_test(path)), all.files.iter());
    let all = with_embedded(all, |path| kinds.is_test(path));
    // Another script is one with which people work on the project.
    let is_run = |path: &str| words.contains(name(path)) && !is_of_tools(path);
    let is_patched = |path: &str| is_changed(path) && roles.of(path) == Role::Code;
    kinds.commands =
        of_product(&all, |path| !kinds.is_test(path) && (is_patched(path) || is_of_product(path) || is_run(path)));
    kinds.test_commands = of_commands(&all, |path| kinds.is_test(path));
    let mut found = kinds.of_tests(&changed, &kept, &all);
    found.open.extend(tools);
    found.open.extend(run.iter().filter(|path| kinds.is_named(path, &all).0).map(|path| (*path).to_owned()));
    Ok(found)
}

/// The possible kind of a file that tests name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Data by its ending.
    Data,
    /// A file without the ending of a language, such as `x.sql`. It is data if no other file names it.
    Unknown,
    /// A source file of a language that neither the tests have nor the project compiles. It is data if only tests name it.
    Source,
    /// A source file of a language that the project compiles, perhaps without naming each file.
    Compiled,
    /// A source file of the language of the tests, or a program.
    Code,
    /// A setting at the top, or a page of documentation.
    Aside,
    /// A test, a manifest, or a file about the project.
    Other,
}

/// The facts that decide about the kinds of files.
struct Kinds<'a> {
    /// The tests whose language the project has.
    own: &'a [&'a str],
    /// Files that can be started, and links.
    programs: BTreeSet<String>,
    roles: &'a Roles,
    /// The files behind links among the tests.
    linked: &'a BTreeSet<String>,
    /// True if a test lists a folder.
    are_listed: bool,
    /// The words within quotes by which scripts of the product may name files.
    commands: String,
    /// The same words of scripts among the tests. They name data, but also the programs that are tested.
    test_commands: String,
    /// The files that code of Go embeds.
    embedded: BTreeSet<String>,
}

impl Kinds<'_> {
    fn is_test(&self, path: &str) -> bool {
        self.roles.of(path) == Role::Test || self.linked.contains(path)
    }

    fn of<'b>(&self, path: &str, mut files: impl Iterator<Item = &'b String>) -> Kind {
        let role = self.roles.of(path);
        if self.is_test(path) || role == Role::Dependencies {
            return Kind::Other;
        }
        if role == Role::Other && !role::may_be_data(path) {
            return if role::is_aside(path) { Kind::Aside } else { Kind::Other };
        }
        if role != Role::Other && role::is_data(path) {
            return Kind::Data;
        }
        match Language::of(path) {
            _ if self.programs.contains(path) => Kind::Code,
            None => Kind::Unknown,
            Some(language) if self.own.iter().any(|test| Language::of(test) == Some(language)) => Kind::Code,
            Some(language) if files.any(|file| language.is_built_by(file)) => Kind::Compiled,
            Some(_) => Kind::Source,
        }
    }

    /// Returns the files that are data of tests, among the files that the commit changes (`changed`) and the other
    /// files (`kept`). `tree` contains the texts of the files that may name such data.
    fn of_tests(&self, changed: &[&str], kept: &[&str], tree: &Tree) -> TestData {
        let mut found = TestData::default();
        let programs = tree.texts.iter().filter(|(file, _)| self.is_program(file)).map(|(_, text)| text.as_str());
        let globs = Globs::of(programs.chain([self.commands.as_str()]));
        for path in changed {
            let (is_named, is_place_named) = self.is_named(path, tree);
            let kind = self.of(path, tree.files.iter());
            let is_data = match kind {
                Kind::Data | Kind::Unknown => is_named || is_place_named,
                Kind::Source => is_named,
                Kind::Compiled | Kind::Code | Kind::Aside | Kind::Other => false,
            };
            if kind == Kind::Compiled && is_named {
                found.doubtful.push((*path).to_owned());
            }
            if !is_data {
                continue;
            }
            if !self.is_apart(path, tree, &globs) {
                found.open.insert((*path).to_owned());
                continue;
            }
            found.changed.insert((*path).to_owned());
            if kind != Kind::Source && is_place_named {
                let beside = tree.files.iter().filter(|file| folder(file) == folder(path));
                let is_data = |file: &&String| {
                    let kind = self.of(file, tree.files.iter());
                    matches!(kind, Kind::Data | Kind::Unknown)
                        && self.is_named(file, tree).1
                        && self.is_apart(file, tree, &globs)
                };
                found.changed.extend(beside.filter(is_data).cloned());
            }
        }
        for path in kept.iter().filter(|path| !found.changed.contains(**path)) {
            let (is_named, is_place_named) = self.is_named(path, tree);
            let is_data = match self.of(path, tree.files.iter()) {
                Kind::Data | Kind::Unknown => is_named || is_place_named,
                Kind::Source => is_named,
                Kind::Compiled | Kind::Code | Kind::Aside | Kind::Other => false,
            };
            if is_data && self.is_apart(path, tree, &globs) {
                found.kept.insert((*path).to_owned());
            } else if is_data {
                found.open.insert((*path).to_owned());
            }
        }
        if self.are_listed {
            self.add_folders(&mut found, tree);
        }
        found
    }

    /// Adds globs of the folders of data that tests name. If a glob would fit other files, too, it is left open.
    fn add_folders(&self, found: &mut TestData, tree: &Tree) {
        let data: BTreeSet<&String> = found.changed.iter().chain(&found.kept).collect();
        let (mut folders, mut open) = (BTreeSet::new(), BTreeSet::new());
        for path in data.iter().filter(|path| self.is_named(path, tree).1) {
            let (folder, ending) = (folder(path), role::split(name(path)).1);
            let is_other = |file: &&String| {
                let is_aside = || matches!(self.of(file, tree.files.iter()), Kind::Aside | Kind::Other);
                !data.contains(file) && !is_aside()
            };
            let below = tree.files.range(folder.to_owned()..).take_while(|file| file.starts_with(folder));
            let others: Vec<&String> = below.filter(is_other).collect();
            let (around, end) = (escaped_glob(folder), escaped_glob(ending));
            let globs = [format!("{around}**"), format!("{around}**/*.{end}"), format!("{around}*.{end}")];
            let known = globs.iter().enumerate().filter(|(at, _)| *at == 0 || !ending.is_empty());
            let spares = |glob: &str, file: &str| glob.parse::<PathGlob>().is_ok_and(|glob| !glob.is_match(file));
            match known.map(|(_, glob)| glob).find(|glob| others.iter().all(|file| spares(glob, file))) {
                Some(glob) => folders.insert(glob.clone()),
                None => open.insert(format!("{folder}*")),
            };
        }
        found.folders = folders;
        found.open.extend(open);
    }

    /// Returns true if a file lies apart from the code, which would have to name it to read it: in or below a folder of tests
    /// without code, or in a folder that code neither names nor has around it, and that no settings name. No glob in code fits
    /// its name, and no script of the product names the file or its folder.
    fn is_apart(&self, path: &str, tree: &Tree, globs: &Globs) -> bool {
        let is_in_commands = |word: &str| names(&self.commands, word);
        if globs.fit(name(path)) || is_in_commands(name(path)) || place(path).is_some_and(is_in_commands) {
            return false;
        }
        let holds_code =
            |around: &str| tree.files.iter().any(|file| folder(file) == around && self.is_code(file, tree));
        let is_of_tests = |around: &str| {
            let holds_tests = tree.files.iter().any(|file| folder(file) == around && self.is_test(file));
            holds_tests && !tree.files.iter().any(|file| file.starts_with(around) && self.is_code(file, tree))
        };
        let programs =
            || tree.texts.iter().filter(move |(file, _)| self.is_program(file) && folder(file) != folder(path));
        let is_named = |part: &str| programs().any(|(_, text)| names_folder(text, part));
        // Each file is below the top.
        let folders = || path.match_indices('/').filter_map(move |(at, _)| path.get(..=at));
        let parts = || folder(path).split('/').filter(|part| !part.is_empty());
        let is_configured = |around: &str| {
            let settings = tree
                .texts
                .iter()
                .filter(|(file, _)| is_settings(file) && !self.is_test(file) && name(file) != "package.json");
            settings.filter(|(file, _)| folder(file) != folder(path)).any(|(_, text)| names_place(text, around))
        };
        let is_known = || folders().any(holds_code) || parts().any(is_named) || folders().any(is_configured);
        folders().any(is_of_tests) || (!folder(path).is_empty() && !is_known())
    }

    /// Returns true if a file may read others by a glob or by their folder: code, or a file about dependencies.
    fn is_program(&self, path: &str) -> bool {
        let is_code = self.roles.of(path) == Role::Code && !role::is_data(path);
        !self.is_test(path) && (is_code || self.roles.of(path) == Role::Dependencies)
    }

    /// Returns true if a file is code. A source file of another language that only tests name is none.
    fn is_code(&self, path: &str, tree: &Tree) -> bool {
        match self.of(path, tree.files.iter()) {
            Kind::Code | Kind::Compiled => true,
            Kind::Source => !self.is_named(path, tree).0,
            Kind::Data | Kind::Unknown | Kind::Aside | Kind::Other => false,
        }
    }

    /// Returns whether only tests name a file, and whether they name its folder, which holds no code.
    fn is_named(&self, path: &str, tree: &Tree) -> (bool, bool) {
        if self.embedded.contains(path) {
            return (false, false);
        }
        let is_listed = self.of(path, tree.files.iter()) == Kind::Data;
        let folder = folder(path);
        let is_code = |file: &str| {
            let kind = self.of(file, tree.files.iter());
            matches!(kind, Kind::Source | Kind::Compiled | Kind::Code)
        };
        let mut beside = tree.files.iter().filter(|file| role::folder(file) == folder);
        // The name of a folder of code says nothing about the data in it.
        let place = place(path).filter(|_| !beside.any(|file| is_code(file)));
        let others = || tree.texts.iter().filter(|(file, _)| *file != path);
        let by_tests = |word: &str| {
            let mut tests = others().filter(|(file, _)| self.is_test(file) && !role::is_data(file));
            tests.any(|(_, text)| names(text, word)) || (is_listed && names(&self.test_commands, word))
        };
        let is_user = |file: &str| match self.roles.of(file) {
            _ if self.is_test(file) => false,
            Role::Code => !is_listed || !role::is_data(file),
            Role::Test => false,
            // The name of a file that is only data by its use may be anywhere else, such as in a page or a manifest.
            Role::Dependencies | Role::Data | Role::Other => !is_listed && !is_prose(file),
        };
        let by_code = |word: &str| others().any(|(file, text)| is_user(file) && names(text, word));
        let imports = |text: &str| text.lines().any(|line| imports(line, name(path)));
        if by_code(name(path)) || place.is_some_and(by_code) || (!is_listed && others().any(|(_, text)| imports(text)))
        {
            return (false, false);
        }
        (by_tests(name(path)), place.is_some_and(by_tests))
    }
}

/// Returns true if a line imports a file by its name.
fn imports(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let after = line.get(at + name.len()..).unwrap_or_default();
        let code = before.rfind(['"', '\'', '`']).and_then(|quote| before.get(..quote)).unwrap_or_default().trim_end();
        let is_whole = before.ends_with(is_edge) && after.starts_with(is_edge);
        is_whole && IMPORTS.iter().any(|sign| code.ends_with(sign))
    })
}

/// Returns true if a file is a text for people, which may name any file.
fn is_prose(path: &str) -> bool {
    [".md", ".rst", ".adoc", ".markdown", ".txt"].iter().any(|end| path.ends_with(end))
}

/// Returns the words of a text that are a path within quotes, or a part of one.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut words: Vec<&str> = text.split(is_edge).skip(1).collect();
    words.pop();
    words.into_iter().filter(|word| !word.is_empty() && word.len() <= MAX_NAME_BYTES && !word.contains('\n'))
}

fn is_edge(c: char) -> bool {
    "/\\\"'`".contains(c)
}

/// Returns true if a text has a word as a path, or as a part of one, within quotes.
pub(super) fn names(text: &str, word: &str) -> bool {
    has_edges(text, word, |before, after| is_edge(before) && is_edge(after))
}

/// Returns true if a text has the name of a folder within quotes, as a part of a path or of a package: `"app.migrations"`.
pub(super) fn names_folder(text: &str, word: &str) -> bool {
    let is_part = |c: char| is_edge(c) || c == '.';
    has_edges(text, word, |before, after| is_part(before) && is_part(after) && (is_edge(before) || is_edge(after)))
}

/// Returns true if a text has a word between two characters that are its edges.
fn has_edges(text: &str, word: &str, are_edges: impl Fn(char, char) -> bool) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        before.zip(after).is_some_and(|(before, after)| are_edges(before, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the data of tests of JavaScript among files that a commit changes, or does not change.
    fn found(files: &[&str], texts: &[(&str, &str)], changed: &[&str], kept: &[&str]) -> TestData {
        let tree = Tree {
            files: files.iter().map(|path| (*path).to_owned()).collect(),
            texts: texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
        };
        let (roles, linked) = (Roles::of_trees(&[&tree]), BTreeSet::new());
        let programs = BTreeSet::from(["golden/run".to_owned()]);
        let are_listed = texts.iter().any(|(_, text)| text.contains("readdir"));
        let is_test = |path: &str| roles.of(path) == Role::Test;
        let embedded = embedded_files(tree.texts.iter().filter(|(path, _)| !is_test(path)), tree.files.iter());
        let tree = with_embedded(tree, is_test);
        let commands = of_product(&tree, |path| !is_test(path) && is_of_product(path));
        let (own, test_commands) = (&["test/calc.js"][..], of_commands(&tree, is_test));
        let kinds =
            Kinds { own, programs, roles: &roles, linked: &linked, are_listed, commands, test_commands, embedded };
        kinds.of_tests(changed, kept, &tree)
    }

    #[test]
    fn data_that_a_test_names_and_no_code_does_is_data_of_tests() {
        let reads = "const golden = name => read(join(__dirname, '../golden', name + '.json'))";
        let golden = &["golden/all.json", "golden/empty.json"][..];
        for (test, code, path, expected) in [
            (reads, "", "golden/all.json", golden),
            ("open('golden/all.json')", "", "golden/all.json", golden),
            ("include_str!(\"../all.json\")", "", "golden/all.json", &["golden/all.json"]),
            ("the golden rule, all.json", "", "golden/all.json", &[]),
            // The code reads it.
            (reads, "load('golden')", "golden/all.json", &[]),
            (reads, "load('./all.json')", "golden/all.json", &[]),
            // A folder of code.
            ("require('../lib/calc')", "", "lib/table.json", &[]),
            ("read('../lib/table.json')", "", "lib/table.json", &[]),
            // The code reads it by its ending, or by the package that its folder is.
            ("open('golden/all.json')", "glob('**/*.json')", "golden/all.json", &[]),
            ("open('golden/all.json')", "files('app.golden')", "golden/all.json", &[]),
        ] {
            let files = ["golden/all.json", "golden/empty.json", "lib/calc.js", "lib/table.json", "test/calc.js"];
            let texts = [("test/calc.js", test), ("lib/calc.js", code)];
            let all: Vec<String> = found(&files, &texts, &[path], &[]).changed.into_iter().collect();
            assert_eq!(all, expected, "{test} {code} {path}");
            // The same file, unchanged, is data of the tests by the same rule.
            let kept: Vec<String> = found(&files, &texts, &[], &[path]).kept.into_iter().collect();
            let expected = if expected.is_empty() { Vec::new() } else { vec![path] };
            assert_eq!(kept, expected, "{test} {code} {path}");
        }
    }

    #[test]
    fn a_folder_that_tests_list_is_data_with_its_new_files() {
        let test = "for (const name of fs.readdirSync('golden')) read('golden/' + name)";
        for (beside, code, folders, open) in [
            ("golden/b.json", "", &["golden/**"][..], &[][..]),
            ("golden/README.md", "", &["golden/**"], &[]),
            ("golden/deep/read.js", "", &["golden/**/*.json"], &[]),
            // The code names it.
            ("golden/deep/b.json", "load('b.json')", &["golden/*.json"], &[]),
            ("golden/b.json", "load('b.json')", &[], &["golden/*"]),
            ("golden/b.json", "load('golden')", &[], &[]),
            ("golden/[b].json", "", &["golden/**"], &[]),
        ] {
            let files = ["lib/calc.js", "test/calc.js", "golden/a.json", beside];
            let texts = [("test/calc.js", test), ("lib/calc.js", code)];
            let named = ["golden/a.json", beside];
            let found = found(&files, &texts, &[], &named);
            let folders: BTreeSet<String> = folders.iter().map(|glob: &&str| (*glob).to_owned()).collect();
            let open: BTreeSet<String> = open.iter().map(|path: &&str| (*path).to_owned()).collect();
            assert_eq!((found.folders, found.open), (folders, open), "{beside} {code}");
        }
    }

    #[test]
    fn a_line_imports_what_follows_its_words() {
        for (line, expected) in [
            ("import x from '../sums/a.sql';", true),
            ("const x = require(\"../sums/a.sql\"), fs = require('fs');", true),
            ("import '../sums/a.sql'", true),
            ("await import(`../sums/a.sql`)", true),
            ("require('fs').readFileSync('sums/a.sql')", false),
            ("import fs from 'fs'; fs.readFileSync('sums/a.sql')", false),
        ] {
            assert_eq!(imports(line, "a.sql"), expected, "{line}");
        }
    }

    #[test]
    fn a_file_near_code_that_tests_name_may_be_code() {
        let (tests, code) = (("test/calc.js", "read('x.sql')"), "lib/calc.js");
        for (path, beside, text, is_apart) in [
            ("lib/x.sql", "lib/y.sql", "", false),
            // A folder above it holds code.
            ("lib/data/x.sql", "lib/data/y.sql", "", false),
            ("golden/x.sql", "golden/read.js", "", false),
            ("x.sql", "y.sql", "", false),
            ("golden/x.sql", "golden/y.sql", "", true),
            ("golden/sub/x.sql", "golden/y.sql", "", true),
            ("golden/sub/x.sql", "golden/y.sql", "walk('golden')", false),
            ("golden/x.sql", "golden/y.sql", "walk(root, '.sql')", false),
            ("checks/data/x.sql", "checks/a.test.js", "walk('checks')", true),
            ("checks/x.sql", "checks/a.test.js", "glob('*.sql')", false),
        ] {
            let files = ["lib/calc.js", "test/calc.js", path, beside];
            for (changed, kept) in [(&[path][..], &[][..]), (&[][..], &[path][..])] {
                let found = found(&files, &[tests, (code, text)], changed, kept);
                let is_data = found.changed.contains(path) || found.kept.contains(path);
                assert_eq!((is_data, found.open.contains(path)), (is_apart, !is_apart), "{path} {beside} {text}");
            }
        }
    }

    #[test]
    fn files_that_commands_and_go_name_without_quotes_are_named() {
        let path = "golden/words.txt";
        for (test, program, expected) in [
            // Go embeds the file into its product, or into its test.
            (("a_test.go", "os.ReadFile(\"golden/words.txt\")"), ("a.go", "//go:embed golden/words.txt\n"), "product"),
            (("a_test.go", "os.ReadFile(\"golden/words.txt\")"), ("a.go", "//go:embed golden/*.txt\n"), "product"),
            (("a_test.go", "//go:embed golden/words.txt\n"), ("a.go", "package a\n"), "data"),
            // A pattern of another folder does not reach it.
            (("a_test.go", "os.ReadFile(\"golden/words.txt\")"), ("web/a.go", "//go:embed *.txt golden\n"), "data"),
            // A script of the product may read it.
            (("t/a.t", "sort -c golden/words.txt\n"), ("bin/has", "#!/bin/sh\ngrep $1 golden/words.txt\n"), "open"),
            (("t/a.t", "sort -c golden/words.txt\n"), ("bin/has", "#!/bin/sh\ngrep $1 golden/*.txt\n"), "open"),
            (("t/a.t", "sort -c golden/words.txt\n"), ("Makefile", "out: golden/words.txt\n"), "data"),
            (("t/a.t", "sort -c golden/words.txt\n"), ("scripts/has", "#!/bin/sh\nwc golden/words.txt\n"), "data"),
            (("t/a.t", "sort -c golden/words.txt\n"), ("bin/has", "#!/bin/sh\necho $1\n"), "data"),
        ] {
            let files = [test.0, program.0, path];
            for (changed, kept) in [(&[path][..], &[][..]), (&[][..], &[path][..])] {
                let found = found(&files, &[test, program], changed, kept);
                let is_data = found.changed.contains(path) || found.kept.contains(path);
                let is = match (is_data, found.open.contains(path)) {
                    (true, _) => "data",
                    (false, true) => "open",
                    (false, false) => "product",
                };
                assert_eq!(is, expected, "{test:?} {program:?}");
            }
        }
        // A test names the program that it starts, too.
        let files = ["t/a.t", "src/has.awk", "bin/has"];
        let texts = [("t/a.t", "awk -f src/has.awk apple\n")];
        assert_eq!(found(&files, &texts, &["src/has.awk"], &[]), TestData::default());
    }

    #[test]
    fn data_in_a_folder_that_settings_name_may_be_code() {
        let path = "db/migrations/1.sql";
        let files = ["lib/calc.js", "test/calc.js", "config.yml", path];
        let test = ("test/calc.js", "readdir('db/migrations')");
        for (text, is_apart) in [("migrations: db/migrations\n", false), ("migrations: yes\n", true)] {
            for (changed, kept) in [(&[path][..], &[][..]), (&[][..], &[path][..])] {
                let found = found(&files, &[test, ("config.yml", text)], changed, kept);
                let is_data = found.changed.contains(path) || found.kept.contains(path);
                assert_eq!((is_data, found.open.contains(path)), (is_apart, !is_apart), "{text}");
            }
        }
    }

    #[test]
    fn data_of_tests_may_have_any_ending_that_is_not_of_their_code() {
        let names = ["x.sql", "x.css", "x.log", "x", "x.md", "x.java", "x.py", "x.c", "x.js", "run"];
        for name in names {
            let path = format!("golden/{name}");
            let files = ["lib/calc.js", "test/calc.js", "CMakeLists.txt", path.as_str()];
            let test = format!("read('golden/{name}')");
            let is_data = |texts: &[(&str, &str)]| found(&files, texts, &[&path], &[]).changed.contains(&path);
            let is_code = ["x.c", "x.js", "run"].contains(&name);
            assert_eq!(is_data(&[("test/calc.js", &test)]), !is_code, "{path}");
            // Another file that is no text for people names it.
            assert!(!is_data(&[("test/calc.js", &test), ("lib/calc.js", &test)]), "{path}");
            assert!(!is_data(&[("test/calc.js", &test), ("package.json", &test)]), "{path}");
            assert_eq!(is_data(&[("test/calc.js", &test), ("lib/a.md", &test)]), !is_code, "{path}");
            // The tests import it.
            assert!(!is_data(&[("test/calc.js", &format!("import x from '../golden/{name}';"))]), "{path}");
            // The project may compile it.
            let doubtful = found(&files, &[("test/calc.js", &test)], &[&path], &[]).doubtful;
            assert_eq!(doubtful.contains(&path), name == "x.c", "{path}");
        }
    }
}
