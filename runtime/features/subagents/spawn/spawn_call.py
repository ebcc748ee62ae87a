"""A call that spawns: its children are made in the unit that parks the run, or ends the call at
once where it does not await them (SUB-7). A call that was sent before, under the same key, is told
of its agents and starts nothing new (SUB-6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.value import JsonObject
from runtime.features.subagents import batch_card, notices
from runtime.features.subagents.ends import result_text
from runtime.features.subagents.notices import Told
from runtime.features.subagents.rows import agents
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.spawn import children
from runtime.features.subagents.spawn.children import SpawnOrder
from runtime.ports import bus
from runtime.sessions import open_calls, runs
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import CHILDREN
from runtime.sessions.runs import Run
from runtime.sessions.unit import Opening, Unit
from runtime.store import Connection

BACKGROUND: Final = (
    "They work in the background. Their results will be handed to you; go on, or tell the person "
    "what you have begun."
)
ISOLATED: Final = (
    "They work in the background, isolated: nobody tells you when they end. Look after them, and "
    "read their results, with subagents."
)
BEFORE: Final = "This request started them before, so nothing new was started."
TOLD: Final = "You will be told the results of those that still work."
SILENT: Final = "Look after those that still work with subagents."


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnOpening(Opening):
    """A call that spawns children, once policy lets it."""

    kind: str = CHILDREN
    order: SpawnOrder


def begin(unit: Unit, lane: Lane, run: Run, opening: Opening) -> None:
    """Spawn; the call ends at once unless it awaits."""
    if not isinstance(opening, SpawnOpening):
        raise TypeError(f"children are not spawned by {type(opening).__name__}")
    conn, row, order = unit.conn, opening.row, opening.order
    key = order.arguments.spawn_request_id
    known = agents.of_request(conn, run.session_id, key) if key else ()
    if known:
        _repeat(conn, lane, run, opening, known)
        return
    made = children.spawn(unit, lane, run, step=row.step, place=row.place, order=order)
    if made.problems:
        lines = "\n".join(f"- {problem}" for problem in made.problems)
        notices.end(conn, lane, row, Told(f"Nothing was started:\n{lines}"), "error")
        return
    for topic in (bus.CHILDREN, bus.RUNS):
        unit.say(topic)
    # One card for all that a step spawns: it is posted when every call of the step was opened.
    unit.last("card", lambda conn: batch_card.begin(conn, lane, run, row.step))
    if order.arguments.mode == "background":
        isolated = order.share == "isolated"
        text = f"{_started(conn, made.agents)}\n{ISOLATED if isolated else BACKGROUND}"
        notices.end(conn, lane, row, Told(text))
        return
    names: JsonObject = {"agents": [one.name for one in made.agents]}
    open_calls.begin(conn, lane, row, CHILDREN, names, lasts_ms=order.settings.await_ms)


def _started(conn: Connection, made: Sequence[Agent]) -> str:
    lines = [result_text.reply(conn, one) for one in made]
    if len(made) > 1:
        lines.append(f"{len(made)} subagents were started.")
    return "\n".join(lines)


def _repeat(
    conn: Connection, lane: Lane, run: Run, opening: SpawnOpening, there: Sequence[Agent]
) -> None:
    """End a call that was sent before with the same key: it is told of the agents that are `there`
    since then.

    What was sent is compared, as its digest in the agents' rows, and nothing that was looked up
    for it: so it is the same spawn after a restart, and whatever its parent inherited or was
    granted meanwhile.
    """
    row, wrong = opening.row, _conflict(conn, there[0], run, opening.order)
    if wrong:
        names = ", ".join(one.name for one in there)
        text = f"Nothing was started:\n- spawn_request_id: {wrong} (it started {names})"
        notices.end(conn, lane, row, Told(text), "error")
        return
    live = [one for one in there if not one.settled]
    said = result_text.together(conn, [one for one in there if one.settled])
    rest = SILENT if any(one.share == "isolated" for one in live) else TOLD
    parts = [f"{BEFORE} {rest}" if live else BEFORE]
    parts += [result_text.reply(conn, one) for one in live]
    if said.text:
        parts.append(said.text)
    notices.end(conn, lane, row, Told("\n".join(parts), said.tainted))


def _conflict(conn: Connection, first: Agent, run: Run, order: SpawnOrder) -> str:
    key = order.arguments.spawn_request_id
    if first.request_digest != order.digest:
        return (
            f"{key} is the key of a spawn with other arguments; send the same ones again, "
            "or use another key"
        )
    # Nobody is told what somebody with other rights asked for.
    if not run.speaker.has_rights_of(runs.get(conn, first.run_id).speaker):
        return f"{key} is the key of a spawn for somebody else; use another key"
    return ""
