"""What a killed process left in the workspace goes once nobody can need it (TOOL-14)."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from runtime.agent.file_cleanup import FIRST_S, Leftovers
from runtime.agent.working_folders import Site
from runtime.domain.errors import NotFound
from runtime.intake.assets import UNUSED_MS, Assets, Sender
from runtime.sessions.tables import idempotency
from runtime.store import Connection
from runtime.tools.patch_notes import Note, Noted
from runtime.workspace.layout import Layout
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.conftest import Worlds
from tests.scenario.engine import World
from tests.scenario.schedules.test_reminders import House, goes_on, house

__all__ = ["house"]


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


@pytest.mark.requirement("RUN-5", "RUN-4")
async def test_unused_uploads_and_old_keys_go_while_the_gateway_runs(house: House) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"milk"

    async with house.begins() as at:
        old = FakeClock(house.clock.now_ms() - UNUSED_MS - 1)
        uploads = Assets(at.engine.units, old, lambda: at.workspace)
        asset, _ = await uploads.receive(
            pieces(), "a.txt", Sender("ada", "owner"), idempotency_key="k"
        )
        await at.database.write(_age, name="test")
        await goes_on(at, FIRST_S)
        with pytest.raises(NotFound):
            await uploads.open(asset.id)
        assert await at.database.read(_marks) == 0


def _age(conn: Connection) -> None:
    conn.execute(update(idempotency).where(idempotency.c.key == "asset:k").values(expires_ms=1))


def _marks(conn: Connection) -> int:
    query = select(func.count()).select_from(idempotency).where(idempotency.c.key == "asset:k")
    return int(conn.execute(query).scalar_one())
