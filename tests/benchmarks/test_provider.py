"""What a message costs through a provider's client, asked and answered over `/v1` by a program
outside of the gateway. Run with ``make bench``; each prints one line."""

import asyncio
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.benchmarks.provider import SLOW, SLOW_S
from tests.benchmarks.test_start import processor_seconds
from tests.contract.store_support import postgres_server
from tests.scenario.process.conftest import place
from tests.scenario.process.program import BEARER, Place, Program, gateway

__all__ = ["place"]
ALONE = 200
TOGETHER = 1500
SESSIONS = 100
WAITING = 200
_ENDS = frozenset({"run.completed", "run.failed"})


class People:
    """Sessions of a program that talks to gateways, and waits for each answer by the events."""

    def __init__(self, client: aiohttp.ClientSession) -> None:
        self._client = client
        self._ended: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def listen(self, url: str) -> None:
        """Note which runs end."""
        headers = {**BEARER, "Last-Event-ID": "0"}
        async with self._client.get(f"{url}/v1/events", headers=headers) as stream:
            async for line in stream.content:
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    if event.get("kind", event.get("type")) in _ENDS:
                        self._ended[event["run_id"]].set()

    async def session(self, url: str) -> str:
        """A new session."""
        async with self._client.post(f"{url}/v1/sessions", json={}, headers=BEARER) as answer:
            return str((await answer.json())["id"])

    async def say(self, url: str, session: str, text: str = "hello") -> float:
        """The seconds from a message to the end of its run."""
        began = time.perf_counter()
        address = f"{url}/v1/sessions/{session}/runs"
        async with self._client.post(address, json={"content": text}, headers=BEARER) as answer:
            assert answer.status == 202, await answer.text()
            run = str((await answer.json())["run_id"])
        await self._ended[run].wait()
        del self._ended[run]
        return time.perf_counter() - began


@asynccontextmanager
async def provider() -> AsyncIterator[str]:
    """The address of a provider of no latency, but for those who let it take its time."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.benchmarks.provider"), stdin=pipe, stdout=pipe
    )
    assert process.stdout is not None
    yield (await process.stdout.readline()).decode().strip()
    process.kill()
    await process.wait()


@asynccontextmanager
async def talking(programs: list[Program]) -> AsyncIterator[tuple[People, list[str]]]:
    """People who talk to these gateways, by turns."""
    urls = [await program.url() for program in programs]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        people = People(client)
        listening = asyncio.create_task(people.listen(urls[0]), name="listening")
        yield people, urls
        listening.cancel()
        await asyncio.wait([listening])


def through(place: Place, address: str, database: str = "") -> Place:
    """A gateway that asks this provider."""
    place.loaded = False
    place.variables |= {
        "OPENAI_BASE_URL": address,
        "GATEHOUSE_MODELS__DEFAULT": "compatible:instant",
        "GATEHOUSE_MODELS__COMPATIBLE_MODEL": "instant",
        "GATEHOUSE_LIMITS__PERSON_RUNS_PER_MINUTE": "0",
        "GATEHOUSE_LIMITS__PERSON_RUNS_PER_HOUR": "0",
        "GATEHOUSE_LOG__LEVEL": "error",
        "GATEHOUSE_QUEUE__DEBOUNCE_MS": "0",
    }
    if database:
        place.variables["GATEHOUSE_DATABASE__URL"] = database
    return place


async def rate(people: People, urls: list[str], programs: list[Program]) -> tuple[float, float]:
    """Messages a second of many sessions at once, and the processor's milliseconds of each."""
    sessions = [(urls[at % len(urls)], await people.session(urls[0])) for at in range(SESSIONS)]

    async def one(url: str, session: str, count: int) -> None:
        for _ in range(count):
            await people.say(url, session)

    await asyncio.gather(*(one(*session, 1) for session in sessions))
    busy = sum(processor_seconds(program.process.pid) for program in programs)
    began = time.perf_counter()
    await asyncio.gather(*(one(*session, TOGETHER // SESSIONS) for session in sessions))
    taken = time.perf_counter() - began
    busy = sum(processor_seconds(program.process.pid) for program in programs) - busy
    return TOGETHER / taken, busy / TOGETHER * 1000


async def test_sqlite(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    async with provider() as address, gateway(through(place, address)) as program:
        async with talking([program]) as (people, urls):
            session = await people.session(urls[0])
            await people.say(urls[0], session)
            alone = [await people.say(urls[0], session) for _ in range(ALONE)]
            found, busy = await rate(people, urls, [program])
        memory = resident_mb(program.process.pid)
    with capsys.disabled():
        print(
            f"\n  SQLite through a provider's client: alone p50 "
            f"{statistics.median(alone) * 1000:.1f} ms; {SESSIONS} sessions {found:.0f} "
            f"messages/s at {busy:.1f} ms of the processor; {memory:.0f} MB afterwards"
        )


async def test_waiting(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    async with (
        provider() as address,
        gateway(through(place, address)) as program,
        talking([program]) as (people, urls),
    ):
        sessions = [await people.session(urls[0]) for _ in range(WAITING)]
        for session in sessions:
            await people.say(urls[0], session)
        most = before = resident_mb(program.process.pid)
        asking = asyncio.gather(*(people.say(urls[0], one, SLOW) for one in sessions))
        while not asking.done():
            await asyncio.wait([asking], timeout=0.1)
            most = max(most, resident_mb(program.process.pid))
        slowest = max(await asking)
    with capsys.disabled():
        print(
            f"\n  {WAITING} turns that wait for a provider of {SLOW_S:.0f} s at once: the last "
            f"after {slowest:.2f} s; {before:.0f} to {most:.0f} MB, "
            f"{(most - before) / WAITING * 1024:.0f} KB each"
        )


@pytest.mark.parametrize("replicas", [1, 2])
async def test_postgres(place: Place, replicas: int, capsys: pytest.CaptureFixture[str]) -> None:
    server = postgres_server()
    name = await server.create()
    try:
        async with provider() as address:
            first = through(place, address, server.url(name))
            async with gateway(first) as one:
                await one.url()
                programs = [one]
                if replicas == 1:
                    await _say(programs, capsys)
                else:
                    other = Place(place.path / "other", dict(first.variables), loaded=False)
                    other.path.mkdir()
                    workspace = str(place.workspace)
                    other.variables["GATEHOUSE_WORKSPACE__PATH"] = workspace
                    async with gateway(other) as two:
                        await _say([one, two], capsys)
    finally:
        await server.drop(name)


async def _say(programs: list[Program], capsys: pytest.CaptureFixture[str]) -> None:
    async with talking(programs) as (people, urls):
        found, busy = await rate(people, urls, programs)
    with capsys.disabled():
        print(
            f"\n  PostgreSQL through a provider's client: {len(programs)} replicas, {found:.0f} "
            f"messages/s at {busy:.1f} ms of the processor"
        )


def resident_mb(pid: int) -> float:
    """The memory of a process, in MB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:  # noqa: PTH123 - no path of ours
        line = next(line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
