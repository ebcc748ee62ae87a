"""What one person's home page is made of. Reads only, and little: anybody may open it often."""

from collections.abc import Sequence

from sqlalchemy import Connection, Select, exists, or_, select

from runtime.domain.messages import ChatAddress, escape_component
from runtime.ports.gatehouse import HomeSession
from runtime.sessions.inputs import LOOKED_BACK
from runtime.sessions.keys import is_of_person
from runtime.sessions.tables import inputs, lanes, runs, sessions
from runtime.store.payloads import kept, quoted

NEWEST = 100
"""Sessions of an account that are looked at."""


def _newest(channel: str, account: str) -> Select[tuple[str, str]]:
    prefix = f"{escape_component(channel)}:{escape_component(account)}:"
    return (
        select(sessions.c.id, sessions.c.key)
        .where(sessions.c.key.startswith(prefix, autoescape=True))
        .order_by(sessions.c.updated_ms.desc())
        .limit(NEWEST)
    )


def own_sessions(conn: Connection, *, channel: str, account: str, user_id: str) -> Sequence[str]:
    """Those of the newest sessions of an account that are of this person alone."""
    rows = conn.execute(_newest(channel, account))
    return [row.id for row in rows if is_of_person(row.key, channel, account, user_id)]


def conversations(
    conn: Connection, *, channel: str, account: str, user_id: str, key: str, most: int
) -> Sequence[HomeSession]:
    """The person's newest sessions on an account; `key` is their direct chat's, theirs anyway."""
    newest = _newest(channel, account).with_only_columns(sessions.c.id)
    # The speaker is JSON that we wrote ourselves: this field has one spelling.
    spoken = f'"user_id":{quoted(user_id)}'
    spoke = exists().where(
        inputs.c.session_id == sessions.c.id,
        inputs.c.seq > lanes.c.input_seq - LOOKED_BACK,
        inputs.c.speaker.contains(spoken, autoescape=True),
    )
    rows = conn.execute(
        select(sessions, lanes.c.ready_ms, runs.c.state.label("doing"))
        .join(lanes, lanes.c.session_id == sessions.c.id)
        .join(runs, runs.c.id == lanes.c.active_run, isouter=True)
        .where(sessions.c.id.in_(newest), or_(sessions.c.key == key, spoke))
        .order_by(sessions.c.updated_ms.desc())
        .limit(most)
    )
    return [
        HomeSession(
            session_id=row.id,
            title=row.title,
            address=kept(ChatAddress, row.address),
            state=row.doing or ("idle" if row.ready_ms is None else "queued"),
            updated_at_ms=row.updated_ms,
        )
        for row in rows
    ]
