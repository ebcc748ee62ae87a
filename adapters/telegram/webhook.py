"""The webhook: Telegram calls us, and every call is checked, stored and only then answered.

`TelegramWebhook` takes the calls, in every replica; `Registration` tells Telegram where to call,
in the one that holds the lease. Telegram repeats what is not answered with 2xx, and keeps the
order within a chat. Shapes: `setWebhook` and `WebhookInfo` of the Bot API.
"""

import hmac
from collections.abc import Awaitable, Callable

import structlog

from adapters.platforms.backoff import Backoff
from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import TelegramFailure, connection_error
from adapters.telegram.ingress import CHANNEL, Bot
from adapters.telegram.polling import UPDATES
from adapters.telegram.settings import TelegramSettings
from adapters.telegram.update_intake import Hearing
from runtime.domain.json_fields import number_of, object_in, text_of
from runtime.domain.value import JsonObject
from runtime.ports.chat import WebhookRequest, WebhookResponse
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)

SECRET_HEADER = "x-telegram-bot-api-secret-token"
# How often it is looked whether Telegram still calls us, and whether it gets through.
LOOK_S = 60.0


class TelegramWebhook:
    """`Webhook` of one bot."""

    def __init__(
        self,
        settings: TelegramSettings,
        identify: Callable[[], Awaitable[Bot]],
        hearing: Hearing,
    ) -> None:
        secret = settings.webhook_secret
        self._secret = secret.get_secret_value().encode() if secret is not None else b""
        self.path = f"{CHANNEL}/{settings.name}" if settings.name else CHANNEL
        self._identify = identify
        self._hearing = hearing

    async def receive(self, request: WebhookRequest, gatehouse: Gatehouse) -> WebhookResponse:
        """401 without the secret; 200 once the update is stored. Raises `Unavailable`."""
        given = request.headers.get(SECRET_HEADER, "").encode("utf-8", "surrogateescape")
        if not self._secret or not hmac.compare_digest(given, self._secret):
            log.warning("telegram.webhook_without_secret", path=self.path)
            return WebhookResponse(401, "The secret token is missing or wrong.")
        update = object_in(request.body)
        if update is None or "update_id" not in update:
            log.warning("telegram.webhook_without_update")
            return WebhookResponse(400, "This is no update.")
        await self._hearing.take([update], await self._identify(), gatehouse)
        return WebhookResponse(200)


class Registration:
    """Keeps Telegram calling us as long as `run` is awaited."""

    def __init__(self, settings: TelegramSettings, client: TelegramClient, clock: Clock) -> None:
        self._settings = settings
        self._client = client
        self._clock = clock
        self._line = Backoff()
        self.connected = False
        self.trouble = ""
        """Why Telegram does not get through, in a sentence; empty while nothing went wrong."""

    async def run(self) -> None:
        """Set the webhook, and look after it until cancelled.

        It stays set at the end: what comes then waits at Telegram, or goes to another replica.
        """
        try:
            await self._until_done(self._set)
            while True:
                await self._clock.sleep(LOOK_S)
                await self._until_done(self._look)
        finally:
            self.connected = False

    async def _until_done(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except TelegramFailure as failure:
                delay = self._line.next(failure.after_s)
                self.connected = False
                self.trouble = str(connection_error(failure))
                log.warning("telegram.webhook_not_set", reason=str(failure), again_in_s=delay)
                await self._clock.sleep(delay)
            else:
                self._line.reset()
                return

    async def _set(self) -> None:
        await self._client.call("setWebhook", webhook_payload(self._settings))
        self.connected, self.trouble = True, ""
        log.info("telegram.webhook_set")

    async def _look(self) -> None:
        answer = await self._client.call("getWebhookInfo", {})
        info = answer if isinstance(answer, dict) else {}
        if text_of(info, "url") != self._settings.webhook_url:
            log.warning("telegram.webhook_taken", reason="another program uses this bot's token")
            await self._set()
            self.trouble = (
                "Another program set or removed this bot's webhook. It was set again; stop that "
                "program, or get a bot of its own for this gateway from @BotFather."
            )
            return
        waiting, error = (
            number_of(info, "pending_update_count"),
            text_of(info, "last_error_message"),
        )
        self.connected = not (waiting and error)
        self.trouble = "" if self.connected else f"Telegram cannot call the webhook: {error}."


def webhook_payload(settings: TelegramSettings) -> JsonObject:
    """Arguments of `setWebhook`."""
    secret = settings.webhook_secret
    return {
        "url": settings.webhook_url,
        "secret_token": secret.get_secret_value() if secret is not None else "",
        "allowed_updates": list(UPDATES),
        "max_connections": settings.webhook_connections,
    }
