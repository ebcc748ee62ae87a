"""An approval that was asked before a crash and is given after it."""

import re

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, calls, says, use

PLACES = ("slack", "telegram", "page")


def script(prompt: Prompt) -> Answer:
    """Wants a command first, then says what came of it."""
    place = next(one for one in PLACES if f"from {one}" in prompt.asked)
    if not prompt.results:
        return calls(use("exec", command=f"echo {place} >> effects"))
    return says(f"It is done, {place}.")


@pytest.mark.requirement("APR-4", "MSG-7")
async def test_an_approval_from_before_a_kill_is_given_after_it_and_its_call_runs_once(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(90):
        async with town.serving() as here:
            page = await Page.open(here.client)
            await town.on_slack("please, from slack")
            town.on_telegram("please, from telegram")
            run = await page.says("please, from page")
            await here.feed.until(lambda: here.feed.kinds().count("delivery.sent") == 3)
            assert here.feed.kinds().count("approval.requested") == 3
            assert "echo slack " in town.slack_texts()[0]
            assert "echo telegram " in town.telegram_texts()[0]
            await here.killed()
        assert town.lines("effects") == []
        async with town.serving() as here:
            page = Page(here.client, page.session_id)
            again = f"!approve {code_in(town.slack_texts()[0])}"
            await town.on_slack(again)
            town.on_telegram(f"/approve {code_in(town.telegram_texts()[0])}")
            await page.approve(run)
            for number in range(len(PLACES)):
                run_id = await here.feed.run(number)
                assert await here.feed.ended(run_id) == "run.completed"
            await town.slack.until(lambda: len(town.slack_texts()) == 3)
            await town.telegram.wait_until(lambda: len(town.telegram_texts()) == 3)
            await town.slack.until(lambda: "UTC" in town.slack_texts()[0])
            await town.telegram.wait_until(lambda: "UTC" in town.telegram_texts()[0])
            decided(town.slack_texts(), "anna", "slack")
            decided(town.telegram_texts(), "Ann", "telegram")
            assert sorted(town.lines("effects")) == sorted(PLACES)
            (card,) = [one["card"] for one in await page.messages() if one["kind"] == "card"]
            assert isinstance(card, dict)
            assert re.fullmatch(r"Allowed by the owner \(.+ UTC\)", str(card["outcome"]))
            await town.on_slack(again)
            await town.slack.until(lambda: len(town.slack_texts()) == 4)
            assert town.slack_texts()[3] == "This was answered already."
        assert sorted(town.lines("effects")) == sorted(PLACES)


def decided(texts: list[str], who: str, place: str) -> None:
    """The card says who decided and when, the command was answered, and then came the reply."""
    card, answer, reply = texts
    assert re.search(rf"Allowed by {who} \(\d{{4}}-\d\d-\d\d \d\d:\d\d UTC\)", card), card
    assert "approve" not in card, "a card that was decided offers nothing any more"
    assert answer == f"Allowed by {who}."
    assert reply == f"It is done, {place}."


def code_in(card: str) -> str:
    """The code that a card names."""
    found = re.search(r"approve (\w+)", card)
    assert found, card
    return found[1]
