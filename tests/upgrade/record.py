"""Records what this version says to its databases.

It tells a story on SQLite, and on PostgreSQL where GATEHOUSE_TEST_POSTGRES_URL names a server. The
tests record the version at work each time they run. A release keeps its record for good, under the
newest revision's name: `python -m tests.upgrade.record` writes that (docs/releasing.md).
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg
import structlog

from runtime.store.migrate import MIGRATIONS, migrate
from runtime.store.revisions import Revisions
from tests.contract.store_support import NO_POSTGRES, POSTGRES_VARIABLE, PostgresServer
from tests.upgrade import story
from tests.upgrade.corpus import FOLDER, Corpus, Dialect, distinct, write
from tests.upgrade.tap import Heard, tapped

_LIMIT_S: Final = 120.0


@asynccontextmanager
async def fresh(dialect: Dialect, folder: Path) -> AsyncIterator[str]:
    """A migrated, empty database."""
    if dialect == "sqlite":
        url = f"sqlite:///{folder}/gatehouse.db"
        await migrate(url)
        yield url
        return
    server = PostgresServer(os.environ[POSTGRES_VARIABLE])
    name = await server.create()
    try:
        await migrate(server.url(name))
        yield server.url(name)
    finally:
        await server.drop(name)


async def types_of(url: str, statement: str) -> str:
    """The types that PostgreSQL sees in a statement: ``parameters -> columns``."""
    connection = await asyncpg.connect(url)
    try:
        prepared = await connection.prepare(statement)
        given = ", ".join(one.name for one in prepared.get_parameters())
        back = ", ".join(one.type.name for one in prepared.get_attributes())
    finally:
        await connection.close()
    return f"({given}) -> ({back})"


async def record(dialect: Dialect) -> Corpus:
    """What this version says, by both stories."""

    async def heard_of(tell: Callable[[str, Path], Awaitable[None]]) -> Heard:
        with tempfile.TemporaryDirectory() as place:
            async with fresh(dialect, Path(place)) as url:
                with tapped() as heard:
                    async with asyncio.timeout(_LIMIT_S):
                        await tell(url, Path(place))
                return heard

    brief = await heard_of(story.tell_briefly)
    long = await heard_of(story.tell)
    changes = tuple(brief.changes())
    statements = distinct(
        brief.statements | long.statements, needed={one.statement for one in changes}
    )
    return Corpus(Revisions(MIGRATIONS).head, dialect, await types(dialect, statements), changes)


async def types(dialect: Dialect, statements: Sequence[str]) -> dict[str, str]:
    """What each statement takes and gives, where the database says so without its values."""
    if dialect == "sqlite":
        return dict.fromkeys(statements, "")
    with tempfile.TemporaryDirectory() as place:
        async with fresh(dialect, Path(place)) as url:
            return {one: await types_of(url, one) for one in statements}


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    dialects: list[Dialect] = ["sqlite"]
    if os.environ.get(POSTGRES_VARIABLE):
        dialects.append("postgresql")
    else:
        sys.stderr.write(f"Only SQLite is recorded: {NO_POSTGRES}\n")
    for dialect in dialects:
        corpus = asyncio.run(record(dialect))
        write(corpus)
        sys.stdout.write(
            f"{FOLDER.name}/{corpus.revision}.{dialect}: {len(corpus.statements)} statements, "
            f"{len(corpus.story)} changes\n"
        )


if __name__ == "__main__":
    main()
