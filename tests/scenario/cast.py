"""A root and its subagents who say what the test wrote down, each in turn."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from runtime.domain.transcript import ToolMessage
from runtime.features.subagents.family import AgentFamily
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.spawn.agent_types import TypeBook
from runtime.ports.clock import Clock
from runtime.ports.model import ModelRequest
from runtime.sessions.unit import Units
from runtime.store import Connection
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.engine import World, setup_at, world

ANSWERS = Sequence[Said | str]


def spawn(**arguments: object) -> tuple[str, str]:
    return ("sessions_spawn", json.dumps(arguments))


def ask(action: str, **arguments: object) -> tuple[str, str]:
    return ("subagents", json.dumps({"action": action, **arguments}))


def after(gate: Gate) -> Gate:
    """Holds a response until another one is being written."""
    return Gate(open=gate.reached)


def family_of(at: World, units: Units, clock: Clock) -> AgentFamily:
    """The tools' way to the agents of a world, on a clock and a bus of its own."""
    book = TypeBook(at.database, at.engine.settings.agent, ChildSettings())
    return AgentFamily(units, clock, book)


async def got_to(gate: Gate) -> None:
    """Return once a response is held there."""
    async with asyncio.timeout(120):
        await gate.reached.wait()


@dataclass
class Cast:
    """A script for the root and for each agent by its name, answers in order."""

    root: ANSWERS
    agents: Mapping[str, ANSWERS] = field(default_factory=dict)
    requests: dict[str, list[ModelRequest]] = field(default_factory=dict)

    def __call__(self, request: ModelRequest) -> Said | str:
        found = re.search(r"You are the subagent (\S+) of type", str(request.messages[0]))
        name = found[1] if found else ""
        answers = self.agents[name] if name else self.root
        asked = self.requests.setdefault(name, [])
        asked.append(request)
        assert len(asked) <= len(answers), f"{name or 'root'} is asked once more"
        return answers[len(asked) - 1]

    def told(self, place: int, name: str = "") -> list[str]:
        """The results of the calls in front of a request."""
        messages = self.requests[name][place].messages
        last = [one for one in messages if isinstance(one, ToolMessage)][-1]
        return [result.content for result in last.results]

    def words(self, place: int, name: str = "") -> str:
        """All that a request says."""
        return "\n".join(str(message) for message in self.requests[name][place].messages)


def played(path: Path, url: str, cast: Cast) -> AbstractAsyncContextManager[World]:
    models = ScriptedModels(ScriptedModel(cast))
    return world(setup_at(path, url, models, alone=url.startswith("sqlite")))


async def tree(at: World, session_id: str | None) -> dict[str, Agent]:
    def read(conn: Connection) -> Sequence[Agent]:
        return agents.of_tree(conn, session_id or "")

    return {one.name: one for one in await at.database.read(read)}
