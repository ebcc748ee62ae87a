"""The Bot API, one call at a time, and what became of it. It refuses to repeat anything."""

import re
from typing import TYPE_CHECKING

from pydantic import JsonValue

from adapters.telegram.settings import TelegramSettings
from runtime.domain.value import JsonObject

if TYPE_CHECKING:
    from adapters.telegram.botapi import BotApi

_TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]+")


class TelegramClient:
    """One bot's line to Telegram. Close it."""

    def __init__(self, settings: TelegramSettings) -> None:
        self._settings = settings
        self._api: BotApi | None = None

    @property
    def token_is_plausible(self) -> bool:
        """Whether the token has the form of one; another one would change the address called."""
        return _TOKEN.fullmatch(self._settings.token.get_secret_value()) is not None

    async def call(
        self, method: str, payload: JsonObject, *, timeout_s: float | None = None
    ) -> JsonValue:
        """The `result` of a Bot API method. Raises `TelegramFailure`."""
        if self._api is None:
            # Heavy: a gateway without Telegram must not carry the library in its memory.
            from adapters.telegram.botapi import BotApi

            self._api = BotApi(self._settings)
        return await self._api.call(method, payload, timeout_s)

    async def close(self) -> None:
        if self._api is not None:
            await self._api.close()
            self._api = None
