//! Leaves tests out of a case that another correct patch cannot pass, or that an agent can change. Pure.

use std::collections::BTreeSet;

use super::MAX_TESTS;
use super::change::Change;
use super::commit_tests::{CommitTests, Flaky, sort};
use super::hunks;
use super::laboratory::Runs;
use super::role::{self, Role};
use super::runner::{Recipe, Runner, Tree};

/// Sorts the tests by their outcomes in the runs of a commit. A test that was flaky in the same folder at another
/// commit decides nothing.
pub(super) fn sorted(runs: &Runs, change: &Change, recipe: &Recipe, flaky: &Flaky) -> CommitTests {
    let folder = Some(recipe.folder.clone());
    let mut sorted = CommitTests { folder, ..sort(&runs.before, &runs.after) }.without(flaky);
    sorted.left_out = runs.left_out.iter().cloned().collect();
    leave_out(&mut sorted, change, recipe);
    leave_out_unguarded(&mut sorted, change, recipe);
    leave_out_ambiguous(&mut sorted, runs, recipe.runner);
    sorted
}

/// Leaves out tests whose names another test can satisfy if they do not run: a name that several tests have, one that is the last
/// part of the name of a test which the case does not list, and one that a file has which cannot be loaded even with the commit.
/// A listed test satisfies no other name.
fn leave_out_ambiguous(sorted: &mut CommitTests, runs: &Runs, runner: Runner) {
    use Runner::{Given, Jest, Mocha, Node, Npm};
    // The names of the other runners show the file, the class or the package, whose tests run together.
    let may_be_elsewhere = matches!(runner, Given | Jest | Mocha | Node | Npm);
    loop {
        let lists = [&sorted.fail_to_pass, &sorted.pass_to_pass];
        let is_sampled = lists.iter().any(|list| list.len() > MAX_TESTS);
        let listed: BTreeSet<String> = lists.into_iter().flatten().cloned().collect();
        let is_ambiguous = |test: &String| {
            let is_shared = (may_be_elsewhere && runs.shared.contains(test)) || runs.in_failed_files.contains(test);
            let is_listed = |whole: &String| whole == test || (!is_sampled && listed.contains(whole));
            is_shared || runs.last_parts.get(test).is_some_and(|wholes| !wholes.iter().all(is_listed))
        };
        let mut more: Vec<String> = Vec::new();
        for list in [&mut sorted.fail_to_pass, &mut sorted.pass_to_pass] {
            more.extend(list.extract_if(.., |test| is_ambiguous(test)));
        }
        if more.is_empty() {
            break;
        }
        sorted.left_out.append(&mut more);
    }
    sorted.left_out.sort();
    sorted.left_out.dedup();
}

/// The protection of a test against changes of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Guard {
    /// The test is in a hidden file, as far as its name shows.
    Hidden,
    /// The test is in this file, which is not hidden and holds no code, so that it can be restored.
    File(String),
    /// The test is in a file of code, which an agent may change.
    None,
}

/// Returns how a test is protected, as far as its name shows the file that it is in. `folder` is that of the runner, empty or with
/// a slash at its end.
pub(super) fn guard(runner: Runner, folder: &str, test: &str, change: &Change, patched: &[String]) -> Guard {
    let Some(path) = file_of(runner, folder, test, &change.after) else { return Guard::Hidden };
    if change.roles.of(&path) == Role::Test {
        return Guard::Hidden;
    }
    // A test within code: a doctest of pytest, whose name has that of its module, or a test in the source for vitest.
    let printed = path.strip_prefix(folder).unwrap_or(&path);
    let rest = test.strip_prefix(&path).or_else(|| test.strip_prefix(printed));
    let is_doctest = rest.and_then(|rest| rest.strip_prefix("::")).is_some_and(|rest| {
        let name = rest.split(['[', ':']).next().unwrap_or(rest);
        name.contains('.')
    });
    if is_doctest || runner == Runner::Vitest || patched.contains(&path) || !change.before.has(&path) {
        return Guard::None;
    }
    Guard::File(path)
}

/// Returns the file that a test is in, if its name shows it and the file exists. Names begin at the folder of the runner.
fn file_of(runner: Runner, folder: &str, test: &str, tree: &Tree) -> Option<String> {
    // Some runners print paths from the top: pytest, if its settings are there.
    let file = |path: &str| [format!("{folder}{path}"), path.to_owned()].into_iter().find(|path| tree.has(path));
    match runner {
        Runner::Pytest => file(test.split_once("::")?.0),
        Runner::Unittest => {
            let modules: Vec<&str> = test.split('.').collect();
            let mut files = (1..modules.len()).rev().filter_map(|count| modules.get(..count)).flat_map(|modules| {
                let path = format!("{}.py", modules.join("/"));
                // The folder that unittest begins in is not a part of the name.
                ["", "tests/", "test/"].map(|folder| format!("{folder}{path}"))
            });
            files.find_map(|path| file(&path))
        }
        Runner::Vitest => starts(test, &["."]).find_map(file),
        // Suites are also named after the code that they test, so a file of sources is none.
        Runner::Given | Runner::Npm => {
            let of_pytest = test.split_once("::").and_then(|(path, _)| file(path));
            let is_path = |path: &&str| path.contains('/');
            let of_path = |path: &str| file(path).filter(|path| !role::is_in_sources(path));
            of_pytest.or_else(|| starts(test, &[".", ":", " ", "#", ">"]).filter(is_path).find_map(of_path))
        }
        Runner::Node => file(test),
        _ => None,
    }
}

/// Returns the whole text, and its beginning before each mark, the longest first.
fn starts<'a>(text: &'a str, marks: &[&'static str]) -> impl Iterator<Item = &'a str> {
    let mut ends: Vec<usize> = marks.iter().flat_map(|mark| text.match_indices(*mark).map(|(at, _)| at)).collect();
    ends.push(text.len());
    ends.sort_unstable();
    ends.into_iter().rev().filter_map(move |end| text.get(..end))
}

/// Leaves out tests that are in files which an agent may change, or declare: it could change the tests as well, so they guard
/// nothing. `--test` may name cargo, too.
fn leave_out_unguarded(sorted: &mut CommitTests, change: &Change, recipe: &Recipe) {
    let (runner, is_cargo, folder) = (recipe.runner, recipe.run.contains("cargo test"), recipe.path());
    let patched = hunks::files(&change.patch);
    let is_of_rust = |path: &str| {
        change.roles.of(path) == Role::Test && is_of_test_target(path, &change.after) && path.ends_with(".rs")
    };
    let texts: Vec<(&String, &String)> = change.after.texts.iter().filter(|(path, _)| is_of_rust(path)).collect();
    let is_guarded = |test: &String| match (runner, is_cargo) {
        // The name begins with the file of the target.
        (Runner::Cargo, _) => test.split_once("::").is_some_and(|(path, _)| {
            let path = format!("{folder}{path}");
            change.after.has(&path) && change.roles.of(&path) == Role::Test
        }),
        (_, true) => is_hidden_test_of_rust(test, &texts),
        (_, false) => guard(runner, &folder, test, change, &patched) != Guard::None,
    };
    let mut unguarded: Vec<String> = Vec::new();
    for list in [&mut sorted.fail_to_pass, &mut sorted.pass_to_pass] {
        unguarded.extend(list.extract_if(.., |test| !is_guarded(test)));
    }
    unguarded.sort();
    sorted.unguarded = unguarded;
}

/// Returns true if a file of Rust is a part of a target for tests, such as `tests/add.rs`. A file of tests in the sources is
/// a part of a library or a program, whose code declares it and decides what its macros are.
fn is_of_test_target(path: &str, tree: &Tree) -> bool {
    let mut folders = path.match_indices('/').rev().filter_map(|(at, _)| path.get(..at));
    let package = folders.find(|folder| tree.has(&format!("{folder}/Cargo.toml")));
    let inside = package.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/')).unwrap_or(path);
    inside.starts_with("tests/")
}

/// Returns true if no file of tests of a commit is a part of a target for tests, and all that it changes are of Rust. Its
/// tests then guard nothing.
pub(super) fn has_only_tests_within_crates(change: &Change) -> bool {
    let Change { after, changed_tests, .. } = change;
    let is_target = |path: &String| path.ends_with(".rs") && is_of_test_target(path, after);
    let has_other = after.text("Cargo.toml").is_some_and(|text| text.contains("[[test]]"));
    let is_of_rust = !changed_tests.is_empty() && changed_tests.iter().all(|path| path.ends_with(".rs"));
    is_of_rust && !has_other && !after.files.iter().any(is_target)
}

/// Returns true if a test of Rust is defined in a hidden file. Its name has the modules and the function, but not the file:
/// `sum::tests::adds`, and `adds::case_1` of a macro.
fn is_hidden_test_of_rust(test: &str, texts: &[(&String, &String)]) -> bool {
    // A test in a comment of the code.
    if test.contains(" (line ") {
        return false;
    }
    let name = test.split(' ').next().unwrap_or(test);
    // A test program with a harness of its own names its tests as it likes. Code has no such program.
    if !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':') {
        return true;
    }
    let parts: Vec<&str> = name.split("::").collect();
    let is_in = |path: &str, text: &str| {
        let mut module = None;
        for (at, part) in parts.iter().enumerate() {
            let is_named = text.contains(&format!("fn {part}(")) || (at + 1 == parts.len() && has_word(text, part));
            if is_named && module.is_none_or(|module| is_module_of(path, text, module)) {
                return true;
            }
            module = Some(*part);
        }
        false
    };
    texts.iter().any(|(path, text)| is_in(path, text))
}

/// Returns true if a file of tests is, or declares, a module.
fn is_module_of(path: &str, text: &str, module: &str) -> bool {
    let place = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
    let name = place.rsplit('/').next().unwrap_or(place);
    // `tests/tests.rs` is a program, and its tests have no module.
    let is_file = name == module && place != "tests/tests";
    is_file || text.contains(&format!("mod {module} ")) || text.contains(&format!("mod {module}{{"))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// Returns the remark about tests that were left out because an agent may change them.
pub(super) fn remark(sorted: &CommitTests) -> Option<String> {
    let some = crate::text::some_of(sorted.unguarded.iter().map(|name| format!("`{name}`")), 5);
    (!sorted.unguarded.is_empty()).then(|| {
        format!(
            "Tests in files of code, or declared there, are left out, because an agent may change these files: {some}"
        )
    })
}

/// Returns true if a test is in this file, as far as its name shows.
fn is_in_file(runner: Runner, test: &str, path: &str) -> bool {
    use Runner::{Given, Node, Npm, Unittest, Vitest};
    if runner == Unittest {
        let module = path.strip_suffix(".py").map(|path| format!("{}.", path.replace('/', ".")));
        return module.is_some_and(|module| test.starts_with(&module));
    }
    let Some(rest) = test.strip_prefix(path) else { return false };
    let is_point = rest.starts_with('.');
    match runner {
        _ if rest.starts_with("::") => true,
        Vitest => is_point,
        // A suite, or a test, may have the name of a file.
        Given | Npm => is_point && path.contains('/'),
        Node => rest.is_empty(),
        _ => false,
    }
}

/// Leaves out tests that another correct patch cannot pass: tests that the patch itself adds beside the code.
fn leave_out(sorted: &mut CommitTests, change: &Change, recipe: &Recipe) {
    let (runner, folder) = (recipe.runner, recipe.path());
    let mut patched = hunks::files(&change.patch);
    patched.retain(|path| !change.hidden.contains(path));
    let is_of = |test: &String, path: &String| {
        let printed = path.strip_prefix(&folder);
        is_in_file(runner, test, path) || printed.is_some_and(|path| is_in_file(runner, test, path))
    };
    sorted.fail_to_pass.retain(|test| !patched.iter().any(|path| is_of(test, path)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_whose_names_another_test_can_satisfy_are_left_out() {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        for (runner, shared, wholes, kept, left_out) in [
            // The longer name is listed, too.
            (Runner::Node, "", "cli>empty", "cli>empty empty", ""),
            (Runner::Node, "", "cli>empty other>empty", "cli>empty", "empty"),
            (Runner::Node, "empty", "", "cli>empty", "empty"),
            // Without the longer name, the shorter one is ambiguous.
            (Runner::Jest, "cli>empty", "cli>empty", "", "cli>empty empty"),
            (Runner::Vitest, "empty", "", "cli>empty empty", ""),
        ] {
            let longer: BTreeSet<String> = names(wholes).into_iter().collect();
            let last_parts = [("empty".to_owned(), longer)].into();
            let runs = Runs { shared: names(shared).into_iter().collect(), last_parts, ..Runs::default() };
            let (fail_to_pass, pass_to_pass) = (names("empty"), names("cli>empty"));
            let mut sorted = CommitTests { fail_to_pass, pass_to_pass, ..CommitTests::default() };
            leave_out_ambiguous(&mut sorted, &runs, runner);
            let mut all = [sorted.fail_to_pass, sorted.pass_to_pass].concat();
            all.sort();
            assert_eq!((all, sorted.left_out), (names(kept), names(left_out)), "{runner:?} {shared} {wholes}");
        }
    }

    #[test]
    fn a_test_whose_name_is_in_a_file_that_fails_with_the_commit_is_left_out() {
        let runs = Runs { in_failed_files: ["add".to_owned()].into(), ..Runs::default() };
        let (fail_to_pass, pass_to_pass) = (vec!["take".to_owned()], vec!["add".to_owned()]);
        let mut sorted = CommitTests { fail_to_pass, pass_to_pass, ..CommitTests::default() };
        leave_out_ambiguous(&mut sorted, &runs, Runner::Node);
        assert_eq!((sorted.fail_to_pass, sorted.left_out), (vec!["take".to_owned()], vec!["add".to_owned()]));
        assert!(sorted.pass_to_pass.is_empty());
    }

    #[test]
    fn tests_of_a_file_of_the_patch_are_left_out() {
        use Runner::{Given, Mocha, Pytest, Unittest, Vitest};
        for (runner, test, path, is_in) in [
            (Pytest, "tiny/a.py::tiny.a.add", "tiny/a.py", true),
            (Pytest, "tests/test_a.py::test_add", "tiny/a.py", false),
            (Vitest, "src/in.ts.tri", "src/in.ts", true),
            (Vitest, "src/in.tsx.tri", "src/in.ts", false),
            (Unittest, "tiny.a.Add.test_add", "tiny/a.py", true),
            (Given, "tiny/a.py::add", "tiny/a.py", true),
            // The name of a suite.
            (Mocha, "index.js.adds", "index.js", false),
            (Given, "index.js.adds", "index.js", false),
            (Given, "value", "value", false),
        ] {
            assert_eq!(is_in_file(runner, test, path), is_in, "{test} {path}");
        }
    }

    fn change(files: &[(&str, &str)]) -> Change {
        let tree = Tree {
            files: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
            texts: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
        };
        Change { before: tree.clone(), after: tree, ..Change::default() }
    }

    #[test]
    fn a_test_is_guarded_by_the_file_that_its_name_shows() {
        use Runner::{Given, Node, Pytest, Unittest, Vitest};
        let files = [
            "checks/a.py",
            "checks/add.sh",
            "checks/testcalc.py",
            "lib/add.js",
            "new.py",
            "src/calc.py",
            "src/in.ts",
            "t/add.t",
            "tests/test_a.py",
            "value",
        ];
        let mut change = change(&files.map(|path| (path, "")));
        change.before.files.remove("new.py");
        let file = |path: &str| Guard::File(path.to_owned());
        for (runner, test, expected) in [
            (Pytest, "tests/test_a.py::test_a[a.b]", Guard::Hidden),
            (Pytest, "checks/a.py::test_a[a.b]", file("checks/a.py")),
            (Pytest, "checks/a.py::A::test_a", file("checks/a.py")),
            (Pytest, "new.py::test_a", Guard::None),
            (Pytest, "src/calc.py::calc.add", Guard::None),
            (Unittest, "test_a.A.test_a", Guard::Hidden),
            (Unittest, "checks.testcalc.A.test_a", file("checks/testcalc.py")),
            (Vitest, "src/in.ts.tri", Guard::None),
            (Node, "t/add.t", Guard::Hidden),
            (Given, "t/add.t: adds", Guard::Hidden),
            (Given, "checks/add.sh", file("checks/add.sh")),
            (Given, "checks/add.sh: adds", file("checks/add.sh")),
            (Given, "checks/a.py::test_a", file("checks/a.py")),
            // The name of a suite, and of a test.
            (Given, "lib/add.js adds", Guard::Hidden),
            (Given, "value", Guard::Hidden),
            (Given, "adds", Guard::Hidden),
        ] {
            assert_eq!(guard(runner, "", test, &change, &[]), expected, "{test}");
        }
        let patched = ["checks/add.sh".to_owned()];
        assert_eq!(guard(Given, "", "checks/add.sh", &change, &patched), Guard::None);
    }

    #[test]
    fn a_target_for_tests_is_in_the_folder_of_its_package() {
        let files = ["Cargo.toml", "src/tests.rs", "crates/app/Cargo.toml", "crates/app/tests/a.rs"];
        let mut change = change(&files.map(|path| (path, "")));
        for (path, is) in [
            ("tests/a.rs", true),
            ("tests/a/main.rs", true),
            ("src/tests.rs", false),
            ("src/tests/a.rs", false),
            ("crates/app/tests/a.rs", true),
            ("crates/app/src/tests/a.rs", false),
        ] {
            assert_eq!(is_of_test_target(path, &change.after), is, "{path}");
        }
        change.changed_tests = vec!["src/tests.rs".to_owned()];
        assert!(!has_only_tests_within_crates(&change));
        change.after.files.remove("crates/app/tests/a.rs");
        assert!(has_only_tests_within_crates(&change));
        change.changed_tests.push("tests/data.json".to_owned());
        assert!(!has_only_tests_within_crates(&change));
    }

    #[test]
    fn tests_of_rust_in_files_of_code_are_left_out() {
        let change = change(&[
            ("src/lib.rs", "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n}\n"),
            ("src/sum.rs", "#[cfg(test)]\nmod tests;\n#[cfg(test)]\n#[path = \"sum_tests.rs\"]\nmod more;\n"),
            ("src/sum/tests.rs", "#[test]\nfn sums() {}\n"),
            ("src/sum_tests.rs", "#[test]\nfn sums_more() {}\n"),
            (
                "tests/all.rs",
                "#[test]\nfn adds() {}\nmod deep {\n    fn takes() {}\n}\ncheck!(halves, 2);\nfn table() {}\n",
            ),
        ]);
        let roles = role::Roles::of_trees(&[&change.after]);
        let change = Change { roles, ..change };
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let guarded = ["adds", "deep::takes", "halves", "table::case_1", "ui/a.rs"];
        // Code declares the modules of the sources, hidden ones too.
        let inline = [
            "src/lib.rs - add (line 3)",
            "sum::more::sums_more",
            "sum::tests::sums",
            "tests::adds",
            "tests::takes",
            "value::tests::half",
        ];
        let passing = all(&[&guarded[..], &inline].concat());
        let mut sorted =
            CommitTests { fail_to_pass: all(&["tests::new"]), pass_to_pass: passing, ..CommitTests::default() };
        let recipe = |runner| Recipe { run: "cargo test".to_owned(), ..Recipe::bare(runner) };
        leave_out_unguarded(&mut sorted, &change, &recipe(Runner::Given));
        assert_eq!((sorted.fail_to_pass.len(), &sorted.pass_to_pass), (0, &all(&guarded)));
        let mut left: Vec<String> = all(&inline);
        left.insert(4, "tests::new".to_owned());
        assert_eq!(sorted.unguarded, left);
        let text = remark(&sorted).unwrap();
        let start =
            "Tests in files of code, or declared there, are left out, because an agent may change these files: `src/";
        assert!(text.starts_with(start), "{text}");
        // The names of the own runner have the file of the target.
        let passing = all(&["tests/all.rs::tests::adds", "src/sum.rs::adds", "tests/none.rs::adds"]);
        let mut sorted = CommitTests { pass_to_pass: passing, ..CommitTests::default() };
        leave_out_unguarded(&mut sorted, &change, &recipe(Runner::Cargo));
        assert_eq!(sorted.pass_to_pass, all(&["tests/all.rs::tests::adds"]));
        assert_eq!(remark(&CommitTests::default()), None);
    }
}
