"""A run that its workers do not survive."""

import pytest

from runtime.domain.runs import RunState
from runtime.sessions import claims, runs
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.conftest import Worlds
from tests.stateful import invariants, snapshot


@pytest.mark.requirement("MSG-6", "MSG-9")
async def test_a_run_that_could_not_be_resumed_is_interrupted_and_the_lane_goes_on(
    worlds: Worlds,
) -> None:
    gate = Gate()
    async with worlds(ScriptedModel([Said("never", before=gate)])) as before:
        accepted = await before.says("this kills whoever takes it")
        await gate.reached.wait()
        run_id = accepted.run_id or ""

        def age(conn: runs.Connection) -> None:
            runs.change(conn, run_id, {"attempt": claims.MAX_ATTEMPTS - 1, "worker": "wrk_gone"})

        await before.database.write(age, name="age")
    async with worlds(ScriptedModel(["on we go"])) as after:
        (told,) = await after.sees(1)
        assert "gave up" in told
        assert run_id in told
        run = await after.database.read(lambda conn: runs.get(conn, run_id))
        assert run.state is RunState.INTERRUPTED
        invariants.check(await after.database.read(snapshot.take))
        await after.says("and now?", message_id="m-later")
        assert (await after.sees(2))[1] == "on we go"
