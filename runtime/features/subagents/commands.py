"""The tree of a session's subagents in words, for a chat."""

from collections.abc import Sequence
from typing import Final

from runtime.commands.table import Call, Command
from runtime.domain.counts import counted
from runtime.features.subagents.agent_words import (
    in_words,
    labelled,
    retried,
    took,
    total_cost,
    used,
)
from runtime.features.subagents.rows import agent_tree, agents
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.store import Connection

NONE: Final = "No subagents here."
MOST: Final = 40
"""Agents that are shown; of more, those that were spawned last."""


def tree_text(conn: Connection, session_id: str, *, now_ms: int) -> str:
    """Each agent of the tree that a session is in, below the one that spawned it, and the sums."""
    rows = agent_tree.of_tree(conn, agents.tree_of(conn, session_id))
    if not rows:
        return NONE
    live = sum(not row.agent.settled for row in rows)
    cost = total_cost(row.cost_usd for row in rows)
    spent = used(sum(row.steps for row in rows), sum(row.tokens for row in rows), cost)
    spent += retried(sum(row.agent.retries for row in rows))
    lines = [f"{counted(len(rows), 'subagent')}, {live:,} at work: {spent}."]
    shown = {row.agent.session_id for row in rows[-MOST:]}
    if len(rows) > MOST:
        lines.append(f"The last {MOST} of them:")
    for row in _nested(rows):
        if row.agent.session_id in shown:
            lines.append(_line(row, now_ms))
    return "\n".join(lines)


def _nested(rows: Sequence[AgentRow]) -> Sequence[AgentRow]:
    """Children behind the one that spawned them, brothers in the order of spawning."""
    there = {row.agent.session_id for row in rows}
    children: dict[str, list[AgentRow]] = {}
    tops = []
    for row in rows:
        if row.agent.parent_id in there:
            children.setdefault(row.agent.parent_id, []).append(row)
        else:
            tops.append(row)
    found, left = [], tops[::-1]
    while left:
        row = left.pop()
        found.append(row)
        left += children.get(row.agent.session_id, [])[::-1]
    return found


def _line(row: AgentRow, now_ms: int) -> str:
    agent = row.agent
    spent = used(row.steps, row.tokens, row.cost_usd) + retried(agent.retries)
    lasted = took(agent.lasted_ms(now_ms) // 1000)
    indent = "  " * (agent.depth - 1)
    called = f"`{agent.name}`{labelled(agent)} {agent.type}"
    return f"{indent}- {called}, {in_words(row.standing)}: {spent}, {lasted}"


def _tree(call: Call) -> str:
    return tree_text(call.unit.conn, call.session.id, now_ms=call.lane.now_ms)


AGENTS: Final = Command("agents", "shows the subagents of this session", _tree)
