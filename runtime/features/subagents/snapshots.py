"""Every agent as it stands (AGT-1): the one of a conversation, and each that was spawned below it.

An agent is the primary one of exactly one session, and has that session's id.
"""

from collections.abc import Sequence
from typing import Final

from runtime.domain import cursors
from runtime.domain.cursors import Page
from runtime.domain.printable import one_line
from runtime.domain.value import Value
from runtime.features.subagents.rows import agent_tree, agents
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import ROOT
from runtime.features.subagents.status_words import (
    AT_WORK,
    AgentStatus,
    DashboardStatus,
    words,
)
from runtime.sessions import inputs, listings, open_calls, runs, sessions
from runtime.sessions.open_calls import APPROVAL, CLARIFICATION, QUESTION, OpenCall
from runtime.sessions.sessions import Session
from runtime.store import Connection, Database

PROMPT: Final = 240
"""Characters of what an agent's definition or task begins with."""


class AgentConversation(Value):
    """The session that an agent works in."""

    key: str
    title: str
    channel: str


class ManagedAgentSnapshot(Value):
    """One agent, whose `id` is its session's; `parent_agent_id` and `root_agent_id` are such ids
    too. `agent_id` is its name in the tree. `tool_surface` are the tools that it has now. The ids
    of what it waits for can be answered by `/v1/runs`."""

    id: str
    agent_id: str
    parent_agent_id: str | None
    root_agent_id: str
    session_id: str
    path: str
    nickname: str
    conversation: AgentConversation
    type: str
    tool_surface: tuple[str, ...] = ()
    prompt_summary: str
    status: AgentStatus
    dashboard_status: DashboardStatus
    standing: str
    retention: str
    spawned_by_run_id: str | None
    spawn_request_id: str | None
    active_run_id: str | None
    queued_mailbox_count: int
    pending_approvals: tuple[str, ...]
    pending_questions: tuple[str, ...]
    pending_parent_clarifications: tuple[str, ...]
    last_assistant_message: str | None
    last_error: str | None
    created_at_ms: int
    last_activity_at_ms: int
    settled_at_ms: int | None


class SnapshotReader:
    """Reads snapshots. Raises `NotFound`, `InvalidInput` (a cursor that is none) and
    `StoreUnavailable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def snapshot(self, agent_id: str) -> ManagedAgentSnapshot:
        """One agent, by the id of its session."""
        return await self._database.read(lambda conn: _snapshot(conn, agent_id))

    async def snapshots(
        self, tree_of: str | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ManagedAgentSnapshot]:
        """All agents in the order of their ids, or those of the tree that the session
        `tree_of` is in."""
        after = ""
        if cursor is not None:
            after = str(*cursors.decode(cursor, str))

        def work(conn: Connection) -> Page[ManagedAgentSnapshot]:
            tree = None
            if tree_of is not None:
                tree = agents.tree_of(conn, sessions.get(conn, tree_of).id)
            ids, total = agent_tree.sessions_in(conn, tree, after=after, most=limit + 1)
            return Page(
                items=tuple(_snapshot(conn, one) for one in ids[:limit]),
                next_cursor=cursors.encode(ids[limit - 1]) if len(ids) > limit else None,
                total_count=total,
            )

        return await self._database.read(work)


def _snapshot(conn: Connection, session_id: str) -> ManagedAgentSnapshot:
    session = sessions.get(conn, session_id)
    row = agent_tree.of_session(conn, session_id)
    opened = open_calls.open_ones(conn, session_id=session_id)
    line = listings.session_line(conn, session_id)
    active = line.active_run if line else None
    standing = _standing_of_root(conn, session, active) if row is None else row.standing
    said, agent = words(standing), None if row is None else row.agent
    return ManagedAgentSnapshot(
        id=session.id,
        agent_id=agent.name if agent else ROOT,
        parent_agent_id=agent.parent_id if agent else None,
        root_agent_id=agent.tree_id if agent else session.id,
        session_id=session.id,
        path=agents.path(conn, session_id) or ROOT,
        nickname=agent.label if agent else "",
        conversation=AgentConversation(
            key=session.key, title=session.title, channel=session.address.channel
        ),
        type=agent.type if agent else session.agent,
        prompt_summary=one_line(agent.prompt or agent.task, PROMPT) if agent else "",
        status=said.agent,
        dashboard_status=said.dashboard,
        standing=standing,
        retention=agent.retention if agent else "retain",
        spawned_by_run_id=agent.run_id if agent else None,
        spawn_request_id=agent.request_key if agent else None,
        active_run_id=active,
        queued_mailbox_count=inputs.mail_waiting(conn, [session_id]).get(session_id, 0),
        pending_approvals=_ids(opened, APPROVAL),
        pending_questions=_ids(opened, QUESTION),
        pending_parent_clarifications=_ids(opened, CLARIFICATION),
        last_assistant_message=agent_tree.said_last(conn, session_id) or None,
        last_error=_error(conn, row, session_id),
        created_at_ms=agent.created_ms if agent else session.created_ms,
        last_activity_at_ms=line.last_ms if line else session.updated_ms,
        settled_at_ms=agent.settled_ms if agent else None,
    )


def _standing_of_root(conn: Connection, session: Session, active: str | None) -> str:
    """Where the agent of a conversation stands, which nobody spawned."""
    if active is not None:
        return AT_WORK.get(runs.get(conn, active).state, "queued")
    if session.status != "open":
        return "completed"
    return "queued" if runs.queued(conn, session.id) else "idle"


def _error(conn: Connection, row: AgentRow | None, session_id: str) -> str | None:
    """The error of its last run that had one; how it failed where none had."""
    given = row.agent.result if row is not None and row.standing == "failed" else ""
    return (agent_tree.last_error(conn, session_id) or given).strip() or None


def _ids(opened: Sequence[OpenCall], kind: str) -> tuple[str, ...]:
    return tuple(one.id for one in opened if one.kind == kind)
