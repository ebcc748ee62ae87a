"""What comes faster than it is read: bounded in the client of the server, and told as a gap."""

import pytest

from runtime.bus import nats
from runtime.ports.bus import RUNS
from tests.conftest import FailAfter
from tests.contract.bus.world import World


@pytest.mark.requirement("SCALE-5", "MSG-21")
@pytest.mark.parametrize("shared_bus", ["nats"], indirect=True)
async def test_payloads_that_found_no_place_in_the_client_are_missed(
    shared_bus: World, fail_after: FailAfter, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = (await shared_bus.replica()).bus
    monkeypatch.setattr(nats, "MAX_PENDING", 1)
    there = (await shared_bus.replica()).bus
    async with fail_after(), there.subscribe(RUNS) as theirs:
        # One round trip brings all of these, before any of them is read.
        for number in range(200):
            here.publish(RUNS, {"number": number})
        gap = False
        while not gap:
            here.publish(RUNS, {})
            gap = (await anext(theirs)).gap
