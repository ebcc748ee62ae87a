"""How a Web API call arrives: query string, form, multipart or JSON body, and its token.

Slack reads arguments from all of them, and the Python client uses all of them. A token may come
in the Authorization header or, outside a JSON body, as the argument `token`.
"""

import json
from dataclasses import dataclass

from aiohttp import web

from tests.wire.slack.answers import SlackError
from tests.wire.slack.arguments import Carrier
from tests.wire.slack.state import JsonObject


@dataclass(frozen=True, slots=True)
class RawCall:
    """The unchecked arguments of one call, without its token."""

    values: JsonObject
    token: str | None
    carrier: Carrier


async def read_call(request: web.Request) -> RawCall:
    """Read the arguments wherever they are.

    Raises `SlackError`: `invalid_json`, `json_not_object`, `invalid_post_type`.
    """
    values: JsonObject = dict(request.query)
    carrier: Carrier = "text"
    if request.method == "POST" and request.content_type == "application/json":
        carrier = "json"
        values.update(_object(await request.text()))
    elif request.method == "POST" and request.can_read_body:
        values.update(await _form(request))
    header = request.headers.get("Authorization", "")
    token = header.removeprefix("Bearer ") if header.startswith("Bearer ") else None
    argument = values.pop("token", None) if carrier == "text" else None
    if token is None and isinstance(argument, str):
        token = argument
    return RawCall(values, token or None, carrier)


def _object(body: str) -> JsonObject:
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        raise SlackError("invalid_json") from error
    if not isinstance(value, dict):
        raise SlackError("json_not_object")
    return value


async def _form(request: web.Request) -> JsonObject:
    if request.content_type not in {"application/x-www-form-urlencoded", "multipart/form-data"}:
        raise SlackError("invalid_post_type")
    return dict(await request.post())
