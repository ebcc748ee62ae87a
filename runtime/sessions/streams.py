"""Rows of the outbox whose text is shown while it grows (REN-4, MSG-9).

Such a row is `streaming` and belongs to a deliverer; `stream` says what is known of its post. There
is one row for a text from its first word on: when its run ends or waits, it becomes the run's
reply, or is closed with what was said. Who shows it and closes it is the deliverer's business.
"""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select, text, update

from runtime.domain.messages import ChatAddress, OutboundMessage, TextPart
from runtime.domain.runs import Holder, RunState
from runtime.domain.transcript import AssistantMessage
from runtime.sessions.outbox import (
    FINAL_RANK,
    GROWS,
    IN_CHAT,
    OPEN,
    OutboxRow,
    Stream,
    place_of,
    row_of,
)
from runtime.sessions.runs import Run
from runtime.sessions.tables import lanes, messages, outbox, runs
from runtime.store.database import now_ms
from runtime.store.payloads import kept_message
from runtime.store.statements import hot

SAID = "said"
"""The kind of a row that holds a run's words and is not its reply."""
CUT = "(I was stopped here.)"
LOOKED_BACK = 500
"""How far from the end of a transcript the last words of a run are looked for."""
_OF_RUN = hot(select(outbox).where(*IN_CHAT, text(GROWS), outbox.c.run_id == bindparam("of_run")))
_LIVE = (RunState.QUEUED.value, RunState.RUNNING.value)
_OF_ACCOUNT = (
    outbox.c.channel == bindparam("of_channel"),
    outbox.c.account == bindparam("of_account"),
    text(f"outbox.{OPEN}"),
)


def of_run(conn: Connection, run_id: str | None, target: ChatAddress) -> OutboxRow | None:
    """The row in which the text of a run grows in a chat."""
    found = _OF_RUN.first(conn, of_run=run_id, **place_of(target))
    return None if found is None else row_of(found)


def add(conn: Connection, message: OutboundMessage, holder: Holder) -> None:
    """Put a text that will grow into the outbox, for a deliverer that opens its stream next."""
    now = now_ms(conn)
    conn.execute(
        insert(outbox).values(
            id=message.outbox_id,
            session_id=message.session_id,
            run_id=message.run_id,
            kind="stream",
            channel=message.target.channel,
            account=message.target.account,
            chat=message.target.chat_id,
            message=message.model_dump_json(),
            state="streaming",
            rank=0,
            next_ms=now,
            worker=holder.worker,
            fence=holder.fence,
            created_ms=now,
        )
    )


def keep(conn: Connection, outbox_id: str, stream: Stream | None, holder: Holder) -> bool:
    """Keep what is known of a stream's post, also once its run ended; False when the row is
    another deliverer's by now."""
    kept = None if stream is None else json.dumps(stream.id)
    changed = conn.execute(
        update(outbox)
        .where(
            outbox.c.id == outbox_id,
            outbox.c.state.in_(("streaming", "sending")),
            outbox.c.worker == holder.worker,
            outbox.c.fence == holder.fence,
        )
        .values(stream=kept)
    )
    return changed.rowcount == 1


def end(
    conn: Connection, row: OutboxRow, message: OutboundMessage, *, kind: str, rank: int
) -> None:
    """Let a text grow no more: `message` takes its place. The deliverer that has the row closes
    the stream; where none was opened, it is sent as any other message."""
    values: dict[str, object] = {"state": "sending"}
    if row.stream is None:
        values = {"state": "pending", "worker": None, "fence": None}
    conn.execute(
        update(outbox)
        .where(outbox.c.id == row.message.outbox_id, outbox.c.state == "streaming")
        .values(kind=kind, rank=rank, message=message.model_dump_json(), **values)
    )


def ended(conn: Connection, *, channel: str, account: str, holder: Holder) -> Sequence[OutboxRow]:
    """A deliverer's rows whose stream is to be closed; oldest first."""
    rows = conn.execute(
        select(outbox)
        .where(
            *_OF_ACCOUNT,
            outbox.c.state == "sending",
            outbox.c.stream.is_not(None),
            outbox.c.worker == holder.worker,
            outbox.c.fence == holder.fence,
        )
        .order_by(outbox.c.position),
        {"of_channel": channel, "of_account": account},
    )
    return [row_of(row) for row in rows]


def over(conn: Connection, *, channel: str, account: str) -> frozenset[str]:
    """Rows that still grow although their run ended or waits for somebody."""
    rows = conn.execute(
        select(outbox.c.id)
        .join(runs, runs.c.id == outbox.c.run_id)
        .where(*_OF_ACCOUNT, outbox.c.state == "streaming", runs.c.state.not_in(_LIVE)),
        {"of_channel": channel, "of_account": account},
    )
    return frozenset(rows.scalars())


def last_said(conn: Connection, session_id: str, run_id: str) -> str:
    """The last text of a run that is in the transcript; empty where it said nothing lately."""
    newest = select(lanes.c.message_seq).where(lanes.c.session_id == session_id).scalar_subquery()
    rows = conn.execute(
        select(messages.c.payload)
        .where(
            messages.c.session_id == session_id,
            messages.c.seq > newest - LOOKED_BACK,
            messages.c.run_id == run_id,
            messages.c.role == "assistant",
        )
        .order_by(messages.c.seq.desc())
    )
    for row in rows:
        message = kept_message(row.payload)
        if isinstance(message, AssistantMessage) and message.text.strip():
            return message.text
    return ""


def become(conn: Connection, reply: OutboundMessage) -> OutboundMessage | None:
    """Make a growing text the reply of its run; None where the run has none.

    It keeps the row's id, so that there is one reply however often this is tried.
    """
    return _grown(conn, reply, kind="final")


def answer(conn: Connection, message: OutboundMessage) -> OutboundMessage | None:
    """Make a growing text an answer of a run that goes on; None where the run has none."""
    return _grown(conn, message, kind=SAID)


def _grown(conn: Connection, message: OutboundMessage, *, kind: str) -> OutboundMessage | None:
    row = of_run(conn, message.run_id, message.target)
    if row is None:
        return None
    message = message.model_copy(update={"outbox_id": row.message.outbox_id})
    end(conn, row, message, kind=kind, rank=FINAL_RANK)
    return message


def rest(conn: Connection, run: Run) -> bool:
    """Close the text of a run that waits for a person with what it said; its card comes next."""
    return _close(conn, run, None, mark="")


def cut(conn: Connection, run: Run, written: str | None = None) -> bool:
    """Close the text of a run that ends without a reply: with what it had `written`, and a mark.

    Without a text given it is the last one that the transcript has.
    """
    return _close(conn, run, written, mark=CUT)


def _close(conn: Connection, run: Run, written: str | None, *, mark: str) -> bool:
    row = of_run(conn, run.id, run.target)
    if row is None:
        return False
    said = written or last_said(conn, run.session_id, run.id)
    text = "\n\n".join(part for part in (said.strip(), mark) if part) or CUT
    message = row.message.model_copy(update={"parts": (TextPart(markdown=text),)})
    end(conn, row, message, kind=SAID, rank=0)
    return True
