"""What every test can use, and the report of what was skipped.

A skip is a hole in what a green run says. Here each one is named with its reason at the end of the
run, and where `CI=true` it is a failure: continuous integration has everything installed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from _pytest.assertion import rewrite
from hypothesis import settings

from tests.support import hanging, planting
from tests.support.profiles import SUITE

GENEROUS_S = 30.0
SLOWEST = 8
"""How many times longer everything may take on the slowest machine that the tests pass on: one
with a third of the speed, beside other work."""


class FailAfter(Protocol):
    """The type of the fixture `fail_after`."""

    def __call__(self, seconds: float = GENEROUS_S) -> AbstractAsyncContextManager[None]: ...


@pytest.fixture
def fail_after() -> FailAfter:
    """`async with fail_after(5): ...` fails the test when the block takes longer.

    A guard against hanging, in seconds of the real clock of a usual machine, so a slow one gets
    `SLOWEST` times as many; it is no means to wait for something.
    """

    @asynccontextmanager
    async def guard(seconds: float = GENEROUS_S) -> AsyncIterator[None]:
        timer = asyncio.timeout(seconds * SLOWEST)
        try:
            async with timer:
                yield
        except TimeoutError:
            if not timer.expired():
                raise
            pytest.fail(f"not finished after {seconds:g} s")

    return guard


LONGEST_FIRST = (
    "tests/crash/",
    "tests/scenario/gateway/",
    "tests/replicas/",
    "tests/scenario/process/",
    "tests/scenario/test_store_trouble.py",
    "tests/soak/",
    "tests/browser/",
    "tests/stateful/",
    "tests/contract/",
)
"""What takes long: a file of it that is begun last leaves the other workers idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        found = (at for at, one in enumerate(LONGEST_FIRST) if item.nodeid.startswith(one))
        return next(found, len(LONGEST_FIRST))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What was loaded stays, and each look for garbage would go through all of it: half the time
    of a test with a database went there."""
    gc.collect()
    gc.freeze()
    gc.enable()


def share_rewriting(config: pytest.Config, *, worker: int, workers: int) -> None:
    """Rewrite the assertions of the files that no other worker has come to yet.

    In a fresh checkout that takes longer than loading the files. All workers begin at the same
    time, and if they went through the files in the same order, each of them would rewrite all.
    """
    if sys.dont_write_bytecode:
        return
    skipped = set(config.getini("norecursedirs"))
    files = sorted(
        path
        for root in (Path(argument.partition("::")[0]) for argument in config.args)
        for pattern in ("test_*.py", "conftest.py")
        for path in root.absolute().rglob(pattern)
        if skipped.isdisjoint(path.parts)
    )
    first = len(files) * worker // workers
    state = config.stash[rewrite.assertstate_key]
    for path in files[first:] + files[:first]:
        kept = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if not kept.exists() and rewrite.try_makedirs(kept.parent):
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, source_hash, kept)


class Skips:
    """Where the skips of a run are noted: in the process that prints the summary.

    With several workers that is the one which runs no test, so it reads reports, never items.
    """

    def __init__(self) -> None:
        self.by_reason: dict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        self.by_reason[_reason(report)].add(report.nodeid)


SKIPPED = pytest.StashKey[Skips]()


settings.load_profile(SUITE)
"""Before `--hypothesis-profile` names another."""


def pytest_configure(config: pytest.Config) -> None:
    # Until everything is loaded, see `pytest_collection_finish`.
    gc.disable()
    planting.name_folder()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control lets what it starts in the background ignore Ctrl-C, and so
        # would every program that a test starts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if worker := getattr(config, "workerinput", None):
        share_rewriting(
            config,
            worker=int(worker["workerid"].removeprefix("gw")),
            workers=worker["workercount"],
        )
    skips = Skips()
    config.stash[SKIPPED] = skips
    config.pluginmanager.register(skips)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        shutil.rmtree(planting.folder(), ignore_errors=True)
    # Loaded only by tests that made a database: the others have no need of a driver.
    if templates := sys.modules.get("tests.support.templates"):
        asyncio.run(templates.drop_templates())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    with hanging.limited(hanging.limit_s()):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        _refuse_skip(report)
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.removeprefix("Skipped: ")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") == "true":
        said = f"{report.nodeid} was skipped, and CI skips nothing: {_reason(report)}"
        report.outcome = "failed"
        report.longrepr = said


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    skipped = config.stash[SKIPPED].by_reason
    if not skipped:
        return
    terminalreporter.section("not tested here")
    for reason, tests in sorted(skipped.items()):
        terminalreporter.line(f"{len(tests)} x {reason}")
        for test in sorted(tests):
            terminalreporter.line(f"    {test}")
