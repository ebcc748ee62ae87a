"""Database URLs, and the statements that differ."""

from pathlib import Path

import pytest
from sqlalchemy import Column, MetaData, Table, Text, select
from sqlalchemy.dialects import postgresql, sqlite

from runtime.domain.errors import InvalidInput
from runtime.store import open_database
from runtime.store.dialect import database_url, insert_ignore, lock_rows, sqlite_path, upsert
from tests.contract.store_support import StillClock

rows = Table("rows", MetaData(), Column("id", Text, primary_key=True), Column("body", Text))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("sqlite:///data/gatehouse.db", "sqlite+aiosqlite:///data/gatehouse.db"),
        ("sqlite+aiosqlite:////var/g.db", "sqlite+aiosqlite:////var/g.db"),
        ("postgres://me:pw@db/gate", "postgresql+asyncpg://me:pw@db/gate"),
        ("postgresql://db:5433/gate", "postgresql+asyncpg://db:5433/gate"),
        ("postgresql+asyncpg://db/gate", "postgresql+asyncpg://db/gate"),
        ("postgresql://db/gate?sslmode=require", "postgresql+asyncpg://db/gate?ssl=require"),
    ],
)
def test_the_driver_is_chosen_for_people(given: str, meant: str) -> None:
    assert database_url(given).render_as_string(hide_password=False) == meant


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory",
        "mysql://root:hunter2@db/gate",
        "hunter2",
        "postgresql://me:hunter2@db:port/gate",
    ],
)
def test_another_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"database\.url") as caught:
        open_database(url, clock=StillClock())
    assert "hunter2" not in str(caught.value)


def test_a_sqlite_url_names_a_file() -> None:
    assert sqlite_path("sqlite:////var/lib/gatehouse.db") == Path("/var/lib/gatehouse.db")
    assert sqlite_path("sqlite:///gatehouse.db") == Path.cwd() / "gatehouse.db"
    assert sqlite_path("postgresql://db/gate") is None


def test_rows_are_locked_where_there_is_more_than_one_writer() -> None:
    statement = lock_rows(select(rows.c.id))
    there = str(statement.compile(dialect=postgresql.dialect()))
    assert there.endswith("FOR NO KEY UPDATE SKIP LOCKED")
    assert "FOR" not in str(statement.compile(dialect=sqlite.dialect()))
    waits = lock_rows(select(rows.c.id), skip_locked=False)
    assert str(waits.compile(dialect=postgresql.dialect())).endswith("FOR NO KEY UPDATE")


@pytest.mark.parametrize("name", ["sqlite", "postgresql"])
def test_conflicts_are_met_in_the_statement(name: str) -> None:
    dialect = sqlite.dialect() if name == "sqlite" else postgresql.dialect()
    ignore = insert_ignore(name, rows)  # type: ignore[arg-type]  # one of the two names
    assert str(ignore.compile(dialect=dialect)).endswith("ON CONFLICT DO NOTHING")
    put = upsert(name, rows, key=["id"], change=["body"])  # type: ignore[arg-type]  # as above
    assert "ON CONFLICT (id) DO UPDATE SET body = excluded.body" in str(
        put.compile(dialect=dialect)
    )
