"""Inputs: one row for everything that arrived for a session, once, whatever delivered it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    Row,
    Text,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import InboundMessage
from runtime.domain.people import Speaker, Trust
from runtime.sessions import idempotency
from runtime.sessions.lanes import Lane
from runtime.sessions.runs import QUEUED
from runtime.sessions.tables import inputs, lanes, runs, sessions
from runtime.store.database import DIALECTS
from runtime.store.dialect import dialect_name, one_of
from runtime.store.payloads import kept, quoted
from runtime.store.row_values import from_row
from runtime.store.statements import hot, insert_new


@dataclass(frozen=True, slots=True)
class Input:
    """`state`: ``pending`` waits for its run, ``taken`` is in the transcript, ``command`` and
    ``answer`` were applied at once, ``withdrawn`` was deleted before its run began, ``undone`` was
    taken back with its run."""

    id: str
    session_id: str
    seq: int
    identity: str
    origin: str
    run_id: str | None
    state: str
    speaker: Speaker
    message: InboundMessage
    received_ms: int


PERSON, NOTICE = "person", "notice"
"""Where an input is from: somebody said it, or the machinery tells it (a handoff)."""
MAIL = "mail:"
"""How the identity of an input begins that another agent sent to the session's mailbox."""
SESSIONS = 100
"""Sessions of a place that are looked at."""
LOOKED_BACK = 200
"""Newest inputs of a session among which people are looked for."""
# Written out: SQLite uses a partial index only for a condition that it can read.
PENDING = literal_column("'pending'", Text)
_IDENTITY = hot(
    select(inputs.c.id, inputs.c.session_id, inputs.c.run_id, inputs.c.state).where(
        inputs.c.identity == bindparam("the_identity")
    )
)
_OF_RUN = hot(
    select(inputs)
    .where(
        inputs.c.run_id == bindparam("of_run"),
        inputs.c.state == PENDING,
    )
    .order_by(inputs.c.seq)
)
_TAKE = hot(
    update(inputs)
    .where(
        inputs.c.run_id == bindparam("taken_run"),
        inputs.c.state == PENDING,
        inputs.c.seq <= bindparam("up_to"),
    )
    .values(state="taken")
)
_TAKE_ALL = {
    name: hot(
        update(inputs)
        .where(one_of(name, inputs.c.run_id, "of_runs"), inputs.c.state == PENDING)
        .values(state="taken")
        .returning(*inputs.c)
    )
    for name in DIALECTS
}
_OLDEST = hot(
    select(func.min(inputs.c.seq).label("seq")).where(
        inputs.c.run_id.in_(
            [
                bindparam("at_work"),
                select(runs.c.id)
                .where(runs.c.session_id == bindparam("of_session"), runs.c.state == QUEUED)
                .order_by(runs.c.seq)
                .limit(literal_column("1"))
                .scalar_subquery(),
            ]
        ),
        inputs.c.state == PENDING,
    )
)
_HAND_OVER = hot(
    update(inputs)
    .where(inputs.c.run_id == bindparam("taken_run"), inputs.c.state == PENDING)
    .values(run_id=bindparam("next_run"))
)


def new_input(
    lane: Lane,
    message: InboundMessage,
    speaker: Speaker,
    *,
    run_id: str | None,
    state: str = "pending",
    identity: str = "",
    origin: str = PERSON,
) -> Input:
    """The next input of a lane, for the run `run_id`; `add` keeps it. Without an `identity` of its
    own it has that of its message."""
    lane.input_seq += 1
    return Input(
        id=new_id(IdPrefix.INPUT, lane.now_ms),
        session_id=lane.session_id,
        seq=lane.input_seq,
        identity=identity or message.identity,
        origin=origin,
        run_id=run_id,
        state=state,
        speaker=speaker,
        message=message,
        received_ms=message.received_at_ms,
    )


def add(conn: Connection, new: Input) -> bool:
    """Keep an input; False when its identity is known already (MSG-2)."""
    return insert_new(
        conn,
        inputs,
        {
            "id": new.id,
            "session_id": new.session_id,
            "seq": new.seq,
            "identity": new.identity,
            "origin": new.origin,
            "run_id": new.run_id,
            "state": new.state,
            "speaker": new.speaker.model_dump_json(),
            "message": new.message.model_dump_json(exclude_defaults=True),
            "received_ms": new.received_ms,
        },
    )


def take_back(conn: Connection, input_id: str) -> None:
    """Remove an input that this unit added: it was not taken after all."""
    conn.execute(delete(inputs).where(inputs.c.id == input_id))


@dataclass(frozen=True, slots=True)
class KnownInput:
    """What was stored before: `run_id` is the run that its sender was told of."""

    id: str
    session_id: str
    run_id: str | None
    state: str


def known(conn: Connection, identity: str) -> KnownInput | None:
    """The input of an identity that was stored before."""
    row = _IDENTITY.first(conn, the_identity=identity)
    if row is None:
        return None
    named = idempotency.noted(conn, _named(row.id))
    run_id = row.run_id if named is None else str(named["run_id"])
    return KnownInput(row.id, row.session_id, run_id, row.state)


def pending_of_run(conn: Connection, run_id: str) -> Sequence[Input]:
    """What a run is to answer and has not taken into the transcript yet, in order."""
    return [input_of(row) for row in _OF_RUN.rows(conn, of_run=run_id)]


def input_of(row: Row[tuple[object, ...]]) -> Input:
    """A row as it was read."""
    found = row._mapping
    return from_row(
        Input,
        found,
        speaker=kept(Speaker, found["speaker"]),
        message=kept(InboundMessage, found["message"]),
    )


def oldest_waiting(conn: Connection, session_id: str, *, at_work: str | None) -> int | None:
    """The number of the first input that waits in a lane: for the run `at_work` there, or for the
    one that is next."""
    row = _OLDEST.first(conn, of_session=session_id, at_work=at_work or "")
    found: int | None = None if row is None else row.seq
    return found


def mail_waiting(conn: Connection, session_ids: Collection[str]) -> Mapping[str, int]:
    """How many messages from other agents wait to be read, by session; of those that have any."""
    rows = conn.execute(
        select(runs.c.session_id, func.count())
        .join(inputs, inputs.c.run_id == runs.c.id)
        .where(
            runs.c.session_id.in_(session_ids),
            runs.c.state == QUEUED,
            inputs.c.state == PENDING,
            inputs.c.identity.startswith(MAIL),
        )
        .group_by(runs.c.session_id)
    )
    return {session_id: count for session_id, count in rows}  # noqa: C416 - rows are no pairs


def since_person(conn: Connection, session_id: str, *, most: int) -> int:
    """How many of a session's last `most` inputs came from bots with no person after them."""
    rows = conn.execute(
        select(inputs.c.speaker)
        .where(inputs.c.session_id == session_id)
        .order_by(inputs.c.seq.desc())
        .limit(most)
    )
    count = 0
    for row in rows:
        if kept(Speaker, row.speaker).trust is not Trust.BOT:
            break
        count += 1
    return count


def speakers(conn: Connection, key: str, *, below: str, chat_id: str) -> Sequence[Speaker]:
    """Who spoke in a chat lately, newest first: in the session of that key, and in those whose keys
    begin with `below`."""
    newest = (
        select(sessions.c.id)
        .where(or_(sessions.c.key == key, sessions.c.key.startswith(below, autoescape=True)))
        .order_by(sessions.c.updated_ms.desc())
        .limit(SESSIONS)
    )
    # The message is JSON that we wrote ourselves: this field has one spelling.
    rows = conn.execute(
        select(inputs.c.speaker)
        .join(lanes, lanes.c.session_id == inputs.c.session_id)
        .where(
            inputs.c.session_id.in_(newest),
            inputs.c.seq > lanes.c.input_seq - LOOKED_BACK,
            inputs.c.origin == PERSON,
            inputs.c.message.contains(f'"chat_id":{quoted(chat_id)}', autoescape=True),
        )
        .group_by(inputs.c.speaker)
        .order_by(func.max(inputs.c.received_ms).desc())
    )
    found: dict[tuple[str, str, str], Speaker] = {}
    for row in rows:
        speaker = kept(Speaker, row.speaker)
        found.setdefault(speaker.platform_account, speaker)
    return list(found.values())


def said_last(conn: Connection, session_id: str, *, most: int) -> Sequence[int]:
    """When a session's last `most` inputs were said, by their platforms where these told it."""
    rows = conn.execute(
        select(inputs.c.message)
        .where(inputs.c.session_id == session_id)
        .order_by(inputs.c.seq.desc())
        .limit(most)
    )
    found = [kept(InboundMessage, row.message) for row in rows]
    return [one.received_at_ms if one.sent_at_ms is None else one.sent_at_ms for one in found]


def take(conn: Connection, run_id: str, found: Sequence[Input]) -> None:
    """Mark what was `found` pending of a run, from its first on, as being in the transcript."""
    if found:
        _TAKE.change(conn, taken_run=run_id, up_to=found[-1].seq)


def take_all(conn: Connection, run_ids: Sequence[str]) -> Sequence[Input]:
    """Mark all that is pending of some runs as being in their transcripts; what it was, in the
    order of each session."""
    rows = _TAKE_ALL[dialect_name(conn)].rows(conn, of_runs=list(run_ids))
    return sorted(map(input_of, rows), key=lambda item: item.seq)


def hand_over(conn: Connection, run_id: str, *, to: str) -> None:
    """Give what a run has not taken to another."""
    _HAND_OVER.change(conn, taken_run=run_id, next_run=to)


def pass_on(conn: Connection, items: Sequence[Input], run_id: str, *, to: str) -> None:
    """Give what an ended run has not taken to another, and keep which run its senders were told
    of, and where that one's words went."""
    hand_over(conn, run_id, to=to)
    for item in items:
        name_run(conn, item.id, run_id)
    idempotency.note(conn, _passed_on(run_id), {"run_id": to})


def name_run(conn: Connection, input_id: str, run_id: str) -> None:
    """Keep which run the sender of an input is told of, where its row names another or none."""
    idempotency.note(conn, _named(input_id), {"run_id": run_id})


def passed_on_to(conn: Connection, run_id: str) -> str | None:
    """The run that answers what an ended run was told and never heard."""
    found = idempotency.noted(conn, _passed_on(run_id))
    return None if found is None else str(found["run_id"])


def _named(input_id: str) -> str:
    return f"named:{input_id}"


def _passed_on(run_id: str) -> str:
    return f"passed-on:{run_id}"
