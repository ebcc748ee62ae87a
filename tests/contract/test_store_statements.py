"""The statements and facts that differ between the databases, and the prepared ones."""

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
    update,
)
from sqlalchemy.exc import IntegrityError

from runtime.store import Database, now_ms
from runtime.store.dialect import (
    insert_ignore,
    lock_rows,
    one_of,
    settled_below,
    transaction_id,
    upsert,
)
from runtime.store.statements import hot
from tests.conftest import FailAfter
from tests.contract.store_support import Gate, StillClock

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


async def test_the_store_s_time_moves_with_the_test_clock(
    database: Database, clock: StillClock
) -> None:
    before = await database.write(now_ms, name="u")
    clock.advance(3_600_000)
    after = await database.read(now_ms)
    assert 3_600_000 <= after - before < 3_660_000
    if database.dialect == "sqlite":
        assert after == clock.now_ms()
    else:
        assert before != clock.now_ms() - 3_600_000, "a replica's own clock was asked"


async def test_insert_ignore_keeps_the_first_row_and_upsert_the_last(database: Database) -> None:
    def unit(conn: Connection) -> tuple[int, int, str | None]:
        ignore = insert_ignore(conn, notes, key=["id"])
        made = conn.execute(ignore, {"id": "a", "body": "first"}).rowcount
        met = conn.execute(ignore, {"id": "a", "body": "second"}).rowcount
        kept_body = conn.execute(select(notes.c.body)).scalar_one()
        assert kept_body == "first"
        put = upsert(conn, notes, key=["id"], change=["body"])
        conn.execute(put, {"id": "a", "body": "third"})
        return made, met, conn.execute(select(notes.c.body)).scalar_one()

    assert await database.write(unit, name="u") == (1, 0, "third")


async def test_a_prepared_statement_does_what_core_does(database: Database) -> None:
    put = hot(insert(notes))
    change = hot(update(notes).where(notes.c.id == bindparam("note")).values(body="changed"))
    find = hot(select(notes).where(notes.c.id == bindparam("note")))

    def unit(conn: Connection) -> None:
        assert put.change(conn, id="a", body="x", seq=2**40) == 1
        assert change.change(conn, note="a") == 1
        assert change.change(conn, note="b") == 0
        row = find.first(conn, note="a")
        assert row is not None
        assert (row.id, row.body, row.seq) == ("a", "changed", 2**40)
        assert find.first(conn, note="b") is None
        with pytest.raises(IntegrityError), conn.begin_nested():
            put.change(conn, id="a", body="again", seq=0)

    await database.write(unit, name="u")
    assert await database.read(lambda conn: len(find.rows(conn, note="a"))) == 1


async def test_a_prepared_statement_takes_many_rows_and_a_list(database: Database) -> None:
    put = hot(insert(notes))
    some = hot(select(notes.c.id).where(one_of(database.dialect, notes.c.id, "wanted")))

    def unit(conn: Connection) -> list[str]:
        put.each(conn, [{"id": name, "body": name, "seq": 1} for name in "abc"])
        assert some.rows(conn, wanted=[]) == []
        return sorted(row.id for row in some.rows(conn, wanted=["a", "c", "z"]))

    assert await database.write(unit, name="u") == ["a", "c"]


async def test_locks_are_plain_selects(database: Database) -> None:
    def unit(conn: Connection) -> list[str]:
        add("a")(conn)
        return list(conn.execute(lock_rows(select(notes.c.id))).scalars())

    assert await database.write(unit, name="u") == ["a"]


def stamp(conn: Connection) -> int:
    return conn.execute(select(transaction_id(conn))).scalar_one()


async def test_a_feed_stops_before_the_transaction_that_still_runs(
    database: Database, gate: Gate, fail_after: FailAfter
) -> None:
    stamps: list[int] = []

    def slow(conn: Connection) -> None:
        stamps.append(stamp(conn))
        gate.hold(conn)

    async with fail_after():
        caller = asyncio.create_task(database.write(slow, name="u"))
        await gate.entered()
        if database.dialect == "postgresql":
            later = await database.write(stamp, name="u")
            assert stamps[0] < later
            assert await database.read(settled_below) <= stamps[0]
        await gate.open()
        await caller
        # Somebody else's transaction on the same server may hold the mark for a moment.
        while await database.read(settled_below) <= stamps[0]:
            pass
    assert await database.read(settled_below) > stamps[0]
