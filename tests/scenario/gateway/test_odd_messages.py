"""Messages at the edge: as long as they come, nothing but signs, nothing but a file."""

import base64

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, says
from tests.wire.slack import ANNA, Upload

THUMB = "👍🏽"
LONGEST = {"slack": 40_000, "telegram": 4_096, "page": 100_000}
"""Characters of a message: what the platforms take, and a hundred thousand over HTTP."""


def long_text(place: str) -> str:
    """A text of the longest kind, of which every part can be told from every other."""
    words = (f"{place}-{number:06d} " for number in range(LONGEST[place] // 8))
    return "".join(words)[: LONGEST[place]].rstrip()


def answer(prompt: Prompt) -> Answer:
    """The same for everything."""
    return says("I have read it.")


@pytest.mark.requirement("MSG-1", "MSG-9")
async def test_the_longest_messages_reach_the_model_whole(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = answer
    async with fail_after(90), town.serving() as here:
        page = await Page.open(here.client)
        await town.on_slack(long_text("slack"))
        town.on_telegram(long_text("telegram"))
        await page.says(long_text("page"))
        await here.feed.settled(3)
        for place in LONGEST:
            whole = long_text(place)
            assert any(whole in prompt.asked for prompt in town.model.prompts), place
        expected = ["I have read it."]
        assert (town.slack_texts(), town.telegram_texts()) == (expected, expected)
        assert await page.texts() == expected


@pytest.mark.requirement("MSG-1", "MSG-9")
async def test_signs_alone_and_files_alone_are_messages_like_others(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = answer
    async with fail_after(90), town.serving() as here:
        page = await Page.open(here.client)
        await town.on_slack(THUMB)
        town.on_telegram(THUMB)
        await page.says(THUMB)
        await here.feed.settled(3)
        assert len(town.model.about(THUMB)) == 3

        await town.slack.user_says(
            town.direct, ANNA, "", files=[Upload("slack-report.txt", b"of slack")]
        )
        town.telegram.user_sends_document(
            town.chat, town.ann, b"of telegram", filename="telegram-report.txt"
        )
        content = base64.b64encode(b"of the page").decode()
        file = {"type": "inline_asset", "name": "page-report.txt", "data": content}
        await page.sends({"input_items": [{**file, "media_type": "text/plain"}]})
        await here.feed.settled(6)
        for place in LONGEST:
            assert town.model.about(f"{place}-report.txt"), "the model is told of the file"
        expected = ["I have read it."] * 2
        assert (town.slack_texts(), town.telegram_texts()) == (expected, expected)
        assert await page.texts() == expected
