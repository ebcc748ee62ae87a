"""Buttons on both platforms: pressed by another, twice, after a restart, too late, on nothing."""

import copy
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TypeAlias

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA, BEN, buttons_of
from tests.wire.slack import Message as SlackMessage
from tests.wire.telegram import Message as TelegramMessage

PATIENCE_S = 300.0
KINDS = ["approval", "question"]
TRICKY = "<!channel> *Ann* <b>x</b> [y](tg://user?id=1)"


def script(prompt: Prompt) -> Answer:
    """Wants a command or asks, by what it is told; then says what came of it."""
    if prompt.results:
        return says(f"It came to: {prompt.results[-1]}")
    if "question" in prompt.asked:
        return calls(use("ask_user", question="Which branch?", options=["main", "next"]))
    return calls(use("exec", command="echo ran >> effects"))


class Side(ABC):
    """One platform as its people meet it. The card is kept as it was when it could be pressed."""

    def __init__(self, town: Town) -> None:
        self.town = town

    @abstractmethod
    async def asks(self, kind: str) -> None:
        """The owner writes what makes the agent show a card, and the card is there."""

    @abstractmethod
    async def presses(self, kind: str, *, stranger: bool = False) -> str:
        """Somebody presses the card's first button as it was; what only they are told."""

    @abstractmethod
    async def presses_deleted(self, kind: str) -> None:
        """The owner presses while the message goes away."""

    @abstractmethod
    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to be seen."""

    @abstractmethod
    def texts(self) -> list[str]:
        """What the owner reads from the bot."""

    @abstractmethod
    def is_open(self) -> bool:
        """Whether the card still has buttons."""

    async def answered(self) -> str:
        """The agent's last word, once it is said."""
        await self.until(lambda: any("It came to" in text for text in self.texts()))
        return next(text for text in self.texts() if "It came to" in text)


class OnSlack(Side):
    """A direct conversation in Slack, in which a second person is."""

    _post: SlackMessage

    async def asks(self, kind: str) -> None:
        slack, town = self.town.slack, self.town
        slack.workspace.channels[town.direct].members.add(BEN)
        await town.on_slack(f"an {kind} please")
        await slack.until(lambda: any(map(buttons_of, slack.posts(town.direct))))
        (self._post,) = [post for post in slack.posts(town.direct) if buttons_of(post)]
        self._blocks = [dict(block) for block in self._post.blocks]

    async def presses(self, kind: str, *, stranger: bool = False) -> str:
        slack, user = self.town.slack, BEN if stranger else ANNA
        before, shown = len(slack.ephemerals(user)), self._post.blocks
        self._post.blocks = self._blocks
        await slack.user_presses(self._post.channel, self._post.ts, user, _first_action(kind))
        self._post.blocks = shown
        await slack.until(lambda: len(slack.ephemerals(user)) > before)
        return slack.ephemerals(user)[-1].text

    async def presses_deleted(self, kind: str) -> None:
        post = self._post
        await self.town.slack.user_presses(post.channel, post.ts, ANNA, _first_action(kind))
        post.deleted = True

    async def until(self, condition: Callable[[], bool]) -> None:
        await self.town.slack.until(condition, within=PATIENCE_S)

    def texts(self) -> list[str]:
        return self.town.slack_texts()

    def is_open(self) -> bool:
        return bool(buttons_of(self._post))


class OnTelegram(Side):
    """A private chat in Telegram; a stranger has got hold of its card."""

    _shown: TelegramMessage

    async def asks(self, kind: str) -> None:
        self.town.on_telegram(f"an {kind} please")
        self._shown = await self.town.telegram.wait_for_message(lambda one: bool(one.buttons))
        self._seen = copy.copy(self._shown)

    async def presses(self, kind: str, *, stranger: bool = False) -> str:
        telegram = self.town.telegram
        who = telegram.world.user("Mallory") if stranger else self.town.ann
        press = telegram.user_presses(self._seen, _first_label(kind), who)
        await telegram.wait_until(lambda: press.answer is not None)
        assert press.answer is not None
        return str(press.answer["text"])

    async def presses_deleted(self, kind: str) -> None:
        self._shown.deleted = True
        self.town.telegram.user_presses(self._seen, _first_label(kind), self.town.ann)

    async def until(self, condition: Callable[[], bool]) -> None:
        await self.town.telegram.wait_until(condition, timeout=PATIENCE_S)

    def texts(self) -> list[str]:
        return self.town.telegram_texts()

    def is_open(self) -> bool:
        return bool(self._shown.buttons)


def _first_action(kind: str) -> str:
    return "gatehouse_press:once" if kind == "approval" else "gatehouse_press:0"


def _first_label(kind: str) -> str:
    return "Allow once" if kind == "approval" else "1. main"


def runs_out(town: Town) -> None:
    """The time of every open card is over, as if all of it had passed."""
    with closing(sqlite3.connect(town.place.home / "gatehouse.db")) as database, database:
        database.execute("UPDATE open_calls SET expires_ms = 1 WHERE state = 'open'")


Made: TypeAlias = Callable[[Town], Side]
both = pytest.mark.parametrize(
    "made", [pytest.param(OnSlack, id="slack"), pytest.param(OnTelegram, id="telegram")]
)


@both
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("SLK-4", "TEL-3", "APR-2", "APR-4", "APR-6")
async def test_the_wrong_person_then_a_restart_then_the_right_one_twice(
    town: Town, fail_after: FailAfter, made: Made, kind: str
) -> None:
    town.model.plays = script
    side = made(town)
    async with fail_after(90):
        async with town.serving() as here:
            await side.asks(kind)
            assert "Only an approver" in await side.presses(kind, stranger=True)
            assert side.is_open()
            await here.killed()
        async with town.serving():
            assert "already" not in await side.presses(kind)
            assert "already" in await side.presses(kind)
            answer = await side.answered()
            assert kind == "approval" or "main" in answer
            await side.until(lambda: not side.is_open())
            assert "already" in await side.presses(kind)
    assert town.lines("effects") == (["ran"] if kind == "approval" else [])
    assert sum("It came to" in text for text in side.texts()) == 1


@both
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("SLK-4", "TEL-3", "APR-5", "APR-6")
async def test_a_press_after_the_time_of_the_card_decides_nothing(
    town: Town, fail_after: FailAfter, made: Made, kind: str
) -> None:
    town.model.plays = script
    side = made(town)
    async with fail_after(90), town.serving():
        await side.asks(kind)
        runs_out(town)
        await side.answered()
        await side.until(lambda: not side.is_open())
        assert "expired already" in await side.presses(kind)
        assert town.rows("SELECT state, answered_by FROM open_calls") == [("expired", None)]
    assert town.lines("effects") == []
    assert sum("It came to" in text for text in side.texts()) == 1


@both
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("SLK-4", "TEL-3", "TEL-6")
async def test_a_press_on_a_message_that_was_deleted_counts_and_the_run_goes_on(
    town: Town, fail_after: FailAfter, made: Made, kind: str
) -> None:
    town.model.plays = script
    side = made(town)
    async with fail_after(90), town.serving():
        await side.asks(kind)
        await side.presses_deleted(kind)
        await side.answered()
        bad = "SELECT count(*) FROM outbox WHERE state IN ('dead', 'unknown')"
        assert town.rows(bad) == [(0,)]
        assert town.rows("SELECT state FROM open_calls") == [("answered",)]
    assert town.lines("effects") == (["ran"] if kind == "approval" else [])


@both
@pytest.mark.requirement("SLK-4", "TEL-3", "REN-1")
async def test_a_name_full_of_markup_marks_nothing_on_the_card(
    town: Town, fail_after: FailAfter, made: Made
) -> None:
    town.model.plays = script
    town.slack.workspace.users[ANNA].name = TRICKY
    town.slack.workspace.users[ANNA].real_name = TRICKY
    town.ann = replace(town.ann, first_name=TRICKY)
    town.chat.user = town.ann
    side = made(town)
    async with fail_after(90), town.serving():
        await side.asks("approval")
        told = await side.presses("approval")
        await side.until(lambda: not side.is_open())
        (shown,) = [text for text in side.texts() if "Allowed by" in text]
        for seen in (shown, told):
            assert "Allowed by" in seen
            assert not any(mark in seen for mark in ("<!channel>", "<b>", "]("))
        if isinstance(side, OnTelegram):
            (card,) = [one for one in town.telegram.from_bot(town.chat) if one.text == shown]
            since = shown.index("Allowed by")
            assert [one for one in card.content.entities if one.offset >= since] == []
