"""From an envelope to a stored message: read, complete, accept, and say whether to acknowledge.

An envelope is acknowledged after its message is stored, or when it is none of ours. Where that
cannot be done now, it stays unacknowledged and Slack delivers it again (MSG-1).
"""

import asyncio
from weakref import WeakValueDictionary

import structlog

from adapters.slack import ingress
from adapters.slack.directory import Directory, Recent
from adapters.slack.failures import SlackFailure
from adapters.slack.ingress import Bot, Heard, Ignored
from adapters.slack.settings import SlackSettings
from adapters.slack.socket_mode import Ack, Envelope
from runtime.domain.errors import Unavailable
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)


class Receiver:
    """The handler of envelopes of one workspace."""

    def __init__(
        self,
        bot: Bot,
        directory: Directory,
        *,
        gatehouse: Gatehouse,
        settings: SlackSettings,
        clock: Clock,
        last_heard: Recent[str, str],
    ) -> None:
        """`last_heard` is filled: chat -> the thread under which a status can be shown."""
        self._bot = bot
        self._directory = directory
        self._gatehouse = gatehouse
        self._settings = settings
        self._clock = clock
        self._last_heard = last_heard
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def receive(self, envelope: Envelope) -> Ack | None:
        heard = self._read(envelope)
        if isinstance(heard, Ignored):
            log.debug("slack.ignored", reason=heard.reason)
            return Ack()
        # Messages of one chat are stored in the order in which they came.
        order = self._order.setdefault(heard.chat, asyncio.Lock())
        async with order:
            try:
                await self._accept(heard)
            except (SlackFailure, Unavailable) as failure:
                log.warning("slack.not_acknowledged", reason=str(failure))
                return None
        return Ack()

    def _read(self, envelope: Envelope) -> Heard | Ignored:
        if envelope.kind == "events_api":
            habit = self._settings.reply_in_thread
            return ingress.read_event(envelope.payload, self._bot, reply_in_thread=habit)
        if envelope.kind == "slash_commands":
            return ingress.read_command(envelope.payload, envelope.id)
        return Ignored(f"envelope {envelope.kind}")

    async def _accept(self, heard: Heard) -> None:
        directory = self._directory
        in_thread = self._settings.thread_without_mention and await directory.takes_part(heard)
        message = ingress.inbound(
            heard,
            self._bot,
            names=await directory.names(heard.people),
            takes_part=in_thread,
            received_at_ms=self._clock.now_ms(),
        )
        await self._gatehouse.accept(message)
        if heard.is_bot:
            return
        if heard.mentions_bot and heard.answer_thread is not None:
            directory.joined(heard.chat, heard.answer_thread)
        if heard.kind == "direct" and heard.sent_at_ms is not None:
            self._last_heard.put(heard.chat, heard.thread or heard.message_id)
