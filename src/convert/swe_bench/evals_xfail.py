"""Reports tests as SWE-bench counts and names them. Written by `evals convert`.

A test that is marked as failing and fails as expected (XFAIL) has passed. One that passes unexpectedly (XPASS) has not.
The source's reader of logs cuts or rewrites names of tests of some repositories. These are reported by both names.
"""

import re

import pytest

# What the reader of logs does for the repository: `cut` at white space, shorten paths in `options`, number `buttons`.
REWRITES = "@REWRITES@".split()


def rewritten(name):
    if "buttons" in REWRITES:
        name = name.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3")
    if "cut" in REWRITES and "::" in name.split()[0]:
        name = name.split()[0]
    found = re.search(r"(.*?)\[(.*)\]", name) if "options" in REWRITES else None
    if found:
        main, option = found.groups()
        if option.startswith("/") and not option.startswith("//") and "*" not in option:
            option = "/" + option.split("/")[-1]
        name = "%s[%s]" % (main, option)
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    if not hasattr(report, "wasxfail"):
        return None
    if report.skipped:
        # The summary shows the reason of a failure behind the name of the test.
        report.longrepr = None
        return "passed", "x", "PASSED"
    if report.passed:
        return "failed", "X", "FAILED"
    return None


def pytest_terminal_summary(terminalreporter):
    words = (("passed", "PASSED"), ("skipped", "SKIPPED"), ("error", "ERROR"), ("failed", "FAILED"))
    reports = [(word, report) for kind, word in words for report in terminalreporter.stats.get(kind, [])]
    names = [(word, report.nodeid, rewritten(report.nodeid)) for word, report in reports if hasattr(report, "nodeid")]
    names = [(word, new) for word, old, new in names if new != old]
    if names:
        terminalreporter.write_sep("=", "short test summary info")
    for word, name in names:
        terminalreporter.write_line(word + " " + name)
