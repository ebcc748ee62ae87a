"""One Telegram bot as a `ChatAdapter`: it moves messages both ways and decides nothing.

What comes in is read by `ingress` and stored by `update_intake` before `polling` or `webhook`
confirms it. What goes out is written by `egress` and posted by `post_sender`; `message_streams`
shows it as it grows.
"""

import asyncio
from collections.abc import Sequence

import structlog
from pydantic import JsonValue

from adapters.telegram.albums import Unit
from adapters.telegram.callbacks import Seal
from adapters.telegram.client import TelegramClient
from adapters.telegram.command_menu import Menu
from adapters.telegram.failures import (
    TelegramFailure,
    Unanswered,
    connection_error,
    wrong_token,
)
from adapters.telegram.files import TelegramFiles
from adapters.telegram.ingress import CHANNEL, Bot
from adapters.telegram.message_streams import TelegramStreams
from adapters.telegram.polling import Poller
from adapters.telegram.post_sender import Posting
from adapters.telegram.settings import TelegramSettings
from adapters.telegram.update_intake import Hearing
from adapters.telegram.uploads import MOST_FILE_BYTES
from adapters.telegram.webhook import Registration, TelegramWebhook
from runtime.domain.errors import DeliveryRejected, Forbidden, StoreUnavailable, Unavailable
from runtime.domain.json_fields import number_of, text_of
from runtime.domain.messages import ChatAddress, Move, OutboundMessage, Receipt
from runtime.ports import chat
from runtime.ports.chat import AdapterStatus, Capabilities, Webhook
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)

START = "start"
"""What Telegram's own button says; no menu lists it."""

# The Bot FAQ: one message a second in a chat, bursts pass; 20 a minute in a group; 30 a second over
# all chats. Telegram takes the typing state away after five seconds.
_CAPABILITIES = Capabilities(
    chat_rate=1.0,
    chat_burst=3,
    group_rate=20 / 60,
    group_burst=3,
    account_rate=30.0,
    account_burst=30,
    typing_interval_s=4.0,
    edits=True,
    # Of a group's 20 messages a minute it leaves some for replies.
    edit_interval_s=3.0,
    live_cards=True,
    files=True,
    file_bytes=MOST_FILE_BYTES,
)


class TelegramAdapter:
    """`ChatAdapter` over the Bot API, by long polling or by webhook. Close it."""

    channel = CHANNEL
    capabilities = _CAPABILITIES

    def __init__(self, settings: TelegramSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client = TelegramClient(settings)
        seal = Seal(settings.token.get_secret_value())
        self._posting = Posting(self._client, clock, seal, self._chat_moved)
        self.streams = TelegramStreams(self._client, self._posting, clock)
        self.files = TelegramFiles(self._client)
        self._hearing = Hearing(self._client, clock, seal, greeting=settings.greeting)
        self._menu = Menu(self._client, clock, settings.commands)
        self.webhook: Webhook | None = None
        if settings.webhook_url:
            self.webhook = TelegramWebhook(settings, self._identify, self._hearing)
        self._bot: Bot | None = None
        self._line: Poller | Registration | None = None
        self._gatehouse: Gatehouse | None = None
        self._trouble = "Not connected to Telegram yet."

    @property
    def account(self) -> str:
        return str(self._bot.id) if self._bot is not None else ""

    def status(self) -> AdapterStatus:
        """Connected while Telegram answers the questions for updates, or gets through to us."""
        if self._line is not None and self._line.connected:
            return AdapterStatus(connected=True, detail=self._line.trouble)
        trouble = self._line.trouble if self._line is not None else ""
        return AdapterStatus(connected=False, detail=trouble or self._trouble)

    async def connect(self) -> None:
        """Try the token. Raises `Forbidden` for a wrong one, `Unavailable` to try again."""
        if not self._client.token_is_plausible:
            raise self._troubled(wrong_token("it does not look like 123456:ABC-DEF"))
        try:
            self._bot = _bot(await self._client.call("getMe", {}), self._settings)
        except TelegramFailure as failure:
            raise self._troubled(connection_error(failure)) from failure
        self._trouble = "Not listening to Telegram yet."

    async def listen(self, gatehouse: Gatehouse) -> None:
        """Receive until cancelled. What Telegram kept while nobody listened comes first.

        Raises `Unavailable` before `connect`.
        """
        bot = self._bot
        if bot is None:
            raise Unavailable("connect first")
        self._gatehouse = gatehouse

        async def take(updates: Unit) -> None:
            await self._hearing.take(updates, bot, gatehouse)

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._menu.keep(), name="telegram menu")
                if self._settings.webhook_url:
                    registration = Registration(self._settings, self._client, self._clock)
                    self._line = registration
                    group.create_task(registration.run(), name="telegram webhook")
                else:
                    poller = Poller(self._settings, self._client, self._clock)
                    self._line = poller
                    group.create_task(poller.run(take), name="telegram polling")
        finally:
            self._line = None

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: chat.Posted
    ) -> Receipt:
        return await self._posting.send(message, posted, on_posted)

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Raises `DeliveryRetry`, or `DeliveryRejected` where it will never work."""
        await self._posting.edit(message, receipt)

    async def typing(self, target: ChatAddress, state: str) -> None:
        """Telegram knows one state, which ends by itself. Raises `DeliveryError`."""
        if state != "done":
            await self._posting.typing(target)

    async def lookup(
        self,
        message: OutboundMessage,  # noqa: ARG002 - the signature is the port's
        *,
        posted: Sequence[str],  # noqa: ARG002
    ) -> Receipt | None:
        """Raises `DeliveryRejected`: the Bot API cannot be asked what a bot has posted (MSG-11)."""
        raise DeliveryRejected("Telegram cannot be asked whether a message was posted")

    async def close(self) -> None:
        await self._client.close()

    async def _identify(self) -> Bot:
        """Who we are, also in a process that never connects and is only called by Telegram."""
        if self._bot is None:
            await self.connect()
        if self._bot is None:
            raise Unavailable("Telegram did not say who this bot is.")
        return self._bot

    async def _chat_moved(self, old: str, new: str) -> None:
        """The group's own message about it may be long in coming; both say the same."""
        if self._gatehouse is None:
            return
        move = Move(channel=CHANNEL, account=self.account, old_chat_id=old, new_chat_id=new)
        try:
            await self._gatehouse.move(move)
        except StoreUnavailable as error:
            log.warning("telegram.move_not_kept", chat=old, reason=str(error))

    def _troubled(self, error: Forbidden | Unavailable) -> Forbidden | Unavailable:
        self._trouble = str(error)
        return error


def _bot(answer: JsonValue, settings: TelegramSettings) -> Bot:
    me = answer if isinstance(answer, dict) else {}
    number = number_of(me, "id")
    if number is None:
        raise Unanswered("getMe named no bot")
    known = {one.name for one in settings.commands} | {START}
    return Bot(number, text_of(me, "username"), frozenset(known))
