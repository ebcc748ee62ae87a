"""What only one of the databases understands, both halves side by side.

Everything else in the store is written once, in Core. Nothing here decides anything.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeVarTuple

from sqlalchemy import (
    ARRAY,
    JSON,
    URL,
    BigInteger,
    ColumnElement,
    Connection,
    Insert,
    Select,
    Table,
    Text,
    any_,
    bindparam,
    cast,
    func,
    literal_column,
    make_url,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError

from runtime.domain.errors import InvalidInput
from runtime.store.database import STORE_TIME, DialectName
from runtime.store.postgres_address import read_parameters

Ts = TypeVarTuple("Ts")

NO_BOUND: Final = 2**63 - 1
"""In front of every number that the database can hold."""
_RULE: Final = "must be sqlite:///path/to/file or postgresql://user@host/database"

_TRANSACTION_ID = cast(cast(func.pg_current_xact_id(), Text), BigInteger)
_OLDEST_RUNNING = select(
    cast(cast(func.pg_snapshot_xmin(func.pg_current_snapshot()), Text), BigInteger)
)
_ADVISORY_LOCK = select(func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger())))


def database_url(url: str) -> URL:
    """The URL with the driver that Gatehouse uses: sqlite+aiosqlite or postgresql+asyncpg.

    `postgres://`, `sslmode` and a URL without a driver are understood. Raises InvalidInput, which
    never repeats the URL: it may hold a password. A parameter that cannot be followed is named.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidInput("database.url", _RULE) from None
    backend = parsed.drivername.partition("+")[0]
    if backend == "sqlite":
        name = parsed.database or ""
        if name in ("", ":memory:") or name.startswith("file:"):
            raise InvalidInput("database.url", "must name a file: sqlite:///path/to/file")
        return parsed.set(drivername="sqlite+aiosqlite")
    if backend in ("postgresql", "postgres"):
        query = dict(parsed.query)
        if "sslmode" in query:
            query["ssl"] = query.pop("sslmode")
        read_parameters(parameters_of(parsed))
        return parsed.set(drivername="postgresql+asyncpg", query=query)
    raise InvalidInput("database.url", _RULE)


def parameters_of(url: URL) -> list[tuple[str, str]]:
    """The parameters of a URL in their order, one that is given twice as two."""
    return [
        (name, value)
        for name, given in url.query.items()
        for value in ((given,) if isinstance(given, str) else given)
    ]


def sqlite_path(url: str | URL) -> Path | None:
    """The file of a SQLite URL, absolute; None for PostgreSQL."""
    parsed = database_url(url) if isinstance(url, str) else url
    if not parsed.drivername.startswith("sqlite") or parsed.database is None:
        return None
    return Path(parsed.database).resolve()


def dialect_name(on: Connection | DialectName) -> DialectName:
    """Which of the two `on` is."""
    name = on if isinstance(on, str) else on.dialect.name
    return "sqlite" if name == "sqlite" else "postgresql"


def insert_ignore(on: Connection | DialectName, table: Table, *, key: Sequence[str] = ()) -> Insert:
    """INSERT that leaves the present row alone; ``rowcount`` is 0 then.

    `key` names the columns of the constraint that may be met; empty: any.
    """
    elements = [table.c[name] for name in key] or None
    if dialect_name(on) == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing(index_elements=elements)
    # Lazy: what only PostgreSQL understands takes 2 MB.
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table).on_conflict_do_nothing(index_elements=elements)


def upsert(
    on: Connection | DialectName, table: Table, *, key: Sequence[str], change: Sequence[str]
) -> Insert:
    """INSERT that sets the columns `change` of the present row to the new values instead."""
    elements = [table.c[name] for name in key]
    if dialect_name(on) == "sqlite":
        lite = sqlite.insert(table)
        return lite.on_conflict_do_update(
            index_elements=elements, set_={name: lite.excluded[name] for name in change}
        )
    # Lazy: as above.
    from sqlalchemy.dialects import postgresql

    post = postgresql.insert(table)
    return post.on_conflict_do_update(
        index_elements=elements, set_={name: post.excluded[name] for name in change}
    )


def lock_rows(
    statement: Select[*Ts], *, skip_locked: bool = True, of: Table | Sequence[Table] | None = None
) -> Select[*Ts]:
    """Lock the rows until the unit ends; `skip_locked` passes over those that others hold.

    PostgreSQL: FOR NO KEY UPDATE, which excludes other lockers and writers, but not the foreign
    key check of a row that refers to the locked one. `of` narrows a join to one table, or to
    several, whose rows are locked in this order. After a wait the server reads the locked rows
    anew, and only these: a row that is joined and not locked is what it was before the wait.
    SQLite renders nothing: its one writer needs no locks.
    """
    return statement.with_for_update(skip_locked=skip_locked, key_share=True, of=of)


def timed(on: DialectName, locking: Select[*Ts]) -> Select[Any]:
    """The rows that `locking` locks, each with the store's time `at_ms` once its lock was had.

    PostgreSQL works out what a locking SELECT gives before it waits for the locks, so the time is
    read around it; a SELECT that locks is never folded into the one around it.
    """
    time = STORE_TIME[on].label("at_ms")
    if on == "sqlite":
        return locking.add_columns(time)
    held = locking.subquery("held")
    return select(*held.c, time)


def one_of(on: DialectName, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Whether `column` is in the list that is given as the one parameter `name`."""
    if on == "sqlite":
        given = func.json_each(bindparam(name, type_=JSON())).table_valued("value")
        return column.in_(select(given.c.value))
    return column == any_(bindparam(name, type_=ARRAY(Text())))


def by_bytes(on: DialectName, column: ColumnElement[str]) -> ColumnElement[str]:
    """To order by `column` as Python does, whatever the collation of the database."""
    return column if on == "sqlite" else column.collate("C")


def advisory_lock(conn: Connection, key: int) -> None:
    """Hold the lock `key` of the database until the unit ends. SQLite: nothing, see `lock_rows`."""
    if dialect_name(conn) == "postgresql":
        conn.execute(_ADVISORY_LOCK, {"key": key})


def transaction_id(on: Connection | DialectName) -> ColumnElement[int]:
    """The number to store with an event, for `settled_below`: a part of its INSERT. SQLite: 0."""
    return literal_column("0", BigInteger()) if dialect_name(on) == "sqlite" else _TRANSACTION_ID


def settled_below(conn: Connection) -> int:
    """Every transaction with a smaller id has ended, as seen by this unit.

    A feed that stops there skips no late commit. SQLite commits in order, so nothing is held
    back: the greatest integer.
    """
    if dialect_name(conn) == "sqlite":
        return NO_BOUND
    return int(conn.execute(_OLDEST_RUNNING).scalar_one())
