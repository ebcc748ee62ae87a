"""What `Database` promises, on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    bindparam,
    insert,
    select,
)
from sqlalchemy.exc import IntegrityError

from runtime.store import Database, StoreUnavailable, open_database
from tests.conftest import FailAfter
from tests.contract.store_support import Gate, Points, StillClock

metadata = MetaData()
notes = Table(
    "notes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("body", Text),
    Column("seq", BigInteger),
)


def add(note: str, body: str = "") -> Callable[[Connection], str]:
    def unit(conn: Connection) -> str:
        conn.execute(insert(notes).values(id=note, body=body, seq=0))
        return note

    return unit


def kept(conn: Connection) -> list[str]:
    return list(conn.execute(select(notes.c.id).order_by(notes.c.id)).scalars())


@pytest.fixture(autouse=True)
async def _notes(database: Database) -> None:
    await database.write(metadata.create_all, name="schema")


def gated(gate: Gate, note: str) -> Callable[[Connection], str]:
    def unit(conn: Connection) -> str:
        add(note)(conn)
        gate.hold(conn)
        return note

    return unit


async def test_a_unit_gives_its_result_once_its_rows_can_be_read(database: Database) -> None:
    assert await database.write(add("a", "hello"), name="add") == "a"
    assert await database.read(kept) == ["a"]


async def test_a_unit_that_raises_leaves_nothing_and_gives_its_error(database: Database) -> None:
    def unit(conn: Connection) -> None:
        add("a")(conn)
        raise KeyError("second thoughts")

    with pytest.raises(KeyError, match="second thoughts"):
        await database.write(unit, name="add")
    assert await database.read(kept) == []


async def test_a_unit_that_raises_disturbs_no_unit_beside_it(
    database: Database, gate: Gate, fail_after: FailAfter
) -> None:
    def broken(conn: Connection) -> None:
        add("broken")(conn)
        conn.execute(insert(notes).values(id="broken"))

    async with fail_after(), asyncio.TaskGroup() as group:
        first = group.create_task(database.write(gated(gate, "first"), name="u"))
        await gate.entered()
        # What waits now is one group on SQLite.
        before = group.create_task(database.write(add("before"), name="u"))
        middle = group.create_task(_error(database.write(broken, name="u")))
        after = group.create_task(database.write(add("later"), name="u"))
        await gate.open()
    assert [first.result(), before.result(), after.result()] == ["first", "before", "later"]
    assert isinstance(middle.result(), IntegrityError)
    assert await database.read(kept) == ["before", "first", "later"]


async def _error(writing: object) -> BaseException | None:
    try:
        await writing  # type: ignore[misc]  # an awaitable of any result
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return error
    return None


async def test_a_cancelled_caller_learns_of_it_after_the_commit(
    database: Database, gate: Gate, fail_after: FailAfter
) -> None:
    async with fail_after():
        caller = asyncio.create_task(database.write(gated(gate, "a"), name="u"))
        await gate.entered()
        caller.cancel()
        done, _ = await asyncio.wait({caller}, timeout=0)
        assert not done, "the caller went away while its unit was running"
        await gate.open()
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert await database.read(kept) == ["a"]


async def test_a_cancelled_caller_whose_unit_fails_is_cancelled_all_the_same(
    database: Database, gate: Gate, fail_after: FailAfter
) -> None:
    def unit(conn: Connection) -> None:
        gated(gate, "a")(conn)
        raise KeyError("no")

    async with fail_after():
        caller = asyncio.create_task(database.write(unit, name="u"))
        await gate.entered()
        caller.cancel()
        caller.cancel()
        await gate.open()
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert await database.read(kept) == []


async def test_a_reader_sees_nothing_that_is_not_committed(
    database: Database, gate: Gate, fail_after: FailAfter
) -> None:
    async with fail_after():
        caller = asyncio.create_task(database.write(gated(gate, "a"), name="u"))
        await gate.entered()
        assert await database.read(kept) == []
        await gate.open()
        await caller
    assert await database.read(kept) == ["a"]


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(Exception, match=r"read-?only"):
        await database.read(add("a"))
    assert await database.read(kept) == []


async def test_a_read_that_raises_stop_iteration_is_heard(
    database: Database, fail_after: FailAfter
) -> None:
    async with fail_after():
        with pytest.raises(RuntimeError, match="StopIteration"):
            await database.read(lambda conn: next(iter(conn.execute(select(1)).all()[1:])))


async def test_a_cancelled_read_gives_its_connection_back(
    database: Database, fail_after: FailAfter
) -> None:
    async with fail_after():
        for _ in range(20):
            reading = asyncio.create_task(database.read(kept))
            await asyncio.wait({reading}, timeout=0)
            reading.cancel()
            await asyncio.wait({reading})
        assert await asyncio.gather(*(database.read(kept) for _ in range(20))) == [[]] * 20


async def test_an_urgent_unit_does_not_wait_for_the_others(
    database_url: str, clock: StillClock, gate: Gate, fail_after: FailAfter
) -> None:
    order: list[str] = []

    def note(name: str) -> Callable[[Connection], None]:
        return lambda conn: order.append(conn.execute(select(bindparam("n", name))).scalar_one())

    # Two connections: one for ordinary units, which the gate fills, and one for urgent ones.
    database = open_database(database_url, clock=clock, pool_size=2)
    await database.start()
    try:
        async with fail_after(), asyncio.TaskGroup() as group:
            group.create_task(database.write(gated(gate, "first"), name="u"))
            await gate.entered()
            group.create_task(database.write(note("ordinary"), name="u"))
            urgent = group.create_task(database.write(note("urgent"), name="u", urgent=True))
            if database.dialect == "postgresql":
                await urgent
            await asyncio.wait({urgent}, timeout=0)
            await gate.open()
    finally:
        await database.close()
    assert order == ["urgent", "ordinary"]


async def test_the_crash_points_lie_before_the_unit_and_after_its_commit(
    database: Database, points: Points, database_url: str
) -> None:
    points.passed.clear()

    def unit(conn: Connection) -> None:
        points.passed.append("work")
        add("a")(conn)

    await database.write(unit, name="note")
    assert points.passed == ["note:begin", "work", "note:commit"]


async def test_a_crash_at_the_first_point_leaves_nothing_and_at_the_second_everything(
    database: Database, points: Points
) -> None:
    class Crash(BaseException):
        pass

    def crash_at(wanted: str) -> None:
        def at(name: str) -> None:
            if name == wanted:
                raise Crash

        points.then = at

    crash_at("note:begin")
    with pytest.raises(Crash):
        await database.write(add("a"), name="note")
    assert await database.read(kept) == []
    crash_at("note:commit")
    with pytest.raises(Crash):
        await database.write(add("b"), name="note")
    assert await database.read(kept) == ["b"]


async def test_close_finishes_what_waits_and_refuses_what_comes(
    database: Database, gate: Gate, fail_after: FailAfter
) -> None:
    async with fail_after(), asyncio.TaskGroup() as group:
        writes = [group.create_task(database.write(gated(gate, "00"), name="u"))]
        await gate.entered()
        writes += [
            group.create_task(database.write(add(f"{n:02}"), name="u")) for n in range(1, 20)
        ]
        await asyncio.wait(writes, timeout=0)
        closing = group.create_task(database.close())
        await asyncio.wait({closing}, timeout=0)
        with pytest.raises(StoreUnavailable, match="not open"):
            await database.write(add("late"), name="u")
        await gate.open()
    assert [write.result() for write in writes] == [f"{n:02}" for n in range(20)]
    with pytest.raises(StoreUnavailable, match="not open"):
        await database.read(kept)
    await database.start()
    assert len(await database.read(kept)) == 20


@pytest.mark.parametrize("method", ["commit", "rollback"])
async def test_a_unit_cannot_end_the_transaction(database: Database, method: str) -> None:
    def unit(conn: Connection) -> None:
        add("a")(conn)
        getattr(conn, method)()

    with pytest.raises(RuntimeError, match="neither commits nor rolls back"):
        await database.write(unit, name="u")
    assert await database.read(kept) == []
    await database.write(add("b"), name="u")
    assert await database.read(kept) == ["b"]


async def test_a_statement_may_fail_inside_begin_nested(database: Database) -> None:
    def both(conn: Connection) -> None:
        with conn.begin_nested():
            add("b")(conn)
            add("a")(conn)

    def unit(conn: Connection) -> None:
        add("a")(conn)
        with pytest.raises(IntegrityError):
            both(conn)
        add("c")(conn)

    await database.write(unit, name="u")
    assert await database.read(kept) == ["a", "c"]


async def test_a_unit_that_raises_stop_iteration_is_heard(
    database: Database, fail_after: FailAfter
) -> None:
    def unit(conn: Connection) -> None:
        raise StopIteration

    async with fail_after():
        with pytest.raises(RuntimeError, match="StopIteration"):
            await database.write(unit, name="u")
