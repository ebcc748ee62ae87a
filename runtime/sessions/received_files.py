"""What became of files that came with messages (MSG-19): lines of the transcript, words to people.

A line of a transcript never changes, so the facts stand in a line of their own behind the message.
It is written in front of a model call, when every call has its result: nothing may stand between
those two. A run that ends without a reply still owes the files that were not taken.
"""

from runtime.domain.messages import TextPart
from runtime.domain.runs import Holder
from runtime.domain.transcript import NoticeMessage
from runtime.sessions import outbox, runs, transcripts
from runtime.sessions.lanes import Lane
from runtime.sessions.outbox import NewRow
from runtime.sessions.runs import Run
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Unit
from runtime.sessions.window import since_answer
from runtime.store import Connection


def keep_facts(unit: Unit, holder: Holder, run_id: str, notice: NoticeMessage) -> Line:
    """Keep the facts about one file. What a file holds is data from outside, and so taints the run.

    Raises `StaleLease` when the run became another worker's.
    """
    conn = unit.conn
    lane, run = unit.owned(run_id, holder)
    if notice.file is not None and notice.file.state == "kept" and not run.tainted:
        runs.change(conn, run_id, {"tainted": True})
    return lane.say(notice, run_id=run_id, step=run.step, transcript=run.transcript)


def tell_problems(conn: Connection, lane: Lane, run: Run) -> None:
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
    message = outbox.message_of(run, (TextPart(markdown="\n".join(told)),), now=lane.now_ms)
    outbox.add(conn, NewRow(kind="notice", message=message), now=lane.now_ms)
