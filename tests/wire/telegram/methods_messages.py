"""The methods that send, change and delete messages."""

from collections.abc import Callable, Mapping

from tests.wire.telegram.arguments import Arguments, JsonObject, Upload, Violation
from tests.wire.telegram.chats import Chat, Message
from tests.wire.telegram.entities import Formatted
from tests.wire.telegram.errors import bad_request
from tests.wire.telegram.files import Attachment
from tests.wire.telegram.places import (
    format_text,
    formatted,
    keyboard,
    known_chat,
    replied,
    thread,
    writable_chat,
)
from tests.wire.telegram.state import State

_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)
_ALBUM_OF_ONE_KIND = frozenset({"document", "audio"})


def send_message(state: State, arguments: Arguments) -> object:
    content = formatted(arguments)
    return _send(state, arguments, content, {})


def send_draft(state: State, arguments: Arguments) -> object:
    """A draft is shown, not stored: it makes no message and the next message ends it.

    An empty text shows that the bot thinks.
    """
    content = formatted(arguments) if arguments.text("text") else Formatted()
    chat = writable_chat(state, arguments)
    number = arguments.integer("draft_id") or 0
    if number == 0:
        raise bad_request("draft identifier must be non-zero")
    if chat.type != "private":
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    state.drafts.setdefault((chat.id, number), []).append(content.text)
    state.showing[chat.id] = content.text
    state.signal.pulse()
    return True


def send_file(kind: str) -> Callable[[State, Arguments], object]:
    """The method that sends one file of `kind`, which is also the name of its argument."""

    def method(state: State, arguments: Arguments) -> object:
        content = formatted(arguments, caption=True)
        writable_chat(state, arguments)
        given = arguments.file(kind)
        media = _media(state, kind, given, arguments.integer("duration") or 0)
        return _send(state, arguments, content, media)

    return method


def send_album(state: State, arguments: Arguments) -> object:
    items = arguments.mappings("media")
    if not 2 <= len(items) <= 10:
        raise Violation(f"sendMediaGroup: an album has 2 to 10 items, not {len(items)}")
    kinds = {str(item.get("type")) for item in items}
    if len(kinds) > 1 and kinds & _ALBUM_OF_ONE_KIND:
        one = sorted(kinds & _ALBUM_OF_ONE_KIND)[0]
        raise bad_request(f"{one} can't be mixed with other media types")
    writable_chat(state, arguments)
    prepared = [_album_item(state, arguments, item) for item in items]
    group = f"1400{state.date()}"
    sent = []
    for content, media in prepared:
        sent.append(_send(state, arguments, content, media, group=group))
    return sent


def _album_item(
    state: State, arguments: Arguments, item: JsonObject
) -> tuple[Formatted, JsonObject]:
    given = str(item.get("media", ""))
    found = arguments.attached(given) if given.startswith("attach://") else given
    stated = item.get("caption_entities")
    content = format_text(
        str(item.get("caption", "")),
        str(item.get("parse_mode", "")),
        stated if isinstance(stated, list) else [],
        caption=True,
    )
    return content, _media(state, str(item.get("type")), found, 0)


def _media(state: State, kind: str, given: Upload | str | None, duration: int) -> JsonObject:
    if given is None:
        raise bad_request(f"there is no {kind} in the request")
    if isinstance(given, Upload):
        attachment = Attachment(given.content, given.filename, kind, duration)
        return state.files.upload(attachment).as_media()
    if given.startswith(("http://", "https://")):
        raise Violation(f"{kind}: this server fetches nothing, and {given!r} is an address")
    stored = state.files.find(given)
    if stored.attachment.kind != kind:
        raise bad_request(f"can't use file of type {stored.attachment.kind} as {kind}")
    return stored.as_media()


def _send(
    state: State,
    arguments: Arguments,
    content: Formatted,
    media: JsonObject,
    *,
    group: str = "",
) -> JsonObject:
    chat = writable_chat(state, arguments)
    topic = thread(chat, arguments)
    reply_to = replied(state, chat, arguments)
    markup = keyboard(arguments)
    message = state.new_message(chat, state.bot, reply_to=reply_to, topic=topic)
    message.content, message.media, message.markup = content, media, markup
    message.silent = arguments.flag("disable_notification")
    message.preview = arguments.mapping("link_preview_options")
    message.media_group_id = group
    state.showing.pop(chat.id, None)
    state.signal.pulse()
    return message.as_json()


def _own(state: State, arguments: Arguments) -> Message:
    if arguments.text("inline_message_id"):
        raise Violation(f"{arguments.method}: this server has no inline messages")
    chat = known_chat(state, arguments)
    if not arguments.integer("message_id"):
        raise bad_request("message identifier is not specified")
    message = state.world.find(chat, arguments.integer("message_id"))
    if message is None:
        raise bad_request("message to edit not found")
    if message.sender != state.bot or message.service:
        raise bad_request("message can't be edited")
    writable_chat(state, arguments)
    return message


def edit_text(state: State, arguments: Arguments) -> object:
    content = formatted(arguments)
    message = _own(state, arguments)
    if message.media:
        raise bad_request("there is no text in the message to edit")
    return _change(state, message, content, keyboard(arguments))


def edit_caption(state: State, arguments: Arguments) -> object:
    content = formatted(arguments, caption=True)
    message = _own(state, arguments)
    if not message.media:
        raise bad_request("there is no caption in the message to edit")
    return _change(state, message, content, keyboard(arguments))


def edit_markup(state: State, arguments: Arguments) -> object:
    message = _own(state, arguments)
    return _change(state, message, message.content, keyboard(arguments))


def _change(
    state: State, message: Message, content: Formatted, markup: JsonObject | None
) -> JsonObject:
    if message.content == content and message.markup == markup:
        raise bad_request(_NOT_MODIFIED)
    message.content, message.markup = content, markup
    message.edit_date = state.date()
    state.signal.pulse()
    return message.as_json()


def delete_message(state: State, arguments: Arguments) -> object:
    chat = known_chat(state, arguments)
    message = state.world.find(chat, arguments.integer("message_id"))
    if message is None:
        raise bad_request("message to delete not found")
    _delete(state, chat, message)
    return True


def delete_messages(state: State, arguments: Arguments) -> object:
    numbers = arguments.integers("message_ids")
    if not numbers:
        raise bad_request("message identifiers are not specified")
    if len(numbers) > 100:
        raise bad_request("too many message identifiers specified")
    chat = known_chat(state, arguments)
    for number in numbers:
        message = state.world.find(chat, number)
        if message is not None:
            _delete(state, chat, message)
    return True


def _delete(state: State, chat: Chat, message: Message) -> None:
    status = chat.members.get(state.bot.id, "left")
    mine = message.sender == state.bot
    if chat.type != "private" and not mine and status != "administrator":
        raise bad_request("message can't be deleted")
    message.deleted = True
    state.signal.pulse()


HANDLERS: Mapping[str, Callable[[State, Arguments], object]] = {
    "sendMessage": send_message,
    "sendMessageDraft": send_draft,
    "sendDocument": send_file("document"),
    "sendPhoto": send_file("photo"),
    "sendVoice": send_file("voice"),
    "sendAudio": send_file("audio"),
    "sendVideo": send_file("video"),
    "sendMediaGroup": send_album,
    "editMessageText": edit_text,
    "editMessageCaption": edit_caption,
    "editMessageReplyMarkup": edit_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
}
