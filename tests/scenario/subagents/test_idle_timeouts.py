"""Children that make no progress are ended with what they have (SUB-21)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.tools import Effect, Touches
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.tools import SessionsSpawn
from runtime.ports.model import ModelRequest
from runtime.sessions.bounds import rule_lists
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import cards
from tests.scenario.engine import World, setup_at, world
from tests.scenario.subagents.children import Script, name_of, settled, spawn, told, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]

IDLE_S = 20.0


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


class NoArguments(Arguments):
    pass


class Work(Tool[NoArguments]):
    """Prints what the test hands it, and ends with it."""

    name = "work"
    description = "Work."
    arguments = NoArguments
    effect = Effect.READ
    example = "{}"

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()

    def touches(self, arguments: NoArguments, context: ToolContext) -> Touches:
        return Touches(subject="work")

    async def run(self, arguments: NoArguments, context: ToolContext) -> ToolOutput:
        self.begun.set()
        while (line := await self.lines.get()) is not None:
            context.emit(line)
        return ToolOutput("worked")


WORK = Said("Half of it.", calls=(("work", "{}"),))


class Slow:
    """An engine whose time moves on command, and a tool that takes as long as the test likes."""

    def __init__(self, at: World, clock: FakeClock, work: Work) -> None:
        self.at = at
        self.work = work
        self._clock = clock

    async def passes(self, seconds: float) -> None:
        await self._clock.advance(seconds)

    async def prints(self, line: str = "") -> None:
        self.work.lines.put_nowait(line)
        await self.passes(0)

    async def until(self, done: Callable[[], bool]) -> None:
        """Let things happen, in next to no time; on PostgreSQL a claim may have to be repeated."""
        async with asyncio.timeout(120):
            while not done():
                await self._clock.advance(0.01)

    async def sees(self, number: int = 1) -> str:
        """The n-th text in the chat, once it is there."""
        await self.until(lambda: len(self.at.chat.texts()) >= number)
        return self.at.chat.texts()[number - 1]

    async def one(self, name: str = "one") -> Agent:
        return (await tree(self.at))[name]


@asynccontextmanager
async def slow(
    path: Path, url: str, script: Script, *, ask: tuple[str, ...] = (), concurrency: int = 10
) -> AsyncIterator[Slow]:
    clock, work = FakeClock(), Work()
    models = ScriptedModels(ScriptedModel(script))
    setup = setup_at(path, url, models, alone=url.startswith("sqlite"), clock=clock)
    children = ChildSettings(idle_s=IDLE_S, concurrency=concurrency)
    policy = replace(setup.settings.policy, rules=rule_lists(ask=ask))
    settings, tools = replace(setup.settings, policy=policy), [work, SessionsSpawn()]
    async with world(replace(setup, settings=settings, tools=tools, children=children)) as at:
        yield Slow(at, clock, work)


def root_of(child: Script, **spawned: object) -> Script:
    """A root that awaits what it spawns, and says how the first of it ended."""

    def script(request: ModelRequest) -> Said | str | ModelRejected | ModelRetry:
        if name_of(request):
            return child(request)
        said = told(request)
        if "The subagent" in said:
            return said.partition("The subagent ")[2].split(" after")[0]
        return spawn(**{"task": "look", "id": "one", **spawned})

    return script


@pytest.mark.requirement("SUB-8", "SUB-21")
async def test_a_silent_model_ends_the_child_with_what_it_has(tmp_path: Path, url: str) -> None:
    silence = Gate()

    def child(request: ModelRequest) -> Said:
        return Said("never", before=silence) if "worked" in told(request) else WORK

    async with slow(tmp_path, url, root_of(child)) as at:
        await at.at.says("go")
        await at.until(at.work.begun.is_set)
        at.work.lines.put_nowait(None)
        await at.until(silence.reached.is_set)
        await at.passes(IDLE_S - 2)
        assert (await at.one()).settled_ms is None
        await at.passes(3)
        assert await at.sees() == "one (explore) timed out"
        one = await at.one()
    assert (one.status, one.retries) == ("timed_out", 0)
    assert one.result == "Half of it.\n\n(It was ended here: it made no progress for 20 s.)"


@pytest.mark.requirement("SUB-21")
async def test_a_silent_tool_ends_the_child(tmp_path: Path, url: str) -> None:
    async with slow(tmp_path, url, root_of(lambda _: WORK)) as at:
        await at.at.says("go")
        await at.until(at.work.begun.is_set)
        await at.passes(IDLE_S + 1)
        assert await at.sees() == "one (explore) timed out"
        assert "made no progress for 20 s" in (await at.one()).result


@pytest.mark.requirement("SUB-21")
async def test_what_a_background_child_has_is_handed_over_with_the_reason(
    tmp_path: Path, url: str
) -> None:
    heard: list[str] = []

    def script(request: ModelRequest) -> Said | str:
        said = told(request)
        if name_of(request):
            return WORK
        if "The subagent one" in said:
            heard.append(said)
            return "It hung."
        return "Sent." if "accepted" in said else spawn(task="x", id="one", mode="background")

    async with slow(tmp_path, url, script) as at:
        await at.at.says("go")
        await at.until(at.work.begun.is_set)
        assert await at.sees() == "Sent."
        await at.passes(IDLE_S + 1)
        assert await at.sees(2) == "It hung."
    assert "The subagent one (explore) timed out after" in heard[0]
    assert "(It was ended here: it made no progress for 20 s.)" in heard[0]


@pytest.mark.requirement("SUB-21")
async def test_what_a_tool_prints_and_what_a_model_writes_is_progress(
    tmp_path: Path, url: str
) -> None:
    begin, middle = Gate(), Gate()

    def child(request: ModelRequest) -> Said:
        if "worked" in told(request):
            return Said("All of it, at last.", before=begin, middle=middle, at=1)
        return WORK

    async with slow(tmp_path, url, root_of(child)) as at:
        await at.at.says("go")
        await at.until(at.work.begun.is_set)
        for line in ("one", "two", ""):
            await at.passes(IDLE_S - 2)
            await at.prints(line)
        at.work.lines.put_nowait(None)
        for gate in (begin, middle):
            await at.until(gate.reached.is_set)
            await at.passes(IDLE_S - 2)
            gate.open.set()
        assert await at.sees() == "one (explore) completed"
        assert (await at.one()).result == "All of it, at last."


@pytest.mark.requirement("SUB-21")
async def test_waiting_for_its_children_or_for_a_slot_is_not_idle(tmp_path: Path, url: str) -> None:
    """With one slot: `one` awaits two; `two` works for long, and `three` wants its slot."""

    def child(request: ModelRequest) -> Said | str:
        name, said = name_of(request), told(request)
        if name == "two":
            return f"{name} is done" if "worked" in said else WORK
        if name == "one" and "two is done" not in said:
            return spawn(agents=[{"task": "x", "id": "two"}, {"task": "x", "id": "three"}])
        return f"{name} is done"

    async with slow(tmp_path, url, root_of(child), concurrency=1) as at:
        await at.at.says("go")
        await at.until(at.work.begun.is_set)
        for _ in range(3):
            await at.passes(IDLE_S - 2)
            await at.prints("still at it")
        at.work.lines.put_nowait(None)
        await at.sees()
        found = await settled(at.at)
        assert {one.status for one in found.values()} == {"completed"}


@pytest.mark.requirement("SUB-21")
async def test_waiting_for_a_person_is_not_idle(tmp_path: Path, url: str) -> None:
    def child(request: ModelRequest) -> Said | str:
        return "one is done" if "worked" in told(request) else WORK

    async with slow(tmp_path, url, root_of(child), ask=("work",)) as at:
        await at.at.says("go")
        await at.until(lambda: bool(cards(at.at)))
        ((_, asks),) = cards(at.at)
        await at.passes(3 * IDLE_S)
        assert (await at.one()).settled_ms is None
        at.work.lines.put_nowait(None)
        await at.at.presses(asks.open_call_id, "once")
        assert await at.sees(2) == "one (explore) completed"


@pytest.mark.requirement("SUB-21")
async def test_the_agent_that_a_person_talks_to_is_not_ended(tmp_path: Path, url: str) -> None:
    silence = Gate()
    async with slow(tmp_path, url, lambda _: Said("At last.", before=silence)) as at:
        await at.at.says("go")
        await at.until(silence.reached.is_set)
        await at.passes(2 * IDLE_S)
        silence.open.set()
        assert await at.sees() == "At last."
