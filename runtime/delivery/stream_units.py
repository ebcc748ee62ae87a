"""The units of a deliverer that shows a text while it grows: begun, kept, taken over (REN-4).

The row comes before the stream is opened, so that whatever dies in between is found again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from runtime.delivery.outbox_units import delivers
from runtime.domain.errors import NotFound, StaleLease
from runtime.domain.messages import OutboundMessage
from runtime.domain.runs import Holder, RunState
from runtime.sessions import audit, outbox, runs, streams
from runtime.sessions.outbox import OutboxRow, Stream
from runtime.sessions.unit import Unit
from runtime.store import Connection
from runtime.store.database import now_ms


def begin(unit: Unit, run_id: str, holder: Holder) -> OutboxRow | None:
    """The row for a running run's text, marked as of unknown outcome where no stream is open yet.

    None where nothing is to be shown: the run is over or was asked to end, the lease is not ours,
    or messages of the chat wait to be sent, which a new post would overtake.
    """
    conn = unit.conn
    try:
        lane = unit.lane_of_run(run_id)
        run = runs.get(conn, run_id)
    except NotFound:
        return None
    if not unit.kind(lane).speaks:
        return None
    if run.state is not RunState.RUNNING or run.cancel is not None:
        return None
    message = outbox.message_of(run, (), now=now_ms(conn), final=True)
    if not delivers(conn, message, holder):
        return None
    row = streams.of_run(conn, message.run_id, message.target)
    if row is None:
        if outbox.busy(conn, message):
            return None
        streams.add(conn, message, holder)
        row = outbox.get(conn, message.outbox_id)
    elif (row.worker, row.fence) != (holder.worker, holder.fence):
        return None
    if row is None or row.stream is not None:
        return row
    keep(conn, row.message, Stream(), holder)
    return row


def keep(conn: Connection, message: OutboundMessage, stream: Stream | None, holder: Holder) -> None:
    """Keep what is known of a stream's post; None where surely none was opened.

    Raises `StaleLease`.
    """
    if not streams.keep(conn, message.outbox_id, stream, holder):
        raise StaleLease(f"message {message.outbox_id}")


def orphaned(
    conn: Connection, message: OutboundMessage, stream: Stream, reason: str, holder: Holder
) -> None:
    """Give up a stream's post, which may stand there half: its message is sent whole instead.

    Raises `StaleLease`.
    """
    keep(conn, message, None, holder)
    audit.append(
        conn,
        actor="system",
        action="delivery.orphaned",
        session_id=message.session_id,
        run_id=message.run_id,
        data={"outbox_id": message.outbox_id, "post": stream.id, "reason": reason},
    )


@dataclass(frozen=True, slots=True)
class Cared:
    """What a look found of texts that grow: those that may go on, and those to be closed."""

    growing: tuple[OutboxRow, ...] = ()
    closing: tuple[OutboxRow, ...] = ()


def care(conn: Connection, rows: Sequence[OutboxRow], holder: Holder) -> Cared:
    """Take over the growing texts of earlier deliverers, and end those whose run is over.

    A run that ended in its turn closed its text itself; this is for all that end otherwise.
    """
    growing, closing = [], []
    for row in rows:
        mine = (row.worker, row.fence) == (holder.worker, holder.fence)
        if not mine:
            earlier = row.fence is None or row.fence <= holder.fence
            if not earlier or not outbox.adopt(conn, row, holder):
                continue
            row = replace(row, worker=holder.worker, fence=holder.fence)
        run = runs.get(conn, row.message.run_id or "")
        if run.state in (RunState.QUEUED, RunState.RUNNING):
            growing.append(row)
            continue
        streams.cut(conn, run)
        now = outbox.get(conn, row.message.outbox_id)
        if now is not None and now.state == "sending":
            closing.append(now)
    return Cared(tuple(growing), tuple(closing))
