"""Long polling: what Telegram has for the bot, handed on in order and confirmed afterwards.

An update is confirmed by asking for the next one, so nothing is asked for before the last one was
taken (MSG-1, TEL-1). The library's `Updater` confirms after putting it into memory and is not
used. The backlog is never dropped, and no trouble ends the polling: it waits and says why.
"""

from collections.abc import Awaitable, Callable

import structlog
from pydantic import JsonValue

from adapters.platforms.backoff import Backoff
from adapters.telegram import albums
from adapters.telegram.albums import Unit
from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import (
    Refused,
    TelegramFailure,
    Unanswered,
    connection_error,
)
from adapters.telegram.settings import TelegramSettings
from runtime.domain.errors import Unavailable
from runtime.domain.json_fields import number_of
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

#: Said every time, because Telegram remembers what an earlier program asked for.
UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
# How long the parts of an album are waited for after the last of them, and how often.
ALBUM_PAUSE_S = 0.7
_ALBUM_PAUSES = 5
# Telegram holds a question open until there is something. What answers in its place at once, as
# some proxies do, is asked no more often than this.
EARLY_S = 1.0
# What an answer may take longer than it was held back for.
MARGIN_S = 15.0
# How long an offset is trusted after the answer that it follows from. Longer than any batch takes
# to be stored, so that each is confirmed in the end; far shorter than a week.
FRESH_MS = 3_600_000

Take = Callable[[Unit], Awaitable[None]]
"""Stores an update, or an album. Raises `Unavailable`: it is not confirmed and comes again."""


class Offset:
    """The number from which on updates are asked for; None asks for the oldest unconfirmed one.

    An offset confirms every update below it, so it is kept only while Telegram surely counts as it
    did: after a quiet week, and where its servers lose count, it numbers anew, perhaps with lower
    numbers (reference of `Update`). Asking without an offset is always safe: what was stored and
    not confirmed comes again, is known by its identity (MSG-2), and is confirmed with the answer.
    """

    def __init__(self) -> None:
        self.next: int | None = None
        self._answered_ms = 0

    def at(self, now_ms: int) -> int | None:
        """The offset to ask with; one whose updates came too long ago is forgotten."""
        if not 0 <= now_ms - self._answered_ms < FRESH_MS:
            self.forget()
        return self.next

    def answered(self, now_ms: int) -> None:
        """Telegram answered just now: numbers of this answer are those that it counts with."""
        self._answered_ms = now_ms

    def taken(self, number: int) -> None:
        self.next = number + 1

    def again(self, number: int) -> None:
        """From this one on nothing is confirmed."""
        self.next = number

    def forget(self) -> None:
        """Everything is confirmed, or nobody knows how Telegram counts now."""
        self.next = None


class Poller:
    """Keeps asking as long as `run` is awaited."""

    def __init__(self, settings: TelegramSettings, client: TelegramClient, clock: Clock) -> None:
        self._settings = settings
        self._client = client
        self._clock = clock
        self._offset = Offset()
        self._line = Backoff()
        self._store = Backoff()
        self._no_webhook = False
        self._quick = True
        self.connected = False
        self.trouble = ""
        """Why it is not connected, in a sentence; empty while nothing went wrong."""

    async def run(self, take: Take) -> None:
        """Receive until cancelled; a call in flight is closed with it."""
        try:
            while True:
                try:
                    await self._hand_on(await self._batch(), take)
                except TelegramFailure as failure:
                    await self._clock.sleep(self._troubled(failure))
        finally:
            self.connected = False

    async def _batch(self) -> list[Unit]:
        if not self._no_webhook:
            await self._remove_webhook()
        # The first question after trouble is answered at once, so that the state is known.
        seconds, asked = (
            0 if self._quick else self._settings.poll_timeout_s,
            self._clock.monotonic(),
        )
        updates = await self._ask(seconds)
        early = EARLY_S - (self._clock.monotonic() - asked)
        if seconds and not updates and early > 0:
            await self._clock.sleep(early)
        for _ in range(_ALBUM_PAUSES):
            if not albums.may_grow(updates):
                break
            await self._clock.sleep(ALBUM_PAUSE_S)
            before, updates = len(updates), await self._ask(0)
            if len(updates) == before:
                break
        return albums.units_of(albums.without_torn(updates))

    async def _ask(self, seconds: int) -> list[JsonObject]:
        """Every update that waits, within `seconds`. Raises `TelegramFailure`."""
        question: JsonObject = {"timeout": seconds, "allowed_updates": list(UPDATES)}
        offset = self._offset.at(self._clock.now_ms())
        if offset is not None:
            question["offset"] = offset
        answer = await self._client.call("getUpdates", question, timeout_s=seconds + MARGIN_S)
        if not isinstance(answer, list):
            raise Unanswered("getUpdates gave no list")
        self._offset.answered(self._clock.now_ms())
        if not self.connected:
            log.info("telegram.receiving")
        self.connected, self._quick, self.trouble = True, False, ""
        self._line.reset()
        return _numbered(answer)

    async def _hand_on(self, units: list[Unit], take: Take) -> None:
        if not units:
            self._offset.forget()
            return
        for taken, unit in enumerate(units):
            try:
                await take(unit)
            except Unavailable as error:
                self._offset.again(albums.resume_at(units, taken))
                delay = self._store.next()
                log.warning("telegram.not_confirmed", reason=str(error), again_in_s=delay)
                await self._clock.sleep(delay)
                return
            self._store.reset()
        self._offset.taken(albums.end_of(units))

    async def _remove_webhook(self) -> None:
        info = await self._client.call("getWebhookInfo", {})
        address = info.get("url") if isinstance(info, dict) else None
        if address:
            log.warning("telegram.webhook_removed", reason="long polling is configured")
            await self._client.call("deleteWebhook", {"drop_pending_updates": False})
        self._no_webhook = True

    def _troubled(self, failure: TelegramFailure) -> float:
        """Note the state and answer with the seconds to wait."""
        delay = self._line.next(failure.after_s)
        self.connected = False
        self.trouble = str(connection_error(failure))
        self._quick = True
        # Nobody knows how long the outage lasts, and how Telegram counts afterwards.
        self._offset.forget()
        if isinstance(failure, Refused) and failure.code == 409:
            self._conflict(failure)
        log.warning("telegram.not_receiving", reason=str(failure), again_in_s=delay)
        return delay

    def _conflict(self, failure: Refused) -> None:
        if failure.says("webhook"):
            self._no_webhook = False
            self.trouble = (
                "A webhook is set for this bot, so Telegram refuses long polling (409). "
                "It will be removed; if it comes back, another program sets it."
            )
            return
        # A quick question would be answered beside the other program's, and look like peace.
        self._quick = False
        self.trouble = (
            "Another program receives with this bot's token (409). Stop it, or get a bot of "
            "its own for this gateway from @BotFather. Waiting, then trying again."
        )


def _numbered(answer: list[JsonValue]) -> list[JsonObject]:
    """The updates that can be confirmed. Raises `Unanswered` where none of several can."""
    found = [one for one in answer if isinstance(one, dict) and number_of(one, "update_id")]
    if len(found) < len(answer):
        log.warning("telegram.update_without_number", count=len(answer) - len(found))
        if not found:
            raise Unanswered("getUpdates gave nothing that can be confirmed")
    return found
