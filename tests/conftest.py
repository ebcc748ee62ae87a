"""What every test can use, and the report of what was skipped.

A skip is a hole in what a green run says. Here each one is named with its reason at the end of the
run, and where `CI=true` it is a failure: continuous integration has everything installed.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import pytest

SKIPPED = pytest.StashKey[dict[str, list[str]]]()
GENEROUS_S = 30.0


class FailAfter(Protocol):
    """The type of the fixture `fail_after`."""

    def __call__(self, seconds: float = GENEROUS_S) -> AbstractAsyncContextManager[None]: ...


@pytest.fixture
def fail_after() -> FailAfter:
    """`async with fail_after(5): ...` fails the test when the block takes longer.

    A guard against hanging, in seconds of the real clock; it is no means to wait for something.
    """

    @asynccontextmanager
    async def guard(seconds: float = GENEROUS_S) -> AsyncIterator[None]:
        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                yield
        except TimeoutError:
            if not timer.expired():
                raise
            pytest.fail(f"not finished after {seconds:g} s")

    return guard


def pytest_configure(config: pytest.Config) -> None:
    skipped: dict[str, list[str]] = defaultdict(list)
    config.stash[SKIPPED] = skipped


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _note_skip(item.config, report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _note_skip(collector.config, report)
    return report


def _note_skip(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    config.stash[SKIPPED][reason].append(report.nodeid)
    if os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, and CI skips nothing: {reason}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    skipped = config.stash[SKIPPED]
    if not skipped:
        return
    terminalreporter.section("not tested here")
    for reason, tests in sorted(skipped.items()):
        terminalreporter.line(f"{len(tests)} x {reason}")
        for test in sorted(set(tests)):
            terminalreporter.line(f"    {test}")
