"""The types of subagents as a session finds them now: definitions, settings and its own bounds."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.agent.settings import AgentSettings
from runtime.features.subagents.rows import agents
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.spawn.agent_types import Caller, Face, Types, types_for
from runtime.sessions import sessions
from runtime.store import Database
from runtime.workspace.definitions import NONE, DefinitionShelf, Known


@dataclass(frozen=True, slots=True)
class TypeBook:
    """Without a `shelf` there are the built-in types alone."""

    database: Database
    settings: AgentSettings
    children: ChildSettings
    shelf: DefinitionShelf | None = None

    async def of(self, session_id: str, tools: Sequence[Face]) -> Types:
        """What a session may spawn, where `tools` are all that there are. Raises `NotFound`."""
        found = NONE
        children = self.children
        if self.shelf is not None:
            known = Known([tool.name for tool in tools], children.models.offered)
            found = await asyncio.to_thread(self.shelf.load, known)
        session, own = await self.database.read(
            lambda conn: (sessions.get(conn, session_id), agents.find(conn, session_id))
        )
        caller = Caller(
            type=own.type if own else "",
            depth=own.depth if own else 0,
            tools=session.tools,
            max_steps=self.settings.steps_of(session.max_steps),
        )
        return types_for(tools, found, caller, children)
