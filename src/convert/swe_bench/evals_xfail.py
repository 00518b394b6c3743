"""Reports tests that are marked as failing as SWE-bench counts them. Written by `evals convert`.

A test that fails as expected (XFAIL) has passed. One that passes unexpectedly (XPASS) has not.
"""

import pytest


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
