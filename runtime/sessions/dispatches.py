"""A message that goes out while its run works: a file, or words for another conversation.

It is put out by the unit that keeps the result of the tool, so a crash leaves both or neither, and
what was put out is sent as every row of the outbox is.
"""

from typing import Final

from pydantic import JsonValue

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import Dispatch, FilePart, OutboundMessage
from runtime.domain.value import JsonObject
from runtime.sessions import audit, outbox, streams
from runtime.sessions.calls import CallRow
from runtime.sessions.outbox import NewRow
from runtime.sessions.runs import Run
from runtime.store import Connection

FILE: Final = "file"
"""The kind of a row that carries what a tool sends."""


def send(conn: Connection, run: Run, row: CallRow, sends: Dispatch, *, now: int) -> OutboundMessage:
    """Put what a call sends into the outbox; in the chat of its run, behind what that said so far.

    A text that grew there is closed with what it said: the reply comes behind, in a new post.
    """
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now),
        target=sends.target or run.target,
        reply_to=run.reply_to if sends.target is None else None,
        parts=sends.parts,
        run_id=run.id if sends.target is None else None,
        session_id=sends.session_id or run.session_id,
    )
    if sends.target is None:
        streams.rest(conn, run)
    outbox.add(conn, NewRow(kind=FILE, message=message), now=now)
    _audit(conn, run, row, message)
    return message


def _audit(conn: Connection, run: Run, row: CallRow, message: OutboundMessage) -> None:
    files: list[JsonValue] = [
        {"name": part.name, "size_bytes": part.size_bytes, "digest": part.digest}
        for part in message.parts
        if isinstance(part, FilePart)
    ]
    data: JsonObject = {
        "tool": row.call.name,
        "call_id": row.call.id,
        "outbox_id": message.outbox_id,
    }
    if files:
        data["files"] = files
    else:
        data["to"] = message.target.model_dump(mode="json")
        data["digest"] = row.digest
    audit.append(
        conn,
        actor="agent",
        action="file.send" if files else "message.send",
        session_id=run.session_id,
        run_id=run.id,
        data=data,
    )
