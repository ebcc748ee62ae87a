"""Inputs whose messages were edited or deleted on their platform: found, changed, noted."""

from sqlalchemy import Connection, insert, select, update

from runtime.domain.messages import InboundMessage
from runtime.sessions import idempotency
from runtime.sessions.inputs import PENDING, Input, input_of
from runtime.sessions.tables import inputs

NOTE = "note"
"""The origin of an input that says what became of an earlier one; it makes no run of its own."""


def of_message(conn: Connection, identity: str) -> Input | None:
    """The input of a message by its identity without an edit, whichever form of it was taken."""
    query = select(inputs).where(inputs.c.identity == identity)
    row = conn.execute(query).first()
    if row is None:
        linked = idempotency.recall(conn, _link(identity), digest="")
        if linked is None:
            return None
        row = conn.execute(select(inputs).where(inputs.c.id == str(linked["input_id"]))).first()
    return None if row is None else input_of(row)


def link(conn: Connection, identity: str, input_id: str) -> None:
    """Remember which input an edited form of a message became."""
    idempotency.remember(conn, _link(identity), digest="", response={"input_id": input_id})


def change(conn: Connection, input_id: str, message: InboundMessage) -> None:
    """Give an input that waits another text."""
    values = {"message": message.model_dump_json(exclude_defaults=True)}
    conn.execute(update(inputs).where(inputs.c.id == input_id).values(values))


def withdraw(conn: Connection, input_id: str) -> None:
    """Take an input that waits out of its run."""
    conn.execute(
        update(inputs)
        .where(inputs.c.id == input_id, inputs.c.state == "pending")
        .values(state="withdrawn")
    )


def note(conn: Connection, new: Input) -> None:
    """Keep a note for the session's next run."""
    conn.execute(
        insert(inputs).values(
            id=new.id,
            session_id=new.session_id,
            seq=new.seq,
            identity=new.identity,
            origin=NOTE,
            run_id=notes_of(new.session_id),
            state="pending",
            speaker=new.speaker.model_dump_json(),
            message=new.message.model_dump_json(exclude_defaults=True),
            received_ms=new.received_ms,
        )
    )


def notes_wait(conn: Connection, session_id: str, *, most: int) -> bool:
    """Whether `most` notes wait for the next run of a session."""
    found = conn.execute(
        select(inputs.c.id)
        .where(inputs.c.run_id == notes_of(session_id), inputs.c.state == PENDING)
        .limit(most)
    )
    return len(found.all()) == most


def notes_of(session_id: str) -> str:
    """What stands for the run of a session's notes until one takes them."""
    return f"notes:{session_id}"


def give_note(conn: Connection, note_id: str, *, to: str) -> None:
    """Make a note one of the run that took it."""
    conn.execute(update(inputs).where(inputs.c.id == note_id).values(run_id=to))


def _link(identity: str) -> str:
    return f"message:{identity}"
