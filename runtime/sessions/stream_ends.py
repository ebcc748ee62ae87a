"""What becomes of a text that was shown while it grew, when its run ends or waits (REN-4, MSG-9).

There is one row for it from the first word on: it becomes the run's reply, or is closed with what
was said. Who shows it and closes it is the deliverer's business.
"""

from runtime.domain.messages import OutboundMessage, TextPart
from runtime.sessions import streams
from runtime.sessions.outbox import FINAL_RANK
from runtime.sessions.runs import Run
from runtime.store import Connection

SAID = "said"
"""The kind of a row that holds a run's words and is not its reply."""
CUT = "(I was stopped here.)"


def become(conn: Connection, reply: OutboundMessage) -> OutboundMessage | None:
    """Make a growing text the reply of its run; None where the run has none.

    It keeps the row's id, so that there is one reply however often this is tried.
    """
    return _grown(conn, reply, kind="final")


def answer(conn: Connection, message: OutboundMessage) -> OutboundMessage | None:
    """Make a growing text an answer of a run that goes on; None where the run has none."""
    return _grown(conn, message, kind=SAID)


def _grown(conn: Connection, message: OutboundMessage, *, kind: str) -> OutboundMessage | None:
    row = streams.of_run(conn, message)
    if row is None:
        return None
    message = message.model_copy(update={"outbox_id": row.message.outbox_id})
    streams.end(conn, row, message, kind=kind, rank=FINAL_RANK)
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
    asked = OutboundMessage(
        outbox_id="", target=run.target, parts=(), run_id=run.id, session_id=run.session_id
    )
    row = streams.of_run(conn, asked)
    if row is None:
        return False
    said = written or streams.last_said(conn, run.session_id, run.id)
    text = "\n\n".join(part for part in (said.strip(), mark) if part) or CUT
    message = row.message.model_copy(update={"parts": (TextPart(markdown=text),)})
    streams.end(conn, row, message, kind=SAID, rank=0)
    return True
