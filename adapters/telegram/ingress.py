"""Telegram's updates as messages of ours. Pure: it asks nobody and never raises on a strange shape.

Reading gives an `InboundMessage`, or `Ignored` with the reason. Shapes: `Update` and `Message` of
the Bot API. Offsets of entities count UTF-16 units.
"""

from dataclasses import dataclass

from adapters.telegram.media import attachments_of
from adapters.telegram.shapes import number_of, object_of, objects_of, text_of
from adapters.telegram.wording import Wording, read_wording
from runtime.domain.messages import ChatKind, InboundMessage
from runtime.domain.people import Sender
from runtime.domain.value import JsonObject

CHANNEL = "telegram"
_HEARD = ("message", "edited_message")
_GROUPS = ("group", "supergroup")


@dataclass(frozen=True, slots=True)
class Bot:
    """Who we are, as `getMe` says it; `username` is without the at sign."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """An update that is no message for the engine; `reason` is for logs.

    `strange` says that its shape is not one of the Bot API as we know it.
    """

    reason: str
    strange: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    chat_id: int
    kind: ChatKind
    topic: int | None


def read_update(update: JsonObject, bot: Bot, *, received_at_ms: int) -> InboundMessage | Ignored:
    """One element of what `getUpdates` answers, or the body of a webhook's request."""
    kind = next((name for name in _HEARD if name in update), "")
    if not kind:
        return Ignored(f"update of the kinds {sorted(set(update) - {'update_id'})}")
    message = object_of(update, kind)
    place, number, sender = _place(message), number_of(message, "message_id"), _sender(message)
    if place is None or number is None:
        return Ignored("message without a chat or a number", strange=True)
    if sender is None:
        return Ignored("message without a sender", strange=True)
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
        edited_at=str(edit or sent or 0) if kind == "edited_message" else None,
        sender=sender,
        text=wording.text,
        mentions_bot=_mentioned(wording, group=group),
        reply_to=_number_text(replied),
        replies_to_bot=_wrote(replied, bot),
        attachments=attachments,
        received_at_ms=received_at_ms,
        sent_at_ms=None if sent is None else sent * 1000,
        platform_event_id=_event_id(update),
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
    """
    chat = object_of(message, "sender_chat")
    chat_id = number_of(chat, "id")
    if chat_id is not None:
        name = text_of(chat, "title") or text_of(chat, "username")
        return Sender(id=str(chat_id), name=name)
    user = object_of(message, "from")
    user_id = number_of(user, "id")
    if user_id is None:
        return None
    names = (text_of(user, "first_name"), text_of(user, "last_name"))
    return Sender(
        id=str(user_id),
        name=" ".join(name for name in names if name) or text_of(user, "username"),
        is_bot=user.get("is_bot") is True,
    )


def _words(message: JsonObject) -> tuple[str, list[JsonObject]]:
    if text := text_of(message, "text"):
        return text, objects_of(message, "entities")
    return text_of(message, "caption"), objects_of(message, "caption_entities")


def _mentioned(wording: Wording, *, group: bool) -> bool:
    """In a group a bare command counts: Telegram brings it only where it may be meant for us."""
    return wording.mentions_bot or (group and wording.bare_command)


def _replied(message: JsonObject, place: _Place) -> JsonObject:
    """The message that was replied to; empty where there is none.

    In a topic every message that replies to nothing carries the one that opened the topic.
    """
    replied = object_of(message, "reply_to_message")
    opener = place.topic is not None and number_of(replied, "message_id") == place.topic
    return {} if opener else replied


def _wrote(message: JsonObject, bot: Bot) -> bool:
    return number_of(object_of(message, "from"), "id") == bot.id


def _number_text(message: JsonObject) -> str | None:
    number = number_of(message, "message_id")
    return None if number is None else str(number)


def _event_id(update: JsonObject) -> str:
    number = number_of(update, "update_id")
    return "" if number is None else str(number)


_FRAME = frozenset(
    {"message_id", "message_thread_id", "from", "sender_chat", "date", "chat", "edit_date"}
    | {"is_topic_message", "reply_to_message", "entities", "text"}
)


def _contents(message: JsonObject) -> str:
    return ", ".join(sorted(set(message) - _FRAME)[:8]) or "nothing"
