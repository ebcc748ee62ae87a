"""A person says hello and gets an answer in the right place, once, on every channel."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, says
from tests.wire.slack import ANNA, GENERAL, Delivery

PLACES = ("direct", "channel", "private", "group", "page")


def greets(prompt: Prompt) -> Answer:
    """Streams a greeting that names the place, and waits in the middle until all have asked."""
    place = next(one for one in PLACES if f"hello, {one}" in prompt.asked)
    return says("Hello ", "to the ", hold=place, ending=f"{place}.")


@pytest.mark.requirement("MSG-1", "MSG-2", "MSG-9", "OPS-3")
async def test_hello_is_answered_once_where_it_was_said(town: Town, fail_after: FailAfter) -> None:
    # One of its group that loads everything itself, see `nursery`.
    town.place.loaded = False
    town.model.plays = greets
    stored: list[object] = []

    async def look(delivery: Delivery) -> None:
        if delivery.event.get("user") != ANNA:
            return
        known = town.rows("SELECT identity FROM inputs")
        stored.append(sum(str(delivery.event["ts"]) in str(identity) for (identity,) in known))

    town.slack.on_ack(look)
    async with fail_after(60), town.serving() as here:
        page = await Page.open(here.client)
        await town.on_slack("hello, direct")
        asked = await town.slack.user_says(GENERAL, ANNA, "hello, channel", mention=True)
        town.on_telegram("hello, private")
        group = town.telegram.world.supergroup("Team", town.ann)
        town.telegram.user_says(group, town.ann, "@gatehouse_bot hello, group")
        run = await page.says("hello, page")

        for place in PLACES:
            await town.model.gate(place).entered.wait()
        await here.feed.until(lambda: here.feed.text(run) == "Hello to the ")
        await town.slack.until(lambda: statuses(town) >= {town.direct, GENERAL})
        await town.telegram.wait_until(lambda: typing_in(town) >= {town.chat.id, group.id})
        for place in PLACES:
            town.model.gate(place).opened.set()
        await here.feed.settled(5)

        assert town.slack_texts() == ["Hello to the direct."]
        in_thread = town.slack.posts(GENERAL, asked.ts)
        assert [post.visible_text for post in in_thread] == ["Hello to the channel."]
        assert len(town.slack.posts()) == 2
        assert town.telegram_texts() == ["Hello to the private."]
        assert [post.text for post in town.telegram.from_bot(group)] == ["Hello to the group."]
        assert await page.texts() == ["Hello to the page."]
        assert here.feed.text(run) == "Hello to the page."
        await town.slack.wait_for_quiet()
        assert stored, "Slack was told of nothing"
        assert set(stored) == {1}, "each message was in the database when Slack was told"


def statuses(town: Town) -> set[str]:
    """The conversations in which Slack shows that the agent works."""
    calls = town.slack.calls_to("assistant.threads.setStatus")
    return {str(call.channel) for call in calls}


def typing_in(town: Town) -> set[int]:
    """The chats in which Telegram shows that the bot types."""
    return {action.chat.id for action in town.telegram.state.actions}
