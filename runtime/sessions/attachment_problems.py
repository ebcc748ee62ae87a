"""What a run that ends without a reply still owes: the files that were not taken (MSG-19)."""

from typing import Final

from runtime.domain.ids import IdPrefix, new_id
from runtime.domain.messages import OutboundMessage, TextPart
from runtime.domain.transcript import NoticeMessage
from runtime.sessions import outbox, transcripts
from runtime.sessions.lanes import Lane
from runtime.sessions.outbox import NewRow
from runtime.sessions.runs import Run
from runtime.sessions.window import since_answer
from runtime.store import Connection

NOTICE: Final = "notice"


def tell(conn: Connection, lane: Lane, run: Run) -> None:
    """Name each refused or failed file of a run that nobody else will speak for.

    A reply would have named them; whoever stops or replaces a run is told all the same. A run that
    never began has none.
    """
    if run.started_ms is None:
        return
    lines = transcripts.since(
        conn, run.session_id, transcript=run.transcript, first=lane.window_from
    )
    told = [
        line.message.file.told
        for line in since_answer(lines, run.id)
        if isinstance(line.message, NoticeMessage)
        and line.message.file is not None
        and line.message.file.told
    ]
    if not told:
        return
    message = OutboundMessage(
        outbox_id=new_id(IdPrefix.OUTBOX, lane.now_ms),
        target=run.target,
        reply_to=run.reply_to,
        parts=(TextPart(markdown="\n".join(told)),),
        run_id=run.id,
        session_id=run.session_id,
    )
    outbox.add(conn, NewRow(kind=NOTICE, message=message), now=lane.now_ms)
