"""How long a failing model is waited for, and who is asked next (MSG-18)."""

import asyncio

import pytest

from runtime.agent.model_call import ModelCaller
from runtime.domain.errors import ModelRetry
from runtime.ports.model import ModelRequest
from tests.fakes.clock import FakeClock
from tests.fakes.model import ScriptedModel, ScriptedModels


class Watched(FakeClock):
    """A clock that keeps what was asked of it, and lets it pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


async def waits(*failures: ModelRetry) -> list[float]:
    """The waits between the attempts of one response."""
    clock = Watched()
    models = ScriptedModels(ScriptedModel([*failures, "at last"]))
    caller = ModelCaller(models, clock, jitter=lambda: 0.5)
    request = ModelRequest("", (), "", (), 100, "run_1", 1)
    async with asyncio.timeout(120):
        response = await caller.respond(request, chosen=None, on_text=lambda offset, text: None)
    assert response.text == "at last"
    return clock.waits


@pytest.mark.requirement("MSG-18")
async def test_without_a_word_of_the_provider_each_wait_doubles() -> None:
    assert await waits(*[ModelRetry("503")] * 4) == [0.625, 1.25, 2.5, 5.0]


@pytest.mark.requirement("MSG-18")
@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (3600.0, 60.0), (-5.0, 0.0)])
async def test_the_provider_is_given_the_time_it_asks_for_up_to_a_minute(
    asked: float, waited: float
) -> None:
    assert await waits(ModelRetry("429", after_s=asked)) == [waited]
