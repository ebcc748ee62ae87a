"""Who stops with whom, and how fast (SUB-19)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from runtime.domain.runs import RunState
from runtime.domain.tools import Effect, Touches
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.tools import SessionsSpawn
from runtime.intake.control import Control, ControlServices, ControlSettings
from runtime.ports.model import ModelRequest
from runtime.sessions import runs
from runtime.sessions.unit import Units
from runtime.store import Connection
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from tests.contract.store_support import dialect, migrated_url, postgres_server, schema_templates
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.engine import Setup, World
from tests.scenario.replicas import Beside, Replica, beside
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told, tree
from tests.support.kinds import KINDS

__all__ = ["dialect", "migrated_url", "schema_templates"]

STOP_S = 1.0


class NoArguments(Arguments):
    pass


class Command(Tool[NoArguments]):
    """Runs until it is ended from outside."""

    name = "command"
    description = "Work."
    arguments = NoArguments
    effect = Effect.READ
    example = "{}"

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    def touches(self, arguments: NoArguments, context: ToolContext) -> Touches:
        return Touches(subject="command")

    async def run(self, arguments: NoArguments, context: ToolContext) -> ToolOutput:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        return ToolOutput("never")


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Beside]:
    async with beside(tmp_path, postgres_server()) as made:
        yield made


async def agents_of(replica: Replica, root: str | None) -> dict[str, Agent]:
    found = await replica.line.read(lambda conn: agents.of_tree(conn, root or ""))
    return {one.name: one for one in found}


@pytest.mark.requirement("SUB-19", "MSG-13")
async def test_a_stop_reaches_the_whole_tree_in_other_processes_within_a_second(
    two: Beside,
) -> None:
    """The root runs in one process, which has no room for more; a command of its child and the
    model's stream of its grandchild run in the other. No signal passes between the two."""
    root_runs, stream, command = Gate(), Gate(), Command()

    def here(request: ModelRequest) -> Said:
        if "accepted" in told(request):
            return Said("never", before=root_runs)
        return spawn(task="x", id="child", type="general", mode="background")

    def there(request: ModelRequest) -> Said:
        if name_of(request) == "below":
            return Said("never", before=stream)
        if "accepted" in told(request):
            return Said(calls=(("command", "{}"),))
        return spawn(task="x", id="below", type="general", mode="background")

    model = ScriptedModel(there)
    tools = [command, SessionsSpawn()]

    def narrow(setup: Setup) -> Setup:
        return replace(setup, settings=replace(setup.settings, turns=1), tools=tools)

    async with (
        two.replica("first", ScriptedModel(here), narrow) as first,
        two.replica("second", model, lambda setup: replace(setup, tools=tools)) as second,
    ):
        said = await first.world.says("go")

        async def all_at_work() -> bool:
            return root_runs.reached.is_set() and stream.reached.is_set() and command.begun.is_set()

        await two.until(all_at_work, within=60)
        await first.world.says("/stop")
        # The process that was told asks for the end of all of them at once, however deep they are.
        await two.clock.advance(0)
        asked = await first.line.read(partial(runs.cancelled_of, worker=second.worker))
        assert len(asked) == 2

        async def all_over() -> bool:
            found = await agents_of(second, said.session_id)
            root = await first.line.read(lambda conn: runs.get(conn, said.run_id or ""))
            over = {one.status for one in found.values()} == {"cancelled"}
            return over and root.state is RunState.CANCELLED

        await two.until(all_over, within=STOP_S)
        assert command.ended.is_set()
        assert model.closed == 1
        assert set(await agents_of(second, said.session_id)) == {"child", "below"}


@pytest.mark.requirement("SUB-19", "MSG-13")
@pytest.mark.parametrize("whole", [True, False], ids=["session", "run"])
async def test_a_stop_by_the_api_reaches_children_before_any_tick(
    tmp_path: Path, url: str, whole: bool
) -> None:
    """No time passes behind it: nothing is found by looking, everything by being told."""
    gate, clock = Gate(), FakeClock()

    def script(request: ModelRequest) -> Said:
        return Said("never", before=gate) if name_of(request) else spawn(**ONE)

    async with engine(tmp_path, url, script, clock=clock) as at:
        said = await at.says("go")
        async with asyncio.timeout(120):
            while not gate.reached.is_set():
                await clock.advance(0.01)
            parts, settings = at.engine.parts, ControlSettings(workspace=at.workspace)
            units = Units(at.database, parts.bus, KINDS)
            control = Control(ControlServices(units, clock, at.engine.intake, lambda: settings))
            if whole:
                await control.interrupt(said.session_id or "")
            else:
                await control.cancel(said.run_id or "")
            while any(one.settled_ms is None for one in (await tree(at)).values()):
                await clock.advance(0)
        assert {one.status for one in (await tree(at)).values()} == {"cancelled"}


@pytest.mark.requirement("SUB-19")
async def test_the_stop_of_a_child_never_stops_its_parent(tmp_path: Path, url: str) -> None:
    """An awaited child is ended by a person, by its run; its parent hears of it and answers."""
    gate = Gate()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("never", before=gate)
        return "It was ended." if "one (explore) cancelled" in told(request) else spawn(**ONE)

    async with engine(tmp_path, url, script) as at:
        await at.says("go")
        await gate.reached.wait()
        (one,) = (await tree(at)).values()
        await at.database.write(
            lambda conn: agents.ask_to_stop(conn, one.session_id, "enough"), name="stop"
        )
        assert await at.sees(1) == ["It was ended."]
        assert {one.status for one in (await settled(at)).values()} == {"cancelled"}


ONE = {"task": "x", "id": "one"}


@asynccontextmanager
async def interrupting(path: Path, url: str, mode: str, gate: Gate) -> AsyncIterator[World]:
    """A root that spawns `one`, and a person who may interrupt it."""

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("never", before=gate)
        if "never mind" in told(request):
            return "All right."
        return "On its way." if "accepted" in told(request) else spawn(mode=mode, **ONE)

    async with engine(path, url, script) as at:
        await at.says("/queue interrupt")
        await at.sees(1)
        yield at


@pytest.mark.requirement("SUB-19", "MSG-5")
async def test_a_newer_message_ends_a_parent_that_waits_for_children_and_these(
    tmp_path: Path, url: str
) -> None:
    gate = Gate()
    async with interrupting(tmp_path, url, "await", gate) as at:
        first = await at.says("go")
        await gate.reached.wait()
        await at.says("never mind")
        assert (await at.sees(2))[1:] == ["All right."]
        (one,) = (await settled(at)).values()
        assert one.status == "cancelled"

        def state(conn: Connection) -> RunState:
            return runs.get(conn, first.run_id or "").state

        assert await at.database.read(state) is RunState.INTERRUPTED
        assert at.chat.texts()[1:] == ["All right."]


@pytest.mark.requirement("SUB-19", "MSG-5")
async def test_a_message_that_ends_nothing_leaves_children_alone(tmp_path: Path, url: str) -> None:
    """The run that spawned it is over: what is said then interrupts nobody."""
    gate = Gate()
    async with interrupting(tmp_path, url, "background", gate) as at:
        await at.says("go")
        assert (await at.sees(2))[1:] == ["On its way."]
        await gate.reached.wait()
        await at.says("never mind")
        await at.sees(3)
        (one,) = (await tree(at)).values()
        assert (one.stop, one.settled_ms) == (None, None)
