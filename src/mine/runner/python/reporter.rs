//! The Python program that runs pytest or unittest and writes its results when all tests have ended.

/// The beginning of the program. The runner is imported before the workspace can be: with `-m`, or with the workspace in
/// `PYTHONPATH`, a file named like the runner or a module of its own would be imported in its place.
const BEGIN: &str = r#"import os, sys, types, RUNNER
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
    with os.fdopen(3, "w", errors="replace") as out:
        out.write("<testsuite>")
        for name, words in all.items():
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
refuse([sys.modules.get("sitecustomize"), sys.modules.get("usercustomize")])
before = codes()
places = [PATH]
sys.path += places
seen = {}
"#;

/// pytest loads its plug-ins while the workspace comes last, so that a package of the workspace replaces none that is
/// installed. Plug-ins of the workspace are refused if the commit has none. This hook runs before the `conftest.py` files
/// are loaded. pytest-cov imports `coverage` only later.
const PYTEST: &str = r#"class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        if not is_here(pytest):
            plugins = early_config.pluginmanager.get_plugins()
            refuse([it if isinstance(it, types.ModuleType) else sys.modules.get(getattr(it, "__module__", "")) for it in plugins])
        if "pytest_cov" in sys.modules:
            import coverage
        sys.path[:] = places + [it for it in sys.path if it not in places]
    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed" or report.when == "call":
            seen.setdefault(report.nodeid, set()).add(report.outcome)
    def pytest_collectreport(self, report):
        if report.failed:
            seen[report.nodeid] = {"failed"}
code = pytest.main(plugins=[Plugin()])
now = codes()
report(seen)
sys.exit(code)"#;

const UNITTEST: &str = r#"sys.path[:] = places + [it for it in sys.path if it not in places]
class Result(unittest.TextTestResult):
    def addSuccess(self, test):
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
/// module of the workspace before the tests.
pub(super) fn program(runner: &str, path: &[&str], is_sealed: bool) -> String {
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
    format!("{begin}{rest}")
}
