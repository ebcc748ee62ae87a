"""A new database, made at once, is what every migration together makes; on both databases."""

import asyncio
import re
import sys
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from runtime.store.dialect import sqlite_path
from runtime.store.metadata import metadata
from runtime.store.migrate import default_differs, migrate, schema
from runtime.store.revisions import Revisions
from tests.contract.test_store_migrations import KNOWN, MIGRATE, every_step, inside, next_version


async def test_the_migrations_make_exactly_the_tables_of_this_version(
    database_url: str, tmp_path: Path
) -> None:
    def differences(conn: Connection) -> list[object]:
        options = {"compare_type": True, "compare_server_default": default_differs}
        return list(compare_metadata(MigrationContext.configure(conn, opts=options), metadata))

    await migrate(database_url, scripts=every_step(tmp_path))
    assert await inside(database_url, lambda database: database.read(differences)) == []


_POSTGRES_SCHEMA = (
    "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, "
    "column_default, is_identity FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
)


def made(conn: Connection) -> list[tuple[str, ...]]:
    """Everything that the database's own catalog says of the schema, but for its order."""
    if conn.dialect.name == "postgresql":
        queries = map(text, _POSTGRES_SCHEMA)
        return sorted(tuple(map(str, row)) for each in queries for row in conn.execute(each))
    found = conn.execute(text("SELECT name, coalesce(sql, '') FROM sqlite_master"))
    return sorted((name, *parts(sql)) for name, sql in found)


def parts(sql: str) -> list[str]:
    """The parts of a SQLite statement: columns that came later stand behind the constraints."""
    plain = re.sub(r"\s+", " ", sql).replace('"', "").replace("(false)", "false").rstrip()
    if not plain.startswith("CREATE TABLE"):
        return [plain]
    opening, inner = plain.removesuffix(")").split("(", 1)
    return [opening, *sorted(each.strip() for each in re.split(r",(?![^()]*\))", inner))]


async def test_an_empty_database_gets_what_every_step_makes(
    database_url: str, tmp_path: Path
) -> None:
    async def told(url: str) -> tuple[object, ...]:
        schema_of_it = await inside(url, lambda database: database.read(made))
        query = text("SELECT * FROM settings, alembic_version")
        rows = await inside(url, lambda db: db.read(lambda conn: conn.execute(query).all()))
        return schema_of_it, rows

    await migrate(database_url, scripts=every_step(tmp_path))
    by_steps = await told(database_url)
    await emptied(database_url)
    await migrate(database_url)
    at_once = await told(database_url)
    assert len(by_steps[0]) > 80
    assert at_once == by_steps


async def emptied(url: str) -> None:
    path = sqlite_path(url)
    if path is not None:
        path.unlink()
        return
    statements = ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")

    def drop(conn: Connection) -> None:
        for each in statements:
            conn.execute(text(each))

    await inside(url, lambda database: database.write(drop, name="drop"))


def test_the_tables_of_the_migrations_are_those_that_the_gateway_knows(tmp_path: Path) -> None:
    assert KNOWN.tables == set(metadata.tables)
    more = 'op.create_table("rooms", sa.Column("id", sa.Text())); op.drop_table("personas")'
    later = Revisions(next_version(tmp_path, then=more))
    assert later.tables == (KNOWN.tables | {"rooms"}) - {"personas"}


async def test_a_database_that_would_lack_a_feature_s_table_is_not_made(database_url: str) -> None:
    """As in a process that never imported the feature."""
    script = (
        "from runtime.store.migrate import TablesMissing"
        "\nfrom runtime.store.metadata import metadata"
        "\nmetadata.remove(metadata.tables['personas'])"
        "\ntry:"
        "\n    asyncio.run(migrate(sys.argv[1]))"
        "\nexcept TablesMissing as error: assert 'personas' in str(error)"
        "\nelse: raise AssertionError"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MIGRATE + script, database_url
    )
    assert await process.wait() == 0
    assert (await schema(database_url)).revision is None


async def test_a_new_database_needs_no_alembic(database_url: str) -> None:
    script = MIGRATE + "asyncio.run(migrate(sys.argv[1])); assert 'alembic' not in sys.modules"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, database_url)
    assert await process.wait() == 0
