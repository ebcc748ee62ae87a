"""The live card of a batch: one message that says how the agents of a step get on (item 7 of SUB).

It begins in the unit that spawns them, as a row of the outbox like any other, and is changed in
place by further rows, one at a time. What it says is read from the rows of the agents, so a restart
loses nothing of it, and any process may go on with it. The unit that settles the last agent of a
batch writes the last words, in front of whatever its parent says then.
"""

from collections.abc import Sequence
from typing import Final

from runtime.domain.counts import counted
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import TextPart
from runtime.features.subagents.agent_words import (
    about,
    in_words,
    took,
    total_cost,
    used,
)
from runtime.features.subagents.rows import agent_tree, batch_cards
from runtime.features.subagents.rows.agent_tree import AgentRow
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.rows.batch_cards import AgentCard
from runtime.sessions import outbox, runs
from runtime.sessions.lanes import Lane
from runtime.sessions.outbox import LIVE_CARD, NewRow
from runtime.sessions.runs import Run
from runtime.store import Connection
from runtime.store.database import now_ms

LEAST: Final = 2
"""Agents of one step that make a batch; of a single one its parent speaks soon enough."""
MOST_LINES: Final = 12
MOST_LABEL: Final = 40
DIRECT_MS: Final = 3_000
GROUP_MS: Final = 10_000
"""Between two changes: a group's messages are few a minute, and answers come first."""
SLOWER: Final = 10
"""What is at work for long changes less often: after a tenth of the time that it took so far."""
LATER_MS: Final = 1_000
NAMED: Final = 3
"""Of those that ended in the same way, but did not complete, so many are named."""


def begin(conn: Connection, lane: Lane, run: Run, step: int) -> bool:
    """Post the card of the agents that a step of a person's session spawned; True where there is
    one. Those of a child have none: a chat is told of what was asked for in it."""
    if lane.parent_id is not None:
        return False
    rows = agent_tree.of_step(conn, run.id, step)
    if len(rows) < LEAST:
        return False
    name = batch_cards.name_of(run.id, step)
    there = batch_cards.lock(conn, name)
    if there is not None:
        # A call of the step waited for a person, and spawned more of them now.
        batch_cards.change(conn, there, shown=there.shown, next_ms=lane.now_ms)
        return True
    shown = words(rows)
    after = lane.now_ms + _pause_ms(run, 0)
    batch_cards.add(conn, AgentCard(name, run.id, step, shown, lane.now_ms, after))
    parts = (TextPart(markdown=shown, names_commands=True),)
    message = outbox.message_of(run, parts, now=lane.now_ms)
    outbox.add(conn, NewRow(kind=LIVE_CARD, message=message, open_call_id=name))
    return True


def care(conn: Connection, card_id: str) -> bool:
    """Bring a card up to date that may be changed now; True where something is to be sent."""
    card, now = batch_cards.lock(conn, card_id), now_ms(conn)
    if card is None or card.next_ms is None or card.next_ms > now:
        return False
    rows = agent_tree.of_step(conn, card.run_id, card.step)
    if all(row.agent.settled for row in rows):
        return _end(conn, card, [row.agent for row in rows], now=now, later_ms=LATER_MS)
    said = words(rows)
    pause_ms = _pause_ms(runs.get(conn, card.run_id), now - card.created_ms)
    if said == card.shown or not _put(conn, card, said, now=now):
        batch_cards.change(conn, card, shown=card.shown, next_ms=now + LATER_MS)
        return False
    batch_cards.change(conn, card, shown=said, next_ms=now + pause_ms)
    return True


def settled(conn: Connection, agent: Agent, *, now: int) -> None:
    """An agent settled: where it was the last of its batch, the card says how all ended."""
    card = batch_cards.lock(conn, batch_cards.name_of(agent.run_id, agent.step))
    if card is None or card.next_ms is None:
        # What was said last stays, also where one of them is spoken to again.
        return
    if batch_cards.anybody_at_work(conn, agent.run_id, agent.step):
        return
    everybody = batch_cards.of_step(conn, agent.run_id, agent.step)
    _end(conn, card, everybody, now=now, later_ms=0)


def _end(
    conn: Connection, card: AgentCard, everybody: Sequence[Agent], *, now: int, later_ms: int
) -> bool:
    """Give the card its last words; False where it cannot be changed yet, and is tried later."""
    said = last_words(everybody)
    if not _put(conn, card, said, now=now):
        batch_cards.change(conn, card, shown=card.shown, next_ms=now + later_ms)
        return False
    batch_cards.change(conn, card, shown=said, next_ms=None)
    return True


def _put(conn: Connection, card: AgentCard, words: str, *, now: int) -> bool:
    """Let the card say `words`. False while something of it is on its way: two changes of one
    message could arrive in either order."""
    if batch_cards.on_its_way(conn, card.id):
        return False
    first = outbox.card_of(conn, card.id)
    if first is not None and first.posted and words != card.shown:
        part = TextPart(markdown=words, names_commands=True)
        new = {"outbox_id": new_id(IdPrefix.OUTBOX, now), "parts": (part,)}
        changed = first.message.model_copy(update=new)
        outbox.add(conn, NewRow(kind="edit", message=changed, open_call_id=card.id), now=now)
    return True


def words(rows: Sequence[AgentRow]) -> str:
    """A batch at work. Nothing in it changes by itself, so that it changes only with news."""
    done = sum(row.agent.settled for row in rows)
    lines = [f"**{counted(len(rows), 'subagent')} at work**, {done} done"]
    for row in rows[:MOST_LINES]:
        agent = row.agent
        spent = f", {used(row.steps, row.tokens, row.cost_usd)}" if row.steps else ""
        called = f"`{agent.name}`{about(agent, MOST_LABEL)} {agent.type}"
        lines.append(f"- {called}: {in_words(row.standing)}{spent}")
    if len(rows) > MOST_LINES:
        lines.append(f"- and {len(rows) - MOST_LINES} more: `/agents` shows them")
    return "\n".join(lines)


def _pause_ms(run: Run, age_ms: int) -> int:
    least = DIRECT_MS if run.target.chat_kind == "direct" else GROUP_MS
    return max(least, age_ms // SLOWER)


def last_words(everybody: Sequence[Agent]) -> str:
    """One line on a batch that is over: how they ended, and what they used."""
    ends: dict[str, list[str]] = {}
    for one in everybody:
        ends.setdefault(one.status or "settled", []).append(f"`{one.name}`")
    told = ", ".join(
        f"{len(names)} {in_words(status)}{_named(status, names, len(everybody))}"
        for status, names in ends.items()
    )
    began = min(one.created_ms for one in everybody)
    ended = max(one.settled_ms or one.created_ms for one in everybody)
    spent = used(
        sum(one.steps for one in everybody),
        sum(one.input_tokens + one.output_tokens for one in everybody),
        total_cost(one.cost_usd for one in everybody),
    )
    count, span = counted(len(everybody), "subagent"), took((ended - began) // 1000)
    return f"**{count}**: {told}. {spent}, {span}."


def _named(status: str, names: Sequence[str], of: int) -> str:
    """Who ended so, where that is not as it should be and not all of them did."""
    if status == "completed" or len(names) == of:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f" ({', '.join(names[:NAMED])}{more})"
