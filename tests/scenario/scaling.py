"""What a message costs a database, in statements and in work, however much stands in it already.

Counted, never timed. A filled database holds copies of one session that really was: whatever the
message path leaves behind is there as often as there are sessions, in every table.
"""

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import ColumnElement, Connection, Engine, Table, event, insert, select, text, update
from sqlalchemy.pool import Pool

from runtime.ports.model import Model
from runtime.sessions import tables
from runtime.store.writer import GuardedConnection
from tests.contract.store_support import postgres_server
from tests.fakes.clock import FakeClock
from tests.fakes.model import ScriptedModels
from tests.scenario.engine import Setup, World, setup_at, world
from tests.scenario.heard import CONTROL
from tests.scenario.replicas import beside
from tests.support.templates import make_database

FILLED = 2_000
"""Sessions of a filled database."""
GROWING = (
    tables.sessions,
    tables.lanes,
    tables.inputs,
    tables.runs,
    tables.messages,
    tables.tool_calls,
    tables.open_calls,
    tables.events,
    tables.outbox,
    tables.idempotency,
    tables.audit,
)
"""What gets longer with every message or every session, in an order that foreign keys allow."""
_STEPS = 10
# Joins the open calls and their cards: with few of both PostgreSQL takes any order of the two, and
# SQLite's plan of it, which is looked at too, begins with those that are open.
_BY_STATISTICS = "SELECT outbox.open_call_id, outbox.posted"
Change = Callable[[Setup], Setup]
Rows = dict[str, list[dict[str, Any]]]


@dataclass
class Asked:
    """What a database was asked: every statement as it was prepared, in order, and with values
    that it was run with once. `work` counts SQLite's own instructions, in tens."""

    said: list[str] = field(default_factory=list)
    values: dict[str, tuple[object, ...]] = field(default_factory=dict)
    work: int = 0

    def note(self, statement: str, values: object) -> None:
        """One execution."""
        if CONTROL.match(statement):
            return
        self.said.append(statement)
        # A list holds the values of several executions; a tuple's first value may be a list.
        one = values[0] if isinstance(values, list) and values else values
        self.values.setdefault(statement, one if isinstance(one, tuple) else ())

    def clear(self) -> None:
        """Count from here."""
        self.said.clear()
        self.values.clear()
        self.work = 0

    def _step(self) -> int:
        self.work += 1
        return 0


@contextmanager
def asked(patch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """Listen to every connection that is opened meanwhile."""
    made = Asked()
    plain = GuardedConnection.execute

    def execute(self: GuardedConnection, statement: str, *values: Any) -> sqlite3.Cursor:
        made.note(statement, *(values or ((),)))
        return plain(self, statement, *values)

    def through_core(
        conn: Connection, _cursor: object, statement: str, values: object, *_rest: object
    ) -> None:
        # Over asyncpg the driver tells of it too.
        if conn.dialect.name == "sqlite":
            made.note(statement, values)

    def follow(adapter: Any, _record: object) -> None:
        raw = getattr(adapter, "driver_connection", adapter)
        if hasattr(raw, "add_query_logger"):
            raw.add_query_logger(lambda one: made.note(one.query, one.args))
        else:
            getattr(raw, "_conn", raw).set_progress_handler(made._step, _STEPS)

    patch.setattr(GuardedConnection, "execute", execute)
    event.listen(Engine, "before_cursor_execute", through_core)
    event.listen(Pool, "connect", follow)
    try:
        yield made
    finally:
        event.remove(Engine, "before_cursor_execute", through_core)
        event.remove(Pool, "connect", follow)


@asynccontextmanager
async def scaled(
    path: Path, dialect: str, model: Model, change: Change = lambda setup: setup
) -> AsyncIterator[tuple[World, str]]:
    """A world on either database, under a clock that stands still until it is moved; and the
    database's address."""
    if dialect == "postgresql":
        async with (
            beside(path, postgres_server()) as place,
            place.replica("one", model, change) as replica,
        ):
            yield replica.world, place.url
        return
    url = f"sqlite:///{path}/gatehouse.db"
    await make_database(url)
    setup = change(setup_at(path, url, ScriptedModels(model), clock=FakeClock()))
    async with world(setup) as running:
        yield running, url


def clock_of(running: World) -> FakeClock:
    """The clock, which stands still."""
    clock = running.engine.parts.clock
    assert isinstance(clock, FakeClock)
    return clock


async def at_rest(running: World) -> None:
    """Until nobody has anything left to do at this moment."""
    for _ in range(5):
        await clock_of(running).advance(0.0)


def _copied(row: dict[str, Any], ids: re.Pattern[str], number: int) -> dict[str, Any]:
    """A row of another session: whatever names this one, or something of it, names the copy's."""
    row.pop("position", None)
    return {
        name: ids.sub(lambda found: f"{found.group()}_{number}", value)
        if isinstance(value, str)
        else value
        for name, value in row.items()
    }


def _of_session(table: Table, session_id: str) -> ColumnElement[bool]:
    if table is tables.tool_calls:
        mine = select(tables.runs.c.id).where(tables.runs.c.session_id == session_id)
        return table.c.run_id.in_(mine)
    return table.c["id" if table is tables.sessions else "session_id"] == session_id


async def fill(running: World, session_id: str, *, sessions: int = FILLED) -> None:
    """Copy a session and all that it left behind, until there are so many sessions more."""
    rows = await running.database.read(lambda conn: _rows_of(conn, session_id, GROWING))
    ids = _names_in(rows, "id", "key", "identity")

    def copy(conn: Connection) -> None:
        _insert_copies(conn, rows, ids, sessions)
        once = {"digest": "", "response": "{}", "created_ms": 0}
        keys = [{"key": f"filled:{n}", **once} for n in range(sessions)]
        conn.execute(insert(tables.idempotency), keys)

    await running.database.write(copy, name="fill")
    await _analyze(running)


async def lengthen(running: World, session_id: str, *, times: int) -> None:
    """Let all that was said in a session have been said so many times more."""
    rows = await running.database.read(lambda conn: _rows_of(conn, session_id, GROWING[2:]))
    ids = _names_in(rows, "id", "identity")
    spans = {name: len(found) for name, found in rows.items() if found and "seq" in found[0]}

    def copy(conn: Connection) -> None:
        _insert_copies(conn, rows, ids, times, spans)
        counters = {
            f"{table.removesuffix('s')}_seq": span * (times + 1) for table, span in spans.items()
        }
        mine = tables.lanes.c.session_id == session_id
        conn.execute(update(tables.lanes).where(mine).values(counters))

    await running.database.write(copy, name="lengthen")
    await _analyze(running)


def _rows_of(conn: Connection, session_id: str, wanted: Sequence[Table]) -> Rows:
    return {
        table.name: [
            dict(row._mapping)
            for row in conn.execute(select(table).where(_of_session(table, session_id)))
        ]
        for table in wanted
        if table is not tables.idempotency
    }


def _names_in(rows: Rows, *columns: str) -> re.Pattern[str]:
    names = {
        str(row[name])
        for found in rows.values()
        for row in found
        for name in columns
        if row.get(name) is not None
    }
    return re.compile("|".join(re.escape(one) for one in sorted(names, key=len, reverse=True)))


def _insert_copies(
    conn: Connection,
    rows: Rows,
    ids: re.Pattern[str],
    times: int,
    spans: Mapping[str, int] | None = None,
) -> None:
    for table in GROWING:
        found = rows.get(table.name)
        if not found:
            continue
        many = [_copied(dict(row), ids, n) for n in range(times) for row in found]
        for place, row in enumerate(many):
            if spans is not None and table.name in spans:
                row["seq"] += spans[table.name] * (place // len(found) + 1)
        conn.execute(insert(table), many)


async def _analyze(running: World) -> None:
    await running.database.write(lambda conn: conn.execute(text("ANALYZE")).close(), name="analyze")


async def scanned(url: str, statements: dict[str, tuple[object, ...]]) -> list[str]:
    """The statements for which the database would read a growing table from end to end."""
    if url.startswith("sqlite"):
        return _scanned_by_sqlite(Path(url.removeprefix("sqlite:///")), statements)
    return await _scanned_by_postgres(url, statements)


def _scanned_by_sqlite(path: Path, statements: dict[str, tuple[object, ...]]) -> list[str]:
    growing = "|".join(table.name for table in GROWING)
    # "SCAN runs", "SCAN runs USING INDEX ..."; a partial index that is scanned holds what is open.
    scan = re.compile(
        r"^SCAN (\w+)\b"
        r"(?! USING (COVERING )?INDEX ix_\w+_(ready|running|queued|expiry|unsettled|left)\b)"
    )
    found = []
    conn = sqlite3.connect(path)
    try:
        for statement, values in statements.items():
            plan = conn.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            for line in (str(step[3]) for step in plan):
                if scan.match(line) and re.search(rf"\b({growing})\b", _real(statement, line)):
                    found.append(f"{line}: {statement}")
    finally:
        conn.close()
    return found


def _real(statement: str, line: str) -> str:
    """The table of a plan's line, which may name its alias."""
    name = line.split()[1]
    aliased = re.search(rf"(\w+) AS {name}\b", statement)
    return aliased.group(1) if aliased else name


async def _scanned_by_postgres(url: str, statements: dict[str, tuple[object, ...]]) -> list[str]:
    found = []
    conn = await asyncpg.connect(url)
    try:
        # What small tables and fresh statistics make cheaper is no matter: an index must do.
        await conn.execute("SET enable_seqscan = off")
        for statement, values in statements.items():
            if statement.startswith(_BY_STATISTICS):
                continue
            rows = await conn.fetch(f"EXPLAIN (FORMAT JSON) {statement}", *values)
            nodes = _nodes(json.loads(rows[0][0])[0]["Plan"])
            found += [
                f"{one['Node Type']} {one.get('Index Name')}: {statement}"
                for one in nodes
                if _reads_all(one)
            ]
    finally:
        await conn.close()
    return found


def _reads_all(node: dict[str, Any]) -> bool:
    """Whether a step of PostgreSQL reads a growing table, or all of an index that grows with it."""
    growing = {table.name for table in GROWING}
    if node["Node Type"] == "Seq Scan":
        return node["Relation Name"] in growing
    index = str(node.get("Index Name", ""))
    if "Index Cond" in node or not any(name in index for name in growing):
        return False
    return re.search(r"_(ready|running|queued|expiry|pending|unsettled|left)$", index) is None


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)
