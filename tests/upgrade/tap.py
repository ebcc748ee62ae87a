"""Listens to every statement that reaches a driver, by whichever way it came.

Core's statements are told by SQLAlchemy. Those that are handed to the driver directly are heard on
SQLite at the writer's connection, and on PostgreSQL at asyncpg's. Its own log of queries would tell
them too late to be in order.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from asyncpg.connection import Connection as Asyncpg
from sqlalchemy import Engine, event

from runtime.store.writer import GuardedConnection

_SPACES: Final = re.compile(r"\s+")
_OURS: Final = re.compile(r"(WITH|SELECT|INSERT|UPDATE|DELETE)\b")
_WRITES: Final = re.compile(
    r"(INSERT|UPDATE|DELETE)\b|WITH\b.*\b(INSERT INTO|UPDATE|DELETE FROM)\b"
)
_FOREIGN: Final = re.compile(r"\b(pg_catalog|sqlite_master|alembic_version)\b|pragma_|^SELECT \$1$")
_BEGIN: Final = re.compile(r"(BEGIN|START TRANSACTION)\b", re.IGNORECASE)
_END: Final = re.compile(r"(COMMIT|ROLLBACK)\b(?! TO)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    """One statement that was committed, with what it was given."""

    statement: str
    values: tuple[Any, ...]


@dataclass
class Heard:
    """`statements` is every text that was said, `committed` what changed rows, in order."""

    statements: set[str] = field(default_factory=set)
    committed: list[Step] = field(default_factory=list)
    _open: dict[int, list[Step]] = field(default_factory=dict)

    def say(self, connection: object, statement: str, values: Any) -> None:
        """A statement on a connection; the end of a transaction decides about its changes."""
        text = normal(statement)
        steps = self._open.setdefault(id(connection), [])
        if _END.match(text):
            self.committed += steps if text.upper().startswith("COMMIT") else ()
            steps.clear()
        elif _BEGIN.match(text):
            # A connection that was cut off said no end, and another one may have its id by now.
            steps.clear()
        elif text.startswith("SAVEPOINT"):
            steps.append(Step(text, ()))
        elif text.startswith("ROLLBACK TO"):
            while steps and not steps.pop().statement.startswith("SAVEPOINT"):
                pass
        elif _OURS.match(text) and not _FOREIGN.search(text):
            self.statements.add(text)
            if _WRITES.match(text):
                rows = values if isinstance(values, list) else [values]
                steps += [Step(text, tuple(row or ())) for row in rows]

    def changes(self) -> list[Step]:
        """What was committed, without the marks of savepoints."""
        return [step for step in self.committed if _WRITES.match(step.statement)]


def normal(statement: str) -> str:
    """One line, so that a text is the same however it was wrapped."""
    return _SPACES.sub(" ", statement).strip().rstrip(";")


@contextmanager
def tapped() -> Iterator[Heard]:
    """Everything that is said to any database in the block."""
    heard = Heard()

    def core(conn: Any, _cursor: Any, statement: str, values: Any, _context: Any, _m: Any) -> None:
        raw = conn.connection.dbapi_connection
        heard.say(getattr(raw, "driver_connection", raw), statement, values)

    event.listen(Engine, "before_cursor_execute", core)
    try:
        with _writer_tapped(heard), _server_tapped(heard):
            yield heard
    finally:
        event.remove(Engine, "before_cursor_execute", core)


@contextmanager
def _writer_tapped(heard: Heard) -> Iterator[None]:
    """The writer's own statements: units, savepoints, and `runtime.store.statements.hot`."""

    def execute(self: GuardedConnection, statement: str, values: Any = ()) -> Any:
        result = super(GuardedConnection, self).execute(statement, values)
        heard.say(self, statement, values)
        return result

    rollback = GuardedConnection.rollback

    def rolled_back(self: GuardedConnection) -> None:
        heard.say(self, "ROLLBACK", ())
        rollback(self)

    GuardedConnection.execute = execute
    GuardedConnection.rollback = rolled_back
    try:
        yield
    finally:
        del GuardedConnection.execute
        GuardedConnection.rollback = rollback


@contextmanager
def _server_tapped(heard: Heard) -> Iterator[None]:
    """What is handed to asyncpg directly, and the ends of transactions."""
    fetch, execute, executemany = Asyncpg.fetch, Asyncpg.execute, Asyncpg.executemany

    async def fetched(self: Asyncpg, query: str, *values: Any, **options: Any) -> Any:
        heard.say(self, query, values)
        return await fetch(self, query, *values, **options)

    async def executed(self: Asyncpg, query: str, *values: Any, **options: Any) -> Any:
        heard.say(self, query, values)
        return await execute(self, query, *values, **options)

    async def each(self: Asyncpg, query: str, many: Any, **options: Any) -> Any:
        rows = [tuple(row) for row in many]
        heard.say(self, query, rows)
        return await executemany(self, query, rows, **options)

    Asyncpg.fetch, Asyncpg.execute, Asyncpg.executemany = fetched, executed, each
    try:
        yield
    finally:
        Asyncpg.fetch, Asyncpg.execute, Asyncpg.executemany = fetch, execute, executemany
