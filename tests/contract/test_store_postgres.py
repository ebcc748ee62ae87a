"""What only PostgreSQL does: lost connections, retries, and its way of failing a transaction."""

import asyncio
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest
from sqlalchemy import (
    Connection,
    Text,
    bindparam,
    column,
    func,
    insert,
    make_url,
    select,
    table,
    text,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from adapters.system.clock import SystemClock
from runtime.store import CommitUnknown, Database, StoreFull, StoreUnavailable, open_database
from runtime.store.statements import hot
from tests.conftest import FailAfter
from tests.contract.bus.cable import Cable
from tests.contract.store_support import PostgresServer, StillClock, postgres_server

_ROW = text("SELECT n FROM pair WHERE n = :n FOR UPDATE")
_WAITING = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_DIE = text("SELECT pg_terminate_backend(pg_backend_pid())")
_DIE_AT_COMMIT = (
    "CREATE TABLE doomed (id text)",
    "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
    "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON doomed DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION die()",
)


@pytest.fixture
def dialect() -> str:
    return "postgresql"


@pytest.fixture
def server(database_url: str) -> PostgresServer:
    return postgres_server()


def one(conn: Connection) -> int:
    return int(conn.execute(text("SELECT 1")).scalar_one())


def fail(conn: Connection, state: str) -> None:
    conn.execute(text(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$"))


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_unit_that_lost_to_another_runs_again(database: Database, state: str) -> None:
    runs: list[int] = []

    def unit(conn: Connection) -> str:
        runs.append(1)
        if len(runs) < 6:
            fail(conn, state)
        return "done"

    assert await database.write(unit, name="u") == "done"
    assert len(runs) == 6


async def test_a_unit_that_always_loses_is_given_up(database: Database) -> None:
    runs: list[int] = []

    def unit(conn: Connection) -> None:
        runs.append(1)
        fail(conn, "40001")

    with pytest.raises(StoreUnavailable, match="again and again"):
        await database.write(unit, name="u")
    assert len(runs) == 6


async def test_a_real_deadlock_is_settled(
    database: Database, database_url: str, fail_after: FailAfter
) -> None:
    def schema(conn: Connection) -> None:
        conn.execute(text("CREATE TABLE pair AS SELECT n FROM generate_series(1, 2) n"))

    runs: list[int] = []

    def crossing(first: int, second: int) -> Callable[[Connection], int]:
        def unit(conn: Connection) -> int:
            runs.append(first)
            conn.execute(text("SET LOCAL deadlock_timeout = '10ms'"))
            conn.execute(_ROW, {"n": first})
            # Opens for both once each has its first row.
            conn.execute(text("SELECT pg_advisory_xact_lock_shared(7)"))
            return int(conn.execute(_ROW, {"n": second}).scalar_one())

        return unit

    await database.write(schema, name="schema")
    barrier = await asyncpg.connect(database_url)
    try:
        await barrier.execute("SELECT pg_advisory_lock(7)")
        async with fail_after(), asyncio.TaskGroup() as group:
            first = group.create_task(database.write(crossing(1, 2), name="u"))
            second = group.create_task(database.write(crossing(2, 1), name="u"))
            while await barrier.fetchval(_WAITING) < 2:
                await asyncio.wait({first, second}, timeout=0)
            await barrier.execute("SELECT pg_advisory_unlock(7)")
    finally:
        await barrier.close()
    assert (first.result(), second.result()) == (2, 1)
    assert len(runs) == 3, "one of them was chosen to lose, and ran again"


async def test_a_connection_that_dies_in_a_unit_is_unavailable(database: Database) -> None:
    runs: list[int] = []

    def unit(conn: Connection) -> None:
        runs.append(1)
        conn.execute(_DIE)

    with pytest.raises(StoreUnavailable) as caught:
        await database.write(unit, name="u")
    assert not isinstance(caught.value, CommitUnknown)
    assert len(runs) == 2, "a dead pooled connection deserves one more try, and no more"
    assert await database.write(one, name="u") == 1


async def test_a_pool_of_dead_connections_is_replaced_unnoticed(
    database: Database, database_url: str, server: PostgresServer
) -> None:
    name = database_url.rpartition("/")[2]
    await server.run(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    )
    assert await database.write(one, name="u") == 1


async def test_a_connection_that_dies_inside_commit_leaves_the_outcome_open(
    database: Database,
) -> None:
    def schema(conn: Connection) -> None:
        for statement in _DIE_AT_COMMIT:
            conn.execute(text(statement))

    await database.write(schema, name="schema")
    with pytest.raises(CommitUnknown, match="while doomed was committed"):
        await database.write(
            lambda conn: conn.execute(text("INSERT INTO doomed VALUES ('a')")).rowcount,
            name="doomed",
        )


async def test_a_unit_that_hides_an_error_is_not_reported_as_committed(
    database: Database,
) -> None:
    def unit(conn: Connection) -> None:
        conn.execute(text("CREATE TABLE half (id text)"))
        with pytest.raises(DBAPIError):
            fail(conn, "23505")

    with pytest.raises(DBAPIError, match="aborted"):
        await database.write(unit, name="u")
    half = text("SELECT to_regclass('half')")
    assert await database.read(lambda conn: conn.execute(half).scalar()) is None


def unique(conn: Connection) -> None:
    conn.execute(text("CREATE TABLE said (id text PRIMARY KEY, words text)"))


_SAID = table("said", column("id", Text), column("words", Text))
_SAY = hot(insert(_SAID).values(id=bindparam("id"), words=bindparam("words")))


async def test_a_prepared_statement_s_error_keeps_what_was_said_to_itself(
    database: Database,
) -> None:
    await database.write(unique, name="schema")

    def unit(conn: Connection) -> None:
        for _ in range(2):
            _SAY.change(conn, id="a", words="between us")

    with pytest.raises(IntegrityError) as caught:
        await database.write(unit, name="u")
    assert "between us" not in str(caught.value)


async def test_a_unit_that_hides_a_prepared_statement_s_error_is_not_committed(
    database: Database,
) -> None:
    await database.write(unique, name="schema")

    def unit(conn: Connection) -> None:
        _SAY.change(conn, id="a", words="x")
        with pytest.raises(IntegrityError):
            _SAY.change(conn, id="a", words="y")

    with pytest.raises(DBAPIError, match="aborted"):
        await database.write(unit, name="u")
    found = text("SELECT count(*) FROM said")
    assert await database.read(lambda conn: conn.execute(found).scalar_one()) == 0


async def test_a_connection_that_dies_in_a_prepared_statement_is_tried_once_more(
    database: Database,
) -> None:
    die = hot(select(func.pg_terminate_backend(func.pg_backend_pid())))
    runs: list[int] = []

    def unit(conn: Connection) -> None:
        runs.append(1)
        die.rows(conn)

    with pytest.raises(StoreUnavailable):
        await database.write(unit, name="u")
    assert len(runs) == 2
    assert await database.write(one, name="u") == 1


async def test_a_read_by_a_prepared_statement_cannot_write(database: Database) -> None:
    await database.write(unique, name="schema")
    with pytest.raises(DBAPIError, match="read-only"):
        await database.read(lambda conn: _SAY.change(conn, id="a", words="x"))


_TROUBLES = [
    ("08P01", "cannot be reached or is busy"),
    ("0A000", "is in trouble"),
    ("25P01", "is in trouble"),
    ("28000", "refused the connection"),
    ("3D000", "refused the connection"),
    ("53200", "cannot be reached or is busy"),
    ("53400", "cannot be reached or is busy"),
    ("55P03", "cannot be reached or is busy"),
    ("57014", "cannot be reached or is busy"),
    ("57P05", "cannot be reached or is busy"),
    ("58030", "is in trouble"),
    ("F0001", "is in trouble"),
    ("XX000", "is in trouble"),
]


@pytest.mark.requirement("MSG-1")
@pytest.mark.parametrize(("state", "said"), _TROUBLES)
async def test_what_fails_in_the_server_is_trouble_of_the_store(
    database: Database, state: str, said: str
) -> None:
    with pytest.raises(StoreUnavailable, match=said):
        await database.write(lambda conn: fail(conn, state), name="u")


@pytest.mark.requirement("MSG-1")
async def test_a_server_whose_disk_is_full_says_so(database: Database) -> None:
    with pytest.raises(StoreFull, match=r"disk of .* is full.*Free space"):
        await database.write(lambda conn: fail(conn, "53100"), name="u")
    assert await database.write(one, name="u") == 1


@pytest.mark.parametrize("state", ["22003", "23505", "42P01", "42501"])
async def test_what_is_wrong_with_a_statement_is_no_trouble_of_the_store(
    database: Database, state: str
) -> None:
    with pytest.raises(DBAPIError) as caught:
        await database.write(lambda conn: fail(conn, state), name="u")
    assert getattr(caught.value.orig, "sqlstate", None) == state


async def read_only(server: PostgresServer, database_url: str, state: str) -> None:
    """Set how the sessions start that are opened from now on."""
    name = database_url.rpartition("/")[2]
    await server.run(f"ALTER DATABASE {name} SET default_transaction_read_only = {state}")


@pytest.mark.requirement("MSG-1")
async def test_a_server_that_takes_no_writes_says_so_and_is_tried_on_a_new_connection(
    database: Database, database_url: str, server: PostgresServer
) -> None:
    await database.write(unique, name="schema")
    await read_only(server, database_url, "on")
    await server.run(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{database_url.rpartition('/')[2]}'"
    )
    say = text("INSERT INTO said VALUES (:id, 'x')")
    for number in range(2):
        with pytest.raises(StoreUnavailable, match=r"takes no writes, it is read-only.*writable"):
            await database.write(lambda conn: conn.execute(say, {"id": "a"}), name="u")
        with pytest.raises(StoreUnavailable, match="takes no writes, it is read-only"):
            await database.write(lambda conn: _SAY.change(conn, id="a", words="x"), name="u")
        assert await database.read(one) == 1, number
    await read_only(server, database_url, "off")
    assert await database.write(lambda conn: _SAY.change(conn, id="a", words="x"), name="u") == 1


async def test_a_server_that_is_not_there_is_named_without_the_password(clock: StillClock) -> None:
    database = open_database("postgresql://who:secret@127.0.0.1:1/gone", clock=clock)
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/gone") as caught:
        await database.start()
    assert "secret" not in str(caught.value)
    await database.close()


@pytest.mark.requirement("MSG-1")
async def test_a_line_that_breaks_at_any_moment_of_a_start_is_trouble_of_the_store(
    database_url: str, clock: StillClock
) -> None:
    """SQLAlchemy asks an engine's first connection for this and that, and hides what fails."""
    cable = Cable(database_url)
    await cable.start()
    started: list[bool] = []
    while not any(started):
        cable.answers = len(started)
        database = open_database(cable.url, clock=clock)
        try:
            await database.start()
            started.append(True)
        except StoreUnavailable:
            started.append(False)
        await database.close()
        assert len(started) < 50
    assert len(started) > 5, "the line was cut in between"
    await cable.close()


async def test_a_database_that_is_not_utf8_is_refused(
    server: PostgresServer, clock: StillClock, latin: str
) -> None:
    database = open_database(server.url(latin), clock=clock)
    with pytest.raises(StoreUnavailable, match="ENCODING 'UTF8'"):
        await database.start()
    await database.close()


@pytest.fixture
async def latin(server: PostgresServer) -> AsyncIterator[str]:
    name = await server.create(encoding="LATIN1")
    yield name
    await server.drop(name)


@pytest.fixture
async def crowded(server: PostgresServer, database_url: str) -> AsyncIterator[str]:
    """The address for a role that may have two connections."""
    address = make_url(database_url)
    role = str(address.database)
    await server.run(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 2")
    yield address.set(username=role).render_as_string(hide_password=False)
    await server.run(f"DROP ROLE {role}")


@pytest.mark.requirement("MSG-1", "SCALE-5")
async def test_units_wait_for_each_other_where_the_server_gives_few_connections(
    crowded: str,
) -> None:
    """One is for urgent units, one for all others: who asks for a third is refused and waits."""
    database = open_database(crowded, clock=SystemClock())
    await database.start()
    try:
        async with asyncio.TaskGroup() as group:
            units = [group.create_task(database.write(one, name="unit")) for _ in range(20)]
            reads = [group.create_task(database.read(one)) for _ in range(20)]
    finally:
        await database.close()
    assert [task.result() for task in (*units, *reads)] == [1] * 40
