//! The Python program that runs pytest or unittest and writes its results when all tests have ended.

/// The beginning of the program. The runner is imported before the workspace can be: with `-m`, or with the workspace in
/// `PYTHONPATH`, a file named like the runner or a module of its own would be imported in its place.
///
/// A test counts only if its function, without decorators that set `__wrapped__`, is in a guarded file, in the file that
/// the test is named after, or in an installed package that has a function of this name or wraps one of a guarded file. It
/// does not count if it is another test of the same class under this name, or if the code under test decides in that class
/// what passes. Otherwise code under test could put its own tests in place of the hidden ones. Compiled modules are not
/// read, because they need not fit their sources.
const BEGIN: &str = r#"import os, sys, types, RUNNER
import functools, re
from xml.sax.saxutils import quoteattr
OWN = ("unittest.case", "unittest.loader", "unittest.main", "unittest.result", "unittest.runner", "unittest.suite", "_pytest.outcomes", "_pytest.python", "_pytest.python_api", "_pytest.raises", "_pytest.reports", "_pytest.runner")
def is_own(name):
    return name in OWN or str(name).split(".")[0] == "pluggy"
def codes():
    places = [it for name, it in list(sys.modules.items()) if is_own(name)]
    places += [it for place in places for it in vars(place).values() if isinstance(it, type) and is_own(it.__module__)]
    all = [(place, name, it.__func__ if name == "from_call" and isinstance(it, classmethod) else it) for place in places for name, it in vars(place).items()]
    return {(place.__name__, name): it.__code__ for place, name, it in all if isinstance(it, types.FunctionType)}
def report(all):
    if any(now.get(key) is not code for key, code in before.items()):
        sys.exit("the code under test replaced functions of the test runner: %s" % [key for key in before if now.get(key) is not before[key]])
    if sys.pycache_prefix != os.devnull:
        sys.exit("the code under test changed where compiled modules are read")
    if strange:
        print("not counted, because their functions are in no file of tests:", *sorted(strange)[:9], file=sys.stderr)
    with os.fdopen(3, "w", errors="replace") as out:
        out.write("<testsuite>")
        for name, words in all.items():
            if name in strange and "failed" not in words:
                continue
            word = "failure" if "failed" in words else "skipped" if "skipped" in words else "" if "passed" in words else "skipped"
            out.write("<testcase name=%s>%s</testcase>\n" % (quoteattr(name), word and "<%s/>" % word))
        out.write("</testsuite>\n")
def is_here(module):
    file = os.path.realpath(getattr(module, "__file__", None) or os.sep)
    return file.startswith(os.path.realpath(os.getcwd()) + os.sep) and not file.startswith(os.path.realpath(sys.prefix) + os.sep)
def refuse(modules):
    found = [module.__file__ for module in modules if is_here(module)]
    if found and IS_SEALED:
        sys.exit("modules of the workspace were loaded before the tests, and the commit has no such plug-ins: %s" % found)
sys.pycache_prefix = os.devnull
top = os.path.realpath(os.getcwd())
is_test_file = re.compile(GUARDED_FORM).fullmatch
test_files = set(GUARDED_FILES)
strange = set()
def real(path):
    return os.path.realpath(os.path.join(top, str(path)))
def is_guarded(file, own):
    path = os.path.relpath(file, top)
    return file == own or path in test_files or (not path.startswith("..") and bool(is_test_file(path)))
def counts(it, name, own, owner=None, depth=9):
    for _ in range(99):
        if isinstance(it, functools.partial):
            it = it.func
        elif getattr(it, "__wrapped__", None) is not None:
            it = it.__wrapped__
        elif isinstance(it, types.MethodType):
            it = it.__func__
        else:
            break
    code = getattr(it, "__code__", None)
    if not isinstance(code, types.CodeType):
        return False
    file, known = real(code.co_filename), code.co_name
    if is_guarded(file, own):
        return name == known or not known.startswith("test") or not callable(getattr(owner, known, None))
    is_installed = not file.startswith(top + os.sep) and bool({"site-packages", "dist-packages"} & set(file.split(os.sep)))
    return is_installed and (known == name or (depth > 0 and any(holds(cell, name, own, owner, depth - 1) for cell in it.__closure__ or ())))
def holds(cell, name, own, owner, depth):
    try:
        it = cell.cell_contents
    except ValueError:
        return False
    return isinstance(it, types.FunctionType) and name.startswith(it.__code__.co_name) and counts(it, name, own, owner, depth)
def is_judged_by_code(kind, own):
    import unittest
    for it in kind.__mro__ if issubclass(kind, unittest.TestCase) else ():
        for name, value in vars(it).items():
            value = getattr(value, "__func__", value)
            decides = name.startswith("assert") or name in ("fail", "run", "__call__", "_callTestMethod", "id")
            if decides and hasattr(unittest.TestCase, name) and isinstance(value, types.FunctionType):
                file = real(value.__code__.co_filename)
                if file.startswith(top + os.sep) and not is_guarded(file, own):
                    return True
    return False
def counts_doctest(it, own):
    file = real(it.filename or "")
    if not is_guarded(file, own) or not os.path.isfile(file):
        return False
    with open(file, encoding="utf-8", errors="replace") as opened:
        text = opened.read()
    lines = [line.strip() for example in it.examples for line in example.source.splitlines()]
    return bool(lines) and all(line in text for line in lines)
refuse([sys.modules.get("sitecustomize"), sys.modules.get("usercustomize")])
before = codes()
places = [PATH]
sys.path += places
seen = {}
"#;

/// The part of the program for pytest. pytest loads its plug-ins while the workspace comes last on the path, so that a
/// package of the workspace replaces none that is installed. Plug-ins of the workspace are refused if the commit has none.
/// This hook runs before the `conftest.py` files are loaded. pytest-cov imports `coverage` only later. The tests run in
/// this process, without the workers of pytest-xdist, because the functions of the tests are seen only here. Coverage is
/// not measured: if its limit were not reached, pytest would fail although no test does. As a wrapper, this hook runs
/// before that of pytest-cov, which starts the measurement.
const PYTEST: &str = r#"class NoCoverage:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(self, early_config):
        if hasattr(early_config.known_args_namespace, "cov_source"):
            early_config.known_args_namespace.cov_source = []
        yield
class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        if not is_here(pytest):
            plugins = early_config.pluginmanager.get_plugins()
            refuse([it if isinstance(it, types.ModuleType) else sys.modules.get(getattr(it, "__module__", "")) for it in plugins])
        if "pytest_cov" in sys.modules:
            import coverage
        sys.path[:] = places + [it for it in sys.path if it not in places]
    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        if hasattr(config.option, "dist"):
            config.option.dist, config.option.tx, config.option.numprocesses = "no", [], None
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        own = real(getattr(item, "path", None) or item.fspath)
        if isinstance(item, pytest.Function):
            name, owner = getattr(item, "originalname", None) or item.name.split("[")[0], item.cls or item.module
            is_of_tests = counts(item.obj, name, own, owner) and not is_judged_by_code(item.cls or object, own)
        elif hasattr(item, "dtest"):
            is_of_tests = counts_doctest(item.dtest, own)
        else:
            is_of_tests = True
        if not is_of_tests:
            strange.add(item.nodeid)
        yield
    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed" or report.when == "call":
            seen.setdefault(report.nodeid, set()).add(report.outcome)
    def pytest_collectreport(self, report):
        if report.failed:
            seen[report.nodeid] = {"failed"}
code = pytest.main(plugins=[NoCoverage(), Plugin()])
now = codes()
report(seen)
sys.exit(code)"#;

const UNITTEST: &str = r#"sys.path[:] = places + [it for it in sys.path if it not in places]
start = os.path.join(top, sys.argv[sys.argv.index("-s") + 1]) if "-s" in sys.argv else top
def own_of(name):
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        for end in os.sep + "__init__.py", ".py":
            file = os.path.join(start, *parts[:count]) + end
            if os.path.isfile(file):
                return real(file)
def is_of_tests(test):
    own, kind = own_of(test.id()), type(test)
    if kind.__module__ == "doctest" and kind in vars(sys.modules["doctest"]).values():
        return counts_doctest(test._dt_test, own)
    if isinstance(test, unittest.FunctionTestCase):
        return counts(test._testFunc, test.id(), own)
    name = getattr(test, "_testMethodName", "")
    return counts(getattr(test, name, None), name, own, kind) and not is_judged_by_code(kind, own)
class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        if not is_of_tests(test):
            strange.add(test.id())
        seen.setdefault(test.id(), set()).add("passed")
        super().addSuccess(test)
unittest.TextTestRunner.resultclass = Result
result = unittest.main(module=None, exit=False).result
now = codes()
failed = [test for test, _ in result.failures + result.errors] + result.unexpectedSuccesses
for word, tests in ("failed", failed), ("skipped", [test for test, _ in result.skipped + result.expectedFailures]):
    for test in tests:
        seen.setdefault(getattr(test, "test_case", test).id(), set()).add(word)
report(seen)
sys.exit(not result.wasSuccessful())"#;

/// Returns the program for a runner, `pytest` or `unittest`. `path` has the folders of the workspace that modules are
/// imported from, besides the working directory. With `is_sealed`, the program ends if Python itself or pytest loaded a
/// module of the workspace before the tests. `guarded` has globs of the files that tests may be in.
pub(super) fn program(runner: &str, path: &[&str], is_sealed: bool, guarded: &[String]) -> String {
    let more: String = path.iter().filter(|it| **it != ".").map(|it| format!(", os.path.abspath(\"{it}\")")).collect();
    let (modules, rest) = match runner {
        // The functions of unittest are compared for pytest, too.
        "pytest" => ("pytest, unittest", PYTEST),
        _ => (runner, UNITTEST),
    };
    let begin = BEGIN
        .replace("RUNNER", modules)
        .replace("PATH", &format!("os.getcwd(){more}"))
        .replace("IS_SEALED", if is_sealed { "True" } else { "False" });
    // JSON writes texts and lists of texts as Python does. The paths are replaced last, because they may contain any text.
    let (forms, files): (Vec<&String>, Vec<&String>) = guarded.iter().partition(|glob| glob.contains(['*', '{']));
    let forms: Vec<String> = forms.into_iter().map(|glob| form(glob)).collect();
    let begin = begin
        .replace("GUARDED_FORM", &serde_json::json!(forms.join("|")).to_string())
        .replace("GUARDED_FILES", &serde_json::json!(files).to_string());
    format!("{begin}{rest}")
}

/// Returns the regular expression of a glob of plain names, stars and braces, as Python reads it.
fn form(glob: &str) -> String {
    let mut found = String::new();
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        let (taken, part) = match c {
            _ if rest.starts_with("**/") => (3, "(?:.*/)?".to_owned()),
            _ if rest.starts_with("**") => (2, ".+".to_owned()),
            '*' => (1, "[^/]*".to_owned()),
            '{' => (1, "(?:".to_owned()),
            ',' => (1, "|".to_owned()),
            '}' => (1, ")".to_owned()),
            '.' => (1, "[.]".to_owned()),
            other => (other.len_utf8(), other.to_string()),
        };
        found.push_str(&part);
        rest = rest.get(taken..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarded_files_are_a_form_and_a_list_of_python() {
        for (glob, expected) in [
            ("**/{test,tests}/**", "(?:.*/)?(?:test|tests)/.+"),
            ("**/test_*.py", "(?:.*/)?test_[^/]*[.]py"),
            ("{test,conftest}.py", "(?:test|conftest)[.]py"),
        ] {
            assert_eq!(form(glob), expected, "{glob}");
        }
        let guarded = ["tests/**", "**/test_*.py", "e2e/PATH it's.py"].map(str::to_owned);
        let program = program("unittest", &["src", "."], true, &guarded);
        assert!(program.contains("re.compile(\"tests/.+|(?:.*/)?test_[^/]*[.]py\")"), "{program}");
        assert!(program.contains("test_files = set([\"e2e/PATH it's.py\"])"), "{program}");
    }
}
