"""Messages between agents, and what of them waits. Statements only."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    exists,
    func,
    or_,
    select,
    text,
    update,
)

from runtime.domain.runs import RunState
from runtime.features.mailboxes.tables import mailbox_messages as mail
from runtime.sessions.due_work import DueCheck
from runtime.sessions.inputs import PENDING
from runtime.sessions.tables import inputs, lanes, runs
from runtime.store.database import now_ms
from runtime.store.dialect import insert_ignore

AT_ONCE: Final = 100
"""Agents whose mailboxes one look finds."""
State = Literal["queued", "delivered", "dead"]
# The very words of the partial index: SQLite uses it for nothing else.
_QUEUED: Final = text("mailbox_messages.state = 'queued'")


@dataclass(frozen=True, slots=True)
class Letter:
    """One message for the agent of `session_id`. `payload` is JSON; `hops` counts the messages
    that led to it."""

    session_id: str
    sender_id: str
    message_id: str
    subject: str
    payload: str
    input_id: str
    hops: int
    sent_ms: int
    expires_ms: int | None = None
    state: State = "queued"
    settled_ms: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that nobody has settled, with the state of its input, and its run."""

    letter: Letter
    input_state: str | None
    run_id: str | None
    run_state: RunState | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A message and its place in the mailbox, with the run that is to read it."""

    letter: Letter
    position: int
    run_id: str | None


_COLUMNS: Final = [mail.c[name] for name in Letter.__dataclass_fields__]


def add(conn: Connection, letter: Letter) -> bool:
    """Keep a message; False where its sender sent one with this id before."""
    statement = insert_ignore(conn, mail).values(**asdict(letter))
    return conn.execute(statement).rowcount == 1


def is_known(conn: Connection, sender_id: str, message_id: str) -> bool:
    """Whether an agent sent a message with this id before."""
    mine = (mail.c.sender_id == sender_id) & (mail.c.message_id == message_id)
    return conn.execute(select(mail.c.position).where(mine)).first() is not None


def root_of(conn: Connection, session_id: str) -> str | None:
    """The session at the root of an agent's tree; None where there is no such agent."""
    query = select(lanes.c.root_id).where(lanes.c.session_id == session_id)
    return conn.execute(query).scalar_one_or_none()


def is_tainted(conn: Connection, session_id: str) -> bool:
    """Whether a run of a session read something untrusted."""
    query = select(runs.c.id).where(runs.c.session_id == session_id, runs.c.tainted).limit(1)
    return conn.execute(query).first() is not None


def hops_of(conn: Connection, run_id: str) -> int:
    """How many messages led to a run; 0 where none did."""
    query = select(func.max(mail.c.hops)).join(inputs, inputs.c.id == mail.c.input_id)
    return conn.execute(query.where(inputs.c.run_id == run_id)).scalar_one_or_none() or 0


def waiting(conn: Connection, session_id: str) -> Sequence[Waiting]:
    """What nobody settled of a mailbox, in order."""
    query = (
        select(*_COLUMNS, inputs.c.state.label("input_state"), runs.c.id, runs.c.state)
        .outerjoin(inputs, inputs.c.id == mail.c.input_id)
        .outerjoin(runs, runs.c.id == inputs.c.run_id)
        .where(_QUEUED, mail.c.session_id == session_id)
        .order_by(mail.c.position)
    )
    width = len(_COLUMNS)
    return [
        Waiting(
            letter=Letter(*row[:width]),
            input_state=row[width],
            run_id=row[width + 1],
            run_state=None if row[width + 2] is None else RunState(row[width + 2]),
        )
        for row in conn.execute(query)
    ]


def settle(
    conn: Connection, letter: Letter, state: State, *, now: int, reason: str | None = None
) -> None:
    """Note that a message was read, or will never be."""
    conn.execute(
        update(mail)
        .where(mail.c.input_id == letter.input_id, _QUEUED)
        .values(state=state, settled_ms=now, reason=reason)
    )


def unsettled(conn: Connection) -> Sequence[str]:
    """Agents with messages to be settled: read, expired, or in a run that is over."""
    query = select(mail.c.session_id).where(_to_settle(now_ms(conn))).distinct()
    return list(conn.execute(query.order_by(mail.c.session_id).limit(AT_ONCE)).scalars())


def watched(conn: Connection) -> frozenset[str]:
    """Agents for which messages wait."""
    return frozenset(conn.execute(select(mail.c.session_id).where(_QUEUED).distinct()).scalars())


def left_ms(conn: Connection) -> int | None:
    """The milliseconds until the next message expires; None where none does."""
    first = conn.execute(select(func.min(mail.c.expires_ms)).where(_QUEUED)).scalar_one_or_none()
    return None if first is None else max(0, first - now_ms(conn))


def queued(conn: Connection, session_id: str, *, after: int, most: int) -> Sequence[Placed]:
    """What waits in a mailbox behind the position `after`, in order."""
    return _placed(conn, _is_waiting(session_id), after=after, most=most)


def dead(conn: Connection, session_id: str, *, after: int, most: int) -> Sequence[Placed]:
    """What was for an agent and nobody read, behind the position `after`, in order."""
    return _placed(conn, _is_dead(session_id), after=after, most=most)


def count_queued(conn: Connection, session_id: str) -> int:
    """How many messages wait in a mailbox."""
    return _count(conn, _is_waiting(session_id))


def count_dead(conn: Connection, session_id: str) -> int:
    """How many messages for an agent nobody read."""
    return _count(conn, _is_dead(session_id))


def _is_waiting(session_id: str) -> ColumnElement[bool]:
    return and_(_QUEUED, mail.c.session_id == session_id, inputs.c.state == PENDING)


def _is_dead(session_id: str) -> ColumnElement[bool]:
    return and_(mail.c.session_id == session_id, mail.c.state == "dead")


def _count(conn: Connection, wanted: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(mail)
    return conn.execute(
        query.outerjoin(inputs, inputs.c.id == mail.c.input_id).where(wanted)
    ).scalar_one()


def _placed(
    conn: Connection, wanted: ColumnElement[bool], *, after: int, most: int
) -> Sequence[Placed]:
    query = (
        select(*_COLUMNS, mail.c.position, inputs.c.run_id)
        .outerjoin(inputs, inputs.c.id == mail.c.input_id)
        .where(wanted, mail.c.position > after)
        .order_by(mail.c.position)
        .limit(most)
    )
    width = len(_COLUMNS)
    rows = conn.execute(query)
    return [Placed(Letter(*row[:width]), row[width], row[width + 1]) for row in rows]


def _to_settle(now: ColumnElement[int] | int) -> ColumnElement[bool]:
    waits = exists().where(
        inputs.c.id == mail.c.input_id,
        inputs.c.state == PENDING,
        runs.c.id == inputs.c.run_id,
        runs.c.ended_ms.is_(None),
    )
    return and_(_QUEUED, or_(mail.c.expires_ms <= now, ~waits))


def _due(now: ColumnElement[int]) -> ColumnElement[bool]:
    return exists().where(_to_settle(now)).select_from(mail)


MAILBOXES_DUE: Final = DueCheck("mailboxes", _due)
