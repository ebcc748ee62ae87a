"""What only Slack can tell about a message, asked once and kept: names, and who is in a thread.

Bounded: the least recently used entries go, and names are asked for again after an hour. It decides
nothing about the message.
"""

from collections.abc import Iterable, Mapping

import structlog

from adapters.platforms.recent_values import Expiring, Recent
from adapters.slack.ack_deadline import best_effort, within
from adapters.slack.client import SlackClient
from adapters.slack.failures import Refused, SlackFailure
from adapters.slack.ingress import Bot, Heard, begins_assistant_thread
from adapters.slack.message_text import people_in
from runtime.domain.json_fields import object_of, objects_of, text_of
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

NAMES_KEPT_S = 3600.0
THREAD_PAGE = 200
MAX_THREAD_PAGES = 5
MOST_ZONE = 64
"""Characters of the name of a time zone."""


class Directory:
    """Names of people and channels, and threads, of one workspace."""

    def __init__(self, client: SlackClient, bot: Bot, clock: Clock) -> None:
        self._client = client
        self._bot = bot
        self._clock = clock
        self._names: Expiring[str, str] = Expiring(clock, NAMES_KEPT_S)
        self._zones: Expiring[str, str] = Expiring(clock, NAMES_KEPT_S)
        self._members: Expiring[str, bool] = Expiring(clock, NAMES_KEPT_S)
        self._threads: Recent[tuple[str, str], bool] = Recent()
        self._assistant_threads: Recent[tuple[str, str], bool] = Recent()
        self._public: Expiring[str, str] = Expiring(clock, NAMES_KEPT_S)

    async def names(self, ids: Iterable[str]) -> Mapping[str, str]:
        """Names of people and channels by id; what cannot be looked up now is missing, and the id
        is shown."""
        asked = sorted(ids)
        async with best_effort(self._clock, log.info, "slack.name_unknown"):
            for each in asked:
                await self._learn(each)
        found = {each: self._names.get(each) for each in asked}
        return {each: name for each, name in found.items() if name}

    async def name(self, each: str) -> str:
        """One name, or nothing."""
        return (await self.names([each])).get(each, "")

    async def public_name(self, chat: str) -> str:
        """The name of a channel that everybody in the workspace may see; else nothing: who looks
        at a private channel is not proven to be in it."""
        if not chat.startswith("C"):
            return ""
        known = self._public.get(chat)
        if known is None:
            known = ""
            async with best_effort(self._clock, log.info, "slack.channel_unknown"):
                answer = await self._client.read("conversations.info", {"channel": chat})
                channel = object_of(answer, "channel")
                known = "" if channel.get("is_private") is not False else text_of(channel, "name")
                self._public.put(chat, known)
        return known

    async def in_assistant_thread(self, chat: str, thread: str) -> bool:
        """Whether a thread of a direct chat was opened in the assistant view. Asks Slack once.

        Raises `SlackFailure` when asking may work later.
        """
        known = self._assistant_threads.get((chat, thread))
        if known is None:
            asked: dict[str, str | int | bool] = {"channel": chat, "ts": thread, "limit": 1}
            try:
                page = await self._client.read("conversations.replies", asked)
            except Refused as refusal:
                log.warning("slack.thread_unreadable", chat=chat, reason=str(refusal))
                return False
            known = any(map(begins_assistant_thread, objects_of(page, "messages")[:1]))
            self._assistant_threads.put((chat, thread), known)
        return known

    def assistant_thread(self, chat: str, thread: str) -> None:
        """This thread was opened in the assistant view."""
        self._assistant_threads.put((chat, thread), True)

    def zone(self, user: str) -> str:
        """The time zone of a person's profile, which came with their name; empty where it is not
        known now."""
        return self._zones.get(user) or ""

    async def shut_out(self, chat: str) -> bool:
        """Whether the bot surely cannot write there; False where nobody can tell now."""
        known = self._members.get(chat)
        if known is None:
            try:
                async with within(self._clock):
                    answer = await self._client.read("conversations.info", {"channel": chat})
                known = object_of(answer, "channel").get("is_member") is not False
            except Refused as refusal:
                known = refusal.error != "channel_not_found"
            except (SlackFailure, TimeoutError):
                return False
            if known:
                # Being let in takes a moment, and must count at once.
                self._members.put(chat, known)
        return not known

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

    async def _learn(self, each: str) -> None:
        if self._names.get(each) is not None:
            return
        person = each[:1] in "UW"
        method, key = ("users.info", "user") if person else ("conversations.info", "channel")
        try:
            answer = await self._client.read(method, {key: each})
        except Refused:
            # Of another workspace, hidden, or the scope is missing: asking again does not help.
            self._names.put(each, "")
            return
        found = object_of(answer, key)
        self._names.put(each, _name(found))
        self._zones.put(each, text_of(found, "tz")[:MOST_ZONE])

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
            if any(self._takes_part(message) for message in objects_of(page, "messages")):
                return True
            cursor = next_cursor(page)
            if not cursor:
                break
            arguments["cursor"] = cursor
        return False

    def _takes_part(self, message: JsonObject) -> bool:
        own = message.get("user") == self._bot.user_id or message.get("bot_id") == self._bot.bot_id
        return own or self._bot.user_id in people_in(str(message.get("text", "")))


def next_cursor(page: JsonObject) -> str:
    """Where the next page begins; empty on the last one."""
    return text_of(object_of(page, "response_metadata"), "next_cursor")


def _name(user: JsonObject) -> str:
    sources = (object_of(user, "profile"), user)
    keys = ("display_name", "real_name", "name")
    names = (text_of(source, key) for key in keys for source in sources)
    return next(filter(None, names), "")
