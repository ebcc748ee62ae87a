"""What an operator does by hand about a bot's webhook: set it, look at it, take it away.

The gateway sets and removes it by itself as configured; this is for looking, and for moving a bot
from one gateway to another.
"""

from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import TelegramFailure, connection_error
from adapters.telegram.settings import TelegramSettings
from adapters.telegram.webhook import webhook_payload
from runtime.domain.errors import InvalidInput
from runtime.domain.value import JsonObject


class WebhookAdmin:
    """One bot. Each method closes its connection; all raise `Forbidden` and `Unavailable`."""

    def __init__(self, settings: TelegramSettings) -> None:
        self._settings = settings

    async def set(self) -> None:
        """As configured. Raises `InvalidInput` where no address is."""
        if not self._settings.webhook_url:
            raise InvalidInput("telegram.webhook_url", "is not set, so the bot is polled")
        await self._call("setWebhook", webhook_payload(self._settings))

    async def info(self) -> JsonObject:
        """`WebhookInfo` as Telegram gives it, which holds no secret."""
        return await self._call("getWebhookInfo", {})

    async def delete(self) -> None:
        """What waits at Telegram is kept."""
        await self._call("deleteWebhook", {"drop_pending_updates": False})

    async def _call(self, method: str, payload: JsonObject) -> JsonObject:
        client = TelegramClient(self._settings)
        try:
            answer = await client.call(method, payload)
        except TelegramFailure as failure:
            raise connection_error(failure) from failure
        finally:
            await client.close()
        return answer if isinstance(answer, dict) else {}
