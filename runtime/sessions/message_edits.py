"""Inputs whose messages were edited or deleted on their platform: found, changed, noted."""

from dataclasses import replace

from sqlalchemy import Connection, select, update

from runtime.domain.messages import InboundMessage
from runtime.domain.summaries import said_in
from runtime.sessions import idempotency, inputs, runs
from runtime.sessions.inputs import PENDING, Input, input_of
from runtime.sessions.lanes import Lane
from runtime.sessions.tables import inputs as inputs_table

NOTE = "note"
"""The origin of an input that says what became of an earlier one; it makes no run of its own."""
LINE = "line"
"""The origin of one by which the machinery tells the next run what happened elsewhere. No person
said it."""


def of_message(conn: Connection, identity: str) -> Input | None:
    """The input of a message by its identity without an edit, whichever form of it was taken."""
    query = select(inputs_table).where(inputs_table.c.identity == identity)
    row = conn.execute(query).first()
    if row is None:
        linked = idempotency.noted(conn, _link(identity))
        if linked is None:
            return None
        row = conn.execute(
            select(inputs_table).where(inputs_table.c.id == str(linked["input_id"]))
        ).first()
    return None if row is None else input_of(row)


def link(conn: Connection, identity: str, input_id: str) -> None:
    """Remember which input an edited form of a message became."""
    idempotency.note(conn, _link(identity), {"input_id": input_id})


def change(conn: Connection, input_id: str, message: InboundMessage) -> None:
    """Give an input that waits another text."""
    values = {"message": message.model_dump_json(exclude_defaults=True)}
    conn.execute(update(inputs_table).where(inputs_table.c.id == input_id).values(values))


def summarise(conn: Connection, lane: Lane, run_id: str | None) -> None:
    """Say anew what a run is about that has not begun and whose inputs changed."""
    if run_id is None or runs.get(conn, run_id).started_ms is not None:
        return
    waiting = inputs.pending_of_run(conn, run_id)
    about = lane.summary(said_in(waiting[0].message)) if waiting else ""
    runs.change(conn, run_id, {"summary": about})


def withdraw(conn: Connection, input_id: str) -> None:
    """Take an input that waits out of its run."""
    conn.execute(
        update(inputs_table)
        .where(inputs_table.c.id == input_id, inputs_table.c.state == "pending")
        .values(state="withdrawn")
    )


def note(conn: Connection, new: Input, *, origin: str = NOTE) -> None:
    """Keep a note for the session's next run; `origin` is `NOTE` or `LINE`."""
    run_id = notes_of(new.session_id)
    inputs.add(conn, replace(new, origin=origin, run_id=run_id, state="pending"))


def notes_wait(conn: Connection, session_id: str, *, most: int) -> bool:
    """Whether `most` notes wait for the next run of a session."""
    found = conn.execute(
        select(inputs_table.c.id)
        .where(inputs_table.c.run_id == notes_of(session_id), inputs_table.c.state == PENDING)
        .limit(most)
    )
    return len(found.all()) == most


def notes_of(session_id: str) -> str:
    """What stands for the run of a session's notes until one takes them."""
    return f"notes:{session_id}"


def give_note(conn: Connection, note_id: str, *, to: str) -> None:
    """Make a note one of the run that took it."""
    conn.execute(update(inputs_table).where(inputs_table.c.id == note_id).values(run_id=to))


def _link(identity: str) -> str:
    return f"message:{identity}"
