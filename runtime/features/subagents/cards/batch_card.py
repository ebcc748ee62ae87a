"""The live card of a batch: one message that says how the agents of a step get on (item 7 of SUB).

It begins in the unit that spawns them, as a row of the outbox like any other, and is changed in
place by further rows, one at a time. What it says is read from the rows of the agents, so a restart
loses nothing of it, and any process may go on with it.
"""

from collections.abc import Sequence
from typing import Final

from runtime.domain.counts import counted
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import OutboundMessage, TextPart
from runtime.features.subagents.agent_selectors import in_words, standing
from runtime.features.subagents.cards.card_text import about, end, put, used
from runtime.features.subagents.rows import agent_tree, batch_cards
from runtime.features.subagents.rows.agent_tree import AgentRow
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
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, lane.now_ms),
        target=run.target,
        reply_to=run.reply_to,
        parts=(TextPart(markdown=shown, names_commands=True),),
        run_id=run.id,
        session_id=run.session_id,
    )
    outbox.add(conn, NewRow(kind=LIVE_CARD, message=message, open_call_id=name))
    return True


def care(conn: Connection, card_id: str) -> bool:
    """Bring a card up to date that may be changed now; True where something is to be sent."""
    card, now = batch_cards.lock(conn, card_id), now_ms(conn)
    if card is None or card.next_ms is None or card.next_ms > now:
        return False
    rows = agent_tree.of_step(conn, card.run_id, card.step)
    if all(row.agent.settled_ms is not None for row in rows):
        ended = end(conn, card, [row.agent for row in rows], now)
        if not ended:
            batch_cards.change(conn, card, shown=card.shown, next_ms=now + LATER_MS)
        return ended
    said = words(rows)
    pause_ms = _pause_ms(runs.get(conn, card.run_id), now - card.created_ms)
    if said == card.shown or not put(conn, card, said, now=now):
        batch_cards.change(conn, card, shown=card.shown, next_ms=now + LATER_MS)
        return False
    batch_cards.change(conn, card, shown=said, next_ms=now + pause_ms)
    return True


def words(rows: Sequence[AgentRow]) -> str:
    """A batch at work. Nothing in it changes by itself, so that it changes only with news."""
    done = sum(row.agent.settled_ms is not None for row in rows)
    lines = [f"**{counted(len(rows), 'subagent')} at work**, {done} done"]
    for row in rows[:MOST_LINES]:
        agent = row.agent
        spent = f", {used(row.steps, row.tokens, row.cost_usd)}" if row.steps else ""
        called = f"`{agent.name}`{about(agent, MOST_LABEL)} {agent.type}"
        lines.append(f"- {called}: {in_words(standing(row))}{spent}")
    if len(rows) > MOST_LINES:
        lines.append(f"- and {len(rows) - MOST_LINES} more: `/agents` shows them")
    return "\n".join(lines)


def _pause_ms(run: Run, age_ms: int) -> int:
    least = DIRECT_MS if run.target.chat_kind == "direct" else GROUP_MS
    return max(least, age_ms // SLOWER)
