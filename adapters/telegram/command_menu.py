"""The menu of commands that Telegram shows, written only where it differs (`setMyCommands`).

Guests' commands in groups; all of them in private chats and for a group's administrators. What a
person may use is the engine's to decide; the menu only helps to find it. It is never in the way:
trouble is waited out.
"""

from collections.abc import Sequence

import structlog
from pydantic import JsonValue

from adapters.platforms.backoff import Backoff
from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import Refused, TelegramFailure
from adapters.telegram.settings import BotCommand
from runtime.domain.json_fields import objects_of
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

# `BotCommand`: 1-256 characters of description.
_MOST_HELP = 256
_SCOPES = {
    "default": False,
    "all_group_chats": True,
    "all_chat_administrators": False,
}
"""Each scope with whether it shows only what guests may use."""


class Menu:
    """The menu of one bot."""

    def __init__(
        self, client: TelegramClient, clock: Clock, commands: Sequence[BotCommand]
    ) -> None:
        self._client = client
        self._clock = clock
        self._commands = commands

    async def keep(self) -> None:
        """Bring every scope up to date, however long Telegram is away."""
        if not self._commands:
            return
        line = Backoff()
        for scope, guests_only in _SCOPES.items():
            wanted = _lines(self._commands, guests_only=guests_only)
            while True:
                try:
                    await self._set(scope, wanted)
                    break
                except Refused as refusal:
                    log.warning("telegram.menu_refused", scope=scope, reason=str(refusal))
                    break
                except TelegramFailure as failure:
                    delay = line.next(failure.after_s)
                    log.info("telegram.menu_waits", reason=str(failure), again_in_s=delay)
                    await self._clock.sleep(delay)

    async def _set(self, scope: str, wanted: list[JsonValue]) -> None:
        place: JsonObject = {"scope": {"type": scope}}
        answer = await self._client.call("getMyCommands", place)
        shown = objects_of({"commands": answer}, "commands")
        if shown != wanted:
            await self._client.call("setMyCommands", {**place, "commands": wanted})
            log.info("telegram.menu_set", scope=scope)


def _lines(commands: Sequence[BotCommand], *, guests_only: bool) -> list[JsonValue]:
    return [
        {"command": one.name, "description": one.help.replace("`", "")[:_MOST_HELP]}
        for one in commands
        if one.guests or not guests_only
    ]
