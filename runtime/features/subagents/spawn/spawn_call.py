"""A call that spawns: its children are made in the unit that parks the run, or ends the call at
once where it does not await them (SUB-7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.tools import ToolResult
from runtime.features.subagents.cards import batch_card
from runtime.features.subagents.ends import handoff_text
from runtime.features.subagents.rows.agents import Agent
from runtime.features.subagents.spawn import child_lifecycle, spawn_replay
from runtime.features.subagents.spawn.child_lifecycle import SpawnOrder
from runtime.ports.bus import CHILDREN as AGENTS
from runtime.ports.bus import RUNS
from runtime.sessions import calls, open_calls, runs
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import CHILDREN, OpenCall
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnOpening(Opening):
    """A call that spawns children, once policy lets it."""

    kind: str = CHILDREN
    order: SpawnOrder


def begin(unit: Unit, lane: Lane, run: Run, opening: Opening) -> None:
    """Spawn; the call ends at once unless it awaits."""
    if not isinstance(opening, SpawnOpening):
        raise TypeError(f"children are not spawned by {type(opening).__name__}")
    conn = unit.conn
    row, order = opening.row, opening.order
    known = spawn_replay.repeated(conn, run, row, order.terms)
    if known is not None:
        calls.end(conn, row, known, row.decision, now=lane.now_ms)
        if known.untrusted:
            runs.change(conn, run.id, {"tainted": True})
        return
    made = child_lifecycle.spawn(unit, lane, run, step=row.step, place=row.place, order=order)
    if made.problems:
        lines = "\n".join(f"- {problem}" for problem in made.problems)
        result = ToolResult(
            call_id=row.call.id,
            name=row.call.name,
            status="error",
            content=f"Nothing was started:\n{lines}",
        )
        calls.end(conn, row, result, row.decision, now=lane.now_ms)
        return
    for topic in (AGENTS, RUNS):
        unit.say(topic)
    # One card for all that a step spawns: it is posted when every call of the step was opened.
    unit.last("card", lambda conn: batch_card.begin(conn, lane, run, row.step))
    if order.request.mode == "background":
        isolated = order.terms.shared == "isolated"
        result = ToolResult(
            call_id=row.call.id,
            name=row.call.name,
            content=f"{_told(conn, made.agents)}\n{ISOLATED if isolated else BACKGROUND}",
        )
        calls.end(conn, row, result, row.decision, now=lane.now_ms)
        return
    open_calls.add(
        conn,
        OpenCall(
            id=new_id(IdPrefix.AGENT, lane.now_ms),
            session_id=run.session_id,
            run_id=run.id,
            step=row.step,
            place=row.place,
            kind=CHILDREN,
            digest=row.digest,
            payload={"agents": [one.name for one in made.agents]},
            created_ms=lane.now_ms,
            expires_ms=lane.now_ms + order.await_ms,
        ),
    )
    calls.set_state(conn, row, "waiting")


def _told(conn: Connection, made: Sequence[Agent]) -> str:
    lines = [handoff_text.reply(conn, one) for one in made]
    if len(made) > 1:
        lines.append(f"{len(made)} subagents were started.")
    return "\n".join(lines)
