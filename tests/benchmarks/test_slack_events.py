"""How fast Slack is told that an event arrived, while 200 turns wait for their model.

The gateway, Slack with the model, and whoever calls by HTTP are processes of their own. The events
are stored, and their runs wait behind those that are at work.
"""

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest
from pydantic import BaseModel

from adapters.system.clock import SystemClock
from tests.benchmarks.callers import Callers, request
from tests.benchmarks.slack_side import later_event
from tests.scenario.process.program import READY, ROOT, Place
from tests.wire.slack.state import JsonObject

PEOPLE = 200
RATE = 300
SECONDS = float(os.environ.get("GATEHOUSE_BENCH_SECONDS", "20"))
WARM_UP_S = 3.0
SETTINGS = """
[workers]
turns = 200
[queue]
mode = "followup"
"""


Say: TypeAlias = Callable[[str], None]


class Greeted(BaseModel):
    """The first event of each conversation."""

    first: list[JsonObject]


class Flooded(BaseModel):
    """Milliseconds of each event, and seconds of all. `repeated` were not acknowledged in time."""

    took: list[float]
    seconds: float
    repeated: int = 0


Told = TypeVar("Told", bound=BaseModel)


@dataclass
class Process:
    """A program whose lines are read when somebody wants them."""

    process: asyncio.subprocess.Process

    async def line(self) -> str:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "it ended first"
        return line.decode().rstrip("\n")

    async def does(self, answer: type[Told], **order: object) -> Told:
        """Give an order to Slack's side; what it answers."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        return answer.model_validate_json(await self.line())

    def cpu_s(self) -> float:
        """Processor seconds until now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def started(
    *words: str, cwd: Path, errors: Path, env: dict[str, str]
) -> AsyncIterator[Process]:
    """A Python program, ended when the block is."""
    pipe = asyncio.subprocess.PIPE
    with errors.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *words, stdin=pipe, stdout=pipe, stderr=log,
            cwd=cwd, env=env, limit=2**26,
        )  # fmt: skip
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def bench(path: Path, *, http: bool) -> AsyncIterator[tuple[Place, Process, Process, str]]:
    """The machine, Slack's side, a ready gateway, and the address of its hook."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    words = ("tests.benchmarks.slack_side", str(PEOPLE))
    async with started(*words, cwd=ROOT, errors=path / "side.log", env=env) as side:
        told = json.loads(await side.line())
        variables = told["variables"]
        if http:
            del variables["SLACK_APP_TOKEN"]
        place = Place(path, variables)
        owners = ", ".join(f'"{user}"' for user in told["users"])
        place.configure(f'[slack]\nowners = [{owners}]\ngroup_policy = "open"\n{SETTINGS}')
        env = place.environment()
        async with started("gateway", "serve", cwd=path, errors=path / "log", env=env) as gateway:
            line = await gateway.line()
            while not line.startswith(READY):
                line = await gateway.line()
            yield place, side, gateway, f"{line.removeprefix(READY)}/hooks/slack"


def figures(way: str, found: Flooded, cpu_s: float) -> str:
    """One line for the table."""
    took, ordered = found.took, sorted(found.took)
    p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
    return (
        f"{way}: {len(took)} events at {len(took) / found.seconds:.0f}/s, acknowledged in "
        f"p50 {p50:.1f}, p99 {p99:.1f}, at most {ordered[-1]:.1f} ms, {found.repeated} only when "
        f"they were sent again; the gateway's processor "
        f"{cpu_s * 1000 / len(took):.2f} ms an event"
    )


async def measured(
    way: str,
    place: Place,
    gateway: Process,
    flood: Callable[[int, float], Awaitable[Flooded]],
    say: Say,
) -> None:
    """Flood twice, of which the first is to warm up; everything must be stored once."""
    warm = len((await flood(0, WARM_UP_S)).took)
    busy = gateway.cpu_s()
    found = await flood(warm, SECONDS)
    busy = gateway.cpu_s() - busy
    assert stored(place) == (PEOPLE + warm + len(found.took), PEOPLE)
    say(figures(way, found, busy))


def stored(place: Place) -> tuple[int, int]:
    """Messages that are stored, and runs at work."""
    url = f"file:{place.home / 'gatehouse.db'}?mode=ro"
    with closing(sqlite3.connect(url, uri=True)) as database:
        ((inputs,),) = database.execute("SELECT count(*) FROM inputs").fetchall()
        ((running,),) = database.execute(
            "SELECT count(*) FROM runs WHERE state = 'running'"
        ).fetchall()
    return inputs, running


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Print past the capture."""

    def line(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text}")

    return line


async def test_signed_requests(tmp_path: Path, say: Say) -> None:
    async with bench(tmp_path, http=True) as (place, side, gateway, url):
        secret = place.variables["SLACK_SIGNING_SECRET"]
        first = (await side.does(Greeted, url=url)).first

        async def flood(sent: int, seconds: float) -> Flooded:
            at = SystemClock().now_ms() / 1000
            bodies = [
                json.dumps(later_event(first[number % PEOPLE], number, at + number / 1e6)).encode()
                for number in range(sent, sent + int(RATE * seconds))
            ]
            prepared = [request(url, body, secret=secret, at=int(at)) for body in bodies]
            callers = Callers()
            took = await callers.flood(url, prepared, RATE)
            assert callers.refused == []
            return Flooded(took=callers.took, seconds=took)

        await measured("signed requests", place, gateway, flood, say)


async def test_socket_mode(tmp_path: Path, say: Say) -> None:
    async with bench(tmp_path, http=False) as (place, side, gateway, _url):
        await side.does(Greeted, url="")

        async def flood(sent: int, seconds: float) -> Flooded:
            return await side.does(Flooded, rate=RATE, seconds=seconds, first=sent)

        await measured("Socket Mode", place, gateway, flood, say)
