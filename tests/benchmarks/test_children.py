"""The figures of subagents in docs/performance.md: ``make bench`` prints a line for each."""

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from runtime.ports.model import ModelRequest
from runtime.store.migrate import migrate
from runtime.subagents.requests import Limits
from tests.fakes.model import Said
from tests.scenario.children import engine, name_of, settled, told

CHILDREN, BATCH = 200, 50
MANY = Limits(
    max_depth=3,
    live_per_parent=1000,
    live_per_tree=1000,
    spawned_per_run=1000,
    spawned_per_minute=1000,
)


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
