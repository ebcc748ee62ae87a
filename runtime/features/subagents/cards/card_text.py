"""How the card of a batch changes, and what it says at its end.

The unit that settles the last agent of a batch writes the card's last words as well, in front of
whatever its parent says then. What it says before is the keeper's
matter (`batch_card`).
"""

import re
from collections.abc import Sequence
from typing import Final

from runtime.domain.counts import counted
from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import TextPart
from runtime.domain.printable import one_line
from runtime.features.subagents.rows import batch_cards
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.rows.batch_cards import AgentCard
from runtime.sessions import outbox
from runtime.sessions.outbox import NewRow
from runtime.store import Connection

NAMED: Final = 3
"""Of those that ended in the same way, but did not complete, so many are named."""
_MARKS: Final = re.compile(r"([!-/:-@\[-`{-~])")
"""The characters that Markdown lets a backslash take the meaning from (CommonMark 2.4)."""


def settled(conn: Connection, agent: Agent, *, now: int) -> None:
    """An agent settled: where it was the last of its batch, the card says how all ended."""
    card = batch_cards.lock(conn, batch_cards.name_of(agent.run_id, agent.step))
    if card is None or card.next_ms is None:
        # What was said last stays, also where one of them is spoken to again.
        return
    if batch_cards.anybody_at_work(conn, agent.run_id, agent.step):
        return
    if not end(conn, card, batch_cards.of_step(conn, agent.run_id, agent.step), now):
        batch_cards.change(conn, card, shown=card.shown, next_ms=now)


def end(conn: Connection, card: AgentCard, everybody: Sequence[Agent], now: int) -> bool:
    """Give the card its last words; False where it cannot be changed yet."""
    words = last_words(everybody)
    if not put(conn, card, words, now=now):
        return False
    batch_cards.change(conn, card, shown=words, next_ms=None)
    return True


def put(conn: Connection, card: AgentCard, words: str, *, now: int) -> bool:
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


def last_words(everybody: Sequence[Agent]) -> str:
    """One line on a batch that is over: how they ended, and what they used."""
    ends: dict[str, list[str]] = {}
    for one in everybody:
        ends.setdefault(one.status or "settled", []).append(f"`{one.name}`")
    told = ", ".join(
        f"{len(names)} {status.replace('_', ' ')}{_named(status, names, len(everybody))}"
        for status, names in ends.items()
    )
    began = min(one.created_ms for one in everybody)
    ended = max(one.settled_ms or one.created_ms for one in everybody)
    costs = [one.cost_usd for one in everybody if one.cost_usd is not None]
    spent = used(
        sum(one.steps for one in everybody),
        sum(one.input_tokens + one.output_tokens for one in everybody),
        sum(costs) if costs else None,
    )
    count, span = counted(len(everybody), "subagent"), took((ended - began) // 1000)
    return f"**{count}**: {told}. {spent}, {span}."


def labelled(agent: Agent) -> str:
    """An agent's label behind its name. Whoever spawned it chose the words, and may be an agent
    that says nothing to people itself: they are words alone, without links or marks."""
    return _behind(agent.label)


def about(agent: Agent, most: int) -> str:
    """What an agent is there for, as `labelled`: its label, a line about it, or how its task
    begins; at most so many characters of it."""
    words = agent.label or agent.description or agent.task[: 4 * most]
    return _behind(one_line(words, most))


def _behind(words: str) -> str:
    # In quotes that it cannot close: it must not read as something that the gateway says.
    plain = _MARKS.sub(r"\\\1", words.replace('"', "'"))
    return f' ("{plain}")' if plain else ""


def _named(status: str, names: Sequence[str], of: int) -> str:
    """Who ended so, where that is not as it should be and not all of them did."""
    if status == "completed" or len(names) == of:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f" ({', '.join(names[:NAMED])}{more})"


def used(steps: int, tokens: int, cost: float | None) -> str:
    """Steps, tokens and, where it is known, money."""
    money = "" if cost is None else f", ${cost:.4f}"
    return f"{counted(steps, 'step')}, {counted(tokens, 'token')}{money}"


def took(seconds: int) -> str:
    """A span of time as people say it."""
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
