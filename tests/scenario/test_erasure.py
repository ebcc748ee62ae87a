"""A conversation that is deleted, on each database, also by a process that dies half-way."""

import json
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import Delete, Executable, TextClause
from sqlalchemy import text as sql

from runtime.bus.memory import MemoryBus
from runtime.domain.errors import NotFound
from runtime.domain.grants import Grant, GrantKind
from runtime.intake.sessions import SessionControl
from runtime.ports.model import ModelRequest
from runtime.sessions import audit, erasure, sessions
from runtime.sessions.unit import Units
from runtime.store import Connection
from runtime.store.metadata import metadata
from runtime.views.reader import Views
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said
from tests.scenario.engine import World
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told
from tests.scenario.undoing import quiet
from tests.support import audit_log
from tests.support.kinds import KINDS

__all__ = ["dialect", "migrated_url", "schema_templates"]
TASKS = [{"task": "SECRET look.", "id": "one"}, {"task": "SECRET see.", "id": "two"}]


def says(request: ModelRequest) -> Said | str:
    if name_of(request):
        return "SECRET found."
    return "SECRET done." if "completed" in told(request) else spawn(agents=TASKS)


def words(conn: Connection) -> list[str]:
    rows = (
        str(tuple(row)) for table in metadata.sorted_tables for row in conn.execute(table.select())
    )
    return [row for row in rows if "SECRET" in row]


def keeping(at: World) -> SessionControl:
    return SessionControl(Units(at.database, MemoryBus(), KINDS), lambda: at.workspace, "owner")


async def worked(at: World) -> str:
    """The session of a run with subagents that is over, and all of which was sent."""
    session = (await at.says("SECRET go")).session_id
    await settled(at)
    await at.chat.until(lambda: any("SECRET done" in text for text in at.chat.texts()))
    await at.engine.drain(5.0)
    await quiet(at)
    assert session is not None
    return session


@pytest.mark.requirement("RUN-6")
async def test_a_deleted_conversation_leaves_no_word_and_its_chat_begins_anew(
    tmp_path: Path, migrated_url: str
) -> None:
    async with engine(tmp_path, migrated_url, says) as at:
        session = await worked(at)
        assert len(await at.database.read(words)) > 10
        await keeping(at).delete(session)
        assert await at.database.read(words) == []
        with pytest.raises(NotFound):
            await Views(at.database).session(session)
        again = await at.says("hello", message_id="later")
        assert again.session_id not in (None, session)


@pytest.mark.requirement("RUN-6")
async def test_a_death_between_the_files_and_the_rows_leaves_a_conversation_to_delete_again(
    tmp_path: Path, migrated_url: str
) -> None:
    deaths = ["session-delete"]

    def point(name: str) -> None:
        if deaths and deaths[0] in name:
            deaths.clear()
            raise RuntimeError("the process died")

    async with engine(tmp_path, migrated_url, says, point=point) as at:
        session = await worked(at)
        kept = at.workspace / "uploads" / session
        kept.mkdir(parents=True)
        (kept / "notes.txt").write_text("SECRET notes")
        with pytest.raises(RuntimeError, match="died"):
            await keeping(at).delete(session)
        assert not kept.exists()
        assert (await Views(at.database).session(session)).status == "ended"
        assert await at.database.read(words) != []
        await keeping(at).delete(session)
        assert await at.database.read(words) == []


@pytest.mark.requirement("RUN-6")
async def test_the_books_keep_ids_of_a_deleted_conversation_and_no_words(
    tmp_path: Path, migrated_url: str
) -> None:
    """Reasons, errors and the names of people are words too."""

    def work(conn: Connection) -> None:
        denied = {"outcome": "Denied by Ann: SECRET"}
        audit.append(conn, actor="per_1", action="approval.deny", session_id=session, data=denied)
        failed = sql("UPDATE runs SET error = 'SECRET', cancel = 'SECRET' WHERE session_id = :id")
        conn.execute(failed, {"id": session})
        grant = Grant(tool="exec", kind=GrantKind.ACTION, key="k", text="run SECRET")
        kept_in_the_row = {
            "key": "api:SECRET",
            "grants": json.dumps([grant.model_dump(mode="json")]),
            "scope": json.dumps({"tools": ["SECRET"]}),
            "persona": "SECRET",
            "persona_digest": "SECRET",
        }
        sessions.change(conn, session, kept_in_the_row)
        asked = sql(
            "INSERT INTO open_calls (id, session_id, run_id, step, place, kind, digest, payload, "
            "state, created_ms) SELECT 'call', session_id, id, 1, 1, 'approval', 'd', 'SECRET', "
            "'answered', 1 FROM runs WHERE session_id = :id LIMIT 1"
        )
        conn.execute(asked, {"id": session})

    async with engine(tmp_path, migrated_url, says) as at:
        session = await worked(at)
        await at.database.write(work, name="books")
        named = sql("SELECT speaker FROM runs WHERE session_id = :id")
        found = partial(_column, statement=named, session=session)
        assert any('"name":"owner"' in one for one in await at.database.read(found))
        await keeping(at).delete(session)
        assert await at.database.read(words) == []
        assert {'"name":""' in one for one in await at.database.read(found)} == {True}
        kept = await at.database.read(audit_log.entries)
        assert ("approval.deny", session) in [(one.action, one.session_id) for one in kept]


def _column(conn: Connection, statement: TextClause, session: str) -> list[str]:
    return [str(one) for one in conn.execute(statement, {"id": session}).scalars()]


class Recorder:
    """A connection to nothing, which notes from which tables is deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def execute(self, statement: Executable) -> "Recorder":
        if isinstance(statement, Delete):
            self.deleted.append(str(statement.table))
        return self

    def scalars(self) -> "Recorder":
        return self

    def all(self) -> list[str]:
        return []


def test_a_conversation_is_deleted_from_its_lane_on() -> None:
    """A unit that fires holds the schedule, which goes with the lane: what it put into the outbox
    is there once the lane can be deleted."""
    recorder = Recorder()
    erasure.erase(cast(Connection, recorder), ["ses_1"])
    assert recorder.deleted.index("lanes") < recorder.deleted.index("outbox")
