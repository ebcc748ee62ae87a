"""A migrated database for each scenario, and the worlds that are made on it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from runtime.ports.model import Model, Models
from tests.fakes.chat import FakeChat
from tests.fakes.model import ScriptedModels
from tests.scenario.engine import Setup, World, setup_at, world
from tests.support.compiled_statements import compiled_once
from tests.support.templates import make_database

__all__ = ["compiled_once"]


class Worlds(Protocol):
    """Makes worlds on one database: a second one is a restart."""

    def __call__(
        self,
        model: Model | Models,
        /,
        *,
        chat: FakeChat | None = None,
        change: Callable[[Setup], Setup] = ...,
    ) -> AbstractAsyncContextManager[World]: ...


@pytest.fixture
async def worlds(tmp_path: Path) -> Worlds:
    """Worlds on a SQLite database of their own."""
    url = f"sqlite:///{tmp_path}/gatehouse.db"
    await make_database(url)

    def make(
        model: Model | Models,
        /,
        *,
        chat: FakeChat | None = None,
        change: Callable[[Setup], Setup] = lambda setup: setup,
    ) -> AbstractAsyncContextManager[World]:
        models = model if hasattr(model, "default") else ScriptedModels(model)
        return world(change(setup_at(tmp_path, url, models)), chat)

    return make


def intake(**changes: object) -> Callable[[Setup], Setup]:
    """A change of a setup's intake settings."""

    def change(setup: Setup) -> Setup:
        changed = replace(setup.settings.intake, **changes)
        return replace(setup, settings=replace(setup.settings, intake=changed))

    return change


def engine(**changes: object) -> Callable[[Setup], Setup]:
    """A change of a setup's engine settings."""
    return lambda setup: replace(setup, settings=replace(setup.settings, **changes))


def agent(**changes: object) -> Callable[[Setup], Setup]:
    """A change of a setup's agent settings."""

    def change(setup: Setup) -> Setup:
        changed = replace(setup.settings.agent, **changes)
        return replace(setup, settings=replace(setup.settings, agent=changed))

    return change
