"""A child writes no private notes, neither those that are there nor new ones (SUB-16)."""

import json
from pathlib import Path

import pytest

from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said
from tests.scenario.cast import Cast, spawn
from tests.scenario.subagents.repositories import confined
from tests.scenario.subagents.test_worktrees import run, working

__all__ = ["dialect", "migrated_url", "schema_templates"]


@pytest.mark.requirement("SUB-16", "CTX-11")
async def test_a_command_of_a_child_makes_no_notes_where_there_are_none(
    tmp_path: Path, migrated_url: str
) -> None:
    ways = "; ".join(
        (
            "echo mine > USER.md",
            "rm -f USER.md; ln -sf SOUL.md USER.md",
            "mkdir -p memory personas/mine",
            "echo mine > memory/new.md",
            "echo mine > personas/mine/SOUL.md",
            "mv personas was; mkdir -p personas/mine && echo mine > personas/mine/SOUL.md",
            "true",
        )
    )
    tool = ("write_file", json.dumps({"path": "personas/mine/SOUL.md", "content": "mine"}))
    cast = Cast(
        [Said(calls=(spawn(task="x", id="one", type="general"),)), "Done."],
        {"one": [Said(calls=(run(ways), tool)), "a"]},
    )
    async with working(tmp_path, migrated_url, cast, await confined()) as at:
        (at.workspace / "USER.md").unlink()
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        for name in ("USER.md", "memory", "personas"):
            place = at.workspace / name
            there = [place, *place.rglob("*")]
            assert all("mine" not in one.read_text() for one in there if one.is_file())
            assert not place.is_symlink()
        assert not (at.workspace / "personas" / "mine").exists()
    ended, denied = cast.told(1, "one")
    assert ended.startswith("[exit code 0")
    assert "a subagent writes no private notes" in denied
