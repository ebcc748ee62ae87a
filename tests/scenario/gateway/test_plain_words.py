"""Plain words where something waits, and words that are no command, as people type them."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA


def script(prompt: Prompt) -> Answer:
    """Asks, then says what it was told."""
    if prompt.results:
        return says(f"You said {prompt.results[-1]}.")
    return calls(use("ask_user", question="Which branch?"))


@pytest.mark.requirement("APR-10", "SLK-3")
async def test_plain_words_answer_the_open_question_wherever_two_people_talk_alone(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    # Then each message in Slack that is in no thread begins a session of its own.
    town.place.variables["GATEHOUSE_SLACK__REPLY_IN_THREAD"] = "always"
    async with fail_after(90), town.serving() as here:
        await town.on_slack("go")
        town.on_telegram("go")
        made = await here.client.post("/v1/sessions", {"channel": "web", "key": "desk"})
        path = f"/v1/sessions/{made['id']}/runs"
        await here.client.post(path, {"content": "go"})
        await here.feed.until(lambda: here.feed.kinds().count("question.asked") == 3)
        await town.slack.until(lambda: len(town.slack.posts(town.direct)) == 1)
        await town.on_slack("main, of Slack")
        town.on_telegram("main, of Telegram")
        said = await here.client.post(path, {"content": "main, of the page"})
        assert said["disposition"] == "answer"
        await here.feed.until(lambda: here.feed.kinds().count("run.completed") == 3)
        await town.slack.until(lambda: "You said main, of Slack." in town.slack_texts())
        await town.telegram.wait_until(
            lambda: "You said main, of Telegram." in town.telegram_texts()
        )
    asked = [prompt for prompt in town.model.prompts if not prompt.results]
    assert len(asked) == 3, "an answer is no message"


@pytest.mark.requirement("MSG-12")
async def test_words_that_are_no_command_and_those_that_are_are_answered_without_the_model(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("Well.")
    async with fail_after(90), town.serving():
        await town.on_slack("!stopp")
        await town.slack.until(lambda: len(town.slack_texts()) == 1)
        assert town.slack_texts()[0] == (
            "I do not know the command `!stopp`. Did you mean `!stop`? `!help` lists the "
            "commands that I know."
        )
        await town.slack.user_commands(town.direct, ANNA, "help")
        await town.slack.until(lambda: len(town.slack_texts()) == 2)
        assert "`!approve`" in town.slack_texts()[1]
        assert "/approve" not in town.slack_texts()[1]
        town.on_telegram("/start")
        town.on_telegram("/stopp")
        await town.telegram.wait_until(lambda: len(town.telegram_texts()) == 2)
        greeting, unknown = town.telegram_texts()
        assert greeting.startswith("Hello, Ann. ")
        assert "/stop?" in unknown
        assert town.model.prompts == []
        town.on_telegram("/etc/hosts is wrong")
        await town.telegram.wait_until(lambda: "Well." in town.telegram_texts())
