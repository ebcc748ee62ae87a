"""From what Slack tells to what the engine keeps: read, complete, store, and then acknowledge.

Something is acknowledged after it is stored, or when it is nothing for the engine. Where that
cannot be done now, it stays unacknowledged and Slack delivers it again (MSG-1). The same for
Socket Mode and for HTTP: only the envelope differs.
"""

import asyncio
from weakref import WeakValueDictionary

import structlog

from adapters.platforms.recent_values import Expiring, Recent
from adapters.slack import ingress
from adapters.slack.ack_deadline import best_effort
from adapters.slack.assistant import Assistant
from adapters.slack.client import SlackClient
from adapters.slack.directory import Directory
from adapters.slack.experience import description_of, experience_of
from adapters.slack.failures import SlackFailure
from adapters.slack.ingress import (
    Added,
    Bot,
    Deleted,
    Heard,
    HomeOpened,
    Ignored,
    MessagesOpened,
    Ours,
    ThreadOpened,
)
from adapters.slack.interactivity import Interactivity
from adapters.slack.settings import SlackSettings
from adapters.slack.socket_mode import Ack, Envelope
from adapters.slack.thread_cache import Asker, Memory
from runtime.domain.errors import Unavailable
from runtime.domain.json_fields import object_of, objects_of
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)

GREETING = "gatehouse_greeting"
"""The mark of a greeting: Slack may tell of the same arrival again, and to another process."""
_LOOKED_AT = 200
OPENED_S = 3.0
"""A person who opens the application again within these seconds sees what is there."""
NOT_THERE = (
    "I am not in this channel, so I could not answer here. Add me with /invite, or write me a "
    "direct message."
)


class Receiver:
    """Takes everything that Slack tells one workspace's bot."""

    def __init__(
        self,
        client: SlackClient,
        bot: Bot,
        *,
        directory: Directory,
        settings: SlackSettings,
        clock: Clock,
        memory: Memory,
    ) -> None:
        """`memory` is filled."""
        self._bot = bot
        self._directory = directory
        self._settings = settings
        self._clock = clock
        self._memory = memory
        self._assistant = Assistant(client, directory, clock)
        self._client = client
        self._interactivity = Interactivity(client, bot, directory, clock)
        self._opened: Expiring[tuple[str, str], bool] = Expiring(clock, OPENED_S)
        self._told: Recent[tuple[str, str], str] = Recent()
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def receive(self, envelope: Envelope, gatehouse: Gatehouse) -> Ack | None:
        """For Socket Mode: None leaves it unacknowledged.

        What nobody expected costs one envelope, never the sockets; Slack delivers it again a few
        times. By HTTP, the route of the hooks is that root.
        """
        try:
            return await self.take(envelope, gatehouse)
        except (SlackFailure, Unavailable) as failure:
            log.warning("slack.not_acknowledged", reason=str(failure))
        except Exception:  # the worker root of an envelope: a defect must not end every socket
            log.exception("slack.envelope_failed", kind=envelope.kind, envelope=envelope.id)
        return None

    async def take(self, envelope: Envelope, gatehouse: Gatehouse) -> Ack:
        """Store it. Raises `SlackFailure` or `Unavailable` where it must come again."""
        if envelope.kind == "interactive":
            return await self._interactivity.act(envelope.payload, gatehouse)
        if envelope.kind == "slash_commands":
            return await self._command(envelope, gatehouse)
        if envelope.kind != "events_api":
            log.debug("slack.ignored", reason=f"envelope {envelope.kind}")
            return Ack()
        habit = self._settings.reply_in_thread
        event = ingress.read_event(envelope.payload, self._bot, reply_in_thread=habit)
        self._memory.notice(experience_of(object_of(envelope.payload, "event")))
        if isinstance(event, HomeOpened | MessagesOpened):
            await self._open(event, gatehouse)
        elif isinstance(event, Ignored):
            log.debug("slack.ignored", reason=event.reason)
        else:
            await self._in_order(event, gatehouse)
        return Ack()

    async def _open(self, opened: HomeOpened | MessagesOpened, gatehouse: Gatehouse) -> None:
        """Show what a person opened, once for many openings in a row."""
        key = (opened.user, type(opened).__name__)
        if self._opened.get(key):
            return
        self._opened.put(key, True)
        is_shown = False
        try:
            if isinstance(opened, HomeOpened):
                await self._interactivity.publish_home(opened.user, gatehouse)
            elif self._memory.experience == "agent":
                await self._assistant.messages_opened(opened.chat)
            is_shown = True
        finally:
            if not is_shown:
                # Slack delivers it again.
                self._opened.drop(key)

    async def _placed(self, heard: Heard) -> Heard:
        """The message with its session: in the agent view and in the assistant view, threads of a
        direct chat have their own; elsewhere they belong to the chat. Raises `SlackFailure`."""
        if heard.kind != "direct" or self._memory.experience == "agent":
            return ingress.in_agent_view(heard) if heard.kind == "direct" else heard
        if heard.thread is None or self._settings.reply_in_thread == "always":
            return heard
        if await self._directory.in_assistant_thread(heard.chat, heard.thread):
            return heard
        return ingress.in_chat(heard)

    async def _viewing(self, heard: Heard) -> str:
        """What the writer looks at, where their thread was not told yet."""
        channels = [one.id for one in heard.viewed if one.kind in ("channel", "message")]
        names = {each: await self._directory.public_name(each) for each in channels}
        words = description_of(heard.viewed, names)
        told = self._told.get((heard.chat, heard.answer_thread or ""))
        return "" if words == told else words

    async def _in_order(
        self, event: Heard | Ours | Deleted | Added | ThreadOpened, gatehouse: Gatehouse
    ) -> None:
        """What happens in one chat is stored in the order in which it came."""
        order = self._order.setdefault(event.chat, asyncio.Lock())
        async with order:
            match event:
                case Heard():
                    await self._heard(event, gatehouse)
                case Deleted():
                    now = self._clock.now_ms()
                    deletion = ingress.deletion(event, self._bot, received_at_ms=now)
                    await gatehouse.withdraw(deletion)
                case Ours():
                    if event.thread is not None:
                        self._directory.joined(event.chat, event.thread)
                case Added():
                    if self._settings.greeting:
                        await self._greet(event.chat)
                case ThreadOpened():
                    self._directory.assistant_thread(event.chat, event.thread)
                    await self._assistant.opened(event)

    async def _command(self, envelope: Envelope, gatehouse: Gatehouse) -> Ack:
        heard = ingress.read_command(envelope.payload, envelope.id)
        if isinstance(heard, Ignored):
            log.debug("slack.ignored", reason=heard.reason)
            return Ack()
        if heard.kind != "direct" and await self._directory.shut_out(heard.chat):
            answer: JsonObject = {"response_type": "ephemeral", "text": NOT_THERE}
            return Ack(answer)
        await self._in_order(heard, gatehouse)
        return Ack()

    async def _heard(self, heard: Heard, gatehouse: Gatehouse) -> None:
        directory = self._directory
        heard = await self._placed(heard)
        viewing = await self._viewing(heard) if heard.viewed else ""
        in_thread = self._settings.thread_without_mention and await directory.takes_part(heard)
        names = await directory.names(heard.named)
        message = ingress.inbound(
            heard,
            self._bot,
            names=names,
            takes_part=in_thread,
            received_at_ms=self._clock.now_ms(),
            timezone=directory.zone(heard.user),
            viewing=viewing,
        )
        if heard.edited_at is not None:
            await gatehouse.revise(message)
            return
        await gatehouse.accept(message)
        if viewing:
            self._told.put((heard.chat, heard.answer_thread or ""), viewing)
        if heard.is_stop:
            await self._assistant.stopped(heard)
        elif not heard.is_bot:
            self._remember(heard)
            await self._assistant.said(heard, message.text)

    async def _greet(self, chat: str) -> None:
        """Say a line where the bot was let in, and where none was said yet."""
        async with best_effort(self._clock, log.info, "slack.not_greeted", chat=chat):
            page = await self._client.read(
                "conversations.history",
                {"channel": chat, "limit": _LOOKED_AT, "include_all_metadata": True},
            )
            marks = (object_of(message, "metadata") for message in objects_of(page, "messages"))
            if not any(mark.get("event_type") == GREETING for mark in marks):
                await self._client.write("chat.postMessage", self._greeting(chat))

    def _greeting(self, chat: str) -> JsonObject:
        return {
            "channel": chat,
            "text": (
                f"Hello. Mention me, <@{self._bot.user_id}>, and I answer in a thread; "
                "`/gatehouse help` lists what else I know. "
                f"If I stay silent, my operator has not allowed this channel yet (`{chat}`)."
            ),
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {"event_type": GREETING, "event_payload": {"chat": chat}},
        }

    def _remember(self, heard: Heard) -> None:
        if heard.answer_thread is not None:
            asker = Asker(heard.user, heard.team or self._bot.team_id)
            self._memory.askers.put((heard.chat, heard.answer_thread), asker)
            if heard.mentions_bot:
                self._directory.joined(heard.chat, heard.answer_thread)
        if heard.kind == "direct" and heard.sent_at_ms is not None:
            self._memory.last_heard.put(heard.chat, heard.thread or heard.message_id)
