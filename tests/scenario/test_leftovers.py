"""What a killed process left in the workspace goes once nobody can need it (TOOL-14)."""

from pathlib import Path

import pytest

from runtime.agent.file_cleanup import Leftovers
from runtime.agent.working_folders import Site
from runtime.tools.patch_notes import Note, Noted
from runtime.workspace.layout import Layout
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.conftest import Worlds
from tests.scenario.engine import World


def staged_by(at: World, run_id: str) -> Path:
    """What a patch of a run has staged, and its note."""
    place = at.workspace / "files" / f"{run_id}.md"
    staged = place.with_name(f".gatehouse-{run_id}.tmp")
    staged.write_text("half")
    note = Note.read(at.workspace, f"{run_id}-call")
    note.write({str(place): Noted(digest="x", staged=staged.name)})
    return staged


@pytest.mark.requirement("TOOL-14")
async def test_what_a_patch_staged_goes_once_its_run_has_ended(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel(["done", Said("later", before=gate)])
    async with worlds(model) as at:
        ended = (await at.says("one")).run_id
        await at.sees(1)
        alive = (await at.says("two")).run_id
        await gate.reached.wait()
        assert ended
        assert alive
        left, works, deleted = (staged_by(at, one) for one in (ended, alive, "run_of_no_session"))
        clock = FakeClock(at.engine.parts.clock.now_ms())
        keeper = Leftovers(at.database, clock, Site(Layout.of(at.workspace)), keep_s=3600)
        assert await keeper.clear_staged() == 2
        assert [left.exists(), works.exists(), deleted.exists()] == [False, True, False]
