"""What one person's home page is made of. Reads only, and little: anybody may open it often."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, exists, or_, select

from runtime.domain.messages import ChatAddress, escape_component
from runtime.sessions.inputs import LOOKED_BACK
from runtime.sessions.tables import inputs, lanes, runs, sessions
from runtime.store.payloads import kept, quoted

NEWEST = 100
"""Sessions of an account that are looked at."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session in which the person spoke lately; `state` is its run's, or ``idle``."""

    session_id: str
    title: str
    address: ChatAddress
    state: str
    updated_ms: int


def conversations(
    conn: Connection, *, channel: str, account: str, user_id: str, key: str, most: int
) -> Sequence[Conversation]:
    """The person's newest sessions on an account; `key` is their direct chat's, theirs anyway."""
    prefix = f"{escape_component(channel)}:{escape_component(account)}:"
    newest = (
        select(sessions.c.id)
        .where(sessions.c.key.startswith(prefix, autoescape=True))
        .order_by(sessions.c.updated_ms.desc())
        .limit(NEWEST)
    )
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
        Conversation(
            row.id,
            row.title,
            kept(ChatAddress, row.address),
            row.doing or ("idle" if row.ready_ms is None else "queued"),
            row.updated_ms,
        )
        for row in rows
    ]
