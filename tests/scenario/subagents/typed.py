"""A workspace with definitions, and a world with models of several names."""

from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

from runtime.agent.settings import AgentSettings
from runtime.features.subagents.settings import ChildSettings
from runtime.sessions import sessions
from runtime.sessions.sessions import Session
from tests.fakes.chat import FAST, FakeChat
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast, tree
from tests.scenario.engine import Setup, World, setup_at, world

LOOK = ("list_dir", "{}")


def kept(path: Path, name: str, header: str) -> None:
    """A definition in the workspace."""
    folder = path / "workspace" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"---\n{header}\n---\n\nYou look things up.\n")


def played(
    path: Path, url: str, cast: Cast, *names: str, **changes: object
) -> tuple[AbstractAsyncContextManager[World], dict[str, ScriptedModel]]:
    """A world with models of these names, the first of which is the default."""
    models = {name: ScriptedModel(cast, name=name) for name in names or ("m:main",)}
    setup = setup_at(path, url, ScriptedModels(*models.values()), alone=url.startswith("sqlite"))
    chat = FakeChat(capabilities=replace(FAST, files=True))
    return world(changed(setup, **changes), chat), models


def changed(setup: Setup, max_steps: int = 40, **children: object) -> Setup:
    """With other settings of children."""
    settings = replace(setup.settings, agent=AgentSettings(max_steps=max_steps))
    return replace(setup, settings=settings, children=replace(ChildSettings(), **children))


async def session_of(at: World, root: str | None, name: str) -> Session:
    """The session of a child."""
    agent = (await tree(at, root))[name]
    return await at.database.read(lambda conn: sessions.get(conn, agent.session_id))
