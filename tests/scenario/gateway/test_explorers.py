"""Explorers over a `kill -9`: asked, sent out, killed with, and answered after all (SUB-8).

The card that shows them at work is one message before and after it, and ends above the answer.
"""

from collections.abc import Iterable

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA, GENERAL

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


class Places:
    """Where people ask: alone with the bot, in a thread of a channel, in a topic of a forum."""

    def __init__(self, town: Town) -> None:
        self.town = town
        world = town.telegram.world
        self.forum = world.supergroup("Team", town.ann, forum=True)
        self.topic = town.telegram.user_opens_topic(self.forum, town.ann, "Surroundings")
        self.thread = ""

    async def ask(self, text: str) -> None:
        """Everywhere; in the channel it is asked in a thread in which people talk already."""
        town = self.town
        await town.on_slack(text)
        talk = await town.slack.user_says(GENERAL, ANNA, "I wonder about this place.")
        self.thread = talk.ts
        await town.slack.user_says(GENERAL, ANNA, text, talk.ts, mention=True)
        town.on_telegram(text)
        called = f"@gatehouse_bot {text}"
        town.telegram.user_says(self.forum, town.ann, called, topic=self.topic)

    def texts(self) -> tuple[list[str], ...]:
        """What people read from the bot in each place."""
        town = self.town
        in_thread = town.slack.posts(GENERAL, self.thread)
        in_topic = town.telegram.from_bot(self.forum)
        return (
            [text.replace("*", "") for text in town.slack_texts()],
            [post.visible_text.replace("*", "") for post in in_thread],
            town.telegram_texts(),
            [post.text for post in in_topic if post.thread_id == self.topic],
        )

    async def until_all_have(self, beginning: str) -> None:
        """Until each place has a post that begins so; either platform may be the last."""

        def have(texts: Iterable[list[str]]) -> bool:
            return all(any(one.startswith(beginning) for one in there) for there in texts)

        await self.town.slack.until(lambda: have(self.texts()[:2]), within=90)
        await self.town.telegram.state.signal.until(lambda: have(self.texts()))


@pytest.mark.requirement("SUB-8", "SUB-23")
async def test_explorers_survive_a_kill_and_each_thread_gets_one_answer(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = explorers
    places = Places(town)
    async with fail_after(180):
        async with town.serving() as here:
            await places.ask("What is around us?")
            await town.model.gate("exploring").entered.wait()
            await places.until_all_have(SENT)
            # Nobody can ask Telegram for a post whose receipt was lost.
            kept = "SELECT count(*) FROM outbox WHERE kind = 'batch' AND state = 'sent'"
            while town.rows(kept) != [(4,)]:
                await here.feed.next()
            assert all(texts[0].startswith("3 subagents at work") for texts in places.texts())
            await here.killed()
        town.model.gate("exploring").opened.set()
        async with town.serving():
            await places.until_all_have(ANSWER)
            await places.until_all_have("3 subagents: 3 completed. ")
            for texts in places.texts():
                assert texts.count(SENT) == 1
                assert texts.count(ANSWER) == 1
                assert [text for text in texts if "subagents" in text] == [texts[0]]
            assert len(places.texts()[1]) == len(town.slack.posts(GENERAL)), "only in the thread"
            assert len(places.texts()[3]) == len(town.telegram.from_bot(places.forum))
            ended = "SELECT status, count(*) FROM agents GROUP BY status"
            assert town.rows(ended) == [("completed", 12)]
