"""Engines for trees whose setup a test changes, and what a child was answered to its calls."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

from runtime.features.subagents.settings import ChildSettings
from runtime.ports.model import ModelRequest
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.engine import Setup, World, setup_at, world
from tests.scenario.subagents.children import Script

Change = Callable[[Setup], Setup]


def grown(
    path: Path, url: str, script: Script, *changes: Change, **children: object
) -> AbstractAsyncContextManager[World]:
    """As `children.engine`, with changes of the setup."""
    setup = setup_at(
        path, url, ScriptedModels(ScriptedModel(script)), alone=url.startswith("sqlite")
    )
    setup = replace(setup, children=replace(ChildSettings(), **children))
    for change in changes:
        setup = change(setup)
    return world(setup)


def results(request: ModelRequest) -> list[str]:
    """What the calls of the last step came to, status first."""
    found = [message for message in request.messages if message.role == "tool"]
    last = found[-1].results if found else ()
    return [f"{one.status}: {one.content}" for one in last]
