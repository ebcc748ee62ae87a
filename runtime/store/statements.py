"""Statements of the hot path, compiled once and run without Core's work for each execution.

A statement of one row costs more in Core (cache keys, contexts, cursor results) than in the driver.
`hot` compiles the same Core statement once, keeps its bind and result processors, and hands the
text to the driver. Measured on CPython 3.11, two cores, statements of one row: on SQLite INSERT
9.5 us through Core and 3.8 here, UPDATE 8.7 and 2.2, SELECT 10.6 and 3.8; on PostgreSQL SELECT
80 us of the processor through Core over asyncpg and 37 here.

It refuses what needs Core for each execution: lists in IN (`dialect.one_of` takes a list as one
parameter), literal parameters, Python-side column defaults. Use `conn.execute` for those.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVarTuple, overload

from sqlalchemy import Connection, Insert, Row, Table
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import TypedReturnsRows

from runtime.store import driver_statements
from runtime.store.database import DialectName
from runtime.store.dialect import dialect_name, insert_ignore
from runtime.store.faults import as_core_error

Ts = TypeVarTuple("Ts")

_Process = Callable[[Any], Any]


class _Compiled:
    """A statement's text for one database, and how its values go in and come out.

    `types` are the driver's own of the result's columns, where its processors depend on them.
    """

    def __init__(
        self, compiled: SQLCompiler, dialect: Dialect, types: Sequence[int] | None = None
    ) -> None:
        self.text = str(compiled)
        self._names = tuple(compiled.positiontup or ())
        self._fixed = {
            name: bind.value for bind, name in compiled.bind_names.items() if not bind.required
        }
        self._given = frozenset(self._names) - frozenset(self._fixed)
        self._bind: dict[str, _Process] = {
            name: process
            for name, process in compiled._bind_processors.items()
            if callable(process)
        }
        columns = compiled._result_columns
        unknown: Sequence[int | None] = [None] * len(columns)
        processors = [
            column.type.dialect_impl(dialect).result_processor(dialect, known)
            for column, known in zip(columns, types or unknown, strict=True)
        ]
        self.returns_rows = bool(columns)
        self.processors = processors if any(processors) else None
        self.shape = SimpleResultMetaData([column.keyname for column in columns])

    def values(self, given: dict[str, object]) -> tuple[object, ...]:
        if given.keys() != self._given:
            wrong = sorted(given.keys() ^ self._given)
            raise TypeError(f"missing or unknown parameters {wrong} of: {self.text}")
        values = {**self._fixed, **given} if self._fixed else given
        for name, process in self._bind.items():
            values[name] = process(values[name])
        return tuple([values[name] for name in self._names])

    def read(self, found: Sequence[Any]) -> list[Row[Any]]:
        shape, processors = self.shape, self.processors
        keys = shape._key_to_index
        return [Row(shape, processors, keys, data) for data in found]


class Hot(Generic[*Ts]):
    """A prepared statement. Every call names all of its parameters, and always the same ones."""

    def __init__(self, statement: TypedReturnsRows[*Ts] | UpdateBase) -> None:
        # Core would ask for the number of a new row; whoever wants it says so by RETURNING.
        self._statement = statement.inline() if isinstance(statement, Insert) else statement
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, conn: Connection, **params: object) -> Sequence[Row[*Ts]]:
        """The rows of a SELECT or of RETURNING. Raises what `conn.execute` would raise."""
        driver = conn.dialect.driver
        compiled = self._compiled.get(driver) or self._compile(conn, params)
        values = compiled.values(params)
        if driver == "asyncpg":
            return compiled.read(driver_statements.fetch(conn, compiled.text, values))
        return compiled.read(_on_sqlite(conn, compiled.text, values).fetchall())

    def first(self, conn: Connection, **params: object) -> Row[*Ts] | None:
        """The first row, or None."""
        rows = self.rows(conn, **params)
        return rows[0] if rows else None

    def change(self, conn: Connection, **params: object) -> int:
        """How many rows an INSERT, UPDATE or DELETE touched. Raises as `rows` does."""
        driver = conn.dialect.driver
        compiled = self._compiled.get(driver) or self._compile(conn, params)
        if compiled.returns_rows:
            raise TypeError(f"returns rows, which only `rows` reads: {compiled.text}")
        values = compiled.values(params)
        if driver == "asyncpg":
            return driver_statements.change(conn, compiled.text, values)
        return _on_sqlite(conn, compiled.text, values).rowcount

    def each(self, conn: Connection, many: Sequence[Mapping[str, object]]) -> None:
        """Change rows once for each of `many`; over a network they travel together."""
        if conn.dialect.driver != "asyncpg" or len(many) < 2:
            for params in many:
                self.change(conn, **params)
            return
        compiled = self._compiled.get("asyncpg") or self._compile(conn, many[0])
        driver_statements.change_each(
            conn, compiled.text, [compiled.values(dict(one)) for one in many]
        )

    def _compile(self, conn: Connection, params: Mapping[str, object]) -> _Compiled:
        keys = list(params) if isinstance(self._statement, UpdateBase) else None
        compiled = self._statement.compile(dialect=conn.dialect, column_keys=keys)
        if not isinstance(compiled, SQLCompiler):
            raise TypeError(f"not a statement of rows: {compiled}")
        if compiled.post_compile_params or compiled.literal_execute_params:
            raise TypeError(f"needs Core for each execution (a list or a literal): {compiled}")
        if compiled.insert_prefetch or compiled.update_prefetch:
            raise TypeError(f"has a default that Core computes for each execution: {compiled}")
        types = None
        if conn.dialect.driver == "asyncpg" and compiled._result_columns:
            types = driver_statements.column_types(conn, str(compiled))
        found = self._compiled[conn.dialect.driver] = _Compiled(compiled, conn.dialect, types)
        return found


def _on_sqlite(conn: Connection, statement: str, values: tuple[object, ...]) -> sqlite3.Cursor:
    raw: Any = conn.connection.dbapi_connection
    try:
        cursor: sqlite3.Cursor = raw.execute(statement, values)
    except sqlite3.Error as error:
        raise as_core_error(error, statement, values) from error
    return cursor


@overload
def hot(statement: TypedReturnsRows[*Ts]) -> Hot[*Ts]: ...
@overload
def hot(statement: UpdateBase) -> Hot[()]: ...
def hot(statement: TypedReturnsRows[*Ts] | UpdateBase) -> Hot[*Ts] | Hot[()]:
    """Prepare `statement`, at import time or once; it is compiled at its first use."""
    return Hot(statement)


def insert_new(conn: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row; False, with nothing changed, when a unique key of it is taken."""
    return _insert_new(dialect_name(conn), table).change(conn, **values) == 1


@cache
def _insert_new(dialect: DialectName, table: Table) -> Hot[()]:
    return hot(insert_ignore(dialect, table))
