"""Ending a run outside its turn: every call gets a result, and the person a word where due."""

from collections.abc import Sequence

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import OutboundMessage, TextPart
from runtime.domain.tools import Effect, ToolResult
from runtime.domain.transcript import ToolMessage, message_tokens
from runtime.store import Connection, calls, outbox, transcripts
from runtime.store.calls import CallRow
from runtime.store.lanes import Lane
from runtime.store.outbox import FINAL_RANK, NewRow
from runtime.store.runs import Run
from runtime.store.transcripts import Line

LAST_MESSAGES = 4
"""How far from the end of a transcript an active run's last step can be."""


def close_step(conn: Connection, lane: Lane, run: Run, reason: str) -> Sequence[Line]:
    """Every call of an unfinished step gets a result, so that the transcript stays well formed.

    A result that is there is kept. A call that had begun may have had its effect, and says so
    (MSG-8). Gives the line of the results; nothing where the step has one already.
    """
    rows = calls.of_step(conn, run.id, run.step) if run.step else ()
    if not rows or _has_results(conn, lane, run):
        return ()
    results = [row.result or _given_up(row, reason) for row in rows]
    for row, result in zip(rows, results, strict=True):
        if row.result is None:
            calls.end(conn, row, result, None, now=lane.now_ms)
    message = ToolMessage(results=tuple(results))
    seq = lane.say(message, run_id=run.id, step=run.step, transcript=run.transcript)
    tokens = message_tokens(message)
    return (Line(seq, run.id, run.step, tokens, lane.now_ms, message),)


def _has_results(conn: Connection, lane: Lane, run: Run) -> bool:
    return transcripts.has_results(
        conn, run.session_id, run_id=run.id, step=run.step, since=lane.message_seq - LAST_MESSAGES
    )


def _given_up(row: CallRow, reason: str) -> ToolResult:
    if row.state == "started" and row.effect is not Effect.READ:
        content = f"{reason} This had begun, so it may have had its effect, in whole or in part."
        return ToolResult(
            call_id=row.call.id, name=row.call.name, status="unknown", content=content
        )
    return ToolResult(call_id=row.call.id, name=row.call.name, status="cancelled", content=reason)


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
