"""Trees of agents as rows for people and programs (AGT-2), whatever their size in one statement."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.runs import RunState
from runtime.domain.value import Value
from runtime.features.subagents.agent_words import standing
from runtime.features.subagents.rows import agent_tree, agents, inherited_grants
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.sessions import sessions
from runtime.sessions.sessions import Session
from runtime.sessions.told_text import Heard, heard
from runtime.store import Connection, Database
from runtime.store.database import now_ms

PREVIEW: Final = 240
"""Characters of what an agent said last."""

AgentStatus = Literal[
    "idle",
    "running",
    "waiting_for_approval",
    "waiting_for_user_input",
    "failed",
    "completed",
    "cancelled",
]
_SETTLED: Final[Mapping[str, AgentStatus]] = {
    "completed": "completed",
    "forced": "completed",
    "cancelled": "cancelled",
}
_AT_WORK: Final[Mapping[RunState, AgentStatus]] = {
    RunState.RUNNING: "running",
    RunState.WAITING_FOR_CHILDREN: "running",
    RunState.WAITING_FOR_APPROVAL: "waiting_for_approval",
    RunState.WAITING_FOR_USER_QUESTION: "waiting_for_user_input",
}


class AgentProgress(Value):
    """How far an agent got: model responses and tool calls that are through."""

    steps: int
    tool_calls: int


class AgentSummary(Value):
    """One agent. `agent_id` is its name in its tree, whose root is the session `root_session_id`.

    `standing` is finer than `status`: it tells what a live one waits for. `cost_usd` is None where
    no price is known. `elapsed_ms` runs until it settled.
    """

    agent_id: str
    session_id: str
    root_session_id: str
    parent_session_id: str
    parent_agent_id: str | None
    depth: int
    type: str
    label: str
    mode: str
    retention: str
    status: AgentStatus
    standing: str
    active_run_id: str | None
    tokens: int
    cost_usd: float | None
    progress: AgentProgress
    last_output_preview: str | None
    last_error: str | None
    created_at_ms: int
    settled_at_ms: int | None
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class AgentScope:
    """Which agents: the tree that a session is in, or every tree in which somebody is at work.

    `live` tells those that have not settled from those that have; None and no `status` want all.
    """

    session_id: str | None = None
    status: AgentStatus | None = None
    live: bool | None = None


@dataclass(frozen=True, slots=True)
class AgentSummaries:
    """A page of them, and how many of each status there are in the whole scope."""

    page: Page[AgentSummary]
    counts: Mapping[str, int]


class AgentsReader:
    """Reads summaries. Raises `NotFound`, `InvalidInput` (a cursor that is none) and
    `StoreUnavailable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def summaries(
        self, scope: AgentScope, *, limit: int = 50, cursor: str | None = None
    ) -> AgentSummaries:
        """Trees in the order of their beginning, the agents of each in the order of spawning."""
        after: tuple[str, int] = ("", 0)
        if cursor is not None:
            tree_id, place = cursors.decode(cursor, str, int)
            after = (str(tree_id), int(place))

        def work(conn: Connection) -> AgentSummaries:
            rows, now = _rows(conn, scope), now_ms(conn)
            rest = [row for row in rows if (row.agent.tree_id, row.agent.place) > after]
            shown, names = rest[:limit], {row.agent.session_id: row.agent.name for row in rows}
            end = shown[-1].agent if len(rest) > limit else None
            page = Page(
                items=tuple(_summary(row, names, now) for row in shown),
                next_cursor=cursors.encode(end.tree_id, end.place) if end else None,
                total_count=len(rows),
            )
            return AgentSummaries(page, Counter(status_of(row) for row in rows))

        return await self._database.read(work)

    async def bound(self, session_id: str) -> tuple[Session, str | None]:
        """Any session with all that bounds it, as its next call is decided; and the agent's session
        in whose worktree it works, None for the workspace."""

        def work(conn: Connection) -> tuple[Session, str | None]:
            session = inherited_grants.reached(conn, sessions.get(conn, session_id))
            agent = agents.find(conn, session_id)
            return session, agent.worktree if agent is not None else None

        return await self._database.read(work)

    async def heard(self, session_id: str) -> Sequence[Heard]:
        """What is in the windows of a session and of all above it, nearest first."""
        return await self._database.read(partial(heard, session_id=session_id))


def status_of(row: AgentRow) -> AgentStatus:
    """Where an agent stands, in the words of the API."""
    if row.agent.settled:
        return _SETTLED.get(row.agent.status or "", "failed")
    return "idle" if row.run is None else _AT_WORK.get(row.run, "idle")


def _rows(conn: Connection, scope: AgentScope) -> Sequence[AgentRow]:
    if scope.session_id is None:
        found = agent_tree.at_work(conn)
    else:
        found = agent_tree.of_tree(conn, agents.tree_of(conn, scope.session_id))
        if not found:
            # A session without subagents has an empty tree; one that does not exist has none.
            sessions.get(conn, scope.session_id)
    return [
        row
        for row in found
        if scope.live in (None, not row.agent.settled) and scope.status in (None, status_of(row))
    ]


def _summary(row: AgentRow, names: Mapping[str, str], now: int) -> AgentSummary:
    agent, status = row.agent, status_of(row)
    said = agent.result.strip()[:PREVIEW] or None
    return AgentSummary(
        agent_id=agent.name,
        session_id=agent.session_id,
        root_session_id=agent.tree_id,
        parent_session_id=agent.parent_id,
        parent_agent_id=names.get(agent.parent_id),
        depth=agent.depth,
        type=agent.type,
        label=agent.label,
        mode=agent.mode,
        retention=agent.retention,
        status=status,
        standing=standing(row),
        active_run_id=row.run_id,
        tokens=row.tokens,
        cost_usd=row.cost_usd,
        progress=AgentProgress(steps=row.steps, tool_calls=row.tool_calls),
        last_output_preview=None if status == "failed" else said,
        last_error=said if status == "failed" else None,
        created_at_ms=agent.created_ms,
        settled_at_ms=agent.settled_ms,
        elapsed_ms=agent.lasted_ms(now),
    )
