"""A message that goes out while its run works: a file, put out by the unit that keeps the result.

So a crash leaves both or neither, and what was put out is sent as every row of the outbox is.
"""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import FilePart, OutboundMessage, OutboundPart
from runtime.domain.value import JsonObject
from runtime.inbox import streams
from runtime.store import Connection, audit, outbox
from runtime.store.calls import CallRow
from runtime.store.outbox import NewRow
from runtime.store.runs import Run

FILE: Final = "file"
"""The kind of a row that carries what a tool sends to the chat of its run."""


def send(
    conn: Connection, run: Run, row: CallRow, parts: Sequence[OutboundPart], *, now: int
) -> OutboundMessage:
    """Put what a call sends into the outbox, behind what the run has said so far.

    A text that grew is closed with what it said: the reply comes behind the file, in a new post.
    """
    streams.rest(conn, run)
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now),
        target=run.target,
        reply_to=run.reply_to,
        parts=tuple(parts),
        run_id=run.id,
        session_id=run.session_id,
    )
    outbox.add(conn, NewRow(kind=FILE, message=message), now=now)
    sent: list[JsonValue] = [
        {"name": part.name, "size_bytes": part.size_bytes, "digest": part.digest}
        for part in parts
        if isinstance(part, FilePart)
    ]
    data: JsonObject = {
        "tool": row.call.name,
        "call_id": row.call.id,
        "outbox_id": message.outbox_id,
        "files": sent,
    }
    audit.append(
        conn,
        actor="agent",
        action="file.send",
        session_id=run.session_id,
        run_id=run.id,
        data=data,
    )
    return message
