"""Turns that are taken back: which one is the newest, what belongs to it, and its marks (MSG-22).

Statements only. No row is removed, and none but runs and inputs is changed.
"""

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Connection, exists, select, text, update

from runtime.domain.messages import OutboundMessage, TextPart
from runtime.domain.tools import Effect
from runtime.sessions import message_edits, runs
from runtime.sessions.inputs import PERSON, Input, input_of
from runtime.sessions.outbox import OPEN
from runtime.sessions.runs import Run
from runtime.sessions.tables import inputs, outbox, tool_calls
from runtime.sessions.tables import runs as runs_table
from runtime.store.payloads import kept

UNDONE = "undone"


def newest(conn: Connection, session_id: str, *, transcript: int) -> Run | None:
    """The newest run of a transcript that answered a person and still stands."""
    found = conn.execute(
        select(runs_table.c.id)
        .join(inputs, inputs.c.run_id == runs_table.c.id)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.origin == PERSON,
            inputs.c.state == "taken",
            runs_table.c.transcript == transcript,
        )
        .order_by(runs_table.c.seq.desc())
        .limit(1)
    ).scalar()
    return None if found is None else runs.get(conn, found)


def after(conn: Connection, run: Run) -> Sequence[str]:
    """The runs of a run's transcript that began behind it and still stand, in order."""
    rows = conn.execute(
        select(runs_table.c.id)
        .where(
            runs_table.c.session_id == run.session_id,
            runs_table.c.transcript == run.transcript,
            runs_table.c.seq > run.seq,
            runs_table.c.undone_ms.is_(None),
        )
        .order_by(runs_table.c.seq)
    )
    return list(rows.scalars())


def inputs_of(conn: Connection, session_id: str, run_ids: Collection[str]) -> Sequence[Input]:
    """What runs of a session took into its transcript, in order."""
    return _inputs(conn, session_id, run_ids, state="taken")


def runs_of(conn: Connection, session_ids: Collection[str], *, since_ms: int) -> Sequence[str]:
    """The runs of some sessions that were made since a moment."""
    query = select(runs_table.c.id).where(
        runs_table.c.session_id.in_(session_ids), runs_table.c.created_ms >= since_ms
    )
    return list(conn.execute(query).scalars())


def any_tainted(conn: Connection, run: Run) -> bool:
    """Whether a run of a run's transcript read what is untrusted, also one that was taken back."""
    tainted = exists().where(
        runs_table.c.session_id == run.session_id,
        runs_table.c.transcript == run.transcript,
        runs_table.c.tainted,
    )
    return bool(conn.execute(select(tainted)).scalar())


def unsettled(conn: Connection, run_ids: Collection[str]) -> bool:
    """Whether something of these runs is still to be sent, or grows."""
    found = select(outbox.c.id).where(outbox.c.run_id.in_(run_ids), text(OPEN)).limit(1)
    return conn.execute(found).first() is not None


def replied(conn: Connection, run_ids: Collection[str]) -> str:
    """The last text that these runs posted; empty where there is none."""
    rows = conn.execute(
        select(outbox.c.message)
        .where(
            outbox.c.run_id.in_(run_ids),
            outbox.c.kind.in_(("final", "said")),
            outbox.c.state != "dead",
        )
        .order_by(outbox.c.position.desc())
    )
    parts = (part for found in rows.scalars() for part in kept(OutboundMessage, found).parts)
    return next((part.markdown for part in parts if isinstance(part, TextPart)), "")


def begun(conn: Connection, run_ids: Collection[str]) -> Iterable[tuple[str, str]]:
    """Names and arguments of the calls of these runs that began and do more than read, in order."""
    rows = conn.execute(
        select(tool_calls.c.name, tool_calls.c.arguments)
        .where(
            tool_calls.c.run_id.in_(run_ids),
            tool_calls.c.effect != Effect.READ.value,
            tool_calls.c.started_ms.is_not(None),
        )
        .order_by(tool_calls.c.started_ms, tool_calls.c.step, tool_calls.c.place)
    )
    return [(row.name, row.arguments) for row in rows]


def mark(
    conn: Connection, session_id: str, taken: Sequence[Input], run_ids: Collection[str], *, now: int
) -> None:
    """Mark runs and what they took. Notes about what still stands wait for the next run again;
    those about what does not are dropped, also where they wait already."""
    conn.execute(update(runs_table).where(runs_table.c.id.in_(run_ids)).values(undone_ms=now))
    gone = [one for one in taken if one.origin != message_edits.NOTE]
    conn.execute(
        update(inputs).where(inputs.c.id.in_([one.id for one in gone])).values(state=UNDONE)
    )
    waiting = message_edits.notes_of(session_id)
    again = [one for one in taken if one.origin == message_edits.NOTE]
    conn.execute(
        update(inputs)
        .where(inputs.c.id.in_([one.id for one in again]))
        .values(state="pending", run_id=waiting)
    )
    said = {_place(one) for one in gone if one.origin == PERSON}
    for note in _inputs(conn, session_id, [waiting], state="pending"):
        if _place(note) in said:
            message_edits.withdraw(conn, note.id)


def _place(one: Input) -> tuple[str, str, str, str]:
    """Where a message stands, also one that was edited since."""
    message = one.message
    return message.channel, message.account, message.chat_id, message.message_id


def _inputs(
    conn: Connection, session_id: str, run_ids: Collection[str], *, state: str
) -> Sequence[Input]:
    rows = conn.execute(
        select(inputs)
        .where(
            inputs.c.session_id == session_id,
            inputs.c.run_id.in_(run_ids),
            inputs.c.state == state,
        )
        .order_by(inputs.c.seq)
    )
    return [input_of(row) for row in rows]
