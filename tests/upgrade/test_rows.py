"""Rows that another version wrote are read, an older one's and a newer one's (SCALE-4)."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from runtime.domain.runs import TERMINAL
from runtime.domain.tools import Effect
from runtime.store import open_database
from runtime.store.dialect import database_url as parsed
from runtime.store.dialect import sqlite_path
from runtime.store.migrate import MIGRATIONS, migrate
from runtime.store.revisions import Revisions
from runtime.views.reader import Views
from tests.architecture.source import python_files, report
from tests.contract.store_support import StillClock
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.cards import reaches
from tests.scenario.engine import setup_at, world
from tests.scenario.tools import Note
from tests.support.kinds import KINDS
from tests.upgrade.corpus import Corpus, Dialect, read, released
from tests.upgrade.tap import Step

PAYLOADS = {
    "inputs": ("speaker", "message"),
    "messages": ("payload",),
    "outbox": ("message",),
    "runs": ("target", "speaker"),
    "sessions": ("address",),
    "tool_calls": ("decision", "result"),
}
"""The columns that hold values as JSON, by table."""
PLACES = [(table, column) for table, columns in PAYLOADS.items() for column in columns]


class Raw:
    """The database without the store: the rows as another version left them."""

    def __init__(self, url: str) -> None:
        self._path = sqlite_path(parsed(url))
        self._url = parsed(url).set(drivername="postgresql").render_as_string(hide_password=False)

    async def tell(self, steps: list[tuple[str, tuple[object, ...]]]) -> None:
        if self._path is not None:
            with closing(sqlite3.connect(self._path)) as database, database:
                for statement, values in steps:
                    database.execute(statement, values)
            return
        connection = await asyncpg.connect(self._url)
        try:
            async with connection.transaction():
                for statement, values in steps:
                    await connection.execute(statement, *values)
        finally:
            await connection.close()

    async def rows(self, query: str) -> list[tuple[object, ...]]:
        if self._path is not None:
            with closing(sqlite3.connect(self._path)) as database:
                return database.execute(query).fetchall()
        connection = await asyncpg.connect(self._url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()


async def everything_is_read(url: str) -> int:
    """How many messages the views show; every list and every one of its rows is read."""
    database = open_database(url, clock=StillClock())
    await database.start()
    try:
        views, shown = Views(database, KINDS), 0
        for session in (await views.sessions(limit=200)).items:
            shown += len((await views.transcript(session.id, limit=200)).items)
        for run in (await views.runs(limit=200)).items:
            await views.run(run.id)
            await views.run_events(run.id)
        await views.events_after(0)
        await views.delivery_problems()
        await views.open_calls("approval")
        await views.status()
    finally:
        await database.close()
    return shown


async def told(url: str, story: Sequence[Step]) -> Raw:
    """The database after a story, told without this version's code."""
    raw = Raw(url)
    await raw.tell([(one.statement, one.values) for one in story])
    return raw


async def goes_on(url: str, folder: Path) -> list[str]:
    """What the person of the story hears when they write again, in the same session."""
    alone = url.startswith("sqlite")
    setup = setup_at(folder, url, ScriptedModels(ScriptedModel(lambda _: "I know")), alone=alone)
    async with world(setup) as at:
        accepted = await at.says("do you remember?", message_id="another")
        await reaches(at, accepted.run_id, *TERMINAL)
        await at.chat.until(lambda: "I know" in at.chat.texts())
        return at.chat.texts()


HEAD = Revisions(MIGRATIONS).head
RELEASED = [one for one in released("sqlite") if one != HEAD]


@pytest.fixture(params=[*RELEASED, HEAD])
def corpus(request: pytest.FixtureRequest, dialect: Dialect, at_work: Corpus) -> Corpus:
    """What each release said, and the version at work."""
    return at_work if request.param == HEAD else read(request.param, dialect)


@pytest.mark.requirement("SCALE-4")
async def test_what_a_version_wrote_is_read_and_gone_on_with(
    corpus: Corpus, database_url: str, tmp_path: Path
) -> None:
    await migrate(database_url)
    await told(database_url, corpus.story)
    assert await everything_is_read(database_url) >= 3
    await goes_on(database_url, tmp_path)


def until_the_card_is_shown(story: Sequence[Step]) -> Sequence[Step]:
    """The story up to the receipt of its approval's card."""
    parked = next(n for n, one in enumerate(story) if "INTO open_calls" in one.statement)
    shown = next(
        n
        for n, one in enumerate(story)
        if n > parked and one.statement.startswith("UPDATE outbox") and "sent" in one.values
    )
    return story[: shown + 1]


@pytest.mark.requirement("APR-4", "SCALE-4")
async def test_an_approval_that_a_version_asked_for_is_answered_and_runs_once(
    corpus: Corpus, dialect: Dialect, database_url: str, tmp_path: Path
) -> None:
    await migrate(database_url)
    raw = await told(database_url, until_the_card_is_shown(corpus.story))
    ((open_call,),) = await raw.rows("SELECT id FROM open_calls WHERE state = 'open'")
    note = Note(command=True)
    setup = setup_at(
        tmp_path,
        database_url,
        ScriptedModels(ScriptedModel(lambda _: "It is done.")),
        alone=dialect == "sqlite",
        tools=(note, Note("keep"), Note("look", effect=Effect.READ)),
    )
    async with world(setup) as at:
        pressed = await at.presses(str(open_call), "once")
        assert pressed.accepted
        await at.chat.until(lambda: "It is done." in at.chat.texts())
        again = await at.presses(str(open_call), "once")
        assert not again.accepted
    assert len(note.kept) == 1


@pytest.mark.requirement("SCALE-4")
async def test_fields_that_the_next_version_writes_are_passed_over(
    dialect: Dialect, database_url: str, tmp_path: Path, at_work: Corpus
) -> None:
    await migrate(database_url)
    raw = await told(database_url, at_work.story)
    changed = 0
    for table, column in PLACES:
        query = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"
        for (payload,) in await raw.rows(query):
            mark = "?" if dialect == "sqlite" else "${}"
            statement = (
                f"UPDATE {table} SET {column} = {mark.format(1)} WHERE {column} = {mark.format(2)}"
            )
            await raw.tell([(statement, (_of_the_future(str(payload)), payload))])
            changed += 1
    assert changed >= len(PLACES)
    assert await everything_is_read(database_url) >= 3
    await goes_on(database_url, tmp_path)


def _of_the_future(payload: str) -> str:
    def grown(value: object) -> object:
        if isinstance(value, dict):
            return {**{key: grown(one) for key, one in value.items()}, "of_the_future": True}
        return [grown(one) for one in value] if isinstance(value, list) else value

    return json.dumps(grown(json.loads(payload)))


@pytest.mark.requirement("SCALE-4")
def test_the_store_reads_its_values_leniently_everywhere() -> None:
    store = [
        one
        for one in python_files("runtime")
        if one.path.startswith(("runtime/sessions/", "runtime/store/"))
    ]
    strict = [
        f"{file.path}:{number}: read it by runtime.store.payloads"
        for file in store
        for number, line in enumerate(file.text.splitlines(), 1)
        if "validate_json(" in line and not file.path.endswith("payloads.py")
    ]
    assert store
    assert strict == [], report(strict)
