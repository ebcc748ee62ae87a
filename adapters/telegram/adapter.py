"""One Telegram bot as a `ChatAdapter`: it moves messages both ways and decides nothing.

What comes in is read by `ingress`, stored by `gatehouse.accept` and only then confirmed by the
poller. What goes out is written by `egress` and posted by `posting`.
"""

from collections.abc import Sequence

import structlog
from pydantic import JsonValue

from adapters.telegram import ingress
from adapters.telegram.client import TelegramClient
from adapters.telegram.egress import Posted
from adapters.telegram.failures import (
    TelegramFailure,
    Unanswered,
    connection_error,
    wrong_token,
)
from adapters.telegram.ingress import CHANNEL, Bot, Ignored
from adapters.telegram.polling import Poller
from adapters.telegram.posting import Posting
from adapters.telegram.settings import TelegramSettings
from adapters.telegram.shapes import number_of, text_of
from runtime.domain.errors import DeliveryRejected, Forbidden, Unavailable
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.domain.value import JsonObject
from runtime.ports import chat
from runtime.ports.chat import AdapterStatus, Capabilities
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)

# The Bot FAQ: one message a second in a chat, bursts pass; 30 a second over all chats. Telegram
# takes the typing state away after five seconds.
_CAPABILITIES = Capabilities(
    chat_rate=1.0,
    chat_burst=3,
    account_rate=30.0,
    account_burst=30,
    typing_interval_s=4.0,
    edits=True,
    threads=True,
)


class TelegramAdapter:
    """`ChatAdapter` over the Bot API with long polling. Close it."""

    def __init__(self, settings: TelegramSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client = TelegramClient(settings)
        self._posting = Posting(self._client, clock)
        self._bot: Bot | None = None
        self._poller: Poller | None = None
        self._trouble = "Not connected to Telegram yet."

    @property
    def channel(self) -> str:
        return CHANNEL

    @property
    def account(self) -> str:
        return str(self._bot.id) if self._bot is not None else ""

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def status(self) -> AdapterStatus:
        """Connected while Telegram answers the questions for updates."""
        if self._poller is not None and self._poller.connected:
            return AdapterStatus(connected=True)
        trouble = self._poller.trouble if self._poller is not None else ""
        return AdapterStatus(connected=False, detail=trouble or self._trouble)

    async def connect(self) -> None:
        """Try the token. Raises `Forbidden` for a wrong one, `Unavailable` to try again."""
        if not self._client.token_is_plausible:
            raise self._troubled(wrong_token("it does not look like 123456:ABC-DEF"))
        try:
            self._bot = _bot(await self._client.call("getMe", {}))
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

        async def take(update: JsonObject) -> None:
            heard = ingress.read_update(update, bot, received_at_ms=self._clock.now_ms())
            if not isinstance(heard, Ignored):
                await gatehouse.accept(heard)
                return
            tell = log.warning if heard.strange else log.debug
            tell("telegram.ignored", reason=heard.reason, update_id=update.get("update_id"))

        self._poller = Poller(self._settings, self._client, self._clock)
        try:
            await self._poller.run(take)
        finally:
            self._poller = None

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: chat.Posted
    ) -> Receipt:
        ids = list(posted)

        async def note(post: Posted) -> None:
            ids.append(str(post))
            await on_posted(str(post))

        await self._posting.send(message, posted, note)
        return Receipt(message_ids=tuple(ids))

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

    def _troubled(self, error: Forbidden | Unavailable) -> Forbidden | Unavailable:
        self._trouble = str(error)
        return error


def _bot(answer: JsonValue) -> Bot:
    me = answer if isinstance(answer, dict) else {}
    number = number_of(me, "id")
    if number is None:
        raise Unanswered("getMe named no bot")
    return Bot(number, text_of(me, "username"))
