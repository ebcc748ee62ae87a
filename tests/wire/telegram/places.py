"""The checks that every method makes of its chat, its thread, its reply and its buttons."""

from tests.wire.telegram.arguments import Arguments, JsonObject
from tests.wire.telegram.chats import Chat, Message
from tests.wire.telegram.entities import Formatted, finish, from_json, units
from tests.wire.telegram.errors import ApiError, bad_request, forbidden
from tests.wire.telegram.links import checked_link
from tests.wire.telegram.markup_html import MarkupError, parse_html
from tests.wire.telegram.markup_v2 import parse_v2
from tests.wire.telegram.state import State

MAX_TEXT = 4096
MAX_CAPTION = 1024


def known_chat(state: State, arguments: Arguments) -> Chat:
    """The chat of `chat_id`, whether or not the bot may write there."""
    wanted = arguments.chat()
    if wanted is None:
        raise bad_request("chat_id is empty")
    chat = state.world.chats.get(wanted) if isinstance(wanted, int) else None
    if chat is None:
        raise bad_request("chat not found")
    if chat.migrated_to:
        raise ApiError(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            {"migrate_to_chat_id": chat.migrated_to},
        )
    return chat


def writable_chat(state: State, arguments: Arguments) -> Chat:
    """The chat of `chat_id`, refused with 403 or 400 where the bot may not write."""
    chat = known_chat(state, arguments)
    if chat.refusal:
        raise forbidden(chat.refusal)
    status = chat.members.get(state.bot.id, "left")
    if chat.type != "private" and status in {"left", "kicked"}:
        kind = "group" if chat.type == "group" else chat.type
        raise forbidden(f"bot is not a member of the {kind} chat")
    if chat.type == "channel" and status == "member":
        raise bad_request("need administrator rights in the channel chat")
    if chat.muted:
        raise bad_request("not enough rights to send text messages to the chat")
    return chat


def thread(chat: Chat, arguments: Arguments) -> int | None:
    """The forum topic of `message_thread_id`; the general topic has none to send to."""
    topic = arguments.integer("message_thread_id")
    if not topic:
        return None
    if topic not in chat.topics:
        raise bad_request("message thread not found")
    if topic in chat.closed_topics:
        raise bad_request("TOPIC_CLOSED")
    return topic


def replied(state: State, chat: Chat, arguments: Arguments) -> Message | None:
    """The message of `reply_parameters`, or None when there is none to reply to."""
    parameters = arguments.mapping("reply_parameters")
    if parameters is None:
        return None
    number = parameters.get("message_id")
    found = state.world.find(chat, number if isinstance(number, int) else None)
    if found is None and parameters.get("allow_sending_without_reply") is not True:
        raise bad_request("message to be replied not found")
    return found


def formatted(arguments: Arguments, *, caption: bool = False) -> Formatted:
    """The text or caption with its entities, parsed, checked and within the limit."""
    name = "caption" if caption else "text"
    source = arguments.text(name)
    entities = arguments.mappings("caption_entities" if caption else "entities")
    return format_text(source, arguments.text("parse_mode"), entities, caption=caption)


def format_text(
    source: str, mode: str, stated: list[JsonObject], *, caption: bool = False
) -> Formatted:
    """As `formatted`, of plain values; the caption of an album item comes so."""
    if not source:
        if caption:
            return Formatted()
        raise bad_request("message text is empty")
    text, entities = source, from_json(stated) if not mode else []
    parsers = {"html": parse_html, "markdownv2": parse_v2}
    if mode:
        if mode.lower() not in parsers:
            raise bad_request("unsupported parse_mode")
        try:
            text, entities = parsers[mode.lower()](source)
        except MarkupError as error:
            raise bad_request(f"can't parse entities: {error}") from error
    result = finish(text, entities)
    if units(result.text) > (MAX_CAPTION if caption else MAX_TEXT):
        raise bad_request("message caption is too long" if caption else "message is too long")
    return result


def keyboard(arguments: Arguments) -> JsonObject | None:
    """The checked `reply_markup`; None when there is none or it holds no button."""
    markup = arguments.mapping("reply_markup")
    if markup is None or "inline_keyboard" not in markup:
        return None
    rows = _rows(markup["inline_keyboard"])
    buttons = [button for row in rows for button in row]
    if len(buttons) > 100:
        raise bad_request("reply markup is too long")
    for button in buttons:
        _check_button(button)
    return {"inline_keyboard": rows} if rows else None


def _rows(value: object) -> list[list[JsonObject]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows if row]


def _check_button(button: JsonObject) -> None:
    data, url = button.get("callback_data"), button.get("url")
    if not button.get("text"):
        raise bad_request('can\'t parse inline keyboard button: Field "text" must be non-empty')
    if data is None and url is None:
        raise bad_request(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
    if isinstance(data, str) and not 1 <= len(data.encode()) <= 64:
        raise bad_request("BUTTON_DATA_INVALID")
    if isinstance(url, str) and not checked_link(url):
        raise bad_request(f"inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
