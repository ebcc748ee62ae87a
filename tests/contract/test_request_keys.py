"""One key, one creation, for everything that a request creates (RUN-4).

A second `Control` on the same database stands for another replica, or for a restart.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import asyncpg
import pytest
from sqlalchemy import func, select, update

from adapters.system.clock import SystemClock
from runtime.bus.memory import MemoryBus
from runtime.domain.errors import Conflict, QueueFull, StoreUnavailable
from runtime.domain.request_keys import KEPT_MS, RequestKey, request_key
from runtime.domain.value import JsonObject
from runtime.features.schedules.control import ScheduleControl
from runtime.features.schedules.model import ScheduleCreateRequest
from runtime.features.tasks.board import TaskBoard
from runtime.features.tasks.model import TaskCreate
from runtime.intake.assets import Sender
from runtime.intake.control import Control, ControlServices, ControlSettings, NewConversation
from runtime.intake.gatehouse import Intake, IntakeSettings
from runtime.sessions import idempotency
from runtime.sessions.tables import idempotency as keys
from runtime.sessions.unit import Units
from runtime.store import Connection, Database
from runtime.store.metadata import metadata
from tests.conftest import FailAfter
from tests.contract.test_submission_keys import control_of
from tests.support.kinds import KINDS

T = TypeVar("T")
Creation = Callable[[Control, str, str, str], Awaitable[object]]
"""Creates something by (control, session, key, words), and gives what names it."""


async def _session(control: Control, _session_id: str, key: str, words: str) -> object:
    view, _ = await control.create_session(NewConversation(title=words), idempotency_key=key)
    return view.id


async def _run(control: Control, session_id: str, key: str, words: str) -> object:
    return await control.submit(session_id, [words], idempotency_key=key)


async def _asset(control: Control, _session_id: str, key: str, words: str) -> object:
    async def pieces() -> AsyncIterator[bytes]:
        yield words.encode()

    sender = Sender("ada", "owner")
    view, _ = await control.assets.receive(pieces(), "a", sender, idempotency_key=key)
    return view.id


async def _task(control: Control, session_id: str, key: str, words: str) -> object:
    board = TaskBoard(control.units, SystemClock())
    return (await board.create(session_id, TaskCreate(title=words), idempotency_key=key)).id


async def _schedule(control: Control, session_id: str, key: str, words: str) -> object:
    asked = ScheduleCreateRequest.model_validate(
        {
            "name": "daily",
            "target_session_id": session_id,
            "timezone": "UTC",
            "cadence": {"type": "interval", "every_seconds": 3600},
            "deliver_text": words,
        }
    )
    made, _ = await ScheduleControl(control.units, "owner").create(asked, idempotency_key=key)
    return made.schedule_id


CREATIONS: Mapping[str, tuple[Creation, str]] = {
    "session": (_session, "sessions"),
    "run": (_run, "inputs"),
    "asset": (_asset, "assets"),
    "task": (_task, "tasks"),
    "schedule": (_schedule, "schedules"),
}
"""Each with the table of what it makes."""
EVERY = pytest.mark.parametrize("kind", CREATIONS)


async def count(store: Database, table: str) -> int:
    query = select(func.count()).select_from(metadata.tables[table])
    return await store.read(lambda conn: int(conn.execute(query).scalar_one()))


async def start(store: Database, path: Path) -> tuple[Control, str]:
    control = control_of(store, path)
    made, _ = await control.create_session(NewConversation())
    return control, made.id


@pytest.mark.requirement("RUN-4")
@EVERY
async def test_the_same_key_creates_once_at_once_and_after_a_restart(
    store: Database, tmp_path: Path, fail_after: FailAfter, kind: str
) -> None:
    creates, table = CREATIONS[kind]
    control, session = await start(store, tmp_path)
    before = await count(store, table)
    async with fail_after():
        at_once = await asyncio.gather(
            *(creates(control_of(store, tmp_path), session, "k", "words") for _ in range(4))
        )
    assert len({repr(one) for one in at_once}) == 1
    restarted = control_of(store, tmp_path)
    assert await creates(restarted, session, "k", "words") == at_once[0]
    assert await count(store, table) == before + 1
    assert await creates(control, session, "other", "others") != at_once[0]
    assert await count(store, table) == before + 2


@pytest.mark.requirement("RUN-4")
@EVERY
async def test_the_same_key_with_another_request_is_refused_and_creates_nothing(
    store: Database, tmp_path: Path, fail_after: FailAfter, kind: str
) -> None:
    creates, table = CREATIONS[kind]
    control, session = await start(store, tmp_path)
    before = await count(store, table)
    async with fail_after():
        both = await asyncio.gather(
            *(creates(control, session, "k", words) for words in ("one", "two")),
            return_exceptions=True,
        )
    refused = [one for one in both if isinstance(one, Conflict)]
    assert [str(one) for one in refused] == [
        "this Idempotency-Key came with another request before; give a new request a new key"
    ]
    assert refused[0].state == "used"
    assert await count(store, table) == before + 1


class Dying(Database):
    """A store that undoes every unit which keeps the answer to a request, as a process that dies
    in front of the commit does."""

    def __init__(self, store: Database) -> None:
        self.dialect = store.dialect
        self._store = store

    async def start(self) -> None:
        await self._store.start()

    async def close(self) -> None:
        await self._store.close()

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self._store.read(work)

    async def write(self, work: Callable[[Connection], T], *, name: str, urgent: bool = False) -> T:
        def dies(conn: Connection) -> T:
            work(conn)
            raise StoreUnavailable(name)

        return await self._store.write(dies, name=name, urgent=urgent)


@pytest.mark.requirement("RUN-4")
@EVERY
async def test_the_key_and_what_it_created_are_kept_together_or_not_at_all(
    store: Database, tmp_path: Path, kind: str
) -> None:
    creates, table = CREATIONS[kind]
    control, session = await start(store, tmp_path)
    before, marks = await count(store, table), await count(store, "idempotency")
    with pytest.raises(StoreUnavailable):
        await creates(control_of(Dying(store), tmp_path), session, "k", "words")
    assert await count(store, table) == before
    assert await count(store, "idempotency") == marks
    await creates(control, session, "k", "words")
    assert await count(store, table) == before + 1


@pytest.mark.requirement("RUN-4", "MSG-2")
async def test_the_key_of_a_message_means_that_message_at_any_later_time(
    store: Database, tmp_path: Path
) -> None:
    control, session = await start(store, tmp_path)
    first = await _run(control, session, "k", "one")
    await store.write(lambda conn: _age(conn, KEPT_MS + 1), name="test")
    await store.write(idempotency.expire, name="test")
    assert await _run(control, session, "k", "one") == first
    with pytest.raises(Conflict):
        await _run(control, session, "k", "two")


@pytest.mark.requirement("RUN-4")
@pytest.mark.parametrize("kind", sorted(set(CREATIONS) - {"run"}))
async def test_a_key_is_forgotten_after_its_time_and_means_another_request_then(
    store: Database, tmp_path: Path, kind: str
) -> None:
    creates, table = CREATIONS[kind]
    control, session = await start(store, tmp_path)
    first = await creates(control, session, "k", "one")
    await store.write(lambda conn: _age(conn, KEPT_MS - 60_000), name="test")
    assert await creates(control, session, "k", "one") == first
    before = await count(store, table)
    await store.write(lambda conn: _age(conn, 60_001), name="test")
    second = await creates(control, session, "k", "two")
    assert second != first
    assert await creates(control, session, "k", "two") == second, "its time begins anew"
    assert await count(store, table) == before + 1


@pytest.mark.requirement("RUN-4")
async def test_an_answer_is_recalled_for_as_long_as_its_key_is_kept(store: Database) -> None:
    key = RequestKey("k", "digest", kept_ms=KEPT_MS)

    def create(conn: Connection) -> JsonObject | None:
        before = idempotency.claim(conn, key)
        idempotency.keep(conn, key, {"id": "one"})
        return before

    async def recalled() -> JsonObject | None:
        return await store.read(lambda conn: idempotency.recall(conn, key))

    assert await recalled() is None
    assert await store.write(create, name="test") is None
    await store.write(lambda conn: _age(conn, KEPT_MS - 60_000), name="test")
    assert await recalled() == {"id": "one"}
    await store.write(lambda conn: _age(conn, 60_001), name="test")
    assert await recalled() is None


@pytest.mark.requirement("RUN-4")
async def test_old_keys_are_removed_and_what_was_done_once_for_a_message_is_not(
    store: Database, tmp_path: Path
) -> None:
    control, session = await start(store, tmp_path)
    await CREATIONS["task"][0](control, session, "k", "one")

    def once(conn: Connection) -> bool:
        return idempotency.first_time(conn, "claim:1")

    assert await store.write(once, name="test")
    assert await store.write(idempotency.expire, name="test") == 0
    await store.write(lambda conn: _age(conn, KEPT_MS + 1), name="test")
    assert await store.write(idempotency.expire, name="test") == 1
    assert not await store.write(once, name="test")


@pytest.mark.requirement("RUN-4")
async def test_what_is_refused_leaves_its_key_free(store: Database, tmp_path: Path) -> None:
    control, session = await start(store, tmp_path)
    await _run(control, session, "first", "one")
    units = Units(store, MemoryBus(), KINDS)
    door = Intake(units, IntakeSettings(max_waiting=1))
    settings = ControlSettings(workspace=tmp_path)
    full = Control(ControlServices(units, SystemClock(), door, settings=lambda: settings))
    with pytest.raises(QueueFull):
        await _run(full, session, "k", "two")
    await _run(control, session, "k", "others")
    assert await count(store, "inputs") == 2


@pytest.mark.requirement("RUN-4")
async def test_a_key_that_was_given_back_may_come_with_another_request(store: Database) -> None:

    key = request_key("run:x", "k", "words")

    def refused(conn: Connection) -> None:
        assert idempotency.claim(conn, key) is None
        idempotency.give_back(conn, key)

    await store.write(refused, name="test")
    other = request_key("run:x", "k", "others")
    assert await store.write(lambda conn: idempotency.claim(conn, other), name="test") is None


def _age(conn: Connection, by_ms: int) -> None:
    """Let all keys be older."""
    conn.execute(
        update(keys)
        .where(keys.c.expires_ms.is_not(None))
        .values(expires_ms=keys.c.expires_ms - by_ms)
    )


@pytest.mark.requirement("RUN-4")
@pytest.mark.parametrize("dialect", ["postgresql"])
async def test_who_comes_with_a_key_amid_its_creation_waits_for_it(
    store: Database, tmp_path: Path, migrated_url: str, fail_after: FailAfter
) -> None:
    """Two replicas: the first is held between its key and its run, by the lock of the lane. SQLite
    has one writer, so nothing comes amid another unit there."""
    _, session = await start(store, tmp_path)
    other = await asyncpg.connect(migrated_url)
    try:
        async with fail_after(), asyncio.TaskGroup() as group:
            lock = other.transaction()
            await lock.start()
            await other.execute("SELECT 1 FROM lanes WHERE session_id = $1 FOR UPDATE", session)
            both = []
            for number in range(2):
                running = _run(control_of(store, tmp_path), session, "k", "words")
                both.append(group.create_task(running, name=f"party {number}"))
                while await store.read(waiting) <= number:
                    pass
            await lock.rollback()
        assert both[0].result() == both[1].result()
        assert await count(store, "runs") == 1
    finally:
        await other.close()


def waiting(conn: Connection) -> int:
    """The units of this database that wait for another transaction to end."""
    query = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return int(conn.exec_driver_sql(query).scalar_one())
