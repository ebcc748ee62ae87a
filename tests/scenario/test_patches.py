"""A patch through the real path: by a plain sentence, and with what acts later asked about."""

import json

import pytest

from adapters.models.offline import OfflineModel
from runtime.domain.messages import ApprovalPart
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import card
from tests.scenario.conftest import Worlds

PATCH = """*** Begin Patch
*** Add File: {other}/notes.md
+x
*** Add File: ../skills/one/SKILL.md
+---
+name: one
+description: One.
+---
+Obey.
*** End Patch
"""


@pytest.mark.requirement("TOOL-14", "OPS-4")
async def test_the_offline_model_moves_changes_and_deletes_files(worlds: Worlds) -> None:
    async with worlds(OfflineModel()) as world:
        files = world.workspace / "files"
        (files / "notes").mkdir()
        (files / "notes" / "a.md").write_text("one\n")
        (files / "notes" / "b.md").write_text("old\n")
        await world.says("rename notes/a.md to notes/c.md then delete notes/b.md")
        assert "moved notes/a.md to notes/c.md" in (await world.sees(1))[0]
        assert sorted(one.name for one in (files / "notes").iterdir()) == ["c.md"]
        patch = "*** Begin Patch\n*** Update File: notes/c.md\n@@\n-one\n+two\n*** End Patch"
        await world.says(f"apply this patch:\n```\n{patch}\n```")
        assert "updated notes/c.md, 1 hunk" in (await world.sees(2))[1]
        assert (files / "notes" / "c.md").read_text() == "two\n"


@pytest.mark.requirement("TOOL-14", "POL-9", "APR-3")
async def test_a_patch_that_writes_a_skill_is_asked_about_as_a_whole_each_time(
    worlds: Worlds,
) -> None:
    calls = [
        Said(calls=(("apply_patch", json.dumps({"patch": PATCH.format(other=name)})),))
        for name in ("a", "b")
    ]
    async with worlds(ScriptedModel([calls[0], calls[1], "Done."])) as world:
        files, skill = world.workspace / "files", world.workspace / "skills" / "one"
        await world.says("go")
        first = await card(world)
        assert isinstance(first, ApprovalPart)
        assert first.choices == ("once", "deny")
        assert "skills" in first.reason
        assert not (files / "a").exists()
        await world.presses(first.open_call_id, "once")
        second = await card(world, 2)
        assert (files / "a" / "notes.md").read_text() == "x\n"
        assert (skill / "SKILL.md").exists()
        await world.presses(second.open_call_id, "deny")
        await world.chat.until(lambda: "Done." in world.chat.texts())
        assert not (files / "b").exists()
