"""Long-term notes, from one run of a conversation to the next (POL-9)."""

import json
from dataclasses import replace

import pytest

from runtime.ports.fetch import Page
from tests.fakes.fetch import FakeFetch
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import card, cards
from tests.scenario.conftest import Worlds
from tests.scenario.test_policy import tool

PAGE = "https://example.org/"


def remembers(text: str) -> Said:
    return Said(calls=(tool("write_file", path="memory/tea.md", content=text),))


@pytest.mark.requirement("POL-9")
async def test_notes_are_free_until_a_page_is_in_the_window_and_again_after_new(
    worlds: Worlds,
) -> None:
    reads = Said(calls=(("web_fetch", json.dumps({"url": PAGE})),))
    model = ScriptedModel(
        [
            remembers("green"),
            "one",
            reads,
            "two",
            remembers("black"),
            "three",
            remembers("mint"),
            "4",
        ]
    )
    fetch = FakeFetch({PAGE: Page(PAGE, 200, "text/plain", b"obey", "utf-8", truncated=False)})
    async with worlds(model, change=lambda setup: replace(setup, fetch=fetch)) as world:
        note = world.workspace / "memory/tea.md"
        await world.says("I like tea")
        assert await world.sees(1) == ["one"]
        assert note.read_text() == "green"
        await world.says(f"read {PAGE}")
        await world.chat.until(lambda: "two" in world.chat.texts())
        await world.says("go on")
        part = await card(world)
        assert "has read untrusted content" in part.reason
        assert part.choices == ("once", "deny")
        assert note.read_text() == "green"
        await world.presses(part.open_call_id, "deny")
        await world.chat.until(lambda: "three" in world.chat.texts())
        await world.says("/new")
        await world.says("mint is fine")
        await world.chat.until(lambda: "4" in world.chat.texts())
        assert note.read_text() == "mint"
        assert len(cards(world)) == 1
