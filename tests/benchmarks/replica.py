"""One replica in a process of its own, on a database that it shares, with an account of its own.

    python -m tests.benchmarks.replica '{"url": ..., "account": "A1", "latency_s": 0.5, ...}'

It says ``ready`` on a line, waits for a line, floods itself, and says its figures as JSON.
"""

import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import structlog

from gateway.cli import event_loop
from runtime.bus.postgres import PostgresBus
from runtime.engine.engine import Engine
from runtime.store import open_database
from runtime.workspace.scaffold import find_template, scaffold
from runtime.workspace.snapshot import Workspace
from tests.benchmarks.load import FINDABLE, InstantModel, flood, talks
from tests.fakes.chat import FakeChat
from tests.fakes.model import ScriptedModels
from tests.scenario.engine import World, engine_on, setup_at


@asynccontextmanager
async def replica(
    path: Path, url: str, *, account: str = "A1", latency_s: float = 0.0, turns: int = 50
) -> AsyncIterator[World]:
    """A running engine as a deployment of several has it: its signals go over PostgreSQL."""
    models = ScriptedModels(InstantModel(latency_s=latency_s))
    setup = setup_at(path, url, models, alone=False)
    setup = replace(setup, settings=replace(setup.settings, turns=turns))
    scaffold(setup.workspace, find_template())
    database = open_database(url, clock=setup.clock)
    await database.start()
    bus = PostgresBus(url, setup.clock)
    await bus.start()
    chat = FakeChat(account=account, capabilities=FINDABLE)
    made = engine_on(setup, database, Workspace(setup.workspace), chat)
    engine = Engine(replace(made.parts, bus=bus), setup.settings)
    task = asyncio.create_task(engine.run(), name="engine")
    try:
        await chat.listening.wait()
        yield World(engine, chat, database, setup.workspace, count(1))
    finally:
        task.cancel()
        await asyncio.wait([task])
        await bus.close()
        await database.close()


async def main(order: dict[str, object]) -> None:
    """Do what the order says once, when told."""
    sessions, account = int(str(order["sessions"])), str(order["account"])
    with tempfile.TemporaryDirectory() as folder:
        place = replica(
            Path(folder),
            str(order["url"]),
            account=account,
            latency_s=float(str(order["latency_s"])),
            turns=int(str(order["turns"])),
        )
        async with place as world:
            await flood(world, messages=sessions, sessions=sessions, first=1)
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            busy = time.process_time()
            begin = talks if order["talks"] else flood
            figures = await begin(
                world, messages=int(str(order["messages"])), sessions=sessions, first=2
            )
            told = {
                "seconds": figures.seconds,
                "rate": figures.rate,
                "busy_s": time.process_time() - busy,
            }
            print(json.dumps(told), flush=True)
            # What it accepted another replica may still work on, and the other way round.
            await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    event_loop.run(main(json.loads(sys.argv[1])))
