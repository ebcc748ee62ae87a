"""Trees of agents as rows for people and programs (AGT-2), whatever their size in one statement."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.value import Value
from runtime.features.subagents.rows import agent_tree, agents, inherited_grants
from runtime.features.subagents.rows.agent_tree import AgentPage, AgentRow, Chosen
from runtime.features.subagents.status_words import AgentStatus, DashboardStatus, words
from runtime.sessions import sessions
from runtime.sessions.sessions import Session
from runtime.sessions.told_text import Heard, heard
from runtime.store import Connection, Database
from runtime.store.database import now_ms

PREVIEW: Final = 240
"""Characters of what an agent said last."""


class AgentProgress(Value):
    """How far an agent got: model responses and tool calls that are through."""

    steps: int
    tool_calls: int


class AgentSummary(Value):
    """One agent. `agent_id` is its name in its tree, whose root is the session `root_session_id`.
    `parent_agent_id` is the id of its parent, as in a snapshot: that of the parent's session.

    `standing` is finer than `status`: it tells what a live one waits for. `cost_usd` is None where
    no price is known. `elapsed_ms` runs until it settled.
    """

    agent_id: str
    session_id: str
    root_session_id: str
    parent_session_id: str
    parent_agent_id: str
    depth: int
    type: str
    label: str
    mode: str
    retention: str
    status: AgentStatus
    dashboard_status: DashboardStatus
    standing: str
    active_run_id: str | None
    queued_run_count: int
    pending_approval_count: int
    pending_question_count: int
    pending_parent_clarification_count: int
    pending_parent_clarification_run_ids: tuple[str, ...]
    tokens: int
    cost_usd: float | None
    progress: AgentProgress
    last_output_preview: str | None
    last_error: str | None
    last_activity_at_ms: int | None
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
    counts: Mapping[AgentStatus, int]


class AgentsReader:
    """Reads summaries. Raises `NotFound`, `InvalidInput` (a cursor that is none) and
    `StoreUnavailable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def summaries(
        self, scope: AgentScope, *, limit: int = 50, cursor: str | None = None
    ) -> AgentSummaries:
        """Trees in the order of their beginning, the agents of each in the order of spawning."""
        after = ("", 0)
        if cursor is not None:
            tree_id, place = cursors.decode(cursor, str, int)
            after = (str(tree_id), int(place))

        def work(conn: Connection) -> AgentSummaries:
            found = _page(conn, scope, after=after, most=limit + 1)
            now, shown = now_ms(conn), found.rows[:limit]
            end = shown[-1].agent if len(found.rows) > limit else None
            counts = Counter[AgentStatus]()
            for standing, count in found.standings.items():
                counts[words(standing).agent] += count
            page = Page(
                items=tuple(_summary(row, now) for row in shown),
                next_cursor=cursors.encode(end.tree_id, end.place) if end else None,
                total_count=counts.total(),
            )
            return AgentSummaries(page, counts)

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


def _page(conn: Connection, scope: AgentScope, *, after: tuple[str, int], most: int) -> AgentPage:
    tree_id = None if scope.session_id is None else agents.tree_of(conn, scope.session_id)
    chosen = Chosen(tree_id, scope.status, scope.live)
    found = agent_tree.page(conn, chosen, after=after, most=most)
    if tree_id is not None and not found.standings:
        # A session without subagents has an empty tree; one that does not exist has none.
        sessions.get(conn, tree_id)
    return found


def _summary(row: AgentRow, now: int) -> AgentSummary:
    agent, said = row.agent, words(row.standing)
    return AgentSummary(
        agent_id=agent.name,
        session_id=agent.session_id,
        root_session_id=agent.tree_id,
        parent_session_id=agent.parent_id,
        parent_agent_id=agent.parent_id,
        depth=agent.depth,
        type=agent.type,
        label=agent.label,
        mode=agent.mode,
        retention=agent.retention,
        status=said.agent,
        dashboard_status=said.dashboard,
        standing=row.standing,
        active_run_id=row.run_id,
        queued_run_count=row.queued,
        pending_approval_count=row.approvals,
        pending_question_count=row.questions,
        pending_parent_clarification_count=row.asks,
        pending_parent_clarification_run_ids=(row.run_id,) if row.asks and row.run_id else (),
        tokens=row.tokens,
        cost_usd=row.cost_usd,
        progress=AgentProgress(steps=row.steps, tool_calls=row.tool_calls),
        last_output_preview=_preview(row),
        last_error=_error(row),
        last_activity_at_ms=row.active_ms,
        created_at_ms=agent.created_ms,
        settled_at_ms=agent.settled_ms,
        elapsed_ms=agent.lasted_ms(now),
    )


def _preview(row: AgentRow) -> str | None:
    """What it said last while it is at work, or the beginning of what it gave."""
    if row.standing == "failed":
        return None
    said = row.agent.result if row.agent.settled else row.said
    return said.strip()[:PREVIEW] or None


def _error(row: AgentRow) -> str | None:
    """The error of its last run that had one; how it failed where none had."""
    given = row.agent.result if row.standing == "failed" else ""
    return (row.error or given).strip()[:PREVIEW] or None
