"""Takes a conversation out of the database, with all sessions below it. Statements only.

Runs stay as what was used, and audit rows as what was done, both with ids and without a word of
what was said; the session's own row stays because runs point to it. Its key is free again.
"""

import json
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Table, delete, exists, select, update

from runtime.domain.people import Speaker
from runtime.sessions import outbox as outbox_rows
from runtime.sessions.outbox import UNSETTLED
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
_OF_SESSION: Sequence[Table] = (open_calls, messages, inputs, events, outbox)


def key_of(session_id: str) -> str:
    """The key of a session that is deleted, or that is about to be: its own is free again."""
    return f"{DELETED}:{session_id}"


def on_the_way(conn: Connection, session_ids: Sequence[str]) -> bool:
    """Whether a message of these sessions is still to be sent."""
    waiting = exists().where(outbox.c.session_id.in_(session_ids), outbox.c.state.in_(UNSETTLED))
    return bool(conn.execute(select(waiting)).scalar())


def copies_of(conn: Connection, session_ids: Sequence[str]) -> frozenset[str]:
    """The paths of the copies of files that these sessions sent."""
    return outbox_rows.files(conn, _among(outbox, session_ids))


def erase(conn: Connection, session_ids: Sequence[str]) -> None:
    """Delete what was said, asked and done in these sessions, whose lanes are held; what features
    keep of them goes before."""
    own = select(runs.c.id).where(runs.c.session_id.in_(session_ids))
    conn.execute(delete(tool_calls).where(tool_calls.c.run_id.in_(own)))
    # The lanes first: rows of features go with them, and a unit that holds one of those may still
    # add to the outbox, which is emptied behind it.
    for table in (lanes, *_OF_SESSION):
        conn.execute(delete(table).where(_among(table, session_ids)))
    _forget_words(conn, session_ids)
    for session_id in session_ids:
        conn.execute(
            update(sessions)
            .where(sessions.c.id == session_id)
            .values(
                key=key_of(session_id),
                title="",
                status=DELETED,
                grants="[]",
                # Patterns of paths and hosts are words of people too.
                scope=None,
                capability_scope=None,
                persona=None,
                persona_digest=None,
            )
        )


def _forget_words(conn: Connection, session_ids: Sequence[str]) -> None:
    """Leave ids in the rows of runs and of the audit log."""
    conn.execute(update(audit).where(_among(audit, session_ids)).values(data=json.dumps({})))
    of_them = _among(runs, session_ids)
    conn.execute(update(runs).where(of_them).values(error=None, cancel=None, summary=""))
    for speaker in conn.execute(select(runs.c.speaker).where(of_them).distinct()).scalars().all():
        nameless = kept(Speaker, speaker).model_copy(update={"name": ""}).model_dump_json()
        same = of_them & (runs.c.speaker == speaker)
        conn.execute(update(runs).where(same).values(speaker=nameless))


def _among(table: Table, session_ids: Sequence[str]) -> ColumnElement[bool]:
    return table.c.session_id.in_(session_ids)
