"""The unit in which a run asks and spawns: cards, children, and whether it waits (SUB-7, APR-1).

All that a step needs from others is begun in one unit, so that a crash leaves all of it or none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.people import Approvers
from runtime.domain.tools import ToolResult
from runtime.inbox import clarifying, parking, telling
from runtime.inbox.claims import Holder
from runtime.inbox.parking import Wait
from runtime.store import Connection, calls, lanes, open_calls, runs
from runtime.store.agents import Agent
from runtime.store.calls import CallRow
from runtime.store.lanes import Lane
from runtime.store.open_calls import CHILDREN, CLARIFICATION, OpenCall
from runtime.store.runs import Run
from runtime.subagents import cards, children, lingering, repeating
from runtime.subagents.children import SpawnOrder
from runtime.subagents.lingering import Lingers

BACKGROUND: Final = (
    "They work in the background. Their results will be handed to you; go on, or tell the person "
    "what you have begun."
)


ISOLATED: Final = (
    "They work in the background, isolated: nobody tells you when they end. Look after them, and "
    "read their results, with subagents."
)


@dataclass(frozen=True, slots=True)
class Begins:
    """A call that spawns children, once policy lets it."""

    row: CallRow
    order: SpawnOrder


@dataclass(frozen=True, slots=True)
class Parked:
    """`waits` is False where nothing is left to wait for: then `rows` are the step's as they are
    now. `spawned` says that children were made."""

    waits: bool
    rows: Sequence[CallRow] = ()
    spawned: bool = False


def park(
    conn: Connection,
    holder: Holder,
    run_id: str,
    waits: Sequence[Wait | Begins | Lingers],
    *,
    approvers: Approvers,
    expires_in_ms: int,
    window_from: int,
) -> Parked:
    """Open what a step waits for, and let the run wait where anything is open.

    A run that somebody asked to end asks and spawns nothing: it ends here.
    """
    lane = lanes.lock_of_run(conn, run_id)
    run = runs.owned(conn, run_id, worker=holder.worker, fence=holder.fence)
    if run.cancel is not None:
        parking.end_instead(conn, lane, run, run.cancel)
        return Parked(waits=True)
    spawned = False
    # A question to the parent locks its lane, a spawn the root's: lanes from the child upwards.
    # Who is waited for may be spawned by the same step.
    order = (Wait, Begins, Lingers)
    for wait in sorted(waits, key=lambda one: order.index(type(one))):
        if isinstance(wait, Wait) and wait.kind == CLARIFICATION:
            clarifying.ask(conn, lane, run, wait, expires_in_ms=wait.expires_in_ms or expires_in_ms)
        elif isinstance(wait, Begins):
            spawned = _begin(conn, lane, run, wait) or spawned
        elif isinstance(wait, Lingers):
            lingering.begin(conn, lane, wait)
        else:
            parking.ask(conn, lane, run, wait, approvers=approvers, expires_in_ms=expires_in_ms)
    if spawned:
        cards.begin(conn, lane, run, run.step)
    waiting = bool(open_calls.of_run(conn, run_id, state="open"))
    if waiting:
        parking.rest(conn, lane, run, window_from=window_from)
    lanes.save(conn, lane)
    rows = () if waiting else calls.of_step(conn, run_id, run.step)
    return Parked(waiting, rows, spawned)


def _begin(conn: Connection, lane: Lane, run: Run, begins: Begins) -> bool:
    """Spawn; the call ends at once unless it awaits. True where children were made."""
    row, order = begins.row, begins.order
    known = repeating.repeated(conn, run, row, order.terms)
    if known is not None:
        calls.end(conn, row, known, row.decision, now=lane.now_ms)
        if known.untrusted:
            runs.change(conn, run.id, {"tainted": True})
        return False
    made = children.spawn(conn, lane, run, step=row.step, place=row.place, order=order)
    if made.problems:
        lines = "\n".join(f"- {problem}" for problem in made.problems)
        result = ToolResult(
            call_id=row.call.id,
            name=row.call.name,
            status="error",
            content=f"Nothing was started:\n{lines}",
        )
        calls.end(conn, row, result, row.decision, now=lane.now_ms)
        return False
    if order.request.mode == "background":
        isolated = order.terms.shared == "isolated"
        result = ToolResult(
            call_id=row.call.id,
            name=row.call.name,
            content=f"{_told(conn, made.agents)}\n{ISOLATED if isolated else BACKGROUND}",
        )
        calls.end(conn, row, result, row.decision, now=lane.now_ms)
        return True
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
    return True


def _told(conn: Connection, made: Sequence[Agent]) -> str:
    lines = [telling.reply(conn, one) for one in made]
    if len(made) > 1:
        lines.append(f"{len(made)} subagents were started.")
    return "\n".join(lines)
