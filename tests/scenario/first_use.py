"""What a gateway makes at its first messages, made before a process is forked into many.

Statements are compiled when they are first said, and the schemas of tools and regular expressions
are made when they are first asked for: half of what a gateway that lives for a second needs of the
processor. The product's modules keep nothing else, so those that are forked afterwards begin as if
there had been none before them.
"""

import asyncio
import gc
import io
import json
import tempfile
import threading
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Final

from runtime.domain.runs import RunState
from runtime.domain.tools import Effect
from runtime.features.subagents.tools import SessionsSpawn
from runtime.ports.model import ModelRequest
from runtime.workspace.snapshot import Workspace
from tests.fakes.chat import FakeChat, FakeStreams
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import call, card, outcome, reaches
from tests.scenario.engine import engine_on, setup_at, world
from tests.scenario.tools import Note
from tests.support.templates import sqlite_schema

_LONGEST_S: Final = 60.0


def _plays(request: ModelRequest) -> Said | str:
    """Children note something and are done; "team" sends out three, "note" and "pay" are tools."""
    told = "\n".join(str(message) for message in request.messages)
    if "You are the subagent" in told:
        return "Found it." if request.step > 1 else Said(calls=(call("it", "keep"),))
    if request.step > 1 or "Found it." in told:
        return "That is all."
    if "team" not in told:
        return Said("I am on it.", calls=(call("milk", "keep"), call("milk", "look"), call("rent")))
    first, then = {"task": "look", "id": "a"}, {"task": "look", "id": "b", "depends_on": ["a"]}
    sent = ({"mode": "background", "agents": [first, then]}, {"task": "look"})
    return Said(calls=tuple(("sessions_spawn", json.dumps(one)) for one in sent))


async def _live(folder: Path) -> None:
    """Two gateways after each other: a text that grows, tools, a card, then children."""
    file = folder / "gatehouse.db"
    file.write_bytes(await asyncio.to_thread(sqlite_schema))
    models = ScriptedModels(ScriptedModel(_plays))
    setup = setup_at(folder, f"sqlite:///{file}", models)
    tools = (Note(command=True), Note("keep"), Note("look", effect=Effect.READ), SessionsSpawn())

    def chat() -> FakeChat:
        made = FakeChat()
        made.streams = FakeStreams(made, interval=0.001)
        return made

    async with world(replace(setup, tools=tools), chat()) as at:
        accepted = await at.says("note")
        await at.presses((await card(at)).open_call_id, "once")
        await outcome(at)
        await reaches(at, accepted.run_id, RunState.COMPLETED)
        # The schemas of all tools, which are made with the engine.
        engine_on(setup, at.database, Workspace(at.workspace), FakeChat())
    async with world(replace(setup, tools=tools), chat()) as at:
        accepted = await at.says("team", chat_id="D-team")
        await reaches(at, accepted.run_id, RunState.COMPLETED)


def fill_caches() -> None:
    """For a process that nothing but forks follow. What is said goes nowhere, and no thread is
    left, because none would be there in a fork."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        asyncio.run(asyncio.wait_for(_live(Path(folder)), _LONGEST_S))
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()
