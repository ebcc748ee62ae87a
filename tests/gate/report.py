"""What a run of the tests found, written down for the gate. A plugin of pytest.

    python -m pytest -p tests.gate.report --gate-report=FILE

Each line of the file is one JSON object. The first is `started`. `failed` is a test with the phase
and the first line of what went wrong; `broken` is anything after which a run proves nothing: a
file that could not be collected, a worker that died, an error inside pytest. The last line is
`finished`, with pytest's exit status; where it is missing, the run was cut.

The summary of the run gets the processor seconds of each folder and the files that took longest. A
worker measures a test from its setup to the end of its teardown, with the child processes that it
waited for.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

OPTION: Final = "--gate-report"
LONGEST: Final = 10
_FIRST_LINE: Final = 300


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, metavar="FILE", help="write what failed into FILE, for the gate")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(_Worker())
        return
    file = config.getoption(OPTION)
    if not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Worker())
    config.pluginmanager.register(_Report(Path(file) if file else None))


def processor_s() -> float:
    """Seconds of the processor that this process and the children that it waited for have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class _Worker:
    """Notes on the last report of each test what the test cost."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._began = processor_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("processor_s", processor_s() - self._began))
        return report


class _Report:
    """Gathers the reports of all workers in the process that prints the summary."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._folders: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()

    def pytest_sessionstart(self) -> None:
        self._write("started")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path = report.nodeid.partition("::")[0]
        self._seconds[path] += report.duration
        used = sum(value for name, value in report.user_properties if name == "processor_s")
        self._files[path] += used
        self._folders["/".join(path.split("/")[:-1][:3])] += used
        if report.failed:
            # What xdist says of a worker that died is the report of no phase.
            kind = "failed" if report.when in ("setup", "call", "teardown") else "broken"
            self._write(kind, test=report.nodeid, when=report.when, why=_first_line(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("broken", test=report.nodeid, when="collect", why=_first_line(report))

    def pytest_internalerror(self, excrepr: object) -> None:
        self._write("broken", test="pytest", when="internal", why=str(excrepr)[-_FIRST_LINE:])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        if error:
            self._write("broken", test=node.gateway.id, when="worker", why=str(error)[:_FIRST_LINE])

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._write("finished", status=int(exitstatus))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor seconds by folder")
        for folder, used in self._folders.most_common():
            terminalreporter.line(f"{used:8.2f} {folder}")
        terminalreporter.line(f"{self._folders.total():8.1f} in all")
        terminalreporter.section("longest files: seconds, of the processor")
        for path, seconds in self._seconds.most_common(LONGEST):
            terminalreporter.line(f"{seconds:8.1f} {self._files[path]:8.1f} {path}")

    def _write(self, kind: str, **facts: object) -> None:
        """Write a line. Where that fails nothing more is written: the report stays without its
        end, and the run goes on."""
        if self._file is None:
            return
        try:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, **facts}) + "\n")
        except OSError as error:
            sys.stderr.write(f"The report for the gate cannot be written: {error}.\n")
            self._file = None


def _first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The line of an error that says most: pytest's short form, or the last line of its text."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no message"
    return (lines[0] if crash is not None else lines[-1])[:_FIRST_LINE]
