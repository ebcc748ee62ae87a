"""Writing what a unit did to lanes: their rows, new messages and new events.

On PostgreSQL a lane with one event, which is nearly every unit of the hot path, is written by one
statement with two more inside (data-modifying WITH): three exchanges with the server become one.
All of them see the snapshot from before, which is right for rows that do not read each other.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, insert, update

from runtime.sessions import events
from runtime.sessions.tables import events as events_table
from runtime.sessions.tables import lanes, messages
from runtime.store.dialect import dialect_name, transaction_id
from runtime.store.statements import Hot, hot

Values = Mapping[str, object]

FIXED: Final = ("kind", "parent_id", "root_id", "depth")
"""The columns of a lane that are written once."""
FIELDS: Final = (
    "input_seq",
    "run_seq",
    "event_seq",
    "message_seq",
    "transcript",
    "transcript_from",
    "window_from",
    "undone",
    "active_run",
    "ready_ms",
    "gate",
    "wants_ms",
)
"""The columns of a lane that units change."""
_MESSAGE: Final = tuple(column.name for column in messages.columns)
_UPDATE: Final = (
    update(lanes)
    .where(lanes.c.session_id == bindparam("lane_session"))
    .values({name: bindparam(f"new_{name}") for name in FIELDS})
)
_ADD: Final = insert(messages).values({name: bindparam(f"message_{name}") for name in _MESSAGE})
_TELL: Final = insert(events_table).values(
    {name: bindparam(f"event_{name}") for name in events.COLUMNS}
    | {"xid": transaction_id("postgresql")}
)
_SAVE: Final = hot(_UPDATE)
_SAY: Final = hot(insert(messages))
_TOGETHER: Final[Mapping[int, Hot[()]]] = {
    0: hot(_TELL.add_cte(_UPDATE.cte("saved"))),
    1: hot(_TELL.add_cte(_UPDATE.cte("saved"), _ADD.inline().cte("said"))),
}
"""By the number of new messages."""


def write(
    conn: Connection, held: Sequence[Values], said: Sequence[Values], told: Sequence[Values]
) -> None:
    """Write lanes (``lane_session`` and ``new_*``), messages and events (by column)."""
    together = _TOGETHER.get(len(said)) if len(held) == len(told) == 1 else None
    if together is None or dialect_name(conn) == "sqlite":
        _SAVE.each(conn, held)
        _SAY.each(conn, said)
        events.add(conn, told)
        return
    values = dict(held[0])
    values |= {f"event_{name}": value for name, value in told[0].items()}
    for message in said:
        values |= {f"message_{name}": value for name, value in message.items()}
    together.change(conn, **values)
