//! The Python program that runs pytest or unittest and writes its results when all tests have ended.

/// The beginning of the program. The runner is imported before the workspace can be: with `-m`, or with the workspace in
/// `PYTHONPATH`, a file named like the runner or a module of its own would be imported in its place.
const BEGIN: &str = r#"import os, sys, types, RUNNER
from xml.sax.saxutils import quoteattr
OWN = ("unittest.case", "_pytest.outcomes", "_pytest.python", "_pytest.python_api", "_pytest.raises", "_pytest.reports", "_pytest.runner")
def codes():
    places = [sys.modules[name] for name in OWN if name in sys.modules]
    places += [it for place in places for it in vars(place).values() if isinstance(it, type) and it.__module__ in OWN]
    return {(place.__name__, name): it.__code__ for place in places for name, it in vars(place).items() if isinstance(it, types.FunctionType)}
def report(all):
    if any(now.get(key) is not code for key, code in before.items()):
        sys.exit("the code under test replaced functions of the test runner: %s" % [key for key in before if now.get(key) is not before[key]])
    with os.fdopen(3, "w", errors="replace") as out:
        out.write("<testsuite>")
        for name, words in all.items():
            word = "failure" if "failed" in words else "skipped" if "skipped" in words else "" if "passed" in words else "skipped"
            out.write("<testcase name=%s>%s</testcase>\n" % (quoteattr(name), word and "<%s/>" % word))
        out.write("</testsuite>\n")
before = codes()
places = [PATH]
sys.path += places
seen = {}
"#;

/// pytest loads its plug-ins while the workspace comes last, so that a package of the workspace replaces none that is
/// installed. pytest-cov imports `coverage` only later.
const PYTEST: &str = r#"class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self):
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
/// imported from, besides the working directory.
pub(super) fn program(runner: &str, path: &[&str]) -> String {
    let more: String = path.iter().filter(|it| **it != ".").map(|it| format!(", os.path.abspath(\"{it}\")")).collect();
    let begin = BEGIN.replace("RUNNER", runner).replace("PATH", &format!("os.getcwd(){more}"));
    format!("{begin}{}", if runner == "pytest" { PYTEST } else { UNITTEST })
}
