"""Telegram's updates as values of ours. Pure: it asks nobody and never raises on a strange shape.

Reading gives a message (an edited one has `edited_at`), a press, a move, a joining, or `Ignored`
with the reason. Shapes: `Update` and `Message` of the Bot API. Offsets of entities count UTF-16
units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.rendering import clean
from adapters.telegram.media import attachments_of
from adapters.telegram.message_text import authorship_of, read_wording
from adapters.telegram.rich_text import words_of_rich
from runtime.domain.json_fields import fields_of, number_of, object_of, objects_of, text_of
from runtime.domain.messages import Attachment, ChatKind, InboundMessage, Move
from runtime.domain.people import Sender
from runtime.domain.value import JsonObject

CHANNEL = "telegram"
_HEARD = ("message", "edited_message")
_GROUPS = ("group", "supergroup")
_IN = ("member", "administrator")
_OUT = ("left", "kicked")
_MOST_NAME = 128
_TEXT_OF_ALBUM = "\n\n"


@dataclass(frozen=True, slots=True)
class Bot:
    """Who we are, as `getMe` says it; `username` is without the at sign. `commands` are the words
    that we know."""

    id: int
    username: str
    commands: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ignored:
    """An update that is nothing for the engine; `reason` is for logs.

    `strange` says that its shape is not one of the Bot API as we know it.
    """

    reason: str
    strange: bool = False


@dataclass(frozen=True, slots=True)
class Pressing:
    """A button was pressed; `data` is what the presser's client sent for it."""

    query_id: str
    chat_id: str
    sender: Sender
    data: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Somebody took the bot into a group."""

    chat_id: str
    title: str


Heard = InboundMessage | Pressing | Joined | Move | Ignored


@dataclass(frozen=True, slots=True)
class _Place:
    chat_id: int
    kind: ChatKind
    topic: int | None


def read_update(update: JsonObject, bot: Bot, *, received_at_ms: int) -> Heard:
    """One element of what `getUpdates` answers, or the body of a webhook's request."""
    fields = fields_of(update)
    if "callback_query" in fields:
        return _pressing(object_of(update, "callback_query"))
    if "my_chat_member" in fields:
        return _membership(object_of(update, "my_chat_member"))
    kind = next((name for name in _HEARD if name in fields), "")
    if not kind:
        return Ignored(f"update of the kinds {sorted(fields - {'update_id'})}")
    message = object_of(update, kind)
    move = _move(message, bot)
    if move is not None:
        return move
    return _message(message, bot, received_at_ms, edited=kind == "edited_message")


def album_of(update: JsonObject) -> tuple[int, str] | None:
    """The chat and the album that an update brings a part of; None for everything else."""
    message = object_of(update, "message")
    chat_id, album = number_of(object_of(message, "chat"), "id"), text_of(message, "media_group_id")
    return (chat_id, album) if album and chat_id is not None else None


def as_one(parts: Sequence[InboundMessage]) -> InboundMessage:
    """The parts of an album, in order, as the one message that a person sent."""
    first, *_ = parts
    texts = [part.text for part in parts if part.text]
    return first.model_copy(
        update={
            "text": _TEXT_OF_ALBUM.join(texts),
            "mentions_bot": any(part.mentions_bot for part in parts),
            # One part that is passed on makes the whole no word of its sender's.
            "authorship": next((p.authorship for p in parts if p.authorship != "own"), "own"),
            "said": None if all(p.said is None for p in parts) else "",
            "replies_to_bot": any(part.replies_to_bot for part in parts),
            "attachments": tuple(one for part in parts for one in part.attachments),
        }
    )


def _message(
    message: JsonObject, bot: Bot, received_at_ms: int, *, edited: bool
) -> InboundMessage | Ignored:
    place, number, sender = _place(message), number_of(message, "message_id"), _sender(message)
    if place is None or number is None:
        return Ignored("message without a chat or a number", strange=True)
    if sender is None:
        return Ignored("message without a sender", strange=True)
    if sender.id == str(bot.id):
        return Ignored("our own message")
    attachments = attachments_of(message, number)
    wording = read_wording(*_words(message), bot_id=bot.id, username=bot.username)
    if not attachments and not wording.said:
        return Ignored(f"no text and no file, but {_contents(message)}")
    group = place.kind != "direct"
    if group and wording.for_another:
        return Ignored("a command for another bot")
    replied = _replied(message, place)
    edit, sent = number_of(message, "edit_date"), number_of(message, "date")
    return InboundMessage(
        channel=CHANNEL,
        account=str(bot.id),
        chat_id=str(place.chat_id),
        chat_kind=place.kind,
        thread_id=None if place.topic is None else str(place.topic),
        message_id=str(number),
        edited_at=str(edit or sent or 0) if edited else None,
        sender=sender,
        text=wording.text,
        said=wording.own,
        authorship=authorship_of(message),
        mentions_bot=wording.mentions_bot or (group and wording.bare_command in bot.commands),
        reply_to=_number_text(replied),
        replies_to_bot=_wrote(replied, bot),
        attachments=attachments or _files_asked_about(replied, bot),
        album=text_of(message, "media_group_id") or None,
        received_at_ms=received_at_ms,
        sent_at_ms=None if sent is None else sent * 1000,
    )


def _pressing(query: JsonObject) -> Pressing | Ignored:
    """A message that is old or gone still names its chat (`InaccessibleMessage`)."""
    query_id, sender = text_of(query, "id"), _person(object_of(query, "from"))
    chat_id = number_of(object_of(object_of(query, "message"), "chat"), "id")
    if not query_id or sender is None or chat_id is None:
        return Ignored("press without an id, a person or a chat", strange=True)
    return Pressing(query_id, str(chat_id), sender, text_of(query, "data"))


def _membership(change: JsonObject) -> Joined | Ignored:
    chat = object_of(change, "chat")
    chat_id = number_of(chat, "id")
    before = text_of(object_of(change, "old_chat_member"), "status")
    now = text_of(object_of(change, "new_chat_member"), "status")
    if chat_id is None:
        return Ignored("change of membership without a chat", strange=True)
    if text_of(chat, "type") in _GROUPS and before in _OUT and now in _IN:
        return Joined(str(chat_id), _name(text_of(chat, "title")))
    return Ignored(f"the bot was {before or 'unknown'} and is {now or 'unknown'} in {chat_id}")


def _move(message: JsonObject, bot: Bot) -> Move | None:
    """A group became a supergroup: both chats say so, each naming the other."""
    here = number_of(object_of(message, "chat"), "id")
    new, old = (number_of(message, f"migrate_{way}_chat_id") for way in ("to", "from"))
    if here is None or (new is None) == (old is None):
        return None
    return Move(
        channel=CHANNEL,
        account=str(bot.id),
        old_chat_id=str(here if old is None else old),
        new_chat_id=str(here if new is None else new),
    )


def _place(message: JsonObject) -> _Place | None:
    chat = object_of(message, "chat")
    chat_id, kind = number_of(chat, "id"), text_of(chat, "type")
    if chat_id is None or kind not in ("private", *_GROUPS):
        return None
    # In a group without topics this number only names the thread of a reply.
    topic = number_of(message, "message_thread_id") if message.get("is_topic_message") else None
    if kind == "private":
        return _Place(chat_id, "direct", topic)
    return _Place(chat_id, "group" if topic is None else "topic", topic)


def _sender(message: JsonObject) -> Sender | None:
    """Who is behind the message.

    Anonymous administrators and people who write as a channel are shown by Telegram as one of its
    own bots (in `from`) and as the chat that they write for: that chat is the sender, a person.
    What a bot writes for the account of a business is a bot's, whoever's account it is.
    """
    chat = object_of(message, "sender_chat")
    chat_id = number_of(chat, "id")
    if chat_id is not None:
        name = text_of(chat, "title") or text_of(chat, "username")
        return Sender(id=str(chat_id), name=_name(name))
    sender = _person(object_of(message, "from"))
    if sender is not None and number_of(object_of(message, "sender_business_bot"), "id"):
        return sender.model_copy(update={"is_bot": True})
    return sender


def _person(user: JsonObject) -> Sender | None:
    user_id = number_of(user, "id")
    if user_id is None:
        return None
    names = (text_of(user, "first_name"), text_of(user, "last_name"))
    return Sender(
        id=str(user_id),
        name=_name(" ".join(name for name in names if name) or text_of(user, "username")),
        is_bot=user.get("is_bot") is True,
    )


def _name(text: str) -> str:
    """A name in one line, without the characters that turn what stands beside it around."""
    return " ".join(clean(text).split())[:_MOST_NAME]


def _words(message: JsonObject) -> tuple[str, list[JsonObject]]:
    if text := text_of(message, "text"):
        return text, objects_of(message, "entities")
    if caption := text_of(message, "caption"):
        return caption, objects_of(message, "caption_entities")
    return words_of_rich(message)


def _replied(message: JsonObject, place: _Place) -> JsonObject:
    """The message that was replied to; empty where there is none.

    In a topic every message that replies to nothing carries the one that opened the topic.
    """
    replied = object_of(message, "reply_to_message")
    opener = place.topic is not None and number_of(replied, "message_id") == place.topic
    return {} if opener else replied


def _wrote(message: JsonObject, bot: Bot) -> bool:
    return number_of(object_of(message, "from"), "id") == bot.id


def _files_asked_about(replied: JsonObject, bot: Bot) -> tuple[Attachment, ...]:
    """Who replies to somebody's photo with words is speaking of the photo, and did not make it."""
    number = number_of(replied, "message_id")
    if number is None or _wrote(replied, bot):
        return ()
    files = attachments_of(replied, number)
    return tuple(file.model_copy(update={"own": False}) for file in files)


def _number_text(message: JsonObject) -> str | None:
    number = number_of(message, "message_id")
    return None if number is None else str(number)


_FRAME = frozenset(
    {"message_id", "message_thread_id", "from", "sender_chat", "date", "chat", "edit_date"}
    | {"is_topic_message", "reply_to_message", "entities", "text"}
)


def _contents(message: JsonObject) -> str:
    return ", ".join(sorted(fields_of(message) - _FRAME)[:8]) or "nothing"
