"""What a person sent as one, and a platform delivers in parts, is one turn (TEL-2, MSG-5)."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from runtime.domain.messages import InboundMessage
from runtime.domain.people import Sender
from runtime.domain.transcript import UserMessage
from runtime.ports.gatehouse import Accepted
from tests.fakes.clock import FakeClock
from tests.fakes.model import ScriptedModel
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OWNER, Setup, World


def timed(name: str, clock: FakeClock) -> Callable[[Setup], Setup]:
    """A queue mode under a clock that stands still."""
    return lambda setup: intake(queue_mode=name, debounce_ms=700)(replace(setup, clock=clock))


async def part(world: World, number: int, *, album: str | None) -> Accepted:
    """The owner's message with that number, as a part of an album."""
    message = InboundMessage(
        channel=world.chat.channel,
        account=world.chat.account,
        chat_id="D1",
        message_id=str(number),
        sender=Sender(id=OWNER, name="Olga"),
        text=f"picture {number}",
        album=album,
        received_at_ms=world.engine.parts.clock.now_ms(),
    )
    return await world.engine.intake.accept(message)


@pytest.mark.requirement("TEL-2", "MSG-5")
@pytest.mark.parametrize("name", ["followup", "collect", "steer", "interrupt"])
async def test_the_parts_of_an_album_are_answered_together(worlds: Worlds, name: str) -> None:
    clock, model = FakeClock(), ScriptedModel(["a garden", "another"])
    async with worlds(model, change=timed(name, clock)) as world:
        parts = [await part(world, number, album="77") for number in (1, 2, 3)]
        again = await part(world, 2, album="77")
        assert (len({one.run_id for one in parts}), again.disposition) == (1, "duplicate")
        await clock.advance(0.5)
        assert model.requests == [], "the parts may not all be there yet"
        async with asyncio.timeout(120):
            while not world.chat.sent:
                await clock.advance(0.5)
    heard = [m.text for m in model.requests[0].messages if isinstance(m, UserMessage)]
    assert heard == ["picture 1", "picture 2", "picture 3"]
    assert world.chat.texts() == ["a garden"]


@pytest.mark.requirement("TEL-2", "MSG-5")
async def test_another_album_and_another_message_have_runs_of_their_own(worlds: Worlds) -> None:
    clock = FakeClock()
    async with worlds(ScriptedModel(["ok"] * 3), change=timed("followup", clock)) as world:
        found = [
            await part(world, number, album=album)
            for number, album in enumerate(("77", "77", "78", None))
        ]
    first, second, third, fourth = (one.run_id for one in found)
    assert first == second
    assert len({first, third, fourth}) == 3
