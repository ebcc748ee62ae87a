"""`kill -9` at the worst moments, and a restart: one reply, at most one effect, nothing lost."""

import pytest

from runtime.domain.json_fields import objects_of
from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import ALLOWED, Town
from tests.wire.openai import Answer, Prompt, calls, says, use

PLACES = ("slack", "telegram", "page")


def place_of(prompt: Prompt) -> str:
    """Which of the three conversations a request belongs to."""
    return next(one for one in PLACES if f"from {one}" in prompt.asked)


async def asked_everywhere(town: Town, page: Page) -> None:
    """The same wish on each channel."""
    await town.on_slack("please, from slack")
    town.on_telegram("please, from telegram")
    await page.says("please, from page")


@pytest.mark.requirement("MSG-7", "MSG-9", "OPS-10")
async def test_a_kill_while_the_model_streams_ends_in_one_whole_reply_everywhere(
    town: Town, fail_after: FailAfter
) -> None:
    # One of its group that loads everything itself, see `nursery`.
    town.place.loaded = False
    town.model.plays = lambda prompt: says(
        "A whole ", "answer ", hold=place_of(prompt), ending=f"for {place_of(prompt)}."
    )
    async with fail_after(90):
        async with town.serving() as here:
            page = await Page.open(here.client)
            await asked_everywhere(town, page)
            for place in PLACES:
                await town.model.gate(place).entered.wait()
            await here.killed()
        for place in PLACES:
            town.model.gate(place).opened.set()
        async with town.serving() as here:
            await here.feed.settled(3)
            page = Page(here.client, page.session_id)
            assert town.slack_texts() == ["A whole answer for slack."]
            assert town.telegram_texts() == ["A whole answer for telegram."]
            assert await page.texts() == ["A whole answer for page."]
            for run_id in here.feed.runs():
                assert here.feed.kinds(run_id).count("run.completed") == 1
                assert here.feed.kinds(run_id).count("delivery.sent") == 1


@pytest.mark.requirement("MSG-7", "MSG-8", "MSG-9", "OPS-10")
async def test_a_kill_while_a_command_runs_has_its_effect_once_and_the_model_is_told(
    town: Town, fail_after: FailAfter
) -> None:
    town.configure(ALLOWED)

    def script(prompt: Prompt) -> Answer:
        place = place_of(prompt)
        if not prompt.results:
            effect = f"echo {place} >> effects"
            return calls(use("exec", command=town.commands.command(place, effect)))
        return says(f"I cannot tell for {place}.")

    town.model.plays = script
    async with fail_after(90):
        async with town.serving() as here:
            page = await Page.open(here.client)
            await asked_everywhere(town, page)
            await town.commands.arrived(*PLACES)
            await here.killed()
        await town.commands.left(*PLACES)
        town.commands.open()
        async with town.serving() as here:
            await here.feed.settled(3)
            page = Page(here.client, page.session_id)
            assert town.slack_texts() == ["I cannot tell for slack."]
            assert town.telegram_texts() == ["I cannot tell for telegram."]
            assert await page.texts() == ["I cannot tell for page."]
        assert sorted(town.lines("effects")) == sorted(PLACES)
        assert town.commands.began == dict.fromkeys(PLACES, 1)
        told = [prompt.results[-1] for prompt in town.model.prompts if prompt.results]
        assert len(told) == 3
        assert all("outcome is unknown" in result for result in told)


@pytest.mark.requirement("MSG-7", "MSG-8")
async def test_a_kill_between_two_calls_repeats_neither(town: Town, fail_after: FailAfter) -> None:
    """The first call of the step was over and kept, the second ran: one is known, one is not."""
    town.configure(ALLOWED)

    def script(prompt: Prompt) -> Answer:
        if not prompt.results:
            return calls(
                use("exec", command="echo first >> effects"),
                use("edit_file", path="notes.txt", old_text="one", new_text="two"),
                use("exec", command=town.commands.command("slow", "echo last >> effects")),
            )
        return says("Done as far as I know.")

    town.model.plays = script
    async with fail_after(90):
        async with town.serving() as here:
            (town.place.workspace / "files/notes.txt").write_text("one one\n")
            page = await Page.open(here.client)
            run = await page.says("do three things")
            await town.commands.arrived("slow")
            await here.killed()
        await town.commands.left("slow")
        async with town.serving() as here:
            assert await here.feed.ended(run) == "run.completed"
            assert await Page(here.client, page.session_id).texts() == ["Done as far as I know."]
        assert town.lines("effects") == ["first", "last"]
        first, edited, last = town.model.prompts[-1].results
        assert "outcome is unknown" not in first + edited
        assert "outcome is unknown" in last


@pytest.mark.requirement("MSG-9", "MSG-11", "OPS-10")
async def test_a_kill_between_the_post_and_its_receipt_doubles_nothing(
    town: Town, fail_after: FailAfter
) -> None:
    """Slack is asked what of the reply is there; of Telegram nobody knows, and it is shown so."""
    long = " ".join(f"word-{number:05d}" for number in range(2_500))
    town.model.plays = lambda prompt: says(long if "slack" in prompt.asked else "Said once.")
    posted = town.slack.hold("chat.postMessage")
    sending = town.telegram.hold("sendMessage")
    async with fail_after(90):
        async with town.serving() as here:
            await town.on_slack("from slack")
            town.on_telegram("from telegram")
            await posted.entered.wait()
            await sending.arrived.wait()
            await here.killed()
        posted.release()
        sending.release()
        await town.telegram.wait_until(lambda: town.telegram_texts() == ["Said once."])
        async with town.serving() as here:
            await here.feed.settled(2)
            ends = [kind for kind in here.feed.kinds() if kind.startswith("delivery.")]
            assert sorted(ends) == ["delivery.sent", "delivery.unknown"]
            problems = await here.client.get("/v1/deliveries/problems")
            (problem,) = objects_of(problems, "items")
            assert (problem["channel"], problem["state"]) == ("telegram", "unknown")
            assert "may have been sent" in str(problem["reason"])
        posts = town.slack_texts()
        assert len(posts) == 3, "the first was posted before the kill, the others after it"
        assert " ".join(posts).split() == long.split()
        assert len(town.slack.calls_to("chat.postMessage")) == 3
        assert town.telegram_texts() == ["Said once."]
        assert len(town.telegram.calls_to("sendMessage")) == 1
