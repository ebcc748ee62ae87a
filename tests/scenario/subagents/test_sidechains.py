"""A subagent that a program starts, on both databases: what it is told, and once (AGT-3)."""

import asyncio
from pathlib import Path

import pytest

from runtime.domain.errors import Conflict
from runtime.features.subagents.files.worktrees import Worktrees
from runtime.features.subagents.settings import ChildSettings
from runtime.features.subagents.sidechains import Sidechains
from runtime.features.subagents.spawn.agent_types import TypeBook
from runtime.features.subagents.spawn.sidechain_request import SpawnSidechainRequest
from runtime.intake.assets import Assets
from runtime.intake.route_policies import RouteRules
from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.scenario.engine import World
from tests.scenario.subagents.children import engine, grown, name_of, settled, told, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]

DEFINITION = "---\nname: scout\n---\nYou are a scout."


def sidechains(at: World) -> Sidechains:
    parts, settings = at.engine.parts, at.engine.settings
    box = parts.sandbox
    shelf = parts.workspace.agents
    book = TypeBook(at.database, settings.agent, ChildSettings(), shelf)
    root = parts.workspace.root
    return Sidechains(
        units=at.engine.units,
        book=book,
        registry=parts.registry,
        policy=settings.policy,
        root=root,
        assets=Assets(at.engine.units, parts.clock, lambda: root),
        routes=RouteRules(parts.models),
        worktrees=None if box is None else Worktrees(box, root, parts.clock),
    )


def asks(**asked: object) -> SpawnSidechainRequest:
    task = {"name": "one", "description": "Looks.", "prompt": "Look."}
    return SpawnSidechainRequest.model_validate({"subtask": task, **asked})


@pytest.mark.requirement("AGT-3", "SUB-6")
async def test_of_many_at_once_with_one_key_one_is_made_also_after_a_restart(
    tmp_path: Path, migrated_url: str
) -> None:
    def script(request: ModelRequest) -> str:
        return "Looked." if name_of(request) else "Hello."

    asked = asks(spawn_request_id="k")
    async with engine(tmp_path, migrated_url, script) as at:
        root = (await at.says("hi")).session_id or ""
        await at.sees(1)
        made = await asyncio.gather(*(sidechains(at).spawn(root, asked) for _ in range(5)))
        assert sorted(new for _, new in made) == [False] * 4 + [True]
        assert len({session_id for session_id, _ in made}) == 1
        await settled(at)
    async with engine(tmp_path, migrated_url, script) as at:
        assert await sidechains(at).spawn(root, asked) == (made[0][0], False)
        with pytest.raises(Conflict):
            await sidechains(at).spawn(root, asks(spawn_request_id="k", nickname="north"))
        assert list(await tree(at)) == ["one"]
        before = await tree(at)
        await sidechains(at).explain(root, asks(spawn_request_id="other", subtask=OTHER))
        assert await tree(at) == before, "a dry run makes nothing"


OTHER = {"name": "two", "description": "", "prompt": "Look."}


@pytest.mark.requirement("AGT-3")
@pytest.mark.parametrize(
    ("mode", "has", "lacks"),
    [("append", ("You are a scout.", "Be brief."), ()), ("replace", ("Be brief.",), ("a scout.",))],
)
async def test_its_instructions_are_added_to_those_of_its_type_or_replace_them(
    tmp_path: Path, migrated_url: str, mode: str, has: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    heard: list[str] = []

    def script(request: ModelRequest) -> str:
        if not name_of(request):
            return "Hello."
        heard.append(told(request))
        return "Looked."

    async with engine(tmp_path, migrated_url, script) as at:
        folder = tmp_path / "workspace" / "agents"
        folder.mkdir(exist_ok=True)
        (folder / "scout.md").write_text(DEFINITION)
        root = (await at.says("hi")).session_id or ""
        await at.sees(1)
        task = {"name": "one", "description": "", "profile": "scout", "content": "Look."}
        fork = {"system_prompt": "Be brief.", "prompt_merge_mode": mode}
        await sidechains(at).spawn(root, asks(subtask=task, fork_context=fork))
        await grown(at, lambda found: "one" in found and found["one"].settled)
    for words in has:
        assert words in heard[0]
    for words in lacks:
        assert words not in heard[0]
