"""Empty databases of both kinds, and what this version's code says to them."""

import asyncio
import fcntl
import os
from collections.abc import Callable
from functools import cache

import pytest

from runtime.store.migrate import MIGRATIONS
from runtime.store.revisions import Revisions
from tests.contract.store_support import database_url, dialect
from tests.support.postgres import postgres_server
from tests.upgrade.corpus import Corpus, Dialect, read, released, write
from tests.upgrade.record import record

__all__ = ["database_url", "dialect"]


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Dialect], Corpus]:
    """For a dialect, what the version at work says to it. It is recorded once in a test run, by the
    first worker that asks, and never committed."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "corpus"
    folder.mkdir(exist_ok=True)

    @cache
    def recorded(dialect: Dialect) -> Corpus:
        if dialect == "postgresql":
            postgres_server()
        with (folder / f"{dialect}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if Revisions(MIGRATIONS).head not in released(dialect, folder):
                write(asyncio.run(record(dialect)), folder)
        return read(Revisions(MIGRATIONS).head, dialect, folder)

    return recorded


@pytest.fixture
def at_work(dialect: Dialect, recorder: Callable[[Dialect], Corpus]) -> Corpus:
    """What the version at work says to the database of the test."""
    return recorder(dialect)
