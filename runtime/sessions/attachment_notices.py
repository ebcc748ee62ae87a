"""What became of a file that came with a message, put into the transcript behind it (MSG-19).

A line of a transcript never changes, so the facts stand in a line of their own. It is written in
front of a model call, when every call has its result: nothing may stand between those two.
"""

from runtime.domain.transcript import NoticeMessage
from runtime.sessions import runs
from runtime.sessions.claims import Holder
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Unit


def received(unit: Unit, holder: Holder, run_id: str, notice: NoticeMessage) -> Line:
    """Keep the facts about one file. What a file holds is data from outside, and so taints the run.

    Raises `StaleLease` when the run became another worker's.
    """
    conn, lane = unit.conn, unit.lane_of_run(run_id)
    run = runs.owned(conn, run_id, worker=holder.worker, fence=holder.fence)
    if notice.file is not None and notice.file.state == "kept" and not run.tainted:
        runs.change(conn, run_id, {"tainted": True})
    seq = lane.say(notice, run_id=run_id, step=run.step, transcript=run.transcript)
    tokens = int(str(lane.new_messages[-1]["tokens"]))
    return Line(seq, run_id, run.step, tokens, lane.now_ms, notice)
