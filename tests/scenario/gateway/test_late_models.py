"""A model server that starts after the gateway, goes, and comes back with another model (MDL-7)."""

import socket
from collections.abc import Callable

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Town
from tests.wire.openai import ModelServer, Prompt
from tests.wire.raw_answers import Raw, answer, refusal

pytestmark = pytest.mark.requirement("MDL-7")

AWAY = "(the run failed)"


def free_port() -> int:
    """A port where nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_a_server_that_comes_later_and_changes_its_model_needs_no_restart(
    town: Town, fail_after: FailAfter
) -> None:
    port = free_port()
    town.place.variables["GATEHOUSE_MODELS__DEFAULT"] = ""
    town.place.variables["OPENAI_BASE_URL"] = f"http://127.0.0.1:{port}/v1"
    asked: list[object] = []

    def knows(name: str) -> Callable[[Prompt], Raw]:
        def answers(prompt: Prompt) -> Raw:
            asked.append(prompt.body["model"])
            if asked[-1] != name:
                return refusal(f"model '{asked[-1]}' not found", 404, code="model_not_found")
            return answer(f"This is {name}.")

        return answers

    async def talks(page: Page, words: str) -> str:
        run = await page.says(words)
        if await here.feed.ended(run) != "run.completed":
            return AWAY
        return (await page.texts())[-1]

    async with fail_after(120), town.serving() as here:
        page = await Page.open(here.client)
        assert await talks(page, "hello") == AWAY
        for name in ("early", "late"):
            server = ModelServer(port)
            server.models, server.plays = [name], knows(name)
            async with server.running():
                assert await talks(page, f"hello {name}") == f"This is {name}."
        assert asked == ["early", "early", "late"]
        assert await talks(page, "hello again") == AWAY
