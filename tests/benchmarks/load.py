"""The load driver: messages through a chat double into the real path, with a model of zero latency.

SQLite with ``synchronous=FULL``, queue mode ``followup``, everything in one process.
"""

import asyncio
import resource
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from adapters.system.clock import SystemClock
from runtime.domain.errors import StoreUnavailable
from runtime.domain.runs import Usage
from runtime.domain.tools import ToolCall
from runtime.ports.model import ModelRequest, ModelResponse, TextChunk
from runtime.store.migrate import migrate
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.model import ScriptedModels
from tests.scenario.engine import Setup, World, setup_at

FINDABLE = replace(FAST, lookup=True)
USAGE = Usage(input_tokens=100, output_tokens=3)


class InstantModel:
    """Answers at once, or after `latency_s`; with `reads` the first step reads a file."""

    name = "bench:instant"
    context_tokens = 100_000

    def __init__(self, *, reads: bool = False, latency_s: float = 0.0) -> None:
        self._reads = reads
        self._latency_s = latency_s
        self._clock = SystemClock()

    async def respond(self, request: ModelRequest) -> AsyncIterator[TextChunk | ModelResponse]:
        """One response."""
        if self._latency_s:
            await self._clock.sleep(self._latency_s)
        if self._reads and request.messages[-1].role == "user":
            call = ToolCall(
                id=f"{request.run_id}-{request.step}",
                name="read_file",
                arguments='{"path": "AGENTS.md", "limit": 5}',
            )
            yield ModelResponse("", (call,), USAGE, self.name)
            return
        yield TextChunk("That is done.")
        yield ModelResponse("That is done.", (), USAGE, self.name)


@dataclass(frozen=True)
class Figures:
    """Times in seconds; latencies from accept to delivered in milliseconds."""

    messages: int
    seconds: float
    latencies_ms: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds

    def percentile(self, share: float) -> float:
        """A percentile of the latencies."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def findable() -> FakeChat:
    """A chat whose sends can be looked up, as Slack's can."""
    return FakeChat(capabilities=FINDABLE)


async def prepared(path: Path, model: InstantModel) -> Setup:
    """A setup on a migrated database of its own."""
    url = f"sqlite:///{path}/gatehouse.db"
    await migrate(url)
    return setup_at(path, url, ScriptedModels(model))


async def flood(world: World, *, messages: int, sessions: int, first: int = 0) -> Figures:
    """`messages` in `sessions` groups at once, in each without waiting for replies."""
    before = len(world.chat.sent)
    begun = time.perf_counter()

    async def person(number: int) -> None:
        for place in range(messages // sessions):
            await world.says(
                f"message {place}",
                chat_id=f"G{number}",
                kind="group",
                message_id=f"{first}-{number}-{place}",
            )

    await asyncio.gather(*(person(number) for number in range(sessions)))
    await world.chat.until(lambda: len(world.chat.sent) >= before + messages, within=600)
    return Figures(messages, time.perf_counter() - begun, ())


async def talks(world: World, *, messages: int, sessions: int, first: int = 0) -> Figures:
    """`messages` in `sessions` groups, in each the next one when the reply to the last is there."""
    replies: dict[str, asyncio.Semaphore] = {f"G{n}": asyncio.Semaphore(0) for n in range(sessions)}
    sent, seen = world.chat.sent, len(world.chat.sent)
    due, begun = seen + messages, time.perf_counter()

    async def person(number: int) -> None:
        chat_id = f"G{number}"
        for place in range(messages // sessions):
            await world.says(
                f"message {place}",
                chat_id=chat_id,
                kind="group",
                message_id=f"{first}-{number}-{place}",
            )
            await replies[chat_id].acquire()

    async with asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(person(number), name=f"person {number}")
        while seen < due:
            await world.chat.until(lambda seen=seen: len(sent) > seen, within=60)
            for one in sent[seen:]:
                replies[one.message.target.chat_id].release()
            seen = len(sent)
    return Figures(messages, time.perf_counter() - begun, ())


async def conversation(world: World, *, messages: int, first: int = 0) -> Figures:
    """One person who waits for each reply before the next message."""
    latencies = []
    begun = time.perf_counter()
    for place in range(messages):
        sent = len(world.chat.sent)
        asked = time.perf_counter()
        await world.says(f"message {place}", chat_id="D0", message_id=f"{first}-{place}")
        await world.chat.until(lambda sent=sent: len(world.chat.sent) > sent, within=60)
        latencies.append((time.perf_counter() - asked) * 1000)
    return Figures(messages, time.perf_counter() - begun, tuple(latencies))


async def paced(world: World, *, rate: float, seconds: float, sessions: int) -> Figures:
    """Messages at a steady rate, whatever becomes of them; the latencies are those of accept."""
    before, amount = len(world.chat.sent), int(rate * seconds)
    latencies: list[float] = []
    clock = SystemClock()
    begun = time.perf_counter()

    async def one(number: int) -> None:
        asked = time.perf_counter()
        chat_id = f"G{number % sessions}"
        try:
            await world.says(f"m {number}", chat_id=chat_id, kind="group", message_id=f"p-{number}")
        except StoreUnavailable:
            # More than this machine can take at present: the platform would deliver it again.
            return
        latencies.append((time.perf_counter() - asked) * 1000)

    async with asyncio.TaskGroup() as group:
        for number in range(amount):
            await clock.sleep(max(begun + number / rate - time.perf_counter(), 0))
            group.create_task(one(number), name=f"message {number}")
    accepted = time.perf_counter() - begun
    await world.chat.until(lambda: len(world.chat.sent) >= before + len(latencies), within=60)
    return Figures(len(latencies), accepted, tuple(latencies))


def resident_mb() -> float:
    """The most memory this process ever held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def written_bytes() -> int:
    """Bytes that this process caused to be written to disk so far (Linux)."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    return 0
