"""The subagents of a tree, for the tools about them: reads, words, stops, and a bounded wait."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from runtime.features.subagents import agent_messages
from runtime.features.subagents.agent_messages import How, Word
from runtime.features.subagents.ends import child_stop
from runtime.features.subagents.rows import agent_tree, agents, results
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import ROOT, Agent
from runtime.features.subagents.spawn.agent_types import TypeBook, Types
from runtime.features.subagents.waits.agent_waits import waited_for
from runtime.ports.bus import CHILDREN, EVENTS, Signal
from runtime.ports.clock import Clock
from runtime.sessions import inputs, listings, open_calls, sessions
from runtime.sessions.open_calls import CLARIFICATION
from runtime.sessions.streams import last_said
from runtime.sessions.unit import Units
from runtime.store import Connection
from runtime.tools.base import AnyTool

TICK_S: Final = 1.0
"""How late a lost signal may be noticed (MSG-21)."""


@dataclass(frozen=True)
class Household:
    """A tree as one member sees it: all agents in the order of spawning, what the member is called
    in it, and the time in ms."""

    rows: Sequence[AgentRow]
    own: str
    now_ms: int

    @property
    def agents(self) -> Sequence[Agent]:
        """All of them, without what they used."""
        return [row.agent for row in self.rows]

    @cached_property
    def by_session(self) -> Mapping[str, Agent]:
        """Each by its session."""
        return {one.session_id: one for one in self.agents}


@dataclass(frozen=True, slots=True)
class Detail:
    """More of one agent: what it said last while it is at work, the names of those whose results it
    needs, the kinds of calls that it waits for, its whole result, the names of its tools, what it
    asks its parent, and how many messages from others wait for it."""

    said: str = ""
    needs: Sequence[str] = ()
    open: Sequence[str] = ()
    result: str = ""
    tools: Sequence[str] = ()
    asks: Sequence[str] = ()
    mail: int = 0


@dataclass(frozen=True, slots=True)
class AgentFamily:
    """Sessions are named by their ids; `book` has the types that they may spawn."""

    units: Units
    clock: Clock
    book: TypeBook

    async def look(self, session_id: str) -> Household:
        """The tree that a session is in, or the root of, without agents of turns that were taken
        back (MSG-22)."""
        own, rows = await self.units.database.read(partial(_tree, session_id=session_id))
        return Household(rows, own, self.clock.now_ms())

    async def detail(self, row: AgentRow) -> Detail:
        """More of one agent."""
        return await self.units.database.read(partial(_detail, row=row))

    async def wait(self, session_ids: Collection[str], seconds: float) -> Sequence[str]:
        """Return when these agents have settled, when one of them asks its parent, or after
        `seconds`; those that have not settled."""
        ends = self.clock.monotonic() + seconds
        wake, look = asyncio.Event(), partial(waited_for, session_ids=session_ids)
        async with (
            self.units.bus.subscribe(CHILDREN, EVENTS) as signals,
            asyncio.TaskGroup() as group,
        ):
            hears = group.create_task(_hear(signals, frozenset(session_ids), wake), name="wait")
            try:
                while True:
                    waited = await self.units.database.read(look)
                    rest = ends - self.clock.monotonic()
                    if waited.over or rest <= 0:
                        return waited.left
                    timer = self.clock.call_later(min(rest, TICK_S), wake.set)
                    try:
                        await wake.wait()
                    finally:
                        timer.cancel()
                    wake.clear()
            finally:
                hears.cancel()

    async def tell(self, word: Word) -> How:
        """Say something to an agent. Raises `Conflict` where it cannot be heard any more, and
        `Forbidden` where the run may not change it."""
        unit = partial(agent_messages.tell, word=word, limits=self.book.children.limits)
        return await self.units.run(unit, name="agent-told")

    async def stop(self, session_id: str, reason: str, *, run_id: str) -> bool:
        """Ask an agent to end, for a run; False where it had ended, or was asked before. Raises
        `Forbidden` where the run may not stop it."""
        unit = partial(child_stop.ask_one, session_id=session_id, reason=reason, run_id=run_id)
        return await self.units.run(unit, name="agent-stop")

    async def types(self, session_id: str, tools: Sequence[AnyTool]) -> Types:
        """What a session may spawn, where `tools` are all that there are."""
        return await self.book.of(session_id, tools)


async def _hear(
    signals: AsyncIterator[Signal], session_ids: frozenset[str], wake: asyncio.Event
) -> None:
    async for signal in signals:
        if signal.gap or signal.topic == CHILDREN or signal.data.get("session_id") in session_ids:
            wake.set()


def _tree(conn: Connection, session_id: str) -> tuple[str, Sequence[AgentRow]]:
    """What the session is called in its tree, and all that are in that."""
    own = agents.find(conn, session_id)
    rows = agent_tree.of_tree(conn, own.tree_id if own else session_id)
    # Who worked for a turn that was taken back, at any depth, knows what that said.
    undone = listings.undone(conn, {run for row in rows for run in _runs_of(row.agent)})
    there = [row for row in rows if not undone & _runs_of(row.agent)]
    return ROOT if own is None else own.name, there


def _runs_of(agent: Agent) -> set[str]:
    """The runs that spawned an agent, or told it to go on."""
    return {agent.run_id, agent.payer}


def _detail(conn: Connection, row: AgentRow) -> Detail:
    session_id = row.agent.session_id
    opened = open_calls.open_ones(conn, session_id=session_id)
    return Detail(
        said="" if row.run_id is None else last_said(conn, session_id, row.run_id),
        needs=[one.agent.name for one in agents.in_front(conn, session_id) if one.needed],
        open=[one.kind for one in opened],
        result=results.result_of(conn, row.agent),
        tools=sorted(sessions.get(conn, session_id).scope.tools or ()),
        mail=inputs.mail_waiting(conn, [session_id]).get(session_id, 0),
        asks=[str(one.payload["question"]) for one in opened if one.kind == CLARIFICATION],
    )
