//! Finds what a text of Python names within quotes: folders on Python's path, plug-ins of pytest, and modules that calls load.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::links::resolved;
use super::python_imports;
use super::usage::has_word;

/// Signs of statements that put folders on Python's path.
const PATHS: [&str; 5] = ["sys.path", "path.append(", "path.insert(", "addsitedir(", "syspath_prepend("];
/// Signs of statements that change Python's path.
const CHANGES: [&str; 6] =
    ["addsitedir(", "sys.path +=", "sys.path = [", "sys.path.append(", "sys.path.extend(", "sys.path.insert("];
/// Functions to which a text may give other names.
const RENAMED: [&str; 9] = [
    "addsitedir",
    "find_spec",
    "import_module",
    "importorskip",
    "resolve_name",
    "run_module",
    "run_path",
    "spec_from_file_location",
    "walk_packages",
];
/// The variable with the names of pytest's plug-ins.
const PLUGINS: &str = "pytest_plugins";
/// Calls that load a module by its name.
const BY_NAME: [&str; 8] = [
    "import_module(",
    "__import__(",
    "importorskip(",
    "run_module(",
    "find_spec(",
    "resolve_name(",
    "getattr(importlib,",
    OF_PLUGIN,
];
/// The call that loads a plug-in of pytest by its name.
const OF_PLUGIN: &str = "import_plugin(";
/// Calls that load a module by the path of its file.
const BY_PATH: [&str; 4] = ["run_path(", "spec_from_file_location(", "SourceFileLoader(", "load_source("];
/// The call that runs a text: of a file if the statement reads one.
const OF_TEXT: &str = "exec(";
/// Calls that run a text, which may import modules.
const OF_CODE: [&str; 2] = [OF_TEXT, "eval("];
/// The call of pytest's fixture `pytester` that copies an example.
const COPIES: &str = "copy_example(";
/// The mark that names a folder below that of the examples.
const BELOW: &str = "pytester_example_path(";
/// Calls that list modules, which are then loaded.
const SEVERAL: [&str; 2] = ["iter_modules(", "walk_packages("];
/// Calls that run a program.
const RUNS: [&str; 3] = ["subprocess.", "os.system(", "Popen("];
/// The maximum number of lines of a statement.
const MAX_STATEMENT_LINES: usize = 20;
/// The maximum number of statements with a sign.
const MAX_STATEMENTS: usize = 200;
/// The maximum number of texts in a statement that a path is put together from.
const MAX_PATH_PARTS: usize = 12;

/// The certainty with which a statement shows the modules that it loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    /// The statement has the whole name.
    All,
    /// The statement shows the modules if a text in it, or in the value of a variable, leads to a file.
    Perhaps,
    /// The name is put together when the statement runs, or the statement loads several modules.
    Part,
}

/// A statement that loads modules.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::mine) struct Load {
    /// The modules that its texts may name, as paths. Each dot before a relative name is a `/`.
    pub(in crate::mine) modules: Vec<String>,
    /// The paths that its texts may mean.
    pub(super) paths: Vec<String>,
    /// The certainty of both.
    pub(super) shown: Shown,
    /// True if pytest loads the modules as its plug-ins.
    pub(in crate::mine) is_plugin: bool,
}

/// Returns the statements of a file that load modules by other means than `import`.
pub(in crate::mine) fn loads(file: &str, text: &str) -> Vec<Load> {
    let text = with_own_names(text);
    let text = text.as_str();
    let mut found = Vec::new();
    for all in statements(text, PLUGINS) {
        let words: Vec<&str> = all.iter().flat_map(|statement| quoted(statement)).collect();
        let modules: Vec<String> = words.iter().filter_map(|word| module(word)).collect();
        let is_whole = modules.len() == words.len() && !all.iter().any(|statement| is_put_together(statement));
        let shown = if is_whole { Shown::All } else { Shown::Part };
        found.push(Load { modules, paths: Vec::new(), shown, is_plugin: true });
    }
    for sign in BY_NAME {
        for all in statements(text, sign) {
            let mut modules: Vec<String> =
                all.iter().flat_map(|statement| quoted(statement)).filter_map(before_colon).collect();
            // `import_module(".checks", "support")`
            let (relative, whole): (Vec<&String>, Vec<&String>) =
                modules.iter().partition(|module| module.starts_with('/'));
            let within: Vec<String> =
                whole.iter().flat_map(|package| relative.iter().map(move |it| format!("{package}{it}"))).collect();
            modules.extend(within);
            let calls = all.first().map(|statement| after(statement, sign)).unwrap_or_default();
            let shown = calls.into_iter().map(argument).max().unwrap_or(Shown::All);
            found.push(Load { modules, paths: Vec::new(), shown, is_plugin: sign == OF_PLUGIN });
        }
    }
    for all in OF_CODE.iter().flat_map(|sign| statements(text, sign)) {
        if all.iter().any(|statement| statement.contains("import")) {
            let pieces: Vec<&str> = all.iter().flat_map(|it| it.split(['"', '\''])).map(str::trim).collect();
            let mut modules: Vec<String> = pieces.iter().filter_map(|piece| module(piece)).collect();
            modules.extend(pieces.iter().flat_map(|piece| python_imports::imported(piece)));
            let is_plain = |part: &str| part.is_empty() || part == "*" || is_name(part);
            let is_whole = !modules.is_empty() && modules.iter().all(|module| module.split('/').all(is_plain));
            let shown = if is_whole { Shown::All } else { Shown::Part };
            found.push(Load { modules, paths: Vec::new(), shown, is_plugin: false });
        }
    }
    // `python -c "from support import checks"`
    for all in RUNS.iter().flat_map(|sign| statements(text, sign)) {
        let pieces: Vec<&str> = all.iter().flat_map(|it| it.split(['"', '\''])).map(str::trim).collect();
        if pieces.iter().any(|piece| piece.split_whitespace().next_back() == Some("-c")) {
            let code = pieces.iter().map(|piece| piece.replace("\\n", "\n"));
            let modules: Vec<String> = code.flat_map(|code| python_imports::imported(&code)).collect();
            if !modules.is_empty() {
                found.push(Load { modules, paths: Vec::new(), shown: Shown::All, is_plugin: false });
            }
        }
    }
    for sign in BY_PATH.iter().chain([&OF_TEXT]) {
        for all in statements(text, sign) {
            let is_meant = *sign != OF_TEXT || all.iter().any(|it| it.contains("open(") || it.contains("read_"));
            if is_meant {
                let paths = all.iter().flat_map(|statement| paths(file, &quoted(statement))).collect();
                found.push(Load { modules: Vec::new(), paths, shown: Shown::Perhaps, is_plugin: false });
            }
        }
    }
    if SEVERAL.iter().any(|sign| !after(text, sign).is_empty()) {
        found.push(Load { modules: Vec::new(), paths: Vec::new(), shown: Shown::Part, is_plugin: false });
    }
    found
}

/// Returns the path of the module in a name such as `support.checks:same`.
fn before_colon(name: &str) -> Option<String> {
    module(name.split(':').next().unwrap_or_default())
}

/// Returns the modules (`-m support.checks`) and the paths of the programs of Python that a file runs, as far as its texts show
/// them.
pub(super) fn programs(file: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let (mut modules, mut places) = (Vec::new(), Vec::new());
    for statement in RUNS.iter().flat_map(|sign| statements(text, sign)).flatten() {
        let words: Vec<&str> = quoted(&statement).into_iter().flat_map(str::split_whitespace).collect();
        let named = words.iter().zip(words.iter().skip(1)).filter(|(option, _)| **option == "-m");
        modules.extend(named.filter_map(|(_, name)| module(name)));
        places.extend(words.iter().filter(|word| word.ends_with(".py")).flat_map(|word| paths(file, &[*word])));
    }
    (modules, places)
}

/// Returns the folders that a file puts on Python's path, as far as its texts show them.
pub(in crate::mine) fn search_paths(file: &str, text: &str, is_folder: impl Fn(&str) -> bool) -> Vec<String> {
    let text = with_own_names(text);
    let mut found: Vec<String> = Vec::new();
    for statement in PATHS.iter().flat_map(|sign| statements(&text, sign)).flatten() {
        for path in paths(file, &quoted(&statement)) {
            if is_folder(&path) && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns true if a file puts a folder on Python's path whose name only a run shows.
pub(super) fn has_computed_path(file: &str, text: &str, is_folder: impl Fn(&str) -> bool) -> bool {
    let text = with_own_names(text);
    let mut changes = CHANGES.iter().flat_map(|sign| statements(&text, sign));
    changes.any(|all| {
        let has_name = |statement: &String| quoted(statement).iter().any(|word| word.contains(char::is_alphanumeric));
        let is_known = |statement: &String| paths(file, &quoted(statement)).iter().any(|path| is_folder(path));
        all.iter().any(has_name) && !all.iter().any(is_known)
    })
}

/// Returns the files of a repository that a text copies from folders of examples (`copy_example`). A folder is empty, or has a
/// slash at its end.
pub(super) fn examples(text: &str, folders: &[String], files: &BTreeSet<String>) -> BTreeSet<String> {
    let copies: Vec<String> = statements(text, COPIES).into_iter().flatten().collect();
    let mut names: Vec<&str> = copies.iter().flat_map(|statement| quoted(statement)).collect();
    let is_bare = |statement: &String| after(statement, COPIES).iter().any(|rest| rest.trim_start().starts_with(')'));
    // Without a name, an example has the name of the test.
    if copies.iter().any(is_bare) {
        let tests = text.lines().filter_map(|line| line.trim_start().strip_prefix("def "));
        names.extend(tests.filter_map(|rest| rest.split('(').next()));
    }
    let marks: Vec<String> = statements(text, BELOW).into_iter().flatten().collect();
    let below = marks.iter().flat_map(|statement| quoted(statement));
    let below: Vec<String> =
        below.flat_map(|part| folders.iter().map(move |folder| format!("{folder}{part}/"))).collect();
    let is_named = |rest: &str| {
        let is_of =
            |name: &&str| rest == *name || rest == format!("{name}.py") || rest.starts_with(&format!("{name}/"));
        names.iter().any(is_of)
    };
    let is_example = |file: &&String| {
        let mut inside = folders.iter().chain(&below).filter_map(|folder| file.strip_prefix(folder.as_str()));
        inside.any(is_named)
    };
    files.iter().filter(is_example).cloned().collect()
}

/// Returns the path of a module, if a text has the form of its name. Each dot before a relative name is a `/`.
pub(super) fn module(name: &str) -> Option<String> {
    let plain = name.trim_start_matches('.');
    let dots = "/".repeat(name.len() - plain.len());
    plain.split('.').all(is_name).then(|| format!("{dots}{}", plain.replace('.', "/")))
}

/// Returns the statements of a text with a sign, each followed by the statements that give the names in it their values.
fn statements(text: &str, sign: &str) -> Vec<Vec<String>> {
    if !text.contains(sign) {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).collect();
    let whole = |at: usize| {
        let mut statement = String::new();
        for line in lines.iter().skip(at).take(MAX_STATEMENT_LINES) {
            statement.push_str(line);
            statement.push(' ');
            if statement.matches(['(', '[', '{']).count() <= statement.matches([')', ']', '}']).count() {
                break;
            }
        }
        statement
    };
    let named: Vec<(usize, &str)> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, assigned(line)?))).collect();
    let with_values = |at: usize| {
        let statement = whole(at);
        let is_value = |(other, name): &&(usize, &str)| *other != at && has_word(&statement, name);
        let values: Vec<String> = named.iter().filter(is_value).map(|(other, _)| whole(*other)).collect();
        [vec![statement], values].concat()
    };
    let signed = lines.iter().enumerate().filter(|(_, line)| !after(line, sign).is_empty());
    signed.take(MAX_STATEMENTS).map(|(at, _)| with_values(at)).collect()
}

/// Returns a text with functions, and Python's path, under their own names: `im("a")` is `import_module("a")` after
/// `import_module as im`.
fn with_own_names(text: &str) -> String {
    let mut plain = text.to_owned();
    for name in RENAMED {
        for other in other_names(text, name) {
            plain = replaced(&plain, &format!("{other}("), &format!("{name}("));
        }
    }
    let of_path = ["sys.path", "sys import path"].into_iter().flat_map(|name| other_names(text, name));
    for other in of_path {
        for call in ["append(", "extend(", "insert("] {
            plain = replaced(&plain, &format!("{other}.{call}"), &format!("sys.path.{call}"));
        }
    }
    plain
}

/// Returns the other names that a text gives to something: `NAME as other`, and `other = NAME`.
fn other_names(text: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        for rest in after(line, name) {
            let other = match rest.trim_start().strip_prefix("as ") {
                Some(rest) => rest.trim_start().split(|c: char| !is_of_name(c)).next(),
                None if rest.is_empty() => assigned(line),
                None => None,
            };
            found.extend(other.filter(|other| is_name(other) && *other != name).map(str::to_owned));
        }
    }
    found
}

/// Returns a text in which another text replaces a part wherever this part is not the end of a longer name.
fn replaced(text: &str, part: &str, other: &str) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(part) {
        let is_whole = !before.ends_with(|c: char| is_of_name(c) || c == '.');
        done.push_str(before);
        done.push_str(if is_whole { other } else { part });
        rest = after;
    }
    done + rest
}

/// Returns true if a statement puts a name together from texts.
fn is_put_together(statement: &str) -> bool {
    let is_quote = |c: char| c == '"' || c == '\'';
    let adds = |(at, _): (usize, &str)| {
        let before = statement.get(..at).unwrap_or_default().trim_end();
        let after = statement.get(at + 1..).unwrap_or_default().trim_start();
        before.ends_with(is_quote) || after.starts_with(is_quote)
    };
    ["%", ".format(", ".join("].iter().any(|sign| statement.contains(sign)) || statement.match_indices('+').any(adds)
}

/// Returns the name to which a line gives a value.
fn assigned(line: &str) -> Option<&str> {
    let name = match line.strip_prefix("for ") {
        Some(rest) => rest.split_once(" in ")?.0,
        None => line.split_once('=').filter(|(_, value)| !value.starts_with('='))?.0,
    };
    let name = name.split(':').next().unwrap_or_default().trim();
    is_name(name).then_some(name)
}

/// Returns what follows a sign at each place where it is not a part of a longer name.
fn after<'a>(text: &'a str, sign: &str) -> Vec<&'a str> {
    let is_whole = |at: usize| !text.get(..at).is_some_and(|before| before.ends_with(is_of_name));
    let places = text.match_indices(sign).filter(|(at, _)| is_whole(*at));
    places.filter_map(|(at, _)| text.get(at + sign.len()..)).collect()
}

/// Returns how much of a module's name the first argument of a call shows. A relative name is not the whole name,
/// because the package is missing.
fn argument(rest: &str) -> Shown {
    let rest = rest.trim_start();
    if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let Some((name, after)) = rest.get(1..).and_then(|rest| rest.split_once(quote)) else { return Shown::Part };
        let after = after.trim_start();
        return match after.is_empty() || after.starts_with([')', ',']) {
            true if name.starts_with('.') => Shown::Perhaps,
            true => Shown::All,
            false => Shown::Part,
        };
    }
    let name = rest.split([',', ')']).next().unwrap_or_default().trim();
    if name.split('.').all(is_name) { Shown::Perhaps } else { Shown::Part }
}

/// Returns the texts within quotes.
fn quoted(statement: &str) -> Vec<&str> {
    statement.split(['"', '\'']).skip(1).step_by(2).filter(|word| !word.is_empty()).collect()
}

/// Returns the part of a text that no value replaces: `{ROOT}/support`, `%s/support` and `{}/support` have `/support`.
fn fixed(word: &str) -> &str {
    let ends = ["}", "%s"].into_iter().filter_map(|sign| word.rfind(sign).map(|at| at + sign.len()));
    ends.max().and_then(|end| word.get(end..)).filter(|rest| rest.starts_with('/')).unwrap_or(word)
}

/// Returns the paths that texts in a row may mean together (`"..", "support"`): from the folder of the file, from those above
/// it, from the top, and from the file itself (`__file__ + "/../support"`).
fn paths(file: &str, words: &[&str]) -> Vec<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let above: Vec<&str> = folder.match_indices('/').rev().filter_map(|(at, _)| folder.get(..at)).chain([""]).collect();
    let words: Vec<&str> = words.iter().take(MAX_PATH_PARTS).map(|word| fixed(word)).collect();
    let mut found = Vec::new();
    for from in 0..words.len() {
        for to in from..words.len() {
            let path = words.get(from..=to).unwrap_or_default().join("/");
            let is_dots = path.chars().all(|c| c == '.' || c == '/');
            let around = above.iter().copied().filter(|_| !is_dots).map(|folder| format!("{folder}/{path}"));
            let from_top = path.trim_start_matches('/').trim_start_matches("../").to_owned();
            let of_file = path.starts_with('/').then(|| format!("{file}{path}"));
            let all = [format!("{folder}/{path}")].into_iter().chain(around).chain([from_top]).chain(of_file);
            found.extend(all.filter_map(|path| resolved(&path, &BTreeMap::new())));
        }
    }
    found
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_on_the_path_of_python_are_found() {
        let folders = ["docs", "pkg", "pkg/lib", "support", "tests", "tests/unit"];
        for (file, text, expected) in [
            (
                "tests/a.py",
                "sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))",
                &["support"][..],
            ),
            (
                "tests/a.py",
                "sys.path.insert(\n    0,\n    str(HERE / 'support'),  # helpers\n)\nx = 'docs'\n",
                &["support"],
            ),
            (
                "tests/a.py",
                "SUPPORT = join(HERE, '../support')\nsys.path[:0] = [SUPPORT]\nDATA = 'docs'\n",
                &["support"],
            ),
            ("tests/a.py", "for it in ['support', 'docs']:\n    site.addsitedir(it)\n", &["support", "docs"]),
            ("tests/a.py", "monkeypatch.syspath_prepend('pkg/lib')\n", &["pkg/lib"]),
            ("pkg/tests/a.py", "sys.path.append(join(here, '..'))\n", &["pkg"]),
            ("tests/unit/a.py", "sys.path.append('../../support')\n", &["support"]),
            ("tests/a.py", "sys.path += [f\"{ROOT}/support\"]\n", &["support"]),
            ("tests/a.py", "sys.path.insert(0, '%s/support' % ROOT)\n", &["support"]),
            ("tests/a.py", "sys.path.insert(0, '{}/support'.format(ROOT))\n", &["support"]),
            ("tests/a.py", "sys.path.insert(0, os.path.abspath(__file__ + '/../../support'))\n", &["support"]),
            ("pkg/tests/a.py", "sys.path.insert(0, os.path.abspath(__file__ + '/../../lib'))\n", &["pkg/lib"]),
            ("tests/a.py", "from sys import path as where\nwhere.insert(0, str(ROOT / 'support'))\n", &["support"]),
            ("tests/a.py", "p = sys.path\np.insert(0, 'support')\n", &["support"]),
            ("tests/a.py", "open('support')\n", &[]),
        ] {
            let found = search_paths(file, text, |path| folders.contains(&path));
            assert_eq!(found, expected, "{file} {text}");
        }
    }

    #[test]
    fn a_folder_on_the_path_that_only_a_run_shows_is_computed() {
        for (text, is_computed) in [
            ("sys.path.insert(0, os.path.join(HERE, 'sup' + 'port'))\n", true),
            ("sys.path.append(os.environ['SUPPORT'])\n", true),
            ("sys.path.insert(0, str(HERE / '..' / 'support'))\n", false),
            ("sys.path.insert(0, os.path.dirname(HERE))\nsys.path.insert(0, '..')\n", false),
            ("graph.path.append('edge')\nassert 'edge' in sys.path\n", false),
        ] {
            assert_eq!(has_computed_path("tests/a.py", text, |path| path == "support"), is_computed, "{text}");
        }
    }

    #[test]
    fn examples_that_a_file_copies_are_found() {
        let files = ["ex/five.py", "ex/deep/six.py", "ex/test_a.py", "five.py", "other/five.py"];
        let files: BTreeSet<String> = files.map(str::to_owned).into();
        for (text, folder, expected) in [
            ("pytester.copy_example('five.py')\n", "ex/", &["ex/five.py"][..]),
            ("pytester.copy_example('deep')\n", "ex/", &["ex/deep/six.py"]),
            (
                "@mark.pytester_example_path('deep')\ndef test_b(testdir):\n    testdir.copy_example('six.py')\n",
                "ex/",
                &["ex/deep/six.py"],
            ),
            ("def test_a(pytester):\n    pytester.copy_example()\n", "ex/", &["ex/test_a.py"]),
            ("pytester.copy_example('five.py')\n", "", &["five.py"]),
            ("pytester.makepyfile('five.py')\n", "ex/", &[]),
        ] {
            let found: Vec<String> = examples(text, &[folder.to_owned()], &files).into_iter().collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn programs_that_a_file_runs_are_found() {
        for (text, modules, path) in [
            ("subprocess.run([sys.executable, '-m', 'support.checks'])\n", &["support/checks"][..], ""),
            ("subprocess.run('python3 support/checks.py ' + a, shell=True)\n", &[], "support/checks.py"),
            ("os.system(f'python3 support/checks.py {a}')\n", &[], "support/checks.py"),
            ("print('-m support.checks')\n", &[], ""),
        ] {
            let (found, paths) = programs("tests/test_a.py", text);
            assert_eq!(found, modules, "{text}");
            assert_eq!(paths.contains(&"support/checks.py".to_owned()), !path.is_empty(), "{text}");
        }
    }

    #[test]
    fn modules_that_calls_load_are_found() {
        for (text, modules, shown, is_plugin) in [
            ("importlib.import_module('support.checks')", &["support/checks"][..], Shown::All, false),
            ("import_module(\n    'support.checks',\n)", &["support/checks"], Shown::All, false),
            ("__import__(NAME)\nNAME = 'support.checks'\n", &["support/checks"], Shown::Perhaps, false),
            ("import_module('.checks', 'support')", &["/checks", "support", "support/checks"], Shown::Perhaps, false),
            ("import_module('support.' + name)", &[], Shown::Part, false),
            ("import_module(f'support.{name}')", &[], Shown::Part, false),
            ("import_module('support.%s' % name)", &[], Shown::Part, false),
            ("for it in pkgutil.iter_modules(['support']):", &[], Shown::Part, false),
            (
                "pytest_plugins = [\n    'support.plugin',\n    'pytester',\n]",
                &["support/plugin", "pytester"],
                Shown::All,
                true,
            ),
            ("pytest_plugins = [f'support.{it}' for it in names]", &[], Shown::Part, true),
            ("pytest_plugins = ['support_' + it for it in names]", &["support_"], Shown::Part, true),
            ("pytest_plugins = ['support.a'] + OTHERS", &["support/a"], Shown::All, true),
            ("config.pluginmanager.import_plugin('support.plugin')", &["support/plugin"], Shown::All, true),
            ("from importlib import import_module as im\nim('support.checks')", &["support/checks"], Shown::All, false),
            ("load = importlib.import_module\nload('support.checks')", &["support/checks"], Shown::All, false),
            (
                "getattr(importlib, 'import_module')('support.checks')",
                &["import_module", "support/checks"],
                Shown::All,
                false,
            ),
            ("exec('from support import checks')", &["support", "support/checks"], Shown::All, false),
            (
                "subprocess.run([sys.executable, '-c', 'from support.checks import same; same(%d, 5)' % add(2, 3)])",
                &["support/checks", "support/checks/same"],
                Shown::All,
                false,
            ),
            ("os.system('python3 -c \"import support.checks\"')", &["support/checks"], Shown::All, false),
            (
                "CODE = 'import sys\\nimport support.checks'\nPopen(['python3', '-c', CODE])",
                &["sys", "support/checks"],
                Shown::All,
                false,
            ),
        ] {
            let modules = modules.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(loads("tests/a.py", text), [Load { modules, paths: Vec::new(), shown, is_plugin }], "{text}");
        }
        assert!(loads("tests/a.py", "my_import_module('a')\nexec(code)\n").is_empty());
        assert!(loads("tests/a.py", "subprocess.run(['sh', '-c', 'ls support'])\n").is_empty());
        for text in [
            "spec_from_file_location('checks', os.path.join(os.path.dirname(__file__), '..', 'support', 'checks.py'))",
            "FILE = HERE / 'support' / 'checks.py'\nspec = spec_from_file_location('checks', FILE)\n",
            "runpy.run_path('support/checks.py')",
            "exec(open('support/checks.py').read())",
        ] {
            let found = loads("tests/a.py", text);
            let has = |load: &Load| load.paths.contains(&"support/checks.py".to_owned());
            assert!(found.len() == 1 && found.iter().all(has), "{text}: {found:?}");
        }
    }
}
