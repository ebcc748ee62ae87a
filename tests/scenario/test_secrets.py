"""The gateway's own secrets: they never reach the model, a transcript or a kept file (POL-7)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.store import calls
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.conftest import Worlds

SECRET = "xoxb-test-token-of-nobody"


def leak(workspace: Path) -> None:
    """A file of the workspace that holds a secret of the gateway's."""
    (workspace / "leak.txt").write_text(f"token = {SECRET}\n")


@pytest.mark.requirement("POL-7")
async def test_a_secret_in_a_file_is_masked_before_it_is_kept(worlds: Worlds) -> None:
    model = ScriptedModel(
        [Said(calls=(("read_file", json.dumps({"path": "leak.txt"})),)), "I saw nothing"]
    )

    def change(setup):
        return replace(setup, redact=lambda text: text.replace(SECRET, "[secret]"))

    async with worlds(model, change=change) as world:
        leak(world.workspace)
        accepted = await world.says("read it")
        await world.sees(1)
        told = model.requests[1].messages[-1].results[0].content
        assert "token = [secret]" in told
        rows = await world.database.read(lambda conn: calls.of_run(conn, accepted.run_id or ""))
        assert all(SECRET not in row.result.model_dump_json() for row in rows if row.result)


@pytest.mark.requirement("POL-1")
async def test_a_call_that_cannot_be_prepared_is_a_recorded_denial(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(("no_such_tool", "{}"),)), "sorry"])
    async with worlds(model) as world:
        accepted = await world.says("go")
        await world.sees(1)
        rows = await world.database.read(lambda conn: calls.of_run(conn, accepted.run_id or ""))
        assert [row.decision.verdict for row in rows if row.decision] == ["deny"]
