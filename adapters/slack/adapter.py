"""One Slack workspace as a `ChatAdapter`: it moves messages both ways and decides nothing.

What comes in, over a socket (`socket_mode`) or as a request (`webhook`), is read by `ingress` and
`actions`, completed with what only Slack knows (`directory`), stored by the engine and only then
acknowledged (`event_intake`). What goes out is written by `egress` and `cards`, and posted by
`posts`, `message_streams` and `uploads`.
"""

from collections.abc import Sequence

import structlog

from adapters.slack import egress
from adapters.slack.client import SlackClient
from adapters.slack.connection import Reception
from adapters.slack.egress import Upload
from adapters.slack.failures import SlackFailure
from adapters.slack.files import SlackFiles
from adapters.slack.history import find_posts
from adapters.slack.ingress import CHANNEL, COMMAND_PREFIX
from adapters.slack.message_streams import EDIT_S, SlackStreams
from adapters.slack.posts import Poster
from adapters.slack.rate_refusals import Refusals
from adapters.slack.settings import SlackSettings
from runtime.domain.errors import DeliveryRejected
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, undecided
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
    # `chat.update` is limited to some fifty a minute in the whole workspace.
    edit_interval_s=EDIT_S,
    live_cards=True,
    files=True,
    # "Add files to Slack": up to 1 GB.
    file_bytes=1_000_000_000,
    command_prefix=COMMAND_PREFIX,
)


class SlackAdapter:
    """`ChatAdapter` over the Web API and one of Slack's two ways in. Close it."""

    channel = CHANNEL
    capabilities = _CAPABILITIES

    def __init__(self, settings: SlackSettings, clock: Clock) -> None:
        self._client = SlackClient(settings, clock)
        self._poster = Poster(self._client)
        self.reception = Reception(self._client, settings, clock)
        self.streams = SlackStreams(self._client, self.reception, clock)
        self._no_status = Refusals(clock)
        self.files = SlackFiles(self._client, settings.api_url)
        self.webhook = self.reception.webhook

    @property
    def account(self) -> str:
        """The id of the workspace (its team); empty before `connect`."""
        return self.reception.bot.team_id if self.reception.bot is not None else ""

    def status(self) -> AdapterStatus:
        return self.reception.status()

    async def connect(self) -> None:
        await self.reception.connect()

    async def listen(self, gatehouse: Gatehouse) -> None:
        await self.reception.listen(gatehouse)

    async def send(
        self, message: OutboundMessage, *, posted: Sequence[str], on_posted: Posted
    ) -> Receipt:
        """See `ChatAdapter.send`. A message's id is its `ts`, a file's the id of the file."""
        return await self._poster.post_rest(message, posted, on_posted)

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Replace each post that changes; posts that are left over are deleted, and one that people
        deleted stays so. Safe to repeat.

        Raises `DeliveryRetry`, or `DeliveryRejected` where more posts would be needed.
        """
        posts, ids = egress.posts_of(message), receipt.message_ids
        if len(posts) > len(ids):
            raise DeliveryRejected(f"the edit needs {len(posts)} posts and there are {len(ids)}")
        before = undecided(message)
        there = egress.posts_of(before) if before is not None else ()
        for number, (post, ts) in enumerate(zip(posts, ids, strict=False)):
            if not isinstance(post, Upload) and there[number : number + 1] != (post,):
                await self._poster.replace(message, post, ts)
        for ts in ids[len(posts) :]:
            await self._poster.delete(message.target.chat_id, ts)

    async def typing(self, target: ChatAddress, state: str) -> None:
        """Set the status line of the thread, or of the last message of a direct chat (REN-5)."""
        thread = target.thread_id or self.reception.memory.last_heard.get(target.chat_id)
        if thread is None or self._no_status.hold(target):
            return
        body: JsonObject = {
            "channel_id": target.chat_id,
            "thread_ts": thread,
            "status": egress.status_line(state),
        }
        try:
            await self._client.write("assistant.threads.setStatus", body)
        except SlackFailure as failure:
            if not self._no_status.believe(failure, target):
                log.info("slack.no_status", reason=str(failure))

    async def lookup(self, message: OutboundMessage, *, posted: Sequence[str]) -> Receipt | None:
        """The posts that are there, perhaps only the first of them; None where there is none.

        Raises `DeliveryRetry`, or `DeliveryRejected` where nobody can look.
        """
        found = await find_posts(self._client, message, posted, self.reception.bot)
        return Receipt(message_ids=found) if found else None

    async def close(self) -> None:
        await self._client.close()
