"""What a run may still send is read from its rows (MSG-19)."""

import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.agent.sending import sending_by_rows
from runtime.domain.errors import NotFound
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.domain.runs import RunKind, RunState
from runtime.domain.tools import Effect, ToolCall, ToolResult
from runtime.sessions import calls, lanes, runs
from runtime.sessions.calls import CallRow
from runtime.sessions.lanes import NewSession
from runtime.sessions.runs import Run
from runtime.store import Connection, Database, open_database
from runtime.tools.outgoing_files import TOOL, SendLimits
from tests.contract.store_support import StillClock
from tests.support.templates import make_database

pytestmark = pytest.mark.requirement("MSG-19")
ADDRESS = ChatAddress(channel="test", account="A1", chat_id="D1")
SPEAKER = Speaker(person_id="per_1", channel="test", account="A1", user_id="U1", trust=Trust.OWNER)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    url = f"sqlite:///{tmp_path / 'gatehouse.db'}"
    await make_database(url)
    opened = open_database(url, clock=StillClock())
    await opened.start()
    try:
        yield opened
    finally:
        await opened.close()
        # A connection that was not closed warns when it is collected, and warnings are errors.
        gc.collect()


def row(place: int, name: str, status: str | None) -> CallRow:
    """A call of a run; no `status`: it has not ended."""
    call = ToolCall(id=f"c{place}", name=name, arguments="{}")
    result = status and ToolResult.model_validate(
        {"call_id": call.id, "name": name, "status": status, "content": ""}
    )
    state = "ended" if status else "started"
    return CallRow("run_1", 1, place, call, Effect.ONCE, state, "digest", result=result or None)


def seed(conn: Connection) -> None:
    lane = lanes.create(conn, NewSession("key", ADDRESS, "edit", "followup"))
    assert lane is not None
    run = Run(
        id="run_1",
        session_id=lane.session_id,
        seq=1,
        kind=RunKind.INPUT,
        state=RunState.RUNNING,
        collecting=False,
        ready_ms=1,
        target=ADDRESS,
        reply_to=None,
        speaker=SPEAKER,
        created_ms=1,
    )
    runs.add(conn, run)
    runs.add(conn, replace(run, id="run_2", seq=2, state=RunState.QUEUED))
    made = [(TOOL, "ok"), (TOOL, "error"), (TOOL, "ok"), (TOOL, None), ("read_file", "ok")]
    rows = [row(place, name, status) for place, (name, status) in enumerate(made)]
    calls.add(conn, rows, now=1)


async def test_files_that_were_sent_count_and_nothing_else(database: Database) -> None:
    await database.write(seed, name="seed")
    limits = SendLimits(file_bytes=7, per_run=5)
    sending = sending_by_rows(database, limits, redact=str.upper)
    room = await sending.room("run_1")
    assert (room.left, room.per_run, room.most, room.channel) == (3, 5, 7, "test")
    assert (await sending.room("run_2")).left == 5
    assert sending.redact("key") == "KEY"
    assert sending_by_rows(database, limits).redact("key") == "key"
    assert await sending.recipients("run_1", "") == []
    with pytest.raises(NotFound):
        await sending.room("run_3")
