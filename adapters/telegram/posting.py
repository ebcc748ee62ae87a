"""Posts and edits of one bot: resumed where an attempt ended, plain where formatting is refused.

It repeats no call whose outcome is unknown. A group that became a supergroup is followed to its new
id, and what was posted there says so in the receipt.
"""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from adapters.telegram import egress
from adapters.telegram.client import TelegramClient
from adapters.telegram.egress import Post, Posted
from adapters.telegram.failures import (
    Refused,
    TelegramFailure,
    Unanswered,
    about_text,
    delete_in_vain,
    delivery_error,
    edit_in_vain,
    repeatable_error,
)
from adapters.telegram.flood import GroupWindow
from runtime.domain.errors import DeliveryRejected, DeliveryRetry
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt
from runtime.domain.value import JsonObject
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

Note = Callable[[Posted], Awaitable[None]]


class Posting:
    """Everything that is written into chats."""

    def __init__(self, client: TelegramClient, clock: Clock) -> None:
        self._client = client
        self._window = GroupWindow(clock)
        self._moved: dict[str, str] = {}

    async def send(self, message: OutboundMessage, posted: Sequence[str], note: Note) -> None:
        """Post what is not among `posted`, and `note` each post. Raises `DeliveryError`."""
        whole, pieces = egress.progress(posted)
        posts = egress.posts_of(message)
        for number in range(whole, len(posts)):
            reply_to = message.reply_to if number == 0 else None
            if pieces or not await self._formatted(message.target, posts[number], reply_to, note):
                await self._plain(message.target, posts[number], pieces, note)
            pieces = 0

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Replace each post; posts that are left over are deleted. Safe to repeat.

        Raises `DeliveryRetry`, or `DeliveryRejected` where more posts would be needed.
        """
        old = [egress.read_posted(identifier) for identifier in receipt.message_ids]
        posts = egress.posts_of(message)
        if any(post.more for post in old):
            posts = tuple(piece for post in posts for piece in egress.plain_posts(post))
        if len(posts) > len(old):
            raise DeliveryRejected(f"the edit needs {len(posts)} posts and there are {len(old)}")
        try:
            for there, post in zip(old, posts, strict=False):
                self._pass_window(message.target)
                await self._replace(there.chat or message.target.chat_id, there.number, post)
            for there in old[len(posts) :]:
                await self._delete(there.chat or message.target.chat_id, there.number)
        except TelegramFailure as failure:
            raise repeatable_error(failure) from failure

    async def typing(self, target: ChatAddress) -> None:
        """Show that the bot writes, for five seconds. Raises `DeliveryError`."""
        try:
            payload = {**egress.place(self._followed(target)), "action": "typing"}
            await self._client.call("sendChatAction", payload)
        except TelegramFailure as failure:
            raise repeatable_error(failure) from failure

    async def _formatted(
        self, target: ChatAddress, post: Post, reply_to: str | None, note: Note
    ) -> bool:
        """False where Telegram dislikes the formatting or the length; nothing was posted then."""
        try:
            await note(await self._post(target, post, reply_to))
        except Refused as refusal:
            if not about_text(refusal):
                raise delivery_error(refusal) from refusal
            log.warning("telegram.sent_plain", reason=str(refusal))
            return False
        except TelegramFailure as failure:
            raise delivery_error(failure) from failure
        return True

    async def _plain(self, target: ChatAddress, post: Post, begun: int, note: Note) -> None:
        pieces = egress.plain_posts(post)
        for place in range(begun, len(pieces)):
            more = place + 1 < len(pieces)
            try:
                there = await self._post(target, pieces[place], None)
            except TelegramFailure as failure:
                raise delivery_error(failure) from failure
            await note(Posted(there.number, there.chat, more))

    async def _post(self, target: ChatAddress, post: Post, reply_to: str | None) -> Posted:
        self._pass_window(target)
        try:
            return await self._call(target, post, reply_to)
        except Refused as refusal:
            if refusal.migrate_to is None:
                raise
            log.warning("telegram.chat_moved", chat=target.chat_id, to=refusal.migrate_to)
            self._moved[target.chat_id] = refusal.migrate_to
        return await self._call(target, post, reply_to)

    async def _call(self, target: ChatAddress, post: Post, reply_to: str | None) -> Posted:
        place = self._followed(target)
        moved = place.chat_id if place is not target else None
        # A supergroup numbers its messages anew: the old number would name another message.
        payload = egress.message_payload(place, post, reply_to if moved is None else None)
        answer = await self._client.call("sendMessage", payload)
        number = answer.get("message_id") if isinstance(answer, dict) else None
        if not isinstance(number, int):
            raise Unanswered("Telegram took the message and named no number")
        return Posted(number, moved)

    async def _replace(self, chat: str, number: int, post: Post) -> None:
        try:
            await self._edit_text(chat, number, post)
        except Refused as refusal:
            if not about_text(refusal):
                raise
            log.warning("telegram.edited_plain", reason=str(refusal))
            await self._edit_text(chat, number, egress.as_plain(post))

    async def _edit_text(self, chat: str, number: int, post: Post) -> None:
        await self._tolerant(
            "editMessageText", egress.edit_payload(chat, number, post), edit_in_vain
        )

    async def _delete(self, chat: str, number: int) -> None:
        payload: JsonObject = {"chat_id": int(chat), "message_id": number}
        await self._tolerant("deleteMessage", payload, delete_in_vain)

    async def _tolerant(
        self, method: str, payload: JsonObject, in_vain: Callable[[Refused], bool]
    ) -> None:
        try:
            await self._client.call(method, payload)
        except Refused as refusal:
            if not in_vain(refusal):
                raise
            log.info("telegram.nothing_to_change", method=method, reason=str(refusal))

    def _followed(self, target: ChatAddress) -> ChatAddress:
        chat = self._moved.get(target.chat_id)
        return target if chat is None else target.model_copy(update={"chat_id": chat})

    def _pass_window(self, target: ChatAddress) -> None:
        if target.chat_kind == "direct":
            return
        wait = self._window.take(self._followed(target).chat_id)
        if wait > 0:
            raise DeliveryRetry("a group takes 20 messages a minute", after_s=wait)
