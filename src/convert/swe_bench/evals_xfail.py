"""Reports a test that fails as expected as passed, because SWE-bench counts it so. Written by `evals convert`."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    if report.skipped and hasattr(report, "wasxfail"):
        # The summary shows the reason of a failure behind the name of the test.
        report.longrepr = None
        return "passed", "x", "PASSED"
