"""What SQLAlchemy compiled, kept for all engines of a worker.

Most tests open a database of their own, and an engine compiles every statement again: a seventh of
what a scenario on SQLite needs. The databases of one kind have the same driver and the same schema,
so what was compiled for one engine fits the next.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.engine.interfaces import Compiled


class CompiledStatements(dict[tuple[Any, ...], Compiled]):
    """A cache of compiled statements by the kind of their database, not by its engine."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get(_of_kind(key), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Compiled) -> None:
        super().__setitem__(_of_kind(key), compiled)


def _of_kind(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key without the one engine's dialect, which SQLAlchemy puts first."""
    dialect, *rest = key
    return (dialect.name, dialect.driver, *rest)


SHARED: Final = CompiledStatements()


@contextmanager
def shared_statements(cache: CompiledStatements = SHARED) -> Iterator[None]:
    """Let every engine that gets its options within the block use one cache."""

    def use(_engine: Engine, options: dict[str, Any]) -> None:
        options["compiled_cache"] = cache

    event.listen(Engine, "set_engine_execution_options", use)
    try:
        yield
    finally:
        event.remove(Engine, "set_engine_execution_options", use)


@pytest.fixture(autouse=True)
def compiled_once() -> Iterator[None]:
    """The engines of all tests share what they compile, where a `conftest.py` names this."""
    with shared_statements():
        yield
