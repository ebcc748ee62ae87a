"""The figures of docs/performance.md. Run with ``make bench``; each prints one line."""

import logging
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest
import structlog

from tests.benchmarks.load import (
    Figures,
    InstantModel,
    conversation,
    findable,
    flood,
    prepared,
    written_bytes,
)
from tests.scenario.engine import world


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Logs of every message would be measured too."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    yield
    structlog.reset_defaults()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]):
    """Print past the capture."""

    def line(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text}")

    return line


async def test_messages_of_200_sessions_at_once(tmp_path: Path, say) -> None:
    async with world(await prepared(tmp_path, InstantModel()), findable()) as running:
        await flood(running, messages=400, sessions=200, first=1)
        figures = await flood(running, messages=4000, sessions=200, first=2)
        say(f"200 sessions, no tools: {figures.rate:.0f} messages/s")


async def test_messages_with_one_read_file_each(tmp_path: Path, say) -> None:
    async with world(await prepared(tmp_path, InstantModel(reads=True)), findable()) as running:
        await flood(running, messages=200, sessions=200, first=1)
        figures = await flood(running, messages=2000, sessions=200, first=2)
        say(f"200 sessions, one read_file a turn: {figures.rate:.0f} messages/s")


async def test_one_session_alone(tmp_path: Path, say) -> None:
    async with world(await prepared(tmp_path, InstantModel()), findable()) as running:
        await conversation(running, messages=100, first=1)
        figures = await conversation(running, messages=1000, first=2)
        say(
            f"one session: p50 {figures.percentile(0.5):.1f} ms, "
            f"p99 {figures.percentile(0.99):.1f} ms from accept to delivered"
        )


async def test_cost_after_ten_thousand_messages(tmp_path: Path, say) -> None:
    async with world(await prepared(tmp_path, InstantModel()), findable()) as running:
        marks: dict[int, Figures] = {}
        done, written, busy = 0, {}, {}
        for until in (100, 600, 9_900, 10_400):
            before, worked = written_bytes(), process_time()
            marks[until] = await conversation(running, messages=until - done, first=until)
            written[until] = (written_bytes() - before) / (until - done)
            busy[until] = (process_time() - worked) * 1000 / (until - done)
            done = until
        early, late = marks[600], marks[10_400]
        say(
            f"cost per message: {1000 / early.rate:.2f} ms after 100, {1000 / late.rate:.2f} ms "
            f"after 10,000 ({early.rate / late.rate:.2f} times); of the processor "
            f"{busy[600]:.2f} and {busy[10_400]:.2f} ms ({busy[10_400] / busy[600]:.2f} times); "
            f"bytes written a message: "
            f"{written[600]:.0f}, then {written[10_400]:.0f}"
        )


async def test_two_hundred_sessions_with_a_slow_model(tmp_path: Path, say) -> None:
    setup = await prepared(tmp_path, InstantModel(latency_s=0.5))
    async with world(setup, findable()) as running:
        figures = await flood(running, messages=200, sessions=200)
        say(f"200 messages of 200 sessions, model of 500 ms: {figures.seconds:.2f} s")
