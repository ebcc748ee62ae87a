"""The strict argument tables of the Web API, and the reading of one call's arguments.

Each method names what it takes. An unknown argument, a wrong type or a missing required one is
refused with `invalid_arguments`, which real Slack does for most and this server for all. The
tables follow the reference pages of the methods; legacy arguments that an application of today
must not send (``as_user``, ``link_names``, ``parse``) are left out on purpose.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tests.wire.slack.answers import SlackError
from tests.wire.slack.state import JsonObject

Carrier = Literal["json", "text"]
_TS = re.compile(r"\d{10}\.\d{6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """What one method takes. `scope` is one that the bot token must hold."""

    required: Mapping[str, str]
    optional: Mapping[str, str]
    scope: str | None
    token: Literal["bot", "app"] = "bot"


def _kinds(names: str) -> dict[str, str]:
    pairs = (name.partition(":") for name in names.split())
    return {name: kind or "string" for name, _, kind in pairs}


def _method(required: str = "", optional: str = "", scope: str | None = None) -> Method:
    return Method(required=_kinds(required), optional=_kinds(optional), scope=scope)


_LOOK = "icon_emoji icon_url username"
_PAGE = "cursor limit:integer"
_RANGE = f"{_PAGE} oldest latest inclusive:bool include_all_metadata:bool"
_BODY = "text blocks:array attachments:array markdown_text"

#: Bolt's clients add the workspace to every call, and Slack takes it everywhere.
_EVERYWHERE = {"team_id": "string"}

METHODS: Mapping[str, Method] = {
    "api.test": _method("", "error foo"),
    "auth.test": _method(),
    "apps.connections.open": Method(
        required={}, optional={}, scope="connections:write", token="app"
    ),
    "chat.postMessage": _method(
        "channel",
        f"{_BODY} {_LOOK} thread_ts:ts reply_broadcast:bool unfurl_links:bool unfurl_media:bool"
        " mrkdwn:bool metadata:object",
        "chat:write",
    ),
    "chat.postEphemeral": _method(
        "channel user", f"{_BODY} {_LOOK} thread_ts:ts mrkdwn:bool", "chat:write"
    ),
    "chat.update": _method(
        "channel ts:ts",
        f"{_BODY} metadata:object reply_broadcast:bool file_ids",
        "chat:write",
    ),
    "chat.delete": _method("channel ts:ts", "", "chat:write"),
    "chat.getPermalink": _method("channel message_ts:ts"),
    "chat.startStream": _method(
        "channel thread_ts:ts",
        f"markdown_text chunks:array recipient_user_id recipient_team_id task_display_mode {_LOOK}",
        "chat:write",
    ),
    "chat.appendStream": _method("channel ts:ts", "markdown_text chunks:array", "chat:write"),
    "chat.stopStream": _method(
        "channel ts:ts",
        "markdown_text chunks:array blocks:array metadata:object session_status",
        "chat:write",
    ),
    "conversations.info": _method("channel", "include_locale:bool include_num_members:bool"),
    "conversations.history": _method("channel", _RANGE),
    "conversations.replies": _method("channel ts:ts", _RANGE),
    "conversations.open": _method("", "channel users return_im:bool", "im:write"),
    "conversations.members": _method("channel", _PAGE),
    "conversations.list": _method("", f"{_PAGE} exclude_archived:bool types"),
    "users.conversations": _method("", f"{_PAGE} exclude_archived:bool types user"),
    "users.info": _method("user", "include_locale:bool", "users:read"),
    "users.list": _method("", f"{_PAGE} include_locale:bool", "users:read"),
    "bots.info": _method("", "bot", "users:read"),
    "team.info": _method("", "team domain", "team:read"),
    "reactions.add": _method("channel name timestamp:ts", "", "reactions:write"),
    "reactions.remove": _method(
        "name", "channel timestamp:ts file file_comment", "reactions:write"
    ),
    "agents.sessions.setStatus": _method(
        "channel_id status", f"thread_ts:ts title initiator_user_id {_LOOK}", "chat:write"
    ),
    "assistant.threads.setStatus": _method(
        "channel_id thread_ts:ts status", f"loading_messages:array {_LOOK}", "chat:write"
    ),
    "assistant.threads.setTitle": _method("channel_id thread_ts:ts title", "", "assistant:write"),
    "assistant.threads.setSuggestedPrompts": _method(
        "channel_id prompts:array", "thread_ts:ts title", "assistant:write"
    ),
    "files.getUploadURLExternal": _method(
        "filename length:integer", "alt_txt snippet_type", "files:write"
    ),
    "files.completeUploadExternal": _method(
        "files:array",
        "channel_id channels thread_ts:ts initial_comment blocks:array",
        "files:write",
    ),
    "files.info": _method("file", f"{_PAGE} count:integer page:integer", "files:read"),
    "files.delete": _method("file", "", "files:write"),
    "views.open": _method("view:object", "trigger_id interactivity_pointer"),
    "views.push": _method("view:object", "trigger_id interactivity_pointer"),
    "views.update": _method("view:object", "view_id external_id hash"),
    "views.publish": _method("user_id view:object", "hash"),
}


class Arguments:
    """The arguments of one call after the tables have accepted them."""

    def __init__(self, values: JsonObject) -> None:
        self.values = values

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def maybe(self, name: str) -> str | None:
        return self.text(name) if name in self.values else None

    def flag(self, name: str) -> bool:
        return self.values.get(name, False) is True

    def number(self, name: str, default: int) -> int:
        value = self.values.get(name, default)
        assert isinstance(value, int)
        return value

    def items(self, name: str) -> list[JsonObject]:
        """A list of objects; empty when the argument was not sent.

        Raises `SlackError` `invalid_arguments` for an element that is not an object.
        """
        value = self.values.get(name, [])
        assert isinstance(value, list)
        if not all(isinstance(item, dict) for item in value):
            raise SlackError("invalid_arguments", f"{name} holds something that is no object")
        return [dict(item) for item in value]

    def object(self, name: str) -> JsonObject | None:
        value = self.values.get(name)
        return dict(value) if isinstance(value, dict) else None


def read_arguments(name: str, raw: Mapping[str, object], carrier: Carrier) -> Arguments:
    """Check one call against its table.

    `carrier` says how the values came: "json" keeps JSON's types, "text" (query string or form)
    has strings only. Raises `SlackError` `unknown_method` or `invalid_arguments` with one line
    for each thing that is wrong.
    """
    method = METHODS.get(name)
    if method is None:
        raise SlackError("unknown_method", req_method=name)
    kinds = {**_EVERYWHERE, **method.required, **method.optional}
    problems = [f"unknown argument: {key}" for key in raw if key not in kinds]
    problems += [f"missing required field: {key}" for key in method.required if key not in raw]
    values: JsonObject = {}
    for key, value in raw.items():
        if key not in kinds:
            continue
        try:
            values[key] = _converted(kinds[key], value, carrier)
        except ValueError as error:
            problems.append(f"{key}: {error}")
    if problems:
        raise SlackError("invalid_arguments", *problems)
    return Arguments(values)


def _converted(kind: str, value: object, carrier: Carrier) -> object:
    if kind in {"array", "object"}:
        return _structured(kind, value)
    if kind == "bool":
        return _boolean(value, carrier)
    if kind == "integer":
        return _integer(value, carrier)
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {type(value).__name__}")
    if kind == "ts" and not _TS.fullmatch(value):
        raise ValueError(f"is no message timestamp: {value!r}")
    return value


def _structured(kind: str, value: object) -> object:
    found = value
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError("is no JSON") from error
    if not isinstance(found, list if kind == "array" else dict):
        raise ValueError(f"must be an {kind}")
    return found


def _boolean(value: object, carrier: Carrier) -> bool:
    if isinstance(value, bool):
        return value
    if carrier == "text" and value in {"1", "true"}:
        return True
    if carrier == "text" and value in {"0", "false"}:
        return False
    raise ValueError(f"must be a boolean, not {value!r}")


def _integer(value: object, carrier: Carrier) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if carrier == "text" and isinstance(value, str) and value.isdecimal():
        return int(value)
    raise ValueError(f"must be an integer, not {value!r}")
