"""The figures of subagents in docs/performance.md: ``make bench`` prints a line for each."""

import asyncio
import gc
import json
import logging
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import pytest
import structlog

from runtime.features.subagents.rows import agent_tree
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.settings import Limits
from runtime.ports.bus import EVENTS
from runtime.ports.model import ModelRequest
from runtime.store.migrate import migrate
from tests.fakes.model import Gate, Said
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told, tree

CHILDREN, BATCH = 200, 50
ONE_BY_ONE, THOUSAND = 30, 1000
LIVE = 40
"""Fewer than a process runs turns at once (`workers.turns`)."""
MANY = Limits(
    max_depth=3,
    live_per_parent=2000,
    live_per_tree=2000,
    spawned_per_run=2000,
    spawned_per_minute=2000,
)


@pytest.fixture(autouse=True)
def settled_memory() -> Iterator[None]:
    """As `gateway serve` does when it is ready; a test run has loaded more than a gateway."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Logs of every run would be measured too."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    yield
    structlog.reset_defaults()


async def test_a_tree_of_200_children_settles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await migrate(url)

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return "done"
        if "accepted" in told(request):
            return "They are on their way."
        batch = {"mode": "background", "agents": [{"task": "x"}] * BATCH}
        return Said(calls=(("sessions_spawn", json.dumps(batch)),) * (CHILDREN // BATCH))

    async with engine(tmp_path, url, script, limits=MANY, concurrency=10) as at:
        began = time.perf_counter()
        await at.says("go")
        found = await settled(at)
        took = time.perf_counter() - began
    assert len(found) == CHILDREN
    with capsys.disabled():
        print(f"\n  {CHILDREN} children, 10 at once: settled after {took:.2f} s")


async def test_from_spawn_to_first_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, with nothing else at work: from the spawning response of the model to
    the first request of the child."""
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await migrate(url)
    spawned: list[float] = []
    began: list[float] = []
    over = asyncio.Event()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            began.append(time.perf_counter())
            return "done"
        if len(spawned) == ONE_BY_ONE:
            over.set()
            return "That was all."
        spawned.append(time.perf_counter())
        return spawn(task="x")

    async with (
        engine(tmp_path, url, script, limits=MANY, concurrency=10) as at,
        asyncio.timeout(60),
    ):
        await at.says("go")
        await over.wait()
        await settled(at)
    took = sorted((after - before) * 1000 for before, after in zip(spawned, began, strict=True))
    with capsys.disabled():
        print(
            f"\n  spawn to first step, {len(took)} children one by one: "
            f"p50 {median(took):.1f} ms, longest {took[-1]:.1f} ms"
        )


@pytest.mark.parametrize("settles", [True, False], ids=["settled", "live"])
async def test_a_summary_of_1000_agents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settles: bool
) -> None:
    """All of them have settled; or all are live: one is in its model's response, the others wait
    for its slot. Nothing else is at work."""
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await migrate(url)
    hold = Gate()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return "done" if settles else Said("done", before=hold)
        if "accepted" in told(request):
            return "They are on their way."
        batch = {"mode": "background", "agents": [{"task": "x"}] * BATCH}
        return Said(calls=(("sessions_spawn", json.dumps(batch)),) * (THOUSAND // BATCH))

    def over(found: dict[str, Agent]) -> bool:
        return len(found) == THOUSAND and all(
            one.settled_ms is not None if settles else one.held_ms is None for one in found.values()
        )

    slots = 10 if settles else 1
    async with engine(tmp_path, url, script, limits=MANY, concurrency=slots) as at:
        accepted = await at.says("go")
        root = accepted.session_id or ""
        async with asyncio.timeout(120), at.engine.parts.bus.subscribe(EVENTS) as signals:
            while not over(await tree(at)):
                await anext(signals)
        took: list[float] = []
        rows: Sequence[AgentRow] = ()
        for _ in range(50):
            before = time.perf_counter()
            rows = await at.database.read(lambda conn: agent_tree.of_tree(conn, root))
            took.append((time.perf_counter() - before) * 1000)
    with capsys.disabled():
        kind = "settled" if settles else "live"
        print(f"\n  a tree of {len(rows)} {kind} agents in one query: p50 {median(took):.1f} ms")


async def test_memory_of_live_children(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them are in the middle of their model's response."""
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await migrate(url)
    hold, all_there = Gate(), asyncio.Event()
    entered = 0

    def script(request: ModelRequest) -> Said | str:
        nonlocal entered
        if name_of(request):
            entered += 1
            if entered == LIVE:
                all_there.set()
            return Said("done", before=hold)
        if "accepted" in told(request):
            return "They are on their way."
        batch = {"mode": "background", "agents": [{"task": "x"}] * LIVE}
        return Said(calls=(("sessions_spawn", json.dumps(batch)),))

    async with engine(tmp_path, url, script, limits=MANY, concurrency=0) as at:
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        await at.says("go")
        async with asyncio.timeout(60):
            await all_there.wait()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        hold.open.set()
        await settled(at)
    with capsys.disabled():
        print(f"\n  {LIVE} live children: {(after - before) / LIVE / 1024:.1f} KB each")
