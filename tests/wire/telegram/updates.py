"""The queue of updates: long polling with the real offsets and conflicts, and the webhook."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

import aiohttp

from tests.wire.telegram.arguments import Arguments, JsonObject
from tests.wire.telegram.errors import bad_request, conflict
from tests.wire.telegram.schema import UPDATE_TYPES, UPDATES_ON_REQUEST
from tests.wire.telegram.signal import Signal

_DEFAULT_TYPES = UPDATE_TYPES - UPDATES_ON_REQUEST
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,256}\Z")
MAX_POLL_SECONDS = 50


@dataclass(slots=True)
class Webhook:
    """Where updates are posted to; an empty address means long polling."""

    url: str = ""
    secret_token: str = ""
    max_connections: int = 40
    last_error: str = ""


class _Poller:
    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = ""


class UpdateQueue:
    """Updates that the bot has not confirmed yet, oldest first."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.pending: list[JsonObject] = []
        self.history: list[JsonObject] = []
        self.webhook = Webhook()
        self._ids = count(870_001)
        self._allowed: frozenset[str] = _DEFAULT_TYPES
        self._stated: list[str] = []
        self._poller: _Poller | None = None
        self.held = True
        """False where something in between answers every question at once, as some proxies do."""
        self.nulls: tuple[str, ...] = ()
        """Fields that every update carries besides its own, as null."""

    @property
    def polling(self) -> bool:
        """Whether a `getUpdates` call waits right now."""
        return self._poller is not None

    def add(self, kind: str, content: JsonObject) -> int | None:
        """Queue an update; None when the bot did not ask for its kind."""
        if kind not in self._allowed:
            return None
        number = next(self._ids)
        update: JsonObject = {"update_id": number, **dict.fromkeys(self.nulls), kind: content}
        self.pending.append(update)
        self.history.append(update)
        self.signal.pulse()
        return number

    def redeliver(self, update_id: int) -> None:
        """Queue an update again that was handed out before, under its old number."""
        self.pending = [u for u in self.pending if u["update_id"] != update_id]
        self.pending += [u for u in self.history if u["update_id"] == update_id]
        self.pending.sort(key=_number)
        self.signal.pulse()

    def renumber(self, first: int) -> None:
        """Count anew from `first`, as Telegram does after a quiet week: what waits and what comes.

        An offset from before confirms whatever has lower numbers now. The real server does that
        for offsets up to ten above its last number, and takes higher ones for none
        (`TQueue::get` and `Client::do_get_updates` of telegram-bot-api); this one spares nobody.
        """
        self._ids = count(first)
        renumbered = {id(one): {**one, "update_id": next(self._ids)} for one in self.pending}
        self.history = [renumbered.get(id(one), one) for one in self.history]
        self.pending = list(renumbered.values())

    async def poll(self, arguments: Arguments) -> list[JsonObject]:
        """Answer one `getUpdates`; a poller that waits already is ended with 409.

        Raises `ApiError` 409 while a webhook is set or when another call takes over.
        """
        if self.webhook.url:
            raise conflict(
                "can't use getUpdates method while webhook is active;"
                " use deleteWebhook to delete the webhook first"
            )
        self._end_poller(
            "other getUpdates request; make sure that only one bot instance is running"
        )
        self._allow(arguments)
        self._confirm(arguments.integer("offset") or 0)
        limit = arguments.integer("limit") or 100
        seconds = min(max(arguments.integer("timeout") or 0, 0), MAX_POLL_SECONDS)
        if not self.pending and seconds and self.held:
            await self._wait(seconds)
        return self.pending[: limit if 1 <= limit <= 100 else 100]

    async def _wait(self, seconds: int) -> None:
        poller = self._poller = _Poller()
        self.signal.pulse()
        try:
            async with asyncio.timeout(seconds):
                await self.signal.until(lambda: bool(poller.ended or self.pending))
        except TimeoutError:
            return
        finally:
            if self._poller is poller:
                self._poller = None
            self.signal.pulse()
        if poller.ended:
            raise conflict(f"terminated by {poller.ended}")

    def _end_poller(self, reason: str) -> None:
        if self._poller is not None:
            self._poller.ended = reason
            self._poller = None
            self.signal.pulse()

    def close(self) -> None:
        """Let a waiting call go, because the server stops."""
        self._end_poller("the end of the test server")

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            self.pending = self.pending[offset:]
        else:
            self.pending = [u for u in self.pending if _number(u) >= offset]

    def _allow(self, arguments: Arguments) -> None:
        if arguments.has("allowed_updates"):
            self._stated = arguments.strings("allowed_updates")
            self._allowed = frozenset(self._stated) or _DEFAULT_TYPES

    def set_webhook(self, arguments: Arguments, *, loopback: bool) -> bool:
        """Set or, with an empty address, delete the webhook; raises `ApiError` 400.

        `loopback` admits plain http to this machine, which the real server refuses.
        """
        url, secret = arguments.text("url"), arguments.text("secret_token")
        plain = loopback and url.startswith(("http://127.0.0.1:", "http://localhost:"))
        if url and not plain and not url.startswith("https://"):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        if len(secret) > 256:
            raise bad_request("secret token is too long")
        if secret and not _TOKEN.match(secret):
            raise bad_request("secret token contains unallowed characters")
        if url:
            self._end_poller("setWebhook request")
            self._allow(arguments)
        if arguments.flag("drop_pending_updates"):
            self.pending = []
        connections = arguments.integer("max_connections") or 40
        if not 1 <= connections <= 100:
            raise bad_request("bad webhook: max_connections must be between 1 and 100")
        self.webhook = Webhook(url, secret, connections)
        self.signal.pulse()
        return True

    def webhook_info(self) -> JsonObject:
        result: JsonObject = {
            "url": self.webhook.url,
            "has_custom_certificate": False,
            "pending_update_count": len(self.pending),
        }
        if self.webhook.url:
            result["max_connections"] = self.webhook.max_connections
        if self._stated:
            result["allowed_updates"] = self._stated
        if self.webhook.last_error:
            result["last_error_message"] = self.webhook.last_error
        return result

    async def deliver(self) -> list[int]:
        """Post every pending update to the webhook; the HTTP statuses, in order (0: no answer).

        An update that is answered with 2xx is confirmed. Any other answer ends the round for its
        chat, and the update stays the chat's first of the next round: the real server repeats it
        too, keeps the order within a chat, and lets no other chat wait for it.
        """
        statuses: list[int] = []
        stopped: set[object] = set()
        headers = {}
        if self.webhook.secret_token:
            headers["X-Telegram-Bot-Api-Secret-Token"] = self.webhook.secret_token
        async with aiohttp.ClientSession(headers=headers) as session:
            while self.webhook.url:
                ready = [u for u in self.pending if _line(u) not in stopped]
                if not ready:
                    break
                statuses.append(await self._call(session, ready[0]))
                if 200 <= statuses[-1] < 300:
                    self.pending = [one for one in self.pending if one is not ready[0]]
                    continue
                stopped.add(_line(ready[0]))
                self.webhook.last_error = f"Wrong response from the webhook: {statuses[-1]}"
        self.signal.pulse()
        return statuses

    async def _call(self, session: aiohttp.ClientSession, update: JsonObject) -> int:
        try:
            # A redirect is no answer to the real server.
            async with session.post(
                self.webhook.url, json=update, allow_redirects=False
            ) as response:
                return response.status
        except aiohttp.ClientError:
            return 0

    def unknown_types(self, names: Iterable[str]) -> list[str]:
        """The names among `names` that no update has."""
        return sorted(set(names) - UPDATE_TYPES)


def _line(update: JsonObject) -> object:
    """What the order is kept within: a chat, or for presses the person."""
    for kind, content in update.items():
        if isinstance(content, dict):
            place = content.get("from" if kind == "callback_query" else "chat")
            return kind == "callback_query", place.get("id") if isinstance(place, dict) else None
    return None


def _number(update: JsonObject) -> int:
    number = update["update_id"]
    assert isinstance(number, int)
    return number
