"""Explorers over a `kill -9`: asked, sent out, killed with, and answered after all (SUB-8)."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, calls, says, use

FINDS = {"the north": "Ice.", "the east": "Sand.", "the south": "Palms."}
SENT = "Three explorers are on their way."
ANSWER = "North: ice, east: sand, south: palms."


def explorers(prompt: Prompt) -> Answer:
    """The agent sends three out and says so; each finds something, once the gate is open."""
    if "You are the subagent" in prompt.text:
        place = next(one for one in FINDS if f"Explore {one}" in prompt.text)
        return says("", hold="exploring", ending=FINDS[place])
    if all(found in prompt.text for found in FINDS.values()):
        return says(ANSWER)
    if any(found in prompt.text for found in FINDS.values()):
        return says("Some are back, I wait for the rest.")
    if "accepted" in prompt.text:
        return says(SENT)
    agents = [{"task": f"Explore {place}."} for place in FINDS]
    return calls(use("sessions_spawn", mode="background", agents=agents))


@pytest.mark.requirement("SUB-8", "SUB-23")
async def test_explorers_survive_a_kill_and_the_thread_gets_one_answer(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = explorers
    slack, telegram = town.slack, town.telegram
    async with fail_after(120):
        async with town.serving() as here:
            await town.on_slack("What is around us?")
            town.on_telegram("What is around us?")
            await town.model.gate("exploring").entered.wait()
            await slack.until(lambda: SENT in town.slack_texts())
            await telegram.state.signal.until(lambda: SENT in town.telegram_texts())
            await here.killed()
        town.model.gate("exploring").opened.set()
        async with town.serving():
            await slack.until(lambda: ANSWER in town.slack_texts(), within=90)
            await telegram.state.signal.until(lambda: ANSWER in town.telegram_texts())
            for texts in (town.slack_texts(), town.telegram_texts()):
                assert texts.count(SENT) == 1
                assert texts.count(ANSWER) == 1
            ended = "SELECT status, count(*) FROM agents GROUP BY status"
            assert town.rows(ended) == [("completed", 6)]
