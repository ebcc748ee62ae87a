"""Cards in Slack through the whole gateway: pressed by the right person, by another, too late."""

import re

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Serving, Town
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA, BEN, Message, buttons_of
from tests.wire.slack.state import texts_in

ONCE, DENY, WRITE = "gatehouse_press:once", "gatehouse_press:deny", "gatehouse_write"


def script(prompt: Prompt) -> Answer:
    """Wants a command first, or asks; then says what came of it."""
    if prompt.results:
        return says("It is done.")
    if "ask me" in prompt.asked:
        return calls(use("ask_user", question="Which branch?", options=["main", "next"]))
    return calls(use("exec", command="echo ran >> effects"))


def by_http(town: Town) -> None:
    """Slack calls the gateway: no socket, a signing secret, one address."""
    del town.place.variables["SLACK_APP_TOKEN"]
    town.place.variables["SLACK_SIGNING_SECRET"] = town.slack.install.signing_secret


async def opened(town: Town, here: Serving) -> None:
    if "SLACK_APP_TOKEN" not in town.place.variables:
        town.slack.use_http(f"{await here.program.url()}/hooks/slack")


async def card(town: Town, place: int = 0) -> Message:
    """The card, once Anna sees it."""
    await town.slack.until(lambda: len(town.slack.posts(town.direct)) > place)
    post = town.slack.posts(town.direct)[place]
    assert buttons_of(post)
    return post


async def press(town: Town, post: Message, user: str, action: str) -> str:
    """What only the person who pressed reads."""
    before = len(town.slack.ephemerals(user))
    await town.slack.user_presses(post.channel, post.ts, user, action)
    await town.slack.until(lambda: len(town.slack.ephemerals(user)) > before)
    return town.slack.ephemerals(user)[-1].text


@pytest.mark.requirement("SLK-1", "SLK-4", "APR-1", "APR-2")
@pytest.mark.parametrize("way", ["socket", "http"])
async def test_an_approval_is_given_by_a_button_once_and_by_nobody_else(
    town: Town, fail_after: FailAfter, way: str
) -> None:
    town.model.plays = script
    if way == "http":
        by_http(town)
    # The presence of another person in the conversation: anybody may press what they see.
    town.slack.workspace.channels[town.direct].members.add(BEN)
    async with fail_after(90), town.serving() as here:
        await opened(town, here)
        await town.on_slack("please")
        post = await card(town)
        assert "Only an approver" in await press(town, post, BEN, ONCE)
        assert town.lines("effects") == []
        assert "Allowed by anna" in await press(town, post, ANNA, ONCE)
        await town.slack.until(lambda: "It is done." in town.slack_texts())
        await town.slack.until(lambda: not buttons_of(post))
        assert re.search(r"Allowed by anna \(.+ UTC\)", post.visible_text)
    assert town.lines("effects") == ["ran"]


@pytest.mark.requirement("SLK-4", "APR-4")
async def test_a_button_works_after_a_kill_and_says_so_when_it_is_too_late(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(90):
        async with town.serving() as here:
            await town.on_slack("please")
            post = await card(town)
            # What it shows after it was decided is what Slack kept of it.
            blocks = [dict(block) for block in post.blocks]
            await here.killed()
        async with town.serving() as here:
            assert "Allowed by anna" in await press(town, post, ANNA, ONCE)
            await town.slack.until(lambda: "It is done." in town.slack_texts())
            await town.slack.until(lambda: not buttons_of(post))
            post.blocks = blocks
            assert "already" in await press(town, post, ANNA, ONCE)
            assert "already" in await press(town, post, ANNA, DENY)
    assert town.lines("effects") == ["ran"]


@pytest.mark.requirement("SLK-4", "APR-6")
async def test_a_question_is_answered_by_a_button(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = script
    async with fail_after(90), town.serving():
        await town.on_slack("ask me")
        post = await card(town)
        assert buttons_of(post) == ["main", "next", "Something else..."]
        await press(town, post, ANNA, "gatehouse_press:1")
        await town.slack.until(lambda: "It is done." in town.slack_texts())
        await town.slack.until(lambda: not buttons_of(post))


@pytest.mark.requirement("SLK-4")
async def test_a_card_that_was_deleted_can_still_be_denied_and_stays_away(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(90), town.serving():
        await town.on_slack("please")
        post = await card(town)
        delivery = await town.slack.user_presses(post.channel, post.ts, ANNA, DENY)
        post.deleted = True
        await town.slack.wait_for_ack(delivery)
        await town.slack.until(lambda: "It is done." in town.slack_texts())
        assert town.lines("effects") == []
        assert town.rows("select count(*) from outbox where state in ('dead', 'unknown')") == [(0,)]


@pytest.mark.requirement("SLK-4", "APR-1")
async def test_a_denial_s_reason_is_written_into_a_form_and_reaches_the_agent(
    town: Town, fail_after: FailAfter
) -> None:
    heard: list[str] = []

    def play(prompt: Prompt) -> Answer:
        heard.extend(str(result) for result in prompt.results)
        return script(prompt)

    town.model.plays = play
    async with fail_after(90), town.serving():
        await town.on_slack("please")
        await written(town, await card(town), "Not on a Friday.")
        await town.slack.until(lambda: "It is done." in town.slack_texts())
    assert "Not on a Friday." in heard[0]
    assert town.lines("effects") == []


@pytest.mark.requirement("SLK-4", "APR-6")
async def test_a_question_is_answered_in_own_words(town: Town, fail_after: FailAfter) -> None:
    heard: list[str] = []

    def play(prompt: Prompt) -> Answer:
        heard.extend(str(result) for result in prompt.results)
        return script(prompt)

    town.model.plays = play
    async with fail_after(90), town.serving():
        await town.on_slack("ask me")
        await written(town, await card(town), "the old one")
        await town.slack.until(lambda: "It is done." in town.slack_texts())
    assert "the old one" in heard[0]


async def written(town: Town, post: Message, words: str) -> None:
    """Anna opens the card's form, writes into it and sends it."""
    await town.slack.user_presses(post.channel, post.ts, ANNA, WRITE)
    await town.slack.until(lambda: bool(town.slack.open_modals(ANNA)))
    (modal,) = town.slack.open_modals(ANNA)
    typed = {"gatehouse_text": {"gatehouse_text": words}}
    sent = await town.slack.user_submits(modal, typed)
    assert await town.slack.modal_answered(modal, sent) == {}


@pytest.mark.requirement("SLK-4")
async def test_the_home_shows_the_card_and_answers_it(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = script
    async with fail_after(90), town.serving():
        await town.on_slack("please")
        post = await card(town)
        await town.slack.user_opens_home(ANNA)
        await town.slack.until(lambda: "echo ran" in seen_at_home(town, ANNA))
        await town.slack.user_presses_home(ANNA, ONCE)
        await town.slack.until(lambda: "Allowed by anna" in seen_at_home(town, ANNA))
        await town.slack.until(lambda: "It is done." in town.slack_texts())
        await town.slack.until(lambda: not buttons_of(post))
        await town.slack.user_opens_home(BEN)
        await town.slack.until(lambda: "I do not know you yet" in seen_at_home(town, BEN))
        assert "please" not in seen_at_home(town, BEN)
    assert town.lines("effects") == ["ran"]


def seen_at_home(town: Town, user: str) -> str:
    home = town.slack.home_of(user)
    return "" if home is None else "\n".join(texts_in(home.body["blocks"]))
