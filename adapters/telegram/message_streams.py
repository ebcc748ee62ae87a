"""Text that is shown while it grows (REN-4): drafts in private chats, edits elsewhere.

A draft is a preview that Telegram takes away after 30 seconds or with the next message; it leaves
no post, so `open` answers "" and `close` sends the reply. Elsewhere the first post is edited.
What is shown is one message: the first of the reply, or in a draft the one that is being written.
Source: "sendMessageDraft" of the Bot API.
"""

import hashlib
import re
from collections.abc import Sequence

import structlog

from adapters.platforms.recent_values import Expiring, Recent
from adapters.telegram import egress
from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import (
    RateLimited,
    Refused,
    TelegramFailure,
    delivery_error,
    no_drafts,
    no_method,
    repeatable_error,
)
from adapters.telegram.post_sender import Posting, or_plain
from adapters.telegram.posts import Post, read_posted, rendered
from runtime.domain.errors import DeliveryRejected, DeliveryRetry
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, TextPart
from runtime.ports import chat
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

DIRECT_INTERVAL_S = 1.0
GROUP_INTERVAL_S = 3.0
# How long a refusal of drafts is believed.
REFUSED_S = 3600.0
EVERY_CHAT = ""
# Of a group's 20 a minute, what a growing text leaves to replies and cards.
SPARE = 6
_MANY = 1_000
_SIGN = Post("\N{HORIZONTAL ELLIPSIS}")
# Characters of Markdown that make more than one message, however much of them is marks.
_ENOUGH = 16_000
_FENCE = re.compile(r"^```", re.MULTILINE)


class TelegramStreams:
    """`Streams` of one bot."""

    def __init__(self, client: TelegramClient, posting: Posting, clock: Clock) -> None:
        self._client = client
        self._posting = posting
        self._clock = clock
        self._refused: Expiring[str, bool] = Expiring(clock, REFUSED_S, _MANY)
        self._no_draft_before: Recent[str, float] = Recent(_MANY)

    def interval_s(self, target: ChatAddress) -> float | None:
        """Every chat gets a stream; groups a slow one."""
        return DIRECT_INTERVAL_S if target.chat_kind == "direct" else GROUP_INTERVAL_S

    def grows_by_edits(self, target: ChatAddress, stream: str | None) -> bool:
        """All but drafts."""
        if stream is None:
            return not self._takes_drafts(target)
        return stream != ""

    def ends_by_edit(
        self, message: OutboundMessage, stream: str, *, shown: OutboundMessage | None = None
    ) -> bool:
        """After a draft the reply is a post of its own, and a post may read like it already."""
        return stream != "" and not self._posting.begins_with(message, _standing(shown))

    def _takes_drafts(self, target: ChatAddress) -> bool:
        """Whether a draft may be shown there: in private, where none was refused not long ago."""
        refused = any(map(self._refused.get, (EVERY_CHAT, target.chat_id)))
        return target.chat_kind == "direct" and not refused

    def _believe(self, refusal: Refused, chat: str) -> None:
        """Keep that no draft is shown, so that nobody tries again with the next message."""
        self._refused.put(EVERY_CHAT if no_method(refusal) else chat, True)
        log.warning("telegram.no_drafts", reason=str(refusal), chat=chat)

    async def open(self, message: OutboundMessage) -> str:
        """ "" for a draft, else the id of the post. Raises `DeliveryError`."""
        if self._takes_drafts(message.target):
            try:
                await self._draft(message)
            except Refused as refusal:
                if not no_drafts(refusal):
                    raise delivery_error(refusal) from refusal
                # An older server, or a chat that takes none: edits do as well.
                self._believe(refusal, message.target.chat_id)
            except TelegramFailure as failure:
                raise repeatable_error(failure) from failure
            else:
                return ""
        return await self._begin(message)

    async def grow(self, message: OutboundMessage, stream: str) -> None:
        """Raises `DeliveryRetry`, or `DeliveryRejected`: it grows no more."""
        try:
            if not stream:
                await self._draft(message)
                return
            there = read_posted(stream)
            post = _beginning(message)
            if not await self._posting.replace(message.target, there, post, spare=SPARE):
                raise DeliveryRejected("the growing post was deleted")
        except TelegramFailure as failure:
            raise repeatable_error(failure) from failure

    async def close(
        self,
        message: OutboundMessage,
        stream: str,
        *,
        posted: Sequence[str],
        on_posted: chat.Posted,
        shown: OutboundMessage | None = None,
    ) -> Receipt:
        """The reply in the place of the growing post, or as posts of its own after a draft."""
        over = read_posted(stream) if stream else None
        return await self._posting.send(
            message, posted, on_posted, over=over, standing=_standing(shown)
        )

    async def find(self, message: OutboundMessage) -> str | None:  # noqa: ARG002 - the port's
        """None: a bot cannot look into a chat."""
        return None

    async def _begin(self, message: OutboundMessage) -> str:
        target, reply_to = message.target, message.reply_to
        try:
            sent = await or_plain(
                lambda post: self._posting.post(target, post, reply_to), _beginning(message)
            )
            return str(sent)
        except TelegramFailure as failure:
            raise delivery_error(failure) from failure

    async def _draft(self, message: OutboundMessage) -> None:
        """Flood control of drafts is kept here and not told on: a reply need not wait for it."""
        chat, now = message.target.chat_id, self._clock.monotonic()
        if now < (self._no_draft_before.get(chat) or now):
            raise DeliveryRetry("Telegram limits the rate of drafts")
        try:
            await self._show(message)
        except RateLimited as flood:
            self._no_draft_before.put(chat, now + (flood.after_s or DIRECT_INTERVAL_S))
            raise DeliveryRetry(str(flood)) from flood

    async def _show(self, message: OutboundMessage) -> None:
        number = _draft_id(message.outbox_id)

        async def show(post: Post) -> None:
            payload = egress.draft_payload(message.target, number, post)
            await self._client.call("sendMessageDraft", payload)

        await or_plain(show, _newest(message))


def _standing(shown: OutboundMessage | None) -> Post | None:
    """The post that shows it."""
    return None if shown is None else _beginning(shown)


def _beginning(message: OutboundMessage) -> Post:
    """The first post of the text so far; a sign of life where nothing of it can be seen."""
    return next(iter(rendered(_text(message)[:_ENOUGH])), _SIGN)


def _newest(message: OutboundMessage) -> Post:
    """The post that is being written. Of a long text only the end is read, at each update again."""
    text = _text(message)
    if len(text) > _ENOUGH:
        cut = text.find("\n\n", len(text) - _ENOUGH)
        cut = len(text) - _ENOUGH if cut < 0 else cut
        # A fence that was opened before holds what follows.
        inside = len(_FENCE.findall(text, 0, cut)) % 2
        text = f"```\n{text[cut:].lstrip()}" if inside else text[cut:]
    return next(reversed(rendered(text)), _SIGN)


def _text(message: OutboundMessage) -> str:
    return "\n\n".join(part.markdown for part in message.parts if isinstance(part, TextPart))


def _draft_id(outbox_id: str) -> int:
    """The same for every update of a message, never zero, within 31 bits."""
    digest = hashlib.sha256(outbox_id.encode()).digest()
    return int.from_bytes(digest[:4]) % (2**31 - 1) + 1
