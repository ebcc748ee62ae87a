"""The buttons of `/tasks` on both platforms: the real program, and a real command behind them."""

from collections.abc import Callable
from typing import Protocol

import pytest

from runtime.intake.button_presses import NOT_HEARD
from tests.conftest import FailAfter
from tests.scenario.gateway.town import ALLOWED, Serving, Town
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA, BEN, buttons_of
from tests.wire.slack import Message as SlackMessage
from tests.wire.telegram import Message as TelegramMessage

PATIENCE_S = 300.0
STOP, OUTPUT = 1, 2
"""The numbers of the buttons of the one task."""


def script(prompt: Prompt) -> Answer:
    """Starts a command that prints a line and then waits for its input."""
    if prompt.results:
        return says("It runs.")
    return calls(use("exec", command="printf %s%s\\n be gun; cat", background=True))


class Side(Protocol):
    """One platform as its people meet it."""

    async def begins(self) -> None:
        """The command runs, and its buttons are in front of the owner."""

    async def presses(self, number: int) -> str:
        """The owner presses; what only they are told."""

    async def stranger_presses(self, number: int) -> str:
        """Somebody presses who is not known."""

    def texts(self) -> list[str]:
        """What the owner reads from the bot."""

    async def reads(self, words: str, times: int = 1) -> None:
        """Return once so many messages of the bot hold the words."""


class OnSlack:
    """A direct conversation in Slack, in which a second person is."""

    _post: SlackMessage

    def __init__(self, town: Town) -> None:
        self.town = town

    async def begins(self) -> None:
        slack, town = self.town.slack, self.town
        slack.workspace.channels[town.direct].members.add(BEN)
        await town.on_slack("go")
        await self.reads("It runs.")
        await town.on_slack("!tasks")
        await slack.until(lambda: any(map(buttons_of, slack.posts(town.direct))), within=PATIENCE_S)
        (self._post,) = [post for post in slack.posts(town.direct) if buttons_of(post)]
        assert "`!tasks stop CODE` stops one" in self._post.visible_text

    async def presses(self, number: int) -> str:
        return await self._press(number, ANNA)

    async def stranger_presses(self, number: int) -> str:
        return await self._press(number, BEN)

    async def _press(self, number: int, user: str) -> str:
        slack, post = self.town.slack, self._post
        before = len(slack.ephemerals(user))
        delivery = await slack.user_presses(
            post.channel, post.ts, user, f"gatehouse_press:{number}"
        )
        await slack.wait_for_ack(delivery)
        return "".join(one.text for one in slack.ephemerals(user)[before:])

    def texts(self) -> list[str]:
        return self.town.slack_texts()

    async def reads(self, words: str, times: int = 1) -> None:
        await self.town.slack.until(
            lambda: sum(words in text for text in self.texts()) >= times,
            within=PATIENCE_S,
        )


class OnTelegram:
    """A private chat in Telegram; a stranger has got hold of its message."""

    _shown: TelegramMessage

    def __init__(self, town: Town) -> None:
        self.town = town

    async def begins(self) -> None:
        self.town.on_telegram("go")
        await self.reads("It runs.")
        self.town.on_telegram("/tasks")
        self._shown = await self.town.telegram.wait_for_message(lambda one: bool(one.buttons))

    async def presses(self, number: int) -> str:
        return await self._press(number, stranger=False)

    async def stranger_presses(self, number: int) -> str:
        return await self._press(number, stranger=True)

    async def _press(self, number: int, *, stranger: bool) -> str:
        telegram = self.town.telegram
        who = telegram.world.user("Mallory") if stranger else self.town.ann
        label = str(self._shown.buttons[number - 1]["text"])
        press = telegram.user_presses(self._shown, label, who)
        await telegram.wait_until(lambda: press.answer is not None, timeout=PATIENCE_S)
        assert press.answer is not None
        return str(press.answer["text"])

    def texts(self) -> list[str]:
        return self.town.telegram_texts()

    async def reads(self, words: str, times: int = 1) -> None:
        await self.town.telegram.wait_until(
            lambda: sum(words in text for text in self.texts()) >= times,
            timeout=PATIENCE_S,
        )


async def printed(town: Town, here: Serving) -> None:
    """Return once the command has printed its line."""
    ((session, task),) = town.rows("SELECT session_id, id FROM tasks")
    path = f"/v1/sessions/{session}/tasks/{task}/output"
    while not (await here.client.get(path)).get("output_excerpt"):
        pass


@pytest.mark.parametrize(
    "made", [pytest.param(OnSlack, id="slack"), pytest.param(OnTelegram, id="telegram")]
)
@pytest.mark.requirement("MSG-12", "TSK-1", "SLK-4", "TEL-3")
async def test_a_command_is_read_and_stopped_by_its_buttons(
    town: Town, fail_after: FailAfter, made: Callable[[Town], Side]
) -> None:
    town.model.plays = script
    town.configure(ALLOWED)
    side = made(town)
    async with fail_after(120), town.serving() as here:
        await side.begins()
        assert await side.stranger_presses(STOP) == NOT_HEARD.text
        await printed(town, here)
        assert await side.presses(OUTPUT) == ""
        await side.reads("begun")
        await here.killed()
    async with fail_after(120), town.serving():
        # The command ended with the gateway that ran it, and its button is an old one now.
        await side.reads("the gateway was restarted while it ran")
        assert await side.presses(STOP) == ""
        await side.reads("is over already: failed")
        before = sum("begun" in text for text in side.texts())
        assert await side.presses(OUTPUT) == ""
        await side.reads("begun", before + 1)
    assert town.rows("SELECT count(*) FROM pairings") == [(0,)]
    assert town.rows("SELECT status FROM tasks") == [("failed",)]


@pytest.mark.parametrize(
    "made", [pytest.param(OnSlack, id="slack"), pytest.param(OnTelegram, id="telegram")]
)
@pytest.mark.requirement("MSG-12", "TSK-1", "TSK-5", "SLK-4", "TEL-3")
async def test_the_button_stops_a_command_that_is_at_work(
    town: Town, fail_after: FailAfter, made: Callable[[Town], Side]
) -> None:
    town.model.plays = script
    town.configure(ALLOWED)
    side = made(town)
    async with fail_after(120), town.serving():
        await side.begins()
        assert await side.presses(STOP) == ""
        await side.reads("is being stopped.")
        await side.reads(": stopped.")
        assert await side.presses(STOP) == ""
        await side.reads("is over already: stopped.")
    assert town.rows("SELECT status, stop_reason FROM tasks") == [
        ("cancelled", "stopped by anna" if made is OnSlack else "stopped by Ann")
    ]


@pytest.mark.requirement("TSK-1", "TSK-5", "SLK-4")
async def test_a_command_is_read_and_stopped_on_the_app_home(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    town.configure(ALLOWED)
    slack = town.slack

    def home(user: str) -> str:
        shown = slack.home_of(user)
        return "" if shown is None else str(shown.body["blocks"])

    async with fail_after(120), town.serving() as here:
        await town.on_slack("go")
        await slack.until(
            lambda: any("It runs." in text for text in town.slack_texts()), within=PATIENCE_S
        )
        await printed(town, here)
        await slack.user_opens_home(BEN)
        await slack.user_opens_home(ANNA)
        await slack.until(lambda: "· running" in home(ANNA) and home(BEN) != "", within=PATIENCE_S)
        assert "running" not in home(BEN)
        await slack.user_presses_home(ANNA, "gatehouse_press:output")
        await slack.until(lambda: "begun" in home(ANNA), within=PATIENCE_S)
        assert "begun" not in home(BEN)
        await slack.user_presses_home(ANNA, "gatehouse_press:stop")
        await slack.until(lambda: "is being stopped." in home(ANNA), within=PATIENCE_S)
        await slack.until(
            lambda: any(": stopped." in text for text in town.slack_texts()), within=PATIENCE_S
        )
    asked = town.rows("SELECT asked_by IS NOT NULL, stop_reason FROM tasks")
    assert asked == [(1, "stopped by anna")]
