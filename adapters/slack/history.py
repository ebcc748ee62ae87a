"""Finding out what became of a send: the posts of an outbox row, by the metadata they carry.

It reads a bounded number of pages and refuses to guess: where the posts may lie further back than
it looks, the outcome stays unknown. A file carries no metadata; it is known by the mark beside it,
or, where Slack took none, by its name if only one unmarked file of that name was shared since. A
post that Slack took without its mark is known by its words, if only one of the bot's unmarked posts
since the question has them.
"""

import html
import re
from collections.abc import Sequence

from adapters.slack.client import SlackClient
from adapters.slack.directory import next_cursor
from adapters.slack.egress import Post, Upload, file_mark, marks_of, part_number, posts_of
from adapters.slack.failures import Refused, SlackFailure, lookup_error
from adapters.slack.ingress import Bot
from adapters.slack.thread_cache import Asker
from runtime.domain.errors import DeliveryRejected
from runtime.domain.json_fields import objects_of, text_of
from runtime.domain.messages import OutboundMessage
from runtime.domain.value import JsonObject

_TS = re.compile(r"\d+\.\d+")
_LINK = re.compile(r"<([^<>|]+)(?:\|[^<>]*)?>")
PAGE = 200
MAX_PAGES = 20


async def find_posts(
    client: SlackClient, message: OutboundMessage, posted: Sequence[str], bot: Bot | None = None
) -> tuple[str, ...]:
    """The ids of the message's posts in order, from the first on without a gap.

    Fewer than the message needs when it broke off in the middle. Raises `DeliveryRetry`, or
    `DeliveryRejected` where the history is closed to the bot or too long to be sure.
    """
    look = _Look(message.outbox_id, bot, since_question="oldest" in _query(message)[1])
    try:
        await _look(client, message, look)
    except SlackFailure as failure:
        raise lookup_error(failure) from failure
    posts, ids = posts_of(message), list(posted)
    for post in posts[len(ids) :]:
        found = look.numbered.get(len(ids))
        if found is None:
            found = (
                look.file_of(post, len(ids), ids)
                if isinstance(post, Upload)
                else look.unmarked_post(post, ids)
            )
        if found is None:
            break
        ids.append(found)
    return tuple(ids)


class _Look:
    """What was seen of one row in the history: posts by their number, and the bot's files."""

    def __init__(self, outbox_id: str, bot: Bot | None, *, since_question: bool) -> None:
        self._outbox_id = outbox_id
        self._bot = bot
        self._since_question = since_question
        self.numbered: dict[int, str] = {}
        self._files: list[tuple[str, str]] = []
        self._marked: dict[str, str] = {}
        self._unmarked: list[tuple[str, str]] = []

    def see(self, posted: JsonObject) -> None:
        number, ts = part_number(posted, self._outbox_id), posted.get("ts")
        if number is not None and isinstance(ts, str):
            self.numbered[number] = ts
        if self._bot is None or posted.get("bot_id") != self._bot.bot_id:
            return
        if isinstance(ts, str) and not (posted.get("metadata") or posted.get("streaming_state")):
            self._unmarked.append((ts, _words(text_of(posted, "text"))))
        marks = marks_of(posted)
        for file in objects_of(posted, "files"):
            if marks:
                self._marked.update(dict.fromkeys(marks, str(file.get("id"))))
            else:
                self._files.append((str(file.get("id")), str(file.get("name"))))

    def unmarked_post(self, post: Post, taken: Sequence[str]) -> str | None:
        """Raises `DeliveryRejected` where nobody can tell. Without a question as its bound, the
        history may hold the same words from long ago, and they are not looked for."""
        if not self._since_question:
            return None
        wanted = _words(post.text)
        same = [ts for ts, words in self._unmarked if words == wanted and ts not in taken]
        if len(same) > 1:
            raise DeliveryRejected("several posts have the same words and no mark")
        return same[0] if same else None

    def file_of(self, upload: Upload, number: int, taken: Sequence[str]) -> str | None:
        """Raises `DeliveryRejected` where nobody can tell."""
        if self._bot is None:
            raise DeliveryRejected("the bot's own files cannot be told before it is connected")
        marked = self._marked.get(file_mark(self._outbox_id, number))
        if marked is not None:
            return marked
        same = [key for key, name in self._files if name == upload.name and key not in taken]
        if len(same) > 1:
            raise DeliveryRejected(f"several files are called {upload.name}")
        return same[0] if same else None


def _words(text: str) -> str:
    """A text as it is compared: Slack may put addresses into angle brackets and change blanks."""
    return " ".join(html.unescape(_LINK.sub(r"\1", text)).split())


async def _look(client: SlackClient, message: OutboundMessage, look: _Look) -> None:
    method, arguments = _query(message)
    for _ in range(MAX_PAGES):
        try:
            page = await client.read(method, arguments)
        except Refused as refusal:
            if refusal.error == "thread_not_found":
                return
            raise
        for posted in objects_of(page, "messages"):
            look.see(posted)
        cursor = next_cursor(page)
        if not cursor:
            return
        arguments = {**arguments, "cursor": cursor}
    raise DeliveryRejected(f"more than {MAX_PAGES * PAGE} messages came since: not looked further")


def _query(message: OutboundMessage) -> tuple[str, dict[str, str | int | bool]]:
    arguments: dict[str, str | int | bool] = {
        "channel": message.target.chat_id,
        "limit": PAGE,
        "include_all_metadata": True,
    }
    if message.reply_to is not None and _TS.fullmatch(message.reply_to):
        # Slack's own time of the question: this machine's clock may be wrong by any amount.
        arguments["oldest"] = message.reply_to
    if message.target.thread_id is None:
        return "conversations.history", arguments
    return "conversations.replies", {**arguments, "ts": message.target.thread_id}


async def find_asker(client: SlackClient, message: OutboundMessage) -> Asker | None:
    """Who asked what the message answers, in its thread; None where Slack does not tell now."""
    target, asked = message.target, message.reply_to or ""
    if target.thread_id is None or not _TS.fullmatch(asked):
        return None
    arguments: dict[str, str | int | bool] = {
        "channel": target.chat_id,
        "ts": target.thread_id,
        "oldest": asked,
        "latest": asked,
        "inclusive": True,
    }
    try:
        page = await client.read("conversations.replies", arguments)
    except SlackFailure:
        return None
    found = next((one for one in objects_of(page, "messages") if one.get("ts") == asked), {})
    user = text_of(found, "user")
    if not user or found.get("bot_id"):
        return None
    return Asker(user, text_of(found, "user_team") or text_of(found, "team"))


async def find_stream(client: SlackClient, message: OutboundMessage, bot: Bot) -> str | None:
    """The one stream in the message's thread that was begun and never finished: it has no mark.

    Raises `DeliveryRetry` or `DeliveryRejected`; of several nobody can tell which it is.
    """
    method, arguments = _query(message)
    try:
        page = await client.read(method, arguments)
    except SlackFailure as failure:
        raise lookup_error(failure) from failure
    found = [posted for posted in objects_of(page, "messages") if _is_half(posted, bot)]
    ts = found[0].get("ts") if len(found) == 1 else None
    return ts if isinstance(ts, str) else None


def _is_half(posted: JsonObject, bot: Bot) -> bool:
    return (
        posted.get("bot_id") == bot.bot_id
        and isinstance(posted.get("streaming_state"), str)
        and not posted.get("metadata")
    )
