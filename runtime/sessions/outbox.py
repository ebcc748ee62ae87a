"""The outbox: what is to be sent, in order per chat, until it is sent, dead or unknown (I7)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Table,
    Text,
    TextClause,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal_column,
    select,
    text,
    update,
)

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import ChatAddress, FilePart, OutboundMessage, OutboundPart
from runtime.domain.runs import Holder
from runtime.sessions.runs import Run
from runtime.sessions.tables import open_calls, outbox
from runtime.store.database import now_ms
from runtime.store.payloads import kept
from runtime.store.row_values import from_row
from runtime.store.statements import Hot, hot

UNSETTLED = ("pending", "sending", "streaming")
_NOT_SENT = ("state IN ('pending','sending','streaming')", "state IN ('dead','unknown')")
_COUNTS = select(outbox.c.state, func.count(), func.min(outbox.c.created_ms)).group_by(
    outbox.c.state
)


@dataclass(frozen=True, slots=True)
class Stream:
    """The post in which a reply grew: its id, "" where it left none, None while it is not known.

    `shown` is the text that the post surely shows. Only the process that showed it knows that,
    under the lease that it had then; it is in no row.
    """

    id: str | None = None
    shown: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """`kind`: final, notice, card, batch (the card of agents at work, shown where messages can be
    changed), edit (an earlier card, changed), file (what a tool sends),
    stream (a run's text that is shown while it grows), or said (such a text, whose run ended or
    waits without a reply, or an answer of a run that goes on).
    `posted` are the platform's ids of what went out so far."""

    position: int
    kind: str
    message: OutboundMessage
    state: str
    rank: int
    attempt: int
    next_ms: int
    worker: str | None
    fence: int | None
    begun_ms: int | None
    posted: tuple[str, ...]
    open_call_id: str | None
    error: str | None
    created_ms: int
    settled_ms: int | None
    stream: Stream | None = None


@dataclass(frozen=True, slots=True)
class NewRow:
    """What a unit puts into the outbox. `claim` gives it to a local deliverer at once."""

    kind: str
    message: OutboundMessage
    rank: int = 0
    open_call_id: str | None = None
    claim: Holder | None = None


LIVE_CARD = "batch"
"""The kind of a message that is changed in place as something goes on; its changes are `edit`s."""
FINAL_RANK = 10
_earlier = outbox.alias("earlier")
# The very words of the partial index: SQLite uses it for nothing that it would have to conclude,
# and without it each look at the outbox would read every message that was ever sent.
OPEN = "state IN ('pending','sending','streaming')"
# What was posted and still grows holds nothing up: it has its place in the chat.
GROWS = "state = 'streaming'"
_INSERT = hot(insert(outbox))
# The states are written out, because a prepared statement takes no list; the partial index of
# unsettled rows then serves it.
IN_CHAT = (
    outbox.c.channel == bindparam("in_channel"),
    outbox.c.account == bindparam("in_account"),
    outbox.c.chat == bindparam("in_chat"),
    text(OPEN),
)
_CHAT_BUSY = hot(
    select(outbox.c.position).where(*IN_CHAT, text(f"NOT ({GROWS})")).limit(literal_column("1"))
)

_IN_PLACE: Final = (
    "id",
    "session_id",
    "run_id",
    "kind",
    "channel",
    "account",
    "chat",
    "message",
    "state",
    "rank",
    "next_ms",
    "worker",
    "fence",
    "posted",
    "created_ms",
)


def _reply() -> Hot[str]:
    """Adds a run's reply: to a deliverer at once where its chat is not busy, and not at all where
    the run's text grows there."""
    grows = exists().where(*IN_CHAT, text(GROWS), outbox.c.run_id == bindparam("of_run"))
    busy = exists().where(*IN_CHAT, text(f"NOT ({GROWS})"))
    chat = select(grows.label("grows"), busy.label("busy")).subquery("chat_now")
    worker, fence = bindparam("by", type_=Text()), bindparam("under", type_=BigInteger())
    at_once = and_(worker.is_not(None), ~chat.c.busy)
    values: dict[str, ColumnElement[Any]] = {
        "state": case((at_once, "sending"), else_="pending"),
        "worker": case((at_once, worker)),
        "fence": case((at_once, fence)),
    }
    new = [
        values.get(name, bindparam(f"new_{name}", type_=outbox.c[name].type)) for name in _IN_PLACE
    ]
    added = insert(outbox).from_select(_IN_PLACE, select(*new).where(~chat.c.grows))
    return hot(added.returning(outbox.c.state))


_REPLY: Final = _reply()

# Every reply in a chat asks this, so it begins with the few calls that are open: by the chat it
# would read all that was ever sent.
_OPEN_CARDS = hot(
    select(outbox.c.open_call_id, outbox.c.posted).where(
        outbox.c.open_call_id.in_(select(open_calls.c.id).where(text("open_calls.state = 'open'"))),
        text("outbox.open_call_id IS NOT NULL"),
        outbox.c.kind == literal_column("'card'"),
        outbox.c.channel == bindparam("of_channel"),
        outbox.c.account == bindparam("of_account"),
        outbox.c.chat == bindparam("of_chat"),
    )
)


def _of_account(table: Table) -> ColumnElement[bool]:
    return and_(
        table.c.channel == bindparam("of_channel"), table.c.account == bindparam("of_account")
    )


_DUE = (
    select(outbox)
    .where(
        _of_account(outbox),
        text(f"outbox.{OPEN}"),
        outbox.c.state == "pending",
        outbox.c.next_ms <= bindparam("moment"),
        ~exists().where(
            _earlier.c.channel == outbox.c.channel,
            _earlier.c.account == outbox.c.account,
            _earlier.c.chat == outbox.c.chat,
            _earlier.c.position < outbox.c.position,
            text(f"earlier.{OPEN}"),
            # An edit of an old card that must be tried again holds nothing else up.
            _earlier.c.kind != "edit",
            text(f"NOT (earlier.{GROWS})"),
        ),
    )
    .order_by(outbox.c.rank.desc(), outbox.c.position)
    .limit(bindparam("most"))
)
_OWNED = (
    (outbox.c.id == bindparam("row_id"))
    & (outbox.c.state == "sending")
    & (outbox.c.worker == bindparam("by"))
    & (outbox.c.fence == bindparam("under"))
)
_SENT = hot(
    update(outbox)
    .where(_OWNED)
    .values(state="sent", posted=bindparam("receipt"), settled_ms=bindparam("at"), error=None)
)


def message_of(
    run: Run, parts: tuple[OutboundPart, ...], *, now: int, final: bool = False
) -> OutboundMessage:
    """A new message of a run, to the chat that it answers."""
    return OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, now),
        target=run.target,
        reply_to=run.reply_to,
        parts=parts,
        run_id=run.id,
        session_id=run.session_id,
        final=final,
    )


def add(conn: Connection, new: NewRow, *, now: int | None = None) -> bool:
    """Put a message into the outbox; True when it was given to `claim`'s deliverer at once.

    A chat with something unsettled keeps its order: then the row waits for its turn.
    """
    now = now_ms(conn) if now is None else now
    holder = new.claim if new.claim is not None and not busy(conn, new.message) else None
    _INSERT.change(conn, **_values(new, holder, now))
    return holder is not None


def add_all(conn: Connection, new: Sequence[NewRow], *, now: int) -> None:
    """Put messages into the outbox in this order; each waits for its turn, also one that has a
    `claim`."""
    _INSERT.each(conn, [_values(one, None, now) for one in new])


def _values(new: NewRow, holder: Holder | None, now: int) -> dict[str, object]:
    message = new.message
    return {
        "id": message.outbox_id,
        "session_id": message.session_id,
        "run_id": message.run_id,
        "kind": new.kind,
        "channel": message.target.channel,
        "account": message.target.account,
        "chat": message.target.chat_id,
        "message": message.model_dump_json(),
        "open_call_id": new.open_call_id,
        "state": "sending" if holder else "pending",
        "rank": new.rank,
        "next_ms": now,
        "worker": holder and holder.worker,
        "fence": holder and holder.fence,
        "posted": "[]",
        "created_ms": now,
    }


def add_reply(conn: Connection, new: NewRow, *, now: int) -> bool | None:
    """Put a run's reply into the outbox as `add` does; None, with nothing added, where a text of
    the run grows in its chat: that becomes the reply."""
    message, holder = new.message, new.claim
    added = _REPLY.first(
        conn,
        **place_of(message.target),
        of_run=message.run_id,
        by=holder and holder.worker,
        under=holder and holder.fence,
        new_id=message.outbox_id,
        new_session_id=message.session_id,
        new_run_id=message.run_id,
        new_kind=new.kind,
        new_channel=message.target.channel,
        new_account=message.target.account,
        new_chat=message.target.chat_id,
        new_message=message.model_dump_json(),
        new_rank=new.rank,
        new_next_ms=now,
        new_posted="[]",
        new_created_ms=now,
    )
    return None if added is None else added.state == "sending"


def place_of(target: ChatAddress) -> dict[str, object]:
    """The parameters of `IN_CHAT`."""
    return {
        "in_channel": target.channel,
        "in_account": target.account,
        "in_chat": target.chat_id,
    }


def busy(conn: Connection, message: OutboundMessage) -> bool:
    """Whether something of the message's chat waits to be sent, or is on its way."""
    return _CHAT_BUSY.first(conn, **place_of(message.target)) is not None


def due(conn: Connection, *, channel: str, account: str, most: int) -> Sequence[OutboxRow]:
    """The first unsettled message of each chat of an account, where it may be sent now."""
    rows = conn.execute(
        _DUE,
        {"of_channel": channel, "of_account": account, "moment": now_ms(conn), "most": most},
    )
    return [row_of(row) for row in rows]


def claim(conn: Connection, ids: Sequence[str], holder: Holder) -> frozenset[str]:
    """Give pending rows to a deliverer; the ids of those that it got."""
    taken = conn.execute(
        update(outbox)
        .where(outbox.c.id.in_(ids), outbox.c.state == "pending")
        .values(
            state="sending",
            worker=holder.worker,
            fence=holder.fence,
            attempt=outbox.c.attempt + 1,
        )
        .returning(outbox.c.id)
    )
    return frozenset(taken.scalars())


def in_hand(conn: Connection, *, channel: str, account: str) -> Sequence[OutboxRow]:
    """Rows that some deliverer of the account has, or had, in hand; oldest first."""
    rows = conn.execute(
        select(outbox)
        .where(
            _of_account(outbox),
            text(f"outbox.{OPEN}"),
            outbox.c.state.in_(("sending", "streaming")),
        )
        .order_by(outbox.c.position),
        {"of_channel": channel, "of_account": account},
    )
    return [row_of(row) for row in rows]


def adopt(conn: Connection, row: OutboxRow, holder: Holder) -> bool:
    """Take a row over from an earlier deliverer; False when it has moved on since it was read."""
    taken = conn.execute(
        update(outbox)
        .where(
            outbox.c.id == row.message.outbox_id,
            outbox.c.state == row.state,
            outbox.c.worker == row.worker,
            outbox.c.fence == row.fence,
        )
        .values(worker=holder.worker, fence=holder.fence)
    )
    return taken.rowcount == 1


def sent(
    conn: Connection, outbox_id: str, posted: Sequence[str], holder: Holder, *, at: int
) -> bool:
    """Record the receipt; False when the row is another deliverer's by now."""
    changed = _SENT.change(
        conn,
        row_id=outbox_id,
        by=holder.worker,
        under=holder.fence,
        receipt=json.dumps(list(posted)),
        at=at,
    )
    return changed == 1


def change_owned(
    conn: Connection, outbox_id: str, values: Mapping[str, object], holder: Holder
) -> bool:
    """Change a row in hand; False when it is another deliverer's by now."""
    changed = conn.execute(
        update(outbox).where(_OWNED).values(**values),
        {"row_id": outbox_id, "by": holder.worker, "under": holder.fence},
    )
    return changed.rowcount == 1


def get(conn: Connection, outbox_id: str) -> OutboxRow | None:
    """One row."""
    row = conn.execute(select(outbox).where(outbox.c.id == outbox_id)).first()
    return None if row is None else row_of(row)


def card_of(conn: Connection, open_call_id: str) -> OutboxRow | None:
    """The newest row that showed an open call's card, or the card of a batch of agents."""
    row = conn.execute(
        select(outbox)
        .where(outbox.c.open_call_id == open_call_id, outbox.c.kind.in_(("card", LIVE_CARD)))
        .order_by(outbox.c.position.desc())
        .limit(1)
    ).first()
    return None if row is None else row_of(row)


def card_posted_as(
    conn: Connection, *, channel: str, account: str, chat: str, message_id: str
) -> str | None:
    """The call that is still open whose card was posted under a platform's message id."""
    found = _OPEN_CARDS.rows(conn, of_channel=channel, of_account=account, of_chat=chat)
    return next((row.open_call_id for row in found if message_id in json.loads(row.posted)), None)


def open_cards_in(conn: Connection, *, channel: str, account: str, chat: str) -> frozenset[str]:
    """The calls that are still open whose cards stand in a chat, or are on their way there."""
    found = _OPEN_CARDS.rows(conn, of_channel=channel, of_account=account, of_chat=chat)
    return frozenset(row.open_call_id for row in found)


def files(conn: Connection, *which: ColumnElement[bool] | TextClause) -> frozenset[str]:
    """The paths of the copies of files in these messages."""
    rows = conn.execute(select(outbox.c.message).where(outbox.c.kind == "file", *which))
    return frozenset(
        part.path
        for found in rows.scalars()
        for part in kept(OutboundMessage, found).parts
        if isinstance(part, FilePart)
    )


def unsettled_files(conn: Connection) -> frozenset[str]:
    """The same of those that are not settled yet."""
    return files(conn, text(OPEN))


def counts(conn: Connection) -> Mapping[str, int]:
    """Rows that are not sent, by state, and the age of the oldest as ``oldest_ms``."""
    # By the two partial indexes, whose conditions are written out: what was sent is never read.
    rows = [row for states in _NOT_SENT for row in conn.execute(_COUNTS.where(text(states)))]
    now = now_ms(conn)
    ages = [now - row[2] for row in rows if row[0] in UNSETTLED]
    return {**{row[0]: row[1] for row in rows}, "oldest_ms": max(ages, default=0)}


def row_of(row: Row[tuple[object, ...]]) -> OutboxRow:
    """A row as it was read."""
    found = row._mapping
    return from_row(
        OutboxRow,
        found,
        message=kept(OutboundMessage, found["message"]),
        posted=tuple(json.loads(found["posted"])),
        stream=None if found["stream"] is None else Stream(json.loads(found["stream"])),
    )
