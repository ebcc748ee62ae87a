"""The figure of summaries in docs/performance.md: ``make bench`` prints a line for each."""

import time
from pathlib import Path
from statistics import median

import pytest

from gateway.features import FEATURES
from runtime.features.subagents.rows import agents
from runtime.features.subagents.views import AgentScope, AgentsReader
from runtime.store import Connection, open_database
from runtime.store.migrate import migrate
from tests.contract.test_store_agents import grown
from tests.fakes.clock import FakeClock

MANY, ASKED = 5_000, 50
assert FEATURES, "the migration must know the tables of all features"


def _settled(conn: Connection) -> str:
    """A tree of which all but each tenth agent has settled."""
    root = grown(conn, "many", MANY)
    for one in agents.of_tree(conn, root):
        if one.place % 10:
            agents.change(conn, one.session_id, status="completed", settled_ms=9, result="Found.")
    return root


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "live"])
async def test_summaries_of_5000_agents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settled: bool
) -> None:
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await migrate(url)
    took: list[float] = []
    database = open_database(url, clock=FakeClock())
    await database.start()
    try:
        make = _settled if settled else lambda conn: grown(conn, "many", MANY)
        root = await database.write(make, name="grow")
        reader = AgentsReader(database)
        for _ in range(ASKED):
            before = time.perf_counter()
            found = await reader.summaries(AgentScope(root), limit=50)
            took.append((time.perf_counter() - before) * 1000)
            assert found.page.total_count == MANY
    finally:
        await database.close()
    with capsys.disabled():
        kind = "mostly settled" if settled else "live"
        print(f"\n  summaries of {MANY} {kind} agents: p50 {median(took):.1f} ms")
