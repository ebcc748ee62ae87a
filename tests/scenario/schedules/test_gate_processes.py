"""Gates of schedules as real processes of the system (SCH-9)."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.process_tree import find_tree
from adapters.sandbox.unconfined import Unconfined
from adapters.system.clock import SystemClock
from runtime.features.schedules.model import ExecutionView
from runtime.ports.sandbox import ProcessIdentity, SandboxCommand, SandboxProcess
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.cards import card
from tests.scenario.engine import setup_at, world, writes
from tests.scenario.schedules.scheduling import HERE, Desk, answering, desk
from tests.support.templates import make_database

pytestmark = pytest.mark.requirement("SCH-9")


class Watched(Unconfined):
    """Remembers which trees it started."""

    def __init__(self) -> None:
        super().__init__(SystemClock(), cgroups=Cgroups(memory=None, pids=None))
        self.trees: list[ProcessIdentity] = []

    @override
    async def start(self, command: SandboxCommand) -> SandboxProcess:
        process = await super().start(command)
        self.trees.append(process.identity)
        return process


async def fired(
    path: Path, model: ScriptedModel, gate: dict[str, object], over: Callable[[ExecutionView], bool]
) -> tuple[ExecutionView, Watched, list[str]]:
    """What became of the first time of a schedule whose gate was approved, once it is `over`."""
    url, sandbox = f"sqlite:///{path}/gatehouse.db", Watched()
    await make_database(url)
    setup = setup_at(path, url, ScriptedModels(model), sandbox=sandbox)
    async with asyncio.timeout(300), world(setup) as at, writes(at.database) as news:
        table: Desk = await desk(at)
        hourly = {"type": "interval", "every_seconds": 3600}
        made = await table.make(here=True, gate=gate, cadence=hourly)
        shown = await card(at)
        assert (await at.presses(shown.open_call_id, "approve")).accepted
        await table.control.trigger(made)
        while not [one for one in await table.fires() if over(one)]:
            await news.wait()
            news.clear()
        (fire,) = await table.fires()
        return fire, sandbox, at.chat.texts(HERE)


async def test_a_gate_that_takes_too_long_leaves_no_process_behind(tmp_path: Path) -> None:
    command = "setsid sh -c 'setsid sleep 600 & exec sleep 600' >/dev/null 2>&1 & sleep 600"
    gate: dict[str, object] = {"command": command, "timeout_s": 0.5}
    fire, sandbox, _ = await fired(
        tmp_path, answering(), gate, lambda one: one.status in ("retrying", "rolled_back")
    )
    assert "timed out after 0.5 s and was killed" in (fire.error or "")
    first = sandbox.trees[0]
    assert not find_tree(ProcessIdentity(0, 0, first.token))


async def test_what_a_real_command_prints_is_news(tmp_path: Path) -> None:
    gate: dict[str, object] = {"command": "echo 3 orders; echo of today"}
    model = answering("three orders")
    fire, _, texts = await fired(tmp_path, model, gate, lambda one: one.status == "settled")
    assert fire.run_status == "completed"
    assert texts[-1] == "three orders"
    assert "\n3 orders\nof today\n" in model.requests[-1].messages[-1].text
