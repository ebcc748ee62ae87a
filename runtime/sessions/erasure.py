"""Takes a conversation out of the database, with all sessions below it. Statements only.

Runs stay as what was used, and audit rows as what was done, both with ids and without a word of
what was said; the session's own row stays because runs point to it. Its key is free again.
"""

import json
from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, Table, delete, exists, select, update

from runtime.domain.messages import FilePart, OutboundMessage
from runtime.domain.people import Speaker
from runtime.sessions.tables import (
    audit,
    events,
    inputs,
    lanes,
    messages,
    open_calls,
    outbox,
    runs,
    sessions,
    tool_calls,
)
from runtime.store.payloads import kept

DELETED = "deleted"
_UNSETTLED = ("pending", "sending", "streaming")
_OF_SESSION: Sequence[Table] = (open_calls, messages, inputs, events, outbox)


def key_of(session_id: str) -> str:
    """The key of a session that is deleted, or that is about to be: its own is free again."""
    return f"{DELETED}:{session_id}"


def on_the_way(conn: Connection, session_ids: Sequence[str]) -> bool:
    """Whether a message of these sessions is still to be sent."""
    waiting = exists().where(outbox.c.session_id.in_(session_ids), outbox.c.state.in_(_UNSETTLED))
    return bool(conn.execute(select(waiting)).scalar())


def copies_of(conn: Connection, session_ids: Sequence[str]) -> Iterator[str]:
    """The paths of the copies of files that these sessions sent."""
    query = select(outbox.c.message).where(
        outbox.c.session_id.in_(session_ids), outbox.c.kind == "file"
    )
    for row in conn.execute(query):
        for part in kept(OutboundMessage, row.message).parts:
            if isinstance(part, FilePart):
                yield part.path


def erase(conn: Connection, session_ids: Sequence[str]) -> None:
    """Delete what was said, asked and done in these sessions, whose lanes are held; what features
    keep of them goes before."""
    own = select(runs.c.id).where(runs.c.session_id.in_(session_ids))
    conn.execute(delete(tool_calls).where(tool_calls.c.run_id.in_(own)))
    for table in _OF_SESSION:
        conn.execute(delete(table).where(_among(table, session_ids)))
    conn.execute(delete(lanes).where(_among(lanes, session_ids)))
    _forget_words(conn, session_ids)
    for session_id in session_ids:
        conn.execute(
            update(sessions)
            .where(sessions.c.id == session_id)
            .values(key=key_of(session_id), title="", status=DELETED, grants="[]")
        )


def _forget_words(conn: Connection, session_ids: Sequence[str]) -> None:
    """Leave ids in the rows of runs and of the audit log."""
    conn.execute(update(audit).where(_among(audit, session_ids)).values(data=json.dumps({})))
    of_them = _among(runs, session_ids)
    conn.execute(update(runs).where(of_them).values(error=None, cancel=None))
    for speaker in conn.execute(select(runs.c.speaker).where(of_them).distinct()).scalars().all():
        nameless = kept(Speaker, speaker).model_copy(update={"name": ""}).model_dump_json()
        same = of_them & (runs.c.speaker == speaker)
        conn.execute(update(runs).where(same).values(speaker=nameless))


def _among(table: Table, session_ids: Sequence[str]) -> ColumnElement[bool]:
    return table.c.session_id.in_(session_ids)
