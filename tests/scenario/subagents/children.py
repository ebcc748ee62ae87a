"""What the tests of subagents stand on: a scripted model for a tree, and a look at its rows."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection

from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.settings import ChildSettings
from runtime.ports.bus import EVENTS
from runtime.ports.clock import Clock
from runtime.ports.model import ModelRequest
from runtime.sessions import sessions
from runtime.store import Point, no_point
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.engine import World, setup_at, world

Script = Callable[[ModelRequest], Said | str | ModelRejected | ModelRetry]
ABOUT = "You are the subagent"


def told(request: ModelRequest) -> str:
    """Everything that a model is told, in one text."""
    return "\n".join(str(message) for message in request.messages)


def name_of(request: ModelRequest) -> str:
    """Which child asks; empty for the root."""
    _, about, rest = told(request).partition(ABOUT)
    return rest.split()[0] if about else ""


def spawn(**arguments: object) -> Said:
    return Said("", calls=(("sessions_spawn", json.dumps(arguments)),))


def engine(
    path: Path,
    url: str,
    script: Script,
    *,
    point: Point = no_point,
    clock: Clock | None = None,
    **settings: object,
) -> AbstractAsyncContextManager[World]:
    models = ScriptedModels(ScriptedModel(script))
    setup = setup_at(path, url, models, alone=url.startswith("sqlite"), point=point)
    setup = setup if clock is None else replace(setup, clock=clock)
    return world(replace(setup, children=replace(ChildSettings(), **settings)))


async def tree(at: World) -> dict[str, Agent]:
    """All agents, by name."""

    def read(conn: Connection) -> dict[str, Agent]:
        roots = [one for one in sessions.listing(conn, limit=10_000) if one.agent == "main"]
        return {one.name: one for root in roots for one in agents.of_tree(conn, root.id)}

    return await at.database.read(read)


async def settled(at: World) -> dict[str, Agent]:
    """All agents, once there are some and none is at work."""

    def over(found: dict[str, Agent]) -> bool:
        return bool(found) and all(one.settled_ms is not None for one in found.values())

    return await grown(at, over)


async def grown(at: World, done: Callable[[dict[str, Agent]], bool]) -> dict[str, Agent]:
    """All agents, once they are so."""
    async with asyncio.timeout(120), at.engine.parts.bus.subscribe(EVENTS) as signals:
        while True:
            found = await tree(at)
            if done(found):
                return found
            await anext(aiter(signals))
