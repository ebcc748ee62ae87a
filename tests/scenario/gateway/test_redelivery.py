"""The same message again after a restart, and messages from while the gateway was away."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Town
from tests.wire.openai import says


@pytest.mark.requirement("MSG-1", "MSG-2")
async def test_a_message_that_comes_again_after_a_restart_is_answered_once(
    town: Town, fail_after: FailAfter
) -> None:
    """The envelope whose acknowledgement was lost, an update, a retry of the page, a replay."""
    town.model.plays = lambda prompt: says(f"Answer {prompt.asked.count('again') + 1}.")
    async with fail_after(90):
        async with town.serving() as here:
            page = await Page.open(here.client)
            said = await town.on_slack("first")
            written = town.on_telegram("first")
            run = await page.says("first", key="made-up-key-1")
            await here.feed.settled(3)
            (delivery,) = said.deliveries
            await town.slack.wait_for_ack(delivery)
            await here.killed()
        delivery.acked = False  # as if the acknowledgement had been lost on its way
        town.telegram.redeliver(written)
        async with town.serving() as here:
            page = Page(here.client, page.session_id)
            assert await page.says("first", key="made-up-key-1") == run
            await town.slack.wait_for_ack(delivery)
            await town.slack.wait_for_ack(await town.slack.duplicate(delivery))
            assert delivery.retries == 1
            await town.on_slack("again")
            town.on_telegram("again")
            await page.says("again", key="made-up-key-2")
            await here.feed.settled(6)
            await town.telegram.wait_until(lambda: not town.telegram.queue.pending)
            expected = ["Answer 1.", "Answer 2."]
            assert town.slack_texts() == expected
            assert town.telegram_texts() == expected
            assert await page.texts() == expected


@pytest.mark.requirement("MSG-1", "OPS-10")
async def test_sigterm_finishes_the_turns_and_what_comes_meanwhile_is_answered_later(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("Half ", hold="half", ending="and whole.")
    async with fail_after(90):
        async with town.serving() as here:
            page = await Page.open(here.client)
            await town.on_slack("one")
            town.on_telegram("one")
            await page.says("one")
            await town.model.gate("half").entered.wait()
            await here.feed.until(lambda: here.feed.kinds().count("run.started") == 3)
            await here.stops()
            await town.slack.wait_for_sockets(0)
            await town.on_slack("two")
            town.model.gate("half").opened.set()
            assert await here.program.ended() == 0
            assert "Traceback" not in here.program.transcript
        town.on_telegram("two")
        assert town.slack_texts() == ["Half and whole."]
        assert town.telegram_texts() == ["Half and whole."]
        town.model.plays = lambda prompt: says("The second one.")
        async with town.serving() as here:
            await here.feed.settled(5)
            page = Page(here.client, page.session_id)
            assert town.slack_texts() == ["Half and whole.", "The second one."]
            assert town.telegram_texts() == ["Half and whole.", "The second one."]
            assert await page.texts() == ["Half and whole."]
            for run_id in here.feed.runs():
                assert here.feed.kinds(run_id).count("run.started") == 1, "each ran once"
