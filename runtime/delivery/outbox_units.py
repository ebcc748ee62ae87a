"""The units of a delivery: claimed, progressed, and settled as sent, dead or unknown (I7)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from runtime.domain.errors import StaleLease
from runtime.domain.events import EventKind
from runtime.domain.ids import made_at_ms
from runtime.domain.messages import OutboundMessage, Receipt
from runtime.domain.runs import Holder
from runtime.domain.value import JsonObject
from runtime.sessions import audit, lanes, outbox
from runtime.sessions.lanes import Recorded
from runtime.sessions.outbox import OutboxRow
from runtime.store import Connection, leases
from runtime.store.database import now_ms

FRESH: Final = "fresh"
_ENDS: Final = {"dead": EventKind.DELIVERY_DEAD, "unknown": EventKind.DELIVERY_UNKNOWN}


def fresh_row(message: OutboundMessage, holder: Holder) -> OutboxRow:
    """The row of a reply that its run's last unit claimed for this deliverer."""
    return OutboxRow(
        position=0,
        kind="final",
        message=message,
        state=FRESH,
        rank=outbox.FINAL_RANK,
        attempt=0,
        next_ms=0,
        worker=holder.worker,
        fence=holder.fence,
        begun_ms=None,
        posted=(),
        open_call_id=None,
        error=None,
        created_ms=made_at_ms(message.outbox_id),
        settled_ms=None,
    )


def claim(conn: Connection, rows: Sequence[OutboxRow], holder: Holder) -> Sequence[OutboxRow]:
    """Take rows that are still pending; what another took meanwhile is left out.

    Nothing is taken under a lease that ran out: its next holder may be at work (I6).
    """
    if not rows or not delivers(conn, rows[0].message, holder):
        return ()
    ids = outbox.claim(conn, [row.message.outbox_id for row in rows], holder)
    return [
        replace(
            row,
            state="sending",
            worker=holder.worker,
            fence=holder.fence,
            attempt=row.attempt + 1,
        )
        for row in rows
        if row.message.outbox_id in ids
    ]


def adopt(conn: Connection, rows: Sequence[OutboxRow], holder: Holder) -> Sequence[OutboxRow]:
    """Take over what an earlier deliverer had in hand; never from a later one.

    The rows come back as they were: who had them says whether they may have been sent.
    """
    return [
        row
        for row in rows
        if (row.fence is None or row.fence <= holder.fence) and outbox.adopt(conn, row, holder)
    ]


def begin(conn: Connection, message: OutboundMessage, holder: Holder) -> None:
    """Keep that a send begins which nobody could look up afterwards. Raises `StaleLease`.

    Nothing begins under a lease that ran out while the database was away: the next deliverer finds
    that nothing was handed over, and sends the message, instead of calling its fate unknown.
    """
    if not delivers(conn, message, holder):
        raise StaleLease(f"message {message.outbox_id}")
    _change(conn, message, {"begun_ms": now_ms(conn)}, holder)


def progress(
    conn: Connection, message: OutboundMessage, posted: Sequence[str], holder: Holder
) -> None:
    """Keep the ids of the posts that went out so far. Raises `StaleLease`."""
    _change(conn, message, {"posted": json.dumps(list(posted))}, holder)


def sent(conn: Connection, message: OutboundMessage, receipt: Receipt, holder: Holder) -> bool:
    """Keep the receipt; whether a run of the session may start now, which a claim passed over while
    this unit held its lane. Raises `StaleLease`."""
    # The lane first, like every unit; it also knows the time.
    lane = _record(conn, message, EventKind.DELIVERY_SENT, "")
    if not outbox.sent(conn, message.outbox_id, receipt.message_ids, holder, at=lane.at_ms):
        raise StaleLease(f"message {message.outbox_id}")
    return lane.ready


def end(
    conn: Connection, message: OutboundMessage, state: str, reason: str, holder: Holder
) -> bool:
    """Give a message up as dead or unknown, with the reason kept; whether a run of the session may
    start now, as above. Raises `StaleLease`."""
    values = {"state": state, "error": reason, "settled_ms": now_ms(conn)}
    _change(conn, message, values, holder)
    return _record(conn, message, _ENDS[state], reason).ready


def retry(conn: Connection, row: OutboxRow, reason: str, delay_ms: int, holder: Holder) -> None:
    """Put a message back, not to be sent before `delay_ms` have passed. Raises `StaleLease`."""
    values = {
        "state": "pending",
        "error": reason,
        "next_ms": now_ms(conn) + delay_ms,
        "posted": json.dumps(list(row.posted)),
        "worker": None,
        "fence": None,
        "begun_ms": None,
    }
    _change(conn, row.message, values, holder)


def put_off(conn: Connection, row: OutboxRow, delay_ms: int, holder: Holder) -> None:
    """Put an edit back that comes too early; nothing was tried. Raises `StaleLease`."""
    values = {
        "state": "pending",
        "next_ms": now_ms(conn) + delay_ms,
        "attempt": max(0, row.attempt - 1),
        "worker": None,
        "fence": None,
    }
    _change(conn, row.message, values, holder)


def unfenced(conn: Connection, message: OutboundMessage, posted: Sequence[str]) -> bool:
    """Keep that a deliverer lost its lease while the platform had `message` in hand.

    False, and nothing is kept, where the row's receipt names the same posts: then it is one post.
    """
    row = outbox.get(conn, message.outbox_id)
    kept = row.posted if row is not None else ()
    if row is not None and row.stream is not None and row.stream.id:
        kept = (row.stream.id, *kept)
    if posted and set(posted) <= set(kept):
        return False
    audit.append(
        conn,
        actor="system",
        action="delivery.unfenced",
        session_id=message.session_id,
        run_id=message.run_id,
        data={
            "outbox_id": message.outbox_id,
            "posted": list(posted),
            "kept": list(kept),
            "state": row.state if row is not None else "",
        },
    )
    return True


def delivers(conn: Connection, message: OutboundMessage, holder: Holder) -> bool:
    """Whether the lease of the account that a message goes out by is the holder's now."""
    name = leases.delivery(message.target.channel, message.target.account)
    return leases.holds(conn, name, holder)


def _change(
    conn: Connection, message: OutboundMessage, values: dict[str, object], holder: Holder
) -> None:
    if not outbox.change_owned(conn, message.outbox_id, values, holder):
        raise StaleLease(f"message {message.outbox_id}")


def _record(conn: Connection, message: OutboundMessage, kind: EventKind, reason: str) -> Recorded:
    """Tell of a delivery's end in its session, whose lane is locked for it."""
    if message.session_id is None:
        return Recorded(now_ms(conn), ready=False)
    data: JsonObject = {"outbox_id": message.outbox_id, "reason": reason}
    return lanes.record_event(conn, message.session_id, kind, message.run_id, data)
