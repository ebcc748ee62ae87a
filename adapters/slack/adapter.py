"""One Slack workspace as a `ChatAdapter`: it moves messages both ways and decides nothing.

What comes in is read by `ingress`, completed with what only Slack knows (`directory`), stored by
`gatehouse.accept` and only then acknowledged (`receiving`, `socket_mode`). What goes out is written
by `egress` and posted by `posting`.
"""

import asyncio
from collections.abc import Sequence

import structlog

from adapters.slack import egress
from adapters.slack.client import SlackClient
from adapters.slack.directory import Directory, Recent
from adapters.slack.failures import SlackFailure, TokenName, connection_error, wrong_token
from adapters.slack.history import find_posts
from adapters.slack.ingress import CHANNEL, Bot
from adapters.slack.posting import Poster
from adapters.slack.receiving import Receiver
from adapters.slack.settings import SlackSettings
from adapters.slack.socket_mode import SocketMode
from runtime.domain.errors import DeliveryRejected, Forbidden, Unavailable
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.domain.value import JsonObject
from runtime.ports.chat import AdapterStatus, Capabilities, Posted
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)

_CAPABILITIES = Capabilities(
    chat_rate=1.0,
    chat_burst=5,
    account_rate=20.0,
    account_burst=20,
    lookup=True,
    # Slack takes the status away after two minutes.
    typing_interval_s=60.0,
    edits=True,
    threads=True,
)


class SlackAdapter:
    """`ChatAdapter` over the Web API and Socket Mode. Close it."""

    def __init__(self, settings: SlackSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client = SlackClient(settings)
        self._poster = Poster(self._client)
        self._bot: Bot | None = None
        self._directory: Directory | None = None
        self._address: str | None = None
        self._sockets: list[SocketMode] = []
        self._last_heard: Recent[str, str] = Recent()
        self._trouble = "Not connected to Slack yet."

    @property
    def channel(self) -> str:
        return CHANNEL

    @property
    def account(self) -> str:
        """The id of the workspace (its team); empty before `connect`."""
        return self._bot.team_id if self._bot is not None else ""

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def status(self) -> AdapterStatus:
        """Connected while at least one socket is open and greeted."""
        if any(socket.connected for socket in self._sockets):
            return AdapterStatus(connected=True)
        trouble = next((socket.trouble for socket in self._sockets if socket.trouble), "")
        return AdapterStatus(connected=False, detail=trouble or self._trouble)

    async def connect(self) -> None:
        """Try both tokens. Raises `Forbidden` for a wrong one, `Unavailable` to try again."""
        try:
            self._check_prefixes()
            bot = await self._who_am_i()
            self._address = await self._first_address()
        except (Forbidden, Unavailable) as error:
            self._trouble = str(error)
            raise
        self._bot, self._directory = bot, Directory(self._client, bot)
        self._trouble = "Not listening to Slack yet."

    async def listen(self, gatehouse: Gatehouse) -> None:
        """Receive until cancelled. Lost connections are opened again, whatever the reason.

        Raises `Unavailable` before `connect`.
        """
        if self._bot is None or self._directory is None:
            raise Unavailable("Slack was not asked yet who the bot is.", hint="Connect first.")
        receiver = Receiver(
            self._bot,
            self._directory,
            gatehouse=gatehouse,
            settings=self._settings,
            clock=self._clock,
            last_heard=self._last_heard,
        )
        addresses = [self._address, *[None] * (self._settings.connections - 1)]
        self._address = None
        self._sockets = [
            SocketMode(self._client, self._clock, receiver.receive, address=address)
            for address in addresses
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for number, socket in enumerate(self._sockets):
                    group.create_task(socket.run(), name=f"slack-connection-{number}")
        finally:
            self._sockets = []

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """See `ChatAdapter.send`. A `ts` is Slack's message id."""
        posts, ids, target = egress.posts_of(message), list(posted), message.target
        for number in range(len(ids), len(posts)):
            ts = await self._poster.post(message, posts[number], number)
            if target.thread_id is not None and self._directory is not None:
                self._directory.joined(target.chat_id, target.thread_id)
            ids.append(ts)
            if len(ids) < len(posts):
                await on_posted(ts)
        return Receipt(message_ids=tuple(ids))

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Replace each post; posts that are left over are deleted. Safe to repeat.

        Raises `DeliveryRetry`, or `DeliveryRejected` where more posts would be needed.
        """
        posts, ids = egress.posts_of(message), receipt.message_ids
        if len(posts) > len(ids):
            raise DeliveryRejected(f"the edit needs {len(posts)} posts and there are {len(ids)}")
        for post, ts in zip(posts, ids, strict=False):
            await self._poster.replace(message, post, ts)
        for ts in ids[len(posts) :]:
            await self._poster.delete(message.target.chat_id, ts)

    async def typing(self, target: ChatAddress, state: str) -> None:
        """Set the status line of the thread, or of the last message of a direct chat (REN-5)."""
        thread = target.thread_id or self._last_heard.get(target.chat_id)
        if thread is None:
            return
        body: JsonObject = {
            "channel_id": target.chat_id,
            "thread_ts": thread,
            "status": egress.status_line(state),
        }
        try:
            await self._client.write("assistant.threads.setStatus", body)
        except SlackFailure as failure:
            log.info("slack.no_status", reason=str(failure))

    async def lookup(self, message: OutboundMessage, *, posted: Sequence[str]) -> Receipt | None:
        """The posts that are there, perhaps only the first of them; None where there is none.

        Raises `DeliveryRetry`, or `DeliveryRejected` where nobody can look.
        """
        found = await find_posts(self._client, message, posted)
        return Receipt(message_ids=found) if found else None

    async def close(self) -> None:
        await self._client.close()

    def _check_prefixes(self) -> None:
        """Two tokens that were swapped are the commonest mistake; Slack's codes do not say it."""
        given: list[tuple[TokenName, str, str]] = [
            ("bot", "xoxb-", self._settings.bot_token.get_secret_value()),
            ("app", "xapp-", self._settings.app_token.get_secret_value()),
        ]
        for name, prefix, token in given:
            if not token.startswith(prefix):
                raise wrong_token(name, f"it does not begin with {prefix}")

    async def _who_am_i(self) -> Bot:
        try:
            answer = await self._client.write("auth.test", {})
        except SlackFailure as failure:
            raise connection_error(failure, "bot") from failure
        found = {key: answer.get(key) for key in ("team_id", "user_id", "bot_id")}
        known = {key: value for key, value in found.items() if isinstance(value, str)}
        if len(known) < len(found):
            raise wrong_token("bot", "it does not belong to a bot")
        return Bot(**known)

    async def _first_address(self) -> str:
        """Proves the other token; `listen` uses the address, which is good for one connection."""
        try:
            return await self._client.socket_address()
        except SlackFailure as failure:
            raise connection_error(failure, "app") from failure
