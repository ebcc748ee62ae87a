"""A reply that is shown while it grows: Slack's own streams in threads, edits elsewhere (REN-4).

A stream only grows at its end and carries no mark until it is stopped. So what is streamed is the
beginning of the rendering that more text will not change, and where the reply turned out otherwise
(a model call that was repeated, a text that shrank) its post is replaced at the end. A stream that
Slack ended, or that another process opened, goes on as a plain post. The final text always wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from adapters.platforms.recent_values import Recent
from adapters.slack import egress
from adapters.slack.client import SlackClient
from adapters.slack.connection import Reception
from adapters.slack.egress import Post
from adapters.slack.failures import (
    RateLimited,
    Refused,
    SlackFailure,
    Unanswered,
    delivery_error,
    refuses_form,
    repeatable_error,
)
from adapters.slack.history import find_asker, find_posts, find_stream
from adapters.slack.posts import Poster
from adapters.slack.rate_refusals import Refusals, UseLimit
from runtime.domain.errors import DeliveryRejected, DeliveryRetry, DeliveryUnknown
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, TextPart
from runtime.domain.value import JsonObject
from runtime.ports.chat import Posted
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

# Appending is limited to some hundred a minute in the whole workspace, editing to some fifty.
NATIVE_S = 1.0
EDIT_S = 3.0
# Slack lets some twenty streams a minute begin and end; the rest grow by edits, so that no reply
# has to wait for the end of its stream.
STARTS = 15
MINUTE_S = 60.0
_ENDED = frozenset(
    {
        "message_not_in_streaming_state",
        "message_not_found",
        "stopped_by_user",
        "streaming_mode_mismatch",
    }
)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a stream of this process holds; `native` while it is Slack's own.

    `post` is what it surely shows since it is a plain post; None while nobody knows.
    """

    text: str
    native: bool
    post: Post | None = None


class SlackStreams:
    """`Streams` of one workspace. What is open is known by the id of its post."""

    def __init__(self, client: SlackClient, reception: Reception, clock: Clock) -> None:
        self._client = client
        self._poster = Poster(client)
        self._reception = reception
        self._shown: Recent[str, _Shown] = Recent(1000)
        self._starts = UseLimit(clock, STARTS, MINUTE_S)
        self._refusals = Refusals(clock)

    def interval_s(self, target: ChatAddress) -> float | None:
        """Every chat shows growing text, the threads that Slack can stream to more often."""
        return EDIT_S if self._recipient(target) is None else NATIVE_S

    def grows_by_edits(self, target: ChatAddress, stream: str | None) -> bool:
        """All but Slack's own streams that this process opened."""
        if stream is None:
            return self._recipient(target) is None
        shown = self._shown.get(stream)
        return shown is None or not shown.native

    def ends_by_edit(
        self, message: OutboundMessage, stream: str, *, shown: OutboundMessage | None = None
    ) -> bool:
        """Where it is a post that reads otherwise, and where what was streamed is not the beginning
        of the reply."""
        mine = self._shown.get(stream)
        if mine is not None and mine.native:
            return _rest(message, mine) is None
        return not self._stands(message, stream, shown)

    async def open(self, message: OutboundMessage) -> str:
        first = _first(message)
        if first is None:
            raise DeliveryRejected("there is nothing to show yet")
        await self._learn_asker(message)
        recipient = self._recipient(message.target)
        if recipient is not None:
            try:
                return await self._start(message, recipient)
            except RateLimited:
                log.info("slack.no_stream", reason="too many were begun")
            except SlackFailure as failure:
                if not self._refusals.believe(failure, message.target):
                    raise delivery_error(failure) from failure
        ts = await self._poster.post(message, first, 0)
        self._shown.put(ts, _Shown("", native=False, post=first))
        return ts

    async def grow(self, message: OutboundMessage, stream: str) -> None:
        first = _first(message)
        if first is None:
            return
        shown = self._shown.get(stream)
        if shown is None:
            # Another process opened it, and what it holds is not known here.
            await self._stop(message.target, stream)
            shown = self._plain(stream)
        if shown.native:
            await self._append(message, stream, shown)
        else:
            # Until Slack has answered, nobody knows what the post shows.
            self._plain(stream)
            if not await self._poster.replace(message, first, stream, mark=True):
                raise DeliveryRejected("the post that grew is gone")
            self._shown.put(stream, _Shown("", native=False, post=first))

    async def close(
        self,
        message: OutboundMessage,
        stream: str,
        *,
        posted: Sequence[str],
        on_posted: Posted,
        shown: OutboundMessage | None = None,
    ) -> Receipt:
        if posted or not stream:
            return await self._poster.post_rest(message, posted, on_posted)
        posts = egress.posts_of(message)
        first = posts[0] if posts else None
        whole = self._stands(message, stream, shown) or await self._stop(
            message.target, stream, message
        )
        if not isinstance(first, Post):
            # A reply without words: nothing may stay of what was shown instead.
            await self._poster.delete(message.target.chat_id, stream)
            return await self._poster.post_rest(message, (), on_posted)
        if not whole and not await self._poster.replace(message, first, stream, mark=True):
            return await self._anew(message, stream, on_posted)
        if len(posts) > 1:
            await on_posted(stream)
        return await self._poster.post_rest(message, (stream,), on_posted)

    async def _anew(self, message: OutboundMessage, stream: str, on_posted: Posted) -> Receipt:
        """The reply as new posts, where the one that grew is gone or may not be changed any more.

        What an earlier attempt posted in its place is found by its mark, and not posted again.
        """
        await self._poster.delete(message.target.chat_id, stream)
        done = await find_posts(self._client, message, ())
        return await self._poster.post_rest(message, done, on_posted)

    async def find(self, message: OutboundMessage) -> str | None:
        """By the mark of a post, or as the one half stream of the thread."""
        try:
            marked = await find_posts(self._client, message, ())
            if marked:
                return marked[0]
            bot = self._reception.bot
            if message.target.thread_id is None or bot is None:
                return None
            return await find_stream(self._client, message, bot)
        except DeliveryRejected as error:
            log.info("slack.stream_not_found", reason=str(error))
            return None

    async def _start(self, message: OutboundMessage, recipient: JsonObject) -> str:
        target, text = message.target, _steady(message)
        body: JsonObject = {
            "channel": target.chat_id,
            "thread_ts": target.thread_id,
            **recipient,
        }
        if text:
            body["markdown_text"] = text
        self._starts.take()
        ts = (await self._client.write("chat.startStream", body)).get("ts")
        if not isinstance(ts, str):
            raise DeliveryUnknown("Slack began a stream and named no id")
        self._shown.put(ts, _Shown(text, native=True))
        return ts

    async def _append(self, message: OutboundMessage, stream: str, shown: _Shown) -> None:
        text = _steady(message)
        new = text.removeprefix(shown.text)
        if not text.startswith(shown.text) or not new:
            return
        body: JsonObject = {
            "channel": message.target.chat_id,
            "ts": stream,
            "markdown_text": new,
        }
        try:
            await self._client.write("chat.appendStream", body)
        except SlackFailure as failure:
            if isinstance(failure, Refused) and failure.error in _ENDED:
                self._plain(stream)
                return
            verdict = delivery_error(failure)
            unknown = isinstance(verdict, DeliveryUnknown)
            if unknown or self._refusals.believe(failure, message.target):
                # It may hold the words or not, so nothing can be added behind them.
                await self._stop(message.target, stream)
                self._plain(stream)
                return
            raise verdict from failure
        self._shown.put(stream, _Shown(text, native=True))

    async def _stop(
        self, target: ChatAddress, stream: str, reply: OutboundMessage | None = None
    ) -> bool:
        """End Slack's own stream, if it is one: its post cannot be replaced before. Safe to repeat.

        True where it ended with all of the reply's first post, because what was shown is the
        beginning of it. Raises `DeliveryRetry`, or `DeliveryRejected` where the account is shut
        out.
        """
        shown = self._shown.get(stream)
        if target.thread_id is None or (shown is not None and not shown.native):
            return False
        rest = _rest(reply, shown) if reply is not None else None
        try:
            added = await self._write_end({"channel": target.chat_id, "ts": stream}, reply, rest)
        except SlackFailure as failure:
            verdict = repeatable_error(failure)
            shut_out = isinstance(verdict, DeliveryRejected) and verdict.account_wide
            if isinstance(verdict, DeliveryRetry) or shut_out:
                if isinstance(failure, Unanswered):
                    # It may hold the rest by now, so it must not be added again.
                    self._shown.drop(stream)
                raise verdict from failure
            if not (isinstance(failure, Refused) and failure.error in _ENDED):
                self._refusals.believe(failure, target)
            log.info("slack.stream_ended", reason=str(failure))
            added = False
        self._plain(stream)
        return added

    async def _write_end(
        self, body: JsonObject, reply: OutboundMessage | None, rest: str | None
    ) -> bool:
        """Stop a stream with the `rest` of a reply and its mark, without the mark or without both
        where Slack refuses them. Returns whether the post holds the reply. Raises `SlackFailure`.
        """
        words: JsonObject = {"markdown_text": rest} if rest else {}
        mark: JsonObject = {} if reply is None else {"metadata": egress.metadata_of(reply, 0)}
        forms = [words | mark] + [words] * bool(mark) + [{}] * bool(words)
        for place, form in enumerate(forms):
            try:
                await self._client.write("chat.stopStream", body | form)
            except Refused as refusal:
                ended = refusal.error in _ENDED or not refuses_form(refusal)
                if ended or place + 1 == len(forms):
                    raise
                log.warning("slack.sent_plainer", reason=str(refusal), form="stream")
            else:
                return rest is not None and form.items() >= words.items()
        raise AssertionError("the last form is sent or raises")

    def _stands(self, reply: OutboundMessage, stream: str, shown: OutboundMessage | None) -> bool:
        """Whether the post surely is the first post of the reply already.

        Both must say so: the caller knows what was to be shown under its lease, and only here is
        known whether it was put into the post, as where a stream ended in front of its last words.
        """
        mine, first = self._shown.get(stream), _first(reply)
        if first is None or shown is None or mine is None:
            return False
        return mine.post == first and _first(shown) == first

    def _plain(self, stream: str) -> _Shown:
        shown = _Shown("", native=False)
        self._shown.put(stream, shown)
        return shown

    async def _learn_asker(self, message: OutboundMessage) -> None:
        """After a restart, or where another process hears, nobody here knows who asked."""
        target, askers = message.target, self._reception.memory.askers
        if target.thread_id is None or target.chat_kind == "direct" or self._refusals.hold(target):
            return
        if askers.get((target.chat_id, target.thread_id)) is not None or not self._starts.free():
            return
        found = await find_asker(self._client, message)
        if found is not None:
            askers.put((target.chat_id, target.thread_id), found)

    def _recipient(self, target: ChatAddress) -> JsonObject | None:
        """For whom Slack streams there; None where it does not. Direct chats need no name."""
        if target.thread_id is None or not self._starts.free() or self._refusals.hold(target):
            return None
        if target.chat_kind == "direct":
            return {}
        asker = self._reception.memory.askers.get((target.chat_id, target.thread_id))
        if asker is None:
            return None
        bot = self._reception.bot
        team = asker.team or (bot.team_id if bot is not None else "")
        return {"recipient_user_id": asker.user, "recipient_team_id": team}


def _rest(reply: OutboundMessage, shown: _Shown | None) -> str | None:
    """What the stream lacks of the reply's first post; None where it holds something else."""
    first = _first(reply)
    whole = _markdown(reply)
    if shown is None or first is None or len(first.blocks) > 1:
        return None
    return whole.removeprefix(shown.text) if whole.startswith(shown.text) else None


def _first(message: OutboundMessage) -> Post | None:
    posts = egress.posts_of(message)
    return posts[0] if posts and isinstance(posts[0], Post) else None


def _steady(message: OutboundMessage) -> str:
    """The beginning of the first post's Markdown that more text will not change.

    What the text without its last words renders to is compared with the whole: where both agree,
    nothing is open that the next words could close otherwise.
    """
    part = message.parts[0]
    if not isinstance(part, TextPart):
        return ""
    words = part.markdown.rstrip()
    shorter = words[: max(words.rfind(" "), words.rfind("\n"), 0)]
    before = message.model_copy(update={"parts": (TextPart(markdown=shorter),)})
    whole, other = _markdown(message), _markdown(before)
    pairs = zip(whole, other, strict=False)
    same = next((place for place, (one, two) in enumerate(pairs) if one != two), None)
    return whole[: min(len(whole), len(other)) if same is None else same].rstrip()


def _markdown(message: OutboundMessage) -> str:
    first = _first(message)
    block = first.blocks[0] if first is not None and first.blocks else None
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""
