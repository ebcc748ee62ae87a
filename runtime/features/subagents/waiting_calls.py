"""The calls by which agents wait: the row of the call, and the open call that stands for it."""

from typing import Literal

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.tools import ToolResult
from runtime.domain.value import JsonObject
from runtime.features.subagents.notices import Told
from runtime.sessions import calls, open_calls, runs
from runtime.sessions.calls import CallRow
from runtime.sessions.lanes import Lane
from runtime.sessions.open_calls import CLARIFICATION, OpenCall
from runtime.store import Connection


def begin(
    conn: Connection, lane: Lane, row: CallRow, kind: str, payload: JsonObject, *, lasts_ms: int
) -> OpenCall:
    """Let a call of the locked lane wait, for so long at most."""
    prefix = IdPrefix.QUESTION if kind == CLARIFICATION else IdPrefix.AGENT
    call = OpenCall(
        id=new_id(prefix, lane.now_ms),
        session_id=lane.session_id,
        run_id=row.run_id,
        step=row.step,
        place=row.place,
        kind=kind,
        digest=row.digest,
        payload=payload,
        created_ms=lane.now_ms,
        expires_ms=lane.now_ms + lasts_ms,
    )
    open_calls.add(conn, call)
    calls.set_state(conn, row, "waiting")
    return call


def row_of(conn: Connection, call: OpenCall) -> CallRow:
    """The row of the call that waits."""
    rows = calls.of_step(conn, call.run_id, call.step)
    return next(row for row in rows if row.place == call.place)


def end(
    conn: Connection,
    lane: Lane,
    row: CallRow,
    told: Told,
    status: Literal["ok", "error", "denied"] = "ok",
) -> None:
    """Give a call its result. The run is tainted where the result is."""
    result = ToolResult(
        call_id=row.call.id,
        name=row.call.name,
        status=status,
        content=told.text,
        untrusted=told.tainted,
    )
    calls.end(conn, row, result, None, now=lane.now_ms)
    if told.tainted:
        runs.change(conn, row.run_id, {"tainted": True})
