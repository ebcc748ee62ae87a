"""The methods about the bot itself, its chats, its commands and the presses of its buttons."""

import re
from collections.abc import Callable, Mapping

from telegram.constants import ReactionEmoji

from tests.wire.telegram.arguments import Arguments, JsonObject, Violation
from tests.wire.telegram.chats import ADMINISTRATOR_RIGHTS, Chat
from tests.wire.telegram.errors import bad_request, forbidden
from tests.wire.telegram.places import known_chat, thread, writable_chat
from tests.wire.telegram.schema import CHAT_ACTIONS, SCOPES
from tests.wire.telegram.state import ChatAction, State, scope_key

_COMMAND = re.compile(r"[a-z0-9_]{1,32}\Z")
_EMOJI = frozenset(str(emoji) for emoji in ReactionEmoji)


def get_me(state: State, _arguments: Arguments) -> object:
    return {
        **state.bot.as_json(),
        "can_join_groups": True,
        "can_read_all_group_messages": not state.privacy,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
    }


def get_webhook_info(state: State, _arguments: Arguments) -> object:
    return state.queue.webhook_info()


def set_webhook(state: State, arguments: Arguments) -> object:
    if unknown := state.queue.unknown_types(arguments.strings("allowed_updates")):
        raise Violation(f"setWebhook: no update is of the types {unknown}")
    return state.queue.set_webhook(arguments, loopback=True)


def _commands_key(state: State, arguments: Arguments) -> str:
    scope = arguments.mapping("scope")
    if scope is None:
        return scope_key(None, arguments.text("language_code"))
    kind = str(scope.get("type"))
    if kind not in SCOPES:
        raise bad_request("can't parse BotCommandScope: unsupported type specified")
    if set(scope) - {"type"} != SCOPES[kind]:
        raise Violation(f"{arguments.method}: scope {kind!r} takes {sorted(SCOPES[kind])}")
    if "chat_id" in scope and scope["chat_id"] not in state.world.chats:
        raise bad_request("chat not found")
    return scope_key(scope, arguments.text("language_code"))


def set_my_commands(state: State, arguments: Arguments) -> object:
    commands = arguments.mappings("commands")
    key = _commands_key(state, arguments)
    if len(commands) > 100:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if not _COMMAND.match(str(command.get("command", "")).removeprefix("/")):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(command.get("description", ""))) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    state.commands[key] = commands
    return True


def get_my_commands(state: State, arguments: Arguments) -> object:
    return state.commands.get(_commands_key(state, arguments), [])


def delete_my_commands(state: State, arguments: Arguments) -> object:
    state.commands.pop(_commands_key(state, arguments), None)
    return True


def send_chat_action(state: State, arguments: Arguments) -> object:
    chat = writable_chat(state, arguments)
    if arguments.text("action") not in CHAT_ACTIONS:
        raise bad_request("wrong parameter action in request")
    topic = thread(chat, arguments)
    state.actions.append(ChatAction(chat, arguments.text("action"), topic or 0))
    state.signal.pulse()
    return True


def answer_callback_query(state: State, arguments: Arguments) -> object:
    press = state.presses.get(arguments.text("callback_query_id"))
    if press is None or press.expired or press.answer is not None:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    if len(arguments.text("text")) > 200:
        raise bad_request("MESSAGE_TOO_LONG")
    press.answer = {
        "text": arguments.text("text"),
        "show_alert": arguments.flag("show_alert"),
    }
    state.signal.pulse()
    return True


def set_message_reaction(state: State, arguments: Arguments) -> object:
    chat = writable_chat(state, arguments)
    message = state.world.find(chat, arguments.integer("message_id"))
    if message is None:
        raise bad_request("message to react not found")
    reactions = arguments.mappings("reaction")
    for reaction in reactions:
        if reaction.get("type") != "emoji" or reaction.get("emoji") not in _EMOJI:
            raise bad_request("REACTION_INVALID")
    if len(reactions) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    message.reactions = reactions
    state.signal.pulse()
    return True


def get_file(state: State, arguments: Arguments) -> object:
    return state.files.downloadable(arguments.text("file_id"))


def _joined_chat(state: State, arguments: Arguments) -> Chat:
    chat = known_chat(state, arguments)
    status = chat.members.get(state.bot.id, "left")
    if chat.type != "private" and status in {"left", "kicked"}:
        raise forbidden(chat.refusal or f"bot is not a member of the {chat.type} chat")
    return chat


def get_chat(state: State, arguments: Arguments) -> object:
    chat = _joined_chat(state, arguments)
    result: JsonObject = {
        **chat.as_json(),
        "accent_color_id": 1,
        "max_reaction_count": 11,
        "accepted_gift_types": {
            "unlimited_gifts": False,
            "limited_gifts": False,
            "unique_gifts": False,
            "premium_subscription": False,
            "gifts_from_channels": False,
        },
    }
    linked = [c for c in state.world.chats.values() if c.discussion is chat]
    if chat.discussion or linked:
        result["linked_chat_id"] = (chat.discussion or linked[0]).id
    return result


def get_chat_member(state: State, arguments: Arguments) -> object:
    chat = _joined_chat(state, arguments)
    user = state.world.users.get(arguments.integer("user_id") or 0)
    if user is None:
        raise bad_request("user not found")
    status = "member" if chat.type == "private" else chat.members.get(user.id, "left")
    result: JsonObject = {"user": user.as_json(), "status": status}
    if status == "administrator":
        result |= dict.fromkeys(ADMINISTRATOR_RIGHTS, True)
    if status == "creator":
        result["is_anonymous"] = False
    if status == "kicked":
        result["until_date"] = 0
    return result


def leave_chat(state: State, arguments: Arguments) -> object:
    chat = _joined_chat(state, arguments)
    if not chat.is_group and chat.type != "channel":
        raise bad_request("chat member status can't be changed in private chats")
    chat.members[state.bot.id] = "left"
    state.signal.pulse()
    return True


HANDLERS: Mapping[str, Callable[[State, Arguments], object]] = {
    "getMe": get_me,
    "getWebhookInfo": get_webhook_info,
    "setWebhook": set_webhook,
    "deleteWebhook": set_webhook,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
    "sendChatAction": send_chat_action,
    "answerCallbackQuery": answer_callback_query,
    "setMessageReaction": set_message_reaction,
    "getFile": get_file,
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "leaveChat": leave_chat,
}
