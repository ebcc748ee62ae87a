"""What only Slack can tell about a message, asked once and kept: names, and who is in a thread.

Bounded: the least recently used entries go. It decides nothing about the message.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import structlog

from adapters.slack.client import SlackClient
from adapters.slack.failures import Refused, SlackFailure
from adapters.slack.ingress import Bot, Heard
from adapters.slack.wording import people_in
from runtime.domain.value import JsonObject

log = structlog.get_logger(__name__)

MAX_ENTRIES = 10_000
# Slack waits three seconds for the acknowledgement; a name is not worth missing that.
NAMES_TIMEOUT_S = 1.5
THREAD_PAGE = 200
MAX_THREAD_PAGES = 5

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The entries that were used last, at most `size` of them."""

    def __init__(self, size: int = MAX_ENTRIES) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)


class Directory:
    """Names of people and threads of one workspace."""

    def __init__(self, client: SlackClient, bot: Bot) -> None:
        self._client = client
        self._bot = bot
        self._names: Recent[str, str] = Recent()
        self._threads: Recent[tuple[str, str], bool] = Recent()

    async def names(self, people: Iterable[str]) -> Mapping[str, str]:
        """Names by id; who cannot be looked up now is missing, and the id is shown."""
        asked = sorted(people)
        try:
            async with asyncio.timeout(NAMES_TIMEOUT_S):
                for user in asked:
                    await self._learn(user)
        except (SlackFailure, TimeoutError) as failure:
            log.info("slack.name_unknown", reason=str(failure))
        found = {user: self._names.get(user) for user in asked}
        return {user: name for user, name in found.items() if name}

    def joined(self, chat: str, thread: str) -> None:
        """The bot takes part in this thread from now on."""
        self._threads.put((chat, thread), True)

    async def takes_part(self, heard: Heard) -> bool:
        """Is the bot in the thread of this message, by a post or by a mention?

        Asks Slack at first sight. Raises `SlackFailure` when that may work later: the message must
        then not be acknowledged, for nobody knows yet whether it is for the bot.
        """
        if heard.thread is None or not heard.thread_matters:
            return False
        key = (heard.chat, heard.thread)
        known = self._threads.get(key)
        if known is None:
            known = heard.parent_is_bot or await self._look(heard.chat, heard.thread)
            self._threads.put(key, known)
        return known

    async def _learn(self, user: str) -> None:
        if self._names.get(user) is not None:
            return
        try:
            answer = await self._client.read("users.info", {"user": user})
        except Refused:
            # Somebody of another workspace, or the scope is missing: asking again does not help.
            self._names.put(user, "")
            return
        self._names.put(user, _name(answer.get("user")))

    async def _look(self, chat: str, thread: str) -> bool:
        arguments: dict[str, str | int | bool] = {
            "channel": chat,
            "ts": thread,
            "limit": THREAD_PAGE,
        }
        for _ in range(MAX_THREAD_PAGES):
            try:
                page = await self._client.read("conversations.replies", arguments)
            except Refused as refusal:
                log.warning("slack.thread_unreadable", chat=chat, reason=str(refusal))
                return False
            if any(self._takes_part(message) for message in messages_of(page)):
                return True
            cursor = next_cursor(page)
            if not cursor:
                break
            arguments["cursor"] = cursor
        return False

    def _takes_part(self, message: JsonObject) -> bool:
        own = message.get("user") == self._bot.user_id or message.get("bot_id") == self._bot.bot_id
        return own or self._bot.user_id in people_in(str(message.get("text", "")))


def messages_of(page: JsonObject) -> list[JsonObject]:
    """The messages of one page of a history or a thread."""
    found = page.get("messages")
    return [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []


def next_cursor(page: JsonObject) -> str:
    """Where the next page begins; empty on the last one."""
    metadata = page.get("response_metadata")
    cursor = metadata.get("next_cursor") if isinstance(metadata, dict) else None
    return cursor if isinstance(cursor, str) else ""


def _name(user: object) -> str:
    if not isinstance(user, dict):
        return ""
    profile = user.get("profile")
    sources = (profile if isinstance(profile, dict) else {}, user)
    for key in ("display_name", "real_name", "name"):
        for source in sources:
            name = source.get(key)
            if isinstance(name, str) and name:
                return name
    return ""
