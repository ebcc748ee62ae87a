"""Where people talk to the gateway: direct chats, threads, groups and the page.

A place says things in the name of its people and hands what they read to the ledger. It waits for
nothing but its own platform.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import ClassVar

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.client import GatewayClient, JsonObject
from runtime.domain.json_fields import objects_of
from runtime.ports.clock import Clock
from tests.scenario.process.program import ADMIN
from tests.wire.slack import GENERAL, Said, SlackServer
from tests.wire.telegram import Chat, Message, TelegramServer, User

RETRY_S = 0.25


class Place(ABC):
    """One conversation. In a `shared` one several people are and no command runs unconfined; a
    `slow` one is bound to few posts by its platform."""

    shared: ClassVar[bool] = False
    slow: ClassVar[bool] = False
    edits: ClassVar[bool] = False
    answers_by_reply: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    async def says(self, text: str) -> None:
        """Somebody writes a message to the bot."""

    @abstractmethod
    async def commands(self, text: str) -> None:
        """Somebody gives a chat command, without its slash."""

    async def replies(self, card: str, text: str) -> None:
        """Somebody answers the question whose card holds these words, where a reply can."""
        raise LookupError(f"in {self.name} a reply answers nothing")

    async def repeats(self) -> None:
        """The platform delivers the last message once more; most have no such habit."""
        return

    async def changes(self, text: str) -> None:
        """Somebody edits their last message, where `edits` says that one can."""
        raise LookupError(f"in {self.name} nobody edits")


class SlackDirect(Place):
    """A person's direct conversation with the bot in Slack."""

    edits = True
    answers_by_reply = False

    def __init__(self, slack: SlackServer, user: str) -> None:
        super().__init__(f"slack {user}")
        self.channel = slack.workspace.im(user)
        self._slack, self._user = slack, user
        self._last: Said | None = None

    async def says(self, text: str) -> None:
        self._last = await self._slack.user_says(self.channel, self._user, text)

    async def commands(self, text: str) -> None:
        await self._slack.user_says(self.channel, self._user, f"!{text}")

    async def repeats(self) -> None:
        if self._last is not None:
            await self._slack.duplicate(self._last.deliveries[0])

    async def changes(self, text: str) -> None:
        assert self._last is not None
        await self._slack.user_edits(self.channel, self._last.ts, text)


class SlackThread(Place):
    """A thread in a channel; it begins with the first message."""

    shared = True
    answers_by_reply = False

    def __init__(self, slack: SlackServer, users: Sequence[str], number: int) -> None:
        super().__init__(f"slack thread {number}")
        self._slack, self._users = slack, cycle(users)
        self.thread: str | None = None
        self._last: Said | None = None

    async def says(self, text: str) -> None:
        self._last = await self._slack.user_says(
            GENERAL, next(self._users), text, self.thread, mention=True
        )
        self.thread = self.thread or self._last.ts

    async def commands(self, text: str) -> None:
        user, line = next(self._users), f"!{text}"
        await self._slack.user_says(GENERAL, user, line, self.thread, mention=True)

    async def repeats(self) -> None:
        if self._last is not None:
            await self._slack.duplicate(self._last.deliveries[-1])


class TelegramDirect(Place):
    """A person's private chat with the bot in Telegram."""

    edits = True

    def __init__(self, telegram: TelegramServer, user: User) -> None:
        super().__init__(f"telegram {user.id}")
        self.chat = telegram.world.private(user)
        self._telegram, self._user = telegram, user
        self._last: Message | None = None

    async def says(self, text: str) -> None:
        self._last = self._telegram.user_says(self.chat, self._user, text)

    async def commands(self, text: str) -> None:
        self._telegram.user_says(self.chat, self._user, f"/{text}")

    async def replies(self, card: str, text: str) -> None:
        shown = card_in(self._telegram, self.chat, card)
        self._telegram.user_says(self.chat, self._user, text, reply_to=shown)

    async def repeats(self) -> None:
        if self._last is not None:
            self._telegram.redeliver(self._last)

    async def changes(self, text: str) -> None:
        assert self._last is not None
        self._telegram.user_edits(self._last, text)


class TelegramGroup(Place):
    """A group in Telegram, whose members mention the bot."""

    shared = True
    slow = True

    def __init__(self, telegram: TelegramServer, users: Sequence[User], number: int) -> None:
        super().__init__(f"telegram group {number}")
        self.chat: Chat = telegram.world.supergroup(self.name, *users)
        self._telegram, self._users = telegram, cycle(users)

    async def says(self, text: str) -> None:
        bot = self._telegram.bot.username
        self._telegram.user_says(self.chat, next(self._users), f"@{bot} {text}")

    async def commands(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        line = f"/{word}@{self._telegram.bot.username} {rest}".rstrip()
        self._telegram.user_says(self.chat, next(self._users), line)

    async def replies(self, card: str, text: str) -> None:
        shown = card_in(self._telegram, self.chat, card)
        self._telegram.user_says(self.chat, next(self._users), text, reply_to=shown)


class WebPage(Place):
    """A conversation on the page. What is not accepted is sent again under the same key."""

    def __init__(self, number: int, clock: Clock, url: Callable[[], str]) -> None:
        super().__init__(f"page {number}")
        self._clock, self._url = clock, url
        self._count = 0
        self._seen: set[str] = set()
        self._cards: deque[str] = deque(maxlen=5)
        self._session = ""

    async def says(self, text: str) -> None:
        self._count += 1
        desk = self.name.replace(" ", "-")
        key = f"{desk}-{self._count}"
        while True:
            try:
                async with GatewayClient(self._url(), ADMIN) as client:
                    if not self._session:
                        body: JsonObject = {"channel": "web", "key": desk}
                        self._session = str((await client.post("/v1/sessions", body))["id"])
                    path = f"/v1/sessions/{self._session}/runs"
                    await client.post(path, {"content": text}, key=key)
            except (Unreachable, Refused) as error:
                if isinstance(error, Refused) and error.status != 503:
                    raise
                await self._clock.sleep(RETRY_S)
            else:
                return

    async def commands(self, text: str) -> None:
        await self.says(f"/{text}")

    async def replies(self, card: str, text: str) -> None:
        (code,) = [shown.split()[-1] for shown in self._cards if card in shown]
        await self.commands(f"answer {code} {text}")

    async def news(self) -> list[str]:
        """What the person has not read yet; nothing while the gateway is away."""
        if not self._session:
            return []
        try:
            async with GatewayClient(self._url(), ADMIN) as client:
                path = f"/v1/sessions/{self._session}/messages"
                found = objects_of(await client.get(path, {"limit": "50"}), "items")
        except (Unreachable, Refused):
            return []
        read = [one for one in found if one["kind"] != "user" and (one["text"] or one.get("card"))]
        new = [one for one in read if str(one["key"]) not in self._seen]
        self._seen |= {str(one["key"]) for one in new}
        self._cards.extend(_shown(one) for one in new if one.get("card"))
        return [_shown(one) for one in new]


def card_in(telegram: TelegramServer, chat: Chat, words: str) -> Message:
    """The newest message of the bot in a chat that holds these words."""
    return next(one for one in reversed(telegram.from_bot(chat)) if words in one.text)


def _shown(message: JsonObject) -> str:
    card = message.get("card")
    if not isinstance(card, dict):
        return str(message["text"])
    word = "approve" if card["kind"] == "approval" else "answer"
    return f"{card['question']} {card['arguments']} {word} {card['code']}"
