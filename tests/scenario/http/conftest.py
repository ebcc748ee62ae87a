"""A gateway for each test, made from a script of what the model says."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan, Site, site

ASKS = Said("May I?", calls=(("exec", '{"command": "ls"}'),))
"""A response that needs an approval."""
WONDERS = Said(
    "",
    calls=(("ask_user", '{"question": "Which branch?", "options": ["main", "next"]}'),),
)
"""A response that asks the person."""


class Sites(Protocol):
    """Makes gateways on one database: a second one is a restart."""

    def __call__(
        self, *script: Said | str, change: Callable[[Plan], None] = ...
    ) -> AbstractAsyncContextManager[Site]: ...


@pytest.fixture
def sites(tmp_path: Path) -> Sites:
    """Gateways on a database of their own."""

    def make(
        *script: Said | str, change: Callable[[Plan], None] = lambda plan: None
    ) -> AbstractAsyncContextManager[Site]:
        plan = Plan(tmp_path, ScriptedModels(ScriptedModel(script)))
        change(plan)
        return site(plan)

    return make
