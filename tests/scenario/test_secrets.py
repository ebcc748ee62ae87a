"""The gateway's own secrets: they never reach the model, a transcript or a kept file (POL-7)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect
from runtime.ports.bus import LIVE
from runtime.sessions import calls, runs
from runtime.tools.base import ToolContext, ToolOutput
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.conftest import Worlds
from tests.scenario.tools import Note, NoteArguments

SECRET = "xoxb-test-token-of-nobody"


def leak(workspace: Path) -> None:
    """A file of the workspace that holds a secret of the gateway's."""
    (workspace / "files/leak.txt").write_text(f"token = {SECRET}\n")


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


@pytest.mark.requirement("RUN-2", "POL-7")
async def test_what_a_run_is_about_shows_no_secret(worlds: Worlds) -> None:
    plain = "milk-and-honey"  # a secret of the settings that looks like none

    def change(setup):
        return replace(setup, redact=lambda text: text.replace(plain, "[secret]"))

    async with worlds(ScriptedModel(["done"]), change=change) as world:
        accepted = await world.says(f"log in with {plain} and\nlook")
        await world.sees(1)
        run = await world.database.read(lambda conn: runs.get(conn, accepted.run_id or ""))
        assert run.summary == "log in with [secret] and look"


@pytest.mark.requirement("POL-1")
async def test_a_call_that_cannot_be_prepared_is_a_recorded_denial(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(("no_such_tool", "{}"),)), "sorry"])
    async with worlds(model) as world:
        accepted = await world.says("go")
        await world.sees(1)
        rows = await world.database.read(lambda conn: calls.of_run(conn, accepted.run_id or ""))
        assert [row.decision.verdict for row in rows if row.decision] == ["deny"]


class Leaky(Note):
    """A tool that shows a secret while it runs, and fails with it."""

    async def run(self, arguments: NoteArguments, context: ToolContext) -> ToolOutput:
        context.emit(f"connecting with {SECRET}")
        raise ToolError(f"refused: {SECRET}")


@pytest.mark.requirement("POL-7")
async def test_a_secret_is_masked_in_errors_and_in_what_is_shown_live(worlds: Worlds) -> None:
    model = ScriptedModel([Said(calls=(("note", "{}"),)), "it failed"])

    def change(setup):
        masked = replace(setup, redact=lambda text: text.replace(SECRET, "[secret]"))
        return replace(masked, tools=(Leaky(effect=Effect.READ),))

    async with worlds(model, change=change) as world:
        async with world.engine.parts.bus.subscribe(LIVE) as signals:
            await world.says("go")
            await world.sees(1)
            shown = [str((await anext(signals)).data) for _ in range(4)]
        assert "refused: [secret]" in model.requests[1].messages[-1].results[0].content
        assert any("connecting with [secret]" in one for one in shown)
        assert not any(SECRET in one for one in shown)
