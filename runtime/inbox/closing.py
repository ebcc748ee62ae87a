"""Ending a run outside its turn: every call gets a result, and the person a word where due."""

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import OutboundMessage, TextPart
from runtime.domain.tools import ToolResult
from runtime.domain.transcript import ToolMessage
from runtime.store import Connection, calls, outbox
from runtime.store.lanes import Lane
from runtime.store.outbox import FINAL_RANK, NewRow
from runtime.store.runs import Run


def close_step(conn: Connection, lane: Lane, run: Run, reason: str) -> None:
    """Every call of a parked step gets a result, so that the transcript stays well formed."""
    rows = calls.of_step(conn, run.id, run.step)
    if not rows:
        return
    results = [
        row.result
        or ToolResult(call_id=row.call.id, name=row.call.name, status="cancelled", content=reason)
        for row in rows
    ]
    for row, result in zip(rows, results, strict=True):
        if row.result is None:
            calls.end(conn, row, result, None, now=lane.now_ms)
    lane.say(ToolMessage(results=tuple(results)), run_id=run.id, step=run.step)


def last_word(conn: Connection, lane: Lane, run: Run, text: str) -> None:
    """Put the final reply of a run that no turn will finish into the outbox."""
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, lane.now_ms),
        target=run.target,
        reply_to=run.reply_to,
        parts=(TextPart(markdown=text),),
        run_id=run.id,
        session_id=run.session_id,
        final=True,
    )
    outbox.add(conn, NewRow(kind="final", message=message, rank=FINAL_RANK))
