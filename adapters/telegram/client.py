"""The Bot API, one call at a time, and what became of it. It refuses to repeat anything."""

import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from pydantic import JsonValue

from adapters.telegram.settings import TelegramSettings
from runtime.domain.messages import FilePart
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
        """The ``result`` of a Bot API method. Raises `TelegramFailure`."""
        return await self._opened().call(method, payload, timeout_s)

    async def upload(
        self, method: str, payload: JsonObject, *, field: str, file: FilePart, size: int
    ) -> JsonValue:
        """The ``result`` of a method whose argument `field` is the `file` of `size` bytes.

        Raises `TelegramFailure`, and `OSError` where the file cannot be opened.
        """
        return await self._opened().upload(method, payload, field, file, size)

    def download(self, path: str) -> AsyncGenerator[bytes, None]:
        """A file in pieces, by the ``file_path`` of `getFile`. Raises `TelegramFailure`."""
        return self._opened().download(path)

    def _opened(self) -> "BotApi":
        if self._api is None:
            # Heavy: a gateway without Telegram must not carry the library in its memory.
            from adapters.telegram.botapi import BotApi

            self._api = BotApi(self._settings)
        return self._api

    async def close(self) -> None:
        if self._api is not None:
            await self._api.close()
            self._api = None
