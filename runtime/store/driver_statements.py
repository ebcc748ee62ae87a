"""Statements handed straight to asyncpg, on the connection that Core holds for the unit.

The same transaction, the same timeouts and the same errors as through Core: what asyncpg raises
goes to Core's own handling, which wraps it without the parameters (they hold what people said),
tells the engine's listeners, and drops a connection that has died.

It refuses to know what a statement means, and to begin or end a transaction on its own account:
where Core has not begun one it is asked to.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn, TypeVar

from sqlalchemy import Connection
from sqlalchemy.util import await_only

T = TypeVar("T")


def fetch(conn: Connection, statement: str, values: Sequence[object]) -> Sequence[Any]:
    """The rows as the driver gives them."""
    return _run(conn, statement, lambda raw: raw.fetch(statement, *values))


def change(conn: Connection, statement: str, values: Sequence[object]) -> int:
    """How many rows the statement touched."""
    status = _run(conn, statement, lambda raw: raw.execute(statement, *values))
    # "INSERT 0 1", "UPDATE 3", "DELETE 0" (postgresql.org/docs, CommandComplete).
    return int(status.rpartition(" ")[2])


def change_each(conn: Connection, statement: str, many: Sequence[Sequence[object]]) -> None:
    """Run the statement for each of `many`, all in one exchange with the server."""
    _run(conn, statement, lambda raw: raw.executemany(statement, many))


def column_types(conn: Connection, statement: str) -> list[int]:
    """The server's type numbers of the columns that the statement gives."""
    prepared = _run(conn, statement, lambda raw: raw.prepare(statement))
    return [attribute.type.oid for attribute in prepared.get_attributes()]


def _run(conn: Connection, statement: str, send: Callable[[Any], Awaitable[T]]) -> T:
    if not conn.in_transaction():
        conn.begin()
    adapter: Any = conn.connection.dbapi_connection
    try:
        if adapter._transaction is None:
            # Core's adapter says BEGIN in front of the first statement that it sees itself.
            await_only(adapter._start_transaction())
        return await_only(send(adapter._connection))
    except BaseException as error:  # noqa: BLE001 - it is raised again, as Core would raise it
        _fail(conn, adapter, statement, error)


def _fail(conn: Connection, adapter: Any, statement: str, error: BaseException) -> NoReturn:
    """Raise what Core would raise for the driver's `error`, and do what it would do."""
    if isinstance(error, Exception):
        try:
            adapter._handle_exception(error)
        except Exception as translated:  # noqa: BLE001 - raised again below
            error = translated
    dialect: Any = conn.dialect
    # Core wraps only the driver's errors; a timeout or a cancellation it passes on as it came.
    known = isinstance(error, dialect.loaded_dbapi.Error)
    failing: Any = conn
    try:
        raise error
    except BaseException as raised:
        failing._handle_dbapi_exception(raised, statement if known else None, (), None, None)
        raise
