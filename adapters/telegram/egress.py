"""Messages of ours as Telegram's payloads. Pure, and the same at every attempt.

A message is a list of posts, each within Telegram's limits; the n-th post is always the same, so
that an attempt can go on where the last one ended.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import JsonValue

from adapters.rendering import Entity, utf16_length
from adapters.telegram import cards
from adapters.telegram.callbacks import Seal
from adapters.telegram.posts import Post
from runtime.domain.messages import (
    ApprovalPart,
    ChatAddress,
    FilePart,
    OutboundMessage,
    OutboundPart,
    QuestionPart,
    TextPart,
)
from runtime.domain.value import JsonObject

# Bot API, "sendDocument": a caption has 0-1024 characters after entities parsing.
CAPTION_UNITS = 1024


def posts_of(message: OutboundMessage, seal: Seal) -> tuple[Post, ...]:
    """Everything that the message needs, in order; empty where it holds nothing to see.

    A short text in front of a file is the file's caption.
    """
    posts: list[Post] = []
    before: OutboundPart | None = None
    for part in message.parts:
        made = list(_posts(part, seal, message.outbox_id))
        if isinstance(part, FilePart) and isinstance(before, TextPart) and _captions(posts):
            made = [replace(posts.pop(), file=part)]
        posts.extend(made)
        before = part
    return tuple(posts)


def message_payload(target: ChatAddress, post: Post, reply_to: str | None) -> JsonObject:
    """Arguments of `sendMessage`. In a direct chat it is plain what the answer belongs to."""
    return {**place(target), **_content(post), **_reply(target, reply_to)}


def file_payload(target: ChatAddress, post: Post, reply_to: str | None) -> JsonObject:
    """Arguments of `sendDocument` and `sendPhoto` besides the file itself."""
    return {**place(target), **caption(post), **_reply(target, reply_to)}


def caption(post: Post) -> JsonObject:
    """The text of a file, as its methods name it."""
    found: JsonObject = {"caption": post.text} if post.text else {}
    if post.entities:
        found["caption_entities"] = [_entity(entity) for entity in post.entities]
    return found


def edit_payload(chat: str, number: int, post: Post) -> JsonObject:
    """Arguments of `editMessageText`; buttons that the post does not have are taken away."""
    return {"chat_id": int(chat), "message_id": number, **_content(post)}


def draft_payload(target: ChatAddress, draft: int, post: Post) -> JsonObject:
    """Arguments of `sendMessageDraft`, which knows no buttons and no previews."""
    found: JsonObject = {**place(target), "draft_id": draft, "text": post.text}
    if post.entities:
        found["entities"] = [_entity(entity) for entity in post.entities]
    return found


def place(target: ChatAddress) -> JsonObject:
    """Arguments that say where: the chat, and the topic in it."""
    found: JsonObject = {"chat_id": int(target.chat_id)}
    if target.thread_id is not None:
        found["message_thread_id"] = int(target.thread_id)
    return found


def _captions(posts: Sequence[Post]) -> bool:
    """Whether the text before a file is one short post of its own."""
    if not posts:
        return False
    last, *others = reversed(posts)
    alone = not others or others[0].file is not None
    return alone and last.file is None and utf16_length(last.text) <= CAPTION_UNITS


def _posts(part: OutboundPart, seal: Seal, message_id: str) -> Iterable[Post]:
    match part:
        case TextPart():
            return cards.text(part, seal, message_id)
        case ApprovalPart():
            return cards.approval(part, seal)
        case QuestionPart():
            return cards.question(part, seal)
        case FilePart():
            return (Post("", file=part),)


def _reply(target: ChatAddress, reply_to: str | None) -> JsonObject:
    if reply_to is None or not reply_to.isdecimal() or target.chat_kind == "direct":
        return {}
    return {"reply_parameters": {"message_id": int(reply_to), "allow_sending_without_reply": True}}


def _content(post: Post) -> JsonObject:
    content: JsonObject = {
        "text": post.text,
        # A preview of a link in an answer would be taken for a part of the answer.
        "link_preview_options": {"is_disabled": True},
    }
    if post.entities:
        content["entities"] = [_entity(entity) for entity in post.entities]
    if post.keyboard is not None:
        content["reply_markup"] = post.keyboard
    return content


def _entity(entity: Entity) -> JsonValue:
    found: JsonObject = {
        "type": entity.type,
        "offset": entity.offset,
        "length": entity.length,
    }
    if entity.url is not None:
        found["url"] = entity.url
    if entity.language is not None:
        found["language"] = entity.language
    return found
