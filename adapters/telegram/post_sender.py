"""Posts and edits of one bot: resumed where an attempt ended, plain where formatting is refused.

It repeats no call whose outcome is unknown. A group that became a supergroup is followed to its new
id, and what was posted there says so in the receipt.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from adapters.telegram import egress
from adapters.telegram.callbacks import Seal
from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import (
    Refused,
    TelegramFailure,
    Unanswered,
    about_form,
    about_topic,
    delete_in_vain,
    delivery_error,
    edit_in_vain,
    is_gone,
    repeatable_error,
)
from adapters.telegram.group_limit import GroupWindow
from adapters.telegram.posts import Post, Posted, as_plain, plain_posts, progress, read_posted
from adapters.telegram.uploads import Uploads
from runtime.domain.errors import DeliveryRejected, DeliveryRetry
from runtime.domain.messages import ChatAddress, OutboundMessage, Receipt, undecided
from runtime.domain.value import JsonObject
from runtime.ports.chat import Posted as OnPosted
from runtime.ports.clock import Clock

log = structlog.get_logger(__name__)

T = TypeVar("T")
Moved = Callable[[str, str], Awaitable[None]]
"""Told the old and the new id of a chat once something was posted in the new one."""


async def or_plain(send: Callable[[Post], Awaitable[T]], post: Post) -> T:
    """Send a post, without its formatting where Telegram refuses that, and at last without its
    buttons too (REN-3)."""
    forms = [post]
    for plainer in (as_plain(post), replace(as_plain(post), keyboard=None)):
        if plainer != forms[-1]:
            forms.append(plainer)
    for form in forms[:-1]:
        try:
            return await send(form)
        except Refused as refusal:
            if not about_form(refusal):
                raise
            log.warning("telegram.sent_plain", reason=str(refusal))
    return await send(forms[-1])


class _Journal:
    """What a send has posted so far; it goes on after the posts of an earlier attempt."""

    def __init__(self, posted: Sequence[str], on_posted: OnPosted) -> None:
        self._ids = list(posted)
        self._on_posted = on_posted

    @property
    def receipt(self) -> Receipt:
        """Everything that is there now."""
        return Receipt(message_ids=tuple(self._ids))

    async def note(self, post: Posted, last: bool) -> None:
        """The last is not told: it is in the receipt, and nothing waits for its turn behind it."""
        self._ids.append(str(post))
        if not last:
            await self._on_posted(str(post))


class Posting:
    """Everything that is written into chats."""

    def __init__(self, client: TelegramClient, clock: Clock, seal: Seal, moved: Moved) -> None:
        self._client = client
        self._uploads = Uploads(client)
        self._window = GroupWindow(clock)
        self._seal = seal
        self._tell_moved = moved
        self._moved: dict[str, str] = {}

    async def send(
        self,
        message: OutboundMessage,
        posted: Sequence[str],
        on_posted: OnPosted,
        *,
        over: Posted | None = None,
        standing: Post | None = None,
    ) -> Receipt:
        """Post what is not among `posted`. Raises `DeliveryError`.

        The first post takes the place of `over`, which stands there already and is ours; where that
        surely reads like it, as `standing`, it is not edited.
        """
        journal = _Journal(posted, on_posted)
        whole, pieces = progress(posted)
        posts = egress.posts_of(message, self._seal)
        stands = standing is not None and posts[:1] == (standing,)
        if (
            over is not None
            and not posted
            and (stands or await self._instead(message.target, over, posts))
        ):
            whole = 1
            await journal.note(over, len(posts) == 1)
        for number in range(whole, len(posts)):
            post, last = posts[number], number + 1 == len(posts)
            reply_to = message.reply_to if number == 0 else None
            target = message.target
            if pieces or not await self._formatted(target, post, reply_to, journal, last=last):
                await self._plain(target, post, pieces, journal, last=last)
            pieces = 0
        return journal.receipt

    def begins_with(self, message: OutboundMessage, standing: Post | None) -> bool:
        """Whether this is the first post of the message."""
        return standing is not None and egress.posts_of(message, self._seal)[:1] == (standing,)

    async def edit(self, message: OutboundMessage, receipt: Receipt) -> None:
        """Replace each post that changes; posts that are left over are deleted. Safe to repeat.

        Raises `DeliveryRetry`, or `DeliveryRejected` where more posts would be needed.
        """
        old = [read_posted(identifier) for identifier in receipt.message_ids]
        posts, before = egress.posts_of(message, self._seal), undecided(message)
        stood = egress.posts_of(before, self._seal) if before is not None else ()
        if any(post.more for post in old):
            stood = ()
            posts = tuple(piece for post in posts for piece in plain_posts(post))
        if len(posts) > len(old):
            raise DeliveryRejected(f"the edit needs {len(posts)} posts and there are {len(old)}")
        try:
            for number, (there, post) in enumerate(zip(old, posts, strict=False)):
                if stood[number : number + 1] != (post,):
                    await self.replace(message.target, there, post)
            for there in old[len(posts) :]:
                await self._delete(there.chat or message.target.chat_id, there.number)
        except TelegramFailure as failure:
            raise repeatable_error(failure) from failure

    async def replace(
        self, target: ChatAddress, there: Posted, post: Post, *, spare: int = 0
    ) -> bool:
        """Edit a post of ours; False where it is gone. With `spare` that much room must be left in
        the group's minute. Raises `DeliveryRetry` (no room) and `TelegramFailure`."""
        self._pass_window(target, spare=spare)
        chat = there.chat or target.chat_id
        return await or_plain(partial(self._edit_text, chat, there.number), post)

    async def typing(self, target: ChatAddress) -> None:
        """Show that the bot writes, for five seconds. Raises `DeliveryError`."""
        try:
            payload = {**egress.place(self._followed(target)), "action": "typing"}
            await self._client.call("sendChatAction", payload)
        except TelegramFailure as failure:
            raise repeatable_error(failure) from failure

    async def _formatted(
        self,
        target: ChatAddress,
        post: Post,
        reply_to: str | None,
        journal: _Journal,
        *,
        last: bool,
    ) -> bool:
        """False where Telegram dislikes the formatting or the length; nothing was posted then."""
        try:
            there = await self.post(target, post, reply_to)
        except Refused as refusal:
            # Without its file a post says something else, and its caption was tried plain already.
            if post.file is not None or not about_form(refusal):
                raise delivery_error(refusal) from refusal
            log.warning("telegram.sent_plain", reason=str(refusal))
            return False
        except TelegramFailure as failure:
            raise delivery_error(failure) from failure
        await journal.note(there, last)
        return True

    async def _plain(
        self, target: ChatAddress, post: Post, begun: int, journal: _Journal, *, last: bool
    ) -> None:
        pieces = plain_posts(post)
        for place in range(begun, len(pieces)):
            more = place + 1 < len(pieces)
            try:
                there = await self._post_piece(target, pieces[place])
            except TelegramFailure as failure:
                raise delivery_error(failure) from failure
            await journal.note(Posted(there.number, there.chat, more), last and not more)

    async def _post_piece(self, target: ChatAddress, piece: Post) -> Posted:
        """Its buttons are left out where Telegram refuses them."""
        try:
            return await self.post(target, piece, None)
        except Refused as refusal:
            if piece.keyboard is None or not about_form(refusal):
                raise
            log.warning("telegram.sent_without_buttons", reason=str(refusal))
        return await self.post(target, replace(piece, keyboard=None), None)

    async def _instead(self, target: ChatAddress, over: Posted, posts: Sequence[Post]) -> bool:
        """Whether `over` is the first of `posts` now. Where it cannot be, it is taken away."""
        try:
            if posts and posts[0].file is None:
                return await self.replace(target, over, posts[0])
            await self._delete(over.chat or target.chat_id, over.number)
        except TelegramFailure as failure:
            raise repeatable_error(failure) from failure
        return False

    async def post(self, target: ChatAddress, post: Post, reply_to: str | None) -> Posted:
        """One post, wherever its chat is now. Raises `DeliveryRetry` and `TelegramFailure`."""
        self._pass_window(target)
        try:
            return await self._call(target, post, reply_to)
        except Refused as refusal:
            if about_topic(refusal) and target.thread_id is not None:
                log.warning("telegram.topic_gone", chat=target.chat_id, topic=target.thread_id)
                target = target.model_copy(update={"thread_id": None})
                return await self._call(target, post, reply_to)
            if refusal.migrate_to is None:
                raise
            moved_to = refusal.migrate_to
        log.warning("telegram.chat_moved", chat=target.chat_id, to=moved_to)
        self._moved[target.chat_id] = moved_to
        posted = await self._call(target, post, reply_to)
        await self._tell_moved(target.chat_id, moved_to)
        return posted

    async def _call(self, target: ChatAddress, post: Post, reply_to: str | None) -> Posted:
        place = self._followed(target)
        moved = place.chat_id if place is not target else None
        # A supergroup numbers its messages anew: the old number would name another message.
        reply_to = reply_to if moved is None else None
        if post.file is None:
            payload = egress.message_payload(place, post, reply_to)
            answer = await self._client.call("sendMessage", payload)
        else:
            answer = await self._uploads.send(place, post, reply_to)
        number = answer.get("message_id") if isinstance(answer, dict) else None
        if not isinstance(number, int):
            raise Unanswered("Telegram took the message and named no number")
        return Posted(number, moved)

    async def _edit_text(self, chat: str, number: int, post: Post) -> bool:
        payload = egress.edit_payload(chat, number, post)
        refusal = await self._tolerant("editMessageText", payload, edit_in_vain)
        return refusal is None or not (is_gone(refusal) or refusal.migrate_to)

    async def _delete(self, chat: str, number: int) -> None:
        payload: JsonObject = {"chat_id": int(chat), "message_id": number}
        await self._tolerant("deleteMessage", payload, delete_in_vain)

    async def _tolerant(
        self, method: str, payload: JsonObject, in_vain: Callable[[Refused], bool]
    ) -> Refused | None:
        try:
            await self._client.call(method, payload)
        except Refused as refusal:
            if not in_vain(refusal):
                raise
            log.info("telegram.nothing_to_change", method=method, reason=str(refusal))
            return refusal
        return None

    def _followed(self, target: ChatAddress) -> ChatAddress:
        chat = self._moved.get(target.chat_id)
        return target if chat is None else target.model_copy(update={"chat_id": chat})

    def _pass_window(self, target: ChatAddress, *, spare: int = 0) -> None:
        if target.chat_kind == "direct":
            return
        wait = self._window.take(self._followed(target).chat_id, spare=spare)
        if wait > 0:
            # What only has to leave room names no time: replies need not wait for it.
            raise DeliveryRetry(
                "a group takes 20 messages a minute", after_s=None if spare else wait
            )
