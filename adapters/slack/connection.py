"""The way in of one workspace: who the bot is, by which way Slack reaches it, and how that stands.

By Socket Mode the gateway calls Slack and keeps the sockets open; by HTTP Slack calls the gateway,
and there is nothing to do but to be there.
"""

import asyncio
from functools import partial

import structlog

from adapters.slack import bot_identity
from adapters.slack.client import SlackClient
from adapters.slack.directory import Directory
from adapters.slack.event_intake import Receiver
from adapters.slack.experience import ASSISTANT_VIEW_ENDS, VIEWS
from adapters.slack.ingress import Bot
from adapters.slack.settings import SlackSettings
from adapters.slack.socket_mode import SocketMode
from adapters.slack.thread_cache import Memory
from adapters.slack.webhook import SlackWebhook
from runtime.domain.errors import Forbidden, Unavailable
from runtime.ports.chat import AdapterStatus
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse

log = structlog.get_logger(__name__)


class Reception:
    """Receives for one bot. `memory` is filled by what is heard."""

    def __init__(self, client: SlackClient, settings: SlackSettings, clock: Clock) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self.memory = Memory()
        self.bot: Bot | None = None
        self.webhook = _webhook(settings, clock, self)
        self._receiver: Receiver | None = None
        self._asking = asyncio.Lock()
        self._address: str | None = None
        self._sockets: list[SocketMode] = []
        self._others = 0
        self._trouble = "Not connected to Slack yet."

    @property
    def granted_scopes(self) -> frozenset[str]:
        """What Slack says that the bot token may do; empty before `connect`."""
        return self._client.granted

    def status(self) -> AdapterStatus:
        """Connected while at least one socket is open and greeted; by HTTP, once Slack took the
        token. A token that Slack refuses meanwhile is shown until it is taken again."""
        kind = VIEWS[self.memory.experience] if self.memory.experience else ""
        if self._client.trouble and self._receiver is not None:
            return AdapterStatus(connected=False, detail=self._client.trouble, kind=kind)
        if self._settings.by_http:
            detail = self._trouble or " ".join(filter(None, (self._lacking(), self._old_view())))
            return AdapterStatus(connected=self._receiver is not None, detail=detail, kind=kind)
        if any(socket.connected for socket in self._sockets):
            notes = (self._company(), self._lacking(), self._old_view())
            return AdapterStatus(connected=True, detail=" ".join(filter(None, notes)), kind=kind)
        trouble = next((socket.trouble for socket in self._sockets if socket.trouble), "")
        return AdapterStatus(connected=False, detail=trouble or self._trouble, kind=kind)

    async def connect(self) -> None:
        """Try the tokens. Raises `Forbidden` for a wrong one, `Unavailable` to try again."""
        try:
            bot_identity.check_prefixes(self._settings)
            bot = await bot_identity.who_am_i(self._client)
            if not self._settings.by_http:
                self._address = await bot_identity.first_address(self._client)
        except (Forbidden, Unavailable) as error:
            self._trouble = str(error)
            raise
        self.bot = bot
        self._receiver = Receiver(
            self._client,
            bot,
            directory=Directory(self._client, bot, self._clock),
            settings=self._settings,
            clock=self._clock,
            memory=self.memory,
        )
        self._trouble = "" if self._settings.by_http else "Not listening to Slack yet."

    async def receiver(self) -> Receiver:
        """Who takes what Slack sends, also in a process that was not told to connect.

        Raises as `connect`.
        """
        async with self._asking:
            if self._receiver is None:
                await self.connect()
        return self._connected()

    async def listen(self, gatehouse: Gatehouse) -> None:
        """Receive until cancelled. Lost connections are opened again, whatever the reason.

        Raises `Unavailable` before `connect`.
        """
        receiver = self._connected()
        if self._settings.by_http:
            await asyncio.Event().wait()
        handler = partial(receiver.receive, gatehouse=gatehouse)
        addresses = [self._address, *[None] * (self._settings.connections - 1)]
        self._address = None
        self._sockets = [
            SocketMode(self._client, self._clock, handler, count=self._count, address=address)
            for address in addresses
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for number, socket in enumerate(self._sockets):
                    group.create_task(socket.run(), name=f"slack-connection-{number}")
        finally:
            self._sockets = []

    def _connected(self) -> Receiver:
        if self._receiver is None:
            raise Unavailable("Slack was not asked yet who the bot is.", hint="Connect first.")
        return self._receiver

    def _count(self, counted: int) -> None:
        """Slack gives each event to one socket; another program's sockets take some of them."""
        self._others = max(0, counted - sum(socket.links for socket in self._sockets))
        if self._others:
            log.warning("slack.other_sockets", counted=counted, others=self._others)

    def _lacking(self) -> str:
        lacking = self._client.lacking
        if not lacking:
            return ""
        scopes = ", ".join(sorted({scope or "a scope" for scope in lacking.values()}))
        return (
            f"The application lacks {scopes}: Slack refuses {', '.join(sorted(lacking))}. Put the "
            "text of `gatehouse slack manifest` into its App Manifest and reinstall it; with "
            "--assistant-view if its manifest says assistant_view. If it has neither view, only "
            "add the scopes: that manifest would give it the agent view, which cannot be undone."
        )

    def _old_view(self) -> str:
        """The assistant view, where the events prove it: it will end."""
        if self.memory.experience != "assistant":
            return ""
        return (
            f"This application has Slack's assistant view, which Slack ends in "
            f"{ASSISTANT_VIEW_ENDS}. `gatehouse slack manifest` prints the manifest of the agent "
            "view; the switch cannot be undone."
        )

    def _company(self) -> str:
        if not self._others:
            return ""
        return (
            f"Slack counted {self._others} more sockets of this application than this gateway has. "
            "If another program uses the same app token, it takes some of the messages: stop it."
        )


def _webhook(settings: SlackSettings, clock: Clock, reception: Reception) -> SlackWebhook | None:
    """Where Slack calls us, if the credentials say that it does."""
    if settings.app_token is not None or settings.signing_secret is None:
        return None
    path = f"slack/{settings.name}" if settings.name else "slack"
    return SlackWebhook(path, settings.signing_secret, clock, reception.receiver)
