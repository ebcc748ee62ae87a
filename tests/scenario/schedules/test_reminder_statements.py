"""How often firing asks the database: a server answers each statement over the network."""

from pathlib import Path

import pytest

from runtime.engine.feature import Admitted
from runtime.features.schedules import reminders
from runtime.features.schedules.reminders import Fired
from runtime.sessions.unit import Unit
from tests.contract.store_support import postgres_server
from tests.fakes.model import ScriptedModel
from tests.scenario.conftest import intake
from tests.scenario.replicas import beside
from tests.scenario.scaling import asked
from tests.scenario.schedules.test_reminders import TEAM, goes_on, hears, reminded


@pytest.mark.requirement("SCH-9")
async def test_a_unit_asks_the_server_as_often_for_forty_as_for_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With six statements for each, ten thousand that were due in a minute came a minute late."""
    fire, counted = reminders.fire, list[tuple[int, int]]()
    with asked(monkeypatch) as queries:

        def counting(unit: Unit, admitted: Admitted) -> Fired:
            before = len(queries.said)
            fired = fire(unit, admitted)
            counted.append((fired.total, len(queries.said) - before))
            return fired

        monkeypatch.setattr(reminders, "fire", counting)
        async with (
            beside(tmp_path, postgres_server()) as place,
            place.replica("one", ScriptedModel([]), intake(access={"test": TEAM})) as replica,
        ):
            at = replica.world
            # The first one reads rows that are known later.
            for number, minutes in enumerate((2, *[4] * 4, *[6] * 40)):
                await hears(at, f"/remind in {minutes} minutes to walk {number} times")
            await goes_on(at, 400)
            assert len(reminded(at)) == 45
    (few,) = (said for total, said in counted if total == 4)
    (many,) = (said for total, said in counted if total == 40)
    assert many == few < 20
