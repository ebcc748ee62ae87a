"""Prepared statements on SQLite's writer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from runtime.store.sqlite import create_file, writing_engine
from runtime.store.statements import hot

metadata = MetaData()
rows = Table(
    "rows",
    metadata,
    Column("id", Text, primary_key=True),
    Column("done", Boolean, nullable=False),
    Column("data", JSON),
    Column("rank", Integer),
)
drawn = Table("drawn", metadata, Column("id", Text, default=lambda: "made by Python"))


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[Connection]:
    path = tmp_path / "hot.db"
    create_file(path)
    with writing_engine(path).connect() as opened:
        metadata.create_all(opened)
        yield opened


def test_values_are_converted_both_ways(conn: Connection) -> None:
    put = hot(insert(rows))
    assert put.change(conn, id="a", done=True, data={"b": [1]}, rank=None) == 1
    row = hot(select(rows)).first(conn)
    assert row is not None
    assert (row.id, row.done, row.data, row.rank) == ("a", True, {"b": [1]}, None)
    assert row._mapping["data"] == {"b": [1]}
    identity, done, *_ = row
    assert (identity, done) == ("a", True)


def test_fixed_values_and_parameters_stand_together(conn: Connection) -> None:
    hot(insert(rows)).change(conn, id="a", done=False, data=None, rank=1)
    finish = hot(
        update(rows).where(rows.c.id == bindparam("row"), rows.c.rank == 1).values(done=True)
    )
    assert finish.change(conn, row="a") == 1
    assert finish.change(conn, row="b") == 0
    first = hot(select(rows.c.done).where(rows.c.id == bindparam("row")).limit(1))
    assert [tuple(row) for row in first.rows(conn, row="a")] == [(True,)]
    assert hot(delete(rows)).change(conn) == 1


def test_a_returning_statement_is_read_by_rows(conn: Connection) -> None:
    put = hot(insert(rows).returning(rows.c.id, rows.c.done))
    values = {"done": True, "data": None, "rank": 0}
    assert [tuple(row) for row in put.rows(conn, id="a", **values)] == [("a", True)]
    with pytest.raises(TypeError, match="only `rows` reads"):
        put.change(conn, id="b", **values)


def test_a_broken_constraint_is_core_s_error(conn: Connection) -> None:
    put = hot(insert(rows))
    put.change(conn, id="a", done=True, data=None, rank=0)
    with pytest.raises(IntegrityError, match="UNIQUE"):
        put.change(conn, id="a", done=True, data=None, rank=0)


@pytest.mark.parametrize("params", [{}, {"row": "a", "other": 1}, {"rwo": "a"}])
def test_other_parameters_are_refused(conn: Connection, params: dict[str, object]) -> None:
    find = hot(select(rows).where(rows.c.id == bindparam("row")))
    with pytest.raises(TypeError, match="missing or unknown"):
        find.rows(conn, **params)


def test_what_core_must_do_each_time_is_refused(conn: Connection) -> None:
    several = hot(select(rows).where(rows.c.id.in_(bindparam("ids", expanding=True))))
    with pytest.raises(TypeError, match="a list or a literal"):
        several.rows(conn, ids=["a"])
    with pytest.raises(TypeError, match="a default that Core computes"):
        hot(insert(drawn)).change(conn)
