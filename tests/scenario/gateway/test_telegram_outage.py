"""Telegram goes away, and delivers again what it had delivered, under other numbers."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.test_telegram import card
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, calls, says, use

COUNTS = (
    "SELECT count(*) FROM inputs",
    "SELECT count(*) FROM runs",
    "SELECT count(*) FROM open_calls",
    "SELECT count(*) FROM outbox",
)


def script(prompt: Prompt) -> Answer:
    """Says that it heard, and wants a command where that is a request for one."""
    if "command" in prompt.asked and not prompt.results:
        return calls(use("exec", command="echo ran >> effects"))
    return says("I heard you.")


@pytest.mark.parametrize("first", [1, 990_000])
@pytest.mark.requirement("MSG-1", "MSG-2", "TEL-1", "APR-4")
async def test_messages_edits_and_presses_that_come_again_under_other_numbers_count_once(
    town: Town, fail_after: FailAfter, first: int
) -> None:
    town.model.plays = script
    telegram = town.telegram
    async with fail_after(120), town.serving() as here:
        said = town.on_telegram("hello")
        await here.feed.settled(1)
        telegram.user_edits(said, "hello, edited")
        town.on_telegram("a command please")
        shown = await card(town)
        telegram.user_presses(shown, "Allow once")
        await here.feed.settled(2)
        await telegram.wait_until(lambda: not telegram.queue.pending)
        before = [town.rows(query) for query in COUNTS]

        await telegram.down()
        await here.program.says("telegram.not_receiving")
        telegram.queue.pending = list(telegram.queue.history)
        town.on_telegram("are you back?")
        telegram.queue.renumber(first)
        await telegram.up()
        await here.feed.settled(3)
        await telegram.wait_until(lambda: not telegram.queue.pending)
        after = [town.rows(query) for query in COUNTS]
    assert town.lines("effects") == ["ran"]
    assert town.telegram_texts().count("I heard you.") == 3
    new = [int(str(b[0][0])) - int(str(a[0][0])) for a, b in zip(before, after, strict=True)]
    assert new == [1, 1, 0, 1], "one message, one run, no card and one reply are new"
