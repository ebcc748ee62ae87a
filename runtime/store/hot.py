"""Statements of the hot path, compiled once and run without Core's work for each execution.

On SQLite's writer a statement of one row costs more in Core (cache keys, contexts, cursor results)
than in SQLite. `hot` compiles the same Core statement once, keeps its bind and result processors,
and hands the text to the driver. Measured on CPython 3.11, two cores, statements of one row:
INSERT 9.5 us through Core and 3.8 here, UPDATE 8.7 and 2.2, SELECT 10.6 and 3.8; 64 producers of
units with three such statements get 46,000 units/s instead of 19,000. On PostgreSQL the round trip
costs far more than Core does, and readers are off the hot path: both use Core as it is.

It refuses what needs Core for each execution: lists in IN, literal parameters, Python-side column
defaults. Use `conn.execute` for those.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVarTuple, overload

from sqlalchemy import Connection, Row
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import TypedReturnsRows

from runtime.store.faults import as_core_error

Ts = TypeVarTuple("Ts")

_Process = Callable[[Any], Any]


class _Compiled:
    """A statement's text for SQLite, and how its values go in and come out."""

    def __init__(self, compiled: SQLCompiler, dialect: Dialect) -> None:
        if compiled.post_compile_params or compiled.literal_execute_params:
            raise TypeError(f"needs Core for each execution (a list or a literal): {compiled}")
        if compiled.insert_prefetch or compiled.update_prefetch:
            raise TypeError(f"has a default that Core computes for each execution: {compiled}")
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
        processors = [
            column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns
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


class Hot(Generic[*Ts]):
    """A prepared statement. Every call names all of its parameters, and always the same ones."""

    def __init__(self, statement: TypedReturnsRows[*Ts] | UpdateBase) -> None:
        self._statement = statement
        self._compiled: _Compiled | None = None

    def rows(self, conn: Connection, **params: object) -> Sequence[Row[*Ts]]:
        """The rows of a SELECT or of RETURNING. Raises what `conn.execute` would raise."""
        if conn.dialect.driver != "pysqlite":
            result = conn.execute(self._statement, params)
            return result.all()
        compiled, cursor = self._execute(conn, params)
        shape, processors = compiled.shape, compiled.processors
        keys = shape._key_to_index
        return [Row(shape, processors, keys, data) for data in cursor.fetchall()]

    def first(self, conn: Connection, **params: object) -> Row[*Ts] | None:
        """The first row, or None."""
        rows = self.rows(conn, **params)
        return rows[0] if rows else None

    def change(self, conn: Connection, **params: object) -> int:
        """How many rows an INSERT, UPDATE or DELETE touched. Raises as `rows` does."""
        if conn.dialect.driver != "pysqlite":
            return conn.execute(self._statement, params).rowcount
        compiled, cursor = self._execute(conn, params)
        if compiled.returns_rows:
            raise TypeError(f"returns rows, which only `rows` reads: {compiled.text}")
        return cursor.rowcount

    def _execute(
        self, conn: Connection, params: dict[str, object]
    ) -> tuple[_Compiled, sqlite3.Cursor]:
        compiled = self._compiled or self._compile(conn, params)
        raw: Any = conn.connection.dbapi_connection
        values = compiled.values(params)
        try:
            return compiled, raw.execute(compiled.text, values)
        except sqlite3.Error as error:
            raise as_core_error(error, compiled.text, values) from error

    def _compile(self, conn: Connection, params: dict[str, object]) -> _Compiled:
        keys = list(params) if isinstance(self._statement, UpdateBase) else None
        compiled = self._statement.compile(dialect=conn.dialect, column_keys=keys)
        if not isinstance(compiled, SQLCompiler):
            raise TypeError(f"not a statement of rows: {compiled}")
        self._compiled = _Compiled(compiled, conn.dialect)
        return self._compiled


@overload
def hot(statement: TypedReturnsRows[*Ts]) -> Hot[*Ts]: ...
@overload
def hot(statement: UpdateBase) -> Hot[()]: ...
def hot(statement: TypedReturnsRows[*Ts] | UpdateBase) -> Hot[*Ts] | Hot[()]:
    """Prepare `statement`, at import time or once; it is compiled at its first use."""
    return Hot(statement)
