"""The files of personas: kept once for each content, on both databases, whoever comes first."""

import asyncio

import pytest
from sqlalchemy import Connection, func, select

from runtime.domain.errors import NotFound
from runtime.sessions import personas
from runtime.sessions.tables import personas as table
from runtime.store import Database

FILES = {"SOUL.md": "Be kind \u00e4 \U0001f600 \x00 \\u0000.\n", "USER.md": ""}

pytestmark = pytest.mark.requirement("CTX-11")


def rows(conn: Connection) -> int:
    return conn.execute(select(func.count()).select_from(table)).scalar_one()


async def test_files_come_back_as_they_were(store: Database) -> None:
    await store.write(lambda conn: personas.keep(conn, "d1", FILES), name="keep")
    assert await store.read(lambda conn: personas.files_of(conn, "d1")) == FILES
    with pytest.raises(NotFound):
        await store.read(lambda conn: personas.files_of(conn, "d2"))


async def test_the_same_content_is_kept_once_by_units_that_come_together(store: Database) -> None:
    units = [
        store.write(lambda conn: personas.keep(conn, "d1", FILES), name="keep") for _ in range(8)
    ]
    await asyncio.gather(*units)
    await store.write(lambda conn: personas.keep(conn, "d2", FILES), name="keep")
    assert await store.read(rows) == 2
