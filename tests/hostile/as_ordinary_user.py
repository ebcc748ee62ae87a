"""Runs tests in one process, as the user who starts it, and prints how each of them ended.

Run as `python -m tests.hostile.as_ordinary_user FOLDER ID...`. It hides from other processes of its
user, as `gatehouse serve` does, because it is the gateway of these tests.
"""

import json
import os
import sys

import pytest

from adapters.sandbox.power_drop import hide_from_others


class Reports:
    """The first phase of each test that did not pass, or that it passed."""

    def __init__(self) -> None:
        self.ended: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.ended.get(report.nodeid, ("passed", ""))[0] == "passed":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else None
            self.ended[report.nodeid] = (report.outcome, reason or report.longreprtext)


def main(folder: str, *chosen: str) -> None:
    hide_from_others()
    reports = Reports()
    # Files and folders of its own, where the one who tidies up afterwards may go.
    options = ("-p", "no:terminal", "-p", "no:benchmark", "--basetemp", f"{folder}/tests")
    pytest.main([*options, *chosen], plugins=[reports])
    sys.stdout.write(json.dumps({"user": os.geteuid(), "ended": reports.ended}))


if __name__ == "__main__":
    main(*sys.argv[1:])
