"""Replies that grow in Slack through the whole gateway, also through one that is killed."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town
from tests.wire.openai import says
from tests.wire.slack import ANNA, GENERAL, Message

BEGINNING = "It took a good while to look at everything that you asked about, "
WHOLE = f"{BEGINNING}and now it is done."


async def growing(town: Town) -> Message:
    """The reply, while it is written."""
    return await town.slack.wait_for_post(
        lambda post: post.visible_text.startswith("It took a good"), within=60
    )


@pytest.mark.requirement("REN-4", "MSG-9")
async def test_a_reply_grows_in_its_thread_and_ends_as_one_message(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says(BEGINNING, hold="long", ending="and now it is done.")
    async with fail_after(90), town.serving():
        asked = await town.slack.user_says(GENERAL, ANNA, "plan!", mention=True)
        post = await growing(town)
        assert post.thread_ts == asked.ts
        assert post.streaming == "in_progress"
        town.model.gate("long").opened.set()
        await town.slack.until(lambda: post.visible_text == WHOLE, within=60)
        assert post.streaming == "completed"
        assert [each.ts for each in town.slack.posts(GENERAL)] == [post.ts]


@pytest.mark.requirement("REN-4", "MSG-9")
async def test_a_gateway_that_is_killed_while_a_reply_grows_ends_it_as_one_message(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says(BEGINNING, hold="long", ending="and now it is done.")
    async with fail_after(120):
        async with town.serving() as here:
            await town.slack.user_says(GENERAL, ANNA, "plan!", mention=True)
            post = await growing(town)
            await here.killed()
        assert post.streaming == "in_progress"
        town.model.gate("long").opened.set()
        async with town.serving() as here:
            await town.slack.until(lambda: post.visible_text == WHOLE, within=60)
            await here.feed.settled(1)
            assert [each.visible_text for each in town.slack.posts(GENERAL)] == [WHOLE]
