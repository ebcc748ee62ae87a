"""What tools that send may send, read from the rows of a run, so that a crash forgets no file."""

from collections.abc import Callable

from runtime.sessions import calls, runs
from runtime.sessions.recipients import recipients_by_rows
from runtime.store import Connection, Database
from runtime.tools.outgoing_files import TOOL, Room, Sending, SendLimits, room_for


def sending_by_rows(
    database: Database, limits: SendLimits, *, redact: Callable[[str], str] = str
) -> Sending:
    """For the tools of a process whose runs are rows of `database`."""

    def read(conn: Connection, run_id: str) -> tuple[str, int]:
        rows = calls.of_run(conn, run_id)
        done = [row for row in rows if row.call.name == TOOL and row.result is not None]
        sent = sum(row.result is not None and row.result.status == "ok" for row in done)
        return runs.get(conn, run_id).target.channel, sent

    async def room(run_id: str) -> Room:
        channel, sent = await database.read(lambda conn: read(conn, run_id))
        return room_for(limits, channel, sent)

    return Sending(room, redact, recipients_by_rows(database))
